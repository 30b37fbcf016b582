"""Integrals of functions.

SciPy's adaptive rules find the value on numbers. If the integrand depends on tensors with a gradient, the integral is
recorded as a sum over the nodes of a Gauss-Kronrod rule on intervals that are halved until the error is below 1e-10.
The nodes are constants, so the derivatives are those under the integral sign. Derivatives by a limit come from an
integral between the limit held constant and the limit itself, whose value is 0.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _scipy, ops
from ...annotations import Function, Integer, Operand
from ...errors import ArgumentError, ArgumentTypeError, GradientError, JitError
from ...functional.symbolic_zeros import connected
from ...functional.transformations import vmap
from ...ops._checks import describe
from .. import _compiled
from .._quadrature_rules import GAUSS_KRONROD
from .._solving import Problem, numbers, solver
from .._tensors import constant_like, is_complex

__all__ = "dblquad fixed_quad nquad quad quad_vec tplquad".split()

MAX_INTERVALS, TOLERANCE, SINGLE = 400, 1e-10, 1e-5
"""The most intervals of an adaptive rule; the tolerances for double and for single precision."""
NODES, WEIGHTS, OTHER = GAUSS_KRONROD
PIECE = np.polynomial.legendre.leggauss(4)


def _places(low: float, high: float) -> tuple[float, float, Callable]:
    """Return a finite interval and a map from it to points and weights in ``[low, high]``, which may be infinite."""
    if np.isfinite(low) and np.isfinite(high):
        return low, high, lambda t: (t, 1.0)
    if np.isfinite(low):
        return 0.0, 1.0, lambda t: (low + (1 - t) / t, 1 / t**2)
    if np.isfinite(high):
        return 0.0, 1.0, lambda t: (high - (1 - t) / t, 1 / t**2)
    return -1.0, 1.0, lambda t: (t / (1 - t**2), (1 + t**2) / (1 - t**2) ** 2)


def _rule(values: Callable, low: float, high: float, breaks, name: str, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of an adaptive rule for a function, given its ``values`` at several points."""
    start, end, place = _places(low, high)
    inside = sorted(p for p in breaks if low < p < high) if np.isfinite(low) and np.isfinite(high) else []
    edges = [start, *inside, end]

    def part(a: float, b: float):
        x, w = place((a + b) / 2 + (b - a) / 2 * NODES)
        y = values(x)
        with np.errstate(invalid="ignore"):  # infinity times 0
            total, other = (np.tensordot(weights * w * (b - a) / 2, y, 1) for weights in (WEIGHTS, OTHER))
        return float(np.max(np.abs(total - other), initial=0)), total, a, b

    parts = [part(a, b) for a, b in zip(edges, edges[1:])]
    queue = [(-p[0], i) for i, p in enumerate(parts)]
    heapq.heapify(queue)
    whole, settled = sum(p[1] for p in parts), 0.0
    while queue and sum(p[0] for p in parts) - settled > tol * (1e-2 + np.max(np.abs(whole), initial=0)):
        if len(parts) >= MAX_INTERVALS or not np.all(np.isfinite(whole)):
            break
        _, worst = heapq.heappop(queue)
        error, value, a, b = parts[worst]
        middle = (a + b) / 2
        if not a < middle < b:
            break
        new = [part(a, middle), part(middle, b)]
        if not all(np.all(np.isfinite(p[1])) for p in new):  # too near to a singularity to halve: keep the interval
            settled += error
            continue
        whole = whole - value + new[0][1] + new[1][1]
        parts[worst] = new[0]
        parts.append(new[1])
        for i in (worst, len(parts) - 1):
            heapq.heappush(queue, (-parts[i][0], i))
    if not np.all(np.isfinite(whole)):
        raise GradientError(
            f"`{name}`: the integral has no derivative: the function is not finite inside the interval.",
            hint="if you need none, use `stop_gradient()` on what the function depends on",
        )
    left = sum(p[0] for p in parts)
    if left > 1e-3 * (1e-2 + np.max(np.abs(whole), initial=0)):
        raise GradientError(
            f"`{name}`: the integral has no derivative here: {len(parts)} parts leave an error of {left:.1g}.",
            hint="integrate over parts of the interval, or remove the oscillation",
        )
    middles, halves = np.array([(a + b, b - a) for _, _, a, b in parts]).T / 2
    x, w = place((middles[:, None] + halves[:, None] * NODES).ravel())
    return x, w * np.outer(halves, WEIGHTS).ravel()


