series <- function(n) {
  set.seed(4)
  as.numeric(arima.sim(list(ar = 0.7), n, sd = 0.5) + rnorm(n, 0, 0.4))
}
state_space <- function(p, y) {
  n <- length(y)
  y <- observed(y)
  phi <- tanh(p$a)
  report(sd = exp(p$log_q), phi, range(phi * p$h[1:2]))
  seen <- sum(dnorm(y, p$h, exp(p$log_r), log = TRUE)) # comes before the code it depends on
  -seen - dnorm(p$h[1], 0, exp(p$log_q) / sqrt(1 - phi^2), log = TRUE) -
    sum(dnorm(p$h[-1], phi * p$h[-n], exp(p$log_q), log = TRUE))
}
kalman <- function(y, phi, q, r) {
  mean <- 0
  variance <- q^2 / (1 - phi^2)
  z <- numeric()
  for (i in seq_along(y)) {
    s <- variance + r^2
    z[i] <- (y[i] - mean) / sqrt(s)
    mean <- phi * (mean + variance / s * (y[i] - mean))
    variance <- phi^2 * variance * r^2 / s + q^2
  }
  z
}

test_each("one-step-ahead residuals of a state space model match the Kalman filter", {
  n <- 10
  y <- series(n)
  start <- list(a = 0.9, log_q = -0.7, log_r = -0.9, h = numeric(n))
  fit <- maximize_likelihood(state_space, start, y, random = "h")
  p <- fit$parameters
  z <- kalman(y, tanh(p$a), exp(p$log_q), exp(p$log_r))
  expect_equal(residuals(fit, "gaussian"), z, tolerance = 1e-6)
  for (method in c("slope", "integral", "mode")) expect_equal(residuals(fit, method), z, tolerance = 1e-6)
  expect_equal(residuals(fit), z, tolerance = 0.01) # the Laplace approximation of a tail is not exact
  expect_equal(nlme::ranef(fit)$h, fit$parameters$h)

  # standard errors of reports by the delta method
  found <- predict(fit, se.fit = TRUE)
  expect_named(found$fit, c("sd", "phi", "range(phi * p$h[1:2])"))
  expect_equal(found$fit$phi, tanh(p$a))
  expect_equal(found$se.fit$sd, exp(p$log_q) * sqrt(vcov(fit)["log_q", "log_q"]), tolerance = 1e-6)
  expect_equal(predict(fit, "phi", TRUE)$se.fit$phi, sqrt(vcov(fit)["a", "a"]) * (1 - tanh(p$a)^2), tolerance = 1e-6)
  expect_equal(fit$objective$report(coef(fit)), predict(fit))
  expect_error(predict(fit, "phj"), "no parameter `phj`", class = "gradops_error_argument")
}, "numpy")

test_once("simulations draw dependent observations after the values they depend on", {
  n <- 200
  start <- list(a = atanh(0.8), log_q = 0, log_r = log(0.5), h = numeric(n))
  o <- objective(function(p) state_space(p, numeric(n)), start = start, random = "h")
  set.seed(1)
  drawn <- o$simulate(o$par)
  expect_setequal(names(drawn), c("h", "y"))
  expect_equal(sd(drawn$y - drawn$h), 0.5, tolerance = 0.15)
  expect_equal(cor(drawn$h[-1], drawn$h[-n]), 0.8, tolerance = 0.15)
  expect_equal(sd(drawn$h[-1] - 0.8 * drawn$h[-n]), 1, tolerance = 0.15)
  set.seed(1)
  expect_identical(o$simulate(o$par), drawn)
  expect_false(identical(o$simulate(o$par), drawn))
  fixed <- o$simulate(o$par, use.u = TRUE)
  expect_named(fixed, "y")
  expect_equal(sd(fixed$y), 0.5, tolerance = 0.15)
})

test_once("normal observations have residuals without a density function", {
  y <- c(1.2, 0.8, 3.1, 2.6)
  cov <- 0.81 + diag(c(1, 2, 1, 3))
  nll <- function(p) p$u^2 / 1.62 + sum((observed(y) - p$m - p$u)^2 / (2 * c(1, 2, 1, 3)))
  o <- objective(nll, start = list(m = 0.3, u = 0), random = "u")
  expect_equal(o$residuals(o$par, "gaussian"), as.vector(solve(t(chol(cov)), y - 0.3)), tolerance = 1e-7)
  expect_error(o$residuals(o$par), "first argument of no density", class = "gradops_error_argument")
})

counts <- data.frame(x = rep(0:9, 3), y = c(1, 1, 4, 2, 3, 5, 6, 4, 9, 11, 2, 3, 0, 2, 5, 4, 2, 6, 8, 7, NA, 1:9))
poisson_nll <- function(p, data) {
  keep <- !is.na(data$y)
  -sum(dpois(observed(data$y)[keep], exp(p$beta[1] + p$beta[2] * data$x[keep]), log = TRUE))
}

