#' Signals and series of tensors
#'
#' `fft()`, `mvfft()`, `convolve()`, `filter()`, `embed()` and `toeplitz()` of stats on tensors and variables, with the
#' same arguments: the inverse transform is not divided by the number of elements, and an array is transformed along all
#' its dimensions. For ordinary R vectors the stats function is called. (Without a tensor, `filter()` calls the next
#' `filter()` on the search path, so dplyr's stays available.)
#'
#' Operators align time series, `ts`, as in R, while a function is differentiated or compiled, and from R 4.3 on
#' everywhere: `y - phi * lag(y, -1)` has the times that both series have. Results keep the time of a series where they
#' do in R: in operators, mathematics, `ifelse()`, `pmax()`, densities, `filter()`, `x[i] <- value`, `lag()`,
#' `window()`, `diff()`. The `op_*()` functions use only the values of a series.
#' @param z,x,y Tensors, or what R takes.
#' @param inverse If `TRUE`, the inverse transform, unnormalized.
#' @param conj If `TRUE`, the complex conjugate of the transform of `y` is used.
#' @param type As in stats.
#' @param dimension The number of columns: `x` and its lags.
#' @param ... As for [stats::filter()]: `x`, `filter`, `method`, `sides`, `circular`, `init`.
#' @param r,symmetric For `toeplitz()`: the first row, and whether it is the first column. In R from 4.3 on.
#' @returns A tensor. `filter()` has NaN where R has `NA`.
#' @section Gradient:
#' To all orders; for complex numbers as in [op_fft()].
#' @section Errors:
#' - `gradops_error_shape`, `gradops_error_argument`: lengths that do not fit.
#' @seealso [op_fft()], [op_conv()], [op_scan()].
#' @examplesIf gradops_available()
#' x <- variable(c(1, 2, 4, 8))
#' Mod(fft(x))
#' filter(x, c(0.5, 0.5), sides = 1)
#' embed(x, 2)
#' gradient(function(r) sum(solve(toeplitz(r), c(1, 2, 3))), c(2, 1, 0.5))
#' @eval usages(generics_of_page("tensor_signals"))
#' @name tensor_signals
NULL

fft_tensor <- function(z, inverse = FALSE) {
  if (length(dim(z)) == 0L) op_cast(z, "complex128") else transformed("fftn", z, inverse)
}

mvfft_tensor <- function(z, inverse = FALSE) {
  if (length(dim(z)) != 2L) {
    unsupported("z", "must be a matrix.")
  }
  transformed("fft", z, inverse, axis = 0L)
}

transformed <- function(name, z, inverse, ...) {
  inverse_of <- if (inverse) "i"
  call_core(paste0("scipy.fft.", inverse_of, name), z, norm = if (inverse) "forward", ...)
}

convolve_tensor <- function(x, y, conj = TRUE, type = c("circular", "open", "filter")) {
  call_core("interop.r.stats.convolve", operand(x), operand(y), is_set(conj), match.arg(type))
}

#' @rdname tensor_signals
#' @export
filter <- function(...) {
  if (...length() > 0 && (is_tensor(..1) || is.numeric(..1)) && any_tensor(...)) {
    filter_tensor(...)
  } else {
    behind("filter", stats::filter)(...)
  }
}

# The function of that name on the search path after gradops.
behind <- function(name, otherwise) {
  attached <- match("package:gradops", search())
  if (is.na(attached)) otherwise else get0(name, as.environment(attached + 1L), mode = "function") %||% otherwise
}

filter_tensor <- function(x, filter, method = c("convolution", "recursive"), sides = 2L, circular = FALSE,
                          init = NULL) {
  value <- if (match.arg(method) == "recursive") {
    call_core("interop.r.stats.recursive", operand(x), operand(filter), operand(init))
  } else {
    call_core("interop.r.stats.moving", operand(x), operand(filter), sides == 2, is_set(circular))
  }
  with_time(past_ends(value, x, filter, method, sides, circular), time_of(x))
}

# Exclude the ends, where no average is defined, from derivatives, like missing data.
past_ends <- function(value, x, filter, method, sides, circular) {
  if (inside() == 0 || startsWith("recursive", method[1L]) || circular || length(dim(x)) > 1L) {
    return(value)
  }
  missing <- is.na(as.vector(stats::filter(numeric(length(x)), numeric(length(filter)), sides = sides)))
  if (any(missing)) marked(op_where(missing, 0.5, value), list(missing)) else value
}

embed_tensor <- function(x, dimension = 1) {
  call_core("interop.r.stats.embed", x, whole_numbers(dimension, "embed"))
}

#' @rdname tensor_signals
#' @export
toeplitz <- function(x, r = NULL, symmetric = is.null(r)) {
  UseMethod("toeplitz", among(x, r))
}

toeplitz_tensor <- function(x, r = NULL, symmetric = is.null(r)) {
  call_core("interop.r.stats.toeplitz", operand(x), if (!symmetric) operand(r))
}
