"""JAX: control flow by ``jax.lax``, on flat lists of arrays; every transform of JAX goes through it."""

import jax

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
    if bound is not None:  # scans, which have a reverse-mode derivative
        return NotImplemented
    return jax.lax.while_loop(holds, step, leaves)


def vectorized_map(function, rows):
    return jax.vmap(function)(*rows)
