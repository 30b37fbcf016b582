"""Optimize bytecode by peephole rules: fewer instructions compute the same bits, as each costs a dispatch.

:mod:`.lowering` passes straight-line code, a table of instructions, to :class:`Shortened`; :mod:`.loops` passes a
loop's body to :func:`tightened`. Both do the following, without changing a bit of any result:

- Adding a negated value becomes a subtraction.
- An operation whose result only one other operation reads becomes one instruction with it (:data:`.FUSED`).

In a loop's body, the instruction that computes the next value of a state also writes it to the state's cell, if nothing
reads the old value later; this saves a copy.
"""

from __future__ import annotations

from array import array as words_of
from collections.abc import Callable, Iterable

import numpy as np

from .instructions import CALLS, FUSED, LONG, NUMBERS, OF_ROWS, OF_TWO, OPERATIONS, REDUCTIONS, ROWS, SHORT, VECTOR

# Straight-line code, which writes each cell once.

_ADD, _SUBTRACT, _NEGATIVE = NUMBERS["add"], NUMBERS["subtract"], NUMBERS["negative"]


def _opcode_mask(names) -> np.ndarray:
    """Return a table by opcode: True for the named instructions."""
    found = np.zeros(max(NUMBERS.values()) + 1, bool)
    found[[NUMBERS[name] for name in names]] = True
    return found


_IS_SUM, _IS_PRODUCT = _opcode_mask(("add", "subtract")), _opcode_mask(("multiply", "divide"))
_IS_OF_TWO = _IS_SUM | _IS_PRODUCT
_READS = np.zeros(len(_IS_SUM), np.intc)
for _name in (*OPERATIONS, *CALLS):
    _READS[NUMBERS[_name]] = OPERATIONS[_name].operands if _name in OPERATIONS else int(_name[-1])
_FUSED = np.zeros((len(_IS_SUM), len(_IS_SUM), 2), np.intc)
for _first in OF_TWO:
    for _second in OF_TWO:
        _left = NUMBERS[f"{_first}_{_second}_left"]
        _right = NUMBERS.get(f"{_first}_{_second}_right", _left)  # sums and products commute
        _FUSED[NUMBERS[_first], NUMBERS[_second]] = _right, _left

_MOST_OPERANDS = SHORT - 2

_ROUNDS = 4
"""The number of searches for pairs; each search fuses the first pair of every chain of operations."""


