"""Loops without their large sums of matrix products: one product of stacked factors replaces one per iteration.

The derivative of a loop that multiplies by a matrix adds an outer product to the matrix's gradient in each iteration,
which reads and writes the whole matrix. The loop without that sum returns the factors instead, and one call of BLAS
adds up all products.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .array import Place
from .liveness import needed_rows
from .native.plan import LARGEST as LARGEST_NATIVE
from .program import Program
from .steps import Step

SAVED = 4
"""A product is deferred if it has at least so many times the elements of its factors."""

LARGEST = 4_000_000
"""The largest size of the stacked factors, in elements."""


class Factors(NamedTuple):
    """The factors of a product, as places or as positions among a loop's results; ``turned``: it is transposed."""

    x: int
    y: int
    turned: bool


class DeferredSums:
    """A loop without sums of products: a kernel with the arguments and results of the original loop.

    Args:
        loop: the shorter loop.
        kept: the numbers of the carries that both loops have.
        fixed: the numbers of the carries that no iteration changes; the shorter loop reads them as held arrays.
        sums: the factors of each carry that is a sum, by its number.
        rows: the numbers of the rows that the shorter loop reads.
        stacked: the number of results of each row of the original loop.
    """

    def __init__(
        self,
        loop: Any,
        kept: list[int],
        fixed: list[int],
        sums: dict[int, list[Factors]],
        rows: list[int],
        stacked: int,
    ):
        self.loop, self._kept, self._fixed, self._sums, self._rows = loop, kept, fixed, sums, rows
        self._stacked = stacked

    def __call__(self, state, rows, held) -> list:
        loop, count = self.loop, self.loop.count
        held = [*held, *(state[k] for k in self._fixed)]
        results = loop([state[k] for k in self._kept], [rows[i] for i in self._rows], held)
        ends, starts = dict(zip(self._kept, results)), loop.carries + loop.stacked
        before = dict(zip(self._kept, results[starts:]))
        after = results[loop.carries : starts]
        for k, factors in self._sums.items():
            ends[k] = sum_of_products(state[k], [(after[f.x], after[f.y], f.turned) for f in factors])
            before[k] = np.broadcast_to(np.nan, (count, *np.shape(state[k])))  # no derivative reads it
        for k in self._fixed:
            ends[k], before[k] = state[k], np.broadcast_to(state[k], (count, *np.shape(state[k])))
        order = range(len(state))
        return [
            *map(ends.__getitem__, order),
            *after[: self._stacked],
            *map(before.__getitem__, order if loop.kept else ()),
        ]


def deferred_sums(loop: Any) -> DeferredSums | None:
    """Return a loop without the large sums that native code does not take; None if it has none."""
    body = loop.body
    program, (states, results) = body.program, body.outputs
    large = [k for k, x in enumerate(body.values(0)) if np.size(x) > LARGEST_NATIVE]
    if not large:
        return None
    made = {place: step for step in body.steps for place in step.places}
    uses = Counter(place.index for group in body.outputs for place in group)
    for step in body.steps:
        uses.update(place.index for place in step.split()[1])
    fixed = [k for k in large if states[k].index == program.inputs[k]]
    found = {k: _factors(program, made, uses, states[k].index, program.inputs[k]) for k in large if k not in fixed}
    sums = {k: factors for k, factors in found.items() if factors}
    stacked = list(dict.fromkeys(x for factors in sums.values() for f in factors for x in (f.x, f.y)))
    if not (sums or fixed) or loop.count * sum(np.size(program.value(x)) for x in stacked) > LARGEST:
        return None
    kept = [k for k in range(loop.carries) if k not in sums and k not in fixed]
    outputs = [[states[k] for k in kept], [*results, *map(Place, stacked)]]
    needed = needed_rows(program, {x.index for group in outputs for x in group}, among=body.rows)
    given = program.inputs[loop.carries : len(program.inputs) - len(body.held)]
    read = {*needed.operands().tolist(), *(x.index for group in outputs for x in group)}
    rows = [i for i, place in enumerate(given) if place in read]
    inputs = [program.inputs[k] for k in kept] + [given[i] for i in rows]
    inputs += program.inputs[loop.carries + len(given) :] + [program.inputs[k] for k in fixed]
    shorter = type(loop)(body.changed(needed, outputs, inputs), len(kept), loop.count, loop.reverse, loop.kept)
    at = {x: len(results) + i for i, x in enumerate(stacked)}
    placed = {k: [Factors(at[f.x], at[f.y], f.turned) for f in factors] for k, factors in sums.items()}
    return DeferredSums(shorter, kept, fixed, placed, rows, len(results))


def _factors(program: Program, made: dict[int, Step], uses: Counter, total: int, start: int) -> list[Factors]:
    """Return the factors of the products whose sum with ``start`` is ``total``; none if it is something else."""
    value = np.asarray(program.value(total))
    if uses[start] != 1 or value.dtype != np.float64:
        return []
    known = {*program.inputs, *program.constants}
    found: list[Factors] = []
    waiting, has_start = [(total, False)], False
    while waiting:
        place, turned = waiting.pop()
        if place == start and not turned:
            has_start = True
            continue
        step = made.get(place)
        shape = value.shape[::-1] if turned else value.shape
        if step is None or uses[place] != 1 or np.shape(program.value(place)) != shape:
            return []
        operands = [x.index for x in step.split()[1]]
        shapes = [np.shape(program.value(x)) for x in operands]
        if step.name == "add" and len(operands) == 2:
            waiting += [(x, turned) for x in operands]
        elif step.name in ("transpose", "swapaxes") and shapes == [shape[::-1]] and len(shape) == 2 and shape[0] != 1:
            if shape[0] == shape[1] and not _turns(program, step, operands[0]):
                return []
            waiting.append((operands[0], not turned))
        elif step.name == "matmul" and len(operands) == 2 and known.isdisjoint(operands):
            size = sum(map(math.prod, shapes))
            if min(map(len, shapes)) < 2 or SAVED * size > value.size:
                return []
            found.append(Factors(operands[0], operands[1], turned))
        else:
            return []
    return found if has_start else []


def _turns(program: Program, step: Step, operand: int) -> bool:
    """Return True if a step's result is the transpose of its operand, a square matrix, and not the matrix."""
    shape = np.shape(program.value(operand))
    example = np.arange(math.prod(shape)).reshape(shape)
    arguments = [example if x.__class__ is Place else x for x in step.arguments]
    return bool(np.array_equal(step.function(*arguments), example.T))


def sum_of_products(start, products: list):
    """Return ``start`` plus the products ``x[t] @ y[t]`` for all ``t``, for stacks ``x`` and ``y``.

    Args:
        products: ``x``, ``y``, and True if the transpose of the product is added.
    """
    total = start
    for x, y, turned in products:
        x, y = np.moveaxis(x, 0, -2), np.moveaxis(y, 0, -3)  # rows, times, inner; times, inner, columns
        width = math.prod(x.shape[-2:])
        product = np.matmul(x.reshape(*x.shape[:-2], width), y.reshape(*y.shape[:-3], width, y.shape[-1]))
        total = total + (product.T if turned else product)
    return total
