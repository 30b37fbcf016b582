# Namesakes as they are called: R's own code, in the namesake's frame, after a look whether an argument has a class. So
# ordinary vectors cost that look and no call more; what R's code says of its frame (`missing()`, `match.call()`, the
# call of an error) is of the user's call.
#
# The namesake stands in R's namespace, where its code finds what R's finds, and which survives a trip to another
# process. It is made when gradops is loaded, of the R that runs. One that calls `.Internal()` is what
# `library(gradops)` gives: a package's namespace may hold none, so that `gradops::paste()` is the generic.

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

# `generic`, a function whose body is `UseMethod(name, among(...))`, with `original`'s code for what has no class.
quick <- function(generic, name, original) {
  dispatch <- body(generic)
  if (identical(dispatch[[1L]], quote(`{`))) dispatch <- dispatch[[2L]]
  among <- dispatch[[3L]]
  arguments <- names(formals(generic))
  own <- setdiff(arguments, names(formals(original))) # those of a later R
  questions <- base::c(lapply(as.list(among)[-1L], question_of_class, original), lapply(own, question_whether_given))
  has_class <- Reduce(function(x, y) call("||", x, y), questions)
  is_r_code <- identical(names(formals(original)), setdiff(arguments, own)) &&
    !"UseMethod" %in% all.names(body(original))
  if (is_r_code) {
    among[[1L]] <- call(":::", quote(gradops), among[[1L]])
    if (length(own) == 0L) formals(generic) <- formals(original)
  }
  dispatch <- function(on) call("UseMethod", name, on)
  # R compiles a short function only if it has a loop: one that ends at once.
  with_loop <- bquote({
    repeat break
    .(dispatch(among))
  })
  code <- call("if", has_class, with_loop, if (is_r_code) body(original) else dispatch(NULL))
  as.function(base::c(formals(generic), code), if (is_r_code) environment(original) else topenv())
}

# TRUE if an argument, as it stands in `among()`, has a class. One that R's code reads in any case may be missing there.
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

# TRUE of the first argument, unless R's code asks whether it is there, and of those of the compiled routine that R's
# code calls and does nothing else.
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

# A function of gradops' with the arguments of another.
with_own_body <- function(f, body) {
  as.function(base::c(formals(f), body), topenv())
}
