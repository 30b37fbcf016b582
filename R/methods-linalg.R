#' Matrices of tensors
#'
#' Base R's linear algebra on tensors and variables, with base R's arguments and conventions, also `x %*% y`, `qr.Q(qr,
#' complete = FALSE)` (square if `complete`) and `qr.R()`: `chol()` returns the upper factor, `eigen()` values in
#' decreasing order, and vectors count as columns where that fits. For ordinary R vectors and matrices the base R
#' function is called, for S4 matrices the S4 generic of that name. Packages that define these generics, such as Matrix,
#' may be attached before or after gradops.
#'
#' Matrices of the package Matrix are constants in products and sums with tensors. `M %*% p`, `crossprod(M, p)`,
#' `solve(M, p)` and similar calls, and their derivatives, use only the stored elements. Sums with other sparse
#' matrices, scaling and elementwise products by tensors stay sparse. For such a matrix `solve(Q, b)` and
#' `determinant(Q)` are sparse as well, if it is symmetric and positive definite.
#'
#' `t()`, `aperm()`, `chol()`, `qr()`, `determinant()`, and so `det()`, are generics in base R and have methods for
#' tensors; `upper.tri()` and `lower.tri()` use only the dimensions.
#'
#' Where several answers are right, each library chooses its own: the signs of eigenvectors, of singular vectors, and of
#' the columns of Q. Labels are lost. `$rank` of `qr()` is computed as in R, without moving columns; if values are
#' unknown, in functions that libraries other than NumPy compile, it is the smaller dimension.
#' @param x,y,a,b,X,Y,r,l Tensors, variables, R's matrices or vectors.
#' @param FUN A function of two vectors, or its name.
#' @param make.dimnames Ignored for tensors.
#' @param nrow,ncol Dimensions of the result, if `x` is a vector.
#' @param names Ignored for tensors.
#' @param value The new diagonal: one element, or as many as the diagonal has.
#' @param nu,nv How many singular vectors to compute, up to the number of rows and of columns.
#' @param symmetric If `TRUE`, the matrix is taken to be symmetric. Without it the values decide, and a traced tensor
#'   has no values.
#' @param only.values If `TRUE`, eigenvectors are not computed.
#' @param size,k How many columns and rows to use.
#' @param upper.tri If `TRUE`, the upper triangle is used.
#' @param transpose If `TRUE`, the system of the transpose is solved.
#' @param LINPACK,EISPACK Only for R's values.
#' @param ... Arguments of `FUN`, and of methods.
#' @returns The result of the base R function, made of tensors: `svd()` a list of `d`, `u` and `v`, `eigen()` a list of
#'   `values` and `vectors`, `qr()` an object for `qr.Q()`, `qr.R()` and `solve()`. `x %*% y`, `crossprod()` and
#'   `tcrossprod()` return matrices, also for vectors; `solve(a, b)` with a vector `b` returns a vector.
#' @section Gradient:
#' To all orders, as in [op_matmul()], [op_solve()], [op_cholesky()], [op_svd()], [op_eigh()], [op_qr()]. At repeated
#' eigenvalues or singular values the vectors have no gradient; `det()` has none at singular matrices, unlike
#' [op_det()].
#' @section Errors:
#' - `gradops_error_shape`: dimensions that do not fit; matrices that are not square.
#' - `gradops_error_jit`: `eigen()` of a traced tensor without `symmetric`.
#' - `gradops_error_argument`: arguments that tensors do not take.
#' @seealso [op_matmul()], [op_solve()], [op_cholesky()], [tensor_least_squares].
#' @examplesIf gradops_available()
#' a <- variable(matrix(c(4, 1, 1, 3), 2))
#' crossprod(a, c(1, 2))
#' solve(a, c(1, 2))
#' eigen(a, symmetric = TRUE)$values
#' diag(chol(a))
#' gradient(function(a) log(det(a)), matrix(c(4, 1, 1, 3), 2)) # the inverse
#' @eval usages(generics_of_page("tensor_matrices"))
#' @name tensor_matrices
NULL

