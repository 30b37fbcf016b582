"""The rules of native code by op; :mod:`.rules` and its kin register those that the op's kernel does not say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ... import backends
from ...backends.numpy.base import function_of
from .code import NotNative
from .instructions import FUNCTIONS, OF_SCIPY, OPERATIONS

RULES: dict[str, Callable] = {}
"""By the op's name: ``rule(lowering, step, *arguments)``. Ops that are one instruction need none: :func:`rule_of`."""

OF_KERNELS: dict[Callable, Callable] = {}
"""By the kernel, rules of kernels that refuse what their op does not."""

LIMITS: dict[str, Callable] = {}
"""By the op's name: ``limit(result, *arguments)``, by their examples, why there is no native code, None where there is.

Where a rule itself refuses a case, code has been written in vain.
"""

MOVES: set[str] = set()
"""Ops that only move elements, which costs nothing: their operands may be large."""

CALLS = {"logaddexp"}
"""Ops whose rules call functions, so that an element costs as much as a function of the C library."""

LOOPS = frozenset(("scan", "cond", "while_loop"))
"""Ops that call functions, whose operands may be large as a function reads a part; their rules are in :mod:`.loops`."""


_BY_FUNCTION: dict = {
    **{entry.meaning: name for name, entry in OPERATIONS.items() if entry.meaning},
    **{entry.meaning: name for name, entry in FUNCTIONS.items() if entry.meaning},
    **{name: name for name in OF_SCIPY},
}


class Known(NamedTuple):
    """What native code knows of an op.

    Attributes:
        rule: it; None where the op is not native.
        meaning: the machine's name of the function that the op's kernel is of, if it is of one.
        limits: the largest operands of which the kernel is that function; none where it always is.
    """

    rule: Callable | None
    meaning: str | None
    limits: tuple[float, ...]


def known_of(name: str) -> Known:
    """What native code knows of an op."""
    # By the kernel, not by the op's name: an op whose kernel is another one by now, as extensions may bring, is not
    # taken for the function that it was.
    meaning, limits = _of_kernel(_embedded().kernel(name))
    rule = RULES.get(name)
    if rule is None and meaning is not None:
        rule = _one_instruction(meaning, limits)
    return Known(rule, meaning, limits)


_embedded = functools.cache(backends.embedded)


@functools.cache
def _of_kernel(kernel) -> tuple[str | None, tuple[float, ...]]:
    return _BY_FUNCTION.get(function_of(kernel)), getattr(kernel, "limits", ())


def rule_of(name: str) -> Callable | None:
    """The rule of an op; None where it is not native."""
    return known_of(name).rule


def instruction(name: str) -> str | None:
    """The machine's name of an op that is one instruction for each element."""
    _, meaning, limits = known_of(name)
    return None if limits else meaning


@functools.cache
def _one_instruction(meaning: str, limits: tuple[float, ...]) -> Callable:
    if limits:
        return lambda lowering, step, *operands: lowering.within(limits, meaning, operands, step)
    return lambda lowering, step, *operands: lowering.elementwise(meaning, operands, step)


def calls_function(name: str) -> bool:
    """Return True if an element of an op's result costs a call of a function."""
    return name in CALLS or known_of(name).meaning in FUNCTIONS


def rule(name: str, calls: bool = False):
    """Register the rule of an op; ``calls`` if it calls functions, which makes an element expensive."""

    def register(function: Callable) -> Callable:
        RULES[name] = function
        if calls:
            CALLS.add(name)
        return function

    return register


def limit(name: str):
    """Register the function that says why an op is not native."""

    def register(function: Callable) -> Callable:
        LIMITS[name] = function
        return function

    return register


def refuse_unless(condition: bool, reason: str) -> None:
    """Raise NotNative with a reason unless a condition holds."""
    if not condition:
        raise NotNative(reason)


def move(name: str):
    """Register a rule that only moves elements."""

    def register(function: Callable) -> Callable:
        MOVES.add(name)
        return rule(name)(function)

    return register
