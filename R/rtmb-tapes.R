# RTMB's small functions, and its tapes, which here are functions that are differentiated as they run, with the data of
# the time when they were made.

rtmb_functions <- function() {
  list(
    getAll = get_all, REPORT = report_rtmb, ADREPORT = ad_report_rtmb, OBS = obs_rtmb, `%~%` = tilde_rtmb,
    ADoverload = ad_overload, AD = ad_value, advector = function(x) x, ad_context = ad_context,
    relist = relist_rtmb, MakeTape = make_tape, GetTape = get_tape,
    TapeConfig = tape_config, DataEval = data_eval,
    ADjoint = ad_joint, dseparable = dseparable, unstructured = unstructured,
    GK = gauss_kronrod, LA = laplace_method, SR = sequential_reduction, logspace_add = logspace_add,
    logspace_sub = logspace_sub, interpol1Dfun = interpol1Dfun, interpol2Dfun = interpol2Dfun, expAv = expAv
  )
}

# Settings of RTMB's tapes, which scripts read, change and restore: here they change nothing.
tape_config <- function(..., comparison = "NA", atomic = "NA", vectorize = "NA") {
  known <- state$tape_settings %||% tape_settings
  given <- list(...)
  if (length(given) == 1L && is.list(given[[1L]])) given <- given[[1L]]
  words <- c(compare = comparison, matmul = atomic, mvnorm = atomic, ops = vectorize)
  words[c("math", "sparse", "sum")] <- vectorize
  meanings <- c(tape = "taped", enable = "atomic", disable = "plain", forbid = "forbid", allow = "allow")
  for (name in names(words)[words != "NA"]) {
    word <- match.arg(words[[name]], names(meanings))
    is_of_vectors <- name %in% c("ops", "math", "sparse", "sum")
    known[[name]] <- if (is_of_vectors && word == "enable") "vectorize" else meanings[[word]]
  }
  if (!all(names(given) %in% names(known))) {
    unsupported("...", paste("may have", paste0("`", names(known), "`", collapse = ", ")))
  }
  known[names(given)] <- given
  state$tape_settings <- known
  invisible(known)
}

tape_settings <- list(
  matmul = "plain", ops = "plain", math = "plain", sparse = "plain", sum = "plain", mvnorm = "atomic",
  compare = "forbid"
)

# `AD(x)`: of a matrix of Matrix one whose slot `x` has all its values.
ad_value <- function(x, force = FALSE) {
  if (isS4(x) && (methods::is(x, "sparseMatrix") || methods::is(x, "diagonalMatrix"))) {
    methods::as(methods::as(x, "generalMatrix"), "CsparseMatrix")
  } else {
    x
  }
}

# TRUE while a function is differentiated or compiled.
ad_context <- function() inside() > 0

# Matrices and series --------------------------------------------------------------------------------------------------

unstructured <- function(k) {
  size <- k * (k - 1) / 2
  corr <- function(x) {
    if (length(x) != size) unsupported("x", sprintf("must have %d elements; got %d.", size, length(x)))
    L <- base::diag(k)
    places <- L
    places[lower.tri(L)] <- seq_len(size)
    places[upper.tri(L, TRUE)] <- 0
    L <- L + if (is_any_tensor(x)) placed(x, places) else replace(0 * L, lower.tri(L), x)
    S <- tcrossprod(L)
    root <- sqrt(diag(S))
    S / outer(root, root)
  }
  list(parms = function() numeric(size), corr = corr)
}

# A matrix of elements of `x`, of 0 where `places` is 0.
placed <- function(x, places) {
  all <- c(flat(x), 0)
  at <- as.vector(places)
  fill(all[ifelse(at == 0, length(x) + 1, at)], dim(places))
}

