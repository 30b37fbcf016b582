"""The rules of native code by op, and facts about ops known beforehand; :mod:`.rules` and its kin register here."""

from __future__ import annotations

from collections.abc import Callable

from .code import NotNative
from .instructions import FUNCTIONS, OF_SCIPY

RULES: dict[str, Callable] = {}
"""By the op's name: ``rule(lowering, step, *arguments)``."""

LIMITS: dict[str, Callable] = {}
"""By the op's name: ``limit(result, *arguments)``, by their examples, why there is no native code, None where there is.

Where a rule itself refuses a case, code has been written in vain.
"""

MOVES: set[str] = set()
"""Ops that only move elements, which costs nothing: their operands may be large."""


LOOPS = frozenset(("scan", "cond", "while_loop"))
"""Ops that call functions, whose operands may be large as a function reads a part; their rules are in :mod:`.loops`."""


_SAME_NAMES = """add subtract multiply divide maximum minimum negative floor ceil trunc sqrt logaddexp
equal not_equal less less_equal greater greater_equal isnan isinf isfinite
logical_and logical_or logical_xor logical_not"""
_OF_OTHER_NAMES = frozenset(("power", *OF_SCIPY)) - {"erf", "erfc", "erfinv", "i0", "i1"}
_OF_CORE = frozenset("gammaln psi erf erfc erfinv ndtr expit".split())  # which are no ops of `gradops.scipy`

ELEMENTWISE: dict[str, str] = {
    **{name: name for name in (*_SAME_NAMES.split(), *(name for name in FUNCTIONS if name not in _OF_OTHER_NAMES))},
    "abs": "absolute",
    "real_sign": "sign",
    "normal_cdf": "ndtr",
    **{f"scipy.special.{name}": name for name in OF_SCIPY if name not in _OF_CORE},
}
"""The machine's names of ops that are one instruction for each element."""


def rule(name: str):
    """Register the rule of an op."""

    def register(function: Callable) -> Callable:
        RULES[name] = function
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
