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
#'   `value_and_grad_fn()`: a function that returns a list of `value` and `gradient` (and `aux`). `gradient()`: the gradient.
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
