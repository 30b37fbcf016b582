# R's own decisions about tensors: comparisons, and functions that take values out of a tensor as R's numbers.
#
# While a function is differentiated, tensors with known values compare as R's numbers do: the result is R's logicals,
# NA for NaN. So `if`, `any()`, `which()`, `x[x > 0]` and `sum(x > 0)` work unchanged. In code that `jit` traces the
# values are not known, and outside of differentiation tensors stay on their device: there a comparison returns a tensor
# of booleans, as `op_greater()` does.

# A tensor's values in the form of `like_tensor()`; NULL if they are not known.
plain <- function(x) {
  if (!is.environment(x) || !is_any_tensor(x)) {
    return(x)
  }
  value <- py_to_r(call_core("interop.r.if_known", x))
  if (is.null(value)) NULL else like_tensor(value, x)
}

# `value` in the form that the tensor `x` has in R: with its names, and as a vector if `x` has one dimension and is not
# marked as an array (methods-names.R).
like_tensor <- function(value, x) {
  if (length(dim(value)) == 1L && !is_one_dimensional(x)) dim(value) <- NULL
  if (length(dim(value)) < 2L) {
    names(value) <- names_tensor(x)
  } else if (!is.null(dimnames_tensor(x))) {
    dimnames(value) <- dimnames_tensor(x)
  }
  value
}

# The values that a decision depends on in code that `jit` traces; the program then holds for these values only. NULL if
# the values must not be read.
looked_at <- function(x, form) {
  found <- py_to_r(call_core("interop.r.decided", x, form))
  if (is.null(found)) {
    return(NULL)
  }
  value <- found[[1]]
  if (any(found[[2]])) is.na(value) <- found[[2]] # `is.na<-` with FALSE would extend an empty vector
  like_tensor(value, x)
}

# The values that a decision depends on, or an error that names the call that needs them.
needed <- function(x, what) {
  if (!is.object(x) || !is_any_tensor(x)) {
    return(x)
  }
  plain(x) %||% needs_values(sprintf("`%s()`", what), instead(instead_of$values), NULL)
}

# The values of a tensor, for an answer that depends on only part of their information: their order, a comparison, the
# integers to which R truncates them, which are true. A program that `jit` traces then holds for all arguments that
# agree in that part.
decided_by <- function(x, form, what) {
  if (is.environment(x) && is_any_tensor(x)) plain(x) %||% looked_at(x, form) %||% not_seen(what) else x
}

decided_order <- function(x, what) decided_by(x, "order", what)

decided_place <- function(x, others, what) {
  if (!is.environment(x) || !is_any_tensor(x)) {
    return(x)
  }
  value <- plain(x)
  if (is.null(value) && (is.numeric(others) || is.environment(others) && is_any_tensor(others))) {
    value <- py_to_r(call_core("interop.r.placed", x, operand(others)))
    if (!is.null(value)) value <- like_tensor(value, x)
  }
  value %||% seen(x, what)
}

whole_numbers <- function(x, what) decided_by(x, "whole", what)

truth <- function(x, what) decided_by(x, "if", what)

# The result of R's operator on the values; NULL if the tensors' own operator is to be used.
compared <- function(operator, e1, e2) {
  if (inside() == 0) {
    return(NULL)
  }
  first <- plain(e1)
  second <- if (missing(e2)) TRUE else plain(e2)
  if (is.null(first) || is.null(second)) {
    return(NULL)
  }
  f <- get(operator, baseenv())
  if (missing(e2)) f(first) else f(first, second)
}

# Like `compared()`, for a function of one argument.
asked <- function(f, x) {
  if (inside() > 0) {
    values <- plain(x)
    if (!is.null(values)) f(values)
  }
}

# TRUE if a function that takes numbers out of a tensor must keep the tensor, because its gradient or trace would be
# lost.
keeps <- function(x) {
  inside() > 0 && (is_logged(x) || py_to_r(call_core("interop.r.keeps", x)))
}
