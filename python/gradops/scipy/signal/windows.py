"""``scipy.signal.windows``: window functions.

Known parameters give SciPy's NumPy arrays; parameters that are tensors give tensors with derivatives.

Examples:
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy.signal import windows
    >>> print(windows.hann(5))
    [0.  0.5 1.  0.5 0. ]
    >>> print(gradops.grad(lambda beta: ops.sum(windows.kaiser(5, beta)))(8.0).round(6))
    -0.103557

See Also:
    :func:`gradops.ops.hanning`, ``gradops.scipy.signal``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import ops
from ...annotations import Integer, Tensor
from ...errors import ArgumentError
from ...ops.special import i0
from .._define import family
from .._names import namespace
from .._neighbours import vector
from .._tensors import constant, constant_like, inexact, wrong

CONSTANT = (
    "barthann bartlett blackman blackmanharris bohman boxcar chebwin cosine dpss flattop get_window hamming hann "
    "kaiser_bessel_derived lanczos nuttall parzen taylor triang tukey"
).split()
globals().update({name: constant(f"signal.windows.{name}") for name in CONSTANT})

__all__ = [
    *CONSTANT,
    "exponential",
    "gaussian",
    "general_cosine",
    "general_gaussian",
    "general_hamming",
    "kaiser",
]

window = family(returns="A vector of ``M`` elements.")


def _is_known(*values) -> bool:
    return not any(ops.is_tensor(v) and not isinstance(v, np.ndarray) for v in values)


def _made(M, sym, parameter, formula: Callable):
    """Return a window with a tensor as parameter: ``formula(n, M)``, of the positions and their number."""
    count = int(M)
    if count < 0:
        raise wrong("M", "not be negative", count)
    like = inexact(parameter)
    if count <= 1:
        return constant_like(np.ones(count), like) + 0 * ops.sum(like)
    size = count if sym else count + 1
    return formula(constant_like(np.arange(size, dtype=float), like), size)[:count]


def _scipy_window(name: str, *given, **named):
    return constant(f"signal.windows.{name}")(*given, **named)


@window
def gaussian(M: Integer, std: Tensor, sym: bool = True) -> Tensor:
    """Window ``exp(-n ** 2 / (2 std ** 2))``, where ``n`` counts from the middle.

    Gradient:
        By ``std``.
    """
    if _is_known(std):
        return _scipy_window("gaussian", M, std, sym)
    return _made(M, sym, std, lambda n, size: ops.exp(-(((n - (size - 1) / 2) / std) ** 2) / 2))


@window
def general_gaussian(M: Integer, p: Tensor, sig: Tensor, sym: bool = True) -> Tensor:
    """Window ``exp(-abs(n / sig) ** (2 p) / 2)``, where ``n`` counts from the middle.

    Gradient:
        By ``p`` and ``sig``.
    """
    if _is_known(p, sig):
        return _scipy_window("general_gaussian", M, p, sig, sym)

    def formula(n, size):
        at = ops.abs(n - (size - 1) / 2)
        middle = at == 0
        share = ops.where(middle, ops.ones_like(at), at) / sig
        return ops.where(middle, ops.ones_like(at), ops.exp(-(share ** (2 * p)) / 2))

    return _made(M, sym, sig if ops.is_tensor(sig) else p, formula)


@window
def general_cosine(M: Integer, a: Tensor, sym: bool = True) -> Tensor:
    """Window ``a[0] - a[1] cos(x) + a[2] cos(2 x) - ...``, where ``x`` goes from 0 to 2 pi.

    Gradient:
        By ``a``; the window is linear in it.
    """
    if _is_known(a) and not any(map(ops.is_tensor, a if isinstance(a, (list, tuple)) else ())):
        return _scipy_window("general_cosine", M, a, sym)
    a = vector("general_cosine", a if ops.is_tensor(a) else ops.convert_to_tensor(a), "a")
    return _made(M, sym, a, lambda n, size: _cosines(n, size, a))


def _cosines(n, size: int, a):
    turns = np.outer(np.linspace(-math.pi, math.pi, size), np.arange(int(a.shape[0])))
    return ops.matmul(constant_like(np.cos(turns), n), a)


@window
def general_hamming(M: Integer, alpha: Tensor, sym: bool = True) -> Tensor:
    """Window ``alpha - (1 - alpha) cos(x)``, where ``x`` goes from 0 to 2 pi.

    Gradient:
        By ``alpha``; the window is linear in it.
    """
    if _is_known(alpha):
        return _scipy_window("general_hamming", M, alpha, sym)
    return _made(M, sym, alpha, lambda n, size: _cosines(n, size, ops.stack([alpha, 1 - alpha], 0)))


@window
def exponential(M: Integer, center: Tensor | None = None, tau: Tensor = 1.0, sym: bool = True) -> Tensor:
    """Window ``exp(-abs(n - center) / tau)``.

    Args:
        center: the position of the maximum, by default the middle; only with ``sym=False``.

    Raises:
        ArgumentError: a ``center`` with ``sym=True``.

    Gradient:
        By ``tau`` and ``center``; by ``center`` it is 0 at the maximum.
    """
    if sym and center is not None:
        raise ArgumentError("`exponential`: `center` needs `sym=False`.", argument="center")
    if _is_known(center, tau):
        return _scipy_window("exponential", M, center, tau, sym)
    parameter = tau if ops.is_tensor(tau) else center
    return _made(
        M,
        sym,
        parameter,
        lambda n, size: ops.exp(-ops.abs(n - ((size - 1) / 2 if center is None else center)) / tau),
    )


@window
def kaiser(M: Integer, beta: Tensor, sym: bool = True) -> Tensor:
    """Window ``i0(beta sqrt(1 - x ** 2)) / i0(beta)``, where ``x`` goes from -1 to 1.

    Gradient:
        By ``beta``.
    """
    if _is_known(beta):
        return _scipy_window("kaiser", M, beta, sym)

    def formula(n, size):
        half = (size - 1) / 2
        inner = constant_like(np.sqrt(np.maximum(1 - ((np.arange(size) - half) / half) ** 2, 0)), n)
        return i0(beta * inner) / i0(beta)

    return _made(M, sym, beta, formula)


__dir__, __getattr__ = namespace(__name__, __all__)
