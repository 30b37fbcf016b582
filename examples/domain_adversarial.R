# Domain-adversarial training (Ganin and Lempitsky, 2015) on two moons, on PyTorch and JAX with the same source.
#
#     Rscript examples/domain_adversarial.R [steps] [picture.png]
#
# A classifier is trained on one pair of moons and used on a pair rotated by 40 degrees, without labels from that pair.
# A second head guesses from the features which pair a point is from. `op_scaled_gradient(features, -rate)` reverses its
# gradient on the way to the features, so they learn to separate the moons but not the pairs.
# `domain_adversarial.py` is the same program in Python.

suppressPackageStartupMessages(library(gradops))

# Returns points on two interleaved half circles, rotated by `angle` degrees about the origin, and their labels.
moons <- function(n, angle) {
  t <- pi * runif(n)
  label <- rep(c(0, 1), length.out = n)
  points <- ifelse(label == 0, 1, -1) * cbind(cos(t) - 0.5, sin(t) - 0.25) + matrix(rnorm(2 * n, sd = 0.08), n)
  a <- angle * pi / 180
  list(x = points %*% rbind(c(cos(a), sin(a)), c(-sin(a), cos(a))), label = cbind(label))
}

layer <- function(inputs, outputs) {
  list(w = matrix(rnorm(inputs * outputs, sd = sqrt(2 / inputs)), inputs), b = numeric(outputs))
}

initial <- function(width = 32) {
  list(
    features = list(layer(2, width), layer(width, width)),
    label = list(layer(width, 1)),
    domain = list(layer(width, width), layer(width, 1))
  )
}

network <- function(layers, x) {
  for (i in seq_along(layers)) {
    x <- op_add(x %*% layers[[i]]$w, layers[[i]]$b) # row by row; R's `+` would go along columns
    if (i < length(layers)) x <- op_relu(x)
  }
  x
}

features <- function(p, x) tanh(network(p$features, x))

cross_entropy <- function(logits, truth) mean(op_softplus(logits) - truth * logits)

# Returns the loss of the label head on the source plus the loss of the domain head on both, with reversed gradient.
loss <- function(p, source, label, target, rate) {
  of_source <- features(p, source)
  of_target <- features(p, target)
  both <- op_scaled_gradient(op_concatenate(list(of_source, of_target), axis = 1), -rate)
  origin <- op_concatenate(list(op_zeros_like(label), op_ones_like(label)), axis = 1)
  cross_entropy(network(p$label, of_source), label) + cross_entropy(network(p$domain, both), origin)
}

# Applies `f` to each tensor in nested lists, with the corresponding tensors in the other lists.
each <- function(f, x, ...) {
  if (is.list(x)) Map(function(...) each(f, ...), x, ...) else f(x, ...)
}

# Returns the parameters and moments after a step of Adam (Kingma and Ba, 2015).
slope <- value_and_grad(loss)
adam <- jit(function(state, step, data, rate) {
  found <- slope(state$p, data$source, data$label, data$target, rate)
  m <- each(\(m, g) 0.9 * m + 0.1 * g, state$m, found$gradient)
  v <- each(\(v, g) 0.999 * v + 0.001 * g^2, state$v, found$gradient)
  size <- 0.01 * sqrt(1 - 0.999^step) / (1 - 0.9^step)
  list(p = each(\(p, m, v) p - size * m / (sqrt(v) + 1e-8), state$p, m, v), m = m, v = v)
})

accuracy <- function(p, moons) {
  logits <- as.array(network(p$label, features(p, op_convert_to_tensor(moons$x))))
  mean((logits > 0) == (moons$label == 1))
}

train <- function(source, target, start, adversarial, steps) {
  tensors <- function(x) each(op_convert_to_tensor, x)
  data <- tensors(list(source = source$x, label = source$label, target = target$x))
  zero <- each(\(x) 0 * x, start)
  state <- tensors(list(p = start, m = zero, v = zero))
  for (step in as.numeric(seq_len(steps))) { # doubles: a compiled function is traced anew for each integer
    rate <- 2 / (1 + exp(-10 * (step - 1) / steps)) - 1 # the domain head learns first, as in the paper
    state <- adam(state, step, data, if (adversarial) rate else 0)
  }
  state$p
}

# Draws the source in grey, the target in its true colours, and the network's decision boundary.
draw <- function(p, source, target, heading) {
  side <- seq(-2, 2, length.out = 100)
  grid <- op_convert_to_tensor(as.matrix(expand.grid(side, side)))
  logits <- as.array(network(p$label, features(p, grid)))
  image(side, side, matrix(logits > 0, 100), col = c("#dce6ff", "#ffe3da"), asp = 1, axes = FALSE, ann = FALSE)
  points(source$x, pch = 20, cex = 0.6, col = "grey70")
  points(target$x, pch = 20, cex = 0.8, col = ifelse(target$label == 1, "#b40426", "#3b4cc0"))
  title(heading, font.main = 1, cex.main = 1)
}

arguments <- commandArgs(TRUE)
steps <- if (length(arguments) > 0) as.integer(arguments[1]) else 600L
if (length(arguments) > 1) {
  png(arguments[2], width = 960, height = 280)
  par(mfrow = c(1, 4), mar = c(1, 1, 3, 1))
}

set.seed(7)
source <- moons(400, 0)
target <- moons(400, 40)
start <- initial()

cat(sprintf("%-10s %-18s %7s %7s\n", "library", "gradient reversal", "source", "target"))
for (backend in Filter(gradops_available, c("torch", "jax"))) {
  for (adversarial in c(FALSE, TRUE)) {
    p <- with_backend(backend, train(source, target, start, adversarial, steps))
    right <- 100 * with_backend(backend, c(accuracy(p, source), accuracy(p, target)))
    cat(sprintf("%-10s %-18s %6.1f%% %6.1f%%\n", backend, if (adversarial) "yes" else "no", right[1], right[2]))
    if (length(arguments) > 1) {
      reversal <- if (adversarial) "gradient reversal" else "no reversal"
      heading <- sprintf("%s, %s\ntarget accuracy %.1f%%", backend, reversal, right[2])
      with_backend(backend, draw(p, source, target, heading))
    }
  }
}
if (length(arguments) > 1) invisible(dev.off())
