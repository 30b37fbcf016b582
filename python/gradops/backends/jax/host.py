"""Functions of NumPy's arrays on JAX's, elementwise or of matrices: callbacks in transformations and programs."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def on_host(name: str, function: Callable, xs: list, like: int | None = None) -> jax.Array:
    dtype = xs[0].dtype

    def call(*arrays) -> np.ndarray:
        return np.asarray(function(*map(np.asarray, arrays)), dtype)

    if not any(isinstance(x, jax.core.Tracer) for x in xs):
        return jnp.asarray(call(*xs))
    xs = list(map(jax.lax.stop_gradient, xs))
    if like is None:
        xs = jnp.broadcast_arrays(*xs)  # of one rank, which batches then have, too
        shape = xs[0].shape
    else:
        lead = jnp.broadcast_shapes(*[x.shape[:-2] for x in xs])
        xs = [jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in xs]
        shape = xs[like].shape
    return jax.pure_callback(call, jax.ShapeDtypeStruct(shape, dtype), *xs, vmap_method="broadcast_all")
