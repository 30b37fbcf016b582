"""Initial value problems of ordinary differential equations.

SciPy finds the steps and the events on numbers. ``gradient="steps"`` repeats the steps with recording, so derivatives
of all orders are those of the computed numbers. ``gradient="adjoint"`` records nothing and solves the adjoint equation
backwards in time (Pontryagin 1962; Chen et al. 2018), by the same method. ``gradient="checkpoints"`` integrates again
between saved states (Griewank 1992; Serban & Hindmarsh 2005). The time of an event is a root, differentiated by
:mod:`gradops.functional.implicit`.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ... import _scipy, dtypes, functional, ops
from ..._tree import flatten, unflatten
from ...annotations import Function, Tensor
from ...errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError, meant
from ...flow import checkpoint, custom_gradient
from ...functional.implicit import limit_order
from ...functional.symbolic_zeros import connected
from .._solving import Problem, joined, numbers, solution, solver
from .._tensors import constant_like, inexact, is_complex, wrong

__all__ = ["odeint", "solve_ivp"]

EXPLICIT = ("RK23", "RK45", "DOP853")
METHODS = (*EXPLICIT, "Radau", "BDF", "LSODA")
RULES = ("steps", "checkpoints", "adjoint")


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

    def replace_args(self, args: tuple) -> Equation:
        """Return the equation with other arguments."""
        found = copy.copy(self)
        found.args = found.held = args
        return found

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


def _replayed(whole: Equation, method: str, y, ends: np.ndarray, times, places, rule: str, keep=True) -> tuple:
    """Repeat the steps between ``ends`` on tensors; return lists of the solution there and at ``places``.

    Args:
        y: the solution at the first of the ends.
        times: the ends, as numbers or tensors.
        places: pairs of a number and the same time as a number or tensor, in any order.
        rule: ``"checkpoints"`` saves about the square root of the number of steps, and the backward pass repeats the
            steps between them; else all results are saved.
        keep: False to return nothing at the ends.
    """
    kind = getattr(_scipy.integrate, method)
    slope = ops.convert_to_tensor(whole(times[0], y))
    y = first = ops.cast(y, ops.dtype(slope))
    count, wanted = len(ends) - 1, _outputs(ends, places)
    size = math.isqrt(count - 1) + 1 if rule == "checkpoints" and count else max(count, 1)

    def steps(begin: int, y, slope, args):
        at_ends, outputs, equation = [], [], whole.replace_args(args)
        for i in range(begin, min(begin + size, count)):
            t, step = times[i], times[i + 1] - times[i]
            new, stages = _stepped(kind, equation, t, step, y, slope)
            slope = equation(times[i + 1], new)
            if i in wanted:
                between = _interpolant(kind, equation, t, step, y, new, [*stages, slope])
                outputs += [between(equation.factor((time - t) / step)) for _, time in wanted[i]]
            at_ends += [new] if keep else []
            y = new
        return y, slope, outputs, at_ends

    found: list = []
    at_ends = [first]
    for begin in range(0, count, size):
        run = functools.partial(steps, begin)
        y, slope, outputs, more = (checkpoint(run) if rule == "checkpoints" else run)(y, slope, whole.args)
        found, at_ends = found + outputs, at_ends + more
    order = [k for i in range(count) for k, _ in wanted.get(i, [])]
    return at_ends, [found[k] for k in np.argsort(order)]


def _stepped(kind, equation: Equation, t, step, y, slope) -> tuple:
    """Return the solution after a step of an explicit method, and the slopes within the step."""
    h, stages = equation.factor(step), [slope]
    for row, share in zip(kind.A[1:], kind.C[1:]):
        stages.append(equation(t + share * step, y + h * _weighed(row, stages)))
    return y + h * _weighed(kind.B, stages), stages


def _moved(equation: Equation, t, y, by):
    """Return the solution that is ``y`` at ``t`` at the time ``t + by``, where ``by`` is 0 and has derivatives.

    A step of third order has the solution's derivatives by its length up to the third.
    """
    t = equation.time(t) if isinstance(t, float) else t
    slope = ops.convert_to_tensor(equation(t, y))
    return limit_order(_stepped(_scipy.integrate.RK23, equation, t, by, ops.cast(y, ops.dtype(slope)), slope)[0])


def _offset(time):
    """Return 0 with the derivatives of a time."""
    return time - ops.stop_gradient(time) if connected(time) else 0.0


def _outputs(ends: np.ndarray, places) -> dict[int, list]:
    """Return for each step the places within it, as pairs of index and time."""
    found: dict[int, list] = {}
    sign = 1.0 if ends[-1] >= ends[0] else -1.0
    for k, (place, time) in enumerate(places):
        step = int(np.searchsorted(sign * ends, sign * place)) - 1
        found.setdefault(min(max(step, 0), len(ends) - 2), []).append((k, time))
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


def _adjoint_solution(equation: Equation, y0, method: str, options: dict, values: np.ndarray, at, saved=None):
    """Return the solution with derivatives by the adjoint equation.

    Args:
        y0: the start, with derivatives.
        values: SciPy's solution, of shape (n, times).
        at: the times, in order; the first is that of ``y0``.
        saved: None to solve for the solution backwards, too. Else the indices of the times that are checkpoints: the
            solution is solved for forwards again between them, which is stable for stiff equations, and interpolated.
            This has first derivatives only.
    """
    leaves, structure = flatten(list(equation.args))
    inputs = dtypes.FLOATS + dtypes.COMPLEX if equation.complex else dtypes.FLOATS
    places = [i for i, x in enumerate(leaves) if ops.is_tensor(x) and ops.dtype(x) in inputs]
    size = equation.size
    own = {k: v for k, v in options.items() if k in ("rtol", "atol", "max_step") and np.ndim(v) == 0}

    def replace_parameters(parameters) -> Equation:
        given = list(leaves)
        for i, parameter in zip(places, parameters):
            given[i] = parameter
        return equation.replace_args(unflatten(structure, given))

    def right(t, y, parameters):
        return replace_parameters(parameters)(t, y)

    def run(y0, *parameters):
        slope = ops.convert_to_tensor(right(equation.time(at[0]), y0, parameters))  # detects closed-over tensors
        rest = ops.reshape(slope - ops.stop_gradient(slope), (size, 1))
        return constant_like(values, rest) + rest

    def slopes(t, y, adjoint, parameters):
        """Return the slopes of the solution, and of the adjoint and the parameters' sums."""
        slope, pulled = functional.vjp(lambda y, *p: right(t, y, p), (y, *parameters), adjoint, create_graph=True)
        return slope, ops.concatenate([equation.factor(ops.reshape(-1 * p, (-1,))) for p in pulled])

    def backwards(t, state, *parameters):
        return ops.concatenate(slopes(t, state[:size], state[size : 2 * size], parameters))

    @functools.lru_cache(1)
    def again(begin: int, end: int, known: Equation):
        """Return the solution between two times, on numbers."""
        span, more = (at[begin], at[end]), dict(options)
        if more.get("jac") == equation.jacobian:
            more["jac"] = known.jacobian
        return _checked(
            equation, _scipy.integrate.solve_ivp(known.value, span, values[:, begin], method, None, True, **more)
        ).sol

    def along(i: int, known: Equation, parameters: list) -> Callable:
        """Return the slope of the adjoint and the sums on the interval that ends at a time."""
        after = int(np.searchsorted(saved, i))
        between = again(saved[after - 1], saved[after] if after < len(saved) else len(at) - 1, known)

        def slope(t, state):
            y = equation.problem.tensor(between(float(ops.convert_to_numpy(t))))
            return slopes(t, y, state[:size], parameters)[1]

        return slope

    def gradient(y0, *parameters, upstream):
        values = differentiable(y0, *parameters)
        adjoint, held = ops.zeros_like(y0), [ops.stop_gradient(p) for p in parameters]
        known = replace_parameters(held)
        sums = [ops.zeros_like(ops.reshape(p, (-1,))) for p in parameters]
        sums = equation.factor(ops.concatenate(sums)) if sums else ops.zeros_like(y0[:0])
        for i in range(len(at) - 1, 0, -1):
            adjoint = adjoint + upstream[:, i]
            if at[i] == at[i - 1]:  # SciPy's result is empty for an empty interval
                continue
            state, function, given, first = ops.concatenate([adjoint, sums]), backwards, tuple(parameters), size
            if saved is None:
                state = ops.concatenate([values[:, i], state])
            else:
                state, function, given, first = ops.stop_gradient(state), along(i, known, held), (), 0
            back = solve_ivp(
                function, (at[i], at[i - 1]), state, method, [at[i - 1]], args=given, gradient="adjoint", **own
            )
            _checked(equation, back)
            adjoint, sums = back.y[first : first + size, -1], back.y[first + size :, -1]
        found, start = [adjoint + upstream[:, 0]], 0
        for p in parameters:
            part = ops.reshape(sums[start : start + ops.size(p)], tuple(p.shape))
            found.append(ops.real(part) if equation.complex and not is_complex(p) else part)
            start += ops.size(p)
        return found if saved is None else _first_order([y0, *parameters, upstream], found)

    differentiable = custom_gradient(run, gradient)
    return differentiable(y0, *[leaves[i] for i in places])


