"""The tape's derivatives, for libraries without their own (NumPy, traced arrays, text) and for every variable.

A derivative need not be recorded unless an enclosing derivative depends on it. The graph of a value shows the variables
it depends on, but a gradient function or a hook may read others, as ``lambda u: u * cos(y)`` reads ``y``. So a first,
unrecorded pass observes the variables that such functions read (:class:`Others`); if one of them is from outside, the
pass runs again, recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext

import numpy as np

from .. import _tree, backends
from ..backends.interface import Derivatives, register_on_tape, tape
from ..backends.numpy.base import owned
from ..errors import GradientError
from ..ops import creation
from . import engine, gradients, graph
from .cotangents import materialize
from .graph import ALIAS, Node
from .modes import call_with_own_gradient, ensured_recording, recording
from .record import record
from .state import hooks, moment, read, readers
from .variable import Variable, attach_new, data_of, edges_of, is_active, wrap


class Others:
    """The variables other than some inputs that values, and the gradient functions of their graph, depend on.

    Attributes:
        found: the leaves.
        watched: True if functions that are not gradops' own take part in a backward pass from the values.
    """

    __slots__ = ("found", "watched", "_seen", "_kept")

    def __init__(self, values: Iterable[Variable], inputs: list):
        # Leaves are compared by identity, as they define a hash of their own.
        self._seen: set = {id(x) for x in inputs} | {x._node for x in inputs if x._node is not None}
        self._kept: list = []
        self.found: list = []
        self.watched = bool(hooks) or any(x._hooks for x in inputs)
        self._follow(tuple([y._node or y for y in values if y.requires_grad]))
        if not self.watched:  # nothing will be read, so a long graph's nodes can be freed
            self._seen = set()

    def _follow(self, edges: tuple) -> None:
        seen, stack = self._seen, [edges]
        while stack:
            for edge in stack.pop():
                # A user's gradient function may read variables that its edges do not show.
                if edge.__class__ is Node:
                    if edge not in seen:
                        seen.add(edge)
                        stack.append(edge.edges)
                        if not edge.rule.is_closed:
                            self.watched = True
                elif edge is not None and id(edge) not in seen:
                    seen.add(id(edge))
                    self.found.append(edge)

    def active(self) -> bool:
        """True if one of the leaves is not a constant left by a finished derivative."""
        return any(not (hasattr(x, "gradops_done") or _is_over(x)) for x in self.found)

    def read(self, edges: tuple) -> None:
        """Include edges that were read."""
        self._kept.append(edges)
        self._follow(edges)

    @contextlib.contextmanager
    def watching(self):
        """A scope that includes edges read without being recorded; used around a backward pass."""
        readers.append(self.read)
        try:
            yield
        finally:
            readers.remove(self.read)


def _is_over(x) -> bool:
    """True for an argument of a loop's or branch's function that is no longer traced or differentiated."""
    body = getattr(x, "gradops_body", None)
    return body is not None and not body.in_use


def reaches_others(y: Variable, inputs: list) -> bool:
    """True if ``y`` also depends on variables that are not among ``inputs``."""
    return Others([y], inputs).active()


# The members of the contract ``Derivatives``, by the tape ------------------------------------------------------------


def derivatives_of(backend: backends.Backend, values) -> Derivatives:
    """The derivatives of tensors of one library; the tape's if one of them is a variable."""
    for x in values:
        if isinstance(x, Variable):
            return tape
    return backend.derivatives


