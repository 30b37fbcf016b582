"""Shared by the image ops: layout, dtypes, constants beside an image, and borders.

Images are ``(height, width, channels)`` or ``(batch, height, width, channels)``; with
``data_format="channels_first"`` the channels stand before the height. None is ``"channels_last"``.

One dtype rule: floats are computed in their own dtype (16-bit ones in float32) and come back in it;
integers and bools are computed in ``floatx``, rounded half to even, cut to the dtype's range and cast back.
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
    """The spatial axes and the channels' axis of one image or a batch."""
    _checks.choice(op, data_format, (None, "channels_last", "channels_first"), "data_format")
    rank = _checks.check_rank(op, images, (spatial + 1, spatial + 2), name)
    first = data_format == "channels_first"
    start = rank - spatial - (not first)
    return list(range(start, start + spatial)), start - 1 if first else rank - 1


def check_channels(op: str, images, axis: int, counts: tuple[int, ...]) -> int:
    """The number of channels, which must be one of ``counts``."""
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
    """``count`` whole numbers of a number or a sequence, none below ``least``."""
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
    """The dtype in which tensors are computed: at least float32, ``floatx`` for integers."""
    name = dtype(tensors[0])
    for tensor in tensors[1:]:
        name = dtypes.promote(name, dtype(tensor))
    if not dtypes.is_floating(name):
        name = config.floatx()
    return "float32" if name in ("float16", "bfloat16") else name


def working(x):
    """``x`` in the dtype in which it is computed."""
    name = working_dtype(x)
    return x if name == dtype(x) else cast(x, name)


def restored(x, name: str):
    """A computed image in its own dtype; integers rounded and cut to their range."""
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
    x = where(isnan(x), 0.0, x)  # which as a whole number is another on each backend
    return cast(minimum(maximum(round(x), float(limits.min)), float(high)), name)


def constant(value, like, dtype: str | None = None):
    """A NumPy array as a tensor of the library, and on the device, of ``like``."""
    owner: Any = backends.of(like)
    if owner is None:  # a variable
        like = like.data
        owner = backends.of(like)
    return owner.convert(value, dtype, like=like)


def part(x, axis: int, start: int, stop: int):
    """``x`` from ``start`` up to ``stop`` along an axis."""
    return get_item(x, (slice(None),) * axis + (slice(start, stop),))


def along(x, matrix, axis: int):
    """``x`` times a matrix ``(in, out)`` along an axis."""
    rank = len(x.shape)
    product = tensordot(x, matrix, ([axis], [0]))
    if axis == rank - 1:
        return product
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    return transpose(product, order)


def within(index, size: int, mode: str):
    """Positions beyond ``[0, size)`` replaced by those that a fill mode continues with."""
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
    """The positions of an axis with more at both ends, those beyond it as a fill mode continues."""
    return within(np.arange(-before, size + after), size, mode)


def padded(x, axis: int, before: int, after: int, mode: str = "constant", value: float = 0):
    """``x`` with more elements at both ends of an axis."""
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
