"""Initial value problems of ordinary differential equations.

SciPy finds the steps on numbers. ``gradient="steps"`` repeats the steps with recording, so derivatives of all orders
are those of the computed numbers. ``gradient="adjoint"`` records nothing and solves the adjoint equation backwards in
time (Pontryagin 1962; Chen et al. 2018), by the same method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ... import _scipy, dtypes, functional, ops
from ..._tree import flatten, unflatten
from ...annotations import Function, Tensor
from ...errors import ArgumentError, ArgumentTypeError, meant
from ...flow import custom_gradient
from ...functional.symbolic_zeros import connected
from .._solving import Problem, joined, numbers, solver
from .._tensors import constant_like, inexact, is_complex, wrong

__all__ = ["odeint", "solve_ivp"]

EXPLICIT = ("RK23", "RK45", "DOP853")
METHODS = (*EXPLICIT, "Radau", "BDF", "LSODA")


class Equation:
    """The right-hand side of an equation, ``function(t, y, *args)``, on numbers and on tensors."""

    def __init__(self, name: str, argument: str, function: Callable, y0, args: tuple, times):
        self.problem = Problem(name, argument, function, 0.0, (y0, *args), beside=(times,))
        self.name, self.args = name, args
        self.y0 = inexact(joined(self.problem, y0))
        if len(self.y0.shape) > 1:
            raise ArgumentError(f"`{name}`: `y0` must be a vector; got shape {tuple(self.y0.shape)}.", argument="y0")
        self.y0 = ops.reshape(self.y0, (-1,))
        self.size = self.y0.shape[0]
        self.complex = ops.dtype(self.y0) if is_complex(self.y0) else None
        self.held = self.problem.known[1:]

    def __call__(self, t, y):
        """Return the slope on tensors, with derivatives by everything the function depends on."""
        return self._shaped(self.problem._called(t, (y, *self.args)))

    def _shaped(self, slope):
        if ops.size(slope) != self.size:
            raise ArgumentError(
                f"`{self.name}`: `{self.problem.argument}` must give {self.size} numbers; got {ops.size(slope)}.",
                argument=self.problem.argument,
            )
        if self.complex:
            return ops.cast(ops.reshape(slope, (self.size,)), self.complex)
        if is_complex(slope):
            raise ArgumentTypeError(
                f"`{self.name}`: `{self.problem.argument}` gives complex numbers, but `y0` is real.",
                argument="y0",
                hint="a complex `y0`, as `y0 + 0j`",
            )
        return ops.reshape(slope, (self.size,))

    def value(self, t, y):
        """Return the slope on numbers."""
        slope = self.problem._called(self.time(t), (self.problem.tensor(y), *self.held))
        return np.asarray(numbers(self.name, self._shaped(slope), self.problem.argument), self.start().dtype)

    def jacobian(self, t, y):
        at = self.problem.tensor(np.asarray(y, float))
        call = self.problem._called
        found = functional.jacobian(lambda y: self._shaped(call(self.time(t), (y, *self.held))), at)
        return np.asarray(numbers(self.name, found, self.problem.argument), float)

    def time(self, t):
        return self.problem.tensor(np.asarray(t)) if self.problem.like is not None else t

    def factor(self, h):
        """Return a time step in a dtype that multiplies slopes."""
        return ops.cast(h, self.complex) if self.complex and ops.is_tensor(h) else h

    def start(self) -> np.ndarray:
        return numbers(self.name, self.y0, "y0").astype(complex if self.complex else float)


def _replayed(equation: Equation, method: str, ends: np.ndarray, times, where: tuple | None):
    """Repeat the steps between ``ends`` on tensors; return the solution there, or at the output times in ``where``."""
    kind = getattr(_scipy.integrate, method)
    y = equation.y0
    like = ops.convert_to_tensor(equation(times[0], y))
    y = ops.cast(y, ops.dtype(like))
    tableau, shares, weights = kind.A, kind.C, kind.B
    slope, found = like, []
    outcome = _outputs(ends, where)
    for i in range(len(ends) - 1):
        t, step = times[i], times[i + 1] - times[i]
        h = equation.factor(step)
        stages = [slope]
        for row, share in zip(tableau[1:], shares[1:]):
            stages.append(equation(t + share * step, y + h * _weighed(row, stages)))
        new = y + h * _weighed(weights, stages)
        slope = equation(times[i + 1], new)
        if where is None:
            found.append(new)
        else:
            at = outcome.get(i, [])
            if at:
                between = _interpolant(kind, equation, t, step, y, new, [*stages, slope])
                found += [(k, between(equation.factor((place - t) / step))) for k, place in at]
        y = new
    if where is None:
        return ops.stack([ops.cast(equation.y0, ops.dtype(like)), *found], axis=1)
    first = [(k, ops.cast(equation.y0, ops.dtype(like))) for k, _ in outcome.get(-1, [])]
    return ops.stack([y for _, y in sorted([*first, *found], key=lambda pair: pair[0])], axis=1)


def _outputs(ends: np.ndarray, where) -> dict[int, list]:
    """Return for each step the outputs within it, as pairs of index and time; -1 is the start if there is no step."""
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


def _interpolant(kind, equation: Equation, t, step, y, new, stages: list) -> Callable:
    """Return SciPy's interpolant within a step, a function of the fraction of the step."""
    h = equation.factor(step)
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
        stages = [*stages, equation(t + share * step, y + h * _weighed(row, stages))]
    change, first, last = new - y, stages[0], stages[len(kind.B)]
    terms = [change, h * first - change, 2 * change - h * (last + first)]
    terms += [h * _weighed(row, stages) for row in kind.D]

    def nested(x):
        total = None
        for i, term in enumerate(reversed(terms)):
            total = (term if total is None else total + term) * (x if i % 2 == 0 else 1 - x)
        return y + total

    return nested


