test_once("errors show the user's call, name the argument and count from 1", {
  skip_without()
  x <- op_ones(c(2, 3))
  condition <- expect_error(op_sum(x, axis = 3), "`axis` must be from 1 to 2", class = "gradops_error_axis")
  expect_identical(condition$argument, "axis")
  expect_identical(rlang::call_name(conditionCall(condition)), "op_sum")
  expect_error(op_take(c(1, 2), 5), "from 1 to 2.*got 5", class = "gradops_error_axis")
  expect_error(op_reshape(x, NA), "whole number; got a logical value", class = "gradops_error_type")
  expect_error(op_exp(mean), "got a function", class = "gradops_error_type")
  expect_error(op_sum(x, axis = "a"), 'got "a"', class = "gradops_error_type")
})

test_on("tensorflow", "hints tell R users what to write in R", {
  x <- op_exp(1)
  condition <- expect_error(gradient(x * 2, x), class = "gradops_error_gradient")
  expect_match(conditionMessage(condition), "use `gradient(f, x)`", fixed = TRUE)
  expect_no_match(conditionMessage(condition), "with tf|True|None")
})

test_once("Python's traceback is shown on request", {
  skip_without()
  failing <- \() op_sum(c(1, 2), axis = 5)
  expect_no_match(conditionMessage(expect_error(failing())), "Traceback")
  withr::local_options(gradops.traceback = TRUE)
  expect_match(conditionMessage(expect_error(failing())), "Python traceback:.*Traceback.*AxisError")
})

test_contract("an error in an R function is caught by its own class, with its fields", {
  failing <- function(x) rlang::abort("not today", class = "my_error", detail = 42)
  caught <- tryCatch(gradient(failing, 1), my_error = identity)
  expect_s3_class(caught, "gradops_error_callback")
  expect_identical(caught$detail, 42)
  expect_identical(conditionMessage(caught$parent), "not today")
  expect_error(gradient(\(x) stop("plain"), 1), class = "gradops_error_callback")
})

test_each("warnings, messages and conditions of R functions reach handlers outside of Python", {
  still_works <- function() expect_equal(gradient(\(x) x^3, 2), 12)
  warns <- function(x) {
    warning("careful")
    sum(x^2)
  }
  expect_warning(value <- gradient(warns, 3), "careful")
  expect_equal(value, 6)
  expect_identical(tryCatch(gradient(warns, 3), warning = conditionMessage), "careful")
  still_works()
  says <- function(x) {
    message("hello")
    sum(x^2)
  }
  expect_identical(tryCatch(gradient(says, 3), message = \(m) "heard"), "heard")
  still_works()
  signals <- function(x) {
    rlang::signal("psst", class = "my_signal")
    sum(x^2)
  }
  expect_identical(tryCatch(hessian(signals, 3), my_signal = conditionMessage), "psst")
  still_works()
})

test_contract("a jump out of an R function called by Python is an error, and modes are restored", {
  expect_error(callCC(\(leave) gradient(\(x) with_no_grad(leave(x)), 2)), "left by a jump", class = "gradops_error")
  x <- parameter(2)
  backward(x^2)
  expect_equal(as.numeric(x$grad), 4)
})

test_once("Python warnings become R warnings", {
  skip_without()
  local_backend("numpy")
  y <- parameter(1) * 2
  for (time in 1:2) expect_warning(y$grad, "is not kept", class = "gradops_warning")
  expect_s3_class(tryCatch(y$grad, warning = identity), "gradops_warning")
  expect_equal(gradient(\(x) x^3, 2), 12)
  withr::local_options(warn = 2)
  expect_error(y$grad, "is not kept")
})

