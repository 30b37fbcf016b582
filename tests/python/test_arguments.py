"""Axes, shapes and integers mean the same on every backend; invalid ones raise a gradops error."""

import contextlib
import datetime
import fractions

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, config, functional, gradient, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, GradopsError, ShapeError

everywhere = pytest.mark.parametrize("backend", BACKENDS)
REDUCTIONS = (
    "sum mean prod max min amax amin all any std var median logsumexp ptp nansum nanmean nanmax nanmin nanprod nanstd "
    "nanvar nanmedian"
).split()
RUNNING = "cumsum cumprod nancumsum nancumprod sort flip softmax log_softmax squeeze".split()
MATRIX = np.arange(6.0).reshape(2, 3) / 7


def result(f, x, backend):
    with config.backend_scope(backend):
        return numpy(f(tensors(np.asarray(x), backend)))


@pytest.mark.short_cases(2, "jax")
@everywhere
@pytest.mark.parametrize("axis", [None, 0, -1, (), (0,), (-1,), [0]], ids=str)
def test_tensors_without_dimensions(axis, backend):
    """Axis 0 or -1 of a scalar acts like no axis at all."""
    for name in REDUCTIONS if axis == 0 else ("mean", "logsumexp", "nanmax"):
        f = getattr(ops, name)
        for keepdims in (False, True) if name in ("sum", "logsumexp") else (True,):
            got = result(lambda x: f(x, axis=axis, keepdims=keepdims), 3.0, backend)  # noqa: B023
            assert got.shape == (), name
            np.testing.assert_allclose(got, result(f, 3.0, "numpy"), err_msg=name)
    if isinstance(axis, int):
        for name in RUNNING:
            got = result(lambda x: getattr(ops, name)(x, axis=axis), 3.0, backend)  # noqa: B023
            assert got.shape == (), name
            np.testing.assert_allclose(got, {"softmax": 1.0, "log_softmax": 0.0}.get(name, 3.0))
        for name in ("argmax", "argmin", "nanargmax", "nanargmin", "argsort"):
            assert result(lambda x: getattr(ops, name)(x, axis=axis), 3.0, backend) == 0  # noqa: B023
        assert result(lambda x: ops.roll(x, 2, axis), 3.0, backend) == 3


@everywhere
def test_gradients_of_tensors_without_dimensions(backend):
    from gradops import grad

    for name in ("sum", "mean", "max", "logsumexp", "cumsum", "cumprod", "prod", "flip", "nansum"):
        slope = grad(lambda x: ops.sum(getattr(ops, name)(x, axis=0)))(tensors(np.array(3.0), backend))  # noqa: B023
        np.testing.assert_array_equal(numpy(slope), 1.0, err_msg=name)


@everywhere
def test_indexing_along_an_axis_of_a_scalar_is_an_error(backend):
    """Indexing a scalar along axis 0 raises an error, in the gradient as well; without an axis the scalar has one
    element.
    """
    from gradops import grad

    for f in (
        lambda x: ops.take(x, [0], 0),
        lambda x: ops.take(x, np.zeros(0, int), 0),
        lambda x: ops.take_along_axis(x, np.array(0), 0),
        lambda x: ops.swapaxes(x, 0, 0),
    ):
        with pytest.raises(ShapeError, match="`x` must have at least 1 dimensions"):
            result(f, 3.0, backend)
        with pytest.raises(ShapeError, match="`x` must have at least 1 dimensions"):
            grad(lambda x: ops.sum(f(x)))(tensors(np.array(3.0), backend))  # noqa: B023
    assert result(lambda x: ops.take(x, [0]), 3.0, backend) == [3.0]
    for x in (np.array(3.0), np.zeros((0, 4))):
        assert result(lambda x: ops.get_item(x, True), x, backend).shape == (1, *x.shape)


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_empty_batches(backend):
    """Libraries fail, or return uninitialised memory, in such operations or their gradients."""
    from gradops import grad

    rows, kernel = np.zeros((0, 5)), np.ones((2, 2, 3, 2))
    for f in (
        lambda x: ops.fft((x, x))[0],
        lambda x: ops.rfft(x)[0],
        lambda x: ops.rfft(x, 8)[1],
        lambda x: ops.irfft((x, x)),
        lambda x: ops.irfft((x, x), 3),
        lambda x: ops.stft(ops.concatenate([x, x], 1), 4, 2, 4)[0],
    ):
        got = result(f, rows, backend)
        assert got.shape == result(f, rows, "numpy").shape and got.shape[0] == 0
        slope = grad(lambda x: ops.sum(f(x)))(tensors(rows, backend))  # noqa: B023
        assert numpy(slope).shape == rows.shape
    for strides in (1, 2):
        f = lambda x, k: ops.sum(ops.depthwise_conv(x, k, strides) ** 2)  # noqa: E731, B023
        images = np.zeros((0, 4, 4, 3))
        slopes = grad(f, (0, 1))(tensors(images, backend), tensors(kernel, backend))
        assert numpy(slopes[0]).shape == images.shape
        np.testing.assert_array_equal(numpy(slopes[1]), np.zeros(kernel.shape))
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if backend == "numpy" else contextlib.nullcontext():
        assert np.isnan(result(ops.mean, np.zeros(0, complex), backend))


