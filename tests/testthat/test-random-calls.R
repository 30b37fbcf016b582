# Random programs of R functions and operators on R values, differentiated by one value. Values must match R and
# derivatives finite differences, or a gradops error is raised. Each long run has a new seed, which it reports.

constants <- list(
  vector = c(1.3, -0.7, 2.1, 0.4, 3.2, 1.9), named = c(a = 1, b = 2, c = 3, d = -1, e = 0.5, f = 2),
  matrix = matrix(c(1, 2, 3, 4, 5, 7) / 3, 2), square = matrix(c(4, 1, 0.5, 1, 3, 0.2, 0.5, 0.2, 2), 3),
  dimnames = matrix(c(2, -1, 0.3, 1, 4, 1), 2, dimnames = list(c("r", "s"), c("x", "y", "z"))),
  table = table(c(1, 1, 2, 3, 3, 3)), whole = 1:6, truths = c(TRUE, FALSE, TRUE, TRUE, FALSE, TRUE), one = 2.5,
  as_is = I(c(1, 2, 3, 4, 5, 6)), zeros = numeric(6), column = matrix(1:6 / 2, 6), row = matrix(1:6 / 4, 1),
  array = array(1:6 / 3, 6), negative = -(1:6), scaled = scale(matrix(c(1, 2, 4, 3, 9, 5), 3)),
  series = ts(c(1, 3, 2, 5, 4, 6), start = 2000), lagged = stats::lag(ts(c(1, 3, 2, 5, 4, 6), start = 2000), -1),
  columns = ts(matrix(1:12 / 3, 6), start = 1999)
)

operators <- c(
  "+", "-", "*", "/", "^", "%%", ">", "<=", "==", "!=", "&", "|", "%*%", "%o%", "c", "cbind", "rbind", "outer",
  "crossprod"
)

# Returns groups that split the rows of a vector or matrix in halves.
halves <- function(x) rep(1:2, length.out = NROW(x))

functions <- list(
  identity = identity, sum = sum, mean = mean, t = t, rev = rev, sort = sort, cumsum = cumsum, cumprod = cumprod,
  cummax = cummax, diff = diff, exp = exp, abs = abs, sqrt = sqrt, log1p = log1p, sign = sign, round = round,
  floor = floor, vector = as.vector, numeric = as.numeric, as_matrix = as.matrix, unlist = unlist, max = max, min = min,
  range = range, prod = prod, var = var, length = length, head = head, tail = tail, missing = is.na,
  row_sums = function(x) rowSums(x), column_means = function(x) colMeans(x), apply = function(x) apply(x, 1, sum),
  sapply = function(x) sapply(x, function(e) e * 2), ifelse = function(x) ifelse(x > 1.05, x, 0),
  second = function(x) x[2],
  without = function(x) x[-1], above = function(x) x[x > 1.05], by_name = function(x) x["b"],
  rep = function(x) rep(x, 2),
  set = function(x) {
    x[2] <- 9
    x
  },
  set_above = function(x) {
    x[x > 1.05] <- 0
    x
  },
  set_element = function(x) {
    x[1, 2] <- 0
    x
  },
  matrix = function(x) matrix(x, 2), by_row = function(x) matrix(x, 3, byrow = TRUE), diag = diag, det = det,
  order = function(x) x[order(x)], which = function(x) x[which(x > 1.05)],
  quantile = function(x) quantile(x, 0.3), median = median, Reduce = function(x) Reduce(`+`, x, accumulate = TRUE),
  tapply = function(x) tapply(x, rep(1:2, length.out = length(x)), sum), rowsum = function(x) rowsum(x, halves(x)),
  mapply = function(x) mapply(function(a, b) a * b, x, seq_along(x)), Map = function(x) unlist(Map(function(e) e^2, x)),
  share = function(x) x / sum(abs(x)), sweep = function(x) sweep(x, 2, seq_len(ncol(x))),
  append = function(x) append(x, 7, 2),
  dnorm = function(x) dnorm(x, 1, 2), plogis = plogis, do.call = function(x) do.call("sum", list(x)),
  not = function(x) !x,
  vapply = function(x) vapply(seq_along(x), function(i) sum(x[[i]]), 0), negative = function(x) -x,
  split = function(x) unlist(lapply(split(x, rep(1:2, length.out = length(x))), sum)),
  lag = function(x) stats::lag(x, 1),
  window = function(x) window(x, start = start(x) + 1), kronecker = function(x) kronecker(x, diag(2)),
  upper = function(x) x[upper.tri(x)], solve = function(x) solve(x), row = function(x) x[1, ],
  column = function(x) x[, 2, drop = FALSE], element = function(x) x["r", "y"], spread = function(x) diff(range(x)),
  weighted = function(x) weighted.mean(x, seq_along(x)),
  filter = function(x) stats::filter(x, c(0.5, 0.5), sides = 1)[-1],
  embed = function(x) embed(x, 2), both = function(x) rbind(x, x),
  ave = function(x) ave(x, rep(1:2, length.out = length(x))),
  back = function(x) cumsum(rev(cumsum(rev(x)))), differences = function(x) outer(x, x, function(a, b) a - b)
)

