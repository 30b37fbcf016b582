"""``gradops.scipy.signal`` against SciPy."""

import functools

import numpy as np
import pytest
import scipy.signal
from scipy_checks import QUICK, agree, compare, complex_of, each_case, each_program, in_programs, refused

import gradops
from gradops import errors, ops
from gradops.scipy import signal
from gradops.scipy.signal import design, filters, windows

rng = np.random.default_rng(36)
LINE, OTHER, SHORT = rng.normal(size=12), rng.normal(size=11), rng.normal(size=4)
LONG = rng.normal(size=(2, 24))
PLANE, KERNEL = rng.normal(size=(4, 5)), rng.normal(size=(2, 3))
WAVE = rng.normal(size=(2, 9)) + 1j * rng.normal(size=(2, 9))
B, A = np.array([0.3, 0.2, -0.1]), np.array([1.3, -0.6, 0.2, 0.1])
SOS = scipy.signal.butter(3, 0.3, output="sos")
TIMES = np.sort(rng.uniform(0.1, 5, size=9))

# The function, its arrays (floating ones are differentiated), settings, and further arguments of `agree()`.
CASES = [
    *[
        ("convolve", (LINE, SHORT), {"mode": mode, "method": method}, {})
        for mode in ("full", "same", "valid")
        for method in ("direct", "fft")
    ],
    ("convolve", (SHORT, LINE), {"mode": "valid"}, {}),
    ("convolve", (PLANE[None], KERNEL[None]), {"method": "direct"}, {}),
    ("correlate", (PLANE, KERNEL), {"mode": "same"}, {}),
    ("correlate", (LINE, SHORT), {"method": "fft"}, {}),
    ("fftconvolve", (PLANE, KERNEL[:1]), {"axes": 1, "mode": "same"}, {}),
    ("oaconvolve", (LINE, SHORT), {}, {}),
    *[("convolve2d", (PLANE, KERNEL), {"boundary": boundary}, {}) for boundary in ("fill", "wrap", "symm")],
    ("convolve2d", (PLANE, KERNEL), {"mode": "same", "fillvalue": 1.5}, {}),
    ("correlate2d", (PLANE, KERNEL), {"mode": "same", "boundary": "symm"}, {}),
    ("correlate2d", (PLANE, KERNEL), {"mode": "valid"}, {}),
    ("deconvolve", (LINE[:6], np.array([2.0, 0.5, 0.3])), {}, {}),
    *[
        ("upfirdn", (SHORT, LINE), {"up": 3, "down": 2, "mode": mode}, {})
        for mode in ("constant", "symmetric", "edge", "wrap", "reflect")
    ],
    ("upfirdn", (SHORT, LONG[:, :5]), {"up": 1, "down": 3, "axis": 0, "cval": 2.0}, {}),
    ("lfilter", (B, A, LINE), {}, {"every": True, "second": True}),
    ("lfilter", (B, np.array([2.0]), LONG), {"axis": 0}, {}),
    ("lfilter", (np.array([0.7]), A, LONG[:, :7]), {}, {}),
    ("lfilter_zi", (B, A), {}, {}),
    ("lfiltic", (B, A, SHORT[:2], SHORT[2:]), {}, {}),
    ("lfiltic", (B, A, SHORT), {}, {}),
    ("sosfilt", (SOS, LONG[:, :8]), {}, {"by": (1,)}),
    ("sosfilt_zi", (SOS,), {}, {"by": ()}),
    ("filtfilt", (B, A, LONG[0]), {}, {}),
    ("filtfilt", (B, A, LONG), {"padtype": "even", "padlen": 3}, {}),
    ("filtfilt", (B, A, LONG), {"padtype": "constant", "padlen": 2}, {}),
    ("filtfilt", (B, A, LONG.T), {"padtype": None, "axis": 0}, {}),
    ("filtfilt", (B, A, LONG), {"method": "gust"}, {}),
    ("filtfilt", (B, A, LONG.T), {"method": "gust", "irlen": 2, "axis": 0}, {}),
    ("sosfiltfilt", (SOS, LONG), {"padlen": 9}, {"by": (1,)}),
    *[
        ("savgol_filter", (LINE,), {"window_length": 5, "polyorder": 2, "deriv": deriv, "mode": mode}, {})
        for mode, deriv in (("interp", 0), ("interp", 1), ("mirror", 0), ("nearest", 2), ("wrap", 0), ("constant", 0))
    ],
    ("savgol_filter", (LONG,), {"window_length": 4, "polyorder": 3, "axis": -1, "delta": 0.5, "deriv": 1}, {}),
    ("medfilt", (PLANE,), {"kernel_size": (3, 1)}, {}),
    ("medfilt2d", (PLANE,), {}, {}),
    ("order_filter", (PLANE,), {"domain": np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), "rank": 1}, {}),
    ("wiener", (PLANE,), {}, {}),
    ("wiener", (LINE, np.array(0.4)), {"mysize": 5}, {"keys": ("im", "noise")}),
    ("detrend", (LONG,), {}, {"every": True}),
    ("detrend", (LONG,), {"type": "constant", "axis": 0}, {}),
    ("detrend", (LONG,), {"bp": [5, 9]}, {}),
    ("hilbert", (LONG,), {"N": 7, "axis": 1}, {}),
    ("hilbert", (LINE,), {}, {}),
    ("hilbert2", (PLANE,), {}, {}),
    ("hilbert2", (PLANE,), {"N": (3, 6), "axes": (1, 0)}, {}),
    ("envelope", (LINE,), {}, {}),
    ("envelope", (LINE,), {"bp_in": (None, 4), "n_out": 7, "residual": "all"}, {}),
    ("envelope", (OTHER,), {"bp_in": (2, 5), "squared": True, "residual": None}, {}),
    *[("resample", (LINE,), {"num": num}, {}) for num in (5, 6, 12, 20)],
    ("resample", (LONG[0, :11],), {"num": 6, "window": "hann"}, {}),
    ("resample_poly", (LINE,), {"up": 3, "down": 2}, {}),
    ("resample_poly", (LONG,), {"up": 1, "down": 2, "axis": 1, "padtype": "mean"}, {}),
    ("resample_poly", (LONG,), {"up": 1, "down": 2, "axis": 1, "padtype": "edge"}, {}),
    ("decimate", (np.tile(LONG, 2),), {"q": 3}, {}),
    ("decimate", (LONG,), {"q": 2, "ftype": "fir", "n": 4}, {}),
    ("decimate", (LONG,), {"q": 2, "ftype": "fir", "n": 4, "zero_phase": False}, {}),
    ("decimate", (LONG,), {"q": 2, "n": 3, "zero_phase": False}, {}),
    ("periodogram", (LINE,), {}, {}),
    ("periodogram", (LONG,), {"nfft": 10, "window": "hann", "scaling": "spectrum", "detrend": "linear"}, {}),
    ("periodogram", (LINE,), {"nfft": 15, "return_onesided": False}, {}),
    ("welch", (LONG,), {"nperseg": 8, "fs": 3.0}, {"every": True, "second": True}),
    ("welch", (LONG,), {"nperseg": 7, "noverlap": 2, "average": "median"}, {}),
    ("csd", (LINE, OTHER), {"nperseg": 6}, {}),
    ("coherence", (LINE, LINE[::-1] + 0.3), {"nperseg": 5}, {}),
    *[("spectrogram", (LONG[0],), {"nperseg": 6, "mode": mode}, {}) for mode in ("psd", "magnitude", "angle", "phase")],
    ("spectrogram", (LONG.T,), {"nperseg": 6, "mode": "complex", "axis": 0, "noverlap": 3}, {}),
    *[
        ("stft", (LONG,), {"nperseg": 6, "boundary": boundary, "padded": boundary != "odd"}, {})
        for boundary in ("zeros", "even", "odd", "constant", None)
    ],
    ("czt", (LINE,), {"m": 5, "w": np.exp(-0.3j), "a": 0.9}, {}),
    ("czt", (LINE,), {}, {}),
    ("zoom_fft", (LINE,), {"fn": (0.2, 0.7), "m": 5}, {}),
    *[
        ("lombscargle", (TIMES, LINE[:9], np.array([0.7, 2.0])), {"normalize": normalize, "floating_mean": mean}, {})
        for normalize in (False, "amplitude")
        for mean in (False, True)
    ],
    (
        "lombscargle",
        (TIMES, LINE[:9], np.array([0.7, 2.0]), TIMES),
        {"normalize": True},
        {"keys": (0, 1, 2, "weights")},
    ),
    ("vectorstrength", (TIMES, np.array([0.7, 2.0])), {}, {}),
    ("freqz", (B, A), {"worN": 5}, {}),
    ("freqz", (B, A, np.array([0.3, 0.9])), {"fs": 3.0}, {"keys": (0, 1, "worN")}),
    ("freqz_sos", (SOS,), {"worN": 4}, {}),
    ("sosfreqz", (SOS,), {"worN": 4, "whole": True}, {}),
    ("freqz_zpk", (B, SHORT, np.array(0.7)), {"worN": 4}, {}),
    ("freqs", (B, A), {"worN": [0.2, 1.5]}, {}),
    ("freqs_zpk", (B, SHORT, np.array(0.7)), {"worN": [0.2, 1.5]}, {}),
    *[
        (
            "chirp",
            (TIMES, np.array(0.5), np.array(7.0), np.array(1.2)),
            {"method": method, "vertex_zero": zero},
            settings,
        )
        for method, zero, settings in (
            ("linear", True, {"every": True, "second": True}),
            ("quadratic", True, {}),
            ("quadratic", False, {}),
            ("logarithmic", True, {}),
            ("hyperbolic", True, {}),
        )
    ],
    ("gausspulse", (TIMES - 2, np.array(0.7), np.array(0.4), np.array(-5.0)), {"retquad": True, "retenv": True}, {}),
    ("sweep_poly", (TIMES, np.array([0.1, 0.2, -0.3])), {"phi": 30}, {}),
    ("sawtooth", (TIMES - 3, np.array(0.3)), {}, {"by": (0,)}),
    ("square", (TIMES - 3,), {}, {}),
    ("gauss_spline", (TIMES - 2,), {"n": 3}, {}),
]
CONSTANT = {
    "savgol_coeffs": ((5, 2), {}),
    "correlation_lags": ((5, 3), {"mode": "same"}),
    "choose_conv_method": ((LINE, SHORT), {}),
    "butter": ((3, 0.4), {"output": "sos"}),
    "firwin": ((7, 0.3), {}),
    "find_peaks": ((LINE,), {}),
    "unit_impulse": ((5,), {}),
}


