# The incomplete gamma and beta functions, and the distribution functions that are made of them.
#
# The tail that does not hold the mode is x^a * exp(-x) / gamma(a), or its like, times an integral of exp(-e(s)) over
# s > 0, with e(0) = 0 and e rising: of t = x * exp(-s) below, of t = x + s above the mode. Its integrand has no peak,
# so the double exponential rule (Takahasi and Mori, 1974) with 76 nodes, on the scale where e is about 1, gives it to
# rounding. All is arithmetic of the arguments, so derivatives by each of them, of all orders, are those of the
# integral. Prefactors are Loader's (2000) for large parameters, whose terms cancel.

nodes_of <- function(from = -3.6, to = 3.9, step = 0.1) {
  u <- seq(from, to, by = step)
  s <- exp(u - exp(-u))
  list(s = s, weight = step * s * (1 + exp(-u)))
}
tail_nodes <- nodes_of()

# The logarithm of the integral; `exponent(s, ...)` of nodes and of parameters, which come as columns.
log_integral <- function(exponent, scale, ...) {
  column <- function(x) call_op("expand_dims", operand(x), -1L)
  s <- call_op("multiply", column(scale), tail_nodes$s)
  values <- call_op("exp", call_op("negative", exponent(s, lapply(list(...), column))))
  log(call_op("sum", call_op("multiply", values, tail_nodes$weight), -1L, FALSE)) + log(scale)
}

# Where `e` is 1, from the right by Newton's method; without derivatives, on which the integral does not hang.
scale_from <- function(start, e, slope) {
  for (step in 1:6) start <- start - (e(start) - 1) / slope(start)
  start
}

held <- function(x) {
  if (is_any_tensor(x)) op_stop_gradient(x) else x
}

# a * (u - log1p(u)), u = x / a - 1 = d / a: bd0(a, x) of Loader.
deviance_part <- function(a, x, d = x - a) {
  u <- d / a
  near <- holds(abs(u) < 0.1)
  small <- ifelse(near, u, 0)
  r <- small / (2 + small)
  w <- r^2
  series <- small * r - 2 * r * w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w / 11))))
  a * ifelse(near, series, u - log(ifelse(near, 1, x / a)))
}

# Elementwise functions of vectors of one length, in the form of the arguments.
elementwise <- function(f, ...) {
  arguments <- list(...)
  sizes <- base::vapply(arguments, length, 0)
  if (any(sizes == 0)) {
    return(numeric())
  }
  shapes <- lapply(arguments[sizes == max(sizes)], function(x) dim(x))
  shape <- Filter(Negate(is.null), shapes)
  flat_one <- function(x) {
    if (is_any_tensor(x)) {
      if (length(x) == max(sizes)) flat(x) else recycled(x, max(sizes))
    } else {
      rep_len(as.vector(x), max(sizes))
    }
  }
  value <- do.call(f, lapply(arguments, flat_one))
  if (length(shape) > 0 && length(shape[[1]]) != 1L) fill(value, shape[[1]]) else value
}

# A probability of the logarithm of a tail, which is the one asked for where `same`.
of_tail <- function(log_tail, same, log.p) {
  if (log.p) {
    ifelse(same, log_tail, log_complement(log_tail))
  } else {
    ifelse(same, exp(log_tail), -expm1(log_tail))
  }
}

# What is below or above the support: 0, or 1.
beyond <- function(value, low, high, lower.tail, log.p) {
  ends <- if (lower.tail) c(0, 1) else c(1, 0)
  if (log.p) ends <- log(ends)
  ifelse(low, ends[1], ifelse(high, ends[2], value))
}

# Gamma ----------------------------------------------------------------------------------------------------------------

gamma_probability <- function(x, a, lower.tail, log.p) {
  elementwise(function(x, a) {
    known <- holds(a > 0) & holds(x == x)
    low <- holds(x <= 0)
    high <- holds(x == Inf)
    a <- ifelse(known, a, 1)
    inner <- ifelse(known & !low & !high, x, a)
    below <- holds(inner <= a)
    value <- of_tail(log_gamma_tail(inner, a, below), if (lower.tail) below else !below, log.p)
    ifelse(known, beyond(value, low, high, lower.tail, log.p), NaN)
  }, x, a)
}

