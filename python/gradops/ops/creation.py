"""Creation of tensors, on the default backend or like another tensor."""

from __future__ import annotations

import math

import numpy as np

from .. import config
from ..annotations import DType, Integer, Operand, Shape, Tensor, Tensors
from ..backends import tracing
from ..dtypes import INTEGERS, canonical
from ..errors import ArgumentError
from ._checks import check_held, check_pieces, check_rank, choice, integer, size_of
from ._compose import check_fits, promoted, rounded, wide
from ._dispatch import op
from ._structures import as_tensor, owner_of
from .conversion import cast, shape, size
from .conversion import dtype as dtype_of
from .elementwise import add, divide, equal, floor, greater, greater_equal, logical_and, multiply, subtract
from .indexing import get_item, where
from .joining import concatenate, stack
from .properties import unknown
from .shaping import broadcast_to, expand_dims, moveaxis, reshape

__family__ = """Constant tensors.

On the default backend, or like another tensor.

See Also:
    :func:`convert_to_tensor`, :func:`eye`, :func:`linspace`, :func:`broadcast_to`.
"""


@op
def zeros(shape: Shape, dtype: DType | None = None) -> Tensor:
    """A tensor of zeros, of ``floatx`` unless ``dtype`` is given.

    Returns:
        A tensor of ``shape``. It has no gradient.
    """
    ...


@op
def ones(shape: Shape, dtype: DType | None = None) -> Tensor:
    """A tensor of ones, of ``floatx`` unless ``dtype`` is given.

    Returns:
        A tensor of ``shape``. It has no gradient.
    """
    ...


def _fits(op, x, fill_value, dtype):
    if dtype is not None:
        check_fits(op.name, fill_value, canonical(dtype), "fill_value")


@op(check=_fits, linear=("fill_value",), exact=True)
def full(shape: Shape, fill_value: Tensor, dtype: DType | None = None) -> Tensor:
    """A tensor of ``fill_value``, in its dtype unless ``dtype`` is given.

    Returns:
        A tensor of ``shape``.

    Gradient:
        The sum of the upstream gradient, to ``fill_value``.

    Examples:
        >>> x = np.array(3.0)
        >>> print(ops.full((2,), x), gradops.grad(lambda x: ops.sum(ops.full((2,), x) ** 2))(x))
        [3. 3.] 12.0
    """
    return broadcast_to(fill_value if dtype is None else cast(fill_value, dtype), shape)


@op(differentiable=False, exact=True, shape_only=True)
def zeros_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Zeros of ``x``'s shape, backend and, unless given, dtype.

    Returns:
        A tensor of ``x``'s shape. It has no gradient.
    """
    ...


@op(differentiable=False, exact=True, shape_only=True)
def ones_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Ones of ``x``'s shape, backend and, unless given, dtype.

    Returns:
        A tensor of ``x``'s shape. It has no gradient.
    """
    ...


@op
def full_like(x: Tensor, fill_value: Operand, dtype: DType | None = None) -> Tensor:
    """``fill_value`` in ``x``'s shape, on its backend and, unless given, in its dtype.

    Returns:
        A tensor of ``x``'s shape.

    Gradient:
        The sum of the upstream gradient, to ``fill_value``; none to ``x``.

    Examples:
        >>> x = np.array(3.0)
        >>> print(ops.full_like([1.0, 2.0], x))
        [3. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.full_like([1.0, 2.0], x) ** 2))(x))
        12.0
    """
    dtype = dtype or dtype_of(x)
    check_fits("full_like", fill_value, canonical(dtype), "fill_value")
    return cast(add(zeros_like(x, dtype), fill_value), dtype)


@op
def empty(shape: Shape, dtype: DType | None = None) -> Tensor:
    """A tensor to be filled, of ``floatx`` unless ``dtype`` is given.

    It holds zeros on every backend, as JAX and TensorFlow have no uninitialised memory.

    Returns:
        A tensor of ``shape``. It has no gradient.
    """
    return zeros(shape, dtype)


@op(differentiable=False, shape_only=True)
def empty_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    """A tensor to be filled, of ``x``'s shape, backend and, unless given, dtype; it holds zeros, as in :func:`empty`.

    Returns:
        A tensor of ``x``'s shape. It has no gradient.
    """
    return zeros_like(x, dtype)


