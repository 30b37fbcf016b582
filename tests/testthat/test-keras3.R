# Tests with keras3, from the library named by GRADOPS_NEIGHBOURS (`make test-neighbours` runs all tests this way).
# Keras uses the tested backend.
neighbours_library <- function() {
  skip_on_cran()
  skip_if(is_loaded_from_source(), "needs the installed package")
  library <- Sys.getenv("GRADOPS_NEIGHBOURS")
  skip_if(!dir.exists(file.path(library, "keras3")), "GRADOPS_NEIGHBOURS names no library with keras3")
  normalizePath(library)
}

# JAX only; `make test-neighbours` sets GRADOPS_LONG, for all backends.
trained_on <- if (is_long()) c("torch", "tensorflow", "jax") else "jax"

test_on(trained_on, "keras3 models train with gradops and can be saved and loaded", {
  library <- neighbours_library()
  out <- run_script(test_path("scripts", "with-keras3.R"), library, paste0("KERAS_BACKEND=", backend))
  expect_match(out[length(out)], "^all hold on", info = paste(out, collapse = "\n"))
})

test_on(trained_on, "the page of gradients in Keras prints what it shows", {
  library <- neighbours_library()
  lines <- readLines(file.path(source_folder("docs"), "keras.md"), encoding = "UTF-8")
  block <- cumsum(startsWith(lines, "```"))
  code <- lines[block %in% block[lines == "```r"] & !startsWith(lines, "```")]
  page <- withr::local_tempfile(fileext = ".R", lines = code)
  printed <- withr::local_tempfile()
  script <- withr::local_tempfile(fileext = ".R", lines = c(
    sprintf(".libPaths(c(%s, .libPaths()))", deparse1(library)),
    sprintf("sink(%s)\nsource(%s, print.eval = TRUE)", deparse1(printed), deparse1(page))
  ))
  out <- run_script(script, env = paste0("KERAS_BACKEND=", backend))
  wanted <- sub("^#> ", "", grep("^#> ", code, value = TRUE))
  expect_identical(trimws(readLines(printed), "right"), wanted, info = paste(out, collapse = "\n"))
})

test_on(trained_on, "loading gradops does not affect tensorflow and keras3", {
  library <- neighbours_library()
  arguments <- c(paste0("numpy,", backend), library)
  out <- run_script(test_path("scripts", "before-and-after.R"), arguments, paste0("KERAS_BACKEND=", backend))
  expect_match(out[length(out)], "^0 of [1-9][0-9]+ differ$", info = paste(out, collapse = "\n"))
})

test_once("gradops has keras3's ops, as many as the page says", {
  ops <- grep("^op_", parseNamespaceFile("keras3", neighbours_library())$exports, value = TRUE)
  expect_identical(setdiff(ops, getNamespaceExports("gradops")), character())
  page <- readLines(file.path(source_folder("vignettes"), "with-keras3.Rmd"))
  expect_true(any(grepl(sprintf("keras3's %d ops", length(ops)), page)), info = length(ops))
})

test_on("jax", "a model with gradops ops loads in a session where gradops has not run", {
  library <- neighbours_library()
  file <- withr::local_tempfile(fileext = ".keras")
  run <- function(...) {
    code <- c(sprintf(".libPaths(c(%s, .libPaths()))", deparse1(library)), "suppressMessages(library(keras3))", ...)
    script <- withr::local_tempfile(fileext = ".R", lines = code)
    run_script(script, env = "KERAS_BACKEND=jax")
  }
  run(
    "suppressMessages(library(gradops))", "x <- keras_input(shape = 2)",
    sprintf("save_model(keras_model(x, op_scaled_gradient(op_exp(x), -1)), %s)", deparse1(file))
  )
  out <- run(
    "loadNamespace('gradops')", sprintf("model <- load_model(%s)", deparse1(file)),
    "cat(as.array(model(matrix(0, 1, 2))))"
  )
  expect_identical(out[length(out)], "1 1")
})
