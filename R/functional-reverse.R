#' Derivatives of R functions
#'
#' `grad(func, x)` returns the gradient of `func` at `x`, exact to rounding, with the arguments of `numDeriv::grad()`;
#' [jacobian()] and [hessian()] follow numDeriv as well. `gradient(f, x)` is the same, and also returns gradients of
#' recorded tensors.
#'
#' `grad(f)`, without `x`, and `grad_fn(f)` return the gradient of `f` as an R function of R numbers.
#' `value_and_grad(f)` returns a function for the value and the gradient, and `hessian_fn(f)`, or `hessian(f)`, one for
#' the Hessian, as [stats::optim()], [stats::nlminb()], [stats::optimHess()] and `maxLik::maxLik()` need them. With
#' [objective()] they share one evaluation.
#'
#' `f` is ordinary R code on tensors of the default backend: R's arithmetic and mathematics, `sum()`, `[`, `%*%` and the
#' ops. For R numbers the result is R numbers, with the dim and names of the input (integers count as numbers). For
#' tensors and variables, and in a function that is itself being differentiated or compiled, derivatives are tensors.
#'
#' For a vectorised function, whose value has an element for each element of `x`, `grad()` returns the derivative of
#' each, as numDeriv does: the Jacobian times a vector of ones.
#'
#' `value_and_grad_fn()` is the old name of `value_and_grad()`; it warns.
#' @param f,func A function that returns one number (for `grad()`, or as many as `x` holds).
#' @param argnums The arguments to differentiate with respect to: positions from 1, or names. For several, the gradient
#'   is a list.
#' @param has_aux If `TRUE`, `f` returns a list of its value and something else, which is passed through.
#' @param f_or_y A function, or a tensor computed from `x`.
#' @param x R numbers, a tensor, a variable, or a list of these, which is passed to the function as one argument.
#'   Without it `grad(func)` is a function.
#' @param ... More arguments of the function, passed on as they are.
#' @param method,side,method.args Settings of numDeriv's approximation: checked, then ignored, as the derivative is
#'   exact. At a kink the derivative is the op's own, whatever `side` says.
#' @returns `grad()`, `gradient()`: the gradient, in the form of `x`. `grad_fn()`: a function that returns it (with
#'   `has_aux`, a list of it and `aux`). `value_and_grad()`: a function that returns a list of `value` and `gradient`
#'   (and `aux`). `hessian_fn()`: a function that returns what [hessian()] does. These functions take `f`'s arguments.
#' @section Errors:
#' - `gradops_error_gradient`: `f` returns no number, or more than one.
#' - `gradops_error_argument`: an unknown `method` or `side`.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @section Ordinary R code:
#' While `f` is differentiated (or compiled by [jit()]), gradops runs a copy of it in which base R's functions take
#' tensors. The functions that it calls, yours or those of packages, are copied as well; `f` itself and the search path
#' do not change.
#' - `h <- numeric(n); h[i] <- v`, `M[i, ] <- v`, `x[["a"]] <- v`: R's vectors and matrices can hold tensors, and grow.
#' - `as.numeric()`, `as.vector()`, `as.matrix()`, `as.array()`, `as.complex()` keep a tensor whose gradient would be
#'   lost. To take the values out, use `op_stop_gradient(x)` first, or [op_convert_to_array()].
#' - Comparisons give R's logicals if values are known, so `if`, `while`, `&&`, `||`, `stopifnot()`, `switch()`,
#'   `which()`, `%in%` work; `for (v in x)` visits the elements. In compiled code, where values are not known,
#'   comparisons are tensors, and a decision that needs them raises `gradops_error_jit`, which names it.
#' - `print()`, `cat()`, `format()`, `sprintf()`, `paste()` show the values.
#'
#' S4 methods and compiled code get the tensor itself; if they cannot take it, the error says so. `vignette("r-code")`
#' has examples, and a section for users of RTMB.
#' @section Repeated calls:
#' On the NumPy backend a function that is differentiated a second time (with a loop, the first time) is compiled, as by
#' [jit()], and its program is kept for the next calls. `grad_fn(f)`, `value_and_grad(f)`, `hessian_fn(f)` and
#' `objective(f)` keep it as long as they live; `gradient(f, x)`, `grad(f, x)`, `hessian(f, x)` and `jacobian(f, x)`
#' keep it for the last 20 functions. `x` may be a vector, an array or a list of them (a named list for Hessians and
#' Jacobians). Further arguments (`gradient(f, x, data)`) are part of the program: if they change, the function runs
#' uncompiled once. The results are the same to rounding. The function is compiled again if an outer variable that it
#' reads has changed or it takes another branch. It always runs uncompiled if its code, or that of a function that it
#' calls, may have effects: print, warn, assign outside, draw random numbers, read the time, call Python. `explain(f)`,
#' `explain(grad_fn(f))` and `explain(objective(f))` tell the reason.
#' @section Lost gradients:
#' If `f` returns plain numbers, or makes a data frame of a tensor, the gradient ends there, and each evaluation of `f`
#' gives the warning `gradops_warning_gradient` once. Functions that only look at values do not warn: `print()`,
#' `summary()`, `order()`, `as.logical()`, `as.integer()`, `as.character()`.
#' @references Gilbert and Varadhan, numDeriv: Accurate Numerical Derivatives, for the arguments.
#' @seealso [objective()], which evaluates once for value and gradient; [jacobian()] and [hessian()]; [backward()];
#'   [jit()].
#' @examplesIf gradops_available()
#' banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2
#' grad(banana, c(-1.2, 1))
#' grad(sin, 1:3)
#' optim(c(-1.2, 1), banana, grad_fn(banana), method = "BFGS")$par
#' nlminb(c(-1.2, 1), banana, grad_fn(banana), hessian_fn(banana))$par
#'
#' # parameters in a list, and the value with the gradient: a logistic regression
#' loss <- function(p) -sum(dbinom(mtcars$am, 1, plogis(p$a + p$b * mtcars$wt), log = TRUE))
#' value_and_grad(loss)(list(a = 0, b = 0))
#'
#' # the gradient of a tensor that was computed before
#' x <- parameter(c(1, 2))
#' gradient(sum(x^3), x)
#' @export
grad <- function(func, x, ..., method = "Richardson", side = NULL, method.args = list()) {
  if (missing(x)) {
    check_function(func)
    return(grad_fn(with_extra(func, list(...))))
  }
  check_function_at(func, x)
  check_numderiv(method, side, method.args, length(x))
  check_differentiable(x, "x")
  f <- with_extra(func, numderiv_extra(...))
  if (is.list(x)) {
    return(grad_fn(f)(x))
  }
  for_r <- gives_numbers(x)
  known <- if (for_r) by_program("gradient", func, x, numderiv_extra(...))
  if (!is.null(known)) {
    return(like(known$derivative, x))
  }
  found <- call_core("interop.r.gradient", vector_callback(f, x), operand(as_doubles(x)), for_r)
  like(if (for_r) py_to_r(found) else found, x)
}

