"""Whether a tensor's values, taken out of a derivative that is being recorded, leave their gradient behind."""

from __future__ import annotations

from ... import autodiff, backends
from ...autodiff.modes import recording


def is_recorded(value) -> bool:
    """Whether a derivative is being recorded for a tensor: by the tape, torch, TensorFlow's tapes or JAX.

    TensorFlow does not say so of its forward accumulators.
    """
    if isinstance(value, autodiff.Variable):
        return bool(value.requires_grad) and recording.get()
    backend = backends.of(value)
    return backend is not None and backend.derivatives.records(value)
