# Interrupts: when R may jump, and when Python may raise.

# R may jump to the handler of an interrupt wherever it allocates memory. Within reticulate's compiled code that would
# leave Python locked for good, so reticulate is called with interrupts suspended. Python still raises an interrupt if
# `interrupts_suspended()` says that only this function suspends them (`interop/r/session.py`); the call then has no
# value, and R handles the interrupt.
py_call <- function(.f, ...) {
  arguments <- list(...) # evaluate them here, where R may be interrupted
  if (!is.null(state$lazy)) make_lazy(arguments)
  keywords <- list()
  names <- names(arguments)
  if (!is.null(names)) {
    keywords <- arguments[nzchar(names)]
    arguments <- arguments[!nzchar(names)]
  }
  py_call_list(.f, arguments, keywords)
}

# Call Python with the arguments in two lists, without and with names.
py_call_list <- function(f, arguments, keywords = list()) {
  if (is.environment(state$scalars)) state$scalars$write() # Python must see operations in R's order
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

# TRUE if interrupts are suspended by anything other than `py_call_list()`. R tells this only to the functions that
# change it: each notes the state before.
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

# An interrupt comes before or after both steps, so that a scope that is entered is always left.
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

# Run code in the scope that `local` enters for a frame. Interrupts are allowed only in the code itself, not while the
# scope is left.
run_in_scope <- function(local, code) {
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

# R signals the error of a time limit (`setTimeLimit()`) once, as an ordinary error, and drops the limit. So gradops
# passes it on wherever it treats errors as results, and raises R's own condition, which other code recognises by its
# message, even if Python code went on after the callback that it ended.

# The value of `code`, or `otherwise(error)`; `...` are further handlers. A time limit's error is raised again.
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
