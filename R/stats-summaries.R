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
#' @eval usages("tensor_statistics")
#' @name tensor_statistics
NULL

mean_tensor <- function(x, trim = 0, na.rm = FALSE, ...) {
  if (trim > 0) {
    x <- sort_tensor(x)
    count <- length(x)
    if (trim >= 0.5) {
      return(op_median(x))
    }
    low <- floor(count * trim)
    x <- x[(low + 1):(count - low)]
  }
  if (na.rm) op_nanmean(x) else op_mean(x)
}

weighted_mean_tensor <- function(x, w, ..., na.rm = FALSE) {
  if (missing(w)) {
    return(mean_tensor(x, na.rm = na.rm))
  }
  if (length(w) != length(x)) {
    unsupported("w", sprintf("must have as many elements as `x`; got %d for %d.", length(w), length(x)))
  }
  x <- flat(x)
  w <- flat(w)
  if (na.rm) {
    known <- op_logical_not(op_isnan(x))
    x <- ifelse(known, x, 0)
    w <- ifelse(known, w, 0)
  }
  op_sum(op_multiply(x, w)) / op_sum(w)
}

median_tensor <- function(x, na.rm = FALSE, ...) {
  if (na.rm) op_nanmedian(x) else op_median(x)
}

# All nine types of Hyndman and Fan (1996) take one or two neighbours in order, by weights that hang on `probs` alone.
quantile_tensor <- function(x, probs = seq(0, 1, 0.25), na.rm = FALSE, names = TRUE, type = 7, ...) {
  if (is_tensor(probs)) {
    if (type != 7) unsupported("type", "must be 7 where `probs` is a tensor.")
    return(if (na.rm) op_nanquantile(flat(x), probs) else op_quantile(flat(x), probs))
  }
  if (anyNA(probs) || any(probs < 0 | probs > 1)) {
    unsupported("probs", "must be from 0 to 1.")
  }
  x <- flat(x)
  if (na.rm) x <- without_nan(x)
  ordered <- op_sort(x)
  at <- neighbours(length(x), probs, type)
  low <- op_take(ordered, at$low, 1L)
  value <- low + at$weight * (op_take(ordered, at$high, 1L) - low)
  value <- op_where(array_of(at$weight == 0), low, value) # infinite neighbours count only where they weigh
  value <- op_where(op_any(op_isnan(x)), NaN, value)
  if (names) with_names(value, paste0(format(100 * probs, trim = TRUE, digits = 7), "%")) else value
}

neighbours <- function(n, probs, type) {
  fuzz <- 4 * .Machine$double.eps
  if (type <= 3) {
    position <- if (type == 3) n * probs - 0.5 else n * probs
    low <- floor(position + fuzz)
    weight <- switch(type, position > low, ((position > low) + 1) / 2, position != low | low %% 2 == 1)
  } else {
    a <- switch(type - 3, 0, 0.5, 0, 1, 1 / 3, 3 / 8)
    b <- if (type == 4) 1 else a
    position <- a + probs * (n + 1 - a - b)
    low <- floor(position + fuzz)
    weight <- position - low
    weight[abs(weight) < fuzz] <- 0
  }
  within <- function(i) pmin(pmax(i, 1), n)
  list(low = within(low), high = within(low + 1), weight = as.numeric(weight))
}

without_nan <- function(x) {
  values <- known_values(x) %||% needs_values("`na.rm = TRUE`", "Leave it out, or use `op_nanmean()` and the like.")
  if (anyNA(values)) x[which(!is.na(as.vector(values)))] else x
}

var_tensor <- function(x, y = NULL, na.rm = FALSE, use) {
  if (na.rm) {
    if (!is.null(y) || length(dim(x)) > 1L) unsupported("na.rm", "must be FALSE for matrices and pairs of tensors.")
    return(op_nanvar(x) * correction(x))
  }
  cov_tensor(x, y, if (missing(use)) "everything" else use)
}

cov_tensor <- function(x, y = NULL, use = "everything", method = c("pearson", "kendall", "spearman")) {
  check_pearson(use, method)
  x <- matrix_or_vector(x)
  y <- matrix_or_vector(y)
  plain <- is_vector(x) && (is.null(y) || is_vector(y))
  x <- centred(x)
  y <- if (is.null(y)) x else centred(y)
  if (nrow(x) != nrow(y)) {
    abort(
      sprintf("`x` and `y` must have equally many rows; got %d and %d.", nrow(x), nrow(y)),
      class = c("gradops_error_shape", "gradops_error"), argument = "y", call = parent.frame()
    )
  }
  value <- crossprod(x, y) / max(nrow(x) - 1, 0) # NaN of none, for R's NA
  if (plain) op_reshape(value, integer()) else value
}

