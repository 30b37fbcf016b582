"""PyTorch kernels: creation."""

import torch

from ... import defaults
from .base import torch_dtype
from .tracing import constant


def _dtype(name):
    return torch_dtype(name or defaults.floatx())


def _shape(shape):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def zeros(shape, dtype=None):
    return torch.zeros(_shape(shape), dtype=_dtype(dtype))


def ones(shape, dtype=None):
    return torch.ones(_shape(shape), dtype=_dtype(dtype))


def zeros_like(x, dtype=None):
    return torch.zeros_like(x, dtype=None if dtype is None else torch_dtype(dtype))


def ones_like(x, dtype=None):
    return torch.ones_like(x, dtype=None if dtype is None else torch_dtype(dtype))


@constant
def _rounded(number, floatx: str):
    """A number as tensors of ``floatx`` hold it."""
    return torch.tensor(number, dtype=torch_dtype(floatx)).item()


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
    made = torch_dtype(dtype)
    if made is torch.bool or made.is_complex:
        return torch.arange(start, stop, step).to(made)
    return torch.arange(start, stop, step, dtype=made)


arange.of_numbers = True  # they go to it as they are: a tensor's value is unknown to torch.compile


def eye(N, M=None, k=0, dtype=None):
    rows, columns = torch.arange(N)[:, None], torch.arange(N if M is None else M)[None]
    return (columns - rows == k).to(_dtype(dtype))
