"""Roots and fixed points of functions of one or several numbers.

SciPy finds them on numbers; they are differentiated by the implicit function theorem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _scipy, functional, ops
from ...annotations import Function, Tensor
from ...errors import ArgumentError, JitError
from ...functional.symbolic_zeros import connected
from .. import _compiled
from .._define import family
from .._solving import Problem, numbers, solution, solver

__all__ = "bisect brenth brentq fixed_point fsolve newton ridder root root_scalar toms748".split()

EPS = 4 * np.finfo(float).eps
NO_SLOPE = "the Jacobian is singular there"


def moving(problem: Problem, x, minus: bool = False, lacking: str = NO_SLOPE):
    """Return the root near SciPy's ``x`` with derivatives, or with ``minus`` the fixed point."""
    at = problem.tensor(np.asarray(x, float) if np.ndim(x) or problem.like is not None else x)

    def residual(z):
        y = problem(z)
        return ops.reshape(y - z if minus else y, np.shape(x))

    return solution(problem.name, residual, at, lacking) if connected(problem(at)) else at


IN_PROGRAM = "Found in a compiled program, without SciPy."


def traced_result(problem: Problem, x) -> Any:
    """Return SciPy's result object for a solution found inside a traced program."""
    return _scipy.optimize.OptimizeResult(x=x, fun=problem(x), message=IN_PROGRAM)


bracketed = family(
    {
        "f": "a function of a number and ``args``, with opposite signs at ``a`` and ``b``.",
        "full_output": "True to also return SciPy's ``RootResults``.",
    },
    returns="A number or tensor of shape (); with ``full_output`` a pair.",
    raises="ArgumentError: equal signs at both ends.\nGradientError: no convergence.",
    gradient="By the tensors that ``f`` depends on, by the implicit function theorem; none by the ends.",
    within=solver,
)


def _bracketed(name: str, f, a, b, args, xtol, rtol, maxiter, full_output, disp, **options):
    name = f"scipy.optimize.{name}"
    problem = Problem(name, "f", f, 1.0, args, scalar=True, beside=(a, b))
    function = getattr(_scipy.optimize, name.rpartition(".")[2])
    try:
        low, high = (float(numbers(name, end, which)) for end, which in ((a, "a"), (b, "b")))
        x, result = function(
            lambda x: float(problem.value(x)), low, high, (), **options, xtol=xtol, rtol=rtol, maxiter=maxiter,
            full_output=True, disp=disp,
        )  # fmt: skip
    except JitError:
        if full_output:
            raise
        return _compiled.root_between(problem, a, b, problem.near(1.0))
    found = moving(problem, x)
    if not full_output:
        return found
    result.root = found
    return found, result