@everywhere
@pytest.mark.parametrize("name", [*REDUCTIONS, *RUNNING, "roll", "unstack", "repeat", "argmax"])
def test_axes_out_of_range(name, backend):
    f = getattr(ops, name)
    more = (1,) if name in ("roll", "repeat") else ()
    with pytest.raises(AxisError, match=name):
        result(lambda x: f(x, *more, axis=1), 3.0, backend)
    for axis in (True, "a", 0.5, b"a", 1j):
        with pytest.raises(ArgumentTypeError, match=f"{name}.*axis.*whole number"):
            result(lambda x: f(x, *more, axis=axis), MATRIX, backend)  # noqa: B023


@pytest.mark.short_cases(2, "jax")
@everywhere
@pytest.mark.parametrize("name", "sum std logsumexp nanmax median softmax log_softmax flip normalize average".split())
def test_lists_of_axes(name, backend):
    f = getattr(ops, name)
    for axes in ([0, 1], [np.int64(1)]):
        want = result(lambda x: f(x, axis=tuple(map(int, axes))), MATRIX, "numpy")  # noqa: B023
        np.testing.assert_allclose(result(lambda x: f(x, axis=axes), MATRIX, backend), want)  # noqa: B023
    with pytest.raises(AxisError, match=name):
        result(lambda x: f(x, axis=[0, -2]), MATRIX, backend)


@everywhere
@pytest.mark.parametrize(
    "shift, axis",
    [
        (1, 0),
        (1, -2),
        (1, 1),
        (1, (0, 1)),
        (1, [0]),
        ((1,), (0, 1)),
        ((1, 2), 0),
        ((1, 2), (0, 1)),
        ((1, 2), (0, 0)),
        (1, None),
        ((1, 2), None),
    ],
)
def test_roll_broadcasts_shifts_and_axes(shift, axis, backend):
    want = np.roll(MATRIX, shift, tuple(axis) if isinstance(axis, list) else axis)
    np.testing.assert_array_equal(result(lambda x: ops.roll(x, shift, axis), MATRIX, backend), want)
    with pytest.raises(ArgumentError, match="roll"):
        result(lambda x: ops.roll(x, (1, 2, 3), (0, 1)), MATRIX, backend)
    with pytest.raises(ArgumentTypeError, match="roll"):
        result(lambda x: ops.roll(x, 1.5, 0), MATRIX, backend)


@everywhere
def test_gradient_of_roll_over_several_axes(backend):
    w = Variable(MATRIX, requires_grad=True)
    weights = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(
        numpy(gradient(ops.sum(ops.roll(w, 1, (0, 1)) * weights), w)), np.roll(weights, -1, (0, 1))
    )


@everywhere
@pytest.mark.parametrize("shape", [(-2, 3), (-1, -1), (-2, 5), (2.5, 2), "ab", b"ab", b"\x06", (True, 6), None, {6}])
def test_invalid_shapes(shape, backend):
    with pytest.raises(GradopsError, match="`reshape`"):
        result(lambda x: ops.reshape(x, shape), MATRIX, backend)


@everywhere
def test_shapes_of_any_integer_type(backend):
    for shape in ((3, 2), [3, 2], (np.int64(3), -1), (3.0, 2)):
        assert result(lambda x: ops.reshape(x, shape), MATRIX, backend).shape == (3, 2)  # noqa: B023
    assert result(lambda x: ops.reshape(x, 6), MATRIX, backend).shape == (6,)


