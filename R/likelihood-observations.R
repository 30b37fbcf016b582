# Observations and reports while a likelihood runs: reported quantities, and observations, which densities draw in a
# simulation and weight for residuals. `state$observations` is the scope that receives them, NULL in a search.

#' Observations and reported quantities of a likelihood
#'
#' `observed(x)` returns `x` and marks it as observations; write it where the likelihood uses its data. Then
#' [simulate()][stats::simulate] draws data from the model, and [residuals()][stats::residuals] returns one-step-ahead
#' residuals. `report(rate = exp(p$log_rate))` names quantities that [predict()][stats::predict] returns, with standard
#' errors by the delta method. A search for estimates does not compute them.
#'
#' Data are drawn where the observations, or random effects, are the first argument of a density function of stats, with
#' `log = TRUE`: `dnorm(observed(data$y), mean, sd, log = TRUE)` draws with `rnorm()`. So the likelihood has to be the
#' sum of such densities. A density may depend on other drawn values, as in an autoregression: the likelihood runs until
#' the drawn values no longer change.
#' @param x Observations: a vector or matrix. Missing ones stay missing.
#' @param name The name of the observations; by default the last name in the code of `x`, such as `y` in `data$y`.
#' @param ... Quantities by name: numbers, vectors and matrices. Without a name, their code is the name.
#' @returns `observed()`: `x`. `report()`: `NULL`, invisibly.
#' @section Errors:
#' While data of a fit are simulated or residuals computed, `gradops_error_argument`: observations that are in no
#' density, or in two; a density without `log = TRUE`; a family without random numbers in gradops.
#' @seealso [maximize_likelihood()].
#' @examplesIf gradops_available()
#' nll <- function(p, y) {
#'   report(variance = exp(2 * p$log_sd))
#'   -sum(dnorm(observed(y), p$mean, exp(p$log_sd), log = TRUE))
#' }
#' fit <- maximize_likelihood(nll, list(mean = 0, log_sd = 0), c(4.1, 5.3, 4.8, 6, 5.2))
#' predict(fit, se.fit = TRUE) # all reported quantities
#' set.seed(1)
#' simulate(fit, 2)
#' residuals(fit)
#' @export
observed <- function(x, name = NULL) {
  if (is.null(state$observations$observe)) x else state$observations$observe(x, name %||% last_name(substitute(x)))
}

#' @rdname observed
#' @export
report <- function(...) {
  if (!is.null(state$observations$reports)) {
    said <- as.list(substitute(list(...)))[-1L]
    unnamed <- !nzchar(rlang::names2(said))
    names(said)[unnamed] <- vapply(said[unnamed], function(code) deparse1(as_written(code)), "")
    record(stats::setNames(list(...), names(said)))
  }
  invisible()
}

# Record reported values of one kind; a later value replaces an earlier one of the same name.
record <- function(values, kind = "report") {
  into <- state$observations$reports
  if (identical(kind, into$kind)) into$found[names(values)] <- values
}

# The quantities of a kind that `run()` reports, as a list.
reports_of <- function(run, kind = "report") {
  into <- list2env(list(kind = kind, found = list()))
  with_observations(list(reports = into), run())
  into$found
}

with_observations <- function(receiver, code) {
  before <- state$observations
  on.exit(state$observations <- before)
  state$observations <- receiver
  force(code)
}

last_name <- function(code) {
  code <- as_written(code)
  if (rlang::is_call(code, c("$", "[[", "@")) && (is.name(code[[3L]]) || is.character(code[[3L]]))) {
    as.character(code[[3L]])
  } else {
    deparse1(code)
  }
}

# Observations in density functions -----------------------------------------------------------------------------------

# Numbers with their positions among all observations of a scope, and the scope. Only density functions see the marks;
# all other functions get the plain numbers. A difference has the position of its later number; `before` has a column
# for each number that is subtracted, with the positions of these, the nearest first.
as_observed <- function(x, places, scope, before = NULL) {
  attr(x, "places") <- places
  attr(x, "scope") <- scope
  attr(x, "before") <- before
  class(x) <- "gradops_observed" # structure() takes as long as all the rest
  x
}

