# Repeated derivatives: at its first call a function itself runs, on tensors. From the second call on, or from the first
# if it has a loop, its program runs, compiled as objective(jit = TRUE) does.
#
# A program leaves out the effects of `f`: printing, counting, drawing random numbers, reading files. So a function is
# compiled only if all the code that it can reach is known to have no effects: `effect_of()` has a list of allowed
# functions, as a list of forbidden ones would never be complete. The user did not ask for a program, so where the
# program does not end as the function may (an error, a warning, a refusal to compile), the function itself runs and
# reports it. explain() gives the reasons.

# Return a function of a list of arguments that gives derivatives of `f` by a program: value and gradient, as
# interop.r.objective() returns them, or the `hessian` or `jacobian` with respect to the first argument, a vector or an
# array. It returns NULL if `f` itself has to run. Further arguments are part of the program; if they change, counting
# starts again. `users` is the code of `f` that the user wrote.
repeated <- function(f, of = "gradient", users = f) { # nolint: cyclocomp_linter. Its functions count as one.
  calls <- traces <- 0L
  run <- extra <- here <- NULL
  refused <- if (is.primitive(users)) "it is one of R's primitives" # a program, for this reason
  skipped <- NULL # the reason why `f` itself ran last, when there was a program
  is_gradient <- of == "gradient"
  make <- function(traced, found_here, compiled) {
    traces <<- traces + 1L
    reason <- if (!compiled) {
      "it changes variables"
    } else if (traces > 2L && 4L * traces > calls) {
      sprintf("it was traced %d times in %d calls", traces, calls) # a program for each call is slower than none
    } else if (!is_ordinary(extra)) {
      "further arguments are not plain data"
    } else {
      first_of(c(list(users), Filter(is.function, extra)), effect_of)
    }
    if (!is.null(reason)) stop(reason)
    here <<- found_here
    program_of(of, callback(differentiated(traced, here, joined = TRUE), owner = here))
  }
  evaluate <- function(arguments) {
    if (!is.null(refused) || !is_vector_of_doubles(arguments[[1L]])) {
      return(NULL)
    }
    calls <<- calls + 1L
    given <- arguments[-1L]
    if (!identical(given, extra)) {
      extra <<- given
      run <<- NULL
      if (calls > 1L || !has_loop(users)) {
        return(NULL)
      }
    }
    if (is.null(run) && isdebugged(users) || !py_to_r(call_core("interop.r.can_skip_recording"))) {
      return(NULL)
    }
    if (is.null(run)) run <<- compiled_calls(with_extra(f, extra), make, if (is_gradient) pair_caller else direct_caller)
    before <- traces
    warned <- state$warned
    found <- attempt(run(list(as_doubles(arguments[[1L]]))), warning = identity)
    is_said <- inherits(found, "condition")
    if (!is_said && (!is_gradient || length(found$value) == 1L)) {
      return(if (is_gradient) found else list(value = found, rows = here$rows))
    }
    state$warned <- warned # the function itself warns
    skipped <<- if (is_said) cause_of(found) else "it has several values"
    if (!is_said || traces > before || inherits(found, c("gradops_error_jit", "gradops_warning_jit"))) {
      refused <<- skipped
    }
    NULL
  }
  explain <- function() {
    if (!is.null(refused)) {
      paste("not compiled:", refused)
    } else if (is.null(run)) {
      "not compiled yet: the second call compiles it"
    } else {
      c(attr(run, "explain")(), if (!is.null(skipped)) paste("the function itself ran at some call:", skipped))
    }
  }
  structure(evaluate, explain = explain)
}

# The first line of a condition's message, or of its first cause's.
cause_of <- function(condition) {
  while (!is.null(condition$parent)) condition <- condition$parent
  sub("\n.*", "", conditionMessage(condition))
}

# The first value of a function of items that is not NULL.
first_of <- function(items, f, ...) {
  for (item in items) if (!is.null(found <- f(item, ...))) return(found)
}

