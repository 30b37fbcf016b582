counts <- data.frame(
  g = factor(rep(c("a", "b", "c"), 4)), x = c(0:9, 2, 4), y = c(1, 1, 4, 2, 3, 5, 6, 4, 9, 11, 2, 3)
)
nll <- function(p, data) {
  mean <- exp(as.vector(model.matrix(~ g + x, data) %*% p$beta))
  report(mean, total = sum(mean))
  -sum(dpois(observed(data$y), mean, log = TRUE))
}
fitted_counts <- function() maximize_likelihood(nll, list(beta = numeric(4)), counts)
model <- function() glm(y ~ g + x, poisson, counts, control = list(epsilon = 1e-14))

test_each("broom's columns", {
  skip_if_not_installed("generics")
  fit <- fitted_counts()
  glm <- model()
  table <- generics::tidy(fit, conf.int = TRUE)
  expect_named(table, c("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"))
  expect_equal(as.matrix(table[2:5]), coef(summary(glm)), tolerance = 1e-5, ignore_attr = TRUE)
  expect_equal(as.matrix(table[6:7]), confint.default(glm), tolerance = 1e-5, ignore_attr = TRUE)
  expect_equal(generics::glance(fit)$BIC, BIC(glm), tolerance = 1e-8)
  rows <- generics::augment(fit)
  expect_named(rows, c("g", "x", "y", ".mean", ".resid"))
  expect_equal(rows$.mean, unname(fitted(glm)), tolerance = 1e-6)
  unmarked <- maximize_likelihood(\(p, d) sum((d$y - p$m)^2), list(m = 0), counts)
  expect_named(generics::augment(unmarked), c("g", "x", "y"))
})

test_once("emmeans of the linear predictor match glm()", {
  skip_if_not_installed("emmeans")
  fit <- fitted_counts()
  found <- as.data.frame(emmeans::emmeans(fit, ~g, formula = y ~ g + x, coefficients = "beta"))
  want <- as.data.frame(emmeans::emmeans(model(), ~g))
  expect_equal(found$emmean, want$emmean, tolerance = 1e-6)
  expect_equal(found$SE, want$SE, tolerance = 1e-5)
  expect_error(
    emmeans::emmeans(fit, ~g, formula = ~g, coefficients = "beta"), "needs 3; `beta` has 4",
    class = "gradops_error_argument"
  )
  refused <- function(message, ...) {
    expect_error(emmeans::emmeans(fit, "g", ...), message, class = "gradops_error_argument")
  }
  expect_error(emmeans::emmeans(fit, "g"), "what its linear predictor is.*`emmeans\\(fit, \"g\", formula = ~ g")
  refused("`coefficients`: must name the parameter that has the 4 of the formula, one of `beta`", formula = ~ g + x)
  refused("no parameter `b` among `beta`", formula = ~ g + x, coefficients = "b")
  fit$data <- NULL
  expect_error(emmeans::emmeans(fit, "g", formula = ~g, coefficients = "beta"), "give a data frame as `data`")
})

