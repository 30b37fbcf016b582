"""Distances between the distributions of two samples."""

from __future__ import annotations

from ... import ops
from ...annotations import Tensor
from ...errors import ShapeError
from .._define import family
from ._samples import real, root
from .order_statistics import _weighted


def _difference(function, u, v, u_weights, v_weights):
    """Return the gaps between ordered values of both samples, and the differences of the distribution functions."""
    u, u_weights = _weighted(function, "u_values", u, u_weights, "u_weights")
    v, v_weights = _weighted(function, "v_values", v, v_weights, "v_weights")
    if not (u.shape[0] and v.shape[0]):
        name = "v_values" if u.shape[0] else "u_values"
        raise ShapeError(f"`{function}`: `{name}` must not be empty.", argument=name)
    u, v, u_weights, v_weights = real(
        function, u_values=u, v_values=v, u_weights=u_weights / ops.sum(u_weights),
        v_weights=v_weights / ops.sum(v_weights),
    )  # fmt: skip
    x = ops.concatenate([u, v])
    order = ops.argsort(x)
    x = ops.take(x, order)
    rise = ops.cumsum(ops.take(ops.concatenate([u_weights, -v_weights]), order), 0)
    return x[1:] - x[:-1], rise[:-1]


distance = family(
    dict.fromkeys(("u_weights", "v_weights"), "of the shape of the values; equal without."),
    returns="A tensor without dimensions.",
    raises="ShapeError: no values, weights of another shape.\nArgumentError: weights that are negative or all 0.",
    gradient="By values and weights, with the order of the values held fixed.",
)


@distance
def wasserstein_distance(
    u_values: Tensor, v_values: Tensor, u_weights: Tensor = None, v_weights: Tensor = None
) -> Tensor:
    """Wasserstein-1 distance of two samples of numbers: the integral of the distance of their distribution
    functions.
    """
    steps, rise = _difference("scipy.stats.wasserstein_distance", u_values, v_values, u_weights, v_weights)
    return ops.sum(ops.abs(rise) * steps)


@distance
def energy_distance(u_values: Tensor, v_values: Tensor, u_weights: Tensor = None, v_weights: Tensor = None) -> Tensor:
    """Energy distance of two samples: the root of twice the integral of the squared difference of their distribution
    functions.

    Gradient:
        By values and weights, with the order of the values held fixed; 0 where the samples are the same.
    """
    steps, rise = _difference("scipy.stats.energy_distance", u_values, v_values, u_weights, v_weights)
    return root(2 * ops.sum(rise * rise * steps, keepdims=True), rise * steps)[0]


__all__ = ["energy_distance", "wasserstein_distance"]
