# Internals of reticulate that gradops uses: a version without one of them fails here.

test_once("this version of reticulate has all internals in use", {
  skip_without()
  expect_identical(reticulate_lacks(), character())
})

test_once("without reticulate's internal call function the public one is used", {
  skip_without()
  call <- reticulate_caller(NULL)
  expect_equal(py_to_r(call(reticulate::import_builtins(convert = FALSE)$int, list("11"), list(base = 2L))), 3)
})

test_once("an R function passed to Python by reticulate is recognised by its code object, not by a file name", {
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
