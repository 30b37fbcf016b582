# JAX-style transformations, compared with stats, jacobian() and closed forms.

test_each("a pullback and a pushforward give jacobian()'s rows and columns from one run", {
  noted <- counting(function(x) x[1:2]^2 * c(1, 10) + x[3])
  x <- c(a = 1, b = 2, c = 3)
  J <- jacobian(noted$f, x)
  runs <- noted$calls()
  at <- vjp(noted$f, x)
  expect_equal(noted$calls(), runs + 1)
  expect_equal(rbind(a = at$pullback(c(1, 0)), b = at$pullback(c(0, 1))), J)
  moved <- linearize(noted$f, x)
  expect_equal(moved$value, at$value)
  for (v in list(c(1, 0, 0), c(0, 2, 1))) expect_equal(moved$pushforward(v), drop(unname(J) %*% v))
  expect_equal(noted$calls(), runs + 2)
  expect_equal(vjp(noted$f, x, c(1, 0))$product, at$pullback(c(1, 0)))
  expect_equal(linear_transpose(\(x) x[-1] - x[-3], x)(c(1, 5)), c(a = -1, b = -4, c = 5))
})

test_each("pullbacks and pushforwards of lists, of tensors, and inside derivatives", {
  model <- function(p, t) list(mean = p$a * exp(-p$b * t), rate = p$b)
  p <- list(a = 2, b = 1)
  by_p <- vjp(model, p, t = c(0, 1))$pullback(list(mean = c(1, 1), rate = 10))
  expect_equal(by_p, list(a = 1 + exp(-1), b = 10 - 2 * exp(-1)))
  expect_equal(linearize(model, p, t = c(0, 1))$pushforward(list(a = 1, b = 0))$mean, exp(c(0, -1)))
  two <- vjp(\(x, y) sum(x * y), list(matrix(1:4 / 2, 2), 3))
  expect_equal(two$pullback(2), list(matrix(6, 2, 2), 10))
  tensor <- vjp(\(x) sum(x^2), op_convert_to_tensor(c(1, 2)))
  expect_true(op_is_tensor(tensor$value) && op_is_tensor(tensor$pullback(1)))
  expect_equal(grad(\(v) sum(vjp(\(x) x^2, c(1, 2))$pullback(v)^2), c(1, 3)), c(8, 96))
  expect_equal(grad(\(x) sum(vjp(\(x) x^3, x)$pullback(c(1, 1))), c(1, 2)), c(6, 12))
  expect_equal(jit(\(x) linearize(\(x) x^3, x)$pushforward(c(1, 1)))(c(1, 2)), c(3, 12))
})

test_contract("vmap() of f applies f to each slice, combined with grad_fn() and jit() in either order", {
  loss <- function(w, x, y) (sum(w * x) - y)^2
  w <- c(0.5, -1)
  x <- rbind(c(1, 2), c(3, 0), c(-1, 1))
  y <- c(0, 1, 2)
  each <- vmap(grad_fn(loss), in_axes = list(NULL, 1, 1))
  expected <- 2 * drop(x %*% w - y) * x
  expect_equal(each(w, x, y), expected)
  by_name <- vmap(loss, in_axes = list(y = 1, w = NULL, x = 1))
  expect_equal(by_name(y = y, w = w, x = x), drop(x %*% w - y)^2)
  expect_equal(jit(each)(w, x, y), expected)
  expect_equal(vmap(loss, in_axes = list(NULL, 2, -1))(w, t(x), y), drop(x %*% w - y)^2)
  expect_equal(grad(\(w) sum(vmap(loss, list(NULL, 1, 1))(w, x, y)), w), colSums(expected))
  outer_product <- vmap(vmap(\(a, b) a * b, in_axes = list(NULL, 1)), in_axes = list(1, NULL))
  expect_equal(outer_product(1:3 / 1, c(2, 5)), outer(1:3, c(2, 5)))
  expect_equal(vmap(\(x) x * 2, out_axes = 2)(x), 2 * t(x))
  expect_equal(vmap(\(x) if (x > 0) x^2 else -x)(c(-1, 2)), c(1, 4))
  for (size in 1:3) {
    expect_equal(vmap(grad_fn(loss), list(NULL, 1, 1), chunk_size = size)(w, x, y), expected)
    expect_equal(jacobian(\(x) x^2 * sum(x), w, chunk_size = size), jacobian(\(x) x^2 * sum(x), w))
    expect_equal(hessian(\(x) sum(x^3) * x[1], chunk_size = size)(w), hessian(\(x) sum(x^3) * x[1], w))
  }
})

