"""Airy and Kelvin functions, and integrals of Airy functions."""

from __future__ import annotations

from collections.abc import Callable

from ... import _scipy, ops
from ...annotations import Tensor
from ...errors import ArgumentTypeError, Given
from ...extend import derivative
from .._define import composed, ufunc
from .._formulas import choose
from .._tensors import as_complex, constant, inexact, is_complex
from . import _scipy_corrections as corrected

__all__ = """
    airy airye bei bei_zeros beip beip_zeros ber ber_zeros berp berp_zeros itairy kei kei_zeros keip keip_zeros
    kelvin kelvin_zeros ker ker_zeros kerp kerp_zeros
""".split()

ber_zeros, bei_zeros = constant("special.ber_zeros"), constant("special.bei_zeros")
ker_zeros, kei_zeros = constant("special.ker_zeros"), constant("special.kei_zeros")
berp_zeros, beip_zeros = constant("special.berp_zeros"), constant("special.beip_zeros")
kerp_zeros, keip_zeros = constant("special.kerp_zeros"), constant("special.keip_zeros")
kelvin_zeros = constant("special.kelvin_zeros")


def parts(name: str, count: int, rules: Callable) -> list[Callable]:
    """Return an op for each result of a SciPy function that has several results.

    Args:
        rules: a function of the ops to their derivative rules, functions of ``g`` and ``x``.
    """

    def part(i: int) -> Callable:
        def function(x: Tensor) -> Tensor:
            """One of several results."""

        function.__name__ = function.__qualname__ = f"{name}_{i}"
        return ufunc(lambda x: getattr(_scipy.special, name)(x)[i])(function)

    made = [part(i) for i in range(count)]
    for op, rule in zip(made, rules(*made)):
        derivative(op, x=rule)
    return made


_AIRY = parts(
    "airy",
    4,
    lambda ai, aip, bi, bip: (
        lambda g, x: g * aip(x),
        lambda g, x: g * (x * ai(x)),
        lambda g, x: g * bip(x),
        lambda g, x: g * (x * bi(x)),
    ),
)


def _root(x):
    """``sqrt(x)``, 0 below 0."""
    return choose(x > 0, lambda of: ops.sqrt(of(x, 1.0)), lambda of: 0 * of(x, 0.0))


_SCALED = parts(
    "airye",
    4,
    lambda ai, aip, bi, bip: (
        lambda g, x: g * (aip(x) + _root(x) * ai(x)),
        lambda g, x: g * (x * ai(x) + _root(x) * aip(x)),
        lambda g, x: g * (bip(x) - _root(x) * bi(x)),
        lambda g, x: g * (x * bi(x) - _root(x) * bip(x)),
    ),
)
_INTEGRALS = parts(
    "itairy",
    4,
    lambda *_: (
        lambda g, x: g * _AIRY[0](x),
        lambda g, x: g * _AIRY[2](x),
        lambda g, x: g * _AIRY[0](-x),
        lambda g, x: g * _AIRY[2](-x),
    ),
)


@composed
def airy(z: Tensor) -> tuple:
    """Airy functions ``Ai, Ai', Bi, Bi'``, also of complex arguments.

    Returns:
        Four tensors of ``z``'s shape.

    Gradient:
        ``Ai'`` and ``z * Ai``, ``Bi'`` and ``z * Bi``.
    """
    z = inexact(z)
    return tuple([op(z) for op in _AIRY])


@composed
def airye(z: Tensor) -> tuple:
    """Scaled Airy functions: Ai and Ai' multiplied by ``exp(2 / 3 * z**1.5)``, Bi and Bi' by its inverse.

    Returns:
        Four tensors of ``z``'s shape; Ai and Ai' are NaN below 0.

    Raises:
        ArgumentTypeError: a complex ``z``: the factor of Bi has no complex derivative.

    Gradient:
        From the gradients of :func:`airy` and of the factors.
    """
    z = inexact(z)
    real("airye", z)
    return tuple([op(z) for op in _SCALED])


