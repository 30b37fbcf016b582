"""PyTorch kernels: shape."""

import torch

from .._keys import turns
from .base import axes_of, torch_dtype


def reshape(x, newshape):
    return torch.reshape(x, tuple(newshape) if isinstance(newshape, (tuple, list)) else (newshape,))


def transpose(x, axes=None):
    return x.permute(tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


def expand_dims(x, axis):
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    for a in sorted(_inserted(axes, rank)):
        x = x.unsqueeze(a)
    return x


def _inserted(axes, rank):
    found = [a + rank if a < 0 else a for a in axes]
    if any(not 0 <= a < rank for a in found) or len(set(found)) != len(found):
        raise IndexError(f"axis {axes} is out of range for {rank} dimensions")
    return found


def squeeze(x, axis=None):
    if axis is None:
        return torch.squeeze(x)
    axes = axes_of(x, axis)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"only dimensions of size 1 can be left out; the shape is {tuple(x.shape)}")
    return torch.squeeze(x, axes)


def broadcast_to(x, shape):
    return torch.broadcast_to(x, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))


def flip(x, axis=None):
    return torch.flip(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    return torch.roll(x, *turns(shift, axis if x.ndim else axes_of(x, axis) or None))


def view(x, dtype=None):
    if dtype is None:
        return x
    target = torch_dtype(dtype)
    if target is x.dtype:
        return x
    return (x if x.dtype.itemsize == target.itemsize else x.contiguous()).detach().view(target)
