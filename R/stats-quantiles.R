# Quantiles of gamma, beta, t and F distributions: Newton's method on the logarithm of the smaller tail, as a function
# of log(x) or of log(x / (1 - x)). There the densities are logarithmically concave, and so are both tails, so that it
# converges from anywhere. It starts where R's own function says; what is found is taken for a constant, and two more
# steps have derivatives: each doubles the order to which they are those of the implicit function, so they are right to
# the third.

newton_on_tail <- function(u, target, low, steps, log_tail, log_slope) {
  for (step in seq_len(steps)) {
    reached <- log_tail(u)
    change <- (reached - target) * exp(reached - log_slope(u))
    u <- u - ifelse(low, change, -change)
  }
  u
}

# R's own has five digits where its search ends early, and now and then fewer.
search_steps <- 3

# `of_r`, of R's numbers, as an op. (Before a program is compiled it sees other numbers, which are no probabilities.)
by_r <- function(name, of_r, ...) {
  state$quantiles[[name]] <- state$quantiles[[name]] %||%
    r_function(function(...) suppressWarnings(of_r(...)))
  state$quantiles[[name]](...)
}

at_tail <- function(quantile, target, low, ...) {
  below <- quantile(target, ..., lower.tail = TRUE, log.p = TRUE)
  base::ifelse(low, below, quantile(target, ..., lower.tail = FALSE, log.p = TRUE))
}

smallest_exponent <- -100 # below, the first term of the series of a lower tail is all of it

# `solve(target, low, ...)` of the logarithm of the smaller tail and whether that is the lower one, for probabilities
# inside of (0, 1) and parameters that are `valid`; the ends of the support elsewhere.
quantile_of <- function(p, parameters, lower.tail, log.p, ends, solve) {
  rlang::inject(elementwise(function(p, ...) {
    low_end <- holds(p == if (log.p) -Inf else 0)
    high_end <- holds(p == if (log.p) 0 else 1)
    inside <- holds(p < if (log.p) 0 else 1) & holds(p > if (log.p) -Inf else 0)
    for (parameter in list(...)) inside <- inside & holds(parameter > 0) & holds(parameter < Inf)
    tails <- log_tails(ifelse(inside, p, if (log.p) -1 else 0.25), log.p)
    if (!lower.tail) {
      tails <- list(below = tails$above, above = tails$below)
      ends <- rev(ends)
    }
    low <- holds(tails$below < tails$above)
    safe <- lapply(list(...), function(parameter) ifelse(inside, parameter, 1))
    value <- do.call(solve, c(list(ifelse(low, tails$below, tails$above), low, tails), safe), quote = TRUE)
    ifelse(inside, value, ifelse(low_end, ends[1], ifelse(high_end, ends[2], NaN)))
  }, p, !!!parameters))
}

# Gamma, by u = log(x) -------------------------------------------------------------------------------------------------

gamma_quantile <- function(p, a, lower.tail, log.p) {
  quantile_of(p, list(a), lower.tail, log.p, c(0, Inf), function(target, low, tails, a) {
    first <- (tails$below + lgamma(a + 1)) / a # of the series
    tiny <- holds(first < smallest_exponent)
    a <- ifelse(tiny, 1, a)
    target <- ifelse(tiny, -1, target)
    low <- low | tiny
    newton <- function(u, target, a, steps) {
      newton_on_tail(u, target, low, steps, function(u) {
        x <- exp(u)
        below <- holds(x <= a)
        of_tail(log_gamma_tail(x, a, below), same_truth(below, low), TRUE)
      }, function(u) a * u - exp(u) - lgamma(a))
    }
    start <- by_r("gamma", gamma_of_r, held(target), low, held(a))
    start <- newton(start, held(target), held(a), search_steps)
    exp(ifelse(tiny, first, newton(start, target, a, 2)))
  })
}

gamma_of_r <- function(target, low, a) {
  x <- at_tail(stats::qgamma, target, low, a)
  base::ifelse(is.finite(log(x)), log(x), log(a))
}

same_truth <- function(x, y) {
  x & y | !x & !y
}

# Beta, by u = log(x / (1 - x)) ----------------------------------------------------------------------------------------

# By the first term of the series of a lower tail.
first_log_odds <- function(target, a, one_over) {
  (target + log(a) - one_over) / a
}

