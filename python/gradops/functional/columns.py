"""Vectorization: make a function of operations on vectors from a recorded function of many single numbers.

A loop over observations records the same operations again and again. :func:`by_columns` takes a recorded scalar and
groups its operations: independent operations of one kind at the same distance from the inputs become one operation on
vectors ("columns"), and a long sum becomes one reduction. Operations that only move elements, such as a write at an
index, disappear: the groups read the elements directly. So the derivatives of a likelihood are recorded from tens of
operations instead of tens of thousands. ``functional/sparsity/laplace.py`` calls this.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ops
from .._tree import map_items
from ..autodiff.graph import nodes_of
from ..autodiff.variable import data_of, is_active
from ..jit.array import Place, Traced, frozen
from ..jit.liveness import needed_rows
from ..jit.operations import COPY, NumberOperation, determinant_quotient, number_operation, plain_operation
from ..jit.rolling import is_recorded_by_ops
from ..jit.scalar_rules import kernel_of
from ..jit.steps import Step, places
from ..jit.table import OWN, Rows
from ..ops._dispatch import facts_of, registry
from . import batched

FEWEST = 100
"""The smallest number of steps of a function that is vectorized."""

SHARE = 6
"""The smallest ratio of steps to groups for which vectorization pays."""

_NUMBERS_PER_STEP = 4
"""How many operations on single numbers cost as much as one step, as they are recorded many at a time."""

LONG = 12
"""The smallest number of terms of a sum that becomes one reduction; shorter sums stay additions."""


class _Unfit(Exception):
    """A step that cannot be vectorized."""


def by_columns(inputs: Sequence, y) -> Callable | None:
    """Return a recorded function as operations on columns.

    Args:
        inputs: variables of traced arrays.
        y: the scalar result; its dependence on the inputs must be recorded completely.

    Returns:
        A function of variables like ``inputs`` with the same value up to the order of sums; None if it would not have
        far fewer steps, or if a node of the tape is not an op of the program.
    """
    output: Any = data_of(y)
    if not is_active(y) or not isinstance(output, Traced):
        return None
    program: Any = output.program
    rows = needed_rows(program, [output.place], program.composed)
    numbers = rows[rows.are_numbers]
    size = len(rows) - len(numbers) * (1 - 1 / _NUMBERS_PER_STEP)
    # An op of several rows may have its own derivative rule, so it counts as one step; among single numbers it cannot.
    if size < FEWEST or program.composed and not program.composed.keys().isdisjoint(numbers.places.tolist()):
        return None
    if not is_recorded_by_ops(program, rows, nodes_of([y])):
        return None
    try:
        found = _Columns(program, [data_of(x).place for x in inputs], rows, output.place)
    except _Unfit:
        return None
    return found if SHARE * len(found.groups) < size else None


class _Group:
    """Independent operations of one kind.

    Attributes:
        call: the operation on columns; for other steps than elementwise ones see :func:`_call_of`.
        of_constants: for each operand, 1 if all its elements are constants, 2 if these are truth values, else 0.
        operands: for each operand, the elements' numbers, one operation after the other.
        results: the results' elements in the same order.
        shapes: the operands' shapes of one step.
        count: the number of steps; 0 for elementwise operations and sums.
        by_element: True for elementwise operations.
        shared: the operands that are equal in all steps, such as a covariance for all observations.
    """

    def __init__(self, call: Callable, constant_kinds: tuple, shapes: tuple = (), is_elementwise: bool = True):
        self.is_elementwise = is_elementwise
        self.call, self.constant_kinds, self.shapes = call, constant_kinds, shapes
        self.operands = [array("q") for _ in constant_kinds]
        self.results = array("q")
        self.count = 0
        self.shared: frozenset[int] = frozenset()

    def share(self) -> None:
        """Store an operand that is equal in all steps once."""
        rows = [np.array(numbers).reshape(self.count, -1) for numbers in self.operands] if self.count > 1 else []
        same = frozenset(k for k, x in enumerate(rows) if (x == x[0]).all())
        self.shared = same if len(same) < len(rows) else frozenset()
        for k in self.shared:
            self.operands[k] = array("q", rows[k][0].tobytes())

    def order_by(self, at: np.ndarray) -> None:
        """Sort elementwise operations by the position of their first operand that is not constant."""
        first = next((k for k, are_constants in enumerate(self.constant_kinds) if not are_constants), None)
        if first is None or not self.is_elementwise:
            return
        order = np.argsort(at[np.array(self.operands[first])], kind="stable")
        for numbers in (*self.operands, self.results):
            numbers[:] = array("q", np.array(numbers)[order].tobytes())


class _Columns:
    """The vectorized function. Each element of each value has a number, the index in the arrays below."""

    def __init__(self, program, inputs: list[int], rows: Rows, output: int):
        self._program = program
        self._values = program.values
        self._level = array("i")  # the distance from the inputs; 0 for constants and inputs
        self._needs = array("b")  # the inputs that the element is computed from, one bit each
        self._constant = array("d")  # the value of a constant, else NaN
        self._is_constant = array("b")  # 1 for a constant, 2 for a constant truth value
        self._known: dict[int, Any] = {}  # by place, the numbers of its elements
        self._sums: dict[int, tuple] = {}  # by place, an addition or subtraction and the places of its operands
        self._open: dict[int, list[int]] = {}  # by place, the terms of a sum: 1 + the element, with the term's sign
        self._groups: dict[tuple, _Group] = {}
        self._inputs = [(place, self._new_elements(place, 0, 1 << min(k, 6))) for k, place in enumerate(inputs)]
        # An operand of a step counts as used twice, so the sum that computes it is not continued.
        numbers, composed = rows[rows.are_numbers], program.composed
        steps = {step.places[0]: composed.get(step.places[0], step) for step in rows[~rows.are_numbers]}
        others = [output, *(place for step in steps.values() for place in step.uses)]
        uses = np.concatenate([numbers.operands(), others, others])
        self._uses = np.bincount(uses, minlength=len(self._values)).tolist()
        for row in rows.words.tolist():
            if row[0] < OWN:
                self._take_row(*row)
            else:
                self._take_step(steps[row[1]])
        self._output = self._number(output)
        self._arrange()

    # Elements.

    def _new(self, count: int, level: int, needs: int) -> int:
        first = len(self._level)
        if count == 1:  # the most frequent case
            self._level.append(level)
            self._needs.append(needs)
            self._constant.append(math.nan)
            self._is_constant.append(0)
            return first
        self._level.extend(array("i", (level,)) * count)
        self._needs.extend(array("b", (needs,)) * count)
        self._constant.extend(array("d", (math.nan,)) * count)
        self._is_constant.frombytes(bytes(count))
        return first

    def _new_elements(self, place: int, level: int, needs: int):
        """Return the numbers of new elements for the value at a place."""
        shape = np.shape(self._values[place])
        count = math.prod(shape)
        first = self._new(count, level, needs)
        found = first if shape == () else np.arange(first, first + count).reshape(shape)
        self._known[place] = found
        return found

    def _constant_elements(self, value):
        value = np.asarray(value)
        if value.dtype.kind not in "fiub" or value.dtype.itemsize > 8:
            raise _Unfit
        first = len(self._level)
        self._level.frombytes(bytes(4 * value.size))
        self._needs.frombytes(bytes(value.size))
        self._constant.frombytes(value.astype(np.float64).tobytes())
        self._is_constant.frombytes((b"\2" if value.dtype == bool else b"\1") * value.size)
        return first if not value.ndim else np.arange(first, first + value.size).reshape(value.shape)

    def _number(self, place: int):
        """Return the number of the element at a place, or an array of numbers."""
        found = self._known.get(place)
        if found is not None:
            return found
        terms = self._open.pop(place, [])
        if len(terms) >= LONG:
            found = self._total(terms)
        elif place in self._sums:
            number, *operands = self._sums[place]
            found = self._single(NumberOperation.known[number], [self._number(p) for p in operands])
        elif place in self._program.constants:
            found = self._constant_elements(self._values[place])
        else:
            raise _Unfit
        self._known[place] = found
        return found

    def _level_and_needs(self, operands: Sequence) -> tuple[int, int]:
        """Return the level of a result of these operands, and the inputs that it is computed from.

        Operations are grouped only if they need the same inputs. Otherwise a result that depends on one input would be
        differentiated with respect to the others as well.
        """
        level = needs = 0
        for numbers in operands:
            level = max(level, int(np.frombuffer(self._level, np.intc)[numbers].max(initial=0)))
            needs |= int(np.bitwise_or.reduce(np.frombuffer(self._needs, np.int8)[numbers], None))
        return level + 1, needs

    def _constants_of(self, numbers) -> int:
        """Return 1 if all elements of an operand are constants, 2 if these are truth values, else 0."""
        if numbers.__class__ is int:
            return self._is_constant[numbers]
        return int(np.frombuffer(self._is_constant, np.int8)[numbers].min(initial=2))

    # Operations on single numbers.

    def _take_row(self, number: int, place: int, *operands: int) -> None:
        known = self._known
        if number in _SIGNS:
            self._add(number, place, operands[:2])
            if self._uses[place] != 1:
                self._number(place)
            return
        what = NumberOperation.known[number]
        if what is COPY:
            known[place] = self._number(operands[0])
        else:
            known[place] = self._single(what, [self._number(p) for p in operands[: what.operands]])

    def _add(self, number: int, place: int, operands: Sequence[int]) -> None:
        """Record an addition or subtraction; it continues the sum of an operand, as loops add terms one by one.

        Only the longer operand is continued, and only a long sum becomes a reduction. So a difference of nearly equal
        numbers is still computed before it is added to other terms.
        """
        self._sums[place] = number, *operands
        first, second = operands
        sign = _SIGNS[number]
        longer = len(self._open.get(second, ())) > max(2, len(self._open.get(first, ())))
        goes_on, other = (second, first) if longer else (first, second)
        terms = self._open.pop(goes_on, None) or [self._number(goes_on) + 1]
        terms = [sign * t for t in terms] if longer and sign < 0 else terms
        terms.append((self._number(other) + 1) * (1 if longer else sign))
        self._open[place] = terms

    def _single(self, what: NumberOperation, operands: list[int]) -> int:
        levels, needs, is_constant = self._level, self._needs, self._is_constant
        level, need = 0, 0
        for i in operands:
            level, need = max(level, levels[i]), need | needs[i]
        level += 1
        group = self._group(what, (level, need), [is_constant[i] for i in operands], operands)
        result = self._new(1, level, need)
        for to, i in zip(group.operands, operands):
            to.append(i)
        group.results.append(result)
        return result

    def _group(
        self, what: NumberOperation, level_and_needs: tuple, constant_kinds: Sequence[int], operands: Sequence
    ) -> _Group:
        exponent = None
        if what.name == "power" and constant_kinds[1]:  # the derivative rule depends on the exponent
            exponent = tuple(np.unique(np.frombuffer(self._constant)[operands[1]]).tolist())
        key = (*level_and_needs, what.number, tuple(constant_kinds), exponent)
        found = self._groups.get(key)
        if found is None:
            if what.kernel is determinant_quotient:  # raises for a singular matrix, which the op does not
                raise _Unfit

            def call(*operands):
                return registry[what.name].call(*what.arguments(operands))

            found = self._groups[key] = _Group(call, tuple(constant_kinds))
        return found

    def _total(self, terms: list[int]) -> int:
        """Return the number of the result of a long sum."""
        terms.sort(key=lambda t: (t < 0, abs(t)))
        numbers, added = [abs(t) - 1 for t in terms], sum(t > 0 for t in terms)
        level_and_needs = self._level_and_needs([numbers])
        call = functools.partial(_total, len(terms), added)
        group = self._groups.setdefault((*level_and_needs, "total", len(terms), added), _Group(call, (0,), (), False))
        group.operands[0].extend(numbers)
        group.results.append(self._new(1, *level_and_needs))
        return group.results[-1]

    # Steps.

    def _take_step(self, step: Step) -> None:
        if step.name in _ELEMENTS or facts_of(step.name).moves:
            self._move(step)
            return
        arguments = step.arguments
        if any(x.__class__ is not Place and places(x) for x in arguments):
            raise _Unfit
        results = [self._values[place] for place in step.places]
        if any(x.dtype not in _DTYPES for x in results):
            raise _Unfit
        if step.name == "where" and (arguments[0].__class__ is not Place or arguments[0] in self._program.constants):
            self._choose(step)
            return
        what = number_operation(step.name, step.function, len(arguments))
        if what is None:
            self._take_batch(step)
            return
        operands, constant_kinds = zip(*map(self._operand, arguments))
        level_and_needs = self._level_and_needs(operands)
        group = self._group(what, level_and_needs, constant_kinds, operands)
        result = self._new_elements(step.places[0], *level_and_needs)
        shape = np.shape(result)
        for to, numbers in zip(group.operands, operands):
            to.frombytes(np.broadcast_to(numbers, shape).astype(np.int64).tobytes())
        group.results.frombytes(np.asarray(result, np.int64).tobytes())

    def _operand(self, x) -> tuple:
        numbers = self._number(x) if x.__class__ is Place else self._constant_elements(x)
        return numbers, self._constants_of(numbers)

    def _move(self, step: Step) -> None:
        """Apply the kernel of a step that only moves elements to the elements' numbers."""
        if any(self._values[place].dtype not in _DTYPES for place in step.places):
            raise _Unfit
        elements = _ELEMENTS.get(step.name, (0,))
        given = [
            map_items(self._element_numbers if k in elements else self._constant_value, x)
            for k, x in enumerate(step.arguments)
        ]
        found = step.function(*given)
        for place, numbers in zip(step.places, found if step.several else (found,)):
            self._known[place] = int(numbers) if not numbers.ndim else numbers

    def _element_numbers(self, x):
        return np.asarray(self._number(x) if x.__class__ is Place else self._constant_elements(x))

    def _constant_value(self, x):
        if x.__class__ is not Place:
            return x
        if x not in self._program.constants:
            raise _Unfit
        return self._values[x]

    def _choose(self, step: Step) -> None:
        condition, *others = step.arguments
        first, second = (self._operand(x)[0] for x in others)
        found = np.where(self._constant_value(condition), first, second)
        self._known[step.places[0]] = int(found) if not found.ndim else found

    def _take_batch(self, step: Step) -> None:
        """Group a step that is not elementwise; several of them run as one batch."""
        if step.name not in registry:
            raise _Unfit
        operands, constant_kinds = [], []
        for x in step.arguments:
            if x.__class__ is Place and self._values[x].dtype not in _DTYPES:
                raise _Unfit
            if x.__class__ is Place:
                numbers, are_constants = self._operand(x)
                operands.append(numbers)
                constant_kinds.append(are_constants)
        level_and_needs = self._level_and_needs(operands)
        shapes = tuple(map(np.shape, operands))
        settings = tuple(_OPERAND if x.__class__ is Place else frozen(x) for x in step.arguments)
        key = (*level_and_needs, step.name, settings, tuple(constant_kinds), shapes)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(_call_of(step), tuple(constant_kinds), shapes, False)
        group.count += 1
        for to, numbers in zip(group.operands, operands):
            to.frombytes(np.asarray(numbers, np.int64).tobytes())
        for place in step.places:
            group.results.frombytes(np.asarray(self._new_elements(place, *level_and_needs), np.int64).tobytes())

    # The function.

    def _arrange(self) -> None:
        """Give the results of each group successive positions, and plan the reads of each group."""
        self.groups = [self._groups[key] for key in sorted(self._groups, key=lambda key: key[0])]
        inputs = [np.ravel(x) for _, x in self._inputs]
        starts = np.cumsum([0, *map(len, inputs), *(len(group.results) for group in self.groups)])
        at = np.full(len(self._level), -1)
        at[np.concatenate(inputs)] = np.arange(starts[len(inputs)])
        for group, start in zip(self.groups, starts[len(inputs) :].tolist()):
            group.order_by(at)
            group.share()
            at[np.array(group.results)] = np.arange(start, start + len(group.results))
        parts: list[list[np.ndarray]] = [[] for _ in starts[1:]]
        constants, known = np.array(self._constant), {}

        def gather(elements, are_constants: int) -> _Gather:
            elements = np.array(elements)
            key = elements.tobytes(), are_constants
            if key not in known:
                known[key] = _Gather(elements, are_constants, constants, at, starts, parts)
            return known[key]

        self._plan = [(g, [*map(gather, g.operands, g.constant_kinds)]) for g in self.groups]
        self._end = gather([self._output], 0)
        self._parts = parts

    def __call__(self, *inputs):
        columns = [_parts_of(ops.reshape(x, (-1,)), parts) for x, parts in zip(inputs, self._parts)]
        for (group, operands), parts in zip(self._plan, self._parts[len(inputs) :]):
            columns.append(_parts_of(_group_results(group, [x.gathered(columns) for x in operands]), parts))
        return self._end.gathered(columns)


