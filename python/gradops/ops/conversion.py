"""Conversion.

Between values and tensors, and between dtypes.

See Also:
    :func:`dtype`, :func:`saturate_cast`, :func:`view`, :func:`gradops.config.floatx`.
"""

from __future__ import annotations

from .. import backends
from ..annotations import DType, Tensor
from ..dtypes import canonical
from ..errors import ArgumentError
from ._checks import check_held
from ._dispatch import op
from .properties import dtype, is_tensor, ndim, shape, size


def _held(op, x, dtype, *_):
    if dtype is not None:
        check_held(op.name, "x", x, canonical(dtype))


__all__ = [
    "array", "cast", "convert_to_numpy", "convert_to_tensor", "copy", "dtype", "is_tensor", "ndim", "shape", "size",
]  # fmt: skip


@op(check=_held, view="writable")
def convert_to_tensor(x: Tensor, dtype: DType | None = None, sparse=None, ragged=None) -> Tensor:
    """``x`` as a tensor: tensors stay on their backend, other values go to the default backend.

    Python floats become ``floatx``, integers int64. Variables pass through, recorded.

    Args:
        sparse, ragged: Keras's arguments; only None, as tensors of gradops are dense.

    Returns:
        A tensor of ``x``'s shape, of ``dtype`` if given.

    Raises:
        ArgumentTypeError: a value that is not numeric, or a ragged list.
        ArgumentError: ``sparse`` or ``ragged``: gradops has dense tensors only. Also Python numbers
            that an integer ``dtype`` cannot hold; NumPy arrays and tensors are cast.

    Gradient:
        1, cast to ``x``'s dtype.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.convert_to_tensor([1, 2]), gradops.grad(lambda x: ops.sum(ops.convert_to_tensor(x) ** 2))(x))
        [1 2] [2. 6.]
    """
    if sparse or ragged:
        name = "sparse" if sparse else "ragged"
        raise ArgumentError(
            f"`convert_to_tensor`: `{name}` must be {{None}}; gradops has dense tensors.", argument=name
        )
    return x if dtype is None else cast(x, dtype)


@op(check=_held, view="writable")
def array(x: Tensor, dtype: DType | None = None) -> Tensor:
    """``x`` as a tensor, as :func:`convert_to_tensor` makes it.

    Returns:
        A tensor of ``x``'s shape, of ``dtype`` if given.

    Gradient:
        1, cast to ``x``'s dtype.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.array(x, "float32"), gradops.grad(lambda x: ops.sum(ops.array(x, "float32") ** 2))(x))
        [1. 3.] [2. 6.]
    """
    return x if dtype is None else cast(x, dtype)


@op(elementwise=True, linear=("x",), view="writable", exact=True)
def cast(x: Tensor, dtype: DType) -> Tensor:
    """``x`` in another dtype. Complex to real keeps the real part.

    Returns:
        A tensor of ``x``'s shape and of ``dtype``.

    Raises:
        ArgumentError: an unknown dtype.

    Gradient:
        The upstream gradient cast back; none to or from integers and bools.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.cast(x, "float32").dtype, gradops.grad(lambda x: ops.sum(ops.cast(x, "float32") ** 2))(x))
        float32 [2. 6.]
    """
    ...


@op(differentiable=False)
def convert_to_numpy(x: Tensor):
    """``x`` as a NumPy array, detached and on the host.

    Returns:
        An array of the same shape and dtype (bfloat16 becomes float32). It has no gradient.
    """
    return backends.backend_of(x).to_numpy(x)


@op(linear=("x",), elementwise=True, moves=True)
def copy(x: Tensor) -> Tensor:
    """A copy of ``x`` that shares no memory with it.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        1.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.copy(x), gradops.grad(lambda x: ops.sum(ops.copy(x) ** 2))(x))
        [1. 3.] [2. 6.]
    """
    ...