@bracketed
def brentq(
    f: Function, a: Tensor, b: Tensor, args=(), xtol=2e-12, rtol=EPS, maxiter=100, full_output=False, disp=True
) -> Any:
    """Root of ``f`` between ``a`` and ``b``, by Brent's method."""
    return _bracketed("brentq", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@bracketed
def brenth(
    f: Function, a: Tensor, b: Tensor, args=(), xtol=2e-12, rtol=EPS, maxiter=100, full_output=False, disp=True
) -> Any:
    """Root of ``f`` between ``a`` and ``b``, by Brent's method with hyperbolic extrapolation."""
    return _bracketed("brenth", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@bracketed
def bisect(
    f: Function, a: Tensor, b: Tensor, args=(), xtol=2e-12, rtol=EPS, maxiter=100, full_output=False, disp=True
) -> Any:
    """Root of ``f`` between ``a`` and ``b``, by bisection."""
    return _bracketed("bisect", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@bracketed
def ridder(
    f: Function, a: Tensor, b: Tensor, args=(), xtol=2e-12, rtol=EPS, maxiter=100, full_output=False, disp=True
) -> Any:
    """Root of ``f`` between ``a`` and ``b``, by Ridder's method."""
    return _bracketed("ridder", f, a, b, args, xtol, rtol, maxiter, full_output, disp)


@bracketed
def toms748(
    f: Function, a: Tensor, b: Tensor, args=(), k=1, xtol=2e-12, rtol=EPS, maxiter=100, full_output=False, disp=True
) -> Any:
    """Root of ``f`` between ``a`` and ``b``, by the method of Alefeld, Potra and Shi (algorithm 748)."""
    return _bracketed("toms748", f, a, b, args, xtol, rtol, maxiter, full_output, disp, k=k)


@solver
def newton(
    func: Function, x0: Tensor, fprime=None, args=(), tol=1.48e-08, maxiter=50, fprime2=None, x1=None, rtol=0.0,
    full_output=False, disp=True,
) -> Any:  # fmt: skip
    """Root of ``func`` near ``x0``, by Newton's method; elementwise if ``x0`` is an array.

    Args:
        fprime, fprime2: accepted and ignored, since derivatives are exact.
        x1: ignored; the secant method is for functions without a derivative.

    Returns:
        A tensor of ``x0``'s shape; with ``full_output`` also SciPy's results.

    Raises:
        GradientError: no convergence.

    Gradient:
        By the tensors that ``func`` depends on, by the implicit function theorem; none by ``x0``.
    """
    problem = Problem("scipy.optimize.newton", "func", func, x0, args)
    start = problem.start(x0)

    def value(x):
        return np.reshape(problem.value(x), np.shape(x))[()]

    def slope(x):
        total = functional.grad(lambda z: ops.sum(problem.held(z)))(problem.tensor(np.asarray(x, float)))
        return np.asarray(numbers(problem.name, total, "func"), float)[()]

    found = _scipy.optimize.newton(
        value, start[()], slope, (), tol, maxiter, rtol=rtol, full_output=full_output, disp=disp
    )
    if not full_output:
        return moving(problem, found)
    x, *more = found
    x = moving(problem, x)
    if start.ndim == 0:
        more[0].root = x
        return x, more[0]
    return type(found)(x, *more) if hasattr(found, "_fields") else (x, *more)


@solver
def root_scalar(
    f: Function, args=(), method=None, bracket=None, fprime=None, fprime2=None, x0=None, x1=None, xtol=None, rtol=None,
    maxiter=None, options=None,
) -> Any:  # fmt: skip
    """Root of a function of one number, by any of SciPy's methods.

    Args:
        method: a method of SciPy's; by default ``"newton"`` if only ``x0`` is given.
        fprime, fprime2: accepted and ignored, since derivatives are exact.

    Returns:
        SciPy's ``RootResults``, whose ``root`` is a tensor of shape ().

    Gradient:
        Of ``root`` by the tensors that ``f`` depends on, by the implicit function theorem; none by the bracket or
        ``x0``.
    """
    problem = Problem("scipy.optimize.root_scalar", "f", f, 1.0, args, scalar=True, beside=(bracket, x0, x1))
    ends = [numbers(problem.name, end, "bracket").astype(float) for end in bracket] if bracket is not None else None
    starts = [None if x is None else float(problem.start(x)) for x in (x0, x1)]
    if method is None and bracket is None and x1 is None:
        method = "newton"

    slope = (lambda x: float(problem.slope(x))) if method in ("newton", "halley") else None
    bend = (lambda x: float(problem.hessian(x))) if method == "halley" else None
    try:
        result = _scipy.optimize.root_scalar(
            lambda x: float(problem.value(x)), (), method, ends, slope, bend, *starts, xtol, rtol, maxiter, options
        )
    except JitError:
        if ends is None:
            raise
        found = _compiled.root_between(problem, ends[0], ends[1], problem.near(1.0))
        return _scipy.optimize.OptimizeResult(root=found, flag=IN_PROGRAM)
    if result.converged:
        result.root = moving(problem, result.root)
    return result


WITH_JACOBIAN = ("hybr", "lm")


@solver
def root(fun: Function, x0: Tensor, args=(), method="hybr", jac=None, tol=None, callback=None, options=None) -> Any:
    """Root of a function of several numbers, by any of SciPy's methods.

    Args:
        fun: takes a tensor and ``args`` and returns a tensor or list of as many numbers.
        jac: the Jacobian, by default exact; ``False`` makes SciPy use finite differences.

    Returns:
        SciPy's ``OptimizeResult``, whose ``x`` and ``fun`` are tensors.

    Raises:
        GradientError: a derivative is needed and the root has none.
        ArgumentError: with ``"lm"``, different numbers of equations and unknowns.

    Gradient:
        Of ``x`` by the tensors that ``fun`` depends on, by the implicit function theorem; none by ``x0``.
    """
    problem = Problem("scipy.optimize.root", "fun", fun, x0, args)
    start = problem.start(x0)
    if tol is None and problem.dtype not in (None, "float64"):
        tol = 1e-6
    exact = _jacobian(problem, jac) if method in WITH_JACOBIAN else None
    try:
        result = _scipy.optimize.root(_flat(problem, jac is True), start, (), method, exact, tol, callback, options)
    except JitError:
        if start.ndim != 1 or jac is True:
            raise
        return traced_result(problem, _compiled.root_near(problem, start, problem.near(start)))
    if method == "lm" and np.size(result.fun) != np.size(result.x):
        raise ArgumentError(
            f"`{problem.name}`: `fun` must give as many numbers as `x0` has; got {np.size(result.fun)}.",
            argument="fun",
            hint="`least_squares` for more equations than unknowns",
        )
    if jac is True:
        problem = Problem(problem.name, "fun", lambda x, *more: fun(x, *more)[0], x0, args)
    result.x = moving(problem, result.x) if result.success else problem.tensor(result.x)
    result.fun = problem(result.x) if connected(result.x) else problem.tensor(result.fun)
    return result


def _flat(problem: Problem, first: bool):
    if not first:
        return problem.value
    return lambda x: np.asarray(numbers(problem.name, problem.function(problem.tensor(x), *problem.known)[0], "fun"))


def _jacobian(problem: Problem, jac):
    """Return the exact Jacobian, or the user's, as a function of numbers."""
    if jac is False:
        return None
    if callable(jac):
        return Problem(problem.name, "jac", jac, np.zeros(1), problem.args).value
    if jac is True:
        return lambda x: np.asarray(
            numbers(problem.name, problem.function(problem.tensor(x), *problem.known)[1], "fun"), float
        )

    return lambda x: problem.jacobian(x).reshape(-1, np.size(x))


@solver
def fsolve(
    func: Function, x0: Tensor, args=(), fprime=None, full_output=0, col_deriv=0, xtol=1.49012e-08, maxfev=0, band=None,
    epsfcn=None, factor=100, diag=None,
) -> Any:  # fmt: skip
    """Root of a function of several numbers, by MINPACK's hybrid method.

    Args:
        func: takes a tensor and ``args`` and returns a tensor or list of as many numbers.
        fprime: the Jacobian, by default exact.

    Returns:
        A vector; with ``full_output`` also SciPy's dict, flag and message.

    Gradient:
        By the tensors that ``func`` depends on, by the implicit function theorem; none by ``x0``.
    """
    problem = Problem("scipy.optimize.fsolve", "func", func, x0, args)
    start = np.atleast_1d(problem.start(x0)).ravel()
    exact, col_deriv = _jacobian(problem, fprime), 0 if fprime is None else col_deriv
    found = _scipy.optimize.fsolve(
        problem.value, start, (), exact, full_output, col_deriv, xtol, maxfev, band, epsfcn, factor, diag
    )
    if not full_output:
        return moving(problem, found)
    x, *more = found
    return (moving(problem, x) if more[1] == 1 else problem.tensor(x), *more)


@solver
def fixed_point(func: Function, x0: Tensor, args=(), xtol=1e-08, maxiter=500, method="del2") -> Any:
    """Fixed point of a function, ``func(x) = x``, by iteration from ``x0``.

    Args:
        func: takes a tensor and ``args`` and returns a tensor of the same shape.
        method: ``"del2"``, with Steffensen's acceleration, or ``"iteration"``.

    Returns:
        A tensor of ``x0``'s shape.

    Raises:
        GradientError: no convergence.

    Gradient:
        By the tensors that ``func`` depends on, by the implicit function theorem; none by ``x0``.
    """
    problem = Problem("scipy.optimize.fixed_point", "func", func, x0, args)
    found = _scipy.optimize.fixed_point(problem.value, problem.start(x0), (), xtol, maxiter, method)
    return moving(problem, found, minus=True)
