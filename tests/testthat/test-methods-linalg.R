test_each("matrix products and factorizations match base R, with their gradients", {
  a <- matrix(c(4, 1, 0.5, 1, 3, 0.2, 0.5, 0.2, 2), 3)
  b <- matrix(c(1, -2, 0.5, 2, 1.5, 3), 3)
  expect_as_base(
    list(
      product = function(a, b) a %*% b,
      crossprod = function(a, b) crossprod(a, b),
      tcrossprod = function(a, b) tcrossprod(t(b), a),
      solve = function(a, b) solve(a, b),
      outer = function(a, b) outer(a, b),
      operator = function(a, b) a[1, ] %o% b[, 1],
      difference = function(a, b) outer(a[1, ], b[, 1], "-"),
      kronecker = function(a, b) kronecker(a, b),
      sum = function(a, b) a[, 1] %x% b,
      pairs = function(a, b) kronecker(b, a, FUN = "+"),
      back = function(a, b) backsolve(a, b),
      transposed = function(a, b) backsolve(a, b, k = 2, transpose = TRUE),
      forward = function(a, b) forwardsolve(a, b[, 1])
    ),
    a, b
  )
  expect_as_base(
    list(
      gram = function(x) crossprod(x),
      rows = function(x) tcrossprod(x),
      inverse = function(x) solve(x),
      det = function(x) det(x),
      modulus = function(x) determinant(x)$modulus,
      plain = function(x) determinant(x, logarithm = FALSE)$modulus,
      chol = function(x) chol((x + t(x)) / 2),
      chol2inv = function(x) chol2inv(chol((x + t(x)) / 2)),
      part = function(x) chol2inv(x, size = 2),
      singular = function(x) svd(x)$d,
      rebuilt = function(x) with(svd(x), u %*% diag(d) %*% t(v)),
      values = function(x) eigen((x + t(x)) / 2, symmetric = TRUE)$values,
      projection = function(x) eigen((x + t(x)) / 2, symmetric = TRUE)$vectors[, 1]^2,
      qr = function(x) qr.Q(qr(x)) %*% qr.R(qr(x)),
      by_qr = function(x) solve(qr(x), c(1, 2, 3)),
      diagonal = function(x) diag(x),
      square = function(x) diag(x[, 1]),
      wide = function(x) diag(x[, 1], 2, 4),
      turned = function(x) aperm(outer(x, c(1, 2)), c(3, 1, 2)),
      upper = function(x) x[upper.tri(x)],
      zeroed = function(x) {
        x[lower.tri(x)] <- 0
        diag(x) <- diag(x)^2
        x
      }
    ),
    a
  )
})

test_each("least squares match base R, by matrix, response and weights", {
  x <- cbind(1, c(1, 3, 2, 5, 4), c(0.5, -1, 2, 0.3, 1))
  y <- c(1.5, 0.2, 3, 2.5, 4)
  w <- c(1, 2, 0.5, 1.5, 0.7)
  expect_as_base(
    list(
      coefficients = function(x, y) qr.coef(qr(x), y),
      several = function(x, y) qr.coef(qr(x), cbind(y, y^2)),
      fitted = function(x, y) qr.fitted(qr(x), y),
      by_part = function(x, y) abs(qr.fitted(qr(x), y, k = 2)),
      residuals = function(x, y) qr.resid(qr(x), y),
      solve = function(x, y) qr.solve(x, y),
      inverse = function(x, y) qr.solve(crossprod(x)),
      lm = function(x, y) lm.fit(x, y)$coefficients,
      offset = function(x, y) lm.fit(x, y, offset = y^2)$fitted.values
    ),
    x, y
  )
  expect_as_base(
    list(
      constant = function(y) qr.resid(qr(x), y),
      turned = function(y) qr.coef(qr(x[, 3:1], LAPACK = TRUE), y),
      deviance = function(y) sum(lm.wfit(x, y, w)$residuals^2)
    ),
    y
  )
  expect_as_base(list(weights = function(w) lm.wfit(x, y, w)$coefficients), w)
  X <- cbind(one = 1, x2 = x[, 2])
  fit <- lm.fit(X, op_convert_to_tensor(y))
  expect_equal(as.numeric(fit$coefficients["x2"]), stats::lm.fit(X, y)$coefficients[["x2"]])
  expect_identical(fit$df.residual, 3L)
  expect_identical(lm.fit(X, y), stats::lm.fit(X, y))
  v <- op_convert_to_tensor(y)
  expect_error(qr.coef(qr(cbind(1, 1, x)), v), "rank 3 of 5 columns", class = "gradops_error_argument")
  expect_error(qr.resid(qr(x), v[1:4]), "must have 5 rows.*got 4", class = "gradops_error_shape")
})

test_each("vectors act as rows and columns as in R", {
  v <- c(1, 2, 3)
  w <- c(2, -1)
  m <- matrix(c(1, 2, 3, 4, 5, 7), 3)
  expect_as_base(
    list(
      inner = function(v, w, m) v %*% v,
      column = function(v, w, m) m %*% w,
      row = function(v, w, m) v %*% m,
      both = function(v, w, m) v %*% matrix(w, 1),
      one = function(v, w, m) m[, 1, drop = FALSE] %*% w,
      norm = function(v, w, m) crossprod(v),
      cross = function(v, w, m) crossprod(v, m),
      back = function(v, w, m) crossprod(m, v),
      outer = function(v, w, m) tcrossprod(v),
      rows = function(v, w, m) tcrossprod(w, m),
      form = function(v, w, m) t(v) %*% tcrossprod(m) %*% v
    ),
    v, w, m
  )
  x <- op_convert_to_tensor(m)
  expect_error(x %*% c(1, 2, 3, 4), class = "gradops_error_shape")
  expect_error(solve(x), class = "gradops_error")
  expect_error(diag(x) <- 1:7, "one element or 2", class = "gradops_error_argument")
})

