#' Value, gradient and Hessian for optimisers, from one evaluation
#'
#' `objective(f)` returns `f` and its derivatives in the forms that R's optimisers take. Value and gradient come from
#' one evaluation: `gr(x)` after `fn(x)` only returns what was computed, and the other way round. Each result is
#' returned once, so if data that `f` uses have changed, `f` is evaluated again.
#'
#' `f` may also return a value for each observation, as `maxLik::maxLik()` allows: `gr` then returns a matrix with a row
#' for each observation, and `he` the Hessian of their sum.
#'
#' @section Shards of data:
#' With `data`, a list, the objective is the sum of `f(x, shard, ...)` over its elements, in value and derivatives: a
#' log-likelihood of data in pieces. A shard is any R object that `f` takes.
#'
#' With `cluster`, R workers hold the shards, distributed by `parallel::splitIndices()`, and send back their sums. `f`
#' is sent to them with the variables that it closes over, but without variables in the global environment, which
#' `parallel::clusterExport()` sends, and without Python objects. gradops must be installed for the workers; they
#' compute on this session's default backend. They keep the shards until they stop.
#'
#' Shards that Dask or Ray hold (a `dask.bag.Bag`, a list of `dask.delayed` values, of futures or of Ray's references)
#' are summed by their workers, which run Python. Then `f` is a Python function, `cluster` and `jit` are not used, and
#' there are no further arguments. Gradients equal those in one process, up to the order in which numbers are
#' added.
#' @section Random effects:
#' With `start`, a named list of numbers, vectors and matrices, the functions take the estimated parameters as one
#' vector, like those of RTMB's `MakeADFun()`. Parameters in `random` are integrated out by the Laplace approximation:
#' around the mode of the joint likelihood, which Newton's method finds from the previous mode, with the log determinant
#' of its Hessian, which is sparse with a fixed pattern. The gradient is exact, by the implicit function theorem (Skaug
#' & Fournier 2006; Kristensen et al. 2016); `he` is computed by differences of it. If the random effects have no mode,
#' the value is `NaN`. `f` is compiled, and each evaluation is one call of Python.
#' @param f A function whose first argument are the parameters (R numbers or a list of them); ordinary R code on tensors
#'   as for [grad()].
#' @param jit If `TRUE`, `f` is compiled (see [jit()]): traced at the first call and then run without R.
#' @param hessian If `TRUE`, `nlm` also returns the Hessian.
#' @param data `NULL`, or a list of shards of data, each of which is passed to `f` as its second argument; see below.
#' @param cluster `NULL`, or a cluster of R workers that hold the shards, from [parallel::makeCluster()].
#' @param start `NULL`, or the starting values of the parameters, a named list or vector.
#' @param random,map,transforms,integrate As for [maximize_likelihood()]; they need `start`.
#' @returns A list of class `gradops_objective` of functions of the parameters and `...`, further arguments of `f`:
#' - `fn`: the value; `gr`: the gradient; `he`: the Hessian, as plain R numbers with the names of the parameters;
#' - `nlm`: the value with the attributes `"gradient"` (and `"hessian"`), for [stats::nlm()];
#' - `evaluations()`: how often value and gradient were computed.
#'
#' With `start` it has no `nlm`, and in addition
#' - `par`: the start, a vector with names; `random`: the names of the random effects;
#' - `parameters(x)`: all parameters in the form of `start`, random effects at their mode;
#' - `precision(x)`: the joint precision of random effects and estimated parameters, a `dgCMatrix`;
#' - `report(x)`, `simulate(x, use.u = FALSE)`, `residuals(x, method = "cdf")`: the quantities that `f` reports,
#'   simulated observations and random effects, one-step-ahead residuals (see [observed()], [maximize_likelihood()]);
#' - `importance(x, draws = 1000)`: the value without the Laplace approximation, by importance sampling, and its
#'   standard error.
#'
#' If the value is a number but the gradient has NaN, the first evaluation gives the warning `gradops_warning_gradient`.
#' @section Errors:
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' - `gradops_error_shard`: an error in `f` at a shard, which the message names; the error is the parent. Or a worker
#'   that holds shards is lost; the cluster's error is the parent.
#' - `gradops_error_type`: `jit` or `hessian` is not `TRUE` or `FALSE`, `data` is not a list of shards, `cluster` is not
#'   a cluster; an R function with data on Python workers, or a Python function for R workers.
#' - `gradops_error_argument`: gradops is not installed for the workers; `cluster` without `data`; `random`, `map` or
#'   `transforms` without `start`, or with an unknown name; `data` together with `start`.
#' - `gradops_error_inference`: a random effect has no curvature, or, in `parameters()`, no mode.
#' - `gradops_error_jit`: see [jit()].
#' @seealso [gradient()], [hessian()], [jit()].
#' @examplesIf gradops_available()
#' banana <- objective(function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2)
#' optim(c(-1.2, 1), banana$fn, banana$gr, method = "BFGS")$par
#' nlminb(c(-1.2, 1), banana$fn, banana$gr, banana$he)$par
#' nlm(banana$nlm, c(-1.2, 1))$estimate
#' banana
#'
#' # a log-likelihood of data in pieces, and standard errors
#' pieces <- split(faithful$waiting, faithful$eruptions > 3)
#' total <- objective(\(p, y) -sum(dnorm(y, p[1], exp(p[2]), log = TRUE)), data = pieces)
#' fit <- optim(c(70, 2), total$fn, total$gr, method = "BFGS")
#' fit$par
#' sqrt(diag(solve(total$he(fit$par))))
#' @export
objective <- function(
  f, jit = FALSE, hessian = FALSE, data = NULL, cluster = NULL, start = NULL, random = NULL, map = NULL,
  transforms = NULL, integrate = FALSE
) {
  check_function(f)
  flag(jit)
  flag(hessian)
  if (any(lengths(list(start, random, map, transforms)) > 0L)) {
    return(started(f, start, random, map, transforms, integrate, data, environment()))
  }
  check_has_data(data, cluster)
  evaluators <- if (is.null(data)) evaluators_of(f, jit) else sharded_evaluators(f, data, jit, cluster)
  both <- evaluators$both
  second <- evaluators$second
  evaluations <- 0
  watched <- attr(both, "watched") %||% captured_now(f)
  value <- derivative <- at <- read <- NULL # of the last evaluation, until each is returned
  evaluate <- function(arguments) {
    evaluations <<- evaluations + 1
    result <- both(arguments)
    found <- result$value
    by_x <- result$derivative
    x <- arguments[[1L]]
    bare <- is.null(attributes(x)) && is.null(attributes(found)) && is.null(attributes(by_x))
    bare <- bare && length(found) == 1L && !is.list(x)
    if (!bare && is.null(result$arranged)) { # skip the rest, which takes a tenth of a short call
      found <- drop_vector(found)
      by_x <- derivative_like(result, x)
    }
    if (evaluations == 1 && anyNA(by_x, recursive = TRUE)) warn_nan_gradient(found)
    value <<- found
    derivative <<- by_x
    at <<- arguments
    read <<- watched()
  }
  is_last <- function(arguments) identical(arguments, at) && !changed(read)
  fn <- function(x, ...) {
    arguments <- list(x, ...)
    if (is.null(value) || !is_last(arguments)) evaluate(arguments)
    found <- value
    value <<- NULL
    found
  }
  gr <- function(x, ...) {
    arguments <- list(x, ...)
    if (is.null(derivative) || !is_last(arguments)) evaluate(arguments)
    found <- derivative
    derivative <<- NULL
    found
  }
  he <- function(x, ...) {
    result <- second(list(x, ...))
    if (is.list(x)) result else flat_matrix(result, x, names(x))
  }
  nlm <- function(x, ...) {
    value <- fn(x, ...)
    attr(value, "gradient") <- gr(x, ...)
    if (hessian) attr(value, "hessian") <- he(x, ...)
    value
  }
  structure(
    list(fn = fn, gr = gr, he = he, nlm = nlm, evaluations = function() evaluations),
    class = "gradops_objective", explain = attr(both, "explain"), jit = jit && !is.null(attr(both, "explain"))
  )
}

