"""NumPy's functions on gradops' own array classes: a table from NumPy's functions to rows written with ops.

A row has NumPy's own signature; an argument that it does not take raises an error that names it (:mod:`._table`). The
files group the rows by theme. A class that gets the functions defines:

- ``_described()``: an array of the same shape and dtype, for functions that need no values;
- ``_constant(losing=None)``: the array itself, for functions that are not recorded; it raises an error if there are no
  values, or if the function named ``losing`` would lose a gradient;
- ``_write(result)``: become ``result`` in place, as for ``out=``; it raises an error if that is not possible.
"""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentTypeError
from .._checks import combines_arrays
from . import _elements, _products, _reductions, _shapes, _table, _ufuncs
from ._reductions import typed
from ._shapes import ravel
from ._table import LISTS, ROWS, is_ours
from ._ufuncs import CALLS

__all__ = ["CALLS", "LISTS", "ROWS", "give", "is_ours", "ravel", "typed"]
_THEMES = (_elements, _products, _products, _reductions, _shapes)


def give(kind: Any, error: type[Exception] = ArgumentTypeError) -> None:
    """Make NumPy's functions work on instances of a class; ``error`` is raised for functions without a row."""
    kind._unrecorded = error
    kind.__array_ufunc__ = _array_ufunc
    kind.__array_function__ = _array_function


def _array_ufunc(self, ufunc, method: str, *inputs, **keywords) -> Any:
    """Apply a NumPy ufunc to gradops' arrays, recorded."""
    if not keywords and method == "__call__":
        call = CALLS.get(ufunc)
        if call is not None:
            try:
                return call(*inputs)
            except ArgumentTypeError:
                if any(combines_arrays(type(x)) for x in inputs):
                    return NotImplemented
                raise
    return _ufuncs.any_ufunc(self, ufunc, method, inputs, keywords)


def _array_function(self, function, types, arguments, keywords) -> Any:
    """Apply any other NumPy function to gradops' arrays, recorded."""
    row = ROWS.get(function)
    if row is None:
        raise _table.unsupported(self, _table.full_name(function))
    return row(self, arguments, keywords)
