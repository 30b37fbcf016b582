"""Branches and conditional loops in compiled functions, and the recorder that ops call for all control flow.

While a function is traced, ``ops.scan()``, ``fori_loop()``, ``cond()``, ``switch()`` and ``while_loop()`` ask the
:class:`Recorder` to record them as one row of the program. It traces the functions given to them (:mod:`.subprograms`)
and records a :class:`Branch`, a :class:`While` or a :class:`.loops.Loop` as the kernel of the row.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backends
from ..autodiff.graph import Rule, key
from ..autodiff.modes import recording
from ..autodiff.state import read
from ..autodiff.variable import Variable, data_of, edges_of, is_active, wrap
from ..errors import ArgumentError, JitError
from ..ops import control, conversion, elementwise
from . import loops, native, rolling
from .agreement import agree, checks, report
from .array import Traced
from .dependencies import Captured
from .program import Program
from .reference import Reference
from .subprograms import Body, call, is_absent, is_differentiable, recorded, zeros_for

FEWEST = 4
"""The fewest iterations of a recorded loop; a shorter loop is unrolled."""


class Recorder:
    """Records loops and branches in a program. A method returns NotImplemented if Python should run the loop instead.

    Args:
        unrolled: True to unroll loops over rows, for passes that look at each operation.
    """

    def __init__(self, program: Program, unrolled: bool = False):
        self.program, self.unrolled = program, unrolled

    def within(self, inner: Program) -> Recorder:
        """Return the recorder of a program inside this one."""
        return Recorder(inner, self.unrolled)

    def scan(self, f: Callable, carry: list, rows: list, count: int, reverse: bool):
        if self.unrolled or count < FEWEST or not all(map(_is_array, (*carry, *rows))):
            return NotImplemented
        return loops.scan(self.program, f, carry, rows, count, reverse)

    def fori_loop(self, step: Callable, leaves: list, lower, upper):
        if not all(map(_is_array, leaves)):
            return NotImplemented
        if not isinstance(lower, int) or not isinstance(upper, int):
            return fori_loop(self.program, step, leaves, lower, upper)
        if self.unrolled or upper - lower < FEWEST:
            return NotImplemented
        # The loop counter is traced, so a function that needs it as an integer (for a Python list, or in R) fails here,
        # and its loop is unrolled instead. The function has then run in part. If it has changed something outside,
        # unrolling would repeat the change, so that raises an error.
        captured = Captured(step)
        try:
            return loops.fori_loop(self.program, step, leaves, lower, upper)
        except Exception:  # the function reads the counter, or changes its closure in R
            captured.refuse_changes()
            return NotImplemented

    def natural(self, inputs: Sequence, function: Callable):
        """Return ``function()``, the value of a function of variables, recorded as its derivatives need it."""
        return function() if self.unrolled else rolling.rolled(self.program, inputs, function)

    def branch(self, op: str, index, functions: list[Callable]):
        return branch(self.program, op, index, functions) if _is_array(index) else NotImplemented

    def while_loop(self, holds: Callable, step: Callable, leaves: list, bound: int | None):
        if not all(map(_is_array, leaves)):
            return NotImplemented
        return while_loop(self.program, holds, step, leaves, bound)


def _is_array(x) -> bool:
    data = data_of(x)
    return isinstance(data, Traced) or getattr(backends.backend_of(data), "yields", False)


# Branches.


def branch(outer: Program, op: str, index, functions: list[Callable]) -> list:
    """Record a branch; return the leaves that the function chosen by an index or truth value gives.

    Raises:
        ArgumentError: the functions give different shapes or dtypes.
    """
    at = outer.written(data_of(index))
    captured = Captured(functools.partial(list, functions))
    # While tracing, all functions run, not only the chosen one. A side effect of one would occur whichever is chosen,
    # so side effects raise an error.
    bodies = [Body(outer, lambda f=f: [f()]) for f in functions]
    captured.refuse_changes()
    kinds = [[(np.shape(x), x.dtype) for x in body.values(0)] for body in bodies]
    for other in kinds[1:]:
        if other != kinds[0]:
            raise ArgumentError(
                f"`{op}`: all functions must give the same shapes and dtypes where the condition is traced; got "
                f"{_described(kinds[0])} and {_described(other)}."
            )
    made = Branch(bodies)
    held = tuple(tuple(body.held) for body in bodies)
    values = (made, at.value, [[x.value for x in xs] for xs in held])
    results = outer.call("cond", call, (made, at, held), values)
    edges = list({key(edge): edge for body in bodies for edge in body.edges}.values())
    if recording.get() and edges:
        return _record(made, at, edges, results)
    read(*edges)
    return [wrap(x) for x in results] if isinstance(index, Variable) else results


def _described(kinds: list) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in kinds)


class Branch:
    """A branch as a kernel: it calls one of several functions."""

    def __init__(self, bodies: list[Body]):
        self.bodies = bodies
        self._functions = [body.emitted() for body in bodies]

    def __call__(self, index, held) -> list:
        i = self._chosen(index)
        return self._functions[i](*held[i])

    def reference_results(self, index, held, rounding: Callable | None = None) -> list:
        """Return the results of the reference executor."""
        i = self._chosen(index)
        return self.bodies[i].reference().outputs_for(held[i], rounding)

    def reference_cost(self, measure: Callable[[Reference], float]) -> float:
        """Return an estimate of what :meth:`reference_results` costs, given a measure of one run of a body."""
        return max(measure(body.reference()) for body in self.bodies)

    def _chosen(self, index) -> int:
        return max(0, min(int(index), len(self._functions) - 1))

    def forget(self) -> None:
        """Release what is used only while compiling."""
        for body in self.bodies:
            body.forget()

    def __eq__(self, other) -> bool:
        return self is other or (
            isinstance(other, Branch)
            and len(self.bodies) == len(other.bodies)
            and all(a.does_as(b) for a, b in zip(self.bodies, other.bodies))
        )

    __hash__ = object.__hash__


def _record(made: Branch, index, edges: list, results: list) -> list:
    """Return the results as variables on the tape; their gradients go through the function that was called."""
    bodies, are_differentiable = made.bodies, [is_differentiable(x) for x in results]

    def vjp(g, saved, node):
        (at,) = saved
        cotangents = [gi if on and not is_absent(gi) else None for gi, on in zip(g, are_differentiable)]

        def of(body: Body) -> Callable:
            def edge_gradients() -> list:
                found = dict(zip(map(key, body.edges), body.vjp([], [], [cotangents])[1]))
                gradients = ((edge, found.get(key(edge))) for edge in edges)
                return [zeros_for(edge, node) if g is None else g for edge, g in gradients]

            return edge_gradients

        return control.choose("cond", at, [of(body) for body in bodies])

    return recorded(Rule("cond", vjp=vjp, slots=(None,)), edges, (index,), results)


# Loops.


class _GradientWithoutBound(JitError):
    """A gradient through a loop whose length is not bounded."""


def while_loop(outer: Program, holds: Callable, step: Callable, leaves: list, bound: int | None) -> list:
    """Record ``ops.while_loop()`` on leaves; return the last state.

    Raises:
        JitError: a gradient goes through a loop without a bound, or a function does not repeat the same operations when
            it is traced again.
    """
    state = [outer.written(data_of(x)) for x in leaves]
    values = [x.value for x in state]
    functions = (lambda state: [[holds(state)]]), (lambda state: [step(state)])
    condition, body = (Body(outer, f, [values]) for f in functions)
    after = body.values(0)
    for first, f in zip((condition, body), functions):
        first.check_again(f, [after])
    if recording.get() and (body.edges or any(map(is_active, leaves))):
        if bound is None:
            raise _GradientWithoutBound(
                "a compiled `while_loop()` has a gradient only with a bound.",
                argument="maximum_iterations",
                hint="pass `maximum_iterations`",
            )
        return control.bounded(holds, step, leaves, bound)
    read(*condition.edges, *body.edges, *edges_of(leaves))
    made = While(condition, body, bound)
    held = tuple(condition.held), tuple(body.held)
    given = (made, values, *([x.value for x in xs] for xs in held))
    results: list = outer.call("while_loop", call, (made, tuple(state), *held), given)
    return [wrap(x) for x in results] if any(isinstance(x, Variable) for x in leaves) else results


def fori_loop(outer: Program, step: Callable, leaves: list, lower, upper) -> list:
    """Record ``ops.fori_loop()`` on leaves between bounds that depend on arguments; return the last state.

    Raises:
        JitError: see :func:`while_loop`.
    """
    first, end = (
        conversion.cast(x, "int64") if isinstance(data_of(x), Traced) else np.asarray(x) for x in (lower, upper)
    )

    def holds(state: list):
        return elementwise.less(state[0], end)

    def counted(state: list) -> list:
        number, *rest = state
        return [elementwise.add(number, 1), *step(number, rest)]

    try:
        return while_loop(outer, holds, counted, [first, *leaves], None)[1:]
    except _GradientWithoutBound:
        raise JitError(
            "a compiled `fori_loop()` has a gradient only where its bounds do not depend on arguments.",
            hint="make them static, or write a `while_loop()` with `maximum_iterations`",
        ) from None


STRETCH = 100_000
"""The number of iterations of an unbounded loop that run natively before an interrupt is noticed."""


ROWS = 1_000
"""The number of iterations that the time estimate assumes for a loop of unknown length."""
FEW = 32
"""The number of iterations that are compared with the reference executor when a loop is compiled."""


class While:
    """A loop that runs while a condition holds, as a kernel.

    Attributes:
        bound: the largest number of iterations, or None.
    """

    def __init__(self, condition: Body, body: Body, bound: int | None):
        self.condition, self.body, self.bound = condition, body, bound
        self._alone: Any = None if body.outer.root.is_native else self._steps

    def __call__(self, state, held_by_condition, held) -> list:
        if self._alone is None:
            # Native code cannot be interrupted. So an unbounded loop runs at most `STRETCH` iterations natively at a
            # time; in between, Python evaluates the condition and handles interrupts.
            within = While(self.condition, self.body, STRETCH) if self.bound is None else self
            groups = state, held_by_condition, held
            self._alone = native.alone("while_loop", within, groups, self.body.values(0)) or self._steps
            if self._alone != self._steps and checks():
                self._prove(*groups)
        state = self._alone(*state, *held_by_condition, *held)
        while self.bound is None and self.condition.emitted()(*state, *held_by_condition)[0]:
            state = self._alone(*state, *held_by_condition, *held)
        return state

    def reference_results(self, state, held_by_condition, held, rounding: Callable | None = None) -> list:
        """Return the last state, by the reference executor."""
        state, _ = self._stepped(state, held_by_condition, held, self.bound, rounding)
        return state

    @property
    def bodies(self) -> list[Body]:
        return [self.condition, self.body]

    def reference_cost(self, measure: Callable[[Reference], float]) -> float:
        """Return an estimate of what :meth:`reference_results` costs, given a measure of one run of a body."""
        steps = ROWS if self.bound is None else min(self.bound, ROWS)
        return steps * (measure(self.condition.reference()) + measure(self.body.reference()))

    def _stepped(self, state, held_by_condition, held, bound: int | None, rounding: Callable | None = None):
        """Return the state after at most ``bound`` iterations, and True if the condition no longer holds."""
        holds, step = self.condition.reference(), self.body.reference()
        numbers = itertools.count() if bound is None else range(bound)
        for _ in numbers:
            if not holds.outputs_for([*state, *held_by_condition], rounding)[0]:
                return state, True
            state = step.outputs_for([*state, *held], rounding)
        return state, False

    def _prove(self, state, held_by_condition, held) -> None:
        """Stop using native code if it gives another state than the reference executor; checks short loops only."""
        few = FEW if self.bound is None else min(self.bound, FEW)
        with np.errstate(all="ignore"):
            want, has_ended = self._stepped(state, held_by_condition, held, few)
            if not has_ended and few != self.bound:
                return  # too long to run twice; later checks of the whole program cover the loop
            found = self._alone(*state, *held_by_condition, *held)

        def rounded(rounding):
            return self._stepped(state, held_by_condition, held, few, rounding)[0]

        if not agree(found, want, rounded):
            self._alone = self._steps
            report("`while_loop` in native code", stacklevel=4)

    def _steps(self, *arrays) -> list:
        n, m = len(self.body.outputs[0]), len(self.condition.held)
        holds, step, state, steps = self.condition.emitted(), self.body.emitted(), list(arrays[:n]), 0
        while (self.bound is None or steps < self.bound) and holds(*state, *arrays[n : n + m])[0]:
            state = step(*state, *arrays[n + m :])
            steps += 1
        return state

    def forget(self) -> None:
        """Release what is used only while compiling."""
        self.condition.forget()
        self.body.forget()

    def __eq__(self, other) -> bool:
        return self is other or (
            isinstance(other, While)
            and self.bound == other.bound
            and self.condition.does_as(other.condition)
            and self.body.does_as(other.body)
        )

    __hash__ = object.__hash__
