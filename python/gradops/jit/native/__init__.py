"""Native code for recorded programs: a bytecode interpreter for small values, and fused tiles for large arrays.

:func:`lowered` takes a program's rows and returns steps, native where possible. ``jit/emission.py`` calls it for each
compiled function. :func:`alone` compiles a single loop; ``jit/loops.py`` and ``jit/control.py`` call it for loops that
are not part of a native run.

Three words recur. A *slot* (``Place``) is the number of a value in a program. The *machine* is a bytecode interpreter
in C, which LLVM compiles once for each processor. A *cell* is an index into the machine's memory, a flat
array of 8-byte numbers: each run of native steps has its own.

Steps on single numbers and small arrays become bytecode:

- ``plan`` selects the steps that can be native and groups them into runs.
- ``lowering`` writes the bytecode of a run. ``code`` allocates its cells and emits instructions, ``number_rows``
  handles operations on single numbers many at a time, and ``peephole`` merges instructions.
- ``registry`` has a lowering rule for each op; ``rules``, ``products``, ``positions`` (gather and scatter), ``systems``
  (linear solves) and ``loops`` define these rules.
- ``instructions`` lists the opcodes. The interpreter and vector instructions are C in ``runtime``, which ``machine``
  compiles and ``cache`` stores on disk.
- ``run`` calls the interpreter, repeats a call with NumPy if NumPy would warn, and reports what is native and why the
  rest is not.
- ``loop_compiler`` compiles hot loops of bytecode to machine code, for which ``emitter`` writes LLVM IR.

Steps on large arrays are fused instead. ``tiles`` finds groups of steps that can share one pass over the data,
``tile_plan`` writes their instructions, which call inner loops of ufuncs, and ``tile_run`` calls the function that
executes them tile by tile, in threads. ``tile_compiler`` compiles hot groups, several instructions as one loop.

``records`` records operations on single numbers in bulk. Its functions, the one that executes tiles, inner loops that
NumPy lacks, and sparse Cholesky factorization are also C in ``runtime``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..program import Program
from ..steps import Step
from ..table import Rows
from . import loops as _loops  # noqa: F401  # these modules register their rules
from . import machine
from . import positions as _positions  # noqa: F401
from . import products as _products  # noqa: F401
from . import rules as _rules  # noqa: F401
from . import systems as _systems  # noqa: F401
from .lowering import lowered as _lowered
from .records import mark_operands
from .run import Explained, Run
from .tile_run import Tiles
from .tiles import NATIVE
from .tiles import tiled as _tiled

__all__ = ["Explained", "Run", "Tiles", "alone", "lowered", "mark_operands"]


def lowered(program: Program, rows: Rows, wanted: set[int]) -> tuple[list[Step], Explained]:
    """Return a program's rows as steps, native where possible, and an explanation of what is native.

    Args:
        program: the recorded program that the rows belong to.
        rows: the rows to execute, in order.
        wanted: the slots whose values the caller reads.
    """
    found = machine.machine()
    if found is None or not program.root.is_native:
        return list(rows), Explained(len(rows), [], {}, "native=False" if found else machine.why_not())
    try:
        steps = _tiled(program, rows.stretches(), wanted, found)
        new, refused = _lowered(program, rows, steps, wanted, found)
    except machine.NotCompiled as error:
        machine.warn(f"a compiled function runs without native code: {error}")
        return list(rows), Explained(len(rows), [], {}, str(error))
    refused = Counter({key: times for key, times in refused.items() if key[0] != NATIVE})
    return new, Explained(len(rows), [s.function for s in new if isinstance(s.function, (Run, Tiles))], refused)


class Alone:
    """A single loop as native code: a function of the arrays of all argument groups, in order."""

    def __init__(self, run: Any, order: list[int]):
        self._run, self._order = run, order

    def __call__(self, *arrays) -> list:
        return self._run(*[arrays[i] for i in self._order])

    def first_rows(self, count: int, last: int) -> Alone:
        """Return the loop over its first ``count`` rows; ``last`` is the number of the last one."""
        return Alone(self._run.first_rows(count, last), self._order)


def alone(name: str, kernel: Callable, groups: Sequence[Sequence], examples: Sequence) -> Alone | None:
    """Compile a single loop to native code; return None if that is not possible.

    Args:
        name: the name of the loop's op, such as ``"scan"``.
        kernel: the loop, as the function of a step.
        groups: for each argument of the kernel, its arrays.
        examples: arrays with the shapes and dtypes of the kernel's results.
    """
    program = Program()
    places = [tuple(program.input(x).place for x in group) for group in groups]
    results = [program.input(x).place.index for x in examples]
    step = Step(name, kernel, (kernel, *places), tuple(results), list)
    (made, *_), _ = lowered(program, program.table.rows_of([step]), set(results))
    if not isinstance(made.function, Run):
        return None
    return Alone(made.function, [program.inputs.index(p.index) for p in made.arguments])
