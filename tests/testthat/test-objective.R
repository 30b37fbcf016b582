banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2

test_each("one evaluation serves fn and gr at the same parameters", {
  noted <- counting(banana)
  o <- objective(noted$f)
  x <- c(a = -1.2, b = 1)
  expect_equal(o$fn(x), 24.2)
  expect_equal(o$gr(x), c(a = -215.6, b = -88))
  expect_equal(noted$calls(), 1)
  expect_equal(o$gr(x + 1), grad(banana, x + 1))
  expect_equal(o$fn(x + 1), banana(unname(x + 1)))
  expect_equal(noted$calls(), 2)
  fits <- noted$calls()
  points <- 0
  fit <- optim(unname(x), \(p) {
    points <<- points + 1
    o$fn(p)
  }, o$gr, method = "L-BFGS-B")
  expect_equal(fit$par, c(1, 1), tolerance = 1e-3)
  expect_lte(noted$calls() - fits, points)
  expect_equal(o$evaluations(), noted$calls())
})

test_each("a stored result is used once, so new data take effect", {
  data <- 1
  o <- objective(\(x) sum((x - data)^2))
  expect_equal(o$fn(c(2, 3)), 5)
  data <- 2
  expect_equal(o$fn(c(2, 3)), 1)
  expect_equal(o$gr(c(2, 3)), c(0, 2))
  data <- 3
  expect_equal(o$gr(c(2, 3)), c(-2, 0))
})

test_each("further arguments are passed on, and part of the cache key", {
  o <- objective(\(p, y, power = 2) sum((y - p)^power))
  expect_equal(o$fn(c(1, 2), y = c(3, 3)), 5)
  expect_equal(o$gr(c(1, 2), y = c(3, 5)), c(-4, -6))
  fit <- optim(c(0, 0), o$fn, o$gr, y = c(1, 4), method = "BFGS")
  expect_equal(fit$par, c(1, 4), tolerance = 1e-6)
  expect_equal(o$fn(c(1, 2), y = c(3, 3), power = 4), 17)
})

test_each("compiled objectives do not run R", {
  noted <- counting(banana)
  o <- objective(noted$f, jit = TRUE)
  fit <- optim(c(-1.2, 1), o$fn, o$gr, method = "BFGS")
  expect_equal(fit$par, c(1, 1), tolerance = 1e-4)
  traces <- noted$calls()
  expect_lte(traces, 2)
  nlminb(c(0, 0), o$fn, o$gr)
  expect_equal(noted$calls(), traces)
  expect_gt(o$evaluations(), 30)
})

test_contract("compiled values and gradients belong to the caller, for any length and form of the parameters", {
  o <- objective(function(x, k = 1) k * sum(x^2) / 2, jit = TRUE)
  at <- function(x, ...) list(o$fn(x, ...), o$gr(x, ...))
  first <- at(c(1, 2))
  expect_identical(at(c(3, 4)), list(12.5, c(3, 4)))
  expect_identical(first, list(2.5, c(1, 2)))
  expect_identical(at(c(1, NaN)), list(NaN, c(1, NaN)))
  expect_identical(at(c(1, -Inf)), list(Inf, c(1, -Inf)))
  expect_equal(at(3), list(4.5, 3))
  expect_equal(at(c(1, 2, 3), 2), list(14, c(2, 4, 6)))
  expect_equal(at(c(a = 1, b = 2)), list(2.5, c(a = 1, b = 2)))
  expect_equal(at(matrix(1:4, 2)), list(15, matrix(1:4, 2) + 0))
  expect_equal(at(c(1, 2)), first)
  rows <- objective(function(x) x[1] * c(1, 2), jit = TRUE)
  for (i in 1:2) expect_equal(list(rows$fn(c(2, 5)), rows$gr(c(2, 5))), list(c(2, 4), cbind(c(1, 2), 0)))
})

