#' Derivatives of R functions
#'
#' `grad_fn(f)` is the gradient of `f`, and `value_and_grad_fn(f)` gives its value and its gradient, as R functions of
#' R numbers: ready for [stats::optim()] and [stats::nlminb()]. `gradient(f, x)` is `grad_fn(f)(x)`.
#'
#' `f` is ordinary R code on tensors of the default backend: R's arithmetic and mathematics, `sum()`, `[`, `%*%` and the
#' ops. It returns one number. R numbers come back as R numbers, with the dim and names of the input; for tensors and
#' variables the gradients are tensors.
#' @param f A function that returns one number.
#' @param argnums The arguments to differentiate by, from 1; for several, the gradient is a list.
#' @param has_aux Whether `f` returns a list of its value and something else, which is passed through.
#' @param f_or_y A function, or a tensor computed from `x`.
#' @param x R numbers, a tensor, a variable, or a list of these.
#' @returns `grad_fn()`: a function that returns the gradient (with `has_aux`, a list of it and `aux`).
#'   `value_and_grad_fn()`: a function that returns a list of `value` and `gradient` (and `aux`). `gradient()`: the
#'   gradient.
#' @section Errors:
#' - `gradops_error_gradient`: `f` returns no number, or more than one.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @examplesIf gradops_available()
#' banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2
#' grad_fn(banana)(c(-1.2, 1))
#' optim(c(-1.2, 1), \(x) as.numeric(banana(x)), grad_fn(banana), method = "BFGS")$par
#' @export
grad_fn <- function(f, argnums = 1L, has_aux = FALSE) {
  check_function(f)
  argnums <- as.integer(argnums)
  derivative <- call_core("grad", callback(f), python_argnums(argnums), has_aux)
  function(...) {
    result <- several(call_python(derivative, differentiable(list(...), argnums)))
    if (has_aux) {
      list(gradient = restore(result[[1]], list(...), argnums), aux = result[[2]])
    } else {
      restore(result, list(...), argnums)
    }
  }
}

#' @rdname grad_fn
#' @export
value_and_grad_fn <- function(f, argnums = 1L, has_aux = FALSE) {
  check_function(f)
  argnums <- as.integer(argnums)
  derivative <- call_core("value_and_grad", callback(f), python_argnums(argnums), has_aux)
  function(...) {
    result <- several(call_python(derivative, differentiable(list(...), argnums)))
    arguments <- list(...)
    value <- if (has_aux) result[[1]][[1]] else result[[1]]
    c(
      list(value = if (is_numeric(arguments[argnums])) as.numeric(value) else value),
      list(gradient = restore(result[[2]], arguments, argnums)),
      if (has_aux) list(aux = result[[1]][[2]])
    )
  }
}

#' @rdname grad_fn
#' @export
gradient <- function(f_or_y, x) {
  if (is.function(f_or_y) && !inherits(f_or_y, "python.builtin.object")) {
    grad_fn(f_or_y)(x)
  } else {
    several(call_core("gradient", operand(f_or_y), operand(x)))
  }
}

