banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2
banana_gradient <- function(x) c(-400 * x[1] * (x[2] - x[1]^2) - 2 * (1 - x[1]), 200 * (x[2] - x[1]^2))

test_contract("grad_fn() and value_and_grad() take and return R numerics", {
  x <- c(-1.2, 1)
  expect_equal(grad_fn(banana)(x), banana_gradient(x))
  expect_equal(value_and_grad(banana)(x), list(value = banana(x), gradient = banana_gradient(x)))
  expect_equal(gradient(banana, x), banana_gradient(x))
})

test_each("grad(), jacobian() and hessian() without an evaluation point return functions", {
  x <- c(-1.2, 1)
  expect_equal(grad(banana)(x), banana_gradient(x))
  expect_equal(hessian(banana)(x), hessian(banana, x))
  expect_equal(jacobian(\(x, k) x^k, strict = TRUE)(x, 3), diag(3 * x^2))
  expect_error(hessian(3), "`func` must be a function", class = "gradops_error_type")
})

test_once("an old name warns once", {
  skip_without()
  withr::local_options(lifecycle_verbosity = "default")
  expect_warning(both <- value_and_grad_fn(banana), class = "lifecycle_warning_deprecated", "value_and_grad\\(\\)")
  expect_no_warning(value_and_grad_fn(banana))
  expect_equal(both(c(-1.2, 1)), value_and_grad(banana)(c(-1.2, 1)))
})

test_each("gradients have the dim and names of the input", {
  squares <- grad_fn(\(x) sum(x^2))
  expect_identical(squares(3), 6)
  expect_identical(squares(3L), 6)
  expect_equal(squares(c(a = 1, b = 2)), c(a = 2, b = 4))
  m <- matrix(1:6, 2, dimnames = list(c("a", "b"), NULL))
  expect_equal(squares(m), 2 * m)
  expect_equal(squares(array(1:24, 2:4)), array(2 * 1:24, 2:4))
  parts <- list(w = c(1, 2), b = 3)
  expect_equal(grad_fn(\(p) sum(p$w^2) * p$b)(parts), list(w = c(6, 12), b = 5))
})

test_each("several arguments, auxiliary outputs, tensors", {
  f <- function(x, y) sum(x * y^2)
  expect_equal(grad_fn(f, 2)(c(1, 2), c(3, 4)), c(6, 16))
  expect_equal(grad_fn(f, 1:2)(c(1, 2), c(3, 4)), list(c(9, 16), c(6, 16)))
  with_aux <- value_and_grad(\(x) list(sum(x^2), x + 1), has_aux = TRUE)(c(1, 2))
  expect_equal(with_aux$value, 5)
  expect_equal(with_aux$gradient, c(2, 4))
  expect_equal(as.numeric(with_aux$aux), c(2, 3))
  tensor <- grad_fn(\(x) sum(x^2))(op_convert_to_tensor(c(1, 2)))
  expect_true(op_is_tensor(tensor))
  expect_equal(as.numeric(tensor), c(2, 4))
})

test_each("optim() and nlminb() find a minimum", {
  both <- value_and_grad(banana)
  fit <- optim(c(-1.2, 1), \(x) both(x)$value, grad_fn(banana), method = "BFGS", control = list(reltol = 1e-14))
  expect_equal(fit$par, c(1, 1), tolerance = 1e-6)
  fit <- nlminb(c(-1.2, 1), \(x) both(x)$value, \(x) both(x)$gradient)
  expect_equal(fit$par, c(1, 1), tolerance = 1e-6)
})

test_each("logistic regression agrees with glm()", {
  formula <- case ~ age + parity + spontaneous + induced
  X <- model.matrix(formula, infert)
  loss <- function(beta) {
    eta <- X %*% beta
    sum(op_softplus(eta) - infert$case * eta)
  }
  both <- value_and_grad(loss)
  fit <- optim(
    numeric(5), \(beta) both(beta)$value, \(beta) both(beta)$gradient,
    method = "BFGS", control = list(reltol = 1e-16)
  )
  reference <- glm(formula, binomial, infert, control = glm.control(epsilon = 1e-14))
  expect_equal(fit$par, unname(coef(reference)), tolerance = 1e-7)
  expect_equal(both(fit$par)$value, -as.numeric(logLik(reference)), tolerance = 1e-12)
})

test_each("gradients of recorded tensors", {
  x <- parameter(c(1, 2, 3))
  expect_equal(as.numeric(gradient(sum(x^3), x)), c(3, 12, 27))
  slope <- gradient(sum(x^3), x)
  expect_equal(as.numeric(gradient(sum(slope), x)), c(6, 12, 18))
})

