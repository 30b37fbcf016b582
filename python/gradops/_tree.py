"""Structures: nested tuples, named tuples, lists and dicts, flattened into leaves and rebuilt.

None is a structure without leaves. A dict's leaves are ordered by sorted key, so that two dicts with the same keys
have the same structure whatever their order; rebuilding keeps the order of the first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .errors import ArgumentError


class Structure:
    """The shape of a nested value without its leaves; structures of the same nesting are equal.

    Attributes:
        kind: ``"leaf"``, ``"none"``, ``"dict"`` or ``"sequence"``.
        type: the class of a sequence: ``list``, ``tuple`` or the named tuple's class.
        keys, order: a dict's keys, in its own order and sorted; otherwise ().
        parts: the structures of the parts; a dict's by sorted key.
        leaves: the number of leaves.
        flat: True for a sequence that contains only leaves.
    """

    __slots__ = ("kind", "type", "keys", "order", "parts", "leaves", "flat")

    def __init__(self, kind: str, type: Any = None, keys: tuple = (), order: tuple = (), parts: tuple = ()):
        self.kind = kind
        self.type = type
        self.keys = keys
        self.order = order
        self.parts = parts
        leaves, flat = int(kind == "leaf"), kind == "sequence"
        for part in parts:
            leaves += part.leaves
            flat = flat and part.kind == "leaf"
        self.leaves, self.flat = leaves, flat

    def __eq__(self, other) -> bool:
        return (
            isinstance(other, Structure)
            and self.kind == other.kind
            and (self.kind == "dict" or self.type is other.type)
            and self.order == other.order
            and self.parts == other.parts
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.order, self.parts))

    def __repr__(self) -> str:
        if self.kind == "leaf":
            return "*"
        if self.kind == "none":
            return "None"
        if self.kind == "dict":
            return "{" + ", ".join(f"{k!r}: {p!r}" for k, p in zip(self.order, self.parts)) + "}"
        inner = ", ".join(map(repr, self.parts))
        if self.type is list:
            return f"[{inner}]"
        if self.type is tuple:
            return f"({inner}{',' if len(self.parts) == 1 else ''})"
        return f"{self.type.__name__}({inner})"


LEAF = Structure("leaf")
_NONE = Structure("none")


def flatten(value) -> tuple[list, Structure]:
    """The leaves of a nested value, in order, and its structure."""
    if not (value is None or isinstance(value, (dict, list, tuple))):
        return [value], LEAF
    leaves: list = []
    return leaves, _flatten(value, leaves)


def _flatten(value, leaves: list) -> Structure:
    if value is None:
        return _NONE
    if isinstance(value, dict):
        order = tuple(sorted_keys(value))
        parts = tuple(_flatten(value[key], leaves) for key in order)
        return Structure("dict", OrderedDict if isinstance(value, OrderedDict) else dict, tuple(value), order, parts)
    if isinstance(value, (list, tuple)):
        kind: Any = list if isinstance(value, list) else type(value) if hasattr(value, "_fields") else tuple
        parts = tuple([_flatten(part, leaves) for part in value])
        return Structure("sequence", kind, parts=parts)
    leaves.append(value)
    return LEAF


def own_order(structure: Structure, first: int = 0) -> Iterator[int]:
    """The positions of a structure's leaves, with dicts in their own key order."""
    starts = {}
    for key, part in zip(structure.order or range(len(structure.parts)), structure.parts):
        starts[key] = part, first
        first += part.leaves
    if structure.kind == "leaf":
        yield first
    for key in structure.keys or starts:
        yield from own_order(*starts[key])


def dict_orders(structure: Structure) -> tuple:
    """The class and the keys, in their own order, of each dict in a structure; equality of structures ignores both."""
    own = ((structure.type, structure.keys),) if structure.kind == "dict" else ()
    return own + tuple([order for part in structure.parts if not part.flat for order in dict_orders(part)])


def sorted_keys(keys: Iterable) -> list:
    """A dict's keys, sorted; keys that cannot be compared are sorted by type name and string."""
    try:
        return sorted(keys)
    except TypeError:
        return sorted(keys, key=lambda key: (type(key).__name__, str(key)))


