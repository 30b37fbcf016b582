# Every op and every function of gradops with random arguments: a value, or one of gradops' own conditions, which say
# what was wrong; never an error of R's, Rcpp's or Python's. GRADOPS_LONG=<factor> is for long, with a seed that the
# failure names.

pool <- function() {
  list(
    0, 1, 2, -1, 1.5, NA, NaN, Inf, 2^40, 1e300, 1L, NA_integer_, TRUE, 1i, "a", "float32", "", NULL, character(),
    numeric(), c(1, 2), c(0.2, 0.8), c(2L, 1L), c(TRUE, FALSE), c(-1, 3), c(NA, 1), c("a", "b"), 1:3 + 2i,
    matrix(c(2, 1, 1, 3), 2), matrix(1:6, 2), matrix(list(1, 2), 1), array(1:8 / 8, c(2, 2, 2)),
    array(1, c(1, 4, 4, 1)),
    list(), list(1, 2), list(c(1, 2), c(1, 2, 3)), list(a = 1, b = c(1, 2)), list("a", 1), list(NULL),
    factor(c("a", "b")), as.Date("2020-01-01"), data.frame(a = 1:2, b = c("x", "y")), raw(2),
    exp, function() NULL, function(x) x, function(x, y) x + y,
    op_convert_to_tensor(c(1, 2)), op_convert_to_tensor(2L), op_convert_to_tensor(matrix(1:4 / 4, 2)),
    op_convert_to_tensor(c(TRUE, FALSE)), op_convert_to_tensor(c(2L, 1L)), op_zeros(c(0, 2)), op_convert_to_tensor(1i),
    variable(c(1, 2), TRUE), op_cast(c(1, 2), "float32"), op_convert_to_tensor(array(1:16 / 16, c(1, 4, 4, 1)))
  )
}

# Not those that change the session, and not R's own functions, whose errors are R's where no tensor is.
skipped <- c(
  "tuple", "%||%", "%as%", "np_array", "call_in_thread", "use_backend", "local_backend", "with_backend",
  "%<-%", "array_reshape", "config_set_backend", "config_set_floatx", "config_set_epsilon", "serialize_tensor",
  "unserialize_tensor"
)

public <- function() {
  names <- getNamespaceExports("gradops")
  names <- names[!grepl("^(with_|local_|op_.*<-)", names) & vapply(names, function(n) is.function(get(n)), NA)]
  sort(setdiff(names, c(skipped, ls(baseenv(), all.names = TRUE), getNamespaceExports("stats"))))
}

draw <- function(f, values) {
  formals <- formals(args(f))
  names <- setdiff(names(formals), "...")
  needed <- names[vapply(names, function(name) rlang::is_missing(formals[[name]]), NA)]
  optional <- setdiff(names, needed)
  chosen <- c(needed, optional[runif(length(optional)) < 0.3])
  arguments <- stats::setNames(values[sample(length(values), length(chosen), replace = TRUE)], chosen)
  if ("..." %in% names(formals) && runif(1) < 0.3) arguments <- c(arguments, values[sample(length(values), 1)])
  arguments
}

raw_conditions <- function(seed, times, names = public()) {
  withr::local_seed(seed)
  values <- pool()
  found <- character()
  for (name in rep(names, times)) {
    arguments <- draw(get(name), values)
    condition <- tryCatch(
      suppressMessages(suppressWarnings({
        utils::capture.output(do.call(name, arguments, quote = TRUE))
        NULL
      })),
      error = identity
    )
    own <- is.null(condition) || inherits(condition, "gradops_error") && !inherits(condition, "gradops_error_python")
    if (!own) {
      shown <- vapply(arguments, function(x) if (is.environment(x)) class(x)[1] else deparse1(x), "")
      call <- sprintf("%s(%s)", name, paste(names(arguments), "=", shown, collapse = ", "))
      found <- c(found, sprintf("%s: %s", substr(call, 1, 200), substr(conditionMessage(condition), 1, 200)))
    }
  }
  found
}

