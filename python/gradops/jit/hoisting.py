"""Programs in two stages: what depends only on arguments that seldom change is computed once for them.

A likelihood is a function of parameters, which change at each call, and of data. :class:`Hoisted` splits the rows of
its program. The early rows read data only; the reference executor runs them, so that their results have the bits of
constants. The late rows are compiled, with the results of the early rows as arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from ..ops._dispatch import facts_of
from . import emission
from .array import Place
from .liveness import needed_rows
from .program import Program
from .reference import Reference
from .table import OWN, Rows


class Hoisted:
    """A program in two stages. It has the interface of a function made by :func:`.emission.function`.

    Args:
        outputs, holds: see :func:`.emission.function`.
        count: the number of first inputs that change at each call. The other inputs must be arrays that nobody writes
            to: the early rows run again if an input is another object.
    """

    def __init__(self, program: Program, outputs: list, holds: Place | None, count: int, is_called: bool):
        results = [o.index for o in (*outputs, holds) if isinstance(o, Place)]
        rows = needed_rows(program, results)
        depends = _dependent(rows, program.inputs[:count])
        late = _add_cheap_rows(program, rows, depends)
        after = rows[late]
        read = {*after.operands().tolist(), *results}
        made = sorted(read.intersection(rows[~late].results().tolist()))
        before = needed_rows(program, made, among=rows[~depends])
        given = [place for place in program.inputs[count:] if place in read]
        self._count, self._at = count, [program.inputs.index(place) for place in given]
        self._early = Reference.make(program, before, list(map(Place, made)))
        self._known: tuple[tuple, list] | None = None
        inputs, program.inputs = program.inputs, [*program.inputs[:count], *given, *made]
        self._late = emission.function(program, outputs, holds, rows=after, is_called=is_called)
        program.inputs = inputs
        self.source, self.steps, self.native = self._late.source, self._late.steps, self._late.native
        self.proof, self.sole = self._late.proof, None
        self.verification = None if self._late.verification is None else self

    def __call__(self, *arrays) -> list | None:
        return self._late(*self._inputs(arrays))

    def _inputs(self, arrays) -> list:
        """Return the inputs of the late rows."""
        seldom, known = arrays[self._count :], self._known
        if known is None or not all(map(operator.is_, seldom, known[0])):
            self._known = known = seldom, [*[arrays[i] for i in self._at], *self._early(*arrays)]
        return [*arrays[: self._count], *known[1]]

    # As a :class:`.Verification`.

    @property
    def failed(self) -> str:
        return self._late.verification.failed

    def rounded(self, arrays: list) -> Callable[[Callable], list]:
        return self._late.verification.rounded(self._inputs(tuple(arrays)))


def _dependent(rows: Rows, places: list[int]) -> np.ndarray:
    """Return for each row whether it depends on one of the places."""
    table, depends, found = rows.table, set(places), np.zeros(len(rows), bool)
    for i, row in enumerate(rows.words.tolist()):
        if not depends.isdisjoint(table.operands(row)):
            depends.update(table.results(row))
            found[i] = True
    return found


def _add_cheap_rows(program: Program, rows: Rows, late: np.ndarray) -> np.ndarray:
    """Return the late rows and the rows that make single numbers and views for them.

    A loop over observations reads as many numbers. Native code computes them faster than it reads them as arguments,
    and reads a matrix as its transpose.
    """
    table, found, read = rows.table, late.copy(), set(rows[late].operands().tolist())
    for i in np.flatnonzero(~late)[::-1].tolist():
        row = rows.words[i].tolist()
        if row[1] in read and (row[0] < OWN or _is_view(table.operation(row[0]).name, *map(program.value, row[1:3]))):
            found[i] = True
            read.update(table.operands(row))
    return found


def _is_view(name: str, value, source) -> bool:
    """True for an element or a view of the first operand, ``source``; results of ``moves`` may also be copies."""
    return bool(facts_of(name).view) and (not np.ndim(value) or np.may_share_memory(value, source))
