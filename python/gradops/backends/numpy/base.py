"""NumPy: conversion, dtype names, and the adaptors that give ufuncs the dtype rule."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ... import _scipy, dtypes
from ..array.base import axes_of as axes_of
from ..array.base import holds
from ..interface import divided_by_0

FLOATING = frozenset(np.dtype(d) for d in ("float16", "float32", "float64", "complex64", "complex128"))


NUMBERS = FLOATING | {np.dtype(c) for c in "?bBhHiIlLqQgG"}
"""The dtypes of numbers: not of dates, texts and objects, with which NumPy computes too."""
_FLOAT64 = np.dtype("float64")

yields = True


def is_tensor_type(kind: type) -> bool:
    """Arrays and scalars; not objects made of arrays, whose operators rules would meet: see :func:`plain`."""
    return kind is np.ndarray or issubclass(kind, np.generic) and not issubclass(kind, (np.str_, np.bytes_))


def plain(value: np.ndarray) -> np.ndarray:
    """The array that an object of a subclass is (a ``np.memmap``).

    Raises:
        TypeError: a class with arithmetic of its own, which its numbers alone would lose: masked elements, the
            products of ``np.matrix``, units.
    """
    if type(value) is not np.ndarray and _has_arithmetic(type(value)):
        raise TypeError(f"{type(value).__name__} has an arithmetic of its own")
    return np.asarray(value)


@cache
def _has_arithmetic(kind: type) -> bool:
    own = ("__mul__", "__array_ufunc__", "__array_function__")
    return any(getattr(kind, member) is not getattr(np.ndarray, member) for member in own)


def prepare(floatx: str) -> None:
    """NumPy needs no set-up, and has every dtype but bfloat16."""


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
    elif array.dtype == np.longdouble and array.dtype != np.float64:
        array = array.astype(np.float64)
    return array


def at_whole_address(array: np.ndarray) -> np.ndarray:
    """An array where its numbers stand at multiples of their size in memory; a copy where they do not.

    R's complex numbers, of 16 bytes, stand at multiples of 8, where PyTorch's and TensorFlow's loops crash.
    """
    if array.dtype.kind == "c" and array.__array_interface__["data"][0] % array.itemsize:
        return array.copy()
    return array


def _plain_parts(value):
    if isinstance(value, (list, tuple)):
        return [_plain_parts(part) for part in value]
    return plain(value) if isinstance(value, np.ndarray) else value


class _Names(dict):
    """NumPy's dtypes to their names, each of which takes NumPy 2 us to make."""

    def __missing__(self, dtype):
        self[dtype] = dtype.name
        return self[dtype]


_names = _Names()


def dtype_name(x) -> str:
    return _names[x.dtype]


def handed_over(x: np.ndarray) -> np.ndarray:
    """A copy of an array that runs backwards, which DLPack has, and PyTorch breaks off at."""
    return x.copy() if min(x.strides, default=0) < 0 else at_whole_address(x)


def from_dlpack(x) -> np.ndarray:
    return np.from_dlpack(x)


def to_numpy(x) -> np.ndarray:
    return np.asarray(x)


def cast(x, dtype) -> np.ndarray:
    target = native_dtype(dtypes.canonical(dtype))
    if x.dtype not in NUMBERS:
        raise TypeError(f"an array of dtype {x.dtype} is not numeric")
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real if target.kind != "b" else x != 0
    return np.asarray(x).astype(target, copy=False)


def owned(arrays: list, taken: set[int]) -> list:
    """The list with arrays that are the caller's to write on.

    Those whose ``id`` is ``taken``, that come twice or whose memory is another array's are copied, in the list itself.
    """
    for i, x in enumerate(arrays):
        if isinstance(x, np.ndarray):
            if id(x) in taken or x.base is not None or not x.flags.owndata:
                x = arrays[i] = x.copy("K")
            taken.add(id(x))
    return arrays


@cache
def _promoted(first: np.dtype, second: np.dtype) -> np.dtype:
    if not {first, second} <= NUMBERS:
        raise TypeError(f"an array of dtype {first if first not in NUMBERS else second} is not numeric")
    return np.dtype(dtypes.promote(first.name, second.name))


@cache
def _of_number(beside: np.dtype, kind: type, floatx: str) -> np.dtype:
    return np.dtype(dtypes.promote_number(beside.name, kind, floatx))


