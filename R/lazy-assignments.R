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
  log <- own_log(x) %||% new_log(x)
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
  if (identical(class(part), class(x))) append_to(log, x, cells, part)
}

# The fast path in most loops of compiled functions: a number in the log of operations, assigned to one existing
# position.
assign_number <- function(x, value, ...) {
  log <- log_of_numbers(x)
  cell <- if (!is.null(log)) cell_of(log, ...)
  if (!is.null(cell) && is_number_of(value, log, x)) append_to(log, x, cell, value)
}

# The position of the element at one index for each dimension of a vector or a matrix; NULL for any other index.
cell_of <- function(log, ...) {
  dim <- log$dim
  count <- length(dim)
  if (...length() != count || count > 2L || missing(..1) || count == 2L && missing(..2)) {
    return(NULL)
  }
  row <- ..1
  rows <- if (count == 1L) length(log$from) else dim[1L] # a vector may have grown
  if (!is_position(row) || is.object(row) || row >= rows + 1) {
    return(NULL)
  }
  if (count == 1L) {
    return(as.integer(row))
  }
  column <- ..2
  if (is_position(column) && !is.object(column) && column < dim[2L] + 1) {
    as.integer(row) + (as.integer(column) - 1L) * as.integer(rows)
  }
}

# The log of an array whose newest handle is `x`, if it holds numbers of the current log of operations.
log_of_numbers <- function(x) {
  log <- if (is.environment(x) && is.environment(state$scalars)) own_log(x)
  if (identical(log$scalars, state$scalars) && is.null(names_tensor(x))) log
}

is_number_of <- function(value, log, x) {
  identical(.subset2(value, "gradops_log"), log$scalars) && is_scalar(value) && identical(oldClass(value), oldClass(x))
}

append_to <- function(log, x, cells, part) {
  log$count <- log$count + 1L
  write_within(log, "entries", log$count, list(list(cells = as.vector(cells), part = part)))
  write_within(log, "from", cells, log$count)
  dim <- if (length(log$dim) == 1L) length(log$from) else log$dim
  handle <- lazy_handle(log, log$count, dim)
  assign("gradops_within", surroundings(), envir = handle)
  attributes(handle) <- attributes(x)[c("class", "gradops_dimnames", "gradops_names")]
  state$lazy <- TRUE
  handle
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
  dim <- dim_tensor(x)
  size <- as.integer(prod(dim))
  base <- if (is_lazy(x)) x else lazy_whole(x)
  list2env(
    list(
      base = base, dim = dim, size = size, from = integer(size), entries = list(), count = 0L,
      convert = .subset2(x, "convert")
    ),
    parent = emptyenv()
  )
}

# Write into a vector of the log without a copy: R copies a vector that anything else refers to.
write_within <- function(log, name, at, value) {
  vector <- log[[name]]
  log[[name]] <- NULL
  vector[at] <- value
  log[[name]] <- vector
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
