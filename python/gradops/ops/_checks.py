"""Errors of calls that cannot work: one style for every op and backend.

A kernel is called first, and its failure is explained afterwards, so that a valid call pays nothing for the checks.
Wrong arguments that a library would accept are checked before the call, by the op's ``check``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .. import _tree, backends, dtypes
from ..backends import tracing
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    Bounds,
    Element,
    Given,
    GradopsError,
    JitError,
    Position,
    ShapeError,
    meant,
    unknown_argument,
)
from .properties import dtype, ndim, shape, unknown

REQUIRES_GRAD = "requires_grad"
CREATING = frozenset(
    "arange array empty empty_like eye full full_like geomspace linspace logspace ones ones_like zeros "
    "zeros_like".split()
)
"""An argument of PyTorch's functions that create tensors, and the ops that create tensors."""


def other_name(op, given: dict) -> ArgumentTypeError:
    """Return the error for an argument that an op has under another name."""
    name = next(name for name, value in given.items() if value is not ...)
    made = f"make a variable of its result: `gradops.Variable(ops.{op.name}(...), requires_grad=True)`"
    return unknown_argument(op.name, name, op.parameters, made if name == REQUIRES_GRAD else None)


def explain(op, error: Exception, arguments: tuple) -> Exception:
    """Return the error to raise for a kernel's failure: gradops' own if a check finds the reason; it names the op."""
    if getattr(error, "gradops_callback", False):
        return error
    inner = isinstance(error, GradopsError) and error.argument is not None and error.argument not in op.parameters
    if inner and "Function" not in op.annotations.values():
        reason = _no_number(op, dict(zip(op.parameters, arguments)))
        if reason is not None:
            reason.__cause__ = error
            return reason
    if isinstance(error, GradopsError) and (op.body is None or f"`{op.name}`" in error.message):
        return error
    bound = dict(zip(op.parameters, arguments))
    try:
        diagnose(op, bound)
    except GradopsError as reason:
        reason.__cause__ = error
        return reason
    except Exception:
        pass
    if isinstance(error, JitError) or isinstance(error, _OF_UNKNOWN_SIZES) and not isinstance(error, GradopsError):
        reason = unknown_size(op, bound)
        if reason is not None:
            reason.__cause__ = error
            return reason
    if isinstance(error, GradopsError):
        return _rename_error(op, error)
    if isinstance(
        error,
        (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, NotImplementedError, MemoryError),
    ) or _is_framework_error(error):
        kind: type[GradopsError] = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
        kind = AxisError if isinstance(error, IndexError) else kind
        given = {name: bound[name] for name in op.tensors if bound.get(name) is not None}
        tensors = ", ".join(f"`{name}` {shape_text(x) or describe(x)}" for name, x in given.items())
        said, fields = _positions(_first_line(error))
        reason = kind(f"`{op.name}`: {said}" + (f" (with {tensors})" if tensors else ""), **fields)
        reason.__cause__ = error
        return reason
    return error


_OF_UNKNOWN_SIZES = (TypeError, ValueError, IndexError, AttributeError, NotImplementedError)
"""Texts of Python's, NumPy's and TensorFlow's errors about a size that is None or a tensor without a value yet."""


def _positions(said: str) -> tuple[str, dict]:
    """Return a library's message with the positions it mentions as fields, which R shows counted from 1."""
    fields: dict = {}

    def field(found: re.Match) -> str:
        fields[f"position_{len(fields)}"] = Position(int(found[2]))
        return f"{found[1]}{{position_{len(fields) - 1}}}"

    return re.sub(r"\b((?:axis|dimension|index) )(-?\d+)\b", field, said), fields


