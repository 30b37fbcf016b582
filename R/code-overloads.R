# Overloads of base R's functions in adapted code (code-adapted.R): gradops' namesakes, also in package code that does
# not import them; the functions in this file, which would slow down R's own code if they were visible everywhere; and
# functions of base R that only call others, adapted like the user's functions.

# Bindings of every overlay: functions that syntax calls without a name, and functions that rewritten code calls.
overlay_functions <- function() {
  list(
    `[<-` = fill_part, `[[<-` = fill_element, `@<-` = assign_slot,
    .gradops_condition = condition, .gradops_sequence = elements,
    .gradops_function = found_function, .gradops_called = called_function, .gradops_at = at_operator,
    .gradops_places = places_where, .gradops_dispatched = dispatched, .gradops_said = said,
    .Call = call_overload, .C = c_overload, .Fortran = fortran_overload,
    `:` = colon_overload, .gradops_log = log_overload, .gradops_part = part_at, .gradops_element = item_at
  )
}

only_adapted <- base::c(
  "append", "replace", "Reduce", "Filter", "Find", "Position", "proportions", "prop.table", "marginSums",
  "margin.table", "simplify2array", "cov.wt", "ARMAacf",
  "setdiff", "union", "intersect", "setequal", "structure", "modifyList", "bw.nrd0", "bw.nrd",
  # summaries and tests
  "fivenum", "boxplot.stats", "medpolish", "addmargins", "p.adjust", "Box.test", "binom.test", "chisq.test",
  "fisher.test", "mantelhaen.test", "mcnemar.test", "poisson.test", "prop.test", "power.prop.test", "power.t.test",
  # series
  "acf2AR", "ar", "arima.sim", "decompose", "HoltWinters", "kernapply.vector", "kernel", "smoothEnds", "spec.ar",
  "spec.pgram", "spectrum",
  # least squares and matrices
  ".lm.fit", "lsfit", "hat", "poly", "polym", "cancor", "cmdscale", "predLoess"
)

# Default methods of R's generics that are adapted: they then take tensors, or the error names the compiled code that
# does not.
adapted_methods <- base::c(
  prcomp = "default", princomp = "default", density = "default", kappa = "default", kernapply = "default",
  t.test = "default", var.test = "default", bartlett.test = "default", cor.test = "default", qqnorm = "default",
  ar.yw = "default", as.dist = "default", na.fail = "default", na.omit = "default", predict = "loess"
)

# Default methods that are written here.
own_methods <- function() {
  list(as.dist.default = as_dist_overload, na.fail.default = na_fail_overload, na.omit.default = na_omit_overload)
}

# The overloads by name, for code where the name means base R's function.
overloads <- function() {
  state$overloads %||% make_overloads()
}

