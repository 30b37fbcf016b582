# Models as in tutorials and supplements of papers, rewritten with other data.

y <- c(1.3, 0.2, 1.8, 2.5, 1.4, 3.1, 2.2, 3.6)
n <- length(y)
x <- seq(0, 1.4, by = 0.2)
count <- c(2, 0, 3, 4, 1, 6, 3, 7)
group <- c(1, 1, 2, 2, 3, 3, 1, 2)

at("linear regression", c(1, 1, -0.3), function(p) {
  mu <- p[1] + p[2] * x
  -sum(dnorm(y, mu, exp(p[3]), log = TRUE))
})
at("Poisson regression", c(0.1, 0.9), function(p) -sum(dpois(count, exp(p[1] + p[2] * x), log = TRUE)))
at("negative binomial", c(0.1, 0.9, 0.5), function(p) {
  mu <- exp(p[1] + p[2] * x)
  -sum(dnbinom(count, size = exp(p[3]), mu = mu, log = TRUE))
})
at("logistic regression by hand", c(0.1, 0.9), function(p) {
  z <- as.numeric(y > 2)
  eta <- p[1] + p[2] * x
  -sum(z * eta - log1p(exp(eta)))
})
at("zero-inflated Poisson", c(0.1, 0.9, -1), function(p) {
  lambda <- exp(p[1] + p[2] * x)
  zero <- plogis(p[3])
  ll <- numeric(n)
  for (i in 1:n) {
    ll[i] <- if (count[i] == 0) {
      log(zero + (1 - zero) * exp(-lambda[i]))
    } else {
      log(1 - zero) + dpois(count[i], lambda[i], log = TRUE)
    }
  }
  -sum(ll)
})
at("random intercepts, joint", c(1, 0.1, -0.2, 0.3, -0.5, 0.2), function(p) {
  mu <- p[1]
  u <- p[2:4]
  nll <- -sum(dnorm(u, 0, exp(p[5]), log = TRUE))
  for (i in 1:n) nll <- nll - dnorm(y[i], mu + u[group[i]], exp(p[6]), log = TRUE)
  nll
})
at("random walk, state space", c(1, 1.2, 1.5, 2, 1.9, 2.5, 2.6, 3, -1, -0.5), function(p) {
  u <- p[1:8]
  sdu <- exp(p[9])
  sdy <- exp(p[10])
  nll <- 0
  for (i in 2:n) nll <- nll - dnorm(u[i], u[i - 1], sdu, TRUE)
  for (i in 1:n) nll <- nll - dnorm(y[i], u[i], sdy, TRUE)
  nll
})
at("Kalman filter", c(-1, -0.5, 1), function(p) {
  q <- exp(2 * p[1])
  r <- exp(2 * p[2])
  m <- p[3]
  v <- 1
  ll <- numeric(n)
  for (t in 1:n) {
    v <- v + q
    f <- v + r
    e <- y[t] - m
    ll[t] <- -0.5 * (log(2 * pi * f) + e^2 / f)
    k <- v / f
    m <- m + k * e
    v <- v * (1 - k)
  }
  -sum(ll)
})
at("ARMA(1, 1) by conditional sum of squares", c(0.5, 0.3, 1.5), function(p) {
  z <- y - p[3]
  e <- rep(0, n)
  for (t in 2:n) e[t] <- z[t] - p[1] * z[t - 1] - p[2] * e[t - 1]
  sum(e[-1]^2)
})
at("GARCH(1, 1)", c(-1, -1, 0.5, 1.8), function(p) {
  omega <- exp(p[1])
  alpha <- plogis(p[2])
  beta <- plogis(p[3]) * (1 - alpha)
  r <- y - p[4]
  s2 <- rep(NA, n)
  s2[1] <- var(y)
  for (t in 2:n) s2[t] <- omega + alpha * r[t - 1]^2 + beta * s2[t - 1]
  0.5 * sum(log(s2) + r^2 / s2)
})
at("EWMA volatility", 0.9, function(lambda) {
  s <- numeric(n)
  s[1] <- 1
  for (t in 2:n) s[t] <- lambda * s[t - 1] + (1 - lambda) * y[t - 1]^2
  sum(log(s))
})
at("hidden Markov model, forward", c(1, 3, 0, 1, -1), function(p) {
  mu <- p[1:2]
  A <- matrix(0, 2, 2)
  A[1, 1] <- plogis(p[4])
  A[1, 2] <- 1 - A[1, 1]
  A[2, 1] <- plogis(p[5])
  A[2, 2] <- 1 - A[2, 1]
  a <- c(0.5, 0.5) * dnorm(y[1], mu, exp(p[3]))
  ll <- log(sum(a))
  a <- a / sum(a)
  for (t in 2:n) {
    a <- as.vector(a %*% A) * dnorm(y[t], mu, exp(p[3]))
    ll <- ll + log(sum(a))
    a <- a / sum(a)
  }
  -ll
})
at("mixture by EM's objective", c(0, 1, 3, -0.3), function(p) {
  w <- plogis(p[1])
  d <- matrix(NA, n, 2)
  d[, 1] <- w * dnorm(y, p[2], exp(p[4]))
  d[, 2] <- (1 - w) * dnorm(y, p[3], exp(p[4]))
  -sum(log(rowSums(d)))
})
at("von Bertalanffy growth", c(1.2, 0.5, -0.4), function(p) {
  fit <- exp(p[1]) * (1 - exp(-exp(p[2]) * (x + 0.5)))
  -sum(dnorm(y, fit, exp(p[3]), log = TRUE))
})
at("theta logistic population", c(0.1, 1.2, -0.2, -1), function(p) {
  r <- p[1]
  K <- exp(p[2])
  u <- numeric(n)
  u[1] <- 0.5
  for (t in 2:n) {
    before <- u[t - 1]
    u[t] <- before + exp(r) * (1 - (exp(before) / K)^exp(p[3]))
  }
  -sum(dnorm(y, u, exp(p[4]) + 1, log = TRUE))
})
at("stock with catches", c(3, -1, 0.2), function(p) {
  catch <- c(1, 2, 1.5, 2, 1)
  B <- numeric(6)
  B[1] <- exp(p[1])
  for (t in 1:5) B[t + 1] <- B[t] + exp(p[2]) * B[t] * (1 - B[t] / exp(p[1])) - catch[t]
  index <- c(18, 17, 15, 14, 13, 13)
  sum((log(index) - log(B) - p[3] + 0.2)^2)
})
at("catch at age", c(2, 1.5, 1, -1, -2), function(p) {
  N <- matrix(0, 3, 3)
  C <- matrix(0, 3, 3)
  Fm <- exp(p[4])
  M <- 0.2
  sel <- c(plogis(p[5]), plogis(p[5] + 2), 1)
  N[1, ] <- exp(p[1:3])
  for (yr in 2:3) {
    N[yr, 1] <- exp(p[1])
    for (a in 2:3) N[yr, a] <- N[yr - 1, a - 1] * exp(-(M + Fm * sel[a - 1]))
  }
  for (yr in 1:3) C[yr, ] <- N[yr, ] * (Fm * sel) / (M + Fm * sel) * (1 - exp(-(M + Fm * sel)))
  obs <- matrix(c(0.2, 0.9, 0.7, 0.3, 0.8, 0.9, 0.2, 1, 0.9), 3)
  sum((log(obs) - log(C))^2)
})
at("Euler steps of an ODE", c(0.8, 0.4), function(p) {
  dt <- 0.1
  state <- matrix(NA, 11, 2)
  state[1, ] <- c(1, 0.5)
  for (i in 1:10) {
    prey <- state[i, 1]
    predator <- state[i, 2]
    state[i + 1, 1] <- prey + dt * (p[1] * prey - p[2] * prey * predator)
    state[i + 1, 2] <- predator + dt * (0.3 * prey * predator - 0.5 * predator)
  }
  sum((state[11, ] - c(1.2, 0.6))^2)
})
at("Runge-Kutta with a function", c(0.8, 0.4), function(p) {
  f <- function(s) c(p[1] * s[1] - p[2] * s[1] * s[2], -0.5 * s[2] + 0.2 * s[1] * s[2])
  s <- c(1, 0.5)
  h <- 0.2
  for (i in 1:4) {
    k1 <- f(s)
    k2 <- f(s + h / 2 * k1)
    k3 <- f(s + h / 2 * k2)
    k4 <- f(s + h * k3)
    s <- s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
  }
  sum(s^2)
})
at("SIR model", c(-1, -2), function(p) {
  S <- I <- R <- numeric(8)
  S[1] <- 0.99
  I[1] <- 0.01
  R[1] <- 0
  for (t in 1:7) {
    new <- exp(p[1]) * 4 * S[t] * I[t]
    gone <- exp(p[2]) * I[t]
    S[t + 1] <- S[t] - new
    I[t + 1] <- I[t] + new - gone
    R[t + 1] <- R[t] + gone
  }
  sum((R - seq(0, 0.07, by = 0.01))^2) * 1e3
})
at("Gaussian process", c(0.1, -0.5, -1), function(p) {
  K <- matrix(0, n, n)
  for (i in 1:n) {
    for (j in 1:n) {
      K[i, j] <- exp(2 * p[1]) * exp(-0.5 * (x[i] - x[j])^2 / exp(2 * p[2]))
    }
  }
  diag(K) <- diag(K) + exp(2 * p[3])
  L <- t(chol(K))
  a <- forwardsolve(L, y)
  0.5 * sum(a^2) + sum(log(diag(L)))
})
at("multivariate normal by hand", c(1, 2, 0.3, 0.1, 0.2), function(p) {
  Z <- cbind(y[1:4], y[5:8])
  L <- matrix(0, 2, 2)
  L[1, 1] <- exp(p[3])
  L[2, 1] <- p[4]
  L[2, 2] <- exp(p[5])
  S <- L %*% t(L)
  Q <- solve(S)
  nll <- 0
  for (i in 1:4) {
    r <- Z[i, ] - p[1:2]
    nll <- nll + 0.5 * as.numeric(t(r) %*% Q %*% r) + 0.5 * as.numeric(determinant(S)$modulus)
  }
  nll
})
at("Cox partial likelihood", c(0.5, -0.2), function(p) {
  time <- c(5, 3, 8, 1, 4, 7, 2, 6)
  dead <- c(1, 1, 0, 1, 1, 0, 1, 1)
  Z <- cbind(x, y)
  eta <- as.vector(Z %*% p)
  ll <- 0
  for (i in which(dead == 1)) ll <- ll + eta[i] - log(sum(exp(eta[time >= time[i]])))
  -ll
})
at("Weibull survival, censored", c(0.2, 1.5), function(p) {
  time <- c(5, 3, 8, 1, 4, 7, 2, 6)
  dead <- c(1, 1, 0, 1, 1, 0, 1, 1)
  k <- exp(p[1])
  s <- exp(p[2])
  -sum(ifelse(dead == 1, dweibull(time, k, s, log = TRUE), -(time / s)^k))
})
at("Bradley-Terry", c(0.4, -0.2), function(p) {
  ability <- c(0, p)
  winner <- c(1, 2, 1, 3, 2)
  loser <- c(2, 3, 3, 1, 1)
  nll <- 0
  for (i in seq_along(winner)) nll <- nll + log1p(exp(ability[loser[i]] - ability[winner[i]]))
  nll
})
at("multinomial logit", c(0.4, -0.2, 0.1, 0.3), function(p) {
  choice <- c(1, 2, 3, 1, 2, 3, 1, 3)
  B <- matrix(p, 2)
  eta <- cbind(0, cbind(1, x) %*% B)
  -sum(eta[cbind(1:n, choice)] - log(rowSums(exp(eta))))
})
at("ordinal regression", c(-0.5, 0.4, 0.7), function(p) {
  level <- c(1, 2, 2, 3, 1, 3, 2, 3)
  cuts <- c(-Inf, p[1], p[1] + exp(p[2]), Inf)
  eta <- p[3] * x
  P <- numeric(n)
  for (i in 1:n) {
    upper <- if (level[i] == 3) 1 else plogis(cuts[level[i] + 1] - eta[i])
    lower <- if (level[i] == 1) 0 else plogis(cuts[level[i]] - eta[i])
    P[i] <- upper - lower
  }
  -sum(log(P))
})
at("capture and recapture", c(0.4, 0.8), function(p) {
  phi <- plogis(p[1])
  pr <- plogis(p[2])
  histories <- rbind(c(1, 0, 1), c(1, 1, 0), c(1, 0, 0), c(1, 1, 1))
  nll <- 0
  for (i in 1:4) {
    last <- max(which(histories[i, ] == 1))
    chi <- rep(1, 3)
    for (t in 2:1) chi[t] <- 1 - phi + phi * (1 - pr) * chi[t + 1]
    ll <- 0
    if (last > 1) {
      for (t in 2:last) ll <- ll + log(phi) + if (histories[i, t] == 1) log(pr) else log(1 - pr)
    }
    nll <- nll - ll - log(chi[last])
  }
  nll
})
at("neural net, one layer", c(0.4, -0.2, 0.1, 0.3, 0.5, -0.4, 0.2), function(p) {
  W <- matrix(p[1:2], 1)
  hidden <- tanh(sweep(as.matrix(x) %*% W, 2, p[3:4], "+"))
  out <- hidden %*% p[5:6] + p[7]
  mean((y - as.vector(out))^2)
})
at("ridge by gradient steps", c(0.1, 0.5), function(p) {
  X <- cbind(1, x)
  b <- c(0, 0)
  for (i in 1:5) {
    g <- -2 * crossprod(X, y - X %*% b) / n + 2 * p[1] * b
    b <- as.vector(b - p[2] * 0.2 * g)
  }
  sum(b^2)
})
at("lasso by soft threshold", c(0.1, 0.5), decides = NA, function(p) {
  soft <- function(z, l) sign(z) * pmax(abs(z) - l, 0)
  sum(soft(y - 2, p[1]) * p[2])
})
at("Michaelis-Menten", c(1.2, -0.5), function(p) sum((y - exp(p[1]) * (x + 1) / (exp(p[2]) + x + 1))^2))
at("Box-Cox", c(0.5, 1, -0.3), decides = TRUE, function(p) {
  z <- if (abs(p[1]) < 1e-8) log(y) else (y^p[1] - 1) / p[1]
  -sum(dnorm(z, p[2], exp(p[3]), log = TRUE)) - (p[1] - 1) * sum(log(y))
})
at("stick breaking", c(0.4, -0.2, 0.3), function(p) {
  w <- numeric(4)
  left <- 1
  for (k in 1:3) {
    w[k] <- left * plogis(p[k])
    left <- left - w[k]
  }
  w[4] <- left
  -sum(c(3, 2, 4, 1) * log(w))
})
at("partial correlations to a matrix", c(0.4, -0.2, 0.3), function(p) {
  r <- tanh(p)
  C <- diag(3)
  k <- 0
  for (i in 2:3) {
    for (j in 1:(i - 1)) {
      k <- k + 1
      C[i, j] <- C[j, i] <- r[k] * 0.5
    }
  }
  log(det(C))
})

