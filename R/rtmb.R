# RTMB's functions by its names, for scripts as they are: faces of likelihood_of() (likelihood.R), and of the marks that
# a likelihood sets (likelihood-marks.R).

#' RTMB's functions, for its scripts as they are
#'
#' After `attach_rtmb()` the functions of the package RTMB have gradops' meaning under their names, on the search path
#' in front of gradops: a script runs with `library(gradops); attach_rtmb()` in place of `library(RTMB)`, which need not
#' be installed. `detach("gradops:rtmb")` undoes it.
#'
#' - `MakeADFun(func, parameters, random, map, profile, integrate, ADreport)`: a list of `par`, `fn`, `gr`, `he`,
#'   `report`, `simulate` and `env`; as [objective()] with `start`. With `ADreport = TRUE`, `fn` gives what `ADREPORT()`
#'   reports at all parameters, `gr` its Jacobian. `parameters` is a named list, or a vector for a function of
#'   one argument. `env` has what `TMB::tmbprofile()`, tmbstan and adnuts read and set: `f(par, order)`, the likelihood
#'   of random effects, too; `last.par`, `last.par.best`, `value.best`, `random`, `lfixed()`, `parList()`, `spHess()`
#'   and so on. `random.start` and `inner.control` may be set, and change nothing: the search for the mode starts at the
#'   last.
#' - `sdreport(obj)`, with `summary()`, `print()` and `as.list(x, "Est")`: estimates, reports and their standard errors.
#' - In the objective: `getAll()`, `REPORT()`, `ADREPORT()`, `OBS()`, `y %~% dnorm(mu, sd)`, `AD()`, `ADoverload()`.
#' - `oneStepPredict()` and `checkConsistency()`: residuals, and a check of the gradient on simulated data.
#' - `MakeTape()` with its methods `jacobian()`, `jacfun()`, `laplace()`, `newton()`; `DataEval()`, `ADjoint()`.
#' - `dmvnorm()`, `dgmrf()`, `dautoreg()`, `dseparable()`, `unstructured()`; `dbinom_robust()`, `dnbinom2()`,
#'   `dnbinom_robust()`, `dtweedie()`, `dcompois()`, `dcompois2()`, `dlgamma()`, `dSHASHo()`, `dsn()`, `logspace_add()`,
#'   `logspace_sub()`, `interpol1Dfun()`, `interpol2Dfun()`, `expAv()`.
#'
#' Everything else that RTMB overloads, the densities of stats, `[<-`, matrices, takes tensors anyhow. Where RTMB is not
#' installed, `RTMB::name` is the function of this name.
#'
#' @section Differences:
#' Hessians with random effects are by differences of the exact gradient. `integrate =` takes `GK()`, `SR(x)`
#' and `LA()` for random effects that are independent of each other given the parameters: quadrature at nodes about the
#' mode, or between the ends of `x`; others are an error.
#' `sdreport(bias.correct = TRUE)` has no standard errors of what it corrects. `oneStepPredict()` knows counts, positive
#' numbers and Tweedie's probability of 0 by their densities: `discrete`, `range` and `discreteSupport` may be left out,
#' and `"oneStepGeneric"` integrates without TMB's splines, whose settings it ignores. Models and tapes have the
#' data of the time when they were made; the function runs at the first evaluation, where its errors are seen.
#' Elements that a map makes one parameter come in `obj$par` in the order in which the map has them, and with a warning
#' where that of the factor's levels, which is TMB's, is another. The function of `ADjoint()` gets plain numbers, as
#' RTMB's, and `complex = TRUE` is an error.
#' Tapes are functions that are differentiated as they run:
#' `simplify()`, `reorder()` and `atomic()` give them as they are, `print()` and `graph()` have nothing to show.
#' @returns The name of what is attached, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: what `MakeADFun()`, `sdreport()` or `oneStepPredict()` do not know, which it names.
#' - `gradops_error_inference`: see [maximize_likelihood()].
#' @references Kristensen, Nielsen, Berg, Skaug and Bell (2016), TMB: Automatic differentiation and Laplace
#'   approximation.
#' @seealso [maximize_likelihood()], [objective()].
#' @examplesIf gradops_available()
#' attach_rtmb()
#' herds <- list(id = rep(1:4, each = 3), y = c(5, 6, 5.5, 8, 8.2, 7.7, 4, 4.1, 3.6, 6, 6.6, 6.2))
#' f <- function(parms) {
#'   getAll(herds, parms)
#'   y <- OBS(y)
#'   u %~% dnorm(mean, exp(logtau))
#'   y %~% dnorm(u[id], exp(logsd))
#'   tau <- exp(logtau)
#'   ADREPORT(tau)
#' }
#' obj <- MakeADFun(f, list(mean = 5, logsd = 0, logtau = 0, u = numeric(4)), random = "u", silent = TRUE)
#' opt <- nlminb(obj$par, obj$fn, obj$gr)
#' summary(sdreport(obj))
#' detach("gradops:rtmb")
#' @export
attach_rtmb <- function() {
  attach_to_search <- get("attach", baseenv())
  if (!has_rtmb_names()) attach_to_search(rtmb_faces(), name = rtmb_place, warn.conflicts = FALSE)
  invisible(rtmb_place)
}

