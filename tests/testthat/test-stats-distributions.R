test_each("densities and their derivatives match stats", {
  expect_as_base(
    list(
      norm = function(x, a, b) dnorm(x, a, b),
      log_norm = function(x, a, b) dnorm(x, a, b, log = TRUE),
      lnorm = function(x, a, b) dlnorm(x, a, b, log = TRUE),
      exp = function(x, a, b) dexp(x, b),
      gamma = function(x, a, b) dgamma(x, a, b),
      log_gamma = function(x, a, b) dgamma(x, a, scale = b, log = TRUE),
      beta = function(x, a, b) dbeta(x / 3, a, b, log = TRUE),
      t = function(x, a, b) dt(x, a * 3),
      f = function(x, a, b) df(x, a * 3, b),
      log_f = function(x, a, b) df(x, a, b * 1e7, log = TRUE),
      unif = function(x, a, b) dunif(x, -a, 2 + b),
      logis = function(x, a, b) dlogis(x, a, b),
      weibull = function(x, a, b) dweibull(x, a, b, log = TRUE),
      pnorm = function(x, a, b) pnorm(x, a, b),
      upper = function(x, a, b) pnorm(x, a, b, lower.tail = FALSE, log.p = TRUE),
      tails = function(x, a, b) pnorm((x - 1) * 30, a, b, log.p = TRUE),
      cauchy = function(x, a, b) dcauchy(x, a, b, log = TRUE),
      chisq = function(x, a, b) dchisq(x, a),
      pexp = function(x, a, b) pexp(x, b),
      pweibull = function(x, a, b) pweibull(x, a, b, log.p = TRUE),
      survival = function(x, a, b) pweibull(x, a, b, lower.tail = FALSE, log.p = TRUE),
      plogis = function(x, a, b) plogis(x, a, b, lower.tail = FALSE),
      log_plogis = function(x, a, b) plogis(x, a, b, log.p = TRUE),
      qlogis = function(x, a, b) qlogis(x / 3, a, b),
      of_log = function(x, a, b) qlogis(-x, a, b, lower.tail = FALSE, log.p = TRUE),
      plnorm = function(x, a, b) plnorm(x, a, b),
      upper_plnorm = function(x, a, b) plnorm(x, a, b, lower.tail = FALSE, log.p = TRUE),
      punif = function(x, a, b) punif(x, -a, 2 + b, lower.tail = FALSE),
      pcauchy = function(x, a, b) pcauchy((x - 1) * 9, a, b),
      log_pcauchy = function(x, a, b) pcauchy((x - 1) * 9, a, b, lower.tail = FALSE, log.p = TRUE),
      qnorm = function(x, a, b) qnorm(x / 3, a, b),
      upper_qnorm = function(x, a, b) qnorm(-x * 20, a, b, lower.tail = FALSE, log.p = TRUE),
      qlnorm = function(x, a, b) qlnorm(x / 3, a, b),
      qexp = function(x, a, b) qexp(x / 3, b),
      upper_qexp = function(x, a, b) qexp(-x, b, lower.tail = FALSE, log.p = TRUE),
      qweibull = function(x, a, b) qweibull(-x, a, b, log.p = TRUE),
      qunif = function(x, a, b) qunif(x / 3, -a, 2 + b, lower.tail = FALSE),
      qcauchy = function(x, a, b) qcauchy(x / 3, a, b),
      log_qcauchy = function(x, a, b) qcauchy(-x, a, b, log.p = TRUE)
    ),
    c(0.3, 1.4, 0.9), c(1.5, 2.5, 0.8), c(0.7, 1.2, 2)
  )
  x <- c(0, 3, 1)
  expect_as_base(
    list(
      binom = function(size, p) dbinom(x, c(4, 5, 6), p),
      log_binom = function(size, p) dbinom(x, c(4, 5, 6), p, log = TRUE),
      geom = function(size, p) dgeom(x, p, log = TRUE),
      hyper = function(size, p) dhyper(x, round(size * 10), 20, 6, log = TRUE),
      multinom = function(size, p) dmultinom(x, prob = p),
      log_multinom = function(size, p) dmultinom(x, 4, p, log = TRUE),
      pgeom = function(size, p) pgeom(x, p),
      pois = function(size, p) dpois(x, size),
      nbinom = function(size, p) dnbinom(x, size, p, log = TRUE),
      mean = function(size, p) dnbinom(x, size, mu = 3 * p)
    ),
    c(3.5, 4.2, 5.1), c(0.2, 0.5, 0.9)
  )
})