@each_case(CASES)
def test_agrees_with_scipy(name, arrays, settings, how):
    compare(signal, scipy.signal, name, arrays, settings, how)


@pytest.mark.long
@each_case(CASES)
def test_agrees_with_scipy_on_all_backends(name, arrays, settings, how):
    compare(signal, scipy.signal, name, arrays, settings, how, everywhere=True)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants(name):
    args, settings = CONSTANT[name]
    found, want = getattr(signal, name)(*args, **settings), getattr(scipy.signal, name)(*args, **settings)
    for got, expected in zip(found, want) if isinstance(want, tuple) else [(found, want)]:
        np.testing.assert_equal(got, expected)


@pytest.mark.parametrize("name", windows.CONSTANT)
def test_constant_windows(name):
    extra = {
        "chebwin": (60,),
        "dpss": (2.5,),
        "kaiser_bessel_derived": (4.0,),
        "get_window": (8,),
    }.get(name, ())
    args = ("hann", 8) if name == "get_window" else (8, *extra)
    np.testing.assert_array_equal(getattr(windows, name)(*args), getattr(scipy.signal.windows, name)(*args))


WINDOWS = [
    ("gaussian", 1.7),
    ("general_hamming", 0.6),
    ("kaiser", 5.0),
    ("exponential", 2.5),
    ("general_gaussian", 1.3, 2.2),
    ("general_cosine", np.array([0.4, 0.5, 0.1])),
]