check_has_data <- function(data, cluster, call = caller_env()) {
  if (is.null(data) && !is.null(cluster)) {
    abort(
      "`cluster` needs `data`, a list of shards for its workers.",
      class = c("gradops_error_argument", "gradops_error"), argument = "data", call = call
    )
  }
}

# The most common cause: missing values in R's data are dropped after something was computed from them.
warn_nan_gradient <- function(value) {
  if (!all(is.finite(value))) {
    return()
  }
  rlang::warn(
    c(
      "The value is a number, but its gradient has NaN.",
      i = paste(
        "Elements that become missing or infinite and are left out afterwards have the gradient NaN (0 * NaN):",
        "leave them out before, as `keep <- !is.na(y)`, `y[keep]`."
      ),
      i = "`with_detect_anomaly(gradient(f, x))` names the operation."
    ),
    class = c("gradops_warning_gradient", "gradops_warning"), call = NULL
  )
}

# Evaluators: `both` for value and gradient, `second` for the Hessian.
evaluators_of <- function(f, jit) {
  both <- evaluator("interop.r.objective", f, jit, pair_caller)
  second <- evaluator("interop.r.curvature", f, jit)
  if (jit) {
    return(list(both = list_evaluator(f, both), second = second))
  }
  again <- repeated_of_lists(f)
  again_second <- repeated(f, "hessian")
  list(
    both = structure(function(arguments) again(arguments) %||% both(arguments), explain = attr(again, "explain")),
    second = function(arguments) again_second(arguments)$value %||% second(arguments)
  )
}

