#' Apply functions to tensors
#'
#' `apply()`, `sapply()`, `vapply()`, `mapply()`, `sweep()` and `ifelse()` for tensors and variables as arguments, or as
#' results of the function. Tensors that a function returns are simplified as base R simplifies numbers: vectors of one
#' length become the columns of a matrix. For ordinary R vectors the base R function is called.
#'
#' `lapply()`, `Map()`, `Filter()` and `Reduce()` are base R's own: a tensor counts as the list of its elements, by
#' column. With `accumulate = TRUE`, `Reduce()` returns a list of tensors, which `unlist()` joins.
#'
#' `if`, `while`, `for` and `switch` take tensors in functions that are differentiated (see [grad()]); elsewhere write
#' `if (as.logical(x > 0))` and `for (v in as.list(x))`. In code that is compiled, where values are not known, use
#' [op_cond()], [op_while_loop()], [op_fori_loop()] and, elementwise, `ifelse()`.
#' @param X,x A tensor, a list, or what base R takes.
#' @param MARGIN Dimensions to keep, by number.
#' @param FUN A function, or its name.
#' @param ... Arguments of `FUN`; for `mapply()` the vectors and tensors whose elements it takes.
#' @param vectorize.args The names of the arguments to vectorize over; by default all.
#' @param simplify,SIMPLIFY,USE.NAMES,MoreArgs,check.margin As in base R. Tensors get the names that
#'   base R gives.
#' @param FUN.VALUE An example of the value: R's values are checked against it; for tensors only the length is.
#' @param STATS The values to sweep out.
#' @param test Booleans: a tensor or R's logicals.
#' @param yes,no Tensors or numbers, recycled to the shape of `test`.
#' @returns A tensor if the function returns tensors; otherwise base R's result. `ifelse()` has the shape of `test`.
#' @section Gradient:
#' Flows through each call of the function; `ifelse()` passes it to the chosen value, and 0 to the other. If `test` is
#' R's logicals, and arithmetic, mathematical functions and densities compute `yes` and `no`, they are computed for the
#' chosen elements only. Otherwise a NaN in the derivative of the other value comes through: keep its argument finite.
#' @section Errors:
#' - `gradops_error_shape`: `vapply()` values of a length other than that of `FUN.VALUE`.
#' @seealso [op_map()], [op_vectorized_map()], [op_where()].
#' @examplesIf gradops_available()
#' x <- variable(matrix(1:6 / 2, 2))
#' apply(x, 1, sum)
#' sapply(1:3, function(i) x[1, i]^2)
#' ifelse(x > 1, log(x), 0)
#' gradient(function(x) sum(ifelse(x > 1, x^2, x)), c(0.5, 2))
#' @name tensor_mapping
NULL

#' @rdname tensor_mapping
#' @export
apply <- function(X, MARGIN, FUN, ..., simplify = TRUE) {
  FUN <- match.fun(FUN)
  if (is.object(X) && is_tensor(X)) {
    return(apply_tensor(X, MARGIN, FUN, ..., simplify = simplify))
  }
  value <- base::apply(X, MARGIN, FUN, ..., simplify = simplify)
  if (simplify && is.list(value) && holds_tensors(value)) {
    value <- put_together(c(value), if (length(MARGIN) > 1L) dim(X)[MARGIN] else length(value))
  }
  value
}

apply_tensor <- function(X, MARGIN, FUN, ..., simplify) {
  dims <- dim(X)
  if (length(dims) < 2L) unsupported("X", "must be a matrix or an array; got a vector.", "Use `sapply(x, f)`.")
  if (!is.numeric(MARGIN) || !all(MARGIN %in% seq_along(dims))) {
    unsupported("MARGIN", sprintf("must be of the %d dimensions of `X`, by number.", length(dims)))
  }
  own <- dimnames_tensor(X)
  rest <- setdiff(seq_along(dims), MARGIN)
  named <- if (is.null(own) || length(rest) == 0L) identity else function(slice) with_names(slice, own[[rest]])
  slices <- fill(aperm_tensor(X, c(rest, MARGIN)), c(prod(dims[rest]), prod(dims[MARGIN])))
  values <- lapply(seq_len(ncol(slices)), function(i) {
    slice <- slices[, i]
    FUN(if (length(rest) > 1L) with_dimnames(fill(slice, dims[rest]), own[rest]) else named(slice), ...)
  })
  if (!simplify) {
    return(values)
  }
  if (!any(vapply(values, is_tensor, NA))) { # R's values, put together by base R
    return(base::apply(base::array(seq_along(values), dims[MARGIN]), seq_along(MARGIN), function(i) values[[i]]))
  }
  put_together_by_margins(values, dims[MARGIN], own[MARGIN])
}

