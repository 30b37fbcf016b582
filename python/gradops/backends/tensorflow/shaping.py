"""TensorFlow kernels: shape, creation, joining, sorting, random numbers, indexing.

TensorFlow itself indexes by ints and slices only. Integer arrays and masks follow NumPy's rules here: the slices are
taken first, then one gather covers the dimensions that arrays index. Their broadcast dimensions replace the arrays'
dimensions if these are adjacent, and otherwise come first.
"""

import numpy as np
import tensorflow as tf

from ... import dtypes
from .._keys import cuts, distinct, expanded, inserted, is_array, is_mask, last_of_each, parts_of, separated, turns
from .base import accept_bools, axes_of, compute_in_single, counted, existing, native_dtype, promoted, sizes, together

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
        raise TypeError(f"sizes must be integers; got {tuple(shape)}")
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
    x = tf.stop_gradient(x)  # bits have no gradient, and `bitcast` no derivative
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
    if any(v is None for v in values):  # the size is unknown while the graph is built
        start, stop, step = map(tf.convert_to_tensor, (start, stop, step))
        whole = start.dtype.is_integer and stop.dtype.is_integer and step.dtype.is_integer
        promoted = tf.int64 if whole else native_dtype(dtypes.floatx())
        numbers = tf.range(*[tf.cast(v, promoted) for v in (start, stop, step)])
        return numbers if dtype is None else tf.cast(numbers, native_dtype(dtype))
    values = [v.item() if isinstance(v, np.generic | np.ndarray) else v for v in values]
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else dtypes.floatx()
    return tf.cast(tf.convert_to_tensor(np.arange(*values)), native_dtype(dtype))


def eye(N, M=None, k=0, dtype=None):
    M = N if M is None else M
    if any(isinstance(n, int) and n < 0 for n in (N, M)):
        raise ValueError("negative dimensions are not allowed")
    rows, columns = (tf.range(n, dtype=tf.int64) if tf.is_tensor(n) else np.arange(n) for n in (N, M))
    rows, columns = rows[:, None], columns[None]
    return tf.cast(columns - rows == k, native_dtype(dtype or dtypes.floatx()))


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
    """``x`` in a form that ``tf.argsort`` sorts correctly: signed, with infinity in place of NaN."""
    if x.dtype.is_floating:
        return tf.where(tf.math.is_nan(x), tf.constant(float("inf"), x.dtype), x)
    if x.dtype == tf.uint64:
        return tf.bitcast(x, tf.int64) ^ tf.int64.min
    return tf.cast(x, tf.int64)


def _line(x, axis):
    """``x`` with the axis moved last, and a function that undoes the move."""
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
    """Indices that sort along the last axis, NaN last; equal elements keep their order."""
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
    # Not tf.searchsorted, which rejects an empty sequence in a graph.
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


# Indexing, by NumPy's rules -------------------------------------------------------------------------------------------


def static_value(x):
    """The values of a tensor as a NumPy array; None if a graph computes them later."""
    return tf.get_static_value(x)


def get_item(x, key):
    parts = parts_of(key)
    if any(_advanced(p) for p in parts):
        return _gather(x, expanded(parts, x.shape.rank), separated(parts))
    _check(x, parts)
    return x[tuple(parts)]


def _advanced(part) -> bool:
    return is_array(part) and not (isinstance(part, tf.Tensor) and part.shape.rank == 0 and part.dtype != tf.bool)


def _check(x, parts) -> None:
    """Raise for positions out of range, which TensorFlow's strided slice would accept in a graph."""
    dim = 0
    for part in expanded(parts, x.shape.rank):
        if part is None:
            continue
        size = x.shape[dim]
        dim += 1
        if isinstance(part, int) and size is not None and not -size <= part < size:
            raise IndexError(f"index {part} is out of range for a dimension of {size}")