rtmb_place <- "gradops:rtmb"

has_rtmb_names <- function() rtmb_place %in% search()

# By RTMB's names. Their environments are below gradops' own, so that adapted code takes them for what they are.
rtmb_faces <- function() {
  below <- new.env(parent = topenv())
  prefixes <- if (!rlang::is_installed("RTMB")) list(`::` = prefix_rtmb("::"), `:::` = prefix_rtmb(":::"))
  lapply(c(rtmb_models(), rtmb_functions(), rtmb_observed(), prefixes), function(f) {
    if (identical(environment(f), topenv())) environment(f) <- below
    f
  })
}

# `RTMB::name`, and `pkg::name` of other packages as ever.
prefix_rtmb <- function(operator) {
  original <- get(operator, baseenv())
  function(pkg, name) {
    if (as.character(substitute(pkg)) == "RTMB") {
      return(get(as.character(substitute(name)), as.environment(rtmb_place)))
    }
    eval.parent(as.call(list(original, substitute(pkg), substitute(name))))
  }
}

rtmb_models <- function() {
  list(
    MakeADFun = make_ad_fun, sdreport = sd_report, checkConsistency = check_consistency,
    oneStepPredict = one_step_predict
  )
}

# In the objective -----------------------------------------------------------------------------------------------------

report_rtmb <- function(x) noted(x, substitute(x), "report")

ad_report_rtmb <- function(x) noted(x, substitute(x), "adreport")

noted <- function(x, code, kind) {
  if (!is.null(state$marks$reports)) record(stats::setNames(list(x), deparse1(as_written(code))), kind)
  invisible(x)
}

obs_rtmb <- function(x) observed(x, last_name(substitute(x)))

get_all <- function(..., warn = TRUE) {
  frame <- parent.frame()
  for (part in list(...)) {
    for (name in names(part)) {
      if (warn && exists(name, envir = frame, inherits = FALSE)) {
        rlang::warn(sprintf("`getAll()`: `%s` is there already, and is now another.", name), call = NULL)
      }
      assign(name, part[[name]], envir = frame)
    }
  }
  invisible()
}

# The sum is kept in the frame of the objective, which returns it in the end.
failed_function <- "<failed>"

tilde_rtmb <- function(x, distr) {
  frame <- parent.frame()
  if (!exists(".nll", envir = frame, inherits = FALSE)) {
    assign(".nll", 0, envir = frame)
    # `return()` at the end of a function that failed would hide the error, and give a part of the sum.
    at_end <- bquote(if (!identical(returnValue(.(failed_function)), .(failed_function))) return(.nll))
    do.call(base::on.exit, list(at_end, TRUE), envir = frame)
  }
  code <- as.list(substitute(distr))
  density <- as.call(c(code[1L], substitute(x), code[-1L], log = TRUE))
  assign(".nll", get(".nll", envir = frame) - sum(eval(density, frame)), envir = frame)
  invisible()
}

