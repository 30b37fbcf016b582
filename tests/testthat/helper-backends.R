# Python's tests check every op and rule on four backends, so test_each() runs on NumPy alone, and with GRADOPS_LONG
# (make test-long) on every backend. test_contract() always runs on every backend: it checks what R passes to a library
# and gets back. GRADOPS_BACKEND names one backend. CRAN runs NumPy. GRADOPS_REQUIRE_BACKENDS=1 makes an absent backend
# a failure.

# JAX compiles each operation for each shape. No test needs its optimizations.
if (!nzchar(Sys.getenv("JAX_DISABLE_MOST_OPTIMIZATIONS"))) Sys.setenv(JAX_DISABLE_MOST_OPTIMIZATIONS = "1")

# torch's compiled code is deleted with the session.
if (!nzchar(Sys.getenv("TORCHINDUCTOR_CACHE_DIR"))) {
  Sys.setenv(TORCHINDUCTOR_CACHE_DIR = file.path(tempdir(), "torchinductor"))
}

all_backends <- c("numpy", "torch", "tensorflow", "jax")

test_backends <- function() {
  named <- Sys.getenv("GRADOPS_BACKEND")
  if (nzchar(named)) named else if (identical(Sys.getenv("NOT_CRAN"), "true")) all_backends else "numpy"
}

skip_without <- function(backend = NULL) {
  if (!gradops_available(backend)) {
    if (nzchar(Sys.getenv("GRADOPS_REQUIRE_BACKENDS"))) {
      fail(paste("not available:", backend %||% "Python"))
    }
    skip(paste("not available:", backend %||% "Python"))
  }
}

# test_that(), once, in the run for NumPy: for code that uses no backend, or backends that the test names itself.
test_once <- function(description, code) {
  if (test_backends()[1] == "numpy") eval.parent(bquote(test_that(.(description), .(substitute(code)))))
}

# test_that() on each of the backends, which is the default one in `code` and named by `backend`.
test_on <- function(backends, description, code) {
  test_on_backends(intersect(test_backends(), backends), description, substitute(code), parent.frame())
}

test_contract <- function(description, code) {
  test_on_backends(test_backends(), description, substitute(code), parent.frame())
}

# `backends`: the backends that support `code`.
test_each <- function(description, code, backends = all_backends) {
  test_on_backends(intersect(each_backends(), backends), description, substitute(code), parent.frame())
}

test_on_backends <- function(backends, description, code, env) {
  env$.packageName <- "tests" # their functions count as a user's, though evaluated below gradops' namespace
  for (backend in backends) {
    body <- bquote({
      skip_without(.(backend))
      backend <- .(backend)
      local_backend(backend)
      .(code)
    })
    eval(bquote(test_that(.(paste0(description, " (", backend, ")")), .(body))), env)
  }
}

is_long <- function() nzchar(Sys.getenv("GRADOPS_LONG"))

# Returns the backends of test_each().
each_backends <- function() {
  if (is_long()) test_backends() else intersect(test_backends(), "numpy")
}

# Returns the first line that print() shows.
described <- function(x) {
  utils::capture.output(print(x))[1]
}

# Returns a numerical derivative by central differences.
numeric_gradient <- function(f, x, step = 1e-6) {
  vapply(seq_along(x), function(i) {
    shift <- replace(numeric(length(x)), i, step)
    (f(x + shift) - f(x - shift)) / (2 * step)
  }, 0)
}

# True under devtools::load_all(), where a new process would load another version of the package.
is_loaded_from_source <- function() {
  identical(Sys.getenv("DEVTOOLS_LOAD"), "gradops")
}

# Returns the output of an R script run in a new process with this package. A nonzero exit status is an attribute.
run_script <- function(script, arguments = character(), env = character()) {
  rscript <- file.path(R.home("bin"), "Rscript")
  library_paths <- paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  quiet <- c("TF_CPP_MIN_LOG_LEVEL=2", "TF_ENABLE_ONEDNN_OPTS=0") # silences TensorFlow on standard error
  env <- c(library_paths, quiet, env)
  suppressWarnings(system2(rscript, c(script, arguments), stdout = TRUE, stderr = TRUE, env = env))
}

in_new_process <- function(code, env = character(), attach = TRUE) {
  script <- withr::local_tempfile(fileext = ".R", lines = c(if (attach) "suppressMessages(library(gradops))", code))
  run_script(script, env = env)
}

# Runs pieces of R code in one new process, each in its own environment and with only the packages that it attaches.
# Returns `outputs`, the printed lines of each piece or its error condition, and `said`, the lines on standard error.
run_pieces <- function(pieces) {
  from <- withr::local_tempfile(fileext = ".rds")
  to <- withr::local_tempfile(fileext = ".rds")
  saveRDS(pieces, from)
  said <- in_new_process(c(
    "begin <- search()",
    "run <- function(code) {",
    "  on.exit(for (name in setdiff(search(), begin)) detach(name, character.only = TRUE))",
    "  output <- character()",
    "  there <- textConnection('output', 'w', local = TRUE)",
    "  sink(there)",
    "  on.exit({sink(); close(there)}, add = TRUE, after = FALSE)",
    "  envir <- new.env(parent = globalenv())",
    "  for (line in as.list(parse(text = code, keep.source = FALSE))) {",
    "    value <- withVisible(eval(line, envir))",
    "    if (value$visible) print(value$value)",
    "  }",
    "  if (isNamespaceLoaded('gradops')) gradops::config_set_backend('numpy')",
    "  output",
    "}",
    sprintf("pieces <- readRDS(%s)", dQuote(from, FALSE)),
    "outputs <- lapply(pieces, \\(code) tryCatch(run(code), error = identity))",
    sprintf("saveRDS(outputs, %s)", dQuote(to, FALSE))
  ), attach = FALSE)
  list(outputs = readRDS(to), said = said)
}

# Returns a function that counts how often R runs it. The count is in Python, where gradops does not see the change.
counting <- function(f) {
  calls <- reticulate::py_eval("[]", convert = FALSE)
  list(
    f = function(...) {
      calls$append(1L)
      f(...)
    },
    calls = function() reticulate::py_len(calls)
  )
}

# The ops, from tools/families.py, which the installed package does not contain: R's names, R's arguments where they do
# not follow from Python's, and the names of Python's arguments, with `...` for `*args` and `**kwargs`.
table_of_ops <- function() {
  tools <- test_path("..", "..", "tools")
  skip_if_not(file.exists(file.path(tools, "families.py")), "not the source tree")
  python <- bridge()
  ops <- reticulate::import_from_path("families", tools)$rows()
  arguments <- function(op) {
    if (!nzchar(op$python_name)) return(character())
    found <- py_to_r(python$parameters(python$find(op$python_name)))
    unique(ifelse(startsWith(vapply(found, reticulate::py_str, ""), "*"), "...", names(found)))
  }
  found <- data.frame(r_name = vapply(ops, `[[`, "", "r_name"), r_args = vapply(ops, `[[`, "", "r_args"))
  found$python <- lapply(ops, arguments)
  found
}

source_folder <- function(name) {
  folder <- test_path("..", "..", name)
  skip_if(!dir.exists(folder), paste("no folder", name, "here"))
  normalizePath(folder)
}
