"""Results of user-written gradient functions, and checks of the tensors that these functions read.

:func:`leaf_gradients` matches what a gradient function returned with the leaves of its arguments, and :func:`fit`
converts each gradient to the argument's library, shape and dtype. :func:`read_by` and :func:`check_unwritten` raise an
error if a tensor that a gradient function reads was written in place before the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import CellType

import numpy as np

from .. import _tree, backends
from ..autodiff.cotangents import given_for, given_in
from ..autodiff.state import special, version
from ..autodiff.variable import Variable, data_of
from ..backends import tracing
from ..errors import ArgumentTypeError, GradientError, TypeOf, meant
from ..ops import conversion
from ..ops.creation import full


def is_tensor(value) -> bool:
    return backends.owner(type(value)) is not None or isinstance(value, Variable)


def leaf_gradients(result, args: tuple, kwargs: dict, names: list[str], own_order: bool = False) -> list:
    """The gradients that a gradient function returned, in the order of the arguments' leaves; None for no gradient.

    Args:
        names: the names of the positional parameters.
        own_order: True if a flat list follows the order of dicts' keys, not sorted keys.

    Raises:
        GradientError: nothing was returned, or a wrong number of gradients, or one for an unknown name.
    """
    if isinstance(result, dict):
        parts = _named_gradients(result, args, kwargs, names)
    else:
        parts = _ordered_gradients(result, args, kwargs, names, own_order)
    found: list = []
    for value, part in zip((*args, *kwargs.values()), parts):
        _align(value, part, found)
    return found


def _named_gradients(result: dict, args: tuple, kwargs: dict, names: list[str]) -> list:
    """A gradient for each argument, from a dict by argument name, or from the gradient of the only dict argument."""
    values = [*args, *kwargs.values()]
    dicts = [i for i, value in enumerate(values) if isinstance(value, dict)]
    if len(dicts) == 1:
        keys = set(values[dicts[0]])
        if set(result) == keys or len(values) == 1 and set(result) <= keys:
            return [result if i == dicts[0] else None for i in range(len(values))]
    known = [*names[: len(args)], *kwargs]
    unknown = [k for k in result if k not in known]
    if unknown:
        raise GradientError(
            f"the gradient function returned a gradient named {unknown[0]!r}; the arguments are "
            f"{', '.join(known) or 'not named'}.",
            argument="gradient",
            hint=meant(unknown[0], known),
        )
    given = [result.get(name) for name in names[: len(args)]]
    return [*given, *[None] * (len(args) - len(given)), *map(result.get, kwargs)]


def _ordered_gradients(result, args: tuple, kwargs: dict, names: list[str], own_order: bool) -> list:
    """A gradient for each argument, from a list in the order of arguments or of tensors, or a single gradient."""
    values = [*args, *kwargs.values()]
    total, count = len(args), len(values)
    if result is None:
        raise GradientError(
            "the gradient function returned nothing.",
            argument="gradient",
            hint="return the gradient; where an argument has none, a list of them with {None} for it",
        )
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    if total == 1 and isinstance(args[0], (tuple, list)) and isinstance(result, (tuple, list)):
        parts = [result] if len(result) == len(args[0]) else parts
    if len(parts) == count or len(parts) == total:
        parts = parts + [None] * (count - len(parts))
        if all(map(_may_be, parts, values)):
            return parts
    if not kwargs and len(parts) == len(names) > total:
        return parts[:total]  # the call left the others to their defaults
    differentiable = [i for i, value in enumerate(values) if _has_tensor(value)]
    if len(parts) == len(differentiable) < count:
        spread = dict(zip(differentiable, parts))
        return [spread.get(i) for i in range(count)]
    leaves, form = _tree.flatten(values)
    order = list(_tree.own_order(form)) if own_order else range(len(leaves))
    for places in (order, [i for i in order if is_tensor(leaves[i])]):
        if len(parts) == len(places) and not any(isinstance(part, (tuple, list, dict)) for part in parts):
            spread = dict(zip(places, parts))
            return _tree.unflatten(form, [spread.get(i) for i in range(len(leaves))])
    if len(parts) == count:
        return parts
    raise GradientError(
        f"the gradient function must return {total} gradient{'s' if total != 1 else ''}, one for each argument; "
        f"got {len(parts)}.",
        argument="gradient",
        hint="return {None} for an argument without gradient",
    )


def _may_be(part, value) -> bool:
    """True if a gradient can belong to an argument: a dict's gradient is a dict."""
    return not isinstance(value, dict) or part is None or isinstance(part, dict)


def _has_tensor(value) -> bool:
    return any(map(is_tensor, _tree.flatten(value)[0]))


