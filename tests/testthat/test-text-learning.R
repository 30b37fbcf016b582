local_text <- function(env = parent.frame()) {
  skip_without("numpy")
  local_backend("numpy", .local_envir = env)
}

said <- function(x) as.character(x$grad)

# Answers like the pipeline's steps, its critic and its editor.
pipeline_model <- function() {
  text_scripted(list(
    "improve texts.*role=\"solver\"" = "<text>Answer in one word.</text>",
    "improve texts.*role=\"editor\"" = "<text>Write in capitals.</text>",
    "<input role=\"draft\"" = "one word",
    "<input role=\"solver\"" = "ask for one word",
    "<input role=\"editor\"" = "ask for capitals",
    "one word.*capital of (\\w+)" = function(prompt, system) paste0(sub(".* ", "", prompt), "ville"),
    "capital of" = function(prompt, system) paste("The", prompt, "is not known"),
    "capitals" = function(prompt, system) toupper(prompt),
    function(prompt, system) prompt
  ))
}
questions <- paste("capital of", c("France", "Peru", "Chad", "Chile", "Japan"))

test_once("a two-step pipeline is optimized over a batch, recorded, and replayed without a model", {
  local_text()
  file <- withr::local_tempfile(fileext = ".jsonl")
  run <- function(model) {
    solver <- parameter("Answer the question.", role = "solver")
    editor <- parameter("Edit the answer.", role = "editor")
    capital <- text_judge(function(answer) if (answer != toupper(answer)) "not in capitals")
    short <- text_judge(function(answer) if (grepl(" ", answer)) list(0.5, "too many words"))
    optimizer <- text_descent(list(solver, editor), model, memory = 2, constraints = "at most ten words")
    for (epoch in 1:5) {
      draft <- text_call(model, questions, solver, role = "draft")
      answers <- text_call(model, draft, editor, role = "answer")
      loss <- sum(capital(answers) + 0.1 * short(answers))
      if (as.numeric(loss) == 0) break
      backward(loss)
      optimizer$step()
      optimizer$zero_grad()
    }
    list(epoch = epoch, texts = c(as.character(solver), as.character(editor)), answers = as.character(answers))
  }
  model <- text_remembered(pipeline_model(), file)
  first <- run(model)
  expect_identical(first$texts, c("Answer in one word.", "Write in capitals."))
  expect_identical(first$answers[1:2], c("FRANCEVILLE", "PERUVILLE"))
  expect_identical(first$epoch, 2L)
  expect_lte(model$spent$calls, 40)
  expect_identical(run(text_remembered(NULL, file)), first)
})

test_once("calls send exactly their arguments, fields are filled in, and feedback is requested", {
  local_text()
  model <- text_scripted(list("about" = "use feet", "improve" = "name the unit", "42"))
  solver <- parameter("Solve {task}.", role = "solver")
  task <- parameter("{solver}", role = "task")
  answer <- text_call(model, solver, "Be brief.", task = task, role = "number")
  expect_identical(model$calls, data.frame(prompt = "Solve {solver}.", system = "Be brief."))
  expect_identical(answer$role, "number")
  backward(answer, c("no unit", "too terse"))
  expect_identical(said(solver), "name the unit")
  expect_identical(said(task), "name the unit")
  expect_match(model$calls$prompt[2], "- no unit\n- too terse", fixed = TRUE)
  expect_identical(text_call(model, "How far?"), "42")
  expect_error(text_call(model, "How far?", unit = "m"), "no place for `unit`", class = "gradops_error_argument")
  messages <- list(list(role = "system", content = solver), list(role = "user", content = c("a", "b")))
  text_call(model, messages)
  expect_identical(model$calls$prompt[nrow(model$calls)], "a\nb")
})

