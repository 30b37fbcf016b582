"""The registry of ops: the facts declared with each op, and the public names in ``gradops.ops``.

Forward mode, batching, sparsity, native code, pandas' labels and tests are derived from the facts.
``tests/python/test_facts.py`` checks for every op that the declared facts hold and that facts that hold are declared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)
R = TypeVar("R")


@dataclass(frozen=True)
class Facts:
    """The facts of an op.

    Attributes:
        elementwise: each element of the result depends only on the elements at the same position of the tensor
            arguments, which broadcast. Other arguments are settings, the same for all elements.
        moves: the elements of the result are elements of the first argument, at positions given by the other arguments.
        reduces: each element of the result combines the elements of the first argument along ``axis`` (or all).
        linear: the arguments that the op is jointly linear in, over the real numbers: both of ``add(x1, x2)``, the
            first of ``divide(x1, x2)``.
        multilinear: the arguments that the op is linear in separately, such as both of ``matmul(x1, x2)``.
        folds: of an op that reduces, the op of two numbers that combines the elements one after the other: ``add`` for
            ``sum``.
        steps: the derivative is 0 wherever it exists, so that a result may become a Python number without loss of
            gradients.
        exact: each element of the result is exact, or rounded once from the exact one.
        shape_only: the result depends on the shapes and dtypes of the tensors only.
        costly: computing a result takes longer than reading it again.
        view: of an op whose result may share memory with its first argument on NumPy, ``writable`` if a write to the
            result is one to the argument, or ``constant``.
        positions: which results are positions: ``all``, or an expression of their indices in the tuple of results.
        conditions: the arguments that are read as conditions: each number but 0 is true.
        whole: the arguments that hold whole numbers.
        domain: the smallest and largest real number with a value, for an elementwise op of one tensor; outside, it is
            NaN. None if these numbers are not an interval.

    Examples:
        A product by elements is linear in each of its arguments, so that forward mode is the product rule:

        >>> from gradops import extend, functional
        >>> @extend.op(elementwise=True, multilinear=("x1", "x2"))
        ... def times(x1, x2):
        ...     return x1 * x2
        >>> print(times.op.facts.multilinear, functional.jvp(times, (2.0, 3.0), (1.0, 1.0))[1])
        ('x1', 'x2') 5.0

    See Also:
        :func:`gradops.extend.op`, :func:`gradops.extend.check`.
    """

    elementwise: bool = False
    moves: bool = False
    reduces: bool = False
    linear: tuple[str, ...] = ()
    multilinear: tuple[str, ...] = ()
    folds: str = ""
    steps: bool = False
    exact: bool = False
    shape_only: bool = False
    costly: bool = False
    view: str = ""
    positions: str = ""
    conditions: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    domain: tuple[float, float] | None = (-math.inf, math.inf)


FACTS = tuple(field.name for field in fields(Facts))

registry: dict[str, Any] = {}
"""Ops by name. :mod:`._dispatch` makes them; the table is here so that modules it imports can look up ops."""

functions: dict[str, Any] = {}
"""Functions by the names that Keras's models save, which are no ops: :mod:`gradops.flow` adds its own."""

names = {"custom_gradient", "image", "nn", "stop_gradient"}
"""The public names: ops, added as they are made; the two functions of gradops.flow; and the namespaces. Other entries
of the registry are for the tape's rules."""
families: dict[str, list[tuple[ModuleType, str]]] = {}
"""Modules and names of the public ops, by their families' texts."""


def rule(kind: str, *ops: str) -> Callable[[R], R]:
    """Return a decorator that registers a function as the rule of this kind of ops, ``registry[op].rules[kind]``.

    The floor that uses a kind of rule registers them and says what they are called with. ``docs/rules.md`` lists them.
    """

    def register(function: R) -> R:
        for name in ops:
            registry[name].rules[kind] = function
        return function

    return register


def rule_of(kind: str, name: str) -> Any:
    """Return the rule of an op by name; None without one, also for steps that are no ops."""
    return registry[name].rules.get(kind) if name in registry else None


def public(function: F) -> F:
    """Make a function a public op without dispatch, as it takes functions or does not return a tensor."""
    publish(function, function.__name__)
    return function


def publish(function: Callable, name: str) -> None:
    """Add an op's name to the public ones and to the family that its module sets before the op."""
    names.add(name)
    module: Any = sys.modules.get(function.__module__)
    if module is not None:  # None for an op of code that `exec` runs
        text = getattr(module, "__family__", module.__doc__)
        families.setdefault(text, []).append((module, name.rpartition(".")[2]))
