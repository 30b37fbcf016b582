# RTMB functions under RTMB's names, compared with RTMB's results.

local_rtmb <- function(env = parent.frame()) {
  attach_rtmb()
  withr::defer(detach("gradops:rtmb", character.only = TRUE), envir = env)
}

# Cases: a function of parameters, an evaluation point, its value and gradient by RTMB.
of_rtmb <- function() {
  x <- c(0, 1, 3, 7)
  list(
    dbinom_robust = list(
      function(p) sum(dbinom_robust(x, 8, p, log = TRUE)), c(-1, 0.5, 2, 30),
      c(-42.6298986878, -2.15153137096, -3.97967464961, -4.04637662382, -0.999999999999)
    ),
    dnbinom_robust = list(
      function(p) sum(dnbinom_robust(x, p[1], p[2], log = TRUE)), c(1, 0.5),
      c(-9.14028088356, -0.984930835987, 0.531951961682)
    ),
    dnbinom2 = list(
      function(p) sum(dnbinom2(x, p[1], p[2], log = TRUE)), c(2, 3.5),
      c(-9.15640133979, -0.0762097399427, 0.373341038834)
    ),
    dtweedie = list(
      function(p) sum(dtweedie(x, p[1], p[2], p[3], log = TRUE)), c(2, 1.4, 1.3),
      c(-9.38131137837, 0.870270424667, 1.41376324832, -0.822590433481)
    ),
    dcompois = list(
      function(p) sum(dcompois(x, p[1], p[2], log = TRUE)), c(2, 0.6),
      c(-9.32969531096, 0.445056823505, -2.739135561)
    ),
    dcompois2 = list(
      function(p) sum(dcompois2(x, p[1], p[2], log = TRUE)), c(2, 0.6),
      c(-9.61392024723, 1.09739713233, -2.31028783013)
    ),
    dlgamma = list(
      function(p) sum(dlgamma(x / 4, p[1], p[2], log = TRUE)), c(2, 1.6),
      c(-4.60729660228, -0.821151857377, -1.0329577698)
    ),
    dSHASHo = list(
      function(p) sum(dSHASHo(x, p[1], p[2], p[3], p[4], log = TRUE)), c(2, 1.6, 0.3, 0.8),
      c(-9.48341277025, -0.540424575351, 0.417404641412, -0.233776645831, -0.342781894136)
    ),
    dsn = list(function(p) sum(dsn(x / 2, p[1], log = TRUE)), 0.7, c(-9.58856305865, 0.768726553136)),
    logspace = list(
      function(p) logspace_add(p[1], p[2]) * logspace_sub(p[1], p[2]), c(2, 1.6),
      c(2.23750602315, 8.15564217755, -4.75225985674)
    ),
    `parts of probability 0` = list(
      function(p) sum(logspace_add(c(-Inf, 1, 0) + p[1], c(p[2], -Inf, -Inf))) + p[1] * logspace_add(-Inf, 2), c(2, 1.6),
      c(1.6 + 3 + 2 + 4, 4, 1)
    ),
    interpol1Dfun = list(
      function(p) sum(interpol1Dfun(sin(1:10))(p)), c(2.3, 7.9),
      c(0.57966413725 + 0.776787811212, -0.370618856487, -0.142338271478)
    ),
    interpol2Dfun = list(
      function(p) interpol2Dfun(outer(sin(1:6), 1:5), c(0, 1), c(0, 2), R = 1.5)(p[1], p[2]), c(0.23, 0.9),
      c(2.09011207663, -8.63684823085, 0.962887529753)
    ),
    dautoreg = list(
      function(p) -dautoreg(c(0.1, 0.5, -0.3, 0.2, 0.9), p[3], p[1:2], log = TRUE, scale = p[4]),
      c(0.5, -0.2, 0.1, 1.3),
      c(5.87669786319, -1.09137981681, 0.00764528749195, -0.402018795684, 3.21108233917)
    ),
    dseparable = list(
      function(p) {
        f1 <- function(x) sum(dnorm(x, sd = p[1], log = TRUE))
        f2 <- function(x) dmvnorm(x, Sigma = diag(3) + p[2], log = TRUE)
        f3 <- function(x) dautoreg(x, phi = p[3], log = TRUE)
        -dseparable(f1, f2, f3)(array(sin(1:24), c(2, 3, 4)), scale = p[4])
      }, c(2, 1, 0.6, 1.2), c(45.1233796497, 11.4709883645, 2.9997890612, -17.3176171622, 19.1183139408)
    ),
    expAv = list(
      function(p) sum(expAv(p * matrix(c(-1, 0.5, 0.2, 0.3, -0.8, 0.4, 0.7, 0.3, -0.6), 3), 1:3) * c(1, 2, 5)), 0.7,
      c(18.6781964541, -1.25352801632)
    ),
    besselK = list(function(p) sum(besselK(c(1, 2, 3.5), p)), 1.7, c(1.37112946973, 1.41116640959)),
    laplace = list(
      function(p) MakeTape(function(x) x[1]^2 * p + (x[2] - x[1])^2 * exp(p * x[1]), numeric(2))$laplace(2)(p), 0.4,
      c(-0.428364942925, 0.88)
    )
  )
}

test_each("RTMB functions have RTMB's values and gradients", {
  local_rtmb()
  cases <- of_rtmb()
  for (name in names(cases)) {
    case <- cases[[name]]
    expect_equal(as.numeric(case[[1]](case[[2]])), case[[3]][1], tolerance = 1e-10, info = name)
    expect_equal(gradient(case[[1]], case[[2]]), case[[3]][-1], tolerance = 1e-9, info = name)
  }
})

test_once("dseparable() is the density of the Kronecker product, from few evaluations of each density", {
  local_rtmb()
  calls <- 0
  covariance <- 0.6^abs(outer(1:9, 1:9, "-"))
  first <- function(x) {
    calls <<- calls + 1
    dmvnorm(x, Sigma = covariance, log = TRUE)
  }
  x <- matrix(sin(1:36), 9)
  found <- dseparable(first, function(x) dautoreg(x, phi = 0.3, log = TRUE))(x)
  expect_equal(found, dmvnorm(c(x), Sigma = kronecker(0.3^abs(outer(1:4, 1:4, "-")), covariance), log = TRUE))
  expect_lt(calls, 6)
})

chicks <- subset(ChickWeight, as.integer(Chick) <= 10)
chicks$Chick <- factor(chicks$Chick)

