"""Fourier transforms: pairs versus complex tensors, round trips, and bad input."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, ShapeError

rng = np.random.default_rng(3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_pairs_give_pairs_and_complex_tensors_give_complex_tensors(backend):
    re, im = (tensors(rng.uniform(-1, 1, (2, 4)), backend) for _ in range(2))
    whole = ops.view_as_complex(ops.stack([re, im], -1))
    for name in ("fft", "ifft", "fft2", "ifft2"):
        op = getattr(ops, name)
        for given in ((re, im), [re, im]):
            y = op(given)
            assert isinstance(y, tuple) and [ops.dtype(part) for part in y] == ["float64"] * 2
            np.testing.assert_allclose(numpy(y[0]) + 1j * numpy(y[1]), numpy(op(whole)), atol=1e-12)
    assert ops.dtype(ops.fft(re)) == "complex128"


@pytest.mark.parametrize("backend", BACKENDS)
def test_round_trips(backend):
    x = tensors(rng.uniform(-1, 1, (2, 9)), backend)
    np.testing.assert_allclose(numpy(ops.irfft(ops.rfft(x), 9)), numpy(x), atol=1e-12)
    np.testing.assert_allclose(numpy(ops.ifft(ops.fft(x))).real, numpy(x), atol=1e-12)
    back = ops.istft(ops.stft(x, 4, 2, 4), 4, 2, 4, length=9)
    np.testing.assert_allclose(numpy(back), numpy(x), atol=1e-12)
    np.testing.assert_allclose(numpy(ops.view_as_complex(ops.view_as_real(ops.fft(x)))), numpy(ops.fft(x)))


@pytest.mark.short_cases(1, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("given, wanted", [("float32", "float32"), ("float16", "float16"), ("int32", "float64")])
def test_dtypes(backend, given, wanted):
    x = tensors(np.arange(8).astype(given), backend)
    kind = "complex128" if wanted == "float64" else "complex64"
    assert {ops.dtype(p) for p in (*ops.fft((x, x)), *ops.rfft(x), *ops.stft(x, 4, 2, 4), ops.irfft((x, x)))} == {
        wanted
    }
    assert ops.dtype(ops.fft(x)) == ops.dtype(ops.polar(x, x)) == kind
    assert ops.dtype(ops.extract_sequences(x, 2, 2)) == given
    assert ops.dtype(ops.istft(ops.stft(x, 4, 2, 4), 4, 2, 4)) == wanted


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x = tensors(rng.uniform(-1, 1, (4,)), backend)
    z = ops.fft(x)
    for name in ("fft", "ifft", "irfft"):
        op = getattr(ops, name)
        with pytest.raises(ArgumentError, match=f"`{name}`.*pair"):
            op([x, x, x])
        with pytest.raises(ShapeError, match=f"`{name}`.*one shape"):
            op([x, x[:2]])
        with pytest.raises(ShapeError, match=f"`{name}`"):
            op(1.0)
        with pytest.raises(ArgumentTypeError, match=f"`{name}`.*real"):
            op((z, z))
    with pytest.raises(ShapeError, match="`fft2`.*2 dimensions"):
        ops.fft2(z)
    with pytest.raises(ShapeError, match="`fft`.*empty"):
        ops.fft(x[:0])
    for name, more in (("rfft", ()), ("stft", (2, 1, 2))):
        with pytest.raises(ArgumentTypeError, match=f"`{name}`.*real"):
            getattr(ops, name)(z, *more)
    with pytest.raises(ArgumentError, match="`rfft`: `fft_length`"):
        ops.rfft(x, 0)
    for call, word in [
        (lambda: ops.stft(x, 4, 0, 4), "sequence_stride"),
        (lambda: ops.stft(x, 4, 1, 3), "fft_length"),
        (lambda: ops.stft(x, 4, 1, 4, window="haan"), "window"),
        (lambda: ops.stft(x, 4, 1, 4, window=x[:3]), "window"),
        (lambda: ops.stft(x, 4, 1, 8), "center"),
        (lambda: ops.istft((x, x), 4, 1, 4), "2 dimensions"),
        (lambda: ops.istft(ops.stft(x, 4, 1, 4), 4, 1, 6), "fft_length // 2"),
        (lambda: ops.extract_sequences(x, 0, 1), "sequence_length"),
        (lambda: ops.extract_sequences(x, 1.5, 1), "sequence_length"),
        (lambda: ops.view_as_complex(x), "2"),
        (lambda: ops.polar(z, x), "real"),
    ]:
        with pytest.raises((ArgumentError, ArgumentTypeError), match=word):
            call()


def test_gradients_by_parseval():
    """Parseval's theorem equates the energies of signal and spectrum, so the gradient is known."""
    x = rng.uniform(-1, 1, 7)
    v = Variable(x, requires_grad=True)
    re, im = ops.rfft(v)
    counts = np.array([1.0, 2.0, 2.0, 2.0])
    energy = ops.sum(ops.multiply(counts, ops.add(ops.square(re), ops.square(im))))
    (g,) = autodiff.grad(energy, [v])
    np.testing.assert_allclose(g.data, 2 * 7 * x, rtol=1e-12)


def test_gradient_of_a_window():
    x, window = rng.uniform(-1, 1, 8), rng.uniform(0.5, 1, 4)
    v = Variable(window, requires_grad=True)
    y = ops.sum(ops.square(ops.stft(Variable(x), 4, 2, 4, window=v)[0]))
    (g,) = autodiff.grad(y, [v])
    for i in range(4):
        high, low = window.copy(), window.copy()
        high[i] += 1e-6
        low[i] -= 1e-6
        slope = [np.square(ops.stft(x, 4, 2, 4, window=w)[0]).sum() for w in (high, low)]
        np.testing.assert_allclose(g.data[i], (slope[0] - slope[1]) / 2e-6, rtol=1e-6)
