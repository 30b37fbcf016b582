# Time series beside tensors. Where two arguments of an operator have methods, R before 4.3 takes neither, unless they
# are one (see operators.R): while a function is differentiated or compiled, the method of series is the one that is
# shared, which leaves to that of stats what no tensor is in.

# TRUE where R needs it, so that `leave_to_stats()` must undo it.
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

# The operator as stats has it.
series_operator <- function(operator) {
  force(operator)
  function(e1, e2) {
    leave_to_stats()
    on.exit(share_with_series())
    f <- get(operator, baseenv())
    if (missing(e2)) f(e1) else f(e1, e2)
  }
}
