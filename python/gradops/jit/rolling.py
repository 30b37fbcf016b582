"""Rolling: replace a loop that Python or R unrolled by one loop operation, before derivatives are recorded.

A loop of the user's language records its operations once for each iteration, and each derivative records several more
for each of them. :func:`rolled` finds iterations that record the same operations, each on results of the one before,
and records :func:`gradops.ops.scan` instead. Derivatives are then recorded from one iteration.

An operation that each iteration has counts the iterations: a value belongs to iteration k if it depends on k results of
this operation, one after the other. What depends on none of them is computed before the loop. Values from there that
differ between iterations are stacked, as the loop's rows; values of iterations that are read afterwards are the loop's
results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import ops
from .._tree import map_items
from ..autodiff import inplace, record, state
from ..autodiff.graph import PICK, Node, Rule, key, nodes_of
from ..autodiff.variable import data_of, is_active
from ..ops._dispatch import registry
from . import scalars
from .agreement import agree
from .array import Place, Traced
from .liveness import needed_rows
from .operations import Operation, determinant_quotient
from .program import Program
from .reference import is_control
from .steps import OPERAND
from .table import OWN, Rows

FEWEST = 8
"""The smallest number of iterations of a loop that is replaced."""

SAVED = 300
"""The smallest number of operations on arrays that a loop must replace."""

SHARE = 0.02
"""The smallest share of operations on arrays. Single numbers are recorded many at a time, so their loops cost little."""

TRIES = 8
"""The largest number of operations that are tried as the one that counts iterations."""

TAPE_NODES = frozenset(("scalars", "numbers", PICK.name))
"""Names of the tape's nodes that are not ops."""


def is_natural(rule: Rule) -> bool:
    """True for gradops' own derivatives, False for custom ones."""
    return rule.vjp is None or rule.vjp.__module__ in (record.__name__, inplace.__name__, scalars.__name__)


def is_recorded_by_ops(program: Program, rows: Rows, nodes: list[Node]) -> bool:
    """True if each node of the tape is an op that rows compute."""
    composed = {program.composed[place].name for place in program.composed.keys() & set(rows.places.tolist())}
    return {node.name for node in nodes} <= rows.names().keys() | composed | TAPE_NODES


def rolled(program: Program, inputs: Sequence, function: Callable):
    """Return ``function()``, with its longest unrolled loop as one operation where that is possible.

    The loop stays unrolled if the function has custom gradients, hooks or stopped gradients, as only the tape knows
    their derivatives, or if it reads a variable other than ``inputs``.

    Args:
        inputs: variables of arrays of ``program``.
        function: returns a variable; all operations that it records are ops or custom gradients.
    """
    if state.packers or not program.is_native:
        return function()
    start = len(program.table)
    left: list = []
    with state.watching(left.append, state.readers), state.watching(left.append, state.leavers):
        y = function()
    if left or len(program.table) - start < SAVED or not is_active(y) or not isinstance(data_of(y), Traced):
        return y
    try:
        new = _with_loop(program, inputs, y)
    except _Unfit:
        return y
    return y if new is None else new


class _Unfit(Exception):
    """Rows that no loop of ops replaces."""


class _Call(NamedTuple):
    """An operation, the places of its operands and results, and the class of several results."""

    what: Operation
    operands: tuple[int, ...]
    results: tuple[int, ...]
    several: Any


def _with_loop(program: Program, inputs: Sequence, y):
    """Return the same value as ``y`` with a loop; None if there is no loop to replace."""
    output: Any = data_of(y)
    if output.program is not program:
        return None
    rows = needed_rows(program, [output.place], program.composed)
    arrays = len(rows) - int(rows.are_numbers.sum())
    if arrays < max(SAVED, SHARE * len(rows)):
        return None
    given = {key(x._node or x) for x in inputs}
    nodes = [node for node in nodes_of([y], given) if node.seq not in given]
    if not is_recorded_by_ops(program, rows, nodes) or not all(is_natural(node.rule) for node in nodes):
        return None
    edges = [edge for node in nodes for edge in node.edges if edge is not None]
    if any(edge.__class__ is not Node and key(edge) not in given for edge in edges):
        return None
    if not state.hooks.isdisjoint(node.seq for node in nodes):
        return None
    calls = _Calls(program, rows)
    loops = [_found(calls, anchor) for anchor in _anchors(calls)]
    loop = max((x for x in loops if x is not None), key=_Loop.calls, default=None)
    if loop is None:
        return None
    new = _Rolled(calls, loop).value({data_of(x).place: x for x in inputs}, output.place)
    return new if agree([data_of(new).value], [output.value], _any_rounding, len(rows)) else None


