"""Reasons why calls of ops fail, in one wording where each library would have its own.

Nothing here runs in a call that succeeds: see ``_checks.explain``.
"""

from __future__ import annotations

import math

from ..backends.interface import divided_by_0
from ..dtypes import INTEGERS
from ..errors import ArgumentError, ArgumentTypeError, ShapeError
from ._checks import check_axes, check_rank, known, reasons
from .conversion import dtype, ndim, shape


def _empty(op, x, axis=None, initial=None, **_):
    """Raise for the maximum or minimum of an empty tensor."""
    sizes = shape(x)
    axes = check_axes(op, axis, len(sizes))
    if initial is None and any(sizes[a] == 0 for a in axes):
        raise ArgumentError(f"`{op}`: `x` must not be empty where it is reduced; got shape {sizes}.", argument="x")


for _name in ("max", "min", "amax", "amin", "ptp", "argmax", "argmin"):
    reasons[_name] = _empty


def _inner(op, x1, x2):
    """Raise for a product of tensors whose inner sizes differ."""
    first, second = shape(x1), shape(x2)
    if not first or not second:
        raise ShapeError(f"`{op}`: `x1` and `x2` must have at least 1 dimension; got {first} and {second}.")
    left, right = first[-1:], second[-2:-1] or second
    if left != right:
        raise ShapeError(
            f"`{op}`: the sizes that are summed over must be equal; got `x1` {first}, `x2` {second}.", argument="x2"
        )


reasons["matmul"] = reasons["dot"] = _inner


def _reshape(op, x, newshape):
    sizes = shape(x)
    wanted = (newshape,) if isinstance(newshape, int) else tuple(newshape)
    unknown = sum(size == -1 for size in wanted)
    known = math.prod(size for size in wanted if size != -1)
    if unknown > 1 or any(size < -1 for size in wanted):
        raise ArgumentError(f"`{op}`: `newshape` must have sizes of at least 0 and at most one -1; got {wanted}.")
    count = math.prod(sizes)
    if count != known if not unknown else (known == 0 or count % known):
        raise ShapeError(
            f"`{op}`: `x` of shape {sizes} has {count} elements, which do not fit the shape {wanted}.",
            argument="newshape",
        )


reasons["reshape"] = _reshape


def _has_dimensions(op, x, **_):
    check_rank(op, x, 1)


reasons["unstack"] = reasons["repeat"] = reasons["swapaxes"] = _has_dimensions


def _transpose(op, x, axes=None):
    rank = ndim(x)
    if axes is not None and len(check_axes(op, axes, rank, "axes")) != rank:
        raise ArgumentError(
            f"`{op}`: `axes` must name each of the {rank} dimensions once; got {tuple(axes)}.", argument="axes"
        )


reasons["transpose"] = _transpose


def _squeeze(op, x, axis=None):
    sizes = shape(x)
    if any(sizes[a] != 1 for a in check_axes(op, axis, len(sizes))):
        raise ShapeError(f"`{op}`: only dimensions of size 1 can be left out; got shape {sizes}.", argument="axis")


reasons["squeeze"] = _squeeze


def _broadcast_to(op, x, **wanted):
    ((name, sizes),) = wanted.items()
    have, sizes = shape(x), (sizes,) if isinstance(sizes, int) else tuple(sizes)
    tail = sizes[len(sizes) - len(have) :]
    if len(have) > len(sizes) or any(a not in (1, b) for a, b in zip(have, tail)):
        raise ShapeError(f"`{op}`: `x` of shape {have} does not broadcast to {sizes}.", argument=name)


reasons["broadcast_to"] = _broadcast_to


def _einsum(op, subscripts, operands, **_):
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(f"`{op}`: `subscripts` must be a string; got {subscripts!r}.", argument="subscripts")
    terms, arrow, out = subscripts.replace(" ", "").partition("->")
    labels = terms.split(",")
    if len(labels) != len(operands):
        raise ArgumentError(
            f"`{op}`: `subscripts` {subscripts!r} is for {len(labels)} operands; got {len(operands)}.",
            argument="subscripts",
        )
    if arrow and (len(set(out.replace("...", ""))) != len(out.replace("...", "")) or set(out) - set(terms) - {"."}):
        raise ArgumentError(
            f"`{op}`: the output of `subscripts` must name labels of the operands, each once; got {subscripts!r}.",
            argument="subscripts",
        )
    found: dict[str, int] = {}
    for number, (term, operand) in enumerate(zip(labels, operands), 1):
        sizes = shape(operand)
        before, dots, after = term.partition("...")
        if len(sizes) < len(before + after) or (not dots and len(sizes) != len(term)):
            raise ShapeError(f"`{op}`: operand {number} of {subscripts!r} has shape {sizes}.", argument="operands")
        named = [*zip(before, sizes), *zip(reversed(after), reversed(sizes))]
        for label, size in named:
            if found.setdefault(label, size) != size and 1 not in (found[label], size):
                raise ShapeError(
                    f"`{op}`: {label!r} in {subscripts!r} must have one size; got {found[label]} and {size}.",
                    argument="operands",
                )


reasons["einsum"] = _einsum


def _whole(x) -> bool:
    return dtype(x) in INTEGERS or dtype(x) == "bool"


def _no_quotient(op, x1, x2):
    """Raise for integers divided by 0."""
    divisors = known(x2)
    if _whole(x1) and _whole(x2) and divisors is not None and not divisors.all():
        raise divided_by_0(op)


reasons["floor_divide"] = reasons["mod"] = reasons["fmod"] = _no_quotient


def _no_power(op, x1, x2):
    """Raise for integers to a negative power."""
    exponents = known(x2)
    if _whole(x1) and _whole(x2) and exponents is not None and (exponents < 0).any():
        raise ArgumentError(
            f"`{op}`: `x2` must not be negative where both are whole numbers.",
            argument="x2",
            hint="make one of them floats",
        )


reasons["power"] = _no_power


def _no_difference(op, x1, x2):
    if dtype(x1) == dtype(x2) == "bool":
        raise ArgumentTypeError(
            f"`{op}`: `x1` and `x2` must not both be bools, which have no difference.",
            argument="x1",
            hint="cast one to whole numbers, or take `logical_xor`",
        )


reasons["subtract"] = _no_difference
