"""Joining and splitting: several tensors as one, one as several."""

from __future__ import annotations

from ..annotations import Axis, Integer, Integers, Tensor, Tensors
from ..errors import ArgumentError, ShapeError
from . import _checks
from ._checks import check_axis, check_pieces, check_rank, integer
from ._dispatch import op
from ._docstrings import family
from .conversion import shape
from .properties import fits
from .shaping import expand_dims, ravel, reshape

__family__ = """Joining.

Several tensors joined into one, in their promoted dtype.

See Also:
    :func:`split`, :func:`pad`, :func:`tile`, :func:`rearrange`.
"""


@op(linear=("xs",), exact=True)
def concatenate(xs: Tensors, axis: Axis = 0) -> Tensor:
    """Tensors joined along an existing dimension.

    Returns:
        A tensor in the promoted dtype, its size along ``axis`` the sum of theirs.

    Raises:
        ShapeError: shapes that differ elsewhere than along ``axis``.

    Gradient:
        The upstream gradient, split.

    Examples:
        >>> def f(a, b):
        ...     return ops.sum(ops.concatenate([a, b]) * np.array([1.0, 2.0, 3.0]))
        >>> print(*gradops.grad(f, (0, 1))(np.zeros(2), np.zeros(1)))
        [1. 2.] [3.]

    See Also:
        :func:`stack`, :func:`split`.
    """
    ...


@op(linear=("x",), exact=True)
def stack(x: Tensors, axis: Axis = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension.

    Returns:
        A tensor in the promoted dtype, with one dimension more.

    Raises:
        ShapeError: shapes that differ.

    Gradient:
        The upstream gradient, taken apart.

    Examples:
        >>> from gradops.functional import jacobian
        >>> print(jacobian(lambda x: ops.stack([x[0] * x[1], x[0] + x[1]]), np.array([2.0, 3.0])))
        [[3. 2.]
         [1. 1.]]

    See Also:
        :func:`concatenate`, :func:`unstack`.
    """
    ...


@op
def append(x1: Tensor, x2: Tensor, axis: Axis | None = None) -> Tensor:
    """``x2`` appended to ``x1`` along an axis; without an axis, both are flattened.

    Returns:
        A tensor in the promoted dtype; a vector without an axis.

    Raises:
        ShapeError: shapes that differ elsewhere than along ``axis``.

    Gradient:
        The upstream gradient, split.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.append(x, [2.0]), gradops.grad(lambda x: ops.sum(ops.append(x, x) ** 2))(x))
        [1. 3. 2.] [ 4. 12.]
    """
    return concatenate([ravel(x1), ravel(x2)], 0) if axis is None else concatenate([x1, x2], axis)


def _is_list(value) -> bool:
    return isinstance(value, (list, tuple)) or bool(getattr(value, "shape", ()))


def _list(xs) -> list:
    return list(xs) if isinstance(xs, (list, tuple)) else unstack(xs)


stacking = family(
    returns="A tensor in the promoted dtype.",
    raises="ShapeError: shapes that differ elsewhere.",
    gradient="The upstream gradient, split.",
)


@op
@stacking
def hstack(xs: Tensors) -> Tensor:
    """Tensors joined horizontally: along the second dimension; vectors and numbers along the first.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.hstack([x, x]), gradops.grad(lambda x: ops.sum(ops.hstack([x, x**2])))(x))
        [1. 3. 1. 3.] [3. 7.]
    """
    parts = [reshape(x, (1,)) if len(x.shape) == 0 else x for x in _list(xs)]
    return concatenate(parts, 0 if len(parts[0].shape) == 1 else 1)


@op
@stacking
def vstack(xs: Tensors) -> Tensor:
    """Tensors joined vertically: along the first dimension; vectors and numbers become rows.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.vstack([x, x]))
        [[1. 3.]
         [1. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.vstack([x, x**2])))(x))
        [3. 7.]
    """
    return concatenate([reshape(x, (1, -1)) if len(x.shape) < 2 else x for x in _list(xs)], 0)


@op
@stacking
def dstack(xs: Tensors) -> Tensor:
    """Tensors joined along the third dimension, which is added to matrices, vectors (as rows) and numbers.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.dstack([x, x]))
        [[[1. 1.]
          [3. 3.]]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.dstack([x, x**2])))(x))
        [3. 7.]
    """
    parts = [reshape(x, (1, -1, 1)) if len(x.shape) < 2 else x for x in _list(xs)]
    return concatenate([expand_dims(x, 2) if len(x.shape) == 2 else x for x in parts], 2)


@op
@stacking
def column_stack(xs: Tensors) -> Tensor:
    """Tensors joined horizontally: along the second dimension; vectors and numbers become columns.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.column_stack([x, x]))
        [[1. 1.]
         [3. 3.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.column_stack([x, x**2])))(x))
        [3. 7.]
    """
    return concatenate([reshape(x, (-1, 1)) if len(x.shape) < 2 else x for x in _list(xs)], 1)


__family__ = """Splitting.

