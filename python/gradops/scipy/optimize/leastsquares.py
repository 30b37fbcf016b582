"""Least squares: nonlinear, curve fitting, linear with bounds, nonnegative and isotonic.

SciPy finds the solutions; nonlinear ones are then differentiated as minima (:mod:`.minima`).
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from ... import _scipy, functional, ops
from ...annotations import Function, Tensor
from ...errors import ArgumentError, meant
from ...functional.symbolic_zeros import connected
from .._solving import Problem, library_tensor, marked, numbers, solver
from .._tensors import constant_like, floating, inexact, wrong
from .minima import Bounds, cast_like, minimum

__all__ = "curve_fit isotonic_regression least_squares leastsq lsq_linear nnls".split()

LOSSES = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (ops.sqrt(1 + z) - 1),
    "huber": lambda z: ops.where(z <= 1, z, 2 * ops.sqrt(ops.where(z <= 1, ops.ones_like(z), z)) - 1),
    "cauchy": ops.log1p,
    "arctan": ops.arctan,
}


def _cost(problem: Problem, loss: str = "linear", scale: float = 1.0) -> Problem:
    """Return the problem of half the sum of the losses of squared residuals."""

    def cost(x, *args):
        residuals = problem._called(x, args)
        return 0.5 * scale**2 * ops.sum(LOSSES[loss](ops.square(residuals / scale)))

    made = Problem(problem.name, problem.argument, cost, np.zeros(1), problem.args, beside=(problem.like,), scalar=True)
    return made


def _jacobian(problem: Problem, jac, which: str, size: int):
    if callable(jac):
        given = Problem(problem.name, which, jac, np.zeros(size), problem.args, beside=(problem.like,))
        return lambda x: np.asarray(given.value(x), float)
    return lambda x: problem.jacobian(x).reshape(-1, np.size(x))


def _pairs(name: str, bounds, size: int) -> Bounds | None:
    """Return bounds given as SciPy's pair of lower and upper bounds; None if all are infinite."""
    if hasattr(bounds, "lb"):
        return Bounds(name, bounds, size)
    if len(bounds) != 2:
        raise ArgumentError(f"`{name}`: `bounds` must be two, the lower and the upper ones.", argument="bounds")
    low, high = bounds
    if all(np.all(np.isinf(numbers(name, b, "bounds").astype(float))) for b in (low, high)):
        return None

    def item(b, i):
        return b if np.ndim(numbers(name, b, "bounds")) == 0 else b[i]

    return Bounds(name, [(item(low, i), item(high, i)) for i in range(size)], size)


@solver
def least_squares(
    fun: Function, x0: Tensor, jac=None, bounds=(-np.inf, np.inf), method="trf", ftol=1e-08, xtol=1e-08, gtol=1e-08,
    x_scale=None, loss="linear", f_scale=1.0, diff_step=None, tr_solver=None, tr_options=None, jac_sparsity=None,
    max_nfev=None, verbose=0, args=(), kwargs=None,
) -> Any:  # fmt: skip
    """Nonlinear least squares within bounds.

    Args:
        fun: takes a vector, ``args`` and ``kwargs`` and returns the vector of residuals.
        jac: the Jacobian, by default exact; ``"2-point"`` makes SciPy use finite differences.
        loss: the name of one of SciPy's loss functions.

    Returns:
        SciPy's ``OptimizeResult``, whose ``x``, ``fun`` and ``cost`` are tensors.

    Raises:
        GradientError: a derivative is needed and the minimum has none.
        ArgumentError: an unknown ``loss``.

    Gradient:
        Of ``x`` by the tensors that ``fun`` depends on, by the implicit function theorem, including the residuals'
        second derivatives. An unknown on a bound depends on that bound only. None by ``x0``.
    """
    name = "scipy.optimize.least_squares"
    if loss not in LOSSES:
        raise wrong("loss", f"be one of {', '.join(LOSSES)}", f"{loss!r}", hint=meant(loss, LOSSES), of=name)
    function = functools.partial(fun, **kwargs) if kwargs and callable(fun) else fun
    problem = Problem(name, "fun", function, x0, args)
    start = np.atleast_1d(problem.start(x0))
    limits = _pairs(name, bounds, start.size)
    ends = (-np.inf, np.inf) if limits is None else (limits.low, limits.high)
    exact = jac if isinstance(jac, str) else _jacobian(problem, jac, "jac", start.size)
    options: dict[str, Any] = {} if x_scale is None else {"x_scale": x_scale}
    result = _scipy.optimize.least_squares(
        lambda x: np.atleast_1d(np.asarray(problem.value(x), float)), start, exact, ends, method, ftol, xtol, gtol,
        loss=loss, f_scale=f_scale, diff_step=diff_step, tr_solver=tr_solver, tr_options=tr_options or {},
        jac_sparsity=jac_sparsity, max_nfev=max_nfev, verbose=verbose, **options,
    )  # fmt: skip
    cost = _cost(problem, loss, f_scale)
    result.x = minimum(cost, result.x, limits) if result.success else problem.tensor(result.x)
    if connected(result.x) or problem.like is not None:
        result.fun, result.cost = problem(result.x), cost(result.x)
    return result


