"""A recorded program: the operations of a traced function as rows of a table, with its arguments and constants.

:mod:`.backend` calls :meth:`Program.call` for each op of the user's function on traced arrays. The program runs the
kernel, adds a row and returns a traced array; an operation that was recorded before is not computed again. Passes over
the table (:mod:`.liveness`, :mod:`.kept`) follow, and :mod:`.emission` makes a Python function of the rows, which runs
without dispatch, tape or the user's function.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from .._tree import map_items
from ..errors import JitError
from .array import Memories, Place, Traced, frozen
from .guards import Guards
from .operations import NumberOperation, Operation, is_number, number_operation
from .steps import Step, direct, holds_arrays, place_of, split, values_of
from .table import Table, Values


class Program:
    """The table of a traced function, with the places of its arguments and constants.

    Args:
        parent: the program of the calling function if this function was called by a loop or branch; arrays of the
            parent can be read here.
        has_numbers: True if operations on single numbers are recorded as :class:`.NumberOperation`, as for long loops.
        of_single_numbers: True for a function of single numbers that a loop repeats. Ops then do not choose between two
            formulas, as the choice would cost more than the operation.
        is_native: False if no row is to become native code.

    Attributes:
        table: the recorded rows.
        inputs: the places of the arguments.
        constants: by place, the arrays that the function closed over, which are read at each call, and the results that
            are equal for all arguments.
        ones: the places of constant single numbers that are 1.
        folded: the places of values that are equal for all arguments and were computed while tracing.
        values: the value at each place for the arguments of the trace.
        root: the program of the function that is compiled.
        bodies: on the root, all functions that were traced within it.
        hidden: on the root, the places of arguments that the user's functions see as variables only; None if they may
            see any argument as it is.
        has_left: on the root, True once a variable was read without being recorded, see :mod:`.rolling`.
        rolled: on the root, the numbers of iterations of unrolled loops that became one operation.
        lifted: the arrays of ``parent`` that are read here: by the place in ``parent``, the array there and here.
        replayed: programs whose rows were recorded here again, each with the array here for each place there.
        passed: leaves and nodes of the tape whose derivatives are taken here: by their keys, the function that stands
            for each and its edge.
        logs: the tape's records of operations on single numbers.
        composed: calls of ops that take several rows and have a derivative rule of their own, by the place of the
            result.
        memories: records which traced arrays share memory.
        guards: the values that the function has branched on; None where it must not branch on values.
        current: the program that records calls on arrays of this one: this program, or one within it; None after
            tracing.
    """

    def __init__(
        self,
        parent: Program | None = None,
        has_numbers: bool = False,
        of_single_numbers: bool = False,
        is_native: bool = True,
    ) -> None:
        self.is_native = is_native
        self.parent = parent
        self.root: Program = self if parent is None else parent.root
        self.bodies: list[Any] = []
        self.hidden: set[int] | None = None
        self.has_left = False
        self.rolled: list[int] = []
        self.lifted: dict[int, tuple[Any, Any]] = {}
        self.replayed: dict[Program, dict[int, Any]] = {}
        self.passed: dict[int, tuple[Any, Any]] = {}
        self.logs: list[Any] = []
        self.guards: Guards | None = None
        self.current: Program | None = self
        self.inputs: list[int] = []
        self.constants: dict[int, Any] = {}
        self.ones: set[int] = set()
        self.folded: set[int] = set()
        self.values = Values()
        self.new, self.value = self.values.new, self.values.__getitem__
        self.has_numbers = has_numbers
        self.of_single_numbers = of_single_numbers
        self.table = Table(self.values)
        self.composed: dict[int, Step] = {}
        self.memories = Memories()
        self._taken: dict[int, tuple] = {}
        self._written: dict[Any, Place] = {}
        self._literals: dict[bytes, int] = {}

    def _place(self, value, arguments=()):
        return self._traced(value, Place(self.new(value)), arguments)

    def snapshot(self, value):
        """Return ``value`` with a copy of each writable array, as the function may write to it during the trace."""
        return map_items(self._as_now, value)

    def _as_now(self, value):
        if not isinstance(value, np.ndarray) or not value.flags.writeable:
            return value
        # A step that was recorded must keep the old values, so the array is copied. If its bytes have not changed the
        # earlier copy is used again: equal constants then share a place, and repeated calls on them are found. The
        # array is stored with its copy, as otherwise a new array could get its `id`.
        known = self._taken.get(id(value))
        if known is None or not _same_bytes(value, known[1]):
            known = self._taken[id(value)] = value, value.copy()
        return known[1]

    def input(self, value, given: bool = True):
        """Return a traced array for an argument; ``given`` is True if the memory is the caller's."""
        traced = self._place(value)
        if given:
            self.memories.note_given(traced)
        self.inputs.append(traced.place)
        return traced

    def source(self, value):
        """Return a traced array that no row computes and no caller passes, to see what depends on it.

        :meth:`settle` must be called before a result may depend on it.
        """
        return self._place(value)

    def settle(self, source) -> None:
        """Make a source a constant."""
        self._keep(source.place, source.value)

    def lift(self, x):
        """Return an array of this program, of an enclosing one or of a replayed one as an array of this program.

        Raises:
            JitError: the array belongs to a function whose trace has ended, or to another call.
        """
        found = x if x.program is self else self._in_replayed(x)
        if found is not None:
            return found
        if self.parent is None:
            raise JitError(
                "a compiled function used an array made in a function called by `scan()`, `cond()` or similar.",
                hint="return the array from that function",
            )
        if x.stale:
            x.refuse_stale()
        outer = self.parent.lift(x)
        place = outer.place
        if place not in self.lifted:
            outer = Traced(outer.value, self.parent, outer.place)  # a new object, as a write changes the other one
            if place in self.parent.constants:
                own = self.fold(outer.value) if outer.place in self.parent.folded else self.constant(outer.value)
            else:
                own = self._place(outer.value)
                self.memories.note_given(own)
            self.lifted[place] = outer, own
        return self.lifted[place][1]

    def replay(self, program: Program, inputs: list) -> None:
        """Record the rows of a function's program here for other arguments, so that its arrays can be used here."""
        table: dict[int, Any] = dict(zip(program.inputs, inputs))
        for place, value in program.constants.items():
            table[place] = self.fold(value) if place in program.folded else self.constant(value)

        for step in program.table.rows():
            arguments = step.given(table.__getitem__)
            results = self.call(step.name, step.function, arguments, values_of(arguments))
            table.update(zip(step.places, results if step.several else [results]))
        self.replayed[program] = table

    def _in_replayed(self, x):
        for program, table in self.replayed.items():
            known = x if x.program is program else program._in_replayed(x)
            if known is not None:
                return table[known.place]
        return None

    @property
    def held(self) -> list[tuple[Any, Any]]:
        """The arrays of ``parent`` that are read here and depend on arguments, each with its array here."""
        return [(outer, own) for outer, own in self.lifted.values() if own.place not in self.constants]

    @contextlib.contextmanager
    def inside(self, inner: Program):
        """A scope in which ``inner`` records the calls on arrays of this program and its parents."""
        programs = []
        at: Program | None = self
        while at is not None:
            programs.append((at, at.current))
            at.current = inner
            at = at.parent
        try:
            yield
        finally:
            for program, before in programs:
                program.current = before
            inner.current = None

    def look(self, x, text: str | None = None):
        """Return the values of an array of truth values or integers, and add a guard for them.

        Args:
            text: see :meth:`.Guards.look`.

        Raises:
            JitError: in a function that a loop or branch calls, or in one that is compiled to be analysed.
        """
        if not self.may_look:
            x.refuse()
        return self.guards.look(x, text)  # type: ignore[union-attr]

    @property
    def may_look(self) -> bool:
        """True if the function may branch on values: the program has guards and records here."""
        return self.guards is not None and self.current is self

    def constant(self, array: np.ndarray):
        """Return a traced array for an array that the function closed over, which is stored by reference."""
        array = self._as_now(array)
        bits = _bits(array)
        known = self._written.get(bits)
        traced = self._place(array) if known is None else self._traced(array, known)
        self._written[bits] = traced.place
        self.memories.note_given(traced)
        self._keep(traced.place, array)
        return traced

    def _keep(self, place: int, value) -> None:
        self.constants[place] = value
        if not np.ndim(value) and value == 1.0:
            self.ones.add(place)

    def literal(self, number, bits: bytes) -> int:
        """Return the place of a constant single number; equal bits give the same place."""
        place = self._literals.get(bits)
        if place is None:
            place = self._literals[bits] = self.new(number)
            self.constants[place] = number
            if number == 1.0:
                self.ones.add(place)
        return place

    def fold(self, result, arguments=()):
        """Return a traced array for a result that is equal for all arguments, such as zeros of a shape."""
        if isinstance(result, (bool, int, float, tuple)) and not holds_arrays(result):
            return result
        if isinstance(result, (list, tuple)):
            return type(result)(self.fold(part, arguments) for part in result)
        traced = self._place(result, arguments)
        self._keep(traced.place, result)
        self.folded.add(traced.place)
        return traced

    def _traced(self, value, place: Place, arguments=()):
        """Return a traced array, marked as a view if its value is a view of an argument's value."""
        traced = Traced(value, self, place)
        self.memories.note_view(traced, arguments)
        return traced

    def call(self, name: str, kernel, arguments, values):
        """Record ``kernel(*values)`` and return the result, or the result of an equal call that was recorded.

        Args:
            arguments: traced arrays and the kernel's other arguments.
            values: the arguments with each traced array replaced by its value.
        """
        number = self.number(number_operation(name, kernel, len(arguments)), arguments)
        return self.step(name, kernel, arguments, values) if number is None else number

    def step(self, name: str, kernel, arguments, values):
        """Record a call that is not an operation on single numbers; the arguments are as for :meth:`call`."""
        kernel = direct(kernel, values)
        pattern, operands = split(arguments, Traced, place_of)
        what = self.table.interned(name, kernel, pattern, len(operands))
        known = self.table.known_results(what, operands)
        if known is not None:
            return self._results(what, *known, arguments)
        result = kernel(*values)
        if not isinstance(result, (np.generic, np.ndarray, list)) and not holds_arrays(result):
            return result
        if name == "multiply":
            same = self._times_one(arguments, result)
            if same is not None:
                return same
        several = list if isinstance(result, list) else tuple if isinstance(result, tuple) else None
        places = tuple([Place(self.new(x)) for x in result]) if several else (Place(self.new(result)),)
        self.table.append(what, operands, places, several)
        return self._results(what, places, several, arguments)

    def number(self, what: NumberOperation | None, arguments) -> Traced | None:
        """Record an operation on single numbers and return the result; None if the arguments are something else."""
        if what is None or not self.has_numbers:
            return None
        places: list[int] = []
        floats = what.is_logical  # other ops on truth values alone have results of other dtypes
        others = self.values.others
        for x in arguments:
            if x.__class__ is Traced:
                place = x.place
                if place not in others:
                    floats = True
                elif not is_number(others[place]):
                    return None
                else:
                    floats = floats or others[place].dtype == np.float64
                places.append(place)
            elif x.__class__ is float or x.__class__ is np.float64 or x.__class__ is int and abs(x) < _EXACT:
                number = np.float64(x)
                places.append(self.literal(number, number.tobytes()))
            else:
                return None
        if not floats:
            return None
        result = Place(self.operate(what, *places))
        return Traced(self.value(result), self, result)

    def operate(self, what: NumberOperation, x: int, y: int = 0, z: int = 0) -> int:
        """Record an operation by the places of its operands, single numbers; return the place of the result."""
        if what.name == "multiply":
            if x in self.ones and self.values.is_number(y):
                return y
            if y in self.ones and self.values.is_number(x):
                return x
        return self.table.compute(what, x, y, z)

    def _results(self, what: Operation, places: tuple[Any, ...], several: Any, arguments):
        """Return new traced arrays for the results, so that a write to one leaves the results of an equal call."""
        if several:
            return several([self._traced(self.values[p], p, arguments) for p in places])
        (place,) = places
        out = self._traced(self.values[place], place, arguments)
        if what.name == "get_item":
            out.key = frozen(arguments[1])
        return out

    def _times_one(self, factors, result):
        """Return the other factor if one factor is a constant of ones, as a backward pass starts with ones."""
        for one, other in (factors, factors[::-1]):
            if isinstance(one, Traced):
                one = self.constants.get(one.place)
            if one is None or not isinstance(other, Traced) or other.shape != result.shape:
                continue
            if other.dtype == result.dtype and other.value.__class__ is result.__class__ and _are_ones(one):
                again = self._traced(other.value, other.place)
                again.key = other.key
                return again
        return None

    def written(self, x):
        """Return any array or number as an array of this program; a constant is stored by reference."""
        if not isinstance(x, Traced):
            return self.constant(np.asarray(x))
        return self.lift(x)

    def finish(self) -> None:
        """Release what is used only while tracing."""
        self.table.finish()
        for table in (self.composed, self.memories, self._taken, self._written, self._literals):
            table.clear()

    def forget(self) -> None:
        """Release what emission used, and break reference cycles, which would wait for the garbage collector."""
        self.values.clear()
        self.bodies.clear()
        for what in self.table.operations:
            if what.pattern and hasattr(what.pattern[0], "forget"):  # a loop or branch, with programs
                what.pattern[0].forget()
        for log in self.logs:
            log.forget()
        self.logs.clear()
        if self.root is self:
            self.table = Table(self.values)
            self.current = None
            del self.root


def _same_bytes(one, other) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _are_ones(x) -> bool:
    if isinstance(x, (float, int)):
        return x == 1
    return isinstance(x, (np.ndarray, np.generic)) and x.size > 0 and x.flat[0] == 1 and bool(np.all(x == 1))


_EXACT = 2**53
"""Integers below this are exact as floats."""

_FEW = 16
"""The largest size in bytes of a constant that is identified by its bits; larger constants go by identity."""


def _bits(array: np.ndarray):
    """Return the key of a constant: its bits, or its identity if it is large."""
    if array.nbytes > _FEW:
        return id(array)
    return array.shape, array.dtype, array.tobytes()
