"""Means and spreads of angles and of directions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ... import ops
from ...annotations import Axes, Axis, Operand, Tensor
from ...backends._shared import combined
from ...errors import ShapeError
from ...ops import _checks
from .._define import family
from ._samples import ARGUMENTS, RANGE, Sample, of_sample, real, root

circular = family(
    ARGUMENTS | {"high": "with ``low`` the ends of a period."},
    returns="A tensor of the shape of ``samples`` without ``axis``.",
    raises=RANGE,
    gradient="By ``samples``, ``high`` and ``low``, of the formula.",
)


def _circular(function, samples, high, low, axis, nan_policy, keepdims):
    """Return the sample, the period divided by ``2 * pi``, and the mean sine and cosine."""
    samples, high, low = real(f"scipy.stats.{function}", samples=samples, high=high, low=low)
    sample = Sample(function, samples, axis, nan_policy, keepdims, name="samples")
    scale = (high - low) / (2 * math.pi)
    angle = sample.x / scale
    return sample, scale, sample.mean(ops.sin(angle)), sample.mean(ops.cos(angle))


@circular
def circmean(
    samples: Tensor, high: Operand = 2 * math.pi, low: Operand = 0, axis: Axes = None, nan_policy="propagate", *,
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Mean of angles, within ``low`` and ``high``."""
    sample, scale, sine, cosine = _circular("circmean", samples, high, low, axis, nan_policy, keepdims)
    _, high, low = real(sample.function, samples=samples, high=high, low=low)
    return sample.result((ops.arctan2(sine, cosine) * scale - low) % (high - low) + low)


def _length(sine, cosine):
    length = root(sine * sine + cosine * cosine, combined(sine, cosine))
    return ops.where(length > 1, 1.0, length)  # rounding may exceed 1; `minimum` would halve the derivatives at 1


@circular
def circvar(
    samples: Tensor, high: Operand = 2 * math.pi, low: Operand = 0, axis: Axes = None, nan_policy="propagate", *,
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Circular variance of angles: 1 minus the length of their mean direction vector.

    Gradient:
        By ``samples``, ``high`` and ``low``, of the formula; 0 where the mean of the directions is 0.
    """
    sample, _, sine, cosine = _circular("circvar", samples, high, low, axis, nan_policy, keepdims)
    return sample.result(1 - _length(sine, cosine))


@circular
def circstd(
    samples: Tensor, high: Operand = 2 * math.pi, low: Operand = 0, axis: Axes = None, nan_policy="propagate", *,
    normalize=False, keepdims=False,
) -> Tensor:  # fmt: skip
    """Circular standard deviation of angles: ``sqrt(-2 * log(R))``; ``R`` is the length of their mean direction vector.

    Args:
        normalize: True for angles rescaled to a period of ``2 * pi``.

    Gradient:
        By ``samples``, ``high`` and ``low``, of the formula; 0 where all angles are equal.
    """
    sample, scale, sine, cosine = _circular("circstd", samples, high, low, axis, nan_policy, keepdims)
    value = sample.root(-2 * ops.log(_length(sine, cosine)))
    return sample.result(value if normalize else value * scale)


class DirectionalStats(NamedTuple):
    """The result of :func:`directional_stats`."""

    mean_direction: Any
    mean_resultant_length: Any


@of_sample
def directional_stats(samples: Tensor, *, axis: Axis = 0, normalize=True):
    """Mean of directions, vectors along the last dimension.

    Args:
        axis: along which the directions are averaged.
        normalize: whether to scale the vectors to length 1 first.

    Returns:
        A named tuple ``mean_direction``, of length 1, of the shape of ``samples`` without ``axis``, and
        ``mean_resultant_length``, also without the last dimension.

    Raises:
        ShapeError: fewer than two dimensions.

    Gradient:
        The formulas'.
    """
    function = "scipy.stats.directional_stats"
    (samples,) = real(function, samples=samples)
    if len(samples.shape) < 2:
        raise ShapeError(f"`{function}`: `samples` must have at least two dimensions.", argument="samples")
    _checks.check_axes(function, axis, len(samples.shape))
    samples = ops.moveaxis(samples, axis, 0)
    if normalize:
        samples = samples / ops.norm(samples, axis=-1, keepdims=True)
    mean = ops.mean(samples, 0)
    length = ops.norm(mean, axis=-1, keepdims=True)
    return DirectionalStats(mean / length, length[..., 0])


__all__ = ["circmean", "circstd", "circvar", "directional_stats"]
