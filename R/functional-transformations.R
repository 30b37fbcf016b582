# JAX-style transformations: R functions to R functions. See python/gradops/functional/transformations.py.

#' Pullbacks and pushforwards
#'
#' `vjp(func, x)` runs `func` once, and returns its value and a function from gradients of the value to gradients of
#' `x`. This function can be called any number of times: the rows of a Jacobian, or the gradients of several losses,
#' need one run of `func`. `linearize(func, x)` returns the value and a function from directions at `x` to directions of
#' the value. `linear_transpose(func, x)` returns the transpose of a linear function, without its matrix.
#'
#' A named list `x`, such as `list(W = , b = )`, is one argument of `func`, its parameters; an unnamed one holds the
#' arguments of `func`. The value may also be a list. With `v`, `vjp()` returns the product itself, like [jvp()].
#' @param func A function of R code that works on tensors, and returns a tensor or a list of them.
#' @param x R numbers, a tensor or a variable; or a list of these. `linear_transpose()` uses only its form.
#' @param v `NULL`, or a vector of the form of the value.
#' @param ... More arguments of `func`, passed on as they are.
#' @param strict With `v`: if `TRUE`, an input on which `func` does not depend is an error.
#' @returns `vjp()`: a list of `value` and `pullback`, a `function(cotangent)` from a gradient in the form of the value
#'   to one in the form of `x`; with `v`, a list of `value` and `product`. `linearize()`: a list of `value` and
#'   `pushforward`, a `function(tangents)` from a direction in the form of `x` to one in the form of the value.
#'   `linear_transpose()`: a function like a pullback. Results are R numbers, in the form of `x` or of the value, if
#'   both are R numbers; else tensors.
#' @section Gradient:
#' In a function that is itself differentiated, all three have derivatives with respect to `cotangent` and `tangents`,
#' and to the variables that `func` depends on.
#' @section Errors:
#' - `gradops_error_gradient`: the value is not real or complex numbers; the function of `linear_transpose()` is not
#'   linear.
#' - `gradops_error_argument`, `gradops_error_shape`: raised by the returned functions if `cotangent` or `tangents` has
#'   another form or shape.
#' - `gradops_error_callback`: an error in `func`, whose condition is the parent.
#' @references Bradbury and others (2018), JAX: `jax.vjp`, `jax.linearize`, `jax.linear_transpose`.
#' @seealso [jacobian()] for all rows, [jvp()] and [hvp()] for one product, [vmap()].
#' @examplesIf gradops_available()
#' # the gradients of two losses from one run
#' losses <- vjp(function(w) c(sum(w^2), sum(w)), c(1, 2))
#' losses$value
#' losses$pullback(c(1, 0))
#' losses$pullback(c(0, 1))
#'
#' model <- function(p, t) list(mean = p$a * exp(-p$b * t), rate = p$b)
#' moved <- linearize(model, list(a = 2, b = 1), t = c(0, 1))
#' moved$pushforward(list(a = 0, b = 0.1))
#'
#' # the adjoint of a moving average
#' transposed <- linear_transpose(function(x) (x[-1] + x[-4]) / 2, numeric(4))
#' transposed(c(2, 0, 4))
#' grad(function(w) sum(transposed(w)^2), c(2, 0, 4))
#' @export
vjp <- function(func, x, v = NULL, ..., strict = FALSE) {
  flag(strict)
  if (!is.null(v)) {
    return(product_at("vjp", func, x, v, strict, FALSE, ...))
  }
  at <- linear_at("vjp", func, x, list(...))
  list(value = at$value, pullback = at$pull)
}

#' @rdname vjp
#' @export
linearize <- function(func, x, ...) {
  at <- linear_at("linearize", func, x, list(...))
  list(value = at$value, pushforward = at$push)
}

#' @rdname vjp
#' @export
linear_transpose <- function(func, x, ...) {
  linear_at("linear_transpose", func, x, list(...))$pull
}

# Call a function of the core for `func` at `x`. Return the value, if there is one, and the linear function, from
# cotangents (`pull`) or from tangents (`push`).
linear_at <- function(.name, func, x, extra, call = parent.frame()) {
  check_function_at(func, x, name = "func", call = call)
  check_differentiable(x, "x", call)
  alone <- !is.list(x) || !is.null(names(x))
  as_arguments <- function(x) if (alone) list(x) else x
  inputs <- as_arguments(x)
  here <- new.env()
  here$names <- lapply(inputs, names_within)
  f <- callback(differentiated(with_extra(func, extra), here))
  found <- several(rlang::inject(call_core(.name, f, !!!lapply(as_doubles(inputs), operand), .call = call)))
  numbers <- gives_numbers(x)
  linear <- if (is.function(found)) found else found[[2L]]
  run <- function(arguments) {
    result <- several(call_python(linear, as_doubles(arguments)))
    if (numbers && gives_numbers(arguments)) plain_numbers(result) else result
  }
  list(
    value = if (!is.function(found)) if (numbers) plain_numbers(found[[1L]]) else found[[1L]],
    push = function(tangents) run(as_arguments(tangents)),
    pull = function(cotangent) {
      parts <- run(list(cotangent))
      if (numbers) parts <- Map(like, parts, inputs)
      if (alone) parts[[1L]] else parts
    }
  )
}

