"""Analytic derivatives for gradcheck: vector-Jacobian products by each library's own means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import backends
from ...errors import GradientError, Position
from ...ops import conversion
from ...ops.creation import zeros_like
from ..gradients import grad
from ..modes import enable_grad
from ..variable import wrap
from .numeric import directions
from .tensors import as_tuple, is_differentiable, leaf, like, real_count, real_size, reals, to_numpy


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


def puller(func, values, places, kind: str) -> Callable:
    """``pull(upstream)`` to the gradients for the inputs; None upstream is no gradient."""

    def pull(upstream):
        return pull_back(func, values, places, kind, upstream, create=False)

    return pull


def pull_back(func, values, places, kind: str, upstream: list, create: bool) -> list:
    if kind == "numpy":
        values = tuple(wrap(v) if backends.of(v) is not None else v for v in values)
        for i in places:
            values[i].requires_grad = True
    if kind in ("numpy", "variable", "torch"):
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
    if kind == "jax":
        return _pull_jax(func, values, places, upstream, create)
    return _pull_tensorflow(func, values, places, upstream, create)


def _pull_jax(func, values, places, upstream, create) -> list:
    import jax
    import jax.numpy as jnp

    def chosen(*xs):
        filled = list(values)
        for i, x in zip(places, xs):
            filled[i] = x
        outputs = as_tuple(func(*filled))
        if create:
            return tuple(y for y in outputs if is_differentiable(y))
        return tuple(y if backends.of(y) is not None else jnp.asarray(y) for y in outputs)

    ys, pull = jax.vjp(chosen, *(values[i] for i in places))
    cotangents = []
    for y, g in zip(ys, upstream):
        if not jnp.issubdtype(y.dtype, jnp.inexact):
            cotangents.append(np.zeros(y.shape, jax.dtypes.float0))
        else:
            cotangents.append(jnp.conj(jnp.zeros_like(y) if g is None else jnp.asarray(g, y.dtype)))
    return [jnp.conj(g) for g in pull(tuple(cotangents))]


def _pull_tensorflow(func, values, places, upstream, create) -> list:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        xs = [values[i] for i in places]
        for x in xs:
            tape.watch(x)
        outputs = [tf.convert_to_tensor(y) for y in as_tuple(func(*values))]
        if create:
            outputs = [y for y in outputs if is_differentiable(y)]
    pairs = [(y, tf.cast(g, y.dtype)) for y, g in zip(outputs, upstream) if g is not None]
    gradients = tape.gradient([y for y, _ in pairs], xs, [g for _, g in pairs])
    gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    return [tf.zeros_like(x) if g is None and create else g for x, g in zip(xs, gradients)]