test_each("a list of vectors and arrays is compiled as one parameter vector", {
  y <- c(0.3, -1.2, 0.8)
  f <- function(p, k = 1) {
    spread <- exp(p$spread) * length(p$spread)
    named <- p$slopes[["b"]] * 3 + sum(p$slopes * seq_along(p$slopes))
    k * sum((y - p$mean - p$m[2, 1] * named)^2) / spread + p$spread + sum((p$m %*% c(1, 2, 3))^2) + sum(p$m[, 2])
  }
  m <- matrix((1:6) / 7, 2, dimnames = list(NULL, 1:3))
  x <- list(mean = 0.3, m = m, slopes = c(a = 0.1, b = 0.2), spread = -0.2)
  o <- objective(f, jit = TRUE)
  agrees <- function(x, ..., objective = o, of = f) {
    expect_equal(objective$fn(x, ...), of(x, ...))
    expect_equal(objective$gr(x, ...), gradient(function(q) of(q, ...), x))
  }
  agrees(x)
  agrees(x, 2)
  agrees(x[c("spread", "slopes", "m", "mean")])
  y <- c(5, 6, 7) # closed over by the function
  agrees(x)
  x$mean <- 2L
  agrees(x)
  x$slopes <- c(b = 1, a = 2, c = 3)
  agrees(x)
  expect_equal(o$he(x), objective(f)$he(x))
  expect_error(o$fn(replace(x, "mean", "a")), class = "gradops_error")
  expect_match(paste(format(o), collapse = "\n"), "compiled by|float64\\[11\\]")

  code <- function(p) { # R vectors and loops hold tensors
    terms <- numeric(2)
    for (i in 1:2) terms[i] <- p$a[i]^2
    for (v in p$a) terms <- terms + v
    ifelse(p$b > 0, sum(terms) * p$b, p$b)
  }
  looping <- objective(code, jit = TRUE)
  for (b in c(2, -2)) agrees(list(a = c(1, 3), b = b), objective = looping, of = code)

  unnamed <- objective(function(p) sum(p[[1]]) * p[[2]], jit = TRUE)
  expect_identical(unnamed$gr(list(c(1, 2), 3)), list(c(3, 3), 3))
  nested <- objective(function(p) p$a * sum(p$b$c), jit = TRUE)
  expect_equal(nested$gr(list(a = 2, b = list(c = c(1, 2)))), list(a = 3, b = list(c = c(2, 2))))
  rows_of <- function(p) p$a * c(1, 2) + p$b
  rows <- objective(rows_of, jit = TRUE)
  for (i in 1:2) {
    expect_equal(rows$fn(list(a = 2, b = 1)), c(3, 5))
    expect_equal(rows$gr(list(a = 2, b = 1)), objective(rows_of)$gr(list(a = 2, b = 1)))
  }
})

test_each("mutually dependent random effects have the gradient of the integral", {
  distance <- as.matrix(dist(1:8))
  field <- function(p) { # also in scalar code, differentiated for all colours at once
    scale <- exp(p$log_sd) * 1.5
    root <- chol(exp(-p$a * distance))
    z <- backsolve(root, p$u, transpose = TRUE)
    eta <- p$b + scale * p$u
    sum(z^2) / 2 + sum(log(diag(root))) - sum(c(1, 3, 0, 2, 5, 1, 0, 2) * eta - exp(eta)) + p$u[1]^2 * p$a / 9
  }
  o <- objective(field, start = list(b = 0.2, a = 0.7, log_sd = -0.5, u = numeric(8)), random = "u")
  by <- diag(1e-3, 3)
  slopes <- apply(by, 1, function(e) (o$fn(o$par + e) - o$fn(o$par - e)) / 2e-3)
  expect_equal(o$gr(o$par), slopes, tolerance = 1e-6, ignore_attr = TRUE)
})

test_each("nlm() gets its attributes", {
  o <- objective(banana, hessian = TRUE)
  value <- o$nlm(c(-1.2, 1))
  expect_equal(attributes(value), list(gradient = c(-215.6, -88), hessian = matrix(c(1330, 480, 480, 200), 2)))
  fit <- nlm(o$nlm, c(-1.2, 1))
  expect_equal(fit$estimate, c(1, 1), tolerance = 1e-5)
  expect_null(attr(objective(banana)$nlm(c(0, 0)), "hessian"))
})

