# Likelihoods of named parameters with random effects, and fits. The model is in Python; each evaluation is one call.

#' Maximum likelihood
#'
#' Minimises a negative log-likelihood by [stats::nlminb()] with the exact gradient, followed by a few Newton steps. The
#' fit has standard errors, intervals and R's functions for fits. The Hessian for standard errors comes from differences
#' of the exact gradient if these give six digits, else it is exact. Parameters in `random` are integrated out by the
#' Laplace approximation, whose gradient is exact as well (see [objective()]).
#'
#' @section Methods:
#' `coef()`, `vcov()`, `logLik()` (and so `AIC()` and `BIC()`), `nobs()`, `deviance()`, `confint()`, `summary()`,
#' `df.residual()`, `update()`, and `anova()` for likelihood ratio tests of nested fits. `predict(fit, g)` gives the
#' estimate and, by the delta method, the standard error of any function `g` of the parameters; the uncertainty of
#' random effects is included. Without `g` it returns the quantities that the likelihood reports (see [report()]), with
#' `newdata` for other data, and `fitted()` the vector it reports for the rows of the data. `nlme::ranef()` returns the
#' random effects.
#'
#' If observations are marked (see [observed()]), `simulate()` draws new ones, and with `use.u = FALSE` new random
#' effects for them. `residuals()` returns one-step-ahead residuals: the normal quantile of each observation's
#' probability given those before it, with random effects integrated out; for counts, at a random point between the
#' probabilities below the count and up to it. They are independent and standard normal if the model is right. `"cdf"`
#' computes these probabilities by the Laplace approximation (without random effects they are exact). `"gaussian"` is
#' exact if observations and random effects are jointly normal. `"slope"` treats each observation, given those before
#' it, as normal, with the value and the slope of its density; `"mode"` does so with the mode and the curvature there
#' (`NA` if there is no mode). `"integral"` integrates the density, or sums it over integers: it needs no `p` function,
#' is the most accurate with random effects, and takes longest. In this order they are TMB's methods `"cdf"`,
#' `"fullGaussian"`, `"oneStepGaussianOffMode"`, `"oneStepGaussian"` and `"oneStepGeneric"`.
#' @param nll The negative log-likelihood: a function of the parameters, in the form of `start`, and of `data` if given;
#'   ordinary R code as for [gradient()].
#' @param start The starting values: a named list of numbers, vectors and matrices, or a vector. The elements of a
#'   vector without names are the parameters `p1`, `p2`, ...
#' @param data The second argument of `nll`, passed unchanged.
#' @param random Names of parameters that are random effects.
#' @param map A named list with an entry for each parameter to fix or share: `NA` fixes it at its start; a factor of its
#'   length makes elements with equal levels one parameter and fixes elements with `NA`.
#' @param transforms A named list of transforms that keep parameters positive, within an interval, ... (see
#'   [transforms]). The coefficients are free numbers, called "name (free)"; `parameters` and `errors` of the fit (by
#'   the delta method) refer to the transformed parameters. A map refers to the free numbers.
#' @param integrate If `TRUE`, each random effect is integrated out by quadrature instead of the Laplace approximation;
#'   random effects have to be independent of each other given the parameters. The nodes are around the mode and reach
#'   20 standard deviations; give two numbers to set the ends yourself.
#' @param lower,upper Bounds: a number, or a named list or vector of numbers for some parameters.
#' @param nobs The number of observations; by default the rows or the length of `data`, if it has any.
#' @param control As for [stats::nlminb()]; with random effects `rel.tol` is 1e-12 by default.
#' @param object A fit.
#' @param parm Names or positions of parameters.
#' @param level A confidence level.
#' @param method For `confint()`, `"wald"` (from standard errors) or `"profile"` (from the likelihood, with the other
#'   parameters optimised at each value); for `residuals()`, `"cdf"`, `"gaussian"`, `"slope"`, `"integral"` or `"mode"`.
#' @param g A function of all parameters, in the form of `start`, that returns a vector; or names of reported
#'   quantities, by default all.
#' @param newdata Data in place of the fit's, for reported quantities. Columns that it lacks, such as the response, are
#'   `NA`.
#' @param nsim,seed The number of simulations; a seed for them, or `NULL`.
#' @param use.u If `TRUE`, simulations keep the random effects at their mode.
#' @param se.fit If `TRUE`, return standard errors as well.
#' @param ... Other fits for `anova()`; otherwise unused.
#' @returns A list of class `gradops_fit`: `coefficients`; `vcov`; `value`, the negative log-likelihood; `parameters`,
#'   all in the form of `start`, random effects at their mode, and `errors`, their standard errors or deviations;
#'   `hessian`; `problems`, strings that describe problems; `objective`, see [objective()]; `data`; `search`, the result
#'   of [stats::nlminb()].
#'
#' `predict()` returns `g`'s value, or a list of the reported quantities; with `se.fit` a list of `fit` and `se.fit`.
#' `simulate()` returns a data frame with a column for each simulation, or a list of data frames if several vectors are
#' marked; `residuals()` a vector, or a list of them. The standard error of a parameter at a bound is `NA`. If some
#' direction of the parameters is not identified, all standard errors are `NA`, and the warning
#' `gradops_warning_inference` names the direction.
#' @section Errors:
#' - `gradops_error_inference`: the likelihood is NaN at the start, or its gradient at a step; a random effect has no
#'   curvature.
#' - `gradops_error_argument`: `simulate()`, `residuals()` or `fitted()` of a likelihood that marks no observations, or
#'   reports no vector for them; an unknown name in `random`, `map`, `transforms`, `lower`, `upper` or `parm`; a map
#'   whose length differs from its parameter; a list without names, or a vector in which some elements have none; a
#'   start outside the range of its transform, or bounds for a parameter that has one; a transform of a random effect.
#' - `gradops_error_type`: parameters that are not numbers; transforms that are not transforms.
#' - `gradops_error_callback`: an error in `nll`.
#' @references Thygesen, Albertsen, Berg, Kristensen and Nielsen (2017), Validation of ecological state space models
#'   using the Laplace approximation.
#' @seealso [objective()] for other optimisers; [observed()]; [transforms].
#' @examplesIf gradops_available()
#' counts <- data.frame(x = 0:4, y = c(1, 1, 4, 5, 11))
#' nll <- function(p, data) -sum(dpois(data$y, exp(p$intercept + p$slope * data$x), log = TRUE))
#' fit <- maximize_likelihood(nll, list(intercept = 0, slope = 0), counts)
#' fit
#' coef(glm(y ~ x, poisson, counts))
#' fit$objective$gr(coef(fit)) # is 0
#' confint(fit, method = "profile")
#' predict(fit, function(p) exp(p$intercept + p$slope * 5), se.fit = TRUE)
#'
#' # groups with their own intercepts
#' y <- c(5, 6, 5.5, 8, 8.2, 7.7, 4, 4.1, 3.6, 6, 6.6, 6.2)
#' herds <- data.frame(id = rep(1:4, each = 3), y)
#' joint <- function(p, data) {
#'   seen <- sum(dnorm(data$y, p$mean + p$u[data$id], exp(p$log_sd), log = TRUE))
#'   -seen - sum(dnorm(p$u, 0, exp(p$log_tau), log = TRUE))
#' }
#' start <- list(mean = 5, log_sd = 0, log_tau = 0, u = numeric(4))
#' maximize_likelihood(joint, start, herds, random = "u")
#' @export
maximize_likelihood <- function(
  nll, start, data = NULL, random = NULL, map = NULL, lower = -Inf, upper = Inf, transforms = NULL,
  integrate = FALSE, nobs = NULL, control = list()
) {
  if (inherits(nll, "formula")) {
    message <- "must be a function, the negative log-likelihood; `model.matrix()` makes the columns of a formula"
    refuse_parameters("nll", message, rlang::current_env())
  }
  check_function(nll)
  model <- likelihood_of(nll, start, random, map, data, transforms = transforms, integrate = integrate)
  theta <- model$par
  bounds <- list(
    lower = bounds_of(lower, -Inf, model, "lower", rlang::current_env()),
    upper = bounds_of(upper, Inf, model, "upper", rlang::current_env())
  )
  model$ask("check", theta)
  here_called <- rlang::current_env()
  bar <- if (shows_progress()) cli::cli_progress_bar("fit", total = NA, .envir = here <- rlang::current_env())
  fn <- function(x) {
    if (!is.null(bar)) cli::cli_progress_update(id = bar, .envir = here)
    model$value(x)
  }
  gr <- function(x) {
    slopes <- model$gr(x)
    if (anyNA(slopes)) refuse_slopes(slopes, x, theta, model$value(x), here_called)
    slopes
  }
  # nlminb()'s default tolerance leaves an error of 1e-3 standard errors, and then the Hessian at the end has to be
  # taken twice; with random effects this takes longer than the last steps of the search.
  if (length(model$random) > 0L) control <- utils::modifyList(list(rel.tol = 1e-12), as.list(control))
  search <- suppressWarnings(
    stats::nlminb(theta, fn, gr, lower = bounds$lower, upper = bounds$upper, control = control)
  )
  found <- model$ask("finished", search$par, lower = bounds$lower, upper = bounds$upper)
  names <- names(theta)
  problems <- as.character(unlist(found$problems))
  fit <- structure(
    list(
      coefficients = stats::setNames(as.vector(found$theta), names),
      vcov = flat_named(found$covariance, names), value = as.vector(found$value),
      parameters = model$form(as.vector(found$parameters)),
      errors = model$form(missing_for_nan(as.vector(found$errors))),
      hessian = flat_named(found$hessian, names), problems = problems, bounds = bounds,
      free = stats::setNames(as.vector(found$free) == 1, names),
      objective = model, search = search, nobs = nobs %||% observations(data), data = data, call = match.call()
    ),
    class = "gradops_fit"
  )
  for (problem in problems) {
    rlang::warn(problem, class = c("gradops_warning_inference", "gradops_warning"), call = NULL)
  }
  fit
}

