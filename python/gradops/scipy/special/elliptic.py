"""Elliptic integrals and functions, and the arithmetic-geometric mean.

Derivatives are integrals of the kind that the functions are, with other exponents: of Carlson's ::

    integral over t from 0 of t**m / ((t + x)**(i + 1/2) * (t + y)**(j + 1/2) * (t + z)**(k + 1/2) * (t + p)**l)

and of Legendre's, ``sin(t)**(2 * a) * (1 - m * sin(t)**2)**(-b - 1/2)`` over t from 0 to ``phi``. Both are sums of
positive terms, which lose no digits where closed forms do (NIST's Digital Library of Mathematical Functions, 19.16).
"""

from __future__ import annotations

import math

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, family, ufunc
from .._formulas import choose
from .._tensors import constant, floating
from ._orders import NODES

__all__ = """
    agm ellip_harm ellip_harm_2 ellip_normal ellipe ellipeinc ellipj ellipk ellipkinc ellipkm1 elliprc elliprd
    elliprf elliprg elliprj
""".split()

ELEMENTS_PER_CHUNK = 8192
"""The number of elements computed at once; with their nodes they take some MB."""

ellip_harm, ellip_harm_2 = constant("special.ellip_harm"), constant("special.ellip_harm_2")
ellip_normal = constant("special.ellip_normal")


def _evaluate_in_chunks(function, *xs):
    """Evaluate a function of nodes along a last axis in chunks of some MB; NaN for complex tensors."""
    dtype = np.result_type(*xs)
    xs = np.broadcast_arrays(*xs)
    if dtype.kind == "c":
        return np.full(xs[0].shape, np.nan, dtype)
    flat = [x.reshape(-1, 1).astype("float64") for x in xs]
    result = np.empty(len(flat[0]))
    with np.errstate(all="ignore"):
        for start in range(0, len(result), ELEMENTS_PER_CHUNK):
            result[start : start + ELEMENTS_PER_CHUNK] = function(
                *[x[start : start + ELEMENTS_PER_CHUNK] for x in flat]
            )
    return result.reshape(xs[0].shape).astype(dtype)


# Carlson's integrals -------------------------------------------------------------------------------------------------


def _carlson_sum(x, y, z, p, i, j, k, exponent, m):
    """Apply the trapezoidal rule in log(t), where all singularities are at a distance of pi from the real line."""
    places = np.stack([x, y, z, np.where(exponent > 0, p, x)])
    low = np.log(np.where(places > 0, places, np.inf).min(0)) - 90
    high = np.log(places.max(0)) + 90
    count = int(np.ceil((high - low).max() / 0.4)) if len(x) else 2
    s = low + (high - low) * (np.arange(count) / (count - 1))
    power = (m + 1) * s - exponent * np.where(exponent > 0, np.logaddexp(s, np.log(p)), 0.0)
    for place, half in ((x, i), (y, j), (z, k)):
        power = power - (half + 0.5) * np.logaddexp(s, np.log(place))
    total = np.exp(power).sum(-1) * ((high - low) / (count - 1))[:, 0]
    valid = (x >= 0) & (y >= 0) & (z >= 0) & ((p > 0) | (exponent == 0))
    infinite = ((x == 0) & (i > 0.2)) | ((y == 0) & (j > 0.2)) | ((z == 0) & (k > 0.2))
    infinite = infinite & (m == 0)
    return np.where(valid, np.where(infinite, np.inf, total[:, None]), np.nan)[:, 0]