One tensor split into several. Parts that a loss does not use get the gradient 0.

See Also:
    :func:`concatenate`, :func:`slice`, :func:`take`, :func:`rearrange`.
"""


splitting = family(
    {"indices_or_sections": "the number of sections, or the numbers of elements before each cut, ascending."},
    returns="A list of tensors.",
    gradient="The pieces' upstream gradients, joined.",
)


@op(moves=True, view="writable")
@splitting
def split(x: Tensor, indices_or_sections: Integers, axis: Axis = 0):
    """``x`` cut along a dimension: into equal sections (an int) or before positions (a list, ascending).

    Raises:
        ArgumentError: sections that do not divide the dimension, positions that do not ascend.

    Gradient:
        The pieces' upstream gradients, joined; zeros for unused ones.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0, 4.0])
        >>> print(ops.split(x, 2)[1], gradops.grad(lambda x: ops.sum(ops.split(x, 2)[1] ** 2))(x))
        [2. 4.] [0. 0. 4. 8.]
    """
    ...


def _check_unstack(op, x, num, axis) -> None:
    if num is None:
        return
    axis = check_axis(op.name, axis, check_rank(op.name, x, 1))
    size = shape(x)[axis]
    if not fits((integer(op.name, num, "num"),), (size,)):
        raise ArgumentError(f"`{op.name}`: `num` must be {size}, the size of the dimension; got {num}.", argument="num")


@op(check=_check_unstack, moves=True, view="writable")
def unstack(x: Tensor, num: Integer | None = None, axis: Axis = 0):
    """The slices of ``x`` along a dimension, as a list.

    Args:
        num: the size of the dimension, to check it.

    Returns:
        A list of tensors without the dimension.

    Raises:
        ArgumentError: ``num`` is not the size.

    Gradient:
        The parts' upstream gradients, stacked; zeros for unused ones.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.unstack(x)[1])
        [2. 4.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.unstack(x)[1] ** 2))(x))
        [[0. 0.]
         [4. 8.]]
    """
    ...


@op(moves=True, view="writable")
@splitting
def array_split(x: Tensor, indices_or_sections: Integers, axis: Axis = 0) -> list:
    """Split like :func:`split`, but into sections that need not divide the dimension: the first ones are one longer
    then.

    Raises:
        ArgumentError: fewer than one section, or more than 1,048,576 and than the dimension has elements.

    Gradient:
        The pieces' upstream gradients, joined; zeros for unused ones.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0])
        >>> print(ops.array_split(x, 2)[0], gradops.grad(lambda x: ops.sum(ops.array_split(x, 2)[0] ** 2))(x))
        [1. 3.] [2. 6. 0.]
    """
    axis = check_axis("array_split", axis, check_rank("array_split", x, 1))
    if _is_list(indices_or_sections):
        return split(x, indices_or_sections, axis)
    count = integer("array_split", indices_or_sections, "indices_or_sections", 1)
    size = shape(x)[axis]
    check_pieces("array_split", count, size, "indices_or_sections")
    short, longer = divmod(size, count)
    return split(x, [i * short + min(i, longer) for i in range(1, count)], axis)


def _split_along(op: str, x, indices_or_sections, axis: int, rank: int) -> list:
    check_rank(op, x, rank)
    return split(x, indices_or_sections, axis)


@op(moves=True)
@splitting
def hsplit(x: Tensor, indices_or_sections: Integers) -> list:
    """``x`` cut into columns: along the second dimension, a vector along its only one. See :func:`split`.

    Raises:
        ShapeError: a 0-d tensor.
        ArgumentError: sections that do not divide the dimension.

    Examples:
        >>> x = np.array([1.0, 3.0, 2.0, 4.0])
        >>> print(ops.hsplit(x, 2)[1], gradops.grad(lambda x: ops.sum(ops.hsplit(x, 2)[1] ** 2))(x))
        [2. 4.] [0. 0. 4. 8.]
    """
    return _split_along("hsplit", x, indices_or_sections, 0 if len(x.shape) == 1 else 1, 1)


@op(moves=True)
@splitting
def vsplit(x: Tensor, indices_or_sections: Integers) -> list:
    """``x`` cut into rows: along the first of at least two dimensions. See :func:`split`.

    Raises:
        ShapeError: fewer than 2 dimensions.
        ArgumentError: sections that do not divide the dimension.

    Examples:
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.vsplit(x, 2)[1])
        [[2. 4.]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.vsplit(x, 2)[1] ** 2))(x))
        [[0. 0.]
         [4. 8.]]
    """
    return _split_along("vsplit", x, indices_or_sections, 0, 2)


@op(moves=True)
@splitting
def dsplit(x: Tensor, indices_or_sections: Integers) -> list:
    """``x`` cut along the third of at least three dimensions. See :func:`split`.

    Raises:
        ShapeError: fewer than 3 dimensions.
        ArgumentError: sections that do not divide the dimension.

    Examples:
        >>> x = np.arange(4.0).reshape(1, 2, 2)
        >>> print(ops.dsplit(x, 2)[1].ravel(), gradops.grad(lambda x: ops.sum(ops.dsplit(x, 2)[1] ** 2))(x).ravel())
        [1. 3.] [0. 2. 0. 6.]
    """
    return _split_along("dsplit", x, indices_or_sections, 2, 3)


def _explain_split(op: str, x, indices_or_sections, axis) -> None:
    axis = check_axis(op, axis, check_rank(op, x, 1))
    if _is_list(indices_or_sections):
        return
    count, size = integer(op, indices_or_sections, "indices_or_sections"), shape(x)[axis]
    if count < 1 or size % count:
        raise ArgumentError(
            f"`{op}`: `indices_or_sections` must divide the dimension of {size}, or be a list; got {count}.",
            argument="indices_or_sections",
            hint="`array_split()` makes sections of unequal sizes",
        )
    check_pieces(op, count, size, "indices_or_sections")


def _explain_join(op: str, axis, **tensors) -> None:
    (xs,) = tensors.values()
    shapes = [shape(x) for x in xs]
    if not shapes:
        raise ArgumentError(f"`{op}`: needs at least one tensor.", argument=next(iter(tensors)))
    rank = len(shapes[0])
    axis = check_axis(op, axis, rank if op == "concatenate" else rank + 1)
    if op == "concatenate":
        if not rank:
            raise ShapeError("`concatenate`: 0-d tensors have no dimension to join along; `stack()` makes one.")
        alike = [s[:axis] + s[axis + 1 :] if len(s) == rank else (None,) for s in shapes]
    else:
        alike = shapes
    if any(s != alike[0] for s in alike):
        where = "elsewhere than along the axis" if op == "concatenate" else "in shape"
        raise ShapeError(
            f"`{op}`: the tensors must not differ {where}; got {', '.join(map(str, shapes))}.",
            argument=next(iter(tensors)),
        )


_checks.reasons["split"] = _explain_split
_checks.reasons["concatenate"] = _checks.reasons["stack"] = _explain_join
