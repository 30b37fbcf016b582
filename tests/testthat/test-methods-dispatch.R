# Methods that the user defines for R generics masked by gradops. R looks for methods from the calling frame on, so a
# method may be defined in the function itself.

# One function of each group of generics.
groups <- list(Summary = "max", Math = "exp", Ops = "*", Complex = "Mod")

# Returns every R S3 generic that adapted code replaces, by name, with R's function; the groups; and generics that R
# dispatches internally. A length cannot be a tensor.
walked_generics <- function() {
  internal <- c(setdiff(.S3PrimitiveGenerics, "length"), "unlist", "as.vector", "+", "%%", "==")
  names <- c(ls(gradops:::overloads(), all.names = TRUE), "[", "[[", "[<-", "[[<-", "log", internal)
  packages <- lapply(c("base", "stats", "utils"), asNamespace)
  masked <- Filter(function(name) {
    home <- Find(function(package) exists(name, package, inherits = FALSE), packages)
    !is.null(home) && gradops:::is_s3_generic(get(name, home), name)
  }, sort(unique(names)))
  unique(c(names(groups), internal, masked))
}

# Returns R code that calls a generic on an object of class `k`, which holds `p`.
call_of <- function(generic) {
  name <- as.name(if (generic %in% names(groups)) groups[[generic]] else generic)
  if (endsWith(generic, "<-")) {
    target <- switch(generic,
      `[<-` = quote(x[1]), `[[<-` = quote(x[[1]]), `$<-` = quote(x$a), `split<-` = quote(split(x, 1)),
      call(sub("<-", "", generic, fixed = TRUE), quote(x))
    )
    bquote({
      .(target) <- 1
      x
    })
  } else {
    as.call(c(list(name, quote(x)), if (generic %in% c("[", "[[", "$", "log", "with", "Ops", "+", "%%", "==")) 2))
  }
}

# Functions of `p` whose method is defined inside, in a `local()` around them, or in a sourced environment.
with_method <- list(
  `function` = function(generic, method, envir) {
    eval(bquote(function(p) {
      .(as.name(paste0(generic, ".k"))) <- .(method)
      x <- structure(list(p), class = "k")
      .(call_of(generic))
    }), envir)
  },
  `local()` = function(generic, method, envir) {
    eval(bquote(local({
      .(as.name(paste0(generic, ".k"))) <- .(method)
      function(p) {
        x <- structure(list(p), class = "k")
        .(call_of(generic))
      }
    })), envir)
  },
  `source()` = function(generic, method, envir) {
    code <- bquote({
      .(as.name(paste0(generic, ".k"))) <- .(method)
      f <- function(p) {
        x <- structure(list(p), class = "k")
        .(call_of(generic))
      }
    })
    file <- withr::local_tempfile(lines = deparse(code))
    home <- new.env(parent = envir)
    sys.source(file, home)
    home$f
  }
)

# Only adapted code passes a tensor to the method.
square <- quote(function(...) {
  h <- c(0, 0)
  h[2] <- unclass(..1)[[1]]
  sum(h)^2
})

test_each("methods defined anywhere in the user's code are found as in R, including group generics", {
  exports <- lapply(c("stats", "utils"), function(name) as.list(asNamespace(name), all.names = TRUE))
  plain <- list2env(do.call(base::c, exports), parent = baseenv()) # without gradops
  generics <- walked_generics()
  found <- 0
  for (place in names(with_method)) {
    for (generic in generics) {
      of_r <- with_method[[place]](generic, square, new.env(parent = plain))
      expected <- tryCatch(suppressWarnings(of_r(3)), error = function(error) NULL)
      if (!identical(expected, 9)) next # R itself dispatches differently
      f <- with_method[[place]](generic, square, new.env(parent = globalenv()))
      found <- found + 1
      expect_equal(gradient(f, 3), 6, info = paste(generic, "in", place))
      expect_equal(as.numeric(jit(f)(3)), 9, info = paste(generic, "compiled, in", place))
    }
  }
  expect_gt(found, 3 * 60)
})

