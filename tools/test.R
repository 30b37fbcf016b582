# Runs the R tests against the installed package, on each backend named, two at a time, each in a process of its own;
# what failed is said again at the end. --only=NAME,NAME: test-NAME.R alone; --junit=FOLDER: also each test's time, as
# JUnit's XML.

run_tests <- function(only, junit) {
  reporters <- list(testthat::SummaryReporter$new())
  if (nzchar(junit)) reporters <- c(reporters, testthat::JunitReporter$new(file = junit))
  results <- testthat::test_dir(
    "tests/testthat", filter = only, reporter = testthat::MultiReporter$new(reporters = reporters),
    package = "gradops", load_package = "installed", stop_on_failure = FALSE
  )
  counts <- as.data.frame(results)
  seconds <- sort(tapply(counts$real, counts$file, sum), decreasing = TRUE)
  cat(sprintf("%5.1f s  %s\n", head(seconds, 10), head(names(seconds), 10)), sep = "")
  list(
    counts = c(
      passed = sum(counts$passed),
      failed = sum(counts$failed) + sum(counts$error),
      skipped = sum(counts$skipped)
    ),
    failures = unlist(lapply(results, failures_of))
  )
}

# What failed in one test: where, and the first words of what was said.
failures_of <- function(test) {
  failed <- Filter(\(result) inherits(result, c("expectation_failure", "expectation_error")), test$results)
  vapply(failed, function(result) {
    sprintf("%s, \"%s\": %s", test$file, test$test, substr(conditionMessage(result), 1, 500))
  }, "")
}

counts_line <- function(label, counts) {
  cat(sprintf("%s: %s\n", label, paste(counts, names(counts), collapse = ", ")))
}

# The tests on one backend, in a process of its own: what it says, counts and what failed.
run_on <- function(backend, only, junit) {
  if (nzchar(junit)) junit <- file.path(normalizePath(junit), sprintf("r-%s.xml", backend))
  found <- tempfile()
  said <- tempfile()
  status <- system2(
    "Rscript", c("tools/test.R", "--to", found, shQuote(only), shQuote(junit)),
    env = paste0("GRADOPS_BACKEND=", backend), stdout = said, stderr = said
  )
  cat(c(sprintf("R tests, %s backend", backend), readLines(said, warn = FALSE)), sep = "\n")
  result <- if (status == 0) {
    readRDS(found)
  } else {
    list(counts = c(passed = 0, failed = 1, skipped = 0), failures = sprintf("R ended with status %d", status))
  }
  counts_line(paste("R,", backend), result$counts)
  result
}

arguments <- commandArgs(TRUE)
if (arguments[1] == "--to") {
  saveRDS(run_tests(arguments[3], arguments[4]), arguments[2])
} else {
  option <- function(name) {
    prefix <- sprintf("--%s=", name)
    c(sub(prefix, "", arguments[startsWith(arguments, prefix)]), "")[1]
  }
  names <- gsub(",", "|", option("only"))
  only <- if (nzchar(names)) sprintf("^(%s)$", names) else "."
  junit <- option("junit")
  arguments <- arguments[!startsWith(arguments, "--")]
  found <- parallel::mclapply(arguments, run_on, only, junit, mc.cores = 2, mc.preschedule = FALSE)
  for (i in seq_along(arguments)) {
    cat(sprintf("Failed on %s: %s\n", arguments[i], found[[i]]$failures), sep = "")
  }
  total <- Reduce(`+`, lapply(found, `[[`, "counts"))
  counts_line("R", total)
  quit(status = as.integer(total["failed"] > 0))
}
