# Common models against R's own fitters, or against closed-form likelihoods with numerical Hessians.

set.seed(7)
n <- 60
d <- data.frame(x = rnorm(n), g = rep(1:10, 6), h = rep(1:6, each = 10))
d$normal <- 1 + 0.5 * d$x + rnorm(10)[d$g] + 0.7 * rnorm(6)[d$h] + 0.6 * rnorm(n)
d$binary <- rbinom(n, 1, plogis(0.3 + d$x + 0.8 * rnorm(10)[d$g]))
d$count <- rnbinom(n, mu = exp(1 + 0.4 * d$x), size = 2)
d$positive <- rgamma(n, 3, rate = 3 / exp(0.5 + 0.3 * d$x))
d$time <- pmin(rweibull(n, 1.5, exp(1 + 0.5 * d$x)), 4)
d$dead <- d$time < 4
d$mixed <- ifelse(runif(n) < 0.4, rnorm(n, -2, 0.5), rnorm(n, 1.5))
line <- function(p, d) p$a + p$b * d$x

expect_fit <- function(fit, estimates, errors = NULL, tolerance = 1e-5) {
  expect_equal(unname(coef(fit))[seq_along(estimates)], unname(estimates), tolerance = tolerance)
  if (!is.null(errors)) {
    expect_equal(unname(sqrt(diag(vcov(fit)))[seq_along(errors)]), unname(errors), tolerance = tolerance)
  }
}

expect_glm <- function(nll, start, ...) {
  glm <- glm(..., data = d, control = list(epsilon = 1e-14))
  expect_fit(maximize_likelihood(nll, start, d), coef(glm), coef(summary(glm))[, 2])
}

# Checks that the fit minimises `nll`, a function of an R vector.
expect_minimum <- function(fit, nll) {
  scaled <- function(z) nll(coef(fit) + z * sqrt(diag(vcov(fit))))
  best <- nlminb(
    rep(0.1, length(coef(fit))), scaled, lower = -0.5, upper = 0.5, control = list(rel.tol = 1e-15, x.tol = 1e-12)
  )
  expect_lt(max(abs(best$par)), 1e-5)
  expect_equal(fit$value, unname(nll(coef(fit))), tolerance = 1e-9)
  hessian <- numDeriv::hessian(scaled, numeric(length(coef(fit))), method.args = list(eps = 0.02))
  expect_equal(hessian, unname(solve(cov2cor(vcov(fit)))), tolerance = 1e-5)
}

start <- list(a = 0.1, b = 0.1)

test_each("generalised linear models", {
  expect_glm(\(p, d) -sum(dbinom(d$binary, 1, plogis(line(p, d)), log = TRUE)), start, binary ~ x, binomial)
  expect_glm(\(p, d) -sum(dpois(d$count, exp(line(p, d)), log = TRUE)), start, count ~ x, poisson)
  gamma <- \(p, d) -sum(dgamma(d$positive, 2, rate = 2 / exp(line(p, d)), log = TRUE))
  fit <- maximize_likelihood(gamma, start, d)
  glm <- glm(positive ~ x, Gamma("log"), d, control = list(epsilon = 1e-14))
  expect_fit(fit, coef(glm)) # its standard errors use the expected information
  expect_minimum(fit, function(p) -sum(dgamma(d$positive, 2, rate = 2 / exp(p[1] + p[2] * d$x), log = TRUE)))
  linear <- maximize_likelihood(
    \(p, d) -sum(dnorm(d$normal, line(p, d), exp(p$s), log = TRUE)), c(start, s = 0), d
  )
  lm <- lm(normal ~ x, d)
  expect_fit(linear, c(coef(lm), log(sigma(lm) * sqrt(58 / 60))), c(coef(summary(lm))[, 2] * sqrt(58 / 60)))
})