test_each("densities are 0 outside the support, and correct at its boundary", {
  x <- c(-1, 0, 0.5, 1, 2)
  count <- function(f) function(...) suppressWarnings(f(...)) # stats warns about non-integers
  expect_as_base(
    list(
      exp = function(x, a) dexp(x, a), gamma = function(x, a) dgamma(x, 1, a), beta = function(x, a) dbeta(x, 1, a),
      log = function(x, a) dbeta(x, 2, a, log = TRUE), unif = function(x, a) dunif(x, 0, a),
      lnorm = function(x, a) dlnorm(x, a), weibull = function(x, a) dweibull(x, 1, a),
      pexp = function(x, a) pexp(x, a, log.p = TRUE), pweibull = function(x, a) pweibull(x, 0.5, a),
      survival = function(x, a) pexp(x, a, lower.tail = FALSE), chisq = function(x, a) dchisq(x, a * 2),
      geom = count(function(x, a) dgeom(x, a / 2)),
      pois = count(function(x, a) dpois(x, a)), binom = count(function(x, a) dbinom(x, 2, a / 2)),
      never = count(function(x, a) dbinom(x, 1, a - 1)), nbinom = count(function(x, a) dnbinom(x, 1, a))
    ),
    x, 1,
    gradient = FALSE
  )
  z <- c(-40, -12, -10.01, -9.99, -1, 0, 3, 9)
  expect_equal(bare(pnorm(variable(z), log.p = TRUE)), pnorm(z, log.p = TRUE), tolerance = 1e-12)
  expect_equal(gradient(function(a) sum(dexp(c(-1, 1), a)), 2), (1 - 2) * exp(-2))
  # also if the density of 0 is used in a function without derivative at 0: products by logarithms, as in N-mixtures
  rows <- function(x) exp(rowSums(log(matrix(x, 2))))
  never <- function(p) sum(rows(dbinom(c(0, 1, 2, 1), c(1, 2), p)))
  expect_equal(gradient(never, 0.3), numeric_gradient(never, 0.3), tolerance = 1e-8)
  expect_equal(objective(never, jit = TRUE)$gr(0.3), numeric_gradient(never, 0.3), tolerance = 1e-8)
  expect_true(is.nan(bare(dnorm(variable(NaN)))))
})

test_each("quantiles match stats over the whole range, and invert the distribution functions", {
  p <- c(0, 1e-300, 1e-20, 1e-5, 0.3, 0.5, 0.7, 1 - 1e-10, 1)
  expect_equal(bare(qnorm(variable(p))), qnorm(p), tolerance = 1e-14)
  expect_equal(bare(qnorm(variable(p), lower.tail = FALSE)), qnorm(p, lower.tail = FALSE), tolerance = 1e-14)
  log_p <- c(-Inf, -1e10, -1e5, -40, -1, -1e-5, -1e-300, 0)
  # R 4.2's own has 7 digits below -1e5: compare with the inverse there.
  middle <- log_p[4:6]
  expect_equal(bare(qnorm(variable(middle), log.p = TRUE)), qnorm(middle, log.p = TRUE), tolerance = 1e-13)
  z <- qnorm(variable(log_p), log.p = TRUE)
  expect_equal(bare(pnorm(z, log.p = TRUE)), log_p, tolerance = 1e-13)
  expect_true(all(is.nan(bare(qnorm(variable(c(-0.1, 1.1, NaN)))))))
  expect_true(all(is.nan(bare(qunif(variable(c(-0.1, 1.1)))))))
  expect_equal(bare(qexp(variable(c(-40, -1)), log.p = TRUE)), qexp(c(-40, -1), log.p = TRUE), tolerance = 1e-14)
  # The derivative is 1 / dnorm(z), the second one z / dnorm(z)^2.
  p <- c(1e-10, 0.01, 0.4, 0.9)
  z <- qnorm(p)
  expect_equal(gradient(function(p) sum(qnorm(p)), p), 1 / dnorm(z), tolerance = 1e-10)
  second <- function(p) sum(grad_fn(function(p) sum(qnorm(p)))(p))
  expect_equal(gradient(second, p), z / dnorm(z)^2, tolerance = 1e-9)
  expect_as_base(
    list(
      plnorm = function(x, a) plnorm(x, a), upper = function(x, a) plnorm(x, a, lower.tail = FALSE),
      punif = function(x, a) punif(x, 0, a, log.p = TRUE), pgeom = function(x, a) pgeom(x, a / 2),
      pcauchy = function(x, a) pcauchy(x * 1e20, a, log.p = TRUE)
    ),
    c(-2, -1, 0, 0.5, 1, 3), 1,
    gradient = FALSE
  )
})