@pytest.mark.parametrize(("name", "parameters"), [(name, parameters) for name, *parameters in WINDOWS])
@pytest.mark.parametrize("sym", [True, False])
def test_windows_differentiated_by_their_parameters(name, parameters, sym):
    def call(function, *xs):
        if name == "exponential":
            return function(7, None, *xs, sym)
        return function(7, *xs, sym)

    arrays = [np.asarray(x) for x in parameters]
    short = {"over": ("numpy", "torch"), "compiled": False} if not sym or name != "kaiser" else {}
    ours, theirs = getattr(windows, name), getattr(scipy.signal.windows, name)
    np.testing.assert_array_equal(call(ours, *parameters), call(theirs, *parameters))
    weighted = functools.partial(call, ours)
    agree(weighted, lambda *xs: call(theirs, *[x if x.ndim else float(x) for x in xs]), *arrays, second=False, **short)


def test_each_name_has_a_case():
    cases = {name for name, *_ in CASES} | set(CONSTANT) | set(design.__all__) | {"istft", "group_delay", "windows"}
    assert cases == set(signal.__all__)
    assert {name for name, *_ in WINDOWS} | set(windows.CONSTANT) == set(windows.__all__)


@pytest.mark.parametrize("axis", [0, -1])
def test_filter_states(axis):
    x = LONG if axis else LONG.T
    zi = rng.normal(size=(2, 3)) if axis else rng.normal(size=(3, 2))
    agree(
        lambda b, a, x, zi: signal.lfilter(b, a, x, axis, zi),
        lambda b, a, x, zi: scipy.signal.lfilter(b, a, x, axis, zi),
        *(B, A, x, zi),
        **QUICK,
    )
    zi = rng.normal(size=(2, 2, 2))
    agree(
        lambda x, zi: signal.sosfilt(SOS, x, axis, zi),
        lambda x, zi: scipy.signal.sosfilt(SOS, x, axis, zi),
        *(x, zi),
        **QUICK,
    )


