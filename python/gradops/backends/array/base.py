"""Helpers of the array API kernels, and ``base``, the namespace of what these kernels need from a library.

``base`` has the library's ``convert``, ``cast``, ``to_numpy``, ``native_dtype`` and ``dtype_name``; its dtype rule,
``promoted`` and ``together`` (:func:`dtype_rule`); and ``arithmetic`` and ``counting``, which turn a binary function
into a kernel. :func:`add_defaults` adds the remaining members.
"""

from __future__ import annotations

from functools import reduce
from types import SimpleNamespace

from ... import dtypes

NUMBERS = frozenset((bool, int, float, complex))


def public(names: dict) -> dict:
    """The kernels among a function's local names: all public names but its arguments."""
    return {name: value for name, value in names.items() if name not in ("xp", "base") and name[0] != "_"}


def find(xp, *names: str):
    """The first of several names that a namespace defines; None if it defines none of them."""
    return next((found for name in names if (found := getattr(xp, name, None)) is not None), None)


def holds(value, kinds) -> bool:
    """True if a list's first element, at any depth, is of one of the types ``kinds``."""
    if not isinstance(value, (list, tuple)):
        return False
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, kinds)


def axes_of(x, axis):
    """The axes to reduce; a 0-d tensor accepts axis 0 or -1 and has no axes.

    Raises:
        IndexError: the tensor does not have the axis.
    """
    if axis is None or x.ndim:
        return axis
    axes = axis if isinstance(axis, tuple) else (axis,)
    if len(axes) > 1 or axes and axes[0] not in (0, -1):
        raise IndexError(f"axis {axis} is out of range for 0 dimensions")
    return ()


def dtype_rule(name_of, native_dtype, cast, number) -> tuple:
    """A library's functions ``promoted`` and ``together``.

    Args:
        name_of: maps the library's dtypes to their names.
        cast: casts a tensor to one of the library's dtypes.
        number: converts a Python number to a tensor of a dtype, on the device of a third argument, a tensor.
    """

    def promoted(x1, x2):
        """Both operands as tensors in their promoted dtype."""
        if type(x1) in NUMBERS:
            dtype = native_dtype(dtypes.promote_number(name_of(x2.dtype), type(x1), dtypes.floatx()))
            return number(x1, dtype, x2), cast(x2, dtype)
        if type(x2) in NUMBERS:
            dtype = native_dtype(dtypes.promote_number(name_of(x1.dtype), type(x2), dtypes.floatx()))
            return cast(x1, dtype), number(x2, dtype, x1)
        if x1.dtype == x2.dtype:
            return x1, x2
        dtype = native_dtype(dtypes.promote(name_of(x1.dtype), name_of(x2.dtype)))
        return cast(x1, dtype), cast(x2, dtype)

    def together(xs):
        """Tensors in their promoted dtype."""
        if all(x.dtype == xs[0].dtype for x in xs):
            return xs if isinstance(xs, (list, tuple)) else list(xs)  # a tensor becomes the list of its rows
        dtype = native_dtype(reduce(dtypes.promote, [name_of(x.dtype) for x in xs]))
        return [x if x.dtype == dtype else cast(x, dtype) for x in xs]

    return promoted, together


def add_defaults(xp, base) -> SimpleNamespace:
    """A library's ``base``, completed with defaults for the members it does not define."""

    def is_bool(x) -> bool:
        return made.dtype_name(x) == "bool"

    def is_complex(x) -> bool:
        return made.dtype_name(x) in dtypes.COMPLEX

    def is_floating(x) -> bool:
        return dtypes.is_floating(made.dtype_name(x))

    def truths(x):
        return x if made.is_bool(x) else made.cast(x, "bool")

    def floats(x):
        """``x`` if floating or complex, else cast to ``floatx``."""
        return x if made.is_floating(x) else made.cast(x, dtypes.floatx())

    def floating(function):
        """A unary function whose result is floating: integers and bools count as ``floatx``."""
        return lambda x: function(made.floats(x))

    def floating_arithmetic(function):
        """``arithmetic`` on floats: two integers become ``floatx``."""

        def kernel(x1, x2):
            x1, x2 = made.promoted(x1, x2)
            return function(made.floats(x1), made.floats(x2))

        return kernel

    def keep_integers(function):
        """A unary function of floats that returns integers unchanged."""
        is_floating = made.is_floating
        return lambda x: function(x) if is_floating(x) else x

    def promote_bools(function):
        """A unary function that is not defined for bools, which become integers."""
        is_bool, cast = made.is_bool, made.cast
        return lambda x: function(cast(x, "int64") if is_bool(x) else x)

    def logical(function):
        """A function of bools; the library accepts numbers for them."""
        return function

    def dividing(function, op: str):
        """``counting`` for a division; the library raises its own errors."""
        return made.counting(function)

    def predicate(function):
        return made.arithmetic(function)

    def sized(shape):
        """A shape in the form that the library's functions take."""
        return shape

    own = {"axes_of": axes_of, "nonzero": getattr(xp, "nonzero", None), "chosen": getattr(xp, "where", None)}
    made = SimpleNamespace(**{**own, **public(locals()), **vars(base)})
    return made
