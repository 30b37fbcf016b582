"""Conversion: between values and tensors, dtypes, and what a tensor says of itself."""

from __future__ import annotations

import builtins

from .. import backends, config, dtypes
from ..annotations import DType, Tensor
from ._dispatch import op


@op
def convert_to_tensor(x: Tensor, dtype: DType | None = None, sparse=None, ragged=None) -> Tensor:
    """A tensor of ``x``: tensors stay on their backend, all else goes to the default one.

    Python floats become ``floatx``, integers int64. Variables pass through, recorded.

    Raises:
        ArgumentTypeError: what is not numeric, or a ragged list.
        ArgumentError: ``sparse`` or ``ragged``: gradops has dense tensors only.

    Gradient:
        1, cast to ``x``'s dtype.
    """
    if sparse or ragged:
        from ..errors import ArgumentError

        name = "sparse" if sparse else "ragged"
        raise ArgumentError(f"`convert_to_tensor`: `{name}` must be None; gradops has dense tensors.", argument=name)
    return x if dtype is None else cast(x, dtype)


@op
def array(x: Tensor, dtype: DType | None = None) -> Tensor:
    """As :func:`convert_to_tensor`.

    Gradient:
        1, cast to ``x``'s dtype.
    """
    return x if dtype is None else cast(x, dtype)


@op
def cast(x: Tensor, dtype: DType) -> Tensor:
    """``x`` in another dtype. Complex to real keeps the real part.

    Raises:
        ArgumentError: an unknown dtype.

    Gradient:
        The upstream gradient cast back; none to or from integers and bools.
    """
    ...


@op(differentiable=False)
def convert_to_numpy(x: Tensor):
    """``x`` as a NumPy array, detached and on the host.

    Returns:
        An array of the same shape and dtype (bfloat16 becomes float32). It has no gradient.
    """
    return backends.of(x).to_numpy(x)


def is_tensor(x) -> bool:
    """Whether ``x`` is a tensor of a backend or a variable."""
    return backends.of(x) is not None or hasattr(x, "requires_grad")


def shape(x: Tensor) -> tuple:
    """The sizes of ``x``'s dimensions as a tuple; in TensorFlow graphs unknown ones are None."""
    try:
        return tuple(x.shape)
    except (AttributeError, TypeError):
        return tuple(config.default_backend().convert(x).shape)


def ndim(x: Tensor) -> int:
    """The number of ``x``'s dimensions."""
    return len(shape(x))


def size(x: Tensor) -> int:
    """The number of ``x``'s elements."""
    count = 1
    for length in shape(x):
        count *= length
    return count


def dtype(x: Tensor) -> str:
    """The name of ``x``'s dtype, such as ``"float32"``; of a Python number the one it would convert to."""
    owner = backends.of(x)
    if owner is not None:
        return owner.dtype_name(x)
    data = getattr(x, "data", None)
    if data is not None and hasattr(x, "requires_grad"):
        return dtype(data)
    kind = type(x)
    if kind in (bool, builtins.int, builtins.float, builtins.complex):
        return dtypes.promote_number("bool", kind, config.floatx())
    return dtype(config.default_backend().convert(x))


@op
def copy(x: Tensor) -> Tensor:
    """A copy of ``x`` that shares no memory with it.

    Gradient:
        1.
    """
    ...
