"""A recorded program: NumPy calls in order, without dispatch, tape or the user's function.

Written down while tracing, then made smaller (what nothing needs is left out, what was computed before
is not computed again), then written as the source of one Python function, in which a ufunc may write its
result over an operand that is not needed any more.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np

from .. import _source as sources
from ..backends.numpy.base import owned


class Program:
    """The steps of a traced function.

    Attributes:
        steps: ``(kernel, arguments, place)`` or, for several results, a list of places; in the arguments
            a :class:`Place` stands for an earlier value.
        constants: arrays that the function closed over, read anew at each call, by place.
    """

    def __init__(self) -> None:
        self.count = 0
        self.inputs: list[int] = []
        self.steps: list[tuple] = []
        self.constants: dict[int, Any] = {}
        self._known: dict = {}
        self._values: dict[int, Any] = {}
        self._given: set[int] = set()
        self._sharing: dict[int, list[weakref.ref]] = {}

    def _place(self, value, arguments=()):
        self.count += 1
        self._values[self.count] = value
        return self._traced(value, self.count, arguments)

    def input(self, value):
        """A traced array for an argument."""
        traced = self._place(value)
        self._given.add(traced.memory)
        self.inputs.append(traced.place)
        return traced

    def constant(self, array: np.ndarray):
        """A traced array for one that the function closed over; kept by reference."""
        traced = self._place(array)
        self._given.add(traced.memory)
        self.constants[traced.place] = array
        return traced

    # Writes in place: which traced arrays are views of one array, as they are outside of a trace.

    def _traced(self, value, place: int, arguments=()):
        """A traced array; a view where its value is one of an argument's."""
        from .traced import Traced

        traced = Traced(value, self, place, 0)
        owner = _owner(value)
        viewed = (x for x in flat(arguments) if isinstance(x, Traced) and _owner(x.value) is owner)
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
            self.steps.append((name, kernel, spec, [t.place for t in out]))
            out = out if isinstance(result, list) else tuple(out)
        else:
            out = self._place(np.asarray(result) if not isinstance(result, np.generic) else result, arguments)
            if name == "get_item":
                out.key = frozen(arguments[1])
            self.steps.append((name, kernel, spec, out.place))
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

    def function(self, outputs: list):
        """The program as a Python function of the inputs, giving the list of outputs.

        Args:
            outputs: places of traced arrays, or values that do not depend on the inputs.
        """
        wanted = {o.index for o in outputs if isinstance(o, Place)}
        needed, kept = set(wanted), []
        for name, kernel, spec, place in reversed(self.steps):
            places = place if isinstance(place, list) else [place]
            if needed.intersection(places):
                kept.append((name, kernel, spec, place))
                needed.update(p.index for p in _places(spec))
        kept.reverse()
        return _written(self, kept, outputs, wanted)


class Place:
    """Stands for an earlier value in a step's arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index

    def __eq__(self, other) -> bool:
        return isinstance(other, Place) and other.index == self.index

    def __hash__(self) -> int:
        return hash(("place", self.index))


def _owner(array):
    """The array that owns the memory of one."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def flat(value):
    """The items of lists and tuples, however nested."""
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from flat(item)
        else:
            yield item


def _placed(value):
    from .traced import Traced

    if isinstance(value, Traced):
        return Place(value.place)
    if isinstance(value, (list, tuple)):
        return type(value)(_placed(v) for v in value)
    return value


def _places(spec):
    if isinstance(spec, Place):
        yield spec
    elif isinstance(spec, (list, tuple)):
        for item in spec:
            yield from _places(item)


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


def frozen(spec):
    """A part of a call as what can be compared and hashed."""
    if isinstance(spec, (list, tuple)):
        return (type(spec).__name__, *map(frozen, spec))
    if isinstance(spec, slice):
        return ("slice", spec.start, spec.stop, spec.step)
    if isinstance(spec, np.ndarray):
        return ("array", id(spec))
    if isinstance(spec, (float, complex, np.inexact)):
        return (type(spec).__name__, repr(spec))  # 0.0 is equal to -0.0
    return spec if isinstance(spec, Place) else (type(spec).__name__, spec)


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


