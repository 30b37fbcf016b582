# Single numbers in a function that is compiled on NumPy. One by one each operation on them would be a call into Python,
# a step of the program and a node of the tape. So they are logged here, and Python writes all of them down at once when
# one is needed: R's handle of a number looks like any other, but that its `pyobj`, where reticulate looks for Python's
# object, is an active binding. Logged are arithmetic and mathematics on elements of vectors, `x[i]`, and on what comes
# of these; python/gradops/jit/scalar_logs.py says what Python makes of it.
#
# `state$scalars` is the log of the code that runs now; FALSE where none has begun, NA where there is none, and NULL
# where nothing is compiled.

# What gives the result of an operation on two numbers, NULL where Python must do it; NULL where nothing is compiled.
scalar_operation <- function() {
  log <- state$scalars
  if (is.environment(log)) log$operation else if (!is.null(log)) first_operation
}

# The same where no log has begun.
first_operation <- function(op, x, y) {
  is <- function(operand) is.environment(operand) && is_logged(operand)
  log <- if (is(x)) begin_scalars(x) else if (is(y)) begin_scalars(y)
  if (!is.null(log)) log$operation(op, x, y)
}

# The result of a function of one number.
scalar_function <- function(op, x) {
  force(x) # which may begin the log
  log <- state$scalars
  if (is.null(log) || !is.environment(x) || !is_logged(x)) {
    return(NULL)
  }
  if (!is.environment(log)) log <- begin_scalars(x)
  if (!is.null(log)) log$operation(op, x)
}

# `x[i]` of one position in a vector.
scalar_element <- function(x, place) {
  force(place)
  log <- state$scalars
  if (is.null(log)) {
    return(NULL)
  }
  if (!is.numeric(place) || length(place) != 1L || is.object(place) || !is.null(dim(place)) || !isTRUE(place >= 1)) {
    return(NULL)
  }
  if (!is.environment(log)) log <- begin_scalars(x)
  if (!is.null(log)) log$element(x, trunc(place) - 1)
}

is_scalar <- function(x) {
  !is.null(.subset2(x, "gradops_scalar"))
}

# The tensor.
scalar_whole <- function(handle) {
  whole <- .subset2(handle, "gradops_whole")
  if (is.null(whole)) {
    whole <- .subset2(handle, "gradops_scalars")$write(logged_numbers(handle), .subset2(handle, "gradops_dim"))
    assign("gradops_whole", whole, envir = handle)
  }
  whole
}

# Whether a value is one or several logged numbers, as many as `count`, that may stand in a tensor with assignments
# pending until all of it is read.
is_scalar_for <- function(value, pending, count) {
  log <- state$scalars
  if (!is.environment(log) || !is.environment(value)) {
    return(FALSE)
  }
  size <- if (is_scalar(value)) 1L else length(.subset2(value, "gradops_numbers"))
  size == count && log$has_floats(pending)
}

# Logged numbers as one vector; a list of others as it is.
scalars_together <- function(parts) {
  logs <- lapply(parts, function(part) .subset2(part, "gradops_scalars"))
  log <- logs[[1L]]
  if (is.null(log) || !all(vapply(logs, identical, NA, log))) {
    return(parts)
  }
  numbers <- base::unlist(lapply(parts, logged_numbers))
  list(log$write(numbers, length(numbers)))
}

# The numbers of a handle.
logged_numbers <- function(handle) {
  .subset2(handle, "gradops_scalar") %||% .subset2(handle, "gradops_numbers")
}

# The log -------------------------------------------------------------------------------------------------------------

# Where something is compiled; gives what was before, for afterwards. A log does not go on after another one: its
# numbers would no more be the highest.
with_scalars <- function(possible = FALSE) {
  before <- state$scalars
  state$scalars <- possible
  if (is.environment(before)) FALSE else before
}

# Code begins or ends for which the log is not: with other modes and scopes, or in another function of Python's.
leave_scalars <- function() {
  log <- state$scalars
  if (!is.null(log)) {
    state$scalars <- FALSE
    if (is.environment(log)) log$write()
  }
}

begin_scalars <- function(x) {
  if (is.null(state$scalars) || is.na(state$scalars)) {
    return(NULL)
  }
  if (is_scalar(x)) x <- scalar_whole(x)
  python <- py_call(core$scalars %||% load_bridge("scalars"), x)
  if (!inherits(python, "gradops.jit.scalar_logs.Log")) {
    if (is.null(py_to_r(python))) state$scalars <- NA
    return(NULL)
  }
  state$pending <- TRUE
  state$scalars <- scalar_log(python, oldClass(x))
}

first_logged <- 200
most_logged <- 5000

