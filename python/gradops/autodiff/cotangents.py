"""Gradients as values: in the shape and dtype of what they are of, and zeros where there is none."""

from __future__ import annotations

from .. import dtypes
from ..errors import ShapeError
from ..ops import conversion, reductions, shaping
from .graph import Cotangents, Node
from .state import special
from .variable import Variable


class _ComplexDtypes(dict):
    """Whether a library's dtype is complex, found once for each."""

    def __missing__(self, dtype):
        self[dtype] = dtype is not None and dtype not in special and "complex" in dtypes.canonical(dtype)
        return self[dtype]


is_complex = _ComplexDtypes().__getitem__
"""Whether a library's dtype object is complex."""


def fit(g, edge):
    """``g`` summed over broadcast dimensions to the shape of what it is the gradient of, in its dtype.

    Raises:
        ShapeError: a shape that is not the result of broadcasting the edge's.
    """
    like = edge.data if isinstance(edge, Variable) else edge
    if (dtype := getattr(like, "dtype", str)) in special:
        return special[dtype].fit(g, like)
    if g.shape != like.shape:
        g = sum_to(g, tuple(like.shape))
    if g.dtype is like.dtype:
        return g
    have, want = conversion.dtype(g), dtypes.canonical(like.dtype)
    return g if have == want else conversion.cast(g, want)


def sum_to(g, shape: tuple):
    """``g`` summed over the dimensions along which ``shape`` was broadcast to ``g``'s."""
    axes = _summed(tuple(g.shape), shape)
    if axes:
        g = reductions.sum(g, axes)
    return g if axes is None or g.shape == shape else shaping.reshape(g, shape)


def _summed(have: tuple, shape: tuple) -> tuple | None:
    """The axes along which ``shape`` was broadcast to ``have``; None where a size is unknown."""
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


def materialize(g: Cotangents, node: Node):
    """A list with zeros for the results that have no gradient; a node without templates wants ``g`` as it is."""
    if node.extra is None:
        return g
    return [zeros(template) if g.get(i) is None else g[i] for i, template in enumerate(node.extra)]


def zeros(template: tuple):
    """Zeros of a shape, dtype and backend."""
    shape, dtype, owner = template
    return owner.kernel("zeros")(tuple(shape), dtype if dtype in special else dtypes.canonical(dtype))
