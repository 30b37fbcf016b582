"""Statistics of labelled elements, Fourier-domain filters, and SciPy's searches and binary morphology.

The last two take known numbers and have no derivatives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import ops
from ...annotations import Axis, Integer, Tensor
from ...errors import ShapeError
from .._define import family
from .._neighbours import last, number
from .._tensors import as_complex, constant, constant_like, inexact, is_complex, numbers, wrong
from .filters import closed, opened
from .interpolation import axis_values

KNOWN = """
binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening binary_propagation
distance_transform_bf distance_transform_cdt distance_transform_edt extrema find_objects generate_binary_structure
histogram iterate_structure label maximum_position minimum_position value_indices watershed_ift
""".split()
globals().update({name: constant(f"ndimage.{name}") for name in KNOWN})


def _prepare_metric(given: dict[str, Any]) -> None:
    """Convert a metric to truth values; raise an error if it has another rank than the input.

    SciPy checks neither. It reads the bytes of any array as truth values, and beyond the end of a smaller one.
    """
    metric = given.get("metric", "chessboard")
    if isinstance(metric, str):
        return
    shape = (3,) * np.ndim(given["input"])
    known = np.asarray(metric)
    if known.shape != shape or known.dtype.kind not in "biuf":
        raise wrong("metric", f"be 'chessboard', 'taxicab', or numbers of the shape {shape}", metric, ShapeError)
    given["metric"] = known != 0


distance_transform_cdt = constant("ndimage.distance_transform_cdt", prepare=_prepare_metric)

__all__ = [
    *KNOWN,
    *"center_of_mass fourier_gaussian fourier_shift fourier_uniform maximum mean median minimum".split(),
    *"standard_deviation sum sum_labels variance".split(),
]
LABELS = {
    "labels": "known numbers of ``input``'s shape; None for a single label.",
    "index": "one or several labels; None for all labels above 0 together.",
}


class _Groups:
    """The elements of each label as flat positions, and the shape of the results."""

    def __init__(self, input, labels, index):
        x = inexact(input if ops.is_tensor(input) else ops.convert_to_tensor(input))
        self.sizes = tuple([int(n) for n in x.shape])
        self.x = ops.reshape(x, (-1,))
        self.shape: tuple = ()
        if labels is None:
            if index is not None:
                raise wrong("labels", "be given with `index`")
            self.places = [np.arange(math.prod(self.sizes))]
            return
        known = _numbers("labels", labels)
        try:
            flat = np.broadcast_to(known, self.sizes).ravel()
        except ValueError:
            raise wrong("labels", f"be of the shape of `input`, {self.sizes}", known.shape, ShapeError) from None
        if index is None:
            self.places = [np.flatnonzero(flat > 0)]
            return
        wanted = _numbers("index", index)
        self.shape = wanted.shape
        self.places = [np.flatnonzero(flat == one) for one in wanted.ravel()]

    def results(self, formula, empty=math.nan):
        """Return ``formula(x, places)`` for each label, a number of its elements and their flat positions."""
        found = [
            formula(ops.take(self.x, places, 0), places) if len(places) else ops.full_like(ops.sum(self.x), empty)
            for places in self.places
        ]
        if not self.shape and len(found) == 1:
            return found[0]
        return ops.reshape(ops.stack(found, 0), self.shape) if found else self.x[:0]


def _variance(x, _):
    return ops.mean((x - ops.mean(x)) ** 2)


def _deviation(x, _):
    return ops.std(x)


def _numbers(name: str, value) -> np.ndarray:
    found = numbers("ndimage", name, value)
    if found.dtype.kind not in "fiub":
        raise wrong(name, "be numbers")
    return found


def _label_measurement(name: str, title: str, formula, gradient: str, empty: float = math.nan):
    """Return a function of :mod:`scipy.ndimage` from a formula of one label's elements and their positions."""

    def measured(input: Tensor, labels=None, index=None) -> Tensor:
        return _Groups(input, labels, index).results(formula, empty)

    measured.__name__ = measured.__qualname__ = name
    measured.__doc__ = f"{title} of the elements of each label."
    without = "0" if empty == 0 else "NaN"
    returns = f"A number, or a tensor of the shape of ``index``; {without} for a label that does not occur."
    return family(LABELS, returns=returns, raises="ShapeError: labels of the wrong shape.", gradient=gradient)(measured)


