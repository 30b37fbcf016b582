"""Statistics: edge cases, traces, and faults that all backends would share."""

import numpy as np
import pytest
from parity import BACKENDS, native_gradient, numpy, tensors

from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError

everywhere = pytest.mark.parametrize("backend", BACKENDS)
traced = pytest.mark.parametrize("backend", ("jax", "tensorflow"))


def gradient(function, x, backend):
    """Return the tape's gradient on NumPy, the framework's own elsewhere."""
    if backend == "numpy":
        v = Variable(x, requires_grad=True)
        return numpy(autodiff.grad(function(v), v)[0])
    return native_gradient(lambda v: function(v), [x], backend)[0]


def compiled(function, backend):
    if backend == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, autograph=False)


@pytest.mark.short_cases(0, "jax")
@traced
def test_inside_a_trace(backend):
    x = tensors(np.array([[1.0, np.nan, 3.0, -2.0], [0.0, 4.0, 5.0, 2.0]]), backend)

    def f(x):
        filled = ops.nan_to_num(x)
        return (
            ops.median(filled, 1),
            ops.quantile(filled, 0.3, 1),
            ops.nanquantile(x, 0.3, 1),
            ops.nanvar(x, 1),
            ops.nanargmax(x, 1),
            ops.corrcoef(filled),
            ops.correlate(filled[0], filled[1], "full"),
            *ops.histogram(filled, 3),
            ops.prod(filled, 1),
            ops.cumprod(filled, 1),
            ops.gcd(ops.cast(filled, "int64"), 6),
        )

    for got, want in zip(numpy(compiled(f, backend)(x)), numpy(f(x))):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@traced
def test_bincount_inside_a_trace_has_length_minlength(backend):
    x = tensors(np.array([0, 2, 2, 7]), backend)
    counts = compiled(lambda x: ops.bincount(x, minlength=4), backend)(x)
    np.testing.assert_array_equal(numpy(counts), [1, 0, 2, 0])
    with pytest.raises(ArgumentError, match="`bincount`: inside a trace give `minlength`"):
        compiled(ops.bincount, backend)(x)


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_nan_gets_no_gradient(backend):
    x = np.array([1.0, np.nan, 3.0, -2.0])
    for op in (ops.nansum, ops.nanprod, ops.nanmean, ops.nanvar, ops.nanstd, ops.nanmax, ops.nanmedian):
        g = gradient(op, x, backend)
        assert np.isfinite(g).all() and g[1] == 0, op


@everywhere
def test_quantile_is_differentiable_in_its_probability(backend):
    x = np.array([1.0, 2.0, 4.0, 8.0])
    got = gradient(lambda q: ops.quantile(tensors(x, backend), q), np.array(0.5), backend)
    np.testing.assert_allclose(got, 3 * 2.0)


@everywhere
def test_windows_use_the_backend_of_their_length(backend):
    length = tensors(np.array(4), backend)
    assert type(ops.hamming(length)) is type(ops.cast(length, "float64"))


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_float32_results(backend):
    x = tensors(np.array([[1.0, 2.0, 4.0]], "float32"), backend)
    for y in (
        ops.quantile(x, [0.1, 0.9]),
        ops.average(x, 1, x),
        ops.trapezoid(x),
        ops.histogram(x)[1],
        ops.corrcoef(x),
        ops.nanmean(x),
        ops.correlate(x[0], x[0]),
        ops.bincount(tensors(np.array([0, 1, 1]), backend), x[0]),
    ):
        assert ops.dtype(y) == "float32"


