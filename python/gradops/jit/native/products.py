"""Native code for reductions and products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .code import BOOL, FLOATS
from .instructions import WHOLES
from .lowering import Lowering
from .registry import RULES, limit, refuse_unless, rule


def _along(lowering: Lowering, x, axis, dtype) -> tuple[np.ndarray, tuple[int, ...]]:
    """The cells of ``x`` with the reduced axes last, as one, and which they are."""
    cells = lowering.array(x, dtype)
    if axis is None:
        axes = tuple(range(cells.ndim))
    else:
        axes = tuple(a % cells.ndim for a in (axis if isinstance(axis, tuple) else (axis,))) if cells.ndim else ()
    other = tuple(i for i in range(cells.ndim) if i not in axes)
    ordered = cells.transpose(other + axes)
    return ordered.reshape([*ordered.shape[: len(other)], math.prod(ordered.shape[len(other) :])]), axes


def _reduction(name: str, instruction: str) -> None:
    def rule(lowering: Lowering, step, x, axis=None, keepdims=False, *rest):
        refuse_unless(not any(r is not None for r in rest), "an initial value or a dtype")
        rows, axes = _along(lowering, x, axis, lowering.value(step).dtype)
        return _reduced(lowering, step, instruction, rows)

    RULES[name] = rule


def _reduced(lowering: Lowering, step, instruction: str, rows: np.ndarray):
    value = lowering.value(step)
    refuse_unless(value.dtype != BOOL and rows.shape[-1] > 0, "a reduction of truth values or of nothing")
    # The machine's reductions read doubles, and whole numbers stand in memory as the bits of an int64.
    if value.dtype in WHOLES:
        return _reduced_one_by_one(lowering, instruction, rows, value)
    out = np.empty(rows.shape[:-1], np.int64)
    for i in np.ndindex(out.shape):
        out[i] = lowering.code.reduced(instruction, rows[i], value.dtype)
    return out.reshape(np.shape(value))


_OF_TWO = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _reduced_one_by_one(lowering: Lowering, instruction: str, rows: np.ndarray, value):
    """A reduction of whole numbers, one by one, for which any order gives the same."""
    refuse_unless(rows.shape[-1] <= MOST_WHOLES, "a reduction of many whole numbers")
    found = rows[..., 0]
    for i in range(1, rows.shape[-1]):
        operands = [_cells(found), _cells(rows[..., i])]
        found = np.asarray(lowering.code.elementwise(_OF_TWO[instruction], operands, found.shape, value.dtype))
    return found.reshape(np.shape(value))


MOST_WHOLES = 64
"""Whole numbers that are summed one after the other, and numbers that are sorted."""

_reduction("sum", "sum")
_reduction("prod", "prod")
_reduction("max", "max")
_reduction("min", "min")


@rule("logsumexp")
def _logsumexp(lowering: Lowering, step, x, axis=None, keepdims=False):
    rows, _ = _along(lowering, x, axis, lowering.value(step).dtype)
    if not rows.shape[-1]:
        return np.full(lowering.value(step).shape, lowering.code.constant(-np.inf))
    return _reduced(lowering, step, "logsumexp", rows)


def _of_rows(name: str) -> None:
    @rule(name)
    def of_rows(lowering: Lowering, step, x, axis=-1):
        value = lowering.value(step)
        rows, axes = _along(lowering, x, axis, value.dtype)
        out = np.empty(rows.shape, np.int64)
        for i in np.ndindex(out.shape[:-1]) if out.size else ():
            out[i] = lowering.code.of_row(name, rows[i], value.dtype)
        order = [*(i for i in range(value.ndim) if i not in axes), *axes]
        return out.reshape([value.shape[i] for i in order]).transpose(np.argsort(order))


_of_rows("softmax")
_of_rows("log_softmax")


def _extreme(name: str) -> None:
    @rule(name)
    def of_extreme(lowering: Lowering, step, x, axis=None, keepdims=False):
        rows, prefix = _ordered(lowering, x, axis)
        refuse_unless(rows.shape[-1] > 0, "the extreme of nothing")
        out = np.empty(rows.shape[:-1], np.int64)
        for i in np.ndindex(out.shape):
            alone = rows.shape[-1] == 1
            out[i] = lowering.code.whole(0) if alone else lowering.code.reduced(prefix + name, rows[i], None)
        return out.reshape(np.shape(lowering.value(step)))


_extreme("argmax")
_extreme("argmin")


def _ordered(lowering: Lowering, x, axis) -> tuple[np.ndarray, str]:
    """The cells of rows whose order is asked for, and the prefix of the instructions for them."""
    rows, _ = _along(lowering, x, axis, None)
    return rows, "whole_" if np.asarray(lowering.example(x)).dtype in WHOLES else ""


def _by_row(lowering: Lowering, step, x, axis, of_row: Callable):
    """The result of a function of each row's cells and the instructions' prefix, where rows are along one axis."""
    rows, prefix = _ordered(lowering, x, axis)
    refuse_unless(rows.shape[-1] <= MOST_WHOLES, "many numbers to sort")
    out = np.empty(rows.shape, np.int64)
    for i in np.ndindex(out.shape[:-1]) if out.size else ():
        out[i] = of_row(rows[i], prefix)
    value = lowering.value(step)
    return out.reshape(value.shape) if axis is None or not value.ndim else np.moveaxis(out, -1, axis)


@rule("argsort")
def _argsort(lowering: Lowering, step, x, axis=-1):
    def of_row(row, prefix):
        return lowering.code.of_row(f"{prefix}argsort", row)

    return _by_row(lowering, step, x, axis, of_row)


@rule("sort")
def _sort(lowering: Lowering, step, x, axis=-1):
    def of_row(row, prefix):
        return lowering.code.picked(row, lowering.code.of_row(f"{prefix}argsort", row))

    return _by_row(lowering, step, x, axis, of_row)


def _truth(name: str, instruction: str) -> None:
    def rule(lowering: Lowering, step, x, axis=None, keepdims=False):
        refuse_unless(np.asarray(lowering.example(x)).dtype == BOOL, "a truth value of numbers")
        rows, _ = _along(lowering, x, axis, None)
        refuse_unless(rows.shape[-1] > 0, "a truth value of nothing")
        out = np.empty(rows.shape[:-1], np.int64)
        for i in np.ndindex(out.shape):
            out[i] = lowering.code.reduced(instruction, rows[i], FLOATS[0])
        return out.reshape(np.shape(lowering.value(step)))

    RULES[name] = rule


_truth("any", "max")
_truth("all", "min")


@rule("mean")
def _mean(lowering: Lowering, step, x, axis=None, keepdims=False):
    rows, _ = _along(lowering, x, axis, lowering.value(step).dtype)
    total = _reduced(lowering, step, "sum", rows)
    return lowering.operation("divide", [_cells(total), lowering.code.constant(float(rows.shape[-1]))], step)


@rule("cumsum")
def _cumsum(lowering: Lowering, step, x, axis=None, dtype=None):
    cells = lowering.array(x, lowering.value(step).dtype)
    cells = cells.reshape(-1) if axis is None else np.moveaxis(np.atleast_1d(cells), axis, 0)
    out, kind = np.empty(cells.shape, np.int64), lowering.value(step).dtype
    for i, row in enumerate(cells):
        out[i] = row if i == 0 else lowering.code.elementwise("add", [_cells(out[i - 1]), _cells(row)], row.shape, kind)
    return (out if axis is None else np.moveaxis(out, 0, axis)).reshape(lowering.value(step).shape)


def _cells(at):
    return at if np.ndim(at) else int(at)


@rule("matmul")
def _matmul(lowering: Lowering, step, x1, x2):
    return _product(lowering, step, x1, x2)


@rule("dot")
def _dot(lowering: Lowering, step, x1, x2):
    if not lowering.shape(x1) or not lowering.shape(x2):
        return lowering.elementwise("multiply", (x1, x2), step)
    return _product(lowering, step, x1, x2)


def _product(lowering: Lowering, step, x1, x2):
    value = lowering.value(step)
    a, b = lowering.array(x1, value.dtype), lowering.array(x2, value.dtype)
    rows, columns = np.atleast_2d(a), (b.reshape(-1, 1) if b.ndim == 1 else b).T
    if rows.size * len(columns) > LARGEST_PRODUCT:
        refuse_unless(lowering.code.machine.has("dgemm"), "a product for BLAS")
        return lowering.code.product(rows, columns.T).reshape(np.shape(value))
    if rows.shape[1] == 1 and columns.size > 1:
        found = [lowering.operation("multiply", [int(row[0]), columns[:, 0]], step, columns.shape[:1]) for row in rows]
        return np.concatenate(found).reshape(np.shape(value))
    dot = lowering.code.dot
    out = [dot(row, column, value.dtype) for row in rows for column in columns]
    return np.array(out, np.int64).reshape(np.shape(value))


@limit("matmul")
@limit("dot")
def _why_no_product(value, x1, x2) -> str | None:
    first, second = np.shape(x1), np.shape(x2)
    if value.dtype not in FLOATS:
        return f"dtype {value.dtype}"
    if len(first) > 2 or len(second) > 2:
        return "a product of stacks of matrices"
    if 0 in first[-1:]:
        return "a product over nothing"
    multiplications = np.prod(first, dtype=int) * (second[1] if len(second) == 2 else 1)
    return "a product for BLAS" if multiplications > LARGEST_PRODUCT and value.dtype != FLOATS[0] else None


@rule("outer")
def _outer(lowering: Lowering, step, x1, x2):
    a, b = (lowering.array(x, lowering.value(step).dtype).reshape(-1) for x in (x1, x2))
    return lowering.operation("multiply", [a.reshape(-1, 1), b], step)


LARGEST_PRODUCT = 1024
"""Multiplications in a product from which on BLAS does it."""
