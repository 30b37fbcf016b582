# Scopes end with their code: by value, error, interrupt or return; local_ scopes end with their function.

# Returns the state that scopes change, as seen from outside.
scope_state <- function() {
  module <- function(name) reticulate::import(paste0("gradops.", name), convert = FALSE)
  if (backend == "torch") {
    plan <- module("backends.torch.checkpointing")$`_local`$plan
  } else {
    plan <- module("flow.checkpointing.tape")$current$get()
  }
  c(
    recording = (parameter(1) * 2)$requires_grad,
    checkpointing = !is.null(reticulate::py_to_r(plan)),
    anomaly = reticulate::py_to_r(module("autodiff.diagnostics.anomaly")$`_settings`)$on,
    profiling = length(reticulate::py_to_r(module("autodiff.diagnostics.profiler")$`_active`)) > 0,
    backend = identical(config_backend(), "numpy")
  )
}

scopes <- list(
  stop_gradient = list(with_stop_gradient, local_stop_gradient),
  gradient_checkpoint = list(with_gradient_checkpoint, local_gradient_checkpoint),
  no_grad = list(with_no_grad, local_no_grad),
  inference_mode = list(with_inference_mode, local_inference_mode),
  detect_anomaly = list(with_detect_anomaly, local_detect_anomaly),
  profile = list(with_profile, NULL),
  enable_grad = list(
    function(code) with_no_grad(with_enable_grad(code)),
    function() {
      local_no_grad(parent.frame())
      local_enable_grad(parent.frame())
    }
  )
)

test_contract("every scope ends with its code: value, error, interrupt, return, break", {
  environment(scope_state) <- environment()
  outside <- scope_state()
  expect_true(outside[["recording"]])
  for (name in names(scopes)) {
    with_scope <- scopes[[name]][[1]]
    inside <- NULL
    with_scope(inside <- scope_state())
    changed <- !identical(inside, outside)
    expect_equal(changed, name != "enable_grad", info = name)
    expect_equal(scope_state(), outside, info = paste(name, "after its value"))
    expect_error(with_scope(stop("mine")), "mine")
    expect_equal(scope_state(), outside, info = paste(name, "after an error"))
    expect_error(with_scope(op_reshape(c(1, 2), 3)), class = "gradops_error")
    expect_equal(scope_state(), outside, info = paste(name, "after an error of Python's"))
    interrupted <- tryCatch(with_scope(rlang::interrupt()), interrupt = function(condition) "interrupted")
    expect_equal(interrupted, "interrupted", info = name)
    expect_equal(scope_state(), outside, info = paste(name, "after an interrupt"))
    leaves_early <- function() {
      with_scope(return("early"))
      "late"
    }
    expect_equal(leaves_early(), "early", info = name)
    for (i in 1:2) with_scope(if (i == 1) next else break)
    expect_equal(scope_state(), outside, info = paste(name, "after return, next and break"))
  }
})

test_each("every local scope ends with its function, however the function ends", {
  environment(scope_state) <- environment()
  outside <- scope_state()
  for (name in names(scopes)) {
    local_scope <- scopes[[name]][[2]]
    if (is.null(local_scope)) next
    enclosed <- function(end) {
      local_scope()
      end()
    }
    expect_equal(!identical(enclosed(scope_state), outside), name != "enable_grad", info = name)
    expect_equal(scope_state(), outside, info = paste(name, "after its value"))
    expect_error(enclosed(function() stop("mine")), "mine")
    expect_equal(scope_state(), outside, info = paste(name, "after an error"))
    tryCatch(enclosed(rlang::interrupt), interrupt = identity)
    expect_equal(scope_state(), outside, info = paste(name, "after an interrupt"))
  }
})

test_contract("scopes inside differentiated functions end on errors and interrupts", {
  environment(scope_state) <- environment()
  outside <- scope_state()
  failing <- function(end) function(x) with_stop_gradient(with_no_grad(end()))
  expect_error(gradient(failing(function() stop("mine")), 1), class = "gradops_error_callback")
  expect_equal(scope_state(), outside)
  tryCatch(gradient(failing(rlang::interrupt), 1), interrupt = identity, error = identity)
  expect_equal(scope_state(), outside)
  expect_equal(gradient(function(x) x^2, 3), 6)
})

test_on("tensorflow", "a scope that cannot be entered raises a named error", {
  tf <- reticulate::import("tensorflow", convert = FALSE)
  tape <- tf$GradientTape()
  tape$`__enter__`()
  withr::defer(tape$`__exit__`(NULL, NULL, NULL))
  x <- tf$constant(c(1, 2))
  tape$watch(x)
  expect_error(with_gradient_checkpoint(op_exp(x)), "checkpoint", class = "gradops_error_backend")
})

test_once("a real interrupt ends scopes, in R code and in ops", {
  skip_on_cran()
  skip_on_os("windows")
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  out <- in_new_process(c(
    "p <- parameter(c(1, 2))",
    "tape <- reticulate::import('gradops.flow.checkpointing.tape', convert = FALSE)",
    "state <- function() c((p * 2)$requires_grad, is.null(reticulate::py_to_r(tape$current$get())))",
    "interrupted <- function(code) {",
    "  inside <- NULL",
    "  got <- tryCatch(",
    "    with_no_grad(with_gradient_checkpoint({",
    "      inside <- state()",
    "      system(sprintf('(sleep 0.3; kill -INT %d) &', Sys.getpid()))",
    "      for (i in 1:1e8) code()",
    "    })),",
    "    interrupt = \\(condition) 'interrupted'",
    "  )",
    "  cat('state:', inside, got, state(), '\\n')",
    "}",
    "interrupted(\\() Sys.sleep(0.01))",
    "interrupted(\\() op_exp(c(1, 2)))"
  ))
  expect_equal(trimws(grep("^state:", out, value = TRUE)), rep("state: FALSE FALSE interrupted TRUE TRUE", 2))
})
