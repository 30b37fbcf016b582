# Short vectors in compiled functions. On NumPy they are logged element by element; other backends run the same code
# without a log.

# Other backends take longer to compile and are tested elsewhere.
some <- function(cases, backend) {
  if (backend == "numpy" || nzchar(Sys.getenv("GRADOPS_LONG"))) cases else cases[seq(1, length(cases), 9)]
}

# Checks that value and gradient of `f` are the same compiled and uncompiled.
expect_same_compiled <- function(f, x, info = NULL) {
  found <- jit(value_and_grad(f))(x)
  plain <- value_and_grad(f)(x)
  expect_equal(found$value, plain$value, info = info, tolerance = 1e-12)
  expect_equal(found$gradient, plain$gradient, info = info, tolerance = 1e-12)
  expect_equal(found$gradient, numeric_gradient(function(x) as.numeric(f(x)), x), info = info, tolerance = 1e-6)
}

test_each("loops over short vectors have the derivatives of the uncompiled function", {
  y <- matrix(c(0.3, -0.2, 0.5, 1.1, -0.7, 0.4), 3)
  walk <- function(p) {
    state <- c(p[1], 0.5)
    total <- 0
    for (t in 1:3) {
      state <- c(state[2] * p[2], state[1] + exp(p[3])) / (1 + state^2)
      total <- total - sum(dnorm(y[t, ], state, c(exp(p[2]), 2), log = TRUE))
    }
    total + sum(state * c(1, -1))
  }
  rows <- function(p) {
    m <- matrix(p, 3, 2)
    total <- 0
    for (t in 2:3) total <- total + sum((m[t, ] - p[1:2] * m[t - 1, ])^2) + prod(m[t, ]) - mean(m[, 2])
    total
  }
  filled <- function(p) {
    h <- matrix(0, 3, 2)
    h[1, ] <- p[1:2]
    for (t in 2:3) h[t, ] <- h[t - 1, ] * p[3] + h[t - 1, 2:1]
    sum(h^2)
  }
  expect_same_compiled(walk, c(0.3, -0.4, 0.2))
  expect_same_compiled(rows, c(0.3, -0.4, 0.2, 1.2, 0.6, -0.1))
  expect_same_compiled(filled, c(0.3, -0.4, 0.2))
  skip_if(backend != "numpy", "takes long to compile")
  expect_equal(jit(hessian_fn(walk))(c(0.3, -0.4, 0.2)), hessian(walk, c(0.3, -0.4, 0.2)))
})

test_each("each way to create and use a short vector", {
  functions <- list(
    function(u) c(u, 3), function(u) c(2, u[1] * 2, u), function(u) u[-1], function(u) u[c(TRUE, FALSE, TRUE)],
    function(u) u[c(1, 1, 3)], function(u) rev(u), function(u) -u, function(u) +u, function(u) u^2, function(u) 2^u,
    function(u) u * c(1, 2, 3), function(u) c(1, 2, 3) / u, function(u) u + 1L, function(u) 1:3 - u,
    function(u) exp(u) + log(u), function(u) plogis(u), function(u) sqrt(u) * u[2], function(u) u[2] - u,
    function(u) u %*% u, function(u) outer(u, u), function(u) cumsum(u), function(u) pmax(u, 0.6), function(u) sort(u),
    function(u) ifelse(u > 0.6, u, u^2), function(u) c(a = 1, b = 2, c = 3) * u, function(u) u * matrix(1:6 / 6, 3),
    function(u) diag(3) %*% u, function(u) u[2:3] * u[1:2], function(u) sum(u) + mean(u) + max(u) + prod(u),
    function(u) op_stop_gradient(u) * u, function(u) op_exp(u), function(u) unlist(lapply(1:3, function(i) u[i]^i)),
    function(u) c(u, u, u) * 2, function(u) u %% 0.25, function(u) c(list(u), list(1))[[1]] * 2,
    function(u) with_stop_gradient(u) * u, function(u) c(u)[2] * as.numeric(u), function(u) rbind(u, u * 2)
  )
  x <- c(0.6, 0.7, 0.45, 0.2)
  for (f in some(functions, backend)) {
    info <- deparse1(f)
    g <- function(p) {
      found <- f(p[1:3] * p[4])
      sum(found * seq_len(length(found)))
    }
    found <- jit(value_and_grad(g))(x)
    expect_equal(found$value, as.numeric(g(op_convert_to_tensor(x))), info = info)
    expect_equal(found$gradient, gradient(g, x), info = info)
    shape <- NULL
    jit(function(p) {
      made <- f(p[1:3] * p[4])
      shape <<- list(length(made), gradops:::dim_tensor(made), names(made))
      sum(made)
    })(x)
    made <- f(op_convert_to_tensor(x)[1:3] * x[4])
    expect_equal(shape, list(length(made), gradops:::dim_tensor(made), names(made)), info = info)
  }
})

