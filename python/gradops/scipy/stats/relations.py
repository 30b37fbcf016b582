"""Transformations of observations to normal ones, entropies, directions, and the relation of two samples."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import ops
from ...annotations import Axes, Axis, Operand, Tensor
from ...backends._shared import combined
from ...errors import ArgumentError, ShapeError
from ...ops import _checks
from .. import special
from .._define import family
from .._tensors import option, wrong
from . import gammas
from ._samples import ARGUMENTS, RANGE, Sample, known_number, of_sample, real, root

__all__ = """
    boxcox boxcox_llf circmean circstd circvar differential_entropy directional_stats entropy linregress pearsonr
    pointbiserialr yeojohnson yeojohnson_llf
""".split()

# To normal ones -------------------------------------------------------------------------------------------------------

transformation = family(
    returns="A tensor of the shape that ``x`` and ``lmbda`` broadcast to.",
    raises="ArgumentError: no ``lmbda``.",
    gradient="By ``x`` and ``lmbda``.",
)
likelihood = family(
    ARGUMENTS | {"lmb": "the transformation's parameter, a number."},
    returns="A tensor of ``data``'s shape without ``axis``.",
    raises=f"{RANGE}\nShapeError: an ``lmb`` with dimensions.",
    gradient="By ``lmb`` and ``data``: the formula's.",
)


def _given(function: str, lmbda) -> None:
    if lmbda is None:
        raise ArgumentError(
            f"`scipy.stats.{function}`: `lmbda` must be given.",
            argument="lmbda",
            hint=f"gradops.scipy.optimize.minimize_scalar of minus `{function}_llf` finds it, with its derivative",
        )


@transformation
def boxcox(x: Tensor, lmbda: Operand = None, alpha=None, optimizer=None) -> Tensor:
    """Box and Cox's transformation of positive elements by a given ``lmbda``, :func:`.special.boxcox`.

    Args:
        alpha, optimizer: of SciPy's search for ``lmbda``; not looked at.
    """
    _given("boxcox", lmbda)
    return special.boxcox(*real("scipy.stats.boxcox", x=x, lmbda=lmbda))


@likelihood
def boxcox_llf(lmb: Operand, data: Tensor, *, axis: Axes = 0, keepdims=False, nan_policy="propagate") -> Tensor:
    """Log-likelihood of Box and Cox's transformation of positive observations, up to a constant.

    Gradient:
        By ``lmb`` and ``data``: the formula's, also where ``lmb`` is 0.
    """
    lmb, data = _parameter("boxcox_llf", lmb, data)
    sample = Sample("boxcox_llf", data, axis, nan_policy, keepdims, name="data")
    middle = ops.exp(sample.mean(ops.log(sample.x)))  # by which the variance is that of numbers near 1
    n = sample.n
    sample.x = special.boxcox(sample.x / middle, lmb)
    return sample.result(-n * ops.log(middle) - n / 2 * ops.log(sample.var()))


def _parameter(function, lmb, data):
    lmb, data = real(f"scipy.stats.{function}", lmb=lmb, data=data)
    if len(lmb.shape):
        raise ShapeError(f"`scipy.stats.{function}`: `lmb` must be one number.", argument="lmb")
    return lmb, data


def _yeojohnson(x, lmbda):
    positive = x >= 0
    return ops.where(
        positive,
        special.boxcox1p(ops.where(positive, x, 0.0), lmbda),
        -special.boxcox1p(ops.where(positive, 0.0, -x), 2 - lmbda),
    )


@transformation
def yeojohnson(x: Tensor, lmbda: Operand = None) -> Tensor:
    """Yeo and Johnson's transformation by a given ``lmbda``: that of Box and Cox of ``1 + x``, below 0 of ``1 - x`` by
    ``2 - lmbda``, turned round.
    """
    _given("yeojohnson", lmbda)
    return _yeojohnson(*real("scipy.stats.yeojohnson", x=x, lmbda=lmbda))


@likelihood
def yeojohnson_llf(lmb: Operand, data: Tensor, *, axis: Axes = 0, nan_policy="propagate", keepdims=False) -> Tensor:
    """Log-likelihood of Yeo and Johnson's transformation of observations, up to a constant."""
    lmb, data = _parameter("yeojohnson_llf", lmb, data)
    sample = Sample("yeojohnson_llf", data, axis, nan_policy, keepdims, name="data")
    x, n = sample.x, sample.n
    slopes = (lmb - 1) * sample.sum(ops.sign(x) * ops.log1p(ops.abs(x)))
    sample.x = _yeojohnson(x, lmb)
    return sample.result(slopes - n / 2 * ops.log(sample.var()))