def _gather(x, parts, apart):
    basic, arrays = [], {}
    for part in parts:
        if isinstance(part, bool):
            arrays[len(basic)] = np.zeros(int(part), np.int64)
            basic.append(None)
        elif part is None or isinstance(part, slice):
            basic.append(part)
        else:
            for positions in _whole(part, [x.shape[_used(basic) + i] for i in range(_rank(part))]):
                arrays[len(basic)] = positions
                basic.append(slice(None))
    y = x[tuple(basic)] if any(p != slice(None) for p in basic) else x
    dims = list(arrays)
    found = [_wrapped(p, y, d) for d, p in arrays.items()]
    empty = 0 in y.shape  # tf.gather fails on empty tensors, and has no gradient
    if len(dims) == 1 and not empty:
        return tf.gather(y, found[0], axis=dims[0])
    if all(isinstance(p, np.ndarray) for p in found):
        joint = np.stack(np.broadcast_arrays(*found), -1)
    else:
        origin = _zero_sum(found)
        joint = tf.stack([p + origin for p in found], -1)
    rest = [d for d in range(y.shape.rank) if d not in arrays]
    if empty:
        out = tf.reshape(y, tf.concat([tf.shape(joint)[:-1], tf.gather(tf.shape(y), np.array(rest, int))], 0))
    else:
        out = tf.gather_nd(tf.transpose(y, dims + rest), joint)
    first, width = dims[0], out.shape.rank - len(rest)
    if first == 0 or apart:
        return out
    order = [*range(width, width + first), *range(width), *range(width + first, out.shape.rank)]
    return tf.transpose(out, order)


def _used(basic) -> int:
    return sum(p is not None for p in basic)


def _rank(part) -> int:
    return len(part.shape) if is_mask(part) else 1


def _whole(part, sizes) -> list:
    """A part's positions, one array for each dimension; for a mask, the positions of its true elements."""
    if isinstance(part, tf.Tensor) and part.dtype == tf.bool:
        part = counted(part)
    known = part if not isinstance(part, tf.Tensor) else tf.get_static_value(part)
    if is_mask(part):
        if list(part.shape) != sizes:
            raise IndexError(f"a mask of shape {tuple(part.shape)} for dimensions of {sizes}")
        if known is not None:
            return list(np.nonzero(known))
        return tf.unstack(tf.where(part), num=len(sizes), axis=1)
    if known is None:
        return [tf.cast(part, tf.int64)]
    if np.asarray(known).dtype.kind not in "iu":
        raise IndexError(f"positions must be whole numbers or a mask; got dtype {np.asarray(known).dtype}")
    return [np.asarray(known, np.int64)]


def _wrapped(positions, y, dim):
    """Non-negative positions, after a range check."""
    if not isinstance(positions, np.ndarray):
        size = tf.shape(y, tf.int64)[dim]
        return tf.where(positions < 0, positions + size, positions)
    size = y.shape[dim]
    if size is None:
        return _wrapped(tf.constant(positions), y, dim)
    if positions.size and not (-size <= positions.min() and positions.max() < size):
        raise IndexError(f"index {positions.ravel()[:4]} is out of range for a dimension of {size}")
    return np.where(positions < 0, positions + size, positions)


def _zero_sum(arrays):
    """Zeros of the shape that arrays broadcast to."""
    total = tf.zeros([], tf.int64)
    for p in arrays:
        total = total + tf.zeros_like(p)
    return total


def take(x, indices, axis=None):
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    if indices.dtype.is_floating or indices.dtype.is_complex:
        raise IndexError("positions must be whole numbers")
    positions = _counted(tf.cast(indices, tf.int64), x, axis)
    if 0 in x.shape:  # tf.gather has no gradient for empty tensors
        axis %= x.shape.rank
        return tf.reshape(x, tf.concat([tf.shape(x)[:axis], tf.shape(positions), tf.shape(x)[axis + 1 :]], 0))
    return tf.gather(x, positions, axis=axis)


def _counted(indices, x, axis):
    size = x.shape[axis]
    known = tf.get_static_value(indices)
    if known is not None and size is not None:
        if known.size and not (-size <= known.min() and known.max() < size):
            raise IndexError(f"index {known.ravel()[:4]} is out of range for a dimension of {size}")
        return indices if not known.size or known.min() >= 0 else tf.constant(np.where(known < 0, known + size, known))
    size = tf.cast(tf.shape(x)[axis], tf.int64) if size is None else size
    return tf.where(indices < 0, indices + size, indices)


