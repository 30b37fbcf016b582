#' Compile a function
#'
#' `f` is traced once for each signature of shapes, dtypes and static arguments, and then runs without R: by `jax.jit`,
#' `tf.function`, a PyTorch graph or, on NumPy, a recorded program. `jit(value_and_grad(f))` includes the gradient.
#'
#' A single integer is part of the signature, and `f` is traced again for another value; so is a single double next to
#' tensors that are not all float64. Pass values that change at each call, such as a step's number, as a double or a
#' tensor.
#'
#' Values that `f` finds outside, such as data, are part of the trace. Each call compares the variables that `f` closes
#' over (also through your functions that it calls, and its gradient rules), and the options and environment variables
#' that it read, with those of the trace. If one has changed, also inside environments such as R6 objects, `f` is traced
#' again. Files, and the internal state of packages, are not compared.
#'
#' A function that changes a variable that it closes over (`count <<- count + 1`, `state$n <- i`) runs uncompiled, as a
#' program would not change it. The first such call is silent, as the change may happen only once (`if (is.null(data))
#' data <<- read()`). From the second such call in a row on, the function always runs uncompiled, with a warning that
#' names the variable. Reading the time and drawing R's random numbers are errors.
#'
#' On NumPy `f` may look at values: `if (sigma <= 0) return(1e10)`, `while`, `x[x > 0]`, `which(x > 0)`, `switch()`,
#' `stopifnot()`, `identical()`, strings made of values (`paste()`, `format()`) and warnings that `tryCatch()` catches.
#' A trace is valid for values for which `f` would take the same branches. Each call checks this, and traces `f` again
#' for other branches, up to 32 times as long as earlier traces are used again; otherwise `f` runs uncompiled, with a
#' warning. On other backends, and in functions that [op_scan()] and similar ops call, looking at values is an error:
#' use `ifelse()`, [op_cond()] or [op_while_loop()].
#' @param f A function of tensors, made of gradops ops and of R's arithmetic and mathematics on tensors.
#' @param static_argnums Positions (from 1) or names of arguments that are not tensors; `f` is traced again for each of
#'   their values.
#' @param native `FALSE` on NumPy: the program consists of NumPy calls only, without native code.
#' @returns A function of the same arguments; if all are R numbers it returns R numbers. Printing it shows what was
#'   compiled: on NumPy how many steps of the program run as native code, and why the others do not; see [explain()].
#' @section Errors:
#' - `gradops_error_jit`: while it is traced, `f` looks at values where it must not, draws R's random numbers, or reads
#'   the time.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#'
#' The warning `gradops_warning_jit`: `f` changes a variable that it closes over, and runs uncompiled.
#' @seealso [explain()]; [config_check()] for the checks of compiled programs; [objective()], which compiles by
#'   `jit = TRUE`; [op_scan()] for loops.
#' @examplesIf gradops_available()
#' # a log-likelihood with its gradient, compiled together
#' counts <- c(2, 0, 3, 1)
#' loss <- function(rate) -sum(dpois(counts, rate, log = TRUE))
#' both <- jit(value_and_grad(loss))
#' both(2)
#'
#' f <- jit(function(x) sum(exp(x)^2))
#' f(c(1, 2))
#' f
#' @export
jit <- function(f, static_argnums = integer(), native = TRUE) {
  check_function(f)
  static <- argument_positions(static_argnums, f)
  run <- compiled_calls(f, function(f, here, compiled) {
    function_in_python <- callback(differentiated(f, here), owner = here)
    if (compiled) call_core("jit", function_in_python, as.list(static - 1L), native) else function_in_python
  })
  compiled <- function(...) {
    arguments <- list(...)
    tensors <- if (length(static) > 0) arguments[-static] else arguments
    if (gives_numbers(tensors)) {
      vectors(run(arguments))
    } else {
      several(run(arguments, in_r = FALSE))
    }
  }
  structure(compiled, class = c("gradops_compiled", "function"), explain = attr(run, "explain"))
}

#' Explain what was compiled
#'
#' `explain()` tells how [jit()] compiled a function, and why it was traced more than once. For a function whose
#' derivatives are taken repeatedly it tells whether these are compiled, or the reason why not (see [gradient()]).
#' @param x A function of [jit()], an [objective()], also that of a fit (`fit$objective`); a function whose derivatives
#'   were taken, or one of [grad_fn()], [value_and_grad()] or [hessian_fn()].
#' @param ... Not used.
#' @returns A character vector of class `gradops_explanation`, which prints one element on a line. For each signature on
#'   NumPy: dtypes and shapes, the steps of its program, how many run as native code, and why the others do not. Then
#'   the reason for each further trace: a new shape, dtype or number, a variable that `f` reads and that has changed
#'   (with both values, if they are single ones), or another branch, with the call that decided it.
#' @section Errors:
#' - `gradops_error_type`: `x` is none of these.
#' @seealso [jit()].
#' @examplesIf gradops_available()
#' rate <- 0.1
#' f <- jit(grad(function(x) if (sum(x) > 0) sum(rate * x^2) else 0 * x[1]))
#' f(c(1, 2))
#' f(c(-1, -2))
#' rate <- 0.2
#' f(c(1, 2))
#' explain(f)
#' @export
explain <- function(x, ...) {
  UseMethod("explain")
}

