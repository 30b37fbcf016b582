"""KerasTensors: ops, stops and custom gradients as operations of Keras's functional models."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from .. import _tree, backends


def any_symbolic(values) -> bool:
    """True if a KerasTensor is among nested values."""
    return any(map(backends.is_symbolic, _tree.leaves_of(values)))


def call_symbolically(function: str | Callable, arguments, keywords=None):
    """Return ``function(*arguments, **keywords)`` of KerasTensors as KerasTensors, by an operation of the model.

    Args:
        function: the name of a gradops function; or any other function, with which the model cannot be saved.
    """
    operation = importlib.import_module("._keras", __package__).Operation
    return operation(function)(*arguments, **(keywords or {}))


def join_keras() -> None:
    """Register gradops' operations with Keras, if it is imported, so that it can load models that use them."""
    if hasattr(sys.modules.get("keras"), "Operation"):
        importlib.import_module("._keras", __package__)
