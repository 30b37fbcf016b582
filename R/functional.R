#' Derivatives of R functions
#'
#' `grad(func, x)` is the gradient of `func` at `x`, exact to rounding, and is called as `numDeriv::grad()` is; so are
#' [jacobian()] and [hessian()]. `gradient(f, x)` is the same, and also gives gradients of recorded tensors.
#'
#' `grad_fn(f)` is the gradient of `f` as an R function of R numbers, `value_and_grad_fn(f)` gives its value and its
#' gradient, and `hessian_fn(f)` its Hessian: what [stats::optim()], [stats::nlminb()], [stats::optimHess()] and
#' `maxLik::maxLik()` want. With [objective()] they share one evaluation.
#'
#' `f` is ordinary R code on tensors of the default backend: R's arithmetic and mathematics, `sum()`, `[`, `%*%` and the
#' ops. R numbers come back as R numbers, with the dim and names of the input (integers count as numbers); for tensors
#' and variables, and in a function that is itself being differentiated or compiled, derivatives are tensors.
#'
#' `grad()` of a function that is vectorised, with a value for each element of `x`, is the derivative of each, as in
#' numDeriv: the Jacobian times a vector of ones.
#' @param f,func A function that returns one number (for `grad()`, or as many as `x` holds).
#' @param argnums The arguments to differentiate by, from 1; for several, the gradient is a list.
#' @param has_aux Whether `f` returns a list of its value and something else, which is passed through.
#' @param f_or_y A function, or a tensor computed from `x`.
#' @param x R numbers, a tensor, a variable, or a list of these, which goes to the function as one argument.
#' @param ... More arguments of the function, passed on as they are.
#' @param method,side,method.args What numDeriv approximates by: checked, then ignored, as nothing is approximated. At a
#'   kink the derivative is the op's own, whatever `side` says.
#' @returns `grad()`, `gradient()`: the gradient, in the form of `x`. `grad_fn()`: a function that returns it (with
#'   `has_aux`, a list of it and `aux`). `value_and_grad_fn()`: a function that returns a list of `value` and `gradient`
#'   (and `aux`). `hessian_fn()`: a function that returns what [hessian()] does. These functions take `f`'s arguments.
#' @section Errors:
#' - `gradops_error_gradient`: `f` returns no number, or more than one.
#' - `gradops_error_argument`: an unknown `method` or `side`.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @section Lost gradients:
#' Where R takes plain numbers out of a tensor that is being differentiated (`as.numeric()`, `as.vector()`,
#' `as.matrix()`, `as.array()`, `as.complex()`, and R's functions that call these), the gradient ends there, and so it
#' does where `f` returns plain numbers. Once in each evaluation of `f` this is the warning `gradops_warning_gradient`.
#' `op_stop_gradient(x)` first says that it is meant. Looking is silent: `print()`, `summary()`, `order()`,
#' `as.logical()`, `as.integer()`, `as.character()`.
#' @references Gilbert and Varadhan, numDeriv: Accurate Numerical Derivatives, for the calling form.
#' @examplesIf gradops_available()
#' banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2
#' grad(banana, c(-1.2, 1))
#' grad(sin, 1:3)
#' optim(c(-1.2, 1), banana, grad_fn(banana), method = "BFGS")$par
#' nlminb(c(-1.2, 1), banana, grad_fn(banana), hessian_fn(banana))$par
#' @export
grad <- function(func, x, ..., method = "Richardson", side = NULL, method.args = list()) {
  check_function(func)
  check_numderiv(method, side, method.args, length(x))
  f <- with_extra(func, numderiv_extra(...))
  if (!gives_numbers(x) || is.list(x)) {
    return(grad_fn(f)(x))
  }
  like(plain(call_core("interop.r.gradient", vector_callback(f, x), operand(as_doubles(x)))), x)
}

#' @rdname grad
#' @export
gradient <- function(f_or_y, x, ...) {
  if (is.function(f_or_y) && !inherits(f_or_y, "python.builtin.object")) {
    grad_fn(with_extra(f_or_y, list(...)))(x)
  } else {
    several(call_core("gradient", operand(f_or_y), operand(x)))
  }
}