@solver
def leastsq(
    func: Function, x0: Tensor, args=(), Dfun=None, full_output=False, col_deriv=False, ftol=1.49012e-08,
    xtol=1.49012e-08, gtol=0.0, maxfev=0, epsfcn=None, factor=100, diag=None,
) -> Any:  # fmt: skip
    """Nonlinear least squares by the Levenberg-Marquardt method.

    Args:
        Dfun: the Jacobian, by default exact.

    Returns:
        The unknowns and SciPy's flag; with ``full_output`` SciPy's results, whose covariance has no derivative.

    Gradient:
        As for :func:`least_squares`.
    """
    problem = Problem("scipy.optimize.leastsq", "func", func, x0, args)
    start = np.atleast_1d(problem.start(x0)).ravel()
    exact = _jacobian(problem, Dfun, "Dfun", start.size)
    found = _scipy.optimize.leastsq(
        lambda x: np.atleast_1d(np.asarray(problem.value(x), float)), start, (), exact, full_output,
        col_deriv and Dfun is not None, ftol, xtol, gtol, maxfev, epsfcn, factor, diag,
    )  # fmt: skip
    x, *more = found
    if more[-1] in (1, 2, 3, 4):
        return (minimum(_cost(problem), x), *more)
    return (problem.tensor(x), *more)


