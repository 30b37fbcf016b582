# Compiled code that adapted functions (code-adapted.R) call: it takes R's numbers only, so a tensor raises an error.
# The routines that the families of stats (`binomial()`) call are written here in R.

compiled_overload <- function(original) {
  force(original)
  function(.NAME, ..., PACKAGE) {
    if (any_tensor(...)) {
      name <- if (is.list(.NAME)) .NAME$name else if (is.character(.NAME)) .NAME[1] else "a routine"
      here <- compiled_of_stats[[name]]
      if (!is.null(here)) {
        return(here(...))
      }
      caller <- deparse(as_written(sys.call(-1)), nlines = 1)[1]
      abort(
        c(
          sprintf(
            "`%s` calls compiled code, `%s`, which takes ordinary R vectors only; it was given a tensor.", caller, name
          ),
          i = numbers_alone
        ),
        class = c("gradops_error_type", "gradops_error"), call = NULL
      )
    }
    if (missing(PACKAGE)) original(.NAME, ...) else original(.NAME, ..., PACKAGE = PACKAGE)
  }
}

call_overload <- compiled_overload(base::.Call)
c_overload <- compiled_overload(base::.C) # .C would read a tensor's address as numbers
fortran_overload <- compiled_overload(base::.Fortran)

# y * log(y / mu), and 0 where y is 0; the derivatives are right there too.
times_log_ratio <- function(y, mu) {
  counts <- holds(y > 0)
  ifelse(counts, y * log(ifelse(counts, y, 1) / mu), 0)
}

compiled_of_stats <- list(
  logit_link = function(mu) qlogis(mu),
  logit_linkinv = function(eta) plogis(eta),
  logit_mu_eta = function(eta) dlogis(eta),
  binomial_dev_resids = function(y, mu, wt) {
    2 * wt * (times_log_ratio(y, mu) + times_log_ratio(1 - y, 1 - mu))
  },
  HoltWinters = function(...) smoothed_exponentially(...),
  eureka = function(...) levinson(...),
  pacf1 = function(acf, n) base::array(1, base::c(n, 1L, 1L)) * base::diag(matrix(levinson(n, acf, acf)$coefs, n)),
  DoubleCentre = function(x) sweep(sweep(x, 1L, rowMeans(x)), 2L, colMeans(x) - mean(x)),
  Cdqrls = function(x, y, tol, check) {
    fit <- least_squares(x, y, NULL)
    effects <- times_factor(fit$qr, y, TRUE)
    base::c(fit[base::c("coefficients", "residuals", "rank")], fit$qr[base::c("qr", "pivot")], list(effects = effects))
  },
  BinDist = function(x, weights, low, high, n) {
    call_core("interop.r.stats.binned", operand(x), operand(weights), low, high, n)
  }
)

# The Holt-Winters filter, step by step.
smoothed_exponentially <- function(x, n, alpha, beta, gamma, start, additive, period, has_trend, has_season, a, b, s,
                                   ...) {
  sum_of_squares <- 0
  levels <- list(a)
  trends <- list(if (has_trend) b else 0)
  seasons <- lapply(seq_len(period), function(i) if (has_season) s[i] else 1 - additive)
  for (i in start:n) {
    step <- i - start + 1L
    level <- levels[[step]] + trends[[step]]
    season <- seasons[[if (has_season) step else 1L]]
    sum_of_squares <- sum_of_squares + (x[i] - (if (additive) level + season else level * season))^2
    level <- alpha * (if (additive) x[i] - season else x[i] / season) + (1 - alpha) * level
    trends[[step + 1L]] <- if (has_trend) beta * (level - levels[[step]]) + (1 - beta) * trends[[step]] else 0
    levels[[step + 1L]] <- level
    if (has_season) {
      now <- if (additive) x[i] - level else x[i] / level
      seasons[[step + period]] <- gamma * now + (1 - gamma) * season
    }
  }
  base::c(list(SSE = sum_of_squares), lapply(list(level = levels, trend = trends, seasonal = seasons), joined))
}

# Solve the Yule-Walker equations of each order; return rows of coefficients, by column, and variances.
levinson <- function(n, r, g, ...) {
  rows <- lapply(seq_len(n), function(k) c(solve(toeplitz(r[seq_len(k)]), g[1L + seq_len(k)]), numeric(n - k)))
  last <- joined(lapply(seq_len(n), function(k) rows[[k]][k]))
  list(coefs = flat(do.call(rbind, rows)), vars = r[1L] * cumprod(1 - last^2))
}

# `poisson()` computes log(0) and drops it, which gives 0 * Inf in the backward pass.
poisson_deviance <- function(y, mu, wt) {
  2 * wt * (times_log_ratio(y, mu) - (y - mu))
}

is_poisson_deviance <- function(f) {
  identical(names(formals(f)), c("y", "mu", "wt")) && identical(body(f), body(stats::poisson()$dev.resids))
}

# A comparison that is FALSE for missing values, as a tensor of booleans is.
holds <- function(test) {
  if (is_tensor(test)) test else test & !is.na(test)
}
