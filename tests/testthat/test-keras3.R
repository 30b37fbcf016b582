# Beside keras3, in the library that GRADOPS_NEIGHBOURS names (`make test-neighbours` runs all tests so). Keras runs on the
# backend under test.
neighbours_library <- function(backend) {
  skip_on_cran()
  skip_without(backend)
  skip_if(is_loaded_from_source(), "needs the installed package")
  library <- Sys.getenv("GRADOPS_NEIGHBOURS")
  skip_if(!dir.exists(file.path(library, "keras3")), "GRADOPS_NEIGHBOURS names no library with keras3")
  normalizePath(library)
}

for (backend in setdiff(test_backends(), "numpy")) {
  test_that(paste0("models of keras3 train with gradops, functional and sequential, saved and loaded (", backend, ")"), {
    library <- neighbours_library(backend)
    out <- run_script(test_path("scripts", "with-keras3.R"), library, paste0("KERAS_BACKEND=", backend))
    expect_match(out[length(out)], "^all hold on", info = paste(out, collapse = "\n"))
  })

  test_that(paste0("loading gradops changes nothing of tensorflow's and keras3's (", backend, ")"), {
    library <- neighbours_library(backend)
    arguments <- c(paste0("numpy,", backend), library)
    out <- run_script(test_path("scripts", "before-and-after.R"), arguments, paste0("KERAS_BACKEND=", backend))
    expect_match(out[length(out)], "^0 of [1-9][0-9]+ differ$", info = paste(out, collapse = "\n"))
  })
}
