# The R scripts of docs/distributed.md give the same result on several processes or devices as on one.

numbers <- function(out) {
  expect_null(attr(out, "status"), info = paste(out, collapse = "\n"))
  lines <- grep("^-?[0-9]+[.][0-9]+ ", out, value = TRUE)
  expect_length(lines, 1)
  as.numeric(strsplit(trimws(lines), " ")[[1]])
}

distributed_script <- function(name) {
  skip_if(!nzchar(Sys.getenv("GRADOPS_LONG")), "long: GRADOPS_LONG is not set")
  skip_if(is_loaded_from_source(), "needs the installed package")
  script <- test_path("../../examples/distributed", name)
  skip_if(!file.exists(script), "the examples are not here")
  normalizePath(script)
}

test_on("torch", "two torchrun processes train like one (DDP)", {
  script <- distributed_script("ddp.R")
  one <- numbers(run_script(script))
  expect_length(one, 26)
  launched <- c("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python")
  env <- c(paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep)), "OMP_NUM_THREADS=1")
  rscript <- file.path(R.home("bin"), "Rscript")
  python <- reticulate::py_exe()
  two <- suppressWarnings(system2(python, c(launched, rscript, script), stdout = TRUE, stderr = TRUE, env = env))
  expect_equal(numbers(two), one, tolerance = 1e-10)
})

test_on("jax", "a mesh of eight devices trains like one (JAX)", {
  script <- distributed_script("jax_mesh.R")
  one <- numbers(run_script(script))
  expect_length(one, 20)
  eight <- run_script(script, env = "XLA_FLAGS=--xla_force_host_platform_device_count=8")
  expect_match(eight, "^8 pieces of the data", all = FALSE)
  expect_equal(numbers(eight), one, tolerance = 1e-10)
})

test_on("numpy", "R workers find the estimates of glm()", {
  script <- distributed_script("shards.R")
  fit <- glm(case ~ spontaneous + induced, binomial, infert, control = glm.control(epsilon = 1e-14))
  want <- unname(c(coef(fit), sqrt(diag(vcov(fit)))))
  for (workers in c("0", "2")) expect_equal(numbers(run_script(script, workers)), want, tolerance = 1e-6)
})
