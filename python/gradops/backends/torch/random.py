"""PyTorch kernels: random numbers. A graph would go on with its generator at each call, so it gets them as they are."""

import contextlib

import torch

from . import _private


def _generator(like, seed):
    return torch.Generator(like.device).manual_seed(seed)


@contextlib.contextmanager
def _seeded(device, seed):
    """A scope in which a device's own generator begins at a seed; those of other devices go on where they are."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield


def random_uniform(like, shape, seed):
    with _private.untraced():
        return torch.rand(tuple(shape), generator=_generator(like, seed), dtype=like.dtype, device=like.device)


def random_normal(like, shape, seed):
    with _private.untraced():
        return torch.randn(tuple(shape), generator=_generator(like, seed), dtype=like.dtype, device=like.device)


def random_gamma(like, alpha, shape, seed):
    with _private.untraced(), _seeded(like.device, seed):
        alpha = alpha.to(like.dtype).expand(tuple(shape))
        return torch.distributions.Gamma(alpha, torch.ones_like(alpha)).sample()


def random_binomial(like, counts, probabilities, shape, seed):
    with _private.untraced():
        shape = tuple(shape)
        counts, probabilities = (x.to(like.dtype).expand(shape).contiguous() for x in (counts, probabilities))
        return torch.binomial(counts, probabilities, generator=_generator(like, seed))
