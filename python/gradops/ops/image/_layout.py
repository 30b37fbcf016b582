"""Helpers of the image ops: layout, dtypes, constants, and borders.

Images are ``(height, width, channels)`` or ``(batch, height, width, channels)``; with
``data_format="channels_first"`` the channels come before the height. None means ``"channels_last"``.

All ops share a dtype rule: floats are computed and returned in their own dtype (16-bit floats are computed in float32);
integers and bools are computed in ``floatx``, rounded half to even, clipped to the dtype's range and cast back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backends, config, dtypes
from ...backends import tracing
from ...errors import ArgumentTypeError, Given, Position, ShapeError
from .. import _checks
from ..conversion import cast, dtype, shape
from ..elementwise import greater_equal, isnan, maximum, minimum, mod, multiply, round, subtract
from ..indexing import get_item, take, where
from ..joining import concatenate
from ..products import tensordot
from ..shaping import broadcast_to, transpose

FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def axes_of(op: str, images, data_format, spatial: int = 2, name: str = "images") -> tuple[list[int], int]:
    """Return the spatial axes and the channel axis of one image or a batch."""
    _checks.choice(op, data_format, (None, "channels_last", "channels_first"), "data_format")
    rank = _checks.check_rank(op, images, (spatial + 1, spatial + 2), name)
    first = data_format == "channels_first"
    start = rank - spatial - (not first)
    return list(range(start, start + spatial)), start - 1 if first else rank - 1


def check_channels(op: str, images, axis: int, counts: tuple[int, ...]) -> int:
    """Return the number of channels, or raise if it is not one of ``counts``."""
    count = shape(images)[axis]
    if count not in counts:
        wanted = " or ".join(map(str, counts))
        raise ShapeError(
            f"`{op}`: `images` must have {wanted} channels along axis {{axis}}; got {{images}}.",
            argument="images",
            axis=Position(axis),
            images=_checks.describe(images),
        )
    return count


def check_pixels(op: str, images, axes, name: str = "images") -> None:
    """Raise unless there is at least one pixel to read."""
    if any(shape(images)[a] == 0 for a in axes):
        raise ShapeError(
            f"`{op}`: `{name}` must have a pixel at least; got {{images}}.",
            argument=name,
            images=_checks.describe(images),
        )


def several(op: str, value, count: int, name: str, least: int | None = 1) -> tuple[int, ...]:
    """Return a number or a sequence as ``count`` integers, or raise if one is below ``least``."""
    values = value if isinstance(value, (list, tuple, np.ndarray)) else (value,) * count
    numbers = tuple(_checks.integer(op, v, name) for v in values)
    if len(numbers) != count or (least is not None and any(n < least for n in numbers)):
        bound = "" if least is None else f" of at least {least}"
        raise _checks.ArgumentError(
            f"`{op}`: `{name}` must be {count} whole numbers{bound}; got {{value}}.",
            argument=name,
            value=Given(repr(value), value),
        )
    return numbers


def check_floating(op: str, images) -> None:
    """Raise for integers, whose range of colours is not the floats' [0, 1]."""
    name = dtype(images)
    if dtypes.kind(name) != 2:
        raise ArgumentTypeError(
            f"`{op}`: `images` must be of a floating dtype, with values in [0, 1]; got {{images}}.",
            argument="images",
            images=_checks.describe(images),
        )


def working_dtype(*tensors) -> str:
    """Return the dtype to compute in: at least float32, and ``floatx`` for integers."""
    name = dtype(tensors[0])
    for tensor in tensors[1:]:
        name = dtypes.promote(name, dtype(tensor))
    if not dtypes.is_floating(name):
        name = config.floatx()
    return "float32" if name in ("float16", "bfloat16") else name


def working(x):
    """Return ``x`` in the dtype to compute in."""
    name = working_dtype(x)
    return x if name == dtype(x) else cast(x, name)


def restored(x, name: str):
    """Return a computed image in its original dtype; integers are rounded and clipped to their range."""
    if dtype(x) == name:
        return x
    if dtypes.is_floating(name):
        return cast(x, name)
    if name == "bool":
        return greater_equal(x, 0.5)
    limits, kind = np.iinfo(name), np.dtype(dtype(x)).type
    high = kind(limits.max)
    if int(high) > limits.max:
        high = np.nextafter(high, kind(0))
    x = where(isnan(x), 0.0, x)  # backends cast NaN to different integers
    return cast(minimum(maximum(round(x), float(limits.min)), float(high)), name)


def constant(value, like, dtype: str | None = None):
    """Return a NumPy array as a tensor of ``like``'s library and device."""
    owner: Any = backends.backend_of(like)
    if owner is None:  # a variable
        like = like.data
        owner = backends.backend_of(like)
    return owner.convert(value, dtype, like=like)


def part(x, axis: int, start: int, stop: int):
    """Return ``x`` from ``start`` up to ``stop`` along an axis."""
    return get_item(x, (slice(None),) * axis + (slice(start, stop),))


def multiply_along(x, matrix, axis: int):
    """Return ``x`` multiplied by a matrix ``(in, out)`` along an axis."""
    rank = len(x.shape)
    product = tensordot(x, matrix, ([axis], [0]))
    if axis == rank - 1:
        return product
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    return transpose(product, order)


def map_inside(index, size: int, mode: str):
    """Return positions with those outside ``[0, size)`` replaced as the fill mode says."""
    if mode == "wrap":
        return mod(index, size)
    if mode == "mirror" and size > 1:
        index = mod(index, 2 * size - 2)
        return minimum(index, subtract(2 * size - 2, index))
    if mode == "reflect":
        index = mod(index, 2 * size)
        return minimum(index, subtract(2 * size - 1, index))
    return minimum(maximum(index, 0), size - 1) if size > 1 else multiply(index, 0)


@tracing.constant
def _continued(before: int, after: int, size: int, mode: str):
    """Return the positions of an axis extended at both ends, as the fill mode says."""
    return map_inside(np.arange(-before, size + after), size, mode)


def padded(x, axis: int, before: int, after: int, mode: str = "constant", value: float = 0):
    """Return ``x`` with more elements at both ends of an axis."""
    if before == after == 0:
        return x
    size = shape(x)[axis]
    if mode != "constant":
        return take(x, _continued(before, after, size, mode), axis)
    before, after = (
        broadcast_to(constant(np.full((), value), x, dtype(x)), (*shape(x)[:axis], count, *shape(x)[axis + 1 :]))
        for count in (before, after)
    )
    return concatenate([before, x, after], axis)
