# testthat's comparisons of values that are plainly equal: testthat itself takes milliseconds to prepare the report of a
# difference that is not there. All other values are passed on.

expect_equal <- function(object, expected, ..., tolerance = testthat_tolerance(), info = NULL, label = NULL,
                         expected.label = NULL) {
  if (...length() == 0 && (identical(object, expected) || are_close_numbers(object, expected, tolerance))) {
    return(passed(object))
  }
  testthat::expect_equal(
    object, expected, ...,
    tolerance = tolerance, info = info,
    label = label %||% deparsed(substitute(object)), expected.label = expected.label %||% deparsed(substitute(expected))
  )
}

expect_identical <- function(object, expected, info = NULL, label = NULL, expected.label = NULL, ...) {
  if (...length() == 0 && identical(object, expected)) return(passed(object))
  testthat::expect_identical(
    object, expected,
    info = info, label = label %||% deparsed(substitute(object)),
    expected.label = expected.label %||% deparsed(substitute(expected)), ...
  )
}

expect_true <- function(object, info = NULL, label = NULL) {
  if (identical(object, TRUE)) return(passed(object))
  testthat::expect_true(object, info, label %||% deparsed(substitute(object)))
}

expect_false <- function(object, info = NULL, label = NULL) {
  if (identical(object, FALSE)) return(passed(object))
  testthat::expect_false(object, info, label %||% deparsed(substitute(object)))
}

passed <- function(object) {
  testthat::expect(TRUE, "")
  invisible(object)
}

# TRUE for vectors of finite numbers whose elements are each as close as `tolerance` asks of their mean.
are_close_numbers <- function(x, y, tolerance) {
  is.numeric(x) && is.numeric(y) && !is.null(tolerance) && length(x) == length(y) &&
    identical(attributes(x), attributes(y)) && all(is.finite(y)) && isTRUE(all(abs(x - y) <= tolerance * abs(y)))
}

deparsed <- function(code) {
  paste(deparse(code), collapse = " ")
}
