"""Jacobians in chunks on libraries with their own derivatives: at most so many passes are batched at once."""

from __future__ import annotations

import contextlib
import itertools

from ..autodiff.modes import enable_grad
from ..ops import conversion, elementwise, shaping
from ..ops.mapping import map_rows
from .point import Point


def jacobian(at: Point, create_graph: bool, strict: bool, strategy: str | None, chunk_size: int):
    """The derivatives by output and input, from products with ``chunk_size`` unit vectors at once.

    A pass moves a unit vector of all outputs, or all inputs, together, so one function run serves all passes.
    """
    derivatives = at.derivatives
    derivatives.check_dependence(at, strict)
    with enable_grad() if create_graph else contextlib.nullcontext():
        forwards = strategy == "forward-mode"
        outputs, move = (derivatives.pushing if forwards else derivatives.pulling)(at)
        if strategy is None and derivatives.takes_cheaper and _total(at.leaves) < _total(outputs):
            forwards = True
            outputs, move = derivatives.pushing(at)
        sources, others = (at.leaves, outputs) if forwards else (outputs, at.leaves)
        ends = [0, *itertools.accumulate(map(conversion.size, sources))]
        places = at.backend.convert(list(range(ends[-1])), "int64", sources[0])

        def moved(k) -> tuple:
            unit = elementwise.equal(places, k)
            parts = [unit[start:stop] for start, stop in itertools.pairwise(ends)]
            return tuple(
                move(
                    [conversion.cast(shaping.reshape(p, x.shape), conversion.dtype(x)) for p, x in zip(parts, sources)]
                )
            )

        columns = map_rows(at.name, moved, [places], ends[-1], at.backend, chunk_size)
        blocks = [
            [_block(column[start:stop], x, z, forwards) for column, z in zip(columns, others)]
            for x, (start, stop) in zip(sources, itertools.pairwise(ends))
        ]
    return at.rows([list(row) for row in zip(*blocks)] if forwards else blocks)


def _total(tensors: list) -> int:
    return sum(map(conversion.size, tensors))


def _block(rows, source, other, forwards: bool):
    """Products with the unit vectors of ``source`` as derivatives by output and input."""
    if forwards:
        rows = shaping.moveaxis(rows, 0, -1)
    return shaping.reshape(rows, (*other.shape, *source.shape) if forwards else (*source.shape, *other.shape))
