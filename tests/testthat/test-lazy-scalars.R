# Functions of scalars. On NumPy a compiled function logs them; on other backends the same code runs without a log.

y <- c(0.3, -0.2, 0.5, 1.1, -0.7)

in_scalars <- function(p) {
  h <- 1
  total <- 0
  for (t in 2:5) {
    h <- exp(p[1]) + exp(p[2]) * y[t - 1]^2 + h / (1 + exp(-p[3]))
    total <- total + log(h) + y[t]^2 / h
  }
  total / 2
}

in_elements <- function(p) {
  h <- numeric(5)
  h[1] <- 1
  for (t in 2:5) h[t] <- exp(p[1]) + exp(p[2]) * y[t - 1]^2 + h[t - 1] / (1 + exp(-p[3]))
  sum(log(h[-1]) + y[-1]^2 / h[-1]) / 2
}

start <- c(-2, -1.5, 0.5)

test_each("loops over scalars have the derivatives of the uncompiled function", {
  for (f in list(in_scalars, in_elements)) {
    compiled <- jit(value_and_grad(f))(start)
    expect_equal(compiled$value, f(start))
    expect_equal(compiled$gradient, gradient(f, start))
    expect_equal(compiled$gradient, numeric_gradient(f, start), tolerance = 1e-6)
  }
  expect_equal(jit(hessian_fn(in_scalars))(start), hessian(in_scalars, start))
  expect_equal(jit(hessian_fn(in_elements))(start), hessian(in_scalars, start))
})

test_once("scalar loops are native and do not run R", {
  skip_if(config_backend() != "numpy" || !reticulate::py_module_available("llvmlite"), "native code is NumPy's")
  f <- jit(value_and_grad(in_scalars))
  f(start)
  expect_match(paste(format(f), collapse = "\n"), "([0-9]+) steps, \\1 native in 1 run")
})

test_once("squares of absolute values are smooth at 0, logged or vectorised", {
  skip_without("numpy")
  local_backend("numpy")
  power <- function(x) {
    s <- 0
    for (i in seq_along(x)) s <- s + abs(x[i])^2
    s
  }
  product <- function(x) {
    s <- 0
    for (i in seq_along(x)) {
      size <- abs(x[i])
      s <- s + size * size
    }
    s
  }
  for (n in c(2, 40)) {
    for (f in list(power, product)) expect_equal(hessian(f, c(numeric(n - 1), 1)), 2 * diag(n))
  }
})

test_once("long loops are logged in parts", {
  skip_without("numpy")
  local_backend("numpy")
  f <- function(p) {
    x <- p[1]
    for (t in 1:4000) x <- x * 0.999 + p[2]
    x
  }
  found <- jit(value_and_grad(f))(c(2, 0.5))
  expect_equal(found$gradient, c(0.999^4000, (1 - 0.999^4000) / 0.001), tolerance = 1e-10)
})

test_each("each R function of a scalar", {
  functions <- list(
    exp, log, sqrt, log1p, expm1, log2, log10, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, lgamma, abs,
    function(x) -x, function(x) x^2, function(x) 2^x, function(x) x^x, function(x) x - 1L, function(x) 3 / x,
    function(x) log(x, 3), function(x) x %% 0.3, function(x) round(x), function(x) digamma(x), function(x) +x,
    function(x) max(x, 0.2), function(x) pmin(x, 0.2), function(x) sum(x, x), function(x) op_exp(x),
    function(x) as.numeric(x)^2, function(x) dnorm(0.3, x, exp(x), log = TRUE), sign, plogis, pnorm,
    function(x) plogis(x, log.p = TRUE), function(x) dpois(0, x, log = TRUE), function(x) dpois(3, x),
    function(x) dbinom(2, 2, plogis(x), log = TRUE)
  )
  for (f in functions) {
    g <- function(p) f(p[1]) * p[2] + f(p[2])
    found <- jit(value_and_grad(g))(c(0.6, 0.7))
    expect_equal(found$value, unname(as.numeric(g(c(0.6, 0.7)))))
    expect_equal(found$gradient, gradient(g, c(0.6, 0.7)), info = deparse1(f))
  }
})

test_each("scalars keep names like other values", {
  seen <- NULL
  f <- function(p) {
    a <- p["a"] * 2
    seen <<- c(names(a), names(p["b"] + a), names(p[["b"]] + 1))
    a * p[["b"]] + exp(p["b"])
  }
  x <- c(a = 0.5, b = -0.3)
  found <- jit(value_and_grad(f))(x)
  compiled <- seen
  expect_equal(unname(found$gradient), unname(gradient(f, x)))
  expect_equal(compiled, seen)
  expect_equal(seen, c("a", "b"))
})

