"""Whether what a gradient function reads was written in place before it runs."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import CellType

import numpy as np

from .. import backends
from ..autodiff.state import version
from ..autodiff.variable import Variable, data_of
from ..backends import tracing
from ..errors import GradientError
from ..ops import conversion


@tracing.read_as(lambda *_: ())
def read_by(gradient: Callable, inputs=()) -> list[tuple]:
    """The tensors whose values a gradient function reads: its inputs, and what it closes over.

    Each with what tells whether it was written in place, the answer now, and the memory that the answer is about.
    """
    read: list[tuple] = []
    cells = getattr(gradient, "__closure__", None) or ()
    for x in (*cells, *inputs) if inputs else cells:
        try:
            x = x.cell_contents if type(x) is CellType else x
            state = _states[type(x)]
        except ValueError:  # a name that is bound later
            continue
        except KeyError:
            state = _states[type(x)] = _state_of(type(x))
        if state is _torch_version:
            try:
                read.append((x, state, x._version, None))
            except RuntimeError:  # torch's inference tensors count nothing
                pass
        elif state is not None and x.dtype is not str:
            read.append((x, state, state(x), x.data if isinstance(x, Variable) else None))
    return read


def _state_of(kind: type) -> Callable | None:
    """What tells whether a tensor of a type was written in place; None where it cannot be, or is no tensor."""
    if issubclass(kind, (np.ndarray, Variable)):
        return _written
    return _torch_version if backends.owner(kind) is not None and hasattr(kind, "_version") else None


_states: dict[type, Callable | None] = {}
_torch_version = attrgetter("_version")


def _written(x) -> tuple[int, int]:
    """What changes where a tensor is written in place: its memory, and how often that was written."""
    data = data_of(x)
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
