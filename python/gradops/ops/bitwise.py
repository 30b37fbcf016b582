"""Whole numbers: bits, shifts, divisors. All promote and broadcast."""

from __future__ import annotations

from ..annotations import Operand, Tensor
from ._checks import check_kind
from ._dispatch import alias, op
from ._docstrings import family


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


PROMOTED = "A tensor of the broadcast shape, in the operands' promoted dtype. It has no gradient."
of_bits = family(
    returns=PROMOTED, raises="ArgumentTypeError: floating operands.\nShapeError: shapes that do not broadcast."
)
of_integers = family(
    returns=PROMOTED,
    raises="ArgumentTypeError: operands that are not integers.\nShapeError: shapes that do not broadcast.",
)


@op(differentiable=False, check=_bits, elementwise=True)
@of_bits
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """The bits set in both, elementwise."""
    ...


@op(differentiable=False, check=_bits, elementwise=True)
@of_bits
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """The bits set in either or both, elementwise."""
    ...


@op(differentiable=False, check=_bits, elementwise=True)
@of_bits
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """The bits set in one but not both, elementwise."""
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
@of_integers
def left_shift(x: Operand, y: Operand) -> Tensor:
    """``x * 2**y``: the bits moved up by ``y`` places, elementwise.

    Args:
        y: places, at least 0 and less than the bits of the dtype; beyond that results are undefined.
    """
    ...


bitwise_left_shift = alias("bitwise_left_shift", left_shift)


@op(differentiable=False, check=_integers, elementwise=True)
@of_integers
def right_shift(x: Operand, y: Operand) -> Tensor:
    """``x // 2**y``: the bits moved down by ``y`` places, elementwise; the sign stays.

    Args:
        y: places, at least 0 and less than the bits of the dtype; beyond that results are undefined.
    """
    ...


bitwise_right_shift = alias("bitwise_right_shift", right_shift)


"""Common divisors and multiples.

Elementwise, of whole numbers: operands broadcast, and dtypes promote.

See Also:
    :func:`mod`, :func:`floor_divide`, :func:`bitwise_and`.
"""


@op(differentiable=False, check=_integers, elementwise=True)
@of_integers
def gcd(x1: Operand, x2: Operand) -> Tensor:
    """Greatest common divisor, elementwise; 0 of two zeros."""
    ...


@op(differentiable=False, check=_integers, elementwise=True)
@of_integers
def lcm(x1: Operand, x2: Operand) -> Tensor:
    """Least common multiple, elementwise; 0 where an operand is 0."""
    ...
