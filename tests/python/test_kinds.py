"""Arguments determine the result's dtype: half precision is kept; complex numbers keep both parts or are refused."""

import numpy as np
import pytest
import scipy.special
from parity import BACKENDS, native_gradient, numpy, tape_gradient, tensors

import gradops
from gradops import _tree, config, ops
from gradops.errors import ArgumentTypeError

everywhere = pytest.mark.parametrize("backend", BACKENDS)
rng = np.random.default_rng(5)
Z = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
HALF = "erf erfc erfinv i0 sigmoid silu gelu softplus softsign mean std nanmean nanstd logsumexp softmax glu".split()


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_half_precision_is_preserved(backend):
    x = tensors(np.array([0.5, 0.25], "float16"), backend)
    for name in HALF:
        assert ops.dtype(getattr(ops, name)(x)) == "float16", name
    for f in (ops.special.i1, ops.special.lgamma, ops.activations.normal_cdf):
        assert ops.dtype(f(x)) == "float16", f
    for n in (1, 2):
        assert ops.dtype(ops.special.polygamma(x, n)) == "float16"
    assert ops.dtype(ops.gelu(x, approximate=False)) == "float16"


@pytest.mark.short_cases(0, "jax")
@everywhere
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_in_half_precision(backend, dtype):
    """These functions have no TensorFlow kernel in every two-byte dtype."""
    if backend == "numpy" and dtype == "bfloat16":
        pytest.skip("NumPy lacks the dtype")
    values = np.array([0.75, 2.5, -0.0625])  # exactly representable in both
    x, y = (ops.cast(tensors(v, backend), dtype) for v in (values, values[::-1].copy()))
    wanted = {
        "lgamma": scipy.special.gammaln(values),
        "i0": scipy.special.i0(values),
        "i1": scipy.special.i1(values),
        "digamma": scipy.special.digamma(values),
        "trigamma": scipy.special.polygamma(1, values),
        "erfinv": scipy.special.erfinv(values[[0, 2, 2]]),
        "floor_divide": values // values[::-1],
        "nextafter": values + {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype] * np.array([1, 4, -(2.0**-3)]),
    }
    inside = ops.cast(tensors(values[[0, 2, 2]], backend), dtype)
    found = {
        "lgamma": ops.special.lgamma(x),
        "i0": ops.i0(x),
        "i1": ops.special.i1(x),
        "digamma": ops.special.polygamma(x, 0),
        "trigamma": ops.special.polygamma(x, 1),
        "erfinv": ops.erfinv(inside),
        "floor_divide": ops.floor_divide(x, y),
        "nextafter": ops.nextafter(x, ops.cast(tensors(np.array([1.0, 3.0, -1.0]), backend), dtype)),
    }
    wanted |= {"median": np.median(values), "unique": np.array([-0.0625, 0.75, 2.5])}
    found |= {"median": ops.median(x), "unique": ops.unique(ops.concatenate([y, x]))}
    for name, got in found.items():
        assert ops.dtype(got) == dtype, name
        exact = name == "nextafter"
        np.testing.assert_allclose(
            numpy(ops.cast(got, "float32")), wanted[name], rtol=0 if exact else 1e-2, err_msg=name
        )


@everywhere
@pytest.mark.parametrize("target", ["int64", "uint8", "bool"])
def test_label_dtype_does_not_change_the_precision_of_losses(backend, target):
    output = tensors(np.array([0.25, 0.75], "float16"), backend)
    labels = tensors(np.array([0, 1], target), backend)
    for from_logits in (False, True):
        loss = ops.binary_crossentropy(labels, output, from_logits=from_logits)
        assert ops.dtype(loss) == "float16"
        want = np.log1p(np.exp([0.25, -0.75])) if from_logits else -np.log([0.75, 0.75])
        np.testing.assert_allclose(numpy(loss), want, rtol=2e-3)


@everywhere
def test_means_of_half_precision_do_not_overflow(backend):
    x = tensors(np.full(20000, 40.0, "float16"), backend)
    for name, want in {"mean": 40, "std": 0, "var": 0, "average": 40, "nanmean": 40, "nanvar": 0}.items():
        assert numpy(getattr(ops, name)(x)) == want, name


def modulus(x):
    return x.real**2 + x.imag**2


def windows(x):
    return x.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)


def convolved(x, k):
    return np.array([[np.sum(x[i : i + 2, j : j + 2] * k) for j in range(3)] for i in range(3)])


def image(x):
    return ops.reshape(x, (1, 4, 4, 1))


def logsumexp(x):
    return np.log(np.sum(np.exp(x)))


