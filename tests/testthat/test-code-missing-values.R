# R's NA in places where a tensor cannot hold it. NaN is nonzero and would count as TRUE; as an integer NA would be the
# lowest one, or 0 on JAX.

test_each("NA is neither true nor false", {
  x <- op_array(c(1, 2, 3))
  for (missing in list(c(TRUE, NA, FALSE), c(1, NaN, 0))) {
    calls <- list(
      function() op_where(missing, x, 0), function() op_where(missing), function() op_select(list(missing), list(x), 0),
      function() op_logical_and(missing, TRUE), function() op_logical_or(x > 1, missing),
      function() op_logical_xor(missing, x > 1), function() op_logical_not(missing), function() op_any(missing),
      function() op_all(missing, axis = 1), function() op_count_nonzero(missing), function() op_nonzero(missing),
      function() any(x > 5, missing), function() all(x > 0, missing)
    )
    for (f in calls) expect_error(f(), "must not have NA, which is neither", class = "gradops_error_argument")
  }
  expect_error(op_cond(NA, function() 1, function() 2), "`pred` must not have NA", class = "gradops_error_argument")
  loop <- function(cond) op_while_loop(cond, function(i) i + 1, list(op_array(0)))
  expect_error(loop(function(i) NA), "`cond` must not have NA", class = "gradops_error_argument")
  expect_equal(as.vector(loop(function(i) i < 3)[[1]]), 3)
  q <- array(1, c(1, 2, 1, 1))
  mask <- array(c(TRUE, NA, TRUE, TRUE), c(1, 1, 2, 2))
  expect_error(op_dot_product_attention(q, q, q, mask = mask), "`mask` must not", class = "gradops_error_argument")

  expect_equal(as.vector(op_where(c(TRUE, FALSE, NA) %in% TRUE, x, 0)), c(1, 0, 0))
  expect_identical(as.vector(any(x > 5, NA, na.rm = TRUE)), FALSE)
  expect_identical(as.vector(op_any(c(FALSE, TRUE))), TRUE)
  # a comparison in a differentiated function gives R's logical, with NA
  condition <- function(x) sum(op_where(x > 0, x, 5))
  expect_error(gradient(condition, c(1, NaN)), "must not have NA", class = "gradops_error_argument")
  expect_equal(gradient(condition, c(1, -1)), c(1, 0))
})

test_each("NA cannot be an integer or a logical in an array", {
  like <- op_cast(op_array(c(1, 2)), "int32")
  for (dtype in c("int8", "int32", "uint8", "bool")) {
    calls <- list(
      function() op_array(c(1, NA), dtype), function() op_convert_to_tensor(c(TRUE, NA), dtype),
      function() op_cast(NA, dtype), function() op_full(2, NA, dtype), function() op_full_like(like, c(NA, 1), dtype),
      function() op_cumsum(c(1, NA), dtype = dtype), function() op_prod(c(1, NA), dtype = dtype),
      function() op_linspace(c(1, NA), 3, num = 3, dtype = dtype)
    )
    for (f in calls) {
      expect_error(f(), paste("must not have NA, as it becomes", dtype), class = "gradops_error_argument")
    }
  }
  expect_error(op_full_like(like, NA), "NA, as it becomes int32", class = "gradops_error_argument")
  expect_error(op_scatter_update(like, matrix(1L), NA_real_), class = "gradops_error")
  expect_error(op_scatter_update(like, matrix(1:2), c(NA, 1)), "NA, as it", class = "gradops_error_argument")
  expect_error(op_slice_update(like, 1, c(1, NA)), "NA, as it becomes int32", class = "gradops_error_argument")
  expect_equal(as.vector(op_array(c(1, NA), "float32")), c(1, NaN))
  expect_equal(as.vector(op_nancumsum(c(1, NA), dtype = "int32")), c(1, 1))
  expect_equal(as.vector(op_full_like(like, NA, "float64")), c(NaN, NaN))
  expect_equal(as.vector(op_zeros_like(c(1, NA), "int32")), c(0, 0))
})

test_each("R vectors do not wrap around, and neither do R numbers", {
  like <- op_cast(op_array(c(1, 2)), "int8")
  for (x in list(c(100, 200), c(100L, 200L), matrix(c(1, -129), 1), c(1, Inf), c(0, 1e20))) {
    expect_error(op_array(x, "int8"), "must be from -128 to 127, as it becomes int8", class = "gradops_error_argument")
    expect_error(op_convert_to_tensor(x, "int8"), "from -128", class = "gradops_error_argument")
  }
  expect_error(op_full(2, c(1, 200), "int8"), "`fill_value` must be from", class = "gradops_error_argument")
  expect_error(op_full_like(like, c(1, 200)), "`fill_value` must be from", class = "gradops_error_argument")
  expect_error(op_scatter_update(like, matrix(1:2), c(1, 200)), "`updates`", class = "gradops_error_argument")
  expect_error(op_slice_update(like, 1, c(-200, 1)), "`updates` .*; got -200.", class = "gradops_error_argument")
  expect_equal(as.vector(op_array(c(-128, 127, 1.5), "int8")), c(-128, 127, 1))
  expect_equal(as.vector(op_array(numeric(), "int8")), numeric())
  expect_equal(as.vector(op_slice_update(like, 1, c(TRUE, FALSE))), c(1, 0))
  expect_equal(as.vector(op_saturate_cast(c(300, -300), "int8")), c(127, -128))
  expect_equal(as.vector(op_cast(c(100, 1.9), "int8")), c(100, 1))
})

