#' Parts of a tensor, by R's rules
#'
#' `x[i, j]` of tensors and variables, and `op_subset()`, select what R's own `[` would select in an array: positions
#' count from 1, negative ones exclude, logicals select, an empty index selects everything, a matrix with a column for
#' each dimension selects single elements, and a single index counts through the elements in R's order, by column. If an
#' index is `NA`, or a single index is beyond the last element, the part is missing: NaN.
#'
#' `x[i, j] <- value` and `op_subset(x, i, j) <- value` make a new tensor with `value`, recycled as in R, in these
#' positions; other variables that hold the old tensor keep it.
#' @param x A tensor or variable.
#' @param ... Indices: R's numbers and logicals, or tensors of integers (from 1) or of booleans.
#' @param drop If `TRUE`, dimensions of size 1 are dropped. A single element has no dimensions.
#' @param value A tensor or R numbers.
#' @returns A tensor.
#' @section Gradient:
#' The selected positions get the upstream gradient, summed if a position is selected twice; others get 0. In an
#' assignment, `value` gets the upstream gradient of its positions, and `x` gets it everywhere else.
#' @section Errors:
#' - `gradops_error_axis`: a position out of range of its dimension, or not an integer; a wrong number of indices.
#' - `gradops_error_type`: an index that is neither numeric nor logical.
#' @seealso [op_get_item()] by NumPy's rules, [op_take()], [op_where()].
#' @examplesIf gradops_available()
#' x <- op_reshape(1:6, c(2, 3))
#' op_subset(x, 1, 2:3)
#' x[, -1]
#' x[x > 4] <- 0
#' x
#' gradient(function(x) sum(x[-1]^2), c(1, 2, 3))
#' @export
op_subset <- function(x, ..., drop = TRUE) {
  call_core("interop.r.subset", operand(x), indices(..., .of = x), flag(drop))
}

#' @rdname op_subset
#' @export
`op_subset<-` <- function(x, ..., value) {
  call_core("interop.r.assign", operand(x), indices(...), replacement(value))
}

#' @rdname op_subset
#' @usage op_subset_set(x, ..., value)
#' @export
op_subset_set <- `op_subset<-`

subset_tensor <- function(x, ..., drop = TRUE) { # nolint: cyclocomp_linter. The quick ways stand before the others.
  if (!is.logical(drop)) drop <- is_set(drop)
  if (!is.null(state$scalars) && isTRUE(drop)) {
    part <- .Call(C_part_in_log, state, x, places_of(...), TRUE)
    if (is.environment(part)) {
      return(part)
    }
  }
  if (!is.null(attr(x, "gradops_made", TRUE)) && ...length() > 0L && !reads_missing(x, ...)) {
    x <- read_part(x, places_of(...))
  }
  if (has_time(x)) {
    part <- subset_tensor(drop_time(x), ..., drop = drop)
    return(if (...length() == 0L || missing(..1)) with_time(part, time_of(x)) else part) # each column is a series
  }
  if (!is.null(state$missing) && is_marked(x)) {
    part <- marked_part(x, ..., drop = drop)
    if (!is.null(part)) {
      return(part)
    }
  }
  if (is_pending(x) && isTRUE(drop)) {
    part <- read_pending(x, places_of(...))
    if (!is.null(part)) {
      return(part)
    }
  }
  names <- own_names(x)
  if (is.null(names) && !is.null(state$scalars) && isTRUE(drop)) {
    part <- part_in_log(x, places_of(...))
    if (!is.null(part)) {
      return(part)
    }
  }
  if (!is.null(state$scalars) && has_log(x) && !has_labels(x)) {
    part <- selected_in_log(x, places_of(...), drop)
    if (!is.null(part)) {
      return(part)
    }
  }
  if (is.null(names) || ...length() != 1) {
    if (...length() > 1 && !is.null(dimnames_tensor(x))) {
      places <- places_of(...)
      return(with_part_names(call_core("interop.r.subset", x, places_in(x, places), flag(drop)), x, places, drop))
    }
    return(call_core("interop.r.subset", x, indices(..., .of = x), flag(drop)))
  }
  position <- position_of(if (is.factor(..1)) as.integer(..1) else ..1, names)
  part <- element_in_log(x, position) %||% call_core("interop.r.subset", x, list(as_python(position, "index")), drop)
  if (is_tensor(position)) part else with_names(part, part_of_names(names, position, drop))
}

# TRUE if some of the elements that are read are known to be missing.
reads_missing <- function(x, ...) {
  missing <- if (is_marked(x)) missing_in(x)
  if (!is.logical(missing) || !any(missing)) {
    return(FALSE)
  }
  places <- places_of(...)
  !any(vapply(places, is.environment, NA)) && any(cells_at(missing, places))
}

# A part of a tensor that has missing elements, for indices that are R's own; NULL for other indices.
marked_part <- function(x, ..., drop) {
  plain <- all(vapply(places_of(...), function(place) is.null(place) || is.numeric(place) || is.logical(place), NA))
  missing <- missing_in(x)
  if (plain && !is_any_tensor(missing)) {
    marked(.subset2(x, "gradops_present")[..., drop = drop], list(missing[..., drop = drop]))
  }
}

