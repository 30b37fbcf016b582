"""Checkpointing on the tape: arrays made in a scope are remembered as how to make them again.

While a scope is open each op's kernel is noted as a ``Step``: the kernel, its constants, and which steps'
results its other arguments were. A step is kept by what may ask for its result and by nothing else. When
a node saves an array that a step made, it keeps a ``Handle`` instead, and the array is freed when the
user drops it. The backward pass asks the handles; the first request recomputes, once and in order, all that
the recipe's living handles need.

An array that another scope made is an input, and stays: what a scope stores is its inputs.
"""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import backends
from ..autodiff import graph
from ..autodiff.state import Packed, Recomputed, packers, written, written_since
from ..errors import GradientError
from ..ops import _dispatch

current: ContextVar[Recipe | None] = ContextVar("gradops_recipe", default=None)
"""The recipe of the open scope."""


class Recipe:
    """What one scope made: the handles that may ask for it."""

    def __init__(self):
        self.handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self.lock = threading.RLock()

    def run(self, kernel, arguments: tuple):
        """The result of ``kernel(*arguments)``, noted."""
        token = current.set(None)
        try:
            result = kernel(*arguments)
        finally:
            current.reset(token)
        step = Step(self, kernel, [_reference(a, self) for a in arguments])
        for i, part in enumerate(result if isinstance(result, (list, tuple)) else (result,)):
            if not any(part is a for a in arguments):
                _remember(part, step, i)
        return result

    def recompute(self, asked: Handle, kept: list) -> None:
        """Fill ``asked`` and every other living handle with what it stands for."""
        with self.lock:
            if asked.value is not None:
                return
            handles = [h for h in list(self.handles) if h.value is None and h.living() is None]
            wanted: dict[Step, list[Handle]] = {}
            for handle in handles:
                wanted.setdefault(handle.step, []).append(handle)
            steps, stack = set(), list(wanted)
            while stack:
                step = stack.pop()
                if step not in steps:
                    steps.add(step)
                    stack.extend(step.sources())
            ordered = sorted(steps, key=lambda s: s.seq)
            last = {source: step for step in ordered for source in step.sources()}
            done: dict[Step, Any] = {}
            token = current.set(None)
            try:
                with np.errstate(all="ignore"):
                    for step in ordered:
                        done[step] = step.run(done)
                        for handle in wanted.get(step, ()):
                            handle.value = done[step][handle.index]
                            kept.append(weakref.ref(handle))
                        for source in set(step.sources()):
                            if last[source] is step:
                                del done[source]
                        if step not in last:
                            del done[step]
            finally:
                current.reset(token)


class Step:
    """One op call: what to run, on constants and on earlier steps' results."""

    __slots__ = ("recipe", "kernel", "arguments", "seq", "__weakref__")

    def __init__(self, recipe: Recipe, kernel, arguments: list):
        self.recipe = recipe
        self.kernel = kernel
        self.arguments = arguments
        self.seq = graph.clock()

    def sources(self) -> list[Step]:
        found = []
        for a in self.arguments:
            for item in a if isinstance(a, list) else (a,):
                if item.__class__ is _Made:
                    found.append(item.step)
        return found

    def run(self, done: dict):
        result = self.kernel(*[self._value(a, done) for a in self.arguments])
        return result if isinstance(result, (list, tuple)) else (result,)

    def _value(self, a, done):
        if a.__class__ is _Made:
            return a.of(done[a.step][a.index])
        if a.__class__ is _Input:
            if written and written_since(a.array, self.seq):
                raise GradientError(
                    "an array that a checkpointed operation used was written in place; it cannot be recomputed.",
                    hint="write to a copy, or leave that operation out of the scope",
                )
            return a.array
        return [self._value(item, done) for item in a] if isinstance(a, list) else a


class _Made:
    """A reference to a step's result, or to a NumPy view of it."""

    __slots__ = ("step", "index", "view", "array", "seq", "__weakref__")

    def __init__(self, step: Step, index: int, view=None, array=None):
        self.step = step
        self.index = index
        self.view = view
        self.array = array
        self.seq = graph.clock()

    def of(self, value):
        if self.view is None:
            return value
        shape, dtype, offset, strides = self.view
        return np.ndarray(shape, dtype, value, offset, strides)


class _Input:
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


