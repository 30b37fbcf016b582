# Short vectors and small matrices of logged numbers: see lazy-scalars.R. What R does with two or three numbers at a
# time in a loop (the state of a filter and its covariance, a row of data, `c(a, b)`) would be a call into Python, a
# step of the program and a node of the tape each time. So it is logged too, element by element; the handle knows which
# numbers its elements are, in R's order. It has no gradient of its own: code that asks for one is traced again without
# these.

# Elements of the largest: of more, operations on arrays cost less.
most_together <- 9L

# Code in which vectors are tensors, as elsewhere.
without_vectors <- function(code) {
  before <- state$no_vectors
  state$no_vectors <- TRUE
  on.exit(state$no_vectors <- before)
  leave_scalars()
  code
}

# The log, where one goes on that takes vectors.
vector_log <- function() {
  if (is.environment(state$scalars) && !isTRUE(state$no_vectors)) state$scalars
}

# A function of the core, as `kind`, `family` and `settings` name it, of numbers that are logged and R's own; NULL where
# it is for Python.
composed_in_log <- function(kind, family, settings, arguments) {
  in_log(arguments, function() {
    code <- function_code(state$scalars, kind, family, settings, length(arguments))
    if (!is.null(code)) .Call(C_function_in_log, state, code, arguments)
  })
}

# The code of a function of the core in a log; NULL of one that is no matter of single numbers.
function_code <- function(log, kind, family, settings, count) {
  key <- paste(base::c(kind, family, settings, count), collapse = " ")
  code <- log$codes[[key]]
  if (is.null(code)) {
    number <- py_to_r(call_core("interop.r.distributions.number_in_logs", kind, family, settings, count))
    code <- if (is.null(number)) NA else 16 * number
    assign(key, code, envir = log$codes)
  }
  if (!is.na(code)) code
}

# The elements of a tensor that is not of the log, for C: of a small one they are read once. A tensor that is used in
# each round of a loop remembers them, with the log in which they have these numbers.
know_elements <- function(log, x) {
  known <- .subset2(x, "gradops_elements")
  if (!identical(.subset2(x, "gradops_log"), log) && (is.null(known) || !identical(known$log, log))) {
    extent <- .subset2(x, "gradops_extent")
    input <- if (is.null(extent) || anyNA(extent) || prod(extent) <= most_together) input_in(log, x)
    size <- if (is.null(input)) -1 else input[2L]
    fits <- size == 0 || size >= 1 && size <= most_together && length(known_dim(x)) <= 2L
    assign("gradops_elements", if (!fits) list(log = log, kind = 0) else if (size == 0) {
      list(log = log, kind = 2, is = input[1L], dim = NULL)
    } else {
      read <- .Call(C_rows_in_log, log, 0, input[1L], seq_len(size) - 1)
      list(log = log, kind = 1, is = read - log$begun, dim = known_dim(x))
    }, envir = x)
  }
}

# `result`, made element by element of `x` and `y`: it has more elements than a log takes where one of them has, so that
# Python is not asked.
as_large <- function(result, x, y = NULL) {
  if (is.environment(state$scalars) && is.environment(result) && (is_large(x) || is_large(y))) {
    assign("gradops_elements", list(log = state$scalars, kind = 0), envir = result)
  }
  result
}

is_large <- function(x) {
  if (!is.environment(x)) {
    return(length(x) > most_together)
  }
  known <- .subset2(x, "gradops_elements")
  !is.null(known) && known$kind == 0 && identical(known$log, state$scalars)
}

# An operand's kind, numbers and dimensions, which are NULL of a number; NULL of what takes part in no log.
elements_in <- function(log, x) {
  if (is.environment(x)) know_elements(log, x)
  .Call(C_elements_in_log, state, x)
}

# `c(...)` of numbers and vectors of which a log has one.
joined_in_log <- function(parts) {
  if (!is.null(state$scalars) && any(vapply(parts, has_log, NA))) {
    in_log(parts, function() .Call(C_joined_in_log, state, parts, FALSE))
  }
}

# The sum of a handle's numbers; NULL of anything else.
sum_in_log <- function(x) {
  .Call(C_sum_in_log, state, x) %||% if (has_log(x)) in_log(list(x), function() .Call(C_sum_in_log, state, x))
}

# The numbers of an operation on numbers of the log, or on those that `kinds` says, as operands of later ones.
rows_in <- function(log, op, first, second, kinds = 5) {
  .Call(C_rows_in_log, log, log$codes[[op]] + kinds, first, second) - log$begun
}

# Small matrices ------------------------------------------------------------------------------------------------------

