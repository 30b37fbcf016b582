# Code that inspects a value, or converts it to a string, and branches on the result: differentiated as in R, compiled
# correctly, or a gradops error. The values of the random programs encode the whole answer; each long run has a new
# seed, which it reports.

squares <- function(p) sum(p^2)
tens <- function(p) 10 * sum(p)

area <- function(x, ...) UseMethod("area")
area.default <- function(x, ...) tens(x)
area.numeric <- function(x, ...) squares(x)
of_matrix <- function(x) UseMethod("of_matrix")
of_matrix.default <- function(x) tens(x)
of_matrix.matrix <- function(x) squares(x)
formal <- new.env(parent = globalenv())
formal$.packageName <- "formal"
methods::setGeneric("formal_area", function(x, ...) standardGeneric("formal_area"), where = formal)
methods::setMethod("formal_area", "ANY", function(x, ...) 10 * sum(x), where = formal)
methods::setMethod("formal_area", "numeric", function(x, ...) sum(x^2), where = formal)
formal_area <- formal$formal_area

by_answer <- function(asks) { # returns a function that branches on a question
  force(asks)
  function(p) if (asks(p)) squares(p) else tens(p)
}

asking <- list(
  dim = by_answer(function(p) is.null(dim(p))), identical = by_answer(function(p) identical(p[1], 1.2)),
  sign = by_answer(function(p) identical(sign(p[1]), 1)), typeof = by_answer(function(p) typeof(p) == "double"),
  class = by_answer(function(p) class(p)[1] == "numeric"), inherits = by_answer(function(p) inherits(p, "numeric")),
  mode = by_answer(function(p) mode(p) == "numeric"), storage = by_answer(function(p) storage.mode(p) == "double"),
  vector = by_answer(function(p) is.vector(p)), attributes = by_answer(function(p) is.null(attributes(p))),
  object = by_answer(function(p) is.object(p)), environment = by_answer(function(p) is.environment(p)),
  list = by_answer(function(p) is.list(p)), unique = by_answer(function(p) length(unique(list(p[1], p[2], p[1]))) == 2),
  setdiff = by_answer(function(p) length(setdiff(list(p[1]), list(1.2))) == 0),
  match = by_answer(function(p) match(list(p[1]), list(1.2), 0L) == 1L), s3 = function(p) area(p),
  s3_matrix = function(p) of_matrix(matrix(p, 1)) + of_matrix(p), s4 = function(p) formal_area(p),
  s4_matrix = function(p) formal_area(matrix(p, 1)), formal = by_answer(function(p) methods::is(p, "numeric")),
  structured = by_answer(function(p) is.null(dim(structure(matrix(p, 1), dim = NULL)))),
  distances = by_answer(function(p) class(stats::dist(matrix(p, 2))) == "dist"),
  switch = function(p) switch(class(p)[1], numeric = squares(p), tens(p)),
  stopifnot = function(p) {
    stopifnot(is.numeric(p), is.vector(p), !is.list(p))
    squares(p)
  }
)

strings <- list(
  character = by_answer(function(p) as.character(round(p[1])) == "1"),
  paste = by_answer(function(p) paste("is", p[1]) == "is 1.2"),
  sprintf = by_answer(function(p) sprintf("%.1f", p[1]) == "1.2"),
  format = by_answer(function(p) format(p[1]) == "1.2"),
  switch = function(p) switch(paste0("a", round(p[1])), a1 = squares(p), tens(p)),
  formatC = by_answer(function(p) formatC(p[1], digits = 3) == "1.2"),
  prettyNum = by_answer(function(p) prettyNum(p[1]) == "1.2"),
  toString = by_answer(function(p) toString(p) == "1.2, 0.5"), nchar = by_answer(function(p) nchar(p[1]) == 3),
  grepl = by_answer(function(p) grepl("2", p[1])), substr = by_answer(function(p) substr(p[1], 1, 1) == "1"),
  startsWith = by_answer(function(p) startsWith(as.character(p[1]), "1")),
  chartr = by_answer(function(p) chartr("1", "7", p[1]) == "7.2"),
  print = by_answer(function(p) utils::capture.output(print(p[1])) == "[1] 1.2"),
  cat = by_answer(function(p) utils::capture.output(cat(p[1], p[2])) == "1.2 0.5"),
  message = by_answer(function(p) tryCatch(message("at ", p[1]), message = conditionMessage) == "at 1.2\n"),
  warning = by_answer(function(p) tryCatch(warning("at ", p[1]), warning = conditionMessage) == "at 1.2"),
  stop = by_answer(function(p) tryCatch(stop("at ", p[1]), error = conditionMessage) == "at 1.2"),
  deparse = by_answer(function(p) deparse(p[1]) == "1.2"),
  dput = by_answer(function(p) utils::capture.output(dput(p[1])) == "1.2"),
  none = by_answer(function(p) length(as.character(p[p > 2])) == 0),
  str = by_answer(function(p) utils::capture.output(utils::str(p[1])) == " num 1.2"),
  serialize = by_answer(function(p) identical(serialize(p[1], NULL), serialize(1.2, NULL)))
)