plain_observed <- function(x) {
  attr(x, "places") <- attr(x, "scope") <- attr(x, "before") <- NULL
  unclass(x)
}

# A part of observations, selected by `take`. In a simulation it has the numbers drawn so far, so that a loop over time
# draws each one given the last in a single run.
part_of_observed <- function(x, take) {
  scope <- attr(x, "scope")
  places <- attr(x, "places")
  before <- attr(x, "before")
  at <- if (is.null(before)) places else seq_along(x)
  dim(at) <- dim(x)
  at <- take(at)
  if (!is.null(before)) {
    return(as_observed(take(plain_observed(x)), places[at], scope, before[at, , drop = FALSE]))
  }
  drawn <- scope$drawn_by_now
  as_observed(if (is.null(drawn)) take(plain_observed(x)) else drawn(at), as.vector(at), scope)
}

#' @export
`[.gradops_observed` <- function(x, ...) part_of_observed(x, function(of) of[...])

#' @export
`[[.gradops_observed` <- function(x, ...) part_of_observed(x, function(of) of[[...]])

#' @export
t.gradops_observed <- function(x) part_of_observed(x, t)

#' @export
diff.gradops_observed <- function(x, lag = 1L, differences = 1L, ...) {
  scope <- attr(x, "scope")
  if (!is.null(attr(x, "before"))) {
    refuse_observed(scope$names[attr(x, "places")[1L]], "is in a `diff()` of a `diff()`: ask one for `differences`")
  }
  change <- diff(plain_observed(x), lag, differences)
  places <- as.matrix(array(attr(x, "places"), dim(x) %||% length(x)))
  of <- function(earlier) {
    as.vector(places[seq_len(NROW(change)) + as.integer(lag * (differences - earlier)), , drop = FALSE])
  }
  before <- vapply(seq_len(differences), of, numeric(length(change)))
  as_observed(change, of(0L), scope, matrix(before, length(change)))
}

is_observed <- function(x) inherits(x, "gradops_observed")

as_plain <- function(x) if (is_observed(x)) plain_observed(x) else x

#' @export
Math.gradops_observed <- function(x, ...) get(.Generic)(plain_observed(x), ...)

#' @export
Summary.gradops_observed <- function(..., na.rm = FALSE) { # nolint: object_name_linter. R's name.
  do.call(.Generic, c(lapply(list(...), as_plain), na.rm = na.rm))
}

#' @export
mean.gradops_observed <- function(x, ...) mean(plain_observed(x), ...)

# Density functions of observations, by the name of their family.
observed_methods <- function() {
  densities <- base::c(family_generics("d"), list(dmultinom = dmultinom))
  Map(observed_method, densities, substring(names(densities), 2L))
}

# A density function that passes the given parameters on to the scope.
observed_method <- function(generic, family) {
  taken <- lapply(setdiff(names(formals(generic)), base::c("x", "log")), function(name) {
    bquote(if (!missing(.(as.name(name)))) given[[.(name)]] <- .(as.name(name)))
  })
  with_own_body(generic, bquote({
    given <- list()
    ..(taken)
    attr(x, "scope")$density(x, .(family), given, is_set(log))
  }, splice = TRUE))
}

refuse_observed <- function(name, message) {
  refuse_parameters("observed", sprintf("`%s` %s", name, message), NULL)
}

