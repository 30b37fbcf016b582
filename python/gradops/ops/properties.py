"""Properties of tensors.

Python numbers, strings and bools, not tensors; a differentiated function may branch on them.

See Also:
    :func:`reshape`, :func:`cast`, :func:`convert_to_tensor`.
"""

from __future__ import annotations

import builtins
import functools

import numpy as np

from .. import backends, config, dtypes
from ..annotations import Tensor
from ..errors import ArgumentTypeError, TypeOf
from ._registry import public


@public
def is_tensor(x) -> bool:
    """True for a tensor of a backend, a variable, and an object that holds one, as a Keras variable does.

    Returns:
        A bool, which has no gradient.
    """
    return backends.backend_of(x) is not None or hasattr(x, "requires_grad") or backends.held(x) is not x


@public
def shape(x: Tensor) -> tuple:
    """The sizes of ``x``'s dimensions; one that a TensorFlow graph does not know is a 0-d tensor.

    Returns:
        A tuple, which has no gradient.
    """
    try:
        sizes = tuple(x.shape)
    except (AttributeError, TypeError):
        if holds_tensors(x):
            return (len(x), *shape(x[0]))
        sizes = tuple(_converted("shape", x).shape)
    for size in sizes:
        if size is None:
            data = getattr(x, "data", x)
            owner = backends.backend_of(data)
            return sizes if owner is None else owner.sizes(data)
    return sizes


def unknown(size) -> bool:
    """True for a size of :func:`shape` that is unknown until a graph runs."""
    return not isinstance(size, (builtins.int, np.integer)) and backends.backend_of(size) is not None


def fits(first: tuple, second: tuple) -> bool:
    """True if two shapes may be equal; an unknown size fits any size."""
    return len(first) == len(second) and all(
        n is m or unknown(n) or unknown(m) or n == m for n, m in zip(first, second)
    )


def known_sizes(sizes) -> set[int]:
    """Return the set of known sizes."""
    return {size for size in sizes if not unknown(size)}


def is_empty(sizes: tuple) -> bool:
    """True if a size is known to be 0."""
    return any(not unknown(size) and size == 0 for size in sizes)


@public
def ndim(x: Tensor) -> int:
    """The number of ``x``'s dimensions.

    Returns:
        An int, which has no gradient.
    """
    return len(shape(x))


@public
def size(x: Tensor) -> int:
    """The number of ``x``'s elements.

    Returns:
        An int (a 0-d tensor where a TensorFlow graph does not know it), which has no gradient.
    """
    count = 1
    for length in shape(x):
        count *= length
    return count


@public
def dtype(x: Tensor) -> str:
    """The name of ``x``'s dtype, such as ``"float32"``; for a Python number, of the dtype it would convert to.

    Returns:
        A string, which has no gradient.
    """
    owner = backends.backend_of(x)
    if owner is not None:
        return owner.dtype_name(x)
    kind = type(x)
    if kind in (bool, builtins.int, builtins.float, builtins.complex):
        return dtypes.promote_number("bool", kind, config.floatx())
    data = getattr(x, "data", None)
    if data is not None and hasattr(x, "requires_grad"):
        return dtype(data)
    if backends.is_symbolic(x):
        return dtypes.canonical(x.dtype)
    if holds_tensors(x):
        return functools.reduce(dtypes.promote, map(dtype, x))
    inner = backends.held(x)
    return dtype(_converted("dtype", x) if inner is x else inner)


def holds_tensors(value) -> bool:
    """True if a list, or a list in it, holds variables or a library's tensors; NumPy arrays count as numbers."""
    if not isinstance(value, (list, tuple)):
        return False
    for item in value:
        if isinstance(item, (list, tuple)):
            if holds_tensors(item):
                return True
        else:
            owner = backends.backend_of(item)
            if not owner.yields if owner is not None else hasattr(item, "requires_grad"):
                return True
    return False


def _converted(op: str, x):
    try:
        return config.default_backend().convert(x)
    except Exception as error:
        raise ArgumentTypeError(
            f"`{op}`: `x` must be a tensor, a number or a rectangular list of numbers; got {{x}}.",
            argument="x",
            x=TypeOf(x),
        ) from error
