counts <- data.frame(x = c(0:9, 2, 4), y = c(1, 1, 4, 2, 3, 5, 6, 4, 9, 11, 2, 3))
poisson_nll <- function(p, data) -sum(dpois(data$y, exp(p$beta[1] + p$beta[2] * data$x), log = TRUE))

test_each("a fit has the components of glm()'s", {
  fit <- maximize_likelihood(poisson_nll, list(beta = c(0, 0)), counts)
  glm <- glm(y ~ x, poisson, counts, control = list(epsilon = 1e-14))
  expect_equal(unname(coef(fit)), unname(coef(glm)), tolerance = 1e-7)
  expect_named(coef(fit), c("beta1", "beta2"))
  expect_equal(unname(vcov(fit)), unname(vcov(glm)), tolerance = 1e-6)
  expect_equal(as.vector(logLik(fit)), as.vector(logLik(glm)), tolerance = 1e-9)
  expect_equal(c(AIC(fit), BIC(fit), nobs(fit)), c(AIC(glm), BIC(glm), 12), tolerance = 1e-9)
  z <- unname(coef(summary(glm)))
  expect_equal(unname(summary(fit)$coefficients), z, tolerance = 1e-6)
  expect_equal(unname(confint(fit, "beta2")), unname(confint.default(glm)[2, , drop = FALSE]), tolerance = 1e-6)
  at <- predict(fit, function(p) exp(p$beta[1] + p$beta[2] * c(1, 7)), se.fit = TRUE)
  expect_equal(at$fit, unname(predict(glm, data.frame(x = c(1, 7)), "response")), tolerance = 1e-7)
  errors <- predict(glm, data.frame(x = c(1, 7)), "response", se.fit = TRUE)$se.fit
  expect_equal(at$se.fit, unname(errors), tolerance = 1e-6)
})

test_each("profile intervals and tests use the likelihood ratio", {
  fit <- maximize_likelihood(poisson_nll, list(beta = c(0, 0)), counts)
  ends <- confint(fit, 2, method = "profile")
  for (end in ends) {
    fixed <- glm(y ~ 1, poisson, counts, offset = end * x)
    expect_equal(2 * as.vector(logLik(fit) - logLik(fixed)), qchisq(0.95, 1), tolerance = 1e-5)
  }
  null <- update(fit, map = list(beta = c(1, NA)))
  table <- anova(null, fit)
  of_glm <- anova(glm(y ~ 1, poisson, counts), glm(y ~ x, poisson, counts), test = "Chisq")
  expect_equal(table$Chisq[2], of_glm$Deviance[2], tolerance = 1e-7)
  expect_equal(table[["Pr(>Chisq)"]][2], of_glm[["Pr(>Chi)"]][2], tolerance = 1e-6)
})

herds <- data.frame(id = rep(1:4, each = 3), y = c(5, 6, 5.5, 8, 8.2, 7.7, 4, 4.1, 3.6, 6, 6.6, 6.2))
joint <- function(p, data) {
  seen <- sum(dnorm(data$y, p$mean + p$u[data$id], exp(p$log_sd), log = TRUE))
  -seen - sum(dnorm(p$u, 0, exp(p$log_tau), log = TRUE))
}
marginal <- function(theta) { # arguments: mean, log sd, log tau
  same <- outer(herds$id, herds$id, "==")
  cov <- exp(2 * theta[2]) * diag(12) + exp(2 * theta[3]) * same
  r <- herds$y - theta[1]
  sum(r * solve(cov, r)) / 2 + as.vector(determinant(cov)$modulus) / 2 + 6 * log(2 * pi)
}

test_each("random effects are integrated out, with the exact gradient", {
  start <- list(mean = 5, log_sd = 0, log_tau = 0, u = numeric(4))
  o <- objective(function(p) joint(p, herds), start = start, random = "u")
  theta <- c(5.5, -0.8, 0.2)
  expect_equal(o$fn(theta), marginal(theta), tolerance = 1e-10)
  expect_equal(o$gr(theta), setNames(numeric_gradient(marginal, theta), names(o$par)), tolerance = 1e-6)
  expect_equal(o$evaluations(), 1)
  theta <- theta + 0.1
  expect_equal(o$value(theta), marginal(theta), tolerance = 1e-10)
  expect_equal(o$gr(theta), setNames(numeric_gradient(marginal, theta), names(o$par)), tolerance = 1e-6)
  expect_equal(o$value(theta), o$fn(theta))
  expect_equal(o$evaluations(), 2)
  theta <- theta - 0.1
  expect_equal(o$random, paste0("u", 1:4))
  expect_equal(o$importance(theta, 4), c(value = marginal(theta), error = 0), tolerance = 1e-9)
  expect_equal(dim(o$precision(theta)), c(7L, 7L))
  expect_equal(o$parameters(theta)$u, (tapply(herds$y, herds$id, mean) - 5.5) / (1 + exp(-1.6 - 0.4) / 3),
    ignore_attr = TRUE, tolerance = 1e-9
  )
  expect_match(described(o), "<likelihood of mean, log_sd, log_tau, evaluated 2")
  fit <- maximize_likelihood(joint, start, herds, random = "u")
  best <- nlminb(theta, marginal, control = list(rel.tol = 1e-14))
  expect_equal(unname(coef(fit)), best$par, tolerance = 1e-5)
  expect_equal(vcov(fit), solve(optimHess(coef(fit), marginal)), ignore_attr = TRUE, tolerance = 1e-3)
  sums <- predict(fit, function(p) p$mean + p$u, se.fit = TRUE)
  inverse <- solve(as.matrix(o$precision(coef(fit))))
  expect_equal(sums$se.fit^2, diag(inverse)[1:4] + inverse["mean", "mean"] + 2 * inverse[1:4, "mean"],
    ignore_attr = TRUE, tolerance = 1e-5
  )
  expect_equal(fit$errors$u, sqrt(diag(inverse)[1:4]), ignore_attr = TRUE, tolerance = 1e-5)
  expect_output(print(fit), "3 parameters and 4 random effects")
  expect_output(print(summary(fit)), "Std. Error")
})

