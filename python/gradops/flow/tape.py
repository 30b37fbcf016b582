"""Custom derivatives on the tape."""

from __future__ import annotations

from ..autodiff import graph
from ..autodiff.cotangents import materialize
from ..autodiff.modes import recording
from ..autodiff.record import record
from ..autodiff.variable import Variable
from ..errors import GradientError


def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative."""
    start = graph.clock()
    values, pull = run(*inputs)
    if not recording.get():
        return values
    edges = tuple(x._node or x if isinstance(x, Variable) and x.requires_grad else None for x in inputs)
    _check_closure(values, edges, start)
    if not any(edge is not None for edge in edges):
        return values

    def whole(g, saved, node):
        return pull(g if isinstance(g, list) else [g])

    def whole_parts(g, saved, node):
        return pull(materialize(g, node) if isinstance(g, graph.Cotangents) else g)

    data = [v.data if isinstance(v, Variable) else v for v in values]
    if len(data) == 1:
        return [record(graph.Rule("custom_gradient", vjp=whole), edges, (), data[0])]
    return record(graph.Rule("custom_gradient", vjp=whole_parts), edges, (), data)


def _check_closure(values: list, edges: tuple, start: int) -> None:
    """Refuse variables that need a gradient and came in through a closure, where it would be lost."""
    known = {id(edge) for edge in edges if edge is not None}
    stack = [v._node or v for v in values if isinstance(v, Variable) and v.requires_grad]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        if id(edge) in known or id(edge) in seen:
            continue
        seen.add(id(edge))
        if isinstance(edge, graph.Node) and edge.seq > start:
            stack.extend(e for e in edge.edges if e is not None)
            continue
        raise GradientError(
            "a function with a custom gradient uses a variable that requires a gradient but is not an argument; "
            "its gradient would be lost.",
            argument="f",
            hint="pass the variable as an argument, or use `stop_gradient()` on it",
        )