#' @export
explain.default <- function(x, ...) {
  said <- attr(x, "explain")
  is_known <- is.function(said) && inherits(x, c("gradops_compiled", "gradops_objective"))
  said <- if (is_known) said() else if (is.function(x)) explained_repetition(x)
  if (is.null(said)) {
    abort(
      c(
        sprintf("`x` must be a compiled function or objective; got %s.", friendly(x)),
        i = "`jit(f)` compiles a function, `objective(f, jit = TRUE)` an objective."
      ),
      class = c("gradops_error_type", "gradops_error"), call = users_call()
    )
  }
  structure(said, class = "gradops_explanation")
}

#' @rawNamespace
#' S3method(generics::explain,gradops_compiled)
#' S3method(generics::explain,gradops_objective)
#' @export
explain.gradops_compiled <- function(x, ...) explain.default(x)

#' @export
explain.gradops_objective <- function(x, ...) explain.default(x)

#' @export
print.gradops_explanation <- function(x, ...) {
  writeLines(unclass(x))
  invisible(x)
}

#' @export
format.gradops_compiled <- function(x, ...) {
  c("<compiled function>", attr(x, "explain")())
}

#' @export
print.gradops_compiled <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

# Return a function of a list of arguments that calls the compiled `make(f, here, TRUE)`. It is compiled again if a
# dependency of `f` (jit-dependencies.R) or the names of the arguments have changed, and in another session. `f` runs
# only when it is traced. Results are R's values if `in_r`; for plain arguments they come from `caller(compiled)`.
#
# If `f` changes a variable that it closes over, the trace is undone and `f` runs uncompiled, by `make(f, here, FALSE)`;
# from the second time in a row on, always. With `fixed`, each trace finds the variables with their present values.
# `members` are named arguments for the result of `make()`, which `f` does not see.
compiled_calls <- function(f, make, caller = direct_caller, fixed = FALSE) { # nolint: cyclocomp_linter. As one.
  then <- if (fixed) captured(f)
  here <- new.env()
  compiled <- direct <- alone <- session <- NULL
  watched <- NULL
  trace <- frame <- NULL
  changing <- FALSE
  changes <- character()
  noticed <- function(...) {
    if (is.null(trace)) {
      hold(then, frame)
      trace <<- begin_trace(f, frame)
    }
    call_traced(f, list(...))
  }
  as_it_stands <- function(arguments, in_r, members) {
    here$names <- lapply(arguments, names_within)
    result <- call_python(make(f, here, FALSE), c(arguments, members), in_r = in_r)
    if (in_r) py_to_r(result) else result
  }
  call_compiled <- function(arguments, in_r, plain, members) {
    if (plain) {
      direct(arguments, members)
    } else {
      result <- call_python(compiled, c(arguments, members), in_r = in_r)
      if (in_r) py_to_r(result) else result
    }
  }
  # TRUE if `f` has changed something; the change is then undone.
  has_changed <- function(done) {
    if (!any_changes(done$before)) {
      changes <<- character()
      watched <<- c(captured(f), done$asked)
      return(FALSE)
    }
    compiled <<- NULL
    changing <<- length(changes) > 0
    changes <<- undone(done$before)
    if (changing) warn_changing(changes)
    TRUE
  }
  run <- function(arguments, in_r = TRUE, members = list()) {
    if (changing) {
      hold(then, environment())
      return(as_it_stands(arguments, in_r, members))
    }
    previous <- compiled
    known <- !is.null(compiled) && identical(session, state$session) && (fixed || !changed(watched))
    found <- if (known && in_r && !is.null(alone)) alone(arguments, here$attributes, members)
    if (!is.null(found)) {
      if (!is.null(state$tracing)) pass_on(watched)
      return(found)
    }
    plain <- in_r && !is.null(compiled) && as_before(arguments, here$attributes)
    if (!plain) {
      plain <- in_r && all_plain(arguments)
      here$attributes <- if (plain) lapply(arguments, attributes)
      same <- !is.null(compiled) && same_names(arguments, here$names, plain)
      if (!same) compiled <<- NULL
    }
    fresh <- !known || is.null(compiled)
    if (fresh) {
      here$names <- lapply(arguments, names_within)
      compiled <<- make(noticed, here, TRUE)
      if (!is.null(previous) && identical(session, state$session)) {
        changes <- if (!fixed && !known) differences(watched) else list(list("the names or attributes of arguments"))
        call_core("interop.r.follow", compiled, previous, changes)
      }
      direct <<- caller(compiled)
      alone <<- attr(direct, "alone")
      session <<- state$session
    }
    outer <- trace
    trace <<- NULL
    frame <<- environment()
    seed <- random_state()
    result <- if (fresh) {
      unless_it_changes(call_compiled(arguments, in_r, plain, members), function() trace)
    } else {
      call_compiled(arguments, in_r, plain, members)
    }
    frame <<- NULL
    done <- trace
    trace <<- outer
    if (!is.null(done)) {
      end_trace(done)
      if (!identical(seed, random_state())) {
        compiled <<- NULL
        refuse_random_numbers()
      }
      if (has_changed(done)) {
        return(as_it_stands(arguments, in_r, members))
      }
    }
    if (!is.null(state$tracing)) pass_on(watched)
    result
  }
  explain <- function() {
    if (changing) {
      return(sprintf("not compiled: at each call it changes %s", quoted_names(changes)))
    }
    if (is.null(compiled) || !identical(session, state$session)) {
      return("not compiled yet: the first call compiles it")
    }
    lines <- strsplit(py_to_r(call_core("interop.r.explain", compiled)), "\n", fixed = TRUE)[[1]]
    formals <- names(formals(args(f)))
    for (i in seq_along(formals)) { # Python sees positions
      lines <- gsub(sprintf("`argument %d", i), paste0("`", formals[i]), lines, fixed = TRUE)
    }
    lines
  }
  structure(run, explain = explain, watched = function() watched)
}

