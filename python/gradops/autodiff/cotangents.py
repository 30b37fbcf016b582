"""Gradients as values: in the shape and dtype of their tensors, summed over broadcast dimensions, and zeros."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from numpy.exceptions import ComplexWarning

from .. import backends, dtypes
from ..backends._keys import distinct, is_basic, plain
from ..errors import GradientError, ShapeError
from ..ops import conversion, elementwise, indexing, joining, reductions, shaping
from .graph import Cotangents, Node
from .state import special
from .variable import data_of

_FLOAT64 = np.dtype("float64")


class _ComplexDtypes(dict):
    """A cache from a library's dtype to True if it is complex."""

    def __missing__(self, dtype):
        self[dtype] = dtype is not None and dtype not in special and "complex" in dtypes.canonical(dtype)
        return self[dtype]


is_complex = _ComplexDtypes().__getitem__
"""True if a library's dtype object is complex."""


def fit(g, edge):
    """``g`` summed over broadcast dimensions to the shape of ``edge``, and cast to its dtype.

    Raises:
        ShapeError: the shape of ``g`` is not a broadcast of the edge's.
    """
    like = data_of(edge)
    if g.__class__ is np.ndarray and g.dtype is like.dtype and g.dtype is _FLOAT64:  # the common case
        return sum_to(g, like.shape)
    g = whole(g)
    if (dtype := getattr(like, "dtype", str)) in special:
        return special[dtype].fit(g, like)
    if g.shape != like.shape:
        g = sum_to(g, tuple(like.shape))
    if g.dtype is like.dtype:
        return g
    have, want = conversion.dtype(g), dtypes.canonical(like.dtype)
    return g if have == want else conversion.cast(g, want)


def one_for_each(result, count: int, who: str, of: str) -> list:
    """The gradients that user code returned, without surplus None at the end.

    Raises:
        GradientError: too many or too few.
    """
    gradients = list(result) if isinstance(result, (tuple, list)) else [result]
    while len(gradients) > count and gradients[-1] is None:
        gradients.pop()
    if len(gradients) != count:
        raise GradientError(f"{who} must return {count} gradients, one for each {of}; got {len(gradients)}.")
    return gradients


def given_for(g, shape: tuple, who: str, which: str = "an input", **fields):
    """A gradient that user code returned, summed to the shape of its tensor.

    Raises:
        ShapeError: the shape of the gradient is not a broadcast of the tensor's.
    """
    try:
        return sum_to(g, shape)
    except ShapeError:
        raise ShapeError(
            f"{who} returned a gradient of shape {tuple(g.shape)} for {which} of shape {shape}; it must have that "
            "shape, or one that broadcasting made of it.",
            **fields,
        ) from None


def given_in(g, dtype: str, who: str):
    """A gradient that user code returned, cast to the dtype of its tensor; warns if an imaginary part is lost."""
    have = conversion.dtype(g)
    if have == dtype:
        return g
    if have in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        warnings.warn(
            f"{who} gave a complex gradient for a real tensor: its imaginary part is lost. Take `real()` of it.",
            ComplexWarning,
            stacklevel=2,  # this line, so that it is shown once
        )
        g = elementwise.real(g)
    return conversion.cast(g, dtype)


def sum_to(g, shape: tuple):
    """``g`` summed over the dimensions along which ``shape`` was broadcast to the shape of ``g``."""
    is_numpy = g.__class__ is np.ndarray
    if is_numpy and shape == ():
        return np.add.reduce(g, None)
    axes = _summed_before(g.shape, shape) if is_numpy else _summed(tuple(g.shape), shape)
    if axes:
        g = np.add.reduce(g, axes) if is_numpy else reductions.sum(g, axes)
    return g if axes is None or g.shape == shape else shaping.reshape(g, shape)


def _summed(have: tuple, shape: tuple) -> tuple | None:
    """The axes along which ``shape`` was broadcast to ``have``; None if a size is unknown."""
    extra = len(have) - len(shape)
    axes = list(range(extra))
    if None in have or None in shape:
        return None
    for i, size in enumerate(shape):
        if extra < 0 or size != 1 and size != have[i + extra]:
            raise ShapeError(f"a gradient of shape {have} cannot be reduced to its input's shape {shape}.")
        if size != have[i + extra]:
            axes.append(i + extra)
    return tuple(axes)


