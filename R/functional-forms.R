# R numbers and lists of them, and derivatives in their form.

is_number <- function(x) {
  is.atomic(x) && (is.numeric(x) || is.complex(x))
}

# TRUE if derivatives at `x` are R numbers: not where they are part of another derivative.
gives_numbers <- function(x) {
  inside() == 0 && all_numbers(x)
}

all_numbers <- function(x) {
  if (is.list(x)) all(vapply(x, function(part) is.null(part) || all_numbers(part), NA)) else is_number(x)
}

# Factors, dates and the like are no numbers to differentiate by.
check_differentiable <- function(x, name, call = parent.frame()) {
  for (part in leaves_of(x)) {
    plain <- if (is.object(part)) !is.atomic(part) || is_number(part) else !is.character(part) && !is.raw(part)
    if (!plain || is_r_function(part) || is.language(part)) {
      abort(
        sprintf("`%s` must be numbers or tensors to be differentiated by; got %s.", name, friendly(part)),
        class = c("gradops_error_type", "gradops_error"), argument = name, call = call
      )
    }
  }
}

# R's whole numbers are numbers too where they are differentiated by.
as_doubles <- function(x) {
  if (is.list(x)) {
    x[] <- lapply(x, as_doubles)
  } else if (is.integer(x) && !is.factor(x)) {
    storage.mode(x) <- "double"
  }
  x
}

# A gradient in the form of the input it is of.
like <- function(gradient, input) {
  if (is.atomic(input) && is.null(attributes(input)) && is.null(attributes(gradient))) {
    return(gradient)
  }
  if (is.list(input)) {
    return(Map(like, gradient[names(input) %||% seq_along(input)], input))
  }
  if (!is_number(input) || !is_number(gradient)) {
    return(gradient)
  }
  value <- as.vector(gradient)
  if (!is.null(attributes(input))) attributes(value) <- attributes(input)[c("dim", "dimnames", "names")]
  value
}

leaves_of <- function(x) {
  if (is.list(x)) do.call(c, lapply(unname(x), leaves_of)) else list(x)
}

# A list of the form of `x` with these leaves.
rebuilt <- function(x, leaves) {
  used <- 0
  fill <- function(part) {
    if (is.list(part)) {
      part[] <- lapply(part, fill)
      return(part)
    }
    used <<- used + 1
    leaves[[used]]
  }
  fill(x)
}
