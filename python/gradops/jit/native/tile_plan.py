"""Plan the execution of a group of steps on large arrays: instructions, a table of operands, and scratch memory.

:mod:`.tiles` passes a group's steps as :class:`Work` to :class:`Writing`, whose :meth:`~Writing.plan` returns the
:class:`.tile_run.Plan` that :class:`.tile_run.Tiles` executes. Each thread has a *room*, scratch memory with a buffer
for one tile of each intermediate value.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array import Place
from ..program import Program
from ..steps import Step
from . import tile_run
from .code import FLOATS
from .llvm import LANES
from .tile_run import Loop, Plan, Result

TILE = 1024
"""The number of elements of a tile, approximately."""

LARGE_TILE = 8192
"""The size of a tile in groups with matrix-vector products, whose calls cost more."""

FULL, COLUMN, ROW, ONE, PRODUCT, SPREAD = "full", "column", "row", "one", "product", "spread"
"""The first four are kinds of operands: a full array, a number for each row, one row, one number.

All six say what an instruction covers: see :class:`Instruction`.
"""

OPERANDS = 4
"""The most operands of an instruction, including its result."""

COUNTS, STEPS = 4, 9
"""The most counts and strides of a loop, which are those of ``np.matmul``; ``runtime/tiles.c`` has the same numbers."""

HEAD = 7
"""The number of words before the instructions.

They are the number of rows of the domain, of rows of a tile, of operands, of instructions, and of those that each
thread executes once; then the first instruction, and the one after the last, for a last tile that is shorter.
"""

WORDS = 5 + 2 * COUNTS + OPERANDS + STEPS + OPERANDS
"""The number of words of an instruction.

They are the loop and its data, the number of operands, the number of calls and the counts of a call, each as a constant
and a multiple of the tile's rows, then the operands' table rows, the loop's strides, and the strides between calls.
"""

FUNCTIONS = ("exp", "expm1", "log", "log1p", "tanh")
"""Functions of eight numbers in ``runtime/eight_functions.h``, named like NumPy's ufuncs."""

WAVES = ("sin", "cos")
"""Functions whose loop (``runtime/tile_loops.c``) calls NumPy's if a number is large."""

POWERS = range(3, 9)
"""Powers of eight numbers in ``runtime/eight_functions.h``."""

IDENTITIES: dict[np.ufunc, float] = {np.add: 0.0, np.maximum: -np.inf, np.minimum: np.inf}
"""The initial values of reductions."""

PRODUCTS = frozenset(("matmul", "dot"))
"""Ops that are executed as products of a matrix and a vector."""


class Domain(NamedTuple):
    """The iteration space of a group: the number of rows, and of elements in a row."""

    rows: int
    width: int


class Operand(NamedTuple):
    """An operand of an instruction.

    Attributes:
        value: a slot, an :class:`Inner`, or the bytes of a constant number.
        kind: how the operand broadcasts to the domain: ``FULL``, ``COLUMN``, ``ROW`` or ``ONE``.
        dtype: its dtype.
    """

    value: Any
    kind: str
    dtype: np.dtype

    @classmethod
    def number(cls, x, dtype: np.dtype) -> Operand:
        """Return the operand for a constant number."""
        # Operands are dictionary keys, so the value is the number's bytes: 2.0 would be equal to slot 2, and 0.0 to
        # -0.0.
        return cls(np.asarray(x, dtype).tobytes(), ONE, dtype)


class Instruction(NamedTuple):
    """A call of an inner loop for each tile.

    Attributes:
        loop: the loop to call.
        operands: its operands; the last is the result.
        over: the elements that it covers: ``FULL`` all elements, ``COLUMN`` one for each row, ``ROW`` those of one row,
            ``ONE`` a single one. A ``PRODUCT`` takes the whole tile at once, and ``SPREAD`` repeats a row, or a number
            for each row, to a ``FULL`` array.
        initial: for a reduction, whose result is also an operand, the loop that sets its initial value, and the value.
    """

    loop: Loop
    operands: tuple[Operand, ...]
    over: str
    initial: tuple[Loop, float] | None = None

    def sequence(self) -> list[Instruction]:
        """Return the instruction, for a reduction after the one that sets its initial value."""
        if self.initial is None:
            return [self]
        copy, number = self.initial
        out = self.operands[-1]
        return [Instruction(copy, (Operand.number(number, out.dtype), out), out.kind), self]


class Work(NamedTuple):
    """A step as instructions of a group.

    Attributes:
        domain: the iteration space.
        instructions: the instructions.
        result: the step's result.
        part: for a result that each tile computes a part of, the ufunc that combines the parts, else None.
        divisor: divides the combined result; used by means.
    """

    domain: Domain
    instructions: list[Instruction]
    result: Operand
    part: np.ufunc | None = None
    divisor: float = 1.0