test_each("random arguments give a value or a condition of gradops", {
  skip_on_cran()
  long <- as.numeric(Sys.getenv("GRADOPS_LONG", "0"))
  skip_if(long == 0, "random and long: GRADOPS_LONG is not set")
  seed <- sample.int(1e6, 1)
  raw <- raw_conditions(seed, ceiling(5 * long))
  expect(
    length(raw) == 0,
    sprintf("seed %d: %d raw conditions\n%s", seed, length(raw), paste(utils::head(raw, 20), collapse = "\n"))
  )
})

# The count that docs/differences.md and docs/trust.md have.
test_that("how many functions there are", {
  skip_if(getRversion() >= "4.4", "base R has more names")
  expect_length(public(), 417)
})

test_each("mistakes are named in R's words", {
  m <- op_convert_to_tensor(matrix(1:4 / 4, 2))
  x <- parameter(c(1, 2))
  expect_error(op_concatenate(m, m), class = "gradops_error_type")
  expect_no_match(conditionMessage(expect_error(op_concatenate(m, m))), "-2|0-based|None|IndexError")
  expect_error(m[["nothing"]], "no field `nothing`", class = "gradops_error_argument")
  expect_error(op_arange("a"), "must be a number", class = "gradops_error_type")
  expect_error(op_fold(1, 2, 3, stride = matrix("a")), class = "gradops_error")
  expect_error(op_nonzero(list(c(1, 2), 1:3)), "`x` must be a rectangular list", class = "gradops_error_shape")
  expect_error(op_einsum(1.5, m), class = "gradops_error_type")
  expect_no_error(op_exp(matrix(list(1, 2), 1)))
  expect_error(op_nonzero(m, zero_indexed = m), "`zero_indexed` must be TRUE or FALSE", class = "gradops_error_type")
  expect_error(op_take(m, factor("a"), zero_indexed = m), "`zero_indexed` must be", class = "gradops_error_type")
  expect_error(op_append(m, m, axis = op_convert_to_tensor(1i)), "whole number", class = "gradops_error_type")
  expect_error(random_shuffle(m, axis = m), "`axis` must be a number", class = "gradops_error_type")
  expect_error(random_shuffle(m, axis = 3), class = "gradops_error_axis")
  expect_equal(dim(random_shuffle(m, axis = -1)), c(2, 2))
  expect_error(random_seed_generator(m), "`seed` must be a whole number", class = "gradops_error_argument")
  expect_error(op_convert_to_array(NULL), "got NULL", class = "gradops_error_argument")
  expect_error(jacobian(exp, c(1, 2), side = list(1, -1)), "`side`", class = "gradops_error_argument")
  expect_error(autodiff_graph(variable(1) * 2, 1:3), "named list", class = "gradops_error_argument")
  expect_error(op_subset(NULL, 1), "got NULL", class = "gradops_error_type")
  expect_error(op_subset_set(NULL, 1, value = 2), "got NULL", class = "gradops_error_type")
  expect_error(random_dropout(c(1, 2), m), "`rate` must be a number", class = "gradops_error_type")
  expect_error(random_dropout(c(1, 2), NULL), "got NULL", class = "gradops_error_type")
  expect_error(jit(exp, static_argnums = exp), "`static_argnums` must be positions", class = "gradops_error")
  expect_error(hessian_fn(exp, list(NULL)), "`argnums` must be positions", class = "gradops_error")
  expect_error(grad_fn(exp, "a"), "`argnums` must be positions", class = "gradops_error")
  expect_error(parameter(1:2), "floating", class = "gradops_error_type")
  expect_error(set_requires_gradient(variable(1:2)), "floating", class = "gradops_error_type")
  expect_error(value(x) <- exp, class = "gradops_error_type")
  expect_error(hvp(exp, 1, c("a", "b")), "`v` must be a number", class = "gradops_error_type")
  expect_error(text_descent(exp, NULL, prompts = list(NULL)), class = "gradops_error")
  expect_error(text_as_model(exp, TRUE, Inf), "options of a model by name", class = "gradops_error_argument")
})
