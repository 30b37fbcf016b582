# R functions that Python calls, directly and as ops.

# A Python function that calls the R function `f`. Python sees `f`'s formals. `take` converts Python's objects to
# arguments of `f`, and `finish(value)` or `finish(value, f)` converts the result of `f` for Python. R's thread runs it,
# whichever thread calls.
#
# R cannot free an object that Python holds, even if the Python object is itself held by R: neither garbage collector
# sees the other half of the cycle. So a callback that an R function keeps for later calls has an `owner`, an
# environment that lives as long as that function. Python then does not hold `f`, but finds it in the owner.
callback <- function(f, finish = returned, take = several, owner = NULL) {
  if (inherits(f, "python.builtin.object")) {
    return(f)
  }
  force_captured(f)
  if (is.primitive(f)) {
    primitive <- f
    f <- if (is.null(args(f))) function(...) primitive(...) else args(f)
    body(f) <- rlang::call2(primitive, !!!rlang::syms(names(formals(f))))
  }
  formals <- formals(f)
  held <- if (is.null(owner)) f else rlang::new_weakref(owner, f)
  py_call(
    core$callback %||% load_bridge("callback"), called_back(held, finish, take),
    as.list(names(formals)), lapply(unname(formals), formal_default)
  )
}

# A function that returns `make()`'s value, and makes it again in another session, where Python's object is gone. So
# functions work after they were saved, or sent to a worker.
remade_in_session <- function(make) {
  made <- make()
  session <- state$session
  function() {
    if (!identical(session, state$session)) {
      made <<- make()
      session <<- state$session
    }
    made
  }
}

# The function that Python calls. `f` is a function or a weak reference to one; its adapted copy must not be held
# either.
called_back <- function(f, finish, take) {
  force(take)
  knows_f <- length(formals(finish)) > 1
  delayedAssign("held", tensor_aware(f))
  aware <- if (is.function(f)) function() held else function() tensor_aware(rlang::wref_value(f))
  # Python calls with interrupts suspended; inside reticulate's handlers they may be allowed again. `.free` is TRUE if
  # they were not suspended before.
  function(..., .free) {
    arrived <- FALSE
    last <- NULL
    clock <- state$clock
    if (!is.null(clock)) turn_clock(clock, "r", "callbacks")
    state$callbacks <- callbacks() + 1
    before <- enter_surroundings()
    on.exit({
      if (!is.null(clock)) turn_clock(clock, "outside")
      leave_surroundings(before)
      state$callbacks <- callbacks() - 1
      if (!arrived && !inherits(last, "interrupt")) return(jumped(last))
    })
    interruptible <- if (!missing(.free) || !interrupts_suspended()) allowInterrupts else identity
    result <- tryCatch(
      withCallingHandlers(
        interruptible({
          if (!is.null(state$out_of_time)) stop(state$out_of_time)
          f <- aware()
          value <- do.call("f", lapply(list(...), take))
          if (knows_f) finish(value, f) else finish(value)
        }),
        condition = function(condition) last <<- condition
      ),
      error = function(condition) {
        condition <- r_condition(condition)
        if (is_out_of_time(condition)) state$out_of_time <- condition
        list(
          `<R error>` = keep_condition(condition), message = conditionMessage(condition),
          python = condition[["python"]], status = http_status(condition),
          unknown = inherits(condition, "gradops_error_jit")
        )
      }
    )
    arrived <- TRUE
    result
  }
}

# The HTTP status of a server's answer, if httr2 signalled it.
http_status <- function(condition) {
  status <- grep("^httr2_http_[0-9]{3}$", class(condition), value = TRUE)
  if (length(status) > 0) as.integer(sub("httr2_http_", "", status[1], fixed = TRUE))
}

# A condition in R's form; reticulate's conditions are Python exceptions, which cannot be a parent.
r_condition <- function(condition) {
  if (inherits(condition, "python.builtin.BaseException")) {
    condition <- rlang::error_cnd("python_exception", message = conditionMessage(condition), python = condition)
  }
  condition
}

# The number of callbacks that are running.
callbacks <- function() {
  state$callbacks %||% 0
}

returned <- function(value) {
  as_python(value, callback_value)
}

# A formal's default in the form that Python receives.
formal_default <- function(default) {
  if (rlang::is_missing(default)) {
    "none"
  } else if (is.null(default)) {
    "null"
  } else if (is.atomic(default) && length(default) == 1 && !anyNA(default)) {
    list(value = default)
  } else {
    "r"
  }
}