def unknown_size(op, bound: dict[str, Any]) -> ShapeError | None:
    """Return the error for an op that needs a size the graph does not know; None if all sizes are known."""
    if "Function" in op.annotations.values():
        return None
    for name, kind in op.annotations.items():
        if kind == "Shape" and (isinstance(bound[name], (list, tuple)) or hasattr(bound[name], "rank")):
            known = None if getattr(bound[name], "rank", 0) is None else tuple(bound[name])
            if known is not None and all(size is not None for size in known):  # `in` would compare arrays
                continue
            return ShapeError(
                f"`{op.name}`: `{name}` has a size that the graph does not know; got {known}.",
                argument=name,
                hint="`ops.shape(x)` has the sizes that a graph knows when it runs, where `x.shape` has None",
            )
    for name in op.tensors:
        value = bound[name]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            sizes = getattr(item, "shape", ())
            known = None if getattr(sizes, "rank", 0) is None else tuple(sizes)
            if known is None or None in known:
                return ShapeError(
                    f"`{op.name}`: the sizes of `{name}` must be known in a graph; got the shape {known}.",
                    argument=name,
                    hint="give them in the signature, as in `tf.TensorSpec([32, 3])`, or by `tf.ensure_shape()`",
                )
    return None


def _no_number(op, bound: dict[str, Any]) -> ArgumentTypeError | ShapeError | None:
    """Return the error for a text or a function in place of numbers, where an inner op used its own argument name."""
    for name, value in bound.items():
        if op.annotations[name] in _OF_NUMBERS:
            for leaf in _tree.flatten(value)[0]:
                if isinstance(leaf, str) or callable(leaf) and not is_numeric(leaf):
                    return not_a_tensor(op.name, name, leaf)
    return None


_OF_NUMBERS = ("Tensor", "Operand", "Tensors", "Structure", "float")


def _rename_error(op, error: GradopsError) -> GradopsError:
    """Return an error of an op that ``op`` is composed of as an error of ``op``."""
    inner, colon, rest = error.template.partition("`: ")
    if colon and inner.startswith("`") and " " not in inner and "Function" not in op.annotations.values():
        error.args = (f"`{op.name}`: " + str(error).partition("`: ")[2], *error.args[1:])
        error.template = f"`{op.name}`: {rest}"
    return error


def diagnose(op, bound: dict[str, Any]) -> None:
    """Raise an error about a wrong argument if the annotations show that it is wrong."""
    for name in op.tensors:
        value = bound[name]
        items = value if name in op.many and isinstance(value, (list, tuple)) else (value,)
        for item in items:
            if not (is_numeric(item) or (item is None and _may_be_none(op.signature.parameters[name]))):
                raise not_a_tensor(op.name, name, item)
    for name, value in bound.items():
        annotation = op.annotations[name]
        if annotation in ("Axis", "Axes") and value is not None and op.tensors:
            first = bound[op.tensors[0]]
            rank = max(map(ndim, first)) if op.tensors[0] in op.many else ndim(first)
            check_axes(op.name, value, rank, name)
        elif annotation == "DType" and value is not None:
            dtypes.canonical(value, name)
    operands = [bound[name] for name in op.weak if bound[name] is not None]
    for name in op.weak:
        _check_is_held(op.name, name, bound[name], [bound[other] for other in op.tensors if other not in op.many])
    if len(operands) > 1:
        broadcast_shapes(op.name, op.weak, *map(shape, operands))
    if op.name in reasons:
        reasons[op.name](op.name, **bound)


def _check_is_held(op: str, name: str, number, beside: list) -> None:
    """Raise if an integer argument does not fit the dtype of the tensor arguments.

    Raises:
        ArgumentError: the number, and what the dtype holds.
    """
    others = [dtype(x) for x in beside if not isinstance(x, (bool, int, float, complex, type(None)))]
    if not isinstance(number, int) or isinstance(number, bool) or not others:
        return
    held = functools.reduce(dtypes.promote, others)
    if held == "bool":
        held = "int64"
    if held in dtypes.INTEGERS:
        check_held(op, name, number, held, "cast the tensor to a dtype that holds it, or write it as a float")
    else:
        try:
            float(number)
        except OverflowError:
            raise ArgumentError(
                f"`{op}`: `{name}` must be a number that {held} holds; got one of {len(str(number))} digits.",
                argument=name,
            ) from None


