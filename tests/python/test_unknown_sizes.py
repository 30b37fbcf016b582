"""TensorFlow graphs whose tensors have a batch axis of unknown size."""

import numpy as np
import parity
import pytest
from test_parity import CASES, by_id

import gradops
from gradops import _tree, config, ops
from gradops.errors import GradopsError, ShapeError

tf = pytest.importorskip("tensorflow")
ROWS = np.random.default_rng(0).normal(size=(7, 3))
X = ROWS[:4]


def in_graph(f, *xs, every: bool = False):
    """Run ``f`` in a graph that knows all sizes except the first of the first tensor (``every``: of each tensor)."""
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
    "scan": lambda x: ops.scan(multiplied, ops.zeros((3,)), x)[1],
    "scan of a length": lambda x: ops.scan(multiplied, ops.zeros((3,)), x, length=ops.shape(x)[0])[1],
    "scan from the end": lambda x: ops.scan(multiplied, ops.zeros((3,)), x, reverse=True)[0],
    "scan of columns": lambda x: ops.scan(multiplied, x[:, 0], ops.transpose(x))[1],
    "fori_loop": lambda x: ops.fori_loop(0, ops.shape(x)[0], lambda i, c: c + ops.multiply(i, x[i]), ops.zeros((3,))),
    "while_loop": lambda x: ops.while_loop(lambda c: ops.sum(c * c) < 1e3, lambda c: (c * 2.0,), (x,))[0],
    "map": lambda x: ops.map(lambda row: ops.sum(row) * row, x),
    "map of a pair": lambda x: ops.map(lambda pair: ops.sum(pair[0] * pair[1]), (x, x)),
    "vectorized_map": lambda x: ops.vectorized_map(lambda row: ops.sum(row) * row, x),
    "vmap": lambda x: gradops.vmap(lambda row, w: ops.sum(row) * w, (0, None))(x, X[0]),
    "vmap of columns": lambda x: gradops.vmap(lambda column: ops.sum(column) * column, 1, 1)(x),
    "vmap of a gradient": lambda x: gradops.vmap(gradops.grad(lambda row: ops.sum(row**3)))(x),
    "vmap of vmap": lambda x: gradops.vmap(gradops.vmap(lambda element: element**2))(x),
    "vectorize": lambda x: ops.vectorize(lambda a, b: a * b)(x, X[0]),
    "vectorize by a signature": lambda x: ops.vectorize(ops.sum, signature="(n)->()")(x),
    "vectorize over an unknown core": lambda x: ops.vectorize(ops.sum, signature="(n)->()")(ops.transpose(x)),
    "associative_scan": lambda x: ops.associative_scan(ops.multiply, x),
    "associative_scan from the end": lambda x: ops.associative_scan(ops.add, x, reverse=True),
    "associative_scan of matrices": lambda x: ops.associative_scan(ops.matmul, x[:, :, None] * x[:, None, :]),
    "associative_scan of rows": lambda x: ops.associative_scan(ops.multiply, x, axis=1),
    "zeros": lambda x: x + ops.zeros(ops.shape(x)),
    "zeros of tf.shape": lambda x: x + ops.zeros(tf.shape(x)),
    "ones": lambda x: x * ops.ones((ops.shape(x)[0], 1)),
    "full": lambda x: x * ops.full(ops.shape(x), 2.0),
    "empty": lambda x: x + ops.empty((ops.shape(x)[0], 1)),
    "eye": lambda x: ops.eye(ops.shape(x)[0]) @ x,
    "eye of two sizes": lambda x: ops.eye(3, ops.shape(x)[0], 1) @ x,
    "identity": lambda x: ops.identity(ops.shape(x)[0]) @ x,
    "tri": lambda x: ops.tri(ops.shape(x)[0], k=-1) @ x,
    "linspace": lambda x: ops.linspace(0.0, x[0], ops.shape(x)[0]),
    "linspace without the end": lambda x: ops.linspace(0.0, x[0], ops.shape(x)[0], endpoint=False, retstep=True)[1],
    "logspace": lambda x: ops.logspace(0.0, x[0], ops.shape(x)[0]),
    "geomspace": lambda x: ops.geomspace(1.0, 2.0 + x[0] ** 2, ops.shape(x)[0]),
    "one_hot of classes": lambda x: ops.one_hot([0, 2, 9], ops.shape(x)[0], axis=0),
    "diag": lambda x: ops.diag(x[:, 0], 2),
    "diag below": lambda x: ops.diag(x[:, 0], -2),
    "checkpoint": lambda x: gradops.checkpoint(lambda x: ops.sin(x) * ops.sum(x))(x),
    "custom_gradient": lambda x: gradops.custom_gradient(ops.sin, lambda x, upstream: upstream * 3.0)(x),
    "jacobian": lambda x: gradops.jacobian(lambda x: ops.sum(x**2, 1))(x),
    "hessian": lambda x: gradops.hessian(lambda x: ops.sum(x**3))(x),
    "hvp": lambda x: gradops.hvp(lambda x: ops.sum(x**3), (x,), (x,))[1],
    "jvp": lambda x: gradops.jvp(lambda x: x**3, (x,), (x,))[1],
    "vjp": lambda x: gradops.vjp(lambda x: x**3, x)[1](x),
}


