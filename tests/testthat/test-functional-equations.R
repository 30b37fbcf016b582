# deSolve's ode() with derivatives, against closed forms and deSolve's results.

decay <- function(t, y, p) {
  with(as.list(c(y, p)), list(c(-k * A, k * A - m * B), total = A + B, t))
}

# Returns the solution from (1, 0), in columns A and B.
decayed <- function(p, t) {
  cbind(exp(-p[[1]] * t), p[[1]] / (p[[2]] - p[[1]]) * (exp(-p[[1]] * t) - exp(-p[[2]] * t)))
}

rates <- c(k = 0.7, m = 0.2)
start <- c(A = 1, B = 0)
days <- c(0, 0.5, 2)

test_each("ode() matches values and derivatives of the closed form for every method", {
  at <- unname(decayed(rates, days))
  want <- cbind(days, at, rowSums(at), days, deparse.level = 0)
  for (method in c("lsoda", "bdf", "radau", "ode45", "ode23")) {
    solved <- function(p, y = start, times = days) {
      ode(y, times, decay, p, method, rtol = 1e-5, atol = 1e-6)
    }
    found <- solved(rates)
    expect_equal(dimnames(found), list(NULL, c("time", "A", "B", "total", "")), info = method)
    expect_equal(unname(found), want, tolerance = 1e-3, info = method)
    if (!is_long() && method %in% c("bdf", "radau", "ode23")) next
    expect_equal(
      gradient(function(p) solved(p)[3, "B"], rates), numeric_gradient(function(p) decayed(p, 2)[2], rates),
      tolerance = 1e-3, ignore_attr = TRUE, info = method
    )
  }
  expect_equal(gradient(function(y) solved(rates, y)[3, "A"], start), c(A = exp(-1.4), B = 0), tolerance = 1e-3)
  at_end <- function(times) ode(start, times, decay, as.list(rates))[3, "A"]
  expect_equal(gradient(at_end, days), 0.7 * exp(-1.4) * c(1, 0, -1), tolerance = 1e-4)
})

test_each("one step from each time to the next is compiled, to every order", {
  times <- seq(0, 2, 0.25)
  growth <- function(z, is_rk4) if (is_rk4) 1 + z + z^2 / 2 + z^3 / 6 + z^4 / 24 else 1 + z
  for (method in c("rk4", "euler")) {
    solved <- function(p) ode(c(y = 2), times, function(t, y, p) list(-p * y), p, method)[9, "y"]
    exact <- function(p) 2 * growth(-0.25 * p, method == "rk4")^8
    expect_equal(as.vector(ode(c(y = 2), times, function(t, y, p) list(-p * y), 0.9, method)[9, "y"]), exact(0.9))
    expect_equal(gradient(solved, 0.9), gradient(exact, 0.9), tolerance = 1e-10)
    expect_equal(hessian(solved, 0.9), hessian(exact, 0.9), tolerance = 1e-10)
    model <- objective(solved, jit = TRUE)
    expect_equal(model$fn(0.9), exact(0.9))
    expect_equal(model$gr(1.3), gradient(exact, 1.3), tolerance = 1e-10)
  }
})

test_each("ode() ends at a root of `rootfunc`, whose time and state have derivatives", {
  fall <- function(t, y, p) list(c(y[[2]], -p[["g"]]))
  landing <- function(p, method = "ode45", ...) {
    start <- if (is.list(p)) c(p$h, 0) else do.call(c, list(p[["h"]], 0))
    ode(start, c(0, 0.5, 9), fall, p, method, 1e-8, 1e-8, rootfunc = function(t, y, p) y[[1]], ...)
  }
  p <- c(h = 5, g = 9.8)
  for (method in c("ode45", "lsoda")) {
    found <- landing(p, method)
    expect_equal(dim(found), c(3L, 3L))
    expect_equal(unname(found[3, ]), c(sqrt(10 / 9.8), 0, -sqrt(98)), tolerance = 1e-6, info = method)
    expect_equal(gradient(function(p) landing(p, method)[3, 1], p), c(h = 1 / sqrt(98), g = -sqrt(10 / 9.8) / 19.6),
      tolerance = 1e-6, info = method
    )
  }
  expect_equal(gradient(function(p) landing(p)[3, 3], p), c(h = -sqrt(9.8 / 10), g = -sqrt(10 / 9.8) / 2),
    tolerance = 1e-6
  )
  # A root at the start does not count; of several functions the first to be 0 does.
  thrown <- function(g) {
    ode(c(0, 3), c(0, 9), fall, c(g = g), "ode45", 1e-8, 1e-8, rootfunc = function(t, y, p) c(y[[2]] + 99, y[[1]]))
  }
  expect_equal(unname(thrown(9.8)[2, 1]), 6 / 9.8, tolerance = 1e-6)
  expect_equal(gradient(function(g) thrown(g)[2, 1], 9.8), -6 / 9.8^2, tolerance = 1e-6)
  expect_equal(nrow(ode(c(5, 0), c(0, 0.5), fall, p, "ode45", rootfunc = function(t, y, p) y[[1]])), 2L)
})

test_once("unsupported arguments of ode() are refused", {
  skip_without("numpy")
  local_backend("numpy")
  fall <- function(t, y, p) list(-y)
  refused <- function(message, ...) expect_error(ode(...), message, class = "gradops_error_argument")
  refused("Take \"lsoda\"", c(y = 1), 0:2, fall, NULL, "adams")
  refused("must be one of", c(y = 1), 0:2, fall, NULL, "rk5")
  refused("has `events`", c(y = 1), 0:2, fall, NULL, events = 1)
  refused("must return a list", c(y = 1), 0:2, function(t, y, p) -y)
  refused("must return 1 slopes", c(y = 1), 0:2, function(t, y, p) list(c(y, y)))
  refused("`times` gives the steps", c(y = 1), 0:2, fall, NULL, "rk4", hmax = 1)
  refused("needs a method that finds its steps", c(y = 1), 0:2, fall, NULL, "rk4", rootfunc = function(t, y, p) y)
  refused("two numbers or more", c(y = 1), 0, fall)
  refused("ends before the last", c(y = 1), c(0, 2), function(t, y, p) list(y^2), NULL, "ode45")
  shifted <- function(b) ode(c(y = 1), 0:2, function(t, y, p) list(-b * y), NULL, "ode45", 1e-8, 1e-8)[3, "y"]
  expect_equal(gradient(shifted, 0.5), -2 * exp(-1), tolerance = 1e-5)
  expect_error(
    objective(shifted, jit = TRUE)$fn(0.5), "In compiled code use the method \"rk4\""
  )
  by_two <- ode(1:2, 0:1, function(t, y, p, by) list(by * y), NULL, "euler", by = 2)
  expect_equal(by_two[2, ], c(time = 1, `1` = 3, `2` = 6))
})

test_once("ode() returns deSolve's values and names", {
  skip_without("numpy")
  skip_if_not_installed("deSolve")
  local_backend("numpy")
  for (method in c("lsoda", "ode45", "rk4", "euler")) {
    want <- unclass(deSolve::ode(start, days, decay, rates, method))[, ]
    expect_equal(ode(start, days, decay, rates, method), want, tolerance = 1e-4, info = method)
  }
  half <- function(t, y, p) y[["A"]] - 0.5
  want <- unclass(deSolve::ode(start, days, decay, rates, "lsoda", rootfunc = half))[, ]
  expect_equal(ode(start, days, decay, rates, "lsoda", rootfunc = half), want, tolerance = 1e-4)
})
