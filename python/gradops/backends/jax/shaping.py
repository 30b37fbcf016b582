"""JAX kernels: shape, creation, joining, sorting, random numbers, indexing."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ... import dtypes
from .._keys import cuts, dimensions, distinct, expanded, is_array, is_mask, last_of_each, parts_of
from ..array.base import axes_of
from ..array.shaping import extreme
from ..interface import looked, looked_at_a_value
from .base import dtype_name, is_real, native_dtype, sized, static_value
from .control import no_value

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
        dtype = "int64" if all(isinstance(v, int) for v in values) else dtypes.floatx()
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
    return jnp.split(x, indices_or_sections, axis)  # a single program; each slice would be one


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


# Indexing -------------------------------------------------------------------------------------------------------------


def native_key(x, key):
    """A key as JAX takes it, after a range check, because JAX would clamp positions; unknown ones are not checked."""
    if type(key) is slice:
        return key
    parts = parts_of(key)
    dim = 0
    for part in expanded(parts, x.ndim):
        if isinstance(part, int) and not isinstance(part, bool) or is_array(part) and not is_mask(part):
            _check_range(part, x.shape[dim])
        dim += dimensions(part)
    return tuple([_known(part) if is_mask(part) and is_array(part) else part for part in parts])


def _known(mask):
    """A mask as NumPy values if they are known, because JAX has no arrays whose size depends on values."""
    values = looked(mask, np.asarray)
    return mask if values is NotImplemented else values


def nonzero(x):
    truths = _known(x != 0)
    if isinstance(truths, np.ndarray):
        return tuple(map(jnp.asarray, np.nonzero(truths)))
    try:
        return jnp.nonzero(truths)
    except no_value as error:
        raise looked_at_a_value() from error


def get_item(x, key):
    return x[native_key(x, key)]


def _check_range(positions, size) -> None:
    if isinstance(positions, jax.core.Tracer):
        if size == 0 and positions.size:
            raise IndexError("a dimension of 0 has no positions")
        return
    values = np.asarray(positions)
    if values.size and not (-size <= values.min() and values.max() < size):
        raise IndexError(f"index {values.ravel()[:4]} is out of range for a dimension of {size}")


def _checked_indices(indices, size):
    _check_range(indices, size)
    return indices.astype(jnp.int32) if indices.dtype == bool else indices


def take(x, indices, axis=None):
    size = x.size if axis is None else x.shape[axis]
    indices = _checked_indices(indices, size)
    if not size and axis is None:
        return jnp.zeros(indices.shape, x.dtype)
    if not size:  # jnp.take loses the indices' shape for an empty dimension
        axis = axis % x.ndim
        return jnp.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return jnp.take(x, indices, axis, mode="wrap")


def take_along_axis(x, indices, axis=None):
    if axis is None:
        x, indices, axis = x.reshape(-1), indices.reshape(-1), 0
    return jnp.take_along_axis(x, _checked_indices(indices, x.shape[axis]), axis)


def add_at(x, key, updates):
    wide = jnp.float32 if x.dtype in (jnp.float16, jnp.bfloat16) else x.dtype  # sums of half precision stop growing
    if x.dtype == bool:  # for bools `add` means "or"
        return x.at[native_key(x, key)].max(jnp.asarray(updates).astype(bool))
    return x.astype(wide).at[native_key(x, key)].add(jnp.asarray(updates).astype(x.dtype).astype(wide)).astype(x.dtype)


def set_at(x, key, updates):
    updates = jnp.asarray(updates).astype(x.dtype)
    native = native_key(x, key)
    if distinct(key) or any(isinstance(p, jax.core.Tracer) for p in native):
        if not x.size:  # JAX does not check the updates' shape then
            updates = jnp.broadcast_to(updates, x[native].shape)
        return x.at[native].set(updates)
    grid = np.arange(x.size).reshape(x.shape)[tuple(np.asarray(p) if isinstance(p, jax.Array) else p for p in native)]
    last = last_of_each(grid.reshape(-1))  # the last of several values for a position wins, also in the gradient
    chosen = jnp.broadcast_to(updates, grid.shape).reshape(-1)[last]
    return x.reshape(-1).at[grid.reshape(-1)[last]].set(chosen, unique_indices=True).reshape(x.shape)


# Scattering. Here ``segment_max`` and ``segment_min`` have derivatives; JAX's own do not.


def _segments(smallest):
    def reduce(data, ids, count):
        start = jnp.full((count + 1, *data.shape[1:]), extreme(dtype_name(data), smallest), data.dtype)
        return (start.at[ids].max(data) if smallest else start.at[ids].min(data))[:count]

    @partial(jax.custom_jvp, nondiff_argnums=(2,))
    def differentiable(data, ids, count):
        return reduce(data, ids, count)

    @differentiable.defjvp
    def derivative(count, primals, tangents):
        (data, ids), (tangent, _) = primals, tangents
        y = differentiable(data, ids, count)
        line = jnp.zeros((1, *data.shape[1:]), data.dtype)
        wins = (data == jnp.concatenate([y, line])[ids]).astype(data.dtype)
        ties = jnp.zeros((count + 1, *data.shape[1:]), data.dtype).at[ids].add(wins)
        share = wins / jnp.maximum(ties, 1)[ids]
        return y, jnp.zeros_like(ties).at[ids].add(share * tangent)[:count]

    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(static_value(segment_ids).max()) + 1 if segment_ids.size else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        ids = jnp.where(inside, segment_ids, num_segments)
        return differentiable(data, ids, num_segments) if is_real(data) else reduce(data, ids, num_segments)

    return kernel


segment_max = _segments(True)
segment_min = _segments(False)


def block_at(x, starts, sizes):
    return jax.lax.dynamic_slice(x, starts, sizes)


def update_block_at(x, starts, updates):
    return jax.lax.dynamic_update_slice(x, updates.astype(x.dtype), starts)
