"""Derivatives of Bessel functions by their order, as moments of integrals along paths of steepest descent.

With the order ``v``, the argument ``z`` and F = sinh for J and Y, cosh for I, the functions are sums of ::

    integral of exp(z * F(t) - v * t) dt

between valleys (Watson 1944, A Treatise on the Theory of Bessel Functions, chapters 6 and 8). The derivative of order n
by ``v`` has the factor ``(-t)**n``. Along a path on which the exponent's imaginary part is constant the integrand does
not oscillate, so nothing cancels. Integrals use double exponential quadrature (Takahasi and Mori 1974). All functions
take NumPy arrays and run on the host.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ... import _scipy
from .._quadrature_rules import double_exponential

NODES = double_exponential(np.arange(-144, 145) / 40, 1 / 40)
MAX_KEPT_ELEMENTS = 1 << 17
ELEMENTS_PER_CHUNK = 64  # elements at a time, so that their nodes stay in the cache


def _less_sine(d):
    """``d - sin(d)``."""
    w = d * d
    series = d * w / 6 * (1 - w / 20 * (1 - w / 42 * (1 - w / 72 * (1 - w / 110 * (1 - w / 156)))))
    return np.where(np.abs(d) < 0.7, series, d - np.sin(d))


def _moment(t, slope, exponent, n, weight):
    """Return the integral of ``(-t)**n * exp(exponent)`` with ``dt = slope * weight``."""
    with np.errstate(under="ignore"):
        return np.sum((-t) ** n * np.exp(exponent) * slope * weight, -1)


def _real_axis_path(v, z, n):
    """Return the path from the saddle on the real axis to infinity + i pi, z <= v, and the log of the maximum."""
    near, far, weight = NODES
    theta, rest = math.pi * near, math.pi * far
    sine = np.sin(np.minimum(theta, rest))
    cosine = np.where(theta < rest, np.cos(theta), -np.cos(rest))
    q1 = ((v - z) * theta + z * _less_sine(theta)) / (z * sine)
    root = np.sqrt(q1 * (2 + q1))
    u = np.log1p(q1 + root)
    rise = (v - z) / z + 2 * np.sin(theta / 2) ** 2 - q1 * cosine
    slope = rise / (sine * root)
    w, alpha = np.sqrt((v - z) * (v + z)), np.log1p((v - z) / z + np.sqrt((v - z) * (v + z)) / z)
    exponent = z * root * cosine - v * u
    top = w - v * alpha
    return _moment(u + 1j * theta, slope + 1j, exponent - top, n, math.pi * weight), top, alpha


def _real_axis_integral(v, z, n, alpha):
    """The integral of ``(-t)**n * exp(z * sinh(t) - v * t)`` from minus infinity to the saddle ``alpha``, z <= v; and
    the logarithm of the integrand's maximum, at ``-alpha``."""
    near, far, weight = NODES
    w = np.sqrt((v - z) * (v + z))
    with np.errstate(divide="ignore"):
        length = np.minimum(np.cbrt(360 / v), np.minimum(np.arcsinh(120 / v) + 2.2, np.arccosh(1 + 60 / w)))
    r, back = length * near, 2 * alpha * near
    beyond = -w * 2 * np.sinh(r / 2) ** 2 - v * (np.sinh(r) - r)
    between = -w * (np.expm1(-back) + back) + z * z / (v + w) * (np.sinh(back) - back)
    total = _moment(-alpha - r, 1.0, beyond, n, length * weight)
    total = total + _moment(-alpha + back, 1.0, between, n, 2 * alpha * weight)
    return total, v * alpha - w


def _imaginary_axis_path(v, z, n):
    """The path over the saddle ``i * beta`` from minus infinity to infinity + i pi, z > v."""
    near, far, weight = NODES
    sine = np.sqrt((z - v) * (z + v)) / z
    cosine = v / z
    beta = np.arctan2(sine, cosine)
    total = 0.0
    for sign, size in ((-1, beta), (1, math.pi - beta)):
        d = sign * size * near
        theta, rest = (size * far, math.pi - size * far) if sign < 0 else (math.pi - size * far, size * far)
        s = np.sin(np.minimum(theta, rest))
        c = np.where(theta < rest, np.cos(theta), -np.cos(rest))
        q1 = (sine * 2 * np.sin(d / 2) ** 2 + cosine * _less_sine(d)) / s
        root = sign * np.sqrt(q1 * (2 + q1))
        u = sign * np.log1p(q1 + np.abs(root))
        rise = 2 * np.sin(beta + d / 2) * np.sin(d / 2) - q1 * c
        slope = rise / (s * root)
        exponent = z * root * c - v * u
        total = total + _moment(u + 1j * theta, slope + 1j, exponent, n, size * weight)
    phase = z * sine - v * beta
    return total * np.exp(1j * phase[:, 0]) / (1j * math.pi)


