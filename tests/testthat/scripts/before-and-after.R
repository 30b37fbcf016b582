# Compares the results of expressions on objects of reticulate, and with NEIGHBOURS of tensorflow and keras3, before and
# after gradops is loaded and used. Prints those that differ and how many there were.
#
#     Rscript before-and-after.R BACKENDS [NEIGHBOURS]   # BACKENDS: torch,jax; NEIGHBOURS: a library with keras3

arguments <- commandArgs(TRUE)
backends <- strsplit(arguments[1], ",", fixed = TRUE)[[1]]
if (length(arguments) > 1) .libPaths(c(arguments[2], .libPaths()))
with_neighbours <- length(arguments) > 1
if (with_neighbours) suppressMessages(loadNamespace("keras3"))
python <- function(module) reticulate::import(module, convert = FALSE)

numbers <- list(c(1, 2, 3), c(4, 5, 6))
make <- list(
  numpy = function(x) python("numpy")$array(x),
  torch = function(x) python("torch")$tensor(x),
  tensorflow = function(x) python("tensorflow")$constant(x),
  jax = function(x) python("jax.numpy")$array(x)
)
objects <- function() { # new ones each time, as some expressions modify them
  lapply(make[backends], function(make) list(x = make(numbers), v = make(numbers[[1]])))
}
expressions <- expression(
  x * v, v * x, x + 1, 2 - x, x^2, x %% 2, x %/% 2, x > 1, x == x, x & x, -x, !(x > 1), +x, x * array(1, c(2, 3)),
  x[0], x[1], x[1, 2], x[0L, ], v[2], v[-1], x[[0]], v[v > 1], length(x), length(v), dim(x), dim(v), nrow(x), names(v),
  t(x), aperm(x), as.array(x), as.matrix(x), as.vector(v), as.numeric(v), as.integer(v), as.logical(v),
  as.character(v), as.list(v), as.complex(v), as.data.frame(x), sum(x), max(x), range(v), mean(v), exp(v), log(v, 2),
  round(v, 1), cumsum(v), Re(v), rev(v), rep(v, 2), c(v, v), c(v, 1), cbind(v, v), rbind(1, v), diff(v), sort(v),
  order(v), unique(v), duplicated(v), is.na(v), is.nan(v), is.finite(v), anyNA(v), is.numeric(v), is.matrix(x),
  is.array(x), summary(v), format(v), capture.output(print(v)), capture.output(str(v)), head(v, 2), tail(v, 1),
  median(v), quantile(v), scale(x), solve(x), chol(x), qr(x), det(x), all.equal(v, v), x$shape, x$sum(), v$dtype,
  v$nothing, .DollarNames(v, "sha"), { y <- v; y[0] <- 9; y }, { y <- v; names(y) <- c("a", "b", "c"); y },
  { y <- x; dim(y) <- 6; y }, x %*% x, crossprod(x), inherits(x, "gradops_tensor"), class(x)
)

outcome <- function(expression, envir) {
  tryCatch(described(eval(expression, list2env(envir, parent = globalenv()))), condition = conditionMessage)
}

# Removes what differs in every run: addresses, and counters in Keras names.
described <- function(value) {
  if (inherits(value, "python.builtin.object")) {
    list(class(value), described(reticulate::py_repr(value)))
  } else if (is.character(value)) {
    gsub("0x[0-9a-f]+|(id=|variable_|keras_tensor_)[0-9]+", "", value)
  } else if (is.list(value)) {
    lapply(value, described)
  } else {
    value
  }
}

outcomes <- function() {
  found <- list()
  for (name in backends) {
    for (expression in as.list(expressions)) {
      label <- paste0(name, ": ", paste(deparse(expression), collapse = " "))
      found[[label]] <- list(outcome(expression, objects()[[name]]))
    }
  }
  c(found, of_keras())
}

of_keras <- function() NULL
if (with_neighbours) {
  keras <- function() list(
    k = keras3::op_convert_to_tensor(matrix(c(1, 2, 3, 4), 2)),
    w = keras3::keras_variable(initializer = matrix(c(1, 2, 3, 5), 2)),
    s = keras3::keras_input(shape = c(2))
  )
  of_keras_own <- expression(
    k + w, w + k, k * 2, w * 2, 2 / w, k - k, k^2, w^2, k > w, -k, -w, k[1], k[1, 2], k@r[1], k@r[, 2], t(k), aperm(k),
    length(k), dim(k), as.array(k), as.array(w), as.numeric(w), sum(k), mean(k), exp(k), abs(k), round(k), c(k, w),
    k$shape, keras3::shape(k), keras3::op_add(k, w), keras3::op_mean(k, 1), s + s, s * 2, s == s, -s, s[, 1], s$shape,
    keras3::op_exp(s)$shape, capture.output(print(k)), capture.output(print(w)), all.equal(k, k), is.na(k), rev(k),
    rbind(k, k), rep(k, 2), sort(k), range(k), k %% 2, k & k, { y <- k; y[1] <- 0; y }, w$value, w$assign_add(w)$shape
  )
  of_keras <- function() {
    found <- lapply(of_keras_own, function(x) outcome(x, keras()))
    stats::setNames(found, paste("keras:", vapply(of_keras_own, deparse1, "")))
  }
}

before <- outcomes()
stopifnot(requireNamespace("gradops", quietly = TRUE))
library(gradops)
for (held in objects()) stopifnot(inherits(op_exp(held$x), "gradops_tensor"), length(op_sum(held$x)) == 1)
detach("package:gradops")
after <- outcomes()

differ <- Filter(function(name) !identical(before[[name]], after[[name]]), names(before))
for (name in differ) {
  writeLines(c(name, utils::capture.output(utils::str(list(before = before[[name]], after = after[[name]])))))
}
stopifnot(identical(names(before), names(after)))
cat(length(differ), "of", length(before), "differ\n")
