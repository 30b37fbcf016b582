"""Elementwise ops that are composed of others, or of whole numbers, family by family."""

from __future__ import annotations

import math

from ..annotations import Operand, Tensor
from ..errors import ArgumentTypeError, ShapeError
from . import _checks
from ._checks import check_kind, check_real
from ._compose import as_float, is_complex, promoted
from ._dispatch import alias, op
from ._docstrings import family
from .activations import softplus
from .conversion import shape
from .elementwise import (
    abs,
    add,
    cos,
    divide,
    equal,
    greater_equal,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    real,
    real_sign,
    sin,
    subtract,
)
from .indexing import where
from .joining import stack
from .properties import fits
from .reductions import all


def _check_pairs(op, x) -> None:
    _checks.check_rank(op.name, x, 1)
    if not fits(shape(x)[-1:], (2,)):
        raise ShapeError(
            f"`{op.name}`: the last size of `x` must be 2 (real and imaginary); got {{x}}.",
            argument="x",
            x=_checks.describe(x),
        )
    if is_complex(x):
        raise ArgumentTypeError(f"`{op.name}`: `x` must be real; got {{x}}.", argument="x", x=_checks.describe(x))


__family__ = """Complex numbers."""


@op(check=_check_pairs, linear=("x",))
def view_as_complex(x: Tensor) -> Tensor:
    """Complex numbers of pairs of real ones.

    Args:
        x: a real tensor (..., 2): real and imaginary parts.

    Returns:
        A complex tensor without the last dimension: complex128 of float64 and of integers where ``floatx`` is
        float64, else complex64.

    Raises:
        ShapeError: a last dimension of another size than 2.
        ArgumentTypeError: a complex tensor.

    Gradient:
        The real and imaginary part of the upstream gradient.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.view_as_complex(x), gradops.grad(lambda x: ops.imag(ops.view_as_complex(x) ** 2))(x))
        (1+3j) [6. 2.]

    See Also:
        :func:`view_as_real`, :func:`polar`, :func:`conj`.
    """
    ...


@op(linear=("x",))
def view_as_real(x: Tensor) -> Tensor:
    """Real and imaginary parts of complex numbers, as pairs.

    Args:
        x: a complex tensor; of a real one the imaginary parts are 0.

    Returns:
        A real tensor of shape (..., 2).

    Gradient:
        The complex number of the upstream gradient's pair.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.view_as_real(ops.view_as_complex(x)))
        [1. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.view_as_real(ops.view_as_complex(x) ** 2)))(x))
        [ 8. -4.]

    See Also:
        :func:`view_as_complex`, :func:`polar`, :func:`conj`.
    """
    x = as_float(x)
    return stack([real(x), imag(x)], -1)


@op(elementwise=True)
def polar(abs_: Operand, angle: Operand) -> Tensor:
    """Complex numbers of absolute value and angle: ``abs_ * (cos(angle) + i sin(angle))``.

    Args:
        abs_: absolute values; real.
        angle: angles in radians; real.

    Returns:
        A complex tensor of the broadcast shape, of the operands' precision, at least complex64.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentTypeError: complex operands.

    Gradient:
        Of the real loss: ``Re(g conj(y)) / abs_`` and ``Im(g conj(y))``.

    Examples:
        >>> r = np.array(2.0)
        >>> print(ops.polar(r, 0.0), gradops.grad(lambda r: ops.real(ops.polar(r, 1.0)))(r).round(4))
        (2+0j) 0.5403

    See Also:
        :func:`view_as_real`, :func:`conj`, :func:`view_as_complex`.
    """
    abs_, angle = promoted(abs_, angle, floating=True)
    if is_complex(abs_):
        raise ArgumentTypeError("`polar`: `abs_` and `angle` must be real.", argument="abs_")
    return to_complex(multiply(abs_, cos(angle)), multiply(abs_, sin(angle)))


def to_complex(re, im):
    """The complex tensor of two real parts of one shape."""
    return view_as_complex(stack([re, im], -1))


