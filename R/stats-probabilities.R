# Distribution functions and quantiles of tensors: see `stats-distributions.R`.

#' @rdname tensor_distributions
#' @export
pnorm <- function(q, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pnorm", among(q, mean, sd))
}

pnorm_tensor <- function(q, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  z <- (q - mean) / sd
  if (!lower.tail) z <- -z
  if (log.p) log_pnorm(z) else op_erfc(-within_reach(z) / sqrt(2)) / 2
}

# Where a normal probability is not yet 0 or 1: at infinity, where the last cutpoint of ordered categories is, second
# derivatives are 0, not Inf * 0. Single numbers are left alone, for loops over them.
within_reach <- function(z) {
  if (length(z) == 1L) z else op_clip(z, -40, 40)
}

# The logarithm, by a form for each stretch that loses no digits there, each computed within its own stretch only. Far
# below, the asymptotic series of Mills' ratio.
log_pnorm <- function(z) {
  low <- z < -10
  high <- z > 0
  far <- ifelse(low, z, -10)
  series <- 1
  for (k in 12:1) series <- 1 - series * (2 * k - 1) / far^2
  below <- dnorm_tensor(far, log = TRUE) - log(-far) + log(series)
  above <- log1p(-op_erfc(within_reach(ifelse(high, z, 0)) / sqrt(2)) / 2)
  between <- log(op_erfc(-ifelse(low | high, 0, z) / sqrt(2)) / 2)
  ifelse(low, below, ifelse(high, above, between))
}

#' @rdname tensor_distributions
#' @export
plogis <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("plogis", among(q, location, scale))
}

plogis_tensor <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  z <- (q - location) / scale
  if (!lower.tail) z <- -z
  keep_names(if (log.p) -op_softplus(-z) else op_sigmoid(z), z)
}

#' @rdname tensor_distributions
#' @export
pexp <- function(q, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pexp", among(q, rate))
}

