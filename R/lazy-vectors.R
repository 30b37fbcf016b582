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

# An operation on vectors or matrices of the same dimensions, on one and a number, or on numbers that are tensors.
operation_on_elements <- function(log, code, x, y) {
  first <- elements_in(log, x)
  second <- if (is.null(first)) NULL else if (missing(y)) of_numbers(0, 0) else elements_in(log, y)
  if (is.null(second)) {
    return(NULL)
  }
  dim <- if (is.null(first$dim)) second$dim else first$dim
  if (!is.null(second$dim) && !identical(second$dim, dim)) {
    return(NULL)
  }
  code <- code + 4 * first$kind + second$kind
  result <- if (is.null(dim)) {
    log$add(code, first$is, second$is)
  } else {
    lazy_handle(log, log$add_rows(rep(code, prod(dim)), first$is, second$is), dim)
  }
  keep_names(result, x, if (!missing(y)) y)
}

# A function of the core, as `kind`, `family` and `settings` name it, of numbers that are logged and R's own; NULL where
# it is for Python. It is an operation of the log, whose first operands stand in operations "more" before it.
composed_in_log <- function(kind, family, settings, arguments) {
  log <- log_for(arguments)
  operands <- if (!is.null(log)) operands_in(log, arguments)
  dims <- unique(Filter(Negate(is.null), lapply(operands, `[[`, "dim")))
  if (is.null(operands) || length(dims) > 1L) {
    return(NULL)
  }
  code <- function_code(log, kind, family, settings, length(operands))
  if (!is.null(code)) add_function(log, code, operands, if (length(dims) > 0L) dims[[1L]])
}

# The log that goes on, or that begins with one of the arguments; NULL where they are for Python.
log_for <- function(arguments) {
  if (!is.null(state$in_time) || !is.null(state$missing) && any(vapply(arguments, is_marked, NA))) {
    return(NULL)
  }
  log <- vector_log()
  if (!is.environment(state$scalars)) {
    for (x in arguments) if (is.null(log) && has_log(x)) log <- begin_scalars(x)
  }
  log
}

# The operands that `elements_in()` makes of all arguments; NULL where one of them cannot be logged.
operands_in <- function(log, arguments) {
  operands <- list()
  for (x in arguments) {
    found <- elements_in(log, x)
    if (is.null(found)) {
      return(NULL)
    }
    operands <- base::c(operands, list(found))
  }
  operands
}

