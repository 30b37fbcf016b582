"""TensorFlow kernels: convolutions, pooling, Fourier transforms."""

import math

import tensorflow as tf

from ..array.shaping import taps
from .base import floats, promoted

# Convolution, with channels last internally.
#
# On every device TensorFlow supports convolutions without groups and with either strides or dilation, and can
# differentiate them twice. The other convolutions are composed of these.

_LAYOUTS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def last(x, channels_first):
    return tf.transpose(x, [0, *range(2, x.shape.rank), 1]) if channels_first else x


def first(x, channels_first):
    return tf.transpose(x, [0, x.shape.rank - 1, *range(1, x.shape.rank - 1)]) if channels_first else x


def padded(x, padding, value=0):
    """``x`` padded with a constant; negative padding crops."""
    if any(n < 0 for pair in padding for n in pair):
        key = [slice(max(-b, 0), n + min(a, 0)) for n, (b, a) in zip(x.shape[1:], padding)]
        x = x[(slice(None), *key)]
    around = [[0, 0], *([max(b, 0), max(a, 0)] for b, a in padding), [0, 0]]
    if not any(map(any, around)):
        return x
    if value and not tf.executing_eagerly():  # `tf.vectorized_map` ignores the constant and pads with 0
        return tf.where(tf.pad(tf.ones_like(x, tf.bool), around), tf.pad(x, around), tf.constant(value, x.dtype))
    return tf.pad(x, around, constant_values=value)


def _dilated(kernel, dilation):
    """A kernel with zeros inserted between its taps."""
    for axis, d in enumerate(dilation):
        if d > 1:
            gaps = [[0, 0]] * (kernel.shape.rank + 1)
            gaps[axis + 1] = [0, d - 1]
            size = kernel.shape[axis]
            kernel = tf.pad(tf.expand_dims(kernel, axis + 1), gaps)
            shape = kernel.shape.as_list()
            kernel = tf.reshape(kernel, [*shape[:axis], size * d, *shape[axis + 2 :]])
            key = [slice(None)] * kernel.shape.rank
            key[axis] = slice(0, (size - 1) * d + 1)
            kernel = kernel[tuple(key)]
    return kernel


def _plain(x, kernel, strides, dilation):
    """Convolution without padding and groups."""
    if any(s > 1 for s in strides) and any(d > 1 for d in dilation):
        kernel, dilation = _dilated(kernel, dilation), (1,) * len(dilation)
    # The layout is named, because TensorFlow's 3-d derivative fails without it.
    return tf.nn.convolution(x, kernel, list(strides), "VALID", _LAYOUTS[len(strides)], list(dilation))


def _depthwise(x, kernel, strides, dilation):
    """Depthwise convolution: the taps of the window, added one by one."""
    window = kernel.shape[:-2].as_list()
    channels = x.shape[-1]
    taps = tf.reshape(kernel, [-1, channels, kernel.shape[-1] // channels])
    places = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], window, strides, dilation)]
    total = 0.0
    for i in range(taps.shape[0]):
        key, rest = [], i
        for k, s, d, count in zip(window[::-1], strides[::-1], dilation[::-1], places[::-1]):
            start = rest % k * d
            rest //= k
            key.insert(0, slice(start, start + (count - 1) * s + 1, s))
        total += tf.expand_dims(x[(slice(None), *key)], -1) * taps[i]
    return tf.reshape(total, [-1, *places, kernel.shape[-1]])


def _forward(x, kernel, strides, dilation, groups):
    if groups == 1:
        return _plain(x, kernel, strides, dilation)
    if kernel.shape[-2] == 1:
        square = len(strides) == 2 and strides[0] == strides[1] and all(d == 1 for d in dilation)
        if square and x.shape[0] != 0:  # for an empty batch TensorFlow's kernel gradient is uninitialised
            shape = [*kernel.shape[:2], groups, kernel.shape[-1] // groups]
            return tf.nn.depthwise_conv2d(x, tf.reshape(kernel, shape), [1, *strides, 1], "VALID")
        return _depthwise(x, kernel, strides, dilation)
    parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1))
    return tf.concat([_plain(a, b, strides, dilation) for a, b in parts], -1)


def _bilinear_parts(kernel):
    """A bilinear function, extended to complex arguments, which TensorFlow lacks, by real and imaginary parts."""

    def of_any(x1, x2, *how):
        if not (x1.dtype.is_complex or x2.dtype.is_complex):
            return kernel(x1, x2, *how)
        (a, b), (c, d) = ((tf.math.real(x), tf.math.imag(x)) for x in promoted(x1, x2))
        return tf.complex(kernel(a, c, *how) - kernel(b, d, *how), kernel(a, d, *how) + kernel(b, c, *how))

    return of_any


@_bilinear_parts
def conv_to_output(inputs, kernel, strides, padding, dilation, groups, channels_first):
    x, kernel = (floats(t) for t in promoted(inputs, kernel))
    x = padded(last(x, channels_first), padding)
    return first(_forward(x, kernel, strides, dilation, groups), channels_first)


