# Times fits of forty models by maximum likelihood, written as R users write them, in gradops, RTMB and the usual tool.
#
#     OMP_NUM_THREADS=1 Rscript benchmarks/fits.R LIBRARY_OF_RTMB [only=REGEX] [cold]
#
# Times are processor time in milliseconds, the least of three: a whole warm fit with standard errors
# (`maximize_likelihood()`; `MakeADFun()`, `nlminb()` and `sdreport()`; the usual tool, such as `glm()`), the time
# from the function to its first value and gradient, and a later value with gradient (the mean of twenty). With `cold`
# each fit also runs in a fresh process, to measure its time (without loading the library) and its peak memory in MB.
# Estimates and standard errors of gradops and RTMB must agree. The last lines have the median and the worst ratio.

arguments <- commandArgs(TRUE)
library_of_rtmb <- arguments[1L]
only <- sub("^only=", "", grep("^only=", arguments, value = TRUE))
.libPaths(c(library_of_rtmb, .libPaths()))

# Data and likelihoods ----------------------------------------------------------------------------------------------------

set.seed(1)
n <- 500
d <- data.frame(
  x = rnorm(n), z = runif(n), g = factor(sample(letters[1:3], n, TRUE)), id = rep(1:50, each = 10)
)
X <- model.matrix(~ x + z + g, d)
eta <- drop(X %*% c(0.5, 0.4, -0.3, 0.2, -0.1))

models <- list()
add <- function(name, start, nll, tool = NULL, random = NULL) {
  models[[name]] <<- list(start = start, nll = nll, tool = tool, random = random)
}

add("linear", list(b = numeric(5), log_sd = 0), local({
  y <- eta + rnorm(n)
  function(p) -sum(dnorm(y, X %*% p$b, exp(p$log_sd), log = TRUE))
}), function(e) lm(e$y ~ x + z + g, d))

add("logistic", list(b = numeric(5)), local({
  y <- rbinom(n, 1, plogis(eta))
  function(p) -sum(dbinom(y, 1, plogis(X %*% p$b), log = TRUE))
}), function(e) glm(e$y ~ x + z + g, binomial, d))

add("probit", list(b = numeric(5)), local({
  y <- rbinom(n, 1, pnorm(eta))
  function(p) -sum(dbinom(y, 1, pnorm(X %*% p$b), log = TRUE))
}), function(e) glm(e$y ~ x + z + g, binomial("probit"), d))

add("Poisson", list(b = numeric(5)), local({
  y <- rpois(n, exp(eta))
  function(p) -sum(dpois(y, exp(X %*% p$b), log = TRUE))
}), function(e) glm(e$y ~ x + z + g, poisson, d))

add("negative binomial", list(b = numeric(5), log_size = 0), local({
  y <- rnbinom(n, size = 2, mu = exp(eta))
  function(p) {
    mu <- exp(X %*% p$b)
    size <- exp(p$log_size)
    -sum(dnbinom(y, size, size / (size + mu), log = TRUE))
  }
}), function(e) MASS::glm.nb(e$y ~ x + z + g, d))

add("gamma", list(b = numeric(5), log_shape = 0), local({
  y <- rgamma(n, 3, 3 / exp(eta))
  function(p) {
    shape <- exp(p$log_shape)
    -sum(dgamma(y, shape, scale = exp(X %*% p$b) / shape, log = TRUE))
  }
}), function(e) glm(e$y ~ x + z + g, Gamma("log"), d))

add("beta", list(b = numeric(5), log_phi = 1), local({
  y <- rbeta(n, 5 * plogis(eta), 5 * plogis(-eta))
  function(p) {
    mu <- plogis(X %*% p$b)
    phi <- exp(p$log_phi)
    -sum(dbeta(y, mu * phi, (1 - mu) * phi, log = TRUE))
  }
}))

add("ordered logit", list(b = c(0, 0), cut = c(-1, 0, 0)), local({
  y <- findInterval(d$x - d$z + rlogis(n), c(-1, 0, 1)) + 1
  function(p) {
    eta <- p$b[1] * d$x + p$b[2] * d$z
    cuts <- c(p$cut[1], p$cut[1] + exp(p$cut[2]), p$cut[1] + exp(p$cut[2]) + exp(p$cut[3]))
    ll <- 0
    for (i in 1:n) {
      above <- if (y[i] == 4) 1 else plogis(cuts[y[i]] - eta[i])
      below <- if (y[i] == 1) 0 else plogis(cuts[y[i] - 1] - eta[i])
      ll <- ll + log(above - below)
    }
    -ll
  }
}), function(e) MASS::polr(factor(e$y) ~ x + z, d, Hess = TRUE))

