# numDeriv's calling form: what it approximates by has no effect here.

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

# numDeriv takes the method as third argument too.
numderiv_extra <- function(...) {
  extra <- list(...)
  if (length(extra) > 0 && !nzchar(rlang::names2(extra)[1]) && is.character(extra[[1]])) {
    if (length(extra[[1]]) == 1 && extra[[1]] %in% methods_of_numderiv) extra <- extra[-1]
  }
  extra
}

# A side for each element: 1, -1, or NA for both.
are_sides <- function(side, size) {
  (is.numeric(side) || is.logical(side)) && is.atomic(side) && length(side) == size && all(is.na(side) | abs(side) == 1)
}
