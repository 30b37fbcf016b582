"""Minima of functions of one or several numbers, with bounds and constraints.

SciPy finds a minimum on numbers; it is then differentiated as a root of its optimality conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _scipy, functional, ops
from ...annotations import Function, Tensor
from ...errors import JitError
from ...functional.symbolic_zeros import connected
from .. import _compiled
from .._define import family
from .._solving import Problem, numbers, solution, solver
from .._tensors import constant_like, wrong
from .roots import traced_result

__all__ = """
brent fmin fmin_bfgs fmin_cg fmin_l_bfgs_b fmin_ncg fmin_powell fmin_tnc fminbound golden minimize
minimize_scalar
""".split()

NO_CURVATURE = "the matrix of second derivatives is singular there"
BY_SLOPE = (
    "cg bfgs newton-cg l-bfgs-b tnc slsqp dogleg trust-ncg trust-krylov trust-exact trust-constr".split()
)  # fmt: skip
BY_CURVATURE = "newton-cg dogleg trust-ncg trust-krylov trust-exact trust-constr".split()
BOUND_TOLERANCE = 1e-6
"""Relative tolerance within which a minimum counts as on a bound, if the function still falls towards the bound."""


class Bounds:
    """The bounds of unknowns, as numbers and as the tensors they were given as."""

    def __init__(self, name: str, bounds, size: int):
        self.given, self.pairs = bounds, None
        if bounds is None:
            self.low, self.high = np.full(size, -np.inf), np.full(size, np.inf)
        elif hasattr(bounds, "lb"):
            self.low, self.high = (np.broadcast_to(np.asarray(b, float), (size,)) for b in (bounds.lb, bounds.ub))
        else:
            self.pairs = list(bounds)
            if len(self.pairs) != size or any(len(pair) != 2 for pair in self.pairs):
                raise wrong("bounds", f"be a pair for each of the {size} unknowns", of=name)
            ends = [
                [end if b is None else float(numbers(name, b, "bounds")) for b, end in zip(pair, (-np.inf, np.inf))]
                for pair in self.pairs
            ]
            self.low, self.high = np.array(ends, float).reshape(-1, 2).T
            self.given = [tuple(None if np.isinf(b) else b for b in pair) for pair in ends]

    def active(self, x: np.ndarray, slope: Callable) -> np.ndarray:
        """Return -1 or 1 where an unknown is on its lower or upper bound and the function falls towards it, else 0."""
        scale = BOUND_TOLERANCE * (1 + np.abs(x))
        low, high = x - self.low <= scale, self.high - x <= scale
        if not (low.any() or high.any()):
            return np.zeros(x.shape, int)
        g = np.reshape(slope(np.clip(x, self.low, self.high)), x.shape)
        return np.where(low & ((g > 0) | (self.low == self.high)), -1, np.where(high & (g < 0), 1, 0))

    def end(self, i, side, like):
        """Return a bound as a tensor, with derivatives by the bound that was given."""
        if self.pairs is not None:
            return ops.reshape(cast_like(self.pairs[i][0 if side < 0 else 1], like), (1,))
        return constant_like([(self.low if side < 0 else self.high)[i]], like)


def cast_like(value, like):
    if ops.is_tensor(value) and not isinstance(value, np.ndarray):
        return ops.cast(value, ops.dtype(like))
    return constant_like(value, like)


def minimum(problem: Problem, x: np.ndarray, bounds: Bounds | None = None, sign: float = 1.0):
    """Return the minimum near SciPy's ``x``, with derivatives by what the function and the bounds depend on."""
    at = problem.tensor(np.asarray(x, float))
    moving = bounds is not None and bounds.pairs is not None and any(connected(b) for p in bounds.pairs for b in p)
    if not (moving or connected(problem(at))):
        return at
    side = np.zeros(np.shape(x), int) if bounds is None else bounds.active(np.asarray(x, float), problem.slope)
    at = ops.convert_to_tensor(at)
    free, fixed = np.flatnonzero(side == 0), np.flatnonzero(side)
    if not len(fixed):
        return solution(problem.name, functional.grad(problem), at, NO_CURVATURE)
    ends = ops.concatenate([bounds.end(i, side[i], at) for i in fixed])  # type: ignore[union-attr]
    order = np.argsort(np.concatenate([free, fixed]))

    def whole(z, rest):
        return ops.take(ops.concatenate([z, rest]), order, axis=0)

    if not len(free):
        return whole(constant_like(np.zeros(0), at), ends)
    found = solution(
        problem.name,
        functional.grad(lambda z: problem(whole(z, ends))),
        constant_like(np.asarray(x, float)[free], at),
        NO_CURVATURE,
    )
    return whole(found, ends)


