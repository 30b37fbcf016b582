"""Quadrature over each random effect from slopes: one gradient at each node serves all effects at once.

The integrand for an effect is ``exp(-g)``. Only the sum of ``g`` over all effects is known, but each slope is. In
panels of Gauss-Legendre nodes, ``g`` is the integral of the polynomial through its slopes, outwards from the middle.
Panels that start where ``exp(-g)`` is negligible are left out.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from ..errors import ArgumentError

NODES = 12
EDGES = {True: (0, 1.5, 3, 4.5, 6, 8, 11, 15, 20), False: tuple(np.linspace(0, 1, 9).tolist())}
"""Panel edges on each side: for the whole line in standard deviations (True), for the interval [-1, 1] (False)."""
NEGLIGIBLE = 60.0


class Rule(NamedTuple):
    """A quadrature rule: nodes ``z`` around 0, their log weights, and matrices that integrate slopes.

    ``before`` integrates slopes from 0 to the start of a node's panel, ``within`` from there to the node.
    """

    z: np.ndarray
    log_weights: np.ndarray
    before: np.ndarray
    within: np.ndarray


@functools.cache
def rule(whole_line: bool) -> Rule:
    """Return the rule for the whole line, or for the interval [-1, 1]."""
    t, weights = legendre.leggauss(NODES)
    orders = np.arange(NODES)
    coefficients = (orders[:, None] + 0.5) * weights * legendre.legvander(t, NODES - 1).T
    to_node = legendre.legvander(t, NODES) @ legendre.legint(coefficients, lbnd=-1)
    halves = np.diff(EDGES[whole_line]) / 2
    panels = len(halves)
    z = np.concatenate([start + half * (1 + t) for start, half in zip(EDGES[whole_line], halves)])
    across = np.kron(np.tril(np.ones((panels, panels)), -1) * halves, np.ones((NODES, 1)) * weights)
    within = np.kron(np.diag(halves), to_node)
    none = np.zeros_like(across)
    sides = [np.block([[side, none], [none, -side]]) for side in (across, within)]
    return Rule(np.append(z, -z), np.tile(np.log(np.kron(halves, weights)), 2), *sides)


class Domain(NamedTuple):
    """The range of integration of random effects: the whole line, or an interval."""

    lower: float = -np.inf
    upper: float = np.inf

    @property
    def rule(self) -> Rule:
        return rule(not np.isfinite(self.lower))

    def places(self, mode: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the centre and the scale of each effect's nodes, given its mode and its standard deviation there."""
        if not np.isfinite(self.lower):
            return mode, spread
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        return np.full_like(mode, middle), np.full_like(mode, half)


def domain(integrate) -> Domain | None:
    """Return the domain for the argument ``integrate``: None for False, the whole line for True, or an interval.

    Raises:
        ArgumentError: another value; ends that are not finite or not in order.
    """
    if integrate is False or integrate is None:
        return None
    if integrate is True:
        return Domain()
    try:
        lower, upper = map(float, integrate)
    except (TypeError, ValueError):
        lower = upper = np.nan
    if not (np.isfinite([lower, upper]).all() and lower < upper):
        raise ArgumentError(
            "`integrate` must be True, for the whole line, or a pair of finite numbers in order; "
            f"got {integrate!r:.60}.",
            argument="integrate",
        )
    return Domain(lower, upper)
