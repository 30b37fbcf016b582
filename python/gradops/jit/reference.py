"""The reference executor: it runs each row of a program by the row's own NumPy kernel, without native code.

:mod:`.verification` compares compiled programs with it. It repeats native runs (:mod:`.native.run`) about which NumPy
would warn, and :class:`.compiled._Parts` uses it for programs that run only a few times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..backends.numpy.base import owned
from .array import Place
from .operations import Operation
from .program import Program
from .table import LONGEST, OWN, Rows

LARGE = 1_000
"""The number of elements above which an array is freed after its last use; smaller arrays live until the end."""

STEP, ELEMENT = 5e-6, 1e-8
"""Estimates of the seconds that a row takes, and an element of its result."""


class Reference:
    """Rows of a program as a function from the values at some places to the list of outputs.

    It is slower than emitted code, but is made in a twentieth of the time.

    Args:
        rows: the rows that the outputs need.
        inputs: the places of the arguments.
        outputs: places, or values that are equal for all arguments.
        constants: values by place.
        sizes: the numbers of elements of arrays by place, where they are known.
    """

    def __init__(
        self,
        rows: Rows,
        inputs: Sequence[int],
        outputs: list,
        constants: Mapping[int, Any],
        sizes: Mapping[int, int] = MappingProxyType({}),
    ):
        self.rows, self.inputs, self.outputs = rows, inputs, outputs
        self._all_constants = constants
        self._elements = sum(sizes.values())
        wanted = {o.index for o in outputs if isinstance(o, Place)}
        self._freed = self._last_uses({place for place, size in sizes.items() if size > LARGE} - wanted)

    @classmethod
    def make(cls, program: Program, rows: Rows, outputs: list) -> Reference:
        """Return the executor of a program's rows, as a function of the program's inputs."""
        sizes = {place: getattr(x, "size", 0) for place, x in program.values.others.items()}
        return cls(rows, list(program.inputs), outputs, program.constants, sizes)

    @functools.cached_property
    def constants(self) -> dict[int, Any]:
        """The constants that the rows and outputs read, by place."""
        places = [o.index for o in self.outputs if isinstance(o, Place)]
        operands = self.rows.operands()
        used = np.zeros(max([*places, *self._all_constants, operands.max(initial=0)]) + 1, bool)
        used[operands] = True
        used[places] = True
        return {place: value for place, value in self._all_constants.items() if used[place]}

    def __call__(self, *arrays) -> list:
        return self.outputs_for(arrays)

    def outputs_for(self, arrays: Iterable, rounding: Callable | None = None) -> list:
        """Return the outputs.

        Args:
            rounding: a function of an op's name, a kernel and its arguments that calls the kernel, see
                :class:`.Rounding`.
        """
        arrays = list(arrays)
        values = self.values_for(arrays, rounding, free=True)
        found = [_numpy_number(values[o.index]) if isinstance(o, Place) else o for o in self.outputs]
        fixed = {id(x) for x in (*arrays, *self.constants.values(), *self.outputs) if isinstance(x, np.ndarray)}
        return owned(found, fixed)

    def values_for(self, arrays: Iterable, rounding: Callable | None = None, free: bool = False) -> dict[int, Any]:
        """Return the value at each place; single numbers may be Python's. With ``free``, large values that no later row
        reads are missing."""
        table, freed = self.rows.table, self._freed if free else {}
        values: dict[int, Any] = dict(self.constants)
        values.update(zip(self.inputs, arrays))
        for start in range(0, len(self.rows), LONGEST):
            for row in self.rows.words[start : start + LONGEST].tolist():
                what, place = table.operation(row[0]), row[1]
                if row[0] < OWN:
                    given = [values[p] for p in row[2 : 2 + what.operands]]
                    x = what.compute(*given) if rounding is None else rounding(what.name, what.compute, tuple(given))
                    values[place] = x[()] if x.__class__ is np.ndarray else x
                    continue
                # Kernels of arrays take NumPy's numbers, as Python's would not count in type promotion.
                arguments = what.arguments([_numpy_number(values[p]) for p in table.operands(row)])
                if is_control(what):
                    results = _control_results(arguments, rounding)
                elif rounding is None:
                    results = what.kernel(*arguments)
                else:
                    results = rounding(what.name, what.kernel, arguments)
                if table.several(row):
                    values.update(zip(table.results(row), results))
                else:
                    values[place] = results
                for p in freed.get(place, ()):
                    values[p] = None
        return values

    def seconds(self) -> float:
        """Return an estimate of the time of a call."""
        return STEP * len(self.rows) + ELEMENT * self._elements + self._control_cost(Reference.seconds)

    def executed_rows(self) -> float:
        """Estimate how many rows a call runs. Each iteration of a loop runs the rows of its body."""
        return len(self.rows) + self._control_cost(Reference.executed_rows)

    def _control_cost(self, measure: Callable[[Reference], float]) -> float:
        """Return the sum of a measure over the loops and branches among the rows."""
        return sum(what.pattern[0].reference_cost(measure) for what in self.rows.operations if is_control(what))

    def _last_uses(self, places: set[int]) -> dict[int, list[int]]:
        """Return the places, among those given, that no later row reads, by the first result of the row."""
        found: dict[int, list[int]] = {}
        for row in self.rows.words[~self.rows.are_numbers][::-1].tolist() if places else ():
            last = places.intersection(self.rows.table.operands(row))
            if last:
                found[row[1]] = list(last)
                places -= last
        return found


def _numpy_number(x):
    return np.float64(x) if x.__class__ is float else x


def is_control(what: Operation) -> bool:
    """True if an operation is a loop or branch."""
    return bool(what.pattern) and hasattr(what.pattern[0], "reference_results")


def _control_results(arguments: tuple, rounding: Callable | None):
    """Return the results of a loop or branch, which is the first argument of its operation."""
    control, *operands = arguments
    return control.reference_results(*operands, rounding=rounding)
