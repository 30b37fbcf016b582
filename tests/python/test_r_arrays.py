"""R operators and functions on tensors; the R package's own tests compare with R."""

import numpy as np
import pytest

from gradops import backends, errors, ops
from gradops.interop import r
from gradops.interop.r import arrays


def values(x):
    return np.asarray(ops.convert_to_numpy(x))


@pytest.mark.parametrize("backend", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("shape", [(6,), (3, 2), (3, 1, 2), (2, 3, 4)])
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_vector_is_recycled_along_columns(backend, shape, count):
    owner = backends.lookup(backend)
    x, v = np.arange(np.prod(shape)).reshape(shape) + 0.5, np.arange(count) + 1.0
    expected = x - np.resize(v, x.size).reshape(shape, order="F")
    subtract = r.operator_form("subtract")
    np.testing.assert_array_equal(values(subtract(owner.convert(x), owner.convert(v))), expected)
    np.testing.assert_array_equal(values(subtract(owner.convert(v), {"<R>": x})), -expected)


def test_lengths_that_cannot_be_recycled_are_an_error():
    add = r.operator_form("add")
    failure = add(np.ones((3, 2)), np.ones(4))
    assert failure.fields()["kind"] == "shape" and "3 x 2" in failure.fields()["message"]
    assert values(add(np.ones((3, 1)), np.ones((1, 2)))).shape == (3, 2)


def test_recycling_needs_static_shapes():
    tf = pytest.importorskip("tensorflow")

    @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float64)])
    def along(x):
        with pytest.raises(errors.ShapeError, match=r"\? x 2"):
            arrays.recycle(x, tf.ones(2, tf.float64))
        return x

    along(np.ones((3, 2)))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (2, 2, 2), (4,), ()])
def test_filling_is_by_column(shape):
    x = np.arange(6.0).reshape(2, 3)
    expected = np.resize(x.ravel(order="F"), int(np.prod(shape))).reshape(shape, order="F")
    np.testing.assert_array_equal(values(arrays.filled(x, shape)), expected)
    np.testing.assert_array_equal(arrays.flat(x), x.ravel(order="F"))
    with pytest.raises(errors.ShapeError):
        arrays.repeated(np.ones(0), 3)
