#' What tensors are
#'
#' `is.na()`, `is.nan()`, `is.finite()` and `is.infinite()` give tensors of booleans, also of a traced tensor, ready for
#' `[`, `ifelse()` and `sum()`. `anyNA()`, `all.equal()`, `summary()`, `str()`, `as.data.frame()` look at values and
#' give R's own. `is.numeric()` is `TRUE` of real numbers; `is.matrix()` and `is.array()` look at dimensions. Tensors of
#' whole numbers and of booleans have no missing values; NaN counts as missing, as in R.
#'
#' `length()`, `dim()`, `nrow()`, `ncol()`, `NROW()`, `NCOL()` and `seq_along()` are R's. `dimnames()` is `NULL`.
#' `all.equal()` is a generic in its first argument: the tensor comes first. `isTRUE()` and `isFALSE()` look at the
#' value of one boolean. `stopifnot()` takes tensors while a function is differentiated; elsewhere it wants R's
#' logicals: `stopifnot(as.logical(all(x > 0)))`.
#' @param x A tensor or variable, or any value of R's.
#' @returns Of `isTRUE()` and `isFALSE()`, `TRUE` or `FALSE`.
#' @name tensor_values
#' @seealso [variable()], [op_shape()].
#' @examplesIf gradops_available()
#' x <- variable(c(1, NaN, 3))
#' is.na(x)
#' anyNA(x)
#' all.equal(x, c(1, NaN, 3))
#' summary(x)
#' str(x)
#' gradient(function(x) sum(x[!is.na(x)]^2), c(1, NaN, 3))
NULL

#' @rdname tensor_values
#' @export
isTRUE <- function(x) {
  base::isTRUE(if (is.object(x) && is_tensor(x)) values_of(x) else x)
}

#' @rdname tensor_values
#' @export
isFALSE <- function(x) {
  base::isFALSE(if (is.object(x) && is_tensor(x)) values_of(x) else x)
}

is_na_tensor <- function(x) {
  asked(base::is.na, x) %||% op_isnan(x)
}

is_finite_tensor <- function(x) {
  asked(base::is.finite, x) %||% op_isfinite(x)
}

is_infinite_tensor <- function(x) {
  asked(base::is.infinite, x) %||% op_isinf(x)
}

any_na_tensor <- function(x, recursive = FALSE) {
  anyNA(values_of(x))
}

is_numeric_tensor <- function(x) {
  is.numeric(known_values(x)) || !grepl("bool|complex|str", py_to_r(call_op("dtype", x)))
}

is_matrix_tensor <- function(x) {
  length(dim(x)) == 2L
}

is_array_tensor <- function(x) {
  length(dim(x)) > 0L
}

all_equal_tensor <- function(target, current, ...) {
  all.equal(r_values(target), if (is_tensor(current)) r_values(current) else current, ...)
}

summary_tensor <- function(object, ...) {
  summary(r_values(object), ...)
}

str_tensor <- function(object, ...) {
  values <- known_values(object)
  cat("", format_tensor(object))
  if (is.null(values)) {
    cat("\n")
  } else {
    shown <- utils::head(as.vector(values), 5L)
    cat(" ", format(shown, digits = 3, trim = TRUE), if (length(values) > length(shown)) "...", "\n")
  }
}

as_data_frame_tensor <- function(x, row.names = NULL, optional = FALSE, ...) {
  values <- values_of(x, "as.data.frame()")
  if (length(dim(values)) == 1L) dim(values) <- NULL
  as.data.frame(values, row.names = row.names, optional = optional, ...)
}
