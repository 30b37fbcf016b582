#' Tensors by groups
#'
#' `tapply()`, `ave()`, `unsplit()`, `by()`, and base R's generics `split()`, `rowsum()` and `aggregate()` on tensors
#' and variables, or with functions that return tensors. A factor as an index, `b[g]`, is used by its level numbers, as
#' in R. For ordinary R vectors the base R function is called.
#'
#' For empty groups `tapply()` returns NaN instead of R's `NA`. The result has the names of the levels if there is one
#' factor; tables of several factors have no names. Sums and means use [op_segment_sum()], one call for all groups.
#' `aggregate()` of a tensor returns a list of the groups' columns and `x`; its formula method takes only R's values.
#' @param X,x A tensor, or what base R takes.
#' @param INDEX,f A factor as long as `X`, or a list of several.
#' @param FUN A function of a group's elements, or of its rows.
#' @param ... For `ave()`, factors; for `by()`, its arguments; otherwise arguments of `FUN`.
#' @param default,simplify,drop As in base R.
#' @param value A list of parts, as `split()` returns them.
#' @returns A tensor if the function returns tensors; otherwise base R's result.
#' @section Gradient:
#' Flows through each call of `FUN` to the elements of its group.
#' @seealso [op_segment_sum()], [tensor_mapping].
#' @examplesIf gradops_available()
#' g <- factor(c("a", "b", "a"))
#' tapply(variable(1:3 / 2), g, sum)
#' gradient(function(b) sum(b[g]^2), c(1, 2))
#' @name tensor_groups
NULL

#' @rdname tensor_groups
#' @export
tapply <- function(X, INDEX, FUN = NULL, ..., default = NA, simplify = TRUE) {
  if (is.null(FUN)) {
    return(base::tapply(X, INDEX))
  }
  FUN <- match.fun(FUN)
  if (is.object(X) && is_tensor(X)) {
    return(tapply_tensor(X, INDEX, FUN, ..., default = default, simplify = simplify))
  }
  value <- base::tapply(X, INDEX, FUN, ..., default = default, simplify = simplify)
  if (simplify) cells_together(value, default) else value
}

tapply_tensor <- function(X, INDEX, FUN, ..., default = NA, simplify = TRUE) {
  factors <- as_factors(INDEX, length(X), "INDEX")
  cell <- base::tapply(seq_along(X), factors)
  cells <- prod(lengths(lapply(factors, levels)))
  shortcut <- if (simplify && ...length() == 0) segments_of(FUN)
  if (!is.null(shortcut)) {
    keep <- !is.na(cell)
    values <- shortcut(if (all(keep)) flat(X) else X[keep], cell[keep], cells)
    empty <- tabulate(cell, cells) == 0
    if (any(empty)) values <- op_where(array_of(empty), as.double(default), values)
    return(as_cells(values, factors))
  }
  members <- split(seq_along(cell), factor(cell, seq_len(cells)))
  x <- flat(X)
  values <- rep(list(NULL), cells)
  filled <- lengths(members) > 0
  values[filled] <- lapply(members[filled], function(i) FUN(x[i], ...))
  table <- base::array(values, lengths(lapply(factors, levels)), lapply(factors, levels))
  if (simplify) cells_together(table, default) else table
}

# A function for sums or means of all groups at once; NULL for other functions.
segments_of <- function(FUN) {
  if (identical(FUN, base::sum)) {
    function(x, cell, cells) op_segment_sum(x, cell, cells)
  } else if (identical(FUN, base::mean)) {
    function(x, cell, cells) op_segment_sum(x, cell, cells) / base::pmax(tabulate(cell, cells), 1)
  }
}

as_factors <- function(index, size, name, call = parent.frame()) {
  factors <- lapply(if (is.list(index)) index else list(index), as.factor)
  if (any(lengths(factors) != size)) {
    abort(
      sprintf("`%s` must be as long as `X`, which has %d elements; got %s.", name, size, toString(lengths(factors))),
      class = c("gradops_error_shape", "gradops_error"), argument = name, call = call
    )
  }
  factors
}

