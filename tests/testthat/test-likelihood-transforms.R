# Transforms of parameters: estimates and standard errors in closed form.

set.seed(3)
y <- rnorm(30, 2, 1.5)
normal <- function(p, y) -sum(dnorm(y, p$mean, p$sd, log = TRUE))

test_each("a positive parameter has its own standard error", {
  start <- list(mean = 1, sd = 1)
  fit <- maximize_likelihood(normal, start, y, transforms = list(sd = transform_positive()))
  sd <- sqrt(mean((y - mean(y))^2))
  expect_equal(coef(fit), c(mean = mean(y), `sd (free)` = log(sd)), tolerance = 1e-7)
  expect_equal(fit$parameters, list(mean = mean(y), sd = sd), tolerance = 1e-7)
  expect_equal(fit$errors, list(mean = sd / sqrt(30), sd = sd / sqrt(60)), tolerance = 1e-7)
  expect_equal(predict(fit, function(p) p$sd^2, se.fit = TRUE)$se.fit, 2 * sd * sd / sqrt(60), tolerance = 1e-7)
  expect_equal(summary(fit)$coefficients[2, 2], 1 / sqrt(60), tolerance = 1e-7)
  fixed <- update(fit, map = list(sd = NA))
  expect_equal(fixed$parameters$sd, 1)
  expect_identical(fixed$errors$sd, NA_real_)
  o <- objective(function(p) normal(p, y), start = start, transforms = list(sd = transform_positive()))
  expect_equal(o$par, c(mean = 1, `sd (free)` = 0))
  expect_equal(o$gr(c(1, 0.3)), setNames(
    numeric_gradient(function(x) -sum(dnorm(y, x[1], exp(x[2]), log = TRUE)), c(1, 0.3)), names(o$par)
  ), tolerance = 1e-6)
  expect_equal(o$parameters(c(1, 0.3)), list(mean = 1, sd = exp(0.3)))
})

counts <- c(a = 12, b = 30, c = 18)

test_each("simplex, interval, ordered and Cholesky parameters", {
  shares <- maximize_likelihood(
    function(p) -sum(counts * log(p$w)), list(w = c(a = 0.3, b = 0.3, c = 0.4)),
    transforms = list(w = transform_simplex())
  )
  w <- counts / 60
  expect_named(coef(shares), c("w1 (free)", "w2 (free)"))
  expect_equal(shares$parameters$w, w, tolerance = 1e-7)
  expect_equal(shares$errors$w, sqrt(w * (1 - w) / 60), tolerance = 1e-6)

  chances <- maximize_likelihood(
    function(p) -sum(dbinom(counts, 40, p$p, log = TRUE)), list(p = c(a = 0.5, b = 0.5, c = 0.5)),
    transforms = list(p = transform_interval(0, c(1, 1, 2)))
  )
  expect_equal(chances$parameters$p, counts / 40, tolerance = 1e-7)
  expect_equal(chances$errors$p, sqrt(counts / 40 * (1 - counts / 40) / 40), tolerance = 1e-6)

  cuts <- maximize_likelihood(
    function(p) -sum(counts * log(c(pnorm(p$k[1]), pnorm(p$k[2]) - pnorm(p$k[1]), 1 - pnorm(p$k[2])))),
    list(k = c(-1, 1)), transforms = list(k = transform_ordered())
  )
  k <- qnorm(c(12, 42) / 60)
  expect_equal(cuts$parameters$k, k, tolerance = 1e-7)
  expect_equal(cuts$errors$k, sqrt(c(0.2 * 0.8, 0.7 * 0.3) / 60) / dnorm(k), tolerance = 1e-6)

  x <- cbind(rnorm(50), rnorm(50))
  x[, 2] <- x[, 2] * 2 + 0.8 * x[, 1]
  of_factor <- function(p) {
    z <- solve(p$L, t(x))
    sum(z^2) / 2 + 50 * sum(log(diag(p$L)))
  }
  factor <- list(L = transform_covariance_cholesky())
  covariance <- maximize_likelihood(of_factor, list(L = diag(2)), transforms = factor)
  expect_equal(covariance$parameters$L, t(chol(crossprod(x) / 50)), tolerance = 1e-6)
  variance <- predict(covariance, function(p) (p$L %*% t(p$L))[2, 2], se.fit = TRUE)
  expect_equal(variance$se.fit, mean(x[, 2]^2) * sqrt(2 / 50), tolerance = 1e-6)

  scaled <- t(x) / sqrt(colMeans(x^2))
  of_correlation <- function(p) {
    z <- solve(p$L, scaled)
    sum(z^2) / 2 + 50 * sum(log(diag(p$L)))
  }
  factor <- list(L = transform_correlation_cholesky())
  found <- maximize_likelihood(of_correlation, list(L = diag(2)), transforms = factor)
  r <- sum(scaled[1, ] * scaled[2, ]) / 50
  expect_equal(found$parameters$L[2, ], c(r, sqrt(1 - r^2)), tolerance = 1e-6)
  expect_equal(found$errors$L[2, 1], (1 - r^2) / sqrt(1 + r^2) / sqrt(50), tolerance = 1e-6)
}, c("numpy", "torch"))

