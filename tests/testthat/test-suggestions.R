# Misspelled option values: the error suggests the intended word.

# Returns a word without its third letter.
mistyped <- function(word) paste0(substr(word, 1, 2), substr(word, 4, nchar(word)))

# Returns the default words of arguments, for exported functions without a namesake in R.
words_of <- function(f) {
  words <- Filter(function(x) is.character(x) || rlang::is_call(x, "c"), as.list(formals(f)))
  words <- lapply(words, function(x) tryCatch(eval(x, baseenv()), error = function(error) NULL))
  Filter(length, lapply(words, function(x) if (is.character(x)) x[nchar(x) > 3]))
}
ops_with_words <- function() {
  exported <- grep("^op_", getNamespaceExports("gradops"), value = TRUE)
  Filter(function(name) length(words_of(getExportedValue("gradops", name))) > 0, sort(exported))
}

# First arguments of several kinds; an op works with at least one.
kinds <- list(1:8 / 10, diag(3) + 0.1, array(1, c(1, 6, 6, 1)), 2, list(1:3 / 2, 1:3 / 3), array(1, c(2, 2, 1, 1)), 3)
working <- function(f) {
  needed <- names(Filter(function(x) identical(x, quote(expr = )), as.list(formals(f))))
  needed <- setdiff(needed, "...")
  if (length(needed) > 2) {
    return(NULL) # test_suggestions.py covers them all
  }
  given <- expand.grid(rep(list(seq_along(kinds)), length(needed)))
  for (row in seq_len(nrow(given))) {
    arguments <- stats::setNames(kinds[unlist(given[row, ])], needed)
    if (!inherits(try(suppressWarnings(do.call(f, arguments)), silent = TRUE), "try-error")) return(arguments)
  }
}

test_once("a misspelled option of an op gets a suggestion", {
  skip_without()
  local_backend("numpy")
  names <- ops_with_words()
  expect_gt(length(names), 20)
  tried <- 0
  for (name in names) {
    f <- getExportedValue("gradops", name)
    arguments <- if (length(formals(f)) > 0) working(f)
    if (is.null(arguments)) next
    words <- words_of(f)
    words <- words[setdiff(names(words), c("separator", "equation", "role", "name"))]
    for (argument in names(words)) {
      wrong <- stats::setNames(list(mistyped(words[[argument]][1])), argument)
      said <- sprintf('id you mean "%s"', words[[argument]][1])
      error <- expect_error(do.call(f, c(arguments, wrong)), class = "gradops_error", info = paste(name, argument))
      expect_match(rlang::cnd_message(error), said, info = paste(name, argument))
      tried <- tried + 1
    }
  }
  expect_gt(tried, 15)
})

test_once("options of R's own functions, settings, fields and components", {
  skip_without()
  local_backend("numpy")
  y <- c(1.2, 0.7, 2.1, 1.4, 0.3, 1.9)
  fit <- maximize_likelihood(function(p) -sum(dnorm(y, p["m"], exp(p["s"]), log = TRUE)), c(m = 0, s = 0))
  bowl <- objective(function(x) sum(x^2))
  x <- variable(c(1, 2), requires_grad = TRUE)
  wrong <- list(
    torch = \() use_backend("trch"), torch = \() config_set_backend("trch"), numpy = \() with_backend("nmpy", 1),
    tensorflow = \() to_backend(1, "tensorflw"), float32 = \() config_set_floatx("flot32"),
    warn = \() config_set_lost_gradients("wrn"), always = \() config_set_check("alway"), products = \() checkpoint(sin, policy = "prodcts"),
    Richardson = \() grad(sin, 1, method = "Richrdson"), `forward-mode` = \() jacobian(sin, 1, strategy = "forwrd-mode"),
    profile = \() confint(fit, method = "profle"), gaussian = \() residuals(fit, method = "gausian"),
    ran_vals = \() generics::tidy(fit, effects = "ranvals"),
    euclidean = \() dist(x * diag(2), "eucldean"), coefficients = \() fit$coeficients, evaluations = \() bowl$evalutions,
    boxes = \() autodiff_graph(sum(x))$boxs, grad = \() x$gard, float64 = \() op_cast(1, "flaot64"),
    self_time = \() with_profile(x * 2, sort_by = "self_tme")
  )
  if (rlang::is_installed("posterior")) wrong$nuts <- \() posterior::as_draws(fit, method = "nts")
  for (i in seq_along(wrong)) {
    error <- expect_error(wrong[[i]](), class = "gradops_error", info = names(wrong)[i])
    expect_match(rlang::cnd_message(error), sprintf('id you mean "%s"', names(wrong)[i]), info = names(wrong)[i])
  }
  expect_error(gradient(function(p) sum(op_softmax(p, axs = 1)), c(1, 2)), "Write `axis =`", class = "gradops_error")
  # fields probed by other packages are missing, as in any list
  probes <- c(
    "terms", "model", "xlevels", "contrasts", "na.action", "df.residual", "residuals", "weights", "family", "formula",
    "qr", "fitted.values", "offset", "rank", "y", "x", "assign", "frame", "method", "convergence", "control"
  )
  for (name in probes) expect_null(do.call(`$`, list(fit, name)), info = name)
  expect_identical(fit$coef, fit$coefficients)
})