# The logarithm of the odds at which the smaller tail is `target`.
beta_odds <- function(target, low, a, b) {
  first <- first_log_odds(target, ifelse(low, a, b), one_over_beta(a, b))
  tiny <- holds(first < smallest_exponent) & holds(ifelse(low, b, a) < 1e30)
  a1 <- ifelse(tiny, 1, a)
  b1 <- ifelse(tiny, 1, b)
  target <- ifelse(tiny, -1, target)
  newton <- function(u, target, a, b, steps) {
    newton_on_tail(u, target, low, steps, function(u) {
      x <- op_sigmoid(u)
      y <- op_sigmoid(-u)
      below <- holds(x * b <= a * y)
      tail <- log_beta_tail(
        ifelse(below, x, y), ifelse(below, a, b), ifelse(below, b, a), ifelse(below, y, x)
      )
      of_tail(tail, same_truth(below, low), TRUE)
    }, function(u) -a * op_softplus(-u) - b * op_softplus(u) + one_over_beta(a, b))
  }
  start <- by_r("beta", beta_of_r, held(target), low, held(a1), held(b1))
  start <- newton(start, held(target), held(a1), held(b1), search_steps)
  ifelse(tiny, ifelse(low, first, -first), newton(start, target, a1, b1, 2))
}

beta_of_r <- function(target, low, a, b) {
  x <- at_tail(stats::qbeta, target, low, a, b)
  y <- at_tail(stats::qbeta, target, !low, b, a)
  odds <- base::ifelse(x < 0.5, log(x) - log1p(-x), log1p(-y) - log(y))
  base::ifelse(is.finite(odds), odds, log(a) - log(b))
}

# Quantiles ------------------------------------------------------------------------------------------------------------

#' @rdname tensor_distributions
#' @export
qgamma <- function(p, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qgamma", among(p, shape, scale))
}

qgamma_tensor <- function(p, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) {
  gamma_quantile(p, shape, lower.tail, log.p) * scale
}

#' @rdname tensor_distributions
#' @export
qchisq <- function(p, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qchisq", among(p, df))
}

qchisq_tensor <- function(p, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  2 * gamma_quantile(p, df / 2, lower.tail, log.p)
}

#' @rdname tensor_distributions
#' @export
qbeta <- function(p, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qbeta", among(p, shape1, shape2))
}

qbeta_tensor <- function(p, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  quantile_of(p, list(shape1, shape2), lower.tail, log.p, c(0, 1), function(target, low, tails, a, b) {
    op_sigmoid(beta_odds(target, low, a, b))
  })
}

#' @rdname tensor_distributions
#' @export
qf <- function(p, df1, df2, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qf", among(p, df1, df2))
}

qf_tensor <- function(p, df1, df2, ncp, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  df <- list(finite_of(df1), finite_of(df2))
  quantile_of(p, df, lower.tail, log.p, c(0, Inf), function(target, low, tails, df1, df2) {
    df2 / df1 * exp(beta_odds(target, low, df1 / 2, df2 / 2))
  })
}

#' @rdname tensor_distributions
#' @export
qt <- function(p, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  UseMethod("qt", among(p, df))
}

# The start is the beta distribution's of df / (df + x^2), held: steps by x, in the middle too, carry the derivatives.
qt_tensor <- function(p, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  central(ncp)
  quantile_of(p, list(finite_of(df)), lower.tail, log.p, c(-Inf, Inf), function(target, low, tails, df) {
    both <- target + log(2)
    far <- holds(both < -log(2))
    middle <- holds(both > -1e-15)
    a <- held(df) / 2
    log_tail <- held(both)
    odds <- beta_odds(ifelse(far, log_tail, log_complement(ifelse(middle, -1e-15, log_tail))), far, a, 0 * a + 0.5)
    log_start <- ifelse(middle, -Inf, (log(2 * a) - held(odds)) / 2)
    huge <- holds(log_start > 230) # whose square is more than there are numbers
    sign <- ifelse(low, -1, 1)
    x <- exp(ifelse(huge, 0, log_start)) * sign
    for (step in 1:2) {
      reached <- t_probability(ifelse(low, x, -x), df, TRUE, TRUE)
      x <- x - (reached - target) * exp(reached - dt_tensor(x, df, log = TRUE)) * -sign
    }
    a <- ifelse(huge, df, 1) / 2
    first <- first_log_odds(ifelse(huge, both, -1), a, one_over_beta(a, 0 * a + 0.5))
    ifelse(huge, sign * exp((log(2 * a) - first) / 2), x)
  })
}