def _flat_positions(x, key):
    """The positions of ``x[key]`` in the flattened ``x``; a NumPy array if the key's values are known."""
    parts = [tf.get_static_value(p) if isinstance(p, tf.Tensor) else p for p in parts_of(key)]
    unknown = any(known is None and p is not None for known, p in zip(parts, parts_of(key)))
    if unknown or None in tuple(x.shape):
        return get_item(tf.reshape(tf.range(tf.size(x, tf.int64)), tf.shape(x)), key)
    return np.arange(int(np.prod(x.shape)), dtype=np.int64).reshape(x.shape)[tuple(parts)]


def add_at(x, key, updates):
    updates = tf.cast(updates, x.dtype)
    if x.dtype == tf.bool:  # for bools `add` means "or"
        return tf.cast(_added(tf.cast(x, tf.int32), key, tf.cast(updates, tf.int32)), tf.bool)
    return compute_in_single(lambda x, updates: _added(x, key, updates))(x, updates)


def _added(x, key, updates):
    if isinstance(key, tf.Tensor) and key.dtype.is_integer and key.shape.rank == 1 and x.shape.rank:
        rows = _counted(tf.cast(key, tf.int64), x, 0)
        updates = tf.broadcast_to(updates, tf.concat([tf.shape(rows), tf.shape(x)[1:]], 0))
        return tf.tensor_scatter_nd_add(x, rows[:, None], updates)
    flat = _flat_positions(x, key)
    updates = tf.reshape(tf.broadcast_to(updates, tf.shape(flat)), [-1])
    flat = tf.reshape(flat, [-1, 1])
    return tf.reshape(tf.tensor_scatter_nd_add(tf.reshape(x, [-1]), flat, updates), tf.shape(x))


def _may_repeat(key) -> bool:
    """True if a key may select a position twice; False if its array values are known and distinct."""
    if distinct(key):
        return False
    arrays = [tf.get_static_value(p) if isinstance(p, tf.Tensor) else p for p in parts_of(key) if is_array(p)]
    if any(p is None or is_mask(p) for p in arrays):
        return True
    chosen = np.stack([np.ravel(p) for p in np.broadcast_arrays(*arrays)])
    return bool((chosen < 0).any()) or np.unique(chosen, axis=1).shape != chosen.shape


def set_at(x, key, updates):
    flat = _flat_positions(x, key)
    if isinstance(flat, tf.Tensor) and None in tuple(x.shape) and _may_repeat(key):
        raise TypeError("repeated positions need static shapes on TensorFlow")
    updates = tf.reshape(tf.broadcast_to(tf.cast(updates, x.dtype), tf.shape(flat)), [-1])
    if isinstance(flat, tf.Tensor) or distinct(key):
        flat = tf.reshape(flat, [-1, 1])
    else:  # the last of several values for a position wins, also in the gradient
        flat = flat.reshape(-1)
        last = last_of_each(flat)
        flat, updates = flat[last][:, None], tf.gather(updates, last)
    if not tf.executing_eagerly():  # `tf.vectorized_map` needs 32-bit positions
        flat = tf.cast(flat, tf.int32)
    return tf.reshape(tf.tensor_scatter_nd_update(tf.reshape(x, [-1]), flat, updates), tf.shape(x))


# Scattering.


def _segments(reduce, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(static_value(segment_ids).max()) + 1 if segment_ids.shape[0] else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        ids = tf.where(inside, segment_ids, tf.constant(num_segments, segment_ids.dtype))
        y = accept_bools(reduce)(data, ids, num_segments + 1)[:num_segments]
        if not data.dtype.is_floating:
            return y
        end = data.dtype.min if smallest else data.dtype.max  # TensorFlow returns finite limits for empty segments
        none = tf.constant(float("-inf" if smallest else "inf"), data.dtype)
        return tf.where(y <= end if smallest else y >= end, none, y)

    return kernel


segment_max = _segments(tf.math.unsorted_segment_max, True)
segment_min = _segments(tf.math.unsorted_segment_min, False)


def product_by_segment(data, ids, count):
    return tf.math.unsorted_segment_prod(data, ids, count)
