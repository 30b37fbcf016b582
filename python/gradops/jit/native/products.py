"""Lowering rules of reductions, sorting and products.

Reductions emit one vector instruction for each row of the operand. Products emit dot products, or a call of BLAS for
larger matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...autodiff.rules.reductions import axes_of_product, explicit
from ...ops._dispatch import facts_of
from .code import BOOL, FLOATS
from .instructions import WHOLES
from .lowering import Lowering
from .registry import refuse_unless, rule


def _reduction_rows(lowering: Lowering, x, axis, dtype) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the cells of ``x`` with the reduced axes merged into a last one, and the reduced axes."""
    cells = lowering.array(x, dtype)
    if axis is None:
        axes = tuple(range(cells.ndim))
    else:
        axes = tuple(a % cells.ndim for a in (axis if isinstance(axis, tuple) else (axis,))) if cells.ndim else ()
    other = tuple(i for i in range(cells.ndim) if i not in axes)
    ordered = cells.transpose(other + axes)
    return ordered.reshape([*ordered.shape[: len(other)], math.prod(ordered.shape[len(other) :])]), axes


@rule("sum", "prod", "max", "min")
def _reduction(lowering: Lowering, step, x, axis=None, keepdims=False, more=None):
    value, fold = lowering.value(step), facts_of(step.name).folds
    rows, _ = _reduction_rows(lowering, x, axis, value.dtype)
    of_nothing = getattr(np, fold).identity
    initial = more if of_nothing is None else None  # max and min take an initial value, sum and prod a dtype
    if rows.shape[-1]:
        found = _reduced(lowering, step, step.name, rows)
    else:
        of_nothing = initial if of_nothing is None else of_nothing
        refuse_unless(of_nothing is not None, "a reduction of an empty axis")
        found = _constants(lowering, value.shape, of_nothing, value.dtype)
    if initial is None:
        return found
    return lowering.operation(fold, [_cells(found), lowering.cells(initial, value.dtype)], step)


def _constants(lowering: Lowering, shape: tuple[int, ...], number, dtype) -> np.ndarray:
    code = lowering.code
    return np.full(shape, code.whole(number) if dtype in WHOLES else code.constant(float(number)))


def _reduced(lowering: Lowering, step, instruction: str, rows: np.ndarray):
    value = lowering.value(step)
    refuse_unless(rows.shape[-1] > 0, "a reduction of an empty axis")
    # Reduction instructions read doubles, but memory holds integers as the bits of an int64.
    if value.dtype in WHOLES:
        return _reduced_one_by_one(lowering, instruction, rows, value)
    found = [lowering.code.reduced(instruction, row, value.dtype) for row in rows.reshape(-1, rows.shape[-1])]
    return np.array(found, np.int64).reshape(np.shape(value))


def _reduced_one_by_one(lowering: Lowering, instruction: str, rows: np.ndarray, value):
    """Emit a reduction of integers as a chain of operations; any order gives the same result."""
    refuse_unless(rows.shape[-1] <= MOST_WHOLES, "a reduction of many integers")
    found, fold = rows[..., 0], facts_of(instruction).folds
    for i in range(1, rows.shape[-1]):
        operands = [_cells(found), _cells(rows[..., i])]
        found = np.asarray(lowering.code.elementwise(fold, operands, found.shape, value.dtype))
    return found.reshape(np.shape(value))


MOST_WHOLES = 64
"""The most integers that are reduced, and the most numbers that are sorted."""


@rule("logsumexp")
def _logsumexp(lowering: Lowering, step, x, axis=None, keepdims=False):
    rows, _ = _reduction_rows(lowering, x, axis, lowering.value(step).dtype)
    if not rows.shape[-1]:
        return np.full(lowering.value(step).shape, lowering.code.constant(-np.inf))
    return _reduced(lowering, step, "logsumexp", rows)


@rule("softmax", "log_softmax")
def _softmax(lowering: Lowering, step, x, axis=-1):
    value = lowering.value(step)
    rows, axes = _reduction_rows(lowering, x, axis, value.dtype)
    out = np.empty(rows.shape, np.int64)
    for i in np.ndindex(out.shape[:-1]) if out.size else ():
        out[i] = lowering.code.row_function(step.name, rows[i], value.dtype)
    order = [*(i for i in range(value.ndim) if i not in axes), *axes]
    return out.reshape([value.shape[i] for i in order]).transpose(np.argsort(order))