chicken_model <- function() {
  parameters <- list(mua = 0, sda = 1, mub = 0, sdb = 1, sdeps = 1, a = rep(0, 10), b = rep(0, 10))
  f <- function(parms) {
    getAll(chicks, parms, warn = FALSE)
    weight <- OBS(weight)
    a %~% dnorm(mean = mua, sd = sda)
    b %~% dnorm(mean = mub, sd = sdb)
    predWeight <- a[Chick] * Time + b[Chick]
    weight %~% dnorm(predWeight, sd = sdeps)
    ADREPORT(predWeight[1:2])
    REPORT(sdeps)
  }
  environment(f) <- list2env(list(chicks = chicks), parent = globalenv())
  MakeADFun(f, parameters, random = c("a", "b"), silent = TRUE, map = list(mub = factor(NA)))
}

test_once("the model of RTMB's introduction: estimates, reports, simulations and residuals", {
  skip_without("numpy")
  local_backend("numpy")
  local_rtmb()
  obj <- chicken_model()
  expect_equal(obj$fn(), 8188.507547, tolerance = 1e-9)
  expect_equal(as.vector(obj$gr()), c(-43.12388151, -188.7126949, -9664.740241, -6159.644013), tolerance = 1e-9)
  opt <- suppressWarnings(nlminb(obj$par, obj$fn, obj$gr))
  expect_equal(opt$objective, 365.3524272, tolerance = 1e-9)
  sdr <- sdreport(obj)
  of <- function(select, rows = TRUE) as.vector(summary(sdr, select)[rows, ])
  errors <- c(0.4344265447, 0.3275144922, 9.335399775, 0.4786580102)
  expect_equal(of("fixed"), c(3.367871637, 1.25895851, 41.43548503, 6.053247713, errors), tolerance = 1e-5)
  expect_equal(of("report"), c(44.16656194, 53.71611144, 3.369708931, 2.908676396), tolerance = 1e-6)
  expect_equal(of("random", 1:2), c(2.969072051, 1.488074374, 1.294750069, 0.5569577275), tolerance = 1e-5)
  expect_identical(rownames(summary(sdr, "fixed")), c("mua", "sda", "sdb", "sdeps"))
  expect_named(as.list(sdr, "Est"), c("mua", "sda", "mub", "sdb", "sdeps", "a", "b"))
  expect_true(is.na(as.list(sdr, "Std")$mub))
  expect_length(as.list(sdr, "Est", report = TRUE)[["predWeight[1:2]"]], 2)
  expect_output(print(sdr), "Maximum gradient component")
  expect_equal(obj$report()$sdeps, opt$par[["sdeps"]])
  expect_equal(obj$env$parList()$a[1:2], of("random", 1:2)[1:2], tolerance = 1e-6)
  for (method in c("fullGaussian", "oneStepGaussianOffMode")) {
    expect_equal(oneStepPredict(obj, method = method)$residual[1:4],
      c(1.002977753, 0.2411978844, 0.6170173467, 0.6292822477), tolerance = 1e-5
    )
  }
  set.seed(1)
  expect_length(obj$simulate()$weight, nrow(chicks))
  check <- checkConsistency(obj, n = 30, hessian = TRUE)
  expect_gt(summary(check)$marginal$p.value, 1e-3)
  expect_gt(summary(check)$joint$p.value, 1e-3)
  expect_equal(dim(summary(check)$gradientJoint), c(4L, 30L))
  expect_output(print(check), "Test correct simulation")
  expect_equal(dim(check[[1]]$hessian), c(4L, 4L))
  expect_error(MakeADFun(obj$env$func, obj$env$parameters, integrate = "mua"), class = "gradops_error_argument")
})

test_each("residuals of normal vectors are whitened by their covariance", {
  local_rtmb()
  set.seed(2)
  y <- matrix(rnorm(8), 2)
  cov <- matrix(c(1, 0.6, 0.6, 2), 2)
  nll <- function(p) {
    y <- OBS(y)
    found <- -sum(dnorm(p$u, 0, 1.5, log = TRUE))
    for (i in 1:4) found <- found - dmvnorm(y[, i], p$m + p$u[i], cov, log = TRUE)
    found
  }
  obj <- MakeADFun(nll, list(m = 0.3, u = numeric(4)), random = "u", silent = TRUE)
  obj$fn(obj$par)
  want <- solve(t(chol(kronecker(diag(4), cov + 1.5^2))), as.vector(y) - 0.3)
  expect_equal(oneStepPredict(obj, method = "fullGaussian")$residual, as.vector(want), tolerance = 1e-7)
  expect_error(oneStepPredict(obj, method = "cdf"), "for normal ones use `gaussian`", class = "gradops_error_argument")
})

test_each("residuals follow `subset`, `conditional` and other observations as in RTMB", {
  local_rtmb()
  y <- c(1.2, -0.3, 0.8, 2.1)
  z <- 0.7
  f <- function(p) {
    y <- OBS(y)
    z <- OBS(z)
    -sum(dnorm(p$u, 0, 1.5, log = TRUE)) - sum(dnorm(y, p$m + p$u, 1, log = TRUE)) - dnorm(z, p$u, 2, log = TRUE)
  }
  obj <- MakeADFun(f, list(m = 0.3, u = 0), random = "u", silent = TRUE)
  obj$fn(obj$par)
  at <- c(5, 4, 3, 1) # `z` and `y[4]` are known, `y[2]` never comes
  want <- solve(t(chol((diag(c(1, 1, 1, 1, 4)) + 1.5^2)[at, at])), (c(y - 0.3, z))[at])[3:4]
  for (method in c("fullGaussian", "oneStepGaussianOffMode", "oneStepGeneric", "oneStepGaussian", "cdf")) {
    found <- oneStepPredict(obj, "y", method = method, subset = c(3, 1), conditional = 4)
    expect_equal(found$residual, want, tolerance = if (method == "cdf") 0.01 else 1e-6) # by Laplace approximation
  }
  counts <- c(0, 3, 1, 7)
  g <- function(p) -sum(dpois(OBS(counts), exp(p$m), log = TRUE))
  obj <- MakeADFun(g, list(m = 1), silent = TRUE)
  obj$fn(obj$par)
  u <- withr::with_seed(123, runif(2)) # TMB's
  want <- qnorm(ppois(counts[2:3], exp(1)) - u * dpois(counts[2:3], exp(1)))
  found <- oneStepPredict(obj, method = "cdf", discrete = TRUE, subset = 2:3)$residual
  expect_equal(found, want, tolerance = 1e-9)
  expect_equal(oneStepPredict(obj, method = "oneStepGeneric", subset = 2:3)$residual, want, tolerance = 1e-6)
  at <- 0:8 # the whole support
  found <- oneStepPredict(obj, method = "oneStepGeneric", discrete = TRUE, discreteSupport = at, subset = 2:3)$residual
  parts <- ppois(counts[2:3], exp(1)) - u * dpois(counts[2:3], exp(1))
  expect_equal(found, qnorm(parts / ppois(8, exp(1))), tolerance = 1e-9)
  refused <- function(message, ...) {
    expect_error(oneStepPredict(obj, method = "oneStepGeneric", ...), message, class = "gradops_error_argument")
  }
  refused("`discrete`: `counts` are counts", discrete = FALSE)
  refused("`discreteSupport`: `counts` also has 7", discreteSupport = 0:5)
  refused("`range`: must be two numbers", range = c(1, 0))
  refused("`discreteSupport`: must be numbers", discreteSupport = "0")
})

