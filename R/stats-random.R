#' Random numbers with tensors as parameters
#'
#' `rnorm()` and the other generators of stats, with the same arguments: if a parameter is a tensor or a variable, the
#' numbers are a differentiable function of it (reparametrisation). They are the numbers that stats' function draws for
#' the values of the parameters, so after [set.seed()] a function has the same value when it is differentiated. For
#' ordinary R values the function of stats is called.
#'
#' Counts are integers, which have no derivative with respect to their parameters: `rbinom()`, `rpois()`, `rgeom()`,
#' `rnbinom()` and `rhyper()` of tensors are errors. So are `ptukey()`, `qtukey()`, `psignrank()` and `pwilcox()`, whose
#' derivatives are not implemented.
#' @param n,nn The number of random numbers; a vector of several stands for its length.
#' @param mean,sd,meanlog,sdlog,location,shape,scale,rate,shape1,shape2,df,df1,df2,min,max The parameters, as in stats;
#'   tensors or numbers, recycled to `n`. Invalid parameters give NaN.
#' @param ncp The noncentrality.
#' @param size,prob,mu,lambda,m,k,q,p,nmeans,nranges,lower.tail,log.p As in stats, only for R's values.
#' @returns A tensor of `n` numbers.
#' @section Gradient:
#' With respect to each parameter: from the explicit formula if there is one (`rnorm()`, `rlnorm()`, `rexp()`,
#' `runif()`, `rweibull()`, `rlogis()`, `rcauchy()`), to all orders; otherwise by the implicit function theorem from the
#' distribution function (Figurnov, Mohamed and Mnih 2018, Implicit reparameterization gradients), to the third order.
#' @section Errors:
#' - `gradops_error_argument`: a tensor as `n`, an `n` that is not an integer, an empty parameter.
#' - `gradops_error_jit`: used in a compiled function, where the numbers would be the same at each call: draw them
#'   outside.
#' @seealso [random_normal()] and similar functions, by shapes and seeds; [tensor_distributions].
#' @examplesIf gradops_available()
#' set.seed(1)
#' x <- rgamma(3, shape = variable(2.5), rate = 1)
#' # the slope of a mean with respect to the shape
#' slope <- function(shape) {
#'   set.seed(1)
#'   mean(log(rgamma(1000, shape)))
#' }
#' c(gradient(slope, 2.5), trigamma(2.5))
#' @eval usages(generics_of_page("tensor_random"))
#' @name tensor_random
NULL

# Methods for tensors, for the families that are not counts.
random_methods <- function() {
  generics <- family_generics("r", setdiff(distribution_families(), base::c("binom", "pois", "geom", "hyper")))
  Map(random_method, generics, names(generics))
}

random_method <- function(generic, name) {
  family_generic(generic, name, function(family, given) {
    names(given) <- vapply(given, as.character, "")
    as.call(base::c(quote(random_numbers), family, name, quote(n), given))
  })
}

# Draw R's own numbers with the function `name` of stats at the values of the parameters, as a function of the
# parameters.
random_numbers <- function(family, name, n, ..., call = parent.frame()) {
  count <- if (length(n) > 1L) length(n) else as.vector(n)
  if (!is.numeric(count) || length(count) != 1L || is.na(count) || count < 0) {
    unsupported("n", sprintf("must be a number from 0 on, or several; got %s.", friendly(n)), call = call)
  }
  count <- as.integer(count)
  parameters <- lapply(list(...), function(x) {
    if (length(x) == 0L) unsupported("parameters", "must not be empty.", call = call)
    if (length(x) == 1L) flat(x) else recycled(x, count)
  })
  if (count == 0L) {
    return(numeric())
  }
  if (compiling() > 0) refuse_random_numbers()
  values <- lapply(parameters, function(x) as.vector(if (is_any_tensor(x)) values_of(x) else x))
  drawn <- do.call(get(name, envir = asNamespace("stats")), base::c(list(count), values))
  path <- "interop.r.distributions.drawn"
  do.call(call_core, base::c(path, family, list(array_of(drawn)), unname(parameters), .call = call), quote = TRUE)
}

# Refusals -------------------------------------------------------------------------------------------------------------

refused_methods <- function() {
  counts <- "random counts are integers, and have no derivative by it"
  ranks <- "the derivative of a rank test's distribution is not implemented"
  range <- "the derivative of the studentized range is not implemented"
  reasons <- list(
    rbinom = counts, rpois = counts, rgeom = counts, rnbinom = counts, rhyper = counts, psignrank = ranks,
    pwilcox = ranks, ptukey = range, qtukey = range
  )
  Map(function(name, why) {
    with_own_body(get(name, topenv()), bquote(refuse_tensor(environment(), .(why))))
  }, names(reasons), reasons)
}

# Raise the error for the first tensor among the arguments of a frame.
refuse_tensor <- function(frame, why, call = parent.frame()) {
  is_given <- function(name) !eval(base::call("missing", as.name(name)), frame) && is_any_tensor(frame[[name]])
  name <- Find(is_given, names(formals(sys.function(-1L))))
  instead <- sprintf("Its numbers are `as.numeric(op_stop_gradient(%s))`.", name)
  unsupported(name, sprintf("must be ordinary R numbers: %s.", why), instead, call = call)
}