# Elements of a vector, or rows of an array.
take_rows <- function(x, rows) {
  others <- length(dim(x)) - 1L
  if (others < 1L) x[rows] else do.call(`[`, c(list(x, rows), rep(list(rlang::missing_arg()), others), drop = FALSE))
}

# The dimensions, asked for once and remembered, also for tensors that are not variables.
known_dim <- function(x) {
  dim <- dim_tensor(x)
  assign("gradops_extent", dim, envir = x)
  dim
}

# Indices into a matrix whose rows and columns have names.
places_in <- function(x, places, call = parent.frame(2)) {
  places <- Map(named_place, places, dimnames_tensor(x), MoreArgs = list(call))
  lapply(Map(numbered_place, places, dim(x)), place_operand)
}

# Convert logicals with NA to the positions that are TRUE, and NA.
numbered_place <- function(place, size) {
  if (!is.logical(place) || !anyNA(place)) {
    return(place)
  }
  chosen <- rep_len(place, max(length(place), size))
  replace(seq_along(chosen), is.na(chosen), NA)[!chosen %in% FALSE]
}

assign_tensor <- function(x, ..., value) {
  with_time(call_core("interop.r.assign", x, indices(...), replacement(value)), time_of(x))
}

# `x[[i]]` and `x[[i, j]]`: one element by R's rules; with a name, a Python attribute as `$` gives.
element_tensor <- function(x, ...) {
  if (...length() == 1 && is.character(..1)) {
    if (!is.null(names_tensor(x))) {
      position <- position_of(..1, names_tensor(x))
      return(element_in_log(x, position) %||% call_core("interop.r.subset", x, list(position), TRUE))
    }
    if (!reticulate::py_has_attr(x, ..1)) no_field(x, ..1, NULL)
    return(field_value(reticulate::py_get_attr(x, ..1)))
  }
  if (...length() > 1 && !is.null(dimnames_tensor(x))) {
    return(call_core("interop.r.subset", x, places_in(x, single(places_of(...))), TRUE, TRUE))
  }
  part <- if (is_pending(x)) read_pending(x, single(places_of(...)))
  if (is.null(part) && !is.null(state$scalars)) {
    places <- places_of(...)
    if (all(lengths(places) == 1L)) part <- part_in_log(x, places)
  }
  part %||% call_core("interop.r.subset", x, single(indices(...)), TRUE, TRUE)
}

assign_element_tensor <- function(x, ..., value) {
  if (...length() == 1 && is.character(..1)) {
    return(NextMethod())
  }
  call_core("interop.r.assign", x, single(indices(...)), replacement(value))
}

# Check that indices select a single element; R counts `TRUE` as 1 here.
single <- function(indices, call = parent.frame()) {
  one <- vapply(indices, function(index) is_any_tensor(index) || is.atomic(index) && length(index) == 1, NA)
  if (!all(one) || length(indices) == 0) {
    abort(
      "`[[` takes a single element: one position, or one for each dimension. Use `[` for more.",
      class = c("gradops_error_axis", "gradops_error"), argument = "i", call = call
    )
  }
  lapply(indices, function(index) if (is.logical(index)) as.integer(index) else index)
}

# The value that is assigned into a tensor: a tensor or numbers. NULL, which would remove an element of a list, is an
# error.
replacement <- function(value, call = parent.frame()) {
  if (!is_any_tensor(value) && (is.object(value) || !(is.numeric(value) || is.logical(value) || is.complex(value)))) {
    abort(
      sprintf("`value` must be a tensor or numbers; got %s.", friendly(value)),
      class = c("gradops_error_type", "gradops_error"), argument = "value", call = call
    )
  }
  operand(value)
}

# The indices in `...`, of the tensor `.of` if it is known, with NULL for an empty one.
indices <- function(..., .of = NULL) {
  written <- as.list(substitute(list(...)))[-1L]
  lapply(seq_along(written), function(i) {
    if (rlang::is_missing(written[[i]])) {
      return(NULL)
    }
    index <- ...elt(i) %||% integer()
    if (!is.null(.of) && is.character(index) && length(dim(index)) == 2L) index <- numbered_cells(index, .of)
    if (!is.null(.of) && is.logical(index) && anyNA(index)) {
      index <- numbered_place(index, if (length(written) == 1L) length(.of) else dim(.of)[i])
    }
    as_index(index)
  })
}

# Convert names of rows, columns, ... that select single elements to a matrix of positions.
numbered_cells <- function(names, x) {
  known <- dimnames_tensor(x)
  if (length(known) != ncol(names)) {
    return(names)
  }
  base::vapply(seq_along(known), function(i) position_of(names[, i], known[[i]]), integer(nrow(names))) |>
    base::matrix(ncol = ncol(names))
}

as_index <- function(index) {
  if (is.factor(index)) index <- as.integer(index) # its level numbers, as in R
  if (!is_any_tensor(index) && !is.numeric(index) && !is.logical(index)) {
    abort(
      sprintf("an index must be numeric or logical; got %s.", friendly(index)),
      class = c("gradops_error_type", "gradops_error"), argument = "i", call = parent.frame(4)
    )
  }
  as_python(index, "index")
}
