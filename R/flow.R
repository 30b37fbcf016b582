#' Define the gradient of a function
#'
#' `op_custom_gradient()` makes a function of tensors with the gradient that you define, on every backend and to any
#' order: for numerical stability, for straight-through estimates, to clip or reverse gradients.
#'
#' With one function, `f` returns its value (or a list of values) and the gradient function, as `tuple(value, grad)`,
#' `list(value, grad)` or a named list. With two, `f` returns its value, and `gradient` is called with `f`'s arguments.
#'
#' The gradient function may have one of these forms:
#' - `function(upstream)`, with an argument for each output if there are several;
#' - `function(..., upstream = NULL)`, where `..1` and `upstream` both hold the upstream gradient (a list, for several
#'   outputs);
#' - `function(x, y, upstream)`: `f`'s arguments by their names, then the upstream gradients.
#'
#' It returns one tensor (or R numbers) for a function of one argument. For several arguments it returns a list in their
#' order, or named by them, with `NULL` for an argument without gradient. If an argument is a list, the gradient may be
#' a flat list with an entry for each tensor, in their order. Operations in the gradient function are recorded, so the
#' second derivative is the derivative of the gradient function. It may modify `upstream`, and it may use variables
#' around it: the gradient then has derivatives with respect to them as well.
#' @param f A function of tensors.
#' @param gradient `NULL`, or the gradient as a function of `f`'s arguments and the upstream gradients, such as
#'   `function(x, y, upstream)`.
#' @returns A function with `f`'s arguments that returns `f`'s value.
#' @section Errors:
#' - `gradops_error_gradient`: no gradient function returned, a wrong number of gradients, or an unknown name among
#'   them; raised when the function is called or differentiated.
#' - `gradops_error_shape`: a gradient whose shape does not fit its input.
#' - `gradops_error_callback`: an error in `f` or in its gradient function, whose condition is the parent.
#' @seealso [op_stop_gradient()] and [op_scaled_gradient()] for the most common cases, [autodiff_function()],
#'   [r_function()], [gradcheck()].
#' @examplesIf gradops_available()
#' # log(1 + exp(x)) with a gradient that does not overflow
#' log1pexp <- op_custom_gradient(function(x) {
#'   e <- op_exp(x)
#'   list(op_log1p(e), function(upstream) upstream * (1 - 1 / (1 + e)))
#' })
#' gradient(log1pexp, 100)
#'
#' # with two functions: a gradient that is clipped in the backward pass
#' clipped <- op_custom_gradient(
#'   function(x, limit) x,
#'   function(x, limit, upstream) list(op_clip(upstream, -limit, limit), NULL)
#' )
#' gradient(function(x) 5 * clipped(x, 1), 2)
#' @export
op_custom_gradient <- function(f, gradient = NULL) {
  check_function(f)
  here <- environment()
  if (is.null(gradient)) {
    custom <- remade_in_session(function() call_core("custom_gradient", callback(f, custom_result, owner = here)))
    function(...) several(call_python(custom(), list(...), "alone"))
  } else {
    check_function(gradient)
    rule <- with_defaults(gradient, f)
    custom <- remade_in_session(function() {
      call_core("interop.r.made", "custom_gradient", callback(f, owner = here), callback(rule, owner = here))
    })
    function(...) several(call_python(custom(), list(...), "alone", keep = here))
  }
}

# The result of `f` for op_custom_gradient(), as a pair of value and gradient function.
custom_result <- function(result, f) {
  functions <- if (is.list(result)) vapply(result, is.function, NA)
  if (length(result) == 2 && sum(functions) == 1) {
    gradient <- with_defaults(result[[which(functions)]], f)
    list(as_python(result[[which(!functions)]], callback_value), callback(gradient))
  } else {
    as_python(result, callback_value)
  }
}

# `gradient`, whose arguments get the defaults that `f` has for arguments of the same name.
with_defaults <- function(gradient, f) {
  if (!rlang::is_closure(f) || !rlang::is_closure(gradient) || inherits(gradient, "python.builtin.object")) {
    return(gradient)
  }
  mine <- formals(gradient)
  theirs <- Filter(Negate(rlang::is_missing), formals(f))
  shared <- intersect(names(Filter(rlang::is_missing, mine)), names(theirs))
  if (length(shared) > 0) formals(gradient)[shared] <- theirs[shared]
  gradient
}

