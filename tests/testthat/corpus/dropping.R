# Code as people write it: dropped dimensions, and values taken unchanged.

y <- c(0.3, -1.2, 0.8, 0.5, -0.4, 1.1)
n <- length(y)
X <- cbind(1, c(0.5, -0.3, 0.9, 0.1, -0.8, 0.2))

at("as.vector(X %*% b)", c(0.4, 1.5), function(b) {
  e <- y - as.vector(X %*% b)
  sum(e^2)
})
at("as.numeric(X %*% b)", c(0.4, 1.5), function(b) -sum(dnorm(y, as.numeric(X %*% b), 0.7, log = TRUE)))
at("as.double", c(0.4, 1.5), function(b) sum(as.double(X %*% b)^2))
at("as.numeric(crossprod(r))", c(0.4, 1.5), function(b) {
  r <- y - X %*% b
  as.numeric(crossprod(r)) / n
})
at("c(X %*% b)", c(0.4, 1.5), function(b) sum((y - c(X %*% b))^2))
at("drop", c(0.4, 1.5), function(b) sum((y - drop(X %*% b))^2))
at("as.matrix(p)", c(0.4, 1.5), function(b) sum((y - X %*% as.matrix(b))^2))
at("as.array", c(0.4, 1.5), function(b) sum(as.array(b)^3))
at("as.vector of a matrix", c(1, 2, 3, 4), function(p) {
  M <- matrix(p, 2)
  v <- as.vector(t(M))
  sum(v * 1:4)
})
at("determinant()$modulus", c(0.4, 0.3), function(p) {
  M <- matrix(c(1, p[1], p[1], 1 + p[2]), 2)
  as.numeric(determinant(M)$modulus)
})
at("as.numeric(determinant(logarithm))", c(0.4, 0.3), function(p) {
  as.numeric(determinant(diag(2) + outer(p, p), logarithm = TRUE)$modulus)
})
at("as.vector of named", c(a = 0.4, b = 1.5), function(p) sum(as.vector(p) * c(1, 3)))
at("unname", c(a = 0.4, b = 1.5), function(p) sum(unname(p)^2))
at("unlist(lapply())", c(0.4, 1.5), function(p) {
  sum(unlist(lapply(1:4, function(i) p[1]^i + p[2])))
})
at("unlist of a list of pieces", c(0.4, 1.5), function(p) {
  parts <- list(a = p[1], b = list(p[2], 3))
  sum(unlist(parts)^2)
})
at("c with numbers in front", c(0.4, 1.5), function(p) sum(cumsum(c(0, p, 1))))
at("do.call(rbind, lapply())", c(0.4, 1.5), function(p) {
  M <- do.call(rbind, lapply(1:3, function(i) p * i))
  sum(M %*% t(M))
})
at("do.call by name", c(0.4, 1.5), function(p) sum(do.call("c", list(1, p[2], p[1]))^2))
at("do.call(sum)", c(0.4, 1.5), function(p) do.call("sum", list(p[1]^2, p[2])))
at("sapply", c(0.4, 1.5), function(p) sum(sapply(y, function(v) exp(p[1] * v) + p[2])))
at("sapply to a matrix", c(0.4, 1.5), function(p) sum(sapply(1:3, function(i) p^i) %*% 1:3))
at("vapply", c(0.4, 1.5), function(p) sum(vapply(1:3, function(i) p[1]^i * p[2], numeric(1))))
at("mapply", c(0.4, 1.5), function(p) sum(mapply(function(a, b) p[1] * a + p[2]^b, 1:3, 3:1)))
at("Map and Reduce", c(0.4, 1.5), function(p) {
  Reduce(`+`, Map(function(a, b) p[1] * a * b + p[2]^a, 1:3, c(2, 0, 1)))
})
at("Reduce accumulate", c(0.4, 1.5), function(p) {
  s <- Reduce(function(a, b) p[1] * a + b, y, accumulate = TRUE)
  sum(s^2) * p[2]
})
at("Reduce with init", c(0.4, 1.5), function(p) Reduce(function(a, b) a * p[1] + b, 1:4, p[2]))
at("Filter", c(0.4, 1.5), function(p) sum(unlist(Filter(Negate(is.null), list(p[1], NULL, p[2]^2)))))
at("Vectorize", c(0.4, 1.5), function(p) {
  f <- Vectorize(function(a, b) if (a > b) p[1] * a else p[2] * b)
  sum(f(c(1, 5, 3), c(2, 2, 4)))
})
at("outer", c(0.4, 1.5), function(p) sum(outer(p, 1:3) * 1:6))
at("outer with a function", c(0.4, 1.5), function(p) sum(outer(1:2, 1:3, function(i, j) p[1]^i * p[2]^j)))
at("apply over rows", c(0.4, 1.5), function(p) sum(apply(X, 1, function(r) exp(sum(r * p)))))
at("rowSums", c(0.4, 1.5), function(p) sum(log(rowSums(exp(X %*% diag(p))))))
at("sweep", c(0.4, 1.5), function(p) sum(sweep(X, 2, p)^2))
at("cbind and rbind", c(0.4, 1.5), function(p) sum(cbind(1, p) %*% rbind(p, 2)))
at("matrix(p, ...)", c(1, 2, 3, 4), function(p) sum(solve(matrix(p, 2, byrow = TRUE))))
at("cov2cor", c(0.4, 1.5), function(p) {
  S <- matrix(c(1 + p[1]^2, 0.3, 0.3, p[2]), 2)
  cov2cor(S)[1, 2]
})
at("is.vector guards", c(0.4, 1.5), function(p) {
  if (!is.vector(p)) stop("a vector is wanted")
  if (!is.numeric(p)) stop("numbers are wanted")
  if (is.matrix(p)) p <- p[, 1]
  sum(p^2)
})
at("is.atomic, is.double, mode", c(0.4, 1.5), function(p) {
  stopifnot(is.atomic(p), is.double(p), mode(p) == "numeric", length(p) == 2)
  sum(p^2)
})
at("as.list(p)", c(a = 0.4, b = 1.5), function(p) {
  p <- as.list(p)
  p$a^2 + p$b
})
at("with(as.list(p))", c(a = 0.4, b = 1.5), function(p) with(as.list(p), a * exp(b)))
at("split parameters by position", c(0.4, 1.5, 0.2), function(p) {
  beta <- p[1:2]
  sigma <- exp(p[3])
  mu <- as.vector(X %*% beta)
  -sum(dnorm(y, mu, sigma, log = TRUE))
})
at("t() of a vector", c(0.4, 1.5), function(p) as.numeric(t(p) %*% matrix(c(2, 1, 1, 3), 2) %*% p))
at("quadratic form by solve", c(0.4, 1.5), function(p) {
  S <- matrix(c(2, 0.5, 0.5, 1), 2)
  as.numeric(t(p) %*% solve(S) %*% p)
})
at("crossprod as number", c(0.4, 1.5), function(p) crossprod(p)[1] + c(crossprod(X %*% p)))
at("mean of as.numeric", c(0.4, 1.5), function(p) mean(as.numeric(exp(X %*% p))))
at("stop gradient explicitly", c(0.4, 1.5), function(p) {
  w <- as.numeric(op_stop_gradient(p))
  sum(w * p)
}, gradient = function(x) x)