add("multinomial", list(b2 = c(0, 0), b3 = c(0, 0)), local({
  y <- max.col(cbind(0, 0.5 * d$x, -0.5 + 0.3 * d$x) - log(-log(matrix(runif(3 * n), n))))
  function(p) {
    u2 <- p$b2[1] + p$b2[2] * d$x
    u3 <- p$b3[1] + p$b3[2] * d$x
    -sum((y == 2) * u2 + (y == 3) * u3 - log(1 + exp(u2) + exp(u3)))
  }
}))

add("zero-inflated Poisson", list(b = numeric(5), logit_zero = 0), local({
  y <- rpois(n, exp(eta)) * rbinom(n, 1, 0.7)
  function(p) {
    zero <- plogis(p$logit_zero)
    lambda <- exp(X %*% p$b)
    -sum(log(ifelse(y == 0, zero, 0) + (1 - zero) * dpois(y, lambda)))
  }
}))

add("hurdle", list(b = numeric(5), a = numeric(5)), local({
  y <- ifelse(runif(n) < plogis(eta), 0, 1 + rpois(n, exp(eta)))
  function(p) {
    none <- plogis(X %*% p$a)
    lambda <- exp(X %*% p$b)
    ll <- 0
    for (i in 1:n) {
      ll <- ll + if (y[i] == 0) log(none[i]) else {
        log(1 - none[i]) + dpois(y[i], lambda[i], log = TRUE) - log(1 - exp(-lambda[i]))
      }
    }
    -ll
  }
}))

add("tobit", list(b = numeric(5), log_sd = 0), local({
  y <- pmax(0, eta + rnorm(n))
  function(p) {
    mu <- drop(X %*% p$b)
    sd <- exp(p$log_sd)
    at <- y > 0
    -sum(dnorm(y[at], mu[at], sd, log = TRUE)) - sum(log(pnorm(-mu[!at] / sd)))
  }
}), function(e) survival::survreg(survival::Surv(e$y, e$y > 0, type = "left") ~ x + z + g, d, dist = "gaussian"))

times <- rexp(n)
survivals <- local({
  event <- as.numeric(times < 1.5)
  list(time = pmin(times * exp(eta), 1.5 * exp(eta)), event = event)
})

add("Weibull survival", list(b = numeric(5), log_shape = 0), local({
  time <- survivals$time
  event <- survivals$event
  function(p) {
    shape <- exp(p$log_shape)
    scale <- exp(X %*% p$b)
    -sum(event * (log(shape) - shape * log(scale) + (shape - 1) * log(time)) - (time / scale)^shape)
  }
}), function(e) survival::survreg(survival::Surv(e$time, e$event) ~ x + z + g, d))

add("log-logistic survival", list(b = numeric(5), log_scale = 0), local({
  time <- survivals$time
  event <- survivals$event
  function(p) {
    u <- (log(time) - X %*% p$b) / exp(p$log_scale)
    -sum(event * (dlogis(u, log = TRUE) - p$log_scale - log(time)) + (1 - event) * log(1 - plogis(u)))
  }
}), function(e) survival::survreg(survival::Surv(e$time, e$event) ~ x + z + g, d, dist = "loglogistic"))

add("Cox", list(b = c(0, 0)), local({
  order <- order(survivals$time)
  event <- survivals$event[order]
  Z <- cbind(d$x, d$z)[order, ]
  time <- survivals$time
  status <- survivals$event
  function(p) {
    eta <- drop(Z %*% p$b)
    risk <- rev(cumsum(rev(exp(eta))))
    -sum(event * (eta - log(risk)))
  }
}), function(e) survival::coxph(survival::Surv(e$time, e$status) ~ x + z, d))

add("Student's t", list(b = numeric(5), log_scale = 0, log_df = 1), local({
  y <- eta + rt(n, 4) / 2
  function(p) -sum(dt((y - X %*% p$b) / exp(p$log_scale), exp(p$log_df), log = TRUE) - p$log_scale)
}))

