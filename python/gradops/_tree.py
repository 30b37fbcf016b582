"""Nested tuples, named tuples, lists and dicts of tensors, taken apart and put together.

``None`` is an empty structure: it has no leaves. Anything else that is no container is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Leaf:
    def __repr__(self) -> str:
        return "*"


LEAF = _Leaf()


def flatten(structure: Any) -> tuple[list, Any]:
    """The leaves in order (dicts by insertion) and the structure with ``LEAF`` in their places."""
    leaves: list = []
    return leaves, _take_apart(structure, leaves)


def _take_apart(structure, leaves: list):
    if structure is None:
        return None
    if isinstance(structure, dict):
        return type(structure)((k, _take_apart(v, leaves)) for k, v in structure.items())
    if isinstance(structure, (list, tuple)):
        return _sequence(structure, [_take_apart(v, leaves) for v in structure])
    leaves.append(structure)
    return LEAF


def unflatten(form: Any, leaves) -> Any:
    """The structure of ``form`` with ``leaves`` in the places of ``LEAF``."""
    return _put_together(form, iter(leaves))


def _put_together(form, leaves):
    if form is LEAF:
        return next(leaves)
    if isinstance(form, dict):
        return type(form)((k, _put_together(v, leaves)) for k, v in form.items())
    if isinstance(form, (list, tuple)):
        return _sequence(form, [_put_together(v, leaves) for v in form])
    return form


def _sequence(like, items: list):
    if hasattr(like, "_fields"):
        return type(like)(*items)
    return tuple(items) if isinstance(like, tuple) else items


def map(function: Callable, structure: Any, *others: Any) -> Any:
    """``function`` of the leaves, in the same structure; ``others`` must have that structure."""
    leaves, form = flatten(structure)
    columns = [flatten(other)[0] for other in others]
    return unflatten(form, [function(*items) for items in zip(leaves, *columns)])
