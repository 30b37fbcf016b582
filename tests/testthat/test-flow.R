log1pexp_forms <- list(
  tuple = function(x) {
    e <- op_exp(x)
    tuple(op_log1p(e), function(upstream) upstream * (1 - 1 / (1 + e)))
  },
  list = function(x) {
    e <- op_exp(x)
    list(op_log1p(e), function(upstream) upstream * (1 - 1 / (1 + e)))
  },
  named = function(x) {
    e <- exp(x)
    list(grad = function(upstream) upstream * (1 - 1 / (1 + e)), value = log1p(e))
  },
  dots_first = function(x) {
    e <- exp(x)
    list(log1p(e), function(..., upstream = NULL) ..1 * (1 - 1 / (1 + e)))
  },
  dots_upstream = function(x) {
    e <- exp(x)
    list(log1p(e), function(..., upstream = NULL) upstream * (1 - 1 / (1 + e)))
  },
  inputs = function(x) {
    list(log1p(exp(x)), function(x, upstream) upstream * (1 - 1 / (1 + exp(x))))
  },
  in_list = function(x) {
    e <- exp(x)
    list(log1p(e), function(upstream) list(upstream * (1 - 1 / (1 + e))))
  },
  by_name = function(x) {
    e <- exp(x)
    list(log1p(e), function(upstream) list(x = upstream * (1 - 1 / (1 + e))))
  }
)

test_contract("every form of a gradient function gives first, second and third derivatives", {
  slope <- function(x) 1 / (1 + exp(-x))
  for (form in log1pexp_forms) {
    f <- op_custom_gradient(form)
    expect_equal(as.numeric(f(2)), log1p(exp(2)))
    expect_equal(gradient(f, 100), 1, tolerance = 1e-15)
    expect_equal(gradient(f, 2), 0.8807970779778824, tolerance = 1e-15)
    second <- grad_fn(\(x) gradient(f, x))
    expect_equal(second(2), 0.1049935854035065, tolerance = 1e-14)
    third <- grad_fn(\(x) gradient(\(x) gradient(f, x), x))
    expect_equal(third(2), slope(2) * (1 - slope(2)) * (1 - 2 * slope(2)), tolerance = 1e-12)
  }
})

test_each("a custom gradient of two arguments: in order, by name, NULL, as two functions", {
  gradients <- function(grad) {
    grad_fn(op_custom_gradient(\(x, y) list(x * y, grad)), 1:2)(3, 4)
  }
  expect_equal(gradients(\(upstream) list(10 * upstream, 20 * upstream)), list(10, 20))
  expect_equal(gradients(\(upstream) list(y = 20 * upstream, x = 10 * upstream)), list(10, 20))
  expect_equal(gradients(\(upstream) list(NULL, 20 * upstream)), list(0, 20))
  expect_equal(gradients(\(upstream) list(y = 20 * upstream)), list(0, 20))
  expect_equal(gradients(\(x, y, upstream) list(x * upstream, y * upstream)), list(3, 4))
  expect_equal(gradients(\(upstream) list(1, 2)), list(1, 2))
  f <- op_custom_gradient(\(x, y) x * y, \(x, y, upstream) list(upstream * y * 10, upstream * x * 10))
  expect_equal(grad_fn(f, 1:2)(3, 4), list(40, 30))
})

test_contract("a custom gradient may return R numerics", {
  f <- op_custom_gradient(\(x) list(sum(x), \(upstream) c(1, 2, 3)))
  expect_equal(gradient(f, c(0, 0, 0)), c(1, 2, 3))
  m <- op_custom_gradient(\(x) list(sum(x), \(upstream) matrix(1:6, 2)))
  expect_equal(gradient(m, matrix(0, 2, 3)), matrix(1:6 + 0, 2))
})

test_each("each of several outputs has its own upstream gradient", {
  separate <- op_custom_gradient(\(x) list(list(2 * x, 3 * x), \(first, second) 100 * first + second))
  together <- op_custom_gradient(\(x) list(list(2 * x, 3 * x), \(..., upstream = NULL) 100 * upstream[[1]] + ..2))
  for (f in list(separate, together)) {
    expect_equal(gradient(\(x) f(x)[[1]] + 7 * f(x)[[2]], 1), 107)
  }
})

test_each("stop, scale and reverse", {
  expect_equal(gradient(\(x) x * op_stop_gradient(x), 3), 3)
  expect_equal(gradient(\(x) op_scaled_gradient(x, -2)^2, 3), -12)
  expect_equal(gradient(\(x) sum(op_scaled_gradient(x, 0)^2 + x), c(1, 2)), c(1, 1))
  expect_equal(gradient(\(x) op_scaled_gradient_ext(x, scale = 2, shift = 1)^2, 3), 13)
  x <- matrix(1:6 / 1, 2)
  by_row <- gradient(\(x) sum(op_scaled_gradient_ext(x, scale = 1, shift = 1, scale_shift_by_sum_over_axis = 2)^2), x)
  expect_equal(by_row, 2 * x + rowSums(abs(2 * x)))
})