add("mixture of two normals", list(logit_p = 0, mu = c(-1, 1), log_sd = c(0, 0)), local({
  y <- ifelse(runif(n) < 0.3, rnorm(n, -2, 0.7), rnorm(n, 1))
  function(p) {
    w <- plogis(p$logit_p)
    sd <- exp(p$log_sd)
    -sum(log(w * dnorm(y, p$mu[1], sd[1]) + (1 - w) * dnorm(y, p$mu[2], sd[2])))
  }
}))

add("variance by a covariate", list(b = numeric(5), a = c(0, 0)), local({
  y <- eta + rnorm(n) * exp(-0.5 + 0.3 * d$x)
  function(p) -sum(dnorm(y, X %*% p$b, exp(p$a[1] + p$a[2] * d$x), log = TRUE))
}), function(e) nlme::gls(y ~ x + z + g, cbind(d, y = e$y), weights = nlme::varExp(form = ~x), method = "ML"))

add("Michaelis-Menten", list(vm = 1, k = 1, log_sd = 0), local({
  dose <- rep(c(0.1, 0.5, 1, 2, 5), each = 20)
  y <- 2 * dose / (0.8 + dose) + rnorm(100) / 10
  function(p) -sum(dnorm(y, p$vm * dose / (p$k + dose), exp(p$log_sd), log = TRUE))
}), function(e) nls(y ~ vm * dose / (k + dose), list(y = e$y, dose = e$dose), list(vm = 1, k = 1)))

add("growth curve", list(log_max = 3, log_k = -1, t0 = 0, log_sd = 0), local({
  age <- sample(1:12, 200, TRUE)
  size <- 30 * (1 - exp(-0.3 * (age + 0.5))) + rnorm(200)
  function(p) {
    expected <- exp(p$log_max) * (1 - exp(-exp(p$log_k) * (age - p$t0)))
    -sum(dnorm(size, expected, exp(p$log_sd), log = TRUE))
  }
}), function(e) {
  nls(size ~ exp(m) * (1 - exp(-exp(k) * (age - t))), list(size = e$size, age = e$age), list(m = 3, k = -1, t = 0))
})

add("dose response", list(top = 1, log_ed = 0, slope = 1, log_sd = -1), local({
  dose <- rep(c(0.05, 0.1, 0.3, 1, 3, 10), each = 12)
  y <- 1.2 / (1 + exp(-1.5 * (log(dose) - log(0.8)))) + rnorm(72) / 15
  function(p) -sum(dnorm(y, p$top / (1 + exp(-p$slope * (log(dose) - p$log_ed))), exp(p$log_sd), log = TRUE))
}))

add("multivariate normal", list(mu = numeric(3), log_sd = numeric(3), l = numeric(3)), local({
  y <- matrix(rnorm(600), 200) %*% chol(matrix(c(1, 0.5, 0.2, 0.5, 1, 0.3, 0.2, 0.3, 1), 3))
  function(p) {
    L <- diag(exp(p$log_sd))
    L[2, 1] <- p$l[1]
    L[3, 1] <- p$l[2]
    L[3, 2] <- p$l[3]
    S <- L %*% t(L)
    r <- t(y) - p$mu
    200 / 2 * log(det(S)) + sum(r * solve(S, r)) / 2 + 300 * log(2 * pi)
  }
}))

add("factor analysis", list(load = rep(0.5, 5), log_sd = numeric(5)), local({
  f <- rnorm(300)
  y <- f %o% c(1, 0.8, 0.6, 0.5, -0.4) + matrix(rnorm(1500), 300)
  S <- cov(y) * 299 / 300
  function(p) {
    V <- p$load %*% t(p$load) + diag(exp(2 * p$log_sd))
    150 * (log(det(V)) + sum(solve(V) * S))
  }
}), function(e) factanal(e$y, 1))

add("ARMA", list(mu = 0, ar = 0.1, ma = 0.1, log_sd = 0), local({
  y <- as.vector(arima.sim(list(ar = 0.6, ma = 0.3), 300)) + 2
  function(p) {
    e <- 0
    ll <- 0
    for (t in 2:300) {
      e <- y[t] - p$mu - p$ar * (y[t - 1] - p$mu) - p$ma * e
      ll <- ll + dnorm(e, 0, exp(p$log_sd), log = TRUE)
    }
    -ll
  }
}), function(e) arima(e$y, c(1, 0, 1), method = "CSS"))

