test_once("the default backend is set, scoped and restored", {
  skip_without()
  before <- config_backend()
  expect_equal(with_backend("numpy", config_backend()), "numpy")
  for (backend in Filter(gradops_available, all_backends)) {
    expect_match(described(with_backend(backend, op_exp(c(1, 2)))), backend)
    expect_match(described(with_backend(backend, op_exp(1))), backend)
    expect_match(described(with_backend(backend, op_zeros(2))), backend)
    expect_equal(config_backend(), before)
  }
  expect_error(with_backend("numpy", stop("inside")), "inside")
  expect_equal(config_backend(), before)
  scoped <- function() {
    local_backend("numpy")
    config_backend()
  }
  expect_equal(scoped(), "numpy")
  expect_equal(config_backend(), before)
  expect_equal(config_set_backend(before), before)
  if (!isNamespaceLoaded("keras3")) expect_equal(use_backend(before), before) # Keras cannot be unloaded
})

test_once("an unknown backend is an error and changes nothing", {
  skip_without()
  before <- config_backend()
  expect_error(config_set_backend("theano"), "numpy, torch, tensorflow, jax", class = "gradops_error_backend")
  expect_error(use_backend("theano"), "theano", class = "gradops_error_backend")
  expect_error(with_backend("theano", 1), class = "gradops_error_backend")
  expect_equal(config_backend(), before)
})

test_each("floatx and epsilon", {
  expect_equal(config_floatx(), "float64")
  expect_equal(config_epsilon(), 1e-7)
  old <- config_set_floatx("float32")
  withr::defer(config_set_floatx(old))
  expect_equal(op_dtype(op_exp(c(1, 2))), "float32")
  expect_equal(op_dtype(op_exp(1)), "float32")
  expect_error(config_set_floatx("int32"), class = "gradops_error_argument")
  expect_error(config_set_epsilon(-1), class = "gradops_error_argument")
  expect_equal(config_set_epsilon(1e-5), 1e-7)
  expect_equal(config_set_epsilon(1e-7), 1e-5)
})

test_once("a scope restores JAX's precision and applies on JAX's own threads", {
  skip_on_cran()
  skip_without("jax")
  skip_if(is_loaded_from_source(), "needs the installed package")
  code <- c(
    "jax <- reticulate::import('jax', convert = TRUE)",
    "mode <- function() isTRUE(jax$config$jax_enable_x64)",
    "inside <- with_backend('jax', c(mode(), op_dtype(op_exp(c(1, 2)))))",
    "caught <- tryCatch(with_backend('jax', stop('inside')), error = conditionMessage)",
    "square <- r_function(function(x) x^2, function(x, upstream) 2 * x * upstream)",
    "third <- with_backend('jax', jit(function(x) sum(square(x)))(1 / 3))",
    "cat(inside, mode(), caught, third == (1 / 3)^2)"
  )
  out <- in_new_process(code, "GRADOPS_BACKEND=numpy")
  expect_identical(paste(out, collapse = ""), "TRUE float64 FALSE inside TRUE")
})

test_once("the report names R, Python and their versions, and the reason if Python does not start", {
  skip_without()
  expect_output(found <- gradops_sitrep(), paste0("reticulate +", utils::packageVersion("reticulate")))
  python <- reticulate::py_config()
  expect_identical(found[["Python"]], sprintf("%s (%s)", sub(" .*", "", python$version_string), python$python))
  expect_identical(found[["numpy"]], reticulate::import("numpy")$`__version__`)
  expect_match(found[["gradops"]], paste0("^", utils::packageVersion("gradops"), " "))
  skip_if(is_loaded_from_source(), "needs the installed package")
  there <- file.path(tempdir(), "no-python")
  said <- in_new_process("gradops_sitrep()", env = paste0("RETICULATE_PYTHON=", there))
  expect_match(paste(said, collapse = " "), paste0("problem +gradops needs Python .*", there))
})
