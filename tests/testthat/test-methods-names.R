# Row and column names of tensors, also through functions of stats, compared with R's own on numbers.

of_names <- list(
  function(p) matrix(c(p, 2 * p), 2, dimnames = list(c("k", "j"), c("l", "m")))["k", "m"] * p[2],
  function(p) {
    P <- matrix(c(p, 2 * p), 2)
    colnames(P) <- c("a", "b")
    rownames(P) <- c("x", "y")
    P[, "b"][["y"]] * P["x", "a"]
  },
  function(p) {
    M <- cbind(u = p, v = p^2)
    sum((2 * M)[, "v"]) * t(M)["u", 2] * colSums(M)[["v"]] * apply(M, 2, sum)[["u"]] * crossprod(M)["u", "v"]
  },
  function(p) rbind(u = p, v = p^2, w = 1)[c("v", "w"), , drop = FALSE]["w", 1] * rbind(u = p, v = p^2)["v", 2],
  function(p) outer(c(a = 1, b = 2), setNames(p, c("c", "d")))["b", "d"],
  function(p) {
    vapply(c(a = 1, b = 2), function(k) k * p[1], 0)["b"] * sapply(c(a = 1, b = 2), function(k) k * p)[2, "b"]
  },
  function(p) {
    P <- matrix(c(p, 2 * p), 2, dimnames = list(NULL, c("l", "m")))
    P[, "m"] <- p^2
    sum(P[, "m"] * P[, "l"])
  }
)

of_stats <- list(
  function(p) sum(ARMAacf(c(p[1] / 2, -0.2 * p[2]), p[2] / 3, 4)^2),
  function(p) sum(ARMAtoMA(p[1] / 2, p[2], 5)^2),
  function(p) sum(diffinv(p * 1:2, xi = p[1])^2) + sum(diffinv(p, 1, 2, xi = c(p[2], 1))^2),
  function(p) sum(cov.wt(cbind(c(1, 2, 4), c(3, 1, 2)) * p[1], wt = c(p[2], 1, 1) / (p[2] + 2))$cov),
  function(p) sum(Mod(polyroot(c(p, 1)))^3)
)

test_each("row and column names, eager and compiled", {
  p <- c(0.7, 1.3)
  for (f in c(of_names, of_stats)) {
    slope <- vapply(list(c(1e-5, 0), c(0, 1e-5)), function(h) as.numeric(f(p + h) - f(p - h)) / 2e-5, 0)
    expect_equal(gradient(f, p), slope, tolerance = 1e-6)
  }
  for (f in if (backend == "numpy") of_names) expect_equal(objective(f, jit = TRUE)$gr(p), gradient(f, p))
  x <- op_reshape(1:6, c(2, 3))
  dimnames(x) <- list(c("a", "b"), NULL)
  expect_identical(dimnames(x), list(c("a", "b"), NULL))
  expect_identical(names(x[, 2]), c("a", "b"))
  expect_error(x["z", 1], class = "gradops_error_axis")
})

test_once("derivatives of roots to fourth order", {
  f <- function(p) sum(Mod(polyroot(c(p, 0, 1)))) # the roots are +-1i * sqrt(p)
  found <- numeric()
  for (order in 1:4) {
    f <- grad_fn(f)
    found[order] <- f(2)
  }
  expect_equal(found, 2 * c(1 / 2 * 2^-0.5, -1 / 4 * 2^-1.5, 3 / 8 * 2^-2.5, -15 / 16 * 2^-3.5))
})

# The values used below: matrices with names of rows, columns and both, a vector, an array; `K` has none.
named_values <- list(
  M = matrix(c(2, .3, .5, .1, 3, .2, .4, .6, 4), 3, dimnames = list(c("a", "b", "c"), c("u", "v", "w"))),
  S = matrix(c(2, .3, .5, .3, 3, .2, .5, .2, 4), 3, dimnames = list(c("a", "b", "c"), c("a", "b", "c"))),
  R = matrix(1:6 / 4, 3, dimnames = list(c("a", "b", "c"), NULL)),
  C = matrix(6:1 / 5, 3, dimnames = list(NULL, c("k", "l"))), K = matrix(1:9 / 2, 3), v = c(x = 2, y = 1, z = 3),
  A = array(1:12 / 3, c(2, 3, 2), dimnames = list(c("a", "b"), c("u", "v", "w"), c("s", "t")))
)

