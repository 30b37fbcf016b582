# Questions that adapted code (code-adapted.R) asks about a value instead of computing with it. There a tensor stands
# for the vector, matrix or array that R would have. Questions about its kind (`typeof()`, `class()`, `dim()`, method
# dispatch) are answered by an R value of that kind filled with zeros. Questions about its numbers (`identical()`,
# `paste()`, a warning that a handler receives) are answered by the values, if they are known. In code that `jit`
# traces, the values are looked at as by `if`, or an error says so (code-comparisons.R).

# Kind and class ------------------------------------------------------------------------------------------------------

# The R value that a tensor stands for, with zeros for its numbers; any other object unchanged.
stand_in <- function(x) {
  if (!is.environment(x) || !is_any_tensor(x)) {
    return(x)
  }
  dim <- dim(adopted(x))
  dim[is.na(dim)] <- 1L # a graph may not know the size
  kind <- type_of(x)
  value <- vector(kind, prod(dim))
  if (length(dim) > 1L) dim(value) <- dim
  own <- attributes(x)
  if (length(dim) < 2L && is_one_dimensional(x)) dim(value) <- dim
  names(value) <- if (length(dim) < 2L) names_tensor(x)
  if (length(dim) > 1L) dimnames(value) <- own$gradops_dimnames
  others <- own[!startsWith(names(own), "gradops_") & names(own) != "class"]
  attributes(value) <- base::c(attributes(value), others)
  time <- time_of(x)
  if (!is.null(time)) value <- stats::ts(value, time[1L], frequency = time[3L])
  if (!is.null(own$gradops_dist)) value <- structure(value, Size = own$gradops_dist, class = "dist")
  value
}

type_of <- function(x) {
  if (is_logged(x)) {
    return("double")
  }
  dtype <- op_dtype(x)
  if (startsWith(dtype, "float") || startsWith(dtype, "bfloat")) {
    "double"
  } else if (startsWith(dtype, "complex")) {
    "complex"
  } else if (dtype == "bool") {
    "logical"
  } else if (startsWith(dtype, "str")) {
    "character"
  } else {
    "integer"
  }
}

# Make a base R function whose first argument may be a tensor answer for the stand-in.
stand_in_function <- function(original) {
  force(original)
  function(x, ...) {
    if (is.environment(x) && is_any_tensor(x)) original(stand_in(x), ...) else original(x, ...)
  }
}

# Functions with the same answer for any tensor, or with methods that look at the elements.
kept_questions <- base::c(
  "is.null", "is.function", "is.primitive", "is.na", "is.nan", "is.finite", "is.infinite", "is.element", "is.unsorted",
  "is.R", "is.loaded"
)

# Base R's functions that ask for the kind of an object.
stand_in_questions <- function() {
  all <- grep("^is\\.([a-z]+)$", ls(baseenv()), value = TRUE)
  base::c(
    setdiff(all, kept_questions),
    "typeof", "mode", "storage.mode", "oldClass", ".class2", "data.class", "attributes", "dim", "dimnames",
    "nrow", "ncol", "isa"
  )
}

# The class of `qr()` of a tensor is R's "qr"; gradops' class in front of it stays hidden.
class_overload <- function(x) {
  if (inherits(x, "gradops_qr")) "qr" else class(stand_in(x))
}

inherits_overload <- function(x, what, which = FALSE) {
  found <- base::inherits(stand_in(x), what, which)
  if (!which && !found && is.environment(x) && is_any_tensor(x)) base::inherits(x, what) else found
}

attr_overload <- function(x, which, exact = FALSE) {
  base::attr(if (is.environment(x) && is_any_tensor(x)) stand_in(x) else x, which, exact)
}

unclass_overload <- function(x) {
  if (is.environment(x) && is_any_tensor(x)) x else base::unclass(x)
}

# Assign the attributes that a tensor can have; it takes no class.
assign_attribute <- function(x, which, value) {
  switch(which,
    names = names(x) <- value,
    dim = dim(x) <- value,
    dimnames = attr(x, "gradops_dimnames") <- value,
    class = if (!all(value %in% classes_to_print)) no_attribute(which),
    levels = ,
    tsp = if (!is.null(value)) no_attribute(which),
    {
      x <- another_handle(x)
      attr(x, which) <- value
    }
  )
  x
}

# Classes of results of stats' functions that only change how they print; assigning one to a tensor does nothing.
classes_to_print <- base::c("loadings", "poly", "matrix", "array")

no_attribute <- function(which) {
  abort(
    c(
      sprintf("A tensor takes no attribute \"%s\" while a function is differentiated or compiled.", which),
      i = "Keep it in a list: `structure(list(value = p), class = ...)`."
    ),
    class = c("gradops_error_type", "gradops_error"), argument = "x", call = NULL
  )
}

