# Time series beside tensors. Where two arguments of an operator have methods, R before 4.3 takes neither, unless they
# are one: while a function is differentiated or compiled, the method of series is that of tensors, which hands back to
# that of stats what no tensor is in. (From 4.3 on, `chooseOpsMethod()` says that tensors come first.)

local_series_operators <- function(frame = parent.frame()) {
  if (getRversion() < "4.3.0") {
    register("Ops", "ts", Ops_tensor, baseenv())
    withr::defer(register("Ops", "ts", series_method, baseenv()), frame)
  }
}

series_method <- get("Ops.ts", asNamespace("stats"))

series_operation <- function(operator, e1, e2) {
  register("Ops", "ts", series_method, baseenv())
  on.exit(register("Ops", "ts", Ops_tensor, baseenv()))
  operator <- get(operator, baseenv())
  if (missing(e2)) operator(e1) else operator(e1, e2)
}