# Combine values, with the names of the margins, and with their own names if all values have the same.
put_together_by_margins <- function(values, dims, names) {
  if (all(lengths(values) == 1L) || length(unique(lapply(values, base::names))) > 1L) values <- lapply(values, unname)
  if (length(dims) == 1L && length(names) > 0L) names(values) <- names[[1L]]
  whole <- put_together(values, dims)
  if (length(dims) == 1L || length(names) == 0L || !is_tensor(whole)) {
    return(whole)
  }
  is_single <- length(dim(whole)) == length(dims)
  with_dimnames(whole, base::c(if (!is_single) list(own_names(values[[1L]])), names))
}

# Combine parts of equal length as the columns of a matrix (of an array, with several `dims`), single ones as a vector.
put_together <- function(parts, dims, higher = FALSE) {
  if (!holds_tensors(parts)) {
    return(parts)
  }
  parts[] <- lapply(parts, adopted)
  sizes <- unique(as.vector(lengths(parts)))
  if (length(sizes) != 1L) {
    return(if (length(dims) > 1L) structure(parts, dim = dims) else parts)
  }
  whole <- joined(parts)
  inner <- if (higher && sizes > 1L) shape_of(parts[[1]]) else if (sizes > 1L) sizes
  if (is.null(inner) && length(dims) == 1L) {
    return(with_names(whole, names_of_parts(parts)))
  }
  whole <- fill(whole, c(inner, dims))
  if (length(inner) == 1L && length(dims) == 1L) {
    whole <- with_dimnames(whole, list(own_names(parts[[1L]]), names(parts)))
  }
  whole
}

#' @rdname tensor_mapping
#' @export
sapply <- function(X, FUN, ..., simplify = TRUE, USE.NAMES = TRUE) {
  FUN <- match.fun(FUN)
  value <- base::sapply(X, FUN, ..., simplify = simplify, USE.NAMES = USE.NAMES)
  if (is.list(value) && !isFALSE(simplify)) {
    value <- put_together(value, length(value), identical(simplify, "array"))
  }
  value
}

#' @rdname tensor_mapping
#' @export
vapply <- function(X, FUN, FUN.VALUE, ..., USE.NAMES = TRUE) {
  FUN <- match.fun(FUN)
  if (is.primitive(FUN) && are_atomic(X) && !has_class(...)) { # the result has no tensor
    return(base::vapply(X, FUN, FUN.VALUE, ..., USE.NAMES = USE.NAMES))
  }
  tensors <- NULL
  count <- 0L
  call <- environment()
  checked <- function(...) {
    value <- FUN(...)
    count <<- count + 1L
    if (is.object(value) && is_tensor(value)) {
      if (length(value) != length(FUN.VALUE)) {
        abort(
          sprintf("Values must be of length %d; that of element %d has %d.", length(FUN.VALUE), count, length(value)),
          class = c("gradops_error_shape", "gradops_error"), argument = "FUN.VALUE", call = call
        )
      }
      tensors[[count]] <<- value
      value <- FUN.VALUE
    }
    value
  }
  value <- base::vapply(X, checked, FUN.VALUE, ..., USE.NAMES = USE.NAMES)
  if (is.null(tensors)) {
    return(value)
  }
  length(tensors) <- count
  flat_value <- base::matrix(value, ncol = count)
  for (i in which(base::vapply(tensors, is.null, NA))) tensors[[i]] <- flat_value[, i]
  if (length(FUN.VALUE) == 1L) tensors <- lapply(tensors, unname) # R uses only the names of `X`
  names(tensors) <- if (is.matrix(value)) colnames(value) else if (is.null(dim(value))) names(value)
  put_together(tensors, length(tensors), higher = TRUE)
}

are_atomic <- function(x) {
  if (is.object(x) || !is.list(x)) {
    return(!is.object(x) && is.atomic(x))
  }
  # Not `for (part in x)`: an element of formals() may be missing, and reading its name would be an error.
  for (i in seq_along(x)) if (is.object(x[[i]]) || !is.atomic(x[[i]])) return(FALSE)
  TRUE
}

