#' Interpolation with tensors
#'
#' `approx()`, `approxfun()`, `spline()` and `splinefun()` of stats with tensors and variables as what is interpolated,
#' `y`, as the places, `xout` and the argument of the functions, and for `approx()` as `x`. For ordinary R vectors the
#' stats function is called; functions that it returns take tensors too.
#'
#' Where `y` is a tensor, `x` must have no ties, and splines one of the methods that are linear in `y`:
#' `"fmm"`, `"natural"`, `"periodic"`.
#' @param x,y,xout Tensors, or what R takes; `x` of `splinefun()` and `spline()` is R's.
#' @param xmin,xmax Between which `n` points lie, without `xout`.
#' @param method,n,yleft,yright,rule,f,ties,na.rm As in stats.
#' @returns `approx()` and `spline()` a list of `x` and `y`; the others a function. NaN where R has `NA`.
#' @section Gradient:
#' That of the pieces; at a knot that of the piece to its right.
#' @section Errors:
#' - `gradops_error_argument`: ties, or a `method` that is not linear, where `y` is a tensor.
#' @seealso [r_function()], [tensor_signals].
#' @examplesIf gradops_available()
#' approx(1:3, variable(c(1, 4, 9)), xout = 1.5)$y
#' gradient(splinefun(1:4, c(1, 4, 9, 16)), 2.5)
#' @name tensor_interpolation
NULL

#' @rdname tensor_interpolation
#' @export
approx <- function(x, y = NULL, xout, method = "linear", n = 50, yleft, yright, rule = 1, f = 0, ties = mean,
                   na.rm = TRUE) {
  UseMethod("approx", if (missing(xout)) among(x, y) else among(x, y, xout))
}

