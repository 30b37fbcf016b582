"""Solvers for traced programs, where SciPy cannot run because no value is known.

They take a fixed number of unrecorded steps and end with recorded Newton steps, which give the derivatives. Roots use
bisection, minima between two ends the golden section, systems and minima of several unknowns Newton's method, damped
where a step does not decrease the function (Levenberg 1944). Integrals use the double exponential rule (Takahasi and
Mori 1974).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import functional, ops
from ..autodiff.variable import Variable
from ..flow import stop_gradient_scope
from ..functional.implicit import dense_inverse, dense_jacobian, stepped
from ._quadrature_rules import double_exponential
from ._tensors import constant_like

BISECTION_STEPS, NEWTON_STEPS = 60, 25
"""Steps of every search: a program cannot end early. 60 halvings of an interval leave 2**-60 of it."""


def _held(x, like):
    """Return a tensor, or numbers, as a tensor of ``like``'s library and dtype without a gradient."""
    if isinstance(x, Variable) or (ops.is_tensor(x) and not isinstance(x, np.ndarray)):
        return ops.stop_gradient(ops.cast(x, ops.dtype(like)))
    return constant_like(x, like)


def _attached(residual: Callable, x):
    """Return ``x``, a root of ``residual``, with derivatives by all that ``residual`` depends on."""
    return stepped(residual, dense_inverse(dense_jacobian(residual, x)), x)


def _narrowed_midpoint(low, high, like, narrower: Callable):
    """Return the midpoint of an interval after narrowing it ``BISECTION_STEPS`` times."""
    with stop_gradient_scope():
        ends = [_held(low, like), _held(high, like)]
        low, high = ops.fori_loop(0, BISECTION_STEPS, lambda _, ends: list(narrower(*ends)), ends)
        return ops.stop_gradient((low + high) / 2)


def root_between(f: Callable, low, high, like):
    """Return a root between two ends where ``f`` has opposite signs; ``like`` sets the library and dtype."""
    with stop_gradient_scope():
        side = ops.sign(f(_held(low, like)))

    def half(low, high):
        middle = (low + high) / 2
        same = ops.equal(ops.sign(f(middle)), side)
        return ops.where(same, middle, low), ops.where(same, high, middle)

    return _attached(f, _narrowed_midpoint(low, high, like, half))


def least_between(f: Callable, low, high, like):
    """Return a minimum between two ends."""
    ratio = (math.sqrt(5) - 1) / 2

    def part(low, high):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        first = ops.less(f(left), f(right))
        return ops.where(first, low, left), ops.where(first, right, high)

    return _attached(functional.grad(f), _narrowed_midpoint(low, high, like, part))


def least(f: Callable, start, like):
    """Return a minimum near a vector."""
    slope = functional.grad(f)
    return _attached(slope, _damped_newton(f, lambda x: (functional.hessian(f, x), slope(x)), start, like))


def root_near(f: Callable, start, like):
    """Return a root of a system of equations near a vector."""

    def system(x):
        slopes, rest = functional.jacobian(f, x), f(x)
        turned = ops.transpose(slopes)
        return ops.matmul(turned, slopes), ops.tensordot(turned, rest, 1)

    return _attached(f, _damped_newton(lambda x: ops.sum(ops.square(f(x))), system, start, like))


def _damped_newton(f: Callable, system: Callable, start, like):
    """Return a vector after ``NEWTON_STEPS`` damped Newton steps; ``system`` gives the equations of a step."""
    with stop_gradient_scope():
        start = _held(start, like)
        unit = constant_like(np.eye(start.shape[0]), start)

        def step(_, state):
            here, damping = state
            slopes, rest = system(here)
            there = here - ops.squeeze(ops.solve(slopes + damping * unit, ops.expand_dims(rest, -1)), -1)
            better = ops.less_equal(f(there), f(here))
            less = ops.where(damping < 1e-6, 0.0, damping / 10)
            return [ops.where(better, there, here), ops.where(better, less, ops.maximum(10 * damping, 1e-3))]

        found, _ = ops.fori_loop(0, NEWTON_STEPS, step, [start, constant_like(0.0, start)])
    return ops.stop_gradient(found)


def integral(values: Callable, low, high, like):
    """Return the integral of ``values``, a function of a vector; ends that are numbers may be infinite."""
    low_end, high_end = (
        not ops.is_tensor(end) and not isinstance(end, Variable) and math.isinf(end) for end in (low, high)
    )
    if (low_end and low > 0) or (high_end and high < 0):
        return -integral(values, high, low, like)
    step = 1 / 128 if low_end or high_end else 1 / 64
    u, rest, weights = double_exponential(np.arange(-3.1, 3.1 + 1e-9, step), step)
    inside = (u > 1e-14) & (rest > 1e-14)
    u, rest, weights = u[inside], rest[inside], weights[inside]
    far, slope = constant_like(rest / u, like), weights / u**2
    if low_end and high_end:
        y, weights = values(far) + values(-far), slope
    elif high_end:
        y, weights = values(low + far), slope
    elif low_end:
        y, weights = values(high - far), slope
    else:
        y = (high - low) * values(low + (high - low) * constant_like(u, like))
    return ops.tensordot(constant_like(weights, y), y, 1)