@ufunc(
    lambda *xs: _evaluate_in_chunks(_carlson_sum, *xs),
    x=lambda g, x, y_, z, p, i, j, k, e, m: -g * (i + 0.5) * carlson(x, y_, z, p, i + 1, j, k, e, m),
    y_=lambda g, x, y_, z, p, i, j, k, e, m: -g * (j + 0.5) * carlson(x, y_, z, p, i, j + 1, k, e, m),
    z=lambda g, x, y_, z, p, i, j, k, e, m: -g * (k + 0.5) * carlson(x, y_, z, p, i, j, k + 1, e, m),
    p=lambda g, x, y_, z, p, i, j, k, e, m: -g * e * carlson(x, y_, z, p, i, j, k, e + 1, m),
)
def carlson(
    x: Operand, y_: Operand, z: Operand, p: Operand, i: Operand, j: Operand, k: Operand, e: Operand, m: Operand
) -> Tensor:
    """Return Carlson's integral with general exponents, for nonnegative arguments."""


def _integral(x, y, z, p=1.0, i=0, j=0, k=0, e=0, m=0):
    return carlson(x, y, z, p, float(i), float(j), float(k), float(e), float(m))


@ufunc(
    "special.elliprf",
    x=lambda g, x, y_, z: -g / 4 * _integral(x, y_, z, i=1),
    y_=lambda g, x, y_, z: -g / 4 * _integral(x, y_, z, j=1),
    z=lambda g, x, y_, z: -g / 4 * _integral(x, y_, z, k=1),
)
def _elliprf(x: Operand, y_: Operand, z: Operand) -> Tensor:
    """R_F."""


@ufunc(
    "special.elliprd",
    x=lambda g, x, y_, z: -0.75 * g * _integral(x, y_, z, i=1, k=1),
    y_=lambda g, x, y_, z: -0.75 * g * _integral(x, y_, z, j=1, k=1),
    z=lambda g, x, y_, z: -2.25 * g * _integral(x, y_, z, k=2),
)
def _elliprd(x: Operand, y_: Operand, z: Operand) -> Tensor:
    """R_D."""


@ufunc(
    "special.elliprg",
    x=lambda g, x, y_, z: g / 8 * _integral(x, y_, z, i=1, m=1),
    y_=lambda g, x, y_, z: g / 8 * _integral(x, y_, z, j=1, m=1),
    z=lambda g, x, y_, z: g / 8 * _integral(x, y_, z, k=1, m=1),
)
def _elliprg(x: Operand, y_: Operand, z: Operand) -> Tensor:
    """R_G."""


@ufunc(
    "special.elliprj",
    x=lambda g, x, y_, z, p: -0.75 * g * _integral(x, y_, z, p, i=1, e=1),
    y_=lambda g, x, y_, z, p: -0.75 * g * _integral(x, y_, z, p, j=1, e=1),
    z=lambda g, x, y_, z, p: -0.75 * g * _integral(x, y_, z, p, k=1, e=1),
    p=lambda g, x, y_, z, p: -1.5 * g * _integral(x, y_, z, p, e=2),
)
def _elliprj(x: Operand, y_: Operand, z: Operand, p: Operand) -> Tensor:
    """R_J."""


@ufunc(
    "special.elliprc",
    x=lambda g, x, y_: g * _rc_derivative(x, y_, True),
    y_=lambda g, x, y_: g * _rc_derivative(x, y_, False),
)
def _elliprc(x: Operand, y_: Operand) -> Tensor:
    """R_C."""


def _rc_derivative(x, y, by_x: bool):
    """Return the derivative: an integral, or for ``y`` below 0 (a principal value) from the differential equation."""

    def integral(of):
        first, second = of(x, 1.0), of(y, 1.0)
        if by_x:
            return -_integral(first, 1.0, 1.0, second, i=1, j=-0.5, k=-0.5, e=1) / 4
        return -_integral(first, 1.0, 1.0, second, j=-0.5, k=-0.5, e=2) / 2

    def equation(of):
        first, second = of(x, 1.0), of(y, -1.0)
        value = _elliprc(first, second)
        slope = (value - 1 / ops.sqrt(first)) / (2 * (second - first))
        return slope if by_x else (-value / 2 - (first * value - ops.sqrt(first)) / (2 * (second - first))) / second

    return choose(y + 0 * x > 0, integral, equation)


of_carlson = family(returns="A tensor of the broadcast shape.")


