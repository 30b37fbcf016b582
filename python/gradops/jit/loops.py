"""Loops over rows in compiled functions: one row of the program for a loop of any length, and its derivative.

:class:`.control.Recorder` calls :func:`scan` and :func:`fori_loop` while a function is traced. They trace the body once
(:class:`.subprograms.Body`) and record a :class:`Loop` as the kernel of one row. The derivative of a loop is another
loop in the opposite direction, which reads the states before each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autodiff.graph import RESULT, Rule
from ..autodiff.modes import recording
from ..autodiff.state import read
from ..autodiff.variable import Variable, data_of, edges_of, is_active, wrap
from ..ops import control, creation, elementwise
from . import native
from .accumulation import deferred_sums
from .agreement import agree, checks, report
from .array import Traced
from .program import Program
from .reference import Reference
from .subprograms import Body, call, is_absent, is_differentiable, recorded, zeros_for


def scan(outer: Program, f: Callable, carry: list, rows: list, count: int, reverse: bool):
    """Record ``ops.scan()`` on leaves; return the last state and the stacked results.

    Returns NotImplemented if nothing in the loop depends on arguments.

    Raises:
        JitError: ``f`` records other operations for the second row than for the first.
    """
    first, second = (count - 1, count - 2) if reverse else (0, 1)
    state, through = ([outer.written(data_of(x)) for x in xs] for xs in (carry, rows))
    at_first, at_second = ([x.value[i] for x in through] for i in (first, second))
    given = (*carry, *rows)
    is_recorded = recording.get() and any(map(is_active, given))
    body = Body(outer, f, ([x.value for x in state], at_first), is_recorded)
    if not body.held and not any(isinstance(data_of(x), Traced) for x in given):
        return NotImplemented  # all values are known, so Python runs the loop and `f` may branch on them
    # Only after tracing it is known whether the function closes over a variable that requires a gradient. Then it is
    # traced again with variables as its arguments: the graph of the first trace leads to the closure only, not to the
    # state that carries gradients from row to row.
    if recording.get() and body.edges and not is_recorded:
        is_recorded = True
        body = Body(outer, f, ([x.value for x in state], at_first), is_recorded)
    if not is_recorded:
        read(*body.edges, *edges_of(given))
    body.check_again(f, (body.values(0), at_second), is_recorded)
    loop = Loop(body, len(carry), count, reverse, is_recorded)
    results = _call(outer, loop, state, through, body.held)
    if is_recorded:
        results = _record(loop, given, [*state, *through], results)
    elif any(isinstance(x, Variable) for x in given):
        results = [wrap(x) for x in results]
    return results[: loop.carries], results[loop.carries : loop.carries + loop.stacked]


def fori_loop(outer: Program, step: Callable, leaves: list, lower: int, upper: int):
    """Record ``ops.fori_loop()`` with known bounds as a scan whose state starts with the counter; return the state."""

    def counted(state: list, rows: list) -> tuple[list, list]:
        number, *leaves = state
        return [elementwise.add(number, 1), *step(number, leaves)], []

    done = scan(outer, counted, [np.asarray(lower), *leaves], [], upper - lower, False)
    return done if done is NotImplemented else done[0][1:]


def _call(outer: Program, loop: Loop, state: list, rows: list, held: list) -> list:
    arguments = (loop, tuple(state), tuple(rows), tuple(held))
    values = [[x.value for x in xs] for xs in (state, rows, held)]
    if all(x.place in outer.folded for x in (*state, *rows, *held)):
        return outer.fold(loop(*values))
    return outer.call("scan", call, arguments, (loop, *values))


FEW = 4
"""The number of rows that are compared with the reference executor when a loop is compiled."""


class Loop:
    """A loop over rows, as a kernel.

    Attributes:
        carries: the number of arrays of the state.
        stacked: the number of results of each row.
        order: the indices of the rows in the order of the loop.
        of_row: shapes and dtypes of the results of each row.
        kept: True if the states before each row are returned as well, for the derivative.
    """

    def __init__(self, body: Body, carries: int, count: int, reverse: bool, kept: bool):
        self.body, self.carries, self.count, self.reverse, self.kept = body, carries, count, reverse, kept
        self.stacked = len(body.outputs[1])
        self.of_row = [_kind(y) for y in body.values(1)]
        self.order = range(count - 1, -1, -1) if reverse else range(count)
        self._alone: Any = None if body.outer.root.is_native else False
        self._shorter: Any = None

    def __call__(self, state, rows, held) -> list:
        """Return the last state, the results of all rows, and if ``kept`` the states before each row."""
        self.prepare(state, rows, held)
        if self._alone:
            return self._alone(*state, *rows, *held)
        return self._run(state, rows, held)

    def prepare(self, state, rows, held) -> None:
        """Compile the loop for arguments like these, unless that is done."""
        if self._alone is None:
            self._alone = self._compiled(state, rows, held)
            if self._alone and checks() and not self._is_right(state, rows, held):
                self._alone = False
            if not self._alone:
                self._shorter = deferred_sums(self)
                if self._shorter is None:
                    self.body.emitted()

    def _run(self, state, rows, held) -> list:
        if self._shorter is None:
            return self._run_rows(self.body.emitted(), state, rows, held, self.order)
        return self._shorter(state, rows, held)

    def reference_results(
        self, state, rows, held, rounding: Callable | None = None, order: range | None = None
    ) -> list:
        """Return the results of the reference executor, for the rows in ``order`` only if it is given."""
        body = self.body.reference()

        def step(*arrays):
            return body.outputs_for(arrays, rounding)

        return self._run_rows(step, state, rows, held, self.order if order is None else order)

    @property
    def bodies(self) -> list[Body]:
        return [self.body]

    def reference_cost(self, measure: Callable[[Reference], float]) -> float:
        """Return an estimate of what :meth:`reference_results` costs, given a measure of one run of a body."""
        return self.count * measure(self.body.reference())

    def _run_rows(self, body: Callable, state, rows, held, order: range) -> list:
        n = self.carries
        before = [self._room(_kind(x)) for x in state] if self.kept else []
        after = [self._room(kind) for kind in self.of_row]
        state = list(state)
        for i in order:
            results = body(*state, *[x[i] for x in rows], *held)
            for room, x in zip(before, state):
                room[i] = x
            for room, y in zip(after, results[n:]):
                room[i] = y
            state = results[:n]
        return [*state, *after, *before]

    def _is_right(self, state, rows, held) -> bool:
        """True if native code gives the reference executor's results for the first rows."""
        order = self.order[:FEW]
        if not order:
            return True

        def selected_rows(results: list) -> list:
            at = list(order)
            return [*results[: self.carries], *[x[at] for x in results[self.carries :]]]

        def rounded(rounding):
            return selected_rows(self.reference_results(state, rows, held, rounding, order))

        with np.errstate(all="ignore"):
            native_results = self._alone.first_rows(len(order), order[-1])(*state, *rows, *held)
            if native_results is None:
                return True  # native code leaves these rows to NumPy
            want = selected_rows(self.reference_results(state, rows, held, None, order))
        if agree(selected_rows(native_results), want, rounded, len(order) * self.body.reference().executed_rows()):
            return True
        report("`scan` in native code", stacklevel=4)
        return False

    def _room(self, kind: tuple[tuple, np.dtype]) -> np.ndarray:
        shape, dtype = kind
        return np.empty((self.count, *shape), dtype)

    def _compiled(self, state, rows, held):
        """Return the whole loop as native code; False if it cannot be compiled."""
        examples = [*self.body.values(0), *map(self._room, self.of_row)]
        examples += [self._room(_kind(x)) for x in state] if self.kept else []
        return native.alone("scan", self, (state, rows, held), examples) or False

    def forget(self) -> None:
        """Release what is used only while compiling."""
        self.body.forget()

    def __eq__(self, other) -> bool:
        return self is other or (
            isinstance(other, Loop)
            and (self.carries, self.count, self.reverse, self.kept)
            == (other.carries, other.count, other.reverse, other.kept)
            and self.body.does_as(other.body)
        )

    __hash__ = object.__hash__