#' @rdname grad
#' @export
grad_fn <- function(f, argnums = 1L, has_aux = FALSE) {
  both <- value_and_grad_fn(f, argnums, has_aux)
  function(...) {
    result <- both(...)
    if (has_aux) result[c("gradient", "aux")] else result$gradient
  }
}

#' @rdname grad
#' @export
value_and_grad_fn <- function(f, argnums = 1L, has_aux = FALSE) {
  check_function(f)
  argnums <- as.integer(argnums)
  positions <- if (length(argnums) == 1) argnums - 1L else as.list(argnums - 1L)
  here <- new.env()
  derivative <- call_core("value_and_grad", callback(differentiated(f, here), owner = here), positions, has_aux)
  function(...) {
    arguments <- positional(f, list(...), max(argnums))
    chosen <- intersect(argnums, seq_along(arguments))
    inputs <- arguments[chosen]
    for (i in chosen) check_differentiable(arguments[[i]], argument_name(f, i), users_call())
    arguments[chosen] <- as_doubles(inputs)
    here$names <- lapply(arguments, names_within)
    if (gives_numbers(inputs)) {
      result <- plain(call_python(derivative, arguments, "interop.r.numbers"))
    } else {
      result <- several(call_python(derivative, arguments))
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
hessian_fn <- function(f, argnums = 1L) {
  check_function(f)
  argnums <- as.integer(argnums)
  function(...) {
    arguments <- positional(f, list(...), argnums)
    hessian(function(x) do.call(f, replace(arguments, argnums, list(x))), arguments[[argnums]])
  }
}

#' Jacobians, Hessians and their products
#'
#' `jacobian()` and `hessian()` are all first derivatives of a function and all second derivatives of a scalar one, by
#' automatic differentiation, and are called as numDeriv's are. `vjp()` is the value of `func` and `v` times its
#' Jacobian, `jvp()` the value and the Jacobian times `v`, `vhp()` and `hvp()` the same with the Hessian, at the cost
#' of one pass or two.
#'
#' A named list `x`, such as `list(W = , b = )`, is one argument of `func`, its parameters; an unnamed one holds the
#' arguments of `func`.
#' @param func A function of R code that works on tensors.
#' @param x R numbers, a tensor or a variable; or a list of these.
#' @param v A vector of the form of `func`'s value (`vjp()`) or of `x` (the others).
#' @param ... More arguments of `func`, passed on as they are.
#' @param strict Whether it is an error that `func` does not depend on an input, instead of zeros.
#' @param strategy `"reverse-mode"`, by the elements of the value, or `"forward-mode"`, by those of `x`; `NULL` takes
#'   the cheaper one (for `hessian()`, reverse mode).
#' @inheritParams grad
#' @returns For R numbers: `jacobian()` gives a matrix with a row for each element of the value (in R's order) and a
#'   column for each of `x`, with the names of both; `hessian()` a square matrix with the names of `x`; the products a
#'   list of `value` and `product`. For a list of R numbers, `jacobian()` gives a list of such matrices in the form of
#'   `x`, and `hessian()` a list of lists. For tensors: tensors, of the shape of the value followed by that of `x`.
#' @section Errors:
#' - `gradops_error_gradient`: `hessian()` of a function that is not scalar; with `strict`, no dependence.
#' - `gradops_error_argument`: an unknown `strategy`, `method` or `side`.
#' - `gradops_error_callback`: an error in `func`, whose condition is the parent.
#' @examplesIf gradops_available()
#' jacobian(function(x) x^2 * c(1, 10), c(a = 1, b = 2))
#' hessian(function(x) sum(x^3), c(1, 2))
#' hessian(function(p) sum(p$w^2) * p$b, list(w = c(1, 2), b = 3))$w$b
#' hvp(function(x) sum(x^3), c(1, 2), v = c(1, 0))$product
#' @export
jacobian <- function(func, x, ..., strict = FALSE, strategy = NULL, method = "Richardson", side = NULL,
                     method.args = list()) {
  check_numderiv(method, side, method.args, length(x))
  at <- point(func, x, numderiv_extra(...))
  result <- evaluate_at(at, "jacobian", list(FALSE, strict, FALSE, strategy))
  by_input <- function(parts) in_form(Map(flat_matrix, parts, at$leaves, MoreArgs = list(at$here$rows)), at)
  if (at$numbers) {
    by_input(if (at$several) result else list(result))
  } else if (at$named && at$here$several) {
    lapply(result, in_form, at)
  } else if (at$named) {
    in_form(result, at)
  } else {
    result
  }
}

#' @rdname jacobian
#' @export
hessian <- function(func, x, ..., strict = FALSE, strategy = NULL, method = "Richardson",
                    method.args = list()) {
  check_numderiv(method, NULL, method.args, length(x))
  at <- point(func, x, numderiv_extra(...))
  result <- evaluate_at(at, "hessian", list(FALSE, strict, FALSE, strategy %||% "reverse-mode"))
  if (!at$several) {
    result <- list(list(result))
  }
  if (at$numbers) {
    result <- Map(
      function(row, input) Map(flat_matrix, row, at$leaves, MoreArgs = list(names(input))), result, at$leaves
    )
  }
  if (at$several) in_form(lapply(result, in_form, at), at) else result[[1]][[1]]
}

#' @rdname jacobian
#' @export
vjp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("vjp", func, x, v, strict, FALSE, ...)
}

#' @rdname jacobian
#' @export
jvp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("jvp", func, x, v, strict, TRUE, ...)
}

#' @rdname jacobian
#' @export
hvp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("hvp", func, x, v, strict, TRUE, ...)
}