test_each("integrals that need densities only: RTMB's densities, and Tweedie's at 0", {
  local_rtmb()
  list2env(mget(c("dtweedie", "dsn", "dnbinom2"), as.environment("gradops:rtmb")), environment()) # for scripts
  data <- list(y = c(0, 0.2, 1.7, 5), s = c(-1, 0.4, 2), b = c(0, 4, 11), g = c(0.1, 2, 3))
  f <- function(p) {
    getAll(data, p)
    y <- OBS(y)
    s <- OBS(s)
    b <- OBS(b)
    g <- OBS(g)
    u^2 - sum(dtweedie(y, 1.2, 1, 1.4, log = TRUE)) - sum(dsn(s, 3, log = TRUE)) -
      sum(dnbinom2(b, 4, 9, log = TRUE)) - sum(dgamma(g, 2, scale = a, log = TRUE))
  }
  obj <- MakeADFun(f, list(a = 1, u = 0), random = "u", silent = TRUE)
  obj$fn(obj$par)
  found <- function(name, ...) oneStepPredict(obj, name, method = "oneStepGeneric", ...)$residual
  part <- function(density, to, from = -Inf) integrate(density, from, to, rel.tol = 1e-9)$value

  none <- exp(-1.2^0.6 / 0.6)
  below <- vapply(data$y, function(y) none + part(function(x) dtweedie(x, 1.2, 1, 1.4), y, 0), 0)
  drawn <- withr::with_seed(123, runif(4)[1]) * none * (data$y == 0)
  expect_equal(found("y"), qnorm(below - drawn), tolerance = 1e-6)
  expect_equal(found("y", discrete = FALSE, discreteSupport = 0, range = c(0, Inf)), found("y"), tolerance = 1e-9)
  skewed <- vapply(data$s, function(s) part(function(x) 2 * dnorm(x) * pnorm(3 * x), s), 0)
  expect_equal(found("s"), qnorm(skewed), tolerance = 1e-6)
  within <- vapply(data$s, function(s) part(function(x) 2 * dnorm(x) * pnorm(3 * x), s, -2), 0)
  all_within <- part(function(x) 2 * dnorm(x) * pnorm(3 * x), 2.5, -2)
  expect_equal(found("s", range = c(-2, 2.5)), qnorm(within / all_within), tolerance = 1e-6)
  size <- 16 / 5
  counted <- pnbinom(data$b, size, mu = 4) - withr::with_seed(123, runif(3)) * dnbinom(data$b, size, mu = 4)
  expect_equal(found("b"), qnorm(counted), tolerance = 1e-6)
  expect_equal(found("g"), qnorm(pgamma(data$g, 2)), tolerance = 1e-6)
  expect_equal(oneStepPredict(obj, "g", method = "oneStepGaussian")$residual, data$g - 1, tolerance = 1e-6)

  refused <- function(message, ...) expect_error(oneStepPredict(obj, ...), message, class = "gradops_error_argument")
  refused("`y` has no `cdf` residuals for `dtweedie\\(\\)`", "y", method = "cdf")
  refused("`y` have a probability at 0, so they have `integral`", "y")
  refused("`s` has 2 outside", "s", method = "oneStepGeneric", range = c(-2, 1))
  refused("`s` are no counts", "s", method = "oneStepGeneric", discrete = TRUE)
})

test_each("residuals of one observation vector condition on the others, counts included", {
  local_rtmb()
  y <- c(0.2, 0.9, -0.4)
  z <- c(2, 4, 1)
  f <- function(p) {
    y <- OBS(y)
    z <- OBS(z)
    -sum(dnorm(p$u, p$m, log = TRUE)) - sum(dnorm(y, p$u, 0.5, log = TRUE)) - sum(dpois(z, exp(1 + p$u), log = TRUE))
  }
  obj <- MakeADFun(f, list(m = 0, u = numeric(3)), random = "u", silent = TRUE)
  obj$fn(obj$par)
  for (method in c("oneStepGaussianOffMode", "fullGaussian", "oneStepGeneric", "oneStepGaussian", "cdf")) {
    found <- oneStepPredict(obj, "y", method = method)$residual
    exact <- vapply(1:3, function(i) {
      at <- function(u) dnorm(u) * dpois(z[i], exp(1 + u))
      below <- integrate(function(u) at(u) * pnorm(y[i], u, 0.5), -8, 8)$value
      qnorm(below / integrate(at, -8, 8)$value)
    }, 0)
    # each one is nearly normal
    tolerance <- c(fullGaussian = 0.3, oneStepGeneric = 0.01)
    expect_equal(found, exact, tolerance = if (method %in% names(tolerance)) tolerance[[method]] else 0.15)
  }
})

test_each("reports may be tensors: `diag()` of one parameter, of a whole number, and sparse matrices", {
  local_rtmb()
  f <- function(p) {
    getAll(p)
    ADREPORT(diag(a))
    Q <- Matrix::Diagonal(2) * exp(a)
    ADREPORT(Q)
    (a - 2)^2
  }
  obj <- MakeADFun(f, list(a = 2), silent = TRUE)
  obj$fn(obj$par)
  found <- sdreport(obj)
  expect_equal(as.list(found, "Est", report = TRUE), list(`diag(a)` = matrix(2), Q = diag(exp(2), 2)))
  expect_equal(as.list(found, "Std", report = TRUE)$Q, diag(exp(2) * sqrt(0.5), 2))
})

