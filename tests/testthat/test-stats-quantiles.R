# Quantiles of gamma, beta, t and F distributions, and their derivatives.

test_each("quantiles of gamma, beta, t and F distributions match R, and invert their distribution functions", {
  p <- c(0, 1e-300, 1e-20, 1e-5, 0.1, 0.3, 0.5, 0.7, 0.99, 1 - 1e-10, 1)
  gammas <- expand.grid(p = p, a = c(0.001, 0.3, 1, 2.5, 30, 1e4))
  betas <- expand.grid(p = p[c(1, 3:11)], a = c(0.05, 1, 3, 200), b = c(0.5, 2, 30))
  # R 4.2's search ends early with five digits, for example at 1e-300 with 2.2 degrees of freedom
  students <- expand.grid(p = c(0, 1e-20, 1e-5, 0.1, 0.49, 0.7, 0.99, 1), df = c(1, 2.2, 30, 1e4))
  for (tails in list(list(TRUE, FALSE), list(FALSE, FALSE), list(TRUE, TRUE), list(FALSE, TRUE))) {
    for (case in list(list("qgamma", gammas), list("qbeta", betas), list("qt", students))) {
      arguments <- unname(as.list(case[[2]]))
      if (tails[[2]]) arguments[[1]] <- log(arguments[[1]])
      tails <- stats::setNames(tails, c("lower.tail", "log.p"))
      expected <- do.call(get(case[[1]], asNamespace("stats")), c(arguments, tails))
      found <- bare(do.call(case[[1]], c(lapply(arguments, op_convert_to_tensor), tails)))
      error <- ifelse(found == expected, 0, abs(found - expected) / abs(expected))
      expect_lt(max(error[expected == 0 | abs(expected) > 1e-290]), 2e-12)
    }
  }
  # where R itself has few digits: a = 10000, b = 30; small quantiles of F
  x <- qbeta(variable(1e-20), 1e4, 30)
  expect_equal(bare(pbeta(x, 1e4, 30)), 1e-20, tolerance = 1e-11)
  p <- c(1e-20, 0.2, 1 - 1e-10)
  expect_equal(bare(pf(qf(variable(p), 1, 0.7), 1, 0.7)), p, tolerance = 1e-12)
  expect_equal(bare(qt(variable(0.5), 3)), 0)
  expect_equal(bare(qt(variable(1e-300), 1)), -1e300 / pi, tolerance = 1e-12)
  expect_equal(bare(qchisq(variable(0.95), 3)), qchisq(0.95, 3), tolerance = 1e-13)
  p <- c(0, 0.01, 0.4, 0.9, 1)
  expect_equal(bare(qt(variable(p), Inf)), qnorm(p), tolerance = 1e-12)
  expect_equal(bare(qf(variable(p), 3, Inf)), qf(p, 3, Inf), tolerance = 1e-12)
  expect_equal(bare(qf(variable(p), c(Inf, 3, Inf, Inf, 3), 5)), qf(p, c(Inf, 3, Inf, Inf, 3), 5), tolerance = 1e-12)
  expect_true(all(is.nan(bare(qgamma(variable(0.5), c(0, Inf))))))
  expect_true(all(is.nan(bare(qgamma(variable(c(-0.1, 1.1, NaN)), 2)))))
  expect_true(all(is.nan(bare(qbeta(variable(0.5), c(-1, 0), 2)))))
})

test_each("derivatives of quantiles by all arguments match the implicit function theorem, to second order", {
  quantiles <- list(
    gamma = function(v) qgamma(v[[1]], v[[2]], 2),
    upper = function(v) qgamma(log(v[[1]]), v[[3]], lower.tail = FALSE, log.p = TRUE),
    beta = function(v) qbeta(v[[1]], v[[3]], v[[2]], lower.tail = FALSE),
    t = function(v) qt(v[[1]], v[[2]]), f = function(v) qf(v[[1]], v[[2]], v[[3]])
  )
  v <- c(0.2, 0.93, 1.4, 0.6, 3.1, 25)
  direction <- c(0.1, -0.2, 1, 0.3, -0.7, 2)
  for (name in names(quantiles)) {
    f <- function(v) sum(quantiles[[name]](list(v[1:2], v[3:4], v[5:6])) * c(1, 0.3))
    expect_equal(gradient(f, v), numeric_gradient(f, v, 1e-5), tolerance = 1e-6, info = name)
    along <- (gradient(f, v + 1e-5 * direction) - gradient(f, v - 1e-5 * direction)) / 2e-5
    expect_equal(hvp(f, v, direction)$product, along, tolerance = 1e-5, info = name)
  }
  v <- c(0.2, 1.4, 3.1)
  both <- function(v) sum(qgamma(v[1:2] / 4, v[2]) * qbeta(v[1], v[2:3], 2)) + sum(qt(v[1:2] / 3, v[3]))
  compiled <- objective(both, jit = TRUE)
  expect_equal(compiled$fn(v), both(v), tolerance = 1e-12)
  expect_equal(compiled$gr(v), objective(both)$gr(v), tolerance = 1e-10)
  x <- qgamma(0.3, 2)
  expect_equal(gradient(function(p) qgamma(p, 2), 0.3), 1 / dgamma(x, 2), tolerance = 1e-12)
  expect_equal(as.vector(hessian(function(p) qgamma(p, 1), 0.3)), 1 / 0.7^2, tolerance = 1e-11)
  expect_equal(gradient(function(p) qt(p, 3), 0.5), 1 / dt(0, 3), tolerance = 1e-12)
})

test_each("quantiles of discrete distributions are R's integers, with derivatives of 0", {
  p <- c(0, 1e-20, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-10, 1)
  families <- list(
    binom = list(12, 0.3), binom = list(1e5, c(0.001, 0.2, 0.5)), pois = list(3.3), geom = list(c(0.2, 0.7, 1e-4)),
    nbinom = list(3.3, 0.2), nbinom = list(1e10, mu = 4), hyper = list(30, 20, 12)
  )
  for (i in seq_along(families)) {
    name <- paste0("q", names(families)[[i]])
    for (tails in list(list(TRUE, FALSE), list(FALSE, FALSE), list(TRUE, TRUE), list(FALSE, TRUE))) {
      at <- if (tails[[2]]) log(p[-c(1, 9)]) else p
      arguments <- c(families[[i]], stats::setNames(tails, c("lower.tail", "log.p")))
      expected <- do.call(get(name, asNamespace("stats")), c(list(at), arguments))
      expect_identical(bare(do.call(name, c(list(variable(at)), arguments))), expected, info = name)
    }
  }
  x <- 0:30
  expect_identical(bare(qbinom(variable(pbinom(x, 30, 0.37)), 30, 0.37)), as.numeric(x))
  expect_identical(bare(qpois(variable(ppois(x, 9.7, FALSE)), 9.7, lower.tail = FALSE)), as.numeric(x))
  expect_identical(gradient(function(v) qnbinom(v[1], v[2], v[3]) + v[1], c(0.3, 4, 0.4)), c(1, 0, 0))
  expect_true(all(is.nan(bare(qbinom(variable(c(-0.1, 0.5)), 10.5, 0.3)))))
  q <- c(-1, 0, 3, 7.5, 12, 13)
  for (as_log in c(TRUE, FALSE)) {
    expect_equal(bare(phyper(variable(q), 30, 20, 12, log.p = as_log)), phyper(q, 30, 20, 12, log.p = as_log))
  }
  expect_equal(gradient(function(m) phyper(3, m, 10, 5, lower.tail = FALSE) * m, 8), phyper(3, 8, 10, 5, FALSE))
})
