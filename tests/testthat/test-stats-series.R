# Time series in differentiated or compiled functions: R's operators align them by time.

y <- ts(c(1, 2, 4, 7, 11, 16, 15), start = c(2000, 2), frequency = 4)
z <- ts(c(0.5, 1, -1, 2, 3), start = c(2000, 4), frequency = 4)
both <- ts(matrix(c(1, 2, 3, 4, 5, 6, 7, 8), 4), start = c(2000, 3), frequency = 4)

# Checks values and derivatives against R's own numbers.
expect_as_r <- function(f, at = 0.5) {
  expect_equal(value_and_grad(f)(at)$value, f(at))
  expect_equal(gradient(f, at), central(f, at), tolerance = 1e-6)
  compiled <- jit(f)
  expect_equal(as.numeric(compiled(at)), f(at))
  expect_equal(as.numeric(jit(grad_fn(f))(at)), central(f, at), tolerance = 1e-6)
}

central <- function(f, at, h = 1e-5) {
  vapply(seq_along(at), function(i) (f(replace(at, i, at[i] + h)) - f(replace(at, i, at[i] - h))) / (2 * h), 0)
}

test_each("a series and its lags are aligned", {
  lag <- stats::lag
  expect_as_r(function(phi) sum((y - phi * lag(y, -1))^2))
  expect_as_r(function(p) sum((y - p[1] - p[2] * lag(y, -1) - p[3] * lag(y, -2))^2), c(0.1, 0.5, 0.2))
  expect_as_r(function(phi) sum((phi * lag(y, -1) - y)^2))
  expect_as_r(function(phi) sum((phi * lag(y, -1) - phi^2 * y)^2))
  expect_as_r(function(phi) sum((y - exp(phi * lag(y, -1) / 10))^2))
  expect_as_r(function(phi) sum(-(phi * lag(y, -1)) * sqrt(phi * y)))
  expect_as_r(function(b) sum((y - b * z)^2))
  expect_as_r(function(b) sum((diff(y) - b * lag(diff(y), -1))^2))
  expect_as_r(function(b) sum(((y > b * z) + 0) * b^2))
  expect_as_r(function(b) sum(y * b))
  expect_as_r(function(b) sum((y - b * y)[2:4] * 1:3))
  expect_as_r(function(b) sum((both - b * lag(both, 1))^2 * b))
  expect_as_r(function(b) sum(log(cumsum(y * b)) / y))
})

test_each("tensors derived from series act like series in R", {
  lag <- stats::lag
  expect_as_r(function(b) sum((y - lag(b * y, -1))^2))
  expect_as_r(function(b) sum((lag(b * y, 2) - b^2 * lag(y, -1))^2))
  expect_as_r(function(b) sum(window(b * y, start = c(2000, 4)) * y))
  expect_as_r(function(b) sum(window(b * y, end = c(2001, 1)) * lag(y, 1)))
  expect_as_r(function(b) sum(time(b * y) * cycle(b * y) * b * y) * end(b * y)[1] / frequency(b * y) * deltat(b * y))
  expect_as_r(function(b) sum(diff(b * y) * diff(y)))
  expect_as_r(function(b) sum(diff(b * y, lag = 2) * lag(y, -1)))
  expect_as_r(function(b) sum((b * lag(y, -1) > 1.1) * y * b))
  expect_as_r(function(b) sum(gamma(b * lag(y, -1) / 5) * y))
  expect_as_r(function(b) sum((b * both)[, 2] * lag(y, 1)) + sum((b * both)[, 1, drop = FALSE] * y))
  # by position, as in R
  expect_as_r(function(b) sum(dnorm(y, b * lag(y, -1), 3, log = TRUE)))
  expect_as_r(function(b) sum(cumsum(b * lag(y, -1)) * y))
  expect_as_r(function(b) sum(as.numeric(b * lag(y, -1)) * y))
  expect_as_r(function(b) sum((b * lag(y, -1))[1:3] * y[2:4]))
  expect_as_r(function(b) sum(pmax(b * y, 2) * y))
  expect_as_r(function(b) sum(ifelse(y > 2, b * y, 0) * y))
  expect_as_r(function(b) sum(stats::filter(y, c(b, b^2), sides = 1)[-1]))
  expect_as_r(function(b) sum(crossprod(y, b * lag(y, -1))))
})

test_each("an autoregression is fitted like arima()", {
  series <- lh # from datasets: 48 values
  deviance <- function(p) sum((series - p[2] - p[1] * (stats::lag(series, -1) - p[2]))^2)
  fit <- optim(c(0, 2), objective(deviance)$fn, objective(deviance)$gr, method = "BFGS", control = list(reltol = 1e-14))
  expect_equal(fit$par, unname(coef(arima(series, c(1, 0, 0), method = "CSS"))), tolerance = 1e-3)
})

test_each("series may be arguments", {
  lag <- stats::lag
  at <- ts(c(1, 2, 4, 7, 11, 16), start = 2000)
  expect_as_r(function(x) sum((x - 0.5 * lag(x, -1))^2), at)
  expect_as_r(function(x) sum((x - lag(at, 1))^2 * x), at)
  expect_as_r(function(x) sum(window(x, 2002) * diff(x)), at)
  expect_as_r(function(x) sum(x * x), at)
  f <- function(p) sum((p$y - p$b * lag(p$y, -1))^2)
  at <- list(y = at, b = 0.5)
  found <- value_and_grad(f)(at)
  expect_equal(found$value, f(at))
  expect_equal(found$gradient$b, central(function(b) f(list(y = at$y, b = b)), 0.5), tolerance = 1e-6)
  expect_equal(jacobian(function(x) x - lag(x, -1), at$y), diff(diag(6)))
  compiled <- jit(function(x, y) sum(x * y)) # other times lead to another program
  for (z in list(at$y, lag(at$y, 1), lag(at$y, -2))) expect_equal(as.numeric(compiled(at$y, z)), sum(at$y * z))
})

