# Logs of operations: single numbers in a function that is compiled on NumPy. Arithmetic and mathematics on elements of
# vectors, `x[i]`, and on their results are logged. lazy-handles.R says when a log is written down, and
# python/gradops/jit/scalar_logs.py how Python turns it into a program.
#
# `state$scalars` is the log of the running code; FALSE if no log has begun yet, NA if no log is possible, and NULL if
# nothing is compiled. A function `*_in_log()` returns NULL if Python must do the operation.

# The result of an operation on numbers or short vectors. Nearly all operands are numbers of this log or R's own, which
# C handles at once: a loop has thousands of them.
operation_in_log <- function(op, x, y = 0) {
  result <- .Call(C_operation_in_log, state, op, x, y, TRUE)
  if (!is.logical(result)) {
    return(result)
  }
  add_to_log(list(x, y), function() {
    result <- .Call(C_operation_in_log, state, op, x, y, FALSE)
    if (is.environment(result)) keep_names(result, x, y)
  })
}

# The result of a unary operator.
minus_in_log <- function(operator, x) {
  if (operator == "-") operation_in_log("negative", x)
}

# Call `add` once a log is running, or has begun with one of the arguments, and knows their elements. NULL if the
# arguments are for Python.
add_to_log <- function(arguments, add) {
  if (is.null(state$scalars) || !is.null(state$in_time)) {
    return(NULL)
  }
  if (!is.null(state$missing) && any(vapply(arguments, is_marked, NA))) {
    return(NULL)
  }
  for (x in arguments) if (!is.environment(state$scalars) && has_log(x)) begin_scalars(x)
  log <- state$scalars
  if (is.environment(log)) {
    for (x in arguments) if (is.environment(x)) know_elements(log, x)
    add()
  }
}

has_log <- function(x) {
  is.environment(x) && is_logged(x)
}

# The result of a function of one number.
function_in_log <- function(op, x) {
  force(x) # evaluating it may begin the log
  if (!is.null(state$scalars) && has_log(x)) operation_in_log(op, x)
}

# `x[place]` for one position.
element_in_log <- function(x, place) {
  force(place)
  if (!is.null(state$scalars) && is_position(place)) part_in_log(x, list(place))
}

# `x[...]` of a few elements, in a function that is compiled. `places` has NULL for an empty index.
part_in_log <- function(x, places) {
  part <- .Call(C_part_in_log, state, x, places, FALSE)
  if (is.logical(part) && (length(places) > 1L || length(places[[1L]]) > 1L)) {
    known_dim(x) # a log begins only where it is used
    part <- .Call(C_part_in_log, state, x, places, FALSE)
  }
  if (is.logical(part)) {
    log <- if (is.environment(state$scalars)) state$scalars else begin_scalars(x)
    if (!is.null(log)) input_in(log, x)
    part <- if (!is.null(log)) .Call(C_part_in_log, state, x, places, FALSE)
  }
  if (!is.logical(part)) part
}

# TRUE for `count` logged numbers that may stay in a log of assignments until it is read: the tensor below the
# assignments must be able to hold such numbers.
is_scalar_for <- function(value, assignments, count) {
  log <- state$scalars
  if (!is.environment(log) || !has_log(value) || length(.subset2(value, "gradops_is")) != count) {
    return(FALSE)
  }
  if (!identical(assignments$scalars, log)) {
    floats <- py_call(core$floats_of_scalars %||% load_bridge("floats_of_scalars"), log$python, assignments$base)
    if (py_to_r(floats)) assignments$scalars <- log
  }
  identical(assignments$scalars, log)
}

# Logged numbers as one vector; a list of other parts unchanged.
scalars_together <- function(parts) {
  log <- .subset2(parts[[1L]], "gradops_log")
  if (is.null(log) || !all(vapply(parts, function(part) identical(.subset2(part, "gradops_log"), log), NA))) {
    return(parts)
  }
  numbers <- base::unlist(lapply(parts, .subset2, "gradops_is"))
  list(log$write(numbers, length(numbers)))
}

# The log -------------------------------------------------------------------------------------------------------------

