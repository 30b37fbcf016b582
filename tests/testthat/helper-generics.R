# Checks that R functions give base R's values on tensors, variables and traced tensors, and derivatives that match base
# R's values. `functions` are called with all of `...`, which are R vectors.
expect_as_base <- function(functions, ..., traced = TRUE, gradient = TRUE, tolerance = 1e-7) {
  arguments <- list(...)
  if (!is_long() && config_backend() != "numpy") functions <- functions[seq(1, length(functions), 3)]
  call_all <- function(...) lapply(functions, function(f) f(...))
  expected <- lapply(call_all(...), bare)
  for (make in list(op_convert_to_tensor, variable)) {
    found <- lapply(do.call(call_all, lapply(arguments, make)), bare)
    expect_equal(found, expected, tolerance = tolerance)
  }
  if (traced) {
    expect_equal(lapply(do.call(jit(call_all), arguments), bare), expected, tolerance = tolerance)
  }
  if (gradient) {
    weighted <- function(value) sum(value * cos(seq_along(value)))
    for (i in seq_along(arguments)) {
      total <- function(x) {
        arguments[[i]] <- x
        Reduce(`+`, lapply(do.call(call_all, arguments), weighted))
      }
      # Uncompiled, JAX compiles each operation for each shape, which takes long.
      derivative <- if (traced && config_backend() == "jax") jit(grad_fn(total)) else grad_fn(total)
      expect_equal(
        as.vector(derivative(arguments[[i]])), numeric_gradient(total, arguments[[i]]),
        tolerance = 1e-5
      )
    }
  }
}

# Returns values without labels; a vector has no dim.
bare <- function(x) {
  if (is_tensor_or_list(x)) {
    if (is.list(x)) {
      return(lapply(unclass(x), bare))
    }
    x <- as.array(x)
  }
  dim <- dim(x)
  x <- as.vector(x)
  if (is.numeric(x)) x <- as.double(x)
  if (length(dim) > 1) base::array(x, dim) else x
}

is_tensor_or_list <- function(x) {
  is.list(x) || op_is_tensor(x)
}
