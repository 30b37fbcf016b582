# R evaluates an argument where it is first used. In `f(p[1])`, where `f` prints its argument `y` in `with_no_grad()`
# and squares it afterwards, that is inside of the scope, so nobody would record `p[1]`, and `y` be a constant for good.
# In a gradient function, which runs in a backward pass, it is the same. So what they mention is evaluated before.

# Evaluate the arguments that a function mentions and that nobody has used yet, as R's own `lapply()` does. Functions
# that gradops makes force theirs themselves: to look for them would be a tenth of the time of a small gradient.
force_captured <- function(f) {
  if (rlang::is_closure(f) && !identical(topenv(environment(f)), topenv())) {
    force_mentioned(unique(all.names(body(f))), environment(f))
  }
}

# Evaluate the arguments that code in a scope mentions if the function that it stands in mentions them elsewhere, too.
# One that is mentioned in the scope alone may be code that a wrapper of the scope was given: it belongs there.
force_shared <- function(code, frame) {
  inside <- all.names(code)
  f <- called_in(frame)
  if (rlang::is_closure(f)) {
    counts <- table(factor(all.names(body(f)), unique(inside))) - table(factor(inside, unique(inside)))
    force_mentioned(names(counts)[counts > 0], frame)
  }
}

# Evaluate what is bound to these names in an environment or, if not there, in one around it, short of a package's.
force_mentioned <- function(names, env) {
  while (length(names) > 0 && !identical(env, topenv(env))) {
    here <- names[rlang::env_has(env, names)]
    for (name in here[rlang::env_binding_are_lazy(env, here)]) {
      attempt(get(name, env)) # it comes again where it is used
    }
    names <- setdiff(names, here)
    env <- parent.env(env)
  }
}

# The same for a scope that lasts until a frame ends, where that is of `local()`: the function around goes on after it.
force_before <- function(frame) {
  around <- parent.env(frame)
  f <- called_in(around)
  if (rlang::is_closure(f) && !identical(topenv(around), topenv())) { # our own `within_scope()` is none
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
