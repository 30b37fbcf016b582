# Runs the R tests against the installed package, on each backend named, each in a process of its own.

run_tests <- function() {
  results <- testthat::test_dir(
    "tests/testthat",
    reporter = "summary", package = "gradops", load_package = "installed", stop_on_failure = FALSE
  )
  results <- as.data.frame(results)
  c(
    passed = sum(results$passed),
    failed = sum(results$failed) + sum(results$error),
    skipped = sum(results$skipped)
  )
}

counts_line <- function(label, counts) {
  cat(sprintf("%s: %s\n", label, paste(counts, names(counts), collapse = ", ")))
}

arguments <- commandArgs(TRUE)
if (arguments[1] == "--to") {
  saveRDS(run_tests(), arguments[2])
} else {
  total <- c(passed = 0, failed = 0, skipped = 0)
  for (backend in arguments) {
    file <- tempfile()
    cat("R tests,", backend, "backend\n")
    status <- system2("Rscript", c("tools/test.R", "--to", file), env = paste0("GRADOPS_BACKEND=", backend))
    counts <- if (status == 0) readRDS(file) else c(passed = 0, failed = 1, skipped = 0)
    counts_line(paste("R,", backend), counts)
    total <- total + counts
    if (total["failed"] > 0) break
  }
  counts_line("R", total)
  quit(status = as.integer(total["failed"] > 0))
}
