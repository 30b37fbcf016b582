#' Norms and distances of tensors
#'
#' `norm()` of base R, `dist()` and `mahalanobis()` of stats on tensors and variables. For ordinary R vectors the
#' function of base R or stats is called.
#'
#' `dist()` of a tensor is the vector of the lower triangle, by column; `as.matrix()` of it is the symmetric matrix.
#' @param x A tensor, or an object that R's function takes; points are rows.
#' @param type,method,diag,upper,p As in R.
#' @param center,cov The centre, and the covariance matrix (its inverse, if `inverted`).
#' @param inverted If `TRUE`, `cov` is the inverse.
#' @param ... Only for R's values.
#' @returns A tensor.
#' @section Gradient:
#' As for [op_norm()]: 0 where points coincide; for `"maximum"` shared at ties.
#' @section Errors:
#' - `gradops_error_argument`: an unknown `type` or `method`.
#' @seealso [op_norm()], [op_cdist()].
#' @examplesIf gradops_available()
#' x <- variable(matrix(c(0, 3, 0, 4), 2))
#' dist(x)
#' mahalanobis(x, c(0, 0), diag(2))
#' gradient(function(x) norm(x, "F"), matrix(c(0, 3, 0, 4), 2))
#' @eval usages(generics_of_page("tensor_distances"))
#' @name tensor_distances
NULL

norm_tensor <- function(x, type = c("O", "I", "F", "M", "2")) {
  if (is_vector(x)) {
    unsupported("x", "must be a matrix.", "`norm(as.matrix(x), \"F\")`, or `op_norm(x)`.")
  }
  order <- switch(EXPR = toupper(substr(type[1], 1, 1)),
    O = , `1` = 1,
    I = Inf,
    F = , E = "fro",
    M = return(max(abs(x))),
    `2` = 2,
    unsupported("type", sprintf("must be \"O\", \"I\", \"F\", \"M\" or \"2\"; got %s.", deparse1(type[1])))
  )
  call_core("scipy.linalg.norm", x, order, check_finite = FALSE)
}

dist_tensor <- function(x, method = "euclidean", diag = FALSE, upper = FALSE, p = 2) {
  methods <- c("euclidean", "maximum", "manhattan", "canberra", "minkowski")
  found <- pmatch(method, c(methods, "binary"))
  if (is.na(found) || found > length(methods)) {
    said <- sprintf("must be one of %s; got %s.", toString(dQuote(methods, FALSE)), deparse1(method))
    unsupported("method", said, meant(method, methods))
  }
  x <- as_column(x)
  distance <- call_core("interop.r.stats.distances", x, methods[found], p)
  attr(distance, "gradops_dist") <- nrow(x)
  distance
}

mahalanobis_tensor <- function(x, center, cov, inverted = FALSE, ...) {
  if (isS4(cov)) cov <- as.matrix(cov)
  call_core("interop.r.stats.mahalanobis", operand(x), operand(center), operand(cov), inverted)
}
