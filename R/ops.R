# Ops whose R form is not that of their Python signature. The others are in generated-ops-*.R, made by tools/generate_r.

#' A sequence
#'
#' @param start,end First and last number. With one argument alone, the sequence goes from 1 to it.
#' @param step The distance.
#' @param dtype The result's dtype, such as `"float32"`; `NULL`: whole for R integers, else [config_floatx()].
#' @param include_end Whether `end` itself is in the sequence if a step ends there.
#' @returns A vector tensor on the default backend.
#' @seealso [op_linspace()], [op_logspace()].
#' @examplesIf gradops_available()
#' op_arange(5)
#' op_arange(0, 1, 0.25, include_end = FALSE)
#' @export
op_arange <- function(start, end, step = 1L, dtype = NULL, include_end = TRUE) {
  if (missing(end)) {
    end <- start
    start <- if (is.double(end)) 1 else 1L
  }
  check_number(start)
  check_number(end)
  check_number(step)
  flag(include_end)
  steps <- (end - start) / step
  count <- max(0, if (include_end) floor(steps + 1e-10) + 1 else ceiling(steps - 1e-10))
  whole <- is.integer(start) && is.integer(end) && is.integer(step)
  stop <- start + count * step
  call_op("arange", start, if (whole) as.integer(stop) else stop - step / 2, step, dtype)
}

#' A function of tensors, over all elements
#'
#' @param func An R function of single numbers (or of what `signature` says).
#' @param ... Nothing: the arguments after it are named.
#' @param excluded Numbers (from 1) or names of arguments that are passed on whole.
#' @param signature A generalised signature, such as `"(n),(n)->()"`, or `NULL`.
#' @returns An R function of tensors.
#' @seealso [op_vectorized_map()], [op_map()].
#' @examplesIf gradops_available()
#' f <- op_vectorize(function(x, y) x + 2 * y)
#' f(c(1, 2, 3), 10)
#' gradient(function(x) sum(f(x, 10)), c(1, 2, 3))
#' @export
op_vectorize <- function(func, ..., excluded = NULL, signature = NULL) {
  check_function(func)
  excluded <- lapply(excluded, function(argument) if (is.numeric(argument)) as.integer(argument) - 1L else argument)
  here <- environment()
  vectorized <- in_each_session(function() {
    call_core("interop.r.vectorize", callback(func, owner = here), excluded, signature)
  })
  function(...) several(call_python(vectorized(), list(...)))
}

#' Sizes of the dimensions
#'
#' @param x A tensor, a variable, or R numbers.
#' @returns An integer vector, of length 0 for a single number; `NA` where a TensorFlow graph does not know.
#' @seealso [op_ndim()], [tensor_shapes].
#' @examplesIf gradops_available()
#' op_shape(matrix(1:6, 2))
#' @export
op_shape <- function(x) {
  sizes <- py_to_r(call_op("shape", operand(x)))
  vapply(sizes, function(size) size %||% NA_integer_, 0L)
}

#' Parts of a tensor, by NumPy's rules
#'
#' Positions count from 1, and negative ones from the end. For R's rules, see [op_subset()].
#' @param x A tensor, a variable, or R numbers.
#' @param key A position, a vector or tensor of positions or of booleans, or a list with one of these for each leading
#'   dimension, `NULL` for all of it.
#' @returns A tensor: a single position drops its dimension.
#' @section Gradient:
#' The upstream gradient at the chosen positions, added up where one is chosen twice; 0 elsewhere.
#' @seealso [op_subset()] by R's rules, [op_take()].
#' @examplesIf gradops_available()
#' x <- op_reshape(1:6, c(2, 3))
#' op_get_item(x, 1)
#' op_get_item(x, list(NULL, -1))
#' gradient(function(x) op_get_item(x, 1)^2, c(2, 3))
#' @export
op_get_item <- function(x, key) {
  call_core("interop.r.get_item", operand(x), operand(key))
}

#' Positions of the elements that are not zero
#'
#' @param x A tensor, a variable, or R numbers.
#' @param zero_indexed Whether positions count from 0, as in Python, rather than from 1.
#' @returns An int64 tensor with a row for each such element and a column for each dimension, in row-major order. It has
#'   no gradient.
#' @seealso [op_where()], [op_argmax()].
#' @examplesIf gradops_available()
#' op_nonzero(matrix(c(0, 1, 2, 0), 2))
#' @export
op_nonzero <- function(x, zero_indexed = FALSE) {
  call_op("stack", several(call_op("nonzero", operand(x), flag(zero_indexed))), 2L)
}

#' Choose by a condition
#'
#' @param condition Booleans: a tensor, or R logicals.
#' @param x1,x2 Tensors, variables, or R numbers; they broadcast with `condition`. Without both, the positions of `TRUE`
#'   are given, as by [op_nonzero()].
#' @returns A tensor of `x1` where `condition` is true and `x2` elsewhere.
#' @section Gradient:
#' The upstream gradient to the operand chosen, 0 to the other, also where the other is NaN or infinite. (A NaN in the
#' derivative of what made the other operand still comes through.)
#' @section Errors:
#' - `gradops_error_argument`: only one of `x1` and `x2`; `NA` in `condition`.
#' - `gradops_error_shape`: shapes that do not broadcast.
#' @seealso [op_cond()], which computes one side only; [op_clip()]; [ifelse()][tensor_mapping] of tensors.
#' @examplesIf gradops_available()
#' op_where(c(TRUE, FALSE), c(1, 2), c(3, 4))
#' gradient(function(x) sum(op_where(x > 0, x^2, -x)), c(-2, 3))
#'
#' # the side that is not taken is computed too: change its argument where it has no finite derivative
#' safe_log <- function(x) {
#'   positive <- x > 0
#'   sum(op_where(positive, op_log(op_where(positive, x, 1)), 0))
#' }
#' gradient(safe_log, c(0, 2))
#' @export
op_where <- function(condition, x1 = NULL, x2 = NULL) {
  if (is.null(x1) && is.null(x2)) {
    op_nonzero(condition)
  } else {
    call_op("where", operand(condition), operand(x1), operand(x2))
  }
}

#' An R array of a tensor's values
#'
#' As `as.array()`, of anything that converts to a tensor; a single number has no dim.
#' @param x A tensor, a variable, or R numbers.
#' @returns An R array.
#' @seealso [op_convert_to_tensor()], [to_backend()].
#' @examplesIf gradops_available()
#' op_convert_to_array(op_exp(c(1, 2)))
#' @export
op_convert_to_array <- function(x) {
  if (is.null(x)) unsupported("x", "must be a tensor or numbers; got NULL.")
  as.array(call_op("convert_to_tensor", operand(x), NULL, NULL, NULL))
}

#' @rdname op_maximum
#' @export
op_pmax <- function(x1, x2) {
  call_op("maximum", operand(x1), operand(x2))
}

#' @rdname op_minimum
#' @export
op_pmin <- function(x1, x2) {
  call_op("minimum", operand(x1), operand(x2))
}

# One number where an op wants a vector.
one_or_more <- function(x) {
  if (is.numeric(x)) as.array(x) else x
}
