test_each("R's errors about tensors that it cannot take say what to write instead", {
  expect_hint <- function(f, hint, said) {
    error <- expect_error(capture.output(suppressWarnings(gradient(f, c(1, 2)))), class = "gradops_error_type")
    expect_match(conditionMessage(error), hint, fixed = TRUE)
    expect_match(conditionMessage(error), said, fixed = TRUE)
    expect_s3_class(error$parent, "simpleError")
  }
  grow <- "Start from a tensor"
  h <- numeric(3)
  expect_hint(function(p) h[2] <- p[1], grow, "`h[2] <- p[1]`")
  expect_hint(function(p) h[[2]] <- p[1], grow, "`h[[2]] <- p[1]`")
  m <- matrix(0, 2, 2)
  expect_hint(function(p) m[1, ] <- p, grow, "`m[1, ] <- p`")
  nothing <- NULL
  expect_hint(function(p) nothing[2] <- p[1], grow, "`nothing[2] <- p[1]`")
  expect_hint(function(p) sum(pgamma(p, 2)), "?r_function", "`pgamma(p, 2)`")
  expect_hint(function(p) cat("p =", p), "print(p)", "`cat()`")
  expect_hint(function(p) sum((datasets::lh - p[1])^2), "as.numeric()", "time series")
})

test_each("a loop fills a tensor, or a list that is joined", {
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
