# The time of an op called from R against a bare reticulate call of the same Python function.
#
#     Rscript benchmarks/r_calls.R

library(gradops)

microseconds <- function(f, calls = 5000, rounds = 7) {
  for (i in seq_len(200)) f()
  min(replicate(rounds, system.time(for (i in seq_len(calls)) f())[["elapsed"]])) / calls * 1e6
}

gradops_ops <- reticulate::import_from_path("gradops.ops", system.file("python", package = "gradops"), convert = FALSE)

for (backend in Filter(gradops_available, c("numpy", "torch", "tensorflow", "jax"))) {
  config_set_backend(backend)
  x <- op_convert_to_tensor(c(1, 2, 3))
  m <- op_convert_to_tensor(matrix(1:6 / 2, 2))
  exp <- gradops_ops$exp
  add <- gradops_ops$add
  sum <- gradops_ops$sum
  timed <- rbind(
    `op_exp(x)` = c(microseconds(\() exp(x)), microseconds(\() op_exp(x))),
    `op_add(x, x)` = c(microseconds(\() add(x, x)), microseconds(\() op_add(x, x))),
    `x + x` = c(microseconds(\() add(x, x)), microseconds(\() x + x)),
    `op_sum(m, axis = 1)` = c(microseconds(\() sum(m, 0L)), microseconds(\() op_sum(m, axis = 1))),
    `op_exp(c(1, 2, 3))` = c(microseconds(\() exp(c(1, 2, 3))), microseconds(\() op_exp(c(1, 2, 3))))
  )
  colnames(timed) <- c("bare", "gradops")
  cat(backend, ", microseconds a call\n", sep = "")
  print(round(cbind(timed, ratio = timed[, 2] / timed[, 1]), 2))
}
