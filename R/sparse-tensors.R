# Sparse matrices with constant positions, whose values are a tensor: the result of `exp(a) * Q0 + L` with matrices of
# the package Matrix. It is a list of `row`, `column` (sorted by column), `value` and `dim`, as triplets() returns for a
# constant matrix.

sparse_tensor <- function(value, row, column, dim) {
  structure(list(row = row, column = column, value = value, dim = as.integer(dim)), class = "gradops_sparse")
}

is_sparse_tensor <- function(x) inherits(x, "gradops_sparse")

is_sparse <- function(x) is_sparse_tensor(x) || is_s4_matrix(x)

as_sparse_tensor <- function(m) {
  if (is_sparse_tensor(m)) {
    m
  } else if (is_any_tensor(m)) { # any element may be nonzero
    dim <- if (is_vector(m)) c(length(m), 1L) else dim(m)
    sparse_tensor(flat(m), rep(seq_len(dim[1L]), dim[2L]), rep(seq_len(dim[2L]), each = dim[1L]), dim)
  } else {
    with(triplets(if (is_s4_matrix(m)) m else Matrix::Matrix(as.matrix(m), sparse = TRUE)), {
      placed_in(value, row, column, dim)
    })
  }
}

# Values at positions; values at the same position are added up.
placed_in <- function(value, row, column, dim) {
  key <- row + (column - 1) * dim[1L]
  keys <- sort(unique(key))
  at <- match(key, keys)
  value <- if (identical(at, seq_along(keys))) {
    value
  } else if (is_any_tensor(value)) {
    op_segment_sum(value, array_of(at), length(keys))
  } else {
    as.vector(rowsum(value, at))
  }
  sparse_tensor(value, (keys - 1) %% dim[1L] + 1, (keys - 1) %/% dim[1L] + 1, dim)
}

# Apply a function of Matrix to a matrix of the values' numbers; rearrange the values by the numbers in the result.
rearrange_values <- function(x, f) {
  numbers <- Matrix::sparseMatrix(x$row, x$column, x = as.double(seq_along(x$row)), dims = x$dim)
  found <- f(numbers)
  if (is_s4_matrix(found)) {
    found <- triplets(found)
    order <- order(found$column, found$row)
    sparse_tensor(x$value[found$value[order]], found$row[order], found$column[order], found$dim)
  } else {
    found <- as.vector(found)
    c(x$value, 0)[ifelse(found == 0, length(x$row) + 1, found)]
  }
}

dense_of_sparse <- function(x) {
  if (!is_sparse_tensor(x)) {
    return(if (is_s4_matrix(x)) as.matrix(x) else x)
  }
  places <- base::matrix(0, x$dim[1L], x$dim[2L])
  places[cbind(x$row, x$column)] <- seq_along(x$row)
  if (is_any_tensor(x$value)) placed(x$value, places) else base::matrix(c(0, x$value)[places + 1], x$dim[1L])
}

# `m@name` of a sparse tensor, as for a column-sorted matrix of Matrix.
slot_of_sparse <- function(object, name) {
  switch(name,
    x = object$value,
    i = as.integer(object$row - 1),
    j = as.integer(object$column - 1),
    p = base::c(0L, cumsum(tabulate(object$column, object$dim[2L]))),
    Dim = object$dim,
    abort(
      sprintf("`@%s`: a sparse matrix of a tensor's values has the slots x, i, j, p and Dim.", name),
      class = c("gradops_error_argument", "gradops_error"), argument = "name", call = NULL
    )
  )
}

# `m@x <- value` with a tensor as the values of a matrix of Matrix.
assign_slot <- function(object, name, value) {
  name <- as.character(substitute(name))
  is_ours <- is_sparse_tensor(object) || is_s4_matrix(object) && is_any_tensor(value)
  if (!is_ours || name != "x") {
    methods::slot(object, name) <- value
    return(object)
  }
  count <- length(if (is_sparse_tensor(object)) object$row else methods::slot(object, "x"))
  if (length(value) != count) {
    abort(
      sprintf("`@x <- value`: the matrix has %d values, `value` %d.", count, length(value)),
      class = c("gradops_error_shape", "gradops_error"), argument = "value", call = NULL
    )
  }
  if (is_sparse_tensor(object)) {
    return(sparse_tensor(value, object$row, object$column, object$dim))
  }
  methods::slot(object, "x") <- as.double(seq_len(count)) # in a symmetric matrix each stands for two
  places <- triplets(object)
  placed_in(value[places$value], places$row, places$column, places$dim)
}

