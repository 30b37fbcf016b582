# Registration of the methods that make base R's functions work on tensors.
#
# If base R's function is a generic, tensors have methods, registered at load time; they silently replace reticulate's
# own. If it is not, gradops exports a namesake with the same arguments. The namesake tests whether an argument has a
# class; if none has, R's own code runs in the namesake's frame (methods-quick.R). If an argument is a tensor, the
# tensor's method runs. For other classes the default method is base R's function, which gets the arguments as they are,
# unevaluated and missing ones included. S4 objects go to the S4 generic of the same name, which packages such as Matrix
# define.

# Methods for the generics of base R, utils and stats.
methods_of_tensors <- function() {
  list(
    base = list(
      Ops = Ops_tensor, Math = Math_tensor, Summary = Summary_tensor, Complex = Complex_tensor,
      `[` = subset_tensor, `[<-` = assign_tensor, `[[` = element_tensor, `[[<-` = assign_element_tensor,
      `$` = dollar_tensor, names = names_tensor, `names<-` = set_names_tensor,
      dim = dim_tensor, `dim<-` = assign_dim_tensor, dimnames = dimnames_tensor, `dimnames<-` = set_dimnames_tensor,
      `length<-` = assign_length_tensor, length = length_tensor,
      t = t_tensor, aperm = aperm_tensor,
      as.array = as_array_tensor, as.matrix = as_matrix_tensor, as.vector = as_vector_tensor,
      as.double = as_double_tensor, as.integer = as_integer_tensor, as.logical = as_logical_tensor,
      as.complex = as_complex_tensor, as.character = as_character_tensor, as.list = as_list_tensor,
      as.data.frame = as_data_frame_tensor,
      cbind = cbind_tensor, rbind = rbind_tensor, c = c_tensor, rep = rep_tensor, rev = rev_tensor, diff = diff_tensor,
      solve = solve_tensor, chol = chol_tensor, qr = qr_tensor, determinant = determinant_tensor,
      sort = sort_tensor, xtfrm = xtfrm_tensor, unique = unique_tensor, duplicated = duplicated_tensor,
      mean = mean_tensor, scale = scale_tensor,
      is.na = is_na_tensor, is.nan = is_na_tensor, is.finite = is_finite_tensor, is.infinite = is_infinite_tensor,
      anyNA = any_na_tensor, is.numeric = is_numeric_tensor, is.matrix = is_matrix_tensor, is.array = is_array_tensor,
      rowsum = rowsum_tensor, by = by_tensor,
      all.equal = all_equal_tensor, isSymmetric = is_symmetric_tensor, summary = summary_tensor,
      format = format_any_tensor,
      toString = toString_tensor, print = print_tensor
    ),
    utils = list(head = head_tensor, tail = tail_tensor, str = str_tensor),
    stats = list(
      median = median_tensor, quantile = quantile_tensor, weighted.mean = weighted_mean_tensor,
      aggregate = aggregate_tensor, as.ts = as_ts_tensor,
      lag = series_method("lag"), window = series_method("window"),
      time = row_method("time"), start = row_method("start"), end = row_method("end"),
      frequency = row_method("frequency"), cycle = row_method("cycle"), deltat = row_method("deltat")
    )
  )
}

# Methods of the namesakes that gradops exports for functions of base R and stats that are not generics. Functions in
# R/methods-namesakes.R need no line here: method_named_for() finds their methods.
namesakes <- function() {
  listed <- list(
    base = base::c(special_methods(), list(
      crossprod = crossprod_tensor, tcrossprod = tcrossprod_tensor, svd = svd_tensor, matrix = matrix_tensor,
      array = array_tensor, drop = drop_tensor, sweep = sweep_tensor,
      paste = paste_tensor, paste0 = paste0_tensor, sprintf = sprintf_tensor, sub = sub_tensor, gsub = gsub_tensor,
      isTRUE = is_true_tensor, isFALSE = is_false_tensor,
      toupper = toupper_tensor, tolower = tolower_tensor, trimws = trimws_tensor, substr = substr_tensor,
      substring = substring_tensor, chartr = chartr_tensor, casefold = casefold_tensor, strsplit = strsplit_tensor,
      nchar = nchar_tensor, startsWith = startsWith_tensor, endsWith = endsWith_tensor, cat = cat_tensor,
      which.max = which_max_tensor, which.min = which_min_tensor, zapsmall = zapsmall_tensor
    )),
    stats = base::c(
      distribution_methods(), random_methods(), refused_methods(), list(toeplitz = toeplitz_tensor, ave = ave_tensor)
    )
  )
  others <- setdiff(base::unlist(lapply(generics_of_r(), names)), base::unlist(lapply(listed, names)))
  for (name in others) listed[[package_of_r(name)]][[name]] <- method_named_for(name)
  listed
}

