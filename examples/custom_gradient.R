# A function with a custom gradient, written in R, on every installed backend.
#
#     Rscript examples/custom_gradient.R

suppressPackageStartupMessages(library(gradops))

# log(1 + exp(x)), as in the documentation of Keras' op_custom_gradient(): where exp(x) overflows, as it does in float32
# at 100, the plain derivative is NaN.
plain_log1pexp <- function(x) log1p(exp(x))

log1pexp <- op_custom_gradient(function(x) {
  e <- exp(x)
  grad <- function(..., upstream = NULL) upstream * (1 - 1 / (1 + e))
  tuple(log1p(e), grad)
})

derivatives <- function() {
  overflowing <- op_cast(100, "float32")
  first <- grad_fn(log1pexp)
  second <- grad_fn(\(x) gradient(log1pexp, x))
  c(as.numeric(gradient(plain_log1pexp, overflowing)), as.numeric(first(overflowing)), first(2), second(2))
}
expected <- c(NaN, 1, 0.8807970779778824, 0.1049935854035065)

# Logistic regression on R's infert data: the negative log-likelihood, minimised by optim() with its gradient.
formula <- case ~ age + parity + spontaneous + induced
X <- model.matrix(formula, infert)
y <- infert$case

coefficients <- function() {
  loss <- value_and_grad(function(beta) {
    eta <- X %*% beta
    sum(log1pexp(eta) - y * eta)
  })
  optim(
    numeric(ncol(X)), \(beta) loss(beta)$value, \(beta) loss(beta)$gradient,
    method = "BFGS", control = list(reltol = 1e-16)
  )$par
}
reference <- coef(glm(formula, binomial, infert, control = glm.control(epsilon = 1e-14)))

backends <- Filter(gradops_available, c("numpy", "torch", "tensorflow", "jax"))
results <- lapply(backends, function(backend) {
  with_backend(backend, list(slopes = derivatives(), beta = coefficients()))
})
apart <- vapply(results, \(result) max(abs(result$beta - reference)), 0)

# Prints a table. The first row is the header.
show <- function(...) {
  cells <- apply(rbind(...), 2, format)
  lines <- apply(cells, 1, paste, collapse = "  ")
  cli::cat_line(cli::style_bold(lines[1]))
  cli::cat_line(lines[-1])
}

cli::cat_rule("Derivatives of log1pexp")
slopes <- t(vapply(results, \(result) vapply(result$slopes, format, "", digits = 16), character(4)))
show(
  c("", "plain at 100", "custom at 100", "first at 2", "second at 2"),
  cbind(backends, slopes)
)

cli::cat_line()
cli::cat_rule("Logistic regression on infert: optim() with this gradient against glm()")
betas <- t(vapply(results, \(result) sprintf("%.6f", result$beta), character(5)))
show(
  c("", names(reference), "largest difference"),
  c("glm()", sprintf("%.6f", reference), ""),
  cbind(backends, betas, sprintf("%.0e", apart))
)

cli::cat_line()
right <- vapply(results, \(result) isTRUE(all.equal(result$slopes, expected, tolerance = 1e-15)), NA) & apart < 1e-6
if (!all(right)) cli::cli_abort("Wrong on {backends[!right]}.")
cli::cli_alert_success("The same on {backends}.")
