# Mistakes of newcomers who follow the pages, and the correction that each error message suggests.

test_once("errors of a first attempt say what to write", {
  normal <- function(m, s) -sum(dnorm(c(1, 2), m, s, log = TRUE))
  say <- function(code, class, words) {
    error <- expect_error(code, class = paste0("gradops_error_", class))
    expect_match(conditionMessage(error), words, fixed = TRUE)
  }
  say(maximize_likelihood(normal, list(m = 0, s = 1)), "type", "in the form of `start`")
  say(maximize_likelihood(function(p) normal(p$mu, 1), list(m = 0)), "jit", "A misspelt name gives NULL")
  say(maximize_likelihood(function(p) normal(p$m, 1), c(m = 0)), "argument", "`x[[\"m\"]]`")
  say(optim(c(1, 1), objective(function(p) sum(p^2))), "type", "m$fn, m$gr")
  say(nlminb(c(1, 1), objective(function(p) sum(p^2))), "type", "m$fn, m$gr, m$he")
  say(vmap(function(x, y) x * y, in_axes = c(1, NULL))(c(1, 2), 2), "shape", "list(1, NULL)")
  say(value_and_grad(function(x) list(sum(x^2), x))(1), "gradient", "has_aux=TRUE")
  say(gradient(function(a) kappa(matrix(a, 2)), c(2, 1, 1, 3)), "type", "?r_function")
  say(root(function(z) z^2 + 1, 1), "gradient", "no solution")
  say(grad_fn(sum, argnums = "y"), "argument", "names of arguments of the function")
})

test_once("the differentiated arguments may be given by name", {
  f <- function(x, y) sum(x * y^2)
  expect_equal(grad_fn(f, argnums = "y")(c(1, 2), c(3, 4)), c(6, 16))
  expect_equal(grad_fn(f, argnums = c("y", "x"))(1, 3), list(6, 9))
  expect_equal(hessian_fn(f, argnums = "y")(c(1, 2), c(3, 4)), diag(c(2, 4)))
  expect_equal(jit(function(x, n) sum(x)^n, static_argnums = "n")(c(1, 2), 2), 9)
})

test_once("a list of tensors is scaled as a whole", {
  slopes <- gradient(function(p) {
    p <- op_scaled_gradient(p, -0.5)
    expect_named(p, c("w", "b"))
    sum(p$w) * p$b
  }, list(w = c(1, 2), b = 3))
  expect_equal(slopes, list(w = c(-1.5, -1.5), b = -1.5))
})
