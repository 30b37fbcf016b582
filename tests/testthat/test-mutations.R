# Random functions that read globals, lists, environments, closures, options and environment variables; some modify
# them. They are called many times with changes between calls. Compiled and uncompiled functions must agree at each
# call.

# The possible reads of a function, as code that evaluates to a number.
reads <- c(
  "k", "v[2]", "l$a", "l$b$c", "e$n", "e$inner$m", "h(2)", "counter$get()", "(function() k * 2)()", "mean(v)",
  "getOption('gradops_o', 0.5)", "as.numeric(Sys.getenv('GRADOPS_V', '3'))", "get('k')", "get(paste0('l'))$a",
  "length(ls(e))", "if (exists('late')) late else 0.3", "fs[[1]](1)", "sapply(fs, function(f) f(2))[[2]]", "df$x[1]",
  "M[1, 2]", "active", "do.call('h', list(1))", "Reduce(`+`, l$parts)", "attr(marked, 'unit')", "calls_h(1.5)",
  "sum(options()$gradops_o)", "nchar(word)", "made(1)(2)", "list(k, e$n)[[2]]", "local({ k <- k + 1; k })",
  "{ x <- h; x(1) }", "switch(word, one = 1, three = 2, 7)", "if (flag) k else e$n", "sum(vapply(1:2, h, 0))",
  "sum(environment(h)$q)", "environment(made)$w", "with(l, a)", "with(df, sum(x))", "lazy",
  "vapply(c('k', 'j'), function(n) get(n), 0)[[2]]", "get0('j')"
)

changes_itself <- c(
  "{ count <<- count + 1; count }", "{ e$n <- e$n + 0.5; e$n }", "{ l$a <<- l$a * 1.1; l$a }",
  "{ counter$set(counter$get() + 1); counter$get() }", "{ if (is.null(memo)) memo <<- k; memo }",
  "{ assign('k', k + 0.1, inherits = TRUE); k }", "{ options(gradops_o = getOption('gradops_o', 1) + 1); k }",
  "{ Sys.setenv(GRADOPS_V = as.numeric(Sys.getenv('GRADOPS_V', '3')) + 1); k }",
  "{ if (!exists('late')) late <<- 2; late }", "{ e$fresh <- 1; length(ls(e)) }",
  "{ M[1, 2] <<- M[1, 2] + 1; M[1, 2] }",
  "{ fs[[1]] <<- fs[[2]]; fs[[1]](1) }", "{ old <- k; k <<- 5; on.exit(k <<- old); k }"
)

mutations <- c(
  "k <- @", "v[2] <- @", "l$a <- @", "l$b$c <- @", "e$n <- @", "e$inner$m <- @", "e$inner <- list2env(list(m = @))",
  "h <- function(x) x * @", "body(h) <- quote(x + @)", "formals(h)$y <- @", "counter$set(@)", "options(gradops_o = @)",
  "options(gradops_o = NULL)", "Sys.setenv(GRADOPS_V = @)", "Sys.unsetenv('GRADOPS_V')", "late <- @",
  "if (exists('late', inherits = FALSE)) rm(late)", "fs[[1]] <- function(x) x - @", "fs <- rev(fs)", "df$x[1] <- @",
  "df <- data.frame(x = c(@, 1))", "M[1, 2] <- @", "behind <- @", "l$parts[[2]] <- @", "attr(marked, 'unit') <- @",
  "word <- 'two'", "word <- 'one'", "flag <- !flag", "assign('other', @, envir = e)", "NULL", "NULL",
  "environment(h)$q <- @", "j <- @", "memo <- NULL", "helper <- function(x) x / @",
  "made <- local({ w <- @; function(a) function(b) a * b * w })", "rm(list = 'k'); k <- @", "e <- list2env(as.list(e))",
  "count <- @", "environment(made)$w <- @", "v <- c(v, @)",
  "lockBinding('k', environment()); unlockBinding('k', environment())"
)

world <- function() {
  home <- new.env(parent = globalenv())
  home$.packageName <- "tests"
  code <- quote({
    k <- 2
    j <- 1.5
    v <- c(1, 3, 2)
    l <- list(a = 1.5, b = list(c = 0.7), parts = list(1, 2, 3))
    e <- list2env(list(n = 1.2, inner = list2env(list(m = 0.4))))
    h <- local({
      q <- 0.5
      function(x, y = 1) x * q + y
    })
    helper <- function(x) x * 3
    calls_h <- function(x) helper(x) + h(x)
    counter <- local({
      value <- 1
      list(get = function() value, set = function(new) value <<- new)
    })
    fs <- list(function(x) x + 1, function(x) x * 2)
    df <- data.frame(x = c(1, 2))
    M <- matrix(1:4 / 2, 2)
    behind <- 0.8
    makeActiveBinding("active", function() behind * 2, environment())
    delayedAssign("lazy", 2.5)
    marked <- structure(1, unit = 2)
    word <- "three"
    flag <- TRUE
    memo <- NULL
    count <- 0
    made <- local({
      w <- 3
      function(a) function(b) a * b
    })
  })
  eval(code, home)
  home
}