# The covariance of the first values of a stationary series with variance 1, and the standard deviation of a step.
autoregression <- function(phi, n) {
  k <- length(phi)
  # Yule and Walker's equations, gamma_i = sum_j phi_j gamma_|i - j| with gamma_0 = 1
  step <- outer(seq_len(k), seq_len(k), function(i, j) abs(i - j))
  terms <- base::matrix(0, k, k)
  places <- lapply(seq_len(k), function(h) { # of gamma_h in equation i: the sum of phi_j with |i - j| = h
    (step == h) + 0
  })
  system <- base::diag(k)
  for (h in seq_len(k)) {
    e <- base::matrix(as.double(seq_len(k) == h), 1L)
    system <- system - matmul_tensor_or_not(places[[h]], phi) %*% e
  }
  gamma <- as.vector(solve(system, phi))
  sd <- sqrt(1 - sum(phi * gamma))
  size <- min(n, k)
  lags <- abs(base::outer(seq_len(size), seq_len(size), "-"))
  start <- if (is_any_tensor(phi)) placed(gamma, lags) + base::diag(size) else base::matrix(c(1, gamma)[lags + 1], size)
  list(start = start, sd = sd)
}

matmul_tensor_or_not <- function(m, v) m %*% (if (is_any_tensor(v)) fill(v, c(length(v), 1L)) else base::matrix(v))

dautoreg <- function(x, mu = 0, phi, log = FALSE, scale = 1) {
  z <- as.vector((x - mu) / scale)
  n <- length(z)
  order <- min(length(phi), n)
  of <- autoregression(phi, n)
  value <- dmvnorm_rtmb(z[seq_len(order)], 0, of$start, log = TRUE)
  if (n > order) {
    later <- (order + 1):n
    expected <- 0
    for (j in seq_along(phi)) expected <- expected + phi[j] * z[later - j]
    value <- value + sum(dnorm(z[later], expected, of$sd, log = TRUE))
  }
  value <- value - if (length(scale) == 1L) n * log_of(scale) else sum(log_of(scale))
  if (log) value else exp(value)
}

log_of <- function(x) log(x)

# Each density is of a normal vector with mean 0: its precision is found by its values, which are a quadratic function.
dseparable <- function(...) {
  densities <- lapply(list(...), found_function)
  separable <- function(x, mu = 0, scale = 1, log = TRUE) {
    if (!log) unsupported("log", "must be TRUE for a separable density.")
    z <- z0 <- (x - mu) / scale
    sizes <- dim(x)
    if (length(sizes) != length(densities)) unsupported("x", "must have a dimension for each density.")
    total <- 0
    for (i in seq_along(densities)) {
      of <- precision_of(densities[[i]], sizes[i])
      total <- total + (of$at_zero + sizes[i] * base::log(2 * pi) / 2) * prod(sizes[-i])
      rest <- dim(z)[-1L]
      z <- aperm(as_array_of(of$Q %*% as_array_of(z, c(sizes[i], prod(rest))), c(sizes[i], rest)), rotation(sizes))
    }
    log_scale <- if (length(scale) == 1L) length(x) * log_of(scale) else sum(log_of(scale))
    total - sum(z * z0) / 2 - length(x) * base::log(2 * pi) / 2 - log_scale
  }
  separable
}

rotation <- function(sizes) c(seq_along(sizes)[-1L], 1L)

as_array_of <- function(x, sizes) if (is_any_tensor(x)) fill(x, sizes) else array(x, sizes)

# A quadratic log density of vectors: its value at 0, and the precision, by polarisation.
precision_of <- function(density, n) {
  f <- function(x) sum(density(x))
  at_zero <- f(numeric(n))
  unit <- base::diag(n)
  single <- lapply(seq_len(n), function(i) f(unit[i, ]) - at_zero)
  pairs <- which(base::lower.tri(unit), arr.ind = TRUE)
  double <- lapply(seq_len(nrow(pairs)), function(k) {
    i <- pairs[k, 1L]
    j <- pairs[k, 2L]
    f(unit[i, ] + unit[j, ]) - at_zero - single[[i]] - single[[j]]
  })
  values <- do.call(c, c(lapply(single, function(x) 2 * x), double))
  places <- base::diag(seq_len(n), n)
  places[base::lower.tri(unit)] <- n + seq_len(nrow(pairs))
  places <- places + base::t(places * base::lower.tri(unit))
  Q <- if (is_any_tensor(values)) -placed(values, places) else -base::matrix(values[places], n)
  list(at_zero = at_zero, Q = Q)
}

