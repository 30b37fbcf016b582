# The time that a call spends in R's code, in Python's, and in crossing between them.

#' Profile a call in R and in Python
#'
#' A call such as `gradient(f, x)` goes back and forth between R and Python, and the profiler of each language charges
#' the other's time to the call that leads there. `profile_call()` reports how much of the time is R's code, Python's
#' code and crossing between them (by reticulate), how often the call crosses, and which functions take most of the
#' time.
#'
#' `code` is evaluated `2 * times` times: first with clocks at each crossing, for the times, then under [utils::Rprof()]
#' and Python's `cProfile`, for the functions. A function's share of R's time is its share of the samples, one every few
#' milliseconds: choose `times` so that evaluation takes some tenths of a second. Evaluate `code` once before if its
#' first call loads or compiles something. Running profilers are stopped: R's for good, Python's until `profile_call()`
#' ends.
#' @param code The call, or any code.
#' @param times How often to evaluate it; results are for one evaluation.
#' @param x A profile.
#' @param n How many functions of each language to show.
#' @param ... Ignored.
#' @returns An object that prints as a summary, a list of
#'   - `time`: a data frame of `where` (R, Python, crossing), `seconds` and `share`;
#'   - `crossings`: a data frame of `kind` and `count`: calls of Python functions by R, calls of R functions by
#'     Python, values converted to R's;
#'   - `functions`: a data frame of `language`, `name`, `place` (file and line, for Python), `calls` (for Python),
#'     `self` and `total` time in seconds, sorted by `self`. `as.data.frame()` returns this one. Times of Python's
#'     functions include the profiler's overhead, which is large for short functions.
#' @section Errors:
#' - `gradops_error_argument`: `times` is not a positive integer; `profile_call()` within `profile_call()`.
#' - Errors of `code`; profilers and clocks are then reset.
#' @seealso [with_profile()], which measures the operations of gradops.
#' @examplesIf gradops_available()
#' f <- function(p) (p[1] - 1)^2 + 100 * (p[2] - p[1]^2)^2
#' profile_call(gradient(f, c(1, 2)), times = 10)
#' @export
profile_call <- function(code, times = 1) {
  if (!is.numeric(times) || is.object(times) || length(times) != 1L || !isTRUE(times >= 1 && times == trunc(times))) {
    abort("`times` must be a positive integer.", class = c("gradops_error_argument", "gradops_error"))
  }
  if (!is.null(state$clock)) {
    abort("`profile_call()` is already running.", class = c("gradops_error_argument", "gradops_error"))
  }
  call <- substitute(code)
  frame <- parent.frame()
  evaluate <- function() for (time in seq_len(times)) eval(call, frame)
  clock <- time_crossings(evaluate)
  seconds <- c(R = clock$r, Python = clock$python, crossing = clock$outside - clock$python) / times
  found <- time_functions(evaluate)
  in_r <- time_of_samples(found$samples, seconds[["R"]])
  in_python <- as.data.frame(lapply(found$python, unlist), stringsAsFactors = FALSE)
  for (column in c("calls", "self", "total")) in_python[[column]] <- in_python[[column]] / times
  functions <- rbind(in_r, if (nrow(in_python) > 0L) cbind(language = "Python", in_python))
  functions <- functions[order(-functions$self), ]
  rownames(functions) <- NULL
  structure(
    list(
      call = call, times = times,
      time = data.frame(where = names(seconds), seconds = unname(seconds), share = unname(seconds / sum(seconds))),
      crossings = data.frame(
        kind = c("into Python", "into R", "converted"),
        count = c(clock$calls, clock$callbacks, clock$conversions) / times
      ),
      functions = functions
    ),
    class = "gradops_call_profile"
  )
}

# Clocks at crossings --------------------------------------------------------------------------------------------------

# Run with `state$clock`, which counts seconds in R's code and `outside`; Python's own clock divides the latter.
time_crossings <- function(evaluate) {
  python <- py_call(core$Clock %||% load_bridge("Clock"))
  stop <- python$stop
  clock <- list2env(list(
    call = python$call, r = 0, outside = 0, calls = 0, callbacks = 0, conversions = 0, where = "r"
  ))
  py_call(python$start)
  on.exit({
    state$clock <- NULL
    py_call(stop)
  })
  clock$since <- as.numeric(Sys.time())
  state$clock <- clock
  evaluate()
  turn_clock(clock, "r")
  state$clock <- NULL
  clock$python <- py_to_r(py_call(stop))
  clock
}

