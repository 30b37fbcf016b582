"""PyTorch kernels: scattering."""

import torch


def _segments(reduce, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(segment_ids.max()) + 1 if segment_ids.numel() else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        ids = torch.where(inside, segment_ids, num_segments).to(torch.int64)
        ids = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(data.shape)
        start = torch.full((num_segments + 1, *data.shape[1:]), _extreme(data.dtype, smallest), dtype=data.dtype)
        return start.to(data.device).scatter_reduce(0, ids, data, reduce)[:num_segments]

    return kernel


def _extreme(dtype, smallest):
    if dtype.is_floating_point:
        return -torch.inf if smallest else torch.inf
    if dtype is torch.bool:
        return not smallest
    return torch.iinfo(dtype).min if smallest else torch.iinfo(dtype).max


segment_max = _segments("amax", True)
segment_min = _segments("amin", False)
