#' Least squares of tensors
#'
#' Coefficients, fitted values and residuals by a QR decomposition, from `qr()` or from `lm.fit()` and `lm.wfit()`, with
#' a tensor or variable as the matrix, as the response, or as both. For ordinary R vectors and matrices the function of
#' base R or stats is called.
#'
#' The matrix must have at least as many rows as columns, and independent columns. Otherwise it is an error, if values
#' are known: not in functions that libraries other than NumPy compile.
#'
#' `qr.coef(qr, y)`, `qr.fitted(qr, y, k = qr$rank)` and `qr.resid(qr, y)` take the result of `qr()` for a tensor or an
#' R matrix, and a response; `k` is the number of columns of Q that are used. `qr.solve(a, b)` takes the matrix or the
#' result of `qr()` for it; without `b` it is the inverse.
#' @param x The matrix.
#' @param y The response, a vector, or a matrix with one in each column.
#' @param w Weights, one for each row.
#' @param offset Numbers that are subtracted from `y` and added to the fitted values; or `NULL`.
#' @param tol,method,singular.ok Only for R's values.
#' @param ... Only for R's values.
#' @returns Tensors in the form of the response: `qr.coef()` and `qr.solve()` with an element (row) for each column of
#'   the matrix, with its names if R's matrix has names; `lm.fit()` and `lm.wfit()` a list of `coefficients`,
#'   `residuals`, `fitted.values`, `rank`, `df.residual` and `qr`, and of the `weights`.
#' @section Gradient:
#' To all orders with respect to matrix, response and weights, as for [op_qr()] and [op_solve_triangular()]. None if
#' columns are linearly dependent.
#' @section Errors:
#' - `gradops_error_argument`: a matrix with fewer rows than columns, or an R matrix with dependent columns.
#' - `gradops_error_shape`: a response of another length.
#' @seealso [op_lstsq()], [tensor_matrices].
#' @examplesIf gradops_available()
#' X <- cbind(1, 1:5)
#' gradient(function(y) sum(qr.resid(qr(X), y)^2), c(1, 3, 2, 5, 4))
#' lm.fit(X, variable(c(1, 3, 2, 5, 4)))$coefficients
#' @eval usages(generics_of_page("tensor_least_squares"))
#' @name tensor_least_squares
NULL

qr_coef_tensor <- function(qr, y) {
  factors <- factors_of(qr, y)
  order <- if (is.unsorted(qr$pivot)) as.list(order(qr$pivot))
  found <- call_core("interop.r.stats.coefficients", operand(factors$q), operand(factors$r), operand(y), order)
  if (length(dim(y)) < 2L && !is.null(colnames(factors$r))) {
    names(found) <- colnames(factors$r)[order(qr$pivot)]
  }
  found
}

qr_fitted_tensor <- function(qr, y, k = qr$rank) {
  call_core("interop.r.stats.fitted", operand(factors_of(qr, y)$q), operand(y), k)
}

qr_resid_tensor <- function(qr, y) {
  y - qr_fitted_tensor(qr, y)
}

qr_solve_tensor <- function(a, b, tol = 1e-7) {
  a <- if (inherits(a, "qr")) a else qr(a)
  qr_coef_tensor(a, if (missing(b)) base::diag(ncol(a$qr)) else b)
}

lm_fit_tensor <- function(x, y, offset = NULL, method = "qr", tol = 1e-7, singular.ok = TRUE, ...) {
  least_squares(x, y, offset)
}

lm_wfit_tensor <- function(x, y, w, offset = NULL, method = "qr", tol = 1e-7, singular.ok = TRUE, ...) {
  c(least_squares(x, y, offset, sqrt(w)), list(weights = w))
}

# The least squares fit of `y`, with rows multiplied by `root`.
least_squares <- function(x, y, offset, root = NULL) {
  y <- if (is.null(offset)) y else y - offset
  qr <- qr(if (is.null(root)) x else x * root)
  coefficients <- qr_coef_tensor(qr, if (is.null(root)) y else y * root)
  fitted <- matmul_tensor(x, coefficients)
  if (length(dim(y)) < 2L) fitted <- flat(fitted)
  list(
    coefficients = coefficients, residuals = y - fitted,
    fitted.values = if (is.null(offset)) fitted else fitted + offset,
    rank = qr$rank, df.residual = nrow(qr$qr) - qr$rank, qr = qr
  )
}

# The product of all columns of Q, or of its transpose, with `y`. It uses R's Householder reflections, as the columns
# beyond those of the matrix are determined only by them.
times_factor <- function(qr, y, transposed) {
  reflected <- as_column(y)
  if (inherits(qr, "gradops_qr")) {
    check_rank(qr, min(dim(qr$qr)))
    units <- reflections(qr$x)
    for (unit in if (transposed) units else rev(units)) reflected <- reflect(reflected, unit)
  } else {
    q <- base::qr.qy(qr, base::diag(nrow(qr$qr)))
    reflected <- matmul_tensor(if (transposed) t(q) else q, reflected)
  }
  if (length(dim(y)) < 2L) flat(reflected) else reflected
}

reflections <- function(x) {
  units <- list()
  for (j in seq_len(min(ncol(x), nrow(x) - 1L))) {
    column <- c(numeric(j - 1L), x[j:nrow(x), j])
    first <- replace(numeric(nrow(x)), j, 1)
    unit <- column + first * (choose_by(column[j] < 0, -1, 1) * sqrt(sum(column^2)))
    units[[j]] <- as_column(unit / sqrt(sum(unit^2)))
    x <- reflect(x, units[[j]])
  }
  units
}

reflect <- function(x, unit) x - 2 * matmul_tensor(unit, matmul_tensor(t(unit), x))

# Q and R for responses `y`; the columns of R are in the order of `qr$pivot`.
factors_of <- function(qr, y, call = parent.frame()) {
  if (NROW(y) != nrow(qr$qr)) {
    abort(
      sprintf("`y` must have %d rows, as many as the matrix; got %d.", nrow(qr$qr), NROW(y)),
      class = c("gradops_error_shape", "gradops_error"), argument = "y", call = call
    )
  }
  check_rank(qr, ncol(qr$qr), call)
  if (inherits(qr, "gradops_qr")) list(q = qr$q, r = qr.R(qr)) else list(q = base::qr.Q(qr), r = base::qr.R(qr))
}

check_rank <- function(qr, full, call = parent.frame()) {
  if (qr$rank < full) {
    unsupported(
      "qr", sprintf("must have independent columns; got rank %d of %d columns.", qr$rank, ncol(qr$qr)),
      "Leave out columns that others determine.", call
    )
  }
}

# TRUE if tensors are among the arguments, or one of these is a decomposition of a tensor.
class_among_factors <- function(qr, ...) {
  if (inherits(qr, "gradops_qr")) has_tensor else among(qr, ...)
}
