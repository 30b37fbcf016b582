# Ops defined in R: extend_op(). The declared rules differ from the natural derivatives.

test_each("a rule is the derivative, to any order", {
  odd <- extend_op(
    "odd", function(x) x / (1 + abs(x)),
    derivative = list(x = function(g, y) 3 * g * y), elementwise = TRUE
  )
  x <- c(0.5, 2)
  expect_equal(as.numeric(odd(x)), x / (1 + x), tolerance = 1e-6)
  expect_equal(names(formals(odd)), "x")
  expect_match(cli::cli_fmt(print(odd)), "r.odd.*`?x")
  expect_equal(as.numeric(gradient(function(x) sum(odd(x)), x)), 3 * x / (1 + x), tolerance = 1e-6)
  expect_equal(as.numeric(hessian(function(x) sum(odd(x)), x)), c(diag(9 * x / (1 + x))), tolerance = 1e-6)
  expect_equal(as.numeric(jit(function(x) odd(x))(op_array(x))), x / (1 + x), tolerance = 1e-6)
  expect_equal(as.numeric(jacobian(function(x) odd(x), x)), c(diag(3 * x / (1 + x))), tolerance = 1e-6)
})

test_each("several arguments, settings and results", {
  scaled <- extend_op(
    "scaled", function(x, w, power = 2) x * w^power,
    derivative = list(x = function(g, w, power) 5 * g * w^power)
  )
  gradients <- gradient(function(p) sum(scaled(p$x, p$w, power = 3)), list(x = c(1, 2), w = c(3, 4)))
  expect_equal(as.numeric(scaled(c(1, 2), 3)), c(9, 18), tolerance = 1e-6)
  expect_equal(as.numeric(gradients[[1]]), 5 * c(27, 64), tolerance = 1e-6)
  expect_equal(as.numeric(gradients[[2]]), c(0, 0))
  expect_error(scaled(1), "\"w\" is missing")
  expect_error(scaled(1, "a"), class = "gradops_error_type")
})

test_once("a kernel may be an R function", {
  local_backend("numpy")
  bessel <- extend_op(
    "bessel", function(x) NULL,
    kernels = list(numpy = function(x) besselI(as.array(x), 0)),
    derivative = list(x = function(g, x) g * besselI(x, 1)), elementwise = TRUE, domain = c(0, Inf)
  )
  expect_equal(as.numeric(bessel(c(1, 2))), besselI(c(1, 2), 0))
  expect_equal(as.numeric(gradient(bessel, 2)), besselI(2, 1))
  expect_identical(check_op(bessel, c(0.5, 1, 2)), bessel)
  skip_without("torch")
  expect_error(with_backend("torch", bessel(c(1, 2))), class = "gradops_error_backend")
})

test_once("false declarations are named", {
  local_backend("numpy")
  odd <- extend_op("odd", function(x) x * x, derivative = list(x = function(g, y) 3 * g * y), elementwise = TRUE)
  expect_error(check_op(odd, c(0.5, 2, 1)), class = "gradops_error_gradient")
  expect_no_error(check_op(odd, c(0.5, 2, 1), natural = FALSE))
  turned <- extend_op("turned", function(x) rev(x) * 2, elementwise = TRUE)
  expect_error(check_op(turned, c(0.5, 2, 1)), "is not `elementwise`", class = "gradops_error_argument")
  rooted <- extend_op("rooted", function(x) sqrt(x), elementwise = TRUE, domain = c(1, Inf))
  expect_error(check_op(rooted, c(2, 3)), "is NaN inside its domain", class = "gradops_error_argument")
  rooted <- extend_op("rooted", function(x) sqrt(x), elementwise = TRUE, domain = c(0, Inf))
  expect_no_error(check_op(rooted, c(2, 3)))
  doubled <- extend_op("doubled", function(x, k = 2) x * k, linear = "x")
  expect_no_error(check_op(doubled, c(0.5, 2, 1), k = 3))
})

test_once("bad input is named", {
  local_backend("numpy")
  expect_error(extend_op("f", 3), class = "gradops_error_type")
  expect_error(
    extend_op("f", sqrt, derivative = 3), "`derivative` must be a named list of functions",
    class = "gradops_error_type"
  )
  expect_error(extend_op("f", function(x) x, kernels = list(3)), "`kernels`", class = "gradops_error_type")
  expect_error(extend_op("f", function(x) x, derivative = list(z = function(g) g)), "`z`", class = "gradops_error_type")
  expect_error(
    extend_op("f", function(x) x, derivative = list(x = function(g, w) g)), "asks for `w`",
    class = "gradops_error_type"
  )
  expect_error(extend_op("my op", function(x) x), class = "gradops_error_argument")
  expect_error(check_op(sqrt, 1), class = "gradops_error_type")
  failing <- extend_op("failing", function(x) stop("no value"))
  expect_error(failing(1), class = "gradops_error_callback")
})

test_once("an op can be recreated in another session", {
  local_backend("numpy")
  again <- extend_op("again", function(x) x * 2, derivative = list(x = function(g) 7 * g))
  file <- withr::local_tempfile()
  saveRDS(again, file)
  code <- sprintf(
    "again <- readRDS(%s); library(gradops); local_backend('numpy', .local_envir = globalenv());
     cat(as.numeric(again(3)), as.numeric(gradient(again, 3)))", deparse(file)
  )
  skip_on_cran()
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE, stderr = TRUE)
  expect_match(paste(out, collapse = "\n"), "6 7")
})
