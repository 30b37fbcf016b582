# Callbacks for R functions that are differentiated.

# Make `f` callable from Python. Its arguments have the names they had in R (`here$names`). With `joined`, a list that
# `f` returns becomes one vector, with the names `here$rows`. `here$several` says whether `f` returned a list.
differentiated <- function(f, here, joined = FALSE) {
  force(f)
  force(here)
  force(joined)
  if (inside() == 0) state$warned <- FALSE # once for all calls that one derivative makes
  function(...) {
    shared <- FALSE
    if (inside() == 0) {
      state$lazy <- NULL
      state$missing <- NULL
      state$replaces <- NULL # set again by the functions of this call, see copy_of()
      state$in_time <- NULL
      state$heard <- NULL
      state$sinks <- sink.number()
      shared <- share_with_series()
    }
    state$inside <- inside() + 1
    on.exit({
      state$inside <- inside() - 1
      if (shared) leave_to_stats()
    })
    arguments <- Map(with_names, list(...), c(here$names, list(NULL))[seq_len(...length())])
    value <- withCallingHandlers(do.call(tensor_aware(f), arguments), error = explain_branch)
    check_dependence(value, arguments)
    if (!is.null(state$missing)) value <- poisoned(value, arguments)
    here$several <- is.list(value)
    if (joined) {
      here$rows <- names_of_elements(value)
      value <- one_vector(value)
    }
    value
  }
}

# Warn about plain R values (also TRUE or NA) in the result of tensors: they have no gradient.
check_dependence <- function(value, arguments) {
  if (!state$warned && is_plain(value) && any(vapply(arguments, is_recorded, NA))) {
    state$warned <- TRUE
    rlang::warn(
      c(
        paste(
          "The function returned plain values: as far as gradops can see they do not depend on `x`, so the gradient",
          "is 0."
        ),
        i = "A step may have taken values out of a tensor. Return an intended constant by `op_convert_to_tensor()`."
      ),
      class = c("gradops_warning_gradient", "gradops_warning"), call = NULL
    )
  }
}

is_plain <- function(value) {
  !is.null(value) && all(vapply(leaves_of(value), function(x) is.atomic(x) && !is.character(x), NA))
}

# R's `if` and `while` cannot take tensors, and R's message about them does not help.
explain_branch <- function(condition, class = "gradops_error_type") {
  explain_hint(condition, class, hints)
  explain_stopifnot(condition, class)
  call <- conditionCall(condition)
  is_missing <- identical(conditionMessage(condition), gettext("missing value where TRUE/FALSE needed", domain = "R"))
  if (inherits(condition, "simpleError") && !is_missing && rlang::is_call(call, c("if", "while"))) {
    abort(
      c(
        sprintf("`%s` looked at a value: its condition is a tensor, not TRUE or FALSE.", as.character(call[[1]])),
        i = "Use `op_where()` or `op_cond()`; or `as.logical()` of the condition, where values are known."
      ),
      class = c(class, "gradops_error"), parent = condition, call = NULL
    )
  }
  explain_own(condition, class)
  explain_hint(condition, class, hints_of_own_code)
}

# The message of `stopifnot()` about a tensor is wrong, as it takes R's logicals only. Its frame still exists, so its
# arguments show whether one is a tensor.
explain_stopifnot <- function(condition, class) {
  if (!inherits(condition, "simpleError") || !grepl(" not (all )?TRUE$", conditionMessage(condition))) {
    return()
  }
  calls <- Filter(function(i) identical(sys.function(i), base::stopifnot), seq_len(sys.nframe()))
  if (length(calls) > 0 && is_tensor(get0("r", sys.frame(max(calls)), inherits = FALSE))) {
    abort(
      c(
        "`stopifnot()` takes TRUE and FALSE only; it was given a tensor, whose values it did not check.",
        i = "Write `stopifnot(as.logical(all(p > 0)))`, where values are known."
      ),
      class = c(class, "gradops_error"), parent = condition, call = NULL
    )
  }
}

# Make `f` count as a function that is being differentiated, also when a backward pass calls it.
running_inside <- function(f) {
  force(f)
  function(...) {
    state$inside <- inside() + 1
    on.exit(state$inside <- inside() - 1)
    tensor_aware(f)(...)
  }
}

# The number of functions that are being differentiated.
inside <- function() {
  state$inside %||% 0
}

vector_callback <- function(f, x) {
  here <- new.env()
  here$names <- list(names_within(x))
  callback(differentiated(f, here, joined = TRUE))
}

# Join a list of numbers and tensors into one vector in R's order, as `c()` does.
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

# `f` with further arguments that are the same at each call.
with_extra <- function(f, extra) {
  if (length(extra) > 0) function(...) do.call(tensor_aware(f), c(list(...), lapply(extra, tensor_aware))) else f
}

# A function and the point at which it is differentiated: the inputs for gradops.functional, and the form of the result.
point <- function(func, x, extra, call = parent.frame()) {
  check_function_at(func, x, name = "func", call = call)
  check_differentiable(x, "x", call)
  at <- list(
    x = x, several = is.list(x), named = is.list(x) && !is.null(names(x)), numbers = gives_numbers(x),
    leaves = if (is.list(x)) leaves_of(x) else list(x), here = new.env(), call = call
  )
  f <- with_extra(func, extra)
  if (at$named) {
    parameters <- f
    f <- function(...) tensor_aware(parameters)(rebuilt(x, list(...)))
  }
  at$here$names <- lapply(at$leaves, names_within)
  at$f <- callback(differentiated(f, at$here, joined = at$numbers))
  at
}

# The inputs for Python: a tensor, or a tuple of them.
inputs_of <- function(at) {
  leaves <- lapply(as_doubles(at$leaves), operand)
  if (at$several) do.call(tuple, leaves) else leaves[[1]]
}

evaluate_at <- function(at, name, arguments) {
  inputs <- inputs_of(at)
  if (at$numbers) {
    py_to_r(rlang::inject(call_core("interop.r.derivative", name, at$f, inputs, !!!arguments, .call = at$call)))
  } else {
    several(rlang::inject(call_core(paste0("functional.", name), at$f, inputs, !!!arguments, .call = at$call)))
  }
}

# The results, one for each input, in the form of the inputs.
results_form <- function(results, at) {
  if (!at$several) results[[1]] else if (at$named) rebuilt(at$x, results) else results
}
