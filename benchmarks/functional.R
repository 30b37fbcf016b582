# Times value and gradient of likelihoods in R: plain R, numDeriv, gradops eager and compiled, and hand-written NumPy.
#
#     OMP_NUM_THREADS=1 Rscript benchmarks/functional.R
#
# They take turns, and the best round of each counts. `fn` is the value, `gr` the gradient, and `both` is both together.

library(gradops)

scripts <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
source(file.path(scripts, "models.R"))

# Value and gradient by hand in NumPy, and the data that they read ----------------------------------------------------

by_hand <- function(model, data, python, on_jax = model$f) {
  environment(on_jax) <- environment(model$f)
  c(model, list(data = mget(data, environment(model$f)), python = python, on_jax = on_jax))
}

logistic <- by_hand(logistic, c("X", "y"), "
def both(beta):
    eta = X @ beta
    return np.sum(np.logaddexp(0, eta) - y * eta), X.T @ (1 / (1 + np.exp(-eta)) - y)
")

negative_binomial <- by_hand(negative_binomial, c("X", "y"), "
from scipy.special import gammaln, digamma
def both(b):
    theta, eta = np.exp(b[5]), X @ b[:5]
    mu = np.exp(eta)
    total = np.log(theta + mu)
    value = -np.sum(gammaln(y + theta) - gammaln(theta) + theta * (b[5] - total) + y * (eta - total))
    by_eta = -(y - (theta + y) * mu / (theta + mu))
    by_theta = -np.sum(digamma(y + theta) - digamma(theta) + b[5] - total + 1 - (theta + y) / (theta + mu))
    return value, np.append(X.T @ by_eta, by_theta * theta)
")

kalman <- by_hand(kalman, "y", "
def both(p):
    q, r = np.exp(p)
    q, r = float(q), float(r)
    a, P, total = 0.0, 10.0, 0.0
    da, dP, dtotal = (0.0, 0.0), (0.0, 0.0), [0.0, 0.0]
    for value in y.tolist():
        P, dP = P + q, (dP[0] + q, dP[1])
        S, dS = P + r, (dP[0], dP[1] + r)
        v = value - a
        total += math.log(S) + v * v / S
        K = P / S
        dK = [(dP[i] - K * dS[i]) / S for i in (0, 1)]
        for i in (0, 1):
            dtotal[i] += dS[i] / S - 2 * v * da[i] / S - v * v * dS[i] / (S * S)
        da = [da[i] * (1 - K) + dK[i] * v for i in (0, 1)]
        a = a + K * v
        dP = [dP[i] * (1 - K) - P * dK[i] for i in (0, 1)]
        P = P * (1 - K)
    return total / 2, np.array(dtotal) / 2
",
  # XLA takes minutes to compile 200 steps written out, so on JAX the loop is one operation
  on_jax = kalman_scanned$f
)

gaussian_process <- by_hand(gaussian_process, c("D", "y", "I"), "
from scipy.linalg import cho_factor, cho_solve
def both(p):
    E = np.exp(p[0]) * np.exp(-D * np.exp(-2 * p[1]) / 2)
    noise = np.exp(2 * p[2])
    c = cho_factor(E + noise * I)
    alpha = cho_solve(c, y)
    W = cho_solve(c, I) - np.outer(alpha, alpha)
    value = y @ alpha / 2 + np.sum(np.log(np.diag(c[0])))
    return value, np.array([np.sum(W * E), np.sum(W * E * D) * np.exp(-2 * p[1]), 2 * noise * np.trace(W)]) / 2
")

cases <- list(
  `logistic regression, n 2000, p 10` = logistic, `negative binomial, n 1000, p 6` = negative_binomial,
  `Kalman filter, 200 steps` = kalman, `Gaussian process, n 200` = gaussian_process
)

# Timing ---------------------------------------------------------------------------------------------------------------

hand_written <- function(case) {
  main <- reticulate::import_main(convert = FALSE)
  reticulate::py_run_string("import numpy as np, math")
  for (name in names(case$data)) main[[name]] <- reticulate::np_array(case$data[[name]])
  reticulate::py_run_string(paste0("import numpy as np, math\n", case$python))
  reticulate::import_main(convert = TRUE)$both
}

for (name in names(cases)) {
  case <- cases[[name]]
  x <- case$start
  f <- case$f
  config_set_backend("numpy")
  hand <- hand_written(case)
  count <- 0
  eager <- objective(function(x) {
    count <<- count + 1 # a side effect, so it is not compiled
    f(x)
  })
  again <- objective(f) # compiled from the second call on
  compiled <- objective(f, jit = TRUE)
  contenders <- list(
    `plain R, fn` = \() f(x),
    `numDeriv, gr` = if (requireNamespace("numDeriv", quietly = TRUE)) \() numDeriv::grad(f, x),
    `NumPy by hand, both` = \() hand(x),
    `gradops eager on NumPy, both` = \() {
      eager$fn(x)
      eager$gr(x)
    },
    `gradops again on NumPy, both` = \() {
      again$fn(x)
      again$gr(x)
    },
    `gradops jit on NumPy, both` = \() {
      compiled$fn(x)
      compiled$gr(x)
    }
  )
  found <- list(hand(x)[[2]], eager$gr(x), again$gr(x), compiled$gr(x))
  times <- compare(Filter(Negate(is.null), contenders), rounds = 10)
  if (gradops_available("jax")) {
    config_set_backend("jax")
    on_jax <- objective(case$on_jax, jit = TRUE)
    found <- c(found, list(on_jax$gr(x)))
    times <- c(times, compare(list(`gradops jit on JAX, both` = \() {
      on_jax$fn(x)
      on_jax$gr(x)
    }), rounds = 10))
  }
  stopifnot(vapply(found, \(g) isTRUE(all.equal(as.vector(g), as.vector(found[[1]]), tolerance = 1e-6)), NA))
  cat("\n", name, "\n\n", sep = "")
  print(data.frame(
    us = round(times), `to NumPy by hand` = round(times / times[["NumPy by hand, both"]], 2),
    `numDeriv over it` = round(times["numDeriv, gr"] / times, 1), check.names = FALSE
  ))
}
