#' Inspect tensors
#'
#' `is.na()`, `is.nan()`, `is.finite()` and `is.infinite()` return tensors of booleans, also for a traced tensor, for
#' use with `[`, `ifelse()` and `sum()`. `anyNA()`, `all.equal()`, `summary()`, `str()`, `as.data.frame()` look at
#' values and return R's own. `is.numeric()` is `TRUE` for real numbers; `is.matrix()` and `is.array()` check
#' dimensions. Tensors of integers and booleans have no missing values; NaN counts as missing, as in R.
#'
#' In a function that is differentiated or compiled `summary()` returns a tensor, and data frames have tensors for
#' columns (`data.frame(m = p * 2)`, `transform()`, `d$m <- p`): `$`, `[`, `with()`, `rbind()`, `merge()`, `split()`,
#' `sapply()` and `as.matrix()` work on them; formulas and `colSums()` are errors, and a column of one element is not
#' recycled.
#'
#' `length()`, `dim()`, `nrow()`, `ncol()`, `NROW()`, `NCOL()` and `seq_along()` work as in R. `dimnames()` returns the
#' names that were assigned. `all.equal()` dispatches on its first argument, so put the tensor first. `isTRUE()` and
#' `isFALSE()` look at the value of one boolean. `stopifnot()` takes tensors while a function is differentiated;
#' elsewhere it needs R's logicals: `stopifnot(as.logical(all(x > 0)))`.
#' @param x A tensor or variable, or any R value.
#' @returns `isTRUE()` and `isFALSE()` return `TRUE` or `FALSE`.
#' @name tensor_values
#' @seealso [variable()], [op_shape()].
#' @examplesIf gradops_available()
#' x <- variable(c(1, NaN, 3))
#' is.na(x)
#' anyNA(x)
#' all.equal(x, c(1, NaN, 3))
#' summary(x)
#' str(x)
#' gradient(function(x) sum(x[!is.na(x)]^2), c(1, NaN, 3))
NULL

#' @rdname tensor_values
#' @export
isTRUE <- function(x) {
  UseMethod("isTRUE", among(x))
}

is_true_tensor <- function(x) {
  base::isTRUE(values_of(x))
}

#' @rdname tensor_values
#' @export
isFALSE <- function(x) {
  UseMethod("isFALSE", among(x))
}

is_false_tensor <- function(x) {
  base::isFALSE(values_of(x))
}

is_na_tensor <- function(x) {
  asked(base::is.na, x) %||% op_isnan(x)
}

is_finite_tensor <- function(x) {
  asked(base::is.finite, x) %||% op_isfinite(x)
}

is_infinite_tensor <- function(x) {
  asked(base::is.infinite, x) %||% op_isinf(x)
}

any_na_tensor <- function(x, recursive = FALSE) {
  if (inside() > 0) truth(any(is.na(x)), "anyNA") else anyNA(values_of(x))
}

is_numeric_tensor <- function(x) {
  is.numeric(known_values(x)) || !grepl("bool|complex|str", py_to_r(call_op("dtype", x)))
}

is_matrix_tensor <- function(x) {
  length(dim(x)) == 2L
}

is_array_tensor <- function(x) {
  length(dim(x)) > 0L
}

all_equal_tensor <- function(target, current, ...) {
  all.equal(r_values(target), if (is_tensor(current)) r_values(current) else current, ...)
}

summary_tensor <- function(object, ...) {
  if (!keeps(object)) {
    return(summary(r_values(object), ...))
  }
  object <- flat(object)
  middle <- stats::quantile(object, names = FALSE)
  figures <- c(middle[1:3], mean(object), middle[4:5])
  with_names(figures, c("Min.", "1st Qu.", "Median", "Mean", "3rd Qu.", "Max."))
}

str_tensor <- function(object, ...) {
  values <- known_values(object)
  cat("", format_tensor(object))
  if (is.null(values)) {
    cat("\n")
  } else {
    shown <- utils::head(as.vector(values), 5L)
    cat(" ", format(shown, digits = 3, trim = TRUE), if (length(values) > length(shown)) "...", "\n")
  }
}

as_data_frame_tensor <- function(x, row.names = NULL, optional = FALSE, ..., nm = deparse1(substitute(x))) {
  if (keeps(x)) {
    return(tensor_frame(x, row.names, optional, nm))
  }
  values <- values_of(x)
  if (length(dim(values)) == 1L) dim(values) <- NULL
  as.data.frame(values, row.names = row.names, optional = optional, ...)
}

# A data frame whose columns are tensors: the columns of a matrix, or one column with this name.
tensor_frame <- function(x, row.names, optional, name) {
  if (length(dim(x)) > 1L) {
    columns <- lapply(seq_len(ncol(x)), function(j) x[, j])
    names(columns) <- colnames(x) %||% paste0("V", seq_along(columns))
    row.names <- row.names %||% rownames(x)
  } else {
    row.names <- row.names %||% if (!anyDuplicated(names(x))) names(x)
    columns <- list(flat(x))
    if (!optional) names(columns) <- name
  }
  size <- length(columns[[1L]])
  if (length(row.names) != size) row.names <- .set_row_names(size)
  structure(columns, row.names = row.names, class = "data.frame")
}
