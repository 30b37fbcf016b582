"""Initial value problems of ordinary differential equations.

SciPy finds the steps on numbers. ``gradient="steps"`` takes them again, recorded, so that derivatives are those of the
numbers that come out, to all orders. ``gradient="adjoint"`` records nothing and solves the adjoint equation backwards
(Pontryagin 1962; Chen et al. 2018), by the same method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ... import _scipy, functional, ops
from ..._tree import flatten, unflatten
from ...annotations import Function, Tensor
from ...errors import ArgumentError, meant
from ...flow import custom_gradient
from ...functional.implicit import connected
from .._solving import Problem, joined, numbers, solver
from .._tensors import beside, inexact, wrong

__all__ = ["odeint", "solve_ivp"]

EXPLICIT = ("RK23", "RK45", "DOP853")
METHODS = (*EXPLICIT, "Radau", "BDF", "LSODA")


class Equation:
    """The right side of an equation, ``function(t, y, *args)``, on numbers and on tensors."""

    def __init__(self, name: str, argument: str, function: Callable, y0, args: tuple, times):
        self.problem = Problem(name, argument, function, 0.0, (y0, *args), beside=(times,))
        self.name, self.args = name, args
        self.y0 = inexact(joined(self.problem, y0))
        if len(self.y0.shape) > 1:
            raise ArgumentError(f"`{name}`: `y0` must be a vector; got shape {tuple(self.y0.shape)}.", argument="y0")
        self.y0 = ops.reshape(self.y0, (-1,))
        self.size = self.y0.shape[0]
        self.held = self.problem.known[1:]

    def __call__(self, t, y):
        """The slope on tensors, with all that has a gradient."""
        return self._shaped(self.problem._called(t, (y, *self.args)))

    def _shaped(self, slope):
        if ops.size(slope) != self.size:
            raise ArgumentError(
                f"`{self.name}`: `{self.problem.argument}` must give {self.size} numbers; got {ops.size(slope)}.",
                argument=self.problem.argument,
            )
        return ops.reshape(slope, (self.size,))

    def value(self, t, y):
        """The slope on numbers."""
        slope = self.problem._called(self.time(t), (self.problem.tensor(y), *self.held))
        return np.asarray(numbers(self.name, self._shaped(slope), self.problem.argument), float)

    def jacobian(self, t, y):
        at = self.problem.tensor(np.asarray(y, float))
        call = self.problem._called
        found = functional.jacobian(lambda y: self._shaped(call(self.time(t), (y, *self.held))), at)
        return np.asarray(numbers(self.name, found, self.problem.argument), float)

    def time(self, t):
        return self.problem.tensor(np.asarray(t)) if self.problem.like is not None else t

    def start(self) -> np.ndarray:
        return numbers(self.name, self.y0, "y0").astype(float)


def _replayed(equation: Equation, method: str, ends: np.ndarray, times, where: tuple | None):
    """The steps between ``ends`` on tensors, at the steps' ends or at ``times``, whose numbers are ``where``."""
    kind = getattr(_scipy.integrate, method)
    y = equation.y0
    like = ops.convert_to_tensor(equation(times[0], y))
    y = ops.cast(y, ops.dtype(like))
    tableau, shares, weights = kind.A, kind.C, kind.B
    slope, found = like, []
    outcome = _outputs(ends, where)
    for i in range(len(ends) - 1):
        t, h = times[i], times[i + 1] - times[i]
        stages = [slope]
        for row, share in zip(tableau[1:], shares[1:]):
            stages.append(equation(t + share * h, y + h * _weighed(row, stages)))
        new = y + h * _weighed(weights, stages)
        slope = equation(times[i + 1], new)
        if where is None:
            found.append(new)
        else:
            at = outcome.get(i, [])
            if at:
                between = _between(kind, equation, t, h, y, new, [*stages, slope])
                found += [(k, between((place - t) / h)) for k, place in at]
        y = new
    if where is None:
        return ops.stack([ops.cast(equation.y0, ops.dtype(like)), *found], axis=1)
    first = [(k, ops.cast(equation.y0, ops.dtype(like))) for k, _ in outcome.get(-1, [])]
    return ops.stack([y for _, y in sorted([*first, *found], key=lambda pair: pair[0])], axis=1)


def _outputs(ends: np.ndarray, where) -> dict[int, list]:
    """The outputs asked for in each step: which place, and where it is; -1 for the start of no steps."""
    found: dict[int, list] = {}
    if where is None:
        return found
    sign = 1.0 if ends[-1] >= ends[0] else -1.0
    for k, place in enumerate(where[0]):
        step = int(np.searchsorted(sign * ends, sign * place)) - 1
        found.setdefault(min(max(step, 0), len(ends) - 2), []).append((k, where[1][k]))
    return found