def _kind(x) -> tuple[tuple, np.dtype]:
    return np.shape(x), np.asarray(x).dtype


# Derivatives.


def _record(loop: Loop, given: tuple, inputs: list, results: list) -> list:
    """Return the results as variables on the tape."""
    edges = [(x._node or x) if is_active(x) else None for x in given]
    rule = Rule("scan", vjp=_vjp_of(loop, edges), slots=(tuple(range(len(given))), RESULT))
    return recorded(rule, (*edges, *loop.body.edges), (inputs, results), results)


def _vjp_of(loop: Loop, edges: list) -> Callable:
    """Return the derivative rule of a loop: a loop in the opposite direction, over the states before each row."""
    body, n, stacked, count = loop.body, loop.carries, loop.stacked, loop.count

    def vjp(g, saved, node):
        inputs, results = saved
        state_flags = [is_differentiable(x) for x in inputs[:n]]
        row_flags = [is_differentiable(x) and e is not None for x, e in zip(inputs[n:], edges[n:])]
        given = [None if is_absent(x) else x for x in g]
        result_flags = [x is not None and is_differentiable(x) for x in given[n : n + stacked]]
        # The states before each row are also results of this step, which the backward loop reads, so a second
        # derivative gives them cotangents. Ignoring these would drop the rule's dependence on the
        # states, and second derivatives would be wrong without an error.
        before_flags = [on and x is not None for x, on in zip(given[n + stacked :], state_flags)]
        before = [x if on else data_of(x) for x, on in zip(results[n + stacked :], state_flags)]

        def step(state, x):
            states, rows, result_cotangents, state_cotangents = x
            cotangents = [_filled(state[0], state_flags), _filled(result_cotangents, result_flags)]
            found, others = body.vjp([states, rows], [state_flags, row_flags], cotangents)
            direct = _filled(state_cotangents, before_flags)
            new = [_or_zeros(_sum(found[0][i], direct[i]), states[i]) for i in _which(state_flags)]
            total = [t if g is None else elementwise.add(t, g) for t, g in zip(state[1], others)]
            return (new, total), [_or_zeros(found[1][i], rows[i]) for i in _which(row_flags)]

        start = [g[i] for i in _which(state_flags)]
        totals = [zeros_for(edge, node) for edge in body.edges]
        rows = [
            before,
            inputs[n:],
            [given[n + i] for i in _which(result_flags)],
            [given[n + stacked + i] for i in _which(before_flags)],
        ]
        (first_gradients, edge_gradients), row_gradients = control.scan(
            step, (start, totals), rows, length=count, reverse=not loop.reverse
        )
        return [*_filled(first_gradients, state_flags), *_filled(row_gradients, row_flags), *edge_gradients]

    return vjp


def _which(wanted: list[bool]) -> list[int]:
    return [i for i, on in enumerate(wanted) if on]


def _filled(found: list, wanted: list[bool]) -> list:
    """Put the items of ``found`` where ``wanted`` is True, and None elsewhere."""
    rest = iter(found)
    return [next(rest) if on else None for on in wanted]


def _sum(a, b):
    return b if a is None else a if b is None else elementwise.add(a, b)


def _or_zeros(g, like):
    return creation.zeros_like(data_of(like)) if g is None else g
