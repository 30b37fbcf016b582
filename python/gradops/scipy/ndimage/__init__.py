"""``scipy.ndimage``: filters, interpolation and measurements of tensors of any rank, with SciPy's names.

Derivatives are by the tensor and by weights, coordinates, standard deviations, matrices, shifts and angles. ``output``
is a dtype, since results are new tensors. Searches and binary morphology take and return known numbers, as in SciPy.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy import ndimage
    >>> x = np.array([0.0, 1.0, 4.0, 9.0, 16.0])
    >>> print(ndimage.uniform_filter1d(x, 3).round(3))
    [ 0.333  1.667  4.667  9.667 13.667]
    >>> print(gradops.grad(lambda at: ndimage.map_coordinates(x, at, order=1)[0])(np.array([[2.5]])))
    [[5.]]

See Also:
    :func:`gradops.ops.image.map_coordinates`, :func:`gradops.ops.conv`; ``gradops.scipy.signal``.
"""

from __future__ import annotations

from .._names import gathered, namespace
from .filters import *  # noqa: F403
from .interpolation import *  # noqa: F403
from .measurements import *  # noqa: F403
from .ranks import *  # noqa: F403

__all__ = gathered(globals())

REFUSED = {
    **dict.fromkeys(
        "generic_filter generic_filter1d vectorized_filter".split(),
        "it calls a function on windows of NumPy arrays; use `gradops.ops.extract_sequences`, "
        "`gradops.ops.image.extract_patches`",
    ),
    "geometric_transform": "it calls a function for each point; use `map_coordinates`, with all points as a tensor",
    "labeled_comprehension": "it calls a function on NumPy arrays; use `sum`, `mean`, `maximum` or `gradops.ops`",
    "fourier_ellipsoid": "multiply by `gradops.scipy.special.j1` of the frequencies",
}
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)
