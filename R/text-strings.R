# Base R's string functions on texts.

#' Strings of text variables
#'
#' `paste()`, `paste0()`, `sprintf()`, `sub()`, `gsub()`, `toupper()`, `tolower()`, `casefold()`, `chartr()`,
#' `trimws()`, `substr()`, `substring()`, `strsplit()`, `toString()` and `format()` are base R's, and are recorded on
#' text variables: the result is a text variable. For tensors of numbers these functions, `prettyNum()`, `formatC()` and
#' `cat()` show the values, silently. `c()`, `rep()`, `rev()` and `[` select and join several texts, `cat()` prints
#' them; `nchar()`, `startsWith()`, `endsWith()` and `grepl()` look at them. For ordinary R vectors the base R function
#' is called. Other string functions (`strtrim()`, `shQuote()`, `file.path()`) return R's strings, where feedback ends.
#' @param ...,fmt,sep,collapse,recycle0,pattern,replacement,x,ignore.case,perl,fixed,useBytes,which,whitespace As in
#'   base R; texts may be text variables.
#' @param text,old,new,upper,prefix,suffix,split As in base R; texts may be text variables.
#' @param start,stop,first,last,file,fill,labels,append,type,allowNA,keepNA As in base R.
#' @returns A text variable with as many texts as base R's result has strings; `strsplit()` returns a list of text
#'   variables.
#' @section Gradient:
#' The feedback goes to every text variable among the arguments. A remark on one of several results goes to the text at
#' the same position.
#' @seealso [texts], [text_layer].
#' @examplesIf gradops_available()
#' instruction <- parameter("write a haiku", role = "instruction")
#' prompt <- paste0(toupper(substr(instruction, 1, 1)), substr(instruction, 2, 99), ", please.")
#' prompt
#' backward(prompt, "say about what")
#' instruction$grad
#' @name text_strings
NULL

variable_class <- "gradops.autodiff.variable.Variable"

is_text <- function(x) {
  is.environment(x) && inherits(x, variable_class) && !is_logged(x) && py_to_r(call_core("interop.r.is_text", x))
}

# The result of base R's `f`, recorded if a text variable is among the arguments.
recorded_text <- function(name, arguments, finish = identity, call = parent.frame(2)) {
  texts <- Filter(is_text, unname(arguments))
  values <- lapply(arguments, function(x) if (is_tensor(x)) words_of_tensor(x, name) else x)
  result <- finish(do.call(name, values, envir = baseenv()))
  if (length(texts) == 0 || !is.character(result) || length(result) == 0) {
    return(result)
  }
  check_words(result, sprintf("the result of %s()", name), call)
  call_core("text.operations.made_by_host", name, texts, if (length(result) == 1) result else as.list(result))
}

#' @rdname text_strings
#' @export
paste <- function(..., sep = " ", collapse = NULL, recycle0 = FALSE) {
  UseMethod("paste", among(...))
}

paste_tensor <- function(..., sep = " ", collapse = NULL, recycle0 = FALSE) {
  recorded_text("paste", list(..., sep = sep, collapse = collapse, recycle0 = recycle0))
}

#' @rdname text_strings
#' @export
paste0 <- function(..., collapse = NULL, recycle0 = FALSE) {
  UseMethod("paste0", among(...))
}

paste0_tensor <- function(..., collapse = NULL, recycle0 = FALSE) {
  recorded_text("paste0", list(..., collapse = collapse, recycle0 = recycle0))
}

#' @rdname text_strings
#' @export
sprintf <- function(fmt, ...) {
  UseMethod("sprintf", among(fmt, ...))
}

sprintf_tensor <- function(fmt, ...) {
  numbers <- lapply(list(...), function(x) {
    if (!is_tensor(x) || is_text(x)) {
      x
    } else {
      as.vector(if (callbacks() == 0) plain(x) %||% NA_real_ else seen(x, "sprintf"))
    }
  })
  recorded_text("sprintf", c(list(fmt), numbers))
}

#' @rdname text_strings
#' @export
sub <- function(pattern, replacement, x, ignore.case = FALSE, perl = FALSE, fixed = FALSE, useBytes = FALSE) {
  UseMethod("sub", among(pattern, replacement, x))
}

sub_tensor <- function(pattern, replacement, x, ...) {
  recorded_text("sub", list(pattern, replacement, x, ...))
}

