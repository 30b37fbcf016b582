# Text that learns: calls of models, critics and the optimiser, on the tape.

#' Text that learns
#'
#' `text_call()` calls a language model as an operation: in the backward pass it asks, for each input that requires
#' feedback, how that should change. `text_judge()` makes a critic a number with a remark, which is its gradient, so
#' that weights and several critics are arithmetic and `backward()` starts by itself. `text_descent()` rewrites texts by
#' the feedback on them. `text_each()` goes through a batch.
#'
#' The prompts that these send to models are short, and all of them are in one file,
#' `system.file("python/gradops/text/prompts.py", package = "gradops")`; `prompts` replaces parts of it.
#' @param model,critic Models, as for [text_as_model()]; the critic, which is asked for feedback, is the model if
#'   `NULL`.
#' @param prompt A text, or messages: `list(list(role = "user", content = text), ...)`, whose content may be a list of
#'   texts.
#' @param system A text for the system prompt.
#' @param ... For `text_call()` fields: what is filled in for `{name}` in the prompts, texts and numbers; only the names
#'   that are given are places. For `text_each()` vectors or lists to go through, as for [Map()].
#' @param role The purpose of the answer; goes into feedback on it.
#' @param prompts A list of other words for a request, `list(rewrite = "...")`: `"feedback"`, `"feedback_system"`,
#'   `"rewrite"`, `"rewrite_system"`, `"memory"`, `"version"`, `"constraints"`.
#' @param f For `text_judge()` a function of a text, and more if wanted, that returns one of: `NULL` for nothing to say
#'   (the number is 0); remarks (1); `list(number, remarks)`; a number. For `text_each()` any function.
#' @param params Text parameters, one or a list.
#' @param memory How many of the earlier versions, each with its feedback, the model is shown.
#' @param constraints Rules that every new text must keep, in words.
#' @param threads How many backward passes run at once.
#' @param progress If `TRUE`, a progress bar is shown.
#' @returns
#' - `text_call()`: a text variable, or a text where no argument is a variable. Several texts (a variable of several, a
#'   character vector) are as many calls, at once, and give several answers.
#' - `text_judge()`: a function that gives a number; for several texts (a variable of several, a list of variables, a
#'   character vector as the first argument) a vector: they are judged one by one, with vectors and lists of as many
#'   elements beside them.
#' - `text_descent()`: an optimiser, with `$step()`, `$zero_grad()`, `$state_dict()` and `$load_state_dict(state)`. A
#'   step leaves alone what got no feedback, and where it fails it has changed nothing.
#' - `text_each()`: a list of `f`'s results, in order, one after the other. `text_each(backward, losses)` runs the
#'   passes at once, as the calls for several texts are, with models of Python's; models of R's answer one after the
#'   other.
#' @section Gradient:
#' One request for each input that requires feedback, none where nothing was said. A remark has the size of its number's
#' upstream gradient as weight.
#' @section Errors:
#' - `gradops_error_model`: the model failed or gave no text; for `text_descent()` also no new text between `<text>` and
#'   `</text>`, once more after it was told (unless `prompts` has a `"rewrite"` without `</text>`). Names the call, its
#'   role and its inputs'. `backward()` can be called again: what was answered is not asked again. An error of an R
#'   function is the parent.
#' - `gradops_error_type`: a judge that returns something else, parameters that are no text.
#' - `gradops_error_argument`: a field without a place in the prompts.
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
text_call <- function(model, prompt, system = NULL, ..., role = NULL, critic = NULL, prompts = NULL) {
  call <- environment()
  fields <- list(...)
  if (!all(nzchar(rlang::names2(fields)))) {
    abort(
      "`text_call()` takes fields by name, as `{name}` in the prompt.",
      class = c("gradops_error_argument", "gradops_error"), argument = "..."
    )
  }
  fields <- Map(function(x, name) text_operand(field_words(x), name, call), fields, names(fields))
  settings <- list(
    role = operand(role), critic = if (!is.null(critic)) model_operand(critic), prompts = other_prompts(prompts)
  )
  answer <- call_core(
    "interop.r.invoke", text_core("call"),
    list(model_operand(model), text_operand(prompt), text_operand(system)),
    c(Filter(function(x) is.function(x) || length(x) > 0, settings), fields)
  )
  text_result(answer)
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
text_descent <- function(params, model, memory = 0, constraints = character(), prompts = NULL) {
  check_number(memory)
  params <- if (is_tensor(params)) list(params) else unname(listed(params))
  optimizer <- call_core(
    "text.Descent", lapply(params, operand), model_operand(model), whole(memory), operand(listed(constraints)),
    other_prompts(prompts)
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
      params = params
    ),
    class = "gradops_descent"
  )
}

# Elements as a list. A function is one: a list of it would hold its arguments, some without a value.
listed <- function(x) {
  if (is.function(x)) list(x) else as.list(x)
}

# A whole number as an integer; of the rest Python says what is wrong.
whole <- function(x) {
  if (is.numeric(x) && isTRUE(x == round(x) && abs(x) < 2^31)) as.integer(x) else x
}

# Other prompts, a list or a vector with names.
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
        "`text_each()` takes vectors or lists to go through."
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

# Texts for Python: several as such, lists (messages) element by element.
text_operand <- function(x, name = substitute(x), call = parent.frame()) {
  x <- operand(x, name, call)
  if (is.character(x) && length(x) > 1) call_core("text.values.convert", as.list(x)) else x
}

# Numbers and the like as R writes them.
field_words <- function(x) if (is.atomic(x) && !is.null(x)) as.character(x) else x
