"""Jacobians and their products on the tape: one recording of the function, through which vectors are propagated.

:class:`Recording` runs the function on fresh variables. The members of the contract ``Derivatives`` at the end push or
pull vectors through it; :func:`jacobian` propagates unit vectors in batches if all rules on the way allow it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from .. import backends
from .._display import track
from ..autodiff import engine, gradients, pushforward, record, state
from ..autodiff.derivatives import Others, detach_aux, fresh, linked
from ..autodiff.graph import key, nodes_of
from ..autodiff.modes import ensured_recording
from ..autodiff.variable import Variable, data_of, is_active, wrap
from ..backends.interface import register_on_tape
from ..errors import GradientError, Position
from ..jit.array import Traced
from ..ops import conversion, creation, joining, mapping, shaping
from . import batched
from .point import Point


class Recording:
    """A run of a function, recorded on variables that represent its inputs.

    Attributes:
        keep: True if the derivative must itself be recorded.
    """

    def __init__(self, at: Point, create_graph: bool, v=None):
        self.at = at
        with ensured_recording():
            self.variables = [linked(x) if is_active(x) else fresh(x) for x in at.leaves]
            outputs = at.run(*self.variables)
        given = [*at.leaves, *(v if isinstance(v, (tuple, list)) else [v])]
        given = [data_of(x) for x in given]
        self.given = given  # the caller's memory, which results must not share
        self.outputs = [y if isinstance(y, Variable) else wrap(y) for y in outputs]
        self._others = Others(self.outputs, self.variables)
        self.keep = create_graph or _active(at.leaves) or _active(v) or self._others.active()

    def derive(self, compute: Callable):
        """Return ``compute()``; run it again, recorded, if a gradient function read variables from outside."""
        if self.keep or not self._others.watched:
            return compute()
        with self._others.watching():
            found = compute()
        self.keep = self._others.active()
        return compute() if self.keep else found

    def check_dependence(self, strict: bool) -> None:
        """With ``strict``, raise if an output does not depend on an input."""
        if strict:
            below = [{key(y._node or y)}.union(*(_edges(n) for n in nodes_of([y]))) for y in self.outputs]
            self.at.check_dependence([[key(x._node or x) in found for x in self.variables] for found in below])

    def pull(self, outputs: list, weights: list, strict: bool) -> list:
        """The product of ``weights`` with the outputs' Jacobian, for each input."""
        pairs = [(y, w) for y, w in zip(outputs, weights) if y.requires_grad]
        if not pairs:
            if strict:
                raise GradientError(f"`{self.at.name}`: the output does not depend on the inputs.", argument="func")
            return [creation.zeros_like(x.data) for x in self.variables]
        found = gradients.grad(
            [y for y, _ in pairs],
            self.variables,
            [w for _, w in pairs],
            retain_graph=True,
            create_graph=self.keep,
            allow_unused=True,
        )
        for i, g in enumerate(found):
            if g is None and strict:
                raise GradientError(
                    f"`{self.at.name}`: the output does not depend on input {{i}}.", argument="func", i=Position(i)
                )
        return [creation.zeros_like(x.data) if g is None else g for g, x in zip(found, self.variables)]

    def push(self, variables: list, tangents: list, strict: bool) -> list:
        """The product of the Jacobian by ``variables`` with ``tangents``, for each output."""
        products = pushforward.push(self.outputs, variables, tangents, self.keep)
        for i, t in enumerate(products):
            if t is None and strict:
                raise GradientError(
                    f"`{self.at.name}`: output {{i}} does not depend on the inputs.", argument="func", i=Position(i)
                )
        return [creation.zeros_like(y.data) if t is None else t for t, y in zip(products, self.outputs)]

    def moving(self, move: Callable) -> Callable:
        """``move`` as a function that may be called many times; each call is recorded if its vectors need it."""
        keep = self.keep

        def moved(vectors: list) -> list:
            self.keep = keep or _active(vectors)
            found = self.derive(lambda: move(vectors))
            return finish(self.at, found, self.keep, [*self.given, *map(data_of, vectors)])

        return moved

    def finish(self, *values):
        """Prepare results for the caller; the inputs become constants for enclosing derivatives."""
        for x in self.variables:
            x.gradops_done = True  # type: ignore[attr-defined]  # for enclosing derivatives
        taken = list(self.given)
        found = tuple(finish(self.at, value, self.keep, taken) for value in values)
        return found if len(found) > 1 else found[0]


def _edges(node) -> set[int]:
    return {key(edge) for edge in node.edges if edge is not None}


def finish(at: Point, value, keep: bool, taken: list | None = None):
    """A result as a variable for callers that passed variables or want a graph, otherwise as an array.

    The result shares no memory with the arrays in ``taken``, and is added to them.
    """
    if isinstance(value, (tuple, list)):
        return type(value)(finish(at, v, keep, taken) for v in value)
    data = data_of(value)
    shared = taken is not None and any(_share(data, x) for x in taken)
    if shared and isinstance(data, np.ndarray):
        data = data.copy()
    if taken is not None:
        taken.append(data)
    if is_active(value) and (keep or _active(at.leaves)):
        return engine.alias(value, data) if shared else value
    return wrap(data) if any(isinstance(x, Variable) for x in at.leaves) else data


def _share(x, y) -> bool:
    both = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return np.may_share_memory(x, y) if both else x is y


def _active(values) -> bool:
    """True if a tensor, or one of several, is a variable that needs a gradient."""
    several = values if isinstance(values, (tuple, list)) else (values,)
    return any(is_active(x) for x in several)


