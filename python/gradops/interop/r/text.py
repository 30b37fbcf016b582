"""R's access to text variables and to the layer on them."""

from __future__ import annotations

from ... import backends, ops, text
from ...autodiff import Variable, no_grad
from ...errors import ArgumentError, ArgumentTypeError, TypeOf


def is_text(value) -> bool:
    """True if a value is a text variable."""
    return isinstance(value, Variable) and value.dtype is str


def set_value(x, value) -> None:
    """``x``'s value replaced, unrecorded.

    Raises:
        ArgumentTypeError: ``x`` is not a variable, or is of another kind than ``value``.
    """
    if isinstance(x, Variable):
        owner = backends.of(x.data)
        plain = owner is not None and not is_text(x) and isinstance(value, (bool, int, float, complex))
        x.data = owner.convert(value, owner.dtype_name(x.data)) if plain else value
        return
    owner = backends.of(x)
    if owner is None or not owner.derivatives.own_tape:
        raise ArgumentTypeError("`x` must be a variable; got {x}.", argument="x", x=TypeOf(x))
    with no_grad():
        x.copy_(ops.broadcast_to(ops.cast(value, owner.dtype_name(x)), tuple(x.shape)))


def backward_each(threads: int, progress: bool, columns) -> None:
    """Backward passes at once: of losses, or of texts with their feedback."""
    text.each(Variable.backward, *columns, threads=threads, progress=progress)


def named(function, name: str):
    """``function``, which is an R function's, with a name for messages."""
    function.__name__ = name
    return function


def invoke_method(value, name: str, arguments):
    return getattr(value, name)(*arguments)


def model_field(model, name: str):
    """A fact that a model tells of itself.

    Raises:
        ArgumentError: no such field.
    """
    if name not in ("name", "spent", "calls") or not hasattr(model, name):
        known = [n for n in ("name", "spent", "calls") if hasattr(model, n)]
        raise ArgumentError(f"a model has no field `{name}`; it has {', '.join(known)}.", argument="name")
    return getattr(model, name)
