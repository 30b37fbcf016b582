"""FITPACK's functions and classes for splines that interpolate or have given knots.

They use the splines of :mod:`.fitting`. Smoothing splines, whose knots FITPACK chooses, raise an error.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...annotations import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops._checks import choice, integer, known
from .._define import composed, family
from ._shared import real_with, rows_of, vector
from .fitting import knots_between, make_interp_spline, make_lsq_spline
from .pieces import PPoly
from .splines import BSpline, spline_of

__all__ = """
InterpolatedUnivariateSpline LSQUnivariateSpline UnivariateSpline insert make_splrep spalde splantider splder splev
splint splrep sproot
""".split()

_REASON = "FITPACK chooses the knots by the values, which has no derivative; `make_smoothing_spline` has one by `lam`"
_EXT = {0: "extrapolate", 1: "zeros", 2: "raise", 3: "const"}

fitted = family(
    {
        "x": "the sites, ascending.",
        "y": "the values, a vector.",
        "w": "weights of the residuals; an interpolating spline ignores them.",
        "xb": "the first knot; by default the first site.",
        "xe": "the last knot; by default the last site.",
        "bbox": "the first and the last knot; by default the first and the last site.",
        "k": "the degree, from 1 to 5.",
        "s": f"0, for an interpolating spline. Other values raise an error: {_REASON}.",
        "t": "inner knots; the spline then fits the values by least squares.",
        "ext": 'beyond the ends: 0 or ``"extrapolate"`` for the outer pieces, 1 or ``"zeros"`` for 0, 2 or ``"raise"`` '
        'for an error, 3 or ``"const"`` for the value at the end.',
    },
    raises="ShapeError: shapes that do not match.\nArgumentError: ``s`` that is not 0; sites that do not ascend.",
    gradient="By evaluation points, sites, values, knots and weights.",
    within=lambda made: made,
)
of_spline = family(
    {"tck": "a :class:`BSpline`, or knots, coefficients and degree."},
    raises="ArgumentError: an argument that is invalid for the spline.",
    gradient="By evaluation points, coefficients and knots.",
)


def _exact(name: str, s, default: float = 0) -> None:
    s = default if s is None else s
    if known(s) is None or known(s) != 0:
        raise ArgumentError(f"`{name}`: `s` must be 0; got {s}: {_REASON}.", argument="s", hint="`s=0`")


def _fitted(name: str, x, y, w, xb, xe, k, t=None, around: bool = False) -> BSpline:
    k = integer(name, k, "k", 1)
    if k > 5:
        raise ArgumentError(f"`{name}`: `k` must be at most 5; got {k}.", argument="k")
    given = {"x": x, "y": y, "w": w, "xb": xb, "xe": xe, "t": t}
    given = {key: value for key, value in given.items() if value is not None or key in "xy"}
    found = dict(zip(given, real_with(name, len(given), **given)))
    x, y = found["x"], found["y"]
    vector(name, x, least=k + 1)
    vector(name, y, "y")
    if w is not None and tuple(found["w"].shape) != tuple(x.shape):
        raise ShapeError(f"`{name}`: `w` must have an element for each site.", argument="w")
    if around:
        return make_interp_spline(x, ops.concatenate([y[:-1], y[:1]], 0), k, bc_type="periodic")
    low, high = (ops.reshape(found.get(key, x[at]), (1,)) for key, at in (("xb", 0), ("xe", -1)))
    inner = knots_between(x, k)[k + 1 : int(x.shape[0])] if t is None else found["t"]
    knots = ops.concatenate([*[low] * (k + 1), inner, *[high] * (k + 1)], 0)
    if t is None:
        return make_interp_spline(x, y, k, knots)
    if (sites := known(x)) is not None and (ends := known(knots)) is not None and not _determined(sites, ends, k):
        must = f"leave {k + 1} knots around an `x` for each coefficient (the conditions of Schoenberg and Whitney)"
        raise ArgumentError(f"`{name}`: `t` must {must}.", argument="t")
    return make_lsq_spline(x, y, knots, k, found.get("w"))


def _determined(x, knots, k: int) -> bool:
    """Return True if there are as many different sites as coefficients, the ``j``-th inside the ``j``-th B-spline."""
    sites = iter(x)
    count = len(knots) - k - 1
    return all(
        any(low < at < high or at == low == knots[0] or at == high == knots[-1] for at in sites)
        for low, high in zip(knots[:count], knots[k + 1 :])
    )


def _tuple(spline: BSpline) -> tuple:
    """Return knots, coefficients padded with ``k + 1`` zeros to as many as knots, and the degree."""
    t, c, k = spline.tck
    lacking = int(t.shape[0]) - int(c.shape[0])
    return t, ops.concatenate([c, *[ops.zeros_like(c[:1])] * lacking], 0), k


def _like(tck, spline: BSpline) -> Any:
    return spline if isinstance(tck, BSpline) else _tuple(spline)


def _evaluate(name: str, spline: BSpline, x, nu, ext) -> Tensor:
    how = _EXT.get(ext, ext) if isinstance(ext, int) else ext
    choice(name, how, tuple(_EXT.values()), "ext")
    nu = integer(name, nu, "nu", 0)
    x, t = real_with(name, 2, x=x, t=spline.t)
    low, high = t[spline.k], t[int(t.shape[0]) - spline.k - 1]
    beyond = (x < low) | (x > high)
    if how == "raise" and (values := known(beyond)) is not None and values.any():
        raise ArgumentError(f"`{name}`: `x` must be between the ends.", argument="x")
    held = how == "const" and nu == 0  # SciPy extrapolates derivatives by the outer pieces
    y = spline(ops.minimum(ops.maximum(x, low), high) if held else x, nu, True)
    return ops.where(beyond, 0.0, y) if how == "zeros" else y


@fitted
@composed
def splrep(
    x: Tensor,
    y: Tensor,
    w: Tensor = None,
    xb: Tensor = None,
    xe: Tensor = None,
    k=3,
    task=0,
    s=None,
    t: Tensor = None,
    full_output=0,
    per=0,
    quiet=1,
) -> tuple:
    """Interpolating spline, or least-squares spline with given knots, as a tuple.

    Args:
        task: 0, or -1 with ``t``; other values raise an error.
        full_output: 0; other values raise an error.
        per: True for a periodic spline, whose last value is its first.
        quiet: ignored.

    Returns:
        A tuple of knots, coefficients and degree.
    """
    choice("splrep", task, (0, -1), "task")
    choice("splrep", full_output, (0,), "full_output")
    if t is None:
        _exact("splrep", s, 0 if w is None else len(rows_of(x)))
    return _tuple(_fitted("splrep", x, y, w, xb, xe, k, t, bool(per)))


@fitted
@composed
def make_splrep(
    x: Tensor,
    y: Tensor,
    *,
    w: Tensor = None,
    xb: Tensor = None,
    xe: Tensor = None,
    k=3,
    s=0,
    t: Tensor = None,
    nest=None,
    bc_type=None,
) -> BSpline:
    """Interpolating spline, or least-squares spline with given knots.

    Args:
        nest: ignored.
        bc_type: None, or ``"periodic"`` for a periodic spline, whose last value is its first.

    Returns:
        A :class:`BSpline`.
    """
    choice("make_splrep", bc_type, (None, "not-a-knot", "periodic"), "bc_type")
    if t is None:
        _exact("make_splrep", s)
    return _fitted("make_splrep", x, y, w, xb, xe, k, t, bc_type == "periodic")


@of_spline
def splev(x: Tensor, tck, der=0, ext=0) -> Tensor:
    """Values or derivatives of a spline at points.

    Args:
        der: the order of the derivative.
        ext: beyond the ends: 0 for the outer pieces, 1 for 0, 2 for an error, 3 for the value at the end (for
            derivatives the outer pieces).

    Returns:
        A tensor of the shape of ``x``.
    """
    return _evaluate("splev", spline_of("splev", tck), x, der, ext)


@of_spline
def splint(a: Tensor, b: Tensor, tck, full_output=0) -> Tensor:
    """Integral of a spline from ``a`` to ``b``; beyond the ends the spline counts as 0.

    Args:
        full_output: 0; other values raise an error.

    Returns:
        A number, as a tensor.
    """
    choice("splint", full_output, (0,), "full_output")
    return spline_of("splint", tck).integrate(a, b, False)


@of_spline
def splder(tck, n=1):
    """Derivative of order ``n`` of a spline.

    Returns:
        A spline in the same form as ``tck``.
    """
    return _like(tck, spline_of("splder", tck).derivative(n))


@of_spline
def splantider(tck, n=1):
    """Antiderivative of order ``n`` of a spline, which is 0 at its first knot.

    Returns:
        A spline in the same form as ``tck``.
    """
    return _like(tck, spline_of("splantider", tck).antiderivative(n))


@of_spline
def spalde(x: Tensor, tck) -> Tensor:
    """All derivatives of a spline at points, from order 0 to its degree.

    Returns:
        A tensor of the shape of ``x`` with a last dimension of ``k + 1`` orders; SciPy returns a list of vectors.
    """
    spline = spline_of("spalde", tck)
    return ops.stack([_evaluate("spalde", spline, x, nu, 2) for nu in range(spline.k + 1)], -1)


@of_spline
def insert(x, tck, m=1, per=0):
    """Insert a knot ``m`` times at a known point without changing the spline.

    Args:
        per: 0; other values raise an error.

    Returns:
        A spline in the same form as ``tck``.
    """
    choice("insert", per, (0, False), "per")
    return _like(tck, spline_of("insert", tck).insert_knot(x, m))


@of_spline
def sproot(tck, mest=10) -> Tensor:
    """Roots of a spline between its ends, found by SciPy.

    Args:
        mest: ignored.

    Returns:
        A vector.

    Gradient:
        By coefficients and knots (implicit function theorem).
    """
    return PPoly.from_spline(spline_of("sproot", tck)).roots(False, False)


@fitted
class UnivariateSpline:
    """Interpolating spline; SciPy's smoothing spline has no derivative.

    Args:
        s: must be 0. Other values, and SciPy's default, give a smoothing spline, which raises an error here.
        check_finite: ignored.

    Returns:
        An object.
    """

    _spline: BSpline
    _ext: Any
    _residual: Any = 0.0

    @composed
    def __init__(
        self, x: Tensor, y: Tensor, w: Tensor = None, bbox=(None, None), k=3, s=None, ext=0, check_finite=False
    ):
        _exact(type(self).__name__, s, len(rows_of(x)))
        self._fit(x, y, w, bbox, k, ext)

    def _fit(self, x, y, w, bbox, k, ext, t=None) -> None:
        xb, xe = bbox
        self._ext, self._spline = ext, _fitted(type(self).__name__, x, y, w, xb, xe, k, t)
        if t is not None:
            rest = ops.subtract(self._spline(x), y)
            self._residual = ops.sum(ops.square(rest if w is None else ops.multiply(w, rest)))

    def _replace_spline(self, spline: BSpline):
        made = UnivariateSpline.__new__(UnivariateSpline)
        made._spline, made._ext = spline, self._ext
        return made

    @composed
    def __call__(self, x: Tensor, nu=0, ext=None) -> Tensor:
        """Values or derivatives at points.

        Args:
            nu: the order of the derivative.
            ext: see the class; by default as given there.

        Returns:
            A tensor of the shape of ``x``.

        Gradient:
            By evaluation points and the tensors that the spline was made from.
        """
        return _evaluate(type(self).__name__, self._spline, x, nu, self._ext if ext is None else ext)

    def derivative(self, n=1):
        """Return the derivative of order ``n``, a spline."""
        return self._replace_spline(self._spline.derivative(n))

    def antiderivative(self, n=1):
        """Return the antiderivative of order ``n``, a spline that is 0 at the first knot."""
        return self._replace_spline(self._spline.antiderivative(n))

    def integral(self, a, b) -> Tensor:
        """Return the integral from ``a`` to ``b``; beyond the ends the spline counts as 0."""
        return splint(a, b, self._spline)

    def derivatives(self, x) -> Tensor:
        """Return all derivatives at a point, from order 0 to the degree."""
        return spalde(x, self._spline)

    def roots(self) -> Tensor:
        """Return the roots of the spline, see :func:`sproot`."""
        return sproot(self._spline)

    def get_knots(self) -> Tensor:
        """Return the knots, with the ends not repeated."""
        return self._spline.t[self._spline.k : int(self._spline.t.shape[0]) - self._spline.k]

    def get_coeffs(self) -> Tensor:
        """Return the coefficients."""
        return self._spline.c[: int(self._spline.t.shape[0]) - self._spline.k - 1]

    def get_residual(self) -> Any:
        """Return the weighted sum of squared residuals; 0 for an interpolating spline."""
        return self._residual

    def set_smoothing_factor(self, s) -> None:
        """Raise an error unless ``s`` is 0, the value of an interpolating spline.

        Raises:
            ArgumentError: ``s`` is not 0.
        """
        _exact("UnivariateSpline.set_smoothing_factor", s, 1)


@fitted
class InterpolatedUnivariateSpline(UnivariateSpline):
    """Interpolating spline.

    Args:
        check_finite: ignored.

    Returns:
        An object with the methods of :class:`UnivariateSpline`.
    """

    @composed
    def __init__(self, x: Tensor, y: Tensor, w: Tensor = None, bbox=(None, None), k=3, ext=0, check_finite=False):
        self._fit(x, y, w, bbox, k, ext)


@fitted
class LSQUnivariateSpline(UnivariateSpline):
    """Least-squares spline with given inner knots.

    Args:
        t: inner knots, ascending.
        w: weights that multiply the residuals before they are squared.
        check_finite: ignored.

    Returns:
        An object with the methods of :class:`UnivariateSpline`.
    """

    @composed
    def __init__(
        self, x: Tensor, y: Tensor, t: Tensor, w: Tensor = None, bbox=(None, None), k=3, ext=0, check_finite=False
    ):
        self._fit(x, y, w, bbox, k, ext, t)
