# The demo, vignettes and the report, run as users run them, once, with NumPy as the default backend.
skip_unless_documents <- function() {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
}

# Returns the text of pages rendered in one R process; each page attaches its packages itself. `said` holds errors.
rendered <- function(inputs, arguments = "", before = "") {
  pages <- vapply(inputs, function(input) tempfile(fileext = ".html"), "")
  render <- sprintf(
    "%s\ninvisible(rmarkdown::render(%s, output_file = %s, intermediates_dir = tempfile(), quiet = TRUE%s))",
    before, dQuote(inputs, FALSE), dQuote(pages, FALSE), arguments
  )
  result <- run_pieces(as.list(render))
  Map(function(output, page) {
    error <- if (inherits(output, "error")) conditionMessage(output)
    list(said = c(result$said, error), error = error, page = if (file.exists(page)) readLines(page, warn = FALSE))
  }, result$outputs, pages)
}

# `expect_match()` would take minutes to format its message for a whole page.
expect_on_page <- function(page, pattern) {
  expect_true(grepl(pattern, paste(page, collapse = " "), perl = TRUE), label = pattern)
}

test_once("the example of tools/demo gives the same result on every backend", {
  skip_if(!is_long(), "long: GRADOPS_LONG is not set")
  skip_unless_documents()
  script <- file.path(source_folder("examples"), "custom_gradient.R")
  rscript <- file.path(R.home("bin"), "Rscript")
  libraries <- paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  out <- suppressWarnings(system2(rscript, script, stdout = TRUE, stderr = TRUE, env = libraries))
  expect_null(attr(out, "status"), info = paste(out, collapse = "\n"))
  expect_match(tail(out, 1), "The same on numpy")
})

test_once("vignettes render with the expected results", {
  skip_unless_documents()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"), "needs pandoc")
  # Results that each page must show, known from elsewhere.
  expected <- c(
    gradops = "802 -400",
    "custom-gradients" = "0.1049936 0.1049936",
    "four-backends" = "log theta +2.49173",
    likelihoods = "not identified: the likelihood does not change along",
    "r-code" = "0.7788008 0.7357589", # 2 p exp(-p^2) at 0.5 and 1
    "with-keras3" = "Which methods a tensor has",
    "text-feedback" = "Answer the question in one word. / Write the answer in capitals.",
    "wrong-gradients" = "returned NaN as the gradient"
  )
  files <- list.files(source_folder("vignettes"), "[.]Rmd$", full.names = TRUE)
  expect_setequal(sub("[.]Rmd$", "", basename(files)), names(expected))
  results <- rendered(files)
  for (i in seq_along(files)) {
    expect_null(results[[i]]$error, info = paste(c(basename(files[i]), results[[i]]$said), collapse = "\n"))
    expect_on_page(results[[i]]$page, expected[[sub("[.]Rmd$", "", basename(files[i]))]])
  }
})

test_once("a drafted report distinguishes correct and wrong gradients", {
  skip_unless_documents()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"), "needs pandoc")
  folder <- withr::local_tempdir()
  report <- rmarkdown::draft(file.path(folder, "report.Rmd"), "gradient_report", package = "gradops", edit = FALSE)
  # A correct gradient, and a gradient of a function that is defined before.
  results <- rendered(
    c(report, report),
    c(
      ", params = list(f = function(p) sum((p - 3)^4), x = c(slope = 1, level = 2))",
      ", params = list(f = op_custom_gradient(function(p) list(sum(p^2), function(u) 3 * u * p)), x = c(1, 2))"
    ),
    c("", "suppressMessages(library(gradops))")
  )
  right <- results[[1]]
  page <- paste(right$page, collapse = " ")
  expect_null(right$error, info = paste(right$said, collapse = "\n"))
  expect_on_page(page, "<strong>Yes</strong>")
  expect_on_page(page, "convex here")
  expect_on_page(page, "slope.*-32.*level.*-4")
  expect_gte(lengths(regmatches(page, gregexpr("<img", page))), 2)
  expect_on_page(results[[2]]$page, "<strong>No</strong>.*wrong at 2 of 2 places")
})
