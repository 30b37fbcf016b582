# Missing data beside parameters. Where R is told to leave NA out, as by `na.rm = TRUE` or `ifelse(is.na(y), 0, ...)`,
# nothing hangs on those elements. But what is computed in between has a slope of NaN there, and 0 times NaN is NaN. So
# what arithmetic, mathematical functions and distributions make of NA in R's data is computed of a number in its place,
# and NaN put in afterwards; R's handle of the result keeps what was computed (`gradops_present`) and where it is
# missing (`gradops_missing`: R's logicals of its shape, or a tensor) for the next step. Functions that know nothing of
# it find NaN in the tensor.
#
# A result that is missing has missing derivatives all the same: see poisoned(). So it is done in functions that are
# differentiated alone, whose results are seen. `state$missing` says whether there is any such handle.

# The places where an operand is known to be missing; NULL if it is complete as far as R knows.
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

# R's NA is a signalling NaN, whose powers by 0 the C library takes for NaN.
quiet <- function(x) {
  if (has_missing(x)) replace(x, is.na(x), NaN) else x
}

is_marked <- function(x) {
  is.environment(x) && !is.null(.subset2(x, "gradops_missing"))
}

# `compute` of arguments that may be missing somewhere, element by element. 1/2 is in the domain of nearly everything.
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

# A tensor that is missing where one of the `masks`, which are recycled, says.
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

# An operator; `NA^0` and `1^NA` are 1.
operate_past_missing <- function(operator, e1, e2, call) {
  hides <- function(mask, which) {
    decided <- if (which == 1L) op_not_equal(operand(e2), 0) else op_not_equal(operand(e1), 1)
    call_operator("logical_and", operand(mask), decided)
  }
  past_missing(list(e1, e2), function(x, y) {
    call_operator(operators[[operator]], operand(x), operand(y), call)
  }, hides = if (operator == "^") hides)
}

# A product of matrices, one of which is data with NA; `base_product` says where it is missing.
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

# A namesake's method, of functions that go element by element.
elementwise_past_missing <- function(method) {
  whole <- in_place_of(method, function(arguments, value) {
    for (x in arguments) if (is_missing_somewhere(x) || is_marked(x)) return(past_missing(arguments, method))
    result <- if (is.null(state$heard)) value else hear_nan(unheard(value), arguments, sys.call(-1L))
    for (x in arguments) if (has_time(x)) return(with_time(result, time_of(x)))
    made_by(result, whole, arguments, FALSE)
  })
}

# A part of a tensor, or all of it in another form: `take` is told by R's functions too. `part` is what it is of `x`.
taken_past_missing <- function(x, take, part) {
  missing <- missing_in(x)
  if (is.null(missing) || is_any_tensor(missing)) {
    part
  } else {
    marked(take(.subset2(x, "gradops_present")), list(take(missing)))
  }
}

# The value of a function that computed with missing data: where it is missing, so are its derivatives by all arguments.
# Going back from several values a missing one makes those of all missing.
poisoned <- function(value, arguments) {
  is_float <- function(x) is_tensor(x) && startsWith(op_dtype(x), "float")
  link <- if (is_float(value)) Reduce(op_add, lapply(Filter(is_float, arguments), op_sum))
  if (is.null(link)) {
    return(value)
  }
  keep_names(op_add(value, op_multiply(op_where(op_isnan(op_stop_gradient(value)), NaN, 0), op_tanh(link))), value)
}
