# Methods of fits for generics of the packages broom, emmeans, marginaleffects and posterior, registered when these
# load.

#' Fits in broom, emmeans, marginaleffects and posterior
#'
#' Methods of [maximize_likelihood()]'s fits for generics of other packages. `generics::tidy()` returns a row for each
#' parameter, `generics::glance()` one for the fit, `generics::augment()` the data with residuals and the vectors that
#' the likelihood reports for the rows. `posterior::as_draws()` draws from the normal approximation of the estimates and
#' random effects. With `method = "nuts"` it draws from the posterior density, which the likelihood is if it includes
#' priors, by a No-U-Turn sampler (Hoffman and Gelman 2014); random effects are integrated out, then sampled.
#' `emmeans::emmeans()` needs the linear predictor of the likelihood: its formula, and the parameters that are its
#' coefficients. marginaleffects' functions (`predictions()`, `avg_slopes()`, `avg_comparisons()`, ...) predict a vector
#' that the likelihood reports for the rows, with `newdata` in place of the data; `type` names one if there are several.
#' @param x,object A fit.
#' @param conf.int,conf.level If `TRUE`, add confidence intervals; their level.
#' @param effects `"fixed"` for the estimated parameters, `"ran_vals"` for the random effects, or both.
#' @param method As for `confint()` and `residuals()`; for `as_draws()`, `"normal"` or `"nuts"`.
#' @param data The data, by default the fit's.
#' @param ndraws The number of draws over all chains.
#' @param chains,tune The number of chains, and of warm-up draws in each, which tune step size and scales and are
#'   dropped.
#' @param model A fit, for marginaleffects.
#' @param newdata Rows, as marginaleffects passes them.
#' @param type The name of a reported vector.
#' @param coefs Estimates that replace the fit's.
#' @param formula The formula of the linear predictor; its response, if there is one, is ignored.
#' @param coefficients The name of the parameter with the coefficients, in the order of `model.matrix()`.
#' @param trms,xlev,grid As emmeans passes them.
#' @param ... Unused, or for emmeans.
#' @returns Data frames with broom's columns; `as_draws()` returns a `draws_matrix`, and with `"nuts"` a `draws_array`;
#'   the methods for emmeans and marginaleffects return what these packages need.
#' @section Errors:
#' - `gradops_error_argument`: draws of a fit whose estimates have no covariance; a number of coefficients that does not
#'   fit the formula; a likelihood that reports no vector for the rows, or several, none of which is `type`.
#' @seealso [maximize_likelihood()].
#' @examplesIf gradops_available() && requireNamespace("generics")
#' counts <- data.frame(x = 0:4, y = c(1, 1, 4, 5, 11))
#' nll <- function(p, data) {
#'   mean <- exp(p$beta[1] + p$beta[2] * data$x)
#'   report(mean)
#'   -sum(dpois(observed(data$y), mean, log = TRUE))
#' }
#' fit <- maximize_likelihood(nll, list(beta = c(0, 0)), counts)
#' generics::tidy(fit, conf.int = TRUE)
#' generics::glance(fit)
#' generics::augment(fit)
#' @name fit_neighbours
NULL

#' @rdname fit_neighbours
#' @exportS3Method generics::tidy
tidy.gradops_fit <- function(x, conf.int = FALSE, conf.level = 0.95, effects = "fixed", method = "wald", ...) { # nolint
  flag(conf.int)
  effects <- chosen(effects, c("fixed", "ran_vals"), several = TRUE)
  table <- summary(x)$coefficients
  fixed <- data.frame(
    term = rownames(table), estimate = table[, 1L], std.error = table[, 2L], statistic = table[, 3L],
    p.value = table[, 4L]
  )
  if (conf.int) fixed[c("conf.low", "conf.high")] <- confint.gradops_fit(x, level = conf.level, method = method)
  tops <- random_tops(x)
  if (length(tops) == 0L || !"ran_vals" %in% effects) {
    return(data.frame(fixed, row.names = NULL))
  }
  modes <- unlist(x$parameters[tops])
  random <- data.frame(term = names(modes), estimate = unname(modes), std.error = unlist(x$errors[tops]))
  random$statistic <- random$p.value <- NA_real_
  if (conf.int) {
    half <- stats::qnorm((1 + conf.level) / 2) * random$std.error
    random[c("conf.low", "conf.high")] <- list(random$estimate - half, random$estimate + half)
  }
  parts <- list(fixed = fixed, ran_vals = random[names(fixed)])[effects]
  data.frame(effect = rep(effects, vapply(parts, nrow, 0L)), do.call(rbind, unname(parts)), row.names = NULL)
}

