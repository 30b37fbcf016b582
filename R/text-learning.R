# Learning with texts: calls of models, critics and the optimiser, on the tape.

#' Learn with texts
#'
#' `text_call()` calls a language model as an operation: in the backward pass it asks, for each input that requires
#' feedback, how that input should change. `text_judge()` turns a critic into a function that returns a number with a
#' remark, which is its gradient; so weights and several critics are combined by arithmetic, and `backward()` starts
#' with the remarks. `text_descent()` rewrites texts by the feedback on them. `text_each()` applies a function to a
#' batch.
#'
#' The prompts that these send to models are short, and all of them are in one file,
#' `system.file("python/gradops/text/prompts.py", package = "gradops")`; `prompts` replaces parts of it.
#' @param model,critic Models, as for [text_as_model()]. The critic is asked for feedback; if it is `NULL`, the model
#'   is.
#' @param prompt A text, or messages: `list(list(role = "user", content = text), ...)`, whose content may be a list of
#'   texts and files; or a list of texts and files, `list("What is this?", text_file("boat.png"))`.
#' @param system A text for the system prompt.
#' @param ... For `text_call()`, fields: texts, numbers and files that replace `{name}` in the prompts; other braces stay
#'   as they are. For `text_each()`, vectors or lists to iterate over, as for [Map()].
#' @param tools Tools that the model may ask to call, a list of [text_tool()]; their descriptions get feedback.
#' @param rounds How often the model may ask for tools before it answers.
#' @param returns The fields of the answer and their types, `list(city = "the name of a city", score = "number")`: as
#'   `arguments` of [text_tool()]. The model is asked for JSON, and once more if its answer does not fit.
#' @param role The purpose of the answer; it is part of the feedback on it.
#' @param prompts A list of replacements for parts of the requests, `list(rewrite = "...")`: `"feedback"`,
#'   `"feedback_system"`, `"rewrite"`, `"rewrite_system"`, `"memory"`, `"version"`, `"constraints"`,
#'   `"fields"`, `"fields_again"`.
#' @param f For `text_judge()`, a function of a text, and further arguments if wanted, that returns one of: `NULL` if
#'   there is nothing to remark (the number is 0); remarks (the number is 1); `list(number, remarks)`; a number. For
#'   `text_each()`, any function.
#' @param params Text parameters, one or a list; or a list of groups with options of their own,
#'   `list(list(params = list(p), learning_rate = 0.2), ...)`.
#' @param memory How many earlier versions, each with its feedback, the model is shown.
#' @param constraints Rules that every new text must keep, in words.
#' @param learning_rate The largest share of its words that a step may replace, add or remove in a text, at least one;
#'   `NULL` for any change.
#' @param score A function without arguments that says how good the present texts are: a number, or one for each example
#'   of a validation set; the mean counts. New texts stay only if they score higher.
#' @param candidates How many new texts a step tries until one scores higher.
#' @param threads The number of backward passes that run at the same time.
#' @param progress If `TRUE`, a progress bar is shown.
#' @returns
#' - `text_call()`: a text variable, or a text if no argument is a variable. Several texts (a variable of several, a
#'   character vector) are passed in as many calls, run concurrently, and give several answers. With `returns`, a list
#'   of the fields: texts and numbers are variables, whose feedback and gradients name the field; its attribute `"text"`
#'   is the answer itself.
#' - `text_judge()`: a function that returns a number. For several texts (a variable of several, a list of variables, a
#'   character vector as the first argument) it returns a vector: the texts are judged one by one, together with the
#'   elements of other vectors and lists of the same length.
#' - `text_descent()`: an optimiser, with `$step()`, `$zero_grad()`, `$state_dict()`, `$load_state_dict(state)` and
#'   `$trials()`, the scores in a data frame. A step does not change texts without feedback; if it fails, it changes
#'   nothing.
#' - `text_each()`: a list of `f`'s results, in order, computed one after the other. `text_each(backward, losses)` runs
#'   the passes concurrently, like the calls for several texts, if the models are Python's; R's models answer one after
#'   the other.
#' @section Gradient:
#' One request for each input that requires feedback, and none if there are no remarks. The weight of a remark is the
#' size of its number's upstream gradient.
#' @section Errors:
#' - `gradops_error_model`: the model failed or returned no text; for `text_descent()`, also an answer without a new
#'   text between `<text>` and `</text>` after one reminder (unless `prompts` has a `"rewrite"` without `</text>`). The
#'   error names the call, its role and the roles of its inputs. `backward()` can be called again: answers already
#'   received are not requested again. An error of an R function is the parent.
#' - `gradops_error_type`: a judge that returns something else, parameters that are not texts.
#' - `gradops_error_argument`: a field that is not in the prompts.
#' @seealso [texts], [text_models], [backward()].
#' @examplesIf gradops_available()
#' model <- text_scripted(list(
#'   "You improve texts" = "<text>Answer in one word.</text>",
#'   "You help to improve" = "ask for one word",
#'   "one word" = "Paris", "It is Paris, as far as I know."
#' ))
#' instruction <- parameter("Answer the question.", role = "instruction")
#' short <- text_judge(function(answer) if (grepl(" ", answer)) "one word is enough")
#' optimizer <- text_descent(instruction, model)
#' for (i in 1:2) {
#'   loss <- short(text_call(model, "Capital of France?", instruction, role = "answer"))
#'   if (as.numeric(loss) == 0) break
#'   backward(loss)
#'   optimizer$step()
#'   optimizer$zero_grad()
#' }
#' instruction
#' @name text_layer
NULL

