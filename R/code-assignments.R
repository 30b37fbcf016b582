# `h[i] <- v` and `h[[i]] <- v` in adapted code: R's vectors and matrices can hold tensors, and tensors grow and take
# names as R's vectors do.

fill_part <- function(x, ..., value) { # nolint: cyclocomp_linter. The fast path comes first.
  filled <- if (is.environment(value)) assigned_number(x, value, ...)
  if (!is.null(filled)) {
    return(filled)
  }
  if (is.object(x) && finds_method(parent.frame(), "[<-", x, registered = FALSE)) {
    return(called_from(parent.frame(), "[<-", "base")(x, ..., value = value))
  }
  if (is.environment(value)) value <- adopted(value)
  if (is_held(x, value)) {
    places <- lapply(places_of(...), place_number)
    if (is.list(x)) { # each value becomes one element of the list
      return(base::`[<-`(x, ..., value = as.list(value)))
    }
    return(fill_places(x, places, value))
  }
  if (isS4(x) && is_any_tensor(value) && is_sparse(x)) {
    x <- as_sparse_tensor(x)
    return(base::`[<-`(x, ..., value = value))
  }
  if (is.data.frame(x) && (is_tensor(value) || length(tensor_columns(x)) > 0L)) { # R's own method, for tensors
    return(copy_of(base::`[<-.data.frame`)(x, ..., value = value))
  }
  if (...length() == 1L && !missing(..1) && is.environment(..1)) {
    return(base::`[<-`(x, whole_numbers(..1, "[<-"), value = value))
  }
  base::`[<-`(x, ..., value = value)
}

fill_element <- function(x, ..., value) { # nolint: cyclocomp_linter. The same.
  filled <- if (is.environment(value)) assigned_number(x, value, ...)
  if (!is.null(filled)) {
    return(filled)
  }
  if (is.object(x) && finds_method(parent.frame(), "[[<-", x, registered = FALSE)) {
    return(called_from(parent.frame(), "[[<-", "base")(x, ..., value = value))
  }
  if (is.environment(value) && !is.list(x) && !is.environment(x)) value <- adopted(value)
  if (is.list(x) || !is_held(x, value) || is_field(x, ...)) {
    return(base::`[[<-`(x, ..., value = value))
  }
  if (is.null(x)) { # R makes a list
    return(base::`[[<-`(list(), ..., value = value))
  }
  fill_places(x, lapply(single(places_of(...)), place_number), value)
}

# The index as R's numbers; a logical index may stay a tensor whose values are unknown.
place_number <- function(place) {
  if (is.environment(place) && is_any_tensor(place) && type_of(place) != "logical") {
    whole_numbers(place, "[<-")
  } else {
    place
  }
}

# TRUE if a name is a field of the Python object.
is_field <- function(x, ...) {
  is_tensor(x) && is.null(names(x)) && ...length() == 1L && is.character(..1)
}

# TRUE if an assignment involves a tensor and base R cannot do it; FALSE for objects with methods of their own.
is_held <- function(x, value) {
  if (is.object(x)) {
    is.environment(x) && is_tensor(x) || is.atomic(x) && inherits(x, "ts") && is_tensor(value)
  } else {
    is.object(value) && is_tensor(value) && (is.null(x) || is.vector(x) || is.array(x))
  }
}

# The indices as a list, with NULL for an empty one.
places_of <- function(...) {
  if (...length() == 1L) { # as most are
    return(list(if (!missing(..1)) if (is.null(..1)) integer() else ..1))
  } else if (...length() == 2L) {
    return(list(
      if (!missing(..1)) if (is.null(..1)) integer() else ..1, if (!missing(..2)) if (is.null(..2)) integer() else ..2
    ))
  }
  written <- as.list(substitute(list(...)))[-1L]
  lapply(seq_along(written), function(i) {
    if (!rlang::is_missing(written[[i]])) {
      place <- ...elt(i)
      if (is.null(place)) integer() else place
    }
  })
}

fill_places <- function(x, places, value, call = parent.frame(2)) {
  force(call)
  if (has_time(x)) {
    filled <- fill_places(drop_time(x), places, value, call)
    return(if (length(filled) == length(x)) with_time(filled, time_of(x)) else filled)
  }
  if (is.character(value)) { # into texts
    return(do.call(base::`[<-`, c(list(x), places, list(value = value))))
  }
  logged <- if (!is.null(state$scalars)) assigned_in_log(x, places, value)
  pending <- if (is.null(logged)) {
    if (!is_tensor(x)) assign_to_numbers(x, places, value) else if (is.null(names_tensor(x))) {
      assign_pending(x, places, value)
    }
  }
  if (!is.null(pending)) {
    return(pending)
  }
  if (is.environment(x) && !is.null(attr(x, "gradops_made", TRUE))) {
    if (is.null(logged)) {
      x <- if (are_truths(places)) {
        selected_by_tensor(x, op_logical_not(places[[1L]]))
      } else {
        recomputed_parts(x, function(cells) cells_at(cells, places))
      }
    }
    refill <- function(x) made_by(fill_at_once(x, places, value, call), refill, list(x))
    return(if (is.null(logged)) refill(x) else made_by(logged, refill, list(x)))
  }
  logged %||% fill_at_once(x, places, value, call)
}

