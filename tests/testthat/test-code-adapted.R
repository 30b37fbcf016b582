# Unchanged R code: the corpus, and how functions are adapted.

for (file in c("filling", "dropping", "deciding", "helpers", "reporting", "models")) {
  test_each(paste("R code as people write it:", file), {
    skip_if_not_installed("numDeriv")
    cases <- corpus(file)
    if (!is_long()) cases <- cases[seq(1, length(cases), 2)]
    expect_identical(unlist(lapply(unname(cases), wrong_with)), NULL)
  })
}

users <- new.env(parent = globalenv())
filling <- evalq(filling <- function(p) {
  h <- numeric(3)
  for (i in 1:3) h[i] <- p[1]^i * p[2]
  sum(h)
}, users)
of_helper <- evalq(of_helper <- function(p) filling(p) + 1, users)
expected <- c(2 * (1 + 4 + 12), 14)

# R compiles functions that are called twice, as it does unless R_ENABLE_JIT says otherwise.
local_jit <- function(envir = parent.frame()) {
  old <- compiler::enableJIT(3)
  withr::defer(compiler::enableJIT(old), envir)
}

test_each("new, warmed-up and byte-compiled functions and their helpers are differentiated", {
  local_jit()
  for (f in list(filling, of_helper, compiler::cmpfun(filling))) {
    expect_equal(gradient(f, c(2, 2)), expected)
    for (i in 1:10) f(c(2, 2))
    expect_equal(gradient(f, c(2, 2)), expected)
  }
  expect_equal(gradient(of_helper, c(2, 2)), expected)
})

test_contract("adaptation leaves no trace after values, errors, jumps and interrupts", {
  here <- environment(filling)
  state <- function() list(search(), ls(here, all.names = TRUE), body(filling), environment(filling))
  before <- state()
  left <- function() {
    expect_identical(gradops:::inside(), 0)
    expect_identical(state(), before)
    h <- numeric(2)
    expect_error(h[1] <- variable(1), "environment")
    expect_true(op_is_tensor(variable(1) > 0))
    expect_identical(as.numeric(variable(1)), 1)
  }
  gradient(filling, c(2, 2))
  left()
  expect_error(gradient(function(p) stop(filling(p)), c(2, 2)), class = "gradops_error_callback")
  left()
  tryCatch(gradient(function(p) { # nolint
    filling(p)
    signalCondition(structure(class = c("mine", "condition"), list(message = "", call = NULL)))
  }, c(2, 2)), mine = function(condition) NULL)
  left()
  (function() gradient(function(p) return(filling(p)), c(2, 2)))()
  left()
  tryCatch(gradient(function(p) rlang::interrupt(), c(2, 2)), interrupt = function(condition) NULL)
  left()
})

test_once("time limits interrupt a derivative with R's own error and restore all state", {
  skip_without("numpy")
  slow <- function(p) {
    s <- 0
    for (i in 1:20000) s <- s + p * i / (1 + i)
    s
  }
  fresh <- function() `environment<-`(slow, new.env()) # a function unknown from earlier calls
  calls <- list(
    gradient = function() gradient(fresh(), 1), value_and_grad = function() value_and_grad(fresh())(1),
    jacobian = function() jacobian(fresh(), 1), hessian = function() hessian(fresh(), 1),
    objective = function() objective(fresh())$gr(1), jit = function() jit(fresh())(1),
    within = function() gradient(function(p) sum(p * gradient(fresh(), 1)), 1),
    reticulate = function() gradient(function(p) sum(op_vectorize(fresh())(p)), c(1, 2))
  )
  said <- gettext("reached elapsed time limit", domain = "R")
  limited <- function(f) {
    on.exit(setTimeLimit())
    tryCatch({
      setTimeLimit(elapsed = 0.1, transient = TRUE)
      f()
    }, error = identity)
  }
  for (name in names(calls)) {
    error <- limited(calls[[name]])
    expect_s3_class(error, "simpleError")
    expect_identical(if (is.list(error)) error$message, said, info = name) # R.utils::withTimeout() inspects the message
    expect_equal(gradient(function(p) sum(p^3), c(1, 2)), c(3, 12))
  }
  handled <- gradient(function(p) {
    tryCatch(limited(function() slow(p)), error = function(error) NULL)
    p^2
  }, 3)
  expect_equal(handled, 6)
})

