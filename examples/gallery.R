# Pictures of what gradops does in R, each drawn by the function that folds out below it on the site's page "Gallery".
#
#   Rscript examples/gallery.R FOLDER
#
# Writes an SVG of each function's name.

library(gradops)

# A graph, drawn by R
#
# `plot()` of what `backward()` goes through; printed it is a tree.
graph <- function() {
  weight <- parameter(c(0.1, 0.1, 0.1))
  x <- matrix(1, 8, 3)
  loss <- mean((1 / (1 + exp(-x %*% weight)))^2) + 0.01 * sum(weight^2)
  plot(autodiff_graph(loss))
}

# Where the time of R code goes
#
# `plot()` of a profile: operations on the way forward and on the way back.
profile_of_a_loss <- function() {
  beta <- variable(rnorm(50), requires_grad = TRUE)
  x <- matrix(rnorm(5e4), 1000)
  loss <- function() mean(log(1 + exp(-x %*% beta))) + sum(abs(beta))
  backward(loss()) # the first takes longer
  plot(with_profile(for (i in 1:20) backward(loss())))
}

# A random effect, with a profile likelihood
#
# Counts of warp breaks by tension, each loom with its own rate. `maximize_likelihood(random = )` integrates these out;
# `plot()` of the profile has the signed root of the likelihood ratio, a line where the normal approximation is good.
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