@of_carlson
def elliprc(x: Operand, y: Operand) -> Tensor:
    """Carlson's degenerate integral R_C; of ``y`` below 0 its principal value.

    Gradient:
        Integrals of the same kind; infinite by ``x`` at 0.
    """
    return _elliprc(*floating(x, y))


@of_carlson
def elliprd(x: Operand, y: Operand, z: Operand) -> Tensor:
    """Carlson's integral of the second kind R_D.

    Gradient:
        Integrals of the same kind, of real arguments; infinite where an argument is 0.
    """
    return _elliprd(*floating(x, y, z))


@of_carlson
def elliprf(x: Operand, y: Operand, z: Operand) -> Tensor:
    """Carlson's integral of the first kind R_F.

    Gradient:
        By ``x`` ``-elliprd(y, z, x) / 6``, of real arguments; infinite where an argument is 0.
    """
    return _elliprf(*floating(x, y, z))


@of_carlson
def elliprg(x: Operand, y: Operand, z: Operand) -> Tensor:
    """Carlson's integral of the second kind R_G, which is symmetric.

    Gradient:
        Integrals of the same kind, of real arguments.
    """
    return _elliprg(*floating(x, y, z))


@of_carlson
def elliprj(x: Operand, y: Operand, z: Operand, p: Operand) -> Tensor:
    """Carlson's integral of the third kind R_J.

    Gradient:
        Integrals of the same kind, of real arguments; NaN where ``p`` is below 0, and the integral a principal value.
    """
    return _elliprj(*floating(x, y, z, p))


# Legendre's integrals ------------------------------------------------------------------------------------------------


@ufunc(m=lambda g, m: g * _k_slope(1 - m))
def ellipk(m: Tensor) -> Tensor:
    """Complete elliptic integral of the first kind.

    Gradient:
        Half the integral of ``sin(t)**2 / (1 - m * sin(t)**2)**1.5`` from 0 to ``pi / 2``.
    """


@ufunc(p=lambda g, p: -g * _k_slope(p))
def ellipkm1(p: Tensor) -> Tensor:
    """``ellipk(1 - p)``, accurate for small ``p``.

    Gradient:
        That of :func:`ellipk`, with the other sign.
    """


@ufunc(m=lambda g, m: -g / 4 * _integral(0.0, 1 - m, 1.0, k=1))
def ellipe(m: Tensor) -> Tensor:
    """Complete elliptic integral of the second kind.

    Gradient:
        ``(ellipe(m) - ellipk(m)) / (2 * m)``, as an integral.
    """


def _k_slope(p):
    return _integral(0.0, p, 1.0, j=1) / 4


def _legendre_sum(phi, m, a, b):
    """Add the complete integral over full periods and the rest from 0, on double exponential nodes."""
    near, far, weight = NODES
    periods = np.round(phi / math.pi)
    rest = phi - periods * math.pi

    def to(end, is_half):
        size = np.abs(end)
        sine = np.sin(size * near)
        cosine = np.where(is_half, np.sin(size * far), np.cos(size * near))
        base = np.where(m > 0, (1 - m) + m * cosine**2, 1 - m * sine**2)
        return np.sign(end)[:, 0] * np.sum(sine ** (2 * a) * base ** (-b - 0.5) * weight, -1) * size[:, 0]

    whole = to(np.full_like(phi, math.pi / 2), True) if periods.any() else 0.0
    return np.where(periods[:, 0] == 0, 0.0, 2 * periods[:, 0] * whole) + to(rest, False)


@ufunc(
    lambda *xs: _evaluate_in_chunks(_legendre_sum, *xs),
    phi=lambda g, phi, m, a, b: g * _integrand(phi, m, a, b),
    m=lambda g, phi, m, a, b: g * (b + 0.5) * legendre(phi, m, a + 1, b + 1),
)
def legendre(phi: Operand, m: Operand, a: Operand, b: Operand) -> Tensor:
    """Return Legendre's integral with general exponents."""