#' @rdname tensor_matrices
#' @export
crossprod <- function(x, y = NULL, ...) {
  UseMethod("crossprod", among(x, y))
}

crossprod_tensor <- function(x, y = NULL, ...) {
  crossed("crossprod", 2L, x, y)
}

crossed <- function(name, side, x, y) {
  if (isS4(x) || isS4(y)) {
    get(paste0(name, "_sparse"))(x, y)
  } else if (is_missing_somewhere(x) || is_missing_somewhere(y)) {
    multiply_past_missing(x, y, getExportedValue("base", name), get(paste0(name, "_tensor")))
  } else {
    product <- if (has_log(x) || has_log(y)) crossed_in_log(side, x, y %||% x)
    if (is.null(product)) product <- call_core(paste0("interop.r.", name), operand(x), operand(y))
    named_product(product, x, y %||% x, side, side)
  }
}

# `crossprod(x, y)`, or `tcrossprod(x, y)` if `side` is 1. A vector is a column.
crossed_in_log <- function(side, x, y) {
  as_column <- function(x) if (is_vector(x)) fill(x, base::c(length(x), 1L)) else x
  if (side == 2L) product_in_log(t(as_column(x)), as_column(y)) else product_in_log(as_column(x), t(as_column(y)))
}

#' @rdname tensor_matrices
#' @export
tcrossprod <- function(x, y = NULL, ...) {
  UseMethod("tcrossprod", among(x, y))
}

tcrossprod_tensor <- function(x, y = NULL, ...) {
  crossed("tcrossprod", 1L, x, y)
}

# For R's values and a function that returns tensors: base R sets up the call and the dimensions.
outer_default <- function(X, Y, FUN = "*", ...) {
  if (identical(FUN, "*")) {
    return(base::outer(X, Y, FUN, ...))
  }
  FUN <- match.fun(FUN)
  tensor <- NULL
  value <- base::outer(X, Y, function(...) {
    value <- FUN(...)
    if (!is.environment(value) || !is_tensor(value)) {
      return(value)
    }
    tensor <<- value
    numeric(length(value))
  }, ...)
  if (is.null(tensor)) value else with_dimnames(fill(tensor, dim(value)), dimnames(value))
}

outer_tensor <- function(X, Y, FUN = "*", ...) {
  dims <- c(shape_of(X), shape_of(Y))
  value <- if (!identical(FUN, "*")) {
    match.fun(FUN)(recycled(X, prod(dims)), each_of(Y, length(X)), ...)
  } else if (is_missing_somewhere(X) || is_missing_somewhere(Y)) {
    return(multiply_past_missing(X, Y, base::outer, outer_tensor))
  } else if ((has_log(X) || has_log(Y)) && prod(dims) <= most_together) {
    recycled(X, prod(dims)) * each_of(Y, length(X))
  } else {
    op_outer(flat(X), flat(Y))
  }
  if (length(value) != prod(dims)) {
    unsupported("FUN", sprintf("must give %d values, one for each pair; got %d.", prod(dims), length(value)))
  }
  names_of <- function(x) {
    rank <- length(dim(x))
    if (rank > 1L) dimnames_of(x) %||% vector("list", rank) else list(own_names(x))
  }
  with_dimnames(fill(value, dims), base::c(names_of(X), names_of(Y)))
}

#' @rdname tensor_matrices
#' @usage X \%o\% Y
#' @export
`%o%` <- function(X, Y) {
  outer(X, Y)
}

# Each element of `x` several times.
each_of <- function(x, times) {
  if (!is_any_tensor(x)) {
    return(rep(as.vector(x), each = times))
  }
  logged <- if (!is.null(state$scalars)) rearranged(function(cells) rep(cells, each = times), x)
  logged %||% op_repeat(flat(x), times)
}

kronecker_tensor <- function(X, Y, FUN = "*", make.dimnames = FALSE, ...) {
  if (is_s4_matrix(X) || is_s4_matrix(Y)) {
    return(kronecker_sparse(X, Y, FUN, make.dimnames, ...))
  }
  x <- shape_of(X)
  y <- shape_of(Y)
  rank <- max(length(x), length(y))
  x <- c(x, rep(1L, rank - length(x)))
  y <- c(y, rep(1L, rank - length(y)))
  all <- outer(fill(X, x), fill(Y, y), FUN, ...)
  fill(op_transpose(all, as.vector(rbind(rank + seq_len(rank), seq_len(rank)))), x * y)
}