def test_state_continues_a_filter():
    want = signal.lfilter(B, A, LINE)
    first, state = signal.lfilter(B, A, LINE[:2], zi=np.zeros(3))
    second, _ = signal.lfilter(B, A, LINE[2:], zi=state)
    np.testing.assert_allclose(np.concatenate([first, second]), want, rtol=1e-13)


def test_sections_differentiated_by_their_coefficients():
    """Compared with the product of polynomials, as SciPy requires a leading coefficient of 1."""

    def cascade(b, a, x):
        one = ops.ones_like(a[..., :1])
        return signal.sosfilt(ops.concatenate([b, one, a], -1), x)

    def product(b, a, x):
        for i in range(2):
            x = scipy.signal.lfilter(b[i], [1, *a[i]], x)
        return x

    agree(cascade, product, SOS[:, :3], SOS[:, 4:], LINE, **QUICK)


@pytest.mark.parametrize("onesided", [True, False])
def test_inverse_of_short_time_transforms(onesided):
    _, _, z = scipy.signal.stft(LONG, nperseg=6, return_onesided=onesided)

    def ours(re, im):
        return signal.istft(complex_of(re, im), nperseg=6, input_onesided=onesided)[1]

    def theirs(re, im):
        return scipy.signal.istft(re + 1j * im, nperseg=6, input_onesided=onesided)[1]

    agree(ours, theirs, z.real, z.imag, **QUICK)
    np.testing.assert_allclose(ops.real(signal.istft(z, nperseg=6, input_onesided=onesided)[1]), LONG, atol=1e-13)


def test_group_delay():
    agree(
        lambda b, a: signal.group_delay((b, a), 5), lambda b, a: scipy.signal.group_delay((b, a), 5), *(B, A), **QUICK
    )


def test_sosfiltfilt_pads_by_the_coefficients():
    np.testing.assert_allclose(signal.sosfiltfilt(SOS, LONG), scipy.signal.sosfiltfilt(SOS, LONG), rtol=1e-12)
    jax = pytest.importorskip("jax")
    x = LONG.astype("float32")
    np.testing.assert_allclose(jax.jit(lambda x: signal.sosfiltfilt(SOS, x))(x), signal.sosfiltfilt(SOS, x), rtol=1e-3)
    with pytest.raises(errors.ArgumentError, match="padlen"):
        jax.jit(lambda sos: signal.sosfiltfilt(sos, LONG))(SOS)


def test_windows_are_differentiated():
    agree(
        lambda x, w: signal.welch(x, window=w),
        lambda x, w: scipy.signal.welch(x, window=w),
        *(LINE, np.hanning(7)[1:-1]),
        **QUICK,
    )


@pytest.mark.parametrize("name", ["lfilter", "filtfilt", "convolve"])
def test_complex_signals(name):
    arguments = {"lfilter": (B, A), "filtfilt": (B, A), "convolve": (KERNEL,)}[name]
    ours, theirs = getattr(signal, name), getattr(scipy.signal, name)
    settings = {"padlen": 3} if name == "filtfilt" else {}

    def power(re, im):
        z = complex_of(re, im)
        y = ours(*arguments, z, **settings)
        return ops.real(y), ops.imag(y)

    def reference(re, im):
        y = theirs(*arguments, re + 1j * im, **settings)
        return y.real, y.imag

    agree(power, reference, WAVE.real, WAVE.imag, **QUICK)


