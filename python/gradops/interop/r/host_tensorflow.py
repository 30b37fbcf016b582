"""Calls of host functions in TensorFlow's graphs."""

from __future__ import annotations

import tensorflow as tf

from ...errors import BackendError


def call_back(program, tensors: list) -> list | None:
    if not any(tf.is_tensor(t) and not hasattr(t, "numpy") for t in tensors):
        return None
    tensors = [tf.convert_to_tensor(t) for t in tensors]
    if any(t.shape.rank is None for t in tensors):
        raise BackendError(f"{program.host.name} needs tensors of known rank in a TensorFlow graph.")
    names = [t.dtype.name for t in tensors]
    program.foresee([tuple(2 if size is None else size for size in t.shape) for t in tensors], names)
    if program.host.shape is None and any(None in t.shape for t in tensors):
        first = program.shapes
        program.foresee([tuple(3 if size is None else size for size in t.shape) for t in tensors], names)
        program.shapes = [tuple(a if a == b else None for a, b in zip(s, t)) for s, t in zip(first, program.shapes)]
    kinds = [tf.as_dtype(name) for name in program.dtypes]
    results = tf.numpy_function(lambda *arrays: program.cast(*arrays), tensors, kinds)
    for result, shape in zip(results, program.shapes):
        result.set_shape(shape)
    return list(results)
