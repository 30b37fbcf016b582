"""R's array semantics on tensors: recycling, filling by column, vectors as matrices.

R orders an array's elements by column, ``gradops.ops`` by row. R recycles a vector along the columns of a matrix,
``gradops.ops`` broadcasts it along the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import dtypes, ops
from ...errors import GradopsError, ShapeError
from ...ops._compose import NUMBERS, constant_like, counted, promoted
from ...ops._compose import floats as as_double
from ...ops._registry import rule, rule_of
from .calls import find
from .errors import Failure
from .indexing import column_major
from .values import CONTAINERS, from_r


def operator_form(name: str) -> Callable:
    """Return a binary op as R's operators call it: with recycling, and with failures returned."""
    function, prepared = find(name), rule_of("R operands", name)

    def call(x1, x2):
        try:
            if x1.__class__ in CONTAINERS or x2.__class__ in CONTAINERS:
                x1, x2 = from_r((x1, x2))
            if prepared is not None and x1.__class__ is not float and x2.__class__ is not float:
                x1 = prepared(x1, x2)
            return function(*recycle(x1, x2))
        except Exception as error:
            return Failure(error)

    return call


@rule("R operands", "add", "subtract", "multiply", "mod", "floor_divide")
def _counted_beside(x1, x2):
    """Return ``x1``, as an integer if both operands are bool: in R ``TRUE + TRUE`` is 2."""
    return counted(x1) if _kind(x1) == _kind(x2) == "bool" else x1


@rule("R operands", "power")
def _double_beside(x1, x2):
    """Return ``x1``, as a float if both operands are integers: R's powers of integers are doubles."""
    return as_double(x1) if _kind(x1) in _WHOLE and _kind(x2) in _WHOLE else x1


def _kind(x) -> str | None:
    """Return the dtype; None for text, and for values that the op itself will reject."""
    try:
        return ops.dtype(x)
    except GradopsError:
        return None


_WHOLE = frozenset((*dtypes.INTEGERS, "bool"))


def recycle(x1, x2) -> tuple:
    """Return two operands with a vector recycled along the columns of the other, as R's operators do.

    Numbers, operands of the same shape, and two arrays of several dimensions (an error in R) are returned unchanged.
    """
    if x1.__class__ is float or x2.__class__ is float:
        return x1, x2
    shape1, shape2 = _shape(x1), _shape(x2)
    rank1, rank2 = len(shape1), len(shape2)
    if shape1 == shape2 or not rank1 or not rank2 or (rank1 > 1 and rank2 > 1):
        return x1, x2
    if rank1 == 1 and (rank2 > 1 or shape1[0] < shape2[0]):
        return (x1, fill(x2, (1,))) if _is_number_beside(shape2, shape1) else (_recycle(x1, shape2), x2)
    return (fill(x1, (1,)), x2) if _is_number_beside(shape1, shape2) else (x1, _recycle(x2, shape1))


def _is_number_beside(shape: tuple, vector: tuple) -> bool:
    """Return True if R treats an array of one element as a number because the other operand is a longer vector."""
    return len(shape) > 1 and vector[0] not in (0, 1, None) and None not in shape and math.prod(shape) == 1