test_each("if a test is NA the choice is missing, and has no gradient unless it is used", {
  y <- c(-1, 2, 3)
  chosen <- function(m) ifelse(c(TRUE, NA, FALSE), m * y, m^2)
  f <- function(m) {
    z <- chosen(m)
    sum(ifelse(is.na(z), 0, z))
  }
  expect_equal(gradient(f, 1.2), 1.4, tolerance = 1e-6)
  expect_true(is.nan(gradient(function(m) sum(chosen(m)), 1.2)))
})

# Compared with differences in base R: elements left out may have NaN or infinite slopes, in a helper as well.
test_each("excluded elements have no gradient", {
  y <- c(0, 2, 3)
  ratio <- function(m) ((y - 1) / m)^m
  chosen <- function(m) ifelse(y > 1, ratio(m), 0)
  left <- list(
    deviance = function(m) sum(2 * ifelse(y == 0, m, y * log(y / m) - (y - m))),
    read = function(m) sum(ratio(m)[y > 1] * y[y > 1]),
    positions = function(m) sum(ratio(m)[which(y > 1)]),
    dropped = function(m) sum(ratio(m)[-1]^2),
    bessel = function(m) sum(besselK(y * m, 1)[y > 0]),
    helper = function(m) sum(chosen(m)),
    support = function(m) { # includes NaN that R computes from its data
      density <- exp(m * log((y - 1) / m) - y / m - log(y - 1))
      sum(ifelse(y > 1, density, 0), density[y > 1])
    },
    family = function(m) sum(poisson()$dev.resids(y, m * c(1, 1, 1), c(1, 1, 1))),
    nested = function(m) sum(ifelse(y > 1, ifelse(y > 2, sqrt(y - 2.5) * m, ratio(m)), m)),
    replaced = function(m) {
      r <- rep(m, 3)
      r[y > 0] <- (y * log(y / m) - (y - m))[y > 0]
      sum(r)
    }
  )
  for (name in names(left)) {
    f <- left[[name]]
    suppressWarnings(expect_equal(gradient(f, 1.2), numeric_gradient(f, 1.2, 1e-4), tolerance = 1e-3, info = name))
  }
})

test_once("a loop index selects one element, a name that may hold several can exclude some", {
  expect_false(leaves_out(function(p) for (i in seq_along(p)) if (i > 1) p[i, ]))
  expect_true(leaves_out(function(p, i) for (i in 1:2) if (i > 1) p[i]))
  expect_true(leaves_out(function(p) for (i in list(1:2, 3)) if (p[1] > 1) p[i]))
  expect_true(leaves_out(function(p) {
    i <- which(p > 1)
    for (i in 1:2) p[i]
  }))
})

test_once("elements excluded by conditions on parameters have no gradient, even if their slope is infinite", {
  x <- c(0, 1, 3)
  from <- function(p) (p[2] + 1) * log(x - p[1])
  chosen <- function(p) sum(ifelse(x > p[1], from(p), 0))
  replaced <- function(p) {
    l <- from(p)
    l[x <= p[1]] <- 0
    sum(l)
  }
  read <- function(p) sum(from(p)[x > p[1]])
  in_rows <- function(p) sum(ifelse(x > p[1], matrix((p[2] + 1) * log(x - p[1]), 1), 0))
  all_left_out <- function(p) {
    z <- p - 4
    sum(ifelse(z > 0, z * log(z), 0)) + p[1]
  }
  p <- c(1.07, 0.64)
  expected <- c(-1.64 / 1.93, log(1.93))
  fs <- list(chosen, replaced, in_rows)
  if (config_backend() == "numpy") fs <- c(fs, read) # elsewhere an error: unknown number of elements
  for (f in fs) {
    expect_equal(gradient(f, p), expected)
    compiled <- objective(f, jit = TRUE)
    expect_equal(compiled$gr(c(-1, 0.64)), c(-1.64 * sum(1 / (x + 1)), sum(log(x + 1))))
    expect_equal(compiled$gr(p), expected)
  }
  expect_equal(gradient(all_left_out, p), c(1, 0))
  expect_equal(objective(all_left_out, jit = TRUE)$gr(p), c(1, 0))
})

test_each("a scalar excluded by a condition has no gradient", {
  functions <- list(
    function(x) ifelse(x > 0, log(x), 0), function(x) ifelse(x == 0, 0, exp(-1 / x)),
    function(x) ifelse(x > 0, sqrt(x), 2), function(x) exp(ifelse(x == 0, -1, log(x)))
  )
  for (f in functions) {
    expect_equal(gradient(f, 0), 0)
    expect_equal(as.numeric(jit(grad_fn(f))(0)), 0)
    expect_equal(as.numeric(jit(grad_fn(f))(0.7)), numeric_gradient(f, 0.7), tolerance = 1e-6)
    expect_equal(as.numeric(jit(grad_fn(function(x) sum(f(x))))(c(0, 0))), c(0, 0))
  }
})
