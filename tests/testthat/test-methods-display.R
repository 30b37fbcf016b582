local_in_new_session <- function(value, envir = parent.frame()) {
  file <- withr::local_tempfile(fileext = ".rds", .local_envir = envir)
  saveRDS(value, file)
  readRDS(file)
}

test_contract("tensors and variables are restored from a file unchanged", {
  values <- matrix(c(1.5, -2, NaN, Inf, 0, 1e-300), 2)
  kept <- list(
    weights = parameter(values, role = "weights"),
    plain = variable(c(1, 2)),
    nested = list(op_cast(c(0.1, 2), "float32"), op_cast(c(TRUE, FALSE), "bool"), note = "text", number = 1L),
    whole = op_cast(2^53, "int64") + 1L,
    complex = op_cast(c(1 + 2i, -1i), "complex64"),
    empty = op_zeros(c(0, 3)),
    scalar = op_exp(1)
  )
  back <- unserialize_tensor(local_in_new_session(serialize_tensor(kept)))
  expect_identical(as.array(back$weights), values)
  expect_identical(names(back), names(kept))
  expect_identical(back$nested[c("note", "number")], kept$nested[c("note", "number")])
  expect_identical(op_shape(back$empty), c(0L, 3L))
  expect_true(as.logical(back$whole == kept$whole))
  for (name in c("weights", "plain", "whole", "complex", "empty", "scalar")) {
    expect_identical(described(back[[name]]), described(kept[[name]]))
  }
  for (i in 1:2) expect_identical(op_dtype(back$nested[[i]]), op_dtype(kept$nested[[i]]))
  backward(sum(back$weights[1, 1:2]))
  expect_equal(as.array(back$weights$grad), rbind(c(1, 1, 0), 0) * 1)
  expect_output(print(serialize_tensor(kept$weights)), paste("serialized", backend, "float64 \\[2, 3\\]"))
})

test_contract("half precision is restored exactly", {
  half <- op_cast(c(1.5, 1 / 3), if (backend == "numpy") "float16" else "bfloat16")
  back <- unserialize_tensor(local_in_new_session(serialize_tensor(half)))
  expect_identical(op_dtype(back), op_dtype(half))
  expect_identical(as.numeric(back), as.numeric(half))
})

test_once("tensors can be restored on another backend", {
  skip_without("torch")
  packed <- serialize_tensor(with_backend("torch", parameter(c(1, 2))))
  back <- unserialize_tensor(packed, backend = "numpy")
  expect_match(described(back), "numpy float64 \\[2\\].*requires a gradient")
  packed$backend <- "theano"
  expect_error(unserialize_tensor(packed), class = "gradops_error_backend")
})

test_once("texts keep their roles and feedback", {
  skip_without()
  greeting <- parameter("Hello", role = "greeting")
  letter <- greeting + parameter(" you", role = "rest")
  backward(letter, grad_variables = "too short")
  for (text in list(greeting, letter, greeting$grad)) {
    back <- unserialize_tensor(local_in_new_session(serialize_tensor(text)))
    expect_identical(as.character(back), as.character(text))
    expect_identical(back$role, text$role)
  }
})

test_once("traced tensors and other objects cannot be saved", {
  skip_without()
  expect_error(serialize_tensor(reticulate::py_eval("object()", convert = FALSE)), class = "gradops_error_type")
  traced <- jit(function(x) {
    expect_error(serialize_tensor(x), class = "gradops_error_type")
    x
  })
  traced(c(1, 2))
})

test_each("a dead handle names the function that would have saved it", {
  gone <- local_in_new_session(parameter(c(1, 2)))
  uses <- list(
    \() gone + 1, \() op_exp(gone), \() sum(gone), \() gone[1], \() dim(gone), \() gone$grad, \() as.numeric(gone),
    \() backward(gone), \() gradient(\(x) sum(x), gone), \() serialize_tensor(gone)
  )
  for (use in uses) expect_error(use(), "serialize_tensor.*unserialize_tensor", class = "gradops_error_stale")
  expect_output(print(gone), "another R session.*serialize_tensor")
  expect_identical(utils:::.DollarNames(gone, ""), character())
})

