# R's syntax in adapted code: it has no name that the overlay could shadow, so the code itself is rewritten.
#
#     if (a) b              if (.gradops_condition(a, "if")) b          also `while`
#     a && b                .gradops_condition(a, "&&") && ...          also `||`
#     for (v in s) b        for (v in .gradops_sequence(s)) b
#     switch(a, ...)        switch(.gradops_condition(a, "switch"), ...)
#     x@r                   .gradops_at(x, "r")                         before R 4.3, where `@` is no generic
#     m$f(x), stats::f(x)   .gradops_function(m$f)(x), ...              a function that is not found by name alone;
#     g <- m$f, user(m$f)   g <- .gradops_function(m$f), ...            also where it is assigned or passed on
#     UseMethod("area")     UseMethod("area", .gradops_dispatched("area"))
#     warning(a, b)         warning(.gradops_said(a, "warning"), ...)   also `message`, `stop`
#     y[round(p)]           .gradops_part(y, round(p))                  a computed index of integers
#     link(x)               .gradops_called("link")(x)                  where `link` is an argument or a variable: any
#                                                                       function, R's own too

# The rewritten body of `f`, and the names and strings in it. The body is wrapped in braces, because R's compiler skips
# `f` if it has compiled the same code in another environment.
code_of <- function(f) {
  recently(
    state$codes %||% (state$codes <- new.env(parent = emptyenv())),
    function(code) identical(code$original, body(f)) && identical(code$formals, formals(f)),
    function() {
      defaults <- Filter(Negate(rlang::is_missing), as.list(formals(f)))
      code <- with_parts(body(f), whole_names(body(f), names(formals(f))))
      variables <- base::c(names(formals(f)), variables_of(body(f)), unknown_functions(body(f), environment(f)))
      names <- unique(c(words_of(body(f)), unlist(lapply(unname(defaults), words_of))))
      list(
        original = body(f), formals = formals(f), body = call("{", rewritten(code, variables)),
        defaults = lapply(defaults, rewritten, variables), names = names, leaves_out = leaves_out(f, names)
      )
    }
  )
}

# TRUE if a function with these names in its code, or one of the user's functions that it reaches, replaces elements or
# leaves some out.
leaves_out <- function(f, names = words_of(body(f)), seen = new.env()) {
  code <- body(f)
  known <- if (any(choosing %in% names)) setdiff(counters(code), names(formals(f)))
  if (any(base::c("[<-", "[[<-", "diag<-", "ifelse") %in% names) || reads_some(code, known)) {
    return(TRUE)
  }
  for (name in setdiff(all.names(code), all.vars(code))) {
    other <- if (nzchar(name) && !is_of_r(name)) get0(name, envir = environment(f) %||% baseenv(), mode = "function")
    if (is.null(other) || !is_adaptable(other, name) || any(vapply(seen$functions, identical, NA, other))) next
    seen$functions <- base::c(seen$functions, other)
    if (leaves_out(other, seen = seen)) {
      return(TRUE)
    }
  }
  FALSE
}

# TRUE if code reads several elements at once. An index counts if it is computed; if the code has a `choosing` function
# anywhere, any variable counts too, except those in `known`, which are single numbers. `known` is NULL if the code has
# no `choosing` function.
reads_some <- function(code, known) {
  if (!is.call(code)) {
    return(FALSE)
  }
  some <- function(place) {
    negative <- is_call_of(place, "-") && length(place) == 2L
    by_name <- !is.null(known) && is.name(place) && !as.character(place) %in% known
    negative || by_name || is_call_of(place, base::c("c", choosing))
  }
  parts <- Filter(Negate(rlang::is_missing), as.list(code))
  is_call_of(code, "[") && any(vapply(parts[-(1:2)], some, NA)) || any(vapply(parts, reads_some, NA, known))
}

# Variables that only `for (i in seq_len(n))` and similar loops assign: each is a single number.
counters <- function(code) {
  given <- variables_of(code)
  counted <- counted_in(code)
  Filter(function(name) sum(given == name) == sum(counted == name), unique(counted))
}

counted_in <- function(code) {
  if (!is.call(code)) {
    return(character())
  }
  counts <- is_call_of(code, "for") && is_call_of(code[[3]], base::c("seq_len", "seq_along", ":"))
  parts <- Filter(Negate(rlang::is_missing), as.list(code))
  base::c(if (counts) as.character(code[[2]]), base::unlist(lapply(unname(parts), counted_in)))
}

choosing <- base::c("<", ">", "<=", ">=", "==", "!=", "!", "&", "|", "is.na", "is.nan", "is.finite", "which")

