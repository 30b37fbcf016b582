# RTMB's functions by its names, for scripts as they are. This file has the table of names; the rtmb-*.R files have
# the functions. They call likelihood_of() (likelihood.R) and the observations and reports of
# likelihood-observations.R.

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
    ad_context = ad_context, relist = relist_rtmb, MakeTape = make_tape, GetTape = get_tape, TapeConfig = tape_config,
    DataEval = data_eval, ADjoint = ad_joint, dseparable = dseparable, unstructured = unstructured,
    GK = gauss_kronrod, LA = laplace_method, SR = sequential_reduction, logspace_add = logspace_add,
    logspace_sub = logspace_sub, interpol1Dfun = interpol1Dfun, interpol2Dfun = interpol2Dfun, expAv = expAv
  )
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

is_of_rtmb <- function(f) {
  !is.primitive(f) && !inherits(f, "genericFunction") && environmentName(topenv(environment(f))) == "RTMB"
}

# The replacement for RTMB's function `f` in adapted code (code-adapted.R), or NULL. RTMB's own R code is adapted like the
# user's; its compiled code and its tapes have replacements, so `objective(f)` takes the `f` of
# `MakeADFun(f, parameters)`.
rtmb_function <- function(f, name) {
  here <- rtmb_faces()
  is <- function(name) identical(get0(name, asNamespace("RTMB")), f)
  name <- if (nzchar(name) && is(name)) name else Find(is, names(here))
  if (!is.null(name)) here[[name]]
}
