"""Cases: Fourier transforms and signals in sequences."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays
from scipy import signal


def case(op, inputs, reference, label="", gradients=("x",), **options):
    strategy = st.fixed_dictionaries(inputs)
    if options:
        strategy = strategy.map(lambda given: {**given, **options})
    return Case(op, strategy, reference, gradients=gradients, label=label)


def pair(shape, dtype="float64"):
    return st.tuples(arrays(shape, dtype=dtype), arrays(shape, dtype=dtype)).map(list)


def complex_of(x):
    return x[0] + 1j * x[1] if isinstance(x, list) else x


def transform(op, shape):
    function = getattr(np.fft, op)

    def reference(x):
        y = function(complex_of(x))
        return [y.real, y.imag] if isinstance(x, list) else y

    return [
        case(op, {"x": pair(shape)}, reference, "pair"),
        case(op, {"x": arrays(shape, dtype="complex128")}, reference, "complex"),
        case(op, {"x": arrays(shape)}, reference, "real"),
    ]


def rfft(x, fft_length=None):
    y = np.fft.rfft(x, fft_length)
    return [y.real, y.imag]


def irfft(x, fft_length=None):
    return np.fft.irfft(complex_of(x), fft_length)


def window_of(window, length):
    if window is None:
        return np.ones(length)
    return signal.get_window(window, length) if isinstance(window, str) else window


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    """Reference by SciPy, with its scaling undone."""
    before = (fft_length - sequence_length) // 2
    weights = np.pad(window_of(window, sequence_length), (before, fft_length - sequence_length - before))
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(fft_length // 2,) * 2], mode="reflect")
    y = signal.stft(
        x, window=weights, nperseg=fft_length, noverlap=fft_length - sequence_stride, boundary=None, padded=False
    )[-1]
    y = np.swapaxes(y * weights.sum(), -1, -2)
    return [y.real, y.imag]


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    """Reference by definition: the least-squares signal, one sequence at a time."""
    before = (fft_length - sequence_length) // 2
    weights = np.pad(window_of(window, sequence_length), (before, fft_length - sequence_length - before))
    frames = np.fft.irfft(complex_of(x), fft_length) * weights
    size = (frames.shape[-2] - 1) * sequence_stride + fft_length
    total, norm = np.zeros((*frames.shape[:-2], size)), np.zeros(size)
    for t in range(frames.shape[-2]):
        at = slice(t * sequence_stride, t * sequence_stride + fft_length)
        total[..., at] += frames[..., t, :]
        norm[at] += weights**2
    total = np.where(norm > 1e-10, total / np.where(norm > 1e-10, norm, 1), 0)
    edge = fft_length // 2 if center else 0
    if length is None:
        return total[..., edge : size - edge]
    total = total[..., edge : edge + length]
    return np.pad(total, [(0, 0)] * (total.ndim - 1) + [(0, length - total.shape[-1])])


def sequences(x, sequence_length, sequence_stride):
    count = max(0, (x.shape[-1] - sequence_length) // sequence_stride + 1)
    parts = [x[..., t * sequence_stride : t * sequence_stride + sequence_length] for t in range(count)]
    return np.stack(parts, -2) if parts else np.zeros((*x.shape[:-1], 0, sequence_length))


def overlap_add(x, sequence_stride):
    y = np.zeros((*x.shape[:-2], (x.shape[-2] - 1) * sequence_stride + x.shape[-1]))
    for t in range(x.shape[-2]):
        y[..., t * sequence_stride : t * sequence_stride + x.shape[-1]] += x[..., t, :]
    return y


plan = {"sequence_length": 4, "sequence_stride": 2, "fft_length": 6}

CASES = [
    *transform("fft", (2, 5)),
    *transform("ifft", (4,)),
    *transform("fft2", (2, 3, 4)),
    *transform("ifft2", (3, 2)),
    case(
        "fft",
        {"x": pair((3,), "int64")},
        lambda x: [p.astype(float) for p in (lambda y: (y.real, y.imag))(np.fft.fft(complex_of(x)))],
        "integers",
        (),
    ),
    case("fft_complex", {"x": arrays((2, 3), dtype="complex128")}, lambda x: np.fft.fft(x)),
    case("rfft_complex", {"x": arrays((5,))}, lambda x, fft_length: np.fft.rfft(x, fft_length), fft_length=5),
    case(
        "irfft_complex",
        {"x": arrays((3,), dtype="complex128")},
        lambda x, fft_length: np.fft.irfft(x, fft_length),
        fft_length=4,
    ),
    case("rfft", {"x": arrays((2, 5))}, rfft),
    case("rfft", {"x": arrays((6,))}, rfft, "even"),
    case("rfft", {"x": arrays((6,))}, rfft, "cut", fft_length=4),
    case("rfft", {"x": arrays((3,))}, rfft, "filled", fft_length=8),
    case("irfft", {"x": pair((2, 4))}, irfft),
    case("irfft", {"x": arrays((3,), dtype="complex128")}, irfft, "odd", fft_length=5),
    case("irfft", {"x": arrays((5,), dtype="complex128")}, irfft, "cut", fft_length=4),
    case("irfft", {"x": pair((2,))}, irfft, "filled", fft_length=7),
    case("extract_sequences", {"x": arrays((2, 7))}, sequences, sequence_length=3, sequence_stride=2),
    case("extract_sequences", {"x": arrays((6,))}, sequences, "gaps", sequence_length=1, sequence_stride=4),
    case("extract_sequences", {"x": arrays((2, 2))}, sequences, "none", sequence_length=3, sequence_stride=1),
    case("overlap_add", {"x": arrays((2, 3, 4))}, overlap_add, sequence_stride=3),
    case("overlap_add", {"x": arrays((3, 2))}, overlap_add, "gaps", sequence_stride=4),
    case("stft", {"x": arrays((2, 12))}, stft, **plan),
    case("stft", {"x": arrays((9,))}, stft, "odd", sequence_length=4, sequence_stride=3, fft_length=5, center=False),
    case("stft", {"x": arrays((10,))}, stft, "hamming", **plan, window="hamming"),
    case("stft", {"x": arrays((10,))}, stft, "tensor", **plan, window=np.array([0.5, 1.0, 0.7, 0.2])),
    case("stft", {"x": arrays((10,))}, stft, "none", **plan, window=None),
    case("istft", {"x": pair((2, 4, 4))}, istft, **plan),
    case("istft", {"x": arrays((3, 4), dtype="complex128")}, istft, "complex", **plan, center=False),
    case("istft", {"x": pair((3, 4))}, istft, "long", **plan, length=20, window="hamming"),
    case("istft", {"x": pair((3, 4))}, istft, "short", **plan, length=3, window=None),
]
