"""Parts shared by filters: common dtypes, padding at the edges, convolution along a dimension, neighbourhoods.

``signal``, ``ndimage``, ``fft`` and others use them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import _tree, backends, ops
from ..backends import tracing
from ..errors import ArgumentTypeError, ShapeError
from ..jit.array import Traced
from ..ops._checks import check_axis
from ..ops.convolution import conv_to_output
from ._tensors import as_complex, constant, constant_like, floating, inexact, is_complex, numbers, wrong

__all__ = "alike back bilinear conj designed extended last line number patches real_like vector".split()


def alike(*xs) -> list:
    """Return tensors of one library and floating dtype.

    Next to a library's tensor, lists and NumPy arrays become constants of its precision. NumPy arrays alone promote as
    in NumPy.
    """
    like = next((x for x in xs if ops.is_tensor(x) and not _is_numpy(x)), None)
    if like is None:
        return floating(*xs)
    like = ops.real(inexact(like))
    return floating(*[x if _has_tensors(x) else _constant(x, like) for x in xs])


def _is_numpy(x) -> bool:
    return isinstance(x.data if hasattr(x, "_node") else x, (np.ndarray, np.generic))


def _has_tensors(x) -> bool:
    """Return True for library tensors and for Variables of NumPy arrays, which raise an error when mixed."""
    if isinstance(x, (list, tuple)):
        return any(map(_has_tensors, _tree.flatten(x)[0]))
    return ops.is_tensor(x) and (hasattr(x, "_node") or not _is_numpy(x))


def _constant(x, like):
    values = np.asarray(x)
    if _no_numbers(values):
        return ops.convert_to_tensor(x)  # raises an error that names the problem
    data = like.data if hasattr(like, "_node") else like
    # A traced array takes NumPy's arrays, and what is computed of constants alone is then no step of the program.
    made = values if type(data) is Traced else backends.backend_of(data).convert(values, like=data)
    if is_complex(made):
        return ops.cast(made, "complex128" if ops.dtype(like) == "float64" else "complex64")
    return ops.cast(made, ops.dtype(like))


@tracing.left_out
def _no_numbers(values) -> bool:
    return values.dtype.kind not in "fiubc"


def number(function: str, name: str, value):
    """Return a setting that must be a known number."""
    if type(value) in (int, float, complex, bool):
        return value
    found = numbers(function, name, value)
    if found.dtype.kind not in "fiubc" or found.size != 1:
        raise ArgumentTypeError(f"`{function}`: `{name}` must be a number; got {value!r}.", argument=name)
    return found.item()


@tracing.constant
def designed(path: str, *given) -> np.ndarray:
    """Return SciPy's array for plain numbers; a last tuple of pairs holds keyword arguments."""
    settings = dict(given[-1]) if given and isinstance(given[-1], tuple) and _are_pairs(given[-1]) else {}
    return np.asarray(constant(path)(*given[: len(given) - bool(settings)], **settings))


def _are_pairs(given: tuple) -> bool:
    return all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in given)


def real_like(x):
    """Return a real tensor of the precision of ``x``."""
    return ops.real(x) if is_complex(x) else x


def conj(x):
    """Return the conjugate of a complex tensor; a real tensor unchanged."""
    return ops.conj(x) if is_complex(x) else x


def vector(function: str, x, name: str):
    """Return a tensor that must have one dimension and at least one element; a number becomes a vector."""
    if len(x.shape) == 0:
        x = ops.reshape(x, (1,))
    if len(x.shape) != 1 or x.shape[0] == 0:
        raise wrong(name, "have one dimension and an element", f"the shape {tuple(x.shape)}", ShapeError, of=function)
    return x


def last(function: str, x, axis: int, name: str = "axis"):
    """Return ``x`` with ``axis`` moved to the last dimension, and the axis counted from 0."""
    rank = len(x.shape)
    if rank == 0:
        raise ShapeError(f"`{function}`: a tensor needs at least one dimension; got a number.", argument="x")
    axis = check_axis(function, axis, rank, name)
    return (x if axis == rank - 1 else ops.moveaxis(x, axis, -1)), axis


def back(y, axis: int):
    """Move the last dimension back to ``axis``."""
    return y if axis == len(y.shape) - 1 else ops.moveaxis(y, -1, axis)


