# Natural mistakes, typed by the habits of six kinds of users, and what the error must say. Each was judged when it was
# added: the error names what was given and what to write, and no hint leads astray.

mistakes <- list(
  statistician = list(
    "the point first" = list(quote(gradient(x, f)), "must be a function", "The function comes first"),
    "an expression" = list(quote(gradient(quote(x^2), 2)), "got a call", "gradient(function(x) x^2, x)"),
    "a formula" = list(quote(gradient(y ~ a * b, 2)), "must be a function", "gradient(function(a, b) a * b, x)"),
    "a data frame" = list(quote(gradient(f, data.frame(a = 1:2))), "got a data frame", "`as.list(d)`"),
    "a data frame in a list" = list(quote(gradient(f, list(b = data.frame(a = 1:2)))), "got a data frame", "as.matrix"),
    "text" = list(quote(gradient(f, c("a", "b"))), "`x` must be numbers or tensors", "got a character vector"),
    "`$` on a vector" = list(quote(gradient(function(p) p$b^2, c(a = 1))), "has no field `b`", "list(a = 1)"),
    "`$` on a named vector" = list(quote(gradient(function(p) p$a^2, c(a = 1))), "has no field `a`", "`x[[\"a\"]]`"),
    "`[` on a list" = list(quote(gradient(function(p) p["a"] - 1, l)), "`p[\"a\"]` is a list", "`p[[\"a\"]]`"),
    "`[` on a list, in sum()" = list(quote(gradient(function(p) sum((p["a"] - 1)^2), l)), "is a list", "`p[[\"a\"]]`"),
    "a list as a vector" = list(quote(gradient(function(p) sum((p - 1)^2), l)), "`p` is a list", "`p$a`"),
    "sum of a list" = list(quote(gradient(function(p) sum(p), l)), "`p` is a list", "do.call(c, p)"),
    "a misspelt element" = list(quote(gradient(function(p) p$aa - 1, l)), "got shape (0)", "a misspelt name"),
    "a misspelt element and a tensor" = list(quote(gradient(function(p) p$aa * p$a, l)), "got NULL.", "`p` has a, b"),
    "in a density" = list(quote(gradient(function(p) dnorm(1, p$m, p$b), l)), "`mean`", "got NULL", "`p` has a, b"),
    "in a constant density" = list(quote(gradient(function(p) dnorm(1, p$m, 1), l)), "`p$m` is NULL", "`p` has a, b"),
    "a misspelt name" = list(quote(gradient(function(p) p["m"], c(a = 1))), "named \"m\"", "the names are \"a\""),
    "a function's name" = list(quote(gradient(function(p) p * ls, 1)), "got a function"),
    "a function's name in exp()" = list(quote(gradient(function(p) p * exp(ls), 1)), "`ls` is a function", "No var"),
    "an index" = list(quote(gradient(function(p) p[[5]], x)), "there are 3 elements; got 5."),
    "apply() of a vector" = list(quote(gradient(function(p) apply(p, 1, sum), x)), "got a vector", "`sapply(x, f)`"),
    "a level in percent" = list(quote(confint(fit, level = 95)), "`level` must be a number between 0 and 1; got 95"),
    "a level that is a tensor" = list(
      quote(confint(fit, level = op_convert_to_tensor(0.9))), "`level` must be a number between 0 and 1; got"
    ),
    "a parameter" = list(quote(confint(fit, "mu")), "there is no parameter `mu` among `m`, `s`"),
    "gradient() for optim()" = list(quote(optim(x, f, gradient(f))), "`x` is missing", "`grad_fn(f)`"),
    "a component" = list(quote(optim(x, f, objective(f)$gradient)), "no component `gradient`", "\"gr\""),
    "an objective for nlm()" = list(quote(nlm(objective(f), x)), "is not a function", "m$nlm"),
    "a formula for a fit" = list(quote(maximize_likelihood(y ~ x, data = d)), "must be a function", "`model.matrix()`"),
    "the rows second" = list(quote(predict(fit, data.frame(x = 1))), "`g`", "`newdata`"),
    "a type of residuals" = list(quote(residuals(fit, type = "pearson")), "is not an argument of `residuals()`"),
    "`parms`" = list(quote(confint(fit, parms = "m")), "`parms`: is not an argument of `confint()`"),
    "a likelihood of several" = list(quote(maximize_likelihood(function(m, s) m, l)), "in the form of `start`")
  ),
  RTMB = list(
    "random effects" = list(quote(MakeADFun(nll, p, random = "u")), "`random`", "no parameter `u` among `mu`, `s`"),
    "profile" = list(quote(MakeADFun(nll, p, profile = "u")), "no parameter `u` among `mu`, `s`"),
    "map" = list(quote(MakeADFun(nll, p, map = list(sd = factor(NA)))), "`map`", "no parameter `sd` among `mu`, `s`"),
    "an argument" = list(quote(MakeADFun(nll, p, regexp = TRUE)), "`regexp`", "is not an argument"),
    "a template" = list(quote(MakeADFun(data = l, parameters = p, DLL = "linreg")), "`func`", "has to be written in R"),
    "a function of parameters" = list(quote(MakeADFun(function(mu, s) mu, p)), "in the form of `start`"),
    "a missing parameter" = list(quote(MakeADFun(nll, list(mu = 0))$fn()), "object 's' not found"),
    "a list of parameters" = list(quote(MakeADFun(function(p) sum(p^2), p)$fn()), "`p` is a list", "`p$mu`"),
    "a vector of values" = list(quote(MakeADFun(function(p) p$mu - 1:3, p)$fn()), "must return one number; got 3"),
    "the length" = list(quote(MakeADFun(nll, p)$fn(1:3)), "a vector of 2 numbers, for mu and s", "(3)"),
    "sdreport() of the optimum" = list(quote(sdreport(list(par = 1))), "`obj` must be what `MakeADFun()` returns"),
    "functions of RTMB" = list(quote(gradient(function(p) REPORT(p), 1)), "RTMB, which is not attached")
  ),
  keras3 = list(
    "a backend" = list(quote(use_backend("tf")), "Unknown backend \"tf\"", "\"tensorflow\""),
    "an axis" = list(quote(op_sum(x, axis = 0)), "`axis` must not be 0", "count from 1"),
    "a class" = list(quote(op_one_hot(c(0, 1), 3)), "must not be 0", "zero_indexed = TRUE"),
    "no gradient" = list(quote(gradient(op_custom_gradient(function(x) sum(x)), x)), "list(value, grad)"),
    "a method" = list(quote(v$assign(x)), "has no field `assign`", "parameters that are read by name are a list"),
    "a field" = list(quote(v$grd), "has no field `grd`", "\"grad\"")
  ),
  torch = list(
    "a name of Python" = list(quote(gradient(function(x) scaled_gradient(x, -1), 1)), "`op_scaled_gradient()`"),
    "saved values" = list(
      quote(autodiff_function(\(ctx, x) x^2, \(ctx, g) g * ctx$saved_variables)(v) |> sum() |> backward()),
      "write `ctx.saved_tensors`"
    ),
    "dim" = list(quote(op_sum(x, dim = 1)), "none called `dim`", "Write `axis =`"),
    "no number" = list(quote(backward(v * 2)), "non-scalar of shape (3)", "reduce it to a scalar"),
    "twice" = list(quote(for (i in 1:2) backward(z)), "retain_graph=TRUE"),
    "item()" = list(quote(v$item()), "the only element", "shape (3,)"),
    "an index" = list(quote(v[[4]]), "there are 3 elements; got 4.")
  ),
  JAX = list(
    "in_axes" = list(quote(vmap(f, in_axes = 0)), "counted from 1", "got 0"),
    "in_axes of text" = list(quote(vmap(f, in_axes = "a")), "counted from 1", "got \"a\""),
    "the point" = list(quote(value_and_grad(f, c(0.5, 1))), "`argnums` must be", "the function that this returns"),
    "two points" = list(quote(value_and_grad(f, c(1, 2))), "`argnums` must be", "the function that this returns"),
    "sizes" = list(quote(vmap(function(x, y) x * y)(x, 1:2)), "one size; got (3) along 1, (2) along 1"),
    "branches" = list(quote(jit(function(x) if (x > 0) x else -x)(x)), "`if` looked at a value", "`op_where()`")
  ),
  TensorFlow = list(
    "no variable" = list(quote(backward(sum(x))), "got numeric", "`x <- variable(x, requires_grad = TRUE)`"),
    "a gradient of numbers" = list(quote(gradient(sum(x), x)), "Make `x` a variable first"),
    "shapes" = list(quote(op_reshape(x, c(4, 2))), "has 3 elements, which do not fit the shape (4, 2)")
  )
)

