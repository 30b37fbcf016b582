#' Compile a function
#'
#' `f` is traced once for each signature of shapes, dtypes and static arguments, and then run without R: by `jax.jit`,
#' `tf.function`, a graph of PyTorch's or, on NumPy, a recorded program. `jit(value_and_grad_fn(f))` holds the gradient
#' too.
#'
#' A single integer is part of the signature, and `f` is traced again for another; so is a single double beside tensors
#' that are not all of float64. What changes at each call, such as a step's number, is best a double or a tensor.
#'
#' What `f` finds outside, such as data, is part of what was traced. At each call the variables that `f` (and functions
#' of yours that it calls) closes over are compared with those, and `f` is traced again if one was assigned anew, also
#' in environments that they hold, such as objects of R6. What `f` itself assigns with `<<-`, active bindings, options
#' and files are not compared.
#'
#' On NumPy `f` may look at values: `if (sigma <= 0) return(1e10)`, `while`, `x[x > 0]`, `which(x > 0)`, `switch()`,
#' `stopifnot()`. What was traced holds for values with which `f` would go the same way; each call sees whether it does,
#' and for another way `f` is traced again: up to 32 of them, and as long as those that are there are gone again; else it
#' runs uncompiled, with a warning. Elsewhere, and in functions that [op_scan()] and its kin call, it is an error: use
#' `ifelse()`, [op_cond()] or [op_while_loop()].
#' @param f A function of tensors, made of gradops ops and of R's arithmetic and mathematics on tensors.
#' @param static_argnums Positions (from 1) of arguments that are no tensors, by whose value `f` is traced anew.
#' @returns A function of the same arguments; of R numbers alone it returns R numbers. Printing it says what was
#'   compiled: on NumPy how many steps of the program run as native code, and why the others do not.
#' @section Errors:
#' - `gradops_error_jit`: `f` looks at values where it must not, or draws R's random numbers, while it is traced.
#' - `gradops_error_callback`: an error in `f`, whose condition is the parent.
#' @examplesIf gradops_available()
#' f <- jit(function(x) sum(exp(x)^2))
#' f(c(1, 2))
#' f
#' @export
jit <- function(f, static_argnums = integer()) {
  check_function(f)
  static <- argument_positions(static_argnums)
  run <- compiled_calls(f, function(f, here) {
    call_core("jit", callback(differentiated(f, here), owner = here), as.list(static - 1L))
  })
  compiled <- function(...) {
    arguments <- list(...)
    tensors <- if (length(static) > 0) arguments[-static] else arguments
    if (gives_numbers(tensors)) {
      vectors(run(arguments))
    } else {
      several(run(arguments, in_r = FALSE))
    }
  }
  structure(compiled, class = c("gradops_compiled", "function"), explain = attr(run, "explain"))
}

#' @export
format.gradops_compiled <- function(x, ...) {
  c("<compiled function>", attr(x, "explain")())
}

#' @export
print.gradops_compiled <- function(x, ...) {
  writeLines(format(x))
  invisible(x)
}

# A function of a list of arguments that calls what `make(f, here)` compiles, made anew where what `f` closes over, or
# the names of the arguments, have changed. `f` runs only to be traced. Results are R's values where `in_r`; those of
# plain arguments come from what `caller(compiled)` makes.
compiled_calls <- function(f, make, caller = direct_caller) {
  here <- new.env()
  compiled <- direct <- NULL
  watched <- NULL
  traced <- FALSE
  noticed <- function(...) {
    traced <<- TRUE
    state$compiling <- compiling() + 1
    before <- with_scalars()
    on.exit({
      leave_scalars()
      with_scalars(before)
      state$compiling <- compiling() - 1
    })
    in_trace <- function() {
      withCallingHandlers(do.call(tensor_aware(f), list(...)), error = function(condition) {
        explain_branch(condition, "gradops_error_jit")
      })
    }
    again <- function(condition) NULL # `f` asks for gradients of its own
    found <- tryCatch(list(in_trace()), gradops_error_partial_gradient = again, gradops_error_gradient = again)
    if (is.null(found)) without_vectors(in_trace()) else found[[1L]]
  }
  run <- function(arguments, in_r = TRUE) {
    plain <- in_r && !is.null(compiled) && as_before(arguments, here$attributes)
    if (!plain) {
      plain <- in_r && all_plain(arguments)
      here$attributes <- if (plain) lapply(arguments, attributes)
      same <- !is.null(compiled) && same_names(arguments, here$names, plain)
      if (!same) compiled <<- NULL
    }
    if (is.null(compiled) || changed(watched)) {
      here$names <- lapply(arguments, names_within)
      compiled <<- make(noticed, here)
      direct <<- caller(compiled)
    }
    traced <<- FALSE
    seed <- random_state()
    result <- if (plain) {
      direct(arguments)
    } else if (in_r) {
      py_to_r(call_python(compiled, arguments, in_r = TRUE))
    } else {
      call_python(compiled, arguments)
    }
    if (traced) {
      watched <<- captured(f)
      if (!identical(seed, random_state())) {
        compiled <<- NULL
        abort(
          c(
            "A compiled function drew random numbers while it was traced; they would be the same at each call.",
            i = "Draw them outside and pass them as an argument."
          ),
          class = c("gradops_error_jit", "gradops_error"), call = users_call()
        )
      }
    }
    result
  }
  explain <- function() {
    if (is.null(compiled)) {
      return("not compiled yet: it is at the first call")
    }
    strsplit(py_to_r(call_core("interop.r.explain", compiled)), "\n", fixed = TRUE)[[1]]
  }
  structure(run, explain = explain)
}