#' Jacobians, Hessians and their products
#'
#' `jacobian()` and `hessian()` are all first derivatives of a function and all second derivatives of a scalar one, by
#' automatic differentiation. `vjp()` is the value of `f` and `v` times its Jacobian, `jvp()` the value and the Jacobian
#' times `v`, `vhp()` and `hvp()` the same with the Hessian, at the cost of one pass or two.
#' @param f A function of R code that works on tensors; of several arguments if `x` is a list.
#' @param x R numbers, a tensor or a variable; or a list of these, one for each argument of `f`.
#' @param v A vector of the form of `f`'s value (`vjp()`) or of `x` (the others).
#' @param ... More arguments of `f`, passed on as they are.
#' @param strict Whether it is an error that `f` does not depend on an input, instead of zeros.
#' @param strategy `"reverse-mode"`, a pass for each element of the value, or `"forward-mode"`, one for each of `x`.
#' @returns For R numbers: `jacobian()` gives a matrix with a row for each element of the value and a column for each
#'   of `x`, `hessian()` a square matrix, both with the names of `x`; the products a list of `value` and `product`. For
#'   tensors and lists: tensors (lists of them), of the shape of the value followed by that of `x`.
#' @section Errors:
#' - `gradops_error_gradient`: `hessian()` of a function that is not scalar.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @examplesIf gradops_available()
#' jacobian(function(x) x^2 * c(1, 10), c(a = 1, b = 2))
#' hessian(function(x) sum(x^3), c(1, 2))
#' hvp(function(x) sum(x^3), c(1, 2), v = c(1, 0))$product
#' @export
jacobian <- function(f, x, ..., strict = FALSE, strategy = "reverse-mode") {
  result <- at_point("functional.jacobian", f, x, list(FALSE, strict, FALSE, strategy), ...)
  if (is.numeric(x)) flat_matrix(result, x) else result
}

#' @rdname jacobian
#' @export
hessian <- function(f, x, ..., strict = FALSE, strategy = "reverse-mode") {
  result <- at_point("functional.hessian", f, x, list(FALSE, strict, FALSE, strategy), ...)
  if (!is.numeric(x)) {
    return(result)
  }
  result <- flat_matrix(result, x)
  rownames(result) <- colnames(result)
  result
}

#' @rdname jacobian
#' @export
vjp <- function(f, x, v = NULL, ..., strict = FALSE) {
  product_at("functional.vjp", f, x, list(operand(v), FALSE, strict), x, ...)
}

#' @rdname jacobian
#' @export
jvp <- function(f, x, v = NULL, ..., strict = FALSE) {
  product_at("functional.jvp", f, x, list(operand(v), FALSE, strict), NULL, ...)
}

#' @rdname jacobian
#' @export
hvp <- function(f, x, v = NULL, ..., strict = FALSE) {
  product_at("functional.hvp", f, x, list(operand(v), FALSE, strict), x, ...)
}

#' @rdname jacobian
#' @export
vhp <- function(f, x, v = NULL, ..., strict = FALSE) {
  product_at("functional.vhp", f, x, list(operand(v), FALSE, strict), x, ...)
}

# Call one of gradops.functional; a list of inputs is a tuple there.
at_point <- function(.name, f, x, arguments, ...) {
  call <- parent.frame()
  check_function(f, "f", call)
  extra <- list(...)
  function_of <- if (length(extra) > 0) function(...) do.call(f, c(list(...), extra)) else f
  inputs <- if (is.list(x)) do.call(tuple, lapply(as_doubles(unname(x)), operand)) else operand(as_doubles(x))
  several(rlang::inject(call_core(.name, callback(function_of), inputs, !!!arguments, .call = call)))
}

product_at <- function(.name, f, x, arguments, input, ...) {
  result <- at_point(.name, f, x, arguments, ...)
  names(result) <- c("value", "product")
  if (is.numeric(x)) {
    result$value <- as.array(result$value)
    result$product <- if (is.null(input)) as.array(result$product) else like(result$product, input)
  }
  lapply(result, function(part) if (is.numeric(part) && length(dim(part)) == 1) as.vector(part) else part)
}

# A derivative of R numbers as a matrix: rows for the value's elements, columns for the input's.
flat_matrix <- function(result, x) {
  value <- as.vector(result)
  matrix(value, ncol = length(x), dimnames = if (!is.null(names(x))) list(NULL, names(x)))
}