test_each("nested derivatives and callbacks can fill vectors", {
  expect_equal(hessian(filling, c(2, 2)), rbind(c(2 * (2 + 12), 17), c(17, 0)))
  slope <- function(p) sum(gradient(filling, p)^2)
  expect_equal(gradient(slope, c(2, 2)), as.vector(2 * hessian(filling, c(2, 2)) %*% expected))
  squares <- op_custom_gradient(function(x) {
    out <- numeric(2)
    out[1] <- x[1]^2
    list(out[1], function(upstream) {
      g <- numeric(2)
      g[1] <- upstream * 3
      g[2] <- 0
      g
    })
  })
  expect_equal(gradient(function(p) squares(p), c(2, 2)), c(3, 0))
  expect_equal(gradient(checkpoint(filling), c(2, 2)), expected)
})

test_once("a redefined helper is used", {
  skip_without()
  home <- new.env(parent = globalenv())
  evalq({
    helper <- function(p) p^2
    f <- function(p) sum(helper(p))
  }, home)
  g <- grad_fn(home$f)
  expect_equal(g(3), 6)
  home$helper <- function(p) p^3
  expect_equal(g(3), 27)
  expect_equal(gradient(home$f, 3), 27)
  home$helper <- 5 # not a function
  expect_error(g(3))
})

test_once("variables with names of R functions stay variables", {
  skip_without()
  home <- new.env(parent = globalenv())
  home$f <- function(p) sum(c(p, 1) * dt)
  environment(home$f) <- home
  g <- grad_fn(home$f)
  home$dt <- 0.5
  expect_equal(g(3), 0.5)
  home$c <- function(...) base::c(...) * 2 # a user-defined `c()` is kept
  home$f <- function(p) sum(c(1, 2)) * p
  environment(home$f) <- home
  expect_equal(gradient(home$f, 3), 6)
})

test_once("closure state and outer assignments keep their place", {
  skip_without()
  make <- function() {
    count <- 0
    trace <- numeric(2)
    function(p) {
      count <<- count + 1
      trace[count] <<- as.numeric(op_stop_gradient(p))
      p^2
    }
  }
  f <- make()
  gradient(f, 3)
  gradient(f, 4)
  expect_identical(environment(f)$count, 2)
  expect_identical(as.numeric(environment(f)$trace), c(3, 4))
})

test_once("R's byte compiler still compiles a function after it was differentiated", {
  skip_without()
  local_jit()
  f <- function(p) {
    total <- 0
    for (i in 1:3) total <- total + p^i
    total
  }
  environment(f) <- new.env(parent = globalenv())
  for (i in 1:3) gradient(f, 2)
  for (i in 1:9) f(2)
  expect_true(any(grepl("<bytecode", utils::capture.output(print(f)), fixed = TRUE)))
})

test_each("stopifnot() gives base R's messages", {
  expect_error(gradient(function(p) stopifnot(sum(p) > 5, TRUE), c(1, 2)), "sum(p) > 5 is not TRUE", fixed = TRUE)
  expect_error(gradient(function(p) stopifnot("too small" = all(p > 5)), c(1, 2)), "too small", fixed = TRUE)
  expect_error(gradient(function(p) stopifnot(p > 1), c(1, 2)), "p > 1 are not all TRUE", fixed = TRUE)
})

test_each("comparisons are R logicals with names and NA while differentiating", {
  gradient(function(p) {
    expect_identical(p > 1, c(a = FALSE, b = TRUE, c = NA))
    expect_identical(!(p > 1), c(a = TRUE, b = FALSE, c = NA))
    expect_identical(p == c(1, 2, 3), c(a = TRUE, b = TRUE, c = NA))
    expect_identical(matrix(p, 1) > 1, matrix(c(FALSE, TRUE, NA), 1))
    sum(p)
  }, c(a = 1, b = 2, c = NaN))
  expect_true(op_is_tensor(op_convert_to_tensor(1) > 0))
})

