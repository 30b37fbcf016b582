"""Colours of images.

Colours are the channels: the last dimension, or with ``"channels_first"`` the third from the end.

See Also:
    :func:`gradops.ops.image.gaussian_blur`, :func:`tensordot`.
"""

from __future__ import annotations

import numpy as np

from ...annotations import Tensor
from .._dispatch import op
from ..conversion import dtype
from ..elementwise import add, divide, equal, greater, maximum, minimum, mod, multiply, subtract
from ..indexing import get_item, where
from ..joining import concatenate, stack
from ..reductions import max, min
from ._layout import (
    along,
    axes_of,
    check_channels,
    check_floating,
    constant,
    part,
    restored,
    working,
)

__all__ = ["hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv"]

_LUMA = np.array([[0.2989], [0.5870], [0.1140]])


@op(name="image.rgb_to_grayscale")
def rgb_to_grayscale(images: Tensor, data_format: str | None = None) -> Tensor:
    """Images of one channel: ``0.2989 r + 0.587 g + 0.114 b`` (the luma of ITU-R BT.601).

    Args:
        images: one image or a batch, of 3 channels; of 1 channel they come back as they are.

    Returns:
        A tensor with one channel, of the dtype of ``images``; integers are rounded.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or than 1 or 3 channels.

    Gradient:
        The upstream gradient times the three weights.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([[[0.1, 0.5, 0.8]]])
        >>> print(ops.image.rgb_to_grayscale(x).round(4))
        [[[0.4146]]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.image.rgb_to_grayscale(x)))(x).ravel().round(4))
        [0.2989 0.587  0.114 ]

    See Also:
        :func:`rgb_to_hsv`, :func:`hsv_to_rgb`.
    """
    _, channels = axes_of("image.rgb_to_grayscale", images, data_format)
    if check_channels("image.rgb_to_grayscale", images, channels, (1, 3)) == 1:
        return images
    x = working(images)
    return restored(along(x, constant(_LUMA, x, dtype(x)), channels), dtype(images))


@op(name="image.rgb_to_hsv")
def rgb_to_hsv(images: Tensor, data_format: str | None = None) -> Tensor:
    """Hue, saturation and value of images of red, green and blue, all in [0, 1] (Smith 1978).

    Args:
        images: one image or a batch, floating, of 3 channels with values in [0, 1].

    Returns:
        A tensor of the same shape and dtype. Red has hue 0, green 1/3, blue 2/3, grey 0.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or than 3 channels.
        ArgumentTypeError: a dtype that is not floating.

    Gradient:
        Of the formula that holds for each pixel; hue and saturation of grey pixels have none.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([[[0.1, 0.5, 0.8]]])
        >>> print(ops.image.rgb_to_hsv(x).round(4))
        [[[0.5714 0.875  0.8   ]]]
        >>> print(gradops.grad(lambda x: ops.image.rgb_to_hsv(x)[0, 0, 1])(x).ravel().round(4))
        [-1.25    0.      0.1562]

    See Also:
        :func:`rgb_to_grayscale`, :func:`hsv_to_rgb`.
    """
    _, axis = axes_of("image.rgb_to_hsv", images, data_format)
    check_channels("image.rgb_to_hsv", images, axis, (3,))
    check_floating("image.rgb_to_hsv", images)
    x = working(images)
    planes = stack([part(x, axis, i, i + 1) for i in range(3)], 0)  # where NumPy reduces fast
    red, green, blue = (get_item(planes, i) for i in range(3))
    value = max(planes, 0)
    spread = subtract(value, min(planes, 0))
    colourful = greater(spread, 0.0)
    safe_spread = where(colourful, spread, 1.0)
    saturation = where(colourful, divide(spread, where(colourful, value, 1.0)), 0.0)
    sextant = where(
        equal(red, value),
        divide(subtract(green, blue), safe_spread),
        where(
            equal(green, value),
            add(divide(subtract(blue, red), safe_spread), 2.0),
            add(divide(subtract(red, green), safe_spread), 4.0),
        ),
    )
    hue = where(colourful, mod(divide(sextant, 6.0), 1.0), 0.0)
    return restored(concatenate([hue, saturation, value], axis), dtype(images))


@op(name="image.hsv_to_rgb")
def hsv_to_rgb(images: Tensor, data_format: str | None = None) -> Tensor:
    """Red, green and blue of images of hue, saturation and value, all in [0, 1] (Smith 1978).

    Args:
        images: one image or a batch, floating, of 3 channels with values in [0, 1]; a hue beyond goes round.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ShapeError: other than 3 or 4 dimensions, or than 3 channels.
        ArgumentTypeError: a dtype that is not floating.

    Gradient:
        Of the formula that holds for each pixel's sixth of the colour circle.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([[[0.1, 0.5, 0.8]]])
        >>> print(ops.image.hsv_to_rgb(x).round(4))
        [[[0.8  0.64 0.4 ]]]
        >>> print(gradops.grad(lambda x: ops.image.hsv_to_rgb(x)[0, 0, 1])(x).ravel().round(4))
        [ 2.4  -0.32  0.8 ]

    See Also:
        :func:`rgb_to_hsv`, :func:`rgb_to_grayscale`.
    """
    _, axis = axes_of("image.hsv_to_rgb", images, data_format)
    check_channels("image.hsv_to_rgb", images, axis, (3,))
    check_floating("image.hsv_to_rgb", images)
    x = working(images)
    hue, saturation, value = (part(x, axis, i, i + 1) for i in range(3))
    start = np.reshape([5.0, 3.0, 1.0], [3 if a == axis else 1 for a in range(len(x.shape))])
    # of each colour: how far the hue is from where the colour is full, 0 to 1
    angle = mod(add(multiply(hue, 6.0), constant(start, x, dtype(x))), 6.0)
    lack = maximum(minimum(minimum(angle, subtract(4.0, angle)), 1.0), 0.0)
    return restored(multiply(value, subtract(1.0, multiply(saturation, lack))), dtype(images))