pexp_tensor <- function(q, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  before_ever(function(q) by_hazard(rate * ifelse(holds(q < 0), 0, q), lower.tail, log.p), q, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
pweibull <- function(q, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pweibull", among(q, shape, scale))
}

pweibull_tensor <- function(q, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  before_ever(function(q) {
    below <- holds(q <= 0)
    hazard <- (ifelse(below, 1, q) / scale)^shape
    by_hazard(hazard * ifelse(below, 0, 1), lower.tail, log.p)
  }, q, lower.tail, log.p)
}

# A distribution function of times; at Inf, where an interval that is open ends, without derivatives. Single tensors
# are left alone, for loops over them.
before_ever <- function(probability, q, lower.tail, log.p) {
  known <- !is_any_tensor(q)
  if (if (known) !any(q == Inf, na.rm = TRUE) else length(q) == 1L) {
    return(probability(q))
  }
  ever <- holds(q == Inf)
  value <- probability(ifelse(ever, 1, q))
  if (known) ever <- rep_len(ever, length(value))
  if (length(ever) == length(value)) beyond(value, FALSE & ever, ever, lower.tail, log.p) else probability(q)
}

# Of the cumulative hazard.
by_hazard <- function(hazard, lower.tail, log.p) {
  if (!lower.tail) {
    if (log.p) -hazard else exp(-hazard)
  } else if (log.p) {
    log_complement(-hazard)
  } else {
    -expm1(-hazard)
  }
}

#' @rdname tensor_distributions
#' @export
plnorm <- function(q, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("plnorm", among(q, meanlog, sdlog))
}

plnorm_tensor <- function(q, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  inside <- holds(q > 0)
  as_probability(pnorm_tensor(log(ifelse(inside, q, 1)), meanlog, sdlog, lower.tail, TRUE), inside, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
pgeom <- function(q, prob, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pgeom", among(q, prob))
}

pgeom_tensor <- function(q, prob, lower.tail = TRUE, log.p = FALSE) {
  by_hazard(-ifelse(holds(q < 0), 0, floor(q + 1e-7) + 1) * log1p(-prob), lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
punif <- function(q, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("punif", among(q, min, max))
}

punif_tensor <- function(q, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  below <- holds(q - min < 0)
  above <- holds(max - q < 0)
  inner <- ifelse(below | above, (min + max) / 2, q)
  part <- if (lower.tail) (inner - min) / (max - min) else (max - inner) / (max - min)
  beyond(if (log.p) log(part) else part, below, above, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
pcauchy <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pcauchy", among(q, location, scale))
}

pcauchy_tensor <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  z <- (q - location) / scale
  if (lower.tail) z <- -z
  far <- holds(abs(z) > 1) # there with the digits of the tail
  above <- ifelse(far, atan(1 / ifelse(far, z, 1)) / pi + holds(z < -1), 0.5 - atan(ifelse(far, 0, z)) / pi)
  if (!log.p) {
    above
  } else {
    most <- holds(z < -1)
    ifelse(most, log1p(atan(1 / ifelse(most, z, -2)) / pi), log(ifelse(most, 0.5, above)))
  }
}

# log(1 - exp(x)) of x below 0, by the form that loses no digits there.
log_complement <- function(x) {
  far <- x < -log(2)
  ifelse(far, log1p(-exp(ifelse(far, x, -1))), log(-expm1(ifelse(far, -1, x))))
}

# A probability of its logarithm where `inside` the support; below, it is 0, or 1 of what is above.
as_probability <- function(log_probability, inside, lower.tail, log.p) {
  log_probability <- ifelse(inside, log_probability, if (lower.tail) -Inf else 0)
  if (log.p) log_probability else exp(log_probability)
}

# Quantiles ------------------------------------------------------------------------------------------------------------

#' @rdname tensor_distributions
#' @export
qnorm <- function(p, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qnorm", among(p, mean, sd))
}

qnorm_tensor <- function(p, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  tails <- log_tails(p, log.p)
  low <- holds(tails$below < tails$above)
  z <- normal_quantile(ifelse(low, tails$below, tails$above)) * ifelse(low, 1, -1)
  mean + sd * if (lower.tail) z else -z
}

# Where the logarithm of the normal distribution function is `log_p`, at most log(1 / 2): by Newton's method, whose
# steps all derivatives skip, as they follow from the function's own.
normal_quantile <- function(log_p) {
  forward <- op_custom_gradient(function(log_p) {
    inside <- holds(log_p > -Inf)
    t <- ifelse(inside, log_p, -1)
    far <- holds(t < -5)
    tail <- -2 * ifelse(far, t, -5)
    z <- ifelse(far, -sqrt(tail - log(2 * pi * tail)), op_erfinv(2 * exp(ifelse(far, -5, t)) - 1) * sqrt(2))
    for (step in 1:4) {
      reached <- log_pnorm(z)
      z <- z - (reached - t) * exp(reached - dnorm_tensor(z, log = TRUE))
    }
    z <- ifelse(inside, z, ifelse(holds(log_p == -Inf), -Inf, NaN))
    list(z, function(upstream) {
      upstream * exp(log_p - dnorm_tensor(normal_quantile(log_p), log = TRUE))
    })
  })
  forward(log_p)
}

#' @rdname tensor_distributions
#' @export
qlnorm <- function(p, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qlnorm", among(p, meanlog, sdlog))
}

qlnorm_tensor <- function(p, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  exp(qnorm_tensor(p, meanlog, sdlog, lower.tail, log.p))
}

#' @rdname tensor_distributions
#' @export
qlogis <- function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qlogis", among(p, location, scale))
}

qlogis_tensor <- function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  tails <- log_tails(p, log.p)
  odds <- tails$below - tails$above
  location + scale * if (lower.tail) odds else -odds
}

#' @rdname tensor_distributions
#' @export
qexp <- function(p, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qexp", among(p, rate))
}

qexp_tensor <- function(p, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  hazard_at(p, lower.tail, log.p) / rate
}

#' @rdname tensor_distributions
#' @export
qweibull <- function(p, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qweibull", among(p, shape, scale))
}

qweibull_tensor <- function(p, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  scale * hazard_at(p, lower.tail, log.p)^(1 / shape)
}

#' @rdname tensor_distributions
#' @export
qunif <- function(p, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qunif", among(p, min, max))
}

qunif_tensor <- function(p, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  part <- plain_probability(p, log.p)
  if (lower.tail) min + part * (max - min) else max - part * (max - min)
}

#' @rdname tensor_distributions
#' @export
qcauchy <- function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qcauchy", among(p, location, scale))
}

qcauchy_tensor <- function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  part <- plain_probability(p, log.p)
  z <- -1 / tan(pi * ifelse(holds(part > 0.5), part - 1, part))
  location + scale * if (lower.tail) z else -z
}

# The cumulative hazard at which the probability is `p`.
hazard_at <- function(p, lower.tail, log.p) {
  tails <- log_tails(p, log.p)
  -if (lower.tail) tails$above else tails$below
}

# The logarithms of a probability and of what it leaves.
log_tails <- function(p, log.p) {
  if (log.p) list(below = p, above = log_complement(p)) else list(below = log(p), above = log1p(-p))
}

# A probability, NaN where it is none.
plain_probability <- function(p, log.p) {
  if (log.p) p <- exp(p)
  ifelse(holds(p < 0) | holds(p > 1), NaN, p)
}
