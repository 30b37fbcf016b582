# Functions of R users, called as in numDeriv's documentation, against numDeriv's results.

set.seed(1)
A <- crossprod(matrix(rnorm(16), 4)) + diag(4)
X <- cbind(1, matrix(rnorm(30), 15))
y <- as.numeric(X %*% c(0.5, 1, -1) + rnorm(15) > 0)
times <- c(0.5, 1.2, 2.7, 3.1, 4.4)

scalar <- list(
  banana = list(\(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2, c(-1.2, 1)),
  `sum of squares` = list(\(x) sum(x^2), c(a = 1, b = 2, c = -3)),
  `sum of sines` = list(\(x) sum(sin(x)), (1:6) / 3),
  `exponentials` = list(\(x) sum((exp(x) - x) / length(x)), (1:5) * pi / 6),
  product = list(\(x) prod(x), c(1, 2, 3)),
  `quadratic form` = list(\(x) sum(x * (A %*% x)) / 2, c(1, -1, 0.5, 2)),
  determinant = list(\(x) log(det(A + diag(x^2))), c(1, 0.3, 0.5, 2)),
  logistic = list(
    \(b) {
      eta <- X %*% b
      sum(log1p(exp(eta)) - y * eta)
    },
    c(0.1, 0.2, -0.3)
  ),
  normal = list(\(p) sum(log(p[2]) + ((times - p[1]) / p[2])^2 / 2), c(mu = 2, sigma = 1.3)),
  weibull = list(
    \(p) {
      shape <- exp(p["shape"])
      z <- times / exp(p["scale"])
      -sum(log(shape) - p["scale"] + (shape - 1) * log(z) - z^shape)
    },
    c(shape = 0.2, scale = 0.7)
  ),
  loop = list(
    \(x) {
      total <- 0
      for (i in 1:3) total <- total + x[i]^i * cos(x[i] * i)
      total
    },
    c(0.5, 1.5, 2.5)
  ),
  hyperbolic = list(\(x) sum(tanh(x) * cosh(x / 2)) - mean(sqrt(1 + x^2)), c(-1, 0.2, 2)),
  extremes = list(\(x) max(x)^2 - min(x) * sum(abs(x)), c(1, -2, 4)),
  `powers with data` = list(\(x, k, offset) sum(x^k) + offset * x[1], c(1.5, 2.5), k = 3, offset = 7),
  mixture = list(
    \(p) -sum(log(exp(-(times - p[1])^2 / 2) * 0.4 + 0.6 * exp(-(times - p[2])^2 / 2))), c(1, 3)
  ),
  `autoregression` = list(\(p) sum((times[-1] - p[1] - p[2] * times[-5])^2), c(0.4, 0.8)),
  atan2 = list(\(x) atan2(x[1], x[2]), c(0.3, -0.8))
)

vectorised <- list(
  sin = list(sin, (0:10) * 2 * pi / 10),
  exponential = list(\(x) exp(-x) / (1 + x^2), c(a = 0.1, b = 1, c = 3)),
  polynomial = list(\(x) x^3 - 2 * x, 1:4),
  logarithm = list(\(x, base) log(x, base), c(0.5, 2, 8), base = 3)
)

several <- list(
  `a curve` = list(\(t) c(cos(t), sin(t), t^2), 0.7),
  `a map` = list(\(x) c(x[1] * x[2], exp(x[1]), x[2]^3 - x[1]), c(0.5, 1.5)),
  linear = list(\(b) X %*% b, c(1, 2, 3)),
  softmax = list(\(x) exp(x) / sum(exp(x)), c(0.1, 0.7, -1, 2)),
  recursion = list(
    \(p) {
      state <- list(p[1])
      for (i in 1:4) state[[i + 1]] <- p[2] * state[[i]] * (1 - state[[i]])
      do.call(c, state)
    },
    c(0.3, 2.9)
  )
)

call_with <- function(derivative, case) do.call(derivative, unname(case[1:2]) |> c(case[-(1:2)]))

test_each("grad() and hessian() of scalar functions match numDeriv", {
  skip_if_not_installed("numDeriv")
  for (name in names(scalar)) {
    case <- scalar[[name]]
    names <- names(case[[2]])
    gradient <- call_with(grad, case)
    expect_equal(gradient, setNames(call_with(numDeriv::grad, case), names), tolerance = 1e-8, label = name)
    second <- unname(call_with(numDeriv::hessian, case))
    result <- call_with(hessian, case)
    scale <- max(abs(second))
    expect_equal(unname(result) / scale, second / scale, tolerance = 1e-7, label = name) # numDeriv's own error
    expect_equal(dimnames(result), if (!is.null(names)) list(names, names), label = name)
  }
})

test_each("grad() of vectorised functions matches numDeriv", {
  skip_if_not_installed("numDeriv")
  for (name in names(vectorised)) {
    case <- vectorised[[name]]
    names <- names(case[[2]])
    wanted <- setNames(unname(call_with(numDeriv::grad, case)), names)
    expect_equal(call_with(grad, case), wanted, tolerance = 1e-8, label = name)
  }
})

test_each("grad() of vectorised functions is elementwise within grad(), and of tensors", {
  x <- c(a = 0.3, b = 1, c = 2)
  expect_equal(grad(\(x) grad(sin, x), x), -sin(x))
  expect_equal(grad(\(x) grad(\(x) sum(sin(x)), x), x), -sin(x))
  expect_equal(hessian(\(x) sum(grad(\(y) y^3, x)), c(1, 2)), diag(6, 2))
  expect_equal(as.numeric(grad(sin, variable(x))), unname(cos(x)))
})

test_each("jacobian() matches numDeriv", {
  skip_if_not_installed("numDeriv")
  for (name in names(several)) {
    case <- several[[name]]
    expect_equal(call_with(jacobian, case), call_with(numDeriv::jacobian, case), tolerance = 1e-8, label = name)
  }
})

test_each("numDeriv's arguments are accepted", {
  f <- \(x) sum(x^3)
  expect_equal(grad(func = f, x = c(1, 2), method = "simple"), c(3, 12))
  expect_equal(grad(f = f, x = c(1, 2)), c(3, 12))
  expect_equal(grad(f, c(1, 2), "complex"), c(3, 12))
  expect_equal(grad(f, c(1, 2), side = c(NA, 1), method.args = list(eps = 1e-4, r = 6)), c(3, 12))
  expect_equal(jacobian(\(x) x^2, c(1, 2), method = "Richardson", method.args = list(d = 1e-4)), diag(c(2, 4)))
  expect_equal(hessian(f, c(1, 2), method = "complex"), diag(c(6, 12)))
  expect_equal(hessian(f, 1:2), diag(c(6, 12)))
  expect_error(grad(f, c(1, 2), method = "exact"), "must be one of", class = "gradops_error_argument")
  expect_error(grad(f, c(1, 2), side = 1), "for each of the 2", class = "gradops_error_argument")
  expect_error(grad(\(x) x[1:2], c(1, 2, 3)), "one number, or one for each of the 3", class = "gradops_error_gradient")
})

test_each("results have R's shapes and names", {
  expect_equal(grad(\(m) sum(m^2), matrix(1:4, 2, dimnames = list(c("a", "b"), NULL))),
               matrix(2 * 1:4, 2, dimnames = list(c("a", "b"), NULL)))
  expect_equal(jacobian(\(x) list(s = x["a"] + x["b"], d = x[["a"]] * 2), c(a = 1, b = 2)),
               matrix(c(1, 2, 1, 0), 2, dimnames = list(c("s", "d"), c("a", "b"))))
  expect_equal(jacobian(\(x) c(x[1], 5), c(2, 3)), rbind(c(1, 0), 0))
  p <- list(w = c(u = 1, v = 2), b = 3)
  expect_equal(grad(\(p) sum(p$w^2) * p$b, p), list(w = c(u = 6, v = 12), b = 5))
  expect_equal(jacobian(\(p) p$w * p$b, p), list(
    w = matrix(c(3, 0, 0, 3), 2, dimnames = list(c("u", "v"), c("u", "v"))),
    b = matrix(c(1, 2), dimnames = list(c("u", "v"), NULL))
  ))
  second <- hessian(\(p) sum(p$w^2) * p$b, p)
  expect_equal(second$w$w, matrix(c(6, 0, 0, 6), 2, dimnames = list(c("u", "v"), c("u", "v"))))
  expect_equal(second$w$b, matrix(c(2, 4), 2, dimnames = list(c("u", "v"), NULL)))
  expect_equal(second$b$b, matrix(0))
  nested <- list(layer = list(w = 2, b = 1), scale = 3)
  expect_equal(grad(\(p) (p$layer$w + p$layer$b) * p$scale, nested), list(layer = list(w = 3, b = 3), scale = 3))
  expect_equal(jacobian(\(p) p$layer$w * p$scale, nested)$layer$w, matrix(3))
  expect_equal(hvp(\(p) p$b * sum(p$w^2), p, list(w = c(1, 0), b = 0))$product, list(w = c(u = 6, v = 0), b = 2))
  expect_error(grad(\(x) x["c"], c(a = 1, b = 2)), "no element named", class = "gradops_error")
})

test_each("derivatives inside differentiated functions", {
  expect_equal(grad(\(a) grad(\(b) a * b^2, 3), 2), 6)
  expect_equal(grad(\(a) sum(jacobian(\(b) a * b^2, c(1, 2))), 2), 6)
  expect_equal(grad(\(a) sum(a * hessian(\(b) sum(a * b^3), c(1, 2))), 2), 2 * 2 * 18)
  skip_if(backend %in% c("tensorflow", "jax"), "variables are not differentiated by the library's own transforms")
  slope <- parameter(2)
  expect_identical(gradient(\(b) slope * b^2, 3), 12) # an R number gives an R number
  inner <- gradient(\(b) slope * b^2, op_convert_to_tensor(3))
  expect_equal(as.numeric(gradient(inner, slope)), 6)
})
