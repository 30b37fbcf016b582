# Unchanged RTMB scripts.

test_each("multivariate normal densities by covariance and by precision", {
  x <- matrix(c(0.3, -1, 0.8, 0.2, 0.5, -0.4), 3)
  density <- function(z, sigma) {
    exp(-sum(z * solve(sigma, z)) / 2) / sqrt(det(2 * pi * sigma))
  }
  covariance <- function(p) matrix(c(exp(p[1]), p[2], p[2], 1), 2)
  of <- function(f) function(p) sum(f(p))
  cases <- list(
    list(
      function(p) gradops:::dmvnorm_rtmb(x, p, covariance(p)),
      function(p) apply(x, 1, function(z) density(z - p, covariance(p)))
    ),
    list(
      function(p) gradops:::dmvnorm_rtmb(x[1, ], p[1], covariance(p), log = TRUE, scale = exp(p)),
      function(p) log(density((x[1, ] - p[1]) / exp(p), covariance(p))) - sum(p)
    ),
    list(
      function(p) gradops:::dgmrf_rtmb(x[1, ] * p, 0, covariance(p), log = TRUE, scale = p[1]),
      function(p) log(density(x[1, ] * p / p[1], solve(covariance(p)))) - 2 * log(p[1])
    )
  )
  for (case in cases) {
    p <- c(0.4, 0.3)
    expect_equal(case[[1]](p), case[[2]](p))
    expect_equal(as.numeric(case[[1]](op_convert_to_tensor(p))), case[[2]](p))
    slope <- function(e) (sum(case[[2]](p + e)) - sum(case[[2]](p - e))) / (2 * sum(e))
    expect_equal(gradient(of(case[[1]]), p), vapply(list(c(1e-5, 0), c(0, 1e-5)), slope, 0), tolerance = 1e-7)
  }
  skip_if_not_installed("Matrix")
  chain <- Matrix::bandSparse(3, k = 0:1, diagonals = list(rep(2.2, 3), rep(-1, 2)), symmetric = TRUE)
  sparse <- function(p, q = chain) gradops:::dgmrf_rtmb(x[, 1] * p, 0, q, log = TRUE)
  expect_equal(gradient(sparse, c(1, 0.5, 2)), gradient(function(p) sparse(p, as.matrix(chain)), c(1, 0.5, 2)))
})

test_each("mean and scale may be scalars, per element, or shaped like the observations", {
  closed <- function(z, S) -sum(z * solve(S, z)) / 2 - as.numeric(determinant(S)$modulus) / 2 - length(z) * log(2 * pi) / 2
  S <- matrix(c(2, 0.5, 0.3, 0.5, 1, -0.2, 0.3, -0.2, 1.5), 3)
  x <- matrix(c(0.3, -1, 0.8, 0.2, 0.5, -0.4), 2)
  by_row <- function(v) if (is.matrix(v)) v else matrix(rep_len(v, 3), 2, 3, byrow = TRUE)
  for (mu in list(0, 0.4, 1:3 / 3, x / 2)) {
    for (scale in list(1, 2, 1:3, exp(x))) {
      m <- by_row(mu)
      s <- by_row(scale)
      expected <- vapply(1:2, function(i) closed((x[i, ] - m[i, ]) / s[i, ], S) - sum(log(s[i, ])), 0)
      expect_equal(gradops:::dmvnorm_rtmb(x, mu, S, TRUE, scale), expected)
      expect_equal(gradops:::dgmrf_rtmb(x, mu, solve(S), TRUE, scale), expected)
      taken <- gradops:::dmvnorm_rtmb(op_convert_to_tensor(x), mu, S, TRUE, scale)
      expect_equal(as.vector(as.array(taken)), expected)
    }
  }
  products <- function(p) { # products with a diagonal matrix follow R's rules
    d <- exp(p)
    R <- diag(2) * 0.7 + p[1] * 0.3
    C <- diag(d) %*% R %*% diag(d)
    A <- matrix(1:6 / 7, 2)
    sum(C[1, ] * C[2, 2]) + sum((diag(d) %*% A)^3) + sum((t(A) %*% diag(d))^2) + sum(diag(d) %*% diag(d)) +
      sum((diag(d) %*% d)^2) + sum((d %*% diag(d))^2) + sum(diag(d[1:2]) + R)
  }
  expect_equal(objective(products, jit = TRUE)$fn(c(0.3, -0.2)), products(c(0.3, -0.2)))
  expect_equal(objective(products, jit = TRUE)$gr(c(0.3, -0.2)), objective(products)$gr(c(0.3, -0.2)))
  expect_error(gradops:::dmvnorm_rtmb(1:2, 0, S), class = "gradops_error_shape")
  expect_error(gradops:::dmvnorm_rtmb(1:3, 1:2, S), "`mu` must have 3", class = "gradops_error_shape")
})