def extended(x, before: int, after: int, how: str, axis: int = -1, fill=0.0):
    """Return ``x`` padded along a dimension.

    Args:
        how: ``"constant"``, with ``fill``; ``"edge"``, ``"wrap"``, ``"symmetric"`` or ``"reflect"`` as in ``np.pad``;
            ``"odd"`` for a point reflection at the edges.
    """
    if before == 0 and after == 0:
        return x
    axis = axis % len(x.shape)
    if how == "constant":
        widths = [(before, after) if i == axis else (0, 0) for i in range(len(x.shape))]
        return ops.pad(x, widths, constant_values=fill) if fill else ops.pad(x, widths)
    n = int(x.shape[axis])
    if n == 0:
        raise ShapeError("There is nothing at the edges of an empty dimension.", argument="x")
    places, inner, edges = _padded_sources(n, before, after, "reflect" if how == "odd" else how)
    y = ops.take(x, places, axis)
    if how != "odd":
        return y
    inside = constant_like(inner, real_like(x))
    inside = ops.reshape(inside, [-1] + [1] * (len(x.shape) - 1 - axis))
    return ops.where(inside > 0, y, 2 * ops.take(x, edges, axis) - y)


@tracing.constant
def _padded_sources(n: int, before: int, after: int, how: str) -> tuple:
    """Return the source position of each padded element, 1 for the elements inside, and the nearest positions."""
    places = np.pad(np.arange(n), (before, after), how)  # type: ignore[call-overload]
    counts = (before, n, after)
    return places, np.repeat([0.0, 1.0, 0.0], counts), np.clip(np.arange(-before, n + after), 0, n - 1)


def bilinear(function, x, h):
    """Apply a bilinear function of real tensors, to complex tensors by real and imaginary parts."""
    if not is_complex(x) and not is_complex(h):
        return function(x, h)
    if not is_complex(h):
        return as_complex(function(ops.real(x), h), function(ops.imag(x), h))
    if not is_complex(x):
        return as_complex(function(x, ops.real(h)), function(x, ops.imag(h)))
    a, b, c, d = ops.real(x), ops.imag(x), ops.real(h), ops.imag(h)
    return as_complex(function(a, c) - function(b, d), function(a, d) + function(b, c))


def line(x, h, before: int, after: int, step: int = 1):
    """Convolve the last dimension of ``x``, padded with ``before`` and ``after`` zeros, with a vector.

    ``len(h) - 1`` zeros before and after give the full convolution.
    """
    return bilinear(lambda x, h: _line(x, h, before, after, step), x, h)


def _line(x, h, before, after, step):
    batch, n, k = tuple(x.shape[:-1]), int(x.shape[-1]), int(h.shape[0])
    count = (n + before + after - k) // step + 1
    if k == 1 and step == 1 and before == after == 0:
        return x * h[0]
    rows = math.prod(tuple([int(n) for n in batch]))
    if count <= 0 or rows == 0:
        return ops.reshape(ops.reshape(x, (-1,))[:0], (*batch, max(count, 0)))
    kernel = ops.reshape(ops.flip(h, 0), (k, 1, 1))
    y = conv_to_output(ops.reshape(x, (rows, n, 1)), kernel, (step,), ((before, after),), (1,), 1, False)
    return ops.reshape(y, (*batch, count))


def patches(x, window: Sequence[int], marks: tuple | None, before: Sequence[int], how: Sequence[str], fill=0.0):
    """Return the neighbours of each element along a new last dimension, in the window's order.

    Args:
        window: the size of the neighbourhood in each dimension of ``x``.
        marks: for each position of the window, in order, True if it is a neighbour; None if all are.
        before: for each dimension the number of positions that the window begins before the element.
        how: the padding of each dimension, see :func:`extended`.
    """
    sizes = tuple(map(int, x.shape))
    for axis, (start, count) in enumerate(zip(before, window)):
        x = extended(x, start, count - 1 - start, how[axis], axis, fill)
    return ops.take(ops.reshape(x, (-1,)), _places(sizes, tuple(window), marks), 0)


@tracing.constant
def _places(sizes: tuple, window: tuple, marks: tuple | None) -> np.ndarray:
    """Return for each element the flat positions of its neighbours in the padded tensor."""
    wide = [n + k - 1 for n, k in zip(sizes, window)]
    where = np.argwhere(np.ones(window) if marks is None else np.reshape(marks, window))
    if not sizes:
        return np.zeros(1, int)
    at = np.asarray(np.ravel_multi_index(tuple(np.indices(sizes)), wide))
    return at[..., None] + np.ravel_multi_index(tuple(where.T), wide)
