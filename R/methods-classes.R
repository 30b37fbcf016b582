# Which tensors belong to gradops. `x * v`, `x[i]`, `length(x)` have R's meaning for tensors that gradops made or
# received. Other handles, even of the same Python object, belong to reticulate, tensorflow or keras3 and keep their
# methods. So gradops' methods are methods of a class of its own, in front of the classes that reticulate derives from
# Python's. The class belongs to R's handle of the object, and only new handles get it: results of gradops' functions,
# arguments of functions that gradops calls, and results of fields and methods of its tensors.

# Classes with gradops' methods; the last two are gradops' own Python types.
tensor_classes <- c("gradops_tensor", "gradops.autodiff.variable.Variable", "gradops.jit.array.Traced")

# One class for each kind of tensor that a library makes.
library_classes <- c(
  "numpy.ndarray", "numpy.generic", "torch.Tensor",
  "tensorflow.python.types.core.Tensor", "tensorflow.python.framework.tensor.Tensor",
  "tensorflow.python.framework.ops.Tensor",
  "jaxlib._jax.ArrayImpl", "jax.jaxlib._jax.Array", "jaxlib.xla_extension.ArrayImpl", "jax._src.core.Tracer"
)

# Classes of `ctx`, the context that the two R functions of a `Function` get.
context_classes <- c("gradops.autodiff.function.Context", "torch.autograd.function.FunctionCtx")

# TRUE for a tensor whose operators and functions have R's meaning.
is_tensor <- function(x) {
  inherits(x, tensor_classes)
}

# TRUE for a tensor of gradops or of any other package.
is_any_tensor <- function(x) {
  inherits(x, c(tensor_classes, library_classes))
}

# Put gradops' class on a handle that Python has just returned.
own <- function(x) {
  front <- front_classes(class(x))
  if (!is.null(front)) class(x) <- front
  x
}

# The classes of an object with gradops' class in front; NULL if the object is not a tensor.
front_classes <- function(classes) {
  known <- fronts[[classes[1L]]]
  if (is.null(known) || !identical(known$theirs, classes)) {
    known <- fronts[[classes[1L]]] <- list(theirs = classes, ours = found_in_front(classes))
  }
  known$ours
}

fronts <- new.env(parent = emptyenv())

found_in_front <- function(classes) {
  if (classes[1L] == "gradops_tensor" || classes[1L] == "gradops_context") {
    NULL
  } else if (any(classes %in% c(tensor_classes, library_classes))) {
    base::c("gradops_tensor", classes)
  } else if (any(classes %in% context_classes)) {
    base::c("gradops_context", classes)
  }
}

# Another package's tensor as gradops' tensor, by a new handle, as theirs keeps its class. Any other object unchanged.
adopted <- function(x) {
  if (is.environment(x) && !is_tensor(x) && is_any_tensor(x)) own(another_handle(x)) else x
}

another_handle <- function(x) {
  make_lazy(list(x)) # a lazy handle would change while it is copied
  handle <- list2env(as.list.environment(x, all.names = TRUE), parent = emptyenv())
  attributes(handle) <- attributes(x)
  handle
}

# Make a method of a tensor return gradops' tensors.
owning <- function(method) {
  own_result <- function(...) as_r_scalar(method(...))
  attributes(own_result) <- attributes(method)
  own_result
}