def _given(problem: Problem, which: str, function) -> Callable | None:
    """Return a derivative written by the user as a function of numbers."""
    if not callable(function):
        return None
    given = Problem(problem.name, which, function, np.zeros(1), problem.args, beside=(problem.like,))
    return lambda x, *more: np.asarray(given.value(x), float)


@solver
def minimize(
    fun: Function, x0: Tensor, args=(), method=None, jac=None, hess=None, hessp=None, bounds=None, constraints=(),
    tol=None, callback=None, options=None,
) -> Any:  # fmt: skip
    """Minimum of a function of several numbers, by any of SciPy's methods.

    Args:
        fun: takes a vector and ``args`` and returns one number.
        jac, hess: the derivatives, by default exact if the method uses them; ``"2-point"`` makes SciPy use finite
            differences.
        bounds: pairs of numbers or tensors, or SciPy's ``Bounds``.
        constraints: SciPy's constraints; their functions take ``x`` and their own ``args``.

    Returns:
        SciPy's ``OptimizeResult``, whose ``x`` and ``fun`` are tensors.

    Raises:
        GradientError: a derivative is needed and the minimum has none, since its Hessian is singular.

    Gradient:
        Of ``x`` by the tensors that ``fun`` and ``constraints`` depend on, by the implicit function theorem, with the
        multipliers of active constraints (Fiacco 1976). An unknown on a bound depends on that bound only. None by
        ``x0``.
    """
    name = "scipy.optimize.minimize"
    both = jac is True
    function = (lambda x, *more: fun(x, *more)[0]) if both else fun
    problem = Problem(name, "fun", function, x0, args, scalar=True)
    start = np.atleast_1d(problem.start(x0)).ravel()
    limits = Bounds(name, bounds, start.size)
    conditions = _conditions(problem, constraints)
    kind = _kind(method, bounds is not None, bool(conditions))
    slope: Any = jac
    if kind in BY_SLOPE and (jac is None or both):
        slope = problem.slope
    elif callable(jac):
        slope = _given(problem, "jac", jac)
    curvature: Any = _given(problem, "hess", hess) or hess
    if kind in BY_CURVATURE and hess is None and hessp is None:
        curvature = problem.hessian
    product = None if hessp is None else _product(problem, hessp)
    try:
        result = _scipy.optimize.minimize(
            lambda x: float(problem.value(x)), start, (), method, slope, curvature, product, limits.given,
            [c.scipys() for c in conditions], tol, callback, options,
        )  # fmt: skip
    except JitError:
        if conditions or bounds is not None or callback is not None:
            raise
        return traced_result(problem, _compiled.least(problem, start, problem.near(start)))
    if conditions:
        result.x = _constrained(problem, result.x, limits, conditions)
    elif result.success or result.status == 2:
        result.x = minimum(problem, result.x, limits)
    else:
        result.x = problem.tensor(result.x)
    result.fun = problem(result.x) if connected(result.x) or problem.like is not None else result.fun
    return result


def _product(problem: Problem, hessp):
    def product(x, p):
        found = hessp(problem.tensor(x), problem.tensor(p), *problem.known)
        return np.asarray(numbers(problem.name, found, "hessp"), float)

    return product


