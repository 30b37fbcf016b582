# Times models with random effects in gradops and RTMB: a Laplace value with gradient, the first one, and a whole fit.
#
#     OMP_NUM_THREADS=1 Rscript benchmarks/laplace.R LIBRARY_OF_RTMB
#
# The table has milliseconds of processor time. Values with gradients alternate between two points, and each search for
# the mode starts from the last mode; the time is the mean of the best of ten batches, with both packages in turns. A
# batch has twenty values, because the processor clock has a resolution of a millisecond. The first value is timed from
# the function on, the least of three. The fit, with standard errors, is by `maximize_likelihood()` or by `MakeADFun()`,
# `nlminb()` and `sdreport()`, the least of three. The line above the table is the time of the very first value, which
# starts Python and loads RTMB. The arguments `alone` and a package's name after the library measure that in a fresh
# process.

arguments <- commandArgs(TRUE)
.libPaths(c(arguments[1L], .libPaths()))
suppressMessages(library(gradops))
set.seed(1)

gaussian <- function(x, log_sd) sum(x^2) / (2 * exp(2 * log_sd)) + length(x) * log_sd

models <- list(
  `logistic, 300 intercepts, n = 3000` = local({
    group <- rep(1:300, each = 10)
    x <- rnorm(3000)
    y <- rbinom(3000, 1, plogis(x / 2 + rnorm(300)[group]))
    list(start = list(a = 0, b = 0, s = 0, u = numeric(300)), f = function(p) {
      eta <- p$a + p$b * x + p$u[group]
      sum(log(1 + exp(eta)) - y * eta) + gaussian(p$u, p$s)
    })
  }),
  `crossed effects, 40 x 25, n = 1000` = local({
    y <- rnorm(1000) + rep(rnorm(40), 25) + rep(rnorm(25), each = 40)
    at <- list(rep(1:40, 25), 40 + rep(1:25, each = 40))
    list(start = list(m = 0, s = 0, t = 0, r = 0, u = numeric(65)), f = function(p) {
      gaussian(y - p$m - p$u[at[[1]]] - p$u[at[[2]]], p$s) + gaussian(p$u[1:40], p$t) + gaussian(p$u[41:65], p$r)
    })
  }),
  `Poisson field on 32 x 32` = local({
    y <- rpois(1024, exp(as.vector(outer(sin(1:32 / 5), cos(1:32 / 7)))))
    list(start = list(m = 0, s = 0, u = numeric(1024)), f = function(p) {
      u <- matrix(p$u, 32)
      rough <- c(u[-1, ] - u[-32, ], u[, -1] - u[, -32])
      (sum(rough^2) + sum(u^2) / 10) / (2 * exp(2 * p$s)) + 1024 * p$s + sum(exp(p$m + p$u) - y * (p$m + p$u))
    })
  }),
  `autoregression in two directions, 20 x 20` = local({
    y <- rpois(400, 3)
    list(start = list(m = 1, s = -1, a = 0.5, u = numeric(400)), f = function(p) {
      u <- matrix(p$u, 20)
      phi <- tanh(p$a)
      step <- rbind(u[1, ] * sqrt(1 - phi^2), u[-1, ] - phi * u[-20, ])
      step <- cbind(step[, 1] * sqrt(1 - phi^2), step[, -1] - phi * step[, -20])
      gaussian(step, p$s) - 20 * log(1 - phi^2) + sum(exp(p$m + p$u) - y * (p$m + p$u))
    })
  }),
  `stochastic volatility, n = 10000` = local({
    y <- rnorm(10000) * exp(as.vector(arima.sim(list(ar = 0.9), 10000, sd = 0.3)) / 2)
    list(start = list(m = 0, s = -1, a = 1, u = numeric(10000)), f = function(p) {
      phi <- tanh(p$a)
      step <- c(p$u[1] * sqrt(1 - phi^2), p$u[-1] - phi * p$u[-10000])
      h <- p$m + p$u
      gaussian(step, p$s) - log(1 - phi^2) / 2 + sum(h + y^2 * exp(-h)) / 2
    })
  }),
  `P-spline, 30 of n = 2000` = local({
    x <- sort(runif(2000))
    B <- matrix(splines::bs(x, df = 30, intercept = TRUE), 2000)
    y <- sin(7 * x) + rnorm(2000) / 3
    list(start = list(s = 0, t = 0, u = numeric(30)), f = function(p) {
      gaussian(y - (B %*% p$u)[, 1], p$s) + gaussian(p$u[3:30] - 2 * p$u[2:29] + p$u[1:28], p$t) + sum(p$u^2) / 200
    })
  })
)

milliseconds <- function(code) {
  start <- proc.time()
  force(code)
  1e3 * sum((proc.time() - start)[1:2])
}

makers <- list(
  gradops = function(case) objective(case$f, start = case$start, random = "u"),
  RTMB = function(case) RTMB::MakeADFun(case$f, case$start, random = "u", silent = TRUE)
)
fits <- list(
  gradops = function(case) sqrt(diag(vcov(maximize_likelihood(case$f, case$start, random = "u")))),
  RTMB = function(case) {
    o <- makers$RTMB(case)
    nlminb(o$par, o$fn, o$gr)
    summary(RTMB::sdreport(o), "fixed")[, 2]
  }
)

first <- function(who, case) {
  milliseconds({
    o <- makers[[who]](case)
    o$fn(o$par)
    o$gr(o$par)
  })
}
if ("alone" %in% arguments) {
  cat(sprintf("%s, from the start: %.0f\n", arguments[3L], first(arguments[3L], models[[1L]])))
  quit(save = "no")
}
cat(sprintf("from the start, of %s: %.0f\n", names(makers), vapply(names(makers), first, 0, case = models[[1L]])), sep = "")
cat(sprintf("%-45s %s\n", "", "value with gradient, first, fit: gradops, RTMB"))
for (name in names(models)) {
  case <- models[[name]]
  found <- lapply(makers, function(make) {
    o <- make(case)
    o$fn(o$par)
    gradient <- as.vector(o$gr(o$par))
    batch <- function() milliseconds(for (i in 1:20) {
      x <- o$par + 0.01 * (i %% 2)
      o$fn(x)
      o$gr(x)
    }) / 20
    list(batch = batch, gradient = gradient)
  })
  batches <- replicate(10, vapply(found, function(one) one$batch(), 0))
  stopifnot(all.equal(found[[1]]$gradient, found[[2]]$gradient, tolerance = 1e-6))
  firsts <- replicate(3, vapply(names(makers), first, 0, case = case))
  errors <- list()
  fitted <- replicate(3, vapply(names(fits), function(who) {
    milliseconds(errors[[who]] <<- as.vector(fits[[who]](case)))
  }, 0))
  stopifnot(all.equal(errors[[1]], errors[[2]], tolerance = 1e-3))
  times <- vapply(list(batches, firsts, fitted), apply, c(0, 0), 1L, min)
  shown <- sprintf("%.2f %.2f (%.2f)", times[1, ], times[2, ], times[1, ] / times[2, ])
  cat(sprintf("%-45s %s\n", name, paste(shown, collapse = "; ")))
}
