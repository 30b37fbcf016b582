"""Calls of a recorded program: what their arguments are, which results they use, and what tells one from another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.numpy.base import WEAK_NUMBERS
from .array import Place, Traced, frozen


class Step:
    """One call: a kernel, its arguments with a :class:`Place` for each earlier value, and where its results go.

    Attributes:
        several: where the kernel gives several results ``list`` or ``tuple``, or True; else ``places`` is of one.
        uses: the numbers of the places among the arguments, each once.
    """

    __slots__ = ("name", "kernel", "arguments", "_places", "several", "uses")

    def __init__(self, name: str, kernel: Callable, arguments: tuple, places: tuple[Any, ...], several: Any):
        self.name = name
        self.kernel = kernel
        self.arguments = arguments
        self._places = places if len(places) != 1 else places[0]  # without the tuple, to save memory
        self.several = several
        self.uses = distinct(arguments)

    @property
    def places(self) -> tuple[Any, ...]:
        """Where its results go."""
        places = self._places
        return places if places.__class__ is tuple else (places,)


def values_of(value):
    """Arguments of a kernel for traced ones."""
    if isinstance(value, Traced):
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)(values_of(v) for v in value) if not hasattr(value, "_fields") else value
    return value


def placed(value):
    """Arguments with places for traced arrays."""
    if value.__class__ is tuple:
        return tuple([x.place if x.__class__ is Traced else placed(x) for x in value])
    if value.__class__ is Traced:
        return value.place
    if isinstance(value, (list, tuple)):
        return type(value)(placed(v) for v in value)
    return value


def places(spec) -> list[Place]:
    """The places in an argument, or in lists and tuples of them."""
    found: list[Place] = []
    for item in spec if isinstance(spec, (list, tuple)) else (spec,):
        if item.__class__ is Place:
            found.append(item)
        elif isinstance(item, (list, tuple)):
            found += places(item)
    return found


def filled(spec, of: Callable):
    """An argument with what ``of`` gives for each place in it."""
    if spec.__class__ is Place:
        return of(spec)
    return type(spec)([filled(part, of) for part in spec]) if type(spec) in (list, tuple) else spec


def distinct(arguments: tuple) -> tuple[int, ...]:
    """The places among arguments, each once; where that is what they are, the arguments themselves, to save memory."""
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
    """Whether a value is an array, or a tuple with one."""
    if isinstance(value, tuple):
        return any(map(holds_arrays, value))
    return isinstance(value, (np.ndarray, np.generic))


def key_of(name: str, spec: tuple):
    """What tells a call from others, or None where an argument cannot be compared."""
    try:
        key = (name, *[x if x.__class__ is Place else frozen(x) for x in spec])
        hash(key)
        return key
    except TypeError:
        return None


def direct(kernel, values):
    """NumPy's own function where the kernel would only look at dtypes and call it."""
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
    return own if common is not None and common.kind in "fc" else kernel


def same(a, b) -> bool:
    """Whether parts of calls are equal, arrays and numbers to the bit."""
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
