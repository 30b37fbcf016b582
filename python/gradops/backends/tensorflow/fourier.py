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


# What is cut is cut before: TensorFlow's gradient of cutting fails.


def rfft_complex(x, fft_length):
    return tf.signal.rfft(_full(x)[..., :fft_length], [fft_length])


def irfft_complex(x, fft_length):
    return tf.signal.irfft(_complex(x)[..., : fft_length // 2 + 1], [fft_length])
