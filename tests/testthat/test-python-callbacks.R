# R functions called by other threads. A deadlock ends the process and prints what each thread was doing.

local_watchdog <- function(seconds = 60, env = parent.frame()) {
  faulthandler <- reticulate::import("faulthandler", convert = FALSE)
  sys <- reticulate::import("sys", convert = FALSE)
  faulthandler$dump_traceback_later(seconds, exit = TRUE, file = reticulate::py_get_attr(sys, "__stderr__"))
  withr::defer(faulthandler$cancel_dump_traceback_later(), env)
}

python <- function(name) reticulate::import(name, convert = FALSE)

# Returns the values of a tensor that a library has returned to reticulate.
values_in <- function(x) as.numeric(op_convert_to_tensor(x))

# Runs the Python function `f` on a new thread; R waits in the Python method `join`.
on_a_thread <- function(f, wait = function(thread) thread$join()) {
  thread <- python("threading")$Thread(target = f)
  thread$start()
  wait(thread)
  expect_false(py_to_r(thread$is_alive()))
}

# Returns a method of a Python object as a Python function.
function_of_python <- function(x, name) reticulate::py_get_attr(x, name)

# Returns exp(x) with a gradient of 7, written in R, and a counter of its calls.
counted <- function() {
  calls <- 0
  f <- op_custom_gradient(function(x) {
    list(op_exp(x), function(upstream) {
      calls <<- calls + 1
      upstream * 7
    })
  })
  list(f = f, calls = function() calls)
}

test_contract("a backward pass on another thread runs R gradient functions on R's thread", {
  local_watchdog()
  custom <- counted()
  x <- variable(c(1, 2), TRUE)
  y <- sum(custom$f(x))
  on_a_thread(function_of_python(y, "backward"))
  expect_equal(as.numeric(x$grad), c(7, 7))
  expect_equal(custom$calls(), 1)
})

test_contract("a backward pass on another thread runs R functions while R sleeps, computes or waits for a pool", {
  local_watchdog()
  custom <- counted()
  x <- variable(c(1, 2), TRUE)
  on_a_thread(function_of_python(sum(custom$f(x)), "backward"), function(thread) {
    for (i in 1:100) if (py_to_r(thread$is_alive())) Sys.sleep(0.1)
  })
  on_a_thread(function_of_python(sum(custom$f(x)), "backward"), function(thread) {
    end <- Sys.time() + 0.2
    while (Sys.time() < end) sum(sqrt(seq_len(1000)))
    thread$join()
  })
  pool <- python("concurrent.futures")$ThreadPoolExecutor(4L)
  xs <- lapply(1:8, function(i) variable(c(1, 2), TRUE))
  futures <- lapply(xs, function(x) pool$submit(function_of_python(sum(custom$f(x)), "backward")))
  for (future in futures) future$result()
  pool$shutdown()
  for (x in xs) expect_equal(as.numeric(x$grad), c(7, 7))
  expect_equal(custom$calls(), 10)
})

test_contract("an R error on another thread is an exception there, and R's condition outside gradops", {
  local_watchdog()
  f <- op_custom_gradient(function(x) list(op_exp(x), function(upstream) stop("not today")))
  x <- variable(c(1, 2), TRUE)
  pool <- python("concurrent.futures")$ThreadPoolExecutor(1L)
  future <- pool$submit(function_of_python(sum(f(x)), "backward"))
  expect_match(py_to_r(python("builtins")$str(future$exception())), "not today")
  condition <- expect_error(
    call_in_thread(function_of_python(sum(f(x)), "backward")),
    class = "gradops_error_callback"
  )
  expect_match(conditionMessage(condition$parent), "not today")
  pool$shutdown()
})

test_each("call_in_thread() returns the value of the call", {
  local_watchdog()
  x <- variable(c(1, 2), TRUE)
  y <- call_in_thread(function_of_python(op_square(x), "sum"))
  backward(y)
  expect_equal(as.numeric(x$grad), c(2, 4))
  with_no_grad({
    operator <- python("operator")
    expect_false(py_to_r(call_in_thread(operator$mul, x, x)$requires_grad))
  })
  expect_error(call_in_thread(python("math")$sqrt, -1), "ValueError", class = "gradops_error_python")
  expect_error(call_in_thread(2), class = "gradops_error_type")
})