def multiplied(carry, row):
    return carry + row, carry * row


@pytest.mark.short_cases(34)
@pytest.mark.parametrize("n", [4, pytest.param(7, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", WORK)
def test_batch_of_unknown_size(name, n):
    """Values and gradients equal eager ones."""
    f = WORK[name]

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            loss = tf.reduce_sum(tf.cast(y, tf.float64) ** 2)
        return y, tf.convert_to_tensor(tape.gradient(loss, x, unconnected_gradients="zero"))

    for got, want in zip(in_graph(both, ROWS[:n]), both(tf.constant(ROWS[:n]))):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def squares(x):
    return x * x


def norm(x):
    return ops.sum(x * x)


CONVERTED = {
    "grad": lambda x: gradops.grad(norm)(x),
    "value_and_grad": lambda x: gradops.value_and_grad(norm)(x),
    "jacobian": lambda x: gradops.jacobian(squares)(x),
    "hessian": lambda x: gradops.hessian(norm)(x),
    "vjp": lambda x: gradops.vjp(squares, x)[1](x),
    "jvp": lambda x: gradops.jvp(squares, (x,), (x,))[1],
    "hvp": lambda x: gradops.hvp(norm, (x,), (x,))[1],
    "checkpoint": lambda x: gradops.checkpoint(squares)(x),
    "custom_gradient": lambda x: gradops.custom_gradient(squares, squares)(x),
    "jit": lambda x: gradops.jit(squares)(x),
    "vmap": lambda x: gradops.vmap(norm)(x),
    "vmap of vmap": lambda x: gradops.vmap(gradops.vmap(squares))(x),
    "map": lambda x: ops.map(norm, x),
    "vectorize": lambda x: ops.vectorize(squares)(x),
    "scan": lambda x: ops.scan(multiplied, x[0], x)[1],
    "scaled_gradient": lambda x: gradops.scaled_gradient(x, -1.0),
    "stop_gradient": lambda x: gradops.stop_gradient(x),
}


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("name", CONVERTED)
def test_autograph_gives_no_warning(name, caplog):
    """AutoGraph must not try to convert gradops code, else it warns "please report this to the TensorFlow team"."""
    tf.function(CONVERTED[name])(tf.constant(X))
    assert not [record for record in caplog.records if "AutoGraph could not" in record.getMessage()]


def test_batch_that_is_empty_at_run_time():
    empty = np.zeros((0, 3))
    for f in (lambda x: ops.trapezoid(x, axis=0), lambda x: ops.diff(x, axis=0), lambda x: ops.isin(1.0, x)):
        np.testing.assert_array_equal(in_graph(f, empty), parity.numpy(f(tf.constant(empty))))
    np.testing.assert_array_equal(in_graph(lambda x: ops.histogram(x[:, 0], 2)[1], empty), [0, 0.5, 1])


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("name", ["scan", "map", "vmap", "associative_scan", "eye", "linspace", "geomspace", "diag"])
def test_few_rows(name, n):
    spaced = getattr(ops, name, None)
    f = (lambda x: spaced(1.0, 2.0, ops.shape(x)[0])) if name.endswith("space") else WORK[name]
    got, want = in_graph(f, X[:n]), parity.numpy(f(tf.constant(X[:n])))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-15)


def test_creating_a_tensor_of_unknown_size_gives_a_hint():
    with pytest.raises(ShapeError, match=r"`ops.shape\(x\)` has the sizes"):
        in_graph(lambda x: ops.zeros(x.shape), X)


NAMED = {
    "cumprod": lambda x: ops.cumprod(x, 0),
    "diagonal": ops.diagonal,
    "slice": lambda x: ops.slice(x, (1, 0), (2, 3)),
    "slice_update": lambda x: ops.slice_update(x, (1, 0), X[:2]),
    "unstack": ops.unstack,
    "pad": lambda x: ops.pad(x, 1, "reflect"),
    "scatter_update": lambda x: ops.scatter_update(x, np.array([[1], [1]]), X[:2]),
}


@pytest.mark.parametrize("name", NAMED)
def test_unknown_sizes_are_named(name):
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
    """Values equal eager ones, or a gradops error is raised."""

    arguments = case.example()
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
