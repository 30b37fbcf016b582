#' Define an op
#'
#' `extend_op()` makes an op from R functions. It works like gradops' own ops: it takes tensors of every backend,
#' variables and R numbers; [jit()] records it; batches, forward mode and sparsity follow from its declared facts; its
#' errors name it and its arguments. `check_op()` tests the declarations against the op itself.
#'
#' A function that only needs its own gradient is simpler with [op_custom_gradient()]. An op belongs to the session; a
#' new op replaces one of the same name.
#' @param name The op's name in messages and programs; in a package it begins with the package's name.
#' @param f The op, as a function of tensors. Its value is composed of other ops, and is used on backends without a
#'   kernel; write `function(x) NULL` if every backend has a kernel. Arguments without a default are tensors, the others
#'   are settings.
#' @param derivative The derivative rules, a list named by arguments. A rule is a function of `g`, the gradient of the
#'   op's result, and of any of these by name: the op's arguments, the result `y`, the argument's `shape`. Rules consist
#'   of ops. An argument without a rule has no gradient. With `NULL` the derivative is that of `f`, or the library's own
#'   for a kernel.
#' @param kernels A list, named by backends, of functions that compute the op there: R functions of tensors, which may
#'   use base R on `as.array(x)`, or Python functions of the library's tensors. With `derivative` a kernel may do
#'   anything, as the library need not differentiate it.
#' @param ... Must be empty: the following arguments are passed by name.
#' @param elementwise `TRUE` if an element of the result depends only on the elements at the same position.
#' @param moves `TRUE` if the elements of the result are elements of the first argument.
#' @param reduces `TRUE` if each element of the result combines elements of the first argument along `axis`, its second.
#' @param linear Names of the arguments that the op is jointly linear in.
#' @param multilinear Names of the arguments that the op is separately linear in.
#' @param domain The smallest and the largest number for which an elementwise op of one tensor has a value; outside it
#'   is `NaN`.
#' @returns `extend_op()`: a function with the arguments of `f`. `check_op()`: its `op`, invisibly.
#' @section Gradient:
#' The rules are the gradient on every backend; derivatives of any order differentiate them.
#' @section Errors:
#' - `gradops_error_type`: `f`, a rule or a kernel is not a function; a rule is for an argument that is not a tensor, or
#'   has an argument that the op does not have.
#' - `gradops_error_argument`: an invalid name, or the name of an op of gradops; a fact that does not hold
#'   (`check_op()`).
#' - `gradops_error_backend`: a backend's values differ from NumPy's (`check_op()`).
#' - `gradops_error_gradient`: gradients differ between backends, or from finite differences (`check_op()`).
#' - `gradops_error_callback`: an error in one of the functions, whose condition is the parent.
#' @source `autograd.extend` and `jax.extend.core.Primitive`.
#' @seealso [op_custom_gradient()], [autodiff_function()], [r_function()], [gradcheck()].
#' @examplesIf gradops_available()
#' soft_tanh <- extend_op(
#'   "soft_tanh", function(x) x / (1 + abs(x)),
#'   derivative = list(x = function(g, x) g / (1 + abs(x))^2), elementwise = TRUE
#' )
#' soft_tanh(c(-1, 3))
#' gradient(function(x) sum(soft_tanh(x)), c(-1, 3))
#' check_op(soft_tanh, c(-1, 0.5, 3))
#'
#' # a function of base R, which has no derivative for it
#' bessel <- extend_op(
#'   "bessel", function(x) NULL,
#'   kernels = list(numpy = function(x) besselI(as.array(x), 0)),
#'   derivative = list(x = function(g, x) g * besselI(x, 1)), elementwise = TRUE, domain = c(0, Inf)
#' )
#' gradient(bessel, 2)
#' besselI(2, 1)
#' @export
extend_op <- function(name, f, derivative = NULL, kernels = NULL, ..., elementwise = FALSE, moves = FALSE,
                      reduces = FALSE, linear = NULL, multilinear = NULL, domain = NULL) {
  if (...length() > 0L) no_argument(...)
  check_words(name)
  check_function(f)
  check_functions(derivative)
  check_functions(kernels)
  facts <- list(elementwise = flag(elementwise), moves = flag(moves), reduces = flag(reduces))
  facts$linear <- as.list(linear)
  facts$multilinear <- as.list(multilinear)
  if (!is.null(domain)) facts$domain <- as.list(domain)
  qualified <- op_name(name, parent.frame())
  here <- environment()
  form <- remade_in_session(function() {
    call_core(
      "interop.r.extended_op", qualified, callback(f), !is.null(body(f)), lapply(kernels, callback),
      lapply(derivative, callback), facts,
      .call = here
    )
  })
  called <- function(...) several(answer(py_call(form(), ...), users_call()))
  arguments <- lapply(names(formals(f)), function(argument) rlang::expr(operand(!!rlang::sym(argument), !!argument)))
  op <- rlang::new_function(formals(f), rlang::expr(called(!!!arguments)))
  structure(op, op = qualified, class = c("gradops_op", "function"))
}

#' @export
print.gradops_op <- function(x, ...) {
  cli::cli_text("{.cls op} {.fn {attr(x, 'op')}} of {.arg {names(formals(x))}}")
  invisible(x)
}

#' @param op A function that `extend_op()` returned.
#' @param natural Whether the rules are the derivatives of the values. Use `FALSE` for rules that differ on purpose;
#'   then only the agreement of the backends is checked.
#' @param tolerance The largest relative and absolute difference of values and gradients between backends.
#' @rdname extend_op
#' @export
check_op <- function(op, ..., natural = TRUE, tolerance = 1e-6) {
  if (is.null(attr(op, "op"))) {
    abort(
      c(
        sprintf("`op` must be a function that extend_op() made; got %s.", friendly(op)),
        i = "Check the derivatives of any function with gradcheck()."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = "op"
    )
  }
  check_number(tolerance)
  given <- as.list(match.call(op, rlang::call2("op", ...)))[-1]
  arguments <- utils::modifyList(as.list(formals(op)), given, keep.null = TRUE)
  suppressWarnings(call_core( # R's kernels may warn at the edges of their domain
    "interop.r.check_extended_op", attr(op, "op"), lapply(unname(arguments), operand, "..."), flag(natural), tolerance
  ))
  invisible(op)
}

# The full name of an op, which starts with the package that defines it, or "r" in a script.
op_name <- function(name, env) {
  owner <- topenv(env)
  package <- if (isNamespace(owner)) getNamespaceName(owner) else "r"
  paste(gsub(".", "_", c(package, name), fixed = TRUE), collapse = ".")
}

check_functions <- function(functions, name = rlang::caller_arg(functions), call = caller_env()) {
  wrong <- Filter(function(f) !is.function(f), functions)
  named <- length(functions) == 0 || all(nzchar(rlang::names2(functions)))
  if (!is.null(functions) && (!is.list(functions) || length(wrong) > 0 || !named)) {
    came <- if (!is.list(functions) || length(wrong) == 0) functions else wrong[[1]]
    abort(
      sprintf("`%s` must be a named list of functions; got %s.", name, friendly(came)),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
}
