"""Compiled programs at native speed: runs of steps on numbers and small arrays, as code that one compiled loop runs.

``plan`` finds the runs and ``lowering`` writes their code by the rules of a ``registry`` (``rules`` and those of
``products``, ``positions``, ``systems`` and ``loops``), with the help of ``code``: positions in one flat memory;
``peephole`` makes it fewer instructions. ``machine`` is the loop (its text in ``machine_source``, the meaning of its
instructions in ``instructions``), compiled by LLVM once and stored by ``cache``. A ``run`` calls it, replays it with
NumPy where that would warn, and says which steps are native and why the rest are not. Loops that have run for long
``loop_compiler`` compiles; the text of instructions is the ``emitter``'s for it as for the machine.

Steps on large arrays go another way: ``tiles`` finds the groups of them, ``tile_plan`` writes their instructions, calls
of the loops of ufuncs, ``tile_source`` is the function that runs these, and ``tile_run`` calls it, in threads. Groups
that have run for long ``tile_compiler`` compiles, several instructions as one loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..program import Program
from ..steps import Step
from ..table import Rows
from . import loops as _loops  # noqa: F401  # these register their rules, or their part of the machine's text
from . import machine
from . import machine_source as _machine_source  # noqa: F401
from . import positions as _positions  # noqa: F401
from . import products as _products  # noqa: F401
from . import record_source as _record_source  # noqa: F401
from . import rules as _rules  # noqa: F401
from . import sparse_source as _sparse_source  # noqa: F401
from . import systems as _systems  # noqa: F401
from . import tile_source as _tile_source  # noqa: F401
from .lowering import lowered as _lowered
from .records import mark_operands
from .run import Explained, Run
from .tile_run import Tiles
from .tiles import NATIVE
from .tiles import tiled as _tiled

__all__ = ["Explained", "Run", "Tiles", "alone", "lowered", "mark_operands"]


def lowered(program: Program, rows: Rows, wanted: set[int]) -> tuple[list[Step], Explained]:
    """The rows of a program as steps, with runs of native code for those that can be native, and an explanation."""
    found = machine.machine()
    if found is None or not program.root.is_native:
        return list(rows), Explained(len(rows), [], {}, "native=False" if found else machine.why_not())
    steps = _tiled(program, rows.stretches(), wanted, found)
    new, refused = _lowered(program, rows, steps, wanted, found)
    refused = Counter({key: times for key, times in refused.items() if key[0] != NATIVE})
    return new, Explained(len(rows), [s.function for s in new if isinstance(s.function, (Run, Tiles))], refused)


class Alone:
    """The kernel of a loop as native code, a function of the arrays in all groups."""

    def __init__(self, run: Any, order: list[int]):
        self._run, self._order = run, order

    def __call__(self, *arrays) -> list:
        return self._run(*[arrays[i] for i in self._order])

    def first_rows(self, count: int, last: int) -> Alone:
        """Return the loop over its first ``count`` rows; ``last`` is the number of the last of them."""
        return Alone(self._run.first_rows(count, last), self._order)


def alone(name: str, kernel: Callable, groups: Sequence[Sequence], examples: Sequence) -> Alone | None:
    """The kernel of a loop as native code; None where it cannot be that.

    Args:
        groups: arrays, by the kernel's arguments.
        examples: arrays as it gives them.
    """
    program = Program()
    places = [tuple(program.input(x).place for x in group) for group in groups]
    results = [program.input(x).place.index for x in examples]
    step = Step(name, kernel, (kernel, *places), tuple(results), list)
    (made, *_), _ = lowered(program, program.table.rows_of([step]), set(results))
    if not isinstance(made.function, Run):
        return None
    return Alone(made.function, [program.inputs.index(p.index) for p in made.arguments])