def _adjoint_solution(equation: Equation, method: str, options: dict, values: np.ndarray, at: list, times: list):
    """Return the solution with derivatives by the adjoint equation.

    Args:
        values: SciPy's solution, of shape (n, times).
        at: the times; the first is that of ``y0``.
        times: the same times, as numbers or tensors.
    """
    leaves, structure = flatten(list(equation.args))
    inputs = dtypes.FLOATS + dtypes.COMPLEX if equation.complex else dtypes.FLOATS
    places = [i for i, x in enumerate(leaves) if ops.is_tensor(x) and ops.dtype(x) in inputs]
    moving = [i for i, time in enumerate(times) if connected(time)]
    size, count = equation.size, len(places)
    own = {k: v for k, v in options.items() if k in ("rtol", "atol", "max_step") and np.ndim(v) == 0}

    def right(t, y, parameters):
        given = list(leaves)
        for i, parameter in zip(places, parameters):
            given[i] = parameter
        return equation._shaped(equation.problem._called(t, (y, *unflatten(structure, given))))

    def run(y0, *inputs):
        slope = ops.convert_to_tensor(right(equation.time(at[0]), y0, inputs[:count]))  # detects closed-over tensors
        rest = ops.reshape(slope - ops.stop_gradient(slope), (size, 1))
        return constant_like(values, rest) + rest

    def backwards(t, state, *parameters):
        y, adjoint = state[:size], state[size : 2 * size]
        slope, pulled = functional.vjp(lambda y, *p: right(t, y, p), (y, *parameters), adjoint, create_graph=True)
        return ops.concatenate([slope, *[equation.factor(ops.reshape(-1 * p, (-1,))) for p in pulled]])

    def gradient(y0, *inputs, upstream):
        solution, parameters = differentiable(y0, *inputs), inputs[:count]
        known = {**dict(enumerate(at)), **dict(zip(moving, inputs[count:]))}
        adjoint, by_time = ops.zeros_like(y0), {}
        sums = [ops.zeros_like(ops.reshape(p, (-1,))) for p in parameters]
        sums = equation.factor(ops.concatenate(sums)) if sums else ops.zeros_like(y0[:0])

        def by(i, cotangent):
            """Return the derivative by a time: the solution's slope there times the cotangent."""
            slope = right(known[i], solution[:, i], parameters)
            return functional.vjp(lambda t, f: equation.factor(t) * f, (known[i], slope), cotangent, create_graph=True)[
                1
            ][0]

        for i in range(len(at) - 1, 0, -1):
            adjoint = adjoint + upstream[:, i]
            if i in moving:
                by_time[i] = by(i, upstream[:, i])
            if at[i] != at[i - 1] or i in moving or i - 1 in moving:
                state = ops.concatenate([solution[:, i], adjoint, sums])
                back = solve_ivp(
                    backwards, (known[i], known[i - 1]), state, method,
                    None if at[i] == at[i - 1] else [known[i - 1]],  # SciPy's result is empty for an empty interval
                    args=tuple(parameters), gradient="adjoint", **own,
                )  # fmt: skip
                adjoint, sums = back.y[size : 2 * size, -1], back.y[2 * size :, -1]
        if 0 in moving:
            by_time[0] = -by(0, adjoint)
        found, start = [adjoint + upstream[:, 0]], 0
        for p in parameters:
            part = ops.reshape(sums[start : start + ops.size(p)], tuple(p.shape))
            found.append(ops.real(part) if equation.complex and not is_complex(p) else part)
            start += ops.size(p)
        return [*found, *[by_time[i] for i in moving]]

    differentiable = custom_gradient(run, gradient)
    return differentiable(equation.y0, *[leaves[i] for i in places], *[times[i] for i in moving])


