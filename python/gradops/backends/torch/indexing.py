"""PyTorch kernels: indexing."""

import numpy as np
import torch


def native_key(x, key):
    """A NumPy key as torch takes it: arrays become tensors, negative steps gathers."""
    parts = list(key) if isinstance(key, tuple) else [key]
    parts = [
        torch.as_tensor(p, device=x.device) if isinstance(p, (list, np.ndarray, np.integer)) else p for p in parts
    ]
    if any(isinstance(p, slice) and p.step is not None and p.step < 0 for p in parts):
        flipped, dim = [], 0
        if Ellipsis in [p for p in parts if not isinstance(p, torch.Tensor)]:
            at = next(i for i, p in enumerate(parts) if p is Ellipsis)
            used = sum(p is not None and p is not Ellipsis for p in parts)
            parts[at : at + 1] = [slice(None)] * (x.ndim - used)
        for i, p in enumerate(parts):
            if p is None:
                continue
            if isinstance(p, slice) and p.step is not None and p.step < 0:
                chosen = range(*p.indices(x.shape[dim]))
                x = torch.index_select(x, dim, torch.tensor(list(chosen), dtype=torch.int64, device=x.device))
                flipped.append(i)
            dim += 1
        for i in flipped:
            parts[i] = slice(None)
    return x, tuple(parts) if isinstance(key, tuple) or len(parts) > 1 else parts[0]


def get_item(x, key):
    x, key = native_key(x, key)
    return x[key]


def take(x, indices, axis=None):
    if axis is None:
        x, axis = x.reshape(-1), 0
    indices = indices.to(torch.int64)
    size = x.shape[axis]
    flat = torch.where(indices < 0, indices + size, indices).reshape(-1)
    axis = axis % x.ndim
    out = torch.index_select(x, axis, flat)
    return out.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def add_at(x, key, updates):
    positions = torch.arange(x.numel(), device=x.device).reshape(x.shape)
    flat = get_item(positions, key)
    updates = torch.broadcast_to(updates.to(x.dtype), flat.shape)
    return x.reshape(-1).index_add(0, flat.reshape(-1), updates.reshape(-1)).reshape(x.shape)
