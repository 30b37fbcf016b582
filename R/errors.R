#' Errors: causes and fixes
#'
#' Errors have the class `gradops_error` and one of the classes below; the field `argument` of the condition is the name
#' of the argument, if one is at fault. In interactive sessions an error names its class and this page.
#'
#' - `gradops_error_argument`: a name that does not exist, a number out of range, or arguments that do not fit together.
#'   Pass one of the values that the message lists.
#' - `gradops_error_axis`: an axis or index that the tensor does not have. R counts from 1; -1 is the last axis.
#' - `gradops_error_backend`: a backend that is unknown or not installed, or cannot do something. [gradops_sitrep()]
#'   lists the installed ones; [use_backend()] in a fresh session installs one.
#' - `gradops_error_budget`: a call of a language model would exceed its budget. [text_remembered()] with a larger limit
#'   and the same path goes on.
#' - `gradops_error_callback`: your function failed inside gradops. Its own condition is the `parent`; its classes and
#'   fields are also those of this error, so `tryCatch(my_class = )` catches it. Call the function directly to debug it.
#' - `gradops_error_gradient`: the function returns several numbers ([jacobian()] takes them, or reduce them by
#'   `sum()`), or a value leaves the graph on its way, as by `as.numeric()`.
#' - `gradops_error_inference`: a likelihood is not a number at the start, or a random effect has no mode. Start
#'   elsewhere, or estimate logarithms.
#' - `gradops_error_jit`: a compiled function looked at values where it must not, drew random numbers or read the time.
#'   Use `ifelse()` or [op_cond()], and pass what changes as an argument.
#' - `gradops_error_mismatch`: a compiled program returned another result than NumPy, see [config_check()]. Report it;
#'   `jit(f, native = FALSE)` avoids native code.
#' - `gradops_error_mixed_backends`: tensors of two libraries in one call. [to_backend()] converts one of them.
#' - `gradops_error_model`: a language model failed or returned nothing; the original error is the `parent`.
#' - `gradops_error_partial_gradient`: gradops handles it itself. Report it if you see it.
#' - `gradops_error_python`: Python did not start, or Python code of another library failed. [gradops_sitrep()] says
#'   which Python runs; `options(gradops.traceback = TRUE)` adds Python's traceback.
#' - `gradops_error_r`: Python code called an R function, which failed.
#' - `gradops_error_shape`: tensors that cannot be broadcast, multiplied or joined. Compare the shapes in the message.
#' - `gradops_error_shard`: the function failed on a shard, which the message names. Call it on that shard alone.
#' - `gradops_error_stale`: a tensor of an earlier session, whose values are gone. [serialize_tensor()] saves them.
#' - `gradops_error_thread`: an R function was called from a thread while R was busy. Make the outer call by
#'   [call_in_thread()].
#' - `gradops_error_type`: an object that is no tensor, or numbers of the wrong type. Convert it, as by `as.double()`.
#' - `gradops_error_unmarked`: data are simulated from a likelihood that does not mark its observations; see
#'   [observed()].
#'
#' Warnings have the class `gradops_warning` and one of these:
#'
#' - `gradops_warning_gradient`: a gradient may be lost, or has NaN.
#' - `gradops_warning_inference`: the data do not identify a parameter, or the search did not end at a minimum.
#' - `gradops_warning_jit`: a function runs uncompiled, for the reason that the warning gives; see [jit()].
#' - `gradops_warning_mismatch`: as the error of that name; the result is NumPy's.
#' - `gradops_warning_python`: a warning of Python's.
#' @seealso [gradops-options], [gradops_sitrep()], [gradient()].
#' @examplesIf gradops_available()
#' caught <- tryCatch(op_sum(matrix(1, 2, 3), axis = 3), gradops_error_axis = identity)
#' caught$argument
#' # several numbers have a Jacobian, not a gradient
#' square <- function(x) x^2
#' instead <- function(error) jacobian(square, c(1, 2))
#' tryCatch(gradient(square, c(1, 2)), gradops_error_gradient = instead)
#' @name gradops_errors
#' @aliases gradops_error_argument gradops_error_axis gradops_error_backend gradops_error_budget
#'   gradops_error_callback gradops_error_gradient gradops_error_inference gradops_error_jit gradops_error_mismatch
#'   gradops_error_mixed_backends gradops_error_model gradops_error_partial_gradient gradops_error_python
#'   gradops_error_r gradops_error_shape gradops_error_shard gradops_error_stale gradops_error_thread
#'   gradops_error_type gradops_error_unmarked gradops_warning_gradient gradops_warning_inference gradops_warning_jit
#'   gradops_warning_mismatch gradops_warning_python
NULL

# The line below an error's message that names its page; only people read it.
#' @exportS3Method rlang::cnd_footer
cnd_footer.gradops_error <- function(cnd, ...) {
  known <- grep("^gradops_error_", class(cnd), value = TRUE)
  c(cnd$footer, if (rlang::is_interactive() && length(known) > 0L) sprintf("Causes and fixes: `?%s`.", known[1L]))
}
