#' Densities, distribution functions and quantiles of tensors
#'
#' Densities, probabilities and quantiles of stats, with the same arguments, for tensors and variables: all arguments
#' except the logical ones may be tensors, and the result has derivatives with respect to each. They are computed on the
#' log scale, so `log = TRUE` neither overflows nor loses digits. For ordinary R vectors the function of stats is
#' called.
#' @param x,q,p Where to evaluate: a tensor or numbers. Values outside the support have density 0, missing ones a
#'   missing one.
#' @param mean,sd,meanlog,sdlog,location,shape,scale,rate,shape1,shape2,size,prob,mu,lambda,df,df1,df2,min,max,m,n,k The
#'   parameters, as in stats; tensors or numbers, recycled as by R's operators. Invalid parameters give NaN.
#' @param ncp The noncentrality, as in stats: a tensor or numbers.
#' @param log,log.p If `TRUE`, densities and probabilities are logarithms: returned ones, and for quantiles the given
#'   ones.
#' @param lower.tail If `TRUE`, probabilities of values up to `q`; otherwise of values above it.
#' @returns A tensor of the recycled shape.
#' @section Gradient:
#' With respect to `x` and every parameter, to all orders; for log densities finite within the support. A discrete
#' distribution has the derivative of its formula with gamma functions by `x`. Derivatives stay accurate when `size` in
#' `dnbinom(mu = )` or `df` in `dt()` grow without bound, as in a fit of data with little dispersion. At the point
#' masses `sd = 0` and `dgamma(shape = 0)` values are NaN.
#'
#' `pgamma()`, `pbeta()`, `pt()` and the functions based on them (`pchisq()`, `pf()`, `ppois()`, `pbinom()`,
#' `pnbinom()`) are SciPy's, and agree with R to twelve digits, also far in the tails. Derivatives by `q` are densities;
#' derivatives by shapes and degrees of freedom are integrals over the smaller tail, by the double exponential rule with
#' 76 nodes.
#'
#' `qgamma()`, `qbeta()` and the functions based on them (`qchisq()`, `qt()`, `qf()`) have the derivatives of the
#' implicit function with respect to all arguments, to all orders. They are NaN if shapes, or `df` in `qchisq()`, are 0
#' or infinite, and if `df1` and `df2` in `qf()` are both infinite.
#'
#' Noncentral distributions are sums of positive terms, accurate to twelve digits in the tails, where R's are less
#' accurate; they have derivatives to second order.
#'
#' Quantiles of counts are integers: their derivatives are 0, and so are derivatives of `phyper()` by its counts.
#' @references Takahasi and Mori (1974), Double exponential formulas for numerical integration. Loader (2000), Fast and
#'   accurate computation of binomial probabilities.
#' @section Errors:
#' - `gradops_error_argument`: both `prob` and `mu`; a `size` that is not the sum of the counts.
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

# Evaluate a function of a distribution, or a special function: by one call into the core, or, in a compiled loop, as
# one operation of its log.
#
# `kind` and `family` are taken from R's name: "density" and "norm" for `dnorm`. `settings`: lower tails or upper,
# logarithms or not.
distribution <- function(kind, family, settings, ..., call = parent.frame()) {
  arguments <- list(...)
  value <- if (!is.null(state$scalars)) {
    key <- paste(kind, family)
    .Call(C_known_function_in_log, state, key, length(arguments), base::c(arguments, settings)) %||%
      composed_in_log(kind, family, settings, arguments)
  }
  if (is.null(value)) {
    check_density_arguments(arguments, as.character(substitute(list(...)))[-1L])
    in_core <- function(name, ...) {
      path <- paste0("interop.r.distributions.", name)
      do.call(call_core, base::c(path, list(...), .call = call), quote = TRUE)
    }
    # Python checks the sizes itself if R does not know them, as asking a tensor for its size is a call of its own.
    if (any(vapply(arguments, is_of_unknown_size, NA))) {
      given <- lapply(arguments, operand, name = "x")
      value <- do.call(in_core, base::c("call_if_same_shape", kind, list(settings), family, given), quote = TRUE)
    }
    if (is.null(value) || inherits(value, "python.builtin.NoneType")) {
      in_form <- function(...) do.call(in_core, base::c(kind, family, settings, list(...)), quote = TRUE)
      value <- elementwise(in_form, arguments)
    }
  }
  named_as_first(value, arguments)
}