_SHARED = "The upstream gradient, passed to each of the elements."
_CHOSEN = "The upstream gradient, passed to the chosen element; equal elements share it."
sum = _label_measurement("sum", "The sum", lambda x, _: ops.sum(x), _SHARED, 0.0)
sum_labels = _label_measurement("sum_labels", "The sum", lambda x, _: ops.sum(x), _SHARED, 0.0)
mean = _label_measurement(
    "mean", "The mean", lambda x, _: ops.mean(x), "The upstream gradient divided by their number."
)
variance = _label_measurement(
    "variance", "The variance", _variance, "``2 (x - mean) / n`` times the upstream gradient."
)
standard_deviation = _label_measurement(
    "standard_deviation", "The standard deviation", _deviation, "``(x - mean) / (n y)``; 0 where all are equal."
)
minimum = _label_measurement("minimum", "The minimum", lambda x, _: ops.min(x), _CHOSEN, 0.0)
maximum = _label_measurement("maximum", "The maximum", lambda x, _: ops.max(x), _CHOSEN, 0.0)
median = _label_measurement("median", "The median", lambda x, _: ops.median(x), "Passed to the middle elements.")


@family(LABELS, raises="ShapeError: labels of the wrong shape.")
def center_of_mass(input: Tensor, labels=None, index=None):
    """Center of mass of each label: the mean position of its elements, weighted by their values.

    Returns:
        A tuple with one number for each dimension, or a list of such tuples.

    Gradient:
        ``(position - y) / sum`` times the upstream gradient.
    """
    groups = _Groups(input, labels, index)

    def along(axis):
        def formula(x, places):
            at = constant_like(np.unravel_index(places, groups.sizes)[axis], x)
            return ops.sum(x * at) / ops.sum(x)

        return formula

    found = [groups.results(along(axis)) for axis in range(len(groups.sizes))]
    if not groups.shape:
        return tuple(found)
    flat = [ops.reshape(part, (-1,)) for part in found]
    return [tuple(part[i] for part in flat) for i in range(len(groups.places))]


# Spectra -------------------------------------------------------------------------------------------------------------

spectral = family(
    {
        "n": "if not negative, ``input`` is a half spectrum along ``axis``, of a signal with ``n`` elements.",
        "output": "the dtype of the result.",
    },
    returns="A tensor of ``input``'s shape and dtype.",
)


def _frequencies(x, n, axis) -> list:
    """Return for each dimension the integer frequencies divided by its length."""
    n = int(number("ndimage", "n", n))
    axis = last("ndimage", x, axis)[1]
    found = []
    for i, size in enumerate(map(int, x.shape)):
        half = n >= 0 and i == axis
        whole = np.arange(size) if half else np.round(np.fft.fftfreq(size) * size)
        shape = [-1 if j == i else 1 for j in range(len(x.shape))]
        found.append(ops.reshape(constant_like(whole / max(n if half else size, 1), ops.real(x)), shape))
    return found


def _filtered(x, value, name: str, n, axis, factor):
    """Multiply a spectrum by ``factor(value, frequencies)`` for each dimension."""
    for one, at in zip(axis_values(x, value, name), _frequencies(x, n, axis)):
        x = ops.multiply(x, factor(one, at))
    return x


@spectral
def fourier_gaussian(input: Tensor, sigma: Tensor, n: Integer = -1, axis: Axis = -1, output=None) -> Tensor:
    """Multiply a Fourier transform by that of a Gaussian.

    Args:
        sigma: the standard deviation, or one for each axis.

    Gradient:
        By ``input`` and ``sigma``.
    """
    x, dtype = opened(input, output)
    y = _filtered(x, sigma, "sigma", n, axis, lambda width, at: ops.exp(-2 * (math.pi * width * at) ** 2))
    return closed(y, dtype) if output is not None else y


@spectral
def fourier_uniform(input: Tensor, size: Tensor, n: Integer = -1, axis: Axis = -1, output=None) -> Tensor:
    """Multiply a Fourier transform by that of a box.

    Args:
        size: the box's size, or one for each axis.

    Gradient:
        By ``input`` and ``size``.
    """
    x, dtype = opened(input, output)
    y = _filtered(x, size, "size", n, axis, lambda width, at: ops.sinc(width * at))
    return closed(y, dtype) if output is not None else y


@spectral
def fourier_shift(input: Tensor, shift: Tensor, n: Integer = -1, axis: Axis = -1, output=None) -> Tensor:
    """Multiply a Fourier transform by phases that shift the tensor.

    Args:
        shift: the number of elements to shift by, or one number for each axis.
        output: ignored.

    Returns:
        A complex tensor of ``input``'s shape.

    Gradient:
        By ``input`` and ``shift``.
    """

    def turned(by, at):
        turn = -2 * math.pi * by * at
        return as_complex(ops.cos(turn), ops.sin(turn))

    x, dtype = opened(input, None)
    y = _filtered(x, shift, "shift", n, axis, turned)
    return y if is_complex(y) else closed(y, dtype)