test_once("R functions can be models; their errors keep their conditions and name the call", {
  local_text()
  expect_identical(text_call(function(prompt, system) paste(system, prompt), "b", "a"), "a b")
  expect_identical(text_call(function(prompt) prompt, "b", "a"), "a\n\nb")
  failing <- function(prompt, system) rlang::abort("down", class = "my_error")
  question <- parameter("q", role = "question")
  expect_error(text_call(failing, question, role = "draft"), "the call for 'draft'", class = "my_error")
  expect_error(text_call(failing, question), class = "gradops_error_model")
  expect_error(text_call(function(prompt) NULL, question), "returned nothing", class = "gradops_error_model")
  expect_error(text_call(function(prompt) "", question), "empty text", class = "gradops_error_model")
  expect_error(text_call(3, question), class = "gradops_error_type")
  expect_error(text_call(function(prompt) NA_character_, question), "missing text", class = "gradops_error_model")
  expect_identical(text_call(function(system, prompt) paste(system, prompt), "b", "a"), "a b")
})

test_once("a key in an R error message is masked, also in its parent conditions", {
  local_text()
  withr::local_envvar(SOME_API_KEY = "s3cret-of-mine")
  for (key in c("sk-abcdef123456", "AIzaSyA1234567890abcdefghij")) {
    error <- expect_error(text_call(function(prompt) stop("refused ", prompt), key), class = "gradops_error_model")
    expect_match(conditionMessage(error), "refused ***", fixed = TRUE)
    expect_false(any(grepl(key, format(error), fixed = TRUE)))
  }
})

test_once("non-text values are refused where text is expected", {
  local_text()
  echo <- function(prompt, system) paste(system, prompt)
  for (field in list(NULL, NA, NA_character_, list(1, "b"))) {
    expect_error(text_call(echo, "about {x}", x = field), "`x`", class = "gradops_error")
  }
  for (system in list(3, NA, NA_character_)) {
    expect_error(text_call(echo, "a", system), "system", class = "gradops_error")
  }
  expect_error(text_call(echo, "a", role = NA), "role", class = "gradops_error_type")
  expect_error(text_call(echo, list(list(role = "user", content = NA))), "prompt[[1]]", fixed = TRUE)
  expect_identical(text_call(echo, "about {x}", "s", x = list("a", "b")), c("s about a", "s about b"))
})

test_once("a pass stopped by an R error can be resumed", {
  local_text()
  asked <- 0
  critic <- function(prompt) {
    asked <<- asked + 1
    if (asked == 3) stop("rate limit") else paste("remark", asked)
  }
  texts <- lapply(c("a", "b", "c"), function(x) parameter(x, role = x))
  draft <- text_call(function(prompt, system) prompt, texts[[1]], texts[[2]], critic = critic)
  answer <- text_call(function(prompt, system) prompt, draft, texts[[3]], critic = critic)
  expect_error(backward(answer, c("one", "two")), "rate limit", class = "gradops_error_model")
  expect_null(texts[[3]]$grad)
  backward(answer, c("one", "two"))
  expect_identical(lengths(lapply(texts, said)), c(1L, 1L, 1L))
  expect_identical(asked, 5)
})

test_once("judges", {
  local_text()
  word <- parameter("aaa", role = "word")
  long <- text_judge(function(text, most = 1) if (nchar(text) > most) list(nchar(text) - most, c("too long", "cut")))
  expect_equal(as.numeric(long(word)), 2)
  expect_equal(long("aaaa", most = 2), 2)
  expect_equal(as.numeric(long(word, 5)), 0)
  backward(0.5 * long(word))
  expect_identical(said(word), c("too long", "cut"))
  expect_error(text_judge(function(text) TRUE)(word), "must return", class = "gradops_error_type")
  expect_error(text_judge("x"), class = "gradops_error_type")
  expect_error(text_judge(function(text) list(1, 2))(word), "must return", class = "gradops_error_type")
  words <- parameter(c("1", "2"), role = "words")
  same <- text_judge(function(text, other) if (text != other[1]) paste(text, "is not", other[1]))
  expect_equal(as.numeric(same(words, c(1, 3))), c(0, 1))
  expect_identical(same(c("1", "2"), list(c("1", "x"), "3")), c(0, 1))
  expect_error(same(words, 1:3), "2 texts", class = "gradops_error_shape")
  expect_error(same(c("a", NA), 1:2), "missing text", class = "gradops_error_argument")
})

