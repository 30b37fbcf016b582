"""Functions of the standard that create arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import backends, ops
from .. import numpy as _numpy
from ..errors import ArgumentTypeError, TypeOf
from ..ops import _checks
from ..ops.numpy_functions import is_ours
from . import _devices, _dtypes

__all__ = ["arange", "asarray", "broadcast_shapes", "empty", "eye", "from_dlpack", "full", "linspace", "ones", "zeros"]


def _make(make: Callable, device, dtype, *arguments, **keywords):
    named = None if dtype is None else _dtypes.name_of(dtype)
    return _devices.made_at(device, make, *arguments, dtype=named, **keywords)


def asarray(obj, /, *, dtype=None, device=None, copy: bool | None = None):
    """Convert ``obj`` to an array.

    Args:
        obj: an array of any of the libraries, which keeps its library, a variable, a number, nested lists of numbers
            and variables, or a buffer.
        dtype: another dtype.
        device: another device, such as ``x.device``.
        copy: True for a copy, False for an error if a copy is needed.

    Raises:
        ValueError: a copy would be needed.

    Gradient:
        The upstream gradient, cast to the dtype of ``obj``.
    """
    _check_copy("asarray", copy)
    dtype = None if dtype is None else _dtypes.name_of(dtype)
    if not (is_ours(obj) or ops.is_tensor(obj)):
        if copy is False:
            raise ValueError("`asarray`: `copy` must not be False for numbers and lists, which are copied.")
        obj = _numpy._joined(obj) if _numpy._holds_ours(obj) else obj
        return obj if is_ours(obj) and dtype is None else _make(ops.array, device, dtype, _buffer(obj))
    same = dtype in (None, ops.dtype(obj))
    if copy is False and not (same and _devices.checked(device) in (None, _devices.device_of(obj))):
        raise ValueError("`asarray` with another dtype or device needs a copy.")
    y = obj if same else ops.cast(obj, dtype)
    y = ops.copy(y) if copy and same else y
    if is_ours(y):
        return _devices.to_device(y, device)
    return _devices.made_at(device, lambda: y)


def _check_copy(name: str, copy) -> None:
    if copy is not None:
        _checks.check_flags(name, copy=copy)


def _buffer(obj):
    """An object with the buffer interface as a NumPy array on its memory; other objects unchanged."""
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        return obj


def from_dlpack(x, /, *, device=None, copy: bool | None = None):
    """An array of the default library, or the device's, on the memory of another library's array.

    Args:
        x: an object with ``__dlpack__``.
        copy: True for a copy, False for an error if the memory cannot be shared.

    Raises:
        ArgumentTypeError: an object without ``__dlpack__``.
        GradientError: a variable that requires a gradient.
        ValueError: a copy would be needed.
    """
    _check_copy("from_dlpack", copy)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(
            "`from_dlpack`: `x` must be an array with `__dlpack__`; got {x}.", argument="x", x=TypeOf(x)
        )

    def make():
        owner = backends.lookup(_devices.config.backend())
        found = owner.from_dlpack(x)
        if found is None:
            if copy is False:
                raise ValueError("`from_dlpack`: the memory cannot be shared.")
            found = owner.convert(np.from_dlpack(x))
        return ops.copy(found) if copy else found

    return _devices.made_at(device, make)


def broadcast_shapes(*shapes) -> tuple:
    """The common shape of arrays with these shapes; from the standard after 2024.12."""
    return np.broadcast_shapes(*shapes)


def zeros(shape, *, dtype=None, device=None):
    """Zeros, of the default float dtype unless another is given."""
    return _make(ops.zeros, device, dtype, shape)


def ones(shape, *, dtype=None, device=None):
    """Ones, of the default float dtype unless another is given."""
    return _make(ops.ones, device, dtype, shape)


def empty(shape, *, dtype=None, device=None):
    """An array to be filled; its elements are zeros."""
    return _make(ops.empty, device, dtype, shape)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array filled with one value, in the value's dtype unless another is given.

    Gradient:
        The sum of the upstream gradient, to ``fill_value``.
    """
    return _make(ops.full, device, dtype, shape, fill_value)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype=None, device=None):
    """Ones on the ``k``-th diagonal, zeros elsewhere."""
    return _make(ops.eye, device, dtype, n_rows, n_cols, k)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from ``start`` (0 if only one is given) up to, but excluding, ``stop``, in steps of ``step``."""
    return _make(ops.arange, device, dtype, *((0, start) if stop is None else (start, stop)), step)


def linspace(start, stop, /, num: int, *, dtype=None, device=None, endpoint: bool = True):
    """``num`` evenly spaced numbers from ``start`` to ``stop``, with or without the end point.

    Gradient:
        The upstream gradient to both ends, weighted by each number's closeness to them.
    """
    return _make(ops.linspace, device, dtype, start, stop, num, endpoint)
