"""Which traced arrays share memory, as what they stand for does outside of a trace: what writes in place ask."""

from __future__ import annotations

import weakref

import numpy as np

from .._tree import items
from ..autodiff.state import buffer
from .array import Traced


class Memories:
    """The memories of a program's traced arrays, by number (``Traced.memory``)."""

    def __init__(self) -> None:
        self._sharing: dict[int, list[weakref.ref]] = {}
        self._given: set[int] = set()

    def note_view(self, traced: Traced, arguments) -> None:
        """Note of which of a call's arguments its result is a view, if of any."""
        if traced.value.__class__ is not np.ndarray or not _may_be_view(traced.value, arguments):
            return
        owner = buffer(traced.value)
        viewed = (x for x in items(arguments) if isinstance(x, Traced) and buffer(x.value) is owner)
        source = next(viewed, None) if isinstance(owner, np.ndarray) else None
        if source is not None:
            traced.memory = self._number(source)
            self._sharing[traced.memory].append(weakref.ref(traced))

    def _number(self, traced: Traced) -> int:
        if not traced.memory:
            traced.memory = len(self._sharing) + 1
            self._sharing[traced.memory] = [weakref.ref(traced)]
        return traced.memory

    def note_given(self, traced: Traced) -> None:
        """Note that the memory is an argument's or a constant's."""
        self._given.add(self._number(traced))

    def is_given(self, traced: Traced) -> bool:
        """Whether the memory is an argument's or a constant's."""
        return traced.memory in self._given

    def sharing(self, traced: Traced) -> list[Traced]:
        """The other traced arrays on the same memory that somebody holds."""
        found = [seen() for seen in self._sharing.get(traced.memory, ())]
        return [x for x in found if x is not None and x is not traced]

    def clear(self) -> None:
        """Forget who shares a memory."""
        self._sharing.clear()


def _may_be_view(value: np.ndarray, arguments) -> bool:
    """Whether an array may share an argument's memory; most results do not, and then there is nothing to look for."""
    if value.base is not None:
        return True
    for x in arguments:
        if x.__class__ is Traced and x.value is value or isinstance(x, (list, tuple)):
            return True
    return False
