# Whose a tensor is. R's meaning of `x * v`, `x[i]`, `length(x)` is that of tensors which gradops made or was handed;
# others, also of the same Python object, are of reticulate, tensorflow or keras3 and have their methods. So gradops'
# methods are those of a class of its own, which stands in front of the classes that reticulate makes of Python's. It
# belongs to R's handle of the object, and is put on new handles alone: the results of gradops' functions, the
# arguments of functions that gradops calls, and what fields and methods of its tensors give.

# Classes with gradops' methods; the last two are of Python types of its own.
tensor_classes <- c("gradops_tensor", "gradops.autodiff.variable.Variable", "gradops.jit.array.Traced")

# One class for each kind of tensor that a library makes.
library_classes <- c(
  "numpy.ndarray", "numpy.generic", "torch.Tensor",
  "tensorflow.python.types.core.Tensor", "tensorflow.python.framework.tensor.Tensor",
  "tensorflow.python.framework.ops.Tensor",
  "jaxlib._jax.ArrayImpl", "jax.jaxlib._jax.Array", "jaxlib.xla_extension.ArrayImpl", "jax._src.core.Tracer"
)

# The `ctx` of a `Function`'s two R functions.
context_classes <- c("gradops.autodiff.function.Context", "torch.autograd.function.FunctionCtx")

# TRUE for a tensor whose operators and functions have R's meaning.
is_tensor <- function(x) {
  inherits(x, tensor_classes)
}

# TRUE for a tensor of gradops or of any other package.
is_any_tensor <- function(x) {
  inherits(x, c(tensor_classes, library_classes))
}

# A handle that Python has just given, as gradops'.
own <- function(x) {
  front <- in_front(class(x))
  if (!is.null(front)) class(x) <- front
  x
}

# Classes of an object with gradops' own in front; NULL where it is none of gradops' concern.
in_front <- function(classes) {
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

# A tensor of others as gradops': by another handle, for theirs stays theirs. All else as it is.
adopted <- function(x) {
  if (is.environment(x) && !is_tensor(x) && is_any_tensor(x)) own(another_handle(x)) else x
}

another_handle <- function(x) {
  make_lazy(list(x)) # of itself it would change while it is read
  handle <- list2env(as.list.environment(x, all.names = TRUE), parent = emptyenv())
  attributes(handle) <- attributes(x)
  handle
}

# A method of a tensor's: what it returns is gradops' too.
owning <- function(method) {
  own_result <- function(...) own(method(...))
  attributes(own_result) <- attributes(method)
  own_result
}