__family__ = """Exponentials and logarithms."""


@op(check=check_real, elementwise=True)
def logaddexp(x1: Operand, x2: Operand) -> Tensor:
    """``log(exp(x1) + exp(x2))`` without overflow, elementwise.

    Gradient:
        ``sigmoid(x1 - x2)`` and ``sigmoid(x2 - x1)``, so half to each at ties, infinite ones too. Summed over
        broadcast dimensions.

    Examples:
        >>> print(ops.logaddexp(1.0, 2.0).round(4))
        2.3133
        >>> print(*(g.round(4) for g in gradops.grad(ops.logaddexp, argnums=(0, 1))(1.0, 2.0)))
        0.2689 0.7311

    See Also:
        :func:`logaddexp2`, :func:`exp`, :func:`exp2`.
    """

    x1, x2 = promoted(x1, x2, floating=True)
    first = greater_equal(x1, x2)
    infinite = logical_and(equal(x1, x2), isinf(x1))  # their difference would be NaN
    high, low = where(first, x1, x2), where(first, x2, x1)
    high = where(infinite, add(multiply(x1, 0.5), multiply(x2, 0.5)), high)
    return add(high, softplus(where(infinite, 0.0, subtract(low, high))))


@op(check=check_real, elementwise=True)
def logaddexp2(x1: Operand, x2: Operand) -> Tensor:
    """``log2(2**x1 + 2**x2)`` without overflow, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        ``2**(x1 - y)`` and ``2**(x2 - y)``, summed over broadcast dimensions.

    Examples:
        >>> print(ops.logaddexp2(1.0, 2.0).round(4))
        2.585
        >>> print(*(g.round(4) for g in gradops.grad(ops.logaddexp2, argnums=(0, 1))(1.0, 2.0)))
        0.3333 0.6667

    See Also:
        :func:`logaddexp`, :func:`exp`, :func:`exp2`.
    """
    x1, x2 = promoted(x1, x2, floating=True)
    return multiply(logaddexp(multiply(x1, math.log(2)), multiply(x2, math.log(2))), 1 / math.log(2))


__family__ = """Comparison."""