# Call `f` with traced arguments.
call_traced <- function(f, arguments) {
  state$compiling <- compiling() + 1
  before <- with_scalars()
  on.exit({
    leave_scalars()
    with_scalars(before)
    state$compiling <- compiling() - 1
  })
  in_trace <- function() {
    state$refused <- NULL # left from an earlier attempt
    withCallingHandlers(do.call(tensor_aware(f), arguments), error = function(condition) {
      explain_branch(condition, "gradops_error_jit")
    })
  }
  # A log refuses gradients of its vectors and of numbers that it computes others from. `f` may ask for such gradients.
  again <- function(condition) NULL
  found <- tryCatch(list(in_trace()), gradops_error_partial_gradient = again, gradops_error_gradient = again) %||%
    tryCatch(list(without_logs("vectors", in_trace())), gradops_error_partial_gradient = again) %||%
    list(without_logs("numbers", in_trace()))
  found <- found[[1L]]
  if (!is.null(state$refused)) rlang::cnd_signal(state$refused) # the function's own handlers have caught it
  found
}

refuse_random_numbers <- function() {
  abort(
    c(
      "A compiled function drew random numbers while it was traced; they would be the same at each call.",
      i = "Draw them outside and pass them as an argument."
    ),
    class = c("gradops_error_jit", "gradops_error"), call = users_call()
  )
}

quoted_names <- function(names) {
  toString(sprintf("`%s`", unique(names)))
}

warn_changing <- function(names) {
  rlang::warn(
    c(
      sprintf(
        "A compiled function changes %s at each call, which a program cannot: the function runs uncompiled.",
        quoted_names(names)
      ),
      i = "Return what changes and assign it outside; `objective()` counts its `evaluations()`."
    ),
    class = c("gradops_warning_jit", "gradops_warning"), call = NULL
  )
}

# TRUE for arguments that Python needs no extra information about: doubles without a class, by position.
all_plain <- function(arguments) {
  if (!is.null(names(arguments))) {
    return(FALSE)
  }
  for (x in arguments) if (!is.double(x) || is.object(x)) return(FALSE)
  TRUE
}

# TRUE if arguments are plain and have the same attributes as before.
as_before <- function(arguments, attributes) {
  if (length(arguments) != length(attributes) || !is.null(names(arguments))) {
    return(FALSE)
  }
  for (i in seq_along(arguments)) {
    x <- arguments[[i]]
    if (!is.double(x) || !identical(attributes(x), attributes[[i]])) return(FALSE)
  }
  TRUE
}

# TRUE if arguments have the same names as others.
same_names <- function(arguments, others, plain) {
  if (!plain) {
    return(identical(lapply(arguments, names_within), others))
  }
  if (length(arguments) != length(others)) {
    return(FALSE)
  }
  for (i in seq_along(arguments)) if (!identical(names(arguments[[i]]), others[[i]])) return(FALSE)
  TRUE
}

