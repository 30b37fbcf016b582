# Short vectors of logged numbers: see scalars.R. What R does with two or three numbers at a time in a loop (the state of
# a filter, a row of data, `c(a, b)`) would be a call into Python, a step of the program and a node of the tape each
# time. So it is logged too, element by element; a vector's handle knows which numbers its elements are. Such a vector has
# no gradient of its own: code that asks for one is traced again without them.

# The longest such vector: of longer ones operations on arrays cost less.
most_together <- 8L

# Code in which vectors are tensors, as elsewhere.
without_vectors <- function(code) {
  before <- state$no_vectors
  state$no_vectors <- TRUE
  on.exit(state$no_vectors <- before)
  leave_scalars()
  code
}

# R's handle of numbers of a log: the environment of this call.
vector_handle <- function(log, numbers) {
  gradops_numbers <- numbers
  gradops_dim <- length(numbers)
  gradops_scalars <- log
  convert <- FALSE
  this <- environment()
  makeActiveBinding("pyobj", function() .subset2(scalar_whole(this), "pyobj"), this)
  attr(this, "class") <- log$classes
  this
}

# Whether a handle is one of logged numbers, a single one or a vector.
is_logged <- function(x) {
  is_scalar(x) || is_logged_vector(x)
}

is_logged_vector <- function(x) {
  !is.null(.subset2(x, "gradops_numbers"))
}

# An operation on vectors, or on a vector and a number; NULL where Python must do it.
vector_operation <- function(log, code, x, y) {
  if (!(is.environment(x) && is_logged_vector(x)) && (missing(y) || !is.environment(y) || !is_logged_vector(y))) {
    return(NULL)
  }
  first <- elements_in(log, x)
  second <- if (missing(y)) list(kind = 0, is = 0, size = 0L) else elements_in(log, y)
  if (is.null(first) || is.null(second)) {
    return(NULL)
  }
  size <- max(first$size, second$size)
  if (first$size > 0L && first$size != size || second$size > 0L && second$size != size) {
    return(NULL)
  }
  result <- vector_handle(log, log$add_rows(rep(code + 4 * first$kind + second$kind, size), first$is, second$is))
  keep_names(result, x, if (!missing(y)) y)
}

# An operand's kind and values, for each of its elements; its size, 0 of a number. NULL of what takes part in no log.
elements_in <- function(log, x) {
  if (!is.environment(x)) {
    size <- length(x)
    if (is.numeric(x) && !is.object(x) && is.null(dim(x)) && size > 0L && size <= most_together && !anyNA(x)) {
      list(kind = 0, is = as.double(x), size = if (size > 1L) size else 0L)
    }
  } else {
    number <- .subset2(x, "gradops_scalar")
    if (!is.null(number) && number >= log$begun) {
      return(list(kind = 1, is = number - log$begun, size = 0L))
    }
    input <- log$operand(x)
    if (!is.null(input)) {
      list(kind = input[1L], is = input[2L], size = 0L)
    } else {
      numbers <- numbers_in(log, x)
      if (!is.null(numbers)) list(kind = 1, is = numbers - log$begun, size = length(numbers))
    }
  }
}

# The numbers of the elements of a vector in a log, which reads them where it has not yet; NULL of what is no short one.
numbers_in <- function(log, x) {
  if (is_logged_vector(x) && identical(.subset2(x, "gradops_scalars"), log)) {
    return(.subset2(x, "gradops_numbers"))
  }
  known <- .subset2(x, "gradops_elements")
  if (is.null(known) || !identical(known$log, log)) {
    size <- log$input(x)[2L]
    is_short <- size > 1 && size <= most_together && length(known_dim(x)) == 1L
    known <- list(log = log, numbers = if (is_short) read_elements(log, x, seq_len(size)))
    assign("gradops_elements", known, envir = x)
  }
  known$numbers
}

# The numbers of elements of a tensor, by their places in R's order; NULL where Python must find them.
read_elements <- function(log, x, places) {
  input <- log$input(x)
  if (max(places) <= input[2L]) log$add_rows(rep(0, length(places)), input[1L], places - 1)
}

# `x[places]` of several; NULL where Python must find it.
vector_of <- function(x, places) {
  count <- length(places)
  log <- state$scalars
  if (is.null(log) || isTRUE(state$no_vectors) || count < 2L || count > most_together) {
    return(NULL)
  }
  if (!is.environment(log)) log <- begin_scalars(x)
  if (is.null(log)) {
    return(NULL)
  }
  own <- .subset2(x, "gradops_numbers")
  numbers <- if (!is.null(own) && identical(.subset2(x, "gradops_scalars"), log)) {
    if (max(places) <= length(own)) own[places]
  } else {
    read_elements(log, x, places)
  }
  if (!is.null(numbers)) vector_handle(log, numbers)
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
  vectors <- 0L
  for (k in rev(seq_along(dim))) {
    here <- positions_in(places[[k]], dim[k])
    count <- length(here)
    if (count == 0L || count > most_together) {
      return(NULL)
    }
    if (count > 1L) vectors <- vectors + 1L
    cells <- rep(cells * dim[k], each = count) + here - 1
  }
  if (vectors == 1L) vector_of(x, cells + 1)
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

# `c(...)` of numbers and vectors of which a log has one; NULL where Python must join them.
joined_in_log <- function(parts) {
  log <- state$scalars
  if (!is.environment(log) || isTRUE(state$no_vectors) || length(parts) > most_together) {
    return(NULL)
  }
  if (!any(vapply(parts, function(part) is.environment(part) && is_logged(part), NA))) {
    return(NULL)
  }
  elements <- lapply(parts, function(part) elements_in(log, part))
  sizes <- vapply(elements, function(part) if (is.null(part)) Inf else max(part$size, 1), 0)
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
  vector_handle(log, unlist(numbers))
}

# The sum of a logged vector; NULL of anything else.
sum_in_log <- function(x) {
  log <- state$scalars
  if (!is.environment(log) || !is.environment(x) || !is_logged_vector(x)) {
    return(NULL)
  }
  numbers <- numbers_in(log, x)
  total <- numbers[1L]
  for (number in numbers[-1L]) total <- log$add_rows(log$codes[["+"]] + 5, total - log$begun, number - log$begun)
  log$handle(total)
}
