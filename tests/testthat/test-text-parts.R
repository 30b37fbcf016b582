local_text <- function(env = parent.frame()) {
  skip_without("numpy")
  local_backend("numpy", .local_envir = env)
}

said <- function(x) as.character(x$grad)
png <- as.raw(c(0x89, 0x50, 0x4e, 0x47))
png_url <- "data:image/png;base64,iVBORw=="

# A critic whose remark is the name of the input.
naming_critic <- function() {
  text_scripted(list(function(prompt) {
    words <- paste(vapply(as.list(prompt), function(part) if (is.character(part)) part else "", ""), collapse = "")
    sub('.*<input role="([^"]*)".*', "about \\1", words)
  }))
}

test_once("files are parts of prompts and remarks, which R models get in order", {
  local_text()
  path <- withr::local_tempfile(fileext = ".png")
  writeBin(png, path)
  photo <- text_file(png, role = "photo")
  expect_identical(text_file(path)$url, png_url)
  expect_identical(list(photo$url, photo$media_type, photo$role, photo$kind), list(png_url, "image/png", "photo", "image"))
  expect_output(print(photo), "File('image/png', 4 bytes, role='photo')", fixed = TRUE)
  seen <- NULL
  model <- function(prompt, system) {
    seen <<- prompt
    "a boat"
  }
  question <- parameter("What is on {photo}, in {n} words?", role = "question")
  critic <- naming_critic()
  answer <- text_call(model, question, photo = photo, n = 3, critic = critic)
  expect_identical(seen[-2], list("What is on ", ", in 3 words?"))
  expect_identical(seen[[2]]$url, png_url)
  backward(answer, list("more like this", text_file(png, role = "target")))
  expect_identical(said(question), "about question")
  expect_match(critic$calls$prompt, "What is on [image photo], in 3 words?", fixed = TRUE)
  expect_match(critic$calls$prompt, "- more like this[image target]", fixed = TRUE)
  expect_identical(text_scripted(list("[image photo]" = "yes"))(list("see ", photo)), "yes")
  answers <- text_call(function(prompt) prompt[[2]]$role, "Is it {image}?", image = list(photo, text_file(png, role = "b")))
  expect_identical(answers, c("photo", "b"))
})

test_once("tools are called by name, and their descriptions get feedback", {
  local_text()
  about <- parameter("The weather.", role = "about")
  city <- parameter("a city", role = "city")
  weather <- text_tool(
    function(city, days = 1) paste0(city, ": ", 12 * days, " C"), about,
    name = "weather",
    arguments = list(city = list(type = "string", description = city), days = list(type = "integer", required = FALSE))
  )
  model <- text_scripted(list(
    "Tool: Rome: 24 C" = "It is warm.", "error: `city` is missing" = text_tool_call("weather", city = "Rome", days = 2),
    "warm" = text_tool_call("weather", days = 2)
  ))
  critic <- naming_critic()
  answer <- text_call(model, "Is it warm?", tools = list(weather), critic = critic)
  expect_identical(as.character(answer), "It is warm.")
  expect_identical(model$calls$prompt[2], "User: Is it warm?\n\nAssistant: weather({\"days\": 2.0})\n\nTool: error: `city` is missing")
  calls <- text_tool_calls(answer)
  expect_identical(as.character(calls[[2]]$request), "weather({\"city\": \"Rome\", \"days\": 2.0})")
  expect_identical(calls[[2]]$arguments, list(city = "Rome", days = 2))
  expect_identical(as.character(calls[[2]]$result), "Rome: 24 C")
  backward(calls[[2]]$request, "days?", retain_graph = TRUE)
  expect_identical(c(said(about), said(city)), c("about about", "about city"))
  backward(answer, "which unit?")
  expect_identical(said(about), c("about about", "about about"))
  expect_match(critic$calls$prompt[3], "- weather: The weather.\n  - city (text): a city", fixed = TRUE)
})