program_of <- function(of, in_python) {
  switch(of,
    gradient = call_core("interop.r.objective", in_python, TRUE),
    hessian = call_core("interop.r.compiled", of, in_python, FALSE, FALSE, FALSE, "reverse-mode"),
    jacobian = call_core("interop.r.compiled", of, in_python, FALSE, FALSE, FALSE, NULL)
  )
}

# The value and the Jacobian of a function of a vector that is known to have no effects, for example a likelihood's
# reports.
value_and_jacobian <- function(f, x) {
  make <- function(traced, here, compiled) {
    call_core("interop.r.value_and_jacobian", callback(differentiated(traced, here), owner = here), compiled)
  }
  found <- tryCatch(compiled_calls(f, make)(list(x)), gradops_error_jit = function(error) {
    list(jacobian(f, x), f(op_convert_to_tensor(x)))
  })
  list(value = found[[2L]], jacobian = found[[1L]])
}

# TRUE if `f` has a loop. Recording a loop takes no longer than running it on the tape, so its program is made at the
# first call.
has_loop <- function(f) any(c("for", "while", "repeat") %in% all.names(body(f)))

# Repeated derivatives for parameters that may be a list.
repeated_of_lists <- function(f) {
  list_evaluator(f, repeated(f), function(of_vector) repeated(of_vector, users = f))
}

# Repeated `hessian` or `jacobian`: a matrix; for a named list, matrices for its parts.
repeated_matrix <- function(f, of) {
  by_vector <- repeated(f, of)
  by_layout <- function(found, layout) {
    places <- unname(split(seq_len(sum(layout$sizes)), rep(seq_along(layout$sizes), layout$sizes)))
    names <- lapply(layout$attributes, `[[`, "names")
    whole <- matrix(as.vector(found$value), ncol = sum(layout$sizes))
    row <- function(rows, named) {
      rebuilt_parts(Map(\(at, names) block(whole[rows, at, drop = FALSE], named, names), places, names), layout)
    }
    if (of == "hessian") rebuilt_parts(Map(row, places, names), layout) else row(seq_len(nrow(whole)), found$rows)
  }
  again <- list_evaluator(f, by_vector, function(of_vector) repeated(of_vector, of, users = f), by_layout)
  evaluate <- function(arguments) {
    x <- arguments[[1L]]
    found <- if (!is.list(x) || !is.null(names(x))) again(arguments)
    if (is.null(found) || is.list(x)) found else flat_matrix(found$value, x, if (of == "hessian") names(x) else found$rows)
  }
  structure(evaluate, explain = attr(again, "explain"))
}

block <- function(found, rows, columns) {
  if (!is.null(rows) || !is.null(columns)) dimnames(found) <- list(rows, columns)
  found
}

is_vector_of_doubles <- function(x) gives_numbers(x) && !is.object(x) && !is.list(x) && !is.complex(x) && length(x) > 0L

# The repeated derivatives of `f`, kept for the same `f` as long as its environment lives.
derivatives_of <- function(f) {
  make <- function() {
    known <- list2env(list(f = f, gradient = repeated_of_lists(f)))
    known$both <- value_and_grad_by(f, known$gradient)
    for (of in c("hessian", "jacobian")) known[[of]] <- repeated_matrix(f, of)
    known
  }
  home <- environment(f)
  if (is.null(home)) {
    return(make())
  }
  reference <- recently(
    differentiated_lately, function(reference) is_about(reference, f), function() rlang::new_weakref(home, make()),
    most = 20L
  )
  if (inside() == 0) state$warned <- FALSE # a new function would warn again
  rlang::wref_value(reference)
}

is_about <- function(reference, f) {
  identical(rlang::wref_key(reference), environment(f)) && identical(rlang::wref_value(reference)$f, f)
}

differentiated_lately <- new.env(parent = emptyenv())