make_overloads <- function() {
  namesakes <- all_namesakes()
  known <- c(
    questions(namesakes),
    list(
      stopifnot = stopifnot_overload,
      match = match_overload, `%in%` = in_overload, findInterval = find_interval_overload, cut = cut_overload,
      rank = ordered_overload(base::rank, "rank"), is.unsorted = ordered_overload(base::is.unsorted, "is.unsorted"),
      lapply = adapted_function(base::lapply, "FUN"), sapply = adapted_function(sapply, "FUN"),
      vapply = adapted_function(vapply, "FUN"), mapply = adapted_function(mapply, "FUN"),
      apply = adapted_function(apply, "FUN"), sweep = adapted_function(sweep, "FUN"),
      outer = adapted_function(outer, "FUN"), Map = adapted_function(base::Map, "f"),
      replicate = replicate_overload, diffinv = diffinv_overload,
      ARMAtoMA = arma_to_ma_overload, polyroot = polyroot_overload, La.svd = la_svd_overload,
      pmax.int = extremes_overload(pmax, base::pmax.int), pmin.int = extremes_overload(pmin, base::pmin.int),
      ts = ts_overload, acf = acf_overload, pacf = pacf_overload, ccf = ccf_overload,
      do.call = do_call_overload, match.fun = match_fun_overload, eval = eval_overload,
      quantile = quantile_overload, eval.parent = eval_parent_overload, evalq = evalq_overload, with = with_overload,
      environment = environment_overload, parent.env = parent_env_overload, relist = relist_overload,
      rbind = rbind_overload, as.matrix = as_matrix_overload, xpdrows.data.frame = expanded_rows,
      det = det_overload, diag = diag_overload, Diagonal = diagonal_overload, bandSparse = band_overload,
      complete.cases = complete_cases_overload, rle = rle_overload, `split<-` = assign_split_overload,
      qr.qy = by_factor_overload(base::qr.qy), qr.qty = by_factor_overload(base::qr.qty, TRUE),
      sparseMatrix = sparse_matrix_overload, bdiag = bdiag_overload,
      seq = seq_overload(base::seq), seq.int = seq_overload(base::seq.int)
    ),
    lapply(stats::setNames(nm = summary_group), summary_overload),
    asking_overloads(),
    counted_overloads(namesakes),
    tidyverse_overloads(),
    refusing_overloads()
  )
  state$overloads <- list2env(namesakes, parent = emptyenv()) # which find methods where R would
  list2env(Map(from_callers, known, names(known)), state$overloads)
  for (name in only_adapted) { # with overloads of their own
    eval(bquote(delayedAssign(.(name), copy_of(get(.(name), asNamespace("stats"))), assign.env = state$overloads)))
  }
  state$overloads
}

# The overload of an S3 generic, made to find methods where R would. `with()` does that already.
from_callers <- function(overload, name) {
  package <- package_of_r(name)
  is_generic <- !is.null(package) && is_s3_generic(get(name, asNamespace(package)), name)
  if (!is_generic || name == "with" || is_namesake(name, overload)) overload else dispatching(overload, name, package)
}

all_namesakes <- function() {
  here <- topenv()
  names <- intersect(getNamespaceExports(here), base::c(names(baseenv()), getNamespaceExports("stats")))
  lapply(stats::setNames(nm = names), get, envir = here)
}

# Functions ------------------------------------------------------------------------------------------------------------

# `original` with its function argument `name` adapted; the function may come out of a list.
adapted_function <- function(original, name) {
  converting(original, name, found_function, function(given) bquote(match.fun(.(given)))) # in the frame of the overload
}

# `original` with `convert` applied to some of its arguments.
converting <- function(original, names, convert, taken = identity) {
  overload <- function() NULL
  formals(overload) <- formals(args(original))
  arguments <- names(formals(overload))
  passed <- lapply(arguments, as.name)
  names(passed) <- ifelse(arguments == "...", "", arguments)
  if (is.primitive(original)) names(passed) <- NULL
  converted <- lapply(lapply(names, as.name), function(given) {
    bquote(if (!missing(.(given))) .(given) <- .gradops_converted(.(taken(given))))
  })
  body(overload) <- bquote({
    ..(converted)
    .gradops_original(..(passed))
  }, splice = TRUE)
  environment(overload) <- list2env(
    list(.gradops_original = original, .gradops_converted = convert), parent = baseenv()
  )
  overload
}

# A function of R's Summary group dispatches on its first argument only; this one also finds a tensor among the others.
summary_overload <- function(name) {
  of_tensors <- Summary_tensor
  environment(of_tensors) <- list2env(list(.Generic = name), parent = topenv())
  own <- list2env(stats::setNames(list(get(name, baseenv()), of_tensors), base::c(name, ".gradops_of_tensors")))
  eval(bquote(function(..., na.rm = FALSE) {
    if (...length() > 1L && !is.object(..1) && any_tensor(...)) {
      .gradops_of_tensors(..., na.rm = na.rm)
    } else {
      .(as.name(name))(..., na.rm = na.rm)
    }
  }), list2env(list(any_tensor = any_tensor), parent = own))
}