test_contract("unsupported eigen() and svd() calls raise clear errors", {
  a <- matrix(c(2, 0.5, 1, 3), 2)
  x <- op_convert_to_tensor(a)
  expect_equal(bare(eigen(x)$values), eigen(a)$values)
  expect_equal(abs(bare(eigen(x)$vectors)), abs(eigen(a)$vectors))
  expect_equal(bare(eigen(x + t(x), only.values = TRUE)$values), eigen(a + t(a))$values)
  expect_null(eigen(x, TRUE, only.values = TRUE)$vectors)
  expect_error(jit(function(x) eigen(x)$values)(a), "symmetric = TRUE")
  expect_identical(names(svd(x, nu = 0)), c("d", "v"))
  expect_equal(dim(svd(op_ones(c(3, 2)), nu = 3)$u), c(3L, 3L))
  expect_equal(dim(qr.Q(qr(op_ones(c(3, 2))), complete = TRUE)), c(3L, 3L))
  expect_error(chol(x, pivot = TRUE), class = "gradops_error_argument")
})

test_each("`solve()` and `chol()` accept a number as a matrix, and as a right-hand side", {
  expect_equal(as.numeric(solve(variable(4), 2)), 0.5)
  expect_equal(as.numeric(solve(variable(matrix(4)), 2)), 0.5)
  expect_equal(as.numeric(solve(4, variable(2))), 0.5)
  expect_equal(as.numeric(chol(variable(4))), 2)
})

test_each("products of vectors and matrices have base R's dimensions, or its errors", {
  sizes <- list(1, 2, 3, c(1, 1), c(1, 2), c(2, 1), c(2, 2), c(1, 3), c(2, 3))
  values <- lapply(sizes, function(size) if (length(size) == 1) seq_len(size) + 0.5 else array(seq_len(prod(size)), size))
  refused <- function(f) tryCatch(f, error = function(e) NULL)
  for (product in list(list(base::`%*%`, `%*%`), list(base::crossprod, crossprod))) {
    for (x in values) {
      for (y in values) {
        expected <- refused(product[[1]](x, y))
        expect_equal(refused(as.array(product[[2]](op_convert_to_tensor(x), y))), expected)
        logged <- refused({
          objective(function(p) sum(product[[2]](`dim<-`(p * 1, dim(x)), y)), jit = TRUE)$fn(as.vector(x))
        })
        expect_equal(logged, if (!is.null(expected)) sum(expected))
      }
    }
  }
})

test_each("isSymmetric() inspects a tensor's values", {
  expect_true(isSymmetric(variable(matrix(c(2, 1, 1, 3), 2))))
  expect_false(isSymmetric(variable(matrix(c(2, 1, 0, 3), 2))))
  f <- function(p) {
    m <- diag(2) * p[1] + p[2]
    if (!isSymmetric(m)) stop("not symmetric")
    det(m)
  }
  expect_equal(gradient(f, c(2, 1)), c(6, 4))
  if (backend == "numpy") expect_equal(objective(f, jit = TRUE)$gr(c(2, 1)), c(6, 4))
})

test_each("products with Q, polynomials and fits by R's own code match R", {
  y <- c(1, 3, 2, 5, 4, 6)
  m <- function(v) cbind(1, v, v^2)
  cases <- list(
    function(v) sum(qr.qy(qr(m(v)), y)^3), function(v) sum(qr.qty(qr(m(v)), cbind(y, v))^3),
    function(v) sum(qr.qty(qr(m(y)), v)^3), function(v) sum(qr.Q(qr(m(v)), complete = TRUE)^3),
    function(v) sum(poly(v, 2)[, 2]^3), function(v) sum(poly(v, 2, raw = TRUE)^2),
    function(v) sum(polym(v, y, degree = 2)[, 3]^2), function(v) sum(lsfit(v, y)$coefficients^2),
    function(v) sum(hat(v)^2)
  )
  if (backend != "jax") { # no derivative of all singular vectors of such a matrix there
    cases <- c(cases, function(v) sum(cancor(cbind(v, v^2), cbind(y))$cor))
  }
  x <- c(0.5, 1.3, 2.1, 1.7, 0.2, 0.9)
  for (f in cases) {
    found <- value_and_grad(f)(x)
    expect_equal(found$value, f(x))
    expect_equal(found$gradient, numeric_gradient(f, x), tolerance = 1e-6)
  }
  expect_error(qr(variable(m(x)), LAPACK = TRUE), "LAPACK", class = "gradops_error_argument")
})

test_each("collinear columns are refused in least squares", {
  x <- c(0.5, 1.3, 2.1, 1.7)
  expect_identical(qr(variable(cbind(1, x, 2 * x)))$rank, 2L)
  f <- function(v) sum(lm.fit(cbind(1, v, 2 * v), 1:4)$coefficients)
  expect_error(gradient(f, x), "rank 2 of 3 columns", class = "gradops_error_argument")
  if (backend == "numpy") expect_error(objective(f, jit = TRUE)$gr(x), "rank 2 of 3 columns")
})