test_once("R models call tools themselves; errors of tools keep their class", {
  local_text()
  weather <- function(city) paste0(city, ": 12 C")
  model <- function(prompt, system, tools) paste("It is", tools$weather(city = "Rome"))
  answer <- text_call(model, "Cold?", tools = list(text_tool(weather, "The weather.")))
  expect_identical(answer, "It is Rome: 12 C")
  failing <- text_tool(function(city) rlang::abort("no wind", class = "my_error"), "Fails.", name = "weather")
  expect_error(text_call(model, variable("Cold?"), tools = failing), "no wind", class = "gradops_error_model")
  expect_error(text_call(function(prompt) "x", "Cold?", tools = failing), "takes no tools", class = "gradops_error_type")
  expect_error(text_call(model, "Cold?", tools = weather), "text_tool", class = "gradops_error_type")
  expect_error(text_tool(weather), "`description` must be one text", class = "gradops_error_type")
  expect_error(text_tool(function(x) x, "Does."), "`name`", class = "gradops_error_type")
  expect_error(text_tool(weather, "Does.", arguments = 3), "`arguments` must be a list", class = "gradops_error_type")
  expect_error(text_file("none.png"), "no file", class = "gradops_error_argument")
  expect_error(text_file(3), "`source`", class = "gradops_error_type")
  expect_error(text_tool_call("f", 3), "by name", class = "gradops_error_argument")
})

test_once("answers have typed fields, differentiated one by one", {
  local_text()
  system <- parameter("Be fair.", role = "instruction")
  model <- text_scripted(list("{\"city\": \"Rome\", \"score\": 7, \"kind\": \"old\", \"ok\": true}"))
  critic <- naming_critic()
  returns <- list(
    city = "the name of a city", score = "number", kind = list(enum = list("old", "new")), ok = list(type = "boolean")
  )
  answer <- text_call(model, "Rate it.", system, returns = returns, critic = critic)
  expect_match(model$calls$prompt, "- city (text): the name of a city\n- score (a number)\n- kind (one of \"old\", \"new\")\n- ok", fixed = TRUE)
  expect_identical(names(answer), names(returns))
  expect_identical(answer$ok, TRUE)
  expect_identical(as.numeric(answer$score), 7)
  loss <- (answer$score - 3)^2 + text_judge(function(city) "too big")(answer$city)
  backward(loss)
  expect_identical(said(system), "about instruction")
  expect_match(critic$calls$prompt, "- `score` should be lower than 7", fixed = TRUE)
  expect_match(critic$calls$prompt, "- `city`: too big", fixed = TRUE)
  plain <- text_call(model, "Rate it.", returns = returns)
  expect_identical(plain[1:2], list(city = "Rome", score = 7))
  expect_identical(as.character(attr(plain, "text")), model("x"))
  expect_error(text_call(function(prompt) "?", "Rate it.", returns = returns), "`returns`", class = "gradops_error_model")
  expect_error(text_call(model, "Rate it.", returns = 3), "`returns`", class = "gradops_error_type")
})

# Stand-ins for ellmer's S7 objects, whose properties are attributes; ellmer itself is not needed.
s7 <- function(class, ..., object = list()) {
  object <- if (is.function(object)) object else structure(list(), names = character())
  attributes(object) <- list(...)
  class(object) <- c(paste0("ellmer::", class), "S7_object")
  object
}

test_once("ellmer's contents, types and tools are taken", {
  local_text()
  text <- s7("TypeBasic", type = "string", description = "a city", required = TRUE)
  number <- s7("TypeBasic", type = "number", required = FALSE)
  enum <- s7("TypeEnum", values = c("C", "F"), required = TRUE)
  several <- s7("TypeArray", items = number, required = TRUE)
  object <- s7("TypeObject", properties = list(city = text, days = number, unit = enum, all = several))
  model <- text_scripted(list("{\"city\": \"Rome\", \"unit\": \"C\", \"all\": [1, 2]}"))
  answer <- text_call(model, "Which?", returns = object)
  expect_identical(answer[c("city", "days", "unit")], list(city = "Rome", days = NULL, unit = "C"))
  expect_match(
    model$calls$prompt,
    "- city (text): a city\n- days (a number; may be left out)\n- unit (one of \"C\", \"F\")\n- all (a list, each a number)",
    fixed = TRUE
  )
  inline <- s7("ContentImageInline", type = "image/png", data = "iVBORw==")
  remote <- s7("ContentImageRemote", url = "https://example.org/a.png")
  pdf <- s7("ContentPDF", type = "application/pdf", data = "JVBERg==", filename = "a.pdf")
  urls <- function(prompt) paste(vapply(prompt[-1], function(part) part$url, ""), collapse = " ")
  expected <- paste(png_url, "https://example.org/a.png", "data:application/pdf;base64,JVBERg==")
  expect_identical(text_call(urls, list("See", inline, remote, pdf)), expected)
  expect_identical(text_as_model(urls)(list("See", inline, remote, pdf)), expected)
  tool <- s7(
    "ToolDef",
    object = function(city) paste0(city, ": 12"), name = "weather", description = "The weather.",
    arguments = s7("TypeObject", properties = list(city = text))
  )
  model <- function(prompt, system, tools) tools$weather(city = "Rome")
  expect_identical(text_call(model, "Cold?", tools = list(tool)), "Rome: 12")
})

