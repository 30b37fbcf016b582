"""Kernels over the array API's namespace: shared by backends, and sufficient for a library without a backend.

A family's kernels are made by one function of a namespace ``xp`` and of ``base``, the members that they need of the
library (:mod:`.base`). Each is bound to them where it is made, so that a call of one goes through nothing else. A
backend defines kernels that its library does better; :func:`complete` adds the rest. One of nothing but the standard is
:func:`..namespace.register_namespace`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..interface import Backend, members
from . import elementwise, linalg, shaping
from .base import with_defaults

FAMILIES = (elementwise.elementwise, shaping.kernels, shaping.indexing, elementwise.reductions, linalg.kernels)


def complete(namespace: dict, xp: Any, base: Any, families: Iterable[Callable] = FAMILIES) -> None:
    """Add to a backend's namespace the members of ``base`` and the kernels that it does not define itself."""
    base = with_defaults(xp, base)
    for name in (*members(Backend), "cast", "copy", "nonzero"):
        if hasattr(base, name):
            namespace.setdefault(name, getattr(base, name))
    for family in families:
        for name, kernel in family(xp, base).items():
            namespace.setdefault(name, kernel)
