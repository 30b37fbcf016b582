test_contract("summaries match base R", {
  m <- matrix(c(3, 1, 2, 5, 4.5, 6, 7, 0.5), 4)
  v <- c(2, 7, 1, 4)
  expect_as_base(
    list(
      mean = function(m, v) mean(m),
      trimmed = function(m, v) mean(v, trim = 0.25),
      weighted = function(m, v) weighted.mean(m[, 1], v),
      var = function(m, v) var(v),
      matrix = function(m, v) var(m),
      cov = function(m, v) cov(m, v),
      cor = function(m, v) cor(m[, 1], v),
      correlations = function(m, v) cor(m),
      sd = function(m, v) sd(m),
      median = function(m, v) median(v),
      range = function(m, v) range(m, 4),
      quartiles = function(m, v) quantile(m),
      pmax = function(m, v) pmax(m, v, 2.2),
      pmin = function(m, v) pmin(4.2, v),
      row_sums = function(m, v) rowSums(m),
      col_means = function(m, v) colMeans(m),
      planes = function(m, v) rowMeans(array(m, c(2, 2, 2)), dims = 2),
      blocks = function(m, v) colSums(array(m, c(2, 2, 2)), dims = 2),
      scale = function(m, v) scale(m),
      centred = function(m, v) scale(m, scale = FALSE),
      by_hand = function(m, v) scale(m, center = c(1, 2), scale = v[1:2]),
      spread = function(m, v) max(v) - min(m, 9)
    ),
    m, v
  )
  expect_as_base(
    sapply(1:9, function(type) function(v) quantile(v, c(0, 0.1, 0.37, 0.5, 1), type = type)),
    c(v, 3, 9, 5.5)
  )
  x <- op_convert_to_tensor(v)
  expect_identical(names(quantile(x, 0.5)), "50%")
  expect_identical(names(quantile(x, 1 / 3, digits = 3)), "33.3%")
  expect_equal(bare(quantile(x, op_convert_to_tensor(0.3))), unname(quantile(v, 0.3)))
  expect_equal(gradient(sd, c(2, 2, 2)), c(0, 0, 0))
})

test_each("missing values propagate or are removed", {
  v <- c(2, NaN, 1, 4, 9)
  x <- variable(v)
  quarter <- function(x, ...) quantile(x, 0.25, ...)
  sums <- function(x, ...) rowSums(rbind(x, 1), ...)
  for (f in list(mean, median, var, sd, sums)) {
    expect_equal(bare(f(x, na.rm = TRUE)), bare(f(v, na.rm = TRUE)))
    expect_true(anyNA(bare(f(x))))
  }
  expect_equal(bare(quarter(x, na.rm = TRUE)), unname(quarter(v, na.rm = TRUE)))
  expect_true(anyNA(bare(quarter(x))))
  expect_equal(bare(pmax(x, 3, na.rm = TRUE)), pmax(v, 3, na.rm = TRUE))
  expect_equal(gradient(function(x) mean(x, na.rm = TRUE), v), c(1, 0, 1, 1, 1) / 4)
  expect_equal(bare(weighted.mean(x, 1:5, na.rm = TRUE)), weighted.mean(v, 1:5, na.rm = TRUE))
  expect_equal(bare(weighted.mean(v[3:5], variable(1:3))), weighted.mean(v[3:5], 1:3))
  expect_error(weighted.mean(x, c(1, 2)), "2 for 5", class = "gradops_error_argument")
  expect_error(cor(x, x, method = "kendall"), class = "gradops_error_argument")
  expect_error(cor(x), class = "gradops_error_argument")
  expect_error(cov(x, c(1, 2)), "5 and 2", class = "gradops_error_shape")
  expect_error(rowSums(x), class = "gradops_error_argument")
})

