# Help pages: an example with a derivative, and where else to look; what an op gives is printed.

help_pages <- function() {
  source <- test_path("../../man")
  if (dir.exists(source)) {
    files <- list.files(source, "[.]Rd$", full.names = TRUE)
    pages <- lapply(files, tools::parse_Rd)
  } else {
    pages <- tools::Rd_db("gradops")
    files <- names(pages)
  }
  stats::setNames(pages, sub("[.]Rd$", "", basename(files)))
}

# The text of a page's sections of one kind.
section_of <- function(page, tag) {
  found <- Filter(function(part) identical(attr(part, "Rd_tag"), tag), page)
  paste(unlist(lapply(found, function(part) paste(unlist(part), collapse = ""))), collapse = "\n")
}

# The calls of a page's examples, without what roxygen puts around them.
example_calls <- function(page) {
  file <- withr::local_tempfile(fileext = ".R")
  tools::Rd2ex(page, file)
  if (!file.exists(file)) {
    return(list())
  }
  as.list(utils::tail(parse(file, keep.source = FALSE), 1)[[1]][[3]][[2]])[-1] # of if (...) f({ ... })
}

derivative <- "grad\\(|gradient\\(|grad_fn\\(|jacobian\\(|hessian\\(|hvp\\(|backward\\(|profile\\(|gradcheck\\(|[$]gr"

test_that("every page that is not of an op alone has an example with a derivative, and says where else to look", {
  pages <- help_pages()
  expect_gt(length(pages), 350)
  others <- c("gradops-package", "reexports", "from-reticulate", "gradops-options")
  pages <- pages[!names(pages) %in% others]
  seealso <- vapply(pages, section_of, "", tag = "\\seealso")
  examples <- vapply(pages, section_of, "", tag = "\\examples")
  expect_true(all(nzchar(examples)))
  by_hand <- !startsWith(names(pages), "op_")
  expect_identical(names(pages)[by_hand & !nzchar(seealso)], character())
  asked_for <- sprintf("op_%s", c(
    "softmax", "log_softmax", "logsumexp", "scan", "where", "cond", "fori_loop", "while_loop", "einsum", "matmul",
    "solve", "vectorized_map", "custom_gradient", "stop_gradient", "take", "segment_sum", "top_k", "cholesky"
  ))
  without <- c(
    "call_in_thread", "config_floatx", "gradops_available", "keras_idioms", "text_models", "op_arange", "op_shape",
    "op_nonzero", "op_convert_to_array"
  )
  needed <- setdiff(c(names(pages)[nzchar(seealso)], asked_for), without)
  expect_identical(needed[!grepl(derivative, examples[needed])], character())
})

test_that("what stands under see-also has a page", {
  pages <- help_pages()
  tags <- function(part, tag) {
    own <- if (identical(attr(part, "Rd_tag"), tag)) list(part)
    c(own, if (is.list(part)) unlist(lapply(part, tags, tag), recursive = FALSE))
  }
  aliases <- unlist(lapply(pages, function(page) unlist(tags(page, "\\alias"))))
  links <- unlist(lapply(pages, function(page) {
    seealso <- Filter(function(part) identical(attr(part, "Rd_tag"), "\\seealso"), page)
    vapply(tags(seealso, "\\link"), function(link) sub("^=", "", attr(link, "Rd_option") %||% unlist(link)), "")
  }))
  expect_gt(length(links), 100)
  outside <- c("uniroot", "optim")
  expect_identical(setdiff(links, c(aliases, outside)), character())
})

test_that("what the example of an op gives is visible", {
  skip_on_cran()
  skip_without("numpy")
  local_backend("numpy")
  pages <- help_pages()
  pages <- pages[startsWith(names(pages), "op_")]
  hidden <- Filter(function(name) {
    frame <- new.env(parent = globalenv())
    visible <- FALSE
    for (call in example_calls(pages[[name]])) {
      visible <- withVisible(eval(call, frame))$visible
    }
    !visible
  }, names(pages))
  expect_identical(hidden, character())
})
