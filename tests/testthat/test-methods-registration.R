# Returns the exported functions that share a name with base R or stats.
exported_namesakes <- function() {
  ours <- getNamespaceExports("gradops")
  at_home <- lapply(c("base", "stats"), function(package) intersect(ours, getNamespaceExports(package)))
  setdiff(base::unlist(at_home), "%||%")
}

# R 4.5 adds a class that names the function with the missing argument.
outcome <- function(call, envir) {
  said <- function(found) c(setdiff(class(found), c("evalError", "getvarError")), conditionMessage(found))
  tryCatch(eval(call, new.env(parent = envir)), condition = said)
}

test_once("R's own values are passed to base R's functions unchanged", {
  ours <- list2env(mget(exported_namesakes(), as.environment("package:gradops")), parent = asNamespace("stats"))
  m <- base::matrix(c(2, 1, 0.5, 3), 2, dimnames = list(c("a", "b"), c("u", "v")))
  calls <- expression(
    diag(3), diag(c(1, 2)), diag(2, 3, 4), diag(m), diag(m, names = FALSE), diag(nrow = 2), diag(m, 2), `diag<-`(m, 0),
    matrix(1:6, 2, byrow = TRUE), matrix(), matrix(1:6, ncol = 2), matrix(1:2, 1, 2, FALSE, list("a", NULL)),
    array(1:3), array(1:24, 2:4), array(), drop(array(1:2, c(1, 2))), matrix(list(1, 2), 1),
    crossprod(1:3), crossprod(m, m), tcrossprod(m), m %*% m, outer(c(a = 1, b = 2), 1:2), outer(1:3, 1:2, "-"),
    1:3 %o% 1:2, 1:2 %x% m, kronecker(m, m, make.dimnames = TRUE), kronecker(diag(2), m, "+"),
    solve(m), solve(m, 1:2), solve(m, b = m), solve(qr(m), 1:2), solve("a"), solve(m, 1:3), det(m), chol2inv(m),
    chol2inv(m, size = 1), backsolve(m, 1:2), forwardsolve(m, 1:2, k = 1), svd(m), svd(m, nu = 0), svd(m, 1, 1),
    eigen(m), eigen(m, TRUE, only.values = TRUE), qr.Q(qr(m)), qr.Q(qr(m), complete = TRUE), qr.Q(1),
    c(1, NULL, "a"), c(list(1), 2), c(a = 1, b = 2, use.names = FALSE), c(as.Date("2020-01-01"), NA), c(), c(1, b = m),
    c(list(1, list(2)), recursive = TRUE), c(factor("a"), factor("b")), c(1, mean),
    unlist(list(a = 1, b = list(c = 2, 3))), unlist(list(1, "a", NULL)), unlist(list(m, mean)), unlist(NULL),
    unlist(list(factor("a"), factor("b"))), unlist(list(a = list(1)), FALSE, FALSE),
    apply(m, 1, sum), apply(m, 2, range), apply(m, c(1, 2), identity), apply(m, "a", sum), apply(1:2, 1, sum),
    apply(m, 1, function(x, y) y, y = "k"), apply(m, 1, function(x) list(x)), apply(m, 1, range, simplify = FALSE),
    sapply(c("a", "bb"), nchar), sapply(list(), length), sapply(1:3, function(i) seq_len(i)), sapply(1:2, "identity"),
    sapply(1:2, function(i) m, simplify = "array"), sapply(1:2, list), sapply(1:2, 3), sapply(c(a = 1), identity),
    vapply(c("a", "b"), nchar, 1L), vapply(1:2, function(i) 1:2, numeric(2)), vapply(1:2, function(i) "a", 1),
    vapply(list(), length, 1L), vapply(1:2, function(i, k) i * k, 0, k = 2), vapply(1:2, identity),
    mapply(rep, 1:3, 3:1), mapply(function(x, y) x + y, c(a = 1, b = 2), 1:2), mapply(identity, c("a", "b")),
    mapply(rep, times = 1:2, x = 2:1, MoreArgs = list(each = 1)), mapply(rep, 1:2, 2:1, SIMPLIFY = FALSE),
    ifelse(c(a = TRUE, b = NA), 1, stop("not needed")), ifelse(m > 1, m, -1), ifelse(FALSE, stop("no"), "b"),
    ifelse("TRUE", 1, 2), ifelse(NULL, 1, 2), ifelse(NA, stop("no"), stop("no")), ifelse(list(TRUE, 0), 1, 2),
    which(c(a = TRUE, b = FALSE)), which(m > 1, arr.ind = TRUE), which(1), which.max(c(a = 1, b = 3)), which.min(m),
    pmin(1:3, 2L), pmax(c(a = 1, b = NA), 0, na.rm = TRUE), pmax("a", "b"), pmin(m, 1), pmax(), pmin(1:3, 1:2),
    rowSums(m), colSums(data.frame(x = 1:2)), rowMeans(m, na.rm = TRUE), colMeans(array(1:8, c(2, 2, 2)), dims = 2),
    rowSums(1:3), weighted.mean(1:3, 3:1), weighted.mean(c(1, NA), na.rm = TRUE),
    scale(m), scale(m, FALSE, 2:3), sweep(m, 2, 1:2), sweep(m, 1, 1:2, "*"), sweep(m, 1, 1:3),
    var(c(1, NA, 3), na.rm = TRUE), var(m), var(m, c(1, 2)), var("a"), sd(c(1, 2, 4)), cov(m, method = "kendall"),
    cor(data.frame(x = 1:3, y = c(1, 3, 2))), cor(1:3, c(1, 3, 2), method = "spearman"), cor(1:3),
    dnorm(0), dnorm(1:2, sd = c(a = 1, b = 2), log = TRUE), dgamma(1, 2), dgamma(1, 2, scale = 3), dgamma(1, 2, 3, 4),
    dbeta(0.2, 2, 3), dbeta(0.2, 2, 3, 1), dt(1, 3), dt(1, 3, 0.5), dunif(1:2, 0, 1.5), dlogis(1), dweibull(1, 2),
    dlnorm(1), dexp(1), dbinom(1, 2, 0.3), dbinom(0.5, 2, 0.3), dpois(2, 1.5), dnbinom(1, 2, 0.3),
    dnbinom(1, 2, mu = 3), dnbinom(1, 2, 0.3, 4), pnorm(1, lower.tail = FALSE), plogis(1, log.p = TRUE), qlogis(0.3),
    dcauchy(1), dchisq(1, 3), dchisq(1, 3, 0.5), dgeom(1, 0.3), pexp(1, 2, FALSE), pweibull(1, 2, log.p = TRUE),
    plnorm(1:2), punif(0.3), pcauchy(1, lower.tail = FALSE), pgeom(2, 0.3), qnorm(0.3, 1:2), qlnorm(0.3),
    qexp(0.3, 2), qunif(0.3, 0, 2), qweibull(0.3, 2), qcauchy(-1, log.p = TRUE), qnorm("a"), dnorm("a"),
    qgamma(0.3, 2), qgamma(0.3, 2, scale = 3), qchisq(0.3, 2), qchisq(0.3, 2, 1), qbeta(0.3, 2, 3), qbeta(0.3, 2, 3, 1),
    qt(0.3, 2), qt(0.3, 2, 1), qt("a", 2), qf(0.3, 2, 3), qf(0.3, 2, 3, 1), qf(0.3, 2, Inf, lower.tail = FALSE),
    qbinom(0.3, 5, 0.2), qpois(0.3, 5), qgeom(0.3, 0.1), qnbinom(0.3, 5, 0.2), qnbinom(0.3, 5, mu = 2), qhyper(0.3, 5, 6, 4),
    phyper(2, 5, 6, 4), psigamma(2, 3), psigamma(2),
    rbinom(2, 0, 0.3), rpois(2, 0), rgeom(2, 1), rhyper(2, 3, 0, 2), ptukey(3, 2, 3), qtukey(0.3, 2, 3),
    psignrank(3, 5), pwilcox(3, 4, 5), rnbinom(2, 3, mu = 0), runif(2, 1, 1), rnorm(2, 1, 0), rgamma(2, 0, scale = 2),
    choose(5, 2), choose(0.5, 0:3), lchoose(5, 2), beta(1, 2), lbeta(1:2, 3), atan2(1, 0:1), atan2("a", 1)
  )
  differing <- Filter(function(call) !identical(outcome(call, ours), outcome(call, asNamespace("stats"))), calls)
  expect_identical(base::vapply(differing, deparse1, ""), character())
})