test_each("vmap() with lists, names, repeated calls and custom derivatives", {
  cars <- head(mtcars)
  expect_equal(vmap(\(row) row["mpg"] / row["wt"])(as.matrix(cars)), cars$mpg / cars$wt)
  pairs <- vmap(\(p) list(a = p$a * p$b, b = p$b), in_axes = list(list(a = 1, b = NULL)), out_axes = list(a = 2, b = 1))
  found <- pairs(list(a = c(1, 2, 3), b = c(1, 10)))
  expect_equal(found, list(a = outer(c(1, 10), 1:3), b = rbind(c(1, 10), c(1, 10), c(1, 10))))
  expect_equal(vmap(\(x) x + 1, in_axes = NULL, axis_size = 2L)(3), c(4, 4))
  tenfold <- op_custom_gradient(\(x) list(2 * x, \(upstream) 10 * upstream))
  expect_equal(vmap(grad_fn(tenfold))(c(1, 2)), c(10, 10))
})

test_each("custom_jvp() uses its rule in forward and reverse mode", {
  softplus <- custom_jvp(
    \(x) log(1 + exp(x)),
    \(primals, tangents) list(softplus(primals$x), tangents$x / (1 + exp(-primals$x)))
  )
  x <- c(0, 800)
  expect_equal(as.numeric(softplus(1)), log1p(exp(1)))
  expect_equal(grad(softplus, x), c(0.5, 1))
  expect_equal(jvp(softplus, 0, 2), list(value = log(2), product = 1))
  expect_equal(hessian(softplus, 0), matrix(0.25))
  expect_equal(jit(grad_fn(softplus))(800), 1)
  expect_equal(vmap(grad_fn(softplus))(x), c(0.5, 1))
  scaled <- custom_jvp(
    \(p, k = 2, mode = "plain") list(y = k * p$u, mode = p$v),
    \(primals, tangents) {
      expect_null(tangents$mode)
      list(scaled(primals$p, primals$k), list(mode = tangents$p$v, y = 10 * primals$k * tangents$p$u)[2:1])
    }
  )
  expect_equal(gradient(\(p) sum(scaled(p)$y), list(u = c(1, 2), v = 1)), list(u = c(20, 20), v = 0))
  expect_equal(gradient(\(p) sum(scaled(mode = "x", k = 3, p = p)$y), list(u = 1, v = 1))$u, 30)
})

test_each("errors of transformations state the expected form, counted from 1", {
  at <- vjp(\(x) x^2, c(1, 2))
  expect_error(at$pullback(1), "`cotangent` must have the shape (2)", fixed = TRUE, class = "gradops_error_shape")
  expect_error(at$pullback(list(1, 2)), "`cotangent` must have the structure", class = "gradops_error_argument")
  expect_error(linear_transpose(\(x) x^2, 2), "linear", class = "gradops_error_gradient")
  expect_error(linearize(\(x) stop("mine"), 1), class = "gradops_error_callback")
  add <- function(x, y) x + y
  expect_error(vmap(add)(1:2, 1:3), "(2) along 1, (3) along 1", fixed = TRUE, class = "gradops_error_shape")
  expect_error(vmap(add, 2)(1:2, 1:2), "from 1 to 1", class = "gradops_error_axis")
  expect_error(vmap(add, 0), "`in_axes` must be a dimension, counted from 1", class = "gradops_error_argument")
  expect_error(vmap(add, list(1, "a")), 'got "a"', class = "gradops_error_argument")
  expect_error(vmap(add, list(1, NULL, 1))(1:2, 1), "got [1, NULL, 1]", fixed = TRUE, class = "gradops_error_argument")
  expect_error(vmap(add, list(x = 1, z = 1)), "those of `f`'s arguments; got x, z", class = "gradops_error_argument")
  expect_error(vmap(add, NULL)(1, 2), "`axis_size`", class = "gradops_error_argument")
  expect_error(vmap(identity)(3), "give NULL for it", class = "gradops_error_shape")
  expect_error(vmap(identity, chunk_size = 0)(3), "`chunk_size` must be at least 1", class = "gradops_error_argument")
  expect_error(jacobian(identity, 3, chunk_size = "a"), "`chunk_size` must be a whole", class = "gradops_error_type")
  sparse <- "`chunk_size` must be NULL with `sparse`"
  expect_error(hessian(sum, 3, sparse = TRUE, chunk_size = 2), sparse, class = "gradops_error_argument")
  expect_error(vmap(identity, out_axes = NULL), "`out_axes`", class = "gradops_error_argument")
  expect_error(grad(custom_jvp(\(x) x, \(p, t) 1), 1), "must return a pair", class = "gradops_error_gradient")
  wrong <- custom_jvp(\(x) x, \(primals, tangents) list(1, c(1, 2)))
  expect_error(grad(wrong, 1), "a tangent like the value", class = "gradops_error_gradient")
  for (of in list(vmap, \(f) custom_jvp(f, f))) expect_error(of(3), "must be a function", class = "gradops_error_type")
})