test_each("checkConsistency(estimate = TRUE) re-estimates for each simulated data set", {
  local_rtmb()
  y <- c(2, 5, 3, 4, 1)
  obj <- MakeADFun(function(p) -sum(dnorm(OBS(y), p$m, log = TRUE)), list(m = 1), silent = TRUE)
  obj$fn(obj$par)
  set.seed(4)
  found <- summary(checkConsistency(obj, n = 20, estimate = TRUE))
  expect_named(found$estimate$par, "m")
  expect_equal(as.vector(found$gradient), 5 * (1 - found$estimate$par$m), tolerance = 1e-4)
  expect_true(all(found$estimate$deviance > -1e-8))
})

test_each("profiled parameters and means of reports match RTMB", {
  local_rtmb()
  data <- list(
    id = rep(1:6, each = 5), x = rep(c(-1, 0, 1, 2, 0.5), 6),
    y = c(3, 1, 2, 0, 4, 6, 8, 5, 7, 9, 0, 0, 1, 2, 0, 3, 3, 2, 5, 4, 12, 9, 14, 10, 11, 1, 2, 0, 1, 3)
  )
  f <- function(parms) {
    getAll(parms, data)
    total <- sum(exp(beta[1] + u))
    ADREPORT(total)
    -sum(dnorm(u, 0, exp(logtau), log = TRUE)) - sum(dpois(y, exp(beta[1] + beta[2] * x + u[id]), log = TRUE))
  }
  start <- list(beta = c(1, 0), logtau = -0.5, u = numeric(6))
  obj <- MakeADFun(f, start, random = "u", profile = "beta", silent = TRUE)
  expect_equal(obj$fn(), 62.8370034445, tolerance = 1e-11)
  expect_equal(c(obj$gr()), -4.91251674502, tolerance = 1e-9)
  expect_equal(nlminb(obj$par, obj$fn, obj$gr)$objective, 61.8761950013, tolerance = 1e-11)
  found <- summary(sdreport(obj, bias.correct = TRUE))
  expect_equal(
    unname(found[c(1:4, 10), 1:2]),
    cbind(
      c(-0.07953574274, 1.0939730035, 0.00390625944, -0.36129963562, 25.54985374442),
      c(0.328765552, 0.400314777, 0.088388668, 0.461575003, 2.528825885)
    ), tolerance = 1e-5
  )
  expect_equal(found[["total", 3]], 25.4752056, tolerance = 1e-7)
  fixed <- MakeADFun(f, start, silent = TRUE)
  expect_warning(sdreport(fixed, fixed$par, diag(9), bias.correct = TRUE), "without random effects")
})

test_each("arrays of parameters keep their dimensions", {
  on.exit(detach("gradops:rtmb"))
  attach_rtmb()
  f <- function(p) sum((p$a - 1)^2) + sum(p$a[, , 2] - p$u)^2 + sum(p$u^2)
  obj <- MakeADFun(f, list(a = array(0, c(2, 1, 2)), u = 1), random = "u", silent = TRUE)
  obj$fn(obj$par + 1)
  expect_equal(obj$env$parList()$a, array(1, c(2, 1, 2)))
  expect_equal(dim(as.list(sdreport(obj), "Std")$a), c(2L, 1L, 2L))
})

test_rtmb_integrals <- function(...) { # a normal model, for which each method is exact
  seen <- list(x = c(-0.5605, -0.2302, 1.5587))
  f <- function(par) {
    getAll(seen, par)
    -sum(dnorm(u, mu, log = TRUE)) - sum(dnorm(x, mean = u, sd = sd, log = TRUE))
  }
  start <- list(u = c(0, 0, 0), sd = 1, mu = 0)
  obj <- MakeADFun(f, start, random = "u", map = list(sd = factor(NA)), silent = TRUE, ...)
  opt <- nlminb(obj$par, obj$fn, obj$gr)
  summary(sdreport(obj))
}

test_each("integrate = supports TMB's methods for independent random effects", {
  attach_rtmb()
  on.exit(detach("gradops:rtmb"))
  by_laplace <- test_rtmb_integrals()
  expect_equal(by_laplace["mu", ], c(Estimate = 0.256, `Std. Error` = sqrt(2 / 3)), tolerance = 1e-6)
  for (method in list(GK(), LA(), SR(seq(-8, 8, length = 100)))) {
    expect_equal(test_rtmb_integrals(integrate = list(u = method)), by_laplace, tolerance = 1e-6)
  }
  y <- c(0, 3, 1, 7)
  counts <- function(p) -sum(dpois(y, exp(p$a + p$u), log = TRUE)) - sum(dnorm(p$u, 0, exp(p$s), log = TRUE))
  start <- list(a = 0.5, s = 0, u = numeric(4))
  exact <- sum(vapply(y, function(y) {
    -log(integrate(function(u) dpois(y, exp(0.5 + u)) * dnorm(u), -Inf, Inf, rel.tol = 1e-12)$value)
  }, 0))
  obj <- MakeADFun(counts, start, random = "u", integrate = list(list(u = GK())))
  expect_equal(obj$fn(obj$par), exact, tolerance = 1e-9)
  expect_equal(as.vector(obj$gr(obj$par)), numeric_gradient(obj$fn, obj$par), tolerance = 1e-6)
  expect_error(SR(0:3, discrete = TRUE), "add up the probabilities", class = "gradops_error_argument")
  expect_error(SR(3:1), "increasing numbers", class = "gradops_error_argument")
  refused <- function(...) MakeADFun(counts, start, ...)
  expect_error(refused(random = "u", integrate = list(v = GK())), "no parameter `v`", class = "gradops_error_argument")
  expect_error(refused(random = "u", integrate = list(u = 1)), "needs `GK\\(\\)`", class = "gradops_error_argument")
  expect_error(
    refused(random = c("u", "a"), integrate = list(u = GK())), "`a` is also random", class = "gradops_error_argument"
  )
  walk <- function(p) -sum(dnorm(p$u[2:4], p$u[1:3], exp(p$s), log = TRUE)) + sum((p$u - p$a)^2)
  walk <- MakeADFun(walk, start, random = "u", integrate = list(u = GK()))
  expect_error(walk$fn(walk$par), "depend on each other", class = "gradops_error_argument")
})

