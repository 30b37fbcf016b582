"""The table of a recorded program: one row for each operation, on single numbers and on arrays.

A loop over observations records thousands of operations on single numbers, so a row is not an object: it is five
integers of one array. While a function is traced, :mod:`.program` appends rows to a :class:`Table`. A pass takes
:class:`Rows`, which are some rows of the table, and gives :class:`Rows`; it works on all rows at once. A pass that
handles one operation at a time iterates over the rows and gets each as a :class:`.Step`.
"""

from __future__ import annotations

import bisect
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .array import Place, frozen
from .operations import NARROW, NumberOperation, Operation
from .steps import OPERAND, Step

WIDTH = 5
"""Words of a row: the operation's number, the place of the result, the places of up to three operands (0: no operand).

A row with more operands, or with several results, is wide: its third word is the start of its list in the table's
``lists``, and its last word is -1. A list has the class of the results (0 a single result, 1 a list, 2 a tuple), the
number of results, their places, and the places of the operands.
"""

OWN = 1 << 24
"""The number of a program's first own operation; smaller numbers are operations on single numbers."""

FEW = 50
"""Rows up to which a Python loop is faster than NumPy calls."""

LONGEST = 1 << 16
"""The largest number of rows that are handled at once, to bound the memory of a pass."""

_CLASSES = (None, list, tuple)


class Values:
    """The values of a program by place, from 1 on. A float64 number takes eight bytes, as long loops have many.

    Attributes:
        numbers: single numbers and truth values, by place.
        others: values other than float64 numbers, by place.
    """

    __slots__ = ("numbers", "others")

    def __init__(self) -> None:
        self.numbers = array("d", [0.0])
        self.others: dict[int, Any] = {0: None}

    def new(self, value) -> int:
        """Add a value and return its place."""
        place = len(self.numbers)
        self.numbers.append(0.0)
        self.put(place, value)
        return place

    def put(self, place: int, value) -> None:
        """Set the value of a place that has no value yet."""
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
        """Release all values."""
        del self.numbers[:]
        self.others.clear()


