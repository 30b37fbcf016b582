# Names of a tensor's elements: the names of the R vector from which it was made or at which a function is
# differentiated. They belong to R's handle of the tensor, so a new handle has only the names that arithmetic gives it.
# A time series has its time instead of names (see stats-series.R). A tensor cannot tell a one-dimensional array from a
# vector, so a one-dimensional array is marked by its names: they are a one-dimensional array themselves, filled with NA
# if there are no names.

with_names <- function(x, names) {
  if (is.list(x)) {
    if (is.list(names)) x[] <- Map(with_names, x, names)
  } else if (inherits(names, "gradops_time")) {
    x <- with_time(x, unclass(names))
  } else if (inherits(names, "gradops_dimnames")) {
    x <- with_dimnames(x, unclass(names))
  } else if (is_tensor(x)) {
    attr(x, "gradops_names") <- names
  }
  x
}

names_within <- function(x) {
  if (is.list(x)) {
    lapply(x, names_within)
  } else if (has_time(x)) {
    structure(time_of(x), class = "gradops_time")
  } else if (is.environment(x)) {
    own_names(x) %||% dimnames_within(dimnames_tensor(x))
  } else if (is_number(x)) {
    if (length(dim(x)) > 1L) dimnames_within(dimnames(x)) else own_names(x)
  }
}

dimnames_within <- function(dimnames) {
  if (!is.null(dimnames)) structure(dimnames, class = "gradops_dimnames")
}

# Set the names of the dimensions of a matrix or an array, on R's handle as well; ignored if the sizes do not fit.
with_dimnames <- function(x, dimnames) {
  sizes <- lengths(dimnames)
  if (any(sizes > 0L) && is_tensor(x) && all(sizes == 0L | sizes == dim(x))) {
    attr(x, "gradops_dimnames") <- lapply(dimnames, function(names) if (!is.null(names)) as.character(names))
  }
  x
}

# Give the result of `method` the names that R's function `original` would give: call it with numbers in place of
# tensors, which have their names. So methods need not handle names.
named_as_r <- function(method, original) {
  force(original)
  replacing(method, function(arguments, value) {
    force(value)
    if (!is.environment(value) || !is_tensor(value)) {
      return(value)
    }
    arguments <- attempt(arguments, function(error) NULL) # one of `...` may be missing
    if (!any_labels(arguments)) {
      return(value)
    }
    like <- attempt(suppressWarnings(do.call(original, lapply(arguments, labelled_numbers))), function(error) NULL)
    size <- dim_tensor(value)
    if (length(dim(like)) > 1L && identical(dim(like), size)) {
      with_dimnames(value, dimnames(like))
    } else if (length(size) < 2L && length(dim(like)) < 2L && length(like) == length_tensor(value)) {
      if (is.null(own_names(value)) && !has_time(value)) with_names(value, names(like)) else value
    } else {
      value
    }
  })
}

# Functions whose results get their names in this way.
named_by_r <- base::c(
  "rep", "diff", "aperm", "solve", "chol", "scale", "rowsum", "as.matrix", "qr.solve", "qr.coef", "diag", "drop",
  "rowSums", "colSums", "rowMeans", "colMeans", "pmax", "pmin", "cov2cor", "var", "cov", "cor", "mahalanobis", "fft",
  "mvfft", "convolve", "atan2", "is.na", "kronecker"
)

any_labels <- function(arguments) {
  for (x in arguments) if (has_labels(x)) return(TRUE)
  FALSE
}

has_labels <- function(x) {
  if (is.environment(x)) {
    !(is.null(attr(x, "gradops_names", TRUE)) && is.null(dimnames_tensor(x))) && is_tensor(x)
  } else {
    is.atomic(x) && !(is.null(names(x)) && is.null(dimnames(x)))
  }
}

# Numbers in place of a tensor, valid for R's function: for a square matrix the identity, which can be inverted.
labelled_numbers <- function(x) {
  if (!is.environment(x) || !is_tensor(x)) {
    return(x)
  }
  size <- dim_tensor(x)
  if (length(size) == 2L && size[1L] == size[2L]) {
    base::`dimnames<-`(base::diag(size[1L]), dimnames_tensor(x))
  } else if (length(size) > 1L) {
    base::array(as.double(seq_len(prod(size))), size, dimnames_tensor(x))
  } else {
    stats::setNames(as.double(seq_len(prod(size))), names_tensor(x))
  }
}

