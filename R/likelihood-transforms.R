# Transforms of parameters: the R interface to gradops.inference.transforms.

#' Transforms of parameters
#'
#' Transforms turn free numbers without bounds into parameters that are positive, in an interval, on the simplex,
#' ordered, or a Cholesky factor. A search runs over the free numbers, and the likelihood gets the parameters.
#' [maximize_likelihood()] and [objective()] take transforms by name, `transforms = list(sd = transform_positive())`;
#' `start` has the parameters themselves.
#'
#' - `transform_positive()`: positive numbers; the free numbers are their logarithms.
#' - `transform_interval(lower, upper)`: numbers between two ends, by the logistic function.
#' - `transform_simplex()`: a vector of positive numbers with sum 1, from one number fewer, by stick breaking.
#' - `transform_ordered()`: an increasing vector.
#' - `transform_correlation_cholesky()`: the lower Cholesky factor of a correlation matrix, from a number for each pair.
#' - `transform_covariance_cholesky()`: the lower Cholesky factor of a covariance matrix, by rows, with logarithms on
#'   the diagonal.
#'
#' The formulas are Stan's. The functions in a transform work on tensors and R's numbers, and have derivatives.
#' @param lower,upper The ends of an interval, numbers or vectors.
#' @param x A transform.
#' @param ... Unused.
#' @returns A list of class `gradops_transform` of functions: `forward(x)` returns the parameters for free numbers,
#'   `inverse(y)` the free numbers for parameters, `log_jacobian(x)` the log absolute determinant of the derivatives.
#'   The last turns a density of the parameters into one of the free numbers: for samplers and priors, not for maximum
#'   likelihood. They return tensors.
#' @section Errors:
#' - `gradops_error_argument`: an empty interval; a number of elements that fits no triangle.
#' - `gradops_error_type`: ends that are not numbers.
#' - `gradops_error_shape`: a single number where the transform needs a vector.
#' @references Stan Development Team, Stan Reference Manual, chapter Constraint Transforms.
#' @seealso [maximize_likelihood()].
#' @examplesIf gradops_available()
#' weights <- transform_simplex()
#' weights$forward(c(0, 0))
#' jacobian(weights$forward, c(0, 0))
#'
#' y <- c(4.1, 5.3, 4.8, 6.0, 5.2)
#' nll <- function(p, y) -sum(dnorm(y, p$mean, p$sd, log = TRUE))
#' positive <- list(sd = transform_positive())
#' fit <- maximize_likelihood(nll, list(mean = 4, sd = 1), y, transforms = positive)
#' coef(fit)
#' fit$parameters$sd
#' fit$errors$sd # by the delta method
#' @name transforms
NULL

new_transform <- function(kind, lower = NULL, upper = NULL) {
  of <- function(which) {
    function(x) call_core("interop.r.likelihoods.transform", kind, lower, upper, which, operand(x))
  }
  structure(
    list(forward = of("forward"), inverse = of("inverse"), log_jacobian = of("log_jacobian")),
    spec = list(kind = kind, lower = lower, upper = upper), class = "gradops_transform"
  )
}

#' @rdname transforms
#' @export
transform_positive <- function() new_transform("positive")

#' @rdname transforms
#' @export
transform_interval <- function(lower, upper) {
  for (name in c("lower", "upper")) {
    if (!is.numeric(get(name)) || is.object(get(name))) { # is.numeric() holds for tensors
      abort(
        sprintf("`%s` must be numbers.", name), class = c("gradops_error_type", "gradops_error"), argument = name
      )
    }
  }
  if (length(lower) != length(upper) && min(length(lower), length(upper)) != 1L || any(!(lower < upper))) {
    refuse_parameters("lower", "must be less than `upper`, numbers or vectors of one length", parent.frame())
  }
  new_transform("interval", as.double(lower), as.double(upper))
}

#' @rdname transforms
#' @export
transform_simplex <- function() new_transform("simplex")

#' @rdname transforms
#' @export
transform_ordered <- function() new_transform("ordered")

#' @rdname transforms
#' @export
transform_correlation_cholesky <- function() new_transform("correlation_cholesky")

#' @rdname transforms
#' @export
transform_covariance_cholesky <- function() new_transform("covariance_cholesky")

#' @rdname transforms
#' @export
print.gradops_transform <- function(x, ...) {
  spec <- attr(x, "spec")
  ends <- if (!is.null(spec$lower)) sprintf("(%s, %s)", toString(spec$lower), toString(spec$upper)) else ""
  cat("<transform ", spec$kind, ends, ">\n", sep = "")
  invisible(x)
}

# The free numbers of the parameters in `pieces`, a list, with names in `tops`; and the transforms with their sizes for
# Python.
free_pieces <- function(pieces, tops, names, transforms, random, call) {
  if (!is.null(transforms) && !is.list(transforms)) {
    abort(
      "`transforms` must be a list of transforms named by parameters: `list(sd = transform_positive())`.",
      class = c("gradops_error_type", "gradops_error"), argument = "transforms", call = call
    )
  }
  named_among(names(transforms), tops, "transforms", call)
  both <- intersect(names(transforms), random)
  if (length(both) > 0L) {
    refuse_parameters(
      "transforms",
      sprintf("`%s` is random: transform it in the likelihood, with a density of the free numbers", both[1L]),
      call
    )
  }
  free_of <- function(piece, top, names) {
    transform <- transforms[[top]]
    if (is.null(transform)) {
      return(list(values = as.double(piece), names = names, part = list(size = as.double(length(piece)))))
    }
    if (!inherits(transform, "gradops_transform")) {
      abort(
        sprintf("`transforms`: `%s` must be a transform, such as `transform_positive()`.", top),
        class = c("gradops_error_type", "gradops_error"), argument = "transforms", call = call
      )
    }
    spec <- attr(transform, "spec")
    x <- if (grepl("cholesky", spec$kind)) piece else as.double(piece)
    x <- if (is.null(dim(x))) array(x) else x
    free <- call_core("interop.r.likelihoods.free_start", spec$kind, spec$lower, spec$upper, top, x)
    values <- as.vector(py_to_r(free))
    number <- if (length(values) > 1L) seq_along(values) else ""
    list(
      values = values, names = paste0(top, number, " (free)", recycle0 = TRUE),
      part = c(list(size = as.double(length(values))), if (length(values) > 0L) spec)
    )
  }
  Map(free_of, pieces, tops, names)
}
