"""NumPy: conversion, dtype names, and the adaptors that make kernels of ufuncs by gradops' dtype rule."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ... import _scipy, dtypes
from ..array.base import axes_of as axes_of
from ..array.base import holds
from ..interface import divided_by_0

FLOATING = frozenset(np.dtype(d) for d in ("float16", "float32", "float64", "complex64", "complex128"))


NUMBERS = FLOATING | {np.dtype(c) for c in "?bBhHiIlLqQ"}
"""The dtypes of computations; NumPy also has extended precision, dates, strings and objects."""
_FLOAT64 = np.dtype("float64")

yields = True


def is_tensor_type(kind: type) -> bool:
    """True for arrays and scalars, not for containers of arrays with their own operators: see :func:`plain`."""
    return kind is np.ndarray or issubclass(kind, np.generic) and not issubclass(kind, (np.str_, np.bytes_))


def plain(value: np.ndarray) -> np.ndarray:
    """The base-class array of an instance of a subclass such as ``np.memmap``.

    Raises:
        TypeError: the class defines its own arithmetic, which the bare array would lose: masked arrays, the matrix
            product of ``np.matrix``, units.
    """
    if type(value) is not np.ndarray and _has_arithmetic(type(value)):
        raise TypeError(f"{type(value).__name__} has an arithmetic of its own")
    return np.asarray(value)


@cache
def _has_arithmetic(kind: type) -> bool:
    own = ("__mul__", "__array_ufunc__", "__array_function__")
    return any(getattr(kind, member) is not getattr(np.ndarray, member) for member in own)


def components(x):
    """A sparse matrix of SciPy is a constant, and has no tensor to change."""
    return ([], lambda _: x) if type(x).__module__.startswith("scipy.sparse") else None


def prepare(floatx: str) -> None:
    """Do nothing: NumPy needs no set-up, and has every dtype but bfloat16."""


def native_dtype(name: str) -> np.dtype:
    if name == "bfloat16":
        raise TypeError("NumPy has no bfloat16")
    return np.dtype(name)


def convert(value, dtype: str | None = None, like=None) -> np.ndarray:
    """An array of ``value``: Python floats become ``floatx``, integers int64; arrays keep their dtype."""
    if isinstance(value, np.ndarray):
        array = plain(value)
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        arrays = holds(value, (np.ndarray, np.generic))
        array = np.array(_plain_parts(value) if arrays else value)
        if dtype is None and array.dtype.kind in "fc" and not arrays:
            name = dtypes.floatx()
            dtype = dtypes.complex_of(name) if array.dtype.kind == "c" else name
    if array.dtype.kind not in "biufc":
        raise TypeError(f"an array of dtype {array.dtype} is not numeric")
    if dtype is not None:
        array = array.astype(native_dtype(dtypes.canonical(dtype)), copy=False)
    elif array.dtype.name in dtypes.EXTENDED:
        array = array.astype(dtypes.EXTENDED[array.dtype.name])
    return array


def aligned(array: np.ndarray) -> np.ndarray:
    """The array, or a copy if its address is not a multiple of its item size.

    R aligns its 16-byte complex numbers to 8 bytes; PyTorch's and TensorFlow's loops crash on such addresses.
    """
    if array.dtype.kind == "c" and array.__array_interface__["data"][0] % array.itemsize:
        return array.copy()
    return array


def _plain_parts(value):
    if isinstance(value, (list, tuple)):
        return [_plain_parts(part) for part in value]
    return plain(value) if isinstance(value, np.ndarray) else value


class _Names(dict):
    """A cache of dtype names; NumPy takes 2 us to make one."""

    def __missing__(self, dtype):
        self[dtype] = dtypes.EXTENDED.get(dtype.name, dtype.name)
        return self[dtype]


_names = _Names()


def dtype_name(x) -> str:
    return _names[x.dtype]


def handed_over(x: np.ndarray) -> np.ndarray:
    """A copy of an array with negative strides: DLPack can describe them, but PyTorch aborts on them."""
    return x.copy() if min(x.strides, default=0) < 0 else aligned(x)


def from_dlpack(x) -> np.ndarray:
    return np.from_dlpack(x)


def to_numpy(x) -> np.ndarray:
    return np.asarray(x)


def cast(x, dtype) -> np.ndarray:
    target = native_dtype(dtypes.canonical(dtype))
    if x.dtype.kind not in "biufc":
        raise TypeError(f"an array of dtype {x.dtype} is not numeric")
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real if target.kind != "b" else x != 0
    return np.asarray(x).astype(target, copy=False)


def owned(arrays: list, taken: set[int]) -> list:
    """The list with each array replaced by one that the caller may write to.

    Arrays whose ``id`` is in ``taken``, that occur twice or that share another array's memory are copied in place.
    """
    for i, x in enumerate(arrays):
        if isinstance(x, np.ndarray):
            if id(x) in taken or x.base is not None or not x.flags.owndata:
                x = arrays[i] = x.copy("K")
            taken.add(id(x))
    return arrays


@cache
def _promoted(first: np.dtype, second: np.dtype) -> np.dtype:
    for dtype in (first, second):
        if dtype.kind not in "biufc":
            raise TypeError(f"an array of dtype {dtype} is not numeric")
    return np.dtype(dtypes.promote(first.name, second.name))


@cache
def _promoted_number(beside: np.dtype, kind: type, floatx: str) -> np.dtype:
    return np.dtype(dtypes.promote_number(beside.name, kind, floatx))


def check_held(number, dtype: np.dtype) -> None:
    """Raise OverflowError for an integer that an integer dtype cannot hold, as NumPy does since version 2.0."""
    if not WEAK_NUMBERS and type(number) is int and dtype.kind in "iu":
        if not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise OverflowError(f"{dtype} does not hold {number}")


def promoted(x1, x2):
    """Both operands in their promoted dtype; Python numbers become 0-d arrays."""
    d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
    if d1 is None:
        d1 = _promoted_number(d2, type(x1), dtypes.floatx())
        check_held(x1, d1)
    elif d2 is None:
        d2 = _promoted_number(d1, type(x2), dtypes.floatx())
        check_held(x2, d2)
    elif d1 is d2 and x1.__class__ is x2.__class__ is np.ndarray and d1 in NUMBERS:
        return x1, x2
    promoted = _promoted(d1, d2)
    return np.asarray(x1, promoted), np.asarray(x2, promoted)


def together(xs):
    """Arrays in their promoted dtype."""
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = _promoted(dtype, x.dtype)
    return [np.asarray(x, dtype) for x in xs]


def floats(x):
    """``x`` if floating or complex, otherwise ``x`` cast to ``floatx``.

    Raises:
        TypeError: a dtype that is not numeric: dates, objects, strings.
    """
    if x.dtype in FLOATING:
        return x
    if x.dtype.kind not in "biufc":
        raise TypeError(f"an array of dtype {x.dtype} is not numeric")
    return x.astype(dtype_name(x) if x.dtype.kind in "fc" else dtypes.floatx())


WEAK_NUMBERS = np.result_type(np.float32(1), 1.0) == np.float32
"""True if a Python number takes the dtype of a 0-d single-precision tensor; NumPy 1 promotes both to float64."""


def floating(ufunc):
    """A kernel of a unary ufunc with a floating result: integers and bools become ``floatx``."""

    def kernel(x):
        return ufunc(x if x.dtype in FLOATING else floats(x))

    kernel.direct = kernel.function = ufunc
    return kernel


def least(x) -> float:
    """The smallest element, NaN if any is NaN or ``x`` is empty; ``argmin`` is NumPy's fastest reduction for it."""
    x = np.asarray(x)  # or a number
    return x.item(x.argmin()) if x.size else math.nan


