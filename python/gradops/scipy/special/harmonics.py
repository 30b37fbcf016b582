"""Legendre functions and spherical harmonics, differentiable by their arguments, not by degree and order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import _scipy, ops
from ...annotations import Integer, Operand, Tensor
from ...errors import ArgumentError, Given
from ...extend import derivative
from ...ops._checks import integer
from .._define import composed, promoting, ufunc
from .._formulas import choose
from .._tensors import as_complex, constant_like, floating, wrong
from .orthogonal import eval_gegenbauer, eval_legendre, refusals

__all__ = """
    assoc_legendre_p assoc_legendre_p_all legendre_p legendre_p_all lpmv sph_harm_y sph_harm_y_all sph_legendre_p
    sph_legendre_p_all
""".split()


@ufunc()
def lpmv(m: Operand, v: Operand, x: Operand) -> Tensor:
    """Associated Legendre function of integer order ``m`` and real degree ``v``, on [-1, 1].

    Gradient:
        By ``x`` ``(v * x * lpmv(m, v, x) - (v + m) * lpmv(m, v - 1, x)) / (x**2 - 1)``, NaN at -1 and 1; an error by
        ``m`` and ``v``.
    """


derivative(
    lpmv,
    **refusals("lpmv", "m", "v"),
    x=promoting(lambda g, m, v, x: g * ((v * x * lpmv(m, v, x) - (v + m) * lpmv(m, v - 1, x)) / (x * x - 1))),
)


@composed
def legendre_p(n: Operand, z: Operand, *, diff_n: Integer = 0) -> Tensor:
    """Legendre polynomial of degree ``n``, and its derivatives to order ``diff_n``.

    Returns:
        A tensor of the derivatives along a first dimension of ``diff_n + 1``, before those that ``n`` and ``z``
        broadcast to.

    Gradient:
        By ``z``; an error by ``n``.
    """
    n, z = floating(n, z)
    diff_n = integer("legendre_p", diff_n, "diff_n", 0)
    return ops.stack([eval_legendre(n, z), *(_legendre_derivative(n, z, k) for k in range(1, diff_n + 1))], 0)


def _legendre_derivative(n, z, k: int):
    """Return the derivative of order ``k``: ``(2 * k - 1)!!`` times a Gegenbauer polynomial."""
    factor = math.prod(range(1, 2 * k, 2))
    degree = n + 0 * ops.stop_gradient(z)
    return choose(
        degree < k,
        lambda of: 0 * of(degree, 0.0),
        lambda of: factor * eval_gegenbauer(of(degree, k) - k, k + 0.5, of(z, 0.5)),
    )


@composed
def legendre_p_all(n: Integer, z: Tensor, *, diff_n: Integer = 0) -> Tensor:
    """Legendre polynomials of all degrees to ``n``, and their derivatives to order ``diff_n``.

    Returns:
        A tensor of the shape ``(diff_n + 1, n + 1, *z.shape)``.

    Raises:
        ArgumentError: ``n`` or ``diff_n`` below 0.

    Gradient:
        By ``z``.
    """
    (z,) = floating(z)
    n = integer("legendre_p_all", n, "n", 0)
    return legendre_p(constant_like(_counts(n, len(z.shape)), z), z, diff_n=diff_n)


def _counts(n: int, rank: int, m: int | None = None) -> np.ndarray:
    """Return degrees 0 to ``n``, or orders 0 to ``m`` and ``-m`` to -1, along a first dimension."""
    counts = np.arange(n + 1.0) if m is None else np.concatenate([np.arange(m + 1.0), np.arange(-m, 0.0)])
    return counts.reshape(-1, *[1] * rank)


# Associated ones -----------------------------------------------------------------------------------------------------


def _whole(name: str, order: int = 0, **settings) -> Callable:
    """Return SciPy's function of integer degrees and orders, or its derivative of order ``order``."""

    def function(n, m, x):
        y = getattr(_scipy.special, name)(n.astype("int64"), m.astype("int64"), x, diff_n=order, **settings)
        return np.asarray(y)[order].astype(x.dtype)

    return function