def recorded(problem: Problem, value, low, high, breaks=()):
    """Return SciPy's ``value`` as a tensor with derivatives; unchanged if nothing has a gradient."""
    if getattr(problem.function, "_held", False):
        return problem.tensor(value)
    ends = [float(numbers(problem.name, end, which)) for end, which in ((low, "a"), (high, "b"))]
    moving = [connected(end) for end in (low, high)]
    sign = 1.0
    if ends[1] < ends[0]:
        ends, sign = ends[::-1], -1.0
    inner = ends[0] if np.isfinite(ends[0]) else min(0.0, ends[1] - 1) if np.isfinite(ends[1]) else 0.0
    outer = ends[1] if np.isfinite(ends[1]) else max(0.0, inner + 1)
    y = problem(problem.tensor(np.full((1,) * problem.vectors, 0.4 * inner + 0.6 * outer)))
    whole = connected(y)
    if not (whole or any(moving)):
        return problem.tensor(value) if problem.like is not None else value
    y = ops.convert_to_tensor(y)
    found = constant_like(np.asarray(value), y)
    if whole and ends[0] != ends[1]:
        tolerance = _tolerance(problem, TOLERANCE)
        x, w = _rule(_scalar_function(problem), ends[0], ends[1], breaks, problem.name, tolerance)
        total = _sum(problem, x, sign * w)
        found = found + (total - ops.stop_gradient(total))
    for end, moves, side in ((low, moving[0], -1.0), (high, moving[1], 1.0)):
        if moves:
            held = ops.stop_gradient(end)
            way = end - held
            piece = [held + way * (0.5 + 0.5 * t) for t in PIECE[0]]
            part = _sum(problem, piece, side * 0.5 * PIECE[1])
            found = found + (ops.cast(way, ops.dtype(part)) if is_complex(part) else way) * part
    return found


def _scalar_function(problem: Problem) -> Callable:
    """Return a function from several numbers to the values of the problem's function, as numbers."""
    return problem.value if problem.vectors else lambda x: np.array([problem.value(place) for place in x])


def _sum(problem: Problem, x, w):
    if problem.vectors:
        y = ops.convert_to_tensor(problem(ops.stack(x) if isinstance(x, list) else problem.tensor(x)))
    else:
        places = x if isinstance(x, list) else [problem.tensor(np.asarray(place)) for place in x]
        y = ops.stack([ops.convert_to_tensor(problem(place)) for place in places])
    return ops.tensordot(constant_like(w, y), y, 1)


def _tolerance(problem: Problem, wanted: float) -> float:
    """Return the tolerance, but not below what the dtype of the function's values can reach."""
    return wanted if problem.dtype in (None, "float64") else max(wanted, SINGLE)


def _limit(name: str, problem: Problem, end, which: str) -> float:
    value = numbers(name, end, which)
    if value.ndim or value.dtype.kind not in "fiub":
        raise ArgumentError(f"`{name}`: `{which}` must be a number; got shape {value.shape}.", argument=which)
    return float(value)