#' @rdname tensor_matrices
#' @usage X \%x\% Y
#' @export
`%x%` <- function(X, Y) {
  kronecker(X, Y)
}

solve_tensor <- function(a, b, ...) {
  if (inherits(a, "gradops_qr")) a <- a$x
  logged <- if (is.null(state$heard) && !is.null(state$scalars)) solution_in_log(a, if (!missing(b)) b)
  if (!is.null(logged)) {
    return(logged)
  }
  if (missing(b)) {
    found <- op_inv(as_matrix_of_one(a))
    b <- 1
  } else if (isS4(a)) {
    return(solve_sparse(a, b))
  } else {
    if (isS4(b)) b <- as.matrix(b)
    found <- op_solve(as_matrix_of_one(a), if (length(b) == 1L && length(dim(b)) == 0L) fill(b, 1L) else b)
  }
  if (is.null(state$heard)) found else hear_failure(found, list(a, b), "the matrix is singular", sys.call())
}

as_column <- function(x) {
  if (is_vector(x)) fill(x, c(length(x), 1L)) else x
}

# A single number becomes a matrix, as in base R.
as_matrix_of_one <- function(a) {
  if (length(a) == 1L && length(dim(a)) < 2L) fill(a, c(1L, 1L)) else a
}

determinant_tensor <- function(x, logarithm = TRUE, ...) {
  number <- if (!is.null(state$scalars)) number_of_determinant(x)
  parts <- if (is.null(number)) op_slogdet(x) else list(sign(number), log(abs(number)))
  modulus <- if (logarithm) parts[[2]] else exp(parts[[2]])
  attr(modulus, "logarithm") <- logarithm
  structure(list(modulus = modulus, sign = parts[[1]]), class = "det")
}

chol_tensor <- function(x, pivot = FALSE, ...) {
  if (!isFALSE(pivot)) {
    unsupported("pivot", "must be FALSE for tensors.")
  }
  root <- call_core("scipy.linalg.cholesky", as_matrix_of_one(x), check_finite = FALSE)
  if (is.null(state$heard)) root else hear_failure(root, list(x), "the matrix is not positive definite", sys.call())
}

chol2inv_tensor <- function(x, size = NCOL(x), LINPACK = FALSE) {
  x <- as_matrix_of_one(x)
  first <- seq_len(size)
  op_cholesky_inverse(if (size == ncol(x)) x else x[first, first, drop = FALSE], upper = TRUE)
}

backsolve_tensor <- function(r, x, k = ncol(r), upper.tri = TRUE, transpose = FALSE) {
  r <- as_matrix_of_one(r) # first, as the default of `k` depends on it
  if (is_vector(x)) x <- flat(x)
  call_core("interop.r.matrices.triangular_solve", operand(r), operand(x), k, is_set(upper.tri), is_set(transpose))
}

forwardsolve_tensor <- function(l, x, k = ncol(l), upper.tri = FALSE, transpose = FALSE) {
  backsolve_tensor(l, x, k, upper.tri, transpose)
}

# `$qr` holds R in the form that base R's `qr.R()` expects.
qr_tensor <- function(x, ..., LAPACK = FALSE) { # nolint: object_name_linter. R's name.
  if (LAPACK) unsupported("LAPACK", "must be FALSE for tensors: columns stay in their order.")
  x <- as_column(x)
  parts <- op_qr(x)
  below <- nrow(x) - nrow(parts[[2]])
  compact <- if (below > 0) op_pad(parts[[2]], list(c(0, below), c(0, 0))) else parts[[2]]
  structure(
    list(qr = compact, rank = rank_by(parts[[2]]), pivot = seq_len(ncol(x)), q = parts[[1]], x = x),
    class = c("gradops_qr", "qr")
  )
}