def real(name: str, z, argument: str = "z") -> None:
    """Raise of a complex tensor."""
    if is_complex(z):
        raise ArgumentTypeError(
            f"`{name}`: `{argument}` must be real; got {{dtype}}.", argument=argument, dtype=Given(ops.dtype(z))
        )


@composed
def itairy(x: Tensor) -> tuple:
    """Integrals from 0 to ``x`` of ``Ai(t)``, ``Bi(t)``, ``Ai(-t)`` and ``Bi(-t)``.

    Returns:
        Four tensors of ``x``'s shape.

    Gradient:
        The integrands.
    """
    x = inexact(x)
    real("itairy", x, "x")
    return tuple([op(x) for op in _INTEGRALS])


# Kelvin functions ----------------------------------------------------------------------------------------------------


@ufunc(x=lambda g, x: g * berp(x))
def ber(x: Tensor) -> Tensor:
    """Kelvin function ber, the real part of ``jv(0, x * exp(3j * pi / 4))``.

    Gradient:
        ``berp(x)``.
    """


@ufunc(x=lambda g, x: g * beip(x))
def bei(x: Tensor) -> Tensor:
    """Kelvin function bei, the imaginary part of ``jv(0, x * exp(3j * pi / 4))``.

    Gradient:
        ``beip(x)``.
    """


def _k(order, z):
    return _scipy.special.kv(order, z)


@ufunc(corrected.kelvin_k("ker", lambda z: _k(0, z).real), x=lambda g, x: g * kerp(x))
def ker(x: Tensor) -> Tensor:
    """Kelvin function ker, the real part of ``kv(0, x * exp(1j * pi / 4))``.

    Gradient:
        ``kerp(x)``.
    """


@ufunc(corrected.kelvin_k("kei", lambda z: _k(0, z).imag), x=lambda g, x: g * keip(x))
def kei(x: Tensor) -> Tensor:
    """Kelvin function kei, the imaginary part of ``kv(0, x * exp(1j * pi / 4))``.

    Gradient:
        ``keip(x)``.
    """


@ufunc(x=lambda g, x: g * _limit_at_0(x, 0.0, lambda x: -bei(x) - berp(x) / x))
def berp(x: Tensor) -> Tensor:
    """Derivative of :func:`ber`.

    Gradient:
        ``-bei(x) - berp(x) / x``, by Bessel's equation.
    """


@ufunc(x=lambda g, x: g * _limit_at_0(x, 0.5, lambda x: ber(x) - beip(x) / x))
def beip(x: Tensor) -> Tensor:
    """Derivative of :func:`bei`.

    Gradient:
        ``ber(x) - beip(x) / x``.
    """


@ufunc(
    corrected.kelvin_k("kerp", lambda z: -(corrected.TURN * _k(1, z)).real), x=lambda g, x: g * (-kei(x) - kerp(x) / x)
)
def kerp(x: Tensor) -> Tensor:
    """Derivative of :func:`ker`.

    Gradient:
        ``-kei(x) - kerp(x) / x``.
    """


@ufunc(
    corrected.kelvin_k("keip", lambda z: -(corrected.TURN * _k(1, z)).imag), x=lambda g, x: g * (ker(x) - keip(x) / x)
)
def keip(x: Tensor) -> Tensor:
    """Derivative of :func:`kei`.

    Gradient:
        ``ker(x) - keip(x) / x``.
    """


def _limit_at_0(x, limit, other: Callable):
    """Return ``other``, which divides by ``x``, with its limit at 0."""
    return choose(x == 0, lambda of: 0 * of(x, 0.0) + limit, lambda of: other(of(x, 1.0)))


@composed
def kelvin(x: Tensor) -> tuple:
    """Kelvin functions as complex numbers: ``ber + 1j * bei``, ``ker + 1j * kei``, and their derivatives.

    Returns:
        Four complex tensors of ``x``'s shape.

    Gradient:
        The derivatives, and second derivatives from Bessel's equation.
    """
    x = inexact(x)
    pairs = ((ber, bei), (ker, kei), (berp, beip), (kerp, keip))
    return tuple([as_complex(re(x), im(x)) for re, im in pairs])