#' @rdname grad
#' @export
gradient <- function(f_or_y, x, ...) {
  if (is_r_function(f_or_y) || missing(x) || is_r_function(x)) {
    check_function_at(f_or_y, x, "`grad_fn(f)` is the gradient as a function.")
    check_differentiable(x, "x")
    if (...length() == 0L) {
      return(derivatives_of(f_or_y)$both(x)$gradient)
    }
    known <- by_program("gradient", f_or_y, x, list(...))
    if (is.null(known)) grad_fn(with_extra(f_or_y, list(...)))(x) else like(known$derivative, x)
  } else {
    if (is.language(f_or_y)) {
      code <- if (is.expression(f_or_y)) f_or_y[[1L]] else f_or_y
      if (inherits(code, "formula")) code <- code[[length(code)]]
      abort(
        c(
          sprintf("`f_or_y` must be a function; got %s.", friendly(f_or_y)),
          i = sprintf("Write `gradient(function(%s) %s, x)`.", toString(all.vars(code)), deparse1(code))
        ),
        class = c("gradops_error_type", "gradops_error"), argument = "f_or_y"
      )
    }
    if (is.null(f_or_y) || is.atomic(f_or_y)) {
      abort(
        c(
          sprintf("`f_or_y` must be a function, or a tensor that was computed from `x`; got %s.", friendly(f_or_y)),
          i = "Make `x` a variable first: `x <- variable(x, requires_grad = TRUE)`; or use `gradient(f, x)`."
        ),
        class = c("gradops_error_gradient", "gradops_error"), argument = "f_or_y"
      )
    }
    several(call_core("gradient", operand(f_or_y), operand(x)))
  }
}

