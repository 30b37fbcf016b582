"""TensorFlow: control flow in graphs on flat lists of tensors, and calls of functions of NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from ...errors import BackendError
from . import tapes


def concrete(x, kind):
    """A 0-d tensor's value; None if a graph computes it later."""
    value = tf.get_static_value(x)
    return None if value is None else kind(value)


def branch(index, functions):
    if index.dtype == tf.bool:
        return tf.cond(index, functions[1], functions[0])
    return tf.switch_case(tf.cast(tf.clip_by_value(index, 0, len(functions) - 1), tf.int32), functions)


def scan(step, carry, rows, length, reverse, unroll):
    if tf.executing_eagerly():
        return NotImplemented
    count = tf.shape(rows[0])[0] if length is None else length
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in carry], [tf.TensorSpec(x.shape[1:], x.dtype) for x in rows]
    looks = tf.function(step, autograph=False).get_concrete_function(*specs).structured_outputs[1]
    arrays = [tf.TensorArray(y.dtype, count, element_shape=y.shape) for y in looks]

    def body(i, carry, arrays):
        at = count - 1 - i if reverse else i
        carry, ys = step(carry, [x[at] for x in rows])
        return i + 1, carry, [array.write(at, y) for array, y in zip(arrays, ys)]

    loop = tf.while_loop(lambda i, *_: i < count, body, (tf.constant(0), list(carry), arrays), maximum_iterations=count)
    ys = [array.stack() for array in loop[2]]
    for y, look in zip(ys, looks):
        y.set_shape([length, *look.shape])
    return loop[1], ys


def fori_loop(lower, upper, step, leaves):
    if tf.executing_eagerly():
        return NotImplemented
    lower, upper = tf.cast(lower, tf.int64), tf.cast(upper, tf.int64)

    def body(i, leaves):
        return i + 1, step(i, leaves)

    return tf.while_loop(lambda i, _: i < upper, body, (lower, list(leaves)))[1]


def while_loop(holds, step, leaves, bound):
    def go(leaves):
        return tf.cast(holds(leaves), tf.bool)

    return tf.while_loop(go, lambda leaves: (step(leaves),), (list(leaves),), maximum_iterations=bound)[0]


def vectorized_map(function, rows):
    call = tf.autograph.experimental.do_not_convert(lambda leaves: function(*leaves))
    before = tapes.rows.differentiable
    alone = tf.executing_eagerly() or tapes.rows.in_own_graph
    tapes.rows.differentiable = before or not alone or tapes.may_record()
    try:
        return tf.vectorized_map(call, list(rows), warn=False)
    finally:
        tapes.rows.differentiable = before


def map_chunks(run, rows):
    """``run(rows)``, a list, as one graph: eager code would trace the function again for each chunk."""
    if not tf.executing_eagerly():
        return run(rows)
    before = tapes.rows.in_own_graph
    tapes.rows.in_own_graph = not tapes.may_record()
    try:
        return tf.function(lambda *rows: run(rows), autograph=False)(*rows)
    finally:
        tapes.rows.in_own_graph = before


# Functions of NumPy arrays, elementwise or of matrices ----------------------------------------------------------------


def call_on_host(name: str, function: Callable, xs: list, like: int | None = None) -> tf.Tensor:
    dtype = xs[0].dtype

    def call(*arrays) -> np.ndarray:
        return np.asarray(function(*arrays), dtype.as_numpy_dtype)

    if all(hasattr(x, "numpy") for x in xs):
        return tf.constant(call(*[x.numpy() for x in xs]))
    result = tf.numpy_function(call, xs, dtype, stateful=False)
    if like is None:
        result.set_shape(functools.reduce(tf.broadcast_static_shape, [x.shape for x in xs]))
    else:
        lead = functools.reduce(tf.broadcast_static_shape, [x.shape[:-2] for x in xs])
        result.set_shape(lead + xs[like].shape[-2:])
    return result


# Functions of another language, called from graphs --------------------------------------------------------------------


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
