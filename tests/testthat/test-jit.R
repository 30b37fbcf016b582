test_once("printing shows what was compiled, and what runs natively", {
  skip_if(config_backend() != "numpy", "native code is NumPy's")
  f <- jit(function(x) {
    for (i in 1:20) x <- x * 1.5 - i
    op_ldexp(x, 1:2)
  })
  expect_output(print(f), "compiled function.*first call")
  f(c(1, 2))
  expect_output(print(f), "float64\\[2\\].*: 4[0-9] steps")
  skip_if_not(reticulate::py_module_available("llvmlite"))
  expect_output(print(f), "native in 1 run")
  expect_output(print(f), "ldexp: the machine has no such operation")
  o <- objective(function(x) sum(x^2), jit = TRUE)
  o$fn(1)
  expect_output(print(o), "compiled, evaluated 1 time.*native")
})

test_once("explain() says why a function was traced again", {
  users <- list2env(list(rate = 0.1), parent = globalenv()) # the code of this file is not adapted
  f <- jit(rlang::new_function(alist(x = ), quote(if (sum(x) > 0) sum(rate * x) else 0), users))
  reasons <- function(x) sub("^  - ", "", grep("^  - ", explain(x), value = TRUE))
  f(c(1, 2))
  expect_equal(reasons(f), character())
  f(c(-1, -2))
  users$rate <- 0.2
  f(c(1, 2))
  f(c(1, 2, 3))
  f(c(a = 1, b = 2))
  expect_equal(reasons(f), c(
    "another branch at `if (sum(x) > 0) ...` (TRUE before, FALSE now)",
    "`rate` changed from 0.1 to 0.2",
    "new shape: `x` was float64[2] and is float64[3]",
    "the names or attributes of arguments have changed"
  ))
  o <- objective(rlang::new_function(alist(p = ), quote(sum(rate * p^2)), users), jit = TRUE)
  o$gr(c(1, 2))
  users$rate <- 1
  o$gr(c(1, 2))
  expect_equal(reasons(o), "`rate` changed from 0.2 to 1.0")
  expect_output(print(explain(o)), "traced 2 times")
  expect_error(explain(sum), "compiled function or objective", class = "gradops_error_type")
})

test_once("explain() tells how the derivatives of a likelihood were compiled", {
  skip_if(config_backend() != "numpy", "native code is NumPy's")
  y <- c(1, 2, 4)
  nll <- function(p) sum((y - p$u)^2) + sum((p$u - p$a)^2)
  for (random in list(NULL, "u")) {
    o <- objective(nll, start = list(a = 0, u = y), random = random)
    expect_match(explain(o), "not compiled yet")
    o$gr(o$par)
    expect_match(explain(o), "float64")
  }
})

test_contract("R runs to trace, once per signature", {
  noted <- counting(\(x) sum(exp(x)^2))
  f <- jit(noted$f)
  for (x in list(c(1, 2), c(3, 4), c(-1, 0))) expect_equal(f(x), sum(exp(2 * x)))
  expect_equal(noted$calls(), 1)
  expect_equal(f(c(1, 2, 3)), sum(exp(2 * 1:3)))
  expect_equal(noted$calls(), 2)
  both <- counting(\(x) sum(x^3))
  compiled <- jit(value_and_grad(both$f))
  for (x in list(c(1, 2), c(3, 4))) expect_equal(compiled(x), list(value = sum(x^3), gradient = 3 * x^2))
  traces <- both$calls()
  compiled(c(5, 6))
  expect_equal(both$calls(), traces)
})

test_each("new data are used: reassigned variables, also of called functions", {
  X <- matrix(c(1, 2, 3, 4), 2)
  shift <- 1
  helper <- function(x) X %*% x + shift
  noted <- counting(function(x) sum(helper(x)))
  f <- jit(function(x) noted$f(x))
  g <- jit(function(x) sum(helper(x)))
  x <- c(1, -1)
  expect_equal(f(x), sum(X %*% x + shift))
  expect_equal(g(x), sum(X %*% x + shift))
  X[1, 1] <- 10
  expect_equal(g(x), sum(X %*% x + shift))
  shift <- 5
  expect_equal(g(x), sum(X %*% x + shift))
  helper <- function(x) X %*% x * 2
  expect_equal(g(x), sum(X %*% x * 2))
  k <- 2
  h <- jit(value_and_grad(\(x) sum(x^k)))
  expect_equal(h(x)$gradient, 2 * x)
  k <- 3
  expect_equal(h(x)$gradient, 3 * x^2)
})

