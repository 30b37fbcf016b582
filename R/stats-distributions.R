#' Densities, distribution functions and quantiles of tensors
#'
#' Densities, probabilities and quantiles of stats, with its names of arguments, on tensors and variables: any of the
#' arguments but the logical ones may be a tensor, and the result can be differentiated by each. They are computed on
#' the logarithmic scale, so `log = TRUE` neither overflows nor loses digits. For ordinary R vectors the function of
#' stats is called.
#' @param x,q,p Where: a tensor or numbers. Values out of the support have density 0, missing ones a missing one.
#' @param mean,sd,meanlog,sdlog,location,shape,scale,rate,shape1,shape2,size,prob,mu,lambda,df,df1,df2,min,max,m,n,k The
#'   parameters, as in stats; tensors or numbers, recycled as by R's operators. Parameters out of their range give NaN.
#' @param ncp The noncentrality, as in stats: a tensor or numbers.
#' @param log,log.p If `TRUE`, densities and probabilities are logarithms: those returned, and of quantiles those given.
#' @param lower.tail If `TRUE`, probabilities are those of values up to `q`, otherwise of values above it.
#' @returns A tensor of the recycled shape.
#' @section Gradient:
#' By `x` and every parameter, to all orders; of log densities finite within the support. By `x` of a discrete
#' distribution that of its formula with gamma functions. It keeps its digits where `size` of `dnbinom(mu = )` or `df`
#' of `dt()` grow without bound, as in a fit of data with little dispersion. At the point masses `sd = 0` and
#' `dgamma(shape = 0)` values are NaN.
#'
#' `pgamma()`, `pbeta()`, `pt()` and the functions made of them (`pchisq()`, `pf()`, `ppois()`, `pbinom()`, `pnbinom()`)
#' are SciPy's, with R's values to twelve digits, far in the tails too. Derivatives by `q` are densities; those by
#' shapes and degrees of freedom are of an integral over the smaller tail, by the double exponential rule with 76 nodes.
#'
#' `qgamma()`, `qbeta()` and the functions made of them (`qchisq()`, `qt()`, `qf()`) have the derivatives of the
#' implicit function by all arguments, to all orders. They are NaN for shapes, and `df` of `qchisq()`, that are 0 or
#' infinite, and where `df1` and `df2` of `qf()` are both infinite.
#'
#' Noncentral distributions are sums of positive terms, in the tails to twelve digits, where R's have fewer; their
#' derivatives are to second order.
#'
#' Quantiles of counts are whole numbers: their derivatives are 0, as are those of `phyper()` by its counts.
#' @references Takahasi and Mori (1974), Double exponential formulas for numerical integration. Loader (2000), Fast and
#'   accurate computation of binomial probabilities.
#' @section Errors:
#' - `gradops_error_argument`: a `prob` beside a `mu`, a `size` that is not the sum of counts.
#' - `gradops_error_shape`: shapes that do not fit.
#' @seealso [objective()], [hessian()], [tensor_special].
#' @examplesIf gradops_available()
#' # a log-likelihood, the score and the information at the estimate
#' y <- c(0.3, 1.2, 2.1, 0.7)
#' loglik <- function(p) sum(dnorm(y, p[1], exp(p[2]), log = TRUE))
#' gradient(loglik, c(1, 0))
#' estimate <- c(mean(y), log(sqrt(mean((y - mean(y))^2))))
#' sqrt(diag(solve(-hessian(loglik, estimate)))) # standard errors
#' @eval usages(generics_of_page("tensor_distributions"))
#' @name tensor_distributions
NULL

# A function of a distribution, or a special one: one call into the core, or in a loop that is compiled an operation of
# its log.
#
# `kind` and `family`: of R's name, "density" and "norm" for `dnorm`. `settings`: whether it is of lower tails, and of
# logarithms.
distribution <- function(kind, family, settings, ..., call = parent.frame()) {
  arguments <- list(...)
  value <- if (!is.null(state$scalars)) composed_in_log(kind, family, settings, arguments)
  if (is.null(value)) {
    in_core <- function(name, ...) {
      path <- paste0("interop.r.distributions.", name)
      do.call(call_core, base::c(path, list(...), .call = call), quote = TRUE)
    }
    # To ask a tensor for its sizes is a call of its own, where they are not known yet: Python looks at them itself.
    if (any(vapply(arguments, is_of_unknown_size, NA))) {
      given <- lapply(arguments, operand, name = "x")
      value <- do.call(in_core, base::c("of_one_form", kind, list(settings), family, given), quote = TRUE)
    }
    if (is.null(value) || inherits(value, "python.builtin.NoneType")) {
      in_form <- function(...) do.call(in_core, base::c(kind, family, settings, list(...)), quote = TRUE)
      value <- elementwise(in_form, arguments)
    }
  }
  named_as_first(value, arguments)
}

