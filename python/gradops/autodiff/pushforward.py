"""Forward mode on the tape: tangents propagate through a recorded graph from the oldest operation to the newest.

An operation's backward rule is linear in the gradient, so it also serves forward mode. If the operation is elementwise
on real numbers, its Jacobian is diagonal and the rule applied to a tangent is the result. Otherwise the rule is
transposed by differentiating it with respect to the gradient, where it is linear (the "double backward trick",
Townsend 2017). Operations that are linear in their arguments are applied to the tangents directly.
"""

from __future__ import annotations

import functools

from .. import backends, dtypes
from .._scopes import changed
from ..errors import GradientError
from ..ops import elementwise, shaping
from ..ops._dispatch import registry
from . import cotangents, engine, gradients
from .graph import PICK, Node, asked, key, nodes_of
from .modes import recording
from .state import Packed, read
from .variable import Variable, data_of, differentiable, is_active, wrap


def push(outputs: list, inputs: list, tangents: list, create_graph: bool = False) -> list:
    """The tangents of ``outputs`` for tangents of ``inputs``, variables that the outputs were computed from.

    Returns:
        Raw data, or variables with ``create_graph``; None for an output that depends on none of the inputs.
    """
    return pushed(outputs, {key(asked(x)): t for x, t in zip(inputs, tangents)}, create_graph)


def pushed(outputs: list, known: dict, create_graph: bool = False) -> list:
    """Like :func:`push`, from a dict of known tangents by :func:`.graph.key`."""
    found: dict[int, object] = dict(known)
    for node in nodes_of(outputs, known.keys()):
        if node.seq not in known:
            found[node.seq] = result_tangent(node, found, create_graph)
    with changed(recording, create_graph):
        return [_match(found.get(key(y._node or y)), y.shape) for y in outputs]


def _match(tangent, shape):
    if tangent is not None and tuple(tangent.shape) != tuple(shape):
        tangent = shaping.broadcast_to(tangent, tuple(shape))
    return tangent


def result_tangent(node: Node, found: dict, create_graph: bool):
    """The tangent of an operation's result; a list for an operation with several results.

    Args:
        found: the known tangents by :func:`.graph.key`.
    """
    if node.rule is PICK:
        parts = found.get(node.edges[0].seq)
        return None if parts is None else parts[node.saved[0]]
    incoming = [None if edge is None else found.get(key(edge)) for edge in node.edges]
    if all(t is None for t in incoming):
        return None
    if node.rule.jvp is not None:
        return _recorded(create_graph, node.rule.jvp, incoming)
    if node.saved is None:
        raise GradientError(f"the graph of `{node.name}` was freed by an earlier backward pass.")
    saved = node.saved.unpack({}) if node.saved.__class__ is Packed else node.saved
    if create_graph:
        saved = engine.rejoin(node, saved)
    if _joins(node.rule.name, node.rule.slots):
        return _joined(node, saved, incoming, create_graph)
    linear = None if node.rule.vjps is None else _linear_in(node.rule.name, node.rule.slots)
    if linear is not None:
        moved = _linear(node, *linear, saved, incoming, create_graph)
        if moved is not None:
            return moved
    is_complex = [cotangents.is_complex(x.dtype) for x in (node, *incoming) if x is not None]
    if node.rule.vjps is not None and node.rule.elementwise and not any(is_complex):
        return _diagonal(node, saved, incoming, create_graph)
    return _transposed(node, saved, incoming, create_graph)


@functools.cache
def _joins(name: str, slots: tuple) -> bool:
    """True if an op is linear in its first argument, a list of tensors with an edge for each."""
    entry = registry.get(name)
    return entry is not None and bool(entry.many) and entry.many == entry.facts.linear and type(slots[0]) is tuple


def _joined(node: Node, saved: tuple, incoming: list, create_graph: bool):
    """The op applied to the list of tangents, with zeros for tensors without a tangent."""
    entry = registry[node.rule.name]
    *arguments, shapes = saved[: len(entry.parameters)] + saved[-1:]
    tangents = [
        _zeros(shape, node, incoming) if t is None else _recorded(create_graph, _match, t, shape)
        for t, shape in zip(incoming, shapes)
    ]
    return _recorded(create_graph, entry.call, tangents, *arguments[1:])


