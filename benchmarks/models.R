# The models that compiled.R and functional.R time: data, start values and negative log-likelihood in plain R. It also
# has the functions that measure time.

set.seed(1)

logistic <- local({
  n <- 2000
  p <- 10
  X <- matrix(rnorm(n * p), n)
  y <- as.numeric(X %*% rnorm(p) / 3 + rlogis(n) > 0)
  list(start = rnorm(p) / 10, f = function(beta) {
    eta <- X %*% beta
    sum(log1p(exp(eta)) - y * eta)
  })
})

negative_binomial <- local({
  n <- 1000
  X <- cbind(1, matrix(rnorm(n * 4), n))
  y <- rnbinom(n, size = 2, mu = exp(X %*% c(1, 0.3, -0.2, 0.1, 0)))
  list(start = c(0.9, 0.2, -0.1, 0, 0, 0.5), f = function(b) {
    theta <- exp(b[6])
    eta <- X %*% b[1:5]
    -sum(lgamma(y + theta) - lgamma(theta) + theta * (b[6] - log(theta + exp(eta))) +
           y * (eta - log(theta + exp(eta))))
  })
})

kalman <- local({
  n <- 200
  y <- cumsum(rnorm(n, sd = 0.5)) + rnorm(n)
  list(start = c(-1, 0.3), f = function(p) {
    q <- exp(p[1])
    r <- exp(p[2])
    a <- 0
    P <- 10
    total <- 0
    for (t in seq_along(y)) {
      P <- P + q
      S <- P + r
      v <- y[t] - a
      total <- total + log(S) + v^2 / S
      K <- P / S
      a <- a + K * v
      P <- P * (1 - K)
    }
    total / 2
  })
})

# The Kalman filter by `op_scan()`: the loop is one step of a program. `plain` is the version for R and RTMB.
kalman_scanned <- local({
  y <- environment(kalman$f)$y
  list(start = kalman$start, plain = kalman$f, f = function(p) {
    q <- exp(p[1])
    r <- exp(p[2])
    step <- function(state, value) {
      P <- state$P + q
      S <- P + r
      v <- value - state$a
      K <- P / S
      list(list(a = state$a + K * v, P = P * (1 - K), total = state$total + log(S) + v^2 / S), NULL)
    }
    op_scan(step, list(a = 0, P = 10, total = 0), y)[[1]]$total / 2
  })
})

gaussian_process <- local({
  n <- 200
  x <- sort(runif(n, 0, 10))
  y <- sin(x) + rnorm(n, sd = 0.2)
  D <- outer(x, x, "-")^2
  I <- diag(n)
  list(start = c(0, 0, -1), f = function(p) {
    K <- exp(p[1]) * exp(-D * exp(-2 * p[2]) / 2) + exp(2 * p[3]) * I
    sum(y * solve(K, y)) / 2 + determinant(K)$modulus / 2
  })
})

autoregression <- local({
  n <- 5000
  y <- as.numeric(stats::filter(rnorm(n), 0.7, "recursive"))
  now <- y[-1]
  before <- y[-n]
  list(start = c(0.1, 0.5, 0.1), f = function(p) {
    e <- now - p[1] - p[2] * before
    (n - 1) * p[3] + sum(e^2) * exp(-2 * p[3]) / 2
  })
})

garch <- local({
  y <- rnorm(500)
  list(start = c(-2, -2, 0.5), f = function(p) {
    omega <- exp(p[1])
    alpha <- exp(p[2])
    beta <- 1 / (1 + exp(-p[3]))
    h <- 1
    total <- 0
    for (t in 2:500) {
      h <- omega + alpha * y[t - 1]^2 + beta * h
      total <- total + log(h) + y[t]^2 / h
    }
    total / 2
  })
})

random_intercepts <- local({
  groups <- 50
  n <- 1000
  g <- rep(seq_len(groups), each = n / groups)
  x <- rnorm(n)
  y <- rnorm(groups)[g] + 0.5 * x + rnorm(n)
  list(start = c(0.1, 0.4, 0, 0, rnorm(groups) / 10), f = function(p) {
    u <- p[4 + seq_len(groups)]
    e <- y - p[1] - p[2] * x - u[g]
    sum(e^2) * exp(-2 * p[3]) / 2 + n * p[3] + sum(u^2) * exp(-2 * p[4]) / 2 + groups * p[4]
  })
})

# A Kalman filter with two states, whose matrices have two rows.
two_states <- local({
  n <- 100
  y <- apply(matrix(rnorm(2 * n), n), 2, cumsum) + rnorm(2 * n)
  one <- diag(2)
  upper <- matrix(c(0, 0, 1, 0), 2)
  list(start = c(0.1, -1, 0), f = function(p) {
    A <- one + p[1] * upper
    Q <- one * exp(p[2])
    R <- one * exp(p[3])
    a <- c(0, 0)
    P <- one * 10
    total <- 0
    for (t in seq_len(n)) {
      a <- (A %*% a)[, 1]
      P <- A %*% P %*% t(A) + Q
      S <- P + R
      v <- y[t, ] - a
      inverse <- solve(S)
      total <- total + sum(v * (inverse %*% v)[, 1]) + log(S[1, 1] * S[2, 2] - S[1, 2] * S[2, 1])
      K <- P %*% inverse
      a <- a + (K %*% v)[, 1]
      P <- P - K %*% P
    }
    total / 2
  })
})

# Two hidden states at each time, which are parameters, and three observations of them.
hidden_states <- local({
  n <- 50
  y <- cbind(plogis(cumsum(rnorm(n)) / 5), cumsum(rnorm(n)), rnorm(n))
  list(start = c(0.3, 0, 0, rnorm(2 * n) / 10), f = function(p) {
    u <- matrix(p[3 + seq_len(2 * n)], n)
    phi <- tanh(p[1])
    step <- exp(p[2])
    noise <- exp(p[3])
    total <- n * (2 * p[2] + 3 * p[3])
    for (i in seq_len(n)) {
      expected <- c(1 / (1 + exp(-u[i, 1])), u[i, 2], u[i, 1] * u[i, 2])
      total <- total + sum(((y[i, ] - expected) / noise)^2) / 2
      if (i > 1) total <- total + sum(((u[i, ] - c(u[i - 1, 1], phi * u[i - 1, 2])) / step)^2) / 2
    }
    total
  })
})

seconds <- function(code) {
  start <- Sys.time()
  force(code)
  as.numeric(Sys.time() - start, units = "secs")
}

# Returns microseconds per call of each function. They take turns, and the best round counts.
compare <- function(contenders, rounds = 30, budget = 0.02) {
  calls <- vapply(contenders, function(f) {
    f()
    max(1, round(budget / max(seconds(f()), 1e-5)))
  }, 0)
  best <- rep(Inf, length(contenders))
  for (round in seq_len(rounds)) {
    for (i in seq_along(contenders)) {
      f <- contenders[[i]]
      n <- calls[i]
      best[i] <- min(best[i], seconds(for (k in seq_len(n)) f()) / n)
    }
  }
  setNames(1e6 * best, names(contenders))
}