test_once("natural mistakes get an error that says what to write", {
  skip_without()
  local_backend("numpy")
  f <- function(x) sum(x^2)
  home <- list2env(list(
    f = f, x = c(1, 2, 3), y = 1, l = list(a = 1, b = 2), p = list(mu = 0, s = 0),
    v = variable(c(1, 2, 3), requires_grad = TRUE),
    fit = maximize_likelihood(function(p) -sum(dnorm(1:4, p["m"], exp(p["s"]), log = TRUE)), c(m = 2, s = 0)),
    nll = function(p) {
      getAll(p)
      -sum(dnorm(1:4, mu, exp(s), log = TRUE))
    }
  ), parent = globalenv())
  home$z <- sum(home$v^2)
  environment(home$f) <- environment(home$nll) <- home
  for (user in names(mistakes)) {
    for (name in names(mistakes[[user]])) {
      row <- mistakes[[user]][[name]]
      info <- paste0(user, ": ", name)
      run <- function() {
        if (user == "RTMB" && name != "functions of RTMB") attach_rtmb()
        on.exit(if ("gradops:rtmb" %in% search()) detach("gradops:rtmb"))
        eval(row[[1]], home)
      }
      error <- expect_error(run(), info = info)
      for (words in row[-1]) expect_match(conditionMessage(error), words, fixed = TRUE, info = info)
    }
  }
})
