# Adapted code: the copy of a function in which R's own functions take tensors.
#
# Tensors have methods for everything that base R dispatches on. The rest (`h[i] <- v` into an R vector, `for (v in p)`,
# `if (p > 0)`, `match()`) has to be replaced in the code itself, and only while the code is differentiated. So gradops
# runs a copy of the user's function, `tensor_aware(f)`. The copy's environment is an overlay, whose parent is the
# function's own environment. Functions that R calls by name are found in the overlay first: it has overloads of base
# R's functions (code-overloads.R), and adapted copies of the other functions that the code names, so that helpers are
# adapted at any depth. R's syntax, which cannot be shadowed by a name, is rewritten in the copy's body (code-syntax.R).
# R compiles the copy like any function.
#
# The function itself, its environment and the search path do not change, so nothing has to be undone when the copy
# returns or fails.

# Return the adapted copy of `f`, which runs while `f` is differentiated or compiled; return `f` if it is not the
# user's.
tensor_aware <- function(f) {
  if (is.function(f) && is_adaptable(f)) copy_of(f) else f
}

copy_of <- function(f) {
  home <- environment(f)
  front <- overlay_of(home)
  found <- recently(
    front$.gradops_copies,
    function(copy) same_code(copy$f, f),
    function() {
      code <- code_of(f)
      bind_named(front, home, code$names)
      formals <- as.list(formals(f))
      formals[names(code$defaults)] <- code$defaults
      list(f = f, copy = with_code(f, formals, code$body, front), leaves_out = code$leaves_out)
    }
  )
  if (found$leaves_out) state$replaces <- TRUE # see made_by()
  found$copy
}

# The copy keeps a closure's own attributes: its class, if it is a method; its source.
with_code <- function(f, formals, body, env) {
  copy <- as.function(c(formals, list(body)), env)
  attributes(copy) <- attributes(f)
  if (isS4(f)) asS4(copy) else copy
}

same_code <- function(f, g) {
  identical(body(f), body(g)) && identical(formals(f), formals(g)) && identical(attributes(f), attributes(g))
}

# Functions of these packages are R's own, are made for tensors, or do no mathematics, so they are not adapted. A
# function that one of `own_packages` returns (`Vectorize(f)`) is the user's.
own_packages <- c(
  "base", "stats", "utils", "methods", "graphics", "grDevices", "grid", "tools", "parallel", "compiler"
)
left_packages <- c(
  "gradops", "reticulate", "tensorflow", "keras", "keras3", "tfprobability", "torch", "rlang", "withr", "cli",
  "lifecycle", "vctrs", "memoise", "cachem", "testthat", "knitr", "rmarkdown", "R6", "Matrix", "Rcpp", "TMB", "numDeriv"
)

# TRUE if gradops adapts `f`. `name` is the name under which `f` was found, if known.
is_adaptable <- function(f, name = NULL) {
  home <- environment(f)
  if (is.null(home) || inherits(f, c("python.builtin.object", "genericFunction"))) {
    return(FALSE)
  }
  top <- topenv(home)
  package <- if (isNamespace(top)) getNamespaceName(top) else ""
  !package %in% left_packages && !(package %in% own_packages && identical(home, top) && is_named(f, home, name)) &&
    !is_in_front(home)
}

# TRUE if `f` is a function of a package, not one that the package made: the result of `make.link()` has no name in
# stats. The search through all names comes last, as it loads the whole namespace.
is_named <- function(f, home, name) {
  getNamespaceName(home) != "stats" || !is.null(name) && is_function_of(name, f, home) || recently(
    named,
    function(known) identical(known$f, f),
    function() list(f = f, is = any(vapply(names(home), is_function_of, NA, f, home)))
  )$is
}

named <- new.env(parent = emptyenv())

# TRUE if R's package has the function under this name, or if the function is gradops' namesake of it.
is_function_of <- function(name, f, home) {
  identical(home[[name]], f) || is_namesake(name, f)
}

# TRUE if an environment is an overlay or below one: functions that adapted code makes are adapted already.
is_in_front <- function(env) {
  while (!identical(env, globalenv()) && !isNamespace(env) && !identical(env, emptyenv())) {
    if (exists(".gradops_copies", envir = env, inherits = FALSE)) {
      return(TRUE)
    }
    env <- parent.env(env)
  }
  FALSE
}

