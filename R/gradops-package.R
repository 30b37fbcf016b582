#' @keywords internal
"_PACKAGE"

#' @importFrom reticulate np_array py_call py_to_r tuple
#' @importFrom rlang abort caller_env
NULL

.onLoad <- function(libname, pkgname) {
  reticulate::py_require(c("numpy", "scipy"))
  register_tensor_methods()
  register_object_methods()
}
