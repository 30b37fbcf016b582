# Distribution functions based on the incomplete gamma and beta functions, and their derivatives.

test_each("tails of gamma, beta and t distributions match R to twelve digits", {
  wide <- expand.grid(a = c(0.001, 0.5, 1, 7, 30, 1e4), z = c(-20, -2, 0, 0.3, 3), by = 1:2)
  x <- with(wide, ifelse(by == 1, pmax(a + z * sqrt(a), a / 9), a * exp(z)))
  both <- expand.grid(a = c(0.01, 1, 2.5, 100), b = c(0.1, 1, 30, 1e4), z = c(-8, -1, 0, 2))
  part <- with(both, plogis(log(a / b) + z * pmin(sqrt(1 / a + 1 / b), 2)))
  students <- expand.grid(q = c(-1e8, -30, -1.001, -0.3, 0, 1e-5, 2, 50), df = c(0.05, 1, 3.3, 50, 1e6))
  cases <- list(
    list("pgamma", c(0, -1, Inf, x), c(1:3, wide$a)), list("pbeta", c(0, 1, part), c(2, 2, both$a), c(3, 3, both$b)),
    list("pt", c(-Inf, students$q), c(2, students$df))
  )
  for (case in cases) {
    for (lower in c(TRUE, FALSE)) {
      for (log in c(TRUE, FALSE)) {
        tails <- list(lower.tail = lower, log.p = log)
        expected <- do.call(get(case[[1]], asNamespace("stats")), c(case[-1], tails))
        found <- bare(do.call(case[[1]], c(lapply(case[-1], op_convert_to_tensor), tails)))
        error <- ifelse(found == expected, 0, abs(found - expected) / abs(expected))
        expect_lt(max(error[abs(expected) == 0 | abs(expected) > 1e-290]), 1e-12)
      }
    }
  }
  expect_true(all(is.nan(bare(pgamma(variable(c(NaN, 1, 1)), c(1, 0, -1))))))
})

test_each("derivatives of the tails by each argument, and distributions built on them", {
  q <- c(0, 3, 5)
  expect_as_base(
    list(
      gamma = function(x, a) pgamma(x, a, 2), upper = function(x, a) pgamma(4 * x, a, lower.tail = FALSE, log.p = TRUE),
      chisq = function(x, a) pchisq(x, a, log.p = TRUE), pois = function(x, a) ppois(q, x),
      beta = function(x, a) pbeta(x / 4, a, x, log.p = TRUE),
      above = function(x, a) pbeta(x / 4, x, a, lower.tail = FALSE),
      t = function(x, a) pt(x - 1, a, log.p = TRUE), f = function(x, a) pf(x, a, 3),
      binom = function(x, a) pbinom(q, 5, x / 4),
      nbinom = function(x, a) pnbinom(q, a, mu = x, lower.tail = FALSE, log.p = TRUE),
      number = function(x, a) ppois(3, a, log.p = TRUE)
    ),
    c(0.3, 1.4, 3.1), c(1.5, 25, 0.8)
  )
  expect_equal(gradient(function(x) pgamma(x, 300), 310), dgamma(310, 300), tolerance = 1e-12)
  expect_equal(gradient(function(q) pt(q, 3), 0), dt(0, 3), tolerance = 1e-12)
  for (df in list(c(3, Inf), c(Inf, 3), c(Inf, Inf))) {
    for (lower in c(TRUE, FALSE)) {
      x <- c(0, 0.5, 2, Inf)
      found <- pf(op_convert_to_tensor(x), df[1], df[2], lower.tail = lower)
      expect_equal(as.vector(found), stats::pf(x, df[1], df[2], lower.tail = lower), tolerance = 1e-12)
    }
  }
  expect_equal(
    gradient(function(p) pf(p[1], p[2], Inf), c(2, 3)),
    c(3 * dchisq(6, 3), (stats::pf(2, 3 + 1e-5, Inf) - stats::pf(2, 3 - 1e-5, Inf)) / 2e-5), tolerance = 1e-8
  )
  # dP(1, x) / da = exp(-x) * (log(x) - digamma(1)) + E1(x); the second derivative by differences
  e1 <- stats::integrate(function(t) exp(-t) / t, 2, Inf, rel.tol = 1e-12)$value
  shape <- function(a) gradient(function(a) pgamma(2, a, lower.tail = FALSE), a)
  expect_equal(shape(1), exp(-2) * (log(2) - digamma(1)) + e1, tolerance = 1e-9)
  expect_equal(
    as.vector(hessian(function(a) pgamma(2, a, lower.tail = FALSE), 1)), (shape(1.001) - shape(0.999)) / 0.002,
    tolerance = 1e-5
  )
})

test_each("infinite cutpoints and times have zero derivatives, of second order as well", {
  rating <- c(1, 3, 2, 3)
  ordered <- function(p) {
    cuts <- c(-Inf, p[1], p[1] + exp(p[2]), Inf)
    -sum(log(pnorm(cuts[rating + 1] - p[3]) - pnorm(cuts[rating] - p[3])))
  }
  until <- c(2, Inf, 1, Inf)
  interval <- function(p) {
    -sum(log(pweibull(until, exp(p[1]), exp(p[2])) - pweibull(0.3, exp(p[1]), exp(p[2])))) -
      sum(pexp(c(until[1:2], exp(p[3])), exp(p[1])), punif(c(until[1:2], p[3]), p[2], 9))
  }
  for (f in list(ordered, interval)) {
    p <- c(0.2, 0.3, 0.4)
    expect_equal(gradient(f, p), numeric_gradient(f, p), tolerance = 1e-6)
    slope <- function(x) gradient(f, replace(p, 1, x))
    expect_equal(hessian(f, p)[1, ], (slope(p[1] + 1e-5) - slope(p[1] - 1e-5)) / 2e-5, tolerance = 1e-6)
  }
})
