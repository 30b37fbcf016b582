#' @importFrom rlang %||%
#' @export
rlang::`%||%`

#' @importFrom reticulate %as%
#' @export
reticulate::`%as%`

#' @importFrom reticulate tuple
#' @export
reticulate::tuple

#' @importFrom reticulate np_array
#' @export
reticulate::np_array
