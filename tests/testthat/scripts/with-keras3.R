# What gradops promises to users of keras3, on the Keras backend that KERAS_BACKEND names; stops where it does not hold.
#
#     KERAS_BACKEND=jax Rscript with-keras3.R LIBRARY

.libPaths(c(commandArgs(TRUE)[1], .libPaths()))
backend <- Sys.getenv("KERAS_BACKEND")
library(keras3)
said <- character()
withCallingHandlers(library(gradops), packageStartupMessage = function(m) {
  said <<- c(said, conditionMessage(m))
  invokeRestart("muffleMessage")
})
same <- function(found, expected, tolerance = 1e-5) {
  stopifnot(isTRUE(all.equal(c(as.array(found)), c(expected), tolerance = tolerance, check.attributes = FALSE)))
}
fails <- function(code, pattern) {
  message <- tryCatch({ code; "no error" }, error = function(e) paste(conditionMessage(e), collapse = " "))
  if (!grepl(pattern, message)) stop("expected an error like '", pattern, "', got: ", message)
}

# One line lists the masked functions.
said <- grep("keras3", said, value = TRUE)
stopifnot(length(said) == 1, grepl("and [0-9]+ more mask", said), nchar(said) < 200)

# Mixed expressions, wrapped tensors.
m <- matrix(c(1, 2, 3, 4), 2)
x <- keras3::op_convert_to_tensor(m, dtype = "float32")
w <- keras_variable(initializer = m + 1)
y <- op_exp(x)
stopifnot(op_dtype(y) == "float32", op_dtype(y * c(1, 10)) == "float32", op_dtype(op_add(x, c(1, 2))) == "float32")
same(y * c(1, 10), exp(m) * c(1, 10))
same(y * x, exp(m) * m)
same(x - y, m - exp(m))
same(y * w, exp(m) * (m + 1))
same(w / y, (m + 1) / exp(m))
same(y^w, exp(m)^(m + 1), 1e-4)
same(t(y) %*% w, t(exp(m)) %*% (m + 1))
same(op_exp(w), exp(m + 1))
same(op_matmul(w, x), (m + 1) %*% m)
same(y[2, ], exp(m)[2, ])
stopifnot(inherits(op_scaled_gradient(w, -1), "gradops_tensor"))
slope <- grad_fn(function(v) sum(v^2 * c(1, 10)))
same(slope(w), 2 * (m + 1) * c(1, 10))

# A functional model of gradops ops, which mask keras3's.
input <- keras_input(shape = 2)
output <- input |>
  layer_dense(3) |>
  op_tanh() |>
  op_multiply(c(1, 2, 3)) |>
  op_scaled_gradient(-1) |>
  layer_dense(1)
model <- keras_model(input, output)
file <- tempfile(fileext = ".keras")
save_model(model, file, overwrite = TRUE)
same(load_model(file)(x), as.array(model(x)))

# A layer with a custom gradient: trained, saved, loaded.
clipped <- op_custom_gradient(
  function(x) 3 * x,
  function(x, upstream) op_clip(upstream, -0.01, 0.01) * c(1, 1)[1]
)
layer_clipped <- Layer(
  "Clipped",
  build = function(input_shape) self$w <- self$add_weight(shape = shape(input_shape[[2]], 1), initializer = "ones"),
  call = function(x) op_matmul(clipped(x), self$w)
)
inputs <- matrix(seq(-1, 1, length.out = 32), 16)
targets <- inputs %*% c(1, -2)
model <- keras_model_sequential(input_shape = 2) |> layer_dense(2) |> layer_clipped()
model |> compile(optimizer = optimizer_sgd(0.05), loss = "mse")
before <- as.array(model(inputs))
history <- model |> fit(inputs, targets, epochs = 3, batch_size = 8, verbose = 0)
losses <- history$metrics$loss
stopifnot(length(losses) == 3, all(is.finite(losses)), losses[3] < losses[1])
save_model(model, file, overwrite = TRUE)
loaded <- load_model(file, custom_objects = layer_clipped)
same(loaded(inputs), as.array(model(inputs)))

# All gradients before the layer pass through its gradient function: they are clipped.
before <- as.array(model$layers[[1]]$kernel)
model |> fit(inputs, targets + 100, epochs = 1, batch_size = 16, verbose = 0)
moved <- as.array(model$layers[[1]]$kernel) - before
stopifnot(max(abs(moved)) <= 0.05 * 0.01 * sum(abs(inputs)), max(abs(moved)) > 0)

# Losses and metrics as R functions, with labels in Keras' form; an R density inside fit().
loss_of <- function(y_true, y_pred) op_mean(op_square(y_pred - op_cast(y_true, "float32")))
density <- r_function(function(z) exp(-z^2 / 2), function(z, upstream) -z * exp(-z^2 / 2) * upstream)
loss_by_r <- function(y_true, y_pred) op_mean(1 - density(y_pred - y_true))
model <- keras_model_sequential(input_shape = 2) |> layer_dense(1)
model |> compile(optimizer = optimizer_sgd(0.05), loss = loss_of, metrics = list(custom_metric("own", loss_of)))
history <- model |> fit(inputs, targets, epochs = 2, batch_size = 16, verbose = 0)
stopifnot(isTRUE(all.equal(history$metrics$loss, history$metrics$own, tolerance = 1e-4)))
model |> compile(optimizer = optimizer_sgd(0.05), loss = loss_by_r)
# R's thread serves TensorFlow's compiled programs while another thread waits for them.
losses <- if (backend == "tensorflow") {
  history <- call_in_thread(model$fit, inputs, targets, epochs = 2L, batch_size = 16L, verbose = 0L)
  unlist(reticulate::py_to_r(history$history)$loss)
} else {
  (model |> fit(inputs, targets, epochs = 2, batch_size = 16, verbose = 0))$metrics$loss
}
stopifnot(length(losses) == 2, losses[2] < losses[1])

