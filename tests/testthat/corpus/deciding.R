# Code as people write it: branches and loops that depend on known values.

y <- c(0.3, -1.2, 0.8, 0.5, -0.4, 1.1)
n <- length(y)

at("if (theta > 0)", c(0.4, 1.5), decides = TRUE, function(p) if (p[1] > 0) p[1]^2 * p[2] else -p[2])
at("if else by a sum", c(0.4, 1.5), decides = TRUE, function(p) {
  s <- sum(p)
  if (s < 1) s^2 else if (s < 3) s^3 else s
})
at("infeasible returns", c(0.4, 0.5), decides = TRUE, function(p) {
  if (any(p <= 0) || sum(p) >= 1) return(1e10)
  -sum(log(p)) - log(1 - sum(p))
})
at("if all", c(0.4, 0.5), decides = TRUE, function(p) {
  if (all(p > 0) && p[1] < p[2]) sum(log(p)) else sum(p^2)
})
at("while (abs(d) > tol)", 2, decides = TRUE, function(a) {
  x <- 1
  d <- 1
  while (abs(d) > 1e-12) {
    d <- (x^2 - a) / (2 * x)
    x <- x - d
  }
  x
})
at("repeat and break", 2, decides = TRUE, function(a) {
  x <- a
  repeat {
    new <- 0.5 * (x + a / x)
    if (abs(new - x) < 1e-13) break
    x <- new
  }
  x
})
at("for with break", 3, decides = TRUE, function(a) {
  x <- 1
  for (i in 1:50) {
    step <- (exp(x) - a) / exp(x)
    x <- x - step
    if (abs(step) < 1e-12) break
  }
  x
})
at("stopifnot", c(0.4, 1.5), decides = TRUE, function(p) {
  stopifnot(all(p > 0), length(p) == 2)
  sum(log(p))
})
at("stopifnot with names", c(0.4, 1.5), decides = TRUE, function(p) {
  stopifnot("must be positive" = p > 0, "must be two" = length(p) == 2L)
  prod(p)
})
at("if (!cond) stop()", c(0.4, 1.5), decides = TRUE, function(p) {
  if (!(p[2] > p[1])) stop("out of order")
  p[2] / p[1]
})
at("switch by a number", c(2, 1.5), decides = TRUE, function(p) {
  switch(p[1], p[2], p[2]^2 + p[1], 3)
}, gradient = function(x) c(1, 2 * x[2]))
at("switch by a name", c(0.4, 1.5), function(p) {
  link <- "log"
  f <- switch(link, log = exp, identity = function(x) x)
  sum(f(p))
})
at("which", c(0.4, -1.5, 2), decides = TRUE, function(p) sum(p[which(p > 0)]^2))
at("which.max", c(0.4, -1.5, 2), decides = NA, function(p) p[which.max(p)]^2)
at("x[x > 0]", c(0.4, -1.5, 2), decides = NA, function(p) sum(p[p > 0]^2))
at("x[x < 0] <- 0", c(0.4, -1.5, 2), decides = NA, function(p) {
  p[p < 0] <- 0
  sum(p^2)
})
at("number of positive", c(0.4, -1.5, 2), decides = NA, function(p) {
  k <- sum(p > 0)
  w <- rep(1 / k, k)
  sum(w * p[p > 0])
})
at("%in%", c(1, 2, 3), decides = TRUE, function(p) if (2 %in% p) sum(p^2) else sum(p),
  gradient = function(x) 2 * x)
