# Base R's generics on the tensors of every backend and on variables.

# Arithmetic -----------------------------------------------------------------------------------------------------------

operators <- c(
  `+` = "add", `-` = "subtract", `*` = "multiply", `/` = "divide", `^` = "power", `%%` = "mod", `%/%` = "floor_divide",
  `==` = "equal", `!=` = "not_equal", `<` = "less", `<=` = "less_equal", `>` = "greater", `>=` = "greater_equal",
  `&` = "logical_and", `|` = "logical_or"
)

Ops_tensor <- function(e1, e2) {
  logged <- NA # NA: not tried, or R's code has to decide
  if (!is.null(state$scalars) && is.null(state$observations) && !missing(e2)) {
    # Loops have thousands of operations, whose results are nearly all numbers of a log.
    logged <- .Call(C_operation_in_log, state, .Generic, e1, e2, TRUE)
    if (is.environment(logged) && is.null(state$replaces)) {
      return(logged)
    }
  }
  if (!is.null(state$observations) && (is_observed(e1) || !missing(e2) && is_observed(e2))) {
    return(operate_on_plain(.Generic, e1, e2))
  }
  if (is.logical(logged)) {
    logged <- if (!is.null(state$scalars)) {
      if (missing(e2)) minus_in_log(.Generic, e1) else operation_in_log(.Generic, e1, e2)
    }
  }
  if (!is.null(logged)) {
    made_by_operator(logged, .Generic, e1, e2)
  } else if (is_sparse_tensor(e1) || !missing(e2) && is_sparse_tensor(e2)) {
    ops_sparse(.Generic, e1, e2)
  } else {
    operate(.Generic, e1, e2, written(sys.call(), .Generic))
  }
}

# An operator on marked observations, which count as plain numbers.
operate_on_plain <- function(operator, e1, e2) {
  operator <- get(operator, baseenv())
  if (missing(e2)) operator(as_plain(e1)) else operator(as_plain(e1), as_plain(e2))
}

operate <- function(operator, e1, e2, call) {
  is_plain <- !missing(e2) && is_bare(e1) && is_bare(e2) && !is.na(match(operator, with_nothing_more))
  if (is_plain && is.null(state$missing) && is.null(state$replaces)) {
    as_large(call_operator(operators[[operator]], e1, e2, call), e1, e2) # most calls; saves a third of the time
  } else if (!missing(e2) && (has_time(e1) || has_time(e2))) {
    operate_in_time(operator, e1, e2, call, parent.frame(2L))
  } else {
    made_by_operator(operate_by_position(operator, e1, e2, call), operator, e1, e2)
  }
}

# Operators that call their op directly if the operands have no attributes that R adds to tensors.
with_nothing_more <- c("+", "-", "*", "/")

# TRUE for a tensor without names, time and missing values, which are attributes.
is_bare <- function(x) {
  is.environment(x) && length(attributes(x)) == 1L
}

made_by_operator <- function(result, operator, e1, e2) {
  made_by(result, operator, if (missing(e2)) list(e1) else list(e1, e2))
}

operate_by_position <- function(operator, e1, e2, call) {
  decides <- is.na(match(operator, arithmetic))
  if (decides) {
    decision <- compared(operator, e1, e2)
    if (!is.null(decision)) {
      return(decision)
    }
  }
  if (!missing(e2)) {
    if (decides) check_known(operator, e1, e2, call)
    result <- if (!decides && !(is.null(missing_in(e1)) && is.null(missing_in(e2)))) {
      operate_past_missing(operator, e1, e2, call)
    } else if (operator == "^") {
      call_operator("power", operand(quiet(e1)), operand(quiet(e2)), call)
    } else {
      call_operator(operators[[operator]], operand(e1), operand(e2), call)
    }
    return(keep_names(as_large(result, e1, e2), e1, e2))
  }
  switch(operator,
    `-` = keep_names(if (is_marked(e1)) past_missing(list(e1), op_negative) else call_op("negative", e1), e1),
    `!` = keep_names(call_op("logical_not", e1), e1),
    e1
  )
}

arithmetic <- c("+", "-", "*", "/", "^", "%%", "%/%")

# R's answer would be NA, which a tensor of booleans does not have.
check_known <- function(operator, e1, e2, call = parent.frame()) {
  if (is.atomic(e1) && anyNA(e1) || is.atomic(e2) && anyNA(e2)) {
    abort(
      c(
        sprintf("`%s` with NA gives NA, which a tensor of booleans cannot hold.", operator),
        i = "`is.na(x)` finds missing values."
      ),
      class = c("gradops_error_argument", "gradops_error"), call = call
    )
  }
}

