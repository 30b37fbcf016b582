"""Transforms of unconstrained numbers to constrained parameters, with their log Jacobian determinants.

A transform is called with unconstrained numbers; ``inverse`` maps back, for starting values. ``log_jacobian`` is the
log of the absolute Jacobian determinant. Added to a log density of the parameters, it gives the log density of the
unconstrained numbers, which samplers and priors need, and maximum likelihood does not. All transforms are those of Stan
(Stan Development Team, Reference Manual, chapter Constraint Transforms), work on tensors of all libraries, and have
derivatives.

Examples:
    >>> import numpy as np
    >>> from gradops.inference import transforms
    >>> print(transforms.simplex(np.array([0.0, 0.0])), transforms.positive.inverse(np.array([1.0])))
    [0.33333333 0.33333333 0.33333333] [0.]
    >>> rates = transforms.interval(0, 10)
    >>> print(rates(np.array([0.0, 2.0])).round(3), rates.log_jacobian(np.array([0.0])).round(4))
    [5.    8.808] 0.9163

See Also:
    :func:`gradops.inference.fit`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from .. import config, ops
from .._names import namespace
from ..errors import ArgumentError, ArgumentTypeError, ShapeError
from ..ops import _checks
from ..scipy._tensors import constant_like

__all__ = ["Transform", "correlation_cholesky", "covariance_cholesky", "interval", "ordered", "positive", "simplex"]


class Transform:
    """A transform of unconstrained numbers, with its inverse and its log Jacobian determinant.

    Args:
        name: the name in error messages.
        forward, inverse: functions of a tensor to a tensor.
        log_jacobian: a function of the unconstrained numbers to a scalar.
        vector: whether the transform acts on vectors, not on each number.

    Examples:
        >>> import gradops
        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import transforms
        >>> negative = transforms.Transform("negative", lambda x: -ops.exp(x), lambda y: ops.log(-y), ops.sum)
        >>> print(negative.inverse(negative(np.array([0.5]))))
        [0.5]
        >>> print(gradops.jacobian(negative)(np.array([0.0])))
        [[-1.]]

    See Also:
        :mod:`gradops.inference.transforms`.
    """

    def __init__(self, name: str, forward: Callable, inverse: Callable, log_jacobian: Callable, vector: bool = False):
        self.vector = vector
        self.name, self._forward, self._inverse, self._log_jacobian = name, forward, inverse, log_jacobian

    _source: str | tuple | None = None
    """The source from which pickle restores the functions: a name in this module, or its function with arguments."""

    def __reduce_ex__(self, protocol):
        return self._source or super().__reduce_ex__(protocol)

    def __call__(self, x):
        """Return the constrained parameters."""
        return self._forward(self._numbers(x, "x"))

    def inverse(self, y):
        """Return the unconstrained numbers that give ``y``."""
        return self._inverse(self._numbers(y, "y"))

    def log_jacobian(self, x):
        """Return the log of the absolute Jacobian determinant, a scalar."""
        return self._log_jacobian(self._numbers(x, "x"))

    def _numbers(self, x, argument: str):
        """Return a tensor of a real floating dtype, of at least one dimension for transforms of vectors.

        Raises:
            ArgumentTypeError: a value that is not a tensor of real numbers.
            ShapeError: a number in place of a vector.
        """
        if not _checks.is_numeric(x):
            raise _checks.not_a_tensor(self.name, argument, x)
        x = ops.convert_to_tensor(x)
        dtype = ops.dtype(x)
        if "complex" in dtype:
            raise ArgumentTypeError(f"`{self.name}`: `{argument}` must be real; got {dtype}.", argument=argument)
        if self.vector and len(x.shape) == 0:
            raise ShapeError(f"`{self.name}`: `{argument}` must be a vector; got a number.", argument=argument)
        return x if "float" in dtype else ops.cast(x, config.floatx())

    def __repr__(self) -> str:
        return f"<gradops transform {self.name}>"


def interval(lower, upper) -> Transform:
    """Numbers between ``lower`` and ``upper``, each.

    Raises:
        ArgumentError: an interval without numbers.
        ArgumentTypeError: ends that are no numbers, or of different shapes.

    Examples:
        >>> import gradops
        >>> from gradops.inference import transforms
        >>> print(transforms.interval(-1, 1)(0.0), gradops.grad(transforms.interval(-1, 1))(0.0))
        0.0 0.5

    See Also:
        :class:`Transform`.
    """
    try:
        lower, upper = np.asarray(lower, float)[()], np.asarray(upper, float)[()]
        np.broadcast(lower, upper)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            "`interval`: `lower` and `upper` must be numbers or arrays of one shape.", argument="lower"
        ) from error
    if not np.all(np.asarray(lower) < np.asarray(upper)):
        raise ArgumentError(f"`interval`: `lower` must be less than `upper`; got {lower}, {upper}.", argument="lower")
    low, high, width = (np.asarray(end, float) for end in (lower, upper, np.subtract(upper, lower)))

    def log_jacobian(x):
        return ops.sum(constant_like(np.log(width), x) - ops.softplus(x) - ops.softplus(-x))

    made = Transform(
        f"interval({lower}, {upper})",
        lambda x: constant_like(low, x) + constant_like(width, x) * ops.sigmoid(x),
        lambda y: ops.log(y - constant_like(low, y)) - ops.log(constant_like(high, y) - y),
        log_jacobian,
    )
    made._source = interval, (lower, upper)
    return made


def _exclusive_cumsum(x):
    """Return exclusive cumulative sums along the last dimension."""
    return ops.cumsum(x, -1) - x


def _offsets(count: int) -> np.ndarray:
    return np.log(np.arange(count, 0, -1.0))  # 0 is then in the middle of the simplex


def _sticks(x):
    """Return the logs of the stick-breaking fractions, of what they leave, and of the stick before each break."""
    free = x - constant_like(_offsets(x.shape[-1]), x)
    left = -ops.softplus(free)
    return -ops.softplus(-free), left, _exclusive_cumsum(left)


def _simplex(x):
    broken, left, before = _sticks(x)
    return ops.exp(ops.concatenate([broken + before, ops.sum(left, -1, keepdims=True)], -1))


def _simplex_inverse(y):
    rest = ops.flip(ops.cumsum(ops.flip(y, -1), -1), -1)
    return ops.log(y[..., :-1]) - ops.log(rest[..., 1:]) + constant_like(_offsets(y.shape[-1] - 1), y)


@functools.cache
def _triangle(size: int, diagonal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the number at each entry of a lower triangular matrix, and the flat index of each number."""
    rows, columns = np.tril_indices(size, 0 if diagonal else -1)
    numbers = np.full((size, size), len(rows))
    numbers[rows, columns] = np.arange(len(rows))
    return numbers, rows * size + columns