# A function of a list of arguments that evaluates a function of gradops.interop.r for `f`, and returns R numbers.
evaluator <- function(.name, f, compiled, caller = direct_caller) {
  make <- function(f, here, compiled) {
    call_core(.name, callback(differentiated(f, here, joined = TRUE), owner = here), compiled)
  }
  run <- if (compiled) {
    compiled_calls(f, make, caller)
  } else {
    here <- new.env()
    derivative <- session <- NULL
    function(arguments) {
      if (is.null(derivative) || !identical(session, state$session)) {
        derivative <<- make(f, here, FALSE)
        session <<- state$session
      }
      here$names <- lapply(arguments, names_within)
      py_to_r(call_python(derivative, arguments, in_r = TRUE))
    }
  }
  evaluate <- function(arguments) {
    if (!is.double(arguments[[1]])) arguments[[1]] <- as_doubles(arguments[[1]])
    run(arguments)
  }
  structure(evaluate, explain = attr(run, "explain"), watched = attr(run, "watched"))
}

# The evaluator of a compiled `f`. Lists of vectors and arrays are passed as one vector, as only vectors have the fast
# path into Python; `general` handles all other parameters. `make` returns an evaluator of a function of one vector.
# `finish` converts its result; NULL means that `general` has to evaluate.
list_evaluator <- function(f, general, make = function(f) evaluator("interop.r.objective", f, TRUE, pair_caller),
                           finish = gradient_in_layout) {
  layout <- joined <- NULL
  left <- FALSE # to `general`
  evaluate <- function(arguments) {
    x <- arguments[[1L]]
    if (left || !is.list(x)) {
      return(general(arguments))
    }
    form <- NULL
    if (!are_vectors(x)) {
      x <- as_doubles(x)
      if (holds_lists(x)) {
        form <- rapply(x, length, how = "list")
        x <- leaves_of(x)
      }
      if (!are_vectors(x)) {
        return(general(arguments))
      }
    }
    new <- list(
      names = names(x), sizes = lengths(x, use.names = FALSE), attributes = lapply(unname(x), attributes), form = form
    )
    if (!identical(new, layout)) {
      layout <<- new
      joined <<- make(vector_function(f, new))
    }
    given <- arguments[1L]
    arguments[[1L]] <- as.double(unlist(x, use.names = FALSE))
    result <- joined(arguments)
    if (is.null(result)) {
      return(NULL)
    }
    found <- finish(result, layout)
    if (is.null(found)) {
      left <<- TRUE
      layout <<- NULL
      return(general(c(given, arguments[-1L])))
    }
    found
  }
  last <- function(what) attr(if (is.null(layout)) general else joined, what)()
  structure(evaluate, explain = function() last("explain"), watched = function() last("watched"))
}

