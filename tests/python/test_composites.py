"""Stops, scales and custom gradients of ragged and sparse tensors, which keep their structure."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import gradops
from gradops import ops
from gradops.backends.interface import Backend
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError

pytestmark = [pytest.mark.filterwarnings(f"ignore:Sparse {word}:UserWarning") for word in ("CS", "invariant")]

V, W = np.array([2.0, -1.0, 0.5]), np.array([3.0, 5.0, 7.0])
ROWS, COLUMNS = np.array([0, 0, 2]), np.array([0, 1, 1])


def tensorflow_kinds(tf):
    indices = np.stack([ROWS, COLUMNS], 1)
    rows = lambda v: tf.RaggedTensor.from_row_lengths(v, [2, 0, 1])  # noqa: E731
    return {
        "ragged": (rows, lambda x: x.flat_values),
        "ragged in ragged": (lambda v: tf.RaggedTensor.from_row_lengths(rows(v), [1, 2]), lambda x: x.flat_values),
        "SparseTensor": (lambda v: tf.SparseTensor(indices, v, [3, 2]), lambda x: x.values),
        "IndexedSlices": (lambda v: tf.IndexedSlices(v, tf.constant([0, 2, 3]), tf.constant([5])), lambda x: x.values),
    }


def jax_kinds(sparse):
    def bcsr(v):
        return sparse.BCSR((v, COLUMNS, np.array([0, 2, 2, 3])), shape=(3, 2))

    indices = np.stack([ROWS, COLUMNS], 1)
    return {
        "BCOO": (lambda v: sparse.BCOO((v, indices), shape=(3, 2)), lambda x: x.data),
        "BCSR": (bcsr, lambda x: x.data),
    }


def torch_kinds(torch):
    rows, columns = torch.tensor(ROWS), torch.tensor(COLUMNS)
    starts, ends = torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 3])
    return {
        "COO": (lambda v: torch.sparse_coo_tensor(torch.stack([rows, columns]), v, (3, 2)), lambda x: x.to_dense()),
        "CSR": (lambda v: torch.sparse_csr_tensor(starts, columns, v, (3, 2)), lambda x: x.to_dense()),
        "CSC": (lambda v: torch.sparse_csc_tensor(ends, rows, v, (3, 2)), lambda x: x.to_dense()),
    }


def own_kinds(sparse):
    made = lambda v: sparse.coo_array((v, (ROWS, COLUMNS)), shape=(3, 2))  # noqa: E731
    return {"coo_array": (made, lambda x: x.values), "csr_array": (lambda v: made(v).tocsr(), lambda x: x.values)}


LIBRARIES = {
    "tensorflow": ("tensorflow", tensorflow_kinds, 4),
    "jax": ("jax.experimental.sparse", jax_kinds, 2),
    "torch": ("torch", torch_kinds, 3),
    "numpy": ("gradops.scipy.sparse", own_kinds, 2),
}


@pytest.fixture(params=[(name, i) for name, (*_, count) in LIBRARIES.items() for i in range(count)], ids=str)
def kind(request):
    """A function from a vector of values to a ragged or sparse tensor, one back, and a vector of the library."""
    name, i = request.param
    module, kinds, count = LIBRARIES[name]
    pytest.importorskip(name)
    found = list(kinds(pytest.importorskip(module)).values())
    assert len(found) == count
    return *found[i], ops.convert_to_tensor(V) if name == "numpy" else gradops.to_backend(V, name)


def weighted(back, x):
    """The sum of the values of ``x``, weighted by W where the values are a vector, otherwise by position."""
    values = back(x)
    weights = W if len(values.shape) == 1 else ops.scatter(np.stack([ROWS, COLUMNS], 1), W, (3, 2))
    return ops.sum(ops.multiply(values, weights))


def gradient(kind, change):
    make, back, v = kind
    return ops.convert_to_numpy(gradops.grad(lambda v: weighted(back, change(make(v * 1.0))))(v))


def order(kind):
    """The weights in the order of the vector of values."""
    return gradient(kind, lambda x: x)


def test_structure_and_values_are_kept(kind):
    make, back, v = kind
    x = make(v)
    for y in (
        gradops.stop_gradient(x),
        gradops.scaled_gradient(x, -2.0),
        gradops.scaled_gradient_ext(x, scale=3.0),
    ):
        assert type(y) is type(x)
        np.testing.assert_array_equal(ops.convert_to_numpy(back(y)), ops.convert_to_numpy(back(x)))


def test_gradients(kind):
    plain = order(kind)
    assert sorted(plain) == sorted(W)
    np.testing.assert_array_equal(gradient(kind, gradops.stop_gradient), 0 * V)
    for scale in (-2.0, 0.0, 3, np.float64(0.5), np.array(-1.5)):
        np.testing.assert_allclose(gradient(kind, lambda x, s=scale: gradops.scaled_gradient(x, s)), scale * plain)
        found = gradient(kind, lambda x, s=scale: gradops.scaled_gradient_ext(x, scale=s))
        np.testing.assert_allclose(found, scale * plain)


def test_structures_of_several(kind):
    make, back, v = kind

    def f(v):
        x = gradops.scaled_gradient({"a": [make(v * 1.0)], "b": v, "c": "text"}, -2.0)
        y = gradops.stop_gradient((make(v * 1.0), None))[0]
        return weighted(back, x["a"][0]) + 10 * ops.sum(x["b"]) + 100 * weighted(back, y)

    np.testing.assert_allclose(ops.convert_to_numpy(gradops.grad(f)(v)), -2 * (order(kind) + 10))


def test_refusals_name_the_fix(kind):
    make, _, v = kind
    with pytest.raises(ArgumentError, match="`scaled_gradient`: the gradient of a ragged or sparse.*several numbers"):
        gradops.scaled_gradient(make(v), np.array([1.0, 2.0]))
    for more in ({"shift": 1.0}, {"scale_shift_by_sum_over_axis": 0}):
        with pytest.raises(ArgumentError, match="(?s)`scaled_gradient_ext`.*a `shift` or an axis.*holds its values"):
            gradops.scaled_gradient_ext(make(v), scale=2.0, **more)


def test_a_custom_gradient_is_not_lost(kind):
    """PyTorch's sparse tensors are tensors; for the others the rule would not be used, so they are refused."""
    make, _, v = kind
    custom = gradops.custom_gradient(lambda x: (x, lambda upstream: -3.0 * upstream))
    if ops.is_tensor(make(v)):
        np.testing.assert_allclose(gradient(kind, custom), -3 * order(kind))
    else:
        with pytest.raises(ArgumentTypeError, match="(?s)takes tensors; got.*function of the tensor of its values"):
            gradops.grad(lambda v: weighted(kind[1], custom(make(v * 1.0))))(v)


