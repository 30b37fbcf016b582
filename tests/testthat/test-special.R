test_each("gamma functions and their kin are R's", {
  expect_as_base(
    list(
      gamma = gamma, lgamma = lgamma, digamma = digamma, trigamma = trigamma,
      factorial = factorial, lfactorial = lfactorial,
      choose = function(x) choose(x, 3),
      zero = function(x) choose(x, 0),
      minus = function(x) choose(x, -1),
      several = function(x) choose(x + 5, c(2, 1, 3, 35)),
      lchoose = function(x) lchoose(x + 5, 2)
    ),
    c(0.4, 1.7, 3.2, 6.6)
  )
  expect_as_base(
    list(gamma = gamma, lgamma = lgamma, digamma = digamma, trigamma = trigamma, choose = function(x) choose(x, 3)),
    c(-2.6, -0.3, -1.5)
  )
  expect_as_base(list(beta = beta, lbeta = lbeta, atan2 = atan2), c(0.5, 2, 3), c(1.5, 0.7, 2))
  expect_as_base(list(beta = function(a) beta(a, 2), left = function(a) atan2(1, a)), c(0.5, 2))
  expect_equal(gradient(function(x) gradient(lgamma, x), 2.5), trigamma(2.5), tolerance = 1e-6)
})

test_each("rounding to digits and logarithms are R's", {
  x <- c(123456, 0.00123456, -98.7654, 0)
  expect_equal(bare(signif(op_convert_to_tensor(x), 3)), signif(x, 3))
  expect_equal(bare(signif(op_convert_to_tensor(x))), signif(x))
  expect_equal(bare(round(op_convert_to_tensor(x), digits = 2)), round(x, 2))
  expect_equal(bare(round(op_convert_to_tensor(x), -2)), round(x, -2))
  y <- op_convert_to_tensor(c(2, 10))
  expect_equal(bare(log(base = 10, x = y)), log10(c(2, 10)))
  expect_equal(bare(log(10, x = y)), log10(c(2, 10)))
  expect_equal(bare(log(y, base = y + 1)), log(c(2, 10), base = c(3, 11)), tolerance = 1e-7)
})

test_each("the Complex group is R's", {
  z <- c(1 + 2i, -3 + 0.5i)
  x <- op_convert_to_tensor(z)
  for (f in list(Re, Im, Mod, Arg, Conj)) expect_equal(bare(f(x)), f(z))
  expect_equal(gradient(function(x) sum(Mod(x)), c(-2, 3)), c(-1, 1))
})
