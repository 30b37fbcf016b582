test_each("gamma and related functions match R", {
  expect_as_base(
    list(
      gamma = gamma, lgamma = lgamma, digamma = digamma, trigamma = trigamma, psigamma = function(x) psigamma(x, 3),
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

test_each("Bessel functions match R, to second order", {
  x <- c(0.3, 2, 7.5)
  expect_as_base(
    list(
      I = function(x) besselI(x, 0), scaled_I = function(x) besselI(x, 1.5, TRUE), J = function(x) besselJ(x, 0.3),
      K = function(x) besselK(x, 2), scaled_K = function(x) besselK(x, 0, expon.scaled = TRUE),
      Y = function(x) besselY(x, 1)
    ),
    x
  )
  second <- function(f, x) gradient(function(x) sum(gradient(function(x) sum(f(x)), x)), x)
  expect_equal(second(function(x) besselJ(x, 0), x), besselJ(x, 1) / x - besselJ(x, 0), tolerance = 1e-6)
  expect_equal(second(function(x) besselK(x, 0), x), besselK(x, 1) / x + besselK(x, 0), tolerance = 1e-6)
  slope <- jit(function(x) gradient(function(x) sum(besselI(x, 1)), x))
  expect_equal(bare(slope(x)), (besselI(x, 0) + besselI(x, 2)) / 2, tolerance = 1e-6)
  expect_identical(bare(besselI(op_convert_to_tensor(-1), 0)), NaN)
})

test_each("Bessel functions are differentiable in their order", {
  orders <- c(0.4, 1.5, -0.7)
  functions <- list(
    \(nu) besselI(2, nu), \(nu) besselI(2, nu, TRUE), \(nu) besselK(2, nu), \(nu) besselK(2, nu, TRUE),
    \(nu) besselJ(2, nu), \(nu) besselY(2, nu)
  )
  for (f in functions) {
    h <- 1e-4
    differences <- (f(orders + h) - f(orders - h)) / (2 * h)
    expect_equal(gradient(function(nu) sum(f(nu)), orders), differences, tolerance = 1e-5)
  }
})

test_contract("signif(), rounding and logarithms match R", {
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

test_each("the Complex group matches R", {
  z <- c(1 + 2i, -3 + 0.5i)
  x <- op_convert_to_tensor(z)
  for (f in list(Re, Im, Mod, Arg, Conj)) expect_equal(bare(f(x)), f(z))
  expect_equal(gradient(function(x) sum(Mod(x)), c(-2, 3)), c(-1, 1))
  expect_as_base(
    list(
      parts = function(x, y) Mod(complex(real = x, imaginary = y)^2 + 1),
      one = function(x, y) Re(exp(complex(imaginary = y))),
      polar = function(x, y) Im(complex(modulus = x, argument = y)),
      angle = function(x, y) Re(complex(argument = y))
    ),
    c(0.5, 2), c(1.5, 0.7)
  )
})

test_each("choose() and lchoose() round k like R, with its warning", {
  for (k in c(2.3, 2.4)) {
    for (f in list(choose, lchoose)) {
      by_r <- suppressWarnings(f(10, k))
      expect_warning(found <- f(variable(10), k), "must be integer, rounded to 2")
      expect_equal(bare(found), by_r)
      expect_warning(found <- f(10, variable(k)), "must be integer, rounded to 2")
      expect_equal(bare(found), by_r)
    }
  }
  expect_no_warning(found <- lchoose(variable(c(1e8, 7)), c(3, 4)))
  expect_equal(bare(found), lchoose(c(1e8, 7), c(3, 4)), tolerance = 1e-14)
  a <- c(1e8, 1e8, 3)
  expect_equal(bare(lbeta(variable(a), c(3, 1e8, 4))), lbeta(a, c(3, 1e8, 4)), tolerance = 1e-14)
})

test_each("special functions give NaN where R's do, with R's warning", {
  functions <- list(
    gamma = gamma, lgamma = lgamma, digamma = digamma, trigamma = trigamma, factorial = factorial,
    lfactorial = lfactorial, beta = function(x) beta(x, 2), second = function(x) beta(2, x),
    lbeta = function(x) lbeta(x, 2), sqrt = sqrt, log = log, log2 = log2, log10 = log10, log1p = log1p, asin = asin,
    acos = acos, atanh = atanh, acosh = acosh, power = function(x) x^0.5, based = function(x) log(x, 3),
    lchoose = function(x) lchoose(x, 2)
  )
  answer <- NULL
  for (name in names(functions)) {
    f <- functions[[name]]
    for (x in list(0, -1, 2, -2, NaN, -0.5, 1, 3.5)) {
      about <- paste(name, "at", x)
      words <- character()
      heard <- function(x) {
        words <<- character()
        withCallingHandlers(f(x), warning = function(w) {
          words <<- c(words, conditionMessage(w))
          invokeRestart("muffleWarning")
        })
      }
      expected <- heard(x)
      in_r <- words
      gradient(function(p) {
        answer <<- as.numeric(as.character(heard(p)))
        p
      }, x)
      expect_equal(answer, expected, info = about)
      expect_identical(words, in_r, info = about)
      expect_equal(as.double(f(op_convert_to_tensor(x))), expected, info = about)
    }
  }
})
