"""Bounds and exceptions: clipping, NaN and infinities, zero divisors, steps."""

from __future__ import annotations

import builtins
import math

from .. import dtypes
from ..annotations import DType, Operand, Tensor
from ._checks import check_real
from ._compose import as_float, is_complex, promoted
from ._dispatch import op
from .conversion import cast, dtype
from .elementwise import (
    abs,
    add,
    divide,
    equal,
    imag,
    isinf,
    isnan,
    less,
    logical_and,
    logical_not,
    maximum,
    minimum,
    multiply,
    not_equal,
    real,
    real_sign,
)
from .indexing import where

__family__ = """Absolute values and signs."""


@op(check=check_real, elementwise=True)
def fabs(x: Tensor) -> Tensor:
    """Absolute value of each real element, as a float.

    Gradient:
        ``sign(x)``, so 0 at 0.

    Examples:
        >>> print(ops.fabs(-0.5), gradops.grad(ops.fabs)(-0.5))
        0.5 -1.0

    See Also:
        :func:`heaviside`, :func:`sign`, :func:`signbit`.
    """
    return abs(as_float(x))


@op(check=check_real, elementwise=True)
def heaviside(x1: Operand, x2: Operand) -> Tensor:
    """0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        0 to ``x1``; 1 to ``x2`` where ``x1`` is 0.

    Examples:
        >>> x = np.array([-1.0, 0.0, 2.0])
        >>> print(ops.heaviside(x, 0.5), gradops.grad(lambda x: ops.sum(ops.heaviside(x, 0.5)))(x))
        [0.  0.5 1. ] [0. 0. 0.]

    See Also:
        :func:`fabs`, :func:`sign`, :func:`signbit`.
    """
    x1, x2 = promoted(x1, x2, floating=True)
    return where(equal(x1, 0), x2, multiply(add(real_sign(x1), 1), 0.5))


__family__ = """Arithmetic."""


@op(check=check_real, elementwise=True)
def fmod(x1: Operand, x2: Operand) -> Tensor:
    """``x1 - trunc(x1 / x2) * x2``, the remainder with the sign of ``x1``, elementwise.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: a whole number divided by 0 (in JAX's traces the library's number).
        ArgumentTypeError: complex operands.

    Gradient:
        1 and ``-trunc(x1 / x2)``, summed over broadcast dimensions.

    Examples:
        >>> print(ops.fmod(-5.0, 3.0), *gradops.grad(ops.fmod, argnums=(0, 1))(-5.0, 3.0))
        -2.0 1.0 1.0

    See Also:
        :func:`true_divide`, :func:`floor_divide`, :func:`divide_no_nan`.
    """
    ...


@op(elementwise=True)
def divide_no_nan(x1: Operand, x2: Operand) -> Tensor:
    """``x1 / x2``, and 0 where ``x2`` is 0, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        ``1 / x2`` and ``-x1 / x2**2``; 0 to both where ``x2`` is 0.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.divide_no_nan(x, [0.0, 2.0]))
        [0.  1.5]
        >>> print(gradops.grad(lambda x: ops.sum(ops.divide_no_nan(x, [0.0, 2.0])))(x))
        [0.  0.5]

    See Also:
        :func:`floor_divide`, :func:`mod`, :func:`fmod`.
    """
    x1, x2 = promoted(x1, x2, floating=True)
    zero = equal(x2, 0)
    return where(zero, 0, divide(x1, where(zero, 1, x2)))


__family__ = """Extremes of two tensors."""


@op(check=check_real, elementwise=True, exact=True)
def fmax(x1: Operand, x2: Operand) -> Tensor:
    """The larger of two elements, elementwise; where one is NaN, the other.

    Gradient:
        The upstream gradient to the element chosen, half to each at a tie, summed over broadcast dimensions.

    Examples:
        >>> print(ops.fmax(1.5, 2.0), *gradops.grad(ops.fmax, argnums=(0, 1))(1.5, 2.0))
        2.0 0.0 1.0
    """
    x1, x2 = promoted(x1, x2)
    return maximum(where(isnan(x1), x2, x1), where(isnan(x2), x1, x2))


@op(check=check_real, elementwise=True, exact=True)
def fmin(x1: Operand, x2: Operand) -> Tensor:
    """The smaller of two elements, elementwise; where one is NaN, the other.

    Gradient:
        The upstream gradient to the element chosen, half to each at a tie, summed over broadcast dimensions.

    Examples:
        >>> print(ops.fmin(1.5, 2.0), *gradops.grad(ops.fmin, argnums=(0, 1))(1.5, 2.0))
        1.5 1.0 0.0
    """
    x1, x2 = promoted(x1, x2)
    return minimum(where(isnan(x1), x2, x1), where(isnan(x2), x1, x2))


__family__ = """Clipping and replacement.

Elementwise.

See Also:
    :func:`maximum`, :func:`relu6`, :func:`isfinite`, :func:`where`.
"""


