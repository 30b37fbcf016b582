# Plain R functions as people write them: factors, sparse matrices, series, interpolation, solvers. Each gives base R's
# value and a derivative that matches numerical differentiation, also compiled, at a second point. Like test_each(): on
# NumPy, and with GRADOPS_LONG on every backend.

# Central differences with one Richardson step.
extrapolated_gradient <- function(f, x, step = 1e-3) {
  h <- step * pmax(1, abs(x))
  slope <- function(i, h) (f(replace(x, i, x[i] + h)) - f(replace(x, i, x[i] - h))) / (2 * h)
  vapply(seq_along(x), function(i) {
    a <- slope(i, h[i])
    b <- slope(i, h[i] / 2)
    d <- slope(i, h[i] / 4)
    (64 * d - 20 * b + a) / 45
  }, 0)
}

expect_corpus <- function(functions) {
  for (backend in each_backends()) {
    for (name in names(functions)) {
      entry <- functions[[name]]
      test_that(sprintf("%s (%s)", name, backend), {
        skip_without(backend)
        local_backend(backend)
        for (package in entry$needs) skip_if_not_installed(package)
        f <- entry$f
        at <- function(x, value, gradient) {
          expect_equal(as.double(value), as.double(f(x)), tolerance = entry$tolerance %||% 1e-7)
          expect_equal(
            as.vector(unname(gradient)), extrapolated_gradient(function(x) as.double(f(x)), x),
            tolerance = entry$slope %||% 1e-6
          )
        }
        first <- value_and_grad(f)(entry$x)
        at(entry$x, first$value, first$gradient)
        if (!isFALSE(entry$compiled)) {
          compiled <- jit(value_and_grad(f))
          compiled(entry$x)
          second <- compiled(entry$again %||% (entry$x * 1.07 + 0.013))
          at(entry$again %||% (entry$x * 1.07 + 0.013), second$value, second$gradient)
        }
      })
    }
  }
}

# The functions belong to the global environment, as a user's, with their data in front; not to a copy of the namespace.
corpus <- new.env(parent = globalenv())
corpus_data <- c(
  "site", "plot_of", "dose", "yield", "field", "design", "response", "precision", "general", "pattern", "wave", "gaps",
  "points", "knots", "heights", "decay"
)

entry <- function(f, x, ...) {
  list2env(mget(intersect(corpus_data, ls(parent.frame())), parent.frame()), corpus)
  if (identical(environment(f), parent.frame())) environment(f) <- corpus
  list(f = f, x = x, ...)
}

# Factors --------------------------------------------------------------------------------------------------------------

set.seed(1)
site <- factor(c("b", "a", "c", "a", "b", "c", "c", "a"), levels = c("c", "a", "b"))
plot_of <- factor(rep(c("p", "q"), 4))
dose <- c(0.1, 0.5, 0.9, 1.3, 1.7, 2.1, 2.5, 2.9)
yield <- c(1.2, 0.7, 2.9, 1.1, 3.1, 2.2, 3.3, 2.0)
field <- data.frame(site, plot = plot_of, dose, yield)

