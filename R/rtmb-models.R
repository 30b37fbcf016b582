# RTMB's `MakeADFun()`: an object of a likelihood with TMB's `fn`, `gr`, `he` and `env`.

# The frame of this function is the `env` of the object, as TMB's is: packages read and set TMB's names in it.
make_ad_fun <- function( # nolint: cyclocomp_linter. Its frame is the object's `env`.
  func, parameters, random = NULL, profile = NULL, integrate = NULL, intern = FALSE, map = list(), ADreport = FALSE,
  silent = FALSE, ...
) {
  refuse_unknown("MakeADFun", list(...), parent.frame())
  if (missing(func)) {
    message <- "must be an R function of the parameters; a template in C++ has to be written in R"
    refuse_parameters("func", message, parent.frame())
  }
  if (is.list(func)) func <- attr(func, "func") # from `obj$env$data`, which TMB's copies of an object pass
  func <- match.fun(func)
  if (is.numeric(parameters)) {
    parameters <- stats::setNames(list(parameters), one_argument(func))
    func <- list_form(func)
  }
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
  # All parameters, also where only estimated ones are given: random effects are at their mode.
  full <- function(x) {
    if (length(x) == length(par)) {
      return(x)
    }
    stats::setNames(as.double(unlist(model$parameters(x)))[is_active], names(par))
  }
  estimated <- function(x) if (length(x) == length(par)) x[!is_random] else x
  values_of <- function(x = last.par) expanded(full(x), layout)
  value.best <- Inf
  # Vectors of all parameters; the mode of their random effects is computed when they are read.
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
  # The negative log-likelihood of parameters and random effects.
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
      free <- layout$labels >= 0 # elements that a map makes one: add up their slopes
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

# TMB's settings that have no effect here, by function.
settings_without_effect <- list(
  MakeADFun = c(
    "data", "type", "random.start", "hessian", "method", "inner.method", "inner.control", "MCcontrol", "atomic",
    "LaplaceNonZeroGradient", "DLL", "checkParameterOrder"
  ),
  sdreport = c("bias.correct.control", "skip.delta.method")
)

# Raise an error for a misspelt argument, or one that would change the result; `ridge.correct = FALSE` is allowed.
refuse_unknown <- function(of, given, call) {
  unknown <- setdiff(rlang::names2(given)[!vapply(given, isFALSE, NA)], settings_without_effect[[of]])
  if (length(unknown) > 0L) {
    why <- if (unknown[1L] == "ridge.correct") {
      "is an experiment of RTMB, a correction of terms of Laplace's approximation, that gradops does not have"
    } else {
      sprintf("is not an argument of `%s()`; see `?attach_rtmb`", of)
    }
    refuse_parameters(unknown[1L], why, call)
  }
}

# The name of the only argument of a function of a parameter vector.
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

# An active binding to a vector of all parameters. If only estimated parameters were assigned, reading completes them.
whole_vector <- function(value, full) {
  force(value)
  force(full)
  function(new) value <<- if (missing(new)) full(value) else new
}

# TRUE for elements that are parameters: neither fixed by a map nor equal to an earlier element.
are_active <- function(layout) !duplicated(layout$labels) & layout$labels >= 0

# All elements of `parameters`, computed from the active ones.
expanded <- function(par, layout) {
  free <- layout$labels >= 0
  as.double(replace(layout$values, free, par[match(layout$labels[free], layout$labels[are_active(layout)])]))
}

# TMB starts elements that a map makes one parameter at the mean of their values.
with_shared_starts <- function(parameters, map) {
  for (name in intersect(names(map), names(parameters))) {
    level <- as.integer(factor(map[[name]]))
    start <- parameters[[name]]
    if (length(level) != length(start)) next # `NA` fixes all; else likelihood_of() raises an error
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

# TMB's methods of integration over random effects: quadrature over the whole line or an interval, or the approximation.
gauss_kronrod <- function(...) structure(list(TRUE), class = "GK")

laplace_method <- function(...) structure(list(FALSE), class = "LA")

sequential_reduction <- function(x, discrete = FALSE) {
  if (discrete) {
    refuse_parameters(
      "discrete", "is not supported: add up the probabilities of the states in the objective", parent.frame()
    )
  }
  if (!is.numeric(x) || length(x) < 2L || is.unsorted(x, strictly = TRUE)) {
    refuse_parameters("x", "must be increasing numbers", parent.frame())
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
      "integrate", sprintf("`%s` is also random: use quadrature for all random effects, or none", others[1L]), call
    )
  }
  domains <- unique(lapply(flat, `[[`, 1L))
  if (length(domains) > 1L) refuse_parameters("integrate", "must have one method for all random effects", call)
  domains[[1L]]
}

# The position of each parameter among the estimated parameters, or the random effects; NA for the others.
estimated_places <- function(layout, random = FALSE) {
  free <- are_active(layout)
  match(layout$labels, (seq_along(layout$labels) - 1)[free & layout$random == random])
}