heard <- list(
  log = function(p) tryCatch(log(p[1]), warning = function(w) -5) + p[2],
  density = function(p) tryCatch(dnorm(1, 0, p[1], log = TRUE), warning = function(w) 7) + p[2],
  calling = function(p) {
    count <- 0
    value <- withCallingHandlers(p[2] + sqrt(p[1]), warning = function(w) {
      count <<- count + 1
      invokeRestart("muffleWarning")
    })
    if (count > 0) p[2]^2 else value
  },
  words = function(p) {
    tryCatch(log(p[1]), warning = function(w) if (conditionMessage(w) == "NaNs produced") 3 else 4) + p[2]
  },
  muffled = function(p) {
    ask <- function() {
      value <- suppressWarnings(log(p[1]))
      if (is.na(value)) p[2]^2 else value
    }
    tryCatch(ask(), warning = function(w) -5)
  },
  try = function(p) {
    root <- try(chol(matrix(c(p[1], 1, 1, p[2] + 2), 2)), silent = TRUE)
    if (inherits(root, "try-error")) tens(p) else squares(p)
  },
  solve = function(p) tryCatch(sum(solve(matrix(c(p[1], 1, 1, p[1]), 2))) + p[2], error = function(e) tens(p)),
  own = function(p) tryCatch(if (p[1] > 0) squares(p) else stop("no"), error = function(e) tens(p))
)

# Checks R's value of a differentiated function; a compiled one gives R's value or an error of `jit`. Returns how many
# compiled calls gave a value.
expect_ways <- function(functions, ...) {
  compiled_values <- 0
  for (name in names(functions)) {
    f <- functions[[name]]
    compiled <- objective(f, jit = TRUE)
    for (p in list(...)) {
      expected <- suppressWarnings(f(p))
      about <- paste(name, "at", toString(p))
      expect_equal(objective(f)$fn(p), expected, info = about)
      found <- tryCatch(suppressWarnings(compiled$fn(p)), gradops_error_jit = identity)
      if (inherits(found, "condition")) next
      compiled_values <- compiled_values + 1
      expect_equal(found, expected, info = about)
    }
  }
  compiled_values
}

test_each("questions about a value are answered as for an R vector", {
  expect_equal(gradient(asking$dim, c(1.2, 0.5)), c(2.4, 1))
  for (f in asking[c("typeof", "s3", "s4")]) expect_equal(gradient(f, c(1.2, 0.5)), c(2.4, 1))
  values <- expect_ways(asking, c(1.2, 0.5), c(-2, 0.5), c(1.2, 3))
  expect_gte(values, if (backend == "numpy") 3 * length(asking) else 45)
})

test_each("strings of a value match R's; in compiled code they are guards or errors", {
  expect_equal(gradient(strings$character, c(1.2, 0.5)), c(2.4, 1))
  values <- expect_ways(strings, c(1.2, 0.5), c(-2, 0.5), c(1.2, 3), c(1.2, 0.5))
  expect_equal(values, if (backend == "numpy") 4 * length(strings) else 0)
})

test_each("warning and error handlers decide as in R", {
  expect_equal(gradient(heard$log, c(-2, 0.5)), c(0, 1))
  expect_equal(gradient(heard$log, c(2, 0.5)), c(0.5, 1))
  values <- expect_ways(heard, c(2, 0.5), c(-2, 0.5), c(1, 0.5), c(3, 0.5))
  if (backend == "numpy") expect_gte(values, 22)
})

test_contract("handlers in a function do not catch the error that it cannot be compiled", {
  f <- function(p) tryCatch(as.numeric(as.character(p[1])), error = function(e) 5) + p[2]
  skip_if(backend == "numpy", "there it is compiled")
  expect_error(jit(f)(c(1, 2)), "as.character", class = "gradops_error_jit")
  sized <- function(p) tryCatch(if (p[1] > 0) p else -p, error = function(e) p)
  expect_error(jit(sized)(c(1, 2)), class = "gradops_error_jit")
})

