"""The entropy of probabilities, and estimates of the entropy of a density from observations."""

from __future__ import annotations

import math

import numpy as np

from ... import ops
from ...annotations import Axes, Tensor
from ...errors import ArgumentError
from ...ops import _checks
from .. import special
from .._tensors import option, wrong
from ._samples import Sample, known_number, of_sample, real


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
    """Shannon entropy of weights, or with ``qk`` their Kullback-Leibler divergence from it.

    Args:
        pk: divided by its sum.
        qk: divided by its sum.
        base: base of the logarithms, e by default.
        nan_policy: ``"propagate"`` or ``"raise"``; ``"omit"`` without ``qk``.

    Returns:
        A tensor of the shape that both broadcast to, without ``axis``; -inf or inf outside the domain.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: a ``base`` that is not positive.

    Gradient:
        By ``pk`` and ``qk``, of the formula.
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
    """Repeat the first and the last observation ``m`` more times."""
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
    """Entropy of the density of observations, estimated from the spacings of their order statistics.

    Args:
        window_length: the distance in ranks; by default the square root of the number of observations, rounded.
        base: of the logarithms; by default natural ones.
        method: ``"vasicek"``, ``"van es"``, ``"ebrahimi"``, ``"correa"``, or ``"auto"``, by the number of observations.
        nan_policy: ``"propagate"`` or ``"raise"``.

    Returns:
        A tensor of the shape of ``values`` without ``axis``, of their floating dtype.

    Raises:
        ArgumentError: an unknown ``method``; a ``window_length`` of half the observations or more; a ``base`` that is
            not positive.

    Gradient:
        Of the formula, with the order of the observations held fixed.
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


__all__ = ["differential_entropy", "entropy"]
