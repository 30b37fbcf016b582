# Writes values, gradients and Hessians of R functions for `tools/bits`, which runs this script.
#
#     Rscript tools/bits.R FILE
#
# Each line of the file has a name, the number of rows or elements and columns if there are any, and the numbers in
# hexadecimals; or a name and the class of an error. The functions are the models of benchmarks/ and the functions of
# tests/testthat/corpus and test-corpus-numerics.R, by `objective()`, which integrates random effects out.

file <- base::file(commandArgs(TRUE)[1L], "w")
suppressMessages(library(gradops))
config_set_backend("numpy")

write_line <- function(...) {
  cat(..., sep = "\t", file = file)
  cat("\n", file = file)
  flush(file)
}

# Writes what `code` gives, a number, vector or matrix.
note <- function(name, code) {
  utils::capture.output(found <- tryCatch(suppressWarnings(suppressMessages(code)), error = identity))
  if (inherits(found, "error")) {
    return(write_line(name, class(found)[1L]))
  }
  shape <- paste(dim(found) %||% length(found), collapse = " ")
  write_line(name, shape, paste(sprintf("%a", as.double(found)), collapse = " "))
}

# Writes the derivatives at `x` and at another point, which is when the function is compiled, and the Hessian at `x`.
note_objective <- function(name, make, hessian = TRUE, again = NULL) {
  o <- tryCatch(make(), error = identity)
  if (inherits(o, "error")) {
    return(write_line(paste0(name, "/objective"), class(o)[1L]))
  }
  x <- o$par %||% again
  points <- list(x, x * 1.01 + 0.002, x)
  for (i in seq_along(points)) {
    note(sprintf("%s/value %d", name, i), o$fn(points[[i]]))
    note(sprintf("%s/gradient %d", name, i), o$gr(points[[i]]))
  }
  if (hessian) note(paste0(name, "/Hessian"), o$he(x))
  if (length(o$random)) note(paste0(name, "/parameters"), unlist(o$parameters(x)))
}

# Evaluates a script of benchmarks/ up to the assignment of a name. R libraries stay as they are.
evaluated <- function(script, until) {
  home <- new.env(parent = globalenv())
  for (expression in parse(file.path("benchmarks", script), keep.source = FALSE)) {
    name <- if (is.call(expression) && length(expression) > 1L) expression[[2L]]
    if (identical(name, as.name(until))) break
    if (!identical(expression[[1L]], quote(.libPaths))) eval(expression, home)
  }
  home
}

for (name in setdiff(ls(home <- evaluated("models.R", "seconds")), "seconds")) local({
  model <- home[[name]]
  note_objective(paste("models.R", name), \() objective(model$f), length(model$start) < 60L, model$start)
})

models <- evaluated("laplace.R", "milliseconds")$models
for (name in names(models)) local({
  model <- models[[name]]
  note_objective(paste("laplace.R", name), \() objective(model$f, start = model$start, random = "u"))
})

models <- evaluated("fits.R", "milliseconds")$models
for (name in names(models)) local({
  model <- models[[name]]
  note_objective(paste("fits.R", name), \() objective(model$nll, start = model$start, random = model$random))
})

corpus <- new.env()
sys.source(file.path("tests", "testthat", "helper-corpus.R"), corpus)
for (name in tools::file_path_sans_ext(list.files(file.path("tests", "testthat", "corpus")))) {
  for (case in corpus$corpus(name)) local({
    note_objective(paste(name, case$name), \() objective(case$f), again = case$x)
  })
}

# The functions that test-corpus-numerics.R passes to `expect_corpus()`.
home <- new.env(parent = globalenv())
cases <- list()
home$expect_corpus <- function(functions) cases <<- c(cases, functions)
for (expression in parse(file.path("tests", "testthat", "test-corpus-numerics.R"), keep.source = FALSE)) {
  if (!identical(expression[[2L]], quote(expect_corpus))) eval(expression, home)
}
for (name in names(cases)) local({
  case <- cases[[name]]
  note_objective(paste("numerics", name), \() objective(case$f), again = case$x)
})
close(file)
