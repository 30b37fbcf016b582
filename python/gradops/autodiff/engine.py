"""The backward pass: gradients propagate from results to leaves, youngest operation first.

:func:`run` starts from the gradients that :func:`seed` makes for the results. :func:`_pass` takes one step for each
node and delivers the step's gradients to the nodes and leaves that they go on to; :func:`accumulate` adds gradients
that arrive at leaves to their ``grad``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from .._scopes import changed
from ..errors import GradientError
from ..ops import conversion, creation, elementwise
from .cotangents import Scattered, add, fit, is_complex, materialize, whole
from .graph import ALIAS, PICK, RESULT, Cotangents, Node, asked, key, nodes_of
from .initial_gradients import NAMES, check, tensor
from .modes import recording
from .state import (
    Packed,
    Running,
    accumulating,
    bump,
    check_versions,
    hooks,
    observers,
    running,
    special,
    wanted,
    written,
)
from .variable import Variable, attach, attach_new, data_of, is_active, wrap


class Pass:
    """A backward pass that was interrupted by an error, stored with the graph so that the same pass can resume it.

    Attributes:
        start: its arguments: roots, seeds, ``retain``, ``create_graph`` and inputs.
        arrived: nodes and leaves, each with the sum of its gradients so far, by :func:`.graph.key`.
        waiting: the nodes among them, as a heap whose first is the youngest.
        ends: the inputs that are results, with their gradients.
        seen: the node at which it was interrupted, if its hooks have run.
        hooked: the leaves whose hooks have run.
    """

    some = False
    """True once a pass has been interrupted."""

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
        """True if a starting pass has the arguments of this one."""
        own = self.start
        return (
            # Nodes are compared, not variables: a result that was written in place since then has another node, and
            # another gradient.
            [id(root._node or root) for root in roots] == [id(root._node or root) for root in own[0]]
            and (retain, create_graph) == own[2:4]
            and [id(x) for x in inputs or ()] == [id(x) for x in own[4] or ()]
            and all(map(_equal, seeds, own[1]))
        )


def broken_off(roots, seeds, retain, create_graph, inputs) -> Pass | None:
    """The interrupted pass that a starting pass resumes, or None."""
    found = None
    for node in [root._node for root in roots if root._node is not None]:
        if hasattr(node, "broken_off"):
            found = found or node.broken_off
            # In any case the old pass is over: if the new one differs, it frees nodes that the old one would need.
            del node.broken_off
    if found is not None and found.same(roots, seeds, retain, create_graph, inputs):
        return found
    return None


def _equal(first, second) -> bool:
    """True if two passes start from the same gradient."""
    first, second = (data_of(x) for x in (first, second))
    if type(first) is not type(second):  # e.g. a batch of gradients, then tried one by one
        return False
    if first.dtype in special:
        return list(first) == list(second)
    return first is second or np.asarray(first).tobytes() == np.asarray(second).tobytes()  # compares NaN as equal


# The pass -------------------------------------------------------------------------------------------------------------


FLOAT64 = np.dtype("float64")
"""The most common dtype, compared by identity."""


def seed(root: Variable, given, create_graph: bool, names: tuple[str, str] = NAMES):
    """The gradient of ``root`` that a pass starts from: the given one, or 1."""
    if root.dtype in special:
        return special[root.dtype].seed(root, given)
    if given is None:
        if root._value.__class__ is np.float64:  # the common case, tested cheaply
            given = np.array(1.0)
        else:
            check(root._value, None, names)
            given = creation.ones_like(root._value)
        return wrap(given) if create_graph else given
    given = tensor(root.data, given, names)
    check(root, given, names)
    if create_graph:
        return given if isinstance(given, Variable) else wrap(given)
    return data_of(given)


def run(roots, seeds, retain, create_graph, inputs=None, within=None) -> dict[int, list]:
    """Run a backward pass from ``seeds``, the gradients of ``roots``.

    Args:
        retain: keep the values that nodes saved, for another pass.
        create_graph: record the pass; gradients are then variables, and raw data otherwise.
        inputs: the variables whose gradients are needed, leaves or results; None means all leaves.
        within: the numbers of the nodes that it visits; with ``inputs``, None means all that lead to an input.

    Returns:
        Pairs of a leaf, or an input's node, and its gradient, by :func:`.graph.key`; only those that were reached.
    """
    ways = None if inputs is None else _paths(roots, inputs)
    if ways is not None and within is not None:
        ways = ways[0], ways[1] & within
    token, before, outer = recording.set(bool(create_graph)), wanted.set(ways), running.set(now := Running())
    try:
        # Rules compute slopes at poles, and both branches of a selection: NumPy would warn of divisions in lines that
        # the user did not write, although the gradient is right.
        with np.errstate(all="ignore"):
            found = _pass(roots, seeds, retain, create_graph, inputs, ways)
            for end in now.ends:
                end()
            return found
    finally:
        running.reset(outer)
        wanted.reset(before)
        recording.reset(token)


def _pass(roots, seeds, retain, create_graph, inputs, ways) -> dict[int, list]:
    """The loop of a pass: deliver gradients, then take the step of the youngest node that has one.

    Nodes are numbered as they are made, so nothing can still add to the gradient of the youngest waiting node: it
    is complete, and each node's rule is called once. ``arrived`` maps a node's number, or minus a leaf's ``id``, to the
    node or leaf and the sum of its gradients so far; ``waiting`` is a heap of the nodes among them.

    A rule, or a user's hook, may raise. A node's gradient is put back until its step is complete,
    so that the same pass, started again, resumes there: nothing is delivered twice, and no hook runs twice.

    This is the hot loop: delivery is inlined, because a call for each node would cost as much as the work in it.
    """
    start = (roots, seeds, retain, create_graph, inputs)
    before = broken_off(*start) if Pass.some else None
    if before is None:
        arrived, waiting, ends, seen, hooked = {}, [], {}, None, set()
        edges: Sequence = [root._node or root for root in roots]
        gradients = seeds
    else:
        arrived, waiting, ends, seen, hooked = before.arrived, before.waiting, before.ends, before.seen, before.hooked
        edges, gradients = (), ()
    everywhere = ways is None
    aims, onward = ways or (_NONE, _NONE)
    recomputed: dict = {}  # values that checkpoints recomputed for this pass
    while True:
        # Deliver the gradients that the last step, or the caller, produced for its edges.
        for edge, g in zip(edges, gradients):
            if edge is None or g is None:
                continue
            if edge.__class__ is Node:
                like = edge
                place = edge.seq
            else:
                like = edge._value
                place = -id(edge)
                if like.__class__ is str:  # text that the user assigned
                    like = edge
            # A gradient that leads to none of the inputs is dropped here, before `fit` and `add` cost anything. The
            # others are converted to the tensor's shape and dtype once, on arrival: rules may leave broadcast
            # dimensions and wider dtypes, and sums of such gradients would have the wrong shape. Dtypes are compared by
            # identity, as NumPy has one object for each in native byte order; `fit` compares the names of dtypes that
            # differ.
            if everywhere or place in onward or place in aims:
                shape = like.shape
                if shape is not None and (g.shape != shape or g.dtype is not like.dtype):
                    g = fit(g, like)
                if place in arrived:
                    entry = arrived[place]
                    entry[1] = add(entry[1], g)
                else:
                    arrived[place] = [edge, g]
                    if place > 0:
                        heappush(waiting, -place)
        if not waiting:
            break
        # Take the next step.
        place = -heappop(waiting)
        entry = arrived.pop(place)
        node, g = entry
        if g.__class__ is Scattered:
            g = entry[1] = g.total()
        edges = ()
        try:
            if hooks and place in hooks and place != seen:
                g = entry[1] = _run_hooks(node.hooks, g, create_graph)
            seen = place
            if place in aims:
                ends[place] = entry
            if everywhere or place in onward:
                edges = node.edges
                saved, rule = node.saved, node.rule
                if node.dtype is not FLOAT64 or saved.__class__ is not tuple or create_graph or written or observers:
                    gradients = _step(node, g, create_graph, recomputed)
                elif rule.vjp is None:  # the common case
                    gradients = rule.pull(g, saved, edges)
                else:
                    gradients = rule.vjp(g, saved, node)
        except BaseException:
            arrived[place] = entry  # nothing of its step was delivered
            heappush(waiting, -place)
            Pass(start, arrived, waiting, ends, place if place == seen else None, hooked)
            raise
        # Freed only now, because a rule that raised is called again with what its node saved. Without edges no step was
        # taken: the node is an input at which the pass ends, and another pass may continue from it.
        if edges and not retain:
            node.saved = None
    _end(start, arrived, ends, hooked)
    return ends | arrived


def _end(start: tuple, arrived: dict[int, list], ends: dict, hooked: set[int]) -> None:
    """Run the hooks of leaves on complete gradients; a hook that raises is run again, the others are not."""
    for place, entry in arrived.items():
        if entry[1].__class__ is Scattered:
            entry[1] = entry[1].total()
        if entry[0]._hooks and place not in hooked:
            try:
                entry[1] = _run_hooks(entry[0]._hooks, entry[1], start[3])
            except BaseException:
                Pass(start, arrived, [], ends, None, hooked)
                raise
            hooked.add(place)


_NONE: frozenset[int] = frozenset()


def _paths(roots, inputs) -> tuple[set[int], set[int]]:
    """The inputs, and the nodes that lead to one of them, by :func:`.graph.key`."""
    aims = {key(asked(x)) for x in inputs}
    onward: set[int] = set()
    # No search from each node: its edges lead to older nodes, which are already classified.
    for node in nodes_of(roots):
        for edge in node.edges:
            if edge is not None and (key(edge) in aims or key(edge) in onward):
                onward.add(node.seq)
                break
    return aims, onward


def _step(node: Node, g, create_graph: bool, recomputed: dict):
    """The gradients for the edges of a node, from its own."""
    saved, rule = node.saved, node.rule
    if saved is None:
        raise GradientError(
            f"the graph of `{node.name}` was freed by an earlier backward pass.",
            hint="pass `retain_graph=True` to the earlier pass; a pass that failed resumes from the same result",
        )
    # Handles of checkpoints are not arrays and are skipped here: their plan checks its inputs when it recomputes the
    # values below.
    if written and rule.slots:
        check_versions(node)
    if saved.__class__ is Packed:
        saved = saved.unpack(recomputed)
    if create_graph:
        saved = rejoin(node, saved)
    if g.__class__ is Cotangents:
        g = materialize(g, node)
    if hasattr(node, "around"):
        return _around[0](node, g, create_graph, functools.partial(_pulled, node, saved))
    return _pulled(node, saved, g)


def _pulled(node: Node, saved, g):
    """The gradients for the edges of a node from its rule; observers see it, and complex numbers are conjugated."""
    rule = node.rule
    conjugate = node.dtype is not FLOAT64 and rule.holomorphic and is_complex(node.dtype)
    if conjugate:
        g = elementwise.conj(g)
    if observers:
        gradients = _observed(node, g, saved)
    elif rule.vjp is None:
        gradients = rule.pull(g, saved, node.edges)
    else:
        gradients = rule.vjp(g, saved, node)
    if conjugate:
        gradients = [None if gi is None else elementwise.conj(whole(gi)) for gi in gradients]
    return gradients


def pull(node: Node, g, saved) -> list:
    """The gradients for all edges of a node, from its rule."""
    rule = node.rule
    gradients = rule.pull(g, saved, node.edges) if rule.vjp is None else rule.vjp(g, saved, node)
    return [whole(gi) for gi in gradients]


def rejoin(node: Node, saved: tuple) -> tuple:
    """The node's saved values as variables in the graph, for a pass that is itself recorded.

    Values without a slot are unchanged.
    """
    values = []
    for value, slot in zip(saved, node.rule.slots):
        if value is None or slot is None:
            values.append(value)
        elif isinstance(slot, tuple):
            values.append([rejoined(v, node.edges[s]) for v, s in zip(value, slot)])
        elif slot != RESULT:
            values.append(rejoined(value, node.edges[slot]))
        elif node.shape is None and isinstance(value, (list, tuple)):
            values.append([attach(v, Node(PICK, (node,), (i,), v.shape, v.dtype)) for i, v in enumerate(value)])
        else:
            values.append(attach(value, node))
    return (*values, *saved[len(values) :])


def rejoined(value, edge):
    if edge is None:
        return value
    if edge.__class__ is Node:
        return attach(value, edge)
    return edge if edge._value is value else attach_new(value, ALIAS, (edge,), ())


def _observed(node: Node, g, saved):
    apply = functools.partial(pull, node, g, saved)
    for observe in observers:
        apply = functools.partial(observe, node, apply)
    return apply()


_around: list = []


def around(step_with_hooks):
    """Register the function that calls a node's own hooks around its step (:mod:`.node_hooks`)."""
    _around.append(step_with_hooks)
    return step_with_hooks