@op(check=check_real, elementwise=True)
def clip(x: Tensor, x_min: Operand | None, x_max: Operand | None) -> Tensor:
    """Each element, or the bound if it is beyond one: ``minimum(maximum(x, x_min), x_max)``.

    Args:
        x_min, x_max: the bounds, which broadcast against ``x``; None for no bound.

    Returns:
        A tensor of the broadcast shape, in the promoted dtype of ``x`` and the bounds. NaN stays NaN.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentTypeError: a complex ``x``.

    Gradient:
        1 to ``x`` where it is within the bounds, 1 to the bound where it is beyond; half to each where they are equal.

    Examples:
        There is no gradient where the value was changed:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> print(gradops.grad(lambda x: ops.sum(ops.clip(x, 0.0, 1.0)))(np.array([-1.0, 0.5, 2.0])))
        [0. 1. 0.]

    See Also:
        :func:`maximum`, :func:`where`, :func:`gradops.custom_gradient` to let gradients through.
    """
    if x_min is not None:
        x = maximum(x, x_min)
    return x if x_max is None else minimum(x, x_max)


@op(elementwise=True)
def nan_to_num(x: Tensor, nan: Operand = 0.0, posinf: Operand | None = None, neginf: Operand | None = None) -> Tensor:
    """``x`` with numbers in place of NaN and infinities; complex parts one by one.

    Args:
        nan: the number in place of NaN.
        posinf, neginf: the numbers in place of infinities: the largest and the smallest finite ones if None.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        1 where ``x`` is finite, else 0; there the gradient goes to the replacement.

    Examples:
        >>> x = np.array([1.0, np.nan])
        >>> print(ops.nan_to_num(x), gradops.grad(lambda x: ops.sum(ops.nan_to_num(x) ** 2))(x))
        [1. 0.] [2. 0.]
    """
    name = dtype(x)
    if not dtypes.is_floating(name):
        return x
    if name in dtypes.COMPLEX:
        parts = (nan_to_num(part(x), nan, posinf, neginf) for part in (real, imag))
        return add(next(parts), multiply(next(parts), 1j))
    positive = less(0, x)
    infinite = isinf(x)
    top, bottom = (_largest(name) if posinf is None else posinf), (-_largest(name) if neginf is None else neginf)
    nan, top, bottom = (v if type(v) in (builtins.int, builtins.float) else cast(v, name) for v in (nan, top, bottom))
    y = where(isnan(x), nan, x)
    y = where(logical_and(infinite, positive), top, y)
    return where(logical_and(infinite, logical_not(positive)), bottom, y)


_MAX_FLOATS = {"float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127, "float32": (2 - 2**-23) * 2.0**127}


def _largest(name: str) -> builtins.float:
    """Return the largest finite number of a floating dtype."""
    return _MAX_FLOATS.get(name, (2 - 2**-52) * 2.0**1023)


@op(elementwise=True)
def saturate_cast(x: Tensor, dtype: DType) -> Tensor:
    """``x`` in another dtype, with elements clipped to its range. NaN becomes 0 in an integer dtype.

    Returns:
        A tensor of ``x``'s shape and of ``dtype``.

    Raises:
        ArgumentError: an unknown dtype.

    Gradient:
        The upstream gradient where ``x`` is inside the range, cast back; none to or from integers and bools.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.saturate_cast([300, -5], "uint8"))
        [255   0]
        >>> print(gradops.grad(lambda x: ops.sum(ops.saturate_cast(x, "float32") ** 2))(x))
        [2. 6.]
    """
    source, target = _dtype_of(x), dtypes.canonical(dtype)
    if is_complex(x) and target not in dtypes.COMPLEX:
        x = real(x)
        source = dtypes.real_of(source)
    if source == target or "bool" in (source, target) or target in dtypes.COMPLEX:
        return cast(x, target)
    if target in dtypes.INTEGERS and source in dtypes.FLOATS:
        x = where(not_equal(x, x), 0, x)
    least, most = _bounds(target)
    low, high = _representable_bound(least, source), _representable_bound(most, source)
    if target in dtypes.INTEGERS and source in dtypes.FLOATS:  # infinities are beyond every bound
        low, high = max(least, -_largest(source)) if low is None else low, _largest(source) if high is None else high
    y = cast(clip(x, low, high), target)
    y = where(less(high, x), most, y) if high is not None and high < most else y
    return where(less(x, low), least, y) if low is not None and least < low else y


_dtype_of = dtype


def _bounds(name: str) -> tuple:
    if name in dtypes.FLOATS:
        return -_largest(name), _largest(name)
    bits = dtypes.bits(name)
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_PRECISION = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _representable_bound(bound, source: str):
    """Return a bound as a number of dtype ``source``, rounded towards 0; None if ``source`` cannot exceed it."""
    low, high = _bounds(source)
    if not low <= bound <= high:
        return None
    if source in dtypes.INTEGERS:
        return bound
    whole = builtins.abs(int(bound)) if math.isfinite(bound) else 0
    spare = max(whole.bit_length() - _PRECISION[source], 0)
    return math.copysign((whole >> spare) << spare, bound)


__family__ = """Rounding and representation."""


@op(check=check_real, elementwise=True)
def nextafter(x1: Operand, x2: Operand) -> Tensor:
    """The next number of the dtype after ``x1`` towards ``x2``, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        0.

    Examples:
        >>> x = np.array([1.0])
        >>> print(ops.nextafter(x, 2.0) > x, gradops.grad(lambda x: ops.sum(ops.nextafter(x, 2.0)))(x))
        [ True] [0.]

    See Also:
        :func:`ldexp`, :func:`floor`, :func:`ceil`.
    """
    ...
