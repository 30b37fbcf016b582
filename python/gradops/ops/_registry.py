"""The registry of ops: an op's facts, declared where it is defined, and the names that users find in ``gradops.ops``.

Forward mode, batches, dependence, native code, labels of pandas and the tests are derived from the facts. The laws
that each fact stands for are checked for every op by ``tests/python/test_facts.py``, in both directions: declared
facts hold, and facts that hold are declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)


@dataclass(frozen=True)
class Facts:
    """The facts of an op.

    Attributes:
        elementwise: an element of the result depends on those at its place in the tensor arguments alone, which are
            broadcast to each other. Other arguments are settings, the same for all elements.
        moves: the elements of the result are elements of the first argument, at places that the other arguments give.
        reduces: each element of the result combines the elements of the first argument along ``axis`` (all without).
        linear: the arguments in which the op is linear over the real numbers, all of them together: of ``add(x1, x2)``
            both, of ``divide(x1, x2)`` the first.
        multilinear: the arguments in each of which alone it is linear, as in both of ``matmul(x1, x2)``.
        domain: of an elementwise op of one tensor the least and the largest real number for which it has a value;
            outside, it is NaN. None where that is no interval.

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
    domain: tuple[float, float] | None = (-math.inf, math.inf)


FACTS = tuple(field.name for field in fields(Facts))

registry: dict[str, Any] = {}
"""Ops by their names, which :mod:`._dispatch` makes; here, so that what it imports can look them up."""

names = {"custom_gradient", "image", "nn", "stop_gradient"}
"""Every op as it is made; the two of gradops.flow, which are ops to users, and the namespaces. Other entries of the
registry are for the rules of the tape."""


def public(function: F) -> F:
    """A function that is an op to users, though not to dispatch: it takes functions, or its result is not a tensor."""
    names.add(function.__name__)
    return function
