# Functions of other packages in differentiated code, compared with their own values on numbers.

at <- c(1.5, 0.7)

expect_derivatives <- function(functions) {
  for (name in names(functions)) {
    f <- functions[[name]]
    expect_equal(gradient(f, at), numeric_gradient(f, at), tolerance = 1e-6, info = name)
    expect_equal(objective(f, jit = TRUE)$gr(at), numeric_gradient(f, at), tolerance = 1e-6, info = name)
  }
}

test_each("relist() and combinations", {
  skeleton <- list(m = matrix(c(1, 2), 1, dimnames = list("u", c("k", "j"))), inner = list(b = 1, c = c(x = 1, y = 2)))
  expect_derivatives(list(
    relist = function(p) {
      l <- relist(c(p, p[1] * p[2], p^2), skeleton)
      sum(l$m %*% c(1, 2)) * l$m["u", "j"] + l$inner$b^2 * l$inner$c[["y"]]
    },
    numbers = function(p) sum(combn(4, 2, function(i) p[1] * i[1] + p[2] * i[2]^2)^2),
    texts = function(p) sum(combn(c("a", "b", "c"), 2, function(v) p * nchar(paste(v, collapse = "")))[2, ]^2),
    elements = function(p) sum(combn(c(p, p^2), 3, prod)),
    list = function(p) sum(combn(3, 2, function(i) sum(p * i), simplify = FALSE)[[2]]),
    plain = function(p) sum(combn(4, 2, sum) * p[1]^2) + p[2]
  ))
  x <- c(a = 1, b = 2, c = 3)
  expect_identical(gradient(function(p) {
    expect_identical(combn(3, 2, sum), utils::combn(3, 2, sum))
    expect_identical(combn(x, 2, function(v) v[[1]]), utils::combn(x, 2, function(v) v[[1]]))
    expect_identical(combn(4, 2, diag), utils::combn(4, 2, diag))
    p
  }, 1), 1)
})

test_each("purrr functions accept and return tensors", {
  skip_if_not_installed("purrr")
  expect_derivatives(list(
    map_dbl = function(p) sum(purrr::map_dbl(p, function(v) v^2) * purrr::map_dbl(c(a = 1, b = 2), ~ p[1] * .x)[["b"]]),
    map2_dbl = function(p) sum(purrr::map2_dbl(1:2, p, function(a, b) a * b^2)),
    pmap_dbl = function(p) sum(purrr::pmap_dbl(list(1:2, p, p^2), function(a, b, c) a * b * c)),
    imap_dbl = function(p) sum(purrr::imap_dbl(p, function(v, i) v^2 * i)),
    map_vec = function(p) sum(purrr::map_vec(1:3, function(i) p[1] * i^2) * p[2]),
    list_c = function(p) sum(purrr::list_c(list(p, p^2, 3))^2),
    map2 = function(p) sum(purrr::list_c(purrr::map2(p, 1:2, `*`))^2),
    rows = function(p) sum(do.call(rbind, purrr::map(1:3, ~ p * .x))[, 2]^2),
    reduce = function(p) purrr::reduce(p, `*`, .init = 2) + purrr::accumulate(p, `+`)[[2]],
    plain = function(p) sum(purrr::map_dbl(1:3, sqrt) * p[1]) + sum(purrr::map_int(1:2, ~ .x * 2L)) * p[2]
  ))
  kept <- function(p) sum(p[purrr::map_lgl(p, function(v) v > 1)]^2)
  expect_equal(gradient(kept, at), c(3, 0))
  expect_error(gradient(function(p) sum(purrr::map_dbl(1:2, ~ p)), at), "size 1")
  expect_named(op_convert_to_tensor(1:2) |> purrr::map(identity) |> rlang::set_names(c("a", "b")), c("a", "b"))
})

test_each("columns of a tibble", {
  skip_if_not_installed("tibble")
  expect_derivatives(list(
    made = function(p) {
      d <- tibble::tibble(a = 1:2, b = p)
      d$c <- d$a * d$b
      sum(d[d$a > 1, ]$c^2) + sum(d$c)
    },
    recycled = function(p) {
      d <- tibble::tibble(a = 1:2)
      d$b <- p[1]
      d[["c"]] <- p
      d[, "d"] <- p^2
      d$a[2] <- p[2]
      sum(d$a * d$b * d$c * d$d)
    },
    matrix = function(p) {
      d <- tibble::tibble(a = 1:2, b = outer(p, p))
      sum(d[2:1, ]$b[, 1]^2)
    }
  ))
})

test_each("Kronecker products of a Matrix object and a tensor, in either order", {
  skip_if_not_installed("Matrix")
  sparse <- Matrix::sparseMatrix(c(1, 2, 2), c(1, 1, 2), x = c(1, 3, 4))
  dense <- Matrix::Matrix(c(1, 2, 3, 4), 2)
  w <- matrix(cos(1:16), 4)
  total <- function(m) sum(as.matrix(m) * w)
  expect_derivatives(list(
    first = function(p) total(kronecker(sparse, p %o% p)), second = function(p) total((p %o% p) %x% sparse),
    dense = function(p) total(dense %x% (p %o% p)) + total(kronecker(p %o% p, dense)),
    vector = function(p) sum(as.matrix(kronecker(p, Matrix::Diagonal(2)))^3)
  ))
  sums <- function(p, m) sum(kronecker(p %o% p, m, "+")^2)
  expect_equal(gradient(sums, at, m = sparse), gradient(sums, at, m = as.matrix(sparse)))
})

test_once("a memoised function distinguishes numbers and tensors", {
  skip_if_not_installed("memoise")
  skip_without("numpy")
  calls <- counting(function(a) a^2)
  square <- memoise::memoise(calls$f)
  expect_derivatives(list(
    numbers = function(p) square(3) * p[1] + square(3) * p[2]^2,
    tensors = function(p) square(p[1]) * square(p[2]) * square(p[1]),
    within = function(p) {
      fibonacci <- memoise::memoise(function(n) if (n < 2) p[1] else fibonacci(n - 1) * p[2] + fibonacci(n - 2))
      fibonacci(5)
    }
  ))
  before <- calls$calls()
  expect_equal(gradient(function(p) square(3) * p, 2), 9)
  expect_equal(calls$calls(), before)
})

test_once("mvtnorm's integration by random points raises an error that names it", {
  skip_if_not_installed("mvtnorm")
  skip_without("numpy")
  expect_error(
    gradient(function(p) c(mvtnorm::pmvnorm(upper = p)), at), "`pmvnorm\\(\\)` integrates with random points",
    class = "gradops_error_argument"
  )
  expect_error(gradient(function(p) c(mvtnorm::pmvt(upper = c(1, 2), df = 3, delta = p)), at), "`delta`.*`pmvt\\(\\)`")
  half <- function(p) c(mvtnorm::pmvnorm(upper = c(0, Inf))) * p
  expect_equal(gradient(half, 1), 0.5)
  integrated <- function(p) { # as the error recommends
    r <- 0.3
    integrate(function(z) dnorm(z) * pnorm((p[2] - r * z) / sqrt(1 - r^2)), -Inf, p[1])$value
  }
  own <- function(p) mvtnorm::pmvnorm(upper = p, corr = matrix(c(1, 0.3, 0.3, 1), 2), algorithm = mvtnorm::TVPACK())
  expect_equal(gradient(integrated, at), numeric_gradient(function(p) c(own(p)), at), tolerance = 1e-5)
})
