# Conversion of R values for Python, and back.

# A tensor argument: Python objects unchanged, R values in the form that gradops.interop.r expects.
operand <- function(x, name = substitute(x), call = parent.frame()) {
  if (is.environment(x)) x else as_python(x, name, call)
}

# An argument of positions, groups or classes: a factor stands for its level numbers, counted from 1.
positions <- function(x, zero_indexed = FALSE, name = substitute(x), call = parent.frame()) {
  if (is.factor(x)) x <- as.integer(x) - as.integer(flag(zero_indexed, call = call))
  operand(x, name, call)
}

# Numbers are passed as numbers, without NA; arrays as a marked NumPy view, so that Python knows that they are R's;
# functions as callbacks; lists element by element; data frames as matrices.
as_python <- function(x, name = "x", call = NULL) {
  if (is.object(x)) x <- drop_class(x, name, call)
  switch(typeof(x),
    environment = , `NULL` = x,
    character = {
      check_words(x, name, call)
      x
    },
    closure = , builtin = , special = callback(x),
    list = {
      named <- all(nzchar(rlang::names2(x))) # all or none
      attributes(x) <- list(names = if (named) names(x))
      lapply(x, as_python, name = name, call = call)
    },
    integer = , logical = , double = , complex = {
      if (!is.complex(x) && anyNA(x)) storage.mode(x) <- "double"
      if (length(x) == 1L && is.null(dim(x))) as.vector(x) else list(`<R>` = array_of(x))
    },
    not_numeric(name, x, call)
  )
}

callback_value <- "the function's value"

# Raise an error for a missing string, which would become the word "NA".
check_words <- function(x, name = substitute(x), call = parent.frame()) {
  if (is.character(x) && anyNA(x)) {
    if (!is.character(name)) name <- deparse1(name)
    abort(
      c(
        sprintf("%s has a missing text, at %s.", quoted_name(name), toString(which(is.na(x)))),
        i = "Leave it out, or use \"\" for an empty one."
      ),
      class = c("gradops_error_argument", "gradops_error"), argument = name, call = call
    )
  }
}

# The name of an argument in backticks, or a description as it is.
quoted_name <- function(name) {
  if (grepl(" ", name, fixed = TRUE)) name else sprintf("`%s`", name)
}

not_numeric <- function(name, x, call, instead = NULL) {
  if (!is.character(name)) name <- deparse1(name)
  abort(
    c(
      sprintf(
        "%s must be a tensor, or numeric, logical, complex, or a list of these; got %s.",
        quoted_name(name), friendly(x)
      ),
      i = instead
    ),
    class = c("gradops_error_type", "gradops_error"), argument = name, call = call
  )
}

# R values without their class: numbers, and matrices of data frames; Python objects and functions unchanged. Factors,
# dates and the like are errors, as their numbers are codes for something else.
drop_class <- function(x, name, call) {
  if (is_of_r_torch(x)) refuse_r_torch(name, call)
  if (is.environment(x) || is.function(x)) {
    x
  } else if (is.data.frame(x)) {
    for (column in x) column_number(column, name, call)
    data.matrix(x)
  } else {
    if (is_coded(x)) has_codes(x, name, call)
    unclass(x)
  }
}

# TRUE for a tensor of the R package torch, which is not a Python object.
is_of_r_torch <- function(x) {
  inherits(x, "torch_tensor")
}

refuse_r_torch <- function(name, call) {
  if (!is.character(name)) name <- deparse1(name)
  abort(
    c(
      sprintf("`%s` is a tensor of the R package torch, whose memory Python cannot read.", name),
      i = "Use `as.array(x)`; its gradients end there. See `vignette(\"with-keras3\")` on carrying code over."
    ),
    class = c("gradops_error_type", "gradops_error"), argument = name, call = call
  )
}

column_number <- function(x, name, call) {
  if (is_coded(x)) has_codes(x, name, call)
  if (!is_number(x) && !is.logical(x)) not_numeric(name, x, call)
}

is_coded <- function(x) {
  numbers <- is_number(x) || is.logical(x)
  inherits(x, partly_numbers) || is.object(x) && typeof(x) %in% c("integer", "double") && !numbers
}

# Classes whose numbers are only part of their value: codes, times with censoring, lengths without their unit.
partly_numbers <- c("integer64", "POSIXlt", "Surv", "units", "numeric_version")

has_codes <- function(x, name, call) {
  if (!is.character(name)) name <- deparse1(name)
  instead <- if (is.factor(x)) "as.integer()" else "as.numeric()"
  abort(
    c(
      sprintf(
        "%s must be a tensor or numbers; got %s, whose numbers are only codes for it.",
        quoted_name(name), friendly(x)
      ),
      i = sprintf("Use `%s` of it if the numbers are meant.", instead)
    ),
    class = c("gradops_error_type", "gradops_error"), argument = name, call = call
  )
}