test_each("a likelihood in ordinary R code has its score and information", {
  y <- c(2, 0, 3, 1, 6)
  loglik <- function(b) sum(dpois(y, exp(b[1] + b[2] * c(1, 2, 3, 4, 5)), log = TRUE))
  b <- c(0.1, 0.2)
  expect_equal(gradient(loglik, b), numeric_gradient(loglik, b), tolerance = 1e-6)
  mu <- exp(b[1] + b[2] * (1:5))
  expect_equal(unname(hessian(loglik, b)), -crossprod(cbind(1, 1:5) * sqrt(mu)), tolerance = 1e-6)
})

test_each("accuracy is kept where a negative binomial nears Poisson, and Student's t the normal distribution", {
  x <- c(0, 2, 7)
  mu <- 3
  # digamma(x + size) - digamma(size) is the sum of 1 / (size + j), j < x: subtract x / (size + mu) term by term.
  score <- function(size) {
    j <- sequence(x) - 1
    u <- mu / size
    size * (sum((mu - j) / ((size + j) * (size + mu))) +
      length(x) * if (u < 1e-3) -u^2 / 2 + 2 * u^3 / 3 - 3 * u^4 / 4 else u / (1 + u) - log1p(u))
  }
  f <- function(e) sum(dnbinom(x, size = exp(e), mu = mu, log = TRUE))
  for (size in c(1e-3, 1, 19, 21, 1e4, 1e8, 1e10, 1e12)) {
    expect_equal(gradient(f, log(size)), score(size), tolerance = 1e-9)
    # stats loses digits for large sizes as well: use the first order in 1 / size there.
    near <- dpois(x, mu, log = TRUE) + ((x - mu)^2 - x) / (2 * size)
    if (size < 1e6) near <- dnbinom(x, size, mu = mu, log = TRUE)
    expect_equal(bare(dnbinom(variable(x), size, mu = mu, log = TRUE)), near, tolerance = 1e-13)
  }
  # To the first order, log dt(x, df) - log dnorm(x) is (x^4 - 2 * x^2 - 1) / (4 * df).
  x <- c(-1, 0.5, 2.5)
  g <- function(e) sum(dt(x, exp(e), log = TRUE))
  for (df in c(1e8, 1e10, 1e12)) {
    expect_equal(gradient(g, log(df)), -sum(x^4 - 2 * x^2 - 1) / (4 * df), tolerance = 1e-7)
    expect_equal(
      bare(dt(variable(x), df, log = TRUE)), dnorm(x, log = TRUE) + (x^4 - 2 * x^2 - 1) / (4 * df),
      tolerance = 1e-13
    )
  }
  for (df in c(1e-3, 3, 39, 41, 1e3)) {
    expect_equal(bare(dt(variable(c(1e9, x)), df, log = TRUE)), dt(c(1e9, x), df, log = TRUE), tolerance = 1e-12)
    expect_equal(gradient(g, log(df)), numeric_gradient(g, log(df)), tolerance = 1e-6)
  }
  expect_equal(bare(dt(variable(x), Inf)), dnorm(x))
  expect_equal(bare(dnbinom(variable(c(0, 2)), Inf, mu = 3)), dpois(c(0, 2), 3))
})

test_each("a missing value has a missing density; infinity has density 0", {
  counts <- list(
    pois = function(x, a) dpois(x, a, log = TRUE), binom = function(x, a) dbinom(x, 5, a / 4, log = TRUE),
    size = function(x, a) dbinom(x, a, 0.3), nbinom = function(x, a) dnbinom(x, a, 0.3),
    mean = function(x, a) dnbinom(x, a, mu = 3), unif = function(x, a) dunif(x, 0, a),
    gamma = function(x, a) dgamma(x, a, 2), beta = function(x, a) dbeta(x / 4, a, 2),
    geom = function(x, a) dgeom(x, a / 4), pexp = function(x, a) pexp(x, a, log.p = TRUE),
    weibull = function(x, a) pweibull(x, a, 2)
  )
  for (f in counts) {
    for (x in list(variable(c(1, NaN)), c(1, NA))) {
      found <- bare(f(x, if (is.numeric(x)) variable(2) else 2))
      expect_equal(found[1], f(1, 2))
      expect_true(is.na(found[2]))
    }
  }
  expect_as_base(
    list(
      gamma = function(x, a) dgamma(x, a, 2), weibull = function(x, a) dweibull(x, a, 2),
      norm = function(x, a) dnorm(x),
      logis = function(x, a) dlogis(x, a), t = function(x, a) dt(x, a), lnorm = function(x, a) dlnorm(x, a),
      exp = function(x, a) dexp(x, a), pois = function(x, a) dpois(x, a), nbinom = function(x, a) dnbinom(x, a, 0.3),
      mean = function(x, a) dnbinom(x, a, mu = 3), binom = function(x, a) dbinom(x, 3, a / 2)
    ),
    c(-Inf, Inf, 1), 1,
    gradient = FALSE
  )
})