def _kind(method, bounded: bool, constrained: bool) -> str:
    if method is None:
        return "slsqp" if constrained else "l-bfgs-b" if bounded else "bfgs"
    return method.lower() if isinstance(method, str) else ""


class Condition:
    """A constraint, ``low <= fun(x) <= high``."""

    def __init__(self, problem: Problem, given):
        name = problem.name
        if isinstance(given, dict):
            kind = str(given.get("type", "")).lower()
            if kind not in ("eq", "ineq") or not callable(given.get("fun")):
                raise wrong("constraints", 'have a `type`, "eq" or "ineq", and a function `fun`', of=name)
            function, args = given["fun"], given.get("args", ())
            self.low, self.high = 0.0, 0.0 if kind == "eq" else np.inf
        elif hasattr(given, "A"):
            matrix = given.A.toarray() if hasattr(given.A, "toarray") else np.atleast_2d(given.A)
            function, args = (lambda x: ops.matmul(constant_like(matrix, x), x)), ()
            self.low, self.high = given.lb, given.ub
        elif hasattr(given, "fun"):
            function, args, self.low, self.high = given.fun, (), given.lb, given.ub
        else:
            raise wrong("constraints", "be dicts or SciPy's constraints", of=name)
        self.problem = Problem(name, "constraints", function, np.zeros(1), args, beside=(problem.like,))

    def flat(self, function):
        return lambda x: ops.reshape(function(x), (-1,))

    def value(self, x):
        return np.reshape(self.problem.value(x), (-1,)).astype(float)

    def jacobian(self, x):
        return self.problem.jacobian(x).reshape(-1, np.size(x))

    def scipys(self):
        """Return the constraint in SciPy's form."""
        if np.ndim(self.low) == 0 and self.low == 0 and np.ndim(self.high) == 0 and self.high in (0, np.inf):
            kind = "eq" if self.high == 0 else "ineq"
            return {"type": kind, "fun": self.value, "jac": self.jacobian}
        return _scipy.optimize.NonlinearConstraint(self.value, self.low, self.high, self.jacobian)

    def active(self, x):
        """Return the positions of active values, their bounds, and the sign of each (0 for equalities)."""
        value = self.value(x)
        low, high = (np.broadcast_to(np.asarray(b, float), value.shape) for b in (self.low, self.high))
        scale = BOUND_TOLERANCE * (1 + np.abs(value))
        at_low, at_high = np.abs(value - low) <= scale, np.abs(value - high) <= scale
        places = np.flatnonzero(at_low | at_high)
        return places, np.where(at_low, low, high)[places], np.where(low == high, 0, np.where(at_low, 1, -1))[places]


def _conditions(problem: Problem, constraints) -> list[Condition]:
    given = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    return [Condition(problem, c) for c in given]


