#' Random tensors
#'
#' Random tensors with keras3's names and arguments, drawn by the generator of the default backend, or of the backend of
#' `inputs`, `logits` or `x`. An R integer as `seed` gives the same numbers at each call, a `random_seed_generator()`
#' new ones each time. Without a seed, R's generator draws one, so [set.seed()] makes the numbers repeatable.
#'
#' In a compiled function a seed is required, as numbers drawn without one would be the same at each call. A seed gives
#' the same numbers in compiled code as elsewhere. Backends differ in their numbers.
#' @param shape Sizes.
#' @param mean,stddev,minval,maxval Numbers or tensors. `maxval` itself is not drawn.
#' @param dtype A dtype; `NULL` means `config_floatx()`.
#' @param seed `NULL`, an R integer, or a `random_seed_generator()`.
#' @param alpha,beta Shape parameters of the gamma and the beta distribution, above 0; numbers or tensors that broadcast
#'   to `shape`.
#' @param counts,probabilities The number of trials and the probability of success; numbers or tensors, as `alpha`.
#' @param logits A matrix: the logarithms of each row's probabilities, up to a constant.
#' @param num_samples The number of samples for each row.
#' @param zero_indexed If `TRUE`, classes count from 0 rather than from 1.
#' @param inputs,x A tensor or R numbers.
#' @param rate The share of elements that become 0; the others are divided by `1 - rate`.
#' @param noise_shape The shape of the dropout mask: 1 in dimensions along which elements are dropped together. `NULL`
#'   means the shape of `inputs`.
#' @param axis The dimension along which to shuffle, from 1.
#' @param name,... Ignored.
#' @returns A tensor: normal numbers, normal numbers within two standard deviations (`random_truncated_normal()`),
#'   uniform numbers, uniform integers, numbers from the gamma (with scale 1), beta or binomial distribution, classes,
#'   `inputs` with elements set to 0, or `x` in another order. `random_seed_generator()`: an environment.
#' @section Gradient:
#' With respect to `mean`, `stddev`, `minval`, `maxval` by reparametrisation, and to the elements of `inputs` and `x`
#' that are kept. `logits` have no gradient. `alpha`, `beta`, `counts` and `probabilities` have none either;
#' differentiating with respect to them is an error.
#' @section Errors:
#' - `gradops_error_argument`: an invalid `seed`, a `rate` outside of 0 to 1, sizes that are not integers, parameters
#'   that are neither numbers nor tensors.
#' - `gradops_error_gradient`: differentiating with respect to a parameter without gradient.
#' - `gradops_error_jit`: no seed in a compiled function.
#' @seealso [op_stop_gradient()].
#' @examplesIf gradops_available()
#' random_normal(c(2, 3), seed = 1)
#' random_dropout(c(1, 2, 3, 4), 0.5, seed = 1)
#'
#' # a gradient through random numbers: the same numbers for each mean
#' noise <- random_normal(100, seed = 1)
#' gradient(function(mean) op_mean((mean + noise)^2), 1)
#' @name random_tensors
NULL

#' @rdname random_tensors
#' @export
random_normal <- function(shape, mean = 0, stddev = 1, dtype = NULL, seed = NULL) {
  check_parameters(mean = mean, stddev = stddev)
  mean + stddev * draw("random_normal", like_dtype(dtype), shape, seed)
}

#' @rdname random_tensors
#' @export
random_uniform <- function(shape, minval = 0, maxval = 1, dtype = NULL, seed = NULL) {
  if (is.character(dtype) && any(grepl("int", dtype))) {
    return(random_integer(shape, minval, maxval, dtype, seed))
  }
  between(minval, maxval, draw("random_uniform", like_dtype(dtype), shape, seed))
}

#' @rdname random_tensors
#' @export
random_integer <- function(shape, minval, maxval, dtype = "int32", seed = NULL) {
  op_cast(op_floor(between(minval, maxval, draw("random_uniform", like_dtype("float64"), shape, seed))), dtype)
}