# `x` without attributes other than dim.
array_of <- function(x, dim = base::dim(x) %||% length(x)) {
  force(dim)
  attributes(x) <- NULL
  dim(x) <- dim
  x
}

# Arrays that Python made for R, with one-dimensional arrays as vectors; arrays of length one only if `single`.
vectors <- function(x, single = TRUE) {
  if (is.list(x)) {
    lapply(x, vectors, single)
  } else if (length(dim(x)) == 1 && (single || length(x) > 1)) {
    as.vector(x)
  } else {
    x
  }
}

# A Python tuple or list of tensors as an R list.
several <- function(x) {
  front <- front_classes(class(x))
  if (!is.null(front)) {
    class(x) <- front
    x
  } else if (inherits(x, c("python.builtin.list", "python.builtin.tuple"))) {
    (reticulate::iterate(x, several, simplify = FALSE)) # parentheses make the result visible
  } else if (inherits(x, "python.builtin.dict")) {
    values <- reticulate::iterate(x$values(), several, simplify = FALSE)
    names(values) <- as.character(reticulate::iterate(x$keys(), py_to_r))
    values
  } else {
    as_r_scalar(x)
  }
}

# R functions ----------------------------------------------------------------------------------------------------------

# Python's numbers, strings and None as R's, tensors as gradops'; any other object unchanged.
as_r_scalar <- function(x) {
  if (class(x)[1] %in% python_scalars) py_to_r(x) else own(x)
}

python_scalars <- paste0("python.builtin.", c("bool", "int", "float", "str", "NoneType"))

# Conditions raised in callbacks wait here until the call into Python that they end returns.
conditions <- new.env(parent = emptyenv())

keep_condition <- function(condition) {
  if (length(conditions) > 100) {
    forget_conditions()
  }
  state$conditions <- ((state$conditions %||% 0) + 1) %% 1000 # R never frees the names in an environment
  key <- as.character(state$conditions)
  conditions[[key]] <- condition
  key
}

# A jump out of a callback (to a handler of `tryCatch()`, to a restart) must not skip Python's frames. So the callback
# ends with an error, and once Python has returned, the condition is signalled again, which repeats the jump.
jumped <- function(condition) {
  message <- "it was left by a jump to outside, such as by `callCC()` or a restart."
  jump <- structure(
    class = c("gradops_jump", "error", "condition"), list(message = message, call = NULL, signalled = condition)
  )
  list(`<R error>` = keep_condition(jump), message = message, python = NULL)
}

jump_again <- function(jump) {
  condition <- jump$signalled
  if (inherits(condition, "warning")) {
    warning(condition)
  } else if (inherits(condition, "message")) {
    message(condition)
  } else if (!is.null(condition)) {
    signalCondition(condition)
  }
}

take_condition <- function(key) {
  condition <- conditions[[key]]
  forget_conditions()
  condition
}

forget_conditions <- function() {
  rm(list = ls(conditions), envir = conditions)
}

