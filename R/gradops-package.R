#' @keywords internal
"_PACKAGE"

#' @importFrom rlang abort caller_env
NULL

# reticulate takes most of a second to load, so it is loaded at its first use: these functions are its own by then.
np_array <- py_call <- py_to_r <- tuple <- `%as%` <- function(...) NULL

.onLoad <- function(libname, pkgname) {
  namespace <- topenv()
  for (name in c("np_array", "py_call", "py_to_r", "tuple", "%as%")) {
    eval(bquote(delayedAssign(.(name), getExportedValue("reticulate", .(name)), assign.env = namespace)))
  }
  register_namesakes()
  if (isNamespaceLoaded("reticulate")) {
    reticulate_loaded()
  } else {
    setHook(packageEvent("reticulate", "onLoad"), reticulate_loaded)
  }
}

# reticulate has methods for some classes of tensors too, which ours are to replace.
reticulate_loaded <- function(...) {
  reticulate::py_require(c("numpy", "scipy"))
  register_tensor_methods()
  register_object_methods()
}