# In RTMB's scripts `diag(x)` of one parameter is a 1 x 1 matrix. For a report the script runs on plain numbers, so a
# fraction is taken for a parameter: an identity matrix has an integer size.
diag_overload <- function(x, ...) {
  if (missing(x)) { # R's default is 1
    return(base::diag(...))
  }
  is_alone <- ...length() == 0L && !is.object(x) && is.numeric(x) && length(x) == 1L
  if (is_alone && has_rtmb_names() && isTRUE(x != round(x))) base::matrix(x) else diag(x, ...)
}

# R's function looks at the numbers in compiled code.
complete_cases_overload <- function(...) {
  if (!any_tensor(...)) {
    return(stats::complete.cases(...))
  }
  parts <- Filter(Negate(is.null), list(...))
  complete <- lapply(parts, function(x) if (length(dim(x)) > 1L) rowSums(is.na(x)) == 0 else !is.na(x))
  seen(Reduce(`&`, complete), "complete.cases")
}

na_fail_overload <- function(object, ...) {
  if (!any_tensor(object)) {
    return(utils::getS3method("na.fail", "default")(object, ...))
  }
  if (!all(complete_cases_overload(object))) unsupported("object", "must have no missing values.")
  object
}

na_omit_overload <- function(object, ...) {
  if (!is.environment(object) || !is_tensor(object)) {
    return(utils::getS3method("na.omit", "default")(object, ...))
  }
  rows <- which(complete_cases_overload(object))
  time <- time_of(object)
  left <- take_rows(drop_time(object), rows)
  if (is.null(time)) {
    return(left)
  }
  if (any(diff(rows) != 1L)) unsupported("object", "must have no missing values within: it is a time series.")
  ends <- time[1L] + (range(rows) - 1) / time[3L]
  with_time(left, base::c(ends, time[3L]))
}

# The values are the tensor's own, at the end of each run.
rle_overload <- function(x) {
  found <- base::rle(seen(x, "rle"))
  if (any_tensor(x)) found$values <- x[cumsum(found$lengths)]
  found
}

assign_split_overload <- function(x, f, drop = FALSE, ..., value) {
  if (!any_tensor(x) && !holds_tensors_within(as.list(value))) {
    return(base::`split<-`(x, f, drop, ..., value = value))
  }
  copy_of(base::`split<-.default`)(x, f, drop, ..., value = value)
}

as_dist_overload <- function(m, ...) {
  if (!any_tensor(m)) {
    return(utils::getS3method("as.dist", "default")(m, ...))
  }
  if (!is.null(attr(m, "gradops_dist"))) {
    return(m)
  }
  distance <- m[base::lower.tri(base::diag(nrow(m)))]
  attr(distance, "gradops_dist") <- nrow(m)
  distance
}

# `qr.qy()` or `qr.qty()`: the product with the full matrix Q.
by_factor_overload <- function(original, transposed = FALSE) {
  force(original)
  force(transposed)
  function(qr, y) {
    if (inherits(class_among_factors(qr, y), "gradops_tensor")) times_factor(qr, y, transposed) else original(qr, y)
  }
}

# R dispatches on `x`, not on `probs`.
quantile_overload <- function(x, ...) {
  if (!is.object(x) && any_tensor(...)) quantile_tensor(x, ...) else stats::quantile(x, ...)
}

# R dispatches on the number, not on the base.
log_overload <- function(...) {
  log <- get("log", parent.frame(), mode = "function") # which the user may have written
  if (!identical(log, base::log)) {
    log(...)
  } else if (finds_method(parent.frame(), base::c("log", "Math"), dispatched_on("x", ...))) {
    called_from(parent.frame(), "log", "base")(...)
  } else {
    log_to_base(...)
  }
}

log_to_base <- function(x, base) {
  if (!is.object(x) && is.environment(base) && is_tensor(base)) log(x) / log(base) else log(x, base)
}

# R takes the exponential of a log determinant, which has no derivative where the matrix is singular.
det_overload <- function(x, ...) {
  if (!is.environment(x) || !is_tensor(x)) {
    return(base::det(x, ...))
  }
  (if (!is.null(state$scalars)) number_of_determinant(x)) %||% op_det(x)
}

