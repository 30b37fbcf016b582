# The built package does not contain the examples.

test_on("jax", "domain-adversarial training: gradient reversal raises the accuracy on the target", {
  skip_on_cran()
  skip_if(!is_long(), "long: GRADOPS_LONG is not set")
  skip_without("torch")
  skip_if(is_loaded_from_source(), "needs the installed package")
  script <- test_path("../../examples/domain_adversarial.R")
  skip_if(!file.exists(script), "the examples are not here")
  picture <- withr::local_tempfile(fileext = ".png")
  out <- run_script(script, c("300", picture))
  expect_null(attr(out, "status"))
  rows <- utils::read.table(text = gsub("%", "", grep("^(torch|jax) ", out, value = TRUE)))
  names(rows) <- c("library", "reversal", "source", "target")
  expect_equal(rows$library, c("torch", "torch", "jax", "jax"))
  expect_equal(rows$reversal, c("no", "yes", "no", "yes"))
  expect_true(all(rows$target[c(2, 4)] > rows$target[c(1, 3)] + 5))
  expect_equal(readBin(picture, "raw", 4), as.raw(c(0x89, 0x50, 0x4e, 0x47)))
})
