"""Exponentials and logarithms."""

from __future__ import annotations

import math

from ..annotations import Operand, Tensor
from ._checks import check_real
from ._compose import promoted
from ._dispatch import op
from .activations import softplus
from .elementwise import add, equal, greater_equal, isinf, logical_and, multiply, subtract
from .indexing import where


@op(check=check_real, elementwise=True)
def logaddexp(x1: Operand, x2: Operand) -> Tensor:
    """``log(exp(x1) + exp(x2))`` without overflow, elementwise.

    Gradient:
        ``sigmoid(x1 - x2)`` and ``sigmoid(x2 - x1)``, so half to each at ties, infinite ones too. Summed over
        broadcast dimensions.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> print(ops.logaddexp(1.0, 2.0).round(4))
        2.3133
        >>> print(*(g.round(4) for g in gradops.grad(ops.logaddexp, argnums=(0, 1))(1.0, 2.0)))
        0.2689 0.7311

    See Also:
        :func:`logaddexp2`, :func:`exp`, :func:`exp2`.
    """

    x1, x2 = promoted(x1, x2, floating=True)
    first = greater_equal(x1, x2)
    infinite = logical_and(equal(x1, x2), isinf(x1))  # their difference would be NaN
    high, low = where(first, x1, x2), where(first, x2, x1)
    high = where(infinite, add(multiply(x1, 0.5), multiply(x2, 0.5)), high)
    return add(high, softplus(where(infinite, 0.0, subtract(low, high))))


@op(check=check_real, elementwise=True)
def logaddexp2(x1: Operand, x2: Operand) -> Tensor:
    """``log2(2**x1 + 2**x2)`` without overflow, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        ``2**(x1 - y)`` and ``2**(x2 - y)``, summed over broadcast dimensions.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> print(ops.logaddexp2(1.0, 2.0).round(4))
        2.585
        >>> print(*(g.round(4) for g in gradops.grad(ops.logaddexp2, argnums=(0, 1))(1.0, 2.0)))
        0.3333 0.6667

    See Also:
        :func:`logaddexp`, :func:`exp`, :func:`exp2`.
    """
    x1, x2 = promoted(x1, x2, floating=True)
    return multiply(logaddexp(multiply(x1, math.log(2)), multiply(x2, math.log(2))), 1 / math.log(2))