@solver
def quad(
    func: Function, a: Operand, b: Operand, args=(), full_output=0, epsabs=1.49e-08, epsrel=1.49e-08, limit=50,
    points=None, weight=None, wvar=None, wopts=None, maxp1=50, limlst=50, complex_func=False,
) -> Any:  # fmt: skip
    """Integral of a function of one number between two limits, which may be infinite.

    Args:
        func: takes a number and ``args`` and returns a number.
        points: break points of the function.
        weight, complex_func: not supported; write the weight into ``func``, and integrate the real and the imaginary
            part separately.

    Returns:
        A pair: the integral, a tensor of shape (), and SciPy's estimate of its error; more with ``full_output``.

    Raises:
        GradientError: a derivative is needed and the function is not finite inside the interval.
        ArgumentError: ``weight`` or ``complex_func`` is given.

    Gradient:
        By the tensors that ``func`` depends on, under the integral sign; by a limit the value of the function there
        (Leibniz's rule).
    """
    name = "scipy.integrate.quad"
    if weight is not None or complex_func:
        which = "complex_func" if complex_func else "weight"
        raise ArgumentError(f"`{name}` takes no `{which}`: write it into `func`.", argument=which)
    problem = Problem(name, "func", func, 1.0, args, scalar=True, beside=(a, b))
    low, high = (_limit(name, problem, end, which) for end, which in ((a, "a"), (b, "b")))
    breaks = None if points is None else numbers(name, points, "points")
    epsrel = _tolerance(problem, epsrel)
    try:
        value, *more = _scipy.integrate.quad(
            lambda x: float(problem.value(x)), low, high, (), full_output, epsabs, epsrel, limit, breaks
        )
    except JitError:
        if full_output or breaks is not None:
            raise
        return _compiled.integral(vmap(problem), a, b, problem.near(1.0)), math.nan
    return (recorded(problem, value, a, b, () if breaks is None else breaks), *more)


@solver
def quad_vec(
    f: Function, a: Operand, b: Operand, epsabs=1e-200, epsrel=1e-08, norm="2", cache_size=100e6, limit=10000,
    workers=1, points=None, quadrature=None, full_output=False, *, args=(),
) -> Any:  # fmt: skip
    """Integral of a tensor-valued function of one number between two limits, which may be infinite.

    Args:
        f: takes a number and ``args`` and returns a tensor of any shape, real or complex.
        workers: ignored.

    Returns:
        A pair: the integral, a tensor of the shape of ``f``'s values, and SciPy's estimate of its error; more with
        ``full_output``.

    Gradient:
        As for :func:`quad`.
    """
    name = "scipy.integrate.quad_vec"
    problem = Problem(name, "f", f, 1.0, args, beside=(a, b), complex_values=True)
    low, high = (_limit(name, problem, end, which) for end, which in ((a, "a"), (b, "b")))
    breaks = None if points is None else numbers(name, points, "points")
    epsrel = _tolerance(problem, epsrel)
    value, *more = _scipy.integrate.quad_vec(
        lambda x: np.asarray(problem.value(x) * 1.0), low, high, epsabs, epsrel, norm, cache_size, limit, 1, breaks,
        quadrature, full_output,
    )  # fmt: skip
    return (recorded(problem, value, a, b, () if breaks is None else breaks), *more)


@solver
def fixed_quad(func: Function, a: Operand, b: Operand, args=(), n: Integer = 5) -> tuple:
    """Integral of a function between finite limits, by the Gauss-Legendre rule with ``n`` points.

    Args:
        func: takes a vector of points and ``args`` and returns a tensor (..., n).

    Returns:
        A pair: the integral, a tensor (...), and None.

    Raises:
        ArgumentError: an infinite limit.

    Gradient:
        The derivative of the rule by the limits and the tensors that ``func`` depends on, also in compiled functions.
    """
    name = "scipy.integrate.fixed_quad"
    problem = Problem(name, "func", func, np.zeros(1), args, beside=(a, b))
    for end, which in ((a, "a"), (b, "b")):
        if isinstance(end, (int, float)) and not np.isfinite(end):
            raise ArgumentError(f"`{name}`: `{which}` must be finite.", argument=which)
    nodes, weights = (problem.tensor(v) for v in np.polynomial.legendre.leggauss(n))
    y = ops.convert_to_tensor(problem((b - a) * (nodes + 1) / 2 + a))
    return (b - a) / 2 * ops.sum(sites_like(weights, y) * y, axis=-1), None


def sites_like(x, y):
    return x if ops.is_tensor(x) and not isinstance(x, np.ndarray) else constant_like(x, y)


def _check_function(name: str, func) -> None:
    if not callable(func):
        raise ArgumentTypeError(
            f"`{name}`: `func` must be a function; got {{value}}.", argument="func", value=describe(func)
        )