# `rowSums` has the method row_sums_tensor(), `qr.Q` qr_q_tensor(), and `diag<-` assign_diag_tensor().
method_named_for <- function(name) {
  words <- base::tolower(base::gsub("([a-z])([A-Z])", "\\1_\\2", base::gsub(".", "_", name, fixed = TRUE)))
  words <- base::sub("^(.*)<-$", "assign_\\1", words)
  get(base::paste0(words, "_tensor"), topenv())
}

# Default methods that are not base R's function.
own_defaults <- list(outer = outer_default)

# Namesakes that work element by element.
elementwise_names <- function() {
  base::c(
    "choose", "lchoose", "atan2", "psigamma", names(special_methods()), names(distribution_generics())
  )
}

register_tensor_methods <- function() {
  register("$", "gradops_context", context_field, baseenv())
  methods <- methods_of_tensors()
  if (getRversion() >= "4.3.0") {
    methods$base$matrixOps <- matrix_ops_tensor
    methods$base$`@` <- at_tensor
    methods$base$chooseOpsMethod <- choose_ops_method_tensor
  }
  for (package in names(methods)) {
    for (generic in names(methods[[package]])) {
      method <- methods[[package]][[generic]]
      if (generic %in% named_by_r) method <- named_as_r(method, get(generic, envir = asNamespace(package)))
      register(generic, tensor_classes, method, asNamespace(package))
    }
  }
  register("solve", "gradops_qr", solve_tensor, baseenv())
}

register_namesakes <- function() {
  here <- topenv()
  methods <- namesakes()
  by_element <- elementwise_names()
  distributions <- names(distribution_generics())
  for (package in names(methods)) {
    for (name in names(methods[[package]])) {
      original <- get(name, envir = asNamespace(package), mode = "function")
      method <- methods[[package]][[name]]
      if (name %in% named_by_r) method <- named_as_r(method, original)
      if (name %in% by_element) method <- elementwise_past_missing(method)
      if (is_s3_generic(original, name)) method <- dispatching(method, name, package)
      if (!name %in% names(own_defaults)) {
        asked <- if (name %in% distributions) asking_log(name, get(name, here))
        keep_quick(name, quick(get(name, here), name, original, asked))
      }
      register_on_namesake(name, "gradops_tensor", method)
      register_on_namesake(name, "gradops_mixed", made_when_called(adopting, method))
      plain <- if (name %in% by_element) made_when_called(matrix_elementwise, original) else original
      register_on_namesake(name, "gradops_s4", to_s4(name, package, plain))
      register_on_namesake(name, "default", own_defaults[[name]] %||% original)
    }
  }
  observed <- observed_methods()
  for (name in names(observed)) register_on_namesake(name, "gradops_observed", observed[[name]])
  register("Ops", "gradops_observed", Ops_tensor, baseenv())
  register_sparse_tensors()
}

# `UseMethod()` looks for methods in the environment of the function that calls it: gradops, or R's namespace for a
# quick namesake.
register_on_namesake <- function(name, class, method) {
  quick <- internal_namesakes[[name]]
  for (home in base::c(topenv(), if (!is.null(quick)) environment(quick))) register(name, class, method, home)
}

# Register through an environment that is not a namespace, as R would note the methods as functions of that namespace.
register <- function(generic, classes, method, envir) {
  envir <- new.env(parent = envir)
  for (class in classes) registerS3method(generic, class, method, envir = envir)
}

to_s4 <- function(name, package, original) {
  force(name)
  force(package)
  force(original)
  function(...) {
    s4 <- methods::getGeneric(name, package = package)
    if (is.null(s4)) original(...) else s4(...)
  }
}

# Make an elementwise function of R, which takes plain vectors, also take matrices of the package Matrix.
matrix_elementwise <- function(original) {
  replacing(original, function(arguments, value) {
    do.call(original, lapply(arguments, function(x) if (is_s4_matrix(x)) as.matrix(x) else x))
  })
}

# `make(f)`, made at its first call: most of these functions are never called, and making them all takes a fifth of the
# time to load gradops.
made_when_called <- function(make, f) {
  force(make)
  force(f)
  made <- NULL
  function(...) {
    if (is.null(made)) made <<- make(f)
    made(...)
  }
}

# Values on which a namesake dispatches. They mean that the arguments include a tensor of gradops, also one of another
# package, an S4 object, or a sparse matrix; NULL means none of these.
has_tensor <- structure(list(), class = "gradops_tensor")
has_mixed <- structure(list(), class = "gradops_mixed")
has_s4 <- structure(list(), class = "gradops_s4")
has_sparse <- structure(list(), class = "gradops_sparse")