# Raise an error for a gradient that is not a number.
refuse_slopes <- function(slopes, x, theta, value, call) {
  at <- paste0(names(theta), " = ", format(as.vector(x), digits = 4, trim = TRUE))
  abort(
    c(
      sprintf(
        "the gradient of `nll` with respect to `%s` is NaN at %s, where `nll` is %s.",
        names(theta)[which(is.na(slopes))[1L]], paste(utils::head(at, 5L), collapse = ", "), format(value, digits = 4)
      ),
      i = "`nll` is the negative log-likelihood. If it has no minimum, give bounds; if it has one, start closer to it."
    ),
    class = c("gradops_error_inference", "gradops_error"), argument = "nll", call = call
  )
}

# The number of rows or elements; NULL if the data do not determine it.
observations <- function(data) {
  if (is.data.frame(data) || is.matrix(data)) {
    nrow(data)
  } else if (is.list(data)) {
    sizes <- unique(vapply(data, NROW, 0L))
    if (length(sizes) == 1L) sizes
  } else if (is.atomic(data) && length(data) > 0L) {
    length(data)
  }
}

missing_for_nan <- function(x) replace(x, is.nan(x), NA)

flat_named <- function(x, names) {
  matrix(missing_for_nan(as.vector(x)), length(names), length(names), dimnames = list(names, names))
}