class _Gather:
    """An operand of a group: elements of columns and constants, as one column, or as one number if all are equal.

    Args:
        elements: the numbers of the elements.
        at: by number, the position in the concatenated columns; -1 for constants.
        starts: the start of each column there.
        parts: for each column the index arrays of the parts that are read; this operand adds its own.
    """

    def __init__(self, elements, are_constants: int, constants, at, starts, parts: list[list[np.ndarray]]):
        self._value: Any = None
        self._pieces: list[tuple[int, Any]] = []  # (column, number of its part), or (-1, constants)
        self._order: np.ndarray | None = None
        self._is_one = bool((elements == elements[0]).all())
        if are_constants:
            found = constants[elements].astype(_DTYPES[are_constants - 1])
            self._value = found[0] if (found == found[0]).all() else found
            return
        elements = elements[:1] if self._is_one else elements
        where = at[elements]
        which = np.where(where < 0, -1, np.searchsorted(starts, where, "right") - 1)
        order = np.argsort(which, kind="stable")
        for k, those in zip(np.unique(which).tolist(), np.split(order, np.flatnonzero(np.diff(which[order])) + 1)):
            if k < 0:
                self._pieces.append((k, constants[elements[those]]))
                continue
            self._pieces.append((k, len(parts[k])))
            parts[k].append(where[those] - starts[k])
        if (np.diff(order) != 1).any():
            self._order = np.argsort(order)

    def gathered(self, columns: list[list]):
        if self._value is None:
            pieces = [x if k < 0 else columns[k][x] for k, x in self._pieces]
            found = pieces[0] if len(pieces) == 1 else ops.concatenate(pieces)
            found = found if self._order is None else ops.take(found, self._order, 0)
            self._value = ops.reshape(found, ()) if self._is_one else found
        return self._value


