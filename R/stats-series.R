# Time series in expressions with tensors. If the two operands of an operator have different methods, R before 4.3 uses
# neither (see methods-shared-operators.R). So while a function is differentiated or compiled, series share the method
# of tensors, which calls that of stats if no operand is a tensor.

# TRUE if R needs this, so that `leave_to_stats()` must undo it.
share_with_series <- function() {
  if (length(shared_operators) == 0L) {
    return(FALSE)
  }
  if (is.null(state$series)) {
    names <- paste0(names(shared_operators), ".ts")
    for (operator in names(shared_operators)) their_operators[[paste0(operator, ".ts")]] <- series_operator(operator)
    state$series <- stats::setNames(as.list(shared_operators)[names(shared_operators)], names)
  }
  list2env(state$series, s3_methods())
  TRUE
}

leave_to_stats <- function() {
  rm(list = names(state$series), envir = s3_methods())
}

s3_methods <- function() {
  get(".__S3MethodsTable__.", envir = baseenv())
}

# The operator of stats, called without the shared method.
series_operator <- function(operator) {
  force(operator)
  function(e1, e2) {
    leave_to_stats()
    on.exit(share_with_series())
    f <- get(operator, baseenv())
    if (missing(e2)) f(e1) else f(e1, e2)
  }
}

# An operator on series, and on tensors that come from series and have the same length: as in stats, it applies to the
# times that both operands have. Other functions, also gradops functions that use operators, go by position; as in R
# their results are series if an argument is one.
operate_in_time <- function(operator, e1, e2, call, caller) {
  if (identical(topenv(caller), topenv())) {
    return(operate_by_position(operator, unclass_series(e1), unclass_series(e2), call))
  }
  times <- list(time_of(e1), time_of(e2))
  known <- Filter(Negate(is.null), times)
  time <- if (length(known) == 2L) shared_time(known, operator, call) else known[[1L]]
  parts <- Map(time_window, list(e1, e2), times, list(time))
  with_time(operate_by_position(operator, parts[[1L]], parts[[2L]], call), time)
}

has_time <- function(x) {
  if (is.environment(x)) is.double(attr(x, "gradops_time", exact = TRUE)) else is.object(x) && inherits(x, "ts")
}

# Start, end and frequency.
time_of <- function(x) {
  if (has_time(x)) if (is.environment(x)) attr(x, "gradops_time", exact = TRUE) else attr(x, "tsp")
}

with_time <- function(x, time) {
  if (is.null(time)) {
    x
  } else if (is_tensor(x)) {
    if (inside() > 0) state$in_time <- TRUE
    attr(x, "gradops_time") <- time
    x
  } else if (is.double(time)) { # a comparison
    stats::ts(x, time[1L], frequency = time[3L])
  } else {
    x
  }
}

drop_time <- function(x) {
  if (!is.environment(x)) {
    return(unclass_series(x))
  }
  x <- another_handle(x)
  attr(x, "gradops_time") <- NULL
  x
}

# The times that two series have in common.
shared_time <- function(times, operator, call) {
  frequency <- times[[1L]][3L]
  if (abs(frequency - times[[2L]][3L]) > getOption("ts.eps")) not_in_time(operator, "their frequencies differ", call)
  time <- c(max(times[[1L]][1L], times[[2L]][1L]), min(times[[1L]][2L], times[[2L]][2L]), frequency)
  if (time[1L] > time[2L] + getOption("ts.eps") / frequency) not_in_time(operator, "they have no time in common", call)
  time
}

# The values from the start to the end of `time`.
time_window <- function(x, own, time) {
  x <- unclass_series(x)
  if (is.null(own) || same_time(own, time)) {
    return(x)
  }
  take_rows(x, round((time[1L] - own[1L]) * own[3L]) + seq_len(round((time[2L] - time[1L]) * own[3L]) + 1))
}

unclass_series <- function(x) {
  if (!is.environment(x) && has_time(x)) {
    attr(x, "tsp") <- NULL
    x <- unclass(x)
  }
  x
}

same_time <- function(x, y) {
  all(abs(x - y) < getOption("ts.eps"))
}

not_in_time <- function(operator, why, call) {
  abort(
    c(
      sprintf("`%s` is not defined for these series and tensors: %s.", operator, why),
      i = "Align the series before: `ts.intersect(y, lag(y, -1))`; or use only the values, `as.numeric(y)`."
    ),
    class = c("gradops_error_argument", "gradops_error"), call = call
  )
}

