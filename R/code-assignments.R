# `h[i] <- v` and `h[[i]] <- v` in code that is adapted: R's own vectors and matrices take tensors, and tensors grow and
# take names as R's vectors do.

fill_part <- function(x, ..., value) { # nolint: cyclocomp_linter. The quick way stands before the others.
  filled <- if (is.environment(value)) assign_number(x, value, ...)
  if (!is.null(filled)) {
    return(filled)
  }
  if (is.object(x) && finds_method(parent.frame(), "[<-", x, registered = FALSE)) {
    return(called_from(parent.frame(), "[<-", "base")(x, ..., value = value))
  }
  if (is.environment(value)) value <- adopted(value)
  if (is_held(x, value)) {
    places <- lapply(places_of(...), place_number)
    if (is.list(x)) { # each element is one of the list's
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

fill_element <- function(x, ..., value) {
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

# Positions are R's; of truth values it may stay open which are true.
place_number <- function(place) {
  if (is.environment(place) && is_any_tensor(place) && type_of(place) != "logical") {
    whole_numbers(place, "[<-")
  } else {
    place
  }
}

# TRUE if a name is that of a field of the Python object.
is_field <- function(x, ...) {
  is_tensor(x) && is.null(names(x)) && ...length() == 1L && is.character(..1)
}

# TRUE if a tensor takes part in an assignment that base R cannot do; FALSE for objects with methods of their own.
is_held <- function(x, value) {
  if (is.object(x)) {
    is.environment(x) && is_tensor(x) || is.atomic(x) && inherits(x, "ts") && is_tensor(value)
  } else {
    is.object(value) && is_tensor(value) && (is.null(x) || is.vector(x) || is.array(x))
  }
}

# The indices, NULL for one that is left out.
places_of <- function(...) {
  if (...length() == 1L) { # as most are
    return(list(if (!missing(..1)) ..1 %||% integer()))
  } else if (...length() == 2L) {
    return(list(if (!missing(..1)) ..1 %||% integer(), if (!missing(..2)) ..2 %||% integer()))
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
    filled <- fill_places(without_time(x), places, value, call)
    return(if (length(filled) == length(x)) with_time(filled, time_of(x)) else filled)
  }
  if (is.character(value)) { # into texts
    return(do.call(base::`[<-`, c(list(x), places, list(value = value))))
  }
  pending <- if (is_tensor(x) && is.null(names_tensor(x))) assign_pending(x, places, value)
  if (!is.null(pending)) {
    return(pending)
  }
  if (is.environment(x) && !is.null(attr(x, "gradops_made", TRUE))) {
    x <- if (are_truths(places)) {
      of_chosen_by(x, op_logical_not(places[[1L]]))
    } else {
      without_replaced(x, function(cells) cells_at(cells, places))
    }
    refill <- function(x) made_by(fill_at_once(x, places, value, call), refill, list(x))
    return(refill(x))
  }
  fill_at_once(x, places, value, call)
}

fill_at_once <- function(x, places, value, call) {
  own <- own_names(x)
  if (is_step(x, places)) {
    put <- call_core("interop.r.put", x, places[[1]], replacement(value, call), .call = call)
    return(if (is.null(own)) put else still_one_dimensional(put, own))
  }
  if (!is_tensor(x)) x <- place_for(x)
  room <- if (length(places) == 1L) grown(x, places[[1]], call) else among_names(x, places, call)
  x <- if (is_tensor(room$x)) room$x else as_python(array_of(room$x))
  places <- lapply(room$places, place_operand)
  result <- call_core("interop.r.assign", x, places, replacement(value, call), .call = call)
  attr(result, "gradops_dimnames") <- room$dimnames
  still_one_dimensional(if (is.null(room$names)) result else with_names(result, room$names), own)
}

# The case of most loops: one position of a tensor without names.
is_step <- function(x, places) {
  length(places) == 1L && is_tensor(x) && is.null(names_tensor(x)) && is_position(places[[1]])
}

among_names <- function(x, places, call) {
  dimnames <- dimnames(x)
  places <- Map(named_place, places, dimnames %||% list(NULL), MoreArgs = list(call))
  list(x = x, dimnames = dimnames, places = places)
}

# Those of the R matrix that was filled.
dimnames_tensor <- function(x) {
  attr(x, "gradops_dimnames", exact = TRUE)
}

is_position <- function(place) {
  is.numeric(place) && length(place) == 1L && !is.na(place) && place >= 1
}

place_operand <- function(place) {
  if (is.null(place)) NULL else as_python(place, "index")
}

# R's vector or array as doubles (NA too, and what a time series holds); NULL is no elements.
place_for <- function(x) {
  if (is.null(x)) {
    return(numeric())
  }
  if (is.character(x)) {
    abort(
      "a tensor cannot be put among R's texts.",
      class = c("gradops_error_type", "gradops_error"), argument = "value", call = NULL
    )
  }
  x <- unclass(x)
  attributes(x) <- attributes(x)[c("dim", "dimnames", "names")]
  if (!is.complex(x)) storage.mode(x) <- "double"
  x
}

# `x` with room for the places of one index, and the names it has then.
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

# After `C <- d^nu * besselK(d, nu); diag(C) <- 1` nothing reads the diagonal of what was computed, which is NaN where
# `d` is 0, and so are its slopes. Its gradient is 0, and 0 * NaN is NaN in every library. So a tensor that was made
# element by element while a function is differentiated knows how, if a slope of it may be infinite, and before elements
# of it are replaced, or left out by `ifelse()` and `x[keep]`, it is made again, of the first kept number in their
# places. TMB leaves out what nothing reads.

# It costs a few microseconds for each tensor, where a function that is called leaves elements out: see leaves_out().

# So many functions of each other: each keeps its arguments.
deepest <- 32L

# Of finite numbers their slopes are finite. That of `exp()` may overflow.
are_smooth <- c("+", "-", "*", "sin", "cos", "tanh", "atan", "abs")

# `result`, made by an elementwise `f` of `arguments`, or with the same elements in R's order; `smooth` as above.
made_by <- function(result, f, arguments, smooth = TRUE) {
  if (is.null(state$replaces) || !is.environment(result) || inside() == 0) {
    return(result)
  }
  depth <- if (smooth) 0L else 1L
  for (x in arguments) {
    if (is.environment(x)) {
      depth <- max(depth, attr(x, "gradops_made", TRUE)$depth + 1L)
    } else if (depth == 0L && is.numeric(x) && !all(is.finite(x))) {
      depth <- 1L
    }
  }
  if (depth > 0L && depth <= deepest) {
    noted <- new.env(parent = emptyenv())
    attr(result, "gradops_made") <- list(f = f, arguments = arguments, depth = depth, noted = noted)
  }
  result
}

# `x` where some of its elements alone are chosen by logicals of its length.
of_chosen <- function(x, kept) {
  if (length(x) == length(kept) && any(doubtful(x) & !kept)) without_replaced(x, function(cells) cells[!kept]) else x
}

# The same by a tensor of truths, whose values decide where it runs: the numbers of others stand in the place of one of
# the chosen, or of 1 where none is.
of_chosen_by <- function(x, kept) {
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

# `x` whose part at `places` alone is read: by logicals, several positions, or all but some.
of_read <- function(x, places) {
  if (are_truths(places)) {
    return(of_chosen_by(x, places[[1L]]))
  }
  several <- function(place) {
    is.logical(place) && length(place) > 1L || is.numeric(place) && (length(place) > 1L || isTRUE(place < 0))
  }
  if (!any(vapply(places, several, NA)) || !any(in_doubt <- doubtful(x))) {
    return(x)
  }
  without_replaced(x, function(cells) {
    left <- base::setdiff(cells, cells_at(cells, places))
    if (any(in_doubt[left])) left
  })
}

cells_at <- function(cells, places) {
  do.call(`[`, c(list(cells), lapply(places, function(place) if (is.null(place)) TRUE else place)))
}

# The places at which a slope of what `x` was made of may be infinite: it, or what it was made of, is no number there,
# or 0. Elsewhere nothing need be made again, which a loop over many groups, as `x[group == k]`, would do for each.
doubtful <- function(x, size = length(x)) {
  making <- if (is.environment(x)) attr(x, "gradops_made", TRUE)
  if (is.null(making)) {
    return(FALSE)
  }
  if (is.null(making$noted$doubtful)) {
    places <- logical(size)
    for (part in making$arguments) if (isTRUE(length(part) == size)) places <- places | doubtful(part, size)
    for (part in c(list(x), making$arguments)) {
      if (isTRUE(length(part) == size)) places[doubtful_numbers(part)] <- TRUE
    }
    making$noted$doubtful <- base::as.vector(places)
  }
  making$noted$doubtful
}

doubtful_numbers <- function(x) {
  if (is.environment(x)) {
    tryCatch(py_to_r(call_core("interop.r.doubtful", x)), gradops_error = function(error) TRUE)
  } else if (is.numeric(x)) {
    which(!is.finite(x) | x == 0)
  }
}

# `x` with elements that are computed of others' numbers where `of_cells` of an array of their numbers has them.
without_replaced <- function(x, of_cells) {
  if (is.null(attr(x, "gradops_made", TRUE)) || inside() == 0) {
    return(x)
  }
  size <- length(x)
  cells <- base::array(seq_len(size), dim(x) %||% size)
  replaced <- attempt(as.integer(of_cells(cells)), function(e) NULL) # which the assignment says in its words
  kept <- !(seq_len(size) %in% replaced)
  if (all(kept)) {
    return(x)
  }
  # What stands at a doubtful one may be left out itself, later on.
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

# `x`, made of what `in_place()` gives for each vector of its size that it was made of.
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
