# Python: find and start it at first use, call it, and turn its failures into conditions.

# The ops' R forms (Python functions of gradops.interop.r), by name, and the other functions of the core.
ops <- new.env(parent = emptyenv())
core <- new.env(parent = emptyenv())

failure_class <- "gradops.interop.r.Failure"

# Call an op's R form: the arguments by position, in Python's order.
call_op <- function(.op, ...) {
  result <- if (!is.null(state$scalars) && ...length() == 1L) function_in_log(.op, ..1)
  if (!is.null(result)) {
    return(result)
  }
  form <- ops[[.op]]
  if (is.null(form)) form <- load_op(.op)
  answer(py_call(form, ...), parent.frame())
}

# Call a function of the core, by its dotted Python name.
call_core <- function(.name, ..., .call = parent.frame()) {
  answer(py_call(core[[.name]] %||% load_core(.name), ...), .call)
}

# The result of a call into Python, or the condition it stands for, signalled from `call`; or what `fail` makes of a
# failure.
answer <- function(result, call, fail = raise) {
  result <- withCallingHandlers(result, error = function(error) if_theirs(error, call))
  classes <- class(result)
  front <- front_classes(classes)
  if (!is.null(front)) class(result) <- front else if (classes[1L] == failure_class) result <- fail(result, call)
  if (length(conditions) > 0 && callbacks() == 0) forget_conditions() # Python went on after an error
  result
}

load_op <- function(name) {
  ops[[name]] <- py_call(bridge()$op, name)
}

load_core <- function(name) {
  core[[name]] <- py_call(bridge()$attribute, name)
}

# Load a function of gradops.interop.r that is called directly, as it never raises.
load_bridge <- function(name) {
  core[[name]] <- bridge()[[name]]
}

# The module gradops.interop.r; starts Python.
bridge <- function() {
  state$bridge %||% start_python()
}

state <- new.env(parent = emptyenv())

start_python <- function() {
  limit_cores()
  path <- system.file("python", package = "gradops")
  bridge <- attempt(
    {
      name_files() # before the import, whose bytecode may be there
      pause_collector(reticulate::import_from_path("gradops.interop.r", path = path, convert = FALSE))
    },
    function(error) {
      abort(
        c(
          "gradops needs Python (>= 3.10) with NumPy and SciPy, and could not start it.",
          i = "To use your own Python, set the environment variable `RETICULATE_PYTHON` to it before R starts.",
          i = "Without one, `reticulate::install_python()` installs it."
        ),
        class = c("gradops_error_python", "gradops_error"), parent = error, call = NULL
      )
    }
  )
  state$bridge <- bridge
  state$session <- new.env() # Python's objects of another session are gone
  py_call(bridge$set_adopt, function(capsule) callback(py_to_r(capsule)))
  py_call(bridge$set_warn, callback(python_warning))
  py_call(bridge$set_host, callback(described_calls))
  py_call(bridge$set_progress, callback(show_progress), getOption("cli.progress_show_after", 2))
  hold_interrupts(bridge)
  apply_options()
  bridge
}

# Run `code` without Python's garbage collector: an import makes many objects and no garbage, and is a seventh faster.
pause_collector <- function(code) {
  collector <- reticulate::import("gc", convert = FALSE)
  if (py_to_r(py_call(collector$isenabled))) {
    py_call(collector$disable)
    on.exit(py_call(collector$enable))
  }
  code
}

# While R CMD check limits cores, two are used: by BLAS, and by gradops' own threads. BLAS reads the variables when it is
# loaded, so Python must not have started.
limit_cores <- function() {
  if (!Sys.getenv("_R_CHECK_LIMIT_CORES_", "false") %in% c("", "false", "FALSE")) {
    for (name in c("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")) {
      if (!nzchar(Sys.getenv(name))) do.call(Sys.setenv, stats::setNames(list("2"), name))
    }
  }
}

# Store compiled code where R packages may write, not in Python's folder, unless the user names a folder. Tell Python
# where this package's library is, which runs native code without llvmlite. The variables are set through Python, which
# may have started before and does not see variables that R sets later.
name_files <- function() {
  variables <- reticulate::import("os", convert = FALSE)$environ
  if (!nzchar(py_to_r(py_call(variables$get, "GRADOPS_CACHE", "")))) {
    named <- Sys.getenv("GRADOPS_CACHE")
    folder <- if (nzchar(named)) named else tools::R_user_dir("gradops", "cache")
    py_call(variables$`__setitem__`, "GRADOPS_CACHE", folder)
  }
  py_call(variables$`__setitem__`, "GRADOPS_RUNTIME", getLoadedDLLs()[["gradops"]][["path"]])
}

# Signal a Python warning in R.
python_warning <- function(message, category) {
  category <- py_to_r(category)
  kind <- if (category == "MismatchWarning") "mismatch" else "python"
  rlang::warn(
    py_to_r(message),
    class = c(paste0("gradops_warning_", kind), "gradops_warning"), category = category, call = NULL
  )
  NULL
}

# Failures -------------------------------------------------------------------------------------------------------------

raise <- function(failure, call) {
  fields <- py_to_r(py_call(failure$fields))
  parent <- if (fields$kind == "callback") take_condition(fields$key)
  if (!is.null(parent)) {
    callback_failed(parent, call, fields$model)
  }
  hint <- fields$hint %||% if (endsWith(fields$message, "got NULL.")) null_hint(call)
  abort(
    c(fields$message, i = hint),
    class = c(paste0("gradops_error_", fields$kind), "gradops_error"),
    argument = fields$argument, python = failure$error, call = call, footer = traceback_of(failure)
  )
}

# Raise an error for the condition that an R function called from Python raised. It has that condition's classes and
# fields as well, so that `tryCatch(class = )` finds it.
callback_failed <- function(parent, call, model = NULL) {
  if (inherits(parent, "gradops_jump")) {
    jump_again(parent)
  }
  if (inherits(parent, "gradops_error") && is.null(model)) {
    rlang::cnd_signal(parent)
  }
  is_python <- inherits(parent, "python.builtin.object")
  fields <- if (is_python) list() else unclass(parent)
  fields <- fields[setdiff(names(fields), c("", "message", "call", "parent", "trace", "body", "footer", "rlang"))]
  own <- if (!is_python) setdiff(class(parent), c("simpleError", "rlang_error", "error", "condition"))
  rlang::inject(abort(
    model %||% "An R function that gradops called has failed.",
    class = c(if (!is.null(model)) "gradops_error_model", "gradops_error_callback", "gradops_error", own),
    parent = parent, call = call, !!!fields
  ))
}

# Python's traceback, if the option asks for it.
traceback_of <- function(failure) {
  if (isTRUE(getOption("gradops.traceback"))) {
    c("Python traceback:", strsplit(py_to_r(py_call(failure$traceback)), "\n", fixed = TRUE)[[1]])
  }
}