test_once("a closed-over list may hold an empty argument, as formals do", {
  held <- list(k = 2, formals = as.list(formals(function(a, b) NULL)))
  expect_identical(objective(function(x) sum(x^2) * held$k, jit = TRUE)$gr(c(1, 3)), c(4, 12))
})

test_each("local variables do not cause a new trace", {
  i <- 0
  noted <- counting(function(x) {
    for (i in 1:2) x <- x * i
    total <- sum(x)
    add <- function() total <<- total * 1
    add()
    total
  })
  f <- jit(noted$f)
  for (i in 1:3) expect_equal(f(c(1, i)), 2 * (1 + i))
  total <- 7
  f(c(1, 2))
  expect_equal(noted$calls(), 1)
})

test_each("a variable named like a called function causes no new trace; a redefined function does", {
  t <- 1
  noted <- counting(function(x) sum(t(x)[1, ] * 2))
  f <- jit(noted$f)
  for (i in 1:3) {
    t <- i
    expect_equal(f(matrix(c(1, i), 1)), 2)
  }
  expect_equal(noted$calls(), 1)
  read <- jit(function(x) sum(t(x)) * t)
  expect_equal(read(matrix(1)), 3)
  t <- 4
  expect_equal(read(matrix(1)), 4)
  named <- jit(function(x) sum(t(x)) * get("t"))
  expect_equal(named(matrix(1)), 4)
  t <- 5
  expect_equal(named(matrix(1)), 5)
  shift <- function(x) x + 1
  shifted <- jit(function(x) sum(shift(x)))
  expect_equal(shifted(1), 2)
  local({
    shift <- 2
    expect_equal(shifted(1), 2)
  })
  shift <- function(x) x + 2
  expect_equal(shifted(1), 3)
})

test_each("argument names are part of the signature", {
  f <- jit(\(p) p["a"] - p["b"])
  expect_equal(f(c(a = 5, b = 2)), 3)
  expect_equal(f(c(b = 5, a = 2)), -3)
})

test_each("named lists keep their order, as arguments and results", {
  f <- jit(\(p) list(z = p$y * 2, a = p$b + 1, m = list(2 * p$b, q = p$y)))
  for (p in list(list(y = c(1, 2), b = 3), list(y = c(4, 5), b = 6))) {
    expect_equal(f(p)[c("z", "a")], list(z = p$y * 2, a = p$b + 1))
    expect_equal(names(f(p)), c("z", "a", "m"))
  }
  parts <- jit(grad_fn(\(p) sum(p$w^2) * p$b))(list(w = c(1, 2), b = 3))
  expect_equal(parts, list(w = c(6, 12), b = 5))
})

test_contract("random numbers are errors", {
  expect_error(jit(\(x) x + rnorm(2))(c(1, 2)), "random numbers", class = "gradops_error_jit")
  f <- jit(\(x) x + sample(2))
  expect_error(f(c(1, 2)), class = "gradops_error_jit")
  expect_error(f(c(1, 2)), class = "gradops_error_jit") # and not a wrong result the second time
  expect_error(objective(\(x) sum(x) * runif(1), jit = TRUE)$fn(1), class = "gradops_error_jit")
  expect_error(jit("f"), class = "gradops_error_type")
})

test_each("variables are looked up again where a nearer one may appear", {
  model <- local({
    scale <- 2
    function(x) sum(x * later) * scale
  }, envir = list2env(list(later = 3), parent = globalenv()))
  outer <- environment(model)
  f <- jit(model)
  expect_equal(as.numeric(f(c(1, 1))), 12)
  outer$later <- 4
  expect_equal(as.numeric(f(c(1, 1))), 16)

  home <- new.env(parent = outer) # a nearer variable of the same name appears here
  environment(model) <- home
  f <- jit(model)
  expect_equal(as.numeric(f(c(1, 1))), 16)
  home$later <- 10
  expect_equal(as.numeric(f(c(1, 1))), 40)

  of_package <- new.env(parent = globalenv())
  heights <- function(x) sum((women$height - x)^2) + pi
  environment(heights) <- of_package
  o <- objective(heights, jit = TRUE)
  expect_equal(o$fn(60), sum((women$height - 60)^2) + pi)
  of_package$women <- data.frame(height = c(61, 62))
  expect_equal(o$fn(60), 5 + pi)
  of_package$pi <- 0
  expect_equal(o$fn(60), 5)

  weights <- list2env(list(hidden_weight = 2))
  attach(weights, name = "weights", warn.conflicts = FALSE)
  withr::defer(detach("weights", character.only = TRUE))
  weighted <- function(x) sum(x) * hidden_weight
  environment(weighted) <- globalenv()
  o <- objective(weighted, jit = TRUE)
  expect_equal(o$fn(3), 6)
  detach("weights", character.only = TRUE)
  attach(list(hidden_weight = 5), name = "weights", warn.conflicts = FALSE)
  expect_equal(o$fn(3), 15)
})