#' @rdname grad
#' @export
grad_fn <- function(f, argnums = 1L, has_aux = FALSE) {
  both <- value_and_grad(f, argnums, flag(has_aux))
  function(...) {
    result <- both(...)
    if (has_aux) result[c("gradient", "aux")] else result$gradient
  }
}

#' @rdname grad
#' @export
value_and_grad <- function(f, argnums = 1L, has_aux = FALSE) {
  check_function(f)
  argnums <- argument_positions(argnums, f)
  flag(has_aux)
  value_and_grad_by(f, if (!has_aux && identical(argnums, 1L)) repeated_of_lists(f), argnums, has_aux)
}

# `value_and_grad()`, by the programs of `again` where it has them.
value_and_grad_by <- function(f, again, argnums = 1L, has_aux = FALSE) {
  positions <- if (length(argnums) == 1) argnums - 1L else as.list(argnums - 1L)
  here <- new.env()
  derivative <- remade_in_session(function() {
    call_core("value_and_grad", callback(differentiated(f, here), owner = here), positions, has_aux)
  })
  function(...) {
    arguments <- positional(f, list(...), max(argnums))
    if (!is.null(again) && length(arguments) > 0L && !is.null(known <- again(arguments))) {
      return(list(value = as.vector(known$value), gradient = like(known$derivative, arguments[[1L]])))
    }
    chosen <- intersect(argnums, seq_along(arguments))
    inputs <- arguments[chosen]
    for (i in chosen) check_differentiable(arguments[[i]], argument_name(f, i), users_call())
    arguments[chosen] <- as_doubles(inputs)
    here$names <- lapply(arguments, names_within)
    if (gives_numbers(inputs)) {
      result <- py_to_r(call_python(derivative(), arguments, in_r = TRUE))
    } else {
      result <- several(call_python(derivative(), arguments))
    }
    value <- if (has_aux) result[[1]][[1]] else result[[1]]
    c(
      list(value = if (is_number(value)) as.vector(value) else value),
      list(gradient = if (length(argnums) == 1) like(result[[2]], inputs[[1]]) else Map(like, result[[2]], inputs)),
      if (has_aux) list(aux = result[[1]][[2]])
    )
  }
}

#' @rdname grad
#' @export
value_and_grad_fn <- function(f, argnums = 1L, has_aux = FALSE) {
  lifecycle::deprecate_warn("0.1.0", "value_and_grad_fn()", "value_and_grad()")
  value_and_grad(f, argnums, has_aux)
}

#' @rdname grad
#' @export
hessian_fn <- function(f, argnums = 1L) {
  check_function(f)
  argnums <- argument_positions(argnums, f)
  again <- if (identical(argnums, 1L)) repeated_matrix(f, "hessian")
  function(...) {
    arguments <- positional(f, list(...), argnums)
    known <- if (!is.null(again) && length(arguments) > 0L) again(arguments)
    if (!is.null(known)) {
      return(known)
    }
    at <- arguments[[argnums]]
    hessian_by(point(function(x) do.call(tensor_aware(f), replace(arguments, argnums, list(x))), at, list()))
  }
}
