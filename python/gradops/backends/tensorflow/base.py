"""TensorFlow: conversion, dtype names, and the adaptors that give tf functions the dtype rule."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ... import dtypes
from ...errors import BackendError
from ..array.base import dtype_rule, holds
from ..interface import looked, looked_at_a_value
from ..numpy import base as _numpy
from . import _private

calls_from_threads = True


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, tf.Tensor)


def owns(kind: type) -> bool:
    """Tensors, and the variables of TensorFlow and Keras, which :func:`convert` reads for the kernels."""
    return issubclass(kind, _OWN)


_OWN = (tf.Tensor, tf.Variable, _private.Tensor)


def prepare(floatx: str) -> None:
    """Nothing to set up."""


def native_dtype(dtype) -> tf.DType:
    return dtype if isinstance(dtype, tf.DType) else tf.as_dtype(dtypes.canonical(dtype))


def convert(value, dtype=None, like=None) -> tf.Tensor:
    """A tensor of ``value``; a ``tf.Variable`` is read, and recorded by active tapes."""
    if isinstance(value, _OWN):
        value = tf.convert_to_tensor(value)
        return value if dtype is None else tf.cast(value, native_dtype(dtype))
    if holds(value, _OWN):
        stacked = tf.stack([convert(v) for v in value])
        return stacked if dtype is None else tf.cast(stacked, native_dtype(dtype))
    if dtype is not None and dtypes.canonical(dtype) == "bfloat16":
        return tf.cast(_numpy.convert(value), tf.bfloat16)
    return tf.convert_to_tensor(_numpy.convert(value, dtype))


def dtype_name(x) -> str:
    return getattr(x.dtype, "name", x.dtype)  # of a Keras variable the name itself


def handed_over(x):
    """``x``; an error if it is not numeric, as TensorFlow ends the process where it hands such a tensor over."""
    if not x.dtype.size:
        raise TypeError(f"a tensor of dtype {x.dtype.name} is not numeric")
    return x


def from_dlpack(x):
    """The tensor on the same memory; None where TensorFlow's kernels would need it aligned to 64 bytes."""
    if x.__dlpack_device__()[0] == _CPU and np.from_dlpack(x).ctypes.data % 64:
        return None
    return tf.experimental.dlpack.from_dlpack(x.__dlpack__())


_CPU = 1  # DLPack's number of it


def eval_shape(run, looks: list) -> list:
    specs = [tf.TensorSpec(shape, native_dtype(dtype)) for shape, dtype in looks]
    return tf.function(run, autograph=False).get_concrete_function(*specs).structured_outputs


def place(x, device):
    if isinstance(device, str):
        kind, _, number = device.rpartition("device:")[2].partition(":")
        kind = "GPU" if kind in ("cuda", "gpu") else kind.upper()
        known = tf.config.list_logical_devices(kind)
        if number and not number.isdecimal() or int(number or 0) >= len(known):  # TensorFlow would take another
            raise BackendError(f"`to_backend`: TensorFlow has no device {device!r}.", argument="device")
        device = f"/{kind}:{number or 0}"
    with tf.device(device):
        return tf.identity(x)


def to_numpy(x) -> np.ndarray:
    if tf.is_symbolic_tensor(x):
        raise looked_at_a_value()
    return (tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x).numpy()


def cast(x, dtype):
    target = native_dtype(dtype)
    if x.dtype.is_complex and not target.is_complex:
        x = tf.math.real(x) if target != tf.bool else tf.not_equal(x, 0)
    return tf.cast(x, target)


def sizes(x) -> tuple:
    at_run_time = tf.shape(x, tf.int64)
    return tuple(at_run_time[i] if n is None else n for i, n in enumerate(x.shape))


def copy(x):
    return tf.identity(x)


def constant(number, dtype):
    if dtype.is_integer and not dtype.min <= number <= dtype.max:
        raise OverflowError(f"{dtype.name} does not hold {number}")
    return tf.constant(int(number) if number.__class__ is bool and dtype is not tf.bool else number, dtype)


promoted, together = dtype_rule(
    lambda dtype: dtype.name, native_dtype, tf.cast, lambda number, dtype, _: constant(number, dtype)
)