test_each("outside differentiated functions tensors answer as tensors", {
  x <- op_convert_to_tensor(c(1.2, 0.5))
  expect_true(inherits(x, "gradops_tensor") && is.environment(x) && is.object(x))
  expect_equal(dim(x), 2)
  expect_false(identical(typeof(x), "double"))
  expect_equal(as.numeric(area(x)), as.numeric(tens(x)))
  gradient(asking$dim, c(1, 2))
  expect_equal(dim(x), 2)
})

# Random programs ------------------------------------------------------------------------------------------------------

kind_of <- function(x, ...) UseMethod("kind_of")
kind_of.default <- function(x, ...) "default"
kind_of.numeric <- function(x, ...) c("numeric", NextMethod())
kind_of.matrix <- function(x, ...) c("matrix", NextMethod())
kind_of.logical <- function(x, ...) c("logical", NextMethod())
kind_of.list <- function(x, ...) c("list", NextMethod())
precise_kind <- function(x) UseMethod("precise_kind")
precise_kind.default <- function(x) "default"
precise_kind.double <- function(x) c("double", NextMethod())
precise_kind.integer <- function(x) c("integer", NextMethod())
precise_kind.array <- function(x) "array"
precise_kind.function <- function(x) "function"

values <- list(
  whole = identity, element = function(p) p[1], named = function(p) c(a = p[1], b = p[2]), product = function(p) p * 2,
  matrix = function(p) matrix(p, 1), square = function(p) outer(p, p), sum = sum, rounded = round, sign = sign,
  list = function(p) list(p[1], p[2]), nested = function(p) list(a = p, b = list(1, p[2])), test = function(p) p > 1,
  parts = function(p) p[p > 0], halved = function(p) p %/% 0.5, filled = function(p) {
    h <- numeric(2)
    h[1] <- p[2]
    h
  },
  none = function(p) p[p > 99], rows = function(p) rbind(p, p)[1, ], length = length,
  array = function(p) array(p, c(1, 2, 1)),
  both = function(p) c(p, 1), largest = max, names = function(p) stats::setNames(p, c("x", "y")),
  text = function(p) "a",
  column = function(p) matrix(p, 2)[, 1], count = function(p) sum(p > 1),
  kept = function(p) matrix(p, 2)[, 1, drop = FALSE]
)

