# Dependencies of a compiled function other than its arguments: variables, options, environment variables.

# What functions close over --------------------------------------------------------------------------------------------

# The variables that `f` and the functions it calls read or assign, except in packages' functions: where each is found,
# and its value. For environments in these variables, such as R6 objects, all their variables are included. Each item is
# a list of
#
# - `name`, `env`, `holder`, `value`: a variable that is found in `holder` when it is looked up from `env`; without
#   `holder` it does not exist before it is assigned. A name that is only called has the `mode` "function", as R then
#   skips variables of other kinds;
# - `all`, `env`, `lazy`, `there`: an environment, its variables, and its promises that have not been evaluated yet;
# - `label`, `now`, `value`, `back`: any other state that is read, see asking().
captured <- function(f) {
  attached <- lapply(base::which(!startsWith(search(), "package:"))[-1L], as.environment)
  notes <- list2env(list(found = list(), seen = list(), attached = attached), parent = emptyenv())
  visit(f, notes)
  notes$found
}

add_note <- function(notes, item) notes$found[[length(notes$found) + 1L]] <- item

note_variable <- function(name, env, holder, notes, value = get(name, holder), mode = "any") {
  add_note(notes, list(name = name, env = env, holder = holder, value = as_it_is(value), mode = mode))
  visit(value, notes)
}

is_new <- function(x, notes) {
  new <- !any(vapply(notes$seen, identical, NA, x))
  if (new) notes$seen <- c(notes$seen, list(x))
  new
}

visit <- function(x, notes) {
  if (is.function(x)) {
    is_r <- is.primitive(x) || !is.null(attr(x, "op")) # a program calls r_function()s each time
    if (!is_r && is_new(x, notes)) if (is_left(x)) visit_held(environment(x), notes) else visit_function(x, notes)
  } else if (is.environment(x)) {
    if (is_of_users(x) && is_new(x, notes)) visit_environment(x, notes)
  } else if (is.list(x) && !is.data.frame(x)) {
    for (item in Filter(Negate(rlang::is_missing), x)) if (is.recursive(item)) visit(item, notes)
  }
}

visit_function <- function(f, notes) {
  home <- environment(f)
  names <- names_of(f)
  for (name in names$all) {
    mode <- if (name %in% names$called) "function" else "any"
    env <- holder(name, home, notes$attached, mode)
    if (!is.null(env)) {
      value <- attempt(get(name, env)) # an active binding: `F` in R CMD check is an error
      if (!inherits(value, "error")) note_variable(name, home, env, notes, value, mode)
    } else if (name %in% names$assigned && !is_there(name, home)) {
      add_note(notes, list(name = name, env = home))
    }
  }
  for (name in names$opened) {
    held <- get0(name, envir = home)
    if (is.function(held)) visit(environment(held), notes)
  }
  for (name in names$global) {
    if (is_there(name, globalenv(), FALSE)) note_variable(name, globalenv(), globalenv(), notes)
  }
}

# Visit the functions inside a function that gradops, or a package that is not adapted, has made of other functions.
visit_held <- function(env, notes) {
  while (!isNamespace(env) && !identical(env, globalenv()) && !identical(env, emptyenv()) && is_new(env, notes)) {
    for (name in variables_in(env)) {
      held <- if (!rlang::is_missing(env[[name]])) env[[name]]
      if (is.function(held)) visit(held, notes) else if (is.list(held)) visit(Filter(is.function, held), notes)
    }
    env <- parent.env(env)
  }
}

visit_environment <- function(env, notes) {
  names <- variables_in(env)
  there <- ls(env, all.names = TRUE)
  asked <- vapply(there, bindingIsActive, NA, as.environment(env))
  add_note(notes, list(all = names, env = env, lazy = setdiff(there[!asked], names), there = there))
  for (name in names) note_variable(name, env, env, notes, env[[name]])
  for (name in there[asked]) visit(activeBindingFunction(name, as.environment(env)), notes)
}

