# Random arguments to every function of gradops give a value, or a gradops condition that says what was wrong; never an
# error of R, Rcpp or Python. GRADOPS_LONG=<factor> runs longer, with a seed that a failure reports.

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

# Functions that change the session, R's own functions, whose errors are R's without tensors, and `text_each()`, which
# passes on the errors of its function as `mapply()` does.
skipped <- c(
  "tuple", "%||%", "%as%", "np_array", "call_in_thread", "use_backend", "local_backend", "with_backend",
  "%<-%", "array_reshape", "config_set_backend", "config_set_floatx", "config_set_epsilon", "serialize_tensor",
  "unserialize_tensor", "text_each"
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

test_each("random arguments give a value or a gradops condition", {
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

test_each("mistakes are named in R's terms", {
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
  expect_error(random_seed_generator(m), "`seed` must be an integer", class = "gradops_error_argument")
  expect_error(op_convert_to_array(NULL), "got NULL", class = "gradops_error_argument")
  expect_error(jacobian(exp, c(1, 2), side = list(1, -1)), "`side`", class = "gradops_error_argument")
  expect_error(autodiff_graph(variable(1) * 2, 1:3), "named list", class = "gradops_error_argument")
  expect_error(op_subset(NULL, 1), "got NULL", class = "gradops_error_type")
  expect_error(op_subset_set(NULL, 1, value = 2), "got NULL", class = "gradops_error_type")
  expect_error(random_dropout(c(1, 2), m), "`rate` must be a number", class = "gradops_error_type")
  expect_error(random_dropout(c(1, 2), NULL), "got NULL", class = "gradops_error_type")
  expect_error(jit(exp, static_argnums = exp), "`static_argnums` must be names .* positions", class = "gradops_error")
  expect_error(hessian_fn(exp, list(NULL)), "`argnums` must be names .* positions", class = "gradops_error")
  expect_error(grad_fn(exp, "a"), "`argnums` must be names .* positions", class = "gradops_error")
  expect_error(parameter(1:2), "floating", class = "gradops_error_type")
  expect_error(set_requires_gradient(variable(1:2)), "floating", class = "gradops_error_type")
  expect_error(value(x) <- exp, class = "gradops_error_type")
  expect_error(hvp(exp, 1, c("a", "b")), "`v` must be a number", class = "gradops_error_type")
  expect_error(text_descent(exp, NULL, prompts = list(NULL)), class = "gradops_error")
  expect_error(text_as_model(exp, TRUE, Inf), "options of a model by name", class = "gradops_error_argument")
  frame <- data.frame(a = 1:2, b = c("x", "y"))
  expect_error(op_sum(m, axis = frame), "`axis` must be a whole number; got", class = "gradops_error_type")
  expect_error(op_split(m, frame), "`indices_or_sections` must be a whole number", class = "gradops_error_type")
  expect_error(op_while_loop(TRUE, exp, 1), "`cond`", class = "gradops_error_type")
  expect_error(transform_interval(x, 3), "`lower` must be numbers", class = "gradops_error_type")
  expect_error(profile_call(1, times = x), "`times` must be", class = "gradops_error_argument")
  expect_error(extend_op("mine", exp, NULL, NULL, 1), "and no others", class = "gradops_error_type")
})

test_each("scopes with wrong settings or frames raise gradops errors", {
  scopes <- grep("^local_", getNamespaceExports("gradops"), value = TRUE)
  expect_gt(length(scopes), 5)
  before <- config_backend()
  for (name in scopes) {
    for (argument in names(formals(get(name)))) {
      for (value in list(1:3, 1i, "a", NULL, exp, list(1), NA)) {
        f <- function() do.call(name, stats::setNames(list(value), argument), quote = TRUE)
        if (argument == ".local_envir" && name == "local_backend") f <- function() local_backend("numpy", value)
        expect_error(f(), class = "gradops_error", info = sprintf("%s(%s = %s)", name, argument, deparse1(value)))
      }
    }
  }
  expect_identical(config_backend(), before)
})

test_once("PyTorch's argument names are errors that give gradops' names", {
  ops <- Filter(function(name) {
    own <- names(formals(args(get(name))))
    "axis" %in% own && "..." %in% own
  }, grep("^op_", getNamespaceExports("gradops"), value = TRUE))
  ops <- setdiff(ops, c("op_layer_normalization", "op_multi_hot", "op_vectorize")) # these take more arguments
  expect_gt(length(ops), 60)
  for (name in ops) {
    error <- expect_error(do.call(name, list(1, dim = 1)), "none called `dim`", class = "gradops_error_type")
    expect_match(conditionMessage(error), "Write `axis =`", info = name)
  }
  expect_error(op_sum(c(1, 2), dim = 1, keepdim = TRUE), "`x`, `axis`, `keepdims`, and none", fixed = TRUE)
  expect_error(op_sum(c(1, 2), axs = 1), "Write `axis =`")
  expect_error(op_sum(c(1, 2), 1, FALSE, 3), "and no others", class = "gradops_error_type")
  expect_equal(as.vector(op_sum(c(1, 2), keepdim = TRUE)), 3) # a partial name, as R matches it
})

# A Python argument with another name in R.
test_each("errors use R's argument names", {
  ops <- table_of_ops()
  ops$r <- lapply(ops$r_name, function(name) names(formals(args(get(name)))))
  ops$other <- Map(setdiff, ops$python, ops$r)
  renamed <- ops[lengths(ops$other) > 0 & !vapply(ops$r, function(names) "..." %in% names, NA), ]
  expect_true("op_vectorized_map" %in% renamed$r_name)
  long <- as.numeric(Sys.getenv("GRADOPS_LONG", "0"))
  walked <- if (long > 0) ops$r_name else union(renamed$r_name, sample(ops$r_name, 20))
  for (name in walked) {
    row <- match(name, ops$r_name)
    arguments <- setdiff(ops$r[[row]], "...")
    needed <- Filter(function(argument) rlang::is_missing(formals(args(get(name)))[[argument]]), arguments)
    for (argument in arguments) {
      for (wrong in list("a", list(1, "b"), 1i)) {
        given <- stats::setNames(rep(list(c(0.5, 0.2)), length(needed)), needed)
        given[[argument]] <- wrong
        error <- tryCatch(suppressWarnings(do.call(name, given)), gradops_error = identity)
        if (!inherits(error, "gradops_error")) next
        words <- gregexpr("(?<=`)[a-z_0-9]+(?=`)", conditionMessage(error), perl = TRUE)
        said <- c(error$argument, unlist(regmatches(conditionMessage(error), words)))
        expect_identical(intersect(said, ops$other[[row]]), character(), info = paste(name, argument))
      }
    }
  }
  expect_error(op_vectorized_map(c(1, 2), 3), "`f` must be a function")
})

test_each("a derivative names its wrong argument, and the expected first argument", {
  f <- function(p) sum(p^2)
  for (of in list(grad, gradient, jacobian, hessian, hvp, vhp, jvp, vjp)) {
    first <- names(formals(of))[1]
    error <- expect_error(of(c(1, 2), f), "comes first", class = "gradops_error_type")
    expect_identical(error$argument, first)
    for (wrong in list("a", f, quote(a), raw(2), list(1, "a"))) {
      error <- expect_error(of(f, wrong), "`x` must be numbers or tensors", class = "gradops_error_type")
      expect_identical(error$argument, "x")
    }
  }
  error <- expect_error(gradcheck(c(1, 2), f), "a function for `inputs`", class = "gradops_error_type")
  expect_identical(error$argument, "f")
  for (of in list(gradient, hvp, vhp, jvp, vjp)) {
    error <- expect_error(of(f), "`x` is missing", class = "gradops_error_argument")
    expect_identical(error$argument, "x")
  }
  error <- expect_error(gradient(c(1, 2), c(1, 2)), "`f_or_y` must be a function, or a tensor", class = "gradops_error")
  expect_identical(error$argument, "f_or_y")
  expect_error(op_scaled_gradient(c(1, 2), "a"), "`scale` must be a number", class = "gradops_error_type")
  expect_error(gradient(function(p) sum(op_sofmax(p)), c(1, 2)), "Did you mean `op_softmax()`", fixed = TRUE)
})

test_once("a gradient that conversion to another library would lose is an error in R's terms", {
  skip_without("torch")
  with_backend("numpy", {
    error <- expect_error(to_backend(parameter(c(1, 2)), "torch"), class = "gradops_error_gradient")
    expect_match(conditionMessage(error), "the gradient of `x`, a Parameter,")
    expect_match(conditionMessage(error), "take `op_stop_gradient(x)`", fixed = TRUE)
  })
})
