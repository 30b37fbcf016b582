# Integers and logicals in R's arithmetic, which counts logicals and computes powers and products as doubles.

test_each("logicals are counted", {
  x <- c(0.5, 1.5, 2.5)
  w <- c(TRUE, FALSE, TRUE)
  m <- op_array(x) > 1
  plain <- x > 1
  both <- list(
    sum = function(m, w) m + w, twice = function(m, w) m + m, one = function(m, w) m + TRUE,
    less = function(m, w) m - w, times = function(m, w) m * w, power = function(m, w) m^w,
    whole = function(m, w) m %/% (w | TRUE),
    rest = function(m, w) m %% (w | TRUE), crossed = function(m, w) crossprod(m, w), inner = function(m, w) m %*% w,
    steps = function(m, w) diff(m), product = function(m, w) prod(m), running = function(m, w) cumprod(m),
    groups = function(m, w) c(tapply(m, c(1, 2, 2), sum))
  )
  for (name in names(both)) {
    f <- both[[name]]
    expected <- as.vector(f(plain, w)) + 0
    expect_equal(as.vector(f(m, w)), expected, info = name)
    expect_equal(as.vector(f(m, op_array(w))), expected, info = name)
  }
  expect_equal(as.vector(rowsum(m, c(1, 2, 2))), c(0, 2))
  expect_equal(as.vector(op_segment_sum(c(TRUE, TRUE, FALSE), c(1, 1, 2))), c(2, 0))
  # as in a differentiated function, where comparisons are R's
  steps <- function(b) sum(((b > 1) + (b > 2)) * b)
  expect_equal(as.vector(steps(op_array(x))), steps(x))
  expect_equal(gradient(steps, x), c(0, 1, 2))
})

test_each("powers and products of integers are doubles", {
  expect_equal(as.vector(prod(op_array(1:25))), prod(1:25))
  expect_equal(as.vector(cumprod(op_array(1:25))), cumprod(1:25))
  expect_equal(as.vector(op_array(10L)^20L), 1e20)
  expect_equal(as.vector(op_array(c(2L, 4L))^-1L), c(0.5, 0.25))
  expect_equal(as.vector(2L^op_array(c(-1L, 3L))), c(0.5, 8))
  expect_equal(as.vector(prod(op_array(c(2, 3)), 1i)), 6i)
})

test_each("integer division by 0 is an error", {
  x <- op_array(5:6)
  for (f in list(function(y) x %/% y, function(y) x %% y, function(y) op_floor_divide(7:8, y))) {
    expect_error(f(0L), "`x2` must not be 0", class = "gradops_error_argument")
    expect_error(f(op_array(c(1L, 0L))), "`x2` must not be 0", class = "gradops_error_argument")
    expect_true(all(!is.finite(as.vector(f(0)))))
  }
  expect_error(op_power(x, -1L), "`x2` must not be negative", class = "gradops_error_argument")
})