is_there <- function(name, env, inherits = TRUE) exists(name, envir = env, inherits = inherits)

# TRUE for a function of a package that is not adapted; a function that such a package made of the user's is not one.
is_left <- function(f) {
  top <- topenv(environment(f))
  isNamespace(top) && getNamespaceName(top) %in% left_packages
}

# TRUE if an item has changed: its value, the variable that its name finds, or the variables of an environment.
changed <- function(watched) {
  if (.Call(C_are_same, watched)) {
    return(FALSE)
  }
  for (item in watched) if (!is_as_it_was(item)) return(TRUE)
  FALSE
}

is_as_it_was <- function(item) {
  env <- item$env
  if (is.null(env)) {
    identical(item$now(), item$value)
  } else if (is.null(item$name)) {
    identical(variables_in(env), item$all)
  } else if (is.null(item$holder)) {
    !is_there(item$name, env)
  } else if (identical(env, item$holder)) {
    identical(env[[item$name]], item$value)
  } else {
    identical(get0(item$name, envir = env, mode = item$mode), item$value)
  }
}

# Returns a function that returns what `f` closes over now. It walks through `f` again only if some of that has changed:
# a walk takes a millisecond, a comparison microseconds.
captured_now <- function(f) {
  noted <- NULL
  function() {
    if (is.null(noted) || changed(noted)) noted <<- captured(f)
    noted
  }
}

# Returns the watched values that changed: a list of lists of a name, the value before and the value now.
differences <- function(watched) {
  now <- function(item) if (is.null(item$env)) item$now() else get0(item$name, item$env, item$mode %||% "any")
  lapply(Filter(Negate(is_as_it_was), watched), function(item) {
    if (is.null(item$name) && !is.null(item$env)) {
      return(list(toString(setdiff(variables_in(item$env), item$all)), NULL, NULL))
    }
    values <- lapply(list(item$value, now(item)), function(x) if (is.atomic(x) && length(x) == 1L) as.vector(x))
    c(item$name %||% item$label, values)
  })
}

# Tracing --------------------------------------------------------------------------------------------------------------

# Begin a trace of `f`, which ends with `frame` or end_trace(): note the state before it, and everything that is read
# meanwhile, also by derivative rules that run after `f`.
begin_trace <- function(f, frame) {
  trace <- list2env(
    list(before = captured(f), asked = list(), outer = state$tracing, depth = sys.nframe()),
    parent = emptyenv()
  )
  state$tracing <- trace
  do.call(base::on.exit, list(bquote(.(end_trace)(.(trace))), TRUE), envir = frame)
  trace
}

end_trace <- function(trace) {
  if (identical(state$tracing, trace)) {
    state$tracing <- trace$outer
    trace$before <- c(trace$before, trace$asked)
    if (!is.null(trace$outer)) pass_on(trace$asked)
  }
}

# The value of `call`. If it fails after the traced function has changed something, NULL: the function then runs
# uncompiled.
unless_it_changes <- function(call, trace) {
  withRestarts(
    withCallingHandlers(call, error = function(condition) {
      if (!is.null(trace()) && any_changes(c(trace()$before, trace()$asked))) invokeRestart("gradops_as_it_stands")
    }),
    gradops_as_it_stands = function() NULL
  )
}

# TRUE if the traced function has changed something; evaluating a promise for the first time is not a change.
any_changes <- function(before) {
  for (item in before) if (is_change(item)) return(TRUE)
  FALSE
}

is_change <- function(item) {
  if (is.null(item$all)) !is_as_it_was(item) else !identical(setdiff(variables_in(item$env), item$lazy), item$all)
}

# Restore the state before the trace, and return the names of what had changed.
undone <- function(before) {
  names <- character()
  for (item in before) {
    if (is_change(item)) {
      names <- c(names, item$name %||% item$label)
      undo(item)
    }
  }
  names
}

