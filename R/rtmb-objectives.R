# RTMB's functions that are called inside an objective: reports, observations, `%~%`, `AD()`.

get_all <- function(..., warn = TRUE) {
  frame <- parent.frame()
  for (part in list(...)) {
    for (name in names(part)) {
      if (warn && exists(name, envir = frame, inherits = FALSE)) {
        rlang::warn(sprintf("`getAll()`: `%s` exists already and is replaced.", name), call = NULL)
      }
      assign(name, part[[name]], envir = frame)
    }
  }
  invisible()
}

report_rtmb <- function(x) noted(x, substitute(x), "report")

ad_report_rtmb <- function(x) noted(x, substitute(x), "adreport")

noted <- function(x, code, kind) {
  if (!is.null(state$observations$reports)) record(stats::setNames(list(x), deparse1(as_written(code))), kind)
  invisible(x)
}

obs_rtmb <- function(x) observed(x, last_name(substitute(x)))

# The value that returnValue() gives in a function that failed.
failed_function <- "<failed>"

# `x %~% distr` subtracts a log density from `.nll` in the frame of the objective, which returns `.nll` at its end.
tilde_rtmb <- function(x, distr) {
  frame <- parent.frame()
  if (!exists(".nll", envir = frame, inherits = FALSE)) {
    assign(".nll", 0, envir = frame)
    # A `return()` in `on.exit()` after a failure would hide the error and return a partial sum.
    at_end <- bquote(if (!identical(returnValue(.(failed_function)), .(failed_function))) return(.nll))
    do.call(base::on.exit, list(at_end, TRUE), envir = frame)
  }
  code <- as.list(substitute(distr))
  density <- as.call(c(code[1L], substitute(x), code[-1L], log = TRUE))
  assign(".nll", get(".nll", envir = frame) - sum(eval(density, frame)), envir = frame)
  invisible()
}

ad_overload <- function(x = c("[<-", "c", "diag<-", "if")) {
  x <- chosen(x)
  if (x == "[<-") fill_part else get0(x, overloads(), inherits = FALSE) %||% get(x, baseenv())
}

# `AD(x)`: a matrix of Matrix becomes one whose slot `x` has all its values.
ad_value <- function(x, force = FALSE) {
  if (isS4(x) && (methods::is(x, "sparseMatrix") || methods::is(x, "diagonalMatrix"))) {
    methods::as(methods::as(x, "generalMatrix"), "CsparseMatrix")
  } else {
    x
  }
}

# TRUE while a function is differentiated or compiled.
ad_context <- function() inside() > 0

is_rtmb <- function(object, class2) {
  if (missing(class2)) return(methods::is(object))
  identical(class2, "advector") && is_any_tensor(object) || methods::is(object, class2)
}

values_rtmb <- function(x) if (is_any_tensor(x)) op_stop_gradient(x) else x