test_each("a user-defined operator accepts a tensor as its other operand", {
  f <- function(p) {
    k <- structure(list(2), class = "k")
    j <- structure(list(3), class = "j")
    number <- function(x) if (inherits(x, c("k", "j"))) unclass(x)[[1]] else x
    Ops.k <- function(e1, e2) { # nolint: object_name_linter. R's name.
      if (missing(e2)) number(e1) * p else get(.Generic, baseenv())(number(e1), number(e2))
    }
    `+.j` <- function(e1, e2) number(e1) * number(e2)^2
    (p * k)^2 + k / p + p^k - (-k) + (j + p) + (p + j) + (p + 1) * (2 + j) + (k > p) * p
  }
  for (x in c(1.4, 2.6)) {
    expect_equal(gradient(f, x), numeric_gradient(f, x), tolerance = 1e-6)
    expect_equal(as.numeric(jit(f)(x)), f(x))
  }
})

test_each("the method of the first argument's class is used, even if another argument is a tensor", {
  f <- function(p) {
    k <- structure(1, class = "k")
    weighted.mean.k <- function(x, w, ...) sum(w^2)
    scale.k <- function(x, center, ...) sum(center^2)
    solve.k <- function(a, b) sum(b^2)
    quantile.k <- function(x, probs, ...) sum(probs^2)
    seq.k <- function(x, by, ...) sum(by^2)
    cut.k <- function(x, n, ...) sum(n^2)
    sum.k <- function(x, y, na.rm) y^2 # nolint: object_name_linter. R's name.
    c.k <- function(x, y) y^2
    rep.k <- function(x, y) y^2
    head.k <- function(object, y) y^2
    log.k <- function(x, base) base^2
    `[.k` <- function(x, i) i^2
    `[[.k` <- function(x, i) i^2
    weighted.mean(k, p) + scale(k, p) + solve(k, p) + quantile(k, p) + seq(k, by = p) + cut(k, p) + sum(k, p) +
      c(k, p) + rep(k, p) + head(k, p) + log(k, p) + k[p] + k[[p]]
  }
  expect_equal(f(3), 13 * 9)
  expect_equal(gradient(f, 3), 13 * 6)
  h <- function(k, p) {
    weighted.mean.k <- function(x, w, ...) sum(w^2)
    weighted.mean(k, p)
  }
  expect_equal(as.numeric(h(structure(1, class = "k"), variable(3))), 9)
})

test_each("methods for R's own vectors are found", {
  f <- function(p) {
    unique.numeric <- function(x, ...) sum(x^2)
    head.default <- function(x, ...) sum(x^3)
    tail.matrix <- function(x, ...) sum(x^4)
    unique(p) + head(p) + tail(matrix(p)) + sum(tail(p))
  }
  expect_equal(gradient(f, c(1, 2)), numeric_gradient(f, c(1, 2)), tolerance = 1e-6)
})

test_each("a registered method handles tensors inside its object", {
  home <- new.env(parent = baseenv())
  registerS3method("unique", "registered_k", function(x, ...) x[[1]]^2, home)
  registerS3method("cut", "registered_k", function(x, ...) x[[1]]^2, home)
  registerS3method("seq", "registered_k", function(x, by, ...) x[[1]] * by, home)
  f <- function(p) {
    k <- structure(list(p), class = "registered_k")
    unique(k) + cut(k, 2) + seq(k, by = p)
  }
  expect_equal(f(3), 27)
  expect_equal(gradient(f, 3), 18)
})

test_once("functions with R's names find methods where R does, also outside differentiation", {
  f <- function() {
    k <- structure(1, class = "k")
    c.k <- function(...) 4
    by.k <- function(...) 5
    deriv.k <- function(...) 6
    deriv3.k <- function(...) 7
    list(c(k, 2), by(k), deriv(k), deriv3(k))
  }
  expect_identical(f(), list(4, 5, 6, 7))
})
