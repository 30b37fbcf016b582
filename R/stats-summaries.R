#' Statistics of tensors
#'
#' Base R's and stats' summaries on tensors and variables, with the same arguments: variances divide by n - 1, quantiles
#' have type 7 unless you choose another of the nine. `mean()`, `median()`, `quantile()`, `range()` and `summary()` are
#' generics and have methods. For ordinary R vectors the function of base R or stats is called.
#'
#' Missing values are NaN in tensors. With `na.rm = FALSE` the result is then NaN (also where base R raises an error, as
#' in `quantile()`). With `na.rm = TRUE` they are dropped, and get the gradient 0. `cov()` and `cor()` compute Pearson's
#' coefficients of complete data; `scale()` sets no attributes.
#'
#' If R's data `y` have NA, arithmetic, mathematical functions, distributions and matrix products in a function that is
#' differentiated treat those elements as missing. So `mean((y - b * x)^2, na.rm = TRUE)` has the derivatives with
#' respect to the remaining elements; a missing result has missing derivatives. This does not hold after functions that
#' use the tensor as a whole, such as `cumsum()` or `solve()`; for [backward()] without a function; for NaN in tensors,
#' for example if `y` is an argument of a compiled function; and for parameters that lead to NaN. There a NaN that is
#' dropped later becomes 0 * NaN in the gradient, and [objective()] warns. Drop it first: `keep <- !is.na(y)`, then
#' `mean((y[keep] - b * x[keep])^2)`.
#' @param x,y Tensors, variables, R's vectors or matrices.
#' @param w Weights, one for each element.
#' @param V A covariance matrix.
#' @param na.rm If `TRUE`, NaN are dropped.
#' @param dims How many dimensions count as rows.
#' @param use `"everything"` for tensors; other values only for R's values.
#' @param method `"pearson"` for tensors.
#' @param center,scale If `TRUE`, the mean is subtracted, and columns are divided by their root mean square; or numbers,
#'   one for each column.
#' @param ... For `pmin()` and `pmax()`: tensors and numbers, recycled as by R's operators; otherwise arguments of
#'   methods.
#' @returns A tensor: a number; for `var()`, `cov()` and `cor()` of matrices a matrix; for `rowSums()` and similar
#'   functions a vector.
#' @section Gradient:
#' `median()`, `quantile()`, `pmin()`, `pmax()` pass the gradient to the selected elements, shared at ties; the gradient
#' of `sd()` of constants is 0.
#' @section Errors:
#' - `gradops_error_argument`: a `method` or `use` that is not available for tensors.
#' - `gradops_error_shape`: shapes of `x` and `y` that do not fit.
#' @seealso [op_mean()], [op_quantile()], [tensor_groups].
#' @examplesIf gradops_available()
#' x <- variable(matrix(c(1, 2, 4, 3, 5, 9), 3))
#' rowSums(x)
#' var(x)
#' quantile(x[, 1], 0.25)
#' gradient(sd, c(1, 2, 4))
#' @eval usages(generics_of_page("tensor_statistics"))
#' @name tensor_statistics
NULL

mean_tensor <- function(x, trim = 0, na.rm = FALSE, ...) {
  if (trim >= 0.5) {
    median_tensor(x, na.rm)
  } else if (trim > 0) {
    call_core("scipy.stats.trim_mean", x, trim, axis = NULL, nan_policy = if (na.rm) "omit" else "propagate")
  } else if (na.rm) {
    op_nanmean(x)
  } else {
    total <- if (!is.null(state$scalars)) total_in_log("+", x)
    if (is.null(total)) op_mean(x) else total / length(x)
  }
}

weighted_mean_tensor <- function(x, w, ..., na.rm = FALSE) {
  if (missing(w)) {
    return(mean_tensor(x, na.rm = na.rm))
  }
  call_core("interop.r.stats.weighted_mean", operand(x), operand(w), na.rm)
}

median_tensor <- function(x, na.rm = FALSE, ...) {
  if (na.rm) op_nanmedian(x) else op_median(x)
}

