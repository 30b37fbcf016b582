"""Signals in sequences, and window functions."""

from __future__ import annotations

import numpy as np

from .. import _scipy, backends, config
from ..annotations import Integer, Operand, Tensor, Tensors
from ..backends import tracing
from ..errors import ArgumentError, ShapeError
from . import _checks
from ._checks import describe, integer, known
from ._compose import constant_like, promoted, rounded, wide
from ._dispatch import op
from ._docstrings import family
from ._structures import as_tensor, owner_of
from .conversion import cast, dtype, is_tensor, shape
from .elementwise import add, divide, greater, multiply, square
from .extending import pad
from .fourier import (
    check_real,
    check_spectrum,
    complex_of,
    half_of,
    irfft_complex,
    parts_of,
    rfft_complex,
)
from .indexing import take, where
from .properties import fits, is_empty, unknown
from .shaping import broadcast_to, reshape
from .special import i0

WINDOWS = ("hann", "hamming", "blackman", "bartlett", "boxcar")


def _count(size: int, length: int, stride: int) -> int:
    """Return the number of sequences that fit."""
    return (size - length) // stride + 1 if size >= length else 0


def _check_sequences(op, x, sequence_length, sequence_stride) -> None:
    _checks.check_rank(op.name, x, 1)
    _checks.integer(op.name, sequence_length, "sequence_length", 1)
    _checks.integer(op.name, sequence_stride, "sequence_stride", 1)


__family__ = """Signals in sequences.

Overlapping sequences of a signal, and their Fourier transforms.

See Also:
    :func:`rfft`, :func:`hanning`, :func:`unfold`, :func:`conv`.
"""


@op(check=_check_sequences, linear=("x",))
def extract_sequences(x: Tensor, sequence_length: Integer, sequence_stride: Integer) -> Tensor:
    """Sequences of equal length along the last dimension, starting ``sequence_stride`` apart.

    Args:
        sequence_length: the length of each sequence.
        sequence_stride: the distance from one sequence to the next.

    Returns:
        A tensor (..., count, sequence_length) of all sequences that fit; empty if ``x`` is too short.

    Raises:
        ShapeError: a 0-d tensor.
        ArgumentError: a length or stride below 1.

    Gradient:
        The upstream gradient, added where sequences overlap: :func:`overlap_add`.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.extract_sequences(x, 2, 1))
        [[1. 3.]
         [3. 2.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.extract_sequences(x, 2, 1) ** 2))(x))
        [ 2. 12.  4.]
    """
    length, stride = int(sequence_length), int(sequence_stride)
    count = _count(shape(x)[-1], length, stride)
    return take(x, np.arange(count)[:, None] * stride + np.arange(length), len(x.shape) - 1)


def _check_overlap(op, x, sequence_stride) -> None:
    _checks.check_rank(op.name, x, 2)
    _checks.integer(op.name, sequence_stride, "sequence_stride", 1)