add("regression with AR(2) errors", list(b = c(0, 0), ar = c(0.1, 0), log_sd = 0), local({
  x <- rnorm(300)
  y <- 1 + x + as.vector(arima.sim(list(ar = c(0.5, 0.2)), 300))
  function(p) {
    r <- y - p$b[1] - p$b[2] * x
    e <- r[3:300] - p$ar[1] * r[2:299] - p$ar[2] * r[1:298]
    -sum(dnorm(e, 0, exp(p$log_sd), log = TRUE))
  }
}), function(e) arima(e$y, c(2, 0, 0), xreg = e$x))

add("GARCH", list(log_omega = -2, logit_a = -2, logit_b = 1), local({
  y <- numeric(500)
  h <- 1
  for (t in 1:500) {
    y[t] <- sqrt(h) * rnorm(1)
    h <- 0.1 + 0.1 * y[t]^2 + 0.8 * h
  }
  function(p) {
    omega <- exp(p$log_omega)
    a <- plogis(p$logit_a)
    b <- plogis(p$logit_b)
    h <- var(y)
    ll <- 0
    for (t in 2:500) {
      h <- omega + a * y[t - 1]^2 + b * h
      ll <- ll + dnorm(y[t], 0, sqrt(h), log = TRUE)
    }
    -ll
  }
}))

add("local level", list(log_q = -1, log_r = 0), local({
  y <- cumsum(rnorm(200, sd = 0.5)) + rnorm(200)
  function(p) {
    a <- y[1]
    P <- 10
    ll <- 0
    for (t in 2:200) {
      P <- P + exp(p$log_q)
      S <- P + exp(p$log_r)
      ll <- ll + dnorm(y[t], a, sqrt(S), log = TRUE)
      a <- a + P / S * (y[t] - a)
      P <- P * (1 - P / S)
    }
    -ll
  }
}), function(e) StructTS(e$y, "level"))

add("hidden Markov model", list(log_rate = c(0, 1.5), logit_stay = c(1, 1)), local({
  state <- 1 + (cumsum(rbinom(200, 1, 0.1)) %% 2)
  y <- rpois(200, c(1, 5)[state])
  function(p) {
    stay <- plogis(p$logit_stay)
    rate <- exp(p$log_rate)
    G <- rbind(c(stay[1], 1 - stay[1]), c(1 - stay[2], stay[2]))
    alpha <- c(0.5, 0.5) * dpois(y[1], rate)
    ll <- log(sum(alpha))
    alpha <- alpha / sum(alpha)
    for (t in 2:200) {
      alpha <- c(alpha %*% G) * dpois(y[t], rate)
      ll <- ll + log(sum(alpha))
      alpha <- alpha / sum(alpha)
    }
    -ll
  }
}))

add("capture-recapture", list(phi = 1, p = 0), local({
  alive <- matrix(1, 60, 7)
  for (t in 2:7) alive[, t] <- alive[, t - 1] * rbinom(60, 1, 0.7)
  y <- alive * cbind(1, matrix(rbinom(360, 1, 0.5), 60))
  last <- apply(y, 1, function(row) max(which(row == 1)))
  function(p) {
    phi <- plogis(p$phi)
    seen <- plogis(p$p)
    chi <- numeric(7)
    chi[7] <- 1
    for (t in 6:1) chi[t] <- 1 - phi + phi * (1 - seen) * chi[t + 1]
    ll <- 0
    for (i in 1:60) {
      if (last[i] > 1) for (t in 2:last[i]) ll <- ll + log(phi) + if (y[i, t] == 1) log(seen) else log(1 - seen)
      ll <- ll + log(chi[last[i]])
    }
    -ll
  }
}))

add("occupancy", list(psi = 0, p = 0), local({
  y <- rbinom(100, 1, 0.6) * matrix(rbinom(500, 1, 0.4), 100)
  function(p) {
    psi <- plogis(p$psi)
    seen <- plogis(p$p)
    k <- rowSums(y)
    -sum(log(psi * seen^k * (1 - seen)^(5 - k) + (1 - psi) * (k == 0)))
  }
}))

