# R code in README.md and in the pages of docs/ runs unchanged and prints the output shown there;
# tests/python/test_readme.py does the same for Python. Each block of README.md has its own environment and packages; the
# blocks of another page run in order in one environment.

pages <- test_path("..", "..", c("README.md", list.files(test_path("..", "..", "docs"), "[.]md$")))
pages[-1] <- file.path(dirname(pages[-1]), "docs", basename(pages[-1]))

r_blocks <- function(page) {
  lines <- readLines(page, encoding = "UTF-8")
  starts <- which(lines == "```r")
  starts <- starts[!grepl("^<!-- .* -->$", lines[pmax(starts - 1, 1)])] # skips parts of scripts
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

# Checks what each page's code prints. Messages of packages are ignored; an error fails the test.
expect_prints_as_said <- function(codes, names) {
  for (backend in unique(sub("^# needs ", "", grep("^# needs ", unlist(codes), value = TRUE)))) skip_without(backend)
  result <- run_pieces(codes)
  for (i in seq_along(codes)) {
    info <- paste(c(names[i], tail(result$said, 20)), collapse = "\n")
    output <- result$outputs[[i]]
    expect_false(inherits(output, "error"), info = paste(c(info, if (is.list(output)) conditionMessage(output))))
    wanted <- sub("^#> ", "", grep("^#> ", codes[[i]], value = TRUE))
    expect_equal(trimws(unlist(output), "right"), trimws(wanted, "right"), info = info)
  }
}

test_once("each block of README.md runs with the packages that it attaches", {
  skip_unless_pages()
  blocks <- r_blocks(pages[1])
  expect_gte(length(blocks), 2)
  for (code in blocks) expect_true(any(grepl("^#> ", code)), info = "a block of README.md shows what it prints")
  expect_prints_as_said(blocks, rep("README.md", length(blocks)))
})

test_once("the blocks of each page of docs/ run in sequence", {
  skip_unless_pages()
  code <- lapply(pages[-1], function(page) unlist(r_blocks(page)))
  code[vapply(code, function(lines) "library(keras3)" %in% lines, TRUE)] <- list(NULL) # see test-keras3.R
  expect_gte(sum(lengths(code) > 0), 2)
  expect_prints_as_said(code[lengths(code) > 0], basename(pages[-1][lengths(code) > 0]))
})

test_once("the R cells of each cheat sheet table run", {
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