def _weighed(weights, stages):
    total = None
    for w, k in zip(weights, stages):
        if w != 0.0:
            total = w * k if total is None else total + w * k
    return total if total is not None else ops.zeros_like(stages[0])


def _between(kind, equation: Equation, t, h, y, new, stages: list) -> Callable:
    """SciPy's interpolation within a step, by the share of it."""
    if not hasattr(kind, "A_EXTRA"):
        terms = [_weighed(column, stages) for column in kind.P.T]

        def polynomial(x):
            power, total = x, None
            for term in terms:
                total = power * term if total is None else total + power * term
                power = power * x
            return y + h * total

        return polynomial
    for row, share in zip(kind.A_EXTRA, kind.C_EXTRA):
        stages = [*stages, equation(t + share * h, y + h * _weighed(row, stages))]
    change, first, last = new - y, stages[0], stages[len(kind.B)]
    terms = [change, h * first - change, 2 * change - h * (last + first)]
    terms += [h * _weighed(row, stages) for row in kind.D]

    def nested(x):
        total = None
        for i, term in enumerate(reversed(terms)):
            total = (term if total is None else total + term) * (x if i % 2 == 0 else 1 - x)
        return y + total

    return nested


def _adjoint(equation: Equation, solve: Callable, again: Callable):
    """The solution by ``solve()``, numbers (n, times) and times, with derivatives by the adjoint equation.

    Args:
        again: solves another equation between two times: ``again(function, t0, t1, y0, args)`` gives its end.
    """
    leaves, structure = flatten(list(equation.args))
    places = [i for i, leaf in enumerate(leaves) if ops.is_tensor(leaf) and "float" in ops.dtype(leaf)]
    tensors = [leaves[i] for i in places]
    values, times = solve()
    size = equation.size

    def right(t, y, parameters):
        given = list(leaves)
        for i, parameter in zip(places, parameters):
            given[i] = parameter
        return equation._shaped(equation.problem._called(t, (y, *unflatten(structure, given))))

    def run(y0, *parameters):
        rest = ops.convert_to_tensor(
            right(equation.time(times[0]), y0, parameters)
        )  # a tensor that is closed over is seen
        rest = ops.reshape(rest - ops.stop_gradient(rest), (size, 1))
        return beside(values, rest) + rest

    def backwards(t, state, *parameters):
        y, adjoint = state[:size], state[size : 2 * size]
        slope, pulled = functional.vjp(lambda y, *p: right(t, y, p), (y, *parameters), adjoint, create_graph=True)
        return ops.concatenate([slope, *[ops.reshape(-1 * p, (-1,)) for p in pulled]])

    def gradient(y0, *parameters, upstream):
        solution = differentiable(y0, *parameters)
        adjoint = upstream[:, -1]
        sums = [ops.zeros_like(ops.reshape(p, (-1,))) for p in parameters]
        sums = ops.concatenate(sums) if sums else ops.zeros_like(y0[:0])
        for i in range(len(times) - 1, 0, -1):
            state = ops.concatenate([solution[:, i], adjoint, sums])
            if times[i] != times[i - 1]:
                state = again(backwards, times[i], times[i - 1], state, tuple(parameters))
            adjoint, sums = state[size : 2 * size] + upstream[:, i - 1], state[2 * size :]
        found, place = [adjoint], 0
        for p in parameters:
            found.append(ops.reshape(sums[place : place + ops.size(p)], tuple(p.shape)))
            place += ops.size(p)
        return found

    differentiable = custom_gradient(run, gradient)
    return differentiable(equation.y0, *tensors)


