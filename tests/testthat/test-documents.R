# The demo, vignettes and the report, run as users run them, once: where the default backend is NumPy.
skip_unless_documents <- function() {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
}

source_folder <- function(name) {
  folder <- test_path("..", "..", name)
  skip_if(!dir.exists(folder), paste("no folder", name, "here"))
  normalizePath(folder)
}

# What a render in an R process of its own said, and the text of the page, which attaches its packages itself.
rendered <- function(input, ..., before = character()) {
  page <- withr::local_tempfile(fileext = ".html")
  render <- sprintf(
    "invisible(rmarkdown::render(%s, output_file = %s, intermediates_dir = tempdir(), quiet = TRUE%s))",
    dQuote(input, FALSE), dQuote(page, FALSE), paste0(", ", list(...), recycle0 = TRUE, collapse = "")
  )
  said <- run_script(withr::local_tempfile(fileext = ".R", lines = c(before, render)))
  list(said = said, status = attr(said, "status"), page = if (file.exists(page)) readLines(page, warn = FALSE))
}

# A page is too long for `expect_match()`, which prepares its message in minutes.
expect_on_page <- function(page, pattern) {
  expect_true(grepl(pattern, paste(page, collapse = " "), perl = TRUE), label = pattern)
}

test_once("the example that tools/demo runs finds the same on every backend", {
  skip_unless_documents()
  script <- file.path(source_folder("examples"), "custom_gradient.R")
  rscript <- file.path(R.home("bin"), "Rscript")
  libraries <- paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  out <- suppressWarnings(system2(rscript, script, stdout = TRUE, stderr = TRUE, env = libraries))
  expect_null(attr(out, "status"), info = paste(out, collapse = "\n"))
  expect_match(tail(out, 1), "The same on numpy")
})

test_once("vignettes render, with what they say", {
  skip_unless_documents()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"), "needs pandoc")
  # What each page must hold: results that are known otherwise.
  expected <- c(
    gradops = "802 -400",
    "custom-gradients" = "0.1049936 0.1049936",
    "four-backends" = "log theta +2.49173",
    likelihoods = "not identified: the likelihood does not change along",
    "r-code" = "0.7788008 0.7357589", # 2 p exp(-p^2) at 0.5 and 1
    "with-keras3" = "Whose tensor it is",
    "text-feedback" = "Answer the question in one word. / Write the answer in capitals.",
    "wrong-gradients" = "returned NaN as the gradient"
  )
  files <- list.files(source_folder("vignettes"), "[.]Rmd$", full.names = TRUE)
  expect_setequal(sub("[.]Rmd$", "", basename(files)), names(expected))
  for (file in files) {
    result <- rendered(file)
    expect_null(result$status, info = paste(c(basename(file), result$said), collapse = "\n"))
    expect_on_page(result$page, expected[[sub("[.]Rmd$", "", basename(file))]])
  }
})

test_once("a report is drafted, and tells a right gradient from a wrong one", {
  skip_unless_documents()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.14"), "needs pandoc")
  folder <- withr::local_tempdir()
  report <- rmarkdown::draft(file.path(folder, "report.Rmd"), "gradient_report", package = "gradops", edit = FALSE)
  right <- rendered(report, "params = list(f = function(p) sum((p - 3)^4), x = c(slope = 1, level = 2))")
  page <- paste(right$page, collapse = " ")
  expect_null(right$status, info = paste(right$said, collapse = "\n"))
  expect_on_page(page, "<strong>Yes</strong>")
  expect_on_page(page, "convex here")
  expect_on_page(page, "slope.*-32.*level.*-4")
  expect_gte(lengths(regmatches(page, gregexpr("<img", page))), 2)
  wrong <- rendered(
    report,
    "params = list(f = op_custom_gradient(function(p) list(sum(p^2), function(u) 3 * u * p)), x = c(1, 2))",
    before = "suppressMessages(library(gradops))"
  )
  expect_on_page(wrong$page, "<strong>No</strong>.*wrong at 2 of 2 places")
})