def _checked(equation: Equation, found):
    """Return SciPy's result for a backward pass, or raise its message as an error."""
    if not found.success:
        raise GradientError(f"`{equation.name}` has no derivative here: {found.message}")
    return found


def _first_order(inputs: list, values: list) -> list:
    """Return numbers as a function of inputs whose derivative is an error."""

    def error(*_, upstream):
        raise GradientError(
            '`gradient="checkpoints"` of an implicit method has first derivatives in reverse mode only.',
            argument="gradient",
            hint='`gradient="adjoint"`',
        )

    values = ops.stop_gradient(values)
    return custom_gradient(lambda *_: values, error)(*inputs)


class Constant:
    """SciPy's solution as tensors without derivatives.

    Args:
        found: SciPy's result.
        steps: pairs of the time and the solution at the ends of steps, if they are noted.
        t_span, t_eval: the user's times.
        rule: ``gradient`` of :func:`solve_ivp`.
    """

    def __init__(self, equation: Equation, method: str, options: dict, found, steps: list, t_span, t_eval, rule: str):
        self.equation, self.method, self.options, self.rule, self.steps = equation, method, options, rule, steps
        self.t, self.y, self.sol, self.terminated = np.asarray(found.t), found.y, found.sol, found.status == 1
        self.t_span, self.t_eval = t_span, t_eval
        self.event_times = [float(t) for ts in found.t_events or [] for t in ts]
        self.event_values = [y for ys in found.y_events or [] for y in ys]

    def outputs(self) -> tuple:
        """Return the times, a list, the solution there, a tensor (n, times), and at each event, a list of vectors."""
        tensor = self.equation.problem.tensor
        return list(self.t), tensor(self.y), [tensor(y) for y in self.event_values]

    def between(self, places: np.ndarray):
        """Return the solution at times within the interval, a tensor (n, times)."""
        return self.equation.problem.tensor(self.sol(places))

    def _times(self, ends) -> list:
        """Return the ends of the steps as numbers or tensors."""
        return _times(self.equation, ends, (self.t_span[0], float(ends[-1]) if self.terminated else self.t_span[1]))

    def _asked(self, ends: list) -> list:
        """Return the times of the solution as numbers or tensors."""
        return ends[: len(self.t)] if self.t_eval is None else _asked(self.equation, self.t_eval, self.t)


