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


def random_gamma(like, alpha, shape, seed):
    devices = [like.device] if like.device.type == "cuda" else []
    with _private.untraced(), torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        alpha = alpha.to(like.dtype).expand(tuple(shape))
        return torch.distributions.Gamma(alpha, torch.ones_like(alpha)).sample()


def random_binomial(like, counts, probabilities, shape, seed):
    with _private.untraced():
        shape = tuple(shape)
        counts, probabilities = (x.to(like.dtype).expand(shape).contiguous() for x in (counts, probabilities))
        return torch.binomial(counts, probabilities, generator=_generator(like, seed))
