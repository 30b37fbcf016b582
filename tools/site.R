# R's part of the site: Rscript tools/site.R FOLDER [--no-examples]. Reference pages are grouped by theme: those of ops
# by the file that they are in, so that a new op has its place.

arguments <- commandArgs(TRUE)
options(pkgdown.internet = FALSE)
suppressMessages(library(gradops)) # its examples ask whether Python is there

# Of the files that tools/generate_r makes.
generated <- function(...) paste0("generated-ops-", c(...))

groups <- list(
  "Derivatives of functions" = c(
    paste0("functional-", c("reverse", "matrices", "products", "implicit")), "objective", "jit", "gradcheck"
  ),
  "How gradients flow" = "flow",
  "The tape" = c("autodiff", "graphs"),
  "Text" = c("text", "text-strings", "text-layer", "text-models"),
  "R functions on tensors" = c(
    "tensors", "generics", "joining", "linalg", "mapping", "inspection", "shaping", "sorting", "special", "statistics",
    "subset", "distributions"
  ),
  "Settings, files and R itself" = c("config", "options", "storage", "callbacks", "python", "reexports"),
  "Ops: arithmetic and elementary functions" = generated(
    "elementwise", "special", "comparison", "bitwise", "bounds", "complex-numbers", "spacing", "logarithms"
  ),
  "Ops: making and converting" = c(generated("creation", "conversion", "encoding", "windows"), "ops"),
  "Ops: shapes and parts" = generated(
    "shaping", "properties", "rearranging", "extending", "joining", "indexing", "scattering", "blocks", "diagonals"
  ),
  "Ops: sums, statistics and order" = generated(
    "reductions", "statistics", "nanstatistics", "quantiles", "sorting", "sets", "sequences"
  ),
  "Ops: linear algebra" = generated("products", "decompositions", "systems", "norms"),
  "Ops: Fourier transforms" = generated("fourier"),
  "Ops: neural networks" = generated(
    "activations", "normalization", "losses", "convolution", "pooling", "attention", "ctc"
  ),
  "Ops: images" = generated(paste0("image-", c("color", "filters", "patches", "resampling", "transforms"))),
  "Ops: control flow and functions" = generated("control", "mapping")
)

# The topics of the manual by the R file that they come from, as roxygen2 notes it in each page.
pages <- list.files("man", "[.]Rd$", full.names = TRUE)
text <- lapply(pages, readLines)
kept <- !vapply(text, function(lines) any(lines == "\\keyword{internal}"), NA)
origin <- lapply(text, function(lines) {
  line <- sub(".*edit documentation in ", "", grep("edit documentation in R/", lines, value = TRUE)[1])
  sub("^R/(.*)[.]R$", "\\1", strsplit(line, ", *")[[1]][1])
})
topic <- vapply(text, function(lines) sub("^\\\\name\\{(.*)\\}$", "\\1", grep("^\\\\name", lines, value = TRUE)[1]), "")
topics <- split(topic[kept], unlist(origin)[kept])
others <- setdiff(names(topics), unlist(groups))
if (length(others)) groups[["More"]] <- others
reference <- Map(
  function(title, files) list(title = title, contents = unname(unlist(topics[files]))),
  names(groups), groups
)
reference <- unname(Filter(function(group) length(group$contents) > 0, reference))

pkgdown::build_site(
  ".",
  override = list(
    destination = arguments[1],
    template = list(bootstrap = 5L),
    reference = reference,
    articles = list(list(
      title = "Articles", navbar = "Articles",
      contents = c("custom-gradients", "four-backends", "text-feedback", "wrong-gradients")
    )),
    navbar = list(
      structure = list(left = c("intro", "reference", "articles", "python", "news"), right = c("search", "github")),
      components = list(python = list(text = "Python", href = "python/gradops.html"))
    ),
    home = list(sidebar = FALSE)
  ),
  examples = !"--no-examples" %in% arguments, devel = FALSE, preview = FALSE, install = FALSE, new_process = FALSE
)
