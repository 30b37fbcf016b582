"""``Traced``: the array that a function receives while it is traced, with its value for the arguments of the trace.

:mod:`.backend` runs ops on traced arrays, and the :class:`.Program` they belong to records them. A read of a value,
such as ``int(x)``, adds a guard. A write in place asks :class:`Memories` which other traced arrays share the memory, as
NumPy's views would.
"""

from __future__ import annotations

import functools
import operator
import weakref
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from .. import ops
from .._tree import items
from ..autodiff.state import buffer
from ..errors import JitError
from ..ops import scipy_functions
from ..ops._structures import recorder
from ..ops.indexing import set_at


class Place(int):
    """The index of a value in a program, which stands for the value in a step's arguments. A class of its own tells it
    from other integers there."""

    __slots__ = ()
    index = property(int)


class Tracing(Protocol):
    """The members of :class:`.program.Program` that a traced array uses to record its operations."""

    composed: dict[int, Any]
    constants: dict[int, Any]
    folded: set[int]
    memories: Memories
    of_single_numbers: bool
    table: Any
    values: Any

    @property
    def current(self) -> Tracing | None: ...

    @property
    def may_look(self) -> bool: ...

    def number(self, what, arguments) -> Any: ...

    def look(self, x: Traced, text: str | None = None): ...

    def call(self, name: str, kernel, arguments, values): ...

    def step(self, name: str, kernel, arguments, values): ...

    def constant(self, array): ...

    def fold(self, result, arguments=()): ...

    def lift(self, x): ...

    def snapshot(self, value): ...

    def written(self, x): ...


class Traced:
    """A value of a function being traced.

    Attributes:
        value: the value for the arguments of the trace.
        program: the program that records the operations on it.
        place: the place of the value in the program.
    """

    __slots__ = ("value", "program", "place", "memory", "key", "stale", "axis_labels", "__weakref__")
    __array_priority__ = 500

    def __init__(self, value, program: Tracing, place: Place):
        self.value = value
        self.program = program
        self.place = place
        self.memory = 0  # views of one array share a number; 0 if no other traced array shares the memory
        self.key = None  # for a view, the key that selected it
        self.axis_labels: tuple | None = None  # of a data frame, see `ops/_pandas.py`
        self.stale: tuple | None = None  # after a write to a view of it: the written view's place and key

    shape = property(attrgetter("value.shape"))
    dtype = property(attrgetter("value.dtype"))
    ndim = property(attrgetter("value.ndim"))
    size = property(attrgetter("value.size"))

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self):
        return (self[i] for i in range(len(self)))  # type: ignore[index]

    def __contains__(self, value) -> bool:
        return bool(ops.any(ops.equal(self, value)))

    def __repr__(self) -> str:
        return self._text("repr")

    def __str__(self) -> str:
        return self._text("str")

    def __format__(self, spec: str) -> str:
        return self._text("format", spec)

    def _text(self, form: str, spec: str = "") -> str:
        """Return the text of the value and guard it; after tracing return a description."""
        if recorder.get() is None:
            return f"<traced array of shape {self.shape} and dtype {self.dtype}>"
        self._says(form, spec)
        return _TEXTS[form](self.value, spec)

    def _says(self, form: str, spec: str = "") -> None:
        """Guard the text of the value: the program then holds only for arguments that give the same text."""
        if not self.program.may_look:
            self.refuse()
        if self.place not in self.program.constants:
            text = _TEXTS[form](_as_number(self.value), spec)  # raises if the format is invalid
            arguments = self, form, spec, text
            self.program.look(self.program.call("says", says, arguments, (self.value, form, spec, text)), text)

    def _read(self):
        """Return the value and guard it."""
        self._says("value")
        return self.value

    def item(self, *args):
        """Return a Python number and guard it. ``float()`` raises, as NumPy calls it to fill an array."""
        return self._read().item(*args)

    def tolist(self):
        return self._read().tolist()

    def is_integer(self) -> bool:
        return self.item().is_integer()

    def hex(self) -> str:
        return self.item().hex()

    def refuse(self, *_, **__):
        raise JitError(
            "a compiled function looked at a value: a branch, a Python number or text, or a NumPy function on a traced "
            "array.",
            hint=scipy_functions.hint()
            or "use `ops.where()`, `ops.cond()` or `ops.while_loop()`, keep to gradops ops, fill arrays of "
            "`import gradops.numpy as np`, or make the argument static; a decision may ask `x > 1`, "
            "`np.isclose(x, 1.0)`, `int(x)` or `x.item()`",
        )

    __float__ = __complex__ = __array__ = numpy = refuse
    _constant = refuse

    def __bool__(self) -> bool:
        value = bool(self.value)
        self.program.look(self if self.dtype == bool else ops.not_equal(self, 0))
        return value

    def __hash__(self) -> int:
        raise JitError(
            "a compiled function looked up a traced array in a set or dict, where it would be found by identity, not "
            "by its value.",
            hint="compare values (`if x == 1.0`), look up an integer (`int(x)`), or make the argument static",
        )

    def __int__(self) -> int:
        """Return an integer and guard it."""
        if self.dtype.kind == "c" or self.size != 1:
            return int(self.value)  # NumPy's error
        return int(self._guarded_integer(ops.trunc))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            return operator.index(self.value)  # NumPy's error
        return int(self._guarded_integer(None))

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return int(self._guarded_integer(ops.floor))

    def __ceil__(self) -> int:
        return int(self._guarded_integer(ops.ceil))

    def _guarded_integer(self, op):
        """Apply an op, return the result's value and guard it; raises NumPy's error if the value is not an integer."""
        whole = self if op is None or self.dtype.kind in "iub" else op(self)
        int(whole.value)  # raises if the value is not an integer
        return self.program.look(whole)

    def _described(self):
        return self.value

    def __setitem__(self, key, value) -> None:
        self._write(set_at(self, key, value))

    def _write(self, result) -> None:
        """Replace the array by ``result``, as a write in place does.

        Raises:
            JitError: the array is an argument or was closed over; a compiled function may write to its own arrays only.
        """
        if self.program.memories.is_given(self):
            raise JitError(
                "a compiled function wrote in place to an argument, or to an array that it closes over.",
                hint="write `x = x + y` for `x += y`; `ops.slice_update()` or `ops.scatter_update()` for `x[i] = y`; "
                "or write to a copy",
            )
        if self.program.current is not self.program:
            raise JitError(
                "a function that `scan()`, `cond()` or their like call wrote in place to an array from outside.",
                hint="return the new value instead, as part of the state",
            )
        result = self.program.written(result)
        if result.dtype != self.dtype:
            result = ops.cast(result, self.dtype.name)
        if result.shape != self.shape:
            result = ops.broadcast_to(result, self.shape)
        self._superseded(result)
        written = self.value.__class__ is np.ndarray  # an array without dimensions must not become a NumPy number
        self.value = np.asarray(result.value) if written else result.value
        self.place, self.stale = result.place, None
        self.axis_labels = result.axis_labels
        self.memory = 0

    def _superseded(self, result) -> None:
        """Mark the other arrays on this one's memory as stale after a write that gave ``result``."""
        # A program has no writes: a write makes a new array. Other traced arrays on the same memory keep their old
        # values, though NumPy would have changed them; updating them would mean recording again the rows that made
        # them. So they are marked, and reading one raises an error. Arrays that the user has released need no mark,
        # hence the weak references.
        for other in self.program.memories.sharing(self):
            other.stale = (result.place, self.key)

    def refuse_stale(self, name: str = "", arguments: tuple = ()) -> None:
        """Raise if a write to a view is missing here; the assignment of ``x[key] = x[key] + 1`` is allowed."""
        # For `x[i] += 1` Python evaluates `x[i]`, adds 1 in place, and assigns the result to `x[i]`. The addition
        # writes to the view and so marks `x` as stale, but the assignment that follows writes the same values to `x`.
        if name == "set_at" and arguments[0] is self:
            _, key, updates = arguments
            if isinstance(updates, Traced) and self.stale == (updates.place, frozen(key)):
                return
        raise JitError(
            "a compiled function wrote in place to a view, and then read another array that shares its memory.",
            hint="write to the array itself (`x[i] = y`, `x[i] += y`), or to a copy",
        )


