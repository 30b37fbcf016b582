"""``scipy.fft``: Fourier, cosine, sine and Hankel transforms along any axes, with SciPy's names.

Each transform is linear, so its gradient is the transposed transform of the upstream gradient, to any order. There are
derivatives by the values only; axes, lengths and settings are numbers. Half precision is computed in float32.
``overwrite_x`` and ``workers`` are accepted and do not change the result.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy import fft
    >>> x = np.array([1.0, 2.0, 5.0])
    >>> print(fft.dct(x).round(3))
    [16.    -6.928  2.   ]
    >>> print(gradops.grad(lambda x: ops.sum(ops.abs(fft.fft(x)) ** 2))(x))
    [ 6. 12. 30.]

See Also:
    :func:`gradops.ops.fft`, which takes a real and an imaginary part; ``gradops.scipy.signal`` for filters and spectra.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from .. import _scipy, ops
from ..annotations import Axes, Axis, Integer, Shape, Tensor
from ..backends import tracing
from ..errors import ArgumentTypeError, ShapeError
from ..extend import derivative, kernel
from ..extend import op as make_op
from ..ops.fourier import fft_complex, irfft_complex, rfft_complex
from ._define import composed, family
from ._names import namespace
from ._neighbours import back
from ._tensors import as_complex, constant, constant_like, inexact, is_complex, numbers, option, wrong

__all__ = """
dct dctn dst dstn fft fft2 fftfreq fftn fftshift fht fhtoffset hfft hfft2 hfftn idct idctn idst idstn ifft ifft2
ifftn ifftshift ifht ihfft ihfft2 ihfftn irfft irfft2 irfftn next_fast_len prev_fast_len rfft rfft2 rfftfreq
rfftn
""".split()

Norm = Literal["backward", "ortho", "forward", None]
POWERS = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
ARGUMENTS = {
    "type": "one of the transforms 1 to 4.",
    "n": "the length to which ``x`` is cut or padded with zeros.",
    "s": "the lengths to which the axes are cut or padded with zeros; -1 keeps an axis unchanged.",
    "axes": "distinct dimensions; by default all, or the last ones, as many as ``s`` has lengths.",
    "norm": '``"backward"`` (the default) divides the inverse by ``n``, ``"forward"`` the transform, ``"ortho"`` both '
    "by the square root of ``n``.",
    "orthogonalize": 'scales the edges so that the matrix is orthogonal, by default with ``"ortho"``.',
}
ERRORS = "ShapeError: there is no such axis.\nArgumentError: nothing to transform, a setting that does not fit."

# Fourier transforms --------------------------------------------------------------------------------------------------


def _scaled(y, norm, n: int, inverse: bool, divided: bool = True):
    """Scale a transform as ``norm`` says; ``divided`` is True if inverse transforms are already divided by ``n``."""
    option("fft", norm, tuple(POWERS), "norm")
    power = POWERS[norm] - (not divided) if inverse else -POWERS[norm]
    return y * float(n) ** power if power else y


def _sized(x, n: int | None, axis: int):
    """Return ``x`` with ``axis`` as the last dimension, cut or padded with zeros to ``n``."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise ShapeError(f"`fft`: there is no axis {axis} in a tensor of shape {tuple(x.shape)}.", argument="x")
    x = ops.moveaxis(x, axis, -1) if axis not in (-1, rank - 1) else x
    size = x.shape[-1]
    n = size if n is None else n
    if n < 1:
        raise wrong("n", "be at least 1, a length with something to transform", n)
    if n < size:
        return x[..., :n]
    return ops.pad(x, [(0, 0)] * (rank - 1) + [(0, n - size)]) if n > size else x


def _whole(x, n, axis, norm, inverse: bool):
    x = _sized(x, n, axis)
    return back(_scaled(fft_complex(x, 1, inverse), norm, x.shape[-1], inverse), axis % len(x.shape))


def _check_real(x) -> None:
    if is_complex(x):
        raise wrong("x", "be real", ops.dtype(x), ArgumentTypeError)