# MakeADFun() ----------------------------------------------------------------------------------------------------------

# The frame is the `env` of the object, as TMB's is: packages read and set what has TMB's names in it.
make_ad_fun <- function( # nolint: cyclocomp_linter. Its frame has what it makes.
  func, parameters, random = NULL, profile = NULL, integrate = NULL, intern = FALSE, map = list(), ADreport = FALSE,
  silent = FALSE, ...
) {
  refuse_unknown("MakeADFun", list(...), parent.frame())
  if (is.list(func)) func <- attr(func, "func") # `obj$env$data`, for which TMB's copies of an object have it
  func <- match.fun(func)
  if (is.numeric(parameters)) {
    parameters <- stats::setNames(list(parameters), one_argument(func))
    func <- list_form(func)
  }
  if (!is.null(random)) random <- grep_names(random, names(parameters))
  if (!is.null(profile)) profile <- grep_names(profile, names(parameters))
  random <- setdiff(random, profile)
  if (flag(ADreport)) random <- profile <- integrate <- NULL # the reports are of all parameters
  integrate <- integral_of(integrate, random, parent.frame())
  parameters <- with_shared_starts(parameters, map)
  model <- likelihood_of(
    func, parameters, random, map, profile = profile, integrate = integrate, fixed = TRUE, single = TRUE,
    call = parent.frame()
  )
  layout <- model$layout
  model$par <- stats::setNames(model$par, model$tops)
  env <- environment()
  env$data <- structure(list(), func = func)
  env$DLL <- "gradops"
  env$ADFun <- list(ptr = methods::new("externalptr"), DLL = "gradops") # tmbstan then calls `fn` and `gr`
  is_active <- are_active(layout)
  is_random <- layout$random[is_active]
  profile <- if (!is.null(profile)) as.integer(layout$tops[is_active][is_random] %in% profile)
  random <- if (any(is_random)) which(is_random)
  par <- stats::setNames(layout$values, layout$tops)[is_active]
  lrandom <- function() is_random
  lfixed <- function() !is_random
  # Everything where the model is not: random effects at their mode.
  full <- function(x) {
    if (length(x) == length(par)) {
      return(x)
    }
    stats::setNames(as.double(unlist(model$parameters(x)))[is_active], names(par))
  }
  estimated <- function(x) if (length(x) == length(par)) x[!is_random] else x
  values_of <- function(x = last.par) expanded(full(x), layout)
  value.best <- Inf
  # Vectors of all parameters, whose random effects are looked for when they are read.
  for (name in c("last.par", "last.par1", "last.par2", "last.par.best")) {
    makeActiveBinding(name, whole_vector(par, full), env)
  }
  random.start <- expression(last.par.best[random])
  inner.control <- list(maxit = 1000)
  tracepar <- tracemgc <- FALSE
  validpar <- function(x) TRUE
  beSilent <- function() {
    tracemgc <<- FALSE
    silent <<- TRUE
    invisible(NULL)
  }
  parList <- function(x = last.par[lfixed()], par = last.par) {
    par[lfixed()] <- x
    model$form(expanded(par, layout))
  }
  # The negative log-likelihood of random effects, too.
  delayedAssign("joint", if (any(is_random)) {
    likelihood_of(func, parameters, NULL, map, fixed = TRUE, single = TRUE)
  } else {
    model
  })
  f <- function(theta = par, order = 0, type = "ADdouble", ...) {
    last.par <<- theta
    if (!type %in% c("ADdouble", "double")) unsupported("type", "must be \"ADdouble\" or \"double\" here.")
    if (!order %in% 0:2) unsupported("order", "must be 0, 1 or 2.")
    switch(order + 1, joint$fn(theta), matrix(joint$gr(theta), 1L), unname(joint$he(theta)))
  }
  spHess <- function(par = last.par, random = FALSE, ...) {
    found <- methods::as(Matrix::Matrix(unname(joint$he(par)), sparse = TRUE), "CsparseMatrix")
    Matrix::forceSymmetric(if (random) found[is_random, is_random, drop = FALSE] else found, "L")
  }
  fn <- function(x = last.par[lfixed()], ...) {
    if (tracepar) {
      cat("par:\n")
      print(x)
    }
    if (!validpar(x)) {
      return(NaN)
    }
    last.par <<- x
    value <- model$fn(x)
    if (is.finite(value) && value < value.best) {
      value.best <<- value
      last.par.best <<- x
    }
    value
  }
  gr <- function(x = last.par[lfixed()], ...) {
    last.par <<- last.par1 <<- x
    slope <- matrix(model$gr(x), 1L)
    if (tracemgc) cat("outer mgc: ", max(abs(slope)), "\n")
    slope
  }
  he <- function(x = last.par[lfixed()], ...) {
    last.par <<- last.par2 <<- x
    unname(model$he(x))
  }
  if (flag(ADreport)) {
    fn <- function(x = last.par, ...) {
      last.par <<- x
      adreports_of(model, values_of(x))$values
    }
    gr <- function(x = last.par, ...) {
      last.par <<- x
      by_all <- adreports_of(model, values_of(x))$jacobian
      free <- layout$labels >= 0 # an element that a map makes one with others has the sum of their slopes
      unname(t(rowsum(t(by_all[, free, drop = FALSE]), match(layout$labels[free], layout$labels[is_active]))))
    }
    he <- function(...) unsupported("ADreport", "is TRUE: reports have `fn()` and `gr()`, no Hessian.")
  }
  report <- function(par = last.par, ...) reports_of(function() model$evaluate(model$form(values_of(par))))
  simulate <- function(par = last.par, complete = FALSE, ...) {
    all <- if (complete) lapply(data, identity) else list()
    for (part in model$draw(estimated(par))) all[names(part)] <- part
    all
  }
  list(
    par = model$par, fn = fn, gr = gr, he = he, hessian = FALSE, method = "BFGS", retape = function(...) NULL,
    env = env, report = report, simulate = simulate
  )
}

