"""Look up and register the lowering rules of ops.

:mod:`.plan` and :mod:`.lowering` ask here how an op becomes native. An op has a rule of its own, which :mod:`.rules`
and similar modules register; or its kernel is a function that the machine has as an instruction; or it only moves
elements, and NumPy moves the cells instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from ... import backends
from ...backends.numpy.base import function_of
from ...ops import _registry
from ...ops._dispatch import facts_of
from .code import NotNative
from .instructions import FUNCTIONS, OF_SCIPY, OPERATIONS

OF_KERNELS: dict[Callable, Callable] = {}
"""Rules of particular kernels that, unlike their op's usual kernel, reject some operands."""

LOOPS: dict[str, Known] = {}
"""Rules of loops and branches, which are not ops. Their operands may be large, as a body reads only a part."""

_INSTRUCTIONS: dict = {
    **{entry.meaning: name for name, entry in OPERATIONS.items() if entry.meaning},
    **{entry.meaning: name for name, entry in FUNCTIONS.items() if entry.meaning},
    **{name: name for name in OF_SCIPY},
}
"""The machine's instruction for each NumPy or SciPy function."""

_CALLING = {*FUNCTIONS, "logaddexp"}
"""Instructions that call a function for each element."""


class Known(NamedTuple):
    """How an op becomes native.

    Attributes:
        rule: ``rule(lowering, step, *arguments)`` writes the code; None if the op is not native.
        calls: True if the rule calls functions, so that an element costs as much as a function of the C library.
        moves: True if the op only moves elements. That emits no code, so operands may be large.
        refusal: ``refusal(result, *arguments)`` takes example values and returns why the step is not native, or None.
            If the rule itself refuses, the code of the whole run is written again.
        meaning: the instruction or function that computes what the op's kernel computes, or None.
        limits: the largest operands for which the kernel computes that function; empty if there is no limit.
    """

    rule: Callable | None = None
    calls: bool = False
    moves: bool = False
    refusal: Callable | None = None
    meaning: str | None = None
    limits: tuple[float, ...] = ()


def known_of(name: str) -> Known:
    """Return how an op becomes native, by its own rule, its facts or its kernel."""
    # The kernel decides, not the op's name: an extension may have replaced the kernel by another function.
    kernel, own = _embedded().kernel(name), _registry.rule_of("native", name) or LOOPS.get(name)
    if own is None:
        own = _MOVED if kernel is not None and facts_of(name).moves else Known()
    return _known(kernel, own)


@functools.cache
def _known(kernel: Callable | None, own: Known) -> Known:
    meaning, limits = _INSTRUCTIONS.get(function_of(kernel)), getattr(kernel, "limits", ())
    rule = own.rule
    if rule is None and meaning is not None:
        rule = _one_instruction(meaning, limits)
    return own._replace(rule=rule, calls=own.calls or meaning in _CALLING, meaning=meaning, limits=limits)


_embedded = functools.cache(backends.embedded)


def rule_of(name: str) -> Callable | None:
    """Return the lowering rule of an op; None if the op is not native."""
    return known_of(name).rule


def instruction(name: str) -> str | None:
    """Return the instruction that computes an op; None if the op takes several, or limits its operands."""
    known = known_of(name)
    return None if known.limits else known.meaning


def _one_instruction(meaning: str, limits: tuple[float, ...]) -> Callable:
    if limits:
        return lambda lowering, step, *operands: lowering.limited_elementwise(limits, meaning, operands, step)
    return lambda lowering, step, *operands: lowering.elementwise(meaning, operands, step)


def _moved(lowering, step, x, *arguments):
    """Move the cells of ``x`` as NumPy would move its elements."""
    return step.function(lowering.array(x), *lowering.constants(arguments))


_MOVED = Known(_moved, moves=True)


def moves(name: str) -> bool:
    """Return True if the native code of an op only moves elements."""
    known = _registry.rule_of("native", name)
    return facts_of(name).moves if known is None else known.moves


def calls_function(name: str) -> bool:
    """Return True if an op's native code calls a function for each element."""
    return known_of(name).calls


def rule(*ops: str, calls: bool = False, moves: bool = False, refusal: Callable | None = None):
    """Register a lowering rule for ops; the arguments are fields of :class:`Known`."""

    def register(function: Callable) -> Callable:
        _registry.rule("native", *ops)(Known(function, calls, moves, refusal))
        return function

    return register


def loop(name: str):
    """Register the lowering rule of a loop or branch."""

    def register(function: Callable) -> Callable:
        LOOPS[name] = Known(function)
        return function

    return register


def refuse_unless(condition: bool, reason: str) -> None:
    """Raise :class:`NotNative` with a reason unless a condition holds."""
    if not condition:
        raise NotNative(reason)