test_each("large tensors print their first corner", {
  expect_output(print(op_zeros(c(2, 3))), paste0("<", backend, " float64 \\[2, 3\\]>"))
  long <- capture.output(print(op_arange(5000)))
  expect_match(long[length(long)], "the first 50 of 5000")
  expect_false(any(grepl("\\b51\\b", long)))
  wide <- capture.output(print(op_reshape(op_arange(1e4), c(100, 100)), digits = 3))
  expect_match(wide[length(wide)], "the first 10 x 6 of 100 x 100")
  expect_match(wide[3], "1 +2 +3 +4 +5 +6$")
  withr::local_options(gradops.print_max = 5)
  small <- capture.output(print(op_arange(6)))
  expect_match(small[2], "1 2 3 4 5 6$")
  expect_length(small, 2)
  cut <- capture.output(print(op_zeros(c(3, 7))))
  expect_match(tail(cut, 1), "the first 3 x 6 of 3 x 7")
})

test_each("`$` completes public fields without evaluating them", {
  x <- parameter(1) * 2
  expect_silent(names <- utils:::.DollarNames(x, "^gra"))
  expect_true(all(c("grad", "grad_fn") %in% names))
  types <- attr(utils:::.DollarNames(x, "^(grad|backward)$"), "types")
  expect_identical(unname(types), c(6L, 0L))
  expect_false(any(startsWith(utils:::.DollarNames(x, ""), "_")))
})

test_each("fields that are numbers, strings or booleans are R values", {
  x <- parameter(c(1, 2), role = "weights")
  expect_identical(x$requires_grad, TRUE)
  expect_identical((variable(2)^2)$item(), 4) # and what methods return
  expect_identical(x$ndim, 1L)
  if (backend != "torch") expect_identical(x$role, "weights")
  expect_null(x$grad)
})

test_each("a missing field raises a gradops error", {
  expect_error(op_exp(c(1, 2))$nonsense, "has no field `nonsense`", class = "gradops_error_argument")
})

test_once("in documents, tensors and profiles are printed like data frames", {
  skip_without()
  skip_if_not_installed("knitr")
  local_backend("numpy")
  x <- op_reshape(1:6, c(2, 3))
  expect_output(knitr::knit_print(x), "numpy int64")
  old <- knitr::opts_knit$get("rmarkdown.df_print")
  withr::defer(knitr::opts_knit$set(rmarkdown.df_print = old))
  knitr::opts_knit$set(rmarkdown.df_print = "kable")
  shown <- paste(knitr::knit_print(x), collapse = "\n")
  expect_match(shown, "numpy int64 \\[2, 3\\]")
  expect_match(shown, "\\| *4\\| *5\\| *6\\|")
  y <- parameter(c(1, 2))
  shown <- paste(knitr::knit_print(with_profile(backward(sum(exp(y))))), collapse = "\n")
  expect_match(shown, "exp.*forward")
  expect_match(shown, " ms")
})

test_once("fits are shown as tables and pictures in documents", {
  skip_without()
  skip_if_not_installed("knitr")
  local_backend("numpy")
  y <- c(1.2, 0.7, 2.1, 1.4, 0.3, 1.9)
  nll <- function(p) -sum(dnorm(y, p["mean"], exp(p["log<sd>"]), log = TRUE))
  fit <- maximize_likelihood(nll, c(mean = 0, `log<sd>` = 0))
  expect_output(knitr::knit_print(fit), "log-likelihood .*, AIC")
  old <- knitr::opts_knit$get("rmarkdown.df_print")
  withr::defer(knitr::opts_knit$set(rmarkdown.df_print = old))
  knitr::opts_knit$set(rmarkdown.df_print = "kable")
  shown <- paste(knitr::knit_print(fit), collapse = "\n")
  expect_match(shown, "log-likelihood .*AIC")
  expect_match(shown, sprintf("mean *\\| *%.4f", mean(y)))
  expect_identical(paste(knitr::knit_print(summary(fit)), collapse = "\n"), shown)
  file <- withr::local_tempfile(fileext = ".svg")
  skip_if_not(capabilities("cairo"))
  grDevices::svg(file)
  expect_identical(plot(fit, main = "two"), fit)
  grDevices::dev.off()
  expect_gt(file.size(file), 2000)
})

test_once("progress is shown in interactive sessions", {
  expect_identical(shows_progress(), interactive())
  withr::with_options(list(gradops.progress = TRUE), expect_true(shows_progress()))
  withr::with_options(list(rlang_interactive = TRUE, knitr.in.progress = TRUE), expect_false(shows_progress()))
})
