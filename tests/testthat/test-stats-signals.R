test_each("signal functions, filters and step functions match R", {
  x <- sin(1:20) + (1:20) / 9
  m <- matrix(x, 10)
  same <- function(found, expected) {
    expected <- as.vector(expected)
    expect_equal(as.vector(bare(found)), replace(expected, is.na(expected), NaN), tolerance = 1e-10)
  }
  same(fft(variable(m), TRUE), stats::fft(m, TRUE))
  same(mvfft(variable(m)), stats::mvfft(m))
  for (conj in c(TRUE, FALSE)) {
    for (type in c("open", "filter")) {
      same(convolve(variable(x), 3:1, conj, type), stats::convolve(x, 3:1, conj, type))
    }
    for (series in list(x, m)) {
      same(filter(variable(series), 1:3, circular = conj), stats::filter(series, 1:3, circular = conj))
      same(filter(variable(series), 0.5, sides = 1), stats::filter(series, 0.5, sides = 1))
    }
  }
  same(filter(variable(x), c(0.5, -0.2), "r", init = 2:3), stats::filter(x, c(0.5, -0.2), "r", init = 2:3))
  same(embed(variable(m), 2), stats::embed(m, 2))
  v <- c(0, 1, 1.7, 2.5, 4, 5, NaN)
  for (method in c("linear", "constant")) {
    steps <- approx(c(1, 2.5, 4), variable(c(2, 7, 3)), v, method, rule = 1:2, f = 0.3)$y
    same(steps, stats::approx(c(1, 2.5, 4), c(2, 7, 3), v, method, rule = 1:2, f = 0.3)$y)
  }
})

test_each("distances match R", {
  m <- matrix(c(0, 0, 3, -1, 0, 0, 2, 5, 1, 4, -2, 6), 4)
  for (method in c("euclidean", "maximum", "manhattan", "canberra", "minkowski")) {
    expect_equal(as.vector(bare(dist(variable(m), method, p = 3))), as.vector(stats::dist(m, method, p = 3)))
  }
  centre <- c(1, 2, 3)
  expect_equal(bare(mahalanobis(m, centre, variable(base::diag(3) + 1))), stats::mahalanobis(m, centre, diag(3) + 1))
  for (type in c("O", "I", "F", "M", "2")) expect_equal(bare(norm(variable(m), type)), base::norm(m, type))
})