def _associated(branch_cut: int, norm: bool) -> tuple[Callable, Callable, Callable]:
    """Return the function and its first and second derivatives by ``z``."""

    def made(order: int) -> Callable:
        def function(n: Operand, m: Operand, z: Operand) -> Tensor:
            """An associated Legendre function of integer degree and order, or its derivative."""

        function.__name__ = function.__qualname__ = f"assoc_legendre_p_{branch_cut}{'_norm' * norm}{order or ''}"
        return ufunc(_whole("assoc_legendre_p", order, branch_cut=branch_cut, norm=norm))(function)

    value, slope = made(0), made(1)

    def second(n, m, z):  # SciPy's has the wrong sign at -1
        rest = 1 - z * z
        return (2 * z * slope(n, m, z) - (n * (n + 1) - m * m / rest) * value(n, m, z)) / rest

    refused = refusals("assoc_legendre_p", "n", "m")
    derivative(value, **refused, z=lambda g, n, m, z: g * slope(n, m, z))
    derivative(slope, **refused, z=lambda g, n, m, z: g * second(n, m, z))
    return value, slope, second


def _not_below_0(x):
    return ops.maximum(x, 0 * x)


_ASSOCIATED = {(cut, norm): _associated(cut, norm) for cut in (2, 3) for norm in (False, True)}


@composed
def assoc_legendre_p(
    n: Operand, m: Operand, z: Operand, *, branch_cut: int = 2, norm: bool = False, diff_n: Integer = 0
) -> Tensor:
    """Associated Legendre function of integer degree and order, for real arguments.

    Args:
        branch_cut: 2 for arguments within [-1, 1], 3 for arguments outside.
        norm: True for an integral of 1 over the square.
        diff_n: the highest order of derivatives by ``z``: 0, 1 or 2.

    Returns:
        A tensor of the derivatives along a first dimension of ``diff_n + 1``, before those of the broadcast shape.

    Raises:
        ArgumentError: another ``branch_cut`` or ``diff_n``.

    Gradient:
        By ``z``; the second derivative is by Legendre's differential equation and NaN at -1 and 1. An error by ``n``
        and ``m``.
    """
    diff_n = _order("assoc_legendre_p", diff_n)
    if branch_cut not in (2, 3):
        raise ArgumentError(
            "`assoc_legendre_p`: `branch_cut` must be 2 or 3; got {branch_cut}.",
            argument="branch_cut",
            branch_cut=Given(repr(branch_cut)),
        )
    n, m, z = floating(n, m, z)
    derivatives = _ASSOCIATED[int(branch_cut), bool(norm)]
    return ops.stack([f(n, m, z) for f in derivatives[: diff_n + 1]], 0)


@composed
def assoc_legendre_p_all(
    n: Integer, m: Integer, z: Tensor, *, branch_cut: int = 2, norm: bool = False, diff_n: Integer = 0
) -> Tensor:
    """Associated Legendre functions of all degrees to ``n`` and orders from 0 to ``m`` and ``-m`` to -1.

    Returns:
        A tensor of the shape ``(diff_n + 1, n + 1, 2 * m + 1, *z.shape)``.

    Raises:
        ArgumentError: ``n`` or ``m`` below 0; else as of :func:`assoc_legendre_p`.

    Gradient:
        By ``z``.
    """
    (z,) = floating(z)
    degrees, orders = _all("assoc_legendre_p_all", n, m, z)
    return assoc_legendre_p(degrees, orders, z, branch_cut=branch_cut, norm=norm, diff_n=diff_n)


def _all(function: str, n: int, m: int, z) -> tuple:
    """Return all degrees and orders; their dimensions precede those of ``z``."""
    n = integer(function, n, "n", 0)
    m = integer(function, m, "m", 0)
    rank = len(z.shape)
    return constant_like(_counts(n, rank + 1), z), constant_like(_counts(n, rank, m), z)


def _order(function: str, diff_n) -> int:
    """Return the highest order of derivatives as an integer; SciPy computes at most two."""
    diff_n = integer(function, diff_n, "diff_n", 0)
    if diff_n > 2:
        raise wrong("diff_n", "be 0, 1 or 2", diff_n, hint="`gradops.grad` of the value", of=function)
    return diff_n


# Spherical harmonics -------------------------------------------------------------------------------------------------


@ufunc(_whole("sph_legendre_p"))
def _sph(n: Operand, m: Operand, theta: Operand) -> Tensor:
    """The part of a spherical harmonic that depends on the polar angle."""


def _sph_derivative(n, m, theta, k: int):
    """Return the derivative of order ``k`` from the neighbouring orders; this also holds at the poles."""
    if k == 0:
        return _sph(n, m, theta)
    up = ops.sqrt(_not_below_0((n - m) * (n + m + 1)))
    down = ops.sqrt(_not_below_0((n + m) * (n - m + 1)))
    slope = (up * _sph_derivative(n, m + 1, theta, k - 1) - down * _sph_derivative(n, m - 1, theta, k - 1)) / 2
    return ops.where(ops.sin(theta) < 0, -slope, slope)  # SciPy's slope has the absolute value of the sine


