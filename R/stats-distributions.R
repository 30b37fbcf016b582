#' Densities, distribution functions and quantiles of tensors
#'
#' Densities, probabilities and quantiles of stats, with its names of arguments, on tensors and variables: any of the
#' arguments but the logical ones may be a tensor, and the result can be differentiated by each. They are computed on
#' the logarithmic scale, so `log = TRUE` neither overflows nor loses digits. For ordinary R vectors the function of
#' stats is called.
#' @param x,q,p Where: a tensor or numbers. Values out of the support have density 0, missing ones a missing one.
#' @param mean,sd,meanlog,sdlog,location,shape,scale,rate,shape1,shape2,size,prob,mu,lambda,df,df1,df2,min,max,m,n,k The
#'   parameters, as in stats; tensors or numbers, recycled as by R's operators. Parameters out of their range give NaN.
#' @param ncp For R's values alone: tensors have no noncentral distributions.
#' @param log,log.p If `TRUE`, densities and probabilities are logarithms: those returned, and of quantiles those given.
#' @param lower.tail If `TRUE`, probabilities are those of values up to `q`, otherwise of values above it.
#' @returns A tensor of the recycled shape.
#' @section Gradient:
#' By `x` and every parameter, to all orders; of log densities finite within the support. By `x` of a discrete
#' distribution that of its formula with gamma functions. It keeps its digits where `size` of `dnbinom(mu = )` or `df`
#' of `dt()` grow without bound, as in a fit of data with little dispersion. At the point masses `sd = 0` and
#' `dgamma(shape = 0)` values are NaN.
#'
#' `pgamma()`, `pbeta()`, `pt()` and what is made of them (`pchisq()`, `pf()`, `ppois()`, `pbinom()`, `pnbinom()`) are
#' the smaller tail as an integral by the double exponential rule: R's values to twelve digits, far in the tails too,
#' and derivatives by `q` and by every parameter, shapes and degrees of freedom included. Each value is 76 terms.
#'
#' `qgamma()`, `qbeta()` and what is made of them (`qchisq()`, `qt()`, `qf()`) invert these by Newton's method on the
#' logarithm of the smaller tail, from R's own value on (for which compiled functions call R), with derivatives by all
#' arguments to third order, also of shapes. Each value costs five of the probability. Of shapes, and `df` of
#' `qchisq()`, that are 0 or infinite they are NaN, and where `df1` and `df2` of `qf()` both are infinite.
#' @references Takahasi and Mori (1974), Double exponential formulas for numerical integration. Loader (2000), Fast and
#'   accurate computation of binomial probabilities.
#' @section Errors:
#' - `gradops_error_argument`: a noncentrality parameter.
#' - `gradops_error_shape`: shapes that do not fit.
#' @seealso [objective()], [hessian()], [tensor_special].
#' @examplesIf gradops_available()
#' # a log-likelihood, the score and the information at the estimate
#' y <- c(0.3, 1.2, 2.1, 0.7)
#' loglik <- function(p) sum(dnorm(y, p[1], exp(p[2]), log = TRUE))
#' gradient(loglik, c(1, 0))
#' estimate <- c(mean(y), log(sqrt(mean((y - mean(y))^2))))
#' sqrt(diag(solve(-hessian(loglik, estimate)))) # standard errors
#' @name tensor_distributions
NULL

# A density of its logarithm; where `outside`, it is 0, and `log_density` is of `inner`, a point in the support.
density_of <- function(log_density, x, log, outside = FALSE, inner = 0.5) {
  outside <- holds(outside)
  if (!is_tensor(outside) && !any(outside)) outside <- NULL
  missing <- if (!is_any_tensor(x) && anyNA(x)) is.na(x)
  if (!is.null(missing)) { # whose derivatives are 0, as they may be left out later: `sum(dnorm(...), na.rm = TRUE)`
    value <- density_of(log_density, ifelse(missing, inner, x), log, if (is.null(outside)) FALSE else outside, inner)
    return(value + base::ifelse(missing, NaN, 0))
  }
  if (is.null(outside)) {
    value <- log_density(x)
    return(if (log) value else exp(value))
  }
  value <- log_density(ifelse(outside, inner, x))
  if (!log) value <- exp(value)
  ending_at(value, outside, if (log) -Inf else 0)
}

