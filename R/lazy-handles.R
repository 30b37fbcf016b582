# Lazy handles: tensors that R's code holds and Python has not made yet.
#
# In a loop each step on one number, and each `h[i] <- v`, would be a call into Python, a tensor and a node of the tape,
# of some twenty microseconds together. So such steps are noted in a log. The handle of a result looks like any other,
# but it holds the log and where it stands in it, and `pyobj`, where reticulate looks for Python's object, is an active
# binding: who reads it gets the tensor, made from the log at that time. There are two kinds of log:
#
# - of operations on numbers (lazy-scalars.R, lazy-vectors.R), one at a time, of a function that is compiled on NumPy.
#   It holds no tensors, only numbers of operations and operands, and Python writes down all of it at once.
# - of assignments (lazy-assignments.R), one for each vector that is filled, on any backend, compiled or not. It holds
#   what was assigned, which may be tensors or numbers of the other log; one tensor is made of all.
#
# When a log must be written down is what can go wrong. R's code reads a tensor in three ways. It passes it to Python:
# `make_lazy()` makes the arguments of each call beforehand, as an error must not come while reticulate's compiled code
# reads a `pyobj`. It calls Python about something else: operations come first, so that Python knows all in the order of
# R's code (`py_call_list()`). Or it enters or leaves a scope or a function of Python's: operations belong to the modes
# in which they were done (`enter_surroundings()`), and a tensor made of assignments in a trace or under `no_grad` is
# good there alone, so it is made again elsewhere (`gradops_good`).

# A handle is an environment. `gradops_is`: its number, or its numbers, in a log of operations; how many of a log's
# assignments are its own. `gradops_dim`: dimensions, NULL of a single number.
lazy_handle <- function(log, is, dim = NULL) .Call(C_lazy_handle, log, is, dim)

start_logs <- function(namespace) {
  getter <- quote(function() .subset2(lazy_whole(parent.env(environment())), "pyobj"))
  .Call(C_start_logs, namespace, getter)
}

is_lazy <- function(x) {
  !is.null(.subset2(x, "gradops_log"))
}

# TRUE for a handle of a log of assignments.
is_pending <- function(x) {
  !is.null(.subset2(.subset2(x, "gradops_log"), "entries"))
}

# TRUE for a handle of a log of operations: a single number, or several.
is_logged <- function(x) {
  is_lazy(x) && !is_pending(x)
}

is_scalar <- function(x) {
  is_lazy(x) && is.null(.subset2(x, "gradops_dim"))
}

# Before a call of Python's.
make_lazy <- function(arguments) {
  for (x in arguments) if (is.environment(x)) lazy_whole(x)
}

# The tensor of a lazy handle; of any other the handle.
lazy_whole <- function(x) {
  log <- .subset2(x, "gradops_log")
  whole <- .subset2(x, "gradops_whole")
  if (is.null(log)) {
    if (is.null(whole)) x else whole
  } else if (!is.null(log$entries)) {
    assigned_whole(x, log, whole)
  } else {
    if (is.null(whole)) {
      whole <- log$write(.subset2(x, "gradops_is"), .subset2(x, "gradops_dim"))
      assign("gradops_whole", whole, envir = x)
    }
    whole
  }
}

# The surroundings of the R code that runs: a number for each scope that was entered and each function that Python
# called.
surroundings <- function() {
  state$surroundings %||% 0
}

# New ones; gives those before.
enter_surroundings <- function() {
  leave_scalars()
  before <- surroundings()
  state$entered <- (state$entered %||% 0) + 1
  state$surroundings <- state$entered
  before
}

leave_surroundings <- function(before) {
  leave_scalars()
  state$surroundings <- before
}
