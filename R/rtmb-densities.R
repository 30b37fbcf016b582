# Densities, and related functions, that RTMB computes in C, as formulas in R code that takes tensors and numbers. The
# number of terms in a series is constant, so that one compiled function works for all parameters.

rtmb_densities <- function() {
  list(
    dbinom_robust = dbinom_robust, dnbinom_robust = dnbinom_robust, dnbinom2 = dnbinom2, dtweedie = dtweedie,
    dcompois = dcompois, dcompois2 = dcompois2, dlgamma = dlgamma, dSHASHo = dSHASHo, dsn = dsn,
    dmvnorm = dmvnorm_rtmb, dgmrf = dgmrf_rtmb, dautoreg = dautoreg
  )
}

# Densities that call the scope of a simulation or of residuals if `x` is observed (likelihood-observations.R).
rtmb_observed <- function() {
  densities <- rtmb_densities()
  Map(function(density, name) {
    force(density)
    observed <- function() NULL
    body(observed) <- bquote({
      if (is_observed(x)) {
        given <- as.list(match.call())[-1L]
        given <- lapply(given[setdiff(names(given), c("x", "log"))], eval, parent.frame())
        attr(x, "scope")$density(x, .(substring(name, 2L)), given, is_set(log))
      } else {
        .(as.call(c(density, lapply(rlang::set_names(names(formals(density))), as.name))))
      }
    })
    formals(observed) <- formals(density)
    environment(observed) <- topenv()
    observed
  }, densities, names(densities))
}

# Random numbers from these densities, for simulations: as many as `x` has, in its form.
rtmb_samplers <- function() {
  by_element <- function(draw) function(x, ...) replace(x, TRUE, draw(length(x), ...))
  list(
    dbinom_robust = by_element(function(n, size, logit_p) stats::rbinom(n, size, stats::plogis(logit_p))),
    dnbinom_robust = by_element(function(n, log_mu, log_var_minus_mu) {
      stats::rnbinom(n, size = exp(2 * log_mu - log_var_minus_mu), mu = exp(log_mu))
    }),
    dnbinom2 = by_element(function(n, mu, var) stats::rnbinom(n, size = mu^2 / (var - mu), mu = mu)),
    dtweedie = by_element(function(n, mu, phi, p) {
      counts <- stats::rpois(n, mu^(2 - p) / (phi * (2 - p)))
      stats::rgamma(n, counts * (2 - p) / (p - 1), scale = phi * (p - 1) * mu^(p - 1))
    }),
    dcompois = by_element(draw_compois),
    dcompois2 = by_element(function(n, mean, nu) draw_compois(n, exp(compois_rate(mean, nu) / nu), nu)),
    dlgamma = by_element(function(n, shape, scale) base::log(stats::rgamma(n, shape, scale = scale))),
    dSHASHo = by_element(function(n, mu, sigma, nu, tau) mu + sigma * sinh((asinh(stats::rnorm(n)) + nu) / tau)),
    dsn = by_element(function(n, alpha) {
      delta <- alpha / sqrt(1 + alpha^2)
      delta * abs(stats::rnorm(n)) + sqrt(1 - delta^2) * stats::rnorm(n)
    }),
    dmvnorm = function(x, mu = 0, Sigma, scale = 1) drawn_rows(x, base::chol(as.matrix(Sigma)), mu, scale),
    dgmrf = function(x, mu = 0, Q, scale = 1) drawn_rows(x, base::t(solve(base::chol(as.matrix(Q)))), mu, scale),
    dautoreg = function(x, mu = 0, phi, scale = 1) {
      of <- autoregression(phi, length(x))
      values <- as.vector(stats::rnorm(nrow(of$start)) %*% base::chol(of$start))
      order <- length(phi)
      for (i in seq_len(length(x) - order) + order) {
        values[i] <- stats::rnorm(1L, sum(phi * values[i - seq_len(order)]), of$sd)
      }
      replace(x, TRUE, mu + scale * values)
    }
  )
}

draw_compois <- function(n, mode, nu) {
  draw <- function(mode, nu) {
    to <- 0:ceiling(mode + 40 * sqrt(mode / nu) + 40 / nu + 40)
    terms <- nu * (to * base::log(mode) - lgamma(to + 1))
    sample(to, 1L, prob = exp(terms - max(terms)))
  }
  base::mapply(draw, rep_len(mode, n), rep_len(nu, n))
}

