#' Variables
#'
#' A variable is a tensor whose operations are recorded, so that [backward()] can compute gradients. On PyTorch it is a
#' torch tensor, which PyTorch itself records.
#' @param data A tensor; R numbers, which go to the default backend; or one or several strings.
#' @param requires_grad If `TRUE`, `backward()` accumulates a gradient in `x$grad`.
#' @param role The purpose of a text; it is part of the feedback on that text.
#' @returns A variable.
#' @section Fields:
#' - `x$grad`: the gradient that [backward()] has added up, or `NULL`; `x$grad <- NULL` clears it. Also `x$data`,
#'   `x$requires_grad` and `x$is_leaf`.
#' - `x$register_hook(function(g) ...)` calls the function when `x`'s gradient is known. If it returns a tensor, the
#'   tensor replaces the gradient. The hook's `$remove()` removes it. `x$register_post_accumulate_grad_hook(function(x)
#'   ...)` calls the function after the gradient was added to `x$grad`.
#' - `x$retain_grad()`: the result of an operation keeps its gradient in `grad`, as leaves do.
#' - `x$detach()`: the same values without the graph.
#' @section Errors:
#' - `gradops_error_type`: data that is not numeric, or whole numbers or booleans with `requires_grad = TRUE`.
#' @seealso [backward()], [autodiff_grad()], [gradient()] of functions of plain numbers, [with_no_grad()].
#' @examplesIf gradops_available()
#' # gradients add up in the leaves, as in PyTorch
#' x <- parameter(c(1, 2, 3))
#' backward(sum(x^2))
#' x$grad
#'
#' # gradient descent: the new values are not part of the graph
#' w <- parameter(0)
#' for (i in 1:50) {
#'   backward((w - 3)^2)
#'   w$data <- w$data - 0.1 * w$grad$data
#'   w$grad <- NULL
#' }
#' w
#' @export
variable <- function(data = "", requires_grad = FALSE, role = NULL) {
  keep_names(call_core("interop.r.variable", operand(data), flag(requires_grad), operand(role)), data)
}

#' @rdname variable
#' @export
parameter <- function(data = "", requires_grad = TRUE, role = NULL) {
  keep_names(call_core("interop.r.variable", operand(data), flag(requires_grad), operand(role), TRUE), data)
}

#' @rdname variable
#' @param x A variable.
#' @param value A tensor, R numbers, or a string: the new value, for example from an optimiser. The assignment is not
#'   recorded. The variable keeps its role, its gradient and its position in graphs.
#' @export
`value<-` <- function(x, value) {
  call_core("interop.r.set_value", x, operand(value))
  x
}

#' Gradients of recorded operations
#'
#' `backward()` adds the gradients of `variables` to the `grad` of every variable that they were computed from.
#' `autodiff_grad()` returns the gradients of `outputs` with respect to `inputs` instead.
#' @param variables,outputs A variable, or a list of them.
#' @param inputs The variables whose gradients are wanted, one or a list; for `backward()`, `NULL` means all.
#' @param grad_variables,grad_outputs Upstream gradients, of the shapes of the variables; required for a variable that
#'   is not a scalar. For a text they are feedback: one or several remarks.
#' @param retain_graph If `TRUE`, the graph is kept for another pass; `NULL` means the value of `create_graph`.
#' @param create_graph If `TRUE`, the gradients are recorded too, for higher derivatives.
#' @param allow_unused If `TRUE`, an input that the outputs do not depend on has the gradient `NULL`; otherwise it is an
#'   error.
#' @param materialize_grads If `TRUE`, such gradients are zeros instead.
#' @returns `backward()`: `NULL`, invisibly. `autodiff_grad()`: a list of gradients, one for each input.
#' @section Errors:
#' - `gradops_error_gradient`: a non-scalar without upstream gradient, a graph that is gone, an unused input.
#' @seealso [variable()], [gradient()], [with_detect_anomaly()], [autodiff_graph()].
#' @examplesIf gradops_available()
#' # two losses at once
#' w <- parameter(2)
#' backward(list(w^2, 3 * w))
#' w$grad
#'
#' # a second derivative
#' x <- parameter(2)
#' slope <- autodiff_grad(x^3, x, create_graph = TRUE)[[1]]
#' autodiff_grad(slope, x)
#' @export
backward <- function(variables, grad_variables = NULL, retain_graph = NULL, create_graph = FALSE, inputs = NULL) {
  if (is.character(grad_variables) && is_tensor(variables)) {
    check_words(grad_variables)
    grad_variables <- list(as.list(grad_variables))
  } else if (is.list(grad_variables) && is_tensor(variables) && any(vapply(grad_variables, is_file, TRUE))) {
    grad_variables <- list(as_files(grad_variables))
  }
  call_core(
    "autodiff.backward", operand(variables), operand(grad_variables), flag(retain_graph, TRUE), flag(create_graph),
    operand(inputs)
  )
  invisible()
}