test_each("loops over small matrices have the derivatives of the uncompiled function", {
  y <- matrix(c(0.3, -0.2, 0.5, 1.1, -0.7, 0.4, 0.2, 0.9), 4)
  kalman <- function(p) {
    A <- diag(2)
    A[1, 2] <- p[1]
    Q <- diag(2) * exp(p[2])
    a <- c(0, 0)
    P <- diag(2) * 10
    total <- 0
    for (t in 1:4) {
      a <- (A %*% a)[, 1]
      P <- A %*% P %*% t(A) + Q
      S <- P + diag(2) * exp(p[3])
      v <- y[t, ] - a
      inverse <- solve(S)
      total <- total + sum(v * (inverse %*% v)[, 1]) + log(S[1, 1] * S[2, 2] - S[1, 2] * S[2, 1])
      K <- P %*% inverse
      a <- a + (K %*% v)[, 1]
      P <- P - K %*% P
    }
    total / 2 + (t(v) %*% inverse %*% v)[1, 1]
  }
  expect_same_compiled(kalman, c(0.1, -1, 0))
  skip_if(backend != "numpy", "takes long to compile")
  expect_equal(jit(hessian_fn(kalman))(c(0.1, -1, 0)), hessian(kalman, c(0.1, -1, 0)))
})

test_each("each way to create and use a small matrix", {
  made <- list(
    function(u) matrix(u, 2), function(u) matrix(u[1:4], 2, byrow = TRUE), function(u) outer(u[1:2], u[3:4]),
    function(u) rbind(u[1:2], u[3:4]), function(u) matrix(u, 2, 2) %*% diag(2), function(u) diag(u[1:2]),
    function(u) matrix(u, 2, 2)[2:1, 1:2]
  )
  used <- list(
    function(m) m %*% m, function(m) t(m) %*% c(1, 2), function(m) c(1, 2) %*% m, function(m) m[1, ] %*% m,
    function(m) m[1, ] %*% m[, 2], function(m) m %*% matrix(1:6, 2), function(m) m * m - 3, function(m) m + c(1, 2),
    function(m) t(t(m) * 2), function(m) crossprod(m) + tcrossprod(m), function(m) solve(m + diag(2)) %*% m,
    function(m) exp(m)[, 2], function(m) m[, 1, drop = FALSE] %*% m[2, , drop = FALSE],
    function(m) diag(m) * m[2:3], function(m) c(m, 1), function(m) -m[cbind(1:2, 2:1)], function(m) m %*% m %*% m,
    function(m) det(m) * m, function(m) rowSums(m) + colMeans(m), function(m) apply(m, 1, sum), function(m) m %o% 1:2,
    function(m) (t(m[, 1]) %*% m[, 2]) * 2, function(m) cbind(m, 1), function(m) m^2 / sum(m),
    function(m) m[[1, 2]] * m, function(m) as.vector(m %*% m[, 1]) - m[, 2], function(m) op_stop_gradient(m) %*% m
  )
  x <- c(0.6, 0.7, 0.45, 0.9)
  for (make in some(made, backend)) {
    for (f in some(used, backend)) {
      info <- paste(deparse1(make), deparse1(f))
      g <- function(p) {
        warm <- p[1] * 2 # the log runs
        found <- f(make(p * p[4])) * warm
        sum(as.vector(found) * seq_len(length(found)))
      }
      found <- jit(value_and_grad(g))(x)
      expect_equal(found$value, as.numeric(g(op_convert_to_tensor(x))), info = info)
      expect_equal(found$gradient, gradient(g, x), info = info)
      if (!identical(make, made[[1]])) break # only the first use of the others
    }
  }
  for (f in some(used, backend)) {
    shape <- NULL
    jit(function(p) {
      m <- matrix(p * p[4], 2) * p[1]
      shape <<- gradops:::dim_tensor(f(m))
      sum(m)
    })(x)
    expect_equal(shape, dim(f(matrix(op_convert_to_tensor(x) * x[4], 2) * x[1])), info = deparse1(f))
  }
})

