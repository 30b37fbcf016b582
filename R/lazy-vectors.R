# Short vectors and small matrices of logged numbers: see lazy-scalars.R. Operations on two or three numbers in a loop
# (the state of a filter and its covariance, a row of data, `c(a, b)`) would each cost a call into Python, a step of the
# program and a node of the tape. So they are logged too, element by element; the handle holds the numbers of its
# elements in R's order. It has no gradient of its own: code that asks for one is traced again without such vectors.

# The largest number of elements that an operation takes one by one. At 30 elements the first value and gradient of a
# loop take half the time of arrays, and later ones half as much again; at 60 the first ones take as long.
most_together <- 32L

# Run code with vectors as ordinary tensors, or with `what = "numbers"` also single numbers.
without_logs <- function(what, code) {
  before <- state$unlogged
  state$unlogged <- what
  on.exit(state$unlogged <- before)
  leave_scalars()
  code
}

# The current log, if it takes vectors.
vector_log <- function() {
  if (is.environment(state$scalars) && is.null(state$unlogged)) state$scalars
}

# Log a function of the core, given by `kind`, `family` and `settings`, of logged numbers and R's own; NULL if it is for
# Python.
composed_in_log <- function(kind, family, settings, arguments) {
  add_to_log(arguments, function() {
    code <- function_code(state$scalars, kind, family, settings, length(arguments))
    if (!is.null(code)) .Call(C_function_in_log, state, code, arguments)
  })
}

# The code of a function of the core in a log; NULL if it does not work on single numbers.
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

# Make the elements of a tensor from outside the log known to C; a small tensor is read once. A tensor that a loop uses
# in each iteration remembers them, together with the log that gave them these numbers.
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

# Mark `result`, an elementwise result of `x` and `y`, as too large for the log if one of them is, so that Python need
# not be asked.
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

# An operand's kind, numbers and dimensions (NULL for a single number); NULL if it cannot take part in a log.
elements_in <- function(log, x) {
  if (is.environment(x)) know_elements(log, x)
  .Call(C_elements_in_log, state, x)
}

# `c(...)` of numbers and vectors, at least one of them in a log.
joined_in_log <- function(parts) {
  if (!is.null(state$scalars) && any(vapply(parts, has_log, NA))) {
    add_to_log(parts, function() .Call(C_joined_in_log, state, parts, FALSE))
  }
}

# The sum of a handle's numbers, or their product; with `all` the sums or products of the first one, two, ... NULL for
# anything else.
total_in_log <- function(op, x, all = FALSE) {
  .Call(C_running_in_log, state, op, x, all) %||%
    if (has_log(x)) add_to_log(list(x), function() .Call(C_running_in_log, state, op, x, all))
}

# The sums of the rows of a small matrix, or of its columns.
sums_in_log <- function(x, of_rows) {
  log <- vector_log()
  found <- if (!is.null(log) && has_log(x)) elements_in(log, x)
  if (identical(found$kind, 1L) && length(found$dim) == 2L) {
    cells <- base::matrix(found$is, found$dim[1L], found$dim[2L])
    if (!of_rows) cells <- t(cells)
    total <- cells[, 1L]
    for (j in seq_len(ncol(cells))[-1L]) total <- rows_in(log, "+", total, cells[, j])
    lazy_handle(log, total + log$begun, length(total))
  }
}

# The numbers of the results of an elementwise operation on numbers of the log, or on operands of the given `kinds`.
rows_in <- function(log, op, first, second, kinds = 5) {
  .Call(C_rows_in_log, log, log$codes[[op]] + kinds, first, second) - log$begun
}

# Small matrices ------------------------------------------------------------------------------------------------------

# `x %*% y` by R's rules; names are dropped.
product_in_log <- function(x, y) {
  if (is.environment(state$scalars)) {
    diagonal_product(x, y) %||% add_to_log(list(x, y), function() .Call(C_product_in_log, state, x, y, FALSE))
  }
}

