"""Spherical Bessel functions of integer order (NIST's Digital Library of Mathematical Functions, 10.51)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, refused, ufunc
from .._tensors import floating

__all__ = ["spherical_in", "spherical_jn", "spherical_kn", "spherical_yn"]


def _spherical(name: str, title: str, below: int, above: int) -> Callable:
    """The derivative is ``(below * n * f(n - 1, z) + above * (n + 1) * f(n + 1, z)) / (2 * n + 1)``."""

    def op(n: Operand, z: Operand) -> Tensor:
        """A spherical Bessel function."""

    op.__name__ = op.__qualname__ = f"{name}_of"
    made = ufunc(lambda n, z: np.asarray(getattr(_scipy.special, name)(n.real.astype("int64"), z)))(op)

    def slope(n, z):
        lower = made(ops.where(n > 0, n - 1, 0 * n), z)
        return (below * n * lower + above * (n + 1) * made(n + 1, z)) / (2 * n + 1)

    derivative(made, n=refused(name, "n", "a whole number"), z=lambda g, n, z: g * slope(n, z))

    def function(n: Operand, z: Operand, derivative: bool = False) -> Tensor:
        (z,) = floating(z)
        if ops.is_tensor(n) and str(ops.dtype(n)) not in ("float32", "float64"):
            n = ops.cast(n, {"complex64": "float32", "complex128": "float64"}.get(ops.dtype(z), ops.dtype(z)))
        return slope(n, z) if derivative else made(n, z)

    signs = "-" * (below < 0), "+" if above > 0 else "-"
    formula = f"({signs[0]}n * {name}(n - 1, z) {signs[1]} (n + 1) * {name}(n + 1, z)) / (2 * n + 1)"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{title}, of whole order ``n``, also of complex arguments.

    Args:
        derivative: True for the derivative by ``z``.

    Returns:
        A tensor of the shape that ``n`` and ``z`` broadcast to.

    Gradient:
        By ``z`` ``{formula}``.
    """
    return composed(function)


spherical_jn = _spherical("spherical_jn", "Spherical Bessel function of the first kind", 1, -1)
spherical_yn = _spherical("spherical_yn", "Spherical Bessel function of the second kind", 1, -1)
spherical_in = _spherical("spherical_in", "Modified spherical Bessel function of the first kind", 1, 1)
spherical_kn = _spherical("spherical_kn", "Modified spherical Bessel function of the second kind", -1, -1)
