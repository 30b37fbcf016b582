#' Join tensors
#'
#' `c()`, `unlist()`, `cbind()`, `rbind()`, `rep()`, `rev()`, `head()`, `tail()` and `diff()` on tensors and variables,
#' also together with R's numbers: elements come by column, vectors are recycled to columns and rows. `cbind()`,
#' `rbind()`, `rep()`, `rev()`, `head()`, `tail()`, `diff()` are generics in base R and have methods; gradops' `c()` and
#' `unlist()` find a tensor in any position: `c(1, x)`, `unlist(lapply(1:3, \(i) x[i]))`. For ordinary R vectors the
#' base R function is called.
#' @param ... Tensors and R's vectors; for `c()` also lists: the result is then a list.
#' @param x A list of tensors, or what base R takes.
#' @param recursive,use.names As in base R.
#' @returns A tensor: a vector, or a matrix from `cbind()` and `rbind()`. Names of vectors are kept.
#' @section Gradient:
#' Each part gets its share of the upstream gradient.
#' @section Errors:
#' - `gradops_error_type`: strings or functions together with tensors.
#' - `gradops_error_shape`: `cbind()` and `rbind()` of matrices that do not fit.
#' @seealso [op_concatenate()], [op_stack()], [tensor_shapes].
#' @examplesIf gradops_available()
#' x <- variable(c(1, 2))
#' c(0, x, 3)
#' cbind(1, x, c(5, 6))
#' do.call(rbind, lapply(1:2, function(i) x * i))
#' gradient(function(x) sum(c(x, x^2)), c(1, 2))
#' @name tensor_parts
NULL

#' @rdname tensor_parts
#' @export
c <- function(...) { # nolint: cyclocomp_linter. Written out, as it is called so often.
  if (...length() > 0L && !missing(..1) && is.object(..1)) {
    if (is.environment(..1) && !is.null(state$scalars) && is_tensor(..1)) {
      return(c_tensor(...))
    }
    if (finds_method(parent.frame(), "c", ..1)) {
      return(called_from(parent.frame(), "c", "base")(...))
    }
  }
  value <- base_c(...) # a list, if a tensor is not first
  if (!is.double(value) && is.list(value)) {
    for (x in list(...)) {
      if (is.object(x) && is.environment(x) && is_tensor(x)) {
        return(c_tensor(...))
      }
    }
  }
  value
}

base_c <- base::c # a lookup by `::` would cost time in each call

c_tensor <- function(..., recursive = FALSE, use.names = TRUE) {
  parts <- list(...)
  logged <- if (!is.null(state$scalars) && is.null(names(parts))) .Call(C_joined_in_log, state, parts, TRUE)
  if (!is.null(logged)) {
    return(logged)
  }
  parts <- lapply(Filter(Negate(is.null), parts), adopted)
  joined <- joined_in_log(parts)
  if (is.null(joined)) {
    as_list <- !recursive && any(vapply(parts, is.list, NA))
    if (!as_list && any(vapply(parts, is.list, NA))) {
      parts <- Filter(Negate(is.null), flattened(parts))
    }
    if (as_list) {
      return(do.call(base::c, lapply(parts, as.list)))
    }
    if (any(vapply(parts, is_text, NA))) {
      return(c_texts(parts))
    }
    if (any(vapply(parts, is.character, NA))) { # labels, as in `c(name = "t", df = p)`
      return(do.call(base::c, lapply(parts, seen, "c")))
    }
    joined <- joined(parts)
  }
  if (is_pair(parts)) attr(joined, "gradops_pair") <- unname(parts)
  names <- if (use.names) names_of_parts(parts)
  if (is.null(names)) joined else with_names(joined, names)
}

# In keras3 `c(real, imaginary)` of two tensors is a list of both, which `op_fft2()` and its family take.
is_pair <- function(parts) {
  length(parts) == 2L && length(parts[[1]]) > 1L && identical(shape_of(parts[[1]]), shape_of(parts[[2]]))
}

# Two vectors joined so are a signal and not a spectrum, except for spectra of real signals (`of_real`), which are
# complex.
pair <- function(x, of_real = FALSE) {
  parts <- attr(x, "gradops_pair", exact = TRUE)
  if (is.null(parts) || !of_real && is_vector(parts[[1]])) x else parts
}

