small_loss <- function() {
  w <- parameter(c(0.5, -0.5))
  x <- variable(c(1, 2))
  loss <- sum(exp(w) * w + x)
  autodiff_graph(list(loss))
}

test_each("autodiff_graph() holds operations, named leaves, and their connections", {
  graph <- small_loss()
  boxes <- graph$boxes
  expect_setequal(boxes$kind, c("result", "operation", "leaf"))
  expect_identical(boxes$name[boxes$kind == "leaf"], "w")
  expect_match(boxes$about[boxes$kind == "leaf"], "float64 [2]", fixed = TRUE)
  expect_identical(tolower(substr(boxes$name[boxes$kind == "result"], 1, 3)), "sum")
  # x needs no gradient: sum <- add <- multiply <- exp <- w, and multiply <- w
  expect_identical(nrow(boxes), 5L)
  expect_identical(nrow(graph$arrows), 5L)
  expect_true(all(boxes$level[graph$arrows$to] > boxes$level[graph$arrows$from]))
  expect_identical(max(boxes$level), 4L)
})

test_each("a graph prints as a tree", {
  w <- parameter(c(0.5, -0.5))
  e <- exp(w)
  lines <- capture.output(print(autodiff_graph(sum(e * (e + 1)), list(weights = w))))
  expect_match(lines[1], "<graph of 4 operations and 1 leaf>", fixed = TRUE)
  expect_match(lines[2], "^[Ss]um  float64$")
  expect_identical(sum(grepl("weights  float64 [2]", lines, fixed = TRUE)), 1L)
  expect_identical(sum(grepl("see above", lines)), 1L)
  expect_output(print(autodiff_graph(sum(e)), max_lines = 2), "max_lines")
})

test_each("to_dot() returns Graphviz source", {
  w <- parameter(c(0.5, -0.5))
  dot <- to_dot(sum(w * w))
  expect_match(dot, "^digraph")
  expect_match(dot, 'label="w\\nfloat64 [2]"', fixed = TRUE)
  expect_identical(lengths(regmatches(dot, gregexpr("->", dot))), 3L)
})

test_each("values without a graph", {
  expect_error(autodiff_graph(parameter(1)), "nothing was recorded", class = "gradops_error_gradient")
  expect_error(to_dot(c(1, 2)), "nothing was recorded", class = "gradops_error_gradient")
})

# Returns what a plot draws as lines of a PDF: "(word) Tj" for a word, "h B" for a box.
pages <- function(draw) {
  file <- withr::local_tempfile(fileext = ".pdf")
  grDevices::pdf(file, compress = FALSE, useKerning = FALSE)
  tryCatch(draw(), finally = grDevices::dev.off())
  iconv(readLines(file, warn = FALSE), "latin1", "ASCII", "")
}

expect_words <- function(drawn, words) {
  for (word in words) expect_true(any(grepl(sprintf("(%s)", word), drawn, fixed = TRUE)), label = word)
}

test_once("plot() draws a labelled box for each operation and leaf", {
  skip_without("numpy")
  local_backend("numpy")
  graph <- small_loss()
  before <- NULL
  drawn <- pages(function() {
    before <<- graphics::par("mar")
    expect_identical(plot(graph), graph)
    expect_identical(graphics::par("mar"), before)
  })
  expect_words(drawn, c("sum", "multiply", "exp", "w"))
  expect_identical(sum(drawn == "h B"), nrow(graph$boxes))
})

test_once("boxes of a graph do not overlap, and a long graph is not drawn", {
  skip_without("numpy")
  local_backend("numpy")
  x <- parameter(c(1, 2))
  wide <- Reduce(`+`, lapply(1:7, function(i) sin(x * i) * x))
  boxes <- autodiff_graph(wide)$boxes
  for (row in base::split(boxes, boxes$level)) {
    row <- row[order(row$x), ]
    expect_true(all(diff(row$x) >= (row$width[-1] + row$width[-nrow(row)]) / 2))
  }
  y <- x
  for (i in 1:600) y <- y + 1
  expect_error(plot(autodiff_graph(y)), "too large", class = "gradops_error_argument")
  expect_length(capture.output(print(autodiff_graph(y))), 42)
})

test_once("plot() of a profile draws a bar for each operation", {
  skip_without("numpy")
  local_backend("numpy")
  x <- parameter(c(1, 2))
  profile <- with_profile(backward(sum(exp(x))))
  drawn <- pages(function() expect_identical(plot(profile), profile))
  expect_words(drawn, c("exp", "sum", "forward", "backward"))
})
