"""NumPy kernels: scattering."""

import numpy as np

from ..array.indexing import extreme
from .base import dtype_name


def _segments(ufunc, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(segment_ids.max()) + 1 if segment_ids.size else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        out = np.full((num_segments, *data.shape[1:]), extreme(dtype_name(data), smallest), data.dtype)
        ufunc.at(out, segment_ids[inside], data[inside])
        return out

    return kernel


segment_max = _segments(np.maximum, True)
segment_min = _segments(np.minimum, False)