def _numbers_fit(op, start, stop, step, dtype):
    if isinstance(step, (int, float)) and step == 0:
        raise ArgumentError("`arange`: `step` must not be 0.", argument="step")
    if dtype is not None and canonical(dtype) in INTEGERS:
        _range_fits(op, start, stop, step, dtype)


@tracing.left_out
def _range_fits(op, start, stop, step, dtype):
    if not all(isinstance(v, (int, float, type(None))) for v in (start, stop, step)):
        return
    first, end, step = (start, stop, step or 1) if stop is not None else (0, start, step or 1)
    if (count := math.ceil((end - first) / step)) > 0:
        check_held(op.name, "start", first, canonical(dtype))
        check_held(op.name, "stop", first + (count - 1) * step, canonical(dtype))


__family__ = """Sequences of numbers.

On the default backend if no argument is a tensor.

See Also:
    :func:`full`, :func:`hanning` and other windows, :func:`cumsum`.
"""


@op(differentiable=False, check=_numbers_fit)
def arange(
    start: Operand, stop: Operand | None = None, step: Operand | None = None, dtype: DType | None = None
) -> Tensor:
    """Numbers from ``start`` (0 if only one is given) up to but without ``stop``, ``step`` apart.

    Returns:
        A vector: int64 of integers, ``floatx`` otherwise, unless ``dtype`` is given. It has no gradient.

    Raises:
        ArgumentError: a step of 0; numbers that an integer ``dtype`` does not hold.
    """
    ...


@tracing.constant
def _ramp(num: int, gaps: int):
    """Return evenly spaced numbers by NumPy; in compiled code too, as PyTorch divides integers in float32."""
    return np.arange(num) / (gaps or 1)


def _ends_fit(op, start, stop, num, endpoint, retstep, dtype, axis):
    if dtype is not None:
        check_held(op.name, "start", start, canonical(dtype))
        check_held(op.name, "stop", stop, canonical(dtype))


@op(check=_ends_fit)
def linspace(
    start: Operand,
    stop: Operand,
    num: Integer = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DType | None = None,
    axis: Integer = 0,
):
    """``num`` evenly spaced numbers from ``start`` to ``stop``, with or without the end point.

    Args:
        start, stop: numbers or tensors, broadcast.
        axis: the position of the new dimension.
        num: how many numbers.
        endpoint: whether ``stop`` is the last number.
        retstep: whether to return the step too.

    Returns:
        A tensor of the dtype of ``start`` and ``stop``, ``floatx`` for whole numbers, unless ``dtype`` is given: to
        whole numbers it is rounded down; with ``retstep`` a pair of it and the step (NaN where there is one number
        or none).

    Raises:
        ArgumentError: a negative ``num``; ends that an integer ``dtype`` does not hold.

    Gradient:
        The upstream gradient to ``start`` and ``stop``, with the weights of the linear interpolation.

    Examples:
        >>> x = np.array(3.0)
        >>> print(ops.linspace(0.0, x, 4), gradops.grad(lambda x: ops.sum(ops.linspace(0.0, x, 4)))(x))
        [0. 1. 2. 3.] 2.0
    """
    num = size_of("linspace", num, "num")
    gaps = num - 1 if endpoint else num
    start, stop = promoted(start, stop, floating=True)
    name = canonical(dtype or dtype_of(start))
    (start, final), (stop, _) = wide(start), wide(stop)
    whole = subtract(stop, start)
    if unknown(num):
        steps = reshape(arange(num), (-1, *[1] * len(whole.shape)))
        gaps = cast(gaps, "float64")
        out = add(multiply(divide(steps, where(equal(gaps, 0), 1.0, gaps)), whole), start)
        if endpoint:
            out = where(logical_and(equal(steps, num - 1), greater(steps, 0)), stop, out)
        gaps = where(greater(gaps, 0), gaps, float("nan"))
    else:
        ramp = np.asarray(_ramp(num, gaps), "float64")
        out = add(multiply(reshape(ramp, (-1, *[1] * len(whole.shape))), whole), start)
        gaps = gaps if gaps > 0 else float("nan")
    if endpoint and not unknown(num) and num > 1:  # exactly `stop`, without rounding
        out = concatenate([get_item(out, slice(-1)), expand_dims(broadcast_to(stop, shape(whole)), 0)])
    check_fits("linspace", out, name, "dtype")
    out = moveaxis(cast(floor(out) if name in INTEGERS else out, name), 0, axis)
    return (out, rounded(divide(whole, gaps), final)) if retstep else out


