# Code as people write it: R vectors and matrices filled in loops.

y <- c(0.3, -1.2, 0.8, 0.5, -0.4, 1.1)
n <- length(y)
X <- cbind(1, c(0.5, -0.3, 0.9, 0.1, -0.8, 0.2))

# vectors, element by element
at("numeric(n)", c(0.1, 0.2, 0.7), function(p) {
  h <- numeric(n)
  h[1] <- p[1] / (1 - p[3])
  for (t in 2:n) h[t] <- p[1] + p[2] * y[t - 1]^2 + p[3] * h[t - 1]
  sum(log(h) + y^2 / h)
})
at("rep(0, n)", c(0.5, 0.3), function(p) {
  m <- rep(0, n)
  for (i in seq_len(n)) m[i] <- p[1] * y[i] + p[2]
  sum(m^2)
})
at("rep(NA, n)", c(0.5, 0.3), function(p) {
  m <- rep(NA, n)
  for (i in seq_along(y)) m[i] <- exp(p[1] * i) * p[2]
  sum(m)
})
at("rep(NA_real_, n)", c(0.5, 0.3), function(p) {
  m <- rep(NA_real_, n)
  for (i in 1:n) m[i] <- sin(p[1] * i) * p[2]
  sum(m * y)
})
at("vector(numeric)", c(0.4, 1.5), function(p) {
  s <- vector("numeric", n)
  s[1] <- p[1]
  for (i in 2:n) s[i] <- s[i - 1] * p[2] + y[i]
  s[n]
})
at("double(n), partly constant", c(0.4, 1.5), function(p) {
  s <- double(n)
  s[1] <- 2
  s[2] <- p[1]
  s[3:5] <- 1:3
  s[6] <- p[2] * s[3]
  sum(s^2)
})
at("integer start", c(0.4, 1.5), function(p) {
  s <- integer(3)
  s[2] <- p[1]
  s[3] <- p[2]^2
  sum(s * 1:3)
})
at("logical start", c(0.4, 1.5), function(p) {
  s <- logical(2)
  s[1] <- p[1] * p[2]
  s[2] <- p[2]
  prod(s)
})
at("1:n start", c(0.4, 1.5), function(p) {
  s <- 1:5
  s[2:3] <- p
  sum(s^2)
})
at("NULL that grows", c(0.4, 1.5), function(p) {
  out <- NULL
  for (i in 1:4) out[i] <- p[1]^i + p[2]
  sum(out)
})
at("c() that grows", c(0.4, 1.5), function(p) {
  out <- c()
  for (i in 1:4) out <- c(out, p[1] * i + p[2])
  sum(out^2)
})
at("numeric(0) that grows at its end", c(0.4, 1.5), function(p) {
  out <- numeric(0)
  for (i in 1:4) out[length(out) + 1] <- p[1]^i * p[2]
  sum(out^2)
})
at("a tensor that grows", c(0.4, 1.5), function(p) {
  out <- p
  out[3] <- p[1] * p[2]
  out[[4]] <- out[3]^2
  sum(out)
})
at("grows beyond its end", c(0.4, 1.5), function(p) {
  out <- 1
  out[3] <- p[1]
  out[2] <- p[2]
  sum(out * c(1, 2, 3))
})
at("[[<-", c(0.4, 1.5), function(p) {
  s <- numeric(3)
  s[[1]] <- p[1]
  s[[2]] <- p[[2]]
  s[[3]] <- s[[1]] * s[[2]]
  sum(s)
})
at("NULL[[i]]", c(0.4, 1.5), function(p) {
  s <- NULL
  s[[1]] <- p[1]
  s[[2]] <- p[2]
  s[[1]] * s[[2]]
})
at("slices", c(0.4, 1.5, 2), function(p) {
  s <- numeric(6)
  s[1:3] <- p
  s[4:6] <- p * 2
  sum(s^2)
})
at("recycled", c(0.4, 1.5), function(p) {
  s <- numeric(6)
  s[] <- p
  sum(s * 1:6)
})
at("s[] <- one number", c(0.4, 1.5), function(p) {
  s <- numeric(4)
  s[] <- p[1]
  s[-1] <- p[2]
  sum(s^2)
})
at("logical index", c(0.4, 1.5), function(p) {
  s <- numeric(n)
  s[y > 0] <- p[1]
  s[y <= 0] <- p[2]
  sum(s * y)
})
at("logical index, values", c(0.4, 1.5), function(p) {
  s <- numeric(n)
  s[y > 0] <- p[1] * y[y > 0]
  s[!(y > 0)] <- p[2]^2
  sum(s^2)
})
at("negative index", c(0.4, 1.5), function(p) {
  s <- rep(1, 4)
  s[-c(1, 4)] <- p
  sum(s^3)
})
at("positions by which", c(0.4, 1.5), function(p) {
  s <- numeric(n)
  s[which(y < 0)] <- p
  sum(s * y)
})
at("positions by order", c(0.4, 1.5, 0.2), function(p) {
  s <- numeric(3)
  s[order(c(3, 1, 2))] <- p
  sum(s * 1:3)
})
at("names", c(a = 0.4, b = 1.5), function(p) {
  s <- c(u = 0, v = 0)
  s["u"] <- p["a"]
  s["v"] <- p[["b"]] * s["u"]
  s[["u"]] + 2 * s[["v"]]
})
at("new names", c(0.4, 1.5), function(p) {
  s <- numeric(0)
  s["first"] <- p[1]
  s["second"] <- p[2] * s["first"]
  s[["second"]] + s[["first"]]^2
})
at("names stay", c(0.4, 1.5), function(p) {
  s <- c(a = 1, b = 2, c = 3)
  s[2] <- p[1]
  s[["c"]] <- p[2]
  s["a"] * s["b"] * s["c"]
})
at("[[name]] of NULL", c(0.4, 1.5), function(p) {
  s <- c()
  s[["a"]] <- p[1]
  s[["b"]] <- p[2]
  s[["a"]] / s[["b"]]
})
at("swap", c(0.4, 1.5), function(p) {
  v <- c(1, 2, 3)
  v[2] <- p[1]
  w <- v[2]
  v[2] <- v[3]
  v[3] <- w * p[2]
  sum(v * c(1, 10, 100))
})
at("accumulated in place", c(0.4, 1.5), function(p) {
  s <- numeric(2)
  for (i in 1:n) {
    k <- if (y[i] > 0) 1 else 2
    s[k] <- s[k] + p[k] * y[i]^2
  }
  sum(exp(s))
})
at("scalar that becomes a sum", c(0.4, 1.5), function(p) {
  nll <- 0
  for (i in 1:n) nll <- nll - dnorm(y[i], p[1], p[2], log = TRUE)
  nll
})
at("vector of contributions", c(0.4, 1.5), function(p) {
  ll <- numeric(n)
  for (i in 1:n) ll[i] <- dnorm(y[i], p[1], p[2], log = TRUE)
  -sum(ll)
})

