# R evaluates an argument at its first use. Inside a scope or gradient function it would become a constant.

lazily <- list(
  with_no_grad = function(y) {
    with_no_grad(y + 1)
    y^2
  },
  with_stop_gradient = function(y) {
    with_stop_gradient({
      seen <- y + 1
    })
    y^2
  },
  with_inference_mode = function(y) {
    seen <- with_inference_mode(as.numeric(op_convert_to_numpy(y)))
    y^2
  },
  with_gradient_checkpoint = function(y) {
    with_gradient_checkpoint(y + 1)
    y^2
  },
  local_no_grad = function(y) {
    local({
      local_no_grad()
      y + 1
    })
    y^2
  },
  local_stop_gradient = function(y) {
    local({
      local_stop_gradient()
      y + 1
    })
    y^2
  },
  branch = function(y) {
    sign <- with_no_grad(if (y > 0) 1 else -1)
    sign * y^2
  },
  checkpoint = function(y) checkpoint(function(z) z * y)(y),
  helper = function(y) {
    helper <- function(z) {
      with_no_grad(z + 1)
      z
    }
    helper(y * y)
  }
)

test_each("an argument first used in a scope keeps its gradient", {
  absent <- c(jax = "with_inference_mode", tensorflow = "with_gradient_checkpoint") # not available there
  for (name in setdiff(names(lazily), absent[backend])) {
    f <- lazily[[name]]
    expect_equal(gradient(function(p) f(p[1]), c(3, 1)), c(6, 0), label = name)
  }
})

test_each("code passed to a scope is evaluated in the scope", {
  wrapped <- function(code) {
    before <- 1
    with_stop_gradient(code) * before
  }
  expect_equal(gradient(function(p) wrapped(p^2) * p, 3), 9)
  in_local <- function(code) {
    local({
      local_stop_gradient()
      code
    })
  }
  expect_equal(gradient(function(p) in_local(p^2) * p, 3), 9)
})

# Derivatives of 2x by a rule that reads y: cos(y).
rules <- list(
  tuple = function(y) gradient(op_custom_gradient(function(x) tuple(2 * x, function(u) u * cos(y))), 4),
  list = function(y) gradient(op_custom_gradient(function(x) list(2 * x, function(u) u * cos(y))), 4),
  two = function(y) gradient(op_custom_gradient(function(x) 2 * x, function(x, upstream) upstream * cos(y)), 4),
  grad_fn = function(y) grad_fn(op_custom_gradient(function(x) list(2 * x, function(u) u * cos(y))))(4),
  vjp = function(y) vjp(op_custom_gradient(function(x) list(2 * x, function(u) u * cos(y))), 4, 1)$product,
  jacobian = function(y) sum(jacobian(op_custom_gradient(function(x) list(2 * x, function(u) u * cos(y))), 4)),
  hessian = function(y) sum(hessian(op_custom_gradient(function(x) list(2 * x, function(u) u * cos(y) * x)), 4))
)

test_each("a derivative by a rule that reads an outer argument is itself differentiable", {
  for (name in setdiff(names(rules), if (backend == "jax") "hessian")) {
    rule <- rules[[name]]
    expect_equal(gradient(function(p) sum(rule(p[1])), c(3, 1)), c(-sin(3), 0), tolerance = 1e-12, label = name)
    expect_equal(gradient(function(p) sum(rule(p)), 3), -sin(3), tolerance = 1e-12, label = name)
  }
})

test_once("autodiff_function() and a hook that read an outer argument, on the tape", {
  skip_without()
  local_backend("numpy")
  of_function <- function(y) {
    times <- autodiff_function(function(ctx, x) 2 * x, function(ctx, g) g * cos(y))
    gradient(function(x) times(x), 4)
  }
  by_hook <- function(y) {
    gradient(function(x) {
      z <- 2 * x
      z$register_hook(function(g) g * cos(y) / 2)
      z
    }, 4)
  }
  for (f in list(of_function, by_hook)) {
    expect_equal(gradient(function(p) f(p[1]), 3), -sin(3), tolerance = 1e-12)
  }
})

test_once("a rule that reads an outer argument, compiled", {
  skip_without()
  local_backend("numpy")
  model <- objective(function(p) rules$list(p[1]), jit = TRUE)
  for (y in c(3, 2)) {
    expect_equal(model$fn(y), cos(y), tolerance = 1e-12)
    expect_equal(model$gr(y), -sin(y), tolerance = 1e-12)
  }
})

test_each("a rule may write to its upstream gradient", {
  clip <- op_custom_gradient(function(z) {
    tuple(z * 1, function(u) {
      u[u < 0.5] <- 0
      u
    })
  })
  expect_equal(gradient(function(z) sum((clip(z) + z) * c(0.1, 0.2, 3)), c(1, 1, 1)), c(0.1, 0.2, 6))
})

test_each("a flat list of gradients follows the order of a named list", {
  f <- op_custom_gradient(function(p, z) tuple(sum(p$b * p$a * z), function(u) list(u * 10, u * 20, u * 30)))
  found <- gradient(function(p) f(list(b = p[1], a = p[2]), p[3]), c(1, 2, 3))
  expect_equal(found, c(10, 20, 30))
})