test_each("writes to environments are detected", {
  agrees <- function(f, ...) {
    compiled <- jit(f)
    expect_equal(as.numeric(compiled(c(1, 2))), f(c(1, 2)))
    for (change in list(...)) {
      before <- f(c(1, 2))
      change()
      expect_false(isTRUE(all.equal(f(c(1, 2)), before)))
      expect_equal(as.numeric(compiled(c(1, 2))), f(c(1, 2)))
    }
  }
  e <- list2env(list(w = 2, inner = list2env(list(v = c(1, 2)))))
  agrees(function(x) sum(x * e$w), \() e$w <- 5)
  agrees(function(x) sum(x * e$inner$v), \() e$inner$v[1] <- 5, \() e$inner <- list2env(list(v = 4)))
  agrees(function(x) sum(x) * length(ls(e)), \() e$other <- 1, \() rm("other", envir = e))
  l <- list(net = e)
  agrees(function(x) sum(x * l$net$w), \() e$w <- 7)

  skip_if_not_installed("R6")
  Net <- R6::R6Class("Net",
    public = list(w = 1, predict = function(x) x * self$w * private$rate, set = function(r) private$rate <- r),
    private = list(rate = 1), active = list(now = function() Sys.time())
  )
  Deep <- R6::R6Class("Deep", inherit = Net, public = list(predict = function(x) 2 * super$predict(x)))
  for (net in list(Net$new(), Deep$new())) {
    agrees(function(x) sum(net$predict(x)), \() net$w <- 3, \() net$set(4))
  }
  fields <- list(slope = "numeric")
  Line <- setRefClass("Line", fields, methods = list(at = function(x) slope * x), where = globalenv())
  withr::defer(removeClass("Line", where = globalenv()))
  line <- Line$new(slope = 2)
  agrees(function(x) sum(line$at(x)), \() line$slope <- 5)

  noted <- counting(function(x) sum(net$predict(x)) * e$w)
  counted <- jit(noted$f)
  for (i in 1:3) counted(c(1, 2))
  expect_equal(noted$calls(), 1)
})

test_each("static arguments", {
  noted <- counting(\(x, power, name) sum(x^power) * nchar(name))
  f <- jit(noted$f, static_argnums = 2:3)
  expect_equal(as.numeric(f(c(1, 2), 2, "ab")), 10)
  expect_equal(as.numeric(f(c(3, 4), 2, "ab")), 50)
  expect_equal(noted$calls(), 1)
  expect_equal(as.numeric(f(c(1, 2), 3, "a")), 9)
  expect_equal(noted$calls(), 2)
})

test_contract("compiled functions are differentiable", {
  f <- jit(\(x) sum(exp(x)))
  f(c(1, 2))
  expect_equal(grad(f, c(a = 1, b = 2)), c(a = exp(1), b = exp(2)))
})

test_contract("a loop by op_scan() compiles with its gradient, whatever it closes over", {
  y <- c(0.5, -1, 2, 1.5, 0.3, -0.7)
  f <- function(p) {
    q <- exp(p[1])
    step <- function(state, value) {
      P <- state$P + q
      K <- P / (P + exp(p[2]))
      a <- state$a + K * (value - state$a)
      list(list(a = a, P = P * (1 - K)), (value - a)^2)
    }
    sum(op_scan(step, list(a = 0, P = 10), y)[[2]])
  }
  by_hand <- function(p) {
    a <- 0
    P <- 10
    total <- 0
    for (value in y) {
      P <- P + exp(p[1])
      K <- P / (P + exp(p[2]))
      a <- a + K * (value - a)
      P <- P * (1 - K)
      total <- total + (value - a)^2
    }
    total
  }
  o <- objective(f, jit = TRUE)
  for (p in list(c(-1, 0.3), c(0.2, -0.4))) {
    expect_equal(o$fn(p), by_hand(p))
    expect_equal(o$gr(p), gradient(by_hand, p))
    slope <- function(d) (by_hand(p + d) - by_hand(p - d)) / 2e-5
    expect_equal(o$gr(p), c(slope(c(1e-5, 0)), slope(c(0, 1e-5))), tolerance = 1e-6)
  }
})

