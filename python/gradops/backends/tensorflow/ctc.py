"""TensorFlow kernels: connectionist temporal classification."""

import tensorflow as tf

from ..numpy import ctc as _numpy


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    dtype = tf.float32 if inputs.dtype == tf.bfloat16 else inputs.dtype

    def search(inputs, sequence_lengths):
        return _numpy.ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index)

    labels, scores = tf.numpy_function(search, [tf.cast(inputs, dtype), sequence_lengths], (tf.int64, dtype))
    labels = tf.ensure_shape(labels, (top_paths, *inputs.shape[:2]))
    return labels, tf.cast(tf.ensure_shape(scores, (inputs.shape[0], top_paths)), inputs.dtype)