# The `of` of `f` by a program: "gradient" (with the value), "hessian" or "jacobian"; NULL without a program.
by_program <- function(of, f, x, extra) {
  if (!missing(x) && rlang::is_closure(f)) derivatives_of(f)[[of]](c(list(x), extra))
}

# The lines of explain() for a function whose derivatives were taken, or for one such as grad_fn(f); NULL for others.
explained_repetition <- function(f) {
  reference <- Find(function(reference) is_about(reference, f), differentiated_lately$made)
  if (!is.null(reference)) {
    known <- mget(c("gradient", "hessian", "jacobian"), rlang::wref_value(reference))
    said <- lapply(known, function(again) attr(again, "explain")())
    return(unlist(Map(c, paste0(names(said), ":"), said), use.names = FALSE))
  }
  home <- environment(f)
  if (is.function(home$both)) home <- environment(home$both)
  explain <- if (!is.null(home) && identical(topenv(home), topenv())) attr(home$again, "explain")
  if (is.function(explain)) explain()
}

# The effect that `f`, or a function that it can reach, may have, as a text; NULL if all that code is known to have none.
effect_of <- function(f) {
  seen <- list()
  effect <- function(f, name) {
    if (is.primitive(f) || !is_adaptable(f)) {
      is_pure <- own_name(f, name) %in% pure_names()
      is_pure <- is_pure && (is.primitive(f) || package_of(f) %in% c(own_packages, "gradops"))
      return(if (!is_pure) sprintf("%s may have effects", if (nzchar(name)) sprintf("`%s()`", name) else "it"))
    }
    if (any(vapply(seen, identical, NA, f))) {
      return(NULL)
    }
    seen <<- c(seen, list(f))
    if (length(seen) > 100L) "it reaches more than 100 functions" else effect_in_code(f)
  }
  effect_in_code <- function(f) {
    code <- c(unname(as.list(formals(f))), list(body(f)))
    names <- names_of(f)
    called <- calls_in(code)
    outside <- c(names$assigned, names$global, names$opened)
    if (length(outside) > 0L) {
      return(sprintf("it may change `%s`", outside[1L]))
    }
    if (isS4(f) || anyNA(called$names)) {
      return("it calls functions that it finds or makes when it runs")
    }
    of_name <- function(name) {
      is_call <- name %in% called$names
      is_local <- is_call && name %in% called$local
      found <- get0(name, environment(f), mode = if (is_call) "function" else "any")
      reason <- if (is.function(found)) {
        if (!is_local) effect(found, name)
      } else if (is_call && !is_local) {
        sprintf("it calls `%s()`, which is not known before it runs", name)
      }
      is_fixed <- !name %in% names$all || is_constant(name, environment(f))
      reason %||% if (!is_fixed) sprintf("`%s` is not plain data", name)
    }
    of_space <- function(call) {
      found <- attempt(eval(call, baseenv()))
      if (is.function(found)) effect(found, as.character(call[[3L]])) else if (inherits(found, "error")) cause_of(found)
    }
    first_of(unique(c(called$names, names$all)), of_name) %||% first_of(called$spaces, of_space)
  }
  effect(f, "")
}

# The functions that code calls: `names` (NA for a function that is itself computed); `local`, those among them that the
# code itself defines with `function`; `spaces`, the calls of `::`.
calls_in <- function(code) {
  calls <- all_calls(code)
  heads <- lapply(calls, `[[`, 1L)
  names <- vapply(heads, name_of_code, "")
  is_computed <- names == "" & !vapply(heads, rlang::is_call, NA, c("::", ":::", "function", "("))
  assignments <- calls[names %in% c("<-", "=")]
  targets <- lapply(assignments, `[[`, 2L)
  assigned <- vapply(targets, name_of_code, "")
  is_made <- vapply(assignments, function(call) rlang::is_call(call[[3L]], "function"), NA)
  parameters <- lapply(calls[names == "function"], function(call) names(call[[2L]]))
  replaced <- lapply(targets[assigned == ""], replacements_in)
  list(
    names = unique(c(names[names != ""], if (any(is_computed)) NA, unlist(replaced))),
    local = setdiff(assigned[is_made], c("", assigned[!is_made], unlist(parameters))),
    spaces = calls[names %in% c("::", ":::")]
  )
}