def _integrand(phi, m, a, b):
    square = ops.square(ops.sin(phi))
    return square**a * (1 - m * square) ** (-b - 0.5)


@ufunc(
    phi=lambda g, phi, m: g / ops.sqrt(1 - m * ops.square(ops.sin(phi))),
    m=lambda g, phi, m: g / 2 * legendre(phi, m, 1.0, 1.0),
)
def ellipkinc(phi: Operand, m: Operand) -> Tensor:
    """Incomplete elliptic integral of the first kind, of amplitude ``phi``.

    Gradient:
        By ``phi`` ``(1 - m * sin(phi)**2)**-0.5``, by ``m`` an integral.
    """


@ufunc(
    phi=lambda g, phi, m: g * ops.sqrt(1 - m * ops.square(ops.sin(phi))),
    m=lambda g, phi, m: -g / 2 * legendre(phi, m, 1.0, 0.0),
)
def ellipeinc(phi: Operand, m: Operand) -> Tensor:
    """Incomplete elliptic integral of the second kind, of amplitude ``phi``.

    Gradient:
        By ``phi`` ``(1 - m * sin(phi)**2)**0.5``, by ``m`` an integral.
    """


# Jacobi's functions --------------------------------------------------------------------------------------------------


def _jacobi(i: int):
    def function(u: Operand, m: Operand) -> Tensor:
        """One of Jacobi's functions."""

    function.__name__ = function.__qualname__ = f"ellipj_{i}"
    return ufunc(lambda u, m: _scipy.special.ellipj(u, m)[i])(function)


_sn, _cn, _dn, _ph = (_jacobi(i) for i in range(4))


def _ph_by_m(u, m):
    """The derivative of the implicit function ``ellipkinc(ph, m) = u``."""
    return -_dn(u, m) * legendre(_ph(u, m), m, 1.0, 1.0) / 2


def _dn_by_m(u, m):
    sn, cn, dn = _sn(u, m), _cn(u, m), _dn(u, m)
    return -(sn * sn + 2 * m * sn * cn * _ph_by_m(u, m)) / (2 * dn)


derivative(_sn, u=lambda g, u, m: g * _cn(u, m) * _dn(u, m), m=lambda g, u, m: g * _cn(u, m) * _ph_by_m(u, m))
derivative(_cn, u=lambda g, u, m: -g * _sn(u, m) * _dn(u, m), m=lambda g, u, m: -g * _sn(u, m) * _ph_by_m(u, m))
derivative(_dn, u=lambda g, u, m: -g * m * _sn(u, m) * _cn(u, m), m=lambda g, u, m: g * _dn_by_m(u, m))
derivative(_ph, u=lambda g, u, m: g * _dn(u, m), m=lambda g, u, m: g * _ph_by_m(u, m))


@composed
def ellipj(u: Operand, m: Operand) -> tuple:
    """Jacobi's elliptic functions sn, cn and dn, and the amplitude.

    Returns:
        Four tensors of the shape that ``u`` and ``m`` broadcast to.

    Gradient:
        By ``u`` ``cn * dn``, ``-sn * dn``, ``-m * sn * cn`` and ``dn``; by ``m`` that of the implicit function
        ``ellipkinc(ph, m) = u``.
    """
    u, m = floating(u, m)
    return _sn(u, m), _cn(u, m), _dn(u, m), _ph(u, m)


@ufunc(
    a=lambda g, a, b, y: g * (y * y) / math.pi * ops.abs(a) * _integral(0.0, a * a, b * b, j=1),
    b=lambda g, a, b, y: g * (y * y) / math.pi * ops.abs(b) * _integral(0.0, a * a, b * b, k=1),
)
def agm(a: Operand, b: Operand) -> Tensor:
    """Arithmetic-geometric mean.

    Gradient:
        By ``a`` ``agm**2 * abs(a) / pi`` times an elliptic integral.
    """
