# The R code of README.md and of the pages in docs/ runs as it stands and prints what the pages say, as
# tests/python/test_readme.py has it for Python: a block of README.md alone, those of another page one after the other.

pages <- test_path("..", "..", c("README.md", list.files(test_path("..", "..", "docs"), "[.]md$")))
pages[-1] <- file.path(dirname(pages[-1]), "docs", basename(pages[-1]))

r_blocks <- function(page) {
  lines <- readLines(page, encoding = "UTF-8")
  starts <- which(lines == "```r")
  starts <- starts[!grepl("^<!-- .* -->$", lines[pmax(starts - 1, 1)])] # those are parts of scripts
  lapply(starts, function(start) {
    rest <- lines[-seq_len(start)]
    rest[seq_len(match("```", rest) - 1)]
  })
}

skip_unless_pages <- function() {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  skip_if(!dir.exists(test_path("..", "..", "docs")), "no pages here")
}

# What the code prints, without what packages say on the error stream; an error fails.
expect_prints_as_said <- function(code, page) {
  needs <- sub("^# needs ", "", grep("^# needs ", code, value = TRUE))
  for (backend in needs) skip_without(backend)
  script <- withr::local_tempfile(fileext = ".R", lines = code)
  said <- withr::local_tempfile()
  out <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = said,
    env = paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  ))
  expect_null(attr(out, "status"), info = paste(c(page, readLines(said)), collapse = "\n"))
  expect_equal(trimws(c(out), "right"), trimws(sub("^#> ", "", grep("^#> ", code, value = TRUE)), "right"), info = page)
}

test_once("each block of README.md runs in an R session of its own", {
  skip_unless_pages()
  blocks <- r_blocks(pages[1])
  expect_gte(length(blocks), 2)
  for (code in blocks) {
    expect_true(any(grepl("^#> ", code)), info = "a block of README.md shows what it prints")
    expect_prints_as_said(code, "README.md")
  }
})

test_once("the blocks of each page of docs/ run in turn", {
  skip_unless_pages()
  code <- lapply(pages[-1], function(page) unlist(r_blocks(page)))
  expect_gte(sum(lengths(code) > 0), 2)
  for (i in which(lengths(code) > 0)) expect_prints_as_said(code[[i]], basename(pages[-1][i]))
})

test_once("the cells of R of each table of the cheat sheet run", {
  skip_unless_pages()
  page <- readLines(test_path("..", "..", "docs", "cheatsheet.md"), encoding = "UTF-8")
  rows <- grep("^[|] .*`.*[|]$", page)
  expect_gt(length(rows), 40)
  cells <- vapply(strsplit(page[rows], " | ", fixed = TRUE), `[[`, "", 3)
  tables <- split(gsub("`|[|]", "", cells), cumsum(startsWith(page, "## "))[rows])
  expect_true(all(nzchar(trimws(unlist(tables)))))
  begin <- r_blocks(test_path("..", "..", "docs", "cheatsheet.md"))[[1]]
  for (lines in tables) {
    scope <- new.env(parent = globalenv())
    for (line in c(begin[-1], lines)) {
      expect_no_error(eval(parse(text = line), scope), message = line)
    }
  }
})