test_each("point masses are NaN", {
  expect_true(all(is.nan(bare(dnorm(variable(c(0, 1)), 0, 0)))))
  expect_true(is.nan(bare(dgamma(variable(0), 0, 2))))
})

# Values, and derivatives of their logarithm by the parameters (NA: not checked), by mpmath with 60 digits.
large <- list(
  list("dbeta", c(0.5, 1e8, 1e8), 11283.791656850386, c(2.50000000625e-9, 2.50000000625e-9)),
  list("dbeta", c(0.50003, 1e8, 1e8), 7872.4343305465755, c(6.0000700071951996e-5, -5.999930007194597e-5)),
  list("dbeta", c(0.999999, 1e8, 100), 3986101.673654099, c(-9.9502876067710026e-13, 0.0050093282782646243)),
  list("dbeta", c(1e-06, 25, 1e7), 731.74675038139774, c(-0.8961549698609292, 1.4999965000045667e-6)),
  list("dbeta", c(1e-08, 3, 1e8), 18393972.702361145, c(-0.92278431009846743, 1.9999999650000004e-8)),
  list("dbinom", c(5e7, 1e8, 0.5), 7.9788455880815396e-5, c(NA, 0.0)),
  list("dbinom", c(50010000, 1e8, 0.5), 1.0798193347630083e-5, c(NA, 40000.0)),
  list("dbinom", c(3, 1e8, 3e-08), 0.22404181101601493, c(NA, 8.9368190228357968e-9)),
  list("dbinom", c(99999970, 1e8, 0.9999997), 0.072634537366772899, c(NA, -0.015628155316353802)),
  list("dgamma", c(1e8, 1e8, 1), 3.9894228006898078e-5, c(5.0000000083333333e-9, 3.3333333333333333e-33)),
  list("dgamma", c(100010000, 1e8, 1), 2.4195459407843491e-5, c(0.00010000000033331667, -10000.0)),
  list("dgamma", c(0.001, 1e8, 1e11), 3989422.8006898077, c(5.000000029150015e-9, -2.0816681711721685e-20)),
  list("dchisq", c(1e8, 1e8), 2.8209479130372016e-5, c(5.0000000166666667e-9)),
  list("dpois", c(1e8, 1e8), 3.9894228006898078e-5, c(3.3333333333333333e-41)),
  list("dpois", c(100010000, 1e8), 2.4196265916438022e-5, c(0.0001)),
  list("df", c(1, 1e8, 1e8), 1994.7113970203849, c(2.5000000125e-9, 2.5000000125e-9)),
  list("df", c(1.0001, 1e8, 1e8), 1760.1726144544614, c(1.8750833372405334e-9, 1.8750416768231793e-9)),
  list("df", c(1, 1e8, 3), 0.46254098247319312, c(1.4999999650000009e-16, 0.18448756206479406)),
  list("df", c(1.2, 45, 1e12), 1.0555153515001542, c(0.0023541777928138533, 2.250000001068009e-24)),
  list("dnbinom", c(1e8, 1e8, 0.5), 2.8209479142125965e-5, c(2.50000000625e-9, 0.0)),
  list("dnbinom", c(100010000, 1e8, 0.5), 2.1968191443685115e-5, c(5.0001250166665105e-5, -20000.0)),
  list("dnbinom_mean", c(1e8, 1e8, 1e8), 2.8209479142125965e-5, c(2.50000000625e-9, 2.5e-41)),
  list("dnbinom_mean", c(30, 1e12, 30), 0.072634526470501977, c(1.4999999999555e-23, 3.3333333333333333e-41)),
  list("dt", c(3, 1e8), 0.0044318490988745194, c(-1.549999797500021e-15)),
  list("dhyper", c(5e7, 1e8, 1e8, 1e8), 0.00011283791628640907, c(NA, NA, NA)),
  list("dhyper", c(3, 1e8, 1e8, 6), 0.31250000468750009, c(NA, NA, NA))
)