expect_corpus(list(
  "an intercept for each level" = entry(
    function(p) -sum(dnorm(yield, p[1] + p[3:5][site], exp(p[2]), log = TRUE)), c(1, 0.2, -0.3, 0.4, 0.1)
  ),
  "an ordered factor as an index" = entry(
    function(a) sum((yield - a[factor(site, ordered = TRUE)] * dose)^2), c(1, 2, 3)
  ),
  "levels by name" = entry(
    function(b) sum((yield - b[as.character(site)])^2), c(a = 1, b = 0.5, c = 2)
  ),
  "two factors" = entry(function(u) sum((yield - u[1:2][plot_of] - u[3:5][site])^2), (1:5) / 10),
  "rows of a matrix by a factor" = entry(
    function(p) sum((yield - rowSums(matrix(p, 3)[site, ] * cbind(1, dose)))^2), (1:6) / 5
  ),
  "likelihood of each part" = entry(
    function(p) {
      parts <- split(field, field$site)
      sum(sapply(parts, function(d) log(mean(exp(dnorm(d$yield, p[1] + p[2] * d$dose, 1, log = TRUE))))))
    }, c(0.5, 0.8)
  ),
  "split() of what is estimated" = entry(
    function(u) sum(sapply(split(u * dose, site), function(v) prod(v))), (1:8) / 3
  ),
  "tapply() sums" = entry(function(p) sum(tapply(dnorm(yield, p[1], p[2]), site, sum)^2), c(1.5, 1)),
  "tapply() means of two factors, one cell empty" = entry(
    function(p) sum(tapply(exp(p[1] * dose) * p[2], list(site, plot_of), mean)[1:2, ]^2, na.rm = TRUE), c(0.3, 1.1)
  ),
  "tapply() with a function of one's own" = entry(
    function(p) sum(tapply(p * dose, site, function(v) log(sum(exp(v)))) * 1:3), (8:1) / 4
  ),
  "tapply() of positions" = entry(
    function(p) sum(tapply(seq_along(yield), site, function(i) sum(p[i])^2)), (1:8) / 4
  ),
  "ave() centres" = entry(function(p) sum((p * yield - ave(p * yield, site))^2), (1:8) / 4),
  "ave() with a function" = entry(function(p) sum(ave(p, site, plot_of, FUN = function(v) v / sum(v))^2), (1:8) / 4),
  "rowsum() of a matrix" = entry(function(p) sum(rowsum(matrix(p, 8) * dose, site)^2), (1:16) / 9),
  "rowsum() in the order of groups" = entry(
    function(p) sum(rowsum(p, as.character(site), reorder = FALSE) * 1:3), (1:8) / 4
  ),
  "by() of a data frame" = entry(
    function(p) -sum(by(field, field$site, function(d) sum(dnorm(d$yield, p[1] + p[2] * d$dose, p[3], log = TRUE)))),
    c(0.5, 0.7, 1.2)
  ),
  "aggregate()" = entry(function(p) sum(aggregate(p * yield, list(g = site), mean)$x^2), (1:8) / 4),
  "unsplit() puts back" = entry(
    function(p) sum(unsplit(lapply(split(p * dose, site), function(v) v / max(v)), site) * yield),
    c(3, 1, 2, 5, 4, 7, 6, 8) / 3
  ),
  "a model matrix" = entry(
    function(b) sum((yield - model.matrix(~ site * dose, field) %*% b)^2), (1:6) / 7
  ),
  "random effects with a crossed design" = entry(
    function(p) {
      u <- p[1:3]
      v <- p[4:5]
      mu <- p[6] + u[site] + v[plot_of]
      -sum(dnorm(u, 0, exp(p[7]), log = TRUE)) - sum(dnorm(v, 0, 1, log = TRUE)) -
        sum(dpois(round(yield), exp(mu), log = TRUE))
    }, c(0.1, -0.2, 0.1, 0.3, -0.3, 0.5, -0.1)
  )
))

# Sparse matrices ------------------------------------------------------------------------------------------------------

