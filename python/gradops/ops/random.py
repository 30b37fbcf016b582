"""Random tensors, drawn by each library's own generator from a seed: one seed gives the same numbers at each call.

What is drawn has no gradient. Libraries differ in their numbers.
"""

from __future__ import annotations

import numpy as np

from .. import backends
from ..annotations import Integer, Shape, Tensor
from ._dispatch import op
from .conversion import cast, dtype


@op(public=False, differentiable=False)
def random_uniform(like: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Numbers from 0 up to but without 1, of ``like``'s backend, floating dtype and device."""
    return _as(like, np.random.default_rng(seed).random(shape))


@op(public=False, differentiable=False)
def random_normal(like: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Normal numbers of mean 0 and standard deviation 1, of ``like``'s backend, floating dtype and device."""
    return _as(like, np.random.default_rng(seed).standard_normal(shape))


@op(public=False, differentiable=False)
def random_gamma(like: Tensor, alpha: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Numbers of the gamma distribution of shape parameter ``alpha``, which broadcasts to ``shape``, and scale 1."""
    return _as(like, np.random.default_rng(seed).standard_gamma(_values(alpha), shape))


@op(public=False, differentiable=False)
def random_binomial(like: Tensor, counts: Tensor, probabilities: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """How many of ``counts`` trials succeed, of ``like``'s floating dtype; both parameters broadcast to ``shape``."""
    drawn = np.random.default_rng(seed).binomial(_values(counts).astype("int64"), _values(probabilities), shape)
    return _as(like, drawn)


def _values(x) -> np.ndarray:
    return backends.of(x).to_numpy(x)


def _as(like, array):
    return cast(backends.of(like).convert(array, like=like), dtype(like))


def next_seed(seed: int, count: int) -> int:
    """The ``count``-th of the independent seeds that come of one."""
    return int(np.random.SeedSequence((seed, count)).generate_state(1)[0] >> 1)