any_tensor <- function(...) {
  inherits(among(...), c("gradops_tensor", "gradops_mixed"))
}

among <- function(...) {
  ours <- theirs <- s4 <- marked <- FALSE
  for (x in list(...)) {
    if (is.object(x)) {
      if (isS4(x)) {
        s4 <- TRUE
      } else if (is.environment(x)) {
        if (is_tensor(x)) ours <- TRUE else theirs <- TRUE
      } else if (is_observed(x)) {
        marked <- TRUE
      } else if (is_sparse_tensor(x)) {
        return(has_sparse)
      }
    }
  }
  found <- if (ours) if (theirs) has_mixed else has_tensor else if (s4) has_s4
  if (marked) structure(list(), class = c("gradops_observed", class(found))) else found
}

# `method` for arguments that include another package's tensors.
adopting <- function(method) {
  replacing(method, function(arguments, value) do.call(method, lapply(arguments, adopted), quote = TRUE))
}

# A function with the formals of `f` that returns `use(arguments, value)`. `arguments` are the call's, by name, as some
# may be empty (`dnorm(x, , 2)`); `value` is `f`'s value, computed only if `use` reads it.
replacing <- function(f, use) {
  force(use)
  names <- names(formals(f))
  symbols <- stats::setNames(lapply(names, as.name), ifelse(names == "...", "", names))
  given <- lapply(seq_along(names), function(i) {
    part <- as.call(base::c(as.name("list"), symbols[i]))
    if (names[i] == "...") part else bquote(if (!missing(.(symbols[[i]]))) .(part))
  })
  body <- call(".use", as.call(base::c(quote(base::c), given)), as.call(base::c(as.name(".f"), symbols)))
  as.function(base::c(formals(f), body), list2env(list(.f = f, .use = use), parent = topenv())) # unlike arguments
}

# Common helpers -------------------------------------------------------------------------------------------------------

# Elements by column: as a vector; in a new shape; recycled or cut to a given number. R's values stay R's, so that they
# go to the backend of the tensors they are used with.
flat <- function(x) {
  if (!is_any_tensor(x)) {
    return(array_of(r_vector(x)))
  }
  (if (!is.null(state$scalars)) rearranged(as.vector, x)) %||% call_core("interop.r.flat", x)
}

fill <- function(x, dim) {
  if (!is_any_tensor(x)) {
    return(array_of(r_vector(x), dim))
  }
  filled <- if (!is.null(state$scalars) && length(x) == prod(dim)) {
    rearranged(function(cells) base::array(cells, dim), x)
  }
  filled <- filled %||% call_core("interop.r.fill", x, as.list(as.integer(dim)))
  made_by(filled, function(x) fill(x, dim), list(x))
}

recycled <- function(x, count) {
  if (!is_any_tensor(x)) {
    return(array_of(rep_len(r_vector(x), count)))
  }
  logged <- if (!is.null(state$scalars)) rearranged(function(cells) rep_len(cells, count), x)
  logged %||% call_core("interop.r.repeated", x, count)
}

r_vector <- function(x) {
  if (is.object(x)) x <- drop_class(x)
  if (!is.numeric(x) && !is.logical(x) && !is.complex(x)) not_numeric("x", x, NULL)
  as.vector(x)
}

shape_of <- function(x) {
  dim(x) %||% length(x)
}

# Values if they are known; NULL for a tensor in a trace. The failure is not raised, as R would take 20 ms to note its
# stack.
known_values <- function(x) {
  to_r <- core[["interop.r.to_r"]] %||% load_core("interop.r.to_r")
  found <- tryCatch(
    answer(py_call(to_r, x), NULL, fail = function(...) NULL),
    gradops_error = function(error) NULL # of a stale tensor
  )
  if (!is.null(found)) py_to_r(found)
}

# The values as an R vector if `x` has one dimension, else as an R array.
r_values <- function(x, call = parent.frame()) {
  value <- values_of(x, call = call)
  if (length(dim(value)) == 1L) as.vector(value) else value
}

needs_values <- function(what, instead, call = parent.frame()) {
  abort(
    c(sprintf("%s needs the values of the tensor, which are not known while a function is traced.", what), i = instead),
    class = c("gradops_error_jit", "gradops_error"), call = call
  )
}

unsupported <- function(argument, what, instead = NULL, call = parent.frame()) {
  abort(
    c(sprintf("`%s` %s", argument, what), i = instead),
    class = c("gradops_error_argument", "gradops_error"), argument = argument, call = call
  )
}
