#' Norms and distances of tensors
#'
#' `norm()` of base R, `dist()` and `mahalanobis()` of stats on tensors and variables. For ordinary R vectors the
#' function of base R or stats is called.
#'
#' `dist()` of a tensor is the vector of the lower triangle, by column; `as.matrix()` of it is the symmetric matrix.
#' @param x A tensor, or what R takes; points are rows.
#' @param type,method,diag,upper,p As in R.
#' @param center,cov The centre, and the covariance matrix (its inverse, if `inverted`).
#' @param inverted If `TRUE`, `cov` is the inverse.
#' @param ... For R's values.
#' @returns A tensor.
#' @section Gradient:
#' As of [op_norm()]: 0 where points coincide; of `"maximum"` shared at ties.
#' @section Errors:
#' - `gradops_error_argument`: an unknown `type` or `method`.
#' @seealso [op_norm()], [op_cdist()].
#' @examplesIf gradops_available()
#' x <- variable(matrix(c(0, 3, 0, 4), 2))
#' dist(x)
#' mahalanobis(x, c(0, 0), diag(2))
#' gradient(function(x) norm(x, "F"), matrix(c(0, 3, 0, 4), 2))
#' @eval usages("tensor_distances")
#' @name tensor_distances
NULL

norm_tensor <- function(x, type = c("O", "I", "F", "M", "2")) {
  if (is_vector(x)) {
    unsupported("x", "must be a matrix.", "`norm(as.matrix(x), \"F\")`, or `op_norm(x)`.")
  }
  switch(EXPR = toupper(substr(type[1], 1, 1)),
    O = , `1` = max(colSums(abs(x))),
    I = max(rowSums(abs(x))),
    F = , E = op_norm(flat(x)),
    M = max(abs(x)),
    `2` = max(op_svd(x, compute_uv = FALSE)),
    unsupported("type", sprintf("must be \"O\", \"I\", \"F\", \"M\" or \"2\"; got %s.", deparse1(type[1])))
  )
}

dist_tensor <- function(x, method = "euclidean", diag = FALSE, upper = FALSE, p = 2) {
  methods <- c("euclidean", "maximum", "manhattan", "canberra", "minkowski")
  found <- pmatch(method, c(methods, "binary"))
  if (is.na(found) || found > length(methods)) {
    unsupported("method", sprintf("must be one of %s; got %s.", toString(dQuote(methods, FALSE)), deparse1(method)))
  }
  if (is_vector(x)) x <- fill(x, c(length(x), 1L))
  n <- nrow(x)
  column <- rep(seq_len(n), n - seq_len(n))
  row <- column + sequence(n - seq_len(n))
  a <- op_take(x, array_of(row), 1L)
  b <- op_take(x, array_of(column), 1L)
  apart <- a - b
  distance <- switch(methods[found],
    euclidean = op_norm(apart, axis = 2L),
    maximum = op_max(abs(apart), 2L),
    manhattan = rowSums(abs(apart)),
    canberra = canberra(abs(apart), abs(a) + abs(b)),
    minkowski = op_norm(apart, p, axis = 2L)
  )
  attr(distance, "gradops_dist") <- n
  distance
}

# Terms of 0 / 0 are left out, and the sum made up for them, as in R.
canberra <- function(difference, total) {
  there <- op_greater(total, 0)
  terms <- op_where(there, difference / op_where(there, total, 1), 0)
  rowSums(terms) * (ncol(difference) / rowSums(op_cast(there, "float64")))
}

# The symmetric matrix of the distances of `n` points.
distance_matrix <- function(x, n = attr(x, "gradops_dist")) {
  place <- base::matrix(0L, n, n)
  place[lower.tri(place)] <- seq_len(n * (n - 1L) / 2L)
  place <- place + t(place)
  fill(joined(list(0, flat(x)))[as.vector(place) + 1L], c(n, n))
}

mahalanobis_tensor <- function(x, center, cov, inverted = FALSE, ...) {
  if (is_vector(x)) x <- fill(x, c(1L, length(x)))
  apart <- if (base::isFALSE(center)) x else op_subtract(x, op_reshape(flat(center), c(1L, -1L)))
  weighted <- if (inverted) matmul_tensor(apart, cov) else t(solve(cov, t(apart)))
  rowSums(op_multiply(apart, weighted))
}