def test_complex_coefficients():
    def ours(re, im, x):
        a = complex_of(re, im)
        y = signal.lfilter(a[:2], a, x)
        return ops.real(y), ops.imag(y)

    def theirs(re, im, x):
        a = re + 1j * im
        y = scipy.signal.lfilter(a[:2], a, x)
        return y.real, y.imag

    agree(ours, theirs, np.array([1.0, 0.4, 0.1]), np.array([0.2, -0.3, 0.1]), LINE[:6], second=False)


def test_rule_of_the_recursion_equals_the_derivative_of_its_body():
    x, a = LONG[:, :6], A[1:]
    rule = gradops.grad(lambda x, a: ops.sum(ops.sin(filters.all_pole(x, a))), argnums=(0, 1))(x, a)
    body = gradops.grad(lambda x, a: ops.sum(ops.sin(filters.all_pole.op.body(x, a))), argnums=(0, 1))(x, a)
    for found, want in zip(rule, body):
        np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.long
@each_program(lambda x, a: ops.sum(signal.lfilter(B, a, x) * signal.detrend(x)))
def test_programs_of_libraries(compiled):
    def f(x, a):
        y = signal.filtfilt(B, a, x, padlen=4) ** 2 + signal.savgol_filter(x, 5, 2) + signal.medfilt(x)
        y = signal.convolve(y, B, "same") + signal.resample(x, 12) + signal.resample_poly(x, 3, 2)[:12]
        y = y + signal.detrend(x) + ops.imag(signal.hilbert(x)) + ops.real(signal.czt(x)) + signal.decimate(y, 4, 2)[0]
        return ops.sum(y) + ops.sum(signal.welch(x, nperseg=6)[1]) + ops.sum(signal.freqz(B, a, 4)[0])

    in_programs(f, LINE, A, compiled=compiled)


def test_single_precision_is_preserved():
    torch = pytest.importorskip("torch")
    x = torch.ones(20, dtype=torch.float32, requires_grad=True)
    for y in (
        signal.lfilter(*scipy.signal.butter(2, 0.3), x),
        signal.sosfiltfilt(SOS, x),
        signal.welch(x, nperseg=8)[1],
        signal.resample_poly(x, 2, 3),
        signal.convolve(x, [1.0, 2.0]),
        signal.savgol_filter(x, 5, 2),
    ):
        assert y.dtype == torch.float32
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient.dtype == torch.float32
    assert signal.hilbert(x).dtype == torch.complex64
    assert signal.convolve([1, 2], [3, 4]).dtype == "int64"


@pytest.mark.parametrize("method", ["logarithmic", "hyperbolic"])
def test_chirps_of_nearly_equal_frequencies(method):
    """At equal frequencies the gradient is the limit for nearly equal ones."""
    slope = gradops.grad(lambda f1: signal.chirp(0.7, 2.0, 3.0, f1, method))
    np.testing.assert_allclose(slope(2.0), (slope(2.001) + slope(1.999)) / 2, rtol=1e-5)
    assert np.isfinite(gradops.grad(lambda f0: signal.chirp(0.7, f0, 3.0, 2.0, method))(2.0))


