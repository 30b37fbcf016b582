# Base R's generics on the tensors of every backend and on variables.

# S3 classes, as reticulate makes them of the Python types, one for each kind of tensor.
tensor_classes <- c(
  "numpy.ndarray", "numpy.generic", "torch.Tensor",
  "tensorflow.python.types.core.Tensor", "tensorflow.python.framework.tensor.Tensor",
  "tensorflow.python.framework.ops.Tensor",
  "jaxlib._jax.ArrayImpl", "jax.jaxlib._jax.Array", "jaxlib.xla_extension.ArrayImpl", "jax._src.core.Tracer",
  "gradops.autodiff.variable.Variable", "gradops.jit.traced.Traced"
)

# At load time and not in NAMESPACE: reticulate has methods for some of them, which these are to replace quietly.
register_tensor_methods <- function() {
  methods <- list(
    Ops = Ops_tensor, Math = Math_tensor, Summary = Summary_tensor, `[` = subset_tensor, `[<-` = assign_tensor,
    `[[` = element_tensor, `[[<-` = assign_element_tensor,
    dim = dim_tensor, length = length_tensor, t = t_tensor,
    as.array = as_array_tensor, as.matrix = as_matrix_tensor, as.vector = as_vector_tensor,
    as.double = as_double_tensor, as.integer = as_integer_tensor, as.logical = as_logical_tensor,
    as.complex = as_complex_tensor, as.character = as_character_tensor, as.list = as_list_tensor,
    `$` = dollar_tensor, mean = mean_tensor, format = format_tensor, print = print_tensor
  )
  if (getRversion() >= "4.3.0") {
    methods$matrixOps <- matrix_ops_tensor
  }
  for (class in context_classes) registerS3method("$", class, context_field, envir = baseenv())
  for (generic in names(methods)) {
    for (class in tensor_classes) {
      registerS3method(generic, class, methods[[generic]], envir = baseenv())
    }
  }
}

is_tensor <- function(x) {
  inherits(x, tensor_classes)
}

# Arithmetic -----------------------------------------------------------------------------------------------------------

operators <- c(
  `+` = "add", `-` = "subtract", `*` = "multiply", `/` = "divide", `^` = "power", `%%` = "mod", `%/%` = "floor_divide",
  `==` = "equal", `!=` = "not_equal", `<` = "less", `<=` = "less_equal", `>` = "greater", `>=` = "greater_equal",
  `&` = "logical_and", `|` = "logical_or"
)

Ops_tensor <- function(e1, e2) {
  if (!missing(e2)) {
    return(call_op(operators[[.Generic]], operand(e1), operand(e2)))
  }
  switch(.Generic,
    `-` = call_op("negative", e1),
    `!` = call_op("logical_not", e1),
    e1
  )
}

#' Matrix product of tensors
#'
#' `x %*% y` of tensors and variables is [op_matmul()]; of R's own values it is base R's. From R 4.3 on, base R's
#' `%*%` itself finds the tensors' method; before, this one stands in front of it.
#' @param x,y Tensors, variables, or R's matrices and vectors.
#' @returns A tensor, or what base R gives.
#' @examplesIf gradops_available()
#' variable(diag(2)) %*% c(1, 2)
#' @name matmul
#' @aliases %*%
#' @usage x \%*\% y
#' @rawNamespace if (getRversion() < "4.3.0") export("%*%")
`%*%` <- function(x, y) {
  if (is.object(x) && is.environment(x) || is.object(y) && is.environment(y)) {
    call_op("matmul", at_least_1d(operand(x)), at_least_1d(operand(y)))
  } else {
    base::`%*%`(x, y)
  }
}

# One number is a vector of length 1 in R.
at_least_1d <- function(x) {
  if (!is.list(x) && is.null(dim(x))) call_op("reshape", x, -1L) else x
}

matrix_ops_tensor <- function(x, y) {
  if (.Generic != "%*%") {
    no_method(.Generic, environment())
  }
  call_op("matmul", at_least_1d(operand(x)), at_least_1d(operand(y)))
}

# Functions of R's Math group, as ops. `f` of the tensor where it takes more than one.
math <- list(
  abs = "abs", sign = "sign", sqrt = "sqrt", floor = "floor", ceiling = "ceil", trunc = "trunc",
  exp = "exp", expm1 = "expm1", log1p = "log1p", log2 = "log2", log10 = "log10",
  cos = "cos", sin = "sin", tan = "tan", acos = "arccos", asin = "arcsin", atan = "arctan",
  cosh = "cosh", sinh = "sinh", tanh = "tanh", acosh = "arccosh", asinh = "arcsinh", atanh = "arctanh",
  log = function(x, base = exp(1)) {
    natural <- call_op("log", x)
    if (missing(base)) natural else natural / log(base)
  },
  round = function(x, digits = 0) call_op("round", x, digits),
  cospi = function(x) call_op("cos", x * pi),
  sinpi = function(x) call_op("sin", x * pi),
  tanpi = function(x) call_op("tan", x * pi),
  cumsum = function(x) call_op("cumsum", column_major(x), NULL, NULL),
  cumprod = function(x) call_op("cumprod", column_major(x), NULL, NULL)
)

