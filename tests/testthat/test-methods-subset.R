test_contract("`[` accepts the indices that R arrays accept", {
  a <- array(1:24 / 1, 2:4)
  x <- op_convert_to_tensor(a)
  expect_subset <- function(tensor, array) {
    expect_equal(as.array(tensor), if (length(array) == 1) c(array) else as.array(array))
  }
  expect_subset(x[1, 2, 3], a[1, 2, 3])
  expect_subset(x[, 2, ], a[, 2, ])
  expect_subset(x[, , 2:3], a[, , 2:3])
  expect_subset(x[, c(3, 1), c(4, 2, 2)], a[, c(3, 1), c(4, 2, 2)])
  expect_subset(x[2, -1, ], a[2, -1, ])
  expect_subset(x[c(TRUE, FALSE), , -(1:2)], a[c(TRUE, FALSE), , -(1:2)])
  expect_subset(x[1, c(TRUE, FALSE, TRUE), 1], a[1, c(TRUE, FALSE, TRUE), 1])
  expect_subset(x[, 2, , drop = FALSE], a[, 2, , drop = FALSE])
  expect_subset(x[c(1, 24, 7)], a[c(1, 24, 7)])
  expect_subset(x[5], a[5])
  expect_subset(x[-(1:20)], a[-(1:20)])
  expect_subset(x[a > 20], a[a > 20])
  expect_subset(x[x > 20], a[a > 20])
  expect_subset(x[cbind(1:2, 2:3, 3:4)], a[cbind(1:2, 2:3, 3:4)])
  expect_subset(x[], a)
  expect_equal(dim(x[, integer(), ]), c(2L, 0L, 4L))
  expect_equal(dim(x[, NULL, ]), c(2L, 0L, 4L))
  i <- 2
  expect_subset(op_subset(x, i, , 1), a[i, , 1])
})

test_each("`[` with vectors, numbers and tensors as indices", {
  v <- c(10, 20, 30)
  x <- op_convert_to_tensor(v)
  expect_equal(as.numeric(x[2]), 20)
  expect_null(dim(x[2]))
  expect_equal(as.numeric(x[c(0, 3, 1)]), v[c(0, 3, 1)])
  expect_equal(as.numeric(x[op_convert_to_tensor(c(3L, 1L))]), c(30, 10))
  expect_equal(as.numeric(x[op_argmax(x)]), 30)
  expect_equal(as.numeric(x[x > 15]), c(20, 30))
  expect_equal(as.numeric(op_exp(1)[1]), exp(1))
})

test_each("`[<-` returns a new tensor", {
  a <- matrix(1:6 / 1, 2)
  x <- op_convert_to_tensor(a)
  old <- x
  replace_both <- function(f) expect_equal(as.array(f(x)), f(a))
  replace_both(\(x) `[<-`(x, 1, 2, value = 9))
  replace_both(\(x) `[<-`(x, , 2, value = c(7, 8)))
  replace_both(\(x) `[<-`(x, 2, , value = 0))
  replace_both(\(x) `[<-`(x, c(1, 6), value = c(-1, -2)))
  replace_both(\(x) `[<-`(x, , c(3, 1), value = matrix(11:14, 2)))
  x[x > 4] <- 0
  a[a > 4] <- 0
  expect_equal(as.array(x), a)
  expect_equal(as.array(old), matrix(1:6 / 1, 2))
  op_subset(x, 1, 1) <- 5
  expect_equal(as.numeric(x[1, 1]), 5)
})

test_each("subsets have gradients", {
  expect_equal(gradient(\(x) x[2]^2 + sum(x[c(1, 1, 3)]), c(1, 2, 3)), c(2, 4, 1))
  expect_equal(gradient(\(x) sum(x[, 2] * c(1, 10)), matrix(0, 2, 3)), matrix(c(0, 0, 1, 10, 0, 0), 2))
  replaced <- function(x, y) {
    x[2] <- y
    sum(x^2)
  }
  expect_equal(grad_fn(replaced, 1:2)(c(1, 2, 3), 5), list(c(2, 0, 6), 10))
})

test_each("index errors use R's numbering", {
  x <- op_convert_to_tensor(matrix(1:6 / 1, 2))
  expect_error(x[3, 1], "out of range.*2 elements; got 3", class = "gradops_error_axis")
  expect_error(op_convert_to_tensor(1:6)[7], "6 elements; got 7", class = "gradops_error_axis")
  expect_error(x[1, 1, 1], "2 dimensions; got 3", class = "gradops_error_axis")
  expect_error(x[c(-1, 1), 1], "mixed", class = "gradops_error_axis")
  expect_error(x["a", 1], "numeric or logical", class = "gradops_error_type")
  expect_error(x[list(1)], "numeric or logical; got a list", class = "gradops_error_type")
  expect_error(x[1] <- "a", "`value` must be a tensor or numbers; got \"a\"", class = "gradops_error_type")
  expect_error(x[1] <- NULL, "got NULL", class = "gradops_error_type")
  expect_error(x[[1]] <- list(2), "got a list", class = "gradops_error_type")
  expect_error(`[<-`(x, 1, , value = 1:2), "divisor", class = "gradops_error_axis")
})