test_once("a loop by op_fori_loop() is one step unless its function depends on the counter", {
  skip_without()
  local_backend("numpy")
  y <- sin(1:200)
  f <- function(p) op_fori_loop(0L, 200L, function(i, s) tanh(s * p[1] + op_take(y, i + 1L) * p[2]), 0.5)
  by_hand <- function(p) Reduce(function(s, v) tanh(s * p[1] + v * p[2]), y, 0.5)
  o <- objective(f, jit = TRUE)
  expect_equal(o$fn(c(0.5, 0.3)), by_hand(c(0.5, 0.3)))
  expect_equal(o$gr(c(0.5, 0.3)), gradient(by_hand, c(0.5, 0.3)))
  compiled <- jit(f)
  compiled(c(0.5, 0.3))
  expect_output(print(compiled), ": [0-9] steps?, [0-9] native")
  looks <- jit(\(p) op_fori_loop(0L, 6L, \(i, s) if (as.numeric(i) %% 2 == 0) s * p else s + 1, 1))
  expect_equal(as.numeric(looks(2)), 15)
})

test_contract("value-dependent branches and loops compile", {
  skip_if(config_backend() == "torch", "its traced graph has no branches")
  f <- function(x) op_cond(sum(x) > 1, function() sum(log(x)), function() sum(x^2))
  df <- jit(grad_fn(f))
  expect_equal(as.numeric(df(c(1, 2))), c(1, 0.5))
  expect_equal(as.numeric(df(c(-1, 0.5))), c(-2, 1))
  double <- jit(function(x) op_while_loop(function(v) v < 100, function(v) list(v * 2), list(x))[[1]])
  expect_equal(as.numeric(double(3)), 192)
  expect_equal(as.numeric(double(60)), 120)
})

test_once("a loop body with side effects is called at each step, uncompiled", {
  skip_without()
  local_backend("numpy")
  count <- 0
  step <- function(state, value) {
    count <<- count + 1
    list(state * value + count, NULL)
  }
  f <- jit(function(x) op_scan(step, x, c(1, 2, 3, 4, 5))[[1]])
  expect_equal(f(2), Reduce(function(s, i) s * i + i, 1:5, 2))
  expect_warning(f(2), "changes `count`", class = "gradops_warning_jit")
  expect_equal(count, 10)
})

# Returns the values of `f` at each call; `change(i)` runs before the i-th.
called <- function(f, change, times = 4) {
  vapply(seq_len(times), function(i) {
    change(i)
    as.numeric(f(c(1, 2)))
  }, 0)
}

test_each("side effects of a compiled function happen once per call, as in R", {
  count <- 0
  mean_so_far <- 0
  seen <- list2env(list(n = 0))
  cases <- list(
    count = function(p) {
      count <<- count + 1
      count * sum(p)
    },
    mean_so_far = function(p) {
      mean_so_far <<- 0.9 * mean_so_far + 0.1 * mean(p)
      mean_so_far * sum(p)
    },
    "n" = function(p) {
      seen$n <- seen$n + 1
      seen$last <- seen$n
      seen$last * sum(p)
    },
    count = function(p) {
      assign("count", count + 2, inherits = TRUE)
      count * sum(p)
    }
  )
  for (i in seq_along(cases)) {
    again <- function() {
      count <<- mean_so_far <<- seen$n <<- 0
      rm(list = intersect("last", ls(seen)), envir = seen)
    }
    again()
    by_r <- vapply(1:4, function(n) cases[[i]](c(1, 2)), 0)
    again()
    f <- jit(cases[[i]])
    expect_warning(values <- called(f, identity), names(cases)[i], class = "gradops_warning_jit")
    expect_equal(values, by_r)
    expect_match(format(f)[2], paste0("it changes .*", names(cases)[i]))
    if (names(cases)[i] == "mean_so_far" && backend == "jax") next # its derivatives let no value out
    again()
    expect_warning(values <- called(objective(cases[[i]], jit = TRUE)$fn, identity), class = "gradops_warning_jit")
    expect_equal(values, by_r)
  }
})