test_each("an intermediate scalar has its own gradient and hooks", {
  hooked <- NULL
  f <- function(p) {
    a <- p[1] * p[2]
    b <- exp(a)
    end <- b * a + sin(a) * b
    a$register_hook(function(g) {
      hooked <<- g
      NULL
    })
    of <- autodiff_grad(end, list(a, b), retain_graph = TRUE)
    of[[1]] * 10 + of[[2]] + 0 * end
  }
  g <- function(p) {
    p <- variable(p, requires_grad = TRUE)
    f(p)
  }
  x <- c(0.4, -0.7)
  a <- prod(x)
  expected <- 10 * (exp(a) * (a + sin(a)) + exp(a) * (1 + cos(a))) + a + sin(a)
  expect_equal(as.numeric(g(x)), expected)
  skip_if(backend != "numpy", "no gradients of variables inside of a compiled function")
  expect_equal(jit(g)(x), expected)
  expect_false(is.null(hooked))
  late <- function(p) { # the gradients come from operations of the same log, so `f` is traced again without one
    p <- variable(p, requires_grad = TRUE)
    a <- p[1] * p[2]
    b <- exp(a)
    end <- b * a + sin(a) * b
    of <- autodiff_grad(end, list(a, b), retain_graph = TRUE)
    of[[1]] * 10 + of[[2]] + 0 * end
  }
  expect_equal(jit(late)(x), expected)
})

test_each("an element has its own gradient if the vector is also read as a whole", {
  M <- matrix(sin(1:300), 100)
  x <- c(0.4, -0.7, 0.2)
  first <- function(p) {
    q <- p[1]
    end <- sum((M %*% c(q, p[2], p[3]))^2) + exp(q)
    autodiff_grad(end, list(q), retain_graph = TRUE)[[1]] + 0 * end
  }
  seen <- function(p) {
    q <- p[1]
    q$register_hook(function(g) NULL)
    end <- sum((M %*% c(q, p[2], p[3]))^2) + exp(q)
    autodiff_grad(end, list(q), retain_graph = TRUE)[[1]] + 0 * end
  }
  expected <- 2 * sum(M[, 1] * (M %*% x)) + exp(x[1])
  for (f in list(first, seen)) {
    g <- function(p) f(variable(p, requires_grad = TRUE))
    expect_equal(as.numeric(g(x)), expected)
    if (backend == "numpy") expect_equal(as.numeric(jit(g)(x)), expected)
  }
  both <- function(p) sum((M %*% p[c(3, 1, 2)])^2) + exp(p[3]) * sum(M %*% p[1:3])
  found <- jit(value_and_grad(both))(x)
  expect_equal(found$value, both(x))
  expect_equal(found$gradient, numeric_gradient(both, x), tolerance = 1e-6)
})

test_each("scopes, stopped and custom gradients between scalar operations", {
  twice <- op_custom_gradient(function(x) list(x^2, function(upstream) 100 * upstream))
  has_no_grad <- backend %in% c("numpy", "torch")
  f <- function(p) {
    a <- exp(p[1])
    fixed <- with_stop_gradient(a * p[2])
    b <- if (has_no_grad) with_no_grad(a * 3) else op_stop_gradient(a * 3)
    c <- op_stop_gradient(a) * a
    d <- op_scaled_gradient(a, -2) * p[2]
    fixed * p[2] + b * a + c + d + twice(a)
  }
  x <- c(0.3, -0.8)
  found <- jit(value_and_grad(f))(x)
  expect_equal(found$gradient, gradient(f, x))
  a <- exp(x[1])
  expect_equal(found$gradient, c(a * 3 * a + a * a - 2 * a * x[2] + 100 * a, a * x[2] + a))
})

test_each("combined with loops and branches that are program steps", {
  f <- function(p) {
    q <- exp(p[1])
    last <- op_scan(function(state, y) list(state * q + y * p[2], NULL), q * 2, y)[[1]]
    r <- q * p[2]
    op_cond(op_less(q, 5), function() last * r, function() r) + q
  }
  x <- c(0.1, -0.4)
  found <- jit(value_and_grad(f))(x)
  of_numbers <- function(x) as.numeric(f(op_convert_to_tensor(x)))
  expect_equal(found$gradient, numeric_gradient(of_numbers, x), tolerance = 1e-6)
})

