"""R's solvers where what they are given has derivatives.

What R's own found on numbers, as a tensor that moves; in programs, where no value is known (an ``x`` of None), what is
found here. ``like`` is a tensor that the function depends on.
"""

from __future__ import annotations

import math

import numpy as np

from ...scipy import _compiled
from ...scipy._solving import Problem
from ...scipy.integrate.quadratures import recorded
from ...scipy.optimize import minima, roots


def root(f, x, lower, upper, like):
    """``uniroot()``."""
    problem = Problem("uniroot()", "f", f, 1.0, scalar=True, beside=(like,))
    if x is None:
        return _compiled.root_between(problem, lower, upper, like)
    return roots.moving(problem, x, lacking="the slope is 0 there")


def least_between(f, x, lower, upper, like, tol: float, maximum: bool):
    """``optimize()``."""
    target = (lambda x: -f(x)) if maximum else f
    problem = Problem("optimize()", "f", target, 1.0, scalar=True, beside=(like,))
    if x is None:
        return _compiled.least_between(problem, lower, upper, like)
    return minima.of_one_number(problem, x, minima.Bounds("optimize()", [(lower, upper)], 1), tol)


def least(f, x, start, lower, upper, like, sign: float, name: str):
    """``optim()``, ``nlm()``, ``nlminb()``: bounds go along the unknowns, again and again."""
    target = (lambda x: -f(x)) if sign < 0 else f
    problem = Problem(name, "fn", target, 1.0, scalar=True, beside=(like,))
    if x is None:
        return _compiled.least(problem, start, like)
    x = np.atleast_1d(np.asarray(x, float))
    pairs = [(_at(lower, i), _at(upper, i)) for i in range(x.size)]
    return minima.minimum(problem, x, minima.Bounds(name, pairs, x.size))


def _at(bound, i: int):
    count = math.prod(getattr(bound, "shape", ()))
    return bound[i % count] if getattr(bound, "shape", ()) else bound


def integral(f, value, lower, upper, like):
    """``integrate()``, of a function of several numbers at once."""
    problem = Problem("integrate()", "f", f, np.zeros(1), beside=(like,), vectors=True)
    if value is None:
        return _compiled.integral(problem, lower, upper, like)
    return recorded(problem, value, lower, upper)
