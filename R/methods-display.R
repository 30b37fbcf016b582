# How R shows tensors: format, print, `$` and its completion, knit_print.

# Register the methods at load time, as register_tensor_methods() does; knitr's when knitr is loaded.
register_object_methods <- function() {
  completion <- get(".DollarNames", asNamespace("utils"))
  stopifnot(is.function(completion))
  for (class in tensor_classes) {
    registerS3method(".DollarNames", class, completions_tensor, envir = asNamespace("utils"))
  }
  in_knitr <- function(...) {
    for (class in tensor_classes) registerS3method("knit_print", class, knit_print_tensor, envir = asNamespace("knitr"))
  }
  if (isNamespaceLoaded("knitr")) in_knitr()
  setHook(packageEvent("knitr", "onLoad"), in_knitr)
}

# Printing -------------------------------------------------------------------------------------------------------------

format_tensor <- function(x, ...) {
  if (reticulate::py_is_null_xptr(x)) {
    return("<a tensor of another R session, gone: see ?serialize_tensor>")
  }
  about <- py_to_r(call_core("interop.r.describe", x))
  shape <- vapply(about$shape, function(size) if (size < 0) "?" else format(size), "")
  notes <- c(
    if (about$kind != "tensor") about$kind,
    if (!is.null(about$operation)) {
      paste("result of", about$operation)
    } else if (about$requires_grad) {
      "requires a gradient"
    },
    if (about$traced) "traced, no values",
    if (!is.null(about$role)) paste("role:", about$role)
  )
  what <- if (about$backend == "text") "text" else sprintf("%s %s [%s]", about$backend, about$dtype, toString(shape))
  sprintf("<%s>", toString(c(what, notes)))
}

print_tensor <- function(x, ...) {
  if (is_captured()) {
    print(seen(x, "print"), ...)
    return(invisible(x))
  }
  writeLines(format_tensor(x))
  shown <- if (!reticulate::py_is_null_xptr(x)) shown_values(x)
  if (!is.null(shown)) {
    print(shown$values, ...)
    if (!is.null(shown$note)) writeLines(shown$note)
  }
  invisible(x)
}

# The values to show, all or a corner of them, and the line about the rest; NULL if the values are not known.
shown_values <- function(x) {
  dim <- dim_tensor(x)
  if (anyNA(dim)) {
    return(NULL)
  }
  shown <- base::pmin(dim, if (length(dim) == 1) 50 else c(10, 6, rep(2, length(dim)))[seq_along(dim)])
  if (prod(dim) <= getOption("gradops.print_max", 1000) || all(shown == dim)) {
    values <- attempt(values_of(x), function(error) NULL)
    return(if (!is.null(values)) list(values = values))
  }
  values <- attempt(py_to_r(call_core("interop.r.corner", x, as.list(as.integer(shown)))), function(error) NULL)
  note <- sprintf(
    "... the first %s of %s; `as.array()` gives all", paste(shown, collapse = " x "), paste(dim, collapse = " x ")
  )
  if (!is.null(values)) list(values = values, note = note)
}

# Fields ---------------------------------------------------------------------------------------------------------------

# Python's attributes as reticulate returns them, scalars and None as R's values: `x$grad`, `x$requires_grad`.
dollar_tensor <- function(x, name) {
  call <- caller_env()
  check_alive(x, call)
  if (name %in% hook_methods) {
    return(hook_method(x, name))
  }
  tryCatch(
    field_value(NextMethod()),
    python.builtin.AttributeError = function(error) no_field(x, name, error),
    `gradops.interop.r.CallbackError` = function(error) {
      callback_failed(take_condition(py_to_r(error$gradops_key)), call)
    }
  )
}

field_value <- function(value) {
  if (is.function(value)) owning(value) else as_r_scalar(value)
}

no_field <- function(x, name, error) {
  known <- as.character(py_to_r(call_core("interop.r.fields", x)))
  hint <- if (name %in% names(x)) sprintf("`x[[\"%s\"]]` is the element of that name.", name) else meant(name, known)
  hint <- hint %||% "`$` reads the fields of a tensor; parameters that are read by name are a list, as `list(a = 1)`."
  abort(
    c(sprintf("%s has no field `%s`.", format_tensor(x), name), i = hint),
    class = c("gradops_error_argument", "gradops_error"), argument = "name", python = error, call = NULL
  )
}

# Names after `$`, for completion in the console and in RStudio, which shows an icon for each type.
completions_tensor <- function(x, pattern = "") {
  if (reticulate::py_is_null_xptr(x) || !reticulate::py_available()) {
    return(character())
  }
  names <- as.character(py_to_r(call_core("interop.r.fields", x)))
  names <- grep(pattern, names, value = TRUE)
  if (length(names) > 0) {
    method <- vapply(names, function(name) py_to_r(call_core("interop.r.is_method", x, name)), NA)
    attr(names, "types") <- ifelse(method, 6L, 0L)
    attr(names, "helpHandler") <- help_handler
  }
  names
}

# Documents ------------------------------------------------------------------------------------------------------------

# A matrix or vector becomes a table if the document shows data frames as tables; otherwise the console's output.
knit_print_tensor <- function(x, options = list(), ...) {
  shown <- shown_values(x)
  if (!shows_tables() || is.null(shown) || length(dim(shown$values)) > 2 || length(shown$values) == 0) {
    return(knitr::normal_print(x))
  }
  values <- shown$values
  if (length(dim(values)) < 2) {
    values <- t(values)
  }
  table <- knitr::kable(values, caption = paste(c(describe_plainly(x), shown$note), collapse = " "))
  knitr::knit_print(table, options, ...)
}

shows_tables <- function() isTRUE(knitr::opts_knit$get("rmarkdown.df_print") %in% c("kable", "paged"))

# The printed text, without the angle brackets that HTML would take for a tag.
describe_plainly <- function(x) {
  gsub("^<|>$", "", format_tensor(x))
}

#' @noRd
#' @exportS3Method knitr::knit_print
knit_print.gradops_profile <- function(x, options = list(), ...) {
  knitr::knit_print(knitr::kable(readable(x), align = "llrrrr"), options, ...)
}

#' @noRd
#' @exportS3Method knitr::knit_print
knit_print.gradops_fit <- function(x, options = list(), ...) {
  knit_print.summary.gradops_fit(summary(x), options, ...)
}

#' @noRd
#' @exportS3Method knitr::knit_print
knit_print.summary.gradops_fit <- function(x, options = list(), ...) {
  if (!shows_tables()) {
    return(knitr::normal_print(x))
  }
  about <- c(
    sprintf("log-likelihood %.4g, AIC %.4g", as.numeric(x$logLik), x$AIC),
    if (length(x$random) > 0L) sprintf("%d random effects", length(x$random)),
    as.character(x$problems)
  )
  knitr::knit_print(knitr::kable(x$coefficients, digits = 4, caption = paste(about, collapse = "; ")), options, ...)
}

#' @noRd
#' @exportS3Method knitr::knit_print
knit_print.gradops_call_profile <- function(x, options = list(), ...) {
  if (!shows_tables()) {
    return(knitr::normal_print(x))
  }
  knitr::knit_print(knitr::kable(as.data.frame(x), digits = 4), options, ...)
}

#' @noRd
#' @exportS3Method knitr::knit_print
knit_print.gradops_graph <- function(x, options = list(), ...) {
  if (nrow(x$boxes) > 500) print(x) else plot(x)
  invisible()
}
