"""Shape, joining, creation, diagonals, scattering, rearrange: bad input, dtypes, single tensors as lists, graphs."""

import os

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, autodiff, config, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, GradopsError, ShapeError

x = np.arange(12.0).reshape(3, 4)

BAD = [
    (lambda t: ops.reshape(t, (5, 2)), GradopsError, "`reshape`"),
    (lambda t: ops.transpose(t, (0, 2)), AxisError, "`transpose`: `axes` must be between -2 and 1"),
    (lambda t: ops.transpose(t, (0, 0)), GradopsError, "`transpose`"),
    (lambda t: ops.swapaxes(t, 0, 2), AxisError, "`axis2`"),
    (lambda t: ops.moveaxis(t, 0, (0, 1)), ArgumentError, "as many dimensions"),
    (lambda t: ops.moveaxis(t, (0, -2), (0, 1)), AxisError, "twice"),
    (lambda t: ops.expand_dims(t, 4), GradopsError, "`expand_dims`"),
    (lambda t: ops.squeeze(t, 0), GradopsError, "`squeeze`"),
    (lambda t: ops.broadcast_to(t, (3, 5)), GradopsError, "`broadcast_to`"),
    (lambda t: ops.flip(t, 2), AxisError, "`flip`: `axis`"),
    (lambda t: ops.fliplr(t[0]), ShapeError, "at least 2 dimensions"),
    (lambda t: ops.flipud(t[0, 0]), ShapeError, "at least 1 dimensions"),
    (lambda t: ops.rot90(t, axes=(0, 0)), AxisError, "twice"),
    (lambda t: ops.rot90(t, axes=(0, 1, 0)), AxisError, "`rot90`: `axes`"),
    (lambda t: ops.rot90(t, 0.5), ArgumentTypeError, "`k` must be a whole number"),
    (lambda t: ops.roll(t, 1, 2), AxisError, "`roll`: `axis`"),
    (lambda t: ops.tile(t, -1), ArgumentError, "must not be negative"),
    (lambda t: ops.repeat(t, -1), ArgumentError, "at least 0"),
    (lambda t: ops.repeat(t, [1, 2], 0), ArgumentError, "3 for a dimension of 3; got 2"),
    (lambda t: ops.repeat(t, 1.5), ArgumentTypeError, "whole number"),
    (lambda t: ops.pad(t, -1), ArgumentError, "at least 0"),
    (lambda t: ops.pad(t, [[1, 2]] * 3), ArgumentError, "each of the 2 dimensions"),
    (lambda t: ops.pad(t, 1, "mirror"), ArgumentError, "`mode` must be one of 'constant'"),
    (lambda t: ops.pad(t, 1, "edge", 1.0), ArgumentError, "needs the mode 'constant'"),
    (lambda t: ops.pad(t[:0], 1, "edge"), ArgumentError, "empty"),
    (lambda t: ops.view(t, "nothing"), ArgumentError, "`dtype` must be one of"),
    (lambda t: ops.view(t[0, 0], "float32"), ShapeError, "`view`"),
    (lambda t: ops.view(ops.cast(t[:, :3], "float32"), "float64"), ShapeError, "whole elements of 64 bits"),
    (lambda t: ops.concatenate([t, t[:, :2]]), ShapeError, "elsewhere than along the axis"),
    (lambda t: ops.concatenate([t, t], 2), AxisError, "`concatenate`: `axis`"),
    (lambda t: ops.concatenate([t[0, 0]]), ShapeError, "0-d"),
    (lambda t: ops.stack([t, t[:2]]), ShapeError, "must not differ in shape"),
    (lambda t: ops.stack([t], 3), AxisError, "`stack`: `axis`"),
    (lambda t: ops.split(t, 2), ArgumentError, "must divide the dimension of 3"),
    (lambda t: ops.split(t, 0), ArgumentError, "must divide"),
    (lambda t: ops.split(t, [2, 1]), ArgumentError, "ascend"),
    (lambda t: ops.split(t, 2, 2), AxisError, "`split`: `axis`"),
    (lambda t: ops.array_split(t, 0), ArgumentError, "at least 1"),
    (lambda t: ops.dsplit(t, 2), ShapeError, "at least 3 dimensions"),
    (lambda t: ops.vsplit(t[0], 2), ShapeError, "at least 2 dimensions"),
    (lambda t: ops.unstack(t, 4), ArgumentError, "`num` must be 3"),
    (lambda t: ops.unstack(t, None, 2), AxisError, "`unstack`: `axis`"),
    (lambda t: ops.vander(t), ShapeError, "must have 1 dimensions"),
    (lambda t: ops.meshgrid(t[0], t[1], indexing="yx"), ArgumentError, "'xy', 'ij'"),
    (lambda t: ops.diag(ops.reshape(t, (3, 2, 2))), ShapeError, "1 or 2 dimensions"),
    (lambda t: ops.diagonal(t[0]), ShapeError, "at least 2 dimensions"),
    (lambda t: ops.diagonal(t, axis1=1), AxisError, "twice"),
    (lambda t: ops.trace(t[0]), ShapeError, "`trace`"),
    (lambda t: ops.tril(t[0]), ShapeError, "`tril`"),
    (lambda t: ops.get_item(t, 3), AxisError, "between -3 and 2 for a dimension of 3; got 3"),
    (lambda t: ops.get_item(t, (0, 0, 0)), AxisError, "at most 2 dimensions"),
    (lambda t: ops.get_item(t, (slice(None), [0, -5])), AxisError, "between -4 and 3"),
    (lambda t: ops.get_item(t, [[True, False]]), ShapeError, r"a mask in `key` must have the shape \(3, 4\)"),
    (lambda t: ops.get_item(t, 0.5), ArgumentTypeError, "whole numbers"),
    (lambda t: ops.set_at(t, [7], 0.0), AxisError, "`set_at`: `key`"),
    (lambda t: ops.add_at(t, (0, [7]), 0.0), AxisError, "`add_at`: `key`"),
    (lambda t: ops.take(t, [0, 4], 1), AxisError, "`take`: `indices` must be between -4 and 3"),
    (lambda t: ops.take(t, [12]), AxisError, "between -12 and 11"),
    (lambda t: ops.take(t, [0], 2), AxisError, "`take`: `axis`"),
    (lambda t: ops.take_along_axis(t, [[4]], 1), AxisError, "`take_along_axis`: `indices`"),
    (lambda t: ops.take_along_axis(t, [0], 1), ShapeError, "as many dimensions"),
    (lambda t: ops.where(t > 1, t), ArgumentError, "only one of `x1` and `x2`"),
    (lambda t: ops.where(t > 1, t, t[:2]), ShapeError, "`where`"),
    (lambda t: ops.nonzero(t[0, 0]), ShapeError, "`nonzero`"),
    (lambda t: ops.select([t > 1], [t, t]), ArgumentError, "as long as each other"),
    (lambda t: ops.select([], []), ArgumentError, "at least 1"),
    (lambda t: ops.scatter([[3]], t[:1], (3, 4)), AxisError, "`scatter`: `indices`"),
    (lambda t: ops.scatter([[0]], t, (3, 4)), ShapeError, r"must have the shape \(1, 4\)"),
    (lambda t: ops.scatter([[0, 0, 0]], t, (3, 4)), ShapeError, "at most 2 dimensions"),
    (lambda t: ops.scatter_update(t, [[0]], t[:1], "mean"), ArgumentError, "None, 'add', 'max', 'min', 'mul'"),
    (lambda t: ops.scatter_update(t, [[0, 9]], t[0, :1]), AxisError, "between -4 and 3"),
    (lambda t: ops.slice(t, [0, 2], [1, 3]), AxisError, "room for 3 in a dimension of 4; got 2"),
    (lambda t: ops.slice(t, [0], [1, 3]), ArgumentError, "each of the 2 dimensions; got 1"),
    (lambda t: ops.slice(t, [0, 0], [1]), ArgumentError, "each of the 2 dimensions; got 1"),
    (lambda t: ops.slice(t, [0, 0], [1, -2]), ArgumentError, "must not be negative"),
    (lambda t: ops.slice_update(t, [2, 0], t[:2]), AxisError, "`slice_update`"),
    (lambda t: ops.slice_update(t, [2, 0], t[0]), ShapeError, "`updates` must have 2 dimensions"),
    (lambda t: ops.segment_sum(t, [0, 1]), ShapeError, "a vector as long as"),
    (lambda t: ops.segment_max(t, [[0, 1, 2]]), ShapeError, "a vector as long as"),
    (lambda t: ops.segment_min(t, [0.5, 1, 2]), ArgumentError, "whole numbers"),
    (lambda t: ops.segment_prod(t, [0, 1, 2], -1), ArgumentError, "must be at least 0"),
    (lambda t: ops.unravel_index([12], (3, 4)), AxisError, "between -12 and 11"),
    (lambda t: ops.rearrange(t, "a b"), ArgumentError, "one '->'"),
    (lambda t: ops.rearrange(t, "a b -> a"), ArgumentError, "loses 'b'"),
    (lambda t: ops.rearrange(t, "a b -> a b c"), ArgumentError, "makes up 'c'"),
    (lambda t: ops.rearrange(t, "a a -> a"), ArgumentError, "'a' twice"),
    (lambda t: ops.rearrange(t, "a (b -> a b"), ArgumentError, "does not close"),
    (lambda t: ops.rearrange(t, "a b) -> a b"), ArgumentError, "not open"),
    (lambda t: ops.rearrange(t, "a ((b)) -> a b"), ArgumentError, "inside parentheses"),
    (lambda t: ops.rearrange(t, "a 4 -> a 4"), ArgumentError, "the number 4"),
    (lambda t: ops.rearrange(t, "a b.. -> a b.."), ArgumentError, "three dots"),
    (lambda t: ops.rearrange(t, "a, b -> b a"), ArgumentError, "which is no name"),
    (lambda t: ops.rearrange(t, "(a ...) -> a ..."), ArgumentError, "parentheses on the left"),
    (lambda t: ops.rearrange(t, "a b c -> a b c"), ShapeError, "needs 3 dimensions"),
    (lambda t: ops.rearrange(t, "a b c ... -> a b c ..."), ShapeError, "needs at least 3 dimensions"),
    (lambda t: ops.rearrange(t, "a (b c) -> a b c"), ArgumentError, "'b', 'c' open"),
    (lambda t: ops.rearrange(t, "a (b c) -> a b c", b=3), ShapeError, r"3 does not divide the dimension \(b c\) of 4"),
    (lambda t: ops.rearrange(t, "a b -> b a", b=3), ShapeError, "the dimension b .* must be 3"),
    (lambda t: ops.rearrange(t, "1 b -> b"), ShapeError, "the dimension 1 .* must be 1"),
    (lambda t: ops.rearrange(t, "a b -> b a", c=3), ArgumentError, "'c' is not in the pattern"),
    (lambda t: ops.rearrange(t, "a b -> b a", b=3.5), ArgumentTypeError, "`b` must be a whole number"),
]


