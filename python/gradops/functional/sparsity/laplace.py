"""The derivatives of a joint likelihood that Laplace's approximation needs, each as a compiled program.

All are functions of the parameters ``theta`` and the random effects ``u``, which are vectors. In formulas, ``f`` is the
likelihood, ``H`` the elements of its Hessian with respect to ``u``, and ``w`` weights of these elements:

- ``value_and_gradient``: ``f`` and its gradient with respect to ``u``;
- ``elements``: ``H``;
- ``mode_gradient``: the gradient of ``f + sum(w * H) / 2`` with respect to ``u``, given the gradient of ``f``; and an
  intermediate result for ``theta_gradient``, or None;
- ``theta_gradient``: the gradient of ``f + sum(w * H) / 2`` with respect to ``theta``, minus the derivative with
  respect to ``theta`` of the gradient of ``f`` with respect to ``u`` along a direction.

If ``H`` does not depend on ``u``, ``mode_gradient`` is not needed and ``theta_gradient`` gets no direction.
:class:`Shared` makes all programs from one trace; :class:`Programs` traces each separately and works for any function.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ops
from ...autodiff import gradients, pushforward, state
from ...autodiff.derivatives import fresh
from ...autodiff.modes import differentiated, ensured_recording
from ...autodiff.variable import data_of, is_active
from ...errors import JitError
from ...jit.array import Traced
from ...jit.compiled import Compiled
from ...jit.liveness import needed_rows
from ...jit.rolling import is_natural
from ..columns import by_columns
from ..matrices import hvp
from ..reverse import grad, value_and_grad
from . import patterns
from .hessian import SparseHessian
from .separable import AffineParts, SeparableHessian
from .strategy import hessian_plan


class Programs:
    """The derivatives, each from a trace of its own.

    Args:
        f: the joint likelihood.
        hessian: its Hessian with respect to the random effects.
        compiled: a function that compiles a function.

    Attributes:
        is_quadratic: True if the elements are known not to depend on ``u``.
    """

    is_quadratic = False

    def __init__(self, f: Callable, hessian: SparseHessian, compiled: Callable):
        def penalised(theta, u, weights):
            return f(theta, u) + ops.sum(weights * hessian.values(theta, u)) / 2

        self.hessian = hessian
        self.value_and_gradient = compiled(value_and_grad(f, 1))
        self.elements = hessian.values
        self._with_determinant = compiled(grad(penalised, (1, 0)))
        self._along = compiled(lambda theta, u, along: hvp(f, (theta, u), (ops.zeros_like(theta), along))[1][0])

    def compiled(self) -> list:
        """Return the functions that may be compiled."""
        return [self.value_and_gradient, self._with_determinant, self._along]

    def mode_gradient(self, theta, u, weights, left):
        return self._with_determinant(theta, u, weights)

    def theta_gradient(self, theta, u, weights, along, whole):
        return whole - self._along(theta, u, along)


MIN_CALLS_OF_GRADIENT, MIN_CALLS_OF_DERIVATIVES = 12, 40
"""The numbers of calls of the gradient, and of the other derivatives, before their programs are compiled.

Compilation takes the time that 7 to 18 calls save. A search calls the gradient some five times and a first value up to
ten times.
"""
FEW_PARAMETERS, MOST_OF_SEVERAL = 2, 6
"""With more estimated parameters, the other derivatives are compiled after at most so many calls.