def _half(x, n, axis, norm, inverse: bool):
    """Return the half spectrum of a real ``x``; with ``inverse`` its conjugate, divided by the length."""
    _check_real(x)
    x = _sized(x, n, axis)
    length = x.shape[-1]
    y = rfft_complex(x, length)
    y = ops.conj(y) / length if inverse else y
    return back(_scaled(y, norm, length, inverse), axis % len(x.shape))


def _inverse_half(x, n, axis, norm, inverse: bool):
    """Return the real signal of a half spectrum; without ``inverse`` of its conjugate, unscaled."""
    n = 2 * (x.shape[axis] - 1) if n is None else n
    if n < 1:
        raise wrong("n", "be at least 1, a length with something to transform", n)
    x = _sized(x, n // 2 + 1, axis)
    y = irfft_complex(x, n) if inverse else irfft_complex(ops.conj(x), n) * n
    return back(_scaled(y, norm, n, inverse), axis % len(x.shape))


def _axes(x, s, axes) -> tuple[list, list[int]]:
    """Return the length of each axis, or None to keep it, and the axes."""
    rank = len(x.shape)
    lengths = None if s is None else [None if n == -1 else int(n) for n in np.atleast_1d(s)]
    if axes is None:
        along = list(range(rank)) if lengths is None else list(range(rank - len(lengths), rank))
    else:
        along = [int(axis) for axis in np.atleast_1d(axes)]
    if lengths is not None and len(lengths) != len(along):
        raise wrong("s", f"have a length for each of {len(along)} axes", len(lengths))
    if any(not -rank <= axis < rank for axis in along) or len({axis % rank for axis in along}) != len(along):
        raise wrong("axes", f"be different dimensions of a tensor of shape {tuple(x.shape)}", along)
    return lengths or [None] * len(along), along


def _transform_axes(transform: Callable, x, s, axes, norm, inverse: bool):
    """Apply a transform along the last of the axes, and the complex transform along the others."""
    x = inexact(x)
    sizes, along = _axes(x, s, axes)
    if transform is not _whole and not along:
        raise wrong("axes", "name at least 1 dimension")
    steps = [(_whole, n, axis) for n, axis in zip(sizes, along)]
    if transform is not _whole:
        steps[-1] = (transform, *steps[-1][1:])
    for step, n, axis in [*steps[-1:], *steps[:-1]] if transform is _half else steps:
        x = step(x, n, axis, norm, inverse)
    return x


RESULTS = {
    _whole: "A complex tensor of ``x``'s shape, with the given lengths.",
    _half: "A complex tensor with ``m // 2 + 1`` elements along the (last) axis, where ``x`` has ``m``.",
    _inverse_half: "A real tensor; its (last) axis has the given length, "
    "by default ``2 * (m - 1)`` where ``x`` has ``m``.",
}


def _transforms(name: str, transform: Callable, inverse: bool, title: str, gradient: str):
    """Return a transform along one axis, along several and along two."""

    def one(
        x: Tensor, n: Integer | None = None, axis: Axis = -1, norm: Norm = None, overwrite_x=False, workers=None
    ) -> Tensor:
        return transform(inexact(x), n, axis, norm, inverse)

    def several(
        x: Tensor, s: Shape | None = None, axes: Axes = None, norm: Norm = None, overwrite_x=False, workers=None
    ) -> Tensor:
        return _transform_axes(transform, x, s, axes, norm, inverse)

    def two(
        x: Tensor, s: Shape | None = None, axes: Axes = (-2, -1), norm: Norm = None, overwrite_x=False, workers=None
    ) -> Tensor:
        return _transform_axes(transform, x, s, axes, norm, inverse)

    finished = family(ARGUMENTS, returns=RESULTS[transform], raises=ERRORS, gradient=gradient)
    for function, end, where in ((one, "", "an axis"), (several, "n", "several axes"), (two, "2", "two axes")):
        function.__name__ = function.__qualname__ = name + end
        function.__doc__ = f"{title.format(end)} along {where}."
    return finished(one), finished(several), finished(two)


fft, fftn, fft2 = _transforms(
    "fft",
    _whole,
    False,
    "Discrete Fourier transform",
    "The unnormalised inverse transform of the upstream gradient.",
)
ifft, ifftn, ifft2 = _transforms(
    "ifft",
    _whole,
    True,
    "Inverse of :func:`fft{}`, the inverse discrete Fourier transform",
    "The transform of the upstream gradient, divided by the lengths.",
)
rfft, rfftn, rfft2 = _transforms(
    "rfft",
    _half,
    False,
    "The first half of the discrete Fourier transform of a real tensor",
    "The real part of the unnormalised inverse transform of the upstream gradient.",
)
irfft, irfftn, irfft2 = _transforms(
    "irfft",
    _inverse_half,
    True,
    "Inverse of :func:`rfft{}`, the real signal of a half spectrum",
    "The transform of the upstream gradient divided by the length, with the inner frequencies doubled.",
)
hfft, hfftn, hfft2 = _transforms(
    "hfft",
    _inverse_half,
    False,
    "The real spectrum of a signal with Hermitian symmetry whose first half is ``x``",
    "The inverse transform of the upstream gradient times the length, with the inner elements doubled.",
)
ihfft, ihfftn, ihfft2 = _transforms(
    "ihfft",
    _half,
    True,
    "Inverse of :func:`hfft{}`, the first half of a signal with Hermitian symmetry",
    "The conjugate of the transform of the upstream gradient, divided by the length.",
)

# Cosine and sine transforms ------------------------------------------------------------------------------------------


@make_op(name="scipy.fft.real_transform", linear=("x",))
def _real_transform(x: Tensor, sine: bool, kind: Integer) -> Tensor:
    """Return the unscaled cosine or sine transform of a real tensor along the last dimension.

    It is part of a Fourier transform of twice the length, whose input and output are multiplied by constant phases.
    """
    n = int(x.shape[-1])
    length = 2 * n if kind > 1 else 2 * (n + 1 if sine else n - 1)
    before = 1 if sine and kind in (1, 3) else 0
    start = 1 if sine and kind in (1, 2) else 0
    weight, turn = _turns(n, bool(sine), int(kind))
    x = (
        x * constant_like(weight[0], x)
        if len(weight) == 1
        else as_complex(*[x * constant_like(part, x) for part in weight])
    )
    x = ops.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(before, length - before - n)])
    y = (rfft_complex(x, length) if len(weight) == 1 else fft_complex(x, 1, False))[..., start : start + n]
    re, im = ops.real(y), ops.imag(y)
    if turn:
        cos, sin = [constant_like(part, re) for part in turn]
        return -(re * sin + im * cos) if sine else re * cos - im * sin
    return -im if sine else re


