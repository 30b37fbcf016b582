"""Derivatives with respect to dicts and nested structures, for transforms that know only tensors and tuples.

:func:`takes_structures` wraps a transform: :class:`Flat` flattens the inputs, outputs and the vector ``v``, and gives
the results the structures of inputs and outputs again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import _tree
from ..errors import ArgumentError, GradientError


def takes_structures(form: str, v: str | None = None) -> Callable:
    """A decorator that lets ``transform(func, inputs, ...)``, which knows tensors and tuples of them, also take dicts.

    Args:
        form: the form of the result: ``"rows"``, a derivative in the form of the inputs for each output; ``"squares"``,
            a derivative in the form of the inputs whose leaves have that form again; ``"pulled"``, the value and a
            derivative in the form of the inputs; ``"pushed"``, the value and a derivative in the form of the outputs.
        v: the form of ``v``: ``"inputs"`` or ``"outputs"``.
    """

    def decorated(transform: Callable) -> Callable:
        ends = {"rows": Flat.rows, "squares": Flat.squares, "pulled": Flat.pulled, "pushed": Flat.pushed}
        takes_aux = "has_aux" in inspect.signature(transform).parameters

        @functools.wraps(transform)
        def call(func, inputs, *args, **kwargs):
            if not callable(func):
                return transform(func, inputs, *args, **kwargs)
            has_aux = kwargs.pop("has_aux", False) if takes_aux else False
            flat = Flat(func, inputs, has_aux)
            if v == "inputs" and flat.structure is not None:
                args, kwargs = _flatten_vector(args, kwargs, flat.leaves_of_vector)
            elif v == "outputs":
                args, kwargs = _flatten_vector(args, kwargs, flat.weights)
            result = ends[form](flat, transform(flat, flat.inputs, *args, **kwargs))
            return (result, _aux(func, inputs)) if has_aux else result

        return call

    return decorated


class Flat:
    """A function from the tensors in its inputs to the tensors in its outputs.

    Attributes:
        inputs: a tensor or a tuple of tensors.
        structure: the structure of the original inputs; None if they are a tensor or a tuple of tensors.
    """

    def __init__(self, func: Callable, inputs, has_aux: bool):
        self.func, self.has_aux = func, has_aux
        self.several = isinstance(inputs, tuple)
        self.structure: Any = None
        self._weights: Any = None
        self.gave(None, False)
        self.inputs = inputs
        if _holds_structure(inputs, dict):
            leaves, self.structure = _tree.flatten(inputs)
            if not leaves:
                raise ArgumentError("there is nothing to differentiate: the inputs hold no tensor.", argument="inputs")
            self.inputs = tuple(leaves)

    def owner(self, kind: type) -> Any:
        """The original function if it is of ``kind`` and called with unchanged inputs.

        Its derived programs can be reused.
        """
        return self.func if isinstance(self.func, kind) and self.structure is None and not self.has_aux else None

    def __call__(self, *xs):
        if self.structure is not None:
            filled = _tree.unflatten(self.structure, xs)
            xs = filled if self.several else (filled,)
        y = self.func(*xs)
        if self.has_aux:
            y, _ = pair(y)
        y, structure = tensors_of(y)
        if self._weights is not None and self._weights != structure:
            raise ArgumentError(
                f"`v` must have the structure of the outputs, {structure}; got {self._weights}.", argument="v"
            )
        self.gave(structure, isinstance(y, tuple))
        return y

    def gave(self, structure, several: bool) -> None:
        """Remember the outputs' structure, None for a tensor or a tuple of tensors, and whether there are several."""
        self._structure, self._several = structure, several

    def leaves_of_vector(self, v):
        leaves, its = _tree.flatten(v)
        if its != self.structure:
            raise ArgumentError(f"`v` must have the structure of `inputs`, {self.structure}; got {its}.", argument="v")
        return tuple(leaves)

    def weights(self, v):
        if not _holds_structure(v, (dict, tuple)):
            return v
        leaves, self._weights = _tree.flatten(v)
        return tuple(leaves)

    def input_structure(self, values):
        return values if self.structure is None else _tree.unflatten(self.structure, values)

    def output_structure(self, values):
        if self._structure is None:
            return values
        return _tree.unflatten(self._structure, values if isinstance(values, (list, tuple)) else [values])

    def rows(self, result):
        if self._structure is not None or self.structure is not None and self._several:
            return self.output_structure(tuple(map(self.input_structure, result)))
        return self.input_structure(result)

    def squares(self, result):
        return result if self.structure is None else self.input_structure([self.input_structure(row) for row in result])

    def pulled(self, result):
        return self.output_structure(result[0]), self.input_structure(result[1])

    def pushed(self, result):
        return self.output_structure(result[0]), self.output_structure(result[1])


def tensors_of(y) -> tuple:
    """The value of a function as a tensor or a tuple of tensors, and its structure if it is neither.

    Raises:
        GradientError: the value holds no tensors.
    """
    if not _holds_structure(y, (dict, tuple, list)):
        return (tuple(y) if isinstance(y, list) else y), None
    leaves, structure = _tree.flatten(y)
    if not leaves:
        raise GradientError("`func` must return tensors; got none.", argument="func")
    return tuple(leaves), structure


def _holds_structure(values, kinds) -> bool:
    """True if ``values`` is not a tensor or a tuple of tensors: it is a dict, or contains one of ``kinds``."""
    return isinstance(values, dict) or isinstance(values, (tuple, list)) and any(isinstance(x, kinds) for x in values)


def pair(y) -> Any:
    if not isinstance(y, (tuple, list)) or len(y) != 2:
        raise GradientError("`func` must return a pair of its value and anything else with `has_aux`.", argument="func")
    return y


def _aux(func: Callable, inputs):
    """The auxiliary output at the inputs themselves; a derivative may have run the function traced or batched."""
    return pair(func(*inputs) if isinstance(inputs, tuple) else func(inputs))[1]


def _flatten_vector(args: tuple, kwargs: dict, flat: Callable) -> tuple[tuple, dict]:
    """The arguments with ``v`` replaced by the tuple of its tensors."""
    v = args[0] if args else kwargs.get("v")
    if v is None:
        return args, kwargs
    return ((flat(v), *args[1:]), kwargs) if args else (args, {**kwargs, "v": flat(v)})
