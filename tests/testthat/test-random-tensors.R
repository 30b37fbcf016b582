test_each("equal seeds give equal numbers of the right distribution", {
  values <- function(x) as.vector(x)
  draws <- list(
    function(seed) random_normal(2000L, 1, 2, seed = seed), function(seed) random_uniform(2000L, -1, 3, seed = seed),
    function(seed) random_truncated_normal(2000L, 1, 2, seed = seed),
    function(seed) random_integer(2000L, 2, 5, seed = seed), function(seed) random_gamma(2000L, 2.5, seed = seed),
    function(seed) random_beta(2000L, 2, 0.7, seed = seed), function(seed) random_binomial(2000L, 4, 0.3, seed = seed)
  )
  for (draw in draws) {
    expect_identical(values(draw(7)), values(draw(7)))
    expect_false(identical(values(draw(7)), values(draw(8))))
    generator <- random_seed_generator(3)
    expect_false(identical(values(draw(generator)), values(draw(generator))))
    set.seed(1)
    first <- values(draw(NULL))
    set.seed(1)
    expect_identical(values(draw(NULL)), first)
  }
  expect_gt(ks.test(values(draws[[1]](1)), "pnorm", 1, 2)$p.value, 1e-4)
  expect_gt(ks.test(values(draws[[2]](1)), "punif", -1, 3)$p.value, 1e-4)
  truncated <- (values(draws[[3]](1)) - 1) / 2
  expect_true(all(abs(truncated) <= 2))
  expect_gt(ks.test(truncated, function(q) (pnorm(q) - pnorm(-2)) / (pnorm(2) - pnorm(-2)))$p.value, 1e-4)
  expect_gt(chisq.test(table(factor(values(draws[[4]](1)), 2:4)))$p.value, 1e-4)
  expect_gt(ks.test(values(draws[[5]](1)), "pgamma", 2.5)$p.value, 1e-4)
  expect_gt(ks.test(values(draws[[6]](1)), "pbeta", 2, 0.7)$p.value, 1e-4)
  expect_gt(chisq.test(table(factor(values(draws[[7]](1)), 0:4)), p = dbinom(0:4, 4, 0.3))$p.value, 1e-4)
  wide <- as.array(random_binomial(c(3, 2), c(0, 9), op_convert_to_tensor(c(0.5, 1)), seed = 1))
  expect_identical(wide, cbind(c(0, 0, 0), 9))
  expect_error(gradient(function(a) sum(random_gamma(3L, a, seed = 1)), 2), "`alpha`", class = "gradops_error_gradient")
  expect_identical(dim(random_normal(c(2, 3), seed = 1)), 2:3)
  expect_identical(op_dtype(random_normal(2L, dtype = "float32", seed = 1)), "float32")
})

test_each("categorical draws, dropout, permutation", {
  found <- as.array(random_categorical(log(matrix(c(0.1, 1, 0.9, 1e-30), 2)), 1000L, seed = 1))
  expect_identical(dim(found), c(2L, 1000L))
  expect_gt(binom.test(sum(found[1, ] == 1), 1000, 0.1)$p.value, 1e-4)
  expect_true(all(found[2, ] == 1))
  x <- matrix(1:200 / 1, 50)
  dropped <- as.array(random_dropout(x, 0.25, seed = 1))
  expect_true(all(dropped == 0 | abs(dropped - x / 0.75) < 1e-9))
  expect_gt(binom.test(sum(dropped == 0), 200, 0.25)$p.value, 1e-4)
  by_row <- as.array(random_dropout(x, 0.5, noise_shape = list(NULL, 1), seed = 2)) != 0
  expect_true(all(rowSums(by_row) %in% c(0, 4)))
  shuffled <- as.array(random_shuffle(x, seed = 3))
  expect_identical(shuffled[order(shuffled[, 1]), ], x)
  expect_false(identical(shuffled, x))
  expect_error(random_dropout(x, 1), class = "gradops_error_argument")
  expect_error(random_normal(2L, seed = 1.5), "an integer", class = "gradops_error_argument")
})