# Of the first letters, generics of families in the core.
family_generics <- function(kinds, families = base::c(distribution_families(), "nbinom")) {
  names <- base::outer(kinds, families, base::paste0)
  mget(names, topenv(), inherits = FALSE)
}

distribution_generics <- function() family_generics(names(kinds))

# Their methods for tensors.
distribution_methods <- function() {
  generics <- distribution_generics()
  Map(distribution_method, generics, names(generics))
}

kinds <- base::c(d = "density", p = "probability", q = "quantile")

distribution_method <- function(generic, name) {
  arguments <- names(formals(generic))
  settings <- intersect(arguments, base::c("log", "lower.tail", "log.p"))
  kind <- kinds[[base::substr(name, 1L, 1L)]]
  flags <- lapply(settings, function(setting) call("is_set", as.name(setting)))
  of_family(generic, name, function(family, given) {
    bquote(distribution(.(kind), .(family), list(..(flags)), .(as.name(arguments[[1L]])), ..(given)), splice = TRUE)
  })
}

# The generic with `call_of(family, parameters)` for its body, of the family that `ncp` or `mu` says.
of_family <- function(generic, name, call_of) {
  family <- base::substring(name, 2L)
  given <- lapply(family_parameters(generic), as.name)
  with_own_body(generic, if ("ncp" %in% names(formals(generic))) {
    noncentral <- call_of(base::paste0("n", family), base::c(given, quote(ncp)))
    bquote(if (is_central(ncp)) .(call_of(family, given)) else .(noncentral))
  } else if ("mu" %in% names(formals(generic))) {
    bquote({
      if (!missing(mu) && !missing(prob)) unsupported("prob", "and `mu` are both given.")
      if (missing(mu)) .(call_of(family, given[1:2])) else .(call_of("nbinom_mu", given[-2L]))
    })
  } else {
    call_of(family, given)
  })
}

is_central <- function(ncp) {
  missing(ncp) || !is_any_tensor(ncp) && identical(as.numeric(ncp), 0)
}

dmultinom_tensor <- function(x, size = NULL, prob, log = FALSE) {
  total <- sum(x)
  if (!is.null(size) && !is_any_tensor(total) && size != total) {
    unsupported("size", sprintf("must be the sum of `x`, %s; got %s.", format(total), format(size)))
  }
  call_core("interop.r.distributions.multinomial", operand(x), operand(prob), is_set(log))
}

is_of_unknown_size <- function(x) {
  is_any_tensor(x) && !is_lazy(x) && is.null(.subset2(x, "gradops_extent")) && is.null(.subset2(x, "gradops_dim"))
}

# `f` of arguments that go element by element, recycled to one size, in the form of the largest.
elementwise <- function(f, arguments) {
  forms <- lapply(arguments, function(x) if (is_any_tensor(x)) known_dim(x) else shape_of(x))
  sizes <- vapply(forms, prod, 0)
  if (isTRUE(any(sizes == 0))) {
    return(numeric())
  }
  most <- max(sizes)
  others <- sizes != most
  if (is.na(most) || length(unique(forms[!others])) == 1L && all(sizes[others] == 1 & lengths(forms[others]) <= 1L)) {
    return(do.call(f, lapply(arguments, operand, name = "x"), quote = TRUE))
  }
  shape <- Filter(function(form) length(form) > 1L, forms[sizes == most])
  flat_one <- function(x, size) {
    if (!is_any_tensor(x)) array_of(rep_len(as.vector(x), most)) else if (size == most) flat(x) else recycled(x, most)
  }
  value <- do.call(f, Map(flat_one, arguments, sizes), quote = TRUE)
  if (length(shape) > 0L) fill(value, shape[[1]]) else value
}
