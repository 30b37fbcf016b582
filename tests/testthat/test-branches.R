# Compiled functions that branch on values: one program per path on NumPy, an error on other backends.

on_numpy <- function() {
  skip_if(config_backend() != "numpy", "other libraries' compilers have no values while they trace")
}

innermost <- function(error) {
  while (!is.null(error$parent)) error <- error$parent
  conditionMessage(error)
}

# Checks that the compiled function gives the uncompiled values and errors, twice at each point.
expect_as_uncompiled <- function(f, ..., tolerance = 1e-12) {
  compiled <- objective(f, jit = TRUE)
  eager <- objective(f)
  either <- function(code) suppressWarnings(tryCatch(code, error = innermost), classes = "gradops_warning")
  for (x in c(list(...), list(...))) {
    expect_equal(either(compiled$fn(x)), either(eager$fn(x)), tolerance = tolerance, info = deparse(x))
    expect_equal(either(compiled$gr(x)), either(eager$gr(x)), tolerance = tolerance, info = deparse(x))
  }
  length(grep("specialised to the branches taken", format(compiled)))
}

test_each("parameter guards as in likelihoods", {
  on_numpy()
  y <- c(1.2, -0.4, 2.2, 0.1)
  ways <- expect_as_uncompiled(function(p) {
    if (p[2] <= 0) return(1e10)
    -sum(dnorm(y, p[1], p[2], log = TRUE))
  }, c(0, 1), c(0, -1), c(1, 2), c(0, 0))
  expect_equal(ways, 2)
  expect_as_uncompiled(function(p) {
    if (any(!is.finite(p)) || p[["s"]] <= 0) return(Inf)
    sum((y - p[["m"]])^2) / p[["s"]]
  }, c(m = 0, s = 1), c(m = NaN, s = 1), c(m = 1, s = -1), c(m = Inf, s = 2))
  expect_as_uncompiled(function(p) {
    stopifnot("must be positive" = all(p > 0), length(p) == 2)
    sum(log(p))
  }, c(1, 2), c(-1, 2))
  expect_as_uncompiled(function(p) {
    with(as.list(p), {
      if (rho < -1 || rho > 1) stop("rho is out of range")
      log(1 - rho^2) + s^2
    })
  }, c(rho = 0.5, s = 1), c(rho = 2, s = 1), c(rho = -0.2, s = 3))
})

test_each("loops, switches, masks and indices that depend on values", {
  on_numpy()
  expect_as_uncompiled(function(p) {
    while (abs(p[1]) > 1) p <- p / 2
    repeat {
      p <- p * 1.5
      if (sum(p) > 2) break
    }
    sum(p^2)
  }, c(0.1, 0.2), c(30, 2), c(0.9, 5))
  expect_as_uncompiled(function(p) {
    sum(p[p > 1]^2) + sum(p[which(p <= 1)]) + p[p[2:3] > 0][1]
  }, c(0.5, 2, 3), c(2, -1, 0.1), c(-3, 2, -2), c(2, NaN, 1))
  expect_as_uncompiled(function(p) switch(p[1], p[2], p[2]^2, stop("no")), c(1, 3), c(2, 3), c(2.9, 3), c(3, 3))
  expect_as_uncompiled(function(p) {
    total <- 0
    for (v in p) if (v > 0 && v < 2) total <- total + log(v) else if (v < 0) next else total <- total + v
    total
  }, c(1, 2, 3), c(-1, 0.5, 1), c(0, 0, 0))
  expect_as_uncompiled(function(p) if (sum(p > 0)) sum(p) else prod(p), c(1, -2), c(-1, -3))
})

