"""Graphs of TensorFlow's whose tensors have a leading axis of unknown size: a batch."""

import numpy as np
import parity
import pytest
from hypothesis import HealthCheck, given, settings
from test_parity import CASES, by_id

from gradops import _tree, config, ops
from gradops.errors import GradopsError, ShapeError

tf = pytest.importorskip("tensorflow")
once = settings(max_examples=1, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
X = np.random.default_rng(0).normal(size=(4, 3))


def in_graph(f, *xs, every: bool = False):
    """``f`` in a graph that knows all sizes but the first of the first tensor (``every``: of each tensor)."""
    xs = [tf.constant(x) for x in xs]
    shapes = [[None, *x.shape[1:]] if not i or every else x.shape for i, x in enumerate(xs)]
    signature = [tf.TensorSpec(shape, x.dtype) for shape, x in zip(shapes, xs)]
    return tf.function(f, input_signature=signature, autograph=False)(*xs)


WORK = {
    "matmul": lambda x: ops.matmul(x, X[:3]),
    "softmax": ops.softmax,
    "layer_normalization": ops.layer_normalization,
    "mean": lambda x: ops.mean(x, 0),
    "reshape": lambda x: ops.reshape(x, (-1,)),
    "one_hot": lambda x: ops.one_hot(ops.cast(x[:, 0] > 0, "int64"), 2),
    "floor": ops.floor,
    "sort": ops.sort,
    "top_k": lambda x: ops.top_k(x, 2)[0],
    "quantile": lambda x: ops.quantile(x, [0.1, 0.9], 0),
    "trapezoid": lambda x: ops.trapezoid(x, axis=0),
    "diff": lambda x: ops.diff(x, axis=0),
    "tile": lambda x: ops.tile(x, (2, 1)),
    "tril": ops.tril,
    "pad": lambda x: ops.pad(x, 1),
    "split": lambda x: ops.split(x, [1, 3])[1],
    "take_along_axis": lambda x: ops.take_along_axis(x, np.array([[0, -1, 0]]), 0),
    "scatter_update": lambda x: ops.scatter_update(x, np.array([[1], [3]]), X[:2]),
    "slice": lambda x: ops.slice(x, (0, 1), (-1, 2)),
    "rearrange": lambda x: ops.rearrange(x, "b c -> (b c)"),
    "layer normalization": lambda x: ops.layer_normalization(x, X[0], X[1]),
    "affine_transform": lambda x: ops.image.affine_transform(x[:, None, :, None], [1, 0.1, 0, 0, 1, 0, 0, 0]),
    "sizes": lambda x: ops.reshape(x, (ops.shape(x)[1], ops.shape(x)[0])),
    "arange": lambda x: ops.arange(ops.shape(x)[0]),
}


@pytest.mark.parametrize("name", WORK)
def test_a_batch_of_unknown_size(name):
    """The values and the gradient that it has eagerly."""
    f = WORK[name]

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            loss = tf.reduce_sum(tf.cast(y, tf.float64) ** 2)
        return y, tape.gradient(loss, x, unconnected_gradients="zero")

    for got, want in zip(in_graph(both, X), both(tf.constant(X))):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_batch_that_is_empty_when_it_runs():
    empty = np.zeros((0, 3))
    for f in (lambda x: ops.trapezoid(x, axis=0), lambda x: ops.diff(x, axis=0), lambda x: ops.isin(1.0, x)):
        np.testing.assert_array_equal(in_graph(f, empty), parity.numpy(f(tf.constant(empty))))
    np.testing.assert_array_equal(in_graph(lambda x: ops.histogram(x[:, 0], 2)[1], empty), [0, 0.5, 1])


NAMED = {
    "cumprod": lambda x: ops.cumprod(x, 0),
    "diagonal": ops.diagonal,
    "pad": lambda x: ops.pad(x, 1, "reflect"),
    "scatter_update": lambda x: ops.scatter_update(x, np.array([[1], [1]]), X[:2]),
}


@pytest.mark.parametrize("name", NAMED)
def test_an_unknown_size_is_named(name):
    with pytest.raises(
        ShapeError, match=rf"`{name}`: the sizes of `\w+` must be known in a graph; got the shape \(None"
    ):
        in_graph(NAMED[name], X)


SKIPPED = dict.fromkeys(
    ("eigh-symmetric", "qr-general", "qr-wide-general", "svd-regular"), "the case asks the tensor for its sizes"
) | {"bincount-rows": "in a trace `minlength` is the length"}
SKIPPED |= dict.fromkeys(
    [f"{op}-nothing of an empty part" for op in ("get_item", "add_at", "set_at")],
    "that a part is empty the graph learns when it runs: TensorFlow's own error",
)


POSSIBLE = [case for case in CASES if not ("tensorflow" in case.skip or case.by_value or case.id in SKIPPED)]


@pytest.mark.long
@pytest.mark.parametrize("every", [False, True], ids=["first", "every"])
@pytest.mark.parametrize("case", POSSIBLE, ids=by_id)
def test_every_case(case, every):
    """The values that it has eagerly, or an error of gradops'."""

    @once
    @given(case.inputs)
    def each(arguments):
        leaves, structure = _tree.flatten(arguments)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.ndim]
        if not places:
            return
        fixed = [parity.tensors(leaf, "tensorflow") for leaf in leaves]

        def f(*xs):
            given = list(fixed)
            for i, x in zip(places, xs):
                given[i] = x
            return case.function()(**_tree.unflatten(structure, given))

        xs = [leaves[i] for i in places]
        with config.backend_scope("tensorflow"):
            want = parity.flat(parity.numpy(f(*map(tf.constant, xs))))
            try:
                got = parity.flat(parity.numpy(in_graph(f, *xs, every=every)))
            except GradopsError:
                return
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9)

    each()