# A bound for each estimated parameter: one number for all, or numbers by name, with `default` for the others.
bounds_of <- function(bound, default, model, argument, call) {
  named <- names(bound)
  both <- if (is.null(named)) model$transformed[any(is.finite(unlist(bound)))] else intersect(named, model$transformed)
  if (length(both) > 0L) {
    refuse_parameters(argument, sprintf("`%s` has a transform, which has its own bounds", both[1L]), call)
  }
  if (is.null(named) && length(bound) %in% c(1L, length(model$par))) {
    return(rep_len(as.double(unlist(bound)), length(model$par)))
  }
  if (is.null(named)) refuse_parameters(argument, "must be a number, or have the names of parameters", call)
  found <- rep(default, length(model$par))
  for (name in named_among(named, c(model$tops, names(model$par)), argument, call)) {
    places <- if (name %in% model$tops) model$tops == name else names(model$par) == name
    found[places] <- as.double(bound[[name]])
  }
  found
}

# objective() for parameters with a start.
started <- function(f, start, random, map, transforms, integrate, data, call) {
  if (is.null(start) || !is.null(data)) {
    refuse_parameters("start", "is needed for `random`, `map` and `transforms`, and does not go with `data`", call)
  }
  likelihood_of(f, start, random, map, transforms = transforms, integrate = integrate, call = call)
}

