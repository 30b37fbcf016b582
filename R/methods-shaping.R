#' Shapes of tensors
#'
#' Base R's functions that set a shape, on tensors and variables: elements fill matrices and arrays by column and are
#' recycled as in R. `dim(x) <- value` makes a new tensor. For ordinary R vectors the base R function is called.
#' @param data A tensor or variable, or what base R takes. Its elements are recycled or cut to fit.
#' @param nrow,ncol Rows and columns.
#' @param byrow If `TRUE`, the matrix is filled by row.
#' @param dimnames Names of the elements of a one-dimensional array; for others the names of rows, columns, ...
#' @param dim Sizes of the dimensions.
#' @param x A tensor, or what base R takes.
#' @returns A tensor: `drop()` removes dimensions of size 1.
#' @section Gradient:
#' Each element gets the upstream gradient at its position, summed over all positions if it is recycled.
#' @section Errors:
#' - `gradops_error_shape`: `dim(x) <-` with another number of elements; no elements to recycle.
#' @seealso [op_reshape()], [op_transpose()], [tensor_parts].
#' @examplesIf gradops_available()
#' x <- variable(1:6 / 2)
#' matrix(x, 2)
#' dim(x) <- c(3, 2)
#' drop(x %*% c(1, 2))
#' array(x, c(1, 2, 3))
#' gradient(function(x) sum(matrix(x, 2) %*% c(1, 2)), c(1, 2, 3, 4))
#' @name tensor_shapes
NULL

#' @rdname tensor_shapes
#' @export
matrix <- function(data = NA, nrow = 1, ncol = 1, byrow = FALSE, dimnames = NULL) {
  UseMethod("matrix", among(if (!missing(data)) data, if (!missing(nrow)) nrow, if (!missing(ncol)) ncol))
}

matrix_tensor <- function(data = NA, nrow = 1, ncol = 1, byrow = FALSE, dimnames = NULL) {
  if (!missing(nrow)) nrow <- whole_numbers(nrow, "matrix")
  if (!missing(ncol)) ncol <- whole_numbers(ncol, "matrix")
  if (missing(nrow) && missing(ncol)) {
    nrow <- length(data)
  } else if (missing(nrow)) {
    nrow <- ceiling(length(data) / ncol)
  } else if (missing(ncol)) {
    ncol <- ceiling(length(data) / nrow)
  }
  if (!is_any_tensor(data)) {
    return(base::matrix(data, nrow, ncol, byrow, dimnames))
  }
  dim <- as.integer(base::c(nrow, ncol))
  logged <- if (!is.null(state$scalars)) {
    rearranged(function(cells) base::matrix(rep_len(cells, prod(dim)), dim[1L], dim[2L], byrow), data)
  }
  value <- with_dimnames(logged %||% call_core("interop.r.filled", data, as.list(dim), byrow), dimnames)
  if (byrow) value else made_by(value, function(data) matrix_tensor(data, nrow, ncol), list(data))
}

#' @rdname tensor_shapes
#' @export
array <- function(data = NA, dim = length(data), dimnames = NULL) {
  UseMethod("array", among(if (!missing(data)) data, if (!missing(dim)) dim))
}

array_tensor <- function(data = NA, dim = length(data), dimnames = NULL) {
  dim <- whole_numbers(dim, "array")
  if (!is_any_tensor(data)) {
    return(base::array(data, dim, dimnames))
  }
  logged <- if (!is.null(state$scalars) && length(dim) == 2L) rearranged(function(cells) base::array(cells, dim), data)
  filled <- logged %||% call_core("interop.r.filled", data, as.list(as.integer(dim)))
  filled <- made_by(filled, function(data) array_tensor(data, dim), list(data))
  if (length(dim) == 1L) as_one_dimensional(filled, dimnames[[1L]]) else with_dimnames(filled, dimnames)
}

#' @rdname tensor_shapes
#' @export
drop <- function(x) {
  UseMethod("drop", among(x))
}

drop_tensor <- function(x) {
  if (!any(dim(x) == 1L)) {
    return(x)
  }
  logged <- if (!is.null(state$scalars) && length(x) > 1L) rearranged(base::drop, x)
  logged %||% taken_past_missing(x, drop, op_squeeze(x))
}

assign_dim_tensor <- function(x, value) {
  if (is.null(value)) {
    return(flat(x))
  }
  if (prod(value) != length(x)) {
    abort(
      sprintf("dimensions %s need %d elements; the tensor has %d.", toString(value), prod(value), length(x)),
      class = c("gradops_error_shape", "gradops_error"), argument = "value", call = NULL
    )
  }
  filled <- fill(x, value)
  if (length(value) == 1L) as_one_dimensional(filled, NULL) else filled
}

set_dimnames_tensor <- function(x, value) {
  size <- dim(x)
  fits <- is.list(value) && length(value) == length(size) && all(lengths(value) %in% c(0L, size)) &&
    all(lengths(value) == 0L | lengths(value) == size)
  if (!is.null(value) && !fits) {
    abort(
      sprintf("`dimnames<-`: a list of names for the dimensions %s is needed.", toString(size)),
      class = c("gradops_error_type", "gradops_error"), argument = "value", call = NULL
    )
  }
  x <- another_handle(x)
  attr(x, "gradops_dimnames") <- NULL
  with_dimnames(x, value)
}
