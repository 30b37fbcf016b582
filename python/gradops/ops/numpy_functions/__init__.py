"""NumPy's functions on an array of gradops' own: rows of a table keyed by the functions, written in ops.

A row has NumPy's own signature; what it does not take is refused by name (:mod:`._table`). The rows stand by theme in
the files here. A class that is given them says of its instances:

- ``_described()``: an array of the same shape and dtype, for functions that ask no more;
- ``_constant(losing=None)``: the array itself, for what is not recorded; an error where there is none to look at, or
  where ``losing`` would lose a gradient;
- ``_write(result)``: become ``result`` in place, for ``out=`` and the like; an error where that is not possible.
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
    """Make NumPy's functions on instances of a class ops; ``error`` is raised for functions that have none."""
    kind._unrecorded = error
    kind.__array_ufunc__ = _array_ufunc
    kind.__array_function__ = _array_function


def _array_ufunc(self, ufunc, method: str, *inputs, **keywords) -> Any:
    """NumPy's ufuncs on ours, recorded."""
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
    """NumPy's other functions on ours, recorded."""
    row = ROWS.get(function)
    if row is None:
        raise _table.unsupported(self, _table.full_name(function))
    return row(self, arguments, keywords)