assigning <- function(which) {
  original <- get(paste0(which, "<-"), baseenv())
  attribute <- if (which == "oldClass") "class" else which
  function(x, value) {
    if (is.environment(x) && is_any_tensor(x)) assign_attribute(x, attribute, value) else original(x, value)
  }
}

assign_attr_overload <- function(x, which, value) {
  if (is.environment(x) && is_any_tensor(x)) assign_attribute(x, which, value) else base::`attr<-`(x, which, value)
}

assign_attributes_overload <- function(x, value) {
  if (!is.environment(x) || !is_any_tensor(x)) {
    return(base::`attributes<-`(x, value))
  }
  value <- value[!base::duplicated(names(value), fromLast = TRUE)] # as by structure(x, dim = NULL)
  x <- drop_time(flat(x))
  for (which in base::c("dim", setdiff(names(value), "dim"))) {
    if (!is.null(value[[which]])) x <- assign_attribute(x, which, value[[which]])
  }
  x
}

assigning_mode <- function(name) {
  original <- get(name, baseenv())
  function(x, value) {
    if (!is.environment(x) || !is_any_tensor(x)) {
      original(x, value)
    } else if (value %in% base::c("double", "numeric")) {
      x
    } else {
      original(seen(x, name), value)
    }
  }
}

# All overloads for questions, by name.
questions <- function(namesakes) {
  named <- function(names, make) lapply(stats::setNames(nm = names), make)
  base::c(
    named(stand_in_questions(), function(name) stand_in_function(get(name, baseenv()))),
    named(value_questions, function(name) values_function(namesakes[[name]] %||% get(name, baseenv()), name)),
    lapply(base::c(`class<-` = "class", `oldClass<-` = "oldClass", `levels<-` = "levels"), assigning),
    lapply(base::c(`mode<-` = "mode<-", `storage.mode<-` = "storage.mode<-"), assigning_mode),
    list(
      `attr<-` = assign_attr_overload, `attributes<-` = assign_attributes_overload,
      class = class_overload, inherits = inherits_overload, attr = attr_overload, unclass = unclass_overload,
      is = stand_in_function(methods::is),
      object.size = stand_in_function(utils::object.size), str = str_overload,
      unique = unique_overload, duplicated = duplicated_overload,
      rapply = rapply_overload,
      tryCatch = hearing(base::tryCatch), withCallingHandlers = hearing(base::withCallingHandlers),
      try = hearing(base::try, "stop"), try_fetch = hearing(rlang::try_fetch)
    ),
    lapply(mget(grep("^is_", getNamespaceExports("rlang"), value = TRUE), asNamespace("rlang")), stand_in_function)
  )
}

# Methods ------------------------------------------------------------------------------------------------------------

# The value on which `UseMethod()` dispatches: the stand-in, unless the generic has methods for tensors.
dispatched <- function(generic, x) {
  frame <- parent.frame()
  number <- Position(function(i) identical(sys.frame(i), frame), seq_len(sys.nframe()), right = TRUE)
  if (missing(x)) x <- first_argument(sys.function(number), frame)
  if (!is.environment(x) || !is_any_tensor(x)) {
    return(x)
  }
  value <- stand_in(x)
  envs <- list(sys.frame(sys.parents()[number]), frame)
  for_tensors <- has_methods(generic, tensor_classes_of(x), envs)
  if (for_tensors && !has_users_methods(generic, base::c(.class2(value), "default"), envs)) x else value
}

# The object on which `UseMethod()` dispatches by default.
first_argument <- function(f, frame) {
  names <- names(formals(f))
  if (length(names) == 0L) {
    NULL
  } else if (names[1L] == "...") {
    if (eval(quote(...length()), frame) > 0L) eval(quote(..1), frame)
  } else if (!eval(call("missing", as.name(names[1L])), frame)) {
    get(names[1L], envir = frame)
  }
}

tensor_classes_of <- function(x) {
  setdiff(class(x), "python.builtin.object")
}

has_methods <- function(generic, classes, envs) {
  for (class in classes) {
    for (env in envs) if (!is.null(utils::getS3method(generic, class, TRUE, env))) return(TRUE)
  }
  FALSE
}

# The first method of one of the generics for one of the classes that a package or the user defined, or NULL.
users_method <- function(generics, classes, envs) {
  for (method in paste0(rep(generics, each = length(classes)), ".", classes)) {
    for (env in envs) {
      found <- get0(method, envir = env, mode = "function")
      if (!is.null(found) && !package_of(found) %in% own_packages) return(found)
    }
  }
}

has_users_methods <- function(generics, classes, envs) {
  !is.null(users_method(generics, classes, envs))
}

