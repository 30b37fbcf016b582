# Repeated derivatives: from the second call on, or from the first if it has a loop, a function is compiled as
# objective(jit = TRUE) does.
#
# A program leaves out the effects of `f`: printing, counting, drawing random numbers, reading files. So a function is
# compiled only if all the code that it can reach is known to have no effects: `does_nothing_else()` has a list of
# allowed functions, as a list of forbidden ones would never be complete. The user did not ask for a program, so
# whatever the program would report differently from the function (an error, a warning, a refusal to compile) is
# dropped, and the function itself runs and reports it.

# Return a function of a list of arguments that gives derivatives of `f` by a program: value and gradient, as
# interop.r.objective() returns them, or the `hessian` or `jacobian` with respect to the first argument, a vector or an
# array. It returns NULL if `f` has to run uncompiled. Further arguments are part of the program; if they change,
# counting starts again. `users` is the code of `f` that the user wrote.
repeated <- function(f, of = "gradient", users = f) { # nolint: cyclocomp_linter. Its functions count as one.
  calls <- traces <- 0L
  run <- extra <- here <- NULL
  left <- is.primitive(users)
  is_gradient <- of == "gradient"
  computes <- function() all(vapply(c(list(users), Filter(is.function, extra)), does_nothing_else, NA))
  make <- function(traced, found_here, compiled) {
    traces <<- traces + 1L
    # A program for each call is slower than none.
    if (!compiled || traces > 2L && 4L * traces > calls || !computes()) stop("as it stands")
    here <<- found_here
    program_of(of, callback(differentiated(traced, here, joined = TRUE), owner = here))
  }
  evaluate <- function(arguments) {
    if (left || !is_vector_of_doubles(arguments[[1L]])) {
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
    if (is.null(run)) {
      left <<- !is_ordinary(extra)
      run <<- compiled_calls(with_extra(f, extra), make, if (is_gradient) pair_caller else direct_caller)
    }
    before <- traces
    warned <- state$warned
    found <- if (!left) attempt(run(list(as_doubles(arguments[[1L]]))), warning = identity)
    is_said <- inherits(found, "condition")
    if (!is_said && (!is_gradient || length(found$value) == 1L)) {
      return(if (is_gradient || left) found else list(value = found, rows = here$rows))
    }
    state$warned <- warned # the function itself warns
    refused <- inherits(found, c("gradops_error_jit", "gradops_warning_jit"))
    if (!is_said || refused || traces > before) left <<- TRUE
    NULL
  }
  structure(evaluate, watched = function() attr(run, "watched")())
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
  make <- function(of_vector) repeated(of_vector, of, users = f)
  of_list <- list_evaluator(f, function(arguments) NULL, make, by_layout)
  function(arguments) {
    x <- arguments[[1L]]
    if (is.list(x)) {
      return(if (!is.null(names(x))) of_list(arguments))
    }
    found <- by_vector(arguments)
    if (!is.null(found)) flat_matrix(found$value, x, if (of == "hessian") names(x) else found$rows)
  }
}

block <- function(found, rows, columns) {
  if (!is.null(rows) || !is.null(columns)) dimnames(found) <- list(rows, columns)
  found
}

# `evaluate`, an evaluator of `f`, replaced by a program from the second call on.
or_again <- function(evaluate, f) {
  again <- repeated_of_lists(f)
  by_program <- FALSE
  watched <- captured_now(f)
  run <- function(arguments) {
    found <- again(arguments)
    by_program <<- !is.null(found)
    found %||% evaluate(arguments)
  }
  structure(run, watched = function() if (by_program) attr(again, "watched")() else watched())
}

is_vector_of_doubles <- function(x) gives_numbers(x) && !is.object(x) && !is.list(x) && !is.complex(x) && length(x) > 0L

# The repeated derivatives of `f`, kept for the same `f` as long as its environment lives.
derivatives_of <- function(f) {
  home <- environment(f)
  make <- function() {
    known <- list2env(list(f = f, gradient = repeated_of_lists(f)))
    known$both <- value_and_grad_by(f, known$gradient)
    for (of in c("hessian", "jacobian")) known[[of]] <- repeated_matrix(f, of)
    known
  }
  if (is.null(home)) {
    return(make())
  }
  is_of_f <- function(reference) {
    identical(rlang::wref_key(reference), home) && identical(rlang::wref_value(reference)$f, f)
  }
  reference <- recently(differentiated_lately, is_of_f, function() rlang::new_weakref(home, make()), most = 20L)
  if (inside() == 0) state$warned <- FALSE # a new function would warn again
  rlang::wref_value(reference)
}

# The `hessian` or `jacobian` of `f` by a program; NULL if there is no program.
matrix_again <- function(of, f, x, extra) {
  if (!missing(x) && rlang::is_closure(f)) derivatives_of(f)[[of]](c(list(x), extra))
}

differentiated_lately <- new.env(parent = emptyenv())

# TRUE if the code of `f`, and of all functions it can reach, is known to have no effects.
does_nothing_else <- function(f) {
  seen <- list()
  is_known <- function(f, name) {
    if (is.primitive(f) || !is_adaptable(f)) {
      return(own_name(f, name) %in% pure_names() && (is.primitive(f) || package_of(f) %in% c(own_packages, "gradops")))
    }
    if (any(vapply(seen, identical, NA, f))) {
      return(TRUE)
    }
    seen <<- c(seen, list(f))
    length(seen) <= 100L && only_computes(f)
  }
  only_computes <- function(f) {
    code <- c(unname(as.list(formals(f))), list(body(f)))
    names <- names_of(f)
    called <- calls_in(code)
    if (isS4(f) || length(c(names$assigned, names$global, names$opened)) > 0L || anyNA(called$names)) {
      return(FALSE)
    }
    for (name in unique(c(called$names, names$all))) {
      is_call <- name %in% called$names
      found <- get0(name, environment(f), mode = if (is_call) "function" else "any")
      if (is.function(found)) {
        if (!(is_call && name %in% called$local) && !is_known(found, name)) return(FALSE)
      } else if (is_call) {
        if (!name %in% called$local) return(FALSE)
      }
      if (name %in% names$all && !is_constant(name, environment(f))) return(FALSE)
    }
    for (call in called$spaces) {
      found <- attempt(eval(call, baseenv()))
      if (is.function(found) && !is_known(found, as.character(call[[3L]])) || inherits(found, "error")) return(FALSE)
    }
    TRUE
  }
  is_known(f, "")
}

# The functions that code calls: `names` (NA for a function that is itself computed); `local`, those among them that the
# code itself defines with `function`; `spaces`, the calls of `::`.
calls_in <- function(code) {
  names <- character()
  made <- assigned <- character()
  spaces <- list()
  walk <- function(code) {
    if (is.call(code)) {
      head <- code[[1L]]
      if (is.symbol(head)) {
        names <<- c(names, as.character(head))
      } else if (rlang::is_call(head, c("::", ":::"))) {
        names <<- c(names, "::")
      } else if (!rlang::is_call(head, c("function", "("))) {
        names <<- c(names, NA)
      }
      if (rlang::is_call(code, c("::", ":::"))) {
        spaces <<- c(spaces, list(code))
        return()
      }
      if (rlang::is_call(code, c("<-", "="))) {
        target <- code[[2L]]
        if (is.symbol(target)) {
          is_function <- rlang::is_call(code[[3L]], "function")
          if (is_function) made <<- c(made, as.character(target)) else assigned <<- c(assigned, as.character(target))
        } else {
          names <<- c(names, replacements_in(target))
        }
      }
      if (rlang::is_call(code, "function")) {
        assigned <<- c(assigned, names(code[[2L]]))
        walk(as.list(code[[2L]]))
        walk(code[[3L]])
      } else if (rlang::is_call(code, c("$", "@"))) {
        walk(code[[2L]])
      } else {
        walk(as.list(code))
      }
    } else if (is.list(code)) {
      for (part in code) if (!rlang::is_missing(part)) walk(part)
    }
  }
  walk(code)
  list(names = unique(names), local = setdiff(made, assigned), spaces = spaces)
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
