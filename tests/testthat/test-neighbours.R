# gradops with reticulate, tensorflow and keras3: each package's tensors keep their own methods.

test_once("loading gradops does not affect other packages", {
  skip_on_cran()
  skip_without()
  skip_if(is_loaded_from_source(), "needs the installed package")
  backends <- Filter(gradops_available, if (is_long()) all_backends else c("numpy", "torch"))
  out <- run_script(test_path("scripts", "before-and-after.R"), paste(backends, collapse = ","))
  expect_match(out[length(out)], "^0 of [1-9][0-9]+ differ$")
  expect_null(attr(out, "status"))
})

test_contract("only tensors from gradops get R's semantics, not other handles of the same object", {
  library <- c(numpy = "numpy", torch = "torch", tensorflow = "tensorflow", jax = "jax.numpy")[[backend]]
  module <- reticulate::import(library, convert = FALSE)
  make <- module[[c(numpy = "array", torch = "tensor", tensorflow = "constant", jax = "array")[[backend]]]]
  theirs <- make(list(c(1, 2, 3), c(4, 5, 6)))
  ours <- op_convert_to_tensor(theirs)
  of_gradops <- function(x) inherits(x, "gradops_tensor")
  expect_true(of_gradops(ours))
  expect_false(of_gradops(theirs))
  expect_equal(as.array(ours * c(1, 10)), matrix(1:6, 2, byrow = TRUE) * c(1, 10))
  expect_equal(as.array(ours[2, ]), array(c(4, 5, 6)))

  # Results, also in lists; arguments of functions that gradops calls; fields and methods of its tensors.
  expect_true(of_gradops(op_exp(theirs)))
  expect_true(all(vapply(op_split(theirs, 2), of_gradops, NA)))
  seen <- NULL
  note <- function(x) {
    seen <<- c(seen, of_gradops(x))
    sum(x^2)
  }
  gradient(note, theirs)
  jit(note)(theirs)
  op_custom_gradient(note, function(x, upstream) x)(theirs)
  expect_true(length(seen) >= 3 && all(seen))
  parameter <- parameter(theirs)
  backward(sum(parameter * c(1, 10)))
  expect_true(of_gradops(parameter$grad))
  expect_equal(as.array(parameter$grad), matrix(c(1, 10), 2, 3))
  expect_true(of_gradops(parameter$detach()))

  # Passing another package's tensor as an argument does not change it.
  op_exp(theirs)
  expect_false(of_gradops(theirs))
})

test_contract("R functions accept other packages' tensors next to gradops tensors", {
  library <- c(numpy = "numpy", torch = "torch", tensorflow = "tensorflow", jax = "jax.numpy")[[backend]]
  module <- reticulate::import(library, convert = FALSE)
  make <- module[[c(numpy = "array", torch = "tensor", tensorflow = "constant", jax = "array")[[backend]]]]
  numbers <- matrix(c(2, 1, 0.5, 3), 2)
  theirs <- make(list(c(2, 0.5), c(1, 3)))
  ours <- op_cast(op_convert_to_tensor(numbers + 1), op_dtype(theirs))
  vector <- make(c(0.5, 1.5))
  expect_equal(as.array(crossprod(ours, theirs)), crossprod(numbers + 1, numbers))
  expect_equal(as.array(ours %*% theirs), (numbers + 1) %*% numbers)
  expect_equal(as.vector(c(ours, vector)), c(numbers + 1, 0.5, 1.5))
  expect_equal(as.array(outer(vector, ours[1, ])), base::outer(c(0.5, 1.5), numbers[1, ] + 1))
  expect_equal(as.array(ifelse(ours > 2, theirs, ours)), ifelse(numbers + 1 > 2, numbers, numbers + 1))
  expect_equal(as.array(solve(theirs, ours)), solve(numbers, numbers + 1), tolerance = 1e-6)
  expect_equal(as.vector(dnorm(vector, ours[1, ])), dnorm(c(0.5, 1.5), numbers[1, ] + 1), tolerance = 1e-6)
  expect_equal(as.vector(unlist(list(vector, ours[1, 1]))), c(0.5, 1.5, 3))
  columns <- sapply(1:2, function(i) if (i == 1) vector else ours[1, ])
  expect_equal(as.array(columns), cbind(c(0.5, 1.5), numbers[1, ] + 1))
  expect_equal(as.array(max(ours, theirs)), array(max(numbers + 1)), ignore_attr = TRUE)
  changed <- ours
  changed[1, ] <- vector
  expect_equal(as.array(changed), rbind(c(0.5, 1.5), numbers[2, ] + 1), ignore_attr = TRUE)

  expect_equal(as.array(ours * theirs), (numbers + 1) * numbers)
  expect_equal(as.array(theirs - ours), numbers - (numbers + 1))
  expect_equal(as.array(ours > theirs), numbers + 1 > numbers)
  expect_equal(as.array(vector^ours), c(0.5, 1.5)^(numbers + 1), tolerance = 1e-6)
  expect_equal(as.array(theirs %*% ours), numbers %*% (numbers + 1))
})