#' @rdname text_strings
#' @export
gsub <- function(pattern, replacement, x, ignore.case = FALSE, perl = FALSE, fixed = FALSE, useBytes = FALSE) {
  UseMethod("gsub", among(pattern, replacement, x))
}

gsub_tensor <- function(pattern, replacement, x, ...) {
  recorded_text("gsub", list(pattern, replacement, x, ...))
}

#' @rdname text_strings
#' @export
toupper <- function(x) {
  UseMethod("toupper", among(x))
}

toupper_tensor <- function(x) {
  recorded_text("toupper", list(x))
}

#' @rdname text_strings
#' @export
tolower <- function(x) {
  UseMethod("tolower", among(x))
}

tolower_tensor <- function(x) {
  recorded_text("tolower", list(x))
}

#' @rdname text_strings
#' @export
trimws <- function(x, which = c("both", "left", "right"), whitespace = "[ \t\r\n]") {
  UseMethod("trimws", among(x))
}

trimws_tensor <- function(x, ...) {
  recorded_text("trimws", list(x, ...))
}

#' @rdname text_strings
#' @export
substr <- function(x, start, stop) {
  UseMethod("substr", among(x))
}

substr_tensor <- function(x, start, stop) {
  recorded_text("substr", list(x, start, stop))
}

#' @rdname text_strings
#' @export
substring <- function(text, first, last = 1000000L) {
  UseMethod("substring", among(text))
}

substring_tensor <- function(text, first, last = 1000000L) {
  recorded_text("substring", list(text, first, last))
}

#' @rdname text_strings
#' @export
chartr <- function(old, new, x) {
  UseMethod("chartr", among(old, new, x))
}

chartr_tensor <- function(old, new, x) {
  recorded_text("chartr", list(old, new, x))
}

#' @rdname text_strings
#' @export
casefold <- function(x, upper = FALSE) {
  UseMethod("casefold", among(x))
}

casefold_tensor <- function(x, upper = FALSE) {
  recorded_text("casefold", list(x, upper))
}

#' @rdname text_strings
#' @export
strsplit <- function(x, split, fixed = FALSE, perl = FALSE, useBytes = FALSE) {
  UseMethod("strsplit", among(x, split))
}

strsplit_tensor <- function(x, split, ...) {
  lapply(seq_along(x), function(i) {
    recorded_text("strsplit", list(if (is_text(x) && length(x) > 1) x[i] else x, split, ...), finish = unlist)
  })
}

toString_tensor <- function(x, ...) {
  if (is_text(x)) {
    paste_tensor(x, collapse = list(...)$collapse %||% ", ")
  } else {
    toString(values_for_strings(x, "toString"), ...)
  }
}

#' @rdname text_strings
#' @export
nchar <- function(x, type = "chars", allowNA = FALSE, keepNA = NA) {
  UseMethod("nchar", among(x))
}

nchar_tensor <- function(x, ...) {
  recorded_text("nchar", list(x, ...))
}

#' @rdname text_strings
#' @export
startsWith <- function(x, prefix) {
  UseMethod("startsWith", among(x, prefix))
}

startsWith_tensor <- function(x, prefix) {
  recorded_text("startsWith", list(x, prefix))
}

#' @rdname text_strings
#' @export
endsWith <- function(x, suffix) {
  UseMethod("endsWith", among(x, suffix))
}

endsWith_tensor <- function(x, suffix) {
  recorded_text("endsWith", list(x, suffix))
}

#' @rdname text_strings
#' @export
cat <- function(..., file = "", sep = " ", fill = FALSE, labels = NULL, append = FALSE) {
  UseMethod("cat", among(...))
}

cat_tensor <- function(..., file = "", sep = " ", fill = FALSE, labels = NULL, append = FALSE) {
  read <- is_captured() || inside() > 0 && !identical(file, "")
  shown <- lapply(list(...), if (read) function(x) seen(x, "cat") else shown_plainly)
  settings <- list(file = file, sep = sep, fill = fill, labels = labels, append = append)
  do.call("cat", c(shown, settings), envir = baseenv())
}

format_any_tensor <- function(x, ...) {
  if (is_text(x)) recorded_text("format", list(x, ...)) else format(values_for_strings(x, "format"), ...)
}