# Rows of normal vectors, as many as in `x`.
drawn_rows <- function(x, root, mu, scale) {
  n <- length(x) / nrow(root)
  by_row <- function(v) if (length(v) == 1L || length(v) == length(x)) as.vector(v) else rep(as.vector(v), each = n)
  z <- base::matrix(stats::rnorm(length(x)), n) %*% root
  replace(x, TRUE, by_row(mu) + by_row(scale) * as.vector(z))
}

logged <- function(value, log) if (log) value else exp(value)

# log(1 + exp(x)), for tensors and numbers.
softplus <- function(x) if (is_any_tensor(x)) op_softplus(x) else pmax(x, 0) + log1p(exp(-abs(x)))

# log(exp(logx) + exp(logy)); one may be -Inf, as for a component of a mixture with probability 0.
logspace_add <- function(logx, logy) {
  if (is_any_tensor(logx) || is_any_tensor(logy)) {
    count <- max(length(logx), length(logy))
    if (!length(logx) %in% c(1L, count)) logx <- rep_len(logx, count)
    if (!length(logy) %in% c(1L, count)) logy <- rep_len(logy, count)
    return(op_logaddexp(logx, logy))
  }
  largest <- pmax(logx, logy)
  ifelse(is.finite(largest), largest + log1p(exp(-abs(logx - logy))), largest)
}

logspace_sub <- function(logx, logy) logx + log(-expm1(logy - logx))

dbinom_robust <- function(x, size, logit_p, log = FALSE) {
  logged(lchoose(size, x) + x * logit_p - size * softplus(logit_p), log)
}

dnbinom_robust <- function(x, log_mu, log_var_minus_mu, log = FALSE) {
  log_var <- logspace_add(log_mu, log_var_minus_mu)
  size <- exp(2 * log_mu - log_var_minus_mu)
  counted <- lgamma(x + size) - lgamma(size) - lgamma(x + 1)
  logged(counted + size * (log_mu - log_var) + x * (log_var_minus_mu - log_var), log)
}

dnbinom2 <- function(x, mu, var, log = FALSE) {
  dnbinom_robust(x, log(mu), log(var - mu), log)
}

dlgamma <- function(x, shape, scale, log = FALSE) {
  logged(shape * x - exp(x) / scale - lgamma(shape) - shape * base_log(scale), log)
}

dSHASHo <- function(x, mu, sigma, nu, tau, log = FALSE) { # nolint: object_name_linter. RTMB's name.
  z <- (x - mu) / sigma
  turned <- tau * asinh(z) - nu
  value <- base_log(tau) - base_log(sigma) - log1p(z^2) / 2 + base_log(cosh(turned)) - sinh(turned)^2 / 2
  logged(value - base_log(2 * pi) / 2, log)
}

dsn <- function(x, alpha, log = FALSE) {
  logged(base_log(2) + dnorm(x, log = TRUE) + pnorm(alpha * x, log.p = TRUE), log)
}

# The logarithm, for functions that have an argument `log`.
base_log <- function(x) log(x)

# Sums of series whose terms rise to a peak and fall like a normal density. The sum runs over a grid of integers. If the
# peak is wide, the step is larger than 1, and the sum of every `step`-th term times `step` is accurate to all digits,
# as sums of smooth functions converge exponentially (Trefethen & Weideman 2014).

# For each peak a row of integers around it, not below `first`, and the logarithm of the step.
peak_integers <- function(peak, width, first, count = 201L) {
  peak <- op_stop_gradient(op_convert_to_tensor(peak))
  width <- op_stop_gradient(op_convert_to_tensor(width))
  reach <- (count - 1) / 2
  step <- op_maximum(op_ceil(10 * width / reach), 1)
  low <- op_maximum(op_floor(peak) - reach * step, first)
  columns <- function(x) op_reshape(x, tuple(-1L, 1L))
  list(places = columns(low) + columns(step) * matrix(seq_len(count) - 1, 1L), log_step = log(step))
}

log_sum_rows <- function(terms) op_logsumexp(terms, axis = 2L)