# TMB's settings that change nothing here, of each function.
without_effect <- list(
  MakeADFun = c(
    "data", "type", "random.start", "hessian", "method", "inner.method", "inner.control", "MCcontrol", "atomic",
    "LaplaceNonZeroGradient", "DLL", "checkParameterOrder"
  ),
  sdreport = c("bias.correct.control", "skip.delta.method")
)

# A misspelt argument, or one that would change the result, is an error; `ridge.correct = FALSE` is not.
refuse_unknown <- function(of, given, call) {
  unknown <- setdiff(rlang::names2(given)[!vapply(given, isFALSE, NA)], without_effect[[of]])
  if (length(unknown) > 0L) {
    refuse_parameters(unknown[1L], sprintf("is no argument of `%s()`; `?attach_rtmb` has those that are", of), call)
  }
}

# The name of the argument of a function of a vector of parameters.
one_argument <- function(func) {
  found <- names(formals(args(func)))
  if (length(found) != 1L) {
    refuse_parameters(
      "func", "must have one argument where `parameters` is a vector; give a named list otherwise", parent.frame(2L)
    )
  }
  found
}

# Returns a function of a list that calls `func` with its only element. Adaptation finds names through its environment.
list_form <- function(func) {
  rlang::new_function(
    formals(function(p) NULL), quote(.func(p[[1L]])),
    list2env(list(.func = func), parent = environment(func) %||% globalenv())
  )
}