undo <- function(item) {
  env <- item$env
  if (is.null(env)) {
    item$back(item$value)
  } else if (is.null(item$name)) {
    rm(list = setdiff(ls(env, all.names = TRUE), item$there), envir = as.environment(env))
  } else if (is.null(item$holder)) {
    while (!is_there(item$name, env, FALSE)) env <- parent.env(env)
    rm(list = item$name, envir = env)
  } else if (!is_there(item$name, item$holder, FALSE) || !bindingIsActive(item$name, as.environment(item$holder))) {
    assign(item$name, item$value, envir = as.environment(item$holder))
  }
}

# Give variables the values that they have in `then`, until `frame` ends. Values that are assigned meanwhile stay.
hold <- function(then, frame) {
  if (!changed(then)) {
    return()
  }
  then <- Filter(function(item) !is.null(item$holder) && !is_as_it_was(item), then)
  now <- lapply(then, function(item) {
    item["value"] <- list(get0(item$name, item$holder, inherits = FALSE))
    item$gone <- !is_there(item$name, item$holder, FALSE)
    item
  })
  do.call(base::on.exit, list(bquote(.(let_go)(.(then), .(now))), TRUE), envir = frame)
  for (item in then) undo(item)
}

let_go <- function(then, now) {
  for (i in seq_along(then)) {
    if (is_as_it_was(then[[i]])) {
      if (now[[i]]$gone) rm(list = now[[i]]$name, envir = now[[i]]$holder) else undo(now[[i]])
    }
  }
}

# Questions -----------------------------------------------------------------------------------------------------------

# The value of `now()`, which later calls of the traced function compare; `back(value)` restores it.
asking <- function(label, now, back = identity) {
  value <- now()
  if (!is.null(state$tracing)) pass_on(list(list(label = label, now = now, value = value, back = back)))
  value
}

# A compiled function that is called within a trace passes its dependencies on to the outer trace.
pass_on <- function(items) {
  trace <- state$tracing
  for (item in items) if (!is.null(item$label) && !is_noted(item, trace)) trace$asked <- c(trace$asked, list(item))
}

is_noted <- function(item, trace) {
  is_same <- function(other) {
    identical(item$label, other$label) ||
      !is.null(item$holder) && identical(item$name, other$name) && identical(item$holder, other$holder)
  }
  any(vapply(c(trace$asked, if (!is.null(item$holder)) trace$before), is_same, NA))
}

# Overloads in adapted code for functions that read such state.
asking_overloads <- function() {
  list(
    getOption = get_option_overload, options = options_overload,
    Sys.getenv = get_environment_overload, Sys.setenv = set_environment_overload,
    Sys.unsetenv = unset_environment_overload, get = get_overload(base::get), get0 = get_overload(base::get0),
    Sys.time = time_overload(base::Sys.time), Sys.Date = time_overload(base::Sys.Date),
    date = time_overload(base::date), proc.time = time_overload(base::proc.time)
  )
}

get_option_overload <- function(x, default = NULL) {
  asking_option(x)
  base::getOption(x, default)
}

asking_option <- function(name) {
  asking(sprintf("options(%s=)", name), function() base::getOption(name), function(value) {
    base::options(stats::setNames(list(value), name))
  })
}

options_overload <- function(...) {
  given <- list(...)
  if (length(given) == 1L && is.list(given[[1L]]) && is.null(names(given))) given <- given[[1L]]
  names <- if (is.null(names(given))) unlist(Filter(is.character, given)) else names(given)
  if (!is.null(state$tracing)) {
    if (length(given) == 0L) asking("options()", base::options, base::options)
    for (name in names[nzchar(names)]) asking_option(name)
  }
  base::options(...)
}

get_environment_overload <- function(x = NULL, ...) {
  for (name in if (is.null(x)) names(base::Sys.getenv()) else x) asking_variable(name)
  base::Sys.getenv(x, ...)
}