# The model of a negative log-likelihood: its functions for optimisers, and `ask(question, theta, ...)` for the methods of
# Questions in interop/r/likelihoods.py. `single` raises an error for a value of several numbers, as TMB does; their sum
# is minimised otherwise.
likelihood_of <- function(
  f, start, random, map, data = NULL, profile = NULL, transforms = NULL, integrate = FALSE, fixed = FALSE,
  single = FALSE, call = parent.frame()
) {
  needed <- names(Filter(function(value) identical(value, quote(expr = )), as.list(formals(args(f)))))
  if (length(setdiff(needed, "...")) > 1L + !is.null(data)) {
    abort(
      c(
        sprintf("The likelihood must be a function of %s.", if (is.null(data)) "one argument" else "two arguments"),
        i = "All parameters are one argument, in the form of `start`."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = "nll", call = call
    )
  }
  parameters <- parameters_of(start, c(random, profile), map, transforms, call)
  kinds <- parameters$random + parameters$tops %in% profile
  vector <- parameter_function(f, parameters$layout, parameters$is_list, data, single)
  run <- compiled_calls(vector, function(f, here, compiled) {
    call_core(
      "interop.r.likelihoods.likelihood", callback(differentiated(f, here), owner = here), parameters$values,
      paste(parameters$names, collapse = "\037"), as.double(kinds), as.double(parameters$labels),
      parameters$parts, integrate
    )
  }, if (any(parameters$random)) direct_caller else likelihood_caller, fixed)
  ask <- function(question, theta, ...) {
    members <- list(question = question, ...) # here, as no random numbers may be drawn in a trace
    before <- state$likelihood
    on.exit(state$likelihood <- before)
    state$likelihood <- TRUE
    run(list(as.double(theta)), members = members)
  }
  free <- !duplicated(parameters$labels) & parameters$labels >= 0
  par <- stats::setNames(parameters$values, parameters$names)[free & !parameters$random]
  last <- list()
  evaluations <- 0
  evaluated <- function(theta, question = "value_and_grad") {
    theta <- as.double(theta)
    known <- identical(theta, last$theta)
    if (!known) evaluations <<- evaluations + 1
    if (!known || question == "value_and_grad" && is.null(last$derivative)) {
      last <<- ask(question, theta)
      last$theta <<- theta
    }
    last
  }
  form <- function(x) like_start(x, parameters)
  everything <- function(x) as.vector(ask("parameters", x))
  given <- data
  evaluate <- function(p, data = given) if (is.null(data)) tensor_aware(f)(p) else tensor_aware(f)(p, data)
  draw <- function(x, use.u = FALSE) { # nolint: object_name_linter.
    p <- form(everything(x))
    simulated(function(observe) evaluate(if (use.u) p else marked_effects(p, parameters, observe)))
  }
  structure(
    list(
      par = par,
      fn = function(x) as.vector(evaluated(x)$value),
      gr = function(x) stats::setNames(as.vector(evaluated(x)$derivative), names(par)),
      # for a search, which needs fewer gradients than values: with random effects a gradient takes as long as the value
      value = function(x) as.vector(evaluated(x, if (any(parameters$random)) "value" else "value_and_grad")$value),
      he = function(x) flat_named(ask("hessian", x), names(par)),
      evaluations = function() evaluations,
      random = parameters$names[free & parameters$random],
      random_places = which(parameters$layout$random)[free[parameters$random]],
      random_tops = unique(parameters$tops[parameters$random]),
      parameters = function(x) form(everything(x)),
      report = function(x = par) reports_of(function() evaluate(form(everything(x)))),
      simulate = function(x = par, use.u = FALSE) { # nolint: object_name_linter. lme4's name.
        found <- draw(x, use.u)$drawn
        check_marked(names(found))
        found
      },
      draw = draw,
      residuals = function(x = par, method = "cdf", turns = function(names) rep(1, length(names)), ...) {
        one_step_residuals(f, parameters, data, everything(x), method, turns, ...)
      },
      precision = function(x) joint_precision(x, ask, par, parameters$names[free & parameters$random]),
      importance = function(x = par, draws = 1000) {
        check_has_effects(parameters)
        found <- as.vector(ask("importance", x, draws = draws, seed = sample.int(1e9L, 1L)))
        stats::setNames(found, c("value", "error"))
      },
      names = parameters$titles, form = form, ask = ask, evaluate = evaluate, layout = parameters,
      tops = parameters$tops[free & !parameters$random], transformed = names(transforms),
      of_vector = function(g) parameter_function(g, parameters$layout, parameters$is_list, NULL)
    ),
    class = c("gradops_likelihood", "gradops_objective"), explain = attr(run, "explain")
  )
}

# The parameters as one vector with names, and which of them are random, fixed or shared.
parameters_of <- function(start, random, map, transforms, call) {
  is_list <- is.list(start)
  parts <- if (is_list) start else list(start)
  numeric <- vapply(parts, function(x) is.numeric(x) && !is.object(x), TRUE)
  if (!all(numeric) || length(parts) == 0L) {
    abort(
      "`start` must be a named list of numbers, vectors and matrices, or a named vector.",
      class = c("gradops_error_type", "gradops_error"), argument = "start", call = call
    )
  }
  if (!is_list && is.null(names(start))) parts[[1L]] <- start <- numbered(start)
  names <- names(unlist(start))
  tops <- if (is_list) rep(names(start), lengths(start)) else names
  if (is.null(tops) || any(!nzchar(tops)) || is_list && anyDuplicated(names(start))) {
    refuse_parameters("start", "the parameters need different names", call)
  }
  parts <- lapply(parts, function(x) {
    storage.mode(x) <- "double"
    x
  })
  known <- if (is_list) names(start) else tops # also names of parameters without elements
  titles <- names
  of_layout <- tops %in% random
  parts_free <- NULL
  if (length(transforms) > 0L) {
    pieces <- if (is_list) parts else as.list(parts[[1L]])
    of_piece <- factor(rep(seq_along(pieces), lengths(pieces)), seq_along(pieces))
    found <- free_pieces(pieces, known, split(names, of_piece), transforms, random, call)
    tops <- rep(known, vapply(found, function(piece) length(piece$values), 0L))
    names <- as.character(unlist(lapply(found, `[[`, "names")))
    values <- as.double(unlist(lapply(found, `[[`, "values")))
    parts_free <- unname(lapply(found, `[[`, "part"))
  } else {
    values <- as.double(unlist(parts))
  }
  labels <- seq_along(tops) - 1
  for (name in named_among(names(map), known, "map", call)) {
    places <- which(tops == name)
    given <- map[[name]]
    if (length(given) == 1L && is.na(given)) given <- rep(NA, length(places))
    if (length(given) != length(places)) {
      refuse_parameters("map", sprintf("`%s` has %d elements, its map %d", name, length(places), length(given)), call)
    }
    labels[places] <- ifelse(is.na(given), -1, places[match(given, given)] - 1)
  }
  random <- tops %in% named_among(random, known, "random", call)
  list(
    values = values, names = names, titles = titles, parts = parts_free, random = random, labels = labels,
    is_list = is_list, tops = tops, start = start,
    layout = list(
      names = if (is_list) names(start), sizes = lengths(parts, use.names = FALSE),
      attributes = lapply(unname(parts), attributes), form = NULL, random = of_layout
    )
  )
}

# Name the elements of a vector without names p1, p2, ..., as optim() takes such a vector.
numbered <- function(start) {
  names(start) <- paste0("p", seq_along(start))
  start
}

named_among <- function(given, known, argument, call) {
  unknown <- setdiff(given, known)
  if (length(unknown) > 0L) {
    refuse_parameters(argument, sprintf("there is no parameter `%s` among %s", unknown[1L], quoted_names(known)), call)
  }
  given
}

refuse_parameters <- function(argument, message, call) {
  abort(
    sprintf("`%s`: %s.", argument, message),
    class = c("gradops_error_argument", "gradops_error"), argument = argument, call = call
  )
}

# Raise an error for the first argument that a method of fits does not have.
refuse_more <- function(of, ..., call = parent.frame()) {
  if (...length() > 0L) {
    name <- rlang::names2(substitute(list(...)))[2L]
    message <- sprintf("is not an argument of `%s()`; see `?maximize_likelihood`", of)
    refuse_parameters(if (nzchar(name)) name else "...", message, call)
  }
}

# `f` as a function of one vector of all parameters, or of two vectors, fixed and random; see vector_function() in
# objective.R.
parameter_function <- function(f, layout, is_list, data, single = FALSE) {
  home <- list2env(
    list(.f = f, .arranged = arranged, .layout = layout, .data = data, .single = single_number),
    parent = environment(f) %||% globalenv()
  )
  form <- if (is_list) quote(.arranged(v, .layout, u)) else quote(.arranged(v, .layout, u)[[1L]])
  body <- if (is.null(data)) bquote(.f(.(form))) else bquote(.f(.(form), .data))
  if (single) body <- bquote(.single(.(body)))
  rlang::new_function(formals(function(v, u = NULL) NULL), body, home)
}

single_number <- function(value) {
  if ((is.numeric(value) || is_any_tensor(value)) && !isTRUE(length(value) == 1L)) {
    abort(
      sprintf("`func` must return one number; got %d. Is a `sum()` missing?", length(value)),
      class = c("gradops_error_shape", "gradops_error"), argument = "func", call = NULL
    )
  }
  value
}

# Numbers, one for each parameter, in the form of the start.
like_start <- function(x, parameters) {
  if (parameters$is_list) arranged(x, parameters$layout) else stats::setNames(x, parameters$titles)
}

check_has_effects <- function(parameters) {
  if (!any(parameters$random)) refuse_parameters("random", "there are no random effects to draw", NULL)
}

# The parameters with random effects marked, so that densities draw them.
marked_effects <- function(p, parameters, observe) {
  if (any(parameters$random) && !parameters$is_list) {
    refuse_parameters("start", "must be a list for random effects to be drawn", NULL)
  }
  for (name in unique(parameters$tops[parameters$random])) p[[name]] <- observe(p[[name]], name)
  p
}

joint_precision <- function(theta, ask, par, random) {
  found <- ask("precision", theta, hessian = ask("hessian", theta))
  names <- c(random, names(par))
  methods::new(
    methods::getClass("dgCMatrix", where = asNamespace("Matrix")),
    i = as.integer(found$i), p = as.integer(found$p), x = as.double(found$x), Dim = rep(length(names), 2L),
    Dimnames = list(names, names)
  )
}

#' @export
format.gradops_likelihood <- function(x, ...) {
  shown <- function(names) toString(c(utils::head(names, 6L), if (length(names) > 6L) "..."))
  c(
    sprintf("<likelihood of %s, evaluated %d times>", shown(names(x$par)), x$evaluations()),
    if (length(x$random) > 0L) sprintf("%d random effects: %s", length(x$random), shown(x$random)),
    "par, fn(x), gr(x), he(x): the start, value, gradient, Hessian; parameters(x)"
  )
}