# `diag(x)` of a short vector; the matrix remembers that it is diagonal. NULL for anything else.
diagonal_in_log <- function(x) {
  log <- vector_log()
  found <- elements_in(log, x)
  size <- length(found$is)
  if (identical(found$kind, 1L) && length(found$dim) == 1L && size^2 <= most_together) {
    cells <- rep(rows_in(log, "*", 0, 1, 0), size^2) # R's own numbers, as results
    cells[seq(1L, size^2, size + 1L)] <- found$is
    handle <- lazy_handle(log, cells + log$begun, base::c(size, size))
    assign("gradops_diagonal", found$is + log$begun, envir = handle)
    handle
  }
}

# The product of such a matrix and another: each row or column is multiplied by a number. Skipping zeros gives
# equal results for finite numbers, with a third of the operations or less.
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

# `solve(a, b)`, or the inverse without `b`, of a matrix with one or two rows; NULL for anything else.
solution_in_log <- function(a, b = NULL) {
  .Call(C_solution_in_log, state, a, b) %||% add_to_log(list(a, b), function() .Call(C_solution_in_log, state, a, b))
}

# The determinant of a matrix with one or two rows, as a number; NULL for anything else.
number_of_determinant <- function(x) {
  .Call(C_determinant_in_log, state, x) %||% add_to_log(list(x), function() .Call(C_determinant_in_log, state, x))
}

# Small tensors and R's numbers, at least one of them in a log, as `order()` arranges the numbers of their elements;
# NULL if they are for Python, as is a number that would be repeated often: each of its copies has a gradient.
rearranged <- function(order, ...) {
  log <- vector_log()
  if (is.null(log)) {
    return(NULL)
  }
  if (...length() == 1L) {
    numbers <- if (has_log(..1)) numbers_in(log, ..1)
    cells <- if (!is.null(numbers)) order(numbers)
  } else {
    parts <- list(...)
    numbers <- if (any(vapply(parts, has_log, NA))) lapply(parts, numbers_in, log = log)
    cells <- if (!is.null(numbers) && !any(vapply(numbers, is.null, NA))) do.call(order, numbers)
  }
  size <- length(cells)
  if (size > most_together && size > length(unlist(numbers))) {
    return(NULL)
  }
  if (size > 0L && length(dim(cells)) < 3L) {
    lazy_handle(log, as.vector(cells), dim(cells) %||% length(cells))
  }
}

# The numbers of the elements as results in a log, as a vector or a matrix.
numbers_in <- function(log, x) {
  if (is.environment(x) && identical(.subset2(x, "gradops_log"), log)) {
    numbers <- .subset2(x, "gradops_is")
    dim <- .subset2(x, "gradops_dim")
  } else {
    found <- elements_in(log, x)
    if (is.null(found) || found$kind != 1L && length(found$is) > most_together) {
      return(NULL)
    }
    is <- if (found$kind == 1L) found$is else rows_in(log, "*", found$is, 1, 4 * found$kind)
    numbers <- is + log$begun
    dim <- found$dim
  }
  if (length(dim) == 2L) base::matrix(numbers, dim[1L], dim[2L]) else numbers
}

# `x` with `value` at `places`, both small; NULL if one has names, or where R refuses or warns.
assigned_in_log <- function(x, places, value) {
  if (length(x) <= most_together && !has_labels(x) && !has_labels(value)) {
    by_places(`[<-`, places, x, value)
  }
}

# `x[...]` by any of R's indices.
selected_in_log <- function(x, places, drop) {
  by_places(function(cells, ...) cells[..., drop = drop], places, x)
}

# The elements that `f()` of `cells`, indices and perhaps a value gives.
by_places <- function(f, places, x, value = NULL) {
  for (i in seq_along(places)) {
    place <- places[[i]]
    if (is.null(place)) {
      places[[i]] <- TRUE
    } else if (is.object(place) || !(is.numeric(place) || is.logical(place)) || anyNA(place)) {
      return(NULL)
    }
  }
  found <- function(cells, value = NULL) {
    given <- base::c(list(cells), places, if (!is.null(value)) list(value = as.vector(value)))
    cells <- tryCatch(do.call(f, given), error = function(e) NULL, warning = function(w) NULL)
    if (!anyNA(cells)) cells
  }
  if (is.null(value)) rearranged(found, x) else rearranged(found, x, value)
}