test_each("a condition that is NaN is R's NA: an error, or decided by the other operand", { # nolint: cyclocomp_linter.
  on_numpy()
  says <- "missing value where TRUE/FALSE needed"
  for (f in list(
    function(p) if (p[1] > 0) sum(p) else sum(p^2),
    function(p) if (p[1] > 0 & p[2] > 0) sum(p) else sum(p^2),
    function(p) if (!(p[1] > 0 | p[2] > 5)) sum(p) else sum(p^2),
    function(p) if (all(p > 0)) sum(p) else sum(p^2),
    function(p) if (any(p[1:2] > 5)) sum(p) else sum(p^2),
    function(p) if (all(c(p[1] > 0, p[2] > 0))) sum(p) else sum(p^2),
    function(p) if (any(c(p[1:2], 3) > 5)) sum(p) else sum(p^2),
    function(p) if (any(rev(p > 5))) sum(p) else sum(p^2),
    function(p) if (any(p > 5 & c(TRUE, FALSE))) sum(p) else sum(p^2),
    function(p) if ((p > 5)[1]) sum(p) else sum(p^2),
    function(p) if (!all(outer(p, p) > 0)) sum(p) else sum(p^2),
    function(p) if (xor(p[1] > 0, p[2] > 5)) sum(p) else sum(p^2),
    function(p) if (ifelse(p[1] > 0, p[2] > 0, FALSE)) sum(p) else sum(p^2),
    function(p) if (ifelse(p[2] > 0, p[1] > 0, FALSE)) sum(p) else sum(p),
    function(p) while (p[1] != 2) p <- p / 2
  )) {
    compiled <- objective(f, jit = TRUE)
    x <- c(2, 1)
    if (is.null(body(f)) || !identical(body(f)[[1]], quote(`while`))) {
      expect_equal(compiled$fn(x), f(x))
      expect_equal(compiled$fn(-x), f(-x))
    }
    error <- expect_error(compiled$fn(c(NaN, 1)), class = "gradops_error_callback")
    expect_equal(innermost(error), says)
  }
  settled <- list(
    function(p) if (p[1] > 0 & p[2] > 5) sum(p[2]) else p[2]^2,
    function(p) if (p[1] > 0 | p[2] < 5) sum(p[2]) else p[2]^2,
    function(p) if (any(p < 2)) sum(p[2]) else p[2]^2,
    function(p) if (all(p > 2)) sum(p[2]) else p[2]^2,
    function(p) if (is.na(p[1])) sum(p[2]) else p[2]^2,
    function(p) if (ifelse(is.na(p[1]), TRUE, p[1] > 1)) sum(p[2]) else p[2]^2
  )
  for (f in settled) expect_as_uncompiled(f, c(1, 1), c(NaN, 1), c(3, 6))
})

test_each("an optimizer passes a guard and ends where R's ends", {
  on_numpy()
  set.seed(4)
  y <- rgamma(200, 2.5, 1.3)
  likelihood <- function(p) if (any(p <= 0)) 1e6 else -sum(dgamma(y, p[1], p[2], log = TRUE))
  of <- objective(likelihood, jit = TRUE)
  found <- suppressWarnings(optim(c(0.3, 8), of$fn, of$gr, method = "BFGS"), classes = "gradops_warning")
  expect_equal(found$par, optim(c(2, 1), likelihood, control = list(reltol = 1e-14))$par, tolerance = 1e-4)
  expect_equal(jit(function(x) if (sum(x) > 0) x else -x)(c(1, -2)), c(-1, 2))
  expect_equal(jit(hessian_fn(function(p) if (p[1] > 0) sum(p^3) else sum(p)))(c(1, 2)), diag(c(6, 12)))
})

test_contract("if values are unknown, the error names the code", {
  says <- function(f, form) {
    error <- expect_error(jit(f)(c(1, 2)), class = "gradops_error_jit")
    expect_match(conditionMessage(error), form, fixed = TRUE)
  }
  step <- function(s, v) list(if (v > 0) s + v else s, s)
  says(function(p) op_scan(step, p[1], op_stack(rep(list(p[2]), 9)))[[1]], "if (v > 0)")
  skip_if(config_backend() == "numpy", "there they are compiled")
  says(function(p) if (2 %in% p) p else -p, "`%in%()`")
  says(function(p) if (p[1] > 0) p else -p, "`if (p[1] > 0)`")
  says(function(p) while (sum(p) < 3) p <- p * 2, "`while (sum(p) < 3)`")
  says(function(p) if (length(p) > 1 && all(p > 0)) p else -p, "`all(p > 0)` in `&&`")
  says(function(p) if (p[1] == 2 || p[2] == 2) p else -p, "`p[1] == 2` in `||`")
  says(function(p) switch(p[1], p, -p), "`switch (p[1])`")
  says(function(p) {
    stopifnot(p > 0)
    p
  }, "`stopifnot (p > 0)`")
  says(function(p) p[p > 1], "x[i]")
})
