"""A backend made of an array API namespace alone: its conversions, and its adaptors with gradops' dtype rule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ArgumentTypeError, TypeOf
from . import array, register
from .array.base import NUMBERS, add_defaults, dtype_rule, holds, public
from .interface import Backend, divided_by_0
from .numpy import base as _numpy


def backend(name: str, xp: Any, kind: type, special: Any = None, **own: Any) -> Backend:
    """Make a backend of a library that has the array API's namespace; gradops' tape differentiates it.

    Args:
        name: the name that errors and :func:`gradops.config.set_backend` use.
        xp: the namespace: the library's own, or the one in ``array_api_compat``. Its extensions for linear algebra and
            Fourier transforms are used if it has them.
        kind: the type of its arrays.
        special: a namespace of special functions under SciPy's names, which the standard lacks: ``erf``, ``erfc``,
            ``erfinv``, ``i0``, ``i1``, ``ndtr``, ``gammaln``, ``digamma``, ``polygamma``.
        **own: kernels under the names of their ops, and ``convert``, ``to_numpy`` and other members of
            ``gradops.backends.interface.Backend``: whatever the library does better than the standard's functions, or
            the standard lacks. An op without a kernel raises an error when it is used.

    Returns:
        The backend. It replaces an earlier one of the same name.

    Raises:
        ArgumentTypeError: ``name`` is not a string, ``kind`` not a type, or ``xp`` or ``special`` lacks functions.
        BackendError: raised by ops without a kernel. NumPy resolves positions given by arrays; if the library can do it
            faster, pass ``get_item``, ``add_at`` and ``set_at``.

    Gradient:
        Functions by :func:`gradops.grad`, and variables, by gradops' rules, to any order. ``jit`` raises an error.

    Examples:
        >>> import array_api_strict as xp
        >>> import gradops
        >>> from gradops import extend, ops
        >>> extend.backend("strict", xp, type(xp.asarray(0.0)))
        <gradops backend strict>
        >>> print(ops.convert_to_numpy(gradops.grad(lambda x: ops.sum(ops.square(x)))(xp.asarray([1.0, 2.0]))))
        [2. 4.]

    See Also:
        :func:`kernel`, to add a single op.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError("`name` must be a text; got {name}.", argument="name", name=TypeOf(name))
    if not isinstance(kind, type):
        raise ArgumentTypeError(
            "`kind` must be the type of the library's arrays; got {kind}.", argument="kind", kind=TypeOf(kind)
        )
    for argument, space, needed in (("xp", xp, ("asarray", "zeros", "isnan")), ("special", special, ("erf", "erfc"))):
        lacking = [function for function in needed if not hasattr(space, function)]
        if lacking and space is not None:
            raise ArgumentTypeError(
                f"`{argument}` must be a namespace with `{lacking[0]}`; got {{space}}.",
                argument=argument,
                space=TypeOf(space),
            )
    base = add_defaults(xp, adaptors(xp, kind))
    vars(base).update((member, value) for member, value in own.items() if hasattr(base, member))
    kernels = own if special is None else array.elementwise.special(xp, base, special) | own
    array.complete(kernels, xp, base)
    return register(name, SimpleNamespace(**kernels), kind.__module__, partial=True)


def adaptors(xp: Any, kind: type) -> SimpleNamespace:
    """The functions that the kernels of :mod:`.array` need from a library, written with the standard's functions."""
    kinds = {name: xp.zeros((), dtype=d).dtype for name in dtypes.ALL if (d := getattr(xp, name, None)) is not None}
    names = {dtype: name for name, dtype in kinds.items()}

    def is_tensor_type(other: type) -> bool:
        return issubclass(other, kind)

    def dtype_name(x) -> str:
        return names[x.dtype]

    def native_dtype(name):
        if (name := dtypes.canonical(name)) not in kinds:
            raise TypeError(f"{xp.__name__} has no {name}")
        return kinds[name]

    def asarray(value, dtype=None, like=None):
        device = getattr(like, "device", None)
        return xp.asarray(value, dtype=dtype, **({} if device is None else {"device": device}))

    def convert(value, dtype=None, like=None):
        """An array on the device of ``like``; NumPy arrays are copied, because their owner may write to them."""
        if isinstance(value, kind):
            return value if dtype is None else cast(value, dtype)
        if holds(value, kind):
            stacked = xp.stack([convert(v) for v in value])
            return stacked if dtype is None else cast(stacked, dtype)
        made = _numpy.convert(value, dtype)
        return asarray(made.copy(), native_dtype(made.dtype), like)

    def to_numpy(x) -> np.ndarray:
        return np.from_dlpack(x).copy() if hasattr(x, "__dlpack__") else np.asarray(x)

    def cast(x, dtype):
        target = native_dtype(dtype)
        if xp.isdtype(x.dtype, "complex floating") and not xp.isdtype(target, "complex floating"):
            x = xp.real(x) if not xp.isdtype(target, "bool") else x != 0
        return xp.astype(x, target, copy=False)

    promoted, together = dtype_rule(names.get, native_dtype, lambda x, dtype: xp.astype(x, dtype, copy=False), asarray)

    def arithmetic(function, of_bools=None):
        """A kernel of a binary function in the promoted dtype; two bools are computed as integers."""

        def kernel(x1, x2):
            if type(x1) in NUMBERS or type(x2) in NUMBERS or x1.dtype != x2.dtype:
                x1, x2 = promoted(x1, x2)
            if names[x1.dtype] != "bool":
                return function(x1, x2)
            return (of_bools or _of_bools)(function, x1, x2)

        return kernel

    def _of_bools(function, x1, x2):
        return cast(function(cast(x1, "int8"), cast(x2, "int8")), "bool")

    def counting(function):
        """``arithmetic`` for functions that are not defined for bools: two bools become integers."""
        return arithmetic(function, lambda function, x1, x2: function(cast(x1, "int64"), cast(x2, "int64")))

    def dividing(function, op: str):
        """``counting`` for a division.

        Raises:
            ArgumentError: an integer is divided by 0.
        """

        def divided(x1, x2):
            if not dtypes.is_floating(names[x2.dtype]) and not xp.all(x2 != 0):
                raise divided_by_0(op)
            return function(x1, x2)

        return counting(divided)

    def logical(function):
        """A function of bools; numbers are cast to bool."""
        return lambda *xs: function(*(cast(x, "bool") for x in xs))

    def copy(x):
        return xp.asarray(x, copy=True)

    def sized(shape):
        return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)

    return SimpleNamespace(**public({name: f for name, f in locals().items() if callable(f) and name != "kind"}))