test_each("operators between a tensor and an object with its own operators", {
  # From R 4.3 on chooseOpsMethod() selects the tensor's method; earlier, R reports two incompatible methods.
  chosen <- getRversion() >= "4.3.0"
  of_the_tensor <- function(operation, said) {
    if (chosen) expect_error(operation, said, class = "gradops_error_type") else expect_warning(expect_error(operation))
  }
  x <- op_convert_to_tensor(c(1, 2))
  of_the_tensor(Sys.Date() - x, "<Date>")
  of_the_tensor(x > as.difftime(c(1, 2), units = "mins"), "<difftime>")
  of_the_tensor(factor(c("a", "b")) == x, "<factor>")

  # A user-defined class with its own Ops group, and a class without one.
  registerS3method("Ops", "gradops_test_money", function(e1, e2) "money", envir = baseenv())
  withr::defer(rm("Ops.gradops_test_money", envir = get(".__S3MethodsTable__.", baseenv())))
  money <- structure(c(3, 4), class = "gradops_test_money")
  expect_identical(money + 1, "money")
  if (chosen) {
    expect_equal(as.vector(x * money), c(3, 8))
    expect_equal(as.vector(money - x), c(2, 2))
    expect_equal(gradient(function(p) sum(money * p), c(1, 2)), c(3, 4))
  } else {
    expect_warning(expect_error(x * money), "Incompatible methods")
  }
  plain <- structure(c(3, 4), class = "gradops_test_plain")
  expect_equal(as.vector(plain^x), c(3, 16))
  expect_equal(as.vector(x < plain), c(TRUE, TRUE))

  # R's matrix products are generic from R 4.3 (`%*%`) and 4.4 on.
  m <- matrix(c(2, 1, 0.5, 3), 2)
  ours <- op_convert_to_tensor(m)
  expect_equal(as.array(m %*% ours), m %*% m)
  if (getRversion() >= "4.4.0") {
    expect_equal(as.array(base::crossprod(ours)), base::crossprod(m))
    expect_equal(as.array(base::crossprod(m, ours)), base::crossprod(m, m))
    expect_equal(as.array(base::tcrossprod(ours, m)), base::tcrossprod(m, m))
  }
})

test_once("tensors of the R package torch are told from Python's", {
  skip_without()
  x <- structure(methods::new("externalptr"), class = c("torch_tensor", "R7")) # as in that package
  expect_error(op_exp(x), "the R package torch.*as\\.array", class = "gradops_error_type")
  expect_error(op_add(variable(1), x), "the R package torch", class = "gradops_error_type")
  expect_error(variable(x), "the R package torch", class = "gradops_error_type")
  expect_error(gradient(sum, x), "the R package torch", class = "gradops_error_type")
})

test_once("an R function cannot run on another thread", {
  skip_without()
  expect_error(call_in_thread(function(x) x, 1), "model\\$fit", class = "gradops_error_type")
})
