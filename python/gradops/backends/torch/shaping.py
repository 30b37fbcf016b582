"""PyTorch kernels: shape, creation, joining, sorting, random numbers."""

import contextlib
import itertools

import torch

from ... import defaults
from .._keys import cuts, inserted, turns
from . import _private
from .base import axes_of, native_dtype, promoted, together
from .tracing import constant

# Shape, creation, joining, sorting.

tril, triu = torch.tril, torch.triu


def expand_dims(x, axis):
    for a in inserted(axis, x.ndim):
        x = x.unsqueeze(a)
    return x


def squeeze(x, axis=None):
    if axis is None:
        return torch.squeeze(x)
    axes = axes_of(x, axis)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"only dimensions of size 1 can be left out; the shape is {tuple(x.shape)}")
    return torch.squeeze(x, axes)


def flip(x, axis=None):
    return torch.flip(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    return torch.roll(x, *turns(shift, axis if x.ndim else axes_of(x, axis) or None))


def view(x, dtype=None):
    if dtype is None:
        return x
    target = native_dtype(dtype)
    if target is x.dtype:
        return x
    return (x if x.dtype.itemsize == target.itemsize else x.contiguous()).detach().view(target)


@constant
def _rounded(number, floatx: str):
    """A number as tensors of ``floatx`` hold it."""
    return torch.tensor(number, dtype=native_dtype(floatx)).item()


def _number(value):
    """A whole number, whose value torch.compile need not know, as it is."""
    if isinstance(value, int):
        return value
    return value.item() if isinstance(value, torch.Tensor) else _rounded(value, defaults.floatx())


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = list(map(_number, (start, stop, step)))
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else defaults.floatx()
    start, stop, step = values
    if step and (stop - start) / step <= 0:
        stop = start  # torch takes no range that runs the wrong way
    made = native_dtype(dtype)
    if made is torch.bool or made.is_complex:
        return torch.arange(start, stop, step).to(made)
    return torch.arange(start, stop, step, dtype=made)


arange.of_numbers = True  # they go to it as they are: a tensor's value is unknown to torch.compile


def eye(N, M=None, k=0, dtype=None):
    rows, columns = torch.arange(N)[:, None], torch.arange(N if M is None else M)[None]
    return (columns - rows == k).to(native_dtype(dtype or defaults.floatx()))


def concatenate(xs, axis=0):
    return torch.cat(together(xs), axis)


def stack(xs, axis=0):
    return torch.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or size % indices_or_sections:
            raise ValueError(f"{indices_or_sections} sections do not divide a dimension of {size}")
        sizes = [size // indices_or_sections] * indices_or_sections
    else:
        places = [0, *cuts(indices_or_sections, size), size]
        sizes = [end - start for start, end in itertools.pairwise(places)]
    return list(torch.split(x, sizes, axis))  # whose gradient is one copy of the pieces'


def unstack(x, num=None, axis=0):
    return list(torch.unbind(x, axis))


def _ordered(x, axis):
    if axis is None:
        x, axis = x.reshape(-1), 0
    return torch.sort(x, dim=axis, stable=True)


def sort(x, axis=-1):
    return _ordered(x, axis)[0]


def argsort(x, axis=-1):
    return _ordered(x, axis)[1]


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = promoted(sorted_sequence, values)
    if sequence.dtype is torch.bool:
        sequence, values = sequence.to(torch.uint8), values.to(torch.uint8)
    return torch.searchsorted(sequence.contiguous(), values.contiguous(), side=side)


# Random numbers. A graph would go on with its generator at each call, so it gets them as they are.


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