column <- function(x) op_reshape(op_convert_to_tensor(x), tuple(-1L, 1L))

# Parameters recycled to the length of the observations, as vectors.
recycled_all <- function(...) {
  arguments <- list(...)
  size <- max(lengths(arguments))
  lapply(arguments, function(x) if (is_any_tensor(x)) recycled(x, size) else as.double(rep_len(x, size)))
}

# Convert `value` to numbers if no argument is a tensor.
unless_tensors <- function(value, ...) {
  if (any_tensor(...)) value else as.vector(as.array(value))
}

# Dunn and Smyth (2005): a Poisson number of gamma variables is added up; the density is a series over this number.
dtweedie <- function(x, mu, phi, p, log = FALSE) {
  x <- if (is_any_tensor(x)) flat(x) else as.vector(x)
  given <- recycled_all(x, mu, phi, p)
  names(given) <- c("x", "mu", "phi", "p")
  value <- with(given, {
    seen <- x > 0
    y <- ifelse(seen, x, 1)
    alpha <- (2 - p) / (p - 1)
    none <- -mu^(2 - p) / (phi * (2 - p))
    rate <- alpha * (base_log(y) - base_log(p - 1)) - (1 + alpha) * base_log(phi) - base_log(2 - p)
    peak <- y^(2 - p) / (phi * (2 - p))
    places <- peak_integers(peak, sqrt(peak / (1 + alpha)) + 1, 1)
    j <- places$places
    terms <- j * column(rate) - lgamma(j + 1) - lgamma(j * column(alpha))
    some <- log_sum_rows(terms) + places$log_step - base_log(y) - y * mu^(1 - p) / (phi * (p - 1))
    none + ifelse(seen, some, 0)
  })
  logged(unless_tensors(value, x, mu, phi, p), log)
}

# The Conway-Maxwell-Poisson family with its rate, `nu` times the logarithm of the mode: the logarithm of the
# normalising constant, the mean and the variance.
compois_sums <- function(rate, nu, moments = FALSE) {
  mode <- exp(rate / nu)
  j <- peak_integers(mode, sqrt(mode / nu) + 2 / nu, 0, 1001L)
  terms <- j$places * column(rate) - column(nu) * lgamma(j$places + 1)
  total <- log_sum_rows(terms)
  found <- list(log_constant = total + j$log_step)
  if (moments) {
    weights <- exp(terms - column(total))
    found$mean <- op_sum(weights * j$places, axis = 2L)
    found$variance <- op_sum(weights * (j$places - column(found$mean))^2, axis = 2L)
  }
  found
}

# The rate for a given mean: Newton steps without derivatives, followed by two that are recorded and give the first and
# second derivative of the implicit function.
compois_rate <- function(mean, nu) {
  step <- function(rate, mean, nu) {
    sums <- compois_sums(rate, nu, TRUE)
    rate + op_clip((mean - sums$mean) / sums$variance, -2 * nu, 2 * nu)
  }
  fixed <- op_stop_gradient(op_convert_to_tensor(mean))
  fixed_nu <- op_stop_gradient(op_convert_to_tensor(nu))
  rate <- fixed_nu * log(op_maximum(fixed + (fixed_nu - 1) / (2 * fixed_nu), fixed / 10))
  for (i in 1:12) rate <- op_stop_gradient(step(rate, fixed, fixed_nu))
  found <- step(step(rate, mean, nu), mean, nu)
  unless_tensors(found, mean, nu)
}

dcompois <- function(x, mode, nu, log = FALSE) {
  compois_density(x, nu * base_log(mode), nu, log)
}

dcompois2 <- function(x, mean, nu, log = FALSE) {
  size <- max(length(mean), length(nu))
  if (size > 1L) {
    mean <- recycled_all(mean, numeric(size))[[1L]]
    nu <- recycled_all(nu, numeric(size))[[1L]]
  }
  compois_density(x, compois_rate(mean, nu), nu, log)
}

compois_density <- function(x, rate, nu, log) {
  constants <- do.call(compois_sums, unname(recycled_all(rate, nu)))$log_constant
  value <- x * rate - nu * lgamma(x + 1) - unless_tensors(constants, rate, nu)
  logged(value, log)
}