quantile_tensor <- function(x, probs = seq(0, 1, 0.25), na.rm = FALSE, names = TRUE, type = 7, digits = 7, fuzz, ...) {
  if (!missing(fuzz)) unsupported("fuzz", "must be left out: a quantile of a tensor has R's default.")
  of_tensor <- is_tensor(probs)
  if (!of_tensor && (anyNA(probs) || any(probs < 0 | probs > 1))) {
    unsupported("probs", "must be from 0 to 1.")
  }
  places <- if (of_tensor) probs else list(`<R>` = array_of(probs))
  value <- call_core("interop.r.stats.quantile", operand(x), places, type, na.rm)
  if (names && !of_tensor) with_names(value, paste0(format(100 * probs, trim = TRUE, digits = digits), "%")) else value
}

var_tensor <- function(x, y = NULL, na.rm = FALSE, use) {
  if (na.rm) {
    if (!is.null(y) || length(dim(x)) > 1L) unsupported("na.rm", "must be FALSE for matrices and pairs of tensors.")
    return(call_core("interop.r.stats.variance", operand(x)))
  }
  cov_tensor(x, y, if (missing(use)) "everything" else use)
}

cov_tensor <- function(x, y = NULL, use = "everything", method = c("pearson", "kendall", "spearman")) {
  check_pearson(use, method)
  call_core("interop.r.stats.covariance", operand(x), operand(y))
}

cor_tensor <- function(x, y = NULL, use = "everything", method = c("pearson", "kendall", "spearman")) {
  check_pearson(use, method)
  if (is_vector(x) && is.null(y)) {
    unsupported("y", "is needed where `x` is a vector.")
  }
  call_core("interop.r.stats.covariance", operand(x), operand(y), TRUE)
}

cov2cor_tensor <- function(V) {
  call_core("interop.r.stats.cov2cor", operand(V))
}

is_vector <- function(x) {
  length(dim(x)) < 2L
}

check_pearson <- function(use, method, call = parent.frame()) {
  if (!identical(use, "everything")) {
    unsupported("use", "must be \"everything\" for tensors.", "Leave rows with NaN out before.", call)
  }
  if (!identical(method[1], "pearson")) {
    unsupported("method", "must be \"pearson\" for tensors: ranks have no gradient.", call = call)
  }
}

sd_tensor <- function(x, na.rm = FALSE) {
  call_core("interop.r.stats.deviation", operand(x), na.rm)
}

# Apply `op` over the rows or the columns; `dims` dimensions count as rows.
over <- function(x, op, nan_op, rows, na.rm = FALSE, dims = 1L) {
  rank <- length(dim(x))
  if (rank < 2L || dims < 1L || dims >= rank) {
    unsupported("x", sprintf("must have more than `dims` = %d dimensions, and 2 at least; got %d.", dims, rank))
  }
  axes <- if (rows) seq.int(dims + 1L, rank) else seq_len(dims)
  if (na.rm) nan_op(x, axes) else op(x, axes)
}

row_sums_tensor <- function(x, ...) {
  (if (...length() == 0L) sums_in_log(x, TRUE)) %||% over(x, op_sum, op_nansum, TRUE, ...)
}

col_sums_tensor <- function(x, ...) {
  (if (...length() == 0L) sums_in_log(x, FALSE)) %||% over(x, op_sum, op_nansum, FALSE, ...)
}

row_means_tensor <- function(x, ...) {
  sums <- if (...length() == 0L) sums_in_log(x, TRUE)
  if (is.null(sums)) over(x, op_mean, op_nanmean, TRUE, ...) else sums / ncol(x)
}

col_means_tensor <- function(x, ...) {
  sums <- if (...length() == 0L) sums_in_log(x, FALSE)
  if (is.null(sums)) over(x, op_mean, op_nanmean, FALSE, ...) else sums / nrow(x)
}

pmax_tensor <- function(..., na.rm = FALSE) {
  extremes(list(...), if (na.rm) "fmax" else "maximum", na.rm)
}

pmin_tensor <- function(..., na.rm = FALSE) {
  extremes(list(...), if (na.rm) "fmin" else "minimum", na.rm)
}

extremes <- function(parts, op, na.rm) {
  of_two <- function(x, y) {
    logged <- if (!is.null(state$scalars)) operation_in_log(op, x, y)
    logged %||% call_operator(op, operand(x), operand(y))
  }
  result <- Reduce(function(x, y) if (na.rm) of_two(x, y) else past_missing(list(x, y), of_two), parts)
  keep_names(result, parts[[1L]])
}

scale_tensor <- function(x, center = TRUE, scale = TRUE) {
  call_core("interop.r.stats.scaled", operand(x), operand(center), operand(scale))
}
