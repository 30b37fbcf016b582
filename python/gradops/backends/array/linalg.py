"""Kernels over the array API: linear algebra and Fourier transforms, for libraries with these extensions."""

from __future__ import annotations

import math

from ... import dtypes
from .. import _shared
from .base import public


def kernels(xp, base) -> dict:
    found = _algebra(xp, base) if hasattr(xp, "linalg") else {}
    return {**found, **(_transforms(xp, base) if "fft" in dir(xp) or hasattr(xp, "fft") else {})}


def _algebra(xp, base) -> dict:
    _la = xp.linalg
    _matrix = _shared.full_precision(base.floats, base.cast, base.dtype_name)
    _system = _shared.system_in_full_precision(base.floats, base.promoted, base.cast, base.dtype_name)

    def _adjoint(x):
        return xp.conj(xp.matrix_transpose(x))

    def _symmetric(x):
        """Make ``x`` exactly symmetric by averaging small asymmetries; raises for large ones."""
        difference = x - _adjoint(x)
        if math.prod(x.shape):
            allowed = _shared.ASYMMETRY * xp.max(xp.abs(x), axis=(-2, -1))
            if xp.any(xp.max(xp.abs(difference), axis=(-2, -1)) > allowed):
                raise ValueError(_shared.NOT_SYMMETRIC)
        return x - difference / 2

    def _finite(x):
        if not xp.all(xp.isfinite(x)):
            raise ValueError(_shared.NOT_FINITE)
        return x

    def _solved(function, message):
        """Call ``function`` and raise ValueError with ``message`` if it rejects its matrix."""

        def kernel(*arguments, **options):
            try:
                return function(*arguments, **options)
            except Exception as error:
                raise ValueError(message) from error

        return kernel

    _factor = _solved(_la.cholesky, _shared.NOT_POSITIVE_DEFINITE)
    _inverse, _solution = (_solved(f, _shared.SINGULAR) for f in (_la.inv, _la.solve))

    @_matrix
    def cholesky(x, upper=False):
        y = _factor(_symmetric(x))
        return _adjoint(y) if upper else y

    @_matrix
    def det(x):
        return _la.det(x)

    @_matrix
    def inv(x):
        return _inverse(x)

    @_matrix
    def slogdet(x):
        return tuple(_la.slogdet(x))

    @_system
    def solve(a, b):
        return _solution(a, b)

    @_system
    def solve_triangular(a, b, lower=False):
        return _solution(xp.tril(a) if lower else xp.triu(a), b)

    @_matrix
    def eig(x):
        return tuple(_la.eig(_finite(x)))

    @_matrix
    def eigh(x):
        return tuple(_la.eigh(_symmetric(_finite(x))))

    @_matrix
    def qr(x, mode="reduced"):
        return tuple(_la.qr(x, mode=mode))

    @_matrix
    def svd(x, full_matrices=True, compute_uv=True):
        wider = full_matrices and compute_uv and x.shape[-2] != x.shape[-1]
        u, y, vh = _la.svd(_finite(x), full_matrices=wider)
        return (u, y, vh) if compute_uv else y

    return {name: kernel for name, kernel in public(locals()).items() if name not in _NAMES or hasattr(_la, name)}


_NAMES = ("cholesky", "det", "slogdet", "inv", "eig", "eigh", "qr", "svd", "solve")


def _transforms(xp, base) -> dict:
    def _full(x):
        x = base.floats(x)
        return base.cast(x, "float32") if base.dtype_name(x) in ("float16", "bfloat16") else x

    def _complex(x):
        x = _full(x)
        return base.cast(x, dtypes.complex_of(base.dtype_name(x)))

    def view_as_complex(x):
        """Add ``1j`` times each infinite and missing imaginary part as a constant, as the product would be NaN."""
        a, b = _complex(x[..., 0]), _full(x[..., 1])
        known = _complex(xp.where(xp.isfinite(b), b, xp.zeros_like(b))) * 1j
        for value, place in ((math.inf, b == math.inf), (-math.inf, b == -math.inf), (math.nan, b != b)):
            known = xp.where(place, xp.full_like(known, complex(0, value)), known)
        return a + known

    def fft_complex(x, dimensions=1, inverse=False):
        return (xp.fft.ifftn if inverse else xp.fft.fftn)(_complex(x), axes=tuple(range(-dimensions, 0)))

    def rfft_complex(x, fft_length):
        return xp.fft.rfft(_full(x), n=fft_length)

    def irfft_complex(x, fft_length):
        return xp.fft.irfft(_complex(x), n=fft_length)

    return public(locals())
