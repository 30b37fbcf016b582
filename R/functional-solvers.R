#' R's solvers in functions that are differentiated
#'
#' `uniroot()`, `optimize()`, `optim()`, `nlm()`, `nlminb()` and `integrate()` of stats for functions that return
#' tensors, as functions do that close over a tensor that is differentiated. The solution then has derivatives: a root
#' and a minimum by the implicit function theorem, an integral under the integral sign and with respect to its bounds
#' (Leibniz). For ordinary R vectors the stats function is called.
#'
#' R's solver finds the solution on numbers. Newton's method then improves it, and three further steps are recorded,
#' which make derivatives right up to the third order. So the solution is more accurate than `tol` asks. A minimum on a
#' bound stays there: it moves only with the bound.
#'
#' The derivatives of an integral are those of the sum over the nodes of a 21-point Gauss-Kronrod rule; intervals are
#' halved until the error is below 1e-10.
#'
#' In compiled code, where values are not known, `uniroot()` bisects, `optimize()` uses golden section search, and
#' `optim()`, `nlm()` and `nlminb()` take 25 damped Newton steps from the starting values, without bounds. `integrate()`
#' uses a double exponential rule with about 400 to 1000 points and does not check its error: it misses a peak narrower
#' than about a hundredth of the interval.
#' @param f,fn,gr,par,p,start,objective,gradient,interval,lower,upper,f.lower,f.upper As in stats: bounds and starting
#'   values may be tensors.
#' @param extendInt,check.conv,tol,maxiter,trace,maximum,method,control,hessian As in stats.
#' @param typsize,fscale,print.level,ndigit,gradtol,stepmax,steptol,iterlim,check.analyticals,scale As in stats.
#' @param subdivisions,rel.tol,abs.tol,stop.on.error,keep.xy,aux As in stats.
#' @param ... More arguments of the function.
#' @returns The result of the function in stats, with tensors for `root`, `f.root`, `minimum`, `objective`, `par`,
#'   `estimate`, `gradient`, `value`, `hessian`. If values are not known, counts of iterations and `abs.error` are `NA`.
#' @section Gradient:
#' With respect to variables that the function closes over, to the third order; `integrate()` also with respect to its
#' bounds, to all orders. Starting values and brackets have no gradient, as the solution does not depend on them.
#' @section Errors:
#' - `gradops_error_gradient`: a root or a minimum without derivative: the slope at the root, or the curvature at the
#'   minimum, is 0.
#' - `gradops_error_jit`: a setting that needs values, in compiled code.
#' @seealso [root()] and [fixed_point()].
#' @examplesIf gradops_available()
#' gradient(function(a) uniroot(function(x) x^3 - a, c(0, 5))$root, 8)
#' gradient(function(s) integrate(function(x) exp(-x^2 / s), -Inf, Inf)$value, 2)
#' gradient(function(a) optim(c(0, 0), function(x) sum((x - a)^2) + x[1]^4)$value, c(1, 2))
#' @name tensor_solvers
NULL

#' @rdname tensor_solvers
#' @export
uniroot <- function(f, interval, ..., lower = min(interval), upper = max(interval), f.lower = f(lower, ...),
                    f.upper = f(upper, ...), extendInt = c("no", "yes", "downX", "upX"), check.conv = FALSE,
                    tol = .Machine$double.eps^0.25, maxiter = 1000, trace = 0) {
  noted <- new.env()
  found <- known_value(noted, {
    plain <- numbers_of(f, noted)
    if (!missing(interval) && length(interval) != 2L) {
      unsupported("interval", sprintf("must have two elements; got %d.", length(interval)))
    }
    lower <- number_of(lower, noted)
    upper <- number_of(upper, noted)
    stats::uniroot(
      plain, ..., lower = lower, upper = upper,
      f.lower = if (missing(f.lower)) plain(lower, ...) else number_of(f.lower, noted),
      f.upper = if (missing(f.upper)) plain(upper, ...) else number_of(f.upper, noted),
      extendInt = extendInt, check.conv = check.conv, tol = tol, maxiter = maxiter, trace = trace
    )
  })
  if (is.null(noted$tensor)) {
    return(found)
  }
  if (is.null(found) && match.arg(extendInt) != "no") {
    needs_values("`extendInt`", "Give an interval that holds the root.")
  }
  root <- solved("root", function(x) f(x, ...), found$root, operand(lower), operand(upper), noted$tensor)
  list(
    root = root, f.root = f(root, ...), iter = found$iter %||% NA_integer_, init.it = found$init.it %||% NA_integer_,
    estim.prec = found$estim.prec %||% NA_real_
  )
}

