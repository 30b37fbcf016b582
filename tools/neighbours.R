# Runs the R tests on a backend with keras3 (and so tensorflow) loaded on the same backend before or after gradops.
#
#     GRADOPS_NEIGHBOURS=LIBRARY Rscript tools/neighbours.R BACKEND before|after [FILTER]

arguments <- commandArgs(TRUE)
backend <- arguments[1]
order <- match.arg(arguments[2], c("before", "after"))
.libPaths(c(Sys.getenv("GRADOPS_NEIGHBOURS"), .libPaths()))
Sys.setenv(GRADOPS_BACKEND = backend, KERAS_BACKEND = if (backend == "numpy") "tensorflow" else backend)

load_keras <- function() {
  loadNamespace("keras3")
  stopifnot(nzchar(reticulate::py_to_r(reticulate::import("keras")$config$backend())))
  reticulate::import("tensorflow") # R's tensorflow defines methods for its tensors, on every backend
}

if (order == "before") load_keras()
suppressMessages(library(gradops))
if (order == "after") {
  op_exp(1)
  load_keras()
}
results <- as.data.frame(testthat::test_dir(
  "tests/testthat",
  reporter = "summary", package = "gradops", load_package = "installed", stop_on_failure = FALSE,
  filter = if (length(arguments) > 2) arguments[3]
))
failed <- sum(results$failed) + sum(results$error)
cat(sprintf(
  "R, %s, keras3 %s: %d passed, %d failed, %d skipped\n",
  backend, order, sum(results$passed), failed, sum(results$skipped)
))
quit(status = as.integer(failed > 0))