# Returns the numbers that a function of `terms` gives before and after each change, in a separate world.
told <- function(terms, kind, changes, compiled) {
  withr::local_options(gradops_o = 1.5)
  withr::local_envvar(GRADOPS_V = "2")
  home <- world()
  term <- paste(sprintf("(%s)", terms), collapse = " + ")
  f <- eval(parse(text = sprintf("function(p) sum(p^2) * (%s)", term)), home)
  rule <- eval(parse(text = sprintf("function(x) list(sum(x^2), function(upstream) upstream * x * (%s))", term)), home)
  g <- if (!compiled) {
    if (kind == "rule") function(p) p[1] * f(p) / sum(p^2) else f
  } else {
    custom <- op_custom_gradient(rule)
    switch(kind,
      jit = jit(f),
      objective = objective(f, jit = TRUE)$fn,
      gradient = local({
        both <- jit(value_and_grad(f))
        function(p) both(p)$value
      }),
      rule = local({
        slope <- jit(grad_fn(function(p) custom(p)))
        function(p) slope(p)[1]
      })
    )
  }
  vapply(c("NULL", changes), function(change) {
    eval(parse(text = change), home)
    as.numeric(g(c(1, 2)))
  }, 0, USE.NAMES = FALSE)
}

expect_worlds <- function(count) {
  for (i in seq_len(count)) {
    itself <- sample(changes_itself, sample(0:2, 1, prob = c(3, 2, 1)))
    terms <- sample(c(sample(reads, sample(4, 1)), itself))
    changes <- vapply(sample(mutations, sample(2:6, 1)), function(code) gsub("@", round(runif(1, 1, 9), 2), code), "")
    kind <- sample(c("jit", "objective", "gradient", "rule"), 1)
    expected <- told(terms, kind, changes, FALSE)
    found <- suppressWarnings(told(terms, kind, changes, TRUE), "gradops_warning_jit")
    expect_equal(found, expected, info = paste(c(kind, terms, "--", changes), collapse = "\n"))
  }
}

test_each("compiled functions see changes between calls, including their own", {
  withr::local_seed(1)
  expect_worlds(if (backend == "numpy") 25 else 6)
})

test_each("many compiled functions see changes between calls", {
  skip_if(Sys.getenv("GRADOPS_LONG") == "", "random and long: GRADOPS_LONG is not set")
  seed <- as.integer(Sys.time()) %% 1e6
  if (nzchar(Sys.getenv("GRADOPS_SEED"))) seed <- as.integer(Sys.getenv("GRADOPS_SEED"))
  message("mutations on ", backend, ": seed ", seed)
  withr::local_seed(seed)
  expect_worlds(ceiling(as.numeric(Sys.getenv("GRADOPS_LONG")) * if (backend == "numpy") 400 else 60))
})

test_each("elements excluded by `ifelse()` in a loop have gradient 0, even if their slope is infinite", {
  x <- c(-1, 0, 2, 3)
  d <- c(1, 1, 0, 1)
  cases <- list(
    root = function(p) {
      z <- x - p
      s <- 0
      for (i in 1:4) s <- s + ifelse(z[i] > 0, sqrt(z[i]), 0)
      s
    },
    differences = function(p) {
      z <- x * p
      s <- 0
      for (i in 2:4) {
        w <- z[i] - z[i - 1] - 1
        s <- s + ifelse(w > 0, 2 * w^0.5 + 1, 0)
      }
      s
    },
    nested = function(p) {
      z <- x * p
      s <- 0
      for (i in 1:4) s <- s + ifelse(d[i] == 1, ifelse(z[i] > 0, log(z[i]), z[i]), 1 / (1 + z[i]))
      s
    },
    vectors = function(p) sum(ifelse(x * p > 0, ifelse(d == 1, log(x * p), sqrt(x * p)), 0))
  )
  for (name in names(cases)) {
    want <- suppressWarnings(numeric_gradient(cases[[name]], 0.8))
    expect_equal(gradient(cases[[name]], 0.8), want, tolerance = 1e-6, info = name)
    model <- objective(cases[[name]], jit = TRUE)
    model$fn(0.9)
    expect_equal(model$gr(0.8), want, tolerance = 1e-6, info = name)
  }
})
