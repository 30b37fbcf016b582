# What gradops takes from inside of reticulate: a version that lacks something is seen here.

test_that("this version of reticulate has all that is known of its insides", {
  skip_without()
  expect_identical(reticulate_lacks(), NULL)
})

test_each("a function that reticulate made of R's is known from a Python function of the same file name", {
  python <- reticulate::py_run_string(paste(
    "def make(f):", "  def python_function(*args):", "    return f(*args)", "  return python_function",
    "code = make(None).__code__.replace(co_filename = '/elsewhere/call.py')", "make.__code__ = make.__code__", sep = "\n"
  ), local = TRUE, convert = FALSE)
  seen <- reticulate::import_from_path("gradops.interop.r.reticulate", system.file("python", package = "gradops"))
  expect_null(seen$capsule_of(python$make(NULL)))
  expect_false(is.null(reticulate::import("builtins", convert = FALSE)$callable(function(x) x)))
  # one that comes back from Python as it went there has the formals of R's function
  f <- op_custom_gradient(function(x) list(x * 2, function(upstream) upstream * 3))
  expect_equal(gradient(function(x) sum(f(x)), c(1, 2)), c(3, 3))
})
