# Decisions of R code other than `if`: order, indices, counts, integers. Differentiated code decides as R does. A
# compiled program serves calls with the same decision if values are available, and otherwise raises an error of `jit`.
# Random programs compute a decision and use it; R's value and numerical derivative at points other than the traced one
# are the oracle.

# Functions from a vector of four to integers in 1..4 that depend on its values.
decisions <- list(
  order = function(v) order(v), decreasing = function(v) order(v, decreasing = TRUE),
  two_keys = function(v) order(round(v), -v), reversed = function(v) rev(order(v)), rank = function(v) floor(rank(v)),
  first_rank = function(v) rank(-v, ties.method = "first"), sort_list = function(v) sort.list(v),
  index = function(v) sort(v, index.return = TRUE)$ix, interval = function(v) findInterval(v, c(-9, 0, 1, 2)),
  open_interval = function(v) findInterval(v, c(-9, 0.5, 1.2, 2), left.open = TRUE),
  interval_of_own = function(v) pmax(1, findInterval(c(0.7, 1.2), sort(v))), which = function(v) which(v > min(v) - 1),
  which_max = function(v) which.max(v), which_min = function(v) which.min(v),
  match = function(v) match(c(1.2, 0.5), v, 4L), match_own = function(v) match(v, v),
  matched = function(v) match(v[2], v),
  among = function(v) 1L + (v %in% c(1.2, 3)), has = function(v) 1L + (1.2 %in% v),
  as_integer = function(v) 1L + as.integer(abs(v)) %% 4L, round = function(v) 1 + round(abs(v)) %% 4,
  floor = function(v) floor(abs(v)) %% 4 + 1, divided = function(v) abs(v) %/% 1 %% 4 + 1,
  trunc = function(v) trunc(abs(v[1])) %% 4 + 1, ceiling = function(v) pmin(ceiling(abs(v)), 3) + 1,
  cut = function(v) as.integer(cut(v, c(-100, 0, 1, 2, 100))),
  labels = function(v) cut(v, c(-100, 1, 100), labels = FALSE),
  tabulated = function(v) pmin(tabulate(1 + abs(v), 4) + 1, 4), count = function(v) min(sum(v > 1) + 1, 4),
  duplicated = function(v) 1L + duplicated(v), any_duplicated = function(v) 1L + (anyDuplicated(v) > 0),
  unique = function(v) length(unique(v)), unsorted = function(v) 1L + is.unsorted(v), any = function(v) 1L + any(v > 1),
  all = function(v) 1L + all(v > 0), missing = function(v) 1L + anyNA(v), truth = function(v) 1L + as.logical(round(v)),
  ifelse = function(v) ifelse(v > 1, 1, 2), max_col = function(v) max.col(matrix(v, 2), "first"),
  position = function(v) Position(function(a) a > 0.7, v, nomatch = 4),
  filtered = function(v) length(Filter(function(a) a > 0, v)) %% 4 + 1,
  vapply = function(v) vapply(v, function(a) if (a > 1) 2 else 3, 0), runs = function(v) length(rle(v > 0)$lengths),
  levels = function(v) nlevels(factor(v > 1)), set = function(v) 1 + length(setdiff(v, c(1.2, 3))) %% 4,
  common = function(v) 1 + length(intersect(v, c(1.2, 3))) %% 4,
  sequence = function(v) seq(1, round(abs(v[1])) %% 4 + 1),
  counted = function(v) seq_len(round(abs(v[1])) %% 4 + 1), signs = function(v) sign(v) + 2
)

uses <- list(
  element = function(v, k) sum(v[k]^2), first = function(v, k) v[[k[1]]]^2,
  of_numbers = function(v, k) sum(c(3, 5, 7, 11)[k]) * v[1],
  row = function(v, k) sum(matrix(1:16, 4)[k, 2]) * v[2], cells = function(v, k) sum(matrix(v, 4, 2)[k, ] * 1:2),
  rep = function(v, k) sum(rep(v[1], k[1])^2) + v[2], each = function(v, k) sum(rep(v, each = k[1]) * 2),
  repeated = function(v, k) sum(rep_len(v, k[1] + 2)^2), times = function(v, k) sum(rep(v[seq_along(k)], times = k)),
  up_to = function(v, k) sum(v[2] * (1:k[1])), down = function(v, k) sum((k[1]:6) * v[1]),
  loop = function(v, k) {
    s <- 0
    for (i in 1:k[1]) s <- s + v[i]^i
    s
  },
  loop_from = function(v, k) {
    s <- v[1]
    for (i in k[1]:4) s <- s * c(1, 2, 0.5, 3)[i] + v[i]
    s
  },
  steps = function(v, k) sum(seq_len(k[1]) * v[1]), head = function(v, k) sum(head(v, k[1])^2),
  tail = function(v, k) sum(tail(v, k[1])^2), filled = function(v, k) {
    h <- numeric(k[1] + 3)
    h[k] <- v[1]
    sum(h^2) * length(h)
  },
  matrix = function(v, k) sum(matrix(v[1], k[1], 2)), identity = function(v, k) sum(diag(k[1]) * v[2]),
  switch = function(v, k) switch(k[1], sum(v), sum(v^2), sum(v^3), v[1]),
  if_is = function(v, k) if (k[1] == 2) sum(v^2) else sum(v), weighted = function(v, k) sum(v[seq_along(k)] * k),
  choose = function(v, k) choose(k[1] + 3, 2) * v[2], array = function(v, k) sum(array(v, c(k[1], 2))^2),
  sequence = function(v, k) sum(seq(0, v[1], length.out = k[1] + 1)), while_less = function(v, k) {
    i <- 0
    while (i < k[1]) i <- i + 1
    i * v[1]
  },
  pairs = function(v, k) sum(combn(k[1] + 1, 2)) * v[1], lag = function(v, k) sum(diff(c(v, 1, 2), lag = k[1])^2),
  cells_of = function(v, k) sum(vapply(1:k[1], function(i) i^2, 0)) * v[1]
)