if (requireNamespace("Matrix", quietly = TRUE)) {
  design <- Matrix::sparseMatrix(c(1, 2, 3, 4, 5, 5), c(1, 2, 1, 3, 2, 3), x = c(1, 2, 1, 1, 3, 0.5))
  response <- c(1, 0.5, 2, 1.5, 3)
  precision <- Matrix::bandSparse(5, k = 0:1, diagonals = list(rep(2.5, 5), rep(-1, 4)), symmetric = TRUE)
  general <- Matrix::sparseMatrix(c(1, 2, 3, 1), c(1, 2, 3, 3), x = c(2, 3, 4, 1))
  pattern <- Matrix::sparseMatrix(c(1, 2, 3), c(2, 3, 1))
  expect_corpus(list(
    "M %*% p" = entry(function(p) sum((design %*% p - response)^2), c(1, 0.3, 0.7), needs = "Matrix"),
    "as.vector(M %*% p)" = entry(
      function(p) -sum(dnorm(response, as.vector(design %*% p[1:3]), exp(p[4]), log = TRUE)), c(1, 0.3, 0.7, 0.1)
    ),
    "M %*% a matrix" = entry(function(p) sum((design %*% matrix(p, 3))^2), (1:6) / 4),
    "crossprod(M, p)" = entry(function(p) sum(crossprod(design, p)^2), (1:5) / 4),
    "crossprod(p, M)" = entry(function(p) sum(crossprod(p, design)^2 * 1:3), (1:5) / 4),
    "tcrossprod(M, P)" = entry(function(p) sum(tcrossprod(design, matrix(p, 2))^2), (1:6) / 4),
    "a quadratic form" = entry(function(u) sum(u * (precision %*% u)) / 2, (1:5) / 4),
    "t(u) %*% Q %*% u" = entry(function(u) sum(t(u) %*% precision %*% u), (1:5) / 4),
    "a pattern moves" = entry(function(p) sum((pattern %*% p) * exp(1:3 / 3)), c(1, 2, 4)),
    "Diagonal() scales" = entry(function(p) sum((Matrix::Diagonal(x = 1:3) %*% p)^2), c(1, 2, 4)),
    "solve(M, p)" = entry(function(p) sum(solve(general, p)^2), c(1, 2, 4)),
    "solve(Q, p) symmetric" = entry(function(p) sum(p * solve(precision, p)), (1:5) / 4),
    "solve(M, P) of columns" = entry(function(p) sum(solve(general, matrix(p, 3))^3), (1:6) / 4),
    "a random walk's density" = entry(
      function(p) {
        u <- p[1:5]
        tau <- exp(p[6])
        -sum(dnorm(response, u, 0.5, log = TRUE)) + tau * sum(u * (precision %*% u)) / 2 - 5 / 2 * log(tau)
      }, c((1:5) / 4, 0.3)
    ),
    "M * p is dense" = entry(function(p) sum((precision * p[1] + p[2])^2), c(1.2, 0.1)),
    "expm()" = entry(function(p) sum(Matrix::expm(matrix(p, 2))[1, ] * 1:2), c(-1, 0.5, 1, -0.7))
  ))
}

# Series and signals ---------------------------------------------------------------------------------------------------

wave <- sin(1:12) + (1:12) / 5
gaps <- c(0.3, 1.1, 1.9, 3.2, 4.1)

expect_corpus(list(
  "a periodogram" = entry(function(p) sum(Mod(fft(wave * p[1] + p[2]))^2 * 12:1), c(1, 0.3)),
  "fft() there and back" = entry(function(p) sum(Re(fft(fft(p) * 1:6, inverse = TRUE))^2) / 36, (1:6) / 3),
  "fft() of a matrix" = entry(function(p) sum(Mod(fft(matrix(p, 2)))^2 * 1:6), (1:6)^2 / 9),
  "mvfft()" = entry(function(p) sum(Mod(mvfft(matrix(p, 3)))^2 * 1:6), (1:6)^2 / 9),
  "a circular convolution" = entry(function(p) sum(convolve(p, 1:6)^2), (1:6) / 3),
  "an open convolution" = entry(function(p) sum(convolve(wave, rev(p), type = "open")^2), c(0.5, 0.3, 0.2)),
  "a filtering convolution" = entry(function(p) sum(convolve(wave, p, type = "filter")^2), c(0.5, 0.3, 0.2)),
  "a moving average" = entry(function(p) sum(filter(wave * p[1], rep(1, 3) / 3)[2:11]^2), 1.3),
  "stats::filter() and stats::fft()" = entry(
    function(p) sum(stats::filter(wave * p[1], p[2:3], method = "recursive")^2) + sum(Mod(stats::fft(p))^2 * 1:3),
    c(1.3, 0.4, -0.2)
  ),
  "weights of a moving average" = entry(function(p) sum(filter(wave, p, sides = 1)[3:12]^2), c(0.5, 0.3, 0.2)),
  "a circular moving average" = entry(function(p) sum(filter(wave, p, circular = TRUE)^2), c(0.5, 0.3, 0.2)),
  "an autoregression" = entry(
    function(p) sum(filter(wave, p, method = "recursive")^2), c(0.5, -0.3)
  ),
  "an autoregression's start" = entry(
    function(p) sum(filter(wave, c(0.5, 0.2), method = "recursive", init = p)^2), c(1, -1)
  ),
  "embed() for lags" = entry(
    function(p) {
      lags <- embed(wave * p[3], 3)
      sum((lags[, 1] - lags[, -1] %*% p[1:2])^2)
    }, c(0.5, 0.2, 1.1)
  ),
  "toeplitz() covariance" = entry(
    function(p) {
      s <- toeplitz(p[1] * exp(-(0:4) / p[2]))
      sum(gaps * solve(s, gaps)) + determinant(s)$modulus
    }, c(1, 2)
  ),
  "outer() with a function of closures" = entry(
    function(p) {
      s <- outer(gaps, gaps, function(a, b) p[1]^2 * exp(-abs(a - b) / p[2])) + diag(5) * 0.1
      sum(gaps * solve(s, gaps))
    }, c(1, 2)
  ),
  "outer() with names" = entry(
    function(p) sum(outer(c(a = 1, b = 2), c(x = 1, y = 3), function(i, j) p[1] * i^p[2] + j)^2), c(1, 2)
  ),
  "outer() with Vectorize()" = entry(
    function(p) sum(outer(1:3, 1:2, Vectorize(function(i, j) sum(p[seq_len(i)]) * p[j]))), c(1, 2, 4)
  ),
  "Vectorize()" = entry(
    function(p) sum(Vectorize(function(a, b) a * b^2 + p[1])(p, 2:4)), c(1, 2, 4)
  ),
  "a time series beside a mean" = entry(
    function(p) sum((window(ldeaths, 1974, c(1974, 12)) / 1000 - p[1] - p[2] * 1:12)^2), c(2, -0.05)
  ),
  "the density of a time series" = entry(
    function(p) -sum(dnorm(ts(wave, frequency = 4), p[1], exp(p[2]), log = TRUE)), c(1, 0.1)
  ),
  "differences of a time series" = entry(
    function(p) sum((diff(ts(wave))[-1] - p * diff(ts(wave))[-11])^2), 0.4
  )
))

