"""TensorFlow: conversion, dtype names, and the adaptors that make kernels of tf functions by gradops' dtype rule."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ... import dtypes
from ...errors import ArgumentTypeError, BackendError
from ..array.base import dtype_rule, holds
from ..interface import looked, looked_at_a_value
from ..numpy import base as _numpy
from . import _private

calls_from_threads = True


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, tf.Tensor)


def owns(kind: type) -> bool:
    """True for tensors, and for variables of TensorFlow and Keras, which :func:`convert` reads for the kernels."""
    return issubclass(kind, _OWN)


_OWN = (tf.Tensor, tf.Variable, _private.Tensor)


def prepare(floatx: str) -> None:
    """Do nothing: TensorFlow needs no set-up."""


def native_dtype(dtype) -> tf.DType:
    return dtype if isinstance(dtype, tf.DType) else tf.as_dtype(dtypes.canonical(dtype))


def convert(value, dtype=None, like=None) -> tf.Tensor:
    """A tensor of ``value``; reading a ``tf.Variable`` is recorded by active tapes."""
    if isinstance(value, (*_OWN, tf.IndexedSlices)):
        value = tf.convert_to_tensor(value)
        return value if dtype is None else tf.cast(value, native_dtype(dtype))
    if holds(value, _OWN):
        stacked = tf.stack([convert(v) for v in value])
        return stacked if dtype is None else tf.cast(stacked, native_dtype(dtype))
    if dtype is not None and dtypes.canonical(dtype) == "bfloat16":
        return tf.cast(_numpy.convert(value), tf.bfloat16)
    return tf.convert_to_tensor(_numpy.convert(value, dtype))


def dtype_name(x) -> str:
    return getattr(x.dtype, "name", x.dtype)  # a Keras variable's dtype is already a name


def components(x):
    if isinstance(x, tf.TensorArray):
        raise ArgumentTypeError("a tf.TensorArray is not a tensor.", hint="use `x.stack()`, which is one")
    leaves = tf.nest.flatten(x, expand_composites=True)
    if len(leaves) == 1 and leaves[0] is x:
        return None
    return leaves, lambda given: tf.nest.pack_sequence_as(x, given, expand_composites=True)


def handed_over(x):
    """Return ``x`` if it is numeric; TensorFlow aborts the process when it exports any other tensor by DLPack."""
    if not x.dtype.size:
        raise TypeError(f"a tensor of dtype {x.dtype.name} is not numeric")
    return x


def from_dlpack(x):
    """The tensor on the same memory; None if the memory is not aligned to 64 bytes, as TensorFlow's kernels need it."""
    if x.__dlpack_device__()[0] == _CPU and np.from_dlpack(x).ctypes.data % 64:
        return None
    return tf.experimental.dlpack.from_dlpack(x.__dlpack__())


_CPU = 1  # in DLPack's numbering


def eval_shape(run, looks: list) -> list:
    specs = [tf.TensorSpec(shape, native_dtype(dtype)) for shape, dtype in looks]
    return tf.function(run, autograph=False).get_concrete_function(*specs).structured_outputs


def place(x, device):
    if isinstance(device, str):
        kind, _, number = device.rpartition("device:")[2].partition(":")
        kind = "GPU" if kind in ("cuda", "gpu") else kind.upper()
        known = tf.config.list_logical_devices(kind)
        if number and not number.isdecimal() or int(number or 0) >= len(known):  # else TensorFlow uses another device
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
    """``x`` if floating or complex, otherwise ``x`` cast to ``floatx``."""
    return x if is_floating(x) else tf.cast(x, dtypes.floatx())


def floating(function):
    """A kernel of a unary function with a floating result: integers and bools become ``floatx``."""

    def kernel(x):
        return function(floats(x))

    return kernel


def compute_in_single(function):
    """A function of floats that computes half precision in float32, for which TensorFlow has the kernel."""

    def kernel(*xs):
        dtype = xs[0].dtype
        if not dtype.is_floating or dtype.size > 2:
            return function(*xs)
        return tf.cast(function(*[tf.cast(x, tf.float32) for x in xs]), dtype)

    return kernel


def arithmetic(function, of_bools=None):
    """A kernel of a binary function in the operands' promoted dtype; ``of_bools`` replaces it for two bools."""
    of_bools = of_bools or (lambda x1, x2: _bool_arithmetic(function, x1, x2))

    def kernel(x1, x2):
        d1, d2 = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
        if d1 is not d2:
            x1, x2 = promoted(x1, x2)
            d1 = x1.dtype
        return function(x1, x2) if d1 is not tf.bool else of_bools(x1, x2)

    return kernel


def counting(function):
    """``arithmetic`` for functions that are not defined for bools: two bools become integers."""
    return arithmetic(function, lambda x1, x2: function(tf.cast(x1, tf.int64), tf.cast(x2, tf.int64)))


def accept_bools(function):
    """A function that selects elements of its arguments, extended to bools, with False before True."""

    def kernel(x, *others):
        if x.dtype != tf.bool:
            return function(x, *others)
        others = [tf.cast(o, tf.int8) if getattr(o, "dtype", None) == tf.bool else o for o in others]
        return function(tf.cast(x, tf.int8), *others) > 0  # `> 0` also maps the int8 limits, the result for no elements

    return kernel


def compute_in_int64(function, *dtypes):
    """Compute with ``int64`` for the small integer dtypes that a function lacks on TensorFlow."""

    def kernel(x, *others):
        if x.dtype not in dtypes:
            return function(x, *others)
        return tf.cast(function(tf.cast(x, tf.int64), *(tf.cast(o, tf.int64) for o in others)), x.dtype)

    return kernel


def _bool_arithmetic(function, x1, x2):
    """Arithmetic of bools, which TensorFlow lacks: computed as integers, nonzero being True."""
    return tf.cast(function(tf.cast(x1, tf.int8), tf.cast(x2, tf.int8)), tf.bool)


def floating_arithmetic(function):
    """``arithmetic`` on floats: two integers become ``floatx``."""

    def kernel(x1, x2):
        x1, x2 = promoted(x1, x2)
        return function(floats(x1), floats(x2))

    return kernel


def keep_integers(function):
    """A unary function of floats with a gradient of 0 that returns integers unchanged."""
    return lambda x: stepped(function(x), x) if x.dtype.is_floating else x


def logical(function):
    """A function of bools; numbers are cast to bool."""
    return lambda *xs: function(*map(truths, xs))


def truths(x):
    return tf.cast(x, tf.bool)


def nonzero(x):
    return tuple(tf.unstack(tf.where(counted(truths(x))), num=x.shape.rank, axis=1))


def counted(mask):
    """A mask as a constant if its values are known, so that a selection by it has a static size."""
    values = looked(mask, np.asarray)
    return mask if values is NotImplemented else tf.constant(values)


def stepped(y, *xs):
    """``y`` with a gradient of 0 for ``xs``, for operations whose gradient TensorFlow lacks or defines differently."""
    return tf.where(True, tf.stop_gradient(y), sum(xs[1:], xs[0]))


def rank_of(x) -> int:
    return x.shape.rank


def axes_of(x, axis):
    """``axis`` as a list of distinct non-negative ints; None means all axes."""
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
    """The axes to reduce; a 0-d tensor accepts axis 0 or -1 and has no axes."""
    return axis if axis is None or x.shape.rank else axes_of(x, axis)