test_each("an intermediate short vector has its own gradient and hooks", {
  hooked <- NULL
  f <- function(p) {
    v <- c(p[1] * p[2], exp(p[1]))
    end <- v[1] * v[2] + sum(v^2)
    v$register_hook(function(g) {
      hooked <<- g
      NULL
    })
    of <- autodiff_grad(end, list(v), retain_graph = TRUE)[[1]]
    of[1] * 10 + of[2] + 0 * end
  }
  g <- function(p) f(variable(p, requires_grad = TRUE))
  x <- c(0.4, -0.7)
  v <- c(prod(x), exp(x[1]))
  expected <- 10 * (v[2] + 2 * v[1]) + v[1] + 2 * v[2]
  expect_equal(as.numeric(g(x)), expected)
  skip_if(backend != "numpy", "no gradients of variables inside of a compiled function")
  expect_equal(jit(g)(x), expected)
  expect_false(is.null(hooked))
})

test_each("scopes, stopped and custom gradients, loops and branches with short vectors", {
  twice <- op_custom_gradient(function(x) list(x^2, function(upstream) 100 * upstream))
  f <- function(p) {
    v <- c(exp(p[1]), p[2])
    fixed <- with_stop_gradient(v * p[2])
    kept <- with_stop_gradient(c(v, 1)) # created inside, its elements outside
    scaled <- op_scaled_gradient(v, -2) * p[2]
    last <- op_scan(function(state, y) list(state * v + y * p[2], NULL), v * 2, c(0.1, 0.2))[[1]]
    again <- checkpoint(function(w) sum(w * v))(v * 3)
    sum(fixed * v) + kept[1] * v[2] + sum(scaled) + sum(twice(v)) + sum(last) + again
  }
  x <- c(0.3, -0.8)
  expect_equal(jit(value_and_grad(f))(x)$gradient, gradient(f, x))
  skip_if(!backend %in% c("numpy", "torch"), "scopes in which nothing is recorded are NumPy's and PyTorch's")
  g <- function(p) {
    v <- c(exp(p[1]), p[2])
    inside <- with_no_grad(v * 3)
    whole <- with_no_grad(v %*% v) # the tensor of `v` is created in the scope
    sum(inside * v) + whole[1, 1] + (v %*% v)[1, 1]
  }
  expect_equal(jit(value_and_grad(g))(x)$gradient, gradient(g, x))
})

test_each("loops after and within checkpoint scopes, whose arrays live on", {
  f <- function(p) {
    a <- checkpoint(function(w) exp(w) * w)(p)
    x <- a[1] * 2
    for (i in 1:5) x <- sin(x) * p[2] + a[2]
    again <- checkpoint(function(w) {
      s <- w[1] * 0.5
      for (i in 1:5) s <- sin(s) * w[2] + sum(w * c(s, 1))
      s
    })(a)
    x + again + sum(a * a)
  }
  expect_same_compiled(f, c(0.3, -0.8))
  skip_if(backend != "numpy", "takes long to compile")
  expect_equal(jit(hessian_fn(f))(c(0.3, -0.8)), hessian(f, c(0.3, -0.8)))
})

test_each("mismatched sizes are an error as elsewhere", {
  wrong <- list(
    function(u) u[4], function(u) u[2:5], function(u) u + c(u[1], 1), function(u) u[c(1, NA)], function(u) u[0:3],
    function(u) u["a"], function(u) u[-5], function(u) matrix(u, 1) %*% matrix(u, 1), function(u) u %*% matrix(1:4, 2),
    function(u) matrix(u, 3)[4, ], function(u) matrix(u, 1) + matrix(u, 3)
  )
  x <- c(0.6, 0.7, 0.45)
  for (f in some(wrong, backend)) {
    outcome <- function(code) tryCatch(as.numeric(code), error = function(e) class(e)[1])
    compiled <- outcome(jit(function(p) sum(f(p[1:3] * 2)))(x))
    expect_equal(compiled, outcome(sum(f(op_convert_to_tensor(x) * 2))), info = deparse1(f))
  }
})

