# R's functions for the fits that maximize_likelihood() returns.

# The positions of estimated parameters that are given by name or number.
parameter_places <- function(chosen, fit, argument, call = parent.frame()) {
  names <- names(fit$coefficients)
  if (is.character(chosen)) named_among(chosen, names, argument, call)
  found <- match(if (is.character(chosen)) chosen else names[chosen], names)
  if (anyNA(found)) {
    refuse_parameters(argument, paste("must be names or positions of", quoted_names(names)), call)
  }
  found
}

#' @export
print.gradops_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  effects <- length(x$objective$random)
  cat(cli::pluralize("Maximum likelihood of {length(x$coefficients)} parameter{?s}"))
  if (effects > 0L) cat(cli::pluralize(" and {effects} random effect{?s}"))
  cat("\n\n")
  print.default(format(x$coefficients, digits = digits), quote = FALSE, print.gap = 2L)
  cat("\nlog-likelihood ", format(-x$value, digits = digits), "\n", sep = "")
  print_problems(x)
  invisible(x)
}

print_problems <- function(x) {
  for (problem in x$problems) cat("! ", problem, "\n", sep = "")
}

#' @rdname maximize_likelihood
#' @export
summary.gradops_fit <- function(object, ...) {
  errors <- sqrt(diag(object$vcov))
  z <- object$coefficients / errors
  table <- cbind(
    Estimate = object$coefficients, `Std. Error` = errors, `z value` = z, `Pr(>|z|)` = 2 * stats::pnorm(-abs(z))
  )
  structure(
    list(
      call = object$call, coefficients = table, logLik = stats::logLik(object), AIC = stats::AIC(object),
      random = object$objective$random, problems = object$problems
    ),
    class = "summary.gradops_fit"
  )
}

#' @export
print.summary.gradops_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  cat("Call:\n", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
  stats::printCoefmat(x$coefficients, digits = digits, na.print = "NA")
  cat("\n")
  if (length(x$random) > 0L) cat(length(x$random), "random effects\n")
  shown <- vapply(c(x$logLik, x$AIC), format, "", digits = digits)
  cat("log-likelihood ", shown[1L], ", AIC ", shown[2L], "\n", sep = "")
  print_problems(x)
  invisible(x)
}

#' @rdname maximize_likelihood
#' @param x A fit.
#' @export
plot.gradops_fit <- function(x, level = 0.95, ...) {
  estimates <- x$coefficients
  ends <- stats::confint(x, level = level)
  rows <- rev(seq_along(estimates))
  before <- graphics::par("mai")
  on.exit(graphics::par(mai = before))
  graphics::par(mai = replace(before, 2L, 0.3 + max(graphics::strwidth(names(estimates), "inches"))))
  across <- range(estimates, ends, finite = TRUE)
  settings <- list(xlab = sprintf("estimate and %g%% interval", 100 * level), ylab = "", pch = 19, yaxt = "n")
  do.call(graphics::plot, c(list(estimates, rows, xlim = across), utils::modifyList(settings, list(...))))
  graphics::axis(2, rows, names(estimates), las = 1)
  graphics::segments(ends[, 1L], rows, ends[, 2L], rows)
  graphics::abline(v = 0, lty = 3L)
  invisible(x)
}

#' @export
coef.gradops_fit <- function(object, ...) object$coefficients

#' @export
vcov.gradops_fit <- function(object, ...) object$vcov

#' @export
logLik.gradops_fit <- function(object, ...) {
  structure(-object$value, df = length(object$coefficients), nobs = object$nobs, class = "logLik")
}

#' @export
nobs.gradops_fit <- function(object, ...) {
  if (is.null(object$nobs)) {
    refuse_parameters("nobs", "the number of observations is not known: set it when you make the fit", parent.frame())
  }
  object$nobs
}

#' @export
deviance.gradops_fit <- function(object, ...) 2 * object$value

