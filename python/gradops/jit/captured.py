"""What a function reads from outside, and whether it has changed since the function was traced.

A trace holds what the function found in closures, global variables and objects: by reference where an array went
straight into an operation, by value where something was computed from it first, or a branch looked at it. Which, cannot
be told; so all of it is compared at each call, bindings by identity and arrays with a copy. Arrays that cannot be
written (``x.flags.writeable = False``) and JAX's need no copy.
"""

from __future__ import annotations

import dis
import functools
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..autodiff.variable import Variable

_MISSING = object()
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type)
_LIBRARIES = frozenset(("builtins", "gradops", "numpy", "scipy", "torch", "tensorflow", "jax", "jaxlib", "rpycall"))


class Captured:
    """What ``f`` and the functions it calls close over: their bindings, arrays and random generators."""

    def __init__(self, f: Callable):
        self.bindings: list[tuple[Callable[[], Any], Any]] = []
        self.arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self.tensors: list[tuple[Any, int]] = []
        self.generators: list[Any] = []
        self._seen: set[int] = set()
        self._names: set[str] = set()  # what all functions call attributes and variables
        self._objects: list[tuple[Any, set]] = []  # with the names of attributes noted
        self._visit(f)
        while self._more_attributes():
            pass

    def changed(self) -> bool:
        """Whether a binding, an array or a tensor is another than it was."""
        for get, value in self.bindings:
            if get() is not value:
                return True
        for tensor, version in self.tensors:
            if tensor._version != version:
                return True
        return any(map(_differs, self.arrays))

    def random_state(self) -> list:
        """The states of NumPy's and Python's global generators, and of those found."""
        return [_comparable(np.random.get_state()), random.getstate(), *map(_state, self.generators)]

    def _visit(self, value) -> None:
        """Note what is in ``value``; objects' attributes come last, when all names are known."""
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Variable):
            value = value.data
        if isinstance(value, np.ndarray):
            if value.flags.writeable and value.dtype != object:
                self.arrays.append((value, value.copy()))
        elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            self.generators.append(value)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._visit(value.__func__)
            self._visit(value.__self__)
        elif isinstance(value, (list, tuple, set)):
            for item in value:
                self._visit(item)
        elif isinstance(value, dict):
            for item in list(value.values()):
                self._visit(item)
        elif _is_tensor(value):
            self.tensors.append((value, value._version))
        elif not _is_library(value.__name__ if isinstance(value, types.ModuleType) else type(value).__module__):
            self._objects.append((value, set()))
            if callable(value):
                self._visit(type(value).__call__)

    def _visit_function(self, f: types.FunctionType) -> None:
        codes = list(_codes(f.__code__))
        names = {name for code in codes for name in code.co_names}
        stored = {
            step.argval
            for code in codes
            for step in dis.get_instructions(code)
            if step.opname in ("STORE_GLOBAL", "STORE_DEREF")
        }
        self._names |= names
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            if name not in stored:
                self._bind(functools.partial(_contents, cell))
        for default in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self._visit(default)
        if not _is_library(f.__module__):
            for name in names - stored:
                if name in f.__globals__:
                    self._bind(functools.partial(f.__globals__.get, name, _MISSING))
        self._visit(getattr(f, "__wrapped__", None))

    def _more_attributes(self) -> bool:
        """Note attributes that functions name, of the user's objects and modules; whether there were new ones."""
        found = False
        for value, noted in list(self._objects):
            attributes = getattr(value, "__dict__", {})
            for name in self._names.intersection(attributes) - noted:
                found = True
                noted.add(name)
                self._bind(functools.partial(attributes.get, name, _MISSING))
        return found

    def _bind(self, get: Callable[[], Any]) -> None:
        value = get()
        self.bindings.append((get, value))
        self._visit(value)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:  # empty as yet
        return _MISSING


def _is_library(name: str | None) -> bool:
    root = (name or "").partition(".")[0]
    return root in _LIBRARIES or root in sys.stdlib_module_names and root != "__main__"


def _is_tensor(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and not value.is_inference()


def _differs(pair: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether an array has other bits than its copy, in whatever order in memory."""
    now, then = pair
    if now.shape != then.shape or now.dtype != then.dtype:
        return True
    if now.dtype.kind in "fiu" and now.itemsize in (1, 2, 4, 8):
        bits = f"i{now.itemsize}"
        return bool((now.view(bits) != then.view(bits)).any())
    return not np.array_equal(now, then, equal_nan=now.dtype.kind == "c")


def _state(generator):
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _comparable(generator.get_state())
    return repr(generator.bit_generator.state)


def _comparable(state) -> tuple:
    return tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in state)
