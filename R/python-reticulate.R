# All that gradops knows of reticulate's insides on R's side; interop/r/reticulate.py has what it knows on Python's.
# Where a version lacks one, `reticulate_lacks()` names it and what is here does without.

reticulate_insides <- list(
  py_call_impl = c("x", "args", "keywords"), install_interrupt_handlers = character(),
  py_register_load_hook = c("module", "hook")
)

# A function of its namespace, if it has the formals that are known.
reticulate_inside <- function(name) {
  f <- get0(name, asNamespace("reticulate"), mode = "function", inherits = FALSE)
  if (identical(as.character(names(formals(f))), reticulate_insides[[name]])) f
}

reticulate_lacks <- function() {
  here <- vapply(names(reticulate_insides), function(name) is.null(reticulate_inside(name)), NA)
  c(names(reticulate_insides)[here], as.character(py_to_r(py_call(bridge()$missing))))
}

# A call of a Python object with lists of its arguments, those without and those with names.
reticulate_caller <- function(inside = reticulate_inside("py_call_impl")) {
  inside %||% function(x, args, keywords) do.call(reticulate::py_call, c(list(x), args, keywords))
}

# Have Python call the handler of interrupts that it holds now.
install_interrupt_handlers <- function() {
  install <- reticulate_inside("install_interrupt_handlers")
  if (!is.null(install)) install()
}

# Its errors about an object of another session, and about a value that Python has none for, as ours.
if_theirs <- function(error, call) {
  message <- conditionMessage(error)
  if (grepl("previous session", message, fixed = TRUE)) stale(call)
  if (grepl("cannot be converted to python|Unable to convert R object", message)) {
    abort(
      "An argument must be a tensor, a number, a string, TRUE or FALSE, or a list of these.",
      class = c("gradops_error_type", "gradops_error"), parent = error, call = call
    )
  }
}

# The function that RStudio asks for help on Python's names.
help_handler <- "reticulate:::help_handler"
