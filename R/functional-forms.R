# R numbers, lists of them, and derivatives in the same form.

is_number <- function(x) {
  is.atomic(x) && (is.numeric(x) || is.complex(x))
}

# TRUE if derivatives at `x` are R numbers; within another derivative they are tensors.
gives_numbers <- function(x) {
  inside() == 0 && all_numbers(x)
}

all_numbers <- function(x) {
  if (is.list(x)) all(vapply(x, function(part) is.null(part) || all_numbers(part), NA)) else is_number(x)
}

# Raise an error for factors, dates, data frames and the like: there are no derivatives with respect to them.
check_differentiable <- function(x, name, call = parent.frame()) {
  table <- is.data.frame(x)
  if (is.list(x) && !table) {
    for (part in x) check_differentiable(part, name, call)
    return(invisible())
  }
  plain <- if (is.object(x)) !is.atomic(x) || is_number(x) else !is.character(x) && !is.raw(x)
  if (!plain || table || is_r_function(x) || is.language(x)) {
    abort(
      c(
        sprintf("`%s` must be numbers or tensors to differentiate with respect to; got %s.", name, friendly(x)),
        i = if (table) "`as.list(d)` makes parameters of its columns, `as.matrix(d)` of all its numbers at once."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = name, call = call
    )
  }
}

# Convert integers to doubles, so that they can be differentiated with respect to.
as_doubles <- function(x) {
  if (is.list(x)) {
    x[] <- lapply(x, as_doubles)
  } else if (is.integer(x) && !is.factor(x)) {
    storage.mode(x) <- "double"
  }
  x
}

# A gradient in the form of its input.
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

# numDeriv's arguments: the settings of its approximation have no effect here.

methods_of_numderiv <- c("Richardson", "simple", "complex")

check_numderiv <- function(method, side, arguments, size, call = parent.frame()) {
  wrong <- if (!is.character(method) || length(method) != 1 || !method %in% methods_of_numderiv) {
    c(method = sprintf("`method` must be one of %s.", toString(dQuote(methods_of_numderiv, FALSE))))
  } else if (!is.null(side) && !are_sides(side, size)) {
    c(side = sprintf("`side` must be NULL, or hold NA, 1 or -1 for each of the %d of `x`.", size))
  } else if (!is.list(arguments)) {
    c(method.args = sprintf("`method.args` must be a list; got %s.", friendly(arguments)))
  }
  if (!is.null(wrong)) {
    abort(
      c(
        unname(wrong),
        i = if (names(wrong) == "method") meant(method, methods_of_numderiv),
        i = "It has no effect, as nothing is approximated: it may be left out."
      ),
      class = c("gradops_error_argument", "gradops_error"), argument = names(wrong), call = call
    )
  }
}

# numDeriv also takes the method as an unnamed third argument.
numderiv_extra <- function(...) {
  extra <- list(...)
  if (length(extra) > 0 && !nzchar(rlang::names2(extra)[1]) && is.character(extra[[1]])) {
    if (length(extra[[1]]) == 1 && extra[[1]] %in% methods_of_numderiv) extra <- extra[-1]
  }
  extra
}

# TRUE if `side` has 1, -1 or NA (both sides) for each element.
are_sides <- function(side, size) {
  (is.numeric(side) || is.logical(side)) && is.atomic(side) && length(side) == size && all(is.na(side) | abs(side) == 1)
}
