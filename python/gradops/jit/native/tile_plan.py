"""A group of steps on large arrays as the plan that the machine runs: instructions, operands, and their room."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array import Place
from ..program import Program
from ..steps import Step
from . import tile_run, tile_source
from .code import FLOATS
from .llvm import LANES
from .tile_run import Loop, Plan, Result

TILE = 1024
"""Elements of a tile."""

LARGE_TILE = 8192
"""The same where rows are multiplied by BLAS, whose calls take longer."""

FULL, COLUMN, ROW, ONE, PRODUCT, SPREAD = "full", "column", "row", "one", "product", "spread"

IDENTITIES: dict[np.ufunc, float] = {np.add: 0.0, np.maximum: -np.inf, np.minimum: np.inf}
"""The numbers that reductions begin with."""

PRODUCTS = frozenset(("matmul", "dot"))
"""Ops whose work is the product of a matrix and a vector."""


class Domain(NamedTuple):
    rows: int
    width: int


class Operand(NamedTuple):
    """An operand of an instruction: a place, or a number's bytes; how it lies in the domain; its dtype."""

    value: Any
    kind: str
    dtype: np.dtype

    @classmethod
    def number(cls, x, dtype: np.dtype) -> Operand:
        """A number that is the same at each call."""
        # By its bytes, as operands are keys: the number 2.0 is equal to the place 2, and 0.0 to -0.0.
        return cls(np.asarray(x, dtype).tobytes(), ONE, dtype)


class Instruction(NamedTuple):
    """A loop, and its operands, of which the last is the result.

    Attributes:
        over: ``FULL``, or what it is done for alone: each row (``COLUMN``), a row's elements (``ROW``), once (``ONE``);
            a ``PRODUCT`` is of all at once, and ``SPREAD`` makes a ``FULL`` array of a row or a number for each.
        initial: of a reduction, whose result is an operand, too, the loop that copies and the number it begins with.
    """

    loop: Loop
    operands: tuple[Operand, ...]
    over: str
    initial: tuple[Loop, float] | None = None

    def begun(self) -> list[Instruction]:
        """It, after the one that it begins with."""
        if self.initial is None:
            return [self]
        copy, number = self.initial
        out = self.operands[-1]
        return [Instruction(copy, (Operand.number(number, out.dtype), out), out.kind), self]


class Work(NamedTuple):
    """A step as instructions; ``part`` where its result is put together of the tiles' parts."""

    domain: Domain
    instructions: list[Instruction]
    result: Operand
    part: np.ufunc | None = None
    divisor: float = 1.0


class Inner:
    """A value between the instructions of one step."""

    dtype: np.dtype


SHORT = 16
"""Elements of a row from which on loops go along rows, not from row to row."""

REPEATED = 64
"""The same from which on a number for each row, or a row, is read again and again, not repeated to an array."""


class Written(NamedTuple):
    """The instructions of a plan as the compiler takes them.

    Attributes:
        rows, width: a full tile's.
        code: each instruction with the rows of its operands in the plan's table.
    """

    rows: int
    width: int
    code: list[tuple[Instruction, list[int]]]