#' Make an op from an R function of numbers
#'
#' `r_function(f, gradient)` turns `f`, which computes with R's own numbers (a density of \pkg{stats}, a call of
#' compiled code), into a function of tensors of any backend that has a gradient. `f` is called with the values; a
#' program that [jit()], `jax.jit` or `tf.function` has compiled calls R back.
#'
#' `f` and `gradient` get R numbers, vectors (a vector of length one has a dim, to tell it from a number), matrices and
#' arrays, and any other arguments unchanged. A value of length one without a dim is a scalar, a data frame a matrix.
#' JAX and TensorFlow must know shapes when they compile, before there are values: `f` and `gradient` are then called
#' once with made-up values between 0 and 1.
#' @param f A function of R numbers.
#' @param gradient The gradient as a function of `f`'s arguments and the upstream gradient, such as `function(x, y,
#'   upstream)`. It returns a number or array, or a list in the order of the arguments or named by them, with `NULL` for
#'   an argument without gradient. For second derivatives, it may itself be an `r_function()`: of `function(x, y, up)`
#'   with the gradient `function(x, y, up, upstream)`. With `NULL` differentiating is an error.
#' @param shape `NULL`, or the dimensions of `f`'s value, if made-up values do not determine them.
#' @returns A function of tensors, variables and R numbers. Its value has the floating dtype of the arguments.
#' @section Threads:
#' R runs on one thread. If another thread calls a gradient function, a callback or an `r_function()` (a backward pass
#' in a `threading.Thread`, TensorFlow's executor, a JAX program), it waits for R's thread. R's thread serves such calls
#' in Python code, while it waits in gradops, at the prompt and in [Sys.sleep()]. It cannot serve them while it waits in
#' a library's compiled code, for example in a `tf.function` that is called directly: use [call_in_thread()] there. A
#' call that waits longer than `options(gradops.patience = )` seconds (10 by default) is an error.
#' @section Errors:
#' - `gradops_error_callback`: an error in `f` or `gradient`, whose condition is the parent.
#' - `gradops_error_gradient`: the function is differentiated but has no gradient.
#' - `gradops_error_thread`: called from another thread while R's thread does not serve calls.
#' @seealso [op_custom_gradient()] of tensors, [autodiff_function()], [gradcheck()].
#' @examplesIf gradops_available()
#' # any R code with its derivative: here a spline, which has one
#' spline <- splinefun(1:5, c(1, 4, 2, 5, 3))
#' curve <- r_function(
#'   function(x) spline(x),
#'   function(x, upstream) spline(x, deriv = 1) * upstream
#' )
#' gradient(function(x) sum(curve(x)^2), c(1.5, 3.2))
#' @export
r_function <- function(f, gradient = NULL, shape = NULL) {
  check_function(f)
  if (!is.null(gradient)) check_function(gradient)
  name <- deparse1(substitute(f))
  name <- if (nchar(name) > 40 || grepl("function(", name, fixed = TRUE)) "an R function" else sprintf("`%s`", name)
  here <- environment()
  op <- remade_in_session(function() {
    call_core("interop.r.host_op", numeric_callback(f, here), numeric_callback(gradient, here), name, shape)
  })
  structure(function(...) several(call_python(op(), list(...), "tensors", keep = here)), op = op)
}

# A function of R's numbers as a function of NumPy arrays; an `r_function()` as its op.
numeric_callback <- function(f, owner) {
  op <- attr(f, "op")
  if (is.null(f)) NULL else if (is.function(op)) op() else callback(f, take = r_numbers, owner = owner)
}

# Vectors without a dim; a vector of length one keeps it, to tell it from a number.
r_numbers <- function(x) vectors(py_to_r(x), single = FALSE)

#' Call Python on another thread
#'
#' `call_in_thread(f, ...)` returns `f(...)`, run on another thread, while R's thread runs the R functions that it
#' calls. Use it for a Python function that waits, in compiled code, for threads that call R, such as a `tf.function`
#' that calls an [r_function()] or an R function passed to `tf.py_function`. Recording (gradient tapes, modes) is the
#' same as in the calling thread.
#' @param f A Python function, such as `model$fit`. (An R function, such as keras3's `fit()`, runs on R's thread.)
#' @param ... Its arguments.
#' @returns Its value.
#' @section Errors:
#' - `gradops_error_type`: `f` is not a Python function.
#' - `gradops_error_callback`: an error in an R function, whose condition is the parent.
#' - `gradops_error_python`: an error in Python.
#' @seealso [r_function()].
#' @examplesIf gradops_available()
#' # Python code that waits for R's thread does not wait forever
#' call_in_thread(reticulate::import("math", convert = FALSE)$sqrt, 2)
#' @export
call_in_thread <- function(f, ...) {
  check_function(f)
  if (!inherits(f, "python.builtin.object")) {
    abort(
      c(
        "`f` must be a Python function; got an R function, which runs on R's thread whoever calls it.",
        i = "Pass the Python function that it calls, with Python's arguments: `model$fit`, not keras3's `fit()`."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = "f"
    )
  }
  several(rlang::inject(call_core("interop.r.call_in_thread", f, !!!lapply(list(...), operand), .call = users_call())))
}
