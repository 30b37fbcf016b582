"""Structures of tensors in ops that call functions: flattening, conversion, and checks that a loop keeps them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .. import _tree, backends, config
from ..backends import tracing
from ..backends.interface import looked
from ..dtypes import promote_number
from ..errors import ArgumentError, ArgumentTypeError, JitError, ShapeError
from . import _checks
from .conversion import dtype, shape
from .properties import fits, known_sizes
from .shaping import reshape

NUMBERS = (bool, int, float, complex)

recorder: ContextVar[Any] = ContextVar("gradops_recorder", default=None)
"""The recorder of control flow while a function is traced on NumPy; None while Python runs it."""


class Recorded(Exception):
    """Raised when a function returns a variable inside a library's trace: Python must run the loop for the tape."""


def is_variable(value) -> bool:
    return backends.backend_of(value) is None and hasattr(value, "requires_grad") and hasattr(value, "_node")


def any_variable(values) -> bool:
    return any(is_variable(x) for x in values)


def owner_of(op: str, *leaves) -> backends.Backend:
    """Return the backend of the tensors and variables among ``leaves``; the default backend without any."""
    kinds = [type(x.data if is_variable(x) else x) for x in leaves]
    return backends.common(kinds, op) or config.default_backend()


def as_tensor(op: str, value, owner: backends.Backend, name: str, like=None):
    if is_variable(value) or owner.is_tensor_type(type(value)):
        return value
    found = backends.backend_of(value)
    if found is not None and (owner.yields or found.wraps):  # a result may be a tensor of another library
        return value
    try:
        return owner.convert(value, like=like)
    except Exception as error:
        raise _checks.not_a_tensor(op, name, value) from error


def rows_of(op: str, value, name: str) -> tuple[list, _tree.Structure, int | None, backends.Backend]:
    """Return the leaves that a loop iterates over by the first dimension, as tensors, and that size if known.

    A nested list of numbers is one tensor.
    """
    leaves, structure = _tree.flatten(value)
    if leaves and all(type(x) in NUMBERS for x in leaves):
        leaves, structure = [value], _tree.LEAF
    owner = owner_of(op, *leaves)
    leaves = [as_tensor(op, x, owner, name) for x in leaves]
    shapes = [shape(x) for x in leaves]
    sizes = known_sizes(sizes[0] for sizes in shapes if sizes)
    if () in shapes or len(sizes) > 1:
        raise ShapeError(
            f"`{op}`: the tensors in `{name}` must have a first dimension of one size; got shapes "
            f"{', '.join(map(str, shapes))}.",
            argument=name,
        )
    return leaves, structure, sizes.pop() if sizes else None, owner


class State:
    """A loop's state: its structure, and the shape and dtype that each of its tensors must keep."""

    def __init__(self, op: str, value, owner: backends.Backend, name: str):
        leaves, self.structure = _tree.flatten(value)
        self.op, self.owner, self.name = op, owner, name
        self.leaves = [as_tensor(op, x, owner, name) for x in leaves]
        self.kinds = [(shape(x), dtype(x)) for x in self.leaves]

    def pack(self, leaves):
        return _tree.unflatten(self.structure, leaves)

    def unpack(self, value) -> list:
        """Return the leaves of the next state.

        Raises:
            ArgumentError: the structure or a dtype differs.
            ShapeError: a shape differs.
        """
        leaves, structure = _tree.flatten(value)
        if structure != self.structure and not self._same_sequence(structure):
            raise ArgumentError(
                f"`{self.op}`: the function must return what `{self.name}` is, a structure {self.structure}; got "
                f"{structure}.",
                argument=self.name,
            )
        return [self._next(i, x) for i, x in enumerate(leaves)]

    def _same_sequence(self, other) -> bool:
        """True if two sequences match at the top level, where a list may replace a tuple and vice versa."""
        return (
            self.structure.kind == other.kind == "sequence"
            and {self.structure.type, other.type} == {list, tuple}
            and self.structure.parts == other.parts
        )

    def _next(self, i: int, x):
        wanted_shape, wanted_dtype = self.kinds[i]
        kind: Any = type(x)
        if kind in NUMBERS and promote_number(wanted_dtype, kind, config.floatx()) == wanted_dtype:
            x = self.owner.convert(x, wanted_dtype)
        x = as_tensor(self.op, x, self.owner, self.name)
        if not fits(shape(x), wanted_shape) or dtype(x) != wanted_dtype:
            error = ShapeError if not fits(shape(x), wanted_shape) else ArgumentError
            raise error(
                f"`{self.op}`: the state must keep its shapes and dtypes; a tensor of shape {wanted_shape} and dtype "
                f"{wanted_dtype} became one of shape {shape(x)} and dtype {dtype(x)}.",
                argument=self.name,
                hint="start from a tensor of the shape and dtype that the function gives",
            )
        return x


@tracing.read_as(lambda *_: NotImplemented)
def recorded(name: str, *arguments):
    """Return the result of recording a call while a function is compiled for NumPy; else NotImplemented."""
    writing = recorder.get()
    return NotImplemented if writing is None else getattr(writing, name)(*arguments)


def native(owner: backends.Backend, name: str, leaves, *arguments):
    """Return the result of the library's own primitive; NotImplemented if Python should run instead."""
    kernel = owner.kernel(name)
    if kernel is None or any_variable(leaves):
        return NotImplemented
    try:
        return kernel(*arguments)
    except Recorded:
        return NotImplemented
    except Exception as error:
        if _looked_at_values(owner, error):
            return NotImplemented
        raise


def _looked_at_values(owner: backends.Backend, error: BaseException | None) -> bool:
    """True for an error of a library or of gradops about the unknown value of a traced tensor; Python may know it."""
    kinds = (*owner.no_value, JitError)
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__
    return False


def value_of(x, kind: type) -> Any:
    """Return a 0-d tensor's value as ``bool`` or ``int``; None if it is not known, inside a trace."""
    data = x.data if is_variable(x) else x
    if data is not x and (value := looked(data, kind)) is not NotImplemented:
        return value
    owner = backends.backend_of(data)
    if owner is None or owner.kernel("concrete") is None:
        return kind(data)
    return owner.kernel("concrete")(data, kind)


def traceable(function: Callable) -> Callable:
    """Wrap ``function`` for a library's primitive; if it returns variables, :class:`Recorded` is raised."""

    def traced(*arguments):
        leaves = function(*arguments)
        if any_variable(leaves):
            raise Recorded
        return leaves

    return traced


def check_functions(op: str, takes: int | None = None, **functions) -> None:
    """Raise unless each argument is a function, which can be called with ``takes`` arguments if that is given."""
    for name, function in functions.items():
        if not callable(function):
            raise ArgumentTypeError(
                f"`{op}`: `{name}` must be a function; got {{function}}.",
                argument=name,
                function=_checks.describe(function),
            )
        if takes is not None and not _can_take(function, takes):
            counted = "one argument" if takes == 1 else f"{takes} arguments"
            raise ArgumentTypeError(f"`{op}`: `{name}` must be a function of {counted}.", argument=name)


@tracing.read_as(lambda *_: True)
def _can_take(function: Callable, count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except ValueError:  # the function does not declare its arguments
        return True
    except TypeError:
        return False
    return True


def scalar(op: str, x, name: str):
    if shape(x) not in ((), (1,)):
        raise ShapeError(f"`{op}`: `{name}` must be a single value; got shape {shape(x)}.", argument=name)
    if shape(x) == (1,):
        return reshape(x, ())
    return x
