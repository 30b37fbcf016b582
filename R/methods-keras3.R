#' Idioms of keras3
#'
#' Notation for scripts written for keras3: `c(a, b) %<-% x` assigns the parts of `x` to names; `x@@r[...]` is an index
#' by keras3's rules; `array_reshape()` fills a shape by row.
#'
#' In `x@@r[...]` positions count from 1, and negative ones from the end, as in Python. A number drops its dimension,
#' vectors and slices `start:end` keep it; `start:end:step` takes steps, and `NA` is the first or the last position.
#' `NULL` adds a dimension, `..` stands for all dimensions that are not named, and dimensions omitted at the end are
#' taken whole: `x@@r[1]` is the first row. A logical array of the shape of `x` selects elements by row, a matrix with a
#' column for each dimension selects single elements. For R's own objects `@@` works as in R. (Before R 4.3, a function
#' that R has compiled, as it does after some calls, finds this `@@` only if the function is differentiated or compiled
#' by [jit()]; [op_subset()] always works.)
#' @param x For `\%<-\%`, names: `c(a, b)`, nested, with `.` for a part to skip and `...rest` for all others. Otherwise
#'   a tensor, or what reticulate's `array_reshape()` takes.
#' @param value A list, a vector, or a tensor, whose parts are its rows.
#' @param object,name A tensor, and `r`.
#' @param dim Sizes; -1 is computed from the others.
#' @param order `"C"` fills by row, `"F"` by column.
#' @returns `\%<-\%` returns `value`, invisibly; the others a tensor.
#' @section Gradient:
#' Each element gets the upstream gradient at its position.
#' @section Errors:
#' - `gradops_error_argument`: a number of parts that does not fit.
#' - `gradops_error_axis`: more indices than dimensions, positions out of range.
#' @seealso [tensor_shapes], [op_qr()].
#' @examplesIf gradops_available()
#' c(q, r) %<-% op_qr(matrix(c(2, 1, 1, 3), 2))
#' array_reshape(variable(1:6 / 2), c(2, 3))
#' @name keras_idioms
NULL

#' @rdname keras_idioms
#' @usage x \%<-\% value
#' @export
`%<-%` <- function(x, value) {
  assign_parts(substitute(x), value, parent.frame(), sys.call())
  invisible(value)
}

assign_parts <- function(names, value, env, call) {
  if (!rlang::is_call(names, "c")) {
    if (!identical(names, quote(.))) eval(call("<-", names, call("quote", value)), env)
    return()
  }
  names <- as.list(names)[-1]
  parts <- parts_of(value)
  rest <- which(vapply(names, function(name) is.symbol(name) && startsWith(as.character(name), "..."), NA))
  extra <- length(parts) - length(names)
  if (length(rest) > 1 || (length(rest) == 0 && extra != 0) || extra < -1) {
    abort(
      sprintf("there are %d names for %d parts.", length(names), length(parts)),
      class = c("gradops_error_argument", "gradops_error"), argument = "value", call = call
    )
  }
  if (length(rest) == 1) {
    taken <- seq_len(extra + 1L) + rest - 1L
    parts <- c(parts[seq_len(rest - 1L)], list(parts[taken]), parts[-seq_len(rest + extra)])
    name <- sub("^\\.\\.\\.", "", as.character(names[[rest]]))
    names[[rest]] <- if (nzchar(name)) as.name(name) else quote(.)
  }
  Map(function(name, part) assign_parts(name, part, env, call), names, parts)
}

parts_of <- function(value) {
  if (is.environment(value) && is_tensor(value)) {
    if (length(dim(value)) > 0) op_unstack(value, axis = 1L) else list(value)
  } else if (inherits(value, "python.builtin.object")) {
    parts <- several(value)
    if (is.list(parts)) parts else list(parts)
  } else {
    unname(as.list(value))
  }
}

#' @rdname keras_idioms
#' @export
array_reshape <- function(x, dim, order = c("C", "F")) {
  order <- chosen(order)
  if (is.environment(x) && is_tensor(x)) {
    if (order == "C") op_reshape(x, dim) else fill(x, whole_shape(dim, length(x)))
  } else {
    reticulate::array_reshape(x, dim, order)
  }
}

whole_shape <- function(dim, size) {
  dim <- unlist(dim)
  unknown <- is.na(dim) | dim == -1
  if (sum(unknown) == 1) dim[unknown] <- size / prod(dim[!unknown])
  dim
}

# `x@r[...]` --------------------------------------------------------------------------------------------------------

