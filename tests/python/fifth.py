"""A fifth backend, for the tests: array-api-strict, which has the array API's functions and no derivatives.

Its kernels are the standard's where that has the op, else NumPy's on the arrays' values.
"""

from __future__ import annotations

import sys

import array_api_strict as xp
import numpy as np

from gradops import backends, dtypes
from gradops.backends import numpy as reference

ARRAY = type(xp.asarray(0.0))
SAME = "exp expm1 log log1p sin cos tan sinh cosh tanh arctan sqrt square abs negative floor ceil".split()
OTHER_NAMES = {"arctan": "atan"}


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, ARRAY)


def convert(value, dtype=None, like=None):
    return _strict(reference.convert(_plain(value), dtype))


def dtype_name(x) -> str:
    return dtypes.canonical(x.dtype)


def to_numpy(x) -> np.ndarray:
    return np.from_dlpack(x).copy()


def _plain(value):
    """NumPy's arrays in place of the library's, also in lists."""
    if isinstance(value, ARRAY):
        return to_numpy(value)
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _strict(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(_strict, value))
    # a copy, since NumPy before 2.1 exports no read-only array by DLPack
    return xp.asarray(value, copy=True) if isinstance(value, (np.ndarray, np.generic)) else value


def __getattr__(name: str):
    if (
        name.startswith("_")
        or not callable(kernel := getattr(reference, name, None))
        or hasattr(backends.Backend, name)
    ):
        raise AttributeError(name)
    native = getattr(xp, OTHER_NAMES.get(name, name)) if name in SAME else None

    def run(*arguments):
        if native is not None and dtypes.is_floating(dtype_name(arguments[0])):
            return native(*arguments)
        return _strict(kernel(*map(_plain, arguments)))

    return run


def register() -> backends.Backend:
    return backends.register("strict", sys.modules[__name__], root="array_api_strict")
