test_contract("backward() accumulates gradients", {
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

test_each("backward() has every argument of the Python function", {
  x <- parameter(c(1, 2))
  y <- parameter(c(3, 4))
  loss <- sum(x * y)
  backward(loss, retain_graph = TRUE, inputs = x)
  expect_equal(as.numeric(x$grad), c(3, 4))
  expect_null(y$grad)
  backward(loss)
  expect_equal(as.numeric(y$grad), c(1, 2))
  expect_error(backward(loss), class = "gradops_error")
  x$grad <- NULL
  backward(list(x * 2, sum(x)), grad_variables = list(c(1, 10), NULL))
  expect_equal(as.numeric(x$grad), c(3, 21))
  x$grad <- NULL
  suppressWarnings(backward(sum(x^3), create_graph = TRUE)) # torch warns about the reference cycle
  expect_equal(as.numeric(autodiff_grad(sum(x$grad), x)[[1]]), c(6, 12))
})

test_each("autodiff_grad() has every argument of the Python function", {
  x <- parameter(c(1, 2))
  z <- parameter(c(1, 1))
  y <- x^2
  expect_equal(as.numeric(autodiff_grad(y, x, c(1, 10), retain_graph = TRUE)[[1]]), c(2, 40))
  expect_error(autodiff_grad(y, x, retain_graph = TRUE), class = "gradops_error")
  zeros <- autodiff_grad(
    y, list(x, z), list(c(1, 1)),
    retain_graph = TRUE, allow_unused = TRUE, materialize_grads = TRUE
  )
  expect_equal(as.numeric(zeros[[2]]), c(0, 0))
  expect_error(autodiff_grad(sum(y), list(x, z)), class = "gradops_error")
  expect_null(x$grad)
})

test_contract("hooks of R functions", {
  x <- parameter(c(1, 2))
  seen <- list()
  hook <- x$register_hook(function(g) seen[[length(seen) + 1]] <<- as.numeric(g))
  backward(sum(x^2))
  expect_equal(seen, list(c(2, 4)))
  expect_equal(as.numeric(x$grad), c(2, 4)) # an R vector returned by a hook does not replace it
  hook$remove()
  x$grad <- NULL
  hook <- x$register_hook(function(g) g * 10)
  after <- NULL
  handle <- x$register_post_accumulate_grad_hook(function(v) after <<- as.numeric(v$grad))
  backward(sum(x^2))
  expect_equal(as.numeric(x$grad), c(20, 40))
  expect_equal(after, c(20, 40))
  hook$remove()
  handle$remove()
  backward(sum(x^2))
  expect_equal(as.numeric(x$grad), c(22, 44))
  expect_length(seen, 1)
  y <- x^2
  y$retain_grad()
  y$register_hook(function(g) g * 3)
  backward(sum(y))
  expect_equal(as.numeric(y$grad), c(3, 3))
  x$register_hook(function(g) stop("in the hook"))
  condition <- expect_error(backward(sum(x)), class = "gradops_error_callback")
  expect_equal(conditionMessage(condition$parent), "in the hook")
  expect_error(x$register_hook("f"), "`hook` must be a function", class = "gradops_error_type")
})

test_once("the gradient of an R matrix is column-major, like the matrix", {
  skip_without("numpy")
  local_backend("numpy") # other backends are row-major
  x <- parameter(matrix(1:6 / 1, 2))
  backward(sum(x^2))
  expect_equal(as.array(x$grad), 2 * matrix(1:6, 2))
  strides <- function(v) unlist(py_to_r(v$data$strides))
  expect_identical(strides(x), c(8L, 16L))
  expect_identical(strides(x$grad), c(8L, 16L))
  backward(sum(x^2))
  expect_identical(strides(x$grad), c(8L, 16L))
})

test_each("with_no_grad() and friends", {
  x <- parameter(2)
  requires_grad <- function(y) reticulate::py_to_r(y$requires_grad)
  expect_false(requires_grad(with_no_grad(x * 2)))
  expect_true(requires_grad(with_no_grad(with_enable_grad(x * 2))))
  expect_false(requires_grad(with_inference_mode(with_enable_grad(x * 2))))
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

test_contract("autodiff_function() takes forward, backward and a context", {
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
  by_name <- autodiff_function(\(ctx, x, y) x * y, \(ctx, upstream) list(upstream * 10, upstream * 20))
  x <- parameter(2)
  y <- parameter(3)
  backward(by_name(y = y, x = x))
  expect_equal(c(as.numeric(x$grad), as.numeric(y$grad)), c(10, 20))
  failing <- autodiff_function(\(ctx, x) x * 1, \(ctx, upstream) stop("in backward"))
  condition <- expect_error(backward(sum(failing(x))), class = "gradops_error_callback")
  expect_equal(conditionMessage(condition$parent), "in backward")
})

as_users <- function(f, ...) {
  environment(f) <- list2env(list(...), parent = globalenv())
  f
}

test_contract("anomaly mode names the operation and the R call that created it", {
  x <- parameter(0)
  # the test's environment belongs to the package; a user's function is outside
  model <- as_users(function(v) {
    logarithm <- log(v)
    sum(logarithm * 0)
  })
  train <- as_users(function() with_detect_anomaly(backward(model(x))), model = model, x = x)
  condition <- expect_error(train(), "[Ll]og", class = "gradops_error_gradient")
  lines <- strsplit(conditionMessage(condition), "\n")[[1]]
  expect_match(lines[2], "log(v)", fixed = TRUE)
  expect_match(lines[3], "model(x)", fixed = TRUE)
  direct <- as_users(function() with_detect_anomaly(backward(op_log(x) * 0)), x = x)
  expect_error(direct(), "op_log(x)", fixed = TRUE)
  local({
    local_detect_anomaly(check_nan = FALSE)
    backward(log(x) * 0)
  })
  expect_true(is.nan(as.numeric(x$grad)))
  x$grad <- NULL
  backward(log(x) * 0)
  expect_true(is.nan(as.numeric(x$grad)))
})

test_each("anomaly mode counts inputs from 1", {
  x <- parameter(0)
  words <- if (backend == "torch") "in its 0th output" else "gradient of its input 1" # torch's own message
  expect_error(with_detect_anomaly(backward(log(x) * 0)), words, class = "gradops_error_gradient")
})

test_each("with_profile() returns a data frame of operations", {
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
  expect_output(print(greeting), "<text, variable, requires a gradient, role: greeting>", fixed = TRUE)
  backward(greeting + ", world", grad_variables = "too short")
  expect_match(as.character(greeting$grad), "too short")
  expect_identical(as.character(greeting), "Hello")
})

test_each("gradcheck() shows both gradients, counts from 1, and checks the current backend", {
  seen <- character()
  right <- function(x, y) {
    seen <<- c(seen, py_to_r(reticulate::py_get_attr(reticulate::py_get_attr(y, "__class__"), "__module__"))) # not R's
    sum(exp(x) * y)
  }
  expect_true(gradcheck(right, list(0.1, matrix(c(1, 2, 3, 4), 2))))
  native <- c(numpy = "gradops.autodiff", torch = "torch", tensorflow = "tensorflow", jax = "jax")[[backend]]
  expect_true(all(startsWith(seen, native)))
  wrong <- op_custom_gradient(function(x) list(exp(x), function(upstream) upstream * 2))
  product <- function(x, y) sum(x * wrong(y))
  condition <- expect_error(gradcheck(product, list(1, matrix(c(0.1, 0.2), 1))), class = "gradops_error_gradient")
  lines <- strsplit(conditionMessage(condition), "\n")[[1]]
  expect_match(lines[1], "output 1 for input 2 is wrong at 2 of 2 places", fixed = TRUE)
  expect_match(lines[3], "\\[1, 1\\] +\\[\\] +2 +1\\.10517")
  expect_match(lines[4], "\\[1, 2\\] +\\[\\] +2 +1\\.22140")
  expect_false(gradcheck(wrong, c(0.1, 0.2), raise_exception = FALSE))
})