def skip_on_a_gpu(backend):
    if backend == "torch" and os.environ.get("GRADOPS_TEST_DEVICE"):
        pytest.skip("PyTorch's check of positions on a GPU ends all use of it in this process")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call, error, message", BAD, ids=[m for *_, m in BAD])
def test_bad_input(call, error, message, backend):
    """Every backend raises the same error, which names the op."""
    if error is AxisError:
        skip_on_a_gpu(backend)
    with pytest.raises(error, match=message), config.backend_scope(backend):
        call(tensors(x, backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_index_out_of_range_is_reported(backend):
    """R reports the index counted from 1, so the error carries it."""
    skip_on_a_gpu(backend)
    with pytest.raises(AxisError) as caught:
        ops.take(tensors(x, backend), [1, 7], 1)
    assert (caught.value.position, caught.value.argument) == (7, "indices")
    assert caught.value.fields["bounds"].size == 4


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float32", "complex64"])
def test_dtypes_are_preserved(backend, dtype):
    """Ops that move elements keep the dtype, even if they add zeros."""
    t = tensors((x > 3).astype(dtype), backend)
    moved = [
        ops.pad(t, 1), ops.tile(t, 2), ops.repeat(t, 2), ops.rot90(t), ops.tril(t), ops.triu(t, 1), ops.diag(t),
        ops.diag(t[0]), ops.take(t, [0]), ops.take_along_axis(t, [[0]], 1), ops.unstack(t)[0], ops.ravel(t),
        ops.rearrange(t, "a b -> b a"), ops.slice(t, [0, 0], [1, 1]), ops.set_at(t, 0, t[1]), ops.moveaxis(t, 0, 1),
        ops.full_like(t, 1), ops.empty_like(t), ops.where(t[:1] == t, t, False), ops.split(t, 3)[0],
        ops.scatter_update(t, [[0, 0]], t[0, :1]), ops.hstack([t, t]), ops.append(t, t), *ops.meshgrid(t, t),
    ]  # fmt: skip
    assert {ops.dtype(m) for m in moved} == {dtype}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", ["concatenate", "stack", "hstack", "vstack", "dstack"])
def test_single_tensor_acts_as_a_list_of_its_rows(backend, op):
    """A single tensor is accepted in place of a list of its rows; its gradient covers all rows."""
    wanted = getattr(np, op)(list(x))
    assert np.array_equal(numpy(getattr(ops, op)(tensors(x, backend))), wanted)
    if backend != "torch":
        v = Variable(tensors(x, backend), requires_grad=True)
        y = getattr(ops, op)(v)
        weights = tensors(np.arange(12.0).reshape(wanted.shape), backend)
        (g,) = autodiff.grad(ops.sum(y * weights), v)
        hot = [getattr(np, op)(list(e.reshape(3, 4))) for e in np.eye(12)]
        np.testing.assert_allclose(numpy(g).ravel(), [np.sum(h * numpy(weights)) for h in hot])


@pytest.mark.parametrize("backend", ["numpy", "jax", "tensorflow"])
def test_variables_as_indices(backend):
    """The ``argmax`` of a variable is itself a variable and can be an index."""
    v = Variable(tensors(x, backend), requires_grad=True)
    rows = ops.argmax(v, axis=0)
    picked = v[rows, [0, 1, 2, 3]]
    (g,) = autodiff.grad(ops.sum(picked * picked), v)
    wanted = np.zeros_like(x)
    wanted[2] = 2 * x[2]
    np.testing.assert_array_equal(numpy(g), wanted)
    np.testing.assert_array_equal(numpy(v[v > 5]), x[x > 5])
    np.testing.assert_array_equal(numpy(ops.take(v, rows, 0)), x[[2, 2, 2, 2]])


KEYS = [
    (slice(None, None, -1), [0, 2]),
    ([0, 1], slice(None, None, 2)),
    x > 4,
    (slice(None), np.array([True, False, True, True])),
    (..., None, [1, 1]),
    ([[0], [2]], [1, 3]),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("trace", ["jax.jit", "tf.function", "tf.function, key inside"])
def test_indexing_in_traces(trace, key):
    """Covers NumPy-style keys inside ``jit`` and graphs, with gradients; in graphs also symbolic keys."""
    wanted = np.zeros_like(x)
    np.add.at(wanted, key, 2 * x[key])
    if trace == "jax.jit":
        import jax

        y = jax.jit(lambda t: ops.get_item(t, key))(x)
        g = jax.jit(jax.grad(lambda t: ops.sum(ops.square(ops.get_item(t, key)))))(x)
    else:
        import tensorflow as tf

        arrays = [np.asarray(k) for k in key if isinstance(k, (list, np.ndarray))] if isinstance(key, tuple) else [key]

        def filled(given):
            given = iter(given)
            if not isinstance(key, tuple):
                return next(given)
            return tuple(next(given) if isinstance(k, (list, np.ndarray)) else k for k in key)

        @tf.function
        def run(t, given):
            with tf.GradientTape() as tape:
                tape.watch(t)
                y = ops.get_item(t, filled(given) if "inside" in trace else key)
                loss = ops.sum(ops.square(y))
            return y, tape.gradient(loss, t)

        y, g = run(tf.constant(x), [tf.constant(a) for a in arrays])
    np.testing.assert_array_equal(np.asarray(y), x[key])
    np.testing.assert_allclose(np.asarray(g), wanted, rtol=1e-6)


@pytest.mark.parametrize("trace", ["jax.jit", "tf.function"])
def test_scattering_in_traces(trace):
    """The indices and starts are known only to the running program."""

    def f(t, at, ids):
        return [
            ops.take(t, at, 0), ops.scatter_update(t, ops.reshape(at, (-1, 1)), t[:2], "add"),
            ops.slice(t, [at[0], 0], [1, 2]), ops.slice_update(t, [at[0], 0], t[:1, :2]),
            ops.segment_sum(t, ids, 2), ops.segment_max(t, ids, 2), ops.segment_prod(t, ids, 2),
            ops.add_at(t, at, 1.0), ops.set_at(t, (slice(None), at), 1.0), ops.take_along_axis(t, at[None], 1),
        ]  # fmt: skip

    given = (x, np.array([1, 2]), np.array([0, -1, 0]))
    if trace == "jax.jit":
        import jax

        got = jax.jit(f)(*[tensors(a, "jax") for a in given])
    else:
        import tensorflow as tf

        got = tf.function(f, autograph=False)(*[tf.constant(a) for a in given])
    for g, w in zip(got, f(*given)):
        np.testing.assert_allclose(np.asarray(g), w)


@pytest.mark.parametrize("trace", ["jax.jit", "tf.function"])
def test_segments_in_traces_need_their_number(trace):
    with pytest.raises(ArgumentError, match="`num_segments` is needed"):
        if trace == "jax.jit":
            import jax

            jax.jit(lambda ids: ops.segment_sum(x, ids))(np.array([0, 1, 0]))
        else:
            import tensorflow as tf

            tf.function(lambda ids: ops.segment_sum(tf.constant(x), ids), autograph=False)(tf.constant([0, 1, 0]))


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_ties_and_duplicate_indices(backend):
    """Tied rows share the gradient of a segment maximum; of duplicate updates the last gets all of it."""

    def gradient(f, *values):
        if backend == "torch":
            import torch

            xs = [tensors(v, backend).requires_grad_() for v in values]
            return [numpy(g) for g in torch.autograd.grad(f(*xs), xs)]
        if backend == "jax":
            import jax

            g = jax.grad(f, tuple(range(len(values))))
            return [np.asarray(part) for part in g(*[tensors(v, "jax") for v in values])]
        if backend == "tensorflow":
            import tensorflow as tf

            xs = [tensors(v, backend) for v in values]
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = f(*xs)
            return [numpy(tf.convert_to_tensor(g)) for g in tape.gradient(y, xs)]
        xs = [Variable(v, requires_grad=True) for v in values]
        return [numpy(g) for g in autodiff.grad(f(*xs), xs)]

    ids, tied = np.array([0, 0, 1, 0]), np.array([2.0, 2.0, 5.0, 1.0])
    (g,) = gradient(lambda t: ops.sum(ops.segment_max(t, ids)), tied)
    np.testing.assert_allclose(g, [0.5, 0.5, 1, 0])
    (g,) = gradient(lambda t: ops.sum(ops.segment_min(-t, ids)), tied)
    np.testing.assert_allclose(g, [-0.5, -0.5, -1, 0])
    (g,) = gradient(lambda t: ops.sum(ops.segment_prod(t, ids)), np.array([0.0, 3.0, 0.0, 2.0]))
    np.testing.assert_allclose(g, [6, 0, 1, 0])
    weights = np.array([1.0, 10.0, 100.0])
    old, new = gradient(
        lambda a, b: ops.sum(ops.multiply(ops.set_at(a, [1, 2, 1], b), weights)), np.ones(3), np.ones(3)
    )
    np.testing.assert_allclose(old, [1, 0, 0])
    np.testing.assert_allclose(new, [0, 100, 10])


def test_like_ops_stay_on_the_backend():
    """``full_like`` and similar ops follow the tensor, not the default backend."""
    for backend in BACKENDS:
        t = tensors(x, backend)
        for default in ("numpy", "torch"):
            with config.backend_scope(default):
                made = [ops.full_like(t, 3), ops.empty_like(t), ops.pad(t, 1, constant_values=2), ops.tril(t)]
                assert {type(m) for m in made} == {type(t)}
    np.testing.assert_array_equal(ops.pad([[1]], 1, constant_values=2), [[2, 2, 2], [2, 1, 2], [2, 2, 2]])


def test_gradient_of_the_padding_constant():
    v = Variable(np.array(2.0), requires_grad=True)
    (g,) = autodiff.grad(ops.sum(ops.pad(x, ((1, 0), (0, 0)), constant_values=v)), v)
    assert numpy(g) == 4


def test_reinterpreted_bits_have_no_gradient():
    v = Variable(x, requires_grad=True)
    bits = ops.view(v, "int64")
    (g,) = autodiff.grad(ops.sum(v) + ops.sum(ops.cast(bits, "float64")) * 0, v, allow_unused=True)
    np.testing.assert_array_equal(numpy(g), np.ones_like(x))


def test_out_of_range_indices_in_jax_traces():
    """Indices known only to the running program cannot be checked."""
    import jax

    beyond = jax.jit(lambda t, i: (ops.take(t, i, 0), ops.get_item(t, i)))(x, np.array([5]))
    np.testing.assert_array_equal(beyond[0], x[[2]])  # 5 wraps around 3 rows
    np.testing.assert_array_equal(beyond[1], x[[2]])  # 5 is clamped to the last


@pytest.mark.parametrize("trace", ["jax.jit", "tf.function"])
def test_products_of_segments_in_traces(trace):
    """With traced segment ids the gradient is correct even where rows are 0."""
    data, ids = np.array([0.0, 3.0, 0.0, 2.0, 4.0, 9.0]), np.array([0, 2, 2, 0, 2, -1])
    if trace == "jax.jit":
        import jax

        value = jax.jit(lambda t, i: ops.segment_prod(t, i, 4))(data, ids)
        g = jax.jit(jax.grad(lambda t, i: ops.sum(ops.segment_prod(t, i, 4))))(data, ids)
    else:
        import tensorflow as tf

        @tf.function
        def run(t, i):
            with tf.GradientTape() as tape:
                tape.watch(t)
                y = ops.segment_prod(t, i, 4)
            return y, tf.convert_to_tensor(tape.gradient(y, t))

        value, g = run(tf.constant(data), tf.constant(ids))
    np.testing.assert_allclose(value, [0, 1, 0, 1])
    np.testing.assert_allclose(g, [2, 0, 12, 0, 0, 0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key", [(slice(0, 0), [9]), ([9], slice(0, 0)), (np.zeros(3, bool), 9)])
def test_index_arrays_with_an_empty_slice(backend, key):
    """PyTorch returns an empty tensor: docs/differences.md."""
    t = tensors(x, backend)
    is_unseen = backend == "numpy" and np.__version__ < "2" and not isinstance(key[0], np.ndarray)
    if backend == "torch" or is_unseen:
        assert 0 in ops.get_item(t, key).shape
    else:
        with pytest.raises(AxisError):
            ops.get_item(t, key)


@pytest.mark.parametrize(
    "widths", [(1, 2), [1.0, 2], np.array([1, 2]), [np.int64(1), 2], [[1, 2]], [np.array([1, 2])], ((1, 2), [1, 2])]
)
def test_forms_of_padding_widths(widths):
    x = np.ones((2, 3))
    np.testing.assert_array_equal(ops.pad(x, widths), np.pad(x, (1, 2)))


@pytest.mark.parametrize("widths", [[1, 2, 3], [[1, 2], [1, 2], [1, 2]], [[1, 2, 3]], -1, [[1], -1], [1.5], None, [[]]])
def test_invalid_padding_widths(widths):
    with pytest.raises(ArgumentError, match="`pad`: `pad_width` must be"):
        ops.pad(np.ones((2, 3)), widths)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("shape", [(3, 100), (2, 3, 100)])
def test_add_at_indices_in_long_rows(name, shape):
    """Each row adds all of its updates, including those at duplicate indices."""
    rng = np.random.default_rng(4)
    x, places = rng.normal(size=shape), rng.integers(-100, 100, 150)
    key = (slice(None),) * (len(shape) - 1) + (places,)
    for updates in (rng.normal(size=(*shape[:-1], 150)), rng.normal(size=150), 2.0):
        expected = x.copy()
        np.add.at(expected, (..., places), updates)
        given = tensors(x, name)
        np.testing.assert_allclose(numpy(ops.add_at(given, key, updates)), expected, rtol=1e-12)
        np.testing.assert_array_equal(numpy(given), x)