@solver
def solve_ivp(
    fun: Function, t_span, y0: Tensor, method="RK45", t_eval=None, dense_output=False, events=None, vectorized=False,
    args=None, *, gradient: Literal["steps", "adjoint"] | None = None, **options,
) -> Any:  # fmt: skip
    """The solution of an initial value problem, ``dy/dt = fun(t, y, *args)``.

    Args:
        fun: of a number, a vector and ``args``, to a vector or list.
        t_span: the first and the last time.
        y0: the values at the first time, a vector (n,).
        method: one of SciPy's by name; ``"Radau"``, ``"BDF"`` and ``"LSODA"`` for stiff equations are given the exact
            Jacobian.
        t_eval: where the solution is wanted; without, at the steps' ends.
        dense_output, events: only where no derivative is asked for.
        gradient: ``"steps"`` records the steps of explicit methods, which takes memory for each; ``"adjoint"`` solves
            backwards, for what is in ``args`` and ``y0`` alone, and not in ``jax.hessian``. By default the first where
            the method is explicit.
        options: as of SciPy: ``rtol``, ``atol``, ``max_step``, ...

    Returns:
        SciPy's ``OdeResult``, whose ``y`` is a tensor (n, times).

    Raises:
        ArgumentError: an unknown ``method``, or one that has no steps to record.
        GradientError: with ``"adjoint"``, a function that closes over a tensor with a gradient.

    Gradient:
        Of ``y`` by ``y0``, by what ``fun`` depends on, and with ``"steps"`` by the times. As exact as the solution: set
        ``rtol`` and ``atol``.
    """
    name = "scipy.integrate.solve_ivp"
    args = () if args is None else tuple(args) if isinstance(args, (list, tuple)) else (args,)
    if not isinstance(method, str) or method not in METHODS:
        raise wrong("method", f"be one of {', '.join(METHODS)}", hint=meant(method, METHODS), of=name)
    if gradient not in (None, "steps", "adjoint"):
        raise wrong("gradient", "be 'steps', 'adjoint' or None", hint=meant(gradient, ("steps", "adjoint")), of=name)
    if gradient == "steps" and method not in EXPLICIT:
        raise ArgumentError(f"`{name}`: the steps of {method!r} are not recorded.", argument="gradient")
    equation = Equation(name, "fun", fun, y0, args, (t_span, t_eval))
    ends = [float(numbers(name, t, "t_span")) for t in t_span]
    wanted = None if t_eval is None else _vector(name, t_eval, "t_eval")
    if method in ("Radau", "BDF", "LSODA"):
        options = {"jac": equation.jacobian, **options}
    moving = _moving(equation, t_span, t_eval)
    if moving and (dense_output or events is not None):
        which = "dense_output" if dense_output else "events"
        raise ArgumentError(
            f"`{name}`: `{which}` has no derivative.",
            argument=which,
            hint="`t_eval`, or `stop_gradient()` of what moves",
        )
    outcome = _event(equation, events)
    found = _scipy.integrate.solve_ivp(
        equation.value, ends, equation.start(), method, wanted, dense_output, outcome, False, **options
    )
    if not (moving and found.success):
        found.y = equation.problem.tensor(found.y)
        return found
    if gradient == "adjoint" or method not in EXPLICIT:
        found.y = _by_adjoint(equation, method, options, found.y, found.t, ends[0])
        return found
    steps = found if wanted is None else _scipy.integrate.solve_ivp(
        equation.value, ends, equation.start(), method, **options
    )  # fmt: skip
    found.y = _by_steps(equation, method, steps.t, t_span, t_eval, wanted)
    return found


def _event(equation: Equation, events):
    """Functions of users on tensors as ones of numbers."""
    if events is None:
        return None
    several = isinstance(events, (list, tuple))

    def one(event):
        problem = Problem(equation.name, "events", event, 0.0, (equation.y0, *equation.args), scalar=True)

        def value(t, y):
            at = problem._called(equation.time(t), (equation.problem.tensor(y), *equation.held))
            return float(numbers(equation.name, at, "events"))

        for setting in ("terminal", "direction"):
            if hasattr(event, setting):
                setattr(value, setting, getattr(event, setting))
        return value

    return [one(event) for event in events] if several else one(events)


def _vector(name: str, value, argument: str) -> np.ndarray:
    found = numbers(name, value, argument)
    if found.ndim != 1 or found.dtype.kind not in "fiu":
        raise ArgumentError(f"`{name}`: `{argument}` must be a vector of numbers.", argument=argument)
    return found.astype(float)


def _moving(equation: Equation, *times) -> bool:
    """True if a solution moves with something that has a gradient."""
    for leaf in flatten([t for t in times if t is not None])[0]:
        if connected(leaf):
            return True
    start = [float(numbers(equation.name, t, "t_span")) for t in times[0][:1]][0]
    return connected(equation.y0) or connected(equation(equation.time(start), equation.y0))


def _by_steps(equation: Equation, method: str, ends: np.ndarray, t_span, t_eval, wanted):
    first, last = t_span
    if connected(first) or connected(last):
        shares = (ends - ends[0]) / (ends[-1] - ends[0])
        times = [first + (last - first) * float(share) for share in shares]
    else:
        times = [equation.time(t) for t in ends] if equation.problem.like is not None else list(ends)
    where = None
    if wanted is not None:
        asked = [t_eval[k] for k in range(len(wanted))] if any(map(connected, flatten([t_eval])[0])) else None
        if asked is None:
            asked = [equation.time(t) for t in wanted] if equation.problem.like is not None else list(wanted)
        where = (wanted, asked)
    return _replayed(equation, method, ends, times, where)


