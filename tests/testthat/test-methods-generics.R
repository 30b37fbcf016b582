test_contract("arithmetic, comparison and logic match R", {
  a <- c(-1.5, 2, 3)
  b <- c(2, -0.5, 3)
  for (operator in c("+", "-", "*", "/", "%%", "%/%", "==", "!=", "<", "<=", ">", ">=")) {
    f <- match.fun(operator)
    for (make in list(op_convert_to_tensor, variable)) {
      expect_equal(as.vector(f(make(a), make(b))), f(a, b), info = operator)
      expect_equal(as.vector(f(make(a), 2)), f(a, 2), info = operator)
      expect_equal(as.vector(f(2, make(b))), f(2, b), info = operator)
      expect_equal(as.vector(f(a, make(b))), f(a, b), info = operator)
    }
  }
  expect_error(variable(a) > NA, "`>` with NA", class = "gradops_error_argument")
  expect_error(variable(a) == c(1, NA, 2), "is.na", class = "gradops_error_argument")
  expect_error(variable(a) + "a", class = "gradops_error_type")
  x <- op_convert_to_tensor(abs(a))
  expect_equal(as.vector(x^2), abs(a)^2)
  expect_equal(as.vector(2^x), 2^abs(a))
  expect_equal(as.vector(-x), -abs(a))
  expect_equal(as.vector(+x), abs(a))
  yes <- x > 2
  expect_equal(as.vector(yes & TRUE), c(FALSE, FALSE, TRUE))
  expect_equal(as.vector(yes | TRUE), c(TRUE, TRUE, TRUE))
  expect_equal(as.vector(!yes), c(TRUE, TRUE, FALSE))
})

test_each("operators recycle by column, as in R", {
  m <- matrix(c(3, 1, 2, 5, 4, 6), 3)
  expect_as_base(
    list(
      rows = function(m, v, w) m * v,
      left = function(m, v, w) v - m,
      square = function(m, v, w) crossprod(m) + w,
      cube = function(m, v, w) array(m, c(3, 2, 2)) / v,
      two = function(m, v, w) array(m, c(3, 2, 2)) * c(v, v + 1),
      across = function(m, v, w) m^w,
      vectors = function(m, v, w) c(v, v) * w,
      one = function(m, v, w) m %% w[1],
      logical = function(m, v, w) ifelse(m > v & m != w[1], m, 0)
    ),
    m, c(1.2, 2.3, 0.5), c(2.03, 3.1)
  )
  x <- variable(m)
  expect_error(x + 1:4, "4 elements cannot be recycled along dimensions 3 x 2", class = "gradops_error_shape")
  expect_equal(dim(x + op_ones(c(1, 2))), c(3L, 2L)) # if R has no result, sizes of 1 broadcast
  expect_equal(as.array(op_add(x, c(10, 20))), m + rep(c(10, 20), each = 3))
})

test_each("the Math group matches R", {
  x <- c(0.3, 0.6, 0.9)
  functions <- c(
    "abs", "sign", "sqrt", "floor", "ceiling", "trunc", "exp", "expm1", "log", "log1p", "log2", "log10",
    "cos", "sin", "tan", "acos", "asin", "atan", "cosh", "sinh", "tanh", "asinh", "atanh",
    "cospi", "sinpi", "tanpi", "cumsum"
  )
  for (name in functions) {
    f <- match.fun(name)
    expect_equal(as.vector(f(op_convert_to_tensor(x))), f(x), tolerance = 1e-12, info = name)
  }
  expect_equal(as.vector(acosh(op_convert_to_tensor(1 + x))), acosh(1 + x))
  expect_equal(as.vector(log(op_convert_to_tensor(x), 3)), log(x, 3))
  expect_equal(as.vector(round(op_convert_to_tensor(100 * exp(x)), 1)), round(100 * exp(x), 1))
  m <- matrix(1:6 / 1, 2)
  expect_equal(as.vector(cumsum(op_convert_to_tensor(m))), cumsum(m))
})

test_each("the Summary group matches R, over several tensors as well", {
  m <- matrix(c(3, 1, 2, 5, 4, 6), 2)
  x <- op_convert_to_tensor(m)
  for (name in c("sum", "prod", "max", "min", "range")) {
    f <- match.fun(name)
    expect_equal(as.vector(f(x)), f(m), info = name)
    expect_equal(as.vector(f(x, 7)), f(m, 7), info = name)
    expect_equal(as.vector(f(x, NULL, numeric())), f(m), info = name)
  }
  with_na <- c(3, NA, 2)
  for (name in c("sum", "prod", "max", "min", "range")) {
    f <- match.fun(name)
    expect_equal(as.vector(f(op_convert_to_tensor(with_na), na.rm = TRUE)), f(with_na, na.rm = TRUE), info = name)
  }
  expect_equal(as.vector(mean(x)), mean(m))
  expect_true(as.logical(all(x > 0)))
  expect_false(as.logical(any(x > 6)))
})

