"""A backend of nothing but a namespace of the array API: its conversions, and the adaptors with the dtype rule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ArgumentTypeError, TypeOf
from . import array, register
from .array.base import NUMBERS, dtype_rule, holds, public, with_defaults
from .interface import Backend, divided_by_0
from .numpy import base as _numpy


def backend(name: str, xp: Any, kind: type, special: Any = None, **own: Any) -> Backend:
    """Make a library with the array API's namespace a backend, whose derivatives are the tape's.

    Args:
        name: what errors and :func:`gradops.config.set_backend` call it.
        xp: the namespace: the library's own, or its one in ``array_api_compat``. Its extensions for linear algebra and
            Fourier transforms are used where it has them.
        kind: the type of its arrays.
        special: a namespace of special functions by SciPy's names, of which the standard has none: ``erf``, ``erfc``,
            ``erfinv``, ``i0``, ``i1``, ``ndtr``, ``gammaln``, ``digamma``, ``polygamma``.
        **own: kernels by the names of their ops, and ``convert``, ``to_numpy`` and other members of
            ``gradops.backends.interface.Backend``: what the library does better than in the standard's words, or what
            the standard lacks. An op without a kernel is an error where it is used.

    Returns:
        The backend. One of the same name is replaced.

    Raises:
        ArgumentTypeError: ``name`` is not a text, ``kind`` is not a type, ``xp`` or ``special`` lacks its functions.
        BackendError: from ops without a kernel. Positions that are arrays are read by NumPy; where the library's own
            way is quicker, ``own`` has ``get_item``, ``add_at``, ``set_at``.

    Gradient:
        Of functions by :func:`gradops.grad`, and of variables, by gradops' rules, to any order. ``jit`` is an error.

    Examples:
        >>> import array_api_strict as xp
        >>> import gradops
        >>> from gradops import extend, ops
        >>> extend.backend("strict", xp, type(xp.asarray(0.0)))
        <gradops backend strict>
        >>> print(ops.convert_to_numpy(gradops.grad(lambda x: ops.sum(ops.square(x)))(xp.asarray([1.0, 2.0]))))
        [2. 4.]

    See Also:
        :func:`kernel`, for one op more.
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
    base = with_defaults(xp, adaptors(xp, kind))
    vars(base).update((member, value) for member, value in own.items() if hasattr(base, member))
    kernels = own if special is None else array.elementwise.special(xp, base, special) | own
    array.complete(kernels, xp, base)
    return register(name, SimpleNamespace(**kernels), kind.__module__, partial=True)


def adaptors(xp: Any, kind: type) -> SimpleNamespace:
    """The functions that the kernels of :mod:`.array` need of a library, in the standard's words."""
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
        """An array on the device of ``like``; NumPy's are copied, as their owner may write on them."""
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
        """A binary function in its operands' promoted dtype; two bools by way of whole numbers, not 0 being true."""

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
        """The same as ``arithmetic`` for functions that take no truth values: two bools are whole numbers."""
        return arithmetic(function, lambda function, x1, x2: function(cast(x1, "int64"), cast(x2, "int64")))

    def dividing(function, op: str):
        """The same as ``counting`` for a division.

        Raises:
            ArgumentError: a whole number by 0.
        """

        def divided(x1, x2):
            if not dtypes.is_floating(names[x2.dtype]) and not xp.all(x2 != 0):
                raise divided_by_0(op)
            return function(x1, x2)

        return counting(divided)

    def logical(function):
        """A function of truths, which numbers are cast to."""
        return lambda *xs: function(*(cast(x, "bool") for x in xs))

    def copy(x):
        return xp.asarray(x, copy=True)

    def sized(shape):
        return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)

    return SimpleNamespace(**public({name: f for name, f in locals().items() if callable(f) and name != "kind"}))
