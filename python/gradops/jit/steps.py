"""Steps: the rows of a program as objects, and functions of their arguments.

A :class:`Step` is one call: a kernel, its arguments and the places of its results. :meth:`.Table.step` makes steps of
rows for passes that handle one operation at a time; such passes also make steps of their own, such as a native run.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tree import Call, items, map_items
from ..backends.numpy.base import WEAK_NUMBERS
from .array import Place, Traced, frozen


class _Operand:
    """The class of :data:`OPERAND`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


OPERAND = _Operand()
"""Stands for a value in the arguments of an operation."""


class Step(Call):
    """One call: a kernel, its arguments with a :class:`Place` for each earlier value, and the places of its results.

    Attributes:
        places: the places of the results.
        several: ``list`` or ``tuple`` if the kernel returns several results, True for another sequence, else None.
        uses: the distinct places among the arguments.
        table, row: for a step made of a row, the table and the row's words.
    """

    __slots__ = ("name", "places", "several", "uses", "table", "row")
    kind = Place
    table: Any
    row: list[int]

    def __init__(self, name: str, kernel: Callable, arguments: tuple, places: tuple[Any, ...], several: Any):
        super().__init__(kernel, arguments)
        self.name = name
        self.places = places
        self.several = several
        self.uses = distinct(arguments)

    def split(self) -> tuple[tuple, list[Place]]:
        """Return the arguments with :data:`OPERAND` for each place, and the places."""
        return split(self.arguments, Place, lambda place: place)


_PLAIN = frozenset((int, float, bool, str, type(None), np.float64, np.int64))


def is_plain(x) -> bool:
    """True for values that hold no traced array and are immutable: numbers, shapes, slices of numbers."""
    kind = x.__class__
    if kind in _PLAIN:
        return True
    if kind is slice:
        return is_plain(x.start) and is_plain(x.stop) and is_plain(x.step)
    return kind is tuple and all(map(is_plain, x))


def split(arguments: tuple, kind: type, place: Callable) -> tuple[tuple, list[Place]]:
    """Return arguments with :data:`OPERAND` for each instance of ``kind``, and the places of these instances."""
    found: list[Place] = []

    def operand(x):
        if x.__class__ is not kind:
            return x
        found.append(place(x))
        return OPERAND

    pattern = [operand(x) if x.__class__ is kind or is_plain(x) else map_items(operand, x) for x in arguments]
    return tuple(pattern), found


def with_arrays(function: Callable, value):
    """Return an argument, possibly nested lists and tuples, with ``function`` applied to each traced array in it."""
    return map_items(lambda x: function(x) if x.__class__ is Traced else x, value)


values_of = functools.partial(with_arrays, operator.attrgetter("value"))
"""Return an argument with the value of each traced array."""
place_of = operator.attrgetter("place")


def places(spec) -> list[Place]:
    """Return the places in an argument, possibly nested lists and tuples."""
    return [x for x in items(spec) if x.__class__ is Place]


def distinct(arguments: tuple) -> tuple[int, ...]:
    """Return the distinct places among arguments; the same tuple if it has nothing else, to save memory."""
    found: dict[int, None] = {}
    others = 0
    for x in arguments:
        if x.__class__ is Place:
            found[x] = None
            continue
        others += 1
        if isinstance(x, (list, tuple)):
            found.update(dict.fromkeys(places(x)))
    return tuple(found) if others or len(found) < len(arguments) else arguments


def holds_arrays(value) -> bool:
    """True if a value is an array or a tuple that holds one."""
    if isinstance(value, tuple):
        return any(map(holds_arrays, value))
    return isinstance(value, (np.ndarray, np.generic))


def key_of(name: str, spec: tuple):
    """Return the key of a call, or None if an argument cannot be compared."""
    try:
        key = (name, *[x if x.__class__ is Place else frozen(x) for x in spec])
        hash(key)
        return key
    except TypeError:
        return None


def direct(kernel, values):
    """Return NumPy's function if the kernel would only check the dtypes of the values and call it, else the kernel."""
    own = getattr(kernel, "direct", None)
    if own is None:
        return kernel
    common = None
    for v in values:
        if v.__class__ is float or v.__class__ is int:
            if not WEAK_NUMBERS:
                return kernel
            continue
        dtype = getattr(v, "dtype", None)
        if dtype is None or common is not None and dtype != common:
            return kernel
        common = dtype
    # Some of SciPy's functions return another dtype for half precision.
    return own if common is not None and common.kind in "fc" and common.itemsize > 2 else kernel


def same(a, b) -> bool:
    """True if parts of calls are equal; arrays and numbers must have the same bits."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, slice):
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    return bool(a == b)
