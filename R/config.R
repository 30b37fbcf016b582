#' The default backend
#'
#' The tensor in hand chooses the backend of a call. Only what has no tensor in it (numbers, R's vectors and arrays)
#' goes to the default backend: `"numpy"`, unless set here or by the environment variable `GRADOPS_BACKEND`.
#'
#' `config_set_backend()` sets it. `use_backend()` sets it too and declares the Python packages that it needs to
#' reticulate, which installs them in an environment of its own if Python is not running yet and none was chosen.
#' `with_backend()` and `local_backend()` set it for some code, or until the end of a function, and leave JAX's 64-bit
#' mode as it was.
#'
#' These are gradops' own settings. Where \pkg{keras3} is loaded, `use_backend()` chooses Keras's backend too, as
#' keras3's function of that name does: before Keras starts.
#' @param backend `"numpy"`, `"torch"`, `"tensorflow"` or `"jax"`.
#' @param ... Passed on to keras3's `use_backend()`, where keras3 is loaded.
#' @param code Code to run.
#' @param .local_envir The frame at whose end the setting ends.
#' @returns `config_backend()`: the name of the default backend. The others return the previous one, invisibly, but
#'   `with_backend()`, which returns the value of `code`.
#' @section Errors:
#' - `gradops_error_backend`: an unknown backend, or one whose Python package is not installed; the setting stays.
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

#' Default dtype and small number
#'
#' `config_floatx()` is the dtype of R's numbers and of new tensors: `"float64"` on every backend, unless set otherwise.
#' R's numbers and vectors beside a tensor take its floating dtype instead.
#' `config_epsilon()` is what normalisations and losses add where nothing else is given.
#'
#' Keras has settings of the same names; its dtype is `"float32"`. Where \pkg{keras3} is loaded, the functions that set
#' one of gradops' set Keras's too.
#' @param floatx `"float16"`, `"bfloat16"`, `"float32"` or `"float64"`.
#' @param epsilon A positive number.
#' @returns The setting; of the functions that set it, the previous one, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: another dtype, or a number that is not positive.
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
  in_keras("set_floatx", floatx)
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
  in_keras("set_epsilon", epsilon)
  invisible(old)
}

#' Gradients that would be lost
#'
#' The action where a function that is being differentiated would lose a gradient in Python: a number that Python code
#' makes of a tensor, as `reticulate::import("math")$exp(x)` does, has none, so the derivative would be 0 there.
#' `"error"`, unless set: in every call. Outside of such functions it is a warning.
#'
#' R's own functions that take numbers out of tensors (`as.numeric()`, `data.frame()`) keep the tensor there.
#' [op_stop_gradient()] says that a gradient is not wanted.
#' @param action `"error"`, or `"warn"`: a warning, and 0.
#' @returns The setting; of `config_set_lost_gradients()` the previous one, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: another action.
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
#' On NumPy, [jit()] and what is compiled without it ([gradient()], [objective()], [maximize_likelihood()]) run programs
#' of native code. They are compared with a reference executor, which calls NumPy for each step. Where a result
#' differs by more than errors of rounding explain, the call returns the reference executor's result, the program runs
#' without native code from then on, and a warning names the op.
#'
#' The environment variable `GRADOPS_CHECK` sets the mode before Python starts. `GRADOPS_NATIVE=off` and
#' `jit(f, native = FALSE)` do without native code.
#' @param mode `"sample"`, unless set: a new program is checked before its first result, and so are calls 2, 4, 8, ...
#'   of it where that takes at most 2 % of the running time. `"first"`: new programs alone. `"always"`: each call.
#'   `"off"`: none. `"error"`: the first 100 calls and every tenth of those after them, and a difference is an error. A
#'   program that was compiled while checks were off is not checked later.
#' @returns The mode; of `config_set_check()` the previous one, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: another mode.
#' - `gradops_error_mismatch`: a difference, where the mode is `"error"`.
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

# A setting of Keras's, now or once it is loaded; it is nobody's concern without keras3.
in_keras <- function(setter, value) {
  if (isNamespaceLoaded("keras3")) {
    set <- function() reticulate::import("keras.config")[[setter]](value)
    when_loaded <- reticulate_inside("py_register_load_hook") # exported by newer versions
    if (is.null(when_loaded)) set() else when_loaded("keras", set)
  }
}

