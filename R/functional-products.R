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
    if (!of_inputs) {
      result$product <- drop_vector(result$product, at$here$rows)
    } else if (!at$several) {
      result$product <- like(result$product, x)
    } else {
      result$product <- Map(like, result$product, at$leaves)
    }
  }
  if (at$several && of_inputs) result$product <- in_form(result$product, at)
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
