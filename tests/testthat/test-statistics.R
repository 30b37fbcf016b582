test_each("summaries are base R's", {
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
  expect_equal(bare(quantile(x, op_convert_to_tensor(0.3))), unname(quantile(v, 0.3)))
  expect_equal(gradient(sd, c(2, 2, 2)), c(0, 0, 0))
})

test_each("missing values count or are left out", {
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

test_each("missing data are left out before they meet parameters", {
  y <- airquality$Ozone
  x <- airquality$Temp
  squares <- function(b) mean((y - b[1] - b[2] * x)^2, na.rm = TRUE)
  expect_equal(bare(squares(variable(c(1, 1)))), squares(c(1, 1)))
  expect_true(anyNA(gradient(squares, c(1, 1))))
  expect_equal(unname(gradient(function(y) sum(y, na.rm = TRUE), c(1, NA))), c(1, 0))
  ok <- !is.na(y)
  complete <- function(b) mean((y[ok] - b[1] - b[2] * x[ok])^2)
  residuals <- (y - 1 - x)[ok]
  expect_equal(gradient(complete, c(1, 1)), -2 * c(mean(residuals), mean(residuals * x[ok])))
})