#' @rdname fit_neighbours
#' @exportS3Method generics::glance
glance.gradops_fit <- function(x, ...) {
  data.frame(
    logLik = -x$value, AIC = stats::AIC(x), BIC = if (is.null(x$nobs)) NA_real_ else stats::BIC(x),
    deviance = stats::deviance(x), nobs = x$nobs %||% NA_integer_, df = length(x$coefficients),
    converged = length(x$problems) == 0L
  )
}

#' @rdname fit_neighbours
#' @exportS3Method generics::augment
augment.gradops_fit <- function(x, data = x$data, method = "cdf", ...) {
  found <- as.data.frame(data)
  evaluate <- x$objective$evaluate
  reported <- reports_of(function() evaluate(x$parameters))
  by_row <- Filter(function(value) is.null(dim(value)) && length(value) == nrow(found), reported)
  for (name in names(by_row)) found[[paste0(".", name)]] <- as.vector(by_row[[name]])
  residuals <- tryCatch(residuals.gradops_fit(x, method), gradops_error_unmarked = function(error) NULL)
  if (!is.list(residuals) && length(residuals) == nrow(found)) found$.resid <- residuals
  found
}

#' @rdname fit_neighbours
#' @exportS3Method posterior::as_draws
as_draws.gradops_fit <- function(x, ndraws = 4000, method = c("normal", "nuts"), chains = 4, tune = 1000, ...) {
  if (chosen(method) == "nuts") {
    found <- x$objective$ask(
      "sample", x$coefficients, draws = ceiling(ndraws / chains), tune = tune, chains = chains,
      seed = sample.int(1e9L, 1L)
    )
    return(posterior::as_draws_array(array(as.vector(found), dim(found), list(NULL, NULL, x$objective$names))))
  }
  if (length(x$problems) > 0L || !all(x$free)) {
    refuse_parameters("x", "its estimates have no covariance: see `fit$problems`, and active bounds", parent.frame())
  }
  at <- x$coefficients
  if (length(x$objective$random) > 0L) {
    modes <- x$objective$ask("parameters", at)
    precision <- x$objective$precision(at)
    at <- c(stats::setNames(as.vector(modes)[x$objective$random_places], x$objective$random), at)
    z <- matrix(stats::rnorm(length(at) * ndraws), length(at))
    spread <- as.matrix(Matrix::solve(Matrix::chol(Matrix::forceSymmetric(precision)), z))
  } else {
    spread <- t(chol(x$vcov)) %*% matrix(stats::rnorm(length(at) * ndraws), length(at))
  }
  posterior::as_draws_matrix(matrix(at + spread, ndraws, length(at), byrow = TRUE, dimnames = list(NULL, names(at))))
}

#' @rdname fit_neighbours
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.gradops_fit <- function(x, ...) as_draws.gradops_fit(x, ...)

#' @rdname fit_neighbours
#' @exportS3Method posterior::as_draws_df
as_draws_df.gradops_fit <- function(x, ...) posterior::as_draws_df(as_draws.gradops_fit(x, ...))

#' @rdname fit_neighbours
#' @exportS3Method emmeans::recover_data
recover_data.gradops_fit <- function(object, formula, data = NULL, ...) {
  if (missing(formula)) { # emmeans raises an error with this text, and would hide ours
    return(paste(
      "a likelihood does not say what its linear predictor is. Give its formula and the parameter of its coefficients:",
      "`emmeans(fit, \"g\", formula = ~ g + x, coefficients = \"beta\")`."
    ))
  }
  data <- data %||% object$data
  if (is.null(data)) {
    return("the fit has no data: give a data frame as `data`.")
  }
  terms <- stats::delete.response(stats::terms(formula, data = data))
  emmeans::recover_data(call("maximize_likelihood", formula = formula), terms, NULL, data = data, ...)
}

#' @rdname fit_neighbours
#' @exportS3Method emmeans::emm_basis
emm_basis.gradops_fit <- function(object, trms, xlev, grid, coefficients, ...) {
  design <- stats::model.matrix(trms, stats::model.frame(trms, grid, na.action = stats::na.pass, xlev = xlev))
  tops <- object$objective$tops
  if (missing(coefficients)) {
    refuse_parameters("coefficients", sprintf(
      "must name the parameter that has the %d of the formula, one of %s", ncol(design), quoted_names(unique(tops))
    ), NULL)
  }
  is_one <- tops == named_among(coefficients, unique(tops), "coefficients", NULL)
  if (sum(is_one) != ncol(design)) {
    refuse_parameters(
      "coefficients", sprintf("the formula needs %d; `%s` has %d", ncol(design), coefficients, sum(is_one)), NULL
    )
  }
  list(
    X = design, bhat = object$coefficients[is_one], nbasis = matrix(NA), V = object$vcov[is_one, is_one, drop = FALSE],
    dffun = function(k, dfargs) Inf, dfargs = list(), misc = list()
  )
}