asking_variable <- function(name) {
  asking(sprintf("Sys.getenv(\"%s\")", name), function() base::Sys.getenv(name, NA), function(value) {
    if (is.na(value)) base::Sys.unsetenv(name) else do.call(base::Sys.setenv, stats::setNames(list(value), name))
  })
}

set_environment_overload <- function(...) {
  for (name in names(list(...))) asking_variable(name)
  base::Sys.setenv(...)
}

unset_environment_overload <- function(x) {
  for (name in x) asking_variable(name)
  base::Sys.unsetenv(x)
}

# `get()` of a computed name makes the variable a dependency, except in frames of calls that are being traced.
get_overload <- function(original) {
  force(original)
  function(x, envir = parent.frame(), ...) {
    if (!is.environment(envir)) envir <- as.environment(envir)
    if (!is.null(state$tracing) && rlang::is_string(x)) asking_by_name(x, envir)
    original(x, envir = envir, ...)
  }
}

asking_by_name <- function(name, env) {
  while (!identical(env, emptyenv()) && !is_there(name, env, FALSE)) env <- parent.env(env)
  local <- sys.frames()[-seq_len(state$tracing$depth)]
  if (is_of_users(env) || identical(env, globalenv())) {
    if (!any(vapply(local, identical, NA, env))) {
      label <- paste(name, rlang::obj_address(env))
      pass_on(list(list(label = label, name = name, env = env, holder = env, value = as_it_is(env[[name]]))))
    }
  }
}

time_overload <- function(original) {
  name <- deparse(substitute(original)[[3L]])
  force(original)
  function(...) {
    if (!is.null(state$tracing)) {
      abort(
        c(
          sprintf("A compiled function asked for `%s()` while it was traced; it would be the same at each call.", name),
          i = instead("Ask outside and pass it as an argument")
        ),
        class = c("gradops_error_jit", "gradops_error"), call = NULL
      )
    }
    original(...)
  }
}

# TRUE for an environment that holds the user's data: not a tensor or another Python object, and not a package's.
is_of_users <- function(env) {
  special <- list(globalenv(), baseenv(), emptyenv())
  !inherits(env, "python.builtin.object") && !is_any_tensor(env) && !isNamespace(env) &&
    !startsWith(attr(env, "name") %||% "", "package:") && !any(vapply(special, identical, NA, env))
}

# The variables in an environment, without active bindings and promises, which would have to be evaluated.
variables_in <- function(env) {
  env <- as.environment(env) # also of an object of a reference class
  names <- ls(env, all.names = TRUE) # includes hidden variables behind fields of reference classes
  asked <- vapply(names, bindingIsActive, NA, env) | rlang::env_binding_are_lazy(env, names)
  names[!asked]
}

# A copy, for objects that are modified in place: data.table's `:=` and `set()`.
as_it_is <- function(value) {
  if (inherits(value, "data.table")) unserialize(serialize(value, NULL)) else value
}

# The environment that has a variable; NULL for a package's function, and for everything that a package's own code
# reads.
holder <- function(name, env, attached, mode = "any") {
  end <- baseenv()
  while (!identical(env, end) && !isNamespace(env) && !identical(env, emptyenv())) {
    if (exists(name, env, mode = mode, inherits = FALSE)) {
      is_package <- identical(base::startsWith(base::as.character(attr(env, "name", TRUE)), "package:"), TRUE)
      return(if (!is_package || !is.function(env[[name]])) env)
    }
    if (identical(env, globalenv()) && !is_attached(name, attached, mode)) { # so it is a package's
      found <- get0(name, parent.env(env))
      return(if (!is.null(found) && !is.function(found)) parent.env(env))
    }
    env <- parent.env(env)
  }
}

is_attached <- function(name, attached, mode) {
  for (env in attached) if (exists(name, env, mode = mode, inherits = FALSE)) return(TRUE)
  FALSE
}

