#' Special functions of tensors
#'
#' `beta()`, `lbeta()`, `choose()`, `lchoose()`, `psigamma()`, `atan2()`, `complex()`, `zapsmall()` and the Bessel
#' functions of tensors and variables. `gamma()`, `lgamma()`, `digamma()`, `trigamma()`, and so `factorial()` and
#' `lfactorial()`, are base R's generics and have methods. For ordinary R vectors the base R function is called.
#' @param a,b,n,k,y,x Tensors or R numbers, recycled as by R's operators. `k` is an integer.
#' @param deriv The order of the derivative of `digamma()`, a single R number from 0 on.
#' @param nu The order of a Bessel function: tensors or R numbers.
#' @param expon.scaled If `TRUE`, `besselI()` is multiplied by `exp(-x)` and `besselK()` by `exp(x)`.
#' @param real,imaginary,modulus,argument Tensors or R numbers: parts of complex numbers, or their polar form.
#' @param length.out Only for R's values.
#' @param digits As in R.
#' @param mFUN,min.d As in R from 4.4 on: the size relative to which `zapsmall()` rounds, a function of `x` and
#'   `is.na(x)`, and the least number of digits after the point.
#' @returns A tensor.
#' @section Gradient:
#' To all orders, by the digamma function and its derivatives. `k` is rounded as in R, and its derivative is that of the
#' function without rounding; `choose()` with a single R number `k` below 30 has the derivative of the polynomial in
#' `n`, as R computes it. Bessel functions have derivatives with respect to `x`, to all orders, from the neighbouring
#' orders (DLMF 10.6 and 10.29), and with respect to `nu`, from their integrals, to second order
#' (`gradops.scipy.special`). The gradient of `zapsmall()` is 0, as that of `round()`.
#' @section Errors:
#' - `gradops_error_shape`: shapes that do not fit.
#' - `gradops_error_argument`: `deriv` is a tensor, or has several elements.
#' @seealso [op_erf()], [tensor_distributions].
#' @examplesIf gradops_available()
#' choose(variable(c(5, 6.5)), 2)
#' gradient(lgamma, 3)
#' @eval usages(generics_of_page("tensor_special"))
#' @name tensor_special
NULL

# Methods for generics that are functions of the core.
special_methods <- function() {
  base::sapply(base::c("beta", "lbeta", "besselI", "besselK", "besselJ", "besselY"), function(name) {
    method <- get(name, topenv())
    operands <- lapply(names(formals(method))[1:2], as.name)
    scaled <- bquote(if (expon.scaled) .(base::paste("scaled", name)) else .(name))
    name <- if ("expon.scaled" %in% names(formals(method))) scaled else name
    with_own_body(method, bquote(special(.(name), ..(operands)), splice = TRUE))
  }, simplify = FALSE)
}

# Call a special function of the core; `settings` are R's numbers.
special <- function(name, ..., settings = list(), call = parent.frame()) {
  distribution("special", name, settings, ..., call = call)
}

choose_tensor <- function(n, k) {
  k <- whole_number(k)
  few <- !is_any_tensor(k) && length(k) == 1L && k < 30
  if (few) special("few", n, settings = list(k)) else special("choose", n, k)
}

# Round `k` as R does, with R's warning if values are known; the derivative is that of the unrounded number.
whole_number <- function(k) {
  values <- (if (is_any_tensor(k)) known_values(k) else k) %||% numeric()
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
  special("lchoose", n, whole_number(k))
}

atan2_tensor <- function(y, x) {
  call_operator("arctan2", operand(y), operand(x))
}

psigamma_tensor <- function(x, deriv = 0L) {
  if (is.object(deriv) || !is.numeric(deriv) || length(deriv) != 1L || is.na(deriv) || deriv < 0) {
    unsupported("deriv", "must be one R number from 0 on: the order has no gradient.")
  }
  special("psigamma", x, settings = list(round(deriv)))
}

complex_tensor <- function(length.out = 0L, real = numeric(), imaginary = numeric(), modulus = 1, argument = 0) {
  if (missing(modulus) && missing(argument)) {
    (if (length(real)) real else 0) + 1i * (if (length(imaginary)) imaginary else 0)
  } else {
    modulus * (cos(argument) + 1i * sin(argument))
  }
}

#' @rdname tensor_special
#' @export
# With the arguments that R has since 4.4.
zapsmall <- function(x, digits = getOption("digits"), mFUN = function(x, ina) max(abs(x[!ina])), min.d = 0L) {
  UseMethod("zapsmall", among(x))
}

zapsmall_tensor <- function(x, digits = getOption("digits"), mFUN = function(x, ina) max(abs(x[!ina])), min.d = 0L) {
  largest <- if (missing(mFUN)) op_nanmax(abs(x)) else mFUN(x, is.na(x))
  exponent <- log10(largest)
  # Some versions of R round the exponent, others the number of digits.
  if ("ceiling" %in% all.names(body(base::zapsmall))) exponent <- ceiling(exponent)
  kept <- op_where(largest > 0, op_floor(digits - exponent + 0.5), digits)
  unit <- 10^op_clip(kept, min.d, 300)
  keep_names(op_where(op_isfinite(unit), round(x * unit) / unit, x), x)
}