#' Compile a function
#'
#' `f` is traced once for each signature of shapes, dtypes and static arguments, and then run without R: by `jax.jit`,
#' `tf.function`, a graph of PyTorch's or, on NumPy, a recorded program. `jit(value_and_grad_fn(f))` holds the gradient
#' too.
#' @param f A function of tensors, made of gradops ops and of R's arithmetic and mathematics on tensors.
#' @param static_argnums Positions (from 1) of arguments that are no tensors, by whose value `f` is traced anew.
#' @returns A function of the same arguments; of R numbers alone it returns R numbers.
#' @section Errors:
#' - `gradops_error_jit`: `f` looks at values while it is traced.
#' @examplesIf gradops_available()
#' f <- jit(function(x) sum(exp(x)^2))
#' f(c(1, 2))
#' @export
jit <- function(f, static_argnums = integer()) {
  check_function(f)
  compiled <- call_core("jit", callback(f), as.list(as.integer(static_argnums) - 1L))
  function(...) {
    arguments <- list(...)
    result <- several(call_python(compiled, arguments))
    if (is_numeric(arguments)) numeric_values(result) else result
  }
}

numeric_values <- function(x) {
  if (is.list(x)) {
    lapply(x, numeric_values)
  } else if (is_tensor(x)) {
    value <- values_of(x)
    if (length(dim(value)) == 1) as.vector(value) else value
  } else {
    x
  }
}

#' Check gradients against finite differences
#'
#' @param f A function of tensors.
#' @param inputs R numbers, a tensor or a variable, or a list of these, one for each argument of `f`.
#' @param eps,atol,rtol The step and the tolerances; `NULL`: by the inputs' dtype.
#' @param raise_exception Whether a difference is an error, or `FALSE` is returned.
#' @param fast_mode Whether to check one random direction instead of each element.
#' @returns `TRUE`; or `FALSE`.
#' @section Errors:
#' - `gradops_error_gradient`: a difference, with both values.
#' @examplesIf gradops_available()
#' gradcheck(function(x) exp(x) * x, c(0.5, 1))
#' @export
gradcheck <- function(f, inputs, eps = NULL, atol = NULL, rtol = NULL, raise_exception = TRUE, fast_mode = FALSE) {
  check_function(f)
  inputs <- lapply(as_doubles(if (is.list(inputs)) unname(inputs) else list(inputs)), operand)
  plain(call_core(
    "autodiff.gradcheck", callback(f), do.call(tuple, inputs),
    eps = eps, atol = atol, rtol = rtol, raise_exception = raise_exception, fast_mode = fast_mode
  ))
}

# Call a Python function that may raise, with R's arguments.
call_python <- function(f, arguments, how = "interop.r.invoke", call = parent.frame()) {
  named <- nzchar(rlang::names2(arguments))
  call_core(
    how, f, lapply(unname(arguments[!named]), operand), lapply(arguments[named], operand),
    .call = call
  )
}

# Python counts arguments from 0; one alone is a number.
python_argnums <- function(argnums) {
  if (length(argnums) == 1) argnums - 1L else as.list(argnums - 1L)
}

# R's whole numbers are numbers too where they are differentiated by.
differentiable <- function(arguments, argnums) {
  argnums <- intersect(argnums, seq_along(arguments))
  arguments[argnums] <- lapply(arguments[argnums], as_doubles)
  arguments
}

as_doubles <- function(x) {
  if (is.list(x)) {
    x[] <- lapply(x, as_doubles)
  } else if (is.integer(x) && !is.factor(x)) {
    storage.mode(x) <- "double"
  }
  x
}

# A gradient in the form of the arguments it is of.
restore <- function(gradient, arguments, argnums) {
  if (length(argnums) == 1) {
    like(gradient, arguments[[argnums]])
  } else {
    Map(like, gradient, arguments[argnums])
  }
}

like <- function(gradient, input) {
  if (is.list(input)) {
    return(Map(like, gradient[names(input) %||% seq_along(input)], input))
  }
  if (!is.numeric(input) || is.null(gradient)) {
    return(gradient)
  }
  value <- as.vector(gradient)
  attributes(value) <- attributes(input)[c("dim", "dimnames", "names")]
  value
}

is_numeric <- function(x) {
  if (is.list(x)) all(vapply(x, is_numeric, NA)) else is.numeric(x)
}