at <- list(
  c(1.2, 0.5, 2.7, -0.6), c(2.7, 0.5, 1.3, 0.1), c(-2.2, 0.5, 3.4, 1.2), c(1.2, 1.2, 0.5, 3), c(0.3, 1.7, 2.2, 2.6)
)
if (!is_long()) at <- at[3:4] # most decisions differ

# Checks against R's value and derivative, with the decision at the evaluation point. Returns how many compiled calls
# gave a value.
expect_decided <- function(decides, used, about, points = if (config_backend() == "numpy") at else at[2:3]) {
  values <- 0
  f <- function(v) used(v, decides(v))
  compiled <- objective(f, jit = TRUE)
  for (v in points) {
    expected <- f(v)
    as_decided <- local({
      k <- decides(v)
      function(v) used(v, k)
    })
    for (way in c("differentiated", "compiled")) {
      here <- sprintf("%s at %s, %s", about, toString(v), way)
      on <- if (way == "compiled") compiled else objective(f)
      found <- tryCatch(list(on$fn(v), on$gr(v)), gradops_error_jit = identity)
      if (inherits(found, "condition") && way == "compiled" && config_backend() != "numpy") next
      expect_false(inherits(found, "condition"), info = here)
      values <- values + (way == "compiled")
      expect_equal(found[[1]], as.double(expected), info = here)
      expect_equal(found[[2]], numeric_gradient(as_decided, v), tolerance = 1e-6, info = here)
    }
  }
  values
}

expect_programs <- function(count) {
  values <- 0
  for (i in seq_len(count)) {
    chosen <- c(sample(names(decisions), 1), sample(names(uses), 1))
    about <- paste(chosen, collapse = ", used as ")
    values <- values + expect_decided(decisions[[chosen[1]]], uses[[chosen[2]]], about)
  }
  values
}

test_each("order, indices, counts and integers decide as in R, differentiated and compiled", {
  for (name in names(decisions)[c(TRUE, is_long())]) {
    values <- expect_decided(decisions[[name]], uses$of_numbers, name)
    if (backend == "numpy") expect_equal(values, length(at))
  }
  for (name in names(uses)) expect_decided(decisions$round, uses[[name]], name)
})

test_each("random programs with decisions give R's results", {
  withr::local_seed(15)
  expect_programs(if (is_long()) 10 else 3)
})

test_each("many random programs with decisions give R's results", {
  skip_if(Sys.getenv("GRADOPS_LONG") == "", "random and long: GRADOPS_LONG is not set")
  seed <- as.integer(Sys.time()) %% 1e6
  message("random programs that decide on ", backend, ": seed ", seed)
  withr::local_seed(seed)
  expect_programs(600)
})

test_each("a program depends on the decision only, not on the values that led to it", {
  skip_if(backend != "numpy", "elsewhere it is an error")
  for (f in list(
    function(v) sum(v[order(v)] * 1:4), function(v) sum(v * findInterval(v, c(0, 1))), function(v) v[which.max(v)],
    function(v) sum(v * (v %in% c(9, 8))), function(v) sum(v) * as.integer(v[1]), function(v) sum(rank(v) * v)
  )) {
    calls <- reticulate::py_eval("[]", convert = FALSE) # not R state that the function changes
    counted <- function(v) {
      calls$append(1L)
      f(v)
    }
    compiled <- objective(counted, jit = TRUE)
    for (i in 0:4) expect_equal(compiled$fn(c(1.2, 0.5, 2.7, -0.6) + i / 100), f(c(1.2, 0.5, 2.7, -0.6) + i / 100))
    expect_equal(reticulate::py_len(calls), 1)
  }
})

test_each("an index computed from logicals or passed as an argument is computed by the program", {
  for (at in list(function(v) 1L + all(v > 0), function(v) 1L + (v > 1), function(v) 2L - is.na(v[1]))) {
    f <- function(v) sum(v[at(v)]^2)
    on <- objective(f, jit = TRUE)
    for (v in list(c(1.2, 0.5, 2), c(-1.2, 0.5, 2))) {
      expect_equal(on$fn(v), f(v))
      expect_equal(on$gr(v), replace(numeric(3), unique(at(v)), 2 * v[unique(at(v))] * tabulate(at(v))[unique(at(v))]))
    }
  }
  calls <- reticulate::py_eval("[]", convert = FALSE)
  element <- jit(function(x, i) {
    calls$append(1L)
    x[i]
  })
  numbers <- op_convert_to_tensor(c(0.5, 1.5, 2.5))
  for (i in 1:3) expect_equal(as.double(element(numbers, op_convert_to_tensor(i))), i - 0.5)
  expect_equal(reticulate::py_len(calls), 1L)
})

test_each("where values are unknown, the error names the function that needs them", {
  skip_if(backend == "numpy", "there it is compiled")
  for (name in c("order", "findInterval", "as.integer", "rep", "%in%", ":")) {
    f <- list(
      order = function(v) v[order(v)], findInterval = function(v) v * findInterval(v, 1),
      as.integer = function(v) v * as.integer(v), rep = function(v) rep(v, round(v[1])),
      `%in%` = function(v) v * (1 %in% v), `:` = function(v) v * (1:round(v[1]))[1]
    )[[name]]
    expect_error(jit(f)(c(1.2, 2)), paste0("`", name, "()`"), fixed = TRUE, class = "gradops_error_jit")
  }
})
