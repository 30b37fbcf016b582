# Times value and gradient by compiled objectives in R, by RTMB's tapes (if installed), and the value in plain R.
#
#     OMP_NUM_THREADS=1 Rscript benchmarks/compiled.R [library of RTMB]
#
# The table has microseconds of `fn` and then `gr`; the packages take turns, and the best round counts. It also has
# milliseconds from the function to its first value and gradient: the least of five in this process, and the time in a
# fresh process. Both have differentiated another function before.

arguments <- commandArgs(TRUE)
alone <- match("--first", arguments, nomatch = 0) # followed by a model and a package: the script calls itself so
model <- if (alone > 0) arguments[alone + 1:2]
if (alone > 0) arguments <- arguments[seq_len(alone - 1)]
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

# Returns what `make()` made, the least milliseconds to its first value and gradient, and that gradient.
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

makers <- list(
  gradops = function(case) objective(case$f, jit = TRUE),
  RTMB = function(case) RTMB::MakeADFun(if (is.null(case$plain)) case$f else case$plain, case$start, silent = TRUE)
)
square <- list(f = function(p) sum(p^2), start = c(1, 2))

if (alone > 0) {
  make <- makers[[model[2]]]
  invisible(first(\() make(square), square$start, times = 1))
  cat(first(\() make(cases[[model[1]]]), cases[[model[1]]]$start, times = 1)$ms, "\n")
  quit()
}

# Returns milliseconds to the first result in a fresh process, the median of three.
in_own_process <- function(name, contender) {
  given <- c(file.path(scripts, "compiled.R"), arguments, "--first", name, contender)
  stats::median(replicate(3, {
    said <- system2(file.path(R.home("bin"), "Rscript"), shQuote(given), stdout = TRUE)
    as.numeric(said[length(said)])
  }))
}

invisible(first(\() makers$gradops(square), square$start))
rows <- lapply(names(cases), function(name) {
  case <- cases[[name]]
  x <- case$start
  f <- case$f
  plain <- if (is.null(case$plain)) f else case$plain
  ours <- first(\() makers$gradops(case), x)
  both <- function(made) \() {
    made$fn(x)
    made$gr(x)
  }
  contenders <- list(gradops = both(ours$made), `plain R, value` = \() plain(x))
  found <- data.frame(gradops_ms = ours$ms, RTMB_ms = NA, gradops_once = in_own_process(name, "gradops"), RTMB_once = NA)
  if (has_rtmb) {
    theirs <- first(\() makers$RTMB(case), x)
    same <- all.equal(ours$gradient, theirs$gradient, tolerance = 1e-6)
    if (!isTRUE(same)) stop("the gradients of ", name, " differ: ", same)
    contenders$RTMB <- both(theirs$made)
    found$RTMB_ms <- theirs$ms
    found$RTMB_once <- in_own_process(name, "RTMB")
  }
  us <- compare(contenders)
  rtmb <- if (has_rtmb) us[["RTMB"]] else NA
  cbind(data.frame(gradops = us[["gradops"]], RTMB = rtmb, plain = us[["plain R, value"]]), found, row.names = name)
})
table <- do.call(rbind, rows)
table$`to RTMB` <- table$gradops / table$RTMB
table$`to plain` <- table$gradops / table$plain
table$`first, to RTMB` <- table$gradops_ms / table$RTMB_ms
table$`once, to RTMB` <- table$gradops_once / table$RTMB_once
print(round(table, 2))