approx_tensor <- function(x, y = NULL, xout, method = "linear", n = 50, yleft, yright, rule = 1, f = 0, ties = mean,
                          na.rm = TRUE) {
  if (missing(xout)) {
    ends <- range(r_values(x))
    xout <- seq.int(ends[1], ends[2], length.out = n)
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
  if (is.null(y)) {
    y <- x
    x <- seq_along(y)
  }
  knots <- known_values(x)
  if (!is.null(knots)) {
    knots <- as.vector(knots)
    if (anyDuplicated(knots)) unsupported("x", "must have no ties where `x` or `y` is a tensor.")
    if (is.unsorted(knots)) {
      by_size <- order(knots)
      x <- x[by_size]
      y <- y[by_size]
    }
  }
  rule <- rep_len(rule, 2L)
  if (missing(yleft)) yleft <- if (rule[1] == 1) NaN else y[1]
  if (missing(yright)) yright <- if (rule[2] == 1) NaN else y[length(y)]
  function(v) linear_pieces(x, y, v, steps, f, yleft, yright)
}

# Of what is at places `v` between knots that ascend.
linear_pieces <- function(x, y, v, steps, f, yleft, yright) {
  n <- length(x)
  piece <- piece_of(x, v)
  at <- function(z, i) if (is_tensor(z) || is_tensor(i)) op_take(flat(z), i, 1L) else z[i]
  low <- at(y, piece)
  high <- at(y, piece + 1L)
  if (steps) {
    last <- at(x, rep(n, length(x))[1L])
    inside <- if (f == 0) low else if (f == 1) high else low * (1 - f) + high * f
    inside <- op_where(op_equal(v, at(x, piece)), low, inside)
    inside <- op_where(op_equal(v, last), at(y, n), inside)
  } else {
    start <- at(x, piece)
    inside <- low + (high - low) * ((v - start) / (at(x, piece + 1L) - start))
  }
  inside <- op_where(op_less(v, at(x, 1L)), yleft, inside)
  inside <- op_where(op_greater(v, at(x, n)), yright, inside)
  op_where(op_isnan(v), NaN, inside)
}

# The number of the knot behind which `v` is, the first for what lies before: the piece between knots that it is in, of
# which there is one less.
piece_of <- function(x, v, last = length(x) - 1L) {
  places <- known_values(v)
  knots <- known_values(x)
  if (!is.null(places) && !is.null(knots)) {
    found <- findInterval(as.vector(places), as.vector(knots))
    found <- base::pmin(base::pmax(found, 1L, na.rm = TRUE), last)
    return(if (is.null(dim(places))) found else base::array(found, dim(places)))
  }
  found <- op_searchsorted(op_stop_gradient(x), op_stop_gradient(v), side = "right") - 1L
  op_clip(found, 1L, last)
}

# A closure of stats whose argument may be a tensor; what its environment holds stays where it is.
taking_tensors <- function(f, of_tensor) {
  argument <- as.name(names(formals(f))[1])
  others <- lapply(names(formals(f))[-1], as.name)
  first <- bquote(if (.(is_tensor)(.(argument))) { # by the function: in adapted code `is.object()` asks of the vector
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
    cubic_pieces(here$z %||% monotone_pieces(here, extrapol[1] == "linear"), v, deriv)
  })
}

#' @rdname tensor_interpolation
#' @export
spline <- function(x, y = NULL, n = 3 * length(x), method = "fmm", xmin = min(x), xmax = max(x), xout, ties = mean) {
  UseMethod("spline", if (missing(xout)) among(x, y) else among(x, y, xout))
}

spline_tensor <- function(x, y = NULL, n = 3 * length(x), method = "fmm", xmin = min(x), xmax = max(x), xout,
                          ties = mean) {
  force(n)
  if (is.null(y)) {
    y <- x
    x <- seq_along(y)
  }
  if (missing(xout)) xout <- seq.int(xmin, xmax, length.out = n)
  list(x = xout, y = splinefun(x, y, method, ties)(xout))
}

# Cubics by their slopes at the knots, with a straight line on either side.
monotone_pieces <- function(here, straight) {
  h <- here$dx
  n <- length(h)
  m <- here$m
  slope <- diff(here$y0) / h
  before <- m[-(n + 1L)]
  c <- (3 * slope - 2 * before - m[-1L]) / h
  d <- (before + m[-1L] - 2 * slope) / h^2
  z <- list(x = here$x0, y = here$y0, b = m, c = base::c(c, 0), d = base::c(d, 0), method = 4L)
  if (!straight) {
    return(list(x = z$x[-(n + 1L)], y = z$y[-(n + 1L)], b = before, c = c, d = d, method = 4L))
  }
  list(
    x = base::c(z$x[1] - 1, z$x), y = base::c(z$y[1] - m[1], z$y), b = base::c(m[1], m), c = base::c(0, z$c),
    d = base::c(0, z$d), method = 4L
  )
}

splinefun_tensor <- function(x, y, method) {
  if (is.null(y)) {
    y <- x
    x <- seq_along(y)
  }
  if (is_tensor(x)) {
    unsupported("x", "must be R's numbers: knots have no gradient.", "`approx()` takes tensors there.", NULL)
  }
  if (!method %in% c("fmm", "natural", "periodic")) {
    unsupported("method", sprintf("must be linear in `y`, which is a tensor; \"%s\" is not.", method), call = NULL)
  }
  y <- flat(y)
  if (is.unsorted(x)) {
    by_size <- order(x)
    x <- x[by_size]
    y <- y[by_size]
  }
  if (anyDuplicated(x)) unsupported("x", "must have no ties where `y` is a tensor.", call = NULL)
  n <- length(x)
  units <- base::diag(n)
  if (method == "periodic") units[n, ] <- units[1, ] # the last is the first
  bases <- lapply(seq_len(n), function(j) environment(stats::splinefun(x, units[, j], method))$z)
  coefficients <- lapply(c(y = "y", b = "b", c = "c", d = "d"), function(name) {
    flat(matmul_tensor(vapply(bases, function(z) as.double(z[[name]]), numeric(n)), y))
  })
  z <- c(coefficients, list(x = x, method = bases[[1]]$method))
  function(x, deriv = 0L) cubic_pieces(z, x, deriv)
}

# Pieces y + u (b + u (c + u d)) of what lies `u` behind a knot, or their derivatives. R's numbers for methods: 1 is
# periodic, 2 natural, which goes on straight to the left.
cubic_pieces <- function(z, v, deriv = 0L) {
  if (!deriv %in% 0:3) {
    unsupported("deriv", "must be 0, 1, 2 or 3.")
  }
  n <- length(z$x)
  if (z$method == 1L) {
    period <- z$x[n] - z$x[1]
    v <- z$x[1] + op_mod(v - z$x[1], period)
  }
  piece <- piece_of(z$x, v, last = n)
  at <- function(part) if (is_tensor(part) || is_tensor(piece)) op_take(flat(part), piece, 1L) else part[piece]
  u <- v - at(z$x)
  d <- at(z$d)
  if (z$method == 2L) d <- op_where(op_less(v, z$x[1]), 0, d)
  switch(deriv + 1L,
    at(z$y) + u * (at(z$b) + u * (at(z$c) + u * d)),
    at(z$b) + u * (2 * at(z$c) + u * (3 * d)),
    2 * at(z$c) + u * (6 * d),
    6 * d + 0 * u
  )
}
