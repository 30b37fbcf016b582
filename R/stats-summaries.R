#' Statistics of tensors
#'
#' Base R's and stats' summaries on tensors and variables, with their arguments: variances divide by n - 1, quantiles
#' are of type 7 unless another of the nine is named. `mean()`, `median()`, `quantile()`, `range()` and `summary()` are
#' generics and have methods. For ordinary R vectors the function of base R or stats is called.
#'
#' Missing values are NaN in tensors. With `na.rm = FALSE` they make the result NaN (where base R stops, as in
#' `quantile()`, too); with `na.rm = TRUE` they are left out, and get the gradient 0. `cov()` and `cor()` know Pearson's
#' coefficients of complete data; `scale()` has no attributes.
#'
#' Where R's data `y` have NA, arithmetic, mathematical functions, distributions and products of matrices in a function
#' that is differentiated take those elements for missing, so `mean((y - b * x)^2, na.rm = TRUE)` has the derivatives of
#' what is left; a result that is missing has missing ones. That ends where other functions take such a tensor as a
#' whole, as `cumsum()` or `solve()`, and does not hold for [backward()] without a function, for NaN in tensors, as
#' where `y` is an argument of what is compiled, nor for what becomes NaN of parameters: there a NaN that is left out
#' later is 0 * NaN in the gradient, and [objective()] warns of it. Leave it out first: `keep <- !is.na(y)`, then
#' `mean((y[keep] - b * x[keep])^2)`.
#' @param x,y Tensors, variables, R's vectors or matrices.
#' @param w Weights, as many as elements.
#' @param V A covariance matrix.
#' @param na.rm If `TRUE`, NaN are left out.
#' @param dims How many dimensions count as rows.
#' @param use `"everything"` for tensors; others for R's values alone.
#' @param method `"pearson"` for tensors.
#' @param center,scale If `TRUE`, the mean is subtracted, and columns are divided by their root mean square; or numbers,
#'   one for each column.
#' @param ... For `pmin()` and `pmax()`: tensors and numbers, recycled as by R's operators; else arguments of methods.
#' @returns A tensor: a number, `var()`, `cov()` and `cor()` of matrices a matrix, `rowSums()` and the like a vector.
#' @section Gradient:
#' Of `median()`, `quantile()`, `pmin()`, `pmax()` to the elements chosen, shared at ties; of `sd()` of constants 0.
#' @section Errors:
#' - `gradops_error_argument`: a `method` or `use` that tensors do not have.
#' - `gradops_error_shape`: `x` and `y` that do not fit.
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
    op_mean(x)
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

quantile_tensor <- function(x, probs = seq(0, 1, 0.25), na.rm = FALSE, names = TRUE, type = 7, ...) {
  of_tensor <- is_tensor(probs)
  if (!of_tensor && (anyNA(probs) || any(probs < 0 | probs > 1))) {
    unsupported("probs", "must be from 0 to 1.")
  }
  places <- if (of_tensor) probs else list(`<R>` = array_of(probs))
  value <- call_core("interop.r.stats.quantile", operand(x), places, type, na.rm)
  if (names && !of_tensor) with_names(value, paste0(format(100 * probs, trim = TRUE, digits = 7), "%")) else value
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

# `op` over the rows, or the columns, of which `dims` dimensions count as rows.
over <- function(x, op, nan_op, rows, na.rm = FALSE, dims = 1L) {
  rank <- length(dim(x))
  if (rank < 2L || dims < 1L || dims >= rank) {
    unsupported("x", sprintf("must have more than `dims` = %d dimensions, and 2 at least; got %d.", dims, rank))
  }
  axes <- if (rows) seq.int(dims + 1L, rank) else seq_len(dims)
  if (na.rm) nan_op(x, axes) else op(x, axes)
}

row_sums_tensor <- function(x, ...) over(x, op_sum, op_nansum, TRUE, ...)
col_sums_tensor <- function(x, ...) over(x, op_sum, op_nansum, FALSE, ...)
row_means_tensor <- function(x, ...) over(x, op_mean, op_nanmean, TRUE, ...)
col_means_tensor <- function(x, ...) over(x, op_mean, op_nanmean, FALSE, ...)

pmax_tensor <- function(..., na.rm = FALSE) {
  extremes(list(...), if (na.rm) "fmax" else "maximum", na.rm)
}

pmin_tensor <- function(..., na.rm = FALSE) {
  extremes(list(...), if (na.rm) "fmin" else "minimum", na.rm)
}

extremes <- function(parts, op, na.rm) {
  of_two <- function(x, y) call_operator(op, operand(x), operand(y))
  result <- Reduce(function(x, y) if (na.rm) of_two(x, y) else past_missing(list(x, y), of_two), parts)
  keep_names(result, parts[[1L]])
}

scale_tensor <- function(x, center = TRUE, scale = TRUE) {
  call_core("interop.r.stats.scaled", operand(x), operand(center), operand(scale))
}
