# Runs the R tests against the installed package on the named backends, two R processes at a time. NumPy runs every
# test, in several parts; another backend runs the files that have tests for it, or all files with GRADOPS_LONG. Tests
# of documents run only if --only names them. Failures are printed immediately. A part stops after 50 failures.
#
#     Rscript tools/test.R [--only=NAME,NAME] [--junit=FOLDER] BACKEND...
#
# --only runs test-NAME.R only. --junit writes each test's time as JUnit XML.

numpy_parts <- 6
documents <- c("documents", "readme")
most_failures <- 50

# A reporter that prints failures immediately and counts them.
immediate_reporter <- function(backend) {
  R6::R6Class(
    "ImmediateReporter",
    inherit = testthat::Reporter,
    public = list(
      failures = 0,
      passed = 0,
      skipped = 0,
      file = "",
      start_file = function(file) self$file <- file,
      add_result = function(context, test, result) {
        if (inherits(result, c("expectation_failure", "expectation_error"))) {
          self$failures <- self$failures + 1
          # One call of cat(), so that two processes do not mix their lines.
          cat(sprintf("FAILED on %s: %s, \"%s\"\n%s\n", backend, self$file, test, substr(format(result), 1, 3000)))
        } else if (inherits(result, "expectation_skip")) {
          self$skipped <- self$skipped + 1
        } else {
          self$passed <- self$passed + 1
        }
      },
      end_file = function() {
        if (self$failures >= most_failures) stop("ended after ", self$failures, " failures", call. = FALSE)
      }
    )
  )$new()
}

# Runs the files of one part in this process and saves the counts to `to`.
run_part <- function(backend, files, junit, to) {
  suppressPackageStartupMessages(library(gradops))
  reporter <- immediate_reporter(backend)
  reporters <- c(reporter, if (nzchar(junit)) testthat::JunitReporter$new(file = junit))
  on.exit(saveRDS(c(passed = reporter$passed, failed = reporter$failures, skipped = reporter$skipped), to))
  testthat::test_dir(
    "tests/testthat", filter = sprintf("^(%s)$", gsub(",", "|", files)),
    reporter = testthat::MultiReporter$new(reporters = reporters),
    package = "gradops", load_package = "installed", stop_on_failure = FALSE
  )
}

# Runs a part in a separate process and returns its counts. In the short suite R does not byte-compile functions at their
# second call, which takes longer than their few calls save; the long suite runs compiled functions, as users do.
start_part <- function(part, junit) {
  to <- tempfile()
  if (nzchar(junit)) junit <- file.path(normalizePath(junit), sprintf("r-%s.%d.xml", part$backend, part$number))
  status <- system2(
    "Rscript", c("tools/test.R", "--part", part$backend, paste(part$files, collapse = ","), shQuote(junit), to),
    env = c(paste0("GRADOPS_BACKEND=", part$backend), if (!nzchar(Sys.getenv("GRADOPS_LONG"))) "R_ENABLE_JIT=0")
  )
  counts <- if (file.exists(to)) readRDS(to) else c(passed = 0, failed = 0, skipped = 0)
  if (status != 0 && counts[["failed"]] == 0) {
    cat(sprintf("FAILED on %s: R ended with status %d in test-{%s}.R\n", part$backend, status, toString(part$files)))
    counts[["failed"]] <- 1
  }
  counts
}

# The names of the files that have tests for a backend. Files that load another library come first, in one part: loading
# it takes seconds.
files_of <- function(backend, only) {
  paths <- list.files("tests/testthat", "^test-.*[.]R$", full.names = TRUE)
  names <- sub("^test-(.*)[.]R$", "\\1", basename(paths))
  chosen <- if (nzchar(only)) names %in% strsplit(only, ",")[[1]] else !names %in% documents
  if (backend != "numpy" && !nzchar(Sys.getenv("GRADOPS_LONG"))) {
    has_tests <- function(path) any(grepl("^ *test_(contract|on)\\(", readLines(path, warn = FALSE)))
    chosen <- chosen & vapply(paths, has_tests, NA)
  }
  loading <- '(backend|import)[a-z_]*\\(("(torch|tensorflow|jax)|backend, )'
  loads <- vapply(paths[chosen], function(path) any(grepl(loading, readLines(path, warn = FALSE))), NA)
  names[chosen][order(!loads)]
}

parts_of <- function(backend, only) {
  files <- files_of(backend, only)
  parts <- if (backend == "numpy") min(numpy_parts, length(files)) else 1
  split_files <- split(files, sort(rep_len(seq_len(parts), length(files))))
  Map(\(files, number) list(backend = backend, files = files, number = number), split_files, seq_along(split_files))
}

arguments <- commandArgs(TRUE)
if (arguments[1] == "--part") {
  run_part(arguments[2], arguments[3], arguments[4], arguments[5])
} else {
  option <- function(name) {
    prefix <- sprintf("--%s=", name)
    c(sub(prefix, "", arguments[startsWith(arguments, prefix)]), "")[1]
  }
  backends <- arguments[!startsWith(arguments, "--")]
  parts <- unlist(lapply(backends, parts_of, option("only")), recursive = FALSE, use.names = FALSE)
  counts <- parallel::mclapply(parts, start_part, option("junit"), mc.cores = 2, mc.preschedule = FALSE)
  where <- vapply(parts, `[[`, "", "backend")
  for (backend in backends) {
    sums <- Reduce(`+`, counts[where == backend], c(passed = 0, failed = 0, skipped = 0))
    cat(sprintf("R, %s: %s\n", backend, paste(sums, names(sums), collapse = ", ")))
  }
  quit(status = as.integer(sum(vapply(counts, `[[`, 0, "failed")) > 0))
}