# Returns a program as a function that passes its intermediate values to `see`.
program <- function(steps, see = identity) {
  function(b) {
    x <- see(do.call(steps$operators[1], list(b, constants[[steps$constants[1]]])))
    x <- see(functions[[steps$functions[1]]](x))
    x <- see(do.call(steps$operators[2], list(x, constants[[steps$constants[2]]])))
    sum(functions[[steps$functions[2]]](x)) + b
  }
}

# Returns R's value and derivative; NULL if R has none, or if a documented difference applies: three-dimensional arrays,
# Inf and NaN in intermediate values.
of_r <- function(steps, at) {
  ordinary <- function(x) {
    if (length(dim(x)) > 2 || !is.numeric(x) && !is.logical(x) || !all(is.finite(x)) || any(abs(x) > 1e6)) stop()
    x
  }
  tryCatch({
    f <- program(steps, ordinary)
    value <- as.numeric(ordinary(suppressWarnings(f(at))))
    g <- function(h) (suppressWarnings(f(at + h)) - suppressWarnings(f(at - h))) / (2 * h)
    slopes <- as.numeric(c(g(1e-4), g(1e-5)))
    smooth <- length(slopes) == 2 && isTRUE(abs(diff(slopes)) < 1e-5 * (1 + abs(slopes[1])))
    if (length(value) == 1) list(value = value, slope = if (smooth) slopes[1])
  }, error = function(condition) NULL)
}

one_program <- function() {
  list(
    operators = sample(operators, 2), constants = sample(names(constants), 2, TRUE),
    functions = sample(names(functions), 2, TRUE)
  )
}

expect_programs <- function(count, at = sqrt(3)) { # at a point without ties
  answered <- 0
  for (i in seq_len(count)) {
    steps <- one_program()
    expected <- of_r(steps, at)
    if (is.null(expected)) next
    words <- paste(unlist(steps), collapse = " ")
    found <- tryCatch(suppressWarnings(value_and_grad(program(steps))(at)), error = identity)
    if (inherits(found, "error")) {
      expect_true(inherits(found, "gradops_error"), info = words)
    } else {
      answered <- answered + 1
      expect_equal(found$value, expected$value, tolerance = 1e-6, info = words)
      smooth <- !is.null(expected$slope) && !is.nan(found$gradient) # excludes (0 * b)^0.5
      if (smooth) expect_equal(found$gradient, expected$slope, tolerance = 1e-3, info = words)
    }
  }
  answered
}

test_each("random programs match R's values and derivatives", {
  withr::local_seed(1)
  expect_gt(expect_programs(150), 30)
})

test_each("many random programs match R's values and derivatives", {
  skip_if(Sys.getenv("GRADOPS_LONG") == "", "random and long: GRADOPS_LONG is not set")
  seed <- as.integer(Sys.time()) %% 1e6
  message("random programs on ", backend, ": seed ", seed)
  withr::local_seed(seed)
  expect_gt(expect_programs(3000), 600)
})
