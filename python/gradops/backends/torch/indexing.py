"""PyTorch kernels: indexing, by NumPy's rules."""

from types import EllipsisType

import numpy as np
import torch

from .._keys import dimensions, distinct, is_array, parts_of, separated
from ..array.indexing import extreme
from .base import dtype_name, has_values, to_numpy


def native_key(x, key):
    """``x`` and a key as torch takes them: arrays become tensors, negative steps are gathered first."""
    if type(key) in (int, slice) and (type(key) is int or key.step is None or key.step > 0):
        return x, key
    parts = [_native(p, x.device) if is_array(p) else p for p in parts_of(key)]
    if any(isinstance(p, torch.Tensor) and (p.ndim or p.dtype is torch.bool) for p in parts):
        # NumPy counts ints beside arrays as arrays: that decides where the arrays' dimensions go
        parts = [_vector(p, x.device) if type(p) is int or isinstance(p, torch.Tensor) else p for p in parts]
    if any(isinstance(p, slice) and p.step is not None and p.step < 0 for p in parts):
        dim, rest = 0, x.ndim - sum(dimensions(p) for p in parts if p is not Ellipsis)
        for i, p in enumerate(parts):
            if isinstance(p, slice) and p.step is not None and p.step < 0:
                chosen = torch.tensor(list(range(*p.indices(x.shape[dim]))), dtype=torch.int64, device=x.device)
                x = torch.index_select(x, dim, chosen)
                parts[i] = slice(None)
            dim += rest if p is Ellipsis else dimensions(p)
    return x, tuple(parts)


def _vector(part, device):
    """One position as a vector of one; others as they are."""
    if isinstance(part, torch.Tensor):
        return part if part.ndim or part.dtype is torch.bool else part.reshape(1)
    return torch.tensor([part], device=device)


def _native(part, device):
    if isinstance(part, (bool, torch.Tensor)):
        return part
    return torch.as_tensor(np.asarray(part), device=device)


def get_item(x, key):
    x, key = native_key(x, key)
    return _arrays_first(x, key) if type(key) is tuple and any(isinstance(p, EllipsisType) for p in key) else x[key]


def _arrays_first(x, key):
    """``x[key]``, where a ``...`` of no dimensions sets arrays apart, as in NumPy; torch leaves it out before."""
    y, rest = x[key], [p for p in key if p is not Ellipsis]
    arrays = [i for i, p in enumerate(rest) if is_array(p)]
    if not arrays or x.ndim > sum(map(dimensions, rest)) or separated(rest) or not separated(key):
        return y
    first, width = arrays[0], y.ndim - (len(rest) - len(arrays))
    return y.movedim(list(range(first, first + width)), list(range(width)))


def _whole(indices):
    if indices.is_floating_point() or indices.is_complex():
        raise IndexError("positions must be whole numbers")
    return indices.to(torch.int64)


def take(x, indices, axis=None):
    if axis is None:
        x, axis = x.reshape(-1), 0
    indices = _whole(indices)
    size = x.shape[axis]
    flat = torch.where(indices < 0, indices + size, indices).reshape(-1)
    axis = axis % x.ndim
    out = torch.index_select(x, axis, flat)
    return out.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def take_along_axis(x, indices, axis=None):
    if axis is None:
        x, indices, axis = x.reshape(-1), indices.reshape(-1), 0
    if x.ndim != indices.ndim:
        raise ValueError("`x` and `indices` must have as many dimensions as each other")
    indices, size = _whole(indices), x.shape[axis]
    # torch does not check positions that are broadcast
    if indices.device.type == "cpu" and has_values(indices):
        known = indices.detach().numpy()  # torch's comparisons would be steps of a graph that is traced
        if ((known < -size) | (known >= size)).any():
            raise IndexError("index out of range")
    return torch.take_along_dim(x, torch.where(indices < 0, indices + size, indices), axis)


def _rows(key) -> bool:
    """True if a key is one tensor of whole numbers, which chooses whole rows."""
    return isinstance(key, torch.Tensor) and key.dtype in (torch.int64, torch.int32)


def _flat_positions(x, key):
    """The positions of the elements of ``x[key]`` in the flattened ``x``."""
    return get_item(torch.arange(x.numel(), device=x.device).reshape(x.shape), key)


def _own(x):
    """``x``, each element at an address of its own: PyTorch's compiled code adds to all elements that share one."""
    return x.contiguous()


def add_at(x, key, updates):
    updates = torch.as_tensor(updates, device=x.device).to(x.dtype)
    if x.dtype in (torch.float16, torch.bfloat16):  # in which sums stop growing
        return add_at(x.float(), key, updates.float()).to(x.dtype)
    if _rows(key) and key.ndim == 1 and x.ndim:
        rows = torch.where(key < 0, key + x.shape[0], key)
        return _own(x).index_add(0, rows, torch.broadcast_to(updates, (*rows.shape, *x.shape[1:])))
    flat = _flat_positions(x, key)
    updates = torch.broadcast_to(updates, flat.shape)
    return _own(x.reshape(-1)).index_add(0, flat.reshape(-1), updates.reshape(-1)).reshape(x.shape)


def set_at(x, key, updates):
    flat = _flat_positions(x, key)
    updates = torch.broadcast_to(torch.as_tensor(updates, device=x.device).to(x.dtype), flat.shape).reshape(-1)
    flat = flat.reshape(-1)
    if not distinct(
        tuple(_native(p, x.device) if is_array(p) else p for p in parts_of(key))
    ):  # of a position's several values the last stays, in the gradient too
        order = torch.arange(flat.numel(), device=x.device)
        last = torch.full((x.numel(),), -1, device=x.device).scatter_reduce(0, flat, order, "amax")
        last = last[last >= 0]
        flat, updates = flat[last], updates[last]
    return _own(x.reshape(-1)).index_copy(0, flat, updates).reshape(x.shape)


# Scattering.


def _segments(reduce, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(to_numpy(segment_ids).max()) + 1 if segment_ids.numel() else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        ids = torch.where(inside, segment_ids, num_segments).to(torch.int64)
        ids = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(data.shape)
        start = (num_segments + 1, *data.shape[1:])
        start = torch.full(start, extreme(dtype_name(data), smallest), dtype=data.dtype, device=data.device)
        return start.scatter_reduce(0, ids, data, reduce)[:num_segments]

    return kernel


segment_max = _segments("amax", True)
segment_min = _segments("amin", False)


def product_by_segment(data, ids, count):
    """Running products within each segment, of sorted rows, by doubled steps: right in every transformation.

    ``scatter_reduce(..., "prod")`` has tangents of 0 and looks at values in the backward pass.
    """
    order = torch.argsort(ids, stable=True)
    ids, data = ids[order], data[order]
    column, step = (-1, *[1] * (data.ndim - 1)), 1
    while step < data.shape[0]:
        joined = (ids[step:] == ids[:-step]).reshape(column)
        data = torch.cat([data[:step], data[step:] * torch.where(joined, data[:-step], 1)])
        step *= 2
    if not data.shape[0]:
        return torch.ones((count, *data.shape[1:]), dtype=data.dtype, device=data.device)
    segments = torch.arange(count, device=ids.device)
    last = (ids <= segments.reshape(-1, 1)).sum(1) - 1
    there = (last >= 0) & (ids[last.clamp(min=0)] == segments)
    return torch.where(there.reshape(column), data[last.clamp(min=0)], 1)