Math_tensor <- function(x, ...) {
  f <- math[[.Generic]]
  if (is.character(f)) {
    call_op(f, x)
  } else if (is.function(f)) {
    f(x, ...)
  } else {
    no_method(.Generic, environment())
  }
}

no_method <- function(generic, call) {
  abort(
    sprintf("`%s()` has no form for tensors.", generic),
    class = c("gradops_error_type", "gradops_error"), call = call
  )
}

Summary_tensor <- function(..., na.rm = FALSE) {
  if (.Generic == "range") {
    return(call_op("stack", list(min(..., na.rm = na.rm), max(..., na.rm = na.rm)), 1L))
  }
  name <- paste0(if (na.rm) "nan", .Generic)
  parts <- list(...)
  if (na.rm) parts <- without_na(parts)
  parts <- lapply(parts, function(x) reduce_all(name, operand(x)))
  combine <- switch(.Generic, sum = `+`, prod = `*`, max = op_maximum, min = op_minimum, all = `&`, any = `|`)
  Reduce(combine, parts)
}

# Without the NAs of R's numbers, and without those of which nothing is left.
without_na <- function(parts) {
  parts <- lapply(parts, function(x) if (is.atomic(x)) x[!is.na(x)] else x)
  parts[vapply(parts, function(x) !is.atomic(x) || length(x) > 0, NA)]
}

reduce_all <- function(name, x) {
  switch(name,
    nanany = , nanall = call_op(sub("nan", "", name), x, NULL, FALSE),
    max = , min = , prod = call_op(name, x, NULL, FALSE, NULL), # an initial value, or a dtype
    call_op(name, x, NULL, FALSE)
  )
}

mean_tensor <- function(x, ...) {
  call_op("mean", x, NULL, FALSE)
}

# `x`'s elements in R's order, as a vector.
column_major <- function(x) {
  call_op("reshape", if (length(dim(x)) > 1L) call_op("transpose", x, NULL) else x, -1L)
}

# Shape ----------------------------------------------------------------------------------------------------------------

dim_tensor <- function(x) {
  dim <- unlist(py_to_r(py_call(core$dim %||% load_bridge("dim"), x)))
  if (!is.null(dim)) dim[dim < 0] <- NA
  dim
}

length_tensor <- function(x) {
  as.integer(prod(dim_tensor(x)))
}

t_tensor <- function(x) {
  rank <- length(dim(x))
  if (rank > 2) {
    abort(
      sprintf("`t()` is of matrices and vectors; got %d dimensions. Use `op_transpose()`.", rank),
      class = c("gradops_error_shape", "gradops_error"), call = caller_env()
    )
  }
  if (rank == 2) call_op("transpose", x, NULL) else call_op("reshape", x, c(1L, -1L))
}

# Values in R ----------------------------------------------------------------------------------------------------------

# An R array; of a single number, that number.
values_of <- function(x, call = parent.frame()) {
  py_to_r(call_core("interop.r.to_r", x, .call = call))
}

as_array_tensor <- function(x, ...) {
  values_of(x)
}

as_matrix_tensor <- function(x, ...) {
  as.matrix(values_of(x))
}

as_vector_tensor <- function(x, mode = "any") {
  as.vector(values_of(x), mode)
}

as_double_tensor <- function(x, ...) {
  as.double(values_of(x))
}

as_integer_tensor <- function(x, ...) {
  as.integer(values_of(x))
}

as_logical_tensor <- function(x, ...) {
  as.logical(values_of(x))
}

as_complex_tensor <- function(x, ...) {
  as.complex(values_of(x))
}

as_character_tensor <- function(x, ...) {
  as.character(values_of(x))
}

as_list_tensor <- function(x, ...) {
  x <- at_least_1d(x)
  lapply(seq_len(dim(x)[1]), function(i) op_get_item(x, i))
}

# Python's attributes as reticulate gives them, with NULL for None: `x$grad`.
dollar_tensor <- function(x, name) {
  as_r_null(NextMethod())
}

as_r_null <- function(x) {
  if (inherits(x, "python.builtin.NoneType")) NULL else x
}

# Printing -------------------------------------------------------------------------------------------------------------

format_tensor <- function(x, ...) {
  about <- py_to_r(call_core("interop.r.describe", x))
  shape <- vapply(about$shape, function(size) if (size < 0) "?" else format(size), "")
  notes <- c(
    if (about$kind != "tensor") about$kind,
    if (!is.null(about$operation)) {
      paste("result of", about$operation)
    } else if (about$requires_grad) {
      "requires a gradient"
    },
    if (about$traced) "traced, no values",
    if (!is.null(about$role)) paste("role:", about$role)
  )
  what <- if (about$backend == "text") "text" else sprintf("%s %s [%s]", about$backend, about$dtype, toString(shape))
  sprintf("<%s>", toString(c(what, notes)))
}

print_tensor <- function(x, ...) {
  writeLines(format_tensor(x))
  values <- tryCatch(values_of(x), error = function(error) NULL)
  if (!is.null(values)) print(values, ...)
  invisible(x)
}
