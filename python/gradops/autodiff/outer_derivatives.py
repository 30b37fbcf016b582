"""The test for a derivative inside another one: it depends on variables beside its inputs.

The graph of a value shows the variables it depends on. A gradient function or a hook may read others, as
``lambda u: u * cos(y)`` reads ``y``. A pass inside no other derivative is not recorded, so the variables that such
functions read are watched while it runs; where one of them was from outside, the pass runs again, recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from .graph import Node
from .state import hooks, readers
from .variable import Variable


class Others:
    """The variables, beside some inputs, on which values and the gradient functions behind them depend.

    Attributes:
        found: the leaves.
        watched: whether functions that are not gradops' own take part in a backward pass from the values.
    """

    __slots__ = ("found", "watched", "_seen", "_kept")

    def __init__(self, values: Iterable[Variable], inputs: list):
        # Leaves go by identity, as they have a hash of their own.
        self._seen: set = {id(x) for x in inputs} | {x._node for x in inputs if x._node is not None}
        self._kept: list = []
        self.found: list = []
        self.watched = bool(hooks) or any(x._hooks for x in inputs)
        self._follow(tuple([y._node or y for y in values if y.requires_grad]))
        if not self.watched:  # nothing will be read: a long graph's identities need not outlast this
            self._seen = set()

    def _follow(self, edges: tuple) -> None:
        seen, stack = self._seen, [edges]
        while stack:
            for edge in stack.pop():
                # A rule with `vjp` may be the user's function, and read variables that its edges do not show; those of
                # ops read their saved values alone.
                if edge.__class__ is Node:
                    if edge not in seen:
                        seen.add(edge)
                        stack.append(edge.edges)
                        if edge.rule.vjp is not None:
                            self.watched = True
                elif edge is not None and id(edge) not in seen:
                    seen.add(id(edge))
                    self.found.append(edge)

    def active(self) -> bool:
        """True if one of the leaves is no constant of a derivative that is over."""
        return any(not (hasattr(x, "gradops_done") or _is_over(x)) for x in self.found)

    def read(self, edges: tuple) -> None:
        """Count the edges that were read, too."""
        self._kept.append(edges)
        self._follow(edges)

    @contextlib.contextmanager
    def watching(self):
        """A scope in which edges read without being recorded count: that of a backward pass."""
        readers.append(self.read)
        try:
            yield
        finally:
            readers.remove(self.read)


def _is_over(x) -> bool:
    """True for an argument of a loop's or branch's function that is neither traced nor differentiated any more."""
    body = getattr(x, "gradops_body", None)
    return body is not None and not body.in_use


def reaches_others(y: Variable, inputs: list) -> bool:
    """True if ``y`` also depends on variables that are not among ``inputs``."""
    return Others([y], inputs).active()
