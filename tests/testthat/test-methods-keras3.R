test_each("destructuring assignment", {
  c(q, r) %<-% op_qr(matrix(c(2, 1, 1, 3), 2))
  expect_equal(as.array(q %*% r), matrix(c(2, 1, 1, 3), 2), tolerance = 1e-6)
  c(a, c(b, .), ...rest) %<-% list(1, list(2, 3), 4, 5)
  expect_identical(list(a, b, rest), list(1, 2, list(4, 5)))
  c(first, second) %<-% op_convert_to_tensor(matrix(1:4 / 2, 2))
  expect_equal(as.vector(second), c(1, 2))
  x <- list()
  c(x$a, x[["b"]]) %<-% c(1, 2)
  expect_identical(x, list(a = 1, b = 2))
  expect_error(c(a, b) %<-% list(1), "2 names for 1 parts", class = "gradops_error_argument")
  expect_error(c(a, b) %<-% 1:3, "2 names for 3 parts", class = "gradops_error_argument")
  # as in keras3's training loops
  step <- function(w) {
    c(loss, gradient) %<-% value_and_grad(function(w) sum(w^2))(w)
    w - 0.1 * gradient
  }
  expect_equal(step(c(1, 2)), c(0.8, 1.6))
})

test_each("x@r[...] acts as in keras3", {
  m <- matrix(1:12 / 2, 3)
  x <- op_convert_to_tensor(m)
  r <- function(x) if (is.null(dim(x)) || length(dim(x)) < 2) as.vector(x) else as.array(x)
  expect_equal(r(x@r[2]), m[2, ])
  expect_equal(r(x@r[-1]), m[3, ])
  expect_equal(r(x@r[2, 3]), m[2, 3])
  expect_equal(r(x@r[2, 3]), m[2, 3])
  expect_equal(r(x@r[, 2:-1]), m[, 2:4])
  expect_equal(r(x@r[1:NA, 1:NA:2]), m[, c(1, 3)])
  expect_equal(r(x@r[NA:NA:-1, 1]), rev(m[, 1]))
  expect_equal(r(x@r[c(3, 1), ]), m[c(3, 1), ])
  expect_equal(r(x@r[.., 2]), m[, 2])
  expect_equal(r(x@r[c(TRUE, FALSE, TRUE)]), m[c(1, 3), ])
  expect_equal(dim(x@r[NULL, 1:2, 1]), c(1L, 2L))
  expect_equal(r(x@r[m > 2]), t(m)[t(m > 2)])
  expect_equal(r(x@r[cbind(c(1, -1), c(2, -1))]), c(m[1, 2], m[3, 4]))
  expect_error(x@r[1, 2, 3], class = "gradops_error_axis")
  expect_error(x@r[0], class = "gradops_error_argument")
  expect_error(x@r[9], class = "gradops_error_axis")
  expect_equal(gradient(function(p) sum(matrix(p, 2)@r[-1]^2), 1:4 / 1), c(0, 4, 0, 8))
  expect_identical(as.character(methods::getGeneric("show")@package), "methods")
})

test_each("x@r[...] works in byte-compiled functions", {
  f <- function(p) sum(matrix(p, 2)@r[2, ]^2)
  environment(f) <- new.env(parent = globalenv())
  for (i in 1:3) try(f(1:4), silent = TRUE)
  expect_equal(gradient(f, 1:4 / 1), c(0, 4, 0, 8))
  expect_equal(jit(f)(1:4 / 1), 20)
})

test_each("array_reshape() fills by row", {
  x <- op_convert_to_tensor(matrix(1:6 / 2, 2))
  expect_equal(as.array(array_reshape(x, c(3, 2))), reticulate::array_reshape(matrix(1:6 / 2, 2), c(3, 2)))
  expect_equal(as.array(array_reshape(x, c(3, -1), "F")), matrix(1:6 / 2, 3))
  expect_identical(array_reshape(1:4, c(2, 2)), reticulate::array_reshape(1:4, c(2, 2)))
})

test_each("scalars and pairs, as in keras3 scripts", {
  x <- op_convert_to_tensor(matrix(1:4 / 2, 2))
  expect_equal(as.array(op_rms_normalization(x, scale = 2)), 2 * as.array(op_rms_normalization(x)), tolerance = 1e-6)
  expect_equal(as.vector(op_scatter(matrix(c(1, 3), 2), 1, 4L)), c(1, 0, 1, 0))
  y <- op_convert_to_tensor(matrix(4:1 / 2, 2))
  re <- op_convert_to_tensor(c(6, -1.5, 0.5))
  im <- op_convert_to_tensor(c(0, 1, 0))
  expect_equal(bare(op_irfft(c(re, im))), bare(op_irfft(list(re, im))), tolerance = 1e-6)
  expect_length(op_fft(c(re, im)), 6)
  parts <- op_fft2(c(x, y))
  expect_equal(lapply(parts, as.array), lapply(op_fft2(list(x, y)), as.array), tolerance = 1e-6)
  expect_equal(as.vector(c(x, y)), c(1:4, 4:1) / 2)
})

test_contract("op_custom_gradient() as in keras3's own example", {
  log1pexp <- op_custom_gradient(function(x) {
    e <- op_exp(x)
    grad <- function(..., upstream = NULL) {
      upstream <- upstream %||% ..1
      op_multiply(upstream, 1.0 - 1.0 / op_add(1, e))
    }
    tuple(op_log(1 + e), grad)
  })
  expect_equal(gradient(log1pexp, 100), 1)
})