def _first_kinds(v, z, n):
    """Return derivatives of order ``n`` of J and Y, for v >= 0 and z > 0."""
    high = z[:, 0] <= v[:, 0]
    J, Y = np.empty(len(v)), np.empty(len(v))
    if high.any():
        order, argument = v[high], z[high]
        over, top, alpha = _real_axis_path(order, argument, n)
        along, size = _real_axis_integral(order, argument, n, alpha)
        low, large = np.exp(top[:, 0]), np.exp(size[:, 0])
        J[high] = over.imag * low / math.pi
        Y[high] = -(along * large + over.real * low) / math.pi
    if not high.all():
        H = _imaginary_axis_path(v[~high], z[~high], n)
        J[~high], Y[~high] = H.real, H.imag
    return J, Y


def _modified_first(v, z, n):
    """The derivative of order ``n`` of I, divided by ``exp(z)``; v >= 1, z > 0."""
    near, far, weight = NODES
    theta, rest = math.pi * near, math.pi * far
    sine = np.sin(np.minimum(theta, rest))
    cosine = np.where(theta < rest, np.cos(theta), -np.cos(rest))
    q = v / z * theta / sine
    u = np.arcsinh(q)

    turn = np.where(theta < 0.7, theta * 2 * np.sin(theta / 2) ** 2 - _less_sine(theta), sine - theta * cosine)
    slope = v / z * turn / (sine**2 * np.hypot(1, q))
    exponent = z * np.hypot(1, q) * cosine - v * u
    w = np.hypot(v, z)
    top = w - v * np.arcsinh(v / z)
    total = _moment(u + 1j * theta, slope + 1j, exponent - top, n, math.pi * weight).imag / math.pi
    below = v * v / (w + z)  # w - z
    return total * np.exp(below - v * np.arcsinh(v / z))[:, 0]


def _modified_second(v, z, n):
    """The derivative of order ``n`` of K, multiplied by ``exp(z)``; v >= 0, z > 0."""
    w = np.hypot(v, z)
    c = 45.0
    right = _arccosh_of_more(c / w)
    left = _arccosh_of_more(c * (w + v) / (z * z))
    with np.errstate(divide="ignore"):
        q = c / v
    left = np.minimum(left, np.where(v > 0.01, (q + np.sqrt(q * q + 8 * q)) / 2, np.inf))
    # The trapezoidal rule with steps of h has the relative error exp(w * (1 - cos(d)) - 2 * pi * d / h) for each
    # d < pi / 2: see Trefethen and Weideman (2014). These steps make it less than 1e-17.
    steps = math.ceil(np.max((left + right) / np.minimum(0.2, 0.65 / np.sqrt(w))))
    k = np.arange(steps + 1) / steps
    s = -left + (left + right) * k
    t = np.arcsinh(v / z) + s
    exponent = -z * z / (w + v) * 2 * np.sinh(s / 2) ** 2 - v * (np.expm1(s) - s)
    total = _moment(-t, 1.0, exponent, n, (left + right) / steps)
    below = v * v / (w + z)
    return total / 2 * np.exp(v * np.arcsinh(v / z) - below)[:, 0]


def _arccosh_of_more(x):
    """``arccosh(1 + x)``, precise for small ``x``."""
    return np.log1p(x + np.sqrt(x * (2 + x)))


def _turns(n: int, mu, start: float) -> list:
    """Return the derivatives of orders 0 to ``n`` of ``cos(pi * mu + start * pi / 2)`` by ``mu``."""
    whole = np.round(mu)
    rest = math.pi * (mu - whole)
    sign = 1 - 2 * np.mod(whole, 2)
    cosine, sine = sign * np.cos(rest), sign * np.sin(rest)
    kinds = [cosine, -sine, -cosine, sine]
    return [math.pi**k * kinds[(int(start) + k) % 4] for k in range(n + 1)]


def _product(first: list, second: list, n: int):
    """Return the derivative of order ``n`` of a product, from the derivatives of its factors."""
    return sum(math.comb(n, k) * first[k] * second[n - k] for k in range(n + 1))


def _J(v, z, n):
    mu = np.abs(v)
    found = [_first_kinds(mu, z, k) for k in range(n + 1)] if (v < 0).any() else [_first_kinds(mu, z, n)]
    y = found[-1][0]
    if (v < 0).any():
        cosine, minus_sine = _turns(n, mu[:, 0], 0), _turns(n, mu[:, 0], 1)
        J, Y = [f[0] for f in found], [f[1] for f in found]
        y = np.where(v[:, 0] < 0, (-1) ** n * (_product(cosine, J, n) + _product(minus_sine, Y, n)), y)
    return y