cor_tensor <- function(x, y = NULL, use = "everything", method = c("pearson", "kendall", "spearman")) {
  check_pearson(use, method)
  x <- matrix_or_vector(x)
  y <- matrix_or_vector(y)
  if (is_vector(x) && is.null(y)) {
    unsupported("y", "is needed where `x` is a vector.")
  }
  plain <- is_vector(x) && (is.null(y) || is_vector(y))
  unit <- function(x) {
    x <- centred(x)
    op_divide(x, op_sqrt(op_sum(x^2, 1L, TRUE)))
  }
  x <- unit(x)
  value <- crossprod(x, if (is.null(y)) x else unit(y))
  if (nrow(x) == 0L) value <- value / 0 # NaN, for R's NA
  if (plain) op_reshape(value, integer()) else value
}

cov2cor_tensor <- function(V) {
  unit <- 1 / op_sqrt(op_diagonal(V))
  size <- length(unit)
  correlation <- op_multiply(op_multiply(V, op_reshape(unit, c(-1L, 1L))), op_reshape(unit, c(1L, -1L)))
  op_where(base::diag(size) == 1, 1, correlation)
}

is_vector <- function(x) {
  length(dim(x)) < 2L
}

# An array of more than two dimensions is a vector to stats, too.
matrix_or_vector <- function(x) {
  if (length(dim(x)) > 2L) flat(x) else x
}

# Columns without their means.
centred <- function(x) {
  x <- if (is.data.frame(x)) data.matrix(x) else x
  if (is_vector(x)) x <- fill(x, c(length(x), 1L))
  op_subtract(x, op_mean(x, 1L, TRUE))
}

check_pearson <- function(use, method, call = parent.frame()) {
  if (!identical(use, "everything")) {
    unsupported("use", "must be \"everything\" for tensors.", "Leave rows with NaN out before.", call)
  }
  if (!identical(method[1], "pearson")) {
    unsupported("method", "must be \"pearson\" for tensors: ranks have no gradient.", call = call)
  }
}

# The op's gradient is 0, not NaN, where all elements are equal.
sd_tensor <- function(x, na.rm = FALSE) {
  if (na.rm) {
    return(op_nanstd(x) * sqrt(correction(x)))
  }
  n <- length(x)
  op_std(x) * sqrt(n / (n - 1))
}

# n / (n - 1), of the n elements that are not missing.
correction <- function(x) {
  n <- op_sum(op_where(op_isnan(x), 0, 1))
  n / (n - 1)
}

over <- function(op, nan_op, rows) {
  force(op)
  force(nan_op)
  force(rows)
  function(x, na.rm = FALSE, dims = 1L) {
    rank <- length(dim(x))
    if (rank < 2L || dims < 1L || dims >= rank) {
      unsupported("x", sprintf("must have more than `dims` = %d dimensions, and 2 at least; got %d.", dims, rank))
    }
    axes <- if (rows) seq.int(dims + 1L, rank) else seq_len(dims)
    if (na.rm) nan_op(x, axes) else op(x, axes)
  }
}

row_sums_tensor <- function(x, ...) over(op_sum, op_nansum, TRUE)(x, ...)
col_sums_tensor <- function(x, ...) over(op_sum, op_nansum, FALSE)(x, ...)
row_means_tensor <- function(x, ...) over(op_mean, op_nanmean, TRUE)(x, ...)
col_means_tensor <- function(x, ...) over(op_mean, op_nanmean, FALSE)(x, ...)

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
  x <- if (is_vector(x)) fill(x, c(length(x), 1L)) else op_convert_to_tensor(x)
  by_column <- function(x, value, op) {
    if (length(value) != ncol(x)) {
      unsupported("center", "and `scale` must have one number for each column.", call = NULL)
    }
    op(x, op_reshape(value, c(1L, -1L)))
  }
  if (!base::isFALSE(center)) {
    x <- by_column(x, if (base::isTRUE(center)) op_mean(x, 1L) else center, op_subtract)
  }
  if (!base::isFALSE(scale)) {
    if (base::isTRUE(scale)) scale <- op_sqrt(op_sum(op_square(x), 1L) / max(1, nrow(x) - 1))
    x <- by_column(x, scale, op_divide)
  }
  x
}