test_once("random functions of short vectors, compiled and uncompiled", {
  skip_without("numpy")
  local_backend("numpy")
  withr::local_seed(20261122)
  rounds <- if (nzchar(Sys.getenv("GRADOPS_LONG"))) 150 else 8
  if (rounds > 8) set.seed(as.integer(Sys.getenv("GRADOPS_SEED", "1")))
  for (round in seq_len(rounds)) {
    plan <- lapply(1:20, function(i) {
      list(kind = sample(17, 1), i = sample(i + 2, 1), j = sample(i + 2, 1), k = round(runif(3), 3), e = sample(3, 1))
    })
    f <- function(p) {
      values <- list(tanh(p[1:3]), tanh(p[4:6]), p[2] * 0.5)
      h <- matrix(0, 3, length(plan))
      m <- matrix(p, 3) * 0.5
      for (t in seq_along(plan)) {
        step <- plan[[t]]
        x <- values[[step$i]]
        z <- values[[step$j]]
        one <- if (length(x) == 3) x[step$e] else x
        new <- switch(step$kind,
          x + z, x * z, x - step$k, z / (x^2 + 1), sin(x), exp(tanh(x)), op_stop_gradient(x) * z,
          c(one, z)[1:3 %% length(c(one, z)) + 1], c(one, 0.3, one^2), sum(tanh(x)) * z, one * step$k,
          if (length(x) == 3) rev(x) else x, if (length(x) == 3) c(x[-1], one) else -x, tanh(one),
          as.vector(tanh(outer(c(one, 0.5, 2), step$k)) %*% step$k) * one,
          sum((t(c(one, 0.2, one^2)) %*% m) * m[step$e, ]),
          (m[, 1:2] %*% (t(m[1:2, ]) * one))[, 1 + step$e %/% 2][c(1, 3, 2)]
        )
        if (length(new) == 3) h[, t] <- new else h[step$e, t] <- new
        values[[length(values) + 1]] <- tanh(new)
      }
      last <- values[[length(values)]]
      sum(tanh(h)) + sum(last) + sum(h[1, ] * h[3, ])
    }
    x <- c(0.4, -1.1, 0.3, 0.8, -0.2, 0.6)
    compiled <- jit(value_and_grad(f))(x)
    plain <- value_and_grad(f)(x)
    expect_equal(compiled, plain, tolerance = 1e-10, info = paste("round", round))
  }
})

test_once("elements left out of a logged sum stay out", {
  f <- function(p) sum((p * c(1, NA, 2)), na.rm = TRUE)
  expect_equal(as.double(jit(f)(c(1, 2, 3))), 7)
})

test_each("linear solves and determinants of one and two rows use closed formulas", {
  square <- function(p) matrix(c(p[1], p[2], p[2] * 2, p[3]), 2)
  functions <- list(
    function(p) sum(solve(square(p)) * c(1, 2, 3, 4)), function(p) sum(solve(square(p), c(1, 2))^2),
    function(p) sum(solve(square(p), matrix(1:4, 2) * p[1])^2), function(p) sum(solve(square(p), p[2:3])^3),
    function(p) det(square(p))^2, function(p) determinant(-square(p))$modulus + p[1],
    function(p) determinant(square(p), logarithm = FALSE)$modulus,
    function(p) sum(solve(matrix(p[1] * p[2], 1), p[3])^2), function(p) solve(matrix(p[1:2] %*% p[2:3], 1))[1, 1]
  )
  x <- c(2.5, 0.75, -3)
  for (f in functions) expect_same_compiled(f, x, info = paste(deparse(f), collapse = ""))
  expect_length(jit(function(p) solve(square(p), c(1, 2)))(x), 2)
  expect_equal(dim(jit(function(p) solve(square(p), matrix(1:6, 2)))(x)), c(2, 3))
  skip_if(backend != "numpy", "other backends' compilers have no such errors")
  inverse <- jit(function(p) sum(solve(matrix(c(p[1], p[2], p[2], p[3]), 2))))
  expect_equal(inverse(c(2, 1, 3)), 0.6)
  expect_error(inverse(c(1, 1, 1)), "singular")
  expect_error(gradient(function(p) sum(solve(matrix(p[c(1, 2, 2, 3)], 2))), c(1, 1, 1)), "singular")
  expect_equal(gradient(function(p) tryCatch(1 / det(solve(diag(2) * p)), error = function(e) p * 7), 0), 7)
})