#' Is Python there?
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
    withr::local_envvar(RETICULATE_USE_MANAGED_VENV = "no") # a check is not to install Python
  }
  attempt(
    {
      bridge()
      is.null(backend) || py_to_r(call_core("backends.installed", backend))
    },
    function(error) FALSE
  )
}

#' Another library's tensor
#'
#' `to_backend()` makes `x` a tensor of another array library, with the same shape and dtype. Tensors share their memory
#' where both libraries can (DLPack), so write to neither; R's numbers are copied.
#' @param x A tensor, a variable that requires no gradient, or R numbers.
#' @inheritParams config_backend
#' @param device `"cpu"`, `"cuda"`, `"cuda:1"`, or a device of the library's. `NULL`: where `x` is, if the library can
#'   use it there.
#' @returns A tensor; `x` itself where it is of that library and on that device already. Without JAX's 64-bit mode JAX
#'   has float32 for float64.
#' @section Errors:
#' - `gradops_error_gradient`: the gradient of `x` is being recorded, and cannot follow: take [op_stop_gradient()] of
#'   it.
#' - `gradops_error_backend`: an unknown or uninstalled backend, or a device that it does not have.
#' @section Gradient:
#' None between libraries.
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
#' Settings of gradops in `options()`. Those of the first group are read once, when Python starts (at the first use of
#' gradops); later, the functions named beside them set the same. Those of the second are read at each use.
#'
#' - `gradops.backend`: the default backend, as [config_set_backend()]. Goes before the environment variable
#'   `GRADOPS_BACKEND`; without both it is `"numpy"`.
#' - `gradops.floatx`: the dtype of R's numbers, as [config_set_floatx()]; `"float64"` if not set.
#' - `gradops.epsilon`: the small number of normalisations and losses, as [config_set_epsilon()]; 1e-7 if not set.
#' - `gradops.patience`: for how many seconds another thread's call of an R function waits while R's thread stands
#'   still, before it is an error ([r_function()]); 10 if not set.
#'
#' and
#'
#' - `gradops.traceback`: `TRUE` adds Python's traceback to errors that come from Python; `FALSE` if not set. The
#'   exception itself is always in the condition, as `condition$python`.
#' - `gradops.print_max`: up to how many elements a tensor prints in full; 1000 if not set. Of larger ones a corner.
#' - `gradops.progress`: whether [jacobian()], [hessian()], [gradcheck()] and [objective()] of shards show a
#'   progress bar after two seconds;
#'   `interactive()` if not set.
#'
#' Conditions are classed: errors as `gradops_error` and `gradops_error_<kind>` (`argument`, `type`, `shape`, `axis`,
#' `backend`, `mixed_backends`, `gradient`, `jit`, `mismatch`, `callback`, `thread`, `model`, `budget`, `python`,
#' `stale`), warnings as `gradops_warning`. The error of an R function that gradops called also has the classes and
#' fields of the error that it was, so `tryCatch(my_class = )` catches it; that error itself is its `parent`.
#'
#' @section TensorFlow's lines on standard error:
#' The environment variable `TF_CPP_MIN_LOG_LEVEL=1` hides what TensorFlow says about the processor when it starts. Its
#' line on oneDNN can be hidden only by `TF_ENABLE_ONEDNN_OPTS=0`, which turns oneDNN off and makes convolutions about
#' three times as slow; so gradops leaves both to you.
#' @name gradops-options
#' @aliases gradops_options
#' @examples
#' old <- options(gradops.print_max = 20)
#' options(old)
NULL

# Settings by option, when Python starts.
apply_options <- function() {
  for (name in c("backend", "floatx", "epsilon")) {
    value <- getOption(paste0("gradops.", name))
    if (!is.null(value)) call_core(paste0("config.set_", name), value, .call = NULL)
  }
  patience <- getOption("gradops.patience")
  if (!is.null(patience)) call_core("interop.r.set_patience", patience, .call = NULL)
}

# The place where cli keeps progress bars, instead of in a function's frame.
bars <- new.env()

# Where somebody looks: not in documents, nor in runs by nobody.
shows_progress <- function() {
  isTRUE(getOption("gradops.progress", interactive() && !isTRUE(getOption("knitr.in.progress"))))
}

# A progress bar for Python: begun and moved on, and ended with `done` NULL.
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