@solver
def solve_ivp(
    fun: Function, t_span, y0: Tensor, method="RK45", t_eval=None, dense_output=False, events=None, vectorized=False,
    args=None, *, gradient: Literal["steps", "adjoint"] | None = None, **options,
) -> Any:  # fmt: skip
    """Solution of an initial value problem, ``dy/dt = fun(t, y, *args)``.

    Args:
        fun: takes a time, a vector and ``args`` and returns a vector or list.
        t_span: the first and the last time.
        y0: the values at the first time, a vector (n,), complex for complex equations.
        method: the name of one of SciPy's methods. ``"Radau"``, ``"BDF"`` and ``"LSODA"``, for stiff equations, get the
            exact Jacobian if ``y0`` is real. SciPy has no complex ``"Radau"`` and ``"LSODA"``.
        t_eval: the times of the solution; by default the ends of the steps.
        dense_output, events: only for solutions without derivatives.
        gradient: ``"steps"`` records the steps of explicit methods, which takes memory for each step. ``"adjoint"``
            solves backwards in time; it has derivatives by the times, ``args`` and ``y0`` only, and does not work in
            ``jax.hessian``. The default is ``"steps"`` for explicit methods, else ``"adjoint"``.
        options: SciPy's options ``rtol``, ``atol``, ``max_step``, ...

    Returns:
        SciPy's ``OdeResult``, whose ``y`` is a tensor (n, times).

    Raises:
        ArgumentError: an unknown ``method``, or ``gradient="steps"`` with an implicit one.
        ArgumentTypeError: a complex ``fun`` with a real ``y0``.
        GradientError: with ``"adjoint"``, a function that closes over a tensor with a gradient.

    Gradient:
        Of ``y`` by ``y0``, the tensors that ``fun`` depends on, and the times. It is as accurate as the solution: set
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
    if method in ("Radau", "BDF", "LSODA") and not equation.complex:
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
    if not (moving and found.success and len(found.t)):
        found.y = equation.problem.tensor(found.y)
        return found
    if gradient == "adjoint" or method not in EXPLICIT:
        if wanted is None:
            times = _times(equation, found.t, t_span)
            found.y = _adjoint_solution(equation, method, options, found.y, list(found.t), times)
        else:  # from `y0` at its time
            values = np.concatenate([equation.start()[:, None], found.y], 1)
            times = [t_span[0], *_asked(equation, t_eval, wanted)]
            found.y = _adjoint_solution(equation, method, options, values, [ends[0], *wanted], times)[:, 1:]
        return found
    steps = found if wanted is None else _scipy.integrate.solve_ivp(
        equation.value, ends, equation.start(), method, **options
    )  # fmt: skip
    found.y = _recorded_solution(equation, method, steps.t, t_span, t_eval, wanted)
    return found


def _event(equation: Equation, events):
    """Return SciPy's form of the user's event functions, which take tensors."""
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
    """Return True if the solution depends on something with a gradient."""
    for leaf in flatten([t for t in times if t is not None])[0]:
        if connected(leaf):
            return True
    start = [float(numbers(equation.name, t, "t_span")) for t in times[0][:1]][0]
    return connected(equation.y0) or connected(equation(equation.time(start), equation.y0))


def _times(equation: Equation, ends: np.ndarray, t_span) -> list:
    """Return the ends of the steps, as functions of the interval's ends if these have gradients."""
    first, last = t_span
    if connected(first) or connected(last):
        length = ends[-1] - ends[0]
        shares = (ends - ends[0]) / length if length else np.linspace(0.0, 1.0, len(ends))
        return [first + (last - first) * float(share) for share in shares]
    return [equation.time(t) for t in ends] if equation.problem.like is not None else list(ends)