#' @rdname jacobian
#' @export
vhp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("vhp", func, x, v, strict, TRUE, ...)
}

product_at <- function(name, func, x, v, strict, v_is_input, ...) {
  at <- point(func, x, list(...))
  v <- if (is.list(x) && v_is_input) do.call(tuple, lapply(as_doubles(leaves_of(v)), operand)) else operand(v)
  result <- evaluate_at(at, name, list(v, FALSE, strict))
  names(result) <- c("value", "product")
  of_inputs <- name != "jvp"
  if (at$numbers) {
    result$value <- drop_vector(result$value, at$here$rows)
    if (!of_inputs) {
      result$product <- drop_vector(result$product, at$here$rows)
    } else if (!at$several) {
      result$product <- like(result$product, x)
    } else {
      result$product <- Map(like, result$product, at$leaves)
    }
  }
  if (at$several && of_inputs) result$product <- in_form(result$product, at)
  result
}

# A function and where it is differentiated: what a call of gradops.functional needs, and the way back from its result.
point <- function(func, x, extra, call = parent.frame()) {
  check_function(func, "func", call)
  check_differentiable(x, "x", call)
  at <- list(
    x = x, several = is.list(x), named = is.list(x) && !is.null(names(x)), numbers = gives_numbers(x),
    leaves = if (is.list(x)) leaves_of(x) else list(x), here = new.env(), call = call
  )
  f <- with_extra(func, extra)
  if (at$named) {
    parameters <- f
    f <- function(...) parameters(rebuilt(x, list(...)))
  }
  at$here$names <- lapply(at$leaves, names_within)
  at$f <- callback(differentiated(f, at$here, joined = at$numbers))
  at
}

evaluate_at <- function(at, name, arguments) {
  leaves <- lapply(as_doubles(at$leaves), operand)
  inputs <- if (at$several) do.call(tuple, leaves) else leaves[[1]]
  if (at$numbers) {
    plain(rlang::inject(call_core("interop.r.derivative", name, at$f, inputs, !!!arguments, .call = at$call)))
  } else {
    several(rlang::inject(call_core(paste0("functional.", name), at$f, inputs, !!!arguments, .call = at$call)))
  }
}

# A result for each input in the form of a list of inputs.
in_form <- function(results, at) {
  if (!at$several) results[[1]] else if (at$named) rebuilt(at$x, results) else results
}

