#' The default backend
#'
#' The type of the tensor you pass selects the backend of a call. A call without a tensor (numbers, R's vectors and
#' arrays) uses the default backend: `"numpy"`, unless it is set here or by the environment variable `GRADOPS_BACKEND`.
#'
#' `config_set_backend()` sets it. `use_backend()` sets it and also declares the Python packages that it needs to
#' reticulate, which installs them in an environment of its own if Python is not running yet and no Python was chosen.
#' `with_backend()` and `local_backend()` set it for some code, or until the end of a function; they do not change JAX's
#' 64-bit mode.
#'
#' These settings belong to gradops. If \pkg{keras3} is loaded, `use_backend()` also chooses Keras's backend, like
#' keras3's function of the same name; call it before Keras starts.
#' @param backend `"numpy"`, `"torch"`, `"tensorflow"` or `"jax"`.
#' @param ... Passed to keras3's `use_backend()` if keras3 is loaded.
#' @param code Code to run.
#' @param .local_envir The frame at whose end the setting ends.
#' @returns `config_backend()`: the name of the default backend. `with_backend()`: the value of `code`. The others
#'   return the previous backend, invisibly.
#' @section Errors:
#' - `gradops_error_backend`: an unknown backend, or one whose Python package is not installed; the setting does not
#'   change.
#' @seealso [to_backend()], [config_floatx()], [gradops_available()].
#' @examplesIf gradops_available()
#' config_backend()
#' with_backend("numpy", gradient(function(x) x^2, 3))
#' @export
config_backend <- function() {
  py_to_r(call_core("config.backend"))
}

#' @rdname config_backend
#' @export
config_set_backend <- function(backend) {
  old <- config_backend()
  call_core("config.set_backend", backend)
  invisible(old)
}

#' @rdname config_backend
#' @export
use_backend <- function(backend, ...) {
  if (!rlang::is_string(backend, names(backend_requirements))) {
    abort(
      c(
        sprintf("Unknown backend %s: expected one of %s.", deparse1(backend), toString(names(backend_requirements))),
        i = meant(backend, names(backend_requirements))
      ),
      class = c("gradops_error_backend", "gradops_error"), argument = "backend"
    )
  }
  if (isNamespaceLoaded("keras3")) getExportedValue("keras3", "use_backend")(backend, ...)
  if (!reticulate::py_available()) reticulate::py_require(backend_requirements[[backend]])
  config_set_backend(backend)
}

#' @rdname config_backend
#' @export
with_backend <- function(backend, code) {
  local_backend(backend)
  code
}

#' @rdname config_backend
#' @export
local_backend <- function(backend, .local_envir = parent.frame()) {
  check_frame(.local_envir)
  old <- config_backend()
  leave <- call_core("interop.r.choose_backend", backend)
  withr::defer(py_call(leave), envir = .local_envir)
  invisible(old)
}

#' Default dtype and epsilon
#'
#' `config_floatx()` is the dtype of R's numbers and of new tensors: `"float64"` on every backend, unless set otherwise.
#' R's numbers and vectors that are combined with a tensor take its floating dtype instead. `config_epsilon()` is the
#' default of `epsilon` in normalisations and losses.
#'
#' Keras has settings of the same names; its dtype is `"float32"`. If \pkg{keras3} is loaded, setting one of these sets
#' Keras's setting as well.
#' @param floatx `"float16"`, `"bfloat16"`, `"float32"` or `"float64"`.
#' @param epsilon A positive number.
#' @returns The setting. The functions that set it return the previous one, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: an unknown dtype, or an epsilon that is not positive.
#' @seealso [config_backend()].
#' @examplesIf gradops_available()
#' config_floatx()
#' config_epsilon()
#' @export
config_floatx <- function() {
  py_to_r(call_core("config.floatx"))
}

#' @rdname config_floatx
#' @export
config_set_floatx <- function(floatx) {
  old <- config_floatx()
  call_core("config.set_floatx", floatx)
  set_in_keras("set_floatx", floatx)
  invisible(old)
}

#' @rdname config_floatx
#' @export
config_epsilon <- function() {
  py_to_r(call_core("config.epsilon"))
}

#' @rdname config_floatx
#' @export
config_set_epsilon <- function(epsilon) {
  old <- config_epsilon()
  call_core("config.set_epsilon", epsilon)
  set_in_keras("set_epsilon", epsilon)
  invisible(old)
}

