"""TensorFlow kernels: shape, creation, joining, sorting, random numbers."""

import numpy as np
import tensorflow as tf

from ... import defaults
from .._keys import cuts, inserted, turns
from .base import axes_of, existing, native_dtype, promoted, sizes, together

# Shape, creation, joining, sorting.


def _sizes(shape):
    return [-1 if n is None else n for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]


def reshape(x, newshape):
    return tf.reshape(x, newshape if isinstance(newshape, (tf.Tensor, tf.TensorShape)) else _sizes(newshape))


def transpose(x, axes=None):
    return tf.transpose(x, None if axes is None else [a % x.shape.rank for a in axes])


def expand_dims(x, axis):
    for a in inserted(axis, x.shape.rank):
        x = tf.expand_dims(x, a)
    return x


def squeeze(x, axis=None):
    return tf.squeeze(x, None if axis is None else axes_of(x, axis))


def broadcast_to(x, shape):
    if isinstance(shape, (tuple, list)) and None in [*shape]:
        raise TypeError(f"sizes must be whole numbers; got {tuple(shape)}")
    return tf.broadcast_to(x, shape if isinstance(shape, (tf.Tensor, tf.TensorShape)) else _sizes(shape))


def flip(x, axis=None):
    return tf.reverse(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    shift, axis = turns(shift, axis if x.shape.rank else axes_of(x, axis) or None)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), tf.shape(x))
    return tf.roll(x, shift, axis)


def view(x, dtype=None):
    if dtype is None:
        return x
    target = native_dtype(dtype)
    if x.dtype == target:
        return x
    x = tf.stop_gradient(x)  # bits have no slope, and TensorFlow no derivative for it
    if x.dtype == tf.bool:
        x = tf.cast(x, tf.uint8)
    read = tf.uint8 if target == tf.bool else target
    if x.dtype.size == read.size:
        y = tf.bitcast(x, read)
    elif x.dtype.size > read.size:
        y = tf.reshape(tf.bitcast(x, read), [*sizes(x)[:-1], x.shape[-1] * (x.dtype.size // read.size)])
    else:
        ratio = read.size // x.dtype.size
        y = tf.bitcast(tf.reshape(x, [*sizes(x)[:-1], x.shape[-1] // ratio, ratio]), read)
    return tf.cast(y, target)


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = [tf.get_static_value(v) if isinstance(v, tf.Tensor) else v for v in (start, stop, step)]
    if any(v is None for v in values):  # a size that the graph does not know
        start, stop, step = map(tf.convert_to_tensor, (start, stop, step))
        whole = start.dtype.is_integer and stop.dtype.is_integer and step.dtype.is_integer
        promoted = tf.int64 if whole else native_dtype(defaults.floatx())
        numbers = tf.range(*[tf.cast(v, promoted) for v in (start, stop, step)])
        return numbers if dtype is None else tf.cast(numbers, native_dtype(dtype))
    values = [v.item() if isinstance(v, np.generic | np.ndarray) else v for v in values]
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
    return tf.cast(tf.convert_to_tensor(np.arange(*values)), native_dtype(dtype))


def eye(N, M=None, k=0, dtype=None):
    if min(N, N if M is None else M) < 0:
        raise ValueError("negative dimensions are not allowed")
    rows, columns = np.arange(N)[:, None], np.arange(N if M is None else M)[None]
    return tf.cast(columns - rows == k, native_dtype(dtype or defaults.floatx()))


def concatenate(xs, axis=0):
    if xs[0].shape.rank == 0:
        raise ValueError("0-d tensors have no dimension to join along")
    return tf.concat(together(xs), axis)


def stack(xs, axis=0):
    return tf.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    if isinstance(indices_or_sections, int):
        return tf.split(x, indices_or_sections, axis)
    size = x.shape[axis]
    if size is None or any(isinstance(i, tf.Tensor) for i in indices_or_sections):
        edges = [0, *indices_or_sections, None]
        return [x[(slice(None),) * (axis % x.shape.rank) + (slice(a, b),)] for a, b in zip(edges, edges[1:])]
    edges = [0, *cuts(indices_or_sections, size), size]
    return tf.split(x, [b - a for a, b in zip(edges, edges[1:])], axis)


def unstack(x, num=None, axis=0):
    return tf.unstack(x, num=num, axis=axis)


def _key(x):
    """``x`` in a form that ``tf.argsort`` orders right: signed, and infinite for NaN."""
    if x.dtype.is_floating:
        return tf.where(tf.math.is_nan(x), tf.constant(float("inf"), x.dtype), x)
    if x.dtype == tf.uint64:
        return tf.bitcast(x, tf.int64) ^ tf.int64.min
    return tf.cast(x, tf.int64)


def _line(x, axis):
    """``x`` with the axis last, and how to undo that."""
    if existing(x, axis) is None or x.shape.rank == 0:
        return tf.reshape(x, [-1]), lambda y: y if axis is None else tf.reshape(y, [])
    rank = x.shape.rank
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for {rank} dimensions")
    axis %= rank
    if axis == rank - 1:
        return x, lambda y: y
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(rank)]
    return tf.transpose(x, order), lambda y: tf.transpose(y, back)


def _order(x):
    """Positions in ascending order along the last axis, NaN last; equal elements keep their order."""
    order = tf.argsort(_key(x), stable=True)
    if x.dtype.is_floating:
        missing = tf.math.is_nan(x)

        def behind_infinity():
            last = tf.cast(tf.gather(missing, order, batch_dims=x.shape.rank - 1), tf.int32)
            return tf.gather(order, tf.argsort(last, stable=True), batch_dims=x.shape.rank - 1)

        order = tf.cond(tf.reduce_any(missing), behind_infinity, lambda: order)
    return tf.cast(order, tf.int64)


def sort(x, axis=-1):
    line, back = _line(x, axis)
    return back(tf.gather(line, _order(line), batch_dims=line.shape.rank - 1))


def argsort(x, axis=-1):
    line, back = _line(x, axis)
    return back(_order(line))


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = promoted(sorted_sequence, values)
    if not sequence.dtype.is_floating:
        sequence, values = _key(sequence), _key(values)
    # Not by tf.searchsorted, which in a graph takes no empty sequence.
    bound = tf.raw_ops.LowerBound if side == "left" else tf.raw_ops.UpperBound
    at = bound(sorted_inputs=sequence[None], values=tf.reshape(values, [1, -1]), out_type=tf.int64)
    at = tf.reshape(at, tf.shape(values))
    if values.dtype.is_floating:
        at = tf.where(tf.math.is_nan(values), tf.size(sequence, tf.int64), at)
    return at


# Random numbers.


def random_uniform(like, shape, seed):
    return tf.random.stateless_uniform(shape, (seed, 0), dtype=like.dtype)


def random_normal(like, shape, seed):
    return tf.random.stateless_normal(shape, (seed, 0), dtype=like.dtype)


def random_gamma(like, alpha, shape, seed):
    return tf.random.stateless_gamma(shape, (seed, 0), tf.cast(alpha, like.dtype), dtype=like.dtype)


def random_binomial(like, counts, probabilities, shape, seed):
    counts, probabilities = tf.cast(counts, tf.float64), tf.cast(probabilities, tf.float64)
    return tf.random.stateless_binomial(shape, (seed, 0), counts, probabilities, output_dtype=like.dtype)
