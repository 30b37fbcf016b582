"""The reference executor: each step of a program by its own NumPy kernel, without native code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._tree import map_items
from ..backends.numpy.base import owned
from .array import Place
from .liveness import last_uses, needed_steps
from .program import Program
from .scalar_blocks import Block, Operation, count, expanded
from .steps import Step, places

LARGE = 1_000
"""Elements of an array that is freed after its last use; smaller ones live until the executor returns."""

STEP, ELEMENT = 5e-6, 1e-8
"""Seconds that a step and an element of its result take, roughly."""

LONGEST_PLAN = 2_000
"""The largest number of scalar operations that are planned one by one; more take too much memory."""


class Reference:
    """A program as a function of its inputs to the list of its outputs.

    It is slower than emitted code, but made in a twentieth of the time.

    Args:
        steps: the steps that the outputs need; found where they are not given.
    """

    def __init__(self, program: Program, outputs: list, steps: list | None = None):
        wanted = {o.index for o in outputs if isinstance(o, Place)}
        self.steps = needed_steps(program, wanted) if steps is None else steps
        self.inputs, self.outputs = list(program.inputs), outputs
        used = {*wanted, *(place for step in self.steps for place in step.uses)}
        self.constants = {place: program.constants[place] for place in program.constants.keys() & used}
        sizes = {place: getattr(x, "size", 0) for place, x in program.values.others.items()}
        self._large = {place for place, size in sizes.items() if size > LARGE} - wanted
        self._elements = sum(sizes.values())
        self._plan: list | None = None

    def __call__(self, *arrays) -> list:
        return self.outputs_for(arrays)

    def outputs_for(self, arrays: Iterable, rounding: Callable | None = None) -> list:
        """The outputs.

        Args:
            rounding: a function of an op's name, a kernel and its arguments that calls the kernel, see
                :class:`.Rounding`.
        """
        arrays = list(arrays)
        values = self.values_for(arrays, rounding, free=True)
        found = [values[o.index] if isinstance(o, Place) else o for o in self.outputs]
        fixed = {id(x) for x in (*arrays, *self.constants.values(), *self.outputs) if isinstance(x, np.ndarray)}
        return owned(found, fixed)

    def values_for(self, arrays: Iterable, rounding: Callable | None = None, free: bool = False) -> dict[int, Any]:
        """The value at each place; without large ones that no later step reads, where ``free``."""
        if self._plan is None:
            self._plan = self._planned()
        values: dict[int, Any] = dict(self.constants)
        values.update(zip(self.inputs, arrays))
        for step, kernel, arguments, done in self._plan:
            if kernel is None:
                _run_block(step, values, rounding)
                continue
            if kernel is _control_results:
                results = kernel(arguments(values), rounding)
            elif rounding is None:
                results = kernel(*arguments(values))
            else:
                results = rounding(step.name, kernel, arguments(values))
            values.update(zip(step.places, results if step.several else (results,)))
            if free:
                for place in done:
                    values[place] = None
        return values

    def seconds(self) -> float:
        """An estimate of the time of a call."""
        loops = sum(step.arguments[0].reference_seconds() for step in self.steps if is_control(step))
        return STEP * count(self.steps) + ELEMENT * self._elements + loops

    def _planned(self) -> list[tuple]:
        is_short = count(self.steps) <= LONGEST_PLAN
        steps = expanded(self.steps) if is_short else self.steps
        done: list[list[int]] = [[] for _ in steps]
        for place, i in last_uses(steps).items():
            if place in self._large:
                done[i].append(place)
        plan: list[tuple] = []
        for step, over in zip(steps, done):
            if isinstance(step, Block):
                plan.append((step, None, None, over))
                continue
            kernel = _control_results if is_control(step) else step.function
            plan.append((step, kernel, _getter(step.arguments), over))
        return plan


def is_control(step: Any) -> bool:
    """True of the step of a loop or branch."""
    return isinstance(step, Step) and bool(step.arguments) and hasattr(step.arguments[0], "reference_results")


def _control_results(arguments: tuple, rounding: Callable | None):
    """The results of a loop or branch, which is the first argument of its step."""
    control, *operands = arguments
    return control.reference_results(*operands, rounding=rounding)


def _run_block(block: Block, values: dict[int, Any], rounding: Callable | None) -> None:
    known, made = Operation.known, []
    for number, result, *operands in block.rows.tolist():
        what = known[number]
        given = [values[p] for p in operands[: what.operands]]
        x = what.compute(*given) if rounding is None else rounding(what.name, what.compute, tuple(given))
        values[result] = x[()] if x.__class__ is np.ndarray else x
        made.append(result)
    for place in made:  # kernels of other steps take NumPy's numbers: Python's would be weak
        if values[place].__class__ is float:
            values[place] = np.float64(values[place])


def _getter(arguments: tuple) -> Callable[[dict], tuple]:
    """A function of the values by place to arguments with these at their places."""
    if all(x.__class__ is Place for x in arguments):
        get = operator.itemgetter(*arguments)
        return get if len(arguments) > 1 else lambda values: (get(values),)
    if not any(places(x) for x in arguments if isinstance(x, (list, tuple))):
        return lambda values: tuple([values[x] if x.__class__ is Place else x for x in arguments])
    return lambda values: map_items(lambda x: values[x] if x.__class__ is Place else x, arguments)
