"""Shape inference: the shapes and dtypes of a function's results, computed without values where possible."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tree, backends, dtypes, ops
from ..autodiff.modes import no_grad
from ..autodiff.variable import Variable, data_of
from ..errors import ArgumentTypeError, TypeOf
from ..ops import _checks
from ..ops._structures import check_functions, owner_of


class ShapeDtypeStruct:
    """A tensor's shape and dtype, without values; after ``jax.ShapeDtypeStruct``.

    Args:
        shape: a tuple of integers.
        dtype: the name of a dtype.

    Raises:
        ArgumentTypeError: ``shape`` is not a tuple or list of integers.

    Examples:
        >>> from gradops.functional import ShapeDtypeStruct
        >>> ShapeDtypeStruct((2, 3), "float32")
        ShapeDtypeStruct(shape=(2, 3), dtype='float32')

        The shape of a gradient; no values are computed if the library has tensors without values:

        >>> import gradops
        >>> from gradops import ops
        >>> gradops.functional.eval_shape(gradops.grad(lambda w: ops.sum(w * w)), ShapeDtypeStruct((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype='float64')

    See Also:
        :func:`eval_shape`.
    """

    __slots__ = ("shape", "dtype")

    def __init__(self, shape, dtype: str = "float64"):
        if not isinstance(shape, (list, tuple)):
            raise ArgumentTypeError(
                "`ShapeDtypeStruct`: `shape` must be a tuple of integers; got {shape}.",
                argument="shape",
                shape=TypeOf(shape),
            )
        self.shape = tuple([_checks.integer("ShapeDtypeStruct", n, "shape", 0) for n in shape])
        self.dtype = dtypes.canonical(dtype)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype!r})"

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


def filled_with_zeros(name: str, arguments):
    """Replace each :class:`ShapeDtypeStruct` in the arguments of the function ``name`` by zeros."""
    leaves, form = _tree.flatten(arguments)
    if not any(isinstance(x, ShapeDtypeStruct) for x in leaves):
        return arguments
    owner = owner_of(name, *[x for x in leaves if not isinstance(x, ShapeDtypeStruct)])
    return _tree.unflatten(
        form, [_zeros(owner, x.shape, x.dtype) if isinstance(x, ShapeDtypeStruct) else x for x in leaves]
    )


def _zeros(owner, shape, dtype):
    return owner.convert(np.broadcast_to(0.0, shape), dtype)


def eval_shape(f: Callable, *args, **kwargs):
    """The shapes and dtypes of ``f(*args, **kwargs)``, without computing values if the library supports it.

    Args:
        f: a function of tensors, structures of tensors, and anything else. On PyTorch, TensorFlow and JAX it must not
            read values.
        args, kwargs: its arguments. A :class:`ShapeDtypeStruct` may stand for any tensor; it belongs to the library of
            the other tensors, or to the default backend.

    Returns:
        The structure of the value, with a :class:`ShapeDtypeStruct` for each tensor; other leaves are unchanged.

    Raises:
        ArgumentTypeError: ``f`` does not take the arguments.
        The errors of ``f`` for arguments of these shapes.

    Gradient:
        None. Uses ``jax.eval_shape``, PyTorch's fake tensors, or a TensorFlow graph; on NumPy and libraries with the
        tape, which have no tensors without values, ``f`` runs on zeros. After ``jax.eval_shape``.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import ShapeDtypeStruct, eval_shape
        >>> x = ShapeDtypeStruct((5, 3), "float32")
        >>> eval_shape(lambda x: [ops.norm(x, axis=1), gradops.grad(ops.sum)(x)], x)
        [ShapeDtypeStruct(shape=(5,), dtype='float32'), ShapeDtypeStruct(shape=(5, 3), dtype='float32')]

    See Also:
        :func:`gradops.jit`.
    """
    check_functions("eval_shape", f=f)
    try:
        inspect.signature(f).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentTypeError(
            f"`eval_shape`: `f` cannot be called with its arguments: {error}.", argument="f"
        ) from None
    except ValueError:  # a C function without a signature
        pass
    leaves, form = _tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, (ShapeDtypeStruct, Variable)) or backends.backend_of(x)]
    given = [leaves[i] for i in places]
    owner = owner_of("eval_shape", *[x for x in given if not isinstance(x, ShapeDtypeStruct)])
    looks = [(x.shape, x.dtype) if isinstance(x, ShapeDtypeStruct) else (ops.shape(x), ops.dtype(x)) for x in given]
    box: dict[str, Any] = {}

    def run(*xs):
        args, kwargs = _tree.unflatten(form, _tree.filled(leaves, places, xs))
        found, box["form"] = _tree.flatten(f(*args, **kwargs))
        tensor = [isinstance(y, Variable) or backends.backend_of(y) is not None for y in found]
        box["others"] = [None if t else (y,) for y, t in zip(found, tensor)]
        return [data_of(y) for y, t in zip(found, tensor) if t]

    found = owner.eval_shape(run, looks)
    if found is NotImplemented:
        with no_grad():
            found = run(*[_zeros(owner, *look) for look in looks])
    tensors = iter([ShapeDtypeStruct(tuple(y.shape), owner.dtype_name(y)) for y in found])
    return _tree.unflatten(box["form"], [next(tensors) if y is None else y[0] for y in box["others"]])