test_each("densities are accurate for large counts and shapes", {
  for (case in large) {
    density <- switch(case[[1]],
      dnbinom_mean = function(x, size, mu, ...) dnbinom(x, size, mu = mu, ...),
      match.fun(case[[1]])
    )
    at <- case[[2]]
    said <- paste(case[[1]], toString(at))
    found <- do.call(density, unname(lapply(at, variable)))
    expect_equal(bare(found), case[[3]], tolerance = 1e-12, info = said)
    asked <- base::which(!is.na(case[[4]]))
    if (length(asked) == 0) next
    by <- function(p) {
      arguments <- as.list(at)
      for (i in seq_along(asked)) arguments[[asked[i] + 1]] <- p[i]
      do.call(density, c(arguments, log = TRUE))
    }
    slope <- case[[4]][asked]
    size <- at[asked + 1] # the derivative by its logarithm has terms as large as the counts, which are rounded
    rounding <- 1e-9 * abs(slope * size) + 1e-15 * max(at[at < 1e9])
    v <- variable(size, requires_grad = TRUE)
    expect_true(all(abs(bare(gradient(by(v), v)) - slope) * size <= rounding), info = said)
    expect_true(all(abs(gradient(by, size) - slope) * size <= 2 * rounding), info = said) # by a program later on
  }
  # several elements, some of them large
  x <- c(2, 30, 1e8)
  expect_equal(bare(dpois(variable(x), c(3, 30, 1e8))), dpois(x, c(3, 30, 1e8)), tolerance = 1e-13)
  shapes <- c(2, 2000, 3000)
  expect_equal(bare(dgamma(1:3 * 1e3, variable(shapes))), dgamma(1:3 * 1e3, shapes), tolerance = 1e-12)
  f <- function(p) sum(dbeta(c(0.3, 0.5), p, p, log = TRUE))
  for (p in c(2, 60, 400)) {
    expect_equal(gradient(f, p), numeric_gradient(f, p), tolerance = 1e-6)
    expect_equal(objective(f, jit = TRUE)$gr(p), gradient(f, p), tolerance = 1e-10)
    expect_equal(hessian(f, p)[1], numeric_gradient(function(p) gradient(f, p), p), tolerance = 1e-5)
  }
})

test_each("noncentral distributions match R, with derivatives by the noncentrality", {
  families <- list(
    chisq = list(c(0.3, 4, 20), c(3, 1.5, 7), c(2, 0.5, 9)), t = list(c(-1, 0.4, 5), c(3, 2.5, 9), c(1, -0.7, 2)),
    f = list(c(0.2, 1.3, 4), c(3, 1.5, 7), c(4, 9, 2.5), c(2, 0.5, 3)),
    beta = list(c(0.2, 0.5, 0.9), c(3, 1.5, 0.7), c(4, 2, 2.5), c(2, 0.5, 3))
  )
  for (name in names(families)) {
    given <- families[[name]]
    for (kind in c("d", "p", "q")) {
      at <- if (kind == "q") c(0.1, 0.5, 0.97) else given[[1]]
      digits <- if (kind == "q") 1e-7 else 1e-9 # of R's own
      of <- get(paste0(kind, name))
      expected <- do.call(get(paste0(kind, name), asNamespace("stats")), c(list(at), given[-1]))
      expect_equal(bare(do.call(of, c(list(variable(at)), given[-1]))), expected, tolerance = digits, info = name)
      last <- do.call(of, c(list(at), given[-c(1, length(given))], list(variable(given[[length(given)]]))))
      expect_equal(bare(last), expected, tolerance = digits, info = name)
      total <- function(v) {
        sum(do.call(of, c(lapply(seq_along(given) - 1, function(i) v[3 * i + 1:3]), list(log = TRUE)[kind == "d"])))
      }
      v <- c(at, unlist(given[-1]))
      expect_equal(gradient(total, v), numeric_gradient(total, v, 1e-6), tolerance = 1e-6, info = paste0(kind, name))
    }
  }
  # far in the tail, where R is inaccurate: mpmath's values
  expect_equal(bare(pchisq(variable(400), 3, 2, FALSE, TRUE)), -173.90810869155, tolerance = 1e-13)
  expect_equal(bare(pt(variable(1.3), Inf, 0.4)), pnorm(0.9), tolerance = 1e-12)
  expect_equal(bare(pf(variable(1.3), 3, Inf, 0.4)), pchisq(3.9, 3, 0.4), tolerance = 1e-12)
  expect_equal(bare(pchisq(variable(3), 2, 0)), pchisq(3, 2), tolerance = 1e-14)
  f <- function(ncp) pchisq(3, 2, ncp)
  expect_equal(as.vector(hessian(f, 1)), numeric_gradient(grad_fn(f), 1, 1e-5), tolerance = 1e-7)
  expect_equal(jit(f)(1.5), pchisq(3, 2, 1.5), tolerance = 1e-12)
})

