"""The graph: one ``Node`` for each recorded operation.

A node has the places that gradients go on to (``edges``: nodes, or leaf variables) and the raw values that its
derivative needs (``saved``), but no reference to its own result's variable. So a graph is a chain of references
from results to leaves without cycles: dropping the result frees it.

``seq`` is a clock. A node is always younger than the nodes it was made from, so visiting nodes from
the youngest to the oldest is a topological order. It also serves to detect in-place writes: a buffer that was
written at a later time than a node was made is stale for that node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends import Backend
from .state import clock, packers, watchers


class Node:
    """A recorded operation.

    Attributes:
        rule: the :class:`Rule` that propagates a gradient back through it.
        edges: for each input the node or leaf variable it came from; None if no gradient goes there.
        saved: raw values for the rule; None once freed.
        seq: the time at which it was recorded.
        shape, dtype: of the result; None for a node with several results.
    """

    __slots__ = (
        "rule",
        "edges",
        "saved",
        "seq",
        "shape",
        "dtype",
        "extra",
        "hooks",
        "around",
        "broken_off",
        "_metadata",
        "__weakref__",
    )
    extra: Any  # of a node of several results: their shapes, dtypes and backends
    hooks: dict  # of a node in `state.hooks`
    around: dict  # hooks before and after the step of a node that has some
    register_hook: Callable  # set by `node_hooks`
    register_prehook: Callable

    def __init__(self, rule, edges, saved, shape, dtype):
        self.rule = rule
        self.edges = edges
        self.saved = saved
        # Nodes and writes share one clock. Two clocks would order nodes just as well, but could not tell whether a
        # buffer was written before or after a node saved it.
        self.seq = clock()
        self.shape = shape
        self.dtype = dtype
        if packers or watchers:
            self.made()

    def made(self) -> None:
        """Show this node to everything that attaches itself to nodes."""
        for pack in packers:
            self.saved = pack(self.saved)
        for watch in watchers:
            watch(self)

    @property
    def name(self) -> str:
        """The operation's name, such as ``"multiply"``."""
        return self.rule.name

    @property
    def next_functions(self) -> tuple:
        """The next places for gradients: pairs of a node and 0, as in PyTorch; leaves appear as ``AccumulateGrad``."""
        return tuple((e if isinstance(e, Node) or e is None else AccumulateGrad(e), 0) for e in self.edges)

    @property
    def metadata(self) -> dict:
        """A dict for notes of the user's."""
        if not hasattr(self, "_metadata"):
            self._metadata: dict = {}
        return self._metadata

    def __repr__(self) -> str:
        return f"<{self.name} backward>"


def key(edge) -> int:
    """The number that identifies an edge: a node's ``seq``, or minus the ``id`` of a leaf."""
    return edge.seq if edge.__class__ is Node else -id(edge)


def nodes_of(variables: list, stops=frozenset()) -> list[Node]:
    """The operations that made the variables, oldest first, without those before the nodes numbered ``stops``."""
    # No recursion: the graph of a long loop is deeper than Python's stack.
    nodes: dict[int, Node] = {}
    stack = [x._node for x in variables if x._node is not None]
    while stack:
        node = stack.pop()
        if node.seq not in nodes:
            nodes[node.seq] = node
            if node.seq not in stops:
                stack.extend([edge for edge in node.edges if edge.__class__ is Node])
    return [nodes[seq] for seq in sorted(nodes)]


class GradientEdge:
    """A place in a graph that a gradient goes to, as :func:`gradops.autodiff.get_gradient_edge` returns it.

    Attributes:
        node: the operation, or :class:`AccumulateGrad` of a leaf.
        output_nr: the index of the result; always 0, as on the tape each of several results has its own node.
    """

    __slots__ = ("node", "backend")
    output_nr = 0
    requires_grad = True

    def __init__(self, node, backend: Backend):
        self.node = node
        self.backend = backend

    @property
    def template(self) -> tuple:
        """The gradient's shape, dtype and library."""
        like = self.node.variable if isinstance(self.node, AccumulateGrad) else self.node
        return like.shape, like.dtype, self.backend

    def __repr__(self) -> str:
        return f"GradientEdge(node={self.node!r}, output_nr=0)"


def asked(target):
    """The edge of a variable, or of a :class:`GradientEdge`, whose own gradient is requested.

    Raises:
        PartialGradientError: only a part of the gradient arrives at the edge.
    """
    if target.__class__ is GradientEdge:
        node = target.node
        variable = getattr(node, "variable", None)
        node = node if variable is None else None
    else:
        variable, node = target, target._node
    if node is not None:
        source = node.edges[0] if node.rule is PICK else node
        if source.rule.partial is not None:
            source.rule.partial(node)
    return node or variable


class AccumulateGrad:
    """The end of a path in the graph: a leaf whose ``grad`` is added to."""

    name = "accumulate_grad"
    next_functions: tuple = ()

    def __init__(self, variable):
        self.variable = variable

    def __repr__(self) -> str:
        return "<accumulate_grad>"


class Rule:
    """How a gradient propagates back through an operation: its vector-Jacobian product.

    Exactly one of ``vjps`` and ``vjp`` is given. ``vjps`` has a function ``(g, saved, edge)`` for each edge that
    returns the gradient for it; ``vjp`` is one function ``(g, saved, node)`` that returns the gradients for all edges.
    ``pull`` is all of ``vjps`` as one function ``(g, saved, edges)``. ``slots`` says which graph value each of
    ``saved`` is: an edge's position, ``RESULT``, or None for a constant; with it, saved values rejoin the graph when
    the gradient is itself differentiated. ``holomorphic`` rules are written without conjugates; the engine conjugates
    around them. ``elementwise`` rules are also their own transposes, which forward mode uses, as it does ``jvp``, a
    function from the edges' tangents (None for no tangent) to those of the results, by position. ``partial`` belongs to
    rules whose results do not get all of their gradients. It is called with the node of a result whose gradient is
    requested, and either makes all of it arrive or raises a :class:`PartialGradientError`. ``is_closed`` says that the
    rule reads only its saved values, as ``vjps`` do.
    """

    __slots__ = ("name", "vjps", "vjp", "slots", "holomorphic", "elementwise", "jvp", "pull", "partial", "is_closed")

    def __init__(
        self,
        name: str,
        vjps=None,
        vjp=None,
        slots: tuple = (),
        holomorphic: bool = False,
        elementwise: bool = False,
        jvp=None,
        pull=None,
        partial=None,
        is_closed: bool = False,
    ):
        self.name = name
        self.vjps = vjps
        self.vjp = vjp
        self.slots = slots
        self.holomorphic = holomorphic
        self.elementwise = elementwise
        self.jvp = jvp
        self.partial = partial
        self.is_closed = is_closed or vjp is None
        self.pull = pull or (lambda g, saved, edges: [vjp(g, saved, edge) for vjp, edge in zip(vjps, edges)])


RESULT = -1


class Cotangents(dict):
    """The gradients of a node with several results, by the results' positions."""

    __slots__ = ()


def _pick_vjp(g, saved, edge) -> Any:
    return Cotangents({saved[0]: g})


PICK = Rule("pick", vjps=(_pick_vjp,), slots=(None,))
"""The rule of one result among a node's several results."""
ALIAS = Rule("alias", vjps=(lambda g, saved, edge: g,), elementwise=True)
"""The rule of an alias: another variable for the same value."""
