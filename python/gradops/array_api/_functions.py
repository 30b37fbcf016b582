"""Functions of the standard: NumPy's functions of the same name, and functions with other arguments."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from .. import ops
from ..ops import _checks, numpy_functions
from . import _devices, _dtypes

__all__ = ["argsort", "astype", "broadcast_arrays", "clip", "meshgrid", "sort"]


_TOTALS = ("sum", "prod", "cumulative_sum", "cumulative_prod", "linalg.trace")
"""Functions that return unsigned results for unsigned integers."""


def functions(paths: str) -> dict[str, Callable]:
    """Functions by name, for NumPy's paths; functions that this version of NumPy lacks are left out."""
    found = {}
    for path in paths.split():
        try:
            function = attrgetter(path)(np)
        except AttributeError:
            continue
        call = numpy_functions.CALLS.get(function)
        found[path.rpartition(".")[2]] = (
            call if call is not None and hasattr(call, "op") else _array_function(path, function, call)
        )
    return found


def _array_function(path: str, function: Callable, call: Callable | None) -> Callable:
    row = (
        numpy_functions.ROWS[function]
        if call is None
        else lambda first, arguments, keywords: call(*arguments, **keywords)
    )

    def of_arrays(*arguments, device=None, **keywords) -> Any:
        if keywords.get("dtype") is not None:
            keywords["dtype"] = _dtypes.name_of(keywords["dtype"])
        first: Any = arguments[0] if arguments else None
        first = first[0] if isinstance(first, (list, tuple)) and first else first
        result = _devices.kept(first, row(first, arguments, keywords))
        if path in _TOTALS and keywords.get("dtype") is None and ops.dtype(first).startswith("uint"):
            result = ops.cast(result, "uint64")
        return result if device is None else _devices.to_device(result, device)

    of_arrays.__name__ = of_arrays.__qualname__ = path.rpartition(".")[2]
    of_arrays.__doc__ = f"As :func:`numpy.{path}`, of the arrays of any of the libraries."
    with contextlib.suppress(ValueError):  # C functions of older NumPy have none
        of_arrays.__signature__ = inspect.signature(call or function)  # type: ignore[attr-defined]
    return of_arrays


# Functions with other arguments than NumPy's --------------------------------------------------------------------------


_of_numpy = functions("broadcast_arrays meshgrid")


def broadcast_arrays(*arrays) -> list:
    """The arrays broadcast to their common shape.

    Gradient:
        The upstream gradient, summed over the broadcast dimensions.
    """
    return list(_of_numpy["broadcast_arrays"](*arrays))


def meshgrid(*arrays, indexing: str = "xy") -> list:
    """For each vector, an array of its values at every point of the grid that the vectors span.

    Args:
        indexing: ``"xy"``: the first vector varies along the second dimension; ``"ij"``: each along its own.

    Gradient:
        The upstream gradient, summed over the other dimensions.
    """
    indexing = _checks.choice("meshgrid", indexing, ("xy", "ij"), "indexing")
    return list(_of_numpy["meshgrid"](*arrays, indexing=indexing))


def clip(x, /, min=None, max=None):
    """The elements, limited to ``min`` and ``max``; either may be None.

    Gradient:
        1 to elements between the limits; beyond, 0 to the element and 1 to the limit.
    """
    return ops.clip(x, min, max)


def sort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """The elements sorted along an axis.

    Gradient:
        The upstream gradient, to the positions that the elements came from.
    """
    _checks.check_flags("sort", descending=descending, stable=stable)
    y = ops.sort(x, axis)
    return ops.flip(y, axis) if descending else y


def argsort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """The indices that sort the elements along an axis; equal elements keep their order."""
    _checks.check_flags("argsort", descending=descending, stable=stable)
    if not descending:
        return ops.argsort(x, axis)
    last = ops.shape(x)[axis] - 1
    return ops.flip(ops.subtract(last, ops.argsort(ops.flip(x, axis), axis)), axis)


def astype(x, dtype, /, *, copy: bool = True, device=None):
    """An array cast to another dtype; without ``copy``, ``x`` itself if it has that dtype.

    Gradient:
        The upstream gradient, cast to the dtype of ``x``; none to or from integers and bools.
    """
    _checks.check_flags("astype", copy=copy)
    name = _dtypes.name_of(dtype)
    same = ops.dtype(x) == name
    y = (ops.copy(x) if copy else x) if same else ops.cast(x, name)
    return _devices.to_device(y, device)