class Memories:
    """Records which traced arrays of a program share memory; each memory has a number (``Traced.memory``)."""

    def __init__(self) -> None:
        self._sharing: dict[int, list[weakref.ref]] = {}
        self._given: set[int] = set()

    def note_view(self, traced: Traced, arguments) -> None:
        """If the result of a call is a view of an argument, record that they share memory."""
        if traced.value.__class__ is not np.ndarray or not _may_be_view(traced.value, arguments):
            return
        owner = buffer(traced.value)
        viewed = (x for x in items(arguments) if x.__class__ is Traced and buffer(x.value) is owner)
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
        """Record that the memory belongs to an argument or a constant."""
        self._given.add(self._number(traced))

    def is_given(self, traced: Traced) -> bool:
        """True if the memory belongs to an argument or a constant."""
        return traced.memory in self._given

    def sharing(self, traced: Traced) -> list[Traced]:
        """Return the other live traced arrays on the same memory."""
        found = [seen() for seen in self._sharing.get(traced.memory, ())]
        return [x for x in found if x is not None and x is not traced]

    def clear(self) -> None:
        """Release the records of shared memory."""
        self._sharing.clear()


def _may_be_view(value: np.ndarray, arguments) -> bool:
    """True if an array may share an argument's memory. Most results cannot, and the search is skipped for them."""
    if value.base is not None:
        return True
    for x in arguments:
        if x.__class__ is Traced and x.value is value or isinstance(x, (list, tuple)):
            return True
    return False


_TEXTS = {
    "str": lambda value, spec: str(value),
    "repr": lambda value, spec: repr(value),
    "format": format,
    "value": lambda value, spec: repr(value.tolist()),
}
"""The text of a value for each form. Different values, also 0.0 and -0.0, have different texts of the form "value"."""


def says(value, form: str, spec: str, text: str):
    """True if a value has the given text; the operation that a guard on a text checks."""
    return np.bool_(_TEXTS[form](_as_number(value), spec) == text)


def _as_number(value):
    """Return an array without dimensions as a NumPy number; the same value may come as either in different programs."""
    return value if value.ndim else value[()]


def frozen(spec):
    """Return a part of a call in a form that can be compared and hashed: a place as itself, anything else a tuple."""
    kind = spec.__class__
    if kind is Place:
        return spec
    if kind in _ALONE:
        return kind.__name__, spec
    if isinstance(spec, (list, tuple)):
        return (type(spec).__name__, *map(frozen, spec))
    if isinstance(spec, slice):
        return ("slice", spec.start, spec.stop, spec.step)
    if isinstance(spec, np.ndarray):
        return ("array", id(spec))
    if isinstance(spec, (float, complex, np.inexact)):
        return _number_key(type(spec).__name__, repr(spec))  # 0.0 is equal to -0.0
    return (type(spec).__name__, spec)


_ALONE = frozenset((int, str, bool, type(None)))


@functools.lru_cache(maxsize=1024)
def _number_key(kind: str, text: str) -> tuple[str, str]:
    """Return a tuple; equal arguments give the same object, as a loop records the same constant in each iteration."""
    return kind, text