@functools.cache
def _linear_in(name: str, slots: tuple) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] | None:
    """The positions of a node's edges among the op's arguments, and the groups of positions where the op is linear.

    An op is jointly linear in the arguments of one group, like ``where`` in its two branches.
    """
    entry = registry.get(name)
    if entry is None or entry.many:
        return None
    edges = sorted((i, p) for p, i in enumerate(slots) if type(i) is int and i >= 0)
    places = tuple(p for _, p in edges)
    given, facts = tuple(entry.parameters[p] for p in places if p < len(entry.parameters)), entry.facts
    if len(given) == 1 and (given == facts.linear or facts.moves and given == entry.parameters[:1]):
        return places, (places,)
    if len(facts.linear) > 1 and not facts.elementwise:
        return places, (tuple(map(entry.parameters.index, facts.linear)),)
    return (places, tuple((p,) for p in places)) if given and set(given) <= set(facts.multilinear) else None


def _linear(node: Node, places: tuple, groups: tuple, saved: tuple, incoming: list, create_graph: bool):
    """The sum over the groups of the op applied to the tangents of the group.

    None if the rule did not save an argument that is needed, or if an argument where the op is not linear has a
    tangent.
    """
    entry, total = registry[node.rule.name], None
    tangents = {p: t for p, t in zip(places, incoming) if t is not None}
    if not tangents.keys() <= {p for group in groups for p in group}:
        return None
    for group in groups:
        if tangents.keys().isdisjoint(group):
            continue
        arguments = list(saved[: len(entry.parameters)])
        for p in group:  # a first argument without a tangent becomes zeros of the result's shape
            zero = _zeros(node.shape, node, incoming) if p == group[0] and p not in tangents else 0.0
            arguments[p] = tangents.get(p, zero)
        if any(arguments[p] is None for p in entry.positions):  # not saved, because the backward rule does not read it
            return None
        moved = _recorded(create_graph, entry.call, *arguments)
        if len(group) > 1:
            moved = _recorded(create_graph, _match, moved, node.shape)
        total = moved if total is None else _recorded(create_graph, elementwise.add, total, moved)
    return total


def _recorded(create_graph: bool, op, *arguments):
    token = recording.set(create_graph)
    try:
        return op(*arguments)
    finally:
        recording.reset(token)


def _diagonal(node: Node, saved: tuple, incoming: list, create_graph: bool):
    token = recording.set(create_graph)
    try:
        total = None
        for part, edge, t in zip(node.rule.vjps, node.edges, incoming):
            if t is None:
                continue
            if tuple(t.shape) != tuple(node.shape):
                t = shaping.broadcast_to(t, tuple(node.shape))
            moved = part(t, saved, edge)
            if moved is not None:
                total = moved if total is None else elementwise.add(total, moved)
        return total
    finally:
        recording.reset(token)


def _transposed(node: Node, saved: tuple, incoming: list, create_graph: bool):
    """``d/du <rule(u), t>``, evaluated at 0; any point will do, because the rule is linear in ``u``."""
    token = recording.set(True)
    try:
        if node.shape is None:
            points = [_point(cotangents.zeros(template)) for template in node.extra]
            pulled = engine.pull(node, list(points), saved)
        else:
            points = [_point(_zeros(node.shape, node, incoming))]
            conjugate = node.rule.holomorphic and cotangents.is_complex(node.dtype)
            pulled = engine.pull(node, elementwise.conj(points[0]) if conjugate else points[0], saved)
            if conjugate:
                pulled = [None if p is None else elementwise.conj(p) for p in pulled]
        for p in pulled:
            if is_active(p):
                read(p._node or p)
        pairs = [
            (cotangents.fit(p, edge) if edge.__class__ is not Node or edge.shape is not None else p, t)
            for p, edge, t in zip(pulled, node.edges, incoming)
            if t is not None and is_active(p)
        ]
        if not pairs:
            return None
        result = iter(
            gradients.grad(
                [p for p, _ in pairs],
                [p for p in points if p.requires_grad],
                [_as_variable(t) for _, t in pairs],
                create_graph=create_graph,
                allow_unused=True,
                materialize_grads=True,
            )
        )
        moved = [next(result) if p.requires_grad else p for p in points]  # integers have no tangent
    finally:
        recording.reset(token)
    out = moved if create_graph else [g.data for g in moved]
    return out if node.shape is None else out[0]


def _point(data) -> Variable:
    point = wrap(data)
    point.requires_grad = differentiable(data)
    point.gradops_done = True  # type: ignore[attr-defined]  # a constant for enclosing derivatives
    return point


def _as_variable(t):
    return t if isinstance(t, Variable) else wrap(t)


def _zeros(shape: tuple, node: Node, incoming: list):
    t = next(t for t in incoming if t is not None)
    data = data_of(t)
    owner = backends.backend_of(data)
    return owner.convert(owner.kernel("zeros")(tuple(shape), dtypes.canonical(node.dtype)), like=data)
