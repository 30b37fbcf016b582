test_each("backward() adds up gradients", {
  x <- parameter(c(1, 2, 3))
  backward(sum(x^2))
  expect_equal(as.numeric(x$grad), c(2, 4, 6))
  backward(sum(x^2))
  expect_equal(as.numeric(x$grad), c(4, 8, 12))
  y <- variable(c(1, 2), requires_grad = TRUE)
  backward(y * 3, grad_variables = c(1, 10))
  expect_equal(as.numeric(y$grad), c(3, 30))
})

test_each("a variable without requires_grad records nothing", {
  x <- variable(c(1, 2))
  expect_false(reticulate::py_to_r((x * 2)$requires_grad))
  expect_equal(as.numeric(x * 2), c(2, 4))
})

test_each("autodiff_grad() to second order", {
  x <- parameter(2)
  y <- x^3
  first <- autodiff_grad(y, x, create_graph = TRUE)[[1]]
  expect_equal(as.numeric(first), 12)
  expect_equal(as.numeric(autodiff_grad(first, x)[[1]]), 12)
  z <- parameter(1)
  expect_null(autodiff_grad(x * 2, list(x, z), allow_unused = TRUE)[[2]])
  expect_error(autodiff_grad(x * 2, list(x, z)), class = "gradops_error")
})

test_each("with_no_grad() and friends", {
  x <- parameter(2)
  requires_grad <- function(y) reticulate::py_to_r(y$requires_grad)
  expect_false(requires_grad(with_no_grad(x * 2)))
  expect_true(requires_grad(with_no_grad(with_enable_grad(x * 2))))
  expect_error(with_no_grad(stop("inside")), "inside")
  expect_true(requires_grad(x * 2))
  quiet <- function() {
    local_no_grad()
    x * 2
  }
  expect_false(requires_grad(quiet()))
  expect_true(requires_grad(x * 2))
})

test_each("bad variables", {
  expect_error(variable(1:3, requires_grad = TRUE), class = "gradops_error")
  expect_error(variable(quote(a)), "`data` must be", class = "gradops_error_type")
  expect_error(backward(parameter(c(1, 2)) * 2), class = "gradops_error")
})

test_each("a variable does not share memory with R", {
  m <- matrix(1:4 / 1, 2)
  x <- variable(m)
  m[1, 1] <- 100
  expect_equal(as.numeric(x)[1], 1)
})

test_each("autodiff_function() is forward, backward and a context", {
  power <- autodiff_function(
    forward = function(ctx, x, exponent) {
      ctx$save_for_backward(x)
      ctx$exponent <- exponent
      x^exponent
    },
    backward = function(ctx, upstream) {
      expect_true(ctx$needs_input_grad[[1]])
      list(ctx$exponent * ctx$saved_tensors[[1]]^(ctx$exponent - 1) * upstream, NULL)
    }
  )
  x <- parameter(c(1, 2))
  backward(sum(power(x, 3L)))
  expect_equal(as.numeric(x$grad), c(3, 12))
  failing <- autodiff_function(\(ctx, x) x * 1, \(ctx, upstream) stop("in backward"))
  condition <- expect_error(backward(sum(failing(x))), class = "gradops_error_callback")
  expect_equal(conditionMessage(condition$parent), "in backward")
})

test_each("anomaly mode names the operation", {
  x <- parameter(0)
  expect_error(suppressWarnings(with_detect_anomaly(backward(log(x) * 0))), "[Ll]og", class = "gradops_error")
  backward(log(x) * 0)
  expect_true(is.nan(as.numeric(x$grad)))
})

test_each("with_profile() is a data frame of the operations", {
  x <- parameter(c(1, 2))
  profile <- with_profile(backward(sum(exp(x)^2)))
  expect_s3_class(profile, c("gradops_profile", "data.frame"), exact = TRUE)
  expect_true(all(c("name", "kind", "calls", "self", "total", "bytes") %in% names(profile)))
  expect_true(any(grepl("exp", profile$name)))
  expect_output(print(profile), "ms")
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  expect_s3_class(plot(profile), "gradops_profile")
})

test_each("variables of text", {
  greeting <- variable("Hello", requires_grad = TRUE, role = "greeting")
  expect_match(format(greeting), "<text, variable, requires a gradient, role: greeting>")
  backward(greeting + ", world", grad_variables = "too short")
  expect_match(as.character(greeting$grad), "too short")
  expect_identical(as.character(greeting), "Hello")
})
