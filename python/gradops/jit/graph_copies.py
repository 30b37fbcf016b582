"""Graphs of the tape that are made again: for the same steps on other variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autodiff.graph import Node, key
from ..autodiff.variable import Variable, attach, wrap


def reached(
    variables: list, inside: Callable, ends: set[int], passed: dict[int, Any] | None = None
) -> tuple[list[Node], list]:
    """The nodes ``inside`` that lead to variables, the oldest first, and what they lead to that is neither.

    ``passed`` says of some ends where they go on.
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
    """Copies of nodes, the oldest first, that lead to what ``table`` says for what theirs lead to; with them in it."""
    table = dict(table)
    for node in nodes:
        edges = tuple(standing_for(edge, table, passed or {}) for edge in node.edges)
        copy = Node(node.rule, edges, node.saved, node.shape, node.dtype)
        if hasattr(node, "extra"):
            copy.extra = node.extra
        table[key(node)] = copy
    return table


def standing_for(edge, table: dict[int, Any], passed: dict[int, Any]):
    """What stands for an edge."""
    while edge is not None and key(edge) in passed:
        edge = passed[key(edge)]
    return edge if edge is None else table.get(key(edge), edge)


def on_copies(x: Variable, table: dict[int, Any]) -> Variable:
    """A variable on the copy of its node."""
    place = key(x._node or x)
    if place not in table:
        return x
    edge = table[place]
    if edge is None:
        return wrap(x.data)
    return attach(x.data, edge) if isinstance(edge, Node) else edge
