# Pictures: graphs of recorded operations, and profiles.

#' The graph of recorded operations
#'
#' `autodiff_graph()` shows the operations that `backward(y)` will visit: printed as a tree, from the result down to the
#' leaves, or drawn by `plot()`. `to_dot()` returns the graph in the DOT language, for Graphviz and similar tools.
#' @param y The result of recorded operations, or a list of them.
#' @param params Names for leaves: a named list of variables. By default leaves have the names of the caller's
#'   variables.
#' @param x A graph.
#' @param ... For `plot()`, more arguments of [graphics::plot.window()]; otherwise unused.
#' @param max_lines The maximum number of lines to print.
#' @returns `autodiff_graph()`: a list of data frames, `boxes` (operations and leaves: `name`, dtype and shape, `kind`,
#'   `level` below the result, and the coordinates in the plot) and `arrows` (`from` a box `to` one it was computed
#'   from, the direction in which a gradient flows). `to_dot()`: a string.
#' @section Errors:
#' - `gradops_error_gradient`: nothing was recorded.
#' - `gradops_error_argument`: the graph has more than 500 boxes, too many to draw.
#' @seealso [backward()], [with_profile()].
#' @examplesIf gradops_available()
#' w <- parameter(c(0.5, -0.5))
#' loss <- sum((exp(w) * w - 1)^2)
#' autodiff_graph(loss)
#' plot(autodiff_graph(loss))
#' cat(to_dot(loss))
#' backward(loss)
#' w$grad
#' @export
autodiff_graph <- function(y, params = NULL) {
  found <- py_to_r(call_core("interop.r.graph", operand(y), named_tensors(params) %||% tensors_in(parent.frame())))
  structure(
    list(
      boxes = as.data.frame(lapply(found$boxes, unlist)),
      arrows = data.frame(from = as.integer(unlist(found$from)), to = as.integer(unlist(found$to))),
      ways = lapply(found$ways, unlist)
    ),
    class = "gradops_graph"
  )
}

#' @rdname autodiff_graph
#' @export
to_dot <- function(y, params = NULL) {
  py_to_r(call_core("autodiff.to_dot", operand(y), named_tensors(params) %||% tensors_in(parent.frame())))
}

named_tensors <- function(params, call = parent.frame()) {
  if (length(params) && !(is.list(params) && all(nzchar(rlang::names2(params))))) {
    unsupported("params", "must be a named list of tensors.", call = call)
  }
  if (length(params)) params
}

# The tensors in a frame, by name.
tensors_in <- function(frame) {
  values <- lapply(stats::setNames(nm = ls(frame)), function(name) {
    if (!bindingIsActive(name, frame)) attempt(get(name, frame), function(error) NULL)
  })
  found <- Filter(is_any_tensor, values)
  if (length(found)) found
}

#' @rdname autodiff_graph
#' @export
print.gradops_graph <- function(x, max_lines = 40, ...) {
  leaf <- x$boxes$kind == "leaf"
  cat(sprintf("<graph of %s and %s>\n", counted(sum(!leaf), "operation"), counted(sum(leaf), "leaf", "leaves")))
  lines <- tree_lines(x, max_lines)
  writeLines(lines)
  invisible(x)
}

counted <- function(n, one, several = paste0(one, "s")) paste(n, if (n == 1) one else several)

# The graph as lines of a tree; a node that was printed before is named again, without its inputs.
tree_lines <- function(x, max_lines) {
  below <- split(x$arrows$to, factor(x$arrows$from, seq_len(nrow(x$boxes))))
  text <- trimws(paste0(x$boxes$name, "  ", x$boxes$about))
  roots <- setdiff(seq_len(nrow(x$boxes)), x$arrows$to)
  todo <- rev(lapply(roots, function(box) list(box = box, first = "", rest = "")))
  seen <- logical(nrow(x$boxes))
  lines <- character()
  branch <- if (cli::is_utf8_output()) c("\u251c\u2500", "\u2514\u2500", "\u2502 ") else c("|-", "`-", "| ")
  while (length(todo)) {
    if (length(lines) == max_lines) {
      return(c(lines, "... (`max_lines` shows more)"))
    }
    now <- todo[[length(todo)]]
    todo <- todo[-length(todo)]
    again <- seen[now$box] && length(below[[now$box]])
    lines <- c(lines, paste0(now$first, text[now$box], if (again) "  (see above)"))
    if (again) next
    seen[now$box] <- TRUE
    parts <- below[[now$box]]
    last <- seq_along(parts) == length(parts)
    first <- paste0(now$rest, ifelse(last, branch[2], branch[1]))
    rest <- paste0(now$rest, ifelse(last, "  ", branch[3]))
    children <- Map(function(box, first, rest) list(box = box, first = first, rest = rest), parts, first, rest)
    todo <- c(todo, rev(children))
  }
  lines
}

