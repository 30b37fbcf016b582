"""Liveness: the steps that results need, and the last use of each value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from .native.records import mark_operands
from .program import Program
from .scalar_blocks import FEW, Block
from .steps import Step


def needed_steps(program: Program, wanted: Iterable[int], instead: Mapping[int, Step] = MappingProxyType({})) -> list:
    """The steps that the wanted places need, in order; of some results one ``instead`` of their own."""
    is_needed = bytearray(len(program.values))  # a view of which is for all operations of a block at a time
    marks, found = np.frombuffer(is_needed, np.uint8), []
    for place in wanted:
        is_needed[place] = 1
    for step in reversed(program.steps):
        if isinstance(step, Block):
            # Place 0, which stands for an operand that an operation does not have, is no value's.
            if len(step) < FEW:
                for _, result, x, y, z in reversed(step.rows.tolist()):
                    if is_needed[result]:
                        is_needed[x] = is_needed[y] = is_needed[z] = 1
            else:
                mark_operands(step.rows, np.full(len(step), 7, np.uint8), marks)
            block = step.those(marks[step.places] != 0)
            if block is not None:
                found.append(block)
            continue
        for result in step.places:
            if is_needed[result]:
                step = instead.get(result, step)
                found.append(step)
                for place in step.uses:
                    is_needed[place] = 1
                break
    return found[::-1]


def last_uses(steps: list[Step]) -> dict[int, int]:
    """The number of the last step that uses each place."""
    return {place: i for i, step in enumerate(steps) for place in step.uses}
