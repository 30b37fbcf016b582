"""PyTorch kernels: scattering."""

import torch

from ..array.indexing import extreme
from .base import dtype_name, to_numpy


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
