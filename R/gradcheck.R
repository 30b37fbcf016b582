#' Check gradients against finite differences
#'
#' @param f A function of tensors.
#' @param inputs R numbers, a tensor or a variable, or a list of these: an unnamed list holds the arguments of `f`; a
#'   named list is its only argument, as for [jacobian()]. Names are kept.
#' @param eps,atol,rtol The step and the tolerances; `NULL` chooses them by the inputs' dtype.
#' @param raise_exception If `TRUE`, a difference is an error; otherwise `FALSE` is returned.
#' @param fast_mode If `TRUE`, one random direction is checked instead of each element.
#' @returns `TRUE`; with `raise_exception = FALSE`, `FALSE` if the gradients differ.
#' @section Errors:
#' - `gradops_error_gradient`: the gradients differ; the message has both values.
#' @seealso [op_custom_gradient()], [r_function()], [autodiff_function()].
#' @examplesIf gradops_available()
#' gradcheck(function(x) exp(x) * x, c(0.5, 1))
#'
#' # a wrong gradient is found
#' wrong <- op_custom_gradient(function(x) list(x^2, function(upstream) upstream * x))
#' gradcheck(wrong, 3, raise_exception = FALSE)
#' @export
gradcheck <- function(f, inputs, eps = NULL, atol = NULL, rtol = NULL, raise_exception = TRUE, fast_mode = FALSE) {
  check_function_at(f, inputs)
  at <- point(f, inputs, NULL)
  py_to_r(call_core(
    "interop.r.check_gradients", at$f, lapply(as_doubles(at$leaves), operand),
    eps = eps, atol = atol, rtol = rtol, raise_exception = flag(raise_exception), fast_mode = flag(fast_mode)
  ))
}