# Arguments that Python needs no word about: doubles without a class, by position.
all_plain <- function(arguments) {
  if (!is.null(names(arguments))) {
    return(FALSE)
  }
  for (x in arguments) if (!is.double(x) || is.object(x)) return(FALSE)
  TRUE
}

# Whether arguments are plain and have the attributes that others had.
as_before <- function(arguments, attributes) {
  if (length(arguments) != length(attributes) || !is.null(names(arguments))) {
    return(FALSE)
  }
  for (i in seq_along(arguments)) {
    x <- arguments[[i]]
    if (!is.double(x) || !identical(attributes(x), attributes[[i]])) return(FALSE)
  }
  TRUE
}

# Whether arguments have the names that others had.
same_names <- function(arguments, others, plain) {
  if (!plain) {
    return(identical(lapply(arguments, names_within), others))
  }
  if (length(arguments) != length(others)) {
    return(FALSE)
  }
  for (i in seq_along(arguments)) if (!identical(names(arguments[[i]]), others[[i]])) return(FALSE)
  TRUE
}

# A function of plain arguments that calls what is compiled, with its results as R's: see interop/r/direct.py.
direct_caller <- function(compiled) {
  direct <- call_core("interop.r.direct", compiled)
  function(arguments, call = users_call()) {
    result <- py_call_list(direct, as_operands(arguments))
    if (class(result)[1L] == failure_class) raise(result, call)
    py_to_r(result)
  }
}

# The same of a function that gives a value and its gradient. Python writes them into `memory`, which only this function
# sees: to convert what a call returns is another call.
pair_caller <- function(compiled) {
  general <- direct_caller(compiled)
  direct <- NULL
  memory <- matrix(0, 0L, 1L)
  of_size <- function(size) {
    memory <<- matrix(0, size, 1L)
    direct <<- call_core("interop.r.pair", compiled, memory)
    if (!all(memory == 1)) direct <<- NULL # it was copied
  }
  function(arguments, call = users_call()) {
    size <- length(arguments[[1L]]) + 1L
    if (length(memory) != size) of_size(size)
    if (is.null(direct)) {
      return(general(arguments, call))
    }
    result <- py_call_list(direct, as_operands(arguments))
    kind <- class(result)[1L]
    if (kind == "python.builtin.bool") {
      list(value = memory[1L], derivative = memory[-1L])
    } else if (kind == failure_class) {
      raise(result, call)
    } else {
      py_to_r(result)
    }
  }
}

# Plain arguments as Python takes them: numbers, and arrays without names.
as_operands <- function(arguments) {
  for (i in seq_along(arguments)) {
    x <- arguments[[i]]
    dim <- NULL
    if (!is.null(attributes(x))) {
      dim <- dim(x)
      attributes(x) <- NULL
    }
    if (length(x) != 1L || !is.null(dim)) dim(x) <- if (is.null(dim)) length(x) else dim
    arguments[[i]] <- x
  }
  arguments
}

# How many functions are being traced.
compiling <- function() {
  state$compiling %||% 0
}

# What functions close over --------------------------------------------------------------------------------------------

# The variables that `f` and the functions it calls read, but for the functions of packages: where they are looked for,
# and what they hold. Of environments that they hold, such as objects of R6, all variables, and which there are.
captured <- function(f) {
  attached <- lapply(base::which(!startsWith(search(), "package:"))[-1L], as.environment)
  found <- list()
  seen <- list()
  is_new <- function(x) {
    new <- !any(vapply(seen, identical, NA, x))
    if (new) seen <<- c(seen, list(x))
    new
  }
  note <- function(name, env, value, is_there) {
    found[[length(found) + 1]] <<- list(name = name, env = env, value = as_it_is(value), is_there = is_there)
    visit(value)
  }
  visit <- function(x) {
    if (is.function(x)) {
      if (!is.primitive(x) && is_new(x)) visit_function(x)
    } else if (is.environment(x)) {
      if (is_of_users(x) && is_new(x)) visit_environment(x)
    } else if (is.list(x) && !is.data.frame(x)) {
      for (item in x) if (is.recursive(item)) visit(item)
    }
  }
  visit_function <- function(f) {
    home <- environment(f)
    for (name in free_names(f)) {
      env <- holder(name, home, attached)
      if (!is.null(env)) note(name, home, get(name, env), identical(env, home))
    }
  }
  visit_environment <- function(env) {
    names <- variables_in(env)
    found[[length(found) + 1]] <<- list(all = names, env = env)
    for (name in names) note(name, env, env[[name]], TRUE)
  }
  visit(f)
  found
}

