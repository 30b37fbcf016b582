# Draws the pictures of R on the site's page "Gallery", which shows each function below its picture.
#
#   Rscript examples/gallery.R FOLDER
#
# Writes an SVG named after each function.

library(gradops)

# A graph, drawn by R
#
# `plot()` of the graph that `backward()` traverses. `print()` shows it as a tree.
graph <- function() {
  weight <- parameter(c(0.1, 0.1, 0.1))
  x <- matrix(1, 8, 3)
  loss <- mean((1 / (1 + exp(-x %*% weight)))^2) + 0.01 * sum(weight^2)
  plot(autodiff_graph(loss))
}

# Where the time of R code goes
#
# `plot()` of a profile: the time of each operation in the forward and backward passes.
profile_of_a_loss <- function() {
  beta <- variable(rnorm(50), requires_grad = TRUE)
  x <- matrix(rnorm(5e4), 1000)
  loss <- function() mean(log(1 + exp(-x %*% beta))) + sum(abs(beta))
  backward(loss()) # a warm-up: the first call takes longer
  plot(with_profile(for (i in 1:20) backward(loss())))
}

# A random effect, with a profile likelihood
#
# Counts of warp breaks by tension, with a rate for each loom. `maximize_likelihood(random = )` integrates the rates
# out. `plot()` of the profile shows the signed root of the likelihood ratio, which is a straight line where the normal
# approximation is good.
mixed_model <- function() {
  data <- transform(warpbreaks, loom = rep(1:6, each = 9), low = tension == "L")
  joint <- function(p, data) {
    rate <- exp(p$base + p$low * data$low + p$u[data$loom])
    -sum(dpois(data$breaks, rate, log = TRUE)) - sum(dnorm(p$u, 0, exp(p$log_sd), log = TRUE))
  }
  start <- list(base = 3, low = 0, log_sd = -1, u = numeric(6))
  fit <- maximize_likelihood(joint, start, data, random = "u")
  plot(profile(fit, "low"))
}

if (!interactive()) {
  set.seed(1)
  folder <- commandArgs(TRUE)[1]
  size <- list(graph = c(6, 5.5), profile_of_a_loss = c(7, 3.4), mixed_model = c(7, 4))
  for (name in names(size)) {
    svg(file.path(folder, paste0(name, ".svg")), size[[name]][1], size[[name]][2])
    get(name)()
    dev.off()
  }
}