# Give a part of a tensor the names that a part of an R array would have; the indices must be R's.
with_part_names <- function(part, x, places, drop) {
  force(part) # errors of the part itself come first
  if (any(vapply(places, is_any_tensor, NA))) {
    return(part)
  }
  numbers <- base::array(seq_len(prod(dim(x))), dim(x), dimnames_tensor(x))
  places <- lapply(places, function(place) if (is.null(place)) rlang::missing_arg() else place)
  chosen <- do.call(`[`, c(list(numbers), places, drop = drop))
  if (length(dim(chosen)) > 1L) with_dimnames(part, dimnames(chosen)) else with_names(part, names(chosen))
}

# Give a result of arithmetic the names that base R gives, which the first operand of the result's length has, and its
# time (see stats-series.R).
keep_names <- function(result, x, y = NULL) {
  if (is.object(x)) result <- with_time(result, time_of(x))
  dimnames <- dimnames_of(x) %||% dimnames_of(y)
  if (!is.null(dimnames)) {
    return(if (length(dim(result)) == length(dimnames)) with_dimnames(result, dimnames) else result)
  }
  first <- own_names(x)
  second <- own_names(y)
  if (is.null(first) && is.null(second)) { # the most common case
    return(result)
  }
  size <- max(length(first), length(second))
  if (is_tensor(result) && (is_of_size(x, size) && is_of_size(y, size) || length_tensor(result) == size)) {
    is_array <- !is.null(dim(second)) && is.null(dim(first))
    with_names(result, if (length(first) == size && !is_array) first else second)
  } else {
    result
  }
}

# The names of the dimensions of a tensor, or of R's matrix or array.
dimnames_of <- function(x) {
  if (is.environment(x)) dimnames_tensor(x) else if (is.atomic(x) && length(dim(x)) > 1L) dimnames(x)
}

# A result with the names of the first argument of its length, as in R's functions of several vectors.
named_as_first <- function(result, arguments) {
  if (!any_labels(arguments)) {
    return(keep_names(result, arguments[[1L]])) # the argument may be a series
  }
  size <- length(result)
  first <- Find(function(x) length(x) == size, arguments)
  if (is.null(first)) result else keep_names(result, first)
}

own_names <- function(x) {
  if (is.environment(x)) {
    attr(x, "gradops_names", exact = TRUE)
  } else if (is.null(dim(x))) {
    names(x)
  } else if (length(dim(x)) == 1L) {
    names_of_array(length(x), names(x))
  }
}

names_of_array <- function(size, names = NULL) {
  base::array(names %||% NA_character_, size)
}

# A tensor that R code sees as a one-dimensional array.
as_one_dimensional <- function(x, names = names_tensor(x)) {
  size <- length_tensor(x)
  if (is.na(size)) x else with_names(another_handle(x), names_of_array(size, names))
}

is_one_dimensional <- function(x) {
  size <- dim(own_names(x))
  !is.null(size) && identical(size, dim_tensor(x))
}

# Keep the names of a one-dimensional array, unless it has grown, which makes it a vector.
still_one_dimensional <- function(x, names) {
  if (!is.null(dim(names)) && identical(dim_tensor(x), dim(names))) with_names(x, names) else x
}

# The names of selected elements. A part of a one-dimensional array is one too, except for a single element.
part_of_names <- function(names, position, drop = TRUE) {
  part <- names[position, drop = drop]
  if (is.null(dim(part)) && !is.null(dim(names)) && anyNA(names)) NULL else unname(part)
}

# TRUE if `x` is known to be a number or a vector of that size, without asking Python, which takes longer.
is_of_size <- function(x, size) {
  if (is.environment(x)) length(own_names(x)) == size else is.null(x) || is.null(dim(x)) && length(x) %in% c(1, size)
}

names_tensor <- function(x) {
  names <- attr(x, "gradops_names", exact = TRUE)
  if (is.null(dim(names))) names else if (!anyNA(names)) as.vector(names)
}

set_names_tensor <- function(x, value) {
  if (is_one_dimensional(x)) {
    as_one_dimensional(x, if (!is.null(value)) as.character(value))
  } else {
    with_names(another_handle(x), if (!is.null(value)) as.character(value))
  }
}

# The positions of names; other indices unchanged.
position_of <- function(index, names, call = parent.frame()) {
  if (!is.character(index)) {
    return(index)
  }
  position <- match(index, names)
  if (anyNA(position)) {
    abort(
      sprintf("there is no element named %s; the names are %s.", toString(dQuote(index[is.na(position)], FALSE)),
              toString(dQuote(names, FALSE))),
      class = c("gradops_error_axis", "gradops_error"), argument = "i", call = call
    )
  }
  position
}