# Entropies ------------------------------------------------------------------------------------------------------------


def _to_base(function: str, value, base):
    if base is None:
        return value
    base = known_number(function, "base", base)
    if not base > 0:
        raise ArgumentError(f"`{function}`: `base` must be positive.", argument="base")
    return value / math.log(base)


@of_sample
def entropy(
    pk: Tensor, qk: Tensor = None, base=None, axis: Axes = 0, *, nan_policy="propagate", keepdims=False
) -> Tensor:
    """Shannon's entropy of weights, or with ``qk`` their divergence from it of Kullback and Leibler.

    Args:
        pk: divided by its sum.
        qk: divided by its sum.
        base: of the logarithms; by default natural ones.
        nan_policy: ``"propagate"`` or ``"raise"``; ``"omit"`` without ``qk``.

    Returns:
        A tensor of the shape that both broadcast to, without ``axis``; -inf or inf outside the domain.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: a ``base`` that is not positive.

    Gradient:
        By ``pk`` and ``qk``: the formula's.
    """
    function = "scipy.stats.entropy"
    if qk is not None:
        pk, qk = real(function, pk=pk, qk=qk)
        pk, qk = pk + ops.zeros_like(qk), qk + ops.zeros_like(pk)
        q = Sample(function, qk, axis, nan_policy, keepdims, omit=False, name="qk")
    p = Sample(function, pk, axis, nan_policy, keepdims, omit=qk is None, name="pk")
    shares = p.x / p.sum(p.x)
    terms = special.entr(shares) if qk is None else special.rel_entr(shares, q.x / q.sum(q.x))
    return _to_base(function, p.result(p.sum(terms)), base)


def _padded(x, m: int):
    """Observations, with the first and the last ``m`` times more."""
    return ops.concatenate([*[x[..., :1]] * m, x, *[x[..., -1:]] * m], -1)


def _spacings(x, m: int):
    padded = _padded(x, m)
    return padded[..., 2 * m :] - padded[..., : -2 * m]


def _vasicek(x, n, m):
    return ops.mean(ops.log(n / (2 * m) * _spacings(x, m)), -1, True)


def _van_es(x, n, m):
    first = ops.mean(ops.log((n + 1) / m * (x[..., m:] - x[..., :-m])), -1, True)
    return first + (float(np.sum(1 / np.arange(m, n + 1))) + math.log(m) - math.log(n + 1))


def _ebrahimi(x, n, m):
    i = np.arange(1, n + 1)
    share = np.where(i <= m, 1 + (i - 1) / m, np.where(i >= n - m + 1, 1 + (n - i) / m, 2.0))
    return _vasicek(x, n, m) + float(np.mean(np.log(2 / share)))


def _correa(x, n, m):
    near = ops.stack([_padded(x, m)[..., j : j + n] for j in range(2 * m + 1)], -1)
    apart = near - ops.mean(near, -1, True)
    steps = ops.sum(ops.stack([apart[..., j] * (j - m) for j in range(2 * m + 1)], -1), -1)
    return -ops.mean(ops.log(steps / (n * ops.sum(apart * apart, -1))), -1, True)


