# R functions that Python calls, as they are and as ops.

# A Python function that calls the R function `f`. Python sees `f`'s formals. `take` makes what `f` gets of Python's
# objects, `finish(value)` or `finish(value, f)` what Python gets of what `f` returns. R's thread runs it, whichever
# thread calls.
#
# R never frees an object that Python holds, also where it is R that holds Python's object: neither collector sees the
# other's half of the circle. So what an R function keeps for later calls names an `owner`, an environment that lives as
# long: Python then does not hold `f`, it finds it there.
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

# A function that gives what `make()` makes of Python's, made again in another session, where the first is gone: so
# functions come back working that were saved or sent to a worker.
in_each_session <- function(make) {
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

# The function that Python calls; `f` is a function or a weak reference to one, whose copy must not be held either.
called_back <- function(f, finish, take) {
  force(take)
  knows_f <- length(formals(finish)) > 1
  delayedAssign("held", tensor_aware(f))
  aware <- if (is.function(f)) function() held else function() tensor_aware(rlang::wref_value(f))
  # Python calls with interrupts suspended; here, inside of reticulate's handlers, they may come again. `.free`: they
  # were not suspended before.
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

# The status of a server's answer, where httr2 signals it.
http_status <- function(condition) {
  status <- grep("^httr2_http_[0-9]{3}$", class(condition), value = TRUE)
  if (length(status) > 0) as.integer(sub("httr2_http_", "", status[1], fixed = TRUE))
}

# A condition as R's own; reticulate's are Python's exceptions themselves, which cannot be a parent.
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

# The form in which Python knows a formal's default.
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

#' An R function of numbers as an op
#'
#' `r_function(f, gradient)` makes `f`, which computes with R's own numbers (a density of \pkg{stats}, a call of
#' compiled code), a function of tensors of any backend that has a gradient. It is called with the values; in a program
#' that [jit()], `jax.jit` or `tf.function` has compiled, the program calls R back.
#'
#' `f` and `gradient` get R numbers, vectors (those of length one with a dim, to be known from numbers), matrices and
#' arrays, and whatever else they are given as it is. A value of length one without a dim is a scalar, a data frame a
#' matrix. What JAX and TensorFlow compile must know shapes before there are values: `f` and `gradient` are then called
#' once with made-up ones between 0 and 1.
#' @param f A function of R numbers.
#' @param gradient The gradient as a function of `f`'s arguments and the upstream gradient, such as
#'   `function(x, y, upstream)`: a number or array, a list in the order of the arguments or named by them, `NULL` for an
#'   argument without gradient. It may be an `r_function()` with a gradient of its own, for second derivatives: one of
#'   `function(x, y, up)` with the gradient `function(x, y, up, upstream)`. `NULL`: differentiating is an error.
#' @param shape `NULL`, or the dimensions of `f`'s value, where made-up values do not tell them.
#' @returns A function of tensors, variables and R numbers. Its value has the floating dtype of the arguments.
#' @section Threads:
#' R runs on one thread. A gradient function, a callback or an `r_function()` that another thread calls (a backward
#' pass in a `threading.Thread`, TensorFlow's executor, a JAX program) waits for R's thread, which serves it in Python
#' code, while it waits in gradops, and at the prompt and in [Sys.sleep()]. It cannot where it waits in a library's
#' compiled code, as for a `tf.function` called directly: use [call_in_thread()] there. A call that finds R's thread
#' standing still for `options(gradops.patience = )` seconds (10 if not set) is an error.
#' @section Errors:
#' - `gradops_error_callback`: an error in `f` or `gradient`, whose condition is the parent.
#' - `gradops_error_gradient`: differentiated without a gradient.
#' - `gradops_error_thread`: called from another thread while R's stands still.
#' @seealso [op_custom_gradient()] of tensors, [autodiff_function()], [gradcheck()].
#' @examplesIf gradops_available()
#' # any R code, with its derivative: here a spline, which knows its own
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
  op <- in_each_session(function() {
    call_core("interop.r.host_op", numeric_callback(f, here), numeric_callback(gradient, here), name, shape)
  })
  structure(function(...) several(call_python(op(), list(...), "tensors", keep = here)), op = op)
}

# A function of R's numbers as one of NumPy arrays; an `r_function()` as its op.
numeric_callback <- function(f, owner) {
  op <- attr(f, "op")
  if (is.null(f)) NULL else if (is.function(op)) op() else callback(f, take = r_numbers, owner = owner)
}

# Vectors without a dim, but for those of length one, that they be known from numbers.
r_numbers <- function(x) vectors(py_to_r(x), single = FALSE)

#' Call Python on another thread
#'
#' `call_in_thread(f, ...)` is `f(...)`, run on another thread, while R's thread runs the R functions that are asked of
#' it: for a Python function that waits, in compiled code, for threads that call R, such as a `tf.function` that calls
#' an [r_function()] or an R function given to `tf.py_function`. Recording (gradient tapes, modes) is as it is here.
#' @param f A Python function, such as `model$fit`. (An R function, such as keras3's `fit()`, runs on R's thread.)
#' @param ... Its arguments.
#' @returns Its value.
#' @section Errors:
#' - `gradops_error_type`: `f` is no Python function.
#' - `gradops_error_callback`: an error in an R function, whose condition is the parent.
#' - `gradops_error_python`: an error in Python.
#' @seealso [r_function()].
#' @examplesIf gradops_available()
#' # Python that waits for R's thread does not wait for ever
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
