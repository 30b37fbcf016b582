"""Sorting, searching and sets: traces, edge cases, and faults that all backends would share."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError

everywhere = pytest.mark.parametrize("backend", BACKENDS)
traced = pytest.mark.parametrize("backend", ("jax", "tensorflow"))


def compiled(function, backend):
    if backend == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, autograph=False)


@traced
@pytest.mark.parametrize("ordered", [True, False])
def test_unique_of_a_given_size_inside_a_trace(backend, ordered):
    x = tensors(np.array([[2.0, 1.0, 2.0], [5.0, 1.0, -3.0]]), backend)

    def f(x):
        return ops.unique(x, ordered, True, True, True, None, 6, 9.0)

    got, want = numpy(compiled(f, backend)(x)), numpy(f(x))
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1][:4], want[1][:4])
    for g, w in zip(got[2:], want[2:]):
        np.testing.assert_array_equal(g, w)


@everywhere
@pytest.mark.parametrize("shape", [(0, 2), (0,)], ids=str)
def test_unique_of_empty_input_is_padded(backend, shape):
    def f(x):
        return ops.unique(x, True, True, True, True, None, 3, 9.0)

    x = tensors(np.zeros(shape), backend)
    for of in [f] + [compiled(f, backend)] * (backend in ("jax", "tensorflow")):
        y, index, inverse, counts = map(numpy, of(x))
        np.testing.assert_array_equal(y, [9.0] * 3)  # as in jnp.unique
        np.testing.assert_array_equal(counts, [0] * 3)
        assert index.shape == (3,) and inverse.shape == shape
    rows = ops.unique(tensors(np.zeros((2, 0)), backend), axis=1, size=2, fill_value=9.0)
    np.testing.assert_array_equal(numpy(rows), np.full((2, 2), 9.0))
    with pytest.raises(ArgumentError, match="give a `fill_value` with `size`"):
        ops.unique(x, size=3)


@traced
def test_unique_inside_a_trace_needs_a_size(backend):
    with pytest.raises(ArgumentError, match="`unique`: inside a trace give a `size`"):
        compiled(lambda x: ops.unique(x), backend)(tensors(np.ones(3), backend))


@traced
def test_sorting_inside_a_trace(backend):
    x = tensors(np.array([3.0, np.nan, 1.0, np.inf, 2.0]), backend)

    def f(x):
        return ops.sort(x), ops.argsort(x), *ops.top_k(x, 2), ops.searchsorted(ops.sort(x), x), ops.isin(x, x)

    for got, want in zip(numpy(compiled(f, backend)(x)), numpy(f(x))):
        np.testing.assert_array_equal(got, want)


@everywhere
def test_sort_of_a_transposed_tensor(backend):
    x = np.array([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])
    turned = ops.transpose(tensors(x, backend))
    np.testing.assert_array_equal(numpy(ops.sort(turned, 0)), np.sort(x.T, 0))
    np.testing.assert_array_equal(
        numpy(ops.searchsorted(tensors(np.arange(4.0), backend), turned)), np.searchsorted(np.arange(4.0), x.T)
    )


@everywhere
def test_bad_input(backend):
    x = tensors(np.array([[3.0, 1.0, 2.0]]), backend)
    for name in ("sort", "argsort"):
        with pytest.raises(AxisError, match=f"`{name}`: `axis` must be between -2 and 1"):
            getattr(ops, name)(x, 2)
        with pytest.raises(ArgumentTypeError, match=f"`{name}`: `x` must be real"):
            getattr(ops, name)(ops.multiply(x, 1j))
    with pytest.raises(AxisError, match="`argpartition`: `kth` must be between -3 and 2"):
        ops.argpartition(x, 3)
    for k in (-1, 4):
        with pytest.raises(ArgumentError, match="`top_k`: `k` must be between 0 and 3"):
            ops.top_k(x, k)
    with pytest.raises(ArgumentTypeError, match="`top_k`: `k` must be a whole number"):
        ops.top_k(x, 1.5)
    with pytest.raises(ShapeError, match="`top_k`: `x` must have at least 1 dimension"):
        ops.top_k(x[0, 0], 1)
    with pytest.raises(ShapeError, match="`searchsorted`: `sorted_sequence` must have 1 dimension"):
        ops.searchsorted(x, x)
    with pytest.raises(ArgumentError, match="`searchsorted`: `side` must be one of 'left', 'right'"):
        ops.searchsorted(x[0], x, side="middle")
    with pytest.raises(ArgumentError, match="`digitize`: `bins` must ascend"):
        ops.digitize(x, x[0])
    with pytest.raises(ShapeError, match="`in_top_k`: `predictions` must have the shape of `targets`"):
        ops.in_top_k(tensors(np.array([0, 1]), backend), x, 1)
    with pytest.raises(AxisError, match="`unique`: `axis` must be between -2 and 1"):
        ops.unique(x, axis=2)