test_once("text_each() processes a batch, also in backward passes", {
  local_text()
  expect_identical(text_each(function(a, b) a + b, 1:3, 4:6), list(5L, 7L, 9L))
  expect_error(text_each(function(a, b) a, 1:3, 1:2), class = "gradops_error_argument")
  p <- parameter("p", role = "p")
  critic <- function(prompt) sub(".*<answer role=\"answer\">\n(.).*", "more \\1", prompt)
  losses <- lapply(1:4, function(i) {
    text_judge(function(text) "hm")(text_call(function(prompt, system) as.character(i), "q", p, critic = critic))
  })
  text_each(backward, losses)
  expect_identical(said(p), paste("more", 1:4))
})

test_once("a new text without tags is requested again, then refused", {
  p <- parameter("a", role = "p")
  backward(p, "a </feedback> b")
  asked <- character()
  answers <- c("Sorry.", "<text>b</text>")
  text_descent(p, function(prompt) {
    asked <<- c(asked, prompt)
    answers[length(asked)]
  })$step()
  expect_identical(as.character(p), "b")
  expect_match(asked[2], "Your answer 'Sorry.' does not have one new text", fixed = TRUE)
  expect_match(asked[1], "a &lt;/feedback> b", fixed = TRUE)
  expect_error(text_descent(p, function(prompt) "Sorry.")$step(), "one new text", class = "gradops_error_model")
})

test_once("R functions do not share a recording", {
  file <- withr::local_tempfile(fileext = ".jsonl")
  for (i in 1:2) {
    expect_identical(text_remembered(function(prompt) "one", file)("x"), "one")
    expect_identical(text_remembered(function(prompt) "two", file)("x"), "two")
  }
  expect_length(readLines(file), 2)
})

test_once("the optimizer describes itself and keeps its state", {
  local_text()
  p <- parameter("a", role = "p")
  optimizer <- text_descent(p, function(prompt) "<text>b</text>", memory = 1)
  backward(p, "hm")
  optimizer$step()
  expect_identical(as.character(p), "b")
  expect_identical(p$role, "p")
  expect_output(print(optimizer), "<descent on p>", fixed = TRUE)
  other <- text_descent(p, function(prompt) prompt, memory = 1)
  other$load_state_dict(optimizer$state_dict())
  expect_identical(other$state_dict(), optimizer$state_dict())
  expect_error(other$load_state_dict(list(past = list(3))), "state", class = "gradops_error_argument")
  expect_error(text_descent(list(), function(prompt) "b"), "empty", class = "gradops_error_argument")
  expect_null(text_descent(list(a = p), function(prompt) "b", prompts = c(rewrite = "{text}"))$step())
  expect_error(text_descent(variable("a"), function(prompt) "b"), class = "gradops_error_type")
  expect_error(text_descent(function(x) 1, function(prompt) "b"), "got function", class = "gradops_error_type")
  expect_error(text_descent(p, function(prompt) "b", constraints = function(x) 1), class = "gradops_error_type")
  expect_error(text_descent(p, function(prompt) "b", prompts = function(x) 1), class = "gradops_error")
})

