"""The inner loops of ufuncs: their addresses, for the machine to call them on tiles of arrays."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

# The public layout of `PyUFuncObject` (numpy/ufuncobject.h), the same in NumPy 1 and 2, behind CPython's head.
_HEAD = object.__basicsize__
_FUNCTIONS, _DATA = _HEAD + 16, _HEAD + 24


def loop(ufunc: np.ufunc, *dtypes: Any) -> tuple[int, int] | None:
    """The addresses of the loop on operands and results of those dtypes, and of its data; None where it has none."""
    count = ufunc.nin
    signature = "".join(d.char for d in dtypes[:count]) + "->" + "".join(d.char for d in dtypes[count:])
    try:
        number = ufunc.types.index(signature)
    except ValueError:
        return None
    found = [_word(_word(id(ufunc) + at) + 8 * number) for at in (_FUNCTIONS, _DATA)]
    return found[0], found[1]


def address(array: np.ndarray) -> int:
    """The address of an array's first element: ``array.ctypes.data``, which takes ten times as long."""
    return _word(id(array) + _HEAD)


def _word(at: int) -> int:
    return ctypes.c_size_t.from_address(at).value


@functools.cache
def are_known() -> bool:
    """True if NumPy's objects are laid out as they are read here: 2 + 3 is 5."""
    if ctypes.sizeof(ctypes.c_size_t) != 8 or not hasattr(np.ufunc, "resolve_dtypes"):
        return False
    x = np.array([2.0, 3.0, 0.0])
    if address(x) != x.ctypes.data or ctypes.c_int.from_address(id(np.add) + _HEAD).value != 2:
        return False
    found = loop(np.add, x.dtype, x.dtype, x.dtype)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_size_t] * 4)(found[0])  # type: ignore[index]
    arguments = np.array([x.ctypes.data + 8 * i for i in range(3)], np.int64)
    count, steps = np.array([1], np.int64), np.full(3, 8, np.int64)
    call(arguments.ctypes.data, count.ctypes.data, steps.ctypes.data, found[1])  # type: ignore[index]
    return bool(x[2] == 5.0)
