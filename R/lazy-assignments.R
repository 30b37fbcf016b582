# Logs of assignments. A loop that fills n elements one by one would make n tensors of n elements, and as many again in
# the backward pass. So `h[i] <- v` in adapted code appends `v` to a log, `h[i - 1]` finds it there, and the tensor is
# made once, when something reads it as a whole: see lazy-handles.R.
#
# R has value semantics: assigning to `h` does not change a copy of it. So the log is only appended to, and a handle
# knows how many entries of it are its own. The newest handle reads and appends in constant time; an older one makes its
# tensor.

# `x` with `value` pending at its `places`; NULL if the assignment must be done at once.
assign_pending <- function(x, places, value) {
  if (anyNA(dim_tensor(x))) { # a graph may not know the size
    return(NULL)
  }
  # An older handle may not append: its vector would get the newer entries too. It begins a log of its own, on its
  # tensor.
  append_to(own_log(x) %||% new_log(x), x, places, value)
}

# Assign logged numbers to R's numbers `x`, which have no names.
assign_to_numbers <- function(x, places, value) {
  if (is.environment(state$scalars) && has_log(value) && !has_labels(value) && !has_labels(x) &&
    (is.numeric(x) || is.logical(x) || is.null(x))) {
    log <- log_over(dim(x) %||% length(x), .subset2(value, "convert"))
    log$scalars <- state$scalars
    delayedAssign("base", as_python(array_of(place_for(x))), assign.env = log)
    append_to(log, value, places, value)
  }
}

# The newest handle of `log`, with attributes of `x`.
append_to <- function(log, x, places, value) {
  cells <- cells_of(log, places, grows = TRUE)
  # The log holds one value for each element. The tensor's own assignment handles repeated positions, and values with a
  # class of their own.
  if (is.null(cells) || anyDuplicated(cells) || is.object(value) && !identical(class(value), class(x))) {
    return(NULL)
  }
  part <- if (is_scalar_for(value, log, length(cells))) {
    value
  } else {
    call_core("interop.r.part", operand(value), log$base, length(cells))
  }
  if (!identical(class(part), class(x))) {
    return(NULL)
  }
  if (max(cells) > length(log$from)) { # written without a copy: R copies a vector that anything else refers to
    from <- log$from
    log$from <- NULL
    from[max(cells)] <- NA
    log$from <- from
  }
  .Call(C_append_assigned, state, log, x, as.vector(cells), part)
}

# The fast path in most loops of compiled functions: a number in the log of operations, assigned to one existing
# position. NULL for anything else.
assigned_number <- function(x, value, ...) {
  if (is.environment(x) && !is.null(state$scalars)) .Call(C_assigned_number, state, x, places_of(...), value)
}

# The value of `x[...]`, if a pending assignment or the tensor before them has it; else NULL.
read_pending <- function(x, places) {
  log <- own_log(x)
  if (is.null(log)) {
    return(NULL)
  }
  dimnames <- dimnames_tensor(x)
  if (!is.null(dimnames) && length(places) > 1L) places <- Map(named_place, places, dimnames, MoreArgs = list(NULL))
  cells <- cells_of(log, places)
  entry <- if (length(cells) > 0L) log$from[cells[1L]]
  if (is.null(entry) || is.na(entry)) {
    NULL
  } else if (entry > 0L) {
    written_part(log$entries[[entry]], cells, log$from[cells] == entry)
  } else if (isTRUE(all(log$from[cells] == 0L))) {
    element_at(log$base, cells) %||% call_core("interop.r.subset", log$base, lapply(places, place_operand), TRUE)
  }
}

written_part <- function(entry, cells, is_here) {
  if (length(cells) == 1L) {
    at <- match(cells, entry$cells)
    if (length(entry$cells) == 1L) {
      entry$part
    } else {
      element_at(entry$part, at) %||% call_core("interop.r.subset", entry$part, list(at), TRUE)
    }
  } else if (isTRUE(all(is_here)) && identical(as.vector(cells), entry$cells)) {
    if (is.null(dim(cells))) entry$part else fill(entry$part, dim(cells))
  }
}

# One element by its position, in a function that is compiled.
element_at <- function(x, cells) {
  if (length(cells) == 1L && !is.null(state$scalars)) element_in_log(x, as.vector(cells))
}

# The log -------------------------------------------------------------------------------------------------------------

# `base`: the tensor before all assignments; `from`: for each element the entry that wrote it last, 0 for none.
new_log <- function(x) {
  log <- log_over(dim_tensor(x), .subset2(x, "convert"))
  log$base <- if (is_lazy(x)) x else lazy_whole(x)
  log
}

log_over <- function(dim, convert) {
  size <- as.integer(prod(dim))
  list2env(
    list(dim = dim, size = size, from = integer(size), entries = list(), count = 0L, convert = convert),
    parent = emptyenv()
  )
}

# The log whose newest entry belongs to `x`; NULL if `x` has its tensor.
own_log <- function(x) {
  log <- .subset2(x, "gradops_log")
  if (is_pending(x) && log$count == .subset2(x, "gradops_is")) log
}

# Elements by their position in R's order, in the form that R's `[` would give them; NULL if only the tensor can tell.
cells_of <- function(log, places, grows = FALSE) {
  if (length(places) == 1L) {
    most <- if (grows && length(log$dim) == 1L && length(places[[1]]) == 1L) Inf else length(log$from)
    if (!is.null(places[[1]]) && are_positions(places[[1]], most)) as.integer(places[[1]])
  } else if (length(places) == length(log$dim) && all(mapply(are_positions, places, log$dim))) {
    if (is.null(log$grid)) log$grid <- array(seq_len(log$size), log$dim)
    do.call(`[`, c(list(log$grid), lapply(places, function(place) if (is.null(place)) TRUE else place)))
  }
}

are_positions <- function(place, most) {
  is.null(place) || is.numeric(place) && !is.object(place) && is.null(dim(place)) && length(place) > 0L &&
    !anyNA(place) && min(place) >= 1 && max(place) <= most
}

# The tensor of a handle. A tensor `made` in a trace, or where nothing is recorded, is valid only there. A handle whose
# tensor stays valid drops its log.
assigned_whole <- function(handle, log, made) {
  here <- surroundings()
  if (!is.null(made) && identical(.subset2(handle, "gradops_good"), here)) {
    return(made)
  }
  entries <- log$entries[seq_len(.subset2(handle, "gradops_is"))]
  cells <- base::unlist(lapply(entries, `[[`, "cells"))
  whole <- call_core(
    "interop.r.assembled", recomputed_parts(log$base, function(all) cells), as.list(.subset2(handle, "gradops_dim")),
    as.list(cells), scalars_together(lapply(entries, `[[`, "part"))
  )
  assign("gradops_whole", whole, handle)
  assign("gradops_good", here, handle)
  same <- identical(.subset2(handle, "gradops_within"), here)
  if (py_to_r(call_core("interop.r.lasts", whole, same))) rm("gradops_log", envir = handle) # the log may be long
  whole
}
