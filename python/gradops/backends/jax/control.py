"""JAX: control flow by ``jax.lax`` on flat lists of arrays, and functions of NumPy arrays as callbacks."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ._private import CALLBACK_LOGGER

no_value = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def concrete(x, kind):
    """A 0-d array's value; None if it is traced and unknown."""
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
    if bound is not None:  # a bounded loop is a scan, which has a reverse-mode derivative
        return NotImplemented
    return jax.lax.while_loop(holds, step, leaves)


def vectorized_map(function, rows, axis_name=None):
    return jax.vmap(function, axis_name=axis_name)(*rows)


def custom_vmap(function, rule, xs: list) -> list:
    """``function(*xs)``, a list, with ``rule(size, batched, xs)`` for all rows in ``jax.vmap``."""
    called = jax.custom_batching.custom_vmap(lambda *xs: list(function(*xs)))
    called.def_vmap(lambda size, batched, *xs: rule(size, list(batched), list(xs)))
    return called(*xs)


def closure_convert(function, args: tuple) -> tuple:
    converted, closed_over = jax.closure_convert(function, *args)
    return converted, list(closed_over)


COLLECTIVES = {"psum": jax.lax.psum, "pmean": jax.lax.pmean, "pmax": jax.lax.pmax, "pmin": jax.lax.pmin}


def collective(name: str, x, axis_name):
    """The reduction ``name`` of ``x`` along a named axis."""
    return COLLECTIVES[name](x, axis_name)


def axis_index(axis_name):
    return jax.lax.axis_index(axis_name)


# Functions of NumPy arrays, elementwise or of matrices ----------------------------------------------------------------


def call_on_host(name: str, function: Callable, xs: list, like: int | None = None) -> jax.Array:
    dtype = xs[0].dtype

    def call(*arrays) -> np.ndarray:
        return np.asarray(function(*map(np.asarray, arrays)), dtype)

    if not any(isinstance(x, jax.core.Tracer) for x in xs):
        return jnp.asarray(call(*xs))
    xs = list(map(jax.lax.stop_gradient, xs))
    if like is None:
        xs = jnp.broadcast_arrays(*xs)  # the same rank for all, also under vmap
        shape = xs[0].shape
    else:
        lead = jnp.broadcast_shapes(*[x.shape[:-2] for x in xs])
        xs = [jnp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in xs]
        shape = xs[like].shape
    return jax.pure_callback(call, jax.ShapeDtypeStruct(shape, dtype), *xs, vmap_method="broadcast_all")


# Functions of another language, called from transforms and programs ---------------------------------------------------


def call_back(program, tensors: list) -> list | None:
    if not any(isinstance(t, jax.core.Tracer) for t in tensors):
        return None
    _quieten(logging.getLogger(CALLBACK_LOGGER))
    tensors = [jax.lax.stop_gradient(t) for t in tensors]  # the custom gradient defines the derivative
    program.foresee([t.shape for t in tensors], [t.dtype.name for t in tensors])
    program.dtypes = [jax.dtypes.canonicalize_dtype(name).name for name in program.dtypes]
    results = [jax.ShapeDtypeStruct(shape, name) for shape, name in zip(program.shapes, program.dtypes)]
    return list(jax.pure_callback(program.cast, tuple(results), *tensors, vmap_method="sequential"))


@functools.cache
def _quieten(logger: logging.Logger) -> None:
    """Keep JAX from printing the tracebacks of errors that it also raises."""
    logger.addFilter(lambda record: not (record.exc_info and getattr(record.exc_info[1], "gradops_callback", False)))