#' Gradients that would be lost
#'
#' What happens when a function that is being differentiated would lose a gradient in Python. A number that Python code
#' computes from a tensor, as `reticulate::import("math")$exp(x)` does, has no gradient, so the derivative would be 0
#' there. The default is `"error"`. Outside of functions that are differentiated it is a warning.
#'
#' R's own functions that take numbers out of tensors (`as.numeric()`, `data.frame()`) keep the tensor in such
#' functions. Use [op_stop_gradient()] to say that a gradient is not wanted.
#' @param action `"error"`, or `"warn"`, which warns and uses the derivative 0.
#' @returns The setting. `config_set_lost_gradients()` returns the previous one, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: an unknown action.
#' @seealso [op_stop_gradient()], [gradient()].
#' @examplesIf gradops_available()
#' config_lost_gradients()
#' math <- reticulate::import("math")
#' try(gradient(function(x) x * math$exp(x), 1))
#' gradient(function(x) x * math$exp(op_stop_gradient(x)), 1)
#' @export
config_lost_gradients <- function() {
  py_to_r(call_core("config.lost_gradients"))
}

#' @rdname config_lost_gradients
#' @export
config_set_lost_gradients <- function(action) {
  old <- config_lost_gradients()
  call_core("config.set_lost_gradients", action)
  invisible(old)
}

#' Checks of compiled programs
#'
#' On NumPy, [jit()] and the functions that compile by themselves ([gradient()], [objective()], [maximize_likelihood()])
#' run programs in native code. These are compared with a reference executor, which calls NumPy for each step. If a
#' result differs by more than rounding errors explain, the call returns the reference executor's result, the program
#' runs without native code from then on, and a warning names the op.
#'
#' The environment variable `GRADOPS_CHECK` sets the mode before Python starts. `GRADOPS_NATIVE=off` and `jit(f, native
#' = FALSE)` turn native code off.
#' @param mode `"sample"`, the default: a new program is checked before its first result, and calls 2, 4, 8, ... are
#'   checked as long as that takes at most 2 % of the running time. `"first"`: only new programs. `"always"`: each call.
#'   `"off"`: no checks. `"error"`, for tests: the first 100 calls and every tenth after them, and a
#'   difference is an error. A program that was compiled while checks were off is not checked later.
#' @returns The mode. `config_set_check()` returns the previous one, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: an unknown mode.
#' - `gradops_error_mismatch`: the results differ, and the mode is `"error"`.
#'
#' The warning `gradops_warning_mismatch`: a compiled program gave another result than NumPy.
#' @seealso [jit()].
#' @examplesIf gradops_available()
#' config_check()
#' old <- config_set_check("error")
#' jit(grad_fn(function(x) sum(exp(x)^2)))(c(1, 2))
#' config_set_check(old)
#' @export
config_check <- function() {
  py_to_r(call_core("config.check"))
}

#' @rdname config_check
#' @export
config_set_check <- function(mode) {
  old <- config_check()
  call_core("config.set_check", mode)
  invisible(old)
}

# Set one of Keras's settings, now or when Keras is loaded; without keras3 do nothing.
set_in_keras <- function(setter, value) {
  if (isNamespaceLoaded("keras3")) {
    set <- function() reticulate::import("keras.config")[[setter]](value)
    when_loaded <- reticulate_inside("py_register_load_hook") # exported by newer versions
    if (is.null(when_loaded)) set() else when_loaded("keras", set)
  }
}

#' Is Python available?
#'
#' Looks for a Python with NumPy and SciPy, and with a backend's package if one is named. Starts Python.
#' @param backend A backend, or `NULL`.
#' @returns `TRUE` or `FALSE`.
#' @seealso [config_backend()], [gradops-options].
#' @examples
#' gradops_available("torch")
#' @export
gradops_available <- function(backend = NULL) {
  if (nzchar(Sys.getenv("_R_CHECK_PACKAGE_NAME_")) && !reticulate::py_available()) {
    withr::local_envvar(RETICULATE_USE_MANAGED_VENV = "no") # a check must not install Python
  }
  attempt(
    {
      bridge()
      is.null(backend) || py_to_r(call_core("backends.installed", backend))
    },
    function(error) FALSE
  )
}

#' The installation, for reports of errors
#'
#' Prints the versions of R, gradops, reticulate and Python, the Python that reticulate uses, the processor, which
#' backends are installed, whether code is compiled to native code (and if not, why), the folder of compiled code, and
#' settings. Starts Python, but loads no backend's library for it. If Python does not start, the reason is printed.
#' Python's `gradops.show_versions()` prints the same facts.
#' @returns What is printed, as a named character vector, invisibly.
#' @seealso [gradops_available()], [config_backend()], [gradops-options].
#' @examplesIf gradops_available()
#' gradops_sitrep()
#' @export
gradops_sitrep <- function() {
  found <- c(
    R = sprintf("%s (%s)", getRversion(), utils::sessionInfo()$running),
    `R package` = sprintf("%s (%s)", utils::packageVersion("gradops"), dirname(system.file(package = "gradops"))),
    reticulate = as.character(utils::packageVersion("reticulate")),
    RETICULATE_PYTHON = Sys.getenv("RETICULATE_PYTHON", "not set")
  )
  facts <- function() py_to_r(call_core("_versions.facts"))
  found <- c(found, unlist(attempt(facts(), function(error) list(problem = conditionMessage(error)))))
  cat(paste0(format(names(found)), "  ", found, "\n"), sep = "")
  invisible(found)
}