# Allow or forbid a log while something is compiled, and return the previous state. An interrupted log never continues
# after another one, as its numbers would no longer be the highest.
with_scalars <- function(possible = FALSE) {
  before <- state$scalars
  state$scalars <- possible
  if (is.environment(before)) FALSE else before
}

# End the log: code begins or ends that runs in other modes and scopes, or in another function of Python's.
leave_scalars <- function() {
  log <- state$scalars
  if (!is.null(log)) {
    state$scalars <- FALSE
    if (is.environment(log)) log$write()
  }
}

begin_scalars <- function(x) {
  if (is.null(state$scalars) || is.na(state$scalars) || identical(state$unlogged, "numbers")) {
    return(NULL)
  }
  python <- py_call(core$scalars %||% load_bridge("scalars"), lazy_whole(x))
  if (!inherits(python, "gradops.jit.scalar_logs.Log")) {
    if (is.null(py_to_r(python))) state$scalars <- NA
    return(NULL)
  }
  state$lazy <- TRUE
  state$scalars <- scalar_log(python, oldClass(x))
}

first_logged <- 200
most_logged <- 20000

# An operation is three numbers in `words`: its code combined with the kinds of its operands, and the two operands.
# Results are counted on from log to log, so a number below `begun` belongs to an earlier log.
scalar_log <- function(python, classes) {
  force(classes) # of handles, as `convert`
  home <- surroundings()
  convert <- FALSE
  codes <- scalar_codes()
  words <- numeric(3 * first_logged)
  used <- 0 # numbers in use
  inputs <- list() # tensors that Python does not know yet
  known_inputs <- 0
  # A handle holds its number but not its log's. If each log counted from 0, a handle from an earlier log would be taken
  # for a number of this one: no error, but a wrong value. So numbers are never reused in a session. A number below
  # `begun` belongs to another log, and its tensor becomes an input.
  count <- begun <- state$scalar_count %||% 0
  log <- environment()

  make_room <- function(needed) {
    size <- length(words)
    if (size < 3 * most_logged) {
      words <<- c(words, numeric(max(size, needed)))
    } else {
      write() # R's garbage collector visits each handle of a log
    }
  }

  # Write down the logged operations; return the tensor of a result, or of several with dimensions, if asked for.
  write <- function(numbers = NULL, dim = NULL) {
    if (is.null(numbers) && used == 0) {
      return()
    }
    # Empty the log before Python is called: Python may log again, and after an error the same operations must not be
    # written twice.
    new <- words[seq_len(used)]
    given <- inputs
    inputs <<- list()
    used <<- 0
    state$scalar_count <- count
    if (!is.null(numbers)) numbers <- numbers - begun
    answer(
      py_call(core$write_scalars %||% load_bridge("write_scalars"), python, new, given, numbers, as.list(dim)),
      parent.frame()
    )
  }
  log
}

# A tensor's number among a log's inputs, and its size: 0 for a single number, below 0 if it cannot be an input.
input_in <- function(log, x) {
  known <- .subset2(x, "gradops_input")
  if (is.null(known) || !identical(known$log, log)) {
    size <- -1
    if (identical(oldClass(x), log$classes)) {
      tensor <- lazy_whole(x)
      size <- py_to_r(py_call(core$takes_scalars %||% load_bridge("takes_scalars"), log$python, tensor))
    }
    known <- list(log = log, is = c(log$known_inputs, as.double(size)))
    if (size >= 0) {
      log$inputs <- c(log$inputs, list(tensor))
      log$known_inputs <- log$known_inputs + 1
    }
    assign("gradops_input", known, envir = x)
  }
  known$is
}

# The codes of operations, times 16, by the names of ops and of R's operators.
scalar_codes <- function() {
  if (is.null(state$scalar_codes)) {
    names <- py_to_r(bridge()$scalar_names)
    codes <- stats::setNames(as.list(16 * seq_along(names)), names)
    binary <- intersect(arithmetic, names(operators)[operators %in% names])
    state$scalar_codes <- list2env(c(codes, stats::setNames(codes[operators[binary]], binary)), parent = emptyenv())
  }
  state$scalar_codes
}