test_contract("gradients flow through draws, and compiled functions need a seed", {
  f <- function(p) sum(random_normal(5L, p[1], p[2], seed = 4)^2)
  z <- as.vector(random_normal(5L, seed = 4))
  expect_equal(gradient(f, c(1, 2)), c(sum(2 * (1 + 2 * z)), sum(2 * z * (1 + 2 * z))), tolerance = 1e-6)
  expect_equal(gradient(function(x) sum(random_dropout(x, 0.5, seed = 1)), 1:4 / 1),
               as.vector(random_dropout(rep(1, 4), 0.5, seed = 1)))
  compiled <- jit(f)
  expect_equal(compiled(c(1, 2)), f(c(1, 2)) |> as.vector(), tolerance = 1e-6)
  expect_equal(compiled(c(1, 2)), compiled(c(1, 2)))
  expect_error(jit(function(p) sum(p * random_normal(2L)))(c(1, 2)), class = "gradops_error_jit")
  generator <- random_seed_generator(1)
  expect_error(jit(function(p) sum(p * random_normal(2L, seed = generator)))(c(1, 2)), class = "gradops_error_jit")
})

test_each("rnorm() and related functions of tensors draw R's numbers, with derivatives of quantile functions", {
  families <- list(
    norm = c(1, 2), lnorm = c(0.3, 0.5), exp = 2, gamma = c(2.5, 1.3), beta = c(2, 0.7), t = 4, unif = c(-1, 3),
    logis = c(1, 2), weibull = c(2, 3), cauchy = c(0, 1), chisq = 3, f = c(3, 5),
    chisq = c(3, 1.5), beta = c(2, 3, 0.8), t = c(5, 0.4), f = c(3, 4, 1.5)
  )
  weights <- c(1, 0.3, 2, 0.7)
  for (i in seq_along(families)) {
    name <- names(families)[i]
    parameters <- families[[i]]
    of <- function(kind, p, first) do.call(paste0(kind, name), c(list(first), lapply(seq_along(p), function(i) p[i])))
    total <- function(p) {
      set.seed(3)
      sum(of("r", p, 4) * weights)
    }
    after <- function(code) {
      force(code)
      runif(1)
    }
    drawn <- value_and_grad(total)(parameters)
    expect_equal(drawn$value, total(parameters), tolerance = 1e-15, info = name)
    expect_identical(after(gradient(total, parameters)), after(total(parameters)))
    set.seed(3)
    u <- of("p", parameters, of("r", parameters, 4)) # the noise as a uniform number
    of_quantiles <- function(p) sum(of("q", p, u) * weights)
    expect_equal(drawn$gradient, numeric_gradient(of_quantiles, parameters, 1e-5), tolerance = 1e-6, info = name)
    if (i < 13) {
      expect_equal(hessian(total, parameters), hessian(of_quantiles, parameters), tolerance = 1e-6, info = name)
    }
  }
  degenerate <- function(p) {
    set.seed(1)
    sum(rnorm(2, p[1], 0) + rgamma(2, 0, p[1]) + rweibull(2, p[2], 0) + runif(2, p[2], p[2]))
  }
  expect_equal(gradient(degenerate, c(2, 3)), c(2, 2))
  expect_identical(rexp(0, variable(1)), numeric())
  expect_identical(dim(rexp(c("a", "b", "c"), variable(matrix(1:4, 2)))), 3L)
  expect_error(rnorm(-1, variable(1)), "`n`", class = "gradops_error_argument")
  expect_error(rnorm(3, variable(1), numeric()), "empty", class = "gradops_error_argument")
  expect_error(jit(function(m) sum(rnorm(3, m)))(1), class = "gradops_error_jit")
  lambda <- variable(2)
  refused <- list(
    lambda = quote(rpois(3, lambda)), size = quote(rbinom(3, lambda, 0.3)), prob = quote(rgeom(3, lambda)),
    mu = quote(rnbinom(3, 2, mu = lambda)), k = quote(rhyper(3, 2, 3, lambda)), q = quote(ptukey(lambda, 2, 3)),
    df = quote(qtukey(0.3, 2, lambda)), n = quote(psignrank(3, lambda)), m = quote(pwilcox(3, lambda, 2))
  )
  for (argument in names(refused)) {
    error <- tryCatch(eval(refused[[argument]]), gradops_error_argument = identity)
    expect_identical(error$argument, argument)
  }
})