@op(differentiable=False, elementwise=True)
def isclose(x1: Operand, x2: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """``abs(x1 - x2) <= atol + rtol * abs(x2)``, elementwise.

    Args:
        rtol, atol: relative and absolute tolerance.
        equal_nan: count NaN as close to NaN.

    Returns:
        A bool tensor of the broadcast shape; equal infinities are close. It has no gradient.
    """
    x1, x2 = promoted(x1, x2, floating=True)
    near = less_equal(abs(subtract(x1, x2)), add(multiply(abs(x2), rtol), atol))
    close = logical_or(equal(x1, x2), logical_and(near, isfinite(x2)))
    return logical_or(close, logical_and(isnan(x1), isnan(x2))) if equal_nan else close


@op(differentiable=False)
def allclose(x1: Operand, x2: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """True where all elements are close, by :func:`isclose`.

    Args:
        rtol, atol, equal_nan: as in :func:`isclose`.

    Returns:
        A bool tensor without dimensions. It has no gradient.

    Raises:
        ShapeError: shapes that do not broadcast.
    """
    return all(isclose(x1, x2, rtol, atol, equal_nan))


__family__ = """Tests of numbers."""


@op(differentiable=False, check=check_real, elementwise=True)
def isneginf(x: Tensor) -> Tensor:
    """True for negative infinity, for each element."""
    return logical_and(isinf(x), less(x, 0))


@op(differentiable=False, check=check_real, elementwise=True)
def isposinf(x: Tensor) -> Tensor:
    """True for positive infinity, for each element."""
    return logical_and(isinf(x), less(0, x))


@op(differentiable=False, elementwise=True)
def isreal(x: Tensor) -> Tensor:
    """True where the imaginary part is 0, for each element; always so where ``x`` is real."""
    return equal(imag(x), 0)


__family__ = """Absolute values and signs."""


@op(elementwise=True)
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 (for complex numbers ``x / abs(x)``) of each element.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        0, as in PyTorch; of complex numbers that of ``x / abs(x)``, 0 where ``x`` is 0.

    Examples:
        >>> print(ops.sign(-0.5), gradops.grad(ops.sign)(-0.5))
        -1.0 0.0
    """
    if not is_complex(x):
        return real_sign(x)
    zero = equal(x, 0)
    return where(zero, 0.0, divide(x, abs(where(zero, 1.0, x))))


@op(differentiable=False, check=check_real, elementwise=True, exact=True)
def signbit(x: Tensor) -> Tensor:
    """The sign bit of each element: true for negative numbers and for -0.0."""
    ...


def _bits(op, *operands):
    for name, value in zip(op.parameters, operands):
        check_kind(op.name, value, (0, 1), "of integers or bools", name)


def _integers(op, *operands):
    for name, value in zip(op.parameters, operands):
        check_kind(op.name, value, (1,), "of integers", name)


__family__ = """Bitwise operations.

Elementwise, of whole numbers and bools: operands broadcast, and dtypes promote.

See Also:
    :func:`logical_and`, :func:`gcd`, :func:`floor_divide`.
"""


PROMOTED = "A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient."
of_bits = family(
    returns=PROMOTED, raises="ArgumentTypeError: floating operands.\nShapeError: shapes that do not broadcast."
)
of_integers = family(
    returns=PROMOTED,
    raises="ArgumentTypeError: operands that are not integers.\nShapeError: shapes that do not broadcast.",
)


@op(differentiable=False, check=_bits, elementwise=True, whole=("x", "y"))
@of_bits
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """The bits set in both, elementwise."""
    ...


@op(differentiable=False, check=_bits, elementwise=True, whole=("x", "y"))
@of_bits
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """The bits set in either or both, elementwise."""
    ...


@op(differentiable=False, check=_bits, elementwise=True, whole=("x", "y"))
@of_bits
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """The bits set in one but not both, elementwise."""
    ...


@op(differentiable=False, check=_bits, elementwise=True, whole=("x",))
def bitwise_not(x: Tensor) -> Tensor:
    """The bits that are not set, of each element; of bools the negation.

    Returns:
        A tensor of ``x``'s shape and dtype. It has no gradient.

    Raises:
        ArgumentTypeError: a floating ``x``.
    """
    ...


bitwise_invert = alias("bitwise_invert", bitwise_not)


@op(differentiable=False, check=_integers, elementwise=True, whole=("x", "y"))
@of_integers
def left_shift(x: Operand, y: Operand) -> Tensor:
    """``x * 2**y``: the bits moved up by ``y`` places, elementwise.

    Args:
        y: places, at least 0 and less than the bits of the dtype; beyond that results are undefined.
    """
    ...


bitwise_left_shift = alias("bitwise_left_shift", left_shift)


@op(differentiable=False, check=_integers, elementwise=True, whole=("x", "y"))
@of_integers
def right_shift(x: Operand, y: Operand) -> Tensor:
    """``x // 2**y``: the bits moved down by ``y`` places, elementwise; the sign stays.

    Args:
        y: places, at least 0 and less than the bits of the dtype; beyond that results are undefined.
    """
    ...


bitwise_right_shift = alias("bitwise_right_shift", right_shift)


__family__ = """Common divisors and multiples.

Elementwise, of whole numbers: operands broadcast, and dtypes promote.

See Also:
    :func:`mod`, :func:`floor_divide`, :func:`bitwise_and`.
"""


@op(differentiable=False, check=_integers, elementwise=True, whole=("x1", "x2"))
@of_integers
def gcd(x1: Operand, x2: Operand) -> Tensor:
    """Greatest common divisor, elementwise; 0 of two zeros."""
    ...


@op(differentiable=False, check=_integers, elementwise=True, whole=("x1", "x2"))
@of_integers
def lcm(x1: Operand, x2: Operand) -> Tensor:
    """Least common multiple, elementwise; 0 where an operand is 0."""
    ...