test_each("errors of bad gradient functions are named", {
  derivative <- function(f, x = 1) gradient(op_custom_gradient(f), x)
  expect_error(derivative(\(x) x), "gradient function", class = "gradops_error_gradient")
  expect_error(derivative(\(x) list(x, \(upstream) list(1, 2, 3))), "3", class = "gradops_error_gradient")
  expect_error(derivative(\(x) list(x, \(upstream) list(z = 1))), "z", class = "gradops_error_gradient")
  expect_error(derivative(\(x) list(sum(x), \(upstream) c(1, 2, 3)), c(1, 2)), class = "gradops_error_shape")
  expect_error(derivative(\(x) list(x, \(upstream) "text")), class = "gradops_error_type")
  expect_error(op_custom_gradient(3), "must be a function", class = "gradops_error_type")
})

test_each("default arguments of a gradient function are kept, also if named like inputs", {
  forms <- list(
    \(x) list(x^2, \(upstream, k = 7) upstream * k),
    \(x) list(x^2, \(upstream, x = 7) upstream * x),
    \(x) list(x^2, \(x, upstream, k = 7) upstream * k),
    \(x) list(x^2, \(upstream = NULL, k = 7) upstream * k),
    \(x) list(x^2, \(dy = NULL, k = 7) dy * k)
  )
  for (form in forms) {
    f <- op_custom_gradient(form)
    expect_equal(gradient(\(x) sum(f(x)), c(1, 2)), c(7, 7))
  }
  both <- op_custom_gradient(\(x, k = 3) x * k, \(x, k, upstream, scale = 7) list(upstream * k * scale, NULL))
  expect_equal(gradient(\(x) both(x), 2), 21)
  expect_equal(gradient(\(x) both(x, 5), 2), 35)
})

test_each("a gradient function that returns nothing is an error; NULL in a list is no gradient", {
  for (forgotten in list(\(upstream) invisible(NULL), \(upstream) if (FALSE) upstream)) {
    f <- op_custom_gradient(\(x) list(x^2, forgotten))
    error <- expect_error(gradient(\(x) sum(f(x)), c(1, 2)), "returned nothing", class = "gradops_error_gradient")
    expect_match(conditionMessage(error), "NULL for it")
  }
  f <- op_custom_gradient(\(x) list(x^2, \(upstream) list(NULL)))
  expect_equal(gradient(\(x) sum(f(x) + 3 * x), c(1, 2)), c(3, 3))
})

test_each("a named list with the argument's structure is its gradient", {
  f <- op_custom_gradient(\(p) list(p$x * p$b, \(upstream) list(x = 7 * upstream, b = upstream)))
  expect_equal(gradient(\(p) f(p), list(x = 2, b = 3)), list(x = 7, b = 1))
  beside <- op_custom_gradient(\(p, y) list(p$x * p$b * y, \(upstream) list(x = 7 * upstream, b = upstream)))
  expect_equal(gradient(\(p) beside(p, 5), list(x = 2, b = 3)), list(x = 7, b = 1))
})

test_contract("an R error in a callback keeps its message and condition", {
  failing <- list(
    op_custom_gradient(\(x) stop("my own message")),
    op_custom_gradient(\(x) list(x, \(upstream) stop("my own message")))
  )
  for (f in failing) {
    condition <- expect_error(gradient(f, 1), class = "gradops_error_callback")
    expect_equal(conditionMessage(condition$parent), "my own message")
  }
  classed <- op_custom_gradient(\(x) rlang::abort("classed", class = "my_class", data = 7))
  expect_equal(tryCatch(gradient(classed, 1), error = \(e) e$parent$data), 7)
  expect_equal(gradient(\(x) x^2, 3), 6)
  expect_equal(config_backend(), backend)
})

test_contract("scopes: stop and checkpoint", {
  expect_equal(gradient(\(x) x * with_stop_gradient(x^2), 3), 9)
  scoped <- function(x) {
    stopped <- function() {
      local_stop_gradient()
      x^2
    }
    x * stopped()
  }
  expect_equal(gradient(scoped, 3), 9)
  expect_error(with_stop_gradient(stop("inside")), "inside")
  expect_equal(gradient(\(x) x^2, 3), 6)
  expect_equal(gradient(checkpoint(\(x) exp(x)^2), 1), 2 * exp(2))
  x <- parameter(2)
  backward(with_gradient_checkpoint(exp(x) * x))
  expect_equal(as.numeric(x$grad), 3 * exp(2))
})