# Bind columns with the same times. R fills other times with NA, which tensors do not have, so these are an error.
bind_in_time <- function(parts, time, call = parent.frame()) {
  n <- round((time[2L] - time[1L]) * time[3L]) + 1
  fits <- vapply(parts, function(part) {
    rows <- shape_of(part)
    if (has_time(part)) same_time(time_of(part), time) else length(rows) == 1L && rows %in% 0:1 || rows[1L] == n
  }, NA)
  if (!all(fits)) not_in_time("cbind()", "their times differ", call)
  with_time(bind(lapply(parts, unclass_series), 2L, call), time)
}

# Functions of stats that look at the time of a series, as methods of tensors: they get a series of the row numbers.
row_method <- function(generic) {
  f <- get(generic, asNamespace("stats"))
  function(x, ...) f(rows_of(x), ...)
}

rows_of <- function(x) {
  rows <- seq_len(dim(x)[1L] %||% length(x))
  time <- time_of(x)
  if (is.null(time)) stats::ts(rows) else stats::ts(rows, time[1L], frequency = time[3L])
}

# Functions that return a part of a series, or change its time.
series_method <- function(generic) {
  f <- get(generic, asNamespace("stats"))
  function(x, ...) {
    rows <- f(rows_of(x), ...)
    if (anyNA(rows)) unsupported("extend", "must be FALSE: there are no values outside of the series.")
    all <- length(rows) == (dim(x)[1L] %||% length(x))
    if (!all && length(dim(x)) > 2L) unsupported("x", "must be a vector or a matrix, as time series are.")
    with_time(if (all) another_handle(x) else take_rows(drop_time(x), as.vector(rows)), attr(rows, "tsp"))
  }
}

as_ts_tensor <- function(x, ...) if (has_time(x)) x else ts_overload(x)

# `ts()` in adapted code (code-overloads.R).
ts_overload <- function(data = NA, ...) {
  if (!is.environment(data) || !is_tensor(data)) {
    return(stats::ts(data, ...))
  }
  rows <- stats::ts(seq_len(dim(data)[1L] %||% length(data)), ...)
  with_time(take_rows(drop_time(data), as.vector(rows)), attr(rows, "tsp"))
}

# R's result for numbers of this form, with the tensor's correlations in it; plots are not available.
acf_overload <- function(
  x, lag.max = NULL, type = c("correlation", "covariance", "partial"), plot = TRUE, # nolint: object_name_linter.
  na.action = NULL, demean = TRUE, ...
) {
  type <- match.arg(type)
  if (!any_tensor(x)) {
    call <- sys.call()
    call[[1L]] <- stats::acf
    return(eval.parent(call))
  }
  rows <- rows_of(x)
  series <- as_column(drop_time(x))
  if (type == "partial" && ncol(series) > 1L) unsupported("x", "must be one series for partial correlations.")
  form <- replicate(ncol(series), as.vector(rows))
  form <- stats::ts(form, stats::start(rows), frequency = stats::frequency(rows))
  found <- stats::acf(if (ncol(series) > 1L) form else form[, 1L], lag.max, type, FALSE)
  lags <- dim(found$acf)[1L] - (type != "partial")
  found$acf <- call_core("interop.r.stats.autocovariances", series, lags, type, is_set(demean))
  found$series <- deparse1(as_written(substitute(x)))
  found
}

pacf_overload <- function(x, lag.max = NULL, ...) { # nolint: object_name_linter. R's name.
  if (any_tensor(x)) acf_overload(x, lag.max, "partial") else stats::pacf(x, lag.max, ...)
}

ccf_overload <- function(x, y, lag.max = NULL, type = c("correlation", "covariance"), ...) {
  if (!any_tensor(x, y)) {
    return(stats::ccf(x, y, lag.max, type, ...))
  }
  found <- acf_overload(cbind(x, y), lag.max, match.arg(type))
  both <- function(of) c(rev(of[-1L, 2L, 1L]), of[, 1L, 2L])
  found$lag <- array(both(found$lag), c(2L * dim(found$lag)[1L] - 1L, 1L, 1L))
  found$acf <- array(both(found$acf), dim(found$lag))
  found
}
