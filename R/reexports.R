#' @importFrom rlang %||%
#' @export
rlang::`%||%`

#' Functions of reticulate
#'
#' `tuple()`, `np_array()` and `%as%` are those of reticulate: see [reticulate::tuple()], [reticulate::np_array()] and
#' [reticulate::with.python.builtin.object()].
#' @name from-reticulate
#' @aliases tuple np_array %as%
#' @rawNamespace export("%as%", np_array, tuple)
#' @examplesIf gradops_available()
#' np_array(c(1, 2))
#' tuple(1, 2)
NULL
