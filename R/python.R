# Python: found and started at first use, called, and its failures made conditions.

# The ops' R forms (Python functions of gradops.interop.r), by name, and the other functions of the core.
ops <- new.env(parent = emptyenv())
core <- new.env(parent = emptyenv())

failure_class <- "gradops.interop.r.Failure"

# Call an op's R form: the arguments by position, in Python's order.
call_op <- function(.op, ...) {
  form <- ops[[.op]]
  if (is.null(form)) form <- load_op(.op)
  answer(py_call(form, ...), parent.frame())
}

# Call a function of the core, by its dotted Python name.
call_core <- function(.name, ..., .call = parent.frame()) {
  answer(py_call(core[[.name]] %||% load_core(.name), ...), .call)
}

# The result of a call into Python, or the condition it stands for, signalled from `call`.
answer <- function(result, call) {
  result <- withCallingHandlers(result, error = function(error) if_theirs(error, call))
  if (class(result)[1L] == failure_class) raise(result, call)
  if (length(conditions) > 0 && callbacks() == 0) forget_conditions() # Python went on after an error
  result
}

load_op <- function(name) {
  ops[[name]] <- py_call(bridge()$op, name)
}

load_core <- function(name) {
  core[[name]] <- py_call(bridge()$attribute, name)
}

# A function of gradops.interop.r as it is: it raises nothing.
load_bridge <- function(name) {
  core[[name]] <- bridge()[[name]]
}

# The module gradops.interop.r; starts Python.
bridge <- function() {
  state$bridge %||% start_python()
}

state <- new.env(parent = emptyenv())

start_python <- function() {
  path <- system.file("python", package = "gradops")
  bridge <- tryCatch(
    reticulate::import_from_path("gradops.interop.r", path = path, convert = FALSE),
    error = function(error) {
      abort(
        c(
          "gradops needs Python (>= 3.10) with NumPy and SciPy, and could not start it.",
          i = "To use a Python of yours, set the environment variable `RETICULATE_PYTHON` to it before R starts.",
          i = "Without one, `reticulate::install_python()` installs it."
        ),
        class = c("gradops_error_python", "gradops_error"), parent = error, call = NULL
      )
    }
  )
  state$bridge <- bridge
  py_call(bridge$set_adopt, function(capsule) callback(py_to_r(capsule)))
  py_call(bridge$set_warn, callback(python_warning))
  py_call(bridge$set_progress, callback(show_progress))
  hold_interrupts(bridge)
  apply_options()
  bridge
}

# A warning of Python's.
python_warning <- function(message, category) {
  rlang::warn(
    r_wording(py_to_r(message)),
    class = c("gradops_warning_python", "gradops_warning"), category = py_to_r(category), call = NULL
  )
  NULL
}

# Failures -------------------------------------------------------------------------------------------------------------

raise <- function(failure, call) {
  fields <- py_to_r(py_call(failure$fields))
  parent <- if (fields$kind == "callback") take_condition(fields$key)
  if (!is.null(parent)) {
    callback_failed(parent, call, fields$model)
  }
  abort(
    c(r_message(fields), i = if (!is.null(fields$hint)) r_wording(fields$hint)),
    class = c(paste0("gradops_error_", fields$kind), "gradops_error"),
    argument = fields$argument, python = failure$error, call = call, footer = traceback_of(failure)
  )
}

# The condition that an R function called from Python raised, in an error that has its classes and fields too, so that
# `tryCatch(class = )` finds it.
callback_failed <- function(parent, call, model = NULL) {
  if (inherits(parent, "gradops_jump")) {
    jump_again(parent)
  }
  if (inherits(parent, "gradops_error") && is.null(model)) {
    rlang::cnd_signal(parent)
  }
  is_python <- inherits(parent, "python.builtin.object")
  fields <- if (is_python) list() else unclass(parent)
  fields <- fields[setdiff(names(fields), c("", "message", "call", "parent", "trace", "body", "footer", "rlang"))]
  own <- if (!is_python) setdiff(class(parent), c("simpleError", "rlang_error", "error", "condition"))
  rlang::inject(abort(
    model %||% "An R function that gradops called has failed.",
    class = c(if (!is.null(model)) "gradops_error_model", "gradops_error_callback", "gradops_error", own),
    parent = parent, call = call, !!!fields
  ))
}

# Python's traceback, for those who ask.
traceback_of <- function(failure) {
  if (isTRUE(getOption("gradops.traceback"))) {
    c("Python traceback:", strsplit(py_to_r(py_call(failure$traceback)), "\n", fixed = TRUE)[[1]])
  }
}

r_message <- function(fields) {
  position <- fields$position
  bound <- fields$bound
  if (is.null(position) || is.null(bound)) {
    return(r_wording(fields$message))
  }
  allowed <- if (bound == 0) {
    "does not fit: there are no dimensions or elements"
  } else {
    sprintf("must be from 1 to %d, or from -1 to -%d counted from the end", bound, bound)
  }
  sprintf("`%s` %s; got %d.", fields$argument, allowed, if (position < 0) position else position + 1L)
}

