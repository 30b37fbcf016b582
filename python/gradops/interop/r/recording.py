"""Whether a tensor's values, taken out of a derivative that is being recorded, leave their gradient behind."""

from __future__ import annotations

from ... import autodiff, backends
from ...autodiff.modes import recording
from ...ops._checks import known
from . import values


def is_recorded(value) -> bool:
    """Whether a derivative is being recorded for a tensor: by the tape, torch, TensorFlow's tapes or JAX.

    TensorFlow does not say so of its forward accumulators.
    """
    if isinstance(value, autodiff.Variable):
        return bool(value.requires_grad) and recording.get()
    backend = backends.of(value)
    return backend is not None and backend.derivatives.records(value)


def keeps(value) -> bool:
    """Whether code that asks for R's numbers gets the tensor: a derivative is recorded, or there are no values yet."""
    return is_recorded(value) or known(value) is None


def if_known(value):
    """The values for R, or None inside a trace, where there are none."""
    array = known(value)
    return None if array is None or array.dtype.kind not in "biufc" else values.to_r(array)