test_each("scripts can fill Matrix objects with tensors, use empty parameters, and inspect a tape's graph", {
  on.exit(detach("gradops:rtmb"))
  attach_rtmb()
  x <- c(0.1, 0.5, 0.2, -0.3, 0.4)
  start <- list(s = 0, t = 1, missing = numeric())
  dense <- function(p) {
    phi <- 2 * plogis(p$t) - 1
    -dmvnorm(x, 0, exp(2 * p$s) / (1 - phi^2) * phi^abs(outer(1:5, 1:5, "-")), log = TRUE)
  }
  sparse <- function(p) {
    getAll(p)
    phi <- 2 * plogis(t) - 1
    Q <- Matrix::spMatrix(5, 5)
    diag(Q) <- c(1, rep(1 + phi^2, 3), 1)
    Q[cbind(2:5, 1:4)] <- -phi
    Q[cbind(1:4, 2:5)] <- -phi
    -dgmrf(c(x, missing), Q = Q / exp(s)^2, log = TRUE)
  }
  expected <- MakeADFun(dense, start[1:2], silent = TRUE)
  obj <- MakeADFun(sparse, start, silent = TRUE)
  expect_equal(obj$fn(), expected$fn(), tolerance = 1e-10)
  expect_equal(obj$gr(), expected$gr(), tolerance = 1e-8)
  random <- MakeADFun(sparse, start, random = c("t", "missing"), silent = TRUE)
  if (config_backend() == "tensorflow") {
    expect_error(random$fn(), "forward mode", class = "gradops_error_backend") # docs/differences.md
  } else {
    expect_equal(random$fn(), MakeADFun(dense, start[1:2], random = "t", silent = TRUE)$fn(), tolerance = 1e-8)
  }
  expect_identical(as.list(sdreport(obj), "Est")$missing, numeric())

  tape <- MakeTape(function(x) x[1]^2 + sqrt(x[2]), c(2, 3))
  graph <- as.matrix(tape$graph())
  expect_identical(tape$par(), c(2, 3))
  expect_equal(tape$reorder()(c(1, 4)), tape$simplify()(c(1, 4)))
  expect_false(any(graph[lower.tri(graph, diag = TRUE)]))
  expect_gt(sum(graph), 4)
  if (config_backend() != "torch") { # PyTorch owns its graph
    expect_setequal(rownames(graph), c("Parameter", "get_item", "power", "sqrt", "add"))
    expect_identical(sum(graph[, "add"]), 2L)
  }
})

test_each("a tensor can be the slot x of a Matrix object", {
  local_rtmb()
  whole <- Matrix::bandSparse(4, k = -1:1, diagonals = list(rep(-0.3, 3), rep(2, 4), rep(-0.3, 3)))
  x <- c(1, 2, 0.5, 0.2)
  of <- function(f) {
    obj <- MakeADFun(f, list(v = 1.3, w = x), silent = TRUE)
    c(obj$fn(), obj$gr())
  }
  want <- of(function(p) sum((p$v * whole) %*% p$w))
  for (given in list(whole, methods::as(whole, "TsparseMatrix"), Matrix::forceSymmetric(whole))) {
    m <- methods::as(given, "sparseMatrix")
    expect_equal(of(function(p) {
      m@x <- p$v * m@x
      sum(m %*% p$w)
    }), want, tolerance = 1e-12)
  }
  squared <- of(function(p) {
    d <- AD(methods::as(Matrix::Diagonal(4), "CsparseMatrix"))
    d@x[] <- p$w[c(1, 1, 2, 3)]
    sum((d %*% d) %*% p$w) + sum(d@p)
  })
  places <- c(1, 1, 2, 3)
  slope <- x[places]^2
  for (i in 1:4) slope[places[i]] <- slope[places[i]] + 2 * x[places[i]] * x[i]
  expect_equal(squared, c(sum(x[places]^2 * x) + 10, 0, slope), tolerance = 1e-12)
  expect_error(of(function(p) {
    whole@x <- p$w
    sum(whole)
  }), "10 values, `value` 4", class = "gradops_error_shape")
})

test_each("a tape with many inner variables uses sparse second derivatives, in a likelihood as well", {
  local_rtmb()
  n <- 80
  y <- 3 + 1.5 * sin(seq_len(n)) # a normal density by the saddlepoint approximation, which is exact here
  generating <- function(p) sum(p$mu * p$s + .5 * p$s * p$s * p$sigma^2) - sum(p$s * y)
  tape <- MakeTape(generating, list(s = numeric(n), mu = 0, sigma = 1))
  saddle <- tape$newton(seq_len(n))
  expect_equal(as.vector(saddle(c(2, 1.3))), (y - 2) / 1.3^2, tolerance = 1e-10)
  expect_equal(saddle$jacobian(c(2, 1.3))[, 1], rep(-1 / 1.3^2, n), tolerance = 1e-10)
  density <- tape$laplace(seq_len(n), SPA = TRUE)
  expect_equal(density(c(2, 1.3)), -sum(dnorm(y, 2, 1.3, log = TRUE)), tolerance = 1e-12)
  obj <- MakeADFun(function(p) density(p), list(mu = 2, sigma = 1.3), silent = TRUE)
  expect_equal(obj$fn(obj$par), -sum(dnorm(y, 2, 1.3, log = TRUE)), tolerance = 1e-12)
  expect_equal(
    as.vector(obj$gr(obj$par)), c(-sum(y - 2) / 1.3^2, n / 1.3 - sum((y - 2)^2) / 1.3^3), tolerance = 1e-10
  )
  expect_equal(obj$he(obj$par)[1, ], c(n / 1.3^2, 2 * sum(y - 2) / 1.3^3), tolerance = 1e-9)
  for (at in list(c(2, 1.3), c(2.5, 0.9))) { # compiled
    expect_equal(density(at), -sum(dnorm(y, at[1], at[2], log = TRUE)), tolerance = 1e-12)
    slope <- c(-sum(y - at[1]) / at[2]^2, n / at[2] - sum((y - at[1])^2) / at[2]^3)
    expect_equal(density$jacobian(at), matrix(slope, 1L), tolerance = 1e-10)
  }
})

