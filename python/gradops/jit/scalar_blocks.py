"""Many operations on single numbers as one step of a program.

A loop over observations is thousands of them, so they are no objects: five whole numbers each, in one array.
"""

from __future__ import annotations

import bisect
import functools
import operator
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..backends import _shared
from ..errors import ArgumentError
from ..ops._dispatch import registry
from .array import Place
from .steps import Step, direct


class Values:
    """Values by place, from 1 on: float64 numbers, which are most where there are many, eight bytes each.

    Attributes:
        numbers: single numbers and truth values, by place.
        others: all that is no float64 number, by place.
    """

    __slots__ = ("numbers", "others")

    def __init__(self) -> None:
        self.numbers = array("d", [0.0])
        self.others: dict[int, Any] = {0: None}

    def new(self, value) -> int:
        """The place of a new value."""
        place = len(self.numbers)
        self.numbers.append(0.0)
        self.put(place, value)
        return place

    def put(self, place: int, value) -> None:
        """Set the value at a place, which has none yet."""
        if value.__class__ is np.float64 or value.__class__ is float:
            self.numbers[place] = value
            return
        is_number = getattr(value, "shape", None) == () and value.dtype in (np.float64, np.bool_)
        self.numbers[place] = value if is_number else np.nan
        self.others[place] = value

    def __getitem__(self, place: int) -> Any:
        found = self.others.get(place)
        return np.float64(self.numbers[place]) if found is None else found

    def __len__(self) -> int:
        return len(self.numbers)

    def is_number(self, place: int) -> bool:
        """True if the value at a place is a float64 number."""
        return place not in self.others

    def clear(self) -> None:
        """Let go of them."""
        del self.numbers[:]
        self.others.clear()


WIDTH = 5
"""Words of an operation: its number, the place of its result, and those of up to three operands, 0 for none."""

FEW = 50
"""Operations that are looked at one by one, as NumPy's calls take longer."""

LONGEST = 1 << 16
"""The largest number of operations of a block, which bounds the memory for work on all of a block at once."""


class Operation:
    """An op of single numbers.

    Attributes:
        name: the op's.
        pattern: its arguments: None for each number, and settings.
        kernel: NumPy's function of these.
        is_plain: True if there are no settings.
        is_logical: True if it is one on truth values, whose results are truth values.
        operands: the number of its operands.
        number: its number in the words of a block.
        compute: the kernel as a function of the numbers alone, NumPy's or Python's; where it is an operator, Python's,
            which does it to the same bits.
    """

    __slots__ = ("name", "pattern", "kernel", "is_plain", "is_logical", "operands", "number", "compute")
    known: list[Operation] = []

    def __init__(self, name: str, pattern: tuple, kernel: Callable):
        self.name, self.pattern, self.kernel = name, pattern, kernel
        self.operands = sum(x is None for x in pattern)
        self.is_plain = self.operands == len(pattern)
        self.is_logical = name.startswith("logical_")
        if self.operands > WIDTH - 2:
            raise TypeError(f"`{name}` takes {self.operands} numbers; a block has room for {WIDTH - 2}")
        of_floats = kernel if isinstance(kernel, np.ufunc) else self._of_numpys
        _, plain = OPERATORS.get(kernel, ("", of_floats))
        self.compute = plain if self.is_plain else self._of_numpys
        self.number = len(self.known)
        self.known.append(self)

    def arguments(self, numbers) -> tuple:
        """The arguments with numbers in their places."""
        if self.is_plain:
            return tuple(numbers)
        rest = iter(numbers)
        return tuple([next(rest) if x is None else x for x in self.pattern])

    def _of_numpys(self, *numbers) -> Any:
        """The kernel on NumPy's numbers, for kernels that ask for dtypes."""
        return self.kernel(*self.arguments([np.float64(x) if x.__class__ is float else x for x in numbers]))


def _divide(x: float, y: float):
    return x / y if y else np.true_divide(x, y)