@tracing.left_out
def check_held(op: str, name: str, value, target: str, hint: str | None = None) -> None:
    """Raise if Python numbers, or lists of them, do not fit an integer dtype.

    Raises:
        ArgumentError: the number, and what the dtype holds.
    """
    if target not in dtypes.INTEGERS:
        return
    low, high = np.iinfo(target).min, np.iinfo(target).max
    for number in _written(value):
        if not low - 1 < number < high + 1:
            raise ArgumentError(
                f"`{op}`: `{name}` must be from {low} to {high}, as it becomes {target}; got {{number}}.",
                argument=name,
                hint=hint or "take a dtype that holds it",
                number=Given(repr(number), number),
            )


def _written(value):
    """Return the Python real numbers in a value."""
    if isinstance(value, (int, float)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _written(item)


reasons: dict[str, Callable] = {}
"""By op name, a function ``reason(op, **arguments)`` that raises if it finds the op's own reason for a failure."""


def check_axis(op: str, axis, rank: int, name: str = "axis") -> int:
    """Return ``axis`` as a non-negative int.

    Raises:
        ArgumentTypeError: not a whole number.
        AxisError: out of range.
    """
    axis = operator.index(integer(op, axis, name))
    size = max(rank, 1)
    if not -size <= axis < size:
        raise AxisError(
            f"`{op}`: `{name}` must be {{bounds}} for a tensor of {rank} dimensions; got {{position}}.",
            argument=name,
            bounds=Bounds(size, -size),
            position=Position(axis),
        )
    return axis % rank if rank else 0


def check_axes(op: str, axes, rank: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes as a tuple of distinct non-negative ints; None gives all axes, and 0 gives () for a 0-d tensor."""
    if axes is None:
        return tuple(range(rank))
    found = tuple(check_axis(op, a, rank, name) for a in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    if len(set(found)) != len(found):
        raise AxisError(
            f"`{op}`: `{name}` must not name a dimension twice; got {{axes}}.", argument=name, axes=Element(found)
        )
    return found if rank else ()


def integer(op: str, value, name: str, least: int | None = None) -> int:
    """Return an integer as an int; a float with an integer value counts, as R's numbers are floats.

    Raises:
        ArgumentTypeError: the value is not an integer.
        ArgumentError: the value is below ``least``.
    """
    if type(value) is int and op in _OF_ANY_NUMBER:
        found = value
    else:
        try:
            found = operator.index(value)
        except TypeError:
            if not isinstance(value, float) or not value.is_integer():
                raise ArgumentTypeError(
                    f"`{op}`: `{name}` must be a whole number; got {{value}}.",
                    argument=name,
                    hint=None if shape_text(value) is None else _OF_SEVERAL.get(op),
                    value=describe(value),
                ) from None
            found = int(value)
    if least is not None and found < least:
        raise ArgumentError(
            f"`{op}`: `{name}` must be at least {least}; got {{value}}.", argument=name, value=Given(repr(value), value)
        )
    return found


def size_of(op: str, value, name: str):
    """Return a size: an integer of at least 0, or a size that the graph does not know."""
    return value if unknown(value) else integer(op, value, name, 0)


_OF_ANY_NUMBER = frozenset(
    "bincount broadcast_to empty extract_sequences eye full identity multi_hot one_hot ones pad repeat reshape roll "
    "scatter segment_max segment_min segment_prod segment_sum slice slice_update split tile top_k tri tril triu "
    "zeros".split()
)
"""Ops whose integer arguments need no known value in a trace, so that one program serves all sizes."""


def check_pieces(op: str, count: int, size: int, name: str) -> None:
    """Raise for so many pieces of ``size`` elements, most of them empty, that the list would fill the memory."""
    most = max(2**20, size)
    if count > most:
        raise ArgumentError(f"`{op}`: `{name}` must be at most {most:,}; got {count:.3g}.", argument=name)


@tracing.left_out
def known(x) -> np.ndarray | None:
    """Return the values of a tensor, variable, number or list as a NumPy array; None inside a trace."""
    if hasattr(x, "requires_grad") and hasattr(x, "_node"):
        x = x.data
    owner = backends.backend_of(x)
    try:
        values = np.asarray(x) if owner is None else owner.static_value(x)
        return values.astype("float32") if values is not None and values.dtype.kind == "V" else values  # bfloat16
    except Exception:
        return None


def check_positions(op: str, positions, size: int, name: str = "indices", low: int | None = None) -> None:
    """Raise if known positions are out of range in a dimension of ``size``.

    Raises:
        ArgumentTypeError: positions that are not whole numbers.
        AxisError: out of range.
    """
    values = known(positions)
    if not unknown(size) and size == 0 and not any(unknown(n) or n == 0 for n in shape(positions)):
        raise AxisError(f"`{op}`: `{name}` must be empty, as a dimension of 0 has no positions.", argument=name)
    if values is None or not values.size or unknown(size):
        return
    if values.dtype.kind not in "iub":
        raise ArgumentTypeError(
            f"`{op}`: `{name}` must be whole numbers; got {{positions}}.", argument=name, positions=describe(positions)
        )
    low = -size if low is None else low
    wrong = (values < low) | (values >= size)
    if wrong.any():
        first = int(values[wrong].flat[0])
        raise AxisError(
            f"`{op}`: `{name}` must be {{bounds}} for a dimension of {size}; got {{position}}.",
            argument=name,
            bounds=Bounds(size, low),
            position=Position(first),
        )


_OF_SEVERAL = {
    **dict.fromkeys(("concatenate", "stack"), "several tensors are one argument, a list"),
    **dict.fromkeys(("max", "amax"), "`ops.maximum()` compares two tensors"),
    **dict.fromkeys(("min", "amin"), "`ops.minimum()` compares two tensors"),
}
"""What was meant by a tensor in the place of an axis."""


def whole(op, value, name: str):
    """Return an ``Axis`` or ``Integer`` as an int; a traced size, without a value yet, is returned unchanged.

    Raises:
        ArgumentTypeError: anything else, bools too.
    """
    if isinstance(value, (bool, str, bytes, list, tuple, dict, complex, np.bool_)):
        raise ArgumentTypeError(
            f"`{op.name}`: `{name}` must be a whole number; got {{value}}.",
            argument=name,
            value=Given(repr(value), value),
        )
    return integer(op.name, value, name) if isinstance(value, (int, float, np.number)) else value


def _axis(op, value, name: str):
    found = whole(op, value, name)
    return operator.index(found) if type(found) is int else found


def _axes(op, axes, name: str):
    """Return ``Axes`` as an int or a tuple of ints."""
    if isinstance(axes, (list, tuple)):
        return tuple([a if a.__class__ is int else _axis(op, a, name) for a in axes])
    return _axis(op, axes, name)


def _sizes(op, shape, name: str):
    """Return a ``Shape`` as a tuple of ints, or a single size as an int; -1 and None are left to the op.

    Raises:
        ArgumentTypeError: sizes that are not whole numbers.
    """
    if isinstance(shape, (list, tuple)):
        return tuple([n if n.__class__ is int or n is None else whole(op, n, name) for n in shape])
    if shape is None or isinstance(shape, (str, bytes, dict, set)):
        raise ArgumentTypeError(
            f"`{op.name}`: `{name}` must be of whole numbers; got {{given}}.",
            argument=name,
            given=Given(repr(shape), shape),
        )
    return whole(op, shape, name)


def _integers(op, value, name: str):
    """Return ``Integers``: one as an int, several unchanged."""
    return value if isinstance(value, (list, tuple)) else whole(op, value, name)


NORMALISE: dict[str, Callable] = {
    "Axis": _axis,
    "Integer": whole,
    "Integers": _integers,
    "Axes": _axes,
    "Shape": _sizes,
}
"""By annotation, how a public op converts an argument before its kernel; ints and None need no conversion."""

QUICK = {"Shape": "{0}.__class__ is not tuple or any([size.__class__ is not int for size in {0}])"}
"""By annotation, the code of the test for whether conversion is needed; by default, neither an int nor None."""


def unknown_arguments(op: str, given: Iterable[str], known: Iterable[str]) -> ArgumentTypeError:
    """Return the error for keyword arguments that an op does not have."""
    names = list(given)
    return ArgumentTypeError(
        f"`{op}`: unknown arguments {', '.join(names)}.", argument=names[0], hint=meant(names[0], known)
    )


def choice(op: str, value, options, name: str):
    """Return ``value``, or raise if it is not one of ``options``."""
    if not any(value is option or (isinstance(value, (str, int, float)) and value == option) for option in options):
        wanted = ", ".join(map(repr, options))
        raise ArgumentError(
            f"`{op}`: `{name}` must be one of {wanted}; got {{value}}.",
            argument=name,
            hint=meant(value, options),
            value=Given(repr(value), value),
        )
    return value


def check_flags(op: str, **flags) -> None:
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentTypeError(
                f"`{op}`: `{name}` must be {{True}} or {{False}}; got {{value}}.", argument=name, value=describe(value)
            )


def check_kind(op: str, x, kinds, wanted: str, name: str = "x") -> None:
    """Raise unless the kind of ``x``'s dtype (``dtypes.kind``) is one of ``kinds``."""
    try:
        kind = dtypes.kind(dtype(x))
    except Exception as error:
        raise not_a_tensor(op, name, x) from error
    if kind not in kinds:
        raise ArgumentTypeError(f"`{op}`: `{name}` must be {wanted}; got {{x}}.", argument=name, x=describe(x))


def check_real(op, *arguments) -> None:
    """An op's ``check``: raise for complex tensors, as complex numbers have no order."""
    for name, position in zip(op.tensors, op.positions):
        x = arguments[position]
        if x is not None and not _is_real_array(x):
            check_kind(op.name, x, (0, 1, 2), "real", name)


@tracing.left_out
def _is_real_array(x) -> bool:
    return type(x) is np.ndarray and x.dtype.kind in _REAL


_REAL = frozenset("fiub")  # the kinds of NumPy's dtypes


def check_rank(op: str, x, ranks, name: str = "x") -> int:
    """Return the number of dimensions of ``x``, or raise if it is not in ``ranks`` (an int is a minimum)."""
    sizes = getattr(x, "shape", None)
    if sizes is None:
        if not is_numeric(x):
            raise not_a_tensor(op, name, x)
        try:
            sizes = shape(x)
        except ArgumentTypeError as error:
            raise not_a_tensor(op, name, x) from error
    rank = len(sizes)
    if rank < ranks if isinstance(ranks, int) else rank not in ranks:
        wanted = f"at least {ranks}" if isinstance(ranks, int) else " or ".join(map(str, ranks))
        raise ShapeError(f"`{op}`: `{name}` must have {wanted} dimensions; got {{x}}.", argument=name, x=describe(x))
    return rank


def broadcast_shapes(op: str, names, *shapes) -> tuple[int, ...]:
    """Return the shape that ``shapes`` broadcast to; a known size takes precedence over an unknown one."""
    rank = max([0, *map(len, shapes)])
    result = []
    for sizes in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes)):
        open_ = [size for size in sizes if unknown(size)]
        wide = {size for size in sizes if not unknown(size) and size != 1}
        if len(wide) > 1:
            listed = ", ".join(f"`{n}` {tuple(s)}" for n, s in zip(names, shapes))
            raise ShapeError(
                f"`{op}`: shapes must broadcast (each size equal, or 1); got {listed}.", argument=names[-1]
            )
        result.append(wide.pop() if wide else open_[0] if open_ else 1)
    return tuple(result)