test_each("a negative binomial model matches MASS", {
  nll <- \(p, d) -sum(dnbinom(d$count, mu = exp(line(p, d)), size = exp(p$k), log = TRUE))
  fit <- maximize_likelihood(nll, c(start, k = 0), d)
  mass <- MASS::glm.nb(count ~ x, d, control = glm.control(1e-14, 100))
  expect_fit(fit, c(coef(mass), log(mass$theta)))
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(mass)), tolerance = 1e-9)
  # MASS' standard errors use the expected information, with the size treated as known
  expect_minimum(fit, function(p) {
    -sum(dnbinom(d$count, mu = exp(p[1] + p[2] * d$x), size = exp(p[3]), log = TRUE))
  })
})

test_each("censored survival times match survival", {
  nll <- function(p, d) {
    shape <- exp(-p$s)
    scale <- exp(line(p, d))
    ended <- dweibull(d$time[d$dead], shape, scale[d$dead], log = TRUE)
    -sum(ended) - sum(pweibull(d$time[!d$dead], shape, scale[!d$dead], lower.tail = FALSE, log.p = TRUE))
  }
  fit <- maximize_likelihood(nll, c(start, s = 0), d)
  of_r <- survival::survreg(survival::Surv(time, dead) ~ x, d, control = list(rel.tolerance = 1e-13))
  expect_fit(fit, c(coef(of_r), log(of_r$scale)), sqrt(diag(vcov(of_r))))
})

test_each("a mixture of normal distributions", {
  mixture <- function(p) {
    w <- plogis(p[1])
    -sum(log(w * dnorm(d$mixed, p[2], exp(p[4])) + (1 - w) * dnorm(d$mixed, p[3], exp(p[5]))))
  }
  fit <- maximize_likelihood(mixture, c(w = 0, m1 = -1, m2 = 1, s1 = 0, s2 = 0))
  expect_minimum(fit, mixture)
})

test_each("GARCH(1, 1) and a hidden Markov model", {
  set.seed(52)
  n <- 16
  e <- z <- rnorm(n)
  v <- 1
  for (i in 2:n) {
    v <- 0.2 + 0.25 * e[i - 1]^2 + 0.6 * v
    e[i] <- sqrt(v) * z[i]
  }
  garch <- function(p) {
    v <- 1
    total <- 0
    for (i in 2:n) {
      v <- exp(p[1]) + plogis(p[2]) * e[i - 1]^2 + plogis(p[3]) * v
      total <- total + log(v) / 2 + e[i]^2 / (2 * v)
    }
    total
  }
  # on PyTorch, where each step is a call, start near the minimum
  from <- function(start, nll) if (config_backend() == "numpy") start else nlminb(start, nll)$par + 0.01
  fit <- maximize_likelihood(garch, from(c(omega = -1, alpha = -1, beta = 0), garch))
  expect_minimum(fit, garch)

  state <- cumsum(runif(n) < 0.15) %% 2
  y <- rpois(n, ifelse(state == 1, 7, 2))
  forward <- function(p) {
    stay <- plogis(p[1:2])
    alpha <- c(0.5, 0.5)
    total <- 0
    for (t in seq_along(y)) {
      alpha <- c(alpha[1] * stay[1] + alpha[2] * (1 - stay[2]), alpha[1] * (1 - stay[1]) + alpha[2] * stay[2])
      alpha <- alpha * dpois(y[t], exp(p[3:4]))
      total <- total + log(sum(alpha))
      alpha <- alpha / sum(alpha)
    }
    -total
  }
  fit <- maximize_likelihood(forward, from(c(s1 = 1, s2 = 1, l1 = 0.5, l2 = 2), forward))
  expect_minimum(fit, forward)
}, c("numpy", "torch"))

intercepts <- function(p, d) {
  -sum(dnorm(d$normal, line(p, d) + p$u[d$g], exp(p$s), log = TRUE)) - sum(dnorm(p$u, 0, exp(p$t), log = TRUE))
}
effects <- c(start, list(s = 0, t = 0, u = numeric(10)))

