"""The table of ops, and the names that users find in ``gradops.ops``: the others are for the rules of the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)

registry: dict[str, Any] = {}
"""Ops by their names, which :mod:`._dispatch` makes; here, so that what it imports can look them up."""

names = {"custom_gradient", "image", "nn", "stop_gradient"}
"""Every op as it is made; the two of gradops.flow, which are ops to users, and the namespaces."""


def public(function: F) -> F:
    """A function that is an op to users, though not to dispatch: it takes functions, or its result is not a tensor."""
    names.add(function.__name__)
    return function
