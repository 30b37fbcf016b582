# Differential equations in deSolve's form, with derivatives.

#' Solve a differential equation, with derivatives
#'
#' `ode()` has the arguments and the result of deSolve's function, which takes only ordinary R numbers. Here `y`,
#' `times`, `parms` and the variables that `func` closes over may be tensors, as they are in a function that is
#' differentiated: the solution then has derivatives with respect to them. deSolve need not be installed;
#' `gradops::ode()` is this function if both packages are attached.
#'
#' - `"lsoda"` switches between Adams' methods and backward differentiation formulas (BDF); `"bdf"` uses only BDF
#'   (`"lsode"` and `"vode"` are other names for it); `"radau"` is Radau's implicit method. All are for stiff equations
#'   and use the exact Jacobian of `func`. `"ode45"` and `"ode23"` are the explicit methods of Dormand and Prince and of
#'   Bogacki and Shampine; `rtol` and `atol` control their steps. SciPy runs them (Hindmarsh 1983 for `"lsoda"`).
#' - `"rk4"`, the classical Runge-Kutta method, and `"euler"` take one step from each of `times` to the next. Use them
#'   in compiled code ([maximize_likelihood()], [jit()]), where values are not known.
#' @param y The initial values: a vector, with the names of its elements.
#' @param times The times at which the solution is wanted; `y` is the state at the first.
#' @param func A function of the time, the state, `parms` and `...` that returns a list: first the derivatives of the
#'   state, then further numbers, which get columns of their own.
#' @param parms Passed to `func`: a vector or a list with names, or `NULL`.
#' @param method One of `"lsoda"`, `"bdf"`, `"lsode"`, `"vode"`, `"radau"`, `"ode45"`, `"ode23"`, `"rk4"`, `"euler"`.
#' @param rtol,atol Bounds on a step's relative and absolute error: numbers; `atol` may have one for each element of
#'   `y`.
#' @param rootfunc A function of the time, the state, `parms` and `...` that returns numbers. The solution ends where the
#'   first of them is 0, other than at the first time, and this time and state are the last row. Not with `"rk4"` and
#'   `"euler"`.
#' @param hini,hmax The first and the largest step size; by default the method chooses them.
#' @param ... Further arguments of `func`.
#' @returns A matrix with a row for each of `times`, or each before the root and one for the root. Its columns are `time`, the elements of `y`, and the further
#'   numbers that `func` gives. It is a tensor if any argument or result of `func` is one.
#' @section Gradient:
#' The solution has derivatives with respect to `y`, `parms` and `times`, which are as accurate as the solution: set
#' `rtol` and `atol`. The time of a root has derivatives, by the implicit function theorem, to third order. `"ode45"` and `"ode23"` record their steps; `"rk4"` and `"euler"` are ordinary code. These four
#' have derivatives of all orders, also with respect to variables that `func` closes over. The implicit methods solve
#' the adjoint equation backwards (Pontryagin 1962; Chen et al. 2018), which gives derivatives with respect to `y`,
#' `times` and the elements of `parms`.
#' @section Errors:
#' - `gradops_error_argument`: a method or an argument of deSolve's that gradops does not have; a number of derivatives
#'   that differs from the length of `y`; a solution that ends before the last of `times`.
#' - `gradops_error_gradient`: an implicit method, and a tensor that `func` closes over and whose gradient is recorded.
#' - `gradops_error_jit`: a method other than `"rk4"` and `"euler"` in compiled code.
#' @seealso [uniroot()] and the other solvers, [fixed_point()].
#' @examplesIf gradops_available()
#' infected <- function(t, y, parms) {
#'   with(as.list(c(y, parms)), {
#'     new <- beta * S * I
#'     list(c(-new, new - gamma * I), total = S + I)
#'   })
#' }
#' at <- c(beta = 1.5, gamma = 0.5)
#' ode(c(S = 0.99, I = 0.01), 0:3, infected, at)
#' gradient(function(p) ode(c(S = 0.99, I = 0.01), 0:3, infected, p)[4, "I"], at)
#' # the time at which a ball hits the ground
#' fall <- function(t, y, gravity) list(c(y[["speed"]], -gravity))
#' landing <- function(gravity) {
#'   found <- ode(c(height = 5, speed = 0), c(0, 9), fall, gravity, rootfunc = function(t, y, p) y[["height"]])
#'   found[2, "time"]
#' }
#' gradient(landing, 9.8)
#' @export
ode <- function(y, times, func, parms = NULL, method = "lsoda", rtol = 1e-6, atol = 1e-6, ..., hini = NULL,
                hmax = NULL, rootfunc = NULL) {
  check_function(func)
  check_ode(y, times, method, ...names())
  n <- length(y)
  names <- names(y) %||% as.character(seq_len(n))
  rates <- function(t, y, parms) {
    found <- func(t, y, parms, ...)
    if (!is.list(found)) unsupported("func", "must return a list, whose first element has the slopes: `list(dy)`.")
    slope <- found[[1L]]
    if (is.list(slope)) slope <- do.call(c, unname(slope))
    if (length(slope) != n) {
      unsupported("func", sprintf("must return %d slopes, one for each element of `y`; got %d.", n, length(slope)))
    }
    list(slope = slope, more = found[-1L])
  }
  first <- rates(times[1L], y, parms)
  fixed <- c("euler", "rk4")
  if (method %in% fixed) {
    if (!is.null(hini) || !is.null(hmax)) unsupported("hini", "and `hmax` are not used: `times` gives the steps.")
    if (!is.null(rootfunc)) unsupported("rootfunc", "needs a method that finds its steps, such as \"lsoda\".")
    rows <- fixed_steps(y, times, function(t, y) rates(t, y, parms)$slope, method)
  } else {
    options <- list(rtol = rtol, atol = atol)
    options$first_step <- hini
    options$max_step <- hmax
    root <- if (!is.null(rootfunc)) function(t, y, parms) rootfunc(t, y, parms, ...)
    rows <- adaptive_steps(y, times, rates, parms, first$slope, ode_methods[[method]], options, root)
    if (!is.null(root)) {
      times <- rows[, 1L]
      rows <- rows[, -1L, drop = FALSE]
    }
  }
  further <- first$more
  if (length(further) > 0L) {
    by_row <- lapply(seq_len(nrow(rows)), function(i) {
      do.call(c, unname(lapply(rates(times[i], labelled(rows[i, ], names(y)), parms)$more, as.vector)))
    })
    rows <- do.call(cbind, list(rows, do.call(rbind, by_row)))
    sizes <- lengths(further)
    given <- rep(rlang::names2(further), sizes)
    within <- as.character(unlist(lapply(further, function(x) names(x) %||% character(length(x)))))
    labels <- paste0(given, ifelse(nzchar(given) & nzchar(within), ".", ""), within)
    names <- c(names, if (any(nzchar(labels))) labels else n + seq_along(labels))
  }
  found <- do.call(cbind, list(times, rows))
  labels <- list(NULL, c("time", names))
  if (is_any_tensor(found)) with_dimnames(found, labels) else array(found, dim(found), labels)
}