questions <- list(
  typeof = typeof, class = class, mode = mode, storage.mode = storage.mode, old_class = oldClass,
  data_class = data.class,
  classes = function(v) .class2(v), dim = dim, nrow = nrow, ncol = ncol, NROW = NROW, NCOL = NCOL, length = length,
  names = names, attributes = attributes, attribute = function(v) attr(v, "dim"), is_list = is.list,
  is_vector = is.vector, vector_of = function(v) is.vector(v, "numeric"), is_array = is.array, is_matrix = is.matrix,
  is_numeric = is.numeric, is_double = is.double, is_integer = is.integer, is_logical = is.logical,
  is_character = is.character, is_object = is.object, is_atomic = is.atomic, is_recursive = is.recursive,
  is_environment = is.environment, is_function = is.function, is_null = is.null, is_complex = is.complex,
  is_language = is.language, is_element = function(v) is.element(1.2, v), is_factor = is.factor,
  is_data_frame = is.data.frame, is_symbol = is.symbol, inherits = function(v) inherits(v, "numeric"),
  inherits_matrix = function(v) inherits(v, c("list", "matrix", "array"), which = TRUE),
  isa = function(v) isa(v, "matrix"), formally = function(v) methods::is(v, "numeric"),
  each_class = function(v) lapply(v, class), each_numeric = function(v) vapply(v, is.numeric, NA),
  each_type = function(v) sapply(list(v, 1L, "a"), typeof), filtered = function(v) length(Filter(is.list, list(v))),
  mapped = function(v) unlist(Map(mode, list(v))), called = function(v) do.call("typeof", list(v)),
  matched = function(v) match.fun("class")(v), renamed = function(v) {
    ask <- is.list
    ask(v)
  },
  passed = function(v) (function(ask) ask(v))(is.environment), negated = function(v) Negate(is.vector)(v),
  chosen = function(v) switch(class(v)[1], numeric = 1, matrix = 2, list = 3, logical = 4, 5),
  s3 = function(v) kind_of(v), s3_precise = function(v) precise_kind(v), sizes = function(v) lengths(list(v, 1)),
  s4 = function(v) if (is.numeric(v)) is.null(dim(formal_area(v))), unclassed = function(v) typeof(unclass(v)),
  structured = function(v) dim(structure(v, dim = NULL)),
  recursed = function(v) rapply(list(v), length, classes = "numeric"),
  # strings
  character = as.character, paste = function(v) paste("is", v), paste0 = function(v) paste0("a", v, collapse = "|"),
  sprintf = function(v) sprintf("%.2f", v), format = format,
  format_digits = function(v) format(v, digits = 2, nsmall = 1),
  formatC = formatC, prettyNum = prettyNum, toString = toString, nchar = nchar, grepl = function(v) grepl("2", v),
  sub = function(v) sub(".", "-", v, fixed = TRUE), substr = function(v) substr(v, 1, 2),
  starts = function(v) startsWith(as.character(v), "1"), chartr = function(v) chartr("125", "abc", v),
  upper = function(v) toupper(paste(v)), split = function(v) strsplit(as.character(v), ".", fixed = TRUE),
  printed = function(v) utils::capture.output(print(v)), shown = function(v) utils::capture.output(cat(v)),
  put = function(v) utils::capture.output(dput(v)), deparsed = deparse, quoted = function(v) dQuote(v, FALSE),
  told = function(v) tryCatch(message("at ", v), message = conditionMessage),
  warned = function(v) tryCatch(warning("at ", v), warning = conditionMessage),
  stopped = function(v) tryCatch(stop("at ", v), error = conditionMessage),
  tried = function(v) conditionMessage(attr(try(stop(paste(v, collapse = " ")), silent = TRUE), "condition")),
  words = function(v) regmatches(paste(v), regexpr("[0-9]", paste(v))), encoded = function(v) encodeString(paste(v)),
  factor = function(v) levels(factor(v)), table = function(v) as.vector(table(v)),
  # identity
  identical = function(v) identical(v, 1.2), identical_vector = function(v) identical(v, c(1.2, 0.5)),
  itself = function(v) identical(v, v), identical_lists = function(v) identical(list(v), list(c(1.2, 0.5))),
  equal = function(v) isTRUE(all.equal(v, c(1.2, 0.5))), equal_to = function(v) isTRUE(all.equal(1.2, v)),
  is_true = function(v) isTRUE(v), is_false = function(v) isFALSE(v[1] > 1),
  unique = function(v) length(unique(list(v, v, 1.2))),
  setdiff = function(v) length(setdiff(list(v), list(1.2, c(1.2, 0.5)))),
  match = function(v) match(list(v), list(1.2, -2)),
  among = function(v) 1.2 %in% v, doubles = function(v) anyDuplicated(list(v, 1.2, v)),
  same = function(v) setequal(v, c(0.5, 1.2)),
  duplicated = function(v) duplicated(list(v, 1.2, 1)), unsorted = function(v) is.unsorted(v),
  union = function(v) length(union(list(v), list(1.2))), intersect = function(v) length(intersect(list(v), list(1.2))),
  # handlers
  logarithm = function(v) {
    ask <- function() {
      log(v)
      "fine"
    }
    tryCatch(ask(), warning = conditionMessage, error = function(e) "failed")
  },
  counted = function(v) {
    count <- 0
    withCallingHandlers(sqrt(v), warning = function(w) {
      count <<- count + 1
      invokeRestart("muffleWarning")
    })
    count
  }
)

# Returns a number that identifies the answer.
weight <- function(answer) sum(utf8ToInt(paste(deparse(answer), collapse = "")) * c(1, 3, 7)) %% 101

weighted <- function(asks, of) {
  force(asks)
  force(of)
  function(p) weight(asks(of(p))) * sum(p^2)
}

points <- list(c(1.2, 0.5), c(-2, 0.5), c(1.2, 3), c(0.5, 1.2), c(1.2, 0.5), c(1, 1))

# Returns how many calls gave a value. The answer is constant, so R's value and derivative are known.
expect_answers <- function(count) {
  answered <- 0
  for (i in seq_len(count)) {
    asks <- sample(names(questions), 1)
    of <- sample(names(values), 1)
    f <- weighted(questions[[asks]], values[[of]])
    compiled <- objective(f, jit = TRUE)
    for (p in points[c(sample(2, 1), sample(6, 2))]) {
      r <- tryCatch(suppressWarnings(weight(questions[[asks]](values[[of]](p)))), error = function(e) NULL)
      if (is.null(r)) next
      for (way in c("differentiated", "compiled")) {
        about <- sprintf("%s of %s at %s, %s", asks, of, toString(p), way)
        on <- if (way == "compiled") compiled else objective(f)
        found <- tryCatch(suppressWarnings(list(on$fn(p), on$gr(p))), error = identity)
        if (inherits(found, "error")) {
          expect_true(inherits(found, "gradops_error"), info = paste(about, conditionMessage(found)))
        } else {
          answered <- answered + 1
          expect_equal(found, list(r * sum(p^2), r * 2 * p), info = about)
        }
      }
    }
  }
  answered
}

