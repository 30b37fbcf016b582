"""A backward pass on its way: one that failed in a hook or a gradient function goes on from there."""

from __future__ import annotations

import numpy as np

from .state import special
from .variable import data_of


class Pass:
    """A backward pass that was broken off, which stays with the graph to be taken up by the same one.

    Attributes:
        start: its arguments: roots, seeds, ``retain``, ``create_graph`` and inputs.
        arrived: nodes and leaves, each with the sum of its gradients so far, by :func:`.graph.key`.
        waiting: the nodes among them, as a heap whose first is the youngest.
        ends: the inputs that are results, with their gradients.
        seen: the node at which it was broken off, if its hooks have run.
        hooked: the leaves whose hooks have run.
    """

    some = False
    """True once a pass has been broken off."""

    def __init__(self, start: tuple, arrived: dict, waiting: list, ends: dict, seen: int | None, hooked: set):
        roots, seeds, *rest = start
        seeds = [data_of(s) for s in seeds]
        seeds = [s.copy() if isinstance(s, np.ndarray) else s for s in seeds]  # their owner may write to them
        self.start = (roots, seeds, *rest)
        self.arrived, self.waiting, self.ends, self.seen, self.hooked = arrived, waiting, ends, seen, hooked
        Pass.some = True
        for root in roots:
            if root._node is not None:
                root._node.broken_off = self

    def same(self, roots, seeds, retain, create_graph, inputs) -> bool:
        """True if a pass that starts is this one, once more."""
        own = self.start
        return (
            # By nodes, not by variables: a result that was written in place since has another node, and another
            # gradient.
            [id(root._node or root) for root in roots] == [id(root._node or root) for root in own[0]]
            and (retain, create_graph) == own[2:4]
            and [id(x) for x in inputs or ()] == [id(x) for x in own[4] or ()]
            and all(map(_equal, seeds, own[1]))
        )


def broken_off(roots, seeds, retain, create_graph, inputs) -> Pass | None:
    """The pass that failed before, if this is the same one."""
    found = None
    for node in [root._node for root in roots if root._node is not None]:
        if hasattr(node, "broken_off"):
            found = found or node.broken_off
            # Whatever this pass is, the old one is over: if it is another one, it frees nodes that the old one counts
            # on.
            del node.broken_off
    if found is not None and found.same(roots, seeds, retain, create_graph, inputs):
        return found
    return None


def _equal(first, second) -> bool:
    """True if two passes start from the same gradient."""
    first, second = (data_of(x) for x in (first, second))
    if type(first) is not type(second):  # of one pass for many gradients, say, each of which is then tried alone
        return False
    if first.dtype in special:
        return list(first) == list(second)
    return first is second or np.asarray(first).tobytes() == np.asarray(second).tobytes()  # NaN, too
