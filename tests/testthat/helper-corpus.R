# Functions as people write them (tests/testthat/corpus) with their evaluation points. `decides`: TRUE if they branch on
# values, so that compiling them is an error (NA: it may be an error or give the correct value). `gradient`: FALSE if
# numerical differentiation cannot check it.

# Returns the functions of a file. Their environment finds R's functions before gradops' exports, like a package's.
corpus <- function(file) {
  cases <- list()
  home <- new.env(parent = asNamespace("stats"))
  home$at <- function(name, x, f, decides = FALSE, gradient = NULL) {
    cases[[name]] <<- list(name = name, x = x, f = f, decides = decides, gradient = gradient)
  }
  home$op_stop_gradient <- op_stop_gradient
  home$.packageName <- "corpus" # reference classes need it
  sys.source(testthat::test_path("corpus", paste0(file, ".R")), home)
  cases
}

quietly <- function(code) {
  utils::capture.output(value <- suppressMessages(code))
  value
}

# Returns the faults of a function's value, gradient or compiled form at a second point, or NULL.
wrong_with <- function(case, compiled = TRUE) {
  value <- quietly(case$f(case$x))
  expected <- if (is.null(case$gradient)) quietly(numDeriv::grad(case$f, case$x)) else case$gradient(case$x)
  derivative <- value_and_grad(case$f)
  found <- tryCatch(quietly(derivative(case$x)), error = identity, warning = identity)
  if (inherits(found, "condition")) {
    return(sprintf("%s: %s", case$name, conditionMessage(found)))
  }
  if (!isTRUE(all.equal(as.vector(found$value), as.vector(value), tolerance = 1e-8))) {
    return(sprintf("%s: value %s, not %s", case$name, format(found$value), format(value)))
  }
  if (!isTRUE(all.equal(as.vector(found$gradient), as.vector(expected), tolerance = 1e-6))) {
    return(sprintf("%s: gradient %s, not %s", case$name, toString(found$gradient), toString(expected)))
  }
  wrong_again(case, derivative) %||% if (compiled) wrong_compiled(case)
}

# Returns how the messages or output of a repeated derivative differ from the first ones.
wrong_again <- function(case, derivative) {
  for (x in list(case$x, case$x * 1.01 + 0.002)) {
    expected <- heard_of(value_and_grad(case$f), x)
    found <- heard_of(derivative, x)
    if (!isTRUE(all.equal(found, expected, tolerance = 1e-10))) {
      return(sprintf("%s, again: %s", case$name, toString(all.equal(found, expected, tolerance = 1e-10))))
    }
  }
}

# Returns a result with its printed output and the classes of signalled conditions.
heard_of <- function(f, x) {
  signalled <- character()
  hear <- function(condition) {
    signalled <<- c(signalled, class(condition)[1], conditionMessage(condition))
    rlang::cnd_muffle(condition)
  }
  printed <- utils::capture.output(
    result <- tryCatch(
      withCallingHandlers(f(x), warning = hear, message = hear),
      error = function(condition) conditionMessage(condition)
    ),
    type = "output"
  )
  list(result = result, printed = printed, signalled = signalled)
}

wrong_compiled <- function(case) {
  program <- jit(case$f)
  second <- case$x * 1.01 + 0.002
  found <- tryCatch(
    {
      quietly(program(case$x))
      quietly(program(second))
    },
    gradops_error_jit = identity, error = function(error) conditionMessage(error)
  )
  if (inherits(found, "gradops_error_jit")) {
    return(if (isFALSE(case$decides)) sprintf("%s, compiled: %s", case$name, conditionMessage(found)))
  }
  if (is.character(found)) {
    return(sprintf("%s, compiled: %s", case$name, found))
  }
  if (isTRUE(case$decides) && config_backend() != "numpy") {
    return(sprintf("%s, compiled: a value was looked at without an error", case$name))
  }
  value <- quietly(case$f(second))
  if (!isTRUE(all.equal(as.vector(found), as.vector(value), tolerance = 1e-8))) {
    sprintf("%s, compiled: %s, not %s", case$name, format(found), format(value))
  }
}