def check_held(number, dtype: np.dtype) -> None:
    """Raise OverflowError for a whole number beyond an integer dtype, as NumPy does from 2.0 on."""
    if not WEAK_NUMBERS and type(number) is int and dtype.kind in "iu":
        if not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise OverflowError(f"{dtype} does not hold {number}")


def promoted(x1, x2):
    """Both operands in their promoted dtype; numbers become 0-d arrays of it."""
    d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
    if d1 is None:
        d1 = _of_number(d2, type(x1), dtypes.floatx())
        check_held(x1, d1)
    elif d2 is None:
        d2 = _of_number(d1, type(x2), dtypes.floatx())
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
    """``x`` if floating or complex, else cast to ``floatx``.

    Raises:
        TypeError: a value that is not a number: dates, objects, text.
    """
    if x.dtype in FLOATING:
        return x
    if x.dtype.kind not in "biuf":
        raise TypeError(f"an array of dtype {x.dtype} is not numeric")
    return x.astype(dtypes.floatx())


WEAK_NUMBERS = np.result_type(np.float32(1), 1.0) == np.float32
"""True if a Python number beside a 0-d tensor of single precision takes its dtype; NumPy 1 makes both float64."""


def floating(ufunc):
    """A unary ufunc whose result is floating: integers and bools count as ``floatx``."""

    def kernel(x):
        return ufunc(x if x.dtype in FLOATING else floats(x))

    kernel.direct = kernel.function = ufunc
    return kernel


def least(x) -> float:
    """The smallest of an array's numbers, NaN where there is one or none: the quickest of NumPy's questions."""
    x = np.asarray(x)  # or a number
    return x.item(x.argmin()) if x.size else math.nan


def greatest(x) -> float:
    """The greatest, in the same way."""
    x = np.asarray(x)
    return x.item(x.argmax()) if x.size else math.nan


def scipy_special(name: str):
    """The same as ``floating`` for functions of ``scipy.special``, which give half precision back as another."""

    function = None

    def kernel(x):
        nonlocal function
        if function is None:
            function = getattr(_scipy.special, name)
        if x.dtype is _FLOAT64:  # as most are, known at a glance
            return function(x)
        x = floats(x)
        y = function(x)
        return y if y.dtype is x.dtype else y.astype(x.dtype)

    kernel.function = name
    return kernel


_WITH_NUMBER = {np.ndarray, np.float64}


def _are_arrays(x1, x2) -> bool:
    """True for an array and one of NumPy's own numbers, which are arrays in all that follows."""
    return {x1.__class__, x2.__class__} == _WITH_NUMBER


def arithmetic(ufunc, of_any=None):
    """A binary ufunc in its operands' promoted dtype; ``of_any`` stands for it unless both are float64."""
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
    """The same as ``arithmetic`` for functions that take no truth values: two bools are whole numbers."""
    return arithmetic(ufunc, lambda x1, x2: ufunc(*_counted(x1, x2)))


def dividing(ufunc, op: str):
    """The same as ``counting`` for a division.

    Raises:
        ArgumentError: a whole number by 0.
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
    """The same as ``arithmetic`` on floats: two integers become ``floatx``."""

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
    """``y``; an array without dimensions as a number, as NumPy's ufuncs give it and its other functions do not."""
    return y[()] if y.__class__ is np.ndarray and not y.ndim else y


def chosen(test, x1, x2):
    return number(np.where(test, x1, x2))


def function_of(kernel):
    """NumPy's function, or the name of SciPy's, that a kernel is of doubles; the kernel itself where it is neither."""
    return getattr(kernel, "function", kernel)


def of_floats(ufunc):
    """A unary ufunc of floats that leaves whole numbers as they are."""

    def kernel(x):
        return ufunc(x) if x.dtype in FLOATING else x

    kernel.function = ufunc
    return kernel


def of_numbers(ufunc):
    """A unary ufunc that is not an operation on truth values: bools are whole numbers."""

    def kernel(x):
        return ufunc(x if x.dtype.kind != "b" else x.astype("int64"))

    kernel.function = ufunc
    return kernel


def truths(x) -> np.ndarray:
    return np.asarray(x, bool)


def is_bool(x) -> bool:
    return x.dtype.kind == "b"


def is_floating(x) -> bool:
    return x.dtype in FLOATING


def copy(x) -> np.ndarray:
    return np.array(x)
