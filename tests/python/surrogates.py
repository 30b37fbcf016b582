"""Gradient flows as users put them into models, each with a twin in the library's own functions.

A flow is written with gradops. Its twin has the same value and derivatives of any order, by the library's stop-gradient
alone: ``g(x) + stop(f(x) - g(x))`` is ``f`` with the derivative of ``g``. A model trained with either must end at the
same numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import gradops
from gradops import ops


@gradops.custom_gradient
def own(x):
    """Return the sine, with a custom derivative."""
    e = ops.exp(x)
    return ops.sin(x), lambda upstream: upstream * e * 3.0


@gradops.custom_gradient
def straight_through(x):
    return ops.round(x * 4.0) / 4.0, lambda upstream: upstream


def reversal(x):
    return gradops.scaled_gradient(x, -0.5)


@gradops.checkpoint
def recomputed(x):
    return ops.exp(-ops.sin(x) * x)


def in_scope(x):
    with gradops.gradient_checkpoint_scope():
        h = ops.sin(x) * x
    return ops.exp(-h)


def stopped_inside(x):
    with gradops.stop_gradient_scope():
        h = ops.sin(x) * x
    return ops.exp(-h) * x


FLOWS = {
    "custom": own,
    "straight-through": straight_through,
    "reversal": reversal,
    "stop scope": stopped_inside,
    "checkpoint": recomputed,
    "checkpoint scope": in_scope,
}


def twins(library, stop: Callable) -> dict[str, Callable]:
    """Return the twins of :data:`FLOWS` from a library's ``sin``, ``exp``, ``round`` and its stop-gradient."""

    def with_slope_of(g, f):
        return lambda x: g(x) + stop(f(x) - g(x))

    def plain(x):
        return library.exp(-library.sin(x) * x)

    return {
        "custom": with_slope_of(lambda x: 3.0 * library.exp(x), library.sin),
        "straight-through": with_slope_of(lambda x: x, lambda x: library.round(x * 4.0) / 4.0),
        "reversal": with_slope_of(lambda x: -0.5 * x, lambda x: x),
        "stop scope": lambda x: library.exp(-stop(library.sin(x) * x)) * x,
        "checkpoint": plain,
        "checkpoint scope": plain,
    }