extremes_overload <- function(of_tensors, original) {
  force(of_tensors)
  force(original)
  function(..., na.rm = FALSE) if (any_tensor(...)) of_tensors(..., na.rm = na.rm) else original(..., na.rm = na.rm)
}

la_svd_overload <- function(x, nu = min(dim(x)), nv = min(dim(x))) {
  if (!is.environment(x) || !is_tensor(x)) {
    return(base::La.svd(x, nu, nv))
  }
  found <- svd_tensor(x, nu, nv)
  c(found[base::c("d", if (nu > 0) "u")], if (nv > 0) list(vt = t(found$v)))
}

replicate_overload <- function(n, expr, simplify = "array") {
  f <- eval.parent(substitute(function(...) expr))
  sapply(integer(whole_numbers(n, "replicate")), f, simplify = if (isFALSE(simplify)) FALSE else TRUE)
}

# Cumulative sums, the inverse of `diff()`.
diffinv_overload <- function(x, lag = 1L, differences = 1L, xi, ...) {
  if (missing(xi)) xi <- NULL
  if (!any_tensor(x, xi)) {
    return(if (is.null(xi)) stats::diffinv(x, lag, differences, ...) else stats::diffinv(x, lag, differences, xi, ...))
  }
  if (length(dim(x)) > 1L) unsupported("x", "must be a vector where it or `xi` is a tensor.")
  if (!is.null(xi)) { # the result is linear in `xi` too
    unit <- base::diag(length(xi))
    none <- numeric(length(x))
    of_unit <- function(k) stats::diffinv(none, lag, differences, unit[k, ])
    starts <- base::vapply(seq_along(xi), of_unit, numeric(length(x) + length(xi)))
    return(diffinv_overload(x, lag, differences) + flat(matmul_tensor(starts, flat(xi))))
  }
  if (!any_tensor(x)) {
    return(stats::diffinv(x, lag, differences))
  }
  for (i in seq_len(differences)) {
    n <- length(x)
    sums <- base::outer(seq_len(n + lag) - lag, seq_len(n), function(i, j) (j <= i & (i - j) %% lag == 0) + 0)
    x <- flat(matmul_tensor(sums, flat(x)))
  }
  x
}

# The recursion for the weights of past innovations.
arma_to_ma_overload <- function(ar = numeric(), ma = numeric(), lag.max) {
  if (!any_tensor(ar, ma)) {
    return(stats::ARMAtoMA(ar, ma, lag.max))
  }
  weights <- list()
  for (j in seq_len(whole_numbers(lag.max, "ARMAtoMA"))) {
    weight <- if (j <= length(ma)) ma[j] else 0
    for (i in seq_len(min(j, length(ar)))) weight <- weight + ar[i] * (if (i == j) 1 else weights[[j - i]])
    weights[[j]] <- weight
  }
  do.call(c, weights)
}

# R's roots after four Newton steps. Each step doubles the order of derivatives that are correct, from 1 to 15.
polyroot_overload <- function(z) {
  if (!any_tensor(z)) {
    return(base::polyroot(z))
  }
  known <- known_values(z)
  if (is.null(known)) needs_values("`polyroot()`", "Compile what comes after it.")
  roots <- as.complex(op_convert_to_tensor(array_of(base::polyroot(as.vector(known)))))
  for (step in 1:4) {
    value <- slope <- 0i
    for (k in rev(seq_along(known))) {
      slope <- slope * roots + value
      value <- value * roots + as.complex(z[k])
    }
    roots <- roots - value / slope
  }
  roots
}

do_call_overload <- function(what, args, quote = FALSE, envir = parent.frame()) {
  force(envir)
  if (is.character(what) && length(what) == 1L) {
    found <- get(what, envir = envir, mode = "function")
    if (!is_translated(found, what)) {
      return(base::do.call(what, args, quote, envir)) # call by name, as the function may look at its call
    }
    what <- translated(found, what)
  }
  base::do.call(found_function(what), args, quote, envir)
}

match_fun_overload <- function(FUN, descend = TRUE) {
  found_function(base::match.fun(FUN, descend), if (is.character(FUN)) FUN else "")
}

