"""A recorded program: NumPy calls in order, without dispatch, tape or the user's function.

Written down while tracing, where what was computed before is not computed again; :mod:`.emission` makes a Python
function of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tree import items
from ..autodiff.state import buffer
from .array import Place, Traced, frozen


class Step:
    """One call: a kernel, its arguments with a :class:`Place` for each earlier value, and where its results go.

    Attributes:
        several: whether the kernel gives several results, in a list or tuple; else ``places`` is of one.
    """

    __slots__ = ("name", "kernel", "arguments", "places", "several")

    def __init__(self, name: str, kernel: Callable, arguments: tuple, places: tuple[int, ...], several: bool):
        self.name = name
        self.kernel = kernel
        self.arguments = arguments
        self.places = places
        self.several = several


class Program:
    """The steps of a traced function.

    Attributes:
        steps: what ran, in order.
        inputs: the places of the arguments.
        constants: arrays that the function closed over, read anew at each call, and what is the same for all
            arguments, by place.
    """

    def __init__(self) -> None:
        self.count = 0
        self.inputs: list[int] = []
        self.steps: list[Step] = []
        self.constants: dict[int, Any] = {}
        self._folded: set[int] = set()
        self._known: dict = {}
        self._values: dict[int, Any] = {}
        self._given: set[int] = set()
        self._sharing: dict[int, list[weakref.ref]] = {}
        self._taken: dict[int, tuple] = {}

    def _place(self, value, arguments=()):
        self.count += 1
        self._values[self.count] = value
        return self._traced(value, self.count, arguments)

    def snapshot(self, value):
        """``value``, arrays that can be written as they are now: the function may write to them while it is traced."""
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(map(self.snapshot, value))
        if not isinstance(value, np.ndarray) or not value.flags.writeable:
            return value
        known = self._taken.get(id(value))
        if known is None or not _same_bytes(value, known[1]):
            known = self._taken[id(value)] = value, value.copy()
        return known[1]

    def input(self, value):
        """A traced array for an argument."""
        traced = self._place(value)
        self._given.add(traced.memory)
        self.inputs.append(traced.place)
        return traced

    def constant(self, array: np.ndarray):
        """A traced array for one that the function closed over; kept by reference."""
        array = self.snapshot(array)
        traced = self._place(array)
        self._given.add(traced.memory)
        self.constants[traced.place] = array
        return traced

    def fold(self, result, arguments=()):
        """What is the same for all arguments, as zeros of a shape, and is computed while tracing."""
        if isinstance(result, (bool, int, float, tuple)) and not _holds_arrays(result):
            return result
        if isinstance(result, (list, tuple)):
            return type(result)(self.fold(part, arguments) for part in result)
        traced = self._place(result, arguments)
        self.constants[traced.place] = result
        self._folded.add(traced.place)
        return traced

    def is_folded(self, traced) -> bool:
        """Whether its value is the same for all arguments."""
        return traced.place in self._folded

    # Writes in place: which traced arrays are views of one array, as they are outside of a trace.

    def _traced(self, value, place: int, arguments=()):
        """A traced array; a view where its value is one of an argument's."""
        traced = Traced(value, self, place, 0)
        owner = buffer(value)
        viewed = (x for x in items(arguments) if isinstance(x, Traced) and buffer(x.value) is owner)
        source = next(viewed, None) if isinstance(owner, np.ndarray) else None
        if source is None:
            traced.memory = self.new_memory(traced)
        else:
            traced.memory = source.memory
            self._sharing[source.memory].append(weakref.ref(traced))
        return traced

    def _again(self, known, arguments=()):
        """A value that was computed before: an array of its own, as a write to the one is none to the other."""
        if isinstance(known, (list, tuple)):
            return type(known)(self._again(part, arguments) for part in known)
        again = self._traced(known.value, known.place, arguments)
        again.key = known.key
        return again

    def new_memory(self, traced) -> int:
        """The number of a memory that only ``traced`` has."""
        self._sharing[len(self._sharing)] = [weakref.ref(traced)]
        return len(self._sharing) - 1

    def is_given(self, traced) -> bool:
        """Whether the memory is an argument's or a constant's."""
        return traced.memory in self._given

    def sharing(self, traced) -> list:
        """The other traced arrays on the same memory that somebody holds."""
        found = [seen() for seen in self._sharing[traced.memory]]
        return [x for x in found if x is not None and x is not traced]

    def add(self, name: str, kernel, arguments, values, result):
        """Write down a call, or find the same one that was written before."""
        if isinstance(result, (bool, int, float, tuple)) and not _holds_arrays(result):
            return result
        if name == "multiply":
            same = self._times_one(arguments, result)
            if same is not None:
                return same
        spec = _placed(arguments)
        key = _key(name, spec)
        if key is not None and key in self._known:
            return self._again(self._known[key], arguments)
        kernel = _direct(kernel, values)
        if isinstance(result, (list, tuple)):
            out: Any = [self._place(r, arguments) for r in result]
            self.steps.append(Step(name, kernel, spec, tuple(t.place for t in out), True))
            out = out if isinstance(result, list) else tuple(out)
        else:
            out = self._place(np.asarray(result) if not isinstance(result, np.generic) else result, arguments)
            if name == "get_item":
                out.key = frozen(arguments[1])
            self.steps.append(Step(name, kernel, spec, (out.place,), False))
        if key is not None:
            self._known[key] = out
        return out

    def _times_one(self, factors, result):
        """The other factor where one is a constant of ones, as gradients start with."""
        for one, other in (factors, factors[::-1]):
            if not hasattr(other, "place") or other.shape != result.shape or other.dtype != result.dtype:
                continue
            constant = self.constants.get(one.place) if hasattr(one, "place") else one
            if isinstance(constant, (np.ndarray, np.generic, float, int)) and np.all(constant == 1):
                return self._again(other)
        return None

    def value(self, place: int):
        """The value at a place for the arguments that the function was traced with."""
        return self._values[place]

    def forget(self) -> None:
        """Let go of what tracing and emission alone need."""
        self._values.clear()
        self._known.clear()
        self._sharing.clear()
        self._taken.clear()


def _same_bytes(one, other) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _placed(value):
    if isinstance(value, Traced):
        return Place(value.place)
    if isinstance(value, (list, tuple)):
        return type(value)(_placed(v) for v in value)
    return value


def places(spec):
    """The places in an argument, or in lists and tuples of them."""
    if isinstance(spec, Place):
        yield spec
    elif isinstance(spec, (list, tuple)):
        for item in spec:
            yield from places(item)


def _holds_arrays(value) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_arrays, value))
    return isinstance(value, (np.ndarray, np.generic))


def _key(name: str, spec):
    """What tells a call from others, or None where an argument cannot be compared."""
    try:
        key = (name, frozen(spec))
        hash(key)
        return key
    except TypeError:
        return None


def _direct(kernel, values):
    """NumPy's own function where the kernel would only look at dtypes and call it."""
    direct = getattr(kernel, "direct", None)
    if direct is None or not values:
        return kernel
    arrays = [v for v in values if isinstance(v, (np.ndarray, np.generic))]
    numbers_only_weak = all(isinstance(v, (np.ndarray, np.generic)) or type(v) in (int, float) for v in values)
    floating = arrays and arrays[0].dtype.kind in "fc"
    if floating and numbers_only_weak and all(a.dtype == arrays[0].dtype for a in arrays):
        return direct
    return kernel