derivative(
    _sph,
    **refusals("sph_legendre_p", "n", "m"),
    theta=lambda g, n, m, theta: g * _sph_derivative(n, m, theta, 1),
)


@composed
def sph_legendre_p(n: Operand, m: Operand, theta: Operand, *, diff_n: Integer = 0) -> Tensor:
    """Spherical Legendre function of integer degree and order, and its derivatives to order ``diff_n``.

    Args:
        theta: the polar angle.

    Returns:
        A tensor of the derivatives along a first dimension of ``diff_n + 1``, before those of the broadcast shape.

    Raises:
        ArgumentError: ``diff_n`` below 0.

    Gradient:
        By ``theta``, of the orders above and below; an error by ``n`` and ``m``.
    """
    diff_n = integer("sph_legendre_p", diff_n, "diff_n", 0)
    n, m, theta = floating(n, m, theta)
    return ops.stack([_sph_derivative(n, m, theta, k) for k in range(diff_n + 1)], 0)


@composed
def sph_legendre_p_all(n: Integer, m: Integer, theta: Tensor, *, diff_n: Integer = 0) -> Tensor:
    """Spherical Legendre functions of all degrees to ``n`` and orders from 0 to ``m`` and ``-m`` to -1.

    Returns:
        A tensor of the shape ``(diff_n + 1, n + 1, 2 * m + 1, *theta.shape)``.

    Raises:
        ArgumentError: ``n``, ``m`` or ``diff_n`` below 0.

    Gradient:
        By ``theta``.
    """
    (theta,) = floating(theta)
    degrees, orders = _all("sph_legendre_p_all", n, m, theta)
    return sph_legendre_p(degrees, orders, theta, diff_n=diff_n)


@composed
def sph_harm_y(n: Operand, m: Operand, theta: Operand, phi: Operand, *, diff_n: Integer = 0) -> Tensor:
    """Spherical harmonic of integer degree and order, and its derivatives to order ``diff_n``.

    Args:
        theta: the polar angle.
        phi: the azimuth.
        diff_n: 0, 1 or 2.

    Returns:
        A complex tensor of the broadcast shape; if ``diff_n`` is not 0, a tuple of it, its gradient (last dimension 2,
        by ``theta`` and ``phi``) and, if ``diff_n`` is 2, its Hessian (last dimensions 2 and 2).

    Raises:
        ArgumentError: another ``diff_n``.

    Gradient:
        By ``theta`` as of :func:`sph_legendre_p`, by ``phi`` ``1j * m * sph_harm_y``; an error by ``n`` and ``m``.
    """
    diff_n = _order("sph_harm_y", diff_n)
    n, m, theta, phi = floating(n, m, theta, phi)
    cos, sin = ops.cos(m * phi), ops.sin(m * phi)
    # each derivative by the azimuth multiplies by 1j * m
    turns = (cos, sin), (-m * sin, m * cos), (-m * m * cos, -m * m * sin)
    by_polar = [_sph_derivative(n, m, theta, k) for k in range(diff_n + 1)]

    def by(order: int, turned: int):
        return as_complex(*[by_polar[order] * part for part in turns[turned]])

    value = by(0, 0)
    if diff_n == 0:
        return value
    gradient = ops.stack([by(1, 0), by(0, 1)], -1)
    if diff_n == 1:
        return value, gradient
    rows = [ops.stack([by(2, 0), by(1, 1)], -1), ops.stack([by(1, 1), by(0, 2)], -1)]
    return value, gradient, ops.stack(rows, -2)


@composed
def sph_harm_y_all(n: Integer, m: Integer, theta: Operand, phi: Operand, *, diff_n: Integer = 0) -> Tensor:
    """Spherical harmonics of all degrees to ``n`` and orders from 0 to ``m`` and ``-m`` to -1.

    Returns:
        A complex tensor of the shape ``(n + 1, 2 * m + 1)``, followed by what ``theta`` and ``phi`` broadcast to; else
        as of :func:`sph_harm_y`.

    Raises:
        ArgumentError: ``n`` or ``m`` below 0; another ``diff_n``.

    Gradient:
        By ``theta`` and ``phi``.
    """
    theta, phi = floating(theta, phi)
    degrees, orders = _all("sph_harm_y_all", n, m, theta + 0 * phi)
    return sph_harm_y(degrees, orders, theta, phi, diff_n=diff_n)