# A derivative of R numbers as a matrix: rows for the value's elements, columns for the input's.
flat_matrix <- function(result, input, rows = NULL) {
  if (is_tensor(result)) {
    return(result)
  }
  named <- !is.null(rows) || !is.null(names(input))
  matrix(as.vector(result), ncol = length(input), dimnames = if (named) list(rows, names(input)))
}

drop_vector <- function(value, names = NULL) {
  if (is_number(value) && length(dim(value)) < 2) stats::setNames(as.vector(value), names) else value
}

#' Solutions of equations, with derivatives
#'
#' `fixed_point()` is the `x` with `f(x, ...) = x`, by iteration; `root()` the `x` with `f(x, ...) = 0`, by Newton's
#' method. In a function that is differentiated, their derivatives with respect to `...` are those of the implicit
#' function theorem, to any order, whatever the iteration took.
#' @param f A function of `x` and `...` to a value of `x`'s shape.
#' @param x0 Where to start: R numbers, a tensor or a variable.
#' @param ... Parameters of `f`: R numbers, tensors or variables.
#' @param tol The largest change of an element, relative to `1 + abs(x)`, at which to stop.
#' @param max_iterations How many steps at most.
#' @returns The solution, in the form of `x0`; a tensor where `x0` or a parameter is one.
#' @section Gradient:
#' For `...`; none for `x0`.
#' @section Errors:
#' - `gradops_error_gradient`: no convergence within `max_iterations`.
#' - `gradops_error_shape`: an `f` that changes the shape.
#' @references Christianson (1994), Reverse accumulation and attractive fixed points.
#' @examplesIf gradops_available()
#' root(function(x, a) x^2 - a, 1, 2)
#' grad(function(a) root(function(x, a) x^2 - a, 1, a), 2)
#' @export
fixed_point <- function(f, x0, ..., tol = 1e-12, max_iterations = 1000) {
  solution("functional.fixed_point", f, x0, list(...), tol, max_iterations)
}

#' @rdname fixed_point
#' @export
root <- function(f, x0, ..., tol = 1e-12, max_iterations = 100) {
  solution("functional.root", f, x0, list(...), tol, max_iterations)
}

solution <- function(.name, f, x0, parameters, tol, max_iterations, call = parent.frame()) {
  check_function(f, "f", call)
  here <- new.env()
  here$names <- c(list(names_within(x0)), lapply(parameters, names_within))
  named <- function(x, ...) do.call(f, c(list(x), stats::setNames(list(...), names(parameters))))
  result <- rlang::inject(call_core(
    .name, callback(differentiated(named, here)), operand(as_doubles(x0)),
    !!!lapply(as_doubles(unname(parameters)), operand),
    tol = tol, max_iterations = as.integer(max_iterations), .call = call
  ))
  if (gives_numbers(c(list(x0), parameters))) like(values_of(result), x0) else result
}

#' Check gradients against finite differences
#'
#' @param f A function of tensors.
#' @param inputs R numbers, a tensor or a variable, or a list of these: an unnamed list holds the arguments of `f`, a
#'   named one is its one argument, as for [jacobian()]. Names stay.
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
  at <- point(f, inputs, NULL)
  plain(call_core(
    "interop.r.check_gradients", at$f, lapply(as_doubles(at$leaves), operand),
    eps = eps, atol = atol, rtol = rtol, raise_exception = raise_exception, fast_mode = fast_mode
  ))
}

# Functions on their way into Python -----------------------------------------------------------------------------------

# `f` for Python: its arguments have the names they had in R (`here$names`); with `joined`, a list that it returns is
# one vector, and `here$rows` its names. `here$several` says whether it returned a list.
differentiated <- function(f, here, joined = FALSE) {
  force(f)
  function(...) {
    if (inside() == 0) state$warned <- FALSE
    state$inside <- inside() + 1
    on.exit(state$inside <- inside() - 1)
    arguments <- Map(with_names, list(...), c(here$names, list(NULL))[seq_len(...length())])
    value <- withCallingHandlers(do.call(f, arguments), error = explain_branch)
    check_dependence(value, arguments)
    here$several <- is.list(value)
    if (joined) {
      here$rows <- names_of_elements(value)
      value <- one_vector(value)
    }
    value
  }
}