# `x %*% y` by R's rules, whose names are not kept.
product_in_log <- function(x, y) {
  if (is.environment(state$scalars)) {
    diagonal_product(x, y) %||% in_log(list(x, y), function() .Call(C_product_in_log, state, x, y, FALSE))
  }
}

# `diag(x)` of a short vector, which the matrix remembers; NULL of anything else.
diagonal_in_log <- function(x) {
  log <- vector_log()
  found <- elements_in(log, x)
  size <- length(found$is)
  if (identical(found$kind, 1L) && length(found$dim) == 1L && size^2 <= most_together) {
    cells <- rep(rows_in(log, "*", 0, 1, 0), size^2) # numbers of R's own, as results
    cells[seq(1L, size^2, size + 1L)] <- found$is
    handle <- lazy_handle(log, cells + log$begun, base::c(size, size))
    assign("gradops_diagonal", found$is + log$begun, envir = handle)
    handle
  }
}

# The product of such a matrix and another: each row or column by its number. Zeros are no factors, which for finite
# numbers is the same, and a third of the operations or less.
diagonal_product <- function(x, y) {
  for (first in base::c(TRUE, FALSE)) {
    log <- vector_log()
    d <- diagonal_of(log, if (first) x else y)
    other <- if (!is.null(d)) elements_in(log, if (first) y else x)
    dim <- other$dim
    if (length(dim) == 2L && dim[if (first) 1L else 2L] == length(d)) {
      by <- if (first) rep(d, dim[2L]) else rep(d, each = dim[1L])
      return(lazy_handle(log, rows_in(log, "*", other$is, by, 4 * other$kind + 1) + log$begun, dim))
    }
  }
}

diagonal_of <- function(log, x) {
  if (is.environment(x) && identical(.subset2(x, "gradops_log"), log)) {
    d <- .subset2(x, "gradops_diagonal")
    if (!is.null(d)) d - log$begun
  }
}

# `solve(a, b)`, or without `b` the inverse, of a matrix of one or two rows; NULL of anything else.
solution_in_log <- function(a, b = NULL) {
  log <- vector_log()
  matrix <- matrix_in(log, a)
  right <- if (!is.null(matrix) && !is.null(b)) elements_in(log, b)
  rows <- matrix$dim[1L]
  if (is.null(matrix) || !is.null(b) && (length(right$dim) == 0L || right$dim[1L] != rows)) {
    return(NULL)
  }
  m <- matrix$is
  is <- right$is
  by <- determinant_in(log, m)
  found <- if (rows == 1) {
    rows_in(log, "by_determinant", if (is.null(b)) 1 else is, by, if (is.null(b)) 1 else 4 * right$kind + 1)
  } else if (is.null(b)) {
    less <- rows_in(log, "-", 0, by, 1)
    rows_in(log, "by_determinant", m[base::c(4L, 2L, 3L, 1L)], base::c(by, less, less, by))
  } else { # by Cramer's rule, column by column
    kinds <- 4 + right$kind
    other <- is[seq_along(is) + base::c(1L, -1L)]
    columns <- length(is) / 2
    first <- rows_in(log, "*", rep(m[base::c(4L, 1L)], columns), is, kinds)
    second <- rows_in(log, "*", rep(m[base::c(3L, 2L)], columns), other, kinds)
    rows_in(log, "by_determinant", rows_in(log, "-", first, second), by)
  }
  lazy_handle(log, found + log$begun, if (is.null(b)) matrix$dim else right$dim)
}

# The determinant of a matrix of one or two rows, as a number; NULL of anything else.
number_of_determinant <- function(x) {
  log <- vector_log()
  matrix <- matrix_in(log, x)
  if (!is.null(matrix)) lazy_handle(log, determinant_in(log, matrix$is) + log$begun)
}

determinant_in <- function(log, m) {
  if (length(m) == 1L) {
    return(m)
  }
  products <- rows_in(log, "*", m[1:2], m[4:3])
  rows_in(log, "-", products[1L], products[2L])
}

# The numbers of a square matrix of one or two rows.
matrix_in <- function(log, x) {
  found <- if (!is.null(log)) elements_in(log, x)
  dim <- found$dim
  if (identical(found$kind, 1L) && length(dim) == 2L && dim[1L] == dim[2L] && dim[1L] <= 2) found
}

# A small tensor's numbers in other places; NULL of anything else.
rearranged <- function(x, order) {
  log <- vector_log()
  found <- if (!is.null(log)) elements_in(log, x)
  if (identical(found$kind, 1L) && length(found$dim) > 0L) {
    cells <- order(base::array(seq_along(found$is), found$dim))
    if (is.matrix(cells)) lazy_handle(log, found$is[cells] + log$begun, dim(cells))
  }
}