# Distances and norms --------------------------------------------------------------------------------------------------

points <- matrix(c(0.1, 0.9, 2.2, 0.4, 1.5, 0.3), 3)

expect_corpus(list(
  "norm() of a matrix, five ways" = entry(
    function(p) {
      m <- matrix(p, 2)
      norm(m) + 2 * norm(m, "I") + 3 * norm(m, "F") + 4 * norm(m, "M") + 5 * norm(m, "2")
    }, c(1, -2, 3.5, 0.7)
  ),
  "dist() of scaled points" = entry(function(p) sum(exp(-dist(points * p[1]) / p[2])), c(1.2, 0.8)),
  "dist() as a matrix" = entry(
    function(p) {
      d <- as.matrix(dist(points))
      s <- p[1] * exp(-d / p[2]) + diag(3) * 0.1
      sum(solve(s, 1:3))
    }, c(1.2, 0.8)
  ),
  "as.matrix() of dist() of points" = entry(
    function(p) sum(as.matrix(dist(matrix(p, 3)))[1, ] * 1:3), c(0.1, 0.9, 2.2, 0.4, 1.5, 0.3)
  ),
  "other distances" = entry(
    function(p) {
      x <- matrix(p, 3)
      sum(dist(x, "manhattan")) + sum(dist(x, "maximum")^2) + sum(dist(x, "canberra")) +
        sum(dist(x, "minkowski", p = 3))
    }, c(0.1, 0.9, 2.2, 0.4, 1.5, 0.3)
  ),
  "mahalanobis()" = entry(
    function(p) sum(mahalanobis(points, p[1:2], matrix(c(p[3], 0.2, 0.2, 1.1), 2))), c(1, 0.5, 2)
  ),
  "mahalanobis() of an inverse" = entry(
    function(p) sum(mahalanobis(points * p[1], c(1, 1), diag(2) * p[2], inverted = TRUE)^2), c(1, 0.5)
  ),
  "cov2cor()" = entry(
    function(p) sum(cov2cor(crossprod(matrix(p, 3)) + diag(2))[1, 2]), c(0.1, 0.9, 2.2, 0.4, 1.5, 0.3)
  )
))

# Interpolation and bases ----------------------------------------------------------------------------------------------

knots <- c(0, 1, 2.5, 4, 5)
heights <- c(0.2, 1.1, 0.7, 1.9, 2.5)

made_before <- splinefun(knots, heights)

