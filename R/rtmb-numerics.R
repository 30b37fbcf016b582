# RTMB's numerical functions: interpolation on a grid, and products with a matrix exponential.

# exp(A) v, by a full matrix exponential; RTMB uses another algorithm.
expAv <- function(A, v, transpose = FALSE, ...) { # nolint: object_name_linter. RTMB's name.
  A <- as.matrix(A)
  if (transpose) A <- t(A)
  found <- op_expm(A) %*% v
  if (is.null(dim(v)) || length(dim(v)) < 2L) as.vector(found) else found
}

# A weighted mean of the grid's values near a point, with weights from a smooth kernel of radius `R` in units of the
# grid.
interpol2Dfun <- function(z, xlim = c(1, nrow(z)), ylim = c(1, ncol(z)), R = 2, ...) { # nolint: object_name_linter.
  force(R)
  places <- function(x, limits, n) (x - limits[1L]) / (limits[2L] - limits[1L]) * (n - 1)
  half <- function(x) (1 + cos(pi * x)) / 2
  reach <- seq.int(-ceiling(R), ceiling(R) + 1)
  offsets <- expand.grid(i = reach, j = if (ncol(z) > 1L) reach else 0)
  function(x, y) {
    size <- max(length(x), length(y))
    i <- places(recycled(op_convert_to_tensor(x), size), xlim, nrow(z))
    j <- places(recycled(op_convert_to_tensor(y), size), ylim, ncol(z))
    at <- function(v) op_floor(op_stop_gradient(v))
    near_i <- op_add(column(at(i)), base::matrix(offsets$i, 1L))
    near_j <- op_add(column(at(j)), base::matrix(offsets$j, 1L))
    distance <- sqrt(op_square(near_i - column(i)) + op_square(near_j - column(j)) + 1e-100)
    inside <- function(v, n) op_logical_and(v >= 0, v <= n - 1)
    known <- op_logical_and(op_logical_and(inside(near_i, nrow(z)), inside(near_j, ncol(z))), distance <= R)
    index <- op_cast(op_clip(near_i, 0, nrow(z) - 1) + nrow(z) * op_clip(near_j, 0, ncol(z) - 1), "int64")
    values <- op_take(array_of(as.vector(ifelse(is.na(z), 0, z))), index + 1L, 1L)
    there <- op_take(array_of(as.vector(!is.na(z)) + 0), index + 1L, 1L)
    weights <- there * op_where(known, half(1 - half(op_minimum(distance / R, 1))), 0)
    found <- op_sum(weights * values, axis = 2L) / op_sum(weights, axis = 2L)
    found <- op_where(op_logical_and(inside(i, nrow(z)), inside(j, ncol(z))), found, NaN)
    unless_tensors(found, x, y)
  }
}

interpol1Dfun <- function(z, xlim = c(1, length(z)), R = 2, ...) { # nolint: object_name_linter. RTMB's name.
  f <- interpol2Dfun(base::matrix(z), xlim, c(-0.5, 0.5), R)
  function(x) f(x, numeric(length(x)))
}