test_once("an interrupt ends call_in_thread()", {
  skip_without()
  skip_on_os("windows")
  local_watchdog()
  os <- python("os")
  signal <- python("signal")
  timer <- python("threading")$Timer(0.5, os$kill, list(os$getpid(), signal$SIGINT))
  timer$start()
  began <- Sys.time()
  seen <- tryCatch(call_in_thread(python("time")$sleep, 20), interrupt = function(condition) "interrupted")
  expect_identical(seen, "interrupted")
  expect_lt(as.numeric(Sys.time() - began, units = "secs"), 15)
  expect_equal(as.numeric(call_in_thread(python("math")$sqrt, 4)), 2)
})

test_once("a call on another thread keeps the recording mode of its caller (torch)", {
  skip_without("torch")
  local_watchdog()
  torch <- python("torch")
  local_backend("torch")
  custom <- op_custom_gradient(function(x) x^3, function(x, upstream) 3 * x^2 * upstream)
  x <- torch$tensor(2, requires_grad = TRUE, dtype = torch$float64)
  pool <- python("concurrent.futures")$ThreadPoolExecutor(1L)
  y <- custom(x)
  with_no_grad({
    first <- pool$submit(torch$autograd$grad, y, x, create_graph = TRUE)$result()
  })
  second <- torch$autograd$grad(first[0L], x)
  expect_equal(values_in(second[0L]), 12)
  pool$shutdown()
})

# Ordinary R functions as ops ------------------------------------------------------------------------------------------

normal <- if (gradops_available()) r_function(
  function(x, sd = 1) dnorm(x, sd = sd),
  function(x, sd, upstream) list(-x / sd^2 * dnorm(x, sd = sd) * upstream, NULL)
)

test_contract("an R function of numbers becomes an op with a gradient", {
  x <- c(-1, 0.5, 2)
  expect_equal(as.numeric(normal(x)), dnorm(x))
  expect_equal(as.numeric(normal(x, sd = 2)), dnorm(x, sd = 2))
  expect_equal(gradient(function(x) sum(normal(x, 2) * c(1, 2, 3)), x), -x / 4 * dnorm(x, sd = 2) * c(1, 2, 3))
  expect_true(gradcheck(function(x) normal(x, 0.5), x))
})

test_each("matrices, several arguments, second derivatives", {
  inverse <- r_function(
    function(x) solve(x),
    r_function(
      function(x, up) -t(solve(x)) %*% up %*% t(solve(x)),
      function(x, up, upstream) {
        a <- t(solve(x))
        list(
          a %*% up %*% a %*% t(upstream) %*% a + a %*% t(upstream) %*% a %*% up %*% a,
          -t(a) %*% upstream %*% t(a)
        )
      }
    )
  )
  x <- matrix(c(3, 1, 0.5, 2), 2)
  expect_equal(as.array(inverse(x)), solve(x))
  expect_true(gradcheck(inverse, x))
  second <- function(inverse) grad_fn(function(x) sum(grad_fn(function(x) sum(inverse(x)^2))(x)^2))
  x <- op_convert_to_tensor(x)
  expect_equal(as.array(second(inverse)(x)), as.array(second(op_inv)(x)))
})

test_each("an R function without a gradient raises when differentiated", {
  f <- r_function(function(x) pnorm(x))
  expect_equal(as.numeric(f(c(0, 1))), pnorm(0:1))
  expect_error(gradient(function(x) sum(f(x)), c(0, 1)), "has no gradient", class = "gradops_error_gradient")
  expect_equal(gradient(function(x) sum(x * op_stop_gradient(f(x))), c(0, 1)), pnorm(0:1))
})