@register_on_tape
def vjp(at: Point, v, create_graph: bool, strict: bool):
    made = Recording(at, create_graph, v)
    made.check_dependence(strict)
    weights = at.weights(v, made.outputs)
    products = made.derive(lambda: made.pull(made.outputs, weights, strict))
    return made.finish(at.outputs(made.outputs), at.inputs(products))


@register_on_tape
def jvp(at: Point, v, create_graph: bool, strict: bool):
    tangents = at.tangents(v)
    made = Recording(at, create_graph, tangents)
    made.check_dependence(strict)
    products = made.derive(lambda: made.push(made.variables, tangents, strict))
    return made.finish(at.outputs(made.outputs), at.outputs(products))


@register_on_tape
def pulling(at: Point) -> tuple:
    made = Recording(at, False)
    if not made.keep:
        detach_aux(at.box, made.variables, any(isinstance(x, Variable) for x in at.leaves))
    return made.finish(made.outputs), made.moving(lambda weights: made.pull(made.outputs, weights, False))


@register_on_tape
def pushing(at: Point) -> tuple:
    made = Recording(at, False)
    return made.finish(made.outputs), made.moving(lambda tangents: made.push(made.variables, tangents, False))


@register_on_tape
def jacobian(
    at: Point, create_graph: bool, strict: bool, vectorize: bool, strategy: str | None, chunk_size: int | None = None
):
    made = Recording(at, create_graph)
    variables, outputs = made.variables, made.outputs
    if strategy is None:
        fewer_inputs = 2 * sum(map(conversion.size, variables)) <= sum(map(conversion.size, outputs))
        strategy = "forward-mode" if fewer_inputs else "reverse-mode"
    forwards = strategy == "forward-mode"
    nodes = nodes_of(outputs)
    largest = max((math.prod(n.shape) for n in nodes if n.shape is not None), default=1)
    chunk = max(1, _MAX_BATCH_ELEMENTS // max(largest, 1)) if not made.keep and _batchable(nodes, variables) else 1
    sources, others = (variables, outputs) if forwards else (outputs, variables)
    if chunk_size is not None:
        chunk = min(chunk, chunk_size)
    in_turn = (
        chunk_size is not None
        or not made.keep
        and len(nodes) * sum(map(conversion.size, sources)) > _MAX_UNROLLED_OPERATIONS
    )

    def move(source, weights):
        return made.push([source], [weights], strict) if forwards else made.pull([source], [weights], strict)

    def moved_units():
        with track(sum(map(conversion.size, sources)), at.name) as advance:
            return [_push_unit_vectors(x, others, functools.partial(move, x), chunk, in_turn, advance) for x in sources]

    moved = made.derive(moved_units)
    if forwards:
        rows = [
            [_block(shaping.moveaxis(part[j], 0, -1), y, x) for part, x in zip(moved, variables)]
            for j, y in enumerate(outputs)
        ]
    else:
        rows = [[_block(part[i], y, x) for i, x in enumerate(variables)] for part, y in zip(moved, outputs)]
    return made.finish(at.rows(rows))


_MAX_BATCH_ELEMENTS = 2**22
"""The largest number of elements of a batch's largest array: 32 MB."""

_MAX_UNROLLED_OPERATIONS = 2000
"""The largest number of operations that a program unrolls for all passes; beyond it, the passes become a loop."""


def _batchable(nodes: list, variables: list) -> bool:
    """True if unit vectors can be batched: all rules are gradops' own, and there are no hooks or observers."""
    if state.hooks or state.observers or any(type(x.data) is not np.ndarray for x in variables):
        return False
    return all(n.rule.vjp is None or n.rule.vjp.__module__ == record.__name__ for n in nodes)


def _push_unit_vectors(source, others: list, move: Callable, chunk: int, in_turn: bool, advance: Callable) -> list:
    """For each of ``others``, the stacked results of ``move`` for a unit vector per element of ``source``."""
    count = conversion.size(source)
    if not count:
        return [creation.zeros((0, *x.shape), conversion.dtype(x.data)) for x in others]
    if chunk > 1 and count > 1:
        try:
            return _together(source, move, min(chunk, count), advance)
        except Exception:  # a batch may fail; single products then work, or raise their own error
            pass
    if in_turn and count > 1 and isinstance(source.data, Traced):
        # Unrolled, each pass of a long recording takes as long to compile as the function; a loop costs nothing at run
        # time.
        return list(mapping.map(lambda unit: tuple(move(unit)), _units(source, 0, count, lambda rows: rows)))
    parts = []
    for k in range(count):
        parts.append(move(_units(source, k, k + 1, lambda rows: rows[0])))
        advance(1)
    return [joining.stack(column) for column in zip(*parts)]


def _together(source, move: Callable, chunk: int, advance: Callable) -> list:
    batched.register()
    count = conversion.size(source)
    parts = []
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        with batched.deeper() as level:
            found = [data_of(x) for x in move(_units(source, start, stop, lambda rows: batched.Batched(rows, level)))]
        parts.append([batched.members(x, stop - start, level) for x in found])
        advance(stop - start)
    return [column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*parts)]


def _units(source, start: int, stop: int, form: Callable):
    """Rows of the identity matrix, in the shape and dtype of ``source``."""
    rows = np.eye(stop - start, conversion.size(source), start).reshape(stop - start, *source.shape)
    name = conversion.dtype(source.data)
    if type(source.data) is np.ndarray:
        return form(rows.astype(source.data.dtype, copy=False))
    return backends.backend_of(source.data).convert(form(rows), name, source.data)


def _block(moved, y, x):
    return shaping.reshape(moved, (*y.shape, *x.shape))
