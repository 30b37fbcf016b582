# Parts of prompts and answers beyond text: files, tools, and fields with types.

#' Files, tools and fields for calls of models
#'
#' `text_file()` is an image or a document for a prompt or a remark. `text_tool()` is a function that a model may ask to
#' call, with a description that can learn. `text_tool_calls()` lists the requests that a model made for an answer, and
#' what the tools returned. `text_tool_call()` is such a request, for models that are R functions.
#'
#' A file gets no feedback; the critic sees it where it was in the call. In a list of remarks it belongs to the remark
#' before it: `backward(answer, list("more like this", text_file("plot.png")))`.
#'
#' Objects of \pkg{ellmer} are taken too: `content_image_file()`, `content_image_url()` and `content_pdf_file()` in
#' place of files, `tool()` in place of tools, and `type_string()`, `type_object()` and the other types for arguments
#' and fields. If the model is a chat of ellmer, ellmer runs the tools.
#' @param source A path, whose file is read now; an address, `"https://..."` or `"data:..."`, which is sent as it is; or
#'   a raw vector.
#' @param media_type `"image/png"`, `"application/pdf"`; by default that of the first bytes or of the file's ending.
#' @param role The purpose of the file.
#' @param f A function of its arguments by name. It returns a text, a text variable, a number, a file, or a list of
#'   values.
#' @param description What the tool does: a text, or a text variable, which gets feedback.
#' @param name The name of the tool; by default that of the function.
#' @param arguments The types of the arguments, a named list with for each one of: `"string"`, `"number"`, `"integer"`
#'   or `"boolean"`; another text, the description of a text; a type of ellmer; or a JSON schema as a list, as
#'   `list(type = "array", items = list(type = "string"), description = "...")`, whose description may be a text
#'   variable. By default each argument of `f` is a text, and may be left out if it has a default.
#' @param ... The arguments of the request, by name.
#' @param answer An answer of [text_call()].
#' @returns
#' - `text_file()`: a file, with the fields `$url`, `$media_type`, `$name`, `$role` and `$kind`.
#' - `text_tool()`: a tool for `tools` of [text_call()].
#' - `text_tool_calls()`: a list of requests, for several answers a list of such lists. A request has `$name`,
#'   `$arguments`, and the text variables `$request` and `$result`. Feedback on a request becomes feedback on the inputs
#'   of the call and on the tools' descriptions; feedback on a result goes to its request.
#' @section Errors:
#' - `gradops_error_argument`: there is no such file, its media type is not known, or a tool has no usable name.
#' - `gradops_error_type`: a value of another type.
#' @seealso [text_layer], [text_models].
#' @examplesIf gradops_available()
#' about <- parameter("The weather.", role = "description")
#' weather <- text_tool(
#'   function(city) paste0(city, ": 12 C"), about,
#'   name = "weather", arguments = list(city = "the name of a city")
#' )
#' model <- text_scripted(list(
#'   "You help to improve" = "Say that it is in Celsius.", "Tool: Rome: 12 C" = "It is cold.",
#'   "Is it cold" = text_tool_call("weather", city = "Rome")
#' ))
#' answer <- text_call(model, "Is it cold in Rome?", tools = list(weather))
#' answer
#' text_tool_calls(answer)[[1]]$request
#' backward(answer, "which unit?")
#' about$grad
#' @name text_parts
NULL

#' @rdname text_parts
#' @export
text_file <- function(source, media_type = NULL, role = NULL) {
  if (is.character(source) && length(source) == 1 && !grepl("^(https?|data):", source)) source <- path.expand(source)
  call_core("text.File", if (is.raw(source)) source else operand(source), operand(media_type), operand(role))
}

#' @rdname text_parts
#' @export
text_tool <- function(f, description = NULL, name = NULL, arguments = NULL) {
  check_function(f)
  if (is_ellmer_class(f, "ToolDef")) {
    description <- description %||% attr(f, "description")
    name <- name %||% attr(f, "name")
    arguments <- arguments %||% attr(f, "arguments")
    attributes(f) <- NULL
  } else if (is.null(name)) {
    name <- if (is.name(substitute(f))) as.character(substitute(f)) else ""
  }
  call_core(
    "text.Tool", callback(f), text_operand(description), name,
    if (is.null(arguments)) NULL else types_operand(arguments, "arguments")
  )
}

#' @rdname text_parts
#' @export
text_tool_call <- function(name, ...) {
  arguments <- list(...)
  if (!all(nzchar(rlang::names2(arguments)))) unsupported("...", "takes the arguments of the request by name.")
  call_core("text.ToolCall", operand(name), if (length(arguments) > 0) lapply(arguments, operand))
}

#' @rdname text_parts
#' @export
text_tool_calls <- function(answer) {
  several(call_core("text.tool_calls", if (is.list(answer)) attr(answer, "text") else answer))
}

# Values for `tools` of text_call().
tools_operand <- function(tools) {
  if (is.function(tools)) tools <- list(tools)
  lapply(tools, function(tool) {
    if (is_ellmer_class(tool, "ToolDef")) {
      text_tool(tool)
    } else if (is.function(tool) && !inherits(tool, "python.builtin.object")) {
      abort(
        c("`tools` must be tools; got a function.", i = "Make one with `text_tool(f, \"what it does\")`."),
        class = c("gradops_error_type", "gradops_error"), argument = "tools", call = users_call()
      )
    } else {
      operand(tool, "tools")
    }
  })
}