_ENTROPIES = {"vasicek": _vasicek, "van es": _van_es, "ebrahimi": _ebrahimi, "correa": _correa}


@of_sample
def differential_entropy(
    values: Tensor, *, window_length=None, base=None, axis: Axes = 0, method="auto", nan_policy="propagate",
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Entropy of the density that observations come of, estimated by distances of ordered ones.

    Args:
        window_length: how many places these are apart; by default the root of the number of observations, rounded.
        base: of the logarithms; by default natural ones.
        method: ``"vasicek"``, ``"van es"``, ``"ebrahimi"``, ``"correa"``, or ``"auto"``, by the number of observations.
        nan_policy: ``"propagate"`` or ``"raise"``.

    Returns:
        A tensor of the shape of ``values`` without ``axis``, of their floating dtype.

    Raises:
        ArgumentError: an unknown ``method``; a ``window_length`` of half the observations or more; a ``base`` that is
            not positive.

    Gradient:
        The formula's, with the order of the observations held fixed.
    """
    function = "scipy.stats.differential_entropy"
    method = method.lower() if isinstance(method, str) else method
    option(function, method, ("auto", *_ENTROPIES), "method")
    sample = Sample(function, values, axis, nan_policy, keepdims, omit=False, name="values")
    n = sample.x.shape[-1]
    m = math.floor(math.sqrt(n) + 0.5) if window_length is None else window_length
    m = _checks.integer(function, m, "window_length")
    if not 2 <= 2 * m < n:
        raise wrong("window_length", f"be at least 1, and below half of the {n} observations", of=function)
    if method == "auto":
        method = "van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek"
    found = sample.marked(_ENTROPIES[method](ops.sort(sample.x), n, m))
    return _to_base(function, sample.result(found), base)


# Directions -----------------------------------------------------------------------------------------------------------

circular = family(
    ARGUMENTS | {"high": "with ``low`` the ends of a period."},
    returns="A tensor of the shape of ``samples`` without ``axis``.",
    raises=RANGE,
    gradient="By ``samples``, ``high`` and ``low``: the formula's.",
)


def _circular(function, samples, high, low, axis, nan_policy, keepdims):
    """The sample, the period by ``2 * pi``, and the mean sine and cosine."""
    samples, high, low = real(f"scipy.stats.{function}", samples=samples, high=high, low=low)
    sample = Sample(function, samples, axis, nan_policy, keepdims, name="samples")
    scale = (high - low) / (2 * math.pi)
    angle = sample.x / scale
    return sample, scale, sample.mean(ops.sin(angle)), sample.mean(ops.cos(angle))


@circular
def circmean(
    samples: Tensor, high: Operand = 2 * math.pi, low: Operand = 0, axis: Axes = None, nan_policy="propagate", *,
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Mean of angles, within ``low`` and ``high``."""
    sample, scale, sine, cosine = _circular("circmean", samples, high, low, axis, nan_policy, keepdims)
    _, high, low = real(sample.function, samples=samples, high=high, low=low)
    return sample.result((ops.arctan2(sine, cosine) * scale - low) % (high - low) + low)


def _length(sine, cosine):
    length = root(sine * sine + cosine * cosine, combined(sine, cosine))
    return ops.where(length > 1, 1.0, length)  # of rounding; `minimum` would halve the derivatives at 1


@circular
def circvar(
    samples: Tensor, high: Operand = 2 * math.pi, low: Operand = 0, axis: Axes = None, nan_policy="propagate", *,
    keepdims=False,
) -> Tensor:  # fmt: skip
    """Circular variance of angles: 1 less the length of the mean of their directions.

    Gradient:
        By ``samples``, ``high`` and ``low``: the formula's; 0 where the mean of the directions is 0.
    """
    sample, _, sine, cosine = _circular("circvar", samples, high, low, axis, nan_policy, keepdims)
    return sample.result(1 - _length(sine, cosine))


@circular
def circstd(
    samples: Tensor, high: Operand = 2 * math.pi, low: Operand = 0, axis: Axes = None, nan_policy="propagate", *,
    normalize=False, keepdims=False,
) -> Tensor:  # fmt: skip
    """Circular standard deviation of angles: ``sqrt(-2 * log(R))`` of the length ``R`` of the mean of their directions.

    Args:
        normalize: True: of the angles in a period of ``2 * pi``.

    Gradient:
        By ``samples``, ``high`` and ``low``: the formula's; 0 where all angles are equal.
    """
    sample, scale, sine, cosine = _circular("circstd", samples, high, low, axis, nan_policy, keepdims)
    value = sample.root(-2 * ops.log(_length(sine, cosine)))
    return sample.result(value if normalize else value * scale)


class DirectionalStats(NamedTuple):
    """The result of :func:`directional_stats`."""

    mean_direction: Any
    mean_resultant_length: Any


@of_sample
def directional_stats(samples: Tensor, *, axis: Axis = 0, normalize=True):
    """Mean of directions, vectors along the last dimension.

    Args:
        axis: along which the directions are averaged.
        normalize: make the vectors of length 1 before.

    Returns:
        A named tuple ``mean_direction``, of length 1, of the shape of ``samples`` without ``axis``, and
        ``mean_resultant_length``, also without the last dimension.

    Raises:
        ShapeError: fewer than two dimensions.

    Gradient:
        The formulas'.
    """
    function = "scipy.stats.directional_stats"
    (samples,) = real(function, samples=samples)
    if len(samples.shape) < 2:
        raise ShapeError(f"`{function}`: `samples` must have at least two dimensions.", argument="samples")
    _checks.check_axes(function, axis, len(samples.shape))
    samples = ops.moveaxis(samples, axis, 0)
    if normalize:
        samples = samples / ops.norm(samples, axis=-1, keepdims=True)
    mean = ops.mean(samples, 0)
    length = ops.norm(mean, axis=-1, keepdims=True)
    return DirectionalStats(mean / length, length[..., 0])


# Two samples ----------------------------------------------------------------------------------------------------------

paired = family(
    raises="ShapeError: shapes that do not broadcast, fewer than two pairs.", gradient="By both: the formulas'."
)


def _tail(statistic, df, alternative):
    """The probability of Student's distribution beyond a statistic."""
    student: Any = gammas.t
    if alternative == "less":
        return student.cdf(statistic, df)
    if alternative == "greater":
        return student.sf(statistic, df)
    return 2 * student.sf(ops.abs(statistic), df)


def _of_correlation(r, df):
    """Student's statistic of a correlation; infinite for -1 and 1."""
    full = ops.abs(r) >= 1
    inner = ops.where(full, 0.0, r)
    return ops.where(full, ops.sign(r) * math.inf, inner * ops.sqrt(df / ((1 - inner) * (1 + inner))))


def _paired(function, x, y, axis, nan_policy="propagate", keepdims=False):
    """Two samples along the last dimension, of one shape."""
    x, y = real(f"scipy.stats.{function}", x=x, y=y)
    x, y = x + ops.zeros_like(y), y + ops.zeros_like(x)
    x, y = (Sample(function, z, axis, nan_policy, keepdims, omit=False, name=n) for z, n in ((x, "x"), (y, "y")))
    if x.x.shape[-1] is not None and x.x.shape[-1] < 2:
        raise ShapeError(f"`scipy.stats.{function}`: at least two pairs are needed.", argument="x")
    return x, y, x.x - x.mean(), y.x - y.mean()


ALTERNATIVES = ("two-sided", "less", "greater")


class PearsonRResult(NamedTuple):
    """The result of :func:`pearsonr`."""

    statistic: Any
    pvalue: Any


@paired
def pearsonr(x: Tensor, y: Tensor, *, alternative="two-sided", method=None, axis: Axes = 0):
    """Pearson's correlation of two samples, and the probability of one beyond it of independent normal ones.

    Args:
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``.
        method: None; SciPy's resampling has no derivative.

    Returns:
        A named tuple ``statistic`` and ``pvalue``, of the shape that both broadcast to, without ``axis``; NaN where
        all elements of one are equal.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: an unknown ``alternative``, a ``method``.
    """
    function = "scipy.stats.pearsonr"
    option(function, alternative, ALTERNATIVES, "alternative")
    if method is not None:
        raise ArgumentError(f"`{function}`: `method` must be None: resampling has no derivative.", argument="method")
    sample, _, dx, dy = _paired("pearsonr", x, y, axis)
    dx, dy = (d / ops.where(largest > 0, largest, math.nan) for d, largest in ((dx, _largest(dx)), (dy, _largest(dy))))
    r = ops.sum(dx * dy, -1, True) / ops.sqrt(ops.sum(dx * dx, -1, True) * ops.sum(dy * dy, -1, True))
    r = ops.clip(r, -1.0, 1.0)
    n = sample.n
    if n == 2:
        r = ops.round(r)
        p = ops.where(r == r, 1.0, r)
    else:
        p = _tail(_of_correlation(r, n - 2), n - 2, alternative)
    return PearsonRResult(sample.result(r), sample.result(p))


@paired
def pointbiserialr(x: Tensor, y: Tensor):
    """Point biserial correlation of bools with numbers, which is :func:`pearsonr`.

    Returns:
        A named tuple ``statistic`` and ``pvalue``, of the shape that both broadcast to, without the first dimension.
    """
    return pearsonr(x, y)


def _largest(d):
    return ops.stop_gradient(ops.max(ops.abs(d), -1, True))


class _Line(NamedTuple):
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class LinregressResult(_Line):
    """The result of :func:`linregress`."""

    intercept_stderr: Any = None


@paired
def linregress(
    x: Tensor, y: Tensor, alternative="two-sided", *, axis: Axes = 0, nan_policy="propagate", keepdims=False
):
    """The straight line through pairs by least squares.

    Args:
        alternative: of the slope's probability: ``"two-sided"``, ``"less"`` or ``"greater"``.
        nan_policy: ``"propagate"`` or ``"raise"``.

    Returns:
        A named tuple ``slope``, ``intercept``, ``rvalue``, the correlation, ``pvalue`` and ``stderr`` of the slope,
        with an attribute ``intercept_stderr``, of the shape that both broadcast to, without ``axis``.

    Raises:
        AxisError: an axis out of range.
        ArgumentError: an ``x`` of equal elements; an unknown ``alternative``.
    """
    function = "scipy.stats.linregress"
    option(function, alternative, ALTERNATIVES, "alternative")
    first, second, dx, dy = _paired("linregress", x, y, axis, nan_policy, keepdims)
    values = _checks.known(_largest(dx))
    if values is not None and np.any(values == 0):
        raise ArgumentError(f"`{function}`: the elements of `x` must not be equal.", argument="x")
    n = first.n
    sxx, sxy, syy = (ops.mean(z, -1, True) for z in (dx * dx, dx * dy, dy * dy))
    slope = sxy / sxx
    flat = syy == 0
    r = ops.where(flat, math.nan, ops.clip(sxy / ops.sqrt(sxx * ops.where(flat, 1.0, syy)), -1.0, 1.0))
    if n == 2:
        p, error = ops.where(second.x[..., :1] == second.x[..., 1:], 1.0, 0.0) + 0 * slope, 0 * slope
    else:
        p = _tail(_of_correlation(r, n - 2), n - 2, alternative)
        error = root((1 - r * r) * syy / sxx / (n - 2), dy - slope * dx)
    mean = first.mean()
    line = LinregressResult(*map(first.result, (slope, second.mean() - slope * mean, r, p, error)))
    line.intercept_stderr = first.result(error * ops.sqrt(sxx + mean * mean))
    return line
