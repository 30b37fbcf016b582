#' @keywords internal
"_PACKAGE"

#' @importFrom rlang abort caller_env
#' @useDynLib gradops, .registration = TRUE, .fixes = "C_"
#' @importFrom stats nobs simulate
NULL

# reticulate takes most of a second to load, so it is loaded at its first use, when these functions become reticulate's
# own.
np_array <- tuple <- `%as%` <- reticulate_call <- reticulate_to_r <- function(...) NULL

.onLoad <- function(libname, pkgname) {
  namespace <- topenv()
  theirs <- c(
    np_array = "np_array", tuple = "tuple", `%as%` = "%as%", reticulate_to_r = "py_to_r"
  )
  for (name in names(theirs)) {
    eval(bquote(delayedAssign(.(name), getExportedValue("reticulate", .(theirs[[name]])), assign.env = namespace)))
  }
  delayedAssign("reticulate_call", reticulate_caller(), assign.env = namespace)
  start_logs(namespace)
  register_namesakes()
  register_tensor_methods()
  register_object_methods()
  if (isNamespaceLoaded("Matrix")) register_matrix_methods()
  setHook(packageEvent("Matrix", "onLoad"), register_matrix_methods)
  if (isNamespaceLoaded("vctrs")) register_vctrs_methods()
  setHook(packageEvent("vctrs", "onLoad"), register_vctrs_methods)
  await_marginaleffects()
  if (isNamespaceLoaded("reticulate")) {
    reticulate_loaded()
  } else {
    setHook(packageEvent("reticulate", "onLoad"), reticulate_loaded)
  }
}

reticulate_loaded <- function(...) {
  reticulate::py_require(c(backend_requirements[["numpy"]], scipy_requirement, native_requirement))
  await_neighbours()
}

# The oldest supported versions, as in pyproject.toml.
backend_requirements <- c(
  numpy = "numpy>=1.26", torch = "torch>=2.5", tensorflow = "tensorflow>=2.16.1", jax = "jax>=0.4.35"
)
scipy_requirement <- "scipy>=1.14"

# The library that compiles native code, on platforms with a binary wheel.
native_requirement <- paste(
  "llvmlite>=0.45;",
  "(sys_platform == 'linux' and platform_machine in 'x86_64 aarch64')",
  "or (sys_platform == 'darwin' and platform_machine == 'arm64')",
  "or (sys_platform == 'win32' and platform_machine == 'AMD64')"
)

#' @importFrom rlang %||%
#' @export
rlang::`%||%`

#' Functions of reticulate
#'
#' `tuple()`, `np_array()` and `%as%` are reticulate's functions: see [reticulate::tuple()], [reticulate::np_array()]
#' and [reticulate::with.python.builtin.object()].
#' @name from-reticulate
#' @aliases tuple np_array %as%
#' @rawNamespace export("%as%", np_array, tuple)
#' @examplesIf gradops_available()
#' np_array(c(1, 2))
#' tuple(1, 2)
NULL
