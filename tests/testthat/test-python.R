test_once("Python starts at first use, not at library()", {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  out <- in_new_process(c("cat(reticulate::py_available(), '')", "op_exp(1)", "cat(reticulate::py_available())"))
  expect_match(out[1], "^FALSE")
  expect_match(out[length(out)], "TRUE$")
})

test_once("without Python the error says what to do", {
  skip_on_cran()
  skip_if(is_loaded_from_source(), "needs the installed package")
  out <- in_new_process(
    c(
      "stopifnot(!gradops_available())",
      "condition <- tryCatch(op_exp(1), error = identity)",
      "stopifnot(inherits(condition, 'gradops_error_python'))",
      "cat(conditionMessage(condition))"
    ),
    "RETICULATE_PYTHON=/nonexistent/python"
  )
  expect_match(paste(out, collapse = " "), "RETICULATE_PYTHON.*install_python")
})

test_once("use_backend() sets the default of the session", {
  skip_on_cran()
  skip_without("torch")
  skip_if(is_loaded_from_source(), "needs the installed package")
  code <- c(
    "cat(config_backend(), '')", "use_backend('numpy')", "cat(config_backend(), '')",
    "use_backend('torch')", "cat(config_backend(), capture.output(op_exp(c(1, 2)))[1])"
  )
  out <- in_new_process(code, "GRADOPS_BACKEND=torch")
  expect_match(out[length(out)], "^torch numpy torch <torch float64 \\[2\\]>")
})

test_once("failures keep the Python exception; a wrong call of Python code is a condition as well", {
  skip_without()
  condition <- expect_error(op_sum(c(1, 2), axis = 5), class = "gradops_error_axis")
  expect_s3_class(condition$python, "gradops.errors.AxisError")
  expect_error(gradient(\(x) reticulate::py_eval("1 / 0"), 1), "ZeroDivisionError", class = "gradops_error_callback")
})

test_once("compiled code is stored where CRAN allows packages to write", {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  folder <- withr::local_tempdir()
  code <- c(
    "f <- jit(function(x) exp(x) + x * x - x / 3 + sin(x) * cos(x) + x * 5 - 2 * x)",
    "invisible(f(op_convert_to_tensor(c(0.5, 1))))",
    "cat(reticulate::py_to_r(reticulate::import('os', convert = FALSE)$environ$get('GRADOPS_CACHE')))"
  )
  ours <- c(paste0("R_USER_CACHE_DIR=", folder), "GRADOPS_CACHE=")
  stored <- file.path(folder, "R", "gradops")
  for (first in c(if (is_long()) "", "reticulate::py_config(); library(gradops)")) {
    out <- in_new_process(c(first, code), ours)
    expect_identical(normalizePath(out[length(out)]), normalizePath(stored))
    expect_match(list.files(stored), "^(machine|vector_).*[.]o$")
  }
  named <- withr::local_tempdir()
  out <- in_new_process(code, c(ours[1], paste0("GRADOPS_CACHE=", named)))
  expect_identical(out[length(out)], named)
  expect_match(list.files(named), "^(machine|vector_).*[.]o$")
})

test_once("without llvmlite, loops and sparse factors are native, by R's own compiler", {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  code <- c(
    "reticulate::py_run_string('import sys; sys.modules[\"llvmlite\"] = None')",
    "f <- function(p) {",
    "  h <- 1",
    "  total <- 0",
    "  for (i in 1:20) {",
    "    h <- exp(p[1]) + 0.1 * sin(i)^2 + h / (1 + exp(-p[2]))",
    "    total <- total + log(h) + pmax(1, h)^2",
    "  }",
    "  total",
    "}",
    "o <- objective(f, jit = TRUE)",
    "x <- c(-1, 0.3)",
    "close <- isTRUE(all.equal(o$fn(x), f(x), tolerance = 1e-14))",
    "native <- grepl('[1-9][0-9]* native', paste(capture.output(explain(o)), collapse = ' '))",
    "cat(close, native, '\\n')",
    "reticulate::py_run_string('",
    "from gradops.jit.native.machine import machine",
    "from gradops.scipy import sparse",
    "from gradops.scipy.sparse import _ops",
    "A = sparse.csc_array(4.0 * sparse.eye_array(9).tocsc()) - sparse.eye_array(9, k=1) - sparse.eye_array(9, k=-1)",
    "print(machine().compiles, type(_ops.cholesky(A.pattern, A.values)).__name__)')"
  )
  out <- in_new_process(code)
  expect_identical(trimws(utils::tail(out, 2L)), c("TRUE TRUE", "False ColumnFactor"))
})

test_once("where R CMD check limits cores, Python starts with two", {
  skip_without()
  code <- "cat(reticulate::py_to_r(reticulate::import('os')$environ$get('OMP_NUM_THREADS', 'all')))"
  threads <- function(named, limited) {
    withr::local_envvar(OMP_NUM_THREADS = named, `_R_CHECK_LIMIT_CORES_` = limited)
    tail(in_new_process(c("invisible(op_exp(1))", code)), 1L)
  }
  expect_identical(threads(NA, "true"), "2")
  expect_identical(threads("1", "true"), "1")
  expect_identical(threads(NA, "false"), "all")
})