class Table:
    """The rows of a program while it is recorded. A row that repeats a recent one is not added.

    Args:
        values: the values at the program's places.

    Attributes:
        words: the words of all rows; row 0 is a placeholder.
        lists: the lists of wide rows, see :data:`WIDTH`.
        operations: the program's own operations, by number less :data:`OWN`.
        hashes: a hash table of the rows that were recorded many at a time (:mod:`.native.records`).
    """

    def __init__(self, values: Values):
        self._values = values
        self._numbers = values.numbers
        self.words = array("i", [0] * WIDTH)
        self.lists = array("i")
        self.operations: list[Operation] = []
        self.hashes = np.zeros(0, np.intc)
        self._is_finished = False
        self._interned: dict[Any, Operation] = {}
        self._recent: dict[tuple, Any] = {}
        self._older: dict[tuple, Any] = {}

    def __len__(self) -> int:
        return len(self.words) // WIDTH - 1

    # Operations.

    def operation(self, number: int) -> Operation:
        """Return the operation with a number."""
        return NumberOperation.known[number] if number < OWN else self.operations[number - OWN]

    def interned(self, name: str, kernel: Callable, pattern: tuple, operands: int) -> Operation:
        """Return the operation with these arguments; always a new one if the arguments cannot be compared."""
        key = (name, kernel, *[x if x is OPERAND else frozen(x) for x in pattern])
        try:
            found = self._interned.get(key)
        except TypeError:
            return self._new_operation(name, kernel, pattern, operands)
        if found is None:
            found = self._interned[key] = self._new_operation(name, kernel, pattern, operands)
        return found

    def _new_operation(self, name: str, kernel: Callable, pattern: tuple, operands: int) -> Operation:
        self.operations.append(Operation(name, kernel, pattern, operands, OWN + len(self.operations)))
        return self.operations[-1]

    # Recording.

    def compute(self, what: NumberOperation, x: int, y: int = 0, z: int = 0) -> int:
        """Record an operation on single numbers by the places of its operands; return the place of its result."""
        # Each operation of a long loop comes here, often several times: the calls, tuples and attribute reads matter.
        call = what.number, x, y, z
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
        if len(recent) == _RECENT:
            self._age()
        return place

    def known_results(self, what: Operation, operands: list[Place]) -> tuple[tuple[int, ...], Any] | None:
        """Return the places and the class of the results of an equal row, or None if there is no such row."""
        call = (what.number, *operands)
        found = self._recent.get(call)
        return self._older.get(call) if found is None and self._older else found

    def append(self, what: Operation, operands: list[Place], results: tuple[int, ...], several: Any) -> None:
        """Record an operation whose results were computed by the caller."""
        self.words.extend(self.row(what, operands, results, several))
        self._recent[(what.number, *operands)] = results, several
        if len(self._recent) == _RECENT:
            self._age()

    def row(self, what: Operation, operands: list[Place], results: tuple[int, ...], several: Any) -> list[int]:
        """Return the words of a row."""
        if several is None and len(operands) <= NARROW:
            return [what.number, *results, *operands, *(0,) * (NARROW - len(operands))]
        start = len(self.lists)
        self.lists.extend((_CLASSES.index(several), len(results), *results, *operands))
        return [what.number, results[0] if results else 0, start, 0, -1]

    def rows_of(self, steps: Iterable[Step]) -> Rows:
        """Return rows for steps whose results have places in the program, without recording them."""
        words = array("i")
        for step in steps:
            pattern, operands = step.split()
            what = self.interned(step.name, step.function, pattern, len(operands))
            words.extend(self.row(what, operands, step.places, step.several))
        return Rows(self, np.frombuffer(words, np.intc).reshape(-1, WIDTH))

    def _age(self) -> None:
        # There are two dictionaries, and the older one is dropped at once: a loop repeats what was recorded recently.
        # One dictionary for a loop of a million steps would be most of the memory; dropping one key at a time costs as
        # much as recording the row.
        self._older, self._recent = self._recent, {}

    # Reading rows.

    def rows(self, first: int = 0) -> Rows:
        """Return the rows from number ``first`` on, counted from 0."""
        words = np.frombuffer(self.words, np.intc).reshape(-1, WIDTH)[1 + first :]
        # An `array` cannot grow while a view of its memory exists.
        return Rows(self, words if self._is_finished else words.copy())

    def row_with(self, place: int) -> list[int] | None:
        """Return the words of the row that computes a place, or None if no row does."""
        words = self.words
        # A binary search: places rise with the rows, but arguments and constants take places between them. The results
        # of one row have successive places.
        at = bisect.bisect_right(range(1, len(words) // WIDTH), place, key=lambda i: words[i * WIDTH + 1])
        found = words[at * WIDTH : (at + 1) * WIDTH].tolist()
        return found if at and place in self.results(found) else None

    def results(self, row: list[int]) -> list[int]:
        """Return the places of a row's results."""
        if row[4] >= 0:
            return row[1:2]
        start, count = row[2] + 2, self.lists[row[2] + 1]
        return self.lists[start : start + count].tolist()

    def operands(self, row: list[int]) -> list[int]:
        """Return the places of a row's operands."""
        count = self.operation(row[0]).operands
        if row[4] >= 0:
            return row[2 : 2 + count]
        start = row[2] + 2 + self.lists[row[2] + 1]
        return self.lists[start : start + count].tolist()

    def several(self, row: list[int]) -> Any:
        """Return the class of a row's results if it has several, else None."""
        return None if row[4] >= 0 else _CLASSES[self.lists[row[2]]]

    def step(self, row: list[int]) -> Step:
        """Return a row as a step."""
        what = self.operation(row[0])
        if row[4] >= 0:
            operands, results, several = row[2 : 2 + what.operands], row[1:2], None
        else:
            operands, results, several = self.operands(row), self.results(row), self.several(row)
        arguments = what.arguments(map(Place, operands))
        step = Step(what.name, what.kernel, arguments, tuple(map(Place, results)), several)
        step.table, step.row = self, row
        return step

    def finish(self) -> None:
        """End recording: release the dictionaries that detect repeated rows."""
        self._is_finished = True
        for table in (self._interned, self._recent, self._older):
            table.clear()
        self.hashes = self.hashes[:0].copy()


_RECENT = 1 << 15
"""The number of recent rows in which a repeated row is detected; up to as many before them are searched as well."""


class Rows:
    """Some rows of a table, in order.

    Attributes:
        words: an array of one line per row, see :data:`WIDTH`.
    """

    name = "scalars"

    def __init__(self, table: Table, words: np.ndarray):
        self.table, self.words = table, words

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[Step]:
        """Iterate over the rows as steps."""
        return map(self.table.step, self.words.tolist())

    def __getitem__(self, which) -> Rows:
        return Rows(self.table, self.words[which])

    @property
    def places(self) -> np.ndarray:
        """The place of each row's first result; places rise from row to row."""
        return self.words[:, 1]

    @property
    def wide(self) -> np.ndarray:
        """The indices of the wide rows."""
        return np.flatnonzero(self.words[:, 4] < 0)

    @property
    def are_numbers(self) -> np.ndarray:
        """True for each row whose operation is on single numbers."""
        return self.words[:, 0] < OWN

    def operands(self) -> np.ndarray:
        """Return the places of the operands of all rows."""
        wide = self.wide
        if not len(wide):
            found = self.words[:, 2:].ravel()
        else:
            narrow = np.delete(self.words, wide, 0)[:, 2:].ravel()
            lists = [self.table.operands(row) for row in self.words[wide].tolist()]
            found = np.concatenate([narrow, np.array([p for operands in lists for p in operands], np.intc)])
        return found[found != 0]

    def results(self) -> np.ndarray:
        """Return the places of the results of all rows."""
        lists = [self.table.results(row)[1:] for row in self.words[self.wide].tolist()]
        others = np.array([p for results in lists for p in results], np.intc)
        return np.concatenate([self.places, others]) if len(others) else self.places

    @property
    def uses(self) -> tuple[Place, ...]:
        """The places that the rows read but do not compute, each once."""
        operands, own = self.operands(), self.results()
        if len(own) <= FEW:
            return tuple(map(Place, sorted(set(operands.tolist()).difference(own.tolist()))))
        taken = np.zeros(max(operands.max(initial=0), own.max(initial=0)) + 1, bool)
        taken[operands] = True
        taken[own] = False
        return tuple(map(Place, np.flatnonzero(taken).tolist()))

    @property
    def operations(self) -> list[Operation]:
        """The distinct operations of the rows."""
        return [self.table.operation(i) for i in set(self.words[:, 0].tolist())]

    def names(self) -> Counter[str]:
        """Count the rows by the name of their op."""
        found: Counter[str] = Counter()
        for number, times in zip(*np.unique(self.words[:, 0], return_counts=True)):
            name = self.table.operation(number).name
            found[name] = found.get(name, 0) + int(times)
        return found

    def stretches(self) -> list[Step | Rows]:
        """Return the rows as steps, with runs of operations on single numbers as :class:`Rows`.

        A run goes on past a step on arrays unless that step reads a result of the run.
        """
        words, are_numbers = self.words, self.are_numbers
        if not are_numbers.any():
            return list(self)
        numbers = words[are_numbers, 1]
        found: list[Step | Rows] = []
        first = 0  # the first row of the open run

        def close(end: int) -> None:
            stretch = words[first:end]
            if len(numbers) < len(words):
                stretch = stretch[are_numbers[first:end]]
            found.extend(Rows(self.table, stretch[i : i + LONGEST]) for i in range(0, len(stretch), LONGEST))

        # A run stays open as long as possible. A step on arrays that reads no result of the run goes before it.
        others = np.flatnonzero(~are_numbers)
        start = int(words[0, 1])
        for i, row in zip(others.tolist(), words[others].tolist()):
            step = self.table.step(row)
            if any(place >= start and _is_among(place, numbers) for place in step.uses):
                close(i)
                first, start = i, row[1]
            found.append(step)
        close(len(words))
        return found


def _is_among(place: int, places: np.ndarray) -> bool:
    """True if a sorted array has a place."""
    at = int(np.searchsorted(places, place))
    return at < len(places) and int(places[at]) == place


def joined(table: Table, steps: Iterable[Step | Rows]) -> Rows:
    """Return the rows of steps that were made from rows of the table."""
    words = array("i")
    for step in steps:
        if isinstance(step, Rows):
            words.frombytes(step.words.tobytes())
        else:
            words.extend(step.row)
    return Rows(table, np.frombuffer(words, np.intc).reshape(-1, WIDTH))


def count(steps: Iterable) -> int:
    """Count the steps, including each row of a run."""
    return sum(len(step) if step.__class__ is Rows else 1 for step in steps)


def names(step: Step | Rows) -> Counter[str]:
    """Count the rows of a step by the name of their op."""
    return step.names() if isinstance(step, Rows) else Counter((step.name,))


def expanded(steps: Iterable, unless: Callable = lambda rows: False) -> list[Any]:
    """Replace each run of rows by its steps, except runs for which ``unless`` is true."""
    found: list = []
    for step in steps:
        if isinstance(step, Rows) and not unless(step):
            found += step
        else:
            found.append(step)
    return found