test_each("random intercepts match nlme and the closed form", {
  fit <- maximize_likelihood(intercepts, effects, d, random = "u")
  closed <- function(p) {
    v <- exp(2 * p[3]) * diag(nrow(d)) + exp(2 * p[4]) * outer(d$g, d$g, "==")
    r <- d$normal - p[1] - p[2] * d$x
    sum(r * solve(v, r)) / 2 + determinant(v)$modulus[[1]] / 2 + nrow(d) * log(2 * pi) / 2
  }
  expect_minimum(fit, closed)
  lme <- nlme::lme(normal ~ x, d, ~ 1 | g, method = "ML", control = list(tolerance = 1e-12, msTol = 1e-14))
  expect_fit(fit, nlme::fixef(lme), tolerance = 1e-5)
  # nlme's standard errors treat the variances as known: use that block of the Hessian
  expect_equal(unname(solve(fit$hessian[1:2, 1:2])), unname(lme$varFix), tolerance = 1e-5)
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(lme)), tolerance = 1e-8)
  expect_equal(fit$parameters$u, nlme::ranef(lme)[[1]], tolerance = 1e-4)
}, c("numpy", "torch"))

test_each("crossed effects and a logistic model with intercepts match lme4", {
  skip_if_not_installed("lme4")
  nll <- function(p, d) {
    mean <- line(p, d) + p$u[d$g] + p$v[d$h]
    -sum(dnorm(d$normal, mean, exp(p$s), log = TRUE)) - sum(dnorm(p$u, 0, exp(p$t), log = TRUE)) -
      sum(dnorm(p$v, 0, exp(p$r), log = TRUE))
  }
  fit <- maximize_likelihood(nll, c(effects, list(r = 0, v = numeric(6))), d, random = c("u", "v"))
  lmer <- lme4::lmer(normal ~ x + (1 | g) + (1 | h), d, REML = FALSE, control = lme4::lmerControl(
    optCtrl = list(xtol_abs = 1e-10, ftol_abs = 1e-12)
  ))
  expect_fit(fit, lme4::fixef(lmer), tolerance = 1e-5)
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(lmer)), tolerance = 1e-8)
  expect_equal(exp(coef(fit)[["s"]]), sigma(lmer), tolerance = 1e-4)
  expect_equal(unname(solve(fit$hessian[1:2, 1:2])), unname(as.matrix(vcov(lmer))), tolerance = 1e-4)
  expect_minimum(fit, function(p) {
    v <- exp(2 * p[3]) * diag(60) + exp(2 * p[4]) * outer(d$g, d$g, "==") + exp(2 * p[5]) * outer(d$h, d$h, "==")
    r <- d$normal - p[1] - p[2] * d$x
    sum(r * solve(v, r)) / 2 + determinant(v)$modulus[[1]] / 2 + 30 * log(2 * pi)
  })

  logistic <- function(p, d) {
    -sum(dbinom(d$binary, 1, plogis(line(p, d) + p$u[d$g]), log = TRUE)) - sum(dnorm(p$u, 0, exp(p$t), log = TRUE))
  }
  fit <- maximize_likelihood(logistic, effects[c("a", "b", "t", "u")], d, random = "u")
  glmer <- lme4::glmer(binary ~ x + (1 | g), d, binomial, control = lme4::glmerControl(tolPwrss = 1e-12))
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(glmer)), tolerance = 1e-6)
  expect_fit(fit, lme4::fixef(glmer), tolerance = 1e-3) # as far as its search converges
  expect_minimum(fit, function(p) { # the Laplace approximation, computed in R
    u <- numeric(10)
    sums <- function(x) as.vector(rowsum(x, d$g))
    for (step in 1:30) {
      q <- plogis(p[1] + p[2] * d$x + u[d$g])
      curvature <- sums(q * (1 - q)) + exp(-2 * p[3])
      u <- u + (sums(d$binary - q) - u * exp(-2 * p[3])) / curvature
    }
    -sum(dbinom(d$binary, 1, plogis(p[1] + p[2] * d$x + u[d$g]), log = TRUE)) - sum(dnorm(u, 0, exp(p[3]), log = TRUE)) +
      sum(log(curvature)) / 2 - 5 * log(2 * pi)
  })
}, c("numpy", "torch"))

