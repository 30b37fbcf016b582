# The user's methods for S3 generics that gradops masks. R starts its search for a method in the frame that calls the
# generic, so it finds methods defined in a function or in `local()`. If a gradops function called the generic itself,
# R would start in gradops' frame and miss them.

# Wrap `f`, which masks R's generic `name`. If the user has a method for the first argument, the wrapper calls R's
# generic from the caller's frame. Arguments keep their names and the code that `substitute()` sees.
dispatching <- function(f, name, package) {
  force(f)
  original <- get(name, envir = asNamespace(package))
  is_internal <- is.primitive(original)
  first <- if (!is_internal) names(formals(original))[1L]
  generics <- generic_names(name)
  op <- base::c(sum = "+", prod = "*", max = "maximum", min = "minimum")[name]
  is_total <- !is.na(op)
  function(...) {
    if (is_total && !is.null(state$scalars) && ...length() == 1L) { # loops have thousands of them
      logged <- .Call(C_running_in_log, state, op, ..1, FALSE)
      if (!is.null(logged)) {
        return(logged)
      }
    }
    if (...length() > 0L && !missing(..1)) {
      x <- if (is_internal) ..1 else dispatched_on(first, ...)
      if (finds_method(parent.frame(), generics, x, package, is_internal)) {
        return(called_from(parent.frame(), name, package, is.environment(x) && is_any_tensor(x))(...))
      }
    }
    f(...)
  }
}

# The argument that `UseMethod()` dispatches on: the one matched to the generic's first parameter.
dispatched_on <- function(first, ...) {
  named <- if (...length() > 1L) match(first, names(substitute(list(...)))[-1L])
  if (is.null(named) || is.na(named)) ..1 else ...elt(named)
}

# A function that calls R's generic from `frame`; `adapted` dispatches on the class of the R value a tensor replaces.
called_from <- function(frame, name, package, adapted = FALSE) {
  generic <- if (adapted) {
    copy_of(get(name, envir = asNamespace(package)))
  } else {
    call("::", as.name(package), as.name(name))
  }
  as.function(base::c(formals(function(...) NULL), as.call(list(generic, quote(...)))), frame)
}

# TRUE if R, starting in `frame`, finds a method for `x` that the user or a package defined. Primitive functions do not
# dispatch on R's own vectors. R finds registered methods from any frame; they count where another argument is a tensor.
finds_method <- function(frame, generics, x, package = "base", is_internal = TRUE, registered = TRUE) {
  if (is_internal && !is.object(x)) {
    FALSE
  } else if (is.environment(x) && is_any_tensor(x)) {
    !is_internal && inside() > 0 && .Call(C_sees_function, frame, method_symbols(generics)) &&
      has_users_methods(generics, base::c(.class2(stand_in(x)), "default"), list(frame))
  } else {
    registry <- if (registered && is.object(x)) asNamespace(package)[[".__S3MethodsTable__."]]
    has_users_methods(generics, base::c(.class2(x), "default"), base::c(frame, registry))
  }
}

# The names of methods for R's vectors, as symbols.
method_symbols <- function(generics) {
  known <- symbols_of_methods[[generics[1L]]]
  if (is.null(known)) {
    names <- paste0(rep(generics, each = length(implicit_classes)), ".", implicit_classes)
    known <- symbols_of_methods[[generics[1L]]] <- lapply(names, as.name)
  }
  known
}

symbols_of_methods <- new.env(parent = emptyenv())

# The names under which R looks for methods of a generic: its own and its group's.
generic_names <- function(name) {
  group <- if (name %in% summary_group) "Summary" else if (name %in% names(operators)) "Ops"
  base::c(if (name == "seq.int") "seq" else name, group)
}

# The operator for code that defines operators, such as `Ops.k`. R calls a method only if both operands have the same
# one; a tensor and an object of class `k` do not. This operator uses the object's method for the tensor as well.
dispatching_operator <- function(name) {
  original <- get(name, baseenv())
  generics <- generic_names(name)
  function(e1, e2) {
    is_unary <- missing(e2)
    has_class <- base::c(is.object(e1), !is_unary && is.object(e2))
    tensors <- base::c(is_any_tensor(e1), !is_unary && is_any_tensor(e2))
    if (!any(has_class & !tensors)) {
      return(if (is_unary) original(e1) else original(e1, e2))
    }
    frame <- parent.frame()
    if (any(tensors)) {
      object <- if (tensors[1L]) e2 else e1
      registry <- baseenv()[[".__S3MethodsTable__."]]
      method <- users_method(generics, .class2(object), list(frame, registry))
      if (!is.null(method)) {
        frame <- new.env(parent = frame)
        tensor <- if (tensors[1L]) e1 else e2
        for (class in base::c(class(object)[1L], class(tensor)[1L])) {
          assign(paste0(name, ".", class), tensor_aware(method), envir = frame)
        }
      }
    }
    operate_there <- called_from(frame, name, "base")
    if (is_unary) operate_there(e1) else operate_there(e1, e2)
  }
}

# TRUE if one of these names is the name of a method for an operator.
has_operators <- function(names) {
  any(grepl("^(Ops|[-+*/^<>&|]|%%|%/%|[=!<>]=)[.].", names))
}

summary_group <- base::c("all", "any", "max", "min", "prod", "range", "sum")

# TRUE for R's S3 generics, and for gradops' namesakes of them.
is_s3_generic <- function(f, name) {
  package <- if (is_namesake(name, f)) package_of_r(name)
  if (!is.null(package)) f <- get(name, envir = asNamespace(package))
  if (is.primitive(f)) {
    name %in% dispatching_syntax || exists(name, envir = .GenericArgsEnv, inherits = FALSE)
  } else {
    is_generic(f)
  }
}

# The package, of base, stats and utils, that defines function `name`, or NULL.
package_of_r <- function(name) {
  has_it <- function(package) exists(name, envir = asNamespace(package), inherits = FALSE)
  Find(has_it, base::c("base", "stats", "utils"))
}

dispatching_syntax <- base::c("[", "[[", "$", "[<-", "[[<-", "$<-")
