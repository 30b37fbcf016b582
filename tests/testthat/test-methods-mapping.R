test_contract("mapping functions act on tensors as on R vectors", {
  m <- matrix(c(3, 1, 2, 5, 4, 6), 2)
  v <- c(2, 7, 1)
  expect_as_base(
    list(
      rows = function(m, v) apply(m, 1, sum),
      parts = function(m, v) apply(m, 2, function(column) column * 2),
      cells = function(m, v) apply(m, c(1, 2), function(x) x^2),
      slices = function(m, v) apply(array(m, c(2, 3, 2)), 3, sum),
      sapply = function(m, v) sapply(1:3, function(i) m[1, i] * v[i]),
      matrix = function(m, v) sapply(1:3, function(i) m[, i]),
      tensor = function(m, v) sapply(v, function(x) x + 1),
      vapply = function(m, v) vapply(1:3, function(i) v[i]^2, 0),
      wide = function(m, v) vapply(1:2, function(i) m[i, ], numeric(3)),
      mixed = function(m, v) vapply(1:2, function(i) if (i == 1) 1 else v[i], 0),
      mapply = function(m, v) mapply(function(a, b) a * b, v, 1:3),
      array = function(m, v) sapply(1:2, function(i) m * v[i], simplify = "array"),
      list = function(m, v) Reduce(`+`, lapply(v, function(x) x^2)),
      map = function(m, v) unlist(Map(function(a, b) a - b, v, c(1, 2, 3))),
      steps = function(m, v) unlist(Reduce(`*`, v, accumulate = TRUE)),
      elements = function(m, v) sapply(m, function(x) x / 2),
      sweep = function(m, v) sweep(m, 2, v),
      scaled = function(m, v) sweep(m, 1, m[, 1], "/"),
      ifelse = function(m, v) ifelse(m > 2.5, m^2, -m),
      chosen = function(m, v) ifelse(c(TRUE, FALSE, TRUE), v, 0),
      filled = function(m, v) ifelse(m > 2.5, v[1:2], 1)
    ),
    m, v
  )
  x <- variable(m)
  expect_error(vapply(1:2, function(i) x[i, ], 0), "length 1; that of element 1 has 3", class = "gradops_error_shape")
  expect_error(apply(x, 3, sum), "2 dimensions", class = "gradops_error_argument")
  expect_equal(as.vector(ifelse(c(TRUE, NA), x[1, 1], 0)), c(m[1, 1], NaN))
  expect_identical(apply(x, 1, function(row) "a"), c("a", "a"))
  count <- 0
  for (value in as.list(x)) if (as.logical(value > 2.5)) count <- count + 1
  expect_identical(count, 4)
})

test_each("elements excluded by known logicals contribute no 0 * NaN", {
  u <- c(0, 0.4, 2)
  y <- c(a = 3, b = 0, c = 0)
  chosen <- list(
    matern = function(p) ifelse(u > 0, u^p[1] * besselK(u / p[2], p[1]), 1),
    power = function(p) ifelse(u > 0, (u * p[1])^(p[2] - 1), p[1]),
    root = function(p) ifelse(u == 0, p[1], sqrt(u * p[2])),
    deviance = function(p) ifelse(y > 0, y * log(y / (p[1] * y)), p[2] * y + p[1]),
    density = function(p) ifelse(u > 0, dgamma(u * p[1], p[2], log = TRUE), 0),
    nested = function(p) ifelse(u > 0, ifelse(u > 1, log(u - p[2]), p[1]), 0),
    whole = function(p) { # functions that are not elementwise see all elements
      x <- u * p[1]
      ifelse(u > 0, log(x / sum(x + p[2])), cumsum(x) + 1)
    }
  )
  at <- c(0.7, 0.6)
  for (f in chosen) {
    total <- function(p) sum(f(p))
    expect_equal(gradient(total, at), suppressWarnings(numDeriv::grad(total, at)))
    expect_equal(objective(total, jit = TRUE)$gr(at), gradient(total, at))
    expect_false(anyNA(hessian(total, at)))
  }
})

test_each("named results are combined with their names", {
  groups <- split(mtcars, mtcars$cyl)
  f <- function(p) sum(sapply(groups, function(d) sum(d$wt * p)))
  expect_equal(gradient(f, 2), sum(mtcars$wt))
  p <- variable(2)
  uv <- c(u = 1, v = 2)
  expect_equal(as.numeric(sapply(uv, function(i) i * p)["v"]), 4)
  expect_named(sapply(c("a", "b"), function(name) p), c("a", "b"))
  expect_equal(as.numeric(mapply(function(a, b) a * b * p, uv, 3:4)), c(6, 16))
  expect_equal(as.numeric(apply(mtcars[, 1:3], 2, function(x) sum(x) * p)), unname(2 * colSums(mtcars[, 1:3])))
  expect_equal(
    as.matrix(sapply(mtcars[1:3], function(x) x[1:2] * p)), unname(2 * as.matrix(mtcars[1:2, 1:3])),
    ignore_attr = TRUE
  )
})

test_once("formals are inspected, including those without a default", {
  arguments <- formals(function(x, n = 2, f = sum) x)
  expect_identical(vapply(arguments, is.name, NA), c(x = TRUE, n = FALSE, f = TRUE))
  expect_identical(sapply(arguments, is.name), c(x = TRUE, n = FALSE, f = TRUE))
  expect_identical(lapply(arguments[1:2], is.numeric), list(x = FALSE, n = TRUE))
})