def _align(value, part, found: list) -> None:
    """Append to ``found`` the gradient's part for each leaf of ``value``."""
    if value is None:
        return
    if isinstance(value, dict):
        if part is not None and not (isinstance(part, dict) and part.keys() <= value.keys()):
            came = f"one of {', '.join(map(repr, part))}" if isinstance(part, dict) else f"a {type(part).__name__}"
            raise GradientError(
                f"the gradient of an argument that is a dict of {', '.join(map(repr, value))} must be a dict of some "
                f"of these; got {came}.",
                argument="gradient",
            )
        for key in _tree.sorted_keys(value):
            _align(value[key], None if part is None else part.get(key), found)
    elif isinstance(value, (tuple, list)):
        items = [None] * len(value) if part is None else _pieces(part)
        if items is None or len(items) != len(value):
            came = "a {part} without parts" if items is None else str(len(items))
            raise GradientError(
                f"the gradient of an argument of {len(value)} parts must have as many; got {came}.",
                argument="gradient",
                part=TypeOf(part),
            )
        for item, piece in zip(value, items):
            _align(item, piece, found)
    else:
        found.append(None if _is_void(part) else part)


def _is_void(part) -> bool:
    """True for an array whose elements have no data, which is JAX's gradient for integer arguments."""
    dtype = getattr(part, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "V" and not dtype.itemsize


def _pieces(part) -> list | None:
    """The parts of a list's gradient: a list, or a tensor's slices along its first dimension.

    None for a single number.
    """
    if isinstance(part, (list, tuple)):
        return list(part)
    if is_tensor(part) and conversion.ndim(part) and conversion.shape(part)[0] is not None:
        return [part[i] for i in range(conversion.shape(part)[0])]
    return None


def fit(g, x):
    """A returned gradient as a tensor of ``x``'s backend, shape and dtype; None stays None."""
    kind = g.__class__
    of_kind = kind is x.__class__ or isinstance(x, kind) and backends.owner(kind) is not None  # e.g. Parameter
    if g is None or of_kind and g.shape == x.shape and g.dtype == x.dtype is not str:
        return g
    data = data_of(x)
    if data.dtype is str:
        return special[str].convert(g, x.role)
    dtype = conversion.dtype(data)
    if isinstance(g, (bool, int, float, complex)) and not isinstance(g, np.generic):  # NumPy scalars have a shape
        return full(tuple(data.shape), _like(float(g) if not isinstance(g, complex) else g, data), dtype)
    if not is_tensor(g) or _is_foreign(backends.backend_of(g), backends.backend_of(data)):
        g = _like(g, data)
    g = given_for(g, tuple(data.shape), "the gradient function", argument="gradient")
    return given_in(g, dtype, "the gradient function")


def _is_foreign(owner, wanted) -> bool:
    """True for a tensor of another library, but not for a traced array used with a NumPy constant."""
    return owner is not None and owner is not wanted and (owner.derivatives.native or not wanted.yields)


def _like(value, data):
    owner = backends.backend_of(data)
    try:
        return owner.convert(value, like=data)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            "the gradient function must return tensors, numbers or {None}; got {value}.",
            argument="gradient",
            value=TypeOf(value),
        ) from error


@tracing.read_as(lambda *_: ())
def read_by(gradient: Callable, inputs=()) -> list[tuple]:
    """The tensors whose values a gradient function reads: its inputs, and the tensors it closes over.

    Each comes with a function that detects writes in place, its present result, and the memory that the result
    describes.
    """
    read: list[tuple] = []
    # A gradient function reads its closure when the backward pass runs. If a tensor in it was written in place before,
    # the rule would silently use the new values, whereas the tape's own nodes compare versions. Reads of globals, or
    # through objects in a closure, are not detected.
    cells = getattr(gradient, "__closure__", None) or ()
    for x in (*cells, *inputs) if inputs else cells:
        try:
            x = x.cell_contents if type(x) is CellType else x
            state = _states[type(x)]
        except ValueError:  # a variable that is not bound yet
            continue
        except KeyError:
            state = _states[type(x)] = _state_of(type(x))
        if state is _torch_version:
            try:
                read.append((x, state, x._version, None))
            except RuntimeError:  # inference tensors have no version
                pass
        elif state is not None and x.dtype is not str:
            read.append((x, state, state(x), x.data if isinstance(x, Variable) else None))
    return read


def _state_of(kind: type) -> Callable | None:
    """A function that detects writes in place to tensors of a type; None for immutable tensors and other values."""
    if issubclass(kind, (np.ndarray, Variable)):
        return _written
    return _torch_version if backends.owner(kind) is not None and hasattr(kind, "_version") else None


_states: dict[type, Callable | None] = {}
_torch_version = attrgetter("_version")


def _written(x) -> tuple[int, int]:
    """A state that each write in place changes: the identity of a tensor's memory, and its number of writes."""
    data = data_of(x)
    return id(data), version(data)


def check_unwritten(read) -> None:
    """Raise if one of the tensors of :func:`read_by` was written since then."""
    for x, state, before, _ in read:
        if state(x) != before:
            raise GradientError(
                f"a gradient function reads a tensor of shape {conversion.shape(x)} that was written in place after "
                "the operation: the gradient would be computed from other values.",
                argument="f",
                hint="write to a `clone()`, or have the gradient function close over one",
            )