def _rows(x, diagonal: bool):
    """Return numbers arranged in a lower triangular matrix, by rows."""
    count = int(x.shape[-1])
    size = (math.isqrt(8 * count + 1) + (-1 if diagonal else 1)) // 2
    if size * (size + (1 if diagonal else -1)) // 2 != count:
        raise ArgumentError(f"`transforms`: a triangle is not of {count} numbers.", argument="x")
    return ops.take(ops.concatenate([x, ops.zeros_like(x[:1])]), _triangle(size, diagonal)[0], 0)


def _picked(matrix, diagonal: bool):
    return ops.take(ops.reshape(matrix, (-1,)), _triangle(matrix.shape[-1], diagonal)[1], 0)


def _partial(x):
    """Return partial correlations, and the logs of the lengths that remain for them in their rows."""
    rows = _rows(x, False)
    return ops.tanh(rows), _exclusive_cumsum(_log_sech(rows))


def _log_sech(x):
    return math.log(2) - x - ops.softplus(-2 * x)


def _correlation_cholesky(x):
    z, left = _partial(x)
    return (z + constant_like(np.eye(z.shape[-1]), z)) * ops.exp(left)


def _correlation_inverse(y):
    inside = ops.tril(y, -1)
    return ops.arctanh(_picked(inside / ops.sqrt(1 - _exclusive_cumsum(inside * inside)), False))


def _correlation_log_jacobian(x):
    left = _picked(_partial(x)[1], False)
    return ops.sum(left + 2 * _log_sech(x))


def _covariance_cholesky(x):
    rows = _rows(x, True)
    return ops.tril(rows, -1) + ops.exp(rows) * constant_like(np.eye(rows.shape[-1]), rows)


def _covariance_inverse(y):
    size = y.shape[-1]
    return _picked(ops.tril(y, -1) + ops.log(ops.where(constant_like(np.eye(size), y) == 1, y, 1.0)), True)


positive = Transform("positive", ops.exp, ops.log, ops.sum)
"""Positive numbers."""
simplex = Transform("simplex", _simplex, _simplex_inverse, lambda x: ops.sum(sum(_sticks(x))), True)
"""Positive numbers with the sum 1, one more than the unconstrained ones, by stick breaking."""
ordered = Transform(
    "ordered",
    lambda x: ops.cumsum(ops.concatenate([x[..., :1], ops.exp(x[..., 1:])], -1), -1),
    lambda y: ops.concatenate([y[..., :1], ops.log(y[..., 1:] - y[..., :-1])], -1),
    lambda x: ops.sum(x[..., 1:]),
    True,
)
"""Increasing numbers."""
correlation_cholesky = Transform(
    "correlation_cholesky", _correlation_cholesky, _correlation_inverse, _correlation_log_jacobian, True
)
"""The lower Cholesky factor of a correlation matrix, from one number for each pair."""
covariance_cholesky = Transform(
    "covariance_cholesky",
    _covariance_cholesky,
    _covariance_inverse,
    lambda x: ops.sum(ops.diagonal(_rows(x, True))),
    True,
)
"""The lower Cholesky factor of a covariance matrix, from its rows, with logarithms on the diagonal."""

for _made in (positive, simplex, ordered, correlation_cholesky, covariance_cholesky):
    _made._source = _made.name

__dir__, __getattr__ = namespace(__name__)