NONSENSE = {
    "eye": lambda: ops.eye(3.5),
    "eye of bytes": lambda: ops.eye(b"3"),
    "identity": lambda: ops.identity("3"),
    "zeros of bytes": lambda: ops.zeros(b"\x02\x03"),
    "zeros of text": lambda: ops.zeros("23"),
    "ones of halves": lambda: ops.ones((2.5,)),
    "full of bytes": lambda: ops.full(b"\x02", 1.0),
    "a date": lambda: ops.exp(np.array(["2020-01-01"], "datetime64[D]")),
    "a day": lambda: ops.exp(datetime.date(2020, 1, 1)),
    "a duration": lambda: ops.add(np.array([1], "timedelta64[s]"), 1),
    "durations beside numbers": lambda: ops.add(np.ones(1), np.array([1], "timedelta64[s]")),
    "objects": lambda: ops.sum(np.array([1.0, None], object)),
    "objects as numbers": lambda: ops.sum(np.array([1.0, 2.0], object)),
    "objects beside numbers": lambda: ops.add(np.ones(2), np.array([1.0, None], object)),
    "None in a list": lambda: ops.sum([1.0, None]),
    "records": lambda: ops.sum(np.zeros(2, [("a", float)])),
    "text": lambda: ops.exp(np.array(["a"])),
    "bytes": lambda: ops.exp(b"abc"),
    "a fraction": lambda: ops.exp(fractions.Fraction(1, 2)),
    "more pieces than memory holds": lambda: ops.array_split(np.ones(3), 1e300),
    "more columns than memory holds": lambda: ops.vander(np.ones(3), 2**40),
    "equal pieces of nothing": lambda: ops.split(np.ones((0, 2)), 2**40),
    "steps that are no number": lambda: functional.root(lambda x: x - 1.0, 0.0, max_iterations=(2, 1)),
    "sizes that are summed over and differ": lambda: ops.tensordot(ops.ones((3, 2)), ops.ones((1,)), 1),
    "fewer axes than none": lambda: ops.tensordot(ops.ones((3, 2)), ops.ones((3, 2)), -1),
    "a dtype of dates": lambda: ops.cast(np.ones(2), "datetime64[D]"),
}


@everywhere
@pytest.mark.parametrize("what", NONSENSE)
def test_non_numbers_are_refused(what, backend):
    """Values that are not numbers raise a gradops error on every backend, even where NumPy accepts them."""
    with config.backend_scope(backend), pytest.raises(GradopsError):
        NONSENSE[what]()


@pytest.mark.parametrize("name", BACKENDS)
def test_scalar_tensor_index_separates_advanced_indices_like_an_integer(name):
    x = np.arange(16.0).reshape(4, 4)
    at, mask = tensors(np.array(0), name), np.array([False, True, True, True])
    got = ops.get_item(tensors(x, name), (None, at, None, None, mask))
    np.testing.assert_array_equal(numpy(got), x[None, 0, None, None, mask])


def test_text_for_a_number_raises_an_error_naming_the_argument():
    """The argument is the op's own even if the op is composed of others that use different names."""
    places = {
        "Tensor": MATRIX[:, :2], "Operand": 0.5, "Tensors": [MATRIX, MATRIX], "float": 0.5, "Axis": 0, "Index": [0, 1],
        "Indices": [0, 1], "Integer": 1, "Shape": (2, 2), "Integers": 1, "DType": "float64",
    }  # fmt: skip
    refused, other = 0, []
    for name in ops.__all__:
        op = getattr(getattr(ops, name), "op", None)
        if op is None or "Function" in op.annotations.values():
            continue
        required = {p.name for p in op.signature.parameters.values() if p.default is p.empty}
        given = {p: places[op.annotations[p]] for p in required if op.annotations[p] in places}
        for argument in (p for p in op.parameters if op.annotations[p] in ("Tensor", "Operand", "float")):
            try:
                getattr(ops, name)(**{**given, argument: "a"})
            except GradopsError as error:
                refused += 1
                if error.argument not in (None, *op.parameters):
                    other.append(f"{name}({argument}='a'): {error}")
            except TypeError:  # an argument missing from `given`
                pass
    assert refused > 300
    assert other == []