test_once("printing an objective shows what it holds", {
  skip_without("numpy")
  o <- objective(\(x) sum(x))
  o$fn(1:3)
  expect_output(print(o), "evaluated 1 time>")
  expect_output(print(o), "gr(x, ...)", fixed = TRUE)
  expect_error(objective(1), class = "gradops_error_type")
})

# Real fits ------------------------------------------------------------------------------------------------------------

# Checks that every optimizer reaches a reference estimate from a start.
expect_fits <- function(loss, start, estimate, tolerance = 1e-4, jit = FALSE) {
  o <- objective(loss, jit = jit)
  for_nlm <- objective(loss, jit = jit, hessian = TRUE)$nlm
  named <- function(x) for_nlm(setNames(x, names(start))) # nlm() drops names
  found <- list(
    BFGS = optim(start, o$fn, o$gr, method = "BFGS", control = list(reltol = 1e-14, maxit = 500))$par,
    `L-BFGS-B` = optim(start, o$fn, o$gr, method = "L-BFGS-B", control = list(factr = 10, maxit = 500))$par,
    nlminb = nlminb(start, o$fn, o$gr, o$he)$par,
    nlm = setNames(nlm(named, start, gradtol = 1e-9)$estimate, names(start))
  )
  for (name in names(found)) expect_equal(found[[name]], estimate, tolerance = tolerance, label = name)
  expect_equal(
    optimHess(estimate, o$fn, o$gr), (o$he(estimate) + t(o$he(estimate))) / 2,
    tolerance = 1e-4
  )
  invisible(o)
}

test_each("logistic regression by every optimizer matches glm()", {
  reference <- glm(case ~ parity + spontaneous + induced, binomial, infert, control = glm.control(epsilon = 1e-14))
  X <- model.matrix(reference)
  case <- infert$case
  loss <- function(beta) {
    eta <- X %*% beta
    sum(op_softplus(eta) - case * eta)
  }
  o <- expect_fits(loss, 0 * coef(reference), coef(reference))
  expect_equal(solve(o$he(coef(reference))), vcov(reference), tolerance = 1e-6)
  expect_fits(loss, 0 * coef(reference), coef(reference), jit = TRUE)
})

test_each("negative binomial regression matches MASS::glm.nb()", {
  skip_if_not_installed("MASS")
  reference <- MASS::glm.nb(Days ~ Sex + Age, MASS::quine)
  X <- model.matrix(reference)
  days <- MASS::quine$Days
  estimate <- c(coef(reference), log_theta = log(reference$theta))
  p <- ncol(X)
  loss <- function(b) {
    theta <- exp(b[p + 1])
    mu <- exp(X %*% b[1:p])
    counts <- 0 # lgamma(days + theta) - lgamma(theta), as a sum of logs
    for (k in seq_len(max(days))) counts <- counts + sum(days >= k) * log(theta + k - 1)
    -counts + sum(lgamma(days + 1)) - sum(theta * log(theta / (theta + mu)) + days * log(mu / (theta + mu)))
  }
  start <- setNames(c(2.5, numeric(p)), names(estimate))
  o <- expect_fits(loss, start, estimate, jit = TRUE)
  expect_equal(o$fn(estimate), -as.numeric(logLik(reference)), tolerance = 1e-8)
})

test_each("Weibull survival matches survival::survreg()", {
  skip_if_not_installed("survival")
  lung <- survival::lung
  reference <- survival::survreg(survival::Surv(time, status) ~ sex, lung)
  died <- lung$status == 2
  sex <- lung$sex
  time <- log(lung$time)
  loss <- function(p) {
    z <- (time - p["(Intercept)"] - p["sex"] * sex) / exp(p["log_scale"])
    sum(exp(z)) - sum((z - p["log_scale"]) * died) + sum(time * died)
  }
  estimate <- c(coef(reference), log_scale = log(reference$scale))
  o <- expect_fits(loss, c(`(Intercept)` = 5, sex = 0, log_scale = 0), estimate, tolerance = 1e-3)
  expect_equal(o$fn(estimate), -as.numeric(logLik(reference)[1]), tolerance = 1e-8)
})

