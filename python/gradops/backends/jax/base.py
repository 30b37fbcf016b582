"""JAX: conversion, dtype names, and the adaptors that make kernels of jax.numpy functions by gradops' dtype rule."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ... import dtypes
from ...errors import BackendError, JitError
from ..array.base import dtype_rule, holds
from ..interface import divided_by_0, looked_at_a_value
from ..numpy import base as _numpy

calls_from_threads = True


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, (jax.Array, jax.core.Tracer)) or kind.__name__ == "ArrayImpl"


def components(x):
    leaves, structure = jax.tree_util.tree_flatten(x)
    return None if len(leaves) == 1 and leaves[0] is x else (leaves, structure.unflatten)


def prepare(floatx: str) -> Callable[[], None] | None:
    """Turn on 64-bit mode if ``floatx`` needs it; returns a function that turns it off again."""
    if floatx == "float64" and not jax.config.jax_enable_x64:
        jax.config.update("jax_enable_x64", True)
        return lambda: jax.config.update("jax_enable_x64", False)
    return None


def prepared(floatx: str):
    """A thread-local scope that turns on 64-bit mode if ``floatx`` needs it."""
    if floatx != "float64" or jax.config.jax_enable_x64:
        return contextlib.nullcontext()
    return _enable_x64(True)


_enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def sized(shape):
    """The shape, if its number of elements fits into 64 bits; XLA aborts the process otherwise.

    Raises:
        ValueError: the array would be too big, as in NumPy.
    """
    if math.prod(shape if isinstance(shape, (tuple, list)) else (shape,)) >= 2**62:
        raise ValueError(f"an array of shape {shape} is too big")
    return shape


def native_dtype(dtype) -> np.dtype:
    """The dtype, or its 32-bit form if JAX's 64-bit mode is off."""
    return jax.dtypes.canonicalize_dtype(jnp.dtype(dtypes.canonical(dtype)))


def convert(value, dtype=None, like=None):
    """An array of ``value``, never weakly typed."""
    if isinstance(value, jax.Array):
        return value if dtype is None else value.astype(native_dtype(dtype))
    if holds(value, jax.Array):
        stacked = jnp.stack([convert(v) for v in value])
        return stacked if dtype is None else stacked.astype(native_dtype(dtype))
    if dtype is not None and dtypes.canonical(dtype) == "bfloat16":
        return jnp.array(_numpy.convert(value), dtype=jnp.bfloat16)
    array = _numpy.convert(value, dtype) if not _is_bfloat16(value) else value
    found = jnp.array(array, dtype=native_dtype(array.dtype))
    if isinstance(found, jax.core.Tracer) and array.ndim == 0:  # a number stays concrete in a trace
        with jax.ensure_compile_time_eval():
            found = jnp.array(array, dtype=native_dtype(array.dtype))
    return found


def _is_bfloat16(value) -> bool:
    return getattr(getattr(value, "dtype", None), "name", None) == "bfloat16"


def dtype_name(x) -> str:
    return x.dtype.name


def from_dlpack(x):
    return jnp.from_dlpack(x)


def eval_shape(run, looks: list) -> list:
    return jax.eval_shape(run, *[jax.ShapeDtypeStruct(shape, native_dtype(dtype)) for shape, dtype in looks])


def place(x, device):
    if isinstance(device, str):
        platform, _, number = device.partition(":")
        known = jax.devices(platform) if platform else []
        if number and not number.isdecimal() or int(number or 0) >= len(known):
            raise BackendError(f"`to_backend`: JAX has no device {device!r}.", argument="device")
        device = known[int(number or 0)]
    return jax.device_put(x, device)


def to_numpy(x) -> np.ndarray:
    if isinstance(x, jax.core.Tracer):  # values are known in derivatives, but not in compiled functions
        known = getattr(x, "to_concrete_value", lambda: None)()
        if known is None:
            raise looked_at_a_value() from jax.errors.TracerArrayConversionError(x)
        x = known
    return np.asarray(x.astype(jnp.float32) if x.dtype == jnp.bfloat16 else x)


def static_value(x):
    """An array's values, which are known inside ``jax.grad``; inside ``jax.jit`` only constants have values."""
    return to_numpy(jax.lax.stop_gradient(x) if isinstance(x, jax.core.Tracer) else x)


def known(x) -> np.ndarray | None:
    """An array's values, or None if they are unknown."""
    try:
        return static_value(x)
    except JitError:
        return None


def cast(x, dtype):
    target = native_dtype(dtype)
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real if target.kind != "b" else x != 0
    return jax.lax.convert_element_type(x, target)


def copy(x):
    return jnp.copy(x)


promoted, together = dtype_rule(
    lambda dtype: dtype.name, native_dtype, jnp.asarray, lambda number, dtype, _: jnp.asarray(number, dtype)
)


def is_floating(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def is_bool(x) -> bool:
    return x.dtype == bool  # faster than the name, which takes NumPy 2 us to make


def is_real(x) -> bool:
    """True if ``x`` has a real floating dtype; the ``kind`` of bfloat16 is not "f"."""
    return x.dtype.kind == "f" or x.dtype == jnp.bfloat16


def floats(x):
    """``x`` if floating or complex, otherwise ``x`` cast to ``floatx``."""
    return x if is_floating(x) else x.astype(native_dtype(dtypes.floatx()))


def floating(function):
    """A kernel of a unary function with a floating result: integers and bools become ``floatx``."""

    def kernel(x):
        return function(x if x.dtype.kind in "fc" else floats(x))

    return kernel


def float_and_number(x1, x2):
    """A float array and a Python number, which JAX takes without making an array of it; None for other pairs."""
    x, number = (x1, x2) if hasattr(x1, "dtype") else (x2, x1)
    if number.__class__ is int and -(2**24) <= number <= 2**24:
        number = float(number)
    if number.__class__ is not float or x.dtype.kind != "f":
        return None
    return (x1, number) if x is x1 else (number, x2)


def arithmetic(function, numbers: bool = False):
    """A kernel of a binary function in the operands' promoted dtype; ``numbers``: the function takes Python numbers."""

    def kernel(x1, x2):
        d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
        if d1 is d2:
            return function(x1, x2)
        if numbers and (d1 is None or d2 is None) and (pair := float_and_number(x1, x2)) is not None:
            return function(*pair)
        return function(*promoted(x1, x2))

    return kernel


def counting(function):
    """``arithmetic`` for functions that are not defined for bools: two bools become integers."""

    def counted(x1, x2):
        if x1.dtype == bool:
            x1, x2 = x1.astype("int64"), x2.astype("int64")
        return function(x1, x2)

    return arithmetic(counted)


def dividing(function, op: str):
    """``counting`` for a division.

    Raises:
        ArgumentError: an integer is divided by 0, if values are known.
    """

    def divided(x1, x2):
        if x2.dtype.kind in "iu" and (divisors := known(x2)) is not None and not divisors.all():
            raise divided_by_0(op)
        return function(x1, x2)

    return counting(divided)


def floating_arithmetic(function, numbers: bool = False):
    """``arithmetic`` on floats: two integers become ``floatx``."""

    def kernel(x1, x2):
        d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
        if d1 is d2 and d1.kind in "fc":
            return function(x1, x2)
        if numbers and (d1 is None or d2 is None) and (pair := float_and_number(x1, x2)) is not None:
            return function(*pair)
        x1, x2 = promoted(x1, x2)
        return function(floats(x1), floats(x2))

    return kernel


def predicate(function):
    """A kernel of a comparison in the operands' promoted dtype."""
    return arithmetic(function, numbers=True)
