"""Functions with a rule for all rows that a :func:`gradops.vmap` maps over."""

from __future__ import annotations

from collections.abc import Callable

from ..autodiff.variable import Variable, data_of
from ..flow import custom_gradient, stop_gradient
from ..ops._structures import as_tensor, owner_of
from .symbolic_zeros import moves


def call_by_rule(function: Callable, rule: Callable, xs: list, gradient: Callable) -> list:
    """``function(*xs)``, a list, by ``rule(size, batched, xs)`` where the tensors are rows of a :func:`gradops.vmap`.

    Args:
        gradient: ``gradient(xs, places, cotangents)`` returns the cotangents of the tensors at ``places``.
    """
    owner = owner_of("custom_vmap", *xs)
    call = owner.kernel("custom_vmap")

    def values(*xs) -> list:
        if call is None:
            return function(*xs)
        return call(
            row_values, batched_values, [data_of(x) if isinstance(x, Variable) else stop_gradient(x) for x in xs]
        )

    def row_values(*xs) -> list:
        return [as_tensor("custom_vmap", y, owner, "fun") for y in function(*xs)]

    def batched_values(size: int, in_batched: list, xs: list) -> tuple[list, list]:
        ys, out = rule(size, in_batched, xs)
        return [as_tensor("custom_vmap", y, owner, "rule") for y in ys], out

    places = [i for i, x in enumerate(xs) if moves(x)]

    def run(*xs):
        def pull(upstream):
            found = dict(zip(places, gradient(list(xs), places, upstream)))
            return tuple(map(found.get, range(len(xs))))

        return values(*xs), pull

    return custom_gradient(run)(*xs) if places else values(*xs)
