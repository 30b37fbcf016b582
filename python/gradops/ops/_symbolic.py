"""KerasTensors: ops, stops and custom gradients in a functional model of Keras's, each as an operation of the model."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from .. import _tree, backends


def any_symbolic(values) -> bool:
    """True where a KerasTensor is among nested values."""
    return any(map(backends.is_symbolic, _tree.leaves_of(values)))


def in_model(function: str | Callable, arguments, keywords=None):
    """``function(*arguments, **keywords)`` where a KerasTensor is among the arguments: KerasTensors, by an operation.

    Args:
        function: the name of one of gradops' functions; or any function, with which the model cannot be saved.
    """
    operation = importlib.import_module("._keras", __package__).Operation
    return operation(function)(*arguments, **(keywords or {}))


def join_keras() -> None:
    """Let Keras load models with gradops' functions in them, where it is imported already."""
    if hasattr(sys.modules.get("keras"), "Operation"):
        importlib.import_module("._keras", __package__)
