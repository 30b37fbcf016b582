"""Structures of tensors as one vector, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from .. import _tree, ops
from ..errors import ShapeError
from ..ops._structures import as_tensor, owner_of
from ..ops.properties import fits


def ravel_pytree(pytree) -> tuple[Any, Callable]:
    """The tensors of a structure as one vector, and the function from vectors to structures.

    Args:
        pytree: a tensor, variable or number, or a nested structure of them.

    Returns:
        ``(flat, unravel)``. ``flat`` has the elements of all tensors, in the promoted dtype; dicts are in the order of
        their sorted keys. ``unravel(flat)`` returns a structure like ``pytree``, where each tensor has its own shape
        and dtype.

    Raises:
        ArgumentTypeError: a leaf is not a tensor or number.
        ShapeError: from ``unravel``, a vector of another size.

    Gradient:
        Both are linear, and gradients pass through them. After ``jax.flatten_util.ravel_pytree``.

    Examples:
        A function of parameters as a function of one vector, as optimisers take it:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def loss(p):
        ...     return ops.sum((p["w"] * p["b"] - 1.0) ** 2)
        >>> flat, unravel = gradops.ravel_pytree({"w": np.array([1.0, 2.0]), "b": 3.0})
        >>> print(flat, unravel(2.0 * flat)["w"])
        [3. 1. 2.] [2. 4.]
        >>> print(gradops.grad(lambda x: loss(unravel(x)))(flat))
        [24. 12. 30.]

    See Also:
        :func:`gradops.functional.objective`, which takes parameters in structures; :func:`gradops.hessian`.
    """
    leaves, form = _tree.flatten(pytree)
    owner = owner_of("ravel_pytree", *leaves)
    leaves = [as_tensor("ravel_pytree", x, owner, "pytree") for x in leaves]
    shapes, kinds = [ops.shape(x) for x in leaves], [ops.dtype(x) for x in leaves]
    flat = raveled(leaves) if leaves else owner.convert([], "float32")

    def unravel(flat):
        size = sum(map(math.prod, shapes))
        if not fits(ops.shape(flat), (size,)):
            raise ShapeError(
                f"`unravel`: `flat` must have the shape {(size,)}; got {ops.shape(flat)}.", argument="flat"
            )
        parts = unraveled(flat, shapes)
        return _tree.unflatten(form, [_restored(x, kind) for x, kind in zip(parts, kinds)])

    return flat, unravel


def raveled(leaves: list):
    """The elements of tensors as one vector."""
    parts = [ops.reshape(x, (-1,)) for x in leaves]
    return parts[0] if len(parts) == 1 else ops.concatenate(parts)


def unraveled(flat, shapes: list) -> list:
    """The tensors of these shapes, from a vector of their elements."""
    if len(shapes) == 1:
        return [ops.reshape(flat, shapes[0])]
    ends = list(itertools.accumulate(map(math.prod, shapes), initial=0))
    return [ops.reshape(flat[i:j], shape) for i, j, shape in zip(ends, ends[1:], shapes)]


def _restored(x, dtype: str):
    """A tensor in its own dtype; a real one loses the imaginary part that the vector gave it."""
    if ops.dtype(x) == dtype:
        return x
    return ops.cast(ops.real(x) if "complex" in ops.dtype(x) and "complex" not in dtype else x, dtype)
