# Prints the functions that one call from R, `op_exp(x)` of a tensor, runs on its way to NumPy and back. R's closures
# are recorded by a line added to each, Python's functions by its profiler. Compiled functions (`list()`, `.Call()`,
# `numpy.exp`) do not count.
#
#     Rscript benchmarks/walk.R

suppressMessages(library(gradops))
x <- op_convert_to_tensor(c(1, 2, 3))
for (time in 1:3) invisible(op_exp(x))

python <- reticulate::py_run_string("
import os, sys
seen = []
def note(frame, event, argument):
    if event == 'call' and os.path.basename(frame.f_code.co_filename) != '<string>':
        seen.append(frame.f_code.co_name)
def begin():
    seen.clear()
    sys.setprofile(note)
")

walk <- new.env()
note <- function(name) if (isTRUE(walk$on)) walk$names[[length(walk$names) + 1]] <- name
noted <- function(name, namespace) {
  f <- get(name, namespace)
  if (typeof(f) != "closure") {
    return()
  }
  body(f) <- as.call(list(as.name("{"), as.call(list(note, name)), body(f)))
  if (bindingIsLocked(name, namespace)) unlockBinding(name, namespace)
  assign(name, f, namespace)
}
for (package in c("gradops", "reticulate", "rlang")) {
  namespace <- asNamespace(package)
  for (name in setdiff(ls(namespace, all.names = TRUE), c("isTRUE", "%*%"))) noted(name, namespace)
}
for (name in c("withCallingHandlers", "suspendInterrupts", "inherits", "parent.frame", "tryCatch", "%||%", "lapply")) {
  if (exists(name, baseenv())) noted(name, baseenv())
}
imported <- parent.env(asNamespace("gradops"))
if (exists("%||%", imported, inherits = FALSE)) noted("%||%", imported)
op_exp <- get("op_exp", asNamespace("gradops"))
invisible(op_exp(x))

begin <- python$begin
stop_profile <- reticulate::py_eval("__import__('sys').setprofile", convert = FALSE)
watched <- function() { # in one expression, because reticulate runs a task of its own after each
  begin()
  walk$on <- TRUE
  op_exp(x)
  walk$on <- FALSE
  stop_profile(NULL)
}
watched()
r <- unlist(walk$names)
found <- unlist(reticulate::py_eval("seen"))
last <- max(which(found == "getmro" & c(FALSE, found[-length(found)] == "kernel"))) # the class of the result
found <- found[seq(match("call", found), last)]
cat(sprintf("%d functions: %d of R's, %d of Python's\n", length(r) + length(found), length(r), length(found)))
cat("R:      ", toString(r), "\n")
cat("Python: ", toString(found), "\n")
