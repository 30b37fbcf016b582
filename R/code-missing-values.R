# Missing data and parameters. Where R is told to drop NA, as by `na.rm = TRUE` or `ifelse(is.na(y), 0, ...)`, the
# result does not depend on those elements. But the intermediate values have NaN derivatives there, and 0 times NaN is
# NaN. So when arithmetic, mathematical functions and distributions meet NA in R's data, they compute with a number in
# its place and put NaN in afterwards. R's handle of the result keeps the value without NaN (`gradops_present`) and the
# missing positions (`gradops_missing`: R's logicals of its shape, or a tensor) for the next step. Functions that do not
# use these find NaN in the tensor.
#
# A result that is itself missing must still have missing derivatives: see poisoned(). So this happens only in functions
# that are differentiated, whose results gradops sees. `state$missing` is TRUE if any such handle exists.

# The missing positions of an operand; NULL if it is complete as far as R knows.
missing_in <- function(x) {
  if (is.environment(x)) {
    if (!is.null(state$missing)) .subset2(x, "gradops_missing")
  } else if (is_missing_somewhere(x)) {
    is.na(x)
  }
}

is_missing_somewhere <- function(x) {
  inside() > 0 && has_missing(x)
}

has_missing <- function(x) {
  is.atomic(x) && !is.character(x) && anyNA(x)
}

# R's NA is a signalling NaN, and the C library returns NaN for NA^0; a quiet NaN gives 1, as in R.
quiet <- function(x) {
  if (has_missing(x)) replace(x, is.na(x), NaN) else x
}

is_marked <- function(x) {
  is.environment(x) && !is.null(.subset2(x, "gradops_missing"))
}

# `compute`, an elementwise function, of arguments with missing elements. The number 1/2, which replaces them, is in the
# domain of nearly every function.
past_missing <- function(arguments, compute, instead = 0.5, hides = NULL) {
  masks <- lapply(arguments, missing_in)
  absent <- !vapply(masks, is.null, NA)
  if (!any(absent)) {
    return(do.call(compute, arguments, quote = TRUE))
  }
  present <- arguments
  present[absent] <- Map(present_of, arguments[absent], masks[absent], instead)
  masks <- masks[absent]
  if (!is.null(hides)) masks <- Map(hides, masks, which(absent))
  again <- function(...) past_missing(list(...), compute, instead, hides)
  made_by(marked(do.call(compute, present, quote = TRUE), masks), again, arguments, FALSE)
}

present_of <- function(x, missing, instead) {
  if (is.environment(x)) {
    choose_by(missing, instead, .subset2(x, "gradops_present"))
  } else {
    replace(x, missing, instead)
  }
}

# A tensor that is missing where one of the `masks` is TRUE; masks are recycled.
marked <- function(present, masks) {
  missing <- Reduce(either, lapply(masks, along, present))
  whole <- another_handle(op_where(missing, NaN, present))
  assign("gradops_present", present, envir = whole)
  assign("gradops_missing", missing, envir = whole)
  state$missing <- TRUE
  whole
}

either <- function(x, y) {
  if (is_any_tensor(x) || is_any_tensor(y)) op_logical_or(x, y) else x | y
}

along <- function(mask, x) {
  shape <- dim(x) %||% integer()
  if (is_any_tensor(mask)) {
    if (identical(dim(mask), dim(x))) mask else fill(recycled(mask, prod(shape)), shape)
  } else if (length(shape) == 0L) {
    as.vector(mask)
  } else if (anyNA(shape)) { # in a TensorFlow graph
    array_of(mask)
  } else {
    array_of(rep_len(mask, prod(shape)), shape)
  }
}

# An operator; `NA^0` and `1^NA` are 1, so these are not missing.
operate_past_missing <- function(operator, e1, e2, call) {
  hides <- function(mask, which) {
    decided <- if (which == 1L) op_not_equal(operand(e2), 0) else op_not_equal(operand(e1), 1)
    call_operator("logical_and", operand(mask), decided)
  }
  past_missing(list(e1, e2), function(x, y) {
    call_operator(operators[[operator]], operand(x), operand(y), call)
  }, hides = if (operator == "^") hides)
}

# A matrix product with data that have NA; `base_product` finds the missing elements of the result.
multiply_past_missing <- function(x, y, base_product, product) {
  count <- function(x) {
    if (is_missing_somewhere(x)) {
      is.na(x) + 0
    } else {
      if (length(dim(x)) < 2L) rep(1, length(x)) else base::array(1, dim(x))
    }
  }
  known <- function(x) if (is_missing_somewhere(x)) replace(x, is.na(x), 0) else x
  marked(product(known(x), known(y)), list(base_product(count(x), count(y)) > 0))
}

# Make a namesake's method, of an elementwise function, compute past missing values.
elementwise_past_missing <- function(method) {
  whole <- replacing(method, function(arguments, value) {
    some_marked <- !is.null(state$missing)
    for (x in arguments) {
      if (!is.environment(x) && is_missing_somewhere(x) || some_marked && is_marked(x)) {
        return(past_missing(arguments, method))
      }
    }
    if (is.null(state$heard) && has_log(value)) { # as most are in loops; a log has no time series
      return(made_by(value, whole, arguments, FALSE))
    }
    result <- if (is.null(state$heard)) value else hear_nan(unheard(value), arguments, sys.call(-1L))
    for (x in arguments) if (has_time(x)) return(with_time(result, time_of(x)))
    made_by(result, whole, arguments, FALSE)
  })
}

# A part or a rearrangement of a tensor. `take` selects with R's functions, here from the missing positions; `part` is
# the result for `x`.
taken_past_missing <- function(x, take, part) {
  missing <- missing_in(x)
  if (is.null(missing) || is_any_tensor(missing)) {
    part
  } else {
    marked(take(.subset2(x, "gradops_present")), list(take(missing)))
  }
}

# Make derivatives by all arguments missing where the value of a function is missing. In the backward pass of a function
# with several values, one missing value makes all gradients NA.
poisoned <- function(value, arguments) {
  is_float <- function(x) is_tensor(x) && startsWith(op_dtype(x), "float")
  link <- if (is_float(value)) Reduce(op_add, lapply(Filter(is_float, arguments), op_sum))
  if (is.null(link)) {
    return(value)
  }
  keep_names(op_add(value, op_multiply(op_where(op_isnan(op_stop_gradient(value)), NaN, 0), op_tanh(link))), value)
}