#' @rdname keras_idioms
#' @usage object@@name
#' @rawNamespace if (getRversion() < "4.3.0") export("@")
`@` <- function(object, name) {
  if (is.environment(object) && is_tensor(object)) {
    at_tensor(object, as.character(substitute(name)))
  } else {
    value <- if (isS4(object)) attr(object, as.character(substitute(name)), TRUE) # a slot, most often
    if (is.null(value) || is.symbol(value)) {
      eval(as.call(list(base::`@`, quote(object), substitute(name))))
    } else {
      value
    }
  }
}

at_operator <- function(object, name) {
  if (is.environment(object) && is_tensor(object)) {
    at_tensor(object, name)
  } else if (is_sparse_tensor(object)) {
    slot_of_sparse(object, name)
  } else {
    eval(call("@", object, as.name(name)))
  }
}

at_tensor <- function(object, name) {
  if (!identical(name, "r")) {
    return(eval(call("$", object, as.name(name))))
  }
  structure(list(object), class = "gradops_places")
}

#' @noRd
#' @export
`[.gradops_places` <- function(x, ...) {
  tensor <- unclass(x)[[1]]
  written <- as.list(substitute(list(...)))[-1L]
  keras_part(tensor, written, parent.frame(), sys.call())
}

keras_part <- function(x, written, env, call) {
  sizes <- dim(x)
  if (length(written) == 1 && !rlang::is_missing(written[[1]]) && !is_slice(written[[1]])) {
    index <- eval(written[[1]], env)
    if (is.logical(index) && identical(as.integer(dim(index)), as.integer(sizes))) {
      return(op_get_item(op_reshape(x, -1L), which(as.vector(aperm(index)))))
    }
    if (is.matrix(index) && is.numeric(index) && ncol(index) == length(sizes)) {
      return(op_subset(x, from_start(index, sizes)))
    }
  }
  indices <- list()
  shape <- integer()
  for (part in full_index(written, length(sizes), call)) {
    if (is_newaxis(part)) {
      shape <- c(shape, 1L)
    } else {
      size <- sizes[length(indices) + 1L]
      place <- place_of(part, size, env)
      indices <- c(indices, list(place$index))
      if (!place$drops) shape <- c(shape, length(place$index))
    }
  }
  chosen <- do.call(op_subset, c(list(x), indices, drop = FALSE), quote = TRUE)
  op_reshape(chosen, shape)
}

# The index as written, with an empty index for each dimension that `..` or the end of the index omits.
full_index <- function(written, rank, call) {
  dots <- vapply(written, function(part) identical(part, quote(..)), NA)
  named <- sum(!vapply(written, is_newaxis, NA) & !dots)
  if (named > rank || sum(dots) > 1) {
    abort(
      sprintf("there are %d indices for %d dimensions.", named, rank),
      class = c("gradops_error_axis", "gradops_error"), argument = "i", call = call
    )
  }
  at <- if (any(dots)) which(dots) else length(written) + 1L
  all <- rep(list(rlang::missing_arg()), rank - named) # an empty index selects the whole dimension
  c(written[seq_len(at - 1L)], all, written[-seq_len(at)])
}

is_newaxis <- function(part) {
  !rlang::is_missing(part) && (is.null(part) || identical(part, quote(newaxis)))
}

is_slice <- function(part) {
  rlang::is_call(part, ":")
}

# R's positions for one index, and whether it drops its dimension.
place_of <- function(part, size, env) {
  if (rlang::is_missing(part)) {
    return(list(index = seq_len(size), drops = FALSE))
  }
  if (is_slice(part)) {
    ends <- as.list(part)[-1]
    step <- 1
    if (is_slice(ends[[1]])) {
      step <- eval(ends[[2]], env)
      ends <- as.list(ends[[1]])[-1]
    }
    ends <- lapply(ends, eval, env)
    start <- if (is.na(ends[[1]])) if (step > 0) 1 else size else from_start(ends[[1]], size)
    end <- if (is.na(ends[[2]])) if (step > 0) size else 1 else from_start(ends[[2]], size)
    inside <- (end - start) * sign(step) >= 0
    return(list(index = if (inside) seq(start, min(end, size), by = step) else integer(), drops = FALSE))
  }
  index <- eval(part, env)
  if (is_tensor(index)) index <- r_values(index)
  if (is.logical(index)) {
    return(list(index = which(rep_len(index, size)), drops = FALSE))
  }
  list(index = from_start(index, size), drops = length(index) == 1L && is.null(dim(index)))
}

# Convert negative positions, which count from the end.
from_start <- function(index, sizes) {
  if (is.matrix(index)) sizes <- rep(sizes, each = nrow(index))
  index[] <- ifelse(index < 0, index + sizes + 1, index)
  if (any(index < 1)) {
    unsupported("i", "must hold positions from 1, or from the end with -1.")
  }
  index
}