OPERATORS: dict[Callable, tuple[str, Callable]] = {
    np.add: ("+", operator.add),
    np.subtract: ("-", operator.sub),
    np.multiply: ("*", operator.mul),
    np.true_divide: ("/", _divide),
    np.negative: ("-", operator.neg),
}
"""Ufuncs that an operator of Python's does some times faster on single numbers, to the same bits: its sign, and it."""


def by_determinant(x, y):
    """``x / y`` by the determinant of a matrix, which must not be 0."""
    if not np.all(y):
        raise ArgumentError(f"{_shared.SINGULAR}.")
    return np.true_divide(x, y)


@functools.cache
def operation(name: str, pattern: tuple, kernel: Callable) -> Operation:
    """An operation, each made once."""
    return Operation(name, pattern, kernel)


COPY = operation("copy", (None,), np.positive)
"""The same value once more, as a number whose gradient is its own."""


@functools.cache
def of_numbers(name: str, kernel: Callable, count: int) -> Operation | None:
    """An op as an operation on single numbers; None if it takes or gives anything else."""
    entry = registry.get(name)
    if entry is None or not entry.facts.elementwise or entry.tensors != entry.parameters or count > WIDTH - 2:
        return None
    examples = [np.float64(0.5)] * count
    with np.errstate(all="ignore"):
        try:
            # Not of copies and parts, which are arrays without dimensions where their operand is one.
            results = kernel(*examples), kernel(*map(np.asarray, examples))
        except (TypeError, ValueError):
            return None
    if not all(isinstance(x, np.generic) and is_number(x) for x in results):
        return None
    return operation(name, (None,) * count, direct(kernel, examples))


def is_number(value) -> bool:
    """True if a value is a single float64 number or truth value."""
    return isinstance(value, (np.generic, np.ndarray)) and not value.ndim and value.dtype in (np.float64, np.bool_)


class Block:
    """Operations among a program's steps, whose results come one after the other.

    Args:
        words: of the operations, as :data:`WIDTH` says.
        start, stop: which of them.
    """

    name = "scalars"

    def __init__(self, words: array, start: int, stop: int):
        self._words, self._start, self._stop = words, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def rows(self) -> np.ndarray:
        """A row of each operation."""
        # A view of words that may still grow: it is for the moment, and a caller that kept it would make the next
        # operation that is written down a BufferError.
        return np.frombuffer(self._words, np.intc).reshape(-1, WIDTH)[self._start : self._stop]

    @property
    def places(self) -> np.ndarray:
        """The places of the results, in rising order."""
        return self.rows[:, 1]

    @functools.cached_property
    def uses(self) -> tuple[Place, ...]:
        """The places of the values that it takes from outside."""
        operands, own = self.rows[:, 2:], self.places
        if len(own) <= FEW:
            found = set(operands.ravel().tolist()).difference(own.tolist(), (0,))
            return tuple(map(Place, sorted(found)))
        taken = np.zeros(max(operands.max(), own[-1]) + 1, bool)
        taken[operands] = True
        taken[own] = taken[0] = False  # 0 stands for an operand that there is none of
        return tuple(map(Place, np.flatnonzero(taken).tolist()))

    @property
    def kinds(self) -> list[Operation]:
        """The operations, each once."""
        return [Operation.known[i] for i in set(self.rows[:, 0].tolist())]

    def names(self) -> Counter[str]:
        """The names of its ops, with their number."""
        found: Counter[str] = Counter()
        for number, times in enumerate(np.bincount(self.rows[:, 0]).tolist()):
            if times:
                name = Operation.known[number].name
                found[name] = found.get(name, 0) + times
        return found

    def those(self, wanted: np.ndarray) -> Block | None:
        """The block of some of its operations, for each True; None where it is none."""
        if wanted.all():
            return self
        rows = self.rows[wanted]
        return Block(array("i", rows.tobytes()), 0, len(rows)) if len(rows) else None