expect_corpus(list(
  "approx() at places" = entry(function(p) sum(approx(knots, heights, p)$y^2), c(0.4, 2.6, 3.3)),
  "approx() of heights" = entry(function(p) sum(approx(knots, p, c(0.4, 2.6, 3.3))$y^2), heights),
  "approxfun() with rule 2" = entry(function(p) sum(approxfun(knots, heights, rule = 2)(p) * 1:3), c(-1, 2.6, 7)),
  "a step function's heights" = entry(
    function(p) sum(approx(knots, p, c(0.4, 2.6, 3.3), method = "constant")$y^2), heights
  ),
  "splinefun() at places" = entry(function(p) sum(splinefun(knots, heights)(p)^2), c(-0.4, 2.6, 5.3)),
  "a function that splinefun() made" = entry(made_before, c(-0.4)),
  "splinefun(), natural, its slope" = entry(
    function(p) sum(splinefun(knots, heights, "natural")(p, deriv = 1)^2), c(-0.4, 2.6, 5.3)
  ),
  "splinefun(), monotone" = entry(
    function(p) sum(splinefun(knots, cumsum(heights), "monoH.FC")(p)^2), c(-0.4, 2.6, 5.3)
  ),
  "splines of heights, by each method" = entry(function(p) {
    total <- 0
    for (method in c("fmm", "natural", "periodic", "monoH.FC", "hyman")) {
      y <- if (method == "periodic") c(p[1:4], p[1]) else if (method == "hyman") cumsum(p^2) else p
      f <- splinefun(knots, y, method)
      for (order in 0:2) total <- total + sum(f(c(-0.4, 0.3, 2.6, 4.4, 5.3), deriv = order)^2)
    }
    total
  }, heights),
  "splines of knots, by each method" = entry(function(p) {
    total <- 0
    for (method in c("fmm", "natural", "hyman")) {
      total <- total + sum(spline(p, 1:5 + 0.3 * cos(1:5), method = method)$y^2)
    }
    total
  }, knots),
  "approx() between ends that move" = entry(function(p) sum(approx(p, heights, n = 8)$y^2), knots),
  "spline()" = entry(function(p) sum(spline(knots, p, n = 7)$y^2), heights),
  "spline(), natural, at places" = entry(
    function(p) sum(spline(knots, p, method = "natural", xout = c(0.4, p[1] + 2))$y^2), heights
  ),
  "lm.fit()" = entry(
    function(p) sum(lm.fit(cbind(1, cars$speed^p[1]), cars$dist * p[2])$residuals^2) / 1e3, c(1.3, 0.9)
  ),
  "seq() of ends" = entry(function(p) sum(seq(p[1], p[2], length.out = 5)^2) + sum(seq(0, p[2], len = 3)^3), c(1.3, 4)),
  "seq() by steps" = entry(
    function(p) sum(seq(p[1], by = p[2], length.out = 4)^2) + sum(seq.int(to = p[2], by = 0.5, along.with = 1:3)^2),
    c(1.3, 0.9)
  ),
  "seq() along" = entry(function(p) {
    s <- 0
    for (i in seq(along = p)) s <- s + i * p[i]^2
    s + sum(seq(along.with = p) * p) + sum(p[seq(p)])
  }, c(1.3, 0.9)),
  "prop.table()" = entry(function(p) sum(prop.table(outer(1:3, p), 1)[, 1]^2) + sum(proportions(p)^3), c(1.3, 0.9)),
  "splinefun() of heights" = entry(function(p) sum(splinefun(knots, p, "natural")(c(0.4, 2.6, 3.3))^2), heights),
  "splinefun() of heights at places" = entry(
    function(p) sum(splinefun(knots, p[1:5])(p[6:7])^2), c(heights, 0.7, 3.1)
  ),
  "splinefun(), periodic" = entry(
    function(p) sum(splinefun(knots, c(heights[1:4], heights[1]), "periodic")(p)^2), c(-0.4, 2.6, 5.3)
  ),
  "a polynomial basis" = entry(function(b) sum((yield - poly(dose, 3) %*% b[1:3] - b[4])^2), c(0.5, 0.2, 0.1, 2)),
  "a B-spline basis" = entry(
    function(b) sum((yield - splines::bs(dose, df = 5) %*% b)^2) + sum(diff(b, differences = 2)^2), (1:5) / 2,
    needs = "splines"
  )
))

# Solvers --------------------------------------------------------------------------------------------------------------