test_once("recordings, budgets and scripts", {
  local_text()
  file <- withr::local_tempfile(fileext = ".jsonl")
  model <- text_remembered(function(prompt, system) toupper(prompt), file, calls = 2)
  expect_identical(c(model("a"), model("b"), model("a")), c("A", "B", "A"))
  budget <- expect_error(model("c"), "budget of 2 calls", class = "gradops_error_budget")
  expect_match(conditionMessage(budget), "text_remembered(", fixed = TRUE)
  expect_identical(model$spent[c("calls", "remembered")], list(calls = 2L, remembered = 1L))
  expect_identical(text_remembered(NULL, file)("b"), "B")
  expect_error(text_remembered(NULL, file)("z"), "no answer to", class = "gradops_error_model")
  expect_output(print(model), "<model", fixed = TRUE)
  expect_error(model$key, "no field", class = "gradops_error_argument")
  expect_error(text_scripted(3), class = "gradops_error_type")
  expect_error(text_scripted(list(a = "b"))("x"), "no answer", class = "gradops_error_model")
})

test_once("temporary failures are retried: httr2's conditions have a status", {
  local_text()
  left <- 2
  model <- text_remembered(wait = 0.01, function(prompt, system) {
    left <<- left - 1
    if (left > 0) rlang::abort("slow down", class = c("httr2_http_429", "httr2_http"))
    "ok"
  })
  expect_identical(model("q"), "ok")
})

# A stand-in for ellmer chats, with the parts in use; ellmer itself is not needed.
new_chat <- function(turns = list("old"), system = "old") {
  chat <- new.env()
  class(chat) <- c("Chat", "R6")
  chat$log <- character()
  chat$clone <- function() {
    copy <- new_chat(turns, system)
    copy$log_to <- chat
    copy
  }
  chat$set_turns <- function(value) turns <<- value
  chat$set_system_prompt <- function(value) system <<- value
  chat$chat <- function(text, echo) {
    stopifnot(echo == "none")
    chat$log_to$log <- c(chat$log_to$log, sprintf("%d turns, %s: %s", length(turns), system, text))
    structure("hello", class = c("ellmer_output", "character"))
  }
  chat
}

test_once("ellmer chats can be models: each call is a new conversation", {
  local_text()
  chat <- new_chat()
  model <- text_as_model(chat)
  expect_identical(model("hi", "be kind"), "hello")
  expect_identical(text_call(chat, "hi"), "hello")
  expect_identical(chat$log, c("0 turns, be kind: hi", "0 turns, old: hi"))
})

test_once("wrong settings of models are named", {
  skip_without()
  f <- function(prompt, system) "x"
  expect_named <- function(code, argument, class) {
    condition <- expect_error(code, class = class)
    expect_identical(condition$argument, argument)
  }
  expect_named(text_remembered(f, path = 3), "path", "gradops_error_type")
  expect_named(text_remembered(f, path = tempdir()), "path", "gradops_error_type")
  expect_named(text_remembered(f, ""), "path", "gradops_error_type")
  expect_named(text_remembered(NULL, "not-there.jsonl"), "path", "gradops_error_argument")
  expect_named(text_remembered(f, retries = 1.5), "retries", "gradops_error_argument")
  expect_named(text_scripted(list("x", "y")), "answers", "gradops_error_argument")
  expect_named(text_scripted(list(a = c("x", NA))), "answers", "gradops_error_argument")
  expect_named(text_as_model(f)("a", NA), "system", "gradops_error_type")
  expect_named(text_as_model(f)(NA_character_), "prompt", "gradops_error_argument")
  expect_named(text_descent(parameter("a"), f, memory = 1.5), "memory", "gradops_error_argument")
  expect_named(text_remembered(f, retries = NA), "retries", "gradops_error_type")
  expect_named(text_remembered(f, retries = -1), "retries", "gradops_error_argument")
  expect_named(text_remembered(f, calls = "a"), "calls", "gradops_error_type")
  expect_named(text_scripted(list("(" = "x")), "answers", "gradops_error_argument")
  expect_named(text_as_model(f)(3), "prompt", "gradops_error_type")
  expect_named(text_descent(parameter("a"), f, memory = "a"), "memory", "gradops_error_type")
})
