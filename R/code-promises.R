# R evaluates an argument where it is first used. If `f`, called as `f(p[1])`, first prints its argument `y` in
# `with_no_grad()` and squares it later, R evaluates `p[1]` inside the scope. It would not be recorded, and `y` would
# stay a constant. The same happens in a gradient function, which runs in a backward pass. So arguments that such code
# mentions are evaluated before it runs.

# Evaluate the arguments that a function mentions and that have not been used yet, as R's own `lapply()` does. Functions
# that gradops makes force their arguments themselves: looking for them would take a tenth of the time of a small
# gradient.
force_captured <- function(f) {
  if (rlang::is_closure(f) && !identical(topenv(environment(f)), topenv())) {
    force_mentioned(unique(all.names(body(f))), environment(f))
  }
}

# Evaluate the arguments that code in a scope mentions if the function around it mentions them elsewhere as well. An
# argument that only the scope mentions may be code that a wrapper passes to the scope, and has to run inside it.
force_shared <- function(code, frame) {
  inside <- all.names(code)
  f <- called_in(frame)
  if (rlang::is_closure(f)) {
    counts <- table(factor(all.names(body(f)), unique(inside))) - table(factor(inside, unique(inside)))
    force_mentioned(names(counts)[counts > 0], frame)
  }
}

# Evaluate the promises bound to these names in an environment or in the ones around it, up to a package's.
force_mentioned <- function(names, env) {
  while (length(names) > 0 && !identical(env, topenv(env))) {
    here <- names[rlang::env_has(env, names)]
    for (name in here[rlang::env_binding_are_lazy(env, here)]) {
      attempt(get(name, env)) # an error comes again where the argument is used
    }
    names <- setdiff(names, here)
    env <- parent.env(env)
  }
}

# Force such arguments for a scope that lasts until a frame ends. If the frame belongs to `local()`, the function around
# it runs on afterwards.
force_before <- function(frame) {
  around <- parent.env(frame)
  f <- called_in(around)
  if (rlang::is_closure(f) && !identical(topenv(around), topenv())) { # not gradops' own `within_scope()`
    counts <- table(all.names(body(f)))
    force_mentioned(names(counts)[counts > 1], around)
  }
}

# The function that is being called in a frame, or NULL. `eval()` in the frame, as `local()` does, is a later call.
called_in <- function(frame) {
  force(frame)
  calls <- which(vapply(sys.frames(), identical, NA, frame))
  if (length(calls) > 0) sys.function(calls[1])
}