named_calls <- function() {
  unary <- c(
    "exp", "-", "!", "abs", "round", "lgamma", "pnorm", "qlogis", "cumsum", "cummax", "t", "rev", "sort", "head",
    "tail", "diff", "unname", "as.vector", "c", "as.matrix", "is.na", "drop", "rowSums", "colSums", "rowMeans",
    "colMeans",
    "diag", "solve", "chol", "det", "crossprod", "tcrossprod", "aperm", "scale", "var", "cor", "cov2cor", "range",
    "quantile", "prop.table", "zapsmall", "which.max", "order", "unlist", "names", "dimnames", "rownames",
    "colnames", "nrow", "toeplitz", "fft", "cbind", "rbind", "addmargins", "max", "sum", "mean", "median"
  )
  binary <- c(
    "+", "*", "/", "^", ">", "==", "%*%", "crossprod", "tcrossprod", "outer", "%o%", "cbind", "rbind", "solve", "pmax",
    "pmin", "cov", "kronecker", "dnorm", "atan2", "%%", "c"
  )
  operands <- c(lapply(names(named_values), as.name), list(2, quote(1:3), quote(c(q = 1, r = 2, s = 4))))
  pairs <- expand.grid(seq_along(named_values), seq_along(operands))
  plain_first <- pairs[pairs[[2]] > length(named_values), ] # pairs of named values are in both orders already
  c(
    unlist(lapply(unary, function(f) lapply(operands[seq_along(named_values)], function(x) call(f, x)))),
    unlist(lapply(binary, function(f) {
      c(
        Map(function(i, j) call(f, operands[[i]], operands[[j]]), pairs[[1]], pairs[[2]]),
        Map(function(i, j) call(f, operands[[j]], operands[[i]]), plain_first[[1]], plain_first[[2]])
      )
    })),
    alist(
      M["a", ], M[, "u"], M[c("a", "c"), ], M["a", "u"], M[-1, ], M[M[, "u"] > .4, ], M[1, , drop = FALSE],
      M[["a", "u"]],
      M[5], M[M > 1], M[cbind(c("a", "b"), c("u", "v"))], M[0, ], M[rev(rownames(M)), ], M[order(M[, "u"]), ],
      A["a", , ], A[, , "s"], A["a", "u", ], A[, , 1, drop = FALSE], v["y"], v[-1], v[v > 1], v[c("z", "x")], v[0],
      (M %*% v)["a", ], colMeans(M)["u"], sort(v)["y"], diag(outer(v, v))["x"], solve(S)["a", "b"],
      (R %*% C[1:2, ])["a", ],
      aperm(A, c(3, 1, 2))["s", "a", ], sort(v, decreasing = TRUE), head(M, c(2, 2)), rep(v, 2), rep(v, times = 1:3),
      rep(v, each = 2), diff(v, lag = 2), c(v, q = 1), c(a = v[1], b = 2), unlist(list(a = v, b = v[1:2])),
      rowSums(A, dims = 2), colSums(A, dims = 2), diag(M, names = FALSE), outer(v, v, function(a, b) a * b^2),
      apply(M, 1, sum), apply(M, 1, function(r) r * 2), apply(M, 2, sort), apply(M, 1:2, function(e) e^2),
      apply(A, c(1, 3), sum), apply(A, 3, function(m) m[1, ]), apply(A, c(3, 1), range), apply(M, 1, range),
      apply(A, 3, function(m) sum(m["a", ])), apply(M, 1, function(r) r["u"]), apply(M, 2, function(r) r[["a"]]),
      apply(M, 1, function(r) c(lo = min(r), hi = max(r))), sapply(v, function(e) c(a = e, b = e^2)),
      sapply(c("k", "l"), function(n) v[1]), vapply(rownames(M), function(r) M[r, "u"], 0),
      sapply(list(a = v, b = v), range),
      vapply(v, function(e) c(a = e, b = e^2), c(a = 0, b = 0)), mapply(function(a, b) a * b, v, v),
      do.call(rbind, list(a = v)),
      sapply(colnames(M), function(k) M[, k]), mapply(function(r, k) M[r, k], rownames(M), colnames(M)),
      cbind(M, new = v), rbind(M, new = v), cbind(k = 1, M), cbind(v, w = 1:3), cbind(1, v), cbind(v, M),
      sweep(M, 2, v),
      tapply(v, c("g", "h", "g"), sum), ave(v, c(1, 2, 1)), rowsum(M, c("g", "h", "g")), ifelse(M > 1, M, 0),
      setNames(v, c("k", "l", "m")), replace(v, "y", 1), append(v, c(k = 1), 1), log(M, base = 2), mahalanobis(M, v, S),
      prop.table(M, 1), which(M > 1, arr.ind = TRUE), rowSums(M > 1), qr.solve(S, v), solve(S) %*% M, chol2inv(chol(S)),
      {
        M["a", "u"] <- 0
        M[, "v"] <- v
        M
      },
      {
        dimnames(K) <- dimnames(M)
        K["a", ] <- v
        K
      },
      {
        colnames(M) <- NULL
        M
      },
      {
        v["new"] <- 5
        v
      }
    )
  )
}