#' @rdname text_layer
#' @export
text_call <- function(model, prompt, system = NULL, ..., role = NULL, critic = NULL, prompts = NULL, tools = list(),
                      rounds = 8, returns = NULL) {
  call <- environment()
  fields <- list(...)
  if (!all(nzchar(rlang::names2(fields)))) {
    abort(
      "`text_call()` takes fields by name, as `{name}` in the prompt.",
      class = c("gradops_error_argument", "gradops_error"), argument = "..."
    )
  }
  check_number(rounds)
  fields <- Map(function(x, name) text_operand(field_words(as_files(x)), name, call), fields, names(fields))
  settings <- list(
    role = operand(role), critic = if (!is.null(critic)) model_operand(critic), prompts = other_prompts(prompts),
    tools = tools_operand(tools), rounds = whole(rounds),
    returns = if (!is.null(returns)) types_operand(returns, "returns")
  )
  answer <- call_core(
    "interop.r.invoke", text_core("call"),
    list(model_operand(model), text_operand(as_files(prompt), "prompt"), text_operand(system)),
    c(Filter(function(x) is.function(x) || length(x) > 0, settings), fields)
  )
  if (is.null(returns)) text_result(answer) else fields_result(answer)
}

# The fields of an answer as a list; its attribute "text" is the answer itself.
fields_result <- function(answer) {
  structure(lapply(several(answer), field_result), text = text_result(reticulate::py_get_attr(answer, "text")))
}

field_result <- function(x) {
  if (is.environment(x) && !is_tensor(x)) as.vector(py_to_r(call_core("interop.r.to_r", x))) else x
}

#' @rdname text_layer
#' @export
text_judge <- function(f) {
  check_function(f)
  name <- substitute(f)
  f <- call_core("interop.r.named", callback(f, take = judged), if (is.name(name)) as.character(name) else "judge")
  judge <- call_core("text.judge", f)
  function(...) {
    number <- call_python(judge, list(...))
    if (inherits(number, variable_class)) number else as.vector(py_to_r(call_core("interop.r.to_r", number)))
  }
}

# The arguments of a critic: R's strings and numbers.
judged <- function(x) {
  x <- several(x)
  if (inherits(x, variable_class)) x else plain(x) %||% x
}

