"""Dicts among the inputs of a derivative: it is taken for their leaves, and the result has their form."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import _tree
from ..errors import ArgumentError


def takes_dicts(form: str, vectors: bool = False) -> Callable:
    """A decorator for ``transform(func, inputs, ...)``, which knows tensors and tuples of them, to take dicts too.

    Args:
        form: the result: ``"rows"``, for each output a derivative in the form of the inputs; ``"squares"``, a
            derivative in their form, each leaf of it again; ``"product"``, a pair of the value and a derivative in
            their form; ``"pushed"``, nothing of their form.
        vectors: whether ``v`` has the form of the inputs.
    """

    def decorated(transform: Callable) -> Callable:
        @functools.wraps(transform)
        def call(func, inputs, *args, **kwargs):
            if not callable(func) or not _holds_dict(inputs):
                return transform(func, inputs, *args, **kwargs)
            leaves, structure = _tree.flatten(inputs)
            if not leaves:
                raise ArgumentError("there is nothing to differentiate: the inputs hold no tensor.", argument="inputs")
            several = isinstance(inputs, tuple)
            box = {}

            def flat(*xs):
                filled = _tree.unflatten(structure, xs)
                y = func(*filled) if several else func(filled)
                box["several"] = isinstance(y, (tuple, list))
                return y

            if vectors:
                args, kwargs = _with_flat_vector(structure, args, kwargs)
            result = transform(flat, tuple(leaves), *args, **kwargs)
            back = functools.partial(_tree.unflatten, structure)
            if form == "squares":
                return back([back(row) for row in result])
            if form == "product":
                return result[0], back(result[1])
            if form == "rows":
                return tuple(map(back, result)) if box["several"] else back(result)
            return result

        return call

    return decorated


def _holds_dict(inputs) -> bool:
    return any(isinstance(x, dict) for x in (inputs if isinstance(inputs, tuple) else (inputs,)))


def _with_flat_vector(structure, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    v = args[0] if args else kwargs.get("v")
    if v is None:
        return args, kwargs
    leaves, its = _tree.flatten(v)
    if its != structure:
        raise ArgumentError(f"`v` must have the structure of `inputs`, {structure}; got {its}.", argument="v")
    return ((tuple(leaves), *args[1:]), kwargs) if args else (args, {**kwargs, "v": tuple(leaves)})