test_each("values removed as missing do not affect the gradient, wherever missing data enter", {
  y <- airquality$Ozone[1:40]
  x <- cbind(1, airquality$Temp[1:40])
  holes <- replace(x, 43, NA)
  known <- !is.na(y)
  left_out <- list(
    sum = function(b) sum(((y - b[1] - x[, 2] * b[2]) / exp(b[2]))^2, na.rm = TRUE),
    mean = function(b) mean(exp(-(y - x %*% b)^2 / 1e4) * b[1], na.rm = TRUE),
    product = function(b) sum((y - as.vector(holes %*% b))^2 * b[2], na.rm = TRUE),
    crossed = function(b) sum(exp(crossprod(b, t(holes)) / 100) * b[1], na.rm = TRUE),
    outer = function(b) sum(outer(holes[1:5, 2], b)^2 / b[1], na.rm = TRUE),
    chosen = function(b) sum(ifelse(is.na(y), 0, -(y - b[1])^2 * b[2])),
    subset = function(b) sum((((y - b[1]) * b[2])[1:30] * b[1])[known[1:30]]),
    power = function(b) sum((y^b[2] - 1) / b[2] + b[1]^(y / 100), na.rm = TRUE),
    extremes = function(b) diff(range((y - b[1])^2 * b[2], na.rm = TRUE)) + max(pmax(y, b[1]) * b[2], na.rm = TRUE),
    spread = function(b) var((y - b[1])^2 * b[2], na.rm = TRUE) + sd(y * b[2], na.rm = TRUE),
    rows = function(b) sum(rowMeans((matrix(y, 8) - b[1])^2 * b[2], na.rm = TRUE)^2),
    density = function(b) sum(b[1] * dnorm(y, holes %*% b, 10 * b[2], log = TRUE)^2, na.rm = TRUE),
    tail = function(b) sum(b[1] * pnorm(y, 10, 30 * b[2], log.p = TRUE) * pgamma(y / 20, b[1]), na.rm = TRUE),
    loop = function(b) {
      squares <- numeric(6)
      for (i in 1:6) squares[i] <- ((y[i] - b[1]) * b[2])^2
      sum(squares, na.rm = TRUE)
    }
  )
  p <- c(1.5, 0.7)
  for (name in names(left_out)) {
    f <- left_out[[name]]
    expected <- numeric_gradient(f, p)
    for (jit in c(FALSE, TRUE)) {
      of <- objective(f, jit = jit)
      expect_equal(of$fn(p), f(p), tolerance = 1e-12, info = name)
      expect_equal(of$gr(p), expected, tolerance = 1e-6, info = name)
    }
  }
  expect_equal(
    hessian(left_out$sum, p), jacobian(function(p) gradient(function(b) left_out$sum(b), p), p), tolerance = 1e-8
  )
  curved <- function(b) sum((y - b)^2, na.rm = TRUE)
  expect_equal(as.vector(hessian(curved, 1)), 2 * sum(known))
  expect_equal(unname(gradient(function(y) sum(y, na.rm = TRUE), c(1, NA))), c(1, 0))
})

test_each("missing results have missing derivatives", {
  y <- c(1, NA, 3)
  expect_true(is.nan(gradient(function(m) sum((y - m)^2), 0)))
  expect_true(is.nan(objective(function(m) sum((y - m)^2), jit = TRUE)$gr(0)))
  expect_true(is.nan(jacobian(function(m) (y - m)^2, 0)[2]))
  expect_true(all(is.nan(jacobian(function(m) (y - m)^2 + m, c(0, 1, 2))[2, ])))
  expect_true(is.nan(hessian(function(m) sum((y - m)^2), 0)))
  m <- variable(c(0, 1, 2), requires_grad = TRUE)
  backward(sum((y - m)^2))
  expect_true(is.na(as.vector(m$grad)[2]))
  expect_equal(bare((NA^variable(c(0, 1)))), c(1, NaN))
  expect_equal(bare((variable(c(1, 2))^NA)), c(1, NaN))
})

test_each("var() is missing where R's is", {
  for (n in 0:1) {
    x <- op_array(numeric(n) + 1)
    values <- suppressWarnings(list(var(x), sd(x), cov(x, x), cor(x, x), var(op_array(matrix(1, n, 2)))))
    for (value in values) {
      expect_true(all(is.nan(as.vector(value))))
    }
  }
})

test_each("elementwise results have the shape of the first argument of the largest size", {
  m <- matrix(c(-1, 2, 3, -4), 2)
  x <- op_array(m)
  expect_equal(bare(pmax(0, x)), base::pmax(m, 0))
  expect_equal(bare(atan2(1, x)), base::atan2(m * 0 + 1, m))
  expect_equal(bare(dnorm(c(1, 2, 3, 4), x)), stats::dnorm(c(1, 2, 3, 4), m))
  expect_equal(bare(dnorm(1, x)), stats::dnorm(1, m))
})

test_each("products of arrays use them as matrices", {
  a <- base::array(1:12 / 4, c(2, 3, 2))
  expect_equal(bare(var(op_array(a))), stats::var(a))
  expect_equal(bare(ave(op_array(a[, , 1]), rep(1:2, 3))), stats::ave(a[, , 1], rep(1:2, 3)))
  expect_equal(bare(crossprod(op_array(a))), base::crossprod(a)) # base R's crossprod() treats it as a vector
  expect_equal(bare(tcrossprod(op_array(a), 1:12)), base::tcrossprod(a, 1:12))
  turned <- base::aperm(a, c(1, 3, 2))
  expect_equal(bare(op_array(a) %*% op_array(turned)), bare(op_matmul(a, turned)))
})

test_each("quantiles are differentiable in their probabilities", {
  x <- c(3, 1, 4, 1.5, 9, 2.6)
  p <- c(0.3, 0.77)
  for (type in 1:9) {
    of_numbers <- function(p) sum(quantile(x, p, type = type) * 1:2)
    expect_equal(objective(of_numbers)$fn(p), of_numbers(p))
    expect_equal(gradient(of_numbers, p), numeric_gradient(of_numbers, p), tolerance = 1e-6)
    of_both <- function(p) unname(quantile(p[1:3], p[4], type = type))
    expect_equal(gradient(of_both, c(1, 5, 2, 0.3)), numeric_gradient(of_both, c(1, 5, 2, 0.3)), tolerance = 1e-6)
  }
  with_missing <- function(p) unname(quantile(c(x, NA), probs = p, na.rm = TRUE))
  expect_equal(gradient(with_missing, 0.3), 5.5)
  if (backend == "numpy") expect_equal(objective(of_numbers, jit = TRUE)$gr(p), gradient(of_numbers, p))
})

