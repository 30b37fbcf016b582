# Objectives that are a sum over shards of data: in this process, on R workers, or on workers of Dask or Ray.
#
# An evaluator here is a `function(which, arguments)`, where `which` is "both" (value and derivative) or "second" (the
# Hessian): the two evaluators of objective(), summed over the shards.

sharded_evaluators <- function(f, data, jit, cluster, call = users_call()) {
  if (!is.null(cluster)) {
    if (is_python(f)) cannot_travel("A Python function cannot be sent to R workers.", "Pass an R function.", call)
    summed <- cluster_sum(f, named_shards(data, call), jit, check_cluster(cluster, call), call)
  } else if (is_python(f)) {
    summed <- engine_sum(f, data, call)
  } else if (held_by_engine(data, call)) {
    cannot_travel(
      "An R function cannot be sent to the Python workers that hold `data`.",
      c(
        "Hold the shards in R, `data = list(...)`; `cluster = parallel::makeCluster(n)` sends them to R workers.",
        "Or pass a Python function."
      ), call
    )
  } else {
    summed <- process_sum(f, named_shards(data, call), jit)
  }
  list(
    both = structure(function(arguments) summed("both", arguments), explain = attr(summed, "explain")),
    second = function(arguments) summed("second", arguments)
  )
}

# Python has no names for the elements of a list.
unnamed <- function(data) if (is_python(data)) data else unname(data)

is_python <- function(x) inherits(x, "python.builtin.object")

# A list of shards with the names that errors use.
named_shards <- function(data, call) {
  if (!is.list(data) || is.object(data) || length(data) == 0) {
    abort(
      c(
        sprintf("`data` must be a list of shards; got %s.", friendly(data)),
        i = if (is.data.frame(data)) "`split(data, groups)` makes one of a data frame."
      ),
      class = c("gradops_error_type", "gradops_error"), argument = "data", call = call
    )
  }
  names <- rlang::names2(data)
  names(data) <- ifelse(nzchar(names), sprintf("`data$%s`", names), sprintf("`data[[%d]]`", seq_along(data)))
  data
}

cannot_travel <- function(message, hints, call) {
  abort(
    c(message, rlang::set_names(hints, "i")),
    class = c("gradops_error_type", "gradops_error"), argument = "f", call = call
  )
}

# TRUE if Dask or Ray hold the shards.
held_by_engine <- function(data, call) {
  maybe <- is_python(data) || is.list(data) && any(vapply(data, is_python, NA))
  maybe && py_to_r(call_core("interop.r.is_on_engine", unnamed(data), .call = call))
}

# In this process ------------------------------------------------------------------------------------------------------

process_sum <- function(f, shards, jit) {
  held <- lapply(shards, function(shard) {
    at <- function(x, ...) f(x, shard, ...)
    environment(at) <- rlang::new_environment(list(f = f, shard = shard), parent = globalenv()) # like a user's function
    list(
      both = evaluator("interop.r.objective", at, jit, pair_caller),
      second = evaluator("interop.r.curvature", at, jit)
    )
  })
  summed <- function(which, arguments) {
    total <- NULL
    progress <- shows_progress()
    if (progress) cli::cli_progress_bar("objective", total = length(held))
    for (shard in names(held)) {
      found <- rlang::try_fetch(
        check_one_value(held[[shard]][[which]](arguments), which),
        error = function(condition) if (is_out_of_time(condition)) rlang::zap() else shard_failed(shard, condition)
      )
      total <- if (is.null(total)) found else added(total, found)
      if (progress) cli::cli_progress_update()
    }
    total
  }
  structure(summed, explain = attr(held[[1]]$both, "explain"))
}

check_one_value <- function(found, which) {
  if (which == "both" && length(found$value) != 1) {
    abort(
      sprintf("`f` must return one number for a shard; got %d.", length(found$value)),
      class = c("gradops_error_gradient", "gradops_error"), argument = "f", call = NULL
    )
  }
  found
}

