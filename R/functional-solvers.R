#' R's solvers in functions that are differentiated
#'
#' `uniroot()`, `optimize()`, `optim()`, `nlm()`, `nlminb()` and `integrate()` of stats for functions that return
#' tensors, as they do where they close over a tensor that is differentiated. The solution then has derivatives: a root
#' and a minimum by the implicit function theorem, an integral under the integral sign and by its bounds (Leibniz). For
#' ordinary R vectors the stats function is called.
#'
#' R's solver finds the solution on numbers. Newton's method then improves it, and three further steps are recorded, by
#' which derivatives are right up to the third. So the solution is more exact than `tol` asks. A minimum on a bound
#' stays there: it moves with the bound alone.
#'
#' An integral is the sum over the points of a 21-point Gauss-Kronrod rule in parts that are halved until the error is
#' below 1e-10, or `rel.tol` at least.
#'
#' In compiled code, where values are not known: `uniroot()` bisects, `optimize()` takes the golden section, `optim()`,
#' `nlm()` and `nlminb()` 25 of Newton's steps with a damping, from where they start, without bounds. `integrate()`
#' takes a double exponential rule of some 400 to 1000 points, whose error is not looked at: it does not see a peak
#' narrower than some hundredth of the interval.
#' @param f,fn,gr,par,p,start,objective,gradient,interval,lower,upper,f.lower,f.upper As in stats: bounds and starting
#'   values may be tensors.
#' @param extendInt,check.conv,tol,maxiter,trace,maximum,method,control,hessian As in stats.
#' @param typsize,fscale,print.level,ndigit,gradtol,stepmax,steptol,iterlim,check.analyticals,scale As in stats.
#' @param subdivisions,rel.tol,abs.tol,stop.on.error,keep.xy,aux As in stats.
#' @param ... More arguments of the function.
#' @returns The result of the function in stats, with tensors for `root`, `f.root`, `minimum`, `objective`, `par`,
#'   `estimate`, `gradient`, `value`, `hessian`. Where values are not known, counts of iterations and `abs.error` are
#'   `NA`.
#' @section Gradient:
#' To what the function closes over, to the third order; `integrate()` also to its bounds, to all orders. None to
#' starting values and brackets, as the solution does not depend on them.
#' @section Errors:
#' - `gradops_error_gradient`: a root or a minimum without derivative: the slope is 0 at the root, the curvature at the
#'   minimum.
#' - `gradops_error_jit`: what needs values in compiled code.
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
  found <- on_numbers({
    plain <- numbers_of(f, noted)
    if (!missing(interval) && length(interval) != 2L) interval_of_two(interval)
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
  one <- function(x) f(x, ...)
  start <- found$root
  if (is.null(found)) {
    if (match.arg(extendInt) != "no") needs_values("`extendInt`", "Give an interval that holds the root.")
    start <- bisected(one, lower, upper)
  }
  root <- implicit(function(x) one_number(one(x)), function(x) gradient(function(z) sum(one(z)), x), start,
                   noted$tensor, "uniroot()", "the slope is 0 there", is.null(found))
  list(
    root = root, f.root = one(root), iter = found$iter %||% NA_integer_, init.it = found$init.it %||% NA_integer_,
    estim.prec = found$estim.prec %||% NA_real_
  )
}

interval_of_two <- function(interval, call = parent.frame()) {
  unsupported("interval", sprintf("must have two elements; got %d.", length(interval)), call = call)
}

#' @rdname tensor_solvers
#' @export
optimize <- function(f, interval, ..., lower = min(interval), upper = max(interval), maximum = FALSE,
                     tol = .Machine$double.eps^0.25) {
  noted <- new.env()
  bounds <- if (missing(lower) && missing(upper)) NULL else list(lower, upper)
  found <- on_numbers({
    low <- number_of(lower, noted)
    high <- number_of(upper, noted)
    stats::optimize(numbers_of(f, noted), ..., lower = low, upper = high, maximum = maximum, tol = tol)
  })
  if (is.null(noted$tensor)) {
    return(found)
  }
  one <- function(x) sum(f(x, ...))
  start <- found[[1]] %||% golden(one, lower, upper, maximum)
  if (!is.null(found)) {
    bound <- bound_near(start, low, high, one, maximum, tol)
    if (!is.null(bound)) {
      x <- moving_with(list(lower, upper)[[bound]], 1L, start)
      return(stats::setNames(list(x, f(x, ...)), names(found)))
    }
  }
  slope <- function(x) gradient(one, x)
  x <- implicit(slope, function(x) gradient(slope, x), start, noted$tensor, "optimize()", "the curvature is 0 there",
                is.null(found))
  stats::setNames(list(x, f(x, ...)), c(if (maximum) "maximum" else "minimum", "objective"))
}

#' @rdname tensor_solvers
#' @export
optimise <- optimize

# The bound that a solution is at, towards which the function still falls (or rises); NULL for none.
bound_near <- function(x, low, high, f, maximum, tol) {
  near <- which(abs(x - c(low, high)) <= 10 * (tol + sqrt(.Machine$double.eps)) * (1 + abs(x)))
  if (length(near) == 0) {
    return(NULL)
  }
  slope <- known_values(gradient(f, op_convert_to_tensor(x)))
  if (maximum) slope <- -slope
  inward <- if (near[1] == 1L) slope > 0 else slope < 0
  if (inward) near[1]
}

#' @rdname tensor_solvers
#' @export
optim <- function(par, fn, gr = NULL, ..., method = c("Nelder-Mead", "BFGS", "CG", "L-BFGS-B", "SANN", "Brent"),
                  lower = -Inf, upper = Inf, control = list(), hessian = FALSE) {
  noted <- new.env()
  method <- if (missing(method) && any(lower > -Inf, upper < Inf)) "L-BFGS-B" else match.arg(method)
  found <- on_numbers({
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
  x <- minimum_near(found$par, one, par, lower, upper, noted$tensor, "optim()", sign(control$fnscale %||% 1))
  x <- with_names(x, names(par))
  c(
    list(
      par = x, value = fn(x, ...), counts = found$counts %||% c(`function` = NA_integer_, gradient = NA_integer_),
      convergence = found$convergence %||% NA_integer_
    ),
    list(message = found$message), if (hessian) list(hessian = hessian_at(one, x))
  )
}

#' @rdname tensor_solvers
#' @export
nlm <- function(f, p, ..., hessian = FALSE, typsize = rep(1, length(p)), fscale = 1, print.level = 0, ndigit = 12,
                gradtol = 1e-6, stepmax = max(1000 * sqrt(sum((p / typsize)^2)), 1000), steptol = 1e-6, iterlim = 100,
                check.analyticals = TRUE) {
  noted <- new.env()
  found <- on_numbers({
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
  x <- minimum_near(found$estimate, one, start, -Inf, Inf, noted$tensor, "nlm()")
  c(
    list(minimum = f(x, ...), estimate = x, gradient = gradient(one, x)),
    if (hessian) list(hessian = hessian_at(one, x)),
    list(code = found$code %||% NA_integer_, iterations = found$iterations %||% NA_integer_)
  )
}

#' @rdname tensor_solvers
#' @export
nlminb <- function(start, objective, gradient = NULL, hessian = NULL, ..., scale = 1, control = list(), lower = -Inf,
                   upper = Inf) {
  noted <- new.env()
  found <- on_numbers({
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
  x <- with_names(minimum_near(found$par, one, start, lower, upper, noted$tensor, "nlminb()"), names(start))
  list(
    par = x, objective = objective(x, ...), convergence = found$convergence %||% NA_integer_,
    iterations = found$iterations %||% NA_integer_,
    evaluations = found$evaluations %||% c(`function` = NA_integer_, gradient = NA_integer_), message = found$message
  )
}

# The minimum near `found`, with derivatives by what is on no bound; from `start` where values are not known.
minimum_near <- function(found, f, start, lower, upper, like, what, sign = 1, call = parent.frame()) {
  free <- rep(TRUE, length(start))
  fixed <- NULL
  if (is.null(found)) {
    if (any(lower > -Inf, upper < Inf)) {
      needs_values(sprintf("`%s` with bounds", what), "Transform the parameters: `exp(x)`.", call)
    }
    at <- damped_newton(f, start, sign)
  } else {
    at <- found
    free <- at > plain(lower) & at < plain(upper)
    low <- at <= plain(lower)
    fixed <- lapply(which(!free), function(i) moving_with(if (low[i]) lower else upper, i, at[i]))
  }
  if (!any(free)) {
    return(joined(fixed))
  }
  order <- order(c(which(free), which(!free)))
  whole <- function(z) if (all(free)) z else joined(c(list(z), fixed))[order]
  inner <- function(z) f(whole(z))
  whole(implicit(function(z) gradient(inner, z), function(z) hessian_at(inner, z), if (all(free)) at else at[free],
                 like, what, "the matrix of second derivatives is singular there", is.null(found), call))
}

# The `i`-th element of a bound, recycled, as `value`, which moves with it.
moving_with <- function(bound, i, value) {
  if (!is_any_tensor(bound)) {
    return(value)
  }
  bound <- bound[(i - 1L) %% length(bound) + 1L]
  value + (bound - op_stop_gradient(bound))
}

# `hessian` is an argument of the solvers.
hessian_at <- function(f, x) {
  hessian(f, x)
}

# Solvers on numbers ---------------------------------------------------------------------------------------------------

# The value of `code`, or NULL where it needed values that a trace does not know.
on_numbers <- function(code) {
  tryCatch(code, gradops_unknown = function(condition) NULL)
}

# `f` with numbers for its tensors, of which one stays in `noted`.
numbers_of <- function(f, noted) {
  force(f)
  function(...) number_of(f(...), noted)
}

number_of <- function(x, noted) {
  if (!is.environment(x) || !is_tensor(x)) {
    return(x)
  }
  noted$tensor <- x
  plain(x) %||% rlang::abort("values are not known", class = "gradops_unknown")
}

one_number <- function(x) {
  op_reshape(x, integer())
}

# Where `residual` is 0, near `x`, with derivatives: three steps that are recorded, by the Jacobian as it is there. Each
# makes derivatives right to one order more.
implicit <- function(residual, jacobian, x, like, what, lacks, traced, call = parent.frame()) {
  solved <- function(j, r) if (length(dim(j)) < 2L) r / j else op_solve(j, r)
  x <- op_stop_gradient(op_sum(like)) * 0 + x # of its library and precision
  j <- op_stop_gradient(jacobian(x))
  if (!traced) {
    reached <- FALSE
    for (i in 1:30) {
      move <- known_values(solved(j, residual(x))) %||% NaN # where the matrix is singular
      if (!all(is.finite(move))) break
      x <- op_stop_gradient(x - array_of(move, dim(move)))
      last <- j
      j <- op_stop_gradient(jacobian(x))
      if (max(abs(move)) <= 1e-9 * (1 + max(abs(known_values(x))))) {
        # however near, the Jacobian goes on to change where it is singular at the solution
        change <- known_values(solved(last, j - last)) %||% NaN
        reached <- all(is.finite(change)) && max(abs(change)) <= 0.1
        break
      }
    }
    if (!reached) {
      abort(
        c(
          sprintf("The result of `%s` has no derivative: %s, or it is not exact enough to go on from.", what, lacks),
          i = "`op_stop_gradient()` of what the function closes over says that none is wanted."
        ),
        class = c("gradops_error_gradient", "gradops_error"), call = call
      )
    }
  }
  for (i in 1:3) {
    x <- x - solved(j, residual(x))
  }
  x
}

# Solvers in traces ----------------------------------------------------------------------------------------------------

bisected <- function(f, lower, upper) {
  with_stop_gradient({
    low <- op_stop_gradient(lower)
    high <- op_stop_gradient(upper)
    side <- op_sign(one_number(f(low)))
    halves <- op_fori_loop(0L, 60L, function(i, ends) {
      middle <- (ends[[1]] + ends[[2]]) / 2
      same <- op_equal(op_sign(one_number(f(middle))), side)
      list(op_where(same, middle, ends[[1]]), op_where(same, ends[[2]], middle))
    }, list(side * 0 + low, side * 0 + high))
    op_stop_gradient((halves[[1]] + halves[[2]]) / 2)
  })
}

golden <- function(f, lower, upper, maximum) {
  ratio <- (sqrt(5) - 1) / 2
  with_stop_gradient({
    zero <- f(op_stop_gradient(lower)) * 0
    ends <- op_fori_loop(0L, 60L, function(i, ends) {
      a <- ends[[1]]
      b <- ends[[2]]
      left <- b - ratio * (b - a)
      right <- a + ratio * (b - a)
      first <- if (maximum) f(left) > f(right) else f(left) < f(right)
      list(op_where(first, a, left), op_where(first, right, b))
    }, list(zero + op_stop_gradient(lower), zero + op_stop_gradient(upper)))
    op_stop_gradient((ends[[1]] + ends[[2]]) / 2)
  })
}

# Steps of Newton's method towards less of `sign` times `f`, damped (Levenberg 1944) where they do not lead down.
damped_newton <- function(f, x, sign, iterations = 25L) {
  target <- function(x) sign * f(x)
  eye <- base::diag(length(x))
  with_stop_gradient({
    x <- op_stop_gradient(target(x)) * 0 + op_stop_gradient(x)
    state <- op_fori_loop(0L, iterations, function(i, state) {
      here <- state[[1]]
      matrix <- hessian(target, here) + state[[2]] * eye
      there <- here - op_solve(matrix, gradient(target, here))
      better <- op_less_equal(target(there), target(here))
      list(
        op_where(better, there, here),
        op_where(better, op_where(state[[2]] < 1e-6, 0, state[[2]] / 10), op_maximum(10 * state[[2]], 1e-3))
      )
    }, list(x, op_sum(x) * 0))
    op_stop_gradient(state[[1]])
  })
}