# Tensors, and lists of them, as R's numbers, vectors and arrays.
plain_numbers <- function(x) {
  if (is.list(x)) lapply(x, plain_numbers) else if (is_tensor(x)) drop_vector(values_of(x)) else x
}

#' Vectorise a function of one example
#'
#' `vmap(f)` returns a function that computes `f` for all slices of its arguments at once and stacks the values:
#' gradients of each example's loss, the models of an ensemble, the rows of a Jacobian.
#' @param f A function of R code that works on tensors. Its arguments do not have the mapped dimension; it returns a
#'   tensor or a list of them.
#' @param in_axes The dimension of the arguments that is mapped over, from 1, or from the end with -1; `NULL` marks
#'   arguments that are the same in each call. One for all arguments, or a list with one for each (which may be named as
#'   in `f`); for an argument that is a list, a list with one for each of its parts.
#' @param out_axes The position of that dimension in the value: one for all tensors, or a list in the form of the value.
#' @param axis_size The size of the mapped dimension, needed if all `in_axes` are `NULL`.
#' @param chunk_size The most slices that are computed together, which bounds the memory; `1` computes one after the
#'   other, `NULL` all together.
#' @returns A function of `f`'s arguments, in which mapped arguments have one dimension more. For R numbers it returns R
#'   numbers, for tensors tensors. The slices of a matrix have the names of its other dimension.
#' @section Gradient:
#' Gradients flow through every call, to the arguments and to variables that `f` closes over. [grad_fn()] and similar
#' functions work inside and outside, and so do [jit()] and `vmap()` itself.
#' @section Random numbers:
#' `f` runs once for all slices or once for each, depending on the library, so random numbers that it draws may be the
#' same for all slices: draw them outside, and map over them.
#' @section Errors:
#' - `gradops_error_shape`: sizes that differ, or a single number instead of a vector.
#' - `gradops_error_axis`: an axis out of range.
#' - `gradops_error_argument`: axes in a form that differs from the arguments; no axis at all without `axis_size`; a
#'   `chunk_size` below 1.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @references Bradbury and others (2018), JAX: `jax.vmap`, which runs it on JAX, as `torch.func.vmap` and
#'   `tf.vectorized_map` do on PyTorch and TensorFlow. A function that looks at values is called for one slice after the
#'   other.
#' @seealso [op_vectorized_map()] over rows, [op_map()], [op_vectorize()].
#' @examplesIf gradops_available()
#' # the gradient of each example's loss
#' loss <- function(w, x, y) (sum(w * x) - y)^2
#' each <- vmap(grad_fn(loss), in_axes = list(NULL, 1, 1))
#' x <- rbind(c(1, 2), c(3, 0))
#' gradients <- each(c(1, -1), x, c(0, 1))
#' gradients
#'
#' # clipped to a norm of 5 before averaging, as differential privacy requires
#' colMeans(gradients * pmin(1, 5 / sqrt(rowSums(gradients^2))))
#'
#' jit(each)(c(1, -1), x, c(0, 1)) # compiled
#' grad(function(w) sum(vmap(function(row) sum(row * w)^2)(x)), c(1, -1))
#' @export
vmap <- function(f, in_axes = 1L, out_axes = 1L, axis_size = NULL, chunk_size = NULL) {
  check_function(f)
  inputs <- axes_in_python(formals_order(in_axes, f), "in_axes")
  outputs <- axes_in_python(out_axes, "out_axes")
  here <- new.env()
  mapped <- remade_in_session(function() {
    call_core("vmap", callback(differentiated(f, here), owner = here), inputs, outputs, axis_size, chunk_size)
  })
  function(...) {
    arguments <- unname(positional(f, list(...), ...length()))
    here$names <- names_of_slices(arguments, inputs)
    result <- several(call_python(mapped(), arguments, "tensors", keep = here))
    if (gives_numbers(arguments)) plain_numbers(result) else result
  }
}