test_each("maxLik() accepts values and gradients per observation", {
  y <- c(1.2, 0.7, 3.1, 2.4, 1.9)
  log_density <- function(p, y) -log(2 * pi) / 2 - p[["s"]] - ((y - p[["m"]]) / exp(p[["s"]]))^2 / 2
  o <- objective(log_density)
  at <- c(m = 1, s = 0.2)
  z <- (y - 1) / exp(0.2)
  expect_equal(o$fn(at, y), dnorm(y, 1, exp(0.2), log = TRUE))
  expect_equal(o$gr(at, y), cbind(m = z / exp(0.2), s = z^2 - 1))
  expect_equal(o$he(at, y), hessian(\(p) sum(log_density(p, y)), at))
  skip_if_not_installed("maxLik")
  estimate <- c(m = mean(y), s = log(sqrt(mean((y - mean(y))^2))))
  for (method in c("NR", "BHHH", "BFGS")) {
    fit <- maxLik::maxLik(o$fn, o$gr, if (method == "NR") o$he, start = at, method = method, y = y)
    expect_equal(coef(fit), estimate, tolerance = 1e-3, label = method)
  }
})

test_each("grad_fn(), value_and_grad() and hessian_fn() work with optimizers", {
  f <- function(x, k) sum((x - k)^4) + sum(x^2)
  gradient <- grad_fn(f)
  expect_equal(gradient(c(a = 1, b = 2), k = 1), grad(f, c(a = 1, b = 2), k = 1))
  expect_equal(gradient(k = 1, x = c(1, 2)), gradient(c(1, 2), 1))
  expect_equal(hessian_fn(f)(k = 1, x = c(a = 1, b = 2)), hessian(f, c(a = 1, b = 2), 1))
  expect_equal(hessian_fn(\(k, x) k * sum(x^3), 2)(2, c(1, 2)), diag(c(12, 24)))
  both <- value_and_grad(f)
  fit <- nlminb(c(3, -3), f, gradient, hessian_fn(f), k = 1)
  expect_equal(gradient(fit$par, 1), c(0, 0), tolerance = 1e-5)
  expect_equal(both(c(1, 2), k = 1), list(value = 6, gradient = c(2, 8)))
})

test_once("flags are TRUE or FALSE", {
  nll <- function(b) sum(b^2)
  expect_error(objective(nll, c(0, 0)), "`jit` must be TRUE or FALSE", class = "gradops_error_type")
  expect_error(objective(nll, hessian = NA), "`hessian`", class = "gradops_error_type")
})

test_each("nested parameter lists act as one vector; a missing value that is dropped too late gives a warning", {
  f <- function(p, k = 1) k * (sum(p$a^2 * p$deep$b) + sum(p$deep$m %*% p$deep$more[[1]]) + p$z["u"])
  p <- list(a = c(1, 2), deep = list(b = 3, m = matrix(1:4 / 3, 2), more = list(c(0.5, 0.2))), z = c(u = 1L, w = 2L))
  compiled <- objective(f, jit = TRUE)
  eager <- objective(f)
  for (k in 1:2) {
    expect_equal(compiled$fn(p, k), eager$fn(p, k))
    expect_equal(compiled$gr(p, k), eager$gr(p, k))
    p$deep$more[[1]] <- c(1, 3)
  }
  several <- function(p) p$deep$b * p$a
  expect_equal(objective(several, jit = TRUE)$gr(p), objective(several)$gr(p))
  y <- c(1, NA, 3)
  expect_silent(known <- objective(function(m) sum((y - m)^2, na.rm = TRUE))$gr(0))
  expect_equal(known, -8)
  lost <- function(m) sum(log(m - c(1, 3)) * m, na.rm = TRUE) # missing for other reasons
  expect_warning(objective(lost)$gr(2), class = "gradops_warning_gradient")
  expect_silent(known <- objective(function(m) sum(dnorm(y, m, log = TRUE), na.rm = TRUE))$gr(0))
  expect_equal(known, 4)
})