# The logarithm of the lower tail where `below`, else of the upper one.
log_gamma_tail <- function(x, a, below) {
  large <- holds(a >= 20)
  many <- ifelse(large, a, 20)
  few <- ifelse(large, 1, a)
  front <- ifelse(
    large,
    log(many / (2 * pi)) / 2 - stirling(many) - deviance_part(many, ifelse(large, x, 20)),
    few * log(ifelse(large, 1, x)) - x - lgamma(few)
  )
  above <- ifelse(below, 1, x)
  a_s <- ifelse(below, a, 1)
  x_s <- ifelse(below, x, 0)
  power <- ifelse(below, 0, a - 1)
  integral <- log_integral(
    function(s, of) {
      falling <- call_op("multiply", of[[2]], call_op("expm1", call_op("negative", s)))
      rising <- call_op("multiply", of[[3]], call_op("log1p", call_op("multiply", s, of[[4]])))
      call_op("subtract", call_op("add", call_op("multiply", of[[1]], s), falling), rising)
    },
    gamma_scale(held(x), held(a), held(below)), a_s, x_s, power, 1 / above
  )
  front - log(above) + integral
}

gamma_scale <- function(x, a, below) {
  lower <- scale_from(2 / sqrt(x) + 2 / a, function(s) a * s + x * expm1(-s), function(s) a - x * exp(-s))
  b <- ifelse(holds(a <= 1), 1, a)
  upper <- scale_from(
    4 + 2 * x / sqrt(b), function(s) s - (b - 1) * log1p(s / x), function(s) 1 - (b - 1) / (x + s)
  )
  ifelse(below, lower, upper)
}

# Beta -----------------------------------------------------------------------------------------------------------------

# `y` is 1 - x, with its digits.
beta_probability <- function(x, a, b, lower.tail, log.p, y = 1 - x) {
  elementwise(function(x, a, b, y) {
    known <- holds(a > 0) & holds(b > 0) & holds(x == x)
    low <- holds(x <= 0)
    high <- holds(y <= 0)
    a <- ifelse(known, a, 1)
    b <- ifelse(known, b, 1)
    inside <- known & !low & !high
    x <- ifelse(inside, x, 0.5)
    y <- ifelse(inside, y, 0.5)
    below <- holds(x * b <= a * y)
    tail <- log_beta_tail(
      ifelse(below, x, y), ifelse(below, a, b), ifelse(below, b, a), ifelse(below, y, x)
    )
    value <- of_tail(tail, if (lower.tail) below else !below, log.p)
    ifelse(known, beyond(value, low, high, lower.tail, log.p), NaN)
  }, x, a, b, y)
}

# The logarithm of the lower tail, x below the mean.
log_beta_tail <- function(x, a, b, y) {
  large <- holds(a >= 20) & holds(b >= 20)
  m <- ifelse(large, a, 20)
  n <- ifelse(large, b, 20)
  by_series <- log(m / (m + n) * n / (2 * pi)) / 2 + stirling(m + n) - stirling(m) - stirling(n) -
    deviance_part(m, (m + n) * ifelse(large, x, 0.5)) - deviance_part(n, (m + n) * ifelse(large, y, 0.5))
  by_gamma <- ifelse(large, 1, a) * log_of(x, y) + ifelse(large, 1, b) * log_of(y, x) +
    one_over_beta(ifelse(large, 1, a), ifelse(large, 1, b))
  ifelse(large, by_series, by_gamma) - log(y) + beta_integral(x, a, b, y)
}

log_of <- function(x, y) {
  near <- holds(x > 0.5)
  ifelse(near, log1p(-ifelse(near, y, 0)), log(ifelse(near, 1, x)))
}

# -lbeta(a, b), one of them below 20.
one_over_beta <- function(a, b) {
  first <- holds(a < b)
  small <- ifelse(first, a, b)
  other <- ifelse(first, b, a)
  log_rising(other, small) + small * log(other) - lgamma(small)
}

beta_integral <- function(x, a, b, y) {
  log_integral(
    function(s, of) {
      inner <- call_op("multiply", of[[3]], call_op("expm1", call_op("negative", s)))
      call_op("subtract", call_op("multiply", of[[1]], s), call_op("multiply", of[[2]], call_op("log1p", inner)))
    },
    beta_scale(held(x), held(a), held(b), held(y)), a, b - 1, -x / y
  )
}

beta_scale <- function(x, a, b, y) {
  curved <- holds(b > 1)
  b <- ifelse(curved, b, 2)
  w <- x / y
  slope <- function(s) a - (b - 1) * x * exp(-s) / (y - x * expm1(-s))
  start <- pmin(2 * y / sqrt((b - 1) * x) + 4 / a, (1 + (b - 1) * log1p(w)) / a) # either is beyond
  found <- scale_from(start, function(s) a * s - (b - 1) * log1p(-w * expm1(-s)), slope)
  ifelse(curved, found, 1 / a)
}