test_each("checkpoint_sequential() and print_saved_residuals()", {
  layers <- list(sin, \(x) exp(x) / 2, \(x) x * x, cos, tanh)
  plain <- function(x) sum(Reduce(\(value, f) f(value), layers, x))
  x <- c(0.3, 0.7)
  for (segments in c(1, 3, 5)) {
    f <- function(x) sum(checkpoint_sequential(layers, segments, x))
    expect_equal(gradient(f, x), gradient(plain, x))
  }
  expect_error(checkpoint_sequential(layers, 6, x), "must be from 1 to 5", class = "gradops_error_argument")
  expect_error(checkpoint_sequential(list(1), 1, x), "must be a function", class = "gradops_error_type")
  given <- if (backend %in% c("torch", "jax")) op_convert_to_tensor(matrix(1, 2, 3)) else variable(matrix(1, 2, 3))
  printed <- capture.output(found <- print_saved_residuals(\(x, p) sum(tanh(x * p$w)), given, list(w = 2)))
  expect_equal(names(found), c("dtype", "shape", "bytes", "where"))
  expect_true("2 3" %in% found$shape && "argument x" %in% found$where && "argument p['w']" %in% found$where)
  expect_match(printed[length(printed)], "^total: [0-9]+ B in [0-9]+ tensors$")
  expect_length(printed, nrow(found) + 1)
  if (backend == "tensorflow") {
    tensor <- op_convert_to_tensor(c(1, 2))
    expect_error(print_saved_residuals(\(x) x^2, tensor), "does not say", class = "gradops_error_backend")
  }
})

test_contract("hooks keep what an operation saves", {
  files <- character()
  pack <- function(x) {
    files <<- c(files, tempfile())
    saveRDS(as.array(x), files[length(files)])
    files[length(files)]
  }
  f <- function(x) sum(exp(x) * sin(x))
  x <- variable(c(1, 2), TRUE)
  backward(with_saved_tensors_hooks(f(x), pack, readRDS))
  expect_gte(length(files), 3)
  expect_equal(as.numeric(x$grad), exp(1:2) * (sin(1:2) + cos(1:2)))
  y <- variable(c(1, 2), TRUE)
  scoped <- function() {
    local_save_on_cpu()
    local_saved_tensors_hooks(\(x) list(x, "a"), \(packed) packed[[1]])
    f(y)
  }
  backward(with_save_on_cpu(scoped(), pin_memory = FALSE))
  expect_equal(as.numeric(y$grad), as.numeric(x$grad))
  expect_error(with_saved_tensors_hooks(1, 2, identity), "`pack` must be a function", class = "gradops_error_type")
  broken <- with_saved_tensors_hooks(f(y), identity, \(packed) stop("mine"))
  expect_error(backward(broken), class = "gradops_error_callback")
})

test_each("checkpoints by policies", {
  f <- function(x) sum(tanh(checkpoint_name(x %*% x, "product")))
  x <- variable(matrix(1:4 / 4, 2), TRUE)
  by_name <- list(save_only_these_names("product"), save_anything_except_these_names("product", "other"))
  offloaded <- save_and_offload_only_these_names(character(), c("product", "other"))
  both <- list(offloaded, save_from_both_policies("products", by_name[[1]]), save_from_both_policies(offloaded, NULL))
  for (policy in c(list("products", "nothing", "everything"), by_name, both)) {
    expect_equal(as.array(gradient(checkpoint(f, policy), x)), as.array(gradient(f, x)))
  }
  if (backend == "tensorflow") {
    tensor <- op_convert_to_tensor(matrix(1:4 / 4, 2))
    expect_error(gradient(checkpoint(f, "products"), tensor), "does not work on", class = "gradops_error_backend")
  }
  expect_error(checkpoint(f, "dots"), "`policy` must be", class = "gradops_error_argument")
  expect_error(checkpoint(f, 3), "`policy` must be", class = "gradops_error_type")
  expect_equal(save_only_these_names("a", "b"), save_only_these_names(c("a", "b")))
  expect_error(save_only_these_names("a", 1), "`names` must be", class = "gradops_error_type")
  expect_error(save_from_both_policies("products", "dots"), "`policy` must be", class = "gradops_error_argument")
  expect_error(save_and_offload_only_these_names("a", "a"), "one list only", class = "gradops_error_argument")
  expect_error(save_and_offload_only_these_names("a", 1), "must be a string", class = "gradops_error_type")
  expect_error(checkpoint_name(1, 2), "`name` must be", class = "gradops_error_type")
})

