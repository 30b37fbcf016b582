"""The derivatives of a joint likelihood that its Laplace approximation takes, each a program of its own.

All are functions of the estimated parameters ``theta`` and the random effects ``u``, as vectors:

- ``value_and_gradient``: the value and its gradient by ``u``;
- ``elements``: those of the Hessian by ``u``;
- ``mode_gradient``, with weights of these and the first gradient: the gradient by ``u`` of the value plus half the
  elements' weighted sum, and what ``theta_gradient`` can use of it, or None;
- ``theta_gradient``, with the weights, a direction of ``u`` and the second result of ``mode_gradient``: the gradient of
  that sum by ``theta`` less the derivatives by ``theta`` of the gradient by ``u`` along the direction.

Where the elements do not depend on ``u`` nothing needs ``mode_gradient``, and ``theta_gradient`` has no direction.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ops
from ...autodiff import gradients, state
from ...autodiff.derivatives import fresh
from ...autodiff.modes import differentiated, ensured_recording
from ...autodiff.variable import data_of, is_active
from ...errors import JitError
from ...jit.array import Traced
from ...jit.compiled import Compiled
from ...jit.liveness import needed_rows
from .. import forward
from ..columns import by_columns
from ..matrices import hvp
from ..reverse import grad, value_and_grad
from . import patterns, traces
from .hessian import SparseHessian
from .separable import AffineParts, SeparableHessian
from .strategy import hessian_plan


class Programs:
    """Each of its own trace.

    Args:
        f: the joint likelihood.
        hessian: by the random effects, which is kept.
        compiled: makes a compiled function of one.

    Attributes:
        is_quadratic: whether the elements do not depend on ``u``, as far as is known.
    """

    is_quadratic = False

    def __init__(self, f: Callable, hessian: SparseHessian, compiled: Callable):
        def with_determinant(theta, u, weights):
            return f(theta, u) + ops.sum(weights * hessian.values(theta, u)) / 2

        self.hessian = hessian
        self.value_and_gradient = compiled(value_and_grad(f, 1))
        self.elements = hessian.values
        self._with_determinant = compiled(grad(with_determinant, (1, 0)))
        self._along = compiled(lambda theta, u, along: hvp(f, (theta, u), (ops.zeros_like(theta), along))[1][0])

    def mode_gradient(self, theta, u, weights, left):
        return self._with_determinant(theta, u, weights)

    def theta_gradient(self, theta, u, weights, along, whole):
        return whole - self._along(theta, u, along)


MIN_CALLS_OF_GRADIENT, MIN_CALLS_OF_DERIVATIVES = 12, 40
"""The calls of the gradient by ``u``, and of the other derivatives, before their programs are compiled.

