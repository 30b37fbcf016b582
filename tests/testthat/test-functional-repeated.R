# Derivatives that are asked for again come from a program, where `f` does nothing but compute.

.packageName <- "tests" # so that functions here are a user's: see test_each()

repeated <- function(f) getFromNamespace("repeated", "gradops")(f)

called_twice <- function(f, x) {
  again <- repeated(f)
  again(list(x))
  again(list(x))
}

test_once("the second call has a program, the first and what has effects has none", {
  local_backend("numpy")
  power <- 3
  cases <- list(
    function(x) sum(x^power),
    function(x) {
      total <- 0
      for (i in seq_along(x)) total <- total + x[i]^3
      total
    },
    function(x) {
      cube <- function(v) v^3
      out <- numeric(length(x))
      for (i in seq_along(x)) out[i] <- cube(x[[i]])
      sum(out)
    },
    function(x) Reduce(`+`, lapply(x, function(v) base::exp(3 * log(v)))),
    function(x) if (x[1] > 0) sum(x^3) else stop("no")
  )
  for (f in cases) {
    again <- repeated(f)
    x <- c(a = 1, b = 2)
    expect_null(again(list(x)))
    found <- again(list(x))
    expect_equal(lapply(found, as.vector), list(value = 9, derivative = c(3, 12)))
    derivative <- value_and_grad_fn(f)
    for (i in 1:3) expect_equal(derivative(2 * x), list(value = 72, gradient = c(a = 12, b = 48)))
  }
  expect_null(called_twice(sin, 1))
})

test_once("what a function does besides its value it does at each call", {
  local_backend("numpy")
  noted <- new.env()
  noted$count <- 0
  count <- 0
  loud <- function(x) {
    cat("loud\n")
    x
  }
  obj <- list(f = loud)
  python <- reticulate::py_eval("[]", convert = FALSE)
  cases <- list(
    function(x) {
      cat("cat\n")
      sum(x^2)
    },
    function(x) sum(loud(x)^2),
    function(x) sum(obj$f(x)^2),
    function(x) sum(do.call("loud", list(x))^2),
    function(x) sum(vapply(seq_along(x), function(i) {
      print(i)
      2
    }, 0) * x),
    function(x) {
      say <- print
      say("alias")
      sum(x)
    },
    function(x) {
      base::cat("there\n")
      sum(x)
    },
    function(x) {
      message("message")
      sum(x)
    },
    function(x) {
      warning("warning")
      sum(x)
    },
    function(x) {
      noted$count <- noted$count + 1
      sum(x)
    },
    function(x) {
      assign("count", 1, envir = noted)
      sum(x)
    },
    function(x) {
      python$append(1L)
      sum(x)
    },
    function(x, shown = print("default")) {
      shown
      sum(x)
    },
    function(x) {
      writeLines("lines")
      sum(x)
    },
    function(x) {
      cat <- 3
      cat("hidden\n")
      sum(x) * cat
    }
  )
  for (f in cases) {
    expect_null(called_twice(f, c(1, 2)))
    derivative <- grad_fn(f)
    first <- heard_of(derivative, c(1, 2))
    for (i in 1:3) expect_equal(heard_of(derivative, c(1, 2)), first)
  }
  count <- 0
  counted <- function(x) {
    count <<- count + 1
    cat(count, "")
    sum(x)
  }
  expect_output(for (i in 1:4) gradient(counted, c(1, 2)), "1 2 3 4")
  drawn <- grad_fn(function(x) sum(x * stats::rnorm(2)))
  expect_false(identical(drawn(c(1, 2)), drawn(c(1, 2))))
})

test_once("what a function finds outside may change, also what it does", {
  local_backend("numpy")
  weight <- 2
  helper <- function(x) weight * x
  f <- function(x) sum(helper(x)^2)
  derivative <- grad_fn(f)
  for (i in 1:3) expect_equal(derivative(c(1, 2)), 2 * weight^2 * c(1, 2))
  weight <- 3
  for (i in 1:3) expect_equal(derivative(c(1, 2)), 2 * weight^2 * c(1, 2))
  helper <- function(x) {
    cat("heard\n")
    x
  }
  for (i in 1:3) expect_output(expect_equal(derivative(c(1, 2)), c(2, 4)), "heard")
})

test_once("gradient(f, x) knows a function again", {
  local_backend("numpy")
  f <- function(x) sum(x^3)
  for (i in 1:4) expect_equal(gradient(f, c(i, 2)), 3 * c(i, 2)^2)
  g <- function(x) if (x > 0) x^2 else -x
  expect_equal(vapply(c(1, 2, -1, 3, -2), function(x) gradient(g, x), 0), c(2, 4, -1, 6, -1))
  total <- objective(f)
  for (i in 1:4) expect_equal(list(total$fn(c(i, 2)), total$gr(c(i, 2))), list(i^3 + 8, 3 * c(i, 2)^2))
  expect_identical(total$evaluations(), 4)
  expect_error(gradient(function(x) x^2, c(1, 2)), class = "gradops_error_gradient")
  for (i in 1:3) expect_error(gradient(function(x) if (x > 0) stop("mine") else x, 1), "mine")
})

test_once("scopes and other backends see the function itself", {
  local_backend("numpy")
  f <- function(x) sum(log(x))
  derivative <- grad_fn(f)
  for (i in 1:3) derivative(c(1, 2))
  expect_error(with_detect_anomaly(derivative(c(0, NaN))), class = "gradops_error")
  expect_gt(nrow(with_profile(derivative(c(1, 2)))), 1)
  skip_without("torch")
  expect_equal(with_backend("torch", derivative(c(1, 2))), c(1, 0.5))
})

test_once("a function that was differentiated often is freed with its environment", {
  local_backend("numpy")
  freed <- FALSE
  local({
    data <- new.env()
    reg.finalizer(data, function(...) freed <<- TRUE)
    f <- local({
      held <- data
      weights <- c(1, 2)
      function(x) sum(weights * x^2)
    })
    for (i in 1:4) gradient(f, c(1, 2))
  })
  for (i in 1:3) {
    gc()
    reticulate::py_run_string("import gc; gc.collect()")
  }
  expect_true(freed)
})