A fit calls them 13 to 15 times for two parameters, which is what compilation takes, and 20 to 80 times for more.
"""


class Shared:
    """The derivatives from one trace of NumPy arrays; the likelihood runs once.

    The pattern of the Hessian is found as the dependence of the gradient on ``u``.

    Attributes:
        hessian: the Hessian with respect to the random effects.
        is_quadratic: True if its elements do not depend on ``u``.

    Raises:
        JitError: the likelihood branches on values, or it has a custom derivative, whose Hessian may be unsymmetric.
    """

    def __init__(self, f: Callable, theta: np.ndarray, u: np.ndarray):
        mine = weakref.proxy(self)  # a reference cycle would hold the trace until the garbage collector runs

        def compute_all(*arrays):  # closes over the likelihood, so that `Compiled` compares what the likelihood reads
            return mine._all(f, *arrays)

        self._like = theta, u
        most = MIN_CALLS_OF_DERIVATIVES if theta.size <= FEW_PARAMETERS else MOST_OF_SEVERAL
        self._turns = {"turns": MIN_CALLS_OF_DERIVATIVES, "most": most}
        self._programs: Any = Compiled(compute_all, (), split=True)
        self._nothing = np.zeros(u.shape)
        self.hessian: Any = None
        self._weights = np.zeros(0)
        self._programs.program(theta, u, self._nothing)
        self._weights = np.zeros(self.hessian.pattern.nnz)  # type: ignore[attr-defined]

    def compiled(self) -> list:
        return [self._programs]

    def value_and_gradient(self, theta, u):
        return self._programs.part(0, theta, u, self._nothing, late=[self._weights], turns=MIN_CALLS_OF_GRADIENT)

    def elements(self, theta, u):
        return self._programs.part(1, theta, u, self._nothing, late=[self._weights], **self._turns)

    def mode_gradient(self, theta, u, weights, left):
        u_gradient, *whole = self._programs.part(3, theta, u, self._nothing, late=[weights], **self._turns)
        return (u_gradient, *whole) if whole else (left + u_gradient, None)

    def theta_gradient(self, theta, u, weights, along, whole):
        along = self._nothing if along is None else along
        found = self._programs.part(2, theta, u, along, late=[weights], **self._turns)
        return found if whole is None else whole - found

    def _value(self, f, inputs: tuple):
        """Return the likelihood, vectorized if that takes far fewer operations."""
        left: list = []  # variables that the likelihood takes as constants
        with state.watching(left.append, state.readers), state.watching(left.append, state.leavers):
            value = differentiated(inputs, f, *inputs)
        found = None if left else by_columns(inputs, value)
        return value if found is None else found(*inputs)

    def _elements(self, f, parts: AffineParts, u_gradient, u):
        """Return the elements of the Hessian with respect to ``u``; the first call finds the pattern."""
        if isinstance(self.hessian, SeparableHessian):
            return self.hessian.elements(parts)
        if self.hessian is None:
            self.hessian = SparseHessian(f, self._like, 1, _dependence(data_of(u_gradient), data_of(u)))

        def product(v):
            (found,) = pushforward.push([u_gradient], [u], [v], True)
            return ops.zeros_like(u) if found is None else found

        return self.hessian.elements(product, (u,), True)

    def _takes_parts(self, parts: AffineParts) -> bool:
        """True if derivatives go through the ends of affine maps; the first call decides how to compute the Hessian."""
        if self.hessian is None:
            self.hessian = hessian_plan(parts=parts)
        return parts.are_taken or isinstance(self.hessian, SeparableHessian)

    def _all(self, f, theta, u, along):
        inputs = fresh(theta), fresh(u)
        with ensured_recording():
            with state.watching(_refuse_unnatural):
                value = self._value(f, inputs)
                parts = AffineParts(value, inputs[1], along)
                if uses_ends := self._takes_parts(parts):
                    u_gradient = parts.gradient()
                else:
                    (u_gradient,) = gradients.grad(value, inputs[1], create_graph=True, materialize_grads=True)
            elements = self._elements(f, parts, u_gradient, inputs[1])
            weights = u.program.input(np.zeros(self.hessian.pattern.nnz))
            half = ops.sum(weights * elements) / 2
            whole = value + half
        self.is_quadratic = not _needs(data_of(elements), u)
        found: list = [(value, u_gradient), elements]
        if self.is_quadratic:
            found += _gradients([(whole, None)], inputs[:1])
        elif uses_ends:  # little of the elements depends on u, and the rest goes through the maps once
            found += _gradients([(whole, None), *parts.falls_along()], inputs[:1])
            found.append(_gradients([(half, None)], inputs[1:]))
        else:
            found += _gradients([(u_gradient, along)], inputs[:1])
            found.append(_gradients([(whole, None)], inputs[::-1]))
        return tuple(tuple(map(data_of, x)) if isinstance(x, (tuple, list)) else data_of(x) for x in found)


def _needs(y, x: Any) -> bool:
    """True if an array is computed from another one, which is an argument."""
    if not isinstance(y, Traced):
        return False
    return x.place in needed_rows(x.program, [y.place]).operands()


def _refuse_unnatural(node) -> None:
    if not is_natural(node.rule):
        raise JitError("a likelihood with a custom derivative is not compiled from one trace.")


def _dependence(y, x: Any):
    """Return the pattern of the dependence of one array's elements on another's."""
    if not isinstance(y, Traced):
        return np.zeros((x.size, x.size), bool)
    return patterns.pattern(x.program, [y.place], [x.place])


def _gradients(pairs: list, xs) -> list:
    """Return the gradients of a sum: each variable times its constant; None is the constant of a scalar."""
    pairs = [(y, other) for y, other in pairs if is_active(y)]
    if not pairs:
        return [ops.zeros_like(data_of(x)) for x in xs]
    ys, others = zip(*pairs)
    return list(gradients.grad(ys, xs, others, retain_graph=True, materialize_grads=True))
