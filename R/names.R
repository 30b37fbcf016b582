# Names of a tensor's elements: those of the R vector that it was made of or that a function is differentiated at. They
# belong to R's handle of the tensor, so a new handle has none but those that arithmetic gives it. A series has a time
# in their place (see series.R).

with_names <- function(x, names) {
  if (is.list(x)) {
    if (is.list(names)) x[] <- Map(with_names, x, names)
  } else if (inherits(names, "gradops_time")) {
    x <- with_time(x, unclass(names))
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
    names_tensor(x)
  } else if (is_number(x) && length(dim(x)) < 2) {
    names(x)
  }
}

# What base R's arithmetic does: the names of the first operand of the result's length, and its time (see series.R).
keep_names <- function(result, x, y = NULL) {
  if (is.object(x)) result <- with_time(result, time_of(x))
  first <- own_names(x)
  second <- own_names(y)
  if (is.null(first) && is.null(second)) { # nearly always
    return(result)
  }
  size <- max(length(first), length(second))
  if (is_tensor(result) && (of_size(x, size) && of_size(y, size) || length_tensor(result) == size)) {
    with_names(result, if (length(first) == size) first else second)
  } else {
    result
  }
}

own_names <- function(x) {
  if (is.environment(x)) attr(x, "gradops_names", exact = TRUE) else if (is.null(dim(x))) names(x)
}

# Whether `x` is known to be a number or a vector of that size; asking Python takes longer.
of_size <- function(x, size) {
  if (is.environment(x)) length(names_tensor(x)) == size else is.null(x) || is.null(dim(x)) && length(x) %in% c(1, size)
}

names_tensor <- function(x) {
  attr(x, "gradops_names", exact = TRUE)
}

set_names_tensor <- function(x, value) {
  with_names(another_handle(x), if (!is.null(value)) as.character(value))
}

# Where names stand; other indices as they are.
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
