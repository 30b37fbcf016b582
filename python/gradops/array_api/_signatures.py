"""Functions of the standard with other arguments than NumPy's."""

from __future__ import annotations

from .. import ops
from ..ops import _checks
from . import _devices, _dtypes
from ._functions import functions

__all__ = ["argsort", "astype", "broadcast_arrays", "clip", "meshgrid", "sort"]
_of_numpy = functions("broadcast_arrays meshgrid")


def broadcast_arrays(*arrays) -> list:
    """The arrays in the shape that they have together.

    Gradient:
        The upstream gradient, summed over the dimensions that were repeated.
    """
    return list(_of_numpy["broadcast_arrays"](*arrays))


def meshgrid(*arrays, indexing: str = "xy") -> list:
    """For each vector an array of its values at every point of the grid that the vectors span.

    Args:
        indexing: ``"xy"``: the first vector varies along the second dimension; ``"ij"``: each along its own.

    Gradient:
        The upstream gradient, summed over the other dimensions.
    """
    indexing = _checks.choice("meshgrid", indexing, ("xy", "ij"), "indexing")
    return list(_of_numpy["meshgrid"](*arrays, indexing=indexing))


def clip(x, /, min=None, max=None):
    """The elements, or the limits where they lie beyond; either may be None.

    Gradient:
        1 to the elements between the limits, 0 beyond; there to the limit.
    """
    return ops.clip(x, min, max)


def sort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """The elements along an axis in order.

    Gradient:
        The upstream gradient, to the places that the elements came from.
    """
    _checks.check_flags("sort", descending=descending, stable=stable)
    y = ops.sort(x, axis)
    return ops.flip(y, axis) if descending else y


def argsort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """The places of the elements along an axis in order; equal ones stay in the order that they are in."""
    _checks.check_flags("argsort", descending=descending, stable=stable)
    if not descending:
        return ops.argsort(x, axis)
    last = ops.shape(x)[axis] - 1
    return ops.flip(ops.subtract(last, ops.argsort(ops.flip(x, axis), axis)), axis)


def astype(x, dtype, /, *, copy: bool = True, device=None):
    """An array in another dtype; without ``copy`` itself where it is of that dtype.

    Gradient:
        The upstream gradient, cast to the dtype of ``x``; none to or from integers and bools.
    """
    _checks.check_flags("astype", copy=copy)
    name = _dtypes.name_of(dtype)
    same = ops.dtype(x) == name
    y = (ops.copy(x) if copy else x) if same else ops.cast(x, name)
    return _devices.to_device(y, device)