def among(places: np.ndarray, results: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of places among a block's results, and True for those that are among them."""
    first = results[0]
    position = np.full(results[-1] - first + 1, -1, np.intc)
    position[results - first] = np.arange(len(results))
    at = places - first
    at[(at < 0) | (at >= len(position))] = 0
    at = position[at]
    return at, (at >= 0) & (results[at] == places)


def steps_of(rows: list[list[int]]) -> Iterator[Step]:
    """Operations of a block, by their words, each as a step."""
    for number, place, *operands in rows:
        what = Operation.known[number]
        yield Step(what.name, what.kernel, what.arguments(map(Place, operands[: what.operands])), (place,), False)


class Operations:
    """Operations on single numbers while they are written down, none twice among the last of them.

    Args:
        values: of the places of a program.

    Attributes:
        words: of all operations, from the second on.
        table: where those stand that were written down many at a time, by their hash (:mod:`.native.records`).
    """

    def __init__(self, values: Values):
        self._values = values
        self._numbers = values.numbers
        self._first = len(values)  # nothing before it comes of an operation that is in no block
        self.words = array("i", [0] * WIDTH)
        self.table = np.zeros(0, np.intc)
        self._begun = 1  # the first operation that is in no block
        self._recent: dict[tuple, int] = {}
        self._older: dict[tuple, int] = {}

    def place(self, what: Operation, x: int, y: int = 0, z: int = 0) -> int:
        """The place of an operation's result, from the places of its operands."""
        # Each operation of a long loop comes here, some times over: calls, tuples and attributes count.
        call = what, x, y, z
        recent = self._recent
        known = recent.get(call)
        if known is None and self._older:
            known = self._older.get(call)
        if known is not None:
            return known
        numbers = self._numbers
        if what.operands == 2:
            value = what.compute(numbers[x], numbers[y])
        elif what.operands == 1:
            value = what.compute(numbers[x])
        else:
            value = what.compute(*[numbers[p] for p in (x, y, z)[: what.operands]])
        if value.__class__ is float:  # the most frequent case of `values.new()`
            place = len(numbers)
            numbers.append(value)
        else:
            place = self._values.new(value[()] if value.__class__ is np.ndarray else value)
        recent[call] = place
        self.words.extend((what.number, place, x, y, z))
        # Two tables, the older of which is dropped whole: what loops repeat is near. One table of all operations of a
        # loop of a million steps would be most of the memory, and one that forgets a key at a time costs as much as
        # the operation.
        if len(recent) == _RECENT:
            self._older, self._recent = recent, {}
        return place

    def row(self, place: int) -> list[int] | None:
        """The words of the operation whose result is at a place; None where there is none."""
        words = self.words
        # Places rise with the operations, but other values have places between, so it is searched for.
        at = bisect.bisect_left(range(1, len(words) // WIDTH), place, key=lambda i: words[i * WIDTH + 1]) + 1
        found = words[at * WIDTH : (at + 1) * WIDTH].tolist()
        return found if found and found[1] == place else None

    def are_used_by(self, places: tuple) -> bool:
        """True if some of the places may be results of operations that are in no block yet."""
        first, others = self._first, self._values.others
        for place in places:
            if place >= first and (place not in others or not np.ndim(others[place])):
                return len(self.words) > self._begun * WIDTH
        return False

    def blocks(self) -> list[Block]:
        """New blocks of the operations that are in no block yet."""
        start, self._begun = self._begun, len(self.words) // WIDTH
        self._first = len(self._values)
        return [Block(self.words, i, min(i + LONGEST, self._begun)) for i in range(start, self._begun, LONGEST)]

    def finish(self) -> None:
        """Let go of the tables by which an operation is found again."""
        self._recent.clear()
        self._older.clear()
        self.table = self.table[:0].copy()


_RECENT = 1 << 15
"""The number of recent operations; those before them are found again while as many follow."""


def count(steps: list) -> int:
    """The number of steps, with those of blocks."""
    return sum(len(step) if step.__class__ is Block else 1 for step in steps)


def names(step: Step | Block) -> Counter[str]:
    """The names of the ops of a step, with their number."""
    return step.names() if isinstance(step, Block) else Counter((step.name,))


def expanded(steps: list, unless: Callable = lambda block: False) -> list:
    """Steps with blocks, but for those that ``unless`` holds of, as their single steps."""
    found: list = []
    for step in steps:
        if isinstance(step, Block) and not unless(step):
            found += steps_of(step.rows.tolist())
        else:
            found.append(step)
    return found
