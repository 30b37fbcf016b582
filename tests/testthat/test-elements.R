test_each("[[ selects one element, counted from 1, as in R", {
  m <- matrix(c(3, 1, 2, 5, 4, 6), 2)
  for (make in list(op_convert_to_tensor, variable)) {
    x <- make(m)
    expect_equal(as.numeric(x[[3]]), m[[3]])
    expect_equal(as.numeric(x[[1, 2]]), m[[1, 2]])
    expect_equal(as.numeric(make(c(7, 8))[[1]]), 7)
    x[[2]] <- 9
    expect_equal(as.vector(x), as.vector(replace(m, 2, 9)))
    x[[1, 3]] <- -1
    expect_equal(as.numeric(x[1, 3]), -1)
    expect_error(x[[7]], class = "gradops_error_axis")
    expect_error(x[[1:2]], "single element", class = "gradops_error_axis")
  }
  expect_equal(gradient(function(x) x[[2]]^2 * x[[1]], c(2, 3)), c(9, 12))
  v <- parameter(2)
  backward(v^2)
  expect_equal(as.numeric(v[["grad"]]), 4)
})

test_each("na.rm = TRUE removes R's NAs next to tensors", {
  x <- op_convert_to_tensor(c(3, 1, 2))
  for (name in c("sum", "prod", "max", "min", "range")) {
    f <- match.fun(name)
    expect_equal(as.vector(f(x, NA, na.rm = TRUE)), f(c(3, 1, 2)), info = name)
    expect_equal(as.vector(f(x, c(NaN, 7), na.rm = TRUE)), f(c(3, 1, 2, 7)), info = name)
    expect_equal(as.vector(f(op_convert_to_tensor(c(3, NaN, 2)), na.rm = TRUE)), f(c(3, 2)), info = name)
  }
})

test_contract("integers beyond R's range come back as doubles", {
  x <- op_cast(2^40, "int64")
  expect_identical(as.numeric(x), 2^40)
  expect_identical(as.numeric(op_cast(c(1, 2^40), "int64")), c(1, 2^40))
  expect_identical(as.numeric(op_cast(-2^31, "int64")), -2^31)
  expect_identical(as.integer(op_cast(5, "int64")), 5L)
})

test_each("errors use R's terms", {
  x <- op_convert_to_tensor(c(1, 2))
  expect_error(gradient(function(x) NULL, 1), "got NULL", class = "gradops_error_gradient")
  expect_error(gradient(function(x) "a", 1), "got character", class = "gradops_error_gradient")
  alone <- op_custom_gradient(function(x) x)
  expect_error(alone(x), "list(value, grad)", fixed = TRUE, class = "gradops_error_gradient")
  expect_error(x + NULL, "`x2` must be a number", class = "gradops_error_type")
  expect_error(op_exp(NULL), "`x` must be a number", class = "gradops_error_type")
  expect_error(op_sum(op_ones(c(2, 2)), axis = c(1, -2)), "twice; got \\[1, 1\\]", class = "gradops_error_axis")
  wrong <- op_custom_gradient(function(x) list(x^2, function(upstream) quote(a)))
  expect_error(gradient(wrong, 1), "the function's value must be a tensor", class = "gradops_error_type")
  text <- op_custom_gradient(function(x) list("a", function(upstream) 1))
  expect_error(text(x), "must return", class = "gradops_error_type")
})

test_each("named arguments in any order", {
  x <- c(1, 2, 3)
  forms <- list(
    function(x, k) list(x * k, function(upstream) list(upstream * k, NULL)),
    function(x, k) list(x * k, function(x, k, upstream) list(upstream * k, NULL)),
    function(x, k) list(x * k, function(upstream) list(x = upstream * k)),
    function(x, k) list(x * k, function(..., upstream = NULL) list(..1 * k, NULL))
  )
  for (form in forms) {
    f <- op_custom_gradient(form)
    expect_equal(gradient(function(x) sum(f(k = 3, x = x)), x), c(3, 3, 3))
    expect_equal(gradient(function(x) sum(f(x, k = 3)), x), c(3, 3, 3))
  }
})

# Where `d` is 0 these values or their slopes are NaN or infinite. The kept elements are unaffected.
test_each("replaced elements have no derivative, whatever their value was", {
  d <- as.matrix(stats::dist(c(1, 2, 4, 7)))
  w <- matrix(1:16, 4) / 10
  off <- row(d) != col(d)
  x <- c(0.5, 0.7)
  kernels <- list(
    function(d, x) (d * x[1])^x[2] * besselK(d * x[1], x[2]), function(d, x) sqrt(x[1] * d) * log(d * x[2]),
    function(d, x) if (is.matrix(d)) matrix(1 / (x[1] * as.vector(d)), 4) else 1 / (x[1] * d),
    function(d, x) 1 / (1 + exp(x[1] * d + 1e4 * x[2] * (d == 0))) # overflows, like TMB's socatt example
  )
  compiles_fast <- backend %in% c("numpy", "torch")
  for (kernel in if (compiles_fast) kernels else kernels[2]) {
    of_kept <- function(x) sum(w[off] * kernel(d[off], x)^2) + sum(diag(w)) * x[2]^2
    replaced <- list(
      function(x) {
        k <- kernel(d, x)
        diag(k) <- x[2]
        sum(w * k^2)
      },
      function(x) {
        k <- kernel(d, x)
        for (i in 1:4) k[i, i] <- 1
        sum(w * k^2) + sum(diag(w)) * (x[2]^2 - 1)
      },
      function(x) {
        k <- kernel(d, x)
        k[d == 0] <- x[2]
        sum(w * k^2)
      }
    )
    for (f in replaced) {
      expect_equal(gradient(f, x), numeric_gradient(of_kept, x), tolerance = 1e-7)
      if (backend == "numpy") expect_equal(objective(f, jit = TRUE)$gr(x), gradient(of_kept, x))
    }
    if (compiles_fast) expect_equal(hessian(replaced[[1]], x), hessian(of_kept, x))
  }
  # an element that is used elsewhere keeps that derivative
  both <- function(x) {
    k <- x * 0:3
    whole <- sum(k^2)
    k[1:2] <- 5
    whole + sum(k)
  }
  expect_equal(gradient(both, 2), 2 * 2 * 14 + 5)
  expect_equal(gradient(function(x) {
    k <- log(x * 0:1)
    k[] <- x
    sum(k)
  }, 3), 2)
})