@solver
def curve_fit(
    f: Function, xdata, ydata: Tensor, p0=None, sigma=None, absolute_sigma=False, check_finite=None,
    bounds=(-np.inf, np.inf), method=None, jac=None, *, full_output=False, nan_policy=None, **kwargs,
) -> Any:  # fmt: skip
    """Fit a curve to data by least squares; return the parameters and their covariance.

    Args:
        f: takes ``xdata`` and the parameters and returns a tensor of ``ydata``'s shape.
        sigma: the standard deviations of ``ydata``, or their covariance matrix.
        jac: the Jacobian, by default exact.

    Returns:
        A pair: the parameters (k,) and their covariance (k, k); with ``full_output`` also SciPy's dict and messages.

    Raises:
        GradientError: no fit is found, or a derivative is needed and the fit has none.
        ArgumentError: a ``nan_policy`` that omits data.

    Gradient:
        Of both by ``xdata``, ``ydata``, ``sigma`` and the tensors that ``f`` closes over, by the implicit function
        theorem.
    """
    name = "scipy.optimize.curve_fit"
    if not callable(f):
        Problem(name, "f", f, 0.0)
    f, like = marked(f), library_tensor(xdata, ydata, sigma, p0)
    count = len(inspect.signature(f).parameters) - 1 if p0 is None else np.size(numbers(name, p0, "p0"))
    if nan_policy not in (None, "raise") or check_finite is False:
        raise ArgumentError(
            f"`{name}`: `nan_policy` must be None or 'raise': remove NaNs from the data.",
            argument="nan_policy" if nan_policy not in (None, "raise") else "check_finite",
        )
    data = (ops.reshape(inexact(ydata), (-1,)), xdata if not isinstance(xdata, list) else np.asarray(xdata), sigma)
    covariance = sigma is not None and len(np.shape(numbers(name, sigma, "sigma"))) == 2

    def residuals(p, y, x, deviations):
        fitted = ops.reshape(f(x, *[p[i] for i in range(count)]), (-1,))
        rest = fitted - y
        if deviations is None:
            return rest
        if covariance:
            return ops.solve_triangular(ops.cholesky(cast_like(deviations, rest)), rest, lower=True)
        return rest / cast_like(deviations, rest)

    problem = Problem(name, "f", residuals, np.zeros(count), data, beside=(like,))

    @functools.wraps(f)
    def fitted(x, *p):
        at = problem.tensor(np.asarray(p, float))
        y = f(problem.known[1], *[at[i] for i in range(count)])
        return np.reshape(np.asarray(numbers(name, y, "f"), float), (-1,))

    def exact(x, *p):
        at = problem.tensor(np.asarray(p, float))
        if callable(jac):
            return np.asarray(numbers(name, jac(problem.known[1], *[at[i] for i in range(count)]), "jac"), float)
        found = functional.jacobian(
            lambda q: ops.reshape(f(problem.known[1], *[q[i] for i in range(count)]), (-1,)), at
        )
        return np.asarray(numbers(name, found, "f"), float).reshape(-1, count)

    limits = _pairs(name, bounds, count)
    ends = bounds if limits is None else (limits.low, limits.high)
    values, places = numbers(name, ydata, "ydata").ravel(), numbers(name, xdata, "xdata")
    deviations = None if sigma is None else numbers(name, sigma, "sigma")
    popt, pcov, *more = _scipy.optimize.curve_fit(
        fitted, places, values, None if p0 is None else numbers(name, p0, "p0"), deviations, absolute_sigma,
        True, ends, method, jac if isinstance(jac, str) else exact, full_output=True, **kwargs,
    )  # fmt: skip
    popt = minimum(_cost(problem), popt, limits)
    pcov = _covariance(problem, popt, pcov, absolute_sigma) if connected(popt) else problem.tensor(pcov)
    return (popt, pcov, *more) if full_output else (popt, pcov)


def _covariance(problem: Problem, p, found, absolute: bool):
    if not np.all(np.isfinite(found)):
        return problem.tensor(found)
    jacobian = functional.jacobian(problem, p, create_graph=True)
    covariance = ops.inv(ops.matmul(ops.transpose(jacobian), jacobian))
    rows, columns = jacobian.shape
    return covariance if absolute else covariance * (ops.sum(ops.square(problem(p))) / (rows - columns))


@solver
def nnls(A: Tensor, b: Tensor, *, maxiter=None) -> Any:
    """Nonnegative least squares: the ``x >= 0`` that minimizes the norm of ``A x - b``.

    Returns:
        A pair: the solution (n,) and the norm of the residuals.

    Gradient:
        By ``A`` and ``b``: that of the least squares of the unknowns that are not 0; for the others it is 0.
    """
    name = "scipy.optimize.nnls"
    A, b = _together(A, b)
    x, norm = _scipy.optimize.nnls(numbers(name, A, "A"), numbers(name, b, "b"), maxiter=maxiter)
    if library_tensor(A, b) is None and not (connected(A) or connected(b)):
        return x, norm
    free = np.flatnonzero(x > 0)
    found = _scattered(_fitted(A, b, free), free, constant_like(np.zeros(len(x)), A))
    return found, ops.norm(ops.matmul(A, found) - b) if norm else constant_like(norm, A)


def _together(A, b):
    like = library_tensor(A, b)
    if like is not None:
        A, b = (
            x if ops.is_tensor(x) and not isinstance(x, np.ndarray) else constant_like(x, inexact(like)) for x in (A, b)
        )
    return floating(A, b)


def _fitted(A, b, free):
    part = ops.take(A, free, axis=1)
    return ops.lstsq(part, b) if len(free) else None