# A scope that collects observations and their positions. Density functions of observations call `density(x, name,
# places, family, given, before)`.
observation_scope <- function(density) {
  scope <- new.env()
  scope$names <- character() # for each position
  scope$known <- list() # numbers by name
  scope$seen <- logical() # TRUE for each position that was in a density
  scope$numbers <- function(name) scope$known[[name]]
  scope$observe <- function(x, name) {
    if (!is.numeric(x)) refuse_observed(name, "must be ordinary R numbers")
    x <- as_plain(x)
    if (is.null(scope$known[[name]])) {
      scope$known[[name]] <- x
      scope$names <- c(scope$names, rep(name, length(x)))
    } else if (!identical(scope$known[[name]], x)) {
      refuse_observed(name, "marks several sets of numbers: give each a `name`, or mark all before you take parts")
    }
    as_observed(scope$numbers(name), which(scope$names == name), scope)
  }
  scope$density <- function(x, family, given, log) {
    places <- attr(x, "places")
    name <- scope$names[places[1L]]
    if (!log) refuse_observed(name, "needs `log = TRUE` in its density: the likelihood is a sum of log densities")
    density(as_plain(x), name, places, family, lapply(given, as_plain), attr(x, "before"))
  }
  scope
}

# Raise an error if a likelihood marks no observations.
check_marked <- function(names) {
  if (length(names) == 0L) {
    abort(
      c(
        "`object`: its likelihood marks no observations.",
        i = "Mark them where a density takes them: `dnorm(observed(data$y), mean, sd, log = TRUE)`."
      ),
      class = c("gradops_error_unmarked", "gradops_error_argument", "gradops_error"), argument = "object", call = NULL
    )
  }
}

# Raise an error if some observations that are not missing were in no density.
check_seen <- function(scope, seen) {
  missed <- which(!seen & !is.na(unlist(scope$known, use.names = FALSE)))
  if (length(missed) > 0L) refuse_observed(scope$names[missed[1L]], "is the first argument of no density function")
}

log_density <- function(family, x, given) {
  density <- rtmb_densities()[[paste0("d", family)]] %||% paste0("d", family)
  do.call(density, c(list(x), given, log = TRUE), quote = TRUE)
}

# Simulation -----------------------------------------------------------------------------------------------------------

# Simulate from `run(observe)`, the likelihood of R's numbers: return the `drawn` observations and random effects, and
# the quantities `reported` with them. Each density draws with its own seed, so that another run gives the same numbers,
# except where they depend on numbers that were not drawn before.
simulated <- function(run) {
  seed <- sample.int(2e9L, 1L)
  drawn <- list()
  scope <- observation_scope(function(x, name, places, family, given, before) {
    if (any(scope$seen[places], na.rm = TRUE)) refuse_observed(name, "is in two densities: neither one draws it")
    scope$seen[places] <- TRUE
    scope$draws <- scope$draws + 1L
    set.seed(seed + scope$draws)
    new <- replace(draw_of(family, x, given), is.na(x), NA)
    at <- function(places) places - match(name, scope$names) + 1L
    if (is.null(before)) {
      drawn[[name]][at(places)] <<- new
    } else {
      signs <- -(-1)^seq_len(ncol(before)) * choose(ncol(before), seq_len(ncol(before)))
      for (i in seq_along(places)) drawn[[name]][at(places[i])] <<- new[i] + sum(signs * drawn[[name]][at(before[i, ])])
    }
    log_density(family, replace(x, TRUE, new), given)
  })
  scope$numbers <- function(name) {
    if (is.null(drawn[[name]])) drawn[[name]] <<- scope$known[[name]]
    drawn[[name]]
  }
  scope$drawn_by_now <- function(places) { # in the form of `places`
    name <- scope$names[places[1L]]
    places[] <- if (length(places) > 0L) drawn[[name]][places - match(name, scope$names) + 1L] else numeric()
    places
  }
  withr::with_preserve_seed({
    runs <- 0
    repeat {
      before <- drawn
      scope$draws <- 0L
      scope$seen <- rep(FALSE, length(scope$names))
      scope$reports <- list2env(list(kind = "report", found = list()))
      with_observations(scope, run(scope$observe))
      scope$seen <- !is.na(scope$seen) & scope$seen
      check_seen(scope, scope$seen)
      if (identical(before, drawn)) break
      runs <- runs + 1
      if (runs > length(scope$names) + 1L) refuse_observed(scope$names[1L], "depends on values that are drawn given it")
    }
  })
  list(drawn = drawn, reported = lapply(scope$reports$found, as_plain))
}

