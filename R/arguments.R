# R values on their way into Python, and back.

# A tensor argument: Python objects as they are, R values as gradops.interop.r expects them.
operand <- function(x, name = substitute(x), call = parent.frame()) {
  if (is.environment(x)) x else as_python(x, name, call)
}

# Numbers go as numbers, without NA; arrays as a marked NumPy view, so that Python knows them as R's; functions as
# callbacks; lists element by element.
as_python <- function(x, name = "x", call = NULL) {
  if (is.object(x) && !is.environment(x) && !is.function(x)) {
    x <- without_class(x)
  }
  switch(typeof(x),
    environment = , character = , `NULL` = x,
    closure = , builtin = , special = callback(x),
    list = lapply(named(x), as_python, name = name, call = call),
    double = , complex = number_or_array(x),
    integer = , logical = number_or_array(if (anyNA(x)) `storage.mode<-`(x, "double") else x),
    not_numeric(if (is.character(name)) name else deparse1(name), x, call)
  )
}

callback_value <- "the function's value"

not_numeric <- function(name, x, call) {
  abort(
    sprintf(
      "%s must be a tensor, or numeric, logical, complex, or a list of these; got %s.",
      if (identical(name, callback_value)) name else sprintf("`%s`", name), friendly(x)
    ),
    class = c("gradops_error_type", "gradops_error"), argument = name, call = call
  )
}

number_or_array <- function(x) {
  if (length(x) == 1L && is.null(dim(x))) as.vector(x) else list(`<R>` = array_of(x))
}

# Factors' codes, data frames as matrices, the numbers of dates and the like.
without_class <- function(x) {
  if (is.data.frame(x)) data.matrix(x) else unclass(x)
}

# Several tensors, given as one list or one by one.
gathered <- function(xs, ...) {
  if (...length() > 0) list(xs, ...) else xs
}

# `x` without attributes but a dim.
array_of <- function(x, dim = base::dim(x) %||% length(x)) {
  force(dim)
  attributes(x) <- NULL
  dim(x) <- dim
  x
}

# A list with all names or none.
named <- function(x) {
  names <- names(x)
  attributes(x) <- NULL
  if (!is.null(names) && all(nzchar(names)) && !anyNA(names)) names(x) <- names
  x
}

# A Python result that is no tensor (a number, a text, a list of these) as an R value.
plain <- function(x) {
  py_to_r(x)
}

# A Python tuple or list of tensors as an R list.
several <- function(x) {
  if (inherits(x, c("python.builtin.list", "python.builtin.tuple"))) {
    reticulate::iterate(x, several, simplify = FALSE)
  } else if (inherits(x, "python.builtin.dict")) {
    values <- reticulate::iterate(x$values(), several, simplify = FALSE)
    names(values) <- as.character(reticulate::iterate(x$keys(), py_to_r))
    values
  } else {
    as_r_scalar(x)
  }
}

# R functions ----------------------------------------------------------------------------------------------------------

# Python's numbers, strings and None as R's; all else as it is.
as_r_scalar <- function(x) {
  if (class(x)[1] %in% python_scalars) py_to_r(x) else x
}

python_scalars <- paste0("python.builtin.", c("bool", "int", "float", "str", "NoneType"))

# Conditions raised in callbacks wait here for the call into Python that they end.
conditions <- new.env(parent = emptyenv())

keep_condition <- function(condition) {
  if (length(conditions) > 100) {
    forget_conditions()
  }
  state$conditions <- ((state$conditions %||% 0) + 1) %% 1000 # names of an environment are never forgotten by R
  key <- as.character(state$conditions)
  conditions[[key]] <- condition
  key
}

# A jump out of a callback (to a handler of `tryCatch()`, to a restart) must not pass over Python: it ends the callback
# as an error does, and is taken up again beyond Python by signalling the condition that it was for.
jumped <- function(condition) {
  message <- "it was left by a jump to outside, such as by `callCC()` or a restart."
  jump <- structure(
    class = c("gradops_jump", "error", "condition"), list(message = message, call = NULL, signalled = condition)
  )
  list(`<R error>` = keep_condition(jump), message = message, python = NULL)
}

jump_again <- function(jump) {
  condition <- jump$signalled
  if (inherits(condition, "warning")) {
    warning(condition)
  } else if (inherits(condition, "message")) {
    message(condition)
  } else if (!is.null(condition)) {
    signalCondition(condition)
  }
}

take_condition <- function(key) {
  condition <- conditions[[key]]
  forget_conditions()
  condition
}

forget_conditions <- function() {
  rm(list = ls(conditions), envir = conditions)
}

check_flag <- function(flag, name = rlang::caller_arg(flag), call = caller_env()) {
  if (!is.logical(flag) || length(flag) != 1 || is.na(flag)) {
    abort(
      sprintf("`%s` must be TRUE or FALSE; got %s.", name, friendly(flag)),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
}

# What a value is, in a few words.
friendly <- function(x) {
  cli::format_inline("{.obj_type_friendly {x}}")
}
