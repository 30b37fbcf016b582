"""Labels as vectors.

Class labels as vectors of zeros and ones.

See Also:
    :func:`sparse_categorical_crossentropy`, which needs no vectors; :func:`take`, :func:`eye`.
"""

from __future__ import annotations

import numpy as np

from .. import config
from ..annotations import Axis, DType, Indices, Integer, Tensor
from ..errors import ArgumentError, ArgumentTypeError
from ._checks import check_axis, size_of, unknown_arguments
from ._dispatch import op
from ._sizes import multiples
from .conversion import cast
from .conversion import dtype as _dtype
from .elementwise import equal
from .reductions import any
from .shaping import expand_dims, transpose


def _check_labels(op: str, x, name: str = "x") -> None:
    if "int" not in _dtype(x) and _dtype(x) != "bool":
        raise ArgumentTypeError(f"`{op}`: `{name}` must hold whole numbers; got dtype {_dtype(x)}.", argument=name)


def _check_dense(op: str, sparse) -> None:
    if sparse is not False and not (isinstance(sparse, (int, np.bool_)) and not sparse):
        raise ArgumentError(f"`{op}`: `sparse` must be {{False}}; gradops has dense tensors.", argument="sparse")


def _matches(op: str, x, num_classes, axis):
    """Return bools with a dimension of ``num_classes`` at ``axis``, True at each label's class."""
    count = size_of(op, num_classes, "num_classes")
    axis = check_axis(op, axis, len(x.shape) + 1)
    x = expand_dims(cast(x, "int64"), axis)
    classes = multiples(count, 1, [-1 if i == axis else 1 for i in range(len(x.shape))])
    return equal(x, classes)


@op(differentiable=False)
def one_hot(
    x: Indices, num_classes: Integer, axis: Axis = -1, dtype: DType | None = None, sparse: bool = False
) -> Tensor:
    """Each label as a vector with 1 at the label's position and 0 elsewhere.

    Args:
        x: whole numbers of any shape. A label that is negative or too large gives zeros.
        axis: the place of the dimension of ``num_classes`` in the result.
        dtype: ``floatx`` if None.
        sparse: must be False.
        num_classes: the number of classes.

    Returns:
        A tensor of one dimension more than ``x``. It has no gradient.

    Raises:
        ArgumentTypeError: labels that are not whole numbers.
    """
    _check_dense("one_hot", sparse)
    _check_labels("one_hot", x)
    return cast(_matches("one_hot", x, num_classes, axis), dtype or config.floatx())


@op(name="multi_hot", differentiable=False)
def _multi_hot(inputs: Indices, num_classes: Integer, axis: Axis, dtype: DType | None):
    _check_labels("multi_hot", inputs, "inputs")
    rank = len(inputs.shape)
    labels = 1 if rank > 1 else 0
    check_axis("multi_hot", axis, max(rank, 1))
    matches = _matches("multi_hot", inputs, num_classes, -1)
    found = any(matches, labels) if rank else matches
    return cast(_moved(found, axis), dtype or config.floatx())


def _moved(x, axis):
    """``x`` with its last dimension at ``axis``."""
    order = list(range(len(x.shape) - 1))
    order.insert(axis % len(x.shape), len(x.shape) - 1)
    return transpose(x, order)


def multi_hot(
    inputs: Indices,
    num_classes: Integer | None = None,
    axis: Axis = -1,
    dtype: DType | None = None,
    sparse: bool = False,
    **kwargs,
) -> Tensor:
    """Each row of labels as one vector with 1 at every label's position and 0 elsewhere.

    Args:
        inputs: whole numbers, a row of labels along the second dimension (a vector is one row). A label
            that is negative or too large is ignored.
        num_classes: the number of positions; Keras' old name ``num_tokens`` is understood too.
        axis: the place of the dimension of ``num_classes`` in the result.
        dtype: ``floatx`` if None.
        sparse: must be False.

    Returns:
        A tensor with the dimension of labels replaced by one of ``num_classes``. It has no gradient.

    Raises:
        AxisError: an axis out of range.
        ArgumentTypeError: labels that are not whole numbers.
    """
    _check_dense("multi_hot", sparse)
    if num_classes is None:
        num_classes = kwargs.pop("num_tokens", None)
    if kwargs:
        raise unknown_arguments("multi_hot", kwargs, ("inputs", "num_classes", "axis", "dtype", "sparse"))
    return _multi_hot(inputs, num_classes, axis, dtype)
