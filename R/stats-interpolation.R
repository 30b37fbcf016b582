#' Interpolation with tensors
#'
#' `approx()`, `approxfun()`, `spline()` and `splinefun()` of stats with tensors and variables as values `y`, as
#' evaluation points (`xout`, and the argument of the returned functions), and as knots `x`. For ordinary R vectors the
#' function of stats is called; functions that it returns also take tensors. If `x` or `y` is a tensor, `x` must have no
#' ties.
#' @param x,y,xout Tensors, or what R takes.
#' @param xmin,xmax Without `xout`, the ends of the interval of the `n` points.
#' @param method,n,yleft,yright,rule,f,ties,na.rm As in stats.
#' @returns `approx()` and `spline()` return a list of `x` and `y`; the others a function. The value is NaN where R has
#'   `NA`.
#' @section Gradient:
#' The derivative of the piecewise polynomial with respect to evaluation points, `x` and `y`; at a knot that of the
#' piece to its right. Slopes that the methods `"monoH.FC"` and `"hyman"` limit have the derivative of the limit.
#' @section Errors:
#' - `gradops_error_argument`: ties; for `"hyman"`, a `y` that is not monotone.
#' @seealso [r_function()], [tensor_signals].
#' @examplesIf gradops_available()
#' approx(1:3, variable(c(1, 4, 9)), xout = 1.5)$y
#' gradient(splinefun(1:4, c(1, 4, 9, 16)), 2.5)
#' @eval usages(generics_of_page("tensor_interpolation"))
#' @name tensor_interpolation
NULL

approx_tensor <- function(x, y = NULL, xout, method = "linear", n = 50, yleft, yright, rule = 1, f = 0, ties = mean,
                          na.rm = TRUE) {
  if (missing(xout)) {
    at <- if (is.null(y)) seq_along(x) else x
    xout <- places_between(min(at), max(at), n)
  }
  interpolate <- approxfun_tensor(x, y, method, yleft, yright, rule, f, ties, na.rm)
  list(x = xout, y = interpolate(xout))
}

#' @rdname tensor_interpolation
#' @export
approxfun <- function(x, y = NULL, method = "linear", yleft, yright, rule = 1, f = 0, ties = mean, na.rm = TRUE) {
  if (any_tensor(x, y)) {
    return(approxfun_tensor(x, y, method, yleft, yright, rule, f, ties, na.rm))
  }
  given <- lapply(stats::setNames(nm = names(match.call())[-1L]), get, envir = environment())
  taking_tensors(do.call(stats::approxfun, given), function(here, v) {
    linear_pieces(here$x, here$y, v, here$method == 2, here$f, here$yleft, here$yright)
  })
}

approxfun_tensor <- function(x, y, method = "linear", yleft, yright, rule = 1, f = 0, ties = mean, na.rm = TRUE) {
  steps <- switch(pmatch(method, c("linear", "constant")), FALSE, TRUE)
  if (is.null(steps)) unsupported("method", "must be \"linear\" or \"constant\".")
  data <- knots_of(x, y)
  x <- data$x
  y <- data$y
  rule <- rep_len(rule, 2L)
  if (missing(yleft)) yleft <- if (rule[1] == 1) NaN else y[1]
  if (missing(yright)) yright <- if (rule[2] == 1) NaN else y[length(y)]
  function(v) linear_pieces(x, y, v, steps, f, yleft, yright)
}

# Knots and values, sorted if the knots are known.
knots_of <- function(x, y, call = parent.frame()) {
  data <- if (is.null(y)) list(x = seq_along(x), y = x) else list(x = x, y = y)
  knots <- as.vector(known_values(data$x))
  if (anyDuplicated(knots)) unsupported("x", "must have no ties where `x` or `y` is a tensor.", call = call)
  if (is.unsorted(knots)) lapply(data, `[`, order(knots)) else data
}

linear_pieces <- function(x, y, v, steps, f, yleft, yright) {
  call_core("interop.r.stats.lines", operand(x), operand(y), operand(v), steps, f, operand(yleft), operand(yright))
}

# A closure of stats that also takes a tensor; its environment does not change.
taking_tensors <- function(f, of_tensor) {
  argument <- as.name(names(formals(f))[1])
  others <- lapply(names(formals(f))[-1], as.name)
  first <- bquote(if (.(is_tensor)(.(argument))) { # in adapted code `is.object()` is FALSE for a tensor
    return(.(as.call(c(list(of_tensor, environment(f), argument), others))))
  })
  body(f) <- call("{", first, body(f))
  f
}

#' @rdname tensor_interpolation
#' @export
splinefun <- function(x, y = NULL, method = c("fmm", "periodic", "natural", "monoH.FC", "hyman"), ties = mean) {
  if (any_tensor(x, y)) {
    return(splinefun_tensor(x, y, match.arg(method)))
  }
  given <- lapply(stats::setNames(nm = names(match.call())[-1L]), get, envir = environment())
  taking_tensors(do.call(stats::splinefun, given), function(here, v, deriv = 0L, extrapol = "linear") {
    z <- here$z
    if (is.null(z)) {
      cubic_pieces(here$x0, here$y0, here$m, v, deriv, match.arg(extrapol, c("linear", "cubic")))
    } else {
      cubic_pieces(z$x, z$y, z$b, v, deriv, c("periodic", "natural", "cubic")[z$method])
    }
  })
}

spline_tensor <- function(x, y = NULL, n = 3 * length(x), method = "fmm", xmin = min(x), xmax = max(x), xout,
                          ties = mean) {
  force(n)
  if (is.null(y)) {
    y <- x
    x <- seq_along(y)
  }
  if (missing(xout)) xout <- places_between(xmin, xmax, n)
  list(x = xout, y = splinefun(x, y, method, ties)(xout))
}

# `n` evaluation points, as differentiable functions of the ends, which are exact.
places_between <- function(from, to, n) {
  share <- seq.int(0, 1, length.out = n)
  from * (1 - share) + to * share
}

splinefun_tensor <- function(x, y, method) {
  data <- knots_of(x, y, call = rlang::caller_env())
  x <- flat(data$x)
  y <- flat(data$y)
  known <- known_values(y)
  n <- length(y)
  if (method == "periodic") {
    if (!is.null(known) && known[1L] != known[n]) {
      warning("spline: first and last y values differ - using y[1L] for both", call. = FALSE)
    }
    if (n > 1L) y <- c(y[-n], y[1L])
  } else if (method == "hyman" && is.unsorted(known) && is.unsorted(-known)) {
    unsupported("y", "must be increasing or decreasing.", call = rlang::caller_env())
  }
  slopes <- call_core("interop.r.stats.slopes", operand(x), operand(y), method)
  beyond <- switch(method, periodic = , natural = method, "cubic")
  if (method == "monoH.FC") {
    function(x, deriv = 0L, extrapol = c("linear", "cubic")) {
      cubic_pieces(data$x, y, slopes, x, deriv, match.arg(extrapol))
    }
  } else {
    function(x, deriv = 0L) cubic_pieces(data$x, y, slopes, x, deriv, beyond)
  }
}

# Evaluate cubics with slopes `m` at the knots, or their derivatives; `beyond` says how they continue outside.
cubic_pieces <- function(x, y, m, v, deriv = 0L, beyond = "cubic") {
  if (!deriv %in% 0:3) {
    unsupported("deriv", "must be 0, 1, 2 or 3.")
  }
  call_core(
    "interop.r.stats.piecewise_cubic", operand(flat(x)), operand(flat(y)), operand(flat(m)), operand(v), deriv, beyond
  )
}