# Like call_op(), for two operands that R recycles: a vector goes along the columns of a matrix.
call_operator <- function(op, x, y, call = parent.frame()) {
  form <- recycling[[op]]
  if (is.null(form)) form <- load_operator(op)
  operands <- list(x, y) # evaluate them here, where R may be interrupted
  answer(py_call_list(form, operands), call)
}

# Show a method's call as a call of the generic.
written <- function(call, generic) {
  call[[1]] <- as.name(generic)
  call
}

recycling <- new.env(parent = emptyenv())

load_operator <- function(name) {
  recycling[[name]] <- py_call(bridge()$operator_form, name)
}

#' @rdname tensor_matrices
#' @usage NULL
#' @rawNamespace if (getRversion() < "4.3.0") export("%*%")
`%*%` <- function(...) { # in these terms, since as a superset of base R's primitive conflicted knows no other
  if (is.object(..1) || is.object(..2)) {
    logged <- .Call(C_product_in_log, state, ..1, ..2, TRUE)
    if (!is.null(logged)) {
      return(logged)
    }
    if (is_any_tensor(..1) || is_any_tensor(..2) || is_sparse_tensor(..1) || is_sparse_tensor(..2)) {
      return(matmul_tensor(..1, ..2, sys.call()))
    }
  }
  base_matmul(..1, ..2)
}

base_matmul <- base::`%*%`

matmul_tensor <- function(x, y, call = parent.frame()) {
  if (isS4(x) || isS4(y) || is_sparse_tensor(x) || is_sparse_tensor(y)) {
    return(matmul_sparse(x, y, call))
  }
  if (is_missing_somewhere(x) || is_missing_somewhere(y)) {
    return(multiply_past_missing(x, y, base::`%*%`, function(x, y) matmul_tensor(x, y, call)))
  }
  product <- product_in_log(x, y) %||% call_core("interop.r.matmul", operand(x), operand(y), .call = call)
  named_product(product, x, y, 1L, 2L)
}

# Give a product the row and column names of its factors.
named_product <- function(product, x, y, rows, columns) {
  x <- dimnames_of(x)
  y <- dimnames_of(y)
  if (is.null(x) && is.null(y)) product else with_dimnames(product, list(x[[rows]], y[[columns]]))
}

# A single number is a vector of length 1 in R.
at_least_1d <- function(x) {
  if (!is.list(x) && is.null(dim(x))) call_op("reshape", x, -1L) else x
}

matrix_ops_tensor <- function(x, y = NULL) {
  switch(.Generic,
    `%*%` = matmul_tensor(x, y, sys.call()),
    crossprod = crossprod_tensor(x, y),
    tcrossprod = tcrossprod_tensor(x, y),
    no_method(.Generic, environment())
  )
}

# Functions of R's Math group, as names of ops, or as functions of the tensor and further arguments.
math <- list(
  abs = "abs", sign = "sign", sqrt = "sqrt", floor = "floor", ceiling = "ceil", trunc = "trunc",
  exp = "exp", expm1 = "expm1", log1p = "log1p", log2 = "log2", log10 = "log10",
  cos = "cos", sin = "sin", tan = "tan", acos = "arccos", asin = "arcsin", atan = "arctan",
  cosh = "cosh", sinh = "sinh", tanh = "tanh", acosh = "arccosh", asinh = "arcsinh", atanh = "arctanh",
  lgamma = "lgamma",
  log = function(x, base = exp(1)) {
    natural <- call_op("log", x)
    if (missing(base)) natural else natural / log(base)
  },
  round = function(x, digits = 0) call_op("round", x, digits),
  signif = function(x, digits = 6) special("signif", x, digits),
  gamma = function(x) special("gamma", x),
  digamma = function(x) psigamma_tensor(x),
  trigamma = function(x) call_op("polygamma", x, 1L),
  cospi = function(x) call_op("cos", x * pi),
  sinpi = function(x) call_op("sin", x * pi),
  tanpi = function(x) call_op("tan", x * pi),
  cumsum = function(x) {
    (if (!is.null(state$scalars)) total_in_log("+", x, TRUE)) %||% call_op("cumsum", column_major(x), NULL, NULL)
  },
  cumprod = function(x) {
    logged <- if (!is.null(state$scalars)) total_in_log("*", x, TRUE)
    logged %||% call_op("cumprod", doubled(column_major(x)), NULL, NULL)
  },
  cummax = function(x) call_core("interop.r.arrays.running", x, "maximum"),
  cummin = function(x) call_core("interop.r.arrays.running", x, "minimum")
)

