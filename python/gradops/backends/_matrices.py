"""The shared part of the backends' matrix kernels: errors about unsuitable matrices, and precision."""

from __future__ import annotations

from functools import wraps

NOT_SYMMETRIC = "the matrix must be symmetric (Hermitian if complex)"
NOT_POSITIVE_DEFINITE = "the matrix must be positive definite"
SINGULAR = "the matrix is singular"
NOT_FINITE = "the matrix must have finite elements only"

ASYMMETRY = 1e-3
"""How far a matrix may be from symmetric, relative to its largest element: rounding and finite differences pass."""


def is_vector(a, b) -> bool:
    """True if the right side of a system is a vector, or one for each matrix."""
    return len(b.shape) == 1 or len(b.shape) == len(a.shape) - 1 and tuple(b.shape) == tuple(a.shape[:-1])


def in_full_precision(floats, cast, dtype_name):
    """A decorator by which kernels of one matrix run in float32 on half precision; integers become ``floatx``."""

    def decorate(function):
        @wraps(function)
        def kernel(x, *options):
            x = floats(x)
            name = dtype_name(x)
            if name not in ("float16", "bfloat16"):
                return function(x, *options)
            return _narrow(function(cast(x, "float32"), *options), name, cast, dtype_name)

        return kernel

    return decorate


def _narrow(result, name, cast, dtype_name):
    """Results in the half precision that an argument came in."""
    if isinstance(result, tuple):
        return tuple(_narrow(part, name, cast, dtype_name) for part in result)
    return cast(result, name) if dtype_name(result) == "float32" else result


def system_in_full_precision(floats, promoted, cast, dtype_name):
    """The same for kernels of a matrix and a right side, which are given columns only."""

    def decorate(function):
        @wraps(function)
        def kernel(a, b, *options):
            a, b = promoted(a, b)
            a, b = floats(a), floats(b)
            name = dtype_name(a)
            half = name in ("float16", "bfloat16")
            if half:
                a, b = cast(a, "float32"), cast(b, "float32")
            y = function(a, b[..., None], *options)[..., 0] if is_vector(a, b) else function(a, b, *options)
            return _narrow(y, name, cast, dtype_name) if half else y

        return kernel

    return decorate