check_function <- function(f, name = rlang::caller_arg(f), call = caller_env()) {
  if (!is.function(f)) {
    abort(
      sprintf("`%s` must be a function; got %s.", name, friendly(f)),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
}

# Check that a function and the point at which to differentiate it come in this order. `instead` is advice for a missing
# point.
check_function_at <- function(f, x, instead = NULL, name = rlang::caller_arg(f), call = caller_env()) {
  place <- rlang::caller_arg(x)
  if (missing(x)) {
    check_function(f, name, call)
    abort(
      c(sprintf("`%s` is missing: the point at which to differentiate.", place), i = instead),
      class = c("gradops_error_argument", "gradops_error"), argument = place, call = call
    )
  }
  if (!is.function(f) && is_r_function(x)) {
    abort(
      c(
        sprintf("`%s` must be a function; got %s, and a function for `%s`.", name, friendly(f), place),
        i = "The function comes first, then the point at which to differentiate it."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
  check_function(f, name, call)
}

# TRUE for an R function; callable Python objects are functions in R as well.
is_r_function <- function(x) {
  is.function(x) && !inherits(x, "python.builtin.object")
}

#' Stop or scale a gradient
#'
#' `op_stop_gradient()` returns `variable` unchanged and stops its gradient. `op_scaled_gradient()` returns `x`
#' unchanged and multiplies its gradient by `scale` (-1 reverses it: gradient reversal, Ganin and Lempitsky 2015).
#' `op_scaled_gradient_ext()` scales and shifts the gradient.
#' @param variable,x A tensor, a variable or R numbers, or a list of them.
#' @param scale A number or tensor; 0 makes the gradient 0, and `x` stays connected.
#' @param shift A number or tensor that is added to the gradient, or `NULL`.
#' @param scale_shift_by_sum_over_axis `NULL`, or an axis (from 1): the shift is multiplied by the sum of the absolute
#'   gradient over that axis.
#' @returns The tensor, unchanged.
#' @seealso [with_stop_gradient()] for all values computed in a block, [op_custom_gradient()].
#' @examplesIf gradops_available()
#' # a target that the loss must not move
#' gradient(function(w) (w - op_stop_gradient(2 * w))^2, 3)
#'
#' # the straight-through estimator: values are rounded, gradients pass
#' rounded <- function(x) x + op_stop_gradient(op_round(x) - x)
#' gradient(function(x) rounded(x)^2, 1.7)
#'
#' # gradient reversal, for a layer before an adversary
#' gradient(function(x) sum(c(3, 4) * op_scaled_gradient(x, -0.5)), c(1, 2))
#' @export
op_stop_gradient <- function(variable) {
  several(call_op("stop_gradient", operand(variable)))
}

#' @rdname op_stop_gradient
#' @export
op_scaled_gradient <- function(x, scale) {
  several(call_op("scaled_gradient", operand(x), operand(scale)))
}

#' @rdname op_stop_gradient
#' @export
op_scaled_gradient_ext <- function(x, scale, shift = NULL, scale_shift_by_sum_over_axis = NULL) {
  several(call_op("scaled_gradient_ext", operand(x), operand(scale), operand(shift), scale_shift_by_sum_over_axis))
}

#' Request gradients for a tensor in place
#'
#' Marks a variable or a torch tensor as requiring a gradient, or makes TensorFlow's active `GradientTape`s watch a
#' tensor.
#' @param x A variable, a torch tensor or a TensorFlow tensor.
#' @returns `x`, invisibly.
#' @section Errors:
#' - `gradops_error_gradient`: a NumPy or JAX array, or R numbers, cannot be marked: make it a [variable()].
#' @seealso [variable()], [gradient()].
#' @examplesIf gradops_available()
#' x <- variable(c(1, 2))
#' set_requires_gradient(x)
#' gradient(sum(x^2), x)
#' @export
set_requires_gradient <- function(x) {
  if (!is_any_tensor(x)) {
    abort(
      sprintf("`x` must be a variable or a tensor that can be marked; got %s. Make it a `variable()`.", friendly(x)),
      class = c("gradops_error_gradient", "gradops_error"), argument = "x"
    )
  }
  call_core("set_requires_gradient", x)
  invisible(x)
}

#' Stop gradients from a block of code
#'
#' Tensors computed in the code of `with_stop_gradient()`, or after `local_stop_gradient()` until the calling function
#' ends, pass no gradient to tensors from outside.
#' @param code Code to run.
#' @param .local_envir The frame at whose end the scope ends.
#' @returns The value of `code`; `local_stop_gradient()` returns `NULL`, invisibly.
#' @seealso [op_stop_gradient()] for one value, [with_no_grad()], which also turns off recording inside the block.
#' @examplesIf gradops_available()
#' gradient(function(x) x * with_stop_gradient(x^2), 3)
#' @export
with_stop_gradient <- function(code) {
  run_in_scope(local_stop_gradient, code)
}

#' @rdname with_stop_gradient
#' @export
local_stop_gradient <- function(.local_envir = parent.frame()) {
  local_scope("stop_gradient_scope", .local_envir = .local_envir)
}

#' Recompute results in the backward pass instead of storing them
#'
#' Results computed in the code of `with_gradient_checkpoint()`, or after `local_gradient_checkpoint()` until the
#' calling function ends, are not stored for the backward pass but computed again there. `checkpoint(f)` is `f`, storing
#' only its arguments and the results that `policy` selects.
#'
#' `checkpoint_name()` gives the value `x` a name by which a policy selects it; call it where the value is computed. On
#' TensorFlow only the policies `"nothing"` and `"everything"` are available, except for variables.
#' @inheritParams with_stop_gradient
#' @param f A function of tensors. When it runs again, random numbers, R's and the Python libraries', are the same as in
#'   the first run, and the generators continue as if it had run once.
#' @param policy Which results are stored in addition to the arguments: `NULL` or `"nothing"`; `"products"`, that is
#'   matrix products and convolutions; `"everything"`; or the result of `save_only_these_names()`,
#'   `save_anything_except_these_names()`, `save_and_offload_only_these_names()` or `save_from_both_policies()`.
#' @param x A tensor, or a list of them; for `checkpoint_sequential()` the argument of the first function.
#' @param name A string.
#' @param ... Names, as strings or vectors of them.
#' @param names_which_can_be_saved,names_which_can_be_offloaded Vectors of names: of the values to store, and of those to
#'   store in the memory of the CPU.
#' @param functions A list of functions of one argument, applied one after the other; each segment of them is
#'   checkpointed, except the last.
#' @param segments The number of segments, of equal length; the last one also gets the rest.
#' @param policy_1,policy_2 Policies; a result is stored if one of them stores it.
#' @returns `with_gradient_checkpoint()`: the value of `code`. `local_gradient_checkpoint()`: `NULL`, invisibly.
#'   `checkpoint()`: a function. `checkpoint_sequential()`: the value of the last function. `checkpoint_name()`: the values of `x`. The functions whose names begin with `save_`: a
#'   policy.
#' @section Gradient:
#' Unchanged.
#' @seealso [backward()], [jit()].
#' @examplesIf gradops_available()
#' x <- parameter(2)
#' y <- with_gradient_checkpoint(exp(x))
#' backward(y^2)
#' x$grad
#' gradient(checkpoint(function(x) exp(x)^2), 1)
#' # store the matrix product, or one value by its name
#' light <- checkpoint(function(x) sum(tanh(x %*% x)), policy = "products")
#' gradient(function(x) checkpoint_sequential(list(sin, exp, cos, sqrt), 2, x), 1)
#' f <- function(x) sin(checkpoint_name(exp(x), "e"))
#' stored <- checkpoint(f, save_only_these_names("e"))
#' @export
with_gradient_checkpoint <- function(code) {
  run_in_scope(local_gradient_checkpoint, code)
}

#' @rdname with_gradient_checkpoint
#' @export
local_gradient_checkpoint <- function(.local_envir = parent.frame()) {
  local_scope("gradient_checkpoint_scope", .local_envir = .local_envir)
}

#' @rdname with_gradient_checkpoint
#' @export
checkpoint <- function(f, policy = NULL) {
  check_function(f)
  policy_in_python(policy)
  restore_random_numbers()
  here <- environment()
  checkpointed <- remade_in_session(function() {
    inside <- callback(running_inside(f), owner = here)
    call_core("interop.r.made", "checkpoint", inside, policy = policy_in_python(policy))
  })
  function(...) several(call_python(checkpointed(), list(...), "tensors", keep = here))
}

#' @rdname with_gradient_checkpoint
#' @export
checkpoint_name <- function(x, name) {
  several(call_core("checkpoint_name", operand(x), name))
}

#' @rdname with_gradient_checkpoint
#' @export
save_only_these_names <- function(...) {
  policy_of_names("save_only_these_names", ...)
}

#' @rdname with_gradient_checkpoint
#' @export
save_anything_except_these_names <- function(...) {
  policy_of_names("save_anything_except_these_names", ...)
}

#' @rdname with_gradient_checkpoint
#' @export
save_and_offload_only_these_names <- function(names_which_can_be_saved, names_which_can_be_offloaded) {
  lists <- list(
    names_which_can_be_saved = names_which_can_be_saved,
    names_which_can_be_offloaded = names_which_can_be_offloaded
  )
  checkpoint_policy("save_and_offload_only_these_names", lapply(lists, as.list))
}

#' @rdname with_gradient_checkpoint
#' @export
save_from_both_policies <- function(policy_1, policy_2) {
  checkpoint_policy("save_from_both_policies", list(policy_1, policy_2))
}

policy_of_names <- function(save, ..., .call = parent.frame()) {
  names <- lapply(unname(list(...)), function(x) if (is.character(x)) as.list(unname(x)) else list(x))
  checkpoint_policy(save, do.call(c, names), .call)
}

#' @rdname with_gradient_checkpoint
#' @export
checkpoint_sequential <- function(functions, segments, x, policy = NULL) {
  if (!is.list(functions)) functions <- list(functions)
  for (i in seq_along(functions)) check_function(functions[[i]], sprintf("functions[[%d]]", i))
  segments <- segment_count(segments, length(functions))
  size <- length(functions) %/% segments
  starts <- size * (seq_len(segments) - 1)
  run <- function(places) function(x) Reduce(function(value, f) f(value), functions[places], x)
  for (start in starts[-segments]) x <- checkpoint(run(start + seq_len(size)), policy)(x)
  run((starts[segments] + 1):length(functions))(x)
}

segment_count <- function(segments, most, call = parent.frame()) {
  if (!rlang::is_integerish(segments, 1L, finite = TRUE) || segments < 1 || segments > most) {
    what <- sprintf("must be from 1 to %d, the number of functions; got %s.", most, friendly(segments))
    unsupported("segments", what, call = call)
  }
  segments
}

#' List what a derivative saves
#'
#' `print_saved_residuals()` prints the tensors that a gradient of `f` stores between the forward and the backward pass:
#' dtype, shape, bytes, where they were made, and the total. Use it to see what a [checkpoint()] and its policy save.
#' @param f A function of R code that works on tensors.
#' @param ... Its arguments: R numbers, tensors or variables, or named lists of them.
#' @returns A data frame with the columns `dtype`, `shape`, `bytes` and `where`, invisibly.
#' @section Gradient:
#' None.
#' @section Errors:
#' - `gradops_error_backend`: TensorFlow tensors that are not variables, as TensorFlow does not say what it saves.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @references JAX: `jax.ad_checkpoint.print_saved_residuals`.
#' @seealso [checkpoint()], [with_saved_tensors_hooks()].
#' @examplesIf gradops_available()
#' f <- function(x, w) sum(tanh(x %*% w))
#' print_saved_residuals(f, matrix(1, 2, 3), matrix(1, 3, 4))
#' print_saved_residuals(checkpoint(f), matrix(1, 2, 3), matrix(1, 3, 4))
#' gradient(function(x) checkpoint(f)(x, matrix(1, 3, 4)), matrix(0, 2, 3))
#' @export
print_saved_residuals <- function(f, ...) {
  check_function(f)
  inputs <- positional(f, list(...), ...length())
  here <- new.env()
  here$names <- lapply(unname(inputs), names_within)
  parameters <- c(setdiff(names(formals(args(f))), "..."), sprintf("..%d", seq_along(inputs)))[seq_along(inputs)]
  found <- py_to_r(rlang::inject(call_core(
    "interop.r.saved_residuals", callback(differentiated(f, here)), as.list(parameters),
    !!!lapply(as_doubles(unname(inputs)), operand)
  )))
  cat(unlist(found$lines), sep = "\n")
  columns <- lapply(found[c("dtype", "shape", "where")], function(x) as.character(unlist(x)))
  table <- data.frame(columns[1:2], bytes = as.numeric(unlist(found$bytes)), where = columns$where)
  invisible(table)
}

# A policy in R that outlives the Python session: the name of the function and its arguments.
checkpoint_policy <- function(save, arguments, call = parent.frame()) {
  policy <- structure(list(save = save, arguments = arguments), class = "gradops_checkpoint_policy")
  policy_in_python(policy, call)
  policy
}

policy_in_python <- function(policy, call = parent.frame()) {
  if (inherits(policy, "gradops_checkpoint_policy")) {
    is_policy <- vapply(policy$arguments, inherits, NA, "gradops_checkpoint_policy")
    arguments <- policy$arguments
    arguments[is_policy] <- lapply(arguments[is_policy], policy_in_python, call)
    do.call(call_core, c(list(policy$save), arguments, list(.call = call)), quote = TRUE)
  } else {
    call_core("backends.checkpoint_policies.policy_of", policy, .call = call)
  }
}