# A binding to a vector of all parameters. One of the estimated ones alone is made whole when it is read.
whole_vector <- function(value, full) {
  force(value)
  force(full)
  function(new) value <<- if (missing(new)) full(value) else new
}

# The elements that are parameters of their own: neither fixed by a map nor equal to an earlier one.
are_active <- function(layout) !duplicated(layout$labels) & layout$labels >= 0

# All elements of `parameters`, by those that are parameters of their own.
expanded <- function(par, layout) {
  free <- layout$labels >= 0
  as.double(replace(layout$values, free, par[match(layout$labels[free], layout$labels[are_active(layout)])]))
}

# TMB starts elements that a map makes one parameter at the mean of their values.
with_shared_starts <- function(parameters, map) {
  for (name in intersect(names(map), names(parameters))) {
    level <- as.integer(factor(map[[name]]))
    start <- parameters[[name]]
    if (length(level) != length(start)) next # an error of likelihood_of(), or NA for all
    if (is.unsorted(unique(level[!is.na(level)]))) {
      rlang::warn(sprintf(
        "`map`: `obj$par` has the elements of `%s` in the order in which the map has them; TMB's order is by level.",
        name
      ), call = NULL)
    }
    for (i in unique(level[!is.na(level)])) start[which(level == i)] <- mean(start[which(level == i)])
    parameters[[name]] <- start
  }
  parameters
}

# TMB's settings of integrals over random effects: the whole line, between numbers, by the approximation.
gauss_kronrod <- function(...) structure(list(TRUE), class = "GK")

laplace_method <- function(...) structure(list(FALSE), class = "LA")

sequential_reduction <- function(x, discrete = FALSE) {
  if (discrete) {
    refuse_parameters(
      "discrete", "is not known here: add up the probabilities of the states in the objective", parent.frame()
    )
  }
  if (!is.numeric(x) || length(x) < 2L || is.unsorted(x, strictly = TRUE)) {
    refuse_parameters("x", "must be numbers that grow", parent.frame())
  }
  structure(list(as.double(range(x))), class = "SR")
}

integral_of <- function(integrate, random, call) {
  flat <- list()
  for (i in seq_along(integrate)) {
    one <- integrate[i]
    flat <- c(flat, if (nzchar(rlang::names2(one))) as.list(one) else one[[1L]])
  }
  for (name in rlang::names2(flat)) {
    if (!nzchar(name) || !inherits(flat[[name]], c("GK", "SR", "LA"))) {
      refuse_parameters("integrate", sprintf("`%s` needs `GK()`, `SR(x)` or `LA()`", name), call)
    }
  }
  flat <- Filter(function(one) !inherits(one, "LA"), flat)
  if (length(flat) == 0L) {
    return(FALSE)
  }
  named_among(names(flat), random, "integrate", call)
  others <- setdiff(random, names(flat))
  if (length(others) > 0L) {
    refuse_parameters(
      "integrate", sprintf("`%s` is random, too: quadrature is over all random effects, or none", others[1L]), call
    )
  }
  domains <- unique(lapply(flat, `[[`, 1L))
  if (length(domains) > 1L) refuse_parameters("integrate", "must have one method for all random effects", call)
  domains[[1L]]
}

# `random` may be a pattern, as TMB's.
grep_names <- function(random, names) {
  unknown <- setdiff(random, names)
  if (length(unknown) == 0L) {
    return(random)
  }
  found <- grep(paste(random, collapse = "|"), names, value = TRUE)
  if (length(found) == 0L) random else found
}

# The places among the estimated parameters, or the random effects, of each parameter; NA of the others.
estimated_places <- function(layout, random = FALSE) {
  free <- are_active(layout)
  match(layout$labels, (seq_along(layout$labels) - 1)[free & layout$random == random])
}

# Standard errors ------------------------------------------------------------------------------------------------------