# The environment of the user's function instead of its adapted copy's.
environment_overload <- function(fun = NULL) {
  if (is.null(fun)) {
    return(parent.frame())
  }
  env <- base::environment(fun)
  is_front <- is.environment(env) && exists(".gradops_front", envir = env, inherits = FALSE)
  if (is_front) parent.env(env) else env
}

# Return a function's own environment, where the frames of its adapted copy have the overlay as parent.
parent_env_overload <- function(env) {
  parent <- base::parent.env(env)
  if (exists(".gradops_front", envir = parent, inherits = FALSE)) base::parent.env(parent) else parent
}

# Code that is made at run time, for example by `parse()`, may contain names that the adapted function did not have.
eval_overload <- function(expr, envir = parent.frame(), enclos = parent.frame()) {
  force(enclos)
  code <- expr
  home <- if (is.environment(envir)) envir else if (is.list(envir) || is.pairlist(envir)) enclos
  front <- if (is.language(code) && is.environment(home)) get0(".gradops_front", envir = home)
  elsewhere <- is.null(front) && is.language(code) && is.environment(envir)
  if (elsewhere) front <- overlay_of(envir)
  if (!is.null(front)) {
    parts <- if (is.expression(code)) as.list(code) else list(code)
    bind_named(front, parent.env(front), base::unlist(lapply(parts, words_of)))
    parts <- lapply(parts, rewritten, base::unlist(lapply(parts, variables_of)))
    if (elsewhere) parts <- lapply(parts, with_functions_of, front)
    code <- if (is.expression(code)) as.expression(parts) else parts[[1]]
  }
  base::eval(code, envir, enclos)
}

eval_parent_overload <- function(expr, n = 1) {
  frame <- parent.frame(n + 1)
  eval_overload(expr, frame)
}

# Rewrite `code` for an environment that `front` does not shadow: put the functions of `front` in place of their names.
with_functions_of <- function(code, front) {
  if (!is.call(code)) {
    return(code)
  }
  if (is_call_of(code, assignments) && is_call_of(code[[2]], base::c("[", "[["))) { # R looks for `[<-` by name
    part <- code[[2]]
    filler <- as.name(paste0(as.character(part[[1]]), "<-"))
    filled <- as.call(base::c(filler, as.list(part)[-1], list(value = code[[3]])))
    if (is.symbol(part[[2]])) code[2:3] <- list(part[[2]], filled)
  }
  for (i in seq_along(code)) {
    if (!rlang::is_missing(code[[i]]) && is.call(code[[i]])) code[[i]] <- with_functions_of(code[[i]], front)
  }
  head <- if (is.symbol(code[[1]])) get0(as.character(code[[1]]), envir = front, mode = "function", inherits = FALSE)
  if (!is.null(head)) code[[1]] <- head
  code
}

# `expr` was adapted for the function in which it is written; eval_overload() adapts the user's original code for
# `envir`.
evalq_overload <- function(expr, envir = parent.frame(), enclos = parent.frame()) {
  force(enclos)
  eval_overload(as_written(substitute(expr)), envir, enclos)
}

with_overload <- function(data, expr, ...) {
  if (is.environment(data) && !is.object(data)) {
    return(eval_overload(as_written(substitute(expr)), data))
  }
  call <- sys.call()
  call[[1]] <- base::with
  eval.parent(call)
}

# `relist()`: the parts of a tensor in the form of `skeleton`.
relist_overload <- function(flesh, skeleton = attr(flesh, "skeleton")) {
  if (!is.environment(flesh) || !is_tensor(flesh)) {
    return(utils::relist(flesh, skeleton))
  }
  used <- 0L
  part_like <- function(form) {
    if (is.list(form)) {
      form[] <- lapply(form, part_like)
      return(form)
    }
    if (!is.numeric(form)) unsupported("skeleton", sprintf("must hold only numbers; got %s.", friendly(form)))
    part <- flesh[used + seq_along(form)]
    used <<- used + length(form)
    if (is.null(dim(form))) with_names(part, names(form)) else with_dimnames(fill(part, dim(form)), dimnames(form))
  }
  part_like(skeleton)
}

