# Runs the R tests against the installed package, on each backend named, two at a time, each in a process of its own.

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

# The tests on one backend, in a process of its own: what it says and counts.
run_on <- function(backend) {
  counts <- tempfile()
  said <- tempfile()
  status <- system2(
    "Rscript", c("tools/test.R", "--to", counts),
    env = paste0("GRADOPS_BACKEND=", backend), stdout = said, stderr = said
  )
  cat(c(sprintf("R tests, %s backend", backend), readLines(said, warn = FALSE)), sep = "\n")
  counts <- if (status == 0) readRDS(counts) else c(passed = 0, failed = 1, skipped = 0)
  counts_line(paste("R,", backend), counts)
  counts
}

arguments <- commandArgs(TRUE)
if (arguments[1] == "--to") {
  saveRDS(run_tests(), arguments[2])
} else {
  counts <- parallel::mclapply(arguments, run_on, mc.cores = 2, mc.preschedule = FALSE)
  total <- Reduce(`+`, counts)
  counts_line("R", total)
  quit(status = as.integer(total["failed"] > 0))
}