def _written(program: Program, steps: list, outputs: list, wanted: set):
    scope: dict[str, Any] = {"__name__": __name__}  # warnings come from here
    last = {}
    for i, (_, _, spec, _) in enumerate(steps):
        for p in _places(spec):
            last[p.index] = i
    own: set[int] = set()  # places whose memory belongs to the program, and is not shared by a view
    lines = []
    for i, (_name, kernel, spec, place) in enumerate(steps):
        scope[f"k{i}"] = kernel
        call = [_source(a, scope, f"c{i}_{j}") for j, a in enumerate(spec)]
        shared = {p.index for p in _places(spec)}
        if isinstance(kernel, np.ufunc) and not isinstance(place, list):
            value = program._values[place]
            reusable = [
                p.index
                for p in spec
                if isinstance(p, Place)
                and p.index in own
                and last[p.index] == i
                and p.index not in wanted
                and isinstance(value, np.ndarray)
                and value.ndim
                and program._values[p.index].shape == value.shape
                and program._values[p.index].dtype == value.dtype
            ]
            if reusable:
                call.append(f"out=v{reusable[0]}")
            own.add(place)
        else:
            own -= shared  # the result may be a view of its operands
        target = ", ".join(f"v{p}" for p in place) + "," if isinstance(place, list) else f"v{place}"
        sign = OPERATORS.get(kernel) if isinstance(kernel, np.ufunc) else None
        if sign is not None and _of_numbers(program, spec, place):
            lines.append(f"    {target} = {sign.join(call) if len(call) > 1 else sign + call[0]}")
        else:
            lines.append(f"    {target} = k{i}({', '.join(call)})")
        kept = (*wanted, *program.constants, *program.inputs)  # arguments are their caller's, too
        over = [p for p in sorted(shared) if last[p] == i and p not in kept]
        done = [f"v{p}" for p in over if getattr(program._values[p], "ndim", 0)]  # single numbers hold no memory
        if done:
            lines.append(f"    del {', '.join(done)}")
    for place, array in program.constants.items():
        scope[f"v{place}"] = array
    results = [_source(o, scope, f"r{j}") for j, o in enumerate(outputs)]
    parameters = ", ".join(f"v{p}" for p in program.inputs)
    returned = f"[{', '.join(results)}]"
    if _may_be_others(program, outputs, own):
        taken = {id(x) for x in scope.values() if isinstance(x, np.ndarray)}
        scope.update(owned=owned, taken=taken)
        returned = f"owned({returned}, taken.union(map(id, [{parameters}])))"
    lines = [line for line in lines if line]
    body = "\n".join(lines) or "    pass"
    source = f"def program({parameters}):\n{body}\n    return {returned}\n"
    # constants live in the function's globals, so they must not be deleted or assigned
    function: Any = sources.function(source, "program", f"program {next(_numbers)}", scope)
    function.source, function.steps = source, len(steps)
    return function


_numbers = itertools.count(1)


def _may_be_others(program: Program, outputs: list, own: set) -> bool:
    """Whether an output may be an argument, a constant or another output, or share memory with one."""
    places = [o.index for o in outputs if isinstance(o, Place)]
    arrays = [p for p in places if isinstance(program._values[p], np.ndarray)]
    constants = any(isinstance(o, np.ndarray) for o in outputs)
    return constants or len(set(arrays)) < len(arrays) or not own.issuperset(arrays)


OPERATORS = {np.add: " + ", np.subtract: " - ", np.multiply: " * ", np.true_divide: " / ", np.negative: "-"}
"""Ufuncs that Python's operators do some times faster on single numbers, to the same bits."""


def _of_numbers(program: Program, spec, place) -> bool:
    """Whether a step is of single float64 numbers; two numbers of Python's own would do without NumPy's rules."""
    values = [program._values[x.index] if isinstance(x, Place) else x for x in (*spec, Place(place))]
    of_numpy = [x for x in values if isinstance(x, (np.ndarray, np.generic))]
    return all(x.ndim == 0 and x.dtype == np.float64 for x in of_numpy) and len(of_numpy) > 1


def _source(value, scope: dict, name: str) -> str:
    if isinstance(value, Place):
        return f"v{value.index}"
    if isinstance(value, (list, tuple)) and any(True for _ in _places(value)):
        inner = [_source(v, scope, f"{name}_{j}") for j, v in enumerate(value)]
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)},)"
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    scope[name] = value
    return name