# Implicit classes, which a value has without a class attribute.
implicit_classes <- base::c("matrix", "array", "integer", "double", "numeric", "logical", "complex", "default")

# A base R generic for which a package or the user has methods for R vectors.
has_new_methods <- function(found, name, env) {
  is_generic(found) && !is_adaptable(found) && has_users_methods(name, implicit_classes, list(env))
}

# `standardGeneric()` of an S4 generic, which dispatches on the stand-ins of tensors.
standard_generic <- function(generic) {
  force(generic)
  function() {
    frame <- parent.frame()
    is_given <- function(name) name == "..." || !eval(call("missing", as.name(name)), frame)
    classes <- character()
    tensors <- sparse <- FALSE
    for (name in setdiff(methods::slot(generic, "signature"), "...")) {
      value <- if (is_given(name)) get(name, envir = frame)
      tensors <- tensors || is.environment(value) && is_any_tensor(value)
      sparse <- sparse || is_sparse_tensor(value)
      classes <- base::c(classes, if (is_given(name)) class(stand_in(value))[1L] else "missing")
    }
    name <- methods::slot(generic, "generic")
    method <- if (tensors || sparse) methods::selectMethod(name, classes, optional = TRUE, fdef = generic)
    if (is.null(method) || is.primitive(method) || methods::is(method, "derivedDefaultMethod")) {
      # A sparse tensor has no class of S4: a package's methods for others must not hide gradops' function.
      method <- if (sparse) get0(name, overloads(), inherits = FALSE)
      if (is.null(method)) {
        return(eval(call("standardGeneric", as.character(name)), frame))
      }
    } else {
      method <- tensor_aware(method)
    }
    given <- Filter(is_given, names(formals(generic)))
    names(given) <- ifelse(given == "...", "", given)
    eval(as.call(base::c(method, lapply(given, as.name))), frame)
  }
}

# Values --------------------------------------------------------------------------------------------------------------

# R's values of a tensor, or of the tensors in a list; `what` names the function that looks at them.
seen <- function(x, what) {
  if (is.environment(x) && is_any_tensor(x)) {
    if (is_text(x)) values_of(x) else plain(x) %||% looked_at(x, "values") %||% not_seen(what)
  } else if (is.list(x) && holds_tensors_within(x)) {
    x[] <- lapply(x, seen, what)
    x
  } else {
    x
  }
}

not_seen <- function(what) {
  needs_values(sprintf("`%s()`", what), instead(instead_of$values), NULL)
}

holds_tensors_within <- function(x) {
  for (part in if (is.object(x)) unclass(x) else x) {
    if (is.environment(part) && is_any_tensor(part) || is.list(part) && holds_tensors_within(part)) return(TRUE)
  }
  FALSE
}

# Make a base R function answer by the values of its tensor arguments.
values_function <- function(original, name) {
  force(original)
  force(name)
  function(...) {
    if (needs_seeing(...)) do.call(original, lapply(list(...), seen, name), quote = TRUE) else original(...)
  }
}

needs_seeing <- function(...) {
  kind <- function(x) { # `x` stays a promise, as it may be the empty name
    if (is.environment(x)) {
      if (is_any_tensor(x)) if (is_text(x)) "text" else "tensor"
    } else if (is.list(x) && holds_tensors_within(x)) {
      "tensor"
    }
  }
  found <- FALSE
  for (i in seq_len(...length())) {
    switch(kind(...elt(i)) %||% "other", text = return(FALSE), tensor = found <- TRUE)
  }
  found
}

value_questions <- base::c(
  "identical", "isTRUE", "isFALSE", "all.equal", "anyDuplicated", "bitwAnd", "bitwOr", "bitwXor",
  "serialize", "max.col",
  # strings
  "abbreviate", "addNA", "as.character", "as.factor", "as.hexmode", "as.name", "as.octmode", "as.ordered", "as.symbol",
  "casefold", "chartr", "dQuote", "deparse", "deparse1", "dput", "encodeString", "endsWith", "factor",
  "file.path", "format", "formatC", "format.Date", "gettextf", "gregexpr", "grep", "grepl", "gsub", "intToUtf8",
  "interaction", "is.element", "make.names", "make.unique", "nchar", "noquote", "ordered", "paste", "paste0",
  "prettyNum", "regexec", "regexpr", "sQuote", "shQuote", "sprintf", "startsWith", "strsplit", "strtoi", "strtrim",
  "strwrap", "sub", "substr", "substring", "table", "toString", "tolower", "toupper", "trimws"
)

unique_overload <- function(x, ...) {
  if (is.list(x) && holds_tensors_within(x)) x[!base::duplicated(seen(x, "unique"), ...)] else base::unique(x, ...)
}