# Domain-adversarial training (Ganin and Lempitsky 2015): the features' gradient from the second head is reversed.
features <- keras_input(shape = 2)
hidden <- features |> layer_dense(4, activation = "tanh", name = "features")
label <- hidden |> layer_dense(1, name = "label")
domain <- op_scaled_gradient(hidden, -1) |> layer_dense(1, name = "domain")
dann <- keras_model(features, list(label, domain))
weights <- get_weights(dann)
step <- function(signs) { # returns the features' change by a step of each head alone
  set_weights(dann, weights)
  dann |> compile(optimizer = optimizer_sgd(0.1), loss = list("mse", "mse"), loss_weights = signs)
  dann |> fit(inputs, list(targets, targets), epochs = 1, batch_size = 16, verbose = 0)
  get_weights(dann)[[1]] - weights[[1]]
}
plain <- keras_model(features, hidden |> (dann$get_layer("domain"))())
reversed <- step(list(0, 1))
set_weights(dann, weights)
plain |> compile(optimizer = optimizer_sgd(0.1), loss = "mse")
plain |> fit(inputs, targets, epochs = 1, batch_size = 16, verbose = 0)
same(reversed, -(get_weights(plain)[[1]] - weights[[1]]), 1e-3)
stopifnot(max(abs(reversed)) > 1e-6)

# Straight-through estimator, stopped gradients and checkpoints in a layer; a callback that reads weights.
straight <- op_custom_gradient(function(x) op_round(x), function(x, upstream) upstream)
layer_steps <- Layer(
  "Steps",
  build = function(input_shape) self$scale <- self$add_weight(shape = shape(1), initializer = "ones"),
  call = function(x) {
    inner <- if (backend == "tensorflow") identity else checkpoint
    straight(inner(function(x) op_tanh(x))(x) * 4) * self$scale + op_stop_gradient(x)
  }
)
norms <- c()
look <- Callback("Look", on_epoch_end = function(epoch, logs) {
  norms <<- c(norms, as.numeric(sum(op_square(self$model$layers[[1]]$kernel))))
})
model <- keras_model_sequential(input_shape = 2) |> layer_dense(2) |> layer_steps()
model |> compile(optimizer = optimizer_sgd(0.1), loss = "mse")
model |> fit(inputs, inputs, epochs = 2, batch_size = 16, verbose = 0, callbacks = list(look()))
stopifnot(length(norms) == 2, norms[1] != norms[2])
if (backend == "tensorflow") {
  f <- tensorflow::tf_function(function(x) with_gradient_checkpoint(op_sum(op_exp(x))))
  fails(f(x), "checkpoint")
  doubled <- tensorflow::tf_function(function(x) op_sum(clipped(x)))
  same(doubled(x), 3 * sum(m))
}

# A custom training step with gradops' derivative of an R loss: the kernel's gradient is tripled.
tripled <- op_custom_gradient(function(w) w * 1, function(w, upstream) 3 * upstream)
derived <- function(x, y, w) value_and_grad(function(w) op_mean(op_square(op_matmul(x, tripled(w)) - y)))(w)
by_state <- function(state, data) { # in the form that Keras requires on JAX
  c(trainable, rest, optimizer, metrics) %<-% state
  found <- derived(data[[1]], data[[2]], trainable[[1]])
  c(trainable, optimizer) %<-% self$optimizer$stateless_apply(optimizer, list(found$gradient), trainable)
  tuple(reticulate::dict(own = found$value), tuple(trainable, rest, optimizer, metrics))
}
by_variables <- function(data) {
  w <- self$trainable_variables[[1]]
  found <- derived(data[[1]], data[[2]], w)
  self$optimizer$apply(list(found$gradient), list(w))
  list(own = found$value)
}
model_of_own <- new_model_class(
  "Own",
  initialize = function() {
    super$initialize()
    self$dense <- layer_dense(units = 1, use_bias = FALSE)
  },
  call = function(x) self$dense(x),
  train_step = if (backend == "jax") by_state else by_variables
)
model <- model_of_own()
model(inputs)
model |> compile(optimizer = optimizer_sgd(0.1), loss = "mse")
before <- get_weights(model)[[1]]
history <- model |> fit(inputs, targets, epochs = 1, batch_size = 16, verbose = 0)
same(get_weights(model)[[1]], before - 0.1 * 3 * crossprod(inputs, inputs %*% before - targets) * 2 / 16, 1e-4)
same(history$metrics$own, mean((inputs %*% before - targets)^2), 1e-4)

# Settings apply to both packages.
config_set_epsilon(1e-6)
stopifnot(keras3::config_epsilon() == 1e-6)
fails(call_in_thread(fit, model, inputs), "must be a Python function")
cat("all hold on", backend, "\n")