test_each("few random effects: residuals, reports, simulations", {
  data <- data.frame(id = c(1, 1, 2, 2), y = c(1.2, 0.8, 3.1, 2.6))
  nll <- function(p, data) {
    report(groups = p$mean + p$u)
    -sum(dnorm(p$u, 0, 0.9, log = TRUE)) - sum(dnorm(observed(data$y), p$mean + p$u[data$id], 0.5, log = TRUE))
  }
  fit <- maximize_likelihood(nll, list(mean = 1, u = c(0, 0)), data, random = "u")
  cov <- 0.25 * diag(4) + 0.81 * outer(data$id, data$id, "==")
  expect_equal(residuals(fit, "gaussian"), solve(t(chol(cov)), data$y - coef(fit)), tolerance = 1e-7)
  errors <- solve(rbind(c(4, 2, 2), c(2, 2, 0), c(2, 0, 2)) / 0.25 + diag(c(0, 1, 1)) / 0.81)
  mixed <- cbind(1, diag(2))
  want <- sqrt(diag(mixed %*% errors %*% t(mixed)))
  expect_equal(predict(fit, se.fit = TRUE)$se.fit$groups, want, tolerance = 1e-6)
  expect_equal(dim(simulate(fit, 2)), c(4L, 2L))
})

test_each("counts: quantile residuals, and simulations named as in R", {
  fit <- maximize_likelihood(poisson_nll, list(beta = c(0, 0)), counts)
  mean <- exp(coef(fit)[1] + coef(fit)[2] * counts$x)
  set.seed(3)
  found <- residuals(fit)
  set.seed(3)
  seen <- !is.na(counts$y)
  want <- qnorm(ppois(counts$y[seen], mean[seen]) - runif(29) * dpois(counts$y[seen], mean[seen]))
  expect_equal(found[seen], unname(want), tolerance = 1e-8)
  expect_true(is.na(found[21]))
  set.seed(3)
  expect_equal(residuals(fit, "integral"), found, tolerance = 1e-7)
  for (method in c("slope", "mode")) {
    expect_error(residuals(fit, method), "`y` are counts", class = "gradops_error_argument")
  }
  many <- simulate(fit, 400, seed = 5)
  expect_named(many[1:2], c("sim_1", "sim_2"))
  expect_identical(many[21, 5], NA_real_)
  expect_equal(rowMeans(many)[seen], unname(mean)[seen], tolerance = 0.1, ignore_attr = TRUE)
  expect_identical(simulate(fit, 2, seed = 5), many[1:2])
  again <- update(fit, data = transform(counts, y = many$sim_1))
  expect_lt(max(abs(coef(again) - coef(fit)) / sqrt(diag(vcov(fit)))), 4)
})

test_once("differences are drawn after the values they refer to", {
  draw <- function(nll) objective(nll, start = list(a = 1))$simulate()
  close <- function(x, mean) -sum(dnorm(x, mean, 1e-9, log = TRUE))
  y <- numeric(6)
  steps <- draw(function(p) {
    u <- observed(y)
    close(diff(u), 2) + close(u[1], 5 * p$a)
  })
  expect_equal(steps$y, seq(5, 15, 2), tolerance = 1e-6)
  of_second <- draw(function(p) {
    u <- observed(y)
    close(diff(u, differences = 2), 1) + close(u[1:2], c(0, p$a))
  })
  expect_equal(diff(of_second$y, differences = 2), rep(1, 4), tolerance = 1e-6)
  expect_equal(of_second$y[1:2], 0:1, tolerance = 1e-6)
  lagged <- draw(function(p) {
    u <- observed(y)
    close(u[1:2], c(0, p$a)) + close(diff(u, lag = 2), 1:4)
  })
  expect_equal(lagged$y, c(0, 1, 1, 3, 4, 7), tolerance = 1e-6)
  columns <- draw(function(p) {
    u <- observed(matrix(0, 3, 2), "m")
    close(diff(u), 1:2) + close(u[1, ], c(10, 20) * p$a)
  })
  expect_equal(columns$m, cbind(c(10, 11, 13), c(20, 21, 23)), tolerance = 1e-6)
  expect_error(draw(function(p) close(diff(diff(observed(y))), p$a)), "`differences`", class = "gradops_error_argument")
})

test_once("observations that cannot be simulated are named", {
  y <- c(1, 3, 2, 0)
  draw <- function(nll, start = list(a = 1)) objective(nll, start = start)$simulate()
  refused <- function(nll, message) expect_error(draw(nll), message, class = "gradops_error_argument")
  refused(function(p) -sum(dpois(observed(y), p$a)), "`y` needs `log = TRUE`")
  refused(function(p) -sum(dpois(observed(y) + 1, p$a, log = TRUE)), "`y` is the first argument of no density")
  twice <- function(p) {
    y <- observed(y)
    -sum(dpois(y, p$a, log = TRUE)) - sum(dpois(y[1], 1, log = TRUE))
  }
  refused(twice, "`y` is in two densities")
  refused(function(p) -sum(dnorm(observed(y), mean(observed(y)) + p$a, log = TRUE)), "values that are drawn given it")
  one <- function(i) -dpois(observed(y[i], "y"), 1, log = TRUE)
  refused(function(p) one(1) + one(2), "several sets")
  expect_error(residuals(maximize_likelihood(\(p) (p$a - 1)^2, list(a = 0))), "marks no observations")
  expect_identical(observed(y), y)
  expect_null(report(y))
  pairs <- draw(function(p) {
    x <- observed(matrix(1:6, 3), "pairs")
    -sum(dmultinom(x[, 1], prob = c(1, 1, p$a), log = TRUE)) - sum(dnorm(x[, 2, drop = FALSE], 100, 1e-9, log = TRUE))
  })$pairs
  expect_equal(pairs[, 2], rep(100, 3))
  expect_equal(c(dim(pairs), sum(pairs[, 1])), c(3, 2, 6))
})