# Variables that the code may call as functions: arguments of its functions, and names that it assigns a value, unless
# the value is a function written there.
variables_of <- function(code) {
  if (!is.call(code)) {
    return(character())
  }
  head <- if (is.symbol(code[[1]])) as.character(code[[1]]) else ""
  here <- switch(head,
    `<-` = , `<<-` = , `=` = if (!is.call(code[[2]]) && !is_call_of(code[[3]], "function")) as.character(code[[2]]),
    `for` = as.character(code[[2]]),
    `function` = names(code[[2]])
  )
  parts <- as.list(code)
  if (head == "function") parts <- base::c(parts[3], as.list(code[[2]]))
  base::c(here, base::unlist(lapply(unname(parts), function(part) if (!rlang::is_missing(part)) variables_of(part))))
}

# Functions that are called but do not exist before the code runs. If the code attaches or sources names, all functions
# that are not R's.
unknown_functions <- function(code, env) {
  names <- all.names(code, unique = TRUE)
  called <- setdiff(names, all.vars(code))
  brings <- any(bringing_names %in% names)
  Filter(function(name) if (brings) !is_of_r(name) else !exists(name, envir = env, mode = "function"), called)
}

bringing_names <- c("list2env", "assign", "attach", "with", "within", "getAll")

# The symbols and strings in code; a string may name a function: `sapply(x, "helper")`.
words_of <- function(code) {
  if (is.symbol(code)) {
    as.character(code)
  } else if (is.character(code)) {
    if (length(code) == 1 && !is.na(code)) code else character()
  } else if (is.call(code)) {
    base::unlist(c(lapply(as.list(code), words_of), if (is_call_of(code, assignments)) replacements_in(code[[2]])))
  } else if (is.pairlist(code)) {
    base::unlist(lapply(unname(as.list(code)), words_of))
  }
}

# The replacement functions that `names(f(x))[i] <- v` calls.
replacements_in <- function(target) {
  found <- character()
  while (is.call(target)) {
    if (is.symbol(target[[1]])) found <- c(found, paste0(as.character(target[[1]]), "<-"))
    target <- if (length(target) > 1) target[[2]]
  }
  found
}

assignments <- c("<-", "<<-", "=")
parts_of_objects <- c("$", "[[", "@", "get", "match.fun")

# Calls whose arguments are quoted code, which is not rewritten, and calls whose value is known to be R's.
quoting <- c("quote", "bquote", "substitute", "expression", "~", "missing", "library", "require")
conditions_of_r <- c("stop", "warning", "message")
plain_sequences <- c("seq_len", "seq_along")
plain_conditions <- c("&&", "||", "is.null", "missing", "inherits", "is.function", "exists", "nzchar", "is.character")

rewritten <- function(code, variables = character()) {
  if (!is.call(code)) {
    return(code)
  }
  head <- if (is.symbol(code[[1]])) as.character(code[[1]]) else ""
  if (head %in% quoting) {
    code
  } else if (head == "@" && getRversion() < "4.3.0") {
    call(".gradops_at", rewritten(code[[2]], variables), as.character(code[[3]]))
  } else if (head %in% c("::", ":::")) {
    called <- as.character(code[[3]])
    if (code[[2]] == "RTMB" && !rlang::is_installed("RTMB")) code <- call("get", called) # attach_rtmb() provides it
    call(".gradops_function", code, called)
  } else if (head == "function") {
    if (!is.null(code[[2]])) code[[2]] <- defaults_rewritten(code[[2]], variables)
    code[[3]] <- rewritten(code[[3]], variables)
    code
  } else {
    attributes <- attributes(code)
    parts <- rewritten_parts(as.list(code), head, variables)
    if (head == "log" && length(parts) == 3L) parts[[1]] <- as.name(".gradops_log")
    code <- as.call(deciding(with_functions(parts, head, variables), head))
    attributes(code) <- attributes
    code
  }
}

# The parts of a call, each rewritten. In the target of an assignment only `x[which(test)]` is rewritten.
rewritten_parts <- function(parts, head, variables) {
  from <- if (head %in% assignments) 3 else 2
  if (from == 3 && !"which" %in% variables) parts[[2]] <- with_tests(parts[[2]])
  for (i in seq_along(parts)[-seq_len(from - 1)]) {
    if (!rlang::is_missing(parts[[i]]) && is.call(parts[[i]])) parts[[i]] <- rewritten(parts[[i]], variables)
  }
  parts
}

# `x[which(test)] <- v` becomes `x[test] <- v` if the values of the test are not known yet.
with_tests <- function(target) {
  if (is_call_of(target, "[") && length(target) == 3 && is_call_of(target[[3]], "which") && length(target[[3]]) == 2) {
    target[[3]][[1]] <- as.name(".gradops_places")
  }
  target
}

defaults_rewritten <- function(formals, variables) {
  as.pairlist(lapply(formals, function(value) if (is.call(value)) rewritten(value, variables) else value))
}