# `value`, `end` where `outside`. That has derivative 0 whatever becomes of it, as in `exp(sum(log(dbinom(2, 1, p))))`.
ending_at <- function(value, outside, end) {
  size <- length(value)
  if (size > 1L && is_any_tensor(value)) {
    if (length(outside) != size) outside <- recycled(outside, size)
    if (!identical(dim(outside), dim(value))) outside <- fill(outside, dim(value))
    keep_names(op_where(outside, end, value), value)
  } else if (end == 0) {
    value * ifelse(outside, 0, 1)
  } else {
    value + ifelse(outside, end, 0)
  }
}

# A comparison that, as in tensors of booleans, is false of what is missing.
holds <- function(test) {
  if (is_tensor(test)) test else test & !is.na(test)
}

# a * log(x), 0 where both are 0. Of a number of R's without comparisons, so that in a compiled loop it can be logged.
times_log <- function(a, x) {
  none <- holds(a == 0)
  if (!is_tensor(none) && !any(none)) {
    a * log(x)
  } else if (!is_tensor(none) && length(none) == 1L) {
    a * log(x + (1 - abs(sign(x))))
  } else {
    a * log(x + (holds(x == 0) & none))
  }
}

# a * log1p(-x), 0 where both are 0 and 1.
times_log1m <- function(a, x) {
  none <- holds(a == 0)
  if (!is_tensor(none) && !any(none)) {
    a * log1p(-x)
  } else {
    a * log1p(ifelse(holds(x == 1) & none, 0, -x))
  }
}

# What no count is; what is missing may be one.
not_whole <- function(x) {
  holds(x < 0) | holds(x == Inf) | holds(abs(x - round(x)) > 0)
}

# a * log1p(q / a), which nears q as `a` grows: there with the remainder as a term of its own, by the series of atanh in
# r = u / (2 + u), u = q / a, so that neither it nor its derivative by `a` is a difference of large numbers.
scaled_log1p <- function(a, q) {
  u <- q / a
  near <- holds(abs(u) < 0.1)
  small <- ifelse(near, u, 0)
  r <- small / (2 + small)
  w <- r^2
  series <- 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w / 11)))
  ifelse(near, q * (1 - r + 2 * w / (2 + small) * series), ifelse(near, 1, a) * log1p(q / ifelse(near, 1, a)))
}

# lgamma(a + x) - lgamma(a) - x * log(a + mu): of a large `a` by Stirling's series, where the terms that grow with `a`
# are taken off each other by hand.
log_rising <- function(a, x, mu = 0) {
  large <- holds(a >= 20)
  low <- ifelse(large, 1, a)
  high <- ifelse(large, a, 20)
  by_gamma <- lgamma(low + x) - lgamma(low) - x * log(low + mu)
  by_series <- scaled_log1p(high, x) - x - log1p(x / high) / 2 + x * log1p((x - mu) / (high + mu)) +
    stirling(high + x) - stirling(high)
  ifelse(holds(a + 0 * (x + mu) >= 20), by_series, by_gamma)
}

# `big(of)` where `size` is at least `least`, else `small(of)`, of arguments `of(x, instead)`, and `rest` an argument
# more. Of sizes that are known (a program of NumPy's is for them alone) and all of one kind, without a choice: what is
# not needed is not computed. `from`: what the size is computed of. Where that is single numbers that are logged, in a
# loop of a compiled function, a look at each would cost more than all else: it is `small()`, with the digits that
# differences have.
by_size <- function(size, least, rest, from, big, small) {
  as_it_is <- function(x, instead) x
  if (are_logged(from)) {
    return(small(as_it_is))
  }
  large <- holds(size >= least)
  several <- length(large) > 1L
  some <- is_so(if (several) any(large) else large)
  if (base::isFALSE(some)) {
    return(small(as_it_is))
  }
  if (base::isTRUE(if (several) is_so(all(large)) else some)) {
    return(big(as_it_is))
  }
  large <- holds(size + 0 * rest >= least)
  ifelse(
    large, big(function(x, instead) ifelse(large, x, instead)), small(function(x, instead) ifelse(large, instead, x))
  )
}

are_logged <- function(numbers) {
  !is.null(state$scalars) && any(vapply(numbers, is_any_tensor, NA)) && all(lengths(numbers) == 1L)
}

# NULL where it is not known.
is_so <- function(test) {
  if (is_tensor(test)) known_values(test) %||% looked_at(test, "if") else test
}

