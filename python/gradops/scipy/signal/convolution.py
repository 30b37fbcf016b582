"""Convolution, correlation, deconvolution and ``upfirdn``, by sums or by Fourier transforms.

Sums run on each library's own convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ... import _scipy, dtypes, ops
from ...annotations import Axes, Axis, Integer, Tensor
from ...backends import tracing
from ...errors import ShapeError
from ...ops._checks import check_axes, choice
from ...ops.convolution import conv_to_output
from .. import fft
from .._define import composed, family
from .._neighbours import alike, back, bilinear, conj, extended, last, line, number, vector
from .._tensors import constant, is_complex, wrong
from .filters import lfilter

__all__ = """
choose_conv_method convolve convolve2d correlate correlate2d correlation_lags deconvolve fftconvolve oaconvolve
upfirdn
""".split()

convolution = family(
    {
        "mode": '``"full"`` for all overlaps, ``"valid"`` for complete overlaps, ``"same"`` for the middle part with '
        "the size of ``in1``.",
        "method": '``"direct"`` for sums, ``"fft"`` for Fourier transforms, or ``"auto"`` for the one that SciPy '
        "expects to be faster at these sizes.",
        "axes": "the axes to convolve along, by default all; the others broadcast.",
        "boundary": 'padding of ``in1``: ``"fill"`` with ``fillvalue``, ``"wrap"`` periodic, ``"symm"`` reflected.',
    },
    returns="A tensor of the operands' dtype; results of integers are rounded to integers.",
    raises="ShapeError: different or unsupported numbers of dimensions; empty tensors.\n"
    "ArgumentError: an unknown setting.",
    gradient="By each operand the correlation of the upstream gradient with the other, summed where edges repeat.",
)

Mode = Literal["full", "valid", "same"]
MODES = ("full", "valid", "same")


def _operands(function: str, in1, in2) -> list:
    """Return two tensors of the same rank and dtype."""
    in1, in2 = alike(in1, in2)
    if len(in1.shape) != len(in2.shape):
        raise ShapeError(
            f"`{function}`: `in1` and `in2` must have as many dimensions; got {tuple(in1.shape)} and "
            f"{tuple(in2.shape)}.",
            argument="in2",
        )
    if 0 in tuple(in1.shape) or 0 in tuple(in2.shape):
        raise ShapeError(f"`{function}`: there is nothing to convolve in an empty tensor.", argument="in1")
    return [in1, in2]


def _larger_first(function: str, mode: str, in1, in2, axes: Sequence[int]) -> list:
    """Return the operands; for ``mode="valid"`` the larger one comes first."""
    if mode != "valid":
        return [in1, in2]
    pairs = [(int(in1.shape[i]), int(in2.shape[i])) for i in axes]
    if all(n >= k for n, k in pairs):
        return [in1, in2]
    if all(n <= k for n, k in pairs):
        return [in2, in1]
    raise ShapeError(
        f"`{function}`: for `mode='valid'` one operand must be as large as the other in all dimensions; got "
        f"{tuple(in1.shape)} and {tuple(in2.shape)}.",
        argument="in2",
    )


def _window(mode: str, k: int) -> tuple[int, int]:
    """Return the numbers of zeros before and after a dimension for a kernel of size ``k``."""
    if mode == "full":
        return k - 1, k - 1
    return (k // 2, (k - 1) // 2) if mode == "same" else (0, 0)


def _direct(in1, in2, mode: str):
    """Return the convolution by sums, in 1 to 3 dimensions."""
    rank = len(in1.shape)
    sizes, window = tuple(map(int, in1.shape)), tuple(map(int, in2.shape))
    around = tuple(_window(mode, k) for k in window)

    def real(x, h):
        kernel = ops.reshape(ops.flip(h, tuple(range(rank))), (*window, 1, 1))
        y = conv_to_output(ops.reshape(x, (1, *sizes, 1)), kernel, (1,) * rank, around, (1,) * rank, 1, False)
        return ops.reshape(y, tuple(y.shape[1:-1]))

    return bilinear(real, in1, in2)


@tracing.constant
def _fast(n: int, real: bool) -> int:
    return _scipy.fft.next_fast_len(n, real)


def _convolve_by_fft(in1, in2, mode: str, axes: Sequence[int]):
    """Return the convolution by Fourier transforms along ``axes``."""
    first, second = tuple(map(int, in1.shape)), tuple(map(int, in2.shape))
    is_real = not (is_complex(in1) or is_complex(in2))
    sizes = {axis: first[axis] + second[axis] - 1 for axis in axes}
    along = [axis for axis in axes if first[axis] != 1 and second[axis] != 1]  # other axes only multiply
    if along:
        lengths = [_fast(sizes[axis], is_real) for axis in along]
        there, again = (fft.rfftn, fft.irfftn) if is_real else (fft.fftn, fft.ifftn)
        y = again(there(in1, lengths, along) * there(in2, lengths, along), lengths, along)
    else:
        y = in1 * in2
    parts = []
    for i, size in enumerate(y.shape):
        start, stop = 0, sizes.get(i, int(size))
        if mode == "same":  # also where the first operand broadcasts, as in SciPy
            start = (stop - first[i]) // 2
            stop = start + first[i]
        elif mode == "valid" and i in sizes:
            start, stop = second[i] - 1, first[i]
        parts.append(slice(start, stop))
    return y[tuple(parts)]


@convolution
def convolve(in1: Tensor, in2: Tensor, mode: Mode = "full", method: Literal["auto", "direct", "fft"] = "auto"):
    """Convolution of two tensors of the same rank."""
    choice("convolve", mode, MODES, "mode")
    choice("convolve", method, ("auto", "direct", "fft"), "method")
    whole = _whole(in1, in2)
    in1, in2 = _operands("convolve", in1, in2)
    rank = len(in1.shape)
    if rank == 0:
        y = in1 * in2
    else:
        in1, in2 = _larger_first("convolve", mode, in1, in2, range(rank))
        if method == "auto":
            direct = _faster(tuple(map(int, in1.shape)), tuple(map(int, in2.shape)), mode)
        else:
            direct = method == "direct"
        y = _direct(in1, in2, mode) if direct and rank <= 3 else _convolve_by_fft(in1, in2, mode, range(rank))
    return y if whole is None else ops.cast(ops.round(y), whole)


@tracing.constant
def _faster(first: tuple, second: tuple, mode: str) -> bool:
    shapes = [np.broadcast_to(np.float64(0), shape) for shape in (first, second)]
    return _scipy.signal.choose_conv_method(*shapes, mode) == "direct"


def _whole(in1, in2) -> str | None:
    """Return the integer dtype of the result; None if it is not an integer dtype."""
    names = [ops.dtype(x) if ops.is_tensor(x) else ops.dtype(ops.convert_to_tensor(x)) for x in (in1, in2)]
    return dtypes.promote(*names) if all(name in dtypes.INTEGERS for name in names) else None


@convolution
def correlate(in1: Tensor, in2: Tensor, mode: Mode = "full", method: Literal["auto", "direct", "fft"] = "auto"):
    """Cross-correlation of two tensors of the same rank: convolution with the second one reversed and conjugated.

    Gradient:
        By ``in1`` the convolution of the upstream gradient with ``in2``, by ``in2`` its correlation with ``in1``.
    """
    return convolve(in1, _reversed(in2), mode, method)


def _reversed(x):
    x = x if ops.is_tensor(x) else ops.convert_to_tensor(x)
    return conj(ops.flip(x, tuple(range(len(x.shape)))) if len(x.shape) else x)


@convolution
def fftconvolve(in1: Tensor, in2: Tensor, mode: Mode = "full", axes: Axes = None) -> Tensor:
    """Convolution by Fourier transforms along ``axes``, all by default; the others broadcast.

    Returns:
        A tensor of the operands' floating dtype.
    """
    choice("fftconvolve", mode, MODES, "mode")
    in1, in2 = _operands("fftconvolve", in1, in2)
    if not in1.shape:
        return in1 * in2
    along = check_axes("fftconvolve", axes, len(in1.shape), "axes")
    if not along:
        raise wrong("axes", "name at least one dimension")
    in1, in2 = _larger_first("fftconvolve", mode, in1, in2, along)
    return _convolve_by_fft(in1, in2, mode, along)


@convolution
def oaconvolve(in1: Tensor, in2: Tensor, mode: Mode = "full", axes: Axes = None) -> Tensor:
    """Convolution by :func:`fftconvolve`. SciPy's function splits it into parts (overlap-add) to save memory.

    Returns:
        A tensor of the operands' floating dtype.
    """
    return fftconvolve(in1, in2, mode, axes)


Boundary = Literal["fill", "wrap", "symm"]


@convolution
def convolve2d(in1: Tensor, in2: Tensor, mode: Mode = "full", boundary: Boundary = "fill", fillvalue=0) -> Tensor:
    """Convolution of two matrices."""
    return _convolve_matrices("convolve2d", in1, in2, mode, boundary, fillvalue)


@convolution
def correlate2d(in1: Tensor, in2: Tensor, mode: Mode = "full", boundary: Boundary = "fill", fillvalue=0) -> Tensor:
    """Cross-correlation of two matrices: :func:`convolve2d` with the second one reversed and conjugated."""
    return _convolve_matrices("correlate2d", in1, _reversed(in2), mode, boundary, fillvalue)


def _convolve_matrices(function: str, in1, in2, mode, boundary, fillvalue):
    choice(function, mode, MODES, "mode")
    choice(function, boundary, ("fill", "wrap", "symm"), "boundary")
    whole = _whole(in1, in2)
    in1, in2 = _operands(function, in1, in2)
    if len(in1.shape) != 2:
        raise wrong("in1", "be a matrix", f"the shape {tuple(in1.shape)}", ShapeError)
    in1, in2 = _larger_first(function, mode, in1, in2, (0, 1))
    fill = number(function, "fillvalue", fillvalue)
    how = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}[boundary]
    for axis in (0, 1):
        around = _window(mode, int(in2.shape[axis]))  # for even kernels, correlation rounds the middle down
        around = around[::-1] if function == "correlate2d" else around
        in1 = extended(in1, *around, how, axis, fill)
    y = _direct(in1, in2, "valid")
    return y if whole is None else ops.cast(ops.round(y), whole)


correlation_lags = constant("signal.correlation_lags")
choose_conv_method = constant("signal.choose_conv_method")


@composed
def deconvolve(signal: Tensor, divisor: Tensor) -> tuple:
    """Quotient and remainder of two polynomials: ``signal = convolve(divisor, quotient) + remainder``.

    Returns:
        Two vectors; if the divisor is longer than the signal, an empty vector and the signal.

    Raises:
        ShapeError: empty tensors, or tensors that are not vectors.

    Gradient:
        By both arguments, through :func:`lfilter`.
    """
    signal, divisor = alike(signal, divisor)
    signal, divisor = vector("deconvolve", signal, "signal"), vector("deconvolve", divisor, "divisor")
    n, d = int(signal.shape[0]), int(divisor.shape[0])
    if d > n:
        return signal[:0], signal
    impulse = ops.zeros_like(signal)[: n - d + 1]
    impulse = ops.concatenate([ops.ones_like(impulse[:1]), impulse[1:]], 0)
    quotient = lfilter(signal, divisor, impulse)
    return quotient, signal - line(quotient, divisor, d - 1, d - 1)


UPFIRDN_MODES = {"constant": "constant", "symmetric": "symmetric", "edge": "edge", "wrap": "wrap", "reflect": "reflect"}


@composed
def upfirdn(
    h: Tensor, x: Tensor, up: Integer = 1, down: Integer = 1, axis: Axis = -1,
    mode: Literal["constant", "symmetric", "edge", "wrap", "reflect"] = "constant", cval=0,
) -> Tensor:  # fmt: skip
    """Upsample by inserting zeros, convolve with ``h``, and keep every ``down``-th element.

    Args:
        up: the upsampling factor; ``up - 1`` zeros are inserted between two elements.
        down: the downsampling factor.
        mode: the padding at the edges; SciPy's modes that extrapolate are not supported.
        cval: the value of constant padding.

    Returns:
        A tensor with ``((n - 1) * up + len(h) - 1) // down + 1`` elements along ``axis``.

    Raises:
        ArgumentError: a factor below 1, an unknown mode.
        ShapeError: ``h`` is not a vector.

    Gradient:
        By ``x`` and by ``h``; the result is bilinear in them.
    """
    choice("upfirdn", mode, tuple(UPFIRDN_MODES), "mode")
    h, x = alike(h, x)
    h = vector("upfirdn", h, "h")
    up, down = int(up), int(down)
    for name, value in (("up", up), ("down", down)):
        if value < 1:
            raise wrong(name, "be at least 1", value)
    x, axis = last("upfirdn", x, axis)
    n, k = int(x.shape[-1]), int(h.shape[0])
    if n == 0:
        raise ShapeError("`upfirdn`: there is nothing to filter along an empty dimension.", argument="x")
    fill = number("upfirdn", "cval", cval)
    plain = mode == "constant" and not fill
    around = 0 if plain else -(-(k - 1) // up)
    if around:
        x = extended(x, around, around, UPFIRDN_MODES[mode], -1, fill)
    x = _spread(x, up)
    start = around * up  # offset in the full convolution of the padded signal
    count = ((n - 1) * up + k - 1) // down + 1
    lead = start - (k - 1)
    x = x[..., max(lead, 0) :] if lead > 0 else x
    return back(line(x, h, max(-lead, 0), k - 1 + down, down)[..., :count], axis)


def _spread(x, up: int):
    """Return ``x`` with ``up - 1`` zeros between its elements."""
    if up == 1:
        return x
    n = int(x.shape[-1])
    wide = ops.pad(ops.expand_dims(x, -1), [(0, 0)] * len(x.shape) + [(0, up - 1)])
    return ops.reshape(wide, (*x.shape[:-1], n * up))[..., : (n - 1) * up + 1]