# Five of RTMB's demo models (and its vignette's), rewritten: a line, a random walk of several series, stochastic
# volatility, a diffusion as a hidden Markov model, a logistic population.
at("demo: a line, its parameters a list", c(a = 0, b = 1, log_sigma = 0), function(p) {
  p <- as.list(p)
  fitted <- p$a + p$b * x
  -sum(dnorm(y, fitted, exp(p$log_sigma), TRUE))
})
at("demo: random walk of two series", c(0.1, -0.2, 0.1, 0.3, 0.2, 0.5, 0.1, 0.4, 0.3, 0.7), function(p) {
  squash <- function(v) 2 / (1 + exp(-2 * v)) - 1
  rho <- squash(p[1])
  sds <- exp(p[2:3])
  sd_obs <- exp(p[4])
  S <- outer(1:2, 1:2, function(i, j) rho^(abs(i - j)) * sds[i] * sds[j])
  u <- matrix(p[5:10], 2)
  du <- diff(t(u))
  nll <- 0
  for (i in seq_len(nrow(du))) {
    nll <- nll + 0.5 * as.numeric(du[i, ] %*% solve(S) %*% du[i, ]) + 0.5 * as.numeric(determinant(S)$modulus)
  }
  nll - sum(dnorm(matrix(y[1:6], 2), u, sd_obs, log = TRUE))
})
at("demo: stochastic volatility", c(0.5, 0.6, -0.7, -0.5, 0.3, 0.1, 0.2, -0.1, 0.3, 0.2, 0.4), function(p) {
  phi <- p[1:2]
  sigma <- exp(p[3:4])
  h <- matrix(p[6:11], 3)
  nll <- -sum(dnorm(h[1, ], 0, sigma / sqrt(1 - phi^2), log = TRUE))
  for (j in 1:2) nll <- nll - sum(dnorm(h[-1, j], phi[j] * h[-3, j], sigma[j], log = TRUE))
  L <- diag(2)
  L[lower.tri(L)] <- p[5]
  L <- L / apply(L, 1, function(row) sqrt(sum(row^2)))
  R <- L %*% t(L)
  for (i in 1:3) {
    scale <- diag(exp(0.5 * h[i, ]))
    C <- scale %*% R %*% scale
    r <- y[c(2 * i - 1, 2 * i)]
    nll <- nll + 0.5 * as.numeric(t(r) %*% solve(C, r)) + 0.5 * log(det(C))
  }
  nll
})
at("demo: a diffusion on a grid", c(0.8, 0.9, -0.5, -1), function(p) {
  grid <- seq(-2, 2, length.out = 6)
  equation <- list(
    advection = function(v) p[1] * v - p[2] * v^3,
    dispersion = function(v) v * 0 + exp(p[3])
  )
  generator <- function(equation, grid) {
    step <- diff(grid)[1]
    D <- 0.5 * equation$dispersion(grid)^2
    below <- function(v) rbind(0, cbind(diag(v), 0))
    L <- below(D[-c(1, length(D))])
    L <- L + t(L)
    diag(L) <- -colSums(L)
    middle <- 0.5 * (head(grid, -1) + tail(grid, -1))
    v <- equation$advection(middle)
    G <- -0.5 * below(head(v, -1)) + 0.5 * t(below(tail(v, -1)))
    diag(G) <- -colSums(G)
    L / step^2 + G / step
  }
  A <- diag(5) + 0.05 * generator(equation, grid)
  seen <- findInterval(c(-0.5, 0.3, 0.9), grid)
  middle <- 0.5 * (grid[-1] + grid[-6])
  a <- rep(0.2, 5)
  ll <- 0
  for (k in seen) {
    a <- as.vector(A %*% a) * dnorm(middle[k], middle, exp(p[4]) + 0.5)
    ll <- ll + log(sum(a))
    a <- a / sum(a)
  }
  -ll
})
at("demo: logistic population, steps by head and tail", c(0.1, 0.2, -1, 0.5, 0.8, 1, 1.1, 0.9, 1.2), function(p) {
  r <- exp(p[1])
  K <- exp(p[2])
  X <- p[4:9]
  before <- head(X, -1)
  after <- tail(X, -1)
  nll <- -sum(dnorm(after - before, r * (1 - (exp(before) / K)^1.2), sqrt(exp(p[3])), TRUE))
  nll - sum(dpois(count[1:6], 2 * exp(X), TRUE))
})
at("censored gamma survival, distributions out of a list", c(0.3, -1), function(p) {
  parts <- list(d = get(paste0("d", "gamma")), p = get("pgamma"))
  pars <- list(exp(p[1]), exp(p[2]))
  seen <- do.call(parts$d, c(list(y[1:5]), pars, list(log = TRUE)))
  later <- do.call(parts$p, c(list(y[6:8]), pars, list(lower.tail = FALSE, log.p = TRUE)))
  -sum(seen, later)
})
hidden <- function(z, transition, density, ...) {
  start <- solve(t(diag(nrow(transition)) - transition + 1), rep(1, nrow(transition)))
  phi <- start
  total <- 0
  for (value in z) {
    forward <- phi %*% transition %*% diag(mapply(density, x = value, ...))
    total <- total + log(sum(forward))
    phi <- forward / sum(forward)
  }
  total
}
at("hidden Markov model of any density", c(1, 1, 0, 3, 0, 0.3), function(p) {
  stay <- plogis(p[1:2])
  transition <- matrix(c(stay[1], 1 - stay[1], 1 - stay[2], stay[2]), 2, byrow = TRUE)
  -hidden(y, transition, dnorm, mean = p[3:4], sd = exp(p[5:6]))
})
royle <- function(seen, visits, link = c("logit", "probit")) {
  link <- if (match.arg(link) == "logit") plogis else pnorm
  function(p) {
    missed <- (1 - link(p[2]))^(0:20)
    there <- dpois(0:20, exp(p[1]))
    ll <- 0
    for (k in seen) ll <- ll + log(sum((1 - missed)^k * missed^(visits - k) * there))
    -ll
  }
}
at("occupancy with a link that is chosen", c(0.5, -1), royle(c(0, 1, 3, 2), 4, "probit"))
at("generalised linear model of any family", c(0.1, 0.4), function(p) {
  deviance <- function(y, family) {
    mu <- family$linkinv(p[1] + p[2] * x)
    sum(family$dev.resids(y, mu, rep(1, length(y)))) / 2
  }
  deviance(as.numeric(y > 2), binomial()) + deviance(c(0, count[-1]), poisson()) + deviance(y, Gamma("log"))
})