# Where counts and shapes are large, densities are small differences of large terms, unless these are taken off each
# other by hand: Loader's forms, by the deviance and what is left of Stirling's formula.
log_poisson <- function(k, mean) {
  by_size(k, 100, mean, list(k), function(of) {
    k <- of(k, 100)
    -log(2 * pi * k) / 2 - stirling(k) - deviance_part(k, of(mean, 100))
  }, function(of) {
    k <- of(k, 1)
    mean <- of(mean, 1)
    times_log(k, mean) - mean - lgamma(k + 1)
  })
}

# The size of k and m beside each other, for which log_binomial() is, from 20 on.
binomial_size <- function(k, m) pmin(k, m, (k + m) / 25)

# log(choose(k + m, k) * p^k * q^m), q = 1 - p, d = m * p - k * q, of large k and m.
log_binomial <- function(k, m, p, q, d) {
  n <- k + m
  log(n / (2 * pi * k) / m) / 2 + stirling(n) - stirling(k) - stirling(m) - deviance_part(k, n * p, d) -
    deviance_part(m, n * q, -d)
}

# The same of any.
log_binomial_of <- function(k, m, p, q) {
  by_size(
    binomial_size(k, m), 20, p + q, list(k, m),
    function(of) log_binomial(of(k, 250), of(m, 250), of(p, 0.5), of(q, 0.5), of(m * p - k * q, 0)),
    function(of) {
      k <- of(k, 1)
      m <- of(m, 1)
      p <- of(p, 0.5)
      log_choose(k + m, k) + times_log(k, p) + times_log1m(m, p)
    }
  )
}