class Recorded(Constant):
    """The solution by repeated steps of an explicit method."""

    def outputs(self) -> tuple:
        self.ends = np.array([t for t, _ in self.steps])
        self.times = self._times(self.ends)
        times = self._asked(self.times)
        places = [] if self.t_eval is None else list(zip(self.t, times))
        count = len(places)
        places += [(t, self.equation.time(t)) for t in self.event_times]
        keep = self.t_eval is None or self.rule == "steps" and self.sol is not None
        self.at_ends, found = self._replayed(self.equation.y0, 0, len(self.ends), places, keep)
        columns = (self.at_ends if self.t_eval is None else found)[: len(self.t)]
        y = ops.stack(columns, axis=1) if columns else self.equation.problem.tensor(self.y)
        return times, y, found[count:]

    def _replayed(self, y, begin: int, end: int, places: list, keep: bool = False) -> tuple:
        ends, times = self.ends[begin:end], self.times[begin:end]
        return _replayed(self.equation, self.method, y, ends, times, places, self.rule, keep)

    def between(self, places):
        pairs = [(place, self.equation.time(place)) for place in places]
        if self.rule == "checkpoints":
            return ops.stack(self._replayed(self.equation.y0, 0, len(self.ends), pairs)[1], axis=1)
        found: dict = {}
        for i, within in _outputs(self.ends, pairs).items():
            chosen = [k for k, _ in within]
            found.update(zip(chosen, self._replayed(self.at_ends[i], i, i + 2, [pairs[k] for k in chosen])[1]))
        return ops.stack([found[k] for k in range(len(pairs))], axis=1)


