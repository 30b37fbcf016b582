# RTMB's `sdreport()`: estimates, reported quantities and their standard errors.

# The quantities that `ADREPORT()` reports, and their Jacobian with respect to all parameters.
adreports_of <- function(model, full) {
  found <- at <- list()
  on.exit(state$reported <- NULL)
  if (length(reports_of(function() model$evaluate(model$form(full)), "adreport")) > 0L) {
    reported <- model$of_vector(function(p) {
      # Not in a variable of this function: only a function that changes no variable outside is compiled.
      state$reported <- lapply(reports_of(function() model$evaluate(p), "adreport"), function(x) {
        if (is_sparse_tensor(x) || is_s4_matrix(x)) as.matrix(x) else x
      })
      one_vector(state$reported)
    })
    at <- value_and_jacobian(reported, as.double(full))
    found <- state$reported
  }
  sizes <- vapply(found, length, 0L)
  shapes <- lapply(found, function(x) if (length(dim(x)) > 1L) dim(x))
  values <- stats::setNames(as.double(at$value), rep(names(found), sizes))
  list(values = values, shapes = shapes, sizes = sizes, jacobian = matrix(at$jacobian %||% 0, sum(sizes), length(full)))
}

sd_report <- function(
  obj, par.fixed = NULL, hessian.fixed = NULL, getJointPrecision = FALSE, bias.correct = FALSE, ...,
  getReportCovariance = TRUE
) {
  refuse_unknown("sdreport", list(...), parent.frame())
  if (!is.environment(obj$env) || !is.function(obj$fn)) {
    unsupported("obj", "must be what `MakeADFun()` returns, after its `fn` was minimized.", call = parent.frame())
  }
  if (flag(bias.correct) && is.null(obj$env$random)) {
    rlang::warn("`bias.correct` does nothing without random effects.", call = NULL)
    bias.correct <- FALSE
  }
  model <- obj$env$model
  layout <- model$layout
  full <- if (is.null(par.fixed)) obj$env$last.par.best else c(obj$fn(par.fixed), obj$env$last.par)[-1L]
  theta <- stats::setNames(as.double(par.fixed %||% full[obj$env$lfixed()]), names(obj$par))
  hessian <- flat_named(hessian.fixed %||% model$ask("information", theta), names(theta))
  covariance <- attempt(solve(hessian), function(error) hessian * NaN)
  reports <- adreports_of(model, obj$env$values_of(full))
  shape <- length(reports$values)
  cov <- matrix(model$ask("propagated", theta, covariance = covariance, jacobian = reports$jacobian), shape, shape)
  effects <- full[obj$env$random]
  spread <- if (length(effects) > 0L) as.vector(model$ask("random_sd", theta, covariance = covariance))^2
  structure(
    list(
      value = reports$values, sd = sqrt(diag(cov)), cov = if (getReportCovariance) cov, par.fixed = theta,
      cov.fixed = covariance,
      pdHess = !anyNA(hessian) && all(eigen(hessian, TRUE, only.values = TRUE)$values > 0),
      gradient.fixed = obj$gr(theta), par.random = effects, diag.cov.random = spread,
      jointPrecision = if (getJointPrecision) model$precision(theta), env = obj$env, reports = reports,
      unbiased = if (bias.correct && shape > 0L) list(value = unbiased(obj, theta, reports$values), sd = NA_real_)
    ),
    class = c("gradops_sdreport", "sdreport")
  )
}

# The means of the reports over the random effects instead of their values at the mode: add `.epsilon` times the reports
# to the joint likelihood; at `.epsilon` = 0 the gradient of the approximate likelihood gives the means (Thorson &
# Kristensen 2016).
unbiased <- function(obj, theta, reported) {
  func <- obj$env$func
  start <- c(obj$env$parameters, list(.epsilon = 0 * as.double(reported)))
  joint <- function(p) {
    at <- function() tensor_aware(func)(p[names(obj$env$parameters)])
    at() + sum(p$.epsilon * one_vector(reports_of(at, "adreport")))
  }
  layout <- obj$env$model$layout
  model <- likelihood_of(joint, start, unique(layout$tops[layout$random]), obj$env$map) # as TMB, profiled ones too
  found <- model$gr(c(theta, start$.epsilon))
  stats::setNames(found[-seq_along(theta)], names(reported))
}

#' @export
summary.gradops_sdreport <- function(
  object, select = c("all", "fixed", "random", "report"), p.value = FALSE, ... # nolint: object_name_linter. TMB's name.
) {
  tables <- list(
    fixed = cbind(object$par.fixed, sqrt(diag(as.matrix(object$cov.fixed)))),
    random = cbind(object$par.random, sqrt(as.double(object$diag.cov.random))),
    report = cbind(object$value, as.double(object$sd))
  )
  shown <- chosen(select, several = TRUE)
  if ("all" %in% shown) shown <- names(tables)
  table <- do.call(rbind, tables[shown])
  colnames(table) <- c("Estimate", "Std. Error")
  if (!is.null(object$unbiased) && "report" %in% shown) {
    value <- rep(NA_real_, nrow(table) - length(object$value))
    table <- cbind(table, `Est. (bias.correct)` = c(value, object$unbiased$value), `Std. (bias.correct)` = NA_real_)
  }
  if (p.value) {
    z <- table[, 1L] / table[, 2L]
    table <- cbind(table, `z value` = z, `Pr(>|z^2|)` = stats::pchisq(z^2, 1, lower.tail = FALSE))
  }
  table
}

#' @export
print.gradops_sdreport <- function(x, ...) {
  cat("sdreport(.) result\n")
  print(summary(x, "fixed"))
  if (!x$pdHess) cat("Warning:\nHessian of fixed effects was not positive definite.\n")
  cat("Maximum gradient component:", max(abs(x$gradient.fixed)), "\n")
  invisible(x)
}

#' @export
as.list.gradops_sdreport <- function(x, what = "Estimate", report = FALSE, ...) {
  column <- pmatch(what, c("Estimate", "Std. Error"))
  if (is.na(column)) refuse_parameters("what", "is \"Estimate\" or \"Std. Error\"", parent.frame())
  if (report) {
    parts <- split(summary(x, "report")[, column], rep(seq_along(x$reports$sizes), x$reports$sizes))
    in_form <- function(part, shape) if (is.null(shape)) unname(part) else array(part, shape)
    parts <- Map(in_form, parts, x$reports$shapes)
    return(stats::setNames(parts, names(x$reports$sizes)))
  }
  layout <- x$env$model$layout
  values <- if (column == 1L) layout$values else rep(NA_real_, length(layout$values))
  values <- ifelse(is.na(estimated_places(layout)), values, summary(x, "fixed")[estimated_places(layout), column])
  at <- estimated_places(layout, random = TRUE)
  values <- ifelse(is.na(at), values, summary(x, "random")[at, column])
  x$env$model$form(as.double(values))
}
