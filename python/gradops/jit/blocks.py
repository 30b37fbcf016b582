"""Many operations on single numbers as one step of a program."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .array import Place
from .calls import Step

NAME = "scalars"
"""What such a step is called."""


class Operation:
    """An op of single numbers.

    Attributes:
        name: the op's.
        pattern: its arguments: None for each number, and settings.
        kernel: NumPy's function of these.
        is_plain: whether there are no settings.
        compute: the kernel as a function of the numbers alone; of Python's operators, which do it to the same bits,
            where it is one.
    """

    __slots__ = ("name", "pattern", "kernel", "is_plain", "compute")

    def __init__(self, name: str, pattern: tuple, kernel: Callable):
        self.name, self.pattern, self.kernel = name, pattern, kernel
        self.is_plain = all(x is None for x in pattern)
        self.compute = _OPERATORS.get(kernel, kernel) if self.is_plain else self._with_settings

    def arguments(self, numbers) -> tuple:
        """The arguments with numbers in their places."""
        if self.is_plain:
            return tuple(numbers)
        rest = iter(numbers)
        return tuple([next(rest) if x is None else x for x in self.pattern])

    def _with_settings(self, *numbers) -> Any:
        return self.kernel(*self.arguments(numbers))


_OPERATORS: dict[Callable, Callable] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.negative: operator.neg,
}


@functools.cache
def operation(name: str, pattern: tuple, kernel: Callable) -> Operation:
    """An operation, each made once."""
    return Operation(name, pattern, kernel)


class Block:
    """The operations of one step.

    Attributes:
        operations: of each a tuple with the operation and the places of its operands, and the place of its result.
        kinds: the operations, each once.
    """

    def __init__(self, operations: list[tuple[tuple, int]]):
        self.operations = operations
        self.kinds: set[Operation] = {call[0] for call, _ in operations}

    def step(self) -> Step:
        """It as a step of a program."""
        own = {place for _, place in self.operations}
        uses = {place: None for call, _ in self.operations for place in call[1:] if place not in own}
        return Step(NAME, self._refuse, (self, *map(Place, uses)), tuple([place for _, place in self.operations]), True)

    def steps(self) -> list[Step]:
        """The same operations, each as a step."""
        return [single(call, place) for call, place in self.operations]

    @staticmethod
    def _refuse(*_):
        raise AssertionError("a block runs as native code, or as its single steps")


def single(call: tuple, place: int) -> Step:
    """One operation of a block as a step."""
    what, *operands = call
    return Step(what.name, what.kernel, what.arguments(map(Place, operands)), (place,), False)


def block_of(step: Step) -> Block | None:
    """The block that a step is; None of another."""
    return step.arguments[0] if step.name == NAME else None


def count(steps: list[Step]) -> int:
    """How many steps there are, with those of blocks."""
    return sum(len(step.places) if step.name == NAME else 1 for step in steps)


def expanded(steps: list[Step], unless: Callable = lambda block: False) -> list[Step]:
    """Steps with blocks, but for those that ``unless`` holds of, as their single steps."""
    if not any(step.name == NAME for step in steps):
        return steps
    found: list[Step] = []
    for step in steps:
        block = block_of(step)
        found += [step] if block is None or unless(block) else block.steps()
    return found