# Data frames ----------------------------------------------------------------------------------------------------------

# Overloads for data frames, whose columns may be tensors.
rbind_overload <- function(..., deparse.level = 1) {
  parts <- Filter(Negate(is.null), list(...))
  held <- unique(unlist(lapply(parts, tensor_columns)))
  if (length(held) == 0L) {
    return(base::rbind(..., deparse.level = deparse.level))
  }
  if (!all(vapply(parts, function(part) is.data.frame(part) && all(held %in% names(part)), NA))) {
    abort(
      "`rbind()` needs data frames with the same columns if a column is a tensor.",
      class = c("gradops_error_type", "gradops_error"), call = NULL
    )
  }
  whole <- do.call(base::rbind, lapply(parts, function(part) {
    part[held] <- 0
    part
  }))
  for (name in held) whole[[name]] <- joined(lapply(parts, `[[`, name))
  whole
}

as_matrix_overload <- function(x, ...) {
  if (length(tensor_columns(x)) > 0L) do.call(cbind, as.list(x)) else base::as.matrix(x, ...)
}

# `d[n + 1, ] <- value` calls R's function, which removes each column's class. A tensor cannot lose its class.
expanded_rows <- function(x, old.rows, new.rows) { # nolint: object_name_linter. R's names.
  held <- which(vapply(x, is_tensor, NA)) # R has made the data frame a list here
  columns <- x[held]
  x[held] <- list(0)
  x <- base::xpdrows.data.frame(x, old.rows, new.rows)
  x[held] <- lapply(columns, function(column) c(column, rep(NA, length(new.rows))))
  x
}

tensor_columns <- function(x) {
  if (is.data.frame(x)) names(x)[vapply(x, is_tensor, NA)]
}

# Other packages -------------------------------------------------------------------------------------------------------

# purrr's functions that return R's vectors in compiled code; `map_vec()` and its relatives join tensors by vctrs
# (methods-vctrs.R).
tidyverse_overloads <- function() {
  find <- function(name) get(name, envir = asNamespace("purrr"))
  decide <- list(lgl = truth, int = whole_numbers)
  of_type <- function(mapper, type) {
    force(mapper)
    force(type)
    function(...) {
      values <- translated(find(mapper), mapper)(...)
      if (holds_tensors(values)) {
        if (type == "dbl") {
          return(find("list_simplify")(values))
        }
        values[] <- lapply(values, decide[[type]], paste0(mapper, "_", type))
      }
      find(paste0("map_", type))(values, identity)
    }
  }
  mappers <- base::c("map", "map2", "imap", "pmap")
  of_all <- function(type) lapply(stats::setNames(mappers, paste0(mappers, "_", type)), of_type, type)
  base::c(of_all("dbl"), of_all("lgl"), of_all("int"))
}

# Functions of mvtnorm whose compiled code integrates with random points, so they cannot be differentiated.
refusing_overloads <- function() {
  refusing <- function(name) {
    force(name)
    function(...) {
      if (holds_tensors_within(list(...))) {
        unsupported(
          names(Filter(holds_tensors_within, lapply(list(...), list)))[1L] %||% "x",
          sprintf("is a tensor: `%s()` integrates with random points and has no derivative.", name),
          "Define its gradient with `r_function()`; for two variables, `integrate()` a `dnorm()` times a `pnorm()`."
        )
      }
      get(name, envir = asNamespace("mvtnorm"))(...)
    }
  }
  lapply(stats::setNames(nm = base::c("pmvnorm", "qmvnorm", "pmvt", "qmvt")), refusing)
}

# Questions -----------------------------------------------------------------------------------------------------------

match_overload <- function(x, table, nomatch = NA_integer_, incomparables = NULL) {
  found_in(x, table, nomatch, incomparables, "match")
}

in_overload <- function(x, table) {
  found_in(x, table, 0L, NULL, "%in%") > 0L
}