# exp(A) v, as it is; the way there differs.
expAv <- function(A, v, transpose = FALSE, ...) { # nolint: object_name_linter. RTMB's name.
  A <- as.matrix(A)
  if (transpose) A <- t(A)
  found <- op_expm(A) %*% v
  if (is.null(dim(v)) || length(dim(v)) < 2L) as.vector(found) else found
}

# Weights by the distance to each value, by a smooth kernel of radius `R` in the units of the grid.
interpol2Dfun <- function(z, xlim = c(1, nrow(z)), ylim = c(1, ncol(z)), R = 2, ...) { # nolint: object_name_linter.
  force(R)
  places <- function(x, limits, n) (x - limits[1L]) / (limits[2L] - limits[1L]) * (n - 1)
  half <- function(x) (1 + cos(pi * x)) / 2
  reach <- seq.int(-ceiling(R), ceiling(R) + 1)
  offsets <- expand.grid(i = reach, j = if (ncol(z) > 1L) reach else 0)
  function(x, y) {
    size <- max(length(x), length(y))
    i <- places(recycled(op_convert_to_tensor(x), size), xlim, nrow(z))
    j <- places(recycled(op_convert_to_tensor(y), size), ylim, ncol(z))
    at <- function(v) op_floor(op_stop_gradient(v))
    near_i <- op_add(column(at(i)), base::matrix(offsets$i, 1L))
    near_j <- op_add(column(at(j)), base::matrix(offsets$j, 1L))
    distance <- sqrt(op_square(near_i - column(i)) + op_square(near_j - column(j)) + 1e-100)
    inside <- function(v, n) op_logical_and(v >= 0, v <= n - 1)
    known <- op_logical_and(op_logical_and(inside(near_i, nrow(z)), inside(near_j, ncol(z))), distance <= R)
    index <- op_cast(op_clip(near_i, 0, nrow(z) - 1) + nrow(z) * op_clip(near_j, 0, ncol(z) - 1), "int64")
    values <- op_take(array_of(as.vector(ifelse(is.na(z), 0, z))), index + 1L, 1L)
    there <- op_take(array_of(as.vector(!is.na(z)) + 0), index + 1L, 1L)
    weights <- there * op_where(known, half(1 - half(op_minimum(distance / R, 1))), 0)
    found <- op_sum(weights * values, axis = 2L) / op_sum(weights, axis = 2L)
    found <- op_where(op_logical_and(inside(i, nrow(z)), inside(j, ncol(z))), found, NaN)
    of_numbers_too(found, x, y)
  }
}

interpol1Dfun <- function(z, xlim = c(1, length(z)), R = 2, ...) { # nolint: object_name_linter. RTMB's name.
  f <- interpol2Dfun(base::matrix(z), xlim, c(-0.5, 0.5), R)
  function(x) f(x, numeric(length(x)))
}

# Tapes ----------------------------------------------------------------------------------------------------------------

make_tape <- function(f, x) {
  f <- match.fun(f)
  start <- x
  then <- captured(f) # what RTMB writes on its tape
  of_vector <- function(v) {
    hold(then, environment())
    v <- as_one_vector(v)
    run <- if (is_any_tensor(v) || ad_context()) tensor_aware(f) else f
    if (is.list(start)) {
      v <- arranged(v, layout_like(start))
    } else if (!is.null(dim(start))) {
      v <- if (is_any_tensor(v)) fill(v, dim(start)) else array(v, dim(start))
    } else if (!is.null(attr(start, "skeleton"))) {
      attr(v, "skeleton") <- attr(start, "skeleton")
    }
    run(v)
  }
  update <- function() {
    then <<- captured(f)
    invisible()
  }
  tape_of(of_vector, length(unlist(x)), as.double(unlist(x)), update)
}

as_one_vector <- function(x) if (is.list(x)) do.call(c, unname(lapply(x, as.vector))) else x

layout_like <- function(start) {
  list(
    names = names(start), sizes = lengths(start, use.names = FALSE), attributes = lapply(unname(start), attributes),
    form = NULL
  )
}

relist_rtmb <- function(flesh, skeleton = attr(flesh, "skeleton")) {
  if (is_any_tensor(flesh)) arranged(flesh, layout_like(unclass(skeleton))) else utils::relist(flesh, skeleton)
}

