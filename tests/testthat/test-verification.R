# Checks of compiled programs, from R.

local_check <- function(mode, envir = parent.frame()) {
  old <- config_set_check(mode)
  withr::defer(config_set_check(old), envir)
}

# Makes native code of `exp` compute the sine.
local_fault <- function(envir = parent.frame()) {
  registry <- reticulate::import("gradops.jit.native.registry", convert = FALSE)
  rules <- reticulate::import("gradops.ops", convert = FALSE)$exp$op$rules
  rules$update(reticulate::dict(native = registry$known_of("sin")))
  withr::defer(rules$pop("native"), envir)
}

loss <- function(x) sum(exp(x) * log(x) / (1 + x^2) - sin(x))

test_once("modes are set, returned and validated", {
  skip_without()
  local_check("first")
  expect_identical(config_check(), "first")
  expect_identical(expect_invisible(config_set_check("always")), "first")
  expect_error(config_set_check("never"), "`mode` must be one of off, first", class = "gradops_error_argument")
})

test_once("a fault in native code gives a classed warning and R's own result", {
  skip_if_not(reticulate::py_module_available("llvmlite"))
  local_backend("numpy")
  x <- c(0.5, 1.5, 2)
  local_check("sample")
  local_fault()
  f <- jit(loss)
  expect_warning(found <- f(x), "`exp` in native code gave another result", class = "gradops_warning_mismatch")
  expect_equal(found, loss(x))
  expect_silent(expect_equal(f(x + 1), loss(x + 1)))
  expect_match(format(f), "not used", all = FALSE)
  d <- 1 + x^2
  slope <- exp(x) * (log(x) / d + 1 / (x * d) - 2 * x * log(x) / d^2) - cos(x)
  expect_warning(found <- objective(loss, jit = TRUE)$gr(x), class = "gradops_warning_mismatch")
  expect_equal(found, slope)
  expect_equal(jit(loss, native = FALSE)(x), loss(x))
  local_check("error")
  expect_error(jit(loss)(x), "`exp` in native code", class = "gradops_error_mismatch")
})

test_once("calls of native programs without Python are checked", {
  skip_if_not(reticulate::py_module_available("llvmlite"))
  local_backend("numpy")
  local_check("sample")
  o <- objective(loss, jit = TRUE)
  x <- c(0.5, 1.5, 2)
  for (i in 1:6) o$gr(x + i)
  # C code returns to Python after 64 calls. From then on results are wrong, and a check is due.
  reticulate::py_run_string("
from gradops.jit import verification
from gradops.jit.native import run
computed = run.Run._computed
run.Run._computed = lambda self, arrays: [x * 1.5 for x in computed(self, arrays)]
share, verification.SHARE = verification.SHARE, 1e9
", local = FALSE)
  withr::defer(reticulate::py_run_string("run.Run._computed, verification.SHARE = computed, share"))
  expect_warning(for (i in 1:2000) o$gr(x + i / 1000), class = "gradops_warning_mismatch")
})
