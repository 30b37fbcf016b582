"""The table from NumPy's functions to rows, which have NumPy's signatures and are written with ops."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from ... import ops
from ..._names import ARGUMENTS
from ..._tree import map_items
from ...errors import ArgumentTypeError, TypeOf

ROWS: dict[Any, Row] = {}

LISTS = frozenset(("arrays", "tup", "condlist", "choicelist", "choices"))
"""NumPy's parameters that are lists of arrays; for any other parameter a list is one array."""


class Row:
    """A NumPy function on gradops' arrays.

    Args:
        path: the function's name below ``numpy``.
        call: its implementation, without ``out``, which the row handles.
        names: NumPy's names of the first parameters of ``call``, if they differ.
        idle: NumPy's parameters that change no value. Any other raises an error unless it has its default.
        op: the op that ``call`` is equal to for one argument, ``axis`` and ``keepdims``.
    """

    leading = 0
    """The number of leading arguments that are passed to ``call`` unchanged; set by the first call."""

    def __init__(
        self, path: str, function: Callable, call: Callable, names: str | None, idle: str, op: Callable | None
    ):
        self.path = path
        self.function = function
        self.call = call
        self.names = names
        self.idle = frozenset(idle.split())
        self.op = op or call
        self.keywords_of_op = frozenset(("axis", "keepdims") if op else ())

    @cached_property
    def own(self) -> dict[str, str]:
        """The parameters of ``call`` by NumPy's names."""
        parameters = list(inspect.signature(self.call).parameters)
        return dict(zip(parameters if self.names is None else self.names.split(), parameters))

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """NumPy's parameters and their defaults."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):  # C functions, in earlier versions of NumPy
            parameters = inspect.signature(self.call).parameters.values()
        return {p.name: p.default for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}

    @cached_property
    def takes_any(self) -> tuple[bool, bool]:
        """True for a function of any positional and keyword arguments."""
        kinds = {p.kind for p in inspect.signature(self.call).parameters.values()}
        return inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds

    @property
    def refused(self) -> list[str]:
        """NumPy's parameters that raise an error unless they have their defaults."""
        known = {*self.own, *self.idle, "out"}
        return [] if any(self.takes_any) else [name for name in self.defaults if name not in known]

    def _count(self) -> int:
        if self.takes_any[0]:
            return 0
        count = 0
        for (name, default), own in zip(self.defaults.items(), self.own):
            if name != own or default is np._NoValue:
                break
            count += 1
        return count

    def __call__(self, ours, arguments: tuple, keywords: dict) -> Any:
        """Call with NumPy's arguments; the class of the array ``ours`` gives the error to raise."""
        if len(arguments) == 1 and keywords.keys() <= self.keywords_of_op:
            if keywords.get("keepdims") is not np._NoValue:
                return self.op(*arguments, **keywords)
        elif not keywords and len(arguments) <= self.leading:
            return self.call(*arguments)
        if not self.leading:
            self.leading = self._count()
        own, out = self.own, None
        given = keywords if self.takes_any[0] else {**dict(zip(self.defaults, arguments)), **keywords}
        found = {}
        for name, value in given.items():
            if value is np._NoValue or name in self.idle:
                continue
            if name == "out":
                out = value
            elif name in own or self.takes_any[1]:
                found[own.get(name, name)] = value
            elif name not in self.defaults:
                hint = f"write `{ARGUMENTS[name]}=`" if name in ARGUMENTS else None
                raise ArgumentTypeError(f"`numpy.{self.path}` has no argument `{name}`.", argument=name, hint=hint)
            elif not _same(value, self.defaults[name]):
                raise unsupported(ours, f"numpy.{self.path}", [name])
        result = self.call(*arguments, **found) if self.takes_any[0] else self.call(**found)
        return result if out is None else write_out(out, result)

    def method(self) -> Callable:
        """Return the function as a method, like that of NumPy's arrays."""
        op, keywords_of_op = self.op, self.keywords_of_op

        def method(self, *arguments, **keywords):
            if not arguments and keywords.keys() <= keywords_of_op:
                return op(self, **keywords)
            return row(self, (self, *arguments), keywords)

        row = self
        method.__name__ = method.__qualname__ = self.path
        method.__doc__ = f"As :func:`numpy.{self.path}`."
        return method