# The names in a function's code: `all`, which it reads before it assigns them, assigns outside (with `<<-`), or may
# read by a string (`get("k")`); `called`, names that are only called; `assigned`, names assigned outside; `global`,
# names read as `.GlobalEnv$k`; `opened`, functions whose environment it asks for. (codetools takes a name that is
# assigned anywhere for local, also the `k` of `k <- k + 1`.) The result is cached: a function that is compiled needs it
# twice, and again for each objective that is made of it.
names_of <- function(f) {
  recently(
    state$names_of_code %||% (state$names_of_code <- new.env(parent = emptyenv())),
    function(known) identical(known$body, body(f)) && identical(known$formals, formals(f)),
    function() base::c(list(body = body(f), formals = formals(f)), names_in_code(f))
  )
}

names_in_code <- function(f) {
  free <- calls <- outside <- enclosing <- global <- opened <- character()
  with_meaning <- base::c("<-", "=", "<<-", "for", "if", "function", "$", "[[", "@", "::", ":::", "environment")
  is_missing <- rlang::is_missing
  read <- function(code, own) { # returns the names assigned so far
    if (is.symbol(code)) {
      if (!as.character(code) %in% own) free <<- c(free, as.character(code))
    } else if (is.call(code)) {
      names <- all.names(code, unique = TRUE)
      if (any(with_meaning %in% names)) {
        return(read_call(code, own))
      }
      is_read <- names %in% all.names(code, functions = FALSE) # a quick test first
      free <<- c(free, names[is_read & !names %in% own])
      calls <<- c(calls, names[!is_read & !names %in% own])
    }
    own
  }
  read_all <- function(parts, own) {
    for (part in parts) if (!is_missing(part)) own <- read(part, own)
    own
  }
  read_call <- function(code, own) {
    head <- if (is.symbol(code[[1]])) as.character(code[[1]]) else ""
    if (head %in% base::c("$", "[[") && length(code) > 2 && is_global(code[[2]])) {
      global <<- c(global, as.character(code[[3]]))
    }
    switch(head,
      `<-` = , `=` = , `<<-` = {
        own <- read(code[[3]], own)
        if (is.call(code[[2]])) own <- read(code[[2]], own)
        target <- assigned_name(code[[2]])
        if (head == "<<-" && !target %in% enclosing) outside <<- c(outside, target)
        c(own, target)
      },
      `for` = read_all(as.list(code)[-(1:2)], c(own, as.character(code[[2]]))),
      `if` = {
        own <- read(code[[2]], own)
        for (branch in as.list(code)[-(1:2)]) read(branch, own)
        own
      },
      `function` = {
        around <- enclosing
        enclosing <<- own
        read_all(c(as.list(code[[2]]), code[[3]]), c(own, names(code[[2]])))
        enclosing <<- around
        own
      },
      `$` = , `@` = read(code[[2]], own),
      `::` = , `:::` = own,
      environment = {
        if (length(code) == 2) opened <<- c(opened, all.names(code[[2]]))
        read_all(as.list(code), own)
      },
      {
        if (nzchar(head) && !head %in% own) calls <<- c(calls, head)
        read_all(as.list(code)[if (nzchar(head)) -1L else TRUE], own)
      }
    )
  }
  own <- names(formals(f))
  read_all(c(unname(as.list(formals(f))), list(body(f))), own)
  texts <- setdiff(words_of(body(f)), all.names(body(f)))
  list(
    all = setdiff(c(free, calls, outside, texts), ""), called = setdiff(calls, c(free, outside, texts_of(body(f)))),
    assigned = base::unique(outside), global = base::unique(global),
    opened = opened
  )
}

texts_of <- function(code) {
  if (is.symbol(code)) {
    NULL
  } else if (is.call(code)) {
    base::unlist(lapply(as.list(code), texts_of))
  } else if (is.character(code)) {
    code
  }
}

is_global <- function(code) identical(code, quote(.GlobalEnv)) || identical(code, quote(globalenv()))

# The variable that an assignment to `x`, `x[i]` or `names(x)$a` changes.
assigned_name <- function(target) {
  while (is.call(target)) target <- target[[2]]
  as.character(target)
}