# A function of plain arguments that calls the compiled function and returns R's values: see interop/r/jit.py.
direct_caller <- function(compiled) {
  direct <- call_core("interop.r.direct", compiled)
  function(arguments, members = list(), call = users_call()) {
    result <- py_call_list(direct, as_operands(arguments), as_operands(members))
    if (class(result)[1L] == failure_class) raise(result, call)
    py_to_r(result)
  }
}

# A caller for functions that return a value and its gradient. Python writes them into `memory`, which only this
# function sees, because converting a returned object costs another call.
pair_caller <- function(compiled) {
  general <- direct_caller(compiled)
  direct <- NULL
  native <- native_pair(compiled)
  memory <- matrix(0, 0L, 1L)
  of_size <- function(size) {
    memory <<- matrix(0, size, 1L)
    direct <<- call_core("interop.r.pair", compiled, memory)
    if (!all(memory == 1)) direct <<- NULL # it was copied
  }
  alone <- function(arguments, attributes, members) native$run(arguments, attributes)
  structure(alone = alone, function(arguments, members = list(), call = users_call()) {
    size <- length(arguments[[1L]]) + 1L
    if (length(memory) != size) of_size(size)
    if (is.null(direct)) {
      return(general(arguments, call = call))
    }
    operands <- as_operands(arguments)
    result <- py_call_list(direct, operands)
    kind <- class(result)[1L]
    if (kind == "python.builtin.bool") {
      native$count_call(operands)
      list(value = memory[1L], derivative = memory[-1L])
    } else if (kind == failure_class) {
      raise(result, call)
    } else {
      py_to_r(result)
    }
  })
}

# A caller for likelihoods without random effects, whose value and gradient need Python only until the code is native.
likelihood_caller <- function(compiled) {
  general <- direct_caller(compiled)
  native <- native_pair(compiled)
  is_pair <- function(members) members$question == "value_and_grad"
  alone <- function(arguments, attributes, members) if (is_pair(members)) native$run(arguments, attributes)
  structure(alone = alone, function(arguments, members, call = users_call()) {
    result <- general(arguments, members, call)
    if (is_pair(members)) native$count_call(as_operands(arguments))
    result
  })
}

# The native code of a program for value and gradient, run without Python (src/programs.c). `run()` returns NULL if the
# program has other parts, or Python must run it. `count_call()` follows each run by Python.
native_pair <- function(compiled) {
  native <- NULL
  calls <- 0
  asked_at <- 2 # the call at which Python is asked for the native code, which it may not have yet
  wait <- 2
  handed_out <- 0
  find_native <- function(operands) {
    # Python gets one call in this many, to check the program's results.
    until_python <- min(64 * 4^handed_out, 2^14)
    handed <- do.call(call_core, c(list("interop.r.alone", compiled, until_python), operands))
    native <<- if (!inherits(handed, "python.builtin.NoneType")) .Call(C_program, py_to_r(handed$numbers), handed)
    handed_out <<- handed_out + !is.null(native)
    asked_at <<- calls + wait
    wait <<- min(2 * wait, 128)
  }
  count_call <- function(operands) {
    calls <<- calls + 1
    if (calls >= asked_at && is.null(native)) find_native(operands)
  }
  run <- function(arguments, attributes) {
    if (is.null(native) || !is.null(state$clock)) {
      return(NULL)
    }
    found <- .Call(C_run_program, native, arguments, attributes)
    if (isFALSE(found)) {
      native <<- NULL
      asked_at <<- calls + 1
      return(NULL)
    }
    if (is.logical(found)) {
      found <- if (as_before(arguments, attributes)) .Call(C_run_program, native, arguments, NULL)
    }
    if (is.integer(found)) {
      found <- if (!py_to_r(call_core("jit.native.run.is_warned_of", found))) .Call(C_results_of_program, native)
    } else if (is.null(found)) {
      native <<- NULL
    }
    found
  }
  list(run = run, count_call = count_call)
}

# Plain arguments in the form that Python takes: numbers, and arrays without names.
as_operands <- function(arguments) {
  for (i in seq_along(arguments)) {
    x <- arguments[[i]]
    dim <- NULL
    if (!is.null(attributes(x))) {
      dim <- dim(x)
      attributes(x) <- NULL
    }
    if (length(x) != 1L || !is.null(dim)) dim(x) <- if (is.null(dim)) length(x) else dim
    arguments[[i]] <- x
  }
  arguments
}

# The number of functions that are being traced.
compiling <- function() {
  state$compiling %||% 0
}