@rule("argmax", "argmin")
def _extreme(lowering: Lowering, step, x, axis=None, keepdims=False):
    rows, prefix = _sortable_rows(lowering, x, axis)
    refuse_unless(rows.shape[-1] > 0, "the extreme of an empty axis")
    out = np.empty(rows.shape[:-1], np.int64)
    for i in np.ndindex(out.shape):
        alone = rows.shape[-1] == 1
        out[i] = lowering.code.whole(0) if alone else lowering.code.reduced(prefix + step.name, rows[i], None)
    return out.reshape(np.shape(lowering.value(step)))


def _sortable_rows(lowering: Lowering, x, axis) -> tuple[np.ndarray, str]:
    """Return the cells of the rows to compare, and the prefix of instruction names for their dtype."""
    rows, _ = _reduction_rows(lowering, x, axis, None)
    return rows, "whole_" if np.asarray(lowering.example(x)).dtype in WHOLES else ""


def _map_rows(lowering: Lowering, step, x, axis, row_map: Callable):
    """Emit a function of each row along an axis; return the cells of the step's result.

    Args:
        row_map: takes a row's cells and the prefix of instruction names, and returns the result's cells.
    """
    rows, prefix = _sortable_rows(lowering, x, axis)
    refuse_unless(rows.shape[-1] <= MOST_WHOLES, "many numbers to sort")
    out = np.empty(rows.shape, np.int64)
    for i in np.ndindex(out.shape[:-1]) if out.size else ():
        out[i] = row_map(rows[i], prefix)
    value = lowering.value(step)
    return out.reshape(value.shape) if axis is None or not value.ndim else np.moveaxis(out, -1, axis)


@rule("argsort")
def _argsort(lowering: Lowering, step, x, axis=-1):
    def order(row, prefix):
        return lowering.code.row_function(f"{prefix}argsort", row)

    return _map_rows(lowering, step, x, axis, order)


@rule("sort")
def _sort(lowering: Lowering, step, x, axis=-1):
    def order(row, prefix):
        return lowering.code.picked(row, lowering.code.row_function(f"{prefix}argsort", row))

    return _map_rows(lowering, step, x, axis, order)


@rule("any", "all")
def _truth(lowering: Lowering, step, x, axis=None, keepdims=False):
    code = lowering.code
    rows, _ = _reduction_rows(lowering, x, axis, FLOATS[0])
    if np.asarray(lowering.example(x)).dtype != BOOL:
        rows = np.asarray(code.elementwise("not_equal", [rows, code.constant(0.0)], rows.shape, BOOL))
    out = np.full(rows.shape[:-1], code.constant(float(step.name == "all")))
    for i in np.ndindex(out.shape) if rows.size else ():
        out[i] = code.reduced("max" if step.name == "any" else "min", rows[i], FLOATS[0])
    return out.reshape(np.shape(lowering.value(step)))


@rule("mean")
def _mean(lowering: Lowering, step, x, axis=None, keepdims=False):
    rows, _ = _reduction_rows(lowering, x, axis, lowering.value(step).dtype)
    total = _reduced(lowering, step, "sum", rows)
    return lowering.operation("divide", [_cells(total), lowering.code.constant(float(rows.shape[-1]))], step)


@rule("cumsum", "cumprod")
def _accumulation(lowering: Lowering, step, x, axis=None, dtype=None):
    code, value = lowering.code, lowering.value(step)
    instruction = "add" if step.name == "cumsum" else "multiply"
    cells = lowering.array(x, value.dtype)
    cells = cells.reshape(-1) if axis is None else np.moveaxis(np.atleast_1d(cells), axis, 0)
    out = np.array(cells)
    for i in range(1, len(cells)):
        out[i] = code.elementwise(instruction, [_cells(out[i - 1]), _cells(cells[i])], out[i].shape, value.dtype)
    return (out if axis is None else np.moveaxis(out, 0, axis)).reshape(value.shape)