# Overlays -------------------------------------------------------------------------------------------------------------

overlays <- new.env(parent = emptyenv())

# The overlay of `home`: the environment that shadows its names in adapted code. It lives as long as `home` does.
overlay_of <- function(home) {
  reference <- recently(
    overlays,
    function(reference) identical(rlang::wref_key(reference), home),
    function() {
      front <- list2env(overlay_functions(), new.env(parent = home))
      front$.gradops_copies <- new.env(parent = emptyenv())
      front$.gradops_front <- front
      rlang::new_weakref(home, front)
    }
  )
  rlang::wref_value(reference)
}

# Return an entry of a small cache for which `matches` is TRUE, or make one; entries used lately are found first.
recently <- function(table, matches, make, most = 100) {
  for (i in seq_along(table$made)) {
    if (matches(table$made[[i]])) {
      found <- table$made[[i]]
      if (i > 10) table$made <- c(list(found), table$made[-i])
      return(found)
    }
  }
  made <- make()
  table$made <- c(list(made), utils::head(table$made, most - 1))
  made
}

# Bind the names in the code that the overlay shadows: overloads, adapted functions, and methods of the called generics.
bind_named <- function(front, home, names) {
  known <- names(front)
  generics <- character()
  for (name in setdiff(names, base::c("", "..."))) {
    found <- attempt(get0(name, envir = home)) # an active binding: `F` in R CMD check is an error
    if (is.function(found)) {
      if (is_s3_generic(found, name)) generics <- base::c(generics, name)
      if (name %in% known) next
      if (is_translated(found, name) || has_new_methods(found, name, home)) put_in_front(name, front, home)
      if (name %in% names(adapted_methods) && identical(found, get(name, asNamespace("stats")))) {
        put_method_in_front(name, adapted_methods[[name]], front)
      }
    }
  }
  methods <- methods_of(generics, home)
  for (method in methods) put_in_front(method, front, home)
  if (has_operators(base::c(methods, names))) {
    for (operator in intersect(names, names(operators))) {
      if (!operator %in% names(front)) assign(operator, dispatching_operator(operator), envir = front)
    }
  }
}

# Put the adapted method into the overlay, where `UseMethod()` finds it before R's own method.
put_method_in_front <- function(generic, class, front) {
  method <- base::paste0(generic, ".", class)
  make <- function() own_methods()[[method]] %||% copy_of(utils::getS3method(generic, class))
  delayedAssign(method, make(), assign.env = front)
}

# An active binding: the adapted form of the object that the name has at the time of reading.
put_in_front <- function(name, front, home) {
  last <- NULL
  made <- NULL
  current <- function(value) {
    if (!missing(value)) { # by `<<-`
      return(eval(call("<<-", as.name(name), quote(value)), list2env(list(value = value), parent = home)))
    }
    now <- get(name, envir = home)
    if (!identical(now, last)) {
      made <<- if (is.function(now) && has_new_methods(now, name, home)) copy_of(now) else translated(now, name)
      last <<- now
    }
    made
  }
  if (!exists(name, envir = front, inherits = FALSE)) makeActiveBinding(name, current, front)
}

# The replacement in adapted code for the function that was found under a name.
translated <- function(found, name) {
  if (!is.function(found)) {
    return(found)
  }
  if (is_users_generic(found)) {
    return(generic_aware(found))
  }
  if (is_memoised(found)) {
    return(memoised_aware(found))
  }
  overload_of(found, name) %||% tensor_aware(found)
}

# TRUE if `found` needs no further adaptation. The functions in `only_adapted` are not adapted yet: they may call
# themselves.
is_translated <- function(found, name) {
  if (is_users_generic(found) || is_memoised(found) || overload_name(found, name) %in% only_adapted) {
    return(TRUE)
  }
  overload <- overload_of(found, name)
  if (is.null(overload)) is_adaptable(found, name) else !identical(overload, found)
}

