"""JAX kernels: scattering. ``segment_max`` and ``segment_min`` have derivatives here, which JAX's own lack."""

from functools import partial

import jax
import jax.numpy as jnp

from ..array.indexing import extreme
from .base import dtype_name, is_real, static_value


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