#' @rdname fit_neighbours
#' @exportS3Method marginaleffects::get_predict
get_predict.gradops_fit <- function(model, newdata, type = NULL, ...) {
  reported <- reports_of(function() model$objective$evaluate(model$parameters, newdata))
  estimate <- reported_by_row(reported, nrow(newdata), type, NULL)
  data.frame(rowid = newdata$rowid %||% seq_len(nrow(newdata)), estimate = estimate)
}

#' @rdname fit_neighbours
#' @exportS3Method marginaleffects::get_coef
get_coef.gradops_fit <- function(model, ...) model$coefficients

#' @rdname fit_neighbours
#' @exportS3Method marginaleffects::set_coef
set_coef.gradops_fit <- function(model, coefs, ...) {
  model$coefficients[] <- coefs
  model$parameters <- model$objective$parameters(model$coefficients)
  model
}

#' @rdname fit_neighbours
#' @exportS3Method marginaleffects::get_vcov
get_vcov.gradops_fit <- function(model, ...) model$vcov

# marginaleffects accepts models of the classes in this option.
allow_marginaleffects <- function(...) {
  options(marginaleffects_model_classes = base::union(getOption("marginaleffects_model_classes"), "gradops_fit"))
}

await_marginaleffects <- function() {
  setHook(packageEvent("marginaleffects", "onLoad"), allow_marginaleffects)
  if (isNamespaceLoaded("marginaleffects")) allow_marginaleffects()
}

# Profiles -------------------------------------------------------------------------------------------------------------

#' Profiles of a likelihood
#'
#' For each value of one parameter, `profile()` minimises the negative log-likelihood over all others, and returns the
#' signed root of twice the excess over the minimum of the fit. It is a straight line if estimates are exactly normal;
#' comparing it with a normal quantile is a likelihood ratio test.
#' @param fitted A fit of [maximize_likelihood()].
#' @param which Names or positions of parameters.
#' @param level The confidence level that the range of values covers; a little more than the levels you need.
#' @param points The number of values on each side of the estimate.
#' @param x A profile.
#' @param ... Unused, or graphical parameters.
#' @returns A list of class `profile.gradops_fit` of data frames by parameter, with columns `z`, the signed root, and
#'   `value`. `plot()` draws them, with dotted lines at the levels 0.5, 0.8, 0.95 and 0.99, and returns the profile,
#'   invisibly.
#' @section Errors:
#' - `gradops_error_argument`: an unknown parameter.
#' @seealso [maximize_likelihood()], whose `confint()` has `method = "profile"`.
#' @examplesIf gradops_available()
#' nll <- function(p, y) -sum(dexp(y, exp(p$log_rate), log = TRUE))
#' fit <- maximize_likelihood(nll, list(log_rate = 0), c(0.3, 1.1, 2.5, 0.2))
#' plot(profile(fit))
#' @method profile gradops_fit
#' @export
profile.gradops_fit <- function(fitted, which = names(fitted$coefficients), level = 0.99, points = 6, ...) {
  names <- names(fitted$coefficients)
  which <- parameter_places(which, fitted, "which")
  of_one <- function(k) {
    found <- fitted$objective$ask(
      "profile", fitted$coefficients, parameter = k - 1, alpha = 1 - level, points = points,
      lower = fitted$bounds$lower, upper = fitted$bounds$upper, hessian = fitted$hessian
    )
    found <- matrix(as.vector(found), 2L)
    data.frame(z = found[2L, ], value = found[1L, ])
  }
  structure(stats::setNames(lapply(which, of_one), names[which]), class = c("profile.gradops_fit", "profile"))
}

#' @rdname profile.gradops_fit
#' @export
plot.profile.gradops_fit <- function(x, ...) {
  if (length(x) > 1L) {
    before <- graphics::par(mfrow = grDevices::n2mfrow(length(x)))
    on.exit(graphics::par(before))
  }
  for (name in names(x)) {
    graphics::plot(z ~ value, x[[name]], type = "b", xlab = name, ylab = "signed root of the likelihood ratio", ...)
    graphics::abline(h = stats::qnorm(c(0.005, 0.025, 0.1, 0.25, 0.75, 0.9, 0.975, 0.995)), lty = 3L)
  }
  invisible(x)
}
