# Repeated derivatives use a compiled program if `f` has no side effects.

.packageName <- "tests" # makes functions here a user's: see test_each()

repeated <- function(f) getFromNamespace("repeated", "gradops")(f)

called_twice <- function(f, x) {
  again <- repeated(f)
  again(list(x))
  again(list(x))
}

test_once("the second call uses a program, the first only for a loop; functions with side effects never do", {
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
    expect_identical(is.null(again(list(x))), !"for" %in% all.names(body(f)))
    found <- again(list(x))
    expect_equal(lapply(found, as.vector), list(value = 9, derivative = c(3, 12)))
    derivative <- value_and_grad(f)
    for (i in 1:3) expect_equal(derivative(2 * x), list(value = 72, gradient = c(a = 12, b = 48)))
  }
  expect_null(called_twice(sin, 1))
})

test_once("explain() says whether repeated derivatives are compiled, or why not", {
  local_backend("numpy")
  count <- 0
  functions <- list(sum)
  cases <- list(
    "`cat()` may have effects" = function(x) {
      cat("")
      sum(x)
    },
    "it may change `count`" = function(x) {
      count <<- count + 1
      sum(x)
    },
    "it calls functions that it finds or makes when it runs" = function(x) functions[[1]](x),
    "it calls `unknown()`, which is not known before it runs" = function(x) if (x[1] > 0) sum(x) else unknown(x),
    "it has several values" = function(x) x^2,
    mine = function(x) stop("mine\nand more")
  )
  for (reason in names(cases)) {
    derivative <- grad_fn(cases[[reason]])
    expect_identical(c(explain(derivative)), "not compiled yet: the second call compiles it")
    for (i in 1:2) try(derivative(c(1, 2)), silent = TRUE)
    expect_identical(c(explain(derivative)), paste("not compiled:", reason))
  }
  f <- function(x) sum(log(x))
  expect_error(explain(f), class = "gradops_error_type")
  total <- objective(f)
  second <- hessian_fn(f)
  for (i in 1:2) {
    gradient(f, c(i, 2))
    total$gr(c(i, 2))
    second(c(i, 2))
  }
  for (said in list(explain(f)[2], explain(total), explain(second))) expect_match(said[1], "float64.*steps")
  expect_identical(explain(f)[1], "gradient:")
  expect_no_match(format(total), "compiled")
  fails <- function(x) if (x[1] > 0) sum(x) else stop("mine")
  for (x in c(1, 2, -1)) try(gradient(fails, x), silent = TRUE)
  expect_match(explain(fails), "the function itself ran at some call: mine", all = FALSE)
})

test_once("side effects of a function happen at every call", {
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

test_once("changes of variables and helpers used by a function are detected", {
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

test_once("gradient(f, x) recognises a function", {
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

test_each("all forms recognise a function: more arguments, lists, matrices of derivatives", {
  y <- c(1, 3, 2)
  curve <- function(p, t, scale = 1) scale * p[1] * exp(-p[[2]] * t)
  loss <- function(p, t, y) sum((curve(p, t) - y)^2)
  in_list <- function(p, t) sum((p$a * exp(-p$b * t) - y)^2)
  p <- c(a = 2, b = 0.5)
  parts <- list(a = 2, b = c(k = 0.5))
  deep <- list(M = matrix(c(1, 2, 3, 4), 2), of = list(a = 2, b = c(k = 0.5, l = 3)))
  nested <- function(p) sum(p$M[1, ]^2) * p$of$a * p$of$b[["l"]]
  in_lists <- function(p) c(u = sum(p$M^2) * p$of$a, v = p$of$b[["k"]]^3)
  t <- c(0, 1, 2)
  calls <- expression(
    gradient(loss, p, t, y), gradient(loss, p, y = y, t = t), gradient(in_list, parts, t), grad(loss, p, t, y),
    grad(loss, p, "simple", t = t, y = y), grad_fn(loss)(p, t, y), value_and_grad(in_list)(parts, t = t),
    hessian(loss, p, t, y), hessian_fn(loss)(p, t, y), hessian(loss, p, t, y, strict = TRUE), jacobian(curve, p, t),
    jacobian(curve, p, t, scale = 3), jacobian(function(p) c(u = p[[1]]^2, v = p[[2]]), p),
    jacobian(function(p) list(u = p^2, v = 1), p), hessian(function(p) p^3, 2), jacobian(function(p) p^3, 2),
    hessian(in_list, parts, t), hessian_fn(in_list)(parts, t), hessian(nested, deep), jacobian(in_lists, deep),
    hessian(function(m) sum(m^3), matrix(c(1, 2, 3, 4), 2)), grad(function(x) x^2, c(1, 2)), objective(loss)$he(p, t, y)
  )
  for (call in calls) {
    once <- eval(call)
    for (i in 1:3) expect_equal(eval(call), once, tolerance = 1e-10, info = deparse1(call))
  }
  made <- list(grad_fn(loss), hessian_fn(loss), objective(loss)$he, function(...) jacobian(curve, ..1, ..2))
  first <- lapply(made, function(f) f(p, t, y))
  for (i in 1:3) expect_equal(lapply(made, function(f) f(p, t, y)), first, tolerance = 1e-10)
  y <- y + 1 # the program of in_list() captured it
  slope <- function(t) 2 * sum((2 * exp(-0.5 * t) - y) * exp(-0.5 * t))
  for (t in list(t, t + 1, t, t + 2, c(t, 5)[-4])) expect_equal(gradient(in_list, parts, t)$a, slope(t))
})

test_once("side effects and arguments of functions with more arguments", {
  local_backend("numpy")
  count <- 0
  counted <- function(p, k) {
    count <<- count + 1
    sum(k * p^2)
  }
  for (i in 1:4) gradient(counted, c(1, 2), 3)
  expect_identical(count, 4)
  said <- function(p, tell) {
    tell()
    sum(p^2)
  }
  for (of in list(gradient, hessian, jacobian, grad)) {
    for (i in 1:3) expect_output(of(said, c(1, 2), function() cat("told")), "told")
    expect_silent(for (i in 1:3) of(said, c(1, 2), function() NULL))
  }
  box <- new.env()
  box$k <- 1
  held <- function(p, box) sum(box$k * p^2)
  for (k in 1:4) {
    box$k <- k
    expect_equal(gradient(held, c(1, 2), box), 2 * k * c(1, 2))
  }
  batch <- function(p, x) sum(x * p^2)
  for (k in 1:6) expect_equal(gradient(batch, c(1, 2), k + 0), 2 * k * c(1, 2))
  again <- getFromNamespace("repeated", "gradops")(batch, "hessian")
  expect_null(again(list(c(1, 2), 3)))
  expect_equal(again(list(c(1, 2), 3))$value, diag(6, 2), ignore_attr = TRUE)
  expect_null(again(list(c(1, 2), 4)))
})

test_once("scopes and other backends run the function itself", {
  local_backend("numpy")
  f <- function(x) sum(log(x))
  derivative <- grad_fn(f)
  for (i in 1:3) derivative(c(1, 2))
  expect_error(with_detect_anomaly(derivative(c(0, NaN))), class = "gradops_error")
  expect_gt(nrow(with_profile(derivative(c(1, 2)))), 1)
  skip_without("torch")
  expect_equal(with_backend("torch", derivative(c(1, 2))), c(1, 0.5))
})

test_once("a repeatedly differentiated function is freed with its environment", {
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
