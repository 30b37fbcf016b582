# Interrupts: when R may jump, when Python may raise.

# R may jump to the handler of an interrupt wherever it allocates memory. In the midst of reticulate's compiled code
# that would leave Python locked for good, so it is called with interrupts suspended. Python raises one all the same
# where `interrupts_suspended()` says that only this function suspends them (`interop/r/session.py`); the call is then
# without a value, and the interrupt R's again.
py_call <- function(.f, ...) {
  arguments <- list(...) # what they compute can be interrupted
  if (!is.null(state$lazy)) make_lazy(arguments)
  keywords <- list()
  names <- names(arguments)
  if (!is.null(names)) {
    keywords <- arguments[nzchar(names)]
    arguments <- arguments[!nzchar(names)]
  }
  py_call_list(.f, arguments, keywords)
}

# The same with the arguments in lists, those without and those with names.
py_call_list <- function(f, arguments, keywords = list()) {
  if (is.environment(state$scalars)) state$scalars$write() # Python comes to know all in the order of R's code
  result <- suspendInterrupts(
    if (is.null(state$clock)) reticulate_call(f, arguments, keywords) else clocked_call(f, arguments, keywords)
  )
  if (is.null(result)) rlang::interrupt()
  if (!is.null(state$out_of_time)) stop_out_of_time()
  result
}

py_to_r <- function(x) {
  force(x)
  suspendInterrupts(if (is.null(state$clock)) reticulate_to_r(x) else out_of_r("conversions", reticulate_to_r(x)))
}

# TRUE if interrupts are suspended other than by `py_call_list()`. R tells only the functions that change it: each notes
# the state before.
interrupts_suspended <- function() {
  frame <- sys.nframe()
  while (frame > 0) {
    changed_by <- sys.function(frame)
    if (identical(changed_by, allowInterrupts)) {
      return(FALSE)
    } else if (identical(changed_by, suspendInterrupts)) {
      return(isTRUE(sys.frame(frame)$suspended) || !identical(sys.function(sys.parents()[frame]), py_call_list))
    }
    frame <- frame - 1
  }
  FALSE
}

# Interrupts must not stop Python in the middle of entering or leaving a scope.
hold_interrupts <- function(bridge) {
  held <- py_call(bridge$hold_interrupts, callback(function() !interrupts_suspended()))
  if (py_to_r(held)) install_interrupt_handlers()
}

# An interrupt comes before both or after both, so that what is entered is always left.
enter_scope <- function(scope, envir) {
  suspendInterrupts({
    call_core("interop.r.invoke", scope$`__enter__`, list(), list(), .call = envir)
    leave <- scope$`__exit__`
    before <- enter_surroundings()
    withr::defer(
      {
        leave_surroundings(before)
        suspendInterrupts(py_call(leave, NULL, NULL, NULL))
      },
      envir = envir
    )
  })
  invisible()
}

# Code in the scope that `local` enters for a frame; only in the code itself, not on the way out, an interrupt comes.
within_scope <- function(local, code) {
  scope <- parent.frame()
  frame <- parent.frame(2)
  force_shared(substitute(code, scope), frame)
  interruptible <- if (interrupts_suspended()) identity else allowInterrupts
  scoped <- function() {
    local(environment())
    interruptible(code)
  }
  suspendInterrupts(scoped())
}

# Time limits ----------------------------------------------------------------------------------------------------------

# R signals the error of a time limit (`setTimeLimit()`) once, as an error like any other, and drops the limit. So
# gradops passes it on wherever it takes errors as answers, and raises R's own condition, by whose message others know
# it, also where Python code has gone on after the callback that it ended.

# The value of `code`, or `otherwise(error)`; `...` are further handlers. The error of a time limit is raised again.
attempt <- function(code, otherwise = identity, ...) {
  tryCatch(code, error = function(error) if (is_out_of_time(error)) stop(error) else otherwise(error), ...)
}

is_out_of_time <- function(condition) {
  inherits(condition, "simpleError") && conditionMessage(condition) %in% gettext(
    "reached elapsed time limit", "reached CPU time limit", "reached session elapsed time limit",
    "reached session CPU time limit", domain = "R"
  )
}

stop_out_of_time <- function() {
  error <- state$out_of_time
  state$out_of_time <- NULL
  forget_conditions()
  stop(error)
}