test_contract("compiled programs call R functions", {
  local_watchdog()
  calls <- 0
  f <- r_function(
    function(x) {
      calls <<- calls + 1
      dnorm(x)
    },
    function(x, upstream) -x * dnorm(x) * upstream
  )
  program <- jit(function(x) sum(f(x) * 2))
  for (x in list(c(0, 1), c(2, 3))) expect_equal(program(x), 2 * sum(dnorm(x)))
  before <- calls
  program(c(5, 6))
  expect_equal(calls, before + 1)
  both <- jit(value_and_grad(function(x) sum(f(x) * 2)))
  expect_equal(both(c(0, 1)), list(value = 2 * sum(dnorm(0:1)), gradient = -2 * c(0, dnorm(1))))
})

test_contract("failures inside a program are R conditions", {
  local_watchdog()
  f <- jit(r_function(function(x) if (sum(x) > 50) rlang::abort("too large", class = "mine") else x))
  expect_equal(f(c(1, 2)), c(1, 2))
  condition <- expect_error(f(c(100, 2)), class = "gradops_error_callback")
  expect_s3_class(condition$parent, "mine")
  expect_equal(f(c(1, 2)), c(1, 2))
})

test_once("tf.function and GradientTape with R gradient functions", {
  skip_without("tensorflow")
  local_watchdog()
  local_backend("tensorflow")
  tf <- python("tensorflow")
  custom <- op_custom_gradient(function(x) list(op_exp(x), function(upstream) upstream * 7))
  total <- function(x) op_sum(custom(x))
  x <- tf$constant(c(1, 2), dtype = tf$float64)
  gradient_by_tape <- function(f, call = function(f, ...) f(...)) {
    tape <- tf$GradientTape()
    with(tape, {
      tape$watch(x)
      y <- call(f, x)
    })
    values_in(tape$gradient(y, x))
  }
  expect_equal(gradient_by_tape(total), c(7, 7))
  expect_equal(gradient_by_tape(tf$`function`(total, autograph = FALSE)), c(7, 7))

  density <- tf$`function`(function(x) op_sum(normal(x)), autograph = FALSE)
  expect_equal(as.numeric(call_in_thread(density, x)), sum(dnorm(1:2)))
  tape <- tf$GradientTape()
  with(tape, {
    tape$watch(x)
    y <- call_in_thread(density, x)
  })
  expect_equal(values_in(call_in_thread(tape$gradient, y, x)), -(1:2) * dnorm(1:2))
})

test_once("calling R from compiled code on R's thread is an error, not a deadlock (TensorFlow)", {
  skip_without("tensorflow")
  skip_on_os(c("windows", "mac"))
  local_watchdog()
  local_backend("tensorflow")
  tf <- python("tensorflow")
  bridge <- python("gradops.interop.r")
  bridge$set_patience(0.5)
  withr::defer(bridge$set_patience(10))
  density <- tf$`function`(function(x) op_sum(normal(x)), autograph = FALSE)
  expect_error(density(tf$constant(c(1, 2), dtype = tf$float64)), "call_in_thread")
  expect_equal(as.numeric(call_in_thread(density, tf$constant(c(1, 2), dtype = tf$float64))), sum(dnorm(1:2)))
})

test_once("tf.py_function runs gradops' R functions with the tape of its thread", {
  skip_without("tensorflow")
  local_watchdog()
  local_backend("tensorflow")
  tf <- python("tensorflow")
  custom <- gradops:::callback(op_custom_gradient(function(x) list(op_exp(x), function(upstream) upstream * 7)))
  f <- tf$`function`(function(x) op_sum(tf$py_function(custom, list(x), tf$float64)), autograph = FALSE)
  x <- tf$constant(c(1, 2), dtype = tf$float64)
  tape <- tf$GradientTape()
  with(tape, {
    tape$watch(x)
    y <- call_in_thread(f, x)
  })
  expect_equal(values_in(y), sum(exp(1:2)))
  expect_equal(values_in(call_in_thread(tape$gradient, y, x)), c(7, 7))
})

