# Scripts for RTMB in functions that are adapted (code-adapted.R): RTMB's own R code is adapted as the user's is; what
# is compiled there, or speaks of its tapes, is written here. So `objective(f)` takes the `f` of
# `MakeADFun(f, parameters)`.

is_of_rtmb <- function(f) {
  !is.primitive(f) && !inherits(f, "genericFunction") && environmentName(topenv(environment(f))) == "RTMB"
}

# NULL of what is adapted.
rtmb_function <- function(f, name) {
  here <- rtmb_faces()
  is <- function(name) identical(get0(name, asNamespace("RTMB")), f)
  name <- if (nzchar(name) && is(name)) name else Find(is, names(here))
  if (!is.null(name)) here[[name]]
}

ad_overload <- function(x = c("[<-", "c", "diag<-", "if")) {
  x <- chosen(x)
  if (x == "[<-") fill_part else get0(x, overloads(), inherits = FALSE) %||% get(x, baseenv())
}

# The density of a vector, or of each row of a matrix; `mu` is of the same kind, or one number.
dmvnorm_rtmb <- function(x, mu = 0, Sigma, log = FALSE, scale = 1) {
  value <- call_core("interop.r.matrices.normal", operand(x), operand(mu), operand(root_of(Sigma)), operand(scale))
  value <- of_numbers_too(value, x, mu, Sigma, scale)
  if (log) value else exp(value)
}

# The Cholesky factor, of a matrix that is symmetric. In a function that is compiled that of one matrix is one tensor,
# as the derivative of each would take longer than all else: while a log goes on, as it does not beyond a scope.
root_of <- function(x) {
  if (!is_tensor(x)) {
    return(chol(as.matrix(x)))
  }
  log <- vector_log()
  known <- if (!is.null(log)) .subset2(x, "gradops_root")
  if (is.null(known) || !identical(known$log, log)) {
    known <- list(root = op_cholesky(as_matrix_of_one(x), upper = TRUE), log = log)
    if (!is.null(log) && identical(state$scalars, log)) assign("gradops_root", known, envir = x)
  }
  known$root
}

# The density by the precision matrix `Q`, dense or of package Matrix.
dgmrf_rtmb <- function(x, mu = 0, Q, log = FALSE, scale = 1) {
  standard <- several(
    call_core("interop.r.matrices.standard", operand(x), operand(mu), operand(scale), nrow(Q))
  )
  z <- standard[[1L]]
  log_root <- if (is_sparse_tensor(Q)) {
    determinant(Q)$modulus / 2
  } else if (is_any_tensor(Q)) {
    sum(log(diag(root_of(Q))))
  } else {
    as.numeric(Matrix::determinant(Matrix::Matrix(Q, sparse = TRUE))$modulus) / 2
  }
  value <- log_root - nrow(Q) * base::log(2 * pi) / 2 - colSums(z * (Q %*% z)) / 2 - standard[[2L]]
  if (!is_sparse_tensor(Q)) value <- of_numbers_too(value, x, mu, Q, scale)
  if (log) value else exp(value)
}