@register_on_tape
def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative."""
    start = graph.clock()
    values, pull = call_with_own_gradient(run, *inputs)
    values = _unshared(values, inputs)
    if not recording.get():
        read(*edges_of(inputs))
        return [wrap(v.data) if is_active(v) else v for v in values]
    edges = edges_of(inputs)
    _check_closure(values, edges, start)
    if not any(edge is not None for edge in edges):
        return values

    def whole(g, saved, node):
        if isinstance(g, graph.Cotangents):
            g = materialize(g, node)
        token = moment.set(node.seq)
        try:
            found = pull([engine.given(x) for x in (g if isinstance(g, list) else [g])])
            read(*edges_of(found))  # derivatives inside the rule are recorded even if this pass is not
            return [engine.lent(x) for x in found]
        finally:
            moment.reset(token)

    rule = graph.Rule("custom_gradient", vjp=whole, is_closed=getattr(run, "is_closed", False))
    data = [data_of(v) for v in values]
    if len(data) == 1:
        return [record(rule, edges, (), data[0])]
    return record(rule, edges, (), data)


def _unshared(values: list, inputs: list) -> list:
    """``values``, with a copy of each one that is an input or occurs twice."""
    taken = {id(data_of(x)) for x in inputs}
    found = []
    for v in values:
        data = data_of(v)
        if id(data) not in taken:
            taken.add(id(data))
            found.append(v)
            continue
        if isinstance(data, np.ndarray):
            data = data.copy()
        found.append(engine.alias(v, data))
    return found


def _check_closure(values: list, edges: tuple, start: int) -> None:
    """Raise for variables that need a gradient and came in through a closure, where it would be lost."""
    known = {id(edge) for edge in edges if edge is not None}
    stack = [v._node or v for v in values if is_active(v)]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        if id(edge) in known or id(edge) in seen:
            continue
        seen.add(id(edge))
        if isinstance(edge, graph.Node) and edge.seq > start:
            stack.extend(e for e in edge.edges if e is not None)
            continue
        if hasattr(edge, "gradops_done"):  # the variable of a finished inner derivative has no gradient
            continue
        raise GradientError(
            "a function with a custom gradient uses a variable that requires a gradient but is not an argument; "
            "its gradient would be lost.",
            argument="f",
            hint="pass the variable as an argument, or use `stop_gradient()` on it",
        )


@register_on_tape
def value_and_grad(run: Callable, leaves: list) -> tuple:
    """Fresh variables stand for the inputs, so that variables that ``f`` closes over are constants."""
    tracked = [x for x in leaves if isinstance(x, Variable)]
    outside = recording.get()
    with ensured_recording():
        inputs = []
        for x in leaves:
            inputs.append(linked(x) if is_active(x) else fresh(x))
        y = run(*inputs)
        nested = outside and tracked and any(x.requires_grad for x in tracked)
        box = getattr(run, "box", None)
        if box and not nested:
            detach_aux(box, inputs, bool(tracked))
        if not isinstance(y, Variable) or not y.requires_grad:
            zeros = [creation.zeros_like(x) for x in leaves]
            return (y if tracked or not isinstance(y, Variable) else y.data), zeros
        others = Others([y], inputs)
        if not outside:
            read(*edges_of(tracked), *others.found)
        recorded: tuple = ()
        if not (nested or outside and others.active()):
            watching = outside and others.watched
            alone = not others.found and (not tracked or all(x._node is None for x in inputs))
            derive = gradients.leaf_gradients if alone else gradients.grad
            with others.watching() if watching else nullcontext():
                found = derive(y, inputs, retain_graph=watching, materialize_grads=True)
            if watching and others.active():
                recorded = _recorded(y, inputs)
            if not (recorded and Others(recorded, inputs).active()):  # the values read may not have been used
                (value,) = owned([y.data], {id(x.data) for x in inputs})
                return (wrap(value), list(found)) if tracked else (value, [g.data for g in found])
        found = recorded or _recorded(y, inputs)
        for x in inputs:
            x.gradops_done = True  # type: ignore[attr-defined]  # a constant for enclosing derivatives
        return y, list(found)


def _recorded(y: Variable, inputs: list) -> tuple:
    return gradients.grad(y, inputs, create_graph=True, retain_graph=True, materialize_grads=True)


def detach_aux(box: dict, inputs: list, as_variables: bool) -> None:
    """Detach the auxiliary output of ``f`` from the graph of this derivative, unless it depends on other variables."""

    def detached(x):
        if not isinstance(x, Variable) or (x._node is not None and reaches_others(x, inputs)):
            return x
        return wrap(x.data) if as_variables else x.data

    if "aux" in box:
        box["aux"] = _tree.map_leaves(detached, box["aux"])


def linked(x: Variable) -> Variable:
    """A new variable that aliases ``x``, so that variables ``f`` closes over are constants for a derivative by it."""
    out = attach_new(x.data, ALIAS, (x._node or x,), ())
    out._given = True
    return out


_FLOAT64 = np.dtype("float64")


def fresh(x) -> Variable:
    """A new leaf on the data of ``x``."""
    leaf = wrap(data_of(x))
    if x.__class__ is np.ndarray and x.dtype is _FLOAT64:
        leaf._active = True
    else:
        leaf.requires_grad = True
    leaf._given = True
    return leaf