expect_corpus(list(
  "a root" = entry(
    function(p) uniroot(function(x) x^3 + p[1] * x - p[2], c(0, 5), tol = 1e-12)$root, c(1, 3)
  ),
  "a root of a sum" = entry(
    function(p) {
      rate <- uniroot(function(r) sum(p[1:3] / (1 + r)^(1:3)) - p[4], c(0, 1), tol = 1e-12)$root
      rate^2
    }, c(40, 45, 50, 110)
  ),
  "a root between bounds that move" = entry(
    function(p) uniroot(function(x) exp(x) - p, lower = -p, upper = p, tol = 1e-12)$root, 3
  ),
  "a minimum" = entry(
    function(p) optimize(function(x) (x - p[1])^2 + p[2] * x^4, c(0, 3), tol = 1e-8)$minimum, c(2, 0.3), slope = 1e-4
  ),
  "a maximum's value" = entry(
    function(p) optimize(function(x) p[1] * x - exp(x * p[2]), c(0, 3), maximum = TRUE)$objective, c(3, 1.1)
  ),
  "a minimum at a bound" = entry(
    function(p) optimize(function(x) (x + p)^2, c(0.5, 3), tol = 1e-10)$objective, 1, compiled = FALSE
  ),
  "an integral" = entry(
    function(p) integrate(function(x) exp(-p[1] * x) * sin(p[2] * x), 0, 2, rel.tol = 1e-10)$value, c(0.5, 2)
  ),
  "an integral over the line" = entry(
    function(p) log(integrate(function(x) dnorm(x, p[1], p[2]) / (1 + exp(-x)), -Inf, Inf, rel.tol = 1e-10)$value),
    c(0.5, 1.2)
  ),
  "a tail" = entry(function(p) integrate(function(x) dgamma(x, p[1], 2), p[2], Inf, rel.tol = 1e-10)$value, c(2.5, 1)),
  "bounds that move" = entry(function(p) integrate(function(x) x^2 + p[1], p[1], p[2])$value, c(0.5, 2)),
  "an inner optimum's value" = entry(
    function(p) {
      inner <- function(b) sum((yield - b[1] - b[2] * dose)^2) * exp(-p[1]) + p[2] * sum(b^2)
      optim(c(0, 0), inner, method = "BFGS")$value
    }, c(0.3, 0.5)
  ),
  "an inner optimum" = entry(
    function(p) {
      inner <- function(b) sum((yield - b[1] - b[2] * dose)^2) * exp(-p[1]) + p[2] * sum(b^4)
      sum(optim(c(1, 1), inner, control = list(reltol = 1e-14))$par * 1:2)
    }, c(0.3, 0.5), slope = 1e-3, tolerance = 1e-5
  )
))

# Model functions ------------------------------------------------------------------------------------------------------

decay <- deriv(~ a * exp(-b * t), c("a", "b"), function(a, b, t) NULL)

expect_corpus(list(
  "a function that deriv() made" = entry(function(p) sum((yield - decay(p[1], p[2], dose))^2), c(2, -0.2)),
  "the gradient that deriv() gives" = entry(
    function(p) sum(attr(decay(p[1], p[2], dose), "gradient") * 1:16), c(2, -0.2)
  ),
  "SSlogis()" = entry(
    function(p) {
      Asym <- p[1]
      xmid <- p[2]
      scal <- p[3]
      sum((yield - SSlogis(dose, Asym, xmid, scal))^2)
    }, c(3, 1, 0.5)
  ),
  "SSmicmen()" = entry(function(p) sum((yield - SSmicmen(dose, p[1], p[2]))^2), c(3, 0.5)),
  "SSasymp()" = entry(function(p) sum((yield - SSasymp(dose, p[1], p[2], p[3]))^2), c(3, 0.5, 0.1)),
  "SSbiexp()" = entry(function(p) sum((yield - SSbiexp(dose, p[1], p[2], p[3], p[4]))^2), c(3, 0.5, 1, -1)),
  "SSfol()" = entry(function(p) sum((yield - SSfol(4, dose, p[1], p[2], p[3]))^2), c(-2.5, 0.5, -3)),
  "SSweibull()" = entry(function(p) sum((yield - SSweibull(dose, p[1], p[2], p[3], p[4]))^2), c(3, 2, 0.1, 1.2))
))