test_once("marginaleffects' predictions and slopes match glm()", {
  fit <- fitted_counts()
  rows <- transform(counts, x = x + 1)
  expect_equal(
    gradops:::get_predict.gradops_fit(fit, rows)$estimate, unname(predict(model(), rows, "response")),
    tolerance = 1e-6
  )
  want <- predict(model(), rows, "response", se.fit = TRUE)
  found <- predict(fit, "mean", se.fit = TRUE, newdata = rows[c("x", "g")]) # without the response
  expect_equal(found$fit$mean, unname(want$fit), tolerance = 1e-6)
  expect_equal(found$se.fit$mean, unname(want$se.fit), tolerance = 1e-5)
  expect_error(predict(fit, newdata = rows["g"]), "nothing; data had `x`, `y` too", class = "gradops_error_argument")
  without_data <- maximize_likelihood(function(p) {
    report(twice = 2 * p$m)
    (p$m - 1)^2
  }, list(m = 0))
  expect_equal(predict(without_data), list(twice = 2))
  refused <- "`newdata`: is for reported quantities"
  expect_error(predict(fit, function(p) p$beta, newdata = rows), refused, class = "gradops_error_argument")
  moved <- gradops:::set_coef.gradops_fit(fit, coef(fit) + c(0.1, 0, 0, 0))
  expect_equal(gradops:::get_predict.gradops_fit(moved, rows)$estimate, exp(0.1) * gradops:::get_predict.gradops_fit(fit, rows)$estimate)
  silent <- maximize_likelihood(\(p, d) sum((d$y - p$m)^2), list(m = 0), counts)
  expect_error(gradops:::get_predict.gradops_fit(silent, rows), "none, see `report", class = "gradops_error_argument")
  skip_if_not_installed("marginaleffects")
  for (variable in c("x", "g")) {
    found <- marginaleffects::avg_comparisons(fit, variables = variable, newdata = rows)
    want <- marginaleffects::avg_comparisons(model(), variables = variable, newdata = rows)
    expect_equal(found$estimate, want$estimate, tolerance = 1e-5)
    expect_equal(found$std.error, want$std.error, tolerance = 1e-4)
  }
})

test_once("draws have the covariance of estimates and effects", {
  skip_if_not_installed("posterior")
  fit <- fitted_counts()
  set.seed(1)
  draws <- posterior::as_draws(fit, 20000)
  expect_equal(colnames(draws), paste0("beta", 1:4))
  expect_equal(colMeans(draws), coef(fit), tolerance = 0.02)
  expect_equal(cov(draws), vcov(fit), tolerance = 0.05, ignore_attr = TRUE)
  expect_s3_class(posterior::as_draws_df(fit, ndraws = 10), "draws_df")
  joint <- function(p) (3 - p$a - p$u)^2 / 2 + p$u^2 / 2
  two <- maximize_likelihood(joint, list(a = 1, u = 0), random = "u")
  expect_equal(cov(posterior::as_draws(two, 20000)), rbind(c(1, -1), c(-1, 2)), tolerance = 0.05, ignore_attr = TRUE)
  sampled <- posterior::as_draws(two, 2000, method = "nuts", tune = 200)
  expect_equal(dim(sampled), c(500L, 4L, 2L))
  expect_equal(dimnames(sampled)$variable, c("a", "u"))
  found <- unclass(posterior::as_draws_matrix(sampled))
  expect_equal(colMeans(found), c(3, 0), tolerance = 0.15, ignore_attr = TRUE)
  expect_equal(cov(found), rbind(c(2, -1), c(-1, 1)), tolerance = 0.15, ignore_attr = TRUE)
  tidied <- generics::tidy(two, conf.int = TRUE, effects = c("fixed", "ran_vals"))
  expect_equal(tidied[c("effect", "term")], data.frame(effect = c("fixed", "ran_vals"), term = c("a", "u")))
  expect_equal(tidied$std.error, sqrt(c(2, 1)), tolerance = 1e-6)
})

test_once("profiles pass through the estimates with one value fixed", {
  fit <- fitted_counts()
  found <- profile(fit, "beta4", points = 3)
  expect_named(found, "beta4")
  expect_equal(range(found$beta4$z), qnorm(c(0.005, 0.995)), tolerance = 1e-5)
  for (i in c(2, 6)) {
    fixed <- glm(y ~ g, poisson, counts, offset = found$beta4$value[i] * x)
    expect_equal(found$beta4$z[i]^2, as.numeric(2 * (logLik(fit) - logLik(fixed))), tolerance = 1e-6)
  }
  pdf(NULL)
  expect_identical(plot(profile(fit, 3:4, points = 1)), profile(fit, 3:4, points = 1))
  dev.off()
  expect_error(profile(fit, "beta5"), "no parameter `beta5`", class = "gradops_error_argument")
  expect_error(profile(fit, 5), class = "gradops_error_argument")
})
