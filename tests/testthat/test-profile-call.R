# Profiling where the time of a call goes.

test_each("profile_call() splits the time of a call, counts crossings, and names functions of both languages", {
  f <- function(p) {
    until <- Sys.time() + 0.05
    while (Sys.time() < until) count <- sqrt(2)
    sum(p^2)
  }
  found <- profile_call(gradient(f, c(1, 2)), times = 4)
  expect_identical(found$time$where, c("R", "Python", "crossing"))
  expect_equal(sum(found$time$share), 1)
  expect_true(all(found$time$seconds >= 0))
  expect_gt(found$time$seconds[1], 0.045)
  expect_identical(found$crossings$kind, c("into Python", "into R", "converted"))
  expect_gt(found$crossings$count[1], 1)
  expect_identical(found$crossings$count[2], 1) # `f`
  functions <- as.data.frame(found)
  expect_setequal(functions$language, c("R", "Python"))
  expect_false(is.unsorted(-functions$self))
  in_r <- functions[functions$language == "R", ]
  expect_gt(max(in_r$total[in_r$name == "f"]), 0.03)
  expect_equal(sum(in_r$self), found$time$seconds[1], tolerance = 0.01)
  in_python <- functions[functions$language == "Python", ]
  expect_true(any(in_python$name == "value_and_grad" & grepl("derivatives.py", in_python$place)))
  shown <- capture.output(print(found, n = 3))
  expect_match(shown, "^Python .*function calls", all = FALSE)
  expect_match(shown, "into Python, 1 into R", all = FALSE)
})

test_each("profile_call() attributes nested calls between Python and R to the right language", {
  slow <- function(x) {
    until <- Sys.time() + 0.05
    while (Sys.time() < until) count <- sqrt(2)
    op_exp(x)
  }
  found <- profile_call({ # JAX would call a function of op_map() once only
    gradient(slow, 1)
    gradient(slow, 2)
  })
  expect_identical(found$crossings$count[2], 2)
  expect_gt(found$time$seconds[1], 0.095)
  expect_true(all(found$time$seconds > 0)) # no time is counted twice
})

test_each("profile_call() restores all state, after errors as well", {
  expect_error(profile_call(stop("no")), "^no$")
  expect_error(profile_call(gradient(function(p) stop("inside"), 1)), class = "gradops_error_callback")
  second <- FALSE
  expect_error(profile_call(if (second) stop("later") else second <- TRUE), "later") # while the profilers run
  expect_null(state$clock)
  expect_error(profile_call(profile_call(1)), "already running", class = "gradops_error_argument")
  expect_error(profile_call(1, times = 0), "positive integer", class = "gradops_error_argument")
  reticulate::py_run_string("import sys\ndef watch(*arguments): pass\nsys.setprofile(watch)")
  withr::defer(reticulate::py_run_string("sys.setprofile(None)"))
  profile_call(1)
  expect_true(reticulate::py_eval("sys.getprofile() is watch"))
  expect_identical(profile_call(gradient(function(p) sum(p), 1))$crossings$count[2], 1)
})