test_each("an error after `%~%` is reported; elements of a Matrix object have densities and standard errors", {
  on.exit(detach("gradops:rtmb"))
  attach_rtmb()
  failing <- function(p) {
    getAll(p)
    mu %~% dnorm(0, 1)
    stop("too late")
  }
  expect_error(failing(list(mu = 1)), "too late")
  expect_error(MakeADFun(failing, list(mu = 1), silent = TRUE)$fn(), "too late")
  A <- Matrix::sparseMatrix(c(1, 2, 2), c(1, 1, 2), x = c(1, 2, 3))
  y <- c(0.5, 2)
  f <- function(p) {
    getAll(p)
    y %~% dnorm(A %*% mu, 1)
    expected <- A %*% mu
    ADREPORT(expected)
  }
  obj <- MakeADFun(f, list(mu = c(1, 1)), silent = TRUE)
  opt <- nlminb(obj$par, obj$fn, obj$gr)
  report <- as.list(sdreport(obj), "Std", report = TRUE)
  expect_equal(as.vector(report$expected), c(1, 1), tolerance = 1e-6) # as exact as the data: A mu = y
  expect_equal(ifelse(FALSE, parameter(numeric()), parameter(2)) |> as.vector(), 2)
})

test_once("tape settings are stored, and the prefix RTMB:: works where RTMB is not installed", {
  local_rtmb()
  old <- TapeConfig()
  expect_identical(TapeConfig(matmul = "compact")$matmul, "compact")
  changed <- TapeConfig(comparison = "tape", vectorize = "enable")
  expect_identical(c(changed$compare, changed$sum, changed$matmul), c("taped", "vectorize", "compact"))
  expect_identical(TapeConfig(old), old)
  expect_error(TapeConfig(matmull = "plain"), class = "gradops_error_argument")
  skip_if(rlang::is_installed("RTMB"))
  x <- c(1, 2)
  f <- function(p) {
    if (!RTMB:::ad_context()) stop("no tape")
    RTMB::ADREPORT(p$m)
    -sum(RTMB::dnorm(x, p$m, exp(p$s), log = TRUE))
  }
  z <- (x - 0.5) / exp(0.1)
  expect_equal(c(MakeADFun(f, list(m = 0, s = 0))$gr(c(0.5, 0.1))), c(-sum(z) / exp(0.1), sum(1 - z^2)))
  o <- MakeADFun(function(p) {
    RTMB::REPORT(p)
    p$m^2
  }, list(m = 3))
  o$env$beSilent()
  expect_equal(o$report()$p$m, 3)
  # Outside a likelihood; names of other packages are unaffected.
  script <- new.env(parent = globalenv())
  at <- local(
    {
      o <- RTMB::MakeADFun(function(p) stats::var(p$x) + base:::sum(p$x^2), list(x = c(1, 4)), silent = TRUE)
      tape <- RTMB::MakeTape(function(x) RTMB::dnorm(x, log = TRUE), 1)
      list(o$gr(), tape$jacobian(2), stats::sd(1:3), RTMB::dnorm(0))
    },
    envir = script
  )
  expect_equal(at, list(matrix(c(-3 + 2, 3 + 8), 1), matrix(-2), 1, stats::dnorm(0)))
})

test_each("MakeADFun(ADreport = TRUE) returns the reports and their Jacobian; unknown arguments are errors", {
  local_rtmb()
  roots <- function(p) { # the roots of an autoregression, as a user constrains them
    n <- length(p$phi)
    companion <- matrix(0, n, n)
    companion[1, ] <- c(-rev(p$phi[-n]) / p$phi[n], 1 / p$phi[n])
    companion[cbind(2:n, 1:(n - 1))] <- 1
    inside <- 1 - Mod(eigen(companion, symmetric = FALSE)$values)
    ADREPORT(inside)
    double <- 2 * p$u
    ADREPORT(double)
    sum(p$u^2)
  }
  start <- list(phi = c(0.5, 0.2), u = c(1, 3))
  o <- MakeADFun(roots, start, random = "u", ADreport = TRUE, silent = TRUE)
  expect_identical(names(o$par), c("phi", "phi", "u", "u"))
  moduli <- function(phi) 1 - sort(abs((-phi[1] + c(-1, 1) * sqrt(phi[1]^2 + 4 * phi[2])) / (2 * phi[2])), TRUE)
  expect_equal(o$fn(), c(inside = moduli(start$phi)[1], inside = moduli(start$phi)[2], double = 2, double = 6))
  slopes <- vapply(1:2, function(i) {
    step <- replace(numeric(2), i, 1e-6)
    (moduli(start$phi + step) - moduli(start$phi - step)) / 2e-6
  }, numeric(2))
  expect_equal(o$gr(), rbind(cbind(slopes, 0, 0), cbind(0, 0, diag(2, 2))), tolerance = 1e-7)
  expect_error(o$he(), "no Hessian", class = "gradops_error")
  shared <- MakeADFun(roots, start, map = list(u = factor(c(1, 1)), phi = factor(c(NA, NA))), ADreport = TRUE)
  expect_equal(shared$gr(), matrix(c(0, 0, 2, 2)))
  expect_error(MakeADFun(roots, start, randon = "u"), "`randon`: is not an argument", class = "gradops_error_argument")
  expect_error(MakeADFun(roots, start, ridge.correct = TRUE), "ridge.correct", class = "gradops_error_argument")
  expect_identical(MakeADFun(roots, start, DLL = "x", inner.control = list(), ridge.correct = FALSE)$fn(), 10)
  expect_error(
    sdreport(MakeADFun(roots, start, random = "u"), ignore.parm.uncertainty = TRUE), "ignore.parm.uncertainty",
    class = "gradops_error_argument"
  )
})

test_once("a 1 x 1 matrix is diagonal, as in RTMB", {
  f <- function(p) -dmvnorm(c(0.3, -0.2)[seq_along(p)], 0, diag(exp(p)), log = TRUE)
  local_rtmb()
  for (p in list(0.4, c(0.4, -0.1))) {
    z <- c(0.3, -0.2)[seq_along(p)]
    expect_equal(c(MakeADFun(function(p) f(p$a), list(a = p))$gr(p)), 0.5 - z^2 / exp(p) / 2)
    expect_equal(gradient(function(p) sum(diag(exp(p))), p), exp(p))
  }
  reported <- function(p) {
    S <- diag(exp(p$s))
    ADREPORT(S)
    -dmvnorm(p$m, 0, S, log = TRUE) + p$m^2 + p$s^2 + sum(diag(2))
  }
  o <- MakeADFun(reported, list(m = 0.5, s = -0.2))
  expect_equal(sdreport(o)$value[[1]], exp(-0.2))
})

