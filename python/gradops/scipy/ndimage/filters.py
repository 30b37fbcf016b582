"""Linear filters: correlation, convolution, Gaussians, derivatives and means.

All are weighted sums over windows, along one axis after another where weights allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, ops
from ...annotations import Axes, Axis, Function, Integer, Integers, Tensor
from ...backends._shared import combined
from ...errors import ArgumentTypeError, ShapeError
from ...ops._checks import check_axes, choice, is_numeric, known, not_a_tensor
from ...ops.convolution import conv_to_output
from ...ops.reductions import root
from .._define import family
from .._neighbours import alike, back, bilinear, extended, last, line, number, real_like, vector
from .._tensors import constant_like, inexact, is_complex, wrong

__all__ = """
convolve convolve1d correlate correlate1d gaussian_filter gaussian_filter1d gaussian_gradient_magnitude
gaussian_laplace generic_gradient_magnitude generic_laplace laplace prewitt sobel uniform_filter uniform_filter1d
""".split()

MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}

ARGUMENTS = {
    "axes": "the dimensions to filter, by default all. Other settings are single values, or one for each axis.",
    "output": "the dtype of the result, by default that of ``input``.",
    "mode": 'the padding: ``"reflect"``, ``"mirror"``, ``"nearest"``, ``"wrap"``, or ``"constant"`` with ``cval``.',
    "origin": "the number of elements that the windows are shifted to the left.",
}
SAME = "A tensor of ``input``'s shape and dtype."
ERRORS = "ArgumentError: a setting out of range or for the wrong number of axes.\nAxisError: there is no such axis."
bilinear_filter = family(
    ARGUMENTS, returns=SAME, raises=ERRORS, gradient="By ``input`` and ``weights``; the result is bilinear in them."
)
linear_filter = family(
    ARGUMENTS, returns=SAME, raises=ERRORS, gradient="The transposed filter of the upstream gradient."
)
gaussian = family(
    ARGUMENTS
    | {
        "sigma": "the standard deviation.",
        "truncate": "the number of standard deviations at which weights are cut off; or ``radius`` in elements.",
        "kwargs": "``truncate`` or ``radius``, see :func:`gaussian_filter`.",
    },
    returns=SAME,
    raises=ERRORS,
    gradient="By ``input`` and ``sigma``, with the windows' sizes held constant; 0 where a magnitude is 0.",
)
generic = family(ARGUMENTS, returns=SAME, raises=ERRORS, gradient="Through the function; 0 where a magnitude is 0.")

# Arguments -----------------------------------------------------------------------------------------------------------


def opened(input, output) -> tuple:
    """Return the tensor in a floating dtype and the dtype of the result; as in SciPy, integers give integers."""
    x = input if ops.is_tensor(input) else ops.convert_to_tensor(input)
    if not is_numeric(x):
        raise not_a_tensor("ndimage", "input", x)
    if isinstance(output, np.ndarray) or ops.is_tensor(output):
        raise wrong("output", "be a dtype; results are new tensors", kind=ArgumentTypeError)
    try:
        return inexact(x), ops.dtype(x) if output is None else np.dtype(output).name
    except TypeError:
        raise wrong("output", "be a dtype", repr(output), ArgumentTypeError) from None


def closed(y, dtype: str):
    """Cast a result to its dtype."""
    return y if ops.dtype(y) == dtype or (is_complex(y) and "complex" not in dtype) else ops.cast(y, dtype)


def _truncate_between_axes(x, dtype: str):
    """Return the input for the next axis: SciPy truncates to integers after each axis if the result has integers."""
    return inexact(closed(x, dtype)) if dtype in dtypes.INTEGERS else x


def each(value, count: int, name: str) -> list:
    """Return a list with a setting for each axis."""
    if isinstance(value, np.ndarray) and not value.shape:
        value = value.item()
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        return [value] * count
    if len(value) != count:
        raise wrong(name, f"be one setting, or one for each of {count} axes", len(value))
    return list(value)


def padding_rules(mode, count: int = 1) -> list[str]:
    """Return the padding rule for each axis."""
    return [MODES[choice("ndimage", one, tuple(MODES), "mode")] for one in each(mode, count, "mode")]


def sort_by_axis(axes, settings) -> list:
    """Return the settings sorted by axis."""
    return [one for _, one in sorted(zip(axes, settings), key=lambda pair: pair[0])]


def window_start(size: int, origin, convolving: bool = False) -> int:
    """Return the number of elements that a window of ``size`` begins before its element."""
    shift = number("ndimage", "origin", origin)
    if shift != int(shift.real):
        raise wrong("origin", "be a whole number", repr(origin))
    shift = int(shift)
    start = size // 2 - shift - (size % 2 == 0) if convolving else size // 2 + shift
    if not 0 <= start < size:
        raise wrong("origin", f"leave the element within its window of {size}", shift)
    return start


def whole(value, name: str) -> int:
    """Return a setting that must be a positive integer."""
    found = number("ndimage", name, value)
    if isinstance(found, complex) or found != int(found) or found < 1:
        raise wrong(name, "be a positive whole number", repr(value))
    return int(found)


# Weighted sums -------------------------------------------------------------------------------------------------------


def _filter_along(input, weights, axis, output, mode, cval, origin, convolving: bool):
    x, dtype = opened(input, output)
    x, weights = alike(x, weights)
    weights = vector("ndimage", weights if convolving else ops.conj(weights), "weights")
    return closed(_weighted(x, weights, axis, mode, cval, origin, convolving), dtype)


def _weighted(x, weights, axis, mode, cval, origin=0, convolving: bool = False):
    if not ops.is_tensor(weights):
        weights = fixed(x, weights)
    x, axis = last("ndimage", x, axis)
    (how,) = padding_rules(mode)
    size = int(weights.shape[0])
    start = window_start(size, origin, convolving)
    x = extended(x, start, size - 1 - start, how, -1, number("ndimage", "cval", cval))
    return back(line(x, weights if convolving else ops.flip(weights, 0), 0, 0), axis)


def fixed(x, values) -> Any:
    """Return constants as a tensor of ``x``'s library and precision."""
    return constant_like(np.asarray(values, float), real_like(x))


