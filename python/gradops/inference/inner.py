"""Functions with one argument minimised over, or integrated out by the Laplace approximation.

Derivatives by the other argument are exact to third order: the minimum is found on constants, and the Newton steps
from it are recorded. The second derivatives by the minimised argument are a sparse matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import ops
from ..errors import JitError
from ..functional import SparseHessian
from ..functional.implicit import held, loop, minimum
from ..functional.reverse import grad
from ..functional.symbolic_zeros import connected
from ..functional.transformations import linearize
from ..scipy._tensors import constant_like
from ..scipy.sparse import _ops as sparse_ops
from ..scipy.sparse import _pattern

MAX_STEPS, MAX_RIDGES = 200, 30
"""The most Newton steps of a search, and the most ridges tried to make its Hessian positive definite."""


class Inner:
    """A function of ``u`` and other arguments, minimised over ``u``.

    Args:
        f: a function of the vectors ``others`` and ``u`` to a scalar.
        others, u: where the sparsity pattern is found, which holds for all values; each search starts from ``u``.
    """

    def __init__(self, f: Callable, others, u):
        self._f, self._start = f, u
        try:  # captured values may be 0 now and nonzero later, so the pattern must not be read off them
            pattern = np.ones((ops.size(u),) * 2, bool) if connected(f(others, u)) else None
            self._hessian = SparseHessian(f, (others, u), 1, pattern)
        except JitError:  # the function branches on values
            self._hessian = SparseHessian(f, (others, u), 1, np.ones((ops.size(u),) * 2, bool))
        places = self._hessian.pattern.tocoo()
        self._pattern, _ = _pattern.coordinate_pattern(places.shape, places.row, places.col)
        self._diagonal = (self._pattern.diagonal[:, None] == np.arange(self._pattern.count)).any(0)[:, None] * 1.0

    def mode(self, others):
        """Return the ``u`` that minimises the function."""
        return minimum(lambda u, others: self._f(others, u), self._start, (others,), 1e-8, MAX_STEPS, self._inverse)

    def laplace(self, others, saddlepoint: bool = False):
        """Return minus the logarithm of the integral of ``exp(-f)`` over ``u``, by the Laplace approximation.

        With ``saddlepoint`` the function is a cumulant generating function minus its argument times the observation,
        and the result is minus the log density by the saddlepoint approximation (Butler 2007).
        """
        u = self.mode(others)

        def value(u):
            return ops.reshape(self._f(others, u), ())

        curvature = self._log_determinant(self._derivatives(grad(value), u)[1]) / 2
        volume = ops.size(u) * math.log(2 * math.pi) / 2
        return curvature - value(u) + volume if saddlepoint else curvature + value(u) - volume

    def _derivatives(self, slope: Callable, u) -> tuple:
        """Return the gradient, and the Hessian's elements as a column."""
        gradient, push = linearize(slope, u)
        return gradient, ops.expand_dims(self._hessian.elements(push, (u,)), 1)

    def _log_determinant(self, values):
        return ops.reshape(sparse_ops.log_determinant(values, ops.stop_gradient(values)[:1], self._pattern), ())

    def _inverse(self, slope: Callable, u) -> tuple:
        """Return the gradient, and a solver with the Hessian, with a ridge added where it is not positive definite."""
        gradient, values = held(lambda u: self._derivatives(slope, u))(u)
        scale = 1e-4 * ops.mean(ops.abs(values))

        diagonal = constant_like(self._diagonal, values)

        def raised(ridge):
            return values + ridge * diagonal

        def indefinite(ridge):
            return ops.isnan(self._log_determinant(raised(ridge)))

        (ridge,) = loop(indefinite, lambda r: (ops.where(r > 0, 4 * r, scale),), (0 * scale,), MAX_RIDGES)
        matrix = raised(ridge)
        return gradient, lambda r: sparse_ops.solution(matrix, ops.expand_dims(r, 1), self._pattern, False)[:, 0]
