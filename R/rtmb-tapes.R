# RTMB's tapes. Here a tape is a function that is differentiated when it runs, with the data of the time when it was
# made.

make_tape <- function(f, x) {
  f <- match.fun(f)
  start <- x
  then <- captured(f) # RTMB records these values on its tape
  of_vector <- function(v) {
    hold(then, environment())
    v <- as_one_vector(v)
    run <- if (is_any_tensor(v) || ad_context()) tensor_aware(f) else f
    if (is.list(start)) {
      v <- arranged(v, layout_like(start))
    } else if (!is.null(dim(start))) {
      v <- if (is_any_tensor(v)) fill(v, dim(start)) else array(v, dim(start))
    } else if (!is.null(attr(start, "skeleton"))) {
      attr(v, "skeleton") <- attr(start, "skeleton")
    }
    run(v)
  }
  update <- function() {
    then <<- captured(f)
    invisible()
  }
  tape_of(of_vector, length(unlist(x)), as.double(unlist(x)), update)
}

as_one_vector <- function(x) if (is.list(x)) do.call(c, unname(lapply(x, as.vector))) else x

layout_like <- function(start) {
  list(
    names = names(start), sizes = lengths(start, use.names = FALSE), attributes = lapply(unname(start), attributes),
    form = NULL
  )
}

relist_rtmb <- function(flesh, skeleton = attr(flesh, "skeleton")) {
  if (is_any_tensor(flesh)) arranged(flesh, layout_like(unclass(skeleton))) else utils::relist(flesh, skeleton)
}

# `scalar` is the objective of a tape of one number that compiles its function.
tape_of <- function(f, domain, at = numeric(domain), update = invisible, scalar = NULL) {
  structure(f, class = "gradops_tape", domain = domain, at = at, update = update, scalar = scalar)
}

get_tape <- function(obj, ...) make_tape(obj$env$func, obj$env$parameters)

tape_methods <- function(tape) {
  f <- unclass(tape)
  domain <- attr(tape, "domain")
  attributes(f) <- NULL
  scalar <- attr(tape, "scalar")
  jacobian_at <- function(x) {
    if (!is.null(scalar) && runs_in_r(x)) {
      return(matrix(scalar$gr(as.double(x)), 1L))
    }
    matrix_of_rows(jacobian(function(v) as.vector(f(v)), x), length(x))
  }
  list(
    jacobian = jacobian_at,
    jacfun = function(sparse = FALSE) {
      tape_of(function(x) if (sparse) as_sparse(jacobian_at(x)) else jacobian_at(x), domain)
    },
    atomic = function() tape, simplify = function(...) invisible(tape), reorder = function(...) invisible(tape),
    force.update = attr(tape, "update"),
    par = function() attr(tape, "at"), graph = function() adjacency(autodiff_graph(f(parameter(attr(tape, "at"))))),
    newton = function(random, ...) inner_tape(f, attr(tape, "at"), random, "mode"),
    laplace = function(random, sparse = TRUE, SPA = FALSE, ...) {
      inner_tape(f, attr(tape, "at"), random, "laplace", flag(SPA))
    }
  )
}

# RTMB's form of a graph: TRUE in the row of an operation or leaf, and in the column of an operation that uses its
# result.
adjacency <- function(graph) {
  count <- nrow(graph$boxes)
  Matrix::sparseMatrix(
    count + 1L - graph$arrows$to, count + 1L - graph$arrows$from,
    dims = c(count, count), dimnames = rep(list(rev(graph$boxes$name)), 2L)
  )
}

matrix_of_rows <- function(x, columns) {
  if (is_any_tensor(x)) fill(x, c(length(x) / columns, columns)) else matrix(x, ncol = columns)
}

as_sparse <- function(x) Matrix::Matrix(x, sparse = TRUE)

#' @export
`$.gradops_tape` <- function(x, name) {
  methods <- tape_methods(x)
  if (name == "methods") function() names(methods) else component(methods, name)
}

