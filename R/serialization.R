#' Keep tensors in files
#'
#' A tensor lives in Python's memory, so `saveRDS()`, `save()` and a new R session keep only an empty handle of it.
#' `serialize_tensor()` converts tensors and variables to an R object, which can be saved like any other;
#' `unserialize_tensor()` converts it back to tensors, with the same backend, dtype, shape, `requires_grad` and role.
#'
#' Values are restored exactly, in every dtype. Gradients, hooks, the graph (the result of an operation becomes a
#' variable of its own) and the device are not kept: tensors are restored on their library's default device. Using an
#' empty handle raises an error of class `gradops_error_stale`.
#' @param x For `serialize_tensor()`, a tensor, a variable, or a list of these and of any R values, nested to any depth,
#'   such as the parameters of a model. For `unserialize_tensor()`, an object that `serialize_tensor()` returned.
#' @param backend The backend to which all tensors are converted; `NULL` keeps each tensor's own.
#' @returns `serialize_tensor()`: an R object of class `gradops_serialized`, or a list of the same form as `x` with one
#'   in place of each tensor. `unserialize_tensor()`: the tensors, in the same form.
#' @section Errors:
#' - `gradops_error_type`: a tensor that is being traced, and so has no values; an object that is not a tensor.
#' - `gradops_error_backend`: a backend that is not installed, or that lacks the dtype.
#' @seealso [variable()].
#' @examplesIf gradops_available()
#' parameters <- list(weights = parameter(matrix(1:4 / 4, 2)), bias = parameter(0), epochs = 10)
#' file <- tempfile(fileext = ".rds")
#' saveRDS(serialize_tensor(parameters), file)
#' restored <- unserialize_tensor(readRDS(file))
#' backward(sum(restored$weights^2))
#' restored$weights$grad
#' @export
serialize_tensor <- function(x) {
  if (is_any_tensor(x)) {
    check_alive(x, environment())
    packed <- py_to_r(call_core("interop.r.pack", x))
    packed$names <- names(x)
    structure(packed, class = "gradops_serialized")
  } else if (is.list(x)) {
    x[] <- lapply(x, serialize_tensor)
    x
  } else if (is.environment(x) && inherits(x, "python.builtin.object")) {
    not_numeric("x", x, environment())
  } else {
    x
  }
}

#' @rdname serialize_tensor
#' @export
unserialize_tensor <- function(x, backend = NULL) {
  if (inherits(x, "gradops_serialized")) {
    tensor <- call_core("interop.r.unpack", unclass(x), backend)
    if (!is.null(x$names)) names(tensor) <- x$names
    tensor
  } else if (is.list(x)) {
    x[] <- lapply(x, unserialize_tensor, backend = backend)
    x
  } else {
    x
  }
}

#' @rdname serialize_tensor
#' @param ... Unused.
#' @export
print.gradops_serialized <- function(x, ...) {
  what <- if (x$backend == "text") {
    "text"
  } else {
    sprintf("%s %s [%s]", x$backend, x$dtype, toString(x$shape))
  }
  notes <- c(
    what, if (x$kind != "tensor") x$kind, if (x$requires_grad) "requires a gradient",
    if (!is.null(x$role)) paste("role:", x$role)
  )
  writeLines(sprintf("<serialized %s>", toString(notes)))
  invisible(x)
}

# Raise an error for the handle of a tensor that no longer exists, for example after readRDS().
check_alive <- function(x, call) {
  if (reticulate::py_is_null_xptr(x)) stale(call)
}

stale <- function(call) {
  abort(
    c(
      "The tensor is gone: it was made in another R session.",
      i = "`saveRDS(serialize_tensor(x), file)` and `unserialize_tensor(readRDS(file))` keep tensors."
    ),
    class = c("gradops_error_stale", "gradops_error"), call = call
  )
}