#' @rdname backward
#' @export
autodiff_grad <- function(outputs, inputs, grad_outputs = NULL, retain_graph = NULL, create_graph = FALSE,
                          allow_unused = FALSE, materialize_grads = FALSE) {
  several(call_core(
    "autodiff.grad", operand(outputs), operand(inputs), operand(grad_outputs), flag(retain_graph, TRUE),
    flag(create_graph), flag(allow_unused), flag(materialize_grads)
  ))
}

#' Turn recording on or off
#'
#' In the code of `with_no_grad()`, and after `local_no_grad()` until the calling function ends, nothing is recorded.
#' `with_enable_grad()` and `local_enable_grad()` record again inside. `with_inference_mode()` and
#' `local_inference_mode()` are like `with_no_grad()`, but recording cannot be turned on again inside. PyTorch obeys
#' these scopes too.
#' @param code Code to run.
#' @param .local_envir The frame at whose end the scope ends.
#' @returns The value of `code`; of the `local_` functions `NULL`, invisibly.
#' @seealso [with_stop_gradient()], which records inside; [backward()].
#' @examplesIf gradops_available()
#' w <- parameter(2)
#' constant <- with_no_grad(w^2)
#' backward(w * constant)
#' w$grad # of w * 4
#' @export
with_no_grad <- function(code) {
  run_in_scope(local_no_grad, code)
}

#' @rdname with_no_grad
#' @export
local_no_grad <- function(.local_envir = parent.frame()) {
  local_scope("autodiff.no_grad", .local_envir = .local_envir)
}

#' @rdname with_no_grad
#' @export
with_enable_grad <- function(code) {
  run_in_scope(local_enable_grad, code)
}

#' @rdname with_no_grad
#' @export
local_enable_grad <- function(.local_envir = parent.frame()) {
  local_scope("autodiff.enable_grad", .local_envir = .local_envir)
}

#' @rdname with_no_grad
#' @export
with_inference_mode <- function(code) {
  run_in_scope(local_inference_mode, code)
}

#' @rdname with_no_grad
#' @export
local_inference_mode <- function(.local_envir = parent.frame()) {
  local_scope("autodiff.inference_mode", .local_envir = .local_envir)
}

check_frame <- function(.local_envir, call = parent.frame(2L)) {
  if (!is.environment(.local_envir)) {
    abort(
      sprintf("`.local_envir` must be an environment, a function's frame; got %s.", class(.local_envir)[1L]),
      class = c("gradops_error_type", "gradops_error"), argument = ".local_envir", call = call
    )
  }
}

# Enter a Python context manager until a frame ends.
local_scope <- function(.name, ..., .local_envir) {
  check_frame(.local_envir)
  force_before(.local_envir)
  enter_scope(call_core(.name, ..., .call = .local_envir), .local_envir)
}

#' An operation with its own forward and backward
#'
#' Works like `torch::autograd_function()`, on variables of every backend and on torch tensors. `forward` runs without
#' recording. `ctx` carries what `backward` needs: `ctx$save_for_backward(x, ...)` and `ctx$saved_tensors` (a list),
#' `ctx$needs_input_grad`, `ctx$mark_dirty()`, `ctx$mark_non_differentiable()`, `ctx$set_materialize_grads()`, and any
#' field of yours (`ctx$scale <- 2`).
#' @param forward `function(ctx, ...)`, which returns a tensor or a list of them.
#' @param backward `function(ctx, ...)`, which gets a gradient for each output and returns one for each input, as a list
#'   if there are several; `NULL` for an input without gradient.
#' @param evaluator If `TRUE`, the text that `forward` returns is an evaluation of its inputs, and [backward()] starts
#'   with that text as the feedback.
#' @returns A function of `forward`'s arguments without `ctx`. Variables may also be inside lists.
#' @section Gradient:
#' The value of `backward`; it can be differentiated again if `backward` consists of recorded operations.
#' @seealso [op_custom_gradient()], which needs no context; [r_function()] for R code that does not take tensors;
#'   [gradcheck()].
#' @examplesIf gradops_available()
#' # a rectifier that lets a little of the gradient through below 0
#' leaky <- autodiff_function(
#'   forward = function(ctx, x) {
#'     ctx$save_for_backward(x)
#'     op_maximum(x, 0)
#'   },
#'   backward = function(ctx, upstream) {
#'     x <- ctx$saved_tensors[[1]]
#'     op_where(x > 0, upstream, 0.1 * upstream)
#'   }
#' )
#' x <- parameter(c(-1, 2))
#' backward(sum(leaky(x)))
#' x$grad
#' @export
autodiff_function <- function(forward, backward, evaluator = FALSE) {
  check_function(forward)
  check_function(backward)
  here <- environment()
  flag(evaluator)
  apply <- remade_in_session(function() {
    call_core("interop.r.function", callback(forward, owner = here), callback(backward, owner = here), evaluator)
  })
  function(...) several(call_python(apply(), list(...), "tensors", keep = here))
}