# SciPy's methods, by the names that deSolve has for them.
ode_methods <- c(
  lsoda = "LSODA", bdf = "BDF", lsode = "BDF", vode = "BDF", radau = "Radau", ode45 = "RK45", ode23 = "RK23"
)

# Replacements for the methods of deSolve that are not available here.
ode_others <- c(
  adams = "lsoda", impAdams = "lsoda", impAdams_d = "lsoda", bdf_d = "bdf", lsodes = "bdf", lsodar = "lsoda",
  daspk = "radau", iteration = "euler"
)

# Arguments of deSolve's that would change the result, so they raise an error.
ode_refused <- c(
  "jacfunc", "jactype", "events", "forcings", "lags", "dllname", "initfunc", "initforc", "initpar", "rpar",
  "ipar", "nout", "outnames", "fcontrol", "tcrit", "mf", "mass", "res", "hmin", "maxsteps", "maxord", "maxordn",
  "maxords", "verbose", "ynames"
)

check_ode <- function(y, times, method, names, call = parent.frame()) {
  known <- c(names(ode_methods), "rk4", "euler")
  if (!rlang::is_string(method, known)) {
    instead <- if (rlang::is_string(method, names(ode_others))) sprintf("Take \"%s\".", ode_others[[method]])
    unsupported("method", paste("must be one of", toString(sprintf("\"%s\"", known))), instead, call)
  }
  refused <- intersect(names, ode_refused)
  if (length(refused) > 0L) {
    unsupported("...", sprintf("has `%s`, which gradops does not support.", refused[1L]), call = call)
  }
  if (length(y) == 0L) unsupported("y", "must have elements.", call = call)
  if (length(times) < 2L) unsupported("times", "must be two numbers or more.", call = call)
}

