# Tests of what is to be the same everywhere run on every backend: on the one that GRADOPS_BACKEND names, or on all that
# are installed. GRADOPS_REQUIRE_BACKENDS=1 (as in CI) makes an absent one a failure.

all_backends <- c("numpy", "torch", "tensorflow", "jax")

test_backends <- function() {
  named <- Sys.getenv("GRADOPS_BACKEND")
  if (nzchar(named)) named else all_backends
}

skip_without <- function(backend = NULL) {
  if (!gradops_available(backend)) {
    if (nzchar(Sys.getenv("GRADOPS_REQUIRE_BACKENDS"))) {
      fail(paste("not available:", backend %||% "Python"))
    }
    skip(paste("not available:", backend %||% "Python"))
  }
}

# test_that() on each backend, which is the default one in `code` and named by `backend`.
test_each <- function(description, code) {
  code <- substitute(code)
  env <- parent.frame()
  for (backend in test_backends()) {
    body <- bquote({
      skip_without(.(backend))
      backend <- .(backend)
      local_backend(backend)
      .(code)
    })
    eval(bquote(test_that(.(paste0(description, " (", backend, ")")), .(body))), env)
  }
}

# A numerical derivative, by central differences.
numeric_gradient <- function(f, x, step = 1e-6) {
  vapply(seq_along(x), function(i) {
    shift <- replace(numeric(length(x)), i, step)
    (f(x + shift) - f(x - shift)) / (2 * step)
  }, 0)
}

# Under devtools::load_all(), a new process would see another package.
is_loaded_from_source <- function() {
  identical(Sys.getenv("DEVTOOLS_LOAD"), "gradops")
}