# Truncated normal numbers by the quantiles of the truncated distribution.
#' @rdname random_tensors
#' @export
random_truncated_normal <- function(shape, mean = 0, stddev = 1, dtype = NULL, seed = NULL) {
  inside <- 2 * stats::pnorm(2) - 1
  u <- draw("random_uniform", like_dtype(dtype), shape, seed)
  check_parameters(mean = mean, stddev = stddev)
  mean + stddev * sqrt(2) * op_erfinv(inside * (2 * u - 1))
}

#' @rdname random_tensors
#' @export
random_gamma <- function(shape, alpha, dtype = NULL, seed = NULL) {
  draw("random_gamma", like_dtype(dtype, first_tensor(alpha)), shape, seed, list(alpha = alpha))
}

# A beta variable from two gamma variables.
#' @rdname random_tensors
#' @export
random_beta <- function(shape, alpha, beta, dtype = NULL, seed = NULL) {
  seed <- seed_number(seed)
  x <- random_gamma(shape, alpha, dtype, seed)
  x / (x + random_gamma(shape, beta, dtype, next_seed(seed, 1L)))
}

#' @rdname random_tensors
#' @export
random_binomial <- function(shape, counts, probabilities, dtype = NULL, seed = NULL) {
  like <- like_dtype(dtype, first_tensor(counts, probabilities))
  draw("random_binomial", like, shape, seed, list(counts = counts, probabilities = probabilities))
}

# The position of the largest logit after adding Gumbel noise (Gumbel 1954).
#' @rdname random_tensors
#' @export
random_categorical <- function(logits, num_samples, dtype = "int32", seed = NULL, zero_indexed = FALSE) {
  logits <- op_stop_gradient(op_convert_to_tensor(logits))
  u <- draw("random_uniform", logits, c(nrow(logits), num_samples, ncol(logits)), seed)
  noise <- -op_log(-op_log(op_maximum(u, 1e-30)))
  op_cast(op_argmax(op_add(op_expand_dims(logits, 2L), noise), 3L, zero_indexed = zero_indexed), dtype)
}

#' @rdname random_tensors
#' @export
random_dropout <- function(inputs, rate, noise_shape = NULL, seed = NULL) {
  check_number(rate)
  if (rate < 0 || rate >= 1) {
    unsupported("rate", "must be a number from 0 up to 1.")
  }
  inputs <- op_convert_to_tensor(inputs)
  shape <- dim(inputs)
  if (!is.null(noise_shape)) {
    given <- vapply(as.list(noise_shape), function(size) if (is.null(size)) NA_real_ else as.double(size), 0)
    shape <- ifelse(is.na(given), shape, given)
  }
  stays <- op_greater_equal(draw("random_uniform", inputs, shape, seed), rate)
  op_where(stays, inputs / (1 - rate), 0)
}

#' @rdname random_tensors
#' @export
random_shuffle <- function(x, axis = 1L, seed = NULL) {
  x <- op_convert_to_tensor(x)
  check_number(axis)
  sizes <- dim(x)
  place <- if (axis < 0) length(sizes) + axis + 1 else axis
  if (!place %in% seq_along(sizes)) {
    abort(
      sprintf("`axis` must be one of the %d of `x`; got %s.", length(sizes), format(axis)),
      class = c("gradops_error_axis", "gradops_error"), argument = "axis"
    )
  }
  order <- op_argsort(draw("random_uniform", like_dtype("float64", x), sizes[place], seed))
  op_take(x, order, as.integer(place))
}

#' @rdname random_tensors
#' @export
random_seed_generator <- function(seed = NULL, name = NULL, ...) {
  generator <- new.env()
  generator$seed <- seed_number(seed)
  generator$count <- 0L
  structure(generator, class = "gradops_seed_generator")
}

stopped <- "Use `op_stop_gradient()` of it if no gradient is wanted."

between <- function(minval, maxval, u, call = parent.frame()) {
  check_parameters(minval = minval, maxval = maxval, call = call)
  arrays <- is.array(minval) && is.array(maxval) && !is_any_tensor(minval) && !is_any_tensor(maxval)
  if (arrays && !identical(dim(minval), dim(maxval))) { # R's arrays do not broadcast
    minval <- op_convert_to_tensor(minval, op_dtype(u))
  }
  minval + (maxval - minval) * u
}

