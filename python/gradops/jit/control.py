"""What writes loops and branches down to a program, as they are, while a function is traced."""

from __future__ import annotations

from collections.abc import Callable

from .. import backends
from ..autodiff.variable import data_of
from . import branches, loops
from .array import Traced
from .dependencies import Captured
from .program import Program

FEWEST = 4
"""Steps of a loop that is one; fewer are written down one after the other."""


class Recorder:
    """Loops and branches of a program; each is NotImplemented where Python should do it.

    Args:
        unrolled: whether loops over rows are to be written down step by step, for what looks at each of them.
    """

    def __init__(self, program: Program, unrolled: bool = False):
        self.program, self.unrolled = program, unrolled

    def within(self, inner: Program) -> Recorder:
        """The recorder of a program inside of this one's."""
        return Recorder(inner, self.unrolled)

    def scan(self, f: Callable, carry: list, rows: list, count: int, reverse: bool):
        if self.unrolled or count < FEWEST or not all(map(_is_array, (*carry, *rows))):
            return NotImplemented
        return loops.scan(self.program, f, carry, rows, count, reverse)

    def fori_loop(self, step: Callable, leaves: list, lower, upper):
        if not all(map(_is_array, leaves)):
            return NotImplemented
        if not isinstance(lower, int) or not isinstance(upper, int):
            return branches.fori_loop(self.program, step, leaves, lower, upper)
        if self.unrolled or upper - lower < FEWEST:
            return NotImplemented
        captured = Captured(step)
        try:
            return loops.fori_loop(self.program, step, leaves, lower, upper)
        except Exception:  # what looks at the number, or changes what it closes over in R, is written out
            captured.refuse_changes()  # which it did while that was tried
            return NotImplemented

    def branch(self, op: str, index, functions: list[Callable]):
        return branches.branch(self.program, op, index, functions) if _is_array(index) else NotImplemented

    def while_loop(self, holds: Callable, step: Callable, leaves: list, bound: int | None):
        if not all(map(_is_array, leaves)):
            return NotImplemented
        return branches.while_loop(self.program, holds, step, leaves, bound)


def _is_array(x) -> bool:
    data = data_of(x)
    return isinstance(data, Traced) or getattr(backends.of(data), "yields", False)
