"""Examples of ``gradops.scipy.interpolate``: mostly gradients by the values, which are their weights."""

ROWS = """
CubicSpline(np.arange(4.0), y)(1.5) at y = np.arange(4.0) ** 2 -> [-0.0625  0.5625  0.5625 -0.0625]
PchipInterpolator(np.arange(4.0), y)(1.5) at y = np.arange(4.0) ** 2 -> [-0.140625  0.722656  0.453125 -0.035156]
pchip_interpolate(np.arange(4.0), y, 1.5) at y = np.arange(4.0) ** 2 -> [-0.140625  0.722656  0.453125 -0.035156]
Akima1DInterpolator(np.arange(4.0), y)(1.5) at y = np.arange(4.0) ** 2 -> [-0.0625  0.5625  0.5625 -0.0625]
CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], dydx)(0.5) at dydx = np.array([0.0, 2.0]) -> [ 0.125 -0.125]
interp1d([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(x) at x = 1.5 -> 3.0

see gradops.scipy.interpolate.CubicSpline
make_interp_spline(np.arange(4.0), y)(1.5) at y = np.arange(4.0) ** 2 -> [-0.0625  0.5625  0.5625 -0.0625]
make_lsq_spline(np.arange(4.0), y, [0, 0, 3, 3], k=1)(1.0) at y = np.arange(4.0) ** 2 -> [0.4 0.3 0.2 0.1]
make_smoothing_spline(np.arange(5.0), [0.0, 1.0, 0.0, 2.0, 1.0], lam=lam)(1.0) at lam = 0.5 -> -0.034969
make_splrep(np.arange(4.0), y)(1.5) at y = np.arange(4.0) ** 2 -> [-0.0625  0.5625  0.5625 -0.0625]
BSpline([0.0, 0.0, 1.0, 2.0, 2.0], c, 1)(1.5) at c = np.arange(3.0) ** 2 -> [0.  0.5 0.5]
InterpolatedUnivariateSpline(np.arange(4.0), y)(1.5) at y = np.arange(4.0) ** 2 -> [-0.0625  0.5625  0.5625 -0.0625]
LSQUnivariateSpline(np.arange(4.0), y, [], k=1)(1.0) at y = np.arange(4.0) ** 2 -> [0.4 0.3 0.2 0.1]
UnivariateSpline(np.arange(4.0), y, s=0)(1.5) at y = np.arange(4.0) ** 2 -> [-0.0625  0.5625  0.5625 -0.0625]

see gradops.scipy.interpolate.make_splrep
splrep(np.arange(4.0), y)[1][1] at y = np.arange(4.0) ** 2 -> [-0.833333  3.       -1.5       0.333333]
splev(x, ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 4.0], 1)) at x = 1.5 -> 3.0
splint(0.0, b, ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 4.0], 1)) at b = 1.5 -> 2.5
splder: interpolate.splder(interpolate.splrep([0, 1, 2], [0.0, 1.0, c], k=2))[1][0] at c = 4.0 -> -0.5
splantider: interpolate.splantider(interpolate.splrep([0, 1, 2], [0.0, 1.0, c], k=2))[1][2] at c = 4.0 -> -0.333333
spalde(x, ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 4.0], 1)) by x = 1.5 -> [3. 0.]
insert: interpolate.insert(1.5, ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, c], 1))[1][2] at c = 4.0 -> 0.5
sproot: interpolate.sproot(interpolate.splrep([0.0, 1.0, 2.0, 3.0], [-1.0, c, 1.0, 2.0]))[0] at c = 0.2 -> -1.058517

PPoly(c, [0.0, 1.0])(0.5) at c = np.array([[1.0], [2.0], [3.0]]) -> [[0.25]
     [0.5 ]
     [1.  ]]
BPoly(c, [0.0, 1.0])(0.5) at c = np.array([[1.0], [2.0], [3.0]]) -> [[0.25]
     [0.5 ]
     [0.25]]
BarycentricInterpolator(np.arange(3.0), y)(1.5) at y = np.arange(3.0) ** 2 -> [-0.125  0.75   0.375]
barycentric_interpolate(np.arange(3.0), y, 1.5) at y = np.arange(3.0) ** 2 -> [-0.125  0.75   0.375]
KroghInterpolator(np.arange(3.0), y)(1.5) at y = np.arange(3.0) ** 2 -> [-0.125  0.75   0.375]
krogh_interpolate(np.arange(3.0), y, 1.5) at y = np.arange(3.0) ** 2 -> [-0.125  0.75   0.375]

see gradops.scipy.ndimage.map_coordinates
RegularGridInterpolator(([0.0, 1.0], [0.0, 2.0]), [[0.0, 1.0], [2.0, 5.0]])(x)[0] at x = np.array([0.5, 1.0]) -> [3. 1.]
interpn(([0.0, 1.0], [0.0, 2.0]), [[0.0, 1.0], [2.0, 5.0]], x)[0] at x = np.array([0.5, 1.0]) -> [3. 1.]

see gradops.scipy.stats.gaussian_kde
RBFInterpolator(np.eye(3), d, degree=0)(np.eye(3)[:1] / 2)[0] at d = np.arange(3.0) -> [0.634137 0.182932 0.182932]
LinearNDInterpolator([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 4.0])(x)[0] at x = np.array([0.3, 0.2]) -> [1. 4.]
NearestNDInterpolator([[0.0, 0.0], [1.0, 0.0]], y)(0.8, 0.1) at y = np.array([0.0, 1.0]) -> [0. 1.]
griddata([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 4.0], x)[0] at x = np.array([0.3, 0.2]) -> [1. 4.]
"""
