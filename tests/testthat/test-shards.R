# Objectives that are a sum over shards of data.

set.seed(4)
waits <- data.frame(y = rnorm(24, 2, 1.5), group = gl(3, 8, labels = c("north", "south", "west")))
pieces <- split(waits, waits$group)
steep <- op_custom_gradient(function(x) list(exp(x), function(upstream) 3 * exp(x) * upstream))
loss <- function(p, piece) sum(0.5 * ((piece$y - p[1]) * steep(-p[2]))^2 + p[2]) + (piece$group[1] == "west") * p[1]^2

at <- c(mean = 1.5, log_sd = 0.2)

one <- objective(\(p) loss(p, pieces$north) + loss(p, pieces$south) + loss(p, pieces$west))

expect_same_sum <- function(total) {
  expect_equal(total$fn(at), one$fn(at), tolerance = 1e-14)
  expect_equal(total$gr(at), one$gr(at), tolerance = 1e-14)
  expect_equal(total$he(at), one$he(at), tolerance = 1e-14)
}

test_each("shards in this process: unchanged R data; value, gradient and Hessian of the sum", {
  total <- objective(loss, data = pieces)
  expect_same_sum(total)
  expect_equal(total$evaluations(), 1)
  e <- exp(-0.2)
  r <- waits$y - 1.5
  expect_equal(total$gr(at), c(mean = -sum(r) * e^2 + 3, log_sd = 24 - 3 * sum(r^2) * e^2)) # three times its slope
  several <- objective(\(p, piece, k = 1) k * sum((piece$y - p$m)^2), data = pieces)
  expect_equal(several$gr(list(m = 1), k = 2), list(m = -4 * sum(waits$y - 1)))
})

test_each("shards are compiled once each", {
  expect_same_sum(total <- objective(loss, jit = TRUE, data = pieces))
  expect_output(print(total), "compiled, evaluated")
})

test_each("an optimizer finds the estimate of all the data", {
  total <- objective(\(p, y) -sum(dnorm(y, p[1], exp(p[2]), log = TRUE)), data = split(waits$y, waits$group))
  fit <- optim(c(0, 0), total$fn, total$gr, method = "BFGS", control = list(reltol = 1e-12))
  expect_equal(fit$par, c(mean(waits$y), log(sqrt(mean((waits$y - mean(waits$y))^2)))), tolerance = 1e-5)
})

test_once("a failing shard is named", {
  skip_without("numpy")
  bad <- objective(\(p, piece) if (piece$group[1] == "south") stop("of no use") else p, data = pieces)
  found <- expect_error(bad$gr(1), "`f` has failed on `data\\$south`", class = "gradops_error_shard")
  expect_s3_class(found$parent, "gradops_error_callback")
  expect_match(rlang::cnd_message(found), "of no use")
  rows <- objective(\(p, y) y * p, data = list(1, 1:2))
  expect_error(rows$fn(1), "`data[[2]]`", fixed = TRUE, class = "gradops_error_shard")
})

test_once("bad shards and clusters are refused", {
  skip_without("numpy")
  refused <- function(data, words, ...) {
    expect_error(objective(loss, data = data, ...), words, class = "gradops_error_type")
  }
  refused(waits, "must be a list of shards; got a data frame.*split\\(data, groups\\)")
  refused(list(), "must be a list of shards; got an empty list")
  refused(1:3, "must be a list of shards; got an integer vector")
  refused(sum, "must be a list of shards; got a primitive function")
  expect_error(objective(loss, cluster = 2), "`cluster` needs `data`", class = "gradops_error_argument")
  python <- reticulate::import_builtins(convert = FALSE)$sum
  expect_error(objective(python, data = pieces, cluster = 2), "cannot be sent to R", class = "gradops_error_type")
  refused(pieces, "`cluster` must be a cluster", cluster = 2)
})

test_each("R workers hold their shards and return partial sums", {
  skip_if(!nzchar(Sys.getenv("GRADOPS_LONG")), "long: GRADOPS_LONG is not set")
  skip_if(is_loaded_from_source(), "needs the installed package")
  workers <- parallel::makeCluster(2)
  withr::defer(try(parallel::stopCluster(workers), silent = TRUE))
  parallel::clusterCall(workers, .libPaths, .libPaths())
  env <- rlang::new_environment(list(steep = NULL), parent = globalenv())
  sent <- function(p, piece) {
    if (is.null(steep)) {
      steep <<- gradops::op_custom_gradient(function(x) list(exp(x), function(upstream) 3 * exp(x) * upstream))
    }
    sum(0.5 * ((piece$y - p[1]) * steep(-p[2]))^2 + p[2]) + (piece$group[1] == "west") * p[1]^2
  }
  environment(sent) <- env
  expect_same_sum(objective(sent, data = pieces, cluster = workers))
  total <- objective(\(p, y) sum((y - p)^2), jit = TRUE, data = as.list(1:5), cluster = workers)
  expect_equal(total$gr(1), -20)
  expect_equal(total$he(1), matrix(10))
  bad <- objective(\(p, y) if (y == 3) stop("of no use") else y * p, data = as.list(1:5), cluster = workers)
  found <- expect_error(bad$fn(1), "`f` has failed on `data[[3]]`", fixed = TRUE, class = "gradops_error_shard")
  expect_match(rlang::cnd_message(found), "of no use")
  expect_equal(total$fn(1), 30) # the workers continue
  ends <- objective(\(p, y) if (y == 5) quit("no") else y * p, data = as.list(1:5), cluster = workers)
  found <- expect_error(ends$fn(1), "holds `data\\[\\[[34]\\]\\].* is lost", class = "gradops_error_shard")
  expect_s3_class(found$parent, "simpleError")
})

test_once("shards held by Python engines are summed by their workers", {
  skip_without("numpy")
  skip_if_not(reticulate::py_module_available("dask"), "needs Dask: `tools/setup --engines`")
  local_backend("numpy")
  dask <- reticulate::import("dask", convert = FALSE)
  shards <- lapply(split(waits$y, waits$group), \(y) dask$delayed(reticulate::np_array(y)))
  expect_error(objective(loss, data = shards), "cannot be sent to the Python workers", class = "gradops_error_type")
  f <- reticulate::py_run_string("
from gradops import ops
def f(p, y):
    if y[0] > 1e6:
        raise ValueError('of no use')
    return ops.sum((y - p[0]) ** 2) + p[1] ** 2
", convert = FALSE)$f
  total <- objective(f, data = shards)
  expect_equal(total$fn(c(1, 2)), sum((waits$y - 1)^2) + 12)
  expect_equal(total$gr(c(1, 2)), c(-2 * sum(waits$y - 1), 12))
  expect_equal(total$he(c(1, 2)), diag(c(48, 6)))
  expect_equal(objective(f, data = split(waits$y, waits$group))$gr(c(1, 2)), c(-2 * sum(waits$y - 1), 12))
  bad <- objective(f, data = c(shards, dask$delayed(reticulate::np_array(2e6))))
  expect_error(bad$fn(c(1, 2)), "`data[[4]]`: ValueError: of no use", fixed = TRUE, class = "gradops_error_shard")
})
