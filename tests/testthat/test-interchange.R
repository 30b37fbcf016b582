test_contract("tensors can be converted to another library and back", {
  x <- matrix(c(1, 2, 3, 4, 5, 6), 2)
  tensor <- to_backend(x, backend)
  expect_equal(op_dtype(tensor), "float64")
  expect_equal(as.array(tensor), x)
  expect_equal(as.array(to_backend(tensor, "numpy", "cpu")), x)
  expect_error(to_backend(tensor, backend, "cuda:9"), class = "gradops_error_backend")
  expect_error(to_backend(tensor, "cupy"), class = "gradops_error_backend")
})

test_once("R vectors are copied", {
  skip_without("torch")
  x <- c(1, 2, 3)
  to_backend(x, "torch")$zero_()
  expect_equal(x, c(1, 2, 3))
})

test_once("a recorded gradient is not lost", {
  skip_without()
  v <- with_backend("numpy", parameter(c(1, 2)))
  expect_error(to_backend(v, "numpy"), class = "gradops_error_gradient")
  expect_equal(as.array(to_backend(op_stop_gradient(v), "numpy")), as.array(c(1, 2)))
})

test_contract("complex vectors of any length are accepted at any memory address", {
  for (n in c(1, 2, 3, 5, 8, 33)) {
    z <- complex(real = seq_len(n), imaginary = -1)
    expect_equal(as.vector(op_exp(z)), exp(z))
  }
})