test_each("non-scalar functions are an error", {
  expect_error(grad_fn(\(x) x)(c(1, 2)), "scalar", class = "gradops_error_gradient")
  expect_error(grad_fn(\(x) "a")(1), "scalar", class = "gradops_error_gradient")
  expect_error(grad_fn("a"), "must be a function", class = "gradops_error_type")
  expect_error(grad_fn(banana)("a"), class = "gradops_error_type")
  expect_error(gradient(op_exp(parameter(c(1, 2))), 1), class = "gradops_error")
  expect_identical(grad(\(x) if (x > 0) x else -x, -1), -1)
  condition <- expect_error(grad_fn(\(x) stop("mine"))(1), class = "gradops_error_callback")
  expect_equal(conditionMessage(condition$parent), "mine")
})

test_contract("jacobian() and hessian() return R matrices with names", {
  f <- function(x) x[1:2]^2 * c(1, 10) + x[3]
  x <- c(a = 1, b = 2, c = 3)
  expected <- rbind(a = c(a = 2, b = 0, c = 1), b = c(0, 40, 1)) # names(f(x)) is c("a", "b")
  expect_equal(jacobian(f, x), expected)
  expect_equal(jacobian(f, x, strategy = "forward-mode"), expected)
  expect_equal(jacobian(\(x) sum(x), 3), matrix(1))
  expect_equal(jacobian(\(x, power) x^power, c(1, 2), 3), diag(c(3, 12)))
  expect_equal(jacobian(\(m) t(m), matrix(1:4 / 1, 2)), diag(4)[c(1, 3, 2, 4), ])
  h <- hessian(banana, c(p = -1.2, q = 1))
  expect_equal(unname(h), matrix(c(1200 * 1.44 - 400 + 2, 480, 480, 200), 2))
  expect_equal(dimnames(h), list(c("p", "q"), c("p", "q")))
  expect_error(hessian(f, x), class = "gradops_error")
})

test_each("products with Jacobian and Hessian", {
  f <- function(x) x^3
  expect_equal(vjp(f, c(1, 2), c(1, 10)), list(value = c(1, 8), product = c(3, 120)))
  expect_equal(jvp(f, c(1, 2), c(1, 10)), list(value = c(1, 8), product = c(3, 120)))
  expect_equal(hvp(\(x) sum(x^3), c(1, 2), c(1, 10)), list(value = 9, product = c(6, 120)))
  expect_equal(vhp(\(x) sum(x^3), c(a = 1, b = 2), c(1, 10))$product, c(a = 6, b = 120))
})

test_contract("jit() does not run R after the first call", {
  noted <- counting(function(x) sum(exp(x)^2))
  f <- jit(noted$f)
  for (x in list(c(1, 2), c(3, 4))) expect_equal(f(x), sum(exp(2 * x)))
  expect_equal(noted$calls(), 1)
  both <- jit(value_and_grad(banana))
  for (x in list(c(-1.2, 1), c(0.5, 2))) {
    result <- both(x)
    expect_equal(result$value, banana(x))
    expect_equal(result$gradient, banana_gradient(x))
  }
})

test_each("gradcheck() finds a wrong gradient", {
  expect_true(gradcheck(\(x) exp(x) * x, c(0.5, 1)))
  wrong <- op_custom_gradient(\(x) list(exp(x), \(upstream) upstream))
  expect_error(gradcheck(wrong, c(0.5, 1)), class = "gradops_error_gradient")
  expect_false(gradcheck(wrong, c(0.5, 1), raise_exception = FALSE))
})

test_each("gradcheck() accepts names and lists like jacobian()", {
  expect_true(gradcheck(\(x) x["a"]^2 * x["b"], c(a = 1, b = 2)))
  expect_true(gradcheck(\(p) sum(p$a^2) * p$b, list(a = c(1, 2), b = 2)))
  expect_true(gradcheck(\(x, y) x["a"] * y, list(c(a = 1, b = 2), 3)))
})

test_each("values extracted by R functions keep the gradient", {
  for (read in list(as.numeric, as.vector, as.matrix, as.array)) {
    expect_equal(gradient(function(x) sum(read(x)^2) + sum(x), c(1, 2)), c(3, 5))
  }
  expect_equal(gradient(function(x) sum(Re(as.complex(x)^2)), c(1, 2)), c(2, 4))
  expect_equal(gradient(function(x) summary(x)[["Mean"]] * summary(x^2)["Max."], c(1.5, 2.5)), c(3.125, 13.125))
})

