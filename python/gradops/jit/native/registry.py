"""The rules of native code, which stand at the ops: :mod:`.rules` and its kin register those that an op's facts and its
kernel do not say."""

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
"""By the kernel, rules of kernels that refuse what their op does not."""

LOOPS: dict[str, Known] = {}
"""The rules of loops and branches, which are no ops; their operands may be large, as a function reads a part."""

_INSTRUCTIONS: dict = {
    **{entry.meaning: name for name, entry in OPERATIONS.items() if entry.meaning},
    **{entry.meaning: name for name, entry in FUNCTIONS.items() if entry.meaning},
    **{name: name for name in OF_SCIPY},
}
"""By the function that a kernel is of."""

_CALLING = {*FUNCTIONS, "logaddexp"}
"""Instructions of which an element costs a call of a function."""


class Known(NamedTuple):
    """What native code knows of an op.

    Attributes:
        rule: ``rule(lowering, step, *arguments)`` writes the code; None where the op is not native.
        calls: True if the rule calls functions, so that an element costs as much as a function of the C library.
        moves: True if it only moves elements, which costs nothing: operands may be large.
        refusal: ``refusal(result, *arguments)``, by their examples, why there is no native code, None where there is.
            Where the rule itself refuses a case, code has been written in vain.
        meaning: the machine's name of the function that the op's kernel is of, if it is of one.
        limits: the largest operands of which the kernel is that function; none where it always is.
    """

    rule: Callable | None = None
    calls: bool = False
    moves: bool = False
    refusal: Callable | None = None
    meaning: str | None = None
    limits: tuple[float, ...] = ()


def known_of(name: str) -> Known:
    """What native code knows of an op: its own rule, or the one that follows from its facts or its kernel."""
    # By the kernel, not by the op's name: an op whose kernel is another one by now, as extensions may bring, is not
    # taken for the function that it was.
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
    """The rule of an op; None where it is not native."""
    return known_of(name).rule


def instruction(name: str) -> str | None:
    """The machine's name of an op that is one instruction for each element."""
    known = known_of(name)
    return None if known.limits else known.meaning


def _one_instruction(meaning: str, limits: tuple[float, ...]) -> Callable:
    if limits:
        return lambda lowering, step, *operands: lowering.within(limits, meaning, operands, step)
    return lambda lowering, step, *operands: lowering.elementwise(meaning, operands, step)


def _moved(lowering, step, x, *arguments):
    """NumPy moves the cells as it would move the elements."""
    return step.function(lowering.array(x), *lowering.constants(arguments))


_MOVED = Known(_moved, moves=True)


def moves(name: str) -> bool:
    """Return True if the native code of an op only moves elements."""
    known = _registry.rule_of("native", name)
    return facts_of(name).moves if known is None else known.moves


def calls_function(name: str) -> bool:
    """Return True if an element of an op's result costs a call of a function."""
    return known_of(name).calls


def rule(*ops: str, calls: bool = False, moves: bool = False, refusal: Callable | None = None):
    """Register the rule of ops; see :class:`Known`."""

    def register(function: Callable) -> Callable:
        _registry.rule("native", *ops)(Known(function, calls, moves, refusal))
        return function

    return register


def loop(name: str):
    """Register the rule of a loop or branch."""

    def register(function: Callable) -> Callable:
        LOOPS[name] = Known(function)
        return function

    return register


def refuse_unless(condition: bool, reason: str) -> None:
    """Raise NotNative with a reason unless a condition holds."""
    if not condition:
        raise NotNative(reason)
