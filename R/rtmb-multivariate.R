# RTMB's multivariate normal densities: by covariance, by precision, of autoregressions, and separable ones.

# The density of a vector, or of each row of a matrix; `mu` has the same form, or is a single number.
dmvnorm_rtmb <- function(x, mu = 0, Sigma, log = FALSE, scale = 1) {
  value <- call_core("interop.r.matrices.normal", operand(x), operand(mu), operand(root_of(Sigma)), operand(scale))
  value <- unless_tensors(value, x, mu, Sigma, scale)
  if (log) value else exp(value)
}

# The Cholesky factor of a symmetric matrix. A compiled function computes it once for each matrix, as its derivative
# would otherwise dominate the time. The factor is reused only within one log, which ends with a scope.
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

# The density with precision matrix `Q`, dense or of the package Matrix.
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
  if (!is_sparse_tensor(Q)) value <- unless_tensors(value, x, mu, Q, scale)
  if (log) value else exp(value)
}

unstructured <- function(k) {
  size <- k * (k - 1) / 2
  corr <- function(x) {
    if (length(x) != size) unsupported("x", sprintf("must have %d elements; got %d.", size, length(x)))
    L <- base::diag(k)
    places <- L
    places[lower.tri(L)] <- seq_len(size)
    places[upper.tri(L, TRUE)] <- 0
    L <- L + if (is_any_tensor(x)) placed(x, places) else replace(0 * L, lower.tri(L), x)
    S <- tcrossprod(L)
    root <- sqrt(diag(S))
    S / outer(root, root)
  }
  list(parms = function() numeric(size), corr = corr)
}

# A matrix of elements of `x`, with 0 where `places` is 0.
placed <- function(x, places) {
  all <- c(flat(x), 0)
  at <- as.vector(places)
  fill(all[ifelse(at == 0, length(x) + 1, at)], dim(places))
}

# The covariance of the first values of a stationary series with variance 1, and the standard deviation of the
# innovations.
autoregression <- function(phi, n) {
  k <- length(phi)
  # Yule-Walker equations, gamma_i = sum_j phi_j gamma_|i - j| with gamma_0 = 1
  step <- outer(seq_len(k), seq_len(k), function(i, j) abs(i - j))
  terms <- base::matrix(0, k, k)
  places <- lapply(seq_len(k), function(h) { # coefficient of gamma_h in equation i: sum of phi_j, |i - j| = h
    (step == h) + 0
  })
  system <- base::diag(k)
  for (h in seq_len(k)) {
    e <- base::matrix(as.double(seq_len(k) == h), 1L)
    system <- system - matmul_tensor_or_not(places[[h]], phi) %*% e
  }
  gamma <- as.vector(solve(system, phi))
  sd <- sqrt(1 - sum(phi * gamma))
  size <- min(n, k)
  lags <- abs(base::outer(seq_len(size), seq_len(size), "-"))
  start <- if (is_any_tensor(phi)) placed(gamma, lags) + base::diag(size) else base::matrix(c(1, gamma)[lags + 1], size)
  list(start = start, sd = sd)
}

matmul_tensor_or_not <- function(m, v) m %*% (if (is_any_tensor(v)) fill(v, c(length(v), 1L)) else base::matrix(v))

dautoreg <- function(x, mu = 0, phi, log = FALSE, scale = 1) {
  z <- as.vector((x - mu) / scale)
  n <- length(z)
  order <- min(length(phi), n)
  of <- autoregression(phi, n)
  value <- dmvnorm_rtmb(z[seq_len(order)], 0, of$start, log = TRUE)
  if (n > order) {
    later <- (order + 1):n
    expected <- 0
    for (j in seq_along(phi)) expected <- expected + phi[j] * z[later - j]
    value <- value + sum(dnorm(z[later], expected, of$sd, log = TRUE))
  }
  value <- value - if (length(scale) == 1L) n * log_of(scale) else sum(log_of(scale))
  if (log) value else exp(value)
}

log_of <- function(x) log(x)

# Each density is that of a normal vector with mean 0: the Hessian of its log is minus the precision.
dseparable <- function(...) {
  densities <- lapply(list(...), found_function)
  separable <- function(x, mu = 0, scale = 1, log = TRUE) {
    if (!log) unsupported("log", "must be TRUE for a separable density.")
    z <- z0 <- (x - mu) / scale
    sizes <- dim(x)
    if (length(sizes) != length(densities)) unsupported("x", "must have a dimension for each density.")
    total <- 0
    for (i in seq_along(densities)) {
      density <- function(x) sum(densities[[i]](x))
      zero <- numeric(sizes[i])
      total <- total + (density(zero) + sizes[i] * base::log(2 * pi) / 2) * prod(sizes[-i])
      rest <- dim(z)[-1L]
      z <- -hessian(density, zero) %*% as_array_of(z, c(sizes[i], prod(rest)))
      z <- aperm(as_array_of(z, c(sizes[i], rest)), rotation(sizes))
    }
    log_scale <- if (length(scale) == 1L) length(x) * log_of(scale) else sum(log_of(scale))
    total - sum(z * z0) / 2 - length(x) * base::log(2 * pi) / 2 - log_scale
  }
  separable
}

rotation <- function(sizes) c(seq_along(sizes)[-1L], 1L)

as_array_of <- function(x, sizes) if (is_any_tensor(x)) fill(x, sizes) else array(x, sizes)
