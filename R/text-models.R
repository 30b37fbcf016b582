# Models for text_call(): any object that answers a text.

#' Models for texts
#'
#' A model is a function of a prompt and a system prompt that returns a text. `text_as_model()` makes one from any
#' object that answers texts, `text_remembered()` one that records, replays, retries and counts calls, `text_scripted()`
#' one that calls nothing, for tests and documents. Nothing is loaded or sent before a model is passed.
#' @param x One of
#'   - an R function of `(prompt, system)`, in any order if one is named `system` or `system_prompt`; or of the prompt
#'     only, which then starts with the system prompt. A prompt with files is a list of texts and files. With an
#'     argument `tools`, a list of functions by name, it may call tools, or return [text_tool_call()];
#'   - a chat of \pkg{ellmer}: each call is a fresh conversation with its provider and its settings;
#'   - a Python client with `chat$completions$create`, such as that of `openai`, and the name of its `model`;
#'   - a name that Python's `litellm` knows: `"anthropic/claude-..."`;
#'   - a model.
#' @param model The name of the client's model; for `text_remembered()`, an object that `text_as_model()` takes, or
#'   `NULL` to answer only from the recording.
#' @param ... Settings sent with each call: `temperature = 0`. `limit` is the most calls of a Python client that run at
#'   once; 8 of one batch by default.
#' @param path A file of JSON lines, one per call, written when the call ends, so that an interrupt loses nothing;
#'   existing lines never change. A model only uses recordings of a model of its name (for an R function: of the same
#'   code); without a model, all recordings are used. `NULL` records in memory only.
#' @param calls,tokens The maximum number of calls and tokens; answers from the recording are free. The model reports
#'   tokens; if it does not, four characters count as one.
#' @param retries How often a call is repeated after a temporary failure (a rate limit, a timeout, a lost connection, an
#'   error 5xx, also conditions of \pkg{httr2} with such a status).
#' @param wait Seconds before the first repetition, doubled for each further one.
#' @param answers A list named by regular expressions (Python's). The first one that matches in the system prompt and
#'   prompt gives the answer: a text, or a [text_tool_call()]; several, one for each call; or a function, as for `x`. A
#'   file is `[image name]`. An element without a name answers everything else.
#' @returns A model: an R function of `(prompt, system = NULL)`, with `model$name`. `text_remembered()` adds
#'   `model$spent`, a list of `calls`, `tokens` and `remembered`; `text_scripted()` adds `model$calls`, a data frame of
#'   the requests.
#' @section Errors:
#' - `gradops_error_type`: an object that is not a model.
#' - `gradops_error_model`: a model that fails or returns no text, a prompt without a scripted or recorded answer.
#' - `gradops_error_budget`: a call would exceed the budget; it is not made.
#' - `gradops_error_argument`: an invalid recording, or a missing one for a replay; a file that cannot be written.
#' @seealso [text_layer].
#' @examplesIf gradops_available()
#' model <- text_scripted(list("haiku" = "Rain on the window", "I do not know."))
#' model("Write a haiku.")
#' file <- tempfile(fileext = ".jsonl")
#' text_remembered(model, file)("Write a haiku.")
#' text_remembered(NULL, file)("Write a haiku.")
#' @name text_models
NULL

#' @rdname text_models
#' @export
text_as_model <- function(x, model = NULL, ...) {
  if (inherits(x, "gradops_model") && is.null(model) && ...length() == 0) {
    return(x)
  }
  options <- list(...)
  if (!all(nzchar(rlang::names2(options)))) unsupported("...", "takes the options of a model by name.")
  options <- lapply(options, operand)
  if ("limit" %in% names(options)) options$limit <- whole(options$limit)
  as_r_model(call_core("interop.r.invoke", text_core("as_model"), list(model_operand(x), model), options))
}

#' @rdname text_models
#' @export
text_remembered <- function(model, path = NULL, calls = NULL, tokens = NULL, retries = 5, wait = 1) {
  path <- if (is.character(path)) operand(path.expand(path)) else path
  check_number(retries)
  check_number(wait)
  if (!is.null(calls)) check_number(calls)
  if (!is.null(tokens)) check_number(tokens)
  settings <- list(calls = calls, tokens = tokens, retries = retries, wait = wait)
  as_r_model(call_core("interop.r.invoke", text_core("remembered"), list(model_operand(model), path), settings))
}

#' @rdname text_models
#' @export
text_scripted <- function(answers) {
  if (!is.list(answers) && !is.character(answers) || length(answers) == 0) {
    abort(
      sprintf("`answers` must be a list of patterns with their answers; got %s.", friendly(answers)),
      class = c("gradops_error_type", "gradops_error"), argument = "answers"
    )
  }
  patterns <- rlang::names2(answers)
  pairs <- Map(function(pattern, answer) list(pattern, operand(answer, "answers")), patterns, as.list(answers))
  as_r_model(call_core("text.scripted", unname(pairs)))
}

text_core <- function(name) {
  name <- paste0("text.", name)
  core[[name]] %||% load_core(name)
}

# A model in the form that Python takes.
model_operand <- function(x) {
  if (inherits(x, "gradops_model")) {
    attr(x, "model")
  } else if (inherits(x, "python.builtin.object")) {
    x
  } else if (is_ellmer(x)) {
    name <- if (is.function(x$get_model)) x$get_model() else "ellmer chat"
    call_core("interop.r.named", callback(ellmer_call(x), take = as_model_argument), name)
  } else if (is.function(x)) {
    # an R function has no lasting name, so recordings tell R functions apart by a hash of their code
    name <- paste("R function", substr(rlang::hash(deparse(args_and_body(x))), 1, 8))
    call_core("interop.r.named", callback(x, take = as_model_argument), name)
  } else {
    x
  }
}

args_and_body <- function(f) if (is.primitive(f)) f else as.function(c(formals(f), body(f)), envir = baseenv())

is_ellmer <- function(x) {
  is.environment(x) && inherits(x, "Chat") && is.function(x$chat) && is.function(x$clone)
}

# Start a new conversation for each call, as calls are independent.
ellmer_call <- function(chat) {
  force(chat)
  function(prompt, system, tools = NULL) {
    fresh <- chat$clone()
    fresh$set_turns(list())
    if (!is.null(system)) fresh$set_system_prompt(system)
    for (tool in tools) fresh$register_tool(as_ellmer_tool(tool))
    as.character(do.call(fresh$chat, c(lapply(as.list(prompt), as_ellmer_content), list(echo = "none"))))
  }
}

as_r_model <- function(model) {
  f <- function(prompt, system = NULL) {
    prompt <- operand(as_files(prompt), "prompt")
    as.character(py_to_r(call_core("interop.r.invoke", model, list(prompt, operand(system)), list())))
  }
  structure(f, class = c("gradops_model", "function"), model = model)
}

#' @export
`$.gradops_model` <- function(x, name) {
  model <- attr(x, "model", exact = TRUE)
  value <- py_to_r(call_core("interop.r.model_field", model, name))
  if (name == "calls" && is.list(value)) {
    value <- data.frame(
      prompt = vapply(value, function(call) call[[1]], ""),
      system = vapply(value, function(call) call[[2]] %||% NA_character_, "")
    )
  }
  value
}

#' @export
print.gradops_model <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

#' @export
format.gradops_model <- function(x, ...) {
  sprintf("<model %s>", x$name)
}