def _nested(func: Callable, ranges, options, args: tuple, first: tuple = (), held: bool = False) -> tuple:
    """Return the integral over the last range of the integral over the others; ``first`` are the outer variables.

    Args:
        held: True to compute only the value, so that inner integrals are not recorded while SciPy searches.
    """
    *inner, last = ranges
    *more, own = options
    limits = last(*first, *args) if callable(last) else last
    settings = own(*first, *args) if callable(own) else own
    errors = []

    def at(x, *given, held=held):
        if not inner:
            return func(x, *first, *given)
        value, error, *_ = _nested(func, inner, more, given, (x, *first), held)
        errors.append(float(error))
        return value

    at._held, at._numeric = held, functools.partial(at, held=True)  # type: ignore[attr-defined]
    value, error, *_ = quad(at, *limits, args, **settings)
    return value, max([error, *errors])


@solver
def nquad(func: Function, ranges, args=None, opts=None, full_output=False) -> Any:
    """Integral of a function of several numbers.

    Args:
        func: takes the variables and ``args`` and returns a number.
        ranges: for each variable a pair of limits, or a function of the variables after it and ``args`` that returns
            one.
        opts: settings of :func:`quad`: a dict, or one for each variable.
        full_output: not supported.

    Returns:
        A pair: the integral, a tensor of shape (), and an estimate of its error.

    Raises:
        ArgumentError: ``full_output``; ``ranges`` without a pair for each variable.
        ArgumentTypeError: ``func`` is not a function.

    Gradient:
        As for :func:`quad`, also by the limits of inner integrals.
    """
    name = "scipy.integrate.nquad"
    if full_output:
        raise ArgumentError(f"`{name}` takes no `full_output`.", argument="full_output")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    ranges = list(ranges)
    if not ranges:
        raise ArgumentError(f"`{name}`: `ranges` must have a pair for each variable of `func`.", argument="ranges")
    _check_function(name, func)
    options = [opts or {}] * len(ranges) if not isinstance(opts, (list, tuple)) else list(opts)
    return _nested(func, ranges, options, args)


@solver
def dblquad(func: Function, a: Operand, b: Operand, gfun, hfun, args=(), epsabs=1.49e-08, epsrel=1.49e-08) -> tuple:
    """Integral of ``func(y, x)`` over ``x`` from ``a`` to ``b`` and ``y`` from ``gfun(x)`` to ``hfun(x)``.

    Args:
        gfun, hfun: numbers, or functions of ``x``.

    Returns:
        See :func:`nquad`.

    Gradient:
        As for :func:`nquad`.
    """
    args = args if isinstance(args, tuple) else (args,)
    _check_function("scipy.integrate.dblquad", func)
    options = [{"epsabs": epsabs, "epsrel": epsrel}] * 2
    return _nested(func, [lambda x, *_: (_limit_at(gfun, x), _limit_at(hfun, x)), (a, b)], options, args)


@solver
def tplquad(
    func: Function, a: Operand, b: Operand, gfun, hfun, qfun, rfun, args=(), epsabs=1.49e-08, epsrel=1.49e-08
) -> tuple:
    """Integral of ``func(z, y, x)`` over ``z`` from ``qfun(x, y)`` to ``rfun(x, y)``, ``y`` and ``x``.

    Args:
        gfun, hfun: the limits of ``y``: numbers, or functions of ``x``.
        qfun, rfun: the limits of ``z``: numbers, or functions of ``x`` and ``y``.

    Returns:
        See :func:`nquad`.

    Gradient:
        As for :func:`nquad`.
    """
    _check_function("scipy.integrate.tplquad", func)
    args = args if isinstance(args, tuple) else (args,)
    ranges = [
        lambda y, x, *_: (_limit_at(qfun, x, y), _limit_at(rfun, x, y)),
        lambda x, *_: (_limit_at(gfun, x), _limit_at(hfun, x)),
        (a, b),
    ]
    return _nested(func, ranges, [{"epsabs": epsabs, "epsrel": epsrel}] * 3, args)


def _limit_at(limit, *x):
    return limit(*x) if callable(limit) else limit
