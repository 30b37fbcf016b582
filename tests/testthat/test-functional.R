banana <- function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2
banana_gradient <- function(x) c(-400 * x[1] * (x[2] - x[1]^2) - 2 * (1 - x[1]), 200 * (x[2] - x[1]^2))

test_each("grad_fn() and value_and_grad_fn() go from numeric to numeric", {
  x <- c(-1.2, 1)
  expect_equal(grad_fn(banana)(x), banana_gradient(x))
  expect_equal(value_and_grad_fn(banana)(x), list(value = banana(x), gradient = banana_gradient(x)))
  expect_equal(gradient(banana, x), banana_gradient(x))
})

test_each("gradients have the dim and names of the input", {
  squares <- grad_fn(\(x) sum(x^2))
  expect_identical(squares(3), 6)
  expect_identical(squares(3L), 6)
  expect_equal(squares(c(a = 1, b = 2)), c(a = 2, b = 4))
  m <- matrix(1:6, 2, dimnames = list(c("a", "b"), NULL))
  expect_equal(squares(m), 2 * m)
  expect_equal(squares(array(1:24, 2:4)), array(2 * 1:24, 2:4))
  parts <- list(w = c(1, 2), b = 3)
  expect_equal(grad_fn(\(p) sum(p$w^2) * p$b)(parts), list(w = c(6, 12), b = 5))
})

test_each("several arguments, aux, tensors", {
  f <- function(x, y) sum(x * y^2)
  expect_equal(grad_fn(f, 2)(c(1, 2), c(3, 4)), c(6, 16))
  expect_equal(grad_fn(f, 1:2)(c(1, 2), c(3, 4)), list(c(9, 16), c(6, 16)))
  with_aux <- value_and_grad_fn(\(x) list(sum(x^2), x + 1), has_aux = TRUE)(c(1, 2))
  expect_equal(with_aux$value, 5)
  expect_equal(with_aux$gradient, c(2, 4))
  expect_equal(as.numeric(with_aux$aux), c(2, 3))
  tensor <- grad_fn(\(x) sum(x^2))(op_convert_to_tensor(c(1, 2)))
  expect_true(op_is_tensor(tensor))
  expect_equal(as.numeric(tensor), c(2, 4))
})

test_each("optim() and nlminb() find a minimum", {
  both <- value_and_grad_fn(banana)
  fit <- optim(c(-1.2, 1), \(x) both(x)$value, grad_fn(banana), method = "BFGS", control = list(reltol = 1e-14))
  expect_equal(fit$par, c(1, 1), tolerance = 1e-6)
  fit <- nlminb(c(-1.2, 1), \(x) both(x)$value, \(x) both(x)$gradient)
  expect_equal(fit$par, c(1, 1), tolerance = 1e-6)
})

test_each("logistic regression agrees with glm()", {
  formula <- case ~ age + parity + spontaneous + induced
  X <- model.matrix(formula, infert)
  loss <- function(beta) {
    eta <- X %*% beta
    sum(op_softplus(eta) - infert$case * eta)
  }
  both <- value_and_grad_fn(loss)
  fit <- optim(
    numeric(5), \(beta) both(beta)$value, \(beta) both(beta)$gradient,
    method = "BFGS", control = list(reltol = 1e-16)
  )
  reference <- glm(formula, binomial, infert, control = glm.control(epsilon = 1e-14))
  expect_equal(fit$par, unname(coef(reference)), tolerance = 1e-7)
  expect_equal(both(fit$par)$value, -as.numeric(logLik(reference)), tolerance = 1e-12)
})

test_each("gradients of recorded tensors", {
  x <- parameter(c(1, 2, 3))
  expect_equal(as.numeric(gradient(sum(x^3), x)), c(3, 12, 27))
  slope <- gradient(sum(x^3), x)
  expect_equal(as.numeric(gradient(sum(slope), x)), c(6, 12, 18))
})

test_each("what is no scalar function is an error", {
  expect_error(grad_fn(\(x) x)(c(1, 2)), "scalar", class = "gradops_error_gradient")
  expect_error(grad_fn(\(x) "a")(1), "scalar", class = "gradops_error_gradient")
  expect_error(grad_fn("a"), "must be a function", class = "gradops_error_type")
  expect_error(grad_fn(banana)("a"), class = "gradops_error_type")
  expect_error(gradient(op_exp(parameter(c(1, 2))), 1), class = "gradops_error")
  condition <- expect_error(grad_fn(\(x) stop("mine"))(1), class = "gradops_error_callback")
  expect_equal(conditionMessage(condition$parent), "mine")
})
