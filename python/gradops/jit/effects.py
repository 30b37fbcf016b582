"""Side effects: decide whether a function only computes, so that it may run more often than the user calls it.

:class:`.compiled.FunctionCheck` repeats calls of such functions to compare results. The answer is conservative: it is
True only if the bytecode of all functions that are reached shows no effect.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import types
from typing import Any

import numpy as np

from .dependencies import Captured, codes_of, root_package
from .operations import Operation
from .reference import is_control
from .table import Rows

_WRITE_OPCODES = frozenset(
    dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR") if name in dis.opmap
)
_CELL_OPCODES = frozenset(dis.opmap[name] for name in ("STORE_DEREF", "DELETE_DEREF") if name in dis.opmap)
_BUILTINS = frozenset(
    """abs all any bool complex dict divmod enumerate filter float frozenset getattr hasattr int isinstance issubclass
    len list map max min pow range reversed round set slice sorted str sum super tuple type zip
    ValueError TypeError ArithmeticError ZeroDivisionError NotImplementedError AssertionError IndexError
    KeyError""".split()
)
"""Builtins that only compute."""
_LIBRARIES = frozenset("gradops numpy math cmath scipy operator functools itertools".split())
_EFFECTS = frozenset(
    """print open input write writelines save savez savetxt savemat tofile dump dumps load loadtxt fromfile memmap
    seterr errstate printoptions set_printoptions random default_rng seed shuffle cache_clear set_backend set_floatx
    set_epsilon set_check backward step zero_grad sleep time perf_counter system popen run call
    register_hook""".split()
)
"""Names of functions and methods that have effects, or whose results differ from call to call."""
_EXTERNAL_MODULES = "gradops.interop", "gradops.text"
"""Modules whose functions call R or models of other libraries."""
_CACHED = type(functools.lru_cache(abs))
"""The type of functions with a cache; the function inside is examined separately."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic, np.dtype)


def only_computes(captured: Captured) -> bool:
    """True if nothing that a function reaches has effects.

    Unknown objects count as having effects: iterators, objects of other libraries, compiled functions.
    """
    return all(_is_pure(f) for f, *_ in captured.functions) and all(_is_harmless(x) for _, x, _ in captured.cells)


def _is_pure(f: types.FunctionType) -> bool:
    if f.__code__.co_flags & _GENERATOR_FLAGS:
        return False
    for code in codes_of(f.__code__):
        if not _EFFECTS.isdisjoint(code.co_names):
            return False
        for instruction in dis.get_instructions(code):
            if instruction.opcode in _WRITE_OPCODES:
                return False
            if instruction.opcode in _CELL_OPCODES and instruction.argval in code.co_freevars:
                return False
            if instruction.opname == "LOAD_GLOBAL" and not _is_harmless_global(f, instruction.argval):
                return False
    return True


_GENERATOR_FLAGS = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
)


def _is_harmless_global(f: types.FunctionType, name: str) -> bool:
    if name in f.__globals__:
        return _is_harmless(f.__globals__[name])
    return name in _BUILTINS and hasattr(builtins, name)


def _is_harmless(value: Any) -> bool:
    """True for data, for functions of known libraries, and for the user's functions, which are examined separately."""
    pending, seen = [value], set()
    while pending:
        value = pending.pop()
        if isinstance(value, (list, tuple, set, frozenset, dict)):
            if id(value) not in seen:
                seen.add(id(value))
                pending += value.values() if isinstance(value, dict) else value
        elif not _is_harmless_item(value):
            return False
    return True


def _is_harmless_item(value: Any) -> bool:
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, types.ModuleType):
        return root_package(value.__name__) in _LIBRARIES
    if isinstance(value, _CACHED):
        return True
    if not callable(value) or getattr(value, "__name__", "") in _EFFECTS:
        return False
    module = _module_of(value)
    if module.startswith(_EXTERNAL_MODULES):
        return False
    return root_package(module) in _LIBRARIES or isinstance(value, types.FunctionType)


def calls_others(rows: Rows) -> bool:
    """True if a row calls code of other packages than gradops, NumPy or SciPy, which may have effects."""
    return any(map(_calls_others, rows.operations))


def _calls_others(what: Operation) -> bool:
    if is_control(what):
        return any(calls_others(body.rows) for body in what.pattern[0].bodies)
    kernel = what.kernel
    while isinstance(kernel, functools.partial):
        kernel = kernel.func
    module = _module_of(kernel)
    return module.startswith((*_EXTERNAL_MODULES, "gradops.extend")) or root_package(module) not in _KERNELS


_KERNELS = frozenset(("gradops", "numpy", "scipy", "builtins", "operator", "_operator", "math"))


def _module_of(function: Any) -> str:
    return getattr(function, "__module__", None) or type(function).__module__
