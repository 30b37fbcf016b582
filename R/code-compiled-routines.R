# Compiled code in functions that are adapted (code-adapted.R): it takes R's numbers alone, and says so. What families
# of stats (`binomial()`) call of it is written here.

call_overload <- function(.NAME, ..., PACKAGE) {
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
  if (missing(PACKAGE)) base::.Call(.NAME, ...) else base::.Call(.NAME, ..., PACKAGE = PACKAGE)
}

# y * log(y / mu), 0 where y is; also in its derivatives.
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
  BinDist = function(x, weights, low, high, n) {
    call_core("interop.r.stats.binned", operand(x), operand(weights), low, high, n)
  }
)

# `poisson()` takes the logarithm of 0 and leaves it out, which in reverse is 0 * Inf.
poisson_deviance <- function(y, mu, wt) {
  2 * wt * (times_log_ratio(y, mu) - (y - mu))
}

is_poisson_deviance <- function(f) {
  identical(names(formals(f)), c("y", "mu", "wt")) && identical(body(f), body(stats::poisson()$dev.resids))
}

# A comparison that, as in tensors of booleans, is false of what is missing.
holds <- function(test) {
  if (is_tensor(test)) test else test & !is.na(test)
}