class Inner:
    """An intermediate value of one step."""

    dtype: np.dtype


SHORT = 16
"""The shortest row along which loops run; for shorter rows, they run down the columns."""

REPEATED = 64
"""The shortest row for which a broadcast operand is read directly; for shorter rows, it is repeated to a full array."""


class Written(NamedTuple):
    """The instructions of a plan, for :mod:`.tile_compiler`.

    Attributes:
        rows, width: the number of rows of a full tile, and of elements in a row.
        code: each instruction, with the table rows of its operands.
    """

    rows: int
    width: int
    code: list[tuple[Instruction, list[int]]]


class Writing:
    """Writes the plan of one group.

    Args:
        program: the recorded program.
        domain: the group's iteration space.
        members: the group's steps, in order, with their instructions.
        outputs: the slots whose values must become arrays.
        spread: the loop of ``SPREAD`` instructions.
    """

    def __init__(
        self, program: Program, domain: Domain, members: list[tuple[Step, Work]], outputs: list[int], spread: Loop
    ):
        self.program, self.domain, self.members, self.outputs = program, domain, members, outputs
        self.spread = spread
        is_product = any(step.name in PRODUCTS for step, _ in members)
        self.per = _tile_rows(domain.rows, max(1, (LARGE_TILE if is_product else TILE) // domain.width))
        self.tiles = -(-domain.rows // self.per)
        self.made = {step.places[0]: work for step, work in members}
        self.table: list[list[int]] = []
        self.rows: dict[Any, int] = {}
        self.inputs: dict[int, None] = {}
        self.arrays: list[tuple[int, int]] = []
        self.numbers: list[tuple[Any, int, np.dtype]] = []
        self.parts: list[tuple[int, tuple[int, ...], np.dtype]] = []
        self.closing: list[list[int]] = []
        self.size = 0
        self.free: dict[tuple[str, int], list[int]] = {}

    def plan(self) -> tuple[Plan, list[int], Written]:
        """Return the plan, the slots of its arguments, and its instructions."""
        instructions, once = self._hoist([x for one in self._spread(self._distinct()) for x in one.sequence()])
        last = {o.value: i for i, x in enumerate(instructions) for o in x.operands if self._is_local(o.value)}
        for place in (*self.outputs, *(x.operands[-1].value for x in instructions[:once])):
            last.pop(place, None)
        words: list[int] = []
        written = Written(self.per, self.domain.width, [])
        for i, instruction in enumerate(instructions):
            rows = [self._row(o) for o in instruction.operands[:-1]]
            out = instruction.operands[-1]
            dying = [o for o in dict.fromkeys(instruction.operands[:-1]) if last.get(o.value) == i and o != out]
            # A result may reuse the buffer of an operand that is read for the last time here, as a loop reads an
            # element before it writes the result. That holds if both have the same layout, which buffers of the same
            # kind and size have; a sum over rows, or a product, has another kind than its operands.
            if out not in self.rows:
                for o in dying:
                    if self._is_room(out) and (o.kind, o.dtype.itemsize) == (out.kind, out.dtype.itemsize):
                        self.rows[out] = self.rows[o]
                        dying.remove(o)
                        break
            rows.append(self._row(out))
            for o in (*dying, *[out] * (last.get(out.value) == i)):
                self.free.setdefault((o.kind, o.dtype.itemsize), []).append(self.rows[o])
            words += self._words(instruction, rows)
            written.code.append((instruction, rows))
        work = sum(self._elements(x) for x in instructions)
        results = [self._result(place) for place in self.outputs]
        places = len(self.table)
        inputs = list(self.inputs)
        number = {place: i for i, place in enumerate(inputs)}
        # The room starts with the addresses of the tile's operands.
        start = -(-8 * len(self.table) // 64) * 64
        for row in self.table:
            row[0] += start * row[1]
        plan = Plan(
            _code(self.domain.rows, self.per, places, once, words),
            _code(1, 1, places, 0, [word for line in self.closing for word in line]),
            np.array(self.table, np.int64),
            [(number[place], row) for place, row in self.arrays],
            [(Place(number[x]) if isinstance(x, Place) else x, row, dtype) for x, row, dtype in self.numbers],
            results,
            self.parts,
            start + self.size,
            work,
        )
        return plan, inputs, written

    def _elements(self, x: Instruction) -> int:
        """Return the size of an instruction's largest operand."""
        rows, width = self.domain
        sizes = {FULL: rows * width, COLUMN: rows, ROW: width}
        return max(sizes.get(o.kind, 1) for o in x.operands)

    def _hoist(self, instructions: list[Instruction]) -> tuple[list[Instruction], int]:
        """Move instructions whose results are the same for all tiles to the front; return all, and how many moved."""
        writes = Counter(x.operands[-1].value for x in instructions)
        once: list[Instruction] = []
        rest: list[Instruction] = []
        for x in instructions:
            *given, out = x.operands
            # A reduction overwrites its initial value, so its buffer is written twice.
            is_same = self._is_room(out) and writes[out.value] == 1
            is_same &= all(o.kind in (ROW, ONE) and o.value not in writes for o in given)
            (once if is_same else rest).append(x)
        return [*once, *rest], len(once)

    def _distinct(self) -> list[Instruction]:
        """Return the members' instructions without duplicates (common subexpression elimination)."""
        found: list[Instruction] = []
        known: dict[Any, Any] = {}
        same: dict[Any, Any] = {}
        for _, work in self.members:
            for x in work.instructions:
                *given, out = [Operand(same[o.value], o.kind, o.dtype) if o.value in same else o for o in x.operands]
                # Two steps may compute the same value, as a function and its derivative do. The second step then uses
                # the first one's result, unless the program reads the second as an array, which must exist. The key
                # omits the result, although a reduction reads it, as it starts from the same number.
                read = given if x.initial is None else [o for o in given if o != out]
                key = x.loop, x.over, x.initial, out.kind, out.dtype, *read
                if key in known and self._is_room(out):
                    same[out.value] = known[key]
                    continue
                if self._is_room(out):
                    known[key] = out.value
                found.append(Instruction(x.loop, (*given, out), x.over, x.initial))
        return found

    def _spread(self, instructions: list[Instruction]) -> list[Instruction]:
        """Repeat broadcast operands to full arrays if rows are short, which makes loops faster."""
        if not 1 < self.domain.width < REPEATED:
            return instructions
        found: list[Instruction] = []
        known: dict[Operand, Operand] = {}
        for x in instructions:
            *given, out = x.operands
            for i, o in enumerate(given):
                if x.over == FULL and o != out and o.kind in (COLUMN, ROW) and o.dtype == FLOATS[0]:
                    if o not in known:
                        known[o] = Operand(Inner(), FULL, o.dtype)
                        found.append(Instruction(self.spread, (o, known[o]), SPREAD))
                    given[i] = known[o]
            found.append(x._replace(operands=(*given, out)))
        return found

    def _is_local(self, value) -> bool:
        if isinstance(value, Place):
            return value in self.made and self.made[value].part is None
        return isinstance(value, Inner)

    def _is_room(self, o: Operand) -> bool:
        return self._is_local(o.value) and o.value not in self.outputs

    def _row(self, o: Operand) -> int:
        found = self.rows.get(o)
        if found is None:
            found = self.rows[o] = self._allocate(o)
        return found

    def _allocate(self, o: Operand) -> int:
        """Add an operand to the table; return its row."""
        size = o.dtype.itemsize
        across = {COLUMN: size, ROW: 0, ONE: 0}.get(o.kind, size * self.domain.width)
        if self._is_room(o):
            free = self.free.get((o.kind, size))
            if free:
                return free.pop()
            start, bytes_ = self.size, self.per * (self.domain.width if o.kind == FULL else 1) * size
            self.size += -(-bytes_ // 64) * 64
            return self._new([start, 1, 0, 0])
        if isinstance(o.value, Place) and o.value in self.made:
            if self.made[o.value].part:
                return self._new([0, 0, 0, size * (self.domain.width if o.kind == ROW else 1)])
            return self._new([0, 0, across, 0])
        row = self._new([0, 0, across, 0])
        if isinstance(o.value, Place):
            self.inputs[o.value] = None
        if o.kind == ONE:
            self.numbers.append((o.value, row, o.dtype))
        else:
            self.arrays.append((o.value, row))
        return row

    def _new(self, row: list[int]) -> int:
        self.table.append(row)
        return len(self.table) - 1

    def _words(self, instruction: Instruction, rows: list[int]) -> list[int]:
        operands, width = instruction.operands, self.domain.width
        along, across = [], []
        for o in operands:
            size = o.dtype.itemsize
            along.append(size if o.kind in (FULL, ROW) else 0)
            across.append({FULL: size * width, COLUMN: size}.get(o.kind, 0))
        nothing = [0] * len(operands)
        calls, counts, outer = (1, 0), [(0, width)], nothing
        inner = along
        if instruction.over == ONE:
            counts, inner = [(1, 0)], nothing
        elif instruction.over == ROW:
            counts = [(width, 0)]
        elif instruction.over == COLUMN:
            counts, inner = [(0, 1)], across
        elif instruction.over == PRODUCT:
            counts, inner = self._product(operands)
        elif instruction.over == SPREAD:
            counts, inner = [(0, 1), (width, 0)], [along[0], across[0]]
        elif any(o.kind not in (FULL, ONE) for o in operands):
            if width >= SHORT:
                calls, counts, outer = (0, 1), [(width, 0)], across
            else:
                calls, counts, inner, outer = (width, 0), [(0, 1)], across, along
        return _line(instruction.loop, rows, counts, inner, calls, outer)

    def _product(self, operands: tuple[Operand, ...]) -> tuple[list[tuple[int, int]], list[int]]:
        """Return the counts and strides of a product of a tile, or of its transpose, with a vector."""
        size, width = operands[0].dtype.itemsize, self.domain.width
        near, far = (size, size), (size * width, size)
        rows, columns = (0, 1), (width, 0)
        if operands[-1].kind == COLUMN:
            # A loop of `np.matmul` takes four counts (products, rows, inner elements, columns) and nine strides: those
            # between products for its three operands, then two for each operand. A vector is a matrix with one column.
            # For the transpose, the counts of rows and columns are swapped, and so are the strides of the matrix.
            return [(1, 0), rows, columns, (1, 0)], [0, 0, 0, *far, *near, *near]
        return [(1, 0), columns, rows, (1, 0)], [0, 0, 0, *far[::-1], *near, *near]

    def _result(self, place: int) -> Result:
        work, value = self.made[place], self.program.value(place)
        row = self._row(work.result)
        if work.part is not None:
            row = self._combine(work, work.part, row)
        return Result(row, value.shape, value.dtype)

    def _combine(self, work: Work, ufunc: np.ufunc, parts: int) -> int:
        """Write closing instructions that combine the tiles' parts of a result; return the result's table row."""
        dtype, tiles = work.result.dtype, self.tiles
        size, of_row = dtype.itemsize, work.result.kind == ROW
        width = self.domain.width if of_row else 1
        self.parts.append((parts, (tiles, width), dtype))
        out, count = self._new([0, 0, 0, 0]), [(width, 0)]
        first = self._row(Operand.number(IDENTITIES[ufunc], dtype))
        self.closing.append(_line(_loop(np.positive, dtype), [first, out], count, [0, size]))
        rows, loop = [out, parts, out], _loop(ufunc, dtype)
        if of_row:
            self.closing.append(_line(loop, rows, count, [size] * 3, (tiles, 0), [0, size * width, 0]))
        else:  # NumPy's loop adds the parts pairwise
            self.closing.append(_line(loop, rows, [(tiles, 0)], [0, size, 0]))
        if work.divisor != 1.0:
            divisor = self._row(Operand.number(work.divisor, dtype))
            self.closing.append(_line(_loop(np.divide, dtype), [out, divisor, out], count, [size, 0, size]))
        return out


def _tile_rows(rows: int, most: int) -> int:
    """Return the number of rows of a tile, for the fewest tiles of at most ``most`` rows.

    Tiles are made equal in size, as only full ones are compiled, and threads share them evenly.
    """
    each = -(-rows // -(-rows // most))
    return each if most % LANES else min(rows, -(-each // LANES) * LANES)


def _loop(ufunc: np.ufunc, dtype: np.dtype) -> Loop:
    found = tile_run.loop(ufunc, *[dtype] * (ufunc.nin + 1))
    assert found is not None
    return found


def _code(rows: int, per: int, places: int, once: int, words: list[int]) -> np.ndarray:
    """Return the words of a plan: the header (see :data:`.HEAD`), then the instructions."""
    count = len(words) // WORDS
    return np.frombuffer(array("q", [rows, per, places, count, once, 0, count, *words]), np.int64)


def _line(
    loop: Loop,
    rows: list[int],
    counts: list[tuple[int, int]],
    steps: list[int],
    calls: tuple[int, int] = (1, 0),
    far: Sequence[int] = (),
) -> list[int]:
    """Return the words of an instruction; see :data:`.WORDS`.

    Args:
        loop: the loop to call.
        rows: the table rows of its operands.
        counts, calls: the loop's counts, and the number of calls, each as a constant and a multiple of the tile's rows.
        steps, far: the operands' strides in bytes within a call, and between calls.
    """
    words = [loop.address, loop.data, len(rows), *calls]
    for part, most in (
        ([n for pair in counts for n in pair], 2 * COUNTS),
        (rows, OPERANDS),
        (steps, STEPS),
        (far, OPERANDS),
    ):
        words += part
        words += [0] * (most - len(part))
    return words
