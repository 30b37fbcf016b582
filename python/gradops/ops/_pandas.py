"""pandas: all that gradops knows of it. Labels, by which pandas aligns the operands of an operator.

Arrays have none, and are combined by position. So a result of a series element by element is not combined with one of
other labels: that would be another number than pandas'. A result has the labels of its operands; those of a variable
stand at its node, or are found at the nodes that it came from, those of a traced array at the array. Until a series is
met beside one of them nothing has labels, and only ``seen`` is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import ArgumentError
from . import _checks, _dispatch

seen = False
"""True if a series or data frame was met beside a variable or traced array."""

_of_nodes: WeakKeyDictionary[Any, tuple | None] = WeakKeyDictionary()
"""The labels of nodes that were asked for; None for nodes that do not come from a series."""


def is_class(kind: type) -> bool:
    """True for a class of pandas'."""
    return kind.__module__.partition(".")[0] == "pandas"


_checks.followed.append(is_class)


def axes_of(value) -> tuple | None:
    """The labels of each dimension of a series or data frame; None for anything else."""
    if not is_class(type(value)) or not hasattr(value, "axes"):
        return None
    _see()
    return tuple(value.axes)


def _see() -> None:
    """Look up ops that go element by element, from here on, with the code that follows labels."""
    global seen
    if not seen:
        seen = True
        for entry in _dispatch.registry.values():
            entry.kernels.clear()


def of_call(op: str, arguments: Iterable) -> tuple | None:
    """The labels of an op's result, element by element, for variables, traced arrays, series and data frames.

    Raises:
        ArgumentError: labels that differ.
    """
    return _common(op, [_labels_of(op, x) for x in arguments])


def _labels_of(op: str, x) -> tuple | None:
    node = getattr(x, "_node", None)
    if node is not None:
        return _of_node(op, node)
    return axes_of(x) or getattr(x, "axis_labels", None)


def _of_node(op: str, node) -> tuple | None:
    """The labels of the series from which a variable's value was computed element by element."""
    found, pending = [], [node]
    while pending:
        at = pending.pop()
        if at in _of_nodes:
            found.append(_of_nodes[at])
        elif at.rule.elementwise or at.rule.name == "get_item" and at.shape:
            pending += [edge for edge in at.edges if hasattr(edge, "rule")]  # a leaf has none
    _of_nodes[node] = labels = _common(op, found)
    return labels


def _common(op: str, found: list[tuple | None]) -> tuple | None:
    result: tuple = ()
    for labels in found:
        if labels is not None:
            if not all(one.equals(other) for one, other in zip(reversed(result), reversed(labels))):
                raise ArgumentError(
                    f"`{op}`: two pandas objects, or results of such, have different labels. pandas would align them; "
                    "arrays have no labels.",
                    hint="align them before (`a, b = a.align(b)`), or pass the values, `x.to_numpy()`",
                )
            result = max(result, labels, key=len)
    return result or None


def labelled(y, labels: tuple | None):
    """``y`` with labels: a variable's stand at its node."""
    if labels is not None and getattr(y, "_node", None) is not None:
        _of_nodes[y._node] = labels
    return y


def following(op: _dispatch.Op, call: Callable) -> Callable:
    """``call``, an op on variables, with the labels of its result."""

    def followed(*arguments):
        labels = of_call(op.name, arguments)
        return labelled(call(*arguments), labels)

    return followed


def go_before(kind: Any) -> None:
    """Have a class's operators be asked before those of a data frame: ``series * array`` is the array's too."""
    kind.__pandas_priority__ = 5000


def raised(module: str) -> bool:
    """True if the code of a module that raised an error is pandas', which raises its own in the place of ours."""
    return module.startswith("pandas.")
