"""JAX: control flow by ``jax.lax``, on flat lists of arrays; every transform of JAX goes through it."""

import math

import jax
import jax.numpy as jnp

no_value = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def concrete(x, kind):
    """A 0-d array's value, or None where it is traced and not known."""
    try:
        return kind(x)
    except no_value:
        return None


def branch(index, functions):
    if index.dtype == bool:
        return jax.lax.cond(index, functions[1], functions[0])
    return jax.lax.switch(index, functions)


def scan(step, carry, rows, length, reverse, unroll):
    return jax.lax.scan(step, carry, rows, length, reverse, unroll)


def fori_loop(lower, upper, step, leaves):
    return jax.lax.fori_loop(lower, upper, step, leaves)


def while_loop(holds, step, leaves, bound):
    """A loop with a bound is two nested scans over its square root, so that it has a reverse-mode derivative
    and yet ends soon after its condition does."""
    if bound is None:
        return jax.lax.while_loop(holds, step, leaves)
    side = math.isqrt(max(bound - 1, 0)) + 1

    def once(state, _):
        count, going, leaves = state
        going = going & (count < bound)
        going = jax.lax.cond(going, lambda: jnp.asarray(holds(leaves), bool), lambda: going)
        leaves = jax.lax.cond(going, lambda: step(leaves), lambda: list(leaves))
        return (count + 1, going, leaves), None

    def several(state, _):
        return jax.lax.cond(state[1], lambda: jax.lax.scan(once, state, None, side)[0], lambda: state), None

    start = (jnp.asarray(0), jnp.asarray(True), list(leaves))
    return jax.lax.scan(several, start, None, -(-bound // side) if bound else 0)[0][2]


def vectorized_map(function, rows):
    return jax.vmap(function)(*rows)
