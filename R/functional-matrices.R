#' Jacobians, Hessians and their products
#'
#' `jacobian()` returns all first derivatives of a function, and `hessian()` all second derivatives of a scalar
#' function, by automatic differentiation. They take the arguments of numDeriv's functions. `jvp()` returns the value of
#' `func` and its Jacobian times `v`, [vjp()] the product from the other side; `vhp()` and `hvp()` are the same for the
#' Hessian. A product costs one or two passes.
#'
#' A named list `x`, such as `list(W = , b = )`, is one argument of `func`, its parameters; an unnamed one holds the
#' arguments of `func`.
#' @param func A function of R code that works on tensors.
#' @param x R numbers, a tensor or a variable; or a list of these.
#' @param v A vector of the form of `x`.
#' @param ... More arguments of `func`, passed on as they are.
#' @param strict If `TRUE`, an input on which `func` does not depend is an error; otherwise its derivatives are zeros.
#' @param strategy `"reverse-mode"`, one pass for each element of the value, or `"forward-mode"`, one for each element
#'   of `x`; `NULL` takes the cheaper one (for `hessian()`, reverse mode).
#' @param sparse If `TRUE`, matrices are sparse, of class `dgCMatrix` (package Matrix). The sparsity pattern comes from
#'   a recorded program of `func`; columns that share no row are computed in one pass, so a banded Hessian of thousands
#'   of rows costs a handful of passes. Only on NumPy, the default backend.
#' @param chunk_size The most passes that are computed together, which bounds the memory; `1` computes one after the
#'   other, `NULL` all together where the library can.
#' @inheritParams grad
#' @returns Without `x`, `jacobian(func)` and `hessian(func)` are functions of `x`. For R numbers, `jacobian()` returns
#'   a matrix with a row for each element of the value (in R's order) and a column for each element of `x`, with the
#'   names of both; `hessian()` a square matrix with the names of `x`; the products a list of `value` and `product`. For
#'   a list of R numbers, `jacobian()` returns a list of such matrices in the form of `x`, and `hessian()` a list of
#'   lists. For tensors they return tensors, of the shape of the value followed by the shape of `x`. With `sparse` they
#'   return matrices in both cases, whose rows and columns are elements in R's order.
#' @section Errors:
#' - `gradops_error_gradient`: `func` of `hessian()` is not scalar; with `strict`, `func` does not depend on an input.
#' - `gradops_error_argument`: an unknown `strategy`, `method` or `side`; a `chunk_size` below 1, or with `sparse`.
#' - `gradops_error_type`: with `sparse`, tensors of a backend other than NumPy.
#' - `gradops_error_jit`: with `sparse`, a function that looks at values, as `if (x > 0)` does.
#' - `gradops_error_callback`: an error in `func`, whose condition is the parent.
#' @seealso [gradient()], [objective()] for optimisers.
#' @examplesIf gradops_available()
#' jacobian(function(x) x^2 * c(1, 10), c(a = 1, b = 2))
#'
#' # a Newton step, which finds the minimum of a quadratic function
#' A <- matrix(c(3, 1, 1, 2), 2)
#' loss <- function(x) sum(x * (A %*% x)) / 2 - sum(c(1, -1) * x)
#' c(0, 0) - solve(hessian(loss, c(0, 0)), grad(loss, c(0, 0)))
#'
#' # products with a vector cost one or two passes, whatever the size
#' hvp(function(x) sum(x^3), c(1, 2), v = c(1, 0))$product
#' jvp(function(x) exp(x), c(0, 1), v = c(1, 1))$product
#' vjp(function(x) exp(x), c(0, 1), v = c(1, 1))$product
#'
#' hessian(function(p) sum(p$w^2) * p$b, list(w = c(1, 2), b = 3))$w$b
#' hessian(function(x) sum(diff(x)^4), as.numeric(1:5)^2, sparse = TRUE)
#' @export
jacobian <- function(func, x, ..., strict = FALSE, strategy = NULL, method = "Richardson", side = NULL,
                     method.args = list(), sparse = FALSE, chunk_size = NULL) {
  check_numderiv(method, side, method.args, if (missing(x)) length(side) else length(x))
  if (missing(x)) {
    check_function(func)
    return(function(x, ...) {
      jacobian(func, x, ..., strict = strict, strategy = strategy, sparse = sparse, chunk_size = chunk_size)
    })
  }
  again <- is.null(strategy) && is.null(chunk_size) && !flag(strict) && !flag(sparse)
  known <- if (again) by_program("jacobian", func, x, numderiv_extra(...))
  if (!is.null(known)) {
    return(known)
  }
  at <- point(func, x, numderiv_extra(...))
  of_row <- function(matrix_of, row) results_form(Map(matrix_of, row, at$leaves, list(at$here$rows)), at)
  if (flag(sparse)) {
    found <- sparse_at(at, "jacobian", strict = flag(strict), strategy = strategy, chunk_size = chunk_size)
    rows <- lapply(found, of_row, matrix_of = sparse_matrix)
    return(if (at$numbers || !at$here$several) rows[[1]] else rows)
  }
  result <- evaluate_at(at, "jacobian", list(FALSE, flag(strict), FALSE, strategy, FALSE, chunk_size))
  if (at$numbers) {
    of_row(flat_matrix, if (at$several) result else list(result))
  } else if (at$named) {
    if (at$here$several) lapply(result, results_form, at) else results_form(result, at)
  } else {
    result
  }
}