def is_floating(x) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def floats(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if is_floating(x) else tf.cast(x, dtypes.floatx())


def floating(function):
    """A unary function whose result is floating: integers and bools count as ``floatx``."""

    def kernel(x):
        return function(floats(x))

    return kernel


def in_single(function):
    """A function of floats, where those of two bytes are computed in float32: for them the library lacks a kernel."""

    def kernel(*xs):
        dtype = xs[0].dtype
        if not dtype.is_floating or dtype.size > 2:
            return function(*xs)
        return tf.cast(function(*[tf.cast(x, tf.float32) for x in xs]), dtype)

    return kernel


def arithmetic(function, of_bools=None):
    """A binary function in its operands' promoted dtype; ``of_bools`` stands for it of two bools."""
    of_bools = of_bools or (lambda x1, x2: _of_bools(function, x1, x2))

    def kernel(x1, x2):
        d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
        if d1 is not d2:
            x1, x2 = promoted(x1, x2)
            d1 = x1.dtype
        return function(x1, x2) if d1 is not tf.bool else of_bools(x1, x2)

    return kernel


def counting(function):
    """The same as ``arithmetic`` for functions that take no truth values: two bools are whole numbers."""
    return arithmetic(function, lambda x1, x2: function(tf.cast(x1, tf.int64), tf.cast(x2, tf.int64)))


def of_order(function):
    """A function that gives one of its arguments' elements, also of bools, of which the greater is true."""

    def kernel(x, *others):
        if x.dtype != tf.bool:
            return function(x, *others)
        others = [tf.cast(o, tf.int8) if getattr(o, "dtype", None) == tf.bool else o for o in others]
        return function(tf.cast(x, tf.int8), *others) > 0  # of none: the ends of int8

    return kernel


def in_int64(function, *dtypes):
    """A function that TensorFlow lacks for some small whole numbers, by way of ``int64``."""

    def kernel(x, *others):
        if x.dtype not in dtypes:
            return function(x, *others)
        return tf.cast(function(tf.cast(x, tf.int64), *(tf.cast(o, tf.int64) for o in others)), x.dtype)

    return kernel


def _of_bools(function, x1, x2):
    """TensorFlow has no arithmetic of bools: a result that is not 0 is true."""
    return tf.cast(function(tf.cast(x1, tf.int8), tf.cast(x2, tf.int8)), tf.bool)


def floating_arithmetic(function):
    """The same as ``arithmetic`` on floats: two integers become ``floatx``."""

    def kernel(x1, x2):
        x1, x2 = promoted(x1, x2)
        return function(floats(x1), floats(x2))

    return kernel


def of_floats(function):
    """A unary function of floats that leaves whole numbers as they are, with a gradient of 0."""
    return lambda x: stepped(function(x), x) if x.dtype.is_floating else x


def logical(function):
    """A function of truths, which numbers are cast to."""
    return lambda *xs: function(*map(truths, xs))


def truths(x):
    return tf.cast(x, tf.bool)


def nonzero(x):
    return tuple(tf.unstack(tf.where(counted(truths(x))), num=x.shape.rank, axis=1))


def counted(mask):
    """A mask with values where they are known: what is taken by it then has a known size."""
    values = looked(mask, np.asarray)
    return mask if values is NotImplemented else tf.constant(values)


def stepped(y, *xs):
    """``y`` with a gradient of 0 for ``xs``, to which the library's own operation has none or another."""
    return tf.where(True, tf.stop_gradient(y), sum(xs[1:], xs[0]))


def rank_of(x) -> int:
    return x.shape.rank


def axes_of(x, axis):
    """``axis`` as a list of distinct non-negative ints; None is all."""
    rank = x.shape.rank
    if axis is None:
        return list(range(rank))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    bound = rank or 1
    found = [a % bound for a in axes]
    if len(set(found)) != len(found) or not all(-bound <= a < bound for a in axes):
        raise IndexError(f"axis {axis} is out of range or named twice for {rank} dimensions")
    return found if rank else []


def existing(x, axis):
    """The axes to reduce: of a tensor without dimensions none, where its only one is named."""
    return axis if axis is None or x.shape.rank else axes_of(x, axis)