test_each("data frames hold tensor columns in a differentiated function, at every call", {
  known <- data.frame(a = 1:2, g = c("u", "v"))
  uses <- list(
    function(p) sum(data.frame(m = p * 2)$m^2),
    function(p) sum(transform(known, m = a * p)$m^2),
    function(p) sum(within(known, m <- a * p)$m^2),
    function(p) {
      d <- known
      d$m <- p^2
      d[2, "m"] <- d[2, "m"] * p[1]
      with(d[order(-d$a), ], sum(m * c(1, 3)) + m[d$a > 1])
    },
    function(p) {
      d <- rbind(data.frame(m = p^2, a = 3:4), data.frame(a = 1:2, m = p))
      sum(d$m * d$a) + nrow(d)
    },
    function(p) sum(as.matrix(data.frame(p^2, k = p)) %*% c(1, 2)),
    function(p) sum(merge(data.frame(m = p^2, a = 1:2), data.frame(a = 1:2, z = 3))$m),
    function(p) sum(sapply(data.frame(m = p^2, k = p), sum)),
    function(p) sum(vapply(split(data.frame(m = p^2, g = c("a", "b")), c(2, 1)), function(d) sum(d$m), 0) * 1:2),
    function(p) sum(as.data.frame(outer(p, 1:3))$V3),
    function(p) sum(unlist(cbind(known["a"], m = p^2)))
  )
  p <- c(1.5, 2.5)
  for (f in uses) {
    expect_equal(gradient(f, p), numeric_gradient(f, p), tolerance = 1e-6, info = deparse1(f))
    expect_s3_class(data.frame(m = variable(p)), "data.frame")
    o <- objective(f, jit = TRUE)
    for (i in 1:2) expect_equal(o$gr(p + i), numeric_gradient(f, p + i), tolerance = 1e-6, info = deparse1(f))
  }
  o <- objective(function(p) sum((data.frame(m = p - c(1, 2))$m)^2))
  expect_equal(optim(c(0, 0), o$fn, o$gr, method = "BFGS")$par, c(1, 2), tolerance = 1e-6)
  fails <- list(
    function(p) sum(data.frame(m = p[1], k = 1:2)$m), function(p) sum(colSums(data.frame(m = p, k = p))),
    function(p) sum(coef(lm(a ~ m, data.frame(known, m = p)))), function(p) sum(rbind(data.frame(m = p), list(3))$m)
  )
  for (f in fails) expect_error(gradient(f, c(1, 2)), class = "gradops_error")
})

test_each("losing a gradient to plain values warns once per derivative", {
  lost <- "gradops_warning_gradient"
  heard <- 0
  count <- function(warning) {
    heard <<- heard + 1
    invokeRestart("muffleWarning")
  }
  withCallingHandlers(jacobian(function(x) list(1, NA), 1), gradops_warning_gradient = count)
  expect_identical(heard, 1)
  expect_warning(gradient(function(x) 3, 1), "do not depend", class = lost)
  failed <- function(x) tryCatch(stop("no"), error = function(e) NA)
  expect_warning(found <- gradient(failed, c(1, 2)), "do not depend", class = lost)
  expect_identical(found, c(0, 0))
  expect_warning(try(gradient(function(x) TRUE, 1), silent = TRUE), "do not depend", class = lost)
})

test_once("a tensor converted to a number by Python is an error at every call, or a warning", {
  skip_without("numpy")
  local_backend("numpy")
  expect_identical(config_lost_gradients(), "error")
  math <- reticulate::import("math")
  o <- objective(function(x) sum(x) * math$exp(x[1]))
  for (i in 1:2) expect_error(o$gr(c(1, i)), class = "gradops_error_callback")
  expect_error(config_set_lost_gradients("never"), class = "gradops_error_argument")
  withr::defer(config_set_lost_gradients("error"))
  expect_identical(config_set_lost_gradients("warn"), "error")
  expect_warning(found <- o$gr(c(1, 2)), "Python float", class = "gradops_warning_python")
  expect_equal(found, rep(exp(1), 2))
})

test_each("inspecting values, or explicit conversion, gives no warning", {
  looking <- function(x) {
    capture.output(print(x), str(x), print(summary(x)))
    if (as.logical(x[1] > 0) && as.integer(x[1]) == 1L && order(x)[1] == 1L && !anyNA(x)) {
      x <- x[order(x)] + sum(as.numeric(op_stop_gradient(x)))
    }
    paste(x)
    sum(sort(x)) + quantile(x, 0.3) + median(x) + length(x) + max(x)
  }
  expect_no_warning(gradient(looking, c(1, 2)))
  expect_no_warning(gradient(function(x) op_convert_to_tensor(3), 1))
  expect_no_warning(as.numeric(parameter(1) * 2))
  expect_no_warning(gradcheck(function(x) sum(x^2), c(1, 2)))
})

test_each("non-numeric evaluation points are refused", {
  expect_error(gradient(sum, factor("a")), "factor", class = "gradops_error_type")
  expect_error(grad(sum, as.Date("2024-01-01")), "Date", class = "gradops_error_type")
  expect_error(jacobian(function(p) p$a, list(a = factor("u"))), "`x`", class = "gradops_error_type")
  expect_identical(gradient(function(p) sum(p$a), list(a = 1, b = NULL)), list(a = 1, b = NULL))
})

