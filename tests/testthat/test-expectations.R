# The short ways of helper-expectations.R pass what testthat passes, and nothing else.

test_once("equal values pass and different ones fail", {
  x <- 2
  expect_success(expect_equal(1L, 1))
  expect_success(expect_equal(c(a = 1, b = 2), c(a = 1, b = 2 + 1e-12)))
  expect_success(expect_equal(c(a = 1), c(b = 1), ignore_attr = TRUE))
  expect_success(expect_equal(1, 1.05, tolerance = 0.1))
  for (special in list(NA, NA_real_, NaN, Inf, -Inf, c(1, NA), NULL, list(), factor("a"))) {
    expect_success(expect_equal(special, special))
    expect_failure(expect_equal(special, 3))
    expect_failure(expect_equal(3, special))
  }
  expect_failure(expect_equal(Inf, -Inf))
  expect_failure(expect_equal(c(1, Inf), c(1, -Inf)))
  expect_failure(expect_equal(c(0, 1), c(1e-3, 1)))
  expect_failure(expect_equal(c(a = 1), c(b = 1)))
  expect_failure(expect_equal(factor("a"), factor("b")))
  expect_failure(expect_equal(list(1), list(2)))
  expect_failure(expect_equal(x, 1), "`x`|x \\(")
  expect_failure(expect_identical(1L, 1))
  expect_failure(expect_true(NA))
  expect_success(expect_true(c(a = TRUE)))
  expect_failure(expect_false(TRUE))
})