class Handle(Recomputed):
    """Stands for an array in what nodes save."""

    __slots__ = ("step", "index", "array", "seq", "value", "__weakref__")

    def __init__(self, made: _Made):
        self.step = made.step
        self.index = made.index
        self.array = made.array
        self.seq = made.seq
        self.value = None

    def living(self):
        """The array itself, while the caller keeps it as it was."""
        array = self.array() if self.array is not None else None
        return None if array is None or written and written_since(array, self.seq) else array

    def get(self, kept: list):
        value = self.living() if self.value is None else self.value
        if value is None:
            self.step.recipe.recompute(self, kept)
            value = self.value
        return value


_made: dict[int, _Made] = {}
"""The arrays that open and past scopes made and that still live, by ``id``."""

_handles: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def _remember(array, step: Step, index: int) -> None:
    key = id(array)
    if backends.of(array) is None or key in _made and _made[key].array() is array:
        return
    try:
        ref = weakref.ref(array, lambda _, key=key: _forget(key))  # type: ignore[misc]
    except TypeError:  # a NumPy scalar
        return
    _made[key] = _Made(step, index, array=ref)
    packers[:] = [pack]


def _forget(key: int) -> None:
    _made.pop(key, None)
    if not _made:
        packers.clear()


def forget(arrays) -> None:
    """Let ``arrays`` be stored again."""
    for array in arrays:
        _forget(id(array))


def _find(array) -> _Made | None:
    """How ``array`` was made, also a NumPy view of what was made; None if it was not, or was written since."""
    made = _made.get(id(array))
    if made is None:
        base = getattr(array, "base", None) if array.__class__ is np.ndarray else None
        made = _made.get(id(base)) if base is not None else None
        if made is None or made.array() is not base or base.__class__ is not np.ndarray:
            return None
        if not (base.flags.c_contiguous or base.flags.f_contiguous):
            return None
        if written and written_since(base, made.seq):
            return None
        offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return _Made(made.step, made.index, (array.shape, array.dtype, offset, array.strides))
    if made.array() is not array or written and written_since(array, made.seq):
        return None
    return made


def _reference(value, recipe: Recipe):
    if isinstance(value, (list, tuple)):
        return [_reference(v, recipe) for v in value]
    if backends.of(value) is None:
        return value
    made = _find(value)
    if made is not None and made.step.recipe is recipe:
        return made if made.view is not None else _Made(made.step, made.index)
    return _Input(value)


def pack(saved: tuple) -> tuple:
    """What a node keeps: handles in place of the arrays that a scope made."""
    if not any(type(v) is list or id(v) in _made or getattr(v, "base", None) is not None for v in saved):
        return saved
    packed = [_pack_one(v) for v in saved]
    return saved if all(p is v for p, v in zip(packed, saved)) else Packed(packed)


def _pack_one(value):
    if type(value) is list:
        items = [_pack_one(v) for v in value]
        return value if all(i is v for i, v in zip(items, value)) else items
    if value is None or backends.of(value) is None:
        return value
    made = _find(value)
    recipe = current.get()
    if made is None or recipe is not None and made.step.recipe is not recipe:
        return value  # also an input of the open scope, which stores it
    key = (id(made.step), made.index)
    handle = _handles.get(key)
    if handle is None:
        handle = _handles[key] = Handle(made)
        made.step.recipe.handles.add(handle)
    return handle if made.view is None else _View(handle, made)


class _View(Recomputed):
    """A view of what a handle stands for."""

    __slots__ = ("handle", "made")

    def __init__(self, handle: Handle, made: _Made):
        self.handle = handle
        self.made = made

    def get(self, kept: list):
        return self.made.of(self.handle.get(kept))


def observe(op, kernel, owner):
    """``kernel``, noted where a scope is open; torch has its own recipes."""
    if owner is not None and owner.name == "torch":
        return kernel
    check = owner.module.derivatives.check_checkpoint if owner is not None and owner.name == "tensorflow" else None

    def noted(*arguments):
        recipe = current.get()
        if recipe is None:
            return kernel(*arguments)
        if check is not None:
            check()
        return recipe.run(kernel, arguments)

    return noted


def start() -> None:
    """From here on every kernel is looked up through :func:`observe`."""
    if _dispatch.observe is None:
        _dispatch.observe = observe
        for op in list(_dispatch.registry.values()):
            op.kernels.clear()