def _same(value, default) -> bool:
    """True if an argument equals the function's default."""
    if type(default) not in (str, bool, int, float):
        return value is default
    return isinstance(value, (str, bool, int, float)) and value == default


def row(
    paths: str, call: Callable | None = None, names: str | None = None, idle: str = "", op: Callable | None = None
) -> Any:
    """Add NumPy functions to the table, if this version of NumPy has them."""

    def enter(call: Callable) -> Callable:
        for path in paths.split():
            try:
                function = attrgetter(path)(np)
            except AttributeError:
                continue
            ROWS.setdefault(function, Row(path, function, call, names, idle, op))
        return call

    return enter if call is None else enter(call)


def is_ours(value) -> bool:
    return hasattr(type(value), "_constant")


def constant(value, losing: str | None = None) -> Any:
    """Return a value, or a list or tuple of values, with arrays of gradops and of libraries replaced by NumPy's."""

    def known(x):
        if is_ours(x):
            return x._constant(losing)
        return x if isinstance(x, (np.ndarray, np.generic)) or not ops.is_tensor(x) else ops.convert_to_numpy(x)

    return map_items(known, value)


def described(value) -> Any:
    """Return an array of the same shape and dtype."""
    return value._described() if is_ours(value) else value


def shape_of(value) -> tuple:
    return np.shape(described(value))


def write_out(targets, result) -> Any:
    """Write a result to the array ``out``, recorded; raise if that would lose a gradient."""
    if isinstance(targets, tuple) and isinstance(result, tuple):
        return tuple(result_i if t is None else write_out(t, result_i) for t, result_i in zip(targets, result))
    target = targets[0] if isinstance(targets, tuple) else targets
    if not np.can_cast(np.dtype(ops.dtype(result)), np.dtype(ops.dtype(target)), "same_kind"):
        raise ArgumentTypeError(
            f"`out` must take the result's dtype, {ops.dtype(result)}; got an array of dtype {ops.dtype(target)}.",
            argument="out",
        )
    write(target, result, "out=")
    return target


def write(target, result, name: str) -> None:
    """Write to an array of gradops or of NumPy."""
    if is_ours(target):
        target._write(result)
    elif isinstance(target, np.ndarray):
        target[...] = constant(result, name)
    else:
        raise ArgumentTypeError(f"`{name}` must write to an array; got {{got}}.", got=TypeOf(target))


def moved(function: Callable, *arrays) -> Any:
    """Return the elements of arrays moved as a NumPy function moves them, found by applying it to positions."""
    shapes = [shape_of(x) for x in arrays]
    ends = np.cumsum([int(np.prod(s)) for s in shapes], dtype=np.int64)
    places = [np.arange(e - int(np.prod(s)), e).reshape(s) for s, e in zip(shapes, ends)]
    parts = [ops.reshape(x, (-1,)) for x in arrays]
    flat = parts[0] if len(parts) == 1 else ops.concatenate(parts)
    return map_items(lambda at: ops.take(flat, at.astype(np.int64), 0), function(*places))


def full_name(function) -> str:
    """Return a function's name as users write it."""
    module = function.__module__
    module = "numpy" if module.startswith("numpy.lib") or "._" in module else module
    return f"{module}.{function.__name__}"


def unsupported(ours, name: str, keywords=()) -> Exception:
    given = f" with {', '.join(f'`{k}`' for k in keywords)}" if keywords else ""
    return getattr(ours, "_unrecorded", ArgumentTypeError)(
        f"{name}{given} is not recorded.",
        hint="use the ops of `gradops.ops`, or `variable.detach().numpy()` for values without gradient",
    )