# Names with types, as Python takes them: descriptions as texts, types as JSON schemas.
types_operand <- function(types, argument) {
  if (is_ellmer_class(types, "TypeObject")) types <- attr(types, "properties")
  types <- Filter(function(type) !is_ellmer_class(type, "TypeIgnore"), types)
  if (!is.list(types) && !is.character(types) || !all(nzchar(rlang::names2(types)))) {
    abort(
      c(
        sprintf("`%s` must be a list of types with names; got %s.", argument, friendly(types)),
        i = "Write `list(city = \"string\", score = \"number\")`."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = argument, call = users_call()
    )
  }
  lapply(as.list(types), type_operand, argument = argument)
}

json_types <- c("string", "number", "integer", "boolean")

type_operand <- function(type, argument) {
  if (is.character(type) && length(type) == 1 && type %in% json_types) {
    list(type = type)
  } else if (inherits(type, "S7_object")) {
    ellmer_schema(type)
  } else if (is.list(type)) {
    lapply(type, function(x) if (is.list(x)) type_operand(x, argument) else schema_value(x, argument))
  } else {
    operand(type, argument)
  }
}

# A value in a JSON schema; several strings stay a list.
schema_value <- function(x, argument) if (is.character(x) && length(x) > 1) as.list(x) else operand(x, argument)

# The JSON schema of a type of ellmer. Its properties are attributes, so that ellmer itself need not be loaded.
ellmer_schema <- function(type) {
  schema <- if (is_ellmer_class(type, "TypeBasic")) {
    list(type = attr(type, "type"))
  } else if (is_ellmer_class(type, "TypeEnum")) {
    list(type = "string", enum = as.list(attr(type, "values")))
  } else if (is_ellmer_class(type, "TypeArray")) {
    list(type = "array", items = ellmer_schema(attr(type, "items")))
  } else if (is_ellmer_class(type, "TypeObject")) {
    properties <- attr(type, "properties")
    list(type = "object", properties = lapply(properties, ellmer_schema))
  } else {
    attr(type, "json")
  }
  schema$description <- attr(type, "description")
  if (isFALSE(attr(type, "required"))) schema$required <- FALSE
  schema
}

is_ellmer_class <- function(x, name) inherits(x, paste0("ellmer::", name))

# Contents of ellmer as files, also within lists; other values unchanged.
as_files <- function(x) {
  if (is_ellmer_class(x, "ContentImageRemote")) {
    text_file(attr(x, "url"), "image/*")
  } else if (is_ellmer_class(x, "ContentImageInline") || is_ellmer_class(x, "ContentPDF")) {
    text_file(paste0("data:", attr(x, "type"), ";base64,", attr(x, "data")))
  } else if (is.list(x) && !is.object(x)) {
    lapply(x, as_files)
  } else {
    x
  }
}

is_file <- function(x) inherits(x, "gradops.text.files.File")

# A function of ellmer, which is not loaded before one of its objects is passed.
from_ellmer <- function(name) getExportedValue("ellmer", name)

# Parts of a prompt as a chat of ellmer takes them.
as_ellmer_content <- function(part) {
  if (!is_file(part)) {
    part
  } else if (part$kind == "image") {
    from_ellmer("content_image_url")(part$url)
  } else {
    from_ellmer("content_pdf_url")(part$url)
  }
}

# A tool of the present conversation, as ellmer takes it.
as_ellmer_tool <- function(tool) {
  about <- attr(tool, "about")
  properties <- about$parameters$properties
  f <- function() do.call(tool, Filter(Negate(is.null), mget(names(properties), envir = environment())))
  formals(f) <- rlang::rep_named(names(properties), list(NULL))
  types <- lapply(properties, function(schema) {
    from_ellmer("type_from_schema")(text = as.character(py_to_r(call_core("text.schemas.shortest", schema))))
  })
  from_ellmer("tool")(f, description = about$description, arguments = types, name = about$name)
}

# An argument that Python passes to a model: a text, a list of texts and files, or the tools by name.
as_model_argument <- function(x) {
  x <- several(x)
  if (is.list(x)) lapply(x, function(part) if (inherits(part, handle_class)) handle_in_r(part) else part) else x
}

handle_class <- "gradops.text.conversations.Handle"

# A tool as an R function; a call is added to the conversation.
handle_in_r <- function(handle) {
  f <- function(...) several(call_core("interop.r.invoke", handle, list(), lapply(list(...), operand)))
  structure(f, about = several(reticulate::py_get_attr(handle, "about")))
}

#' @export
`$.gradops.text.files.File` <- function(x, name) several(reticulate::py_get_attr(x, name))

#' @export
`$.gradops.text.tools.ToolCall` <- function(x, name) several(reticulate::py_get_attr(x, name))

#' @export
print.gradops.text.files.File <- function(x, ...) print_part(x)

#' @export
print.gradops.text.tools.ToolCall <- function(x, ...) print_part(x)

#' @export
print.gradops.text.tools.Tool <- function(x, ...) print_part(x)

print_part <- function(x) {
  writeLines(reticulate::py_repr(x))
  invisible(x)
}
