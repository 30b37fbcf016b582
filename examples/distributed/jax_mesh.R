# JAX on a mesh of devices, from R: a compiled step runs on the devices of its data.
#
#     Rscript jax_mesh.R                                                        # one device
#     XLA_FLAGS=--xla_force_host_platform_device_count=8 Rscript jax_mesh.R     # eight: the same parameters
#
# The model is the same as in ddp.R.

suppressPackageStartupMessages(library(gradops))
config_set_backend("jax")
jax <- reticulate::import("jax", convert = FALSE)
sharding <- jax$sharding
mesh <- jax$make_mesh(
  tuple(jax$device_count()), tuple("data"),
  axis_types = tuple(sharding$AxisType$Auto)
)
in_pieces <- sharding$NamedSharding(mesh, sharding$PartitionSpec("data"))
whole <- sharding$NamedSharding(mesh, sharding$PartitionSpec())

rounded <- op_custom_gradient(function(x) list(op_round(x * 4) / 4, function(upstream) upstream))
features <- checkpoint(function(w, x) rounded(tanh(x %*% w)))

loss <- function(w, x, label, domain) {
  h <- features(w$features, x)
  guess <- h %*% w$label
  origin <- op_scaled_gradient(h, -0.5) %*% w$domain
  mean((guess - label)^2 + (origin - domain)^2 + 0.1 * (origin - op_stop_gradient(guess))^2)
}

step <- jit(function(w, x, label, domain) {
  Map(function(a, g) a - 0.1 * g, w, grad_fn(loss)(w, x, label, domain))
})

set.seed(3)
normal <- function(rows, columns) matrix(rnorm(rows * columns), rows)
put <- function(x, where) lapply(x, function(a) jax$device_put(op_convert_to_tensor(a), where))
w <- put(list(features = normal(3, 4), label = normal(4, 1), domain = normal(4, 1)), whole)
data <- put(list(x = normal(16, 3), label = normal(16, 1), domain = normal(16, 1)), in_pieces)
for (i in 1:10) w <- step(w, data$x, data$label, data$domain)
cat(format(unlist(lapply(w, as.array)), digits = 15, trim = TRUE), "\n")
cat(length(reticulate::iterate(data$x$addressable_shards)), "pieces of the data\n")
