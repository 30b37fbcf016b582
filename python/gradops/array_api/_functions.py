"""Functions of the standard that NumPy has by the same name: ufuncs are ops, others rows of the table of NumPy's."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from .. import ops
from ..ops import numpy_functions
from . import _devices, _dtypes

_TOTALS = ("sum", "prod", "cumulative_sum", "cumulative_prod", "linalg.trace")
"""Functions whose results of unsigned integers are unsigned."""


def functions(paths: str) -> dict[str, Callable]:
    """Functions by their names, for NumPy's paths; without those that this version of NumPy lacks."""
    found = {}
    for path in paths.split():
        try:
            function = attrgetter(path)(np)
        except AttributeError:
            continue
        call = numpy_functions.CALLS.get(function)
        found[path.rpartition(".")[2]] = call if call is not None and hasattr(call, "op") else _of(path, function, call)
    return found


def _of(path: str, function: Callable, call: Callable | None) -> Callable:
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
    with contextlib.suppress(ValueError):  # older NumPy's functions of C have none
        of_arrays.__signature__ = inspect.signature(call or function)  # type: ignore[attr-defined]
    return of_arrays