# The result of a function of operands with dimensions `dim` or none.
add_function <- function(log, code, operands, dim) {
  # Three numbers are an operation: of five operands the first four stand in two operations "more", and the last with a
  # 0 in the operation itself. "more" has no result, but is counted: Python counts along, and the numbers must be the
  # same.
  if (length(operands) %% 2L == 1L) operands <- base::c(operands, list(of_numbers(0, 0)))
  first <- seq(1L, length(operands), by = 2L)
  pairs <- length(first)
  size <- if (is.null(dim)) 1L else prod(dim)
  values <- vapply(operands, function(operand) rep_len(as.double(operand$is), size), numeric(size))
  values <- base::matrix(values, size)
  of <- vapply(operands, `[[`, 0, "kind")
  codes <- base::c(rep(log$codes$more, pairs - 1L), code) + 4 * of[first] + of[first + 1L]
  row_by_row <- function(columns) base::as.vector(base::t(values[, columns, drop = FALSE]))
  numbers <- log$add_rows(rep(codes, size), row_by_row(first), row_by_row(first + 1L))
  lazy_handle(log, numbers[pairs * seq_len(size)], dim)
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

# An operand's kind and values, for each of its elements; its dimensions, NULL of a number. NULL of what takes part in
# no log, such as a tensor of many elements; those of a small one are read once.
elements_in <- function(log, x) {
  if (!is.environment(x)) {
    return(if (is_small(x)) of_numbers(0, as.double(x), dim(x) %||% if (length(x) > 1L) length(x)))
  }
  if (identical(.subset2(x, "gradops_log"), log)) {
    return(of_numbers(1, .subset2(x, "gradops_is") - log$begun, .subset2(x, "gradops_dim")))
  }
  known <- .subset2(x, "gradops_elements")
  if (is.null(known) || !identical(known$log, log)) {
    input <- input_in(log, x)
    fits <- input[2L] >= 1 && input[2L] <= most_together && length(known_dim(x)) <= 2L
    # A tensor that is used in each round of a loop is read once: the handle remembers its elements, with the log in
    # which they have these numbers.
    numbers <- if (fits) read_elements(log, x, seq_len(input[2L]))
    known <- list(log = log, elements = if (input[2L] == 0) {
      of_numbers(2, input[1L])
    } else if (!is.null(numbers)) {
      of_numbers(1, numbers - log$begun, known_dim(x))
    })
    assign("gradops_elements", known, envir = x)
  }
  known$elements
}

# The same for ordinary R values.
is_small <- function(x) {
  size <- length(x)
  is.numeric(x) && !is.object(x) && size > 0L && size <= most_together && length(dim(x)) <= 2L && !anyNA(x)
}

of_numbers <- function(kind, is, dim = NULL) {
  list(kind = kind, is = is, dim = dim)
}

# The numbers of elements of a tensor, by their places in R's order; NULL where Python must find them.
read_elements <- function(log, x, places) {
  input <- input_in(log, x)
  if (max(places) <= input[2L]) log$add_rows(rep(0, length(places)), input[1L], places - 1)
}

# `x[places]` of several, with dimensions; NULL where Python must find it.
vector_of <- function(x, places, dim) {
  log <- state$scalars
  if (is.null(log) || isTRUE(state$no_vectors) || length(places) > most_together) {
    return(NULL)
  }
  if (!is.environment(log)) log <- begin_scalars(x)
  if (is.null(log)) {
    return(NULL)
  }
  numbers <- if (identical(.subset2(x, "gradops_log"), log)) {
    own <- .subset2(x, "gradops_is")
    if (max(places) <= length(own)) own[places]
  } else {
    read_elements(log, x, places)
  }
  if (!is.null(numbers)) lazy_handle(log, numbers, dim)
}

# `x[i]`, `x[i, ]` and their like of a few elements that are a vector, in a function that is compiled; NULL of others.
several_elements <- function(x, ..., drop = TRUE) {
  if (!isTRUE(drop) || ...length() > 1L && !is.null(dimnames_tensor(x))) {
    return(NULL)
  }
  places <- places_of(...)
  dim <- known_dim(x)
  if (length(dim) == 0L || length(places) > 1L && length(places) != length(dim)) {
    return(NULL)
  }
  if (length(places) == 1L) dim <- prod(dim)
  cells <- 0
  sizes <- integer()
  for (k in rev(seq_along(dim))) {
    here <- positions_in(places[[k]], dim[k])
    count <- length(here)
    if (count == 0L || count > most_together) {
      return(NULL)
    }
    if (count > 1L) sizes <- base::c(count, sizes)
    cells <- rep(cells * dim[k], each = count) + here - 1
  }
  if (length(sizes) %in% 1:2) vector_of(x, cells + 1, sizes)
}

# The positions that an index means among `size`, NULL of what is for Python to find or to refuse.
positions_in <- function(place, size) {
  if (is.null(place)) {
    if (size <= most_together) seq_len(size)
  } else if (is.numeric(place) && !is.object(place) && is.null(dim(place)) && !anyNA(place) && length(place) > 0L) {
    if (min(place) >= 1) {
      if (max(place) < size + 1) trunc(place)
    } else if (max(place) <= -1 && size <= 2L * most_together) {
      seq_len(size)[place]
    }
  }
}

# `c(...)` of numbers and vectors of which a log has one.
joined_in_log <- function(parts) {
  log <- vector_log()
  if (is.null(log) || length(parts) > most_together || !any(vapply(parts, has_log, NA))) {
    return(NULL)
  }
  elements <- lapply(parts, function(part) elements_in(log, part))
  sizes <- vapply(elements, function(part) if (is.null(part)) Inf else prod(part$dim), 0) # 1 of a number
  if (sum(sizes) < 2 || sum(sizes) > most_together) {
    return(NULL)
  }
  numbers <- lapply(elements, function(part) {
    if (part$kind == 1) {
      part$is + log$begun
    } else {
      log$add_rows(rep(log$codes[["*"]] + 4 * part$kind, length(part$is)), part$is, 1)
    }
  })
  numbers <- base::unlist(numbers)
  lazy_handle(log, numbers, length(numbers))
}

# The sum of a handle's numbers; NULL of anything else.
sum_in_log <- function(x) {
  log <- state$scalars
  if (!is.environment(log) || !has_log(x) || is_scalar(x)) {
    return(NULL)
  }
  lazy_handle(log, sums_in(log, t(elements_in(log, x)$is)))
}

# The numbers of the sums of the rows of a matrix of numbers.
sums_in <- function(log, terms) {
  total <- terms[, 1L]
  for (k in seq_len(ncol(terms))[-1L]) total <- rows_in(log, "+", total, terms[, k])
  total + log$begun
}

# The numbers of an operation on numbers of the log, or on those that `kinds` says, as operands of later ones.
rows_in <- function(log, op, first, second, kinds = 5) {
  log$add_rows(rep(log$codes[[op]] + kinds, max(length(first), length(second))), first, second) - log$begun
}

# Small matrices ------------------------------------------------------------------------------------------------------

# `x %*% y` by R's rules.
product_in_log <- function(x, y) {
  log <- vector_log()
  first <- if (!is.null(log)) elements_in(log, x)
  second <- if (!is.null(first)) elements_in(log, y)
  if (length(first$dim) == 0L || length(second$dim) == 0L) {
    return(NULL)
  }
  dims <- dims_in_product(first$dim, second$dim)
  rows <- dims[[1L]][1L]
  inner <- dims[[1L]][2L]
  columns <- dims[[2L]][2L]
  if (inner != dims[[2L]][1L] || rows * inner * columns > 3L * most_together) {
    return(NULL)
  }
  places <- places_in_product(rows, inner, columns)
  kinds <- 4 * first$kind + second$kind
  terms <- rows_in(log, "*", first$is[places[[1L]]], second$is[places[[2L]]], kinds)
  lazy_handle(log, sums_in(log, base::matrix(terms, ncol = inner)), base::c(rows, columns))
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
  if (identical(found$kind, 1) && length(dim) == 2L && dim[1L] == dim[2L] && dim[1L] <= 2) found
}

# Where the factors of the terms of a product stand in both matrices; of each size found once.
places_in_product <- function(rows, inner, columns) {
  size <- rows + (most_together + 1L) * (inner + (most_together + 1L) * columns)
  key <- as.character(size)
  known <- state$products[[key]]
  if (is.null(known)) {
    row <- rep(seq_len(rows), columns * inner)
    column <- rep(rep(seq_len(columns), each = rows), inner)
    k <- rep(seq_len(inner), each = rows * columns)
    known <- state$products[[key]] <- list(row + (k - 1L) * rows, k + (column - 1L) * inner)
  }
  known
}

# The dimensions that vectors take in a product: a row or a column, whichever fits.
dims_in_product <- function(x, y) {
  row <- function(n) base::c(1L, n)
  column <- function(n) base::c(n, 1L)
  if (length(x) == 1L && length(y) == 1L) {
    if (x == y) list(row(x), column(y)) else list(column(x), row(y))
  } else if (length(x) == 1L) {
    list(if (x == y[1L]) row(x) else column(x), y)
  } else if (length(y) == 1L) {
    list(x, if (y == x[2L]) column(y) else row(y))
  } else {
    list(x, y)
  }
}

# A small tensor's numbers in other places; NULL of anything else.
rearranged <- function(x, order) {
  log <- vector_log()
  found <- if (!is.null(log)) elements_in(log, x)
  if (identical(found$kind, 1) && length(found$dim) > 0L) {
    cells <- order(base::array(seq_along(found$is), found$dim))
    if (is.matrix(cells)) lazy_handle(log, found$is[cells] + log$begun, dim(cells))
  }
}
