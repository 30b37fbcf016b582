#' Sort and search tensors
#'
#' `sort()`, `order()`, `which()`, `which.max()`, `which.min()`, `unique()` and `duplicated()` on tensors and variables.
#' For ordinary R vectors the base R function is called.
#'
#' Positions are R's integers, for use with `[`. In a function that [jit()] compiles on NumPy the program holds for
#' values in the same order. Other libraries do not know values while a function is traced: there `which.max()` and
#' `which.min()` return a tensor, `sort()` works but drops names, and the others are errors.
#' @param x A tensor, or what base R takes.
#' @param arr.ind,useNames As in base R.
#' @returns `sort()` and `unique()`: a tensor. The others: R's integers.
#' @section Gradient:
#' `sort()` and `unique()` pass the gradient to the selected elements; positions have none.
#' @section Errors:
#' - `gradops_error_jit`: positions or `unique()` of a traced tensor.
#' @seealso [op_sort()], [op_top_k()], [op_argmax()].
#' @examplesIf gradops_available()
#' x <- variable(c(3, 1, 2))
#' sort(x, decreasing = TRUE)
#' x[order(x)]
#' which(x > 1)
#' which.max(x)
#' gradient(function(x) sum(sort(x) * 1:3), c(3, 1, 2))
#' @name tensor_order
NULL

#' @rdname tensor_order
#' @export
which <- function(x, arr.ind = FALSE, useNames = TRUE) {
  if (is.object(x) && is_tensor(x)) {
    which_tensor(x, arr.ind, useNames)
  } else { # not a generic: `which.max()` would look like its method
    (if (isS4(x)) to_s4("which", "base", base::which) else base::which)(x, arr.ind, useNames)
  }
}

# The positions where a test is TRUE, or the test itself if its values are not known.
places_where <- function(x) {
  if (is_tensor(x) && is.null(known_values(x))) x else which(x)
}

which_tensor <- function(x, arr.ind = FALSE, useNames = TRUE) {
  values <- known_values(x) %||% looked_at(x, "which") %||%
    needs_values("`which()`", "Use the booleans themselves: `ifelse()`, `op_where()`.")
  base::which(if (length(dim(values)) > 1L) values else as.vector(values), arr.ind, useNames)
}

#' @rdname tensor_order
#' @export
which.max <- function(x) {
  UseMethod("which.max", among(x))
}

which_max_tensor <- function(x) {
  extreme_place(x, base::which.max, op_nanargmax)
}

#' @rdname tensor_order
#' @export
which.min <- function(x) {
  UseMethod("which.min", among(x))
}

which_min_tensor <- function(x) {
  extreme_place(x, base::which.min, op_nanargmin)
}

# The position of an extreme value. In a trace it is looked at, or a tensor if it must not be.
extreme_place <- function(x, original, op) {
  values <- known_values(x)
  if (!is.null(values)) {
    return(original(stats::setNames(as.vector(values), names_tensor(x))))
  }
  if (length(x) == 0L || isTRUE(looked_at(op_all(op_isnan(x)), "if"))) {
    return(integer())
  }
  place <- op(flat(x))
  found <- looked_at(place, "whole")
  if (is.null(found)) place else stats::setNames(as.integer(found), names_tensor(x)[found])
}

# NaN are dropped as in R (`na.last = NA`); in a traced tensor they come last.
sort_tensor <- function(x, decreasing = FALSE, na.last = NA, index.return = FALSE, ...) {
  if (is_set(index.return)) {
    places <- order(x, na.last = na.last, decreasing = decreasing)
    return(list(x = x[places], ix = places))
  }
  if (!is.null(own_names(x))) {
    values <- known_values(x) %||% looked_at(x, "order")
    if (is_one_dimensional(x) || !is.null(values)) {
      return(x[order(values %||% x, na.last = na.last, decreasing = decreasing)])
    }
  }
  x <- flat(x)
  values <- known_values(x)
  nan <- if (is.null(values)) integer() else base::which(is.na(values))
  missing <- x[nan]
  if (length(nan) > 0) x <- x[-nan]
  sorted <- op_sort(x)
  if (decreasing) sorted <- op_flip(sorted)
  if (is.na(na.last) || length(nan) == 0) sorted else if (na.last) c(sorted, missing) else c(missing, sorted)
}

# The sort keys that `order()` asks for.
xtfrm_tensor <- function(x) {
  as.vector(known_values(x) %||% looked_at(x, "order") %||%
    needs_values("`order()`", "Use `sort()` or `op_argsort()`."))
}

unique_tensor <- function(x, incomparables = FALSE, ...) {
  keep <- base::which(!duplicated_tensor(x, incomparables, ...))
  take_rows(x, keep)
}

duplicated_tensor <- function(x, incomparables = FALSE, ...) {
  values <- known_values(x) %||% looked_at(x, "order") %||%
    needs_values("`unique()`", "Use `op_unique()` with a `size`.")
  duplicated(if (length(dim(values)) > 1L) values else as.vector(values), incomparables, ...)
}