@everywhere
def test_bad_input(backend):
    x, n = tensors(np.array([[3.0, 1.0, 2.0]]), backend), tensors(np.array([1, 2]), backend)
    for name in (
        "median",
        "nanmedian",
        "average",
        "nansum",
        "nanmean",
        "nanvar",
        "nanstd",
        "nanmax",
        "nanargmax",
        "nancumsum",
    ):
        with pytest.raises(AxisError, match=f"`{name}`: `axis` must be between -2 and 1"):
            getattr(ops, name)(x, axis=2)
    for name, limit in (("quantile", 1), ("nanquantile", 1), ("percentile", 100), ("nanpercentile", 100)):
        with pytest.raises(ArgumentError, match=f"`{name}`: `q` must be between 0 and {limit}"):
            getattr(ops, name)(x, limit + 0.5)
        with pytest.raises(ArgumentError, match=f"`{name}`: `method` must be one of"):
            getattr(ops, name)(x, 0.5, method="cubic")
        with pytest.raises(ArgumentError, match=f"`{name}`: there must be an element"):
            getattr(ops, name)(tensors(np.zeros((2, 0)), backend), 0.5, axis=1)
        with pytest.raises(AxisError, match=f"`{name}`: `axis` must be between -2 and 1"):
            getattr(ops, name)(x, 0.5, axis=2)
    with pytest.raises(ArgumentTypeError, match="`median`: `x` must be real"):
        ops.median(ops.multiply(x, 1j))
    with pytest.raises(ShapeError, match="`average`: `weights` must have the shape"):
        ops.average(x, 0, tensors(np.ones(3), backend))
    with pytest.raises(ArgumentTypeError, match="`bincount`: `x` must be of whole numbers"):
        ops.bincount(x[0])
    with pytest.raises(ArgumentError, match="`bincount`: `x` must not be negative"):
        ops.bincount(ops.negative(n))
    with pytest.raises(ShapeError, match="`bincount`: `weights` must have the shape"):
        ops.bincount(n, x[0])
    with pytest.raises(ArgumentError, match="`bincount`: `sparse` must be False"):
        ops.bincount(n, sparse=True)
    with pytest.raises(ArgumentError, match="`histogram`: `bins` must be at least 1"):
        ops.histogram(x, 0)
    with pytest.raises(ArgumentError, match="`histogram`: `bins` must ascend"):
        ops.histogram(x, [2.0, 1.0])
    with pytest.raises(ArgumentError, match="`histogram`: `range` must ascend"):
        ops.histogram(x, 3, (1.0, 0.0))
    with pytest.raises(ArgumentError, match="`histogram`: `x` must be finite"):
        ops.histogram(ops.divide(x, 0.0))
    with pytest.raises(ShapeError, match="`corrcoef`: `x` must have 1 or 2 dimensions"):
        ops.corrcoef(ops.reshape(x, (1, 1, 3)))
    with pytest.raises(ShapeError, match="`correlate`: `x1` must have 1 dimension"):
        ops.correlate(x, x[0])
    with pytest.raises(ShapeError, match="`correlate`: `x2` must not be empty"):
        ops.correlate(x[0], x[0, :0])
    with pytest.raises(ArgumentError, match="`correlate`: `mode` must be one of"):
        ops.correlate(x[0], x[0], "half")
    with pytest.raises(ShapeError, match="`trapezoid`: `x` must be a vector along the axis"):
        ops.trapezoid(x, n)
    with pytest.raises(ArgumentTypeError, match="`hamming`: `x` must be a whole number"):
        ops.hamming(2.5)
    with pytest.raises(ArgumentError, match="`geomspace`: `stop` must not be 0"):
        ops.geomspace(x, 0.0)
    with pytest.raises(ArgumentTypeError, match="`erfinv`: `x` must be real"):
        ops.erfinv(ops.multiply(x, 1j))
    with pytest.raises(ArgumentTypeError, match="`bitwise_and`: `y` must be of integers or bools"):
        ops.bitwise_and(n, x)
    with pytest.raises(ArgumentTypeError, match="`left_shift`: `x` must be of integers"):
        ops.left_shift(x, n)
    with pytest.raises(ShapeError, match="`hypot`: shapes must broadcast"):
        ops.hypot(x, tensors(np.ones(2), backend))
    with pytest.raises(ShapeError, match="`fmax`: shapes must broadcast"):
        ops.fmax(x, tensors(np.ones(2), backend))
    with pytest.raises(ArgumentError, match="`dtype` must be one of"):
        ops.saturate_cast(x, "float99")


@everywhere
def test_correlation_of_one_row(backend):
    x = np.array([[1.0, 3.0, 2.0]])
    assert tuple(ops.corrcoef(tensors(x, backend)).shape) == (1, 1)
    assert np.corrcoef(Variable(x)).shape == np.corrcoef(x).shape == ()
