# Makes R's part of the web site for tools/site_pages.py: Rscript tools/site.R FOLDER. It writes to FOLDER
#   r/TOPIC.html         a page of man/ without its examples
#   r/TOPIC.examples.md  the examples with their output
#   vignettes/NAME.md    each vignette with its output
# and the figures of both. An error in an example or a vignette stops it, unless the vignette says `error = TRUE`.

folder <- normalizePath(commandArgs(TRUE)[1])
suppressMessages(library(gradops))
knitr::opts_knit$set(progress = FALSE, base.dir = folder)

# Code with its output, as Markdown.
shown <- function(code, figures) {
  knitr::opts_chunk$set(
    error = FALSE, collapse = TRUE, comment = "#>", fig.path = figures, fig.width = 6, fig.height = 3.6
  )
  knitr::knit(text = c("```{r, message = FALSE}", code, "```"), quiet = TRUE, envir = new.env(parent = globalenv()))
}

# The examples of a page as a reader would type them, without the lines that only checks run.
examples <- function(page) {
  file <- tempfile()
  on.exit(unlink(file))
  tools::Rd2ex(page, file, commentDonttest = FALSE)
  if (!file.exists(file)) {
    return(character())
  }
  lines <- readLines(file)
  lines <- lines[-seq_len(which(lines == "### ** Examples"))]
  hidden <- cumsum(grepl("^## Don't show:", lines)) - cumsum(c(0, head(grepl("^## End\\(Don't show\\)", lines), -1)))
  trimws(paste(lines[hidden == 0], collapse = "\n"), whitespace = "\n")
}

files <- list.files("man", "[.]Rd$", full.names = TRUE)
pages <- lapply(files, tools::parse_Rd)
topics <- tools::file_path_sans_ext(basename(files))
aliases <- lapply(pages, function(page) {
  trimws(vapply(Filter(function(part) attr(part, "Rd_tag") == "\\alias", page), paste, "", collapse = ""))
})
links <- structure(rep(topics, lengths(aliases)), names = unlist(aliases))
links[] <- paste0("../../gradops/html/", links, ".html")

dir.create(file.path(folder, "r"), showWarnings = FALSE)
for (i in seq_along(pages)) {
  into <- file.path(folder, "r", topics[i])
  suppressWarnings( # links to pages of other packages cannot be resolved
    tools::Rd2HTML(pages[[i]], paste0(into, ".html"), package = "gradops", Links = links, Links2 = character())
  )
  code <- examples(pages[[i]])
  if (length(code)) writeLines(shown(code, sprintf("r/figures/%s-", topics[i])), paste0(into, ".examples.md"))
}

# Each vignette runs in a separate R process, as for a reader.
dir.create(file.path(folder, "vignettes"), showWarnings = FALSE)
for (file in list.files("vignettes", "[.]Rmd$", full.names = TRUE)) {
  name <- tools::file_path_sans_ext(basename(file))
  code <- sprintf(
    paste(
      "knitr::opts_knit$set(base.dir = '%s', progress = FALSE);",
      "knitr::opts_chunk$set(error = FALSE, fig.path = 'vignettes/figures/%s-');",
      "knitr::knit('%s', '%s', quiet = TRUE)"
    ),
    folder, name, file, file.path(folder, "vignettes", paste0(name, ".md"))
  )
  status <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = FALSE)
  if (status != 0) stop(file, " does not knit")
}
