local_text <- function(env = parent.frame()) {
  skip_without("numpy")
  local_backend("numpy", .local_envir = env)
}

test_once("feedback on a text reaches the texts it was made from", {
  local_text()
  instruction <- parameter("Write a haiku", role = "instruction")
  topic <- parameter("rain", role = "topic")
  prompt <- instruction + " about " + topic
  expect_identical(as.character(prompt), "Write a haiku about rain")
  expect_identical(prompt$role, "instruction and topic")
  backward(prompt, "say how many syllables")
  expect_identical(as.character(instruction$grad), "say how many syllables")
  expect_identical(instruction$grad$role, "feedback on instruction")
  backward("Please: " + instruction, "and be kind")
  expect_identical(as.character(instruction$grad), c("say how many syllables", "and be kind"))
  expect_identical(as.character(topic$grad), "say how many syllables")
  instruction$grad <- NULL
  expect_null(instruction$grad)
  expect_identical(as.character(autodiff_grad(topic + "!", topic, "wet")[[1]]), "wet")
})

test_once("several texts are processed elementwise", {
  local_text()
  words <- parameter(c("one", "two", "three"), role = "words")
  expect_length(words, 3)
  expect_identical(as.character(words + c("1", "2", "3")), c("one1", "two2", "three3"))
  expect_identical(as.character(text_upper(words)), toupper(c("one", "two", "three")))
  expect_identical(as.character(words[c(3, 1)]), c("three", "one"))
  expect_identical(as.character(words[-1]), c("two", "three"))
  expect_identical(as.character(words[[2]]), "two")
  expect_identical(as.character(words[c(FALSE, TRUE, TRUE)]), c("two", "three"))
  expect_identical(as.character(sum(words)), "onetwothree")
  backward(words[2], "second")
  backward(sum(words), "all")
  expect_identical(as.character(words$grad), c("second", "all"))
})

test_once("text_ functions", {
  local_text()
  a <- parameter(" A b ", role = "a")
  b <- parameter("c", role = "b")
  expect_identical(as.character(text_join(a, b, "d", separator = "/")), " A b /c/d")
  expect_identical(as.character(text_join(b, b)), "cc")
  parts <- text_split(a)
  expect_identical(vapply(parts, as.character, ""), c("A", "b"))
  expect_identical(as.character(text_split(b, "c")[[1]]), "")
  expect_identical(as.character(text_strip(a)), "A b")
  expect_identical(as.character(text_lower(a)), " a b ")
  expect_identical(as.character(text_replace(a, "b", "x")), " A x ")
  filled <- text_format("{x}{} {n:.1f}", b, x = a, n = variable(3.14))
  expect_identical(as.character(filled), " A b c 3.1")
  backward(filled, "told")
  backward(parts[[2]], "part")
  expect_identical(as.character(a$grad), c("told", "part"))
  expect_identical(as.character(b$grad), "told")
})

test_once("an R function that calls a model is a text operation that writes its feedback", {
  local_text()
  asked <- character()
  model <- function(prompt) {
    asked <<- c(asked, prompt)
    if (startsWith(prompt, "Criticise")) "name the season" else "Drops on the window"
  }
  ask <- autodiff_function(
    forward = function(ctx, prompt) {
      ctx$save_for_backward(prompt)
      model(as.character(prompt))
    },
    backward = function(ctx, feedback) {
      prompt <- as.character(ctx$saved_tensors[[1]])
      model(sprintf("Criticise '%s', of which was said: %s", prompt, paste(as.character(feedback), collapse = "; ")))
    }
  )
  instruction <- parameter("A haiku about {topic}, please.", role = "instruction")
  answer <- ask(text_format(instruction, topic = "rain"))
  expect_identical(as.character(answer), "Drops on the window")
  backward(answer, "which rain?")
  expect_identical(asked, c(
    "A haiku about rain, please.", "Criticise 'A haiku about rain, please.', of which was said: which rain?"
  ))
  expect_identical(as.character(instruction$grad), "name the season")

  terse <- op_custom_gradient(function(text) {
    list(substr(as.character(text), 1, 3), function(upstream) paste("shortened, then:", as.character(upstream)))
  })
  topic <- parameter("raindrops")
  backward(terse(topic), "cryptic")
  expect_identical(as.character(topic$grad), "shortened, then: cryptic")
})

test_each("text and numbers share one graph", {
  score <- autodiff_function(
    forward = function(ctx, x, text) {
      ctx$save_for_backward(x, text)
      x * nchar(as.character(text))
    },
    backward = function(ctx, upstream) {
      saved <- ctx$saved_tensors
      list(upstream * nchar(as.character(saved[[2]])), sprintf("counts %g times", as.numeric(upstream)))
    }
  )
  x <- parameter(2)
  text <- parameter("four")
  if (backend == "torch") { # torch's graph holds tensors only
    expect_error(score(x, text), "one backend", class = "gradops_error_mixed_backends")
  } else {
    backward(3 * score(x, text))
    expect_equal(as.numeric(x$grad), 12)
    expect_identical(as.character(text$grad), "counts 3 times")
  }
})

