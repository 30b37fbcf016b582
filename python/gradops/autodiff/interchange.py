"""Conversion of tensors from one library to another, through DLPack without a copy if both sides support it."""

from __future__ import annotations

import numpy as np

from .. import backends, config
from ..backends import tracing
from ..errors import ArgumentTypeError, BackendError, GradientError, GradopsError, JitError, TypeOf
from .modes import foreign_variable_error
from .variable import Variable, method

__all__ = ["to_backend"]


def to_backend(x, backend: str, device=None):
    """``x`` as a tensor of another library.

    Args:
        x: a tensor of any library, a variable, a number or a nested list.
        backend: ``"numpy"``, ``"torch"``, ``"tensorflow"`` or ``"jax"``.
        device: the target device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or a device object of the library. None keeps
            the device, if the library can use it.

    Returns:
        A tensor of the same shape and dtype; ``x`` itself if it already belongs to that library and device. It shares
        its memory with ``x`` if the libraries can (DLPack), so write to neither. They cannot if JAX's 64-bit
        mode is off, the array is read-only and the target PyTorch, the memory layout does not suit the other library
        (including complex numbers made by R), or it lacks the dtype (NumPy: bfloat16 becomes float32).

    Raises:
        GradientError: the gradient of the tensor or variable is being recorded: it cannot follow to another library.
        BackendError: an unknown or uninstalled backend, or a device that it does not have.
        ArgumentTypeError: a kind of value that the other library lacks: strings, sparse tensors, 8-bit floats, tensors
            batched by `vmap`.
        JitError: a tensor of a compiled function, whose values are not known.

    Gradient:
        None between libraries; within one library the upstream gradient.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> x = np.array([1.0, 2.0])
        >>> gradops.to_backend(x, "numpy") is x
        True

        This example needs ``gradops[torch]``; PyTorch then differentiates:

        >>> y = gradops.to_backend(x, "torch")
        >>> print(gradops.grad(lambda y: (y**2).sum())(y))
        tensor([2., 4.], dtype=torch.float64)

    See Also:
        ``gradops.ops.convert_to_numpy``, :func:`gradops.config.backend_scope` for the library of numbers.
    """
    target = backends.lookup(backend)
    if isinstance(x, Variable):
        if x.requires_grad:
            raise _recorded(x)
        x = x.data
    x = backends.held(x)
    source = backends.backend_of(x)
    if source is None:
        target.prepare(config.floatx())
        x = _converted(x, target)
    elif source is not target:
        if source.derivatives.records(x):
            raise _traced(x, source) or _recorded(x)
        x = _moved(x, source, target)
    return x if device is None else _placed(x, target, device)


to_backend.autograph_info__ = None  # type: ignore[attr-defined]  # keeps TensorFlow's AutoGraph from converting it


def _moved_as_read(x, source, target):
    if target.derivatives.own_tape and isinstance(x, np.ndarray):  # Dynamo reads it as a tensor
        return target.convert(x)
    return tracing.outside(_shared, x, source, target)


@tracing.read_as(_moved_as_read)
def _moved(x, source, target):
    return tracing.outside(_shared, x, source, target)


def _shared(x, source, target):
    """A tensor on the same memory if the libraries can share it, otherwise a copy."""
    try:
        x = source.handed_over(x)
        found = target.from_dlpack(x)
        if found is not None and target.dtype_name(found) == source.dtype_name(x):
            return found
    except Exception:  # each library raises its own errors for arrays it cannot share
        pass
    return _converted(x, target, source)


def _converted(x, target, source=None):
    try:
        if source is None:
            return target.convert(x)
        dtype = "bfloat16" if source.dtype_name(x) == "bfloat16" and target is not backends.embedded() else None
        return target.convert(source.to_numpy(x), dtype)  # NumPy has no bfloat16
    except GradopsError:
        raise
    except Exception as error:
        raise ArgumentTypeError(
            f"`to_backend`: {target.name} cannot have {{x}}: {_said(error)}", argument="x", x=TypeOf(x)
        ) from error


def _placed(x, target, device):
    try:
        return target.place(x, device)
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(
            f"`to_backend`: {target.name} cannot put a tensor on the device {device!r}: {_said(error)}",
            argument="device",
        ) from error


def _said(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _traced(x, source) -> JitError | None:
    """The error for ``x`` if it is traced and has no values, otherwise None."""
    try:
        source.to_numpy(x)
    except JitError as error:
        return error
    except Exception:  # unreadable inside a derivative
        pass
    return None


def _recorded(x) -> GradientError:
    return GradientError(
        f"`to_backend`: the gradient of `x`, a {type(x).__name__}, is being recorded, and cannot follow to another "
        "library.",
        argument="x",
        hint="take `stop_gradient(x)`",
    )


@method("__tf_tensor__")
def _tf_tensor(self: Variable, dtype=None, name=None):
    """The variable as a tensor for TensorFlow's functions; through NumPy, TensorFlow's tapes would lose its tensor."""
    if self.requires_grad:
        raise foreign_variable_error("tensorflow")
    return backends.asking_by("__tf_tensor__").convert(self.data, dtype and dtype.name)


@method("__dlpack__")
def _dlpack(self: Variable, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The DLPack capsule of the data, as ``from_dlpack(v)`` of other libraries requests it; they share its memory.

    Args:
        stream, max_version, dl_device, copy: see the array API standard; passed to the data's own library.

    Raises:
        GradientError: the variable requires a gradient, as in PyTorch.
        BackendError: its library's tensors do not support DLPack, as in old versions of TensorFlow.
    """
    if self.requires_grad:
        raise _recorded(self)
    data = _speaking_dlpack(self)
    if copy:  # TensorFlow's tensors accept neither `copy` nor a device
        owner = backends.backend_of(data)
        data, copy = owner.convert(np.array(owner.to_numpy(data)), owner.dtype_name(data)), None
    if dl_device is not None and tuple(map(int, dl_device)) == tuple(map(int, data.__dlpack_device__())):
        dl_device = None
    asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    asked = {name: value for name, value in asked.items() if value is not None}
    try:
        return data.__dlpack__(**asked)
    except TypeError as error:  # before version 2.1 NumPy accepts `stream` only
        if "dl_device" in asked:
            raise BufferError(f"{TypeOf(data)} cannot go to the device {dl_device}") from error
        if asked.pop("max_version", None) is None:  # `max_version` is an upper limit, so it can be left out
            raise
        return data.__dlpack__(**asked)


@method("__dlpack_device__")
def _dlpack_device(self: Variable):
    """The kind and number of the data's device, in DLPack's numbering."""
    return _speaking_dlpack(self).__dlpack_device__()


def _speaking_dlpack(variable: Variable):
    if not hasattr(variable.data, "__dlpack__"):
        name = backends.backend_of(variable.data).name
        hint = 'give `gradops.to_backend(v, "numpy")`'
        raise BackendError(f"this version of {name} has tensors without DLPack.", hint=hint)
    return variable.data
