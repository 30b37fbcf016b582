"""Fourier transforms.

Along the last dimensions. A pair of real tensors (real and imaginary part, as in Keras) in a tuple or list gives a
pair; one tensor (complex, or real with no imaginary part) gives a complex tensor. The spectrum of a real signal
(``rfft``, ``stft``) is a pair, as in Keras; ``irfft`` and ``istft`` take a spectrum as a pair or complex. Half
precision is worked on in float32 and real results are rounded to it; complex ones are complex64.

See Also:
    :func:`stft`, :func:`view_as_complex`, :func:`hanning`, :func:`conv`.
"""

from __future__ import annotations

from ..annotations import Integer, Tensor, Tensors
from ..dtypes import promote
from ..errors import ArgumentError, ArgumentTypeError, ShapeError
from . import _checks
from ._compose import is_complex, rounded
from ._dispatch import op
from ._docstrings import family
from .conversion import dtype, shape
from .elementwise import imag, real
from .elementwise_composed import to_complex
from .properties import fits, is_empty, unknown


def _is_pair(x) -> bool:
    return isinstance(x, (tuple, list))


def check_spectrum(op, x, rank: int) -> tuple:
    """Return the shape of a pair or complex tensor, or raise if it does not have ``rank`` dimensions."""
    if not _is_pair(x):
        _checks.check_rank(op.name, x, rank)
        return shape(x)
    if len(x) != 2:
        raise ArgumentError(
            f"`{op.name}`: `x` must be a complex tensor, or a pair of a real and an imaginary part; got {{x}}.",
            argument="x",
            x=_checks.describe(x),
        )
    for part in x:
        _checks.check_rank(op.name, part, rank)
        if is_complex(part):
            raise ArgumentTypeError(f"`{op.name}`: the parts of the pair `x` must be real.", argument="x")
    if not fits(shape(x[0]), shape(x[1])):
        raise ShapeError(
            f"`{op.name}`: the real and imaginary parts of `x` must have one shape; "
            f"got {shape(x[0])} and {shape(x[1])}.",
            argument="x",
        )
    return shape(x[0])


def _not_empty(op, sizes, count: int) -> None:
    if is_empty(sizes[len(sizes) - count :]):
        raise ShapeError(f"`{op.name}`: there is nothing to transform along an empty dimension.", argument="x")


def _check_line(op, x) -> None:
    _not_empty(op, check_spectrum(op, x, 1), 1)


def _check_plane(op, x) -> None:
    _not_empty(op, check_spectrum(op, x, 2), 2)


def complex_of(x):
    """Return a pair, or a complex tensor, as a complex tensor."""
    return to_complex(*x) if _is_pair(x) else x


def half_of(x) -> str | None:
    """Return the dtype of a half-precision tensor or pair, which real results are rounded to; None for other dtypes."""
    name = promote(dtype(x[0]), dtype(x[1])) if _is_pair(x) else dtype(x)
    return name if name in ("float16", "bfloat16") else None


def parts_of(y, half: str | None) -> tuple:
    """Return the real and imaginary part of a complex tensor, rounded to half precision."""
    return rounded(real(y), half), rounded(imag(y), half)


def _transformed(x, dimensions: int, inverse: bool):
    y = fft_complex(complex_of(x), dimensions, inverse)
    return parts_of(y, half_of(x)) if _is_pair(x) else y


@op(public=False, linear=("x",))
def fft_complex(x: Tensor, dimensions: Integer = 1, inverse: bool = False) -> Tensor:
    """Discrete Fourier transform of a complex tensor: the base of :func:`fft` and its family.

    Args:
        dimensions: 1 or 2, the number of last dimensions to transform.
        inverse: the inverse transform, divided by the number of elements.

    Returns:
        A complex tensor of ``x``'s shape.

    Gradient:
        The transform's transpose, which is itself.
    """
    ...


@op(public=False, linear=("x",))
def rfft_complex(x: Tensor, fft_length: Integer) -> Tensor:
    """The half spectrum of a real tensor as a complex tensor: the base of :func:`rfft`.

    Args:
        fft_length: ``x``'s last dimension is cut or filled up with 0 to this length.

    Returns:
        A complex tensor (..., fft_length // 2 + 1).

    Gradient:
        :func:`irfft_complex` of the upstream gradient, times the length, inner frequencies halved.
    """
    ...


@op(public=False, linear=("x",))
def irfft_complex(x: Tensor, fft_length: Integer) -> Tensor:
    """The real signal of a complex half spectrum: the base of :func:`irfft`.

    Args:
        fft_length: the length of the signal; ``x``'s last dimension is cut or filled up with 0 to its half, plus 1.

    Returns:
        A real tensor (..., fft_length).

    Gradient:
        :func:`rfft_complex` of the upstream gradient, divided by the length, inner frequencies doubled.
    """
    ...


complex_pairs = family(
    {"x": "a pair of a real and an imaginary part of one shape, or a complex tensor."},
    returns="A pair of real tensors for a pair, a complex tensor for a tensor, of the same shape.",
)