Math_tensor <- function(x, ...) { # nolint: cyclocomp_linter. The quick way stands before the others.
  f <- math[[.Generic]]
  op <- if (is.character(f)) f else if (.Generic == "log" && nargs() == 1L) "log"
  if (!is.null(op) && !is.null(state$scalars) && is.null(state$heard)) {
    logged <- .Call(C_operation_in_log, state, op, x, 0, TRUE)
    if (is.environment(logged)) {
      return(if (is.null(state$replaces)) logged else made_by(logged, .Generic, list(x)))
    }
  }
  if (!is.null(state$missing) && !startsWith(.Generic, "cum") && is_marked(x)) {
    generic <- get(.Generic, baseenv())
    instead <- if (.Generic == "acosh") 2 else 0.5
    return(keep_names(past_missing(list(x), function(x) generic(x, ...), instead), x))
  }
  if (.Generic == "log" && nargs() == 1L) {
    f <- "log"
  } else if (.Generic == "log" && "x" %in% names(sys.call())[-(1:2)]) {
    # For `log(base = 10, x = x)`, R (at least 4.2) passes the right expressions with exchanged values.
    written <- as.list(match.call())[-1]
    return(do.call(f, lapply(written, eval, parent.frame())))
  }
  result <- if (is.character(f)) {
    made <- function_in_log(f, x) %||% keep_names(as_large(call_op(f, x), x), x)
    made_by(made, .Generic, list(x))
  } else if (is.function(f)) {
    if (startsWith(.Generic, "cum")) {
      with_names(f(x, ...), names_tensor(x))
    } else {
      made_by(keep_names(f(x, ...), x), .Generic, list(x, ...))
    }
  } else {
    no_method(.Generic, environment())
  }
  if (is.null(state$heard)) result else hear_nan(result, list(x), written(sys.call(), .Generic))
}

Complex_tensor <- function(z) {
  call_op(switch(.Generic, Re = "real", Im = "imag", Mod = "abs", Arg = "angle", Conj = "conj"), z)
}

no_method <- function(generic, call) {
  abort(
    sprintf("`%s()` is not available for tensors.", generic),
    class = c("gradops_error_type", "gradops_error"), call = call
  )
}

Summary_tensor <- function(..., na.rm = FALSE) {
  if (.Generic == "range") {
    parts <- list(...)
    parts <- base::c(parts[order(!vapply(parts, is.environment, NA))], na.rm = na.rm) # R dispatches on the first
    return(call_op("stack", list(do.call(min, parts), do.call(max, parts)), 1L))
  }
  op <- if (!isTRUE(na.rm) && !is.null(state$scalars)) {
    switch(.Generic, sum = "+", prod = "*", max = "maximum", min = "minimum")
  }
  if (!is.null(op) && ...length() == 1L) {
    total <- total_in_log(op, ..1)
    if (!is.null(total)) {
      return(total)
    }
  }
  name <- paste0(if (na.rm) "nan", .Generic)
  # Empty arguments contribute nothing, as in R.
  parts <- Filter(function(part) is.environment(part) || length(part) > 0, list(...))
  if (na.rm) parts <- drop_na(parts)
  if (na.rm && .Generic %in% c("max", "min") && length(parts) > 1L) parts <- list(one_vector(parts))
  call <- written(sys.call(), .Generic)
  parts <- lapply(parts, function(x) {
    total <- if (!is.null(op)) {
      if (!is.object(x) && is.numeric(x) && !anyNA(x)) return(get(.Generic, baseenv())(x))
      total_in_log(op, x)
    }
    total %||% reduce_all(name, operand(if (.Generic == "prod") doubled(x) else x, call = call), call)
  })
  combine <- switch(.Generic, sum = `+`, prod = `*`, max = of_log(op, op_maximum), min = of_log(op, op_minimum),
    all = `&`, any = `|`
  )
  Reduce(combine, parts)
}

# The operation `op` in a log, or `f`.
of_log <- function(op, f) {
  if (is.null(op)) f else function(x, y) operation_in_log(op, x, y) %||% f(x, y)
}

# Convert integers to floats: R computes products in floats.
doubled <- function(x) {
  if (is.environment(x)) call_core("interop.r.as_double", x) else if (is.complex(x)) x else as.double(x)
}

# Drop NAs from R's numbers, and drop parts that are then empty.
drop_na <- function(parts) {
  parts <- lapply(parts, function(x) if (is.atomic(x)) x[!is.na(x)] else x)
  parts[vapply(parts, function(x) !is.atomic(x) || length(x) > 0, NA)]
}