# Methods such as `x$register_hook`, which take R functions.
hook_methods <- c("register_hook", "register_post_accumulate_grad_hook")

hook_method <- function(x, name) {
  function(hook) {
    check_function(hook)
    call_core("interop.r.add_hook", x, name, callback(hook, function(value) if (is_tensor(value)) value))
  }
}

# A context's fields as R values.
context_field <- function(x, name) {
  several(NextMethod())
}

#' Save tensors for the backward pass elsewhere, or in another form
#'
#' In the code of `with_saved_tensors_hooks()`, or after `local_saved_tensors_hooks()` until the calling function ends,
#' `pack()` gets each tensor that an operation saves for the backward pass, and its result is saved instead; `unpack()`
#' gets that result in the backward pass and returns the tensor. `with_save_on_cpu()` saves tensors in the memory of the
#' CPU. In nested scopes the innermost one applies.
#'
#' The hooks see variables' arrays, and torch tensors. JAX and TensorFlow tensors that are not variables get none, nor do
#' values that a gradient function closes over or a checkpoint recomputes.
#' @inheritParams with_no_grad
#' @param pack `function(x)` of a tensor, which returns a tensor, R numbers, a string or a list of these.
#' @param unpack `function(packed)`, which returns a tensor, or R numbers, of the same shape.
#' @param pin_memory If `TRUE`, PyTorch copies to pinned memory, which makes the way back faster.
#' @returns The value of `code`; of the `local_` functions `NULL`, invisibly.
#' @section Gradient:
#' That of the unpacked values.
#' @section Errors:
#' - `gradops_error_type`: `pack` or `unpack` is not a function.
#' - `gradops_error_gradient`, in the backward pass: `unpack()` returns another kind of tensor.
#' - `gradops_error_callback`: an error in `pack()` or `unpack()`, whose condition is the parent.
#' @references PyTorch: `torch.autograd.graph.saved_tensors_hooks` and `save_on_cpu`.
#' @seealso [checkpoint()], which saves less; [print_saved_residuals()].
#' @examplesIf gradops_available()
#' # what is saved waits on disk for the backward pass
#' pack <- function(x) {
#'   file <- tempfile()
#'   saveRDS(as.array(x), file)
#'   file
#' }
#' x <- parameter(c(1, 2))
#' y <- with_saved_tensors_hooks(sum(exp(x)), pack, readRDS)
#' backward(y)
#' x$grad
#' @export
with_saved_tensors_hooks <- function(code, pack, unpack) {
  run_in_scope(function(.local_envir) local_saved_tensors_hooks(pack, unpack, .local_envir), code)
}

#' @rdname with_saved_tensors_hooks
#' @export
local_saved_tensors_hooks <- function(pack, unpack, .local_envir = parent.frame()) {
  if (missing(pack) || missing(unpack)) {
    abort(
      "`pack` and `unpack` must be two functions: `unpack()` gets what `pack()` returns.",
      class = c("gradops_error_argument", "gradops_error"), argument = if (missing(pack)) "pack" else "unpack"
    )
  }
  check_function(pack)
  check_function(unpack)
  local_scope("autodiff.saved_tensors_hooks", callback(pack), callback(unpack), .local_envir = .local_envir)
}

#' @rdname with_saved_tensors_hooks
#' @export
with_save_on_cpu <- function(code, pin_memory = FALSE) {
  run_in_scope(function(.local_envir) local_save_on_cpu(pin_memory, .local_envir), code)
}

#' @rdname with_saved_tensors_hooks
#' @export
local_save_on_cpu <- function(pin_memory = FALSE, .local_envir = parent.frame()) {
  flag(pin_memory)
  local_scope("autodiff.save_on_cpu", pin_memory, .local_envir = .local_envir)
}