#' @rdname tensor_solvers
#' @export
optimize <- function(f, interval, ..., lower = min(interval), upper = max(interval), maximum = FALSE,
                     tol = .Machine$double.eps^0.25) {
  noted <- new.env()
  found <- known_value(noted, {
    low <- number_of(lower, noted)
    high <- number_of(upper, noted)
    stats::optimize(numbers_of(f, noted), ..., lower = low, upper = high, maximum = maximum, tol = tol)
  })
  if (is.null(noted$tensor)) {
    return(found)
  }
  one <- function(x) sum(f(x, ...))
  x <- solved("least_between", one, found[[1]], operand(lower), operand(upper), noted$tensor, tol, is_set(maximum))
  stats::setNames(list(x, f(x, ...)), c(if (maximum) "maximum" else "minimum", "objective"))
}

#' @rdname tensor_solvers
#' @export
optimise <- optimize

#' @rdname tensor_solvers
#' @export
optim <- function(par, fn, gr = NULL, ..., method = c("Nelder-Mead", "BFGS", "CG", "L-BFGS-B", "SANN", "Brent"),
                  lower = -Inf, upper = Inf, control = list(), hessian = FALSE) {
  noted <- new.env()
  control <- seen(control, "optim") # settings of the search, such as its step
  method <- if (missing(method) && any(lower > -Inf, upper < Inf)) "L-BFGS-B" else match.arg(method)
  found <- known_value(noted, {
    start <- number_of(par, noted)
    stats::optim(
      start, numbers_of(fn, noted), if (!is.null(gr)) numbers_of(gr, noted), ..., method = method,
      lower = number_of(lower, noted), upper = number_of(upper, noted), control = control, hessian = FALSE
    )
  })
  if (is.null(noted$tensor)) {
    if (hessian) found$hessian <- stats::optimHess(found$par, fn, gr, ..., control = control)
    return(found)
  }
  one <- function(x) sum(fn(with_names(x, names(par)), ...))
  x <- with_names(least("optim()", one, found$par, par, lower, upper, noted, control$fnscale), names(par))
  c(
    list(
      par = x, value = fn(x, ...), counts = found$counts %||% c(`function` = NA_integer_, gradient = NA_integer_),
      convergence = found$convergence %||% NA_integer_
    ),
    list(message = found$message), if (hessian) list(hessian = hessian(one, x))
  )
}

#' @rdname tensor_solvers
#' @export
nlm <- function(f, p, ..., hessian = FALSE, typsize = rep(1, length(p)), fscale = 1, print.level = 0, ndigit = 12,
                gradtol = 1e-6, stepmax = max(1000 * sqrt(sum((p / typsize)^2)), 1000), steptol = 1e-6, iterlim = 100,
                check.analyticals = TRUE) {
  noted <- new.env()
  found <- known_value(noted, {
    start <- p
    p <- number_of(p, noted) # also in the default of `stepmax`
    stats::nlm(
      numbers_of(f, noted), p, ..., hessian = hessian, typsize = typsize, fscale = fscale, print.level = print.level,
      ndigit = ndigit, gradtol = gradtol, stepmax = stepmax, steptol = steptol, iterlim = iterlim,
      check.analyticals = check.analyticals
    )
  })
  if (is.null(noted$tensor)) {
    return(found)
  }
  one <- function(x) sum(f(x, ...))
  x <- least("nlm()", one, found$estimate, start, -Inf, Inf, noted)
  c(
    list(minimum = f(x, ...), estimate = x, gradient = gradient(one, x)),
    if (hessian) list(hessian = hessian(one, x)),
    list(code = found$code %||% NA_integer_, iterations = found$iterations %||% NA_integer_)
  )
}