@rule("searchsorted")
def _searchsorted(lowering: Lowering, step, sorted_sequence, values, side="left"):
    """Count the elements that sort before each value; NaN sorts last."""
    code, at = lowering.code, lowering.array(values, FLOATS[0])
    known = lowering.array(sorted_sequence, FLOATS[0])
    refuse_unless(known.ndim == 1 and known.size * at.size <= MOST_COMPARED, "a search in many numbers")
    is_left, shape = side == "left", (*at.shape, known.size)
    if not known.size or not at.size:
        return np.full(at.shape, code.whole(0))
    first, second = (known, at[..., None]) if is_left else (at[..., None], known)

    def written(name, *cells):
        return code.elementwise(name, [np.broadcast_to(x, shape) for x in cells], shape, BOOL)

    less = written("less", first, second)
    is_last = written("logical_and", written("isnan", second), written("equal", first, first))
    before = written("logical_or", less, is_last)
    before = before if is_left else written("logical_not", before)
    counts = np.empty(at.shape, np.int64)
    for i in np.ndindex(at.shape):
        counts[i] = code.reduced("sum", np.asarray(before)[i], FLOATS[0])
    return code.written("int64_of_float", [_cells(counts)], at.shape, None)


MOST_COMPARED = 4096
"""The most comparisons of a search."""


def _cells(at):
    return at if np.ndim(at) else int(at)


def _why_no_product(value, x1, x2) -> str | None:
    if value.dtype not in (*FLOATS, *WHOLES):
        return f"dtype {value.dtype}"
    columns = np.shape(x2)[-1] if np.ndim(x2) > 1 else 1
    if math.prod(np.shape(x1)[-2:]) * columns > LARGEST_PRODUCT and value.dtype != FLOATS[0]:
        return "a product for BLAS"
    return None


@rule("matmul", refusal=_why_no_product)
def _matmul(lowering: Lowering, step, x1, x2):
    value = lowering.value(step)
    a, b = (lowering.array(x, value.dtype) for x in (x1, x2))
    rows = a.reshape(1, -1) if a.ndim == 1 else a
    columns = b.reshape(1, -1) if b.ndim == 1 else np.swapaxes(b, -1, -2)
    stack = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows, columns = (np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (rows, columns))
    return _products(lowering, rows, columns, value.dtype).reshape(value.shape)


@rule("dot", refusal=_why_no_product)
def _dot(lowering: Lowering, step, x1, x2):
    if not lowering.shape(x1) or not lowering.shape(x2):
        return lowering.elementwise("multiply", (x1, x2), step)
    return _contracted(lowering, step, x1, x2, ([len(lowering.shape(x1)) - 1], [max(len(lowering.shape(x2)) - 2, 0)]))


@rule("tensordot")
def _tensordot(lowering: Lowering, step, x1, x2, axes=2):
    return _contracted(lowering, step, x1, x2, axes_of_product(axes, *(len(lowering.shape(x)) for x in (x1, x2))))


def _contracted(lowering: Lowering, step, x1, x2, axes):
    value = lowering.value(step)
    rows, columns = (_as_matrix(lowering.array(x, value.dtype), used) for x, used in zip((x1, x2), axes))
    return _products(lowering, rows, columns, value.dtype).reshape(value.shape)


def _as_matrix(cells: np.ndarray, used: list[int]) -> np.ndarray:
    """Return cells as a matrix, with the axes ``used`` merged into its columns."""
    free = [i for i in range(cells.ndim) if i not in used]
    sizes = [math.prod(cells.shape[i] for i in part) for part in (free, used)]
    return cells.transpose(*free, *used).reshape(sizes)