test_each("R's own code for principal components, densities and tests accepts tensors", {
  x <- c(1, 3, 2, 5, 4, 6, 8, 7.6)
  m <- function(v) matrix(c(v, v^1.3, sin(v)), ncol = 3)
  cases <- list(
    function(v) sum(prcomp(m(v))$sdev^3), function(v) sum(prcomp(m(v), scale. = TRUE)$x^4),
    function(v) with(La.svd(m(v)), sum((u %*% diag(d + 1) %*% vt)^2)), function(v) kappa(m(v), exact = TRUE),
    function(v) sum(density(v, n = 16)$y^2), function(v) unname(Box.test(v, 2, "Ljung")$statistic),
    function(v) sum(density(v, 1, kernel = "epan", weights = (1:8) / 36, n = 16, from = 2.1, to = 6)$y^2),
    function(v) bw.nrd(v), function(v) sum(pmax.int(v, 4)^2 - pmin.int(3, v)^2),
    function(v) sum(princomp(m(v)[, 1:2])$sdev^3), function(v) sum(cmdscale(dist(m(v)))^4),
    function(v) sum(as.dist(crossprod(m(v)))^2),
    function(v) sum(unlist(medpolish(matrix(v, 4), trace.iter = FALSE)[2:3])^2),
    function(v) sum(rle(v)$values^2), function(v) sum(unsplit(split(v, 1:8 > 3), 1:8 > 3) * v),
    function(v) sum(fivenum(v)^2)
  )
  for (f in cases) {
    found <- value_and_grad(f)(x + 0.013)
    expect_equal(found$value, f(x + 0.013), tolerance = 1e-9)
    expect_equal(found$gradient, numeric_gradient(f, x + 0.013), tolerance = 1e-5)
  }
  expect_equal(jit(cases[[1]])(x), cases[[1]](x))
})

test_each("R's hypothesis tests and power calculations accept tensors", {
  y <- c(2, 3, 1, 5, 4, 7, 6, 9)
  cases <- list(
    function(v) t.test(v, y)$p.value, function(v) sum(t.test(v - y)$conf.int^2), function(v) var.test(y, v)$p.value,
    function(v) bartlett.test(v, gl(2, 4))$p.value, function(v) sum(cor.test(v, y)$conf.int),
    function(v) suppressWarnings(chisq.test(matrix(v, 4))$p.value), function(v) binom.test(3, 10, v[1] / 9)$p.value,
    function(v) prop.test(v[1:2] * 10, c(100, 120))$p.value, function(v) sum(p.adjust(v / 20, "BH")^2),
    function(v) power.t.test(20, v[1] / 3, v[2])$power, function(v) power.prop.test(20, v[1] / 10, v[2] / 10)$power
  )
  for (f in cases) {
    found <- value_and_grad(f)(x <- c(1.03, 3.11, 2.47, 5.02, 4.1, 6.6, 8.8, 7.6))
    expect_equal(found$value, f(x), tolerance = 1e-9)
    expect_equal(found$gradient, numeric_gradient(f, x), tolerance = 1e-5)
  }
  if (backend == "numpy") expect_equal(objective(cases[[1]], jit = TRUE)$gr(x), gradient(cases[[1]], x))
})

test_each("zapsmall() matches R, and has zero slope where it rounds", {
  for (x in list(c(1, 1e-20, 3.123456789), c(0, 0), c(1e9, 1.7), c(NaN, 1e-9, 2))) {
    expect_equal(as.vector(zapsmall(variable(x))), base::zapsmall(x), tolerance = 1e-14)
  }
  x <- c(pi * 1e4, 1 / 7, -2.51)
  for (digits in 1:9) expect_equal(as.vector(zapsmall(variable(x), digits)), base::zapsmall(x, digits), tolerance = 1e-14)
  options <- list(list(min.d = -3L), list(mFUN = function(x, ina) 0), list(mFUN = function(x, ina) min(abs(x[!ina]))))
  for (option in if (getRversion() >= "4.4.0") options) {
    found <- do.call(zapsmall, c(list(variable(x), 2), option))
    expect_equal(as.vector(found), do.call(base::zapsmall, c(list(x, 2), option)), tolerance = 1e-14)
  }
  expect_equal(as.vector(zapsmall(variable(x), 2, min.d = -3L)), c(31400, 0, 0))
  expect_equal(gradient(function(x) sum(zapsmall(x) * x), c(1, 1e-20)), c(1, 0))
  expect_equal(jit(function(x) zapsmall(x))(c(1, 1e-20)), c(1, 0))
})