def test_stops_and_scales_match_tensorflow():
    tf = pytest.importorskip("tensorflow")
    each = lambda f: lambda x: tf.nest.map_structure(f, x, expand_composites=True)  # noqa: E731
    theirs = each(lambda x: tf.stop_gradient(x) * 3 - x * 2 if x.dtype.is_floating else x)
    for make, back in tensorflow_kinds(tf).values():

        def value(change, make=make, back=back):
            return lambda v: tf.reduce_sum(back(change(make(v))) ** 2 * W)

        def found(change, value=value):
            v = tf.constant(V)
            with tf.GradientTape() as tape:
                tape.watch(v)
                y = value(change)(v)
            return y, tape.gradient(y, v)

        for run in (found, tf.function(found, autograph=False)):
            for mine, other in zip(run(lambda x: gradops.scaled_gradient(x, -2.0)), run(theirs), strict=True):
                np.testing.assert_allclose(mine, other)
            assert run(gradops.stop_gradient)[1] is None


def test_pytrees_of_jax_are_stopped_and_scaled():
    jax = pytest.importorskip("jax")

    @jax.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def tree_flatten(self):
            return (self.a, self.b), None

        @classmethod
        def tree_unflatten(cls, _, parts):
            return cls(*parts)

    def f(change):
        return lambda v: (change(Pair(v, 2 * v)).b * W).sum()

    for wrap in (lambda g: g, jax.jit):
        np.testing.assert_allclose(wrap(jax.grad(f(gradops.stop_gradient)))(V), 0 * V)
        np.testing.assert_allclose(wrap(jax.grad(f(lambda x: gradops.scaled_gradient(x, -1.0))))(V), -2 * W, rtol=1e-6)


def test_sparse_gradients_of_a_torch_embedding():
    torch = pytest.importorskip("torch")
    places = torch.tensor([0, 2, 2])
    upstream = np.array([[1.0, -1.0], [0.0, 0.0], [2.0, -2.0], [0.0, 0.0]])

    def found(change, sparse=True):
        w = torch.ones((4, 2), dtype=torch.float64, requires_grad=True)
        y = torch.nn.functional.embedding(places, change(w), sparse=sparse)
        (y * torch.tensor([1.0, -1.0])).sum().backward()
        return w.grad

    for scale in (-2.0, 0.0, np.array(0.0), np.array([0.0, 3.0])):
        got = found(lambda w, s=scale: gradops.scaled_gradient(w, s))
        assert got.is_sparse is (np.ndim(scale) == 0)
        np.testing.assert_allclose(got.to_dense(), scale * upstream)
    for options in ({"shift": 1.0}, {"shift": 1.0, "scale_shift_by_sum_over_axis": 0}):
        change = lambda w, o=options: gradops.scaled_gradient_ext(w, scale=0.5, **o)  # noqa: E731
        np.testing.assert_allclose(found(change), found(change, sparse=False))


def test_sparse_matrices_of_scipy_are_constants():
    from scipy import sparse

    x = sparse.csr_array(np.eye(2))
    assert gradops.stop_gradient(x) is x and gradops.scaled_gradient(x, -1.0) is x
    assert gradops.custom_gradient(lambda x: (x, lambda upstream: upstream))(x) is x


def test_tensor_arrays_are_refused():
    tf = pytest.importorskip("tensorflow")
    x = tf.TensorArray(tf.float32, size=1)
    for change in (gradops.stop_gradient, lambda x: gradops.scaled_gradient(x, 2.0)):
        with pytest.raises(ArgumentTypeError, match="(?s)TensorArray.*stack"):
            change(x)
    with pytest.raises(GradientError, match="mark"):
        gradops.set_requires_gradient(x)


@pytest.mark.parametrize("module", ["gradops.jit.backend", "gradops.functional.batched"])
def test_wrapping_backends_record_kernels_only(module):
    # Their `__getattr__` makes an op of each of NumPy's kernels, so they define the other members of the contract.
    module = importlib.import_module(module)
    members = {name for name in dir(Backend) if not name.startswith("_") and hasattr(module._kernels, name)}
    recorded = {name for name in members - set(vars(module)) if callable(getattr(module._kernels, name))}
    assert recorded == {"from_dlpack", "handed_over"}  # these take and return arrays, as ops do