def _run_hooks(registered: dict, g, create_graph: bool):
    for hook in list(registered.values()):
        own = given(g)
        replaced = hook(own if isinstance(own, Variable) else wrap(own))
        if replaced is not None:
            g = lent(replaced.data if isinstance(replaced, Variable) and not create_graph else replaced)
    return g


def accumulate(leaf: Variable, g, create_graph: bool) -> None:
    """Add to ``leaf.grad``: in place, in the leaf's memory layout, unless the pass was recorded."""
    with accumulating:
        before = leaf._grad
        if leaf.dtype in special:
            leaf.grad = special[leaf.dtype].accumulate(leaf, g)
        elif create_graph:
            if before is None:  # its own memory: passes and users write in place
                leaf.grad = alias(g, _own(g.data, leaf.data))
            else:
                leaf.grad = elementwise.add(before, g)
        elif isinstance(g, Variable):  # from a user's gradient function
            leaf._grad = wrap(_own(g.data, leaf.data) if before is None else elementwise.add(before.data, g.data))
        elif before is None:
            leaf._grad = wrap(_own(g, leaf._value))
        elif _writable(before) and isinstance(g, (np.ndarray, np.generic)):
            # In place: holders of the array of `grad` see the sum. An operation recorded on it saved the old values, so
            # the write is noted, and a pass through that operation raises an error.
            np.add(before.data, g, out=before.data)
            bump(before.data)
        else:
            leaf._grad = wrap(elementwise.add(before.data, g))
    if leaf._after:
        with changed(recording, bool(create_graph)):
            for hook in list(leaf._after.values()):
                hook(leaf)


