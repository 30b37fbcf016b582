# Times plain R code with gradops attached: outside of derivatives, while it is differentiated, and as a gradient.
#
#     Rscript benchmarks/r_code.R

fill <- "fill <- function(n) { h <- numeric(n); for (i in 2:n) h[i] <- h[i - 1] * 0.5 + i; sum(h) }"
timed <- "best <- function(run, n = 7) min(replicate(n, system.time(run())[['elapsed']]))"

# A plain R loop, in processes without and with gradops, before and after a first derivative.
outside <- function(before) {
  script <- tempfile(fileext = ".R")
  writeLines(c(fill, timed, before, "cat(best(function() fill(1e6)) * 1e3)"), script)
  as.numeric(tail(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = FALSE), 1))
}
attached <- "suppressMessages(library(gradops))"
milliseconds <- c(
  "R alone" = outside(""),
  "gradops attached" = outside(attached),
  "after a derivative" = outside(c(attached, "invisible(gradient(function(p) { fill(10); p^2 }, 1))"))
)
cat("1e6 assignments of R's own numbers, milliseconds\n")
print(round(milliseconds, 1))

suppressMessages(library(gradops))
eval(parse(text = c(fill, timed)))
seconds <- NULL
invisible(gradient(function(p) {
  seconds <<- best(function() fill(1e5), 3)
  p^2
}, 1))
cat("\none assignment of R's own numbers, microseconds: outside ", round(best(function() fill(1e6)), 3),
    ", while a function is differentiated ", round(seconds * 10, 2), "\n", sep = "")

# Eager gradients of loops of scalar operations, which fill a vector, a matrix by rows or a matrix by elements, extend a
# vector, or update a scalar.
loops <- list(
  "a vector filled" = function(p) {
    h <- numeric(n)
    h[1] <- p[1]
    for (i in 2:n) h[i] <- h[i - 1] * p[2] + 0.1
    sum(h)
  },
  "a matrix by rows" = function(p) {
    M <- matrix(0, n, 2)
    M[1, ] <- p
    for (i in 2:n) M[i, ] <- M[i - 1, ] * p[2]
    sum(M)
  },
  "a matrix by elements" = function(p) {
    M <- matrix(0, n, 2)
    M[1, ] <- p
    for (i in 2:n) {
      M[i, 1] <- M[i - 1, 2] * p[2]
      M[i, 2] <- M[i - 1, 1] + 0.1
    }
    sum(M)
  },
  "a vector that grows" = function(p) {
    h <- NULL
    h[1] <- p[1]
    for (i in 2:n) h[i] <- h[i - 1] * p[2] + 0.1
    sum(h)
  },
  "four operations on a scalar" = function(p) {
    s <- p[1]
    for (i in seq_len(n)) s <- (s * p[2] + p[1]) * 0.5 + 0.1
    s
  }
)
x <- c(0.5, 0.9)
sizes <- c(200, 500, 2000)
for (backend in Filter(gradops_available, c("numpy", "torch"))) {
  config_set_backend(backend)
  cat("\n", backend, ", milliseconds of an eager gradient of n steps\n", sep = "")
  print(round(1e3 * t(sapply(loops, function(f) {
    slope <- grad_fn(f)
    sapply(stats::setNames(nm = sizes), function(size) {
      n <<- size
      slope(x)
      best(function() slope(x), if (size < 1000) 3 else 2)
    })
  }))))
}

# Repeated derivatives of a logistic regression with 200 rows, compared with the compiled call: with further arguments,
# with parameters in a list, and matrices. Then the first gradient of a recursion of 500 steps, taped and recorded.
config_set_backend("numpy")
set.seed(1)
X <- cbind(1, rnorm(200))
y <- rbinom(200, 1, 0.5)
loss <- function(p) -sum(dbinom(y, 1, plogis(X %*% p), log = TRUE))
of_data <- function(p, y, X) -sum(dbinom(y, 1, plogis(X %*% p), log = TRUE))
of_list <- function(p) -sum(dbinom(y, 1, plogis(X[, 1] * p$a + X[, 2] * p$b), log = TRUE))
p <- c(0.1, 0.2)
parts <- list(a = 0.1, b = 0.2)
compiled <- objective(loss, jit = TRUE)
slope <- grad_fn(loss)
calls <- expression(
  compiled$gr(p), compiled$he(p), gradient(loss, p), slope(p), grad(loss, p), gradient(of_data, p, y, X),
  gradient(of_list, parts), hessian(loss, p), hessian(of_data, p, y, X), jacobian(function(p) X[1:5, ] %*% p, p)
)
cat("\nasked again, microseconds of the processor\n")
again <- vapply(calls, function(call) {
  for (i in 1:4) eval(call)
  min(replicate(5, sum(system.time(for (i in 1:100) eval(call))[1:2]))) * 1e4
}, 0)
print(data.frame(call = vapply(calls, deparse1, ""), us = round(again)), row.names = FALSE, right = FALSE)

data <- rnorm(501)
garch <- function(p) {
  h <- numeric(500)
  h[1] <- 1
  for (t in 2:500) h[t] <- exp(p[1]) + plogis(p[2]) * data[t - 1]^2 + plogis(p[1]) * h[t - 1]
  -sum(dnorm(data[1:500], 0, sqrt(h), log = TRUE))
}
with_line <- function(line) {
  body(garch) <- call("{", line, body(garch))
  garch
}
first <- function(line) min(replicate(3, system.time(gradient(with_line(line(runif(1))), p))[[3]])) * 1e3
recorded <- first(function(k) bquote(.(k)))
on_tape <- first(function(k) bquote(invisible(Sys.time() + .(k)))) # the time is read in each call
cat(sprintf("\nfirst gradient of a recursion of 500 steps, ms: recorded %.0f, on the tape %.0f\n", recorded, on_tape))
