"""Lowering rules of elementwise ops, and of ops that move elements.

A rule takes a :class:`.Lowering`, the step and the step's arguments, emits instructions, and returns the cells of the
result, or a list of them if the step has several results. It raises :class:`.NotNative` in cases that it does not
support, and the step stays a NumPy call. :class:`.Lowering` calls the rules, through :mod:`.registry`. Ops whose kernel
is a single instruction need no rule here.
"""

from __future__ import annotations

import numpy as np

from .code import BOOL, FLOATS
from .instructions import WHOLES
from .lowering import Lowering
from .registry import refuse_unless, rule


@rule("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def _bitwise(lowering: Lowering, step, *operands):
    name = step.name.replace("bitwise", "logical") if lowering.value(step).dtype == BOOL else step.name
    return lowering.elementwise(name, operands, step)


@rule("left_shift", "right_shift")
def _shift(lowering: Lowering, step, *operands):
    refuse_unless(lowering.value(step).dtype in WHOLES, "not integers")
    return lowering.elementwise(step.name, operands, step)


# Elementwise ops that are several instructions, or another op's instruction.


@rule("square")
def _square(lowering: Lowering, step, x):
    return lowering.elementwise("multiply", (x, x), step)


@rule("reciprocal")
def _reciprocal(lowering: Lowering, step, x):
    return lowering.elementwise("divide", (1.0, x), step)


@rule("relu")
def _relu(lowering: Lowering, step, x):
    return lowering.elementwise("maximum", (x, 0), step)


@rule("signbit")
def _signbit(lowering: Lowering, step, x):
    if lowering.example(x).dtype in WHOLES:
        return lowering.elementwise("less", (x, 0), step)
    return lowering.elementwise("signbit", (x,), step)


@rule("nextafter")
def _nextafter(lowering: Lowering, step, x1, x2):
    refuse_unless(lowering.value(step).dtype == FLOATS[0], "dtype float32")
    return lowering.elementwise("nextafter", (x1, x2), step)


@rule("imag")
def _imag(lowering: Lowering, step, x):
    return np.full(lowering.shape(x), lowering.code.constant(0.0))  # 0.0 and integer 0 have the same bits


@rule("angle")
def _angle(lowering: Lowering, step, x):
    return lowering.elementwise("arctan2", (0.0, x), step)


@rule("view")
def _view(lowering: Lowering, step, x, dtype):
    """Reinterpret 8-byte elements, which is what all cells hold."""
    kinds = {np.dtype(x.dtype) for x in (lowering.example(x), lowering.value(step))}
    refuse_unless(kinds <= {FLOATS[0], WHOLES[0]}, "numbers of other sizes")
    return lowering.array(x)


@rule("softplus", calls=True)
def _softplus(lowering: Lowering, step, x):
    return lowering.elementwise("logaddexp", (x, 0.0), step)


@rule("power")
def _power(lowering: Lowering, step, x, exponent):
    if lowering.is_constant(exponent) and not lowering.shape(exponent):
        known = lowering.example(exponent)
        if known == 2:
            return lowering.elementwise("multiply", (x, x), step)
        if known == 1:
            return lowering.cast(x, lowering.value(step).dtype)
        if known == 0.5:  # as NumPy does; C's pow() maps -inf to inf, the root is NaN
            return lowering.elementwise("sqrt", (x,), step)
    return lowering.elementwise("power", (x, exponent), step)


@rule("lgamma", calls=True)
def _lgamma(lowering: Lowering, step, x):
    cells, infinity = lowering.cells(x, lowering.value(step).dtype), lowering.code.constant(np.inf)
    at_infinity = lowering.operation("equal", [cells, lowering.code.constant(-np.inf)], step)
    return lowering.operation("where", [at_infinity, infinity, lowering.operation("gammaln", [cells], step)], step)


@rule("polygamma", calls=True)
def _polygamma(lowering: Lowering, step, x, n):
    refuse_unless(n == 0, "polygamma of an order above 0")
    return lowering.elementwise("psi", (x,), step)


@rule("where")
def _where(lowering: Lowering, step, condition, x1=None, x2=None):
    refuse_unless(x1 is not None and x2 is not None, "positions that depend on values")
    return lowering.elementwise("where", (condition, x1, x2), step)


@rule("round")
def _round(lowering: Lowering, step, x, decimals=0):
    refuse_unless(decimals == 0, "rounding to decimals")
    return lowering.elementwise("rint", (x,), step)


@rule("cast")
def _cast(lowering: Lowering, step, x, dtype):
    if lowering.value(step).dtype == BOOL:
        return lowering.operation("not_equal", [lowering.cells(x, FLOATS[0]), lowering.code.constant(0.0)], step)
    return lowering.cast(x, lowering.value(step).dtype)


@rule("floor_divide", "mod", "fmod")
def _division(lowering: Lowering, step, x1, x2):
    name, code, dtype = step.name, lowering.code, lowering.value(step).dtype
    if dtype not in WHOLES:
        refuse_unless(dtype == FLOATS[0] or name != "floor_divide", "dtype float32")
        return lowering.elementwise(name, (x1, x2), step)
    if lowering.is_constant(x2) and not np.isin(lowering.example(x2), (0, -1)).any():
        return lowering.elementwise(name, (x1, x2), step)
    given = [lowering.array(x, dtype) for x in (x1, x2)]
    for cell in given[1].flat:
        for divisor in (0, -1):  # the processor may trap on 0, and for the smallest integer on -1
            code.require(code.number("whole_not_equal", [int(cell), code.whole(divisor)]))
    return lowering.operation(name, given, step)


# Ops that move elements.


@rule("real", "conj", moves=True)  # of real numbers
def _identity(lowering: Lowering, step, x):
    return lowering.array(x)


@rule("stack", moves=True)
def _stack(lowering: Lowering, step, xs, axis=0):
    return np.stack([lowering.array(x, lowering.value(step).dtype) for x in xs], axis)


@rule("concatenate", moves=True)
def _concatenate(lowering: Lowering, step, xs, axis=0):
    return np.concatenate([lowering.array(x, lowering.value(step).dtype) for x in xs], axis)


@rule("tril", moves=True)
def _tril(lowering: Lowering, step, x, k=0):
    return _masked(lowering, x, _lower_triangle(lowering.shape(x), k))


@rule("triu", moves=True)
def _triu(lowering: Lowering, step, x, k=0):
    return _masked(lowering, x, ~_lower_triangle(lowering.shape(x), k - 1))


def _lower_triangle(shape: tuple[int, ...], k: int) -> np.ndarray:
    rows, columns = shape[-2:]
    return np.tri(rows, columns, k, dtype=bool)


def _masked(lowering: Lowering, x, mask):
    return np.where(mask, lowering.cells(x), lowering.code.constant(0.0))