# The content of a text or string: the text, R's values, or the description of a tensor without values.
shown_plainly <- function(x) {
  if (!is.object(x) || !is_tensor(x)) x else if (is_text(x)) as.character(x) else plain(x) %||% format_tensor(x)
}

# The content of a string. In functions that Python calls, a tensor without values is an error, not a description.
values_for_strings <- function(x, what) {
  if (callbacks() == 0) shown_plainly(x) else seen(x, what)
}

#' @rdname text_strings
#' @export
prettyNum <- function(...) {
  do.call(base::prettyNum, lapply(list(...), values_for_strings, "prettyNum"))
}

#' @rdname text_strings
#' @export
formatC <- function(...) {
  do.call(base::formatC, lapply(list(...), values_for_strings, "formatC"))
}

# `c()` of texts and strings: several texts.
c_texts <- function(parts, call = parent.frame()) {
  as_texts <- function(x) {
    if (is_tensor(x)) return(call_op("reshape", x, -1L))
    x <- as.character(x)
    check_words(x, "...", call)
    call_core("text.values.convert", as.list(x))
  }
  call_core("ops.concatenate", lapply(unname(parts), as_texts), 0L)
}

# Operations on text variables beyond `+`, `sum()` and `[`.

#' Texts
#'
#' Texts are recorded like numbers: the feedback that [backward()] is given on a text flows back to every text from
#' which it was made. Besides these functions there are `+`, which joins two texts, `sum()`, which joins several, `==`
#' and `[`. All except joining and splitting work elementwise on several texts. To write your own operation, such as a
#' call of a language model that also writes the feedback, use [autodiff_function()] or [op_custom_gradient()].
#' @param ... For `text_join()`, texts: variables and strings. For `text_format()`, the values to fill in, by name or in
#'   order.
#' @param separator The text between joined texts, or at which to split; `NULL` means white space.
#' @param x A text, or several.
#' @param template A text with fields in braces, as in Python's `str.format()`: `"{name} is {age:.1f}"`; `{}` is the
#'   next unnamed value.
#' @param old,new A part of the text, and its replacement.
#' @returns A text variable with the roles of the texts from which it was made; R's strings if no argument is a
#'   variable. `text_split()`: a list of them.
#' @section Gradient:
#' The feedback goes to every text that contributes to the result.
#' @section Errors:
#' - `gradops_error_type`: a value that is not text, or a field of the template without a value.
#' - `gradops_error_argument`: a missing text.
#' @seealso [text_strings], [text_layer], [variable()].
#' @examplesIf gradops_available()
#' instruction <- parameter("Write a haiku about {topic}.", role = "instruction")
#' prompt <- text_format(instruction, topic = "rain")
#' backward(prompt, "say how many syllables")
#' instruction$grad
#' @name texts
NULL

#' @rdname texts
#' @export
text_join <- function(..., separator = "") {
  text_result(call_core("text.join", operand(list(...)), operand(separator)))
}

#' @rdname texts
#' @export
text_split <- function(x, separator = NULL) {
  lapply(several(call_core("text.split", operand(x), operand(separator))), text_result)
}

#' @rdname texts
#' @export
text_format <- function(template, ...) {
  given <- lapply(list(...), format_value)
  fill <- core[["text.format"]] %||% load_core("text.format")
  text_result(call_python(fill, c(list(template), given)))
}

# Format integers as R prints them; a missing value raises an error instead of becoming "NA".
format_value <- function(x) {
  if (is.object(x) || !is.atomic(x) || length(x) != 1) {
    return(x)
  }
  check_words(if (is.na(x)) NA_character_, "...", parent.frame(2))
  if (is.double(x)) whole(x) else x
}

# A text variable, or R's strings.
text_result <- function(x) {
  if (is_tensor(x)) x else as.character(py_to_r(call_core("interop.r.to_r", x)))
}

#' @rdname texts
#' @export
text_replace <- function(x, old, new) {
  text_result(call_core("text.replace", operand(x), operand(old), operand(new)))
}

#' @rdname texts
#' @export
text_upper <- function(x) {
  text_result(call_core("text.upper", operand(x)))
}

#' @rdname texts
#' @export
text_lower <- function(x) {
  text_result(call_core("text.lower", operand(x)))
}

#' @rdname texts
#' @export
text_strip <- function(x) {
  text_result(call_core("text.strip", operand(x)))
}