class Adjoint(Constant):
    """The solution with derivatives by the adjoint equation."""

    def outputs(self) -> tuple:
        count, times = len(self.t), self._asked(self._times(self.t) if self.t_eval is None else [])
        found = self._solution([*self.t, *self.event_times], [*np.transpose(self.y), *self.event_values])
        columns = [found[:, k] for k in range(count, count + len(self.event_times))]
        y = found[:, :count] if count else self.equation.problem.tensor(self.y)  # SciPy's for no times
        return times, _shifted(self.equation, self.t, y, times), columns

    def _solution(self, places: list, values: Any):
        """Return the solution at numbers, in any order, with SciPy's values there."""
        equation, y0 = self.equation, self.equation.y0
        start, last = (float(numbers(equation.name, t, "t_span")) for t in self.t_span)
        if connected(self.t_span[0]):
            y0 = _moved(equation, self.t_span[0], y0, -_offset(self.t_span[0]))
        saved = self.steps[:: math.isqrt(len(self.steps))] if self.rule == "checkpoints" else []
        at = np.array([start, *[t for t, _ in saved], *places])
        values = [equation.start(), *[y for _, y in saved], *values]
        order = np.argsort(at if last >= start else -at, kind="stable")
        back = np.argsort(order)
        indices = sorted(back[: 1 + len(saved)]) if self.rule == "checkpoints" else None
        values = np.stack(values, 1)[:, order]
        y = _adjoint_solution(equation, y0, self.method, self.options, values, at[order], indices)
        return ops.take(y, back[len(back) - len(places) :], 1)

    def between(self, places):
        low, high = self.sol.t_min, self.sol.t_max
        if np.any((places < low) | (places > high)):
            raise ArgumentError(
                f"`{self.equation.name}`: `t` must be between {low} and {high} for a derivative.", argument="t"
            )
        return self._solution(list(places), list(np.transpose(self.sol(places))))


class Dense:
    """The solution of an equation at any time, as SciPy's ``OdeSolution``.

    Attributes:
        t_min, t_max: the interval.
        ts: the ends of the steps.
    """

    def __init__(self, solved: Constant):
        self._solved = solved
        self.t_min, self.t_max, self.ts = solved.sol.t_min, solved.sol.t_max, solved.sol.ts

    def __call__(self, t):
        """Return the solution at a time, (n,), or at a vector of times, (n, times)."""
        equation = self._solved.equation
        places = np.asarray(numbers(equation.name, t, "t"), float)
        if places.ndim > 1:
            raise ShapeError(f"`{equation.name}`: `t` must be a number or vector; got {places.shape}.", argument="t")
        times = [t[k] for k in range(len(places))] if places.ndim else [t]
        flat = places.reshape(-1)
        y = _shifted(equation, flat, self._solved.between(flat), times)
        return y if places.ndim else y[:, 0]


