#' Special functions of tensors
#'
#' `beta()`, `lbeta()`, `choose()`, `lchoose()`, `psigamma()`, `atan2()`, `complex()` and the Bessel functions of
#' tensors and variables. `gamma()`, `lgamma()`, `digamma()`, `trigamma()`, and by them `factorial()` and
#' `lfactorial()`, are base R's generics and have methods. For ordinary R vectors the base R function is called.
#' @param a,b,n,k,y,x Tensors or R numbers, recycled as by R's operators. `k` is a whole number.
#' @param deriv The order of the derivative of `digamma()`, one R number from 0 on.
#' @param nu The order of a Bessel function: tensors or R numbers.
#' @param expon.scaled If `TRUE`, `besselI()` is multiplied by `exp(-x)` and `besselK()` by `exp(x)`.
#' @param real,imaginary,modulus,argument Tensors or R numbers: parts of complex numbers, or their polar form.
#' @param length.out For R's values alone.
#' @returns A tensor.
#' @section Gradient:
#' To all orders, by the digamma function and its derivatives; by `k`, which is rounded as in R, that of the function
#' of a `k` that is not; of `choose()` with one R number `k` below 30 that of the
#' polynomial in `n`, as which R computes it too. Of the Bessel functions by `x`, to all orders,
#' from those of the orders beside (DLMF 10.6 and 10.29), and by `nu`, from their integrals, to second order
#' (`gradops.scipy.special`).
#' @section Errors:
#' - `gradops_error_shape`: shapes that do not fit.
#' - `gradops_error_argument`: a `deriv` that is a tensor, or several.
#' @seealso [op_erf()], [tensor_distributions].
#' @examplesIf gradops_available()
#' choose(variable(c(5, 6.5)), 2)
#' gradient(lgamma, 3)
#' @eval usages("tensor_special")
#' @name tensor_special
NULL

beta_tensor <- function(a, b) {
  exp(lbeta_tensor(a, b))
}

lbeta_tensor <- function(a, b) {
  distribution("special", "lbeta", list(), a, b)
}

choose_tensor <- function(n, k) {
  k <- whole_number(k)
  if (!is_any_tensor(k) && length(k) == 1L && k < 30) {
    value <- if (k < 0) n * 0 else n * 0 + 1
    for (j in seq_len(max(k, 0))) value <- value * ((n - k + j) / j)
    return(value)
  }
  gamma_sign(n + 1) * gamma_sign(n - k + 1) * exp(log_choose(n, k))
}

# `k` rounded, as R does, with its warning where values are known; with the derivative of what is not rounded.
whole_number <- function(k) {
  values <- if (is_any_tensor(k)) known_values(k) else k
  off <- base::which(abs(values - round(values)) > 1e-7)
  for (i in off) {
    warning(sprintf("'k' (%.2f) must be integer, rounded to %.0f", values[i], round(values[i])), call. = FALSE)
  }
  if (!is_any_tensor(k)) {
    return(round(k))
  }
  if (is.null(values) || length(off) > 0L) k + op_stop_gradient(round(k) - k) else k
}

lchoose_tensor <- function(n, k) {
  k <- whole_number(k)
  log_choose(ifelse(holds(n < 0), k - 1 - n, n), k) # the logarithm is of the absolute value
}

log_choose <- function(n, k) {
  if (is_any_tensor(n) || is_any_tensor(k)) distribution("special", "lchoose", list(), n, k) else base::lchoose(n, k)
}

atan2_tensor <- function(y, x) {
  call_operator("arctan2", operand(y), operand(x))
}

# The sign of the gamma function: it turns at 0, -1, -2, ...
gamma_sign <- function(x) {
  ifelse(x > 0 | floor(x) %% 2 == 0, 1, -1)
}

# As R's, NaN at the poles.
gamma_tensor <- function(x) {
  ifelse(holds(x <= 0 & floor(x) == x), NaN, gamma_sign(x)) * exp(call_op("lgamma", x))
}

digamma_tensor <- function(x) {
  psigamma_tensor(x)
}

psigamma_tensor <- function(x, deriv = 0L) {
  if (is.object(deriv) || !is.numeric(deriv) || length(deriv) != 1L || is.na(deriv) || deriv < 0) {
    unsupported("deriv", "must be one R number from 0 on: the order has no gradient.")
  }
  deriv <- as.integer(round(deriv))
  poles <- if (deriv %% 2L == 0L) ifelse(holds(x <= 0 & floor(x) == x), NaN, 0) else 0
  poles + call_op("polygamma", x, deriv)
}

# Six digits that matter, say: rounded at a place that hangs on the size of each element.
signif_tensor <- function(x, digits = 6) {
  size <- op_stop_gradient(abs(x))
  plain <- size == 0 | !is.finite(size)
  place <- max(1, round(digits)) - 1 - floor(log10(ifelse(plain, 1, size)))
  up <- 10^pmax(place, 0)
  down <- 10^pmax(-place, 0)
  ifelse(plain, x, call_op("round", x * up / down, 0) / up * down)
}

# The largest so far, by doubling steps: element i of the rest has seen `step` elements.
running <- function(x, op) {
  x <- column_major(x)
  n <- length(x)
  step <- 1L
  while (step < n) {
    x <- c(x[seq_len(step)], op(x[(step + 1L):n], x[seq_len(n - step)]))
    step <- 2L * step
  }
  x
}

complex_tensor <- function(length.out = 0L, real = numeric(), imaginary = numeric(), modulus = 1, argument = 0) {
  if (missing(modulus) && missing(argument)) {
    (if (length(real)) real else 0) + 1i * (if (length(imaginary)) imaginary else 0)
  } else {
    modulus * (cos(argument) + 1i * sin(argument))
  }
}

bessel_i_tensor <- function(x, nu, expon.scaled = FALSE) {
  distribution("special", if (expon.scaled) "scaled besselI" else "besselI", list(), x, nu)
}

bessel_k_tensor <- function(x, nu, expon.scaled = FALSE) {
  distribution("special", if (expon.scaled) "scaled besselK" else "besselK", list(), x, nu)
}

bessel_j_tensor <- function(x, nu) {
  distribution("special", "besselJ", list(), x, nu)
}

bessel_y_tensor <- function(x, nu) {
  distribution("special", "besselY", list(), x, nu)
}
