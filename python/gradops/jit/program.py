"""A recorded program: NumPy calls in order, without dispatch, tape or the user's function.

Written down while tracing, where no result is computed twice; :mod:`.emission` makes a Python
function of it.
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
    """The table of a traced function, and what its rows take and mean.

    Args:
        parent: the program of the function in which this one is called, whose arrays it may use.
        has_numbers: True if operations on single numbers are rows of their own kind, as those of long loops.
        of_single_numbers: True for a function of single numbers that loops repeat, where a choice between two formulas
            costs more than all else.
        is_native: False if no step is to become native code.

    Attributes:
        table: the operations that ran, in order.
        inputs: the places of the arguments.
        constants: arrays that the function closed over, read anew at each call, and results that are the same for
            all arguments, by place.
        ones: the places of single numbers that are 1 at each call.
        folded: the places of values that are the same for all arguments.
        values: the value at each place for the arguments that the function was traced with.
        root: the program of the function that is compiled.
        bodies: of that one all the functions that were traced within it.
        lifted: the arrays of ``parent`` that it uses, by their place there, each with its counterpart here.
        replayed: programs that were done here, and the value here at each of their places.
        passed: of functions whose derivatives are taken here the leaves and nodes by their keys, with the function and
            the edge that stands for each.
        logs: the tape's records of operations on single numbers.
        composed: calls of ops that are several steps and have a derivative of their own, by the place of the result.
        memories: which of its arrays share memory.
        guards: the values that the function has looked at; None where it must not look.
        current: the program to which calls are written down: this one, or one whose ``parent`` it is; None for one that
            is done.
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
        """``value``, arrays that can be written as they are now: the function may write to them while it is traced."""
        return map_items(self._as_now, value)

    def _as_now(self, value):
        if not isinstance(value, np.ndarray) or not value.flags.writeable:
            return value
        # A copy, as the function may write to the array later in the trace, when a step that has run must keep the old
        # values. The same copy while it has not: equal constants are one place, and calls on them are found again. The
        # array itself is held beside it, as another one could come by its `id`.
        known = self._taken.get(id(value))
        if known is None or not _same_bytes(value, known[1]):
            known = self._taken[id(value)] = value, value.copy()
        return known[1]

    def input(self, value, given: bool = True):
        """A traced array for an argument, which is the caller's unless ``given`` is False."""
        traced = self._place(value)
        if given:
            self.memories.note_given(traced)
        self.inputs.append(traced.place)
        return traced

    def source(self, value):
        """A traced array that nothing gives: it is for seeing what depends on it.

        A result may need it only once it is settled.
        """
        return self._place(value)

    def settle(self, source) -> None:
        """Have a source be its value at each call."""
        self._keep(source.place, source.value)

    def lift(self, x):
        """An array of this program, of one around it or of one that was replayed here, as one of this program.

        Raises:
            JitError: an array of a function whose trace has ended, or belongs to another call.
        """
        found = x if x.program is self else self._in_replayed(x)
        if found is not None:
            return found
        if self.parent is None:
            raise JitError(
                "a compiled function met an array that a function which it called had made for itself.",
                hint="let the functions that `scan()`, `cond()` and their like call return what is needed of them",
            )
        if x.stale:
            x.refuse_stale()
        outer = self.parent.lift(x)
        place = outer.place
        if place not in self.lifted:
            outer = Traced(outer.value, self.parent, outer.place)  # as it is now, whatever is written to it later
            if place in self.parent.constants:
                own = self.fold(outer.value) if outer.place in self.parent.folded else self.constant(outer.value)
            else:
                own = self._place(outer.value)
                self.memories.note_given(own)
            self.lifted[place] = outer, own
        return self.lifted[place][1]

    def replay(self, program: Program, inputs: list) -> None:
        """Do the steps of a function's program here, for other arguments, so that its arrays may be used here."""
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
        """The arrays of ``parent`` that it uses and that depend on arguments, each with its counterpart here."""
        return [(outer, own) for outer, own in self.lifted.values() if own.place not in self.constants]

    @contextlib.contextmanager
    def inside(self, inner: Program):
        """A scope in which calls are written to ``inner``, also those whose only arrays are this program's."""
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
        """The values of an array of truth values or whole numbers, to which the program is specialised from here on.

        Args:
            text: see :meth:`.Guards.look`.

        Raises:
            JitError: in a function that a loop or branch calls, or one that is compiled to be analysed.
        """
        if not self.may_look:
            x.refuse()
        return self.guards.look(x, text)  # type: ignore[union-attr]

    @property
    def may_look(self) -> bool:
        """True if a function may look at values, as its steps are written down here for these values only."""
        return self.guards is not None and self.current is self

    def constant(self, array: np.ndarray):
        """A traced array for one that the function closed over; kept by reference."""
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
        """The place of a single number that is the same at each call, known by its bits."""
        place = self._literals.get(bits)
        if place is None:
            place = self._literals[bits] = self.new(number)
            self.constants[place] = number
            if number == 1.0:
                self.ones.add(place)
        return place

    def fold(self, result, arguments=()):
        """A result that is the same for all arguments, as zeros of a shape, and is computed while tracing."""
        if isinstance(result, (bool, int, float, tuple)) and not holds_arrays(result):
            return result
        if isinstance(result, (list, tuple)):
            return type(result)(self.fold(part, arguments) for part in result)
        traced = self._place(result, arguments)
        self._keep(traced.place, result)
        self.folded.add(traced.place)
        return traced

    def _traced(self, value, place: Place, arguments=()):
        """A traced array; a view where its value is one of an argument's."""
        traced = Traced(value, self, place)
        self.memories.note_view(traced, arguments)
        return traced

    def call(self, name: str, kernel, arguments, values):
        """Write down ``kernel(*values)``, or find the same call that was written before.

        Args:
            arguments: traced arrays, and whatever else the kernel takes.
            values: the same with the value of each traced array.
        """
        number = self.number(number_operation(name, kernel, len(arguments)), arguments)
        return self.step(name, kernel, arguments, values) if number is None else number

    def step(self, name: str, kernel, arguments, values):
        """The same of a call that is none on single numbers."""
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
        """The result of an operation on single numbers that is written down with others; None where it is none."""
        if what is None or not self.has_numbers:
            return None
        places: list[int] = []
        floats = what.is_logical  # of truth values alone other ops have results of other dtypes
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
        """The place of the result of an operation, from the places of single numbers."""
        if what.name == "multiply":
            if x in self.ones and self.values.is_number(y):
                return y
            if y in self.ones and self.values.is_number(x):
                return x
        return self.table.compute(what, x, y, z)

    def _results(self, what: Operation, places: tuple[Any, ...], several: Any, arguments):
        """The results of an operation: each time new arrays, as a write to one is not a write to the other."""
        if several:
            return several([self._traced(self.values[p], p, arguments) for p in places])
        (place,) = places
        out = self._traced(self.values[place], place, arguments)
        if what.name == "get_item":
            out.key = frozen(arguments[1])
        return out

    def _times_one(self, factors, result):
        """The other factor where one is a constant of ones, as gradients start with."""
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
        """An array of this program for any array or number; constants are taken by reference."""
        if not isinstance(x, Traced):
            return self.constant(np.asarray(x))
        return self.lift(x)

    def finish(self) -> None:
        """Let go of everything that only tracing needs."""
        self.table.finish()
        for table in (self.composed, self.memories, self._taken, self._written, self._literals):
            table.clear()

    def forget(self) -> None:
        """Let go of everything that emission needs too, and of circles, which would wait for the search for them."""
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
"""Smaller whole numbers are floats."""

_FEW = 16
"""The largest size in bytes of a constant that is found again by its bits; a larger one is found by its identity."""


def _bits(array: np.ndarray):
    """The key of a constant."""
    if array.nbytes > _FEW:
        return id(array)
    return array.shape, array.dtype, array.tobytes()