# The rank by R's criterion, which counts independent columns; the full number if values are not known.
rank_by <- function(r) {
  size <- min(dim(r))
  r <- op_stop_gradient(r)
  lengths <- sqrt(colSums(r^2))[seq_len(size)]
  dependent <- abs(op_diagonal(r)) < 1e-7 * lengths
  known <- known_values(dependent) %||% looked_at(dependent, "values")
  if (is.null(known)) size else size - sum(known)
}

qr_q_tensor <- function(qr, complete = FALSE, Dvec) {
  if (!missing(Dvec)) {
    unsupported("Dvec", "is not for tensors.", "Multiply the columns of `qr.Q(qr)`.")
  }
  if (!complete) {
    qr$q
  } else if (qr$rank == min(dim(qr$x))) {
    times_factor(qr, base::diag(nrow(qr$x)), FALSE)
  } else {
    op_qr(qr$x, "complete")[[1]]
  }
}

#' @rdname tensor_matrices
#' @export
svd <- function(x, nu, nv, LINPACK = FALSE) {
  UseMethod("svd", among(x))
}

svd_tensor <- function(x, nu = min(n, p), nv = min(n, p), LINPACK = FALSE) {
  x <- as_column(x)
  n <- nrow(x)
  p <- ncol(x)
  if (nu == 0 && nv == 0) {
    return(list(d = op_svd(x, compute_uv = FALSE)))
  }
  parts <- stats::setNames(several(call_core("interop.r.matrices.svd", x, nu, nv)), c("d", "u", "v"))
  parts[c(TRUE, nu > 0, nv > 0)]
}

eigen_tensor <- function(x, symmetric, only.values = FALSE, EISPACK = FALSE) {
  if (missing(symmetric)) {
    values <- known_values(x) %||% needs_values("`eigen()`", "Say `symmetric = TRUE` or `FALSE`.")
    symmetric <- isSymmetric(unname(values))
  }
  parts <- several(call_core("interop.r.matrices.eigen", operand(x), symmetric))
  structure(list(values = parts[[1]], vectors = if (!only.values) parts[[2]]), class = "eigen")
}

is_symmetric_tensor <- function(object, ...) isSymmetric(unname(seen(object, "isSymmetric")), ...)

diag_tensor <- function(x, nrow, ncol, names = TRUE) {
  alone <- missing(nrow) && missing(ncol)
  if (length(dim(x)) > 1L) {
    if (length(dim(x)) > 2L || !alone) {
      unsupported("x", "must be a matrix, given alone, or a vector.")
    }
    return((if (!is.null(state$scalars)) rearranged(base::diag, x)) %||% op_diagonal(x))
  }
  if (alone && length(x) == 1L && !has_rtmb_names()) { # in RTMB `diag(x)` of a number is a 1 x 1 matrix
    return(diag(as.integer(x)))
  }
  logged <- if (alone && !is.null(state$scalars)) diagonal_in_log(x)
  if (!is.null(logged)) {
    return(logged)
  }
  nrow <- if (missing(nrow)) length(x) else whole_numbers(nrow, "diag")
  ncol <- if (missing(ncol)) nrow else whole_numbers(ncol, "diag")
  size <- min(nrow, ncol)
  op_pad(op_diag(recycled(x, size)), list(c(0, nrow - size), c(0, ncol - size)))
}

assign_diag_tensor <- function(x, value) {
  if (is_sparse(x)) {
    x <- as_sparse_tensor(x)
    diag(x) <- value
    return(x)
  }
  size <- min(dim(x))
  if (length(dim(x)) != 2L || !length(value) %in% c(1L, size)) {
    unsupported("value", sprintf("must have one element or %d, and `x` be a matrix.", size))
  }
  fill_places(x, list(cbind(seq_len(size), seq_len(size))), value)
}

aperm_tensor <- function(a, perm = NULL, ...) {
  turned <- function(cells) if (is.matrix(cells)) base::aperm(cells, perm) else cells
  logged <- if (!is.null(state$scalars) && is.null(dimnames_tensor(a))) rearranged(turned, a)
  logged %||% op_transpose(a, perm)
}
