"""TensorFlow kernels: Fourier transforms and complex numbers."""

import tensorflow as tf

from .base import floats

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


# What is cut is cut before: TensorFlow's gradient of cutting fails, as do those of transforms of nothing, which has
# zeros put beside it; rows of them are taken off again.


def rfft_complex(x, fft_length):
    return _of_any(lambda x: tf.signal.rfft(x, [fft_length]), _full(x)[..., :fft_length])


def irfft_complex(x, fft_length):
    return _of_any(lambda x: tf.signal.irfft(x, [fft_length]), _complex(x)[..., : fft_length // 2 + 1])


def _of_any(function, x):
    if 0 not in x.shape:
        return function(x)
    y = function(tf.pad(x, [[0, int(n == 0)] for n in x.shape]))
    return y[tuple(slice(0 if n == 0 else None) for n in x.shape[:-1])]