# Rewrite indices of R's vectors that may be tensors, as base R's `[` does not dispatch on them: integers that the code
# computes, directly or under one of the names `whole`, and arguments.
with_parts <- function(code, whole) {
  if (!is.call(code) || is_call_of(code, quoting)) {
    return(code)
  }
  for (i in seq(if (is_call_of(code, c(assignments, "::", ":::"))) 3L else 1L, length(code))) {
    if (!rlang::is_missing(code[[i]]) && is.call(code[[i]])) code[[i]] <- with_parts(code[[i]], whole)
  }
  if (is_call_of(code, c("[", "[[")) && any(vapply(as.list(code)[-(1:2)], is_whole_code, NA, whole))) {
    code[[1]] <- as.name(if (is_call_of(code, "[")) ".gradops_part" else ".gradops_element")
  }
  code
}

is_whole_code <- function(code, whole) {
  if (is.symbol(code)) {
    as.character(code) %in% whole && !identical(code, quote(...))
  } else if (is_call_of(code, make_whole)) {
    TRUE
  } else if (is_call_of(code, c("[", "[["))) {
    is_whole_code(code[[2]], whole)
  } else {
    is_call_of(code, keep_whole) && any(vapply(as.list(code)[-1], is_whole_code, NA, whole))
  }
}

make_whole <- c(
  "round", "floor", "ceiling", "trunc", "%/%", "%%", "which.max", "which.min",
  "<", ">", "<=", ">=", "==", "!=", "!", "&", "|", "is.na"
)
keep_whole <- c(
  "+", "-", "*", "(", ":", "c", "max", "min", "pmax", "pmin", "abs", "sum", "seq", "rev", "rep", "cumsum", "ifelse",
  "if", "as.numeric", "unname", "sort", "unique"
)

# Names of such integers in the code, and of arguments.
whole_names <- function(code, found = character()) {
  if (!is.call(code)) {
    return(found)
  }
  for (part in as.list(code)) if (!rlang::is_missing(part) && is.call(part)) found <- whole_names(part, found)
  if (is_call_of(code, "function")) {
    return(whole_names(code[[3]], c(names(code[[2]]), found)))
  }
  given <- if (is_call_of(code, c(assignments, "for"))) code[[3]]
  is_named <- !is.null(given) && is.symbol(code[[2]]) && is_whole_code(given, found)
  if (is_named) c(as.character(code[[2]]), found) else found
}

# Rewrite functions that come out of objects and are called, assigned, or passed to one of the user's functions.
with_functions <- function(parts, head, variables) {
  if (is.call(parts[[1]]) || is.function(parts[[1]])) {
    parts[[1]] <- rewritten(parts[[1]], variables)
    if (!is_call_of(parts[[1]], ".gradops_function")) parts[[1]] <- call(".gradops_function", parts[[1]])
  } else if (head %in% variables) {
    parts[[1]] <- call(".gradops_called", head)
  }
  places <- if (head %in% assignments) 3 else if (nzchar(head) && !is_of_r(head)) seq_along(parts)[-1]
  for (i in places) {
    if (!rlang::is_missing(parts[[i]]) && is.call(parts[[i]])) parts[[i]] <- function_of(parts[[i]])
  }
  parts
}

is_of_r <- function(name) {
  exists(name, envir = baseenv(), inherits = FALSE) || exists(name, envir = asNamespace("stats"), inherits = FALSE)
}

# Rewrite the conditions in R's syntax.
deciding <- function(parts, head) {
  if (head %in% c("if", "while")) {
    parts[[2]] <- condition_of(parts[[2]], head)
  } else if (head %in% c("&&", "||") && length(parts) == 3) {
    parts[2:3] <- lapply(parts[2:3], condition_of, head)
  } else if (head == "for" && !is_call_of(parts[[3]], plain_sequences)) {
    parts[[3]] <- call(".gradops_sequence", parts[[3]])
  } else if (head == "UseMethod" && length(parts) > 1) {
    parts <- base::c(parts[1:2], as.call(base::c(as.name(".gradops_dispatched"), parts[2:min(length(parts), 3)])))
  } else if (head %in% conditions_of_r) {
    parts[-1] <- lapply(parts[-1], function(part) {
      is_said <- !(rlang::is_missing(part) || is.atomic(part) || identical(part, quote(...)))
      if (is_said) call(".gradops_said", part, head) else part
    })
  } else if (head == "switch" && length(parts) > 1 && !rlang::is_missing(parts[[2]])) {
    parts[[2]] <- call(".gradops_condition", parts[[2]], head)
  }
  parts
}

function_of <- function(code) {
  if (is_call_of(code, parts_of_objects)) call(".gradops_function", code) else code
}

condition_of <- function(code, form) {
  if (is_call_of(code, plain_conditions) || is.atomic(code)) code else call(".gradops_condition", code, form)
}

