"""Tensors from one library to another, through DLPack without a copy where both sides can."""

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
        device: where it shall be: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or a device of the library's. None: where it is,
            if the library can use it there.

    Returns:
        A tensor of the same shape and dtype; ``x`` itself where it is of that library and there already. It shares
        its memory with ``x`` where the libraries can (DLPack), so write to neither; they cannot where JAX's 64-bit
        mode is off, PyTorch would write to a read-only array, the memory is not laid out as the other library needs
        it (also complex numbers that R made), or the dtype is not known there (NumPy: bfloat16 becomes float32).

    Raises:
        GradientError: a tensor or variable whose gradient is being recorded: it cannot follow to another library.
        BackendError: an unknown or uninstalled backend, or a device that it does not have.
        ArgumentTypeError: a kind of value that the other library lacks: texts, sparse tensors, 8-bit floats, rows of
            a `vmap`.
        JitError: a tensor of a compiled function, whose values are not known.

    Gradient:
        None between libraries; inside of one it is the upstream gradient.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> x = np.array([1.0, 2.0])
        >>> gradops.to_backend(x, "numpy") is x
        True

        This needs ``gradops[torch]``; the derivative is then PyTorch's:

        >>> y = gradops.to_backend(x, "torch")
        >>> print(gradops.grad(lambda y: (y**2).sum())(y))
        tensor([2., 4.], dtype=torch.float64)

    See Also:
        ``gradops.ops.convert_to_numpy``, :func:`gradops.config.backend_scope` for where numbers go.
    """
    target = backends.by_name(backend)
    if isinstance(x, Variable):
        if x.requires_grad:
            raise _recorded(x)
        x = x.data
    x = backends.held(x)
    source = backends.of(x)
    if source is None:
        target.prepare(config.floatx())
        x = _converted(x, target)
    elif source is not target:
        if source.derivatives.records(x):
            raise _traced(x, source) or _recorded(x)
        x = _moved(x, source, target)
    return x if device is None else _placed(x, target, device)


to_backend.autograph_info__ = None  # type: ignore[attr-defined]  # TensorFlow's AutoGraph leaves it as it is


def _moved_as_read(x, source, target):
    if target.derivatives.own_tape and isinstance(x, np.ndarray):  # read as a tensor
        return target.convert(x)
    return tracing.outside(_shared, x, source, target)


@tracing.read_as(_moved_as_read)
def _moved(x, source, target):
    return tracing.outside(_shared, x, source, target)


def _shared(x, source, target):
    """The same memory where the libraries can, else a copy."""
    try:
        x = source.handed_over(x)
        found = target.from_dlpack(x)
        if found is not None and target.dtype_name(found) == source.dtype_name(x):
            return found
    except Exception:  # each library has errors of its own for arrays it cannot share
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
    """The error for ``x`` without values, as it is traced; None where it has them."""
    try:
        source.to_numpy(x)
    except JitError as error:
        return error
    except Exception:  # of a derivative in which it cannot be read
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
    """The variable as TensorFlow's own functions take it: by way of NumPy TensorFlow's tapes would lose its tensor."""
    if self.requires_grad:
        raise foreign_variable_error("tensorflow")
    return backends.asking_by("__tf_tensor__").convert(self.data, dtype and dtype.name)


@method("__dlpack__")
def _dlpack(self: Variable, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The data's DLPack capsule, as other libraries' ``from_dlpack(v)`` ask for it; they share its memory.

    Args:
        stream, max_version, dl_device, copy: as in the array API standard; passed to the data's own library.

    Raises:
        GradientError: a variable that requires a gradient, as PyTorch's tensors do.
        BackendError: its library's tensors speak no DLPack, as of an old TensorFlow.
    """
    if self.requires_grad:
        raise _recorded(self)
    data = _speaking_dlpack(self)
    if copy:  # which TensorFlow's do not know, nor a device, though it be theirs
        owner = backends.of(data)
        data, copy = owner.convert(np.array(owner.to_numpy(data)), owner.dtype_name(data)), None
    if dl_device is not None and tuple(map(int, dl_device)) == tuple(map(int, data.__dlpack_device__())):
        dl_device = None
    asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    asked = {name: value for name, value in asked.items() if value is not None}
    try:
        return data.__dlpack__(**asked)
    except TypeError as error:  # NumPy's before 2.1 know the stream alone
        if "dl_device" in asked:
            raise BufferError(f"{TypeOf(data)} cannot go to the device {dl_device}") from error
        if asked.pop("max_version", None) is None:  # the highest, so that a lower one does
            raise
        return data.__dlpack__(**asked)


@method("__dlpack_device__")
def _dlpack_device(self: Variable):
    """The kind and number of the device that the data is on, as DLPack numbers them."""
    return _speaking_dlpack(self).__dlpack_device__()


def _speaking_dlpack(variable: Variable):
    if not hasattr(variable.data, "__dlpack__"):
        name = backends.of(variable.data).name
        hint = 'give `gradops.to_backend(v, "numpy")`'
        raise BackendError(f"this version of {name} has tensors without DLPack.", hint=hint)
    return variable.data