def _constrained(problem: Problem, x: np.ndarray, limits: Bounds, conditions: Sequence[Condition]):
    """Return the constrained minimum near SciPy's ``x``, a root of the KKT conditions with active constraints."""
    at = problem.tensor(x)
    if not (connected(problem(at)) or any(connected(c.problem(at)) for c in conditions)):
        return at
    size = len(x)
    rows: list = []
    parts: list = []
    for condition in conditions:
        places, ends, signs = condition.active(x)
        if len(places):
            rows += list(zip(condition.jacobian(x)[places], signs))
            parts.append((condition, places, ends))
    for i in range(size):
        for end, sign in ((limits.low[i], 1), (limits.high[i], -1)):
            if abs(x[i] - end) <= BOUND_TOLERANCE * (1 + abs(x[i])):
                rows.append((np.eye(size)[i], sign))
                parts.append((None, np.array([i]), np.array([end])))
    if not rows:
        return minimum(problem, x)
    matrix = np.array([row for row, _ in rows])
    multipliers = np.linalg.lstsq(matrix.T, problem.slope(x), rcond=None)[0]
    signs = np.array([sign for _, sign in rows])
    active = (signs == 0) | (signs * multipliers > BOUND_TOLERANCE * (1 + np.abs(multipliers).max()))
    taken = np.split(active, np.cumsum([len(places) for _, places, _ in parts])[:-1])
    parts = [(c, places[k], ends[k]) for (c, places, ends), k in zip(parts, taken) if k.any()]
    start = np.concatenate([x, multipliers[active]])
    at = ops.convert_to_tensor(at)

    def conditions_at(z):
        values = []
        for condition, places, ends in parts:
            value = z if condition is None else ops.reshape(condition.problem(z), (-1,))
            values.append(ops.take(value, places, axis=0) - constant_like(ends, at))
        return ops.concatenate(values) if values else constant_like(np.zeros(0), at)

    def residual(z):
        unknowns, weights = z[:size], z[size:]
        slope = functional.grad(lambda u: problem(u) - ops.sum(weights * conditions_at(u)))(unknowns)
        return ops.concatenate([slope, conditions_at(unknowns)])

    lacking = "its active constraints depend on each other, or the matrix of second derivatives is singular there"
    return solution(problem.name, residual, constant_like(start, at), lacking)[:size]


@solver
def minimize_scalar(fun: Function, bracket=None, bounds=None, args=(), method=None, tol=None, options=None) -> Any:
    """Minimum of a function of one number, by Brent's method, the golden section, or within bounds.

    Args:
        fun: takes a number and ``args``.
        bracket, bounds, method, tol, options: as in SciPy.

    Returns:
        SciPy's ``OptimizeResult``, whose ``x`` and ``fun`` are tensors of shape ().

    Gradient:
        Of ``x`` by the tensors that ``fun`` depends on, by the implicit function theorem; on a bound by that bound
        only; none by the bracket.
    """
    name = "scipy.optimize.minimize_scalar"
    problem = Problem(name, "fun", fun, 1.0, args, scalar=True, beside=(bracket, bounds))
    ends = None if bracket is None else [float(numbers(name, b, "bracket")) for b in bracket]
    limits = None if bounds is None else Bounds(name, [tuple(bounds)], 1)
    found = None if limits is None else (limits.low[0], limits.high[0])
    result = _scipy.optimize.minimize_scalar(lambda x: float(problem.value(x)), ends, found, (), method, tol, options)
    result.x = scalar_minimum(problem, result.x, limits, (options or {}).get("xatol", 1e-5))
    result.fun = problem(result.x) if connected(result.x) or problem.like is not None else result.fun
    return result


def scalar_minimum(problem: Problem, x, limits: Bounds | None = None, tol: float = 0.0):
    if limits is None or limits.pairs is None:
        return minimum(problem, x)
    x = float(np.clip(x, limits.low[0], limits.high[0]))
    at = ops.convert_to_tensor(problem.tensor(x))
    for side, end, given in ((-1, limits.low[0], limits.pairs[0][0]), (1, limits.high[0], limits.pairs[0][1])):
        near = abs(x - end) <= 10 * (tol + 1.5e-8) * (1 + abs(x))
        if near and (connected(problem(at)) or connected(given)) and side * problem.slope(end) < 0:
            return ops.reshape(limits.end(0, side, at), ())
    return minimum(problem, x)


of_one = family(
    {"func": "a function of a number and ``args``."},
    returns="The minimum, a tensor of shape (); with ``full_output`` also the value and SciPy's counts.",
    gradient="As for :func:`minimize_scalar`.",
    within=solver,
)


@of_one
def brent(func: Function, args=(), brack=None, tol=1.48e-08, full_output=0, maxiter=500) -> Any:
    """Minimum of a function of one number, by Brent's method."""
    return _scalar("brent", func, args, full_output, brack=brack, tol=tol, maxiter=maxiter)


