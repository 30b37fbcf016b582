# op_custom_gradient() and scopes as parts of torch, TensorFlow and JAX code driven from R.

log1pexp <- if (gradops_available()) op_custom_gradient(function(x) {
  e <- exp(x)
  list(log1p(e), function(upstream) upstream * (1 - 1 / (1 + e)))
})

test_on("torch", "in torch: a module trained by an optimizer", {
  torch <- reticulate::import("torch", convert = FALSE)
  train <- function(softplus) {
    torch$manual_seed(1L)
    net <- torch$nn$Sequential(torch$nn$Linear(2L, 8L), torch$nn$Tanh(), torch$nn$Linear(8L, 1L))
    optimizer <- torch$optim$Adam(net$parameters(), lr = 0.05)
    x <- torch$randn(64L, 2L)
    y <- op_cast(op_reshape(op_prod(x, axis = 2) > 0, c(64, 1)), "float32")
    vapply(1:40, function(i) {
      optimizer$zero_grad()
      eta <- net(x)
      loss <- mean(softplus(eta) - y * eta)
      loss$backward()
      optimizer$step()
      as.numeric(loss)
    }, 0)
  }
  losses <- train(log1pexp)
  expect_lt(losses[40], 0.5 * losses[1])
  expect_equal(losses, train(torch$nn$functional$softplus), tolerance = 1e-4)
})

test_on("torch", "in torch: gradient reversal in front of a module, checkpointed", {
  torch <- reticulate::import("torch", convert = FALSE)
  layer <- torch$nn$Linear(2L, 1L, dtype = torch$float64)
  slope <- function(f) {
    x <- torch$ones(2L, dtype = torch$float64)$requires_grad_()
    layer$zero_grad()
    op_sum(f(x))$backward() # a module returns a torch tensor, which R's `sum()` does not accept
    list(input = op_convert_to_array(x$grad), weight = op_convert_to_array(layer$weight$grad))
  }
  plain <- slope(layer)
  turned <- slope(function(x) layer(op_scaled_gradient(x, -1)))
  expect_equal(turned, list(input = -plain$input, weight = plain$weight))
  expect_equal(slope(checkpoint(function(x) layer(x))), plain)
  expect_equal(slope(function(x) with_gradient_checkpoint(layer(x))), plain)
  expect_equal(slope(function(x) layer(x) + with_stop_gradient(layer(x))), plain)
})

test_on("tensorflow", "in TensorFlow: tapes, variables, tf.function, Keras' way of training", {
  tf <- reticulate::import("tensorflow", convert = FALSE)
  start <- c(1, -1)
  v <- tf$Variable(start, dtype = "float64")
  slope <- function() {
    with(tf$GradientTape() %as% tape, {
      loss <- tf$reduce_sum(log1pexp(v))
    })
    tape$gradient(loss, v)
  }
  values <- \(x) as.numeric(op_convert_to_array(x)) # for TensorFlow tensors
  expect_equal(values(slope()), stats::plogis(start))
  v$assign_sub(op_multiply(0.1, slope()))
  expect_equal(values(v), start - 0.1 * stats::plogis(start))
  compiled <- tf$`function`(function(a) {
    with(tf$GradientTape() %as% tape, {
      tape$watch(a)
      loss <- tf$reduce_sum(op_scaled_gradient(log1pexp(a), -2) * with_stop_gradient(tf$exp(a)))
    })
    tape$gradient(loss, a)
  }, autograph = FALSE)
  expect_equal(values(compiled(tf$constant(start, dtype = "float64"))), -2 * stats::plogis(start) * exp(start))
})

test_on("jax", "in JAX: grad, jit and vmap in any order, to second order", {
  jax <- reticulate::import("jax", convert = FALSE)
  x <- op_convert_to_tensor(c(1, -1))
  first <- stats::plogis(c(1, -1))
  total <- function(x) sum(log1pexp(x))
  values <- \(x) as.numeric(op_convert_to_array(x)) # for JAX arrays
  expect_equal(values(jax$grad(total)(x)), first)
  expect_equal(values(jax$jit(jax$grad(total))(x)), first)
  expect_equal(values(jax$grad(jax$jit(total))(x)), first)
  expect_equal(values(jax$vmap(jax$grad(log1pexp))(x)), first)
  expect_equal(values(jax$jit(jax$vmap(jax$grad(jax$grad(log1pexp))))(x)), first * (1 - first))
  scoped <- function(x) sum(log1pexp(x) * with_stop_gradient(jax$numpy$exp(x)))
  expect_equal(values(jax$jit(jax$grad(scoped))(x)), first * exp(c(1, -1)))
  expect_equal(values(jax$grad(checkpoint(total))(x)), first)
})

test_each("jit preserves the order of named lists", {
  f <- jit(function(p) list(zeta = p$z * 2, alpha = list(y = p$z, b = p$a)))
  for (time in 1:2) {
    result <- f(list(z = 1, a = 2))
    expect_named(result, c("zeta", "alpha"))
    expect_named(result$alpha, c("y", "b"))
    expect_equal(result$zeta, 2)
  }
})
