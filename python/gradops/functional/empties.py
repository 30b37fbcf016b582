"""Inputs and outputs without elements, which PyTorch's and TensorFlow's Jacobians do not take.

What has elements is differentiated as ever; the parts that have none are put in beside.
"""

from __future__ import annotations

from collections.abc import Callable

from ..autodiff.variable import data_of
from ..ops import conversion, creation, shaping
from .point import Point, is_empty


def jacobian(at: Point, rows_of: Callable):
    """The Jacobian at ``at`` by ``rows_of(func, inputs)``, a tuple for each output, of those that have elements."""
    kept = [i for i, x in enumerate(at.leaves) if not is_empty(x)]
    outputs = at.run(*at.leaves)

    def full(*xs):
        return tuple(y for y in at.run(*_filled(at.leaves, kept, xs)) if not is_empty(y))

    some = kept and not all(map(is_empty, outputs))
    rows = iter(rows_of(full, tuple(at.leaves[i] for i in kept)) if some else ())
    return at.rows([_beside(y, at.leaves, kept, next(rows) if some and not is_empty(y) else ()) for y in outputs])


def hessian(at: Point, rows_of: Callable):
    """The Hessian at ``at`` by ``rows_of(func, inputs)``, a tuple of tuples, of the inputs that have elements."""
    kept = [i for i, x in enumerate(at.leaves) if not is_empty(x)]

    def full(*xs):
        return at.scalar(*_filled(at.leaves, kept, xs))

    inputs = tuple(at.leaves[i] for i in kept)
    if not kept:
        full()
    rows = iter(rows_of(full, inputs) if kept else ())
    found = [_beside(x, at.leaves, kept, () if is_empty(x) else next(rows)) for x in at.leaves]
    return at.inputs([at.inputs(row) for row in found])


def _filled(leaves: list, kept: list[int], xs) -> list:
    given = iter(xs)
    return [next(given) if i in kept else x for i, x in enumerate(leaves)]


def _beside(y, leaves: list, kept: list[int], row) -> list:
    """A row of blocks, those of ``row`` and for each other input one of no elements."""
    there = dict(zip(kept, row))
    return [there[i] if i in there else _nothing(y, x) for i, x in enumerate(leaves)]


def _nothing(y, x):
    y, x = (data_of(z) for z in (y, x))
    block = shaping.reshape(y if is_empty(y) else x, (*conversion.shape(y), *conversion.shape(x)))
    return creation.zeros_like(conversion.cast(block, conversion.dtype(x)))