test_each("slices, joins and products that are not logged", {
  f <- function(p) {
    v <- p[1:2] * 2
    m <- matrix(p, 2) * v[1]
    sum(v[]) + sum(m[] * 2) + sum(v[c(TRUE, FALSE)]) + sum(m[cbind(1, 2)]) + v[[2]] * m[[2, 1]] + m[3] + sum(c(v, NULL))
  }
  x <- c(0.3, -0.4, 0.2, 0.9)
  expect_same_compiled(f, x)
  seen <- NULL
  jit(function(p) {
    v <- p[1:2] * 2
    m <- matrix(p, 2) * v[1]
    seen <<- list(dim(m[]), length(v[]), dim(v %*% m[, 1, drop = FALSE]), length(v[-1]))
    v[op_convert_to_tensor(2L)]
  })(x)
  expect_equal(seen, list(c(2L, 2L), 2L, c(1L, 1L), 1L), ignore_attr = TRUE)
})

test_once("an error in a loop over short vectors is R's own, and earlier log entries are intact", {
  skip_without("numpy")
  local_backend("numpy")
  fails <- TRUE
  f <- function(p) {
    v <- c(p[1], p[2] * 2)
    for (i in 1:3) v <- v * v[2:1] + 1
    if (fails) rlang::abort("no more", class = "mine")
    sum(v)
  }
  compiled <- jit(value_and_grad(f))
  expect_error(compiled(c(0.2, 0.1)), class = "mine")
  expect_error(jit(function(p) (c(p[1], 1) * 2)[[3]])(c(1, 2)), "2 elements", class = "gradops_error_axis")
  fails <- FALSE
  expect_equal(compiled(c(0.2, 0.1)), value_and_grad(f)(c(0.2, 0.1)))
})

# The next test applies each function to each pair of forms in one compiled function.
forms <- list(
  function(u) u[1], function(u) u[1:2], function(u) u[2:4], function(u) u[1:4], function(u) c(u, u)[2:7],
  function(u) matrix(u[1:2], 1), function(u) matrix(u[2:3], 2), function(u) matrix(u[1:4], 2),
  function(u) matrix(c(u, u)[1:6], 2), function(u) matrix(u[3], 1)
)
of_two <- list(
  `+` = `+`, `-` = `-`, `*` = `*`, `/` = `/`, `^` = `^`, dnorm = function(x, y) dnorm(x, y, 1.5),
  `log dnorm` = function(x, y) dnorm(0.3, x, y, log = TRUE), dgamma = function(x, y) dgamma(x, y, log = TRUE),
  pmax = function(x, y) pmax(as.vector(x), as.vector(y)), c = function(x, y) c(x, y),
  rbind = function(x, y) rbind(x, y), cbind = function(x, y) cbind(x, y), outer = function(x, y) outer(x, y),
  product = function(x, y) x %*% y,
  crossprod = function(x, y) crossprod(x, y), tcrossprod = function(x, y) tcrossprod(x, y),
  `outer sum` = function(x, y) outer(x, y, `+`), solve = function(x, y) solve(x, y),
  ifelse = function(x, y) ifelse(seq_along(x) %% 2 == 1, x, y), chosen = function(x, y) ifelse(TRUE, x[1], y),
  dbinom = function(x, y) dbinom(c(1, 3), 4, plogis(x[1])) * y[1],
  dpois = function(x, y) prod(dpois(c(2, 2, 0), x[1])) / y,
  filled = function(x, y) {
    x[seq_along(y)] <- y
    x
  }, max = function(x, y) max(x[1], y[1])
)
of_one <- list(
  sum = sum, prod = prod, mean = mean, cumsum = cumsum, cumprod = cumprod, rev = function(x) rev(x), t = t,
  vector = as.vector, numeric = as.numeric, c = function(x) c(x), rep = function(x) rep(x, 2),
  each = function(x) rep(x, each = 2), matrix = function(x) matrix(x, 2),
  byrow = function(x) matrix(x, 2, byrow = TRUE),
  array = function(x) array(x, c(length(x), 1)), column = as.matrix, drop = function(x) drop(x), minus = function(x) -x,
  first = function(x) x[1], last = function(x) x[length(x)], negative = function(x) x[-1],
  logical = function(x) x[x * 0 + seq_along(x) %% 2 == 1], head = function(x) head(x, 1), tail = function(x) tail(x, 1),
  diff = function(x) diff(as.vector(x)), square = function(x) x^2, exp = exp, plogis = plogis,
  sapply = function(x) sapply(seq_along(x), function(i) x[i]^i),
  pairs = function(x) sapply(1:2, function(i) as.vector(x) * i),
  vapply = function(x) vapply(1:2, function(i) x[1] * i, 0),
  grown = function(x) {
    a <- c()
    for (i in seq_along(x)) a[i] <- x[i]
    a
  }, unset = function(x) {
    a <- rep(NA, length(x))
    for (i in rev(seq_along(x))) a[i] <- x[i]
    a
  }, long = function(x) {
    a <- matrix(0.5, 20, 2)
    for (i in seq_along(x)) a[i + 2, 2] <- x[i] + a[i, 1]
    a * a[3, 2]
  },
  unlist = function(x) unlist(list(x, 1, x)), loop = function(x) Reduce(`+`, lapply(seq_along(x), function(i) x[i] * i))
)
of_matrix <- list(
  row = function(x) x[1, ], column = function(x) x[, 1], kept = function(x) x[1, , drop = FALSE],
  pairs = function(x) x[cbind(1, seq_len(ncol(x)))], rows = rowSums, columns = colSums, means = rowMeans,
  `column means` = colMeans, apply = function(x) apply(x, 1, sum), diag = diag, cross = function(x) crossprod(x),
  scaled = function(x) sweep(x, 2, x[1, ]), aperm = function(x) aperm(x), upper = function(x) x[upper.tri(x)],
  rowwise = function(x) x / rowSums(x), det = det, inverse = solve, turned = function(x) t(x) %*% solve(x %*% t(x)),
  filled = function(x) {
    x[1, ] <- x[, 1][1]
    x[nrow(x), ncol(x)] <- 2
    x
  },
  diagonal = function(x) {
    diag(x) <- 1
    x
  }
)

