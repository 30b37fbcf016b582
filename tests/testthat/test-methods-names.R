# Names of the rows and columns of tensors, and functions of stats on their way, against R's own on numbers.

of_names <- list(
  function(p) matrix(c(p, 2 * p), 2, dimnames = list(c("k", "j"), c("l", "m")))["k", "m"] * p[2],
  function(p) {
    P <- matrix(c(p, 2 * p), 2)
    colnames(P) <- c("a", "b")
    rownames(P) <- c("x", "y")
    P[, "b"][["y"]] * P["x", "a"]
  },
  function(p) {
    M <- cbind(u = p, v = p^2)
    sum((2 * M)[, "v"]) * t(M)["u", 2] * colSums(M)[["v"]] * apply(M, 2, sum)[["u"]] * crossprod(M)["u", "v"]
  },
  function(p) rbind(u = p, v = p^2, w = 1)[c("v", "w"), , drop = FALSE]["w", 1] * rbind(u = p, v = p^2)["v", 2],
  function(p) outer(c(a = 1, b = 2), setNames(p, c("c", "d")))["b", "d"],
  function(p) {
    vapply(c(a = 1, b = 2), function(k) k * p[1], 0)["b"] * sapply(c(a = 1, b = 2), function(k) k * p)[2, "b"]
  },
  function(p) {
    P <- matrix(c(p, 2 * p), 2, dimnames = list(NULL, c("l", "m")))
    P[, "m"] <- p^2
    sum(P[, "m"] * P[, "l"])
  }
)

of_stats <- list(
  function(p) sum(ARMAacf(c(p[1] / 2, -0.2 * p[2]), p[2] / 3, 4)^2),
  function(p) sum(ARMAtoMA(p[1] / 2, p[2], 5)^2),
  function(p) sum(diffinv(p * 1:2, xi = p[1])^2) + sum(diffinv(p, 1, 2, xi = c(p[2], 1))^2),
  function(p) sum(cov.wt(cbind(c(1, 2, 4), c(3, 1, 2)) * p[1], wt = c(p[2], 1, 1) / (p[2] + 2))$cov),
  function(p) sum(Mod(polyroot(c(p, 1)))^3)
)

test_each("names of rows and columns, eager and compiled", {
  p <- c(0.7, 1.3)
  for (f in c(of_names, of_stats)) {
    slope <- vapply(list(c(1e-5, 0), c(0, 1e-5)), function(h) as.numeric(f(p + h) - f(p - h)) / 2e-5, 0)
    expect_equal(gradient(f, p), slope, tolerance = 1e-6)
  }
  for (f in if (backend == "numpy") of_names) expect_equal(objective(f, jit = TRUE)$gr(p), gradient(f, p))
  x <- op_reshape(1:6, c(2, 3))
  dimnames(x) <- list(c("a", "b"), NULL)
  expect_identical(dimnames(x), list(c("a", "b"), NULL))
  expect_identical(names(x[, 2]), c("a", "b"))
  expect_error(x["z", 1], class = "gradops_error_axis")
})

test_once("derivatives of roots to the fourth order", {
  f <- function(p) sum(Mod(polyroot(c(p, 0, 1)))) # the roots are +-1i * sqrt(p)
  found <- numeric()
  for (order in 1:4) {
    f <- grad_fn(f)
    found[order] <- f(2)
  }
  expect_equal(found, 2 * c(1 / 2 * 2^-0.5, -1 / 4 * 2^-1.5, 3 / 8 * 2^-2.5, -15 / 16 * 2^-3.5))
})