# Returns the names of elements or dimensions; for lists those of their parts.
labels_of <- function(x) {
  if (is.list(x)) {
    return(lapply(x, labels_of))
  }
  if (length(dim(x)) < 2L) {
    return(names(x))
  }
  found <- unname(dimnames(x))
  if (all(lengths(found) == 0L)) NULL else found
}

test_each("results have base R's names, for many functions", {
  calls <- named_calls()
  plain <- list2env(named_values, parent = asNamespace("stats"))
  of_r <- lapply(calls, function(call) {
    value <- tryCatch(suppressWarnings(eval(call, new.env(parent = plain))), error = function(error) NULL)
    if (!is.null(value)) list(labels_of(value))
  })
  # Here R turns arrays into vectors, or uses row numbers as names.
  others <- alist(tail(C), tail(K), diff(A), cbind(A), rbind(A), cbind(A, A), rbind(A, A))
  known <- !vapply(of_r, is.null, NA) & !calls %in% others
  expect_gt(sum(known), 1900)
  found <- list()
  parts <- lapply(which(known), function(i) {
    bquote(local(found[[.(i)]] <<- tryCatch(list(.labels(.(calls[[i]]))), error = identity)))
  })
  body <- as.call(c(quote(`{`), parts, quote(sum(M) + sum(v))))
  home <- list2env(list(.labels = labels_of, found = found), parent = environment())
  formals <- setNames(rep(list(rlang::missing_arg()), length(named_values)), names(named_values))
  total <- rlang::new_function(formals, body, home)
  suppressWarnings(gradient(function(p) do.call(total, p), named_values))
  wrong <- Filter(function(i) {
    given <- home$found[[i]]
    !inherits(given, "gradops_error_shape") && !identical(given[[1]], of_r[[i]][[1]])
  }, which(known))
  expect_identical(vapply(calls[wrong], function(call) deparse(call)[1], ""), character())
})

test_each("row and column names of parameters, in lists and in objectives", {
  f <- function(p) sum((p$M %*% p$v)["a", ]^2) * colMeans(p$M)[["w"]] + sort(p$v)[["x"]]^2 * solve(p$S)["a", "b"]
  parameters <- named_values[c("M", "S", "v")]
  expected <- numeric_gradient(function(x) f(utils::relist(x, parameters)), unlist(parameters))
  of_objective <- objective(f)
  compiled <- objective(f, jit = backend == "numpy") # the order of `sort()` is unknown in traces of other libraries
  for (gradients in list(gradient(f, parameters), of_objective$gr(parameters), compiled$gr(parameters))) {
    expect_equal(as.vector(unlist(gradients)), expected, tolerance = 1e-6)
  }
  expect_equal(gradient(function(x) sum(x["a", ]^2), named_values$M)["a", ], 2 * named_values$M["a", ])
})
