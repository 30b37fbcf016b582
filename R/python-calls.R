# Calls with a user's arguments.

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

# The name that `f` gives an argument.
argument_name <- function(f, i) {
  name <- names(formals(args(f)))[i]
  if (is.null(name) || is.na(name) || name == "...") "x" else name
}

# Call a Python function that may raise, with R's arguments: see `invoke()` in interop/r/calls.py for what `numbers`
# become, what the function needs to `keep`, and results `in_r`.
call_python <- function(f, arguments, numbers = NULL, keep = NULL, in_r = FALSE, call = users_call()) {
  named <- nzchar(rlang::names2(arguments))
  call_core(
    "interop.r.invoke", f, lapply(unname(arguments[!named]), operand, "..."), lapply(arguments[named], operand, "..."),
    numbers, keep, in_r, .call = call
  )
}