added <- function(x, y) {
  if (is.list(x)) Map(added, x, y) else x + y
}

shard_failed <- function(shard, condition, call = users_call()) {
  abort(
    sprintf("`f` has failed on %s.", shard),
    class = c("gradops_error_shard", "gradops_error"), parent = condition, shard = shard, argument = "data", call = call
  )
}

# R workers ------------------------------------------------------------------------------------------------------------

# Each worker of a cluster from the package parallel keeps some of the shards, and sends back their sum.
cluster_sum <- function(f, shards, jit, cluster, call) {
  pieces <- parallel::splitIndices(length(shards), min(length(cluster), length(shards)))
  cluster <- cluster[seq_along(pieces)]
  key <- basename(tempfile("shards-"))
  on_each <- function(jobs, work, ..., call = users_call()) {
    lost <- function(condition) worker_lost(cluster, lapply(pieces, function(i) names(shards)[i]), condition, call)
    attempt(parallel::clusterApply(cluster, jobs, work, ...), lost)
  }
  on_each(lapply(pieces, function(i) shards[i]), hold_on_worker, key, f, jit)
  function(which, arguments) {
    found <- on_each(pieces, sum_on_worker, key, which, arguments, config_backend(), config_floatx())
    for (one in found) if (!is.null(one$failed)) shard_failed(one$failed, one$condition)
    Reduce(added, lapply(found, `[[`, "sum"))
  }
}

check_cluster <- function(cluster, call) {
  if (!inherits(cluster, "cluster")) {
    abort(
      sprintf("`cluster` must be a cluster from `parallel::makeCluster()`; got %s.", friendly(cluster)),
      class = c("gradops_error_type", "gradops_error"), argument = "cluster", call = call
    )
  }
  if (!all(unlist(parallel::clusterCall(cluster, requireNamespace, "gradops", quietly = TRUE)))) {
    abort(
      c(
        "gradops is not installed where the workers of `cluster` look for packages.",
        i = "`parallel::clusterCall(cluster, .libPaths, .libPaths())` has them look where this session does."
      ),
      class = c("gradops_error_argument", "gradops_error"), argument = "cluster", call = call
    )
  }
  cluster
}

# Runs on a worker, which keeps its shards until it stops.
hold_on_worker <- function(shards, key, f, jit) {
  state[[key]] <- process_sum(f, shards, jit)
  NULL
}

sum_on_worker <- function(piece, key, which, arguments, backend, floatx) {
  local_backend(backend)
  if (config_floatx() != floatx) config_set_floatx(floatx)
  tryCatch(list(sum = state[[key]](which, arguments)), gradops_error_shard = function(condition) {
    list(failed = condition$shard, condition = rlang::error_cnd(message = rlang::cnd_message(condition$parent)))
  })
}

# Raise the error for a worker that no longer answers. Other workers may still be busy with earlier requests.
worker_lost <- function(cluster, names, condition, call) {
  gone <- vapply(seq_along(cluster), function(i) {
    attempt(is.null(parallel::clusterCall(cluster[i], Sys.getpid)), function(error) TRUE)
  }, NA)
  if (!any(gone)) rlang::cnd_signal(condition)
  abort(
    c(
      sprintf("The worker of `cluster` that holds %s is lost.", paste(unlist(names[gone]), collapse = ", ")),
      i = "Stop the cluster, and make a new cluster and objective."
    ),
    class = c("gradops_error_shard", "gradops_error"), parent = condition, argument = "cluster", call = call
  )
}

# Python's engines -----------------------------------------------------------------------------------------------------

# Evaluate a Python function on shards that a Python engine holds.
engine_sum <- function(f, data, call) {
  derivatives <- list()
  for (which in c("both", "second")) {
    derivatives[[which]] <- call_core("interop.r.sharded_objective", which, f, operand(unnamed(data)), .call = call)
  }
  function(which, arguments) py_to_r(call_python(derivatives[[which]], arguments, in_r = TRUE))
}
