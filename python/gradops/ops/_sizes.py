"""Numbers computed from sizes; layouts, sizes per dimension and padding for convolution, pooling and blocks."""

from __future__ import annotations

import functools

import numpy as np

from ..errors import ArgumentError, Given, ShapeError
from ._checks import check_rank, choice, describe, integer
from ._compose import is_complex
from ._dispatch import registry
from .elementwise import add, greater_equal, imag, multiply, real
from .properties import shape, unknown
from .shaping import expand_dims, reshape


def counting(n):
    """Return the integers from 0 up to but without ``n``: a NumPy array if ``n`` is known, else a tensor."""
    return registry["arange"].call(n) if unknown(n) else np.arange(n)


def multiples(count, size, shape):
    """Return ``count`` multiples of ``size`` from 0, such as row offsets, in a shape; a NumPy array if all is known.

    It calls NumPy's own functions, which a compiler that reads Python (``backends.tracing``) knows, unlike kernels.
    """
    if any(unknown(n) for n in (count, size, *shape)):
        return multiply(reshape(counting(count), shape), size)
    return (np.arange(count, dtype=np.int64) * size).reshape(tuple(shape))


def lower(rows, columns, k: int):
    """Return a mask of elements on or below the ``k``-th diagonal: a NumPy array if sizes are known, else a tensor."""
    if unknown(rows) or unknown(columns):
        return greater_equal(add(expand_dims(counting(rows), 1), k), counting(columns))
    return _lower(rows, columns, k) if rows * columns <= _MAX_CACHED_MASK else np.tri(rows, columns, k, dtype=bool)


_MAX_CACHED_MASK = 1 << 14
"""The most elements of a mask that is cached; a compiled program recognises repeated steps on the same array."""


@functools.lru_cache(maxsize=64)
def _lower(rows: int, columns: int, k: int) -> np.ndarray:
    mask = np.tri(rows, columns, k, dtype=bool)
    mask.flags.writeable = False
    return mask


# Shared by convolution, pooling and blocks: layouts, sizes per dimension, padding, complex numbers --------------------


def is_channels_first(op: str, data_format) -> bool:
    """True for ``"channels_first"``; None means ``"channels_last"``."""
    return (
        choice(op, data_format or "channels_last", ("channels_last", "channels_first"), "data_format")
        != "channels_last"
    )


def spatial_sizes(op: str, x, channels_first: bool, ranks=(3, 4, 5), name: str = "inputs") -> tuple:
    """Return the sizes of the 1 to 3 dimensions that are neither batch nor channels."""
    check_rank(op, x, ranks, name)
    sizes = shape(x)
    return sizes[2:] if channels_first else sizes[1:-1]


def per_dimension(op: str, value, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Return one integer, or ``count`` integers, each at least ``least``, as a tuple of ``count``."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    values = tuple(integer(op, v, name, least) for v in values)
    if len(values) != count:
        raise ArgumentError(
            f"`{op}`: `{name}` must be one number or {count}; got {{value}}.",
            argument=name,
            value=Given(repr(value), value),
        )
    return values


def pads(op: str, padding, sizes, windows, strides, dilation, options=("valid", "same")) -> tuple[tuple[int, int], ...]:
    """Return the number of zeros before and after each dimension.

    ``"same"``: as many results as ``ceil(size / stride)``, an odd zero after the end (TensorFlow's
    convention); ``"causal"``: all zeros before the start.
    """
    padding = choice(op, padding.lower() if isinstance(padding, str) else padding, options, "padding")
    found = []
    for n, k, s, d in zip(sizes, windows, strides, dilation):
        reach = (k - 1) * d
        if padding == "valid":
            found.append((0, 0))
        elif padding == "causal":
            found.append((reach, 0))
        else:
            total = max((-(-n // s) - 1) * s + reach + 1 - n, 0)
            found.append((total // 2, total - total // 2))
    return tuple(found)


def positions(op: str, x, sizes, windows, strides, dilation, padding, name: str = "inputs") -> tuple[int, ...]:
    """Return the number of windows that fit along each dimension."""
    found = tuple(
        (n + before + after - (k - 1) * d - 1) // s + 1
        for n, k, s, d, (before, after) in zip(sizes, windows, strides, dilation, padding)
    )
    if any(count < 1 for count in found):
        raise ShapeError(
            f"`{op}`: `{name}` must not be smaller than the window; got {{x}}.", argument=name, x=describe(x)
        )
    return found


def apply_to_parts(linear, x):
    """Apply a linear function to ``x``, for complex numbers to the real and imaginary parts separately."""
    return add(linear(real(x)), multiply(linear(imag(x)), 1j)) if is_complex(x) else linear(x)