test_once("a model and a tape use the data from their creation, even for paths traced later", {
  local_rtmb()
  scaled <- function(a) if (a > 5) a * k + 1 else a * k
  env <- new.env()
  models <- tapes <- list()
  for (k in 1:2) {
    dat <- list(y = 1:3 * k)
    env$shift <- k
    models[[k]] <- MakeADFun(function(p) sum((dat$y - env$shift - scaled(p$a))^2), list(a = 1))
    tapes[[k]] <- MakeTape(function(x) c(x[1]^k, sum(DataEval(function() dat$y))), 1)
  }
  k <- 10
  rm(dat)
  expected <- function(a, k) sum((1:3 * k - k - a * k - (a > 5))^2)
  for (a in c(2, 6, 3)) for (i in 1:2) expect_equal(models[[i]]$fn(a), expected(a, i))
  expect_equal(models[[1]]$gr(6), matrix(2 * sum(7 - 0:2)))
  expect_equal(sapply(tapes, function(tape) tape(3)), cbind(c(3, 6), c(9, 12)))
  expect_equal(tapes[[2]]$jacobian(3), matrix(c(6, 0)))
  expect_identical(list(k, exists("dat", inherits = FALSE), env$shift), list(10, FALSE, 2L))
  k <- 1
  dat <- list(y = 5)
  tapes[[2]]$force.update()
  expect_equal(tapes[[2]](3), c(3, 5))
})

test_each("MakeADFun() refuses non-scalar objectives, and starts shared elements at their mean, as TMB", {
  attach_rtmb()
  withr::defer(detach("gradops:rtmb"))
  squares <- function(p) (p$x - c(1, 4, 0))^2
  several <- MakeADFun(squares, list(x = numeric(3)), silent = TRUE)
  expect_error(several$fn(several$par), "`func` must return one number; got 3", class = "gradops_error_shape")
  sums <- function(p) sum(squares(p))
  shared <- MakeADFun(sums, list(x = c(0, 3, 6)), map = list(x = factor(c(1, 2, 1))), silent = TRUE)
  expect_equal(unname(shared$par), c(3, 3))
  expect_equal(shared$fn(shared$par), sums(list(x = c(3, 3, 3))))
  expect_equal(as.vector(shared$gr(shared$par)), c(2 * (3 - 1) + 2 * 3, 2 * (3 - 4)))
  fixed <- MakeADFun(sums, list(x = c(0, 3, 6)), map = list(x = factor(c(1, NA, 1))), silent = TRUE)
  expect_equal(unname(fixed$env$last.par), 3)
  expect_equal(fixed$env$parList()$x, c(3, 3, 3))
  expect_warning(
    MakeADFun(sums, list(x = c(0, 3, 6)), map = list(x = factor(c("b", "a", "b"))), silent = TRUE), "TMB's order is by"
  )
  as_matrix <- MakeADFun(function(p) matrix(sum(squares(p))), list(x = numeric(3)), silent = TRUE)
  expect_equal(as_matrix$fn(as_matrix$par), 17)
})

test_each("the environment of an object has what tmbprofile(), tmbstan() and adnuts read and set", {
  local_rtmb()
  y <- c(1.2, 0.4, 2.1, 0.9)
  f <- function(p) {
    getAll(p)
    u %~% dnorm(0, exp(s))
    OBS(y) %~% dnorm(a + u, k[3])
  }
  start <- list(a = 0.5, k = c(1, 2, 3), u = numeric(4), s = 0.2)
  obj <- MakeADFun(f, start, random = "u", map = list(k = factor(c(1, NA, NA))), silent = TRUE)
  env <- obj$env
  expect_identical(names(env$par), c("a", "k", rep("u", 4), "s"))
  expect_identical(env$random, 3:6)
  expect_identical(env$lrandom(), names(env$par) == "u")
  joint <- function(v) -sum(dnorm(v[3:6], 0, exp(v[7]), TRUE)) - sum(dnorm(y, v[1] + v[3:6], 3, TRUE))
  v <- c(0.3, 1, 0.1, -0.2, 0.5, 0.4, -0.1)
  expect_equal(env$f(v), joint(v))
  expect_equal(as.vector(env$f(v, order = 1)), numeric_gradient(joint, v), tolerance = 1e-7)
  expect_equal(dim(env$f(v, order = 1)), c(1L, 7L))
  curvature <- hessian(joint, v)
  expect_equal(env$f(v, order = 2), curvature, tolerance = 1e-8)
  expect_equal(as.matrix(env$spHess(v, random = TRUE)), curvature[3:6, 3:6], tolerance = 1e-8)
  expect_identical(as.vector(env$last.par), v)
  expect_error(env$f(v, order = 3), class = "gradops_error_argument")

  at <- obj$par + c(0.2, 0, -0.1)
  value <- obj$fn(at)
  mode <- (y - at[["a"]]) / 9 / (1 / 9 + exp(-2 * at[["s"]]))
  expect_equal(unname(env$last.par[env$random]), mode, tolerance = 1e-8)
  expect_identical(env$last.par.best, env$last.par)
  expect_equal(env$value.best, value)
  expect_equal(env$parList(), list(a = at[["a"]], k = start$k, u = mode, s = at[["s"]]), tolerance = 1e-8)
  names <- c("last.par.best", "random.start", "value.best", "last.par", "inner.control", "tracemgc")
  before <- sapply(names, get, envir = env, simplify = FALSE)
  env$value.best <- Inf
  env$inner.control$trace <- FALSE
  obj$fn(obj$par + 1) # a worse value, but the best since the reset
  expect_equal(env$last.par.best[["a"]], 1.5)
  for (name in names) assign(name, before[[name]], envir = env)
  expect_identical(env$last.par.best, before$last.par.best)
  expect_equal(obj$fn(env$last.par[env$lfixed()]), value)
  env$tracepar <- env$tracemgc <- TRUE
  expect_output(obj$fn(at), "par:")
  expect_output(obj$gr(at), "outer mgc")
  expect_identical(env$last.par1, env$last.par)
  env$tracepar <- FALSE
  env$validpar <- function(x) x[["a"]] < 0
  expect_identical(obj$fn(at), NaN)
})

test_each("a parameter vector is the function's only argument, as in RTMB", {
  local_rtmb()
  banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2
  obj <- MakeADFun(banana, numeric(2), silent = TRUE)
  expect_identical(obj$par, c(x = 0, x = 0))
  expect_equal(nlminb(c(-1.2, 1), obj$fn, obj$gr, obj$he)$par, c(1, 1), tolerance = 1e-8)
  expect_equal(obj$env$parList()$x, c(1, 1), tolerance = 1e-8)
  expect_error(MakeADFun(function(x, y) x, numeric(2)), "must have one argument", class = "gradops_error_argument")
})

