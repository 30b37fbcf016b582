# What R code as it stands costs: outside of differentiation, while it is differentiated, and as a gradient.
#
#     Rscript benchmarks/r_code.R

fill <- "fill <- function(n) { h <- numeric(n); for (i in 2:n) h[i] <- h[i - 1] * 0.5 + i; sum(h) }"
timed <- "best <- function(code, n = 7) min(replicate(n, system.time(eval(code))[['elapsed']]))"

# R's own loop, in processes without and with gradops, before and after a derivative was taken.
outside <- function(before) {
  script <- tempfile(fileext = ".R")
  writeLines(c(fill, timed, before, "cat(best(quote(fill(1e6))) * 1e3)"), script)
  as.numeric(tail(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = FALSE), 1))
}
attached <- "suppressMessages(library(gradops))"
milliseconds <- c(
  "R alone" = outside(""),
  "gradops attached" = outside(attached),
  "after a derivative" = outside(c(attached, "invisible(gradient(function(p) { fill(10); p^2 }, 1))"))
)
cat("1e6 assignments of R's own numbers, milliseconds\n")
print(round(milliseconds, 1))

suppressMessages(library(gradops))
eval(parse(text = c(fill, timed)))
seconds <- NULL
invisible(gradient(function(p) {
  seconds <<- best(quote(fill(1e5)), 3)
  p^2
}, 1))
cat("\none assignment of R's own numbers, microseconds: outside ", round(best(quote(fill(1e6))), 3),
    ", while a function is differentiated ", round(seconds * 10, 2), "\n", sep = "")

# Gradients of loops of scalar operations, with a helper that fills a vector, and with a scalar alone.
filled <- function(p) {
  h <- numeric(500)
  h[1] <- p[1]
  for (i in 2:500) h[i] <- h[i - 1] * p[2] + p[1] * 0.5
  sum(h)
}
scalar <- function(p) {
  s <- p[1]
  for (i in 1:500) s <- (s * p[2] + p[1]) * 0.5 + 0.1
  s
}
for (backend in Filter(gradops_available, c("numpy", "torch"))) {
  config_set_backend(backend)
  x <- c(0.5, 0.9)
  slope <- list(filled = grad_fn(filled), scalar = grad_fn(scalar))
  for (f in slope) f(x)
  cat("\n", backend, ", milliseconds of an eager gradient\n", sep = "")
  print(round(1e3 * c(
    "500 values filled" = best(quote(slope$filled(x)), 5), "2000 scalar operations" = best(quote(slope$scalar(x)), 5),
    "the smallest" = best(quote(for (i in 1:100) grad(function(p) p^2, 1)), 5) / 100
  ), 2))
}