test_once("functions see the same calling context as under base R", {
  local({
    inner <- function(x) x + 1
    expect_identical(sapply(1:2, "inner"), c(2, 3))
    expect_identical(vapply(1:2, "inner", 0), c(2, 3))
    expect_identical(apply(base::matrix(1:2, 1), 2, "inner"), c(2, 3))
    expect_identical(mapply("inner", 1:2), c(2, 3))
  })
  expect_identical(sapply(1, function(x) deparse(substitute(x))), base::sapply(1, function(x) deparse(substitute(x))))
  expect_identical(vapply(1, function(x) deparse(substitute(x)), ""), "X[[i]]")
  count <- 0
  f <- function() {
    count <<- count + 1
    base::matrix(c(2, 1, 1, 3), 2)
  }
  solve(f())
  diag(f())
  c(f())
  expect_identical(count, 3)
})

test_once("functions with R's names accept all of base R's arguments", {
  for (name in exported_namesakes()) {
    original <- get(name, envir = asNamespace("stats"))
    ours <- names(formals(get(name, envir = asNamespace("gradops"))))
    theirs <- if (!is.null(args(original))) names(formals(args(original)))
    expect_true(identical(ours, "...") || all(theirs %in% ours), info = name)
  }
})

test_once("S4 matrices dispatch to the S4 generics", {
  skip_if_not_installed("Matrix")
  s4 <- asNamespace("Matrix")
  m <- Matrix::Matrix(c(2, 0, 1, 0, 3, 0, 1, 0, 2), 3, sparse = TRUE)
  dense <- as.matrix(m)
  for (name in c("crossprod", "tcrossprod", "solve", "diag", "rowSums", "colMeans", "unlist", "drop")) {
    expect_equal(get(name)(m), get(name, s4)(m), info = name)
  }
  expect_s4_class(crossprod(m, dense), "Matrix")
  expect_s4_class(crossprod(dense, m), "Matrix")
  expect_equal(solve(m, 1:3), get("solve", s4)(m, 1:3))
  expect_equal(solve(m, b = dense), get("solve", s4)(m, dense))
  expect_equal(as.matrix(kronecker(m, m)), base::kronecker(dense, dense))
  expect_s4_class(m %*% m, "Matrix")
})

