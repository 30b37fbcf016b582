# Positions and classes count from 1, for R numbers and for tensors of every backend.

test_each("position 0 and class 0 are errors, for R numbers and tensors", {
  x <- op_convert_to_tensor(c(5, 6, 7))
  m <- op_convert_to_tensor(matrix(c(0.2, 0.8, 0.6, 0.4), 2, byrow = TRUE))
  calls <- list(
    function(i) op_take(x, i),
    function(i) op_take_along_axis(x, i, 1),
    function(i) op_one_hot(i, 3),
    function(i) op_multi_hot(i, 3),
    function(i) op_sparse_categorical_crossentropy(i, m),
    function(i) op_in_top_k(i, m, 1),
    function(i) op_segment_sum(op_convert_to_tensor(c(1, 2)), i, 2),
    function(i) op_segment_max(op_convert_to_tensor(c(1, 2)), i, 2),
    function(i) op_get_item(x, list(i))
  )
  for (call in calls) {
    for (zero in list(c(0L, 1L), c(1, 0), op_convert_to_tensor(c(0L, 1L)), op_convert_to_tensor(c(1, 0)))) {
      condition <- expect_error(call(zero), "must not be 0", class = "gradops_error_axis")
      expect_match(conditionMessage(condition), "zero_indexed = TRUE", fixed = TRUE)
    }
    expect_no_error(call(op_convert_to_tensor(c(1L, 2L))))
    expect_error(call(op_convert_to_tensor(c(1.5, 2))), "whole numbers", class = "gradops_error_type")
  }
})

test_each("classes count from 1 like a factor's levels, or from 0 on request", {
  labels <- factor(c("b", "c", "a"))
  expected <- diag(3)[c(2, 3, 1), ]
  tensor <- op_convert_to_tensor(as.integer(labels))
  for (x in list(labels, as.integer(labels), c(2, 3, 1), tensor)) expect_equal(as.array(op_one_hot(x, 3)), expected)
  for (x in list(labels, c(1, 2, 0), tensor - 1L)) {
    expect_equal(as.array(op_one_hot(x, 3, zero_indexed = TRUE)), expected)
  }
  p <- matrix(c(0.2, 0.3, 0.5, 0.1, 0.1, 0.8, 0.6, 0.2, 0.2), 3, byrow = TRUE)
  loss <- -log(p[cbind(1:3, c(2, 3, 1))])
  expect_equal(as.vector(op_sparse_categorical_crossentropy(labels, p)), loss)
  expect_equal(as.vector(op_sparse_categorical_crossentropy(tensor, p)), loss)
  expect_equal(as.vector(op_sparse_categorical_crossentropy(c(1, 2, 0), p, zero_indexed = TRUE)), loss)
  expect_equal(as.vector(op_segment_sum(c(1, 2, 4), factor(c("a", "a", "b")))), c(3, 4))
  expect_equal(as.vector(op_argmax(op_one_hot(labels, 3), axis = 2)), as.integer(labels))
})

test_each("x[tensor] is x[values]", {
  values <- c(5, 6, 7, 8)
  x <- op_convert_to_tensor(values)
  indices <- list(c(2L, 2L, 1L), 3L, c(0L, 2L), c(-1L, -3L), -2L, 0L, c(TRUE, FALSE, TRUE, TRUE), c(FALSE, TRUE))
  for (index in indices) {
    tensor <- op_convert_to_tensor(if (length(index) > 1) index else array(index))
    expect_equal(as.vector(x[tensor]), values[index], info = toString(index))
    expect_equal(as.vector(x[index]), values[index], info = toString(index))
  }
  m <- matrix(1:6 / 1, 2)
  expect_equal(as.vector(op_convert_to_tensor(m)[op_convert_to_tensor(array(-1L)), ]), m[-1, ])
  expect_equal(as.vector(x[op_convert_to_tensor(c(1L, 9L))]), c(5, NaN))
  expect_error(x[op_convert_to_tensor(c(1L, -1L))], "cannot be mixed", class = "gradops_error_axis")
  gradient_by_tensor <- gradient(function(x) sum(x[op_convert_to_tensor(c(2L, 2L, 4L))]^2), values)
  expect_equal(gradient_by_tensor, c(0, 24, 0, 16))
})

test_contract("positions count from 1 in a trace", {
  values <- c(5, 6, 7)
  take <- jit(function(x, i) op_take(x, i))
  expect_equal(as.vector(take(op_convert_to_tensor(values), op_convert_to_tensor(c(3L, 1L, -1L)))), c(7, 5, 7))
  part <- jit(function(x, i) x[i])
  expect_equal(as.vector(part(op_convert_to_tensor(values), op_convert_to_tensor(c(3L, 1L)))), c(7, 5))
  hot <- jit(function(i) op_one_hot(i, 2))
  expect_equal(as.array(hot(op_convert_to_tensor(c(2L, 1L, 0L)))), rbind(c(0, 1), c(1, 0), c(0, 0)))
})

test_each("ragged lists of positions are refused", {
  expect_error(op_one_hot(list(c(1, 2), c(1, 2, 3)), 3), "one length", class = "gradops_error_type")
  expect_error(op_segment_sum(c(1, 2), list(c(1, 2), c(1, 2, 3))), "one length", class = "gradops_error_type")
  expect_error(op_subset_set("float32", 1, value = 2), class = "gradops_error")
})