test_contract("a filled vector is a tensor when read: in scopes, in functions called from Python, and afterwards", {
  filled <- function(p) {
    h <- numeric(3)
    h[1] <- p[1]
    for (i in 2:3) h[i] <- h[i - 1] * p[2]
    h
  }
  x <- c(0.5, 0.9)
  slope <- numeric_gradient(function(p) sum(filled(p)^2), x)
  quiet <- function(p) {
    h <- filled(p)
    with_no_grad(sum(h))
    sum(h^2)
  }
  expect_equal(gradient(quiet, x), slope, tolerance = 1e-6)
  scanned <- function(p) {
    h <- filled(p)
    carried <- op_scan(function(carry, x) list(carry + sum(h) * x, x), p[1] * 0, op_convert_to_tensor(c(1, 2)))
    carried[[1]] + sum(h^2)
  }
  total <- function(p) 3 * sum(filled(p)) + sum(filled(p)^2)
  expect_equal(gradient(scanned, x), numeric_gradient(total, x), tolerance = 1e-6)
  stopped <- function(p) {
    h <- filled(p)
    k <- h
    with_stop_gradient(k[3] <- p[1])
    sum(h^2) + sum(k)
  }
  expect_equal(gradient(stopped, x), slope, tolerance = 1e-6)
  expect_error(gradient(function(p) {
    h <- filled(p)
    h[2:3] <- c(p, p)[1:3]
    sum(h)
  }, x), "as many elements as are replaced", class = "gradops_error_axis")
})

test_each("R functions under user-defined names", {
  density_with <- function(link, density) function(p) sum(link(p)) - density(0.3, p[1], log = TRUE)
  links <- list(plogis, normal = stats::pnorm, exp)
  for (link in links) {
    f <- density_with(link, stats::dnorm)
    expect_equal(gradient(f, c(0.1, 0.2)), numeric_gradient(f, c(0.1, 0.2)), tolerance = 1e-6)
  }
  f <- function(p) sum(links[[2]](p)) * links$normal(p[1])
  expect_equal(gradient(f, c(0.1, 0.2)), numeric_gradient(f, c(0.1, 0.2)), tolerance = 1e-6)
  dnorm <- stats::pnorm # named unlike the function
  f <- function(p) sum(dnorm(p))
  expect_equal(gradient(f, c(0.1, 0.2)), stats::dnorm(c(0.1, 0.2)))
})

test_each("R functions accept tensors under any name: arguments, lists, families, strings", {
  home <- new.env(parent = asNamespace("stats")) # like a package's, which does not see gradops
  home$x <- c(0.3, 1.2, 2.1)
  home$y <- c(0, 1, 1)
  home$held <- list(link = stats::plogis, f = stats::pnorm, g = gradops::plogis)
  home$binary <- stats::binomial()
  home$counts <- stats::poisson()
  fs <- evalq(list(
    function(p) sum(vapply(held, function(link) link(p[1] * p[2]), 0)),
    function(p) Reduce(function(value, f) sum(f(value)), held, p),
    function(p) sum(unlist(Map(function(f, v) f(v), held, list(p[1], p[2], 1)))) + sum(Map(held$f, p)[[1]]),
    function(p) sum(do.call(paste0("d", "norm"), list(x, p[1], exp(p[2]), log = TRUE))) + do.call(held$f, list(p[1])),
    function(p) sum(sapply(x, held$f, mean = p[1], sd = exp(p[2]))) + sum(outer(x, p, held$f)),
    function(p) sum(Vectorize(held$f)(x, p[1], exp(p[2]))) + sum(mapply("pnorm", x, p[1])) + p[2],
    function(p) sum((if (length(p) > 1) held$f else identity)(p)) + sum(identity(held$link)(p)),
    function(p) {
      pick <- function(i, otherwise = held$f) if (i == 1) held[[i]] else otherwise
      compose <- function(f, g) function(v) g(f(v))
      sum(compose(pick(1), pick(2))(p)) + sum(match.fun("plogis")(p)) + with(held, sum(link(p)))
    },
    function(p) sum(eval(parse(text = "pnorm(p)"))) + sum(switch("b", a = held$f, b = held$link)(p)),
    function(p) {
      list2env(held, environment())
      sum(link(p) * f(p))
    },
    function(p) {
      eta <- p[1] + p[2] * x
      mu <- binary$linkinv(eta)
      sum(binary$dev.resids(y, mu, rep(1, 3))) + sum(binary$linkfun(mu)) + sum(binary$mu.eta(eta)) +
        sum(counts$dev.resids(y, counts$linkinv(eta), 1))
    }
  ), home)
  for (f in fs) {
    p <- c(0.4, 0.7)
    slope <- function(e) (f(p + e) - f(p - e)) / (2 * sum(e))
    expected <- vapply(list(c(1e-5, 0), c(0, 1e-5)), slope, 0)
    expect_equal(gradient(f, p), expected, tolerance = 1e-7)
    if (backend == "numpy") expect_equal(objective(f, jit = TRUE)$gr(p), expected, tolerance = 1e-7)
  }
})