@tracing.constant
def _turns(n: int, sine: bool, kind: int) -> tuple:
    """Return the factors of the input and of the output, each a real part, real and imaginary parts, or nothing."""
    k = np.arange(n)
    counts = 2 * edges(n, sine, kind)
    if kind == 1:
        return (counts,), ()
    if kind == 2:
        return (counts,), _turned(1.0, (k + sine) / (2 * n))
    if kind == 3:
        return _turned(counts, (k + sine) / (2 * n)), ()
    return _turned(counts, k / (2 * n)), _turned(1.0, (k + 0.5) / (2 * n))


def _turned(size, turns) -> tuple:
    """Return the real and imaginary parts of ``size * exp(-1j * pi * turns)``."""
    return size * np.cos(np.pi * turns), -size * np.sin(np.pi * turns)


def edges(n: int, sine: bool, kind: int) -> np.ndarray:
    """Return factors of the inputs: in types 1 and 3 the edges enter the sums once, all other elements twice."""
    factors = np.ones(n)
    if kind == 3:
        factors[-1 if sine else 0] = 0.5
    elif kind == 1 and not sine:
        factors[[0, -1]] = 0.5
    return factors


_edges = tracing.constant(edges)


def _transposed(g, sine, kind):
    """Return the transposed transform of ``g``."""
    if kind == 4 or (kind == 1 and sine):
        return _real_transform(g, sine, kind)
    factors = constant_like(_edges(int(g.shape[-1]), bool(sine), 1 if kind == 1 else 3), g)
    if kind == 1:
        return _real_transform(g / factors, sine, 1) * factors
    return _real_transform(g / factors, sine, 3) if kind == 2 else _real_transform(g, sine, 2) * factors


