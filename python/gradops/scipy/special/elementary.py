"""Elementary functions: Huber losses, the Dirichlet kernel, powers."""

from __future__ import annotations

from ... import ops
from ...annotations import Operand, Tensor
from .._define import composed, refused, ufunc
from .._formulas import choose
from .._tensors import floating
from .orthogonal import eval_gegenbauer

__all__ = ["diric", "huber", "powm1", "pseudo_huber", "sinc"]

sinc = ops.sinc


@ufunc(
    "special.diric",
    x=lambda g, x, n: -g * (ops.sin(x / 2) / n * _slope(ops.cos(x / 2), n)),
    n=refused("diric", "n", "a whole number"),
)
def _diric(x: Operand, n: Operand) -> Tensor:
    """Dirichlet's kernel."""


def _slope(c, n):
    """The derivative of ``eval_chebyu(n - 1, c)``, halved."""
    n = n + 0 * ops.stop_gradient(c)
    return choose(n < 2, lambda of: 0 * of(c, 0.0), lambda of: eval_gegenbauer(of(n, 2.0) - 2, 2.0, of(c, 0.5)))


@composed
def diric(x: Operand, n: Operand) -> Tensor:
    """Periodic sinc function: ``sin(n * x / 2) / (n * sin(x / 2))`` for integer ``n``.

    Returns:
        A tensor of the shape that ``x`` and ``n`` broadcast to.

    Gradient:
        By ``x`` that of Chebyshev's polynomial of ``cos(x / 2)``, to all orders also where the quotient is 0 / 0.
    """
    return _diric(*floating(x, n))


@ufunc(
    delta=lambda g, delta, r: g * ops.maximum(ops.abs(r) - delta, 0 * (r + delta)),
    r=lambda g, delta, r: g * ops.maximum(ops.minimum(r, delta), -delta),
)
def huber(delta: Operand, r: Operand) -> Tensor:
    """Huber's loss: ``r**2 / 2`` within ``delta`` of 0, beyond it ``delta * (abs(r) - delta / 2)``.

    Gradient:
        By ``r`` ``r`` cut to ``delta`` on both sides, by ``delta`` ``max(abs(r) - delta, 0)``.
    """


@ufunc(
    delta=lambda g, delta, r: g * _delta_slope(delta, r),
    r=lambda g, delta, r: g * r / ops.sqrt(1 + ops.square(r / delta)),
)
def pseudo_huber(delta: Operand, r: Operand) -> Tensor:
    """Smooth loss: ``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``.

    Gradient:
        By ``r`` ``r / sqrt(1 + (r / delta)**2)``, by ``delta`` ``delta * (s - 1)**2 / s`` with that root ``s``.
    """


def _delta_slope(delta, r):
    u = ops.square(r / delta)
    s = ops.sqrt(1 + u)
    return delta * ops.square(u / (1 + s)) / s


@ufunc(
    "special.powm1",
    x=lambda g, x, p: g * p * x ** (p - 1),
    p=lambda g, x, p: g * choose(x > 0, lambda of: of(x, 1.0) ** p * ops.log(of(x, 1.0)), lambda of: 0 * of(x, 0.0)),
)
def powm1(x: Operand, p: Operand) -> Tensor:
    """``x**p - 1``, accurate where it is small.

    Gradient:
        By ``x`` ``p * x**(p - 1)``, by ``p`` ``x**p * log(x)``.
    """