duplicated_overload <- function(x, ...) {
  base::duplicated(if (is.list(x)) seen(x, "duplicated") else x, ...)
}

# Elements of nested lists, chosen by their class.
rapply_overload <- function(object, f, classes = "ANY", deflt = NULL, how = c("unlist", "replace", "list"), ...) {
  if (!is.list(object) || !holds_tensors_within(object)) {
    return(base::rapply(object, f, classes, deflt, how, ...))
  }
  how <- match.arg(how)
  f <- found_function(match.fun(f))
  applied <- function(x) {
    if (is.list(x)) {
      x[] <- lapply(x, applied)
      x
    } else if (any(base::c("ANY", class(stand_in(x))) %in% classes)) {
      f(x, ...)
    } else if (how == "replace") {
      x
    } else {
      deflt
    }
  }
  found <- applied(object)
  if (how == "unlist") unlist(found) else found
}

# Output and conditions -----------------------------------------------------------------------------------------------

# A string for a tensor: its values. If they are not known and only the user reads the string, a description.
words_of_tensor <- function(x, what) {
  described <- callbacks() == 0 || is_text(x)
  as.character(if (described) known_values(x) %||% format_tensor(x) else seen(x, what))
}

# TRUE if the code that is differentiated captures its own output.
is_captured <- function() {
  inside() > 0 && sink.number() > (state$sinks %||% 0L)
}

str_overload <- function(object, ...) {
  utils::str(if (is_captured()) seen(object, "str") else object, ...)
}

# A tensor in the text of a condition: a description, or the values if a handler in the code itself receives the
# condition.
said <- function(x, condition) {
  if (condition %in% state$heard) seen(x, condition) else shown_plainly(x)
}

# Make `try` evaluate its first argument with handlers that belong to the code that is differentiated. An error
# that says that the code cannot be compiled is not meant for these handlers alone, so it is raised again.
hearing <- function(try, always = character()) {
  force(try)
  force(always)
  function(expr, ...) {
    before <- state$heard
    state$heard <- base::union(before, base::c(always, heard_by(names(match.call(expand.dots = FALSE)$...))))
    on.exit(state$heard <- before)
    if ("stop" %in% state$heard && compiling() > 0) {
      try(withCallingHandlers(expr, gradops_error = refuse), ...)
    } else {
      try(expr, ...)
    }
  }
}

heard_by <- function(classes) {
  base::c(
    if (any(classes %in% base::c("warning", "simpleWarning", "condition"))) "warning",
    if (any(classes %in% base::c("error", "simpleError", "condition"))) "stop",
    if (any(classes %in% base::c("message", "simpleMessage", "condition"))) "message"
  )
}

# Note an error that the code itself handles while it is compiled, as other values may not raise it; call_traced() then
# raises the note. Errors of shape, type and axis do not depend on values.
refuse <- function(error) {
  if (!is.null(state$refused) || inherits(error, base::paste0("gradops_error_", base::c("shape", "type", "axis")))) {
    return()
  }
  if (!inherits(error, "gradops_error_jit")) {
    error <- rlang::error_cnd(
      c("gradops_error_jit", "gradops_error"),
      message = "`tryCatch()` or `try()` decides by an error, which other values may not raise.",
      body = base::c(i = instead("Test for it before, with `if`")), parent = error, use_cli_format = TRUE
    )
  }
  state$refused <- error
}

# Conditions from inside base R's own computations are not passed on.
unheard <- function(expr) {
  before <- state$heard
  state$heard <- NULL
  on.exit(state$heard <- before)
  expr
}

# Raise R's warning about NaN if a handler in the code receives it.
hear_nan <- function(result, arguments, call) {
  if (!"warning" %in% state$heard || !is.environment(result) || !is_tensor(result)) {
    return(result)
  }
  made <- op_isnan(result)
  for (x in arguments) {
    if (is.environment(x) || is.numeric(x)) {
      made <- call_operator("logical_and", operand(made), operand(op_logical_not(op_isnan(operand(x)))))
    }
  }
  if (isTRUE(seen(op_any(made), "warning"))) warning(simpleWarning(gettext("NaNs produced", domain = "R"), call))
  result
}

# Raise R's error where some libraries give NaN instead, if a handler in the code waits for it.
hear_failure <- function(result, arguments, message, call) {
  if (!"stop" %in% state$heard) {
    return(result)
  }
  finite <- function(x) if (is_any_tensor(x)) op_all(op_isfinite(x)) else all(is.finite(x))
  failed <- Reduce(op_logical_and, lapply(arguments, finite), op_logical_not(finite(result)))
  if (isTRUE(seen(failed, "tryCatch"))) stop(simpleError(message, call))
  result
}
