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
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import _tree, config, ops
from ..autodiff import inplace, record, state
from ..autodiff.graph import PICK, Node, Rule, key, nodes_of
from ..autodiff.variable import Variable, data_of, is_active
from ..ops._dispatch import registry
from . import scalars
from .agreement import are_close
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
"""The smallest share of operations on arrays; single numbers are recorded many at a time, so they cost little."""

TRIES = 4
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
    their derivatives, or if it may read the inputs, or what depends on them, other than as these variables.

    Args:
        inputs: the variables that the function is differentiated with respect to.
        function: returns a variable, or a structure of variables and other values.
    """
    if not _are_hidden(program, inputs) or state.packers or not program.is_native:
        return function()
    start, before = len(program.table), [(x._node, x.data.place) for x in inputs]

    def note(_) -> None:
        program.has_left = True

    with state.watching(note, state.readers), state.watching(note, state.leavers):
        result = function()
    is_written = before != [(x._node, x.data.place) for x in inputs]
    if program.has_left or is_written or len(program.table) - start < SAVED:
        return result
    leaves, form = _tree.flatten(result)
    outputs = [x for x in leaves if is_active(x)]
    try:
        found = _looped(program, inputs, outputs) if outputs else None
    except Exception as error:
        if not isinstance(error, _Unfit) and config.check() == "error":
            raise
        found = None
    if found is None:
        return result
    new = dict(zip(map(id, outputs), found))
    return _tree.unflatten(form, [new.get(id(x), x) for x in leaves])


def _are_hidden(program: Program, inputs: Sequence) -> bool:
    """True if the user's functions see the arrays of the inputs as variables only.

    Equal operations on equal places are one row. So a row does not tell whether an operand was a variable or, as a
    value that the function closes over, a constant of the derivative.
    """
    if program.hidden is None:
        return False
    if not all(isinstance(x, Variable) and isinstance(x.data, Traced) and x.data.program is program for x in inputs):
        return False
    places = [x.data.place for x in inputs]
    # The first derivative is taken before the user's functions run.
    program.hidden = program.hidden or set(places)
    return len(program.hidden.intersection(places)) == len(places)


class _Unfit(Exception):
    """Rows that no loop of ops replaces."""


class _Call(NamedTuple):
    """An operation, the places of its operands and results, and the class of several results."""

    what: Operation
    operands: tuple[int, ...]
    results: tuple[int, ...]
    several: Any


def _looped(program: Program, inputs: Sequence, outputs: list[Variable]) -> list | None:
    """Return the outputs as results of a loop; None if there is no loop to replace."""
    results: list[Any] = [x.data for x in outputs]
    if not all(isinstance(x, Traced) and x.program is program for x in results):
        return None
    places = [x.place for x in results]
    rows = needed_rows(program, places, program.composed)
    arrays = len(rows) - int(rows.are_numbers.sum())
    if arrays < max(SAVED, SHARE * len(rows)):
        return None
    given = {key(x._node or x) for x in inputs}
    nodes = [node for node in nodes_of(outputs, given) if node.seq not in given]
    if not is_recorded_by_ops(program, rows, nodes) or not all(is_natural(node.rule) for node in nodes):
        return None
    edges = [edge for node in nodes for edge in node.edges if edge is not None]
    if any(edge.__class__ is not Node and key(edge) not in given for edge in edges):
        return None
    if not state.hooks.isdisjoint(node.seq for node in nodes):
        return None
    calls = _Calls(program, rows)
    loop = None
    for anchor in _anchors(calls):
        found = _found(calls, anchor)
        if found is not None and (loop is None or found.calls() > loop.calls()):
            loop = found
        if loop is not None and loop.calls() > 0.8 * len(calls):
            break
    if loop is None:
        return None
    new = _Rolled(calls, loop).values({x.data.place: x for x in inputs}, places)
    if not are_close([data_of(x).value for x in new], [x.value for x in results], len(rows)):
        return None
    program.rolled.append(loop.last - loop.first + 1)
    return new


class _Calls(list):
    """Rows of a program as calls of ops.

    A float among the tensors, or an index, may differ between iterations, so it is an operand, whose place is negative.

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
        tensors = registry[name].positions if name in registry else ()

        def operand(x, kinds: tuple):
            if x is OPERAND:
                operands.append(next(rest))
            elif x.__class__ in kinds:
                self._literals.append(x)
                operands.append(-len(self._literals))
            else:
                return x
            return OPERAND

        for i, part in enumerate(pattern):
            kinds = (float, np.float64) if i in tensors else (int,) if name in _AT_INDICES else ()
            pattern = (*pattern[:i], _tree.map_items(partial(operand, kinds=kinds), part), *pattern[i + 1 :])
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
    """Return what calls may count the iterations of a loop, the most promising first."""
    # An iteration depends on the one before, so the longest path through the calls goes through all iterations. An
    # operation that is on it once for each iteration, and nowhere else, counts them.
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
    elsewhere = Counter(map(calls.kind, calls))
    elsewhere.subtract(times)
    found = [kind for kind, count in times.items() if count >= FEWEST]
    return sorted(found, key=lambda kind: (elsewhere[kind], times[kind]))[:TRIES]