COMPLEX = {  # op of a 4 by 4 matrix, and NumPy's result
    "moments": (lambda x: ops.moments(x, 0), lambda x: (x.mean(0), modulus(x - x.mean(0)).mean(0))),
    "normalize": (ops.normalize, lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)),
    "normalize 1": (lambda x: ops.normalize(x, order=1), lambda x: x / np.abs(x).sum(-1, keepdims=True)),
    "rms": (lambda x: ops.rms_normalization(x, epsilon=0), lambda x: x / np.sqrt(modulus(x).mean(-1, keepdims=True))),
    "layer": (
        lambda x: ops.layer_normalization(x, epsilon=0),
        lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True),
    ),
    "batch": (
        lambda x: ops.batch_normalization(x, x[0], ops.abs(x[1]), -1, epsilon=0),
        lambda x: (x - x[0]) / np.sqrt(np.abs(x[1])),
    ),
    "average_pool": (lambda x: ops.average_pool(image(x), 2), lambda x: windows(x).mean((2, 3))[None, :, :, None]),
    "adaptive_average_pool": (
        lambda x: ops.adaptive_average_pool(image(x), 2),
        lambda x: windows(x).mean((2, 3))[None, :, :, None],
    ),
    "unfold": (
        lambda x: ops.unfold(ops.reshape(x, (1, 1, 4, 4)), 2, stride=2),
        lambda x: windows(x).reshape(1, 4, 4).transpose(0, 2, 1),
    ),
    "fold": (
        lambda x: ops.fold(ops.reshape(x, (1, 4, 4)), 4, 2, stride=2),
        lambda x: x.reshape(2, 2, 2, 2).transpose(2, 0, 3, 1).reshape(1, 1, 4, 4),
    ),
    "psnr": (lambda x: ops.psnr(x, x * 2, 1.0), lambda x: -10 * np.log10(modulus(x).mean())),
    "sigmoid": (ops.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "silu": (ops.silu, lambda x: x / (1 + np.exp(-x))),
    "glu": (ops.glu, lambda x: x[:, :2] / (1 + np.exp(-x[:, 2:]))),
    "logsumexp": (ops.logsumexp, logsumexp),
    "arccosh": (ops.arccosh, np.arccosh),
    "linspace": (lambda x: ops.linspace(x[0], x[1], 3), lambda x: np.linspace(x[0], x[1], 3)),
    "logspace": (lambda x: ops.logspace(x[0], x[1], 3), lambda x: np.logspace(x[0], x[1], 3)),
    "conv": (
        lambda x: ops.conv(image(x), ops.reshape(x[:2, :2], (2, 2, 1, 1))),
        lambda x: convolved(x, x[:2, :2])[None, :, :, None],
    ),
    "conv of real": (
        lambda x: ops.conv(image(ops.real(x)), ops.reshape(x[:2, :2], (2, 2, 1, 1))),
        lambda x: convolved(x.real, x[:2, :2])[None, :, :, None],
    ),
}


def loss(f):
    """Return a loss that depends on real and imaginary part of the result."""

    def of(x):
        total, results = 0.0, f(x)
        for part in results if isinstance(results, tuple) else (results,):
            weights = np.linspace(0.5, 1.5, ops.size(part)).reshape(ops.shape(part))
            total = total + ops.sum(ops.multiply(ops.real(part), weights))
            total = total + ops.sum(ops.multiply(ops.imag(part), 2.5 - weights))
        return total

    return of


