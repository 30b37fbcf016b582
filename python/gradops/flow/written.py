"""Whether what a gradient function reads was written in place before it runs."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from .. import backends
from ..autodiff.state import version
from ..autodiff.variable import Variable
from ..errors import GradientError
from ..ops import conversion


def read_by(gradient: Callable, inputs=()) -> list[tuple]:
    """The tensors whose values a gradient function reads: its inputs, and what it closes over.

    Each with what tells whether it was written in place, the answer now, and the memory that the answer is about.
    """
    found = [*inputs]
    for cell in getattr(gradient, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a name that is bound later
            pass
    read: list[tuple] = []
    for x in found:
        if backends.owner(type(x)) is None:
            if isinstance(x, Variable) and x.dtype is not str:
                read.append((x, _written, _written(x), x.data))
        elif hasattr(type(x), "_version"):
            try:
                read.append((x, _torch_version, x._version, None))
            except RuntimeError:  # torch's inference tensors count nothing
                pass
        elif isinstance(x, np.ndarray):
            read.append((x, _written, _written(x), x))
    return read


_torch_version = attrgetter("_version")


def _written(x) -> tuple[int, int]:
    """What changes where a tensor is written in place: its memory, and how often that was written."""
    data = x.data if isinstance(x, Variable) else x
    return id(data), version(data)


def check_unwritten(read) -> None:
    """Raise if one of the tensors of :func:`read_by` was written since."""
    for x, state, before, _ in read:
        if state(x) != before:
            raise GradientError(
                f"a gradient function reads a tensor of shape {conversion.shape(x)} that was written in place after "
                "the operation: the gradient would be that of other values.",
                argument="f",
                hint="write to a `clone()`, or have the gradient function close over one",
            )
