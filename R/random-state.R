# The state of R's generator of random numbers: what a checkpointed function draws from again, and by which a compiled
# one is seen to draw.

# NULL where nothing has drawn in this session yet.
random_state <- function() {
  globalenv()[[".Random.seed"]]
}

# The state to come back to, which there is from here on.
random_state_to_restore <- function() {
  if (is.null(random_state())) set.seed(NULL)
  random_state()
}

set_random_state <- function(state) {
  assign(".Random.seed", as.integer(state), globalenv())
  RNGkind() # R reads it: what R has read last, reticulate writes back when the call into Python ends
  NULL
}

# Has the core restore the state where it runs a checkpointed function again.
restore_random_numbers <- function() {
  if (is.null(state$restores_random_numbers)) {
    generators <- reticulate::import("gradops.flow.checkpointing", convert = FALSE)$generators
    restore <- callback(set_random_state, take = py_to_r)
    py_call(generators$append, tuple(callback(random_state_to_restore, identity), restore))
    state$restores_random_numbers <- TRUE
  }
}
