"""Whole numbers: bits, shifts, divisors. All promote and broadcast."""

from __future__ import annotations

from ..annotations import Operand, Tensor
from ._checks import check_kind
from ._dispatch import alias, op


def _bits(op, *operands):
    for name, value in zip(op.parameters, operands):
        check_kind(op.name, value, (0, 1), "of integers or bools", name)


def _integers(op, *operands):
    for name, value in zip(op.parameters, operands):
        check_kind(op.name, value, (1,), "of integers", name)


"""Bitwise operations.

Elementwise, of whole numbers and bools: operands broadcast, and dtypes promote.

See Also:
    :func:`logical_and`, :func:`gcd`, :func:`floor_divide`.
"""


@op(differentiable=False, check=_bits, elementwise=True)
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """The bits set in both, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: floating operands.
        ShapeError: shapes that do not broadcast.
    """
    ...


@op(differentiable=False, check=_bits, elementwise=True)
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """The bits set in either or both, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: floating operands.
        ShapeError: shapes that do not broadcast.
    """
    ...


@op(differentiable=False, check=_bits, elementwise=True)
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """The bits set in one but not both, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: floating operands.
        ShapeError: shapes that do not broadcast.
    """
    ...


@op(differentiable=False, check=_bits, elementwise=True)
def bitwise_not(x: Tensor) -> Tensor:
    """The bits that are not set, of each element; of bools the negation.

    Returns:
        A tensor of ``x``'s shape and dtype. It has no gradient.

    Raises:
        ArgumentTypeError: a floating ``x``.
    """
    ...


bitwise_invert = alias("bitwise_invert", bitwise_not)


@op(differentiable=False, check=_integers, elementwise=True)
def left_shift(x: Operand, y: Operand) -> Tensor:
    """``x * 2**y``: the bits moved up by ``y`` places, elementwise.

    Args:
        y: places, at least 0 and less than the bits of the dtype; beyond that results are undefined.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: operands that are not integers.
        ShapeError: shapes that do not broadcast.
    """
    ...


bitwise_left_shift = alias("bitwise_left_shift", left_shift)


@op(differentiable=False, check=_integers, elementwise=True)
def right_shift(x: Operand, y: Operand) -> Tensor:
    """``x // 2**y``: the bits moved down by ``y`` places, elementwise; the sign stays.

    Args:
        y: places, at least 0 and less than the bits of the dtype; beyond that results are undefined.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: operands that are not integers.
        ShapeError: shapes that do not broadcast.
    """
    ...


bitwise_right_shift = alias("bitwise_right_shift", right_shift)


"""Common divisors and multiples.

Elementwise, of whole numbers: operands broadcast, and dtypes promote.

See Also:
    :func:`mod`, :func:`floor_divide`, :func:`bitwise_and`.
"""


@op(differentiable=False, check=_integers, elementwise=True)
def gcd(x1: Operand, x2: Operand) -> Tensor:
    """Greatest common divisor, elementwise; 0 of two zeros.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: operands that are not integers.
        ShapeError: shapes that do not broadcast.
    """
    ...


@op(differentiable=False, check=_integers, elementwise=True)
def lcm(x1: Operand, x2: Operand) -> Tensor:
    """Least common multiple, elementwise; 0 where an operand is 0.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient.

    Raises:
        ArgumentTypeError: operands that are not integers.
        ShapeError: shapes that do not broadcast.
    """
    ...
