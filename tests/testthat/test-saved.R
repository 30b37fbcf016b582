# Functions that hold Python objects work after being saved and loaded, or sent to a worker.

saved_functions <- function() {
  squares <- function(p) sum(p^2)
  tripled <- op_custom_gradient(function(x) x^2, function(x, upstream) 3 * upstream)
  list(
    objective = objective(squares, jit = TRUE), plain = objective(squares), jit = jit(squares), grad = grad_fn(squares),
    both = jit(value_and_grad(squares)), custom = op_custom_gradient(function(x) list(x^2, function(u) 5 * u)),
    ruled = tripled, nested = jit(grad_fn(function(p) sum(tripled(p)))),
    made = autodiff_function(function(ctx, x) x^2, function(ctx, upstream) 7 * upstream),
    checkpoint = checkpoint(squares), vectorized = op_vectorize(function(x, y) x + 2 * y),
    host = r_function(function(x) sum(x^2), function(x, upstream) 2 * x * upstream),
    lists = objective(function(p) sum(p$a^2), jit = TRUE)
  )
}

used_functions <- function(l) {
  x <- c(1, 3)
  total <- function(f) as.vector(gradops::gradient(function(p) sum(f(p)), x))
  list(
    l$objective$fn(x), l$objective$gr(x), l$plain$gr(x), l$jit(x), as.vector(l$grad(x)), l$both(x), total(l$custom),
    total(l$ruled), as.vector(l$nested(x)), total(l$made), total(l$checkpoint), as.vector(l$vectorized(x, 10)),
    total(l$host), l$lists$gr(list(a = x))
  )
}

test_once("saved functions work in the same session and in another", {
  skip_on_cran()
  skip_without("numpy")
  skip_if(is_loaded_from_source(), "a new process would see another package")
  local_backend("numpy")
  l <- saved_functions()
  expected <- used_functions(l)
  expect_equal(expected[[7]], c(5, 5))
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(l, file)
  expect_equal(used_functions(readRDS(file)), expected)
  result <- withr::local_tempfile(fileext = ".rds")
  use <- c("use <- ", deparse(used_functions))
  output <- in_new_process(c(
    use, sprintf("l <- readRDS(%s)", deparse(file)), sprintf("saveRDS(use(l), %s)", deparse(result))
  ))
  expect_true(file.exists(result), info = paste(output, collapse = "\n"))
  expect_equal(readRDS(result), expected)
})

test_once("a tensor of another session raises an error, even before Python starts", {
  skip_on_cran()
  skip_without("numpy")
  skip_if(is_loaded_from_source(), "a new process would see another package")
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(list(op_convert_to_tensor(c(1, 2)), variable(1)), file)
  output <- in_new_process(c(
    sprintf("l <- readRDS(%s)", deparse(file)),
    "uses <- list(function(x) x + 1, function(x) x[1], sum, exp, length, function(x) 1 - x, dnorm, op_exp)",
    "for (x in l) for (use in uses) cat(tryCatch(use(x), error = function(error) class(error)[1]), '\\n')",
    "for (x in l) print(x)"
  ))
  expect_identical(trimws(output), c(rep("gradops_error_stale", 16), rep(
    "<a tensor of another R session, gone: see ?serialize_tensor>", 2
  )))
})

test_once("cluster workers can use what they receive", {
  skip_on_cran()
  skip_without("numpy")
  skip_if(is_loaded_from_source(), "a new process would see another package")
  local_backend("numpy")
  l <- saved_functions()
  use <- used_functions
  environment(use) <- globalenv()
  expected <- use(l)
  cluster <- parallel::makeCluster(1)
  withr::defer(parallel::stopCluster(cluster))
  parallel::clusterCall(cluster, function(paths) .libPaths(paths), .libPaths())
  expect_equal(parallel::clusterCall(cluster, use, l)[[1]], expected)
  expect_equal(parallel::parLapply(cluster, list(c(1, 2)), l$objective$gr)[[1]], c(2, 4))
})