draw_of <- function(family, x, given) {
  if (family == "multinom") {
    as.vector(stats::rmultinom(1L, given$size %||% sum(x), given$prob))
  } else {
    sampler <- rtmb_samplers()[[paste0("d", family)]]
    if (is.null(sampler)) {
      do.call(get(paste0("r", family), asNamespace("stats")), c(list(length(x)), given))
    } else {
      do.call(sampler, c(list(x), given))
    }
  }
}

# Residuals ------------------------------------------------------------------------------------------------------------

# One-step-ahead residuals of the observations in `f`, with all parameters fixed: the normal quantiles of the
# probability of each observation given those before it (Thygesen, Albertsen, Berg, Kristensen and Nielsen 2017). The
# likelihood multiplies each log density by `keep`, and the log probabilities below and above an observation by `below`
# and `above`, or it shifts the observation by `shift`; random effects are integrated out of each.
#
# `turns(names)` returns the order in which the observations are added; a negative number means known from the start, 0
# never. For the added ones, `range` is the interval in which they have a density, `support` all integers that they can
# take, or all values with a positive probability; `discrete` says whether they are counts.
one_step_residuals <- function(
  f, parameters, data, values, method, turns, range = c(-Inf, Inf), support = NULL, discrete = NULL
) {
  scope <- if (method == "gaussian") observation_scope(plain_density) else weighing_scope(method)
  with_observations(scope, tensor_aware(parameter_function(f, parameters$layout, parameters$is_list, data))(values))
  n <- length(scope$names)
  check_marked(scope$names)
  scope$turns <- turns <- turns(scope$names)
  if (method == "gaussian") {
    found <- gaussian_residuals(f, parameters, data, values, scope, turns)
  } else {
    is_there <- !is.na(scope$seen[seq_len(n)])
    check_seen(scope, is_there)
    turns[!is_there] <- 0
    model <- weighed_model(f, parameters, data, values, scope, n, method)
    comes <- turns > 0
    kinds <- ifelse(comes, scope$kinds[seq_len(n)], 0)
    y <- as.double(unlist(scope$known, use.names = FALSE))
    check_support(scope$names, kinds, y, comes, range, support, discrete)
    if (method %in% c("slope", "mode")) {
      refused <- which(kinds > 0)[1L]
      if (!is.na(refused)) {
        what <- c("are counts, which have `cdf` and", "have a probability at 0, so they have")[kinds[refused]]
        refuse_observed(scope$names[refused], paste(what, "`integral` residuals only"))
      }
      of_each <- model$ask(paste0(method, "_residuals"), model$par, turns = turns)
    } else {
      drawn <- order(turns)[sort(turns) > 0]
      points <- replace(numeric(n), drawn, stats::runif(length(drawn)))
      of_each <- if (method == "cdf") {
        counts <- comes & (kinds > 0 | y %in% support)
        model$ask("step_residuals", model$par, turns = turns, counts = counts, uniform = points)
      } else {
        lower <- pmax(scope$lower[seq_len(n)], range[1L])
        upper <- pmin(scope$upper[seq_len(n)], range[2L])
        model$ask(
          "integral_residuals", model$par, y = y, turns = turns, kinds = kinds, uniform = points, lower = lower,
          upper = upper, points = as.double(support)
        )
      }
    }
    found <- replace(as.vector(of_each), turns <= 0, NA)
  }
  found <- lapply(split(found, factor(scope$names, unique(scope$names))), as.vector)
  if (length(found) == 1L) found[[1L]] else found
}

# The log density without weights.
plain_density <- function(x, name, places, family, given, before = NULL) log_density(family, x, given)

