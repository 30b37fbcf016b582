"""Numbers computed from sizes; layouts, sizes for each dimension, padding, of convolution, pooling and blocks."""

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
    """The whole numbers from 0 below ``n``: NumPy's where it is known, else a tensor."""
    return registry["arange"].call(n) if unknown(n) else np.arange(n)


def multiples(count, size, shape):
    """``count`` multiples of ``size`` from 0, such as where lines start, in a shape: NumPy's where all is known.

    NumPy's by its own functions: a compiler that reads Python (``backends.tracing``) knows those, not an op's kernels.
    """
    if any(unknown(n) for n in (count, size, *shape)):
        return multiply(reshape(counting(count), shape), size)
    return (np.arange(count, dtype=np.int64) * size).reshape(tuple(shape))


def lower(rows, columns, k: int):
    """True where a matrix is on or below its ``k``-th diagonal: NumPy's where its sizes are known, else a tensor."""
    if unknown(rows) or unknown(columns):
        return greater_equal(add(expand_dims(counting(rows), 1), k), counting(columns))
    return _lower(rows, columns, k) if rows * columns <= _SMALL else np.tri(rows, columns, k, dtype=bool)


_SMALL = 1 << 14
"""Elements of a mask that is made once: a compiled program then knows the steps it has already done with it."""


@functools.lru_cache(maxsize=64)
def _lower(rows: int, columns: int, k: int) -> np.ndarray:
    mask = np.tri(rows, columns, k, dtype=bool)
    mask.flags.writeable = False
    return mask


# Shared by convolution, pooling and blocks: layouts, sizes for each dimension, padding, complex numbers ---------------


def is_channels_first(op: str, data_format) -> bool:
    """True for ``"channels_first"``; None is ``"channels_last"``."""
    return (
        choice(op, data_format or "channels_last", ("channels_last", "channels_first"), "data_format")
        != "channels_last"
    )


def spatial_sizes(op: str, x, channels_first: bool, ranks=(3, 4, 5), name: str = "inputs") -> tuple:
    """The sizes of the 1 to 3 dimensions that are neither batch nor channels."""
    check_rank(op, x, ranks, name)
    sizes = shape(x)
    return sizes[2:] if channels_first else sizes[1:-1]


def per_dimension(op: str, value, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """One whole number or ``count`` of them, each at least ``least``, as a tuple."""
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
    """Zeros before and after each dimension.

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
    """The number of windows that fit along each dimension."""
    found = tuple(
        (n + before + after - (k - 1) * d - 1) // s + 1
        for n, k, s, d, (before, after) in zip(sizes, windows, strides, dilation, padding)
    )
    if any(count < 1 for count in found):
        raise ShapeError(
            f"`{op}`: `{name}` must not be smaller than the window; got {{x}}.", argument=name, x=describe(x)
        )
    return found


def by_parts(linear, x):
    """A linear function of ``x``, of complex numbers part by part."""
    return add(linear(real(x)), multiply(linear(imag(x)), 1j)) if is_complex(x) else linear(x)
