"""Graphs of TensorFlow's whose tensors have a leading axis of unknown size: a batch."""

import numpy as np
import parity
import pytest
from hypothesis import HealthCheck, given, settings
from test_parity import CASES, by_id

from gradops import config, ops
from gradops.errors import GradopsError, ShapeError

tf = pytest.importorskip("tensorflow")
once = settings(max_examples=1, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
X = np.random.default_rng(0).normal(size=(4, 3))


def in_graph(f, *xs):
    """``f`` in a graph that knows of the first tensor all sizes but the first."""
    first, *rest = map(tf.constant, xs)
    signature = [tf.TensorSpec([None, *first.shape[1:]], first.dtype), *(tf.TensorSpec(x.shape, x.dtype) for x in rest)]
    return tf.function(f, input_signature=signature, autograph=False)(first, *rest)


WORK = {
    "matmul": lambda x: ops.matmul(x, X[:3]),
    "softmax": ops.softmax,
    "layer_normalization": ops.layer_normalization,
    "mean": lambda x: ops.mean(x, 0),
    "reshape": lambda x: ops.reshape(x, (-1,)),
    "one_hot": lambda x: ops.one_hot(ops.cast(x[:, 0] > 0, "int64"), 2),
    "floor": ops.floor,
    "sign": ops.sign,
    "sort": ops.sort,
}


@pytest.mark.parametrize("name", WORK)
def test_a_batch_of_unknown_size(name):
    f = WORK[name]
    np.testing.assert_allclose(in_graph(f, X), parity.numpy(f(tf.constant(X))), rtol=1e-12)


NAMED = {
    "cumprod": lambda x: ops.cumprod(x, 0),
    "diff": lambda x: ops.diff(x, axis=0),
    "tile": lambda x: ops.tile(x, (2, 1)),
    "take_along_axis": lambda x: ops.take_along_axis(x, np.array([[0, 1, 0]]), 0),
}


@pytest.mark.parametrize("name", NAMED)
def test_an_unknown_size_is_named(name):
    with pytest.raises(
        ShapeError, match=rf"`{name}`: the sizes of `\w+` must be known in a graph; got the shape \(None"
    ):
        in_graph(NAMED[name], X)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_every_case(case):
    """The values that it has eagerly, or an error of gradops'."""
    if "tensorflow" in case.skip or case.by_value:
        pytest.skip(case.skip.get("tensorflow", "it looks at values"))

    @once
    @given(case.inputs)
    def each(arguments):
        names = [k for k, v in arguments.items() if isinstance(v, np.ndarray) and v.ndim]
        if not names:
            return
        rest = {k: parity.tensors(v, "tensorflow") for k, v in arguments.items() if k != names[0]}
        function = case.function()

        def f(x):
            return function(**{k: x if k == names[0] else rest[k] for k in arguments})

        with config.use_backend("tensorflow"):
            want = parity.flat(parity.numpy(f(tf.constant(arguments[names[0]]))))
            try:
                got = parity.flat(parity.numpy(in_graph(f, arguments[names[0]])))
            except GradopsError:
                return
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9)

    each()
