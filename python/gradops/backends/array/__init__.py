"""Kernels over the array API's namespace, shared by the backends and sufficient for a library without a backend.

A function such as ``linalg.kernels(xp, base)`` makes the kernels of one family from a namespace ``xp`` and from
``base``, the library's conversions and dtype rule (:mod:`.base`). The kernels are closures over both, so a call has no
further indirection. A backend defines the kernels that its library does better, and :func:`complete` adds the rest.
:func:`gradops.backends.namespace.backend` makes a backend of these kernels alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..interface import Backend, members
from . import elementwise, linalg, shaping
from .base import add_defaults

FAMILIES = (elementwise.elementwise, shaping.kernels, shaping.indexing, elementwise.reductions, linalg.kernels)


def complete(namespace: dict, xp: Any, base: Any, families: Iterable[Callable] = FAMILIES) -> None:
    """Add to a backend's namespace the members of ``base`` and the kernels that it does not define itself."""
    base = add_defaults(xp, base)
    for name in (*members(Backend), "cast", "copy", "nonzero"):
        if hasattr(base, name):
            namespace.setdefault(name, getattr(base, name))
    for family in families:
        for name, kernel in family(xp, base).items():
            namespace.setdefault(name, kernel)