name_of_code <- function(code) if (is.symbol(code)) as.character(code) else ""

# All calls in code, outermost first.
all_calls <- function(code) {
  if (is.call(code)) {
    inner <- switch(name_of_code(code[[1L]]), `$` = , `@` = code[[2L]], `::` = , `:::` = NULL, as.list(code))
    c(list(code), all_calls(inner))
  } else if (is.list(code) || is.pairlist(code)) {
    unlist(lapply(code, function(part) if (is.recursive(part)) all_calls(part)), recursive = FALSE)
  }
}

# TRUE if a variable holds ordinary R data or a function, or does not exist.
is_constant <- function(name, env) {
  while (!identical(env, emptyenv())) {
    if (exists(name, envir = env, inherits = FALSE)) {
      return(!bindingIsActive(as.name(name), env) && is_ordinary(env[[name]]))
    }
    env <- parent.env(env)
  }
  TRUE
}

is_ordinary <- function(x) {
  if (is.list(x)) all(vapply(x, is_ordinary, NA)) else is.atomic(x) || is.function(x) || is.language(x) && !isS4(x)
}

pure_names <- function() {
  state$pure <- state$pure %||% {
    namesakes <- names(all_namesakes())
    random <- substring(namesakes, 1L, 1L) == "r" & paste0("d", substring(namesakes, 2L)) %in% namesakes
    ops <- grep("^op_", getNamespaceExports(topenv()), value = TRUE)
    effects <- c("cat", "optim", "optimise", "optimize", "nlm", "nlminb", "rhyper", "rsignrank", "rwilcox")
    c(
      unlist(lapply(c("Ops", "Math", "Math2", "Summary", "Complex"), methods::getGroupMembers, recursive = TRUE)),
      setdiff(namesakes[!random], effects),
      grep("custom|random|dropout|shuffle|seed|print", ops, value = TRUE, invert = TRUE),
      pure_functions
    )
  }
}

# R's functions without effects that have no namesake in gradops.
pure_functions <- c(
  "{", "(", "if", "for", "while", "repeat", "break", "next", "return", "function", "<-", "=", "[", "[[", "$", "::",
  "&&", "||", "!", ":", "~", "xor", "identity", "invisible", "list", "numeric", "integer", "double", "logical",
  "character", "vector", "rep", "rep_len", "rep.int", "seq", "seq_len", "seq_along", "seq.int", "length", "lengths",
  "nrow", "ncol", "NROW", "NCOL", "dim", "names", "dimnames", "rownames", "colnames", "unname", "setNames", "attr",
  "as.numeric", "as.double", "as.integer", "as.logical", "as.character", "as.vector", "as.matrix", "as.list",
  "[<-", "[[<-", "$<-", "names<-", "dim<-", "dimnames<-", "rownames<-", "colnames<-", "attr<-", "is.na", "is.nan",
  "is.finite", "is.infinite", "is.null", "is.numeric", "is.character", "is.list", "is.matrix", "is.function", "anyNA",
  "identical", "inherits", "missing", "stop", "stopifnot", "switch", "lapply", "Map", "Reduce", "Filter", "do.call",
  "match.fun", "append", "replace", "head", "tail", "rev", "order", "sort", "unique", "match", "%in%", "setdiff",
  "union", "intersect", "table", "factor", "levels", "nlevels", "split", "rowsum", "rbind", "cbind", "t", "aperm",
  "diff", "mean", "median", "quantile", "rank", "cut", "findInterval", "tabulate", "expand.grid", "row", "col",
  "upper.tri", "lower.tri", "det", "determinant", "chol", "qr", "with", "within", "structure", "data.frame"
)