# Plain R numbers, where tensors went in, have no gradient.
check_dependence <- function(value, arguments) {
  if (!state$warned && all_numbers(value) && any(vapply(arguments, is_recorded, NA))) {
    warn_lost_gradient(
      "The function returned plain numbers: as far as gradops can see they do not depend on `x`, so the gradient is 0.",
      c(i = "A step may have taken the values out of a tensor; a constant that is meant is `op_convert_to_tensor()`'s.")
    )
  }
}

# R's `if` and `while` cannot be told about tensors; what R says of them does not help.
explain_branch <- function(condition, class = "gradops_error_type") {
  explain_hint(condition, class)
  explain_stopifnot(condition, class)
  call <- conditionCall(condition)
  if (inherits(condition, "simpleError") && rlang::is_call(call, c("if", "while"))) {
    abort(
      c(
        sprintf("`%s` looked at a value: its condition is a tensor, not TRUE or FALSE.", as.character(call[[1]])),
        i = "Use `op_where()` or `op_cond()`; or `as.logical()` of the condition, where values are known."
      ),
      class = c(class, "gradops_error"), parent = condition, call = NULL
    )
  }
}

# What `stopifnot()` says of a tensor is not true: it takes R's logicals alone. Its frame is alive and tells.
explain_stopifnot <- function(condition, class) {
  if (!inherits(condition, "simpleError") || !grepl(" not (all )?TRUE$", conditionMessage(condition))) {
    return()
  }
  calls <- Filter(function(i) identical(sys.function(i), base::stopifnot), seq_len(sys.nframe()))
  if (length(calls) > 0 && is_tensor(get0("r", sys.frame(max(calls)), inherits = FALSE))) {
    abort(
      c(
        "`stopifnot()` takes R's TRUE and FALSE alone; it was given a tensor, and has not looked at its values.",
        i = "Write `stopifnot(as.logical(all(p > 0)))`, where values are known."
      ),
      class = c(class, "gradops_error"), parent = condition, call = NULL
    )
  }
}

# How many functions are being differentiated.
inside <- function() {
  state$inside %||% 0
}

vector_callback <- function(f, x) {
  here <- new.env()
  here$names <- list(names_within(x))
  callback(differentiated(f, here, joined = TRUE))
}

# As `c()`: the elements of a list of numbers and tensors as one vector, in R's order.
one_vector <- function(value) {
  if (is.list(value)) call_op("concatenate", lapply(unname(value), as_elements), 1L) else value
}

as_elements <- function(x) {
  if (is.list(x)) one_vector(x) else if (is_tensor(x)) column_major(x) else operand(array_of(x, length(x)))
}

names_of_elements <- function(value) {
  if (is.list(value)) {
    if (!is.null(names(value))) names(unlist(lapply(value, function(part) numeric(length(part)))))
  } else if (is.null(dim(value)) || length(dim(value)) == 1) {
    names(value)
  }
}

# `f` with arguments that are the same at each call.
with_extra <- function(f, extra) {
  if (length(extra) > 0) function(...) do.call(f, c(list(...), extra)) else f
}

methods_of_numderiv <- c("Richardson", "simple", "complex")

check_numderiv <- function(method, side, arguments, size, call = parent.frame()) {
  wrong <- if (!is.character(method) || length(method) != 1 || !method %in% methods_of_numderiv) {
    c(method = sprintf("`method` must be one of %s.", toString(dQuote(methods_of_numderiv, FALSE))))
  } else if (!is.null(side) && (length(side) != size || !all(is.na(side) | abs(side) == 1))) {
    c(side = sprintf("`side` must be NULL, or hold NA, 1 or -1 for each of the %d of `x`.", size))
  } else if (!is.list(arguments)) {
    c(method.args = sprintf("`method.args` must be a list; got %s.", friendly(arguments)))
  }
  if (!is.null(wrong)) {
    abort(
      c(unname(wrong), i = "It has no effect, as nothing is approximated: it may be left out."),
      class = c("gradops_error_argument", "gradops_error"), argument = names(wrong), call = call
    )
  }
}