# Not `df.residual.gradops_fit`, which R CMD check takes for a method of gradops' `df()`.
#' @rawNamespace S3method(df.residual, gradops_fit, residual_df)
residual_df <- function(object, ...) stats::nobs(object) - length(object$coefficients)

#' @rdname maximize_likelihood
#' @param type The name of a reported vector with an element for each row of the data, if the likelihood reports
#'   several.
#' @export
fitted.gradops_fit <- function(object, type = NULL, ...) {
  reported <- reports_of(function() object$objective$evaluate(object$parameters))
  reported_by_row(reported, stats::nobs(object), type)
}

# The reported vector with one number for each row: the only one, or the one that `type` names.
reported_by_row <- function(reported, rows, type, call = parent.frame()) {
  found <- Filter(function(value) is.null(dim(value)) && length(value) == rows, reported)
  name <- if (length(found) == 1L) names(found) else intersect(type, names(found))
  if (length(name) != 1L) {
    vectors <- if (length(found) > 0L) toString(sprintf("\"%s\"", names(found))) else "none, see `report()`"
    refuse_parameters("type", paste("must name a vector that the likelihood reports for the rows:", vectors), call)
  }
  as.vector(found[[name]])
}

#' @rdname maximize_likelihood
#' @export
confint.gradops_fit <- function(object, parm, level = 0.95, method = c("wald", "profile"), ...) {
  refuse_more("confint", ...)
  method <- chosen(method)
  if (!is.numeric(level) || is.object(level) || length(level) != 1L || !isTRUE(level > 0 && level < 1)) {
    unsupported("level", sprintf("must be a number between 0 and 1; got %s.", friendly(level)))
  }
  if (!missing(parm)) parm <- parameter_places(parm, object, "parm")
  tails <- c((1 - level) / 2, (1 + level) / 2)
  estimates <- object$coefficients
  if (method == "wald") {
    found <- estimates + sqrt(diag(object$vcov)) %o% stats::qnorm(tails)
  } else {
    found <- object$objective$ask(
      "conf_int", estimates, alpha = 1 - level, lower = object$bounds$lower, upper = object$bounds$upper,
      hessian = object$hessian
    )
    found <- matrix(missing_for_nan(as.vector(found)), length(estimates), 2L)
  }
  labels <- paste(format(100 * tails, trim = TRUE, digits = 3), "%")
  dimnames(found) <- list(names(estimates), labels)
  if (missing(parm)) found else found[parm, , drop = FALSE]
}

#' @rdname maximize_likelihood
#' @export
anova.gradops_fit <- function(object, ...) {
  fits <- list(object, ...)
  if (length(fits) < 2L || !all(vapply(fits, inherits, TRUE, "gradops_fit"))) {
    refuse_parameters("...", "`anova()` compares two fits or more", parent.frame())
  }
  names <- vapply(as.list(substitute(list(object, ...)))[-1L], deparse1, "")
  sizes <- vapply(fits, function(fit) length(fit$coefficients), 0L)
  values <- vapply(fits, function(fit) fit$value, 0)
  change <- c(NA, diff(sizes))
  chi <- c(NA, -2 * diff(values)) * sign(change)
  table <- data.frame(
    npar = sizes, AIC = 2 * sizes + 2 * values, logLik = -values, Chisq = chi, Df = abs(change),
    `Pr(>Chisq)` = stats::pchisq(chi, abs(change), lower.tail = FALSE), row.names = make.unique(names),
    check.names = FALSE
  )
  structure(table, heading = "Likelihood ratio tests\n", class = c("anova", "data.frame"))
}

