# `integrate()` of tensors: see `functional-solvers.R`. Points are places `u` from 0 to 1, which go to the interval, so
# that the bounds have derivatives.

#' @rdname tensor_solvers
#' @export
integrate <- function(f, lower, upper, ..., subdivisions = 100L, rel.tol = .Machine$double.eps^0.25,
                      abs.tol = rel.tol, stop.on.error = TRUE, keep.xy = FALSE, aux = NULL) {
  f <- match.fun(f)
  noted <- new.env()
  found <- on_numbers(stats::integrate(
    numbers_of(f, noted), number_of(lower, noted), number_of(upper, noted), ..., subdivisions = subdivisions,
    rel.tol = rel.tol, abs.tol = abs.tol, stop.on.error = stop.on.error, keep.xy = keep.xy, aux = aux
  ))
  if (is.null(noted$tensor)) {
    return(found)
  }
  integrand <- integrand_of(function(x) f(x, ...), lower, upper)
  if (is.null(found)) {
    rule <- double_exponential(integrand$infinite)
    error <- NA_real_
  } else {
    rule <- adapted(function(u) number_of(integrand$at(u), noted), subdivisions)
    error <- rule$error
    if (error > base::max(abs.tol, rel.tol * abs(found$value))) {
      abort(
        sprintf("`integrate()` has no derivative here: %d parts leave an error of %.1g.", subdivisions, error),
        class = c("gradops_error_gradient", "gradops_error")
      )
    }
  }
  value <- op_sum(op_multiply(integrand$at(rule$u), array_of(rule$weight)))
  structure(
    list(
      value = value, abs.error = error, subdivisions = found$subdivisions %||% NA_integer_,
      message = found$message %||% "values are not known", call = match.call()
    ),
    class = "integrate"
  )
}

# The integrand as a function of places from 0 to 1 (their distance from 1 too, where it is known better).
integrand_of <- function(f, lower, upper) {
  ends <- vapply(list(lower, upper), function(end) !is.environment(end) && is.infinite(end), NA)
  if (ends[1] && lower > 0 || ends[2] && upper < 0) {
    backward <- integrand_of(f, upper, lower)
    at <- backward$at
    return(list(infinite = backward$infinite, at = function(u) -at(u)))
  }
  far <- function(u) (1 - u) / u
  slope <- function(u) array_of(1 / u^2)
  at <- if (all(ends)) {
    function(u) op_multiply(f(far(u)) + f(-far(u)), slope(u))
  } else if (ends[2]) {
    function(u) op_multiply(f(lower + far(u)), slope(u))
  } else if (ends[1]) {
    function(u) op_multiply(f(upper - far(u)), slope(u))
  } else {
    function(u) op_multiply(f(lower + (upper - lower) * u), upper - lower)
  }
  list(infinite = any(ends), at = at)
}

# Gauss and Kronrod's 21 points on -1 to 1, those from 0 on, and weights (Piessens et al. 1983); every second is one of
# Gauss' 10.
kronrod <- list(
  x = c(
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
    0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
    0.14887433898163121088482600112972, 0
  ),
  weight = c(
    0.011694638867371874278064396062192, 0.03255816230796472747881897245939, 0.05475589657435199603138130024458,
    0.07503967481091995276704314091619, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
    0.147739104901338491374841515972068, 0.149445554002916905664936468389821
  ),
  gauss = c(
    0.066671344308688137593568809893332, 0.149451349150580593145863396957658, 0.219086362515982043995534934228163,
    0.269266719309996355091226921569469, 0.295524224714752870173815619188769
  )
)

# Points and weights in parts of 0 to 1, halved where the error is.
adapted <- function(f, subdivisions, tolerance = 1e-10) {
  x <- c(-kronrod$x, rev(kronrod$x)[-1])
  weight <- c(kronrod$weight, rev(kronrod$weight)[-1])
  gauss <- numeric(21)
  gauss[c(2, 4, 6, 8, 10)] <- kronrod$gauss
  gauss <- gauss + rev(gauss)
  parts <- base::matrix(numeric(), 0, 4, dimnames = list(NULL, c("start", "size", "value", "error")))
  fresh <- base::matrix(c(0, 1), 1)
  repeat {
    u <- as.vector(base::outer(x, fresh[, 2] / 2) + rep(fresh[, 1] + fresh[, 2] / 2, each = 21))
    values <- base::matrix(f(u), 21)
    half <- fresh[, 2] / 2
    total <- base::colSums(values * weight) * half
    spread <- base::colSums(abs(values - rep(total / (2 * half), each = 21)) * weight) * half
    error <- abs(total - base::colSums(values * gauss) * half)
    error <- ifelse(spread > 0, spread * base::pmin(1, (200 * error / spread)^1.5), error)
    parts <- base::rbind(parts, base::cbind(fresh[, 1], fresh[, 2], total, error))
    goal <- tolerance * base::max(abs(sum(parts[, 3])), 1e-300)
    if (sum(parts[, 4]) <= goal || nrow(parts) >= subdivisions) break
    worst <- parts[, 4] > goal / nrow(parts)
    if (!any(worst)) break
    split <- parts[worst, , drop = FALSE]
    parts <- parts[!worst, , drop = FALSE]
    fresh <- base::rbind(
      base::cbind(split[, 1], split[, 2] / 2), base::cbind(split[, 1] + split[, 2] / 2, split[, 2] / 2)
    )
  }
  list(
    u = as.vector(base::outer(x, parts[, 2] / 2) + rep(parts[, 1] + parts[, 2] / 2, each = 21)),
    weight = as.vector(base::outer(weight, parts[, 2] / 2)), error = sum(parts[, 4])
  )
}

# Takahasi and Mori's rule (1974) on 0 to 1, finer where the interval is infinite.
double_exponential <- function(infinite) {
  step <- if (infinite) 1 / 128 else 1 / 64
  t <- seq(-3.1, 3.1, by = step)
  u <- 1 / (1 + exp(-pi * sinh(t)))
  weight <- step * pi * cosh(t) * u * (1 - u)
  keep <- u > 1e-14 & u < 1 - 1e-14
  list(u = u[keep], weight = weight[keep])
}
