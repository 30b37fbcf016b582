"""Random tensors, drawn by each library's own generator from a seed: a seed gives the same numbers at each call.

The numbers have no gradient and differ between libraries.
"""

from __future__ import annotations

import numpy as np

from .. import backends
from ..annotations import Integer, Shape, Tensor
from ._dispatch import op
from .conversion import cast, convert_to_numpy, dtype


@op(public=False, differentiable=False)
def random_uniform(like: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Numbers from 0 up to but without 1, of ``like``'s backend, floating dtype and device."""
    return _convert_like(like, np.random.default_rng(seed).random(shape))


@op(public=False, differentiable=False)
def random_normal(like: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Normal numbers of mean 0 and standard deviation 1, of ``like``'s backend, floating dtype and device."""
    return _convert_like(like, np.random.default_rng(seed).standard_normal(shape))


@op(public=False, differentiable=False)
def random_gamma(like: Tensor, alpha: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Numbers of the gamma distribution of shape parameter ``alpha``, which broadcasts to ``shape``, and scale 1."""
    return _convert_like(like, np.random.default_rng(seed).standard_gamma(convert_to_numpy(alpha), shape))


@op(public=False, differentiable=False)
def random_binomial(like: Tensor, counts: Tensor, probabilities: Tensor, shape: Shape, seed: Integer) -> Tensor:
    """Numbers of the binomial distribution, in ``like``'s floating dtype; both parameters broadcast to ``shape``."""
    counts, probabilities = convert_to_numpy(counts).astype("int64"), convert_to_numpy(probabilities)
    return _convert_like(like, np.random.default_rng(seed).binomial(counts, probabilities, shape))


def _convert_like(like, array):
    return cast(backends.backend_of(like).convert(array, like=like), dtype(like))


def next_seed(seed: int, count: int) -> int:
    """Return the ``count``-th of the independent seeds derived from one."""
    return int(np.random.SeedSequence((seed, count)).generate_state(1)[0] >> 1)
