"""Rank filters (minimum, maximum, median, percentile) and grey morphology.

Both gather the neighbours of each element along a new dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import ops
from ...annotations import Axes, Axis, Integer, Integers, Tensor
from ...errors import ArgumentTypeError
from ...ops._checks import check_axes
from .._define import family
from .._neighbours import alike, number, patches
from .._tensors import is_complex, numbers, wrong
from .filters import ARGUMENTS, ERRORS, SAME, closed, each, opened, padding_rules, sort_by_axis, whole, window_start

__all__ = """
black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter maximum_filter1d median_filter
minimum_filter minimum_filter1d morphological_gradient morphological_laplace percentile_filter rank_filter white_tophat
""".split()

WINDOW = ARGUMENTS | {
    "size": "the size of the windows.",
    "footprint": "in place of ``size`` an array whose nonzero elements mark the neighbours.",
    "structure": "a tensor of heights that are subtracted or added; it has a gradient.",
}
CHOSEN = "The upstream gradient, passed to the chosen element; equal minima or maxima share it."
ranked = family(WINDOW, returns=SAME, raises=ERRORS, gradient=CHOSEN)


class _Windows:
    """The neighbours of each element along a new last dimension, their number, and their marks in the window."""

    def __init__(self, input, size, footprint, mode, cval, origin, axes, structure=None, turned=False):
        x = input if ops.is_tensor(input) else ops.convert_to_tensor(input)
        if is_complex(x):
            raise wrong("input", "be real", ops.dtype(x), ArgumentTypeError)
        rank = len(x.shape)
        along = check_axes("ndimage", axes, rank, "axes")
        count, marks = len(along), None
        if footprint is not None:
            marks = numbers("ndimage", "footprint", footprint)
            if marks.dtype.kind not in "fiub" or marks.ndim != count or not marks.any():
                raise wrong("footprint", f"have {count} dimensions and an element that is not 0")
            window, marks = list(marks.shape), np.flip(marks != 0) if turned else marks != 0
        elif structure is not None:
            window = [int(n) for n in structure.shape]
        elif size is not None:
            window = sort_by_axis(along, [whole(n, "size") for n in each(size, count, "size")])
        else:
            raise wrong("size", "be given, or `footprint`")
        if len(window) != count:
            raise wrong("structure", f"have a dimension for each of {count} axes", len(window))
        origins = sort_by_axis(along, each(origin, count, "origin"))
        sizes, starts, edges = [1] * rank, [0] * rank, ["constant"] * rank
        for axis, n, shift, how in zip(sorted(along), window, origins, sort_by_axis(along, padding_rules(mode, count))):
            sizes[axis], starts[axis], edges[axis] = n, window_start(n, shift, turned), how
        self.marks = None if marks is None else tuple(marks.ravel().tolist())
        self.count = math.prod(window) if self.marks is None else sum(self.marks)
        self.near = patches(x, sizes, self.marks, starts, edges, number("ndimage", "cval", cval))


def _ranked(input, rank: Callable[[int], int] | int, size, footprint, output, mode, cval, origin, axes):
    """Return the elements of a rank, which may be a function of the number of neighbours."""
    windows = _Windows(input, size, footprint, mode, cval, origin, axes)
    count = windows.count
    given = rank(count) if callable(rank) else rank
    at = given + count if given < 0 else given
    if not 0 <= at < count:
        raise wrong("rank", f"be below the {count} elements of the window", given)
    if at == 0:
        y = ops.min(windows.near, -1)
    elif at == count - 1:
        y = ops.max(windows.near, -1)
    else:
        y = ops.sort(windows.near, -1)[..., at]
    return closed(y, opened(input, output)[1])


@ranked
def minimum_filter(
    input: Tensor, size: Integers | None = None, footprint=None, output=None, mode="reflect", cval=0.0,
    origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Minima of windows."""
    return _ranked(input, 0, size, footprint, output, mode, cval, origin, axes)


