"""Normalization.

Half precision is computed in float32 and rounded once, at the end.

See Also:
    :func:`mean`, :func:`var`, :func:`norm`, :func:`softmax`.
"""

from __future__ import annotations

from .. import config
from ..annotations import Axes, Axis, Integer, Tensor
from ..errors import ArgumentError, ShapeError
from ._checks import check_axes, check_axis, check_rank, describe, integer, unknown_arguments
from ._compose import is_complex, rounded, wide
from ._dispatch import op
from .elementwise import abs, add, divide, greater, maximum, multiply, power, sqrt, subtract
from .indexing import where
from .properties import fits, shape
from .reductions import mean, squared, sum
from .shaping import reshape, squeeze


def _broadcast_parameter(op: str, name: str, value, x, axes):
    """Return a parameter with one number for each position along ``axes``, reshaped to broadcast against ``x``."""
    if value is None or not len(value.shape) or len(value.shape) == len(x.shape) and len(axes) < len(x.shape):
        return value
    sizes = tuple(shape(x)[a] for a in sorted(axes))
    if not fits(shape(value), sizes):
        raise ShapeError(
            f"`{op}`: `{name}` must be of shape {sizes}, the sizes of `x` along the axes; got {{value}}.",
            argument=name,
            value=describe(value),
        )
    return reshape(value, [shape(x)[i] if i in axes else 1 for i in range(len(x.shape))])


@op
def moments(x: Tensor, axes: Axes, keepdims: bool = False, synchronized: bool = False) -> tuple:
    """Mean and variance over axes; the variance is computed from deviations, so that it does not cancel.

    Args:
        synchronized: must be False; averaging over devices is left to the framework.

    Returns:
        The mean and the variance (divided by ``n``, not ``n - 1``), without the reduced dimensions.

    Raises:
        ArgumentError: ``synchronized``.

    Gradient:
        ``1 / n`` and ``2 * (x - mean) / n``.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.moments(x, 0)[1].round(4), gradops.grad(lambda x: ops.moments(x, 0)[1])(x).round(4))
        0.6667 [-0.6667  0.6667  0.    ]
    """
    if synchronized:
        raise ArgumentError("`moments`: `synchronized` must be {False}.", argument="synchronized")
    axes = check_axes("moments", axes, len(x.shape), "axes")
    x, narrow = wide(x)
    center = mean(x, axes, True)
    variance = mean(squared(subtract(x, center)), axes, keepdims)
    if not keepdims:
        center = squeeze(center, axes)
    return rounded(center, narrow), rounded(variance, narrow)