# numDeriv takes the method as third argument too.
numderiv_extra <- function(...) {
  extra <- list(...)
  if (length(extra) > 0 && !nzchar(rlang::names2(extra)[1]) && is.character(extra[[1]])) {
    if (length(extra[[1]]) == 1 && extra[[1]] %in% methods_of_numderiv) extra <- extra[-1]
  }
  extra
}

# Arguments, the first `count` of f's formals without names, as Python counts them.
positional <- function(f, arguments, count) {
  if (is.null(names(arguments)) || is.primitive(f)) {
    return(arguments)
  }
  matched <- as.list(match.call(f, as.call(c(list(f), arguments))))[-1]
  first <- utils::head(names(formals(f)), count)
  if (!all(first %in% names(matched))) {
    return(arguments)
  }
  c(unname(matched[first]), matched[!names(matched) %in% first])
}

# The frame of gradops' function that others called: errors are signalled from there.
users_call <- function(at = sys.parent()) {
  repeat {
    caller <- sys.parents()[at]
    if (caller == 0 || caller >= at || !identical(topenv(sys.frame(caller)), topenv())) {
      return(sys.frame(at))
    }
    at <- caller
  }
}

# What `f` calls its argument.
argument_name <- function(f, i) {
  name <- names(formals(args(f)))[i]
  if (is.null(name) || is.na(name) || name == "...") "x" else name
}

# Call a Python function that may raise, with R's arguments.
call_python <- function(f, arguments, how = "interop.r.invoke", call = users_call()) {
  if (is.null(names(arguments)) && how == "interop.r.numbers") {
    return(call_core(how, f, lapply(arguments, operand), .call = call))
  }
  named <- nzchar(rlang::names2(arguments))
  call_core(
    how, f, lapply(unname(arguments[!named]), operand), lapply(arguments[named], operand),
    .call = call
  )
}

# R numbers and lists of them ------------------------------------------------------------------------------------------

is_number <- function(x) {
  is.atomic(x) && (is.numeric(x) || is.complex(x))
}

# Whether derivatives at `x` are R numbers: not where they are part of another derivative.
gives_numbers <- function(x) {
  inside() == 0 && all_numbers(x)
}

all_numbers <- function(x) {
  if (is.list(x)) all(vapply(x, function(part) is.null(part) || all_numbers(part), NA)) else is_number(x)
}

# Factors, dates and the like are no numbers to differentiate by.
check_differentiable <- function(x, name, call = parent.frame()) {
  for (part in leaves_of(x)) {
    if (is.object(part) && is.atomic(part) && !is_number(part)) {
      abort(
        sprintf("`%s` must be numbers or tensors to be differentiated by; got %s.", name, friendly(part)),
        class = c("gradops_error_type", "gradops_error"), argument = name, call = call
      )
    }
  }
}

# R's whole numbers are numbers too where they are differentiated by.
as_doubles <- function(x) {
  if (is.list(x)) {
    x[] <- lapply(x, as_doubles)
  } else if (is.integer(x) && !is.factor(x)) {
    storage.mode(x) <- "double"
  }
  x
}

# A gradient in the form of the input it is of.
like <- function(gradient, input) {
  if (is.list(input)) {
    return(Map(like, gradient[names(input) %||% seq_along(input)], input))
  }
  if (!is_number(input) || !is_number(gradient)) {
    return(gradient)
  }
  value <- as.vector(gradient)
  attributes(value) <- attributes(input)[c("dim", "dimnames", "names")]
  value
}

leaves_of <- function(x) {
  if (is.list(x)) do.call(c, lapply(unname(x), leaves_of)) else list(x)
}

# A list of the form of `x` with these leaves.
rebuilt <- function(x, leaves) {
  used <- 0
  fill <- function(part) {
    if (is.list(part)) {
      part[] <- lapply(part, fill)
      return(part)
    }
    used <<- used + 1
    leaves[[used]]
  }
  fill(x)
}
