"""TensorFlow kernels: reductions, products, normalisation, activations, attention, CTC."""

import math

import tensorflow as tf

from ..numpy import reductions as _numpy
from .base import (
    accept_bools,
    axes_of,
    compute_in_single,
    constant,
    existing,
    floating,
    floats,
    native_dtype,
    promoted,
    together,
)
from .base import compute_in_single as _summed  # TensorFlow adds half precision up in half: from 2048 on 1 adds nothing


def _widened(x):
    return x if x.dtype.is_floating or x.dtype.is_complex or x.dtype == tf.uint64 else tf.cast(x, tf.int64)


def sum(x, axis=None, keepdims=False):
    return _summed(lambda x: tf.reduce_sum(x, existing(x, axis), keepdims))(_widened(x))


def mean(x, axis=None, keepdims=False):
    x, axis = floats(x), existing(x, axis)
    if x.dtype.size == 2:  # sums overflow in half precision
        return tf.cast(tf.reduce_mean(tf.cast(x, tf.float32), axis, keepdims), x.dtype)
    if not x.dtype.is_complex:
        return tf.reduce_mean(x, axis, keepdims)
    y = tf.reduce_sum(x, axis, keepdims)  # tf.reduce_mean of no complex numbers is 0, not NaN
    return y / tf.cast(tf.size(x) // tf.maximum(tf.size(y), 1), y.dtype)


def _extreme(reduce, bound):
    def kernel(x, axis=None, keepdims=False, initial=None):
        axes = axes_of(x, axis)
        if initial is None and 0 in [x.shape[a] for a in axes]:
            raise ValueError("nothing to reduce: a dimension is empty and there is no `initial`")
        y = accept_bools(reduce)(x, existing(x, axis), keepdims)
        return y if initial is None else accept_bools(bound)(y, constant(initial, x.dtype))

    return kernel


max = _extreme(tf.reduce_max, tf.maximum)
min = _extreme(tf.reduce_min, tf.minimum)


def all(x, axis=None, keepdims=False):
    return tf.reduce_all(tf.cast(x, tf.bool), existing(x, axis), keepdims)


def any(x, axis=None, keepdims=False):
    return tf.reduce_any(tf.cast(x, tf.bool), existing(x, axis), keepdims)


def _position(function):
    def kernel(x, axis=None, keepdims=False):
        x = x if x.dtype != tf.bool else tf.cast(x, tf.int8)
        if existing(x, axis) is None or not x.shape.rank:
            y = function(tf.reshape(x, [-1]), 0, tf.int64)
            return tf.reshape(y, [1] * x.shape.rank) if keepdims else y
        y = function(x, axis, tf.int64)
        return tf.expand_dims(y, axis) if keepdims else y

    return kernel


argmax = _position(tf.argmax)
argmin = _position(tf.argmin)


def logsumexp(x, axis=None, keepdims=False):
    x, axis = floats(x), existing(x, axis)
    if not x.dtype.is_complex:
        return tf.reduce_logsumexp(x, axis, keepdims)
    top = tf.stop_gradient(tf.reduce_max(tf.math.real(x), axis, keepdims=True))
    top = tf.cast(tf.where(tf.math.is_finite(top), top, tf.zeros_like(top)), x.dtype)
    y = tf.math.log(tf.reduce_sum(tf.exp(x - top), axis, keepdims=True)) + top
    return y if keepdims else tf.squeeze(y, axis)


def cumsum(x, axis=None, dtype=None):
    if dtype is not None and native_dtype(dtype) == tf.bool:
        return tf.cast(cumsum(tf.cast(x, tf.bool), axis), tf.bool)
    x = _widened(x) if dtype is None else tf.cast(x, native_dtype(dtype))
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return _summed(lambda x: tf.cumsum(x, axis))(x) if existing(x, axis) != [] else x


def _compute_in_int64(product):
    """A product that uses int64 for the integers and bools that TensorFlow does not multiply."""

    def kernel(*xs):
        dtype = xs[0].dtype
        if dtype.is_floating or dtype.is_complex or dtype in (tf.int32, tf.int64):
            return product(*xs)
        return tf.cast(product(*(tf.cast(x, tf.int64) for x in xs)), dtype)

    return kernel


def matmul(x1, x2):
    x1, x2 = promoted(x1, x2)
    if x1.shape.rank == 0 or x2.shape.rank == 0:
        raise ValueError("a 0-d tensor has no matrix product")
    first, second = x1.shape.rank == 1, x2.shape.rank == 1
    y = _compute_in_int64(tf.linalg.matmul)(x1[None] if first else x1, x2[:, None] if second else x2)
    if second:
        y = tf.squeeze(y, -1)
    return tf.squeeze(y, -1 if second else -2) if first else y


def tensordot(x1, x2, axes=2):
    return _compute_in_int64(lambda x1, x2: tf.tensordot(x1, x2, axes))(*promoted(x1, x2))


def einsum(subscripts, operands):
    return compute_in_single(_compute_in_int64(lambda *xs: tf.einsum(subscripts, *xs)))(*together(operands))


def sliding_product(x, window):
    if x.dtype.is_complex:
        parts = [tf.math.real(v) for v in (x, window)] + [tf.math.imag(v) for v in (x, window)]
        a, b, c, d = parts
        return tf.complex(_slide(a, b) - _slide(c, d), _slide(a, d) + _slide(c, b))
    if x.dtype.is_integer:
        width = window.shape[0]
        places = tf.range(tf.size(x) - width + 1)[:, None] + tf.range(width)
        products = tf.cast(tf.gather(x, places), tf.int64) * tf.cast(window, tf.int64)
        return tf.cast(tf.reduce_sum(products, -1), x.dtype)
    return _slide(x, window)


def _slide(x, window):
    return tf.nn.conv1d(x[None, :, None], window[:, None, None], 1, "VALID")[0, :, 0]


# Activations, attention, CTC ------------------------------------------------------------------------------------------


# Activations.

sigmoid = floating(tf.math.sigmoid)
relu = accept_bools(tf.nn.relu)
normal_cdf = floating(compute_in_single(lambda x: 0.5 * tf.math.erfc(-math.sqrt(0.5) * tf.clip_by_value(x, -40, 40))))
softplus = floating(compute_in_single(tf.math.softplus))


def softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int) and x.shape.rank:
        return tf.nn.softmax(x, axis)
    return tf.exp(log_softmax(x, axis))