def greatest(x) -> float:
    """The largest element, with the same treatment of NaN."""
    x = np.asarray(x)
    return x.item(x.argmax()) if x.size else math.nan


def scipy_special(name: str):
    """``floating`` for a function of ``scipy.special``; some of them return half precision as another dtype."""

    function = None

    def kernel(x):
        nonlocal function
        if function is None:
            function = getattr(_scipy.special, name)
        if x.dtype is _FLOAT64:  # the common case, tested cheaply
            return function(x)
        x = floats(x)
        y = function(x)
        return y if y.dtype is x.dtype else y.astype(x.dtype)

    kernel.function = name
    return kernel


_WITH_NUMBER = {np.ndarray, np.float64}


def _are_arrays(x1, x2) -> bool:
    """True for an array and a NumPy scalar, which the ufuncs treat as an array."""
    return {x1.__class__, x2.__class__} == _WITH_NUMBER


def arithmetic(ufunc, of_any=None):
    """A kernel of a binary ufunc in the operands' promoted dtype; ``of_any`` replaces it unless both are float64."""
    of_any = of_any or ufunc

    def kernel(x1, x2):
        if (x1.__class__ is x2.__class__ or _are_arrays(x1, x2)) and (dtype := x1.dtype) is x2.dtype:
            if dtype is _FLOAT64:
                return ufunc(x1, x2)
            if dtype in NUMBERS:
                return of_any(x1, x2)
        return of_any(*promoted(x1, x2))

    def with_number_second(x1, x2):
        return ufunc(x1, x2) if x1.dtype in FLOATING else of_any(*promoted(x1, x2))

    def with_number_first(x1, x2):
        return ufunc(x1, x2) if x2.dtype in FLOATING else of_any(*promoted(x1, x2))

    if WEAK_NUMBERS:
        kernel.for_numbers = (with_number_first, with_number_second)
    kernel.direct = kernel.function = ufunc
    return kernel


