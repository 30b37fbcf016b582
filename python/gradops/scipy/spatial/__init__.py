"""``scipy.spatial``: distances between points, with SciPy's names.

The metrics are in ``spatial.distance``.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy import spatial
    >>> x, y = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[3.0, 4.0]])
    >>> print(spatial.distance_matrix(x, y, p=1))
    [[7.]
     [4.]]
    >>> print(gradops.grad(lambda x: ops.sum(spatial.distance_matrix(x, y)))(x).round(3))
    [[-0.6   -0.8  ]
     [-0.707 -0.707]]

See Also:
    :func:`gradops.ops.cdist`, :func:`gradops.ops.norm`.
"""

from __future__ import annotations

from .._names import namespace
from . import distance as distance
from . import points
from .points import *  # noqa: F403

__all__ = [*points.__all__, "distance"]

_SEARCH = "it finds neighbours, which have no derivative; use their positions with `distance.cdist`"
_SHAPE = "it finds which points are its corners; use their positions with `gradops.ops`"
REFUSED = {
    **dict.fromkeys("KDTree cKDTree Rectangle tsearch".split(), _SEARCH),
    **dict.fromkeys("ConvexHull Delaunay HalfspaceIntersection SphericalVoronoi Voronoi".split(), _SHAPE),
    **dict.fromkeys("convex_hull_plot_2d delaunay_plot_2d voronoi_plot_2d".split(), "it draws a plot"),
    "QhullError": "it is an error of SciPy's",
}
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)