@solver
def solve_ivp(
    fun: Function, t_span, y0: Tensor, method="RK45", t_eval=None, dense_output=False, events=None, vectorized=False,
    args=None, *, gradient: Literal["steps", "checkpoints", "adjoint"] | None = None, **options,
) -> Any:  # fmt: skip
    """Solution of an initial value problem, ``dy/dt = fun(t, y, *args)``.

    Args:
        fun: takes a time, a vector and ``args`` and returns a vector or list.
        t_span: the first and the last time.
        y0: the values at the first time, a vector (n,), complex for complex equations.
        method: the name of one of SciPy's methods. ``"Radau"``, ``"BDF"`` and ``"LSODA"``, for stiff equations, get the
            exact Jacobian if ``y0`` is real. SciPy has no complex ``"Radau"`` and ``"LSODA"``.
        t_eval: the times of the solution; by default the ends of the steps.
        dense_output: True for a ``sol`` that gives the solution at any time.
        events: a function of a time, a vector and ``args``, or a list of such functions. SciPy finds the times at which
            they are 0, by their attributes ``terminal`` and ``direction``.
        gradient: ``"steps"`` records the steps of explicit methods, which takes memory for each step.
            ``"checkpoints"`` saves the solution at the square root of as many times, and the backward pass repeats each
            step once; the derivatives are the same. ``"adjoint"`` records nothing and solves backwards in time; it
            has derivatives by the times, ``args`` and ``y0`` only, and does not work in ``jax.hessian``. For implicit
            methods ``"checkpoints"`` is the adjoint equation, with a solution that is integrated again from each
            checkpoint and not backwards: it is faster for stiff equations, and has first derivatives only. The default
            is ``"steps"`` for explicit methods, else ``"adjoint"``.
        options: SciPy's options ``rtol``, ``atol``, ``max_step``, ...

    Returns:
        SciPy's ``OdeResult``. ``y`` is a tensor (n, times). For each event ``t_events`` has a tensor (m,) of its times
        and ``y_events`` one (m, n) of the solution there. ``sol`` takes a time, or a vector of them, and returns a
        tensor (n,) or (n, times). ``t`` is an array, or a tensor if a time has a gradient.

    Raises:
        ArgumentError: an unknown ``method``, or ``gradient="steps"`` with an implicit one; a time outside of the
            interval for the ``sol`` of an adjoint solution.
        ArgumentTypeError: a complex ``fun`` with a real ``y0``.
        GradientError: with an adjoint equation, a function that closes over a tensor with a gradient; an event function
            that only touches 0; a fourth derivative by the time of an event, of ``sol`` or of an adjoint solution.
        JitError: in a compiled function and under ``vmap``, where values are not known.

    Gradient:
        Of ``y``, ``t_events``, ``y_events`` and ``sol(t)`` by ``y0``, the tensors that ``fun`` and ``events`` depend
        on, and the times. It is as accurate as the solution: set ``rtol`` and ``atol``. The time of an event has the
        derivative of the event function, divided by minus its slope along the solution. After a terminal event the last
        of ``t`` and ``y`` move with it. The number of events is constant.
    """
    name = "scipy.integrate.solve_ivp"
    args = () if args is None else tuple(args) if isinstance(args, (list, tuple)) else (args,)
    if not isinstance(method, str) or method not in METHODS:
        raise wrong("method", f"be one of {', '.join(METHODS)}", hint=meant(method, METHODS), of=name)
    rule = _rule(name, gradient, "steps" if method in EXPLICIT else "adjoint")
    if rule == "steps" and method not in EXPLICIT:
        raise ArgumentError(f"`{name}`: the steps of {method!r} are not recorded.", argument="gradient")
    equation = Equation(name, "fun", fun, y0, args, (t_span, t_eval))
    ends = [float(numbers(name, t, "t_span")) for t in t_span]
    wanted = None if t_eval is None else _vector(name, t_eval, "t_eval")
    if method in ("Radau", "BDF", "LSODA") and not equation.complex:
        options = {"jac": equation.jacobian, **options}
    crossings = None if events is None else [_event(equation, event) for event in _listed(events)]
    moving = _moving(equation, t_span, t_eval)
    kind = Constant
    if moving:
        kind = Recorded if method in EXPLICIT and rule != "adjoint" else Adjoint
    steps: list = []

    def step(t, y):
        """Note the end of a step: SciPy calls an event function there, and this one is never 0."""
        steps.append((t, y if kind is Adjoint else None))
        return 1.0

    noted = [step] if moving and rule != "adjoint" else []
    found = _scipy.integrate.solve_ivp(
        equation.value, ends, equation.start(), method, wanted, dense_output,
        [*noted, *[value for _, value in crossings or []]] or None, False, **options,
    )  # fmt: skip
    if noted:
        del found.t_events[0], found.y_events[0]
    if crossings is None:
        found.t_events = found.y_events = None
    if not found.success:
        kind = Constant
    solved = kind(equation, method, options, found, steps, t_span, t_eval, rule)
    times, found.y, at_events = solved.outputs()
    if crossings is not None:
        problems = [problem for (problem, _), ts in zip(crossings, found.t_events) for _ in ts]
        moved = [_crossing(equation, *given) for given in zip(problems, solved.event_times, at_events)]
        final = _final(found, events) if wanted is None else None
        if final is not None:
            times[-1], last = moved[final]
            found.y = ops.concatenate([found.y[:, :-1], ops.expand_dims(last, 1)], 1)
        for k, ts in enumerate(found.t_events):
            own, moved = moved[: len(ts)], moved[len(ts) :]
            found.t_events[k] = _stacked([t for t, _ in own], equation.problem.tensor(ts))
            found.y_events[k] = _stacked([y for _, y in own], equation.problem.tensor(found.y_events[k]))
    found.t = _stacked(times, found.t)
    found.sol = Dense(solved) if dense_output else None
    return found


def _rule(name: str, gradient, default: str) -> str:
    if gradient not in (None, *RULES):
        allowed = f"be {', '.join(map(repr, RULES))} or None"
        raise wrong("gradient", allowed, hint=meant(gradient, RULES), of=name)
    return gradient or default