def is_numeric(value) -> bool:
    """True for a tensor, a number, or nested lists of them that are not ragged."""
    if isinstance(value, type) or has_own_arithmetic(value):  # NumPy's types have the instances' attributes
        return False
    if (
        isinstance(value, (bool, int, float, complex))
        or backends.backend_of(value) is not None
        or hasattr(value, "__array__")
    ):
        return getattr(getattr(value, "dtype", None), "kind", "f") not in "OSUVmM"
    if isinstance(value, (list, tuple)):
        return all(map(is_numeric, value))
    return hasattr(value, "data") and hasattr(value, "requires_grad")


def _may_be_none(parameter: inspect.Parameter) -> bool:
    return parameter.default is None or str(parameter.annotation).endswith("| None")


def not_a_tensor(op: str, name: str, value) -> ArgumentTypeError | ShapeError:
    """Return the error for an argument that does not convert to a tensor."""
    if isinstance(value, (list, tuple)) and is_numeric(value):
        return ragged(op, name)
    return ArgumentTypeError(
        f"`{op}`: `{name}` must be a number, a list of numbers, an array or a tensor; got {{value}}.",
        argument=name,
        hint=plain_hint(value),
        value=describe(value),
    )


def plain_hint(value) -> str | None:
    """Return the hint for an array of a class with its own arithmetic."""
    if isinstance(value, np.ma.MaskedArray):
        return "masked elements have no value: give them one, `x.filled(value)`, or take `ops.where()` with `x.mask`"
    if isinstance(value, (Fraction, Decimal)):
        return "`float(x)` is a number here"
    if has_own_arithmetic(value) or combines_arrays(type(value)):
        return f"{type(value).__name__} has its own arithmetic: pass the numbers, `np.asarray(x)`"
    return None