@op(public=False, check=_check_overlap, linear=("x",))
def overlap_add(x: Tensor, sequence_stride: Integer) -> Tensor:
    """The sum of sequences placed ``sequence_stride`` apart: the transpose of :func:`extract_sequences`.

    Args:
        x: sequences (..., count, length).

    Returns:
        A tensor (..., (count - 1) * sequence_stride + length).

    Raises:
        ShapeError: fewer than two dimensions.

    Gradient:
        :func:`extract_sequences` of the upstream gradient.
    """
    stride = int(sequence_stride)
    *batch, count, length = shape(x)
    if is_empty((count,)):
        raise ShapeError("`overlap_add`: there are no sequences to add up.", argument="x")
    blocks = -(-length // stride)
    x = filled(x, 0, blocks * stride - length)
    total = None
    for k in range(blocks):
        block = reshape(x[..., k * stride : (k + 1) * stride], (*batch, count * stride))
        block = filled(block, k * stride, (blocks - 1 - k) * stride)
        total = block if total is None else add(total, block)
    return total[..., : (count - 1) * stride + length]


def filled(x, before: int, after: int):
    """Return ``x`` with zeros before and after its last dimension."""
    return pad(x, [(0, 0)] * (len(x.shape) - 1) + [(before, after)]) if before > 0 or after > 0 else x


def _check_window(op, window, sequence_length, sequence_stride, fft_length) -> None:
    for name, value in (
        ("sequence_length", sequence_length),
        ("sequence_stride", sequence_stride),
        ("fft_length", fft_length),
    ):
        _checks.integer(op.name, value, name, 1)
    if fft_length < sequence_length:
        raise ArgumentError(
            f"`{op.name}`: `fft_length` must be at least `sequence_length`; got {fft_length} and {sequence_length}.",
            argument="fft_length",
        )
    if isinstance(window, str):
        _checks.choice(op.name, window, WINDOWS, "window")
    elif window is not None and not fits(shape(window), (sequence_length,)):
        raise ShapeError(
            f"`{op.name}`: `window` must be of shape {(int(sequence_length),)}; got {{window}}.",
            argument="window",
            window=_checks.describe(window),
        )


def _window(window, sequence_length: int, fft_length: int, x):
    """Return the window in the dtype of real ``x``, centred in zeros up to ``fft_length``."""
    if window is None or isinstance(window, str):
        window = _named(window, int(sequence_length))
    elif not is_tensor(window):
        window = np.asarray(window)
    before = (fft_length - sequence_length) // 2
    return filled(cast(window, dtype(x)), before, fft_length - sequence_length - before)


@tracing.constant
def _named(window: str | None, length: int) -> np.ndarray:
    if window is None:
        return np.ones(length)
    return _scipy.signal.get_window(window, length)


def _check_stft(op, x, sequence_length, sequence_stride, fft_length, window, center) -> None:
    check_real(op, x)
    _check_window(op, window, sequence_length, sequence_stride, fft_length)
    size = shape(x)[-1]
    if center and not unknown(size) and size <= fft_length // 2:
        raise ShapeError(
            f"`{op.name}`: with `center` the last size of `x` must be above half of `fft_length`, {fft_length}; "
            "got {x}.",
            argument="x",
            x=_checks.describe(x),
        )


@op(check=_check_stft)
def stft(
    x: Tensor,
    sequence_length: Integer,
    sequence_stride: Integer,
    fft_length: Integer,
    window: str | None = "hann",
    center: bool = True,
) -> tuple:
    """Short-time Fourier transform of a real signal over the last dimension.

    Args:
        sequence_length: the length of the window.
        sequence_stride: the distance from one sequence to the next.
        fft_length: the length of the transforms, at least ``sequence_length``; the window is centred in them.
        window: ``"hann"``, ``"hamming"``, ``"blackman"``, ``"bartlett"``, ``"boxcar"`` (periodic), a tensor of
            ``sequence_length`` weights, or None for no window.
        center: whether to reflect ``x`` at both ends so that sequence t is centred at ``t * sequence_stride``; else it
            starts there.

    Returns:
        A pair of real tensors (..., count, fft_length // 2 + 1): real and imaginary part.

    Raises:
        ShapeError: a 0-d tensor, one too short to be reflected, or a window of another length.
        ArgumentError: a length or stride below 1, or an unknown window.

    Gradient:
        Through the sequences' transforms, which are linear; to a window's tensor too.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0, 4.0])
        >>> print(ops.stft(x, 4, 2, 4, center=False)[0])
        [[ 5.5 -2.  -1.5]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.stft(x, 4, 2, 4, center=False)[0] ** 2))(x))
        [ 0.  7. 12.  7.]
    """
    length, stride, fft_length = int(sequence_length), int(sequence_stride), int(fft_length)
    x, half = wide(x)
    edge = fft_length // 2 if center else 0
    if edge:
        x = pad(x, [(0, 0)] * (len(x.shape) - 1) + [(edge, edge)], "reflect")
    sequences = multiply(extract_sequences(x, fft_length, stride), _window(window, length, fft_length, x))
    return parts_of(rfft_complex(sequences, fft_length), half)


def _check_istft(op, x, sequence_length, sequence_stride, fft_length, length, window, center) -> None:
    sizes = check_spectrum(op, x, 2)
    _check_window(op, window, sequence_length, sequence_stride, fft_length)
    if length is not None:
        _checks.integer(op.name, length, "length", 1)
    if not fits(sizes[-1:], (fft_length // 2 + 1,)):
        raise ShapeError(
            f"`{op.name}`: the last size of `x` must be `fft_length // 2 + 1`, {fft_length // 2 + 1}; got {sizes}.",
            argument="x",
        )
    if is_empty(sizes[-2:-1]):
        raise ShapeError(f"`{op.name}`: there are no sequences to add up.", argument="x")


@op(check=_check_istft)
def istft(
    x: Tensors,
    sequence_length: Integer,
    sequence_stride: Integer,
    fft_length: Integer,
    length: Integer | None = None,
    window: str | None = "hann",
    center: bool = True,
) -> Tensor:
    """Inverse of :func:`stft`: the signal whose short-time transform is nearest (Griffin & Lim 1984).

    Args:
        x: a spectrum (..., count, fft_length // 2 + 1): a pair of a real and an imaginary part, or a complex tensor.
        length: the length of the result, cut or filled up with 0.
        sequence_length, sequence_stride, fft_length, window, center: as in the :func:`stft`.

    Returns:
        A real tensor (..., length); by default the length that the sequences cover, without reflected ends. It is 0
        where no window reaches.

    Raises:
        ShapeError: fewer than two dimensions, a last size that does not fit, or a window of another length.
        ArgumentError: a length or stride below 1, or an unknown window.

    Gradient:
        Through the sequences' transforms, which are linear; to a window's tensor too.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0, 4.0])
        >>> print(ops.istft(ops.stft(x, 4, 2, 4), 4, 2, 4, length=4))
        [1. 3. 2. 4.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.istft(ops.stft(x, 4, 2, 4), 4, 2, 4, length=4) ** 2))(x))
        [2. 6. 4. 8.]
    """
    size, stride, fft_length = int(sequence_length), int(sequence_stride), int(fft_length)
    frames = irfft_complex(complex_of(x), fft_length)
    weights = _window(window, size, fft_length, frames)
    total = overlap_add(multiply(frames, weights), stride)
    norm = overlap_add(broadcast_to(square(weights), (shape(frames)[-2], fft_length)), stride)
    reached = greater(norm, 1e-10)
    total = where(reached, divide(total, where(reached, norm, 1.0)), 0.0)
    edge = fft_length // 2 if center else 0
    covered = shape(total)[-1] - (0 if length is not None else edge)
    wanted = covered - edge if length is None else int(length)
    total = total[..., edge : edge + wanted]
    missing = wanted - shape(total)[-1]
    return rounded(filled(total, 0, missing), half_of(x))


def _pass_numbers(body):
    """Pass plain numbers to the op unchanged, as a tensor's value would be unknown in a trace."""
    body.takes_numbers = True
    return body


def _float_window(op: str, x):
    """Return NumPy's window of that name, on the backend of its length if that is a tensor."""
    owner = backends.backend_of(x) or config.default_backend()
    return owner.convert(_numpys(op, _points(op, x)), config.floatx(), x if backends.backend_of(x) else None)


@tracing.constant
def _numpys(name: str, points: int) -> np.ndarray:
    return getattr(np, name)(points)


def _points(op: str, x) -> int:
    if isinstance(x, (int, float)):
        return integer(op, x, "x")
    values = known(x)
    if values is None or values.ndim:
        raise ArgumentError(f"`{op}`: `x` must be one known number; got {{given}}.", argument="x", given=describe(x))
    return integer(op, values.item(), "x")


window = family(
    {"x": "the number of points."},
    returns="A vector of ``floatx``, empty where ``x`` is below 1. It has no gradient.",
    raises="ArgumentTypeError: an ``x`` that is not a whole number.",
)


__family__ = """Window functions.

Weights that decrease towards both ends, for signals and spectra.

See Also:
    :func:`stft`, :func:`fft`, :func:`sinc`, :func:`i0`.
"""


@op(differentiable=False)
@_pass_numbers
@window
def bartlett(x: Operand) -> Tensor:
    """The triangular window, 0 at both ends."""
    return _float_window("bartlett", x)


@op(differentiable=False)
@_pass_numbers
@window
def blackman(x: Operand) -> Tensor:
    """The Blackman window: ``0.42 - 0.5 * cos(2 * pi * n / (x - 1)) + 0.08 * cos(4 * pi * n / (x - 1))``."""
    return _float_window("blackman", x)


@op(differentiable=False)
@_pass_numbers
@window
def hamming(x: Operand) -> Tensor:
    """The Hamming window: ``0.54 - 0.46 * cos(2 * pi * n / (x - 1))``."""
    return _float_window("hamming", x)


@op(differentiable=False)
@_pass_numbers
@window
def hanning(x: Operand) -> Tensor:
    """The Hann window: ``0.5 - 0.5 * cos(2 * pi * n / (x - 1))``."""
    return _float_window("hanning", x)


@op
@_pass_numbers
@window
def kaiser(x: Operand, beta: Operand) -> Tensor:
    """The Kaiser window: ``i0(beta * sqrt(1 - (2 * n / (x - 1) - 1)**2)) / i0(beta)``.

    Args:
        x: the number of points.
        beta: how steeply it decreases; 0 for a rectangle.

    Returns:
        A vector of ``beta``'s dtype, of ``floatx`` for a number, empty where ``x`` is below 1.

    Gradient:
        To ``beta``, through :func:`i0`, whose derivative is the Bessel function ``i1``.

    Examples:
        >>> beta = np.array(2.0)
        >>> print(ops.kaiser(3, beta).round(4))
        [0.4387 1.     0.4387]
        >>> print(gradops.grad(lambda beta: ops.sum(ops.kaiser(3, beta)))(beta).round(4))
        -0.6122
    """
    points = _points("kaiser", x)
    x = points if isinstance(x, int) else x  # a number, known in a trace too
    owner = owner_of("kaiser", x, beta)
    beta = as_tensor("kaiser", beta, owner, "beta", x if backends.backend_of(x) is owner else None)
    (beta,) = promoted(beta, floating=True)
    exact, _ = wide(beta)
    circle = constant_like(_circle(points), exact, config.floatx())
    return cast(divide(i0(multiply(circle, exact)), i0(exact)), dtype(beta))


@tracing.constant
def _circle(points: int) -> np.ndarray:
    """Return a half circle over the points: ``sqrt(1 - t**2)`` for ``t`` from -1 to 1."""
    t = np.linspace(-1, 1, points) if points > 1 else np.zeros(max(points, 0))
    return np.sqrt(np.maximum(1 - t**2, 0))