#' @rdname autodiff_graph
#' @export
plot.gradops_graph <- function(x, ...) {
  boxes <- x$boxes
  if (nrow(boxes) > 500) {
    abort(
      c(sprintf("a graph of %d boxes is too large to draw.", nrow(boxes)), i = "Print it, or use `to_dot()`."),
      class = c("gradops_error_argument", "gradops_error"), argument = "x"
    )
  }
  half <- 0.3 # of a box's height; levels are 1 apart
  y <- -boxes$level
  old <- graphics::par(mar = rep(0.5, 4))
  on.exit(graphics::par(old))
  graphics::plot.new()
  across <- range(boxes$x - boxes$width / 2, boxes$x + boxes$width / 2, unlist(x$ways))
  graphics::plot.window(across + c(-1, 1), c(min(y) - half, half) + c(-0.1, 0.1), ...)
  for (i in seq_along(x$ways)) draw_way(x$ways[[i]], y[x$arrows$from[i]], half)
  fill <- c(operation = "white", result = "#e8f5d0", leaf = "#cfe8fc")[boxes$kind]
  for (i in seq_len(nrow(boxes))) draw_box(boxes$x[i], y[i], boxes$width[i] / 2, half, fill[i], boxes$kind[i] == "leaf")
  cex <- text_size(boxes, half)
  two <- nzchar(boxes$about)
  graphics::text(boxes$x, y + half * ifelse(two, 0.2, -0.25), boxes$name, adj = c(0.5, 0), cex = cex, font = 2)
  graphics::text(boxes$x, y - half * 0.65, boxes$about, adj = c(0.5, 0), cex = 0.9 * cex)
  invisible(x)
}

# The text size at which every text fits its box.
text_size <- function(boxes, half) {
  wide <- pmax(graphics::strwidth(boxes$name, font = 2), 0.9 * graphics::strwidth(boxes$about))
  min(1, 0.92 * boxes$width / wide, 0.7 * half / graphics::strheight("My"))
}

# Draw an arrow from a box down to another, past the boxes between them.
draw_way <- function(x, y, half) {
  inner <- length(x) - 2
  px <- c(x[1], rep(x[1 + seq_len(inner)], each = 2), x[length(x)])
  py <- y - c(half, rbind(seq_len(inner) - half, seq_len(inner) + half), inner + 1 - half)
  curve <- list(x = px, y = py)
  if (inner) curve <- graphics::xspline(px, py, shape = c(0, rep(0.5, 2 * inner), 0), draw = FALSE)
  graphics::lines(curve, col = "grey40")
  end <- length(px)
  near <- max(which(curve$y > py[end] + 0.05))
  graphics::arrows(curve$x[near], curve$y[near], px[end], py[end], length = 0.07, col = "grey40")
}

# Draw a box, with round ends for a leaf.
draw_box <- function(x, y, half_width, half, fill, round) {
  per_inch <- c(diff(graphics::par("usr")[1:2]), diff(graphics::par("usr")[3:4])) / graphics::par("pin")
  bend <- min(half_width, half / per_inch[2] * per_inch[1] * if (round) 1 else 0.2)
  rise <- if (round) half else bend / per_inch[1] * per_inch[2]
  turn <- seq(0, pi / 2, length.out = 12)
  corner_x <- half_width - bend + bend * cos(turn)
  corner_y <- half - rise + rise * sin(turn)
  around_x <- c(corner_x, -rev(corner_x), -corner_x, rev(corner_x))
  around_y <- c(corner_y, rev(corner_y), -corner_y, -rev(corner_y))
  graphics::polygon(x + around_x, y + around_y, col = fill, border = "grey20")
}

#' @rdname with_profile
#' @export
plot.gradops_profile <- function(x, ...) {
  ways <- c(forward = "#4c78a8", backward = "#f2a35e", torch = "#9d9d9d", label = "#72b7a1")
  name <- sub("^(.{34}).{2,}$", "\\1...", sub(" backward$", "", x$name))
  kind <- ifelse(x$kind %in% names(ways), x$kind, "forward")
  time <- tapply(x$self, list(factor(kind, names(ways)), name), sum, default = 0)
  time <- time[rowSums(time) > 0, order(colSums(time)), drop = FALSE]
  time <- time[, utils::tail(seq_len(ncol(time)), 20), drop = FALSE]
  unit <- if (max(colSums(time)) < 1e-3) c(us = 1e6) else if (max(colSums(time)) < 1) c(ms = 1e3) else c(s = 1)
  old <- graphics::par(mar = c(4, 1, 1, 1))
  on.exit(graphics::par(old))
  names_width <- max(graphics::strwidth(colnames(time), "inches", cex = 0.9))
  graphics::par(mai = replace(graphics::par("mai"), 2, 0.3 + names_width))
  graphics::barplot(
    unit * time,
    horiz = TRUE, las = 1, border = NA, cex.names = 0.9, col = ways[rownames(time)],
    xlab = sprintf("time in the operation itself, %s", names(unit)), ...
  )
  graphics::legend("bottomright", rownames(time), fill = ways[rownames(time)], border = NA, bty = "n")
  invisible(x)
}