derivative(_real_transform, x=lambda g, sine, kind: _transposed(g, sine, kind))


@kernel(_real_transform, "numpy")
def _(x, sine, kind):
    return (_scipy.fft.dst if sine else _scipy.fft.dct)(x, kind)


def _trigonometric(x, type, n, axis, norm, orthogonalize, sine: bool, inverse: bool):
    if type not in (1, 2, 3, 4):
        raise wrong("type", "be 1, 2, 3 or 4", repr(type))
    kind = (1, 3, 2, 4)[type - 1] if inverse else type
    x = _sized(x, n, axis)
    if ops.dtype(x) in ("float16", "bfloat16"):
        x = ops.cast(x, "float32")
    n = int(x.shape[-1])
    if type == 1 and not sine and n < 2:
        raise wrong("x", "have at least 2 elements for type 1", n)
    before = after = None
    if norm == "ortho" if orthogonalize is None else orthogonalize:
        before, after = _orthogonal(n, sine, kind)
    x = x if before is None else ops.multiply(x, constant_like(before, ops.real(x)))
    y = _transform_parts(x, sine, kind)
    y = y if after is None else ops.multiply(y, constant_like(after, ops.real(y)))
    whole = 2 * (n + (1 if sine else -1) if type == 1 else n)
    return back(_scaled(y, norm, whole, inverse, divided=False), axis % len(y.shape))


def _transform_parts(x, sine: bool, kind: int):
    if not is_complex(x):
        return _real_transform(x, sine, kind)
    return as_complex(*[_real_transform(part, sine, kind) for part in (ops.real(x), ops.imag(x))])


@tracing.constant
def _orthogonal(n: int, sine: bool, kind: int) -> tuple:
    """Return the factors of the input and the output, or None, that make the matrix orthogonal up to one factor."""
    factors = np.sqrt(edges(n, sine, 3 if kind == 2 else kind))
    before = 1 / factors if kind in (1, 3) else None
    return before, factors if kind in (1, 2) else None


def _real_transforms(name: str, sine: bool, inverse: bool, title: str):
    """Return a cosine or sine transform along one axis and along several."""

    def one(
        x: Tensor, type: Literal[1, 2, 3, 4] = 2, n: Integer | None = None, axis: Axis = -1, norm: Norm = None,
        overwrite_x=False, workers=None, orthogonalize=None,
    ) -> Tensor:  # fmt: skip
        return _trigonometric(inexact(x), type, n, axis, norm, orthogonalize, sine, inverse)

    def several(
        x: Tensor, type: Literal[1, 2, 3, 4] = 2, s: Shape | None = None, axes: Axes = None, norm: Norm = None,
        overwrite_x=False, workers=None, *, orthogonalize=None,
    ) -> Tensor:  # fmt: skip
        x = inexact(x)
        for n, axis in zip(*_axes(x, s, axes)):
            x = _trigonometric(x, type, n, axis, norm, orthogonalize, sine, inverse)
        return x

    finished = family(
        ARGUMENTS,
        returns="A tensor of ``x``'s dtype, at least float32.",
        raises=ERRORS,
        gradient="The transposed transform of the upstream gradient.",
    )
    for function, end, where in ((one, "", "an axis"), (several, "n", "several axes")):
        function.__name__ = function.__qualname__ = name + end
        function.__doc__ = f"{title.format(end)} along {where}, of types 1 to 4; complex tensors by parts."
    return finished(one), finished(several)


dct, dctn = _real_transforms("dct", False, False, "Cosine transform")
idct, idctn = _real_transforms("idct", False, True, "Inverse of :func:`dct{}`")
dst, dstn = _real_transforms("dst", True, False, "Sine transform")
idst, idstn = _real_transforms("idst", True, True, "Inverse of :func:`dst{}`")

# Hankel transforms ---------------------------------------------------------------------------------------------------


hankel = family(
    {"dln": "the spacing of the logarithms. ``dln``, ``mu``, ``offset`` and ``bias`` must be known numbers."},
    returns="A real tensor of ``{first}``'s shape.",
    gradient="By ``{first}`` only; the transform is linear in it.",
)