#' Convert a tensor to another library
#'
#' `to_backend()` converts `x` to a tensor of another array library, with the same shape and dtype. The two tensors
#' share memory if both libraries can (DLPack), so do not write to either; R's numbers are copied.
#' @param x A tensor, a variable that requires no gradient, or R numbers.
#' @inheritParams config_backend
#' @param device `"cpu"`, `"cuda"`, `"cuda:1"`, or another device name of the library. `NULL` is the device of `x`, if
#'   the library can use it.
#' @returns A tensor; `x` itself if it is on that library and device already. Without JAX's 64-bit mode float64 becomes
#'   float32 on JAX.
#' @section Errors:
#' - `gradops_error_gradient`: the gradient of `x` is being recorded and cannot cross libraries: use
#'   [op_stop_gradient()] of it.
#' - `gradops_error_backend`: an unknown or uninstalled backend, or a device that it does not have.
#' @section Gradient:
#' Gradients do not flow between libraries.
#' @seealso [config_backend()], [op_convert_to_array()], [op_convert_to_tensor()].
#' @examplesIf gradops_available()
#' x <- to_backend(c(1, 2), "numpy")
#' gradient(function(x) sum(x^2), x)
#' @export
to_backend <- function(x, backend, device = NULL) {
  call_core("interop.r.to_backend", operand(x), backend, device)
}

#' Options
#'
#' Settings of gradops in `options()`. The first group is read once, when Python starts (at the first use of
#' gradops); later, use the functions named with them. The options of the second group are read at each use.
#'
#' - `gradops.backend`: the default backend, as [config_set_backend()]. It overrides the environment variable
#'   `GRADOPS_BACKEND`; without both it is `"numpy"`.
#' - `gradops.floatx`: the dtype of R's numbers, as [config_set_floatx()]; the default is `"float64"`.
#' - `gradops.epsilon`: the small number in normalisations and losses, as [config_set_epsilon()]; the default is 1e-7.
#' - `gradops.patience`: how many seconds a call of an R function from another thread waits for R's thread before it is
#'   an error ([r_function()]); the default is 10.
#'
#' The second group:
#'
#' - `gradops.traceback`: `TRUE` adds Python's traceback to errors that come from Python; the default is `FALSE`. The
#'   exception itself is always in the condition, as `condition$python`.
#' - `gradops.print_max`: the largest number of elements that print in full; the default is 1000. Of larger tensors a
#'   corner prints.
#' - `gradops.progress`: whether [jacobian()], [hessian()], [gradcheck()] and [objective()] of shards show a progress
#'   bar after two seconds; the default is `interactive()`.
#'
#' @section TensorFlow's messages on standard error:
#' The environment variable `TF_CPP_MIN_LOG_LEVEL=1` hides TensorFlow's messages about the processor at startup. Its
#' message about oneDNN can be hidden only by `TF_ENABLE_ONEDNN_OPTS=0`, which turns oneDNN off and makes convolutions
#' about three times as slow, so gradops sets neither.
#' @name gradops-options
#' @aliases gradops_options
#' @examples
#' old <- options(gradops.print_max = 20)
#' options(old)
NULL

# Apply the options when Python starts.
apply_options <- function() {
  for (name in c("backend", "floatx", "epsilon")) {
    value <- getOption(paste0("gradops.", name))
    if (!is.null(value)) call_core(paste0("config.set_", name), value, .call = NULL)
  }
  patience <- getOption("gradops.patience")
  if (!is.null(patience)) call_core("interop.r.set_patience", patience, .call = NULL)
}

# The environment where cli keeps progress bars, as no function's frame lives long enough.
bars <- new.env()

# TRUE in interactive sessions, except while knitr runs a document.
shows_progress <- function() {
  isTRUE(getOption("gradops.progress", interactive() && !isTRUE(getOption("knitr.in.progress"))))
}

# Show a progress bar for Python: start it, advance it, or end it with `done = NULL`.
show_progress <- function(label, total, done) {
  bar <- state$progress
  if (is.null(done)) {
    if (!is.null(bar)) cli::cli_progress_done(id = bar, .envir = bars)
    state$progress <- NULL
  } else if (!is.null(bar)) {
    cli::cli_progress_update(set = done, id = bar, .envir = bars)
  } else if (shows_progress()) {
    withr::local_options(cli.progress_show_after = 0) # Python has waited
    state$progress <- cli::cli_progress_bar(label, total = total %||% NA, .auto_close = FALSE, .envir = bars)
  }
  NULL
}