test_once("compiled C code that receives a tensor is named", {
  skip_without()
  home <- new.env(parent = asNamespace("stats"))
  cases <- list(
    rfilter = evalq(function(p) sum(.Call(C_rfilter, p, 1, 1)), home),
    kmeans_MacQueen = evalq(function(p) .C(C_kmeans_MacQueen, p)[[1L]], home), # it would use the tensor's address
    loess_ifit = function(p) sum(predict(loess(dist ~ speed, cars), p + 10))
  )
  for (name in names(cases)) {
    error <- expect_error(gradient(cases[[name]], c(0.1, 0.2)), class = "gradops_error")
    said <- sprintf("compiled code, `%s`, which takes ordinary R vectors only", name)
    expect_match(conditionMessage(error$parent %||% error), said)
  }
})

test_once("R functions that refer to themselves are adapted", {
  skip_without()
  expect_equal(gradient(function(p) modifyList(list(a = 1), list(a = p))$a^2, 3), 6)
})

test_each("a string equal to the name of a variable that raises stays a string, such as `T` and `F` in R CMD check", {
  home <- new.env()
  makeActiveBinding("F", function() stop("F used instead of FALSE"), home)
  delayedAssign("M", stop("not yet"), assign.env = home)
  size <- evalq(function(x) norm(x, "F") + 0 * norm(x, "M"), home)
  x <- matrix(c(0, 3, 0, 4), 2)
  expect_equal(gradient(size, x), x / 5)
  expect_equal(as.numeric(jit(size)(x)), 5)
})

test_each("code evaluated in a user's environment is adapted there", {
  place <- new.env()
  place$fill <- function(q) {
    out <- numeric(2)
    out[2] <- q^2
    out
  }
  within_it <- list(
    with = function(m) with(assigned(place, m), sum(fill(m)) + m),
    evalq = function(m) evalq(sum(fill(m)) + m, assigned(place, m)),
    eval = function(m) eval(quote(sum(fill(m)) + m), assigned(place, m)),
    assigning = function(m) {
      with(assigned(place, m), {
        z <- c(1, 1)
        z[1] <- m^2
        sum(z) + m
      })
    },
    data = function(m) with(data.frame(a = 1:2), sum(a * m^2) / 3 + m)
  )
  assigned <- function(place, m) {
    place$m <- m
    place
  }
  for (name in names(within_it)) expect_equal(gradient(within_it[[name]], 3), 7, tolerance = 1e-6, info = name)
})

test_each("recursive functions and functions that call another one of the same name are adapted", {
  .hidden <- function(a, n) if (n > 2) exp(a) else .hidden(a, n + 1)
  expect_equal(gradient(function(p) .hidden(p, 0), 0.4), exp(0.4))
  one <- new.env()
  other <- new.env()
  one$f <- eval(quote(function(a, n) if (n > 5) exp(a) else k(a, n + 1)), one)
  other$f <- eval(quote(function(a, n) k(a, n)), other)
  one$k <- eval(quote(function(a, n) f(a, n + 1)), other)
  other$k <- eval(quote(function(a, n) f(a, n)), one)
  expect_equal(gradient(eval(quote(function(p) f(p, 0)), one), 0.4), exp(0.4))
})

test_each("code that a function builds and evaluates for its caller is adapted, as in MASS::fitdistr()", {
  fitted <- function(x, fn, start) {
    call <- quote(stats::optim(par = start, fn = fn, x = x, method = "BFGS"))
    call$start <- NULL
    call$par <- start
    call$x <- x
    call$fn <- fn
    eval.parent(call)$par
  }
  f <- function(p) fitted(c(1, 2, 4) * p, function(par, x) sum((x - par)^2), 1)
  expect_equal(gradient(f, 2), 7 / 3, tolerance = 1e-6)
})