test_each("the function of ADjoint() gets plain numbers, so it may run an optimizer", {
  local_rtmb()
  seen <- character()
  least <- ADjoint(
    function(a) {
      seen <<- union(seen, class(a))
      nlminb(0, function(u) (u - a[1])^2 + a[2] * u^4, control = list(rel.tol = 1e-14))$par
    },
    function(a, u, du) c(2, -4 * u^3) / (2 + 12 * a[2] * u^2) * du
  )
  expect_identical(seen, character())
  exact <- function(a) uniroot(function(u) 2 * (u - a[1]) + 4 * a[2] * u^3, c(-9, 9), tol = 1e-14)$root^2 + a[1]
  obj <- MakeADFun(function(a) least(a)^2 + a[1], c(1, 0.5), silent = TRUE)
  for (at in list(c(1, 0.5), c(2, 0.3))) {
    expect_equal(obj$fn(at), exact(at), tolerance = 1e-6)
    expect_equal(as.vector(obj$gr(at)), numeric_gradient(exact, at), tolerance = 1e-5)
    slopes <- vapply(1:2, function(i) numeric_gradient(function(a) gradient(exact, a)[i], at, 1e-4), numeric(2))
    expect_equal(obj$he(at), slopes, tolerance = 1e-4)
  }
  expect_identical(seen, "numeric")
  expect_error(ADjoint(identity, identity, complex = TRUE), class = "gradops_error_argument")
})

test_each("a simulation contains reported values, and runs a loop over time twice", {
  local_rtmb()
  y <- numeric(30)
  runs <- 0
  f <- function(p) {
    getAll(p)
    runs <<- runs + 1
    y <- OBS(y)
    u[1] %~% dnorm(0, 1)
    for (i in 2:30) u[i] %~% dnorm(0.9 * u[i - 1], exp(s))
    for (i in 1:30) y[i] %~% dnorm(u[i], 1e-3)
    last <- u[30]
    REPORT(last)
  }
  obj <- MakeADFun(f, list(s = -9, u = numeric(30)), random = "u", silent = TRUE)
  obj$fn(obj$par)
  runs <- 0
  drawn <- withr::with_seed(2, obj$simulate())
  expect_lte(runs, 3)
  expect_named(drawn, c("u", "y", "last"), ignore.order = TRUE)
  expect_equal(drawn$u, drawn$u[1] * 0.9^(0:29), tolerance = 0.01)
  expect_gt(max(abs(drawn$u)), 0.1)
  expect_equal(drawn$y, drawn$u, tolerance = 0.02)
  expect_identical(drawn$last, drawn$u[30])
})

test_each("elements of normal vectors have separate one-step-ahead residuals", {
  local_rtmb()
  set.seed(2)
  y <- matrix(rnorm(6), 3)
  cov <- matrix(c(1, 0.6, 0.6, 2), 2)
  by_row <- function(p) {
    -sum(dnorm(p$u, 0, 1.5, log = TRUE)) - sum(dmvnorm(OBS(y), p$m + cbind(p$u, p$u), cov, TRUE, 1.3))
  }
  loop <- function(p) {
    y <- OBS(y)
    found <- -sum(dnorm(p$u, 0, 1.5, log = TRUE))
    for (i in 1:3) found <- found - dgmrf(y[i, ], p$m + p$u[i], solve(cov * 1.3^2), log = TRUE)
    found
  }
  of_all <- kronecker(cov * 1.3^2 + 1.5^2, diag(3)) # by columns
  want <- as.vector(solve(t(chol(of_all)), as.vector(y) - 0.3))
  for (f in list(by_row, loop)) {
    obj <- MakeADFun(f, list(m = 0.3, u = numeric(3)), random = "u", silent = TRUE)
    obj$fn(obj$par)
    for (method in c("oneStepGeneric", "oneStepGaussianOffMode", "oneStepGaussian", "fullGaussian")) {
      expect_equal(oneStepPredict(obj, method = method)$residual, want, tolerance = 1e-5, info = method)
    }
  }
})

test_each("cells of multinomial counts have residuals given the cells before them", {
  local_rtmb()
  x <- c(4, 1, 7, 3)
  prob <- c(0.3, 0.1, 0.4, 0.2)
  obj <- MakeADFun(function(p) -dmultinom(OBS(x), prob = prob * exp(p$a), log = TRUE), list(a = 0.2), silent = TRUE)
  obj$fn(obj$par)
  for (subset in list(1:4, c(3, 1, 2))) {
    size <- sum(x) - c(0, cumsum(x[subset])[-length(subset)])
    left <- 1 - c(0, cumsum(prob[subset])[-length(subset)])
    bound <- function(x) qnorm(pbinom(x, size, pmin(prob[subset] / left, 1)))
    found <- lapply(c("cdf", "oneStepGeneric"), function(method) {
      oneStepPredict(obj, method = method, discrete = TRUE, subset = subset)$residual
    })
    expect_equal(found[[1]], found[[2]], tolerance = 1e-6)
    expect_true(all(found[[1]] > bound(x[subset] - 1) & found[[1]] < bound(x[subset])))
  }
  expect_error(oneStepPredict(obj), "are counts", class = "gradops_error_argument")
})

test_each("names that RTMB's tests use", {
  local_rtmb()
  seen <- NULL
  f <- function(p) {
    seen <<- c(is(p$a, "advector"), is(1, "advector"), is(1, "numeric"))
    sum(Term(p$a^2)) * getValues(p$a) + 0 * length(is(1))
  }
  obj <- MakeADFun(f, list(a = 3), silent = TRUE)
  expect_equal(as.vector(obj$gr(2)), 8)
  expect_identical(seen, c(TRUE, FALSE, TRUE))
  expect_error(MakeADFun(f, list(a = 3), ridge.correct = TRUE), "experiment of RTMB", class = "gradops_error_argument")
  y <- c(1.5, 2, 3)
  g <- function(p) {
    ADREPORT(exp(p$s))
    -sum(dnorm(y, p$m, exp(p$s), log = TRUE))
  }
  obj <- MakeADFun(g, list(m = 2, s = 0), silent = TRUE)
  obj$fn(obj$par)
  all <- summary(sdreport(obj))
  expect_identical(summary(sdreport(obj), c("fixed", "report")), all)
  expect_identical(summary(sdreport(obj), "report"), all[3, , drop = FALSE])
  expect_identical(rownames(summary(sdreport(obj), c("report", "fixed"))), rownames(all)[c(3, 1, 2)])
})