add("N-mixture", list(log_lambda = 1, logit_p = 0), local({
  N <- rpois(40, 4)
  y <- matrix(rbinom(120, rep(N, 3), 0.5), 40)
  function(p) {
    lambda <- exp(p$log_lambda)
    seen <- plogis(p$logit_p)
    ll <- 0
    for (i in 1:40) {
      at <- max(y[i, ]):20
      each <- dpois(at, lambda)
      for (j in 1:3) each <- each * dbinom(y[i, j], at, seen)
      ll <- ll + log(sum(each))
    }
    -ll
  }
}))

add("production model", list(log_r = -1, log_k = 5.2, log_q = -3, log_sd = -1), local({
  caught <- c(rep(10, 15), rep(17, 10), rep(6, 15))
  B <- 140
  index <- numeric(40)
  for (t in 1:40) {
    index[t] <- 0.05 * B * exp(rnorm(1, 0, 0.1))
    B <- B + 0.4 * B * (1 - B / 150) - caught[t]
  }
  function(p) {
    r <- exp(p$log_r)
    K <- exp(p$log_k)
    B <- numeric(41)
    B[1] <- K
    for (t in 1:40) B[t + 1] <- B[t] + r * B[t] * (1 - B[t] / K) - caught[t]
    -sum(dnorm(log(index), p$log_q + log(B[1:40]), exp(p$log_sd), log = TRUE))
  }
}))

# with random effects

u50 <- rnorm(50)

add("random intercepts", list(b = numeric(5), log_sd = 0, log_tau = 0, u = numeric(50)), local({
  y <- eta + u50[d$id] + rnorm(n)
  function(p) {
    -sum(dnorm(p$u, 0, exp(p$log_tau), log = TRUE)) -
      sum(dnorm(y, X %*% p$b + p$u[d$id], exp(p$log_sd), log = TRUE))
  }
}), function(e) lme4::lmer(e$y ~ x + z + g + (1 | id), d, REML = FALSE), "u")

add("nested intercepts", list(mu = 0, log_sd = 0, log_t = c(0, 0), u = numeric(10), v = numeric(50)), local({
  top <- rep(1:10, each = 5)
  y <- 1 + rnorm(10)[top][d$id] + u50[d$id] + rnorm(n)
  function(p) {
    ll <- sum(dnorm(p$u, 0, exp(p$log_t[1]), log = TRUE)) + sum(dnorm(p$v, 0, exp(p$log_t[2]), log = TRUE))
    -ll - sum(dnorm(y, p$mu + p$u[top[d$id]] + p$v[d$id], exp(p$log_sd), log = TRUE))
  }
}), function(e) {
  lme4::lmer(y ~ (1 | top) + (1 | id), cbind(d, y = e$y, top = e$top[d$id]), REML = FALSE)
}, c("u", "v"))

add("crossed intercepts", list(mu = 0, log_sd = 0, log_t = c(0, 0), u = numeric(50), v = numeric(10)), local({
  item <- rep(1:10, 50)
  y <- 1 + u50[d$id] + rnorm(10)[item] + rnorm(n)
  function(p) {
    ll <- sum(dnorm(p$u, 0, exp(p$log_t[1]), log = TRUE)) + sum(dnorm(p$v, 0, exp(p$log_t[2]), log = TRUE))
    -ll - sum(dnorm(y, p$mu + p$u[d$id] + p$v[item], exp(p$log_sd), log = TRUE))
  }
}), function(e) {
  lme4::lmer(y ~ (1 | id) + (1 | item), cbind(d, y = e$y, item = e$item), REML = FALSE)
}, c("u", "v"))

add("random slopes", list(b = c(0, 0), log_sd = 0, log_t = c(0, 0), r = 0, u = matrix(0, 50, 2)), local({
  slopes <- cbind(u50, 0.5 * rnorm(50) + 0.3 * u50)
  y <- 1 + d$x + slopes[d$id, 1] + slopes[d$id, 2] * d$x + rnorm(n)
  function(p) {
    sd <- exp(p$log_t)
    rho <- tanh(p$r)
    ll <- sum(dnorm(p$u[, 1], 0, sd[1], log = TRUE))
    ll <- ll + sum(dnorm(p$u[, 2], rho * sd[2] / sd[1] * p$u[, 1], sd[2] * sqrt(1 - rho^2), log = TRUE))
    mu <- p$b[1] + p$u[d$id, 1] + (p$b[2] + p$u[d$id, 2]) * d$x
    -ll - sum(dnorm(y, mu, exp(p$log_sd), log = TRUE))
  }
}), function(e) lme4::lmer(e$y ~ x + (x | id), d, REML = FALSE), "u")