test_each("vectors with names, bounds and maps", {
  y <- c(1, 2, 4)
  nll <- function(p) sum((y - p["a"])^2) / 2 + (p["b"] - p["a"])^2 / 2
  fit <- maximize_likelihood(nll, c(a = 0, b = 3), upper = c(a = 2), nobs = 3)
  expect_equal(coef(fit), c(a = 2, b = 2), tolerance = 1e-6)
  expect_true(is.na(vcov(fit)["a", "a"]))
  expect_equal(vcov(fit)["b", "b"], 1)
  shared <- maximize_likelihood(\(p) sum((y - p$a)^2), list(a = c(0, 0, 0)), map = list(a = factor(c(1, 1, NA))))
  expect_equal(coef(shared), c(a1 = 1.5))
  expect_equal(shared$parameters, list(a = c(1.5, 1.5, 0)))
  expect_error(nobs(shared), class = "gradops_error_argument")
})

test_each("problems of a fit are named", {
  y <- c(1, 2, 4)
  expect_warning(
    fit <- maximize_likelihood(\(p) sum((y - p$a - 2 * p$b)^2), list(a = 0, b = 0)), "along a - 0.5 b",
    class = "gradops_warning_inference"
  )
  expect_true(all(is.na(vcov(fit))))
  expect_output(print(fit), "not identified")
  start <- list(a = 1, u = c(1, 2))
  f <- function(p) p$a^2 + p$u[2]^2
  expect_error(maximize_likelihood(f, start, random = "u"), "curvature.* by u1", class = "gradops_error_inference")
  expect_error(maximize_likelihood(\(p) log(-p$a), list(a = 1)), "at a = 1", class = "gradops_error_inference")
  if (config_backend() == "numpy") {
    normal <- function(p) sum(dnorm(p$u, 0, p$sd, log = TRUE) - p$u^2)
    says <- "nan at sd = -1, .* `dnorm` is the first to give no number"
    expect_error(maximize_likelihood(normal, list(sd = -1, u = 0:1), random = "u"), says)
    says <- "`if \\(p\\$a > 0\\)` looks at a value"
    branches <- function(p) if (p$a > 0) sum(p$u^2) + p$a^2 else 0
    error <- expect_error(maximize_likelihood(branches, list(a = 1, u = 0), random = "u"), says)
    expect_no_match(conditionMessage(error), "jit")
  }
  expect_error(maximize_likelihood(f, start, random = "v"), "no parameter `v`", class = "gradops_error_argument")
  expect_error(maximize_likelihood(f, start, map = list(u = 1:3)), "its map 3", class = "gradops_error_argument")
  expect_error(maximize_likelihood(f, start, lower = c(w = 1)), "no parameter `w`", class = "gradops_error_argument")
  expect_error(maximize_likelihood(f, list(1, 2)), "need different names", class = "gradops_error_argument")
  expect_error(maximize_likelihood(f, list(a = "x")), class = "gradops_error_type")
  expect_error(maximize_likelihood(\(p) stop("no"), list(a = 1)), class = "gradops_error_callback")
  expect_error(objective(f, random = "u"), "`start`", class = "gradops_error_argument")
  expect_error(anova(fit), class = "gradops_error_argument")
})