tape_of <- function(f, domain, at = numeric(domain), update = invisible) {
  structure(f, class = "gradops_tape", domain = domain, at = at, update = update)
}

get_tape <- function(obj, ...) make_tape(obj$env$func, obj$env$parameters)

tape_methods <- function(tape) {
  f <- unclass(tape)
  domain <- attr(tape, "domain")
  attributes(f) <- NULL
  jacobian_at <- function(x) matrix_of_rows(jacobian(function(v) as.vector(f(v)), x), length(x))
  list(
    jacobian = jacobian_at,
    jacfun = function(sparse = FALSE) {
      tape_of(function(x) if (sparse) as_sparse(jacobian_at(x)) else jacobian_at(x), domain)
    },
    atomic = function() tape, simplify = function(...) invisible(tape), reorder = function(...) invisible(tape),
    force.update = attr(tape, "update"),
    par = function() attr(tape, "at"), graph = function() adjacency(autodiff_graph(f(parameter(attr(tape, "at"))))),
    newton = function(random, ...) inner_tape(f, attr(tape, "at"), random, "mode"),
    laplace = function(random, sparse = TRUE, SPA = FALSE, ...) {
      inner_tape(f, attr(tape, "at"), random, "laplace", flag(SPA))
    }
  )
}

# RTMB's form of a graph: TRUE in the row of an operation, or a leaf, and the column of one that uses its result.
adjacency <- function(graph) {
  count <- nrow(graph$boxes)
  Matrix::sparseMatrix(
    count + 1L - graph$arrows$to, count + 1L - graph$arrows$from,
    dims = c(count, count), dimnames = rep(list(rev(graph$boxes$name)), 2L)
  )
}

matrix_of_rows <- function(x, columns) {
  if (is_any_tensor(x)) fill(x, c(length(x) / columns, columns)) else matrix(x, ncol = columns)
}

as_sparse <- function(x) Matrix::Matrix(x, sparse = TRUE)

#' @export
`$.gradops_tape` <- function(x, name) {
  methods <- tape_methods(x)
  if (name == "methods") function() names(methods) else component(methods, name)
}

#' @export
print.gradops_tape <- function(x, ...) {
  cat("<tape of", attr(x, "domain"), "numbers>\n")
  invisible(x)
}

# A tape of the other variables, with the inner ones where `f` is least, or integrated out there.
inner_tape <- function(f, at, random, question, ...) {
  places <- base::order(c(seq_along(at)[-random], random))
  of_parts <- function(outer, u) sum(f(c(outer, u)[places]))
  write_closed_over(f)
  here <- new.env()
  here$names <- list()
  inner <- call_core(
    "inference.inner.Inner", callback(differentiated(of_parts, here)), operand(array_of(at[-random])),
    operand(array_of(at[random]))
  )
  tape_of(function(outer) {
    outer <- as_one_vector(outer)
    found <- several(call_core(paste0("inference.inner.Inner.", question), inner, operand(as_doubles(outer)), ...))
    if (is_any_tensor(outer)) found else as.vector(in_numbers(found))
  }, length(at) - length(random), at[-random])
}

# Data by an index that is a variable, whose derivative is 0.
data_eval <- function(f, x) {
  if (missing(x)) {
    return(f())
  }
  if (!is_any_tensor(x)) {
    return(f(x))
  }
  known <- known_values(x)
  if (is.null(known)) r_function(function(x) f(as.vector(x)))(op_stop_gradient(x)) else f(as.vector(known))
}

# `f` gets plain numbers, as RTMB's does, so that it may call what takes no tensors. `y` of `df()` has derivatives.
ad_joint <- function(f, df, name = NULL, complex = FALSE) {
  if (flag(complex)) unsupported("complex", "must be `FALSE` here.", "Give real and imaginary parts as one vector.")
  f <- match.fun(f)
  df <- match.fun(df)
  last <- list()
  value <- r_function(function(x) { # once for a value and its gradient, which has the value, too
    if (!identical(last$x, x)) last <<- list(x = x, y = f(x))
    last$y
  })
  differentiated <- op_custom_gradient(
    function(x) value(op_stop_gradient(x)), function(x, upstream) df(x, differentiated(x), upstream)
  )
  function(x) if (is_any_tensor(x)) differentiated(x) else f(x)
}