# Use these functions in place of ellmer's, which is not installed everywhere.
local_ellmer <- function(functions, env = parent.frame()) {
  ns <- asNamespace("gradops")
  before <- ns$from_ellmer
  put <- function(value) {
    unlockBinding("from_ellmer", ns)
    assign("from_ellmer", value, ns)
    lockBinding("from_ellmer", ns)
  }
  withr::defer(put(before), envir = env)
  put(function(name) functions[[name]])
}

test_once("chats of ellmer get files and tools in ellmer's form, and their calls are recorded", {
  local_text()
  local_ellmer(list(
    content_image_url = function(url) paste("image", url),
    content_pdf_url = function(url) paste("pdf", url),
    type_from_schema = function(text) paste("type", text),
    tool = function(f, description, arguments, name) list(f = f, about = list(description, arguments, name))
  ))
  chat <- new.env()
  class(chat) <- c("Chat", "R6")
  chat$clone <- function() chat
  chat$set_turns <- function(value) NULL
  chat$set_system_prompt <- function(value) NULL
  chat$register_tool <- function(tool) chat$tool <- tool
  chat$chat <- function(..., echo) {
    chat$said <- list(...)
    paste("It is", chat$tool$f(city = "Rome"))
  }
  about <- parameter("The weather.", role = "about")
  weather <- text_tool(function(city, days = 1) paste0(city, ": 12"), about, "weather")
  answer <- text_call(chat, list("Cold?", text_file(png)), tools = list(weather), critic = function(prompt) "in Celsius")
  expect_identical(as.character(answer), "It is Rome: 12")
  expect_identical(chat$said, list("Cold?", paste("image", png_url)))
  expect_identical(
    chat$tool$about,
    list("The weather.", list(city = 'type {"type": "string"}', days = 'type {"type": "string"}'), "weather")
  )
  expect_identical(as.character(text_tool_calls(answer)[[1]]$request), "weather({\"city\": \"Rome\"})")
  backward(answer, "which unit?")
  expect_identical(said(about), "in Celsius")
})

test_once("groups, learning rates and scores of the optimiser", {
  local_text()
  first <- parameter("a b c d", role = "first")
  second <- parameter("e f", role = "second")
  slow <- text_scripted(list("changes 2 words" = "<text>a b c x</text>", "<text>a b x y</text>"))
  fast <- text_scripted(list("<text>y</text>"))
  optimizer <- text_descent(
    list(list(params = list(first), learning_rate = 0.25, constraints = "no names"), list(params = second, model = fast)),
    slow
  )
  for (x in list(first, second)) backward(x, "hm")
  optimizer$step()
  expect_identical(c(as.character(first), as.character(second)), c("a b c x", "y"))
  expect_match(slow$calls$prompt[1], "- no names\n- Change at most 1 of the 4 words.", fixed = TRUE)
  expect_length(optimizer$params, 2)
  x <- parameter("start", role = "x")
  backward(x, "hm")
  scores <- c(start = 0.5, low = 0.2, high = 0.75)
  model <- text_scripted(list("Improve on 'low'" = "<text>high</text>", "<text>low</text>"))
  optimizer <- text_descent(x, model, score = function() scores[[as.character(x)]], candidates = 2)
  optimizer$step()
  expect_identical(as.character(x), "high")
  expect_identical(optimizer$trials(), data.frame(score = c(0.5, 0.2, 0.75), accepted = c(TRUE, FALSE, TRUE)))
  failing <- text_descent(x, text_scripted(list("<text>low</text>")), score = function() rlang::abort("no", class = "my_error"))
  expect_error(failing$step(), class = "my_error")
  expect_identical(as.character(x), "high")
  expect_error(text_descent(x, model, learning_rate = 2), "`learning_rate`", class = "gradops_error_argument")
  expect_error(text_descent(x, model, score = 3), "`score`", class = "gradops_error_type")
  expect_error(text_descent(list(list(params = x, lr = 1)), model), "no option 'lr'", class = "gradops_error_argument")
})
