# Long trainings do not leak: R's cells, Python's objects and the process memory stay constant.

# Returns the memory in use after collecting all garbage.
memory <- function() {
  collect <- reticulate::import("gc")$collect
  for (i in 1:2) {
    gc(full = TRUE)
    collect()
  }
  statm <- "/proc/self/statm"
  c(
    cells = gc()[["Ncells", "used"]],
    objects = reticulate::py_eval("len(__import__('gc').get_objects())"),
    megabytes = if (file.exists(statm)) scan(statm, quiet = TRUE)[2] * 4096 / 1e6 else 0
  )
}

expect_no_growth <- function(step, times) {
  python <- reticulate::import("gc")
  python$collect()
  python$freeze() # existing objects are not searched again
  withr::defer(python$unfreeze())
  for (round in 1:3) { # R byte-compiles functions that run often
    for (i in seq_len(min(times / 2, 100))) step()
    before <- memory()
  }
  for (round in 1:3) { # a leak grows in each round, memory kept by allocators does not
    for (i in seq_len(times)) step()
    growth <- memory() - before
    if (growth[["megabytes"]] < 25) break
    before <- memory()
  }
  expect_lt(growth[["cells"]], times / 2)
  expect_lt(growth[["objects"]], times / 2)
  expect_lt(growth[["megabytes"]], 25)
}

test_each("training does not leak", {
  skip_on_cran()
  times <- if (is_long()) c(numpy = 300, torch = 200, tensorflow = 100, jax = 100)[[backend]] else 100
  x <- parameter(c(1, 2))
  expect_no_growth(function() value_and_grad(function(v) sum(v^2))(c(1, 2)), times)
  double <- autodiff_function(
    function(ctx, x) {
      ctx$save_for_backward(x)
      x * 2
    },
    function(ctx, g) g * 2
  )
  expect_no_growth(function() {
    hook <- x$register_hook(function(g) g)
    backward(sum(double(x)))
    hook$remove()
    x$grad <- NULL
  }, times)
})

test_each("functions created in a loop do not leak", {
  skip_on_cran()
  times <- c(numpy = 100, torch = 100, tensorflow = 50, jax = 50)[[backend]]
  x <- parameter(c(1, 2))
  expect_no_growth(function() {
    double <- autodiff_function(function(ctx, x) x * 2, function(ctx, g) g * 2)
    backward(sum(double(x)))
    x$grad <- NULL
  }, times)
})

test_each("a hundred thousand calls of R functions from Python do not leak", {
  skip_if(!nzchar(Sys.getenv("GRADOPS_LONG")), "long: GRADOPS_LONG is not set")
  skip_if(backend != "numpy", "the calls are the same on every backend")
  calls <- 0
  count <- function(i, x) {
    calls <<- calls + 1
    x + 1
  }
  step <- function() op_fori_loop(0, 1000, count, 0)
  expect_equal(as.numeric(step()), 1000)
  expect_no_growth(step, 50)
  expect_gte(calls, 1e5)
})
