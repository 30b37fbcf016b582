#' Solutions of equations and minima, with derivatives
#'
#' `fixed_point()` returns the `x` with `f(x, ...) = x`, by iteration; `root()` the `x` with `f(x, ...) = 0`, by
#' Newton's method; `argmin()` the `x` near `x0` that minimises `f(x, ...)`, by Newton's method with a line search. In a
#' function that is differentiated, their derivatives come from the implicit function theorem, to third order, and do
#' not depend on the iterations: with respect to `...`, and to the variables that `f` closes over.
#' @param f A function of `x` and `...` that returns a value of `x`'s shape; for `argmin()`, one number.
#' @param x0 The starting point: R numbers, a tensor or a variable, or a named list of them.
#' @param ... Parameters of `f`: R numbers, tensors or variables.
#' @param tol Stop when no element changes by more than this, relative to `1 + abs(x)`. At least four units of rounding
#'   of the dtype.
#' @param max_iterations The maximum number of steps.
#' @returns The solution, in the form of `x0`; a tensor where `x0` or a parameter is one.
#' @section Gradient:
#' With respect to `...` and the variables that `f` closes over; none with respect to `x0`.
#' @section Errors:
#' - `gradops_error_gradient`: no convergence within `max_iterations`.
#' - `gradops_error_shape`: an `f` that changes the shape.
#' @references Christianson (1994), Reverse accumulation and attractive fixed points.
#' @seealso [tensor_solvers] for [uniroot()] and [optim()], [op_while_loop()].
#' @examplesIf gradops_available()
#' root(function(x, a) x^2 - a, 1, 2)
#' grad(function(a) root(function(x, a) x^2 - a, 1, a), 2)
#'
#' # the yield of a bond, and how it moves with the price
#' excess <- function(r, price) sum(5 * exp(-r * 1:5)) + 100 * exp(-5 * r) - price
#' grad(function(price) root(excess, 0.05, price), 98)
#'
#' # ridge regression, and how its coefficients move with the penalty
#' x <- cbind(1, mtcars$wt)
#' loss <- function(b, penalty) sum((mtcars$mpg - x %*% b)^2) + penalty * sum(b^2)
#' ridge <- function(penalty) argmin(loss, c(0, 0), penalty)
#' ridge(1)
#' jacobian(ridge, 1)
#' @export
fixed_point <- function(f, x0, ..., tol = 1e-12, max_iterations = 1000) {
  solution("functional.fixed_point", f, x0, list(...), tol, max_iterations)
}

#' @rdname fixed_point
#' @export
root <- function(f, x0, ..., tol = 1e-12, max_iterations = 100) {
  solution("functional.root", f, x0, list(...), tol, max_iterations)
}

#' @rdname fixed_point
#' @export
argmin <- function(f, x0, ..., tol = 1e-8, max_iterations = 200) {
  solution("functional.argmin", f, x0, list(...), tol, max_iterations)
}

solution <- function(.name, f, x0, parameters, tol, max_iterations, call = parent.frame()) {
  check_function(f, "f", call)
  write_closed_over(f)
  here <- new.env()
  here$names <- c(list(names_within(x0)), lapply(parameters, names_within))
  named <- function(x, ...) do.call(tensor_aware(f), c(list(x), stats::setNames(list(...), names(parameters))))
  result <- several(rlang::inject(call_core(
    .name, callback(differentiated(named, here)), operand(as_doubles(x0)),
    !!!lapply(as_doubles(unname(parameters)), operand),
    tol = tol, max_iterations = as.integer(max_iterations), .call = call
  )))
  if (gives_numbers(c(list(x0), parameters))) like(plain_numbers(result), x0) else result
}

# Turn logged numbers in the environments of a function into tensors. Solvers run without recording; if the log were
# written there, the tensors would be constants.
write_closed_over <- function(f) {
  home <- environment(f)
  while (!is.null(home) && !isNamespace(home) && !identical(home, globalenv()) && !identical(home, emptyenv())) {
    for (name in names(home)) {
      value <- if (!bindingIsActive(name, home)) attempt(get(name, home))
      if (is.environment(value) && inherits(value, "gradops_tensor")) lazy_whole(value)
    }
    home <- parent.env(home)
  }
}