class Shortened:
    """Straight-line code after peephole optimization.

    Args:
        words: one instruction per row; their results are consecutive cells from ``first`` on.
        is_read_once: for each result, True if exactly one operation of the program reads it.

    Attributes:
        words: the remaining instructions; their results are again consecutive cells from ``first`` on.
        cells: the cell of each original result; meaningless for results that are no longer computed.
    """

    def __init__(self, words: np.ndarray, first: int, is_read_once: np.ndarray):
        self._first, self._count = first, len(words)
        self._columns = np.ascontiguousarray(words.T)
        self._gone = np.zeros(len(words), bool)
        self._reader = self._readers(is_read_once)
        for _ in range(2):  # each round removes one negation from a sum of two negated values
            self._absorb_negations()
        for _ in range(_ROUNDS):
            self._fuse()
        left = ~self._gone
        self.cells = first - 1 + np.cumsum(left, dtype=np.intc)
        columns = self._columns[:, left]
        columns[1] = self.cells[left]
        for number in range(_MOST_OPERANDS):
            of_results, at = self._results_read(columns, number)
            columns[2 + number, of_results] = self.cells[at]
        self.words = columns.T

    def _results_read(self, columns: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the instructions whose operand ``number`` is a result of this code, and which result it is."""
        at = columns[2 + number] - self._first
        found = np.flatnonzero((at >= 0) & (at < self._count) & (_READS[columns[0]] > number))
        return found, at[found]

    def _readers(self, is_read_once: np.ndarray) -> np.ndarray:
        """Return the only reader of each result; -1 if there are several, or one outside this code."""
        found = np.full(self._count, -1, np.intc)
        for number in range(_MOST_OPERANDS):
            readers, at = self._results_read(self._columns, number)
            found[at] = readers
        found[~is_read_once] = -1
        name, _, x, y, _ = self._columns
        squared = x[(_READS[name] > 1) & (x == y)] - self._first  # `x * x` was `x**2` when reads were counted
        found[squared[squared >= 0]] = -1
        return found

    def _absorb_negations(self) -> None:
        """Turn additions of ``-x``, or of a product with ``-x``, into subtractions, and drop the negation."""
        (name, out, x, y, _), reader = self._columns, self._reader
        i = np.flatnonzero((name == _NEGATIVE) & (reader >= 0))
        changed = reader[i]
        by_product = _IS_PRODUCT[name[changed]] & (reader[changed] >= 0)
        total = np.where(by_product, reader[changed], changed)
        cells = np.where(by_product, out[changed], out[i])
        fits = (name[total] == _ADD) | (name[total] == _SUBTRACT) & (y[total] == cells)
        at = np.flatnonzero(fits)
        at = at[np.unique(total[at], return_index=True)[1]]
        i, changed, total, cells, by_product = i[at], changed[at], total[at], cells[at], by_product[at]
        for operand in (x, y):
            here = by_product & (operand[changed] == out[i])
            operand[changed[here]] = x[i[here]]
        x[total] = np.where(x[total] == cells, y[total], x[total])
        y[total] = np.where(by_product, cells, x[i])
        name[total] = np.where(name[total] == _ADD, _SUBTRACT, _ADD)
        self._leave_out(i, changed)

    def _fuse(self) -> None:
        """Fuse operations with the only reader of their result."""
        name, out, x, y, z = self._columns
        i = np.flatnonzero(_IS_OF_TWO[name] & (self._reader >= 0))
        second = self._reader[i]
        fits = _IS_OF_TWO[name[second]]
        i, second = i[fits], second[fits]
        # If each operation of a chain reads the previous one, neighbouring pairs share an operation and cannot both be
        # fused. A product and the sum that reads it go first, as the product is never second in such a pair. If no such
        # pair is left, fuse the pairs whose first operation is not second in another pair.
        heads = _IS_PRODUCT[name[i]] & _IS_SUM[name[second]]
        if not heads.any():
            of_pairs = np.zeros(self._count, bool)
            of_pairs[second] = True
            heads = ~of_pairs[i]
        i, second = i[heads], second[heads]
        _, at = np.unique(second, return_index=True)
        i, second = i[at], second[at]
        is_left = x[second] == out[i]
        z[second] = np.where(is_left, y[second], x[second])
        name[second] = _FUSED[name[i], name[second], is_left.astype(np.intc)]
        x[second], y[second] = x[i], y[i]
        self._leave_out(i, second)

    def _leave_out(self, i: np.ndarray, instead: np.ndarray) -> None:
        """Remove instructions ``i``; the instructions ``instead`` now read their operands."""
        columns = self._columns[:, i]
        for number in range(2):
            mine, at = self._results_read(columns, number)
            mine, at = mine[self._reader[at] == i[mine]], at[self._reader[at] == i[mine]]
            self._reader[at] = instead[mine]
        self._reader[i] = -1
        self._gone[i] = True


LARGEST = 5_000
"""The longest body of a loop that is optimized, in words."""

MOST = 64
"""The largest state of a loop whose body is optimized, in numbers."""

# Loop bodies.

_NAMES = list(NUMBERS)
_OPERANDS: dict[str, tuple[int, ...]] = {
    **{name: (2, 3, 4)[: o.operands] for name, o in OPERATIONS.items()},
    **{name: (2, 3, 4)[: int(name[-1])] for name in CALLS},
    "load": (3,),
    "store": (2, 3),
    "index": (2,),
}
"""For each instruction on numbers, the positions of its words that are cells it reads."""


class _Instruction:
    """An instruction of a loop's body.

    Attributes:
        words: its words.
        reads: the cells that it reads.
        writes: the cells that it writes; empty for a store, which writes at a computed index.
        simple: True for an instruction on single numbers; only its operands may be renamed.
    """

    def __init__(self, words: list[int]):
        self.words = words
        self.name = _NAMES[words[0] % VECTOR]
        self.simple = words[0] < VECTOR and ROWS.get(self.name, ("", 1))[1] == 1

    @property
    def is_known(self) -> bool:
        return not self.simple or self.name in _OPERANDS

    @property
    def is_operation(self) -> bool:
        return self.simple and (self.name in OPERATIONS or self.name in CALLS)

    @property
    def reads(self) -> list[int]:
        words = self.words
        if self.simple:
            return [words[i] for i in _OPERANDS[self.name]]
        if self.name in ROWS:
            _, _, a, b, *_ = words
            return [b] if ROWS[self.name][0] == "load" else [b, *range(a, a + self._count)]
        _, _, a, b, c, n, *strides = words[:LONG]
        if self.name == "gather":
            return words[LONG:]
        if self.name == "product":
            columns, far_a, far_b = strides[2], *strides[:2]
            return [
                start + abs(far) * i + j
                for start, far, (rows, width) in ((a, far_a, (n, c)), (b, far_b, (c, columns)))
                for i in range(rows if far > 0 else width)
                for j in range(width if far > 0 else rows)
            ]
        if self.name == "pick":
            return [*range(b, b + n)]
        is_of_one = self.name in REDUCTIONS or self.name in OF_ROWS
        count = 2 if self.name == "dot" else 1 if is_of_one else len(_OPERANDS[self.name])
        return [start + stride * i for start, stride in zip((a, b, c)[:count], strides) for i in range(n)]

    @property
    def writes(self) -> Iterable[int]:
        if self.name in ROWS and ROWS[self.name][0] == "store":
            return ()
        out = self.words[1]
        if self.name == "product":
            return range(out, out + self._count * self.words[8])
        is_one = self.simple or self.name == "dot" or self.name in REDUCTIONS
        return (out,) if is_one else range(out, out + self._count)

    @property
    def _count(self) -> int:
        """The number of elements of an instruction on several numbers."""
        return self.words[5] if self.words[0] >= VECTOR else ROWS[self.name][1]

    def read_instead(self, cell: int, other: int) -> None:
        """Read ``other`` instead of ``cell``."""
        for i in _OPERANDS[self.name]:
            if self.words[i] == cell:
                self.words[i] = other

    def subtract_instead(self, cell: int, other: int) -> None:
        """Subtract or add ``other``, where the instruction adds or subtracts ``cell``, which is minus ``other``."""
        _, _, a, b, *_ = self.words
        self.name = "add" if self.name == "subtract" else "subtract"
        self.words[0] = NUMBERS[self.name]
        self.words[2:4] = [b if a == cell else a, other]


def tightened(
    words: words_of, begin: int, source: np.ndarray, cells: np.ndarray, by_position: list[range]
) -> np.ndarray:
    """Optimize a loop's body in place.

    Args:
        words: bytecode that ends with the body.
        begin: the index of the body's first word.
        source: the cells of the state's next value.
        cells: the cells of the state; the caller copies ``source`` there after the body.
        by_position: cells that are accessed at computed indices; instructions on them are not changed.

    Returns:
        A mask of the copies from ``source`` to ``cells`` that are still needed.
    """
    left = np.ones(len(cells), bool)
    if len(words) - begin > LARGEST or len(cells) > MOST:
        return left
    # Straight-line code writes each cell once, so a reader can be moved freely. In a loop a state's cell is read,
    # written at the end, and read in the next iteration. So an instruction may only move past instructions that do not
    # write its operands, which `_are_written` checks below. Bodies with jumps, checks or inner loops are left
    # unchanged: these instructions are not in `_OPERANDS` (`is_known`).
    body = _parsed(words[begin:].tolist())
    if not all(x.is_known for x in body):
        return left
    moves = dict(zip(cells.tolist(), source.tolist()))

    def is_fixed(cell: int) -> bool:
        return any(cell in span for span in by_position)

    made = set(moves.values())

    def is_needed(cell: int) -> bool:
        return cell in made or is_fixed(cell)

    body = _fused(_drop_negations(body, is_needed), is_needed)
    for i, (cell, value) in enumerate(zip(cells.tolist(), source.tolist())):
        others = [v for c, v in moves.items() if c != cell]
        # A value that is copied to two cells, and a cell that is the next value of another, need copies after the body.
        if any(x in others or is_fixed(x) for x in (cell, value)):
            continue
        if _written_in_place(body, value, cell):
            left[i] = False
            del moves[cell]
    del words[begin:]
    for x in body:
        words.extend(x.words)
    return left


def _parsed(words: list[int]) -> list[_Instruction]:
    found, at = [], 0
    while at < len(words):
        size = SHORT if words[at] < VECTOR else LONG
        if words[at] == NUMBERS["gather"] + VECTOR:
            size += words[at + SHORT]
        found.append(_Instruction(words[at : at + size]))
        at += size
    return found


def _drop_negations(body: list[_Instruction], is_needed: Callable[[int], bool]) -> list[_Instruction]:
    """Return the body with fewer negations: they move past products, and vanish where a sum can subtract."""
    readers = _readers(body)
    i = 0
    while i < len(body):
        x = body[i]
        i += 1
        if x.name != "negative" or not x.simple or is_needed(cell := x.words[1]):
            continue
        found, (given,) = readers.get(cell, []), x.reads
        if not found or not all(y.simple and y.reads.count(cell) == 1 and y.name in OF_TWO for y in found):
            continue
        last = max(map(body.index, found))
        if _are_written(body[i : last + 1], [given, cell]):
            continue
        if all((y.name, y.words[3] == cell) in _WITHOUT_SIGN for y in found):
            for y in found:
                y.subtract_instead(cell, given)
                readers[given].append(y)
            readers[given].remove(x)
            i -= 1
            del body[i]
        elif len(found) == 1 and found[0].name in ("multiply", "divide"):
            product = found[0]
            product.read_instead(cell, given)
            out = product.words[1]
            product.words[1], x.words[1:3] = cell, [out, cell]
            readers[given] = [product if y is x else y for y in readers[given]]
            readers[cell] = [x]
            body.remove(x)
            body.insert(last, x)
            i -= 1
    return body


_WITHOUT_SIGN = {("add", False), ("add", True), ("subtract", True)}
"""Operations that can absorb a negated operand, each with True if that operand is the second one."""


def _readers(body: list[_Instruction]) -> dict[int, list[_Instruction]]:
    found: dict[int, list[_Instruction]] = {}
    for x in body:
        for cell in x.reads:
            found.setdefault(cell, []).append(x)
    return found


def _fused(body: list[_Instruction], is_needed: Callable[[int], bool]) -> list[_Instruction]:
    """Return the body with fused pairs of operations; results that are needed elsewhere are still computed."""
    readers = _readers(body)
    place = {id(x): i for i, x in enumerate(body)}
    gone = set()
    for first in body:
        cell = first.words[1]
        if not first.simple or first.name not in OF_TWO or len(readers.get(cell, ())) != 1 or is_needed(cell):
            continue
        (second,) = readers[cell]
        is_left = second.words[2] == cell
        name = f"{first.name}_{second.name}_{'left' if is_left or second.name in ('add', 'multiply') else 'right'}"
        between = body[place[id(first)] + 1 : place[id(second)]]
        if not second.simple or name not in FUSED or _are_written(between, first.reads):
            continue
        operands = first.reads
        for operand in operands:
            readers[operand] = [second if r is first else r for r in readers[operand]]
        second.words[:] = [NUMBERS[name], second.words[1], *operands, second.words[3 if is_left else 2]]
        second.name = name
        gone.add(id(first))
    return [x for x in body if id(x) not in gone]


def _are_written(body: list[_Instruction], cells: list[int]) -> bool:
    return any(cell in x.writes for x in body for cell in cells)


def _written_in_place(body: list[_Instruction], value: int, cell: int) -> bool:
    """Make the instruction that computes ``value`` write to ``cell``; return False if that is not possible.

    The instruction moves to the end of the body if later instructions read the old value of ``cell``.
    """
    makers = [i for i, x in enumerate(body) if value in x.writes]
    if len(makers) != 1 or not body[makers[0]].is_operation:
        return False
    (at,) = makers
    made, later = body[at], body[at + 1 :]
    readers = [x for x in later if value in x.reads]
    if not any(cell in x.reads or cell in x.writes for x in later):
        if not all(x.simple for x in readers):
            return False
        for x in readers:
            x.read_instead(value, cell)
    elif readers or _are_written(later, made.reads) or any(cell in x.writes for x in later):
        return False
    else:
        body.append(body.pop(at))
    made.words[1] = cell
    return True