#' @rdname maximize_likelihood
#' @export
predict.gradops_fit <- function(object, g = NULL, se.fit = FALSE, newdata = NULL, ...) { # nolint: object_name_linter.
  refuse_more("predict", ...)
  flag(se.fit)
  if (is.data.frame(g)) {
    refuse_parameters("g", "is a function of the parameters; rows to predict are `newdata`", parent.frame())
  }
  if (!is.function(g)) {
    return(reported_by(object, g, se.fit, newdata))
  }
  if (!is.null(newdata)) {
    refuse_parameters("newdata", "is for reported quantities; a function `g` has its own data", parent.frame())
  }
  values <- g(object$parameters)
  if (!se.fit) {
    return(values)
  }
  list(fit = values, se.fit = like_values(delta_errors(object, g), values))
}

# Standard errors of the elements of a function's value, by the delta method.
delta_errors <- function(object, g) {
  at <- as.double(unlist(object$parameters))
  slopes <- jacobian(object$objective$of_vector(g), at)
  known <- object$vcov
  known[!object$free, ] <- known[, !object$free] <- 0
  slopes <- matrix(slopes, ncol = length(at))
  covariance <- object$objective$ask("propagated", object$coefficients, covariance = known, jacobian = slopes)
  missing_for_nan(sqrt(diag(matrix(as.vector(covariance), nrow(slopes)))))
}

like_values <- function(x, values) {
  attributes(x) <- attributes(values)[intersect(names(attributes(values)), c("names", "dim", "dimnames"))]
  x
}

# The quantities that the likelihood reports, all or some by name, as a list; with standard errors a list of two lists.
reported_by <- function(object, names, se.fit, newdata) { # nolint: object_name_linter.
  data <- newdata %||% object$data
  absent <- setdiff(names(object$data), names(data))
  if (length(absent) > 0L) data[absent] <- NA # NULL, of a likelihood without data, stays NULL
  evaluate <- function(p) object$objective$evaluate(p, data)
  values <- reports_of(function() evaluate(object$parameters))
  if (length(values) == 0L) {
    refuse_parameters("g", "must be a function of the parameters, as the likelihood reports nothing", parent.frame(2L))
  }
  named_among(names, names(values), "g", parent.frame(2L))
  values <- values[names %||% names(values)]
  if (length(absent) > 0L && any(vapply(values, function(value) length(value) == 0L || anyNA(value), NA))) {
    message <- sprintf("gives NA or nothing; data had %s too", quoted_names(absent))
    refuse_parameters("newdata", message, parent.frame(2L))
  }
  if (!se.fit) {
    return(values)
  }
  errors <- delta_errors(object, function(p) one_vector(reports_of(function() evaluate(p))[names(values)]))
  errors <- split(errors, rep(factor(names(values), names(values)), lengths(values)))
  list(fit = values, se.fit = Map(like_values, errors, values))
}

#' @rdname maximize_likelihood
#' @export
simulate.gradops_fit <- function(object, nsim = 1, seed = NULL, use.u = FALSE, ...) { # nolint: object_name_linter.
  refuse_more("simulate", ...)
  flag(use.u)
  draw <- function() object$objective$simulate(object$coefficients, use.u)
  if (!is.null(seed)) {
    return(withr::with_seed(seed, simulate.gradops_fit(object, nsim, NULL, use.u)))
  }
  found <- lapply(seq_len(nsim), function(i) {
    drawn <- draw()
    drawn <- drawn[setdiff(names(drawn), random_tops(object))]
    check_marked(names(drawn))
    drawn
  })
  if (all(lengths(found) == 1L)) {
    found <- as.data.frame(lapply(found, function(drawn) as.vector(drawn[[1L]])))
    names(found) <- paste0("sim_", seq_len(nsim))
  }
  found
}

random_tops <- function(object) object$objective$random_tops

#' @rdname maximize_likelihood
#' @export
residuals.gradops_fit <- function(object, method = c("cdf", "gaussian", "slope", "integral", "mode"), ...) {
  refuse_more("residuals", ...)
  method <- chosen(method)
  object$objective$residuals(object$coefficients, method)
}

#' @exportS3Method nlme::ranef
ranef.gradops_fit <- function(object, ...) object$parameters[random_tops(object)]
