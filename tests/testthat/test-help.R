# Help pages: one line per op, an example with a derivative, and related functions; ops of a page print their result.

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

# Returns the text of a page's sections of one kind.
section_of <- function(page, tag) {
  found <- Filter(function(part) identical(attr(part, "Rd_tag"), tag), page)
  paste(unlist(lapply(found, text_of)), collapse = "\n")
}

text_of <- function(part) paste(unlist(part), collapse = "")

# Returns the parts of one kind in a page, or in part of one.
tagged <- function(part, tag) {
  own <- if (identical(attr(part, "Rd_tag"), tag)) list(part)
  c(own, if (is.list(part)) unlist(lapply(part, tagged, tag), recursive = FALSE))
}

titles <- function(page) vapply(tagged(page, "\\section"), function(section) trimws(text_of(section[[1]])), "")

# Returns the calls of a page's examples, without roxygen's wrapper.
example_calls <- function(page) {
  file <- withr::local_tempfile(fileext = ".R")
  tools::Rd2ex(page, file)
  if (!file.exists(file)) {
    return(list())
  }
  as.list(utils::tail(parse(file, keep.source = FALSE), 1)[[1]][[3]][[2]])[-1] # the calls inside of if (...) f({ ... })
}

derivative <- paste0(
  "grad\\(|gradient\\(|grad_fn\\(|jacobian\\(|hessian\\(|hvp\\(|jvp\\(|backward\\(|profile\\(|gradcheck\\(|[$]gr|",
  "maximize_likelihood\\("
)

test_once("every page has an example with a derivative, and names related functions", {
  pages <- help_pages()
  expect_gt(length(pages), 100)
  pages <- pages[!names(pages) %in% c("gradops-package", "reexports", "from-reticulate", "gradops-options")]
  expect_identical(names(pages)[!nzchar(vapply(pages, section_of, "", tag = "\\seealso"))], character())
  examples <- vapply(pages, section_of, "", tag = "\\examples")
  expect_true(all(nzchar(examples)))
  without <- c("call_in_thread", "config_floatx", "gradops_available", "gradops_sitrep", "keras_idioms", "text_models")
  expect_identical(setdiff(names(pages)[!grepl(derivative, examples)], without), character())
})

test_once("every argument in a page's usage is described", {
  skip_if(is_loaded_from_source())
  expect_identical(format(tools::checkDocFiles("gradops")), character()) # add `@param` lines
})

test_once("the page of a family has a line for each of its ops, with gradient and call", {
  pages <- help_pages()
  pages <- pages[startsWith(names(pages), "ops_")]
  expect_gt(length(pages), 60)
  for (name in names(pages)) {
    page <- pages[[name]]
    items <- tagged(tagged(page, "\\details"), "\\item")
    has_gradient <- grepl("Gradient:\\s", vapply(items, text_of, "")) | "Gradient" %in% titles(page)
    lines <- lapply(items, function(item) { # an alias is on the line of its op
      label <- text_of(item[[1]])
      regmatches(label, gregexpr("op_\\w+(?=\\()", label, perl = TRUE))[[1]]
    })
    examples <- section_of(page, "\\examples")
    called <- vapply(lines, function(ops) any(vapply(paste0(ops, "("), grepl, NA, examples, fixed = TRUE)), NA)
    ops <- Filter(function(alias) startsWith(alias, "op_"), vapply(tagged(page, "\\alias"), text_of, ""))
    expect_gt(length(ops), 0)
    expect_setequal(unlist(lines[has_gradient]), ops)
    expect_identical(unlist(lines[!called]), NULL, label = name)
  }
})

test_once("every exported op has a page", {
  pages <- help_pages()
  aliases <- unlist(lapply(pages, function(page) vapply(tagged(page, "\\alias"), text_of, "")))
  exported <- grep("^op_", getNamespaceExports("gradops"), value = TRUE)
  expect_gt(length(exported), 300)
  expect_identical(setdiff(exported, aliases), character())
})

test_once("see-also entries have a page", {
  pages <- help_pages()
  aliases <- unlist(lapply(pages, tagged, "\\alias"))
  links <- unlist(lapply(pages, function(page) {
    seealso <- Filter(function(part) identical(attr(part, "Rd_tag"), "\\seealso"), page)
    vapply(tagged(seealso, "\\link"), function(link) sub("^=", "", attr(link, "Rd_option") %||% unlist(link)), "")
  }))
  expect_gt(length(links), 100)
  outside <- c("uniroot", "optim")
  expect_identical(setdiff(links, c(aliases, outside)), character())
})

test_once("the last example on a page of ops prints its result", {
  skip_on_cran()
  skip_without("numpy")
  local_backend("numpy")
  pages <- help_pages()
  pages <- pages[startsWith(names(pages), "op")]
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
