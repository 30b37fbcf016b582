"""``Body``: a function that a loop or branch of a compiled function calls, traced to a program within the program.

The function may read tensors that it closes over. Arrays of enclosing programs become further arguments
(:attr:`.Program.held`), and gradients flow to the variables among them (:attr:`Body.edges`). The function is called
only while its loop is traced, as its closure may be rebound later. So its derivative uses the tape's graph of that
call: :meth:`Body.vjp` records the rows of the body again for other arguments (:meth:`.Program.replay`), and the tape's
backward pass runs on the result. :mod:`.loops` and :mod:`.control` call this.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._scopes import changed
from ..autodiff import engine
from ..autodiff.cotangents import zeros
from ..autodiff.derivatives import fresh
from ..autodiff.graph import ALIAS, Node, Rule, clock, key
from ..autodiff.record import record
from ..autodiff.variable import Variable, attach, data_of, differentiable, is_active, wrap
from ..errors import GradientError, JitError
from ..ops._structures import recorder
from . import emission
from .array import Place
from .dependencies import Captured
from .liveness import needed_rows
from .program import Program
from .reference import Reference
from .steps import Step, same
from .table import Rows


def reached(
    variables: list, inside: Callable, ends: set[int], passed: dict[int, Any] | None = None
) -> tuple[list[Node], list]:
    """Search the tape backward from variables.

    Returns the nodes on the way for which ``inside`` is true, oldest first, and the other edges where the search ended.
    ``ends`` are keys at which it stops; ``passed`` maps keys to edges where it continues.
    """
    stack: list[Any] = [x._node or x for x in variables]
    nodes: list[Node] = []
    outside: list[Any] = []
    seen: set[int] = set(ends)
    while stack:
        edge = stack.pop()
        if edge is None or key(edge) in seen:
            continue
        seen.add(key(edge))
        if passed and key(edge) in passed:
            stack.append(passed[key(edge)])
        elif inside(edge):
            nodes.append(edge)
            stack.extend(edge.edges)
        else:
            outside.append(edge)
    return sorted(nodes, key=lambda node: node.seq), outside


def clones(nodes: list[Node], table: dict[int, Any], passed: dict[int, Any] | None = None) -> dict[int, Any]:
    """Return ``table`` with copies of nodes, oldest first, added; edges of the copies are replaced by the table."""
    table = dict(table)
    for node in nodes:
        edges = tuple(replacement(edge, table, passed or {}) for edge in node.edges)
        copy = Node(node.rule, edges, node.saved, node.shape, node.dtype)
        if hasattr(node, "extra"):
            copy.extra = node.extra
        table[key(node)] = copy
    return table


def replacement(edge, table: dict[int, Any], passed: dict[int, Any]):
    """Return the edge that replaces another: follow ``passed`` to its end, then look the edge up in ``table``."""
    while edge is not None and key(edge) in passed:
        edge = passed[key(edge)]
    return edge if edge is None else table.get(key(edge), edge)


def replaced_variable(x: Variable, table: dict[int, Any]) -> Variable:
    """Return a variable attached to the replacement of its node."""
    place = key(x._node or x)
    if place not in table:
        return x
    edge = table[place]
    if edge is None:
        return wrap(x.data)
    return attach(x.data, edge) if isinstance(edge, Node) else edge


class Body:
    """A traced function from lists of tensors to lists of tensors.

    Args:
        outer: the program in which the function is called.
        examples: lists of values of its arguments, such as the first row's.
        recorded: True if its arguments are variables.

    Attributes:
        program: its program; the inputs are its arguments and then the arrays of ``outer`` that it reads.
        rows: the rows that its results need.
        outputs: the places of its results, by list.
        held: the arrays of ``outer`` that it reads.
        edges: the nodes and leaves of the tape where gradients flow to its closure.
    """

    def __init__(self, outer: Program, function: Callable, examples: Iterable[list] = (), recorded: bool = False):
        self.outer = outer
        self.program = inner = Program(outer)
        arguments: list[list] = [[inner.input(value, given=False) for value in group] for group in examples]
        self.start = clock()
        if recorded:
            arguments = [[fresh(x) if is_differentiable(x) else x for x in group] for group in arguments]
        self._inputs = arguments
        # Marks the body of each input. A gradient that reaches an input of a body which is neither traced nor
        # differentiated now cannot be returned, see `_is_foreign`.
        for x in self._leaves():
            x.gradops_body = self  # type: ignore[attr-defined]
        self.in_use = 1
        with changed(recorder, recorder.get().within(inner)), outer.inside(inner):
            with np.errstate(all="ignore"):  # NumPy warns when the program runs
                results = function(*arguments)
                self.outputs = [[_place(x, inner) for x in group] for group in results]
        inner.finish()
        self.held = [x for x, _ in inner.held]
        inner.inputs += [own.place.index for _, own in inner.held]
        self.rows = needed_rows(inner, {p.index for group in self.outputs for p in group})
        self._emitted: Any = None
        self._reference: Reference | None = None
        self._record([list(group) for group in results])
        self.in_use = 0

    def _leaves(self) -> list[Variable]:
        return [x for group in self._inputs for x in group if isinstance(x, Variable)]

    def _record(self, results: list[list]) -> None:
        """Store the graph of the results; edges to the outside go through alias nodes, where a backward pass stops."""
        active = [x for group in results for x in group if is_active(x)]
        inputs = {key(x) for x in self._leaves()}
        nodes, outside = reached(active, lambda edge: _is_new(edge, self.start), inputs)
        if any(map(self._is_foreign, outside)):
            raise GradientError(
                "a compiled loop has no derivative of third or higher order through a branch, and none through a "
                "custom gradient that closes over the argument of its own derivative.",
                hint="pass `unroll=True` to `scan()`, or differentiate without `jit()`",
            )
        self.edges = outside
        self.aliases = [Node(ALIAS, (edge,), (), edge.shape, dtype_of(edge)) for edge in outside]
        table = clones(nodes, {key(edge): alias for edge, alias in zip(outside, self.aliases)})
        self._results = [[replaced_variable(x, table) if is_active(x) else None for x in group] for group in results]
        self.end = clock()
        self.outer.root.bodies.append(self)

    def _is_foreign(self, edge) -> bool:
        """True if an edge belongs to the graph of a function that is neither traced nor differentiated now."""
        if isinstance(edge, Node):
            # The tape numbers all nodes. A function's nodes have the numbers between its start and its end. Functions
            # may be nested, so a node may belong to several.
            around = [body for body in self.outer.root.bodies if body.start < edge.seq < body.end]
            return bool(around) and not any(body.in_use for body in around)
        return not getattr(edge, "gradops_body", self).in_use

    def changed(self, rows: Rows, outputs: list | None = None, inputs: list | None = None) -> Body:
        """Return a copy of this body with other rows, and with other results or inputs where given."""
        new = copy.copy(self)
        new.program = copy.copy(self.program)
        new.rows = rows
        new.__dict__.pop("steps", None)
        new.program.inputs = inputs or self.program.inputs
        new.outputs, new._emitted = outputs or self.outputs, None
        new._reference = None
        return new

    @functools.cached_property
    def steps(self) -> list[Step]:
        """The rows as steps. They are stored, as passes identify a step by its object."""
        return list(self.rows)

    def values(self, group: int) -> list:
        """Return the values of a list of results for the examples."""
        return [self.program.value(p.index) for p in self.outputs[group]]

    def does_as(self, other: Body) -> bool:
        """True if two traces of a function, for different values, recorded the same operations."""
        mine, others = self.program, other.program
        places = dict(zip(mine.inputs, others.inputs))
        if len(mine.inputs) != len(others.inputs) or len(self.rows) != len(other.rows):
            return False
        if [x.place for x in self.held] != [x.place for x in other.held]:
            return False

        def agree(a, b) -> bool:
            if a.__class__ is Place and b.__class__ is Place:
                if a.index in mine.constants and b.index in others.constants:
                    return same(mine.constants[a.index], others.constants[b.index])
                return places.get(a.index) == b.index
            if isinstance(a, (list, tuple)) and type(a) is type(b):
                return len(a) == len(b) and all(map(agree, a, b))
            return same(a, b)

        for a, b in zip(self.rows, other.rows):
            if a.name != b.name or not agree(a.arguments, b.arguments):
                return False
            places.update(zip(a.places, b.places))
        return agree(self.outputs, other.outputs)

    def check_again(self, function: Callable, examples: Iterable[list], recorded: bool = False) -> None:
        """Trace the function again; raise a JitError if it changes something it reads or records other operations."""
        # The body is traced with the values of the first row and used for all rows. If the function counts its calls,
        # or reads a number that is not a tensor, its first answer would be used for each row. So it is traced again
        # with the second row, and must record the same operations on the same constants, to the bit.
        captured = Captured(function)
        again = Body(self.outer, function, examples, recorded)
        captured.refuse_changes()
        if not self.does_as(again):
            raise JitError(
                "a function that a compiled loop calls did something else the second time: it changes a value "
                "that it closes over, or reads one that changes.",
                hint="make every changing value part of the state, or write a Python loop",
            )

    def vjp(
        self, arguments: list[list], active: list[list[bool]], cotangents: Sequence[list]
    ) -> tuple[list[list], list]:
        """Return the gradients of the arguments, and of :attr:`edges`; None marks a missing gradient.

        Args:
            arguments: tensors or variables.
            active: True for each argument that gets a gradient.
            cotangents: the cotangents of the results, None for a result without one.
        """
        in_use = {id(body): body for body in (self, *(body for body, _ in self.program.passed.values()))}
        for body in in_use.values():
            body.in_use += 1
        try:
            return self._vjp(arguments, active, cotangents)
        finally:
            for body in in_use.values():
                body.in_use -= 1

    def _vjp(self, arguments, active, cotangents) -> tuple[list[list], list]:
        create_graph = engine.recording.get()
        start = clock()
        now: Program = recorder.get().program
        given = [now.written(data_of(x)) for group in arguments for x in group]
        now.replay(self.program, [*given, *map(now.lift, self.held)])
        flat = [
            (x, ct)
            for group, cts in zip(self._results, cotangents)
            for x, ct in zip(group, cts)
            if x is not None and ct is not None
        ]
        roots = [x for x, _ in flat]
        starts = [engine.seed(x, ct, create_graph) for x, ct in flat]
        wanted = [x for group, which in zip(self._inputs, active) for x, on in zip(group, which) if on]
        targets = [*wanted, *(SimpleNamespace(_node=node) for node in self.aliases)]
        found = engine.run(roots, starts, True, create_graph, targets) if roots and targets else {}
        gradients = {place: g for place, (_, g) in found.items()}
        if create_graph:
            gradients = self._rejoined(gradients, arguments, start, now)
        by_argument = [
            [gradients.get(key(x)) if on else None for x, on in zip(group, which)]
            for group, which in zip(self._inputs, active)
        ]
        return by_argument, [gradients.get(key(node)) for node in self.aliases]

    def _rejoined(self, gradients: dict, arguments: list[list], start: int, now: Program) -> dict:
        """Return gradients that can be differentiated: their graph leads to ``arguments``, not to the traced inputs.

        The function of a gradient may close over arguments of another body that is being differentiated. Edges to
        these follow ``program.passed`` to the edges that replaced them.
        """
        instead = {
            key(own): (x._node or x) if is_active(x) else None
            for group, others in zip(self._inputs, arguments)
            for own, x in zip(group, others)
            if isinstance(own, Variable)
        }
        passed = {place: edge for place, (_, edge) in self.program.passed.items()}

        def is_mine(edge) -> bool:
            return isinstance(edge, Node) and (edge.seq > start or self.start < edge.seq < self.end)

        active = [g for g in gradients.values() if is_active(g)]
        nodes, _ = reached(active, is_mine, set(), passed)
        table = clones(nodes, instead, passed)
        now.passed.update({place: (self, edge) for place, edge in table.items()})
        for place, (body, edge) in self.program.passed.items():
            now.passed[place] = body, replacement(edge, table, passed)
        return {place: replaced_variable(g, table) if is_active(g) else g for place, g in gradients.items()}

    def emitted(self) -> Any:
        """Return the body as a compiled function: it takes the arguments and ``held``, and returns all results."""
        if self._emitted is None:
            self._emitted = emission.function(
                self.program, [p for group in self.outputs for p in group], rows=self.rows, is_repeated=True
            )
        return self._emitted

    def reference(self) -> Reference:
        """Return the body as a function that the reference executor runs."""
        if self._reference is None:
            self._reference = Reference.make(self.program, self.rows, [p for group in self.outputs for p in group])
        return self._reference

    def forget(self) -> None:
        """Release what is used only while compiling."""
        self.program.forget()
        self._inputs, self._results, self.edges, self.aliases = [], [], [], []
        self.program.lifted.clear()
        self.program.replayed.clear()
        self.program.passed.clear()
        self.program.parent = None
        self.program.root = self.program


def is_differentiable(x) -> bool:
    return differentiable(data_of(x))


def is_absent(g) -> bool:
    """True if a gradient is the zeros that the engine puts in the place of a missing one."""
    return g.__class__ is np.ndarray and not g.any()


def dtype_of(edge):
    """Return the dtype of the tensor at an edge of the tape."""
    return edge.dtype if isinstance(edge, Node) else edge._value.dtype


def zeros_for(edge, node: Node):
    """Return zeros for a missing gradient, like the tensor at an edge of a recorded loop or branch."""
    return zeros((edge.shape, dtype_of(edge), node.extra[0][2]))


def recorded(rule: Rule, edges: Sequence, saved: tuple, results: list) -> list[Variable]:
    """Return the results of a loop or branch as variables on the tape; results without a derivative are not on it."""
    return [x if is_differentiable(x) else wrap(x.data) for x in record(rule, tuple(edges), saved, results)]


def call(kernel: Callable, *arguments) -> list:
    """Call the kernel of a loop or branch, which is the first argument of its operation."""
    return kernel(*arguments)


def _place(x, program: Program) -> Place:
    traced = data_of(x)
    if getattr(traced, "stale", None):
        traced.refuse_stale()
    return program.written(traced).place


def _is_new(edge, start: int) -> bool:
    return isinstance(edge, Node) and edge.seq > start
