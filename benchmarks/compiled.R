# Value and gradient by compiled objectives from R, beside RTMB's tapes where the library has it, and plain R's value.
#
#     OMP_NUM_THREADS=1 Rscript benchmarks/compiled.R [library of RTMB]
#
# `fn` and then `gr` of each contender, microseconds, in turns; the best round counts. Then milliseconds from the
# function to the first value and gradient, in a process that has compiled something before.

arguments <- commandArgs(TRUE)
if (length(arguments) > 0) .libPaths(c(arguments[1], .libPaths()))
library(gradops)
has_rtmb <- requireNamespace("RTMB", quietly = TRUE)

scripts <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
source(file.path(scripts, "models.R"))

cases <- list(
  `logistic regression, 2000 x 10` = logistic, `negative binomial, 1000 x 5` = negative_binomial,
  `Kalman filter, loop of 200` = kalman, `the same by op_scan()` = kalman_scanned,
  `Gaussian process, n = 200` = gaussian_process,
  `AR(1), vectorised, n = 5000` = autoregression, `GARCH(1,1), loop of 500` = garch,
  `50 random intercepts, n = 1000` = random_intercepts, `Kalman filter of two states, 100` = two_states,
  `two hidden states at 50 times` = hidden_states
)

# Milliseconds to the first value and gradient, the least of some, and what gives them.
first <- function(make, x, times = 5) {
  best <- Inf
  for (i in seq_len(times)) {
    spent <- seconds({
      made <- make()
      made$fn(x)
      gradient <- made$gr(x)
    })
    best <- min(best, spent)
  }
  list(made = made, ms = 1e3 * best, gradient = as.vector(gradient))
}

invisible(objective(function(p) sum(p^2), jit = TRUE)$gr(c(1, 2)))
rows <- lapply(names(cases), function(name) {
  case <- cases[[name]]
  x <- case$start
  f <- case$f
  plain <- if (is.null(case$plain)) f else case$plain
  ours <- first(\() objective(f, jit = TRUE), x)
  both <- function(made) \() {
    made$fn(x)
    made$gr(x)
  }
  contenders <- list(gradops = both(ours$made), `plain R, value` = \() plain(x))
  found <- data.frame(gradops_ms = ours$ms, RTMB_ms = NA)
  if (has_rtmb) {
    theirs <- first(\() RTMB::MakeADFun(plain, x, silent = TRUE), x)
    stopifnot(isTRUE(all.equal(ours$gradient, theirs$gradient, tolerance = 1e-6)))
    contenders$RTMB <- both(theirs$made)
    found$RTMB_ms <- theirs$ms
  }
  us <- compare(contenders)
  rtmb <- if (has_rtmb) us[["RTMB"]] else NA
  cbind(data.frame(gradops = us[["gradops"]], RTMB = rtmb, plain = us[["plain R, value"]]), found, row.names = name)
})
table <- do.call(rbind, rows)
table$`to RTMB` <- table$gradops / table$RTMB
table$`to plain` <- table$gradops / table$plain
table$`first, to RTMB` <- table$gradops_ms / table$RTMB_ms
print(round(table, 2))