@pytest.mark.short_cases(2, "jax")
@everywhere
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_keep_both_parts(name, backend):
    f, reference = COMPLEX[name]
    got = numpy(f(tensors(Z, backend)))
    want = reference(Z)
    for g, w in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_allclose(g, w, rtol=1e-6)
        assert g.dtype == np.asarray(w).dtype
    slope = tape_gradient(loss(f), [Z])[0]
    if backend == "numpy":
        h, by = 1e-6, loss(f)
        for at in ((0, 0), (2, 1)):
            for step in (h, 1j * h):
                high, low = Z.copy(), Z.copy()
                high[at] += step
                low[at] -= step
                part = slope[at].real if step == h else slope[at].imag
                np.testing.assert_allclose((by(high) - by(low)) / (2 * h), part, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_allclose(native_gradient(loss(f), [Z], backend)[0], slope, rtol=1e-5, atol=1e-8)


REFUSED = {
    "full_like": lambda x: ops.full_like(ops.real(x), 1j),
    "full": lambda x: ops.full((2,), x[0, 0], "float64"),
    "slice_update": lambda x: ops.slice_update(ops.real(x), (0, 0), x[:1, :1]),
    "scatter_update": lambda x: ops.scatter_update(ops.real(x), np.array([[0, 1]]), x[0, :1]),
    "linspace": lambda x: ops.linspace(x[0], x[1], 3, dtype="float64"),
    "max_pool": lambda x: ops.max_pool(image(x), 2),
    "adaptive_max_pool": lambda x: ops.adaptive_max_pool(image(x), 2),
    "dot_product_attention": lambda x: ops.dot_product_attention(*[ops.reshape(x, (1, 4, 2, 2))] * 3),
    "categorical_crossentropy": lambda x: ops.categorical_crossentropy(x, x),
    "binary_crossentropy": lambda x: ops.binary_crossentropy(x, x),
    **{
        name: (lambda x, name=name: getattr(ops, name)(x))
        for name in "erf relu relu6 leaky_relu elu gelu softplus log_sigmoid softmax log_softmax".split()
    },
    **{
        name: (lambda x, name=name: getattr(ops, name)(x, x))
        for name in "logaddexp logaddexp2 arctan2 mod floor_divide".split()
    },
}


@everywhere
@pytest.mark.parametrize("name", REFUSED)
def test_complex_numbers_are_refused_by_real_ops(name, backend):
    with config.backend_scope(backend), pytest.raises(ArgumentTypeError, match=rf"`{name}`.*real|`x1` must be real"):
        REFUSED[name](tensors(Z, backend))


@everywhere
def test_rounding_of_complex_numbers_has_gradient_zero(backend):
    f = lambda x: ops.sum(ops.real(ops.round(x) * x))  # noqa: E731
    got = tape_gradient(f, [Z])[0] if backend == "numpy" else native_gradient(f, [Z], backend)[0]
    np.testing.assert_allclose(got, np.conj(np.round(Z)), rtol=1e-12)


@everywhere
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_products_of_small_integers(dtype, backend):
    x = np.array([[1, 2], [3, 4]], dtype)
    t = tensors(x, backend)
    for got in (ops.matmul(t, t), ops.dot(t, t), ops.einsum("ij,jk->ik", t, t), ops.tensordot(t, t, 1)):
        np.testing.assert_array_equal(numpy(got), x @ x)
        assert ops.dtype(got) == dtype
    rounded = ops.round(tensors(np.array([14, 25, 35], dtype), backend), -1)
    np.testing.assert_array_equal(numpy(rounded), [10, 20, 40])
    assert ops.dtype(rounded) == dtype


@everywhere
def test_second_derivative_of_perfect_correlation(backend):
    """At correlations of 1 and -1, rounding determines the side of 1."""
    x = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0], [-0.1, -0.2, -0.4]])

    def of(v):
        centred = v - ops.mean(v, 1, True)
        centred = centred / ops.sqrt(ops.sum(centred * centred, 1, True))
        return ops.matmul(centred, ops.transpose(centred))

    from parity import tape_second

    weights = np.arange(9.0).reshape(3, 3)
    want = tape_second(lambda v: ops.sum(ops.multiply(of(v), weights)), [x])[0]
    f = lambda v: ops.sum(ops.multiply(ops.corrcoef(v), weights))  # noqa: E731
    got = tape_second(f, [x])[0] if backend == "numpy" else native_gradient(f, [x], backend, second=True)[0]
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


@everywhere
def test_tile_of_many_dimensions(backend):
    x = np.arange(48.0).reshape(1, 2, 1, 3, 1, 2, 4)
    repeats = (2, 1, 3, 2, 1, 1, 2)
    np.testing.assert_array_equal(numpy(ops.tile(tensors(x, backend), repeats)), np.tile(x, repeats))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(np.dtype("clongdouble").itemsize == 16, reason="NumPy has no extended precision here")
@pytest.mark.parametrize("z", [Z, Z.real], ids=["complex", "real"])
def test_extended_precision_gives_what_double_precision_gives(z):
    """Ops, derivatives and programs of NumPy's extended precision, which they compute in double precision."""
    wide = z.astype("clongdouble" if z.dtype.kind == "c" else "longdouble")
    unlike = ("empty", "empty_like", "nextafter")  # these have no value that is known, or another one in each precision
    compared = 0
    for name in set(ops.__all__) - set(unlike):
        for arguments, widened in (((z,), (wide,)), ((z, z.T), (wide, z.T)), ((z, z.T), (z, wide.T))):
            try:
                want = numpy(getattr(ops, name)(*arguments))
            except Exception:  # the op takes other arguments
                continue
            try:
                found = numpy(getattr(ops, name)(*widened))
            except ArgumentTypeError:
                continue
            compared += 1
            assert_equal(found, want, name)
    assert compared > 150
    for f in (lambda x: ops.sum(ops.abs(x) ** 2), lambda x: ops.norm(x) + ops.real(ops.sum(ops.inv(x)))):
        for derived in (gradops.grad(f), gradops.jit(f), gradops.jit(gradops.grad(f))):
            for x in (wide, z, wide):
                assert_equal(derived(x), derived(z), str(f))


def assert_equal(found, want, name):
    for x, y in zip(_tree.leaves_of(found), _tree.leaves_of(want), strict=True):
        if isinstance(x, str):
            assert x == y
        else:
            np.testing.assert_allclose(np.asarray(x, complex), np.asarray(y, complex), rtol=1e-9, err_msg=name)