# Check TRUE or FALSE before passing it to Python, where NA would be true; `null` also allows `NULL`.
flag <- function(x, null = FALSE, name = substitute(x), call = parent.frame()) {
  if (!(is.logical(x) && length(x) == 1L && !is.na(x) || null && is.null(x))) {
    if (!is.character(name)) name <- deparse1(name)
    abort(
      sprintf("`%s` must be TRUE or FALSE; got %s.", name, friendly(x)),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
  x
}

# A logical setting as R's own functions take it: any number but 0 is TRUE.
is_set <- function(x) {
  !isFALSE(as.logical(x)[1L])
}

check_number <- function(x, name = rlang::caller_arg(x), call = caller_env()) {
  if (!is.numeric(x) || length(x) != 1 || is.object(x) || !is.finite(x)) {
    abort(
      sprintf("`%s` must be a number; got %s.", name, friendly(x)),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
}

# A short description of a value; a single number, text or logical value is shown.
friendly <- function(x) {
  if (is.null(x)) { # cli cannot describe NULL
    return("NULL")
  }
  if (is.atomic(x) && length(x) == 1L && is.null(attributes(x))) {
    return(strtrim(deparse(x, nlines = 1L, control = NULL)[1L], 60L))
  }
  cli::format_inline("{.obj_type_friendly {x}}")
}

# The error for unknown arguments in `...`; it suggests gradops' name of the argument.
no_argument <- function(..., call = parent.frame()) {
  own <- setdiff(names(formals(sys.function(sys.parent()))), "...")
  wrong <- setdiff(rlang::names2(substitute(list(...))), "")
  instead <- if (length(wrong) > 0) intersect(closest(wrong[1], own), own)
  abort(
    c(
      sprintf(
        "It has the arguments %s, and %s.", toString(sprintf("`%s`", own)),
        if (length(wrong) > 0) sprintf("none called `%s`", wrong[1]) else "no others"
      ),
      i = if (length(instead) > 0) sprintf("Write `%s =`.", instead[1])
    ),
    class = c("gradops_error_type", "gradops_error"), argument = if (length(wrong) > 0) wrong[1] else "...", call = call
  )
}

# Usual names of arguments, components and backends that have another name here.
other_names <- c(
  dim = "axis", keepdim = "keepdims", gradient = "gr", grad = "gr", hessian = "he", hess = "he", objective = "fn",
  np = "numpy", pytorch = "torch", tf = "tensorflow"
)

# The known names that are most similar to a name.
closest <- function(name, known) {
  if (other_names[name] %in% known) {
    return(other_names[[name]])
  }
  swapped <- vapply(seq_len(max(0, nchar(name) - 1)), \(i) sub(sprintf("^(.{%d})(.)(.)", i - 1), "\\1\\3\\2", name), "")
  if (any(swapped %in% known)) {
    return(intersect(swapped, known))
  }
  away <- utils::adist(name, known)[1, ]
  known[away == min(away) & away <= max(1, nchar(name) / 4) & away < nchar(name)]
}

# The hint for an unknown word, if a known one is similar.
meant <- function(word, known) {
  like <- if (rlang::is_string(word)) closest(word, known)
  if (length(like) > 0) sprintf("Did you mean \"%s\"?", like[1])
}

# Like match.arg(), with a gradops error that suggests the word that was meant.
chosen <- function(argument, choices = eval(formals(sys.function(sys.parent()))[[name]]), several = FALSE,
                   name = deparse(substitute(argument)), call = caller_env()) {
  force(name)
  force(choices)
  tryCatch(match.arg(argument, choices, several.ok = several), error = function(error) {
    unsupported(
      name, sprintf("must be one of %s; got %s.", toString(dQuote(choices, FALSE)), deparse1(argument)),
      meant(argument, choices), call
    )
  })
}

# `x$name` for lists of gradops: NULL for an unknown name, as in any list, but an error for a likely typing error.
component <- function(x, name, call = caller_env()) {
  found <- .subset2(x, name, exact = FALSE)
  if (!is.null(found) || any(startsWith(names(x), name))) {
    return(found)
  }
  if (!is.null(hint <- meant(name, names(x)))) {
    abort(
      c(sprintf("There is no component `%s`; there are %s.", name, toString(names(x))), i = hint),
      class = c("gradops_error_argument", "gradops_error"), argument = "name", call = call
    )
  }
  found
}

#' @export
`$.gradops_fit` <- function(x, name) component(x, name)

#' @export
`$.gradops_objective` <- function(x, name) component(x, name)

#' @export
`$.gradops_graph` <- function(x, name) component(x, name)

# Positions of a function's arguments, as integers; names are looked up in the formals of `f`.
argument_positions <- function(x, f, name = rlang::caller_arg(x), call = parent.frame()) {
  if (is.character(x) && all(x %in% names(formals(args(f))))) {
    x <- match(x, names(formals(args(f))))
  }
  own <- formals(args(f))
  most <- if (is.null(own) || "..." %in% names(own)) Inf else length(own)
  if (!is.numeric(x) || is.object(x) || !all(is.finite(x) & x == round(x) & abs(x) <= most)) {
    unsupported(
      name, "must be names of arguments of the function, or positions, counted from 1.",
      if (name == "argnums") "The point at which to differentiate goes to the function that this returns.", call
    )
  }
  as.integer(x)
}

# Calls with a user's arguments.

# Arguments with the first `count` of f's formals unnamed, as Python passes them by position.
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

# The frame of the gradops function that was called from outside; errors are signalled from there.
users_call <- function(at = sys.parent()) {
  repeat {
    caller <- sys.parents()[at]
    if (caller == 0 || caller >= at || !identical(topenv(sys.frame(caller)), topenv())) {
      return(sys.frame(at))
    }
    at <- caller
  }
}

# The name of the i-th argument of `f`.
argument_name <- function(f, i) {
  name <- names(formals(args(f)))[i]
  if (is.null(name) || is.na(name) || name == "...") "x" else name
}

# Call a Python function that may raise, with R's arguments. See `invoke()` in interop/r/calls.py for the conversion of
# `numbers`, the objects that the function needs to `keep` alive, and results `in_r`.
call_python <- function(f, arguments, numbers = NULL, keep = NULL, in_r = FALSE, call = users_call()) {
  named <- nzchar(rlang::names2(arguments))
  call_core(
    "interop.r.invoke", f, lapply(unname(arguments[!named]), operand, "..."), lapply(arguments[named], operand, "..."),
    numbers, keep, in_r, .call = call
  )
}