def counting(ufunc):
    """``arithmetic`` for functions that are not defined for bools: two bools become integers."""
    return arithmetic(ufunc, lambda x1, x2: ufunc(*_counted(x1, x2)))


def dividing(ufunc, op: str):
    """``counting`` for a division.

    Raises:
        ArgumentError: an integer is divided by 0.
    """

    def of_any(x1, x2):
        x1, x2 = _counted(x1, x2)
        if x2.dtype.kind in "iu" and not x2.all():
            raise divided_by_0(op)
        return ufunc(x1, x2)

    return arithmetic(ufunc, of_any)


def _counted(x1, x2):
    return (x1, x2) if x1.dtype.kind != "b" else (x1.astype("int64"), x2.astype("int64"))


def floating_arithmetic(ufunc):
    """``arithmetic`` on floats: two integers become ``floatx``."""

    def kernel(x1, x2):
        if (x1.__class__ is x2.__class__ or _are_arrays(x1, x2)) and x1.dtype is x2.dtype and x1.dtype in FLOATING:
            return ufunc(x1, x2)
        x1, x2 = promoted(x1, x2)
        return ufunc(floats(x1), floats(x2))

    def with_number_second(x1, x2):
        return ufunc(x1, x2) if x1.dtype in FLOATING else kernel(*promoted(x1, x2))

    def with_number_first(x1, x2):
        return ufunc(x1, x2) if x2.dtype in FLOATING else kernel(*promoted(x1, x2))

    if WEAK_NUMBERS:
        kernel.for_numbers = (with_number_first, with_number_second)
    kernel.direct = kernel.function = ufunc
    return kernel


def number(y):
    """A 0-d array as a scalar, which NumPy's ufuncs return but its other functions do not; other values unchanged."""
    return y[()] if y.__class__ is np.ndarray and not y.ndim else y


def chosen(test, x1, x2):
    return number(np.where(test, x1, x2))


def function_of(kernel):
    """The NumPy function, or the SciPy function's name, behind a float64 kernel; otherwise the kernel."""
    return getattr(kernel, "function", kernel)


def keep_integers(ufunc):
    """A kernel of a unary ufunc of floats that returns integers unchanged."""

    def kernel(x):
        return ufunc(floats(x)) if x.dtype.kind in "fc" else x

    kernel.function = ufunc
    return kernel


def promote_bools(ufunc):
    """A kernel of a unary ufunc that is not defined for bools, which become integers."""

    def kernel(x):
        return ufunc(x if x.dtype.kind != "b" else x.astype("int64"))

    kernel.function = ufunc
    return kernel


def truths(x) -> np.ndarray:
    return np.asarray(x, bool)


def is_bool(x) -> bool:
    return x.dtype.kind == "b"


def is_floating(x) -> bool:
    return x.dtype.kind in "fc"


def copy(x) -> np.ndarray:
    return np.array(x)