#' @export
print.gradops_tape <- function(x, ...) {
  cat("<tape of", attr(x, "domain"), "numbers>\n")
  invisible(x)
}

# A tape of the outer variables, with the inner ones at the minimum of `f`, or integrated out around it.
inner_tape <- function(f, at, random, question, ...) {
  places <- base::order(c(seq_along(at)[-random], random))
  of_parts <- function(outer, u) sum(f(c(outer, u)[places]))
  write_closed_over(f)
  here <- new.env()
  here$names <- list()
  inner <- call_core(
    "inference.inner.Inner", callback(differentiated(of_parts, here)), operand(array_of(at[-random])),
    operand(array_of(at[random]))
  )
  name <- paste0("inference.inner.Inner.", question)
  recorded <- function(outer) several(call_core(name, inner, operand(as_doubles(outer)), ...))
  scalar <- if (question == "laplace") objective(recorded, jit = TRUE)
  tape_of(function(outer) {
    outer <- as_one_vector(outer)
    if (!is.null(scalar) && runs_in_r(outer)) {
      return(scalar$fn(as.double(outer)))
    }
    found <- recorded(outer)
    if (is_any_tensor(outer)) found else as.vector(plain_numbers(found))
  }, length(at) - length(random), at[-random], scalar = scalar)
}

# TRUE for numbers that no tape records.
runs_in_r <- function(x) !is_any_tensor(x) && !ad_context()

# Data at an index that is a variable; the derivative is 0.
data_eval <- function(f, x) {
  if (missing(x)) {
    return(f())
  }
  if (!is_any_tensor(x)) {
    return(f(x))
  }
  known <- known_values(x)
  if (is.null(known)) r_function(function(x) f(as.vector(x)))(op_stop_gradient(x)) else f(as.vector(known))
}

# `f` gets plain numbers, as in RTMB, so it may call code that takes no tensors. `y` in `df()` has derivatives.
ad_joint <- function(f, df, name = NULL, complex = FALSE) {
  if (flag(complex)) unsupported("complex", "must be `FALSE` here.", "Give real and imaginary parts as one vector.")
  f <- match.fun(f)
  df <- match.fun(df)
  last <- list()
  value <- r_function(function(x) { # evaluated once for value and gradient
    if (!identical(last$x, x)) last <<- list(x = x, y = f(x))
    last$y
  })
  differentiated <- op_custom_gradient(
    function(x) value(op_stop_gradient(x)), function(x, upstream) df(x, differentiated(x), upstream)
  )
  function(x) if (is_any_tensor(x)) differentiated(x) else f(x)
}

# Settings of RTMB's tapes, which scripts read, change and restore; they have no effect here.
tape_config <- function(..., comparison = "NA", atomic = "NA", vectorize = "NA") {
  known <- state$tape_settings %||% tape_settings
  given <- list(...)
  if (length(given) == 1L && is.list(given[[1L]])) given <- given[[1L]]
  words <- c(compare = comparison, matmul = atomic, mvnorm = atomic, ops = vectorize)
  words[c("math", "sparse", "sum")] <- vectorize
  meanings <- c(tape = "taped", enable = "atomic", disable = "plain", forbid = "forbid", allow = "allow")
  for (name in names(words)[words != "NA"]) {
    word <- match.arg(words[[name]], names(meanings))
    is_of_vectors <- name %in% c("ops", "math", "sparse", "sum")
    known[[name]] <- if (is_of_vectors && word == "enable") "vectorize" else meanings[[word]]
  }
  if (!all(names(given) %in% names(known))) {
    unsupported("...", paste("may have", paste0("`", names(known), "`", collapse = ", ")))
  }
  known[names(given)] <- given
  state$tape_settings <- known
  invisible(known)
}

tape_settings <- list(
  matmul = "plain", ops = "plain", math = "plain", sparse = "plain", sum = "plain", mvnorm = "atomic",
  compare = "forbid"
)
