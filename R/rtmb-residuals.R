# RTMB's `oneStepPredict()` and `checkConsistency()`: residuals, and a check on simulated data.

one_step_predict <- function(
  obj, observation.name = NULL, data.term.indicator = NULL,
  method = c("oneStepGaussianOffMode", "fullGaussian", "oneStepGeneric", "oneStepGaussian", "cdf"), subset = NULL,
  conditional = NULL, discrete = NULL, discreteSupport = NULL, range = c(-Inf, Inf), # nolint: object_name_linter.
  seed = 123, ...
) {
  kind <- switch(chosen(method),
    fullGaussian = "gaussian",
    oneStepGaussianOffMode = "slope",
    oneStepGeneric = "integral",
    oneStepGaussian = "mode",
    cdf = "cdf"
  )
  theta <- obj$env$last.par.best[obj$env$lfixed()]
  turns <- function(names) { # observations of other names are known
    at <- which(names == (observation.name %||% names[1L]))
    subset <<- subset %||% setdiff(seq_along(at), conditional)
    found <- rep(-1, length(names))
    found[at] <- 0
    found[at[conditional]] <- -1
    found[at[subset]] <- seq_along(subset)
    found
  }
  ask <- function() obj$env$model$residuals(theta, kind, turns, range, discreteSupport, discrete)
  residual <- if (is.null(seed)) ask() else withr::with_seed(seed, ask())
  if (is.list(residual)) residual <- residual[[observation.name %||% 1L]]
  data.frame(residual = as.vector(residual)[subset])
}

# At data and random effects that are simulated from the model, the gradients of the joint and of the marginal
# likelihood have mean 0. The data are parameters of two compiled models. As in TMB, the result has a list for each
# simulated data set.
check_consistency <- function(
  obj, par = NULL, hessian = FALSE, estimate = FALSE, n = 100, observation.name = NULL # nolint: object_name_linter.
) {
  optimizer <- if (is.function(estimate)) estimate else function(obj) stats::nlminb(obj$par, obj$fn, obj$gr)
  model <- obj$env$model
  theta <- stats::setNames(obj$env$estimated(par %||% obj$env$last.par.best), names(obj$par))
  parameters <- obj$env$parList(theta)
  random <- model$random_tops
  of <- data_function(obj, random)
  is_fixed <- !of$joint$tops %in% c(random, of$names)
  estimated <- seq_along(theta)
  replicates <- lapply(seq_len(n), function(i) {
    drawn <- model$simulate(theta)
    y <- as.double(unlist(drawn[of$observed]))
    here <- list(
      par = theta, fn = function(x) of$marginal$fn(c(x, y)), gr = function(x) of$marginal$gr(c(x, y))[estimated]
    )
    all <- c(as.double(unlist(replace(parameters, random, drawn[random]))), y)
    found <- list(
      gradientJoint = of$joint$gr(all[are_active(of$joint$layout)])[is_fixed], gradient = here$gr(theta)
    )
    if (flag(hessian)) found$hessian <- unname(of$marginal$he(c(theta, y))[estimated, estimated, drop = FALSE])
    if (!isFALSE(estimate)) found <- c(found, list(objective.true = here$fn(theta), estimate = optimizer(here)))
    found
  })
  structure(replicates, par = theta, class = "gradops_check")
}

#' @export
summary.gradops_check <- function(object, ...) {
  par <- attr(object, "par")
  columns <- function(name, from = object) do.call(cbind, lapply(from, function(one) as.vector(one[[name]])))
  test <- function(scores) {
    mean <- rowMeans(scores)
    shift <- solve(stats::var(t(scores)), mean)
    list(
      p.value = stats::pchisq(ncol(scores) * sum(mean * shift), length(mean), lower.tail = FALSE),
      bias = stats::setNames(-shift, names(par))
    )
  }
  found <- list(par = par, gradientJoint = columns("gradientJoint"), gradient = columns("gradient"))
  found$joint <- test(found$gradientJoint)
  found$marginal <- test(found$gradient)
  estimates <- lapply(unclass(object), `[[`, "estimate")
  if (!is.null(estimates[[1L]])) {
    of_each <- function(name) as.vector(columns(name, estimates))
    deviance <- 2 * (as.vector(columns("objective.true")) - of_each("objective"))
    found$convergence <- of_each("convergence")
    found$estimate <- list(
      par = stats::setNames(as.data.frame(t(columns("par", estimates))), names(par)), objective = of_each("objective"),
      deviance = deviance, deviance.p.value = stats::ks.test(deviance, "pchisq", df = length(par))$p.value
    )
  }
  found
}

#' @export
print.gradops_check <- function(x, ...) {
  found <- summary(x)
  cat("Parameters used for simulation:\n")
  print(found$par)
  cat("\nTest correct simulation (p.value):", format(found$joint$p.value), "\n")
  correct <- if (found$joint$p.value > 0.05) "appears to be correct" else "does *not* appear to be correct !!!"
  cat("Simulation", correct, "\n\nEstimated parameter bias:\n")
  print(found$marginal$bias)
  invisible(x)
}

data_function <- function(obj, random) {
  func <- obj$env$func
  parameters <- obj$env$parameters
  seen <- list()
  observe <- function(x, name) {
    seen[[name]] <<- x
    x
  }
  with_observations(list(observe = observe), func(parameters))
  if (length(seen) == 0L) refuse_parameters("obj", "its objective has no `OBS()`", parent.frame(2L))
  name_of <- function(name) paste0(".obs.", name)
  joint <- function(p) {
    with_observations(list(observe = function(x, name) p[[name_of(name)]]), tensor_aware(func)(p[names(parameters)]))
  }
  start <- c(parameters, stats::setNames(seen, name_of(names(seen))))
  list(
    joint = likelihood_of(joint, start, NULL, obj$env$map), observed = names(seen), names = name_of(names(seen)),
    marginal = likelihood_of(joint, start, random, obj$env$map)
  )
}