test_each("a logged scalar acts like any tensor", {
  f <- function(p) {
    a <- p[1] + p[2]
    expect_null(dim(a))
    expect_length(a, 1)
    expect_true(op_is_tensor(a))
    expect_equal(op_dtype(a), "float64")
    v <- c(a, p[3], 2 * a)
    expect_length(v, 3)
    m <- matrix(0, 2, 2)
    m[1, 2] <- a
    m[2, 1] <- v[3]
    sum(m %*% v[1:2]) + a
  }
  x <- c(0.2, 0.5, -0.1)
  expect_equal(jit(value_and_grad(f))(x)$gradient, gradient(f, x))
  decides <- jit(function(p) if (p[1] * 2 > 1) p[1] else p[2])
  if (config_backend() == "numpy") {
    expect_equal(c(decides(c(1, 2)), decides(c(0, 2))), c(1, 2))
  } else {
    expect_error(decides(c(1, 2)), class = "gradops_error_jit")
  }
})

test_each("other dtypes and shapes are not logged", {
  f <- function(p) p[1] * 2 + p[2]^2
  single <- op_convert_to_tensor(c(0.5, 0.25), dtype = "float32")
  expect_equal(op_dtype(jit(f)(single)), "float32")
  g <- function(x) x[1, 2] * x[2, 1] + x[3]
  expect_equal(jit(grad_fn(g))(matrix(c(1, 2, 3, 4), 2)), matrix(c(0, 3, 2 + 1, 0) - c(0, 0, 0, 0), 2))
  whole <- jit(function(x) x[1] * 3L + x[2])(op_convert_to_tensor(1:2))
  expect_equal(as.numeric(whole), 5)
})

test_each("a logged scalar used after the call is an error, as for any traced tensor", {
  withr::defer(state$kept <- NULL)
  f <- jit(function(p) {
    state$kept <- p[1] * 2 # in gradops' namespace, which is not compared
    p[1] * 3
  })
  expect_equal(f(c(1, 2)), 3)
  skip_if(backend != "numpy", "what a library says of its traced tensors is its own")
  expect_error(as.numeric(state$kept + 1), class = "gradops_error")
})

test_once("random functions of scalars, compiled and uncompiled", {
  skip_without("numpy")
  local_backend("numpy")
  withr::local_seed(20261122)
  for (round in 1:8) {
    plan <- lapply(1:25, function(i) {
      list(kind = sample(8, 1), i = sample(i + 1, 1), j = sample(i + 1, 1), k = runif(1), m = sample(max(i - 1, 1), 1))
    })
    f <- function(p) {
      values <- list(tanh(p[1]), tanh(p[2]))
      h <- numeric(length(plan))
      for (t in seq_along(plan)) {
        x <- values[[plan[[t]]$i]]
        z <- values[[plan[[t]]$j]]
        new <- switch(plan[[t]]$kind,
          x + z, x * z, x - plan[[t]]$k, z / (x^2 + 1), sin(x), exp(tanh(x)), op_stop_gradient(x) * z,
          if (t > 1) h[plan[[t]]$m] + x else x
        )
        h[t] <- new
        values[[length(values) + 1]] <- new
      }
      sum(tanh(h)) + tanh(values[[length(values)]])
    }
    x <- c(0.4, -1.1)
    compiled <- jit(value_and_grad(f))(x)
    expect_equal(compiled$gradient, gradient(f, x))
  }
})

# Assignments of numbers to elements of vectors, matrices and copies, by indices of each kind.
assignments <- function(p, plan, size) {
  set <- function(x, i, value) {
    x[i] <- value
    x
  }
  h <- plan$prototype(size)
  names(h) <- plan$names
  m <- matrix(0.5, size, 2L, dimnames = plan$dimnames)
  cube <- array(0.25, c(size, 2, 2))
  copy <- h
  kept <- list(h)
  for (step in plan$steps) {
    i <- step$i
    j <- step$j
    s <- tanh(p[1] * m[j, 1] + h[i] * p[2] - copy[j]) + m[i + size] * step$k + kept[[1]][j] + cube[j, step$p, 2]
    switch(step$kind,
      h[i] <- s,
      m[i, step$p] <- s,
      copy[i + 0.7] <- s,
      m[i + size] <- s,
      h[length(h) + 1] <- s,
      copy <- h,
      h <- copy,
      copy <- set(h, i, s),
      kept <- list(h, m),
      kept[[1]][i] <- s,
      h[[i]] <- s,
      m[[j, 2L]] <- s,
      h[c(i, i %% size + 1)] <- s,
      h[-i] <- h[-i] / 2,
      m[j, ] <- s * p,
      m[i, 1] <- 3L,
      h[seq_along(h) == i] <- s,
      m[, 2] <- m[, 1] + s,
      cube[i, 2, step$p] <- s,
      cube[j, step$p, 2] <- s * cube[i, 2, 1]
    )
  }
  weighted <- function(x) sum(x * seq_along(x))
  c(weighted(h), weighted(m), sum(copy^2), weighted(kept[[1]]), weighted(cube) + m[size, 2])
}