def _parts_of(column, parts: list[np.ndarray]) -> list:
    """Return parts of a column by index arrays. One gather reads all partial ones, so the column gets one gradient."""
    column = column if column.shape else ops.reshape(column, (1,))
    whole = np.arange(column.shape[0])
    found = [column if np.array_equal(part, whole) else None for part in parts]
    others = [part for part, is_whole in zip(parts, found) if is_whole is None]
    if not others:
        return found
    positions = np.concatenate(others)
    together = column if np.array_equal(positions, whole) else ops.take(column, positions, 0)
    rest = iter(ops.split(together, np.cumsum([*map(len, others)])[:-1].tolist()) if len(others) > 1 else [together])
    return [next(rest) if x is None else x for x in found]


def _group_results(group: _Group, given: list):
    """Return the results of a group as a column."""
    size, count = len(group.results), group.count
    if not count:
        found = group.call(*given)
        return found if found.shape or size == 1 else ops.broadcast_to(found, (size,))
    shapes = [shape if k in group.shared else (count, *shape) for k, shape in enumerate(group.shapes)]
    given = [x if np.shape(x) else ops.broadcast_to(x, (math.prod(s),)) for x, s in zip(given, shapes)]
    found = group.call([ops.reshape(x, s) for x, s in zip(given, shapes)], count, group.shared)
    parts = [ops.reshape(x, (count, -1)) for x in found]
    return ops.reshape(parts[0] if len(parts) == 1 else ops.concatenate(parts, 1), (-1,))