@of_one
def golden(func: Function, args=(), brack=None, tol=1.4901161193847656e-08, full_output=0, maxiter=5000) -> Any:
    """Minimum of a function of one number, by the golden section."""
    return _scalar("golden", func, args, full_output, brack=brack, tol=tol, maxiter=maxiter)


@of_one
def fminbound(func: Function, x1: Tensor, x2: Tensor, args=(), xtol=1e-05, maxfun=500, full_output=0, disp=1) -> Any:
    """Minimum of a function of one number between ``x1`` and ``x2``."""
    return _scalar("fminbound", func, args, full_output, bounds=(x1, x2), xtol=xtol, maxfun=maxfun, disp=disp)


def _scalar(name: str, func, args, full_output, bounds=None, brack=None, **options):
    problem = Problem(f"scipy.optimize.{name}", "func", func, 1.0, args, scalar=True, beside=(bounds, brack))
    limits = None if bounds is None else Bounds(problem.name, [bounds], 1)
    if brack is not None:
        options["brack"] = tuple(float(numbers(problem.name, b, "brack")) for b in brack)
    ends = () if limits is None else (limits.low[0], limits.high[0])
    x, _, *more = getattr(_scipy.optimize, name)(lambda x: float(problem.value(x)), *ends, **options, full_output=1)
    x = scalar_minimum(problem, x, limits, options.get("xtol", 0.0))
    return (x, problem(x), *more) if full_output else x


def _several(name: str, func, x0, args, full_output, *, slope=None, curvature=None, bounds=None, **options):
    """Call one of SciPy's older functions, whose first result is ``x`` and whose second is the value."""
    argument = "f" if name in ("fmin_bfgs", "fmin_cg", "fmin_ncg") else "func"
    problem = Problem(f"scipy.optimize.{name}", argument, func, x0, args, scalar=True)
    start = np.atleast_1d(problem.start(x0)).ravel()
    limits = Bounds(problem.name, bounds, start.size)
    if slope is not None:
        options["fprime"] = _given(problem, "fprime", slope) or problem.slope
    if curvature is not None:
        options["fhess"] = _given(problem, "fhess", curvature) or problem.hessian
    if bounds is not None:
        options["bounds"] = limits.given
    always = name in ("fmin_l_bfgs_b", "fmin_tnc")
    found = getattr(_scipy.optimize, name)(
        lambda x: float(problem.value(x)), start, **options, **({} if always else {"full_output": full_output})
    )
    if not (always or full_output):
        return minimum(problem, found, limits)
    x, *more = found
    x = minimum(problem, x, limits)
    if name != "fmin_tnc":
        more[0] = problem(x)
    return (x, *more)


older = family(
    dict.fromkeys(
        ("f", "func"),
        "a function of a vector and ``args`` that returns one number. Other arguments are SciPy's, except ``retall``.",
    ),
    returns="The minimum, a vector; with ``full_output`` also the value and SciPy's counts.",
    gradient="As for :func:`minimize`.",
    within=solver,
)
bounded = family(
    returns="The minimum, the value there, and SciPy's dict.", gradient="As for :func:`minimize`.", within=solver
)


@older
def fmin(
    func: Function, x0: Tensor, args=(), xtol=0.0001, ftol=0.0001, maxiter=None, maxfun=None, full_output=0, disp=1,
    callback=None, initial_simplex=None,
) -> Any:  # fmt: skip
    """Minimum by the Nelder-Mead simplex method, without derivatives."""
    return _several(
        "fmin", func, x0, args, full_output, xtol=xtol, ftol=ftol, maxiter=maxiter, maxfun=maxfun, disp=disp,
        callback=callback, initial_simplex=initial_simplex,
    )  # fmt: skip