#' @rdname jacobian
#' @export
hessian <- function(func, x, ..., strict = FALSE, strategy = NULL, method = "Richardson",
                    method.args = list(), sparse = FALSE, chunk_size = NULL) {
  check_numderiv(method, NULL, method.args, 0L)
  if (missing(x)) {
    check_function(func)
    return(function(x, ...) {
      hessian(func, x, ..., strict = strict, strategy = strategy, sparse = sparse, chunk_size = chunk_size)
    })
  }
  again <- is.null(strategy) && is.null(chunk_size) && !flag(strict) && !flag(sparse)
  known <- if (again) by_program("hessian", func, x, numderiv_extra(...))
  if (!is.null(known)) {
    return(known)
  }
  at <- point(func, x, numderiv_extra(...))
  if (flag(sparse)) {
    found <- sparse_at(at, "hessian", strict = flag(strict), chunk_size = chunk_size)
    return(pair_matrices(sparse_matrix, found, at))
  }
  hessian_by(at, flag(strict), strategy %||% "reverse-mode", chunk_size)
}

hessian_by <- function(at, strict = FALSE, strategy = "reverse-mode", chunk_size = NULL) {
  result <- evaluate_at(at, "hessian", list(FALSE, strict, FALSE, strategy, FALSE, chunk_size))
  pair_matrices(flat_matrix, if (at$several) result else list(list(result)), at)
}

# A matrix for each pair of inputs, made by `matrix_of` from the result and the inputs; a list of lists in the form of
# the inputs.
pair_matrices <- function(matrix_of, rows, at) {
  rows <- Map(function(row, input) Map(matrix_of, row, at$leaves, list(names(input))), rows, at$leaves)
  if (at$several) results_form(lapply(rows, results_form, at), at) else rows[[1]][[1]]
}

# A derivative of R numbers as a matrix: rows for the value's elements, columns for the input's.
flat_matrix <- function(result, input, rows = NULL) {
  if (is_tensor(result)) {
    return(result)
  }
  named <- !is.null(rows) || !is.null(names(input))
  matrix(as.vector(result), ncol = length(input), dimnames = if (named) list(rows, names(input)))
}

# The fields of a sparse derivative for each output and input.
sparse_at <- function(at, name, ...) {
  rlang::check_installed("Matrix", "for `sparse = TRUE`.", call = at$call)
  py_to_r(call_core("interop.r.sparse", name, at$f, inputs_of(at), ..., .call = at$call))
}

sparse_matrix <- function(fields, input, rows = NULL) {
  Matrix::sparseMatrix(
    i = as.integer(fields$i), p = as.integer(fields$p), x = as.vector(fields$x), dims = as.integer(unlist(fields$dim)),
    dimnames = list(rows, names(input)), index1 = FALSE
  )
}

#' @rdname jacobian
#' @export
jvp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("jvp", func, x, v, strict, TRUE, ...)
}

#' @rdname jacobian
#' @export
hvp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("hvp", func, x, v, strict, TRUE, ...)
}

#' @rdname jacobian
#' @export
vhp <- function(func, x, v = NULL, ..., strict = FALSE) {
  product_at("vhp", func, x, v, strict, TRUE, ...)
}

product_at <- function(name, func, x, v, strict, v_is_input, ...) {
  flag(strict, call = parent.frame())
  at <- point(func, x, list(...))
  v <- if (is.list(x) && v_is_input) do.call(tuple, lapply(as_doubles(leaves_of(v)), operand)) else operand(v)
  result <- evaluate_at(at, name, list(v, FALSE, strict))
  names(result) <- c("value", "product")
  of_inputs <- name != "jvp"
  if (at$numbers) {
    result$value <- drop_vector(result$value, at$here$rows)
    of_input <- function(product) if (at$several) Map(like, product, at$leaves) else like(product, x)
    result$product <- if (of_inputs) of_input(result$product) else drop_vector(result$product, at$here$rows)
  }
  if (at$several && of_inputs) result$product <- results_form(result$product, at)
  result
}

drop_vector <- function(value, names = NULL) {
  if (is.null(names) && is.null(attributes(value))) {
    return(value)
  }
  if (is_number(value) && length(dim(value)) < 2) {
    value <- as.vector(value)
    if (!is.null(names)) names(value) <- names
  }
  value
}