as_cells <- function(values, factors) {
  levels <- lapply(factors, levels)
  if (length(factors) == 1L) as_one_dimensional(values, levels[[1]]) else fill(values, lengths(levels))
}

# Turn a table of lists into a tensor if its cells are single tensors, numbers, or empty.
cells_together <- function(table, default = NA) {
  if (!is.list(table) || !any(vapply(table, is_tensor, NA))) {
    return(table)
  }
  empty <- vapply(table, is.null, NA)
  single <- vapply(table, function(cell) is_tensor(cell) || is.atomic(cell), NA) & lengths(table) == 1L
  if (!all(empty | single)) {
    return(table)
  }
  cells <- unclass(table)
  cells[empty] <- list(as.double(default))
  whole <- joined(lapply(as.vector(cells), identity))
  if (length(dim(table)) > 1L) fill(whole, dim(table)) else as_one_dimensional(whole, names(table))
}

#' @rdname tensor_groups
#' @export
ave <- function(x, ..., FUN = mean) {
  UseMethod("ave", among(x))
}

ave_tensor <- function(x, ..., FUN = mean) {
  value <- if (...length() == 0) {
    recycled(FUN(x), length(x))
  } else {
    groups <- interaction(..., drop = TRUE)
    unsplit_tensor(lapply(split(flat(x), groups), FUN), groups)
  }
  keep_names(if (length(dim(x)) > 1L) fill(value, dim(x)) else value, x)
}

#' @rdname tensor_groups
#' @export
unsplit <- function(value, f, drop = FALSE) {
  if (is.list(value) && holds_tensors(value)) unsplit_tensor(value, f, drop) else base::unsplit(value, f, drop)
}

unsplit_tensor <- function(value, f, drop = FALSE) {
  places <- split(seq_along(if (is.list(f)) f[[1]] else f), f, drop = drop)
  parts <- Map(recycled, value, lengths(places))
  joined(parts)[order(base::unlist(places, use.names = FALSE))]
}

# Sums of the rows of each group, in the order of the sorted groups or of first appearance.
rowsum_tensor <- function(x, group, reorder = TRUE, na.rm = FALSE, ...) {
  x <- if (is_vector(x)) fill(x, c(length(x), 1L)) else x
  if (length(group) != nrow(x)) {
    unsupported("group", sprintf("must have an element for each of the %d rows; got %d.", nrow(x), length(group)))
  }
  groups <- unique(group)
  if (reorder) groups <- sort(groups)
  op_segment_sum(if (na.rm) op_nan_to_num(x) else x, match(group, groups), length(groups))
}

# A wrapper of `...`, as base R takes names from the code of the call.
#' @rdname tensor_groups
#' @export
by <- function(...) {
  cells_together(called_from(parent.frame(), "by", "base")(...))
}

by_tensor <- function(data, INDICES, FUN, ..., simplify = TRUE) {
  FUN <- match.fun(FUN)
  rows <- if (is_vector(data)) length(data) else nrow(data)
  tapply(seq_len(rows), INDICES, function(i) FUN(take_rows(data, i), ...), simplify = simplify)
}

aggregate_tensor <- function(x, by, FUN, ..., simplify = TRUE, drop = TRUE) {
  FUN <- match.fun(FUN)
  if (!is.list(by)) {
    unsupported("by", "must be a list of factors.")
  }
  names(by) <- ifelse(nzchar(rlang::names2(by)), rlang::names2(by), paste0("Group.", seq_along(by)))
  rows <- if (is_vector(x)) length(x) else nrow(x)
  groups <- stats::aggregate(list(row = seq_len(rows)), by, c, simplify = FALSE, drop = drop)
  column <- function(x) {
    parts <- lapply(groups$row, function(i) if (length(i) > 0) FUN(x[i], ...) else NaN)
    value <- put_together(parts, length(parts))
    if (length(dim(value)) > 1L) t(value) else value
  }
  c(
    as.list(groups[names(by)]),
    if (is_vector(x)) list(x = column(x)) else lapply(stats::setNames(seq_len(ncol(x)), paste0("V", seq_len(ncol(x)))),
      function(j) column(x[, j]))
  )
}
