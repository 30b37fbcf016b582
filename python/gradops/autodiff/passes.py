"""A backward pass on its way: one that failed in a hook or a gradient function goes on from there."""

from __future__ import annotations

from heapq import heappush

import numpy as np

from .state import special
from .variable import Variable


class Pass:
    """A backward pass on its way: what has arrived where, so that one that was broken off can be taken up again.

    Attributes:
        arrived: nodes and leaves, each with the sum of its gradients so far, by :func:`.graph.key`.
        waiting: the nodes among them, as a heap whose first is the youngest.
        ends: the inputs that are results, with their gradients.
        seen: the node at which it was broken off: its hooks have run.
        hooked: the leaves whose hooks have run.
    """

    __slots__ = (
        "roots",
        "seeds",
        "retain",
        "create_graph",
        "inputs",
        "arrived",
        "waiting",
        "ends",
        "seen",
        "hooked",
        "under_way",
    )

    def __init__(self, roots, seeds, retain, create_graph, inputs):
        self.roots, self.seeds, self.inputs = roots, seeds, inputs
        self.retain, self.create_graph = retain, create_graph
        self.arrived: dict[int, list] = {}
        self.waiting: list[int] = []
        self.ends: dict[int, list] = {}
        self.seen: int | None = None
        self.hooked: set[int] = set()
        self.under_way = False

    def start(self) -> tuple:
        """The first gradients and where they go; none where the pass is on its way already."""
        if self.under_way:
            return (), ()
        return tuple([root._node or root for root in self.roots]), self.seeds

    def break_off(self, entry: list, seen: bool) -> None:
        """Put a node back, of whose step nothing has gone on; ``seen`` says whether its hooks have run."""
        place = entry[0].seq
        self.seen = place if seen else None
        self.arrived[place] = entry
        heappush(self.waiting, -place)
        self.hold()

    def hold(self) -> None:
        """Stay with the graph, to be taken up by the same pass."""
        self.under_way = True
        seeds = [s.data if isinstance(s, Variable) else s for s in self.seeds]
        self.seeds = [s.copy() if isinstance(s, np.ndarray) else s for s in seeds]  # their owner may write to them
        for root in self.roots:
            if root._node is not None:
                root._node.broken_off = self

    def same(self, roots, seeds, retain, create_graph, inputs) -> bool:
        """Whether a pass that starts is this one, once more."""
        return (
            [id(root._node or root) for root in roots] == [id(root._node or root) for root in self.roots]
            and (retain, create_graph) == (self.retain, self.create_graph)
            and [id(x) for x in inputs or ()] == [id(x) for x in self.inputs or ()]
            and all(map(_equal, seeds, self.seeds))
        )


def broken_off(roots, seeds, retain, create_graph, inputs) -> Pass:
    """The pass that failed before, if this is the same one; else a new one."""
    found = None
    for node in [root._node for root in roots if root._node is not None]:
        if hasattr(node, "broken_off"):
            found = found or node.broken_off
            del node.broken_off
    if found is not None and found.same(roots, seeds, retain, create_graph, inputs):
        return found
    return Pass(roots, seeds, retain, create_graph, inputs)


def _equal(first, second) -> bool:
    """Whether two passes start from the same gradient."""
    first, second = (x.data if isinstance(x, Variable) else x for x in (first, second))
    if first.dtype in special:
        return list(first) == list(second)
    return first is second or bool(np.all(np.asarray(first) == np.asarray(second)))