# Charge the time from now on to `where`.
turn_clock <- function(clock, where, counted = NULL) {
  now <- as.numeric(Sys.time())
  clock[[clock$where]] <- clock[[clock$where]] + now - clock$since
  clock$since <- now
  clock$where <- where
  if (!is.null(counted)) clock[[counted]] <- clock[[counted]] + 1
}

out_of_r <- function(counted, code) {
  clock <- state$clock
  turn_clock(clock, "outside", counted)
  on.exit(turn_clock(clock, "r"))
  code
}

# Call a Python function by Python's clock. A function whose result reticulate converts to an R value is called
# directly, as the clock's result would stay a Python object; its time counts as crossing.
clocked_call <- function(f, arguments, keywords) {
  converts <- isTRUE(get0("convert", attr(f, "py_object") %||% f, inherits = FALSE))
  clock <- state$clock
  out_of_r("calls", if (converts) {
    reticulate_call(f, arguments, keywords)
  } else {
    reticulate_call(clock$call, c(list(f), arguments), keywords)
  })
}

# Functions ------------------------------------------------------------------------------------------------------------

time_functions <- function(evaluate) {
  python <- py_call(core$Functions %||% load_bridge("Functions"))
  stop <- python$stop
  file <- tempfile()
  running <- TRUE
  on.exit({
    if (running) {
      utils::Rprof(NULL)
      py_call(stop)
    }
    unlink(file)
  })
  py_call(python$start)
  utils::Rprof(file, interval = 0.002)
  evaluate()
  utils::Rprof(NULL)
  found <- py_call(stop)
  running <- FALSE
  list(samples = readLines(file)[-1L], python = py_to_r(found))
}

# A row for each R function in the samples that found R's code running. A sample is a stack, innermost call first. With
# a call of Python on top it found Python, or the crossing, unless Python has called R again.
time_of_samples <- function(samples, seconds) {
  stacks <- regmatches(samples, gregexpr("\"[^\"]*\"", samples))
  stacks <- lapply(stacks, function(names) gsub("^\"(\\w+:::?)?|\"$", "", names))
  stacks <- Filter(function(names) length(names) > 0L && is_in_r_code(names), stacks)
  all <- table(unlist(lapply(stacks, unique)))
  own <- table(factor(vapply(stacks, function(names) names[1L], ""), names(all)))
  each <- if (length(stacks) > 0L) seconds / length(stacks) else 0
  data.frame(
    language = rep("R", length(all)), name = names(all), place = rep("", length(all)),
    calls = rep(NA_real_, length(all)), self = as.vector(own) * each, total = as.vector(all) * each
  )
}

is_in_r_code <- function(names) {
  crosses <- match(c("reticulate_call", "reticulate_to_r"), names, length(names) + 1L)
  min(crosses) > match("call_r_function", names, length(names) + 1L) || all(crosses > length(names))
}

#' @rdname profile_call
#' @export
print.gradops_call_profile <- function(x, n = 5, ...) {
  shown <- function(seconds) sprintf("%8.3f ms", 1000 * seconds)
  calls <- sum(x$functions$calls, na.rm = TRUE)
  about <- c("", sprintf("%s function calls", format(round(calls), big.mark = ",")), toString(sprintf(
    "%s %s", format(round(x$crossings$count, 1), trim = TRUE, drop0trailing = TRUE), x$crossings$kind
  )))
  cli::cat_line(cli::rule(left = paste(deparse(x$call, nlines = 1), collapse = "")))
  cli::cat_line(sprintf("%s for each of %d", trimws(shown(sum(x$time$seconds))), as.integer(x$times)))
  cli::cat_line(sprintf("%-8s %s %3.0f%%  %s", x$time$where, shown(x$time$seconds), 100 * x$time$share, about))
  for (language in c("R", "Python")) {
    rows <- utils::head(x$functions[x$functions$language == language, ], n)
    cli::cat_line(cli::style_bold(sprintf("Most time in %s", language)))
    cli::cat_line(if (nrow(rows) > 0L) {
      sprintf("  %s  %s  %s", shown(rows$self), rows$name, cli::col_grey(rows$place))
    } else {
      "  no samples: let `times` be larger"
    })
  }
  invisible(x)
}

#' @rdname profile_call
#' @param row.names,optional As in [as.data.frame()].
#' @export
as.data.frame.gradops_call_profile <- function(x, row.names = NULL, optional = FALSE, ...) {
  x$functions
}