ops_sparse <- function(operator, e1, e2) {
  f <- get(operator, topenv())
  if (missing(e2)) {
    return(sparse_tensor(f(e1$value), e1$row, e1$column, e1$dim))
  }
  if (is_sparse(e1) && is_sparse(e2)) {
    return(ops_of_two(operator, f, as_sparse_tensor(e1), as_sparse_tensor(e2)))
  }
  first <- is_sparse(e1)
  sparse <- as_sparse_tensor(if (first) e1 else e2)
  other <- if (first) e2 else e1
  # TRUE if 0 stays 0: not for 0 / 0, nor 0^0.
  known <- !is_any_tensor(other)
  keeps <- operator == "*" || first && switch(operator,
    `/` = !known || all(other != 0),
    `%/%` = , `%%` = known && all(other != 0),
    `^` = known && all(other > 0),
    FALSE
  )
  if (keeps && length(other) > 1L) {
    at <- if (is.null(dim(other))) (sparse$row - 1) %% length(other) + 1 else cbind(sparse$row, sparse$column)
    other <- other[at]
  }
  if (!keeps) {
    return(f(dense_of_sparse(e1), dense_of_sparse(e2)))
  }
  if (length(dim(other)) > 0L) other <- as.vector(other)
  sparse_tensor(if (first) f(sparse$value, other) else f(other, sparse$value), sparse$row, sparse$column, sparse$dim)
}

ops_of_two <- function(operator, f, e1, e2) {
  if (!identical(e1$dim, e2$dim)) {
    abort(
      sprintf("`x %s y`: matrices of %s and %s do not fit.", operator, shown_dim(e1), shown_dim(e2)),
      class = c("gradops_error_shape", "gradops_error"), call = NULL
    )
  }
  if (operator %in% c("+", "-")) {
    second <- if (operator == "-") -e2$value else e2$value
    if (identical(e1$row, e2$row) && identical(e1$column, e2$column)) {
      return(sparse_tensor(e1$value + second, e1$row, e1$column, e1$dim))
    }
    return(placed_in(c(e1$value, second), c(e1$row, e2$row), c(e1$column, e2$column), e1$dim))
  }
  if (operator != "*") {
    return(f(dense_of_sparse(e1), dense_of_sparse(e2)))
  }
  at <- match(e1$row + (e1$column - 1) * e1$dim[1L], e2$row + (e2$column - 1) * e1$dim[1L])
  both <- which(!is.na(at))
  sparse_tensor(e1$value[both] * e2$value[at[both]], e1$row[both], e1$column[both], e1$dim)
}

shown_dim <- function(x) paste(x$dim, collapse = " x ")

# The product of two sparse tensors.
product_of_sparse <- function(x, y) {
  x <- as_sparse_tensor(x)
  y <- as_sparse_tensor(y)
  if (x$dim[2L] != y$dim[1L]) {
    abort(
      sprintf("`x %%*%% y`: matrices of %s and %s do not fit.", shown_dim(x), shown_dim(y)),
      class = c("gradops_error_shape", "gradops_error"), call = NULL
    )
  }
  of_row <- split(seq_along(y$row), factor(y$row, seq_len(y$dim[1L])))[x$column]
  first <- rep(seq_along(x$row), lengths(of_row))
  second <- unlist(of_row, use.names = FALSE)
  placed_in(x$value[first] * y$value[second], x$row[first], y$column[second], c(x$dim[1L], y$dim[2L]))
}

kronecker_sparse <- function(X, Y, FUN = "*", make.dimnames = FALSE, ...) {
  if (!identical(match.fun(FUN), base::`*`)) {
    return(kronecker(dense_of_sparse(X), dense_of_sparse(Y), FUN, make.dimnames, ...))
  }
  X <- as_sparse_tensor(X)
  Y <- as_sparse_tensor(Y)
  first <- rep(seq_along(X$row), each = length(Y$row))
  second <- rep(seq_along(Y$row), times = length(X$row))
  placed_in(
    X$value[first] * Y$value[second], (X$row[first] - 1) * Y$dim[1L] + Y$row[second],
    (X$column[first] - 1) * Y$dim[2L] + Y$column[second], X$dim * Y$dim
  )
}

solve_by_sparse <- function(a, b, ...) {
  if (!is_sparse_tensor(a)) {
    return(solve(a, dense_of_sparse(b), ...))
  }
  if (missing(b)) b <- base::diag(a$dim[1L])
  b <- dense_of_sparse(b)
  call_core(
    "interop.r.stats.sparse_solve", operand(a$value), array_of(a$row), array_of(a$column), a$dim[1L], operand(b)
  )
}

# The determinant of a symmetric positive definite matrix.
determinant_sparse <- function(x, logarithm = TRUE, ...) {
  modulus <- call_core(
    "interop.r.stats.sparse_log_determinant", operand(x$value), array_of(x$row), array_of(x$column), x$dim[1L]
  )
  if (!logarithm) modulus <- exp(modulus)
  attr(modulus, "logarithm") <- logarithm
  structure(list(modulus = modulus, sign = 1L), class = "det")
}

sums_of_sparse <- function(side, count) {
  function(x, ...) op_segment_sum(operand(x$value), array_of(x[[side]]), x$dim[count])
}

assign_in_sparse <- function(x, f) {
  function(value) {
    count <- length(x$row)
    found <- triplets(f(Matrix::sparseMatrix(x$row, x$column, x = as.double(seq_len(count)), dims = x$dim), count))
    order <- order(found$column, found$row)
    all <- c(x$value, value)
    sparse_tensor(all[found$value[order]], found$row[order], found$column[order], x$dim)
  }
}