# Runs calls of compiled objectives whose programs are purely native; any call of Python is an error.
without_python <- function(code) {
  namespace <- asNamespace("gradops")
  original <- namespace$py_call_list
  rlang::env_binding_unlock(namespace, "py_call_list")
  assign("py_call_list", function(...) stop("Python was called"), namespace)
  on.exit({
    assign("py_call_list", original, namespace)
    rlang::env_binding_lock(namespace, "py_call_list")
  })
  code
}

# Returns a compiled objective that was called often enough to need Python no longer.
settled <- function(f, x, ...) {
  o <- objective(f, jit = TRUE)
  for (i in 1:4) {
    o$fn(x, ...)
    o$gr(x, ...)
    o$fn(x + i, ...)
  }
  o
}

# Checks values, gradients and warnings of a settled objective against a new one.
expect_as_new <- function(o, f, x, ...) {
  heard <- function(o) {
    warnings <- character()
    found <- withCallingHandlers(list(o$fn(x, ...), o$gr(x, ...)), warning = function(w) {
      warnings <<- c(warnings, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
    list(found, sort(warnings))
  }
  expect_identical(heard(o), heard(objective(f, jit = TRUE)))
}

test_once("later calls of native programs need no Python, and give the same results", {
  skip_if_not(reticulate::py_module_available("llvmlite"))
  local_backend("numpy")
  old <- config_set_check("sample")
  withr::defer(config_set_check(old))
  walk <- function(p, k = 1) {
    total <- 0
    for (i in 1:3) total <- total * exp(-p[1]) + k * sin(i * p[2])
    total + p[3] * sqrt(p[1])
  }
  x <- c(0.5, 0.2, 3)
  o <- settled(walk, x)
  for (point in list(x, 3 * x, x / 7)) expect_equal(without_python(o$gr(point)), gradient(walk, point))
  for (point in list(x, c(NA, Inf, 2), c(0, 1, 2), c(-800, 1, 2), c(800, 1, 2))) {
    expect_as_new(o, walk, point)
  }
  for (point in list(c(x, 4), 1:3, matrix(x, 1), c(a = 1, b = 2, c = 3))) expect_as_new(o, walk, point)
  expect_identical(o$fn(x[1:2]), NaN)
  expect_error(o$fn(c("a", "b", "c")), class = "gradops_error")

  named <- settled(walk, c(a = 1, b = 2, c = 3))
  expect_named(without_python(named$gr(c(a = 2, b = 2, c = 3))), c("a", "b", "c"))
  expect_as_new(named, walk, c(b = 2, a = 1, c = 3))
  expect_as_new(named, walk, x)
  more <- settled(walk, x, 2)
  expect_equal(without_python(more$fn(x + 1, 3)), walk(x + 1, 3))
  expect_as_new(more, walk, x, k = 3)
  alone <- settled(function(p) exp(p) * p^3, 0.5)
  expect_equal(without_python(alone$gr(2)), 20 * exp(2))
  sides <- function(p) if (p[1] > 0) sum(p^3) else p[2] * p[1]
  both <- settled(sides, c(1, 2))
  expect_equal(without_python(both$gr(c(2, 3))), c(12, 27))
  expect_as_new(both, sides, c(-2, 3))
  expect_as_new(both, sides, c(2, 3))
})

test_once("native programs without Python react to changes around them", {
  skip_if_not(reticulate::py_module_available("llvmlite"))
  local_backend("numpy")
  old <- config_set_check("sample")
  withr::defer(config_set_check(old))
  y <- c(1, 2, 3)
  squares <- function(p) {
    total <- 0
    for (v in y) total <- total + (v * p[1] - p[2])^2
    total
  }
  x <- c(1, 0.1)
  o <- settled(squares, x)
  y[2] <- 5
  expect_as_new(o, squares, x)
  expect_equal(o$fn(x), squares(x))
  outer <- function() {
    inner <- settled(squares, x)
    y <<- c(7, 8)
    expect_equal(inner$fn(x), squares(x))
    inner
  }
  o <- outer()
  rm(y)
  expect_error(o$fn(x))
  y <- 1:2
  expect_equal(o$fn(x), squares(x))

  home <- new.env()
  nearer <- new.env(parent = home)
  home$w <- 2
  scaled <- function(p) {
    for (i in 1:5) p <- w * c(p[1]^2, p[2]) / i
    p[1] + p[2]
  }
  environment(scaled) <- nearer
  o <- settled(scaled, x)
  expect_equal(without_python(o$fn(c(3, 4))), scaled(c(3, 4)))
  nearer$w <- 3
  expect_equal(o$fn(c(3, 5)), scaled(c(3, 5)))

  o <- settled(squares, x)
  config_set_floatx("float32")
  single <- o$gr(c(1 / 3, 0.1))
  expect_identical(single, objective(squares, jit = TRUE)$gr(c(1 / 3, 0.1)))
  config_set_floatx("float64")
  expect_false(identical(o$gr(c(1 / 3, 0.1)), single))
  for (i in 1:9) o$fn(x + i)
  expect_equal(without_python(o$fn(x)), squares(x)) # works again once the state is restored
  rows <- profile_call(for (i in 1:3) o$fn(x + i))
  expect_as_new(o, squares, x)

  of_other <- function(p) sum(p^2) * o$fn(x)
  expect_equal(gradient(of_other, c(1, 2)), c(2, 4) * squares(x))
  expect_equal(settled(of_other, c(1, 2))$gr(c(3, 4)), c(6, 8) * squares(x))
  found <- unserialize(serialize(o, NULL))
  expect_equal(found$gr(x), o$gr(x))
  for (i in 1:9) found$fn(x + i)
  expect_equal(found$fn(x), squares(x))
  rm(o, found)
  gc()
  py <- reticulate::import("gc", convert = FALSE)
  py$collect()
  expect_equal(settled(squares, x)$fn(x), squares(x))
})

test_once("a value computed before the data changed is not returned after the change", {
  for (jit in c(TRUE, FALSE)) {
    for (x in list(c(1, 2), list(a = 1, b = 2))) {
      users <- list2env(list(rate = 0.3), parent = globalenv())
      o <- objective(rlang::new_function(alist(p = ), quote(rate * p[[1]]^2 + p[[2]]), users), jit = jit)
      for (i in 1:3) { # from the second evaluation on by a program
        o$gr(x)
        users$rate <- users$rate + 1
        expect_equal(o$fn(x), users$rate + 2)
        users$rate <- users$rate + 1
        expect_equal(unlist(o$gr(x), use.names = FALSE), c(2 * users$rate, 1))
      }
    }
  }
})

test_once("loops and branches in an objective read parts of the parameters", {
  p <- list(w = c(0.2, 0.5), x = rep(0.1, 6))
  bodies <- list(
    vmap = list(function(p) sum(vmap(function(v) v^2 * p$w[1])(p$x)), 0.012),
    scan = list(function(p) sum(op_scan(function(a, v) list(a + v * p$w[1], a + v * p$w[1]), 0, p$x)[[2]]), 0.42),
    cond = list(function(p) op_cond(sum(p$x) > 0, function() sum(p$x) * p$w[1], function() p$w[2]), 0.12),
    loop = list(function(p) op_fori_loop(1L, 7L, function(i, a) a + p$w[1], 0) + p$w[1], 1.4)
  )
  for (name in names(bodies)) {
    f <- bodies[[name]][[1]]
    obj <- objective(f, start = p)
    at <- unlist(p)
    expect_equal(obj$fn(at), bodies[[name]][[2]], info = name)
    differences <- vapply(seq_along(at), function(i) (obj$fn(at + 1e-5 * (seq_along(at) == i)) - obj$fn(at)) / 1e-5, 0)
    expect_equal(as.vector(obj$gr(at)), differences, tolerance = 1e-4, info = name)
  }
})
