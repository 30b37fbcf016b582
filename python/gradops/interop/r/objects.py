"""Tensors, graphs and texts as R objects: what ``print`` shows, what ``saveRDS`` stores, and the fields after ``$``.

The other functions here change or name such objects.
"""

from __future__ import annotations

import numpy as np

from ... import autodiff, backends, config, ops, text
from ...autodiff import Variable, no_grad
from ...autodiff.diagnostics.inspection import arranged, boxes
from ...autodiff.variable import data_of
from ...errors import ArgumentError, ArgumentTypeError, BackendError, TypeOf
from ...text import Feedback, Said, Text, Texts
from ...text.files import plain_text
from .values import to_r

_TEXTS: dict[str, type] = {"Text": Text, "Texts": Texts, "Feedback": Feedback}


def corner(value, sizes: list[int]):
    """Return the first ``sizes`` elements of each dimension as R values: the part of a large tensor that is printed."""
    data = data_of(value)
    with autodiff.no_grad():
        return to_r(ops.get_item(data, tuple(slice(size) for size in sizes)))


def fields(value) -> list[str]:
    """Return the names offered after ``$``. None is evaluated, since a property may compute or warn."""
    return sorted({name for name in dir(value) if not name.startswith("_") and name.isidentifier()})


def is_method(value, name: str) -> bool:
    return callable(getattr(type(value), name, None))


def pack(value) -> dict:
    """Return a tensor or variable as a dict of bytes and strings.

    Raises:
        ArgumentTypeError: a traced tensor, which has no values, or an object that is not a tensor.
    """
    variable = isinstance(value, autodiff.Variable)
    data = value.data if variable else value
    about = {
        "kind": ("parameter" if isinstance(value, autodiff.Parameter) else "variable") if variable else "tensor",
        "requires_grad": bool(getattr(value, "requires_grad", False)),
        "role": value.role if variable else None,
    }
    if isinstance(data, (Text, Texts)):
        texts = [data] if isinstance(data, Text) else list(data)
        return {
            **about,
            "backend": "text",
            "text": type(data).__name__,
            "texts": [str(text) for text in texts],
            "roles": [list(text.roles) for text in texts],
        }
    owner = backends.backend_of(data)
    if owner is None:
        raise ArgumentTypeError("`x` must be a tensor; got {value}.", argument="x", value=TypeOf(value))
    try:
        array = np.asarray(ops.convert_to_numpy(data))
    except Exception as error:
        raise ArgumentTypeError("`x` is being traced: it has no values to keep.", argument="x") from error
    portable = array.dtype.newbyteorder("<")
    return {
        **about,
        "backend": owner.name,
        "dtype": owner.dtype_name(data),
        "shape": list(array.shape),
        "stored": portable.str,
        "bytes": bytearray(np.ascontiguousarray(array).astype(portable, copy=False).tobytes()),
    }


def unpack(about: dict, backend: str | None = None):
    """Restore a tensor or variable from :func:`pack`, on ``backend`` or by default on its own.

    Raises:
        BackendError: the backend is not installed, or lacks the dtype.
    """
    kind = {"parameter": autodiff.Parameter, "variable": autodiff.Variable}.get(about["kind"])
    wants, role = about["requires_grad"], about.get("role")
    if about["backend"] == "text":
        data = _unpacked_text(about)
        return data if kind is None else kind(data, wants, role if data.role != role else None)
    shape = [int(size) for size in _several(about["shape"])]
    array = np.frombuffer(bytes(about["bytes"]), dtype=about["stored"]).reshape(shape)
    name = backend or about["backend"]
    owner = backends.lookup(name)
    owner.prepare(config.floatx())
    data = owner.convert(array.astype(array.dtype.newbyteorder("="), copy=True), about["dtype"])
    if owner.dtype_name(data) != about["dtype"]:
        raise BackendError(f"The backend {name!r} cannot hold {about['dtype']} here.", argument="backend")
    if owner.derivatives.own_tape:
        return data.requires_grad_() if wants else data
    if kind is None:
        return autodiff.Variable(data, True, role) if wants else data
    return kind(data, wants, role)


def _unpacked_text(about: dict):
    said = about["text"] == "Feedback"
    pairs = zip(_several(about["texts"]), _several(about["roles"]))
    texts = [(Said if said else Text)(text, tuple(_several(roles))) for text, roles in pairs]
    return texts[0] if about["text"] == "Text" else _TEXTS[about["text"]](texts)


def _several(value) -> list:
    """Return a list again where R made a single value of a list of one element."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def graph(y, params) -> dict:
    """Return the boxes and arrows of a graph's picture as columns; boxes count from 1."""
    found = boxes(y, dict(params or {}))
    ways = arranged(found)
    number = {key: i for i, key in enumerate(found, 1)}
    columns = ("name", "about", "kind", "level", "x", "width")
    return {
        "boxes": {name: [getattr(box, name) for box in found.values()] for name in columns},
        "from": [number[key] for key, _ in ways],
        "to": [number[key] for _, key in ways],
        "ways": list(ways.values()),
    }


# Text variables, and the layer on them --------------------------------------------------------------------------------


def is_text(value) -> bool:
    """Return True if a value is a text variable."""
    return isinstance(value, Variable) and value.dtype is str


def set_value(x, value) -> None:
    """Replace the value of ``x`` without recording.

    Raises:
        ArgumentTypeError: ``x`` is not a variable, or is of another kind than ``value``.
    """
    if isinstance(x, Variable):
        owner = backends.backend_of(x.data)
        plain = owner is not None and not is_text(x) and isinstance(value, (bool, int, float, complex))
        x.data = owner.convert(value, owner.dtype_name(x.data)) if plain else value
        return
    owner = backends.backend_of(x)
    if owner is None or not owner.derivatives.own_tape:
        raise ArgumentTypeError("`x` must be a variable; got {x}.", argument="x", x=TypeOf(x))
    with no_grad():
        x.copy_(ops.broadcast_to(ops.cast(value, owner.dtype_name(x)), tuple(x.shape)))


def backward_each(threads: int, progress: bool, columns) -> None:
    """Run several backward passes in parallel, of losses or of texts with their feedback."""
    text.each(Variable.backward, *columns, threads=threads, progress=progress)


def named(function, name: str):
    """Set the name that messages use for a callback, and return the callback."""
    function.__name__ = name
    return function


def invoke_method(value, name: str, arguments):
    return getattr(value, name)(*arguments)


def model_field(model, name: str):
    """Return a field of a model: ``name``, ``spent`` or ``calls``.

    Raises:
        ArgumentError: the model has no such field.
    """
    if name not in ("name", "spent", "calls") or not hasattr(model, name):
        known = [n for n in ("name", "spent", "calls") if hasattr(model, n)]
        raise ArgumentError(f"a model has no field `{name}`; it has {', '.join(known)}.", argument="name")
    value = getattr(model, name)
    return [(plain_text(prompt), system) for prompt, system in value] if name == "calls" else value