test_once("random assignments to elements, compiled and uncompiled, give what they give to R's numbers", {
  skip_without("numpy")
  local_backend("numpy")
  environment(assignments) <- globalenv()
  withr::local_seed(20261129)
  x <- c(0.3, -0.7)
  for (round in seq_len(12 * max(1, as.numeric(Sys.getenv("GRADOPS_LONG", "0"))))) {
    size <- if (round %% 2 == 0) 40 else 3 # short vectors have a log of their own
    plan <- list(
      prototype = list(numeric, integer, logical)[[sample(3, 1)]],
      names = if (runif(1) < 0.2) paste0("e", seq_len(size)),
      dimnames = if (runif(1) < 0.3) list(NULL, c("a", "b")),
      steps = lapply(1:60, function(k) {
        kind <- sample(c(1:20, 1, 3, 6, 7), 1)
        list(kind = kind, i = sample(size, 1), j = sample(size, 1), p = sample(2, 1), k = runif(1))
      })
    )
    f <- function(p) sum(assignments(p, plan, size) * c(1, 0.1, 0.3, 0.2, 0.1))
    environment(f) <- list2env(list(assignments = assignments, plan = plan, size = size), parent = globalenv())
    found <- objective(f, jit = TRUE)
    kinds <- paste(vapply(plan$steps, function(step) step$kind, 0), collapse = " ")
    expect_equal(found$fn(x), unname(f(x)), tolerance = 1e-12, info = kinds)
    expect_equal(found$gr(x), gradient(f, x), tolerance = 1e-10, info = kinds)
    expect_equal(found$gr(x), numeric_gradient(f, x), tolerance = 1e-5, info = kinds)
  }
})

test_each("reading elements between scalar and vector operations", {
  f <- function(p) {
    a <- p[1] * 2
    v <- exp(p)
    w <- a * v
    b <- w[2] * 3
    v[1] * b + w[3]
  }
  found <- jit(value_and_grad(f))(start)
  expect_equal(found$value, f(start))
  expect_equal(found$gradient, numeric_gradient(f, start), tolerance = 1e-6)
})

test_each("elements of matrices and arrays", {
  x <- (1:12) / 10
  weights <- matrix(1:12, 3)
  f <- function(p) {
    m <- matrix(p, 3)
    total <- 0
    for (i in 1:3) for (j in 1:4) total <- total + exp(m[i, j] * weights[i, j] / 10) * m[[i, j]] + m[(j - 1) * 3 + i]^2
    cube <- array(p, c(3, 2, 2))
    filled <- matrix(0, 3, 2)
    filled[, 1] <- p[1:3]
    for (i in 2:3) filled[i, 2] <- filled[i - 1, 1] * total
    total + cube[2, 1, 2] * cube[1, 2, 1] - sum(m[1, 2, drop = FALSE]) + sum(filled)
  }
  found <- jit(value_and_grad(f))(x)
  expect_equal(found$value, f(x))
  expect_equal(found$gradient, numeric_gradient(f, x), tolerance = 1e-6)
  expect_identical(jit(function(p) dim(outer(p, p)[1, 1, drop = FALSE]) + 0 * p)(c(1, 2)), c(1, 1))
  expect_error(jit(function(p) outer(p, p)[3, 1])(c(1, 2)), "2 elements", class = "gradops_error_axis")
})

test_each("distribution functions of scalars in a loop match those of vectors", {
  skip_if(backend != "numpy", "operations are logged for NumPy alone")
  chosen <- list(
    hyper = c(9.5, 8, 6), binom = c(6, 0.4), geom = 0.3, beta = c(1.7, 0.9), unif = c(-0.5, 8), f = c(3.5, 7), t = 3.5,
    chisq = 3.5, exp = 0.7, pois = 2.3
  )
  methods <- names(gradops:::distribution_generics())
  expect_gt(length(methods), 35)
  for (name in c(methods, "dnbinom", "pnbinom")) {
    family <- substring(name, 2)
    parameters <- if (is.null(chosen[[family]])) c(1.7, 0.9) else chosen[[family]]
    if (family == "nbinom") parameters <- c(1.7, 0.4)
    at <- if (startsWith(name, "q") || family == "beta") c(0.2, 0.7) else c(1, 2)
    of <- function(x, p) do.call(name, c(list(x), lapply(seq_along(p), \(i) p[i])))
    loop <- function(p) {
      total <- 0
      h <- p * 1
      for (i in 1:2) {
        total <- total + i * of(at[i], h)
        h <- h * 1.01
      }
      total
    }
    found <- jit(value_and_grad(loop))(parameters)
    expected <- value_and_grad(loop)(parameters)
    expect_equal(found$value, expected$value, tolerance = 1e-10, info = name)
    expect_equal(found$gradient, expected$gradient, tolerance = 1e-8, info = name)
  }
})

