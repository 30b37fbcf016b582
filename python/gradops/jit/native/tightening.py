"""Loops made shorter when their code is written: what a pass costs is its number of instructions.

A sign that is changed and then added is subtracted, to the same bits. An operation whose result is read by one other
alone is one instruction with it, of two roundings as before. The next value of a state is written to its place by the
instruction that computes it, where nothing reads the old one later.
"""

from __future__ import annotations

from array import array as words_of
from collections.abc import Callable, Iterable

import numpy as np

from .instructions import CALLS, FUSED, LONG, NUMBERS, OF_TWO, OPERATIONS, REDUCTIONS, ROWS, SHORT, VECTOR

LARGEST = 5_000
"""Words of a body."""

MOST = 64
"""Numbers of a state."""

_NAMES = list(NUMBERS)
_OPERANDS: dict[str, tuple[int, ...]] = {
    **{name: (2, 3, 4)[: o.operands] for name, o in OPERATIONS.items()},
    **{name: (2, 3, 4)[: int(name[-1])] for name in CALLS},
    "load": (3,),
    "store": (2, 3),
    "index": (2,),
}
"""Where the words of an instruction on numbers say what it reads."""


class _Instruction:
    """An instruction with its words.

    Attributes:
        reads: the cells that it reads.
        writes: the cells that it writes; of a row in an array none.
        simple: whether it is one on numbers, whose words may be others.
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
        count = 2 if self.name == "dot" else 1 if self.name in REDUCTIONS else len(_OPERANDS[self.name])
        return [start + stride * i for start, stride in zip((a, b, c)[:count], strides) for i in range(n)]

    @property
    def writes(self) -> Iterable[int]:
        if self.name in ROWS and ROWS[self.name][0] == "store":
            return ()
        out = self.words[1]
        is_one = self.simple or self.name == "dot" or self.name in REDUCTIONS
        return (out,) if is_one else range(out, out + self._count)

    @property
    def _count(self) -> int:
        """Of how many numbers one is that is not simple."""
        return self.words[5] if self.words[0] >= VECTOR else ROWS[self.name][1]

    def read_instead(self, cell: int, other: int) -> None:
        for i in _OPERANDS[self.name]:
            if self.words[i] == cell:
                self.words[i] = other

    def subtract_instead(self, cell: int, other: int) -> None:
        """Of a sum or difference with ``cell``, which is minus ``other``: do it with ``other``."""
        _, _, a, b, *_ = self.words
        self.name = "add" if self.name == "subtract" else "subtract"
        self.words[0] = NUMBERS[self.name]
        self.words[2:4] = [b if a == cell else a, other]


def tightened(
    words: words_of, begin: int, source: np.ndarray, cells: np.ndarray, by_position: list[range]
) -> np.ndarray:
    """Make a body shorter that begins at ``begin`` and after which ``source`` is to be moved to ``cells``.

    Args:
        by_position: cells that are read or written where values say, which stay what they are.

    Returns:
        Which of them are still to be moved.
    """
    left = np.ones(len(cells), bool)
    if len(words) - begin > LARGEST or len(cells) > MOST:
        return left
    body = _parsed(words[begin:].tolist())
    if not all(x.is_known for x in body):
        return left
    moves = dict(zip(cells.tolist(), source.tolist()))

    def is_fixed(cell: int) -> bool:
        return any(cell in span for span in by_position)

    made = set(moves.values())

    def is_needed(cell: int) -> bool:
        return cell in made or is_fixed(cell)

    body = _fused(_signed(body, is_needed), is_needed)
    for i, (cell, value) in enumerate(zip(cells.tolist(), source.tolist())):
        others = [v for c, v in moves.items() if c != cell]
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


def _signed(body: list[_Instruction], is_needed: Callable[[int], bool]) -> list[_Instruction]:
    """The body with fewer changes of sign: after products rather than before, and in sums as differences."""
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
"""Operations, and whether the second operand is the one of changed sign, that are others without it."""


def _readers(body: list[_Instruction]) -> dict[int, list[_Instruction]]:
    found: dict[int, list[_Instruction]] = {}
    for x in body:
        for cell in x.reads:
            found.setdefault(cell, []).append(x)
    return found


def _fused(body: list[_Instruction], is_needed: Callable[[int], bool]) -> list[_Instruction]:
    """The body with pairs of operations as one, but those that make what is needed elsewhere."""
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
    """Let the instruction that computes ``value`` write it to ``cell``; at the end, where others read that before."""
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