# All elements of nested lists, in one list.
flattened <- function(x) {
  if (is.list(x)) do.call(base::c, lapply(unname(x), flattened)) else list(x)
}

joined <- function(parts) {
  if (length(parts) == 1L) {
    return(flat(parts[[1]]))
  }
  parts <- unname(parts)
  joined_in_log(parts) %||% op_concatenate(lapply(parts, flat))
}

# The names that `c()` makes from the names of arguments and elements, computed with integers in place of tensors.
names_of_parts <- function(parts) {
  own <- lapply(parts, names)
  if (is.null(names(parts)) && all(vapply(own, is.null, NA))) {
    return(NULL)
  }
  stand_ins <- Map(function(part, names) stats::setNames(integer(length(part)), names), parts, own)
  names(do.call(base::c, stand_ins))
}

#' @rdname tensor_parts
#' @export
unlist <- function(x, recursive = TRUE, use.names = TRUE) {
  value <- baseenv()$unlist(x, recursive, use.names) # `base::` would double the time
  if (is.list(value) && holds_tensors(value)) {
    names <- if (use.names && !is.null(names(value))) names_of_parts(value)
    value <- joined(lapply(value, adopted))
    if (!is.null(names)) value <- with_names(value, names)
  }
  value
}

# TRUE for a list of tensors and vectors with a tensor among them.
holds_tensors <- function(x) {
  found <- FALSE
  for (part in x) {
    if (is_tensor(part)) found <- TRUE else if (!is.atomic(part) && !is_any_tensor(part)) return(FALSE)
  }
  found
}

cbind_tensor <- function(..., deparse.level = 1) {
  parts <- named_by_code(list(...), substitute(list(...)), deparse.level)
  timed <- Filter(has_time, parts)
  if (length(timed) > 0L) bind_in_time(parts, time_of(timed[[1L]])) else bind(parts, 2L)
}

rbind_tensor <- function(..., deparse.level = 1) {
  bind(named_by_code(list(...), substitute(list(...)), deparse.level), 1L)
}

# The arguments of `cbind()`; vectors that are written as a name get that name.
named_by_code <- function(parts, call, deparse.level) {
  code <- as.list(call)[-1L]
  if (!isTRUE(deparse.level >= 1) || length(code) != length(parts)) {
    return(parts)
  }
  names <- rlang::names2(parts)
  for (i in which(!nzchar(names))) {
    is_named <- is.symbol(code[[i]]) && length(dim(parts[[i]])) < 2L && !identical(code[[i]], quote(...))
    if (is_named) names[i] <- as.character(code[[i]])
  }
  if (any(nzchar(names))) stats::setNames(parts, names) else parts
}

bind <- function(parts, axis, call = parent.frame()) {
  parts <- Filter(Negate(is.null), parts)
  names <- names_of_bound(parts, axis)
  parts <- unname(parts)
  matrices <- vapply(parts, function(part) length(dim(part)) > 1L, NA)
  nothing <- !matrices & lengths(parts) == 0L
  if (any(nothing) && !all(nothing)) {
    return(bind(stats::setNames(parts, names$given)[!nothing], axis, call))
  }
  along <- 3L - axis
  sizes <- if (any(matrices)) {
    vapply(parts[matrices], function(part) dim(part)[along], 0L)
  } else {
    lengths(parts)
  }
  if (any(matrices) && length(unique(sizes)) > 1L) {
    abort(
      sprintf("Matrices must have the same number of %s; got %s.", c("rows", "columns")[along], toString(sizes)),
      class = c("gradops_error_shape", "gradops_error"), call = call
    )
  }
  line <- if (axis == 1L) c(1L, max(sizes)) else c(max(sizes), 1L)
  parts[!matrices] <- lapply(parts[!matrices], function(part) fill(recycled(part, max(sizes)), line))
  logged <- if (!is.null(state$scalars)) do.call(rearranged, c(if (axis == 1L) base::rbind else base::cbind, parts))
  with_dimnames(logged %||% op_concatenate(parts, axis), names$dimnames)
}

