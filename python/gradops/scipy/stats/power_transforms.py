"""Power transformations of observations to normality: Box-Cox and Yeo-Johnson."""

from __future__ import annotations

from ... import ops
from ...annotations import Axes, Operand, Tensor
from ...errors import ArgumentError, ShapeError
from .. import special
from .._define import family
from ._samples import ARGUMENTS, RANGE, Sample, real

transformation = family(
    returns="A tensor of the shape that ``x`` and ``lmbda`` broadcast to.",
    raises="ArgumentError: no ``lmbda``.",
    gradient="By ``x`` and ``lmbda``.",
)

likelihood = family(
    ARGUMENTS | {"lmb": "the transformation's parameter, a number."},
    returns="A tensor of ``data``'s shape without ``axis``.",
    raises=f"{RANGE}\nShapeError: an ``lmb`` with dimensions.",
    gradient="By ``lmb`` and ``data``, of the formula.",
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
    """Box-Cox transformation of positive elements with a given ``lmbda``, see :func:`.special.boxcox`.

    Args:
        alpha, optimizer: options of SciPy's search for ``lmbda``; ignored.
    """
    _given("boxcox", lmbda)
    return special.boxcox(*real("scipy.stats.boxcox", x=x, lmbda=lmbda))


@likelihood
def boxcox_llf(lmb: Operand, data: Tensor, *, axis: Axes = 0, keepdims=False, nan_policy="propagate") -> Tensor:
    """Log-likelihood of the Box-Cox transformation of positive observations, up to a constant.

    Gradient:
        By ``lmb`` and ``data``, of the formula, also where ``lmb`` is 0.
    """
    lmb, data = _parameter("boxcox_llf", lmb, data)
    sample = Sample("boxcox_llf", data, axis, nan_policy, keepdims, name="data")
    middle = ops.exp(sample.mean(ops.log(sample.x)))  # scale so that the variance is that of numbers near 1
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
    """Log-likelihood of the Yeo-Johnson transformation of observations, up to a constant."""
    lmb, data = _parameter("yeojohnson_llf", lmb, data)
    sample = Sample("yeojohnson_llf", data, axis, nan_policy, keepdims, name="data")
    x, n = sample.x, sample.n
    slopes = (lmb - 1) * sample.sum(ops.sign(x) * ops.log1p(ops.abs(x)))
    sample.x = _yeojohnson(x, lmb)
    return sample.result(slopes - n / 2 * ops.log(sample.var()))


__all__ = ["boxcox", "boxcox_llf", "yeojohnson", "yeojohnson_llf"]