Compilation takes as long as 15 to 80 calls save. A search calls the gradient some five times and a first value up to
ten times; a fit calls the other derivatives 15 to 40 times.
"""


class Shared:
    """All of one trace, of NumPy's arrays, in which the likelihood runs once.

    The pattern of the Hessian is what the gradient by ``u`` depends on.

    Attributes:
        hessian: by the random effects.
        is_quadratic: whether its elements do not depend on ``u``.

    Raises:
        JitError: the likelihood looks at values; or it has a derivative of the user's own, whose Hessian need not be
            symmetric.
    """

    def __init__(self, f: Callable, theta: np.ndarray, u: np.ndarray):
        mine = weakref.proxy(self)  # not a circle, in which the steps of the trace would wait for the search for them

        def all_of(*arrays):  # closes over the likelihood, whose own variables the compiled function then looks at
            return mine._all(f, *arrays)

        self._like = theta, u
        self._programs: Any = Compiled(all_of, (), split=True)
        self._nothing = np.zeros(u.shape)
        self.hessian: Any = None
        self._weights = np.zeros(0)
        self._programs.program(theta, u, self._nothing)
        self._weights = np.zeros(self.hessian.pattern.nnz)  # type: ignore[attr-defined]

    def value_and_gradient(self, theta, u):
        return self._programs.part(0, theta, u, self._nothing, late=[self._weights], turns=MIN_CALLS_OF_GRADIENT)

    def elements(self, theta, u):
        return self._programs.part(1, theta, u, self._nothing, late=[self._weights], turns=MIN_CALLS_OF_DERIVATIVES)

    def mode_gradient(self, theta, u, weights, left):
        by_u, *whole = self._programs.part(3, theta, u, self._nothing, late=[weights], turns=MIN_CALLS_OF_DERIVATIVES)
        return (by_u, *whole) if whole else (left + by_u, None)

    def theta_gradient(self, theta, u, weights, along, whole):
        along = self._nothing if along is None else along
        found = self._programs.part(2, theta, u, along, late=[weights], turns=MIN_CALLS_OF_DERIVATIVES)
        return found if whole is None else whole - found

    def _value(self, f, inputs: tuple):
        """The likelihood, by operations on columns where these are far fewer than its own."""
        left: list = []  # variables that the likelihood takes as constants
        with traces.watching(left.append, state.readers), traces.watching(left.append, state.leavers):
            value = differentiated(inputs, f, *inputs)
        found = None if left else by_columns(inputs, value)
        return value if found is None else found(*inputs)

    def _elements(self, f, parts: AffineParts, by_u, u):
        """The elements of the Hessian by ``u``, of which the pattern is then known."""
        if isinstance(self.hessian, SeparableHessian):
            return self.hessian.elements(parts)
        if self.hessian is None:
            self.hessian = SparseHessian(f, self._like, 1, _dependence(data_of(by_u), data_of(u)))

        def product(v):
            (found,) = forward.push([by_u], [u], [v], True)
            return ops.zeros_like(u) if found is None else found

        return self.hessian.elements(product, (u,), True)

    def _takes_parts(self, parts: AffineParts) -> bool:
        """Whether derivatives are taken by the ends of affine maps; what the Hessian is made of is then known."""
        if self.hessian is None:
            self.hessian = hessian_plan(parts=parts)
        return parts.are_taken or isinstance(self.hessian, SeparableHessian)

    def _all(self, f, theta, u, along):
        inputs = fresh(theta), fresh(u)
        with ensured_recording():
            with traces.watching(_refuse_unnatural):
                value = self._value(f, inputs)
                parts = AffineParts(value, inputs[1], along)
                if by_ends := self._takes_parts(parts):
                    by_u = parts.gradient()
                else:
                    (by_u,) = gradients.grad(value, inputs[1], create_graph=True, materialize_grads=True)
            elements = self._elements(f, parts, by_u, inputs[1])
            weights = u.program.input(np.zeros(self.hessian.pattern.nnz))
            half = ops.sum(weights * elements) / 2
            whole = value + half
        self.is_quadratic = not _needs(data_of(elements), u)
        found: list = [(value, by_u), elements]
        if self.is_quadratic:
            found += _gradients([(whole, None)], inputs[:1])
        elif by_ends:  # of the elements little depends on u, and the rest goes through the maps once
            found += _gradients([(whole, None), *parts.falls_along()], inputs[:1])
            found.append(_gradients([(half, None)], inputs[1:]))
        else:
            found += _gradients([(by_u, along)], inputs[:1])
            found.append(_gradients([(whole, None)], inputs[::-1]))
        return tuple(tuple(map(data_of, x)) if isinstance(x, (tuple, list)) else data_of(x) for x in found)


def _needs(y, x: Any) -> bool:
    """Whether an array is computed from another one, an argument."""
    if not isinstance(y, Traced):
        return False
    return x.place in needed_rows(x.program, [y.place]).operands()


def _refuse_unnatural(node) -> None:
    if not traces.is_natural(node.rule):
        raise JitError("a likelihood with a derivative of the user's own is not compiled at once.")


def _dependence(y, x: Any):
    """The pattern of the elements of an array that depend on those of another."""
    if not isinstance(y, Traced):
        return np.zeros((x.size, x.size), bool)
    return patterns.pattern(x.program, [y.place], [x.place])


def _gradients(pairs: list, xs) -> list:
    """The gradients of the sum of products of variables with constants, of one number with None."""
    pairs = [(y, other) for y, other in pairs if is_active(y)]
    if not pairs:
        return [ops.zeros_like(data_of(x)) for x in xs]
    ys, others = zip(*pairs)
    return list(gradients.grad(ys, xs, others, retain_graph=True, materialize_grads=True))
