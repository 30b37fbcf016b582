test_once("every op of the table is exported with its documented arguments", {
  ops <- table_of_ops()
  exports <- getNamespaceExports("gradops")
  expect_setequal(setdiff(ops$r_name, exports), character())
  written <- subset(ops, r_name %in% exports & nzchar(r_args) & !startsWith(r_args, "<alias>"))
  for (i in seq_len(nrow(written))) {
    documented <- formals(eval(parse(text = sprintf("function(%s) NULL", written$r_args[i]))))
    name <- written$r_name[i]
    actual <- formals(getExportedValue("gradops", name))
    expect_equal(as.list(actual)[names(documented)], as.list(documented), info = name)
  }
})

test_once("ops without R arguments in tools/ops.csv have the Python ones, in R's terms", {
  ops <- subset(table_of_ops(), !nzchar(r_args) & r_name %in% getNamespaceExports("gradops"))
  for (i in seq_len(nrow(ops))) {
    python <- ops$python[[i]]
    actual <- names(formals(getExportedValue("gradops", ops$r_name[i])))
    only_in_r <- setdiff(c("zero_indexed", "..."), python)
    expect_setequal(setdiff(actual, only_in_r), python)
    expect_equal(setdiff(actual, c(only_in_r, "...")), setdiff(python, "..."), info = ops$r_name[i])
  }
})

test_each("ops agree with R's functions", {
  x <- c(0.2, 1.4, 2.6)
  m <- matrix(c(4, 1, 2, 3, 7, 5), 2)
  value <- function(x) as.vector(x)
  expect_equal(value(op_sigmoid(x)), plogis(x))
  expect_equal(value(op_softplus(x)), log1p(exp(x)))
  expect_equal(value(op_logsumexp(x)), log(sum(exp(x))))
  expect_equal(value(op_softmax(x)), exp(x) / sum(exp(x)))
  expect_equal(value(op_erf(x)), 2 * pnorm(x * sqrt(2)) - 1)
  expect_equal(as.array(op_concatenate(list(m, m), axis = 2)), cbind(m, m))
  expect_equal(as.array(op_stack(list(x, x))), rbind(x, x, deparse.level = 0))
  expect_equal(as.array(op_transpose(m)), t(m))
  expect_equal(as.array(op_einsum("ij,kj->ik", m, m)), m %*% t(m))
  expect_equal(as.array(op_tensordot(m, m, axes = list(2, 2))), m %*% t(m))
  expect_equal(value(op_tensordot(m, m)), sum(m * m))
  expect_equal(as.array(op_outer(x, x)), outer(x, x))
  expect_equal(value(op_where(x > 1, x, 0)), ifelse(x > 1, x, 0))
  expect_equal(value(op_arange(3)), c(1, 2, 3))
  expect_equal(value(op_arange(0, 1, 0.25)), seq(0, 1, 0.25))
  expect_equal(value(op_arange(1L, 9L, 2L, include_end = FALSE)), c(1L, 3L, 5L, 7L))
  ends <- c(NA, TRUE)
  expect_error(op_arange(2, include_end = ends), "`include_end` must be TRUE or FALSE", class = "gradops_error_type")
  expect_equal(value(op_linspace(0, 1, 5)), seq(0, 1, length.out = 5))
  expect_equal(as.array(op_eye(2)), diag(2))
  expect_equal(value(op_get_item(m, list(NULL, -1))), m[, 3])
  expect_identical(op_shape(m), c(2L, 3L))
  expect_equal(as.array(op_nonzero(m > 3)), which(t(t(m) > 3), arr.ind = TRUE)[c(1, 2, 3), ], ignore_attr = TRUE)
  expect_equal(lapply(op_split(x, 3), value), as.list(x))
  expect_equal(lapply(op_split(x, list(3)), value), list(x[1:2], x[3]))
})

test_each("gradients of ops agree with numerical ones", {
  x <- c(0.2, 1.4, 2.6)
  functions <- list(
    \(x) sum(exp(-x^2 / 2)), \(x) sum(x * op_sigmoid(x)), \(x) op_logsumexp(x), \(x) max(x)^2,
    \(x) sum(op_outer(x, x) %*% c(1, 2, 3)), \(x) prod(x), \(x) sum(cumsum(x)^2), \(x) mean(x / (1 + x^2))
  )
  for (f in functions) {
    expect_equal(gradient(f, x), numeric_gradient(\(x) as.numeric(f(op_convert_to_tensor(x))), x), tolerance = 1e-7)
  }
})

test_contract("functions given to ops are R functions of tensors", {
  expect_equal(as.vector(op_map(c(1, 2, 3), \(x) x^2)), c(1, 4, 9))
  expect_equal(as.vector(op_fori_loop(0, 4, \(i, total) total + i, op_convert_to_tensor(0L))), 6L)
  expect_equal(as.vector(op_cond(op_convert_to_tensor(TRUE), \() op_exp(0), \() op_exp(1))), 1)
  expect_equal(as.vector(op_switch(2, list(\(x) x, \(x) x * 10), op_exp(0))), 10)
  scanned <- op_scan(\(total, x) list(total + x, total * x), 0, c(1, 2, 3))
  expect_equal(as.vector(scanned[[1]]), 6)
  expect_equal(as.vector(scanned[[2]]), c(0, 2, 9))
  condition <- expect_error(op_map(c(1, 2), \(x) stop("mine")), class = "gradops_error_callback")
  expect_equal(conditionMessage(condition$parent), "mine")
})
