# The code of a namesake: R's own code, in the namesake's frame, after a test whether an argument has a class. So
# ordinary vectors cost this test and no further call, and what R's code finds out about its frame (`missing()`,
# `match.call()`, the call of an error) refers to the user's call.
#
# The namesake's environment is R's namespace, so its code finds what R's finds, and it can be sent to another process.
# It is made when gradops is loaded, from the running version of R. A namesake that calls `.Internal()` exists only in
# the environment that `library(gradops)` attaches, as a package's namespace may not contain such calls;
# `gradops::paste()` is the generic.

internal_namesakes <- new.env(parent = emptyenv())

keep_quick <- function(name, f) {
  assign(name, f, if (".Internal" %in% all.names(body(f))) internal_namesakes else topenv())
}

attach_quick <- function(package) {
  list2env(as.list(internal_namesakes), package)
}

# TRUE if `f` is gradops' function of this name.
is_namesake <- function(name, f) {
  identical(get0(name, topenv(), inherits = FALSE), f) || identical(internal_namesakes[[name]], f)
}

# Turn `generic`, whose body is `UseMethod(name, among(...))`, into a function that runs `original`'s code if no
# argument has a class. `before` is code that runs before the dispatch.
quick <- function(generic, name, original, before = NULL) {
  dispatch <- body(generic)
  if (identical(dispatch[[1L]], quote(`{`))) dispatch <- dispatch[[2L]]
  among <- dispatch[[3L]]
  arguments <- names(formals(generic))
  own <- setdiff(arguments, names(formals(original))) # arguments of a later version of R
  questions <- base::c(lapply(as.list(among)[-1L], question_of_class, original), lapply(own, question_whether_given))
  has_class <- Reduce(function(x, y) call("||", x, y), questions)
  is_r_code <- identical(names(formals(original)), setdiff(arguments, own)) &&
    !"UseMethod" %in% all.names(body(original))
  if (is_r_code) {
    among[[1L]] <- call(":::", quote(gradops), among[[1L]])
    if (length(own) == 0L) formals(generic) <- formals(original)
  }
  # A primitive of R 4.4 and later, such as crossprod(), finds S3 methods from the frame of its caller; do so for it.
  if (is.primitive(original)) among <- call("%||%", among, as.name(arguments[1L]))
  dispatch <- function(on) call("UseMethod", name, on)
  # R compiles a short function only if it has a loop: add one that ends at once.
  with_loop <- bquote({
    repeat break
    ..(as.list(before))
    .(dispatch(among))
  }, splice = TRUE)
  code <- call("if", has_class, with_loop, if (is_r_code) body(original) else dispatch(NULL))
  as.function(base::c(formals(generic), code), if (is_r_code) environment(original) else topenv())
}

# The code that tests whether an argument of `among()` has a class. An argument that R's code may not read may be
# missing.
question_of_class <- function(argument, original) {
  if (identical(argument, quote(...))) {
    return(quote(gradops:::has_class(...)))
  }
  if (is.symbol(argument)) {
    is_qr <- identical(argument, quote(qr)) # a list with a class of R's
    return(if (is_qr) quote(is.object(qr) && class(qr)[1L] != "qr") else call("is.object", argument))
  }
  given <- argument[[3L]]
  question <- question_of_class(given, original)
  if (is_read(given, original)) question else call("&&", argument[[2L]], question)
}

question_whether_given <- function(name) {
  if (name == "...") quote(...length() > 0L) else bquote(!missing(.(as.name(name))))
}

# TRUE for the first argument, unless R's code tests whether it is missing, and for arguments of the compiled routine if
# R's code does nothing but call it.
is_read <- function(argument, original) {
  code <- body(original)
  if (identical(as.character(argument), names(formals(original))[1L]) && !"missing" %in% all.names(code)) {
    return(TRUE)
  }
  if (rlang::is_call(code, ".Internal")) code <- code[[2L]] else if (!rlang::is_call(code, ".Call")) code <- NULL
  any(vapply(as.list(code)[-1L], identical, NA, argument))
}

has_class <- function(...) {
  for (x in list(...)) if (is.object(x)) return(TRUE)
  FALSE
}

# A function of gradops with the formals of another.
with_own_body <- function(f, body) {
  as.function(base::c(formals(f), body), topenv())
}