@_bilinear_parts
def conv_to_inputs(outputs, kernel, sizes, strides, padding, dilation, groups, channels_first):
    y, kernel = (floats(t) for t in promoted(outputs, kernel))
    y = last(y, channels_first)
    if groups == 1:
        kernel = _dilated(kernel, dilation)
        whole = [(m - 1) * s + k for m, s, k in zip(y.shape[1:-1], strides, kernel.shape)]
        shape = [tf.shape(y)[0], *whole, kernel.shape[-2]]
        x = tf.nn.conv_transpose(y, kernel, shape, list(strides), "VALID", _LAYOUTS[len(strides)])
        x = padded(x, [(-b, n + b - m) for n, m, (b, _) in zip(sizes, whole, padding)])
    else:
        empty = tf.zeros([tf.shape(y)[0], *sizes, kernel.shape[-2] * groups], y.dtype)
        x = _transpose(lambda x: _forward(padded(x, padding), kernel, strides, dilation, groups), empty, y)
    return first(x, channels_first)


@_bilinear_parts
def conv_to_kernel(inputs, outputs, sizes, strides, padding, dilation, groups, channels_first):
    x, y = (floats(t) for t in promoted(inputs, outputs))
    x, y = padded(last(x, channels_first), padding), last(y, channels_first)
    empty = tf.zeros([*sizes, x.shape[-1] // groups, y.shape[-1]], x.dtype)
    return _transpose(lambda kernel: _forward(x, kernel, strides, dilation, groups), empty, y)


def _transpose(linear, zero, y):
    """The transpose of a linear function, applied to ``y``: its gradient at any point, here ``zero``."""
    with tf.GradientTape() as tape:
        tape.watch(zero)
        z = linear(zero)
    return tape.gradient(z, zero, y)


# Pooling, and blocks as columns.


def _pooled(pool, x, window, strides):
    """TensorFlow's 2-d pooling, used for 1 to 3 dimensions."""
    if len(window) == 1:
        return tf.squeeze(pool(tf.expand_dims(x, 1), (1, *window), (1, *strides), "VALID"), 1)
    if len(window) == 2:
        return pool(x, window, strides, "VALID")
    planes = pool(tf.reshape(x, [-1, *x.shape[2:]]), window[1:], strides[1:], "VALID")
    depth, height, width, channels = x.shape[1], *planes.shape[1:]
    columns = tf.reshape(planes, [-1, depth, height * width, channels])
    columns = pool(columns, (window[0], 1), (strides[0], 1), "VALID")
    return tf.reshape(columns, [-1, columns.shape[1], height, width, channels])


def window_max(x, window, strides, padding, channels_first):
    x = padded(last(x, channels_first), padding, -math.inf)
    y = _pooled(tf.nn.max_pool2d, x, window, strides)
    # TensorFlow starts from the lowest finite number, not from -inf.
    y = tf.where(tf.equal(y, x.dtype.min), tf.constant(-math.inf, x.dtype), y)
    return first(y, channels_first)


def window_sum(x, window, strides, padding, channels_first):
    x = padded(last(x, channels_first), padding)
    return first(_pooled(tf.nn.avg_pool2d, x, window, strides) * math.prod(window), channels_first)


def window_spread(y, sizes, window, strides, padding, channels_first):
    channels = y.shape[1 if channels_first else -1]
    shape = [tf.shape(y)[0], channels, *sizes] if channels_first else [tf.shape(y)[0], *sizes, channels]
    return _transpose(lambda x: window_sum(x, window, strides, padding, channels_first), tf.zeros(shape, y.dtype), y)


def window_columns(x, window, strides, padding, dilation):
    x = tf.pad(x, [[0, 0], [0, 0], *([p, p] for p in padding)])
    found = taps(x, window, strides, dilation)
    shape = [tf.shape(x)[0], x.shape[1] * len(found), math.prod(found[0].shape[2:])]
    return tf.reshape(tf.stack(found, 2), shape)


def column_sums(x, sizes, window, strides, padding, dilation):
    shape = [tf.shape(x)[0], x.shape[1] // (window[0] * window[1]), *sizes]

    def columns(image):
        return window_columns(tf.ensure_shape(image, [None, *shape[1:]]), window, strides, padding, dilation)

    return _transpose(columns, tf.zeros(shape, x.dtype), x)


# Fourier transforms and complex numbers.

_TRANSFORMS = {
    (1, False): tf.signal.fft,
    (1, True): tf.signal.ifft,
    (2, False): tf.signal.fft2d,
    (2, True): tf.signal.ifft2d,
}


def _full(x):
    x = floats(x)
    return tf.cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x


def _complex(x):
    x = _full(x)
    return x if x.dtype.is_complex else tf.cast(x, tf.complex128 if x.dtype == tf.float64 else tf.complex64)


def view_as_complex(x):
    x = _full(x)
    return tf.complex(x[..., 0], x[..., 1])


def fft_complex(x, dimensions=1, inverse=False):
    return _TRANSFORMS[dimensions, bool(inverse)](_complex(x))


# Inputs are cropped first, because TensorFlow's gradient of cropping fails. Its gradients of empty transforms fail too,
# so rows of zeros are added and removed again.


def rfft_complex(x, fft_length):
    return _pad_empty(lambda x: tf.signal.rfft(x, [fft_length]), _full(x)[..., :fft_length])


def irfft_complex(x, fft_length):
    return _pad_empty(lambda x: tf.signal.irfft(x, [fft_length]), _complex(x)[..., : fft_length // 2 + 1])


def _pad_empty(function, x):
    if 0 not in x.shape:
        return function(x)
    y = function(tf.pad(x, [[0, int(n == 0)] for n in x.shape]))
    return y[tuple(slice(0 if n == 0 else None) for n in x.shape[:-1])]
