"""PyTorch kernels: shape."""

import torch

from .base import axes_of, together


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
    return torch.roll(x, shift, axis)


def concatenate(xs, axis=0):
    return torch.cat(together(xs), axis)


def stack(xs, axis=0):
    return torch.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    return list(torch.tensor_split(x, _even(x, indices_or_sections, axis), dim=axis))


def _even(x, sections, axis):
    if isinstance(sections, int):
        if sections < 1 or x.shape[axis] % sections:
            raise ValueError(f"{sections} sections do not divide a dimension of {x.shape[axis]}")
        return sections
    return [int(i) for i in sections]
