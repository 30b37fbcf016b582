local_text <- function(env = parent.frame()) {
  skip_without("numpy")
  local_backend("numpy", .local_envir = env)
}

said <- function(x) as.character(x$grad)

test_once("base R's string functions are recorded on texts, with base R's results", {
  local_text()
  strings <- c(" one two ", "two")
  recorded <- list(
    paste = function(x) paste("a", x, 1:2, sep = "-"), collapsed = function(x) paste(x, collapse = "+"),
    paste0 = function(x) paste0(x, "!"), sprintf = function(x) sprintf("%s is %d", x, 3L),
    gsub = function(x) gsub("[ot]", "_", x), sub = function(x) sub("o", "0", x, fixed = TRUE),
    toupper = toupper, tolower = tolower, trimws = trimws, left = function(x) trimws(x, "left"),
    substr = function(x) substr(x, 2, 4), substring = function(x) substring(x, 2),
    chartr = function(x) chartr("o", "0", x), casefold = function(x) casefold(x, upper = TRUE), toString = toString,
    format = function(x) format(x, width = 12),
    c = function(x) c(x, "new"), rep = function(x) rep(x, 2), rev = function(x) rev(x)
  )
  for (name in names(recorded)) {
    f <- recorded[[name]]
    x <- parameter(strings, role = "words")
    y <- f(x)
    expect_true(is_tensor(y), info = name)
    expect_identical(as.character(y), as.character(f(strings)), info = name)
    backward(y, "hm")
    expect_identical(said(x), "hm", info = name)
  }
})

test_once("strings are split on the tape and inspected in R", {
  local_text()
  x <- parameter(c("a b", "c"), role = "words")
  parts <- strsplit(x, " ")
  expect_identical(lapply(parts, as.character), base::strsplit(c("a b", "c"), " "))
  backward(parts[[1]][2], "on b")
  optimizer <- text_descent(x, function(prompt) "<text>new</text>")
  optimizer$step()
  expect_identical(as.character(x), c("new", "c"))
  expect_identical(nchar(x), c(3L, 1L))
  expect_identical(startsWith(x, "n"), c(TRUE, FALSE))
  expect_identical(endsWith(x, "c"), c(FALSE, TRUE))
  expect_error(gsub("n", NA, x), "gsub() has a missing text", fixed = TRUE, class = "gradops_error_argument")
})

test_once("as.character() returns a text's words in functions called by gradops", {
  local_text()
  fill <- autodiff_function(
    function(ctx, sentence, digits) {
      sprintf(as.character(sentence), format(2.345, digits = as.integer(as.character(digits))))
    },
    function(ctx, feedback) list(as.character(feedback), NULL)
  )
  sentence <- parameter("It is %s.", role = "sentence")
  report <- fill(sentence, parameter("2", role = "digits"))
  expect_identical(as.character(report), "It is 2.3.")
  backward(report, "shorter")
  expect_identical(said(sentence), "shorter")
})

test_once("remarks on one of several results reach the text at that position", {
  local_text()
  x <- parameter(c("a", "b"), role = "words")
  template <- parameter("%s!", role = "template")
  backward(toupper(sprintf(template, x))[2], "louder")
  backward(rev(x)[1], "last")
  expect_identical(said(x), c("louder", "last"))
  optimizer <- text_descent(x, function(prompt) "<text>new</text>")
  optimizer$step()
  expect_identical(as.character(x), c("a", "new"))
  expect_identical(said(template), "louder")
})

test_once("R's own values use base R, and numbers convert to their values", {
  local_text()
  expect_identical(paste("a", 1:2), base::paste("a", 1:2))
  expect_identical(sprintf("%.1f", pi), "3.1")
  expect_identical(gsub("a", "b", c(x = "aa")), base::gsub("a", "b", c(x = "aa")))
  expect_identical(trimws(" a ", "left"), "a ")
  expect_identical(substr("abc", 2, 3), "bc")
  expect_identical(format(3.14159, digits = 3), "3.14")
  expect_identical(paste("x =", variable(2)), "x = 2")
  expect_output(cat("a", 1, "\n"), "a 1")
  p <- parameter("text", role = "p")
  expect_output(cat("<", p, ">\n", sep = ""), "<text>", fixed = TRUE)
})
