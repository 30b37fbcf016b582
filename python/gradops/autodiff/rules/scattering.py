"""Derivatives: scattering. What is not here is composed."""

from ...ops import cast, concatenate, dtype, equal, multiply, take, where
from ...ops._checks import known
from ...ops.scattering import _zeros, segment_sum
from ..record import derivative


def _extreme(g, data, segment_ids, y):
    """The upstream gradient shared equally among each segment's tied rows; 0 to rows of no segment."""
    count, line = y.shape[0], (1, *y.shape[1:])
    ids = segment_ids if known(segment_ids) is None else known(segment_ids)
    row = where((ids >= 0) & (ids < count), ids, count)
    chosen = cast(equal(data, take(concatenate([y, _zeros(data, line)]), row, 0)), dtype(g))
    ties = segment_sum(chosen, row, count + 1)
    share = concatenate([g, _zeros(g, line)]) / where(equal(ties, 0), 1.0, ties)
    return multiply(chosen, take(share, row, 0))


derivative("segment_max", data=_extreme)
derivative("segment_min", data=_extreme)