check_parameters <- function(..., call = parent.frame()) {
  given <- list(...)
  for (name in names(given)) {
    if (!is_any_tensor(given[[name]]) && !is.numeric(given[[name]])) {
      unsupported(name, sprintf("must be numbers or a tensor; got %s.", friendly(given[[name]])), call = call)
    }
  }
}

sizes_of <- function(shape, call) {
  if (is_any_tensor(shape)) shape <- as.vector(shape)
  sizes <- if (is.list(shape) && all(lengths(shape) == 1L)) unlist(shape) else shape
  if (length(sizes) == 0L) {
    return(list())
  }
  if (!is.numeric(sizes) || anyNA(sizes) || any(sizes < 0 | sizes != round(sizes))) {
    unsupported("shape", sprintf("must be integers from 0 on; got %s.", friendly(shape)), call = call)
  }
  as.list(as.integer(sizes))
}

draw <- function(op, like, shape, seed, parameters = list(), call = parent.frame()) {
  do.call(check_parameters, c(parameters, list(call = call)))
  for (name in names(parameters)) {
    if (is_any_tensor(parameters[[name]]) && is_recorded(parameters[[name]])) {
      abort(
        c(sprintf("`%s` is differentiated, but the numbers drawn have no gradient by it.", name), i = stopped),
        class = c("gradops_error_gradient", "gradops_error"), argument = name, call = call
      )
    }
  }
  parameters <- lapply(unname(parameters), operand)
  do.call(call_op, c(list(op, like), parameters, list(sizes_of(shape, call), seed_number(seed, call))))
}

# The first tensor, whose library draws; NULL means the default backend.
first_tensor <- function(...) {
  Find(is_any_tensor, list(...))
}

next_seed <- function(seed, count) {
  py_to_r(call_core("ops.random.next_seed", seed, count))
}

# A tensor of that dtype, on the backend of `x`.
like_dtype <- function(dtype, x = NULL) {
  dtype <- dtype %||% config_floatx()
  if (is.null(x)) op_zeros(integer(), dtype) else op_cast(op_stop_gradient(op_sum(x)), dtype)
}

seed_number <- function(seed, call = parent.frame()) {
  if (is.null(seed)) {
    return(sample.int(.Machine$integer.max, 1L)) # uses R's generator, which jit() watches
  }
  if (inherits(seed, "gradops_seed_generator")) {
    if (compiling() > 0) {
      abort(
        c("A compiled function drew from a generator: the numbers would be the same at each call.", i = "Give a seed."),
        class = c("gradops_error_jit", "gradops_error"), call = call
      )
    }
    seed$count <- seed$count + 1L
    return(next_seed(seed$seed, seed$count))
  }
  number <- !is_any_tensor(seed) && is.numeric(seed) && length(seed) == 1L && !is.na(seed)
  if (!number || seed != round(seed) || seed < 0) {
    what <- sprintf("must be an integer or a `random_seed_generator()`; got %s.", friendly(seed))
    unsupported("seed", what, call = call)
  }
  as.integer(seed)
}

# The state of R's random number generator. A checkpointed function restores it before it runs again, and a change of it
# shows that a compiled function draws random numbers.

# NULL if nothing has been drawn in this session yet.
random_state <- function() {
  globalenv()[[".Random.seed"]]
}

# The state to restore later; starts the generator if it has no state yet.
random_state_to_restore <- function() {
  if (is.null(random_state())) set.seed(NULL)
  random_state()
}

set_random_state <- function(state) {
  assign(".Random.seed", as.integer(state), globalenv())
  RNGkind() # makes R read the state: at the end of the call reticulate writes back what R read last
  NULL
}

# Make the core restore the state when it runs a checkpointed function again.
restore_random_numbers <- function() {
  if (is.null(state$restores_random_numbers)) {
    generators <- reticulate::import("gradops.flow.checkpointing", convert = FALSE)$generators
    restore <- callback(set_random_state, take = py_to_r)
    py_call(generators$append, tuple(callback(random_state_to_restore, identity), restore))
    state$restores_random_numbers <- TRUE
  }
}