test_each("shape: dim, length, t, %*%", {
  m <- matrix(1:6 / 1, 2)
  x <- op_convert_to_tensor(m)
  expect_identical(dim(x), c(2L, 3L))
  expect_identical(length(x), 6L)
  expect_identical(nrow(x), 2L)
  expect_null(dim(op_exp(1)))
  expect_identical(length(op_exp(1)), 1L)
  expect_equal(as.array(t(x)), t(m))
  expect_equal(dim(t(op_exp(c(1, 2)))), c(1L, 2L))
  expect_equal(as.array(x %*% t(x)), m %*% t(m))
  expect_equal(as.array(x %*% t(m)), m %*% t(m))
  expect_equal(as.array(m %*% t(x)), m %*% t(m))
  expect_equal(as.vector(x %*% c(1, 2, 3)), drop(m %*% c(1, 2, 3)))
  expect_equal(as.vector(variable(m) %*% c(1, 2, 3)), drop(m %*% c(1, 2, 3)))
  expect_equal(m %*% c(1, 2, 3), base::`%*%`(m, c(1, 2, 3)))
  expect_error(x %*% x, "(2, 3)", fixed = TRUE, class = "gradops_error")
})

test_contract("values come back as R types and arrays", {
  a <- array(1:24 / 1, 2:4)
  expect_identical(as.array(op_convert_to_tensor(a)), a)
  expect_identical(as.numeric(op_convert_to_tensor(a)), as.numeric(a))
  expect_identical(as.vector(variable(c(1.5, 2))), c(1.5, 2))
  expect_identical(as.integer(op_convert_to_tensor(c(1, 2))), 1:2)
  expect_identical(as.vector(op_convert_to_tensor(1:3)), 1:3)
  expect_identical(as.vector(op_convert_to_tensor(c(TRUE, FALSE))), c(TRUE, FALSE))
  expect_identical(as.logical(op_convert_to_tensor(c(0, 1))), c(FALSE, TRUE))
  expect_identical(as.vector(op_convert_to_tensor(c(1 + 2i, 3))), c(1 + 2i, 3 + 0i))
  expect_identical(as.vector(op_cast(c(1.5, 2.5), "float32")), c(1.5, 2.5))
  expect_identical(as.vector(op_convert_to_tensor(c(1, NaN, Inf))), c(1, NaN, Inf))
  expect_identical(is.na(as.vector(op_convert_to_tensor(c(1, NA, Inf)))), c(FALSE, TRUE, FALSE))
  expect_identical(as.matrix(op_convert_to_tensor(matrix(1:4 / 1, 2))), matrix(1:4 / 1, 2))
  expect_identical(lapply(as.list(op_convert_to_tensor(c(1, 2))), as.numeric), list(1, 2))
  expect_equal(dim(as.array(op_zeros(c(0, 3)))), c(0L, 3L))
})

test_each("print shows backend, dtype, shape and values, format the values", {
  x <- op_convert_to_tensor(matrix(1:6 / 1, 2))
  expect_match(described(x), sprintf("<%s float64 [2, 3]>", backend), fixed = TRUE)
  expect_output(print(x), "[2,]", fixed = TRUE)
  expect_identical(format(x, digits = 3), format(matrix(1:6 / 1, 2), digits = 3))
  expect_identical(withVisible(print(x))$visible, FALSE) |> capture.output()
  expect_match(described(parameter(c(1, 2))), "requires a gradient")
  expect_match(described(parameter(c(1, 2)) * 2), "result of")
})

test_once("NumPy tensors mix with any library, tensors of two other libraries do not", {
  skip_without("torch")
  skip_without("jax")
  torch <- with_backend("torch", op_exp(c(1, 2)))
  jax <- with_backend("jax", op_exp(c(1, 2)))
  numpy <- with_backend("numpy", op_exp(c(1, 2)))
  expect_match(described(torch + numpy), "torch")
  expect_match(described(with_backend("jax", numpy * jax)), "jax")
  expect_error(torch + jax, "torch and jax|jax and torch", class = "gradops_error_mixed_backends")
})

test_each("arithmetic keeps names as in base R", {
  a <- c(u = 1, v = 2)
  b <- c(s = 3, t = 4)
  calls <- list(
    \(x, y) x * 2, \(x, y) -x, \(x, y) exp(x) + 1, \(x, y) x * y, \(x, y) y - unname(b), \(x, y) 1 / x, \(x, y) b * x,
    \(x, y) x * matrix(1:4, 2), \(x, y) c(one = 1) * x, \(x, y) cumsum(x), \(x, y) x > 1, \(x, y) sum(x),
    \(x, y) x[2] * 2
  )
  for (call in calls) {
    expected <- call(a, b)
    if (!is.null(dim(expected))) expected <- unname(expected)
    expect_identical(names(call(parameter(a), parameter(b))), names(expected))
  }
  x <- parameter(a)
  expect_identical(as.numeric((x^2 + 1)["v"]), 5)
  expect_identical(gradient(\(p) exp(p)["u"] * (2 * p)["v"], c(u = 0, v = 3)), c(u = 6, v = 2))
  expect_null(names(x$grad))
})