def _listed(events) -> list:
    return list(events) if isinstance(events, (list, tuple)) else [events]


def _event(equation: Equation, event) -> tuple:
    """Return the problem of an event function, which takes tensors, and SciPy's form of the function."""
    problem = Problem(equation.name, "events", event, 0.0, (equation.y0, *equation.args), scalar=True)

    def value(t, y):
        at = problem._called(equation.time(t), (equation.problem.tensor(y), *equation.held))
        return float(numbers(equation.name, at, "events"))

    for setting in ("terminal", "direction"):
        if hasattr(event, setting):
            setattr(value, setting, getattr(event, setting))
    return problem, value


def _crossing(equation: Equation, problem: Problem, t: float, y) -> tuple:
    """Return the time of an event at ``t`` and the solution ``y`` there, with derivatives."""
    at = equation.time(t)

    def after(time):
        return _moved(equation, at, y, time - at)

    def residual(time):
        return problem._called(time, (after(time), *equation.args))

    if not connected(residual(at)):
        return at, y
    time = solution(equation.name, residual, at, "the event function has no slope along the solution there")
    return time, after(time)


def _final(found, events) -> int | None:
    """Return the index, among the times of all events, of the event that ended the solution."""
    count = 0
    for event, ts in zip(_listed(events), found.t_events):
        count += len(ts)
        most = int(getattr(event, "terminal", 0) or 0)
        if found.status == 1 and 0 < most <= len(ts) and ts[-1] == found.t[-1]:
            return count - 1
    return None


def _stacked(parts: list, constant):
    """Return a list of tensors as one, or a constant of the same value if no part has a gradient."""
    return ops.stack([ops.convert_to_tensor(x) for x in parts]) if any(map(connected, parts)) else constant


def _shifted(equation: Equation, at, y, times: list):
    """Return the solution ``y`` at numbers as the solution at times of the same values, with derivatives by them."""
    if not any(map(connected, times)):
        return y
    return ops.stack([_moved(equation, t, y[:, k], _offset(times[k])) for k, t in enumerate(at)], axis=1)


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


@solver
def odeint(
    func: Function, y0: Tensor, t: Tensor, args=(), Dfun=None, col_deriv=0, full_output=0, ml=None, mu=None, rtol=None,
    atol=None, tcrit=None, h0=0.0, hmax=0.0, hmin=0.0, ixpr=0, mxstep=0, mxhnil=0, mxordn=12, mxords=5, printmessg=0,
    tfirst=False, *, gradient: Literal["steps", "checkpoints", "adjoint"] | None = None,
) -> Any:  # fmt: skip
    """Solution of an initial value problem, ``dy/dt = func(y, t, *args)``, by LSODA.

    Args:
        func: takes a vector, a time (in reverse order with ``tfirst``) and ``args`` and returns a vector or list.
        t: the times of the solution; the first is that of ``y0``.
        Dfun: accepted and ignored, since the Jacobian is exact.
        gradient: ``"steps"``, the default, records the steps of an explicit method of order 8 with the same
            tolerances, and ``"checkpoints"`` repeats them as in :func:`solve_ivp`. ``"adjoint"``, for stiff equations,
            solves backwards by LSODA; it has derivatives by ``t``, ``args`` and ``y0`` only.

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
    rule = _rule(name, gradient, "steps")
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
        asked = _asked(equation, t, times)
        if rule == "adjoint":
            y0 = _moved(equation, asked[0], equation.y0, -_offset(asked[0]))
            y = _adjoint_solution(equation, y0, "LSODA", options, values.T, times)
            y = _shifted(equation, times, y, asked)
        elif times[0] == times[-1]:
            y = ops.stack([equation.y0] * len(times), axis=1)
        else:
            ends = (times[0], times[-1])
            options["rtol"] = np.minimum(options["rtol"], 1e-6)  # these steps give only the derivatives
            steps = _scipy.integrate.solve_ivp(equation.value, ends, equation.start(), "DOP853", **options)
            at_ends, places = _times(equation, steps.t, limits), list(zip(times, asked))
            y = _replayed(equation, "DOP853", equation.y0, steps.t, at_ends, places, rule, False)[1]
            y = ops.stack(y, axis=1)
            y = constant_like(values.T, y) + (y - ops.stop_gradient(y))
        y = ops.transpose(y)
    return (y, *more) if full_output else y
