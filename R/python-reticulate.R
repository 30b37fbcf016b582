# Everything that gradops assumes about reticulate's internals on R's side; interop/r/reticulate.py has the assumptions
# on Python's. If a version lacks one, `reticulate_lacks()` names it, and the code here works without it.

reticulate_insides <- list(
  py_call_impl = c("x", "args", "keywords"), install_interrupt_handlers = character(),
  py_register_load_hook = c("module", "hook")
)

# A function of reticulate's namespace, if it has the expected formals.
reticulate_inside <- function(name) {
  f <- get0(name, asNamespace("reticulate"), mode = "function", inherits = FALSE)
  if (identical(as.character(names(formals(f))), reticulate_insides[[name]])) f
}

reticulate_lacks <- function() {
  here <- vapply(names(reticulate_insides), function(name) is.null(reticulate_inside(name)), NA)
  c(names(reticulate_insides)[here], as.character(py_to_r(py_call(bridge()$missing))))
}

# Call a Python object with lists of its arguments, without and with names.
reticulate_caller <- function(inside = reticulate_inside("py_call_impl")) {
  inside %||% function(x, args, keywords) do.call(reticulate::py_call, c(list(x), args, keywords))
}

# Make reticulate install the interrupt handler that Python holds now.
install_interrupt_handlers <- function() {
  install <- reticulate_inside("install_interrupt_handlers")
  if (!is.null(install)) install()
}

# Convert reticulate's errors about an object of another session, and about a value without a Python form, to gradops'
# errors.
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

# The function that RStudio calls for help on Python's names.
help_handler <- "reticulate:::help_handler"