@bilinear_filter
def correlate1d(
    input: Tensor, weights: Tensor, axis: Axis = -1, output=None, mode="reflect", cval=0.0, origin: Integer = 0
) -> Tensor:
    """Correlation along an axis: sums of windows, weighted by the conjugates of ``weights``."""
    return _filter_along(input, weights, axis, output, mode, cval, origin, False)


@bilinear_filter
def convolve1d(
    input: Tensor, weights: Tensor, axis: Axis = -1, output=None, mode="reflect", cval=0.0, origin: Integer = 0
) -> Tensor:
    """Convolution along an axis: :func:`correlate1d` with reversed, conjugated weights."""
    return _filter_along(input, weights, axis, output, mode, cval, origin, True)


def _filter_with_windows(input, weights, output, mode, cval, origin, axes, convolving: bool):
    x, dtype = opened(input, output)
    x, weights = alike(x, weights)
    rank = len(x.shape)
    along = check_axes("ndimage", axes, rank, "axes")
    if len(weights.shape) != len(along) or 0 in tuple(weights.shape) or not along:
        raise wrong(
            "weights", f"have a dimension for each of {len(along)} axes, and elements", tuple(weights.shape), ShapeError
        )
    how = sort_by_axis(along, padding_rules(mode, len(along)))
    shifts = sort_by_axis(along, each(origin, len(along), "origin"))
    along = tuple(sorted(along))  # SciPy orders the window's dimensions like this
    fill = number("ndimage", "cval", cval)
    for axis, size, one, shift in zip(along, map(int, weights.shape), how, shifts):
        start = window_start(size, shift, convolving)
        x = extended(x, start, size - 1 - start, one, axis, fill)
    weights = ops.flip(weights, tuple(range(len(along)))) if convolving else ops.conj(weights)
    ends = tuple(range(rank - len(along), rank))
    y = bilinear(lambda x, w: _correlated(x, w, len(along)), ops.moveaxis(x, along, ends), weights)
    return closed(ops.moveaxis(y, ends, along), dtype)


