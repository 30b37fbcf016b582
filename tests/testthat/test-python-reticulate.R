# What gradops takes from inside of reticulate: a version that lacks something is seen here.

test_once("this version of reticulate has all that is known of its insides", {
  skip_without()
  expect_identical(reticulate_lacks(), character())
})

test_once("without its inner call its public one does", {
  skip_without()
  call <- reticulate_caller(NULL)
  expect_equal(py_to_r(call(reticulate::import_builtins(convert = FALSE)$int, list("11"), list(base = 2L))), 3)
})

test_once("an R function that reticulate gave to Python is known by its code, not by the name of a file", {
  skip_without()
  known <- reticulate::import_from_path("gradops.interop.r.reticulate", system.file("python", package = "gradops"))
  python <- reticulate::py_run_string(
    "def make(f):\n  def python_function(*args):\n    return f(*args)\n  return python_function",
    local = TRUE, convert = FALSE
  )
  code <- python$make(NULL)$`__code__`
  named_alike <- python$make(NULL)
  named_alike$`__code__` <- code$replace(co_filename = "rpytools/call.py")
  expect_null(known$capsule_of(named_alike))
  expect_false(is.null(known$capsule_of(reticulate::r_to_py(function(x) x))))
})
