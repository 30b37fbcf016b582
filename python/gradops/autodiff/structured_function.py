"""``Function``s with variables inside lists and dicts, or with keyword arguments, reduced to functions of variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import _tree, backends
from ..errors import ArgumentTypeError, GradientError, TypeOf
from .cotangents import one_for_each
from .variable import Variable


def holds_variables(value) -> bool:
    """True if a value is a variable, or a list, tuple or dict with a variable inside."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return isinstance(value, Variable)
    return any(map(holds_variables, value))


def _records_itself(value) -> bool:
    """True if a value is a tensor that its own library differentiates."""
    owner = None if isinstance(value, Variable) else backends.backend_of(value)
    return owner is not None and owner.derivatives.native


def positional_arguments(forward: Callable, args: tuple, keywords: dict, defaults: bool = False) -> tuple[tuple, dict]:
    """Arguments passed by position as far as ``forward`` allows; with ``defaults`` also the omitted ones."""
    try:
        bound = inspect.signature(forward).bind(*args, **keywords)
    except ValueError:  # no signature
        return args, keywords
    if defaults:
        bound.apply_defaults()
    return bound.args, bound.kwargs


def flat_form(base: Any, cls, args: tuple, keywords: dict) -> tuple[type, list]:
    """A ``Function`` of the distinct variables in ``args`` and ``keywords`` only, and these variables.

    ``forward`` and ``setup_context`` get the arguments as they were passed. ``backward`` returns a gradient for each
    argument, keyword arguments last, nested like the argument; None means that the whole argument has none.
    """
    leaves, form = _tree.flatten((args, keywords))
    other = next((x for x in leaves if _records_itself(x)), None)
    if other is not None:
        raise ArgumentTypeError(
            f"{cls.__name__}: a {{other}} inside of a list or dict, or by name alone, gets no gradient.",
            hint="pass it as an argument by position, or a `Variable` on it",
            other=TypeOf(other),
        )
    variables = list({id(leaf): leaf for leaf in leaves if isinstance(leaf, Variable)}.values())
    places = {id(variable): i for i, variable in enumerate(variables)}
    given = [*args, *keywords.values()]

    def filled(inputs) -> Any:
        return _tree.unflatten(form, [inputs[places[id(x)]] if isinstance(x, Variable) else x for x in leaves])

    def needs(value, wanted) -> bool:
        found = _tree.flatten(value)[0]
        return any(wanted[places[id(x)]] for x in found if isinstance(x, Variable))

    def forward(ctx, *inputs):
        arguments, by_name = filled(inputs)
        flat = ctx.needs_input_grad
        ctx.needs_input_grad = tuple(needs(value, flat) for value in given)
        if cls.setup_context is base.setup_context:
            return cls.forward(ctx, *arguments, **by_name)
        output = cls.forward(*arguments, **by_name)
        cls.setup_context(ctx, (*arguments, *by_name.values()), output)
        return output

    def backward(ctx, *gradients):
        result = cls.backward(ctx, *gradients)
        several = isinstance(result, (tuple, list)) and len(given) > 1 or len(given) == 1 and _is_row(result, given[0])
        result = one_for_each(
            result if several else [result], len(given), f"{cls.__name__}.backward", "argument of `forward`"
        )
        found: list[list] = [[] for _ in variables]
        for value, gradient in zip(given, result):
            _collect(cls, value, gradient, places, found)
        return tuple(_total(row) for row in found)

    members: dict[str, Any] = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward),
        "evaluator": cls.evaluator,
    }
    return type(cls.__name__, (base,), members), variables


def _is_row(result, argument) -> bool:
    """True if a sequence holds the only argument's gradient, and is not itself a gradient nested like the argument."""
    return (
        isinstance(result, (tuple, list))
        and len(result) == 1
        and not (
            isinstance(argument, (tuple, list))
            and len(argument) == 1
            and not isinstance(result[0], (tuple, list, dict))
        )
    )


def _collect(cls, value, gradient, places: dict[int, int], found: list[list]) -> None:
    """Add each gradient to its variable's list."""
    if gradient is None:
        return
    if isinstance(value, Variable):
        found[places[id(value)]].append(gradient)
    elif isinstance(value, dict) and isinstance(gradient, dict) and gradient.keys() <= value.keys():
        for name, part in gradient.items():
            _collect(cls, value[name], part, places, found)
    elif isinstance(value, (list, tuple)) and isinstance(gradient, (list, tuple)) and len(value) == len(gradient):
        for part, one in zip(value, gradient):
            _collect(cls, part, one, places, found)
    else:
        raise GradientError(
            f"{cls.__name__}.backward returned a {{gradient}} as the gradient of {_kind(value)}.",
            hint="nest gradients like the argument of `forward`, or return {None}",
            gradient=TypeOf(gradient),
        )


def _kind(value) -> str:
    many = isinstance(value, (list, tuple, dict))
    return f"a {type(value).__name__} of {len(value)}" if many else f"a {type(value).__name__}, which is not a variable"


def _total(row: list):
    """The sum of the gradients of one variable that occurs several times."""
    if not row:
        return None
    if any(isinstance(g, str) or isinstance(g, Variable) and g.dtype is str for g in row):
        return [said for g in row for said in (g if isinstance(g, (list, tuple)) else [g])]
    total = row[0]
    for g in row[1:]:
        total = total + g
    return total