def _call_of(step: Step) -> Callable:
    """Return a function of the operands of several such steps, one row each or shared, to one row of results each."""
    op = registry[step.name]

    def filled(operands):
        rest = iter(operands)
        return [next(rest) if x.__class__ is Place else x for x in step.arguments]

    def call(rows: list, count: int, shared: frozenset[int]) -> list:
        given = [x if k in shared else batched.Batched(x) for k, x in enumerate(rows)]
        found = batched.on_rows(op, *filled(given)) if count > 1 else NotImplemented
        if found is not NotImplemented:
            return [x.value for x in (found if step.several else [found])]
        each = [op.call(*filled(x if k in shared else x[i] for k, x in enumerate(rows))) for i in range(count)]
        return [ops.stack(list(parts)) for parts in (zip(*each) if step.several else [each])]

    return call


def _total(count: int, added: int, terms):
    """Return sums of ``count`` terms each; the first ``added`` terms are added and the others subtracted."""
    rows = ops.reshape(terms, (-1, count))
    parts = [ops.sum(rows[:, part], 1) for part in (slice(0, added), slice(added, None)) if range(count)[part]]
    if len(parts) == 2:
        return parts[0] - parts[1]
    return parts[0] if added else -parts[0]


_OPERAND = object()
_ELEMENTS = {"set_at": (0, 2), "stack": (0,), "concatenate": (0,)}
"""For ops that combine the elements of several tensors, the positions of these arguments."""
_DTYPES = (np.dtype(np.float64), np.dtype(np.bool_))
_ADD, _SUBTRACT = (plain_operation(name, 2, kernel_of(name, 2)).number for name in ("add", "subtract"))
_SIGNS = {_ADD: 1, _SUBTRACT: -1}