test_each("a gradient function sees the defaults of the R function, repeated or not", {
  ten <- function(x, k, upstream) upstream * k * 10
  forms <- list(
    op_custom_gradient(function(x, k = 2) x * k, function(x, k = 2, upstream) upstream * k * 10),
    op_custom_gradient(function(x, k = 2) x * k, ten),
    op_custom_gradient(function(x, k = 1 + 1) x * k, ten),
    op_custom_gradient(function(x, k = 2) list(x * k, ten)),
    op_custom_gradient(function(x, k = 1 + 1) list(x * k, function(x, k = 1 + 1, upstream) upstream * k * 10))
  )
  for (f in forms) {
    expect_equal(gradient(f, 3), 20)
    expect_equal(gradient(function(x) f(x, 5), 3), 50)
    expect_equal(gradient(function(x) f(k = 5, x), 3), 50)
    expect_equal(op_dtype(f(op_cast(1, "float32"), k = 5)), "float32")
  }
  of_size <- op_custom_gradient(function(x, n = length(x)) sum(x) / n, function(x, n, upstream) 0 * x + upstream / n)
  expect_equal(gradient(of_size, c(1, 2)), c(0.5, 0.5))
})

# Returns what a checkpointed function draws in R, and R's next random number after the gradient.
drawn <- function(wrap, f) {
  set.seed(3)
  slope <- gradient(function(x) sum(wrap(f)(x)), c(1, 2))
  list(slope = slope, later = stats::rnorm(2))
}

test_contract("a rerun checkpoint replays R's random numbers, and the stream continues as after one run", {
  f <- function(x) exp(x * stats::rnorm(2)) * stats::runif(2)
  plain <- drawn(identity, f)
  expect_equal(drawn(checkpoint, f), plain)
  if (backend != "tensorflow") { # its tape does not support the scope
    expect_equal(drawn(function(f) function(x) with_gradient_checkpoint(f(x)), f), plain)
  }
  twice <- function(x) checkpoint(f)(f(checkpoint(f)(x)))
  expect_equal(drawn(identity, twice), drawn(identity, function(x) f(f(f(x)))))
  backward_later <- function(wrap) {
    set.seed(5)
    x <- parameter(c(1, 2))
    y <- sum(wrap(f)(x)^2)
    between <- stats::rnorm(1)
    backward(y)
    list(as.numeric(x$grad), between, stats::rnorm(1))
  }
  plain <- backward_later(identity)
  expect_equal(backward_later(checkpoint), plain)
  expect_equal(backward_later(function(f) function(x) with_gradient_checkpoint(f(x))), plain)
})

test_each("a checkpointed function may be the first to use R's generator", {
  seed <- get0(".Random.seed", globalenv(), inherits = FALSE)
  withr::defer(if (!is.null(seed)) assign(".Random.seed", seed, globalenv()))
  if (!is.null(seed)) rm(".Random.seed", envir = globalenv())
  x <- parameter(c(1, 2))
  value <- checkpoint(function(x) exp(x * stats::rnorm(2)))(x)
  first <- as.numeric(value)
  backward(sum(value))
  expect_equal(as.numeric(x$grad), first * log(first) / c(1, 2))
})

test_contract("generators of the Python libraries are restored under R as well", {
  random <- switch(backend,
    torch = {
      torch <- reticulate::import("torch", convert = FALSE)
      function() torch$rand(2L, dtype = torch$float64)
    },
    tensorflow = {
      tf <- reticulate::import("tensorflow", convert = FALSE)
      function() tf$random$uniform(list(2L), dtype = "float64")
    },
    {
      numpy <- reticulate::import("numpy", convert = FALSE)
      function() numpy$random$rand(2L)
    }
  )
  f <- function(x) {
    drawn <- random()
    list(exp(x * drawn), drawn)
  }
  x <- parameter(c(1, 2))
  value <- checkpoint(f)(x)
  backward(sum(value[[1]]))
  expect_equal(as.numeric(x$grad), as.numeric(value[[2]] * value[[1]]))
  natively <- value_and_grad(
    function(x) {
      found <- checkpoint(f)(x)
      list(sum(found[[1]]), found)
    },
    has_aux = TRUE
  )(c(1, 2))
  expect_equal(natively$gradient, as.numeric(natively$aux[[2]] * natively$aux[[1]]))
})

test_each("set_requires_gradient() marks supported tensors", {
  x <- variable(c(1, 2))
  set_requires_gradient(x)
  backward(sum(x^2))
  expect_equal(as.numeric(x$grad), c(2, 4))
  expect_error(set_requires_gradient(c(1, 2)), "variable", class = "gradops_error")
})

test_each("R's argument names and defaults are preserved", {
  f <- op_custom_gradient(function(x.one, scale = 2, .y = NULL) {
    list(x.one * scale, function(upstream) list(x.one = upstream * 10))
  })
  expect_equal(as.numeric(f(3)), 6)
  expect_equal(as.numeric(f(3, scale = 5)), 15)
  expect_equal(gradient(f, 3), 10)
})