@op(check=_check_line)
@complex_pairs
def fft(x: Tensors):
    """Discrete Fourier transform over the last dimension.

    Raises:
        ShapeError: no dimension, an empty one, or parts of different shapes.

    Gradient:
        The unnormalised inverse transform of the upstream gradient.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.fft((x, 0 * x))[0], gradops.grad(lambda x: ops.sum(ops.fft((x, 0 * x))[0] ** 2))(x))
        [ 4. -2.] [ 4. 12.]
    """
    return _transformed(x, 1, False)


@op(public=False, check=_check_line)
@complex_pairs
def ifft(x: Tensors):
    """Inverse discrete Fourier transform over the last dimension, divided by its size.

    Raises:
        ShapeError: no dimension, an empty one, or parts of different shapes.

    Gradient:
        The transform of the upstream gradient, divided by the size.
    """
    return _transformed(x, 1, True)


@op(check=_check_plane)
@complex_pairs
def fft2(x: Tensors):
    """Discrete Fourier transform over the last two dimensions.

    Raises:
        ShapeError: fewer than two dimensions, an empty one, or parts of different shapes.

    Gradient:
        The unnormalised inverse transform of the upstream gradient.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.fft2((x, 0 * x))[0])
        [[10. -4.]
         [-2.  0.]]
        >>> print(gradops.grad(lambda x: ops.fft2((x, 0 * x))[0][0, 1])(x))
        [[ 1. -1.]
         [ 1. -1.]]
    """
    return _transformed(x, 2, False)


@op(check=_check_plane)
@complex_pairs
def ifft2(x: Tensors):
    """Inverse discrete Fourier transform over the last two dimensions, divided by their sizes.

    Raises:
        ShapeError: fewer than two dimensions, an empty one, or parts of different shapes.

    Gradient:
        The transform of the upstream gradient, divided by the sizes.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.ifft2((x, 0 * x))[0])
        [[ 2.5 -1. ]
         [-0.5  0. ]]
        >>> print(gradops.grad(lambda x: ops.ifft2((x, 0 * x))[0][0, 1])(x))
        [[ 0.25 -0.25]
         [ 0.25 -0.25]]
    """
    return _transformed(x, 2, True)


def check_real(op, x) -> None:
    """Raise unless ``x`` is a real signal of at least one dimension."""
    _checks.check_rank(op.name, x, 1)
    if is_complex(x):
        raise ArgumentTypeError(f"`{op.name}`: `x` must be real; got {{x}}.", argument="x", x=_checks.describe(x))


def _check_rfft(op, x, fft_length) -> None:
    check_real(op, x)
    if fft_length is None:
        _not_empty(op, shape(x), 1)
    else:
        _checks.integer(op.name, fft_length, "fft_length", 1)


@op(check=_check_rfft)
def rfft(x: Tensor, fft_length: Integer | None = None) -> tuple:
    """Discrete Fourier transform of a real signal over the last dimension: the first half of the spectrum.

    Args:
        x: a real tensor.
        fft_length: the length of the transform; ``x`` is cut or filled up with 0. By default ``x``'s last size.

    Returns:
        A pair of real tensors (..., fft_length // 2 + 1): real and imaginary part.

    Raises:
        ShapeError: no dimension, or an empty one.
        ArgumentTypeError: a complex tensor.

    Gradient:
        The unnormalised inverse transform of the upstream gradient, its real part.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.rfft(x)[0], gradops.grad(lambda x: ops.sum(ops.rfft(x)[0] ** 2))(x))
        [ 4. -2.] [ 4. 12.]
    """
    return parts_of(rfft_complex(x, shape(x)[-1] if fft_length is None else int(fft_length)), half_of(x))


def _check_irfft(op, x, fft_length) -> None:
    sizes = check_spectrum(op, x, 1)
    if fft_length is not None:
        _checks.integer(op.name, fft_length, "fft_length", 1)
    elif not unknown(sizes[-1]) and sizes[-1] < 2:
        raise ShapeError(f"`{op.name}`: a spectrum of {sizes[-1]} needs `fft_length`.", argument="x")


@op(check=_check_irfft)
def irfft(x: Tensors, fft_length: Integer | None = None) -> Tensor:
    """Inverse of :func:`rfft` over the last dimension.

    Args:
        x: the first half of a spectrum: a pair of a real and an imaginary part of one shape, or a complex tensor.
            The imaginary part of the first element, and of the last for an even length, is ignored.
        fft_length: the length of the result; by default ``2 * (n - 1)`` for ``x``'s last size n.

    Returns:
        A real tensor (..., fft_length).

    Raises:
        ShapeError: no dimension, or parts of different shapes.

    Gradient:
        The transform of the upstream gradient divided by the length, inner frequencies doubled.

    Examples:
        >>> x = np.array([4.0, -2.0])
        >>> print(ops.irfft((x, 0 * x)), gradops.grad(lambda x: ops.sum(ops.irfft((x, 0 * x)) ** 2))(x))
        [1. 3.] [ 4. -2.]
    """
    spectrum = complex_of(x)
    length = 2 * (shape(spectrum)[-1] - 1) if fft_length is None else int(fft_length)
    return rounded(irfft_complex(spectrum, length), half_of(x))