test_once("`drop` may be a number, as in R", {
  m <- op_array(matrix(1:6, 2))
  expect_identical(dim(m[1, , drop = 0]), c(1L, 3L))
  expect_identical(dim(m[1, , drop = 1]), 3L)
})

test_each("elements beyond the end of a vector, or at NA, are missing and have no gradient", {
  x <- variable(c(1, 2, 3))
  m <- variable(matrix(c(1, 2, 3, 4), 2))
  expect_equal(as.vector(x[c(0, 5, 2)]), c(NaN, 2))
  expect_equal(as.vector(x[c(TRUE, FALSE, TRUE, TRUE)]), c(1, 3, NaN))
  expect_equal(as.vector(x[NA_integer_]), NaN)
  expect_equal(as.vector(x[NA]), c(NaN, NaN, NaN))
  expect_equal(as.vector(x[c(FALSE, TRUE, NA)]), c(2, NaN))
  expect_equal(as.vector(m[c(2, NA, 7)]), c(2, NaN, NaN))
  expect_equal(as.array(m[NA, 1]), array(c(NaN, NaN)))
  expect_equal(as.array(m[c(NA, 2), ]), matrix(c(NaN, 2, NaN, 4), 2))
  expect_equal(as.array(m[c(TRUE, NA), c(2, NA)]), matrix(c(3, NaN, NaN, NaN), 2))
  expect_equal(as.vector(m[cbind(c(1, NA), 2)]), c(3, NaN))
  in_matrix <- function(p) sum(matrix(p, 2)[c(NA, 2), 1:2], na.rm = TRUE)
  expect_equal(gradient(in_matrix, c(1, 2, 3, 4)), c(0, 1, 0, 1))
  expect_equal(jit(value_and_grad(in_matrix))(c(1, 2, 3, 4))$gradient, c(0, 1, 0, 1))
  expect_error(x[[5]], "out of range", class = "gradops_error_axis")
  expect_error(x[c(-1, 5)], class = "gradops_error_axis")
  expect_error(m[3, 1], "out of range", class = "gradops_error_axis")
  f <- function(x) {
    v <- x[1:5]
    sum(ifelse(is.na(v), 0, v^2)) + sum(x[3:4], na.rm = TRUE)
  }
  expect_equal(gradient(f, c(1, 2, 3)), c(2, 4, 7))
  expect_equal(jit(value_and_grad(f))(c(1, 2, 4)), list(value = 25, gradient = c(2, 4, 9)))
})

test_once("a loop may read beyond the end of a vector", {
  skip_without("numpy")
  local_backend("numpy")
  f <- function(x) {
    y <- numeric(4)
    for (i in 1:4) y[i] <- x[i] * 2
    s <- 0
    for (i in 1:4) if (!is.na(x[i])) s <- s + x[i]^2
    sum(y, na.rm = TRUE) + s
  }
  expect_equal(gradient(f, c(1, 2, 3)), c(4, 6, 8))
  model <- objective(f, jit = TRUE)
  for (at in list(c(1, 2, 3), c(2, 1, 5))) expect_equal(model$gr(at), 2 + 2 * at)
})

test_once("random parts of arrays with and without names are R's own", {
  skip_without("numpy")
  local_backend("numpy")
  set.seed(6401)
  places_of_dim <- function(size, names) {
    switch(sample(if (is.null(names)) 4L else 6L, 1L),
      sample(size, 1L), sample(size, sample(size, 1L)), -sample(size, 1L), sample(base::c(TRUE, FALSE), size, TRUE),
      sample(names, 1L), sample(names, sample(size, 1L))
    )
  }
  outcome <- function(code) tryCatch(list(code), error = function(condition) "error")
  one <- function() {
    dim <- sample(4L, sample(3L, 1L), TRUE)
    names <- lapply(dim, function(size) if (runif(1) < 0.5) letters[seq_len(size)])
    x <- array(round(runif(prod(dim), 1, 9), 2), dim, if (!all(vapply(names, is.null, NA))) names)
    if (length(dim) == 1L) x <- stats::setNames(as.vector(x), names[[1L]])
    places <- if (runif(1) < 0.4) list(places_of_dim(length(x), names(x))) else Map(places_of_dim, dim, names)
    element <- runif(1) < 0.5
    if (element) places <- lapply(places, function(place) if (is.numeric(place)) abs(place[1L]) else place[1L])
    list(x = x, places = places, read = if (element) base::`[[` else base::`[`)
  }
  for (k in 1:150) {
    case <- one()
    read <- environment() # `x` and `places` are found here by the adapted code
    f <- eval(bquote(function(p) {
      parts <- x * p
      .(as.call(c(as.name(if (identical(case$read, base::`[[`)) "[[" else "["), quote(parts), unname(case$places))))
    }), list(x = case$x), globalenv())
    wanted <- outcome(do.call(case$read, c(list(case$x * 2), unname(case$places))))
    if (identical(wanted, "error") || anyNA(unlist(wanted))) next
    info <- paste(deparse(case[c("x", "places")]), collapse = "")
    for (compiled in c(FALSE, TRUE)) {
      g <- if (compiled) jit(f) else f
      found <- outcome(g(if (compiled) 2 else variable(2)))
      expect_equal(as.vector(found[[1L]]), unname(as.vector(wanted[[1L]])), info = info)
    }
  }
})