test_once("jax.jit calls R, from another thread while its input is still being computed", {
  skip_without("jax")
  local_watchdog()
  local_backend("jax")
  jax <- python("jax")
  density <- jax$jit(function(x) op_sum(normal(x)))
  expect_equal(values_in(density(jax$numpy$array(c(1, 2)))), sum(dnorm(1:2)))
  slope <- jax$jit(jax$grad(function(x) op_sum(normal(x))))
  expect_equal(values_in(slope(jax$numpy$array(c(1, 2)))), -(1:2) * dnorm(1:2))
  slow <- jax$jit(function(x) op_sum(x %*% x %*% x %*% x, 1L) * 0 + 1)
  x <- jax$numpy$ones(tuple(1200L, 1200L))
  slow(x)
  expect_equal(values_in(density(slow(x))), 1200 * dnorm(1))
})

# Memory --------------------------------------------------------------------------------------------------------------

test_each("R functions that refer to each other through Python are freed", {
  local_watchdog(120)
  python("gc")$freeze() # the library's objects are not searched each time
  withr::defer(python("gc")$unfreeze())
  freed <- character()
  made_of <- list(
    custom = function() {
      f <- op_custom_gradient(function(x) list(x * 2, function(upstream) upstream * 3))
      gradient(function(x) sum(f(x)), c(1, 2))
    },
    two = function() {
      f <- op_custom_gradient(function(x) x * 2, function(x, upstream) upstream * 3)
      x <- variable(c(1, 2), TRUE)
      backward(sum(f(x)))
    },
    derivative = function() {
      f <- grad_fn(function(x) sum(x^2))
      f(c(1, 2))
    },
    compiled = function() {
      f <- jit(function(x) sum(x^2))
      f(c(1, 2))
    },
    checkpointed = function() {
      f <- checkpoint(function(x) exp(x))
      gradient(function(x) sum(f(x)), c(1, 2))
    },
    function_class = function() {
      f <- autodiff_function(function(ctx, x) x * 2, function(ctx, upstream) upstream * 3)
      x <- variable(c(1, 2), TRUE)
      backward(sum(f(x)))
    },
    ordinary = function() {
      f <- r_function(function(x) x * 2, function(x, upstream) upstream * 3)
      gradient(function(x) sum(f(x)), c(1, 2))
    }
  )
  for (name in names(made_of)) {
    local({
      here <- new.env()
      here$name <- name
      reg.finalizer(here, function(e) freed <<- c(freed, e$name))
      make <- made_of[[name]]
      environment(make) <- here
      # the frame of `make` holds `f`, whose inner function has that frame as environment
      make()
    })
  }
  for (i in 1:6) {
    gc(full = TRUE)
    python("gc")$collect()
  }
  call_in_thread(python("math")$sqrt, 4)
  gc(full = TRUE)
  expect_setequal(freed, names(made_of))
})

test_contract("a gradient function outlives its R function", {
  python("gc")$freeze()
  withr::defer(python("gc")$unfreeze())
  x <- variable(c(1, 2), TRUE)
  y <- local({
    f <- op_custom_gradient(function(x) x * 2, function(x, upstream) upstream * 3)
    g <- r_function(function(x) x * 2, function(x, upstream) upstream * 5)
    h <- autodiff_function(function(ctx, x) x * 2, function(ctx, upstream) upstream * 7)
    k <- checkpoint(function(x) x^3)
    sum(f(x) + g(x) + h(x) + k(x))
  })
  gc(full = TRUE)
  python("gc")$collect()
  gc(full = TRUE)
  backward(y)
  expect_equal(as.numeric(x$grad), 15 + 3 * c(1, 2)^2)
})

test_once("an R function released by another thread is freed", {
  skip_without()
  local_watchdog()
  freed <- FALSE
  held <- local({
    here <- new.env()
    reg.finalizer(here, function(e) freed <<- TRUE)
    python("collections")$deque(list(gradops:::callback(local(function(x) x, here))))
  })
  on_a_thread(held$clear)
  python("math")$sqrt(4)
  call_in_thread(python("math")$sqrt, 4)
  for (i in 1:3) gc(full = TRUE)
  expect_true(freed)
})

test_each("R functions are called even if interrupts are suspended", {
  expect_identical(suspendInterrupts(gradient(function(x) with_stop_gradient(x * 1) * x, 3)), 3)
})
