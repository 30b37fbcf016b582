# Texts: what is done with variables of text, beyond `+`, `sum()` and `[`.

#' Texts
#'
#' Texts are recorded as numbers are: what [backward()] is given as feedback on a text comes back to every text that
#' it was made from. Besides these functions there are `+`, which joins, `sum()`, which joins several, `==` and `[`; all
#' but joining and splitting go elementwise on several texts. Write an operation of your own, such as a call of a
#' language model that also writes the feedback, with [autodiff_function()] or [op_custom_gradient()].
#' @param ... For `text_join()` texts: variables and strings. For `text_format()` what to fill in, by name or in order.
#' @param separator The text to put between them, or to split at; `NULL`: white space.
#' @param x A text, or several.
#' @param template A text with places in braces: `"{name} is {age:.1f}"`, as Python's `str.format()` has them; `{}` for
#'   the next of the unnamed.
#' @param old,new A part of the text, and what to put in its place.
#' @returns A variable of text, whose roles are those of what it was made from; R's strings where no argument is a
#'   variable. `text_split()`: a list of them.
#' @section Gradient:
#' The feedback, to every text that has a part in the result.
#' @section Errors:
#' - `gradops_error_type`: a value that is not text, or none for a place of the template.
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

# Whole numbers as R writes them; what is missing is not written "NA".
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
