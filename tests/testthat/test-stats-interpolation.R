test_each("splines of tensors match base R", {
  x <- c(0.3, 1, 2.2, 2.9, 4, 5.5, 6.1)
  y <- c(0.4, 1.3, 1.2, 1.2, 2.6, 2.5, 0.4)
  v <- c(-1, 0.4, 1.7, 2.5, 3.3, 4.6, 5.8, 7.9)
  for (method in c("fmm", "natural", "periodic", "monoH.FC", "hyman")) {
    heights <- if (method == "hyman") cumsum(y) else y
    for (n in switch(method, periodic = 7, monoH.FC = , hyman = c(2:4, 7), c(1:4, 7))) { # R has no others for n = 1
      first <- seq_len(n)
      expected <- stats::splinefun(x[first], heights[first], method)
      of_data <- splinefun(variable(x[first]), variable(heights[first]), method)
      of_places <- splinefun(x[first], heights[first], method)
      for (order in 0:2) {
        for (f in list(of_data, of_places)) {
          expect_equal(as.double(f(variable(v), deriv = order)), expected(v, deriv = order), tolerance = 1e-12)
        }
      }
    }
  }
  f <- splinefun(variable(x), variable(y), "monoH.FC")
  slope <- stats::splinefun(x, y, "monoH.FC")
  expect_equal(as.double(f(v, extrapol = "cubic")), slope(v, extrapol = "cubic"), tolerance = 1e-12)
  # R's third derivative lacks a division by the knot distance
  expect_equal(as.double(f(3.3, deriv = 3)), (slope(3.4, deriv = 2) - slope(3.2, deriv = 2)) / 0.2, tolerance = 1e-9)
  shuffled <- c(3, 1, 7, 5, 2, 6, 4)
  f <- splinefun(x[shuffled], variable(y[shuffled]))
  expect_equal(as.double(f(v)), stats::splinefun(x, y)(v), tolerance = 1e-12)
})

test_each("unsupported spline arguments are refused", {
  y <- variable(c(1, 3, 2))
  expect_error(splinefun(1:3, y, "hyman"), "`y` must be increasing or decreasing", class = "gradops_error_argument")
  expect_error(splinefun(c(1, 1, 2), y), "`x` must have no ties", class = "gradops_error_argument")
  expect_error(splinefun(1:3, y)(1, deriv = 4), "`deriv` must be 0, 1, 2 or 3", class = "gradops_error_argument")
  expect_warning(splinefun(1:3, y, "periodic"), "first and last y values differ")
})