test_each("errors show the user's call, and stopifnot() accepts tensors", {
  called <- function(expr) as.character(conditionCall(expect_error(expr, class = "gradops_error"))[[1]])
  f <- function(p) stop("no")
  expect_identical(called(gradient(f, 1)), "gradient")
  expect_identical(called(jacobian(f, 1)), "jacobian")
  slope <- grad_fn(f)
  expect_identical(called(slope(1)), "slope")
  expect_identical(called(max(variable(numeric()))), "max")
  for (check in list(function(p) stopifnot(p > 0), function(p) stopifnot(all(p > 0)))) {
    g <- function(p) {
      check(p)
      sum(p)
    }
    expect_identical(gradient(g, c(1, 2)), c(1, 1))
    expect_error(gradient(g, c(1, -2)), "TRUE", class = "gradops_error_callback")
  }
  own <- function(p) {
    stopifnot(1 == 2)
    sum(p)
  }
  error <- expect_error(gradient(own, 1), class = "gradops_error_callback")
  expect_match(conditionMessage(error$parent), "1 == 2 is not TRUE")
  expect_identical(gradient(function(p) {
    stopifnot(as.logical(all(p > 0)))
    sum(p)
  }, c(1, 2)), c(1, 1))
})

test_each("derivatives at R numbers are R numbers, whatever the function closes over or calls", {
  # Values computed from a parameter require a gradient; TensorFlow and JAX transforms do not know variables.
  w <- exp(if (backend %in% c("numpy", "torch")) parameter(c(1, 2)) else op_convert_to_tensor(c(1, 2)))
  f <- function(p) sum((p - w)^2)
  at <- c(a = 1, b = 1)
  expected <- 2 * (1 - exp(c(a = 1, b = 2)))
  expect_equal(gradient(f, at), expected)
  expect_equal(grad_fn(f)(at), expected)
  expect_equal(value_and_grad(f)(at)$value, sum((1 - exp(1:2))^2))
  expect_equal(as.vector(jacobian(f, at)), unname(expected))
  expect_equal(hessian(f, at), diag(2) * 2, ignore_attr = TRUE)
  best <- objective(f)
  expect_equal(optim(c(0, 0), best$fn, best$gr, method = "BFGS")$par, exp(1:2), tolerance = 1e-6)
  solved <- function(a) fixed_point(function(x, a) cos(x) * a, 0.5, a)
  x <- uniroot(function(x) cos(x) * 0.7 - x, c(0, 1), tol = 1e-14)$root
  expect_equal(gradient(solved, 0.7), cos(x) / (1 + 0.7 * sin(x)), tolerance = 1e-8)
  expect_equal(objective(solved)$fn(0.7), x, tolerance = 1e-8)
})

test_each("argmin() and root() of R functions, with named lists, and differentiated by closures", {
  x <- cbind(1, mtcars$wt)
  ridge <- function(penalty) argmin(function(b) sum((mtcars$mpg - x %*% b)^2) + penalty * sum(b^2), c(a = 0, b = 0))
  found <- ridge(1)
  expect_equal(found, c(a = 1, b = 1) * drop(solve(crossprod(x) + diag(2), crossprod(x, mtcars$mpg))), tolerance = 1e-6)
  expect_equal(drop(jacobian(ridge, 1)), unname(ridge(1.001) - ridge(0.999)) / 0.002, tolerance = 1e-5)
  bowl <- function(p, s) (p$a - s)^2 + sum((p$b - s^2)^2 * c(1, 2))
  start <- list(a = 0, b = c(u = 0, v = 0))
  expect_equal(argmin(bowl, start, 2), list(a = 2, b = c(u = 4, v = 4)), tolerance = 1e-6)
  moving <- function(s) {
    least <- argmin(function(p) bowl(p, s), start)
    least$a + sum(least$b)
  }
  expect_equal(gradient(moving, 1.5), 1 + 4 * 1.5, tolerance = 1e-6)
  expect_equal(gradient(function(a) root(function(x) x^3 - a, 1), 8), 1 / 12, tolerance = 1e-6)
})

test_each("a solved function may close over values computed just before", {
  mode <- function(q) argmin(function(u) sum((u - q)^2), numeric(2))
  expect_equal(as.numeric(value_and_grad(function(p) sum(mode(p * 2) * c(1, 3)))(c(0.5, 1))[[2]]), c(2, 6))
  expect_equal(as.numeric(value_and_grad(function(p) sum(mode(c(p[1], p[2]))))(c(0.5, 1))[[2]]), c(1, 1))
})
