"""Support of pandas, all in this file: the labels by which pandas aligns the operands of an operator.

Arrays have no labels and are combined by position. Combining results of two series with different labels would
therefore give other numbers than pandas, so it raises an error. The result of an elementwise op has the labels of its
operands. A variable's labels are stored at its node, or found at the nodes it was computed from; a traced array stores
its own. Until a series meets a variable or traced array nothing has labels, and ops only test ``seen``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import ArgumentError
from . import _checks, _dispatch

seen = False
"""True once a series or data frame was an operand together with a variable or traced array."""

_of_nodes: WeakKeyDictionary[Any, tuple | None] = WeakKeyDictionary()
"""Cached labels of nodes; None for nodes that were not computed from a series."""


def is_class(kind: type) -> bool:
    """True for a pandas class."""
    return kind.__module__.partition(".")[0] == "pandas"


_checks.followed.append(is_class)


def data_frame(columns: dict, rows: list, label: str) -> Any:
    """Return a data frame with named rows; ``label`` says what the names are.

    Raises:
        ImportError: pandas is not installed.
    """
    pandas = importlib.import_module("pandas")
    return pandas.DataFrame(columns, index=pandas.Index(rows, name=label))


def axes_of(value) -> tuple | None:
    """Return the labels of each dimension of a series or data frame; None for any other value."""
    if not is_class(type(value)) or not hasattr(value, "axes"):
        return None
    _see()
    return tuple(value.axes)


def _see() -> None:
    """From now on, resolve elementwise ops to implementations that track labels."""
    global seen
    if not seen:
        seen = True
        for entry in _dispatch.registry.values():
            entry.kernels.clear()


def result_labels(op: str, arguments: Iterable) -> tuple | None:
    """Return the labels of the result of an elementwise op on variables, traced arrays, series and data frames.

    Raises:
        ArgumentError: the operands' labels differ.
    """
    return _common(op, [_labels_of(op, x) for x in arguments])


def _labels_of(op: str, x) -> tuple | None:
    node = getattr(x, "_node", None)
    if node is not None:
        return _node_labels(op, node)
    return axes_of(x) or getattr(x, "axis_labels", None)


def _node_labels(op: str, node) -> tuple | None:
    """Return the labels of the series that a variable was computed from elementwise; None without one."""
    found, pending = [], [node]
    while pending:
        at = pending.pop()
        if at in _of_nodes:
            found.append(_of_nodes[at])
        elif at.rule.elementwise or at.rule.name == "get_item" and at.shape:
            pending += [edge for edge in at.edges if hasattr(edge, "rule")]  # a leaf has no node
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
    """Return ``y`` with labels, which a variable stores at its node."""
    if labels is not None and getattr(y, "_node", None) is not None:
        _of_nodes[y._node] = labels
    return y


def following(op: _dispatch.Op, call: Callable) -> Callable:
    """Wrap ``call``, an op on variables, so that its result has labels."""

    def followed(*arguments):
        labels = result_labels(op.name, arguments)
        return labelled(call(*arguments), labels)

    return followed


def go_before(kind: Any) -> None:
    """Let the operators of a class take precedence over pandas', so that the class computes ``series * array``."""
    kind.__pandas_priority__ = 5000


def raised(module: str) -> bool:
    """True if an error was raised in pandas' code, which replaces errors of gradops by its own."""
    return module.startswith("pandas.")
