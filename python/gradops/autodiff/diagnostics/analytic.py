"""Analytic derivatives for gradcheck: vector-Jacobian products by each library's own means."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ... import backends
from ...errors import GradientError, Position
from ...ops import conversion, elementwise, reductions
from ...ops.creation import zeros_like
from ..gradients import grad
from ..modes import enable_grad
from ..variable import wrap
from .numeric import directions
from .tensors import Kind, as_tuple, is_differentiable, leaf, like, real_count, real_size, reals, to_numpy


def analytic_jacobian(func, values, places, kind, flat, k: int, advance, grad_dtypes: bool) -> list[np.ndarray]:
    """The gradient of each real element of output ``k``: matrices of (real elements of the input, of the output)."""
    found = [np.zeros((real_size(values[i]), real_count(flat[k])), float) for i in places]
    pull = puller(func, values, places, kind)
    y = flat[k]
    for column, direction in enumerate(directions(y)):
        upstream: list = [None] * len(flat)
        upstream[k] = direction
        for j, (i, g) in enumerate(zip(places, pull(upstream))):
            if g is not None:
                if grad_dtypes and conversion.dtype(g) != conversion.dtype(values[i]):
                    raise GradientError(
                        f"gradcheck: the gradient for input {{i}} has dtype {conversion.dtype(g)}; "
                        f"the input has {conversion.dtype(values[i])}.",
                        i=Position(i),
                    )
                if tuple(g.shape) != tuple(values[i].shape):
                    raise GradientError(
                        f"gradcheck: the gradient for input {{i}} has shape {tuple(g.shape)}; "
                        f"the input has {tuple(values[i].shape)}.",
                        i=Position(i),
                    )
                found[j][:, column] = reals(to_numpy(g))
        advance(1)
    return found


def puller(func, values, places, kind: Kind) -> Callable:
    """``pull(upstream)`` to the gradients for the inputs; None upstream is no gradient."""

    def pull(upstream):
        return pull_back(func, values, places, kind, upstream, create=False)

    return pull


def pull_back(func, values, places, kind: Kind, upstream: list, create: bool) -> list:
    if kind.wrapped:
        values = tuple(wrap(v) if backends.of(v) is not None else v for v in values)
        for i in places:
            values[i].requires_grad = True
    if kind.on_tape:
        with enable_grad():
            fresh = list(values)
            if not create:
                for i in places:
                    fresh[i] = leaf(values[i])
            outputs = list(as_tuple(func(*fresh)))
            if create:
                outputs = [y for y in outputs if is_differentiable(y)]
            pairs = [(y, g) for y, g in zip(outputs, upstream) if g is not None and getattr(y, "requires_grad", False)]
            targets = [fresh[i] for i in places]
            if not pairs:
                return [zeros_like(t) for t in targets] if create else [None] * len(places)
            gradients = grad(
                [y for y, _ in pairs],
                targets,
                [g if create else like(g, y) for y, g in pairs],
                create_graph=create,
                allow_unused=True,
                materialize_grads=create,
            )
            return list(gradients)
    return _pull_natively(kind.derivatives, func, values, places, upstream, create)


def _pull_natively(derivatives, func, values, places, upstream, create) -> list:
    """By a library's own derivatives, of the real product of the outputs with what arrives for them."""

    def product(*xs):
        filled = list(values)
        for i, x in zip(places, xs):
            filled[i] = x
        outputs = [y for y in as_tuple(func(*filled)) if is_differentiable(y) or not create]
        parts = [_real_product(g, y) for y, g in zip(outputs, upstream) if g is not None and is_differentiable(y)]
        return functools.reduce(elementwise.add, parts) if parts else 0.0

    return derivatives.value_and_grad(product, [values[i] for i in places])[1]


def _real_product(g, y):
    g = backends.of(y).convert(g, conversion.dtype(y)) if isinstance(g, np.ndarray) else g
    return reductions.sum(elementwise.real(elementwise.multiply(elementwise.conj(g), y)))