@op
def batch_normalization(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    axis: Axis,
    offset: Tensor | None = None,
    scale: Tensor | None = None,
    epsilon: float = 0.001,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset`` (Ioffe and Szegedy 2015).

    Args:
        mean, variance, offset, scale: vectors with a number for each position along ``axis``.
        epsilon: added to the variance.

    Returns:
        A tensor of ``x``'s shape and dtype; integers give ``floatx``.

    Raises:
        ShapeError: a vector of another length.

    Gradient:
        ``g * scale / sqrt(variance + epsilon)`` to ``x``; to the vectors the derivative of the formula, summed over
        the other dimensions.

    Examples:
        >>> x = np.array([[1.0], [3.0]])
        >>> print(ops.batch_normalization(x, [2.0], [1.0], axis=-1).ravel().round(4))
        [-0.9995  0.9995]
        >>> print(gradops.grad(lambda x: ops.sum(ops.batch_normalization(x, [2.0], [1.0], axis=-1) ** 2))(x).round(4))
        [[-1.998]
         [ 1.998]]
    """
    axes = (check_axis("batch_normalization", axis, check_rank("batch_normalization", x, 1)),)
    x, narrow = wide(x)
    given = {"mean": mean, "variance": variance, "offset": offset, "scale": scale}
    mean, variance, offset, scale = (
        _broadcast_parameter("batch_normalization", n, v, x, axes) for n, v in given.items()
    )
    y = divide(subtract(x, mean), sqrt(add(variance, float(epsilon))))
    y = y if scale is None else multiply(y, scale)
    return rounded(y if offset is None else add(y, offset), narrow)


@op(name="layer_normalization")
def _layer_normalization(x: Tensor, gamma: Tensor | None, beta: Tensor | None, axis: Axes, epsilon: float | None):
    axes = check_axes("layer_normalization", axis, check_rank("layer_normalization", x, 1))
    epsilon = config.epsilon() if epsilon is None else float(epsilon)
    x, narrow = wide(x)
    if _is_trailing(x, axes, gamma) and _is_trailing(x, axes, beta) and not is_complex(x):
        return rounded(standardized(x, gamma, beta, len(axes), epsilon), narrow)
    gamma = _broadcast_parameter("layer_normalization", "gamma", gamma, x, axes)
    beta = _broadcast_parameter("layer_normalization", "beta", beta, x, axes)
    return rounded(_standardized(x, gamma, beta, axes, epsilon), narrow)


def _is_trailing(x, axes, parameter) -> bool:
    """True if the axes are the last ones, and a parameter is None or has their sizes and ``x``'s dtype."""
    first = len(x.shape) - len(axes)
    if not axes or sorted(axes) != list(range(first, len(x.shape))):
        return False
    return parameter is None or parameter.dtype == x.dtype and parameter.shape == x.shape[first:]


@op(public=False)
def standardized(x: Tensor, gamma: Tensor | None, beta: Tensor | None, rank: Integer, epsilon: float) -> Tensor:
    """:func:`layer_normalization` over the last ``rank`` axes, by one kernel of the library.

    Args:
        gamma, beta: of the sizes of these axes and of ``x``'s dtype, which is real.

    Gradient:
        The derivative of the formula, for every tensor.
    """
    return _standardized(x, gamma, beta, tuple(range(len(x.shape) - rank, len(x.shape))), epsilon)


def _standardized(x, gamma, beta, axes, epsilon):
    centered = subtract(x, mean(x, axes, True))
    y = divide(centered, sqrt(add(mean(squared(centered), axes, True), epsilon)))
    y = y if gamma is None else multiply(y, gamma)
    return y if beta is None else add(y, beta)


def layer_normalization(
    x: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    axis: Axes = -1,
    epsilon: float | None = None,
    **kwargs,
) -> Tensor:
    """``x`` with mean 0 and variance 1 over axes, times ``gamma`` plus ``beta`` (Ba et al. 2016).

    Args:
        gamma, beta: tensors of the sizes of ``x`` along the axes, or broadcasting against it.
        epsilon: added to the variance; ``gradops.config.epsilon()`` if None.
        kwargs: not used; Keras' ``rms_scaling`` is :func:`rms_normalization`.

    Returns:
        A tensor of ``x``'s shape, in the tensors' promoted dtype; integers give ``floatx``.

    Raises:
        AxisError: an axis out of range.
        ShapeError: a ``gamma`` or ``beta`` that does not fit.
        ArgumentError: ``rms_scaling``, or an unknown keyword argument.

    Gradient:
        ``(h - mean(h) - z * mean(h * z)) / s`` to ``x``, with ``h = g * gamma``, ``z`` the result before ``gamma`` and
        ``beta``, and ``s`` the deviation; ``g * z`` and ``g`` to ``gamma`` and ``beta``, summed over the other
        dimensions.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.layer_normalization(x).round(4))
        [-1.2247  1.2247  0.    ]
        >>> print(gradops.grad(lambda x: ops.layer_normalization(x)[0])(x).round(4))
        [ 0.2041  0.2041 -0.4082]
    """
    if kwargs.pop("rms_scaling", False):
        raise ArgumentError(
            "`layer_normalization`: `rms_scaling` must be {False}.",
            argument="rms_scaling",
            hint="use `rms_normalization`",
        )
    if kwargs:
        raise unknown_arguments("layer_normalization", kwargs, ("axis", "epsilon", "gamma", "beta"))
    return _layer_normalization(x, gamma, beta, axis, epsilon)


@op
def rms_normalization(x: Tensor, scale: Tensor | None = None, axis: Axes = -1, epsilon: float | None = None) -> Tensor:
    """``x / sqrt(mean(x**2) + epsilon) * scale`` over axes (Zhang and Sennrich 2019).

    Args:
        scale: a tensor of the sizes of ``x`` along the axes, or broadcasting against it, as a number does.
        epsilon: ``gradops.config.epsilon()`` if None.

    Returns:
        A tensor of ``x``'s shape, in the tensors' promoted dtype; integers give ``floatx``.

    Raises:
        ShapeError: a ``scale`` that does not fit.

    Gradient:
        ``(h - z * mean(h * z)) / r`` to ``x``, with ``h = g * scale``, ``z`` the result before ``scale``, and ``r`` the
        root; ``g * z`` to ``scale``, summed over the other dimensions.

    Examples:
        >>> x = np.array([3.0, 4.0])
        >>> print(ops.rms_normalization(x).round(4))
        [0.8485 1.1314]
        >>> print(gradops.grad(lambda x: ops.rms_normalization(x)[0])(x).round(4))
        [ 0.181  -0.1358]
    """
    axes = check_axes("rms_normalization", axis, check_rank("rms_normalization", x, 1))
    x, narrow = wide(x)
    scale = _broadcast_parameter("rms_normalization", "scale", scale, x, axes)
    size = mean(squared(x), axes, True)
    y = divide(x, sqrt(add(size, config.epsilon() if epsilon is None else float(epsilon))))
    return rounded(y if scale is None else multiply(y, scale), narrow)


@op
def normalize(x: Tensor, axis: Axes = -1, order: Integer = 2, epsilon: float | None = None) -> Tensor:
    """``x`` divided by its norm over axes, or by ``epsilon`` where the norm is less.

    Args:
        order: the exponent of the norm: 2 is Euclid's, 1 the sum of magnitudes.
        epsilon: ``gradops.config.epsilon()`` if None.

    Returns:
        A tensor of ``x``'s shape and dtype; integers give ``floatx``.

    Raises:
        ArgumentError: an ``order`` below 1.

    Gradient:
        ``(g - y * sum(g * y)) / norm`` for order 2; finite where ``x`` is 0.

    Examples:
        >>> x = np.array([3.0, 4.0])
        >>> print(ops.normalize(x), gradops.grad(lambda x: ops.normalize(x)[0])(x))
        [0.6 0.8] [ 0.128 -0.096]
    """
    order = integer("normalize", order, "order", 1)
    if len(x.shape):
        axis = check_axes("normalize", axis, len(x.shape))
    else:
        axis = None
    epsilon = config.epsilon() if epsilon is None else float(epsilon)
    x, narrow = wide(x)
    if order == 2:
        return rounded(divide(x, sqrt(maximum(sum(squared(x), axis, True), epsilon**2))), narrow)
    total = sum(abs(x) if order == 1 else power(abs(x), order), axis, True)
    if order > 1:
        some = greater(total, 0)
        total = where(some, power(where(some, total, 1.0), 1.0 / order), 0.0)
    return rounded(divide(x, maximum(total, epsilon)), narrow)
