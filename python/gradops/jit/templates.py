"""What an op's rule does with single numbers: traced once for each op, to be repeated for other numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import engine
from ..autodiff.derivatives import fresh
from ..autodiff.graph import key
from ..autodiff.modes import recording
from ..backends import numpy as kernels
from ..ops._dispatch import registry
from ..ops._structures import recorder
from .array import Place, Traced
from .blocks import Operation, operation
from .calls import direct
from .program import Program


class Template(NamedTuple):
    """The rule of an op as operations on the numbers in its slots.

    The slots are those of the op's operands, of its result and of the upstream gradient, then those of constants, and
    then those of results.

    Attributes:
        operations: each with the slots of its operands.
        constants: numbers.
        gradients: for each operand the slot of its gradient, or None.
        uses: which of the operands and the result are used.
    """

    operations: list[tuple[Operation, tuple[int, ...]]]
    constants: list
    gradients: list[int | None]
    uses: list[bool]


def template(what: Operation, active: tuple[bool, ...], exponent: Any = None) -> Template:
    """The rule of an op for the operands that have a gradient.

    Args:
        exponent: of a power, where it is the same at each call.

    Raises:
        TypeError: the rule is no matter of single numbers.
    """
    return _template(what, active, None if exponent is None else repr(float(exponent)))


@functools.cache
def _template(what: Operation, active: tuple[bool, ...], exponent: str | None) -> Template:
    program = Program()
    token = recorder.set(_Writing(program)), recording.set(True)
    try:
        with np.errstate(all="ignore"):
            return _traced(program, what, active, exponent)
    finally:
        recorder.reset(token[0])
        recording.reset(token[1])


class _Writing(NamedTuple):
    """What is being written, as ops ask for it."""

    program: Program


def _traced(program: Program, what: Operation, active: tuple[bool, ...], exponent: str | None) -> Template:
    operands = [program.input(np.float64(0.5)) for _ in active]
    g = program.input(np.float64(1.5))
    variables = [fresh(x) if on else x for x, on in zip(operands, active)]
    given = [*variables[:-1], float(exponent)] if exponent is not None else variables
    y = registry[what.name].call(*what.arguments(given))
    if not getattr(y, "requires_grad", False):
        return Template([], [], [None] * len(active), [False] * (len(active) + 1))
    result = y.data
    leaves = [x for x, on in zip(variables, active) if on]
    before = len(program.steps)
    found = engine.run([y], [g], False, False, leaves)
    gradients = [found.get(key(x), (None, None))[1] if on else None for x, on in zip(variables, active)]

    slots = {x.place.index: i for i, x in enumerate((*operands, result, g))}
    constants: list = []
    operations: list[tuple[Operation, tuple[int, ...]]] = []

    def constant(value) -> int:
        constants.append(np.float64(value) if not isinstance(value, np.bool_) else value)
        return -len(constants)  # known by its slot once their number is

    def slot(place: int) -> int:
        if place not in slots:
            slots[place] = constant(program.constants[place])
        return slots[place]

    steps = program.steps[before:]
    for i, step in enumerate(steps):
        value = program.value(step.places[0])
        if step.several or np.ndim(value) or value.dtype not in (np.float64, np.bool_):
            raise TypeError(f"the rule of `{what.name}` takes `{step.name}`, which is of no single numbers")
        pattern, refs = [], []
        numbers = registry[step.name].positions
        for at, x in enumerate(step.arguments):
            if isinstance(x, Place):
                refs.append(slot(x.index))
            elif at in numbers and isinstance(x, (int, float, np.float64)):
                refs.append(constant(float(x)))
            else:
                pattern.append(x)
                continue
            pattern.append(None)
        slots[step.places[0]] = len(active) + 2 + i  # without the constants before it, as yet
        operations.append((operation(step.name, tuple(pattern), step.kernel), tuple(refs)))
    ends = [None if x is None else slot(x.place.index) if isinstance(x, Traced) else constant(x) for x in gradients]

    def final(ref: int) -> int:
        own = len(active) + 2
        return own - 1 - ref if ref < 0 else ref + len(constants) if ref >= own else ref

    done = [(what, tuple(map(final, refs))) for what, refs in operations]
    used = {ref for _, refs in done for ref in refs} | {final(x) for x in ends if x is not None}
    return Template(
        done, constants, [None if x is None else final(x) for x in ends], [i in used for i in range(len(active) + 1)]
    )


def kernel_of(name: str, count: int) -> Callable:
    """NumPy's function of single float64 numbers that an op runs."""
    return direct(getattr(kernels, name), [np.float64(0)] * count)