# The quantities reported at all parameters, with its derivatives by them.
adreports_of <- function(model, full) {
  found <- at <- list()
  on.exit(state$reported <- NULL)
  if (length(reports_of(function() model$evaluate(model$form(full)), "adreport")) > 0L) {
    reported <- model$of_vector(function(p) {
      # Not in a variable of this function's: a program is made of one that changes nothing.
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
  if (flag(bias.correct) && is.null(obj$env$random)) {
    rlang::warn("`bias.correct` does nothing without random effects.", call = NULL)
    bias.correct <- FALSE
  }
  model <- obj$env$model
  layout <- model$layout
  full <- if (is.null(par.fixed)) obj$env$last.par.best else c(obj$fn(par.fixed), obj$env$last.par)[-1L]
  theta <- stats::setNames(as.double(par.fixed %||% full[obj$env$lfixed()]), names(obj$par))
  hessian <- if (is.null(hessian.fixed)) model$he(theta) else as.matrix(hessian.fixed)
  dimnames(hessian) <- list(names(theta), names(theta))
  covariance <- attempt(solve(hessian), function(error) hessian * NaN)
  reports <- adreports_of(model, obj$env$values_of(full))
  shape <- length(reports$values)
  cov <- matrix(model$ask("propagate", theta, c(covariance, t(reports$jacobian))), shape, shape)
  effects <- full[obj$env$random]
  spread <- if (length(effects) > 0L) as.vector(model$ask("spread", theta, covariance))^2
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

# Means of what is reported over the random effects, in place of its values at their mode: the gradient of the
# approximate likelihood by numbers, which are 0, times the reports in the joint one (Thorson & Kristensen 2016).
unbiased <- function(obj, theta, reported) {
  func <- obj$env$func
  start <- c(obj$env$parameters, list(.epsilon = 0 * as.double(reported)))
  joint <- function(p) {
    at <- function() tensor_aware(func)(p[names(obj$env$parameters)])
    at() + sum(p$.epsilon * one_vector(reports_of(at, "adreport")))
  }
  layout <- obj$env$model$layout
  model <- likelihood_of(joint, start, unique(layout$tops[layout$random]), obj$env$map) # of the profiled, too, as TMB
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
  select <- chosen(select)
  shown <- if (select == "all") names(tables) else select
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

# Simulated data and residuals -----------------------------------------------------------------------------------------

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
  turns <- function(names) { # other observations are known
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

# The gradients by the parameters, of the joint likelihood and of the marginal one, have the mean 0 at data and random
# effects that are drawn from the model. The data are parameters of two compiled models. As TMB's, the result has a list
# for each set of data.
check_consistency <- function(
  obj, par = NULL, hessian = FALSE, estimate = FALSE, n = 100, observation.name = NULL # nolint: object_name_linter.
) {
  optimizer <- if (is.function(estimate)) estimate else function(obj) stats::nlminb(obj$par, obj$fn, obj$gr)
  model <- obj$env$model
  theta <- stats::setNames(obj$env$estimated(par %||% obj$env$last.par.best), names(obj$par))
  parameters <- obj$env$parList(theta)
  random <- model$random_tops
  of <- of_any_data(obj, random)
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

of_any_data <- function(obj, random) {
  func <- obj$env$func
  parameters <- obj$env$parameters
  seen <- list()
  observe <- function(x, name) {
    seen[[name]] <<- x
    x
  }
  with_marks(list(observe = observe), func(parameters))
  if (length(seen) == 0L) refuse_parameters("obj", "its objective has no `OBS()`", parent.frame(2L))
  name_of <- function(name) paste0(".obs.", name)
  joint <- function(p) {
    with_marks(list(observe = function(x, name) p[[name_of(name)]]), tensor_aware(func)(p[names(parameters)]))
  }
  start <- c(parameters, stats::setNames(seen, name_of(names(seen))))
  list(
    joint = likelihood_of(joint, start, NULL, obj$env$map), observed = names(seen), names = name_of(names(seen)),
    marginal = likelihood_of(joint, start, random, obj$env$map)
  )
}