test_each("transforms with random effects, reports and residuals", {
  herds <- data.frame(id = rep(1:4, each = 3), y = c(5, 6, 5.5, 8, 8.2, 7.7, 4, 4.1, 3.6, 6, 6.6, 6.2))
  joint <- function(p, d) {
    report(share = p$tau^2 / (p$tau^2 + p$sd^2))
    seen <- sum(dnorm(observed(d$y), p$mean + p$u[d$id], p$sd, log = TRUE))
    -seen - sum(dnorm(p$u, 0, p$tau, log = TRUE))
  }
  logs <- function(p, d) joint(list(mean = p$mean, sd = exp(p$sd), tau = exp(p$tau), u = p$u), d)
  both <- list(sd = transform_positive(), tau = transform_positive())
  start <- list(u = numeric(4), sd = 1, mean = 5, tau = 1)
  fit <- maximize_likelihood(joint, start, herds, random = "u", transforms = both)
  other <- maximize_likelihood(logs, replace(start, c("sd", "tau"), 0), herds, random = "u")
  expect_equal(unname(coef(fit)), unname(coef(other)), tolerance = 1e-6)
  expect_equal(fit$parameters$u, other$parameters$u, tolerance = 1e-6)
  expect_equal(fit$errors$u, other$errors$u, tolerance = 1e-5)
  expect_equal(fit$errors$tau, other$errors$tau * exp(other$parameters$tau), tolerance = 1e-5)
  expect_equal(predict(fit, se.fit = TRUE), predict(other, se.fit = TRUE), tolerance = 1e-5)
  expect_equal(residuals(fit, "gaussian"), residuals(other, "gaussian"), tolerance = 1e-5)
  expect_equal(residuals(fit), residuals(other), tolerance = 1e-4)
  expect_length(simulate(fit, 1, seed = 1)[[1]], 12)
}, "numpy")

test_once("a sampler's density includes the Jacobian", {
  skip_if_not_installed("posterior")
  density <- function(p) -sum(dgamma(p$rate, 3, 2, log = TRUE))
  fit <- maximize_likelihood(density, list(rate = 1), transforms = list(rate = transform_positive()))
  set.seed(1)
  draws <- posterior::as_draws(fit, 1000, method = "nuts", tune = 200)
  expect_equal(mean(draws), 1.5, tolerance = 0.1) # without it 1
})

test_each("a transform is a function with its inverse and Jacobian", {
  x <- c(0.3, -1)
  for (transform in list(transform_positive(), transform_interval(-1, 3), transform_simplex(), transform_ordered())) {
    y <- as.array(transform$forward(x))
    expect_equal(as.vector(transform$inverse(y)), x, tolerance = 1e-9)
    slopes <- jacobian(function(x) transform$forward(x)[1:2], x)
    expect_equal(as.vector(transform$log_jacobian(x)), log(abs(det(slopes))), tolerance = 1e-9)
  }
  L <- as.array(transform_correlation_cholesky()$forward(c(0.3, -1, 0.2)))
  expect_equal(diag(L %*% t(L)), c(1, 1, 1), tolerance = 1e-12)
  expect_output(print(transform_interval(0, 10)), "<transform interval(0, 10)>", fixed = TRUE)
})

test_each("errors name wrong transforms", {
  fit <- function(transforms, start = list(mean = 1, sd = 1), ...) {
    maximize_likelihood(normal, start, y, transforms = transforms, ...)
  }
  expect_error(fit(list(s = transform_positive())), "no parameter `s`", class = "gradops_error_argument")
  expect_error(fit(list(sd = exp)), "`sd` must be a transform", class = "gradops_error_type")
  expect_error(fit(transform_positive), "must be a list of transforms", class = "gradops_error_type")
  expect_error(fit(list(sd = transform_positive()), list(mean = 1, sd = -1)), "is not within positive",
    class = "gradops_error_argument"
  )
  positive <- list(sd = transform_positive())
  expect_error(fit(positive, lower = list(sd = 0)), "its own bounds", class = "gradops_error_argument")
  expect_error(fit(positive, lower = 0), "its own bounds", class = "gradops_error_argument")
  expect_error(transform_interval(1, 1), "less than `upper`", class = "gradops_error_argument")
  expect_error(transform_interval("a", 1), "must be numbers", class = "gradops_error_type")
  expect_error(
    objective(
      \(p) p$u^2 + p$a^2, start = list(a = 1, u = 1), random = "u", transforms = list(u = transform_positive())
    ),
    "`u` is random", class = "gradops_error_argument"
  )
})
