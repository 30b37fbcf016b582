# What R code as it stands costs: outside of differentiation, while it is differentiated, and as a gradient.
#
#     Rscript benchmarks/r_code.R

fill <- "fill <- function(n) { h <- numeric(n); for (i in 2:n) h[i] <- h[i - 1] * 0.5 + i; sum(h) }"
timed <- "best <- function(run, n = 7) min(replicate(n, system.time(run())[['elapsed']]))"

# R's own loop, in processes without and with gradops, before and after a derivative was taken.
outside <- function(before) {
  script <- tempfile(fileext = ".R")
  writeLines(c(fill, timed, before, "cat(best(function() fill(1e6)) * 1e3)"), script)
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
  seconds <<- best(function() fill(1e5), 3)
  p^2
}, 1))
cat("\none assignment of R's own numbers, microseconds: outside ", round(best(function() fill(1e6)), 3),
    ", while a function is differentiated ", round(seconds * 10, 2), "\n", sep = "")

# Eager gradients of loops of scalar operations: a vector, a matrix by rows and one by elements that are filled, a
# vector that grows, and a scalar alone.
loops <- list(
  "a vector filled" = function(p) {
    h <- numeric(n)
    h[1] <- p[1]
    for (i in 2:n) h[i] <- h[i - 1] * p[2] + 0.1
    sum(h)
  },
  "a matrix by rows" = function(p) {
    M <- matrix(0, n, 2)
    M[1, ] <- p
    for (i in 2:n) M[i, ] <- M[i - 1, ] * p[2]
    sum(M)
  },
  "a matrix by elements" = function(p) {
    M <- matrix(0, n, 2)
    M[1, ] <- p
    for (i in 2:n) {
      M[i, 1] <- M[i - 1, 2] * p[2]
      M[i, 2] <- M[i - 1, 1] + 0.1
    }
    sum(M)
  },
  "a vector that grows" = function(p) {
    h <- NULL
    h[1] <- p[1]
    for (i in 2:n) h[i] <- h[i - 1] * p[2] + 0.1
    sum(h)
  },
  "four operations on a scalar" = function(p) {
    s <- p[1]
    for (i in seq_len(n)) s <- (s * p[2] + p[1]) * 0.5 + 0.1
    s
  }
)
x <- c(0.5, 0.9)
sizes <- c(200, 500, 2000)
for (backend in Filter(gradops_available, c("numpy", "torch"))) {
  config_set_backend(backend)
  cat("\n", backend, ", milliseconds of an eager gradient of n steps\n", sep = "")
  print(round(1e3 * t(sapply(loops, function(f) {
    slope <- grad_fn(f)
    sapply(stats::setNames(nm = sizes), function(size) {
      n <<- size
      slope(x)
      best(function() slope(x), if (size < 1000) 3 else 2)
    })
  }))))
}