def unflatten(structure: Structure, leaves) -> Any:
    """Rebuild the nested value of a structure from its leaves.

    Raises:
        ArgumentError: the structure has another number of leaves.
    """
    leaves = list(leaves)
    if len(leaves) != structure.leaves:
        raise ArgumentError(f"a structure of {structure.leaves} leaves cannot be made from {len(leaves)}.")
    if structure is LEAF:
        return leaves[0]
    if structure.flat and structure.type in (list, tuple):
        return leaves if structure.type is list else tuple(leaves)
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves):
    if structure.kind == "leaf":
        return next(leaves)
    if structure.kind == "none":
        return None
    if structure.kind == "dict":
        values = {key: _unflatten(part, leaves) for key, part in zip(structure.order, structure.parts)}
        return structure.type((key, values[key]) for key in structure.keys)
    parts = [_unflatten(part, leaves) for part in structure.parts]
    if structure.type is list:
        return parts
    return tuple(parts) if structure.type is tuple else structure.type(*parts)


def paths(structure: Structure) -> list[str]:
    """The path to each leaf in Python's indexing, such as ``"['w'][0]"``; "" for a single leaf."""
    if structure.kind == "leaf":
        return [""]
    keys = structure.order if structure.kind == "dict" else range(len(structure.parts))
    return [f"[{key!r}]{rest}" for key, part in zip(keys, structure.parts) for rest in paths(part)]


def map_leaves(function: Callable, value, *others) -> Any:
    """Apply ``function`` to each leaf of ``value`` and the corresponding leaves of ``others``.

    Raises:
        ArgumentError: one of ``others`` has a different structure.
    """
    leaves, structure = flatten(value)
    columns = [leaves]
    for other in others:
        found, its = flatten(other)
        if its != structure:
            raise ArgumentError(f"structures must be the same; got {structure} and {its}.")
        columns.append(found)
    return unflatten(structure, [function(*row) for row in zip(*columns)])


def leaves_of(value) -> list:
    """The leaves without the structure."""
    return flatten(value)[0]


def items(value) -> Iterator:
    """The items of nested lists and tuples, including None; any other value is a single item."""
    if isinstance(value, (list, tuple)):
        for part in value:
            if isinstance(part, (list, tuple)):
                yield from items(part)
            else:
                yield part
    else:
        yield value


def map_items(function: Callable, value) -> Any:
    """Nested lists and tuples with ``function`` applied to each item, in the sense of :func:`items`."""
    if not isinstance(value, (list, tuple)):
        return function(value)
    # Most parts are not sequences, and a recursive call for each would take as long as most functions do.
    return alike(value, [map_items(function, x) if isinstance(x, (list, tuple)) else function(x) for x in value])


def alike(sequence, parts) -> Any:
    """``parts`` as a sequence of the class of ``sequence``: a list, tuple or named tuple."""
    if isinstance(sequence, list):
        return list(parts)
    return type(sequence)(*parts) if hasattr(sequence, "_fields") else tuple(parts)


def call_flat(call: Callable, run: Callable, inputs: list) -> Any:
    """``call(flat, inputs)`` in the structure of the result of ``run``.

    ``flat`` is ``run`` returning a list of leaves.
    """
    box: dict[str, Any] = {}

    def flat(*xs):
        leaves, box["form"] = flatten(run(*xs))
        return leaves

    values = call(flat, inputs)
    return unflatten(box["form"], values)


def filled(leaves, places, xs) -> list:
    """The leaves, with those at ``places`` replaced by ``xs``."""
    found = list(leaves)
    for i, x in zip(places, xs):
        found[i] = x
    return found


class Call:
    """A repeatable call, as records other than a graph hold it: a function, and its arguments.

    Attributes:
        function: such as a kernel.
        arguments: constants, and nested lists and tuples, with a ``kind`` in the place of each array, which says where
            the array is from.
    """

    __slots__ = ("function", "arguments")
    kind: type

    def __init__(self, function: Callable, arguments: tuple):
        self.function = function
        self.arguments = arguments

    def given(self, of: Callable) -> tuple:
        """The arguments with ``of(x)`` for each ``x`` that stands in the place of an array."""
        return map_items(lambda x: of(x) if isinstance(x, self.kind) else x, self.arguments)