test_once("non-text values", {
  local_text()
  expect_error(variable(c("a", NA)), "missing text, at 2", class = "gradops_error_argument")
  expect_error(parameter("abc", "system prompt"), "requires_grad", class = "gradops_error")
  a <- parameter("a")
  expect_error(a + 1, "text", class = "gradops_error_type")
  expect_error(exp(a), class = "gradops_error")
  expect_error(backward(a + "b"), "backward(text", fixed = TRUE, class = "gradops_error_gradient")
  expect_error(backward(a + "b", 1), class = "gradops_error_type")
  expect_error(text_format("{q}"), "q", class = "gradops_error_type")
  expect_error(text_join(1), class = "gradops_error_type")
  expect_false(with_no_grad(a + "b")$requires_grad)
  expect_identical(as.character(variable()), "")
  jagged <- list(list("a", list("b")), list("a", 3), list(c("a", "b"), "c"), list(list(1, 2), list(3)))
  for (wrong in c(jagged, list(NULL, matrix(c("a", "b")), factor("a")))) {
    expect_error(variable(wrong), class = "gradops_error_type")
  }
  for (role in list(3, NA, c("a", "b"))) expect_error(variable("a", role = role), "role", class = "gradops_error_type")
  expect_error(text_format("{x}", x = NA), "missing", class = "gradops_error_argument")
  expect_error(text_format("{x}", x = NULL), "nothing is given", class = "gradops_error_type")
  expect_error(text_replace(a, "a", NA), class = "gradops_error_type")
  expect_identical(text_format("{x} {n}", x = text_strip(" b "), n = 3), "b 3")
  a$grad <- "remark"
  expect_identical(a$grad$role, "feedback")
})

test_once("a missing result of an R function is missing text, not the word NA", {
  local_text()
  missing <- autodiff_function(function(ctx, x) NA_character_, function(ctx, feedback) NULL)
  expect_error(missing(parameter("a")), "missing text", class = "gradops_error_argument")
  mute <- autodiff_function(function(ctx, x) as.character(x), function(ctx, feedback) NA_character_)
  expect_error(backward(mute(parameter("a")), "hm"), "missing text", class = "gradops_error_argument")
})

test_once("feedback of an R function may be named by argument", {
  local_text()
  join <- autodiff_function(
    function(ctx, a, b = "") paste(as.character(a), as.character(b)),
    function(ctx, feedback) list(b = "on b", a = c("one", "two"))
  )
  a <- parameter("a")
  b <- parameter("b")
  backward(join(b = b, a = a), "hm")
  expect_identical(as.character(a$grad), c("one", "two"))
  expect_identical(as.character(b$grad), "on b")
  messages <- autodiff_function(
    function(ctx, messages, temperature = 0) as.character(messages[[1]]$content),
    function(ctx, feedback) list(messages = list(list(content = c("three", "four"))))
  )
  a$grad <- NULL
  backward(messages(messages = list(list(role = "user", content = a))), "hm")
  expect_identical(as.character(a$grad), c("three", "four"))
})

test_each("values can be written like an optimizer does", {
  x <- parameter(c(1, 2))
  for (i in 1:2) {
    backward(sum(x^2))
    value(x) <- x$detach() - 0.25 * x$grad
    x$grad <- NULL
  }
  expect_equal(as.numeric(x), c(0.25, 0.5))
  expect_true(x$requires_grad)
  if (backend != "torch") {
    text <- parameter("old", role = "prompt")
    value(text) <- "new"
    expect_identical(as.character(text + "!"), "new!")
    expect_identical(text$role, "prompt")
    expect_error(value(text) <- 3, class = "gradops_error_type")
    expect_error(value(text) <- NA_character_, class = "gradops_error_argument")
  }
})

test_once("operations receive texts inside lists and by name, and an evaluation starts from its own feedback", {
  local_text()
  talk <- autodiff_function(
    forward = function(ctx, messages, tone) paste(as.character(messages[[1]]$content), as.character(tone)),
    backward = function(ctx, feedback) list(list(list(content = "first"), NULL), "by name"),
    evaluator = TRUE
  )
  a <- parameter("a", role = "a")
  b <- parameter("b", role = "b")
  verdict <- talk(list(list(role = "system", content = a), list(role = "user", content = "hi")), tone = b)
  expect_identical(as.character(verdict), "a b")
  backward(verdict)
  expect_identical(as.character(a$grad), "first")
  expect_identical(as.character(b$grad), "by name")
})
