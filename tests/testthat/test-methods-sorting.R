test_contract("sorting and ordering match R", {
  v <- c(3, 1, 2.5, 9, 2)
  expect_as_base(
    list(
      sort = function(v) sort(v),
      down = function(v) sort(v, decreasing = TRUE),
      largest = function(v) v[which.max(v)] * v[which.min(v)],
      cummax = function(v) cummax(v),
      cummin = function(v) cummin(v)
    ),
    v
  )
  expect_as_base(
    list(
      ordered = function(v) v[order(v, decreasing = TRUE)],
      large = function(v) v[which(v > 2.2)],
      unique = function(v) unique(c(v, v)),
      rows = function(v) unique(rbind(v, v, 1)),
      layers = function(v) unique(array(c(v[1], v[1], 2, 2, 7, 7), c(2, 3, 1)))
    ),
    v,
    traced = FALSE
  )
  x <- op_convert_to_tensor(c(2, NaN, 1))
  expect_equal(bare(sort(x)), c(1, 2))
  expect_equal(bare(sort(x, na.last = TRUE)), c(1, 2, NaN))
  expect_identical(order(x), c(3L, 1L, 2L))
  expect_identical(which.max(x), 1L)
  m <- matrix(c(1, 5, 3, 2), 2)
  expect_identical(unname(which(op_convert_to_tensor(m) > 2, arr.ind = TRUE)), unname(which(m > 2, arr.ind = TRUE)))
  expect_identical(duplicated(op_convert_to_tensor(c(1, 2, 1))), c(FALSE, FALSE, TRUE))
  for (f in list(order, function(v) seq_along(unique(v)))) {
    if (backend == "numpy") {
      expect_equal(jit(function(x) x[f(x)])(v), v[f(v)])
    } else {
      expect_error(jit(function(x) x[f(x)])(v), "while a function is traced")
    }
  }
})

test_each("values can be inspected while differentiating, and on NumPy while compiling", {
  f <- function(x) sum(x[order(x)] * c(1, 2, 3)) * if (as.logical(x[1] > 0)) 1 else -1
  expect_equal(gradient(f, c(3, 1, 2)), c(3, 1, 2))
  expect_equal(gradient(f, c(-3, 1, 2)), c(-1, -2, -3))
  compiled <- jit(f)
  for (x in list(c(3, 1, 2), c(-3, 1, 2), c(5, 2, 3))) {
    if (backend == "numpy") expect_equal(compiled(x), f(x)) else expect_error(compiled(x), class = "gradops_error_jit")
  }
  expect_equal(jit(function(x) x * as.numeric(x)[1])(c(3, 1)), c(9, 3))
})

test_each("sort() drops NaN; in compiled functions NaN comes last", {
  expect_equal(bare(sort(variable(c(2, NaN, 1)))), c(1, 2))
  expect_equal(jit(sort)(c(2, NaN, 1)), c(1, 2, NaN))
})