# Returns what a new R process prints.
fresh <- function(code) {
  call <- shQuote(sprintf(".libPaths(%s); %s", deparse1(.libPaths()), code))
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", "-e", call), stdout = TRUE, stderr = TRUE)
}

test_once("attaching prints one line", {
  skip_on_cran()
  skip_if(is_loaded_from_source())
  one_line <- "^gradops [0-9.]+: 1[0-9]{2} functions of base R and stats also take tensors, see [?].gradops-masked.$"
  said <- fresh("library(gradops)")
  expect_length(said, 1)
  expect_match(said, one_line)
  strict <- fresh("options(conflicts.policy = 'strict'); library(gradops, mask.ok = TRUE)") # prints R's list
  expect_match(strict[1], one_line)
  expect_null(attr(strict, "status"))
  masked <- fresh("attach(list(jacobian = mean, sd = 1), name = 'mine'); library(gradops)")
  expect_identical(masked[-1], "gradops: `jacobian()` masks the namesake in 'mine'.")
  silent <- "attach(list(jacobian = mean)); suppressPackageStartupMessages(library(gradops))"
  expect_identical(fresh(silent), character())
  later <- fresh("library(gradops); attach(list(jacobian = mean, sd = mean), name = 'mine')")
  expect_match(paste(later, collapse = "\n"), "masked from package:gradops:\n\n *jacobian, sd")
})

# Returns the page's list of masked functions with R's function for each, by section.
masked_by_page <- function() {
  file <- test_path("..", "..", "man", "gradops-masked.Rd")
  page <- if (file.exists(file)) tools::parse_Rd(file) else tools::Rd_db("gradops")[["gradops-masked.Rd"]]
  sections <- Filter(function(part) identical(attr(part, "Rd_tag"), "\\section"), page)
  lapply(sections, function(section) {
    lines <- strsplit(paste(unlist(section[[2]]), collapse = ""), "\n")[[1]]
    rows <- grep("^\\S+ +(base|stats)::\\S+ *$", lines, value = TRUE)
    strsplit(trimws(gsub("`", "", rows)), " +")
  })
}

test_once("the page of masked functions is complete", {
  sections <- masked_by_page()
  rows <- unlist(sections, recursive = FALSE)
  names <- vapply(rows, `[`, "", 1)
  expect_identical(anyDuplicated(names), 0L)
  attached <- c("base", "methods", "datasets", "utils", "grDevices", "graphics", "stats")
  of_r <- unlist(lapply(attached, function(package) ls(as.environment(paste0("package:", package)), all.names = TRUE)))
  same_since_4.4 <- "%||%"
  if (getRversion() >= "4.3.0") names <- setdiff(names, c("%*%", "@")) # have methods
  exported <- intersect(parseNamespaceFile("gradops", dirname(find.package("gradops")))$exports, of_r)
  # Else run `make docs`: the page lists what NAMESPACE exports.
  expect_setequal(names, setdiff(exported, same_since_4.4))
  for (row in rows) {
    original <- strsplit(row[2], "::", fixed = TRUE)[[1]]
    expect_identical(original[2], row[1])
    expect_true(is.function(getExportedValue(original[1], original[2])), info = row[2])
  }
  no_generics <- vapply(sections[[1]], `[`, "", 1)
  expect_gt(length(no_generics), 100)
  generic <- function(name) {
    original <- get(name, envir = asNamespace("stats"))
    name %in% .S3PrimitiveGenerics || !is.primitive(original) && utils::isS3stdGeneric(original)
  }
  expect_identical(Filter(generic, no_generics), character())
  skip_on_cran()
  skip_if(is_loaded_from_source())
  listed <- fresh("suppressMessages(library(gradops)); writeLines(conflicts(detail = TRUE)[['package:gradops']])")
  expect_setequal(names, setdiff(listed, same_since_4.4))
})

