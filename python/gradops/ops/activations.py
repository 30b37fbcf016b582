"""Neural networks: activations."""

from __future__ import annotations

from ..types import Axes, Tensor
from ._dispatch import op


@op
def sigmoid(x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))`` of each element.

    Gradient:
        ``y * (1 - y)``.
    """
    ...


@op
def relu(x: Tensor) -> Tensor:
    """The larger of each element and 0.

    Gradient:
        1 where ``x`` is above 0, else 0 (also at 0).
    """
    ...


@op
def softplus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))`` of each element, without overflow.

    Gradient:
        ``sigmoid(x)``.
    """
    ...


@op
def softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis or several, without overflow.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        ``y * (g - sum(g * y))``.
    """
    ...


@op
def log_softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """``log(softmax(x))`` along an axis or several, without overflow.

    Raises:
        AxisError: an axis out of range.

    Gradient:
        ``g - exp(y) * sum(g)``.
    """
    ...