test_once("probabilities have one-sided slopes at the end of a parameter's domain", {
  expect_equal(gradient(function(l) dpois(1, l), 0), 1)
  expect_equal(c(hessian(function(l) dpois(1, l), 0)), -2)
  expect_equal(gradient(function(p) dbinom(1, 4, p), 0), 4)
  expect_equal(gradient(function(p) dgeom(1, p), 1), -1)
  expect_equal(gradient(function(m) dnbinom(1, 2.5, mu = m), 0), 1)
  expect_equal(gradient(function(l) qpois(0.9, l), 0), 0)
})

test_each("result sizes need no extra call, and recycling follows R", {
  half <- function(x) variable(x) * 0.5
  into_python <- function(code) profile_call(code(), times = 20L)$crossings$count[[1L]]
  halves <- into_python(\() half(c(1, 2))) + into_python(\() half(3))
  expect_equal(into_python(\() dnorm(half(c(1, 2)), half(3))) - halves, 1, tolerance = 0.2)
  given <- list(3, c(1, 2), c(1, 2, 3, 4), matrix(c(1, 2, 3, 4), 2))
  for (x in given) {
    for (m in given) {
      for (found in list(dnorm(half(x), half(m), log = TRUE), dnorm(x / 2, half(m), log = TRUE))) {
        expect_equal(as.vector(values_of(found)), c(dnorm(x / 2, m / 2, log = TRUE)), tolerance = 1e-6)
      }
    }
  }
})

test_each("settings may be numbers and arguments may be empty, as in R", {
  x <- c(0.3, 1.6)
  expect_equal(gradient(function(s) sum(dnorm(x, 0, s, 1)), 1.3), sum(x^2) / 1.3^3 - 2 / 1.3, tolerance = 1e-5)
  expect_equal(gradient(function(s) sum(dnorm(x, , s, log = 1L)), 1.3), sum(x^2) / 1.3^3 - 2 / 1.3, tolerance = 1e-5)
  shape <- function(f) function(a) sum(f(x, a, 2, lower.tail = -1, log.p = 0))
  at <- 1.4
  expect_equal(gradient(shape(pgamma), at), numeric_gradient(shape(stats::pgamma), at, 1e-4), tolerance = 1e-4)
  expect_equal(as.vector(gradient(function(s) sum(dgamma(x, 2, , s)), 1.3)), sum(
    stats::dgamma(x, 2, scale = 1.3) * (x / 1.3^2 - 2 / 1.3)
  ), tolerance = 1e-5)
  expect_equal(as.vector(qpois(op_array(c(0.3, 0.6)), lambda = c(2, 3), )), c(1, 3))
})

test_once("a compiled objective accepts numbers as settings", {
  local_backend("numpy")
  o <- objective(function(p) -sum(dnorm(c(0.3, 1.6), p[1], exp(p[2]), 1)), jit = TRUE)
  expect_equal(o$fn(c(0.1, 0.2)), -sum(stats::dnorm(c(0.3, 1.6), 0.1, exp(0.2), TRUE)), tolerance = 1e-12)
})

test_once("a parameter that is recycled in a density is one value of the program", {
  local_backend("numpy")
  y <- seq(0.1, 4, length.out = 60)
  X <- cbind(1, sin(y))
  joint <- function(dgamma) function(p) -sum(dgamma(y, exp(p[3]), scale = exp(X %*% p[1:2]) / exp(p[3]), log = TRUE))
  p <- c(0.1, 0.2, 0.3)
  o <- objective(joint(dgamma), jit = TRUE)
  expect_equal(o$fn(p), joint(stats::dgamma)(p), tolerance = 1e-12)
  expect_equal(o$gr(p), numeric_gradient(joint(stats::dgamma), p), tolerance = 1e-7)
  steps <- as.numeric(sub(".*: ([0-9]+) steps.*", "\\1", explain(o)[1]))
  expect_lt(steps, 200)
})