test_each("fits have fitted values and residual degrees of freedom, or name what they lack", {
  rows <- data.frame(x = 0:4, y = c(1, 1, 4, 5, 11))
  nll <- function(p, data) {
    mean <- exp(p$a + p$b * data$x)
    report(mean, total = sum(mean))
    -sum(dpois(observed(data$y), mean, log = TRUE))
  }
  fit <- maximize_likelihood(nll, list(a = 0, b = 0), rows)
  model <- glm(y ~ x, poisson, rows)
  expect_equal(fitted(fit), unname(fitted(model)), tolerance = 1e-6)
  expect_identical(df.residual(fit), df.residual(model))
  both <- function(p, data) {
    report(twice = 2 * data$x)
    nll(p, data)
  }
  both <- maximize_likelihood(both, list(a = 0, b = 0), rows)
  expect_error(fitted(both), "`type`: must name.*\"twice\", \"mean\"", class = "gradops_error_argument")
  expect_identical(fitted(both, "twice"), 2 * rows$x)
  refused <- function(message, ...) expect_error(confint(fit, ...), message, class = "gradops_error_argument")
  refused("no parameter `zz` among `a`, `b`", "zz")
  refused("`parm`: must be names or positions of `a`, `b`", 3)
  expect_identical(confint(fit, 2), confint(fit, "b"))

  silent <- maximize_likelihood(function(p, data) sum((data$y - p[["p1"]] - p[["p2"]] * data$x)^2), c(0, 0), rows)
  expect_equal(coef(silent), setNames(coef(lm(y ~ x, rows)), c("p1", "p2")))
  expect_error(simulate(silent), "marks no observations", class = "gradops_error_unmarked")
  expect_error(silent$objective$simulate(), "marks no observations", class = "gradops_error_unmarked")
  expect_error(fitted(silent), "none, see `report\\(\\)`", class = "gradops_error_argument")
  joint <- function(p) -sum(dnorm(p$u, p$m, log = TRUE)) + sum((p$u - 1)^2)
  effects <- maximize_likelihood(joint, list(m = 0, u = 0), random = "u")
  expect_error(simulate(effects), "marks no observations", class = "gradops_error_unmarked")
  by_position <- objective(function(p) sum((p - 1:2)^2), start = numeric(2), map = list(p2 = NA))
  expect_identical(by_position$par, c(p1 = 0))
})

test_once("a search that leaves the numbers ends in an error that says where", {
  skip_without()
  y <- log(1:40)
  falls <- function(p) sum(log(exp(p$s)) + 0.5 * ((y - p$m) / exp(p$s))^2)
  expect_error(
    maximize_likelihood(function(p) -falls(p), list(m = 0, s = 0)), "NaN at m = .*s = |not finite at m = .* and s = ",
    class = "gradops_error_inference"
  )
  beyond <- function(p) -exp(exp(p$a)) - p$b^2
  expect_error(maximize_likelihood(beyond, list(a = 1, b = 1)), "likelihood", class = "gradops_error_inference")
})

test_once("later values of a likelihood are native, and follow what it reads", {
  local_backend("numpy")
  old <- config_set_check("sample") # checks of all calls would leave them to Python
  withr::defer(config_set_check(old))
  y <- c(1, 2, 4)
  plain <- function(p) {
    V <- matrix(c(1, p$r, p$r, 1), 2)
    sum((y - p$m)^2) * exp(-p$s) + 3 * p$s + p$r^2 - sum(log(diag(chol(V))))
  }
  numbers <- function(x) plain(list(m = x[1], s = x[2], r = x[3]))
  o <- objective(plain, start = list(m = 0, s = 0, r = 0))
  at <- function(i) c(0.5 * i, 0.1 * i, 0.05 * i)
  for (i in 1:9) {
    expect_equal(o$fn(at(i)), numbers(at(i)), tolerance = 1e-12)
    expect_equal(unname(o$gr(at(i))), numeric_gradient(numbers, at(i)), tolerance = 1e-6)
  }
  expect_true(is.nan(o$fn(c(0, 0, 2))))
  y <- c(1, 2, 9)
  expect_equal(o$fn(at(3)), numbers(at(3)), tolerance = 1e-12)
  expect_equal(maximize_likelihood(plain, list(m = 0, s = 0, r = 0))$parameters$m, 4, tolerance = 1e-6)
})

test_once("effects that are read one by one and by position leave a likelihood separable", {
  local_backend("numpy")
  python <- reticulate::py_run_string("
import gradops.functional.sparsity.laplace as module
plans, plan = [], module.hessian_plan
def note(*args, plans=plans, plan=plan, **members):
    plans.append(plan(*args, **members))
    return plans[-1]
module.hessian_plan = note
", local = TRUE, convert = FALSE)
  withr::defer(python$module$hessian_plan <- python$plan)
  id <- rep(1:50, each = 5)
  item <- rep(1:20, length.out = 250)
  y <- cos(id) + sin(item)
  o <- objective(function(p) {
    seen <- sum(dnorm(y, p$mu + p$u[id] + p$v[item], 1, log = TRUE))
    -seen - sum(dnorm(p$u, 0, exp(p$t[1]), log = TRUE)) - sum(dnorm(p$v, 0, exp(p$t[2]), log = TRUE))
  }, start = list(mu = 0, t = c(0, 0), u = numeric(50), v = numeric(20)), random = c("u", "v"))
  V <- diag(250) + outer(id, id, "==") + outer(item, item, "==")
  expect_equal(o$fn(o$par), (250 * log(2 * pi) + c(determinant(V)$modulus) + sum(y * solve(V, y))) / 2, tolerance = 1e-10)
  expect_s3_class(python$plans[[0]], "gradops.functional.sparsity.separable.SeparableHessian")
})
