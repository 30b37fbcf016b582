# Lazy handles: tensors that R's code holds and Python has not made yet.
#
# In a loop, each step on one number and each `h[i] <- v` would cost a call into Python, a tensor and a node of the
# tape, about twenty microseconds together. So such steps are noted in a log. The handle of a result looks like any
# other, but it holds the log and its position in the log. Its `pyobj`, where reticulate looks for the Python object, is
# an active binding: reading it makes the tensor from the log. There are two kinds of log:
#
# - Logs of operations on numbers (lazy-scalars.R, lazy-vectors.R): one at a time, for a function that is compiled on
#   NumPy. Such a log holds no tensors, only numbers of operations and operands, and Python writes it down all at once.
# - Logs of assignments (lazy-assignments.R): one for each vector that is filled, on any backend, compiled or not. Such
#   a log holds the assigned values, tensors or numbers of the other log; they become one tensor.
#
# The hard part is when a log must be written down. R's code can reach a tensor in three ways. It passes it to Python:
# `make_lazy()` makes the arguments of each call beforehand, as an error must not occur while reticulate's compiled code
# reads a `pyobj`. It calls Python about something else: logged operations are written down first, so that Python sees
# everything in the order of R's code (`py_call_list()`). Or it enters or leaves a scope or a function of Python's:
# operations belong to the modes in which they were done (`enter_surroundings()`), and a tensor made of assignments in a
# trace or under `no_grad` is valid only there, so it is made again elsewhere (`gradops_good`).

# A handle is an environment. `gradops_is`: its number, or its numbers, in a log of operations; in a log of assignments,
# how many entries are its own. `gradops_dim`: dimensions, NULL for a single number.
lazy_handle <- function(log, is, dim = NULL) .Call(C_lazy_handle, log, is, dim)

start_logs <- function(namespace) {
  getter <- quote(function() .subset2(lazy_whole(parent.env(environment())), "pyobj"))
  .Call(C_start_logs, namespace, getter, most_together)
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

# Make the tensors of lazy arguments before a call of Python.
make_lazy <- function(arguments) {
  for (x in arguments) if (is.environment(x)) lazy_whole(x)
}

# The tensor of a lazy handle; any other handle unchanged.
lazy_whole <- function(x) {
  log <- .subset2(x, "gradops_log")
  whole <- .subset2(x, "gradops_whole")
  if (is.null(log)) {
    if (is.null(whole)) x else whole
  } else if (!is.null(log$entries)) {
    assigned_whole(x, log, whole)
  } else {
    made <- .subset2(x, "gradops_made") # surroundings other than the log's: a loop's body, which ends
    if (is.null(whole) || !is.null(made) && !made %in% state$open) {
      whole <- log$write(.subset2(x, "gradops_is"), .subset2(x, "gradops_dim"))
      here <- surroundings()
      assign("gradops_whole", whole, envir = x)
      if (here != log$home || !is.null(made)) assign("gradops_made", if (!here %in% c(0, log$home)) here, envir = x)
    }
    whole
  }
}

# The surroundings of the running R code: a number that changes with each scope that is entered and each function that
# Python calls.
surroundings <- function() {
  state$surroundings %||% 0
}

# Enter new surroundings and return the previous ones.
enter_surroundings <- function() {
  leave_scalars()
  before <- surroundings()
  state$entered <- (state$entered %||% 0) + 1
  state$surroundings <- state$entered
  state$open <- c(state$open, state$entered)
  before
}

leave_surroundings <- function(before) {
  leave_scalars()
  state$surroundings <- before
  state$open <- state$open[state$open <= before]
}
