"""Derivatives by and of structures of tensors: they are taken of their leaves, and the results have their form."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import _tree
from ..errors import ArgumentError, GradientError


def takes_structures(form: str, v: str | None = None) -> Callable:
    """A decorator for ``transform(func, inputs, ...)``, which knows tensors and tuples of them, to take dicts too.

    Args:
        form: the result: ``"rows"``, for each output a derivative in the form of the inputs; ``"squares"``, a
            derivative in their form, each leaf of it again; ``"pulled"``, the value and a derivative in their form;
            ``"pushed"``, the value and a derivative in the form of the outputs.
        v: the form of ``v``: that of the ``"inputs"`` or the ``"outputs"``.
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
                args, kwargs = _with_vector(args, kwargs, flat.leaves_of_vector)
            elif v == "outputs":
                args, kwargs = _with_vector(args, kwargs, flat.weights)
            result = ends[form](flat, transform(flat, flat.inputs, *args, **kwargs))
            return (result, _aux(func, inputs)) if has_aux else result

        return call

    return decorated


class Flat:
    """A function of the tensors in its inputs to the tensors in its outputs.

    Attributes:
        inputs: a tensor or a tuple of them.
        structure: of the inputs where they are no such.
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
        """The function itself, of a ``kind`` that keeps its derived programs; None where it gets other inputs."""
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
        """Note the structure of the outputs, None for tensors alone, and ``several``: True if there are several."""
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

    def of_inputs(self, values):
        return values if self.structure is None else _tree.unflatten(self.structure, values)

    def of_outputs(self, values):
        return values if self._structure is None else _tree.unflatten(self._structure, values)

    def rows(self, result):
        if self._structure is not None or self.structure is not None and self._several:
            return self.of_outputs(tuple(map(self.of_inputs, result)))
        return self.of_inputs(result)

    def squares(self, result):
        return result if self.structure is None else self.of_inputs([self.of_inputs(row) for row in result])

    def pulled(self, result):
        return self.of_outputs(result[0]), self.of_inputs(result[1])

    def pushed(self, result):
        return self.of_outputs(result[0]), self.of_outputs(result[1])


def tensors_of(y) -> tuple:
    """The value of a function as a tensor or a tuple of them, and its structure where it is another one.

    Raises:
        GradientError: a structure without tensors.
    """
    if not _holds_structure(y, (dict, tuple, list)):
        return (tuple(y) if isinstance(y, list) else y), None
    leaves, structure = _tree.flatten(y)
    if not leaves:
        raise GradientError("`func` must return tensors; got none.", argument="func")
    return tuple(leaves), structure


def _holds_structure(values, kinds) -> bool:
    """True if values are more than a tensor or a tuple of them: a dict, or something of such ``kinds`` inside."""
    return isinstance(values, dict) or isinstance(values, (tuple, list)) and any(isinstance(x, kinds) for x in values)


def pair(y) -> Any:
    if not isinstance(y, (tuple, list)) or len(y) != 2:
        raise GradientError("`func` must return a pair of its value and anything else with `has_aux`.", argument="func")
    return y


def _aux(func: Callable, inputs):
    """A function's output beside its value, at the inputs themselves: a derivative may run it traced, or in rows."""
    return pair(func(*inputs) if isinstance(inputs, tuple) else func(inputs))[1]


def _with_vector(args: tuple, kwargs: dict, flat: Callable) -> tuple[tuple, dict]:
    """The arguments with ``v`` as a tuple of its tensors."""
    v = args[0] if args else kwargs.get("v")
    if v is None:
        return args, kwargs
    return ((flat(v), *args[1:]), kwargs) if args else (args, {**kwargs, "v": flat(v)})