# In compiled code, the factor of a covariance shared by several densities is one tensor.
test_each("densities with a shared covariance: compiled, in scopes, with inner gradients", {
  dmvnorm <- gradops:::dmvnorm_rtmb
  x <- matrix(c(0.3, -1, 0.8, 0.2, 0.5, -0.4), 3)
  covariance <- function(p) matrix(c(exp(p[1]), p[2], p[2], 1), 2)
  functions <- list(
    function(p) {
      S <- covariance(p)
      total <- 0
      for (i in 1:3) total <- total - dmvnorm(x[i, ], p, S, log = TRUE)
      total
    },
    function(p) {
      S <- covariance(p)
      fixed <- with_no_grad(dmvnorm(x[1, ], p, S, log = TRUE))
      fixed * dmvnorm(x[2, ], p, S, log = TRUE) + with_stop_gradient(dmvnorm(x[3, ], p, S, log = TRUE))
    },
    function(p) {
      S <- covariance(p)
      one <- dmvnorm(x[1, ], p, S, log = TRUE)
      other <- dmvnorm(x[2, ], 0, S, log = TRUE)
      sum(gradient(one, p)^2) + sum(gradient(other, p)) + p[1]
    },
    function(p) {
      S <- covariance(p)
      one <- dmvnorm(x[1, ], p, S, log = TRUE)
      S <- S * exp(p[2])
      one * dmvnorm(x[2, ], 0, S, log = TRUE) * dmvnorm(x[3, ], 0, S)
    }
  )
  if (backend %in% c("tensorflow", "jax")) functions <- functions[-3] # their tensors do not know their origin
  for (f in functions) {
    eager <- objective(f)
    compiled <- objective(f, jit = TRUE)
    for (p in list(c(0.4, 0.3), c(-0.2, 0.1))) {
      expect_equal(compiled$fn(p), eager$fn(p))
      expect_equal(compiled$gr(p), eager$gr(p))
    }
  }
})

test_once("a missing RTMB function is named", {
  skip_without()
  f <- function(p) getAll(p)
  environment(f) <- new.env(parent = asNamespace("stats"))
  error <- expect_error(gradient(f, c(1, 2)), class = "gradops_error")
  expect_match(conditionMessage(error), "attach_rtmb()", fixed = TRUE)
})

test_once("scripts give the values and gradients of RTMB", {
  skip_without()
  skip_if_not_installed("RTMB")
  y <- cumsum(sin(1:20))
  home <- list2env(list(y = y, rows = cbind(y[1:10], y[11:20]), chain = diag(2.2, 20)), parent = asNamespace("RTMB"))
  scripts <- list(
    list(list(b = c(0.1, 0.2), ls = 0.3), quote({
      getAll(parms)
      y <- OBS(y)
      "[<-" <- ADoverload("[<-")
      mu <- AD(numeric(20))
      for (i in 1:20) mu[i] <- b[1] + b[2] * i
      REPORT(mu)
      sd <- exp(ls)
      ADREPORT(sd)
      y %~% dnorm(mu, sd)
    })),
    list(list(phi = c(0.3, 0.1), s = 0.2), quote({
      getAll(parms)
      -dautoreg(y, phi = phi, log = TRUE, scale = exp(s)) - dautoreg(y, phi = tanh(s), log = TRUE)
    })),
    list(list(th = 0.4, mu = c(0, 0.1)), quote({
      getAll(parms)
      -sum(dmvnorm(rows, mu, unstructured(2)$corr(th), log = TRUE))
    }))
  )
  for (script in scripts) {
    f <- eval(call("function", as.pairlist(alist(parms = NULL)), script[[2]]), home)
    theirs <- RTMB::MakeADFun(f, script[[1]], silent = TRUE)
    for (jit in c(FALSE, TRUE)) {
      ours <- objective(f, jit = jit)
      expect_equal(ours$fn(script[[1]]), as.vector(theirs$fn()), tolerance = 1e-10)
      expect_equal(unlist(ours$gr(script[[1]]), use.names = FALSE), as.vector(theirs$gr()), tolerance = 1e-10)
    }
  }
})