test_each("elements of a matrix that is not an input of the log are read in place, also by two indices", {
  skip_if_not(backend == "numpy")
  x <- seq(0.1, 1.6, 0.1) + 0.01
  kinds <- list(function(m) m > 0.5, function(m) op_cast(m * 10, "int32"))
  as_plain <- list(function(m) m > 0.5, function(m) trunc(m * 10))
  for (i in seq_along(kinds)) {
    of <- function(kind, number) {
      function(p) {
        z <- p[1] * p[2]
        m <- kind(matrix(p, 4))
        n <- nrow(m)
        whole <- tanh(p) # another input
        s <- whole[7] * n
        for (i in 1:2) s <- s + z * (number(m[i, 2]) + number(m[2, i]) * 2)
        s
      }
    }
    found <- objective(of(kinds[[i]], function(x) op_cast(x, "float64")), jit = TRUE)$gr(x)
    expect_equal(found, numeric_gradient(of(as_plain[[i]], as.numeric), x), tolerance = 1e-7)
  }
})

test_each("loops that fill matrices element by element have the derivatives of plain numbers", {
  filled <- function(p) {
    n <- matrix(0, 3, 4, dimnames = list(letters[1:3], NULL))
    n[, 1] <- exp(p)
    for (t in 2:4) {
      n[1, t] <- p[1] * t
      for (a in 2:3) {
        n[a, t] <- n[a - 1, t - 1] * exp(-p[a])
        n[a, t] <- n[a, t] + n["a", t] / t # a second time, and by name
      }
      if (t == 3) old <- n # `old` must not see later assignments
    }
    grown <- numeric(1)
    for (k in 1:5) grown[k] <- if (k == 1) n[2, 3] else grown[k - 1] * n[3, 2.9] + p[2]
    n[3, 4] <- n[3, 4]^2
    sum(n * 1:12) + sum(old * n[2, 2]) + sum(grown) + n[3, 4] + n[9]
  }
  x <- c(0.2, 0.5, 0.3)
  expect_equal(gradient(filled, x), numeric_gradient(filled, x), tolerance = 1e-7)
  compiled <- objective(filled, jit = TRUE)
  expect_equal(compiled$fn(x), unname(filled(x)), tolerance = 1e-12)
  expect_equal(compiled$gr(x), numeric_gradient(filled, x), tolerance = 1e-7)
  for (wrong in list(quote(n[4, 1]), quote(n[1, 5]))) {
    f <- eval(bquote(function(p) {
      n <- matrix(0, 3, 4)
      for (t in 1:4) n[1, t] <- p[1] * t
      .(wrong) + p[1]
    }))
    expect_error(f(x))
    expect_error(objective(f, jit = TRUE)$fn(x), class = "gradops_error")
  }
})

test_once("densities of fixed counts in a loop have the derivatives of the uncompiled function, also at the ends", {
  skip_without("numpy")
  local_backend("numpy")
  densities <- list(
    function(k, q) dbinom(k, 5, q), function(k, q) dbinom(500 * k, 2000, q), function(k, q) dpois(k, q),
    function(k, q) dnbinom(k, 2.5, q), function(k, q) dgeom(k, q), function(k, q) dgamma(k, 2.5, q + 0.1),
    function(k, q) dbeta(k / 5, 2.5, q + 1.5), function(k, q) dweibull(k, 2.5, q + 1.5)
  )
  for (density in densities) {
    f <- function(p) {
      total <- 0
      for (k in c(-1, 0, 1, 2, 5, 6)) total <- total + (k + 1.5) * density(k, p[1] * p[2])
      total
    }
    for (x in c(0, 1, 0.3)) {
      expect_equal(jit(value_and_grad(f))(c(x, 1)), value_and_grad(f)(c(x, 1)), info = deparse1(density))
    }
  }
})
