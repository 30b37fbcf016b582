test_contract("joining matches R", {
  v <- c(3, 1, 2)
  m <- matrix(c(1, 2, 3, 4, 5, 6), 3)
  expect_as_base(
    list(
      c = function(v, m) c(0, v, m, 9),
      last = function(v, m) c(1, 2, v[1]),
      flat = function(v, m) c(m),
      unlist = function(v, m) unlist(list(a = v, list(m, 1))),
      cbind = function(v, m) cbind(m, 1, v),
      rbind = function(v, m) rbind(m, v[1:2], 0),
      vectors = function(v, m) rbind(v, 1:6),
      list = function(v, m) do.call(cbind, list(v, v^2)),
      rep = function(v, m) rep(v, 2),
      each = function(v, m) rep(m, each = 2, times = 2),
      long = function(v, m) rep(v, length.out = 5),
      many = function(v, m) rep(v, 1:3),
      rev = function(v, m) rev(m),
      head = function(v, m) head(v, 2),
      rows = function(v, m) head(m, -1),
      tail = function(v, m) tail(v, 2),
      bottom = function(v, m) unname(tail(m, c(2, 1))),
      diff = function(v, m) diff(v),
      lag = function(v, m) diff(c(v, v), lag = 2, differences = 2),
      columns = function(v, m) diff(m),
      none = function(v, m) sum(diff(v[1]))
    ),
    v, m
  )
  x <- variable(v)
  expect_identical(names(c(a = x[1], b = 2)), c("a", "b"))
  expect_equal(bare(cbind(diff(op_array(matrix(v, 1))), v)), unname(cbind(diff(matrix(v, 1)), v)))
  expect_equal(gradient(function(x) rev(x)["a"] * 3, c(a = 1, b = 2)), c(a = 3, b = 0))
  expect_length(c(x, list(1, "a")), 5)
  expect_identical(c("t", df = x[1]), c("t", df = format(unname(v[1]))))
  expect_error(cbind(variable(m), op_ones(c(2, 2))), "rows; got 3, 2", class = "gradops_error_shape")
  expect_identical(unlist(list(1, list("a", 2))), base::unlist(list(1, list("a", 2))))
})

test_each("arrays are filled by column", {
  v <- c(3, 1, 2, 5, 4, 6)
  expect_as_base(
    list(
      matrix = function(v) matrix(v, 2),
      columns = function(v) matrix(v, ncol = 2),
      byrow = function(v) matrix(v, 2, byrow = TRUE),
      one = function(v) matrix(v),
      recycled = function(v) matrix(v[1:2], 2, 3),
      array = function(v) array(v, c(1, 2, 3)),
      longer = function(v) array(v[1:2], c(2, 2, 2)),
      drop = function(v) drop(array(v, c(1, 2, 3))),
      dim = function(v) {
        dim(v) <- c(3, 2)
        v
      }
    ),
    v
  )
  x <- variable(v)
  expect_error(dim(x) <- c(2, 2), "4 elements; the tensor has 6", class = "gradops_error_shape")
  expect_null(dimnames(x))
  expect_error(dimnames(x) <- list("a"), "a list of names", class = "gradops_error_type")
})