__family__ = """Special matrices and grids.

On the default backend if no argument is a tensor.

See Also:
    :func:`full`, :func:`diag`, :func:`tril`, :func:`one_hot`.
"""


@op
def eye(N: Integer, M: Integer | None = None, k: Integer = 0, dtype: DType | None = None) -> Tensor:
    """An ``N`` by ``M`` (or ``N``) matrix with ones on its ``k``-th diagonal, zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; ``N`` if None.
        k: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A matrix of ``floatx`` unless ``dtype`` is given. It has no gradient.
    """
    ...


@op
def identity(n: Integer, dtype: DType | None = None) -> Tensor:
    """The ``n`` by ``n`` matrix with ones on its diagonal, zeros elsewhere.

    Args:
        n: the number of rows and columns.

    Returns:
        A matrix of ``floatx`` unless ``dtype`` is given. It has no gradient.
    """
    return eye(n, None, 0, dtype)


@op
def tri(N: Integer, M: Integer | None = None, k: Integer = 0, dtype: DType | None = None) -> Tensor:
    """An ``N`` by ``M`` (or ``N``) matrix with ones on and below its ``k``-th diagonal, zeros above.

    Args:
        N: the number of rows.
        M: the number of columns; ``N`` if None.
        k: the diagonal: 0 is the main one, positive ones lie above it.

    Returns:
        A matrix of ``floatx`` unless ``dtype`` is given. It has no gradient.

    Raises:
        ArgumentError: a negative size.
    """
    rows, columns = size_of("tri", N, "N"), size_of("tri", N if M is None else M, "M")
    below = greater_equal(reshape(arange(rows), (-1, 1)), arange(-int(k), columns - int(k)))
    return cast(below, dtype or config.floatx())


@op(name="meshgrid")
def _meshgrid(x: Tensors, indexing: str) -> list:
    choice("meshgrid", indexing, ("xy", "ij"), "indexing")
    places = list(range(len(x)))
    if indexing == "xy" and len(x) > 1:
        places[0], places[1] = 1, 0
    owner = owner_of("meshgrid", *x)
    x = [as_tensor("meshgrid", part, owner, "x") for part in x]
    sizes = [0] * len(x)
    for place, part in zip(places, x):
        sizes[place] = size(part)
    grids = []
    for place, part in zip(places, x):
        line = reshape(part, [-1 if i == place else 1 for i in range(len(x))])
        grids.append(broadcast_to(line, sizes))
    return grids


def meshgrid(*x: Tensor, indexing: str = "xy") -> list:
    """For each vector, a tensor of its values at all points of the grid that the vectors span.

    Args:
        x: vectors (other tensors are flattened).
        indexing: ``"xy"``: the first vector varies along the second dimension, the second along the first, as
            in a plot; ``"ij"``: each along its own.

    Returns:
        A list of tensors, one for each vector, each with one dimension for each vector.

    Raises:
        ArgumentError: another ``indexing``.

    Gradient:
        The upstream gradient, summed over the other dimensions.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.meshgrid(x, [0.0, 1.0])[0])
        [[1. 3.]
         [1. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.meshgrid(x, [0.0, 1.0])[0] ** 2))(x))
        [ 4. 12.]
    """
    return _meshgrid(x, indexing)


@op
def vander(x: Tensor, N: Integer | None = None, increasing: bool = False) -> Tensor:
    """The matrix of the powers of a vector's elements: ``x ** (N - 1), ..., x, 1`` in the columns.

    Args:
        N: the number of columns; by default the number of rows.
        increasing: powers from 0 up, instead of down to 0.

    Returns:
        A matrix of ``x``'s dtype, a row for each element.

    Raises:
        ShapeError: not a vector.
        ArgumentError: a negative ``N``.

    Gradient:
        ``n * x**(n - 1)`` in the column of ``x**n``, also where elements are 0: powers are computed as products.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.vander(x, 3))
        [[1. 1. 1.]
         [9. 3. 1.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.vander(x, 3)))(x))
        [3. 7.]
    """
    check_rank("vander", x, (1,))
    count = shape(x)[0] if N is None else integer("vander", N, "N", 0)
    check_pieces("vander", count, 0, "N")
    columns = [ones_like(x)]
    for _ in range(1, count):
        columns.append(multiply(columns[-1], x))
    out = stack(columns if increasing else columns[::-1], 1)
    return get_item(out, (slice(None), slice(count))) if count < 1 else out
