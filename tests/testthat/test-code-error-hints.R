test_each("errors of R functions that cannot take tensors say what to write instead", {
  expect_hint <- function(f, hint, said) {
    error <- expect_error(capture.output(suppressWarnings(gradient(f, c(1, 2)))), class = "gradops_error_type")
    expect_match(conditionMessage(error), hint, fixed = TRUE)
    expect_match(conditionMessage(error), said, fixed = TRUE)
    expect_s3_class(error$parent, "simpleError")
  }
  base_r <- function(f) { # like a base R function, which is not adapted
    environment(f) <- asNamespace("utils")
    function(p) do.call(get("f"), list(p))
  }
  expect_hint(base_r(function(p) {
    h <- numeric(3)
    h[2] <- p[1]
  }), "Start from a tensor", "`h[2] <- p[1]`")
  expect_hint(base_r(function(p) for (v in p) v), "as.list(x)", "for (v in p)")
  expect_hint(base_r(function(p) p[1] > 0 && identity(op_greater(p[1], 0))), "as.logical(x)", "&&")
  expect_hint(base_r(function(p) letters[p]), "as.integer()", "letters[p]")
  expect_hint(function(p) sum(runmed(p, 1)), "?r_function", "`runmed(p, 1)`")
  expect_hint(function(p) sum(smooth(p)), "?r_function", "`smooth(p)`")
  expect_hint(function(p) sum(aggregate(p ~ c(1, 2), FUN = sum)[[2]]), "tapply(", "formula")
  expect_hint(function(p) lapply(list(p), rcond), "?r_function", "rcond")
  own <- expect_error(gradient(function(p) sapply(p, function(v) stop("mine")), 1))
  expect_no_match(conditionMessage(own), "this R function")
  methods::setClass("OfNumbers", methods::representation(x = "numeric"), where = globalenv())
  withr::defer(methods::removeClass("OfNumbers", where = globalenv()))
  expect_hint(function(p) methods::new("OfNumbers", x = p), "\"ANY\"", "slot")
})

test_each("a loop can fill a tensor, or a list that is joined", {
  x <- c(0.3, -1.2, 0.8)
  filled <- function(start) {
    function(p) {
      h <- start(p)
      h[1] <- p[1]
      for (t in 2:3) h[t] <- p[1] + p[2] * x[t - 1]^2 + 0.5 * h[t - 1]
      sum(h)
    }
  }
  listed <- function(p) {
    h <- list(p[1])
    for (t in 2:3) h[[t]] <- p[1] + p[2] * x[t - 1]^2 + 0.5 * h[[t - 1]]
    sum(do.call(c, h))
  }
  expected <- c(1 + 1.5 + 1.75, x[1]^2 * 1.5 + x[2]^2)
  expect_equal(gradient(filled(function(p) op_zeros(3)), c(1, 2)), expected)
  expect_equal(gradient(filled(function(p) 0 * p[1] + numeric(3)), c(1, 2)), expected)
  expect_equal(gradient(listed, c(1, 2)), expected)
})

test_each("R functions that would ignore a tensor give R's result, or an error with a hint", {
  p <- c(1.2, 0.5)
  for (f in list(
    function(p) max(p[1], NaN * p[2], na.rm = TRUE), function(p) min(NaN * p[2], p[1], 3, na.rm = TRUE),
    function(p) sum(range(p[2] * NaN, p^2, na.rm = TRUE) * 1:2), function(p) sum(diffinv(p) * 1:3),
    function(p) sum(diffinv(p, lag = 2, differences = 2) * 1:6), function(p) sum(replicate(3, p * 2) * 1:6)
  )) {
    expect_equal(objective(f)$fn(p), f(p))
    expect_equal(gradient(f, p), numeric_gradient(f, p), tolerance = 1e-6)
  }
  expect_error(gradient(function(p) sum(utils::stack(list(a = p))$values), p), class = "gradops_error_type")
})

test_each("tensors may be any argument of R's summaries, of log() and of operators in differentiated code", {
  p <- c(1.2, 0.5)
  log <- function(x, base) base::log(x, base) # a user-defined log()
  own <- function(p) sum(log(p, 3))
  rm(log)
  summaries <- lapply(c("max", "min", "sum", "prod", "range"), function(name) {
    eval(bquote(function(p) {
      sum((.(as.name(name))(0.7, c(a = 1), p) + do.call(.(name), list(c(NA, 0.6), p[2], na.rm = TRUE)))^2)
    }))
  })
  for (f in c(summaries, list(
    function(p) max(0, p[1]) * min(numeric(), p) * Reduce(max, list(0, p[1], p[2])),
    function(p) sum(vapply(1, max, 0, p)),
    function(p) p[1]^2 * all(TRUE, p > 0) + p[2] * any(FALSE, p < 0),
    function(p) log(10, base = p[1]) + log(base = p[2], x = 3) + log(p[1], p[2]) + log(p[1], 2) * log(8, 2), own,
    function(p) sum((t(p) %*% p) * p) + sum(c(1, 2, 3) / (t(p) %*% p)) + sum(p^(t(p) %*% p) - t(p) %*% p)
  ))) {
    given <- suppressWarnings(f(p)) # R warns about an array of length one with a vector
    expect_equal(objective(f)$fn(p), given)
    suppressWarnings(expect_equal(gradient(f, p), numeric_gradient(f, p), tolerance = 1e-6))
    suppressWarnings(expect_equal(objective(f, jit = TRUE)$gr(p), gradient(f, p)))
  }
  expect_equal(gradient(function(p) max(0, p[1]), -1), 0)
})

test_each("optional arguments may be omitted in differentiated code", {
  f <- function(p) sum(diag(nrow = 2) * p) + sum(diag(3, 2)) + sum(diag(p, 2)) + quantile(x = p) + log(x = p)
  expect_equal(gradient(function(p) sum(f(p)), 2), numeric_gradient(function(p) sum(f(p)), 2), tolerance = 1e-6)
})

test_each("det() of a singular matrix has derivatives", {
  of_rank_2 <- matrix(c(1, 2, 3, 2, 4, 6, 7, 8, 8), 3)
  for (m in list(matrix(c(1, 4, 0.5, 2), 2), of_rank_2, matrix(0, 2, 2), matrix(0, 1, 1))) {
    cofactors <- numeric_gradient(function(x) det(matrix(x, nrow(m))), c(m))
    for (g in list(function(x) det(matrix(x, nrow(m))), function(x) det(t(matrix(x, nrow(m)))))) {
      expect_equal(gradient(g, c(m)), cofactors, tolerance = 1e-6)
      expect_equal(objective(g, jit = TRUE)$gr(c(m)), cofactors, tolerance = 1e-6)
    }
  }
})