# Runs code in a new R process that interrupts itself after less than a second, like Ctrl-C; modes must be intact then.
interrupted <- function(code) {
  script <- c(
    "interrupt_soon <- function() system(sprintf('(sleep 0.7; kill -INT %d) &', Sys.getpid()))",
    "options(gradops.progress = FALSE)",
    "invisible(op_exp(1))",
    "reticulate::py_run_string('import threading, time\ndef turn():\n  global turns\n  turns += 1\nturns = 0')",
    "python <- reticulate::import_main()",
    "free <- function() { # whether Python's other threads run while R sleeps",
    "  before <- python$turns",
    "  reticulate::py_run_string('threading.Timer(0.01, turn).start()')",
    "  Sys.sleep(0.2)",
    "  python$turns > before",
    "}",
    sprintf("cases <- list(%s)", paste(code, collapse = ",\n")),
    "for (case in cases) {",
    "  result <- tryCatch({interrupt_soon(); case()},",
    "                     interrupt = \\(condition) 'interrupted', error = conditionMessage)",
    "  x <- parameter(2)",
    "  y <- x^2",
    "  backward(y)",
    "  whole <- identical(as.numeric(x$grad), 4) && identical(gradient(\\(x) x^3, 2), 12)",
    "  again <- with_no_grad(reticulate::py_to_r((x * 2)$requires_grad))",
    "  cat(if (identical(result, 'interrupted') && whole && !again && free()) 'fine' else result, '\\n')",
    "}"
  )
  trimws(in_new_process(script))
}

test_once("interrupts stop Python and the R functions it calls, and leave a working state", {
  skip_on_cran()
  skip_on_os("windows")
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  out <- interrupted(c(
    "\\() op_fori_loop(1, 1e9, reticulate::py_eval('lambda i, x: x + 1', convert = FALSE), 0)",
    "\\() gradient(\\(x) {Sys.sleep(20); sum(x)}, 1)",
    "\\() gradient(\\(x) {repeat x <- x * 1}, 1)",
    "\\() gradcheck(\\(x) sum(exp(x)^2), rep(0.1, 1e5))",
    "\\() {inner <- \\(k) if (k > 0) inner(k - 1) else repeat parameter(1) * 2; with_no_grad(inner(500))}",
    "\\() repeat with_stop_gradient(with_no_grad(parameter(1) * 2))",
    "\\() optim(c(1, 1), \\(x) {repeat gradient(\\(x) sum(x^2), x)})",
    "\\() reticulate::py_run_string('while True: pass')"
  ))
  expect_identical(out, rep("fine", 8))
})

test_once("interrupts wait while the user suspends them", {
  skip_on_cran()
  skip_on_os("windows")
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  expect_false(interrupts_suspended())
  suspendInterrupts(expect_true(interrupts_suspended())) # the helper reports the state correctly
  suspendInterrupts(allowInterrupts(expect_false(interrupts_suspended())))
  out <- interrupted(c(
    "\\() {
      slow <- \\(x) {until <- Sys.time() + 1.5; while (Sys.time() < until) x * 1; x^2}
      suspendInterrupts(y <- gradient(slow, 3))
      stopifnot(y == 6)
      repeat y + 1
    }",
    "\\() repeat gradient(\\(x) suspendInterrupts(sum(x * x)), c(1, 2))"
  ))
  expect_identical(out, rep("fine", 2))
})

test_once("options are read when Python starts", {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  out <- in_new_process(
    "options(gradops.floatx = 'float32', gradops.epsilon = 1e-3); cat(op_dtype(op_exp(c(1, 2))), config_epsilon())"
  )
  expect_identical(out, "float32 0.001")
})

test_once("long checks and fits show progress on request", {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  code <- c(
    fit = "fit <- maximize_likelihood(function(p) (p$a - 1)^4 + p$a^2, list(a = 9))",
    `gradcheck.*%` = "stopifnot(gradcheck(\\(x) sum(exp(x)^2), rep(0.1, 300)))"
  )
  shown <- in_new_process(c("options(gradops.progress = TRUE, cli.progress_show_after = 0)", code))
  for (pattern in names(code)) expect_match(paste(shown, collapse = ""), pattern)
  expect_identical(paste(in_new_process(code), collapse = ""), "")
})

test_once("in interactive sessions an error names its page", {
  skip_without()
  error <- function() op_sum(matrix(1, 2, 3), axis = 3)
  expect_no_match(conditionMessage(expect_error(error())), "Causes and fixes")
  withr::local_options(rlang_interactive = TRUE)
  expect_match(conditionMessage(expect_error(error())), "1 to 2.*\n.*Causes and fixes: `[?]gradops_error_axis`")
  expect_match(conditionMessage(expect_error(gradient("a", 1))), "Causes and fixes: `[?]gradops_error_gradient`")
})
