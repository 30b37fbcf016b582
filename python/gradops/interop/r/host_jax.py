"""Calls of host functions in JAX's transformations and programs."""

from __future__ import annotations

import functools
import logging

import jax

from ...backends.jax._private import CALLBACK_LOGGER
from .errors import CallbackError


def call_back(program, tensors: list) -> list | None:
    if not any(isinstance(t, jax.core.Tracer) for t in tensors):
        return None
    _quieten(logging.getLogger(CALLBACK_LOGGER))
    tensors = [jax.lax.stop_gradient(t) for t in tensors]  # the derivative is the custom one's
    program.foresee([t.shape for t in tensors], [t.dtype.name for t in tensors])
    program.dtypes = [jax.dtypes.canonicalize_dtype(name).name for name in program.dtypes]
    results = [jax.ShapeDtypeStruct(shape, name) for shape, name in zip(program.shapes, program.dtypes)]
    return list(jax.pure_callback(program.cast, tuple(results), *tensors, vmap_method="sequential"))


@functools.cache
def _quieten(logger: logging.Logger) -> None:
    """Have JAX not print the tracebacks of errors that it also raises."""
    logger.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], CallbackError)))
