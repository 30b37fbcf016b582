# Time series beside tensors. Where two arguments of an operator have methods, R before 4.3 takes neither, unless they
# are one (see operators.R): while a function is differentiated or compiled, the method of series is the one that is
# shared, which leaves to that of stats what no tensor is in.

local_series_operators <- function(frame = parent.frame()) {
  if (length(shared_operators) > 0) {
    share_with_series()
    withr::defer(leave_to_stats(), frame)
  }
}

share_with_series <- function() {
  table <- s3_methods()
  for (operator in names(shared_operators)) {
    name <- paste0(operator, ".ts")
    if (is.null(their_operators[[name]])) their_operators[[name]] <- series_operator(operator)
    assign(name, shared_operators[[operator]], table)
  }
}

leave_to_stats <- function() {
  rm(list = paste0(names(shared_operators), ".ts"), envir = s3_methods())
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
