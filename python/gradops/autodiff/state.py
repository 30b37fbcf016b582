"""Attachments to graphs and to passes over them: looked up here, and installed by modules that this one does not know.

- ``hooks``: functions that see the gradient of an operation's result (installed by :mod:`.hooks`);
- ``observers``: functions that see each step of a pass (anomaly mode and the profiler);
- ``watchers``: functions that see each node as it is made (anomaly mode);
- ``readers``: functions that see unrecorded reads of variables (:mod:`.derivatives`);
- ``leavers``: functions that see variables whose record is dropped (:mod:`gradops.inference`);
- ``packers``: functions that save other objects in place of arrays: handles of arrays that are to be recomputed
  (checkpoints), and what the hooks of :mod:`.saved_tensors` return;
- ``special``: dtypes whose gradients are not arrays (text);
- versions: buffers that were written in place, and the check that no stale buffer is used (:mod:`.inplace`).

If nothing is attached, each costs one look at an empty container.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..backends.checkpoint_plan import Handle
from ..errors import GradientError

clock = count(1).__next__
"""The time: nodes and in-place writes, numbered in the order in which they happened."""

hooks: set[int] = set()
"""The operations, by ``seq``, whose results have hooks; the node stores them, as hooks may lead back to it."""

observers: list[Callable] = []
"""Functions ``(node, apply)`` that return the gradients ``apply()``; called around each step of a pass."""


accumulating = threading.RLock()
"""Held while a gradient is added to a ``grad``, so that threads lose none; never while a user's function runs."""


readers: list[Callable] = []
"""Functions that see the edges of variables that an operation reads while nothing is recorded."""


def read(*edges) -> None:
    """Show the ``readers`` the edges that an operation reads unrecorded: nodes, leaves, and None for other values."""
    for see in readers:
        see(edges)


leavers: list[Callable] = []
"""Functions that see recorded variables whose data is taken without the record, as by ``stop_gradient()``."""


# Nodes as they are made


watchers: list[Callable] = []
"""Functions that see each node as it is made."""

packers: list[Callable] = []
"""Functions from the values a node saves to those it keeps; a checkpoint's comes first, while its arrays are alive."""


@contextlib.contextmanager
def watching(see: Callable, by: list[Callable] = watchers) -> Iterator[None]:
    """A scope that calls ``see`` for what ``by`` sees, one of the lists above."""
    by.append(see)
    try:
        yield
    finally:
        by.remove(see)


class Kept:
    """A stand-in for a saved array; ``get(done)`` returns the array in a backward pass."""

    __slots__ = ()

    def get(self, done: dict) -> Any:
        raise NotImplementedError


class Packed(tuple):
    """Saved values with a checkpoint's handles or :class:`Kept` objects."""

    __slots__ = ()

    def unpack(self, done: dict) -> tuple:
        return tuple(_unpack(v, done) for v in self)


def _unpack(value, done: dict):
    if isinstance(value, (Handle, Kept)):
        return value.get(done)
    return [_unpack(v, done) for v in value] if type(value) is list else value


# Gradients that are not arrays


class Special(NamedTuple):
    """The handling of gradients that are not arrays, such as feedback on text.

    Attributes:
        seed: maps ``(root, given)`` to the gradient that a pass starts from.
        convert: maps ``(value, role)``, a value from a hook or a user's rule, to a gradient.
        accumulate: maps ``(leaf, gradient)`` to the leaf's new ``grad``.
        fit: maps ``(gradient, like)`` to the gradient of a leaf's data, or of a node.
    """

    seed: Callable
    convert: Callable
    accumulate: Callable
    fit: Callable


moment: ContextVar[int | None] = ContextVar("gradops_moment", default=None)
"""Inside a user's gradient function, the time of its operation: remarks made there count as made at that time."""

wanted: ContextVar[tuple | None] = ContextVar("gradops_wanted", default=None)
"""In a pass for some inputs, the :func:`.graph.key` of these inputs and of the nodes that lead to them, so that rules
with expensive gradients can skip those that nothing needs."""


class Running:
    """A backward pass under way: functions to call at its end, and notes of hooks, by ``id``."""

    __slots__ = ("ends", "notes")

    def __init__(self) -> None:
        self.ends: list[Callable] = []
        self.notes: dict[int, list] = {}


running: ContextVar[Running | None] = ContextVar("gradops_running", default=None)
"""The innermost backward pass under way."""

special: dict[Any, Special] = {}
"""The dtypes whose gradients are not arrays."""


# Versions


written: dict[int, tuple] = {}
"""Buffers that were written in place, by ``id`` of the owning array: a reference, the count, the latest times."""
_latest = [0]
"""The time of the last write to any buffer; younger nodes need no check."""
_MAX_WRITE_TIMES = 64
"""The number of write times remembered for a buffer, to tell which version a node saved."""


def bump(array) -> None:
    """Note that the memory of ``array`` was written now."""
    owner = buffer(array)
    key = id(owner)
    entry = written.get(key)
    # Arrays can neither be hashed nor given attributes, so the table uses `id`, which a new array may inherit from a
    # freed one: the reference tells them apart. The callback removes the entry when the array is freed.
    if entry is None or entry[0]() is not owner:
        forget = written.pop
        entry = written[key] = (weakref.ref(owner, lambda _: forget(key, None)), [0], deque(maxlen=_MAX_WRITE_TIMES))
    entry[1][0] += 1
    _latest[0] = clock()
    entry[2].append(_latest[0])


def version(data) -> int:
    """The number of recorded writes to the memory of ``data``; 0 for data that are never written."""
    if not isinstance(data, np.ndarray):
        return 0
    entry = written.get(id(buffer(data)))
    return 0 if entry is None else entry[1][0]


def written_since(array, seq: int) -> bool:
    """True if the memory of ``array`` was written after the time ``seq``."""
    entry = written.get(id(buffer(array)))
    return entry is not None and entry[2][-1] > seq


def check_versions(node) -> None:
    """Raise if a value that a node saved for its gradient was written after the operation.

    Raises:
        GradientError: names the operation, the version it saved and the present version.
    """
    # Most nodes are younger than all writes: nothing to look up.
    if node.seq > _latest[0]:
        return
    for value in node.saved:
        for array in value if isinstance(value, (list, tuple)) else (value,):
            if array.__class__ is not np.ndarray or not written_since(array, node.seq):
                continue
            _, (now,), times = written[id(buffer(array))]
            later = sum(time > node.seq for time in times)
            known = later < len(times) or now == later
            raise GradientError(
                f"`{node.name}` saved a tensor of shape {array.shape} for its gradient at version {now - later}"
                f"{'' if known else ' or older'}; in-place writes have since made it version {now}.",
                hint="write to a `clone()`, or write before the operation; "
                "`gradops.autodiff.detect_anomaly()` shows where it was called",
            )


def buffer(array):
    """The array that owns the memory of ``array``."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array