# The solution, one row per time, by one step of a fixed-step method from each time to the next.
fixed_steps <- function(y, times, slope, method) {
  rows <- list(y)
  named <- function(at) labelled(at, names(y))
  for (i in seq_along(times)[-1L]) {
    t <- times[i - 1L]
    h <- times[i] - t
    k <- slope(t, y)
    if (method == "rk4") {
      k2 <- slope(t + h / 2, named(y + h / 2 * k))
      k3 <- slope(t + h / 2, named(y + h / 2 * k2))
      k4 <- slope(t + h, named(y + h * k3))
      k <- (k + 2 * k2 + 2 * k3 + k4) / 6
    }
    y <- named(y + h * k)
    rows[[i]] <- y
  }
  do.call(rbind, rows)
}

labelled <- function(x, names) if (is_any_tensor(x)) with_names(x, names) else stats::setNames(x, names)

# The solution, one row per time, by SciPy's methods, which choose their steps on numbers; with `root` until there, and
# with the times in the first column. Tensors of `parms` are
# arguments of the equation, as the adjoint equation has derivatives only with respect to arguments.
adaptive_steps <- function(y, times, rates, parms, slope, method, options, root = NULL) {
  labels <- names(y)
  at_root <- if (!is.null(root)) root(times[1L], y, parms)
  solve <- function(right, crossing, ...) {
    if (is.null(root)) return(call_core("interop.r.stats.solution", right, ...))
    call_core("interop.r.stats.solution_to_root", right, crossing, length(at_root), ...)
  }
  parts <- if (is.list(parms)) parms else list(parms)
  moving <- which(vapply(parts, is_any_tensor, TRUE))
  if (!any_tensor(y, times, slope, at_root) && length(moving) == 0L) {
    right <- function(t, y) as.double(rates(as.vector(t), stats::setNames(as.vector(y), labels), parms)$slope)
    if (method %in% c("LSODA", "BDF", "Radau")) options["jac"] <- list(NULL) # finite differences: `right` is plain
    crossing <- function(t, y) as.double(root(as.vector(t), stats::setNames(as.vector(y), labels), parms))
    return(plain_numbers(solve(
      callback(right, take = r_numbers), callback(crossing, take = r_numbers), as.double(y), as.double(times), list(),
      method, options
    )))
  }
  if (is_any_tensor(slope) && is.null(known_values(slope))) {
    needs_values("`ode()`", "In compiled code use the method \"rk4\", with `times` close enough for it.", NULL)
  }
  with_parts <- function(f) {
    callback(differentiated(function(t, y, ...) {
      parts[moving] <- Map(function(part, like) with_names(part, names(like)), list(...), parts[moving])
      f(t, with_names(y, labels), if (is.list(parms)) parts else parts[[1L]])
    }, new.env()))
  }
  solve(
    with_parts(function(...) rates(...)$slope), with_parts(root), operand(y), operand(times),
    lapply(unname(parts[moving]), operand), method, options
  )
}