def _scattered(x, free, rest):
    """Return a vector with ``x`` at the free positions and ``rest`` at the others."""
    if not len(free):
        return rest
    others = np.setdiff1d(np.arange(rest.shape[0]), free)
    if not len(others):
        return x
    order = np.argsort(np.concatenate([free, others]))
    return ops.take(ops.concatenate([x, ops.take(rest, others, axis=0)]), order, axis=0)


@solver
def lsq_linear(
    A: Tensor, b: Tensor, bounds=(-np.inf, np.inf), method="trf", tol=1e-10, lsq_solver=None, lsmr_tol=None,
    max_iter=None, verbose=0,
) -> Any:  # fmt: skip
    """Linear least squares within bounds: the ``x`` that minimizes the norm of ``A x - b``.

    Args:
        bounds: a pair of lower and upper bounds, numbers or tensors.

    Returns:
        SciPy's ``OptimizeResult``, whose ``x``, ``fun`` and ``cost`` are tensors.

    Raises:
        ArgumentError: ``A`` is not a matrix.

    Gradient:
        By ``A``, ``b`` and the bounds: an unknown on a bound follows that bound, the others are least squares.
    """
    name = "scipy.optimize.lsq_linear"
    A, b = _together(A, b)
    matrix = numbers(name, A, "A")
    if matrix.ndim != 2:
        raise ArgumentError(f"`{name}`: `A` must be a matrix; got shape {matrix.shape}.", argument="A")
    limits = _pairs(name, bounds, matrix.shape[1])
    ends = (-np.inf, np.inf) if limits is None else (limits.low, limits.high)
    result = _scipy.optimize.lsq_linear(
        matrix, numbers(name, b, "b"), ends, method, tol, lsq_solver, lsmr_tol, max_iter, verbose
    )
    moving = limits is not None and limits.pairs is not None and any(connected(e) for p in limits.pairs for e in p)
    if library_tensor(A, b) is None and not (connected(A) or connected(b) or moving):
        return result
    side = np.zeros(matrix.shape[1], int)
    if limits is not None:
        residual = matrix @ result.x - numbers(name, b, "b")
        side = limits.active(result.x, lambda x: matrix.T @ residual)
    free, fixed = np.flatnonzero(side == 0), np.flatnonzero(side)
    if len(fixed):
        at = ops.concatenate([limits.end(i, side[i], A) for i in fixed])  # type: ignore[union-attr]
        rest = b - ops.matmul(ops.take(A, fixed, axis=1), at)
        order = np.argsort(np.concatenate([free, fixed]))
        parts = [_fitted(A, rest, free), at] if len(free) else [at]
        result.x = ops.take(ops.concatenate(parts), order, axis=0)
    else:
        result.x = ops.lstsq(A, b)
    result.fun = ops.matmul(A, result.x) - b
    result.cost = 0.5 * ops.sum(ops.square(result.fun))
    return result


@solver
def isotonic_regression(y: Tensor, *, weights=None, increasing: bool = True) -> Any:
    """Isotonic regression: the nondecreasing (or nonincreasing) vector nearest to ``y`` in least squares.

    Returns:
        SciPy's ``OptimizeResult``, whose ``x`` is a tensor of ``y``'s shape.

    Gradient:
        By ``y`` and ``weights``: that of the weighted mean of each block.
    """
    name = "scipy.optimize.isotonic_regression"
    y = inexact(y)
    w = ops.ones_like(y) if weights is None else inexact(weights)
    result = _scipy.optimize.isotonic_regression(
        numbers(name, y, "y"), weights=numbers(name, w, "weights"), increasing=increasing
    )
    blocks = np.repeat(np.arange(len(result.blocks) - 1), np.diff(result.blocks))
    members = constant_like((blocks == np.arange(len(result.blocks) - 1)[:, None]).astype(float), y)
    means = ops.matmul(members, w * y) / ops.matmul(members, w)
    result.x = ops.matmul(ops.transpose(members), means)
    return result