# Raise an error if the settings contradict the observations that are added.
check_support <- function(names, kinds, y, comes, range, support, discrete) {
  counts <- comes & kinds == 1
  if (!is.null(discrete) && flag(discrete) != any(counts)) {
    refuse_parameters("discrete", sprintf(
      "`%s` are %scounts by their density", names[which(comes)[1L]], if (discrete) "no " else ""
    ), NULL)
  }
  if (!is.numeric(range) || is.object(range) || length(range) != 2L || anyNA(range) || range[1L] >= range[2L]) {
    refuse_parameters("range", "must be two numbers, the lower first", NULL)
  }
  if (!is.null(support) && (!is.numeric(support) || is.object(support) || anyNA(support))) {
    refuse_parameters("discreteSupport", "must be numbers", NULL)
  }
  beyond <- which(comes & kinds != 1 & (y < range[1L] | y > range[2L]))[1L]
  if (!is.na(beyond)) refuse_parameters("range", sprintf("`%s` has %s outside", names[beyond], y[beyond]), NULL)
  missed <- which(counts & !is.null(support) & !y %in% support)[1L]
  if (!is.na(missed)) refuse_parameters("discreteSupport", sprintf("`%s` also has %s", names[missed], y[missed]), NULL)
}

count_families <- c(
  "binom", "pois", "geom", "nbinom", "hyper", "binom_robust", "nbinom_robust", "nbinom2", "compois", "compois2",
  "multinom"
)

positive_families <- c("lnorm", "exp", "gamma", "weibull", "chisq", "f", "tweedie", "beta")

weighing_scope <- function(method) {
  tails <- method == "cdf"
  scope <- observation_scope(function(x, name, places, family, given, before) {
    is_normal <- family %in% c("mvnorm", "gmrf") && !tails
    if (family %in% c("mvnorm", "gmrf", "autoreg") && !is_normal) {
      refuse_observed(name, sprintf("has no one-step residuals for `d%s()`; for normal ones use `gaussian`", family))
    }
    if (tails && !has_tails(family)) {
      refuse_observed(name, sprintf("has no `cdf` residuals for `d%s()`; use `integral`", family))
    }
    scope$seen[places] <- TRUE
    # 0 for a density, 1 for integers, 2 for a density and a positive probability of 0
    scope$kinds[places] <- if (family %in% count_families) 1 else if (family == "tweedie") 2 else 0
    scope$lower[places] <- if (family %in% positive_families) 0 else -Inf
    scope$upper[places] <- if (family == "beta") 1 else Inf
    weights <- scope$weights
    if (is.null(weights)) {
      return(plain_density(x, name, places, family, given))
    }
    is_multinomial <- family == "multinom"
    if (is_multinomial) {
      given <- binomials_of(x, scope$turns[places], given)
      family <- "binom"
    }
    tail <- function(lower) {
      do.call(paste0("p", family), c(list(x), given, lower.tail = lower, log.p = TRUE), quote = TRUE)
    }
    places <- as.vector(places)
    if (is_normal) {
      return(marginal_normal(as.vector(x) + weights$shift[places], weights$keep[places], given))
    }
    flat_one <- function(x) if (length(x) == length(places)) flat(x) else x
    found <- if (tails) {
      weights$keep[places] * flat_one(log_density(family, x, given)) + weights$below[places] * flat_one(tail(TRUE)) +
        weights$above[places] * flat_one(tail(FALSE))
    } else {
      weights$keep[places] * flat_one(log_density(family, as.vector(x) + weights$shift[places], given))
    }
    if (is_multinomial) sum(found) else found
  })
  scope
}

has_tails <- function(family) {
  family == "multinom" || family != "hyper" && exists(paste0("p", family), mode = "function")
}