# Raise an error for arguments of a distribution that are neither tensors nor numbers, such as NULL of a misspelt name.
check_density_arguments <- function(arguments, names) {
  plain <- vapply(arguments, function(x) is_any_tensor(x) || is.numeric(x) || is.logical(x), NA)
  if (!all(plain)) {
    i <- which.min(plain)
    call <- users_call()
    frame <- Position(function(frame) identical(frame, call), sys.frames())
    written <- match.call(sys.function(frame), sys.call(frame))[[names[i]]]
    not_numeric(names[i], arguments[[i]], call, operand_hint(written, arguments[[i]], sys.frame(sys.parents()[frame])))
  }
}

# The generics of families in the core whose names start with these letters.
family_generics <- function(kinds, families = base::c(distribution_families(), "nbinom")) {
  names <- base::outer(kinds, families, base::paste0)
  mget(names, topenv(), inherits = FALSE)
}

distribution_generics <- function() family_generics(names(kinds))

# Methods of these generics for tensors.
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
  family_generic(generic, name, function(family, given) {
    bquote(distribution(.(kind), .(family), list(..(flags)), .(as.name(arguments[[1L]])), ..(given)), splice = TRUE)
  })
}

# The generic with the body `call_of(family, parameters)`; `ncp` or `mu` determine the family.
family_generic <- function(generic, name, call_of) {
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

# The code of a namesake that asks a log for the result first: loops have thousands of densities, and R's dispatch takes
# longer than the log. Nothing for functions whose family depends on the arguments.
asking_log <- function(name, generic) {
  arguments <- names(formals(generic))
  if (any(base::c("ncp", "mu") %in% arguments)) {
    return(NULL)
  }
  operands <- base::c(arguments[1L], family_parameters(generic))
  given <- stats::setNames(nm = base::c(operands, intersect(arguments, base::c("log", "lower.tail", "log.p"))))
  key <- paste(kinds[[base::substr(name, 1L, 1L)]], base::substring(name, 2L))
  arguments <- as.call(base::c(quote(list), lapply(given, as.name)))
  list(
    bquote(logged <- gradops:::distribution_in_log(.(name), .(key), .(length(operands)), .(arguments))),
    quote(if (!is.null(logged)) return(logged))
  )
}

# The result of the function `name` of the core in a log, as in `distribution()`; NULL where R's code must decide.
distribution_in_log <- function(name, key, count, arguments) {
  if (!is.null(state$scalars) && is.null(state$heard)) {
    logged <- .Call(C_known_function_in_log, state, key, count, arguments)
    if (is.null(logged) || is.null(state$replaces)) logged else made_by(logged, get(name, topenv()), arguments, FALSE)
  }
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

# Apply `f` elementwise to arguments that are recycled to one size; the result has the form of the first of
# the largest.
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
  shape <- forms[!others][[1L]]
  flat_one <- function(x, size) {
    if (size == 1) { # broadcast: 500 equal elements would have 500 gradients
      return(if (!is_any_tensor(x)) as.vector(x) else if (length(known_dim(x)) > 1L) flat(x) else x)
    }
    if (!is_any_tensor(x)) array_of(rep_len(as.vector(x), most)) else if (size == most) flat(x) else recycled(x, most)
  }
  value <- do.call(f, Map(flat_one, arguments, sizes), quote = TRUE)
  if (length(shape) > 1L) fill(value, shape) else value
}