is_call_of <- function(code, names) {
  is.call(code) && is.symbol(code[[1]]) && as.character(code[[1]]) %in% names
}

# Functions that the rewritten code calls -----------------------------------------------------------------------------

# The condition of a branch: the values of a tensor if they are known.
condition <- function(x, form) {
  if (is.object(x) && is_any_tensor(x)) decided(x, form, sys.call()[[2]]) else x
}

decided <- function(x, form, code) {
  value <- plain(x) %||% looked_at(x, form)
  if (is.null(value)) {
    written <- deparse(as_written(code), nlines = 1)[1]
    where <- if (form %in% c("&&", "||")) "`%2$s` in `%1$s`" else "`%s (%s)`"
    says <- paste(where, "looks at a value, which is not known while a function is compiled.")
    message <- sprintf(says, form, written)
    abort(
      c(message, i = instead(instead_of[[form]])),
      class = c("gradops_error_jit", "gradops_error"), call = NULL
    )
  }
  value
}

instead_of <- list(
  `if` = "Use `ifelse()` for elements, `op_cond()` for branches",
  `while` = "Use `op_while_loop()`, or a loop of a fixed number of steps",
  switch = "Use `op_switch()`",
  `&&` = "Use `&`, whose value may be a tensor",
  `||` = "Use `|`, whose value may be a tensor",
  stopifnot = "Check before, on R's numbers",
  values = "Take them from data that are no tensors, with `jit()` as an argument in `static_argnums`"
)

# The advice, followed by "leave `jit` out", except in a likelihood, which has to be compiled.
instead <- function(advice) paste0(advice, if (is.null(state$likelihood)) "; or leave `jit` out", ".")

# The elements that a `for` loop visits; a tensor's by column.
elements <- function(x) {
  if (is.object(x) && is_any_tensor(x)) as.list(adopted(x)) else x
}

# A part of an R vector whose indices may be tensors.
part_at <- function(x, i, j, ...) { # nolint: cyclocomp_linter. Written out, as it stands for each `x[i]` of R code.
  if (nargs() == 2L && !missing(i)) {
    if (is.environment(x) || !is.object(x) && !is.environment(i)) {
      return(x[i])
    } else if (!is.object(x)) {
      return(x[whole_numbers(i, "[")])
    }
  } else if (nargs() == 3L && !missing(i) && !missing(j)) {
    if (is.environment(x) || !is.object(x) && !is.environment(i) && !is.environment(j)) {
      return(x[i, j])
    } else if (!is.object(x)) {
      return(x[whole_numbers(i, "["), whole_numbers(j, "[")])
    }
  }
  indexed(x, sys.call(), parent.frame(), base::`[`)
}

item_at <- function(x, i, ...) {
  if (nargs() > 2L) {
    indexed(x, sys.call(), parent.frame(), base::`[[`)
  } else if (is.object(x) && finds_method(parent.frame(), "[[", x, registered = FALSE)) {
    called_from(parent.frame(), "[[", "base")(x, i)
  } else if (is.environment(i) && !is.environment(x)) {
    x[[whole_numbers(i, "[[")]]
  } else {
    x[[i]]
  }
}

# Evaluate `x[...]` by the original call, which an object's method may look at; for plain vectors the indices are
# evaluated here.
indexed <- function(x, call, frame, original) {
  call[[1L]] <- original
  call[2L] <- list(x)
  if (!is.object(x) || identical(class(x), "data.frame")) {
    for (i in seq_along(call)[-(1:2)]) {
      if (!rlang::is_missing(call[[i]])) call[i] <- list(whole_numbers(eval(call[[i]], frame), "["))
    }
  }
  eval(call, frame)
}

found_function <- function(f, name = "") {
  if (is.function(f)) translated(f, name) else f
}

# The function of this name that R would find for a call.
called_function <- function(name) {
  f <- get0(name, envir = parent.frame(), mode = "function")
  if (is.null(f)) stop(simpleError(sprintf("could not find function \"%s\"", name), call(name, quote(...))))
  translated(f, name)
}

# Undo the rewriting: return code as the user wrote it.
as_written <- function(code) {
  if (is.call(code)) {
    if (is.symbol(code[[1]]) && startsWith(as.character(code[[1]]), ".gradops_")) {
      own <- c(.gradops_part = "[", .gradops_element = "[[", .gradops_log = "log")[as.character(code[[1]])]
      if (is.na(own)) {
        return(if (is_call_of(code, ".gradops_called")) as.name(code[[2]]) else as_written(code[[2]]))
      }
      code[[1]] <- as.name(own)
    }
    for (i in seq_along(code)) {
      if (!rlang::is_missing(code[[i]]) && is.call(code[[i]])) code[[i]] <- as_written(code[[i]])
    }
  }
  code
}
