#' Options
#'
#' Settings of gradops in `options()`. Those of the first group are read once, when Python starts (at the first use of
#' gradops); later, the functions named beside them set the same. Those of the second are read at each use.
#'
#' - `gradops.backend`: the default backend, as [config_set_backend()]. Goes before the environment variable
#'   `GRADOPS_BACKEND`; without both it is `"numpy"`.
#' - `gradops.floatx`: the dtype of R's numbers, as [config_set_floatx()]; `"float64"` if not set.
#' - `gradops.epsilon`: the small number of normalisations and losses, as [config_set_epsilon()]; 1e-7 if not set.
#' - `gradops.patience`: for how many seconds another thread's call of an R function waits while R's thread stands
#'   still, before it is an error ([r_function()]); 10 if not set.
#'
#' and
#'
#' - `gradops.traceback`: `TRUE` adds Python's traceback to errors that come from Python; `FALSE` if not set. The
#'   exception itself is always in the condition, as `condition$python`.
#' - `gradops.print_max`: up to how many elements a tensor prints in full; 1000 if not set. Of larger ones a corner.
#' - `gradops.progress`: whether [jacobian()], [hessian()], [gradcheck()] and [objective()] of shards show a
#'   progress bar after two seconds;
#'   `interactive()` if not set.
#'
#' Conditions are classed: errors as `gradops_error` and `gradops_error_<kind>` (`argument`, `type`, `shape`, `axis`,
#' `backend`, `mixed_backends`, `gradient`, `jit`, `callback`, `thread`, `model`, `budget`, `python`, `stale`),
#' warnings as `gradops_warning`. The error of an R function that gradops called also has the classes and fields of the
#' error that it was, so `tryCatch(my_class = )` catches it; that error itself is its `parent`.
#'
#' @section TensorFlow's lines on standard error:
#' The environment variable `TF_CPP_MIN_LOG_LEVEL=1` hides what TensorFlow says about the processor when it starts. Its
#' line on oneDNN can be hidden only by `TF_ENABLE_ONEDNN_OPTS=0`, which turns oneDNN off and makes convolutions about
#' three times as slow; so gradops leaves both to you.
#' @name gradops-options
#' @aliases gradops_options
#' @examples
#' old <- options(gradops.print_max = 20)
#' options(old)
NULL

# Settings by option, when Python starts.
apply_options <- function() {
  for (name in c("backend", "floatx", "epsilon")) {
    value <- getOption(paste0("gradops.", name))
    if (!is.null(value)) call_core(paste0("config.set_", name), value, .call = NULL)
  }
  patience <- getOption("gradops.patience")
  if (!is.null(patience)) call_core("interop.r.set_patience", patience, .call = NULL)
}

# The place where cli keeps progress bars, instead of in a function's frame.
bars <- new.env()

# Where somebody looks: not in documents, nor in runs by nobody.
shows_progress <- function() {
  isTRUE(getOption("gradops.progress", interactive() && !isTRUE(getOption("knitr.in.progress"))))
}

# A progress bar for Python: begun and moved on, and ended with `done` NULL.
show_progress <- function(label, total, done) {
  bar <- state$progress
  if (is.null(done)) {
    if (!is.null(bar)) cli::cli_progress_done(id = bar, .envir = bars)
    state$progress <- NULL
  } else if (!is.null(bar)) {
    cli::cli_progress_update(set = done, id = bar, .envir = bars)
  } else if (shows_progress()) {
    withr::local_options(cli.progress_show_after = 0) # Python has waited
    state$progress <- cli::cli_progress_bar(label, total = total %||% NA, .auto_close = FALSE, .envir = bars)
  }
  NULL
}