@hankel
def fht(a: Tensor, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Fast Hankel transform of a real, logarithmically spaced sequence along the last dimension (Hamilton 2000).

    Args:
        mu: the order of the Bessel function.
        offset: the offset of the output's logarithms.
        bias: the exponent of the power law bias.
    """
    return _hankel(inexact(a), (dln, mu, offset, bias), False)


@hankel
def ifht(A: Tensor, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Inverse of :func:`fht`."""
    return _hankel(inexact(A), (dln, mu, offset, bias), True)


def _hankel(a, settings, inverse: bool):
    _check_real(a)
    n = int(a.shape[-1])
    known = [float(numbers("fft", name, x)) for name, x in zip(("dln", "mu", "offset", "bias"), settings)]
    before, re, im, after = _mellin(n, inverse, *known)
    spectrum = rfft_complex(a if before is None else a * constant_like(before, a), n)
    like = ops.real(spectrum)
    y = ops.flip(irfft_complex(spectrum * as_complex(constant_like(re, like), constant_like(im, like)), n), -1)
    return y if after is None else y * constant_like(after, y)


@tracing.constant
def _mellin(n: int, inverse: bool, dln: float, mu: float, offset: float, bias: float) -> tuple:
    """Return factors before the transform, of the spectrum (real and imaginary parts), and after the inverse transform.

    The factors of the spectrum are the Mellin transform of the Bessel function.
    """
    plus, minus = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    y = np.linspace(0, np.pi * (n // 2) / (n * dln), n // 2 + 1)
    up, down = _scipy.special.loggamma(plus + 1j * y), _scipy.special.loggamma(minus + 1j * y)
    log = up.real - down.real + math.log(2) * bias + 1j * (up.imag + down.imag + 2 * (math.log(2) - offset) * y)
    u = np.exp(log)
    if n % 2 == 0:
        u.imag[-1] = 0
    if not np.isfinite(u[0]):  # a pole of both Gamma functions
        u[0] = 2**bias * _scipy.special.poch(minus, plus - minus)
    places = (np.arange(n) - (n - 1) / 2) * dln
    first, last = np.exp(-bias * places), np.exp(-bias * (places + offset))
    if inverse:
        u = 1 / u.conj()
        first, last = 1 / last, 1 / first
    if not np.isfinite(u[0]):  # as in SciPy; the rest of the transform may be right
        warnings.warn(f"singular {'inverse ' * inverse}transform; consider changing the bias", stacklevel=4)
        u[0] = 0
    return (first, u.real, u.imag, last) if bias else (None, u.real, u.imag, None)


fhtoffset = constant("fft.fhtoffset")


# Helpers -------------------------------------------------------------------------------------------------------------

fftfreq, rfftfreq = constant("fft.fftfreq"), constant("fft.rfftfreq")
next_fast_len, prev_fast_len = constant("fft.next_fast_len"), constant("fft.prev_fast_len")


def _shifted(x, axes, direction: Callable[[int], int]):
    along: Sequence[int] = range(len(x.shape)) if axes is None else [int(axis) for axis in np.atleast_1d(axes)]
    return ops.roll(x, [direction(int(x.shape[axis])) for axis in along], list(along))


@composed
def fftshift(x: Tensor, axes: Axes = None) -> Tensor:
    """``x`` with the frequency 0 in the middle of ``axes``, all by default.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        :func:`ifftshift` of the upstream gradient.
    """
    return _shifted(x if ops.is_tensor(x) else ops.convert_to_tensor(x), axes, lambda n: n // 2)


@composed
def ifftshift(x: Tensor, axes: Axes = None) -> Tensor:
    """Inverse of :func:`fftshift`.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        :func:`fftshift` of the upstream gradient.
    """
    return _shifted(x if ops.is_tensor(x) else ops.convert_to_tensor(x), axes, lambda n: -(n // 2))


REFUSED = dict.fromkeys(
    "get_workers set_workers set_backend set_global_backend skip_backend register_backend".split(),
    "it is a setting of SciPy's own transforms, and gradops uses those of each library",
)
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)