# Numbers are counted on from log to log.
scalar_log <- function(python, classes) { # nolint: cyclocomp_linter. The functions in it are counted as one.
  force(python)
  force(classes)
  words <- numeric(3 * first_logged)
  used <- 0 # of these
  inputs <- list()
  known_inputs <- 0
  count <- begun <- state$scalar_count %||% 0
  log <- environment()

  # NULL where Python must do it. What is a number of this log, and what is R's own, is looked at here, as `operand()`
  # would take half as long again.
  operation <- function(op, x, y) {
    code <- codes[[op]]
    if (is.null(code)) {
      return(NULL)
    }
    if (is.environment(x)) {
      first <- .subset2(x, "gradops_scalar")
      if (is.null(first) || first < begun) {
        is <- operand(x)
        code <- code + 4 * is[1L]
        first <- is[2L]
      } else {
        code <- code + 4
        first <- first - begun
      }
      names <- attr(x, "gradops_names", TRUE)
    } else {
      if (missing(y) || !is.environment(y)) {
        return(NULL)
      }
      if (!is_literal(x)) {
        return(vector_operation(log, code, x, y))
      }
      first <- x
      names <- NULL
    }
    if (missing(y)) {
      second <- 0
    } else if (is.environment(y)) {
      second <- .subset2(y, "gradops_scalar")
      if (is.null(second) || second < begun) {
        is <- operand(y)
        code <- code + is[1L]
        second <- is[2L]
      } else {
        code <- code + 1
        second <- second - begun
      }
      if (is.null(names)) names <- attr(y, "gradops_names", TRUE)
    } else if (is_literal(y)) {
      second <- y
    } else {
      code <- NULL
    }
    if (length(code) == 0L) {
      return(vector_operation(log, codes[[op]], x, y))
    }
    result <- add(code, first, second)
    if (is.null(names)) result else keep_names(result, x, if (!missing(y)) y)
  }

  # The element after `place` others; NULL where Python must find it.
  element <- function(x, place) {
    numbers <- .subset2(x, "gradops_numbers")
    if (!is.null(numbers) && identical(.subset2(x, "gradops_scalars"), log)) {
      return(if (place < length(numbers)) handle(numbers[place + 1]))
    }
    input <- input(x)
    if (place < input[2L]) add(0, input[1L], place)
  }

  add <- function(code, first, second) {
    if (used == length(words)) make_room(3)
    words[used + 1] <<- code
    words[used + 2] <<- first
    words[used + 3] <<- second
    used <<- used + 3
    made <- handle(count)
    count <<- count + 1
    made
  }

  make_room <- function(needed) {
    size <- length(words)
    if (size < 3 * most_logged) {
      words <<- c(words, numeric(max(size, needed)))
    } else {
      write() # R's own search for garbage would visit each handle of a longer one
    }
  }

  # The same of several, without handles: the numbers.
  add_rows <- function(code, first, second) {
    several <- length(code)
    if (used + 3 * several > length(words)) make_room(3 * several)
    words[used + seq_len(3 * several)] <<- rbind(code, first, second)
    used <<- used + 3 * several
    count <<- count + several
    count - several:1
  }

  # R's handle of a number: the environment of this call.
  handle <- function(gradops_scalar) {
    force(gradops_scalar)
    gradops_scalars <- log
    convert <- FALSE
    this <- environment()
    makeActiveBinding(pyobj, function() .subset2(scalar_whole(this), "pyobj"), this)
    attr(this, "class") <- classes
    this
  }
  pyobj <- as.name("pyobj")

  # What a tensor is as an operand, and where it is found; NULL of none.
  operand <- function(x) {
    if (is_logged_vector(x)) {
      return(NULL)
    }
    input <- input(x)
    if (identical(input[2L], 0)) c(2, input[1L])
  }

  # Which input a tensor is, and its size: 0 of a single number, less than 0 of what is none.
  input <- function(x) {
    known <- .subset2(x, "gradops_input")
    if (is.null(known) || !identical(known$log, log)) {
      tensor <- if (is_scalar(x)) scalar_whole(x) else x
      size <- -1
      if (identical(oldClass(x), classes)) {
        size <- py_to_r(py_call(core$takes_scalars %||% load_bridge("takes_scalars"), python, tensor))
      }
      known <- list(log = log, is = c(known_inputs, as.double(size)))
      if (size >= 0) {
        inputs <<- c(inputs, list(tensor))
        known_inputs <<- known_inputs + 1
      }
      assign("gradops_input", known, envir = x)
    }
    known$is
  }

  # Whether the tensor below pending assignments is one of numbers as these.
  has_floats <- function(pending) {
    if (!identical(pending$scalars, log)) {
      known <- py_to_r(py_call(core$floats_of_scalars %||% load_bridge("floats_of_scalars"), python, pending$base))
      if (known) pending$scalars <- log
    }
    identical(pending$scalars, log)
  }

  # Write down what is logged; the tensor of a result, or of several with dimensions, if they are asked for.
  write <- function(numbers = NULL, dim = NULL) {
    if (is.null(numbers) && used == 0) {
      return()
    }
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

  codes <- scalar_codes()
  log
}

# A number of R's own.
is_literal <- function(x) {
  is.numeric(x) && length(x) == 1L && is.null(attributes(x)) && !is.na(x)
}

# The numbers of operations, times 16, by the names of ops and of R's operators.
scalar_codes <- function() {
  if (is.null(state$scalar_codes)) {
    names <- py_to_r(bridge()$scalar_names)
    codes <- stats::setNames(as.list(16 * seq_along(names)), names)
    binary <- intersect(arithmetic, names(operators)[operators %in% names])
    state$scalar_codes <- list2env(c(codes, stats::setNames(codes[operators[binary]], binary)), parent = emptyenv())
  }
  state$scalar_codes
}