# Student's t: the tails of beta, the middle as an odd function of `q`.
t_probability <- function(q, df, lower.tail, log.p) {
  elementwise(function(q, df) {
    if (lower.tail) q <- -q # now the upper tail is asked for
    known <- holds(df > 0) & holds(q == q)
    infinite <- holds(abs(q) == Inf)
    df <- ifelse(known, ifelse(holds(df == Inf), 1e300, df), 1)
    inner <- ifelse(known & !infinite, q, 0)
    far <- holds(inner^2 > 1)
    half <- 0 * df + 0.5 # for each element
    z <- ifelse(far, inner, 1)
    tail <- log_beta_tail(df / (df + z^2), df / 2, half, z^2 / (df + z^2)) - log(2)
    near <- ifelse(far, 0, inner)
    y <- near^2 / (df + near^2)
    root <- near / sqrt(df + near^2)
    middle <- 0.5 - root / 2 * exp(
      (df / 2 - 1) * log1p(-y) + one_over_beta(half, df / 2) + beta_integral(y, half, df / 2, 1 - y)
    )
    value <- ifelse(far, of_tail(tail, holds(z > 0), log.p), if (log.p) log(middle) else middle)
    ifelse(known, beyond(value, infinite & holds(q < 0), infinite & holds(q > 0), FALSE, log.p), NaN)
  }, q, df)
}

# Distribution functions -----------------------------------------------------------------------------------------------

#' @rdname tensor_distributions
#' @export
pgamma <- function(q, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pgamma", among(q, shape, scale))
}

pgamma_tensor <- function(q, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) {
  gamma_probability(q / scale, shape, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
pchisq <- function(q, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pchisq", among(q, df))
}

pchisq_tensor <- function(q, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  gamma_probability(q / 2, df / 2, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
ppois <- function(q, lambda, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("ppois", among(q, lambda))
}

ppois_tensor <- function(q, lambda, lower.tail = TRUE, log.p = FALSE) {
  of_counts(q, Inf, lower.tail, log.p, function(k, lambda) {
    gamma_probability(lambda, k + 1, !lower.tail, log.p)
  }, lambda)
}

#' @rdname tensor_distributions
#' @export
pbeta <- function(q, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pbeta", among(q, shape1, shape2))
}

pbeta_tensor <- function(q, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  beta_probability(q, shape1, shape2, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
pt <- function(q, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pt", among(q, df))
}

pt_tensor <- function(q, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  t_probability(q, df, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
pf <- function(q, df1, df2, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pf", among(q, df1, df2))
}

pf_tensor <- function(q, df1, df2, ncp, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  elementwise(function(q, df1, df2) {
    high <- holds(q == Inf)
    odds <- df1 * ifelse(high, 1, q)
    x <- ifelse(high, 1, odds / (df2 + odds))
    beta_probability(x, df1 / 2, df2 / 2, lower.tail, log.p, ifelse(high, 0, df2 / (df2 + odds)))
  }, q, finite_of(df1), finite_of(df2))
}

# So many degrees of freedom that more make no difference, for infinitely many.
finite_of <- function(df) {
  ifelse(holds(df == Inf), 1e30, df)
}

#' @rdname tensor_distributions
#' @export
pbinom <- function(q, size, prob, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pbinom", among(q, size, prob))
}

pbinom_tensor <- function(q, size, prob, lower.tail = TRUE, log.p = FALSE) {
  of_counts(q, size, lower.tail, log.p, function(k, size, prob) {
    beta_probability(prob, k + 1, ifelse(holds(k < size), size - k, 1), !lower.tail, log.p)
  }, size, prob)
}

#' @rdname tensor_distributions
#' @export
pnbinom <- function(q, size, prob, mu, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("pnbinom", if (missing(mu)) among(q, size, prob) else among(q, size, mu))
}

pnbinom_tensor <- function(q, size, prob, mu, lower.tail = TRUE, log.p = FALSE) {
  if (!missing(mu) && !missing(prob)) {
    unsupported("prob", "and `mu` are both given.")
  }
  x <- if (missing(mu)) prob else size / (size + mu)
  y <- if (missing(mu)) 1 - prob else mu / (size + mu)
  of_counts(q, Inf, lower.tail, log.p, function(k, x, size, y) {
    beta_probability(x, size, k + 1, lower.tail, log.p, y)
  }, x, size, y)
}

# Of counts up to `most`: `probability(k, ...)` of a whole `k` in the support.
of_counts <- function(q, most, lower.tail, log.p, probability, ...) {
  elementwise(function(q, most, ...) {
    k <- floor(q + 1e-7)
    low <- holds(k < 0)
    high <- holds(k >= most) | holds(k == Inf)
    beyond(probability(ifelse(low | high, 0, k), ...), low, high, lower.tail, log.p)
  }, q, most, ...)
}