at("match", c(1, 2, 3), decides = TRUE, function(p) sum(c(10, 20, 30)[match(round(p), 1:3)] * p))
at("for (v in p)", c(0.4, 1.5), function(p) {
  s <- 0
  for (v in p) s <- s + v^3
  s
})
at("for over filled", c(0.4, 1.5), function(p) {
  h <- numeric(3)
  h[2:3] <- p
  s <- 1
  for (v in h) s <- s * (1 + v)
  s
})
at("for over the names", c(a = 0.4, b = 1.5), function(p) {
  s <- 0
  for (k in names(p)) s <- s + p[[k]]^2
  s
})
at("seq_along(p)", c(0.4, 1.5), function(p) {
  s <- 0
  for (i in seq_along(p)) s <- s + i * p[i]
  s^2
})
at("ifelse", c(0.4, -1.5), function(p) sum(ifelse(p > 0, log1p(abs(p)), p^2)))
at("ifelse on data", c(0.4, 1.5), function(p) sum(ifelse(y > 0, p[1] * y, p[2] * y^2)))
at("pmax and pmin", c(0.4, -1.5), function(p) sum(pmax(p, 0)^2 + pmin(p, 1)))
at("max of two", c(0.4, -1.5), function(p) max(p[1], p[2])^2 + min(p))
at("censored by hand", c(0.2, 0.7), function(p) {
  ll <- numeric(n)
  for (i in seq_along(y)) {
    if (y[i] > 0.9) {
      ll[i] <- pnorm(0.9, p[1], p[2], lower.tail = FALSE, log.p = TRUE)
    } else {
      ll[i] <- dnorm(y[i], p[1], p[2], log = TRUE)
    }
  }
  -sum(ll)
})
at("Huber by if", c(0.2, 0.7), decides = TRUE, function(p) {
  huber <- function(r, k = 0.5) if (abs(r) <= k) r^2 / 2 else k * (abs(r) - k / 2)
  s <- 0
  for (v in y) s <- s + huber((v - p[1]) / p[2])
  s
})
at("piecewise by cut points", c(0.3, 0.6), decides = TRUE, function(p) {
  x <- p[1]
  if (x < 0.2) x else if (x >= 0.2 & x < 0.5) x^2 * p[2] else 1
})
at("findInterval", c(0.3, 0.6), decides = TRUE, function(p) {
  k <- findInterval(p, c(0, 0.25, 0.5))
  sum(c(1, 2, 3)[k] * p)
})
at("is.na, is.finite", c(0.3, 0.6), decides = NA, function(p) {
  v <- log(p)
  if (any(is.na(v)) || !all(is.finite(v))) return(Inf)
  sum(v)
})
at("isTRUE", c(0.3, 0.6), decides = NA, function(p) if (isTRUE(all(p < 1))) sum(p^2) else 0)
at("xor and !", c(0.3, 0.6), decides = TRUE, function(p) if (xor(p[1] > 0.5, p[2] > 0.5)) p[1] * p[2] else p[1])
at("equality", c(1, 0.6), decides = TRUE, function(p) if (p[1] == 1) p[2]^2 else p[2])
at("table of signs", c(1, -0.6, 2), decides = NA, function(p) sum(p * table(p > 0)[["TRUE"]]))
at("sum of indicator", c(0.3, 0.6), decides = NA, function(p) sum((p > 0.5) * p^2))
at("bisection", 0.3, decides = TRUE, function(a) {
  lo <- 0
  hi <- 2
  for (i in 1:5) {
    mid <- (lo + hi) / 2
    if (mid^3 > a) hi <- mid else lo <- mid
  }
  x <- (lo + hi) / 2
  for (i in 1:6) x <- x - (x^3 - a) / (3 * x^2)
  x
})
at("recursion", 0.3, function(a) {
  power <- function(x, k) if (k == 0) 1 else x * power(x, k - 1)
  power(a, 4) + a
})
at("recursion by value", 9, decides = TRUE, function(a) {
  half <- function(x) if (x > 1) half(x / 2) + x else x^2
  half(a)
})
at("order by values", c(0.3, -0.6, 1.1), decides = NA, function(p) sum(p[order(p)] * 1:3))
at("sort", c(0.3, -0.6, 1.1), decides = NA, function(p) sum(sort(p) * 1:3))
at("rank as weights", c(0.3, -0.6, 1.1), decides = NA, function(p) sum(rank(as.numeric(op_stop_gradient(p))) * p),
  gradient = function(x) rank(x))
at("try and tryCatch", c(0.3, 0.6), function(p) {
  v <- tryCatch(stop("no"), error = function(e) p[1]^2)
  w <- try(p[2] * 2, silent = TRUE)
  if (inherits(w, "try-error")) 0 else v + w
})
at("vapply with if", c(0.3, 0.6), decides = TRUE, function(p) {
  sum(vapply(1:2, function(i) if (p[i] > 0.5) p[i]^2 else p[i], 0))
})
at("conditions with NA", c(0.3, 0.6), function(p) {
  v <- c(1, NA, 3)
  s <- 0
  for (i in seq_along(v)) if (!is.na(v[i])) s <- s + v[i] * p[1]
  s * p[2]
})
