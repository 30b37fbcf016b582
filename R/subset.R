#' Parts of a tensor, by R's rules
#'
#' `x[i, j]` of tensors and variables, and `op_subset()`, take what R's own `[` would take of an array: positions from 1,
#' negative ones leave out, logical ones choose, a missing one is all, a matrix with a column for each dimension
#' names single elements, one index alone counts through the elements in R's order (by column).
#' @param x A tensor or variable.
#' @param ... Indices: R's numbers and logicals, or tensors of whole numbers (from 1) or of booleans.
#' @param drop Whether dimensions of size 1 are dropped. A single element has no dimensions.
#' @returns A tensor.
#' @section Gradient:
#' The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.
#' @section Errors:
#' - `gradops_error_axis`: a position out of range, or a wrong number of indices.
#' @examplesIf gradops_available()
#' x <- op_reshape(1:6, c(2, 3))
#' op_subset(x, 1, 2:3)
#' x[, -1]
#' @export
op_subset <- function(x, ..., drop = TRUE) {
  subset_impl(x, rlang::enquos(..., .ignore_empty = "none"), drop, environment())
}

subset_tensor <- function(x, ..., drop = TRUE) {
  subset_impl(x, rlang::enquos(..., .ignore_empty = "none"), drop, environment())
}

subset_impl <- function(x, indices, drop, call) {
  if (!is.environment(x)) x <- call_op("convert_to_tensor", operand(x), NULL, NULL, NULL)
  x <- at_least_1d(x)
  size <- dim(x)
  indices <- lapply(indices, function(index) if (rlang::quo_is_missing(index)) NULL else rlang::eval_tidy(index) %||% integer())
  if (length(indices) == 0 || (length(indices) == 1 && is.null(indices[[1]]))) {
    return(x)
  }
  if (length(indices) == 1 && length(size) != 1) {
    return(subset_elements(x, indices[[1]], size, call))
  }
  if (length(indices) != length(size)) {
    index_error(sprintf("%d indices for %d dimensions", length(indices), length(size)), call)
  }
  for (axis in rev(seq_along(indices))) {
    x <- subset_axis(x, indices[[axis]], axis, size[axis], drop, call)
  }
  x
}

# One index alone, on a tensor of several dimensions: single elements, in R's order.
subset_elements <- function(x, index, size, call) {
  if (is.matrix(index) && is.numeric(index) && ncol(index) == length(size)) {
    if (any(index < 1) || any(index > rep(size, each = nrow(index)))) index_error("index out of range", call)
    index <- 1 + drop((index - 1) %*% cumprod(c(1, size[-length(size)])))
  } else if (is_tensor(index)) {
    index <- column_major(index)
  }
  subset_axis(column_major(x), index, 1L, as.integer(prod(size)), TRUE, call)
}

subset_axis <- function(x, index, axis, size, drop, call) {
  if (is.null(index)) {
    return(if (drop && identical(size, 1L)) call_op("squeeze", x, axis) else x)
  }
  if (is_tensor(index)) {
    if (call_op_plain("dtype", index) == "bool") index <- which(as.logical(index))
    return(call_op("take", x, index, axis))
  }
  positions <- r_positions(index, size, call)
  if (length(positions) == 1 && drop) {
    call_op("take", x, positions, axis)
  } else {
    call_op("take", x, operand(array(positions)), axis)
  }
}

call_op_plain <- function(name, ...) {
  plain(call_op(name, ...))
}

# R's meaning of an index of `size` elements, as positions from 1.
r_positions <- function(index, size, call) {
  if (is.factor(index)) index <- as.integer(index)
  if (!is.numeric(index) && !is.logical(index)) {
    index_error(sprintf("indices must be numeric or logical; got %s", friendly(index)), call)
  }
  if (is.logical(index) && length(index) > size) {
    index_error(sprintf("a logical index of length %d for %d elements", length(index), size), call)
  }
  positions <- tryCatch(seq_len(size)[as.vector(index)], error = function(error) index_error(conditionMessage(error), call))
  if (anyNA(positions)) {
    index_error(sprintf("index out of range, or NA; there are %d elements", size), call)
  }
  positions
}

index_error <- function(message, call) {
  abort(paste0("Cannot subset: ", message, "."), class = c("gradops_error_axis", "gradops_error"), call = call)
}