def log_softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int) and x.shape.rank:
        return tf.nn.log_softmax(x, axis)
    return x - tf.reduce_logsumexp(x, existing(x, axis), keepdims=True)


def relu6(x):
    return tf.nn.relu6(x if x.dtype != tf.bool else tf.cast(x, tf.int64))


@floating
def silu(x):
    return x * tf.math.sigmoid(x) if x.dtype.is_complex else tf.nn.silu(x)  # tf's complex gradient lacks a conjugate


log_sigmoid = floating(compute_in_single(tf.math.log_sigmoid))


def leaky_relu(x, negative_slope=0.2):
    x = floats(x)
    if x.dtype == tf.float64:  # tf.nn.leaky_relu has a single-precision slope
        return tf.where(x > 0, x, x * negative_slope)
    return tf.nn.leaky_relu(x, negative_slope)


# Connectionist temporal classification.


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    dtype = tf.float32 if inputs.dtype == tf.bfloat16 else inputs.dtype

    def search(inputs, sequence_lengths):
        return _numpy.ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index)

    labels, scores = tf.numpy_function(search, [tf.cast(inputs, dtype), sequence_lengths], (tf.int64, dtype))
    labels = tf.ensure_shape(labels, (top_paths, *inputs.shape[:2]))
    return labels, tf.cast(tf.ensure_shape(scores, (inputs.shape[0], top_paths)), inputs.dtype)