add("binomial mixed model", list(b = numeric(5), log_tau = 0, u = numeric(50)), local({
  y <- rbinom(n, 1, plogis(eta + u50[d$id]))
  function(p) {
    -sum(dnorm(p$u, 0, exp(p$log_tau), log = TRUE)) -
      sum(dbinom(y, 1, plogis(X %*% p$b + p$u[d$id]), log = TRUE))
  }
}), function(e) lme4::glmer(e$y ~ x + z + g + (1 | id), d, binomial), "u")

add("Poisson mixed model", list(b = numeric(5), log_tau = 0, u = numeric(50)), local({
  y <- rpois(n, exp(eta + u50[d$id] / 2))
  function(p) {
    -sum(dnorm(p$u, 0, exp(p$log_tau), log = TRUE)) - sum(dpois(y, exp(X %*% p$b + p$u[d$id]), log = TRUE))
  }
}), function(e) lme4::glmer(e$y ~ x + z + g + (1 | id), d, poisson), "u")

add("random walk", list(log_q = -1, log_r = 0, u = numeric(200)), local({
  y <- cumsum(rnorm(200, sd = 0.5)) + rnorm(200)
  function(p) {
    -sum(dnorm(diff(p$u), 0, exp(p$log_q), log = TRUE)) - sum(dnorm(y, p$u, exp(p$log_r), log = TRUE)) -
      dnorm(p$u[1], 0, 10, log = TRUE)
  }
}), random = "u")

add("counts with AR(1) effects", list(mu = 1, log_sd = -1, a = 0.5, u = numeric(150)), local({
  y <- rpois(150, exp(1 + as.vector(arima.sim(list(ar = 0.7), 150, sd = 0.4))))
  function(p) {
    phi <- tanh(p$a)
    sd <- exp(p$log_sd)
    ll <- dnorm(p$u[1], 0, sd / sqrt(1 - phi^2), log = TRUE)
    for (t in 2:150) ll <- ll + dnorm(p$u[t], phi * p$u[t - 1], sd, log = TRUE)
    -ll - sum(dpois(y, exp(p$mu + p$u), log = TRUE))
  }
}), random = "u")

add("P-spline", list(log_sd = 0, log_tau = 0, u = numeric(20)), local({
  at <- sort(runif(400))
  B <- matrix(splines::bs(at, df = 20, intercept = TRUE), 400)
  y <- sin(7 * at) + rnorm(400) / 3
  function(p) {
    -sum(dnorm(y, B %*% p$u, exp(p$log_sd), log = TRUE)) -
      sum(dnorm(diff(p$u, differences = 2), 0, exp(p$log_tau), log = TRUE)) - sum(dnorm(p$u[1:2], 0, 10, log = TRUE))
  }
}), function(e) {
  mgcv::gam(y ~ s(at, k = 20, bs = "ps"), data = data.frame(y = e$y, at = e$at), method = "ML")
}, "u")

add("Gaussian process", list(mu = 0, log_sd = 0, log_range = -1, log_noise = -1), local({
  at <- runif(60)
  D <- as.matrix(dist(at))
  y <- sin(6 * at) + rnorm(60) / 5
  function(p) {
    V <- exp(2 * p$log_sd) * exp(-D / exp(p$log_range)) + diag(60) * exp(2 * p$log_noise)
    r <- y - p$mu
    log(det(V)) / 2 + sum(r * solve(V, r)) / 2
  }
}))

# Fits --------------------------------------------------------------------------------------------------------------------

milliseconds <- function(code) {
  start <- proc.time()
  force(code)
  1e3 * sum((proc.time() - start)[1:2])
}

# RTMB is not attached, and neither is gradops. The likelihood finds RTMB's versions of R's functions in an environment
# instead. `ADoverload()` returns R's function outside of RTMB's calls.
for_rtmb <- function(nll) {
  exported <- intersect(getNamespaceExports("RTMB"), c(ls(baseenv()), getNamespaceExports("stats")))
  versions <- mget(exported, asNamespace("RTMB"))
  home <- environment(nll)
  function(p) {
    overloads <- sapply(c("[<-", "c", "diag<-"), RTMB::ADoverload)
    environment(nll) <- list2env(c(versions, overloads), parent = home)
    nll(p)
  }
}