test_each("functions that keep the time attributes in R keep them here", {
  lag <- stats::lag
  expect_as_r(function(b) sum(y - ifelse(lag(y, -1) > 3, b * lag(y, -1), b^2)))
  expect_as_r(function(b) sum(y * ifelse(b * lag(y, -1) > 2.2, b, 1)))
  expect_as_r(function(b) sum(y - pmax(b * lag(y, -1), 2.1)))
  expect_as_r(function(b) sum(y * dnorm(lag(y, -1), b, 2)))
  expect_as_r(function(b) sum(y * pexp(b * lag(y, -1))))
  expect_as_r(function(b) sum(y * stats::filter(lag(y, 1), c(b, b^2), sides = 1), na.rm = TRUE))
  expect_as_r(function(b) {
    r <- b * lag(y, -1)
    r[2] <- b^2
    sum(y * r)
  })
  expect_as_r(function(b) {
    r <- lag(y, -1)
    r[2:3] <- b * y[4:5]
    sum(y * r)
  })
  expect_as_r(function(b) sum(sapply(list(y, z), function(s) sum(s - as.vector(cbind(1, seq_along(s)) %*% c(b, b^2))))))
  expect_as_r(function(b) sum(rev(b * lag(y, -1)) * y))
})

test_each("incompatible series are an error", {
  refused <- function(f, ...) expect_error(gradient(f, 0.5), ..., class = "gradops_error_argument")
  refused(function(b) sum(y - b * ts(1:3, start = 1990, frequency = 4)), "no time in common")
  refused(function(b) sum(y - b * ts(1:3, start = 2000, frequency = 12)), "frequencies")
  refused(function(b) sum(cbind(b * y, b * stats::lag(y, 1))), "their times differ")
  refused(function(b) sum(cbind(b * y, matrix(1:2, 1))), "their times differ")
  expect_as_r(function(b) sum(cbind(b * y, 2, 1:7)[, 1] * y))
  expect_as_r(function(b) sum(stats::lag(cbind(b * y, 2, 1:7), 1) * cbind(y, y, y)))
  aligned <- ts.intersect(y, stats::lag(y, -1))
  expect_as_r(function(b) sum((aligned[, 1] - exp(b * aligned[, 2] / 10))^2))
  expect_equal(gradient(function(b) sum(op_exp(b * y)), 0.5), sum(exp(0.5 * y) * y)) # its values
})

test_each("correlations of series in differentiated code match R", {
  x <- c(1, 3, 2, 5, 4, 6, 8, 7.5)
  cases <- list(
    function(v) acf(v, 3, plot = FALSE),
    function(v) acf(ts(v, frequency = 4), type = "covariance", plot = FALSE, demean = FALSE),
    function(v) acf(matrix(v, 4), plot = FALSE), function(v) pacf(v, plot = FALSE),
    function(v) acf(as.ts(v), 2, "partial", plot = FALSE), function(v) ccf(v, x^2, 2, plot = FALSE)
  )
  for (case in cases) {
    found <- NULL
    f <- function(v) {
      found <<- case(v)
      sum(found$acf^2)
    }
    expect_equal(gradient(f, x), numeric_gradient(f, x), tolerance = 1e-7)
    f(x)
    expected <- found
    expect_equal(jit(f)(x), sum(expected$acf^2))
    gradient(f, x)
    expect_equal(found$lag, expected$lag)
    expect_equal(dim(found$acf), dim(expected$acf))
  }
  of_part <- function(v) sum(window(ts(v, start = 2000, end = 2004), 2002)^2)
  expect_equal(gradient(of_part, x), c(0, 0, 4, 10, 8, 0, 0, 0))
})

test_each("R's own time series code accepts tensors", {
  z <- ts(c(3, 5, 2, 4, 4, 6.5, 2.2, 5, 5, 7, 3, 5.5, 6, 8.1, 3.9, 7), start = 2000, frequency = 4)
  bent <- function(v) ts(as.vector(z) + v[1] * sin(1:16) + v[2] * (1:16) / 9, start = 2000, frequency = 4)
  all_of <- function(parts) sum(unlist(lapply(parts, function(x) sum(x^2, na.rm = TRUE))))
  cases <- list(
    function(v) all_of(decompose(bent(v))[c("trend", "random", "figure")]),
    function(v) all_of(decompose(bent(v), "multiplicative")[c("seasonal", "random")]),
    function(v) HoltWinters(bent(v), v[2], 0.2, 0.1)$SSE,
    function(v) sum(HoltWinters(bent(v), 0.5, 0.2, v[2], "multiplicative")$fitted^2),
    function(v) sum(HoltWinters(z, v[1], v[2], FALSE)$coefficients^2),
    function(v) sum(kernapply(as.vector(bent(v)), kernel("daniell", 2))^2),
    function(v) sum(spec.pgram(bent(v), spans = 3, plot = FALSE)$spec^2),
    function(v) sum(ar(bent(v), FALSE, 2)$ar^2), function(v) sum(acf2AR(c(1, v, 0.1))^2),
    function(v) sum(ARMAacf(v[1], v[2], 4, pacf = TRUE)^2), function(v) sum(na.omit(filter(bent(v), rep(1, 3)))^2)
  )
  for (f in cases) expect_equal(gradient(f, c(0.3, 0.4)), central(f, c(0.3, 0.4)), tolerance = 1e-6)
  if (backend == "numpy") for (f in cases[c(2, 3)]) expect_as_r(f, c(0.3, 0.4))
})
