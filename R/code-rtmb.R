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
  centred <- columns_less(x, mu, scale, nrow(Sigma))
  root <- root_of(Sigma)
  z <- backsolve(root, centred$z, transpose = TRUE)
  value <- -colSums(z^2) / 2 - sum(log(diag(root))) - nrow(z) * base::log(2 * pi) / 2 - centred$log_scale
  if (log) value else exp(value)
}

# The Cholesky factor. In a function that is compiled that of one matrix is one tensor, as the derivative of each would
# take longer than all else: while a log goes on, as it does not beyond a scope.
root_of <- function(x) {
  log <- vector_log()
  if (is.null(log) || !is_tensor(x)) {
    return(chol(as.matrix(x)))
  }
  known <- .subset2(x, "gradops_root")
  if (is.null(known) || !identical(known$log, log)) {
    known <- list(root = chol(as.matrix(x)), log = log)
    if (identical(state$scalars, log)) assign("gradops_root", known, envir = x)
  }
  known$root
}

# The density by the precision matrix `Q`, dense or of package Matrix.
dgmrf_rtmb <- function(x, mu = 0, Q, log = FALSE, scale = 1) {
  centred <- columns_less(x, mu, scale, nrow(Q))
  log_root <- if (is_sparse_tensor(Q)) {
    determinant(Q)$modulus / 2
  } else if (is_any_tensor(Q)) {
    sum(log(diag(root_of(Q))))
  } else {
    as.numeric(Matrix::determinant(Matrix::Matrix(Q, sparse = TRUE))$modulus) / 2
  }
  z <- centred$z
  value <- log_root - nrow(z) * base::log(2 * pi) / 2 - colSums(z * (Q %*% z)) / 2 - centred$log_scale
  if (log) value else exp(value)
}

# Observations, less their means, in units of their scales, as columns.
columns_less <- function(x, mu, scale, size) {
  as_columns <- function(x) {
    if (is.null(dim(x)) || length(dim(x)) < 2L) {
      if (is_any_tensor(x)) fill(x, c(length(x), 1L)) else base::matrix(x)
    } else {
      t(x)
    }
  }
  if (NCOL(x) == 1L && length(x) == size) x <- as.vector(x) # a column for a vector
  x <- as_columns(x)
  spread <- function(value) {
    if (length(value) == 1L) {
      value
    } else {
      if (length(value) == length(x)) as_columns(value) else as.vector(as_columns(value))
    }
  }
  scale <- spread(scale)
  z <- (x - spread(mu)) / scale
  log_scale <- log(scale)
  log_scale <- if (length(scale) == length(x) && length(scale) > 1L) {
    colSums(log_scale)
  } else if (length(scale) == 1L) {
    nrow(x) * log_scale
  } else {
    sum(log_scale)
  }
  list(z = z, log_scale = log_scale)
}
