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
    return backend is not None and _RECORDED[backend.name](value)


def _torch(tensor) -> bool:
    import torch

    return tensor.requires_grad and torch.is_grad_enabled()


def _tensorflow(tensor) -> bool:
    from tensorflow.python.eager import record

    return bool(record.should_record_backprop([tensor]))


def _jax(array) -> bool:
    import jax

    return isinstance(array, jax.core.Tracer)


_RECORDED = {"numpy": lambda array: False, "torch": _torch, "tensorflow": _tensorflow, "jax": _jax}