# matrices and arrays
at("matrix(0, n, m)", c(0.4, 0.5), function(p) {
  M <- matrix(0, 2, 2)
  M[1, 1] <- p[1]
  M[2, 2] <- p[2]
  M[1, 2] <- p[1] * p[2]
  sum(M %*% M)
})
at("M[i, ]", c(0.4, 0.5), function(p) {
  M <- matrix(0, 3, 2)
  for (i in 1:3) M[i, ] <- p * i
  sum(M^2)
})
at("M[, j]", c(0.4, 0.5), function(p) {
  M <- matrix(NA, 2, 3)
  for (j in 1:3) M[, j] <- p^j
  sum(M)
})
at("M[i, j] in two loops", c(0.4, 0.5), function(p) {
  M <- matrix(0, 3, 3)
  for (i in 1:3) for (j in 1:3) M[i, j] <- p[1] * exp(-p[2] * abs(i - j))
  as.numeric(determinant(M + diag(3))$modulus)
})
at("block", c(0.4, 0.5, 0.6, 0.7), function(p) {
  M <- diag(4)
  M[1:2, 3:4] <- p
  M[3:4, 1:2] <- t(M[1:2, 3:4])
  sum(M %*% M)
})
at("lower triangle", c(1.4, 0.5, 0.6), function(p) {
  L <- matrix(0, 2, 2)
  L[lower.tri(L, diag = TRUE)] <- p
  S <- L %*% t(L)
  log(det(S)) + sum(S)
})
at("upper triangle by its mirror", c(0.4, 0.5, 0.6), function(p) {
  R <- diag(3)
  R[upper.tri(R)] <- p
  R[lower.tri(R)] <- t(R)[lower.tri(R)]
  sum(R %*% R)
})
at("diag<-", c(0.4, 0.5), function(p) {
  M <- matrix(0.1, 2, 2)
  diag(M) <- p
  det(M)
})
at("matrix of indices", c(0.4, 0.5), function(p) {
  M <- matrix(0, 3, 3)
  M[cbind(c(1, 3), c(2, 3))] <- p
  sum(M * 1:9)
})
at("logical matrix as index", c(0.4, 0.5), function(p) {
  M <- matrix(1:4 / 10, 2)
  M[M > 0.25] <- p
  sum(M^2)
})
at("one index into a matrix", c(0.4, 0.5), function(p) {
  M <- matrix(0, 2, 3)
  M[5] <- p[1]
  M[c(1, 6)] <- p
  sum(M * 1:6)
})
at("dimnames", c(0.4, 0.5), function(p) {
  M <- matrix(0, 2, 2, dimnames = list(c("a", "b"), c("u", "v")))
  M["a", "v"] <- p[1]
  sum(M) * p[2]
})
at("dimnames, read again", c(0.4, 0.5), function(p) {
  M <- matrix(0, 2, 2, dimnames = list(c("a", "b"), c("u", "v")))
  M["a", "u"] <- p[1]
  M["b", ] <- p[2] * M["a", "u"]
  M[["b", "v"]] * M["a", "u"] + sum(M[c("b", "a"), "u"])
})
at("a column of a data frame", c(0.4, 0.5), function(p) {
  d <- data.frame(x = 1:3, mu = 0)
  for (i in 1:3) d$mu[i] <- p[1] * d$x[i]
  sum(d$mu^2) * p[2]
})
at("an element of a data frame", c(0.4, 0.5), function(p) {
  d <- data.frame(x = 1:3, mu = 0)
  for (i in 1:3) d[i, "mu"] <- p[1] * d$x[i]
  d[["sd"]] <- p[2] + d$x
  sum(d$mu^2 / d$sd)
})
at("rows that a data frame does not have yet", c(0.4, 0.5), function(p) {
  d <- data.frame(x = p, mu = c(0, 1), of = "a")
  d[3, 1:2] <- p * d$x[2]
  d[5, 1] <- 2
  d$of[5] <- "b"
  sum(d$x[-4] * d$mu[c(1:3, 2)]) + p[2] * d$x[5] + sum(is.na(d$x))
})
at("length<-", c(0.4, 0.5), function(p) {
  v <- p
  length(v) <- 3
  v[3] <- 1
  sum(v^2)
})
at("array", c(0.4, 0.5), function(p) {
  A <- array(0, c(2, 2, 2))
  A[1, , 2] <- p
  A[2, 2, 1] <- p[1]
  A[, , 2][1] <- p[2]
  sum(A * 1:8)
})
at("array slice of a matrix", c(0.4, 0.5), function(p) {
  A <- array(0, dim = c(2, 2, 3))
  for (k in 1:3) A[, , k] <- outer(p, p^k)
  sum(A[, , 1] %*% A[, , 3])
})
at("rows of a data matrix replaced", c(0.4, 0.5), function(p) {
  Z <- X
  Z[2, ] <- p
  sum(crossprod(Z))
})
at("Leslie matrix", c(0.4, 0.5, 0.9), function(p) {
  L <- matrix(0, 3, 3)
  L[1, ] <- c(0, p[1], p[2])
  L[2, 1] <- p[3]
  L[3, 2] <- 0.6
  v <- c(10, 5, 1)
  for (t in 1:4) v <- L %*% v
  sum(v)
})
at("AR(1) covariance", c(0.4, 0.5), function(p) {
  S <- matrix(0, n, n)
  for (i in 1:n) for (j in 1:i) S[i, j] <- S[j, i] <- exp(p[2]) * tanh(p[1])^abs(i - j)
  diag(S) <- diag(S) + 0.1
  R <- chol(S)
  z <- backsolve(R, y, transpose = TRUE)
  sum(log(diag(R))) + 0.5 * sum(z^2)
})

