# RTMB's functions by its names, for unchanged scripts. This file has the table of names; the rtmb-*.R files have the
# functions. They use likelihood_of() (likelihood.R) and the observations and reports of likelihood-observations.R.

#' RTMB's functions, for unchanged RTMB scripts
#'
#' `attach_rtmb()` puts functions with the names of the package RTMB on the search path in front of gradops, so a script
#' runs with `library(gradops); attach_rtmb()` instead of `library(RTMB)`. RTMB need not be installed.
#' `detach("gradops:rtmb")` removes them.
#'
#' - `MakeADFun(func, parameters, random, map, profile, integrate, ADreport)`: a list of `par`, `fn`, `gr`, `he`,
#'   `report`, `simulate` and `env`; like [objective()] with `start`. With `ADreport = TRUE`, `fn` returns the
#'   quantities that `ADREPORT()` reports at all parameters, and `gr` their Jacobian. `parameters` is a named list, or a
#'   vector for a function of one argument. `env` has the variables that `TMB::tmbprofile()`, tmbstan and adnuts read
#'   and set: `f(par, order)`, the joint likelihood of parameters and random effects; `last.par`, `last.par.best`,
#'   `value.best`, `random`, `lfixed()`, `parList()`, `spHess()` and so on. `random.start` and `inner.control` may be
#'   set but have no effect: the search for the mode starts at the previous mode.
#' - `sdreport(obj)`, with `summary()`, `print()` and `as.list(x, "Est")`: estimates, reports and their standard errors.
#' - In the objective: `getAll()`, `REPORT()`, `ADREPORT()`, `OBS()`, `y %~% dnorm(mu, sd)`, `AD()`, `ADoverload()`,
#'   `is(x, "advector")`.
#' - `oneStepPredict()` and `checkConsistency()`: residuals, and a check of the gradient on simulated data.
#' - `MakeTape()` with its methods `jacobian()`, `jacfun()`, `laplace()`, `newton()`; `DataEval()`, `ADjoint()`.
#' - `dmvnorm()`, `dgmrf()`, `dautoreg()`, `dseparable()`, `unstructured()`; `dbinom_robust()`, `dnbinom2()`,
#'   `dnbinom_robust()`, `dtweedie()`, `dcompois()`, `dcompois2()`, `dlgamma()`, `dSHASHo()`, `dsn()`, `logspace_add()`,
#'   `logspace_sub()`, `interpol1Dfun()`, `interpol2Dfun()`, `expAv()`.
#'
#' The other functions that RTMB overloads (densities of stats, `[<-`, matrices) take tensors without `attach_rtmb()`.
#' If RTMB is not installed, `RTMB::name` is the function of this name.
#'
#' @section Differences:
#' - Hessians with random effects are computed by differences of the exact gradient.
#' - `integrate =` takes `GK()`, `SR(x)` and `LA()` for random effects that are independent of each other given the
#'   parameters: quadrature at nodes around the mode, or between the ends of `x`; other methods are an error.
#' - `sdreport(bias.correct = TRUE)` has no standard errors of the corrected values.
#' - `oneStepPredict()` recognises counts, positive numbers and Tweedie's probability of 0 by their densities:
#'   `discrete`, `range` and `discreteSupport` may be omitted. `"oneStepGeneric"` integrates without TMB's splines and
#'   ignores their settings.
#' - Models and tapes keep the data of the time when they were made; the function first runs at the first evaluation,
#'   and its errors are raised then.
#' - Elements that a map combines to one parameter appear in `obj$par` in the order of the map. TMB has the order of the
#'   factor's levels; a warning says if the two differ.
#' - The function of `ADjoint()` gets plain numbers, as in RTMB, and `complex = TRUE` is an error.
#' - Tapes are functions that are differentiated when they run: `simplify()`, `reorder()` and `atomic()` return them
#'   unchanged, and `print()` shows no operations.
#' @returns The name of the attached environment, invisibly.
#' @section Errors:
#' - `gradops_error_argument`: an argument that `MakeADFun()`, `sdreport()` or `oneStepPredict()` do not have; the
#'   message names it.
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
#' start <- list(mean = 5, logsd = 0, logtau = 0, u = numeric(4))
#' obj <- MakeADFun(f, start, random = "u", silent = TRUE)
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

# RTMB's functions by name. Their environments are below gradops' own, so that adapted code takes them for functions of
# scripts that are adapted already.
rtmb_faces <- function() {
  below <- new.env(parent = topenv())
  prefixes <- if (!rlang::is_installed("RTMB")) list(`::` = prefix_rtmb("::"), `:::` = prefix_rtmb(":::"))
  lapply(c(rtmb_functions(), rtmb_observed(), prefixes), function(f) {
    if (identical(environment(f), topenv())) environment(f) <- below
    f
  })
}

rtmb_functions <- function() {
  list(
    MakeADFun = make_ad_fun, sdreport = sd_report, checkConsistency = check_consistency,
    oneStepPredict = one_step_predict, getAll = get_all, REPORT = report_rtmb, ADREPORT = ad_report_rtmb,
    OBS = obs_rtmb, `%~%` = tilde_rtmb, ADoverload = ad_overload, AD = ad_value, advector = function(x) x,
    is = is_rtmb, getValues = values_rtmb, Term = function(x) x, ad_context = ad_context, relist = relist_rtmb,
    MakeTape = make_tape, GetTape = get_tape, TapeConfig = tape_config, DataEval = data_eval, ADjoint = ad_joint,
    dseparable = dseparable, unstructured = unstructured, GK = gauss_kronrod, LA = laplace_method,
    SR = sequential_reduction, logspace_add = logspace_add, logspace_sub = logspace_sub,
    interpol1Dfun = interpol1Dfun, interpol2Dfun = interpol2Dfun, expAv = expAv
  )
}

# `RTMB::name` gives gradops' function; `pkg::name` works as usual for other packages.
prefix_rtmb <- function(operator) {
  original <- get(operator, baseenv())
  function(pkg, name) {
    if (as.character(substitute(pkg)) == "RTMB") {
      return(get(as.character(substitute(name)), as.environment(rtmb_place)))
    }
    eval.parent(as.call(list(original, substitute(pkg), substitute(name))))
  }
}

is_of_rtmb <- function(f) {
  !is.primitive(f) && !inherits(f, "genericFunction") && environmentName(topenv(environment(f))) == "RTMB"
}

# The replacement for RTMB's function `f` in adapted code (code-adapted.R), or NULL. RTMB's own R code is adapted like
# the user's; its compiled code and its tapes have replacements. So `objective(f)` takes the `f` of `MakeADFun(f,
# parameters)`.
rtmb_function <- function(f, name) {
  here <- rtmb_faces()
  is <- function(name) identical(get0(name, asNamespace("RTMB")), f)
  name <- if (nzchar(name) && is(name)) name else Find(is, names(here))
  if (!is.null(name)) here[[name]]
}