def _Y(v, z, n):
    mu = np.abs(v)
    found = [_first_kinds(mu, z, k) for k in range(n + 1)] if (v < 0).any() else [_first_kinds(mu, z, n)]
    y = found[-1][1]
    if (v < 0).any():
        cosine, sine = _turns(n, mu[:, 0], 0), _turns(n, mu[:, 0], 3)
        J, Y = [f[0] for f in found], [f[1] for f in found]
        y = np.where(v[:, 0] < 0, (-1) ** n * (_product(sine, J, n) + _product(cosine, Y, n)), y)
    return y


def _raised(v, z, n):
    """Return the value by the recurrence from the next two orders, for an order below 1."""
    low = v[:, 0] < 1
    y = np.empty(len(v))
    if not low.all():
        y[~low] = _modified_first(v[~low], z[~low], n)
    if low.any():
        v, z = v[low], z[low]
        first = z[:, 0]
        y[low] = (
            _modified_first(v + 2, z, n)
            + 2 * (v[:, 0] + 1) / first * _modified_first(v + 1, z, n)
            + (2 * n / first * _modified_first(v + 1, z, n - 1) if n else 0.0)
        )
    return y


def _I(v, z, n):
    mu = np.abs(v)
    y = _raised(mu, z, n)
    if n == 1:  # I(-v) is I(v) plus a multiple of K(v)
        y = np.where(v[:, 0] == 0, -(_scipy.special.k0e(z) * np.exp(-2 * z))[:, 0], y)
    below = v[:, 0] < 0
    if below.any():
        mu, z = mu[below], z[below]
        sine = _turns(n, mu[:, 0], 3)
        scale = np.exp(-2 * z[:, 0])
        K = [_modified_second(mu, z, k) * scale for k in range(n + 1)]
        y[below] = (-1) ** n * (y[below] + 2 / math.pi * _product(sine, K, n))
    return y


def _K(v, z, n):
    return np.where(v[:, 0] < 0, (-1.0) ** n, 1.0) * _modified_second(np.abs(v), z, n)


def _edges(kind: str, v, z):
    """Return derivatives at the arguments 0 and infinity; NaN for negative arguments."""
    at_0 = {"J": 0.0, "I": 0.0, "Y": -np.inf, "K": np.inf}[kind]
    limit = np.where(v > 0, at_0, np.where((v == 0) & (kind in "JI"), -np.inf, np.nan))
    return np.where(z == 0, limit, np.where(z == np.inf, np.inf if kind == "I" else 0.0, np.nan))


_OF_KIND = {"J": _J, "Y": _Y, "I": _I, "K": _K}


@functools.lru_cache(maxsize=4)
def _at(kind: str, n: int, scaled: bool, orders: bytes, places: bytes) -> np.ndarray:
    """The derivatives of flat float64 arrays, given as bytes.

    The last ones are kept, as an element takes 4 us: a program of a gradient and one of a Hessian at the same point
    need the same derivatives several times.
    """
    v, z = np.frombuffer(orders), np.frombuffer(places)
    inside = (z > 0) & (z < np.inf) & np.isfinite(v)
    result = _edges(kind, v, z)
    # Matrices of distances hold most numbers twice. The sorted pairs of a chunk need similar numbers of nodes.
    pairs, which = np.unique(v[inside] + 1j * z[inside], return_inverse=True)
    found = np.empty(len(pairs))
    with np.errstate(all="ignore"):
        for start in range(0, len(pairs), ELEMENTS_PER_CHUNK):
            part = slice(start, start + ELEMENTS_PER_CHUNK)
            order, place = pairs.real[part, None], pairs.imag[part, None]
            y = _OF_KIND[kind](order, place, n)
            if kind in "IK" and not scaled:
                y = y * np.exp(place[:, 0] if kind == "I" else -place[:, 0])
            found[part] = y
    result[inside] = found[which]
    return result


def derivative(kind: str, n: int, scaled: bool = False) -> Callable:
    """The derivative of order ``n`` by ``v`` of J, Y, I or K, ``scaled`` as SciPy's ``ive`` and ``kve``."""

    def function(v, z):
        dtype = np.result_type(v, z)
        if dtype.kind == "c":
            return np.full(np.broadcast_shapes(v.shape, z.shape), np.nan, dtype)
        v, z = np.broadcast_arrays(v, z)
        orders, places = v.ravel().astype("float64"), z.ravel().astype("float64")
        at = _at if orders.size <= MAX_KEPT_ELEMENTS else _at.__wrapped__
        result = at(kind, n, scaled, orders.tobytes(), places.tobytes())
        return result.reshape(v.shape).astype(dtype)  # a copy

    return function