#' @rdname tensor_mapping
#' @export
mapply <- function(FUN, ..., MoreArgs = NULL, SIMPLIFY = TRUE, USE.NAMES = TRUE) {
  FUN <- match.fun(FUN)
  value <- base::mapply(FUN, ..., MoreArgs = MoreArgs, SIMPLIFY = SIMPLIFY, USE.NAMES = USE.NAMES)
  if (is.list(value) && !isFALSE(SIMPLIFY)) {
    value <- put_together(value, length(value), identical(SIMPLIFY, "array"))
  }
  value
}

#' @rdname tensor_mapping
#' @export
sweep <- function(x, MARGIN, STATS, FUN = "-", check.margin = TRUE, ...) {
  UseMethod("sweep", among(x, STATS))
}

sweep_tensor <- function(x, MARGIN, STATS, FUN = "-", check.margin = TRUE, ...) {
  FUN <- match.fun(FUN)
  dims <- dim(x)
  if (check.margin && prod(dims[MARGIN]) %% length(STATS) != 0) {
    warning("`STATS` does not recycle exactly across `MARGIN`.")
  }
  perm <- c(MARGIN, seq_along(dims)[-MARGIN])
  FUN(x, aperm(array(STATS, dims[perm]), order(perm)), ...)
}

#' @rdname tensor_mapping
#' @export
ifelse <- function(test, yes, no) {
  if (is.object(test) && is_tensor(test)) {
    return(choose_by(test, selected_by_tensor(yes, test), selected_by_tensor(no, op_logical_not(test))))
  }
  # `yes` and `no` are evaluated only if they are needed, as in base R.
  if (is.atomic(test) && !is.character(test)) {
    truth <- as.logical(test)
    some <- any(truth, na.rm = TRUE)
    others <- !all(truth, na.rm = TRUE)
    if (some && is.object(yes) && is_tensor(yes) || others && is.object(no) && is_tensor(no)) {
      if (some && others) {
        yes <- selected(yes, truth %in% TRUE)
        no <- selected(no, truth %in% FALSE)
      }
      return(choose_by(test, if (some) yes else no, if (others) no else yes))
    }
  }
  base::ifelse(test, yes, no)
}

choose_by <- function(test, yes, no) {
  yes <- adopted(yes)
  no <- adopted(no)
  if (!is_tensor(test) && anyNA(test)) { # tensors of booleans have no NA
    unknown <- is.na(test)
    return(marked(choose_by(replace(test, unknown, FALSE), yes, no), list(unknown)))
  }
  logged <- if (!is.null(state$scalars) && !is_tensor(test)) chosen_in_log(as.logical(test), dim(test), yes, no)
  if (!is.null(logged)) {
    return(made_by(keep_names(logged, test), function(yes, no) choose_by(test, yes, no), list(yes, no)))
  }
  shape <- shape_of(test)
  fit <- function(x) {
    size <- shape_of(x)
    alone <- length(x) == 1L && length(size) <= length(shape)
    if (alone || identical(as.integer(size), as.integer(shape))) x else fill(recycled(x, prod(shape)), shape)
  }
  decided <- if (is_tensor(test)) op_cast(test, "bool") else array_of(as.logical(test), shape)
  chosen <- keep_names(op_where(decided, fit(yes), fit(no)), test)
  made_by(chosen, function(yes, no) choose_by(test, yes, no), list(yes, no))
}

# `ifelse()` of elements in a log, by R's truth values; NULL if they are for Python.
chosen_in_log <- function(truth, dim, yes, no) {
  if (length(truth) == 1L && is.null(dim)) {
    x <- if (truth) yes else no
    return(if (has_log(x)) element_in_log(x, 1) %||% if (is.null(dim_tensor(x))) x)
  }
  rearranged(function(yes, no) {
    cells <- ifelse(truth, yes, no)
    dim(cells) <- dim
    cells
  }, yes, no)
}

# Use gradops' `mapply()` in the function that base R's `Vectorize()` makes.
#' @rdname tensor_mapping
#' @export
Vectorize <- function(FUN, vectorize.args, SIMPLIFY = TRUE, USE.NAMES = TRUE) {
  f <- if (missing(vectorize.args)) {
    base::Vectorize(FUN, SIMPLIFY = SIMPLIFY, USE.NAMES = USE.NAMES)
  } else {
    base::Vectorize(FUN, vectorize.args, SIMPLIFY, USE.NAMES)
  }
  if (!identical(f, FUN)) assign("mapply", mapply, environment(f))
  f
}