# Axes for Python, which counts from 0.
axes_in_python <- function(axes, name, call = parent.frame()) {
  if (is.list(axes) || length(axes) > 1L && is.numeric(axes)) {
    return(lapply(axes, axes_in_python, name, call))
  }
  if (is.null(axes) && name == "in_axes") {
    return(NULL)
  }
  if (is.object(axes) || !rlang::is_integerish(axes, 1L, finite = TRUE) || !abs(axes) %in% 1:100) {
    or_null <- if (name == "in_axes") " NULL," else ""
    what <- sprintf("must be a dimension, counted from 1,%s or a list of these; got %s.", or_null, friendly(axes))
    unsupported(name, what, call = call)
  }
  as.integer(axes) - (axes > 0)
}

# Reorder a list that is named by arguments to their order.
formals_order <- function(axes, f, call = parent.frame()) {
  if (!is.list(axes) || is.null(names(axes))) {
    return(axes)
  }
  places <- match(names(axes), setdiff(names(formals(args(f))), "..."))
  if (anyNA(places)) {
    what <- sprintf("must have no names or those of `f`'s arguments; got %s.", toString(names(axes)))
    unsupported("in_axes", what, call = call)
  }
  unname(axes[order(places)])
}

# The names of a slice of each argument.
names_of_slices <- function(arguments, axes) {
  if (is.list(arguments) && !is.data.frame(arguments)) {
    parts <- if (is.list(axes)) axes else rep(list(axes), length(arguments))
    return(if (length(parts) == length(arguments)) Map(names_of_slices, arguments, parts))
  }
  if (is.null(axes)) {
    return(names_within(arguments))
  }
  of_each <- if (is_number(arguments) || is.data.frame(arguments)) dimnames(arguments)
  if (length(of_each) == 2L) of_each[[if (axes %in% c(0L, -2L)) 2L else 1L]]
}

#' Define the derivative of a function in forward mode
#'
#' `custom_jvp(f, rule)` is `f` with the derivative that `rule` defines, as the change of the value for a change of the
#' arguments; gradients are its transpose. [op_custom_gradient()] defines the gradient instead. Both apply in [jvp()]
#' and [linearize()] as in [gradient()], to any order.
#' @param f A function of tensors, lists of them, and other arguments, which returns a tensor or a list of tensors.
#' @param rule `function(primals, tangents)` of two lists: the arguments of `f` by their names, and a tangent for each
#'   (`NULL` for an argument that is not real numbers). It returns a list of the value and its tangent, which must be
#'   linear in `tangents`.
#' @returns A function with `f`'s arguments that returns `f`'s value.
#' @section Errors:
#' - `gradops_error_gradient`: raised when differentiating, if `rule` does not return a list of two, or the tangent has
#'   another form or shape than the value.
#' - `gradops_error_type`: `f` or `rule` is not a function.
#' - `gradops_error_callback`: an error in `f` or in `rule`, whose condition is the parent.
#' @section Gradient:
#' The rule defines it; higher orders differentiate the rule.
#' @references Bradbury and others (2018), JAX: `jax.custom_jvp`.
#' @seealso [op_custom_gradient()], [autodiff_function()], [gradcheck()].
#' @examplesIf gradops_available()
#' # log(1 + exp(x)), safe for large `x`
#' softplus <- custom_jvp(
#'   function(x) log(1 + exp(x)),
#'   function(primals, tangents) list(softplus(primals$x), tangents$x / (1 + exp(-primals$x)))
#' )
#' grad(softplus, 100)
#' jvp(softplus, 0, v = 2)
#' hessian(softplus, 0)
#' @export
custom_jvp <- function(f, rule) {
  check_function(f)
  check_function(rule)
  here <- environment()
  given <- all_arguments(f)
  names <- setdiff(names(formals(args(f))), "...")
  by_name <- function(x) stats::setNames(x, names[seq_along(x)])
  in_order <- function(...) tensor_aware(f)(...)
  pair <- function(primals, tangents) {
    found <- tensor_aware(rule)(by_name(primals), by_name(tangents))
    if (is.list(found)) unname(found) else found
  }
  custom <- remade_in_session(function() {
    functions <- lapply(list(in_order, pair), callback, owner = here)
    call_core("interop.r.made", "interop.r.calls.custom_jvp", functions[[1L]], functions[[2L]])
  })
  function(...) several(call_python(custom(), given(...), "alone", keep = here))
}

# A function with `f`'s arguments and defaults that returns the arguments as a list.
all_arguments <- function(f) {
  formals <- formals(args(f))
  if (!rlang::is_closure(f) || "..." %in% names(formals)) {
    return(function(...) positional(f, list(...), ...length()))
  }
  rlang::new_function(formals, rlang::call2("list", !!!rlang::syms(names(formals))), environment(f))
}