test_each("an AR(1) state space model matches the Kalman filter", {
  set.seed(52)
  y <- as.vector(arima.sim(list(ar = 0.8), 100, sd = 0.5)) + 0.3 * rnorm(100)
  joint <- function(p) {
    phi <- tanh(p$phi)
    sd <- exp(p$q)
    -dnorm(p$h[1], 0, sd / sqrt(1 - phi^2), log = TRUE) - sum(dnorm(p$h[-1], phi * p$h[-100], sd, log = TRUE)) -
      sum(dnorm(y, p$h, exp(p$r), log = TRUE))
  }
  fit <- maximize_likelihood(joint, list(phi = 1, q = -0.5, r = -1, h = numeric(100)), random = "h")
  kalman <- function(p) {
    phi <- tanh(p[[1]])
    mean <- total <- 0
    variance <- exp(2 * p[[2]]) / (1 - phi^2)
    for (seen in y) {
      total <- total - dnorm(seen, mean, sqrt(variance + exp(2 * p[[3]])), log = TRUE)
      gain <- variance / (variance + exp(2 * p[[3]]))
      mean <- phi * (mean + gain * (seen - mean))
      variance <- phi^2 * (1 - gain) * variance + exp(2 * p[[2]])
    }
    total
  }
  expect_minimum(fit, kalman)
}, c("numpy", "torch"))

test_each("a spatial field with a sparse precision; a P-spline, which matches mgcv", {
  grid <- expand.grid(1:6, 1:6)
  near <- as.matrix(dist(grid)) == 1
  laplacian <- diag(rowSums(near)) - near
  set.seed(5)
  y <- rpois(36, 3)
  z <- rnorm(36) + sin(grid[, 1])
  sparse <- Matrix::Matrix(laplacian, sparse = TRUE)
  field <- function(p) {
    q <- exp(p$a) * sparse + Matrix::Diagonal(36)
    prior <- 36 * log(2 * pi) / 2 - as.numeric(determinant(q)$modulus) / 2 + sum(p$u * (q %*% p$u)) / 2
    prior - sum(dnorm(z, p$m + p$u, exp(p$s), log = TRUE))
  }
  fit <- maximize_likelihood(field, list(m = 0, a = 0, s = 0, u = numeric(36)), random = "u")
  closed <- function(p) {
    v <- solve(exp(p[2]) * laplacian + diag(36)) + exp(2 * p[3]) * diag(36)
    sum((z - p[1]) * solve(v, z - p[1])) / 2 + determinant(v)$modulus[[1]] / 2 + 18 * log(2 * pi)
  }
  expect_minimum(fit, closed)

  skip_if_not_installed("mgcv")
  x <- grid[, 1] + grid[, 2] / 7
  z <- z + 3 * sin(2 * x)
  data <- data.frame(z = z, x = x)
  gam <- mgcv::gam(z ~ s(x, bs = "ps", k = 8), data = data, method = "ML")
  smooth <- mgcv::smoothCon(mgcv::s(x, bs = "ps", k = 8), data, absorb.cons = TRUE)[[1]]
  parts <- mgcv::smooth2random(smooth, "", type = 2)
  fixed <- cbind(1, parts$Xf)
  mean_of <- function(p) as.vector(fixed %*% p$b) + as.vector(parts$rand[[1]] %*% p$u)
  spline <- function(p) {
    -sum(dnorm(z, mean_of(p), exp(p$s), log = TRUE)) - sum(dnorm(p$u, 0, exp(p$t), log = TRUE))
  }
  start <- list(b = numeric(ncol(fixed)), s = 0, t = 0, u = numeric(ncol(parts$rand[[1]])))
  fit <- maximize_likelihood(spline, start, random = "u")
  found <- predict(fit, mean_of)
  expect_equal(found, as.vector(fitted(gam)), tolerance = 1e-5)
  expect_equal(fit$value, gam$gcv.ubre[[1]], tolerance = 1e-6)
  expect_minimum(fit, function(p) {
    b <- seq_len(ncol(fixed))
    v <- exp(2 * p[["s"]]) * diag(36) + exp(2 * p[["t"]]) * tcrossprod(parts$rand[[1]])
    r <- z - fixed %*% p[b]
    sum(r * solve(v, r)) / 2 + determinant(v)$modulus[[1]] / 2 + 18 * log(2 * pi)
  })
}, c("numpy", "torch"))