def _any_rounding(rounding):
    raise _Unfit


class _Calls(list):
    """Rows of a program as calls of ops.

    A float in the arguments, or an index, may differ between iterations, so it is an operand, whose place is negative.

    Attributes:
        kinds: the shape and dtype at each place.
    """

    def __init__(self, program: Program, rows: Rows):
        super().__init__()
        self.program = program
        self.kinds = _Kinds(self)
        self._literals: list = []
        table = rows.table
        for row in rows.words.tolist():
            step = program.composed.get(row[1])
            if step is not None:
                pattern, operands = step.split()
                self._add(step.name, step.function, pattern, operands, tuple(step.places), None)
            elif row[0] < OWN:
                what = table.operation(row[0])
                self.append(_Call(what, tuple(row[2 : 2 + what.operands]), (row[1],), None))
            else:
                what, results = table.operation(row[0]), tuple(table.results(row))
                self._add(what.name, what.kernel, what.pattern, table.operands(row), results, table.several(row))
        if any(call.what.name not in registry or _is_special(call.what) for call in self):
            raise _Unfit

    def _add(self, name: str, kernel: Callable, pattern: tuple, places: Sequence[int], results: tuple, several) -> None:
        rest, operands = iter(places), []
        kinds = (float, np.float64, int) if name in _AT_INDICES else (float, np.float64)

        def operand(x):
            if x is OPERAND:
                operands.append(next(rest))
            elif x.__class__ in kinds:
                self._literals.append(x)
                operands.append(-len(self._literals))
            else:
                return x
            return OPERAND

        pattern = map_items(operand, pattern)
        what = self.program.table.interned(name, kernel, pattern, len(operands))
        self.append(_Call(what, tuple(operands), results, several))

    def is_constant(self, place: int) -> bool:
        """True if the value at a place is equal for all arguments."""
        return place < 0 or place in self.program.constants

    def value(self, place: int):
        """Return the value at a place during the trace."""
        return self._literals[-place - 1] if place < 0 else self.program.values[place]

    def kind(self, call: _Call) -> tuple:
        """Return the operation, and the shapes and dtypes of the results."""
        return (call.what.number, *[self.kinds[place] for place in call.results])


class _Kinds(dict):
    def __init__(self, calls: _Calls):
        super().__init__()
        self._value = calls.value

    def __missing__(self, place: int) -> tuple:
        value = self._value(place)
        found = self[place] = np.shape(value), getattr(value, "dtype", type(value))
        return found


_AT_INDICES = ("get_item", "set_at", "add_at")
"""Ops whose integers are indices, which may be values that the program computes."""


def _is_special(what: Operation) -> bool:
    """True for an operation that its op does not record."""
    return is_control(what) or what.kernel is determinant_quotient


def _anchors(calls: _Calls) -> list[tuple]:
    """Return what calls must be to count the iterations of a loop, the least frequent first."""
    # An iteration depends on the one before, so the longest path through the calls goes through all iterations. An
    # operation that is on it once for each iteration counts them.
    lengths: dict[int, int] = {}
    before: list[int] = []
    for call in calls:
        last = max(call.operands, key=lambda p: lengths.get(p, 0), default=0)
        before.append(last)
        lengths.update(dict.fromkeys(call.results, lengths.get(last, 0) + 1))
    made_by = {place: i for i, call in enumerate(calls) for place in call.results}
    times: Counter[tuple] = Counter()
    place = max(lengths, key=lambda p: lengths[p])
    while place in made_by:
        call = calls[made_by[place]]
        if call.what.number >= OWN:
            times[calls.kind(call)] += 1
        place = before[made_by[place]]
    by_count = {count: anchor for anchor, count in times.items() if count >= FEWEST}
    return [by_count[count] for count in sorted(by_count)[:TRIES]]