# Along the axis, the names of the parts or of matrices among them; across it, the names of the first part that has any.
names_of_bound <- function(parts, axis) {
  given <- names(parts)
  along <- Map(function(part, name) {
    if (length(dim(part)) > 1L) {
      dimnames(part)[[axis]] %||% character(dim(part)[axis])
    } else {
      if (length(part) > 0L) name
    }
  }, unname(parts), given %||% character(length(parts)))
  extents <- lapply(parts, function(part) if (length(dim(part)) > 1L) dim(part)[3L - axis])
  extent <- unlist(extents)[1L] %||% max(lengths(parts), 0L)
  across <- Find(function(names) length(names) == extent && extent > 0L, lapply(unname(parts), function(part) {
    if (length(dim(part)) > 1L) dimnames(part)[[3L - axis]] else names(part)
  }))
  along <- unlist(along, use.names = FALSE)
  dimnames <- list(across, if (any(nzchar(along))) along)
  list(given = given, dimnames = if (axis == 2L) dimnames else rev(dimnames))
}

rep_tensor <- function(x, ...) {
  positions <- if (any_tensor(...)) {
    do.call(rep, c(list(seq_along(x)), lapply(list(...), whole_numbers, "rep")))
  } else {
    rep(seq_along(x), ...)
  }
  (if (!is.null(state$scalars)) rearranged(function(cells) cells[positions], x)) %||% op_take(flat(x), positions, 1L)
}

# `seq.default()` with tensors for from, to or by. The length must come from R's numbers or from known values.
seq_tensors <- function(from, to, by, length.out = NULL, along.with = NULL, ...) {
  n <- if (is.null(along.with)) whole_numbers(length.out, "seq") else length(along.with)
  given <- !c(from = missing(from), to = missing(to), by = missing(by), n = is.null(n))
  if (sum(given) == 1) {
    is_end <- !missing(from) && length(from) == 1L
    return(if (is_end) seq.int(whole_numbers(from, "seq")) else seq_len(n %||% length(from)))
  }
  if (missing(by)) by <- if (all(given[c("from", "to")])) step_between(from, to, n) else 1
  if (is.null(n)) n <- floor(whole_numbers((to - from) / by + 1e-10, "seq")) + 1
  steps <- seq_len(ceiling(n)) - 1
  if (missing(from)) to - by * rev(steps) else from + by * steps
}

step_between <- function(from, to, n) {
  if (is.null(n)) {
    if (truth(to - from < 0, "seq")) -1 else 1
  } else if (n < 2) {
    1
  } else {
    (to - from) / (ceiling(n) - 1)
  }
}

rev_tensor <- function(x) {
  if (is_text(x)) {
    return(x[rev(seq_along(x))])
  }
  reversed <- (if (!is.null(state$scalars)) rearranged(base::rev, x)) %||% op_flip(flat(x))
  names <- own_names(x)
  if (is.null(names)) reversed else with_names(reversed, part_of_names(names, rev(seq_along(names))))
}

# `from:to`; a tensor if `from` is one.
colon_overload <- function(from, to) {
  if (is.environment(from) || is.environment(to)) colon_tensors(from, to) else from:to
}

colon_tensors <- function(from, to) {
  down <- truth(to < from, ":")
  steps <- 0:whole_numbers((if (down) from - to else to - from) + 1e-10, ":")
  if (down) steps <- -steps
  if (is.environment(from)) from[1L] + steps else from:(from + steps[length(steps)])
}

head_tensor <- function(x, n = 6L, ...) {
  utils::head.matrix(at_least_1d(x), whole_numbers(n, "head"))
}

tail_tensor <- function(x, n = 6L, ...) {
  utils::tail.matrix(at_least_1d(x), whole_numbers(n, "tail"), keepnums = FALSE)
}

diff_tensor <- function(x, lag = 1L, differences = 1L, ...) {
  rows <- length(dim(x)) > 1L
  time <- time_of(x)
  if (rows && lag * differences >= nrow(x)) {
    return(flat(x)[integer()])
  }
  if (!rows && !is_one_dimensional(x)) x <- flat(x)
  for (i in seq_len(differences)) {
    n <- if (rows) nrow(x) else length(x)
    keep <- max(n - lag, 0)
    x <- if (keep == 0) take_rows(x, integer()) else take_rows(x, lag + seq_len(keep)) - take_rows(x, seq_len(keep))
  }
  if (is.null(time)) x else with_time(x, time + c(lag * differences / time[3L], 0, 0))
}