found_in <- function(x, table, nomatch, incomparables, what) {
  places <- decided_place(seen_in_list(x, what), table, what)
  base::match(places, decided_place(seen_in_list(table, what), x, what), nomatch, incomparables)
}

seen_in_list <- function(x, what) {
  if (is.list(x)) seen(x, what) else x
}

find_interval_overload <- function(x, vec, ...) {
  decided_order(vec, "findInterval")
  base::findInterval(decided_place(x, vec, "findInterval"), decided_place(vec, x, "findInterval"), ...)
}

# The names of the intervals depend on the values of the breaks.
cut_overload <- function(x, breaks, ...) {
  if (length(breaks) == 1L) {
    base::cut(seen(x, "cut"), whole_numbers(breaks, "cut"), ...)
  } else {
    base::cut(decided_place(x, breaks, "cut"), seen(breaks, "cut"), ...)
  }
}

ordered_overload <- function(original, what) {
  force(original)
  force(what)
  function(x, ...) original(decided_order(x, what), ...)
}

# Arguments that are counts, in functions that do not dispatch on them. Some of these functions would take a tensor as
# an empty vector.
counts <- list(
  seq_len = "length.out", numeric = "length", logical = "length", character = "length", integer = "length",
  double = "length", vector = "length", rep_len = "length.out", rep.int = "times", tabulate = base::c("bin", "nbins")
)

counted_overloads <- function(namesakes) {
  counted <- function(name) {
    converting(get(name, baseenv()), counts[[name]], function(x) whole_numbers(x, name))
  }
  in_dots <- function(name) {
    original <- namesakes[[name]] %||% get(name, asNamespace("utils"))
    function(x, ...) {
      if (any_tensor(...)) {
        do.call(original, c(list(x), lapply(list(...), whole_numbers, name)), quote = TRUE)
      } else {
        original(x, ...)
      }
    }
  }
  base::c(
    lapply(stats::setNames(nm = names(counts)), counted),
    lapply(stats::setNames(nm = c("rep", "head", "tail", "diff")), in_dots), combn = combn_overload
  )
}

# A single number `n` stands for `seq_len(n)`.
combn_overload <- function(x, m, FUN = NULL, simplify = TRUE, ...) {
  m <- whole_numbers(m, "combn")
  is_of_tensor <- is.environment(x) && length(x) > 1L
  if (!is_of_tensor) x <- whole_numbers(x, "combn")
  if (is.null(FUN) && !is_of_tensor) {
    return(utils::combn(x, m, simplify = simplify))
  }
  parts <- utils::combn(if (is_of_tensor) length(x) else x, m, simplify = FALSE)
  if (is_of_tensor) parts <- lapply(parts, function(i) x[i])
  if (!is.null(FUN)) parts <- lapply(parts, found_function(match.fun(FUN)), ...)
  if (simplify) overloads()$simplify2array(parts) else parts
}

seq_overload <- function(original) {
  force(original)
  function(...) if (any_tensor(...)) seq_tensors(...) else original(...)
}

# base::stopifnot() takes R's logicals only.
stopifnot_overload <- function(..., exprs, exprObject, local = TRUE) {
  if (!missing(exprs) || !missing(exprObject)) {
    call <- sys.call()
    call[[1]] <- base::stopifnot
    return(eval(call, parent.frame()))
  }
  for (i in seq_len(...length())) {
    value <- ...elt(i)
    code <- sys.call()[[i + 1L]]
    if (is.object(value) && is_any_tensor(value)) value <- decided(value, "stopifnot", code)
    if (!(is.logical(value) && !anyNA(value) && all(value))) {
      message <- not_true(value, code, names(sys.call())[i + 1L])
      stop(simpleError(message, if (sys.parent() > 0L) sys.call(sys.parent())))
    }
  }
  invisible()
}

not_true <- function(value, code, name) {
  if (!is.null(name) && nzchar(name)) {
    return(name)
  }
  many <- is.logical(value) && length(value) > 1L && !anyNA(value)
  paste(deparse(as_written(code), nlines = 1L)[1L], if (many) "are not all TRUE" else "is not TRUE")
}
