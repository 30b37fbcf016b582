"""PyTorch kernels: random numbers. A graph would go on with its generator at each call, so it gets them as they are."""

import torch

from . import _private


def _generator(like, seed):
    return torch.Generator(like.device).manual_seed(seed)


def random_uniform(like, shape, seed):
    with _private.untraced():
        return torch.rand(tuple(shape), generator=_generator(like, seed), dtype=like.dtype, device=like.device)


def random_normal(like, shape, seed):
    with _private.untraced():
        return torch.randn(tuple(shape), generator=_generator(like, seed), dtype=like.dtype, device=like.device)