def has_own_arithmetic(value) -> bool:
    """True for an array of a NumPy subclass that no backend owns."""
    return isinstance(value, np.ndarray) and backends.backend_of(backends.held(value)) is None


followed: list[Callable[[type], bool]] = []
"""Tests for classes whose arithmetic gradops reproduces; each is added by the module for the class's library."""


@tracing.read_as(lambda kind: False)
def combines_arrays(kind: type) -> bool:
    """True for a non-array class that overrides NumPy's ufuncs, as it has labels or units; gradops defers to it too."""
    return _combines_arrays(kind)


@functools.cache
def _combines_arrays(kind: type) -> bool:
    own = getattr(kind, "__array_ufunc__", None) is not None and not issubclass(kind, (np.ndarray, np.generic))
    return own and backends.may_hold(kind) and not any(test(kind) for test in followed)


def ragged(op: str, name: str) -> ShapeError:
    """Return the error for a list whose elements differ in shape."""
    return ShapeError(f"`{op}`: `{name}` must be a rectangular list; got elements that differ in shape.", argument=name)


def shape_text(value) -> Given | None:
    """Return the shape and dtype of a tensor, to follow its name in a message; None for any other value."""
    shape = getattr(value, "shape", None)
    if shape is not None and not callable(shape):
        with contextlib.suppress(Exception):
            return Given(f"of shape {tuple(shape)} and dtype {dtype(value)}")
    return None


def describe(value) -> Given:
    """Return a short description of a value."""
    if has_own_arithmetic(value) or combines_arrays(type(value)):
        return Given(f"a {type(value).__name__}")
    known = shape_text(value)
    if known is not None:
        return Given("a tensor " + known.text)
    if isinstance(value, (list, tuple)):
        return Given(f"a {type(value).__name__} of {len(value)}")
    text = repr(value)
    if "\n" in text:
        return Given(f"a {type(value).__name__}")
    return Given(f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}", value)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _is_framework_error(error: Exception) -> bool:
    package = type(error).__module__.partition(".")[0]
    if type(error).__name__.startswith("_"):  # torch's checkpoint raises this to stop a recomputation
        return False
    return package in ("tensorflow", "jax", "jaxlib", "torch", "numpy") or type(error) is RuntimeError