test_each("a method can be added as docs/architecture.md describes", {
  page <- test_path("..", "..", "docs", "architecture.md")
  skip_if(!file.exists(page), "the page is no part of the package")
  lines <- readLines(page)
  start <- match("```r", lines)
  toy <- new.env(parent = asNamespace("gradops"))
  eval(parse(text = lines[(start + 1):(start + match("```", lines[-seq_len(start)]) - 1)]), toy)
  register("kappa", tensor_classes, toy$kappa_tensor, baseenv())
  table <- get(".__S3MethodsTable__.", baseenv())
  withr::defer(rm(list = paste0("kappa.", tensor_classes), envir = table))
  m <- matrix(c(2, 1, 0.5, 3), 2)
  of <- function(m) kappa(m, exact = TRUE)
  expect_equal(as.vector(of(op_convert_to_tensor(m))), of(m))
  step <- matrix(c(0, 1e-5, 0, 0), 2)
  expect_equal(gradient(of, m)[2, 1], (of(m + step) - of(m - step)) / 2e-5, tolerance = 1e-5)
})

test_once("the namespace calls no internal functions of R, as R CMD check demands; attached functions are quick", {
  namespace <- as.list(asNamespace("gradops"))
  calls_internal <- function(f) is.function(f) && ".Internal" %in% all.names(body(f))
  expect_identical(names(Filter(calls_internal, namespace)), character())
  attached <- as.list(as.environment("package:gradops"))
  quick <- names(Filter(calls_internal, attached))
  expect_gt(length(quick), 20)
})

# Returns the arguments of R's function that `f` lacks, and the shared arguments with two different defaults.
unlike_r <- function(f, original) {
  ours <- as.list(formals(args(f)))
  theirs <- as.list(formals(args(original)))
  differs <- function(name) {
    given <- !rlang::is_missing(ours[[name]]) && !rlang::is_missing(theirs[[name]])
    given && !isTRUE(all.equal(ours[[name]], theirs[[name]]))
  }
  shared <- as.character(intersect(names(ours), names(theirs)))
  c(setdiff(names(theirs), c(names(ours), "...")), Filter(differs, shared))
}

test_once("namesakes have the arguments and defaults of the running R", {
  later_than_4.2 <- list(
    toeplitz = c("r", "symmetric"), crossprod = "...", tcrossprod = "...", zapsmall = c("mFUN", "min.d")
  )
  of_any_arguments <- c("by", "filter", "formatC", "prettyNum", "%*%", "%||%", "@")
  for (name in setdiff(unlist(masked_functions(getNamespaceExports("gradops"))), of_any_arguments)) {
    f <- getExportedValue("gradops", name)
    original <- get(name, asNamespace(package_of_r(name)))
    in_body <- if (name == "Vectorize") "vectorize.args" # whose default is a variable in R's body
    expect_identical(setdiff(unlike_r(f, original), in_body), character(), info = name)
    added <- setdiff(names(formals(args(f))), names(formals(args(original))))
    expect_identical(setdiff(added, later_than_4.2[[name]]), character(), info = name)
  }
})

test_once("methods have the arguments and defaults of the running R", {
  # These pass `...` on, refuse it, or have no use for it.
  pass_on <- c(
    "Summary", "aperm", "solve", "chol", "qr", "unique", "duplicated", "all.equal", "summary", "format", "toString",
    "print", "tail", "str", "lag", "window", "time", "start", "end", "sub", "gsub", "trimws", "strsplit", "nchar",
    "rowSums", "colSums", "rowMeans", "colMeans"
  )
  for (methods in c(methods_of_tensors(), namesakes())) {
    for (name in setdiff(names(methods), pass_on)) {
      home <- asNamespace(package_of_r(name) %||% "base")
      original <- get0(paste0(name, ".default"), home) %||% get(name, home)
      expect_identical(unlike_r(methods[[name]], original), character(), info = name)
    }
  }
})
