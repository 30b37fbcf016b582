test_once("sparse derivatives are dgCMatrix objects with the elements and names of dense ones", {
  skip_if_not_installed("Matrix")
  with_backend("numpy", {
    f <- function(x) sum(diff(x)^4) + sum(sin(x)) + x[1] * x[5]
    x <- c(a = 0.3, b = -1, c = 2, d = 0.7, e = 1.1)
    H <- hessian(f, x, sparse = TRUE)
    expect_s4_class(H, "dgCMatrix")
    expect_equal(as.matrix(H), hessian(f, x))
    expect_length(H@x, 15)
    g <- function(x) c(first = x[[1]]^2, second = x[[2]] * x[[3]], third = sum(x[4:5]))
    J <- jacobian(g, x, sparse = TRUE)
    expect_equal(as.matrix(J), jacobian(g, x))
    expect_length(J@x, 5)
    expect_equal(as.matrix(jacobian(g, x, sparse = TRUE, strategy = "reverse-mode")), jacobian(g, x))
  })
})

test_once("rows and columns follow R's element order; lists keep their structure", {
  skip_if_not_installed("Matrix")
  with_backend("numpy", {
    A <- matrix(c(0.1, 0.5, -0.3, 0.8, 0.2, -0.7), 2)
    f <- function(A) A^2 * matrix(1:6, 2) + A[, c(2, 3, 1)]
    expect_equal(as.matrix(jacobian(f, A, sparse = TRUE)), jacobian(f, A))
    h <- function(p) sum(p$w^3) * p$b + sum(p$w[1, ])
    p <- list(w = A, b = 2)
    dense <- hessian(h, p)
    sparse <- hessian(h, p, sparse = TRUE)
    expect_named(sparse, c("w", "b"))
    for (i in names(p)) for (j in names(p)) expect_equal(as.matrix(sparse[[i]][[j]]), dense[[i]][[j]])
    expect_length(sparse$b$b@x, 0)
    rows <- jacobian(function(p) p$w[1, ] * p$b, p, sparse = TRUE)
    expect_equal(lapply(rows, as.matrix), jacobian(function(p) p$w[1, ] * p$b, p))
  })
})

test_once("a banded Hessian of many variables takes few products", {
  skip_if_not_installed("Matrix")
  with_backend("numpy", {
    H <- hessian(function(x) sum(diff(x)^2) / 2, numeric(2000), sparse = TRUE)
    D <- Matrix::bandSparse(1999, 2000, c(0, 1), list(rep(-1, 1999), rep(1, 1999)))
    expect_lt(max(abs(H - Matrix::crossprod(D))), 1e-12)
    expect_length(H@x, 3 * 2000 - 2)
  })
})

test_once("errors say what to do", {
  skip_if_not_installed("Matrix")
  with_backend("numpy", {
    expect_error(hessian(sum, 1, sparse = NA), "`sparse` must be TRUE or FALSE", class = "gradops_error_type")
    branches <- function(x) if (x[1] > 0) sum(x^2) else sum(x)
    expect_error(hessian(branches, c(1, 2), sparse = TRUE), "looked at a value", class = "gradops_error")
  })
})

test_on(c("torch", "tensorflow", "jax"), "sparse derivatives need NumPy arrays", {
  expect_error(
    hessian(function(x) sum(x^2), op_convert_to_tensor(c(1, 2)), sparse = TRUE), "needs NumPy arrays",
    class = "gradops_error_type"
  )
})
