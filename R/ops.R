# Ops whose R signature differs from Python's. The others are in generated-ops-*.R, made by tools/generate_r, which also
# adds these comments to the families' pages.

#' @evalNamespace sprintf("export(%s)", setdiff(ls(asNamespace("gradops"), pattern = "^op_[a-z0-9_]+$"), "op_name"))
NULL

#' @noRd
#' @rdname ops_sequences_of_numbers
#' @details
#' \describe{
#' \item{`op_arange(start, end)`}{Numbers from `start` to `end` in steps of `step`. With a single argument, the sequence
#' goes from 1 to that argument. Gradient: none.}
#' }
#' @param end Last number.
#' @param step The difference of consecutive numbers.
#' @param include_end Include `end` if a step reaches it.
#' @returns `op_arange()`: A vector tensor on the default backend, of `dtype`; by default integer for R integers, else
#'   the dtype of [config_floatx()].
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

#' @noRd
#' @rdname ops_mapped_functions
#' @details
#' \describe{
#' \item{`op_vectorize(func)`}{A function of tensors that applies an R function of single numbers (or of the dimensions
#' in `signature`) to all elements of its arguments, broadcast. Gradient: through every call, to the arguments and to
#' variables that `func` closes over.}
#' }
#' @param func An R function of single numbers (or of the dimensions in `signature`).
#' @param ... Must be empty: for an argument name of another library, such as `dim`, the error gives the name in
#'   gradops.
#' @param excluded Numbers (from 1) or names of arguments that are passed on without vectorizing over them.
#' @param signature The dimensions that `func` takes and returns, such as `"(m,n),(n)->(m)"`, or `NULL`.
#' @returns `op_vectorize()`: An R function of tensors, numbers and lists; its results have the broadcast dimensions
#'   first.
#' @section Errors:
#' - `gradops_error_argument`: an invalid signature; from the function, a wrong number of arguments (`op_vectorize()`).
#' - `gradops_error_shape`: from the function, arguments that do not broadcast or do not fit the signature
#'   (`op_vectorize()`).
op_vectorize <- function(func, ..., excluded = NULL, signature = NULL) {
  check_function(func)
  excluded <- lapply(excluded, function(argument) if (is.numeric(argument)) as.integer(argument) - 1L else argument)
  here <- environment()
  vectorized <- remade_in_session(function() {
    call_core("interop.r.vectorize", callback(func, owner = here), excluded, signature)
  })
  function(...) several(call_python(vectorized(), list(...)))
}

#' @noRd
#' @rdname ops_properties_of_tensors
#' @details
#' \describe{
#' \item{`op_shape(x)`}{The sizes of the dimensions. Gradient: none. See also [tensor_shapes].}
#' }
#' @returns `op_shape()`: An integer vector, of length 0 for a single number; `NA` for a size that a TensorFlow graph
#'   does not know.
op_shape <- function(x) {
  sizes <- py_to_r(call_op("shape", operand(x)))
  vapply(sizes, function(size) size %||% NA_integer_, 0L)
}

#' @noRd
#' @rdname ops_elements_by_position
#' @details
#' \describe{
#' \item{`op_get_item(x, key)`}{Parts of a tensor, by NumPy's rules: positions count from 1, and negative ones from the
#' end. Gradient: the upstream gradient at the selected positions, summed if a position is selected twice; 0 elsewhere.
#' See also [op_subset()] by R's rules.}
#' }
#' @param key A position, a vector or tensor of positions or of booleans, or a list with one of these for each leading
#'   dimension; `NULL` selects the whole dimension.
#' @returns `op_get_item()`: A tensor of `x`'s dtype; a single position drops its dimension.
#' @section Errors:
#' - `gradops_error_axis`: a position out of range, or more positions than dimensions (`op_get_item()`).
op_get_item <- function(x, key) {
  call_core("interop.r.get_item", operand(x), operand(key))
}

#' @noRd
#' @rdname ops_choice_by_condition
#' @details
#' \describe{
#' \item{`op_nonzero(x)`}{Positions of the elements that are not zero. Gradient: none. See also [op_argmax()].}
#' }
#' @param x A tensor, a variable, or R numbers.
#' @param zero_indexed Count positions from 0, as in Python, rather than from 1.
#' @returns `op_nonzero()`: An int64 tensor with a row for each such element and a column for each dimension, in
#'   row-major order.
#' @section Errors:
#' - `gradops_error_shape`: a single number without dimensions (`op_nonzero()`).
op_nonzero <- function(x, zero_indexed = FALSE) {
  call_op("stack", several(call_op("nonzero", operand(x), flag(zero_indexed))), 2L)
}

#' @noRd
#' @rdname ops_choice_by_condition
#' @details
#' \describe{
#' \item{`op_where(condition, x1, x2)`}{`x1` where `condition` is true, `x2` elsewhere; without both, the positions of
#' `TRUE`, as by `op_nonzero()`. Gradient: the upstream gradient to the selected operand, 0 to the other, even where the
#' other is NaN or infinite. See also [ifelse()][tensor_mapping] of tensors.}
#' }
#' @param condition Booleans: a tensor, or R logicals.
#' @param x1,x2 Tensors, variables, or R numbers; they broadcast with `condition`.
#' @returns `op_where()`: A tensor of the broadcast shape.
#' @section Errors:
#' - `gradops_error_argument`: only one of `x1` and `x2`; `NA` in `condition` (`op_where()`).
#' - `gradops_error_shape`: shapes that do not broadcast (`op_where()`).
op_where <- function(condition, x1 = NULL, x2 = NULL) {
  if (is.null(x1) && is.null(x2)) {
    op_nonzero(condition)
  } else {
    call_op("where", operand(condition), operand(x1), operand(x2))
  }
}

#' @noRd
#' @rdname ops_conversion
#' @details
#' \describe{
#' \item{`op_convert_to_array(x)`}{An R array of the values, like `as.array()`, for anything that converts to a tensor;
#' a single number has no dim. Gradient: none. See also [to_backend()].}
#' }
#' @returns `op_convert_to_array()`: An R array.
op_convert_to_array <- function(x) {
  if (is.null(x)) unsupported("x", "must be a tensor or numbers; got NULL.")
  as.array(call_op("convert_to_tensor", operand(x), NULL, NULL, NULL))
}

#' @noRd
#' @rdname ops_extremes_of_two_tensors
#' @details
#' \describe{
#' \item{`op_pmax(x1, x2)`, `op_pmin(x1, x2)`}{`op_maximum()` and `op_minimum()` by the names of R. Gradient: the same
#'   as theirs.}
#' }
#' @returns `op_pmax()`, `op_pmin()`: As for `op_maximum()`.
op_pmax <- function(x1, x2) {
  call_op("maximum", operand(x1), operand(x2))
}

#' @noRd
#' @rdname ops_extremes_of_two_tensors
op_pmin <- function(x1, x2) {
  call_op("minimum", operand(x1), operand(x2))
}

# A vector of one element, if `x` is a single number and an op needs a vector.
one_or_more <- function(x) {
  if (is.numeric(x)) as.array(x) else x
}
