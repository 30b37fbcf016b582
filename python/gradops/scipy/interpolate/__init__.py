"""``scipy.interpolate``: curves and surfaces through data, with SciPy's names.

Derivatives are by the evaluation points, by the data's values, and by its sites (the ``x`` of the data), knots and
points. Objects hold tensors as attributes, so an object made inside a differentiated function passes gradients on.
Triangulations and searches for nearest points need known values; everything else runs in compiled functions.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops.scipy import interpolate
    >>> x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 4.0, 16.0])
    >>> print(gradops.grad(interpolate.CubicSpline(x, y))(3.0).round(6))
    6.0
    >>> print(gradops.grad(lambda y: interpolate.CubicSpline(x, y)(3.0))(y).round(6))
    [ 0.25 -1.    1.5   0.25]

See Also:
    :mod:`gradops.scipy.ndimage`, whose ``map_coordinates`` interpolates between the elements of a tensor.
"""

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
    from .cubics import *  # noqa: F403
    from .fitted import *  # noqa: F403
    from .fitting import *  # noqa: F403
    from .grids import *  # noqa: F403
    from .lines import *  # noqa: F403
    from .pieces import *  # noqa: F403
    from .polynomials import *  # noqa: F403
    from .scattered import *  # noqa: F403
    from .splines import *  # noqa: F403

_PLACES = places("""
    cubics: Akima1DInterpolator CubicHermiteSpline CubicSpline PchipInterpolator pchip_interpolate
    fitted: InterpolatedUnivariateSpline LSQUnivariateSpline UnivariateSpline insert make_splrep spalde
        splantider splder splev splint splrep sproot
    fitting: make_interp_spline make_lsq_spline make_smoothing_spline
    grids: RegularGridInterpolator interpn
    lines: interp1d
    pieces: BPoly PPoly
    polynomials: BarycentricInterpolator KroghInterpolator barycentric_interpolate krogh_interpolate
    scattered: LinearNDInterpolator NearestNDInterpolator RBFInterpolator griddata
    splines: BSpline
""")

__all__ = sorted(_PLACES)

_CURVE = "FITPACK fits the curve; use `make_interp_spline`, which takes points along an axis"
_SURFACE = "FITPACK fits the surface; use `RegularGridInterpolator` or `RBFInterpolator`, which have derivatives"

REFUSED = {
    **dict.fromkeys("splprep make_splprep".split(), _CURVE),
    "generate_knots": "FITPACK chooses the knots by the values, which has no derivative",
    **dict.fromkeys(
        "BivariateSpline LSQBivariateSpline LSQSphereBivariateSpline RectBivariateSpline RectSphereBivariateSpline "
        "SmoothBivariateSpline SmoothSphereBivariateSpline bisplev bisplrep".split(),
        _SURFACE,
    ),
    **dict.fromkeys("NdBSpline NdPPoly".split(), "use `RegularGridInterpolator`, which has tensor products of splines"),
    **dict.fromkeys(
        "AAA FloaterHormannInterpolator pade".split(),
        "rational interpolation is not supported; `BarycentricInterpolator` is a polynomial",
    ),
    "CloughTocher2DInterpolator": "its slopes are found by iteration; `RBFInterpolator` has smooth surfaces",
    "Rbf": "it is superseded in SciPy; use `RBFInterpolator`",
    "approximate_taylor_polynomial": "derivatives are exact here: use `gradops.functional.grad` or `jacobian`",
    "interp2d": "SciPy has removed it; use `RegularGridInterpolator`",
    "lagrange": "it is numerically unstable; `BarycentricInterpolator` is the same polynomial",
}

__dir__, __getattr__ = namespace(__name__, __all__, REFUSED, _PLACES)