class _Loop(NamedTuple):
    """Where a loop is among calls.

    Attributes:
        first, last: the numbers of its first and last iteration.
        iterations: for each iteration, the indices of its calls; that of the last one may be followed by others.
        size: the number of calls of an iteration.
        body: for each call of an iteration, where its operands come from: ``(d, call, result)`` for a result of this
            iteration (``d`` is 0) or of the one before (1), and ``(None, kind)`` for a value from before the loop.
        levels: by place, the number of the iteration.
    """

    first: int
    last: int
    iterations: list[list[int]]
    size: int
    body: list[tuple]
    levels: dict[int, int]

    def calls(self) -> int:
        """Return the number of calls in the loop."""
        return (self.last - self.first + 1) * self.size


def _found(calls: _Calls, anchor: tuple) -> _Loop | None:
    """Return the loop whose iterations an operation counts; None if it is too short."""
    where: dict[int, tuple[int, int, int]] = {}  # by place, its iteration, and the positions of the call and the result
    iterations: list[list[int]] = [[]]
    for i, call in enumerate(calls):
        level = max([where[p][0] for p in call.operands if p in where], default=0) + (calls.kind(call) == anchor)
        if level == len(iterations):
            iterations.append([])
        for k, place in enumerate(call.results):
            where[place] = level, len(iterations[level]), k
        iterations[level].append(i)
    if len(iterations) <= FEWEST:
        return None
    ((size, _),) = Counter(map(len, iterations[1:])).most_common(1)

    def body(level: int) -> list | None:
        """Return what the iterations of a loop have in common."""
        if len(iterations[level]) < size:
            return None
        return [_described(calls, calls[i], level, where) for i in iterations[level][:size]]

    first = last = len(iterations) // 2
    common = body(first)
    if common is None or None in common:
        return None
    while first > 1 and len(iterations[first - 1]) == size and body(first - 1) == common:
        first -= 1
    while last + 1 < len(iterations) and len(iterations[last]) == size and body(last + 1) == common:
        last += 1
    arrays = sum(calls[i].what.number >= OWN for i in iterations[first][:size])
    if last - first < FEWEST or (last - first) * arrays < SAVED:
        return None
    levels = {place: level for place, (level, *_) in where.items()}
    return _Loop(first, last, iterations, size, [operands for _, operands in common], levels)


def _described(calls: _Calls, call: _Call, level: int, where: dict) -> tuple | None:
    """Return what must be equal in all iterations; None if an operand is older than the iteration before."""
    operands: list[tuple] = []
    for place in call.operands:
        at, *position = where.get(place, (0,))
        if at and level - at > 1:
            return None
        operands.append((level - at, *position) if at else (None, calls.kinds[place]))
    return (calls.kind(call), call.several), tuple(operands)