fill_at_once <- function(x, places, value, call) {
  own <- own_names(x)
  if (is_step(x, places)) {
    put <- call_core("interop.r.put", x, places[[1]], replacement(value, call), .call = call)
    return(if (is.null(own)) put else still_one_dimensional(put, own))
  }
  if (!is_tensor(x)) x <- place_for(x)
  room <- if (length(places) == 1L) grown(x, places[[1]], call) else named_places(x, places, call)
  x <- if (is_tensor(room$x)) room$x else as_python(array_of(room$x))
  places <- lapply(room$places, place_operand)
  result <- call_core("interop.r.assign", x, places, replacement(value, call), .call = call)
  attr(result, "gradops_dimnames") <- room$dimnames
  still_one_dimensional(if (is.null(room$names)) result else with_names(result, room$names), own)
}

# TRUE for the most common case in loops: one position in a tensor without names.
is_step <- function(x, places) {
  length(places) == 1L && is_tensor(x) && is.null(names_tensor(x)) && is_position(places[[1]])
}

named_places <- function(x, places, call) {
  dimnames <- dimnames(x)
  places <- Map(named_place, places, dimnames %||% list(NULL), MoreArgs = list(call))
  list(x = x, dimnames = dimnames, places = places)
}

# The dimnames of the R matrix into which the tensor was assigned.
dimnames_tensor <- function(x) {
  attr(x, "gradops_dimnames", exact = TRUE)
}

is_position <- function(place) {
  is.numeric(place) && length(place) == 1L && !is.na(place) && place >= 1
}

place_operand <- function(place) {
  if (is.null(place)) NULL else as_python(place, "index")
}

# R's vector or array (also with NA, or a time series) as doubles; NULL becomes a vector without elements.
place_for <- function(x) {
  if (is.null(x)) {
    return(numeric())
  }
  if (is.character(x)) {
    abort(
      "a tensor cannot be assigned into a character vector.",
      class = c("gradops_error_type", "gradops_error"), argument = "value", call = NULL
    )
  }
  x <- unclass(x)
  attributes(x) <- attributes(x)[c("dim", "dimnames", "names")]
  if (!is.complex(x)) storage.mode(x) <- "double"
  x
}

# `x` extended to the positions of one index, and its names afterwards.
grown <- function(x, place, call) {
  size <- length(x)
  names <- if (length(dim(x)) < 2L) names(x)
  if (is.character(place)) {
    known <- names %||% character(size)
    new <- setdiff(place, known)
    names <- c(known, new)
    place <- match(place, names)
  } else if (is.logical(place) && length(place) > size) {
    place <- base::which(place)
  }
  most <- if (is.numeric(place) && length(dim(place)) < 2L && length(place) > 0) max(place, na.rm = TRUE) else 0
  if (most > size) {
    if (!is.null(names)) names <- c(names, character(max(most - length(names), 0)))
    x <- c(if (is_tensor(x)) flat(x) else as.vector(x), rep(NA_real_, most - size))
  }
  list(x = x, names = names, places = list(place), dimnames = if (most <= size) dimnames(x))
}

named_place <- function(place, names, call) {
  if (is.character(place)) position_of(place, names %||% character(), call) else place
}

# Elements that are computed and then left out ------------------------------------------------------------------------

# After `C <- d^nu * besselK(d, nu); diag(C) <- 1` nothing reads the old diagonal, which is NaN where `d` is 0; its
# derivatives are NaN too. Its upstream gradient is 0, but 0 * NaN is NaN in every library. So an elementwise result
# whose derivative may be infinite remembers the function and the arguments that made it. Before some of its elements
# are replaced, or dropped by `ifelse()` and `x[keep]`, it is computed again with a harmless number, the first kept one,
# in their positions. TMB needs no such step, as its tape drops values that nothing reads.

# This costs a few microseconds for each tensor, and only in functions that leave elements out: see leaves_out().

# Remember that `f` made `result` of `arguments`, element by element. `f` is a function, or the name of a function of base
# R. A function is `smooth` if its derivatives are finite at finite numbers; for names, src/made.c has a table.
made_by <- function(result, f, arguments, smooth = TRUE) {
  if (is.null(state$replaces)) result else .Call(C_made_by, state, result, f, arguments, smooth)
}

# `x` after logicals of its length select some elements; the others are computed again, as above.
selected <- function(x, kept) {
  if (length(x) == length(kept) && any(doubtful(x) & !kept)) recomputed_parts(x, function(cells) cells[!kept]) else x
}

