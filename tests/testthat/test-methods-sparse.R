attach_both <- function(first, second) {
  in_new_process(c(
    sprintf("suppressMessages({library(%s); library(%s)})", first, second),
    "m <- matrix(c(2, 0.5, 0.5, 1), 2)",
    "sparse <- Matrix(c(2, 0, 0, 3), 2, sparse = TRUE)",
    "f <- function(p) {",
    "  s <- m * p[1]",
    "  sum(crossprod(s, p)) + sum(solve(s, p)) + sum(diag(s)) + sum(kronecker(s, m)) + sum(colSums(s) * p) +",
    "    sum(tcrossprod(s, m)) + sum(sparse %*% p) + sum(crossprod(p, sparse)) + sum(solve(m, p)) +",
    "    sum(solve(sparse, p)) + sum(rowMeans(s)) + norm(s, 'F') + sum(sparse * p[2]) + sum(p[1] - sparse) +",
    "    sum(chol(s)) + det(s) + sum(expm(s))",
    "}",
    "base <- function(p) {",
    "  s <- m * p[1]",
    "  dense <- as.matrix(sparse)",
    "  sum(base::crossprod(s, p)) + sum(base::solve(s, p)) + sum(base::diag(s)) + sum(base::kronecker(s, m)) +",
    "    sum(base::colSums(s) * p) + sum(base::tcrossprod(s, m)) + sum(dense %*% p) + sum(base::crossprod(p, dense)) +",
    "    sum(base::solve(m, p)) + sum(base::solve(dense, p)) + sum(base::rowMeans(s)) + base::norm(s, 'F') +",
    "    sum(dense * p[2]) + sum(p[1] - dense) + sum(chol(s)) + det(s) + sum(as.matrix(Matrix::expm(s)))",
    "}",
    "p <- c(1.3, 0.7)",
    "slope <- sapply(1:2, function(i) { h <- replace(c(0, 0), i, 1e-5); (base(p + h) - base(p - h)) / 2e-5 })",
    "found <- value_and_grad(f)(p)",
    "cat(isTRUE(all.equal(found$value, base(p))), isTRUE(all.equal(found$gradient, slope, tolerance = 1e-6)), '\\n')",
    "plain <- as.matrix(crossprod(sparse, m))",
    "cat(isTRUE(all.equal(plain, base::crossprod(as.matrix(sparse), m))), isVirtualClass('Matrix'), '\\n')"
  ))
}

test_once("Matrix may be attached before or after gradops", {
  skip_on_cran()
  skip_if(is_loaded_from_source())
  skip_if_not_installed("Matrix")
  skip_without()
  for (order in list(c("Matrix", "gradops"), c("gradops", "Matrix"))) {
    said <- attach_both(order[1], order[2])
    expect_identical(utils::tail(said, 2), c("TRUE TRUE ", "TRUE TRUE "), info = paste(c(order, said), collapse = "\n"))
  }
})

test_each("derivatives of sparse products and solves are sparse, to second order", {
  skip_if_not_installed("Matrix")
  n <- 2000
  wide <- Matrix::sparseMatrix(seq_len(n), seq_len(n), x = 2)
  expect_equal(gradient(function(p) sum((wide %*% p)^2), rep(1, n)), rep(8, n))
  small <- Matrix::sparseMatrix(c(1, 2, 2), c(1, 1, 2), x = c(2, 1, 4))
  dense <- as.matrix(small)
  f <- function(m) function(p) sum(solve(m, p^2)^2) + sum((m %*% p)^3)
  expect_equal(hessian(f(small), c(0.5, 2)), hessian(f(dense), c(0.5, 2)), tolerance = 1e-6)
  expect_error(small %*% op_ones(3L), class = "gradops_error_shape")
})

test_each("operators combine each kind of Matrix object with tensors and sparse tensors", {
  skip_if_not_installed("Matrix")
  m <- matrix(c(2, 0, 0.5, 3), 2)
  kinds <- list(
    methods::as(m, "CsparseMatrix"), methods::as(m, "TsparseMatrix"), methods::as(m, "RsparseMatrix"),
    methods::as(m, "unpackedMatrix"), Matrix::Diagonal(2), Matrix::Matrix(crossprod(m), sparse = TRUE),
    Matrix::Matrix(upper.tri(m), sparse = TRUE), methods::as(2:1, "pMatrix"), Matrix::Matrix(m > 1)
  )
  x <- matrix(c(1, -2, 3, 0.5), 2)
  numbers <- function(y) as.vector(as.array(as.matrix(y)))
  for (kind in kinds) {
    plain <- as.matrix(kind)
    for (operator in c("+", "-", "*", "/", "<", ">=", "==", "!=", "%*%")) {
      f <- get(operator)
      label <- paste(class(kind), operator)
      expect_equal(numbers(f(kind, op_array(x))), numbers(f(plain, x)), info = label)
      expect_equal(numbers(f(op_array(x), kind)), numbers(f(x, plain)), info = label)
    }
    for (f in c(`+`, `-`, `*`, `%*%`)) { # p times a Matrix object is a sparse tensor
      total <- function(scaled) function(p) sum(as.matrix(f(p[1] * scaled, kind)) + as.matrix(f(kind, p[2] * scaled)))
      scaled <- kinds[[1L]]
      expect_equal(value_and_grad(total(scaled))(c(1.5, 2))$value, total(m)(c(1.5, 2)))
    }
  }
})