@ranked
def maximum_filter(
    input: Tensor, size: Integers | None = None, footprint=None, output=None, mode="reflect", cval=0.0,
    origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Maxima of windows."""
    return _ranked(input, -1, size, footprint, output, mode, cval, origin, axes)


@ranked
def minimum_filter1d(
    input: Tensor, size: Integer, axis: Axis = -1, output=None, mode="reflect", cval=0.0, origin: Integer = 0
) -> Tensor:
    """Minima of windows along an axis."""
    return _ranked(input, 0, size, None, output, mode, cval, origin, axis)


@ranked
def maximum_filter1d(
    input: Tensor, size: Integer, axis: Axis = -1, output=None, mode="reflect", cval=0.0, origin: Integer = 0
) -> Tensor:
    """Maxima of windows along an axis."""
    return _ranked(input, -1, size, None, output, mode, cval, origin, axis)


@ranked
def rank_filter(
    input: Tensor, rank: Integer, size: Integers | None = None, footprint=None, output=None, mode="reflect", cval=0.0,
    origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Order statistics of windows; rank 0 is the minimum and -1 the maximum."""
    return _ranked(input, int(rank), size, footprint, output, mode, cval, origin, axes)


@ranked
def median_filter(
    input: Tensor, size: Integers | None = None, footprint=None, output=None, mode="reflect", cval=0.0,
    origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Medians of windows; for an even number of elements the upper one."""
    return _ranked(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes)


@ranked
def percentile_filter(
    input: Tensor, percentile, size: Integers | None = None, footprint=None, output=None, mode="reflect", cval=0.0,
    origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Percentiles of windows, from 0 for the minimum to 100 for the maximum; negative ones count from 100."""
    share = number("ndimage", "percentile", percentile)
    if isinstance(share, complex) or not -100 <= share <= 100:
        raise wrong("percentile", "be from -100 to 100", repr(percentile))
    share = share + 100 if share < 0 else share

    def rank(count: int) -> int:
        return count - 1 if share == 100 else int(float(count) * share / 100.0)

    return _ranked(input, rank, size, footprint, output, mode, cval, origin, axes)


# Grey morphology -----------------------------------------------------------------------------------------------------


def _morphed(x, size, footprint, structure, mode, cval, origin, axes, dilating: bool):
    """Return the erosion (minimum of neighbours minus structure) or the dilation (maximum of neighbours plus it)."""
    given = x
    if structure is not None:
        x, structure = alike(x, structure)
    windows = _Windows(x, size, footprint, mode, cval, origin, axes, structure, dilating)
    near = windows.near
    if structure is not None:
        structure = ops.flip(structure, tuple(range(len(structure.shape)))) if dilating else structure
        heights = ops.reshape(structure, (-1,))
        if windows.marks is not None:
            heights = ops.take(heights, np.flatnonzero(windows.marks), 0)
        near = near + heights if dilating else near - heights
    return closed((ops.max if dilating else ops.min)(near, -1), opened(given, None)[1])


def _morphology(name: str, title: str, formula: Callable):
    """Return a function of :mod:`scipy.ndimage` from a formula of the tensor, the erosion and the dilation."""

    def morphed(
        input: Tensor, size: Integers | None = None, footprint=None, structure: Tensor | None = None, output=None,
        mode="reflect", cval=0.0, origin: Integers = 0, *, axes: Axes = None,
    ) -> Tensor:  # fmt: skip
        x = input if ops.is_tensor(input) else ops.convert_to_tensor(input)
        settings = (size, footprint, structure, mode, cval, origin, axes)
        y = formula(x, lambda x: _morphed(x, *settings, False), lambda x: _morphed(x, *settings, True))
        return closed(y, opened(x, output)[1])

    morphed.__name__ = morphed.__qualname__ = name
    morphed.__doc__ = title
    return ranked(morphed)


grey_erosion = _morphology("grey_erosion", "Erosion: minimum of each element's neighbours.", lambda x, e, d: e(x))
grey_dilation = _morphology("grey_dilation", "Dilation: maximum of each element's neighbours.", lambda x, e, d: d(x))
grey_opening = _morphology("grey_opening", "Opening: an erosion followed by a dilation.", lambda x, e, d: d(e(x)))
grey_closing = _morphology("grey_closing", "Closing: a dilation followed by an erosion.", lambda x, e, d: e(d(x)))
morphological_gradient = _morphology(
    "morphological_gradient", "The dilation minus the erosion.", lambda x, e, d: d(x) - e(x)
)
morphological_laplace = _morphology(
    "morphological_laplace", "Dilation plus erosion minus twice the tensor.", lambda x, e, d: d(x) + e(x) - 2 * x
)
white_tophat = _morphology("white_tophat", "The tensor minus its opening.", lambda x, e, d: x - d(e(x)))
black_tophat = _morphology("black_tophat", "The closing of the tensor minus the tensor.", lambda x, e, d: e(d(x)) - x)