def _recycle(vector, shape: tuple):
    """Return the vector in a shape that broadcasts with ``shape`` as R would recycle it."""
    count = vector.shape[0]
    if count == 1 or count is None or not count:
        return vector
    if None not in shape:
        size = math.prod(shape)
        for leading in range(1, len(shape)):
            if math.prod(shape[:leading]) == count:
                return fill(vector, (*shape[:leading], *[1] * (len(shape) - leading)))
        if size % count == 0:
            return fill(ops.tile(vector, (size // count,)), shape)
    raise ShapeError(
        f"a vector of {count} elements cannot be recycled along {_sizes(shape)}.",
        hint="Operators recycle by column, as R does; `op_add()`, `op_multiply()`, ... broadcast.",
    )


def _sizes(shape: tuple) -> str:
    if len(shape) == 1:
        return f"one of {shape[0]}"
    return "dimensions " + " x ".join("?" if size is None else str(size) for size in shape)


def _shape(x) -> tuple:
    return tuple(getattr(x, "shape", ()))


def fill(x, shape):
    """Return the elements of ``x`` in a new shape, filled by column."""
    shape = tuple(map(int, shape))
    flat = column_major(x)
    return ops.transpose(ops.reshape(flat, shape[::-1])) if len(shape) > 1 else ops.reshape(flat, shape)


def flat(x):
    """Return the elements of ``x``, by column, as a vector."""
    return column_major(x)


def promoted_operands(*xs) -> list:
    """Convert R's numbers and tensors to tensors of one library and their promoted floating dtype."""
    like = next((x for x in xs if not isinstance(x, NUMBERS)), None)
    if like is None:
        return promoted(*map(ops.convert_to_tensor, xs), floating=True)
    kind = ops.dtype(promoted(like, *xs, floating=True)[0])
    return [constant_like(x, like, kind) for x in xs]


def running(x, op: str):
    """Return the cumulative result of ``op`` over the elements, by column."""
    return ops.associative_scan(getattr(ops, op), column_major(x))


def filled(x, shape, byrow: bool = False):
    """Return R's ``array(x, shape)`` or ``matrix(x, byrow=)``: :func:`fill` with elements recycled or cut to fit."""
    shape = tuple(map(int, shape))
    size = math.prod(shape)
    x = repeated(x, size)
    return ops.reshape(x, shape) if byrow else fill(x, shape)


def repeated(x, size: int):
    """Return the elements of ``x``, by column, recycled or cut to ``size``."""
    x, size = column_major(x), int(size)
    count = x.shape[0]
    if not count and size:
        raise ShapeError(f"no elements to make {size} of.", argument="x")
    if count < size:
        x = ops.tile(x, (-(-size // count),))
    return x if x.shape[0] == size else ops.get_item(x, slice(0, size))


# Matrix products ------------------------------------------------------------------------------------------------------


def matmul(x, y):
    """Return R's ``x %*% y``, always a matrix; a vector is a row or a column, whichever fits."""
    x, y = _vector(x), _vector(y)
    if len(x.shape) == 1 and len(y.shape) == 1:  # R takes the inner product, unless only the outer one fits
        x, y = (_column(x), _row(y)) if x.shape[0] == 1 != y.shape[0] else (_row(x), _column(y))
    elif len(x.shape) == 1:
        x = _row(x) if x.shape[0] == y.shape[-2] else _column(x)
    elif len(y.shape) == 1:
        y = _column(y) if y.shape[0] == x.shape[-1] else _row(y)
    return ops.matmul(x, y)


def crossprod(x, y=None):
    """Return R's ``t(x) %*% y``.

    A vector is a column where that fits; an array of more than two dimensions counts as a vector.
    """
    x = _matrix_or_vector(x)
    y = x if y is None else _matrix_or_vector(y)
    x = _column(x) if len(x.shape) == 1 else x
    if len(y.shape) == 1:
        y = _row(y) if x.shape[0] == 1 != y.shape[0] else _column(y)
    return ops.matmul(ops.transpose(x), y)


def tcrossprod(x, y=None):
    """Return R's ``x %*% t(y)``.

    A vector is a column where that fits; an array of more than two dimensions counts as a vector.
    """
    x = _matrix_or_vector(x)
    y = x if y is None else _matrix_or_vector(y)
    if len(x.shape) == 1:
        x = _row(x) if len(y.shape) == 2 and x.shape[0] == y.shape[1] else _column(x)
    if len(y.shape) == 1:
        y = _row(y) if y.shape[0] == x.shape[1] else _column(y)
    return ops.matmul(x, ops.transpose(y))


def _vector(x):
    """Return a factor of a matrix product: bools as integers, a number as a vector."""
    x = counted(x)
    return ops.reshape(x, (1,)) if not _shape(x) else x


def _matrix_or_vector(x):
    return _vector(x) if len(_shape(x)) <= 2 else flat(counted(x))


def _row(x):
    return ops.reshape(x, (1, -1))


def _column(x):
    return ops.reshape(x, (-1, 1))
