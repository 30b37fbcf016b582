test_each("solutions of solvers have derivatives to third order", {
  root <- function(a) uniroot(function(x) x^3 - a, c(0, 5))$root
  expect_equal(hessian(root, 8), matrix(-2 / 9 * 8^(-5 / 3)), tolerance = 1e-6)
  third <- grad_fn(function(a) gradient(function(a) gradient(root, a), a))
  expect_equal(third(8), 10 / 27 * 8^(-8 / 3), tolerance = 1e-6)
  minimum <- function(a) optim(c(0, 0), function(x) (x[1] - a)^2 + (x[1] * x[2] - a^2)^2 + x[2]^2)$value
  exact <- function(a) {
    distance <- function(x) (x[1] - a)^2 + (x[1] * x[2] - a^2)^2 + x[2]^2
    stats::optim(c(0, 0), distance, method = "BFGS", control = list(reltol = 1e-15))$value
  }
  expect_equal(gradient(minimum, 1), numeric_gradient(exact, 1, 1e-4), tolerance = 1e-5)
  tail <- function(a) integrate(function(x) exp(-x^2), a, Inf)$value
  expect_equal(hessian(tail, 0.5), matrix(2 * 0.5 * exp(-0.25)), tolerance = 1e-7)
})

test_each("other results of solvers match stats", {
  f <- function(p) {
    found <- optim(c(a = 0, b = 0), function(x) sum((x - p)^2) + x[["a"]]^4, method = "BFGS", hessian = TRUE)
    expected <- c("par", "value", "counts", "convergence", "message", "hessian")
    expect_identical(names(found), expected[seq_along(found)])
    expect_identical(names(found$par), c("a", "b"))
    expect_identical(found$convergence, 0L)
    sum(found$hessian)
  }
  expect_equal(value_and_grad(f)(c(1, 2))$value, 4 + 12 * 0.5897545123014^2, tolerance = 1e-6)
  bounded <- function(p) sum(optim(c(1, 1), function(x) sum((x - p)^2), lower = 0.5)$par * 1:2)
  expect_equal(gradient(bounded, c(2, 0.1)), c(1, 0), tolerance = 1e-6)
  expect_identical(uniroot(function(x) x - 1, c(0, 3)), stats::uniroot(function(x) x - 1, c(0, 3)))
  expect_identical(optimize(cos, c(0, 4)), stats::optimize(cos, c(0, 4)))
  expect_identical(optim(c(1, 1), function(x) sum(x^2)), stats::optim(c(1, 1), function(x) sum(x^2)))
  expect_identical(integrate(dnorm, -1, 1)$value, stats::integrate(stats::dnorm, -1, 1)$value)
})

test_each("nlm() and nlminb() are differentiable like optim(), and solutions at a bound move with it", {
  loss <- function(p) function(x) (x[1] - p[1])^2 + (x[2] - p[1] * p[2])^2
  p <- c(0.7, 1.2)
  estimate <- function(p) sum(nlm(loss(p), c(0, 0))$estimate * 1:2)
  expect_equal(gradient(estimate, p), c(1 + 2 * 1.2, 1.4), tolerance = 1e-6)
  least <- function(p) nlm(function(x) loss(p)(x) + x[1]^2, c(0, 0), hessian = TRUE)
  expect_equal(hessian(function(p) least(p)$minimum, p), matrix(c(1, 0, 0, 0), 2), tolerance = 1e-6)
  expect_equal(gradient(function(p) sum(least(p * p)$hessian), p), c(0, 0), tolerance = 1e-6)
  names <- function(p) nlminb(c(a = 0, b = 0), loss(p))$par[["b"]]
  expect_equal(gradient(names, p), c(1.2, 0.7), tolerance = 1e-6)
  bound <- list(
    function(p) nlminb(c(1, 3), loss(p), lower = c(-1, p[2] + 1))$par,
    function(p) optim(c(1, 3), loss(p), method = "L-BFGS-B", lower = c(-1, p[2] + 1))$par
  )
  for (f in bound) expect_equal(gradient(function(p) sum(f(p) * 1:2), p), c(1, 2), tolerance = 1e-6)
  expect_equal(gradient(function(p) optimize(function(x) (x - p[1])^2, c(p[2], 5))$minimum, p), c(0, 1))
  expect_equal(jit(grad_fn(function(p) nlm(loss(p), c(0, 0))$estimate[2]))(p), c(1.2, 0.7), tolerance = 1e-6)
  expect_error(jit(function(p) nlminb(c(0, 0), loss(p), lower = 0)$objective)(p), "bounds", class = "gradops_error_jit")
  f <- function(x) sum((x - 1:2)^2)
  expect_identical(nlm(f, c(0, 0), hessian = TRUE), stats::nlm(f, c(0, 0), hessian = TRUE))
  expect_identical(nlminb(c(0, 0), f), stats::nlminb(c(0, 0), f))
})

test_each("undefined derivatives raise an error", {
  expect_error(
    gradient(function(a) uniroot(function(x) (x - a)^3, c(-1, 4), tol = 1e-14)$root, 2), "slope",
    class = "gradops_error_gradient"
  )
  expect_error(
    gradient(function(a) uniroot(function(x) x^3 - a, c(-1, 3))$root, 0), "slope", class = "gradops_error_gradient"
  )
  expect_error(
    gradient(function(a) optim(c(1, 1), function(x) (x[1] - a)^2, method = "BFGS")$value, 1), "singular",
    class = "gradops_error_gradient"
  )
  expect_error(
    gradient(function(a) integrate(function(x) 1 / (x * a), 0, 1)$value, 1), "diverge|non-finite|maximum"
  )
})

test_each("a solution found inside another solver is assigned like a number", {
  inner <- list(
    integrate = function(q) integrate(function(x) x^2, 0, q)$value,
    uniroot = function(q) uniroot(function(z) 3 * z - q^3, c(-9, 9), tol = 1e-9)$root,
    optimize = function(q) optimize(function(z) (z - q^3 / 3)^2, c(-9, 9), tol = 1e-9)$minimum
  )
  for (name in names(inner)) {
    filled <- function(q) {
      out <- numeric(1)
      out[1] <- inner[[name]](q)
      out
    }
    root <- function(p) uniroot(function(q) filled(q) - p, c(0.1, 2), tol = 1e-9)$root
    expect_equal(gradient(root, 0.5), 1.5^(-2 / 3), tolerance = 1e-4, info = name)
  }
})

test_each("settings of a search may be computed from tensors, and joined with labels", {
  f <- function(p) {
    label <- c(method = "t", df = p[1])
    square <- function(m) sum((m - p)^2)
    nlminb(1, square, control = list(step.max = p[1]))$par * nchar(label[["method"]]) +
      optim(1, square, method = "BFGS", control = list(reltol = 1e-12 * p[1]))$par
  }
  expect_equal(gradient(f, c(2, 3)), c(1, 1), tolerance = 1e-6)
})