# Whether a variable holds something else, also as a nearer one has its name now, or an environment other variables.
changed <- function(watched) {
  for (variable in watched) {
    env <- variable$env
    same <- if (is.null(variable$name)) {
      identical(variables_in(env), variable$all)
    } else {
      identical(if (variable$is_there) env[[variable$name]] else get0(variable$name, envir = env), variable$value)
    }
    if (!same) {
      return(TRUE)
    }
  }
  FALSE
}

# An environment that holds somebody's data: neither a tensor, or another of Python's objects, nor a package's.
is_of_users <- function(env) {
  special <- list(globalenv(), baseenv(), emptyenv())
  !inherits(env, "python.builtin.object") && !is_any_tensor(env) && !isNamespace(env) &&
    !startsWith(attr(env, "name") %||% "", "package:") && !any(vapply(special, identical, NA, env))
}

# What stands in an environment, without what is computed when it is asked for.
variables_in <- function(env) {
  env <- as.environment(env) # of an object of a reference class
  names <- ls(env, all.names = TRUE) # with what fields of reference classes are computed from
  asked <- vapply(names, bindingIsActive, NA, env) | rlang::env_binding_are_lazy(env, names)
  names[!asked]
}

# A copy, of what is changed where it stands: data.table's `:=` and `set()`.
as_it_is <- function(value) {
  if (inherits(value, "data.table")) unserialize(serialize(value, NULL)) else value
}

# The environment in which a variable is found; none of an active binding, of a function of a package, and of all that
# a package's own code reads.
holder <- function(name, env, attached) {
  is_in <- function(env) exists(name, envir = env, inherits = FALSE)
  while (!isNamespace(env) && !identical(env, baseenv()) && !identical(env, emptyenv())) {
    if (identical(env, globalenv()) && !is_in(env) && !any(vapply(attached, is_in, NA))) { # so it is a package's
      packages <- parent.env(env)
      return(if (!is.function(get0(name, envir = packages) %||% is.function)) packages)
    }
    if (is_in(env)) {
      is_function_of_package <- startsWith(attr(env, "name") %||% "", "package:") && is.function(env[[name]])
      return(if (!is_function_of_package && !bindingIsActive(name, env)) env)
    }
    env <- parent.env(env)
  }
}

# The names that a function reads before it assigns them, apart from those that it assigns outside, with `<<-`. (To
# codetools a name that is assigned anywhere is local, also the `k` of `k <- k + 1`.)
free_names <- function(f) {
  free <- outside <- character()
  with_meaning <- base::c("<-", "=", "<<-", "for", "if", "function", "$", "@", "::", ":::")
  is_missing <- rlang::is_missing
  read <- function(code, own) { # gives the names assigned so far
    if (is.symbol(code)) {
      if (!as.character(code) %in% own) free <<- c(free, as.character(code))
    } else if (is.call(code)) {
      names <- all.names(code, unique = TRUE)
      if (any(with_meaning %in% names)) {
        return(read_call(code, own))
      }
      free <<- c(free, names[!names %in% own]) # which is quicker
    }
    own
  }
  read_all <- function(parts, own) {
    for (part in parts) if (!is_missing(part)) own <- read(part, own)
    own
  }
  read_call <- function(code, own) {
    head <- if (is.symbol(code[[1]])) as.character(code[[1]]) else ""
    switch(head,
      `<-` = , `=` = , `<<-` = {
        own <- read(code[[3]], own)
        if (is.call(code[[2]])) own <- read(code[[2]], own)
        target <- assigned_name(code[[2]])
        if (head == "<<-") outside <<- c(outside, target)
        c(own, target)
      },
      `for` = read_all(as.list(code)[-(1:2)], c(own, as.character(code[[2]]))),
      `if` = {
        own <- read(code[[2]], own)
        for (branch in as.list(code)[-(1:2)]) read(branch, own)
        own
      },
      `function` = {
        read_all(c(as.list(code[[2]]), code[[3]]), c(own, names(code[[2]])))
        own
      },
      `$` = , `@` = read(code[[2]], own),
      `::` = , `:::` = own,
      read_all(as.list(code), own)
    )
  }
  own <- names(formals(f))
  read_all(c(unname(as.list(formals(f))), list(body(f))), own)
  setdiff(free, c(outside, ""))
}

# The variable that `x`, `x[i]` or `names(x)$a` on the left of an assignment changes.
assigned_name <- function(target) {
  while (is.call(target)) target <- target[[2]]
  as.character(target)
}