def test_untaken_branches_give_no_nan():
    assert np.isfinite(gradops.grad(lambda w: ops.sum(signal.sawtooth(TIMES, w)))(1.0))
    assert np.isfinite(gradops.grad(lambda w: ops.sum(signal.sawtooth(TIMES, w)))(0.0))
    assert np.isfinite(gradops.grad(lambda x: ops.sum(signal.wiener(x, noise=0.5)))(np.ones(6))).all()
    assert np.isfinite(gradops.grad(lambda p: ops.sum(windows.general_gaussian(5, p, 2.0)))(1.0))
    found = gradops.grad(lambda b: ops.sum(signal.group_delay((b, [1.0]), 4)[1]))(np.array([1.0, 0.0, -1.0]))
    assert np.isfinite(found).all()
    # the ramp has no power at one of the frequencies
    ramp = np.arange(6.0)
    found = gradops.grad(lambda x: signal.coherence(x, ramp**2, nperseg=4)[1][1])(ramp)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: signal.convolve(LINE, PLANE), "in2"),
        (lambda: signal.convolve(LINE, SHORT, mode="some"), "mode"),
        (lambda: signal.convolve("a", SHORT), "in1"),
        (lambda: signal.convolve2d(LINE, SHORT), "in1"),
        (lambda: signal.convolve(PLANE[:, :1], PLANE[:1], "valid"), "in2"),
        (lambda: signal.lfilter(PLANE, A, LINE), "b"),
        (lambda: signal.lfilter(B, A, LINE, axis=1), "axis"),
        (lambda: signal.lfilter(B, A, LINE, zi=np.zeros(2)), "zi"),
        (lambda: signal.sosfilt(PLANE, LINE), "sos"),
        (lambda: signal.filtfilt(B, A, LINE, padlen=12), "padlen"),
        (lambda: signal.filtfilt(B, A, LINE, method="other"), "method"),
        (lambda: signal.filtfilt(B, A, LINE, method="gust", irlen=0), "irlen"),
        (lambda: signal.savgol_filter(LINE, 5, 7.5), "polyorder"),
        (lambda: signal.savgol_filter(LINE, 15, 2), "window_length"),
        (lambda: signal.medfilt(LINE, 4), "kernel_size"),
        (lambda: signal.welch(LINE, nperseg=4, noverlap=4), "noverlap"),
        (lambda: signal.welch(LINE, window="haan"), "window"),
        (lambda: signal.welch(LINE, fs=0), "fs"),
        (lambda: signal.hilbert(WAVE), "x"),
        (lambda: signal.resample(LINE, 0), "num"),
        (lambda: signal.chirp(TIMES, 1.0, 2.0, -1.0, "log"), "f1"),
        (lambda: signal.gausspulse(TIMES, bwr=1.0), "bwr"),
        (lambda: signal.butter(gradops.Variable(3.0, requires_grad=True), 0.3), "N"),
        (lambda: signal.butter(3), "Wn"),
        (lambda: windows.kaiser(-1, gradops.Variable(3.0, requires_grad=True)), "M"),
    ],
)
def test_errors_name_the_argument(call, argument):
    refused(call, argument)


@pytest.mark.parametrize(("name", "what"), [("lti", "lfilter"), ("CZT", "czt"), ("cspline1d", "spline_filter1d")])
def test_refused_functions_name_alternatives(name, what):
    with pytest.raises(AttributeError, match=what):
        getattr(signal, name)


def test_lombscargle_with_one_frequency_and_with_weights():
    for normalize in (False, True, "amplitude"):
        want = scipy.signal.lombscargle(TIMES, LINE[:9], np.array([0.7]), normalize=normalize)
        found = signal.lombscargle(TIMES, LINE[:9], np.array([0.7]), normalize=normalize)
        assert np.shape(found) == np.shape(want) == ()
        np.testing.assert_allclose(found, want, 1e-12)
    slope = gradops.grad(lambda f: signal.lombscargle(TIMES, LINE[:9], f))(np.array([0.7]))
    low, high = (signal.lombscargle(TIMES, LINE[:9], np.array([0.7 + h])) for h in (-1e-6, 1e-6))
    np.testing.assert_allclose(slope, [(high - low) / 2e-6], 1e-6)
    for weights in (-np.ones(9), np.zeros(9)):
        with pytest.raises(errors.ArgumentError, match="`weights` must be at least 0"):
            signal.lombscargle(TIMES, LINE[:9], np.array([0.7]), weights=weights)


@pytest.mark.parametrize("ftype", ["iir", "fir"])
def test_decimation_of_half_precision(ftype):
    x = np.ones(100, "float16")
    found = signal.decimate(x, 10, ftype=ftype)
    assert found.dtype == "float16"
    np.testing.assert_allclose(found, scipy.signal.decimate(x, 10, ftype=ftype), atol=2e-3)


@pytest.mark.parametrize(
    ("name", "filters"),
    [("freqs", ([1.0], [1.0, 2.0])), ("freqz", ([1.0, 2.0], 1)), ("group_delay", (([1.0, 2.0], [1.0]),))],
)
def test_number_of_frequencies_as_an_array(name, filters):
    found, want = (getattr(module, name)(*filters, np.array(8))[0] for module in (signal, scipy.signal))
    np.testing.assert_allclose(found, want)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_fftconvolve_of_operands_that_broadcast(mode):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(50, 1)), random.normal(size=(7, 3))
    for first, second in ((x, y), (x, y[:, :1]), (y, y[:2])):
        found, wanted = signal.fftconvolve(first, second, mode, 0), scipy.signal.fftconvolve(first, second, mode, 0)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=1e-14)
