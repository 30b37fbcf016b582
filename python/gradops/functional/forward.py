"""Forward mode on the tape: tangents go through a recorded graph from the oldest operation to the youngest.

A rule of the backward pass is linear in the gradient, so it serves forward too. Where an operation is
elementwise on real numbers, the rule applied to a tangent is already the answer (its Jacobian is diagonal); otherwise
the rule is transposed, by differentiating it with respect to the gradient it is linear in (the "double
backward trick", Townsend 2017).
"""

from __future__ import annotations

from .. import backends, dtypes
from ..autodiff import cotangents, engine, gradients
from ..autodiff.graph import PICK, Node, key
from ..autodiff.modes import recording
from ..autodiff.state import Packed, read
from ..autodiff.variable import Variable, differentiable, wrap
from ..errors import GradientError
from ..ops import elementwise, shaping
from ..ops._dispatch import registry


def push(outputs: list, inputs: list, tangents: list, create_graph: bool = False) -> list:
    """The tangents of ``outputs`` for those of ``inputs``, variables that the outputs were computed from.

    Returns:
        Raw data, or variables with ``create_graph``; None for an output that depends on no input.
    """
    known = {key(x._node or x): t for x, t in zip(inputs, tangents)}
    found: dict[int, object] = dict(known)
    for node in nodes_of(outputs, {x._node.seq for x in inputs if x._node is not None}):
        if node.seq not in known:
            found[node.seq] = _through(node, found, create_graph)
    token = recording.set(create_graph)
    try:
        return [_match(found.get(key(y._node or y)), y) for y in outputs]
    finally:
        recording.reset(token)


def _match(tangent, y):
    if tangent is not None and tuple(tangent.shape) != tuple(y.shape):
        tangent = shaping.broadcast_to(tangent, tuple(y.shape))
    return tangent


def nodes_of(outputs: list, stops=frozenset()) -> list[Node]:
    """The operations that ``outputs`` were made by, the oldest first; not those before ``stops``."""
    nodes: dict[int, Node] = {}
    stack = [y._node for y in outputs if y._node is not None]
    while stack:
        node = stack.pop()
        if node.seq not in nodes:
            nodes[node.seq] = node
            if node.seq not in stops:
                stack.extend(e for e in node.edges if e.__class__ is Node)
    return [nodes[seq] for seq in sorted(nodes)]


def _through(node: Node, found: dict, create_graph: bool):
    """The tangent of one operation's result; of one of several results a list."""
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
    if node.rule.name in LINEAR and node.rule.vjps is not None:
        return _linear(node, saved, incoming, create_graph)
    if node.rule.name in BILINEAR and node.rule.vjps is not None:
        return _bilinear(node, saved, incoming, create_graph)
    is_complex = [cotangents.is_complex(x.dtype) for x in (node, *incoming) if x is not None]
    if node.rule.vjps is not None and node.rule.elementwise and not any(is_complex):
        return _diagonal(node, saved, incoming, create_graph)
    return _transposed(node, saved, incoming, create_graph)


LINEAR = frozenset(
    "reshape transpose expand_dims squeeze broadcast_to flip roll sum mean cumsum get_item take cast copy".split()
)
"""Ops whose tangent is the op of the tangent of their first argument."""
BILINEAR = frozenset(["matmul"])
"""Ops of two tensors, linear in each."""


def _linear(node: Node, saved: tuple, incoming: list, create_graph: bool):
    entry = registry[node.rule.name]
    arguments = [incoming[0] if i == entry.positions[0] else v for i, v in enumerate(saved[:-1])]
    for i, value in enumerate(arguments):  # an op of one tensor alone keeps nothing
        if value is None and entry.parameters[i] in entry.tensors:
            return _transposed(node, saved, incoming, create_graph)
    return _recorded(create_graph, entry.call, *arguments)


def _bilinear(node: Node, saved: tuple, incoming: list, create_graph: bool):
    entry, total = registry[node.rule.name], None
    for i, t in enumerate(incoming):
        if t is None:
            continue
        first = node.rule.slots.index(i) == 0
        moved = _recorded(create_graph, entry.call, *((t, saved[1]) if first else (saved[0], t)))
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
    """``d/du <rule(u), t>``: the rule is linear in ``u``, so any point will do; 0 is taken."""
    token = recording.set(True)
    try:
        if node.shape is None:
            points = [_point(cotangents.zeros(template)) for template in node.extra]
            pulled = engine.pull(node, list(points), saved)
        else:
            points = [_point(_zeros(node, saved, incoming))]
            g = elementwise.conj(points[0]) if node.rule.holomorphic else points[0]
            pulled = engine.pull(node, g, saved)
            if node.rule.holomorphic:
                pulled = [None if p is None else elementwise.conj(p) for p in pulled]
        for p in pulled:
            if isinstance(p, Variable) and p.requires_grad:
                read(p._node or p)
        pairs = [
            (cotangents.fit(p, edge) if edge.__class__ is not Node or edge.shape is not None else p, t)
            for p, edge, t in zip(pulled, node.edges, incoming)
            if t is not None and isinstance(p, Variable) and p.requires_grad
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
        moved = [next(result) if p.requires_grad else p for p in points]  # whole numbers do not move
    finally:
        recording.reset(token)
    out = moved if create_graph else [g.data for g in moved]
    return out if node.shape is None else out[0]


def _point(data) -> Variable:
    point = wrap(data)
    point.requires_grad = differentiable(data)
    point.gradops_done = True  # type: ignore[attr-defined]  # a constant for derivatives around this one
    return point


def _as_variable(t):
    return t if isinstance(t, Variable) else wrap(t)


def _zeros(node: Node, saved: tuple, incoming: list):
    t = next(t for t in incoming if t is not None)
    data = t.data if isinstance(t, Variable) else t
    owner = backends.of(data)
    return owner.convert(owner.kernel("zeros")(tuple(node.shape), dtypes.canonical(node.dtype)), like=data)
