# Operators between gradops' tensors and objects of other packages.

# From R 4.3 on, R calls chooseOpsMethod(), and gradops' method is chosen.
choose_ops_method_tensor <- function(x, y, mx, my, cl, reverse) {
  TRUE
}

# Before R 4.3, R takes a method only if both operands have the same one. So one function for each operator is the
# method of both gradops' tensors and Python objects; without a gradops tensor it calls the methods that other packages
# had registered.
share_operators <- function(...) {
  if (getRversion() >= "4.3.0") {
    return(invisible())
  }
  table <- get(".__S3MethodsTable__.", envir = baseenv())
  classes <- c("python.builtin.object", "tensorflow.tensor", "jax.Array", library_classes) # of those that have methods
  for (operator in names(operators)) {
    shared <- shared_operators[[operator]]
    if (is.null(shared)) {
      shared <- shared_operators[[operator]] <- shared_operator(operator)
      register(operator, c(tensor_classes, "gradops_sparse", "gradops_observed"), shared, baseenv())
    }
    for (class in classes) {
      name <- paste0(operator, ".", class)
      theirs <- get0(name, table, inherits = FALSE)
      if (!is.null(theirs) && !identical(theirs, shared)) {
        their_operators[[name]] <- theirs
        register(operator, class, shared, baseenv())
      }
    }
  }
}

shared_operators <- new.env(parent = emptyenv())
their_operators <- new.env(parent = emptyenv())

shared_operator <- function(operator) { # nolint: cyclocomp_linter. The function that it returns is counted, too.
  force(operator)
  function(e1, e2) {
    if (!is.null(state$observations) && (is_observed(e1) || !missing(e2) && is_observed(e2))) {
      return(operate_on_plain(operator, e1, e2))
    }
    logged <- if (!is.null(state$scalars)) {
      if (missing(e2)) minus_in_log(operator, e1) else .Call(C_operation_in_log, state, operator, e1, e2, TRUE)
    }
    if (is.environment(logged) && is.null(state$replaces)) {
      return(logged) # as in Ops_tensor()
    }
    if (is.logical(logged)) logged <- operation_in_log(operator, e1, e2)
    if (!is.null(logged)) {
      made_by_operator(logged, operator, e1, e2)
    } else if (is_sparse_tensor(e1) || !missing(e2) && is_sparse_tensor(e2)) {
      ops_sparse(operator, e1, e2)
    } else if (is_tensor(e1) || !missing(e2) && is_tensor(e2)) {
      operate(operator, e1, e2, written(sys.call(), operator))
    } else if (missing(e2)) {
      their_operator(operator, e1)(e1)
    } else {
      first <- their_operator(operator, e1)
      second <- their_operator(operator, e2)
      if (!is.null(first) && !is.null(second) && !identical(first, second)) incompatible(operator, e1, e2)
      (if (is.null(first)) second else first)(e1, e2)
    }
  }
}

their_operator <- function(operator, x) {
  for (class in class(x)) {
    method <- their_operators[[paste0(operator, ".", class)]]
    if (!is.null(method)) {
      return(method)
    }
  }
}

# Raise the error that R would raise.
incompatible <- function(operator, e1, e2) {
  names <- vapply(list(e1, e2), function(x) {
    known <- paste0(operator, ".", class(x))
    known[known %in% names(their_operators)][1]
  }, "")
  call <- call(operator, substitute(e1, parent.frame()), substitute(e2, parent.frame()))
  said <- sprintf("Incompatible methods (\"%s\", \"%s\") for \"%s\"", names[1], names[2], operator)
  warning(simpleWarning(said, call))
  stop(simpleError("non-numeric argument to binary operator", call))
}

# When tensorflow and keras3 load: share their methods, and register the operations that Keras needs to save gradops'
# ops in models.
await_neighbours <- function() {
  share_operators()
  setHook(packageEvent("tensorflow", "onLoad"), share_operators)
  if (isNamespaceLoaded("keras3")) await_keras() else setHook(packageEvent("keras3", "onLoad"), await_keras)
}

await_keras <- function(...) {
  when_loaded <- reticulate_inside("py_register_load_hook") # exported by newer versions
  if (is.null(when_loaded)) {
    return(share_operators())
  }
  when_loaded("keras", function() {
    share_operators()
    reticulate::import_from_path("gradops.ops._keras", system.file("python", package = "gradops"), convert = FALSE)
  })
}
