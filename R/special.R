#' Special functions of tensors
#'
#' `beta()`, `lbeta()`, `choose()`, `lchoose()` and `atan2()` on tensors and variables. `gamma()`, `lgamma()`,
#' `digamma()`, `trigamma()`, and by them `factorial()` and `lfactorial()`, are base R's generics and have methods. Of
#' R's own values each is base R's.
#' @param a,b,n,k,y,x Tensors or R numbers, recycled as by R's operators. `k` is a whole number.
#' @returns A tensor.
#' @section Gradient:
#' To all orders, by the digamma function and its derivatives; of `choose()` with one R number `k` below 30 that of the
#' polynomial in `n`, as which R computes it too.
#' @section Errors:
#' - `gradops_error_shape`: shapes that do not fit.
#' @examplesIf gradops_available()
#' choose(variable(c(5, 6.5)), 2)
#' gradient(lgamma, 3)
#' @name tensor_special
NULL

#' @rdname tensor_special
#' @export
beta <- function(a, b) {
  UseMethod("beta", among(a, b))
}

beta_tensor <- function(a, b) {
  gamma_sign(a) * gamma_sign(b) * gamma_sign(a + b) * exp(lbeta_tensor(a, b))
}

#' @rdname tensor_special
#' @export
lbeta <- function(a, b) {
  UseMethod("lbeta", among(a, b))
}

lbeta_tensor <- function(a, b) {
  lgamma(a) + lgamma(b) - lgamma(a + b)
}

#' @rdname tensor_special
#' @export
choose <- function(n, k) {
  UseMethod("choose", among(n, k))
}

choose_tensor <- function(n, k) {
  if (is.numeric(k) && length(k) == 1L && k < 30) {
    k <- round(k)
    value <- if (k < 0) n * 0 else n * 0 + 1
    for (j in seq_len(max(k, 0))) value <- value * ((n - k + j) / j)
    return(value)
  }
  gamma_sign(n + 1) * gamma_sign(n - k + 1) * exp(lchoose_tensor(n, k))
}

#' @rdname tensor_special
#' @export
lchoose <- function(n, k) {
  UseMethod("lchoose", among(n, k))
}

lchoose_tensor <- function(n, k) {
  lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
}

#' @rdname tensor_special
#' @export
atan2 <- function(y, x) {
  UseMethod("atan2", among(y, x))
}

atan2_tensor <- function(y, x) {
  call_operator("arctan2", operand(y), operand(x))
}

# The sign of the gamma function: it turns at 0, -1, -2, ...
gamma_sign <- function(x) {
  ifelse(x > 0 | floor(x) %% 2 == 0, 1, -1)
}

gamma_tensor <- function(x) {
  gamma_sign(x) * exp(call_op("lgamma", x))
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
