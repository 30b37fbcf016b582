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

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
    from .filters import *  # noqa: F403
    from .interpolation import *  # noqa: F403
    from .measurements import *  # noqa: F403
    from .ranks import *  # noqa: F403

_PLACES = places("""
    filters: convolve convolve1d correlate correlate1d gaussian_filter gaussian_filter1d
        gaussian_gradient_magnitude gaussian_laplace generic_gradient_magnitude generic_laplace laplace prewitt
        sobel uniform_filter uniform_filter1d
    interpolation: affine_transform map_coordinates rotate shift spline_filter spline_filter1d zoom
    measurements: binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
        binary_opening binary_propagation center_of_mass distance_transform_bf distance_transform_cdt
        distance_transform_edt extrema find_objects fourier_gaussian fourier_shift fourier_uniform
        generate_binary_structure histogram iterate_structure label maximum maximum_position mean median minimum
        minimum_position standard_deviation sum sum_labels value_indices variance watershed_ift
    ranks: black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter maximum_filter1d
        median_filter minimum_filter minimum_filter1d morphological_gradient morphological_laplace
        percentile_filter rank_filter white_tophat
""")

__all__ = sorted(_PLACES)

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
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED, _PLACES)