#' @rdname text_layer
#' @export
text_descent <- function(params, model, memory = 0, constraints = character(), prompts = NULL, learning_rate = NULL,
                         score = NULL, candidates = 1) {
  check_number(memory)
  check_number(candidates)
  if (!is.null(score)) check_function(score)
  params <- if (is_tensor(params)) list(params) else unname(listed(params))
  optimizer <- call_core(
    "text.Descent", lapply(params, group_operand), model_operand(model), whole(memory), operand(listed(constraints)),
    other_prompts(prompts), operand(learning_rate), if (!is.null(score)) callback(score), whole(candidates)
  )
  method <- function(name, ...) {
    call_core("interop.r.invoke_method", optimizer, name, list(...), .call = users_call())
  }
  silently <- function(...) {
    method(...)
    invisible()
  }
  structure(
    list(
      step = function() silently("step"),
      zero_grad = function() silently("zero_grad"),
      state_dict = function() py_to_r(method("state_dict")),
      load_state_dict = function(state) silently("load_state_dict", state),
      trials = function() {
        rows <- several(reticulate::py_get_attr(optimizer, "trials"))
        data.frame(score = vapply(rows, `[[`, 0, 1), accepted = vapply(rows, `[[`, TRUE, 2))
      },
      params = several(reticulate::py_get_attr(optimizer, "params"))
    ),
    class = "gradops_descent"
  )
}

# A parameter, or a group of parameters with options.
group_operand <- function(x) {
  if (!is.list(x) || is.object(x)) {
    return(operand(x))
  }
  if (!is.null(x$params)) x$params <- lapply(listed(if (is_tensor(x$params)) list(x$params) else x$params), operand)
  if (!is.null(x$model)) x$model <- model_operand(x$model)
  if (!is.null(x$memory)) x$memory <- whole(x$memory)
  if (!is.null(x$constraints)) x$constraints <- as.list(x$constraints)
  if (!is.null(x$prompts)) x$prompts <- other_prompts(x$prompts)
  x
}

# Elements as a list. A function becomes a list of itself: `as.list()` would return its formals, some without a value.
listed <- function(x) {
  if (is.function(x)) list(x) else as.list(x)
}

# An integer if `x` is one; other values unchanged, for Python to check.
whole <- function(x) {
  if (is.numeric(x) && isTRUE(x == round(x) && abs(x) < 2^31)) as.integer(x) else x
}

# Replacements for prompts, a list or a vector with names.
other_prompts <- function(prompts) {
  if (length(prompts) > 0) operand(listed(prompts), "prompts")
}

#' @export
print.gradops_descent <- function(x, ...) {
  roles <- vapply(x$params, function(p) p$role %||% "text", "")
  writeLines(sprintf("<descent on %s>", toString(roles)))
  invisible(x)
}

#' @rdname text_layer
#' @export
text_each <- function(f, ..., threads = 8, progress = FALSE) {
  check_function(f)
  flag(progress)
  check_number(threads)
  columns <- lapply(list(...), as_items)
  if (identical(f, backward)) {
    call_core("interop.r.backward_each", whole(threads), progress, lapply(columns, operand))
    return(invisible())
  }
  sizes <- lengths(columns)
  if (length(sizes) == 0 || length(unique(sizes)) > 1) {
    abort(
      if (length(sizes) == 0) {
        "`text_each()` takes vectors or lists to iterate over."
      } else {
        sprintf("`text_each()` takes vectors of one length; got %s.", toString(sizes))
      },
      class = c("gradops_error_argument", "gradops_error"), argument = "..."
    )
  }
  each_in_r(f, columns, sizes[1], progress)
}

as_items <- function(x) {
  if (is_tensor(x)) lapply(seq_along(x), function(i) x[i]) else as.list(x)
}

each_in_r <- function(f, columns, size, progress) {
  if (progress) {
    id <- cli::cli_progress_bar("text_each", total = size)
  }
  lapply(seq_len(size), function(i) {
    value <- do.call(f, lapply(columns, `[[`, i), quote = TRUE)
    if (progress) cli::cli_progress_update(id = id)
    value
  })
}

# Texts for Python: several texts as a vector of texts, lists (messages) element by element.
text_operand <- function(x, name = substitute(x), call = parent.frame()) {
  x <- operand(x, name, call)
  if (is.character(x) && length(x) > 1) call_core("text.values.convert", as.list(x)) else x
}

# Numbers and other atomic values as strings, as R prints them.
field_words <- function(x) if (is.atomic(x) && !is.null(x)) as.character(x) else x