@older
def fmin_powell(
    func: Function, x0: Tensor, args=(), xtol=0.0001, ftol=0.0001, maxiter=None, maxfun=None, full_output=0, disp=1,
    callback=None, direc=None,
) -> Any:  # fmt: skip
    """Minimum by Powell's method, without derivatives."""
    return _several(
        "fmin_powell", func, x0, args, full_output, xtol=xtol, ftol=ftol, maxiter=maxiter, maxfun=maxfun, disp=disp,
        callback=callback, direc=direc,
    )  # fmt: skip


@older
def fmin_bfgs(
    f: Function, x0: Tensor, fprime=None, args=(), gtol=1e-05, norm=np.inf, maxiter=None, full_output=0, disp=1,
    callback=None, xrtol=0, c1=0.0001, c2=0.9, hess_inv0=None,
) -> Any:  # fmt: skip
    """Minimum by the BFGS method (Broyden, Fletcher, Goldfarb and Shanno), with exact gradients."""
    return _several(
        "fmin_bfgs", f, x0, args, full_output, slope=fprime or True, gtol=gtol, norm=norm, maxiter=maxiter, disp=disp,
        callback=callback, xrtol=xrtol, c1=c1, c2=c2, hess_inv0=hess_inv0,
    )  # fmt: skip


@older
def fmin_cg(
    f: Function, x0: Tensor, fprime=None, args=(), gtol=1e-05, norm=np.inf, maxiter=None, full_output=0, disp=1,
    callback=None, c1=0.0001, c2=0.4,
) -> Any:  # fmt: skip
    """Minimum by conjugate gradients, with exact gradients."""
    return _several(
        "fmin_cg", f, x0, args, full_output, slope=fprime or True, gtol=gtol, norm=norm, maxiter=maxiter, disp=disp,
        callback=callback, c1=c1, c2=c2,
    )  # fmt: skip


@older
def fmin_ncg(
    f: Function, x0: Tensor, fprime=None, fhess_p=None, fhess=None, args=(), avextol=1e-05, maxiter=None, full_output=0,
    disp=1, callback=None, c1=0.0001, c2=0.9,
) -> Any:  # fmt: skip
    """Minimum by Newton's method with conjugate gradients, with exact gradients and Hessians."""
    return _several(
        "fmin_ncg", f, x0, args, full_output, slope=fprime or True, curvature=fhess or True, avextol=avextol,
        maxiter=maxiter, disp=disp, callback=callback, c1=c1, c2=c2,
    )  # fmt: skip


@bounded
def fmin_l_bfgs_b(
    func: Function, x0: Tensor, fprime=None, args=(), bounds=None, m=10, factr=1e7, pgtol=1e-05, maxfun=15000,
    maxiter=15000, callback=None, maxls=20,
) -> Any:  # fmt: skip
    """Minimum within bounds by the limited-memory BFGS method, with exact gradients."""
    return _several(
        "fmin_l_bfgs_b", func, x0, args, 1, slope=fprime or True, bounds=bounds, m=m, factr=factr, pgtol=pgtol,
        maxfun=maxfun, maxiter=maxiter, callback=callback, maxls=maxls,
    )  # fmt: skip


@bounded
def fmin_tnc(
    func: Function, x0: Tensor, fprime=None, args=(), bounds=None, scale=None, offset=None, messages=0, maxCGit=-1,
    maxfun=None, eta=-1, stepmx=0, accuracy=0, fmin=0, ftol=-1, xtol=-1, pgtol=-1, rescale=-1, callback=None,
) -> Any:  # fmt: skip
    """Minimum within bounds by a truncated Newton method, with exact gradients.

    Returns:
        The minimum, and SciPy's count and code.
    """
    return _several(
        "fmin_tnc", func, x0, args, 1, slope=fprime or True, bounds=bounds, scale=scale, offset=offset,
        messages=messages, maxCGit=maxCGit, maxfun=maxfun, eta=eta, stepmx=stepmx, accuracy=accuracy, fmin=fmin,
        ftol=ftol, xtol=xtol, pgtol=pgtol, rescale=rescale, callback=callback,
    )  # fmt: skip