# Results of all `cases` as one vector; `form` of each is the number and the dimensions of its elements.
all_results <- function(cases, p, form) {
  values <- list()
  u <- p * (p[1] / p[1]) # the log runs
  for (name in names(cases)) {
    found <- cases[[name]](u)
    size <- dim(found)
    form(name, list(length(found), if (length(size) > 1L) as.integer(size)))
    values[[name]] <- c(found)
  }
  unlist(unname(values))
}

# The cases that R computes without a warning.
accepted <- function(cases, p) {
  Filter(function(case) !is.null(tryCatch(case(p), error = function(e) NULL, warning = function(w) NULL)), cases)
}

test_each("each function of each pair of forms agrees with plain R", {
  x <- c(0.6, 0.7, 0.45, 0.9)
  fixed <- c(1.2, 0.8, 0.35, 1.7)
  cases <- list()
  for (i in seq_along(forms)) {
    for (f in names(of_one)) {
      cases[[paste(f, i)]] <- local({
        f <- of_one[[f]]
        form <- forms[[i]]
        function(u) f(form(u))
      })
    }
    if (i > 5L) {
      for (f in names(of_matrix)) {
        cases[[paste(f, "of matrix", i)]] <- local({
          f <- of_matrix[[f]]
          form <- forms[[i]]
          function(u) f(form(u))
        })
      }
    }
    for (j in seq_along(forms)) {
      for (f in names(of_two)) {
        for (way in c("both", "first", "second")) {
          cases[[paste(f, i, j, way)]] <- local({
            f <- of_two[[f]]
            one <- forms[[i]]
            other <- forms[[j]]
            switch(way,
              both = function(u) f(one(u), other(u[c(2, 3, 4, 1)])), first = function(u) f(one(u), other(fixed)),
              second = function(u) f(one(fixed), other(u))
            )
          })
        }
      }
    }
  }
  step <- if (backend != "numpy") 101 else if (nzchar(Sys.getenv("GRADOPS_LONG"))) 1 else 23
  cases <- accepted(cases[seq(1, length(cases), step)], x)
  expected <- found <- list()
  plain <- all_results(cases, x, function(name, form) expected[[name]] <<- form)
  weights <- sin(seq_along(plain))
  first <- function(name, form) if (is.null(found[[name]])) found[[name]] <<- form # later runs check the first one
  f <- function(p) sum(all_results(cases, p, first) * weights)
  compiled <- jit(value_and_grad(f))(x)
  expect_equal(found, expected)
  expect_equal(compiled$value, sum(plain * weights), tolerance = 1e-12)
  expect_equal(compiled$gradient, numeric_gradient(f, x), tolerance = 1e-6)
})
