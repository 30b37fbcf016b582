"""SciPy's iterative solvers of sparse systems.

The gradient solves the adjoint system by one more run of the same solver.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Tensor
from ...errors import ArgumentError, ShapeError
from ...extend import derivative
from ...extend import op as make_op
from .. import _define, _tensors
from .._hosted import register_matrix_kernel
from .._tensors import promoted
from ._ops import _conj, _each, _outer
from ._pattern import Pattern
from ._reading import dense
from .matrices import as_sparse, issparse

__all__ = "bicg bicgstab cg cgs gcrotmk gmres lgmres minres qmr tfqmr".split()

_methods: dict[int, Method] = {}


class Method:
    """A solver with its settings; graphs refer to it by number, like a :class:`Pattern`.

    Attributes:
        info: SciPy's exit code of the last run.
    """

    def __init__(self, name: str, settings: tuple):
        self.name, self.settings = name, dict(settings)
        self.info = 0

    def __int__(self) -> int:
        _methods[id(self)] = self
        return id(self)

    def __call__(self, matrix, b: np.ndarray) -> np.ndarray:
        settings = dict(self.settings)
        tolerance = "rtol" if "rtol" in _parameters(self.name) else "tol"  # SciPy before 1.12
        if "rtol" in settings:
            settings[tolerance] = settings.pop("rtol")
        columns = [getattr(_scipy.sparse.linalg, self.name)(matrix, b[:, k], **settings) for k in range(b.shape[1])]
        self.info = max((info for _, info in columns), key=abs, default=0)
        return np.stack([x for x, _ in columns], 1) if columns else b


def _parameters(name: str):
    return _define.inspect.signature(getattr(_scipy.sparse.linalg, name)).parameters


@functools.lru_cache(64)
def method_of(name: str, settings: tuple) -> Method:
    return Method(name, settings)


def numbered(method) -> Method:
    """Return the method with a number, or a method itself."""
    return method if isinstance(method, Method) else _methods[int(method)]


@make_op(name="scipy.sparse.iterated")
def _iterated(values: Tensor, b: Tensor, pattern: Pattern, transposed: bool, method: Method) -> Tensor:
    """Solution for right-hand sides as columns by an iterative method."""


def _iterate_on_host(values, b, pattern, transposed, method):
    matrix = pattern.scipys(values[:, 0])
    return numbered(method)((matrix.T if transposed else matrix).tocsr(), b)


register_matrix_kernel(_iterated, _each(_iterate_on_host), like=1)


def _b_cotangent(g, values, pattern, transposed, method):
    return _iterated(_conj(values), g, pattern, not transposed, method)


def _values_cotangent(g, values, y, pattern, transposed, method):
    by_b = _b_cotangent(g, values, pattern, transposed, method)
    return -(_outer(_conj(y), _conj(by_b), pattern) if transposed else _outer(by_b, y, pattern))


derivative(_iterated, complex_aware=True, values=_values_cotangent, b=_b_cotangent)


def numbers_of(x, name: str) -> np.ndarray:
    return _tensors.numbers("sparse.linalg", name, ops.stop_gradient(x))


def _solver(name: str, what: str, more: str = "") -> Callable:
    own = [part for part in more.split() if part]

    def function(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, **settings):
        A = as_sparse(A, "A", dense=True)
        if A.shape[0] != A.shape[1]:
            raise ShapeError(f"`sparse.linalg.{name}`: `A` must be square; got {A.shape}.", argument="A")
        for key, value in {"x0": x0, "M": M, "callback": callback}.items():
            if value is not None:
                raise ArgumentError(
                    f"`sparse.linalg.{name}` takes no `{key}`: the derivative is found by another run.", argument=key
                )
        unknown = [key for key in settings if key not in own]
        if unknown:
            raise TypeError(f"got an unexpected keyword argument {unknown[0]!r}")
        given: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter, **settings}
        if name == "minres":
            del given["atol"]
        for key, value in given.items():
            if value is not None and not isinstance(value, (int, float, str, np.number)):
                given[key] = numbers_of(value, key).item()
        if issparse(b):
            b = as_sparse(b).toarray()
        b = dense(b, "b")
        if (
            len(getattr(b, "shape", ())) not in (1, 2)
            or b.shape[0] != A.shape[0]
            or len(b.shape) == 2
            and b.shape[1] != 1
        ):
            raise ShapeError(f"`sparse.linalg.{name}`: `b` must be a vector of {A.shape[0]} numbers.", argument="b")
        method = method_of(name, tuple(sorted((k, v) for k, v in given.items() if v is not None)))
        values, b = promoted(A.values, b, floating=True)
        method.info = 0
        x = _iterated(ops.expand_dims(values, 1), ops.reshape(b, (-1, 1)), A.pattern, False, method)
        return x[:, 0], method.info

    function.__name__ = function.__qualname__ = name
    signature = _define.inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name not in ("settings", "atol"[: 4 * (name == "minres")])]
    kept += [_define.inspect.Parameter(key, kept[-1].KEYWORD_ONLY, default=None) for key in own]
    function.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    function.__doc__ = f"""Solution of ``A @ x = b`` by SciPy's {what}.

    Args:
        A: a square sparse matrix, or a tensor.
        b: a vector.
        rtol, atol: tolerances; the solver stops when the norm of the residual is at most the larger of
            ``rtol * norm(b)`` and ``atol``.
        maxiter: the maximal number of steps.
        x0, M, callback: not supported.

    Returns:
        A vector, and SciPy's exit code: 0 on success, and in traced programs, where values are not known yet.

    Raises:
        ShapeError: a matrix that is not square; a ``b`` of the wrong size.
        ArgumentError: ``x0``, ``M`` or ``callback``.

    Gradient:
        As for :func:`spsolve`, by the same method on the transposed matrix; its accuracy is ``rtol``.
    """
    return _define.composed(function)


bicg = _solver("bicg", "biconjugate gradients")
bicgstab = _solver("bicgstab", "stabilised biconjugate gradients")
cg = _solver("cg", "conjugate gradients, for a symmetric positive definite matrix")
cgs = _solver("cgs", "squared conjugate gradients")
gcrotmk = _solver("gcrotmk", "flexible GCROT(m, k) method", "m k truncate")
gmres = _solver("gmres", "generalised minimal residuals", "restart")
lgmres = _solver("lgmres", "LGMRES method", "inner_m outer_k")
minres = _solver("minres", "minimal residuals, for a symmetric matrix", "shift")
qmr = _solver("qmr", "quasi-minimal residuals")
tfqmr = _solver("tfqmr", "transpose-free quasi-minimal residuals")