# A library's own message on a position that is out of range.
out_of_range <- "index (-?\\d+) is out of (?:bounds|range)(?: for axis (\\d+) with size (\\d+))?.*"

# What Python's hints tell to do, in R.
in_r <- c(
  "compute `y` inside `with tf.GradientTape(persistent=True) as tape:` with `tape.watch(x)`, or use `grad" =
    "use `grad",
  "end it with `return value, grad`" = "end it with `list(value, grad)`",
  "`x = gradops.Variable(x, requires_grad=True)`" = "`x <- variable(x, requires_grad = TRUE)`",
  "`grad(f)`" = "`gradient(f, x)`",
  "`text.backward(\"shorter, please\")`" = "`backward(text, \"shorter, please\")`",
  "`text.split`" = "`text_split()`",
  "`text.join`" = "`text_join()`",
  "`ops.stack`" = "`c()`",
  "`text.format(\"{} grams\", x)`" = "`paste(x, \"grams\")`",
  "`as_model(client, \"name-of-the-model\")`" = "`text_as_model(client, \"name-of-the-model\")`",
  "`remembered(model, path, " = "`text_remembered(model, path, ",
  "`Parameter(\"...\", role=\"instruction\")`" = "`parameter(\"...\", role = \"instruction\")`",
  "`lambda prompt, system: ...`" = "`function(prompt, system) ...`",
  "messages are `[{\"role\": \"user\", \"content\": text}]`; several texts are `Variable([...])`" =
    "messages are `list(list(role = \"user\", content = text))`",
  "bad one say why: `return \"too long\"`" = "bad one say why: `\"too long\"`",
  "; or pass a client or a function" = " in Python; or pass a client or a function",
  "got str." = "got character."
)

# Inputs, outputs and elements that are named by their number.
counted_from_one <- function(text) {
  shift <- function(text, pattern) {
    found <- gregexpr(pattern, text, perl = TRUE)
    regmatches(text, found) <- lapply(regmatches(text, found), function(number) as.integer(number) + 1L)
    text
  }
  text <- gsub("`(\\w+)\\[(\\d+)\\]`", "`\\1[[\\2]]`", text)
  text <- shift(text, "(?<=\\[\\[)\\d+(?=\\]\\]`)")
  if (startsWith(text, "gradcheck: ")) {
    text <- shift(text, "(?<= \\[|\\d, )\\d+(?=[,\\]])") # elements
  }
  if (grepl("^gradcheck: |as the gradient of its input", text)) text <- shift(text, "(?<=input |output )\\d+")
  text
}

# Python's words in R's: `op_exp()` for `gradops.ops.exp`, `NULL` for `None`, no repeated op name.
r_wording <- function(text) {
  text <- sub("^`[a-z_.0-9]+`: ", "", text)
  found <- regmatches(text, regexec(out_of_range, text, perl = TRUE))[[1]]
  if (length(found)) {
    position <- as.integer(found[2])
    size <- if (nzchar(found[4])) sprintf(": dimension %d has size %s", as.integer(found[3]) + 1L, found[4]) else ""
    text <- sprintf("position %d is out of range%s.", position + (position >= 0), size)
  }
  text <- gsub("(?<![\\w.])(gradops\\.)?ops\\.(?=[a-z])", "op_", text, perl = TRUE)
  text <- gsub("gradops\\.(functional|autodiff)\\.|gradops\\.(?=[a-z])", "", text, perl = TRUE)
  text <- gsub("gradops\\.config\\.([a-z_]+)", "config_\\1", text)
  argument <- regmatches(text, regexec("^argument (\\d+) ", text))[[1]]
  if (length(argument)) {
    text <- sub("\\d+", as.integer(argument[2]) + 1L, text)
  }
  axes <- gregexpr("(?<=axis |dimension )\\d+", text, perl = TRUE)
  regmatches(text, axes) <- lapply(regmatches(text, axes), function(axis) as.integer(axis) + 1L)
  text <- gsub("(\\(\\d+),\\)", "\\1)", text)
  text <- gsub("<function callback\\..*? at 0x[0-9a-f]+> of type function", "an R function", text, perl = TRUE)
  text <- gsub("'([^']*)' of type str\\b", '"\\1"', text)
  text <- gsub("(\\S+) of type (float|int|bool)\\b", "\\1", text)
  text <- sub("(must be a whole number; got) (True|False)\\.", "\\1 a logical value.", text)
  text <- counted_from_one(text)
  for (python in names(in_r)) text <- gsub(python, in_r[[python]], text, fixed = TRUE)
  text <- sub("(must not name a dimension twice); got .*", "\\1.", text)
  text <- gsub("\\bNone(Type)?\\b", "NULL", text)
  text <- gsub("\\bTrue\\b", "TRUE", text)
  text <- gsub("\\bFalse\\b", "FALSE", text)
  sub("pip install 'gradops\\[(\\w+)\\]'", "call `use_backend(\"\\1\")` in a fresh R session", text)
}
