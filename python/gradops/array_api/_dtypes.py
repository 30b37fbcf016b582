"""Dtypes of the standard, based on ``gradops.dtypes``: names, kinds, promotion, limits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import config, dtypes, ops
from ..errors import ArgumentError, ArgumentTypeError

NAMES = [name for name in dtypes.ALL if name not in ("float16", "bfloat16")]
_SIGNED, _UNSIGNED = ([name for name in dtypes.INTEGERS if name.startswith(start)] for start in ("int", "uint"))
_REAL, _COMPLEX = [name for name in dtypes.FLOATS if name in NAMES], list(dtypes.COMPLEX)
KINDS = {
    "bool": list(dtypes.BOOL),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}
"""The dtypes of each kind."""


class DType:
    """A dtype by name, equal to every library's dtype of that name; NumPy, TensorFlow and JAX accept it as theirs.

    Attributes:
        name: the name.
        dtype: NumPy's dtype.
    """

    __slots__ = ("dtype", "name")

    def __init__(self, name: str):
        self.name = name
        self.dtype = np.dtype(name)

    def __eq__(self, other) -> bool:
        try:
            return self.name == dtypes.canonical(other)
        except ArgumentError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"gradops.array_api.{self.name}"

    def __reduce__(self):
        return DType, (self.name,)


class finfo_object(NamedTuple):
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def name_of(dtype) -> str:
    """The name of any library's dtype."""
    return dtypes.canonical(dtype)


def _dtype_of(value) -> str:
    """The name of an array's dtype, or of a dtype."""
    return name_of(ops.dtype(value) if ops.is_tensor(value) else value)


def isdtype(dtype, kind) -> bool:
    """True if a dtype is of a kind.

    Args:
        dtype: a dtype of this module or of a library.
        kind: another dtype, one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
            ``"real floating"``, ``"complex floating"``, ``"numeric"``, or a tuple of these.

    Returns:
        A bool.

    Raises:
        ArgumentError: an unknown kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    known = KINDS[kind] if isinstance(kind, str) and kind in KINDS else [dtypes.canonical(kind, "kind")]
    return name_of(dtype) in known


def result_type(*arrays_and_dtypes) -> DType:
    """The dtype of a result of arrays, dtypes and Python numbers; the numbers take the arrays' dtype.

    Returns:
        A dtype, by the rules of :mod:`gradops.dtypes`.

    Raises:
        ArgumentTypeError: only numbers, or no arguments.
    """
    numbers = [type(x) for x in arrays_and_dtypes if type(x) in (bool, int, float, complex)]
    names = [_dtype_of(x) for x in arrays_and_dtypes if type(x) not in (bool, int, float, complex)]
    if not names:
        raise ArgumentTypeError("`result_type` needs an array or a dtype in addition to Python numbers.")
    found = names[0]
    for name in names[1:]:
        found = dtypes.promote(found, name)
    for number in numbers:
        found = dtypes.promote_number(found, number, config.floatx())
    return DType(found)


def can_cast(from_, to, /) -> bool:
    """True if a dtype, or an array's, promotes to ``to``: at most the last digits of a value are lost.

    Returns:
        A bool.
    """
    return dtypes.promote(_dtype_of(from_), name_of(to)) == name_of(to)


def _limits(type, kinds: tuple[str, ...], argument: str) -> str:
    name = _dtype_of(type)
    if not any(name in KINDS[kind] for kind in kinds):
        raise ArgumentTypeError(
            f"`{argument}`: `type` must be of kind {' or '.join(kinds)}; got {name}.", argument="type"
        )
    return dtypes.real_of(name)


def finfo(type, /) -> finfo_object:
    """The limits of a floating dtype, or of an array's; for a complex dtype the limits of its parts.

    Returns:
        A named tuple: ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal``, ``dtype``.

    Raises:
        ArgumentTypeError: a dtype that is not floating.
    """
    name = _limits(type, ("real floating", "complex floating"), "finfo")
    info = np.finfo(name)
    eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return finfo_object(info.bits, eps, most, least, normal, DType(name))


def iinfo(type, /) -> iinfo_object:
    """The limits of an integer dtype, or of an array's.

    Returns:
        A named tuple: ``bits``, ``max``, ``min``, ``dtype``.

    Raises:
        ArgumentTypeError: a dtype that is not an integer dtype.
    """
    name = _limits(type, ("integral",), "iinfo")
    info = np.iinfo(name)
    return iinfo_object(info.bits, int(info.max), int(info.min), DType(name))


class Info:
    """The capabilities of the namespace: the result of ``__array_namespace_info__()``."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and functions with data-dependent shapes work; the number of dimensions is not limited."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self):
        """The device of arrays that are created without one."""
        return getattr(ops.zeros(()), "device", "cpu")

    def devices(self) -> list:
        """The default device; other devices have their library's names."""
        return [self.default_device()]

    def default_dtypes(self, *, device=None) -> dict[str, DType]:
        """The dtypes of arrays that are created without one."""
        real = config.floatx()
        found = {"real floating": real, "complex floating": dtypes.complex_of(real)}
        return {kind: DType(name) for kind, name in {**found, "integral": "int64", "indexing": "int64"}.items()}

    def dtypes(self, *, device=None, kind=None) -> dict[str, DType]:
        """The dtypes of one kind, of several kinds, or all."""
        return {name: DType(name) for name in NAMES if kind is None or isdtype(name, kind)}


__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]