#' Find the call that made a wrong gradient
#'
#' In the code of `with_detect_anomaly()`, or after `local_detect_anomaly()` until the calling function ends, a gradient
#' that fails or is NaN raises an error that names the forward call it belongs to. Forward and backward pass must both
#' run in the scope. For debugging: recording is slower.
#' @inheritParams with_no_grad
#' @param check_nan If `TRUE`, a NaN stops the backward pass.
#' @returns The value of `code`; of `local_detect_anomaly()` `NULL`, invisibly.
#' @seealso [backward()], [with_profile()], [gradcheck()].
#' @examplesIf gradops_available()
#' # the slope of log() at 0 is infinite, and 0 times that is NaN
#' x <- parameter(0)
#' try(with_detect_anomaly(backward(log(x) * 0)))
#' @export
with_detect_anomaly <- function(code, check_nan = TRUE) {
  run_in_scope(function(.local_envir) local_detect_anomaly(check_nan, .local_envir), code)
}

#' @rdname with_detect_anomaly
#' @export
local_detect_anomaly <- function(check_nan = TRUE, .local_envir = parent.frame()) {
  flag(check_nan)
  local_scope("autodiff.detect_anomaly", check_nan, .local_envir = .local_envir)
}

# The R call of the operation that Python is recording, and the calls around it, one per line. The first one is the
# innermost call of a gradops or R function that the user's code, or the prompt, makes.
described_calls <- function() {
  calls <- sys.calls()
  parents <- sys.parents()
  users <- c(TRUE, vapply(seq_along(calls), is_users, NA)) # the first is the prompt
  ours <- which(!users[-1] & users[parents + 1])
  if (!length(ours)) {
    return(NULL)
  }
  at <- max(ours)
  lines <- character()
  while (at > 0 && length(lines) < 10) {
    lines <- c(lines, paste0("  ", described_call(calls[[at]], sys.frame(at))))
    at <- parents[at]
  }
  paste(lines, collapse = "\n")
}

# TRUE if a frame belongs to the user's code: to no package, or to a package outside `inner_packages`.
is_users <- function(i) {
  f <- sys.function(i)
  home <- topenv(if (is.primitive(f) || identical(f, base::eval)) sys.frame(i) else environment(f))
  !identical(home, baseenv()) && !(isNamespace(home) && getNamespaceName(home) %in% inner_packages)
}

inner_packages <- c("gradops", "reticulate", "rlang", "withr", "base")

described_call <- function(call, frame) {
  generic <- get0(".Generic", frame, inherits = FALSE)
  shown <- if (is.character(generic)) replace(call, 1, list(as.name(generic))) else call
  if (identical(shown[[1]], quote(.gradops_condition))) shown <- call(shown[[3]], shown[[2]], quote(...))
  text <- deparse(shown, nlines = 2)
  text <- if (length(text) > 1) paste(trimws(text[1]), "...") else text
  file <- utils::getSrcFilename(call)
  if (any(nzchar(file))) sprintf("%s  at %s:%d", text, file, utils::getSrcLocation(call, "line")) else text
}

#' Measure operations
#'
#' Runs code and measures its operations, forward and backward; torch's own operations are included if torch is loaded.
#' @param code Code to run.
#' @param sort_by `"self_time"`, `"total_time"`, `"mean_time"`, `"calls"`, `"bytes"` or `"name"`.
#' @param x A profile.
#' @param ... More arguments of [print.data.frame()] or [graphics::barplot()].
#' @returns A data frame with a row for each operation: `name`, `kind` (forward or backward), `calls`, `self` and
#'   `total` time in seconds, and `bytes` of its results. It prints with readable units; `plot()` draws the self times.
#' @section Errors:
#' - `gradops_error_argument`: an unknown `sort_by`.
#' @seealso [with_detect_anomaly()], [autodiff_graph()].
#' @examplesIf gradops_available()
#' x <- parameter(c(1, 2))
#' with_profile(backward(sum(exp(x)^2)))
#' @export
with_profile <- function(code, sort_by = "self_time") {
  profile <- call_core("autodiff.profiler.profile")
  run_in_scope(function(.local_envir) enter_scope(profile, .local_envir), code)
  columns <- py_to_r(call_core("interop.r.profile_rows", profile, sort_by))
  structure(as.data.frame(lapply(columns, unlist)), class = c("gradops_profile", "data.frame"))
}

#' @rdname with_profile
#' @export
print.gradops_profile <- function(x, ...) {
  print(readable(x), ...)
  invisible(x)
}

# A profile with times in milliseconds, as text.
readable <- function(x) {
  shown <- as.data.frame(x)
  class(shown) <- "data.frame"
  for (column in intersect(c("self", "total"), names(shown))) {
    shown[[column]] <- sprintf("%.4g ms", 1000 * shown[[column]])
  }
  shown
}