def _correlated(x, weights, count: int):
    """Return the correlation along the last ``count`` dimensions."""
    axis = len(x.shape) - count
    batch, sizes = tuple(x.shape[:axis]), tuple(map(int, x.shape[axis:]))
    window = tuple(map(int, weights.shape))
    if count > 3:  # convolution ops have at most 3 dimensions: sum over the outermost one
        left = sizes[0] - window[0] + 1
        parts = [ops.take(x, np.arange(i, i + left), axis) for i in range(window[0])]
        return total([_correlated(part, weights[i], count - 1) for i, part in enumerate(parts)])
    kernel, ones = ops.reshape(weights, (*window, 1, 1)), (1,) * count
    rows = ops.reshape(x, (math.prod(tuple(map(int, batch))), *sizes, 1))
    y = conv_to_output(rows, kernel, ones, ((0, 0),) * count, ones, 1, False)
    return ops.reshape(y, (*batch, *tuple(y.shape[1:-1])))


@bilinear_filter
def correlate(
    input: Tensor, weights: Tensor, output=None, mode="reflect", cval=0.0, origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Correlation: sums of windows, weighted by the conjugates of ``weights``.

    Raises:
        ShapeError: ``weights`` without exactly one dimension for each axis.
    """
    return _filter_with_windows(input, weights, output, mode, cval, origin, axes, False)


@bilinear_filter
def convolve(
    input: Tensor, weights: Tensor, output=None, mode="reflect", cval=0.0, origin: Integers = 0, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Convolution: :func:`correlate` with reversed, conjugated weights.

    Raises:
        ShapeError: ``weights`` without exactly one dimension for each axis.
    """
    return _filter_with_windows(input, weights, output, mode, cval, origin, axes, True)


# Differences ---------------------------------------------------------------------------------------------------------


def _difference(input, axis, output, mode, cval, across):
    """Return the difference along an axis, smoothed along the others."""
    x, dtype = opened(input, output)
    along = last("ndimage", x, axis)[1]
    how = each(mode, len(x.shape), "mode")
    for i in sorted(range(len(x.shape)), key=lambda i: i != along):
        x = _weighted(x, [-1, 0, 1] if i == along else across, i, how[i], cval)
    return closed(x, dtype)


@linear_filter
def prewitt(input: Tensor, axis: Axis = -1, output=None, mode="reflect", cval=0.0) -> Tensor:
    """Prewitt filter: differences along an axis, sums of three along the others."""
    return _difference(input, axis, output, mode, cval, [1, 1, 1])


@linear_filter
def sobel(input: Tensor, axis: Axis = -1, output=None, mode="reflect", cval=0.0) -> Tensor:
    """Sobel filter: differences along an axis, weighted sums of three along the others."""
    return _difference(input, axis, output, mode, cval, [1, 2, 1])


def total(parts: list):
    """Return the sum of tensors."""
    return sum(parts[1:], parts[0])


def length(parts: list):
    """Return the square root of a sum of squares, with gradient 0 at 0."""
    return root(total([part * part for part in parts]), combined(*parts))


def _joined(join: Callable, derivative: Callable, input, output, mode, axes):
    """Return the sum or the norm of ``derivative(x, axis, mode, axes)`` over all axes."""
    x, dtype = opened(input, output)
    along = check_axes("ndimage", axes, len(x.shape), "axes")
    parts = [derivative(x, axis, how, along) for axis, how in zip(along, each(mode, len(along), "mode"))]
    parts = [_truncate_between_axes(part, dtype) for part in parts]
    return closed(join(parts) if parts else x, dtype)


def _integer_output(input, output) -> str | None:
    """Return the dtype of the result if it is an integer dtype. SciPy also stores the derivatives in it."""
    dtype = opened(input, output)[1]
    return dtype if dtype in dtypes.INTEGERS else None


def _filter_with_function(join: Callable, function: Callable, input, output, mode, cval, extra, keywords, axes):
    stored = _integer_output(input, output)

    def derivative(x, axis, how, _):
        return function(x, axis, stored, how, cval, *extra, **(keywords or {}))

    return _joined(join, derivative, input, output, mode, axes)


@linear_filter
def laplace(input: Tensor, output=None, mode="reflect", cval=0.0, *, axes: Axes = None) -> Tensor:
    """Laplace filter: the sum of second differences along all axes."""
    return _joined(total, lambda x, axis, how, _: _weighted(x, [1, -2, 1], axis, how, cval), input, output, mode, axes)


@generic
def generic_laplace(
    input: Tensor, derivative2: Function, output=None, mode="reflect", cval=0.0, extra_arguments=(),
    extra_keywords=None, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Laplace filter with second derivatives ``derivative2(input, axis, output, mode, cval, ...)``."""
    return _filter_with_function(total, derivative2, input, output, mode, cval, extra_arguments, extra_keywords, axes)


@generic
def generic_gradient_magnitude(
    input: Tensor, derivative: Function, output=None, mode="reflect", cval=0.0, extra_arguments=(),
    extra_keywords=None, *, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Magnitude of the gradient, with derivatives ``derivative(input, axis, output, mode, cval, ...)``."""
    return _filter_with_function(length, derivative, input, output, mode, cval, extra_arguments, extra_keywords, axes)


# Gaussians -----------------------------------------------------------------------------------------------------------


def _radius(sigma, truncate, radius) -> int:
    if radius is None:
        value = sigma if isinstance(sigma, (int, float)) else known(sigma)
        if value is None:
            raise wrong("radius", "be given where `sigma` has no value yet, as in a program")
        radius = float(number("ndimage", "truncate", truncate)) * float(value) + 0.5
        if not radius < 2**31:
            raise wrong("sigma", "be finite", value)
    radius = int(number("ndimage", "radius", radius))
    if radius < 0:
        raise wrong("radius", "not be negative", radius)
    return radius


def _gaussian(x, sigma, order, truncate, radius, axis, mode, cval):
    """Filter along an axis by a Gaussian or its derivative; a ``sigma`` that is a tensor has a gradient."""
    order, radius = int(number("ndimage", "order", order)), _radius(sigma, truncate, radius)
    if order < 0:
        raise wrong("order", "not be negative", order)
    if not isinstance(sigma, (int, float)):
        sigma = alike(x, sigma)[1]
    square = sigma * sigma
    places = fixed(x, np.arange(-radius, radius + 1))
    density = ops.exp(-0.5 / square * places * places)
    density = density / ops.sum(density)
    factors = [1.0] + [0.0] * order  # coefficients of the polynomial that multiplies the density
    for _ in range(order):
        factors = [
            (factors[i + 1] * (i + 1) if i < order else 0.0) + (factors[i - 1] / -square if i else 0.0)
            for i in range(order + 1)
        ]
    if order:
        density = density * sum((factors[i] * places**i for i in range(1, order + 1)), factors[0] + 0 * places)
    return _weighted(x, ops.flip(density, 0), axis, mode, cval)


@gaussian
def gaussian_filter1d(
    input: Tensor, sigma: Tensor, axis: Axis = -1, order: Integer = 0, output=None, mode="reflect", cval=0.0,
    truncate=4.0, *, radius: Integer | None = None,
) -> Tensor:  # fmt: skip
    """Gaussian filter along an axis, or with ``order`` a derivative of the Gaussian."""
    x, dtype = opened(input, output)
    return closed(_gaussian(x, sigma, order, truncate, radius, axis, mode, cval), dtype)


@gaussian
def gaussian_filter(
    input: Tensor, sigma: Tensor, order: Integers = 0, output=None, mode="reflect", cval=0.0, truncate=4.0, *,
    radius: Integers | None = None, axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Gaussian filter along several axes, see :func:`gaussian_filter1d`."""
    return _smoothed(input, sigma, order, output, mode, cval, axes, truncate, radius)


def _smoothed(input, sigma, order, output, mode, cval, axes, truncate=4.0, radius=None):
    x, dtype = opened(input, output)
    along = check_axes("ndimage", axes, len(x.shape), "axes")
    if ops.is_tensor(sigma) and len(sigma.shape):
        sigma = [sigma[i] for i in range(int(sigma.shape[0]))]
    settings = {"sigma": sigma, "order": order, "mode": mode, "radius": radius}
    for axis, width, degree, how, size in zip(along, *[each(one, len(along), n) for n, one in settings.items()]):
        if not isinstance(width, (int, float)) or width > 1e-15:
            x = _truncate_between_axes(_gaussian(x, width, degree, truncate, size, axis, how, cval), dtype)
    return closed(x, dtype)


def _filter_with_gaussians(join: Callable, order: int, input, sigma, output, mode, cval, axes, settings: dict):
    unknown = next((name for name in settings if name not in ("truncate", "radius")), None)
    if unknown is not None:
        raise ArgumentTypeError(f"`ndimage`: there is no argument `{unknown}`.", argument=unknown)

    stored = _integer_output(input, output)

    def derivative(x, axis, _, along):
        return _smoothed(x, sigma, [order * (i == axis) for i in along], stored, mode, cval, along, **settings)

    return _joined(join, derivative, input, output, mode, axes)


@gaussian
def gaussian_laplace(
    input: Tensor, sigma: Tensor, output=None, mode="reflect", cval=0.0, *, axes: Axes = None, **kwargs
) -> Tensor:
    """Laplace filter with second derivatives of Gaussians."""
    return _filter_with_gaussians(total, 2, input, sigma, output, mode, cval, axes, kwargs)


@gaussian
def gaussian_gradient_magnitude(
    input: Tensor, sigma: Tensor, output=None, mode="reflect", cval=0.0, *, axes: Axes = None, **kwargs
) -> Tensor:
    """Magnitude of the gradient, with derivatives of Gaussians."""
    return _filter_with_gaussians(length, 1, input, sigma, output, mode, cval, axes, kwargs)


# Means ---------------------------------------------------------------------------------------------------------------


def _mean(input, output, cval, settings):
    x, dtype = opened(input, output)
    for axis, size, mode, origin in settings:
        count = whole(size, "size")
        if count > 1:
            x = _truncate_between_axes(_weighted(x, [1.0] * count, axis, mode, cval, origin) / count, dtype)
    return closed(x, dtype)


@linear_filter
def uniform_filter1d(
    input: Tensor, size: Integer, axis: Axis = -1, output=None, mode="reflect", cval=0.0, origin: Integer = 0
) -> Tensor:
    """Means of windows of ``size`` elements along an axis."""
    return _mean(input, output, cval, [(axis, size, mode, origin)])


@linear_filter
def uniform_filter(
    input: Tensor, size: Integers = 3, output=None, mode="reflect", cval=0.0, origin: Integers = 0, *,
    axes: Axes = None,
) -> Tensor:  # fmt: skip
    """Means of windows of ``size`` elements."""
    x = opened(input, output)[0]
    along = check_axes("ndimage", axes, len(x.shape), "axes")
    settings = {"size": size, "mode": mode, "origin": origin}
    columns = [each(one, len(along), name) for name, one in settings.items()]
    return _mean(input, output, cval, zip(along, *columns))
