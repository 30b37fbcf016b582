#' Signals and series of tensors
#'
#' `fft()`, `mvfft()`, `convolve()`, `filter()`, `embed()` and `toeplitz()` of stats on tensors and variables, with
#' their arguments: the inverse transform is not divided by the number of elements, an array is transformed along all of
#' its dimensions. For ordinary R vectors the stats function is called. (`filter()` of anything but tensors is the next
#' `filter()` on the search path, so that dplyr's stays in use.)
#'
#' Time series, `ts`, are aligned by operators as in R, while a function is differentiated or compiled, and from R 4.3
#' on anywhere: `y - phi * lag(y, -1)` is of the times that both have. Results keep the time of a series where they do
#' in R: in operators, mathematics, `ifelse()`, `pmax()`, densities, `filter()`, `x[i] <- value`, `lag()`, `window()`,
#' `diff()`. To the `op_*()` functions a series is its values.
#' @param z,x,y Tensors, or what R takes.
#' @param inverse If `TRUE`, the inverse transform, unnormalized.
#' @param conj If `TRUE`, the complex conjugate of the transform of `y` is taken.
#' @param type As in stats.
#' @param dimension How many columns: `x` and its lags.
#' @param ... As of [stats::filter()]: `x`, `filter`, `method`, `sides`, `circular`, `init`.
#' @param r,symmetric For `toeplitz()`: the first row, and whether it is the first column. R knows them from 4.3 on.
#' @returns A tensor. `filter()` has NaN where R has `NA`.
#' @section Gradient:
#' To all orders; of complex numbers as of [op_fft()].
#' @section Errors:
#' - `gradops_error_shape`, `gradops_error_argument`: lengths that do not fit.
#' @seealso [op_fft()], [op_conv()], [op_scan()].
#' @examplesIf gradops_available()
#' x <- variable(c(1, 2, 4, 8))
#' Mod(fft(x))
#' filter(x, c(0.5, 0.5), sides = 1)
#' embed(x, 2)
#' gradient(function(r) sum(solve(toeplitz(r), c(1, 2, 3))), c(2, 1, 0.5))
#' @eval usages("tensor_signals")
#' @name tensor_signals
NULL

fft_tensor <- function(z, inverse = FALSE) {
  rank <- length(dim(z))
  for (axis in seq_len(max(rank, 1L))) z <- transform_along(z, axis, inverse)
  z
}

mvfft_tensor <- function(z, inverse = FALSE) {
  if (length(dim(z)) != 2L) {
    unsupported("z", "must be a matrix.")
  }
  transform_along(z, 1L, inverse)
}

transform_along <- function(z, axis, inverse) {
  rank <- length(dim(z))
  if (rank == 0L) {
    return(op_cast(z, "complex128"))
  }
  z <- if (axis == rank) z else op_swapaxes(z, axis, rank)
  z <- if (inverse) Conj(op_fft(Conj(z))) else op_fft(z)
  if (axis == rank) z else op_swapaxes(z, axis, rank)
}

convolve_tensor <- function(x, y, conj = TRUE, type = c("circular", "open", "filter")) {
  type <- match.arg(type)
  nx <- length(x)
  ny <- length(y)
  if (type == "circular" && nx != ny) {
    unsupported("y", sprintf("must be as long as `x`, %d, in a circular convolution; got %d.", nx, ny))
  }
  real <- !holds_complex(x) && !holds_complex(y)
  x <- flat(x)
  y <- flat(y)
  if (type != "circular") {
    x <- joined(list(numeric(ny - 1), x))
    y <- joined(list(y, numeric(nx - 1)))
  }
  n <- length(x)
  spectrum <- fft(y)
  z <- fft_tensor(op_convert_to_tensor(fft(x) * if (conj) Conj(spectrum) else spectrum), inverse = TRUE) / n
  if (real) z <- Re(z)
  if (type == "filter") z[ny:nx] else z
}