@rule("einsum")
def _einsum(lowering: Lowering, step, subscripts, operands):
    value = lowering.value(step)
    names, output = explicit(subscripts, [len(lowering.shape(x)) for x in operands])
    parts = [lowering.array(x, value.dtype) for x in operands]
    sizes: dict[str, int] = {}
    for name, cells in zip(names, parts):
        for c, n in zip(name, cells.shape):
            sizes[c] = max(n, sizes.get(c, n))
    known, cells = "", _constants(lowering, (), 1, value.dtype)
    for i, (name, part) in enumerate(zip(names, parts)):
        distinct = "".join(dict.fromkeys(name))
        # NumPy may move cells, for example to a diagonal, but must not add them: they are addresses, not values. So
        # letters that are not needed later are summed by instructions below, not here.
        part = np.einsum(f"{name}->{distinct}", part)  # diagonals only
        part = np.broadcast_to(part, [sizes[c] for c in distinct])
        if i == 0 and len(names) > 1:
            known, cells = distinct, part
            continue
        later = set(output).union(*names[i + 1 :])
        both = [c for c in known if c in distinct]
        together = [c for c in both if c in later]
        summed = [c for c in dict.fromkeys(known + distinct) if c not in later]
        left = [c for c in known if c in later and c not in both]
        right = [c for c in distinct if c in later and c not in both]
        kept = [*together, *left, *right]
        shape = tuple(sizes[c] for c in kept)
        if summed:
            width = math.prod(sizes[c] for c in summed)
            rows, columns = (
                _broadcast_letters(x, of, [*together, *own, *summed], sizes).reshape(
                    [*(sizes[c] for c in together), math.prod(sizes[c] for c in own), width]
                )
                for x, of, own in ((cells, known, left), (part, distinct, right))
            )
            cells = _products(lowering, rows, columns, value.dtype).reshape(shape)
        else:
            sides = [_broadcast_letters(x, of, kept, sizes) for x, of in ((cells, known), (part, distinct))]
            cells = np.asarray(lowering.code.elementwise("multiply", sides, shape, value.dtype)).reshape(shape)
        known = "".join(kept)
    return _broadcast_letters(cells, known, list(output), sizes).reshape(value.shape)


def _broadcast_letters(cells: np.ndarray, letters: str, wanted: list[str], sizes: dict[str, int]) -> np.ndarray:
    """Transpose cells to the order of ``wanted`` letters, and broadcast along letters that they lack."""
    present = [c for c in wanted if c in letters]
    moved = cells.transpose([letters.index(c) for c in present])
    moved = moved.reshape([sizes[c] if c in letters else 1 for c in wanted])
    return np.broadcast_to(moved, [sizes[c] for c in wanted])


def _products(lowering: Lowering, rows: np.ndarray, columns: np.ndarray, dtype) -> np.ndarray:
    """Emit products of stacked matrices; ``columns`` is the second matrix transposed. Return the cells."""
    out = np.empty((*rows.shape[:-1], columns.shape[-2]), np.int64)
    refuse_unless(out.size <= MOST_PRODUCTS, "products of many rows")
    for i in np.ndindex(out.shape[:-2]) if out.size else ():
        out[i] = _product(lowering, rows[i], columns[i], dtype)
    return out


MOST_PRODUCTS = 4096
"""The most elements of a stack of products."""


def _product(lowering: Lowering, rows: np.ndarray, columns: np.ndarray, dtype) -> np.ndarray:
    code, shape = lowering.code, (len(rows), len(columns))
    if not rows.shape[1]:
        return _constants(lowering, shape, 0, dtype)
    if dtype in WHOLES:
        each = (*shape, rows.shape[1])
        pairs = [np.broadcast_to(x, each) for x in (rows[:, None], columns)]
        terms = np.asarray(code.elementwise("multiply", pairs, each, dtype))
        return _reduced_one_by_one(lowering, "sum", terms, np.empty(shape, dtype))
    if rows.size * len(columns) > LARGEST_PRODUCT and code.machine.has("dgemm") and dtype == FLOATS[0]:
        return code.product(rows, columns.T)
    if rows.shape[1] == 1 and max(shape) > 1:  # an outer product: one multiplication of the longer vector for each
        longer, shorter = (rows, columns) if len(rows) > len(columns) else (columns, rows)
        found = [code.elementwise("multiply", [int(x), longer[:, 0]], longer.shape[:1], dtype) for x in shorter[:, 0]]
        return np.stack(found, axis=1 if longer is rows else 0)
    return np.array([[code.dot(row, column, dtype) for column in columns] for row in rows], np.int64)


@rule("outer")
def _outer(lowering: Lowering, step, x1, x2):
    a, b = (lowering.array(x, lowering.value(step).dtype).reshape(-1) for x in (x1, x2))
    return lowering.operation("multiply", [a.reshape(-1, 1), b], step)


LARGEST_PRODUCT = 1024
"""The most multiplications of a product without BLAS."""
