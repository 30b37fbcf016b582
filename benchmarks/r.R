# Times an op called from R, a bare reticulate call of the same Python function, and the start of gradops.
#
#     Rscript benchmarks/r.R

# Returns seconds of code in a fresh R process, the least of several: of library(gradops) and the first op, and of
# reticulate alone.
starting <- function(code, times = 5) {
  script <- tempfile(fileext = ".R")
  writeLines(c(code[["before"]], sprintf("cat(system.time({%s})[['elapsed']])", code[["timed"]])), script)
  rscript <- file.path(R.home("bin"), "Rscript")
  min(replicate(times, as.numeric(tail(system2(rscript, script, stdout = TRUE, stderr = FALSE), 1))))
}

seconds <- vapply(
  list(
    "library(gradops)" = c(before = "", timed = "suppressMessages(library(gradops))"),
    "library(reticulate)" = c(before = "", timed = "library(reticulate)"),
    "first op, NumPy" = c(before = "suppressMessages(library(gradops))", timed = "op_exp(c(1, 2))"),
    "Python and NumPy alone" = c(before = "library(reticulate)", timed = "import('numpy')$exp(1)")
  ),
  starting, 0
)
cat("starting, seconds\n")
print(round(seconds, 2))

suppressMessages(library(gradops))

# Returns medians of both, measured in turns, so that other load affects both.
microseconds <- function(bare, ours) {
  if (requireNamespace("bench", quietly = TRUE)) {
    marks <- bench::mark(bare(), ours(), check = FALSE, min_iterations = 5000, filter_gc = FALSE)
    return(as.numeric(marks$median) * 1e6)
  }
  once <- function(f) system.time(for (i in seq_len(2000)) f())[["elapsed"]] / 2000 * 1e6
  turns <- replicate(9, c(once(bare), once(ours)))
  apply(turns, 1, stats::median)
}

gradops_ops <- reticulate::import_from_path("gradops.ops", system.file("python", package = "gradops"), convert = FALSE)

call_back <- reticulate::py_eval("lambda f, x: f(x)", convert = FALSE)
itself <- function(x) x
bare_function <- reticulate::r_to_py(itself)
our_function <- gradops:::callback(itself)

for (backend in Filter(gradops_available, c("numpy", "torch", "tensorflow", "jax"))) {
  config_set_backend(backend)
  x <- op_convert_to_tensor(c(1, 2, 3))
  m <- op_convert_to_tensor(matrix(1:6 / 2, 2))
  exp <- gradops_ops$exp
  add <- gradops_ops$add
  sum <- gradops_ops$sum
  timed <- rbind(
    `op_exp(x)` = microseconds(\() exp(x), \() op_exp(x)),
    `op_add(x, x)` = microseconds(\() add(x, x), \() op_add(x, x)),
    `x + x` = microseconds(\() add(x, x), \() x + x),
    `op_sum(m, axis = 1)` = microseconds(\() sum(m, 0L), \() op_sum(m, axis = 1)),
    `op_exp(c(1, 2, 3))` = microseconds(\() exp(c(1, 2, 3)), \() op_exp(c(1, 2, 3))),
    `R called back` = microseconds(\() call_back(bare_function, x), \() call_back(our_function, x))
  )
  colnames(timed) <- c("bare", "gradops")
  cat("\n", backend, ", microseconds a call\n", sep = "")
  print(round(cbind(timed, ratio = timed[, 2] / timed[, 1]), 2))
}