test_each("a side effect in the first call only does not prevent compilation", {
  cache <- NULL
  noted <- counting(function(p) {
    if (is.null(cache)) cache <<- 3
    cache * sum(p)
  })
  f <- jit(noted$f)
  expect_no_warning(expect_equal(called(f, identity), c(9, 9, 9, 9)))
  calls <- noted$calls()
  expect_equal(called(f, identity), c(9, 9, 9, 9))
  expect_equal(noted$calls(), calls)
  cache <- 4
  expect_equal(as.numeric(f(c(1, 2))), 12)
})

test_each("options and environment variables are read at each call, also in helpers, rules and inner functions", {
  withr::local_options(gradops_test = 1)
  withr::local_envvar(GRADOPS_TEST = "1")
  option <- function() getOption("gradops_test", 7)
  variable_set <- function(i) Sys.setenv(GRADOPS_TEST = i)
  option_set <- function(i) options(gradops_test = if (i < 4) i)
  expect_equal(called(jit(function(p) option() * sum(p)), option_set), 3 * c(1, 2, 3, 7))
  among_all <- jit(function(p) options()$gradops_test * sum(p))
  expect_equal(called(among_all, function(i) options(gradops_test = i)), 3 * 1:4)
  read <- function(p) as.numeric(Sys.getenv("GRADOPS_TEST")) * sum(p)
  expect_equal(called(jit(read), variable_set), 3 * 1:4)
  inner <- jit(read)
  inner(c(1, 2))
  expect_equal(called(jit(function(p) inner(p) + 1), variable_set), 3 * 1:4 + 1)
  rules <- list(
    op_custom_gradient(function(x) list(x^2, function(upstream) upstream * option())),
    op_custom_gradient(function(x) x^2, function(x, upstream) upstream * option())
  )
  for (rule in rules) {
    slope <- jit(grad_fn(function(p) sum(rule(p))))
    expect_equal(called(function(p) slope(p)[1], option_set), c(1, 2, 3, 7))
    o <- objective(function(p) sum(rule(p)), jit = TRUE)
    expect_equal(called(function(p) o$gr(p)[1], option_set), c(1, 2, 3, 7))
  }
})

test_each("side effects, random numbers and times in rules", {
  count <- 0
  rule <- op_custom_gradient(function(x) {
    list(x^2, function(upstream) {
      count <<- count + 1
      upstream * count
    })
  })
  slope <- jit(grad_fn(function(p) sum(rule(p))))
  expect_warning(values <- called(function(p) slope(p)[1], identity), "`count`", class = "gradops_warning_jit")
  expect_equal(values, 1:4)
  drawing <- op_custom_gradient(function(x) list(x^2, function(upstream) upstream * rnorm(1)))
  expect_error(jit(grad_fn(function(p) sum(drawing(p))))(c(1, 2)), "random numbers", class = "gradops_error_jit")
  late <- op_custom_gradient(function(x) list(x^2, function(upstream) upstream * as.numeric(Sys.time())))
  expect_error(jit(grad_fn(function(p) sum(late(p))))(c(1, 2)), "Sys.time()", class = "gradops_error_jit", fixed = TRUE)
})

test_each("reading the time is an error in compiled functions only", {
  now <- list(
    function() as.numeric(Sys.time()), function() as.numeric(Sys.Date()), function() proc.time()[["user.self"]]
  )
  for (now in now) {
    f <- function(p) sum(p) + 0 * now()
    expect_error(jit(f)(c(1, 2)), "was traced", class = "gradops_error_jit")
    expect_equal(objective(f)$fn(c(1, 2)), 3)
    expect_type(now(), "double")
  }
  expect_error(jit(function(p) sum(p) * nchar(date()))(c(1, 2)), "`date()`", class = "gradops_error_jit", fixed = TRUE)
})

test_each("active bindings, computed names and global assignments are read at each call", {
  k1 <- 1
  makeActiveBinding("active", function() k1 + 1, environment())
  expect_equal(called(jit(function(p) active * sum(p)), function(i) k1 <<- i), 3 * 2:5)
  expect_equal(called(jit(function(p) get(paste0("k", 1)) * sum(p)), function(i) k1 <<- i), 3 * 1:4)
  expect_equal(called(jit(function(p) get("k1") * sum(p)), function(i) k1 <<- i), 3 * 1:4)
  withr::defer(rm("gradops_test", envir = globalenv()))
  set <- function(i) assign("gradops_test", i, globalenv())
  expect_equal(called(jit(function(p) .GlobalEnv$gradops_test * sum(p)), set), 3 * 1:4)
})