# nested in lists
at("list of vectors", c(0.4, 0.5), function(p) {
  l <- list(a = numeric(2), b = 1)
  l$a[1] <- p[1]
  l$a[2] <- p[2]
  l[["b"]] <- sum(l$a)
  l$b * l$a[2]
})
at("list filled by position", c(0.4, 0.5), function(p) {
  l <- vector("list", 3)
  for (i in 1:3) l[[i]] <- p^i
  sum(Reduce(`+`, l))
})
at("l[i] <- list(v)", c(0.4, 0.5), function(p) {
  l <- list()
  l[1] <- list(p[1])
  l["b"] <- p[2]
  l[[1]] * l$b
})
at("nested lists", c(0.4, 0.5), function(p) {
  s <- list(state = list(x = c(0, 0)))
  s$state$x[2] <- p[1]
  s$state$x[1] <- s$state$x[2] * p[2]
  sum(s$state$x)
})
at("list of matrices", c(0.4, 0.5), function(p) {
  l <- list(m = matrix(0, 2, 2))
  l$m[1, ] <- p
  l$m[2, 1] <- p[1]
  sum(l$m^2)
})
at("names<- and levels of index", c(0.4, 0.5), function(p) {
  s <- numeric(2)
  names(s) <- c("x", "y")
  s[c("y", "x")] <- p
  s["x"] - 3 * s["y"]
})
at("environment as state", c(0.4, 0.5), function(p) {
  state <- new.env()
  state$h <- numeric(3)
  for (i in 1:3) state$h[i] <- p[1] * i + p[2]
  sum(state$h^2)
})
at("<<- in a local function", c(0.4, 0.5), function(p) {
  h <- numeric(3)
  step <- function(i) h[i] <<- p[1] * i^2 + p[2]
  for (i in 1:3) step(i)
  sum(h^2)
})
at("assign and get", c(0.4, 0.5), function(p) {
  for (i in 1:2) assign(paste0("z", i), p[i]^2)
  z <- numeric(2)
  z[1] <- get("z1")
  z[2] <- z2
  sum(z)
})
at("local()", c(0.4, 0.5), function(p) {
  v <- local({
    h <- numeric(2)
    h[1] <- p[1]
    h[2] <- p[2] * h[1]
    h
  })
  sum(v)
})
at("with() of data", c(0.4, 0.5), function(p) {
  d <- data.frame(x = 1:3, z = c(2, 1, 0))
  with(d, {
    m <- numeric(3)
    for (i in 1:3) m[i] <- p[1] * x[i] + p[2] * z[i]
    sum(m^2)
  })
})
at("append", c(0.4, 0.5), function(p) {
  v <- append(c(1, 2, 3), p, after = 1)
  sum(v * 1:5)
})
at("replace", c(0.4, 0.5), function(p) {
  sum(replace(y, c(2, 4), p)^2)
})
at("rev, head, tail of what was filled", c(0.4, 0.5), function(p) {
  v <- numeric(4)
  v[2:3] <- p
  sum(rev(v)[1:3] * head(v, 3) + tail(v, 3))
})
at("cumulative product by hand", c(0.4, 0.5), function(p) {
  s <- rep(1, 5)
  for (i in 2:5) s[i] <- s[i - 1] * plogis(p[1] + p[2] * i)
  sum(s)
})
at("vector index by a vector", c(0.4, 0.5, 0.6), function(p) {
  g <- c(1, 2, 3, 2, 1, 3)
  mu <- numeric(n)
  for (k in unique(g)) mu[g == k] <- p[k]
  sum((y - mu)^2)
})
at("while loop filling", c(0.4, 0.5), function(p) {
  v <- numeric(4)
  i <- 1
  while (i <= 4) {
    v[i] <- p[1]^i * p[2]
    i <- i + 1
  }
  sum(v)
})
at("repeat and next", c(0.4, 0.5), function(p) {
  v <- numeric(5)
  i <- 0
  repeat {
    i <- i + 1
    if (i %% 2 == 0) next
    if (i > 5) break
    v[i] <- p[1] * i
  }
  sum(v) * p[2]
})
at("another name keeps what it had", c(0.5, 0.9), function(p) {
  h <- numeric(3)
  h[1] <- p[1]
  h[2] <- p[2]
  k <- h
  h[1] <- p[2]^2
  h[3] <- k[1] * h[1]
  k[2] <- p[1]^3
  sum(h * 1:3) + sum(k * 4:6) + k[2] + h[2]
})
at("slices from slices", c(0.5, 0.9), function(p) {
  A <- array(0, c(2, 2, 3))
  A[, , 1] <- outer(p, p)
  for (i in 2:3) A[, , i] <- A[, , i - 1] %*% A[, , 1] + 1
  sum(A * 1:12) + A[2, 1, 3]
})
at("parts of rows and blocks", c(0.5, 0.9), function(p) {
  M <- matrix(1, 3, 3)
  M[1, 1] <- p[1]
  M[1:2, 2:3] <- M[1:2, 1:2] * p[2]
  M[1:2, 2:3] <- t(M[1:2, 2:3]) + M[1, 3]
  M[3, ] <- p[1]
  M[3, 2] <- M[3, 1] + M[2, 1]
  M[-1, 1] <- M[-1, 2]
  sum(M * 1:9)
})
at("read as a whole while it is filled", c(0.5, 0.9), function(p) {
  s <- numeric(4)
  for (i in 1:4) s[i] <- p[1] * i + sum(s) * p[2] + length(s)
  s[2] <- 5
  s[2:3] <- s[c(3, 2)] + c(1, 2)
  s[c(1, 1)] <- p
  sum(s^2) + s[1]
})
at("where something is missing, by which()", c(0.5, 0.9), function(p) {
  seen <- c(2, NA, 0, 3)
  term <- dpois(seen, p[1] * 1:4, log = TRUE) * p[2]
  term[which(is.na(term))] <- 0
  sum(term)
})
at("one value where a test of what is computed holds", c(0.5, 0.9), function(p) {
  above <- p * c(2, -3)
  above[above < 0] <- 0.1
  low <- outer(p, c(1, -1, 2))
  low[low < 0.2] <- p[1]
  low[which(low > 1.1)] <- 3
  kept <- replace(c(a = p[1], b = p[2]), c(p[2], p[1]) > 0.6, -p[1])
  sum(above^2) + sum(low * 1:6) + kept["a"]^3 * kept["b"]
})
at("values of their own where a test holds", c(0.5, 0.9), decides = NA, function(p) {
  low <- outer(p, c(1, -1, 2))
  low[low < 0.2] <- -low[low < 0.2]^2
  sum(low * 1:6)
})

# Missing parts of lists become lists, as in R.
at("a part of an empty part of a list", c(0.7, 1.3), function(p) {
  r <- list()
  for (g in c("u", "v")) {
    r[[g]][["mu"]] <- p[[1]]
    r[[g]][["sigma"]] <- p[[2]]^2
  }
  r[["w"]][["a"]][["b"]] <- p[1]
  sum(vapply(r[1:2], function(part) part$mu * part$sigma, 0)) + r$w$a$b^2
})
at("functions of a list that starts as NULL", c(0.7, 1.3), function(p) {
  x <- NULL
  x[["a"]] <- p[1]
  x[["b"]] <- p[2]
  do.call(sum, x) * with(x, a + b^2) * sum(unlist(x)) + do.call("max", x)
})