class Writing:
    """The plan of one group while it is written."""

    def __init__(
        self, program: Program, domain: Domain, members: list[tuple[Step, Work]], outputs: list[int], spread: Loop
    ):
        self.program, self.domain, self.members, self.outputs = program, domain, members, outputs
        self.spread = spread
        is_product = any(step.name in PRODUCTS for step, _ in members)
        self.per = _evenly(domain.rows, max(1, (LARGE_TILE if is_product else TILE) // domain.width))
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
        """The plan, the places of its arguments, and its instructions."""
        instructions, once = self._once_first([x for one in self._spread(self._distinct()) for x in one.begun()])
        last = {o.value: i for i, x in enumerate(instructions) for o in x.operands if self._is_local(o.value)}
        for place in (*self.outputs, *(x.operands[-1].value for x in instructions[:once])):
            last.pop(place, None)
        words: list[int] = []
        written = Written(self.per, self.domain.width, [])
        for i, instruction in enumerate(instructions):
            rows = [self._row(o) for o in instruction.operands[:-1]]
            out = instruction.operands[-1]
            dying = [o for o in dict.fromkeys(instruction.operands[:-1]) if last.get(o.value) == i and o != out]
            # A result may take the room of an operand that no one reads later, also within the instruction: a loop
            # reads an element before it writes its result there. That is so where both have the same elements at the
            # same places, as rooms of one kind and size do; the result of a sum over rows, or of a product, is of
            # another kind than what it reads.
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
        # The addresses of a tile's operands stand at the beginning of the room.
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
        """Elements of the largest of an instruction's operands."""
        rows, width = self.domain
        sizes = {FULL: rows * width, COLUMN: rows, ROW: width}
        return max(sizes.get(o.kind, 1) for o in x.operands)

    def _once_first(self, instructions: list[Instruction]) -> tuple[list[Instruction], int]:
        """The instructions, first those whose results are the same for all tiles, and the number of these."""
        writes = Counter(x.operands[-1].value for x in instructions)
        once: list[Instruction] = []
        rest: list[Instruction] = []
        for x in instructions:
            *given, out = x.operands
            # What a reduction begins with it writes over, so it is written twice.
            is_same = self._is_room(out) and writes[out.value] == 1
            is_same &= all(o.kind in (ROW, ONE) and o.value not in writes for o in given)
            (once if is_same else rest).append(x)
        return [*once, *rest], len(once)

    def _distinct(self) -> list[Instruction]:
        """The instructions, each once: of two that are equal the first one's result is both's."""
        found: list[Instruction] = []
        known: dict[Any, Any] = {}
        same: dict[Any, Any] = {}
        for _, work in self.members:
            for x in work.instructions:
                *given, out = [Operand(same[o.value], o.kind, o.dtype) if o.value in same else o for o in x.operands]
                # Two steps may compute the same, as a function and its derivative do. The second one's result is then
                # the first one's, unless it is an array that the program reads, which must be there on its own. A
                # reduction reads its result, too, which is left out of the key, as it begins with the same number.
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
        """The instructions of short rows, with operands that are repeated as arrays, of which loops are quicker."""
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
            found = self.rows[o] = self._placed(o)
        return found

    def _placed(self, o: Operand) -> int:
        """The row of the table for an operand that is new."""
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
        """Counts and strides of a tile's product with a vector, or of the product of its transpose."""
        size, width = operands[0].dtype.itemsize, self.domain.width
        near, far = (size, size), (size * width, size)
        rows, columns = (0, 1), (width, 0)
        if operands[-1].kind == COLUMN:
            # A loop of `np.matmul` has four counts (products, rows, inner elements, columns) and nine strides: from
            # product to product of its three operands, then two of each. A vector is a matrix with one column. For the
            # transpose the counts of rows and columns change places, and so do the strides of the matrix.
            return [(1, 0), rows, columns, (1, 0)], [0, 0, 0, *far, *near, *near]
        return [(1, 0), columns, rows, (1, 0)], [0, 0, 0, *far[::-1], *near, *near]

    def _result(self, place: int) -> Result:
        work, value = self.made[place], self.program.value(place)
        row = self._row(work.result)
        if work.part is not None:
            row = self._joined(work, work.part, row)
        return Result(row, value.shape, value.dtype)

    def _joined(self, work: Work, ufunc: np.ufunc, parts: int) -> int:
        """The row of what the tiles' parts become once all tiles are done, by instructions that come last."""
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
        else:  # which NumPy's loop adds by halves
            self.closing.append(_line(loop, rows, [(tiles, 0)], [0, size, 0]))
        if work.divisor != 1.0:
            divisor = self._row(Operand.number(work.divisor, dtype))
            self.closing.append(_line(_loop(np.divide, dtype), [out, divisor, out], count, [size, 0, size]))
        return out


def _evenly(rows: int, most: int) -> int:
    """Rows of a tile, of as few tiles as there can be: all have as many, as only full ones are compiled, and shared."""
    each = -(-rows // -(-rows // most))
    return each if most % LANES else min(rows, -(-each // LANES) * LANES)


def _loop(ufunc: np.ufunc, dtype: np.dtype) -> Loop:
    found = tile_run.loop(ufunc, *[dtype] * (ufunc.nin + 1))
    assert found is not None
    return found


def _code(rows: int, per: int, places: int, once: int, words: list[int]) -> np.ndarray:
    """What the machine runs: instructions, behind the numbers of rows, of rows of a tile, and of operands."""
    count = len(words) // tile_source.WORDS
    return np.frombuffer(array("q", [rows, per, places, count, once, 0, count, *words]), np.int64)


def _line(
    loop: Loop,
    rows: list[int],
    counts: list[tuple[int, int]],
    steps: list[int],
    calls: tuple[int, int] = (1, 0),
    far: Sequence[int] = (),
) -> list[int]:
    """The words of an instruction.

    Args:
        rows: of its operands in the table.
        counts, calls: constants, and what is added for each row of a tile.
        steps, far: bytes from element to element, and from call to call.
    """
    words = [loop.address, loop.data, len(rows), *calls]
    for part, most in (
        ([n for pair in counts for n in pair], 2 * tile_source.COUNTS),
        (rows, tile_source.OPERANDS),
        (steps, tile_source.STEPS),
        (far, tile_source.OPERANDS),
    ):
        words += part
        words += [0] * (most - len(part))
    return words
