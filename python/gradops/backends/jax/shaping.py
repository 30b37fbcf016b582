"""JAX kernels: shape, creation, joining, sorting, random numbers."""

import jax
import jax.numpy as jnp

from ... import defaults
from .._keys import cuts
from ..array.base import axes_of
from .base import native_dtype, sized

# Shape, creation, joining, sorting.

transpose = jnp.transpose
expand_dims = jnp.expand_dims


def reshape(x, newshape):
    return jnp.reshape(x, newshape)


def squeeze(x, axis=None):
    return jnp.squeeze(x, axes_of(x, axis))


def broadcast_to(x, shape):
    return jnp.broadcast_to(x, sized(shape))


def view(x, dtype=None):
    return x if dtype is None else x.view(native_dtype(dtype))


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = [v.item() if hasattr(v, "item") else v for v in (start, stop, step)]
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
    made = native_dtype(dtype)
    return jnp.arange(*values).astype(made) if made.kind in "bc" else jnp.arange(*values, dtype=made)


def sort(x, axis=-1):
    return jnp.sort(jnp.atleast_1d(x), axis, stable=True).reshape(x.shape if axis is not None else -1)


def argsort(x, axis=-1):
    order = jnp.argsort(jnp.atleast_1d(x), axis, stable=True)
    return order.astype(native_dtype("int64")).reshape(x.shape if axis is not None else -1)


def top_k(x, k, sorted=True, is_stable=True):
    values, positions = jax.lax.top_k(x, int(k))
    return values, positions.astype(native_dtype("int64"))


def split(x, indices_or_sections, axis=0):
    if not isinstance(indices_or_sections, int):
        indices_or_sections = cuts(indices_or_sections, x.shape[axis])
    return jnp.split(x, indices_or_sections, axis)  # one program, where a slice is one each


# Random numbers.


def random_uniform(like, shape, seed):
    return jax.random.uniform(jax.random.key(seed), tuple(shape), like.dtype)


def random_normal(like, shape, seed):
    return jax.random.normal(jax.random.key(seed), tuple(shape), like.dtype)


def random_gamma(like, alpha, shape, seed):
    return jax.random.gamma(jax.random.key(seed), alpha.astype(like.dtype), tuple(shape), like.dtype)


def random_binomial(like, counts, probabilities, shape, seed):
    counts, probabilities = counts.astype(like.dtype), probabilities.astype(like.dtype)
    return jax.random.binomial(jax.random.key(seed), counts, probabilities, tuple(shape), like.dtype)