test_each("random programs with questions give R's results", {
  withr::local_seed(33)
  count <- if (is_long()) 60 else 20
  expect_gt(expect_answers(count), 1.6 * count)
})

test_each("many random programs with questions give R's results", {
  skip_if(Sys.getenv("GRADOPS_LONG") == "", "random and long: GRADOPS_LONG is not set")
  seed <- as.integer(Sys.time()) %% 1e6
  message("random programs that ask on ", backend, ": seed ", seed)
  withr::local_seed(seed)
  expect_gt(expect_answers(1500), 2500)
})

one_dimensional <- list(
  array = function(p) array(p, 4), shorter = function(p) array(p, 2), default = function(p) array(p),
  named = function(p) array(p, 4, list(letters[1:4])), as.array = function(p) as.array(p),
  sums = function(p) tapply(p, c(1, 2, 1, 2), sum), firsts = function(p) tapply(p, c("b", "a", "b", "c"), `[`, 1),
  dim = function(p) {
    dim(p) <- 4
    p
  },
  one = function(p) array(p[1]), vector = function(p) p, matrix = function(p) array(p, c(2, 2))
)

from_arrays <- list(
  itself = identity, times = function(a) a * 2, sum_with_vector = function(a) seq_along(a) + a, minus = function(a) -a,
  self = function(a) a + a, exp = exp, cumsum = cumsum, part = function(a) a[-1], one = function(a) a[1],
  kept = function(a) a[1, drop = FALSE], by = function(a) a[a > 1], element = function(a) a[[1]], c = function(a) c(a),
  vector = function(a) as.vector(a), numeric = function(a) as.numeric(a), rev = rev, sort = sort, diff = diff,
  sum = sum, ifelse = function(a) ifelse(a > 1, a, 0), pmax = function(a) pmax(a, 1), matrix = function(a) matrix(a, 1),
  drop = function(a) drop(a), plogis = function(a) plogis(a), replaced = function(a) {
    a[1] <- 5
    a
  },
  moved = function(a) {
    a[1] <- a[[1]]^2
    a
  },
  grown = function(a) {
    a[[length(a) + 1]] <- 5
    a
  },
  unshaped = function(a) {
    dim(a) <- NULL
    a
  },
  named = function(a) {
    names(a) <- LETTERS[seq_along(a)]
    a
  }
)

about_shape <- function(a) {
  list(
    dim(a), length(a), if (length(dim(a)) < 2) names(a), is.array(a), is.vector(a), is.matrix(a), class(a), nrow(a),
    typeof(a), identical(a, as.vector(a)), if (is.null(dim(a))) 1 else 2
  )
}

test_each("one-dimensional arrays and vectors are distinguished as in R, also in results", {
  at <- c(1.5, 2.5, 0.5, 3.5)
  for (made in names(one_dimensional)) {
    used_here <- if (made == "matrix") setdiff(names(from_arrays), "grown") else names(from_arrays)
    is_odd <- match(made, names(one_dimensional)) %% 2 == 1
    if (!is_long()) used_here <- used_here[c(is_odd, !is_odd)]
    for (used in used_here) {
      asked <- function(p) about_shape(from_arrays[[used]](one_dimensional[[made]](p)))
      expected <- suppressWarnings(asked(at))
      answer <- NULL
      gradient(function(p) {
        answer <<- asked(p)
        sum(p)
      }, at)
      expect_identical(answer, expected, info = paste(made, used))
    }
  }
  by_class <- function(p) if (identical(class(qr(matrix(p, 2))), "qr")) sum(p^2) else sum(p)
  expect_equal(gradient(by_class, at), 2 * at)
  goes <- function(p) if (is.null(dim(array(p, 2)))) sum(p) else sum(p^2)
  expect_equal(gradient(goes, at), 2 * at)
  expect_equal(gradient(function(p) if (length(dim(p)) == 1) sum(p^2) else sum(p), array(at)), array(2 * at))
  expect_equal(objective(goes, jit = TRUE)$gr(at), 2 * at)
})