_summed_before = functools.lru_cache(maxsize=1024)(_summed)
"""A cached ``_summed``, for eager passes only: Dynamo cannot read a cache."""


def materialize(g: Cotangents, node: Node):
    """A list with zeros for results without a gradient; a node without templates takes ``g`` unchanged."""
    if node.extra is None:
        return g
    return [zeros(template) if g.get(i) is None else g[i] for i, template in enumerate(node.extra)]


def zeros(template: tuple):
    """Zeros of a shape, dtype and backend."""
    shape, dtype, owner = template
    if dtype is _FLOAT64 and owner is backends.owner(np.ndarray):
        return np.zeros(shape)
    return owner.kernel("zeros")(tuple(shape), dtype if dtype in special else dtypes.canonical(dtype))


def zeros_of(g, shape: tuple):
    """Zeros of a shape, with the library and dtype of a gradient."""
    return backends.backend_of(data_of(g)).kernel("zeros")(shape, conversion.dtype(g))


class Scattered:
    """The gradient of a tensor that was read in parts: the parts' gradients, added up once all have arrived.

    If each part were an array of the tensor's shape, a loop over n elements would take time proportional to n squared.
    """

    __slots__ = ("shape", "dtype", "parts", "rest", "_numpy")

    def __init__(self, shape: tuple, key, g):
        self.shape, self.dtype = tuple(shape), g.dtype
        self.parts = [(key, g)]
        self.rest = None  # the gradient for the tensor as a whole
        self._numpy = isinstance(g, (np.ndarray, np.generic))

    def __add__(self, other) -> Scattered:
        if other.__class__ is Scattered:
            self.parts += other.parts
            self._numpy = self._numpy and other._numpy
            other = other.rest
        if other is not None:
            self._numpy = self._numpy and isinstance(other, (np.ndarray, np.generic))
            self.rest = other if self.rest is None else elementwise.add(self.rest, other)
        return self

    def total(self):
        """The gradient as a tensor."""
        if self._numpy:
            return self._array_total()
        total = zeros_of(self.parts[0][1], self.shape) if self.rest is None else self.rest
        for key, g in _together(self.parts):
            total = indexing.add_at(total, key, g)
        return total

    def _array_total(self) -> np.ndarray:
        total = np.zeros(self.shape, self.dtype) if self.rest is None else np.array(self.rest)
        for i, (key, g) in enumerate(self.parts):
            if is_basic(key):
                if not i and self.rest is None:
                    total[key] = g
                    continue
                part = total[key]
                if part.__class__ is np.ndarray:
                    part += g  # writes through a view; `total[key] += g` would also assign it
                else:
                    total[key] = part + g
                continue
            key = plain(key)
            # `total[key] += g` reads all positions before it writes: of a position that occurs twice it would keep one
            # gradient. `np.add.at` adds both, but is slower, so keys that cannot select a position twice are handled
            # separately.
            if distinct(key):
                total[key] += g
            else:
                np.add.at(total, key, g)
        return total


def _together(parts: list):
    """Keys and gradients; the keys of single positions are combined into one key with one gradient."""
    positions: dict[int, list] = {}
    for key, g in parts:
        whole = key if isinstance(key, tuple) else (key,)
        if whole and all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in whole):
            positions.setdefault(len(whole), []).append((whole, g))
        else:
            yield key, g
    for found in positions.values():
        if len(found) == 1:
            yield found[0]
        else:
            keys = tuple(np.array(column) for column in zip(*(key for key, _ in found)))
            yield keys, joining.stack([g for _, g in found])


def whole(g):
    """A gradient as a tensor, also if it arrived in parts."""
    return g.total() if g.__class__ is Scattered else g


def add(first, second):
    """The sum of two gradients of one tensor, or of an operation's results."""
    # Never in place: a rule may return one array for two edges (a sum returns its own gradient for both), or a view of
    # it, so the array may also be another tensor's gradient.
    if first.__class__ is np.ndarray and second.__class__ is np.ndarray:
        return first + second
    if second.__class__ is Scattered:
        first, second = second, first
    if first.__class__ is not Cotangents:
        return first + second if first.__class__ is Scattered else elementwise.add(first, second)
    total = Cotangents(first)
    for position, g in second.items():
        total[position] = elementwise.add(total[position], g) if position in total else g
    return total
