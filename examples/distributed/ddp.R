# PyTorch on several processes, from R: torchrun starts this script in several R processes.
#
#     Rscript ddp.R                                                # one process
#     torchrun --nproc-per-node 2 --no-python Rscript ddp.R        # the same parameters after ten steps
#
# The model is the same as in ddp.py: it rounds its features with a straight-through gradient, recomputes them in the
# backward pass (a checkpoint scope), has an adversarial head (a reversed gradient), and a target without gradient (a
# stopped one).

suppressPackageStartupMessages(library(gradops))
torch <- reticulate::import("torch", convert = FALSE)
dist <- torch$distributed
mse <- torch$nn$functional$mse_loss

rounded <- op_custom_gradient(function(x) list(op_round(x * 4) / 4, function(upstream) upstream))

# A module with an R function as `forward`, which gets the module and its input.
module <- reticulate::PyClass("RModule", inherit = torch$nn$Module, defs = list(
  `__init__` = function(self, layers, f) {
    super()$`__init__`()
    self$layers <- layers
    self$f <- f
    NULL
  },
  forward = function(self, x) self$f(self$layers, x)
))

forward <- function(layers, x) {
  h <- with_gradient_checkpoint(rounded(torch$tanh(layers[0](x))))
  torch$cat(list(layers[1](h), layers[2](op_scaled_gradient(h, -0.5))), 1L)
}

loss <- function(outputs, label, domain) {
  guess <- outputs$narrow(1L, 0L, 1L)
  origin <- outputs$narrow(1L, 1L, 1L)
  mse(guess, label) + mse(origin, domain) + 0.1 * mse(origin, op_stop_gradient(guess))
}

invisible(torch$manual_seed(3L))
invisible(torch$set_default_dtype(torch$float64))
normal <- function(columns) torch$randn(16L, columns)
data <- list(x = normal(3L), label = normal(1L), domain = normal(1L))
linear <- torch$nn$Linear
layers <- torch$nn$ModuleList(list(linear(3L, 4L), linear(4L, 1L), linear(4L, 1L)))
model <- module(layers, forward)
rank <- 0
count <- 1
if (nzchar(Sys.getenv("RANK"))) { # started by torchrun
  invisible(dist$init_process_group("gloo"))
  rank <- reticulate::py_to_r(dist$get_rank())
  count <- reticulate::py_to_r(dist$get_world_size())
  model <- torch$nn$parallel$DistributedDataParallel(model)
}
share <- lapply(data, function(all) all$narrow(0L, as.integer(rank * 16 / count), as.integer(16 / count)))
steps <- torch$optim$AdamW(layers$parameters(), lr = 0.05)
for (i in 1:10) {
  invisible(steps$zero_grad())
  loss(model(share$x), share$label, share$domain)$backward()
  invisible(steps$step())
}
if (rank == 0) {
  found <- torch$cat(lapply(reticulate::iterate(layers$parameters()), function(p) p$detach()$flatten()))
  cat(format(unlist(reticulate::py_to_r(found$tolist())), digits = 15, trim = TRUE), "\n")
}
if (count > 1) invisible(dist$destroy_process_group())