sparse_methods <- function() {
  list(
    base = list(
      Ops = Ops_tensor, dim = function(x) x[["dim"]], length = function(x) prod(x[["dim"]]),
      t = function(x) placed_in(x$value, x$column, x$row, rev(x$dim)),
      `[` = function(x, ...) rearrange_values(x, function(m) m[...]),
      `[<-` = function(x, ..., value) {
        assign_in_sparse(x, function(m, count) {
          m[...] <- count + seq_along(value)
          m
        })(value)
      },
      as.matrix = function(x, ...) dense_of_sparse(x), as.vector = function(x, mode) as.vector(dense_of_sparse(x)),
      determinant = determinant_sparse, solve = solve_by_sparse,
      Math = function(x, ...) {
        f <- get(.Generic, topenv())
        if (startsWith(.Generic, "cum") || !identical(f(0), 0)) {
          return(f(dense_of_sparse(x), ...))
        }
        sparse_tensor(f(x$value, ...), x$row, x$column, x$dim)
      },
      Summary = function(..., na.rm = FALSE) {
        x <- ..1
        if (.Generic == "sum" && ...length() == 1L) sum(x$value) else do.call(.Generic, list(dense_of_sparse(x)))
      },
      print = function(x, ...) {
        cat("<sparse matrix of", shown_dim(x), "with", length(x$row), "values>\n")
        invisible(x)
      }
    ),
    namesakes = list(
      crossprod = function(x, y = NULL, ...) crossprod_sparse(x, y %||% x),
      tcrossprod = function(x, y = NULL, ...) tcrossprod_sparse(x, y %||% x),
      kronecker = kronecker_sparse, solve = solve_by_sparse,
      diag = function(x, ...) rearrange_values(x, function(m) Matrix::diag(m)),
      `diag<-` = function(x, value) {
        assign_in_sparse(x, function(m, count) {
          Matrix::diag(m) <- count + rep_len(seq_along(value), min(dim(m)))
          m
        })(value)
      },
      rowSums = sums_of_sparse("row", 1L), colSums = sums_of_sparse("column", 2L)
    )
  )
}

register_sparse_tensors <- function() {
  methods <- sparse_methods()
  if (getRversion() >= "4.3.0") {
    methods$base$matrixOps <- matrix_ops_tensor
    methods$base$`@` <- slot_of_sparse
  }
  for (name in names(methods$base)) register(name, "gradops_sparse", methods$base[[name]], baseenv())
  for (name in names(methods$namesakes)) register_on_namesake(name, "gradops_sparse", methods$namesakes[[name]])
}

# Functions of Matrix that make matrices, for tensors of values: they rearrange the numbers of the values.

diagonal_overload <- function(n, x = NULL, ...) {
  if (!is_any_tensor(x)) {
    return(if (missing(n)) Matrix::Diagonal(x = x, ...) else Matrix::Diagonal(n, x, ...))
  }
  if (missing(n)) n <- length(x)
  sparse_tensor(if (length(x) == n) flat(x) else recycled(x, n), seq_len(n), seq_len(n), c(n, n))
}

sparse_matrix_overload <- function(i = NULL, j = NULL, ..., x, dims = NULL) {
  if (missing(x) || !is_any_tensor(x)) {
    given <- list(i = i, j = j, dims = dims, x = if (!missing(x)) x)
    return(do.call(Matrix::sparseMatrix, c(Filter(Negate(is.null), given), list(...)), quote = TRUE))
  }
  placed_in(if (length(x) == length(i)) flat(x) else recycled(x, length(i)), i, j, dims %||% c(max(i), max(j)))
}

band_overload <- function(n, m = n, k, diagonals, symmetric = FALSE, ...) {
  if (is_any_tensor(diagonals)) diagonals <- lapply(seq_along(k), function(d) diagonals[, d])
  if (!any(vapply(diagonals, is_any_tensor, NA))) {
    return(Matrix::bandSparse(n, m, k, diagonals, symmetric, ...))
  }
  starts <- cumsum(c(0, lengths(diagonals)))
  numbers <- lapply(seq_along(diagonals), function(d) starts[d] + seq_along(diagonals[[d]]))
  found <- triplets(Matrix::bandSparse(n, m, k, numbers, symmetric, ...))
  placed_in(do.call(c, diagonals)[found$value], found$row, found$column, found$dim)
}

bdiag_overload <- function(...) {
  parts <- if (...length() == 1L && !is_sparse(..1) && is.list(..1)) ..1 else list(...)
  if (!any(vapply(parts, function(part) is_sparse_tensor(part) || is_any_tensor(part), NA))) {
    return(Matrix::bdiag(...))
  }
  parts <- lapply(parts, as_sparse_tensor)
  sizes <- vapply(parts, function(part) part$dim, integer(2))
  before <- sizes
  before[] <- t(apply(sizes, 1L, function(row) cumsum(row) - row))
  shifted <- function(name, d) unlist(Map(function(part, by) part[[name]] + by, parts, before[d, ]))
  placed_in(do.call(c, lapply(parts, `[[`, "value")), shifted("row", 1L), shifted("column", 2L), rowSums(sizes))
}
