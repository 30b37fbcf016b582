# Tensors as vectors of the package vctrs, which tibble, purrr and dplyr ask what a vector is. The elements of a tensor,
# or the rows of a matrix, are put into a list, from which the tensor is made again.

register_vctrs_methods <- function(...) {
  methods <- list(vec_proxy = elements_as_list, vec_restore = tensor_of_elements)
  for (name in names(methods)) register(name, tensor_classes, methods[[name]], asNamespace("vctrs"))
  by_two <- function(generic, first, second, method) {
    pairs <- as.vector(base::outer(first, second, base::paste, sep = "."))
    register(generic, pairs, method, asNamespace("vctrs"))
  }
  numbers <- base::c("double", "integer", "logical")
  by_two("vec_ptype2", tensor_classes, base::c(tensor_classes, numbers), function(x, y, ...) elements_of_none(x))
  by_two("vec_ptype2", numbers, tensor_classes, function(x, y, ...) elements_of_none(y))
  by_two("vec_cast", tensor_classes, tensor_classes, function(x, to, ...) x)
  by_two("vec_cast", tensor_classes, numbers, function(x, to, ...) op_convert_to_tensor(x))
}

elements_as_list <- function(x, ...) {
  if (length(dim_tensor(x)) > 1L) lapply(seq_len(nrow(x)), function(i) take_rows(x, i)) else as_list_tensor(x)
}

tensor_of_elements <- function(x, to, ...) {
  sizes <- dim_tensor(to)[-1L]
  if (length(x) == 0L) {
    return(elements_of_none(to))
  }
  x[lengths(x) == 0L] <- list(base::array(NaN, base::c(1L, sizes))) # elements that vctrs has added
  if (length(sizes) > 0L) op_concatenate(unname(x), 1L) else with_names(joined(x), names(x))
}

elements_of_none <- function(x) {
  none <- flat(x)[integer()]
  sizes <- dim_tensor(x)[-1L]
  if (length(sizes) > 0L) fill(none, base::c(0L, sizes)) else none
}