# `x` after a tensor of booleans, whose values are known only at run time, selects some elements. The others are
# computed again at the first selected element, or at 1 if none is selected.
selected_by_tensor <- function(x, kept) {
  size <- length(x)
  if (!is.environment(x) || is.null(attr(x, "gradops_made", TRUE)) || size != length(kept)) {
    return(x)
  }
  if (size == 1L) {
    return(made_again_of(x, function(x) if (is_any_tensor(x)) op_where(kept, x, 1) else x))
  }
  truths <- flat(kept)
  first <- op_argmax(op_cast(truths, "int32"))
  in_place <- function(x) {
    if (!is_any_tensor(x) && (!is.numeric(x) || is.object(x))) {
      return(x)
    }
    x <- adopted(x)
    shape <- shape_of(x)
    op_where(fill(truths, shape), x, op_where(op_any(truths), op_take(flat(x), first), 1))
  }
  made_again_of(x, in_place)
}

are_truths <- function(places) length(places) == 1L && is_tensor(places[[1L]]) && type_of(places[[1L]]) == "logical"

# `x` when only the part at `places` is read: by logicals, several positions, or negative positions.
read_part <- function(x, places) {
  if (are_truths(places)) {
    return(selected_by_tensor(x, places[[1L]]))
  }
  several <- function(place) {
    is.logical(place) && length(place) > 1L || is.numeric(place) && (length(place) > 1L || isTRUE(place < 0))
  }
  if (!any(vapply(places, several, NA)) || !any(in_doubt <- doubtful(x))) {
    return(x)
  }
  recomputed_parts(x, function(cells) {
    left <- base::setdiff(cells, cells_at(cells, places))
    if (any(in_doubt[left])) left
  })
}

cells_at <- function(cells, places) {
  do.call(`[`, c(list(cells), lapply(places, function(place) if (is.null(place)) TRUE else place)))
}

# The positions where a derivative in the chain that made `x` may be infinite: where `x` or a value it was made of is 0
# or not finite. Only there is it computed again: a loop over groups, `x[group == k]`, would otherwise repeat the work
# for each group.
doubtful <- function(x, size = length(x)) {
  making <- if (is.environment(x)) attr(x, "gradops_made", TRUE)
  if (is.null(making)) {
    return(FALSE)
  }
  if (is.null(making$doubtful)) {
    places <- logical(size)
    for (part in making$arguments) if (isTRUE(length(part) == size)) places <- places | doubtful(part, size)
    for (part in c(list(x), making$arguments)) {
      if (isTRUE(length(part) == size)) places[doubtful_numbers(part)] <- TRUE
    }
    making$doubtful <- base::as.vector(places)
    attr(x, "gradops_made") <- making
  }
  making$doubtful
}

doubtful_numbers <- function(x) {
  if (is.environment(x)) {
    tryCatch(py_to_r(call_core("interop.r.doubtful", x)), gradops_error = function(error) TRUE)
  } else if (is.numeric(x)) {
    which(!is.finite(x) | x == 0)
  }
}

# `x` computed again without the elements that are replaced; `of_cells` takes them from an array of their positions.
recomputed_parts <- function(x, of_cells) {
  if (is.null(attr(x, "gradops_made", TRUE)) || inside() == 0) {
    return(x)
  }
  size <- length(x)
  cells <- base::array(seq_len(size), dim(x) %||% size)
  replaced <- attempt(as.integer(of_cells(cells)), function(e) NULL) # the assignment itself raises R's error
  kept <- !(seq_len(size) %in% replaced)
  if (all(kept)) {
    return(x)
  }
  # A doubtful element may be left out by a later step, so its number would not be harmless.
  first <- base::c(which(kept & !doubtful(x)), which(kept), 1L)[1L]
  in_place <- function(x) {
    if (is_any_tensor(x)) {
      choose_by(array_of(kept, shape_of(x)), x, x[first])
    } else {
      if (is.atomic(x) && !is.object(x)) replace(x, !kept, x[first]) else x
    }
  }
  made_again <- if (any(kept)) made_again_of(x, in_place) else op_stop_gradient(x)
  for (name in c("gradops_dimnames", "gradops_names")) attr(made_again, name) <- attr(x, name, TRUE)
  made_again
}

# `x` computed again from its leaves: each vector of its size is replaced by `in_place()` of it.
made_again_of <- function(x, in_place) {
  size <- length(x)
  made <- list() # a value that is read twice is made once
  again <- function(x) {
    if (!isTRUE(length(x) == size)) {
      return(x)
    }
    making <- if (is.environment(x)) attr(x, "gradops_made", TRUE)
    if (is.null(making)) {
      return(in_place(x))
    }
    key <- rlang::obj_address(x)
    if (is.null(made[[key]])) made[[key]] <<- do.call(making$f, lapply(making$arguments, again), quote = TRUE)
    made[[key]]
  }
  again(x)
}