def _by_adjoint(equation: Equation, method: str, options: dict, values: np.ndarray, times: np.ndarray, first: float):
    """The solution at ``times`` with derivatives by the adjoint equation."""
    left_out = len(times) == 0 or times[0] != first
    if left_out:
        times, values = np.concatenate([[first], times]), np.concatenate([equation.start()[:, None], values], 1)
    own = {k: v for k, v in options.items() if k in ("rtol", "atol", "max_step") and np.ndim(v) == 0}

    def again(function, start, end, state, parameters):
        result = solve_ivp(
            function,
            (float(start), float(end)),
            state,
            method,
            [float(end)],
            args=parameters,
            gradient="adjoint",
            **own,
        )
        return result.y[:, -1]

    found = _adjoint(equation, lambda: (values, times), again)
    return found[:, 1:] if left_out else found


@solver
def odeint(
    func: Function, y0: Tensor, t: Tensor, args=(), Dfun=None, col_deriv=0, full_output=0, ml=None, mu=None, rtol=None,
    atol=None, tcrit=None, h0=0.0, hmax=0.0, hmin=0.0, ixpr=0, mxstep=0, mxhnil=0, mxordn=12, mxords=5, printmessg=0,
    tfirst=False, *, gradient: Literal["steps", "adjoint"] | None = None,
) -> Any:  # fmt: skip
    """The solution of an initial value problem, ``dy/dt = func(y, t, *args)``, by LSODA.

    Args:
        func: of a vector, a number (the other way round with ``tfirst``) and ``args``, to a vector or list.
        t: where the solution is wanted, the first where ``y0`` is.
        Dfun: the Jacobian is exact, and one that is given is not called.
        gradient: ``"steps"``, the default, records the steps of an explicit method of order 8 with the same
            tolerances; ``"adjoint"`` solves backwards by LSODA, for stiff equations, for ``args`` and ``y0`` alone.

    Returns:
        A tensor (times, n); with ``full_output`` also SciPy's dict.

    Raises:
        GradientError: with ``"adjoint"``, a function that closes over a tensor with a gradient.
        ArgumentError: another ``gradient``; no times.

    Gradient:
        By ``y0``, by what ``func`` depends on, and with ``"steps"`` by ``t``. As exact as the solution, or as one of
        ``rtol=1e-6``.
    """
    name = "scipy.integrate.odeint"
    if gradient not in (None, "steps", "adjoint"):
        raise wrong("gradient", "be 'steps', 'adjoint' or None", hint=meant(gradient, ("steps", "adjoint")), of=name)
    args = args if isinstance(args, tuple) else (args,)
    function = func if tfirst or not callable(func) else (lambda t, y, *more: func(y, t, *more))
    equation = Equation(name, "func", function, y0, args, t)
    times = _vector(name, t, "t")
    if len(times) == 0:
        raise ArgumentError(f"`{name}`: `t` must have an element at least.", argument="t")
    found = _scipy.integrate.odeint(
        equation.value, equation.start(), times, (), equation.jacobian, 0, full_output, ml, mu, rtol, atol, tcrit, h0,
        hmax, hmin, ixpr, mxstep, mxhnil, mxordn, mxords, printmessg, True,
    )  # fmt: skip
    values, *more = found if full_output else (found,)
    limits = (t[0], t[len(times) - 1])
    if not _moving(equation, limits, t):
        y = equation.problem.tensor(values)
    else:
        options = {"rtol": 1.49e-8 if rtol is None else rtol, "atol": 1.49e-8 if atol is None else atol}
        if gradient == "adjoint":
            y = _by_adjoint(equation, "LSODA", options, values.T, times, times[0])
        elif times[0] == times[-1]:
            y = ops.stack([equation.y0] * len(times), axis=1)
        else:
            ends = (times[0], times[-1])
            options["rtol"] = np.minimum(options["rtol"], 1e-6)  # of these steps are the derivatives alone
            steps = _scipy.integrate.solve_ivp(equation.value, ends, equation.start(), "DOP853", **options)
            y = _by_steps(equation, "DOP853", steps.t, limits, t, times)
            y = beside(values.T, y) + (y - ops.stop_gradient(y))
        y = ops.transpose(y)
    return (y, *more) if full_output else y
