"""Sequences of numbers."""

from __future__ import annotations

import numpy as np

from ..annotations import Axis, DType, Integer, Operand, Tensor
from ..backends import tracing
from ..dtypes import canonical
from ..errors import ArgumentError
from ._checks import known, size_of
from ._compose import check_fits, promoted, wide
from ._dispatch import op
from .conversion import cast, ndim
from .conversion import dtype as dtype_of
from .creation import linspace
from .elementwise import divide, multiply, power
from .properties import unknown
from .shaping import moveaxis, reshape


@op
def logspace(
    start: Operand,
    stop: Operand,
    num: Integer = 50,
    endpoint: bool = True,
    base: Operand = 10,
    dtype: DType | None = None,
    axis: Axis = 0,
) -> Tensor:
    """``num`` numbers from ``base**start`` to ``base**stop``, evenly spaced on a logarithmic scale.

    Args:
        start, stop: exponents: numbers or tensors, broadcast.
        endpoint: whether ``base**stop`` is the last number.
        axis: the position of the new dimension.
        num: how many numbers.

    Returns:
        A tensor of the dtype of ``start``, ``stop`` and ``base``, ``floatx`` for whole numbers, unless ``dtype`` is
        given.

    Raises:
        ArgumentError: a negative ``num``.

    Gradient:
        ``(1 - t) * log(base) * y`` to ``start`` and ``t * log(base) * y`` to ``stop`` for ``t`` from 0 to 1; ``exponent
        * y / base`` to ``base``.

    Examples:
        >>> x = np.array(2.0)
        >>> print(ops.logspace(0.0, x, 3), gradops.grad(lambda x: ops.logspace(0.0, x, 3)[1])(x).round(4))
        [  1.  10. 100.] 11.5129
    """
    start, stop, base = promoted(start, stop, base, floating=True)
    name = canonical(dtype or dtype_of(base))
    start, stop, base = (wide(x)[0] for x in (start, stop, base))
    y = power(base, linspace(start, stop, num, endpoint, axis=axis))
    check_fits("logspace", y, name, "dtype")
    return cast(y, name)


@op
def geomspace(
    start: Operand, stop: Operand, num: Integer = 50, endpoint: bool = True, dtype: DType | None = None, axis: Axis = 0
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop`` with a constant ratio between neighbours.

    Args:
        start, stop: numbers or tensors of one sign, not 0, broadcast; complex ones make a spiral.
        endpoint: whether ``stop`` is the last number.
        axis: the position of the new dimension.
        num: how many numbers.

    Returns:
        A tensor of the dtype of ``start`` and ``stop``, ``floatx`` for whole numbers, unless ``dtype`` is given.

    Raises:
        ArgumentError: a negative ``num``; a ``start`` or ``stop`` of 0.

    Gradient:
        ``(1 - t) * y / start`` and ``t * y / stop`` for ``t`` from 0 to 1.

    Examples:
        >>> x = np.array(4.0)
        >>> print(ops.geomspace(1.0, x, 3), gradops.grad(lambda x: ops.sum(ops.geomspace(1.0, x, 3)))(x))
        [1. 2. 4.] 1.25
    """
    num = size_of("geomspace", num, "num")
    for name, end in (("start", start), ("stop", stop)):
        values = known(end)
        if values is not None and (values == 0).any():
            raise ArgumentError(f"`geomspace`: `{name}` must not be 0.", argument=name)
    start, stop = promoted(start, stop, floating=True)
    name = dtype or dtype_of(start)
    start, stop = wide(start)[0], wide(stop)[0]
    ratio = divide(stop, start)
    t = linspace(0.0, 1.0, num, endpoint, dtype="float64") if unknown(num) else _shares(num, bool(endpoint))
    t = reshape(t, (-1, *[1] * ndim(ratio)))
    y = multiply(start, power(ratio, t))
    return cast(moveaxis(y, 0, axis), name)


@tracing.constant
def _shares(num: int, endpoint: bool):
    return np.linspace(0, 1, num, endpoint)
