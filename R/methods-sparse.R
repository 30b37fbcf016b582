# Sparse matrices of the package Matrix as constants in expressions with tensors. A product gathers elements by the
# stored positions, multiplies them and adds them up by rows, so its derivative is sparse too; a solution is computed by
# Matrix's own factorisation.

# Positions and values of the stored elements of a matrix.
triplets <- function(m) {
  if (is_sparse_tensor(m)) {
    return(m)
  }
  rlang::check_installed("Matrix", "for matrices of Matrix together with tensors.")
  entries <- methods::as(methods::as(m, "generalMatrix"), "TsparseMatrix")
  row <- methods::slot(entries, "i")
  values <- if ("x" %in% methods::slotNames(entries)) as.double(methods::slot(entries, "x")) else rep(1, length(row))
  list(row = row + 1L, column = methods::slot(entries, "j") + 1L, value = values, dim = dim(m))
}

is_s4_matrix <- function(x) {
  isS4(x) && methods::is(x, "Matrix")
}

# `m %*% x`, or `t(m) %*% x`.
sparse_product <- function(m, x, transposed = FALSE, call = parent.frame()) {
  entries <- triplets(m)
  if (transposed) {
    entries <- list(row = entries$column, column = entries$row, value = entries$value, dim = rev(entries[["dim"]]))
  }
  if (is_vector(x)) {
    x <- if (length(x) == entries$dim[2]) fill(x, c(length(x), 1L)) else fill(x, c(1L, length(x)))
  }
  if (nrow(x) != entries$dim[2]) {
    abort(
      sprintf("the matrix has %d columns, and `y` %d rows.", entries$dim[2], nrow(x)),
      class = c("gradops_error_shape", "gradops_error"), argument = "y", call = call
    )
  }
  terms <- op_multiply(as_column_of(entries$value), op_take(x, array_of(entries$column), 1L))
  op_segment_sum(terms, array_of(entries$row), entries$dim[1])
}

as_column_of <- function(x) if (is_any_tensor(x)) fill(x, c(length(x), 1L)) else base::matrix(x)

# Products with at least one tensor as a factor and at least one matrix of the package Matrix.
matmul_sparse <- function(x, y, call = parent.frame()) {
  if (is_sparse(x) && is_sparse(y)) {
    return(product_of_sparse(x, y))
  }
  if (is_sparse(x)) {
    return(sparse_product(x, y, call = call))
  }
  if (is_vector(x)) x <- fill(x, if (length(x) == nrow(y)) c(1L, length(x)) else c(length(x), 1L))
  t(sparse_product(y, t(x), transposed = TRUE, call = call))
}

crossprod_sparse <- function(x, y, call = parent.frame()) {
  if (is_sparse(x) && is_sparse(y)) {
    return(product_of_sparse(t(as_sparse_tensor(x)), y))
  }
  if (is_sparse(x)) {
    return(sparse_product(x, y, transposed = TRUE, call = call))
  }
  if (is_vector(x)) x <- fill(x, if (length(x) == nrow(y)) c(length(x), 1L) else c(1L, length(x)))
  t(sparse_product(y, x, transposed = TRUE, call = call))
}

tcrossprod_sparse <- function(x, y, call = parent.frame()) {
  if (is_sparse(x) && is_sparse(y)) {
    return(product_of_sparse(x, t(as_sparse_tensor(y))))
  }
  if (is_sparse(x)) {
    y <- if (is_vector(y)) fill(y, if (ncol(x) == 1L) c(1L, length(y)) else c(length(y), 1L)) else t(y)
    return(sparse_product(x, if (is_vector(y)) y else y, call = call))
  }
  if (is_vector(x)) x <- fill(x, if (length(x) == ncol(y)) c(1L, length(x)) else c(length(x), 1L))
  t(sparse_product(y, t(x), call = call))
}

# `solve(m, b)`; the derivative with respect to `b` solves with the transpose, to any order.
solve_sparse <- function(m, b) {
  solved <- op_custom_gradient(
    function(b) sparse_solver(m)(b),
    function(b, upstream) solve_sparse(Matrix::t(m), upstream)
  )
  solved(b)
}

# Matrix's own solution; a compiled program calls back for it.
sparse_solver <- function(m) {
  force(m)
  r_function(function(b) {
    solution <- as.matrix(Matrix::solve(m, if (is.null(dim(b)) || length(dim(b)) == 1L) as.vector(b) else b))
    if (length(dim(b)) > 1L) solution else array_of(as.vector(solution))
  })
}

# S4 methods
# ------------------------------------------------------------------------------------------------------------

# Matrix makes S4 generics of functions of base R; if Matrix is attached later, they mask gradops' namesakes. These
# generics get methods for tensors, and for tensors together with matrices of Matrix, in an environment of gradops' own.
register_matrix_methods <- function(...) {
  where <- new.env(parent = asNamespace("Matrix"))
  # Each method of a group takes milliseconds to set, so both classes share methods.
  for (class in c("gradops_tensor", "gradops_sparse")) {
    methods::setOldClass(c(class, "gradops_operand"), where = where)
  }
  matrix <- asNamespace("Matrix")
  methods <- namesakes()
  methods <- c(methods$base, methods$stats, list(expm = op_expm))
  for (name in intersect(names(methods), getNamespaceExports(matrix))) {
    generic <- get(name, envir = matrix)
    if (methods::is(generic, "standardGeneric")) set_tensor_methods(generic, methods[[name]], where)
  }
  set_matrix_methods("%*%", function(x, y) matmul_tensor(x, y), where)
  set_matrix_methods("Ops", function(e1, e2) {
    if (.Generic %in% arithmetic) {
      ops_sparse(.Generic, e1, e2)
    } else {
      call_operator(operators[[.Generic]], operand(dense_of_sparse(e1)), operand(dense_of_sparse(e2)))
    }
  }, where)
}

# Set methods for a tensor as the first argument, and as the second if the generic dispatches on two.
set_tensor_methods <- function(generic, method, where) {
  definition <- s4_method(generic, method)
  arguments <- methods::slot(generic, "signature")
  methods::setMethod(generic, "gradops_tensor", definition, where = where)
  name <- methods::slot(generic, "generic")
  if (length(arguments) > 1 && name %in% c("crossprod", "tcrossprod", "solve", "kronecker")) {
    for (other in c("ANY", "Matrix", "gradops_tensor")) {
      methods::setMethod(generic, c(other, "gradops_tensor"), definition, where = where)
    }
    methods::setMethod(generic, c("gradops_tensor", "Matrix"), definition, where = where)
  }
}

# `method`, called with the arguments that are not missing.
s4_method <- function(generic, method) {
  force(method)
  definition <- function() NULL
  formals(definition) <- formals(generic)
  names <- setdiff(names(formals(generic)), "...")
  body(definition) <- as.call(list(
    quote(given), as.call(c(quote(c), lapply(names, function(name) call("missing", as.name(name))))),
    quote(environment()), if ("..." %in% names(formals(generic))) quote(list(...)) else quote(list())
  ))
  environment(definition) <- list2env(list(
    given = function(missing, frame, others) do.call(method, c(mget(names[!missing], frame), others), quote = TRUE)
  ), parent = topenv())
  definition
}

set_matrix_methods <- function(generic, definition, where) {
  methods::setMethod(generic, c("Matrix", "gradops_operand"), definition, where = where)
  methods::setMethod(generic, c("gradops_operand", "Matrix"), definition, where = where)
}