gradient_in_layout <- function(result, layout) {
  if (length(result$value) == 1L) {
    derivative <- arranged(as.vector(result$derivative), layout)
    list(value = drop_vector(result$value), derivative = derivative, arranged = TRUE)
  }
}

# `f` as a function of one vector. Its environment is below that of `f`, so that it counts as the user's code and is
# adapted.
vector_function <- function(f, layout) {
  home <- list2env(list(.f = f, .arranged = arranged, .layout = layout), parent = environment(f) %||% globalenv())
  rlang::new_function(formals(function(v, ...) NULL), quote(.f(.arranged(v, .layout), ...)), home)
}

holds_lists <- function(x) {
  for (part in x) if (is.list(part)) return(!is.object(x))
  FALSE
}

are_vectors <- function(x) {
  if (is.object(x) || length(x) == 0L) {
    return(FALSE)
  }
  for (part in x) if (!is.double(part) || is.object(part) || length(part) == 0L) return(FALSE)
  TRUE
}

rebuilt_parts <- function(parts, layout) {
  names(parts) <- layout$names
  if (is.null(layout$form)) parts else rebuilt(layout$form, parts)
}

# The parts of a vector, an R vector or a tensor, as a list in the form of `layout`.
arranged <- function(v, layout, u = NULL) {
  ends <- cumsum(layout$sizes)
  if (!is.null(u) && length(ends) == 1L) {
    v <- c(v, u)[order(c(which(!layout$random), which(layout$random)))]
    u <- NULL
  }
  halves <- list(v, u)
  whole <- if (is.null(u)) sum(layout$sizes) else c(sum(!layout$random), sum(layout$random))
  starts <- c(0, 0)
  found <- vector("list", length(ends))
  for (i in seq_along(ends)) {
    size <- layout$sizes[i]
    half <- 1L + (!is.null(u) && layout$random[ends[i]])
    part <- halves[[half]]
    if (size < whole[half]) part <- part[starts[half] + seq_len(size)]
    starts[half] <- starts[half] + size
    attributes <- layout$attributes[[i]]
    if (is_tensor(v)) {
      if (!is.null(attributes$dim)) part <- op_transpose(op_reshape(part, rev(attributes$dim)))
      if (!is.null(attributes$names)) part <- with_names(part, attributes$names)
      if (!is.null(attributes$dimnames)) part <- with_dimnames(part, attributes$dimnames)
    } else if (!is.null(attributes)) {
      attributes(part) <- attributes
    }
    found[[i]] <- part
  }
  rebuilt_parts(found, layout)
}

# A gradient in the form of the parameters; for several values, the matrix of their gradients.
derivative_like <- function(result, x) {
  if (length(result$value) == 1) {
    like(result$derivative, x)
  } else {
    flat_matrix(result$derivative, x)
  }
}

#' @export
format.gradops_objective <- function(x, ...) {
  evaluations <- x$evaluations()
  c(
    sprintf(
      "<objective%s, evaluated %d time%s>",
      if (isTRUE(attr(x, "jit"))) ", compiled" else "", evaluations, if (evaluations == 1) "" else "s"
    ),
    "fn(x, ...)   value",
    "gr(x, ...)   gradient, from the same evaluation",
    "he(x, ...)   Hessian",
    "nlm(x, ...)  value with its gradient as an attribute, for nlm()",
    if (isTRUE(attr(x, "jit"))) attr(x, "explain")()
  )
}

#' @export
print.gradops_objective <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}
