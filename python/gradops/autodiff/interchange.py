"""Tensors from one library to another, through DLPack without a copy where both sides can."""

from __future__ import annotations

import numpy as np

from .. import backends, config
from ..backends.numpy.base import at_whole_address
from ..errors import BackendError, GradientError, TypeOf
from .variable import Variable, method

__all__ = ["to"]


def to(x, backend: str, device=None):
    """``x`` as a tensor of another library.

    Args:
        x: a tensor of any library, a variable, a number or a nested list.
        backend: ``"numpy"``, ``"torch"``, ``"tensorflow"`` or ``"jax"``.
        device: where it shall be: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or a device of the library's. None: where it is,
            if the library can use it there.

    Returns:
        A tensor of the same shape and dtype; ``x`` itself where it is of that library and there already. It shares
        its memory with ``x`` where the libraries can (DLPack), so write to neither; they cannot where JAX's 64-bit
        mode is off, the memory is not laid out as the other library needs it (also complex numbers that R made), or the
        dtype is not known there (NumPy: bfloat16 becomes float32).

    Raises:
        GradientError: a tensor or variable whose gradient is being recorded: it cannot follow to another library.
        BackendError: an unknown or uninstalled backend, or a device that it does not have.

    Gradient:
        None between libraries; inside of one it is the upstream gradient.
    """
    target = backends.by_name(backend)
    if isinstance(x, Variable):
        if x.requires_grad:
            raise _recorded(x)
        x = x.data
    source = backends.of(x := backends.held(x))
    if source is None:
        target.prepare(config.floatx())
        x = target.convert(x)
    elif source is not target:
        if source.derivatives.records(x):
            raise _recorded(x)
        x = _shared(x, source, target)
    return x if device is None else _placed(x, target, device)


def _shared(x, source, target):
    """The same memory where the libraries can, else a copy."""
    if any(step < 0 for step in getattr(x, "strides", ())):  # which DLPack has, and PyTorch breaks off at
        return target.convert(source.to_numpy(x))
    if isinstance(x, np.ndarray):
        x = at_whole_address(x)
    try:
        found = target.from_dlpack(x)
        if found is not None and target.dtype_name(found) == source.dtype_name(x):
            return found
    except Exception:  # each library has errors of its own for what it cannot share
        pass
    return target.convert(source.to_numpy(x))


def _placed(x, target, device):
    try:
        return target.place(x, device)
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(
            f"`to`: {target.name} cannot put a tensor on the device {device!r}: {error}", argument="device"
        ) from error


def _recorded(x) -> GradientError:
    return GradientError(
        "`to`: the gradient of {x} is being recorded, and cannot follow to another library.",
        argument="x",
        hint="take `stop_gradient(x)`",
        x=TypeOf(x),
    )


@method("__dlpack__")
def _dlpack(self: Variable, **arguments):
    """The data's DLPack capsule, as other libraries' ``from_dlpack(v)`` ask for it; they share its memory.

    Raises:
        GradientError: a variable that requires a gradient, as PyTorch's tensors do.
        BackendError: its library's tensors speak no DLPack, as of an old TensorFlow.
    """
    if self.requires_grad:
        raise _recorded(self)
    return _speaking_dlpack(self).__dlpack__(**arguments)


@method("__dlpack_device__")
def _dlpack_device(self: Variable):
    """The kind and number of the device that the data is on, as DLPack numbers them."""
    return _speaking_dlpack(self).__dlpack_device__()


def _speaking_dlpack(variable: Variable):
    if not hasattr(variable.data, "__dlpack__"):
        name = backends.of(variable.data).name
        raise BackendError(f"this version of {name} has tensors without DLPack.", hint='give `gradops.to(v, "numpy")`')
    return variable.data
