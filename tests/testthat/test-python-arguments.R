test_contract("R values are converted", {
  as_tensor <- function(x) as.vector(op_convert_to_tensor(x))
  expect_identical(as_tensor(2), 2)
  expect_identical(as_tensor(c(a = 1, b = 2)), c(1, 2))
  expect_identical(is.na(as_tensor(c(1L, NA))), c(FALSE, TRUE))
  expect_true(is.na(as_tensor(NA)) && is.double(as_tensor(NA)))
  expect_identical(as_tensor(list(1, 2)), c(1, 2))
  expect_identical(as_tensor(list(c(1, 2), c(3, 4))), c(1, 3, 2, 4))
  expect_identical(as_tensor(data.frame(a = c(1, 2), b = c(3, 4))), c(1, 2, 3, 4))
  expect_identical(as_tensor(1:3), 1:3)
  expect_identical(as_tensor(array(1:6, 1:3)), 1:6)
})

test_each("coded values are not numbers: factors, dates, times, data frames with them, integer64", {
  codes <- list(
    factor(c("b", "a", "b")), as.Date("1970-01-03"), as.POSIXct("1970-01-03", tz = "UTC"), as.POSIXlt("1970-01-03"),
    as.difftime(3, units = "mins"), structure(1.5, class = "integer64"), data.frame(a = 1:2, b = factor(1:2)),
    data.frame(a = 1:2, b = c("x", "y")), structure(matrix(1:4, 2), class = "Surv"),
    structure(1.5, class = "units"), package_version("1.2")
  )
  x <- op_ones(2)
  for (code in codes) {
    calls <- list(
      \() op_exp(code), \() op_add(x, code), \() op_convert_to_tensor(list(1, code)), \() variable(code)
    )
    for (call in calls) {
      expect_error(call(), "got a", class = "gradops_error_type")
    }
  }
  expect_error(op_exp(factor("a")), "as.integer")
  expect_equal(as.vector(op_exp(as.integer(factor(c("b", "a"))))), exp(2:1))
  expect_equal(as.vector(op_exp(data.frame(a = 0, b = TRUE))), exp(0:1))
  expect_equal(as.vector(op_exp(table(c(1, 1, 2)))), exp(2:1)) # a numeric class
})

test_each("flags must be TRUE or FALSE", {
  for (wrong in list("yes", NA, c(TRUE, FALSE), 1, NULL)) {
    calls <- list(
      requires_grad = \() variable(1, requires_grad = wrong), requires_grad = \() parameter(1, wrong),
      keepdims = \() op_sum(c(1, 2), keepdims = wrong), sparse = \() op_one_hot(1, 2, sparse = wrong),
      create_graph = \() backward(parameter(1), create_graph = wrong), strict = \() jacobian(exp, 1, strict = wrong),
      has_aux = \() grad_fn(exp, has_aux = wrong), zero_indexed = \() op_argmax(1:2, zero_indexed = wrong)
    )
    for (name in names(calls)) {
      for (call in calls[names(calls) == name]) {
        condition <- expect_error(call(), "must be TRUE or FALSE", class = "gradops_error_type")
        expect_identical(condition$argument, name)
      }
    }
  }
})

test_contract("dtypes: R doubles become float64, integers int64; scalars are weak", {
  dtype <- function(x) op_dtype(x)
  expect_identical(dtype(op_convert_to_tensor(c(1, 2))), "float64")
  expect_identical(dtype(op_convert_to_tensor(1:2)), "int64")
  expect_identical(dtype(op_convert_to_tensor(c(TRUE, FALSE))), "bool")
  single <- op_cast(c(1, 2), "float32")
  expect_identical(dtype(single * 2), "float32")
  expect_match(described(op_exp(c(1, 2))), backend)
})

test_contract("R vectors take the floating dtype of tensors next to them; positions stay exact", {
  single <- op_cast(c(1, 2), "float32")
  results <- list(
    single * c(2, 3), c(2, 3)^single, single * 1:2, op_add(single, c(1, 2)), op_where(c(TRUE, FALSE), single, c(0, 0)),
    op_concatenate(list(single, c(1, 2))), c(single, 3), dnorm(single, c(0, 1)), op_matmul(single, c(1, 2)),
    checkpoint(function(x, y) x * y)(single, 2), vjp(function(x) x * 2, single, c(1, 1))$product,
    op_custom_gradient(function(x, y) x + y, function(x, y, upstream) list(upstream, NULL))(single, c(1, 2))
  )
  for (result in results) expect_identical(op_dtype(result), "float32")
  expect_identical(op_dtype(single * c(1i, 2)), "complex64")
  expect_identical(op_dtype(op_convert_to_tensor(1:2) * c(0.5, 1)), "float64")
  expect_identical(op_dtype(op_convert_to_tensor(c(1, 2)) * c(0.1, 1)), "float64")
  expect_equal(as.vector(op_cast(c(1, 2), "float64") * c(0.1, 0.2)), c(0.1, 0.4), tolerance = 1e-15)

  half <- op_cast(as.numeric(seq_len(3000) == 2049), "float16") # float16 holds 2048 and 2050
  expect_equal(as.vector(op_take(half, c(2049, 2050))), c(1, 0))
  expect_equal(as.vector(op_get_item(half, c(2049, 2050))), c(1, 0))
  expect_equal(as.vector(half[c(2049, 2050)]), c(1, 0))
})