class _Rolled:
    """Calls with a loop.

    Positions in an iteration are pairs: the number of the call, and that of its result or operand.
    """

    def __init__(self, calls: _Calls, loop: _Loop):
        self._calls, self._kinds, self._loop = calls, calls.kinds, loop
        numbers = range(loop.first, loop.last + 1)
        self._iterations = [[calls[i] for i in loop.iterations[level][: loop.size]] for level in numbers]
        self._body, self._count = self._iterations[0], len(self._iterations)
        inside = {i for level in numbers for i in loop.iterations[level][: loop.size]}
        self._before, self._after = [], []
        for i, call in enumerate(calls):
            if i not in inside:
                is_before = all(loop.levels[place] < loop.first for place in call.results)
                (self._before if is_before else self._after).append(call)
        # For each position, the place of the first state, and the places of the rows.
        self._states: dict[tuple[int, int], int] = {}
        self._rows: dict[tuple[int, int], list[int]] = {}
        for j, sources in enumerate(loop.body):
            for k, source in enumerate(sources):
                operands = [iteration[j].operands[k] for iteration in self._iterations]
                if source[0] == 1:
                    self._take_state(source[1:], operands[0])
                elif source[0] is None and len(set(map(self._constant, operands))) > 1:
                    self._rows[j, k] = operands

    def _constant(self, place: int):
        """Return the bits of a literal number, and other places themselves."""
        return np.asarray(self._calls.value(place)).tobytes() if place < 0 else place

    def _take_state(self, position: tuple, place: int) -> None:
        if self._kinds[place] != self._kinds[self._result(0, position)]:
            raise _Unfit
        if self._states.setdefault(position, place) != place:
            raise _Unfit

    def _result(self, i: int, position: tuple) -> int:
        """Return the place of a result of iteration ``i``, counted from 0."""
        j, k = position
        return self._iterations[i][j].results[k]

    def value(self, inputs: dict, output: int):
        """Record the calls with the loop; return the value at a place.

        Args:
            inputs: variables by place.
        """
        values = dict(inputs)
        for call in self._before:
            self._record(call, [self._read(values, p) for p in call.operands], values)
        read = {output}.union(*[call.operands for call in self._after])
        positions = [(j, k) for j, call in enumerate(self._body) for k in range(len(call.results))]
        kept = [
            position
            for position in positions
            if not read.isdisjoint(self._result(i, position) for i in range(self._count - (position in self._states)))
        ]
        rows = [self._stacked(values, places) for places in self._rows.values()]
        states = [self._read(values, place) for place in self._states.values()]

        def body(state: list, row: list) -> tuple[list, list]:
            found = self._iteration(values, state, row)
            return [found[position] for position in self._states], [found[position] for position in kept]

        last, each = ops.scan(body, states, rows, length=self._count)
        for position, stacked in zip(kept, each):
            for i, x in enumerate(ops.split(stacked, self._count)):
                place = self._result(i, position)
                if place in read:
                    values[place] = ops.reshape(x, self._kinds[place][0])
        values.update({self._result(-1, position): x for position, x in zip(self._states, last)})
        for call in self._after:
            self._record(call, [self._read(values, p) for p in call.operands], values)
        return self._read(values, output)

    def _iteration(self, values: dict, state: list, row: list) -> dict[tuple, Any]:
        """Record an iteration; return its results by position."""
        before, given = dict(zip(self._states, state)), dict(zip(self._rows, row))
        found: dict[tuple, Any] = {}
        for j, (call, sources) in enumerate(zip(self._body, self._loop.body)):
            operands = []
            for k, (distance, *position) in enumerate(sources):
                if distance is None:
                    operands.append(given[j, k] if (j, k) in given else self._read(values, call.operands[k]))
                else:
                    operands.append((before if distance else found)[tuple(position)])
            results: dict[int, Any] = {}
            self._record(call, operands, results)
            found.update({(j, k): results[place] for k, place in enumerate(call.results)})
        return found

    def _record(self, call: _Call, operands: list, values: dict) -> None:
        results = registry[call.what.name].call(*call.what.arguments(operands))
        for place, x in zip(call.results, results if call.several else [results]):
            if (np.shape(x), x.dtype) != self._kinds[place]:
                raise _Unfit
            values[place] = x

    def _read(self, values: dict, place: int):
        """Return the value at a place: one that was recorded here, a constant, or another array of the program."""
        if place in values:
            return values[place]
        value = self._calls.value(place)
        return value if self._calls.is_constant(place) else Traced(value, self._calls.program, Place(place))

    def _stacked(self, values: dict, places: list[int]):
        """Return the values at places, stacked along a first dimension."""
        distinct = {place: i for i, place in enumerate(dict.fromkeys(places))}
        if values.keys().isdisjoint(distinct) and all(map(self._calls.is_constant, distinct)):
            return np.stack([np.asarray(self._calls.value(place)) for place in places])
        stacked = ops.stack([self._read(values, place) for place in distinct])
        if len(distinct) == len(places):
            return stacked
        return ops.take(stacked, np.array([distinct[place] for place in places]), 0)