def _asked(equation: Equation, t_eval, wanted: np.ndarray) -> list:
    """Return the times in ``t_eval``, as numbers or tensors."""
    if any(map(connected, flatten([t_eval])[0])):
        return [t_eval[k] for k in range(len(wanted))]
    return [equation.time(t) for t in wanted] if equation.problem.like is not None else list(wanted)


def _recorded_solution(equation: Equation, method: str, ends: np.ndarray, t_span, t_eval, wanted):
    where = None if wanted is None else (wanted, _asked(equation, t_eval, wanted))
    return _replayed(equation, method, ends, _times(equation, ends, t_span), where)


@solver
def odeint(
    func: Function, y0: Tensor, t: Tensor, args=(), Dfun=None, col_deriv=0, full_output=0, ml=None, mu=None, rtol=None,
    atol=None, tcrit=None, h0=0.0, hmax=0.0, hmin=0.0, ixpr=0, mxstep=0, mxhnil=0, mxordn=12, mxords=5, printmessg=0,
    tfirst=False, *, gradient: Literal["steps", "adjoint"] | None = None,
) -> Any:  # fmt: skip
    """Solution of an initial value problem, ``dy/dt = func(y, t, *args)``, by LSODA.

    Args:
        func: takes a vector, a time (in reverse order with ``tfirst``) and ``args`` and returns a vector or list.
        t: the times of the solution; the first is that of ``y0``.
        Dfun: accepted and ignored, since the Jacobian is exact.
        gradient: ``"steps"``, the default, records the steps of an explicit method of order 8 with the same
            tolerances. ``"adjoint"``, for stiff equations, solves backwards by LSODA; it has derivatives by ``t``,
            ``args`` and ``y0`` only.

    Returns:
        A tensor (times, n); with ``full_output`` also SciPy's dict.

    Raises:
        GradientError: with ``"adjoint"``, a function that closes over a tensor with a gradient.
        ArgumentError: an unknown ``gradient``; no times.
        ArgumentTypeError: a complex ``y0``, which :func:`solve_ivp` takes.

    Gradient:
        By ``y0``, the tensors that ``func`` depends on, and ``t``. It is as accurate as the solution, at least as one
        with ``rtol=1e-6``.
    """
    name = "scipy.integrate.odeint"
    if gradient not in (None, "steps", "adjoint"):
        raise wrong("gradient", "be 'steps', 'adjoint' or None", hint=meant(gradient, ("steps", "adjoint")), of=name)
    args = args if isinstance(args, tuple) else (args,)
    function = func if tfirst or not callable(func) else (lambda t, y, *more: func(y, t, *more))
    equation = Equation(name, "func", function, y0, args, t)
    if equation.complex:
        raise ArgumentTypeError(f"`{name}`: `y0` must be real.", argument="y0", hint="`solve_ivp` for complex numbers")
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
            y = _adjoint_solution(equation, "LSODA", options, values.T, list(times), _asked(equation, t, times))
        elif times[0] == times[-1]:
            y = ops.stack([equation.y0] * len(times), axis=1)
        else:
            ends = (times[0], times[-1])
            options["rtol"] = np.minimum(options["rtol"], 1e-6)  # these steps give only the derivatives
            steps = _scipy.integrate.solve_ivp(equation.value, ends, equation.start(), "DOP853", **options)
            y = _recorded_solution(equation, "DOP853", steps.t, limits, t, times)
            y = constant_like(values.T, y) + (y - ops.stop_gradient(y))
        y = ops.transpose(y)
    return (y, *more) if full_output else y