holds_complex <- function(x) {
  if (is_tensor(x)) startsWith(op_dtype(x), "complex") else is.complex(x)
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

# The function of that name on the search path behind gradops.
behind <- function(name, otherwise) {
  attached <- match("package:gradops", search())
  if (is.na(attached)) otherwise else get0(name, as.environment(attached + 1L), mode = "function") %||% otherwise
}

filter_tensor <- function(x, filter, method = c("convolution", "recursive"), sides = 2L, circular = FALSE,
                          init = NULL) {
  method <- match.arg(method)
  if (!is_vector(x)) {
    columns <- lapply(seq_len(ncol(x)), function(j) filter_tensor(x[, j], filter, method, sides, circular, init))
    return(op_stack(columns, 2L))
  }
  values <- flat(x)
  weights <- flat(filter)
  by <- if (method == "recursive") filter_recursive(values, weights, init) else moving(values, weights, sides, circular)
  with_time(by, time_of(x))
}

# The sum of `weights[j]` times the element `j - 1` places back, of both sides from the middle.
moving <- function(x, weights, sides, circular) {
  n <- length(x)
  p <- length(weights)
  if (p > n) {
    unsupported("filter", sprintf("is longer than the series: %d and %d.", p, n))
  }
  ahead <- if (sides == 2) p %/% 2L else 0L
  last <- seq_len(n) + ahead
  if (!circular) last <- last[last >= p & last <= n]
  places <- base::outer(last, seq_len(p) - 1L, `-`)
  window <- fill(x[(as.vector(places) - 1L) %% n + 1L], dim(places))
  inside <- flat(matmul_tensor(window, weights))
  if (circular) inside else joined(list(rep(NaN, p - 1L - ahead), inside, rep(NaN, ahead)))
}

# y[i] = x[i] + weights[1] y[i - 1] + ...: a triangular system, in blocks.
filter_recursive <- function(x, weights, init, block = 256L) {
  n <- length(x)
  p <- length(weights)
  before <- if (is.null(init)) numeric(p) else flat(init)
  if (length(before) != p) {
    unsupported("init", sprintf("must have as many elements as `filter`, %d; got %d.", p, length(before)))
  }
  before <- rev(before) # as time goes
  size <- min(block, n)
  lags <- base::outer(seq_len(size), seq_len(size), `-`)
  coefficients <- joined(list(1, -weights, numeric(max(size - p, 1))))
  system <- lower_toeplitz(coefficients, lags)
  carried <- base::outer(seq_len(size), seq_len(p), function(i, k) i + p - k) # the lag from what came before
  weight_of <- joined(list(weights, 0))
  carry <- fill(weight_of[as.vector(ifelse(carried > p, p + 1L, carried))], dim(carried))
  done <- list()
  for (start in seq.int(1L, n, by = size)) {
    rows <- seq_len(min(size, n - start + 1L))
    right <- x[start - 1L + rows] + flat(matmul_tensor(carry, before))[rows]
    y <- op_solve_triangular(if (length(rows) < size) system[rows, rows, drop = FALSE] else system, right, lower = TRUE)
    done <- c(done, list(y))
    recent <- joined(list(before, y))
    before <- recent[length(recent) - p + seq_len(p)]
  }
  joined(done)
}

lower_toeplitz <- function(coefficients, lags) {
  fill(joined(list(coefficients, 0))[as.vector(ifelse(lags < 0, length(coefficients) + 1L, lags + 1L))], dim(lags))
}

embed_tensor <- function(x, dimension = 1) {
  dimension <- whole_numbers(dimension, "embed")
  n <- if (is_vector(x)) length(x) else nrow(x)
  if (dimension < 1 || dimension > n) {
    unsupported("dimension", sprintf("must be from 1 to %d; got %s.", n, format(dimension)))
  }
  lagged <- function(lag) {
    rows <- dimension - lag + seq_len(n - dimension + 1L)
    if (is_vector(x)) fill(flat(x)[rows], c(length(rows), 1L)) else x[rows, , drop = FALSE]
  }
  op_concatenate(lapply(seq_len(dimension), lagged), 2L)
}

#' @rdname tensor_signals
#' @export
toeplitz <- function(x, r = NULL, symmetric = is.null(r)) {
  UseMethod("toeplitz", among(x, r))
}

toeplitz_tensor <- function(x, r = NULL, symmetric = is.null(r)) {
  x <- flat(x)
  n <- length(x)
  if (symmetric) {
    lags <- abs(base::outer(seq_len(n), seq_len(n), `-`))
    return(fill(x[as.vector(lags) + 1L], c(n, n)))
  }
  columns <- length(r)
  lags <- base::outer(seq_len(n), seq_len(columns), `-`)
  places <- ifelse(lags >= 0, lags + 1L, n - lags) # below the diagonal of `x`, above of `r[-1]`
  fill(joined(list(x, flat(r)[-1L]))[as.vector(places)], c(n, columns))
}