makers <- list(
  gradops = function(m) gradops::objective(m$nll, start = m$start, random = m$random),
  RTMB = function(m) RTMB::MakeADFun(for_rtmb(m$nll), m$start, random = m$random, silent = TRUE)
)
fits <- list(
  gradops = function(m) {
    fit <- suppressWarnings(gradops::maximize_likelihood(m$nll, m$start, random = m$random))
    cbind(fit$coefficients, sqrt(diag(fit$vcov)))
  },
  RTMB = function(m) {
    o <- makers$RTMB(m)
    found <- nlminb(o$par, o$fn, o$gr)
    summary(RTMB::sdreport(o, found$par), "fixed")
  }
)
quietly <- function(code) suppressMessages(suppressWarnings(code))

if ("alone" %in% arguments) {
  who <- arguments[3L]
  loadNamespace(who)
  if (who == "gradops") invisible(gradops::op_exp(1))
  took <- milliseconds(quietly(fits[[who]](models[[arguments[4L]]])))
  peak <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
  cat(took, as.numeric(gsub("[^0-9]", "", peak)) / 1024)
  quit(save = "no")
}
alone <- function(who, name) {
  call <- c("benchmarks/fits.R", library_of_rtmb, "alone", who, shQuote(name))
  as.numeric(strsplit(system2("Rscript", call, stdout = TRUE, stderr = FALSE), " ")[[1L]])
}

if (length(only)) models <- models[grepl(only, names(models))]
quietly(for (who in names(fits)) fits[[who]](list(start = list(a = 1), nll = function(p) sum((p$a - 2)^2)))) # a warm-up
cold <- "cold" %in% arguments
cat(sprintf(
  "%-28s %s\n", "", paste("fit: gradops, RTMB (ratio), tool; first value; later value", if (cold) "; cold fit, MB")
))
ratios <- numeric()
for (name in names(models)) {
  m <- models[[name]]
  found <- list()
  fitted <- replicate(3, vapply(names(fits), function(who) {
    milliseconds(quietly(found[[who]] <<- fits[[who]](m)))
  }, 0))
  firsts <- replicate(3, vapply(names(makers), function(who) {
    milliseconds({
      o <- makers[[who]](m)
      o$fn(o$par)
      o$gr(o$par)
    })
  }, 0))
  later <- vapply(makers, function(make) {
    o <- make(m)
    batch <- function() milliseconds(for (i in 1:20) {
      x <- o$par + 1e-3 * (i %% 2)
      o$fn(x)
      o$gr(x)
    }) / 20
    batch()
    min(replicate(3, batch()))
  }, 0)
  scale <- pmax(found$RTMB[, 2], 1e-8)
  apart <- max(abs(found$gradops[, 1] - found$RTMB[, 1]) / scale, abs(found$gradops[, 2] / found$RTMB[, 2] - 1))
  tool <- if (is.null(m$tool)) NA else min(replicate(3, milliseconds(quietly(m$tool(environment(m$nll))))))
  rows <- rbind(apply(fitted, 1, min), apply(firsts, 1, min), later)
  ratios[name] <- rows[1, 1] / rows[1, 2]
  shown <- sprintf("%.4g %.4g (%.2f)", rows[, 1], rows[, 2], rows[, 1] / rows[, 2])
  if (!is.na(tool)) shown[1] <- sprintf("%s, %.3g", shown[1], tool)
  if (cold) {
    own <- vapply(names(fits), alone, c(0, 0), name = name)
    shown <- c(shown, sprintf("%.4g %.4g, %.0f %.0f MB", own[1, 1], own[1, 2], own[2, 1], own[2, 2]))
  }
  if (!isTRUE(apart < 1e-3)) shown <- c(shown, sprintf("ESTIMATES DIFFER by %.2g standard errors", apart))
  cat(sprintf("%-28s %s\n", name, paste(shown, collapse = "; ")))
}
cat(sprintf("\nfits over RTMB's: median %.2f, worst %.2f (%s)\n", median(ratios), max(ratios), names(which.max(ratios))))
