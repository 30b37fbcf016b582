# Sparse Matrix objects with tensors in differentiated code, compared with the same code on R numbers.

test_each("sparse matrices of parameters: values, gradients, compiled", {
  skip_if_not_installed("Matrix")
  methods::setClass("gradops_of_a_package", representation(x = "numeric"), where = globalenv())
  method <- with(globalenv(), function(x, nrow, ncol, names) x@x)
  suppressMessages(methods::setMethod(Matrix::diag, "gradops_of_a_package", method, where = globalenv()))
  withr::defer(methods::removeClass("gradops_of_a_package", where = globalenv()))
  withr::defer(methods::removeMethod(Matrix::diag, "gradops_of_a_package", where = globalenv()))
  n <- 6
  L <- Matrix::bandSparse(n, k = 0:1, diagonals = list(rep(2.2, n), rep(-1, n - 1)), symmetric = TRUE)
  z <- sin(1:n)
  home <- list2env(list(n = n, L = L, z = z), parent = list2env(
    mget(c("Diagonal", "bandSparse", "sparseMatrix", "bdiag", "solve", "t", "crossprod", "kronecker", "diag", "diag<-",
      "determinant", "rowSums", "%*%"), asNamespace("Matrix"), inherits = TRUE), parent = globalenv()
  ))
  functions <- list(
    function(p) {
      Q <- exp(p[1]) * L + p[2] * Diagonal(n)
      as.numeric(determinant(Q)$modulus) + sum(z * (Q %*% z)) + sum(solve(Q, z))
    },
    function(p) {
      D <- Diagonal(n, x = exp(p[1] * z))
      Q <- t(D) %*% L %*% D + Diagonal(n) * p[2]^2
      sum(Q * Q) + sum(crossprod(Q)[1, ])
    },
    function(p) {
      Q <- kronecker(p[1] * L, Diagonal(2) * p[2])
      diag(Q) <- diag(Q) + p[1]
      sum(diag(solve(Q))) + sum(Q[2:3, ]) + sum(rowSums(Q)[2])
    },
    function(p) {
      B <- bandSparse(n, k = c(0, 1), diagonals = list(rep(p[1], n), z[-1] * p[2]))
      sum((t(B) %*% z)^2) + sum(bdiag(B, L)^2) + sum(as.matrix(B))
    },
    function(p) {
      S <- sparseMatrix(c(1, 2, 2), c(1, 1, 2), x = c(p, p[1] * p[2]))
      sum(crossprod(S, c(1, 2))) - sum(-S / p[1])
    },
    function(p) {
      Q <- p[1] * L
      Q[2, 3] <- p[2]
      Q[1, 1] <- 3
      sum(Q^2) + sum(Q^0) * p[1] + sum(cumsum(Q) * seq_len(n^2)) / 100
    }
  )
  p <- c(0.7, 1.9)
  for (f in functions) {
    environment(f) <- home
    slope <- vapply(list(c(1e-5, 0), c(0, 1e-5)), function(h) (f(p + h) - f(p - h)) / 2e-5, 0)
    found <- value_and_grad(f)(p)
    expect_equal(as.numeric(found$value), f(p))
    expect_equal(found$gradient, slope, tolerance = 1e-6)
    if (backend == "numpy") expect_equal(objective(f, jit = TRUE)$gr(p), slope, tolerance = 1e-6)
  }
  expect_error(gradient(function(p) sum((p[1] * L) + Matrix::Diagonal(3)), p), class = "gradops_error_shape")
})

test_once("a precision matrix of parameters in a model with random effects", {
  skip_if_not_installed("Matrix")
  skip_without("numpy")
  local_backend("numpy")
  attach_rtmb()
  withr::defer(detach("gradops:rtmb", character.only = TRUE))
  n <- 30
  L <- Matrix::bandSparse(n, k = 0:1, diagonals = list(rep(2, n), rep(-1, n - 1)), symmetric = TRUE)
  y <- sin(seq_len(n))
  joint <- function(Q_of) {
    function(p) {
      getAll(p)
      -dgmrf(u, 0, Q_of(exp(loga)), log = TRUE) - sum(dnorm(y, u, exp(logsd), log = TRUE))
    }
  }
  start <- list(loga = 0.3, logsd = -0.2, u = numeric(n))
  sparse <- MakeADFun(joint(function(a) a * L + Matrix::Diagonal(n)), start, random = "u")
  of_y <- function(theta) { # y is normal
    S <- solve(as.matrix(exp(theta[1]) * L + Matrix::Diagonal(n))) + diag(exp(2 * theta[2]), n)
    (sum(y * solve(S, y)) + as.numeric(determinant(S)$modulus) + n * log(2 * pi)) / 2
  }
  expect_equal(sparse$fn(), of_y(sparse$par), tolerance = 1e-9)
  slope <- vapply(list(c(1e-5, 0), c(0, 1e-5)), function(h) (of_y(sparse$par + h) - of_y(sparse$par - h)) / 2e-5, 0)
  expect_equal(as.vector(sparse$gr()), slope, tolerance = 1e-6)
})