# The sizes and probabilities of the cells of a multinomial density, each given the cells that are added before it.
binomials_of <- function(x, turns, given) {
  order <- order(replace(turns, turns == 0, Inf)) # 0: never added
  last <- length(x)
  size <- numeric(last)
  size[order] <- as.double(given$size %||% sum(x)) - c(0, cumsum(x[order])[-last])
  prob <- given$prob[order]
  left <- rev(cumsum(rev(prob)))
  prob <- c(prob[-last] / left[-last], 1) # exactly 1, as its logarithms are 0 and minus infinity
  list(size = size, prob = prob[order(order)])
}

# The sum of the log densities of normal vectors, the rows of `x`, for the elements with weight 1 in `keep`; elements
# with weight 0 are integrated out. `given` has the other arguments of `dmvnorm()` or `dgmrf()`.
marginal_normal <- function(x, keep, given) {
  covariance <- given$Sigma %||% solve(as.matrix(given$Q))
  size <- nrow(covariance)
  count <- length(x) / size
  found <- 0
  for (i in seq_len(count)) {
    at <- i + count * (seq_len(size) - 1)
    row_of <- function(v) if (length(v) == length(x)) as.vector(v)[at] else v
    k <- keep[at]
    scale <- row_of(given$scale %||% 1)
    z <- k * (x[at] - row_of(given$mu %||% 0)) / scale
    of_all <- dmvnorm_rtmb(z, 0, covariance * outer(k, k) + base::diag(size) * (1 - k), TRUE)
    found <- found + of_all + sum(1 - k) * base::log(2 * pi) / 2 - sum(k * log(scale))
  }
  found
}

# The likelihood as a function of weights and random effects.
weighed_model <- function(f, parameters, data, values, scope, n, method) {
  weighed <- function(q, code) {
    scope$weights <- q
    on.exit(scope$weights <- NULL)
    with_observations(scope, code)
  }
  start <- list(keep = rep(1, n))
  start[if (method == "cdf") c("below", "above") else "shift"] <- list(numeric(n))
  with_effects(f, parameters, data, values, weighed, start, NULL)
}

# Residuals of jointly normal observations: all observations become random effects, except names that are known
# entirely.
gaussian_residuals <- function(f, parameters, data, values, scope, turns) {
  coming <- scope$names %in% scope$names[turns > 0]
  names <- scope$names[coming]
  y <- as.double(unlist(scope$known[unique(names)], use.names = FALSE))
  among_all <- function(code, q) {
    receiver <- list(observe = function(x, name) {
      seen <- which(names == name)
      if (length(seen) == 0L) {
        return(x)
      }
      if (anyNA(x)) refuse_observed(name, "has missing values: leave them out before they are marked")
      if (is.null(dim(x))) q$y[seen] else fill(q$y[seen], dim(x))
    })
    with_observations(receiver, code)
  }
  model <- with_effects(
    f, parameters, data, values, function(q, code) q$one * among_all(code, q), list(one = 1, y = y), "y"
  )
  found <- as.vector(model$ask("normal_residuals", 1, y = y, turns = turns[coming]))
  replace(rep(NA_real_, length(turns)), coming, found)
}

# A likelihood of the parameters in `start` and the random effects of `f`, with the other parameters fixed; `wrapped(q,
# code)` evaluates it.
with_effects <- function(f, parameters, data, values, wrapped, start, random) {
  places <- which(parameters$layout$random)
  joint <- parameter_function(f, parameters$layout, parameters$is_list, data)
  home <- list2env(
    list(.wrapped = wrapped, .joint = joint, .values = values, .places = places),
    parent = environment(f) %||% globalenv()
  )
  if (length(places) == 0L) {
    body <- quote(.wrapped(q, .joint(.values)))
    map <- NULL
  } else {
    body <- quote({
      v <- .values
      v[.places] <- q$u
      .wrapped(q, .joint(v))
    })
    start <- c(start, list(u = values[places]))
    map <- list(u = replace(parameters$labels[parameters$random], parameters$labels[parameters$random] < 0, NA))
    random <- c(random, "u")
  }
  likelihood_of(rlang::new_function(formals(function(q) NULL), body, home), start, random, map)
}