# TRUE for an S4 generic with a method of the user's among its methods.
is_users_generic <- function(f) {
  if (!inherits(f, "standardGeneric")) {
    return(FALSE)
  }
  is_of_user <- function(method) {
    home <- environment(method)
    top <- if (!is.null(home)) topenv(home)
    !is.null(top) && !(isNamespace(top) && getNamespaceName(top) %in% c(own_packages, left_packages))
  }
  any(vapply(as.list(environment(f)$.MTable, all.names = TRUE), is_of_user, NA))
}

generic_aware <- function(f) {
  home <- environment(f)
  front <- list2env(as.list(home, all.names = TRUE), parent = parent.env(home))
  for (table in intersect(c(".MTable", ".AllMTable"), names(home))) {
    methods <- as.list(home[[table]], all.names = TRUE)
    front[[table]] <- list2env(lapply(methods, tensor_aware), parent = parent.env(home[[table]]))
  }
  environment(f) <- front
  with_code(f, as.list(formals(f)), with_dispatch(body(f), standard_generic(f)), front)
}

# TRUE for a function made by memoise, which caches results by a hash of the arguments. The hash of a tensor does not
# depend on its values, so calls with tensors go to the original function.
is_memoised <- function(f) inherits(f, "memoised") && is.function(environment(f)$`_f`)

memoised_aware <- function(f) {
  call_of_tensors <- function(f, ...) {
    if (holds_tensors_within(list(...))) translated(environment(f)$`_f`, "")(...) else f(...)
  }
  with_code(f, formals(function(...) NULL), bquote(.(call_of_tensors)(.(f), ...)), environment(f))
}

with_dispatch <- function(code, dispatch) {
  if (is_call_of(code, "standardGeneric")) {
    as.call(list(dispatch))
  } else {
    if (is.call(code)) code[] <- lapply(code, with_dispatch, dispatch)
    code
  }
}

overload_of <- function(found, name) {
  if (is_poisson_deviance(found)) {
    return(poisson_deviance)
  }
  if (is_of_rtmb(found)) {
    return(rtmb_function(found, name))
  }
  name <- overload_name(found, name)
  if (nzchar(name)) get0(name, overloads(), inherits = FALSE)
}

# The name under which a function may have an overload; "" if it cannot have one.
overload_name <- function(found, name) {
  known <- c("base", "stats", "utils", "methods", "grDevices", "gradops", "Matrix", "rlang", "purrr", "mvtnorm")
  if (is.primitive(found) || package_of(found) %in% known) own_name(found, name) else ""
}

# The name of an R function in its own package; the code may have another one for it: `link <- plogis`.
own_name <- function(found, name) {
  home <- environment(found)
  if (inherits(found, "genericFunction")) {
    as.character(attr(found, "generic"))
  } else if (is.null(home)) {
    primitive_name(found)
  } else if (nzchar(name) && is_function_of(name, found, home)) {
    name
  } else {
    recently(
      renamed,
      function(known) identical(known$f, found),
      function() {
        own <- Filter(function(own) is_function_of(own, found, home), names(overloads()))
        list(f = found, name = if (length(own) > 0) own[1] else name)
      }
    )$name
  }
}

# R's name of a primitive function.
primitive_name <- function(f) {
  sub(".*\\.Primitive\\(\"(.*)\"\\)$", "\\1", base::deparse(f)[1L])
}

renamed <- new.env(parent = emptyenv())

# The name of the package that `f` itself belongs to.
package_of <- function(f) {
  home <- environment(f)
  if (isNamespace(home)) getNamespaceName(home) else if (inherits(f, "genericFunction")) attr(f, "package") else ""
}

is_generic <- function(f) {
  !is.primitive(f) && "UseMethod" %in% all.names(body(f))
}

# The user's methods of S3 generics and group generics, which R finds by name.
methods_of <- function(generics, env) {
  found <- character()
  beginnings <- paste0(base::c(generics, "Ops", "Math", "Summary", "Complex"), ".")
  is_method <- function(name, env) any(startsWith(name, beginnings)) && is.function(env[[name]])
  while (!isNamespace(env) && !identical(env, emptyenv())) {
    found <- c(found, Filter(function(name) is_method(name, env), ls(env, all.names = TRUE, sorted = FALSE)))
    if (identical(env, globalenv())) break
    env <- parent.env(env)
  }
  found
}
