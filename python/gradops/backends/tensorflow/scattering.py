"""TensorFlow kernels: scattering."""

import tensorflow as tf

from .base import of_order
from .indexing import static_value


def _segments(reduce, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(static_value(segment_ids).max()) + 1 if segment_ids.shape[0] else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        ids = tf.where(inside, segment_ids, tf.constant(num_segments, segment_ids.dtype))
        y = of_order(reduce)(data, ids, num_segments + 1)[:num_segments]
        if not data.dtype.is_floating:
            return y
        end = data.dtype.min if smallest else data.dtype.max  # TensorFlow's empty segments are finite
        none = tf.constant(float("-inf" if smallest else "inf"), data.dtype)
        return tf.where(y <= end if smallest else y >= end, none, y)

    return kernel


segment_max = _segments(tf.math.unsorted_segment_max, True)
segment_min = _segments(tf.math.unsorted_segment_min, False)


def product_by_segment(data, ids, count):
    return tf.math.unsorted_segment_prod(data, ids, count)