class _Loop(NamedTuple):
    """Where a loop is among calls.

    Attributes:
        first, last: the numbers of its first and last iteration.
        iterations: for each iteration, the indices of its calls; that of the last one may be followed by others.
        size: the number of calls of an iteration.
        body: for each call of an iteration, where its operands come from: ``(d, call, result)`` for a result of this
            iteration (``d`` is 0) or of the one before (1), and ``(None, kind)`` for a value from before the loop.
    """

    first: int
    last: int
    iterations: list[list[int]]
    size: int
    body: list[tuple]

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
    return _Loop(first, last, iterations, size, [operands for _, operands in common])


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

    An operand in the loop is a pair of a kind and a number or place: ``"state"``, a result of the iteration before;
    ``"row"``, a value from before the loop that differs between iterations; ``"own"``, the results of a call of the
    iteration by their place in the first one; ``"outside"``, any other value.
    """

    def __init__(self, calls: _Calls, loop: _Loop):
        self._calls, self._kinds = calls, calls.kinds
        numbers = range(loop.first, loop.last + 1)
        self._iterations = [[calls[i] for i in loop.iterations[level][: loop.size]] for level in numbers]
        self._count = len(self._iterations)
        inside = {i for level in numbers for i in loop.iterations[level][: loop.size]}
        before = {i for indices in loop.iterations[: loop.first] for i in indices}
        self._before = [calls[i] for i in sorted(before)]
        self._after = [call for i, call in enumerate(calls) if i not in inside and i not in before]
        self._made_by = {place: call for call in self._before for place in call.results}
        self._states: dict[tuple[int, int], int] = {}  # by call and result of an iteration, the place of the first one
        self._rows: list[list[int]] = []
        self._body: list[tuple[_Call, list[tuple]]] = []
        for j, sources in enumerate(loop.body):
            given = [self._operand(j, k, source) for k, source in enumerate(sources)]
            self._body.append((self._iterations[0][j], given))

    def _operand(self, j: int, k: int, source: tuple) -> tuple:
        places = [iteration[j].operands[k] for iteration in self._iterations]
        if source[0] is None:
            return self._varying(places, set())
        if source[0] == 0:
            return "own", places[0]
        position, result = source[1:], self._iterations[0][source[1]].results[source[2]]
        if self._kinds[places[0]] != self._kinds[result] or self._states.setdefault(position, places[0]) != places[0]:
            raise _Unfit
        return "state", list(self._states).index(position)

    def _varying(self, places: list[int], above: set[int]) -> tuple:
        """Return an operand from outside the loop, given its place in each iteration.

        A value that is computed in the same way for each iteration is computed in the loop.

        Args:
            above: the places that are computed from these.
        """
        different = set(map(self._identity, places))
        if len(different) == 1:
            return "outside", places[0]
        made = [self._made_by.get(place) for place in places]
        first = made[0]
        if (
            len(different) == len(places)
            and different.isdisjoint(above)
            and first is not None
            and first.several is None
            and first.what.name not in _AT_INDICES
            and all(call is not None and self._is_alike(call, first) for call in made)
        ):
            above = above | different
            operands = [[call.operands[k] for call in made if call] for k in range(len(first.operands))]
            self._body.append((first, [self._varying(each, above) for each in operands]))
            return "own", places[0]
        if places not in self._rows:
            self._rows.append(places)
        return "row", self._rows.index(places)

    def _is_alike(self, one: _Call, other: _Call) -> bool:
        kinds = self._kinds
        same = self._calls.kind(one) == self._calls.kind(other)
        return same and [kinds[place] for place in one.operands] == [kinds[place] for place in other.operands]

    def _identity(self, place: int):
        """Return the bits of a number in the arguments, and other places themselves."""
        return np.asarray(self._calls.value(place)).tobytes() if place < 0 else place

    def _results(self, position: tuple[int, int]) -> list[int]:
        """Return the place of a result in each iteration."""
        j, k = position
        return [iteration[j].results[k] for iteration in self._iterations]

    def values(self, inputs: dict, outputs: list[int]) -> list:
        """Record the calls with the loop; return the values at places.

        Args:
            inputs: variables by place.
        """
        read = set(outputs).union(*[call.operands for call in self._after])
        outside = {place for _, operands in self._body for kind, place in operands if kind == "outside"}
        values = dict(inputs)
        self._record(self._needed_before(read.union(outside, self._states.values(), *self._rows)), values)
        positions = [(j, k) for j, call in enumerate(self._iterations[0]) for k in range(len(call.results))]
        all_results = {position: self._results(position) for position in positions}
        kept = [
            position
            for position, places in all_results.items()
            if not read.isdisjoint(places[:-1] if position in self._states else places)
        ]

        def body(states: list, rows: list) -> tuple[list, list]:
            own = self._iteration(values, states, rows)
            first = self._iterations[0]
            return [own[first[j].results[k]] for j, k in self._states], [own[first[j].results[k]] for j, k in kept]

        states = [self._read(values, place) for place in self._states.values()]
        rows = [self._stacked(values, places) for places in self._rows]
        last, stacked = ops.scan(body, states, rows, length=self._count)
        for position, x in zip(kept, stacked):
            for place, part in zip(all_results[position], ops.split(x, self._count)):
                if place in read:
                    values[place] = ops.reshape(part, self._kinds[place][0])
        values.update({all_results[position][-1]: x for position, x in zip(self._states, last)})
        self._record(self._after, values)
        return [self._read(values, place) for place in outputs]

    def _needed_before(self, places: set[int]) -> list[_Call]:
        """Return the calls before the loop that places need."""
        needed = []
        for call in reversed(self._before):
            if not places.isdisjoint(call.results):
                needed.append(call)
                places.update(call.operands)
        return needed[::-1]

    def _iteration(self, values: dict, states: list, rows: list) -> dict[int, Any]:
        """Record an iteration; return its results by their places in the first one."""
        own: dict[int, Any] = {}
        given: dict[str, Any] = {"state": states, "row": rows, "own": own}
        for call, operands in self._body:
            found = [self._read(values, at) if kind == "outside" else given[kind][at] for kind, at in operands]
            self._call(call, found, own)
        return own

    def _record(self, calls: list[_Call], values: dict) -> None:
        for call in calls:
            self._call(call, [self._read(values, place) for place in call.operands], values)

    def _call(self, call: _Call, operands: list, values: dict) -> None:
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