def alias(x, data) -> Variable:
    """A new variable on ``data`` with the gradient of ``x``."""
    edge = x._node or x if is_active(x) else None
    return wrap(data) if edge is None else attach_new(data, ALIAS, (edge,), ())


def given(g):
    """A gradient for a user's function, which may write to it: it shares no memory with other gradients."""
    data = data_of(g)
    if data.__class__ is np.ndarray:
        data = data.copy("K")
    elif hasattr(data, "_superseded"):  # an array of a function being compiled
        data = conversion.copy(data)
    elif data is g or data.dtype in special:
        return g
    return alias(g, data) if isinstance(g, Variable) else data


def lent(g):
    """A gradient that a user's function returned, whose memory may be shared: a view, which is copied at the end."""
    data = data_of(g)
    if data.__class__ is not np.ndarray:
        return g
    return alias(g, data.view()) if data is not g else data.view()


def _own(g, data):
    """``g`` in its own memory, with the layout of ``data``; arrays that cannot be written are shared."""
    if data.__class__ is g.__class__ is np.ndarray and data.dtype is g.dtype and data.flags.c_contiguous:
        return g.copy()
    if not isinstance(data, (np.ndarray, np.generic)):
        return g
    own = np.empty_like(data, subok=False)
    own[...] = g
    return own


def _writable(grad: Variable) -> bool:
    return grad.data.__class__ is np.ndarray and grad.data.flags.writeable and not grad._active