# lgamma(a) - (a - 1 / 2) * log(a) + a - log(2 * pi) / 2, for a >= 20.
stirling <- function(a) {
  w <- 1 / a^2
  (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / a
}

central <- function(ncp, call = parent.frame()) {
  if (!missing(ncp) && !identical(as.numeric(ncp), 0)) {
    unsupported("ncp", "is not for tensors.", call = call)
  }
}

#' @rdname tensor_distributions
#' @export
dnorm <- function(x, mean = 0, sd = 1, log = FALSE) {
  UseMethod("dnorm", among(x, mean, sd))
}

dnorm_tensor <- function(x, mean = 0, sd = 1, log = FALSE) {
  density_of(function(x) -((x - mean) / sd)^2 / 2 - log(sd) - log(2 * pi) / 2, x, log)
}

#' @rdname tensor_distributions
#' @export
dlnorm <- function(x, meanlog = 0, sdlog = 1, log = FALSE) {
  UseMethod("dlnorm", among(x, meanlog, sdlog))
}

dlnorm_tensor <- function(x, meanlog = 0, sdlog = 1, log = FALSE) {
  density_of(function(x) dnorm_tensor(log(x), meanlog, sdlog, TRUE) - log(x), x, log, x <= 0)
}

#' @rdname tensor_distributions
#' @export
dexp <- function(x, rate = 1, log = FALSE) {
  UseMethod("dexp", among(x, rate))
}

dexp_tensor <- function(x, rate = 1, log = FALSE) {
  density_of(function(x) log(rate) - rate * x, x, log, x < 0)
}

#' @rdname tensor_distributions
#' @export
dgamma <- function(x, shape, rate = 1, scale = 1 / rate, log = FALSE) {
  UseMethod("dgamma", among(x, shape, scale))
}

dgamma_tensor <- function(x, shape, rate = 1, scale = 1 / rate, log = FALSE) {
  density_of(
    function(x) {
      by_size(shape, 101, x / scale, list(shape), function(of) {
        log_poisson(of(shape, 101) - 1, of(x / scale, 100)) - log(of(scale, 1))
      }, function(of) {
        shape <- of(shape, 1)
        scale <- of(scale, 1)
        times_log(shape - 1, of(x, 1)) - of(x, 1) / scale - shape * log(scale) - lgamma(shape)
      })
    },
    x, log, x < 0 | x == Inf
  )
}

#' @rdname tensor_distributions
#' @export
dbeta <- function(x, shape1, shape2, ncp = 0, log = FALSE) {
  UseMethod("dbeta", among(x, shape1, shape2))
}

dbeta_tensor <- function(x, shape1, shape2, ncp = 0, log = FALSE) {
  central(ncp)
  density_of(
    function(x) {
      by_size(binomial_size(shape1 - 1, shape2 - 1), 20, x, list(shape1, shape2), function(of) {
        k <- of(shape1, 251) - 1
        m <- of(shape2, 251) - 1
        x <- of(x, 0.5)
        log1p(k + m) + log_binomial(k, m, x, 1 - x, m * x - k * (1 - x))
      }, function(of) {
        shape1 <- of(shape1, 1)
        shape2 <- of(shape2, 1)
        x <- of(x, 0.5)
        times_log(shape1 - 1, x) + times_log1m(shape2 - 1, x) - lbeta(shape1, shape2)
      })
    },
    x, log, x < 0 | x > 1
  )
}

#' @rdname tensor_distributions
#' @export
dt <- function(x, df, ncp, log = FALSE) {
  UseMethod("dt", among(x, df))
}

dt_tensor <- function(x, df, ncp, log = FALSE) {
  central(ncp)
  density_of(function(x) {
    log_rising(df / 2, 0.5) - log(2 * pi) / 2 - scaled_log1p(df / 2, x^2 / 2) - log1p(x^2 / df) / 2
  }, x, log, abs(x) == Inf)
}

#' @rdname tensor_distributions
#' @export
dunif <- function(x, min = 0, max = 1, log = FALSE) {
  UseMethod("dunif", among(x, min, max))
}

dunif_tensor <- function(x, min = 0, max = 1, log = FALSE) {
  density_of(function(x) -log(max - min) + 0 * x, x, log, holds(x - min < 0) | holds(max - x < 0), (min + max) / 2)
}

#' @rdname tensor_distributions
#' @export
dlogis <- function(x, location = 0, scale = 1, log = FALSE) {
  UseMethod("dlogis", among(x, location, scale))
}

dlogis_tensor <- function(x, location = 0, scale = 1, log = FALSE) {
  density_of(function(x) {
    z <- (x - location) / scale
    -z - 2 * op_softplus(-z) - log(scale)
  }, x, log, abs(x) == Inf)
}

#' @rdname tensor_distributions
#' @export
dweibull <- function(x, shape, scale = 1, log = FALSE) {
  UseMethod("dweibull", among(x, shape, scale))
}

dweibull_tensor <- function(x, shape, scale = 1, log = FALSE) {
  density_of(
    function(x) log(shape / scale) + times_log(shape - 1, x / scale) - (x / scale)^shape,
    x, log, x < 0 | x == Inf
  )
}

#' @rdname tensor_distributions
#' @export
dcauchy <- function(x, location = 0, scale = 1, log = FALSE) {
  UseMethod("dcauchy", among(x, location, scale))
}

dcauchy_tensor <- function(x, location = 0, scale = 1, log = FALSE) {
  density_of(function(x) -log(pi * scale) - log1p(((x - location) / scale)^2), x, log, abs(x) == Inf)
}

#' @rdname tensor_distributions
#' @export
dchisq <- function(x, df, ncp = 0, log = FALSE) {
  UseMethod("dchisq", among(x, df))
}

dchisq_tensor <- function(x, df, ncp = 0, log = FALSE) {
  central(ncp)
  dgamma_tensor(x, df / 2, scale = 2, log = log)
}

#' @rdname tensor_distributions
#' @export
df <- function(x, df1, df2, ncp, log = FALSE) {
  UseMethod("df", among(x, df1, df2))
}

df_tensor <- function(x, df1, df2, ncp, log = FALSE) {
  central(ncp)
  density_of(function(x) {
    # at 1 / x the degrees of freedom change places: the first is the smaller one
    by_size(
      df1 - df2, 1e-300, x, list(df1, df2),
      function(of) log_f(1 / of(x, 1), of(df2, 1), of(df1, 1)) - 2 * log(of(x, 1)),
      function(of) log_f(of(x, 1), of(df1, 1), of(df2, 1))
    )
  }, x, log, x < 0 | x == Inf, 1)
}

log_f <- function(x, df1, df2) {
  a <- df1 / 2
  b <- df2 / 2
  by_size(pmin(binomial_size(a - 1, b), 1e15 - b), 20, x, list(a, b), function(of) {
    k <- of(a, 251) - 1
    m <- of(b, 250)
    x <- of(x, 1)
    whole <- m + x * (k + 1)
    log(m / whole) + log(k + 1) + log_binomial(k, m, x * (k + 1) / whole, m / whole, m * (x * (k + 1) - k) / whole)
  }, function(of) {
    a <- of(a, 1)
    b <- of(b, 1)
    x <- of(x, 1)
    log_rising(b, a) - lgamma(a) + times_log(a, a) + times_log(a - 1, x) - scaled_log1p(b, a * x) -
      a * log1p(a * x / b)
  })
}

#' @rdname tensor_distributions
#' @export
dbinom <- function(x, size, prob, log = FALSE) {
  UseMethod("dbinom", among(x, size, prob))
}

dbinom_tensor <- function(x, size, prob, log = FALSE) {
  density_of(
    function(x) log_binomial_of(x, size - x, prob, 1 - prob),
    x, log, not_whole(x) | holds(size - x < 0), 0
  )
}

#' @rdname tensor_distributions
#' @export
dmultinom <- function(x, size = NULL, prob, log = FALSE) {
  UseMethod("dmultinom", among(x, prob))
}

dmultinom_tensor <- function(x, size = NULL, prob, log = FALSE) {
  total <- sum(x)
  if (!is.null(size) && !is_any_tensor(total) && size != total) {
    unsupported("size", sprintf("must be the sum of `x`, %s; got %s.", format(total), format(size)))
  }
  value <- sum(log_poisson(x, total * prob / sum(prob))) - log_poisson(total, total)
  if (log) value else exp(value)
}

#' @rdname tensor_distributions
#' @export
dpois <- function(x, lambda, log = FALSE) {
  UseMethod("dpois", among(x, lambda))
}

dpois_tensor <- function(x, lambda, log = FALSE) {
  density_of(function(x) log_poisson(x, lambda), x, log, not_whole(x), 0)
}

#' @rdname tensor_distributions
#' @export
dnbinom <- function(x, size, prob, mu, log = FALSE) {
  UseMethod("dnbinom", if (missing(mu)) among(x, size, prob) else among(x, size, mu))
}

dnbinom_tensor <- function(x, size, prob, mu, log = FALSE) {
  if (!missing(mu) && !missing(prob)) {
    unsupported("prob", "and `mu` are both given.")
  }
  by_mean <- !missing(mu)
  likely <- if (!by_mean) {
    function(x, of) {
      size <- of(size, 1)
      prob <- of(prob, 0.5)
      log_rising(size, x) + x * log(size) + size * log(prob) + times_log1m(x, prob) - lgamma(x + 1)
    }
  } else {
    function(x, of) {
      size <- of(size, 1)
      mu <- of(mu, 1)
      log_rising(size, x, mu) + times_log(x, mu) - scaled_log1p(size, mu) - lgamma(x + 1)
    }
  }
  large <- function(x) {
    function(of) {
      k <- of(size, 250)
      m <- of(x, 250)
      p <- if (by_mean) k / (k + of(mu, 250)) else of(prob, 0.5)
      q <- if (by_mean) of(mu, 250) / (k + of(mu, 250)) else 1 - p
      d <- if (by_mean) k * (m - of(mu, 250)) / (k + of(mu, 250)) else m * p - k * q
      log(k / (k + m)) + log_binomial(k, m, p, q, d)
    }
  }
  density_of(function(x) {
    by_size(
      pmin(binomial_size(size, x), 1e15 - size), 20, if (by_mean) mu else prob, list(size, x), large(x),
      function(of) likely(of(x, 1), of)
    )
  }, x, log, not_whole(x), 0)
}

#' @rdname tensor_distributions
#' @export
dhyper <- function(x, m, n, k, log = FALSE) {
  UseMethod("dhyper", among(x, m, n, k))
}

dhyper_tensor <- function(x, m, n, k, log = FALSE) {
  outside <- not_whole(x) | holds(k - x < 0) | holds(m - x < 0) | holds(n - k + x < 0)
  inner <- ifelse(outside, k * m / (m + n), x)
  part <- k / (m + n)
  of_part <- function(x, size) log_binomial_of(x, size - x, part, 1 - part)
  value <- of_part(inner, m) + of_part(k - inner, n) - of_part(k, m + n) + ifelse(outside, -Inf, 0)
  if (log) value else exp(value)
}

#' @rdname tensor_distributions
#' @export
dgeom <- function(x, prob, log = FALSE) {
  UseMethod("dgeom", among(x, prob))
}

dgeom_tensor <- function(x, prob, log = FALSE) {
  density_of(function(x) log(prob) + times_log(x, 1 - prob), x, log, not_whole(x), 0)
}
