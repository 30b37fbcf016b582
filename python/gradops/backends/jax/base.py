"""JAX: conversion, dtype names, and the adaptors that give jax.numpy functions the dtype rule."""

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


def prepare(floatx: str) -> Callable[[], None] | None:
    """Turn on 64-bit mode where ``floatx`` needs it; returns a function that turns it off again."""
    if floatx == "float64" and not jax.config.jax_enable_x64:
        jax.config.update("jax_enable_x64", True)
        return lambda: jax.config.update("jax_enable_x64", False)
    return None


def prepared(floatx: str):
    """A scope of the thread in which 64-bit mode is on where ``floatx`` needs it."""
    if floatx != "float64" or jax.config.jax_enable_x64:
        return contextlib.nullcontext()
    return _enable_x64(True)


_enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def sized(shape):
    """A shape whose elements can be counted: XLA ends the process where their number does not fit into 64 bits.

    Raises:
        ValueError: as NumPy's, in place of that.
    """
    if math.prod(shape if isinstance(shape, (tuple, list)) else (shape,)) >= 2**62:
        raise ValueError(f"an array of shape {shape} is too big")
    return shape


def native_dtype(dtype) -> np.dtype:
    """The dtype, or its 32-bit form where JAX's 64-bit mode is off."""
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
    if isinstance(found, jax.core.Tracer) and array.ndim == 0:  # a number has its value in a trace, too
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
    if isinstance(x, jax.core.Tracer):  # of a derivative, unlike that of a compiled function, the value is known
        known = getattr(x, "to_concrete_value", lambda: None)()
        if known is None:
            raise looked_at_a_value() from jax.errors.TracerArrayConversionError(x)
        x = known
    return np.asarray(x.astype(jnp.float32) if x.dtype == jnp.bfloat16 else x)


def static_value(x):
    """The values of an array, which are known also while ``jax.grad`` is at work; inside ``jax.jit``, of constants."""
    return to_numpy(jax.lax.stop_gradient(x) if isinstance(x, jax.core.Tracer) else x)


def known(x) -> np.ndarray | None:
    """The same, and None where they are unknown."""
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
    return x.dtype == bool  # whose name takes NumPy 2 us to make


def is_real(x) -> bool:
    """True if ``x`` has a real floating dtype; bfloat16 has a kind of its own."""
    return x.dtype.kind == "f" or x.dtype == jnp.bfloat16


def floats(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if is_floating(x) else x.astype(native_dtype(dtypes.floatx()))


def floating(function):
    """A unary function whose result is floating: integers and bools count as ``floatx``."""

    def kernel(x):
        return function(x if x.dtype.kind in "fc" else floats(x))

    return kernel


def with_number(x1, x2):
    """An array of floats and a Python number, which JAX takes in their dtype without an array of it; None of others."""
    x, number = (x1, x2) if hasattr(x1, "dtype") else (x2, x1)
    if number.__class__ is int and -(2**24) <= number <= 2**24:
        number = float(number)
    if number.__class__ is not float or x.dtype.kind != "f":
        return None
    return (x1, number) if x is x1 else (number, x2)


def arithmetic(function, numbers: bool = False):
    """A binary function in its operands' promoted dtype; ``numbers``: it takes Python numbers."""

    def kernel(x1, x2):
        d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
        if d1 is d2:
            return function(x1, x2)
        if numbers and (d1 is None or d2 is None) and (pair := with_number(x1, x2)) is not None:
            return function(*pair)
        return function(*promoted(x1, x2))

    return kernel


def counting(function):
    """The same as ``arithmetic`` for functions that take no truth values: two bools are whole numbers."""

    def counted(x1, x2):
        if x1.dtype == bool:
            x1, x2 = x1.astype("int64"), x2.astype("int64")
        return function(x1, x2)

    return arithmetic(counted)


def dividing(function, op: str):
    """The same as ``counting`` for a division.

    Raises:
        ArgumentError: a whole number by 0, where values are known.
    """

    def divided(x1, x2):
        if x2.dtype.kind in "iu" and (divisors := known(x2)) is not None and not divisors.all():
            raise divided_by_0(op)
        return function(x1, x2)

    return counting(divided)


def floating_arithmetic(function, numbers: bool = False):
    """The same as ``arithmetic`` on floats: two integers become ``floatx``."""

    def kernel(x1, x2):
        d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
        if d1 is d2 and d1.kind in "fc":
            return function(x1, x2)
        if numbers and (d1 is None or d2 is None) and (pair := with_number(x1, x2)) is not None:
            return function(*pair)
        x1, x2 = promoted(x1, x2)
        return function(floats(x1), floats(x2))

    return kernel


def predicate(function):
    """A comparison in its operands' promoted dtype."""
    return arithmetic(function, numbers=True)
