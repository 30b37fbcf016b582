"""Pooling: ties, infinities, windows beyond the edge, and bad input."""

import numpy as np
import pytest
from parity import BACKENDS, Case, native_gradient, numpy, scalar_function, tape_gradient, tensors

from gradops import ops
from gradops.errors import ArgumentError, ArgumentTypeError, ShapeError


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("op", ["max_pool", "adaptive_max_pool"])
@pytest.mark.parametrize("shape", [(1, 6, 2), (1, 4, 4, 1), (1, 2, 4, 2, 1)])
def test_ties_go_to_the_first(op, shape):
    """Holds on the tape and in every framework, for windows whose elements are all equal or partly equal."""
    how = {"pool_size": 2, "strides": 1, "padding": "same"} if op == "max_pool" else {"output_size": 2}
    for x in (np.zeros(shape), np.random.default_rng(0).integers(0, 2, shape).astype("float64")):
        case = Case(op, None, gradients=["inputs"])
        arguments = {"inputs": x, **how}
        (slope,) = tape_gradient(scalar_function(case, arguments, "numpy"), [x])
        for backend in BACKENDS[1:]:
            (native,) = native_gradient(scalar_function(case, arguments, backend), [x], backend)
            np.testing.assert_allclose(slope, native, err_msg=backend)
        (over,) = tape_gradient(scalar_function(case, arguments, "jax"), [x], "jax")
        np.testing.assert_allclose(slope, over)


@pytest.mark.parametrize("backend", BACKENDS)
def test_infinities_stay_in_their_window(backend):
    x = tensors(np.array([-np.inf, -np.inf, np.inf, 1.0, 2.0]).reshape(1, 5, 1), backend)
    assert numpy(ops.max_pool(x, 2, padding="same")).ravel().tolist() == [-np.inf, np.inf, 2]
    assert numpy(ops.average_pool(x, 2, padding="same")).ravel().tolist() == [-np.inf, np.inf, 2]
    assert numpy(ops.adaptive_max_pool(x, 3)).ravel().tolist() == [-np.inf, np.inf, 2]
    assert numpy(ops.adaptive_average_pool(x[:, 2:], 2)).ravel().tolist() == [np.inf, 1.5]


def test_gradient_of_nan_and_infinite_windows_stays_inside():
    """The first element of the window receives it, never one beyond the edge."""
    x = np.array([-np.inf, -np.inf, np.nan]).reshape(1, 3, 1)
    chosen = ops.window_positions(x, ops.window_max(x, (2,), (2,), ((1, 0),), False), (2,), (2,), ((1, 0),), False)
    assert chosen.ravel().tolist() == [0, 1]


def test_nan_propagates_except_on_tensorflow():
    """Stated in docs/differences.md."""
    x = np.array([1.0, np.nan, 2.0, 3.0]).reshape(1, 4, 1)
    for backend in BACKENDS:
        for y in (ops.max_pool(tensors(x, backend), 2), ops.adaptive_max_pool(tensors(x, backend), 2)):
            np.testing.assert_array_equal(numpy(y).ravel(), [1 if backend == "tensorflow" else np.nan, 3])


@pytest.mark.parametrize("size", [4, 5, 7])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
def test_same_padding_matches_tensorflow(size, window, stride, tf):
    x = np.random.default_rng(size).standard_normal((1, size, size, 2))
    for op, native in ((ops.max_pool, tf.nn.max_pool2d), (ops.average_pool, tf.nn.avg_pool2d)):
        np.testing.assert_allclose(op(x, window, stride, "same"), native(x, window, stride, "SAME").numpy())


@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes_and_empty_batches(backend):
    single, empty = tensors(np.ones((1, 4, 1), "float32"), backend), tensors(np.ones((0, 4, 3)), backend)
    for op in (ops.max_pool, ops.average_pool, ops.adaptive_max_pool, ops.adaptive_average_pool):
        assert ops.dtype(op(single, 2)) == ops.dtype(op(single, 3)) == "float32"
        assert tuple(op(empty, 2).shape) == (0, 2, 3)
    assert ops.dtype(ops.average_pool(single, 3, padding="same")) == "float32"


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x = tensors(np.ones((2, 4, 4, 3)), backend)
    for op in (ops.max_pool, ops.average_pool):
        name = op.op.name
        with pytest.raises(ArgumentError, match=f"`{name}`: `padding`"):
            op(x, 2, padding="causal")
        with pytest.raises(ArgumentError, match=f"`{name}`: `data_format`"):
            op(x, 2, data_format="last")
        with pytest.raises(ArgumentError, match=f"`{name}`: `pool_size`"):
            op(x, (2, 2, 2))
        with pytest.raises(ArgumentError, match=f"`{name}`: `strides`"):
            op(x, 2, 0)
        with pytest.raises(ShapeError, match=f"`{name}`: `inputs` must not be smaller"):
            op(x, 5)
        with pytest.raises(ShapeError, match=f"`{name}`: `inputs`"):
            op(x[0, 0], 2)
    for op in (ops.adaptive_max_pool, ops.adaptive_average_pool):
        name = op.op.name
        with pytest.raises(ArgumentTypeError, match=f"`{name}`: `output_size`"):
            op(x, 1.5)
        with pytest.raises(ShapeError, match=f"`{name}`: `inputs`"):
            op(x[:, :0], 2)