test_each("axes count from 1, whole numbers are accepted for shapes", {
  m <- matrix(1:6 / 1, 2)
  expect_equal(as.vector(op_sum(m, axis = 1)), colSums(m))
  expect_equal(as.vector(op_sum(m, axis = 2L)), rowSums(m))
  expect_equal(as.vector(op_sum(m, axis = -1)), rowSums(m))
  expect_equal(as.vector(op_sum(m, axis = c(1, 2))), sum(m))
  expect_equal(as.vector(op_sum(m, axis = list(1, 2))), sum(m))
  expect_equal(dim(op_reshape(m, c(3, 2))), c(3L, 2L))
  expect_equal(dim(op_reshape(m, 6)), 6L)
  expect_equal(dim(op_reshape(m, list(-1, 2L))), c(3L, 2L))
  expect_equal(as.vector(op_argmax(c(3, 7, 5))), 2L)
  expect_equal(as.vector(op_argmax(c(3, 7, 5), zero_indexed = TRUE)), 1L)
  expect_equal(as.vector(op_take(c(10, 20, 30), c(1, -1))), c(10, 30))
  expect_equal(as.vector(op_take(c(10, 20, 30), c(1, -1), zero_indexed = TRUE)), c(20, 30))
  expect_equal(as.vector(op_take(c(10, 20, 30), op_argmax(c(3, 7, 5)))), 20)
})

test_each("bad arguments raise classed errors that name them in R's terms", {
  m <- matrix(1:6 / 1, 2)
  expect_error(op_sum(m, axis = 3), "`axis` must be from 1 to 2, or from -1 to -2.*got 3", class = "gradops_error_axis")
  expect_error(op_sum(m, axis = -3), "got -3", class = "gradops_error_axis")
  expect_error(op_sum(m, axis = 0), "count from 1", class = "gradops_error_axis")
  expect_error(op_sum(m, axis = 1.5), "whole number; got 1.5", class = "gradops_error_type")
  expect_error(op_sum(m, axis = NA_integer_), "got NA", class = "gradops_error_type")
  expect_error(op_take(c(1, 2), 0), "must not be 0", class = "gradops_error_axis")
  expect_error(op_take(c(1, 2), NA_real_), "NA", class = "gradops_error_type")
  expect_error(op_exp("a"), "`x` must be", class = "gradops_error_type")
  expect_error(op_exp(quote(a)), "`x` must be.*symbol", class = "gradops_error_type")
  expect_error(op_exp(list(c(1, 2), 3)), "`x` must be a rectangular list", class = "gradops_error_shape")
  expect_error(op_add(c(1, 2), c(1, 2, 3)), "broadcast", class = "gradops_error_shape")
  expect_error(op_cast(1, "float31"), "dtype", class = "gradops_error_argument")
  condition <- expect_error(op_sum(m, axis = 3))
  expect_identical(condition$argument, "axis")
  expect_identical(condition$call[[1]], quote(op_sum))
})

test_contract("positions in results count from 1", {
  x <- c(3, 9, 5, 9)
  positions <- function(x) as.vector(x)
  expect_equal(positions(op_argsort(x)), order(x))
  expect_equal(positions(op_argsort(x, zero_indexed = TRUE)), order(x) - 1L)
  expect_equal(positions(op_top_k(x, 1)[[2]]), 2L)
  expect_equal(positions(op_searchsorted(c(1, 3, 5), c(0, 4))), findInterval(c(0, 4), c(1, 3, 5)) + 1L)
  expect_equal(positions(op_digitize(c(0, 4), c(1, 3, 5))), findInterval(c(0, 4), c(1, 3, 5)) + 1L)
  unique <- op_unique(x, return_inverse = TRUE, return_counts = TRUE)
  expect_equal(lapply(unique, positions), list(c(3, 5, 9), match(x, c(3, 5, 9)), c(1L, 1L, 2L)))
  expect_equal(positions(op_unique(x)), c(3, 5, 9))
  expect_equal(as.array(op_one_hot(c(1, 3), 3)), diag(3)[c(1, 3), ])
  expect_equal(positions(op_segment_sum(c(1, 2, 4), factor(c("a", "a", "b")))), c(3, 4))
  expect_equal(positions(op_bitwise_and(c(6, 5), 3)), bitwAnd(c(6L, 5L), 3L))
})