reduce_all <- function(name, x, call) {
  reduce <- function(op, ...) answer(py_call(ops[[op]] %||% load_op(op), x, NULL, FALSE, ...), call)
  switch(name,
    nanany = , nanall = reduce(sub("nan", "", name)),
    max = , min = , prod = reduce(name, NULL), # these take an initial value or a dtype
    reduce(name)
  )
}

# `x`'s elements in R's order, as a vector.
column_major <- function(x) {
  call_op("reshape", if (length(dim(x)) > 1L) call_op("transpose", x, NULL) else x, -1L)
}

# Shape ----------------------------------------------------------------------------------------------------------------

dim_tensor <- function(x) {
  known <- .subset2(x, "gradops_dim") %||% .subset2(x, "gradops_extent")
  if (!is.null(known) || is_lazy(x)) {
    return(known)
  }
  dim <- unlist(py_to_r(answer(py_call(core$dim %||% load_bridge("dim"), x), parent.frame())))
  if (!is.null(dim)) dim[dim < 0] <- NA
  if (inherits(x, variable_class)) assign("gradops_extent", dim, envir = x) # PyTorch's tensors may be resized in place
  dim
}

length_tensor <- function(x) {
  as.integer(prod(dim_tensor(x)))
}

assign_length_tensor <- function(x, value) {
  size <- length_tensor(x)
  if (value <= size) flat(x)[seq_len(value)] else c(flat(x), rep(NA_real_, value - size))
}

t_tensor <- function(x) {
  if (!is.null(state$scalars)) {
    logged <- .Call(C_transposed_in_log, state, x) %||% if (is.null(dimnames_tensor(x))) rearranged(base::t, x)
    if (!is.null(logged)) {
      return(logged)
    }
  }
  rank <- length(dim(x))
  if (rank > 2) {
    abort(
      sprintf("`t()` takes matrices and vectors; got %d dimensions. Use `op_transpose()`.", rank),
      class = c("gradops_error_shape", "gradops_error"), call = caller_env()
    )
  }
  if (rank < 2) {
    names <- names_tensor(x)
    row <- call_op("reshape", x, c(1L, -1L))
    return(if (is.null(names)) row else with_dimnames(row, list(NULL, names)))
  }
  with_dimnames(call_op("transpose", x, NULL), rev(dimnames_tensor(x)))
}

# Values in R ----------------------------------------------------------------------------------------------------------

# The values as an R array, or as a number if there is one.
values_of <- function(x, call = parent.frame()) {
  py_to_r(call_core("interop.r.to_r", x, .call = call))
}

is_recorded <- function(x) {
  is_tensor(x) && py_to_r(call_core("interop.r.is_recorded", x))
}

as_array_tensor <- function(x, ...) {
  if (!keeps(x)) values_of(x) else if (length(dim(x)) < 2L) as_one_dimensional(at_least_1d(x)) else x
}

as_matrix_tensor <- function(x, ...) {
  if (!is.null(attr(x, "gradops_dist"))) {
    return(call_core("scipy.spatial.distance.squareform", x))
  }
  if (!keeps(x)) as.matrix(values_of(x)) else if (length(dim(x)) == 2L) x else fill(x, c(length(x), 1L))
}

as_vector_tensor <- function(x, mode = "any") {
  if (mode %in% c("any", "numeric", "double", "complex", "list") && keeps(x)) {
    switch(mode, complex = as_complex_tensor(x), list = as_list_tensor(x), taken_past_missing(x, as.vector, flat(x)))
  } else {
    as.vector(values_of(x), mode)
  }
}

as_double_tensor <- function(x, ...) {
  if (keeps(x)) flat(x) else as.double(values_of(x))
}

as_integer_tensor <- function(x, ...) {
  as.integer(if (inside() > 0) whole_numbers(x, "as.integer") else values_of(x))
}

as_logical_tensor <- function(x, ...) {
  as.logical(if (inside() > 0) truth(x, "as.logical") else values_of(x))
}

as_complex_tensor <- function(x, ...) {
  if (keeps(x)) op_cast(flat(x), "complex128") else as.complex(values_of(x))
}

as_character_tensor <- function(x, ...) {
  words_of_tensor(x, "as.character")
}

# Elements in R's order, as in a list of an R array; use `op_unstack()` for slices.
as_list_tensor <- function(x, ...) {
  parts <- flat(x)
  stats::setNames(lapply(seq_len(length(parts)), function(i) op_get_item(parts, i)), names_tensor(x))
}