#' @rdname tensor_solvers
#' @export
nlminb <- function(start, objective, gradient = NULL, hessian = NULL, ..., scale = 1, control = list(), lower = -Inf,
                   upper = Inf) {
  noted <- new.env()
  control <- seen(control, "nlminb")
  found <- known_value(noted, {
    stats::nlminb(
      number_of(start, noted), numbers_of(objective, noted), if (!is.null(gradient)) numbers_of(gradient, noted),
      if (is.function(hessian)) numbers_of(hessian, noted) else hessian, ..., scale = scale, control = control,
      lower = number_of(lower, noted), upper = number_of(upper, noted)
    )
  })
  if (is.null(noted$tensor)) {
    return(found)
  }
  one <- function(x) sum(objective(with_names(x, names(start)), ...))
  x <- with_names(least("nlminb()", one, found$par, start, lower, upper, noted), names(start))
  list(
    par = x, objective = objective(x, ...), convergence = found$convergence %||% NA_integer_,
    iterations = found$iterations %||% NA_integer_,
    evaluations = found$evaluations %||% c(`function` = NA_integer_, gradient = NA_integer_), message = found$message
  )
}

#' @rdname tensor_solvers
#' @export
integrate <- function(f, lower, upper, ..., subdivisions = 100L, rel.tol = .Machine$double.eps^0.25,
                      abs.tol = rel.tol, stop.on.error = TRUE, keep.xy = FALSE, aux = NULL) {
  f <- match.fun(f)
  noted <- new.env()
  found <- known_value(noted, stats::integrate(
    numbers_of(f, noted), number_of(lower, noted), number_of(upper, noted), ..., subdivisions = subdivisions,
    rel.tol = rel.tol, abs.tol = abs.tol, stop.on.error = stop.on.error, keep.xy = keep.xy, aux = aux
  ))
  if (is.null(noted$tensor)) {
    return(found)
  }
  value <- solved("integral", function(x) f(x, ...), found$value, operand(lower), operand(upper), noted$tensor)
  structure(
    list(
      value = value, abs.error = found$abs.error %||% NA_real_, subdivisions = found$subdivisions %||% NA_integer_,
      message = found$message %||% "values are not known", call = match.call()
    ),
    class = "integrate"
  )
}

# The minimum near `found`, with derivatives; the search starts from `start` if values are not known.
least <- function(name, f, found, start, lower, upper, noted, sign = NULL, call = parent.frame()) {
  if (is.null(found) && any(lower > -Inf, upper < Inf)) {
    needs_values(sprintf("`%s` with bounds", name), "Transform the parameters: `exp(x)`.", call)
  }
  ends <- lapply(list(start, lower, upper), operand)
  solved("least", f, found, ends[[1]], ends[[2]], ends[[3]], noted$tensor, sign %||% 1, name, call = call)
}

# The result of a solver of `gradops.interop.r.stats`, from R's solution `found` if values are known.
solved <- function(solver, f, found, ..., call = parent.frame()) {
  f <- callback(differentiated(f, new.env()))
  call_core(paste0("interop.r.stats.", solver), f, if (!is.null(found)) operand(unname(found)), ..., .call = call)
}

# The value of `code`, or NULL if it needs values that a trace does not know.
known_value <- function(noted, code) {
  delayedAssign("left", return(NULL)) # as callCC() does: handlers take longer than the search for a root
  noted$leave <- function() left
  code
}

# `f` with its tensors converted to numbers; the last tensor stays in `noted`.
numbers_of <- function(f, noted) {
  if (inherits(f, "gradops_objective")) {
    abort(
      c(
        "An objective is not a function: it has several.",
        i = "Write `optim(par, m$fn, m$gr)`, `nlminb(par, m$fn, m$gr, m$he)` or `nlm(m$nlm, par)` of an objective `m`."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = "f", call = NULL
    )
  }
  function(...) {
    value <- f(...)
    if (is.environment(value)) number_of(value, noted) else value
  }
}

number_of <- function(x, noted) {
  if (!is.environment(x) || !is_tensor(x)) {
    return(x)
  }
  noted$tensor <- x
  plain(x) %||% noted$leave()
}
